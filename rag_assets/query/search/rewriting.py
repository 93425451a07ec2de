"""Mode `rewrite`: what is asked is rewritten for the indexes, then searched.

Full text gets keywords, vectors get sentences. Whoever reads the passages afterwards still gets the question as asked.
A rewrite that is empty, copied or fails leaves the question, with the earlier questions that it refers to.

Source: X. Ma, Y. Gong, P. He, H. Zhao and N. Duan, Query rewriting for retrieval-augmented large language models, EMNLP
2023, its frozen rewriter. Deviations: one call writes for both indexes; the answer is JSON in place of a stop marker.

What stays out: rewriting by rules (`rag_assets.query.search.rewriting_rules`), trained rewriters, and storing answers,
which is the model's.
"""

import json
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.generation import JsonValue, Message, Outcome, Request, Tag, object_schema
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel, Rewrite, Rewriter, Turn
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.request import Indexes, Mode, RetrievalRequest, clean_text
from rag_assets.query.search.rewriting_rules import REMEMBERED_TURNS, with_history
from rag_assets.text.language import prompt_language
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens

STEP = "rewrite_query"

_KEYWORDS_CHARS = 150
_SENTENCES_CHARS = 300
_ANSWER_TOKENS = 2 * int((_KEYWORDS_CHARS + _SENTENCES_CHARS) * 1.5)
_QUERY_TOKENS = 500
_TURN_TOKENS = 200


class ModelRewriter:
    """Rewrites by a language model.

    Args:
        model: The model.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = model.name

    def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """Keywords and sentences, see `Rewriter`.

        Raises:
            ModelError: The model failed or gave no answer that can be used.
        """
        reason = "no answer"
        for answer in self._model.generate([_call(question, history)]):
            if answer.outcome is Outcome.COMPLETED and isinstance(answer.value, dict):
                return Rewrite(_line(answer.value.get("keywords")), _line(answer.value.get("sentences")))
            reason = answer.error or answer.outcome.value
        raise ModelError(reason)


class RewriteSearch:
    """The search for one query; it is rewritten once, however deep it has to look.

    Args:
        embedder: The embedder of the passages.
        rewriter: Writes what is searched for.
        history: The conversation before the query, the oldest turn first.
        retriever: Finds passages.
    """

    def __init__(self, embedder: Embedder, rewriter: Rewriter, history: Sequence[Turn], retriever: Mode) -> None:
        self._embedder = embedder
        self._rewriter = rewriter
        self._history = tuple(history)
        self._retriever = retriever
        self._rewritten: tuple[str, NDArray[np.float32]] | None = None

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """What the retriever finds for the rewritten query.

        Raises:
            QueryError: The retriever lacks what it needs.
            ModelError: The embedder failed, or the retriever's model.
            BudgetError: The rewrite may cost more than the budget allows.
            StoreError: A published file is gone.
        """
        return self._retriever(self.rewritten(request, trace), indexes, trace)

    def rewritten(self, request: RetrievalRequest, trace: TraceRecorder) -> RetrievalRequest:
        """What the retriever is asked.

        Raises:
            ModelError: The embedder failed.
            BudgetError: The rewrite may cost more than the budget allows.
        """
        if self._rewritten is None:
            self._rewritten = self._rewrite(request, trace)
        text, vector = self._rewritten
        return replace(request, text=text, vector=vector)

    def _rewrite(self, request: RetrievalRequest, trace: TraceRecorder) -> tuple[str, NDArray[np.float32]]:
        """Text for words and vector for meaning."""
        began = time.perf_counter()
        question = clean_text(request.text)
        fallback = with_history(question, self._history)
        notes = []
        try:
            rewrite = self._rewriter.rewrite(question, self._history)
        except BudgetError:
            raise
        except ModelError as error:
            rewrite = Rewrite("", "")
            notes.append(f"failed: {error}")
        keywords, sentences = clean_text(rewrite.keywords), clean_text(rewrite.sentences)
        if _nothing_new(keywords, question):
            keywords = fallback
        if _nothing_new(sentences, question):
            sentences = fallback
        if keywords == fallback and sentences == fallback and not notes:
            notes.append("nothing new: the question is searched")
        told = (f"rewriter: {self._rewriter.name}", f"keywords: {keywords}", f"sentences: {sentences}", *notes)
        trace.add("rewrite", began, 1, texts=told)
        if sentences == question:
            return keywords, request.embedding
        began = time.perf_counter()
        vector = self._embedder.embed([sentences], EmbeddingKind.QUERY)[0]
        trace.add("embed", began, 1)
        return keywords, vector


def _nothing_new(text: str, question: str) -> bool:
    """Whether a rewrite is empty or copied."""
    return not text.strip() or _folded(text) == _folded(question)


def _folded(text: str) -> str:
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def _line(value: object) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _call(question: str, history: Sequence[Turn]) -> Request:
    prompt = load_prompt(STEP, prompt_language(question))
    told = [
        f"Q: {cut_to_tokens(turn.question, _TURN_TOKENS)}\nA: {cut_to_tokens(turn.answer, _TURN_TOKENS)}"
        for turn in history
    ]
    conversation = clean_text("\n\n".join(told[-REMEMBERED_TURNS:])) or "-"
    properties: dict[str, JsonValue] = {
        "keywords": {"type": "string", "maxLength": 2 * _KEYWORDS_CHARS},
        "sentences": {"type": "string", "maxLength": 2 * _SENTENCES_CHARS},
    }
    schema = object_schema(properties)
    return Request(
        prompt.prefix.substitute(keywords_chars=str(_KEYWORDS_CHARS), sentences_chars=str(_SENTENCES_CHARS)),
        (
            Message(
                "user",
                prompt.question.substitute(
                    conversation=fenced(conversation, "conversation"),
                    query=fenced(cut_to_tokens(question, _QUERY_TOKENS), "query"),
                ),
            ),
        ),
        _ANSWER_TOKENS,
        Tag("search", STEP),
        schema=json.dumps(schema),
    )
