"""Reports on communities by a language model."""

import json
from dataclasses import dataclass

from rag_assets.contracts.generation import Completion, JsonValue, Message, Outcome, Request, Tag, object_schema
from rag_assets.graph.reports.context import ReportContext
from rag_assets.graph.reports.extraction import (
    HIGHEST_RATING,
    MOST_FINDINGS,
    Finding,
    Report,
    ReportSubject,
    checked_report,
)
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.text.plain import one_line

STEP = "report_community"

_PROMPT_TOKENS = 1500  # for the system text and the form of the question
_LEAST_TOKENS = 256
_SLACK = 2  # an answer may be this many times longer than asked for
_CHARS_PER_TOKEN = {"ja": 0.8, "en": 3.0}
_TITLE_CHARS = 200
_SENTENCE_CHARS = 400


@dataclass(frozen=True)
class ReportOptions:
    """What reports are written from, and how long they get.

    Attributes:
        context_tokens: Tokens of records that a report is written from, at most.
        report_tokens: Tokens of a report, about.
        minimum_size: Communities of fewer entities get no report where there are larger ones; an entity by itself never
            does.
    """

    context_tokens: int
    report_tokens: int
    minimum_size: int

    def fitted(self, context_tokens: int, output_tokens: int) -> "ReportOptions":
        """These options, with what is read and written cut to what a model takes."""
        report_tokens = min(self.report_tokens, max(1, output_tokens // _SLACK))
        room = context_tokens - _PROMPT_TOKENS - _SLACK * report_tokens
        return ReportOptions(max(_LEAST_TOKENS, min(self.context_tokens, room)), report_tokens, self.minimum_size)


def report_dialogue(context: ReportContext, subject: ReportSubject, options: ReportOptions) -> Dialogue[Report | None]:
    """Have a report written.

    An answer that reached its limit is taken if what it holds is a report by its schema.

    Lengths are fitted to the model.

    Returns:
        The report, with references that hold; None where the model gave none.
    """
    (answer,) = yield [_request(context, subject, options)]
    report = _report(answer)
    return None if report is None else checked_report(report, context.records)


def _request(context: ReportContext, subject: ReportSubject, options: ReportOptions) -> Request:
    prompt = load_prompt(STEP, subject.language)
    chars = int(options.report_tokens * _CHARS_PER_TOKEN[prompt.language])
    values = {"report_chars": str(chars), "most_findings": str(MOST_FINDINGS)}
    question = prompt.question.substitute(values, records=fenced(context.text, "records"))
    return Request(
        prefix=prompt.prefix.substitute(values),
        messages=(Message("user", question),),
        max_tokens=_SLACK * options.report_tokens,
        tag=Tag("community_reports", STEP),
        schema=_schema(chars),
    )


def _schema(chars: int) -> str:
    def text(longest: int) -> JsonValue:
        return {"type": "string", "minLength": 1, "maxLength": longest}

    finding = object_schema({"summary": text(_SENTENCE_CHARS), "explanation": text(_SLACK * chars)})
    properties: dict[str, JsonValue] = {
        "title": text(_TITLE_CHARS),
        "summary": text(_SLACK * chars),
        "rating": {"type": "number", "minimum": 0, "maximum": HIGHEST_RATING},
        "rating_explanation": text(_SENTENCE_CHARS),
        "findings": {"type": "array", "items": finding, "minItems": 1, "maxItems": MOST_FINDINGS},
    }
    return json.dumps(object_schema(properties), ensure_ascii=False)


def _report(answer: Completion) -> Report | None:
    value = answer.value
    if answer.outcome not in {Outcome.COMPLETED, Outcome.TRUNCATED} or not isinstance(value, dict):
        return None
    rating, findings = value["rating"], value["findings"]
    if not isinstance(rating, int | float) or not isinstance(findings, list):
        return None
    found = [
        Finding(one_line(each["summary"]), str(each["explanation"]).strip())
        for each in findings
        if isinstance(each, dict)
    ]
    title, summary = one_line(value["title"]), str(value["summary"]).strip()
    if not (title and summary and found):
        return None
    return Report(title, summary, float(rating), one_line(value["rating_explanation"]), tuple(found))
