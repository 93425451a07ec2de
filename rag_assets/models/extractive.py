"""The language model of who has none: it writes nothing, and steps that see that use their own algorithm."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import Session


class ExtractiveModel:
    """A language model that is not generative and refuses to be asked, see `LanguageModel`."""

    name = "extractive"
    generative = False
    context_tokens = 0
    output_tokens = 0

    def session(self) -> AbstractContextManager[Session]:
        """Refuse.

        Raises:
            ModelError: Always.
        """
        self._refuse()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Refuse.

        Raises:
            ModelError: Always.
        """
        del requests
        self._refuse()

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Refuse.

        Raises:
            ModelError: Always.
        """
        del requests
        self._refuse()

    @staticmethod
    def _refuse() -> NoReturn:
        raise ModelError(
            "this needs a language model: set language_model.provider (RAG_LANGUAGE_MODEL__PROVIDER) to anthropic, "
            "openai or vllm"
        )
