"""The stand-in where no language model is configured: it writes nothing, and steps use their own algorithms."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import Session


class ExtractiveModel:
    """See `LanguageModel`; it is not generative, and raises `ModelError` where it is asked."""

    name = "extractive"
    generative = False
    context_tokens = 0
    output_tokens = 0

    def session(self) -> AbstractContextManager[Session]:
        raise _refusal()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:  # noqa: ARG002 - of the protocol
        raise _refusal()

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:  # noqa: ARG002 - of the protocol
        raise _refusal()


def _refusal() -> ModelError:
    return ModelError(
        "this needs a language model: set language_model.provider (RAG_LANGUAGE_MODEL__PROVIDER) to anthropic, "
        "openai or vllm"
    )
