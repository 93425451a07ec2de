"""The step that brings `entity_mentions`, `relationship_mentions` and `claims` in step with the parsed pages."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property, partial

from rag_assets.contracts.content import Page, page_id_of
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import BLOCKS, CHUNKS, CLAIMS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS
from rag_assets.enrich.documents import Subject, stated_title
from rag_assets.enrich.written import Progress, Records, Wanted, update_documents
from rag_assets.graph.entity_types import EntityTypes
from rag_assets.graph.mentions.dialogues import Claim, MentionOptions, WindowAnswer, check_windows, window_dialogue
from rag_assets.graph.mentions.extraction import (
    METHOD,
    Extraction,
    Extractor,
    Mention,
    RelationshipKind,
    RelationshipMention,
)
from rag_assets.graph.mentions.pages import (
    Window,
    content_pages,
    page_language,
    page_units,
    page_windows,
    placed_blocks,
    window_of,
    window_text,
)
from rag_assets.graph.mentions.recognizers import Recognizer
from rag_assets.models.dialogue import Dialogue, side_by_side
from rag_assets.parsing.records import Record, load_pages, page_text, rows
from rag_assets.store.incremental import Compute, Rows, StepReport, finished, stale_documents, update_shard
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.plain import squeezed

_DOCUMENTS_AT_ONCE = 256

MENTION_TABLES = (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIMS)


@dataclass
class MentionUpdate:
    """What the step did."""

    report: StepReport = field(default_factory=StepReport)
    # items of a language model's answers that were not taken, by reason
    dropped: Counter[str] = field(default_factory=Counter)


def wanted_mentions(
    lake: Lake, shard: str, options: MentionOptions, types: EntityTypes, model_name: str
) -> dict[str, str]:
    """What the mentions of each document of a shard are to be computed from; one without passages has none yet."""
    code = code_fingerprint(f"{__name__}:update_mentions", "rag_assets.graph.mentions.recognizers:SpacyRecognizer")
    fingerprint = digest(code, *astuple(options), types.digest, model_name)
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

    Raises:
        ModelError: A model cannot be used any longer; what was done before is written.
    """
    update = MentionUpdate()
    extractor = Extractor(recognizer, types)

    def wanted(shard: str) -> Mapping[str, str]:
        return wanted_mentions(lake, shard, options, types, model.name)

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        passages = _load_passages(lake, shard)
        for name, (title, pages) in load_pages(lake, shard, documents).items():
            document = _Document(name, pages, options, passages.get(name, {}))
            yield name, _written(document, stated_title(name, title), model, types, extractor, update)

    if model.generative:
        update.report = update_documents(lake, MENTION_TABLES, shards, wanted, begin, model, progress)
        return update
    for shard, keys, extract in _extractions(lake, shards, wanted, extractor, options, progress):
        update_shard(lake, MENTION_TABLES, shard, keys, extract, update.report)
    return update


def _extractions(
    lake: Lake,
    shards: Sequence[str],
    wanted: Wanted,
    extractor: Extractor,
    options: MentionOptions,
    progress: Progress,
) -> Iterator[tuple[str, Mapping[str, str], Compute]]:
    """For each shard what its documents are to be computed from, and what gives the rows of those that changed.

    The pages of several shards are read at once, because a recognizer takes much text at less cost. Progress is told
    documents: of those that are read at once, as many as the share of their texts that were read.
    """
    every = {shard: wanted(shard) for shard in shards}
    stale = {shard: stale_documents(lake, MENTION_TABLES, shard, keys) for shard, keys in every.items()}
    done_count, to_do = 0, sum(map(len, stale.values()))
    batch: list[str] = []
    for shard in shards:
        batch.append(shard)
        count = sum(len(stale[shard]) for shard in batch)
        if shard != shards[-1] and count < _DOCUMENTS_AT_ONCE:
            continue
        pages = {
            name: pages
            for of_shard in batch
            for name, (_, pages) in load_pages(lake, of_shard, stale[of_shard]).items()
        }

        def report(read_count: int, texts: int, before: int = done_count, at_once: int = count) -> None:
            if reached := before + read_count * at_once // texts:
                progress(reached, to_do)

        extractions = extractor.extract(list(pages.values()), report)
        results = dict(zip(pages, zip(pages.values(), extractions, strict=True), strict=True))
        for of_shard in batch:
            yield of_shard, every[of_shard], partial(_extracted_rows, lake, of_shard, results, options)
        done_count, batch = done_count + count, []
        if to_do:
            progress(done_count, to_do)


def _extracted_rows(
    lake: Lake,
    shard: str,
    results: Mapping[str, tuple[Sequence[Page], Extraction]],
    options: MentionOptions,
    documents: Sequence[str],
) -> Rows:
    """Rows of documents of a shard, of what was found in their pages."""
    passages = _load_passages(lake, shard)
    records: dict[str, list[Record]] = {table.name: [] for table in MENTION_TABLES}
    for name in documents:
        pages, extraction = results[name]
        document = _Document(name, pages, options, passages.get(name, {}))
        for table_name, of_document in document.records(extraction, [], METHOD).items():
            records[table_name] += of_document
    return {table.name: rows(table.schema, records[table.name]) for table in MENTION_TABLES}


class _BlockPassages:
    """The passages that are taken from one block of a page, in order.

    A big table is one block of thousands of passages and rows, so the passage of a row is looked up by its cells, the
    rarest first. Only where no passage with one of them holds the name are all looked through.
    """

    def __init__(self) -> None:
        self._chunk_ids: list[str] = []
        self._texts: list[str] = []

    def add(self, chunk_id: str, text: str) -> None:
        """Add the next one."""
        self._chunk_ids.append(chunk_id)
        self._texts.append(text)

    def best(self, place: str, name: str) -> str:
        """The chunk id of the passage that holds a name and most of the cells of its place; the first of several."""
        if len(self._chunk_ids) == 1:
            return self._chunk_ids[0]
        cells = list(filter(None, map(squeezed, place.replace("\n", CELL_SIGN).split(CELL_SIGN))))
        squeezed_name, texts = squeezed(name), self._squeezed
        holders = sorted((self._cells[cell] for cell in cells if cell in self._cells), key=len)
        named = (
            [index for index in indexes if squeezed_name in texts[index]] for indexes in (*holders, range(len(texts)))
        )
        candidates = next(filter(None, named), range(len(texts)))
        return self._chunk_ids[max(candidates, key=lambda index: sum(cell in texts[index] for cell in cells))]

    @cached_property
    def _squeezed(self) -> list[str]:
        return [squeezed(text) for text in self._texts]

    @cached_property
    def _cells(self) -> dict[str, list[int]]:
        """Places of the passages with each cell, and with each value of a cell that follows its label."""
        indexes_by_cell: dict[str, list[int]] = {}
        for index, text in enumerate(self._texts):
            cells = text.replace("\n", CELL_SIGN).split(CELL_SIGN)
            values = [value for cell in cells if (value := cell.partition(": ")[2])]
            for cell in dict.fromkeys(map(squeezed, (*cells, *values))):
                indexes_by_cell.setdefault(cell, []).append(index)
        return indexes_by_cell


def _load_passages(lake: Lake, shard: str) -> dict[str, dict[tuple[int, int], _BlockPassages]]:
    """Passages of the documents of a shard by document, page and block, in order."""
    passages: dict[str, dict[tuple[int, int], _BlockPassages]] = {}
    columns = ["document_id", "page_number", "chunk_index", "chunk_id", "block_indexes", "text"]
    for row in lake.read(CHUNKS, [shard], columns).to_pylist():
        for block in dict.fromkeys(row["block_indexes"]):
            of_document = passages.setdefault(row["document_id"], {})
            of_document.setdefault((row["page_number"], block), _BlockPassages()).add(row["chunk_id"], row["text"])
    return passages


class _Document:
    """A document whose mentions are written, with its passages by page and block."""

    def __init__(
        self,
        document_id: str,
        pages: Sequence[Page],
        options: MentionOptions,
        passages: Mapping[tuple[int, int], _BlockPassages],
    ) -> None:
        self.document_id, self.pages, self.content = document_id, pages, content_pages(pages)
        self.options, self._passages = options, passages

    @cached_property
    def languages(self) -> dict[int, str]:
        """Language of each page."""
        return {page.number: page_language(page) for page in self.content}

    @cached_property
    def texts(self) -> dict[int, str]:
        """Text of each page."""
        return {page.number: page_text(page) for page in self.content}

    @cached_property
    def windows(self) -> dict[int, list[Window]]:
        """Windows of each page."""
        options = self.options
        return {
            page.number: page_windows(
                page, page_units(page, self.languages[page.number]), options.window_tokens, options.overlap_tokens
            )
            for page in self.content
        }

    @cached_property
    def _block_ends(self) -> dict[int, list[tuple[int, int]]]:
        return {
            page.number: [(start + len(block.text) + 1, index) for index, start, block in placed_blocks(page)]
            for page in self.content
        }

    def window_index(self, page_number: int, start: int | None) -> int:
        """Window that a position counts in."""
        return window_of(self.windows[page_number], start or 0)

    def records(self, extraction: Extraction, claims: Sequence[Claim], method: str) -> dict[str, list[Record]]:
        """Rows of the three tables.

        Mentions and relationships whose block is known are the extractive algorithm's; the method wrote the others.
        """
        mentions = [
            {
                **self._facts(mention, method, mention.name),
                "mention_index": index,
                "name": mention.name,
                "name_key": mention.key,
                "type": mention.type,
                "description": mention.description,
                "start_char": mention.start,
            }
            for index, mention in enumerate(extraction.mentions)
        ]
        relationships = [
            {
                **self._facts(relationship, method),
                "mention_index": index,
                "source_key": relationship.source,
                "target_key": relationship.target,
                "kind": str(relationship.kind),
                "strength": relationship.strength,
                "description": relationship.description,
            }
            for index, relationship in enumerate(extraction.relationships)
        ]
        claim_rows = [
            {
                **self._facts(claim, method, claim.source_text),
                "claim_index": index,
                "subject_key": claim.subject,
                "object_key": claim.object,
                "type": claim.type,
                "status": claim.status,
                "start_date": claim.start_date,
                "end_date": claim.end_date,
                "description": claim.description,
                "source_text": claim.source_text,
            }
            for index, claim in enumerate(claims)
        ]
        return {ENTITY_MENTIONS.name: mentions, RELATIONSHIP_MENTIONS.name: relationships, CLAIMS.name: claim_rows}

    def _facts(self, item: Mention | RelationshipMention | Claim, method: str, name: str = "") -> Record:
        page_number, start, block = item.page_number, item.start, item.block_index
        if block is None and start is not None:
            ends = self._block_ends.get(page_number, [])
            next_index = bisect_right(ends, start, key=lambda pair: pair[0])
            block = ends[next_index][1] if next_index < len(ends) else None
        return {
            "document_id": self.document_id,
            "shard": shard_of(self.document_id),
            "page_id": page_id_of(self.document_id, page_number),
            "page_number": page_number,
            "chunk_id": self._chunk_id(page_number, block, item.place, name),
            "window_index": self.window_index(page_number, start),
            "method": method if item.block_index is None else METHOD,
        }

    def _chunk_id(self, page_number: int, block: int | None, place: str, name: str) -> str | None:
        """Passage that holds a place: of those taken from its block, the one that has most of its words."""
        passages = self._passages.get((page_number, block)) if block is not None else None
        return passages.best(place, name) if passages is not None else None


def _written(
    document: _Document,
    title: str,
    model: LanguageModel,
    types: EntityTypes,
    extractor: Extractor,
    update: MentionUpdate,
) -> Dialogue[Records]:
    """Rows of a document by a language model; windows that it could not do are left to the extractive algorithm."""
    name, options = document.document_id, document.options
    dialogues: dict[tuple[int, int], Dialogue[WindowAnswer | None]] = {}
    for page in document.content:
        subject = Subject(name, shard_of(name), document.languages[page.number], title, (page.name or "",))
        for window in document.windows[page.number]:
            text = window_text(window, document.texts[page.number])
            dialogue = window_dialogue(subject, text, types, options, model.context_tokens)
            dialogues[page.number, window.index] = dialogue
    answers = dict(zip(dialogues, (yield from side_by_side(list(dialogues.values()))), strict=True))
    missing_places = {place for place, answer in answers.items() if answer is None}
    mentions: list[Mention] = []
    relationships: list[RelationshipMention] = []
    claims: list[Claim] = []
    for page in document.content:
        windows, text = document.windows[page.number], document.texts[page.number]
        of_page = {
            window.index: answer for window in windows if (answer := answers[page.number, window.index]) is not None
        }
        findings = check_windows(page.number, text, windows, of_page, types)
        mentions += findings.mentions
        relationships += findings.relationships
        claims += findings.claims
        update.dropped += findings.dropped
    instead = _of_windows(document, extractor.extract([document.pages])[0], missing_places)
    places = {(mention.page_number, mention.start, mention.key) for mention in mentions}  # counted once
    mentions += [
        mention for mention in instead.mentions if (mention.page_number, mention.start, mention.key) not in places
    ]
    relationships += instead.relationships
    mentions.sort(
        key=lambda mention: (mention.page_number, -1 if mention.start is None else mention.start, mention.key)
    )
    relationships.sort(
        key=lambda relationship: (
            relationship.page_number,
            relationship.start,
            relationship.source,
            relationship.target,
            relationship.kind,
        )
    )
    return document.records(Extraction(tuple(mentions), tuple(relationships)), claims, model.name)


def _of_windows(document: _Document, extraction: Extraction, windows: set[tuple[int, int]]) -> Extraction:
    """What the extractive algorithm found in some windows, and the aliases that it found in all of them."""

    def inside(item: Mention | RelationshipMention) -> bool:
        return (item.page_number, document.window_index(item.page_number, item.start)) in windows

    relationships = [edge for edge in extraction.relationships if edge.kind is RelationshipKind.ALIAS or inside(edge)]
    ends = {key for edge in relationships for key in (edge.source, edge.target)}
    mentions: list[Mention] = []
    keys = {mention.key for mention in extraction.mentions if inside(mention)}
    for mention in extraction.mentions:
        if inside(mention) or (mention.key in ends and mention.key not in keys):
            mentions.append(mention)
            keys.add(mention.key)
    return Extraction(tuple(mentions), tuple(relationships))
