"""The tools that read what is published: documents, pages, communities, SQL. They run in threads."""

import json
from dataclasses import replace
from typing import TypeVar, cast

from pydantic import JsonValue

from rag_assets.contracts.errors import QueryError
from rag_assets.query.contents.documents import DocumentFilter
from rag_assets.query.contents.graph import CommunityContents
from rag_assets.query.contents.pages import parse_area
from rag_assets.query.search.graph_local import HOW_TO_INDEX
from rag_assets.serve.mcp import schemas
from rag_assets.serve.mcp.calls import RESULT_CHARS, cursor_at, fitting, offset_of
from rag_assets.serve.mcp.page_lines import page_lines, part_of
from rag_assets.serve.mcp.resources import PageAddress
from rag_assets.serve.service import Service
from rag_assets.serve.sql.reader import sql_tables

PAGE_CHARS = 20_000
_SUMMARY_CHARS = 400
_CELL_CHARS = 2000
_NESTED_CHARS = 5000
_EDGES = 50
_PARTS = 100
_FAILURES = 20

_Text = TypeVar("_Text", str, str | None)


def read_page(service: Service, asked: schemas.ReadPageArguments) -> schemas.PageResult:
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
    start = offset_of(asked.cursor, number)
    held = page_lines(version.contents, asked.document_id, asked.page_number, area)
    if held is None:
        raise QueryError(f"there is no page {asked.page_number} of {asked.document_id}; see list_documents")
    page, lines = held.page, held.lines
    if area is not None and not lines:
        raise QueryError(f"nothing stands in the cells {asked.cells} of page {asked.page_number}")
    blocks, stop = part_of(lines, start, PAGE_CHARS)
    return schemas.PageResult(
        snapshot=number,
        document_id=page.document_id,
        title=page.title,
        format=page.format,
        page_number=page.page_number,
        page_count=page.page_count,
        page_name=page.page_name,
        kind=page.kind,
        hidden=page.hidden,
        summary=page.summary if start == 0 and area is None else None,
        uri=str(PageAddress(page.document_id, page.page_number)),
        blocks=blocks,
        next_cursor=cursor_at(number, stop, len(lines)),
    )


def list_documents(service: Service, asked: schemas.ListDocumentsArguments) -> schemas.DocumentList:
    """List documents.

    Raises:
        QueryError: The cursor is none.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    wanted = DocumentFilter(asked.text, asked.folder, asked.format, asked.status)
    listed = version.contents.documents(wanted, asked.limit, asked.cursor)
    return schemas.DocumentList(
        snapshot=version.snapshot.number, documents=listed.items, total=listed.total, next_cursor=listed.next_cursor
    )


def describe_document(service: Service, asked: schemas.DescribeDocumentArguments) -> schemas.DocumentResult:
    """Tell what a document holds, as many of its pages as there is room for.

    Raises:
        QueryError: There is no such document.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    number = version.snapshot.number
    start = offset_of(asked.cursor, number)
    document = version.contents.document(asked.document_id)
    if document is None:
        raise QueryError(f"there is no document {asked.document_id}; see list_documents")
    pages = [replace(page, summary=_short(page.summary, _SUMMARY_CHARS)) for page in document.pages[start:]]
    part = fitting(pages, RESULT_CHARS // 2)
    return schemas.DocumentResult(
        snapshot=number,
        document=document.entry,
        summary=_short(document.summary, PAGE_CHARS // 4),
        facets=document.facets,
        failures=[replace(each, message=_short(each.message, 500)) for each in document.failures[:_FAILURES]],
        pages=part,
        next_cursor=cursor_at(number, start + len(part), len(document.pages)),
    )


def explore_community(service: Service, asked: schemas.ExploreCommunityArguments) -> schemas.CommunityResult:
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
        listed = graph.communities(asked.level, None, asked.limit, asked.cursor)
        return schemas.CommunityResult(
            snapshot=number,
            levels=counts,
            communities=listed.items,
            details=None,
            total=listed.total,
            next_cursor=listed.next_cursor,
        )
    start = offset_of(asked.cursor, number)
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
        next_cursor=cursor_at(number, stop, size) if len(community.members) == stop else None,
    )


def run_sql(service: Service, asked: schemas.SqlArguments) -> schemas.SqlRows:
    """Run a query; rows that there is no room for are left to the next call.

    Raises:
        QueryError: The query is refused, wrong, or took more than it may.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    version = service.current()
    number = version.snapshot.number
    start = offset_of(asked.cursor, number)
    result = service.sql.run(version.snapshot, asked.query, start + asked.limit)
    rows = [[_cell(value) for value in row] for row in result.rows[start:]]
    part = fitting(rows, RESULT_CHARS - 100 * len(result.columns))
    stop = start + len(part)
    complete = result.complete and stop >= len(result.rows)
    return schemas.SqlRows(
        snapshot=number,
        columns=result.columns,
        rows=part,
        complete=complete,
        next_cursor=cursor_at(number, stop, service.sql.limits.rows) if part and not complete else None,
    )


def list_tables(_: Service, asked: schemas.ListTablesArguments) -> schemas.TableList:
    """List the tables and views of SQL; what columns hold is told of one table only.

    Raises:
        QueryError: There is no such table.
    """
    tables = sql_tables()
    if asked.table is not None:
        tables = tuple(each for each in tables if each.name == asked.table.strip().lower())
        if not tables:
            raise QueryError(f"there is no table {asked.table}; call list_tables without a table")
        return schemas.TableList(tables=tables)
    return schemas.TableList(
        tables=[
            replace(each, columns=tuple(replace(column, description="") for column in each.columns)) for each in tables
        ]
    )


def _details(community: CommunityContents, start: int) -> schemas.CommunityDetails:
    names = {member.entity_id: member.name for member in community.members}
    report = community.report
    return schemas.CommunityDetails(
        community=community.entry,
        report=schemas.CommunityReport(
            title=report.entry.title,
            summary=report.entry.summary,
            rating=report.entry.rating,
            rating_explanation=report.rating_explanation,
            findings=[replace(each, explanation=_short(each.explanation, _CELL_CHARS)) for each in report.findings],
        )
        if report and not start
        else None,
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
