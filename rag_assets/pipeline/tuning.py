"""The configurations that a knowledge base can be searched by, for `rag_assets.training.tuning`; nothing is changed.

What stays out: choosing among them.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts import modes
from rag_assets.contracts.errors import ModelError, QueryError, StoreError
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import accepted_questions, open_corpus, question_set
from rag_assets.pipeline.opening import knowledge_base, learning_problems, published_snapshot
from rag_assets.pipeline.stored_settings import store_settings

if TYPE_CHECKING:
    from rag_assets.evaluation.evidence import Corpus, Level, Target
    from rag_assets.evaluation.questions import Question
    from rag_assets.evaluation.runs import System
    from rag_assets.pipeline.settings import Settings
    from rag_assets.training.tuning import Candidate

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
_WITH_GRAPH = (modes.GRAPH_LOCAL_MODE, f"{modes.HYBRID_MODE},{modes.GRAPH_LOCAL_MODE}")


@dataclass(frozen=True)
class Budget:
    """What tuning may take.

    Attributes:
        deadline: When it ends, by `time.monotonic`.
        usd: US dollars that calls of the language model may cost; for 0 none is asked.
    """

    deadline: float
    usd: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What is tuned.

    Attributes:
        candidates: The configurations, the default first.
        documents: Of each question, the documents that hold its evidence.
        level: What searches are asked for.
        notes: What was left out, and why.
    """

    candidates: "list[Candidate]"
    documents: list[frozenset[str]]
    level: "Level"
    notes: list[str]


def planned_tuning(home: Home, path: Path | None, budget: Budget, sizes: Sequence[int], folder: Path) -> Plan:
    """The configurations of a knowledge base, and the accepted questions that choose among them.

    Args:
        home: The knowledge base.
        path: The question set; None for that of the settings.
        budget: What it may take; other passages are indexed in half of its time.
        sizes: Tokens of passages to try besides those that there are.
        folder: Where documents are indexed with other passages; the caller removes it.

    Raises:
        QueryError: Nothing is published, or no question can be judged.
    """
    from rag_assets.evaluation.runs import System

    own, (home, notes) = home, _bounded(home, budget.usd)
    snapshot = published_snapshot(home)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    questions, level = _judged(corpus, path or question_set(home))
    default = home.settings.search.mode
    systems = [(System(f"{default} (default)", base, corpus, default), "")]
    systems += [
        (System(name, base, corpus, name), f"export RAG_SEARCH__MODE={name}")
        for name in (*_TRIED, *(_WITH_GRAPH if home.holds_graph else ()))
        if name != default
    ]
    if home.settings.reranking.model:
        plain = home.settings.reranking.model_copy(update={"model": ""})
        unranked = knowledge_base(Home(home.settings.model_copy(update={"reranking": plain})), snapshot)
        systems.append((System("no reranking", unranked, corpus, default), _WITHOUT_RERANKING))
    problems = learning_problems(home, snapshot)
    notes += [f"in force, but not used here: {name}: {problem}" for name, problem in problems.items()]
    if in_force := sorted(snapshot.learned.keys() - problems.keys()):
        notes.append(
            f"in force, and so part of the default: {', '.join(in_force)}; where that was learned from "
            "these questions, its figures are in sample: `rag-assets train status` tells its proof"
        )
    last = time.monotonic() + (budget.deadline - time.monotonic()) / 2
    for size in sizes:
        name = f"passages of {size} tokens"
        try:
            other, seconds = _of_other_passages(own, size, folder / str(size), last - time.monotonic())
            version = replace(published_snapshot(other), learned=snapshot.learned)
            system = System(name, knowledge_base(other, version), open_corpus(other, version), default)
        except (QueryError, ModelError, StoreError) as error:
            notes.append(f"{name}: not tried: {error}")
            continue
        without = "" if own.settings.language_model.provider == "extractive" else ", without the language model"
        notes.append(f"{name}: indexing took {seconds:.0f} s{without}")
        index = f"rag-assets --home {shlex.quote(str(own.path))} index --accept-settings"
        systems.append((system, f"export RAG_CHUNKING__SIZE_TOKENS={size} && {index}"))
    made = [_candidate(system, adoption, questions, level) for system, adoption in systems]
    documents = [_documents(each) for each in corpus.targets(questions).values()]
    return Plan(made, documents, level, notes)


def _bounded(home: Home, usd: float) -> tuple[Home, list[str]]:
    """The knowledge base with a language model that may cost so much; without one where it may cost nothing."""
    own = home.settings.language_model
    if own.provider == "extractive":
        return home, []
    if not usd:
        note = (
            f"{own.provider} is not asked; --usd says what it may cost: modes that would ask it are measured by rules, "
            "and ask it once they are adopted"
        )
        return Home(_without_model(home.settings)), [note]
    least = usd if own.run_budget_usd is None else min(own.run_budget_usd, usd)
    bounded = own.model_copy(update={"run_budget_usd": least})
    return Home(home.settings.model_copy(update={"language_model": bounded})), []


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
    settings = _without_model(home.settings).model_copy(update=changes)
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
    sources = [f"{each.name}={each.location}" for each in home.sources()]
    command = [sys.executable, "-m", "rag_assets", "--home", str(folder), "index", *sources]
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise QueryError(f"indexing did not end in {seconds:.0f} s, what was left of half of the time") from None
    if done.returncode:
        raise QueryError(f"indexing failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    (folder / "learned").symlink_to((home.path / "learned").resolve())
    return Home(settings), time.monotonic() - began


def _without_model(settings: "Settings") -> "Settings":
    plain = settings.language_model.model_copy(update={"provider": "extractive", "model": ""})
    return settings.model_copy(update={"language_model": plain})


def _judged(corpus: "Corpus", path: Path) -> "tuple[list[Question], Level]":
    from rag_assets.evaluation.evidence import Level

    asked = [
        each for each in accepted_questions(path) if each.searched and not each.history and each.purpose != "testing"
    ]
    targets = corpus.targets(asked)
    questions = [each for each in asked if _documents(targets[each.id])]
    if not questions:
        raise QueryError(f"{path}: no accepted question names evidence that is indexed")
    # a document that is named alone stands for each of its pages, none of which was judged
    placed = [each for each in questions if any(piece.place or piece.quote or piece.cells for piece in each.evidence)]
    paged = any(any(targets[each.id].ways[Level.PAGE]) for each in placed)
    return questions, Level.PAGE if paged else Level.DOCUMENT


def _documents(target: "Target") -> frozenset[str]:
    from rag_assets.evaluation.evidence import Level

    return target.ids(Level.DOCUMENT)


def _candidate(system: "System", adoption: str, questions: "list[Question]", level: "Level") -> "Candidate":
    from rag_assets.evaluation.runs import RunOptions, ask_question
    from rag_assets.training.tuning import MEASURES, Asked, Candidate

    options, targets = RunOptions(measures=MEASURES, levels=(level,)), system.corpus.targets(questions)

    def ask(position: int) -> Asked:
        question = questions[position]
        result = ask_question(system, question, targets[question.id], options, {})
        values = result.values.get(level, {})
        seconds = result.milliseconds.get(level, float("nan")) / 1000
        return Asked(tuple(values.get(each, float("nan")) for each in MEASURES), seconds, result.cost_usd)

    return Candidate(system.name, ask, adoption)
