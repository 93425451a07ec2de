"""The configurations that a knowledge base can be searched by, for `rag_assets.training.tuning`; nothing is changed.

What stays out: choosing among them.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts import modes
from rag_assets.contracts.errors import ModelError, QueryError, StoreError
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import accepted_questions, open_corpus, question_set
from rag_assets.pipeline.opening import knowledge_base, learning_problems, published_snapshot
from rag_assets.pipeline.stored_settings import store_settings
from rag_assets.query.search.ranking_weights import SHIPPED, Ranking, Scorer, lightgbm_module
from rag_assets.text.plain import counted

if TYPE_CHECKING:
    from rag_assets.evaluation.evidence import Corpus, Level, Target
    from rag_assets.evaluation.questions import Question
    from rag_assets.evaluation.runs import System
    from rag_assets.query import KnowledgeBase
    from rag_assets.store.snapshots import Snapshot
    from rag_assets.training.pairs import JudgedQuestion
    from rag_assets.training.ranking import Learn
    from rag_assets.training.tuning import Configuration

_TRIED = (
    modes.FULLTEXT_MODE,
    modes.VECTOR_MODE,
    modes.HYBRID_MODE,
    modes.WEIGHTED_MODE,
    modes.TWO_STEP_MODE,
    modes.META_KNOWLEDGE_MODE,
    modes.HYDE_MODE,
    modes.REWRITE_MODE,
    f"{modes.REWRITE_MODE}+{modes.WEIGHTED_MODE}",
)
_WITHOUT_RERANKING = "unset RAG_RERANKING__MODEL  # and take reranking.model out of rag_assets.toml"
_BY_PROOF = "  # from all questions; in force where it proves better"
_WITH_GRAPH = (modes.GRAPH_LOCAL_MODE, f"{modes.HYBRID_MODE},{modes.GRAPH_LOCAL_MODE}")


@dataclass(frozen=True)
class TuningBudget:
    """What tuning may take."""

    deadline: float  # when it ends, by `time.monotonic`
    usd: float = 0.0  # US dollars that calls of the language model may cost; for 0 none is asked


@dataclass(frozen=True)
class TuningPlan:
    """What is tuned."""

    candidates: "list[Configuration]"  # the configurations, the default first
    documents: list[frozenset[str]]  # of each question, the documents that hold its evidence
    choosing: list[int]  # positions of the questions that choose, in the order in which they are asked
    held_out: list[int]  # positions of those for the last comparison
    level: "Level"  # what searches are asked for
    notes: list[str]  # what was left out, and why


def planned_tuning(
    home: Home, path: Path | None, budget: TuningBudget, sizes: Sequence[int], folder: Path
) -> TuningPlan:
    """The configurations of a knowledge base, and the accepted questions that choose among them.

    Args:
        home: The knowledge base.
        path: The question set; None for that of the settings.
        budget: What it may take; weights are learned, and other passages indexed, in half of its time.
        sizes: Tokens of passages to try besides those that there are.
        folder: Where documents are indexed with other passages; the caller removes it.

    Raises:
        QueryError: Nothing is published, no question can be judged, or they cannot be parted.
    """
    from rag_assets.evaluation.runs import System
    from rag_assets.training.tuning import parted

    own, (home, notes) = home, _bounded(home, budget.usd)
    snapshot = published_snapshot(home)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    questions, level = _judged(corpus, path or question_set(home))
    documents = [_documents(target) for target in corpus.targets(questions).values()]
    choosing, held_out = parted(documents)
    mode = home.settings.search.mode
    default = System(f"{mode} (default)", base, corpus, mode)
    systems = [(default, ""), *_other_modes(home, snapshot, default)]
    candidates = [_candidate([system] * len(questions), adoption, questions, level) for system, adoption in systems]
    notes += _learning_notes(home, snapshot)
    last = time.monotonic() + (budget.deadline - time.monotonic()) / 2
    judged = cache(partial(_signals, base, corpus, [questions[position] for position in choosing], last))
    for name, (learn, option) in _learners().items():
        try:
            system = replace(default, name=name, mode=mode if mode == modes.AUTO_MODE else modes.WEIGHTED_MODE)
            learned_systems = _learned(system, judged(), choosing, len(questions), level, learn)
        except (QueryError, ModelError, StoreError) as error:
            notes.append(f"{name}: not tried: {error}")
            continue
        export = "" if system.mode == mode else f"export RAG_SEARCH__MODE={system.mode} && "
        candidates.append(_candidate(learned_systems, export + _training(own, path, option), questions, level))
    for size in sizes:
        name = f"passages of {size} tokens"
        try:
            other_home, seconds = _of_other_passages(own, size, folder / str(size), last - time.monotonic())
            version = replace(published_snapshot(other_home), learned=snapshot.learned)
            system = System(name, knowledge_base(other_home, version), open_corpus(other_home, version), mode)
        except (QueryError, ModelError, StoreError) as error:
            notes.append(f"{name}: not tried: {error}")
            continue
        without = "" if own.settings.language_model.provider == "extractive" else ", without the language model"
        notes.append(f"{name}: indexing took {seconds:.0f} s{without}")
        index = f"rag-assets --home {shlex.quote(str(own.path))} index --accept-settings"
        adoption = f"export RAG_CHUNKING__SIZE_TOKENS={size} && {index}"
        candidates.append(_candidate([system] * len(questions), adoption, questions, level))
    return TuningPlan(candidates, documents, choosing, held_out, level, notes)


def _other_modes(home: Home, snapshot: "Snapshot", default: "System") -> "Iterator[tuple[System, str]]":
    """Ways of searching the same version besides the default, and what a user does to adopt each."""
    for name in (*_TRIED, *(_WITH_GRAPH if home.holds_graph else ())):
        if name != default.mode:
            yield replace(default, name=name, mode=name), f"export RAG_SEARCH__MODE={name}"
    if home.settings.reranking.model:
        plain_base = knowledge_base(home.having("reranking", model=""), snapshot)
        yield replace(default, name="no reranking", base=plain_base), _WITHOUT_RERANKING


def _learning_notes(home: Home, snapshot: "Snapshot") -> list[str]:
    """What there is to know of what was learned and is in force."""
    problems = learning_problems(home, snapshot)
    notes = [f"in force, but not used here: {name}: {problem}" for name, problem in problems.items()]
    if in_force := sorted(snapshot.learned.keys() - problems.keys()):
        notes.append(
            f"part of the default: {', '.join(in_force)}; if learned from these questions, its figures are in sample: "
            "see its proof by `rag-assets train status`"
        )
    return notes


def _learners() -> "dict[str, tuple[Learn, str]]":
    """How weights are learned here, and the option of `train ranking` for it."""
    from rag_assets.training.ranking import learned_trees, learned_weights

    learners: dict[str, tuple[Learn, str]] = {"learned weights": (learned_weights, "")}
    with suppress(ModelError):
        lightgbm_module()
        learners["learned trees"] = learned_trees, " --model trees"
    return learners


def _signals(
    base: "KnowledgeBase", corpus: "Corpus", questions: "list[Question]", last: float
) -> "list[JudgedQuestion]":
    """Questions with the signals that weights are learned from: as for `train ranking` without the query map.

    Raises:
        QueryError: That did not end in time.
    """
    from rag_assets.training.pairs import judged_questions

    def check(_done: int, _total: int) -> None:
        if time.monotonic() > last:
            raise QueryError("asking the questions that choose took half of the time")

    plain = replace(base.options, ranking=Ranking(base.options.ranking.weights))
    return judged_questions(base.variant(plain), corpus, questions, check)


def _learned(
    system: "System",
    judged: "list[JudgedQuestion]",
    choosing: Sequence[int],
    count: int,
    level: "Level",
    learn: "Learn",
) -> "list[System]":
    """For each question the system with the weights that other questions teach.

    A question that chooses is searched by what those that choose teach on documents of other folds, one that is held
    out by what all of them teach.

    Raises:
        QueryError: They teach none that are surely better than the shipped ones.
    """
    from rag_assets.training.pairs import document_folds
    from rag_assets.training.ranking import FOLDS, LEVELS, held_out_weights

    granularity, own = LEVELS[level], system.base.options

    def system_with(scorer: Scorer) -> "System":
        ranking = replace(own.ranking, weights={**own.ranking.weights, granularity: scorer})
        return replace(system, base=system.base.variant(replace(own, ranking=ranking)))

    whole, _ = learn(judged, level)
    if whole == SHIPPED[granularity]:
        amount = counted(len(judged), "question")
        raise QueryError(f"{amount} teach none that are surely better than the shipped weights")
    folds = document_folds([question.documents for question in judged], FOLDS)
    systems = [system_with(whole)] * count
    for position, scorer in zip(choosing, held_out_weights(judged, level, folds, learn), strict=True):
        systems[position] = system_with(scorer)
    return systems


def _training(home: Home, path: Path | None, option: str) -> str:
    """The command that learns weights from all questions of a set, and adopts them where they prove better."""
    argument = f" {shlex.quote(str(path))}" if path else ""
    return f"rag-assets --home {shlex.quote(str(home.path))} train ranking{argument}{option}{_BY_PROOF}"


def _bounded(home: Home, usd: float) -> tuple[Home, list[str]]:
    """The knowledge base with a language model that may cost so much; without one where it may cost nothing."""
    own = home.settings.language_model
    if own.provider == "extractive":
        return home, []
    if not usd:
        note = f"{own.provider} is not asked without --usd: modes that use it are measured by rules until adopted"
        return _without_model(home), [note]
    least = usd if own.run_budget_usd is None else min(own.run_budget_usd, usd)
    return home.having("language_model", run_budget_usd=least), []


def _of_other_passages(home: Home, size: int, folder: Path, seconds: float) -> tuple[Home, float]:
    """The same documents, cut into other passages in a knowledge base of its own, and the seconds that took.

    All else that decides what is stored is as it is in force, but that no language model is asked; what was learned is
    taken along.

    Raises:
        QueryError: It did not end in time, or failed, or its embedder may cost.
    """
    if home.settings.embedding.provider == "openai":
        raise QueryError("the embedder is a server, whose price is not known")
    if seconds <= 0:
        raise QueryError("indexing others took half of the time")
    began = time.monotonic()
    chunking = home.settings.chunking.model_copy(update={"size_tokens": size})
    changes = {"home": folder, "state_url": None, "chunking": chunking}
    settings = _without_model(home).settings.model_copy(update=changes)
    folder.mkdir(parents=True)
    (folder / "models").symlink_to((home.path / "models").resolve())
    store_settings(folder / "settings.json", settings)  # in force wherever environment and file state nothing else
    own_places = {"DAGSTER_HOME", "RAG_STATE_URL"}
    environment = {
        **{name: value for name, value in os.environ.items() if name not in own_places},
        "RAG_CHUNKING__SIZE_TOKENS": str(size),
        "RAG_LANGUAGE_MODEL__PROVIDER": "extractive",
        "RAG_EVALUATION__GATE": "off",
    }
    sources = [f"{source.name}={source.location}" for source in home.sources()]
    command = [sys.executable, "-m", "rag_assets", "--home", str(folder), "index", *sources]
    try:
        result = subprocess.run(  # noqa: S603 - this program
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise QueryError(f"indexing did not end in {seconds:.0f} s, what was left of half of the time") from None
    if result.returncode:
        raise QueryError(f"indexing failed: {(result.stderr.strip().splitlines() or ['no message'])[-1]}")
    (folder / "learned").symlink_to((home.path / "learned").resolve())
    return Home(settings), time.monotonic() - began


def _without_model(home: Home) -> Home:
    return home.having("language_model", provider="extractive", model="")


def _judged(corpus: "Corpus", path: Path) -> "tuple[list[Question], Level]":
    from rag_assets.evaluation.evidence import Level

    candidates = [
        question
        for question in accepted_questions(path)
        if question.searched and not question.history and question.purpose != "testing"
    ]
    targets = corpus.targets(candidates)
    questions = [question for question in candidates if _documents(targets[question.id])]
    if not questions:
        raise QueryError(f"{path}: no accepted question names evidence that is indexed")
    # a document that is named alone stands for each of its pages, none of which was judged
    placed_questions = [
        question
        for question in questions
        if any(piece.place or piece.quote or piece.cells for piece in question.evidence)
    ]
    has_pages = any(any(targets[question.id].ways[Level.PAGE]) for question in placed_questions)
    return questions, Level.PAGE if has_pages else Level.DOCUMENT


def _documents(target: "Target") -> frozenset[str]:
    from rag_assets.evaluation.evidence import Level

    return target.ids(Level.DOCUMENT)


def _candidate(
    systems: "Sequence[System]", adoption: str, questions: "list[Question]", level: "Level"
) -> "Configuration":
    """A configuration, as a system for each question: those of one configuration differ in what they learned alone."""
    from rag_assets.evaluation.runs import RunOptions, ask_question
    from rag_assets.training.tuning import MEASURES, Configuration, QuestionOutcome

    options, targets = RunOptions(measures=MEASURES, levels=(level,)), systems[0].corpus.targets(questions)

    def ask(position: int) -> QuestionOutcome:
        question = questions[position]
        result = ask_question(systems[position], question, targets[question.id], options, {})
        values = result.values.get(level, {})
        seconds = result.milliseconds.get(level, float("nan")) / 1000
        return QuestionOutcome(
            tuple(values.get(measure, float("nan")) for measure in MEASURES), seconds, result.cost_usd
        )

    return Configuration(systems[0].name, ask, adoption)
