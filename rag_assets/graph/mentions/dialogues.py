"""Entities, relationships and claims by a language model: what is asked on each window, what of it is taken, and what a
model is taken to answer while calls are planned.

Source: Edge et al., "From Local to Global: A Graph RAG Approach to Query-Focused Summarization" (2024), sections 3.1.2
and A.2 (gleaning). Deviations: answers are JSON, checked against a schema, and the question whether something was
missed is answered by a boolean of such a schema instead of a logit bias; a name that does not stand in the window is
dropped and counted.

While calls are planned, a model is taken to find names that stand in the window, found by rules: steps that follow
(descriptions, pairs of names, reports on communities) thereby have something to go on.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag_assets.contracts.generation import (
    Completion,
    JsonValue,
    Message,
    Outcome,
    Request,
    Tag,
    object_schema,
    optional_schema,
)
from rag_assets.enrich.documents import Subject
from rag_assets.graph.entity_types import TERM, EntityTypes
from rag_assets.graph.mentions.extraction import Mention, RelationshipKind, RelationshipMention
from rag_assets.graph.mentions.pages import Window, window_text
from rag_assets.graph.mentions.spans import FoldedText, Span, capitalised_names, identifiers, without_overlaps
from rag_assets.graph.names import LONGEST_CHARS, is_name
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.models.structured import merged, parse_json
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import clean_name, fold_name
from rag_assets.text.language import detect_language
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import KANJI, KATAKANA
from rag_assets.text.tokens import estimate_tokens, mean_tokens

STEP = "extract_graph"
CLAIMS_STEP = "extract_claims"
GLEAN_STEP = "glean_graph"

_ANSWER_TOKENS = 3000
_SHORTEST_ANSWER_TOKENS = 256
_LEAST_ANSWER_TOKENS, _TOKENS_OF_A_TOKEN = 512, 6  # an answer on a short text is short; small models may not end it
_CHECK_TOKENS = 32
_MOST_ITEMS = 60
_NAME_CHARS, _DESCRIPTION_CHARS, _SOURCE_CHARS, _DATE_CHARS = 300, 1000, 2000, 60  # ample
_RULE = "\n-----\n"
_MISSED = json.dumps(object_schema({"missed": {"type": "boolean"}}))

SIMULATED_STEPS = (STEP, GLEAN_STEP)

_MISSED_OF = 4  # one name of so many is left to the round that asks for what was missed
# Published for windows of 600 tokens: 5 new entities each, which stand in more windows than one (Edge et al., "From
# Local to Global", 8,564 nodes of 1,669 windows and 15,754 of 3,197).
_WINDOW_TOKENS, _NAMES_OF_A_WINDOW, _NAMES_AT_LEAST = 600, 8, 4
_NAMES_OF_A_CLAIM = 3
_SIMULATED_CHARS = 120
_STRENGTH = 5
_MATERIAL = re.compile(r"<(document-[0-9a-f]+)>\n(.*)\n</\1>", re.DOTALL)
_COMPOUND = re.compile(f"[{KANJI}{KATAKANA}A-Za-z0-9_]{{3,}}")


@dataclass(frozen=True)
class MentionOptions:
    """How mentions are extracted: windows of about so many tokens, and what a language model is asked on each."""

    window_tokens: int
    overlap_tokens: int  # tokens of a window that the next one repeats
    gleanings: int  # rounds in which missed names are asked for, at most
    claims: bool


@dataclass(frozen=True)
class WindowAnswer:
    """What a model said on a window."""

    entities: Sequence[Mapping[str, JsonValue]]  # items as of the schema; so with the others
    relationships: Sequence[Mapping[str, JsonValue]]
    claims: Sequence[Mapping[str, JsonValue]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about an entity; columns as of the table `claims`."""

    page_number: int
    start: int
    place: str
    subject: str
    object: str | None
    type: str
    status: str
    start_date: str | None
    end_date: str | None
    description: str
    source_text: str

    @property
    def block_index(self) -> None:
        """The block is not known."""


@dataclass
class PageFindings:
    """What the windows of a page gave, after checking, and how many items were dropped, by reason."""

    mentions: list[Mention] = field(default_factory=list)
    relationships: list[RelationshipMention] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def window_dialogue(
    subject: Subject, text: str, types: EntityTypes, options: MentionOptions, context_tokens: int
) -> Dialogue[WindowAnswer | None]:
    """Ask for the names in a window, then for those that were missed.

    Returns:
        None where the model gave no usable answer, or one without any item and then failed for reasons that may pass.
    """
    request = _request(subject, text, types, options, context_tokens)
    (first,) = yield [request]
    parts, last = [_lists(first)], first
    if parts[0] is None:
        return None
    turns, has_failed = request.messages, False
    prompt, tag = load_prompt(GLEAN_STEP, subject.language), replace(request.tag, step=GLEAN_STEP)
    for _ in range(options.gleanings):
        turns = (*turns, Message("assistant", last.text), Message("user", prompt.prefix.template))
        read_tokens = estimate_tokens(request.prefix) + sum(estimate_tokens(turn.text) for turn in turns)
        if read_tokens + request.max_tokens > context_tokens:
            break
        (reply,) = yield [Request(request.prefix, turns, _CHECK_TOKENS, tag, schema=_MISSED)]
        if not isinstance(reply.value, dict) or reply.value.get("missed") is not True:
            has_failed |= reply.may_pass
            break
        turns = (*turns, Message("assistant", reply.text), Message("user", prompt.question.template))
        (last,) = yield [Request(request.prefix, turns, request.max_tokens, tag, schema=request.schema)]
        parts.append(_lists(last))
        if parts[-1] is None:
            has_failed |= last.may_pass
            break
    names = ("entities", "relationships", "claims")
    entities, relationships, claims = (
        [item for part in parts if part for item in part.get(name, ())] for name in names
    )
    return None if has_failed and not (entities or relationships) else WindowAnswer(entities, relationships, claims)


def check_windows(
    page_number: int, text: str, windows: Sequence[Window], answers: Mapping[int, WindowAnswer], types: EntityTypes
) -> PageFindings:
    """What of a model's answers on the windows of a page is taken.

    A name must stand in its window. Where it stands only in what the window repeats of the one before, and that one
    gave it, it is the same place and does not count again; so with relationships and claims. The ends of relationships
    must be among the names.

    Answers are by index of the window; windows without one are passed over.
    """
    check = _PageCheck(page_number, text, types)
    for window in windows:
        check.take(window, answers.get(window.index))
    return check.findings


class _PageCheck:
    """Takes the answers on the windows of a page one after the other."""

    def __init__(self, page_number: int, text: str, types: EntityTypes) -> None:
        self.findings = PageFindings()
        self._page_number, self._types = page_number, types
        self._folded = FoldedText(text)
        self._names: dict[str, int] = {}  # of the window before: where they stand
        self._pairs: set[tuple[str, str]] = set()  # that the window before relates

    def take(self, window: Window, answer: WindowAnswer | None) -> None:
        if answer is None:
            self._names, self._pairs = {}, set()
            return
        place = window_text(window, self._folded.text)
        self._names = self._take_mentions(window, answer, place)
        self._pairs = self._take_relationships(window, answer, place)
        self._take_claims(window, answer, place)

    def _take_mentions(self, window: Window, answer: WindowAnswer, place: str) -> dict[str, int]:
        """Where the names of a window stand, those counted before included."""
        names: dict[str, int] = {}
        for item in answer.entities:
            name, description = clean_name(str(item["name"])), one_line(item["description"])
            key = fold_name(name)
            if not key or not (is_name(name) or any(map(str.isdigit, name))):
                self.findings.dropped["no name"] += 1
                continue
            if key in names:
                continue
            fresh = self._folded.find(name, window.fresh, window.end)
            span = fresh or self._folded.find(name, window.start, window.end)
            if span is None and window.header:
                span = self._folded.find(name, window.header_start, window.header_start + len(window.header))
            if span is None:
                self.findings.dropped["name not in the text"] += 1
                continue
            names[key] = span[0]
            if fresh is None and key in self._names:
                continue
            spelling = clean_name(self._folded.text[span[0] : span[1]])
            kind = str(item["type"]) if item["type"] in self._types.names else TERM
            mention = Mention(self._page_number, span[0], None, place, spelling, kind, description)
            self.findings.mentions.append(mention)
        return names

    def _take_relationships(self, window: Window, answer: WindowAnswer, place: str) -> set[tuple[str, str]]:
        """The pairs of names that a window relates, those counted before included."""
        names = self._names
        pairs: set[tuple[str, str]] = set()
        for item in answer.relationships:
            source, target = fold_name(clean_name(str(item["source"]))), fold_name(clean_name(str(item["target"])))
            if source not in names or target not in names or source == target:
                self.findings.dropped["relationship without both ends"] += 1
                continue
            is_repeat = (source, target) in self._pairs and max(names[source], names[target]) < window.fresh
            if (source, target) not in pairs and not is_repeat:
                start, strength = min(names[source], names[target]), min(10.0, max(0.0, float(str(item["strength"]))))
                ends = (source, target, RelationshipKind.STATED)
                description = one_line(item["description"])
                relationship = RelationshipMention(self._page_number, start, None, place, *ends, strength, description)
                self.findings.relationships.append(relationship)
            pairs.add((source, target))
        return pairs

    def _take_claims(self, window: Window, answer: WindowAnswer, place: str) -> None:
        names, claims = self._names, []
        old_claims = {
            (claim.subject, claim.source_text) for claim in self.findings.claims if claim.start < window.fresh
        }
        for item in answer.claims:
            subject = fold_name(clean_name(str(item["subject"])))
            object_key = None if item["object"] is None else fold_name(clean_name(str(item["object"])))
            source_text = one_line(item["source_text"])
            span = self._folded.find(source_text, window.start, window.end, words=False)
            if subject not in names or span is None:
                self.findings.dropped["claim without subject or source"] += 1
                continue
            if (subject, source_text) in old_claims:
                continue
            claims.append(
                Claim(
                    self._page_number,
                    span[0],
                    place,
                    subject,
                    object_key if object_key in names and object_key != subject else None,
                    str(item["type"]),
                    str(item["status"]),
                    _text_or_none(item["start_date"]),
                    _text_or_none(item["end_date"]),
                    one_line(item["description"]),
                    source_text,
                )
            )
        self.findings.claims += claims


def _text_or_none(value: JsonValue) -> str | None:
    return str(value).strip() or None if value is not None else None


def _request(subject: Subject, text: str, types: EntityTypes, options: MentionOptions, context_tokens: int) -> Request:
    prompt = load_prompt(STEP, subject.language)
    claims = load_prompt(CLAIMS_STEP, subject.language)
    first, _, second = claims.question.template.partition(_RULE)
    type_list = "\n".join(
        f"    - `{entity_type.name}`: {entity_type.describe(prompt.language)}" for entity_type in types.types
    )
    prefix = prompt.prefix.substitute(
        types=type_list,
        claims_part=claims.prefix.template if options.claims else "",
        claims_example_1=first if options.claims else "",
        claims_example_2=second if options.claims else "",
    )
    question = prompt.question.substitute(
        title=subject.fenced_title,
        page_name=subject.listed_pages,
        document=fenced(text),
    )
    room = context_tokens - estimate_tokens(prefix) - estimate_tokens(question)
    limit = min(_ANSWER_TOKENS, _LEAST_ANSWER_TOKENS + _TOKENS_OF_A_TOKEN * estimate_tokens(text))
    return Request(
        prefix=prefix,
        messages=(Message("user", question),),
        max_tokens=max(_SHORTEST_ANSWER_TOKENS, min(limit, room)),
        tag=Tag("entity_mentions", STEP, subject.document_id, subject.shard),
        schema=_schema(types.names, claims=options.claims),
    )


def _schema(types: Sequence[str], *, claims: bool) -> str:
    """Every text and list is bounded, because small models may not end one that is not."""

    def text(longest: int) -> JsonValue:
        return {"type": "string", "maxLength": longest}

    name, description = text(_NAME_CHARS), text(_DESCRIPTION_CHARS)
    kind: JsonValue = {"type": "string", "enum": list(types)}
    strength: JsonValue = {"type": "number", "minimum": 0, "maximum": 10}
    lists: dict[str, JsonValue] = {
        "entities": _items({"name": name, "type": kind, "description": description}),
        "relationships": _items({"source": name, "target": name, "description": description, "strength": strength}),
    }
    if claims:
        date = optional_schema(text(_DATE_CHARS))
        lists["claims"] = _items(
            {
                "subject": name,
                "object": optional_schema(name),
                "type": name,
                "status": {"type": "string", "enum": ["true", "false", "suspected"]},
                "start_date": date,
                "end_date": date,
                "description": description,
                "source_text": text(_SOURCE_CHARS),
            }
        )
    return json.dumps(object_schema(lists), ensure_ascii=False)


def _items(properties: dict[str, JsonValue]) -> JsonValue:
    item: dict[str, JsonValue] = object_schema(properties)
    return {"type": "array", "maxItems": _MOST_ITEMS, "items": item}


def _lists(answer: Completion) -> dict[str, list[Mapping[str, JsonValue]]] | None:
    """Lists of an answer; of one that was cut off, the items that are complete."""
    if answer.outcome not in {Outcome.COMPLETED, Outcome.TRUNCATED} or not isinstance(answer.value, dict):
        return None
    return {
        name: [item for item in items if isinstance(item, dict)]
        for name, items in answer.value.items()
        if isinstance(items, list)
    }


def simulated_findings(request: Request, most_tokens: int) -> JsonValue:
    """An answer to a request for the names in a window.

    Names are codes, capitalised names, Japanese compounds and keys of table rows, each described by the line that it
    stands in and related to the next one. As many are taken, at even distances, as models name in a window of its
    length and as the answer has room for; one of four is left to the round that asks for what was missed.

    Returns:
        None where the request is not for names, but whether there are more.
    """
    lists = json.loads(request.schema or "{}").get("properties", {})
    material = _MATERIAL.search(request.messages[0].text)
    if "entities" not in lists or material is None:
        return None
    names = _simulated_names(material[2])
    usual = max(_NAMES_AT_LEAST, _NAMES_OF_A_WINDOW * mean_tokens(material[2]) / _WINDOW_TOKENS) / _MISSED_OF
    if len(request.messages) == 1:
        usual *= _MISSED_OF - 1
    else:
        earlier_names = set(_names_in_answers(request))
        names = [name for name in names if fold_name(name[0]) not in earlier_names]
    count = min(len(names), lists["entities"]["maxItems"], math.ceil(usual))
    while True:
        answer = _simulated_answer(
            [names[index * len(names) // count] for index in range(count)], claims="claims" in lists
        )
        tokens = mean_tokens(json.dumps(answer, ensure_ascii=False))
        if tokens <= most_tokens or not count:
            return answer
        count = min(count - 1, int(count * most_tokens / tokens))


def _simulated_answer(names: Sequence[tuple[str, str, str]], *, claims: bool) -> dict[str, JsonValue]:
    answer: dict[str, JsonValue] = {
        "entities": [{"name": name, "type": kind, "description": line} for name, kind, line in names],
        "relationships": [
            {"source": name, "target": names[index][0], "description": line, "strength": _STRENGTH}
            for index, (name, _, line) in enumerate(names[:-1], start=1)
        ],
    }
    if claims:
        answer["claims"] = [
            {
                "subject": name,
                "object": None,
                "type": kind,
                "status": "true",
                "start_date": None,
                "end_date": None,
                "description": line,
                "source_text": line,
            }
            for name, kind, line in names[::_NAMES_OF_A_CLAIM]
        ]
    return answer


def _simulated_names(text: str) -> list[tuple[str, str, str]]:
    """Names with their types and the beginnings of the lines that they stand in, each once, in order."""
    is_japanese = detect_language(text) == "ja"
    names: dict[str, tuple[str, str, str]] = {}
    for line in filter(str.strip, text.splitlines()):
        for span in without_overlaps(_simulated_spans(line, is_japanese=is_japanese)):
            name = clean_name(line[span.start : span.end])
            if len(name) <= LONGEST_CHARS and is_name(name):
                names.setdefault(fold_name(name), (name, span.type, line.strip()[:_SIMULATED_CHARS]))
    return list(names.values())


def _simulated_spans(line: str, *, is_japanese: bool) -> Iterator[Span]:
    yield from identifiers(line, is_japanese=is_japanese)
    key, separator, _ = line.partition(CELL_SIGN)
    if separator:
        yield Span(0, len(key), TERM)
    if is_japanese:
        for match in _COMPOUND.finditer(line):
            yield Span(*match.span(), TERM)
    else:
        for span, is_sure in capitalised_names(line):
            if is_sure:
                yield span


def _names_in_answers(request: Request) -> Iterator[str]:
    """Folded names of the answers before; one that breaks its schema is asked for anew and has said nothing."""
    for message in request.messages:
        if message.role != "assistant":
            continue
        try:
            value = merged(None, parse_json(message.text), request.schema or "{}")
        except ValueError:
            continue
        entities = value.get("entities") if isinstance(value, dict) else None
        for entity in entities if isinstance(entities, list) else []:
            if isinstance(entity, dict):
                yield fold_name(clean_name(str(entity["name"])))
