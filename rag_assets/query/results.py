"""What a search returns: hits with citations, and the trace of what was asked of which index.

These types are those of Python, of `--json`, of HTTP and of agents' tools: JSON and its schemas are derived from them.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from pydantic import Field, TypeAdapter, computed_field

from rag_assets.contracts.formats import DocumentFormat, Pages
from rag_assets.text.plain import one_line

TRACED = 20  # passages whose scores a step of the trace names
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)

_PAGES = {document_format.value: document_format.pages for document_format in DocumentFormat}

_T = TypeVar("_T")
_Hidden = Annotated[_T, Field(exclude=True)]
_WhereAny = Annotated[_T, Field(exclude_if=lambda value: value is None or value == ())]


adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # what gives the JSON of a type


def to_json(value: Any) -> Any:
    """A result for JSON; its texts may hold halves of surrogate pairs, as models write them."""
    return adapter_of(type(value)).dump_python(value, mode="json", by_alias=True)


def describe_fields(schemas: Mapping[str, dict[str, Any]]) -> None:
    """Put what docstrings say of fields into JSON schemas of dataclasses, field by field.

    Args:
        schemas: By name; changed where they are.
    """
    for schema in schemas.values():
        summary, _, attributes = schema.get("description", "").partition("\n\nAttributes:\n")
        if attributes:
            schema["description"] = summary
        for name, text in _ATTRIBUTE.findall(attributes):
            if name in schema["properties"]:
                schema["properties"][name].setdefault("description", one_line(text))


@dataclass(frozen=True)
class Citation:
    """A place that a person can open.

    Attributes:
        document_id: The file.
        page_number: Page, sheet or slide, from 1.
        page_name: Name of the sheet or section, or None.
        cell_range: Cells, as in `B4:F20`, or None.
        box: Left, top, right, bottom in points from the top left corner of the page, or None.
        format: Format of the file.
        chunk_id: The passage, by which a place without cells and box is found; may be empty.
        heading: Innermost heading above the passage, or that it begins with, or None.
    """

    document_id: str
    page_number: int
    page_name: str | None
    cell_range: str | None
    box: tuple[float, ...] | None
    format: _Hidden[str]
    chunk_id: _Hidden[str] = ""
    heading: str | None = None

    def __str__(self) -> str:
        """As in `specs/token.xlsx › Login › B4:F20`, `report.pdf › p.3`, `rules.docx › Leave` or `minutes.txt › §3`."""
        parts, pages = [self.document_id], _PAGES.get(self.format)
        heading = self.heading if pages in {Pages.BREAKS, Pages.SECTIONS} else None
        if heading and (self.page_name or pages is Pages.SECTIONS):
            parts.append(heading)  # more exact than that which the section begins with
        elif self.page_name:
            parts.append(self.page_name)
        elif pages in {Pages.NUMBERED, Pages.SLIDES} or self.page_number > 1:
            sign = "§" if pages is Pages.SECTIONS else "p."
            parts += [f"{sign}{self.page_number}", *filter(None, [heading])]
        elif heading:
            parts.append(heading)
        if self.cell_range:
            parts.append(self.cell_range)
        return " › ".join(parts)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def label(self) -> str:
        """The place for people, as in `specs/token.xlsx › Login › B4:F20`."""
        return str(self)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def link(self) -> str:
        """Where the rendered page is opened at this place, relative to the server that shows it.

        As in `/pages/specs/token.xlsx?page=2#cells=B4:F20`, `/pages/report.pdf?page=3#box=72,90.5,300,120` or, without
        cells and box, `/pages/rules.docx?page=1#passage=rules.docx%231.0`.
        """
        address = f"/pages/{quote(self.document_id, safe='/')}?page={self.page_number}"
        if self.cell_range:
            return f"{address}#cells={quote(self.cell_range, safe=':,')}"
        if self.box:
            return f"{address}#box={','.join(f'{edge:g}' for edge in self.box)}"
        return f"{address}#passage={quote(self.chunk_id, safe='')}" if self.chunk_id else address


@dataclass(frozen=True)
class FoundQuestion:
    """A question of the question index by which a passage was found.

    Attributes:
        qa_id: The question.
        question: Its text.
        answer: Its answer, which rests on the passage.
        asked: What was searched for when it was found: the query, sub-queries made from it, or several of them.
    """

    qa_id: str
    question: str
    answer: str
    asked: tuple[str, ...]


@dataclass(frozen=True)
class Hit:
    """One result.

    Attributes:
        rank: From 1.
        score: Higher is better; comparable within one result only.
        document_id: The file.
        page_id: Its page.
        page_number: Page, sheet or slide, from 1.
        page_name: Name of the sheet or section, or None.
        chunk_id: The passage; of a page or document that is a result, its best passage.
        text: Text of the passage as displayed.
        title: Title of the document.
        citation: Where it stands.
        questions: Questions by which it was found, in mode `meta_knowledge`; else empty.
        beginning: How its document begins.
    """

    rank: int
    score: float
    document_id: str
    page_id: _Hidden[str]
    page_number: int
    page_name: str | None
    chunk_id: str
    text: str
    title: str
    citation: Citation
    questions: _WhereAny[tuple[FoundQuestion, ...]] = ()
    beginning: _Hidden[str] = ""


@dataclass(frozen=True)
class Rescored:
    """A passage that a step scored.

    Attributes:
        chunk_id: The passage.
        after: Its score by the step.
        before: Its score before the step; None where it had none, or one in each of several lists.
        lists: Its score in each of the lists that the step put into one, None where a list does not hold it.
    """

    chunk_id: str
    after: float
    before: _WhereAny[float | None] = None
    lists: _WhereAny[tuple[float | None, ...]] = ()


@dataclass(frozen=True)
class Step:
    """One thing that was done.

    Attributes:
        operation: What was done, as in `nearest`, `matching`, `fuse`.
        index: Table that was asked, or None.
        version: Version of that table, or None.
        filter: Condition that rows had to satisfy, or None.
        candidates: Rows that came back.
        milliseconds: Wall time.
        scores: Passages that it scored, best first: of a reranker all, else the first `TRACED`.
        texts: What was decided or asked: selections, key terms, sub-queries.
    """

    operation: str
    index: str | None
    version: int | None
    filter: str | None
    candidates: int
    milliseconds: float
    scores: _WhereAny[tuple[Rescored, ...]] = ()
    texts: _WhereAny[tuple[str, ...]] = ()


@dataclass(frozen=True)
class ModelCall:
    """A request to a language model.

    Attributes:
        step: What it was for, as in `rewrite_query`; names the prompt.
        provider: As in `anthropic`.
        model: Name of the model there.
        outcome: How it ended, see `rag_assets.contracts.generation.Outcome`.
        cached: Whether the answer comes from the store of answers and cost nothing.
        input_tokens: Read, but for those below.
        cached_tokens: Read from the provider's prompt cache.
        output_tokens: Written.
        cost_usd: US dollars.
        seconds: From sending to the last token.
    """

    step: str
    provider: str
    model: str
    outcome: str
    cached: bool
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: float
    seconds: float


@dataclass(frozen=True)
class Trace:
    """What a search did.

    Attributes:
        steps: In the order done.
        milliseconds: Wall time of the whole search.
        calls: Requests to language models, in the order answered.
    """

    steps: tuple[Step, ...]
    milliseconds: float
    calls: tuple[ModelCall, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def cost_usd(self) -> float:
        """US dollars that all calls cost."""
        return sum((call.cost_usd for call in self.calls), 0.0)


@dataclass(frozen=True)
class SearchResult:
    """The answer to one query.

    Attributes:
        query: As asked.
        mode: How it was searched.
        granularity: What a result is: `chunk`, `page` or `document`.
        hits: By falling score; equal scores by chunk id.
        trace: What was done.
    """

    query: str
    mode: str
    granularity: str
    hits: tuple[Hit, ...]
    trace: Trace

    def target(self, hit: Hit) -> str:
        """Id of what a hit is at this granularity."""
        return {"chunk": hit.chunk_id, "page": hit.page_id, "document": hit.document_id}[self.granularity]


@dataclass
class TraceRecorder:
    """Collects the steps of one search while it runs, and its calls of language models, which come from any thread."""

    steps: list[Step] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def add(
        self,
        operation: str,
        began: float,
        candidates: int,
        *,
        index: str | None = None,
        version: int | None = None,
        where: str | None = None,
        scores: Sequence[Rescored] = (),
        texts: tuple[str, ...] = (),
    ) -> None:
        """Note a step that began at a `time.perf_counter` and is done now."""
        elapsed_ms = round((time.perf_counter() - began) * 1000, 3)
        self.steps.append(Step(operation, index, version, where, candidates, elapsed_ms, tuple(scores), texts))

    def finish(self) -> Trace:
        """The trace."""
        elapsed_ms = round((time.perf_counter() - self.started) * 1000, 3)
        return Trace(tuple(self.steps), elapsed_ms, tuple(self.calls))
