"""The step `document_facets`: brings the facet values of documents in step with their pages and summaries."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import Embedder, LanguageModel
from rag_assets.contracts.tables import DOCUMENT_FACETS, FILE_SUMMARIES
from rag_assets.enrich.documents import Document, load_documents
from rag_assets.enrich.facets.dialogues import STEP, context_needed, facet_dialogue
from rag_assets.enrich.facets.extraction import METHOD, Assignment, Classifier, Profile, profile
from rag_assets.enrich.facets.taxonomy import LANGUAGES, Taxonomy
from rag_assets.enrich.written import Progress, Records, update_documents
from rag_assets.models.dialogue import Dialogue
from rag_assets.parsing.records import Record
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import Lake, shard_of

_log = logging.getLogger(__name__)


def wanted_facets(
    lake: Lake, shard: str, taxonomy: Taxonomy, read_tokens: int, model_name: str, embedder_name: str
) -> dict[str, str]:
    """What the facet values of each document of a shard are to be computed from.

    The summary of a document is made from its pages, so that its input stands for theirs.
    """
    code = code_fingerprint(f"{__name__}:update_facets")
    fingerprint = digest(code, taxonomy.digest, read_tokens, model_name, embedder_name)
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

    A model that writes reads at most `read_tokens` of a document; the embedder serves the extractive algorithm.

    Raises:
        ModelError: A model cannot be used any longer; what was done before is written.
    """
    classifier = Classifier(taxonomy, embedder)

    def wanted(shard: str) -> Mapping[str, str]:
        return wanted_facets(lake, shard, taxonomy, read_tokens, model.name, embedder.name)

    def extract(shard: str, documents: Sequence[str]) -> Records:
        loaded = [each for each in _load(lake, shard, documents) if _has_text(each[0])]
        assigned = classifier.classify([_profile(*each) for each in loaded])
        records = [_records(document, found, METHOD) for (document, _), found in zip(loaded, assigned, strict=True)]
        return {DOCUMENT_FACETS.name: [record for of_document in records for record in of_document]}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        for document, summary in _load(lake, shard, documents):
            yield document.document_id, written(document, summary)

    def written(document: Document, summary: str) -> Dialogue[Records]:
        if not _has_text(document):
            return {}
        found = yield from facet_dialogue(
            document.subject(), document.pages, taxonomy, read_tokens, model.context_tokens
        )
        if found is None:
            [assigned] = classifier.classify([_profile(document, summary)])
            return {DOCUMENT_FACETS.name: _records(document, assigned, METHOD)}
        return {DOCUMENT_FACETS.name: _records(document, found, model.name)}

    if model.generative:
        _warn_of_context(model, taxonomy)
    return update_documents(lake, DOCUMENT_FACETS, shards, wanted, extract, begin, model, progress)


def _warn_of_context(model: LanguageModel, taxonomy: Taxonomy) -> None:
    needed = max(context_needed(taxonomy, language) for language in LANGUAGES)
    if model.context_tokens < needed:
        _log.warning(
            "%s: taxonomy %s needs a context of %s tokens, %s takes %s: documents that do not fit go without it",
            STEP,
            taxonomy.name,
            f"{needed:,}",
            model.name,
            f"{model.context_tokens:,}",
        )


def _load(lake: Lake, shard: str, documents: Sequence[str]) -> list[tuple[Document, str]]:
    """Documents of a shard with their summaries; empty for one without."""
    rows = lake.read(FILE_SUMMARIES, [shard], ["document_id", "text"]).to_pylist()
    summaries = {row["document_id"]: row["text"] for row in rows}
    return [(each, summaries.get(each.document_id, "")) for each in load_documents(lake, shard, documents)]


def _has_text(document: Document) -> bool:
    return any(page.blocks for page in document.pages)


def _profile(document: Document, summary: str) -> Profile:
    return profile(document.title, summary, document.pages, document.language)


def _records(document: Document, assignments: Sequence[Assignment], method: str) -> list[Record]:
    name = document.document_id
    return [
        {"document_id": name, "shard": shard_of(name), **asdict(assignment), "method": method}
        for assignment in assignments
    ]
