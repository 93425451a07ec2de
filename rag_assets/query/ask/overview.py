"""What documents are about as a whole, from facts alone: their kinds and how many, their themes, and what they say.

```
question ──► scope: a folder or format by its name, documents by the words they share with it, or all   (scope_of)
scope ─────► counts by format, kind and folder ──► groups of documents ──► what they say          (overview)
```

Documents are told of by folder; where all are in one, by theme: a word that names something and stands in many of them,
each next one chosen for the documents that those before leave out; a few documents one by one. What they say comes from
summaries and answered questions, the whole sentences with most of the words that many of the group share and few others
first. Each is found again in a passage. What is counted cites some of the documents that it counts.

What stays out: which questions ask for it (`rag_assets.query.search.auto`).
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from pathlib import PurePath
from posixpath import commonpath

from rag_assets.contracts.formats import FAMILIES
from rag_assets.contracts.tables import DOCUMENT_FACETS, DOCUMENTS, FILE_SUMMARIES, PAGE_SUMMARIES, SYNTHETIC_QA
from rag_assets.enrich.facets.taxonomy import load_taxonomy
from rag_assets.enrich.knowledge.extraction import readable_terms
from rag_assets.query.ask.answers import Sentence, SentenceCitation, Source
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.ask.statements import cut
from rag_assets.query.results import Hit
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.query.stored import StoredTables
from rag_assets.text.content_words import content_terms, content_words, held_share
from rag_assets.text.language import split_sentences
from rag_assets.text.plain import counted, one_line
from rag_assets.text.scripts import KATAKANA_AND_MARKS

PassagesOf = Callable[[Collection[str], Collection[str]], Sequence[Hit]]
"""The first passages of documents, and all of others."""

_CHARS = 1150  # of an overview
_GROUPS = 8  # of documents that are told of
_FEW_DOCUMENTS = 5  # told one by one
_READ = 600  # documents whose words are read, at most
_PAGES_OF = 120  # documents whose pages are read, too, at most
_STATEMENT_CHARS = 110
_LEAST_CHARS, _MOST_CHARS = 12, 300  # of what may be told
_COUNTED = 8  # formats, folders or kinds that are named
_CITED = 3  # documents that a count cites
_NAMES_CHARS = 90  # of the names of documents of a group
_STATEMENTS = 6  # of all groups together, but one of each
_LEAST_TERMS = 2  # of what may be told
_TRIED = 3  # statements of a group that are looked for in passages
_LEAST_CLASSIFIED = 0.5  # share of documents whose kind is known, from which kinds are named
_LEAST_KIND = 0.04  # share of documents from which a kind is named
_LEAST_SHARE = 0.25  # of the weight of a question's words, from which documents are those it names
_NEAR_BEST = 0.7  # of the share of the best, from which another document is named, too
_UNKNOWN = 0.5  # weight of a word that no document holds
_SAID = 0.25  # weight of a document that a theme before tells of
_INSTRUCTION = 0.4  # weight of what tells how to fill in a form, and of a note
_LIST = 1.5  # for what stands in a list or overview of documents
_PURPOSE_WEIGHT = 1.5  # for what says what a document or system is for
_ASKED = 0.5  # weight of the words of the question
_NAME, _PLAIN, _INFLECTED = 1.3, 0.35, 0.1  # weight of an English word: a name, any other, and a verb or adverb
_SHORT, _PAIR = 0.4, 2  # weight of a word of two ideographs, which has many uses
_PART = " / "  # between the parts of a summary
_IS_LIST = re.compile(r"一覧|概要|概説|はじめに|readme|index|overview|summary", re.IGNORECASE)
_ENDED = re.compile(r"(?<![\d.])[。．.!！]$")
_NO_PROSE = re.compile(
    r"[{}<>=|\\]|\d(?:\D{1,6}\d){4}|^[\W\d]*$|(?:[^\s、]{1,12}、){4}"
)  # data, markup, lists of headings
_NO_TERM = re.compile(r"\d|^(?:ID|No|NO|DB|OK|NG)$|^本.$|[_.]")
_PURPOSE = re.compile(
    r"本(?:書|資料|文書|システム|機能|ガイド|規程)|目的|概要|(?:を|について)(?:示|説明|定義|規定|記述)"
    r"|\b(?:this (?:document|guide|paper|report|manual|system|project)|purpose|aims?|introduc\w+|provides?)\b",
    re.IGNORECASE,
)
_INSTRUCTS = re.compile(
    r"^\W*※|^[（(]?注|(?:記[入載述]|選択|削除|入力)(?:する|して(?:ください|下さい))[。.]?"
    r"|\b(?:fill in|enter the|please)\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[\W_]+")
_NOT_NOUN = re.compile(r"[a-z]+(?:ed|ing|ly)")
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
    r"|主な|主要|繰り返し|中心|テーマ|トピック|話題|題材|主題|論点|傾向|特徴|概要|概観|全体像|内訳|種類|要約|一覧|内容|時間|読む|入って|登録|格納|収録|共通|教えて|大きく分け\w*|通して|見る|成って"
    r"|\b(?:documents?|docs|files?|materials?|collection|corpus|folders?|director(?:y|ies)|knowledge\s?base|data\s?set|archive|library|themes?|topics?"
    r"|subjects?|trends?|patterns?|summar(?:y|i[sz]e|ies)|overview|outline|survey|main|major|key|common|central|recurring|top|overall|whole|entire|kinds?"
    r"|types?|sorts?|contents?|contain\w*|cover\w*|discuss\w*|stored|give|short|brief|indexed|together|general|across|throughout)\b",
    re.IGNORECASE,
)
_TEXTS = {
    "opening": {"ja": "資料の概要:", "en": "Overview of the documents:"},
    "no_folder": {
        "ja": "「{name}」というフォルダーはありません。あるフォルダー: {known}",
        "en": "There is no folder “{name}”. There are: {known}",
    },
    "count": {
        "ja": "{scope}文書 {count} 件を数えた結果 — 形式: {formats}",
        "en": "{scope}{documents}, counted. Formats: {formats}",
    },
    "folders": {"ja": "。フォルダー: {folders}", "en": ". Folders: {folders}"},
    "unread": {"ja": "。読み取れなかった文書 {count} 件", "en": ". Not readable: {count}"},
    "kinds": {"ja": "文書の種類（推定、件数）: {kinds}", "en": "Kinds of documents (as classified, counted): {kinds}"},
    "one": {"ja": "{label}: {said}", "en": "{label}: {said}"},
    "group": {"ja": "{label}（{count} 件）: {said}", "en": "{label} ({count}): {said}"},
}


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


@dataclass(frozen=True)
class Overview:
    """What documents are about.

    Attributes:
        sentences: What is said, each with its citations.
        sources: The passages cited.
        text: What is said instead where there is nothing to tell of; else empty.
    """

    sentences: tuple[Sentence, ...] = ()
    sources: tuple[Source, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class _Statement:
    """A sentence of a document, and its words."""

    document_id: str
    text: str
    terms: frozenset[str]


@dataclass(frozen=True)
class _Group:
    """Documents that are told of together: a name, how many, those of them that are named, and what they say."""

    label: str
    count: int
    named: Sequence[str]
    said: Sequence[_Statement]


def opening(language: str) -> str:
    """What an overview begins with."""
    return _text("opening", language)


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
    chosen = named if len(named) > 1 else rows
    return Scope(_shared_name(chosen, rows) if len(chosen) < len(rows) else "", tuple(chosen), asked)


def overview(scope: Scope, language: str, stored: StoredTables, passages_of: PassagesOf) -> Overview:
    """What the documents of a scope are about.

    Args:
        scope: The documents.
        language: Of what is said beside quotes: `ja` or `en`.
        stored: The stored tables.
        passages_of: Their passages.

    Raises:
        StoreError: A published file is gone.
    """
    if scope.missing:
        known = _joined(scope.folders[:_COUNTED], language)
        return Overview(text=_text("no_folder", language).format(name=scope.missing, known=known or "–"))
    documents = {row["document_id"]: row for row in scope.rows if row["status"] == "parsed"}
    if not documents:
        return Overview()
    words = _Words.of(_statements(_spread(documents), stored))
    few = len(documents) <= _FEW_DOCUMENTS
    folders = [] if few else _folder_groups(documents)
    each_by_itself = [(PurePath(each).name, frozenset({each})) for each in documents]
    groups = [
        _Group(
            label,
            len(held),
            _some_names(held) if few or folders else (),
            words.telling(held, scope.asked, one_each=not few, term="" if few or folders else label),
        )
        for label, held in (each_by_itself if few else folders or words.themes())
    ]
    kinds = _kinds(documents, stored, language)
    examples = {next(iter(held)): None for _, held in kinds[:_CITED]} or dict.fromkeys(list(documents)[:_CITED])
    named = {*examples, *(each for group in groups for each in group.named)}
    writer = _Writer(language, passages_of(named, {each.document_id for group in groups for each in group.said}))
    counts = _text("count", language).format(
        scope=f"{scope.name}: " if scope.name else "",
        count=len(documents),
        documents=counted(len(documents), "document"),
        formats=_counts(Counter(row["format"] for row in documents.values()).most_common(), language),
    )
    if unread := len(scope.rows) - len(documents):
        counts += _text("unread", language).format(count=unread)
    if len(parts := _folders(documents)) > 1:
        counts += _text("folders", language).format(folders=_counts(parts, language))
    writer.tell(counts, list(examples))
    if kinds:
        listed = _counts([(kind, len(held)) for kind, held in kinds], language)
        writer.tell(_text("kinds", language).format(kinds=listed), list(examples))
    for group in groups:
        writer.tell_group(group, max(1, _STATEMENTS // len(groups)))
    return Overview(tuple(writer.sentences), tuple(writer.sources))


class _Writer:
    """Puts sentences together, each with passages that hold what it says, up to the length of an overview."""

    def __init__(self, language: str, hits: Sequence[Hit]) -> None:
        self.sentences: list[Sentence] = []
        self.sources: list[Source] = []
        self._language = language
        self._hits: dict[str, list[tuple[Hit, str]]] = {}
        for hit in hits:
            self._hits.setdefault(hit.document_id, []).append((hit, _squeezed(hit.text)))
        self._room = _CHARS
        self._told: set[str] = set()

    def tell(self, text: str, documents: Sequence[str]) -> None:
        """Say what was counted, with the first words of some of the documents that were."""
        citations = [self._beginning(each) for each in documents]
        self._add(Sentence(text, tuple(dict.fromkeys(each for each in citations if each is not None))))

    def tell_group(self, group: _Group, statements: int) -> None:
        """Say what a group of documents is about: the names of some, and statements that stand in passages."""
        cited = [self._beginning(each) for each in group.named]
        quotes: list[str] = []
        for each in group.said:
            if len(quotes) == statements:
                break
            quote = cut(each.text, _STATEMENT_CHARS)
            squeezed = _squeezed(quote)
            hit = next((hit for hit, held in self._hits.get(each.document_id, ()) if squeezed in held), None)
            if hit is not None and squeezed not in self._told and stands_in(quote, hit.text):
                self._told.add(squeezed)
                cited.append(self._citation(hit, quote))
                quotes.append(quote if quote == each.text else f"{quote}…")
        names = _joined(
            [PurePath(each).stem for each in group.named if PurePath(each).name != group.label], self._language
        )
        names += "…" if names and len(group.named) < group.count else ""
        parts = [part for part in (names, " ".join(quotes)) if part]
        citations = tuple(dict.fromkeys(each for each in cited if each is not None))
        if citations:
            template = _text("group" if group.count > 1 else "one", self._language)
            said = template.format(label=group.label, count=group.count, said=" — ".join(parts)).rstrip(": ")
            self._add(Sentence(said, citations))

    def _beginning(self, document: str) -> SentenceCitation | None:
        """The first words of a document."""
        for hit, _ in self._hits.get(document, ()):
            for line in map(one_line, hit.text.splitlines()):
                if content_words(line):
                    return self._citation(hit, cut(line, _STATEMENT_CHARS))
        return None

    def _citation(self, hit: Hit, quote: str) -> SentenceCitation:
        number = next((each.number for each in self.sources if each.chunk_id == hit.chunk_id), 0)
        if not number:
            number = len(self.sources) + 1
            self.sources.append(Source.of(number, hit, hit.text))
        return SentenceCitation(number, quote, stands_in(quote, hit.text))

    def _add(self, sentence: Sentence) -> None:
        length = len(sentence.text) + 4 * len(sentence.citations) + 3
        if length <= self._room:
            self._room -= length
            self.sentences.append(sentence)


def _squeezed(text: str) -> str:
    return _BETWEEN.sub("", unicodedata.normalize("NFKC", text))


def _text(name: str, language: str) -> str:
    texts = _TEXTS[name]
    return texts.get(language, texts["en"])


def _joined(parts: Sequence[str], language: str) -> str:
    return ("、" if language == "ja" else ", ").join(parts)


def _counts(counted: Sequence[tuple[str, int]], language: str) -> str:
    parts = [f"{name} {count}" for name, count in counted[:_COUNTED]]
    if len(counted) > _COUNTED:
        parts.append("…")
    return _joined(parts, language)


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
    return tuple(name for name, _ in _folders({row["document_id"]: row for row in rows}))


def _folders(documents: Mapping[str, Mapping[str, str]]) -> list[tuple[str, int]]:
    """The folders that documents part into first, with how many are in each, the largest first."""
    counted = ((name, len(held)) for name, held in _in_folders(documents).items())
    return sorted(counted, key=lambda pair: (-pair[1], pair[0]))


def _documents_by_name(
    words: Sequence[tuple[str, ...]], rows: Sequence[Mapping[str, str]], stored: StoredTables
) -> list[Mapping[str, str]]:
    """The documents whose names hold most of some words; or else of a folder named; or else by summaries, too."""
    names = _terms_of_names(rows)
    if not (named := _with_most(words, rows, names) or _in_folder_said(words, rows)):
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


@cache
def _labels() -> dict[str, dict[str, tuple[int, dict[str, str]]]]:
    """Labels of shipped facet values."""
    return {
        facet.name: {
            value.name: (place, {language: value.label(language) for language in ("ja", "en")})
            for place, value in enumerate(facet.values)
        }
        for name in ("papers", "office")
        for facet in load_taxonomy(name).facets
    }


def _kinds(documents: Mapping[str, object], stored: StoredTables, language: str) -> list[tuple[str, list[str]]]:
    """The kinds of documents, the most frequent first, with the documents of each."""
    held: dict[str, list[str]] = {}
    for row in stored.read(DOCUMENT_FACETS, ["document_id", "facet", "value"]).to_pylist():
        if row["facet"] == "document_type" and row["document_id"] in documents:
            _, labels = _labels().get("document_type", {}).get(row["value"], (0, {}))
            held.setdefault(labels.get(language, row["value"].replace("_", " ")), []).append(row["document_id"])
    common = [(kind, sorted(each)) for kind, each in held.items() if len(each) >= _LEAST_KIND * len(documents)]
    if len({document for _, each in common for document in each}) < _LEAST_CLASSIFIED * len(documents):
        return []
    return sorted(common, key=lambda pair: (-len(pair[1]), pair[0]))


def _spread(documents: Mapping[str, object]) -> list[str]:
    """Documents whose words are read: all, of very many so many evenly spread ones."""
    every = list(documents)
    step = max(1.0, len(every) / _READ)
    return [every[int(place * step)] for place in range(min(len(every), _READ))]


def _statements(documents: Sequence[str], stored: StoredTables) -> list[_Statement]:
    """What documents say, by their summaries, the answers of their questions and, of few documents, their pages."""
    texts: dict[str, dict[str, None]] = {each: {} for each in documents}
    some = documents if len(documents) < _READ else None
    for row in stored.read(FILE_SUMMARIES, ["document_id", "text"], some).to_pylist():
        parts = row["text"].split(_PART)
        texts.get(row["document_id"], {}).update(dict.fromkeys(parts[1:] or parts))
    for row in stored.read(SYNTHETIC_QA, ["document_id", "answer"], some).to_pylist():
        texts.get(row["document_id"], {})[one_line(row["answer"])] = None
    if len(documents) <= _PAGES_OF:
        for row in stored.read(PAGE_SUMMARIES, ["document_id", "text"], documents).to_pylist():
            texts.get(row["document_id"], {}).update(dict.fromkeys(row["text"].split(_PART)[2:]))
    found = (
        _Statement(document, text, _terms(text))
        for document in sorted(texts)
        for text in dict.fromkeys(part for whole in texts[document] for part in split_sentences(whole))
        if _LEAST_CHARS <= len(text) <= _MOST_CHARS and _ENDED.search(text) and not _NO_PROSE.search(text)
    )
    return [each for each in found if len(each.terms) >= _LEAST_TERMS]


def _terms(text: str) -> frozenset[str]:
    """Words of a text that may name what it is about; no codes. A word that only begins it is no name."""
    found = (term for term in readable_terms(text) if not _NO_TERM.search(term))
    return frozenset(term.lower() if text.startswith(term) and term.istitle() else term for term in found)


@dataclass(frozen=True)
class _Words:
    """The words of all documents read.

    Attributes:
        statements: By document, in order.
        holders: The documents of each word, by folded word.
        spelled: How each is spelled most.
    """

    statements: Mapping[str, tuple[_Statement, ...]]
    holders: Mapping[str, frozenset[str]]
    spelled: Mapping[str, str]

    @classmethod
    def of(cls, statements: Sequence[_Statement]) -> "_Words":
        """The words of statements."""
        by_document: dict[str, list[_Statement]] = {}
        holders: dict[str, set[str]] = {}
        spellings: dict[str, Counter[str]] = {}
        for each in statements:
            by_document.setdefault(each.document_id, []).append(each)
            for term in each.terms:
                holders.setdefault(term.casefold(), set()).add(each.document_id)
                spellings.setdefault(term.casefold(), Counter())[term] += 1
        return cls(
            {document: tuple(said) for document, said in by_document.items()},
            {term: frozenset(held) for term, held in holders.items()},
            {term: min(found, key=lambda each: (-found[each], each)) for term, found in spellings.items()},
        )

    def telling(self, documents: Collection[str], asked: str, *, one_each: bool, term: str) -> list[_Statement]:
        """What some documents say with a word, one sentence of each or all, those with most typical words first."""
        scores = self._scores(documents)
        words = content_words(asked)

        def score(each: _Statement) -> float:
            held = sum(scores.get(term.casefold(), 0.0) for term in each.terms) / math.sqrt(4 + len(each.terms))
            held *= _PURPOSE_WEIGHT if _PURPOSE.search(each.text) else 1
            held *= _INSTRUCTION if _INSTRUCTS.search(each.text) else 1
            held *= _LIST if _IS_LIST.search(PurePath(each.document_id).name) else 1
            return held * (1 + _ASKED * held_share(words, content_terms(each.text)) if words else 1)

        every = [self.statements.get(document, ()) for document in sorted(documents)]
        said = [[each for each in own if not term or term in each.terms] for own in every]
        best = [max(each, key=score) for each in said if each] if one_each else [each for own in said for each in own]
        return sorted(best, key=lambda each: -score(each))[:_TRIED]

    def themes(self) -> list[tuple[str, frozenset[str]]]:
        """Words that tell all documents apart, each next one for those that others leave out, with their documents."""
        every = frozenset(self.statements)
        scores = self._scores(every)
        told: set[str] = set()
        themes: dict[str, frozenset[str]] = {}
        while len(themes) < _GROUPS:
            worth = {
                term: scores[term]
                * sum(_SAID if each in told else 1.0 for each in self.holders[term])
                / len(self.holders[term])
                for term in scores
                if not any(term in other or other in term for other in themes)
            }
            if not worth:
                break
            best = min(worth, key=lambda each: (-worth[each], each))
            themes[best] = self.holders[best]
            told |= self.holders[best]
        return [(self.spelled[term], held) for term, held in themes.items()]

    def _scores(self, documents: Collection[str]) -> dict[str, float]:
        """How typical words are of some documents: how many hold them, for how few of all do."""
        least = 2 if len(documents) > 2 else 1
        counts = Counter(
            term
            for document in documents
            for term in {t.casefold() for each in self.statements.get(document, ()) for t in each.terms}
        )
        return {
            term: self._weight(term) * count * (count / len(self.holders[term])) ** 0.5
            for term, count in counts.items()
            if count >= least
        }

    def _weight(self, term: str) -> float:
        """How much a word names something: a name or a compound more than a verb or a short word of many uses."""
        rarity = math.log(2 + len(self.statements) / len(self.holders[term]))
        if not term.isascii():
            return rarity * (_SHORT if len(term) == _PAIR and not _is_katakana(term) else 1.0)
        if self.spelled[term] != term:
            return rarity * _NAME
        return rarity * (_INFLECTED if _NOT_NOUN.fullmatch(term) else _PLAIN)


def _is_katakana(term: str) -> bool:
    """Whether a word is written in katakana."""
    return re.fullmatch(f"[{KATAKANA_AND_MARKS}]+", term) is not None


def _folder_groups(documents: Mapping[str, Mapping[str, str]]) -> list[tuple[str, frozenset[str]]]:
    """Documents by the folders in which they part, the largest parted further; nothing where all are in one folder."""
    groups = {"": dict(documents)}
    open_groups = [""]
    while open_groups:
        largest = max(open_groups, key=lambda each: (len(groups[each]), each))
        open_groups.remove(largest)
        children = _in_folders(groups[largest])
        if len(children) > 1 and (not largest or len(groups) + len(children) - 1 <= _GROUPS):
            del groups[largest]
            named = {f"{largest}/{name}".strip("/"): held for name, held in children.items()}
            groups |= named
            open_groups += [name for name, held in named.items() if len(held) > _FEW_DOCUMENTS]
    ordered = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:_GROUPS]
    return [(name, frozenset(held)) for name, held in ordered] if len(groups) > 1 else []


def _some_names(documents: Collection[str]) -> tuple[str, ...]:
    """Documents of a group, evenly spread, as many as there is room to name; lists and overviews first."""
    every = sorted(documents)
    step = max(1.0, len(every) / _CITED)
    spread = [every[int(place * step)] for place in range(min(len(every), _CITED))]
    ordered = {PurePath(each).stem: each for each in every if _IS_LIST.search(PurePath(each).name)}
    ordered |= {PurePath(each).stem: each for each in spread}
    lengths = accumulate(map(len, ordered))
    fitting = [each for each, length in zip(ordered.values(), lengths, strict=True) if length <= _NAMES_CHARS]
    return tuple(fitting[:_CITED] or list(ordered.values())[:1])


def _in_folders(documents: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Mapping[str, str]]]:
    """Documents by the folder in which they part first; those that are in none of these stand under nothing."""
    paths = {each: tuple(row["folder"].split("/")) for each, row in documents.items()}
    depth = 0
    while all(len(path) > depth for path in paths.values()) and len({path[depth] for path in paths.values()}) == 1:
        depth += 1
    children: dict[str, dict[str, Mapping[str, str]]] = {}
    for each, path in paths.items():
        children.setdefault(path[depth] if len(path) > depth else path[-1], {})[each] = documents[each]
    return children
