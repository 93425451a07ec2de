"""What a search returns: hits with citations, and the trace of what was asked of which index."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

TRACED = 20  # passages whose scores a step of the trace names
_PAGED_FORMATS = frozenset({"pdf", "pptx", "ppt"})


@dataclass(frozen=True)
class Citation:
    """A place that a person can open.

    Attributes:
        document_id: The file.
        page_number: Page, sheet or slide, from 1.
        page_name: Name of the sheet, or None.
        cell_range: Cells, as in `B4:F20`, or None.
        box: Left, top, right, bottom in points from the top left corner of the page, or None.
        format: Format of the file.
        chunk_id: The passage, by which a place without cells and box is found; may be empty.
    """

    document_id: str
    page_number: int
    page_name: str | None
    cell_range: str | None
    box: tuple[float, ...] | None
    format: str
    chunk_id: str = ""

    def __str__(self) -> str:
        """As in `specs/token.xlsx › Login › B4:F20` or `report.pdf › p.3`."""
        parts = [self.document_id]
        if self.page_name:
            parts.append(self.page_name)
        elif self.format in _PAGED_FORMATS or self.page_number > 1:
            parts.append(f"p.{self.page_number}")
        if self.cell_range:
            parts.append(self.cell_range)
        return " › ".join(parts)

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

    def to_json(self) -> dict[str, object]:
        """The citation, its printed form and its link, for JSON."""
        return {
            "label": str(self),
            "link": self.link(),
            "document_id": self.document_id,
            "page_number": self.page_number,
            "page_name": self.page_name,
            "cell_range": self.cell_range,
            "box": list(self.box) if self.box is not None else None,
        }


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

    def to_json(self) -> dict[str, object]:
        """The question, for JSON."""
        return {"qa_id": self.qa_id, "question": self.question, "answer": self.answer, "asked": list(self.asked)}


@dataclass(frozen=True)
class Hit:
    """One result.

    Attributes:
        rank: From 1.
        score: Higher is better; comparable within one result only.
        document_id: The file.
        page_id: Its page.
        page_number: Page, sheet or slide, from 1.
        page_name: Name of the sheet, or None.
        chunk_id: The passage; of a page or document that is a result, its best passage.
        text: Text of the passage as displayed.
        title: Title of the document.
        citation: Where it stands.
        questions: Questions by which it was found, in mode `meta_knowledge`; else empty.
    """

    rank: int
    score: float
    document_id: str
    page_id: str
    page_number: int
    page_name: str | None
    chunk_id: str
    text: str
    title: str
    citation: Citation
    questions: tuple[FoundQuestion, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The hit, for JSON."""
        return {
            "rank": self.rank,
            "score": self.score,
            "document_id": self.document_id,
            "page_number": self.page_number,
            "page_name": self.page_name,
            "chunk_id": self.chunk_id,
            "title": self.title,
            "text": self.text,
            "citation": self.citation.to_json(),
            **({"questions": [each.to_json() for each in self.questions]} if self.questions else {}),
        }


@dataclass(frozen=True)
class Rescored:
    """A passage that a step scored.

    Attributes:
        chunk_id: The passage.
        before: Its score before the step; None where it had none, or one in each of several lists.
        after: Its score by the step.
        lists: Its score in each of the lists that the step put into one, None where a list does not hold it.
    """

    chunk_id: str
    before: float | None
    after: float
    lists: tuple[float | None, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The scores, for JSON."""
        return {
            "chunk_id": self.chunk_id,
            **({"before": self.before} if self.before is not None else {}),
            **({"lists": list(self.lists)} if self.lists else {}),
            "after": self.after,
        }


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
        rescored: Passages that it scored, best first: of a reranker all, else the first `TRACED`.
        texts: What was decided or asked: selections, key terms, sub-queries.
    """

    operation: str
    index: str | None
    version: int | None
    filter: str | None
    candidates: int
    milliseconds: float
    rescored: tuple[Rescored, ...] = ()
    texts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The step, for JSON."""
        return {
            "operation": self.operation,
            "index": self.index,
            "version": self.version,
            "filter": self.filter,
            "candidates": self.candidates,
            "milliseconds": round(self.milliseconds, 3),
            **({"scores": [each.to_json() for each in self.rescored]} if self.rescored else {}),
            **({"texts": list(self.texts)} if self.texts else {}),
        }


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

    def to_json(self) -> dict[str, object]:
        """The call, for JSON."""
        return {**self.__dict__, "seconds": round(self.seconds, 3)}


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

    @property
    def cost_usd(self) -> float:
        """US dollars that all calls cost."""
        return sum((call.cost_usd for call in self.calls), 0.0)

    def to_json(self) -> dict[str, object]:
        """The trace, for JSON."""
        return {
            "steps": [step.to_json() for step in self.steps],
            "calls": [call.to_json() for call in self.calls],
            "cost_usd": self.cost_usd,
            "milliseconds": round(self.milliseconds, 3),
        }


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

    def to_json(self) -> dict[str, object]:
        """One JSON object: query, mode, hits, trace."""
        return {
            "query": self.query,
            "mode": self.mode,
            "granularity": self.granularity,
            "hits": [hit.to_json() for hit in self.hits],
            "trace": self.trace.to_json(),
        }

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
        rescored: Sequence[Rescored] = (),
        texts: tuple[str, ...] = (),
    ) -> None:
        """Note a step that began at a `time.perf_counter` and is done now."""
        elapsed = (time.perf_counter() - began) * 1000
        self.steps.append(Step(operation, index, version, where, candidates, elapsed, tuple(rescored), texts))

    def finish(self) -> Trace:
        """The trace."""
        return Trace(tuple(self.steps), (time.perf_counter() - self.started) * 1000, tuple(self.calls))
