"""A run for people: its figures as tables of text, all of it as JSON, and as one HTML page with overview, kinds of
questions, comparison, and every question with its passages.

The page needs no other file, runs no script and loads nothing; every text of a document, question or model is escaped.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import product
from typing import Any

from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.judges.judgements import Judge
from rag_assets.evaluation.judging import ANSWER_MEASURES, outcome_of
from rag_assets.evaluation.questions import Question
from rag_assets.evaluation.runs import ANSWER, MEASURES, Evaluation, QuestionResult, ResultPlace
from rag_assets.evaluation.scores import ALL, COST, GROUPS, ComparedSystems, Figure
from rag_assets.evaluation.statistics import FEW, Interval, change_text
from rag_assets.text.plain import printable

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
QUESTIONS_SHOWN = 500  # those that fail first; more make a page that browsers show slowly
PLACES_SHOWN = 5  # results of each system

_CLASSES = {1.0: "good", 0.0: "bad"}  # of values; others are dim
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; }
td { font-variant-numeric: tabular-nums; }
details { border-bottom: 1px solid var(--line); padding: .25rem 0; }
details details { border: 0; }
summary { cursor: pointer; }
.good { color: var(--good); } .bad { color: var(--bad); }
.dim { opacity: .7; } .text { white-space: pre-wrap; overflow-wrap: anywhere; margin: .25rem 0 .5rem; }
li.note { color: var(--bad); }
"""


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
    overall = {
        (figure.system, figure.level, figure.measure): figure.interval for figure in figures if figure.dimension == ALL
    }
    for level in (*reversed(evaluation.options.levels), ANSWER, *single_judges(evaluation)):
        measures = _headline(evaluation, level)
        present = [name for name in measures if any((system, level, name) in overall for system in evaluation.systems)]
        if not present:
            continue
        form = amount_text if level in {Judge.GRADING, Judge.CLAIMS} else interval_text
        amounts = (f"milliseconds {level}", *(_SPENT if level == ANSWER else ()))
        extra = [name for name in amounts if any((system, COST, name) in overall for system in evaluation.systems)]
        rows = tuple(
            (
                system,
                *(cell(overall.get((system, level, name)), form) for name in present),
                *(cell(overall.get((system, COST, name)), amount_text) for name in extra),
            )
            for system in evaluation.systems
        )
        searched_count = sum(question.searched for question in evaluation.questions)
        count = len(evaluation.questions) if level == ANSWER else searched_count
        title = f"Judged: {level}" if level in evaluation.judged else f"{level.title()}s, {count} questions"
        yield TextTable(title, ("mode", *present, *(name.split()[0] for name in extra)), rows)


def group_tables(evaluation: Evaluation, figures: Sequence[Figure], dimensions: Sequence[str]) -> Iterator[TextTable]:
    """A table a dimension, with a row a group and a column a system: of the main measure, then of answers."""
    answers = [(ANSWER, "correct")] if evaluation.options.answers else []
    for (level, measure), dimension in product(dict.fromkeys([main_measure(evaluation), *answers]), dimensions):
        cells = {
            (figure.group, figure.system): figure.interval
            for figure in figures
            if (figure.dimension, figure.level, figure.measure) == (dimension, level, measure)
        }
        counts = {group: max(cells[key].count for key in cells if key[0] == group) for group, _ in cells}
        rows = tuple(
            (group, str(count), *(cell(cells.get((group, system)), interval_text) for system in evaluation.systems))
            for group, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        )
        if rows:
            title = f"{level.title()} {measure} by {dimension}"
            yield TextTable(title, (dimension, "questions", *evaluation.systems), rows)


def comparison_table(comparison: ComparedSystems) -> TextTable:
    """Differences between two systems with the tests."""
    rows = tuple(
        (
            name,
            change_text(result.difference) + ("*" if result.difference.count < FEW else ""),
            *(
                f"{value:.3f}"
                for value in (result.p_bootstrap, result.p_randomisation, result.p_wilcoxon, result.p_holm)
            ),
            f"{result.wins} / {result.losses}",
            f"{result.visible:.2f}" if math.isfinite(result.visible) else "",
        )
        for name, result in comparison.comparisons.items()
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


def meanings(evaluation: Evaluation) -> list[str]:
    """What the measures that come first mean, in a line each."""
    names = [name.partition(" ")[2] for name in headline_names(evaluation)]
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
                "first": comparison.first,
                "second": comparison.second,
                "measures": {k: asdict(v) for k, v in comparison.comparisons.items()},
            }
            for comparison in comparisons
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
    chunk_ids = {level: [place.chunk_id for place in places] for level, places in result.found.items()}
    record: dict[str, Any] = {"mode": result.mode, "values": values, "found": chunk_ids}
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
    extra_names = (name for name in measures if name not in MEASURES)
    return tuple(dict.fromkeys((measures[0], *extra_names, *(name for name in HEADLINE if name in measures))))


def cell(interval: Interval | None, form: Callable[[Interval], str]) -> str:
    """A figure in a form, empty where there is none."""
    return "" if interval is None else form(interval)


def report_page(
    title: str,
    evaluation: Evaluation,
    figures: Sequence[Figure],
    comparisons: Sequence[ComparedSystems],
    warnings: Sequence[str],
    judged: Sequence[TextTable] = (),
    tables: Sequence[TextTable] = (),
) -> Iterator[str]:
    """The page, in pieces."""
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body><h1>{_text(title)}</h1>"
    yield f"<ul>{''.join(f'<li class=note>{_text(line)}</li>' for line in warnings)}</ul>"
    for table in (*tables, *overview_tables(evaluation, figures), *judged):
        yield _table(table)
    level, measure = main_measure(evaluation)
    yield "<h2>Where it fails</h2>"
    for table in group_tables(evaluation, figures, tuple(GROUPS)):
        yield _table(table)
    for comparison in comparisons:
        yield from _comparison(comparison)
    yield f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in meanings(evaluation))}"
    yield f"<li>brackets: 95 % intervals, too narrow where a star marks fewer than {FEW} questions</li></ul>"
    yield from _questions(evaluation, level, measure)
    yield "</body></html>\n"


def _questions(evaluation: Evaluation, level: Level | str, measure: str) -> Iterator[str]:
    def worst(question: Question) -> float:
        values = [_score(evaluation.results[system][question.id], level, measure) for system in evaluation.systems]
        return min((value for value in values if not math.isnan(value)), default=2.0)

    worst_questions = sorted(evaluation.questions, key=worst)[:QUESTIONS_SHOWN]
    yield f"<h2>Questions</h2><p>{len(worst_questions)} of {len(evaluation.questions)}, those that fail first</p>"
    for question in worst_questions:
        marks = "".join(
            f" <span class={_CLASSES.get(value, 'dim')}>{_text(system)} {value:.2f}</span>"
            for system in evaluation.systems
            if not math.isnan(value := _score(evaluation.results[system][question.id], level, measure))
        )
        kind = " · ".join(filter(None, (question.id, question.type, question.language)))
        yield f'<details id="q-{_text(question.id)}"><summary>{_text(question.text)} '
        yield f"<span class=dim>{_text(kind)}</span>"
        yield f"{marks}</summary>{_expected(evaluation, question)}"
        yield _places(evaluation, question, level)
        yield from _answers(evaluation, question)
        yield "</details>\n"


def _score(result: QuestionResult, level: str, measure: str) -> float:
    """How well a question did: by its results, or where these are not judged, by its answer."""
    value = result.values.get(level, {}).get(measure, math.nan)
    return result.values.get(ANSWER, {}).get("correct", math.nan) if math.isnan(value) else value


def _expected(evaluation: Evaluation, question: Question) -> str:
    targets = [evaluation.targets[system][question.id] for system in evaluation.systems]
    missing_evidence = {item for target in targets for group in target.missing.values() for item in group}
    parts = [f"<p class=dim>asked before: {_text(' / '.join(question.history))}</p>"] if question.history else []
    if not question.answerable:
        parts.append("<p>expected: no answer</p>")
    rows = ""
    for evidence in question.evidence:
        place = " › ".join(filter(None, (evidence.document, evidence.place, evidence.cells)))
        rows += (
            f"<tr><td>{_text(place)}</td><td>{_text(evidence.quote)}</td><td>{'or ' if evidence.alternative else ''}"
        )
        rows += f"{'<b class=bad>not indexed</b>' if evidence in missing_evidence else ''}</td></tr>"
    if rows:
        parts.append(f"<div class=wide><table><tr><th>expected</th><th>quote</th><th></th></tr>{rows}</table></div>")
    if question.answer_contains:
        groups = " and ".join(" or ".join(group) for group in question.answer_contains)
        parts.append(f"<p>a right answer holds: {_text(groups)}</p>")
    return "".join(parts)


def _places(evaluation: Evaluation, question: Question, level: Level | str) -> str:
    """What the systems found: a row a place, a column a system with the rank there."""
    if not question.searched or not isinstance(level, Level):
        return ""
    ranks: dict[str, dict[str, int]] = {}
    places: dict[str, ResultPlace] = {}
    right: set[str] = set()
    for system in evaluation.systems:
        wanted_ids = evaluation.targets[system][question.id].ids(level)
        hits = evaluation.results[system][question.id].found.get(level, ())
        for rank, place in enumerate(hits[:PLACES_SHOWN], start=1):
            key = place.ids(level)[-1]
            places.setdefault(key, place)
            ranks.setdefault(key, {})[system] = rank
            if not wanted_ids.isdisjoint(place.ids(level)):
                right.add(key)
    rows = []
    for key, of_system in sorted(ranks.items(), key=lambda item: (min(item[1].values()), item[0])):
        style, sign = ("good", "✓ ") if key in right else ("dim", "")
        passage = _text(evaluation.passages[places[key].chunk_id])
        cells = "".join(f"<td>{of_system.get(system, '')}</td>" for system in evaluation.systems)
        rows.append(
            f"<tr><td><details><summary class={style}>{sign}{_text(places[key].label)}</summary>"
            f"<p class=text>{passage}</p></details></td>{cells}</tr>"
        )
    heads = "".join(f"<th>{_text(system)}</th>" for system in evaluation.systems)
    return f"<div class=wide><table><tr><th>found, with the rank</th>{heads}</tr>{''.join(rows)}</table></div>"


def _answers(evaluation: Evaluation, question: Question) -> Iterator[str]:
    for system in evaluation.systems:
        result = evaluation.results[system][question.id]
        if (reply := result.reply) is None:
            continue
        outcome = outcome_of(result.values[ANSWER]) or "not judged"
        style = {"right": "good", "correct": "good", "not judged": "dim"}.get(outcome, "bad")
        sources = "".join(f"<li>{_text(place.label)}</li>" for place in reply.cited)
        failure = f"<p class=bad>{_text(reply.failure)}</p>" if reply.failure else ""
        yield f"<details><summary>{_text(system)} answered: <span class={style}>{outcome}</span>"
        yield f" <span class=dim>{_text(result.mode)}</span></summary><p class=text>{_text(reply.text)}</p>"
        yield f"<ul>{sources}</ul>{failure}"
        for judge, lines in result.reasons.items():
            items = "".join(f"<li>{_text(line)}</li>" for line in lines)
            yield f"<details><summary class=dim>judged: {_text(judge)}</summary><ul>{items}</ul></details>"
        yield "</details>"


def _comparison(comparison: ComparedSystems) -> Iterator[str]:
    yield _table(comparison_table(comparison))
    for name, changes in comparison.changes.items():
        if changes:
            rows = "".join(
                f'<tr><td><a href="#q-{_text(change.question.id)}">{_text(change.question.text)}</a></td>'
                f"<td>{change.first:.2f}</td><td>{change.second:.2f}</td></tr>"
                for change in changes[:QUESTIONS_SHOWN]
            )
            heads = f"<th></th><th>{_text(comparison.first)}</th><th>{_text(comparison.second)}</th>"
            yield f"<details><summary>{_text(name)}: {len(changes)} questions differ</summary>"
            yield f"<table><tr>{heads}</tr>{rows}</table></details>"


def _table(table: TextTable) -> str:
    heads = "".join(f"<th>{_text(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f"<h3>{_text(table.title)}</h3><div class=wide><table><tr>{heads}</tr>{rows}</table></div>"


def _text(text: str) -> str:
    return escape(printable(text))
