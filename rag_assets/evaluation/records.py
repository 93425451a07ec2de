"""Records of evaluations: the tables `evaluation_runs`, `evaluation_scores` and `evaluation_results`, written and read.

A run is a shard of each, so that runs never wait for each other and nothing written is touched again.
"""

import math
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets import __version__
from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.tables import EVALUATION_RESULTS, EVALUATION_RUNS, EVALUATION_SCORES
from rag_assets.evaluation.evidence import Level, Target
from rag_assets.evaluation.judging import outcome_of
from rag_assets.evaluation.questions import Question, question_line
from rag_assets.evaluation.runs import ANSWER, Evaluation, QuestionResult
from rag_assets.evaluation.scores import Figure
from rag_assets.store.lake import Lake

Record = dict[str, Any]
_RESULTS = 5  # of a question, with the beginning of their text: as many as the main measure counts
_TEXT_CHARS = 300


@dataclass(frozen=True)
class RunFacts:
    """What is recorded of a run beside its figures."""

    made_by: str  # `evaluate`, `job` or `gate`
    question_set: str  # name of the question set
    versions: Mapping[str, int | None]  # by system, the version that was asked; None of one that was held back
    language_model: str  # name of the language model that answered
    embedder: str  # name of the embedder
    warnings: Sequence[str] = ()  # what a reader of the figures has to know


def record_run(lake: Lake, evaluation: Evaluation, figures: Sequence[Figure], facts: RunFacts) -> str:
    """Add a run with its figures by all dimensions to the tables, and give its id.

    Raises:
        StoreError: It cannot be written.
    """
    now = datetime.now(UTC)
    run_id = f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    results = [
        _result(run_id, evaluation, system, position)
        for system in evaluation.systems
        for position in range(1, len(evaluation.questions) + 1)
    ]
    scores = [
        {
            "run_id": run_id,
            "system": figure.system,
            "level": str(figure.level),
            "measure": figure.measure,
            "dimension": figure.dimension,
            "group_name": figure.group,
            "mean": figure.interval.mean,
            "low": figure.interval.low,
            "high": figure.interval.high,
            "question_count": figure.interval.count,
        }
        for figure in figures
    ]
    runs = [_run(run_id, now, evaluation, system, facts) for system in evaluation.systems]
    # the row of the run comes last: what it names is there then
    for table, rows in ((EVALUATION_RESULTS, results), (EVALUATION_SCORES, scores), (EVALUATION_RUNS, runs)):
        lake.write(table, run_id, pa.Table.from_pylist(rows, table.schema), {run_id: table.name})
    return run_id


def recorded_runs(lake: Lake, run_id: str | None = None) -> list[Record]:
    """Rows of `evaluation_runs`, of one run or of all, the latest first; its systems in the order of their names.

    Raises:
        StoreError: A file is damaged.
    """
    rows: list[Record] = lake.read(EVALUATION_RUNS, None if run_id is None else [run_id]).to_pylist()
    return sorted(rows, key=lambda row: (row["evaluated_at"], row["run_id"]), reverse=True)


def set_digest(questions: Sequence[Question]) -> str:
    """Equal digests, equal questions, whatever their order."""
    return digest(*sorted(map(question_line, questions)))


def recorded_scores(lake: Lake, run_ids: Collection[str], dimensions: Collection[str]) -> list[Record]:
    """Rows of `evaluation_scores` of some runs, by some dimensions."""
    where = pc.field("dimension").isin(list(dimensions))
    rows: list[Record] = lake.read(EVALUATION_SCORES, run_ids, where=where).to_pylist()
    return rows


def recorded_results(
    lake: Lake, run_id: str, question_id: str | None = None, columns: Sequence[str] | None = None
) -> list[Record]:
    """Rows of `evaluation_results` of a run, in the order of the set; of one question, where one is named."""
    where = None if question_id is None else pc.field("question_id") == question_id
    rows: list[Record] = lake.read(EVALUATION_RESULTS, [run_id], columns, where=where).to_pylist()
    return sorted(rows, key=lambda row: row.get("position", 0))


def value_of(row: Record, level: str, measure: str) -> float:
    """A value of a row of `evaluation_results`; nan where the measure says nothing of the question."""
    values = (score["value"] for score in row["scores"] if (score["level"], score["measure"]) == (level, measure))
    return next(values, math.nan)


def _run(run_id: str, now: datetime, evaluation: Evaluation, system: str, facts: RunFacts) -> Record:
    results = evaluation.results[system].values()
    return {
        "run_id": run_id,
        "system": system,
        "evaluated_at": now,
        "made_by": facts.made_by,
        "version": facts.versions[system],
        "mode": system.partition("@")[0],
        "question_set": facts.question_set,
        "set_digest": set_digest(evaluation.questions),
        "question_count": len(evaluation.questions),
        "choosing_count": sum(question.purpose == "choosing" for question in evaluation.questions),
        "levels": [level.value for level in evaluation.options.levels],
        "measures": list(evaluation.options.measures),
        "answers": evaluation.options.answers,
        "language_model": facts.language_model,
        "embedder": facts.embedder,
        "release": __version__,
        "seconds": sum(sum(result.milliseconds.values()) for result in results) / 1000,
        "input_tokens": sum(result.input_tokens for result in results),
        "output_tokens": sum(result.output_tokens for result in results),
        "cost_usd": sum(result.cost_usd for result in results),
        "warnings": list(facts.warnings),
    }


def _result(run_id: str, evaluation: Evaluation, system: str, position: int) -> Record:
    question = evaluation.questions[position - 1]
    result, target = evaluation.results[system][question.id], evaluation.targets[system][question.id]
    reply = result.reply
    return {
        "run_id": run_id,
        "system": system,
        "question_id": question.id,
        "position": position,
        "question": question.text,
        "history": list(question.history),
        "type": question.type,
        "language": question.language,
        "answerable": question.answerable,
        "expected": _expected(evaluation, question, target),
        "answer_contains": [list(group) for group in question.answer_contains],
        "mode": result.mode,
        "scores": [
            {"level": str(level), "measure": measure, "value": value}
            for level, values in result.values.items()
            for measure, value in values.items()
            if not math.isnan(value)
        ],
        "results": _results(evaluation, result, target),
        "outcome": outcome_of(result.values.get(ANSWER, {})),
        "answer": reply.text if reply else None,
        "citations": [place.label for place in reply.cited] if reply else [],
        "failure": reply.failure if reply else None,
        "milliseconds": sum(result.milliseconds.values()),
        "input_tokens": result.input_tokens,
        "output_tokens": result.output_tokens,
        "cost_usd": result.cost_usd,
    }


def _expected(evaluation: Evaluation, question: Question, target: Target) -> list[Record]:
    missing_evidence = {evidence for level in evaluation.options.levels for evidence in target.missing[level]}
    return [
        {
            "document": evidence.document,
            "place": " ".join(filter(None, (evidence.place, evidence.cells))),
            "quote": evidence.quote,
            "alternative": evidence.alternative,
            "indexed": evidence not in missing_evidence,
        }
        for evidence in question.evidence
    ]


def _results(evaluation: Evaluation, result: QuestionResult, target: Target) -> list[Record]:
    if not result.found:
        return []
    level = max(result.found, key=list(Level).index)
    wanted_ids = target.ids(level)
    return [
        {
            "chunk_id": place.chunk_id,
            "page_id": place.page_id,
            "document_id": place.document_id,
            "place": place.label,
            "text": evaluation.passages[place.chunk_id][:_TEXT_CHARS],
            "relevant": not wanted_ids.isdisjoint(place.ids(level)),
        }
        for place in result.found[level][:_RESULTS]
    ]
