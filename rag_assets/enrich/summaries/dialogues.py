"""Summaries of pages and files by a language model.

A page is summarised from its text; a page too long for one call, in parts whose summaries are summarised again. A file
that fits one call is summarised from its text, a longer one from the summaries of its pages.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Page
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, object_schema
from rag_assets.enrich.documents import Subject
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens, split_to_tokens

PAGE_STEP = "summarize_page"
FILE_STEP = "summarize_file"

_SLACK = 2  # a summary may be this many times longer than asked for
_TOKENS_PER_CHAR = 1.5
_ANSWER_TOKENS = 64  # for the form of the answer
_PROMPT_TOKENS = 1500  # for the system text
_TITLE_TOKENS = 100
_NAMES_TOKENS = 400
_COMMON_TOKENS = 300


@dataclass(frozen=True)
class SummaryOptions:
    """How summaries are made: lengths in characters, and of what is read in tokens.

    Attributes:
        file_chars: Of a file summary.
        page_file_chars: Of a page summary: on the file.
        page_chars: Of a page summary: on the page.
        read_tokens: Of the text that one call reads, at most.
        boilerplate_documents: Documents from which a line that they share is boilerplate; 0 for never.
    """

    file_chars: int
    page_file_chars: int
    page_chars: int
    read_tokens: int
    boilerplate_documents: int

    def fitted(self, context_tokens: int) -> "SummaryOptions":
        """These options, with what is read cut to what a model takes."""
        longest = max(self.file_chars, self.page_file_chars + self.page_chars)
        taken = _PROMPT_TOKENS + _TITLE_TOKENS + _NAMES_TOKENS + _COMMON_TOKENS + _answer_tokens(longest)
        return replace(self, read_tokens=max(256, min(self.read_tokens, context_tokens - taken)))


def body_text(page: Page) -> str:
    """What a model reads of a page: everything but running headers and footers."""
    return "\n".join(block.text for block in page.blocks if block.text and block.kind is not BlockKind.HEADER)


def page_dialogue(
    subject: Subject, page: Page, common: Sequence[str], lengths: SummaryOptions
) -> Dialogue[dict[str, str] | None]:
    """Summarize one page: what there is to say on its file (`file`) and on itself (`page`).

    Lines that other documents have, too, are told to the model as such; lengths are fitted to it.

    Returns:
        None where the model gave no summary.
    """
    values = {
        "file_chars": str(lengths.page_file_chars),
        "page_chars": str(lengths.page_chars),
        "page_name": fenced(page.name or "-", "name"),
        "common_lines": fenced(cut_to_tokens("\n".join(common), _COMMON_TOKENS) or "-", "lines"),
    }
    fields = {"file": lengths.page_file_chars, "page": lengths.page_chars}
    ask = partial(_request, subject, PAGE_STEP, "page_summaries", values, fields)
    return (yield from _summarized(body_text(page), lengths.read_tokens, ask, "page"))


def file_dialogue(subject: Subject, text: str, lengths: SummaryOptions) -> Dialogue[str | None]:
    """Summarize a file from its text or the summaries of its pages; None where the model gave no summary."""
    values, fields = {"file_chars": str(lengths.file_chars)}, {"summary": lengths.file_chars}
    ask = partial(_request, subject, FILE_STEP, "file_summaries", values, fields)
    written = yield from _summarized(text, lengths.read_tokens, ask, "summary")
    return written["summary"] if written else None


def _summarized(text: str, tokens: int, ask: Callable[[str], Request], main: str) -> Dialogue[dict[str, str] | None]:
    """The fields of the summary of a text: of a long one, parts are summarised, then their summaries (field `main`)."""
    parts = split_to_tokens(text, tokens)
    while True:
        answers = yield [ask(part) for part in parts]
        written = [fields for fields in map(_fields, answers) if fields.get(main)]
        if not written:
            return None
        if len(parts) == 1:
            return written[0]
        parts = _shorter([fields[main] for fields in written], len(parts), tokens)


def _fields(answer: Completion) -> dict[str, str]:
    if answer.outcome is not Outcome.COMPLETED or not isinstance(answer.value, dict):
        return {}
    return {name: one_line(text) for name, text in answer.value.items()}


def _shorter(summaries: Sequence[str], count: int, tokens: int) -> list[str]:
    """What to read in the next round: the summaries, in fewer parts than before; each is cut where that takes it."""
    parts = split_to_tokens("\n".join(summaries), tokens)
    if len(parts) < count:
        return parts
    share = max(8, (count - 1) * tokens // (2 * len(summaries)))
    return split_to_tokens("\n".join(cut_to_tokens(each, share) for each in summaries), tokens)[: count - 1]


def fits_one_call(text: str, lengths: SummaryOptions) -> bool:
    """Whether a file is read as a whole."""
    return estimate_tokens(text) <= lengths.read_tokens


def _request(
    subject: Subject, step: str, asset: str, values: dict[str, str], fields: dict[str, int], text: str
) -> Request:
    prompt = load_prompt(step, subject.language)
    question = prompt.question.substitute(
        values,
        title=fenced(cut_to_tokens(subject.title, _TITLE_TOKENS) or "-", "title"),
        page_names=fenced(cut_to_tokens(subject.listed_pages, _NAMES_TOKENS), "names"),
        document=fenced(text),
    )
    schema = object_schema(
        {name: {"type": "string", "maxLength": _SLACK * max(1, chars)} for name, chars in fields.items()}
    )
    return Request(
        prefix=prompt.prefix.substitute(values),
        messages=(Message("user", question),),
        max_tokens=_answer_tokens(sum(fields.values())),
        tag=Tag(asset, step, subject.document_id, subject.shard),
        schema=json.dumps(schema, ensure_ascii=False),
    )


def _answer_tokens(chars: int) -> int:
    return int(chars * _SLACK * _TOKENS_PER_CHAR) + _ANSWER_TOKENS
