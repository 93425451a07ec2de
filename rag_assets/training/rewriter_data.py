"""From judged questions to what a rewriter is trained on and proved by; questions that share a document stay together.

What stays out: training itself (`rag_assets.training.rewriter`), and what a rewrite gains
(`rag_assets.training.rewards`).
"""

import math
import random
from collections.abc import Collection, Sequence

from rag_assets.contracts.errors import BudgetError, ModelError, QueryError
from rag_assets.contracts.modes import HYBRID_MODE, REWRITE_MODE
from rag_assets.contracts.ports import Rewriter
from rag_assets.evaluation.questions import Question
from rag_assets.query.knowledge_base import KnowledgeBase
from rag_assets.query.search.trained_rewriting import QueryForm
from rag_assets.training.adoption import Proof, prove
from rag_assets.training.pairs import document_folds, document_groups, nearest_sum
from rag_assets.training.rewards import SearchReward
from rag_assets.training.rewriter import Item, RewriterData

LEAST = 10  # questions
_LEAST_GROUPS = 5  # of documents: two to prove by, two to choose by, one to train on
_HELD_OUT, _VALIDATING = 0.3, 0.1  # shares of questions for the proof and for choosing weights; the rest is trained on


def split(
    questions: Sequence[Question],
    accepted: Collection[str],
    reward: SearchReward,
    forms: Sequence[QueryForm],
    frozen: Rewriter,
) -> tuple[RewriterData, list[Question]]:
    """What is trained on, and the questions held out for the proof.

    Args:
        questions: Questions that rewrites of can gain something.
        accepted: Ids of those that a person accepted; only they choose weights and prove anything.
        reward: Judges pseudo-labels.
        forms: What is to be learned.
        frozen: Writes pseudo-labels.

    Raises:
        QueryError: The questions are too few.
        BudgetError: Pseudo-labels may cost more than the budget allows.
        StoreError: A published file is gone.
    """
    if len(questions) < LEAST:
        raise QueryError(
            f"train rewriter: {reward.name} judges {len(questions)} questions, {LEAST} are needed: draft some by "
            "`rag-assets questions new FILE`, add --drafts N, or set rewriter_training.level to document"
        )
    groups = document_folds([reward.documents(each) for each in questions], len(questions))
    if len(groups) < _LEAST_GROUPS:
        raise QueryError(
            f"train rewriter: the evidence is in {len(groups)} groups of documents, {_LEAST_GROUPS} are needed: add "
            "questions on other documents"
        )
    random.Random(0).shuffle(groups)  # noqa: S311 - no secret; they stand by size
    parts = [_take_groups(groups, share * len(questions)) for share in (_HELD_OUT, _VALIDATING)]
    held_out, validating, training = (
        [questions[at] for at in sorted(at for group in part for at in group)] for part in (*parts, groups)
    )
    learned, choosing = (
        [Item(each.text, form) for each in part for form in forms]
        for part in (training, [each for each in validating if each.id in accepted])
    )
    proving = [each for each in held_out if each.id in accepted]
    if not proving:
        raise QueryError("train rewriter: no accepted question is left to prove anything by; accept more questions")
    return RewriterData(learned, choosing, pseudo_labels(learned, frozen, reward)), proving


def _take_groups(groups: list[list[int]], wanted: float) -> list[list[int]]:
    """Groups of about so many questions, two or more, which are taken out."""
    places = set(nearest_sum([len(group) for group in groups], wanted))
    taken = [group for at, group in enumerate(groups) if at in places]
    groups[:] = [group for at, group in enumerate(groups) if at not in places]
    return taken


def pseudo_labels(items: Sequence[Item], frozen: Rewriter, reward: SearchReward) -> list[tuple[Item, str]]:
    """What a frozen rewriter writes, where a search by it finds what answers, and finds it no worse than the question.

    Args:
        items: What is rewritten.
        frozen: Rules or a language model; a question that it fails on has no label.
        reward: Judges the rewrites.

    Raises:
        BudgetError: The rewrites may cost more than the budget allows.
        StoreError: A published file is gone.
    """
    labels = []
    for item in items:
        try:
            rewrite = frozen.rewrite(item.question, ())
        except BudgetError:
            raise
        except ModelError:
            continue
        text = rewrite.keywords if item.form is QueryForm.KEYWORDS else rewrite.sentences
        if text and reward.worth(item, text) > 0 and reward.gain(item, text) >= 0:
            labels.append((item, text))
    return labels


def proved(reward: SearchReward, base: KnowledgeBase, candidate: KnowledgeBase, questions: Sequence[Question]) -> Proof:
    """What a rewriter reaches in mode `rewrite`, against the rewriter in force; guarded are types and doing without.

    Args:
        reward: What is measured.
        base: The version as it is.
        candidate: The same with the rewriter.
        questions: Questions that it was not trained on.

    Raises:
        QueryError: There are no such questions.
        ModelError: A model failed.
        StoreError: A published file is gone.
    """
    before, after = (
        [reward.value(each, question, REWRITE_MODE) for question in questions] for each in (base, candidate)
    )
    plain = [reward.value(base, question, HYBRID_MODE) for question in questions]
    guards = {"against no rewriting": (plain, after)}
    for kind in sorted({each.type for each in questions if each.type}):
        then, now = (
            [value if each.type == kind else math.nan for each, value in zip(questions, side, strict=True)]
            for side in (before, after)
        )
        guards[f"type {kind}"] = then, now
    groups = document_groups([reward.documents(each) for each in questions])
    return prove(f"{reward.name} of mode {REWRITE_MODE}", before, after, guards, groups)
