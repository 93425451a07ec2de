"""Learning on a knowledge base, weights, a query map or a rewriter: which questions are learned from, and where the
result is kept.

For the commands `train` and the Dagster assets. What stays out: learning itself (`rag_assets.training`), and whether
what was learned still helps (`rag_assets.pipeline.drift`).
"""

import json
import logging
import math
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import ModelError, QueryError, StoreError
from rag_assets.evaluation.clicks import read_clicks
from rag_assets.evaluation.statistics import change_text
from rag_assets.pipeline.drift import bring_into_force
from rag_assets.pipeline.measuring import accepted_questions, clicks_file, feedback_file, open_corpus, question_set
from rag_assets.pipeline.opening import (
    frozen_rewriter,
    knowledge_base,
    learned_ranking,
    published_snapshot,
    usable_place,
)
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
from rag_assets.store.files import Lock
from rag_assets.training.adoption import REWRITER_MODEL, Basis, Proof, prune, store_candidate

if TYPE_CHECKING:
    from rag_assets.evaluation.questions import Question
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import RewriterTrainingSettings
    from rag_assets.store.snapshots import Snapshot
    from rag_assets.training.pairs import JudgedQuestion
    from rag_assets.training.rewriter import RewriterOptions

_log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
TREES = "trees"
MODELS = ("linear", TREES)  # of weights; the first by default


@dataclass(frozen=True)
class TrainingOptions:
    """What is learned, from what, and what becomes of it."""

    questions: Path | None = None  # the question set; None for that of the settings
    drafts: int = 0  # questions drafted from the documents that are learned from as well, at most
    feedback: bool = False  # whether thumbs up that nobody has accepted are learned from as well
    adopts: bool = True  # whether what proves better comes into force
    clicks: bool = False  # whether weights are learned from clicks on results as well
    distills: bool = False  # whether weights are learned that imitate the reranker, so that none is needed
    trees: bool = False  # whether boosted trees are learned on top of the shipped weights, in place of other weights


@dataclass(frozen=True)
class Trained:
    """What came of learning."""

    name: str  # what was learned
    place: str | None  # where it is kept below the home; None where nothing was found worth keeping
    # by level, or by the reward of a rewriter, what it reaches on documents that it was not learned from
    proofs: Mapping[str, Proof]
    reason: str  # what became of it, and why
    version: int | None  # the version in which it came into force; None where it did not
    facts: Mapping[str, str]  # what it is, by name, for people
    question_count: int  # questions that it was learned from

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
    plain_base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    base = plain_base.variant(replace(plain_base.options, ranking=Ranking(in_force)))
    measured_ids = {question.id for question in accepted}
    judged = judged_questions(base, corpus, [*accepted, *further], progress, measured_ids=measured_ids)
    from_clicks = clicked_questions(base, read_clicks(clicks), accepted) if clicks is not None else []
    judged += from_clicks
    if options.distills:
        judged = distilled([*judged, *unjudged_questions(base, accepted)])
    candidate = learn_ranking(judged, learned_trees if options.trees else learned_weights, in_force)
    weights = candidate.weights if candidate.proof.is_better else candidate.proposed
    used_signals = {
        name for question in judged for name, column in zip(SIGNALS, question.signals.T, strict=True) if column.any()
    }
    facts = {name: fact for key in weights for name, fact in _facts(key, weights[key], used_signals).items()}
    if options.clicks:
        facts["questions with clicks"] = str(len(from_clicks))
    proofs = {str(level): proof for level, proof in candidate.proofs.items()}
    files = weights_files(weights, base.reranker) if weights != in_force else {}
    basis = _basis(snapshot, against, judged)
    result = Trained(WEIGHTS_ASSET, None, proofs, "", None, facts, len(judged))
    return _keep(home, result, files, candidate.proof, basis, accepted, adopts=options.adopts)


def _facts(granularity: str, scorer: Scorer, used_signals: Collection[str]) -> dict[str, str]:
    """What was learned, for people: each weight that is another than shipped, and which signals the trees rest on.

    Args:
        granularity: What is ranked.
        scorer: Its weights.
        used_signals: Signals that some passage has.
    """
    from rag_assets.training.ranking import LEVELS

    level = next(level for level, of_level in LEVELS.items() if of_level == granularity)
    changes = [
        (name, f"{before:g}", f"{now:g}")
        for name, before, now in zip(SIGNALS, SHIPPED[granularity].vector(), scorer.weights.vector(), strict=True)
    ]
    facts = {
        f"{level}s, {name}": f"{before} → {now}"
        for name, before, now in changes
        if name in used_signals and before != now
    }
    if isinstance(scorer, BoostedWeights):
        gains = sorted(scorer.gains.items(), key=lambda item: -item[1])
        facts[f"{level}s, trees"] = f"{scorer.rounds}, of " + " ".join(f"{name} {gain:.0%}" for name, gain in gains)
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
    questions, measured_ids = [*accepted, *further], {question.id for question in accepted}
    in_force = learned_ranking(home, snapshot)
    weights = in_force.weights
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    plain = base.variant(replace(base.options, ranking=Ranking(weights)))
    judged = judged_questions(plain, corpus, questions, progress, vectors=True, measured_ids=measured_ids)
    before = (
        judged if in_force.query_map is None else judged_questions(base, corpus, questions, measured_ids=measured_ids)
    )
    by_id = {question.id: question for question in questions}
    by_map = list(judged)
    for held_out in document_folds([question.documents for question in judged], FOLDS):
        query_map, _ = learned_map(
            [question for position, question in enumerate(judged) if position not in set(held_out)]
        )
        if query_map is not None:
            map_base = base.variant(replace(base.options, ranking=Ranking(weights, query_map)))
            results = judged_questions(
                map_base, corpus, [by_id[judged[position].id] for position in held_out], measured_ids=measured_ids
            )
            for position, question in zip(held_out, results, strict=True):
                by_map[position] = question
    proofs: dict[str, Proof] = {}
    for level in judged_levels(judged):
        own = [weights[LEVELS[level]]] * len(judged)
        proofs[str(level)] = proof_of(before, level, own, by_map, own)
    final_map, ridge = learned_map(judged)
    main = next(iter(proofs.values()))
    other_proofs = [proof for proof in proofs.values() if proof is not main]
    worse = [proof.measure for proof in other_proofs if proof.difference.high < 0]
    worse += [f"{proof.measure}: {text}" for proof in other_proofs for text in proof.worse]
    if final_map is None:
        main = replace(main, is_better=False, reason="no map is surely better than none")
    elif worse:
        main = replace(main, is_better=False, reason=f"{main.reason}; worse: {', '.join(worse)}")
    files = map_files(final_map, snapshot.embedder) if final_map is not None else {}
    facts = (
        {} if math.isinf(ridge) else {"ridge": f"{ridge:g}", "rank": str(final_map.left.shape[1] if final_map else 0)}
    )
    basis = replace(_basis(snapshot, against, judged), beside={WEIGHTS_ASSET: beside})
    result = Trained(MAP_ASSET, None, proofs, "", None, facts, len(judged))
    return _keep(home, result, files, main, basis, accepted, adopts=options.adopts)


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
    documents = frozenset[str]().union(*(question.documents for question in judged))
    return Basis([question.id for question in judged], documents, snapshot.number, against)


def _keep(
    home: "Home",
    result: Trained,
    files: Mapping[str, bytes] | Path,
    proof: Proof,
    basis: Basis,
    accepted: "Sequence[Question]",
    *,
    adopts: bool,
) -> Trained:
    """Keep what was learned, files or a folder of them, and bring it into force where it may."""
    if not files:
        return replace(
            result, reason=f"nothing learned, as no other suits these questions surely better: {proof.reason}"
        )
    place = store_candidate(home.path, result.name, files, proof, basis)
    current = home.snapshots.current()
    is_in_force = current is not None and place in current.learned.get(result.name, ())[-1:]
    is_wanted = adopts and proof.is_better and not is_in_force
    version, note, error = _adopted(home, result.name, accepted, place, adopts=is_wanted)
    problem = f" ({error})" if error else ""
    became = f"kept in {place}, not in force{problem}" if version is None else f"in force in version {version}"
    if is_in_force:
        became = f"{place} is in force already"
    elif proof.is_better and not adopts:
        became += " (--no-adopt)"
    reason = "; ".join(filter(None, (f"{became}: {proof.reason}", note)))
    return replace(result, place=place, reason=reason, version=version)


def _adopted(
    home: "Home", name: str, accepted: "Sequence[Question]", place: str, *, adopts: bool
) -> tuple[int | None, str, str]:
    """Bring a stored candidate into force, where that is wanted, and drop those that are kept no longer.

    Returns:
        The version in which it came into force, or None; how the query map does beside other weights, as for
        `bring_into_force`; and why it did not come into force although that was wanted.
    """
    version, note = None, ""
    try:
        with home.lock():
            try:
                if adopts:
                    snapshot, _, note = bring_into_force(home, name, accepted, place)
                    version = snapshot.number
            finally:
                prune(home.path, home.snapshots, name, place)
    except (ModelError, QueryError, StoreError) as error:
        return version, note, str(error) if adopts else ""
    return version, note, ""


def training_folder(home: "Home") -> Path:
    """Where training that is under way keeps its checkpoints and curves."""
    return home.path / "learned" / "rewriter_model.training"


@contextmanager
def _alone(home: "Home") -> Iterator[None]:
    """Held by who trains a rewriter on a home; of several processes that train together, by the first.

    Raises:
        StoreError: Another training is under way.
    """
    if int(os.environ.get("RANK", "0")):
        yield
        return
    path = training_folder(home).with_name(f"{training_folder(home).name}.lock")
    with Lock(path, f"a rewriter is being trained on {home.path} already").hold(0):
        yield


def train_candidate(
    home: "Home",
    accepted: "Sequence[Question]",
    drafts: int = 0,
    *,
    adopts: bool = True,
    anew: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Trained | None:
    """Train a rewriter by the settings, or go on with training that was stopped; prove it; adopt it if it is better.

    One process at a time does so on a home, and the processes that it trains together with.

    Args:
        home: The knowledge base.
        accepted: Questions that people accepted; some of them are held out for the proof.
        drafts: Further questions drafted from the documents, at most, to train on only.
        adopts: Whether it comes into force where it proves better.
        anew: Whether training of other questions, model or settings that was stopped is removed.
        progress: Told steps done and steps in all.

    Returns:
        What came of it; None in all but the first of several processes that train together.

    Raises:
        QueryError: Nothing is published, the questions are too few, or what is in force cannot be read.
        ModelError: The extra `train` is not installed, there is no such model, or a model failed.
        StoreError: A file is missing or damaged, there is nothing to learn from, another training is under way, or one
            of other questions, model or settings was stopped.
    """
    from rag_assets.evaluation.drafts import draft_questions
    from rag_assets.evaluation.evidence import Level
    from rag_assets.models.text_to_text_export import export
    from rag_assets.query.search.trained_rewriting import FACTS_FILE, QueryForm, TrainedModel, TrainedRewriter
    from rag_assets.training.rewards import SearchReward, proved, split
    from rag_assets.training.rewriter import train_rewriter

    with _alone(home):
        settings, snapshot = home.settings.rewriter_training, published_snapshot(home)
        against = usable_place(home, snapshot, REWRITER_MODEL)
        base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
        further = draft_questions(corpus, drafts, accepted) if drafts else []
        by_text = {question.text: question for question in (*further, *accepted)}
        reward = SearchReward(base, corpus, list(by_text.values()), settings.reward, Level(settings.level))
        usable = [question for question in by_text.values() if reward.rewards(question)]
        frozen = frozen_rewriter(base)
        data, held_out = split(
            usable, {question.id for question in accepted}, reward, [QueryForm(form) for form in settings.forms], frozen
        )
        data = replace(data, objective=reward.name)
        folder = training_folder(home)
        weights = train_rewriter(data, reward.gain, rewriter_options(settings), folder, progress, anew=anew)
        if not weights.is_main_process:
            return None
        candidate_folder = folder.with_name("rewriter_model.candidate")
        shutil.rmtree(candidate_folder, ignore_errors=True)
        shutil.copytree(weights.folder, candidate_folder)
        shutil.copy(folder / "curves.jsonl", candidate_folder)
        model_facts = {"forms": list(settings.forms), "most_tokens": settings.most_tokens, "model": settings.model}
        (candidate_folder / FACTS_FILE).write_text(json.dumps(model_facts), "utf-8")
        try:
            export(candidate_folder, settings.most_tokens)
        except ModelError as error:
            _log.warning("the trained rewriter is served by torch, which takes longer: %s", error)
        rewriter = TrainedRewriter(TrainedModel.load(candidate_folder, home.settings.embedding.threads), frozen)
        proof = proved(reward, base, base.variant(base.options, rewriter), held_out)
        used_questions = [by_text[example.question] for example in (*data.training, *data.validation)]
        documents = frozenset[str]().union(*map(reward.documents, used_questions))
        basis = Basis({question.id for question in used_questions}, documents, snapshot.number, against)
        facts = {
            "prompts": f"{len(data.training):,}",
            "pseudo-labels": f"{len(data.labels):,}",
            "steps": f"{weights.steps:,}",
            "best step": f"{weights.best_step:,}",
        }
        if weights.gain is not None and weights.warmed_up is not None:
            facts["gain on questions not trained on"] = f"{weights.gain:+.3f}, of step 0 {weights.warmed_up:+.3f}"
        question_count = len({example.question for example in data.training})
        result = Trained(REWRITER_MODEL, None, {reward.name: proof}, "", None, facts, question_count)
        result = _keep(home, result, candidate_folder, proof, basis, accepted, adopts=adopts)
        shutil.rmtree(folder, ignore_errors=True)
        return result


def rewriter_options(chosen: "RewriterTrainingSettings") -> "RewriterOptions":
    """How a rewriter is trained by the settings."""
    from rag_assets.training.rewriter import Penalties, RewriterOptions

    penalties = Penalties(
        chosen.divergence_penalty, chosen.length_penalty, chosen.shortest_tokens, chosen.longest_tokens
    )
    shared_fields = set(RewriterOptions.__dataclass_fields__) - {"penalties"}
    return RewriterOptions(penalties=penalties, **chosen.model_dump(include=shared_fields))
