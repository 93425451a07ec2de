"""Mode `rewrite`: what is asked is rewritten for the indexes, then searched.

Full text gets keywords, vectors get sentences. Whoever reads the passages afterwards still gets the question as asked.
A rewrite that is empty, copied or fails leaves the question, with the earlier questions that it refers to.

Source: X. Ma, Y. Gong, P. He, H. Zhao and N. Duan, Query rewriting for retrieval-augmented large language models, EMNLP
2023, its frozen rewriter. Deviations: one call writes for both indexes; the answer is JSON in place of a stop marker.

What stays out: rewriting by rules (`rag_assets.query.search.rewriting_rules`), and trained rewriters.
"""

import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.generation import JsonValue, Request, Tag
from rag_assets.contracts.ports import Embedder, EmbeddingKind, LanguageModel, Rewrite, Rewriter, Turn
from rag_assets.models.prompts import fenced
from rag_assets.query.prompting import answered_value, conversation, fenced_query, prompted
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.request import Indexes, Mode, RetrievalRequest, clean_text
from rag_assets.query.search.rewriting_rules import with_history
from rag_assets.text.language import prompt_language
from rag_assets.text.plain import one_line

STEP = "rewrite_query"

_KEYWORDS_CHARS = 150
_SENTENCES_CHARS = 300
_PROPERTIES: Mapping[str, JsonValue] = {
    "keywords": {"type": "string", "maxLength": 2 * _KEYWORDS_CHARS},
    "sentences": {"type": "string", "maxLength": 2 * _SENTENCES_CHARS},
}
_ANSWER_TOKENS = 2 * int((_KEYWORDS_CHARS + _SENTENCES_CHARS) * 1.5)


class ModelRewriter:
    """Rewrites by a language model."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = model.name

    def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """Keywords and sentences, see `Rewriter`.

        Raises:
            ModelError: The model failed or gave no answer that can be used.
        """
        value = answered_value(self._model, _call(question, history))
        return Rewrite(*(one_line(text) if isinstance(text := value.get(name), str) else "" for name in _PROPERTIES))


@dataclass
class RewriteSearch:
    """The search for one query; it is rewritten once, however deep it has to look."""

    embedder: Embedder  # the embedder of the passages
    rewriter: Rewriter  # writes what is searched for
    history: tuple[Turn, ...]  # the conversation before the query, the oldest turn first
    retriever: Mode  # finds passages
    _rewritten: tuple[str, NDArray[np.float32]] | None = None

    def __call__(self, request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
        """What the retriever finds for the rewritten query."""
        return self.retriever(self.rewritten(request, trace), indexes, trace)

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
        fallback = with_history(question, self.history)
        notes = []
        try:
            rewrite = self.rewriter.rewrite(question, self.history)
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
        texts = (f"rewriter: {self.rewriter.name}", f"keywords: {keywords}", f"sentences: {sentences}", *notes)
        trace.add("rewrite", began, 1, texts=texts)
        if sentences == question:
            return keywords, request.embedding
        began = time.perf_counter()
        vector = self.embedder.embed([sentences], EmbeddingKind.QUERY)[0]
        trace.add("embed", began, 1)
        return keywords, vector


def _nothing_new(text: str, question: str) -> bool:
    """Whether a rewrite is empty or copied."""
    return not text.strip() or _fold(text) == _fold(question)


def _fold(text: str) -> str:
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())


def _call(question: str, history: Sequence[Turn]) -> Request:
    return prompted(
        Tag("search", STEP),
        prompt_language(question),
        _ANSWER_TOKENS,
        {"keywords_chars": str(_KEYWORDS_CHARS), "sentences_chars": str(_SENTENCES_CHARS)},
        {
            "conversation": fenced(clean_text(conversation(history)), "conversation"),
            "query": fenced_query(question),
        },
        _PROPERTIES,
    )
