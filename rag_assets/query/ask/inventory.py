"""What files a collection holds, where a question asks for that alone: how many, which ones, the newest, its folders.

「PDFは何件ありますか」, "List the spreadsheets in the folder design", "Which is the newest report?": no passage says
it, the table of documents does. A question that says anything but a kind of file and a folder is none of these, as is
「申請に必要な書類は何件」.

What stays out: what documents are about (`rag_assets.query.ask.overview`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum, auto
from itertools import takewhile
from pathlib import PurePath
from typing import Any, Self

from rag_assets.contracts.formats import FAMILIES
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.query.ask.facts import CITED, Facts, FactWriter, PassagesOf, plain_name
from rag_assets.query.ask.scope import documents_called, documents_in_folders
from rag_assets.query.stored import StoredTables
from rag_assets.text.plain import counted
from rag_assets.text.scripts import KANJI, KATAKANA

_READ_CHARS = 200  # a longer question says more
_CHARS = 1100  # of an answer
_LISTED = 20  # files or folders that are named
_DATED = 3  # of the newest or oldest
_PATH_CHARS = 120
_MORE_CHARS = 20
_COUNTED = 12  # folders or formats, with how many files each has
_COLUMNS = ("document_id", "folder", "format", "status", "title", "page_count", "modified_at")

_FOLDER = "フォルダー?|ディレクトリー?|(?:sub)?folders?|(?:sub)?director(?:y|ies)"
_FILE = "ファイル|文書|資料|書類|ドキュメント|帳票類|files?|documents?|docs"
_OF_PAPERS = "設計|仕様|定義|手順|報告|計画|企画|提案|見積|契約|要件"
_PAPER = f"[{KANJI}{KATAKANA}A-Za-z0-9]{{0,12}}?(?:{_OF_PAPERS})書"
_KINDS = {
    "議事録": "議事録|(?:meeting )?minutes",
    "設計書": "design documents?",
    "仕様書": "spec(?:ification)?s?(?: sheets?)?",
    "要件定義書": "requirements? (?:definitions?|documents?)",
    "マニュアル": "マニュアル|取扱説明書|操作説明書|(?:user )?manuals?",
    "手順書": "procedures?",
    "報告書": "レポート|reports?",
    "規程": "規程類?|規定類?|regulations?",
    "ガイド": "ガイド(?:ライン|ブック)?|guid(?:es?|elines?)",
    "提案書": "proposals?",
    "計画書": "plans?",
    "見積書": "quotations?",
    "契約書": "contracts?",
    "リリースノート": "リリースノート|release notes",
}
"""What kinds of documents are called, beside 設計書 and other papers; what their paths or titles hold is one of it."""


class _Kind(StrEnum):
    NEWEST = auto()
    OLDEST = auto()
    COUNT = auto()
    LIST = auto()


_MOST = "一番|いちばん|最も|もっとも"
_CHANGED = "更新|変更|追加|作成|登録|保存|改訂|修正"
_CHANGED_EN = "(?:changed|updated|added|modified)"
_COUNTER = "件|個|点|本|つ|冊|通|枚|部|ファイル|文書|資料|フォルダー?"
_ANY_FOLDER = "どんな|どのような|どういう|どういった|何という|いくつの|何個の"
_INTENTS: Mapping[_Kind, str] = {
    _Kind.NEWEST: (
        f"最新(?!の?(?:版|バージョン))|(?:{_MOST})(?:日付[がの])?新し|新しい順|直近|最終(?:更新|変更)(?!日)"
        f"|(?:最近|さいきん|最後)[にで]?(?:{_CHANGED})"
        rf"|\b(?:newest|latest|most recent(?:ly)?|last {_CHANGED_EN}|{_CHANGED_EN} (?:last|most recently|recently))\b"
    ),
    _Kind.OLDEST: rf"最古|(?:{_MOST})(?:日付[がの])?古|古い順|長いこと|手つかず|\b(?:oldest|least recently)\b",
    _Kind.COUNT: (
        f"何(?:{_COUNTER})|なん(?:こ|けん|個|件|ファイル)|なんぼ|いくつ|いくら|どんだけ|どれ(?:くらい|ぐらい|だけ)|どの(?:くらい|ぐらい)"
        "|(?:件|個|本|点|枚|冊|総|合計)数|の数|数(?:は|を|$)"
        r"|\b(?:how many|(?:total )?(?:number|count) of|(?:file |document )?counts?|more \w+(?: \w+)? or more)\b"
    ),
    _Kind.LIST: (
        "一覧|リスト(?:アップ|化)?|目録|全部|ぜんぶ|すべて|全て|列挙|挙げ|並べ|ならべ|名前|ファイル名|どれとどれ|一通り|ひと通り|ひととおり"
        r"|\b(?:list|enumerate|names?|show(?: me)? (?:all|every|the|everything)|which(?: of)?|name (?:all|the))\b"
    ),
}
_OTHERWISE = re.compile(  # what an overview tells, or a passage
    "種類|テーマ|内容|概要|要約|まとめて|説明(?!書)|何につい|何の|目的|中身|(?:拡張子|形式)(?!別|ごと)"
    f"|(?:どんな|どのような|どういう|どういった)(?!{_FOLDER})(?!.*(?:一覧|リスト))"
    r"|\b(?:about|summar\w*|overview|kinds?|types?|topics?|themes?|contents?|describe\w*|explain\w*)\b"
    r"|\bfor\b(?! the (?:audit|record))",
    re.IGNORECASE,
)
_OF_FOLDERS = re.compile(
    f"(?:{_ANY_FOLDER}|サブ)(?:{_FOLDER})|(?:{_FOLDER})(?:は|が|って|を|、)?(?:全部で?)?(?:何[個つが]|いくつ|どれ|どんな)"
    rf"|(?:{_FOLDER})(?:の?名前?)?の?(?:一覧|リスト|構成|階層)|(?:{_FOLDER})数|\b(?:sub)?(?:folders|directories)\b",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"(?<![\d.])(\d{1,2}) ?(?:件|個|つ|点|本|冊|files?|documents?|newest|latest|oldest)", re.IGNORECASE
)
_BESIDE_JA = (
    f"このシステム|{_WANTED.pattern}|(?:{_CHANGED})(?:日時?|され|した|が?あった|済み|の)?"
    "|年度?別|ごと|各|ずつ|それぞれ"
    "|(?:拡張子|形式|フォーマット|ファイル形式|フォルダー?)別?|合計|合わせて|だいたい|大体|およそ|現在|現時点|今|いま|全体|全件"
    "|件数|多い|少ない|日付|日時|順番?|保管|格納|収録|収納|所蔵|保有|取り?込み済み|取り?込[みん]|アップロード"
    "|置[いか]|入[っれ]|含ま|残[っさ]|あ[るりっん]|持って|済み|配下|以下|直下|下|中|内|ところ|とこ|もの|ほう|方|やつ"
    "|どこ|どれ|どっち|どちら|名|表|名前|上から|最初|分かれ|教え|知り|見せ|見たい|出し|出力|示[しさ]|表示|報告|集計|作成"
    "|お?願い|ほし|欲し|くださ|下さ|いただ|頂|もら|できます|調べ|確認|数え|挙が|監査|記録|ブック|データ|プレゼン(?:テーション)?"
    "|文章|だけ|のみ|たぐい|上が[っる]|読め|提示|一式|一体|件|個|つ|だっけ|なの|でしょう|あんの"
)
_BESIDE_EN = (
    "the system|the repository|decks?|any idea|like|if|they|it"
    "|all|any|every|everything|each|per|by|only|just|total|in|of|on|under|below|inside|within|the|a|an|these"
    "|this|our|my|your|and|or|more|there|here|is|are|was|were|be|been|do|does|did|have|has|had|'ve|got|get|hold|held|holds"
    "|contain|contains|contained|keep|kept|store|stored|index|indexed|register|registered|upload|uploaded|exist|exists"
    "|sit|sits|put|into|somebody|we|i|you|me|us|please|can|could|would|tell|give|show|list|find|need|want|see|know|report"
    "|record|records|audit|purposes?|for|from|what|what's|which|who|how|many|much|one|ones|altogether|overall|currently"
    r"|now|today|right|so|far|also|extensions?|formats?|r"
)
_SAID_BESIDE = re.compile(  # what such questions may say beside a folder
    "|".join(
        (
            *(each.words for each in FAMILIES),
            *_KINDS.values(),
            _PAPER,
            *_INTENTS.values(),
            *(_FOLDER, _FILE, _BESIDE_JA, rf"\b(?:{_BESIDE_EN})\b"),
        )
    ),
    re.IGNORECASE,
)
_OF_FILES = re.compile("|".join((*(each.words for each in FAMILIES), *_KINDS.values(), _PAPER, _FILE)), re.IGNORECASE)
_BY_DATE = frozenset({_Kind.NEWEST, _Kind.OLDEST})
_Row = Mapping[str, Any]
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.年]?(0[1-9]|1[0-2])[-_.月]?(0[1-9]|[12]\d|3[01])(?!\d)")
_TEXTS = {
    "files": {"ja": "ファイル", "en": "files"},
    "count": {"ja": "{scope}{noun}: {count} 件", "en": "{scope}{noun}: {count}"},
    "of_all": {"ja": "（全 {count} 件のうち）", "en": " (of {count} files)"},
    "unread": {"ja": "。読み取れなかったもの {count} 件", "en": ". Not readable: {count}"},
    "folders": {"ja": "フォルダー別の件数: {counts}", "en": "By folder: {counts}"},
    "formats": {"ja": "形式別の件数: {counts}", "en": "By format: {counts}"},
    "folder_count": {"ja": "{scope}フォルダー: {count} 個", "en": "{scope}folders: {count}"},
    "folder": {"ja": "{name}（{count} 件）", "en": "{name} ({count})"},
    "pages": {"ja": "{count} ページ", "en": "{pages}"},
    "changed": {"ja": "更新 {date}", "en": "changed {date}"},
    "named": {"ja": "名前の日付 {date}", "en": "dated {date} in its name"},
    "more": {"ja": "ほか {count} 件", "en": "{count} more"},
    "opening": {"ja": "登録されているファイルから:", "en": "From the files that are indexed:"},
    _Kind.NEWEST: {"ja": "{noun} {count} 件のうち、新しい順:", "en": "{noun}, {count} in all, the newest first:"},
    _Kind.OLDEST: {"ja": "{noun} {count} 件のうち、古い順:", "en": "{noun}, {count} in all, the oldest first:"},
}


@dataclass(frozen=True)
class InventoryAsked:
    """What a question asks of the files.

    Attributes:
        kind: Their number, their names, or the newest or oldest.
        text: The question.
        of_folders: Whether folders are asked for.
    """

    kind: _Kind
    text: str
    of_folders: bool = False

    @classmethod
    def of(cls, question: str) -> Self | None:
        """What a question asks, as far as its words tell; None where it asks for anything else."""
        text = " ".join(unicodedata.normalize("NFKC", question[: _READ_CHARS + 1]).split())
        of_folders = _OF_FOLDERS.search(text) is not None
        if len(text) > _READ_CHARS or _OTHERWISE.search(text) or not (of_folders or _OF_FILES.search(text)):
            return None
        kinds = [kind for kind, pattern in _INTENTS.items() if re.search(pattern, text, re.IGNORECASE)]
        return cls(kinds[0], text, of_folders) if kinds else cls(_Kind.LIST, text, of_folders) if of_folders else None


def _chosen(text: str, rows: Sequence[_Row]) -> tuple[list[_Row], str]:
    """The files of the formats and kinds that a text names, or all, and what it calls them."""
    families = [each for each in FAMILIES if each.named_in(text)]
    formats = {found for each in families for found in each.formats}
    kinds = [f"{words}|{kind}" for kind, words in _KINDS.items() if re.search(words, text, re.IGNORECASE)]
    kinds += [re.escape(found.group()) for found in re.finditer(_PAPER, text, re.IGNORECASE)]
    chosen = [
        row
        for row in rows
        if (not formats or row["format"] in formats)
        and (not kinds or any(re.search(words, _name(row), re.IGNORECASE) for words in kinds))
    ]
    said = [re.search(words, text, re.IGNORECASE) for words in (*(each.words for each in families), *kinds)]
    return chosen, " ".join(dict.fromkeys(found.group() for found in said if found))


def _name(row: _Row) -> str:
    return unicodedata.normalize("NFKC", f"{row['document_id']} {row['title']}").replace("_", " ")


def inventory(
    asked: InventoryAsked,
    language: str,
    stored: StoredTables,
    passages_of: PassagesOf,
    allowed: Collection[str] | None,
) -> Facts | None:
    """What a question asks of the files of a collection.

    Args:
        asked: The question.
        language: Of what is said: `ja` or `en`.
        stored: The stored tables.
        passages_of: Their passages.
        allowed: Documents that filters let through; None for all.

    Returns:
        None where the question names something that is no folder, or a kind of document that no name tells of.

    Raises:
        StoreError: A published file is gone.
    """
    every = sorted(stored.read(DOCUMENTS, _COLUMNS).to_pylist(), key=lambda row: row["document_id"])
    called = documents_called(
        asked.text, [row for row in every if allowed is None or row["document_id"] in allowed], _SAID_BESIDE
    )
    if called is None:
        return None
    folder, below, rest = called
    rows, noun = _chosen(rest, below)
    if not rows and (not below or not any(each.named_in(rest) for each in FAMILIES)):
        return None
    head, items = _told(asked, plain_name(folder), noun, rows, len(below), language)
    examples = [row["document_id"] for row in (*rows, *below) if row["status"] == "parsed"][:CITED]
    writer = FactWriter(passages_of({*(document for _, document in items[:_LISTED]), *examples}, ()), _CHARS)
    if not writer.tell(head, examples):
        return None
    more = _text("more", language)
    writer.room -= len(more) + _MORE_CHARS
    fit = takewhile(lambda item: writer.tell(item[0], [item[1]]) or writer.tell(item[0], examples[:1]), items[:_LISTED])
    left = len(items) - sum(1 for _ in fit)
    writer.room += len(more) + _MORE_CHARS
    if left:
        writer.tell(more.format(count=left), examples[:1])
    return Facts(tuple(writer.sentences), tuple(writer.sources), _text("opening", language))


def _told(
    asked: InventoryAsked, folder: str, noun: str, rows: Sequence[_Row], count: int, language: str
) -> tuple[str, list[tuple[str, str]]]:
    """What is said first, and what after it, each with a document that shows it.

    Args:
        asked: The question.
        folder: The folder that it names.
        noun: What it calls the files; may be empty.
        rows: The files that it asks for.
        count: How many files are below the folder.
        language: Of what is said.
    """
    scope = f"{folder}: " if folder else ""
    parts = documents_in_folders({row["document_id"]: row for row in rows})
    folders = sorted(((plain_name(name), held) for name, held in parts.items()), key=lambda pair: -len(pair[1]))
    if asked.of_folders:
        head = _text("folder_count", language).format(scope=scope, count=len(folders))
        named = _text("folder", language)
        return head, [(named.format(name=name, count=len(held)), next(iter(held))) for name, held in folders]
    noun = noun or _text("files", language)
    if asked.kind in _BY_DATE:
        head = scope + _text(asked.kind, language).format(noun=noun, count=len(rows))
        wanted = _WANTED.search(asked.text)
        return head, _by_date(rows, language, newest=asked.kind is _Kind.NEWEST)[: int(wanted[1]) if wanted else _DATED]
    head = _text("count", language).format(scope=scope, noun=noun, count=len(rows))
    if len(rows) < count:
        head += _text("of_all", language).format(count=count)
    if unread := sum(row["status"] == "failed" for row in rows):
        head += _text("unread", language).format(count=unread)
    if asked.kind is _Kind.LIST:
        return head, [(_file(row, language), row["document_id"]) for row in rows]
    formats = Counter(row["format"] for row in rows).most_common()
    counts = {"formats": formats, "folders": [(name, len(held)) for name, held in folders]}
    items = [
        (_text(what, language).format(counts=_counts(parts, language)), rows[0]["document_id"])
        for what, parts in counts.items()
        if len(parts) > 1
    ]
    return head, items


def _counts(parts: Sequence[tuple[str, int]], language: str) -> str:
    said = [f"{name} {count}" for name, count in parts[:_COUNTED]] + ["…"] * (len(parts) > _COUNTED)
    return ("、" if language == "ja" else ", ").join(said)


def _by_date(rows: Sequence[_Row], language: str, *, newest: bool) -> list[tuple[str, str]]:
    """Files by the date in their names, where all have one, else by their last change, without those of none."""
    in_names = {row["document_id"]: _DATE.findall(PurePath(row["document_id"]).name) for row in rows}
    named = all(in_names.values())
    dates = {
        row["document_id"]: "-".join(in_names[row["document_id"]][-1])
        if named
        else row["modified_at"].astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
        if row["modified_at"] is not None
        else ""
        for row in rows
    }
    dated = sorted((row for row in rows if dates[row["document_id"]]), key=lambda row: dates[row["document_id"]])
    stated = _text("named" if named else "changed", language)
    return [
        (_file(row, language, stated.format(date=dates[row["document_id"]])), row["document_id"])
        for row in (reversed(dated) if newest else dated)
    ]


def _file(row: _Row, language: str, stated: str = "") -> str:
    """A file, with its pages, and what else is stated of it."""
    pages = row["page_count"] or 0
    facts = [_text("pages", language).format(count=pages, pages=counted(pages, "page"))] * (pages > 1) + [stated]
    said = ("、" if language == "ja" else ", ").join(filter(None, facts))
    name = plain_name(row["document_id"], _PATH_CHARS)
    return f"{name}（{said}）" if said and language == "ja" else f"{name} ({said})" if said else name


def _text(name: str, language: str) -> str:
    texts = _TEXTS[name]
    return texts.get(language, texts["en"])
