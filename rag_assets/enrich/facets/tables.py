"""The step `document_facets`: brings the facet values of documents in step with their pages and summaries."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath

from rag_assets.contracts.content import Page
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import Embedder, LanguageModel
from rag_assets.contracts.tables import DOCUMENT_FACETS, DOCUMENTS, FILE_SUMMARIES
from rag_assets.enrich.facets.dialogues import STEP, context_needed, facet_dialogue
from rag_assets.enrich.facets.extraction import METHOD, Assignment, Classifier, Profile, profile
from rag_assets.enrich.facets.taxonomy import LANGUAGES, Taxonomy
from rag_assets.enrich.summaries.dialogues import Subject
from rag_assets.enrich.written import Written, update_with_model
from rag_assets.models.dialogue import Dialogue
from rag_assets.parsing.records import Record, load_pages, rows
from rag_assets.store.incremental import Rows, StepReport, update_shard
from rag_assets.store.lake import Lake, shard_of

_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]

_FACTS = ["document_id", "title", "language"]


def facets_code() -> str:
    """Digest of the code and prompts that facet values depend on."""
    return code_fingerprint(f"{__name__}:update_facets")


def wanted_facets(
    lake: Lake, shard: str, taxonomy: Taxonomy, read_tokens: int, model_name: str, embedder_name: str
) -> dict[str, str]:
    """What the facet values of each document of a shard are to be computed from.

    The summary of a document is made from its pages, so that its input stands for theirs.
    """
    fingerprint = digest(facets_code(), taxonomy.digest, read_tokens, model_name, embedder_name)
    return {name: digest(key, fingerprint) for name, key in lake.inputs(FILE_SUMMARIES, shard).items()}


def update_facets(
    lake: Lake,
    shards: Sequence[str],
    model: LanguageModel,
    embedder: Embedder,
    taxonomy: Taxonomy,
    read_tokens: int,
    progress: Progress,
) -> StepReport:
    """Classify the documents of some shards that changed.

    Args:
        lake: Where the tables are.
        shards: Shards to look at.
        model: The language model; one that does not write leaves it to the extractive algorithm.
        embedder: Embeds documents and values for the extractive algorithm.
        taxonomy: The facets and their values.
        read_tokens: Tokens of a document that the language model reads, at most.
        progress: Told documents or shards done, and in all.

    Raises:
        ModelError: A model cannot be used any longer; what was done before is written.
    """
    classifier = Classifier(taxonomy, embedder)

    def extract(shard: str, documents: Sequence[str]) -> Rows:
        found = {name: each for name, each in _load(lake, shard, documents).items() if each.has_text}
        assigned = classifier.classify([each.profile for each in found.values()])
        records = [_records(name, each, METHOD) for name, each in zip(found, assigned, strict=True)]
        return {DOCUMENT_FACETS.name: rows(DOCUMENT_FACETS.schema, [record for each in records for record in each])}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Written]]]:
        for document_id, document in _load(lake, shard, documents).items():
            yield document_id, _written(document_id, document)

    def _written(document_id: str, document: "_Document") -> Dialogue[Written]:
        if not document.has_text:
            return Written([])
        subject = document.subject(document_id)
        attempt = yield from facet_dialogue(subject, document.pages, taxonomy, read_tokens, model.context_tokens)
        if attempt.assignments is None:
            [assigned] = classifier.classify([document.profile])
            return Written(_records(document_id, assigned, METHOD), attempt.retry)
        return Written(_records(document_id, attempt.assignments, model.name))

    wanted = partial(
        wanted_facets,
        lake,
        taxonomy=taxonomy,
        read_tokens=read_tokens,
        model_name=model.name,
        embedder_name=embedder.name,
    )
    if model.generative:
        _warn_of_context(model, taxonomy)
        return update_with_model(lake, DOCUMENT_FACETS, shards, wanted, begin, model, progress)
    report = StepReport()
    for done, shard in enumerate(shards, start=1):
        update_shard(lake, [DOCUMENT_FACETS], shard, wanted(shard), partial(extract, shard), report)
        progress(done, len(shards))
    return report


def _warn_of_context(model: LanguageModel, taxonomy: Taxonomy) -> None:
    needed = max(context_needed(taxonomy, language) for language in LANGUAGES)
    if model.context_tokens < needed:
        _log.warning(
            "%s: the taxonomy %s needs a context of %s tokens, %s takes %s: facets of documents that do not fit are "
            "found without it",
            STEP,
            taxonomy.name,
            f"{needed:,}",
            model.name,
            f"{model.context_tokens:,}",
        )


class _Document:
    """A document with what it is classified by."""

    def __init__(self, row: Mapping[str, str], pages: Sequence[Page], summary: str) -> None:
        self.pages = pages
        self._row, self._summary = row, summary

    @property
    def has_text(self) -> bool:
        return any(page.blocks for page in self.pages)

    @property
    def profile(self) -> Profile:
        return profile(self._row["title"], self._summary, self.pages, self._row["language"])

    def subject(self, document_id: str) -> Subject:
        title = self._row["title"]
        stated = "" if title == PurePosixPath(document_id).stem else title
        names = [page.name or "" for page in self.pages]
        return Subject(document_id, shard_of(document_id), self._row["language"], stated, names)


def _load(lake: Lake, shard: str, documents: Sequence[str]) -> dict[str, _Document]:
    """Documents of a shard, by id."""
    facts = {row["document_id"]: row for row in lake.read(DOCUMENTS, [shard], _FACTS).to_pylist()}
    summaries = {
        row["document_id"]: row["text"]
        for row in lake.read(FILE_SUMMARIES, [shard], ["document_id", "text"]).to_pylist()
    }
    loaded = load_pages(lake, shard, documents).items()
    return {name: _Document(facts[name], pages, summaries.get(name, "")) for name, (_, pages) in loaded}


def _records(document_id: str, assignments: Sequence[Assignment], method: str) -> list[Record]:
    return [
        {
            "document_id": document_id,
            "shard": shard_of(document_id),
            "facet": each.facet,
            "value": each.value,
            "confidence": each.confidence,
            "evidence": each.evidence,
            "method": method,
        }
        for each in assignments
    ]
