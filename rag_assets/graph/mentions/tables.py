"""The step that brings `entity_mentions`, `relationship_mentions` and `claims` in step with the parsed pages.

What stays out: what is found in a document (`rag_assets.graph.mentions.extraction`,
`rag_assets.graph.mentions.dialogues`), and which names are of one entity (`rag_assets.graph.entities.resolution`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import PurePosixPath

from rag_assets.contracts.content import Page, page_id_of
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import BLOCKS, CHUNKS, CLAIMS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS
from rag_assets.enrich.written import WrittenTables, side_by_side, update_tables_with_model
from rag_assets.graph.entity_types import EntityTypes
from rag_assets.graph.mentions.dialogues import (
    Answer,
    Claim,
    ExtractionOptions,
    PageFindings,
    WindowSubject,
    check_windows,
    window_dialogue,
)
from rag_assets.graph.mentions.extraction import (
    METHOD,
    Extraction,
    Extractor,
    Mention,
    Relationship,
    RelationshipKind,
    content_pages,
    page_language,
)
from rag_assets.graph.mentions.recognizers import Recognizer
from rag_assets.graph.mentions.windows import Window, page_units, page_windows, window_of, window_text
from rag_assets.models.dialogue import Dialogue
from rag_assets.parsing.records import Record, load_pages, page_text, rows
from rag_assets.store.incremental import Compute, Rows, StepReport, finished, stale_documents, update_shard
from rag_assets.store.lake import Lake, shard_of

Progress = Callable[[int, int], None]

_DOCUMENTS_AT_ONCE = 256

MENTION_TABLES = (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIMS)


@dataclass(frozen=True)
class MentionOptions:
    """How mentions are extracted.

    Attributes:
        window_tokens: Tokens of a window.
        overlap_tokens: Tokens of a window that the next one repeats.
        extraction: What a language model is asked.
    """

    window_tokens: int
    overlap_tokens: int
    extraction: ExtractionOptions


@dataclass
class MentionUpdate:
    """What the step did.

    Attributes:
        report: Documents and rows.
        dropped: Items of a language model's answers that were not taken, by reason.
        windows: Windows that a language model read.
        replaced_windows: Windows of them that were left to the extractive algorithm.
    """

    report: StepReport = field(default_factory=StepReport)
    dropped: Counter[str] = field(default_factory=Counter)
    windows: int = 0
    replaced_windows: int = 0


def mentions_code() -> str:
    """Digest of the code, prompts, word lists and models that mentions depend on."""
    return code_fingerprint(f"{__name__}:update_mentions", "rag_assets.graph.mentions.recognizers:SpacyRecognizer")


def wanted_mentions(
    lake: Lake, shard: str, options: MentionOptions, types: EntityTypes, model_name: str
) -> dict[str, str]:
    """What the mentions of each document of a shard are to be computed from; one without passages has none yet."""
    chosen = options.extraction
    facts = (options.window_tokens, options.overlap_tokens, chosen.gleanings, chosen.claims, types.digest, model_name)
    fingerprint = digest(mentions_code(), *facts)
    passages = finished(lake.inputs(CHUNKS, shard))
    blocks = finished(lake.inputs(BLOCKS, shard))
    return {name: digest(key, passages[name], fingerprint) for name, key in blocks.items() if name in passages}


def update_mentions(
    lake: Lake,
    shards: Sequence[str],
    model: LanguageModel,
    options: MentionOptions,
    types: EntityTypes,
    progress: Progress,
    recognizer: Recognizer,
) -> MentionUpdate:
    """Extract entities, relationships and claims of the documents of some shards that changed.

    Args:
        lake: Where the tables are.
        shards: Shards to look at.
        model: The language model; one that does not write leaves it to the extractive algorithm.
        options: How.
        types: The entity types.
        progress: Told documents or shards done, and in all.
        recognizer: Recognizer of named entities.

    Raises:
        ModelError: A model cannot be used any longer; what was done before is written.
    """
    update = MentionUpdate()
    extractor = Extractor(recognizer, types)

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[WrittenTables]]]:
        passages = _load_passages(lake, shard)
        for document_id, (title, pages) in load_pages(lake, shard, documents).items():
            document = _Document(document_id, pages, options, passages.get(document_id, {}))
            yield document_id, _written(document, title, model, options, types, extractor, update)

    wanted = partial(wanted_mentions, lake, options=options, types=types, model_name=model.name)
    if model.generative:
        update.report = update_tables_with_model(lake, MENTION_TABLES, shards, wanted, begin, model, progress)
        return update
    for done, (shard, keys, extract) in enumerate(_extractions(lake, shards, wanted, extractor, options), start=1):
        update_shard(lake, MENTION_TABLES, shard, keys, extract, update.report)
        progress(done, len(shards))
    return update


def _extractions(
    lake: Lake,
    shards: Sequence[str],
    wanted: Callable[[str], Mapping[str, str]],
    extractor: Extractor,
    options: MentionOptions,
) -> Iterator[tuple[str, Mapping[str, str], Compute]]:
    """For each shard what its documents are to be computed from, and what gives the rows of those that changed.

    The pages of several shards are read at once, because a recognizer takes much text at less cost.
    """
    waiting: dict[str, Mapping[str, str]] = {}
    stale: list[tuple[str, str]] = []
    for shard in shards:
        waiting[shard] = wanted(shard)
        stale += [(shard, name) for name in stale_documents(lake, MENTION_TABLES, shard, waiting[shard])]
        if shard != shards[-1] and len(stale) < _DOCUMENTS_AT_ONCE:
            continue
        loaded = {each: load_pages(lake, each, [name for of, name in stale if of == each]) for each, _ in stale}
        pages = [loaded[of][name][1] for of, name in stale]
        found = list(zip(stale, pages, extractor.extract(pages), strict=True))
        for each, keys in waiting.items():
            of_shard = {name: (read, what) for (of, name), read, what in found if of == each}
            yield each, keys, partial(_extracted_rows, lake, each, of_shard, options)
        waiting, stale = {}, []


def _extracted_rows(
    lake: Lake,
    shard: str,
    extracted: Mapping[str, tuple[Sequence[Page], Extraction]],
    options: MentionOptions,
    documents: Sequence[str],
) -> Rows:
    """Rows of documents of a shard, of what was found in their pages."""
    passages = _load_passages(lake, shard)
    records: dict[str, list[Record]] = {table.name: [] for table in MENTION_TABLES}
    for document_id in documents:
        pages, extraction = extracted[document_id]
        document = _Document(document_id, pages, options, passages.get(document_id, {}))
        for name, of_document in document.records(extraction, [], METHOD).items():
            records[name] += of_document
    return {table.name: rows(table.schema, records[table.name]) for table in MENTION_TABLES}


@dataclass(frozen=True)
class _Passage:
    """A passage of a page.

    Attributes:
        chunk_id: Its id.
        blocks: Blocks that it is taken from.
        text: Its text without white space.
    """

    chunk_id: str
    blocks: frozenset[int]
    text: str


def _load_passages(lake: Lake, shard: str) -> dict[str, dict[int, list[_Passage]]]:
    """Passages of the documents of a shard by document and page, in order."""
    found: dict[str, dict[int, list[_Passage]]] = {}
    columns = ["document_id", "page_number", "chunk_index", "chunk_id", "block_indexes", "text"]
    for row in lake.read(CHUNKS, [shard], columns).to_pylist():
        passage = _Passage(row["chunk_id"], frozenset(row["block_indexes"]), _squeezed(row["text"]))
        found.setdefault(row["document_id"], {}).setdefault(row["page_number"], []).append(passage)
    return found


class _Document:
    """A document whose mentions are written.

    Args:
        document_id: Its id.
        pages: Its pages.
        options: How windows are cut.
        passages: Its passages by page.
    """

    def __init__(
        self,
        document_id: str,
        pages: Sequence[Page],
        options: MentionOptions,
        passages: Mapping[int, Sequence[_Passage]],
    ) -> None:
        self.document_id = document_id
        self.pages = content_pages(pages)
        self.all_pages = pages
        self._options = options
        self._passages = passages
        self._held: dict[tuple[int, int | None, str], tuple[list[_Passage], list[int]]] = {}

    @cached_property
    def languages(self) -> dict[int, str]:
        """Language of each page."""
        return {page.number: page_language(page) for page in self.pages}

    @cached_property
    def texts(self) -> dict[int, str]:
        """Text of each page."""
        return {page.number: page_text(page) for page in self.pages}

    @cached_property
    def windows(self) -> dict[int, list[Window]]:
        """Windows of each page."""
        chosen = self._options
        return {
            page.number: page_windows(
                page, page_units(page, self.languages[page.number]), chosen.window_tokens, chosen.overlap_tokens
            )
            for page in self.pages
        }

    @cached_property
    def _block_ends(self) -> dict[int, list[tuple[int, int]]]:
        ends: dict[int, list[tuple[int, int]]] = {}
        for page in self.pages:
            place = 0
            for index, block in enumerate(page.blocks):
                if block.text:
                    place += len(block.text) + 1
                    ends.setdefault(page.number, []).append((place, index))
        return ends

    def window_index(self, page_number: int, start: int | None) -> int:
        """Window that a position counts in."""
        return window_of(self.windows[page_number], start or 0)

    def records(self, extraction: Extraction, claims: Sequence[Claim], method: str) -> dict[str, list[Record]]:
        """Rows of the three tables.

        Args:
            extraction: Mentions and relationships, in order; those whose block is known are the extractive algorithm's.
            claims: Claims.
            method: What wrote the others.
        """
        mentions: list[Record] = []
        for index, mention in enumerate(extraction.mentions):
            window = self.window_index(mention.page_number, mention.start)
            facts = self._facts(mention.page_number, mention.start, mention.block_index, mention.place, mention.name)
            row = {"name": mention.name, "name_key": mention.key, "type": mention.type}
            more = {"description": mention.description, "start_char": mention.start, "window_index": window}
            made = method if mention.block_index is None else METHOD
            mentions.append({**facts, **row, **more, "mention_index": index, "method": made})
        related: list[Record] = []
        for index, each in enumerate(extraction.relationships):
            window = self.window_index(each.page_number, each.start)
            facts = self._facts(each.page_number, each.start, each.block_index, each.place)
            row = {"source_key": each.source, "target_key": each.target, "kind": str(each.kind)}
            stated = {"strength": each.strength, "description": each.description, "window_index": window}
            made = method if each.block_index is None else METHOD
            related.append({**facts, **row, **stated, "mention_index": index, "method": made})
        return {
            ENTITY_MENTIONS.name: mentions,
            RELATIONSHIP_MENTIONS.name: related,
            CLAIMS.name: [self._claim(index, claim, method) for index, claim in enumerate(claims)],
        }

    def _claim(self, index: int, claim: Claim, method: str) -> Record:
        return {
            **self._facts(claim.page_number, claim.start, None, claim.place, claim.source_text),
            "claim_index": index,
            "subject_key": claim.subject,
            "object_key": claim.object,
            "type": claim.type,
            "status": claim.status,
            "start_date": claim.start_date,
            "end_date": claim.end_date,
            "description": claim.description,
            "source_text": claim.source_text,
            "method": method,
        }

    def _facts(self, page_number: int, start: int | None, block: int | None, place: str, name: str = "") -> Record:
        if block is None and start is not None:
            block = next((index for end, index in self._block_ends.get(page_number, []) if start < end), None)
        return {
            "document_id": self.document_id,
            "shard": shard_of(self.document_id),
            "page_id": page_id_of(self.document_id, page_number),
            "page_number": page_number,
            "chunk_id": self._chunk_id(page_number, block, place, name),
        }

    def _chunk_id(self, page_number: int, block: int | None, place: str, name: str) -> str | None:
        """Passage that holds a place: of those taken from its block, the one that has most of its words."""
        candidates, held = self._holders(page_number, block, place)
        if len(candidates) < 2:
            return candidates[0].chunk_id if candidates else None
        wanted = _squeezed(name)
        best = max(range(len(candidates)), key=lambda index: (wanted in candidates[index].text, held[index], -index))
        return candidates[best].chunk_id

    def _holders(self, page_number: int, block: int | None, place: str) -> tuple[list[_Passage], list[int]]:
        """Passages that are taken from a block, and how many cells of a place each of them holds."""
        key = (page_number, block, place)
        if key not in self._held:
            candidates = [each for each in self._passages.get(page_number, []) if block in each.blocks]
            several = len(candidates) > 1
            cells = [_squeezed(cell) for cell in place.replace("\n", " | ").split(" | ")] if several else []
            found = [sum(cell in each.text for cell in cells if cell) for each in candidates]
            self._held[key] = (candidates, found)
        return self._held[key]


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _written(
    document: _Document,
    title: str,
    model: LanguageModel,
    options: MentionOptions,
    types: EntityTypes,
    extractor: Extractor,
    update: MentionUpdate,
) -> Dialogue[WrittenTables]:
    """Rows of a document by a language model; windows that it could not do are left to the extractive algorithm."""
    stated = "" if title == PurePosixPath(document.document_id).stem else title
    asked: list[tuple[int, int]] = []
    dialogues: list[Dialogue[Answer | None]] = []
    for page in document.pages:
        language = document.languages[page.number]
        subject = WindowSubject(document.document_id, shard_of(document.document_id), stated, page.name or "", language)
        for window in document.windows[page.number]:
            text = window_text(window, document.texts[page.number])
            asked.append((page.number, window.index))
            dialogues.append(window_dialogue(subject, text, types, options.extraction, model.context_tokens))
    answers = dict(zip(asked, (yield from side_by_side(dialogues)), strict=True))
    usable = {place: answer for place, answer in answers.items() if answer is not None and not _is_failure(answer)}
    findings = {page.number: _check(document, page, usable, types) for page in document.pages}
    missing = set(asked) - usable.keys()
    update.windows += len(asked)
    update.replaced_windows += len(missing)
    for each in findings.values():
        update.dropped += each.dropped
    instead = _of_windows(document, extractor.extract([document.all_pages])[0], missing)
    records = document.records(
        _joined(findings, instead),
        [claim for each in findings.values() for claim in each.claims],
        model.name,
    )
    return WrittenTables(records, retry=any(answer is not None and answer.retry for answer in answers.values()))


def _is_failure(answer: Answer) -> bool:
    return answer.retry and not (answer.entities or answer.relationships)


def _check(
    document: _Document, page: Page, answers: Mapping[tuple[int, int], Answer], types: EntityTypes
) -> PageFindings:
    of_page = {window: answer for (number, window), answer in answers.items() if number == page.number}
    windows = document.windows[page.number]
    return check_windows(page.number, document.texts[page.number], windows, of_page, types)


def _of_windows(document: _Document, extraction: Extraction, windows: set[tuple[int, int]]) -> Extraction:
    """What the extractive algorithm found in some windows, and the aliases that it found in all of them."""

    def inside(each: Mention | Relationship) -> bool:
        return (each.page_number, document.window_index(each.page_number, each.start)) in windows

    aliases = {
        key
        for each in extraction.relationships
        if each.kind is RelationshipKind.ALIAS
        for key in (each.source, each.target)
    }
    relationships = [each for each in extraction.relationships if each.kind is RelationshipKind.ALIAS or inside(each)]
    ends = {key for each in relationships for key in (each.source, each.target)}
    mentions: list[Mention] = []
    held = {mention.key for mention in extraction.mentions if inside(mention)}
    for mention in extraction.mentions:
        if inside(mention) or (mention.key in aliases | ends and mention.key not in held):
            mentions.append(mention)
            held.add(mention.key)
    return Extraction(tuple(mentions), tuple(relationships))


def _joined(findings: Mapping[int, PageFindings], instead: Extraction) -> Extraction:
    """A model's findings and those in its stead, in order of page and position; a place that both name counts once."""
    mentions = [mention for each in findings.values() for _, mention in each.mentions]
    places = {(mention.page_number, mention.start, mention.key) for mention in mentions}
    mentions += [each for each in instead.mentions if (each.page_number, each.start, each.key) not in places]
    related = [each for found in findings.values() for _, each in found.relationships]
    related += instead.relationships
    mentions.sort(key=lambda each: (each.page_number, -1 if each.start is None else each.start, each.key))
    related.sort(key=lambda each: (each.page_number, each.start, each.source, each.target, each.kind))
    return Extraction(tuple(mentions), tuple(related))
