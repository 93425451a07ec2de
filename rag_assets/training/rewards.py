"""What a rewrite gains: how much better a search by it does than one by the question, on a published version. And what
of judged questions a rewriter is trained on and proved by; questions that share a document stay together.

Searches are those of the product: mode `rewrite` before the retriever, so that an empty or copied rewrite is the
question and gains nothing, and a reader sees the question as asked.

What stays out: penalties, baselines and training itself (`rag_assets.training.rewriter`).

Source: X. Ma and others, Query rewriting for retrieval-augmented large language models, EMNLP 2023: token F1 of the
reader's answer after the rewrite less that after the question. Deviation: the retriever's own measure may take its
place.
"""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from rag_assets.contracts.errors import BudgetError, ModelError, QueryError
from rag_assets.contracts.modes import FULLTEXT_MODE, HYBRID_MODE, REWRITE_MODE, VECTOR_MODE
from rag_assets.contracts.ports import Rewrite, Rewriter, Turn
from rag_assets.evaluation.evidence import Corpus, Level
from rag_assets.evaluation.metrics import measured, parse_measure
from rag_assets.evaluation.questions import Question
from rag_assets.query.knowledge_base import KnowledgeBase
from rag_assets.query.search.trained_rewriting import QueryForm
from rag_assets.text.scripts import SPACELESS
from rag_assets.training.adoption import Proof, prove, type_guards
from rag_assets.training.pairs import document_groups, held_out_parts, unjudged_below
from rag_assets.training.ranking import LEVELS
from rag_assets.training.rewriter import Item, RewriterData

READER = "reader"  # in place of a measure: F1 of the reader's answer
_RETRIEVERS = {QueryForm.KEYWORDS: FULLTEXT_MODE, QueryForm.SENTENCES: VECTOR_MODE}
_WORD = re.compile(rf"[^\W_{SPACELESS}]+|[{SPACELESS}]")  # a run of letters, or a sign of Japanese
_ARTICLES = frozenset({"a", "an", "the"})
LEAST = 10  # questions
_HELD_OUT, _VALIDATING = 0.3, 0.1  # shares of questions for the proof and for choosing weights; the rest is trained on


class _Fixed:
    """Rewrites everything to one text."""

    name = "fixed"

    def __init__(self, text: str) -> None:
        self._text = text

    def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        del question, history
        return Rewrite(self._text, self._text)


class SearchReward:
    """What rewrites of questions gain; every rewrite is searched once.

    Args:
        base: The version, for searching.
        corpus: Its documents.
        questions: The questions, no text twice.
        measure: As in `nDCG@10` or `MRR@10`; or `reader`, F1 of the answer.
        level: What a search is to find.

    Raises:
        QueryError: There is no such measure.
    """

    def __init__(
        self, base: KnowledgeBase, corpus: Corpus, questions: Sequence[Question], measure: str, level: Level
    ) -> None:
        self._base, self._measure, self._level = base, measure, level
        self._depth = 0 if measure == READER else parse_measure(measure)[1]
        self._questions: Mapping[str, Question] = {question.text: question for question in questions}
        self._targets = corpus.targets(questions)
        is_fine = level is not Level.DOCUMENT and measure != READER
        self._unjudged = unjudged_below(questions, self._targets, corpus) if is_fine else set()
        self._worth: dict[tuple[Item, str], float] = {}

    def rewards(self, question: Question) -> bool:
        """Whether a rewrite of a question can gain anything: there is something to find, or an answer to compare.

        Documents that are named alone count for the level of documents only, as none of their pages and passages was
        judged. Questions within a conversation are left out, and those that are kept for testing.
        """
        if question.history or question.purpose == "testing":
            return False
        if self._measure == READER:
            return question.answerable and bool(question.answer_contains)
        return (
            question.searched
            and question.id not in self._unjudged
            and any(self._targets[question.id].ways[self._level])
        )

    def documents(self, question: Question) -> frozenset[str]:
        """Documents that hold a question's evidence."""
        return self._targets[question.id].ids(Level.DOCUMENT)

    @property
    def name(self) -> str:
        """What is measured, for people."""
        return "F1 of the answer" if self._measure == READER else f"{self._level} {self._measure}"

    def worth(self, item: Item, text: str) -> float:
        """The measure of a search by a text; by the question itself where that is empty.

        Raises:
            ModelError: A model failed.
            StoreError: A published file is gone.
        """
        if (item, text) not in self._worth:
            self._worth[item, text] = self._searched(item, text)
        return self._worth[item, text]

    def gain(self, item: Item, text: str) -> float:
        """How much more a search by a rewrite is worth than one by the question, see `worth`."""
        return self.worth(item, text) - self.worth(item, "")

    def value(self, base: KnowledgeBase, question: Question, mode: str) -> float:
        """The measure of a question asked of a version in a mode.

        Raises:
            ModelError: A model failed.
            StoreError: A published file is gone.
        """
        if self._measure == READER:
            answer = base.ask(question.text, mode)
            return answer_f1(answer.text, question) if answer.answered else 0.0
        hits = base.search(question.text, mode, self._depth, granularity=LEVELS[self._level]).hits
        place = list(Level).index(self._level) + 1
        ranking = [(hit.document_id, hit.page_id, hit.chunk_id)[:place] for hit in hits]
        return measured((self._measure,), ranking, self._targets[question.id].ways[self._level])[self._measure]

    def _searched(self, item: Item, text: str) -> float:
        base = self._base.variant(self._base.options, _Fixed(text))
        return self.value(base, self._questions[item.question], f"{REWRITE_MODE}+{_RETRIEVERS[item.form]}")


def answer_f1(answer: str, question: Question) -> float:
    """Token F1 of an answer: of each group of alternatives the best one, mean over the groups; 0 without groups.

    Source: P. Rajpurkar, J. Zhang, K. Lopyrev and P. Liang, SQuAD, EMNLP 2016. Deviation: each sign of Japanese is a
    token.
    """
    groups = question.answer_contains
    return sum(max(_f1(answer, text) for text in group) for group in groups) / len(groups) if groups else 0.0


def _f1(answer: str, expected_text: str) -> float:
    ours, theirs = _tokens(answer), _tokens(expected_text)
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def _tokens(text: str) -> Counter[str]:
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return Counter(word for word in words if word not in _ARTICLES)


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
    documents = [reward.documents(question) for question in questions]
    shuffler = random.Random(0)  # noqa: S311 - no secret
    parts = held_out_parts(documents, [_HELD_OUT, _VALIDATING], shuffler, "train rewriter")
    held_out, validating, training = ([questions[at] for at in part] for part in parts)
    training_items, validation_items = (
        [Item(question.text, form) for question in part for form in forms]
        for part in (training, [question for question in validating if question.id in accepted])
    )
    proof_questions = [question for question in held_out if question.id in accepted]
    if not proof_questions:
        raise QueryError("train rewriter: no accepted question is left to prove anything by; accept more questions")
    return RewriterData(
        training_items, validation_items, pseudo_labels(training_items, frozen, reward)
    ), proof_questions


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
        [reward.value(own_base, question, REWRITE_MODE) for question in questions] for own_base in (base, candidate)
    )
    plain = [reward.value(base, question, HYBRID_MODE) for question in questions]
    guards = {
        "against no rewriting": (plain, after),
        **type_guards([question.type for question in questions], before, after),
    }
    groups = document_groups([reward.documents(question) for question in questions])
    return prove(f"{reward.name} of mode {REWRITE_MODE}", before, after, guards, groups)
