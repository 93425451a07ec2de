"""Which documents a question about the whole means: a folder or format by its name, those that its words name, or all.

A part is meant where a question asks in general, and all else that it says is the name of a folder of two documents or
more, or what two documents or more that it calls 資料 or "documents" are called. One that quotes something asks for a
fact. Where all that is asked is "What is X?", the folder X is meant only if no passage explains X, and X is no common
word.

What stays out: which questions ask for the whole (`rag_assets.query.search.auto`), and what is said of the documents
(`rag_assets.query.ask.overviews.overview`).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from pathlib import PurePath
from posixpath import commonpath

import pyarrow.compute as pc

from rag_assets.contracts.formats import FAMILIES
from rag_assets.contracts.tables import CHUNKS, DOCUMENTS, FILE_SUMMARIES
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.query.stored import StoredTables
from rag_assets.text.folding import content_terms, content_words, held_share
from rag_assets.text.scripts import HIRAGANA, KANJI, KATAKANA

_READ_CHARS = 1000  # of a longer question the beginning is read
_LEAST_SHARE = 0.4  # of the weight of a question's words, from which documents are those it names
_LEAST_SUMMARY = 0.6  # where summaries tell it
_NEAR_BEST = 0.7  # of the share of the best, from which another document is named, too
_NEAR_BEST_SUMMARY = 0.8  # where summaries tell it
_ALL_SAID = 0.95  # from which names alone hold all that is said
_UNKNOWN = 0.5  # weight of a word that no document holds
_SURELY = 0.6  # of the weight of the words, from which they narrow what is meant by "all documents"
_BY_NAME = 0.9  # of the share with summaries, from which names alone tell which documents are meant
_MOST_NAMED = 0.8  # of the documents named, that such a folder must hold
_ALIKE = 0.7  # Dice coefficient of the documents named and those below a folder, from which all of it is meant
_FOLDERS = (
    re.compile(r"(?:フォルダー?|ディレクトリ)[「『\"'](?P<name>[^「」『』\"']{1,60})[」』\"']"),
    re.compile(
        r"[「『\"']?(?P<name>[^\s「」『』\"'、。はがをに]{1,60})[」』\"']?(?:という|の)?(?:フォルダー?|ディレクトリ)"
    ),
    re.compile(r"\b(?:folder|directory)\s+(?:named\s+|called\s+)?[\"'“]?(?P<name>[^\s\"'”?!,;]{1,60})", re.IGNORECASE),
    re.compile(r"(?<![^\s\"'“])(?P<name>[^\s\"'“”?!,;]{1,60})[\"'”]?\s+(?:folder|directory)\b", re.IGNORECASE),
)
_NO_NAME = re.compile(
    r"(?:この|その|あの|どの|各|サブ|全|全て|すべて|全部|主な|主要な|複数|the|this|that|which|what|each|every|all|my|our|your|are|is|in|of|a|and|about|for|contain|hold|have)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^\d+[_\-. ]+")
_GENERIC_FOLDER = re.compile(
    r"docs?|documents?|data|files?|folder|src|doc[xs]?|xlsx?|pdf|archive|資料|文書|ドキュメント|\d+", re.IGNORECASE
)
# words that say that the whole is asked about, not which
_ASKING = re.compile(
    r"(?:どんな|何の|どのような|どういう)(?:プロジェクト|システム|サービス|案件|製品)|業務(?=[にはっ])|資料群|文書群|設計書群|関連(?:する)?|関係(?:する)?|資料|文書|書類|ドキュメント(?!設計)|ファイル|コレクション|ナレッジベース|知識ベース|フォルダー?|ディレクトリ|一式|まわり|周り|全体|全般"
    r"|大量|要するに|仕組み|紹介|ひと通り|ざっくり|たくさん|いろいろ|大まか|簡単|簡潔|初めて|見る人|人向け|説明|主な|主に|主要|繰り返し|中心|テーマ|トピック|話題|題材|主題|論点|傾向|特徴|概要|概観|全体像|内訳|種類|要約"
    r"|一覧的?|内容|時間|読む|入って|登録|格納|収録|共通|教えて|大きく分け\w*|通して|見る|成って|扱わ?れ|挙げて|集めら?れ|出てくる|決めて|書[いか]れ?て|載って|まとめ"
    r"|\b(?:documents?|docs|files?|materials?|collection|corpus|folders?|director(?:y|ies)|knowledge\s?base|data\s?set|archive|library|themes?|topics?"
    r"|subjects?|trends?|patterns?|summar(?:y|i[sz]e|ies)|overview|outline|survey|main|major|key|common|central|recurring|top|overall|whole|entire|kinds?"
    r"|types?|sorts?|contents?|contain\w*|cover\w*|discuss\w*|stored|described?|give|short|brief|quick|tour|find|everything|indexed|here|together|general|across|throughout|tell|describe|explain|according)\b",
    re.IGNORECASE,
)
_KIND_OF_THING = "内容|資料|文書|書類|ドキュメント|システム|サービス|プロジェクト|製品|アプリ|ツール|もの"
# what a part may be asked by its name alone
_PART = re.compile(
    rf"(?:どんな|どういう|どのような)(?:{_KIND_OF_THING})|ざっくり|ざっと|中身|まとめて|要約|概略|全体像|揃って"
    r"|何の(?:話|資料|文書|書類|マニュアル|プロジェクト)|何に関する|\b(?:overview|summar(?:y|i[sz]e)|outline|about)\b",
    re.IGNORECASE,
)
# what a folder may be asked by the very name that it has
_PART_OF_FOLDER = re.compile(
    r"の概要|には?何が(?:書|載|入|含|あ)|(?:フォルダー?|ディレクトリ)(?:を|について|のこと)\S{0,6}(?:説明|紹介|教え)"
    r"|\bcontains?\b|\bin (?:the )?\S{1,60} folder\b",
    re.IGNORECASE,
)
# what it may be asked where its documents are said, too
_PART_TOGETHER = re.compile(
    r"何が?でき|って(?:何|なに)|何の(?:システム|製品|ため|説明)|何(?:が書|に?つい)|要するに|(?:資料|文書)を教えて"
    r"|\bwhat (?:is|are|can|do|does|kind)\b",
    re.IGNORECASE,
)
_PART_SAID = re.compile(
    r"どんな|どういう|どのような|何が?でき\w*|何の?|なに|ため|もの|ざっと|揃って|概略|中身|関する|製品|サービス|システム|アプリ|プロジェクト|設計書|仕様書|取扱説明書|説明書|マニュアル|議事録|報告書|ガイド|ベース|かぎり|限り"
    r"|\b(?:system|service|project|app|application|product|design|specifications?|specs?|manuals?|guides?|reports?|minutes)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[「『\"“]")
_NAMING = re.compile(f"[{KANJI}{KATAKANA}A-Za-z0-9]+")  # what may name something
_WORD_FOLDER = re.compile("フォルダー?|ディレクトリ")
_LEAST_NAMING = 2  # characters of a part of a name
_COUNT = re.compile(r"(?<!\d)\d{1,6} ?(?:本|件|冊|通|つ|個|枚|ファイル|名|人)")
_ASIDE = re.compile(r"\([^()]*\)|（[^（）]*）")
_TOGETHER = re.compile(
    r"資料|文書|書類|ドキュメント|設計書類|\b(?:documents|docs|files|materials)\b", re.IGNORECASE
)  # what is called by a name together
_EVERYTHING = re.compile(
    r"(?:この|これらの?|ここ[にの]\S{0,8}?)(?:資料|文書|書類|ドキュメント|フォルダ|コレクション|データ)|コレクション|資料群|文書群"
    r"|全(?:文書|資料)|(?:すべて|全て|全部)の?(?:資料|文書)|(?:資料|文書)全体|全体(?:として|で何|の(?:概要|要約|テーマ)|[、。?？]|$)"
    r"|(?:資料|文書|書類|ドキュメント)の種類|(?:どんな|どのような|どういう)(?:種類の?|プロジェクトの)(?:資料|文書|書類|ドキュメント)"
    r"|\beverything\b|\bin here\b"
    r"|\b(?:this|these|all|whole|entire)\s(?:\w+\s)?(?:collection|corpus|archive|library|documents|files|materials|folder)\b(?!\sof\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Scope:
    """Documents that a question is about."""

    name: str  # what they are named by; empty where all are meant
    rows: tuple[Mapping[str, str], ...]  # of each its `document_id`, `folder`, `format`, `status` and `title`, by id
    missing: str = ""  # name of a folder that is asked about and that there is not
    folders: tuple[str, ...] = ()  # the folders that there are, where one is missing


def scope_of(
    question: str,
    stored: StoredTables,
    allowed: Collection[str] | None,
    *,
    whole: bool,
) -> Scope | None:
    """The documents that a question about the whole, or about a part that it names, means.

    Args:
        question: As asked, with what it refers back to.
        stored: The stored tables.
        allowed: Documents that filters let through; None for all.
        whole: Whether its words ask for the whole. One that asks in general for what a folder is called, or documents
            together, and names nothing else, is meant, too.

    Returns:
        None where that is not asked, or where it names something that no documents, or, unless a folder is called so, a
        single one, are about; also where a folder is named that there is not, and that a passage tells of.

    Raises:
        StoreError: A published file is gone.
    """
    text = unicodedata.normalize("NFKC", question[:_READ_CHARS])[:_READ_CHARS]
    if not whole and not _asks_of_a_part(text):
        return None
    columns = ["document_id", "folder", "format", "status", "title"]
    rows = sorted(stored.read(DOCUMENTS, columns).to_pylist(), key=lambda row: row["document_id"])
    rows = [row for row in rows if allowed is None or row["document_id"] in allowed]
    if not whole:
        return _part(text, rows)
    name, rest = _folder_name(text)
    if name and (chosen_rows := _in_folder(name, rows)):
        return Scope(name, tuple(chosen_rows))
    family = next((family for family in FAMILIES if family.named_in(text)), None)
    of_format = [row for row in rows if family is not None and row["format"] in family.formats]
    if family is not None and of_format:
        rows, rest = of_format, re.sub(family.words, " ", rest, flags=re.IGNORECASE)
    words = _name_words(keywords(_ASKING.sub(" ", f"{name} {_ASIDE.sub(' ', rest)}")))
    if not words:
        return Scope("", tuple(rows)) if rows else None
    share, named_rows = _documents_by_name(words, rows, stored)
    if name and share < _SURELY:
        missing_folder = Scope("", (), missing=name, folders=child_folders(rows))
        return None if _is_told_of(name, stored, allowed) else missing_folder
    is_everything = bool(of_format or _EVERYTHING.search(text))
    if len(named_rows) < 2 or (is_everything and share < _SURELY):
        return Scope("", tuple(rows)) if is_everything and rows else None
    return _scope(_whole_folder(named_rows, rows), rows, words)


def documents_called(
    text: str, rows: Sequence[Mapping[str, str]], beside: re.Pattern[str]
) -> tuple[str, Sequence[Mapping[str, str]], str] | None:
    """The documents below the folder that a text names, or all where it names nothing.

    Args:
        text: The text, in NFKC.
        rows: The documents, as in `Scope`.
        beside: What else may be said.

    Returns:
        The folder, or nothing; the documents, none where there is no such folder; and the text without the folder. None
        where it says anything else.
    """
    folder, rest = _folder_called(text, rows)
    name = _WORD_FOLDER.split(_folder_name(text)[0])[0].removesuffix("の")
    if not folder and _NAMING.search(beside.sub(" ", name)):
        folder, rest = name, text.replace(name, " ")
    left = [name.casefold() for name in _NAMING.findall(beside.sub(" ", rest))]
    if not left:
        return folder, _in_folder(folder, rows) if folder else rows, rest
    parts = {part: _folded(part) for row in rows for part in row["folder"].split("/")}
    named_parts = {part for part, plain in parts.items() if all(_name_pattern(name).search(plain) for name in left)}
    chosen_rows = [row for row in rows if not named_parts.isdisjoint(row["folder"].split("/"))]
    if folder or not chosen_rows or max(map(len, left)) < _LEAST_NAMING:
        return None
    return _shared_name(chosen_rows, rows, _name_words(" ".join(left))), chosen_rows, rest


def _asks_of_a_part(text: str) -> bool:
    """Whether a question asks in general, as it may of a part of a collection; nothing that it quotes is one."""
    if _QUOTED.search(text):
        return False
    together = _PART_TOGETHER.search(text) and _TOGETHER.search(text)
    return bool(_PART.search(text) or _PART_OF_FOLDER.search(text) or together)


def _part(text: str, rows: Sequence[Mapping[str, str]]) -> Scope | None:
    """The documents of a folder whose name is all that a question names, or that are called so together."""
    folder, rest = _folder_called(text, rows)
    words = _name_words(keywords(_PART_SAID.sub(" ", _ASKING.sub(" ", rest))))
    if folder:
        inside = () if words else tuple(_in_folder(folder, rows))
        return Scope(folder, inside) if len(inside) > 1 else None
    of_folder = _PART_OF_FOLDER.search(text) and not _PART.search(text)
    if not words or (of_folder and not _TOGETHER.search(text)):
        return None
    chosen_rows = _in_named_folders(words, rows)
    if not chosen_rows and _TOGETHER.search(text):
        likely = [row for row in rows if _holds(_folded(f"{row['document_id']} {row['title']}"), words)]
        chosen_rows = [
            row for row, terms in zip(likely, _terms_of_names(likely).values(), strict=True) if _holds(terms, words)
        ]
    return _scope(chosen_rows, rows, words) if len(chosen_rows) > 1 else None


def _folder_called(text: str, rows: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """The folder whose name stands in a text as a word of its own, the longest, and the text without it."""
    folded_text = text.casefold()
    parts = {part for row in rows for part in row["folder"].split("/")}
    name, rest = _folder_name(text)
    if name in parts:
        return name, rest
    likely = [part for part in parts if (plain := _folded(part)) and plain in folded_text and content_words(plain)]
    named_parts = [
        part
        for part in likely
        if not _GENERIC_FOLDER.fullmatch(part) and _name_pattern(_folded(part)).search(folded_text)
    ]
    longest = max(named_parts, key=lambda part: (len(part), part), default="")
    whole = unicodedata.normalize("NFKC", longest).casefold()  # with the number before it
    if longest and whole in folded_text:
        return longest, folded_text.replace(whole, " ")
    return longest, _name_pattern(_folded(longest)).sub(" ", folded_text) if longest else text


def _name_pattern(name: str) -> re.Pattern[str]:
    """A folded name as a word of its own: an English one may stand beside Japanese."""
    inside = "a-z0-9_-" if name.isascii() else f"a-z0-9{KANJI}{KATAKANA}"
    return re.compile(rf"(?<![{inside}]){re.escape(name)}(?![{inside}])")


def _name_words(text: str) -> list[tuple[str, ...]]:
    """The words of a text that may name something: no counts, no stems of one character."""
    words = dict.fromkeys(content_words(_COUNT.sub(" ", text)))
    return [word for word in words if any(len(term) > 1 or term.isdecimal() for term in word)]


def _scope(
    chosen_rows: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, str]], words: Sequence[tuple[str, ...]]
) -> Scope:
    return Scope(_shared_name(chosen_rows, rows, words) if len(chosen_rows) < len(rows) else "", tuple(chosen_rows))


def documents_in_folders(documents: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Mapping[str, str]]]:
    """Documents by the folder in which they part first; those above these stand under the folder that they are in."""
    paths = {document: tuple(row["folder"].split("/")) for document, row in documents.items()}
    depth = 0
    while all(len(path) > depth for path in paths.values()) and len({path[depth] for path in paths.values()}) == 1:
        depth += 1
    children: dict[str, dict[str, Mapping[str, str]]] = {}
    for document, path in paths.items():
        children.setdefault(path[depth] if len(path) > depth else path[-1], {})[document] = documents[document]
    return children


def first_folders(documents: Mapping[str, Mapping[str, str]]) -> list[tuple[str, int]]:
    """The folders that documents part into first, with how many are in each, the largest first."""
    counts = ((name, len(members)) for name, members in documents_in_folders(documents).items())
    return sorted(counts, key=lambda pair: (-pair[1], pair[0]))


def child_folders(rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Names of the folders that documents, as in `Scope`, part into first, the largest first."""
    return tuple(name for name, _ in first_folders({row["document_id"]: row for row in rows}))


def _folder_name(text: str) -> tuple[str, str]:
    """The folder that a question names, or nothing, and the question without it."""
    for pattern in _FOLDERS:
        for match in pattern.finditer(text):
            name = match["name"].strip("/.")
            if name and not _NO_NAME.fullmatch(name) and not name.endswith(("な", "ある", "この", "その")):
                return name, text.replace(match.group(), " ")
    return "", text


def _is_told_of(name: str, stored: StoredTables, documents: Collection[str] | None) -> bool:
    """Whether a passage calls a folder by a name."""
    escaped_name, word = re.escape(name), "(?:folder|directory|フォルダー?|ディレクトリ)"
    pattern = re.compile(
        rf"(?:(?<![\w-])|(?<=[{HIRAGANA}]))[\"'“「『]?{escaped_name}[\"'”」』]?\s?(?:という)?{word}"
        rf"|{word}(?: named| called)?\s?[\"'“「『:：]?\s?{escaped_name}(?![\w-])",
        re.IGNORECASE,
    )
    holds = pc.match_substring_regex(pc.field("text"), word, ignore_case=True)
    texts = stored.read(CHUNKS, ["text"], documents, holds).column("text").to_pylist()
    return any(pattern.search(unicodedata.normalize("NFKC", text)) for text in texts)


def _folded(name: str) -> str:
    return _NUMBERED.sub("", unicodedata.normalize("NFKC", name).casefold())


def _in_folder(name: str, rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The documents below a folder, the highest of that name; below all whose names hold the name where none has it."""
    for folded_name in dict.fromkeys((_folded(name), _folded(name.rpartition("の")[2]))):
        paths = {
            folder: f"/{'/'.join(_folded(part) for part in folder.split('/'))}/"
            for folder in {r["folder"] for r in rows}
        }
        exact = f"/{folded_name}/"
        depths = {folder: path.count("/", 0, path.find(exact)) for folder, path in paths.items() if exact in path}
        if folded_name and depths:
            least = min(depths.values())
            return [row for row in rows if depths.get(row["folder"]) == least]
        if folded_name and (chosen_rows := [row for row in rows if folded_name in paths[row["folder"]]]):
            return chosen_rows
    return []


def _documents_by_name(
    words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]], stored: StoredTables
) -> tuple[float, list[Mapping[str, str]]]:
    """The documents that words name, and how much of them: a folder, by names of documents, or by summaries, too."""
    names = _terms_of_names(rows)
    by_name = _with_most(words, rows, names, _NEAR_BEST)
    if by_name[0] >= _ALL_SAID:
        return by_name
    if in_folders := _in_folder_said(words, rows):
        return 1.0, in_folders
    summaries = stored.read(FILE_SUMMARIES, ["document_id", "text"]).to_pylist()
    summary_terms = {row["document_id"]: content_terms(row["text"]) for row in summaries}
    all_terms = {document: terms | summary_terms.get(document, frozenset()) for document, terms in names.items()}
    by_summary = _with_most(words, rows, all_terms, _NEAR_BEST_SUMMARY)
    if by_summary[0] < _LEAST_SUMMARY:
        return by_name
    within = {row["document_id"] for row in by_summary[1]} <= {row["document_id"] for row in by_name[1]}
    return by_name if within or by_name[0] >= _BY_NAME * by_summary[0] else by_summary


def _in_folder_said(words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The documents below folders all of whose name is said; of the longest such name."""
    question_terms = frozenset(chain.from_iterable(words))
    parts = {part for row in rows for part in row["folder"].split("/")}
    names = {part: frozenset(chain.from_iterable(content_words(_folded(part)))) for part in parts}
    most = max((len(terms) for terms in names.values() if terms <= question_terms), default=0)
    named_parts = {part for part, terms in names.items() if terms and terms <= question_terms and len(terms) == most}
    return [row for row in rows if not named_parts.isdisjoint(row["folder"].split("/"))]


def _in_named_folders(words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The documents below folders whose names hold all that is said."""
    parts = {part for row in rows for part in row["folder"].split("/") if not _GENERIC_FOLDER.fullmatch(part)}
    named_parts = {part for part in parts if _holds(content_terms(_folded(part)), words)}
    return [row for row in rows if not named_parts.isdisjoint(row["folder"].split("/"))]


def _holds(terms: Collection[str], words: Sequence[tuple[str, ...]]) -> bool:
    """Whether terms, or a folded text, hold every term of some words."""
    return all(term in terms for word in words for term in word)


def _whole_folder(named_rows: list[Mapping[str, str]], rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """All documents below a folder, where those named are most of it, and it holds most of those named."""
    inside: Counter[str] = Counter()
    for row in rows:
        inside.update(_above(row["folder"]))
    counts: Counter[str] = Counter()
    for row in named_rows:
        counts.update(_above(row["folder"]))
    alike = {folder: 2 * count / (inside[folder] + len(named_rows)) for folder, count in counts.items()}
    folder = max(sorted(alike), key=lambda name: (alike[name], len(name)))
    holds_most = alike[folder] >= _ALIKE and counts[folder] >= _MOST_NAMED * len(named_rows)
    return [row for row in rows if folder in _above(row["folder"])] if holds_most else named_rows


def _above(folder: str) -> list[str]:
    """A folder and those above it."""
    return list(accumulate(folder.split("/"), lambda path, part: f"{path}/{part}"))


def _with_most(
    words: Sequence[tuple[str, ...]],
    rows: Sequence[Mapping[str, str]],
    terms: Mapping[str, frozenset[str]],
    near_best: float,
) -> tuple[float, list[Mapping[str, str]]]:
    """The best share, by weight, of some words that a document holds, and the documents that hold nearly as much.

    What a compound begins with tells it from others: of 会員管理 a document must hold 会員, and some of those found.
    """
    shares = {
        document: [held_share([word], document_terms) if word[0] in document_terms else 0.0 for word in words]
        for document, document_terms in terms.items()
    }
    counts = [sum(share[place] >= _NEAR_BEST for share in shares.values()) for place in range(len(words))]
    unknown = _UNKNOWN * math.log(1 + len(rows))
    weights = [math.log((2 + len(rows)) / (1 + count)) if count else unknown for count in counts]
    total = sum(weights) or 1.0
    scores = {
        document: sum(w * s for w, s in zip(weights, share, strict=True)) / total for document, share in shares.items()
    }
    best = max(scores.values(), default=0.0)
    named_rows = [row for row in rows if scores[row["document_id"]] >= max(_LEAST_SHARE, near_best * best)]
    row_terms = frozenset(chain.from_iterable(terms[row["document_id"]] for row in named_rows))
    return best, named_rows if all(word[0] in row_terms for word in words if len(word) > 1) else []


def _terms_of_names(rows: Sequence[Mapping[str, str]]) -> dict[str, frozenset[str]]:
    """Terms of the path and title of each document; those of a folder are read once."""
    terms = cache(content_terms)
    return {
        row["document_id"]: terms(row["folder"]) | terms(PurePath(row["document_id"]).name) | terms(row["title"])
        for row in rows
    }


def _shared_name(
    chosen_rows: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, str]], words: Sequence[tuple[str, ...]]
) -> str:
    """The name of the folder that some documents are all of, a telling one of those above it; empty for none."""
    folder = commonpath([row["folder"] for row in chosen_rows])
    inside = sum(f"{row['folder']}/".startswith(f"{folder}/") for row in rows)
    if not folder or inside != len(chosen_rows):
        return ""
    parts = folder.split("/")[::-1]
    question_terms = frozenset(chain.from_iterable(words))
    named_parts = (part for part in parts if not question_terms.isdisjoint(content_terms(_folded(part))))
    telling_parts = (part for part in parts if not _GENERIC_FOLDER.fullmatch(part))
    return next(named_parts, "") or next(telling_parts, parts[0])
