"""Requests to language models about a question: the parts that several prompts hold, and answers in JSON."""

from collections.abc import Sequence

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.contracts.ports import LanguageModel, Turn
from rag_assets.models.prompts import fenced, prompted
from rag_assets.text.tokens import cut_to_tokens

__all__ = [
    "NOTHING",
    "QUERY_TOKENS",
    "REMEMBERED_TURNS",
    "TURN_TOKENS",
    "answered_value",
    "conversation",
    "fenced_query",
    "prompted",
]

QUERY_TOKENS = 500  # of a question in a prompt; the beginning of a longer one is given
TURN_TOKENS = 200  # of a question or an answer of the conversation before
REMEMBERED_TURNS = 3
NOTHING = "-"


def answered_value(model: LanguageModel, request: Request) -> dict[str, JsonValue]:
    """The answer to one request in JSON.

    Raises:
        ModelError: The model failed or gave no answer that can be used.
    """
    reason = "no answer"
    for answer in model.generate([request]):
        if answer.fields is not None:
            return answer.fields
        reason = answer.error or answer.outcome.value
    raise ModelError(reason)


def fenced_query(question: str) -> str:
    """The question between tags, the beginning of a very long one."""
    return fenced(cut_to_tokens(question, QUERY_TOKENS), "query")


def conversation(history: Sequence[Turn]) -> str:
    """The last turns before a question, the oldest first."""
    turns = [
        f"Q: {cut_to_tokens(turn.question, TURN_TOKENS)}\nA: {cut_to_tokens(turn.answer, TURN_TOKENS)}"
        for turn in history[-REMEMBERED_TURNS:]
    ]
    return "\n\n".join(turns) or NOTHING
