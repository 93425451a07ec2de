"""A run as one HTML page: overview, kinds of questions, comparison, and every question with its passages.

The page needs no other file, runs no script and loads nothing; every text of a document, question or model is escaped.
"""

import math
from collections.abc import Iterator, Sequence
from html import escape

from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.judging import outcome_of
from rag_assets.evaluation.questions import Question
from rag_assets.evaluation.runs import ANSWER, Evaluation, QuestionResult, ResultPlace
from rag_assets.evaluation.scores import GROUPS, ComparedSystems, Figure
from rag_assets.evaluation.statistics import FEW
from rag_assets.evaluation.tables import (
    TextTable,
    comparison_table,
    group_tables,
    headline_names,
    main_measure,
    meanings,
    overview_tables,
)
from rag_assets.text.plain import printable

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
    for table in group_tables(evaluation, figures, tuple(GROUPS), level, measure):
        yield _table(table)
    if evaluation.options.answers and level != ANSWER:
        for table in group_tables(evaluation, figures, tuple(GROUPS), ANSWER, "correct"):
            yield _table(table)
    for comparison in comparisons:
        yield from _comparison(comparison)
    names = [name.partition(" ")[2] for name in headline_names(evaluation)]
    yield f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in meanings(names))}"
    yield f"<li>brackets: 95 % intervals, too narrow where a star marks fewer than {FEW} questions</li></ul>"
    yield from _questions(evaluation, level, measure)
    yield "</body></html>\n"


def _questions(evaluation: Evaluation, level: Level | str, measure: str) -> Iterator[str]:
    def worst(question: Question) -> float:
        values = [_score(evaluation.results[each][question.id], level, measure) for each in evaluation.systems]
        return min((value for value in values if not math.isnan(value)), default=2.0)

    shown = sorted(evaluation.questions, key=worst)[:QUESTIONS_SHOWN]
    yield f"<h2>Questions</h2><p>{len(shown)} of {len(evaluation.questions)}, those that fail first</p>"
    for question in shown:
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
    missing = {each for target in targets for lost in target.missing.values() for each in lost}
    parts = [f"<p class=dim>asked before: {_text(' / '.join(question.history))}</p>"] if question.history else []
    if not question.answerable:
        parts.append("<p>expected: no answer</p>")
    rows = ""
    for evidence in question.evidence:
        place = " › ".join(filter(None, (evidence.document, evidence.place, evidence.cells)))
        rows += (
            f"<tr><td>{_text(place)}</td><td>{_text(evidence.quote)}</td><td>{'or ' if evidence.alternative else ''}"
        )
        rows += f"{'<b class=bad>not indexed</b>' if evidence in missing else ''}</td></tr>"
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
        wanted = evaluation.targets[system][question.id].ids(level)
        found = evaluation.results[system][question.id].found.get(level, ())
        for rank, place in enumerate(found[:PLACES_SHOWN], start=1):
            key = place.ids(level)[-1]
            places.setdefault(key, place)
            ranks.setdefault(key, {})[system] = rank
            if not wanted.isdisjoint(place.ids(level)):
                right.add(key)
    rows = []
    for key, of_system in sorted(ranks.items(), key=lambda each: (min(each[1].values()), each[0])):
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
        cited = "".join(f"<li>{_text(place.label)}</li>" for place in reply.cited)
        failure = f"<p class=bad>{_text(reply.failure)}</p>" if reply.failure else ""
        yield f"<details><summary>{_text(system)} answered: <span class={style}>{outcome}</span>"
        yield f" <span class=dim>{_text(result.mode)}</span></summary><p class=text>{_text(reply.text)}</p>"
        yield f"<ul>{cited}</ul>{failure}"
        for judge, lines in result.reasons.items():
            said = "".join(f"<li>{_text(line)}</li>" for line in lines)
            yield f"<details><summary class=dim>judged: {_text(judge)}</summary><ul>{said}</ul></details>"
        yield "</details>"


def _comparison(comparison: ComparedSystems) -> Iterator[str]:
    yield _table(comparison_table(comparison))
    for name, changes in comparison.changes.items():
        if changes:
            rows = "".join(
                f'<tr><td><a href="#q-{_text(each.question.id)}">{_text(each.question.text)}</a></td>'
                f"<td>{each.first:.2f}</td><td>{each.second:.2f}</td></tr>"
                for each in changes[:QUESTIONS_SHOWN]
            )
            heads = f"<th></th><th>{_text(comparison.first)}</th><th>{_text(comparison.second)}</th>"
            yield f"<details><summary>{_text(name)}: {len(changes)} questions differ</summary>"
            yield f"<table><tr>{heads}</tr>{rows}</table></details>"


def _table(table: TextTable) -> str:
    heads = "".join(f"<th>{_text(each)}</th>" for each in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f"<h3>{_text(table.title)}</h3><div class=wide><table><tr>{heads}</tr>{rows}</table></div>"


def _text(text: str) -> str:
    return escape(printable(text))
