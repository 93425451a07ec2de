"""Rewriting by a model that was trained for this collection (`rag-assets train rewriter`), in this process.

It writes keywords for full text and sentences for vectors, each asked for by the beginning of its prompt. What it was
not trained for, and all where it cannot be loaded, a frozen rewriter writes. Whoever reads the passages still gets
the question as asked, as for every rewriter.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from threading import Lock

from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.contracts.ports import Rewrite, Rewriter, Turn
from rag_assets.models.text_to_text import ExportedTextToText, TextToText, open_text_to_text
from rag_assets.query.search.rewriting_rules import with_history

FACTS_FILE = "rewriter.json"  # what a trained model writes, beside its weights
_MOST_CACHED = 10_000  # rewrites, some 3 MB
_log = logging.getLogger(__name__)


class QueryForm(StrEnum):
    """What a rewrite is searched by."""

    KEYWORDS = "keywords"
    SENTENCES = "sentences"


def prompt_for(form: QueryForm, question: str, *, is_causal: bool) -> str:
    """What a model is asked, in training and afterwards; a causal one continues the prompt."""
    return f"Question: {question}\nSearch {form}:\n" if is_causal else f"{form}: {question}"


class TrainedModel:
    """A model trained to rewrite, loaded when it is first asked; its rewrites are cached.

    Args:
        folder: The model, as a folder of transformers; served by onnxruntime where it was exported, else by torch.
        forms: What it was trained to write.
        most_tokens: Tokens of a rewrite at most.
        threads: Of the library that serves it, which chooses for 0.

    Attributes:
        name: Tells trained models apart.
    """

    def __init__(self, folder: Path, forms: Sequence[QueryForm], most_tokens: int, threads: int = 0) -> None:
        self.name = f"trained:{folder.name}"
        self._folder, self._forms, self._most_tokens, self._threads = folder, tuple(forms), most_tokens, threads
        self._cached: OrderedDict[str, Mapping[QueryForm, str]] = OrderedDict()
        self._lock = Lock()  # one model, which two threads would only slow down
        self._model: TextToText | ExportedTextToText | None = None
        self._problem = ""

    @classmethod
    def load(cls, folder: Path, threads: int = 0) -> "TrainedModel":
        """The model of a folder that `rag-assets train rewriter` made.

        Raises:
            StoreError: There is no such model.
        """
        path = folder / FACTS_FILE
        try:
            facts = json.loads(path.read_bytes())
            return cls(folder, [QueryForm(form) for form in facts["forms"]], int(facts["most_tokens"]), threads)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: the trained rewriter cannot be read: {error}") from error

    def write(self, question: str) -> Mapping[QueryForm, str]:
        """A rewrite in each form that it was trained for; none where it cannot be loaded, which is logged once."""
        with self._lock:
            self._open()
            if self._model is None:
                return {}
            if question in self._cached:
                self._cached.move_to_end(question)
                return self._cached[question]
            prompts = [prompt_for(form, question, is_causal=self._model.is_causal) for form in self._forms]
            texts = dict(zip(self._forms, self._model.likeliest(prompts, self._most_tokens), strict=True))
            self._cached[question] = texts
            if len(self._cached) > _MOST_CACHED:
                self._cached.popitem(last=False)
            return texts

    def problem(self) -> str:
        """Why it cannot be loaded here; empty where it can."""
        with self._lock:
            self._open()
            return self._problem

    def _open(self) -> None:
        if self._model is None and not self._problem:
            try:
                self._model = open_text_to_text(self._folder, self._threads)
            except ModelError as error:
                self._problem = str(error)
                _log.warning("the trained rewriter is not used: %s", error)


class TrainedRewriter:
    """Rewrites by a trained model.

    Args:
        model: The model.
        frozen: Writes what the model was not trained for, and everything where it cannot be loaded.
    """

    def __init__(self, model: TrainedModel, frozen: Rewriter) -> None:
        self._model, self._frozen = model, frozen
        self.name = f"{model.name}, {frozen.name}"

    def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """Keywords and sentences, see `Rewriter`.

        Raises:
            ModelError: The frozen rewriter failed.
        """
        texts = self._model.write(with_history(question, history))
        if len(texts) < len(QueryForm):
            rest = self._frozen.rewrite(question, history)
            texts = {QueryForm.KEYWORDS: rest.keywords, QueryForm.SENTENCES: rest.sentences, **texts}
        return Rewrite(texts[QueryForm.KEYWORDS], texts[QueryForm.SENTENCES])
