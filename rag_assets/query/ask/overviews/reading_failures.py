"""Questions for the files that could not be read, and what the causes are called.

「読めなかったファイルはどれですか」, "Which files are encrypted?": a question asks for them where words for a failure
stand before a word for files, or where it asks which files, how many or whether all. What it says beside is for others
to judge.

What stays out: which files these are (`rag_assets.query.ask.overviews.inventory`), but for those whose names stand in a
question that found no answer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Self

import pyarrow.compute as pc

from rag_assets.contracts.causes import DocumentStatus, FailureCause
from rag_assets.contracts.tables import DOCUMENTS, PARSE_FAILURES
from rag_assets.query.stored import StoredTables
from rag_assets.text.folding import content_terms, content_words, held_share
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HIRAGANA

_READING_JA = (
    "(?:読み?(?:取り?|込み?|出し)|よみ(?:とり|こみ)|取り?込み|とりこみ|解析|パース|認識|抽出|索引(?:化|付け)?"
    "|インデックス(?:化)?|インポート|スキャン|テキスト化|オープン)"
)
_HANDLING_JA = f"(?:{_READING_JA}|処理|変換|登録)"
_READ_JA = (
    "(?:(?:読|よ)め|読み?(?:取れ|込め|出せ|とれ|こめ|取られ|込まれ)|よみ(?:とれ|こめ)|読まれ|取り?込(?:め|まれ)|とりこめ|開[けか]"
    f"|{_READING_JA}(?:が|は|も)?(?:でき|出来|され)|(?:処理|変換)(?:が|は|も)?(?:でき|出来))"
)
_NOT_JA = "(?:(?:て|られ)?(?:い)?(?:な(?:い|かった)|ません(?:でした)?|ず))"
_IS_JA = "(?:て(?:い)?(?:た|る|て|ます|ました)?|た|ました|、)"  # what has become of something
_FAILED_JA = (
    f"{_READ_JA}{_NOT_JA}|(?:{_HANDLING_JA}(?:に|が|を)?)?(?:失敗し{_IS_JA}|失敗(?:だった|になった))"
    f"|{_READING_JA}?エラー(?:に?なっ{_IS_JA}|が(?:出|発生し|起き)(?:{_IS_JA})|が(?:あった|ある)|だった)"
    f"|{_READING_JA}(?:エラー|漏れ|不能|不可)の?|(?:読み飛ば|スキップ)(?:され|し){_IS_JA}|(?:弾|はじ)かれ{_IS_JA}|未読み?(?:取|込)の?"
)
_READING_EN = "(?:read|pars|index|open|process|load|import|ingest|extract|convert|scann?|understand|recogni[sz])"
_READ_EN = rf"(?:read|understood|{_READING_EN}(?:e?d|ing|e)?)\b"
_WELL_EN = r"(?:(?:fully|completely|properly|correctly|successfully|in full)\s+)?"
_TROUBLE_EN = "(?:errors?|failures?|problems?|trouble|issues?)"
_WHILE_EN = r"(?:(?:in|during|while|with|on|when)\s+)?"
_PARTLY_EN = r"(?:partly|partially|in\s+part|incompletely)"
_NOT_EN = (
    r"(?:\b(?:could|can|did|do|does|was|were|is|are|has|have|had)\s+)?\b(?:not|never|cannot)\b"
    r"|\b(?:could|ca|did|do|does|was|were|is|are|has|have|had)n['’]t\b"
)
_FAILED_EN = (
    rf"(?:{_NOT_EN})\s+(?:(?:be|been|get|being|able\s+to|you|we|have|even|yet|all)\s+){{0,3}}{_WELL_EN}{_READ_EN}"
    rf"|\b(?:only\s+)?{_PARTLY_EN}\s+{_READ_EN}"
    r"|\bunread(?:able)?\b|\bunpars(?:e?able|ed)\b|\bunindexed\b"
    rf"|\b(?:unable|impossible)\s+to\s+(?:be\s+)?{_READ_EN}"
    rf"|\bfail(?:ed|ures?|s|ing)?\b(?:\s+(?:to\s+(?:be\s+|get\s+)?|(?:in|during|while|on|when)\s+)?{_READ_EN})?"
    rf"|\b(?:with|had|ha(?:s|ve)|gave|caused|any)\s+(?:any\s+|an?\s+)?(?:{_READ_EN}\s+)?{_TROUBLE_EN}\b(?:\s+{_WHILE_EN}{_READ_EN})?"
    rf"|\b{_TROUBLE_EN}\s+{_WHILE_EN}{_READ_EN}|\bskipped\b|\bleft\s+out\b|\brejected\b"
)
_KIND_JA = "(?:の?(?:ファイル)?(?:形式|フォーマット|拡張子))?"
_CAUSES: Mapping[FailureCause, str] = {
    FailureCause.ENCRYPTED: (
        f"暗号化(?:され{_IS_JA}|済み)|暗号化(?=の?(?:ファイル|文書|資料|PDF|Excel|Word))"
        f"|(?:パスワード|鍵|ロック)(?:付き|つき|が(?:必要|要る|いる)|(?:の|が)?(?:かか|掛か)(?:っ{_IS_JA})|(?:で|が)?(?:保護|設定|ロック)され{_IS_JA})"
        f"|(?:保護|ロック)され{_IS_JA}"
        r"|\bencrypted\b|\bpassword[- ]?protected\b|\b(?:protected|locked)\b(?:\s+(?:by|with)\s+(?:an?\s+)?passwords?)?"
        r"|\b(?:needs?|needing|requires?|requiring|ha(?:s|ve)|with)\s+(?:an?\s+)?passwords?\b"
    ),
    FailureCause.MALFORMED: (
        f"(?:壊れ|こわれ|破損し|損傷し|破壊され){_IS_JA}|(?:破損|損傷)(?=の?(?:ファイル|文書|資料|PDF|Excel|Word))"
        r"|\b(?:corrupt(?:ed)?|damaged|broken|malformed|defective)\b"
    ),
    FailureCause.NO_TEXT: (
        "(?:テキスト|文字|本文|中身|内容)(?:が|の|は|も|を)?(?:まったく|全く|何も|一つも)?"
        f"(?:空(?:だった|の|っぽの)?|(?:無|な)(?:い|かった)|(?:取れ|とれ|拾え|含まれ|入って(?:い)?){_NOT_JA}|{_READ_JA}{_NOT_JA})"
        f"|空(?:っぽ|白)?(?:だった|になっ{_IS_JA}|の|な)|空(?=ファイル)|白紙の?"
        r"|\b(?:have|has|had|with|contain(?:s|ed|ing)?|hold(?:s|ing)?)\s+no\s+(?:readable\s+)?text\b(?!\s+files?)(?:\s+(?:layer|in\s+(?:it|them)))?"
        r"|\b(?:without|no)\s+(?:any\s+|readable\s+)?text\b(?!\s+files?)(?:\s+layer)?"
        rf"|(?:{_NOT_EN})\s+(?:have|contain|hold)\s+any\s+text\b|\b(?:empty|blank)\b"
    ),
    FailureCause.TOO_LARGE: (
        f"(?:(?:サイズ|容量)が)?(?:大き|でか|デカ)(?:すぎ|過ぎ)(?:て|た|る)"
        f"|(?:サイズ|容量|上限)(?:が|を|の)?(?:上限を?)?(?:超(?:え|過し){_IS_JA}|オーバー(?:し{_IS_JA})?)"
        rf"|\btoo\s+(?:large|big)\b(?:\s+(?:for\s+you\s+)?to\s+(?:be\s+)?{_READ_EN})?|\boversized?\b"
    ),
    FailureCause.TIMEOUT: (
        f"タイムアウト(?:し{_IS_JA}|になっ{_IS_JA}|で)|時間(?:切れ(?:の|になっ{_IS_JA}|で)|がかかりすぎ(?:て|た))"
        r"|\btim(?:ed|e|ing)[- ]?outs?\b|\btook\s+too\s+long\b(?:\s+to\s+(?:be\s+)?" + _READ_EN + ")?"
    ),
    FailureCause.MEMORY: (
        f"メモリー?(?:不足(?:の|で|になっ{_IS_JA})|が足り(?:ず|な(?:い|かった|くて)))"
        r"|\b(?:ran\s+)?out\s+of\s+memory\b|\btoo\s+much\s+memory\b"
    ),
    FailureCause.CRASHED: rf"(?:クラッシュ|異常終了)し{_IS_JA}|\bcrash(?:ed|es|ing)?\b",
    FailureCause.UNSUPPORTED_FORMAT: (
        f"(?:未|非)対応(?:の|な|だった){_KIND_JA}(?:の|で)?|(?:対応|サポート)(?:して|されて)(?:い)?な(?:い|かった){_KIND_JA}(?:の|で)?"
        r"|\b(?:(?:with|of|in)\s+(?:an?\s+)?)?(?:unsupported|unknown|unrecogni[sz]ed)\b(?:\s+(?:file\s+)?(?:formats?|types?))?|\bnot\s+supported\b"
    ),
    FailureCause.NOT_CALCULATED: (
        "(?:数式|計算式)の?(?:計算)?(?:結果|値)(?:が|の)(?:無い|な(?:い|かった)|保存されて(?:い)?な(?:い|かった))"
        "|(?:未計算|計算されて(?:い)?な(?:い|かった))の?(?:数式|計算式)?(?:が|の)?(?:あった|ある|残っ(?:た|て(?:い)?る)|含む)?"
        r"|\b(?:with\s+)?formula(?:s|e)?\s+(?:without|with\s+no|that\s+have\s+no)\s+(?:stored\s+|calculated\s+)?(?:results?|values?)\b"
    ),
    FailureCause.UNREADABLE: (
        f"(?:アクセス|読み?取り?)?(?:権限|許可)(?:が|の)?(?:無|な)(?:い|くて?|かった)|アクセスでき{_NOT_JA}"
        r"|\b(?:without|no|lack(?:s|ing)?)\s+permissions?\b|\baccess\s+(?:is\s+|was\s+)?denied\b"
    ),
}
_FOLDER_NAME = r"(?!\s?(?:フォルダ|ディレクトリ|\b(?:folder|directory)\b))"
_WORDS = {cause: re.compile(f"(?:{words}){_FOLDER_NAME}", re.IGNORECASE) for cause, words in _CAUSES.items()}
_FAILED = re.compile(f"(?:{_FAILED_JA}|{_FAILED_EN})", re.IGNORECASE)
_PARTLY = re.compile(
    "一部(?:だけ|のみ|が|の?(?:ページ|シート|スライド)(?:だけ|のみ)?[がをは]?)?|部分的に?|途中(?:まで(?:しか|だけ)?|で)|(?:ページ|シート|スライド)[がをの]"
    rf"|\b(?:only\s+)?{_PARTLY_EN}\b|\bnot\s+(?:fully|completely)\b|\b(?:pages|sheets)\s+of\b",
    re.IGNORECASE,
)
_ALL_READ = re.compile(
    f"{_READ_JA}(?:て(?:い)?(?:る|ます|た|ました)|た|ました|ま)(?=[かのん?？。]|$)"
    rf"|(?:\bbeen\s+)?{_WELL_EN}\b{_READ_EN}(?:\s+(?:successfully|correctly|completely|in\s+full|without\s+(?:errors?|problems?)))?",
    re.IGNORECASE,
)
_ALL = re.compile(
    "全(?:部|て|(?=ファイル|文書|資料|PDF))|ぜんぶ|すべて|みんな|ちゃんと|きちんと|正しく|正常に|問題なく|無事に?|(?:漏|も)れなく"
    r"|\b(?:were|was|are|is|have|has|did)\s+(?:all|every|everything|each)\b",
    re.IGNORECASE,
)
_ALL_WELL = re.compile("ちゃんと|きちんと|正しく|正常に|問題なく|無事に?|(?:漏|も)れなく")
_WHICH = re.compile("どの|どれ|何(?:件|個|本|つ)|いくつ|あ(?:る|り|った)|一覧|リスト|ごと|それぞれ")
_JAPANESE = re.compile(f"[{HIRAGANA}]")
_REASON = re.compile("理由|原因|なぜ|なんで|どうして")
_FOR_EACH = re.compile("どの|どれ|ごと|それぞれ")
_FILES = (
    r"(?:ファイル|文書|資料|書類|ドキュメント|もの|やつ|[A-Za-z]{3,10}|エクセル|ワード|パワポ|スライド|メール|ページ|シート"
    r"|\w{1,8}書)"
)
_BEFORE_FILES = re.compile(
    f"(?:{'|'.join((*_CAUSES.values(), _FAILED_JA, _FAILED_EN))})[でのなて、\\s]*{_FILES}", re.IGNORECASE
)
_THING = re.compile(r"もの|やつ|\b(?:anything|everything)\b", re.IGNORECASE)
_OF_READING = re.compile(f"{_READ_JA}|{_READING_JA}|{_READ_EN}", re.IGNORECASE)
_PAGES = re.compile(r"ページ|シート|スライド|\b(?:pages|sheets|slides)\b", re.IGNORECASE)
_NOT_FILES = re.compile(  # what is done about failures, or asked of one file, or what a word means
    "とは|(?<!あっ)たら|(?<!あ)れば|なら|とき|時[はにの]|際[はにの]|どう(?!して)|こと[がはを]"
    r"|\b(?:when(?:ever)?|unless|until|happens?|should)\b|(?<!know )(?<!see )(?<!check )(?<!me )\bif\b"
    r"|(?<!is there )(?<!was there )\b(?:an?|the|this|that|my|your|its)\s+(?:\w+\s+){0,2}?"
    r"(?:file|document|pdf|workbook|report)\b"
    r"|\bwhat\s+(?:is|are)\s+(?!the\b|there\b)",
    re.IGNORECASE,
)
_BESIDE_JA = (
    "全(?=ファイル|文書|資料|PDF)|うまく|理由|原因|なんで|どうして|なぜ|確認(?:したい|を)|調べ|スキャン(?:した|された)?|知りたい|結局|今回|最後に?|直近の?|欲しい|ページ|シート|スライド"
    "|あったら|あれば|って|から|より|ほか|でし[たょ]う?|ます|ました|ません|ない|なかった|だった|だけ|なの|あり|ある|あった|いる|いた|まだ"
    "|いくつ|どれ|どの|どんな|なに|という|やつ|ください|くれ|もらえ|いただけ|ほしい|たい|ちょっと|とか|など|ごと|ずつ|まとめて|けど"
    "|[はがをにでのもとやへかよねんすしるうただなてせそ]"
)
_BESIDE_EN = (
    "that|why|reasons?|causes?|because|for|with|to|at|some|yet|still|anything|could|can|be|let"
    "|check(?= (?:if|whether|which|for|any))"
    "|know|see|whether|during|indexing|reading|last|time|run|able|it|them|so|far|did|get|got|ones?|there|pages|sheets"
)
BESIDE = re.compile(rf"{_BESIDE_JA}|\b(?:{_BESIDE_EN})\b", re.IGNORECASE)
"""What such questions may say beside words for failures and files; no other hiragana."""
_NAMED_SHARE = 0.75  # of the words of a file's name
_FILES_NAMED = 3
_TELLING = re.compile(r"[^\W\d_A-Za-z]{3}|[A-Za-z]{5}")  # not `資料`, `data` or a number
_UNREAD = {
    "ja": "「{name}」は読み取れていません（{causes}）。",
    "en": "“{name}” could not be read ({causes}).",
}
_NOUNS: Mapping[FailureCause, Mapping[str, str]] = {
    FailureCause.UNREADABLE: {"ja": "ファイルを開けない", "en": "cannot be opened"},
    FailureCause.UNSUPPORTED_FORMAT: {"ja": "未対応の形式", "en": "unknown format"},
    FailureCause.ENCRYPTED: {"ja": "暗号化・パスワード付き", "en": "encrypted"},
    FailureCause.MALFORMED: {"ja": "破損", "en": "damaged"},
    FailureCause.TOO_LARGE: {"ja": "大きすぎる", "en": "too large"},
    FailureCause.TIMEOUT: {"ja": "時間切れ", "en": "took too long"},
    FailureCause.MEMORY: {"ja": "メモリー不足", "en": "needs too much memory"},
    FailureCause.CRASHED: {"ja": "読み取り中の異常終了", "en": "the reader crashed"},
    FailureCause.NOT_CALCULATED: {"ja": "計算結果のない数式", "en": "formulas without results"},
    FailureCause.NO_TEXT: {"ja": "テキストなし", "en": "no text"},
}


@dataclass(frozen=True)
class FailuresAsked:
    """What a question asks of the files that could not be read."""

    causes: frozenset[FailureCause]  # the causes that it names; empty for all
    partly: bool  # whether it asks for files of which a part could not be read
    rest: str  # the question without the words for failures
    of_things: bool  # whether it need not say that it means files

    @classmethod
    def of(cls, text: str, *, names_file: bool = False) -> Self | None:
        """What a question asks, as far as words for failures tell; None where it does not ask which files failed.

        Args:
            text: The question, in NFKC.
            names_file: Whether it names a file.
        """
        rest, causes = text, set[FailureCause]()
        for cause, words in _WORDS.items():
            rest, count = words.subn(" ", rest)
            causes |= {cause} if count else set()
        rest, failures = _FAILED.subn(" ", rest)
        if not causes and not failures and _ALL.search(text):
            rest, failures = _ALL_READ.subn(" ", _ALL_WELL.sub(" ", rest))
        if not (causes or failures) or _NOT_FILES.search(text):
            return None
        asks_each = names_file or bool(_BEFORE_FILES.search(text) or _FOR_EACH.search(text))
        asks_which = bool(_WHICH.search(text) or _ALL.search(text)) and not _REASON.search(text)
        if not asks_each and not asks_which and _JAPANESE.search(text):
            return None
        of_pages = bool(_PARTLY.search(text) or _PAGES.search(text))
        rest = _PARTLY.sub(" ", rest)
        of_things = of_pages or bool(_THING.search(text) and _OF_READING.search(text))
        return cls(frozenset(causes), of_pages, rest, of_things)


def cause_name(cause: str, language: str) -> str:
    """What a cause is called, in `ja` or `en`; a cause that nobody knows by its own name."""
    names = _NOUNS.get(FailureCause(cause)) if cause in set(FailureCause) else None
    return names[language] if names else cause


def unread_files_named(question: str, language: str, stored: StoredTables) -> str:
    """That files whose names a question holds, nearly whole, could not be read, and why; empty where there is none.

    Args:
        question: The question.
        language: Of what is said: `ja` or `en`.
        stored: The stored tables.

    Raises:
        StoreError: A published file is gone.
    """
    terms = content_terms(question)
    failed = stored.read(DOCUMENTS, ("document_id",), where=pc.field("status") == DocumentStatus.FAILED)
    paths = [PurePath(document) for document in failed["document_id"].to_pylist()]
    named = [
        path
        for path in paths
        if _TELLING.search(path.stem) and held_share(content_words(path.stem), terms) >= _NAMED_SHARE
    ][:_FILES_NAMED]
    causes: dict[str, list[str]] = {str(path): [] for path in named}
    for row in stored.read(PARSE_FAILURES, ("document_id", "cause"), list(causes)).to_pylist():
        causes[row["document_id"]].append(cause_name(row["cause"], language))
    return " ".join(
        _UNREAD[language].format(name=one_line(path.name), causes=", ".join(dict.fromkeys(causes[str(path)])))
        for path in named
    )
