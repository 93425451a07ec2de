"""The step `synthetic_qa`: brings questions and answers in step with the passages and facets of documents."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import PurePosixPath

from rag_assets.contracts.content import Page
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import CHUNKS, DOCUMENT_FACETS, DOCUMENTS, SYNTHETIC_QA
from rag_assets.enrich.questions.dialogues import question_dialogue
from rag_assets.enrich.questions.extraction import (
    METHOD,
    Pair,
    Passage,
    QuestionCounts,
    extract_questions,
    length_tokens,
)
from rag_assets.enrich.summaries.boilerplate import CommonLines, common_lines, common_marks, marked
from rag_assets.enrich.summaries.dialogues import Subject
from rag_assets.enrich.written import Written, update_with_model
from rag_assets.models.dialogue import Dialogue
from rag_assets.parsing.records import Record, load_pages, rows
from rag_assets.store.incremental import Rows, StepReport, update_shard
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.language import detect_language

Progress = Callable[[int, int], None]

_FACTS = ["document_id", "title", "language"]
_PASSAGE = ["document_id", "chunk_id", "page_id", "page_number", "block_indexes", "text", "language"]


@dataclass(frozen=True)
class QuestionRules:
    """How questions are made.

    Attributes:
        counts: How many a document gets.
        least_grade: Grade from which a question is searched.
        read_tokens: Tokens of a document that one call of a language model reads, at most.
        boilerplate_documents: Documents from which a line that they share is no source of extractive questions; 0 for
            none.
    """

    counts: QuestionCounts
    least_grade: float
    read_tokens: int
    boilerplate_documents: int


def questions_code() -> str:
    """Digest of the code and prompts that questions depend on."""
    return code_fingerprint(f"{__name__}:update_questions")


def wanted_questions(lake: Lake, shard: str, rules: QuestionRules, model_name: str) -> dict[str, str]:
    """What the questions of each document of a shard are to be computed from: its passages and its facet values."""
    counts = astuple(rules.counts)
    fingerprint = digest(questions_code(), *counts, rules.least_grade, rules.read_tokens, model_name)
    facets = lake.inputs(DOCUMENT_FACETS, shard)
    return {name: digest(key, facets.get(name), fingerprint) for name, key in lake.inputs(CHUNKS, shard).items()}


def update_questions(
    lake: Lake, shards: Sequence[str], model: LanguageModel, rules: QuestionRules, progress: Progress
) -> StepReport:
    """Make the questions and answers of the documents of some shards that changed.

    Extractive questions are made anew when other lines of their document have become common; those of a language model
    are not, because a changed file should cost its own calls only.

    Args:
        lake: Where the tables are.
        shards: Shards to look at.
        model: The language model; one that does not write leaves it to the extractive algorithm.
        rules: How questions are made.
        progress: Told documents or shards done, and in all.

    Raises:
        ModelError: The model cannot be used any longer; what was done before is written.
    """
    common = common_lines(lake, rules.boilerplate_documents)

    def extract(shard: str, documents: Sequence[str]) -> Rows:
        records: list[Record] = []
        for name, document in _load(lake, shard, documents).items():
            records += _records(name, document.extracted(name, rules.counts, common), rules, METHOD, document.language)
        return {SYNTHETIC_QA.name: rows(SYNTHETIC_QA.schema, records)}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Written]]]:
        facets: dict[str, list[str]] = {}
        for row in lake.read(DOCUMENT_FACETS, [shard], ["document_id", "facet", "value"]).to_pylist():
            facets.setdefault(row["document_id"], []).append(f"{row['facet']}: {row['value']}")
        for name, document in _load(lake, shard, documents).items():
            yield name, _written(name, document, facets.get(name, []), rules, common, model)

    wanted = partial(wanted_questions, lake, rules=rules, model_name=model.name)
    if model.generative:
        return update_with_model(lake, SYNTHETIC_QA, shards, wanted, begin, model, progress)
    report = StepReport()
    for done, shard in enumerate(shards, start=1):
        marks = common_marks(lake, shard, common)
        weighed = {name: marked(key, marks.get(name)) for name, key in wanted(shard).items()}
        update_shard(lake, [SYNTHETIC_QA], shard, weighed, partial(extract, shard), report)
        progress(done, len(shards))
    return report


@dataclass(frozen=True)
class _Document:
    """A document with what questions are made from."""

    title: str
    language: str
    pages: Sequence[Page]
    passages: Sequence[Passage]

    def count(self, counts: QuestionCounts) -> int:
        """Number of questions to ask."""
        return counts.of(length_tokens(self.passages))

    def extracted(self, document_id: str, counts: QuestionCounts, common: CommonLines) -> list[Pair]:
        """Questions without a language model."""
        if not self.passages:
            return []
        count = self.count(counts)
        return extract_questions(document_id, self.title, self.language, self.pages, self.passages, count, common)

    def subject(self, document_id: str) -> Subject:
        """What the language model is told of the document beside its text."""
        stated = "" if self.title == PurePosixPath(document_id).stem else self.title
        names = [page.name or "" for page in self.pages]
        return Subject(document_id, shard_of(document_id), self.language, stated, names)


def _written(
    document_id: str,
    document: _Document,
    facets: Sequence[str],
    rules: QuestionRules,
    common: CommonLines,
    model: LanguageModel,
) -> Dialogue[Written]:
    """Questions by the language model; the extractive ones where it gave none that can be used."""
    if not document.passages:
        return Written([])
    attempt = yield from question_dialogue(
        document.subject(document_id),
        document.passages,
        facets,
        document.count(rules.counts),
        rules.read_tokens,
        model.context_tokens,
    )
    if attempt.pairs:
        records = _records(document_id, attempt.pairs, rules, model.name, document.language)
        return Written(records, attempt.retry)
    extracted = document.extracted(document_id, rules.counts, common)
    return Written(_records(document_id, extracted, rules, METHOD, document.language), attempt.retry)


def _load(lake: Lake, shard: str, documents: Sequence[str]) -> dict[str, _Document]:
    """Documents of a shard, by id."""
    facts = {row["document_id"]: row for row in lake.read(DOCUMENTS, [shard], _FACTS).to_pylist()}
    wanted = set(documents)
    passages: dict[str, list[Passage]] = {}
    for row in lake.read(CHUNKS, [shard], _PASSAGE).to_pylist():
        if row["document_id"] in wanted:
            passages.setdefault(row["document_id"], []).append(_passage(row))
    return {
        name: _Document(title, facts[name]["language"], pages, passages.get(name, ()))
        for name, (title, pages) in load_pages(lake, shard, documents).items()
    }


def _passage(row: Mapping[str, object]) -> Passage:
    blocks = row["block_indexes"]
    return Passage(
        str(row["chunk_id"]),
        str(row["page_id"]),
        int(str(row["page_number"])),
        tuple(blocks) if isinstance(blocks, list) else (),
        str(row["text"]),
        str(row["language"]),
    )


def _records(document_id: str, pairs: Sequence[Pair], rules: QuestionRules, method: str, language: str) -> list[Record]:
    records = []
    for index, pair in enumerate(pairs):
        found = detect_language(f"{pair.question} {pair.answer}")
        records.append(
            {
                "qa_id": f"{document_id}#q{index}",
                "document_id": document_id,
                "shard": shard_of(document_id),
                "qa_index": index,
                "question": pair.question,
                "answer": pair.answer,
                "chunk_ids": [passage.chunk_id for passage in pair.passages],
                "page_ids": list(dict.fromkeys(passage.page_id for passage in pair.passages)),
                "grade": pair.grade,
                "indexed": pair.grade >= rules.least_grade,
                "language": language if found == "und" else found,
                "method": method,
            }
        )
    return records
