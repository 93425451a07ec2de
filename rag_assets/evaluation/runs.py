"""A run: every question asked of every system, with what was found and answered, and what it took."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.generation import Outcome
from rag_assets.contracts.ports import Turn
from rag_assets.evaluation.evidence import Corpus, Level, Target
from rag_assets.evaluation.judges.judgements import JudgedAnswer, Progress, no_progress
from rag_assets.evaluation.judging import judge_answer
from rag_assets.evaluation.metrics import measured, parse_measure
from rag_assets.evaluation.questions import Question
from rag_assets.query.knowledge_base import KnowledgeBase
from rag_assets.query.results import Hit, ModelCall, SearchResult
from rag_assets.query.search.report_levels import LevelChoice

MEASURES = (
    *("R@5", "R@1", "R@10", "All@5", "All@10", "Hit@1", "Hit@5", "HitRate@4"),
    *("MRR@4", "MRR@10", "nDCG@10", "MAP@10", "P@5"),
)
_GRANULARITY = {Level.DOCUMENT: "document", Level.PAGE: "page", Level.PASSAGE: "chunk"}
_SHOWN_CHARS = 600  # of a passage, for people who look why a question failed
_ANSWERED = {Outcome.COMPLETED.value, Outcome.TRUNCATED.value}
ANSWER = "answer"  # what figures of answers stand under, beside the levels


@dataclass(frozen=True)
class System:
    """What is measured: a way of searching one version."""

    name: str  # what it is called, as in `two_step:file` or `hybrid@3`
    base: KnowledgeBase  # the version, for searching
    corpus: Corpus  # the documents of the same version
    mode: str
    summaries: str = "page"
    version: int = 0  # number of the version; 0 where it does not matter
    levels: tuple[Level, ...] = tuple(Level)  # what it can be searched for
    answer_k: int | None = None  # passages that an answer may rest on; None for the number of the settings
    reports: LevelChoice | None = None  # which community reports are read; None for those of the settings


@dataclass(frozen=True)
class RunOptions:
    """What a run measures.

    Raises:
        QueryError: A name is none of a measure.
    """

    measures: tuple[str, ...] = MEASURES  # names of the measures of rankings, see `rag_assets.evaluation.metrics`
    levels: tuple[Level, ...] = tuple(Level)  # what searches are asked for
    answers: bool = False  # whether questions are answered as well
    judged: bool = False  # whether answers are kept with their passages, for a judge
    k: int | None = None  # results of a search; None for what the measures need

    def __post_init__(self) -> None:
        for name in self.measures:
            parse_measure(name)

    @property
    def depth(self) -> int:
        """Results of a search."""
        return self.k or max((parse_measure(name)[1] for name in self.measures), default=1)


@dataclass(frozen=True)
class ResultPlace:
    """One result of a search: a passage, or the best one of a page or document, and where it stands for people."""

    chunk_id: str
    page_id: str
    document_id: str
    label: str
    score: float

    def ids(self, level: Level) -> tuple[str, ...]:
        """What it counts as at a level."""
        return (self.document_id, self.page_id, self.chunk_id)[: list(Level).index(level) + 1]


@dataclass(frozen=True)
class Reply:
    """What a question was answered."""

    text: str
    answered: bool
    cited: tuple[ResultPlace, ...]
    model: str | None  # who wrote it; None where passages are quoted
    failure: str | None  # why the language model did not write it, where it was to; else None


@dataclass
class QuestionResult:
    """One question, asked of one system."""

    mode: str = ""  # how it was searched; the mode that `auto` chose
    # by level, `answer` or judge, and measure; nan where a measure says nothing of the question
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    found: dict[Level, tuple[ResultPlace, ...]] = field(default_factory=dict)  # by level, the results, best first
    milliseconds: dict[str, float] = field(default_factory=dict)  # by level, or `answer`, the time it took
    reply: Reply | None = None  # the answer, where one was asked for
    material: JudgedAnswer | None = None  # the same as judges read it, where it is kept for them
    # by judge, why it said so, in lines for people
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    failed_calls: int = 0  # calls of language models that gave no answer; what they were to write was left out


@dataclass(frozen=True)
class Evaluation:
    """What a run measured."""

    questions: tuple[Question, ...]  # the questions, in the order of the set
    options: RunOptions
    targets: Mapping[str, Mapping[str, Target]]  # by system and question, what was to be found
    results: Mapping[str, Mapping[str, QuestionResult]]  # by system and question, what came
    passages: Mapping[str, str]  # the beginning of the passages found, by system and id
    # measures of a language model that judged the answers, by what it was asked for
    judged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems, in the order asked for."""
        return tuple(self.results)

    def values(self, system: str, level: str, measure: str, questions: Iterable[Question] | None = None) -> list[float]:
        """Values of a system by a measure of a level, `answer` or judge: one a question, in the order of those wanted.

        They are nan where there is none. Without `questions` they are those of all questions.
        """
        results = self.results[system]
        selection = self.questions if questions is None else questions
        return [results[question.id].values.get(level, {}).get(measure, float("nan")) for question in selection]


def parse_system(name: str) -> tuple[str, str, int | None]:
    """Mode, summaries and version that a name means, as `two_step:file@3`; the version is None where it names none.

    Raises:
        QueryError: It names no summaries or version where it should.
    """
    rest, at, version = name.partition("@")
    mode, colon, summaries = rest.partition(":")
    if colon and summaries not in {"page", "file"}:
        raise QueryError(f"{name!r}: expected page or file after the colon")
    if at and not version.isdecimal():
        raise QueryError(f"{name!r}: expected the number of a version after @")
    return mode, summaries or "page", int(version) if at else None


def evaluate(
    systems: Sequence[System],
    questions: Sequence[Question],
    options: RunOptions,
    progress: Progress = no_progress,
) -> Evaluation:
    """Ask every system every question.

    Searches are done one by one, so that times are those of single questions. Questions without an answer, and those
    about the whole collection, are answered, but not searched: no place is right or wrong for them.

    Args:
        systems: What is measured.
        questions: What is asked; ids differ.
        options: What is measured.
        progress: Told the number of questions that were asked, all systems together.

    Raises:
        QueryError: A question cannot be asked in a mode; the message names both.
        ModelError: A model failed.
        StoreError: A published file is gone or damaged.
    """
    by_corpus: dict[int, dict[str, Target]] = {}
    results: dict[str, dict[str, QuestionResult]] = {}
    targets: dict[str, dict[str, Target]] = {}
    passages: dict[str, str] = {}
    done_count, total = 0, len(systems) * len(questions)
    for system in systems:  # what a mode lacks is said before minutes are spent; and what is loaded once is loaded
        if options.levels:
            _search(system, questions[0], Level.PASSAGE, 1)
    for system in systems:
        key = id(system.corpus)
        if key not in by_corpus:
            by_corpus[key] = system.corpus.targets(questions)
        targets[system.name] = by_corpus[key]
        system_results = results[system.name] = {}
        for question in questions:
            system_results[question.id] = ask_question(
                system, question, targets[system.name][question.id], options, passages
            )
            done_count += 1
            progress(done_count, total)
    return Evaluation(tuple(questions), options, targets, results, passages)


def ask_question(
    system: System, question: Question, target: Target, options: RunOptions, passages: dict[str, str]
) -> QuestionResult:
    """One question, searched at every level and answered; the texts of what was found go into `passages`.

    Raises:
        QueryError: The mode cannot be searched.
    """
    result = QuestionResult()
    for level in (level for level in options.levels if question.searched and level in system.levels):
        began = time.perf_counter()
        response = _search(system, question, level, options.depth)
        result.milliseconds[level] = (time.perf_counter() - began) * 1000
        result.mode = response.mode
        _count(result, response.trace.calls)
        result.found[level] = tuple(_place(hit, passages) for hit in response.hits)
        ranking = [place.ids(level) for place in result.found[level]]
        result.values[level] = measured(options.measures, ranking, target.ways[level])
    if options.answers:
        began = time.perf_counter()
        answer = system.base.ask(
            question.text,
            system.mode,
            system.answer_k,
            history=[Turn(earlier) for earlier in question.history],
            summaries=system.summaries,
            levels=system.reports,
        )
        result.milliseconds[ANSWER] = (time.perf_counter() - began) * 1000
        result.mode = answer.mode
        _count(result, answer.trace.calls)
        result.values[ANSWER] = judge_answer(question, answer, target)
        sources = tuple(_place(source, passages) for source in answer.cited())
        result.reply = Reply(answer.text, answer.answered, sources, answer.model, answer.failure)
        result.material = JudgedAnswer.of(answer) if options.judged else None
    return result


def _search(system: System, question: Question, level: Level, k: int) -> SearchResult:
    try:
        return system.base.search(
            question.text,
            system.mode,
            k,
            granularity=_GRANULARITY[level],
            summaries=system.summaries,
            levels=system.reports,
            history=[Turn(earlier) for earlier in question.history],
        )
    except QueryError as error:
        raise QueryError(f"question {question.id}: {error}") from error


def _place(hit: Hit, passages: dict[str, str]) -> ResultPlace:
    passages.setdefault(hit.chunk_id, hit.text[:_SHOWN_CHARS])
    return ResultPlace(hit.chunk_id, hit.page_id, hit.document_id, str(hit.citation), hit.score)


def _count(result: QuestionResult, calls: Sequence[ModelCall]) -> None:
    result.input_tokens += sum(call.input_tokens + call.cached_tokens for call in calls)
    result.output_tokens += sum(call.output_tokens for call in calls)
    result.cost_usd += sum(call.cost_usd for call in calls)
    result.failed_calls += sum(call.outcome not in _ANSWERED for call in calls)
