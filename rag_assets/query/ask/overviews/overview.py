"""What documents are about as a whole, from facts alone: their kinds and how many, and what they say.

```
scope ──► counts by format, kind and folder ──► groups of documents ──► what they tell of, their names, what they say
```

Documents are told of by folder; where all are in one, together; a few documents one by one. Of a group stand what its
documents say they are for, in their words, and names of documents, less what most of them share; where none says it,
the entities that tell the group from others and typical sentences that give a purpose. Each is found again in a
passage. What is counted cites some of the documents that it counts.

Of one document that a question names stand what kind it is, what it says it is for, its stored summary, and some of its
headings or sheets.

What stays out: which questions ask for it (`rag_assets.query.search.auto`,
`rag_assets.query.ask.overviews.named_document`), of which documents (`rag_assets.query.ask.overviews.scope`), and what
is found in them (`purposes`, `telling_entities`, `typical_words`).
"""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, islice
from pathlib import PurePath

import pyarrow.compute as pc

from rag_assets.contracts.causes import BlockKind, DocumentStatus
from rag_assets.contracts.tables import BLOCKS, DOCUMENT_FACETS, FILE_SUMMARIES, PAGES, PARSE_FAILURES
from rag_assets.enrich.facets.taxonomy import Value, load_taxonomy
from rag_assets.enrich.summaries.extraction import METHOD, SEPARATOR
from rag_assets.query.ask.answers import AnswerParts, Source
from rag_assets.query.ask.facts import (
    CITED,
    STATEMENT_CHARS,
    Cited,
    FactWriter,
    PassagesOf,
    counts_of,
    joined,
    plain_name,
    squeezed,
)
from rag_assets.query.ask.markup import without_markup
from rag_assets.query.ask.overviews.purposes import Purpose, purposes
from rag_assets.query.ask.overviews.reading_failures import cause_name
from rag_assets.query.ask.overviews.scope import Scope, documents_in_folders, first_folders
from rag_assets.query.ask.overviews.telling_entities import READ, evenly, telling_entities
from rag_assets.query.ask.overviews.typical_words import IS_LIST, TypicalSentence, TypicalWords, summary_sentences
from rag_assets.query.ask.quoted.extracts import quote_for
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.results import Hit
from rag_assets.query.stored import StoredTables
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import content_terms, content_words, fold_name, held_share
from rag_assets.text.language import cut, split_sentences
from rag_assets.text.plain import announces, counted, one_line

_CHARS = 1150  # of an overview
_GROUPS = 8  # of documents that are told of
_LARGEST = 3  # groups that are told of in any case, before those that say what they are for
_GROUPS_READ = 24  # the largest, among which groups are chosen
_FEW_DOCUMENTS = 5  # told one by one
_PURPOSE_CHARS = 160
_LEAST_NAMES_CHARS = 30
_ENTITIES_CHARS = 30  # of the names of entities, where there is little room
_COUNTED = 8  # formats, folders or kinds that are named
_NAMES_CHARS = 120  # of the names of documents of a group
_SHARED_PART = 0.5  # of the documents of a group, above which a part of their names is left out
_LEAST_NAMES = 2  # documents of a group whose names have parts in common
_PURPOSES = 3  # of a group that are looked for in passages
_SPOKEN_FOR = 8  # documents of a group that one of them may speak for
_LEFT_CHARS = 200  # for folders that are only named
_PAGES = 5  # of a document that nothing else is said of
_STATEMENTS = 6  # of all groups together, but one of each
_LEAST_CLASSIFIED = 0.4  # share of documents whose kind is known, from which kinds are named
_LEAST_CONFIDENCE = 0.5  # from which the kind of one document is named
_SAID = 4  # statements of the summary of one document
_SUMMARY_CHARS = 220  # of one of them
_ENOUGH = 3  # of them, from which no others are said
_LEAST_SAID = 2  # of them that are sentences, from which rows and labels are left out
_DOCUMENT_TYPE = "document_type"
_PARTS_NAMED = 5  # headings or sheets of one document
_CARRIED = 0.5  # of the words of a sentence that a model wrote, which the passage that is cited for it holds
_LIST = re.compile(r"^[^、]{1,60}(?:、[^、]{1,60})+$")  # headings, sheets or columns, as summaries join them
_BULLETS = "#■◆●○◎□◇▼※*・- "
_LEANS = re.compile(  # says little without the sentence before
    r"^(?:また|なお|ただし|しかし|従って|したがって|そのため|さらに|一方|[こそ]の|[こそ]れ|[こそ]こ)"
    r"|^(?:also|however|but|and|so|this|that|these|those|it|they|he|she)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[。．.!?！？…][）)」』”\"]?$")
_LEAST_KIND = 0.04  # share of documents from which a kind is named
_SAYS_SOMETHING = re.compile(r"(?:[^\W\d].*){4}")
_NAMES = re.compile(r"[^\W\d_]{2}")
_NAME_PARTS = re.compile(r"[_＿]+")
_TEXTS = {
    "opening": {"ja": "資料の概要:", "en": "Overview of the documents:"},
    "document": {"ja": "文書の概要:", "en": "Overview of the document:"},
    "format": {"ja": "{name}（{format}{pages}）", "en": "{name} ({format}{pages})"},
    "page_count": {"ja": "、{count} ページ", "en": ", {pages}"},
    "kind": {"ja": "。文書の種類（推定）: {kind}", "en": ". Kind of document (as classified): {kind}"},
    "begins": {"ja": "「{quote}」", "en": " “{quote}”"},
    "excerpts": {"ja": "抜粋: {quotes}", "en": "Excerpts: {quotes}"},
    "parts": {"ja": "見出し・シート: {names}", "en": "Headings or sheets: {names}"},
    "not_read": {
        "ja": "「{name}」は読み取れませんでした（{causes}）。",
        "en": "“{name}” could not be read ({causes}).",
    },
    "no_folder": {
        "ja": "「{name}」というフォルダーはありません。あるフォルダー: {known}",
        "en": "There is no folder “{name}”. There are: {known}",
    },
    "none_read": {
        "ja": "「{name}」の文書 {count} 件は、どれも読み取れませんでした。",
        "en": "None of the {count} documents of “{name}” could be read.",
    },
    "count": {
        "ja": "{scope}文書 {count} 件を数えた結果 — 形式: {formats}",
        "en": "{scope}{documents}, counted. Formats: {formats}",
    },
    "folders": {"ja": "ほかのフォルダー（件数）: {folders}", "en": "Other folders (documents): {folders}"},
    "unread": {"ja": "。読み取れなかった文書 {count} 件", "en": ". Not readable: {count}"},
    "kinds": {"ja": "文書の種類（推定、件数）: {kinds}", "en": "Kinds of documents (as classified, counted): {kinds}"},
    "other_kinds": {"ja": "その他・不明", "en": "other or not known"},
    "all": {"ja": "全体", "en": "All"},
    "entities": {"ja": "主な語: {names}", "en": "Terms: {names}"},
    "pages": {"ja": "シート・ページ: {names}", "en": "Sheets or pages: {names}"},
    "named": {"ja": "{name}「{quote}」", "en": "{name} “{quote}”"},
    "one": {"ja": "{label}: {said}", "en": "{label}: {said}"},
    "group": {"ja": "{label}（{count} 件）: {said}", "en": "{label} ({count}): {said}"},
}


@dataclass(frozen=True)
class _Group:
    """Documents that are told of together."""

    label: str  # what they are called
    count: int  # how many they are
    names: Mapping[str, str]  # what some of them are called, by document
    said: Sequence[TypicalSentence]  # what they say, the best first
    # names of what they tell of and others do not, each with a document that it stands in
    entities: Sequence[tuple[str, str]] = ()
    purposes: Sequence[Purpose] = ()  # what they say they are for, the best first
    document: str = ""  # the document, of a group of one


def opening(language: str) -> str:
    """What an overview begins with."""
    return _text("opening", language)


def overview(scope: Scope, language: str, stored: StoredTables, passages_of: PassagesOf) -> AnswerParts:
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
        known_folders = joined([plain_name(folder) for folder in scope.folders[:_COUNTED]], language)
        text = _text("no_folder", language).format(name=plain_name(scope.missing), known=known_folders or "–")
        return AnswerParts(opening=without_markup(text, ""))
    documents = {row["document_id"]: row for row in scope.rows if row["status"] == "parsed"}
    if not documents:
        text = _text("none_read", language).format(name=plain_name(scope.name), count=len(scope.rows))
        return AnswerParts(opening=without_markup(text, "") if scope.name else "")
    groups = _groups(documents, scope, language, stored)
    kinds = _kinds(documents, stored, language)
    examples = {next(iter(members)): None for _, members in kinds[:CITED]} or dict.fromkeys(list(documents)[:CITED])
    parts = documents_in_folders(documents) if len(documents) > _FEW_DOCUMENTS else {}
    of_folder = {plain_name(name): next(iter(members)) for name, members in parts.items()}
    counted_folders = [(plain_name(name), count) for name, count in first_folders(documents)] if len(parts) > 1 else []
    cited_documents = {
        *examples,
        *of_folder.values(),
        *(document for group in groups for document in islice(group.names, CITED)),
    }
    whole_documents = {sentence.document_id for group in groups for sentence in group.said}
    whole_documents |= {document for group in groups for _, document in group.entities}
    whole_documents |= {purpose.document_id for group in groups for purpose in group.purposes}
    whole_documents |= {group.document for group in groups if group.document}
    writer = _Writer(language, passages_of(cited_documents, whole_documents))
    counts = _text("count", language).format(
        scope=f"{plain_name(scope.name)}: " if scope.name else "",
        count=len(documents),
        documents=counted(len(documents), "document"),
        formats=counts_of(Counter(row["format"] for row in documents.values()).most_common(), language, _COUNTED),
    )
    if unread := len(scope.rows) - len(documents):
        counts += _text("unread", language).format(count=unread)
    if scope.name:
        writer.tell_purpose(scope.name, groups)
    writer.tell(counts, examples)
    if kinds:
        kind_counts = [(kind, len(members)) for kind, members in kinds[:_COUNTED]]
        if other_count := len(documents) - sum(count for _, count in kind_counts):
            kind_counts.append((_text("other_kinds", language), other_count))
        writer.tell(_text("kinds", language).format(kinds=counts_of(kind_counts, language, len(kind_counts))), examples)
    labels = {_first_folder(group) for group in groups}
    writer.leave_room_for([folder for folder in counted_folders if folder[0] not in labels])
    told_of = {
        _first_folder(group)
        for place, group in enumerate(groups)
        if writer.tell_group(group, max(1, _STATEMENTS // len(groups)), len(groups) - place)
    }
    writer.tell_left([folder for folder in counted_folders if folder[0] not in told_of], of_folder)
    return AnswerParts(tuple(writer.sentences), tuple(writer.sources), opening(language))


def document_overview(
    row: Mapping[str, object], language: str, stored: StoredTables, passages_of: PassagesOf
) -> AnswerParts:
    """What one document is about, by its stored summary.

    Args:
        row: Its `document_id`, `format`, `status`, `title` and `page_count`.
        language: Of what is said beside quotes: `ja` or `en`.
        stored: The stored tables.
        passages_of: Their passages.

    Raises:
        StoreError: A published file is gone.
    """
    document = str(row["document_id"])
    name = plain_name(PurePath(document).name)
    if row["status"] == DocumentStatus.FAILED:
        failures = stored.read(PARSE_FAILURES, ["document_id", "cause"], [document]).to_pylist()
        causes = joined(list(dict.fromkeys(cause_name(failure["cause"], language) for failure in failures)), language)
        return AnswerParts(opening=without_markup(_text("not_read", language).format(name=name, causes=causes), ""))
    writer = _Writer(language, passages_of((), [document]))
    names = {fold_name(title) for title in (str(row["title"]), PurePath(document).stem, name)}
    count = int(str(row["page_count"] or 0))
    pages = _text("page_count", language).format(count=count, pages=counted(count, "page")) if count > 1 else ""
    head = _text("format", language).format(name=name, format=row["format"], pages=pages)
    if kinds := _kinds({document: row}, stored, language, _LEAST_CONFIDENCE):
        head += _text("kind", language).format(kind=kinds[0][0])
    columns = ["document_id", "page_number", "page_name", "role"]
    all_pages = stored.read(PAGES, columns, [document]).to_pylist()
    content = {page["page_number"]: page["page_name"] or "" for page in all_pages if page["role"] is None}
    if (begins := writer.beginning(document)) is not None and begins[0].page_number in content:
        title = begins[1].lstrip(_BULLETS)
        if _is_title(title, names):
            head += _text("begins", language).format(quote=title)
        names.add(fold_name(title))
    writer.tell(head, [document])
    for purpose in purposes([[document]], stored).values():
        writer.tell_quotes(document, [purpose.text], 1)
    writer.leave_room_for_parts()
    _tell_summary(writer, document, names, stored)
    writer.tell_parts(document, _headings(document, content, names, stored))
    return AnswerParts(tuple(writer.sentences), tuple(writer.sources), _text("document", language))


def _tell_summary(writer: "_Writer", document: str, names: Collection[str], stored: StoredTables) -> None:
    """Say the sentences of the stored summary of a document; where it has few, other typical ones, and then its rows.

    Args:
        writer: Says them.
        document: The document.
        names: What it is called, folded, which is said already.
        stored: The stored tables.
    """
    for summary in stored.read(FILE_SUMMARIES, ["document_id", "method", "text"], [document]).to_pylist():
        if summary["method"] != METHOD:
            writer.tell_written(document, split_sentences(summary["text"]))
            return
        parts = [part for part in summary["text"].split(SEPARATOR) if fold_name(part) not in names]
        parts = [part for part in parts if _ENDS.search(part) or not _LIST.match(part)]
        sentences = [part for part in parts if _ENDS.search(part) and not announces(part, surely=True)]
        sentence_count = writer.tell_quotes(document, sentences, _SAID)
        if sentence_count < _ENOUGH:
            words = TypicalWords.of(summary_sentences([document], stored))
            other_texts = [sentence.text for sentence in words.telling([document], one_each=False)]
            other_texts = [text for text in other_texts if not _LEANS.search(text) and not announces(text, surely=True)]
            sentence_count += writer.tell_quotes(document, other_texts, _ENOUGH - sentence_count)
        if sentence_count < _LEAST_SAID:
            writer.tell_excerpts(document, [part for part in parts if part not in sentences])


def _is_title(line: str, names: Collection[str]) -> bool:
    """Whether a line with which a document begins says more than its name, and is no row of a table."""
    folded_line = fold_name(line)
    return (
        CELL_SIGN not in line and bool(_SAYS_SOMETHING.search(line)) and not any(folded_line in name for name in names)
    )


def _headings(document: str, content: Mapping[int, str], names: Collection[str], stored: StoredTables) -> list[str]:
    """The highest headings of a document of which there are several, else its sheets; without cover and contents.

    Args:
        document: The document.
        content: Names of its sheets by number, without cover and contents.
        names: What it is called, folded, which is said already.
        stored: The stored tables.
    """
    levels: dict[int, dict[str, None]] = {}
    columns, is_heading = ["document_id", "page_number", "section", "text"], pc.field("kind") == BlockKind.HEADING.value
    for row in stored.read(BLOCKS, columns, [document], is_heading).to_pylist():
        text = one_line(row["text"])
        is_new = fold_name(text.lstrip(_BULLETS)) not in names
        if is_new and row["page_number"] in content and _SAYS_SOMETHING.search(text):
            levels.setdefault(len(row["section"]), {})[text] = None
    sheets = [name for name in dict.fromkeys(content.values()) if fold_name(name) not in names and _NAMES.search(name)]
    return next((list(levels[level]) for level in sorted(levels) if len(levels[level]) > 1), sheets)


def _first_folder(group: _Group) -> str:
    return group.label.partition("/")[0]


def _groups(
    documents: Mapping[str, Mapping[str, str]], scope: Scope, language: str, stored: StoredTables
) -> list[_Group]:
    """The groups that documents are told of in: by folder, all together, or one by one."""
    words = TypicalWords.of(summary_sentences(evenly(list(documents), READ), stored))
    are_few = len(documents) <= _FEW_DOCUMENTS
    parts = (
        [(PurePath(document).name, frozenset({document})) for document in documents]
        if are_few
        else _folder_groups(documents)
    )
    parts = parts or [(scope.name or _text("all", language), frozenset(documents))]
    by_document = purposes([members for _, members in parts], stored)
    spoken_for = {
        members: _best_purposes(
            [by_document[document] for document in members if document in by_document], len(members)
        )
        for _, members in parts
    }
    if len(parts) > _GROUPS:
        largest, other_parts = parts[:_LARGEST], sorted(parts[_LARGEST:], key=lambda pair: not spoken_for[pair[1]])
        labels = {label for label, _ in (*largest, *other_parts[: _GROUPS - _LARGEST])}
        parts = [pair for pair in parts if pair[0] in labels]
    entity_lists = telling_entities([members for _, members in parts], stored)
    return [
        _Group(
            plain_name(label),
            len(members),
            {} if are_few else _names(members),
            words.telling(members, one_each=not are_few, purposeful=True),
            entities,
            spoken_for[members],
            next(iter(members)) if len(members) == 1 else "",
        )
        for (label, members), entities in zip(parts, entity_lists, strict=True)
    ]


def _best_purposes(candidates: Sequence[Purpose], documents: int) -> list[Purpose]:
    """Those that tell of a system first; of many documents, else only what a list or a definition says of itself."""
    best = sorted(candidates, key=lambda purpose: (-purpose.of_system, -purpose.score, purpose.document_id))
    are_few = documents <= _SPOKEN_FOR
    return [
        purpose
        for purpose in best
        if are_few or purpose.of_system or IS_LIST.search(PurePath(purpose.document_id).name)
    ][:_PURPOSES]


class _Writer(FactWriter):
    """Puts together what is said of groups of documents."""

    def __init__(self, language: str, hits: Sequence[Hit]) -> None:
        super().__init__(hits, _CHARS - len(opening(language)))
        self._language = language
        self._left = 0  # for folders that nothing else is said of

    def tell_purpose(self, name: str, groups: Sequence[_Group]) -> None:
        """Say what a part of the collection is for, where one of several groups of it says so of a system."""
        system_purposes = (
            [purpose for group in groups for purpose in group.purposes if purpose.of_system] if len(groups) > 1 else []
        )
        for purpose in sorted(system_purposes, key=lambda purpose: -purpose.score)[:1]:
            for text, citation in self._quotes([(purpose.document_id, purpose.text)], _PURPOSE_CHARS):
                sentence = self._quotation(plain_name(PurePath(purpose.document_id).stem), text)
                self.add(_text("one", self._language).format(label=plain_name(name), said=sentence), [citation])

    def leave_room_for(self, folders: Sequence[tuple[str, int]]) -> None:
        """Leave room for the names of folders."""
        sentence = _text("folders", self._language).format(folders=counts_of(folders, self._language, len(folders)))
        self._left = min(_LEFT_CHARS, len(sentence) + 5 * CITED) if folders else 0
        self.room -= self._left

    def tell_left(self, folders: Sequence[tuple[str, int]], examples: Mapping[str, str]) -> None:
        """Name folders that nothing else is said of, as many as there is room for, with a document of some of them."""
        self.room += self._left
        cited_documents = [examples[name] for name, _ in folders[:CITED]]
        for most in range(min(len(folders), _LEFT_CHARS // 4), 0, -1):
            folder_counts = counts_of(folders, self._language, most)
            if self.tell(_text("folders", self._language).format(folders=folder_counts), cited_documents[:most]):
                break

    def tell_group(self, group: _Group, statements: int, left: int) -> bool:
        """Say what a group of documents is about: what they are for, names of some; else what they tell of and say.

        Args:
            group: The documents.
            statements: How many statements, at most.
            left: Groups that are still to be told of, this one among them: they share the room.

        Returns:
            Whether there was room.
        """
        room = self.room // left - len(group.label)
        parts: list[str] = []
        citations: list[Cited | None] = []
        names_left = dict(group.names)
        most = min(_PURPOSE_CHARS, max(STATEMENT_CHARS, room))
        for purpose in group.purposes:
            for text, citation in self._quotes([(purpose.document_id, purpose.text)], most):
                parts.append(self._quotation(names_left.pop(purpose.document_id, ""), text))
                citations.append(citation)
            if parts:
                break
        says_what = bool(parts)
        lengths = accumulate(len(name) + 1 for name in names_left.values())
        spent_chars = sum(map(len, parts)) or _ENTITIES_CHARS * bool(group.entities)
        least = min(_NAMES_CHARS, max(room - spent_chars, _LEAST_NAMES_CHARS))
        fitting_names = [pair for pair, length in zip(names_left.items(), lengths, strict=True) if length <= least]
        if names := joined([name for _, name in fitting_names], self._language):
            parts.append(f"{names}…" if len(fitting_names) < len(names_left) else names)
            citations += [self.beginning(document) for document, _ in fitting_names[:CITED]]
        entities = [] if says_what else group.entities
        if sum(map(len, parts)) + _ENTITIES_CHARS > room:
            lengths = accumulate(len(name) + 1 for name, _ in entities)
            entities = [entity for entity, length in zip(entities, lengths, strict=True) if length <= _ENTITIES_CHARS]
        if entity_hits := self._entity_hits(entities):
            parts.append(_text("entities", self._language).format(names=joined(list(entity_hits), self._language)))
            citations += list({hit.chunk_id: (hit, name) for name, hit in reversed(entity_hits.items())}.values())[::-1]
        if not says_what:
            rest = room - sum(map(len, parts)) if parts else STATEMENT_CHARS * statements
            texts = [(sentence.document_id, sentence.text) for sentence in group.said]
            quotes = list(islice(self._quotes(texts, STATEMENT_CHARS, rest), statements))
            sentences = [self._quotation(_document_name(group, citation[0]), text) for text, citation in quotes]
            parts += [" ".join(sentences)] * bool(sentences)
            citations += [citation for _, citation in quotes]
        if not parts:
            pages = self._pages(group.document)
            parts += [_text("pages", self._language).format(names=joined(list(pages), self._language))] * bool(pages)
            citations += list(pages.values())
        if not parts and (first := self.beginning(group.document)):
            parts.append(self._quotation("", first[1]))
            citations.append(first)
        template = _text("group" if group.count > 1 else "one", self._language)
        return self.add(template.format(label=group.label, count=group.count, said=" — ".join(parts)), citations)

    def tell_quotes(self, document: str, texts: Sequence[str], most: int) -> int:
        """Say so many of some statements of a document that stand in its passages, as its words; tells how many."""
        quotes = self._quotes([(document, text) for text in texts], _SUMMARY_CHARS)
        return sum(self.add(self._quotation("", text), [citation]) for text, citation in islice(quotes, most))

    def tell_excerpts(self, document: str, texts: Sequence[str]) -> None:
        """Say rows and labels of a document together."""
        quotes = list(islice(self._quotes([(document, text) for text in texts], STATEMENT_CHARS), _SAID))
        if quotes:
            excerpts = joined([self._quotation("", text) for text, _ in quotes], self._language)
            self.add(_text("excerpts", self._language).format(quotes=excerpts), [citation for _, citation in quotes])

    def tell_written(self, document: str, sentences: Sequence[str]) -> None:
        """Say what a model wrote of a document, each sentence with what the passage says that holds most of it."""
        passages = [(content_terms(hit.text), hit) for hit, _ in self.hits.get(document, ())]
        for sentence in sentences:
            words = content_words(sentence)
            shares = [held_share(words, terms) for terms, _ in passages]
            if shares and max(shares) >= _CARRIED:
                hit = passages[shares.index(max(shares))][1]
                self.add(one_line(sentence), [(hit, quote_for(sentence, Source.of(1, hit, hit.text)))])

    def leave_room_for_parts(self) -> None:
        """Leave room for some headings or sheets of a document."""
        self._left = _LEFT_CHARS
        self.room -= self._left

    def tell_parts(self, document: str, names: Sequence[str]) -> None:
        """Name some headings or sheets of a document, each with the passage that has it."""
        self.room += self._left
        citations: dict[str, Cited] = {}
        for name in names:
            hit = next((hit for hit, _ in self.hits.get(document, ()) if stands_in(name, hit.text)), None)
            quote = name
            if hit is None:
                hit = next((hit for hit, _ in self.hits.get(document, ()) if hit.page_name == name), None)
                quote = cut(one_line(hit.text), STATEMENT_CHARS) if hit is not None else ""
            if hit is not None and stands_in(quote, hit.text):
                citations[plain_name(name)] = hit, quote
        for most in range(min(len(citations), _PARTS_NAMED), 0, -1):
            part_names = [*list(citations)[:most], *["…"] * (most < len(citations))]
            text = _text("parts", self._language).format(names=joined(part_names, self._language))
            if self.add(text, list(citations.values())[:most]):
                break

    def _quotation(self, name: str, quote: str) -> str:
        """What a document says, in quotation marks: it is the document that says so."""
        return _text("named", self._language).format(name=name, quote=quote).strip()

    def _entity_hits(self, entities: Sequence[tuple[str, str]]) -> dict[str, Hit]:
        """Names that stand in passages, few of them, with these."""
        hits: dict[str, Hit] = {}
        for name, document in entities:
            cited_hits = list({hit.chunk_id: hit for hit in hits.values()}.values())
            other_hits = [hit for hit, _ in self.hits.get(document, ())] if len(cited_hits) < CITED else []
            hit = next((hit for hit in chain(cited_hits, other_hits) if stands_in(name, hit.text)), None)
            if hit is not None:
                hits[name] = hit
        return hits

    def _quotes(
        self, texts: Sequence[tuple[str, str]], most_chars: int, room: int = _CHARS
    ) -> Iterator[tuple[str, Cited]]:
        """What documents say, that stands in passages, was not said yet and fits into the room, with its passage."""
        for document, text in texts:
            quote = cut(text, most_chars)
            plain = squeezed(quote)
            hit = next((hit for hit, passage_text in self.hits.get(document, ()) if plain in passage_text), None)
            fits = len(quote) <= room and plain not in self.told
            if hit is not None and fits and stands_in(quote, hit.text):
                room -= len(quote)
                yield quote if quote == text else f"{quote}…", (hit, quote)

    def _pages(self, document: str) -> dict[str, Cited]:
        """Names of the first sheets or pages of a document, with the beginning of each."""
        citations: dict[str, Cited] = {}
        for hit, _ in self.hits.get(document, ()):
            name, quote = plain_name(hit.page_name or ""), cut(one_line(hit.text), STATEMENT_CHARS)
            if name and name not in citations and len(citations) < _PAGES and stands_in(quote, hit.text):
                citations[name] = hit, quote
        return citations


def _document_name(group: _Group, hit: Hit) -> str:
    """The document of a passage, where a group has several."""
    return plain_name(PurePath(hit.document_id).stem) if group.count > 1 else ""


def _text(name: str, language: str) -> str:
    return _TEXTS[name][language]


@cache
def _document_types() -> dict[str, Value]:
    """The shipped kinds of documents, by name."""
    facets = load_taxonomy("office").facets
    return {value.name: value for facet in facets if facet.name == _DOCUMENT_TYPE for value in facet.values}


def _kinds(
    documents: Mapping[str, object], stored: StoredTables, language: str, least_confidence: float = 0.0
) -> list[tuple[str, list[str]]]:
    """The kinds of documents, the most frequent first, with the documents of each that is classified so surely."""
    surest: dict[str, tuple[float, str]] = {}
    for row in stored.read(DOCUMENT_FACETS, ["document_id", "facet", "value", "confidence"]).to_pylist():
        is_asked = row["facet"] == _DOCUMENT_TYPE and row["document_id"] in documents
        if is_asked and row["confidence"] >= least_confidence:
            estimate = (row["confidence"], row["value"])
            surest[row["document_id"]] = max(surest.get(row["document_id"], estimate), estimate)
    documents_of: dict[str, list[str]] = {}
    for document, (_, value) in sorted(surest.items()):
        shipped = _document_types().get(value)
        kind = shipped.label(language) if shipped is not None else value.replace("_", " ")
        documents_of.setdefault(kind, []).append(document)
    common = [
        (kind, sorted(members))
        for kind, members in documents_of.items()
        if len(members) >= _LEAST_KIND * len(documents)
    ]
    if len(surest) < _LEAST_CLASSIFIED * len(documents):
        return []
    return sorted(common, key=lambda pair: (-len(pair[1]), pair[0]))


def _folder_groups(documents: Mapping[str, Mapping[str, str]]) -> list[tuple[str, frozenset[str]]]:
    """Documents by the folders in which they part, the largest parted further; nothing where all are in one folder."""
    groups = {"": dict(documents)}
    open_groups = [""]
    while open_groups:
        largest = max(open_groups, key=lambda name: (len(groups[name]), name))
        open_groups.remove(largest)
        children = documents_in_folders(groups[largest])
        if len(children) > 1 and (not largest or len(groups) + len(children) - 1 <= _GROUPS):
            above = posixpath.commonpath([row["folder"] for row in groups[largest].values()])
            new_groups = {
                largest
                if largest and any(row["folder"] == above for row in members.values())
                else f"{largest}/{name}".strip("/"): members
                for name, members in children.items()
            }
            del groups[largest]
            groups |= new_groups
            open_groups += [name for name, members in new_groups.items() if len(members) > _FEW_DOCUMENTS]
    ordered_groups = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:_GROUPS_READ]
    return [(name, frozenset(members)) for name, members in ordered_groups] if len(groups) > 1 else []


def _names(documents: Collection[str]) -> dict[str, str]:
    """What documents are called, lists and overviews first, then evenly spread; less what most of them are called."""
    every = sorted(documents)
    parts = {document: [part for part in _NAME_PARTS.split(PurePath(document).stem) if part] for document in every}
    counts = Counter(chain.from_iterable(map(set, parts.values())))
    shared_parts = {part for part, count in counts.items() if count > max(1, _SHARED_PART * len(every))}
    if len(every) <= _LEAST_NAMES:
        shared_parts = set()
    lists = [document for document in every if IS_LIST.search(PurePath(document).name)]
    spread = sorted(range(len(every)), key=lambda place: (f"{place:b}"[::-1].ljust(16, "0"), place))
    names = {document: "_".join(part for part in parts[document] if part not in shared_parts) for document in every}
    ordered_documents = dict.fromkeys([*lists, *(every[place] for place in spread)])
    stems = Counter(PurePath(document).stem for document in every)

    def name_of(document: str) -> str:
        path = PurePath(document)
        if _SAYS_SOMETHING.search(names[document]):
            return names[document]
        return path.stem if stems[path.stem] == 1 else path.parent.name

    document_of = {name_of(document): document for document in reversed(ordered_documents)}
    telling_names = {
        document: plain_name(name) for name, document in reversed(document_of.items()) if _SAYS_SOMETHING.search(name)
    }
    return telling_names or {document: plain_name(name) for name, document in reversed(document_of.items())}
