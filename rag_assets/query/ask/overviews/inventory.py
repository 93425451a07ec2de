"""What files a collection holds, where a question asks for that alone: how many, which ones, the newest, its folders,
and which could not be read.

「PDFは何件ありますか」, "List the spreadsheets in the folder design", "Which is the newest report?": no passage says
it, the table of documents does, and that of failures what could not be read. A question that says anything but a kind
of file and a folder is none of these, as is 「申請に必要な書類は何件」.

What stays out: what documents are about (`rag_assets.query.ask.overviews.overview`), and by which words a question asks
for failures (`rag_assets.query.ask.overviews.reading_failures`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum, auto
from itertools import takewhile
from pathlib import PurePath
from typing import Any, Self

from rag_assets.contracts.causes import DocumentStatus, FailureCause
from rag_assets.contracts.formats import EXTENSIONS, FAMILIES
from rag_assets.contracts.tables import DOCUMENTS, PAGES, PARSE_FAILURES
from rag_assets.query.ask.answers import AnswerParts
from rag_assets.query.ask.facts import CITED, FactWriter, PassagesOf, counts_of, joined, plain_name
from rag_assets.query.ask.overviews.overview import overview
from rag_assets.query.ask.overviews.reading_failures import BESIDE, FailuresAsked, cause_name
from rag_assets.query.ask.overviews.scope import Scope, child_folders, documents_called
from rag_assets.query.filters import Filters
from rag_assets.query.stored import StoredTables
from rag_assets.text.plain import counted
from rag_assets.text.scripts import HIRAGANA, KANJI, KATAKANA

_READ_CHARS = 200  # a longer question says more
_CHARS = 1100  # of an answer
_LISTED = 20  # files or folders that are named
_DATED = 3  # of the newest or oldest
_PATH_CHARS = 120
_MORE_CHARS = 20
_PARTLY_CHARS = 400  # for files of which a part could not be read
_COUNTED = 12  # folders or formats, with how many files each has
_COLUMNS = ("document_id", "folder", "format", "status", "title", "page_count", "modified_at", "language")
_FAILURE_COLUMNS = ("document_id", "page_number", "cause")
_PAGES_NAMED = 5  # of those of a file that could not be read

_FOLDER = "フォルダー?|ディレクトリー?|(?:sub)?folders?|(?:sub)?director(?:y|ies)"
_FILE = "ファイル|文書|資料|書類|ドキュメント|帳票類|files?|documents?|docs"
_OF_PAPERS = "設計|仕様|定義|手順|説明|報告|計画|企画|提案|見積|契約|要件"
_PAPER = f"[{KANJI}{KATAKANA}A-Za-z0-9]{{0,12}}?(?:{_OF_PAPERS})書"
_KINDS = {
    "議事録": "議事録|(?<![a-z])(?:meeting )?minutes(?![a-z])",
    "設計書": "(?<![a-z])design documents?(?![a-z])",
    "仕様書": "(?<![a-z])spec(?:ification)?s?(?: sheets?)?(?![a-z])",
    "要件定義書": "(?<![a-z])requirements? (?:definitions?|documents?)(?![a-z])",
    "説明書": "マニュアル|(?<![a-z])(?:user )?manuals?(?![a-z])",
    "手順書": "(?<![a-z])procedures?(?![a-z])",
    "報告書": "レポート|(?<![a-z])reports?(?![a-z])",
    "規程": "規程類?|規定類?|(?<![a-z])regulations?(?![a-z])",
    "ガイド": "ガイド(?:ライン|ブック)?|(?<![a-z])guid(?:es?|elines?)(?![a-z])",
    "提案書": "(?<![a-z])proposals?(?![a-z])",
    "計画書": "(?<![a-z])plans?(?![a-z])",
    "見積書": "(?<![a-z])quotations?(?![a-z])",
    "契約書": "(?<![a-z])contracts?(?![a-z])",
    "リリースノート": "リリースノート|(?<![a-z])release notes(?![a-z])",
}
"""What kinds of documents are called, beside 設計書 and other papers; what their names hold is one of it."""


KINDS_NAMED = "|".join((*_KINDS.values(), *_KINDS, _PAPER))
"""What a question calls a kind of documents."""


class _Kind(StrEnum):
    NEWEST = auto()
    OLDEST = auto()
    LIST = auto()
    COUNT = auto()
    FAILURES = auto()
    CHANGED = auto()


_MOST = "一番|いちばん|最も|もっとも"
_DONE = "(?:更新|変更|追加|作成|登録|保存|改訂|修正|保管|格納|収録|収納|所蔵|保有|アップロード|取り?込み)"
_IS_DONE = "(?:され(?:て|た)|して|した|が?あった|済み|$)"
_CHANGED_EN = "(?:changed|updated|added|modified)"
_ANY_FOLDER = "どんな|どのような|どういう|どういった|何という|いくつの|何個の"
_WHICH_KIND = (
    f"(?:どんな|どのような|どういう|どういった|どの|何の)(?=(?:{KINDS_NAMED})[がはを]?(?:あ[るりっ]|入っ|揃っ|置い))"
)
_INTENTS: Mapping[_Kind, str] = {
    _Kind.NEWEST: (
        f"最新(?!の?(?:版|バージョン))|(?:{_MOST})(?:日付[がの])?新し|新しい順|直近|最終(?:更新|変更)(?!日)"
        f"|(?:最近|さいきん|最後)[にで]?(?={_DONE})"
        rf"|\b(?:newest|latest|most recent(?:ly)?|last {_CHANGED_EN}|{_CHANGED_EN} (?:last|most recently|recently))\b"
    ),
    _Kind.OLDEST: rf"最古|(?:{_MOST})(?:日付[がの])?古|古い順|長いこと|手つかず|\b(?:oldest|least recently)\b",
    _Kind.LIST: (
        r"一覧表?|リスト(?:アップ|化)?|目録|列挙|挙げ|並べ|ならべ|名前|ファイル名|どれとどれ|一通り|ひと通り|ひととおり"
        rf"|\b(?:list|enumerate|names? of|name (?:all|the))\b|^(?:please )?show\b|^which\b|{_WHICH_KIND}"
    ),
    _Kind.COUNT: (
        "何(?:件|個|点|本|つ|冊|通|ファイル|文書|資料|フォルダー?)|なん(?:こ|けん|個|件|ファイル)|なんぼ|いくつ|どんだけ"
        "|どれ(?:くらい|ぐらい|だけ)|どの(?:くらい|ぐらい)|(?:件|個|本|点|冊|総|合計)数|の数|数(?:は|を|$)"
        r"|\b(?:how many|(?:total )?(?:number|count) of|(?:file |document )?counts?|more \w+(?: \w+)? or more)\b"
    ),
}
_OTHERWISE = re.compile(  # what an overview tells, or a passage, or nothing here
    "種類|テーマ|内容|概要|要約|まとめて|説明(?!書)|何につい|何の|目的|中身|(?:拡張子|形式)(?!別|ごと)"
    f"|(?:どんな|どのような|どういう|どういった)(?!{_FOLDER})(?!.*(?:一覧|リスト))"
    r"|\b(?:about|summar\w*|overview|kinds?|types?|topics?|themes?|contents?|describe\w*|explain\w*)\b"
    # what may or must be done with files
    "|まで(?!の)|でき[るまな]|られ(?!て)|可能|必要|べき|なければ|[るう]には|方法|やり方"
    "|いりま|要[るり]|され(?![てた])|場合"
    r"|\b(?:can (?:i|we|be)|must|should|may|needs?(?! (?:a|the) list)|have to|required?|allowed)\b"
    r"|\b(?:word counts?|many slides)\b"
    r"|\bfor\b(?! the record\b)|\bdo(?:es)? (?:the|this|a) (?!folder)\w+ (?!folder|have|hold|contain)"
    # what is left out
    r"|以外|除[いくけ]|[でに]は?ない|じゃない"
    r"|\b(?:not|except|without|other than|exclud\w*)\b|n't\b",
    re.IGNORECASE,
)
_HIRAGANA = re.compile(f"[{HIRAGANA}]")
_SEVERAL_SAID = re.compile(r"[?。!？！\n]\s*\S")
_OF_FOLDERS = re.compile(
    f"(?:{_ANY_FOLDER}|サブ)(?:{_FOLDER})|(?:{_FOLDER})(?:は|が|って|を|、)?(?:全部で?)?(?:何[個つが]|いくつ|どれ|どんな)"
    rf"|(?:{_FOLDER})(?:の?名前?)?の?(?:一覧|リスト|構成|階層)|(?:{_FOLDER})の?数|\b(?:sub)?(?:folders|directories)\b",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"(?<![\d.])(\d{1,2}) ?(?:件|個|つ|点|本|冊|files?\b|documents?\b|newest|latest|oldest)", re.IGNORECASE
)
_IS_HELD = re.compile(r"ファイル|フォルダ|あ[るりっん]|登録|入っ|\b(?:files?|documents?|there|folder)\b", re.IGNORECASE)
_BESIDE_JA = (
    f"このシステム|{_WANTED.pattern}|{_DONE}(?:日時?[がの]?|{_IS_DONE}|(?=の|ファイル|文書|資料))"
    "|(?:拡張子|ファイル形式|形式|フォーマット|フォルダー?)(?:別|ごと)|それぞれ|各|ずつ|ごと"
    "|全部で?|ぜんぶ|全て|すべて|全体|全件|合計|合わせて|だいたい|大体|およそ|現在|現時点|今(?![月年日週度回])|いま"
    "|件数|多い|少ない|日付|日時|順番?(?!序)|置[いか]|入[っれ]て|含まれて|残[っさ]|持って|配下|以下|直下"
    f"|(?<![{KANJI}])[下中内](?![{KANJI}{KATAKANA}])"
    "|ところ|もの|ほう|やつ|名前|上から|最初|分かれ|教え|お?知らせ|知り|見せ|見たい|出して|示[しさ]|表示して|報告して|集計して"
    "|作成(?:して|願|を)|お?願い|欲し|下さ|頂|確認して|数え|挙が|ブック|データ(?=$|[のをはが])"
    f"|[{KANJI}{KATAKANA}]{{1,6}}で使(?:います|う)(?:ので|から)"
    "|プレゼン(?:テーション)?|文章|上が[っる]|読め|提示|一式|一体|済み|類(?=の|は|を|$)|何(?=で|[?。]|$)"
)
_BESIDE_EN = (
    "in the system|the repository|the collection|decks?|any idea|like|if|they|it|keep|kept|i need"
    "|for the record|all|any|every|everything|per|each|by|only|just|total|in|of|on|under|below"
    "|inside|within|the|a|an|these|this|our|my|your|and|or|more|there|here|is|are|was|were|be|been|do|does|did|have|has"
    "|had|'ve|got|get|hold|held|holds|contain|contains|contained|stored|indexed|registered|uploaded|exists?|sits?|put"
    "|into|somebody|we|i|you|me|us|please|could|would|tell|give|show|list|see|know|from|what's|what|which|names?|it's"
    "|that's|there's|i'd|who|how|many|much|one|ones|altogether|overall|currently|now|today|right|so|far|also|recently|r"
    "|(?<=by )(?:extension|format)|(?<=per )(?:extension|format)"
)
_PERIOD = re.compile(
    r"(?P<today>今日|本日|きょう|\btoday\b)|(?P<yesterday>昨日|きのう|\byesterday\b)"
    r"|(?P<this_week>今週|\bthis week\b)|(?P<last_week>先週|\blast week\b)"
    r"|(?P<this_month>今月|\bthis month\b)|(?P<last_month>先月|\blast month\b)"
    r"|(?:過去|直近|ここ|この)(?P<days>\d{1,3})日(?:以内|間)?"
    r"|\b(?:in|within) the (?:last|past) (?P<days_en>\d{1,3}) days\b(?! of\b)",
    re.IGNORECASE,
)
_DONE_IN_IT = re.compile(  # behind a period
    r"(?:に|で|、|の?うちに|中に)?(?:更新|変更|改訂|編集|修正)(?:[がの]?あった|され|した|して)"
    r"|(?:'s)? (?:changed|updated|modified|edited)\b",
    re.IGNORECASE,
)
_DONE_BEFORE = re.compile(r"\b(?:changed|updated|modified|edited) $", re.IGNORECASE)
_NOT_CHANGED = re.compile("後|たら|まで")  # what is done with files once they are changed, or by when
_SAID_BESIDE = re.compile(  # what such questions may say beside a folder
    "|".join(
        (
            *(family.words for family in FAMILIES),
            *_KINDS.values(),
            _PAPER,
            *_INTENTS.values(),
            *(_FOLDER, _FILE, _BESIDE_JA, rf"\b(?:{_BESIDE_EN})\b"),
        )
    ),
    re.IGNORECASE,
)
_BESIDE_FAILURES = re.compile(f"{_SAID_BESIDE.pattern}|{BESIDE.pattern}", re.IGNORECASE)
_OF_FILES = re.compile(
    "|".join((*(family.words for family in FAMILIES), *_KINDS.values(), _PAPER, _FILE)), re.IGNORECASE
)
_FILE_NAME = re.compile(rf"[^\s「」『』\"“”、。?]+\.(?:{EXTENSIONS})(?![a-z0-9])", re.IGNORECASE)
_BY_DATE = frozenset({_Kind.NEWEST, _Kind.OLDEST})
_Row = Mapping[str, Any]
_DATES = (
    re.compile(r"(?<!\d)((?:19|20)\d\d)(\d\d)(\d\d)(?:\d{4}|\d{6})?(?!\d)"),
    re.compile(r"(?<!\d)((?:19|20)\d\d)[-_./年 ](\d\d?)[-_./月 ](\d\d?)(?!\d)"),
)
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
    "day": {"ja": "{start} UTC", "en": "{start} UTC"},
    "period": {"ja": "{start}〜{end} UTC", "en": "{start} to {end} UTC"},
    "changed_in": {"ja": "{period} に更新された{noun}", "en": "{noun} changed {period}"},
    "named": {"ja": "名前の日付 {date}", "en": "dated {date} in its name"},
    "not_read": {"ja": "読み取れませんでした", "en": "not readable"},
    "unread_files": {"ja": "読み取れなかった{noun}", "en": "{noun} that could not be read"},
    "partly_read": {"ja": "一部を読み取れなかった{noun}", "en": "{noun} of which a part could not be read"},
    "causes": {"ja": "（{causes}）", "en": " ({causes})"},
    "none": {"ja": "{scope}{noun}: なし（全 {count} 件のうち）", "en": "{scope}{noun}: none of {count}"},
    "by_cause": {"ja": "原因別の件数: {counts}", "en": "By cause: {counts}"},
    "pages_unread": {"ja": "{cause} — {pages}", "en": "{cause}: {pages}"},
    "page": {"ja": "{number} ページ目", "en": "page {number}"},
    "page_named": {"ja": "{number} ページ目（{name}）", "en": "page {number} ({name})"},
    "kept": {"ja": "いまは開けず、以前に読み取った内容のまま", "en": "cannot be opened now, kept as read before"},
    "more": {"ja": "ほか {count} 件", "en": "{count} more"},
    "opening": {"ja": "登録されているファイルから:", "en": "From the files that are indexed:"},
    _Kind.NEWEST: {"ja": "{noun} {count} 件のうち、新しい順:", "en": "{noun}, {count} in all, the newest first:"},
    _Kind.OLDEST: {"ja": "{noun} {count} 件のうち、古い順:", "en": "{noun}, {count} in all, the oldest first:"},
}


@dataclass(frozen=True)
class InventoryAsked:
    """What a question asks of the files."""

    kind: _Kind  # their number, their names, the newest or oldest, or those that could not be read
    text: str  # the question
    of_folders: bool = False  # whether folders are asked for

    @classmethod
    def of(cls, question: str) -> Self | None:
        """What a question asks, as far as its words tell; None where it asks for anything else, or several things."""
        text = unicodedata.normalize("NFKC", question.strip())
        if len(question) > _READ_CHARS or len(text) > _READ_CHARS or _SEVERAL_SAID.search(text):
            return None
        names_file = _FILE_NAME.search(text) is not None
        failures = FailuresAsked.of(_FILE_NAME.sub(" ", text), names_file=names_file)
        if failures is not None and (names_file or failures.of_things or _OF_FILES.search(text)):
            return cls(_Kind.FAILURES, text)
        if _change(text) is not None and _OF_FILES.search(text):
            return cls(_Kind.CHANGED, text)
        of_folders = _OF_FOLDERS.search(text) is not None
        kinds = [kind for kind, pattern in _INTENTS.items() if re.search(pattern, text, re.IGNORECASE)]
        date_kinds = _BY_DATE.intersection(kinds)
        if len(date_kinds) > 1 or (date_kinds and _Kind.COUNT in kinds) or not (of_folders or _OF_FILES.search(text)):
            return None
        return cls((kinds or [_Kind.LIST])[0], text, of_folders) if kinds or of_folders else None


@dataclass(frozen=True)
class _Chosen:
    """Files of one or several formats and kinds."""

    rows: Sequence[_Row]  # the files
    # what the question calls them, each with the files it means; empty for all files
    nouns: Mapping[str, Sequence[_Row]]
    is_of_kind: bool  # whether a kind is named, which only names of files tell


def _choice(text: str, question: str, folder: str, rows: Sequence[_Row]) -> _Chosen:
    """The files of the formats and kinds that a text names, or all.

    Args:
        text: The question without the folder that it names.
        question: The question.
        folder: The folder.
        rows: The files below it.
    """
    kinds = [(words, f"{words}|{kind}") for kind, words in _KINDS.items()]
    kinds += [(re.escape(word), re.escape(word)) for word in re.findall(_PAPER, text, re.IGNORECASE)]
    of_kind = {
        _wording(words, text, question): [row for row in rows if re.search(pattern, _name(row, folder), re.IGNORECASE)]
        for words, pattern in kinds
        if re.search(words, text, re.IGNORECASE)
    }
    of_format = {
        _wording(family.words, text, question): [row for row in rows if row["format"] in family.formats]
        for family in FAMILIES
        if family.named_in(text)
    }
    if not of_kind and not of_format:
        return _Chosen(rows, {}, is_of_kind=False)
    id_sets = [
        {row["document_id"] for group in part.values() for row in group} for part in (of_kind, of_format) if part
    ]
    chosen_rows = [row for row in rows if row["document_id"] in set.intersection(*id_sets)]
    nouns: dict[str, Sequence[_Row]] = {" ".join([*of_format, *of_kind]): chosen_rows}
    if not of_kind or not of_format:
        pairs = sorted((of_kind | of_format).items(), key=lambda pair: question.find(pair[0]))
        nouns = dict(pairs)
    return _Chosen(chosen_rows, nouns, is_of_kind=bool(of_kind))


def of_kind(kind: str, rows: Sequence[_Row]) -> list[_Row]:
    """The files whose names tell that they are of a kind, as a question calls it."""
    patterns = [
        f"{words}|{name}" for name, words in _KINDS.items() if re.fullmatch(f"{words}|{name}", kind, re.IGNORECASE)
    ]
    pattern = "|".join(patterns) or re.escape(kind)
    return [row for row in rows if re.search(pattern, _name(row, ""), re.IGNORECASE)]


def _wording(words: str, text: str, question: str) -> str:
    """What a text calls something, as it is written in the question."""
    match = re.search(words, text, re.IGNORECASE)
    place = question.casefold().find(match.group().casefold()) if match else -1
    return question[place : place + len(match.group())] if match and place >= 0 else ""


def _name(row: _Row, folder: str) -> str:
    """What a file is called: its path without the folder that is asked for, and its title."""
    path = "/".join(part for part in row["document_id"].split("/") if part != folder)
    return unicodedata.normalize("NFKC", f"{path} {row['title']}").replace("_", " ").casefold()


def inventory(
    asked: InventoryAsked,
    language: str,
    stored: StoredTables,
    passages_of: PassagesOf,
    allowed: Collection[str] | None,
    filters: Filters,
) -> AnswerParts | None:
    """What a question asks of the files of a collection.

    Args:
        asked: The question.
        language: Of what is said: `ja` or `en`.
        stored: The stored tables.
        passages_of: Their passages.
        allowed: Documents with passages that filters let through; None for all.
        filters: The filters, for those without.

    Returns:
        None where the question says anything else, names a kind of document that no name tells of, or a format that no
        file has without saying that files are meant; also where nothing could be read, or no file has a date.

    Raises:
        StoreError: A published file is gone.
    """
    every = stored.read(DOCUMENTS, _COLUMNS).to_pylist()
    every = [
        row
        for row in every
        if allowed is None
        or row["document_id"] in allowed
        or (row["status"] == DocumentStatus.FAILED and filters.let_through(row))
    ]
    if asked.kind is _Kind.FAILURES:
        return _failures(asked.text, every, language, stored, passages_of)
    is_changed = asked.kind is _Kind.CHANGED
    change = _change(asked.text) if is_changed else None
    text = change[1] if change is not None else asked.text
    named_part = documents_called(text, every, _SAID_BESIDE)
    if named_part is None:
        return None
    folder, below, rest = named_part
    if folder and not re.search(_FOLDER, asked.text, re.IGNORECASE) and _is_kind(folder):
        folder, below, rest = "", every, text  # documents of that kind are meant, wherever they are
    plain, which_count = re.subn(_WHICH_KIND, " ", rest)
    if _OTHERWISE.search(plain) or (which_count and not folder):
        return None
    asked = (
        asked if is_changed else replace(InventoryAsked.of(rest) or asked, text=asked.text)
    )  # as it is without the name of the folder
    if folder and not below:
        return _no_folder(folder, every, language, stored, passages_of)
    choice = _choice(rest, asked.text, folder, sorted(below, key=lambda row: row["document_id"]))
    rows = choice.rows
    if change is not None:
        return _changed(change[0], plain_name(folder), choice, language, passages_of)
    if not rows and (choice.is_of_kind or asked.kind is not _Kind.COUNT or not _IS_HELD.search(asked.text)):
        return None
    heads, items = _heads_and_items(asked, plain_name(folder), choice, len(below), language)
    if (asked.kind in _BY_DATE and not items) or not _examples(below):
        return None
    examples = _examples(rows)
    cited_documents = {document for _, document in items[:_LISTED] if document}
    cited_documents.update(*(documents for _, documents in heads))
    writer = FactWriter(passages_of({*cited_documents, *examples}, ()), _CHARS)
    for head, documents in heads:
        if not writer.tell(head, documents):
            writer.state(head)
    _tell_items(writer, items, language, examples)
    return AnswerParts(tuple(writer.sentences), tuple(writer.sources), _text("opening", language))


def _change(text: str) -> tuple[re.Match[str], str] | None:
    """The period in which a question says that files were changed, and the question without it; None for others."""
    if _NOT_CHANGED.search(text):
        return None
    for period in _PERIOD.finditer(text):
        before, after = text[: period.start()], text[period.end() :]
        if done := _DONE_IN_IT.match(after):
            return period, f"{before} {after[done.end() :]}"
        if done := _DONE_BEFORE.search(before):
            return period, f"{before[: done.start()]} {after}"
    return None


def _changed(
    period: re.Match[str], folder: str, choice: _Chosen, language: str, passages_of: PassagesOf
) -> AnswerParts | None:
    """The files last changed in the period that a question names, by UTC; None where there are none with a time."""
    dated = [row for row in choice.rows if row["modified_at"]]
    if not dated:
        return None
    start, end = _period(period, datetime.now(UTC))
    rows = [row for row in dated if start <= row["modified_at"] < end]
    noun, scope = " ".join(choice.nouns) or _text("files", language), f"{folder}: " if folder else ""
    first, last = (f"{day:%Y-%m-%d}" for day in (start, end - timedelta(days=1)))
    days = _text("period" if first != last else "day", language).format(start=first, end=last)
    noun = _text("changed_in", language).format(noun=noun, period=days)
    template = _text("count" if rows else "none", language)
    head = template.format(scope=scope, noun=noun, count=len(rows) or len(choice.rows))
    head += _text("of_all", language).format(count=len(choice.rows)) if rows else ""
    examples = _examples(rows or choice.rows)
    items = [
        (_file(row, language, _text("changed", language).format(date=f"{row['modified_at']:%Y-%m-%d %H:%M} UTC")), row)
        for row in sorted(rows, key=lambda row: row["modified_at"], reverse=True)
    ]
    documents = [row["document_id"] for _, row in items[:_LISTED]]
    writer = FactWriter(passages_of({*documents, *examples}, ()), _CHARS)
    if not writer.tell(head, examples):
        writer.state(head)
    _tell_items(writer, [(told, row["document_id"]) for told, row in items], language, examples)
    return AnswerParts(tuple(writer.sentences), tuple(writer.sources), _text("opening", language))


def _period(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    """The beginning of the first day of a period, and the end of its last one."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    tomorrow, week, month = today + timedelta(days=1), today - timedelta(days=today.weekday()), today.replace(day=1)
    if days := match["days"] or match["days_en"]:
        return today - timedelta(days=int(days) - 1), tomorrow
    return {
        "today": (today, tomorrow),
        "yesterday": (today - timedelta(days=1), today),
        "this_week": (week, tomorrow),
        "last_week": (week - timedelta(days=7), week),
        "this_month": (month, tomorrow),
        "last_month": ((month - timedelta(days=1)).replace(day=1), month),
    }[str(match.lastgroup)]


def _examples(rows: Sequence[_Row]) -> list[str]:
    """Documents that show that there are such files."""
    return [row["document_id"] for row in rows if row["status"] == "parsed"][:CITED]


def _no_folder(
    folder: str, every: Sequence[_Row], language: str, stored: StoredTables, passages_of: PassagesOf
) -> AnswerParts:
    """That there is no such folder, and which there are."""
    return overview(Scope("", (), missing=folder, folders=child_folders(every)), language, stored, passages_of)


def _tell_items(
    writer: FactWriter, items: Sequence[tuple[str, str]], language: str, examples: Sequence[str] = ()
) -> None:
    """Say as many items as there is room for, each with the document that shows it, and how many more there are."""
    hit_documents = {*writer.hits, *([""] if examples else [])}
    remark = _text("more", language)
    writer.room -= len(remark) + _MORE_CHARS

    def tell_item(item: tuple[str, str]) -> bool:
        text, document = item
        return (
            writer.tell(text, [document] if document else examples) if document in hit_documents else writer.state(text)
        )

    left = len(items) - sum(1 for _ in takewhile(tell_item, items[:_LISTED]))
    writer.room += len(remark) + _MORE_CHARS
    if left and not writer.tell(remark.format(count=left), examples[:1]):
        writer.state(remark.format(count=left))


def _failures(
    text: str, every: Sequence[_Row], language: str, stored: StoredTables, passages_of: PassagesOf
) -> AnswerParts | None:
    """Which files could not be read, whole or in part, and why; None where the question says anything else."""
    rest_text, named_documents = _files_named(text, every)
    question = FailuresAsked.of(rest_text, names_file=bool(named_documents))
    named_part = documents_called(question.rest, every, _BESIDE_FAILURES) if question is not None else None
    if question is None or named_part is None:
        return None
    folder, below, rest = named_part
    if _OTHERWISE.search(rest) or _HIRAGANA.search(_BESIDE_FAILURES.sub(" ", rest)):
        return None
    if folder and not below:
        return _no_folder(folder, every, language, stored, passages_of)
    choice = _choice(
        rest, text, folder, [row for row in below if not named_documents or row["document_id"] in named_documents]
    )
    rows = {row["document_id"]: row for row in choice.rows}
    failures: dict[str, list[_Row]] = {}
    for row in stored.read(PARSE_FAILURES, _FAILURE_COLUMNS, list(rows)).to_pylist():
        if not question.causes or row["cause"] in question.causes:
            failures.setdefault(row["document_id"], []).append(row)
    whole = {
        document: document_failures
        for document, document_failures in sorted(failures.items())
        if rows[document]["status"] == DocumentStatus.FAILED
    }
    partly = {
        document: document_failures for document, document_failures in sorted(failures.items()) if document not in whole
    }
    pages = stored.read(PAGES, ("document_id", "page_number", "page_name"), list(partly)).to_pylist()
    names = {(row["document_id"], row["page_number"]): row["page_name"] or "" for row in pages}
    noun, scope = " ".join(choice.nouns) or _text("files", language), f"{plain_name(folder)}: " if folder else ""
    causes = joined([cause_name(cause, language) for cause in FailureCause if cause in question.causes], language)
    left = min(_PARTLY_CHARS, _PATH_CHARS * 2 * len(partly))
    writer = FactWriter(passages_of(list(partly), ()), _CHARS - left)
    for key, group in (("unread_files", whole), ("partly_read", partly)):
        if (question.partly and group is whole) or (group is partly and not partly and not question.partly):
            continue
        head = _text(key, language).format(noun=noun)
        head += _text("causes", language).format(causes=causes) if causes else ""
        writer.room += left if group is partly else 0
        of_all = _text("of_all", language).format(count=len(rows)) if group else ""
        template = _text("count" if group else "none", language)
        writer.state(template.format(scope=scope, noun=head, count=len(group) or len(rows)) + of_all)
        counts = Counter(
            cause_name(document_failures[0]["cause"], language) for document_failures in group.values()
        ).most_common()
        if len(counts) > 1:
            writer.state(_text("by_cause", language).format(counts=counts_of(counts, language, len(counts))))
        items = [
            (
                _file(
                    {**rows[document], "status": ""}, language, _why(rows[document], document_failures, names, language)
                ),
                document,
            )
            for document, document_failures in group.items()
        ]
        _tell_items(writer, items, language)
    return AnswerParts(tuple(writer.sentences), tuple(writer.sources), _text("opening", language))


def _why(row: _Row, failures: Sequence[_Row], names: Mapping[tuple[str, int], str], language: str) -> str:
    """Why a file, or which part of it, could not be read."""
    if row["status"] == DocumentStatus.FAILED:
        whole = [failure for failure in failures if failure["page_number"] is None] or failures
        return joined(list(dict.fromkeys(cause_name(failure["cause"], language) for failure in whole)), language)
    pages: dict[str, list[str]] = {}
    for failure in failures:
        number = failure["page_number"]
        name = plain_name(names.get((row["document_id"], number), ""))
        page = _text("page_named" if name else "page", language).format(number=number, name=name)
        pages.setdefault(failure["cause"], []).extend([page] * (number is not None))
    reasons = []
    for cause, cause_pages in pages.items():
        if cause_pages:
            page_names = joined(cause_pages[:_PAGES_NAMED] + ["…"] * (len(cause_pages) > _PAGES_NAMED), language)
            reasons.append(_text("pages_unread", language).format(cause=cause_name(cause, language), pages=page_names))
        else:
            reasons.append(_text("kept", language) if cause == FailureCause.UNREADABLE else cause_name(cause, language))
    return joined(reasons, language)


def _files_named(text: str, rows: Sequence[_Row]) -> tuple[str, frozenset[str]]:
    """A text without the names of files that it gives with their extensions, and the files that are called so."""
    documents_of: dict[str, set[str]] = {}
    for row in rows:
        name = unicodedata.normalize("NFKC", PurePath(row["document_id"]).name).casefold()
        documents_of.setdefault(name, set()).add(row["document_id"])
    folded_text, named_documents = text.casefold(), set[str]()
    for name in sorted(documents_of, key=lambda name: (-len(name), name)):
        if _FILE_NAME.search(name) and name in folded_text:
            folded_text, named_documents = folded_text.replace(name, " "), named_documents | documents_of[name]
    return (folded_text if named_documents else text), frozenset(named_documents)


def _is_kind(folder: str) -> bool:
    return any(
        re.fullmatch(f"{words}|{kind}", folder, re.IGNORECASE) for kind, words in (*_KINDS.items(), ("", _PAPER))
    )


def _heads_and_items(
    question: InventoryAsked, folder: str, choice: _Chosen, count: int, language: str
) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
    """What is said first, each with documents that show it, and what after it, each with one.

    Args:
        question: The question.
        folder: The folder that it names.
        choice: The files that it asks for.
        count: How many files are below the folder.
        language: Of what is said.
    """
    scope, rows = f"{folder}: " if folder else "", choice.rows
    folders = _folders(rows, folder)
    match = _WANTED.search(question.text)
    most = (int(match[1]) if match else 0) or (_DATED if question.kind in _BY_DATE else len(rows))
    if question.of_folders:
        folder_template = _text("folder", language)
        read_documents = {row["document_id"] for row in rows if row["status"] == "parsed"}
        items = [
            (
                folder_template.format(name=name, count=len(documents)),
                next((document for document in documents if document in read_documents), documents[0]),
            )
            for name, documents in folders
        ]
        return [(_text("folder_count", language).format(scope=scope, count=len(folders)), _examples(rows))], items
    noun = " ".join(choice.nouns) or _text("files", language)
    if question.kind in _BY_DATE:
        head = scope + _text(question.kind, language).format(noun=noun, count=len(rows))
        return [(head, _examples(rows))], _by_date(rows, language, newest=question.kind is _Kind.NEWEST)[:most]
    template, of_all = _text("count", language), _text("of_all", language).format(count=count)
    heads = [
        (
            template.format(scope=scope, noun=noun, count=len(group)) + (of_all if len(group) < count else ""),
            _examples(group),
        )
        for noun, group in (choice.nouns or {noun: rows}).items()
    ]
    if unread := sum(row["status"] == "failed" for row in rows):
        text, documents = heads[-1]
        heads[-1] = text + _text("unread", language).format(count=unread), documents
    if question.kind is _Kind.LIST:
        return heads, [(_file(row, language), row["document_id"]) for row in rows][:most]
    formats = Counter(row["format"] for row in rows).most_common()
    counts = {"formats": formats, "folders": [(name, len(documents)) for name, documents in folders]}
    items = [
        (_text(key, language).format(counts=counts_of(parts, language, _COUNTED)), "")
        for key, parts in counts.items()
        if len(parts) > 1
    ]
    return heads, items


def _folders(rows: Sequence[_Row], folder: str) -> list[tuple[str, list[str]]]:
    """The folders right below one, or below the one that holds all files, with the files in each, most first."""
    paths = [(row["folder"].split("/"), row["document_id"]) for row in rows]
    depth = 0
    while paths and all(len(path) > depth for path, _ in paths) and len({path[depth] for path, _ in paths}) == 1:
        depth += 1
    documents_of: dict[str, list[str]] = {}
    for path, document in paths:
        below = next((at + 1 for at, part in enumerate(path) if plain_name(part) == folder), depth)
        if len(path) > below:
            documents_of.setdefault(plain_name(path[below]), []).append(document)
    return sorted(documents_of.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def _by_date(rows: Sequence[_Row], language: str, *, newest: bool) -> list[tuple[str, str]]:
    """Files by the latest date in their names, where all have one, else by their last change, without those of none."""
    in_names = {row["document_id"]: _date_in(PurePath(row["document_id"]).name) for row in rows}
    are_dates_named = all(in_names.values())
    dated_rows = [
        (date, row) for row in rows if (date := in_names[row["document_id"]] if are_dates_named else row["modified_at"])
    ]
    key, form = ("named", "%Y-%m-%d") if are_dates_named else ("changed", "%Y-%m-%d %H:%M UTC")
    return [
        (
            _file(row, language, _text(key, language).format(date=date.astimezone(UTC).strftime(form))),
            row["document_id"],
        )
        for date, row in sorted(dated_rows, key=lambda pair: (pair[0], pair[1]["document_id"]), reverse=newest)
    ]


def _date_in(name: str) -> datetime | None:
    """The latest date in a name."""
    dates = []
    for pattern in _DATES:
        for year, month, day in pattern.findall(unicodedata.normalize("NFKC", name)):
            with suppress(ValueError):  # no date, as 2024-02-30
                dates.append(datetime(int(year), int(month), int(day), tzinfo=UTC))
    return max(dates, default=None)


def _file(row: _Row, language: str, detail: str = "") -> str:
    """A file, with its pages, and what else is stated of it."""
    pages = row["page_count"] or 0
    facts = [_text("pages", language).format(count=pages, pages=counted(pages, "page"))] * (pages > 1) + [detail]
    facts += [_text("not_read", language)] * (row["status"] == "failed")
    details = joined([fact for fact in facts if fact], language)
    path = row["document_id"]
    if len(path) > _PATH_CHARS:
        path = f"{path[: _PATH_CHARS // 3]}…{path[-_PATH_CHARS * 2 // 3 :]}"
    name = plain_name(path, len(path))
    return f"{name}（{details}）" if details and language == "ja" else f"{name} ({details})" if details else name


def _text(name: str, language: str) -> str:
    return _TEXTS[name][language]
