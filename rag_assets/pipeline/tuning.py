"""The configurations that a knowledge base can be searched by, for `rag_assets.training.tuning`; nothing is changed.

What stays out: choosing among them.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts import modes
from rag_assets.contracts.errors import QueryError
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import accepted_questions, open_corpus, question_set
from rag_assets.pipeline.opening import knowledge_base, published_snapshot

if TYPE_CHECKING:
    from rag_assets.evaluation.evidence import Corpus, Level, Target
    from rag_assets.evaluation.questions import Question
    from rag_assets.evaluation.runs import System
    from rag_assets.query.knowledge_base import KnowledgeBase
    from rag_assets.store.snapshots import Snapshot
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
_WITH_GRAPH = (modes.GRAPH_LOCAL_MODE, f"{modes.HYBRID_MODE},{modes.GRAPH_LOCAL_MODE}")


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


def planned_tuning(home: Home, path: Path | None, usd: float) -> Plan:
    """The configurations of a knowledge base, and the accepted questions that choose among them.

    Args:
        home: The knowledge base.
        path: The question set; None for that of the settings.
        usd: US dollars that calls of the language model may cost; for 0 none is asked.

    Raises:
        QueryError: Nothing is published, or no question can be judged.
    """
    from rag_assets.evaluation.runs import System

    home, notes = _bounded(home, usd)
    snapshot = published_snapshot(home)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    questions, targets, level = _judged(corpus, path or question_set(home))
    default = home.settings.search.mode
    systems = [(System(f"{default} (default)", base, corpus, default), "")]
    systems += [
        (System(name, base, corpus, name), f"RAG_SEARCH__MODE={name} RAG_SEARCH__ASK_MODE={name}")
        for name in (*_TRIED, *(_WITH_GRAPH if home.holds_graph else ()))
        if name != default
    ]
    if home.settings.reranking.model:
        plain = home.settings.reranking.model_copy(update={"model": ""})
        unranked = knowledge_base(Home(home.settings.model_copy(update={"reranking": plain})), snapshot)
        systems.append((System("no reranking", unranked, corpus, default), "RAG_RERANKING__MODEL="))
    if (learned := _with_learned_weights(home, snapshot, base)) is not None:
        systems.append((System("learned weights", learned, corpus, modes.WEIGHTED_MODE), "rag-assets train ranking"))
    made = [_candidate(system, adoption, questions, targets, level) for system, adoption in systems]
    return Plan(made, [_documents(each) for each in targets], level, notes)


def _bounded(home: Home, usd: float) -> tuple[Home, list[str]]:
    """The knowledge base with a language model that may cost so much; without one where it may cost nothing."""
    own = home.settings.language_model
    if own.provider == "extractive":
        return home, []
    least = min((each for each in (own.run_budget_usd, usd) if each is not None), default=usd)
    changes = {"run_budget_usd": least} if usd else {"provider": "extractive", "model": ""}
    notes = [] if usd else [f"{own.provider} is not asked; --usd says what it may cost"]
    return Home(home.settings.model_copy(update={"language_model": own.model_copy(update=changes)})), notes


def _judged(corpus: "Corpus", path: Path) -> "tuple[list[Question], list[Target], Level]":
    from rag_assets.evaluation.evidence import Level

    asked = [
        each for each in accepted_questions(path) if each.searched and not each.history and each.purpose != "testing"
    ]
    targets = corpus.targets(asked)
    questions = [each for each in asked if _documents(targets[each.id])]
    if not questions:
        raise QueryError(f"{path}: no accepted question names evidence that is indexed")
    found = [targets[each.id] for each in questions]
    return questions, found, Level.PAGE if any(any(each.ways[Level.PAGE]) for each in found) else Level.DOCUMENT


def _documents(target: "Target") -> frozenset[str]:
    from rag_assets.evaluation.evidence import Level

    return target.ids(Level.DOCUMENT)


def _with_learned_weights(home: Home, snapshot: "Snapshot", base: "KnowledgeBase") -> "KnowledgeBase | None":
    """The last weights that were learned, where they are not in force."""
    from rag_assets.query.search.ranking_weights import WEIGHTS_ASSET, Ranking, read_ranking
    from rag_assets.training.adoption import candidates

    for place, _ in candidates(home.path, WEIGHTS_ASSET)[:1]:
        if place not in snapshot.learned.get(WEIGHTS_ASSET, ()):
            weights = read_ranking(home.path / place, None, snapshot.embedder).weights
            return base.variant(replace(base.options, ranking=Ranking(weights, base.options.ranking.query_map)))
    return None


def _candidate(
    system: "System", adoption: str, questions: "list[Question]", targets: "list[Target]", level: "Level"
) -> "Candidate":
    from rag_assets.evaluation.runs import RunOptions, ask_question
    from rag_assets.training.tuning import MEASURES, Asked, Candidate

    options = RunOptions(measures=MEASURES, levels=(level,))

    def ask(position: int) -> Asked:
        result = ask_question(system, questions[position], targets[position], options, {})
        values = result.values.get(level, {})
        seconds = result.milliseconds.get(level, float("nan")) / 1000
        return Asked(tuple(values.get(each, float("nan")) for each in MEASURES), seconds, result.cost_usd)

    return Candidate(system.name, ask, adoption)
