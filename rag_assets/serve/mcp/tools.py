"""The tools: what each does in a thread, and its name, description, arguments and result.

Results come in parts that agents can take in. What stays out: how tools are called over the protocol
(`rag_assets.serve.mcp.server`).
"""

import json
import re
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from pydantic import JsonValue

from rag_assets.contracts.errors import QueryError
from rag_assets.query.ask.answers import Answer, Answered, EvidenceFound, TextPiece
from rag_assets.query.cancellation import Cancellation
from rag_assets.query.contents.contents import DocumentFilter
from rag_assets.query.contents.graph import CommunityContents
from rag_assets.query.filters import parse_filters
from rag_assets.query.results import Citation, adapter_of
from rag_assets.query.search.graph_local import HOW_TO_INDEX
from rag_assets.serve.limits import WorkerThreads
from rag_assets.serve.mcp import schemas
from rag_assets.serve.mcp.pages import PageAddress, page_lines, part_of
from rag_assets.serve.requests import Form, check_options, levels_of, turns_of
from rag_assets.serve.service import Service
from rag_assets.serve.sql.reader import sql_tables
from rag_assets.text.cells import parse_area

_RESULT_CHARS = 40_000  # of a whole result as JSON, about
_PASSAGE_CHARS = 4000
_SOURCES_CHARS = 20_000  # of all sources together
_SOURCE_CHARS = 1200
_PAGE_CHARS = 20_000
_SUMMARY_CHARS = 400
_CELL_CHARS = 2000
_NESTED_CHARS = 5000
_EDGES = 50
_PARTS = 100
_FAILURES = 20
_REPORT_SECONDS = 1.0  # between two reports of progress
_CURSOR = re.compile(r"([0-9]{1,12})\.([0-9]{1,12})", re.ASCII)

_T = TypeVar("_T")
_A = TypeVar("_A", bound=Form)
_R = TypeVar("_R", bound=schemas.Result)
_Text = TypeVar("_Text", str, str | None)


class Call:
    """A call of a tool, shared by the thread that works and the event loop that waits for it.

    Args:
        send: Tells the caller in one line how far it is; may be called from any thread.

    Attributes:
        cancellation: Gives the call up where the caller is gone.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self.cancellation = Cancellation()
        self._reported = float("-inf")

    def report(self, message: str) -> None:
        """Tell how far it is, at most once a second.

        Raises:
            Cancelled: The caller is gone.
        """
        self.cancellation.check()
        if time.monotonic() - self._reported >= _REPORT_SECONDS:
            self._reported = time.monotonic()
            self._send(message)


def search(service: Service, asked: schemas.SearchArguments, call: Call) -> schemas.PassageList:
    """Search; what there is no room for is left to the next call.

    Raises:
        RagAssetsError: See `KnowledgeBase.search`.
    """
    version, defaults = service.current(), service.options.defaults
    start = _offset_of(asked.cursor, version.snapshot.number)
    mode = asked.mode or defaults.mode
    check_options(mode, asked.level)
    with service.timed(mode, "search"):
        result = version.base.search(
            asked.query,
            mode,
            asked.limit or min(defaults.k, schemas.MAX_LIMIT),
            parse_filters(asked.filters),
            granularity=asked.granularity,
            levels=levels_of(asked.level, None, defaults.levels),
            cancellation=call.cancellation,
        )
    passages = [
        _placed(
            schemas.Passage,
            hit.citation,
            rank=hit.rank,
            score=hit.score,
            title=hit.title,
            chunk_id=hit.chunk_id,
            text=hit.text[:_PASSAGE_CHARS],
            cut=len(hit.text) > _PASSAGE_CHARS,
        )
        for hit in result.hits[start:]
    ]
    part = _fitting(passages, _RESULT_CHARS)
    return schemas.PassageList(
        snapshot=version.snapshot.number,
        mode=result.mode,
        passages=part,
        next_cursor=_cursor_at(version.snapshot.number, start + len(part), len(result.hits)),
        calls=result.trace.calls,
    )


def ask(service: Service, asked: schemas.AskArguments, call: Call) -> schemas.AskResult:
    """Answer; ends early where nobody waits any more.

    Raises:
        RagAssetsError: See `KnowledgeBase.ask`.
    """
    version, defaults = service.current(), service.options.defaults
    mode = asked.mode or defaults.ask_mode
    check_options(mode, asked.level)
    answer: Answer | None = None
    chars = 0
    with service.timed(mode, "ask"):
        events = version.base.ask_stream(
            asked.question,
            mode,
            asked.limit or min(defaults.k, schemas.MAX_LIMIT),
            parse_filters(asked.filters),
            history=turns_of(asked.history),
            levels=levels_of(asked.level, None, defaults.levels),
            cancellation=call.cancellation,
        )
        with closing(events):
            for event in events:
                match event:
                    case Answered(answer):
                        break
                    case EvidenceFound(hits):
                        call.report(f"{len(hits)} passages found")
                    case TextPiece(text):
                        if chars:  # else it may be all, as quotes are
                            call.report(f"{chars} characters written")
                        chars += len(text)
        if answer is None:
            raise QueryError("there is no answer")
    answer_sources = answer.cited()
    limit = min(_SOURCE_CHARS, _SOURCES_CHARS // max(1, len(answer_sources)))
    sources = [
        _placed(
            schemas.AnswerSource,
            source.citation,
            number=source.number,
            text=source.text[:limit],
            cut=len(source.text) > limit,
        )
        for source in answer_sources
    ]
    return _result(
        schemas.AskResult,
        answer,
        snapshot=version.snapshot.number,
        answer=answer.text,
        sources=sources,
        calls=answer.trace.calls,
    )


def read_page(service: Service, asked: schemas.ReadPageArguments, _: Call) -> schemas.PageResult:
    """Read a part of a page.

    Raises:
        QueryError: There is no such page, or nothing in these cells.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    area = parse_area(asked.cells)
    if asked.cells is not None and area is None:
        raise QueryError(f"cells: expected cells as in B4:F20, found {asked.cells!r}")
    number = version.snapshot.number
    start = _offset_of(asked.cursor, number)
    whole = page_lines(version.contents, asked.document_id, asked.page_number, area)
    if whole is None:
        raise QueryError(f"there is no page {asked.page_number} of {asked.document_id}; see list_documents")
    page, lines = whole.page, whole.lines
    if area is not None and not lines:
        raise QueryError(f"nothing stands in the cells {asked.cells} of page {asked.page_number}")
    blocks, stop = part_of(lines, start, _PAGE_CHARS)
    return _result(
        schemas.PageResult,
        page,
        snapshot=number,
        summary=page.summary if start == 0 and area is None else None,
        uri=str(PageAddress(page.document_id, page.page_number)),
        blocks=blocks,
        next_cursor=_cursor_at(number, stop, len(lines)),
    )


def list_documents(service: Service, asked: schemas.ListDocumentsArguments, _: Call) -> schemas.DocumentList:
    """List documents.

    Raises:
        QueryError: The cursor is none.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    document_filter = DocumentFilter(asked.text, asked.folder, asked.format, asked.status)
    page = version.contents.documents(document_filter, asked.limit, asked.cursor)
    return schemas.DocumentList(
        snapshot=version.snapshot.number, documents=page.items, total=page.total, next_cursor=page.next_cursor
    )


def describe_document(service: Service, asked: schemas.DescribeDocumentArguments, _: Call) -> schemas.DocumentResult:
    """Tell what a document holds, as many of its pages as there is room for.

    Raises:
        QueryError: There is no such document.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    number = version.snapshot.number
    start = _offset_of(asked.cursor, number)
    document = version.contents.document(asked.document_id)
    if document is None:
        raise QueryError(f"there is no document {asked.document_id}; see list_documents")
    pages = [replace(page, summary=_short(page.summary, _SUMMARY_CHARS)) for page in document.pages[start:]]
    part = _fitting(pages, _RESULT_CHARS // 2)
    return schemas.DocumentResult(
        snapshot=number,
        document=document.entry,
        summary=_short(document.summary, _PAGE_CHARS // 4),
        facets=document.facets,
        failures=[replace(failure, message=_short(failure.message, 500)) for failure in document.failures[:_FAILURES]],
        pages=part,
        next_cursor=_cursor_at(number, start + len(part), len(document.pages)),
    )


def explore_community(service: Service, asked: schemas.ExploreCommunityArguments, _: Call) -> schemas.CommunityResult:
    """List communities, or look into one.

    Raises:
        QueryError: There is no entity graph, or no such community.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    graph, number = version.contents.graph, version.snapshot.number
    levels = graph.levels()
    if not levels:
        raise QueryError(f"this knowledge base has no entity graph: {HOW_TO_INDEX}")
    counts = [schemas.LevelCount(level=level, communities=count) for level, count in levels.items()]
    if asked.community_id is None:
        page = graph.communities(asked.level, None, asked.limit, asked.cursor)
        return schemas.CommunityResult(
            snapshot=number,
            levels=counts,
            communities=page.items,
            details=None,
            total=page.total,
            next_cursor=page.next_cursor,
        )
    start = _offset_of(asked.cursor, number)
    stop = start + asked.limit
    community = graph.community(asked.community_id, stop, _EDGES)
    if community is None:
        raise QueryError(f"there is no community {asked.community_id}; call explore_community without an id")
    size = community.entry.size
    return schemas.CommunityResult(
        snapshot=number,
        levels=counts,
        communities=[],
        details=_details(community, start),
        total=size,
        next_cursor=_cursor_at(number, stop, size) if len(community.members) == stop else None,
    )


def run_sql(service: Service, asked: schemas.SqlArguments, _: Call) -> schemas.SqlRows:
    """Run a query; rows that there is no room for are left to the next call.

    Raises:
        QueryError: The query is refused, wrong, or took more than it may.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    number = version.snapshot.number
    start = _offset_of(asked.cursor, number)
    result = service.sql.run(version.snapshot, asked.query, start + asked.limit)
    rows = [[_cell(value) for value in row] for row in result.rows[start:]]
    part = _fitting(rows, _RESULT_CHARS - 100 * len(result.columns))
    stop = start + len(part)
    complete = result.complete and stop >= len(result.rows)
    return schemas.SqlRows(
        snapshot=number,
        columns=result.columns,
        rows=part,
        complete=complete,
        next_cursor=_cursor_at(number, stop, service.sql.limits.rows) if part and not complete else None,
    )


def list_tables(_: Service, asked: schemas.ListTablesArguments, __: Call) -> schemas.TableList:
    """List the tables and views of SQL; what columns hold is told of one table only.

    Raises:
        QueryError: There is no such table.
    """
    tables = sql_tables()
    if asked.table is not None:
        tables = tuple(table for table in tables if table.name == asked.table.strip().lower())
        if not tables:
            raise QueryError(f"there is no table {asked.table}; call list_tables without a table")
        return schemas.TableList(tables=tables)
    return schemas.TableList(
        tables=[
            replace(table, columns=tuple(replace(column, description="") for column in table.columns))
            for table in tables
        ]
    )


def _details(community: CommunityContents, start: int) -> schemas.CommunityDetails:
    names = {member.entity_id: member.name for member in community.members}
    report = None
    if community.report and not start:
        findings = [
            replace(finding, explanation=_short(finding.explanation, _CELL_CHARS))
            for finding in community.report.findings
        ]
        explanation = community.report.rating_explanation
        report = _result(
            schemas.CommunityReport, community.report.entry, rating_explanation=explanation, findings=findings
        )
    return schemas.CommunityDetails(
        community=community.entry,
        report=report,
        parts=community.parts[:_PARTS] if not start else (),
        members=community.members[start:],
        relationships=[
            schemas.NamedRelationship(
                source=names[edge.source_id],
                target=names[edge.target_id],
                description=_short(edge.description, _SUMMARY_CHARS // 2),
                weight=edge.weight,
            )
            for edge in community.edges
        ],
    )


def _result(kind: type[_R], source: object, **fields: object) -> _R:
    """A result whose fields are those of a value by the same names, and others."""
    return kind.model_validate({**vars(source), **fields})


def _placed(kind: type[_R], citation: Citation, **fields: object) -> _R:
    """A result that is a `schemas.Place`."""
    return _result(kind, citation, citation=citation.label, link=citation.link, **fields)


def _fitting(items: Sequence[_T], most_chars: int) -> list[_T]:
    """The first items that there is room for, at least one where there is any."""
    first: list[_T] = []
    chars = 0
    for item in items:
        chars += len(adapter_of(type(item)).dump_json(item))
        if first and chars > most_chars:
            break
        first.append(item)
    return first


def _cursor_at(snapshot: int, offset: int, end: int) -> str | None:
    """A cursor: a place in a result over one published version; None at its end."""
    return f"{snapshot}.{offset}" if offset < end else None


def _offset_of(cursor: str | None, snapshot: int) -> int:
    """The place that a cursor names; 0 for none.

    Raises:
        QueryError: The cursor is none, or of another version.
    """
    if cursor is None:
        return 0
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise QueryError("the cursor is not one that this tool gave")
    if int(match[1]) != snapshot:
        raise QueryError("a new version was published since that part; begin again without the cursor")
    return int(match[2])


def _cell(value: object) -> JsonValue:
    """A value, cut where it is long."""
    if isinstance(value, str):
        return _short(value, _CELL_CHARS)
    if isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False)
        return _short(text, _CELL_CHARS) if len(text) > _NESTED_CHARS else cast("JsonValue", value)
    return cast("JsonValue", value)


def _short(text: _Text, most_chars: int) -> _Text:
    if text is None or len(text) <= most_chars:
        return text
    return f"{text[:most_chars]}… (+{len(text) - most_chars} characters)"


@dataclass(frozen=True)
class Tool(Generic[_A]):
    """A tool: its description is for agents, `title` for people; `work` names the threads in which it runs."""

    name: str
    title: str
    description: str
    arguments: type[_A]
    result: type[schemas.Result]
    work: Callable[[Service], WorkerThreads]
    run: Callable[[Service, _A, Call], schemas.Result]


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "search",
        "Search",
        "Find passages of the indexed files (Excel, PDF, Word, slides and others) for a question, words or a code. "
        "Gives text with citations to the page, the sheet and the cells, best first. Use this to gather evidence and "
        "answer in your own words; follow up with read_page to see what stands around a passage.",
        schemas.SearchArguments,
        schemas.PassageList,
        lambda service: service.searching,
        search,
    ),
    Tool(
        "ask",
        "Ask",
        "Answer one question from the indexed files. Every sentence names its sources and tells whether their words "
        "were found there; where the files do not say, `answered` is false. The answer is written by the language "
        "model of the knowledge base, or quoted where it has none. It takes longer than search; prefer search where "
        "you write yourself.",
        schemas.AskArguments,
        schemas.AskResult,
        lambda service: service.asking,
        ask,
    ),
    Tool(
        "read_page",
        "Read a page",
        "Read a page, sheet or slide of a document in reading order: headings, paragraphs, and tables with the numbers "
        "of their rows. Long pages come in parts. With `cells`, only that part of a sheet: give the `cell_range` of a "
        "citation to see it with its column headers.",
        schemas.ReadPageArguments,
        schemas.PageResult,
        lambda service: service.reading,
        read_page,
    ),
    Tool(
        "list_documents",
        "List documents",
        "List the indexed documents, or those whose id or title holds some words, or that lie in a folder. Use "
        "describe_document for what is in one, and sql for counts and other conditions.",
        schemas.ListDocumentsArguments,
        schemas.DocumentList,
        lambda service: service.reading,
        list_documents,
    ),
    Tool(
        "describe_document",
        "Describe a document",
        "Tell what a document holds: its summary, kind, pages by number and name with summaries, and what could not "
        "be read.",
        schemas.DescribeDocumentArguments,
        schemas.DocumentResult,
        lambda service: service.reading,
        describe_document,
    ),
    Tool(
        "explore_community",
        "Explore communities",
        "Walk the communities of the entity graph, from the coarsest level 0 to finer ones: groups of related people, "
        "systems, tables and terms, each with a report. Without `community_id` it lists them by level; with one it "
        "gives the report, the parts to go into, the members and their relationships. Use it for questions about the "
        "whole.",
        schemas.ExploreCommunityArguments,
        schemas.CommunityResult,
        lambda service: service.reading,
        explore_community,
    ),
    Tool(
        "sql",
        "Query by SQL",
        "Run one SELECT statement (DuckDB) over the published tables: counts, lists, joins over documents, pages, "
        "passages, entities, failures and costs. Call list_tables first. Nothing else than reading these tables is "
        "allowed, and time, memory and rows are limited.",
        schemas.SqlArguments,
        schemas.SqlRows,
        lambda service: service.querying,
        run_sql,
    ),
    Tool(
        "list_tables",
        "List tables",
        "List the tables and views that sql can read, with their columns; with `table`, what each column holds.",
        schemas.ListTablesArguments,
        schemas.TableList,
        lambda service: service.reading,
        list_tables,
    ),
)
