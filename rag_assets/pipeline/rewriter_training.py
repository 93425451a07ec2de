"""Training a rewriter on a knowledge base: from its questions to a candidate, proved on questions held out.

For the command `train rewriter` and the asset. What stays out: training (`rag_assets.training.rewriter`), and the rule
of adoption (`rag_assets.training.adoption`).
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import ModelError, QueryError, StoreError
from rag_assets.pipeline.drift import bring_into_force
from rag_assets.pipeline.measuring import open_corpus
from rag_assets.pipeline.opening import frozen_rewriter, knowledge_base, published_snapshot, usable_place
from rag_assets.store.files import Lock

if TYPE_CHECKING:
    from rag_assets.evaluation.questions import Question
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import RewriterTrainingSettings
    from rag_assets.training.adoption import Proof
    from rag_assets.training.rewriter import RewriterOptions, TrainedWeights

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RewriterCandidate:
    """A rewriter that was trained.

    Attributes:
        place: Its folder below the home.
        proof: What it reaches on questions held out, and whether it is better than what is in force.
        version: The version in which it came into force; None where it did not.
        problem: Why it did not although it is better; empty where nothing was in the way.
        weights: How training ended.
        labels: Pseudo-labels of the warm-up.
        questions: Questions trained on.
    """

    place: str
    proof: "Proof"
    version: int | None
    problem: str
    weights: "TrainedWeights"
    labels: int
    questions: int


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
) -> RewriterCandidate | None:
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
        None in all but the first of several processes that train together.

    Raises:
        QueryError: Nothing is published, the questions are too few, or what is in force cannot be read.
        ModelError: The extra `train` is not installed, there is no such model, or a model failed.
        StoreError: A file is missing or damaged, there is nothing to learn from, another training is under way, or one
            of other questions, model or settings was stopped.
    """
    with _alone(home):
        return _train_candidate(home, accepted, drafts, progress, adopts=adopts, anew=anew)


def _train_candidate(
    home: "Home",
    accepted: "Sequence[Question]",
    drafts: int,
    progress: Callable[[int, int], None],
    *,
    adopts: bool,
    anew: bool,
) -> RewriterCandidate | None:
    from rag_assets.evaluation.drafts import draft_questions
    from rag_assets.evaluation.evidence import Level
    from rag_assets.models.text_to_text_export import export
    from rag_assets.query.search.trained_rewriting import FACTS_FILE, QueryForm, TrainedModel, TrainedRewriter
    from rag_assets.training import adoption
    from rag_assets.training.rewards import SearchReward, proved, split
    from rag_assets.training.rewriter import train_rewriter

    chosen, snapshot = home.settings.rewriter_training, published_snapshot(home)
    against = usable_place(home, snapshot, adoption.REWRITER_MODEL)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    further = draft_questions(corpus, drafts, accepted) if drafts else []
    by_text = {each.text: each for each in (*further, *accepted)}
    reward = SearchReward(base, corpus, list(by_text.values()), chosen.reward, Level(chosen.level))
    usable = [each for each in by_text.values() if reward.rewards(each)]
    frozen = frozen_rewriter(base)
    data, held_out = split(
        usable, {each.id for each in accepted}, reward, [QueryForm(each) for each in chosen.forms], frozen
    )
    data = replace(data, objective=reward.name)
    folder = training_folder(home)
    weights = train_rewriter(data, reward.gain, rewriter_options(chosen), folder, progress, anew=anew)
    if not weights.is_main_process:
        return None
    made = folder.with_name("rewriter_model.candidate")
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(weights.folder, made)
    shutil.copy(folder / "curves.jsonl", made)
    facts = {"forms": list(chosen.forms), "most_tokens": chosen.most_tokens, "model": chosen.model}
    (made / FACTS_FILE).write_text(json.dumps(facts), "utf-8")
    try:
        export(made, chosen.most_tokens)
    except ModelError as error:
        _log.warning("the trained rewriter is served by torch, which takes longer: %s", error)
    trained = TrainedRewriter(TrainedModel.load(made, home.settings.embedding.threads), frozen)
    proof = proved(reward, base, base.variant(base.options, trained), held_out)
    known = [by_text[each.question] for each in (*data.training, *data.validation)]
    documents = frozenset[str]().union(*map(reward.documents, known))
    basis = adoption.Basis({each.id for each in known}, documents, snapshot.number, against)
    place = adoption.store_candidate(home.path, adoption.REWRITER_MODEL, made, proof, basis)
    version, problem = None, ""
    try:
        with home.lock():
            try:
                if adopts and proof.is_better:
                    version = bring_into_force(home, adoption.REWRITER_MODEL, accepted, place)[0].number
            finally:
                adoption.prune(home.path, home.snapshots, adoption.REWRITER_MODEL, place)
    except (ModelError, QueryError, StoreError) as error:
        problem = str(error) if adopts and proof.is_better else ""
    shutil.rmtree(folder, ignore_errors=True)
    return RewriterCandidate(place, proof, version, problem, weights, len(data.labels), len(data.training))


def rewriter_options(chosen: "RewriterTrainingSettings") -> "RewriterOptions":
    """How a rewriter is trained by the settings."""
    from rag_assets.training.rewriter import Penalties, RewriterOptions

    penalties = Penalties(
        chosen.divergence_penalty, chosen.length_penalty, chosen.shortest_tokens, chosen.longest_tokens
    )
    same = set(RewriterOptions.__dataclass_fields__) - {"penalties"}
    return RewriterOptions(penalties=penalties, **chosen.model_dump(include=same))
