"""The figures of a run as tables of text and as JSON."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.judges.judgements import Judge
from rag_assets.evaluation.judging import ANSWER_MEASURES
from rag_assets.evaluation.runs import ANSWER, MEASURES, Evaluation, QuestionResult
from rag_assets.evaluation.scores import ALL, COST, ComparedSystems, Figure
from rag_assets.evaluation.statistics import FEW, Interval, change_text

_SPENT = ("input_tokens", "output_tokens", "cost_usd")
HEADLINE = ("R@5", "All@5", "MRR@10", "nDCG@10")
ANSWER_HEADLINE = ("correct", "right", "wrong", "refused", "invented", "cited passage")
MEANINGS: Mapping[str, str] = {
    "R@k": "share of the evidence that the first k results hold",
    "All@k": "share of the questions whose whole evidence the first k results hold",
    "Hit@k": "share of the questions for which one of the first k results holds evidence",
    "MRR@k": "mean of one over the rank of the first result that holds evidence",
    "nDCG@k": "order of the evidence among the first k results, 1 at best",
    "MAP@k": "mean of the precision wherever evidence is reached",
    "P@k": "share of the first k results that hold evidence",
    **ANSWER_MEASURES,
    "recall": "grade of 100: the passages hold what the question needs",
    "precision": "grade of 100: the passages have to do with the question",
    "specificity": "grade of 100: the answer keeps to what was asked, definitely",
    "breadth": "grade of 100: it covers all aspects",
    "depth": "grade of 100: it gives details, reasons and connections",
    "relevancy": "grade of 100: it is of use to the one who asks",
    "claims": "facts that an answer states",
    "clusters 0.5": "the same, those counted once that lie within this distance of each other (1 - ROUGE-L)",
    "faithful": "share of the sentences with a citation that follow from what they cite",
    "cited": "share of the sentences that cite something",
}


@dataclass(frozen=True)
class TextTable:
    """A table to print: heads of the columns, and cells by row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def interval_text(interval: Interval) -> str:
    """A figure with its interval; a star where it rests on fewer than `FEW` questions."""
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]{'*' if interval.count < FEW else ''}"


def amount_text(interval: Interval) -> str:
    """An amount, as of milliseconds, with its interval."""
    digits = 0 if interval.mean >= 100 else 1 if interval.mean >= 1 else 4
    return f"{interval.mean:,.{digits}f} [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]"


def overview_tables(evaluation: Evaluation, figures: Sequence[Figure]) -> Iterator[TextTable]:
    """A table a level, one of answers, and one of each judge that reads one answer at a time, with a row a system."""
    overall = {(each.system, each.level, each.measure): each.interval for each in figures if each.dimension == ALL}
    for level in (*reversed(evaluation.options.levels), ANSWER, *single_judges(evaluation)):
        measures = _headline(evaluation, level)
        present = [name for name in measures if any((each, level, name) in overall for each in evaluation.systems)]
        if not present:
            continue
        form = amount_text if level in {Judge.GRADING, Judge.CLAIMS} else interval_text
        amounts = (f"milliseconds {level}", *(_SPENT if level == ANSWER else ()))
        extra = [name for name in amounts if any((each, COST, name) in overall for each in evaluation.systems)]
        rows = tuple(
            (
                system,
                *(cell(overall.get((system, level, name)), form) for name in present),
                *(cell(overall.get((system, COST, name)), amount_text) for name in extra),
            )
            for system in evaluation.systems
        )
        searched = sum(question.searched for question in evaluation.questions)
        count = len(evaluation.questions) if level == ANSWER else searched
        title = f"Judged: {level}" if level in evaluation.judged else f"{level.title()}s, {count} questions"
        yield TextTable(title, ("mode", *present, *(name.split()[0] for name in extra)), rows)


def group_tables(
    evaluation: Evaluation, figures: Sequence[Figure], dimensions: Sequence[str], level: str, measure: str
) -> Iterator[TextTable]:
    """A table a dimension, with a row a group and a column a system, of one measure."""
    for dimension in dimensions:
        cells = {
            (each.group, each.system): each.interval
            for each in figures
            if (each.dimension, each.level, each.measure) == (dimension, level, measure)
        }
        counts = {group: max(cells[each].count for each in cells if each[0] == group) for group, _ in cells}
        rows = tuple(
            (group, str(count), *(cell(cells.get((group, system)), interval_text) for system in evaluation.systems))
            for group, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        )
        if rows:
            title = f"{level.title()} {measure} by {dimension}"
            yield TextTable(title, (dimension, "questions", *evaluation.systems), rows)


def comparison_table(comparison: ComparedSystems) -> TextTable:
    """Differences between two systems with the tests."""
    rows = tuple(
        (
            name,
            change_text(each.difference) + ("*" if each.difference.count < FEW else ""),
            *(f"{value:.3f}" for value in (each.p_bootstrap, each.p_randomisation, each.p_wilcoxon, each.p_holm)),
            f"{each.wins} / {each.losses}",
            f"{each.visible:.2f}" if math.isfinite(each.visible) else "",
        )
        for name, each in comparison.comparisons.items()
    )
    heads = ("measure", "difference", "p bootstrap", "p randomisation", "p Wilcoxon", "p Holm", "better / worse")
    return TextTable(f"{comparison.first} against {comparison.second}", (*heads, "smallest visible"), rows)


def main_measure(evaluation: Evaluation) -> tuple[Level | str, str]:
    """Level and measure that kinds of questions are told apart by."""
    levels = evaluation.options.levels
    return (levels[-1], evaluation.options.measures[0]) if levels else (ANSWER, "correct")


def headline_names(evaluation: Evaluation) -> list[str]:
    """Level and measure of the figures that come first."""
    answers = (ANSWER,) if evaluation.options.answers else ()
    levels = (*reversed(evaluation.options.levels), *answers, *single_judges(evaluation))
    return [f"{level} {name}" for level in levels for name in _headline(evaluation, level)]


def single_judges(evaluation: Evaluation) -> list[str]:
    """What a judge was asked for, but for the comparison of answers."""
    return [judge for judge in evaluation.judged if judge != Judge.PREFERENCE]


def meanings(names: Sequence[str]) -> list[str]:
    """What measures mean, in a line each."""
    families = (f"{name.partition('@')[0].replace('HitRate', 'Hit')}@k" if "@" in name else name for name in names)
    short = dict.fromkeys(families)
    return [f"{name}: {MEANINGS[name]}" for name in short if name in MEANINGS]


def as_record(
    evaluation: Evaluation,
    figures: Sequence[Figure],
    comparisons: Sequence[ComparedSystems],
    warnings: Sequence[str],
    judge: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole run for JSON, with what a judge said (`judge_record`); values that say nothing are left out."""
    return {
        **({"judge": dict(judge)} if judge else {}),
        "figures": [asdict(figure) | asdict(figure.interval) for figure in figures],
        "comparisons": [
            {
                "first": each.first,
                "second": each.second,
                "measures": {k: asdict(v) for k, v in each.comparisons.items()},
            }
            for each in comparisons
        ],
        "warnings": list(warnings),
        "questions": [
            {
                "id": question.id,
                "question": question.text,
                "type": question.type,
                "language": question.language,
                "results": {
                    system: _result_record(evaluation.results[system][question.id]) for system in evaluation.systems
                },
            }
            for question in evaluation.questions
        ],
    }


def _result_record(result: QuestionResult) -> dict[str, Any]:
    values = {
        level: {name: value for name, value in of_level.items() if not math.isnan(value)}
        for level, of_level in result.values.items()
    }
    found = {level: [place.chunk_id for place in places] for level, places in result.found.items()}
    record: dict[str, Any] = {"mode": result.mode, "values": values, "found": found}
    record["milliseconds"] = result.milliseconds
    if result.reply is not None:
        record["answer"] = {
            "text": result.reply.text,
            "answered": result.reply.answered,
            "cited": [place.label for place in result.reply.cited],
            "model": result.reply.model,
            "failure": result.reply.failure,
        }
    if result.reasons:
        record["reasons"] = {judge: list(lines) for judge, lines in result.reasons.items()}
    if result.input_tokens or result.output_tokens:
        record |= {name: getattr(result, name) for name in _SPENT}
    return record


def _headline(evaluation: Evaluation, level: Level | str) -> tuple[str, ...]:
    if level == ANSWER:
        return ANSWER_HEADLINE
    if level in evaluation.judged:
        return evaluation.judged[level]
    measures = evaluation.options.measures
    asked = (name for name in measures if name not in MEASURES)
    return tuple(dict.fromkeys((measures[0], *asked, *(name for name in HEADLINE if name in measures))))


def cell(interval: Interval | None, form: Callable[[Interval], str]) -> str:
    """A figure in a form, empty where there is none."""
    return "" if interval is None else form(interval)
