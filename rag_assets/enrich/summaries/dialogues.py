"""Summaries of pages and files by a language model.

A page is summarised from its text; a page too long for one call, in parts whose summaries are summarised again. A file
that fits one call is summarised from its text, a longer one from the summaries of its pages.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Page
from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, object_schema
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
    boilerplate_documents: int = 3

    def fitted(self, context_tokens: int) -> "SummaryOptions":
        """These options, with what is read cut to what a model takes."""
        longest = max(self.file_chars, self.page_file_chars + self.page_chars)
        taken = _PROMPT_TOKENS + _TITLE_TOKENS + _NAMES_TOKENS + _COMMON_TOKENS + _answer_tokens(longest)
        return replace(self, read_tokens=max(256, min(self.read_tokens, context_tokens - taken)))


@dataclass(frozen=True)
class Subject:
    """A document that is summarised.

    Attributes:
        document_id: Its id; for the ledger, not for the model.
        shard: Its shard.
        language: Its main language.
        title: Title that the file states, or an empty text. Not its name: a renamed file costs no call.
        page_names: Names of its pages that are content.
    """

    document_id: str
    shard: str
    language: str
    title: str
    page_names: Sequence[str]


@dataclass(frozen=True)
class Summary:
    """A summary that a model wrote.

    Attributes:
        file: On the file.
        page: On the page; empty in a summary of a file.
    """

    file: str
    page: str = ""


@dataclass(frozen=True)
class Attempt:
    """What came of asking for a summary.

    Attributes:
        summary: The summary, or None.
        retry: Whether it failed for reasons that may pass.
    """

    summary: Summary | None
    retry: bool = False


def body_text(page: Page) -> str:
    """What a model reads of a page: everything but running headers and footers."""
    return "\n".join(block.text for block in page.blocks if block.text and block.kind is not BlockKind.HEADER)


def page_dialogue(subject: Subject, page: Page, common: Sequence[str], lengths: SummaryOptions) -> Dialogue[Attempt]:
    """Summarize one page.

    Args:
        subject: Its document.
        page: The page.
        common: Lines of the page that other documents have, too.
        lengths: Lengths, fitted to the model.
    """
    parts, retry = split_to_tokens(body_text(page), lengths.read_tokens), False
    while True:
        answers = yield [_page_request(subject, page.name or "", common, part, lengths) for part in parts]
        retry |= _may_pass(answers)
        written = [summary for summary in map(_page_summary, answers) if summary]
        if not written:
            return Attempt(None, retry)
        if len(parts) == 1:
            return Attempt(written[0], retry)
        parts = _shorter([summary.page for summary in written], len(parts), lengths.read_tokens)


def file_dialogue(subject: Subject, text: str, lengths: SummaryOptions) -> Dialogue[Attempt]:
    """Summarize a file.

    Args:
        subject: The document.
        text: Its text, or the summaries of its pages.
        lengths: Lengths, fitted to the model.
    """
    parts, retry = split_to_tokens(text, lengths.read_tokens), False
    while True:
        answers = yield [_file_request(subject, part, lengths) for part in parts]
        retry |= _may_pass(answers)
        written = [summary for summary in map(_file_summary, answers) if summary]
        if not written:
            return Attempt(None, retry)
        if len(parts) == 1:
            return Attempt(written[0], retry)
        parts = _shorter([summary.file for summary in written], len(parts), lengths.read_tokens)


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


def _page_request(
    subject: Subject, page_name: str, common: Sequence[str], text: str, lengths: SummaryOptions
) -> Request:
    values = {"file_chars": str(lengths.page_file_chars), "page_chars": str(lengths.page_chars)}
    fields = {"file": lengths.page_file_chars, "page": lengths.page_chars}
    values["page_name"] = fenced(page_name or "-", "name")
    values["common_lines"] = fenced(cut_to_tokens("\n".join(common), _COMMON_TOKENS) or "-", "lines")
    return _request(subject, PAGE_STEP, "page_summaries", values, text, fields)


def _file_request(subject: Subject, text: str, lengths: SummaryOptions) -> Request:
    values = {"file_chars": str(lengths.file_chars)}
    return _request(subject, FILE_STEP, "file_summaries", values, text, {"summary": lengths.file_chars})


def _request(
    subject: Subject, step: str, asset: str, values: dict[str, str], text: str, fields: dict[str, int]
) -> Request:
    prompt = load_prompt(step, subject.language)
    names = "、".join(name for name in subject.page_names if name) or "-"
    question = prompt.question.substitute(
        values,
        title=fenced(cut_to_tokens(subject.title, _TITLE_TOKENS) or "-", "title"),
        page_names=fenced(cut_to_tokens(names, _NAMES_TOKENS), "names"),
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


def _page_summary(answer: Completion) -> Summary | None:
    value = answer.value
    if answer.outcome is not Outcome.COMPLETED or not isinstance(value, dict):
        return None
    page = one_line(value["page"])
    return Summary(one_line(value["file"]), page) if page else None


def _file_summary(answer: Completion) -> Summary | None:
    value = answer.value
    if answer.outcome is not Outcome.COMPLETED or not isinstance(value, dict):
        return None
    text = one_line(value["summary"])
    return Summary(text) if text else None


def _may_pass(answers: Sequence[Completion]) -> bool:
    return any(answer.may_pass for answer in answers)
