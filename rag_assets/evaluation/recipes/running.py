"""A recipe: the conditions of a source on the user's own documents, beside the figures that the source published.

A condition that lacks what it needs, as a language model or the entity graph, is not run, and why is said. All
conditions of a recipe get equally many results, and answers equally much context.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag_assets.evaluation.evidence import Corpus, Level
from rag_assets.evaluation.judges.judgements import Judge, Progress, no_progress
from rag_assets.evaluation.questions import GLOBAL_TYPE, Question
from rag_assets.evaluation.recipes.conditions import MODEL, RECIPES, REMEDIES, Condition, Recipe
from rag_assets.evaluation.runs import ANSWER, Evaluation, RunOptions, System, evaluate
from rag_assets.evaluation.scores import ALL, COST, SEED, Figure, figures
from rag_assets.evaluation.statistics import Comparison, Interval, change_text, compare
from rag_assets.evaluation.tables import TextTable, amount_text, cell, interval_text
from rag_assets.query.knowledge_base import KnowledgeBase

_AMOUNTS = {COST, Judge.GRADING, Judge.PREFERENCE, Judge.CLAIMS}
FILLING_K = 200  # passages asked for, so that the context of an answer is filled: more than fit


@dataclass(frozen=True)
class RecipeRun:
    """A recipe on a knowledge base.

    Attributes:
        name: Its name.
        recipe: What was compared.
        conditions: Its conditions, in order.
        not_run: Why conditions were not run, by name.
        evaluation: What was measured; None where no condition could be run.
        figures: Its figures.
        against: By condition, how it compares with another in the first column; Holm over all of them.
        notes: What else is to be known.
        context: A further table, where the source has one.
    """

    name: str
    recipe: Recipe
    conditions: tuple[Condition, ...]
    not_run: Mapping[str, str]
    evaluation: Evaluation | None
    figures: tuple[Figure, ...]
    against: Mapping[str, Comparison]
    notes: tuple[str, ...]
    context: TextTable | None

    @property
    def is_written(self) -> bool:
        """Whether a language model wrote any answer."""
        results = self.evaluation.results.values() if self.evaluation is not None else ()
        return any(each.reply is not None and each.reply.model for of in results for each in of.values())

    def judged(self, evaluation: Evaluation) -> "RecipeRun":
        """The same with other values of its answers, as those of a judge."""
        run = replace(self, evaluation=evaluation, figures=tuple(figures(evaluation)))
        return replace(run, against=_against(run, evaluation))


def run_recipe(
    name: str,
    base: KnowledgeBase,
    *,
    corpus: Corpus,
    questions: Sequence[Question],
    answers: bool = False,
    progress: Progress = no_progress,
) -> RecipeRun:
    """Ask all conditions of a recipe that can be run.

    Args:
        name: Of the recipe, in `RECIPES`.
        base: The knowledge base.
        corpus: Its documents.
        questions: What is asked.
        answers: Whether questions are answered also where the source's table is not about answers.
        progress: See `evaluate`.

    Raises:
        QueryError: A question cannot be asked.
        ModelError: A model that searches failed.
        StoreError: A published file is gone or damaged.
    """
    recipe = RECIPES[name]
    conditions = tuple(recipe.conditions(base, corpus.stored))
    not_run = _not_run(conditions, base)
    systems = [
        System(
            each.name,
            base.variant(each.options or base.options, each.rewriter),
            corpus,
            each.mode,
            each.summaries,
            levels=each.levels,
            answer_k=None if base.writer is None else FILLING_K,
            reports=each.reports,
        )
        for each in conditions
        if each.name not in not_run
    ]
    notes = tuple(recipe.notes(base, corpus.stored))
    context = recipe.context(corpus.stored) if recipe.context else None
    run = RecipeRun(name, recipe, conditions, not_run, None, (), {}, notes, context)
    if not systems:
        return run
    wanted = [each for each in questions if each.type == GLOBAL_TYPE] if recipe.only_global else []
    measures = tuple(dict.fromkeys(measure for level, measure in recipe.columns if level in list(Level)))
    answering = answers or (recipe.answers and base.writer is not None)
    options = RunOptions(measures, recipe.levels, answering, judged=answering, k=recipe.k)
    return run.judged(evaluate(systems, wanted or questions, options, progress))


def recipe_gaps(name: str, base: KnowledgeBase, corpus: Corpus) -> list[str]:
    """The conditions of a recipe that cannot be run, with what they lack, in a line each.

    Raises:
        StoreError: A published file is gone or damaged.
    """
    return _gaps(_not_run(RECIPES[name].conditions(base, corpus.stored), base))


def _not_run(conditions: Iterable[Condition], base: KnowledgeBase) -> dict[str, str]:
    """What conditions lack, by name."""
    present = {table for table, count in base.row_counts.items() if count}
    if base.writer is not None:
        present.add(MODEL)
    lacking = {
        each.name: [each.reason] if each.reason else [REMEDIES[need] for need in each.needs if need not in present]
        for each in conditions
    }
    return {name: reasons[0] for name, reasons in lacking.items() if reasons}


def _gaps(not_run: Mapping[str, str]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in not_run.items():
        reasons.setdefault(reason, []).append(name)
    return [f"not run: {'; '.join(names)}: {reason}" for reason, names in reasons.items()]


def recipe_tables(run: RecipeRun) -> list[TextTable]:
    """The source's table with our figures, each beside the one published, and what it says of context."""
    figure, columns = _overall(run), _columns(run)
    names = dict.fromkeys(name for each in run.conditions for name in each.published)
    unmeasured = [name for name in names if name not in {measure for _, measure in columns}]
    levels = {measure: level for level, measure in reversed(columns)}  # beside the first of which published figures go
    beside = {measure for measure in levels if measure in names}
    heads = ["condition", "mode"]
    for level, measure in columns:
        head = measure.replace("_", " ") if level == COST else f"{level} {measure}"
        heads += [head, *(["published"] if measure in beside and levels[measure] == level else [])]
    heads += [*(f"published {name}" for name in unmeasured), f"{columns[0][1]} against {run.recipe.baseline}"]
    rows = []
    for each in run.conditions:
        row = [each.name, "not run" if each.name in run.not_run else each.mode]
        for level, measure in columns:
            row.append(
                cell(figure.get((each.name, level, measure)), amount_text if level in _AMOUNTS else interval_text)
            )
            if measure in beside and levels[measure] == level:
                row.append(each.published.get(measure, ""))
        row += [each.published.get(name, "") for name in unmeasured]
        comparison = run.against.get(each.name)
        rows.append((*row, f"{change_text(comparison.difference)} p {comparison.p_holm:.3f}" if comparison else ""))
    count = len(run.evaluation.questions) if run.evaluation else 0
    table = TextTable(f"{run.recipe.title}, {count} questions", tuple(heads), tuple(rows))
    return [table, run.context] if run.context else [table]


def recipe_notes(run: RecipeRun) -> list[str]:
    """What a reader of the tables has to know, in a line each."""
    return [
        f"published figures are of {run.recipe.published_on}: they are not comparable with yours",
        *run.notes,
        *_gaps(run.not_run),
    ]


def recipe_record(run: RecipeRun) -> dict[str, Any]:
    """The recipe for JSON."""
    return {
        "name": run.name,
        "title": run.recipe.title,
        "published_on": run.recipe.published_on,
        "baseline": run.recipe.baseline,
        "conditions": [
            {
                "name": each.name,
                "mode": each.mode,
                "not_run": run.not_run.get(each.name),
                "published": dict(each.published),
                "figures": {
                    f"{level} {measure}": asdict(interval)
                    for (system, level, measure), interval in _overall(run).items()
                    if system == each.name
                },
                "against": asdict(run.against[each.name]) if each.name in run.against else None,
            }
            for each in run.conditions
        ],
        "context": asdict(run.context) if run.context else None,
    }


def _overall(run: RecipeRun) -> dict[tuple[str, str, str], Interval]:
    """Figures of all questions by condition, level and measure."""
    return {(each.system, each.level, each.measure): each.interval for each in run.figures if each.dimension == ALL}


def _columns(run: RecipeRun) -> list[tuple[str, str]]:
    """Those columns that any condition has a figure of, or all where none was run; what answers read comes last."""
    there = {(each.level, each.measure) for each in run.figures}
    columns = [each for each in run.recipe.columns if each in there]
    if (ANSWER, "correct") in there:
        columns += [each for each in ((ANSWER, "correct"), (COST, "input_tokens")) if each in there - set(columns)]
    return columns or list(run.recipe.columns)


def _against(run: RecipeRun, evaluation: Evaluation) -> dict[str, Comparison]:
    """How conditions compare with others, by the questions of which both say something."""
    there = {(each.level, each.measure) for each in run.figures if each.level != COST}
    column = next((each for each in run.recipe.columns if each in there), None)
    if column is None:
        return {}
    values = {system: evaluation.values(system, *column) for system in evaluation.systems}
    pairs = {}
    for each in run.conditions:
        other = _compared_with(run, each)
        if other and each.name in values and other in values:
            both = list(zip(values[each.name], values[other], strict=True))
            if not all(math.isnan(one - theirs) for one, theirs in both):
                pairs[each.name] = values[each.name], values[other]
    return compare(pairs, SEED)


def _compared_with(run: RecipeRun, condition: Condition) -> str:
    """Name of the condition that one is compared with; empty for none."""
    if condition.against or condition.name == run.recipe.baseline:
        return condition.against
    # where conditions name what they are compared with, the others are what is compared with
    return "" if any(each.against for each in run.conditions) else run.recipe.baseline
