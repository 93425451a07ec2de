"""Which documents a question about the whole means: a folder or format by its name, those that its words name, or all.

What stays out: which questions ask for the whole (`rag_assets.query.search.auto`), and what is said of the documents
(`rag_assets.query.ask.overview`).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import PurePath
from posixpath import commonpath

from rag_assets.contracts.formats import FAMILIES
from rag_assets.contracts.tables import DOCUMENTS, FILE_SUMMARIES
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.query.stored import StoredTables
from rag_assets.text.content_words import content_terms, content_words, held_share

_LEAST_SHARE = 0.25  # of the weight of a question's words, from which documents are those it names
_NEAR_BEST = 0.7  # of the share of the best, from which another document is named, too
_UNKNOWN = 0.5  # weight of a word that no document holds
_FOLDER_SHARE = 2 / 3  # of the documents named, and of a folder, from which all of the folder is meant
_FOLDERS = (
    re.compile(r"(?:フォルダー?|ディレクトリ)[「『\"'](?P<name>[^「」『』\"']{1,60})[」』\"']"),
    re.compile(
        r"[「『\"']?(?P<name>[^\s「」『』\"'、。はがをに]{1,60})[」』\"']?(?:という|の)?(?:フォルダー?|ディレクトリ)"
    ),
    re.compile(r"\b(?:folder|directory)\s+(?:named\s+|called\s+)?[\"'“]?(?P<name>[^\s\"'”?!,;]+)", re.IGNORECASE),
    re.compile(r"[\"'“]?(?P<name>[^\s\"'“”?!,;]+)[\"'”]?\s+(?:folder|directory)\b", re.IGNORECASE),
)
_NO_NAME = re.compile(
    r"(?:この|その|あの|どの|各|全|全て|すべて|主な|主要な|複数|the|this|that|which|what|each|every|all|my|our|your|are|is|in|of|a|and|about|for|contain|hold|have)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^\d+[_\-. ]+")
# words that say that the whole is asked about, not which
_ASKING = re.compile(
    r"資料群|文書群|設計書群|関連(?:する)?|関係(?:する)?|資料|文書|書類|ドキュメント(?!設計)|ファイル|コレクション|ナレッジベース|知識ベース|フォルダー?|ディレクトリ|一式|まわり|周り|全体|全般"
    r"|大量|要するに|仕組み|ざっくり|たくさん|いろいろ|主な|主要|繰り返し|中心|テーマ|トピック|話題|題材|主題|論点|傾向|特徴|概要|概観|全体像|内訳|種類|要約|一覧|内容|時間|読む|入って|登録|格納|収録|共通|教えて|大きく分け\w*|通して|見る|成って"
    r"|\b(?:documents?|docs|files?|materials?|collection|corpus|folders?|director(?:y|ies)|knowledge\s?base|data\s?set|archive|library|themes?|topics?"
    r"|subjects?|trends?|patterns?|summar(?:y|i[sz]e|ies)|overview|outline|survey|main|major|key|common|central|recurring|top|overall|whole|entire|kinds?"
    r"|types?|sorts?|contents?|contain\w*|cover\w*|discuss\w*|stored|give|short|brief|indexed|together|general|across|throughout)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Scope:
    """Documents that a question is about.

    Attributes:
        name: What they are named by; empty where all are meant.
        rows: Of each its `document_id`, `folder`, `format`, `status` and `title`, by id.
        asked: Words of the question beside those that ask for an overview.
        missing: Name of a folder that is asked about and that there is not.
        folders: The folders that there are, where one is missing.
    """

    name: str
    rows: tuple[Mapping[str, str], ...]
    asked: str = ""
    missing: str = ""
    folders: tuple[str, ...] = ()


def scope_of(question: str, stored: StoredTables, allowed: Collection[str] | None) -> Scope | None:
    """The documents that a question about the whole means.

    Args:
        question: As asked, with what it refers back to.
        stored: The stored tables.
        allowed: Documents that filters let through; None for all.

    Returns:
        None where it names something that no documents, or a single one, are about.

    Raises:
        StoreError: A published file is gone.
    """
    columns = ["document_id", "folder", "format", "status", "title"]
    rows = sorted(stored.read(DOCUMENTS, columns).to_pylist(), key=lambda row: row["document_id"])
    rows = [row for row in rows if allowed is None or row["document_id"] in allowed]
    text = unicodedata.normalize("NFKC", question)
    name, rest = _folder_name(text)
    if name:
        chosen = _in_folder(name, rows)
        if not chosen:
            return Scope("", (), missing=name, folders=_child_folders(rows))
        return Scope(name, tuple(chosen))
    family = next((each for each in FAMILIES if each.named_in(text)), None)
    of_format = [row for row in rows if family is not None and row["format"] in family.formats]
    if family is not None and of_format:
        rows, rest = of_format, re.sub(family.words, " ", rest, flags=re.IGNORECASE)
    asked = keywords(_ASKING.sub(" ", rest))
    words = list(dict.fromkeys(content_words(asked)))
    if not words:
        return Scope("", tuple(rows), "") if rows else None
    named = _documents_by_name(words, rows, stored)
    if len(named) < 2 and not of_format:
        return None
    chosen = _most_of_folder(named, rows) if len(named) > 1 else rows
    return Scope(_shared_name(chosen, rows) if len(chosen) < len(rows) else "", tuple(chosen), asked)


def documents_in_folders(documents: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Mapping[str, str]]]:
    """Documents by the folder in which they part first; those that are in none of these stand under nothing."""
    paths = {each: tuple(row["folder"].split("/")) for each, row in documents.items()}
    depth = 0
    while all(len(path) > depth for path in paths.values()) and len({path[depth] for path in paths.values()}) == 1:
        depth += 1
    children: dict[str, dict[str, Mapping[str, str]]] = {}
    for each, path in paths.items():
        children.setdefault(path[depth] if len(path) > depth else path[-1], {})[each] = documents[each]
    return children


def first_folders(documents: Mapping[str, Mapping[str, str]]) -> list[tuple[str, int]]:
    """The folders that documents part into first, with how many are in each, the largest first."""
    counted = ((name, len(held)) for name, held in documents_in_folders(documents).items())
    return sorted(counted, key=lambda pair: (-pair[1], pair[0]))


def _folder_name(text: str) -> tuple[str, str]:
    """The folder that a question names, or nothing, and the question without it."""
    for pattern in _FOLDERS:
        for found in pattern.finditer(text):
            name = found["name"].strip("/.")
            if name and not _NO_NAME.fullmatch(name) and not name.endswith(("な", "ある", "この", "その")):
                return name, text.replace(found.group(), " ")
    return "", text


def _folded(name: str) -> str:
    return _NUMBERED.sub("", unicodedata.normalize("NFKC", name).casefold())


def _in_folder(name: str, rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The documents below a folder; below all whose names hold the name where none is named so."""
    for wanted in dict.fromkeys((_folded(name), _folded(name.rpartition("の")[2]))):
        paths = {
            folder: f"/{'/'.join(_folded(part) for part in folder.split('/'))}/"
            for folder in {r["folder"] for r in rows}
        }
        for inside in (f"/{wanted}/", wanted):
            chosen = [row for row in rows if inside in paths[row["folder"]]]
            if wanted and chosen:
                return chosen
    return []


def _child_folders(rows: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    return tuple(name for name, _ in first_folders({row["document_id"]: row for row in rows}))


def _documents_by_name(
    words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]], stored: StoredTables
) -> list[Mapping[str, str]]:
    """The documents whose names hold most of some words; or else of a folder named; or else by summaries, too."""
    names = _terms_of_names(rows)
    if not (named := _with_most(words, rows, names) or _in_folder_said(words, rows) or _in_named_folders(words, rows)):
        read = stored.read(FILE_SUMMARIES, ["document_id", "text"]).to_pylist()
        said = {row["document_id"]: content_terms(row["text"]) for row in read}
        both = {each: held | said.get(each, frozenset()) for each, held in names.items()}
        named = _with_most(words, rows, both)
    return named


def _in_folder_said(words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The documents below folders all of whose name is said; of the longest such name."""
    said = frozenset(chain.from_iterable(words))
    parts = {part for row in rows for part in row["folder"].split("/")}
    names = {part: frozenset(chain.from_iterable(content_words(_folded(part)))) for part in parts}
    most = max((len(terms) for terms in names.values() if terms <= said), default=0)
    meant = {part for part, terms in names.items() if terms and terms <= said and len(terms) == most}
    return [row for row in rows if not meant.isdisjoint(row["folder"].split("/"))]


def _in_named_folders(words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The documents below folders whose names hold all that is said."""
    said = frozenset(chain.from_iterable(words))
    meant = {
        part
        for part in {part for row in rows for part in row["folder"].split("/")}
        if said <= content_terms(_folded(part))
    }
    return [row for row in rows if not meant.isdisjoint(row["folder"].split("/"))]


def _most_of_folder(named: list[Mapping[str, str]], rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """All documents of a folder, where those named are most of it, and in it most of those named."""
    inside = Counter(row["folder"] for row in rows)
    folder, count = Counter(row["folder"] for row in named).most_common(1)[0]
    if count >= max(2, _FOLDER_SHARE * len(named), _FOLDER_SHARE * inside[folder]):
        return [row for row in rows if row["folder"] == folder]
    return named


def _with_most(
    words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]], terms: Mapping[str, frozenset[str]]
) -> list[Mapping[str, str]]:
    shares = {document: [held_share([word], held) for word in words] for document, held in terms.items()}
    counts = [sum(share[place] >= _NEAR_BEST for share in shares.values()) for place in range(len(words))]
    unknown = _UNKNOWN * math.log(1 + len(rows))
    weights = [math.log((2 + len(rows)) / (1 + count)) if count else unknown for count in counts]
    total = sum(weights) or 1.0
    scores = {each: sum(w * s for w, s in zip(weights, share, strict=True)) / total for each, share in shares.items()}
    best = max(scores.values(), default=0.0)
    return [row for row in rows if scores[row["document_id"]] >= max(_LEAST_SHARE, _NEAR_BEST * best)]


def _terms_of_names(rows: Sequence[Mapping[str, str]]) -> dict[str, frozenset[str]]:
    """Terms of the path and title of each document; those of a folder are read once."""
    terms = cache(content_terms)
    return {
        row["document_id"]: terms(row["folder"]) | terms(PurePath(row["document_id"]).name) | terms(row["title"])
        for row in rows
    }


def _shared_name(chosen: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, str]]) -> str:
    """The folder that some documents are all of; empty where there is none."""
    folder = commonpath([row["folder"] for row in chosen])
    inside = sum(f"{row['folder']}/".startswith(f"{folder}/") for row in rows)
    return folder.rpartition("/")[2] if folder and inside == len(chosen) else ""
