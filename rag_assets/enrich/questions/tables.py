"""The step `synthetic_qa`: brings questions and answers in step with the passages and facets of documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import CHUNKS, DOCUMENT_FACETS, SYNTHETIC_QA
from rag_assets.enrich.documents import Document, load_documents
from rag_assets.enrich.questions.dialogues import question_dialogue
from rag_assets.enrich.questions.extraction import (
    METHOD,
    Pair,
    Passage,
    QuestionCounts,
    extract_questions,
    length_tokens,
)
from rag_assets.enrich.summaries.boilerplate import common_lines, with_common_lines
from rag_assets.enrich.written import Progress, Records, update_documents
from rag_assets.models.dialogue import Dialogue
from rag_assets.parsing.records import Record
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.language import detect_language

_PASSAGE = ["document_id", "chunk_id", "page_id", "page_number", "block_indexes", "text", "language"]


@dataclass(frozen=True)
class QuestionRules:
    """How questions are made.

    Attributes:
        least_grade: Grade from which a question is searched.
        read_tokens: Tokens of a document that one call of a language model reads, at most.
        boilerplate_documents: Documents from which a line that they share is no source of extractive questions; 0 for
            none.
    """

    counts: QuestionCounts
    least_grade: float
    read_tokens: int
    boilerplate_documents: int


def wanted_questions(lake: Lake, shard: str, rules: QuestionRules, model_name: str) -> dict[str, str]:
    """What the questions of each document of a shard are to be computed from: its passages and its facet values."""
    code = code_fingerprint(f"{__name__}:update_questions")
    fingerprint = digest(code, *astuple(rules.counts), rules.least_grade, rules.read_tokens, model_name)
    facets = lake.inputs(DOCUMENT_FACETS, shard)
    return {name: digest(key, facets.get(name), fingerprint) for name, key in lake.inputs(CHUNKS, shard).items()}


def update_questions(
    lake: Lake, shards: Sequence[str], model: LanguageModel, rules: QuestionRules, progress: Progress
) -> StepReport:
    """Make the questions and answers of the documents of some shards that changed.

    Extractive questions are made anew when other lines of their document have become common; those of a language model
    are not, because a changed file should cost its own calls only.

    Raises:
        ModelError: The model cannot be used any longer; what was done before is written.
    """
    common = common_lines(lake, rules.boilerplate_documents)

    def wanted(shard: str) -> Mapping[str, str]:
        keys = wanted_questions(lake, shard, rules, model.name)
        return keys if model.generative else with_common_lines(lake, shard, common, keys)

    def extracted(document: Document, passages: Sequence[Passage]) -> list[Record]:
        if not passages:
            return []
        name, count = document.document_id, rules.counts.of(length_tokens(passages))
        pairs = extract_questions(name, document.title, document.language, document.pages, passages, count, common)
        return _records(document, pairs, rules, METHOD)

    def extract(shard: str, documents: Sequence[str]) -> Records:
        loaded = _load(lake, shard, documents)
        return {SYNTHETIC_QA.name: [row for each in loaded for row in extracted(*each)]}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        facets: dict[str, list[str]] = {}
        for row in lake.read(DOCUMENT_FACETS, [shard], ["document_id", "facet", "value"]).to_pylist():
            facets.setdefault(row["document_id"], []).append(f"{row['facet']}: {row['value']}")
        for document, passages in _load(lake, shard, documents):
            yield document.document_id, written(document, passages, facets.get(document.document_id, []))

    def written(document: Document, passages: Sequence[Passage], facets: Sequence[str]) -> Dialogue[Records]:
        """Questions by the language model; the extractive ones where it gave none that can be used."""
        if not passages:
            return {}
        count = rules.counts.of(length_tokens(passages))
        pairs = yield from question_dialogue(
            document.subject(), passages, facets, count, rules.read_tokens, model.context_tokens
        )
        records = _records(document, pairs, rules, model.name) if pairs else extracted(document, passages)
        return {SYNTHETIC_QA.name: records}

    return update_documents(lake, SYNTHETIC_QA, shards, wanted, extract, begin, model, progress)


def _load(lake: Lake, shard: str, documents: Sequence[str]) -> list[tuple[Document, list[Passage]]]:
    """Documents of a shard with their passages."""
    passages: dict[str, list[Passage]] = {}
    for row in lake.read(CHUNKS, [shard], _PASSAGE).to_pylist():
        row["block_indexes"] = tuple(row["block_indexes"] or ())
        passages.setdefault(row.pop("document_id"), []).append(Passage(**row))
    return [(each, passages.get(each.document_id, [])) for each in load_documents(lake, shard, documents)]


def _records(document: Document, pairs: Sequence[Pair], rules: QuestionRules, method: str) -> list[Record]:
    records = []
    for index, pair in enumerate(pairs):
        language = detect_language(f"{pair.question} {pair.answer}")
        records.append(
            {
                "qa_id": f"{document.document_id}#q{index}",
                "document_id": document.document_id,
                "shard": shard_of(document.document_id),
                "qa_index": index,
                "question": pair.question,
                "answer": pair.answer,
                "chunk_ids": [passage.chunk_id for passage in pair.passages],
                "page_ids": list(dict.fromkeys(passage.page_id for passage in pair.passages)),
                "grade": pair.grade,
                "indexed": pair.grade >= rules.least_grade,
                "language": document.language if language == "und" else language,
                "method": method,
            }
        )
    return records
