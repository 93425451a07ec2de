"""Classifies a document by a language model: one pass in which it reasons first, then names the values of all facets.

The name of the file is not told to the model, so that a renamed file costs no call.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.contracts.generation import JsonValue, Message, Outcome, Request, Tag, object_schema
from rag_assets.enrich.facets import Assignment, folded
from rag_assets.enrich.summary_dialogues import Subject, body_text
from rag_assets.enrich.taxonomy import Facet, Taxonomy
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.models.token_estimate import cut_to_tokens, estimate_tokens
from rag_assets.parsing.content import Page

STEP = "classify_document"
ASSET = "document_facets"

_SLACK = 2  # texts may be this many times longer than asked for
_REASONING_CHARS = 300
_EVIDENCE_CHARS = 40
_TOKENS_PER_CHAR = 1.5
_PROMPT_TOKENS = 900  # for the system text without the taxonomy
_VALUE_TOKENS = 60  # for the form of one value in the answer
_TITLE_TOKENS = 100
_NAMES_TOKENS = 400
_LEAST_TOKENS = 256
_LEAST_PAGE_TOKENS = 40


@dataclass(frozen=True)
class FacetAttempt:
    """What came of asking for the values of a document.

    Attributes:
        assignments: Its values, or None where the model did not name them.
        retry: Whether it failed for reasons that may pass.
    """

    assignments: list[Assignment] | None
    retry: bool = False


def facet_dialogue(
    subject: Subject, pages: Sequence[Page], taxonomy: Taxonomy, read_tokens: int, context_tokens: int
) -> Dialogue[FacetAttempt]:
    """Classify one document.

    Args:
        subject: The document.
        pages: Its pages.
        taxonomy: The facets and their values.
        read_tokens: Tokens of the document that the model reads, at most.
        context_tokens: Tokens of prompt and answer that the model takes.
    """
    listed = facet_list(taxonomy, subject.language)
    room = context_tokens - _PROMPT_TOKENS - estimate_tokens(listed) - _TITLE_TOKENS - _NAMES_TOKENS
    room -= _answer_tokens(taxonomy)
    text = document_text(pages, max(_LEAST_TOKENS, min(read_tokens, room)))
    [answer] = yield [_request(subject, text, listed, taxonomy)]
    value = answer.value
    if answer.outcome is not Outcome.COMPLETED or not isinstance(value, dict):
        return FacetAttempt(None, retry=answer.may_pass)
    return FacetAttempt(_assignments(value, taxonomy, folded("\n".join([subject.title, *subject.page_names, text]))))


def document_text(pages: Sequence[Page], tokens: int) -> str:
    """What the model reads of a document: its text, or the beginning of each page where that is too long.

    Args:
        pages: Its pages.
        tokens: Tokens at most, by estimate.
    """
    texts = [text for text in map(body_text, pages) if text.strip()]
    whole = "\n\n".join(texts)
    if estimate_tokens(whole) <= tokens:
        return whole
    lengths = [estimate_tokens(text) for text in texts]
    share = max(_LEAST_PAGE_TOKENS, _even_share(lengths, tokens))
    return cut_to_tokens("\n\n".join(cut_to_tokens(text, share) for text in texts), tokens)


def facet_list(taxonomy: Taxonomy, language: str) -> str:
    """The facets and values of a taxonomy as the model reads them."""
    japanese = language == "ja"
    required, most = ("必須、", "最大{}個") if japanese else ("required, ", "at most {}")
    lines = []
    for facet in taxonomy.facets:
        bounds = (required if facet.required else "") + most.format(facet.most_values)
        lines.append(f"- `{facet.name}` {facet.label(language)} ({bounds}): {facet.description(language)}")
        lines += [f"  - `{v.name}` {v.label(language)}: {v.description(language)}" for v in facet.values]
    return "\n".join(lines)


def _request(subject: Subject, text: str, listed: str, taxonomy: Taxonomy) -> Request:
    prompt = load_prompt(STEP, subject.language)
    names = "、".join(name for name in subject.page_names if name) or "-"
    question = prompt.question.substitute(
        title=fenced(cut_to_tokens(subject.title, _TITLE_TOKENS) or "-", "title"),
        page_names=fenced(cut_to_tokens(names, _NAMES_TOKENS), "names"),
        document=fenced(text),
    )
    return Request(
        prefix=prompt.prefix.substitute(facets=listed, reasoning_chars=str(_REASONING_CHARS)),
        messages=(Message("user", question),),
        max_tokens=_answer_tokens(taxonomy),
        tag=Tag(ASSET, STEP, subject.document_id, subject.shard),
        schema=_schema(taxonomy),
    )


def _schema(taxonomy: Taxonomy) -> str:
    reasoning: JsonValue = {"type": "string", "maxLength": _SLACK * _REASONING_CHARS}
    facets = {facet.name: _facet_schema(facet) for facet in taxonomy.facets}
    return json.dumps(object_schema({"reasoning": reasoning, **facets}), ensure_ascii=False)


def _facet_schema(facet: Facet) -> JsonValue:
    fields: dict[str, JsonValue] = {
        "value": {"type": "string", "enum": [value.name for value in facet.values]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "evidence": {"type": "string", "maxLength": _SLACK * _EVIDENCE_CHARS},
    }
    item = object_schema(fields)
    return {"type": "array", "maxItems": _SLACK * facet.most_values, "items": item}


def _answer_tokens(taxonomy: Taxonomy) -> int:
    values = sum(facet.most_values for facet in taxonomy.facets)
    chars = _SLACK * (_REASONING_CHARS + values * _EVIDENCE_CHARS)
    return int(chars * _TOKENS_PER_CHAR) + values * _VALUE_TOKENS


def _assignments(value: Mapping[str, object], taxonomy: Taxonomy, document: str) -> list[Assignment]:
    """What the model named: a value once, no more than a facet allows, evidence only where the document holds it."""
    found: list[Assignment] = []
    for facet in taxonomy.facets:
        named: dict[str, Assignment] = {}
        items = value[facet.name]
        for item in items if isinstance(items, list) else []:
            quote = " ".join(str(item["evidence"]).split())
            evidence = quote if quote and folded(quote) in document else ""
            assignment = Assignment(facet.name, item["value"], round(float(item["confidence"]), 4), evidence)
            named.setdefault(assignment.value, assignment)
        found += list(named.values())[: facet.most_values]
    return found


def _even_share(lengths: Sequence[int], total: int) -> int:
    """The greatest length to which all may be cut so that they fit a total."""
    share, left, count = 0, total, len(lengths)
    for length in sorted(lengths):
        share = left // count
        if length > share:
            return share
        left, count = left - length, count - 1
    return share
