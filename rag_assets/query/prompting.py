"""Requests to language models about a question: prompts with their values, and the parts that several prompts hold."""

import json
from collections.abc import Mapping, Sequence

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Message, Outcome, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel, Turn
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.text.tokens import cut_to_tokens

QUERY_TOKENS = 500  # of a question in a prompt; the beginning of a longer one is given
TURN_TOKENS = 200  # of a question or an answer of the conversation before
REMEMBERED_TURNS = 3
NOTHING = "-"


def prompted(
    tag: Tag,
    language: str,
    max_tokens: int,
    prefix: Mapping[str, str],
    question: Mapping[str, str],
    properties: Mapping[str, JsonValue] | None = None,
) -> Request:
    """A request by the prompt of a step.

    Args:
        tag: What it is for; its step names the prompt.
        language: Of the prompt.
        max_tokens: Tokens of the answer at most.
        prefix: Values of the system text.
        question: Values of the user's turn.
        properties: JSON schemas of the properties of the answer; None for free text.
    """
    prompt = load_prompt(tag.step, language)
    return Request(
        prompt.prefix.substitute(prefix),
        (Message("user", prompt.question.substitute(question)),),
        max_tokens,
        tag,
        schema=json.dumps(object_schema(properties)) if properties is not None else None,
    )


def answered_value(model: LanguageModel, request: Request) -> dict[str, JsonValue]:
    """The answer to one request in JSON.

    Raises:
        ModelError: The model failed or gave no answer that can be used.
    """
    reason = "no answer"
    for answer in model.generate([request]):
        if answer.outcome is Outcome.COMPLETED and isinstance(answer.value, dict):
            return answer.value
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
