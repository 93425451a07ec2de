"""Learning on a knowledge base: which questions are learned from, and where the result is kept.

For the commands `train` and the Dagster assets. What stays out: learning itself (`rag_assets.training`), and whether
what was learned still helps (`rag_assets.pipeline.drift`).
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import ModelError, QueryError, StoreError
from rag_assets.evaluation.clicks import read_clicks
from rag_assets.evaluation.statistics import change_text
from rag_assets.pipeline.drift import bring_into_force
from rag_assets.pipeline.measuring import accepted_questions, clicks_file, feedback_file, open_corpus, question_set
from rag_assets.pipeline.opening import knowledge_base, learned_ranking, published_snapshot, usable_place
from rag_assets.query.search.ranking_weights import (
    MAP_ASSET,
    SHIPPED,
    SIGNALS,
    WEIGHTS_ASSET,
    BoostedWeights,
    Ranking,
    Scorer,
    lightgbm_module,
    map_files,
    weights_files,
)
from rag_assets.training.adoption import Basis, Proof, prune, store_candidate

if TYPE_CHECKING:
    from rag_assets.evaluation.questions import Question
    from rag_assets.pipeline.home import Home
    from rag_assets.store.snapshots import Snapshot
    from rag_assets.training.pairs import JudgedQuestion

Progress = Callable[[int, int], None]
TREES = "trees"
MODELS = ("linear", TREES)  # of weights; the first by default


@dataclass(frozen=True)
class TrainingOptions:
    """What is learned, from what, and what becomes of it.

    Attributes:
        questions: The question set; None for that of the settings.
        drafts: Questions drafted from the documents that are learned from as well, at most.
        feedback: Whether thumbs up that nobody has accepted are learned from as well.
        adopts: Whether what proves better comes into force.
        clicks: Whether weights are learned from clicks on results as well.
        distills: Whether weights are learned that imitate the reranker, so that none is needed.
        trees: Whether boosted trees are learned on top of the shipped weights, in place of other weights.
    """

    questions: Path | None = None
    drafts: int = 0
    feedback: bool = False
    adopts: bool = True
    clicks: bool = False
    distills: bool = False
    trees: bool = False


@dataclass(frozen=True)
class Trained:
    """What came of learning.

    Attributes:
        name: What was learned.
        place: Where it is kept below the home; None where nothing was found worth keeping.
        proofs: By level, what it reaches on documents that it was not learned from.
        reason: What became of it, and why.
        version: The version in which it came into force; None where it did not.
        facts: What it is, by name, for people.
        question_count: Questions that it was learned from.
    """

    name: str
    place: str | None
    proofs: Mapping[str, Proof]
    reason: str
    version: int | None
    facts: Mapping[str, str]
    question_count: int

    def table(self) -> list[list[str]]:
        """Level, before, after and difference, with intervals, and whether it is better."""
        return [
            [
                proof.measure,
                f"{proof.before.mean:.3f} [{proof.before.low:.3f}, {proof.before.high:.3f}]",
                f"{proof.after.mean:.3f} [{proof.after.low:.3f}, {proof.after.high:.3f}]",
                change_text(proof.difference),
                proof.reason,
            ]
            for proof in self.proofs.values()
        ]


TABLE_COLUMNS = ("measure", "before", "after", "difference", "verdict")


def train_ranking(home: "Home", options: TrainingOptions, progress: Progress) -> Trained:
    """Learn the weights of mode `weighted`, and bring them into force where they prove better than those in force.

    They are learned and proved without the query map, which was learned from the same questions.

    Args:
        home: The knowledge base.
        options: What is learned from.
        progress: Told the number of questions that were asked.

    Raises:
        QueryError: There are no questions, nothing is published, there is no reranker to learn from, or what is in
            force cannot be used here.
        ModelError: The embedder or the reranker failed, or the library of the trees is not installed.
        StoreError: Another run is writing.
    """
    from rag_assets.training.pairs import clicked_questions, distilled, judged_questions, unjudged_questions
    from rag_assets.training.ranking import learn_ranking, learned_trees, learned_weights

    if options.trees:
        lightgbm_module()
    snapshot = published_snapshot(home)
    against = usable_place(home, snapshot, WEIGHTS_ASSET)
    clicks = clicks_file(home) if options.clicks else None
    if options.clicks and clicks is None:
        raise QueryError("there are no clicks to learn from: evaluation.feedback is off")
    if options.distills and not home.settings.reranking.model:
        raise QueryError("no reranker is configured to learn from: name one in the setting reranking.model")
    accepted, further = _questions(home, snapshot, options)
    in_force = learned_ranking(home, snapshot).weights
    opened, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    base = opened.variant(replace(opened.options, ranking=Ranking(in_force)))
    measured = {each.id for each in accepted}
    judged = judged_questions(base, corpus, [*accepted, *further], progress, measured_ids=measured)
    clicked = clicked_questions(base, read_clicks(clicks), accepted) if clicks is not None else []
    judged += clicked
    if options.distills:
        judged = distilled([*judged, *unjudged_questions(base, accepted)])
    candidate = learn_ranking(judged, learned_trees if options.trees else learned_weights, in_force)
    chosen = candidate.weights if candidate.proof.is_better else candidate.proposed
    weighed = {name for each in judged for name, column in zip(SIGNALS, each.signals.T, strict=True) if column.any()}
    facts = {name: fact for key in chosen for name, fact in _facts(key, chosen[key], weighed).items()}
    if options.clicks:
        facts["questions with clicks"] = str(len(clicked))
    proofs = {str(level): proof for level, proof in candidate.proofs.items()}
    files = weights_files(chosen, base.reranker) if chosen != in_force else {}
    basis = _basis(snapshot, against, judged)
    trained = Trained(WEIGHTS_ASSET, None, proofs, "", None, facts, len(judged))
    return _keep(home, trained, files, candidate.proof, basis, accepted, options)


def _facts(granularity: str, learned: Scorer, weighed: Collection[str]) -> dict[str, str]:
    """What was learned, for people: each weight that is another than shipped, and which signals the trees rest on.

    Args:
        granularity: What is ranked.
        learned: Its weights.
        weighed: Signals that some passage has.
    """
    from rag_assets.training.ranking import LEVELS

    level = next(level for level, each in LEVELS.items() if each == granularity)
    changes = [
        (name, f"{shipped:g}", f"{now:g}")
        for name, shipped, now in zip(SIGNALS, SHIPPED[granularity].vector(), learned.weights.vector(), strict=True)
    ]
    facts = {
        f"{level}s, {name}": f"{shipped} → {now}"
        for name, shipped, now in changes
        if name in weighed and shipped != now
    }
    if isinstance(learned, BoostedWeights):
        gains = sorted(learned.gains.items(), key=lambda each: -each[1])
        facts[f"{level}s, trees"] = f"{learned.rounds}, of " + " ".join(f"{name} {gain:.0%}" for name, gain in gains)
    return facts


def train_query_map(home: "Home", options: TrainingOptions, progress: Progress) -> Trained:
    """Learn a map of query vectors, and bring it into force where it proves better than the one in force, or none.

    Args:
        home: The knowledge base.
        options: What is learned from.
        progress: Told the number of questions that were asked.

    Raises:
        QueryError: As for `train_ranking`, like the other errors.
    """
    from rag_assets.training.pairs import document_folds, judged_questions
    from rag_assets.training.query_map import learned_map
    from rag_assets.training.ranking import FOLDS, LEVELS, judged_levels, proof_of

    snapshot = published_snapshot(home)
    against, beside = (usable_place(home, snapshot, name) for name in (MAP_ASSET, WEIGHTS_ASSET))
    accepted, further = _questions(home, snapshot, options)
    asked, measured = [*accepted, *further], {each.id for each in accepted}
    in_force = learned_ranking(home, snapshot)
    weights = in_force.weights
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    plain = base.variant(replace(base.options, ranking=Ranking(weights)))
    judged = judged_questions(plain, corpus, asked, progress, vectors=True, measured_ids=measured)
    before = judged if in_force.query_map is None else judged_questions(base, corpus, asked, measured_ids=measured)
    by_id = {each.id: each for each in asked}
    mapped = list(judged)
    for held_out in document_folds([each.documents for each in judged], FOLDS):
        query_map, _ = learned_map([each for position, each in enumerate(judged) if position not in set(held_out)])
        if query_map is not None:
            other = base.variant(replace(base.options, ranking=Ranking(weights, query_map)))
            searched = judged_questions(
                other, corpus, [by_id[judged[each].id] for each in held_out], measured_ids=measured
            )
            for position, each in zip(held_out, searched, strict=True):
                mapped[position] = each
    proofs: dict[str, Proof] = {}
    for level in judged_levels(judged):
        own = [weights[LEVELS[level]]] * len(judged)
        proofs[str(level)] = proof_of(before, level, own, mapped, own)
    found, ridge = learned_map(judged)
    main = next(iter(proofs.values()))
    others = [each for each in proofs.values() if each is not main]
    worse = [each.measure for each in others if each.difference.high < 0]
    worse += [f"{proof.measure}: {each}" for proof in others for each in proof.worse]
    if found is None:
        main = replace(main, is_better=False, reason="no map is surely better than none")
    elif worse:
        main = replace(main, is_better=False, reason=f"{main.reason}; worse: {', '.join(worse)}")
    files = map_files(found, snapshot.embedder) if found is not None else {}
    facts = {} if math.isinf(ridge) else {"ridge": f"{ridge:g}", "rank": str(found.left.shape[1] if found else 0)}
    basis = replace(_basis(snapshot, against, judged), beside={WEIGHTS_ASSET: beside})
    trained = Trained(MAP_ASSET, None, proofs, "", None, facts, len(judged))
    return _keep(home, trained, files, main, basis, accepted, options)


def _questions(
    home: "Home", snapshot: "Snapshot", options: TrainingOptions
) -> "tuple[Sequence[Question], list[Question]]":
    """Accepted questions, which may prove something, and further ones, which are learned from only."""
    from rag_assets.training.pairs import further_questions

    accepted = accepted_questions(options.questions or question_set(home))
    feedback = feedback_file(home) if options.feedback else None
    return accepted, further_questions(open_corpus(home, snapshot), accepted, options.drafts, feedback)


def _basis(snapshot: "Snapshot", against: str, judged: "Sequence[JudgedQuestion]") -> Basis:
    """What is learned from questions on a version rests on."""
    documents = frozenset[str]().union(*(each.documents for each in judged))
    return Basis([each.id for each in judged], documents, snapshot.number, against)


def _keep(
    home: "Home",
    trained: Trained,
    files: Mapping[str, bytes],
    proof: Proof,
    basis: Basis,
    accepted: "Sequence[Question]",
    options: TrainingOptions,
) -> Trained:
    """Keep what was learned, and bring it into force where it may."""
    if not files:
        return replace(
            trained, reason=f"nothing learned, as no other suits these questions surely better: {proof.reason}"
        )
    name, version, problem, note, is_in_force = trained.name, None, "", "", False
    place = store_candidate(home.path, name, files, proof, basis)
    try:
        with home.lock():
            current = home.snapshots.current()
            is_in_force = current is not None and place in current.learned.get(name, ())[-1:]
            try:
                if options.adopts and proof.is_better and not is_in_force:
                    published, _, note = bring_into_force(home, name, accepted, place)
                    version = published.number
            finally:
                prune(home.path, home.snapshots, name, place)
    except (ModelError, QueryError, StoreError) as error:
        problem = f" ({error})" if options.adopts and proof.is_better else ""
    became = f"kept in {place}, not in force{problem}" if version is None else f"in force in version {version}"
    if is_in_force:
        became = f"{place} is in force already"
    elif proof.is_better and not options.adopts:
        became += " (--no-adopt)"
    reason = "; ".join(filter(None, (f"{became}: {proof.reason}", note)))
    return replace(trained, place=place, reason=reason, version=version)
