"""Recipes: the conditions that a source compares, on the user's own documents, beside the figures that it published.

Only figures that stand in the text of a source are given. A condition that lacks what it needs, as a language model or
the entity graph, is not run, and why is said. All conditions of a recipe get equally many results, and answers equally
much context.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rag_assets.contracts.modes import (
    AUGMENT_MODE,
    FULLTEXT_MODE,
    GRAPH_GLOBAL_MODE,
    HYBRID_MODE,
    HYDE_MODE,
    PLAN_MODE,
    QUESTIONS_MODE,
    REWRITE_MODE,
    SUMMARY_MODE,
    SUMMARY_TEXT_MODE,
    TEXT_MAP_REDUCE_MODE,
    TWO_STEP_MODE,
    VECTOR_MODE,
)
from rag_assets.contracts.ports import Rewriter
from rag_assets.contracts.tables import CHUNKS, QUESTION_INDEX, REPORT_INDEX, SUMMARY_INDEX
from rag_assets.evaluation.evidence import Corpus, Level
from rag_assets.evaluation.judges.judgements import CRITERIA, METRICS, Judge, Progress, no_progress
from rag_assets.evaluation.questions import GLOBAL_TYPE, Question
from rag_assets.evaluation.report import TextTable, amount_text, cell, interval_text
from rag_assets.evaluation.runs import ANSWER, Evaluation, RunOptions, System, evaluate
from rag_assets.evaluation.scores import ALL, COST, SEED, Figure, figures
from rag_assets.evaluation.statistics import Comparison, Interval, change_text, compare
from rag_assets.query.knowledge_base import KnowledgeBase, QueryOptions
from rag_assets.query.search.hyde import Fusion, Generator
from rag_assets.query.search.report_levels import LevelChoice, ReportTree, choose_reports
from rag_assets.query.search.rewriting_rules import RuleRewriter
from rag_assets.query.stored import StoredTables
from rag_assets.text.tokens import estimate_tokens

MODEL = "model"
_GENERATORS = 3  # seeds of one model where the settings name no several generators
_LEVELS = 4  # C0 to C3
_ASIDE_TOKENS = 2_400  # of a request: system text and a long question
_LEAST_TOKENS = 256
_AMOUNTS = {COST, Judge.GRADING, Judge.PREFERENCE, Judge.CLAIMS}
FILLING_K = 200  # passages asked for, so that the context of an answer is filled: more than fit

REMEDIES: Mapping[str, str] = {
    MODEL: "no language model writes: set language_model.provider and language_model.model",
    SUMMARY_INDEX.name: "no summaries are indexed: run `rag-assets index`",
    QUESTION_INDEX.name: "no derived questions are indexed: run `rag-assets index`",
    REPORT_INDEX.name: "there is no entity graph: set graph.enabled and run `rag-assets index`",
}


@dataclass(frozen=True)
class Condition:
    """One row of a source's table."""

    name: str  # as the source names it
    mode: str  # how it is searched here; empty where nothing here does so, and `reason` says why
    published: Mapping[str, str] = field(default_factory=dict)  # what the source published, by measure
    needs: tuple[str, ...] = ()  # what it cannot do without: `model`, or serving tables
    summaries: str = "page"  # which summaries it takes
    levels: tuple[Level, ...] = tuple(Level)  # what it can be searched for
    reports: LevelChoice | None = None  # which community reports it reads
    options: QueryOptions | None = None  # how it searches and answers; None for the settings
    rewriter: Rewriter | None = None  # rewrites in its place; None for the language model
    reason: str = ""  # why it is not run, where that is known beforehand
    against: str = ""  # what it is compared with; empty for the baseline of its recipe


@dataclass(frozen=True)
class Recipe:
    """What a source compares."""

    title: str  # the source, in a line
    published_on: str  # the data that its figures are of
    columns: tuple[tuple[str, str], ...]  # level and measure of its table, the first of them compared with the baseline
    # makes its conditions for a knowledge base and its stored tables
    conditions: Callable[[KnowledgeBase, StoredTables], Sequence[Condition]]
    baseline: str  # name of the condition that the others are compared with, where they name no other
    k: int  # results of a search
    levels: tuple[Level, ...] = (Level.PASSAGE,)  # what searches are asked for
    answers: bool = False  # whether its table is about answers, which are asked for where a language model writes
    judges: tuple[Judge, ...] = ()  # what a judge is asked of the answers
    only_global: bool = False  # whether it asks questions about the whole collection, where the set has any
    # makes what else is to be known, in a line each, for a knowledge base
    notes: Callable[[KnowledgeBase, StoredTables], Sequence[str]] = lambda _base, _stored: ()
    context: Callable[[StoredTables], TextTable] | None = None  # makes a further table of the stored tables


def _two_step() -> list[Condition]:
    """Raw text in one step, each kind of summary in one and two, and what mode `two_step` makes of them."""
    needs = (SUMMARY_INDEX.name,)
    figures_of = {"file": ("50.0 %", "21.7 %"), "page": ("60.0 %", "27.5 %")}
    levels = {"file": (Level.DOCUMENT,), "page": (Level.DOCUMENT, Level.PAGE)}

    def published_figures(hit: str, rank: str) -> dict[str, str]:
        return {"HitRate@4": hit, "MRR@4": rank}

    return [
        Condition("raw text", VECTOR_MODE, published_figures("50.0 %", "20.8 %")),
        *(Condition(f"{kind} summary", SUMMARY_MODE, {}, needs, kind, levels[kind]) for kind in levels),
        *(
            Condition(f"{kind} summary, then raw text", SUMMARY_TEXT_MODE, published_figures(*figures), needs, kind)
            for kind, figures in figures_of.items()
        ),
        Condition("raw text by words too", HYBRID_MODE),
        *(Condition(f"{kind} summary and raw text by words too", TWO_STEP_MODE, {}, needs, kind) for kind in levels),
    ]


def _pr3() -> list[Condition]:
    """(a) to (d) of the paper, whose text gives no figure but for breadth, and derived questions alone."""
    questions = QUESTION_INDEX.name
    breadth = {"breadth": "(d) over 20 % above (a)"}
    return [
        Condition("(a) chunks", VECTOR_MODE),
        Condition("(b) chunks, naive augmentation", f"{AUGMENT_MODE}+{VECTOR_MODE}", {}, (MODEL,)),
        Condition("questions alone", QUESTIONS_MODE, {}, (questions,)),
        Condition("(c) questions, naive augmentation", f"{AUGMENT_MODE}+{QUESTIONS_MODE}", {}, (questions, MODEL)),
        Condition("(d) questions, meta knowledge", f"{PLAN_MODE}+{QUESTIONS_MODE}", breadth, (questions,)),
    ]


def _hyde(base: KnowledgeBase) -> list[Condition]:
    """The question itself, each generator alone, and all of them by every fusion."""
    writers = base.options.hyde.with_model(base.writer)
    if len(writers) < 2 and base.writer is not None:
        writers = tuple(Generator(writers[0].model if writers else base.writer, seed) for seed in range(_GENERATORS))

    def condition(name: str, score: str, generators: tuple[Generator, ...], fusion: Fusion, rrf_k: float) -> Condition:
        hyde = replace(base.options.hyde, generators=generators, fusion=fusion, rrf_k=rrf_k, pool=5)
        return Condition(name, HYDE_MODE, {"P@5": score}, (MODEL,), options=replace(base.options, hyde=hyde))

    rrf = ((0, "0.677"), (1, "0.685"), (5, "0.709"), (10, "0.716"), (60, "0.723"))
    fusions = (
        *(("CombSUM", "0.731", Fusion.COMB_SUM, 60.0), ("CombMNZ", "0.737", Fusion.COMB_MNZ, 60.0)),
        ("Borda", "0.719", Fusion.BORDA, 60.0),
        *((f"RRF k={k}", score, Fusion.RRF, float(k)) for k, score in rrf),
    )
    alone = [
        condition(f"one: {writer.name}", "0.555 to 0.586; GPT-4o 0.741", (writer,), Fusion.COMB_SUM, 60.0)
        for writer in writers
    ]
    together = f"{len(writers)} by " if writers else "several by "
    return [
        Condition("question itself", VECTOR_MODE),
        *(alone or [condition("one", "0.555 to 0.586; GPT-4o 0.741", (), Fusion.COMB_SUM, 60.0)]),
        *(condition(together + name, score, writers, fusion, k) for name, score, fusion, k in fusions),
    ]


def _rewriting() -> list[Condition]:
    """The question as asked, rewritten by rules and by a frozen model, for words, vectors and both."""
    conditions = []
    for retriever, asked, rewritten in (
        (FULLTEXT_MODE, {"F1": "56.7"}, {"F1": "61.4"}),
        (VECTOR_MODE, {"F1": "55.1"}, {"F1": "59.8"}),
        (HYBRID_MODE, {"nDCG@10": "0.412"}, {"nDCG@10": "0.487"}),  # the source does not say what this searched with
    ):
        plain, mode = f"{retriever}, as asked", f"{REWRITE_MODE}+{retriever}"
        conditions += [
            Condition(plain, retriever, asked),
            Condition(f"{retriever}, rules", mode, rewriter=RuleRewriter(), against=plain),
            Condition(f"{retriever}, frozen model", mode, rewritten, (MODEL,), against=plain),
        ]
    trained_figures = {"nDCG@10": "0.503", "F1": "62.9"}
    reason = "settings name no trained rewriter: give one to `open_knowledge_base(rewriter=…)`"
    return [*conditions, Condition("hybrid, trained rewriter", "", trained_figures, reason=reason)]


def _graphrag(base: KnowledgeBase, stored: StoredTables) -> list[Condition]:
    """Vector search, all source texts, and the reports of each level; every request reads equally many tokens."""
    options = base.options
    if base.writer is not None:
        answer_tokens = max(options.reader.answer_tokens, options.reports.answer_tokens)
        room = max(_LEAST_TOKENS, base.writer.context_tokens - _ASIDE_TOKENS - answer_tokens)
        context = min(room, options.reports.context_tokens)
        reader = replace(options.reader, context_tokens=context)
        options = replace(options, reader=reader, reports=replace(options.reports, context_tokens=context))
    deepest = max((report.level for report in ReportTree(stored).get()), default=0)
    has_graph = base.row_counts.get(REPORT_INDEX.name)
    conditions = [
        Condition("SS", VECTOR_MODE, _GRAPHRAG["SS"], (MODEL,), options=options),
        Condition("TS", TEXT_MAP_REDUCE_MODE, _GRAPHRAG["TS"], (MODEL,), options=options),
    ]
    for level in range(_LEVELS):
        name, needs, reports = f"C{level}", (REPORT_INDEX.name, MODEL), LevelChoice(level, dynamic=False)
        note = f"the graph has no level {level}: it would read the reports of C{deepest}"
        reason = note if has_graph and level > deepest else ""
        published = _GRAPHRAG[name]
        conditions.append(
            Condition(name, GRAPH_GLOBAL_MODE, published, needs, reports=reports, options=options, reason=reason)
        )
    return conditions


def _graphrag_row(wins: Sequence[str], claims: str) -> dict[str, str]:
    return dict(zip(CRITERIA, wins, strict=False)) | {"claims": claims}


# wins against SS, podcast / news, and claims an answer, podcast / news
_GRAPHRAG: Mapping[str, Mapping[str, str]] = {
    "SS": _graphrag_row((), "26.50 / 25.23"),
    "TS": _graphrag_row(("83 / 80", "82 / 67", "58 / 53", "44 / 46"), "31.39 / 32.89"),
    "C0": _graphrag_row(("72 / 72", "77 / 62", "43 / 43", "35 / 41"), "32.21 / 34.18"),
    "C1": _graphrag_row(("75 / 75", "75 / 65", "48 / 51", "40 / 45"), "32.20 / 32.50"),
    "C2": _graphrag_row(("78 / 79", "81 / 71", "51 / 50", "40 / 45"), "32.46 / 31.62"),
    "C3": _graphrag_row(("79 / 79", "81 / 69", "49 / 52", "40 / 46"), "32.28 / 33.14"),
}
_GRAPHRAG_CONTEXT: Mapping[str, tuple[str, str]] = {
    "C0": ("34 units, 26,657 tokens, 2.6 %", "55, 39,770, 2.3 %"),
    "C1": ("367, 225,756, 22.2 %", "555, 352,641, 20.7 %"),
    "C2": ("969, 565,720, 55.8 %", "1,797, 980,898, 57.4 %"),
    "C3": ("1,310, 746,100, 73.5 %", "2,142, 1,140,266, 66.8 %"),
    "TS": ("1,669, 1,014,611, 100 %", "3,197, 1,707,694, 100 %"),
}


def _graphrag_context(stored: StoredTables) -> TextTable:
    """Reports and passages that each condition reads, with their tokens."""
    tree = ReportTree(stored)
    reports = tree.get()
    texts = {
        f"C{level}": [
            report.text for report in tree.reports(choose_reports(reports, LevelChoice(level, dynamic=False)))
        ]
        for level in range(_LEVELS)
        if any(report.level >= level for report in reports)
    }
    texts["TS"] = stored.read(CHUNKS, ["text"])["text"].to_pylist()
    tokens = {name: sum(map(estimate_tokens, passages)) for name, passages in texts.items()}
    rows = []
    for name, published in _GRAPHRAG_CONTEXT.items():
        share = f"{tokens[name] / max(1, tokens['TS']):.1%}" if name in texts else ""
        amounts = (f"{len(texts[name]):,}", f"{tokens[name]:,}", share) if name in texts else ("", "", "")
        rows.append((name, *amounts, *published))
    heads = ("condition", "units", "tokens", "of TS", "published: podcast", "published: news")
    return TextTable("What each condition reads of the whole collection, tokens by estimate", heads, tuple(rows))


def _pr3_notes(base: KnowledgeBase) -> list[str]:
    """How the conditions differ from those of the paper."""
    notes = ["(a) and (b) search passages as they are indexed (chunking.*); the source: 256 tokens, 10 % overlap"]
    if base.writer is None:
        notes.append("(d) widens by key terms of the meta knowledge summaries, as no language model plans")
    return notes


def _hyde_notes(base: KnowledgeBase) -> list[str]:
    """Who the generators are, and what the labels are."""
    notes = ["a question whose answer stands in one passage reaches 0.2 at most; in JQaRA several of 100 are labelled"]
    if base.writer is not None and len(base.options.hyde.with_model(base.writer)) < 2:
        notes.append("the generators are seeds of one model; those of the source are three: search.hyde_models")
    return notes


def _graphrag_notes(base: KnowledgeBase, stored: StoredTables) -> list[str]:
    """What TS leaves out."""
    limit = base.options.reader.map_reduce_chunks
    count = stored.read(CHUNKS, ["chunk_id"]).num_rows
    return [f"TS reads {limit:,} of {count:,} passages (search.map_reduce_chunks)"] if count > limit else []


RECIPES: Mapping[str, Recipe] = {
    "two-step": Recipe(
        "Two-step search by summaries",
        "10 questions on 11 Japanese specification workbooks",
        tuple((level, name) for level in ("passage", "page", "document") for name in ("HitRate@4", "MRR@4")),
        lambda _base, _stored: _two_step(),
        "raw text",
        4,
        tuple(Level),
    ),
    "pr3": Recipe(
        "PR3: prepare, rewrite, retrieve, read",
        "200 synthetic queries on 2,000 arXiv papers, graded by a model; (d) over (c): p < 0.01 in all but precision",
        (
            *((Judge.GRADING, name) for name in METRICS),
            *(("passage", "R@5"), ("passage", "nDCG@10"), (ANSWER, "correct"), (ANSWER, "cited passage")),
        ),
        lambda _base, _stored: _pr3(),
        "(a) chunks",
        10,
        answers=True,
        judges=(Judge.GRADING,),
        notes=lambda base, _stored: _pr3_notes(base),
    ),
    "hyde": Recipe(
        "HyDE by one and by several generators",
        "300 questions of JQaRA, the share of the 5 returned that are labelled; one: Phi-3, llm-jp, gemma-2-2b",
        (("passage", "P@5"), ("passage", "R@5"), ("passage", "Hit@5")),
        lambda base, _stored: _hyde(base),
        "question itself",
        5,
        notes=lambda base, _stored: _hyde_notes(base),
    ),
    "rewriting": Recipe(
        "Rewriting before search",
        "WebQuestions (F1) and retrieval whose data the source does not name (nDCG@10)",
        (("passage", "nDCG@10"), ("passage", "R@5"), (ANSWER, "correct")),
        lambda _base, _stored: _rewriting(),
        "as asked",
        10,
        answers=True,
        notes=lambda _base, _stored: (
            "published F1 is of answers over BM25 (beside fulltext) and DPR (beside vector)",
        ),
    ),
    "graphrag": Recipe(
        "GraphRAG: community levels, source texts and vector search",
        "125 questions each on podcast transcripts and news articles, about 1 and 1.7 million tokens; wins against SS",
        (
            *((Judge.PREFERENCE, name) for name in CRITERIA),
            *((Judge.CLAIMS, "claims"), (ANSWER, "correct"), (COST, "input_tokens"), (COST, "output_tokens")),
        ),
        _graphrag,
        "SS",
        10,
        (),
        answers=True,
        judges=(Judge.PREFERENCE, Judge.CLAIMS),
        only_global=True,
        notes=_graphrag_notes,
        context=_graphrag_context,
    ),
}


@dataclass(frozen=True)
class RecipeRun:
    """A recipe on a knowledge base."""

    name: str
    recipe: Recipe  # what was compared
    conditions: tuple[Condition, ...]  # its conditions, in order
    not_run: Mapping[str, str]  # why conditions were not run, by name
    evaluation: Evaluation | None  # what was measured; None where no condition could be run
    figures: tuple[Figure, ...]
    # by condition, how it compares with another in the first column; Holm over all of them
    against: Mapping[str, Comparison]
    notes: tuple[str, ...]  # what else is to be known
    context: TextTable | None  # a further table, where the source has one

    @property
    def is_written(self) -> bool:
        """Whether a language model wrote any answer."""
        results = self.evaluation.results.values() if self.evaluation is not None else ()
        return any(result.reply is not None and result.reply.model for of in results for result in of.values())

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
            condition.name,
            base.variant(condition.options or base.options, condition.rewriter),
            corpus,
            condition.mode,
            condition.summaries,
            levels=condition.levels,
            answer_k=None if base.writer is None else FILLING_K,
            reports=condition.reports,
        )
        for condition in conditions
        if condition.name not in not_run
    ]
    notes = tuple(recipe.notes(base, corpus.stored))
    context = recipe.context(corpus.stored) if recipe.context else None
    run = RecipeRun(name, recipe, conditions, not_run, None, (), {}, notes, context)
    if not systems:
        return run
    global_questions = (
        [question for question in questions if question.type == GLOBAL_TYPE] if recipe.only_global else []
    )
    measures = tuple(dict.fromkeys(measure for level, measure in recipe.columns if level in list(Level)))
    with_answers = answers or (recipe.answers and base.writer is not None)
    options = RunOptions(measures, recipe.levels, with_answers, judged=with_answers, k=recipe.k)
    return run.judged(evaluate(systems, global_questions or questions, options, progress))


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
    all_reasons = {
        condition.name: [condition.reason]
        if condition.reason
        else [REMEDIES[need] for need in condition.needs if need not in present]
        for condition in conditions
    }
    return {name: reasons[0] for name, reasons in all_reasons.items() if reasons}


def _gaps(not_run: Mapping[str, str]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in not_run.items():
        reasons.setdefault(reason, []).append(name)
    return [f"not run: {'; '.join(names)}: {reason}" for reason, names in reasons.items()]


def recipe_tables(run: RecipeRun) -> list[TextTable]:
    """The source's table with our figures, each beside the one published, and what it says of context."""
    figure, columns = _overall(run), _columns(run)
    names = dict.fromkeys(name for condition in run.conditions for name in condition.published)
    unmeasured_names = [name for name in names if name not in {measure for _, measure in columns}]
    levels = {measure: level for level, measure in reversed(columns)}  # beside the first of which published figures go
    beside = {measure for measure in levels if measure in names}
    heads = ["condition", "mode"]
    for level, measure in columns:
        head = measure.replace("_", " ") if level == COST else f"{level} {measure}"
        heads += [head, *(["published"] if measure in beside and levels[measure] == level else [])]
    heads += [*(f"published {name}" for name in unmeasured_names), f"{columns[0][1]} against {run.recipe.baseline}"]
    rows = []
    for condition in run.conditions:
        row = [condition.name, "not run" if condition.name in run.not_run else condition.mode]
        for level, measure in columns:
            row.append(
                cell(figure.get((condition.name, level, measure)), amount_text if level in _AMOUNTS else interval_text)
            )
            if measure in beside and levels[measure] == level:
                row.append(condition.published.get(measure, ""))
        row += [condition.published.get(name, "") for name in unmeasured_names]
        comparison = run.against.get(condition.name)
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
                "name": condition.name,
                "mode": condition.mode,
                "not_run": run.not_run.get(condition.name),
                "published": dict(condition.published),
                "figures": {
                    f"{level} {measure}": asdict(interval)
                    for (system, level, measure), interval in _overall(run).items()
                    if system == condition.name
                },
                "against": asdict(run.against[condition.name]) if condition.name in run.against else None,
            }
            for condition in run.conditions
        ],
        "context": asdict(run.context) if run.context else None,
    }


def _overall(run: RecipeRun) -> dict[tuple[str, str, str], Interval]:
    """Figures of all questions by condition, level and measure."""
    return {
        (figure.system, figure.level, figure.measure): figure.interval
        for figure in run.figures
        if figure.dimension == ALL
    }


def _columns(run: RecipeRun) -> list[tuple[str, str]]:
    """Those columns that any condition has a figure of, or all where none was run; what answers read comes last."""
    there = {(figure.level, figure.measure) for figure in run.figures}
    columns = [column for column in run.recipe.columns if column in there]
    if (ANSWER, "correct") in there:
        columns += [
            column for column in ((ANSWER, "correct"), (COST, "input_tokens")) if column in there - set(columns)
        ]
    return columns or list(run.recipe.columns)


def _against(run: RecipeRun, evaluation: Evaluation) -> dict[str, Comparison]:
    """How conditions compare with others, by the questions of which both say something."""
    there = {(figure.level, figure.measure) for figure in run.figures if figure.level != COST}
    column = next((column for column in run.recipe.columns if column in there), None)
    if column is None:
        return {}
    values = {system: evaluation.values(system, *column) for system in evaluation.systems}
    pairs = {}
    for condition in run.conditions:
        baseline = _compared_with(run, condition)
        if baseline and condition.name in values and baseline in values:
            value_pairs = list(zip(values[condition.name], values[baseline], strict=True))
            if not all(math.isnan(own - theirs) for own, theirs in value_pairs):
                pairs[condition.name] = values[condition.name], values[baseline]
    return compare(pairs, SEED)


def _compared_with(run: RecipeRun, condition: Condition) -> str:
    """Name of the condition that one is compared with; empty for none."""
    if condition.against or condition.name == run.recipe.baseline:
        return condition.against
    # where conditions name what they are compared with, the others are what is compared with
    return "" if any(item.against for item in run.conditions) else run.recipe.baseline
