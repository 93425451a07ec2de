"""Prompts: files `rag_assets/prompts/<step>.<language>.md`, and how document text is put into them.

A file holds what is the same in every request of a step (the system text, which a provider may cache), a line of equals
signs, and the template of the question. Placeholders are written `$name`, a dollar sign `$$`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.generation import JsonValue, Message, Request, Tag, object_schema

LANGUAGES = ("ja", "en")
SLACK = 2  # texts and lists of an answer may be this many times longer than asked for
TOKENS_PER_CHAR = 1.5  # of an answer, with room to spare
_RULE = "====="


@dataclass(frozen=True)
class Prompt:
    """A prompt in one language (`ja` or `en`)."""

    step: str  # what it is for, as in `summarize_page`
    language: str
    prefix: Template  # system text; the same in every request of the step for one set of values
    question: Template  # text of the user's turn

    @property
    def placeholders(self) -> frozenset[str]:
        """Names that must be given."""
        return frozenset(self.prefix.get_identifiers()) | frozenset(self.question.get_identifiers())


@cache
def load_prompt(step: str, language: str) -> Prompt:
    """The prompt of a step for documents in a language (ISO 639-1): the Japanese one for Japanese, else the English.

    Raises:
        SettingsError: There is no such prompt, or its file has no rule.
    """
    prompt_language = language if language in LANGUAGES else "en"
    path = _folder() / f"{step}.{prompt_language}.md"
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: {error}") from error
    prefix, rule, question = text.partition(f"\n{_RULE}\n")
    if not rule:
        raise SettingsError(f"{path}: expected a line {_RULE} between system text and question")
    return Prompt(step, prompt_language, Template(prefix.strip()), Template(question.strip()))


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
        schema=json.dumps(object_schema(properties), ensure_ascii=False) if properties is not None else None,
    )


def answer_tokens(chars: int, form_tokens: int) -> int:
    """Tokens of an answer at most: of a text of so many characters, and of its form as JSON."""
    return int(SLACK * chars * TOKENS_PER_CHAR) + form_tokens


def fenced(text: str, name: str = "document") -> str:
    """Text of a document between tags that it cannot hold itself, so that it cannot end them and speak as the prompt.

    The tags begin with a name; their digits follow from the text: the same text gives the same prompt.
    """
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    length = 8
    while f"{name}-{mark[:length]}" in text and length < len(mark):
        length += 8
    tag = f"{name}-{mark[:length]}"
    return f"<{tag}>\n{text}\n</{tag}>"


def _folder() -> Path:
    return Path(str(files("rag_assets") / "prompts"))
