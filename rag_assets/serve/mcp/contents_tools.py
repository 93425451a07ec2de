"""The tools that read what is published: documents, pages, communities, SQL. They run in threads."""

import json
from typing import cast

from pydantic import JsonValue

from rag_assets.contracts.errors import QueryError
from rag_assets.query.contents.documents import DocumentEntry, DocumentFilter
from rag_assets.query.contents.graph import CommunityContents, CommunityEntry, GraphContents
from rag_assets.query.contents.pages import parse_area
from rag_assets.query.search.graph_local import HOW_TO_INDEX
from rag_assets.serve.mcp import schemas as forms
from rag_assets.serve.mcp.addresses import PageAddress
from rag_assets.serve.mcp.following import Following
from rag_assets.serve.mcp.page_lines import page_lines, part_of
from rag_assets.serve.mcp.parts import RESULT_CHARS, fitting, offset_of, written_cursor
from rag_assets.serve.service import Service
from rag_assets.serve.sql.reader import SqlColumn, sql_tables

PAGE_CHARS = 20_000
_SUMMARY_CHARS = 400
_CELL_CHARS = 2000
_NESTED_CHARS = 5000
_EDGES = 50
_PARTS = 100


def read_page(service: Service, asked: forms.ReadPageArguments, following: Following) -> forms.PageResult:
    """Read a part of a page.

    Raises:
        QueryError: There is no such page, or nothing in these cells.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    del following
    version = service.current()
    area = parse_area(asked.cells)
    if asked.cells is not None and area is None:
        raise QueryError(f"cells: expected cells as in B4:F20, found {asked.cells!r}")
    start = offset_of(asked.cursor, version.snapshot.number)
    found = page_lines(version.contents, asked.document_id, asked.page_number, area)
    if found is None:
        raise QueryError(f"there is no page {asked.page_number} of {asked.document_id}; see list_documents")
    page, lines = found.page, found.lines
    if area is not None and not lines:
        raise QueryError(f"nothing stands in the cells {asked.cells} of page {asked.page_number}")
    blocks, stop = part_of(lines, start, PAGE_CHARS)
    return forms.PageResult(
        snapshot=version.snapshot.number,
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
        next_cursor=written_cursor(version.snapshot.number, stop) if stop < len(lines) else None,
    )


def list_documents(service: Service, asked: forms.ListDocumentsArguments, following: Following) -> forms.DocumentList:
    """List documents.

    Raises:
        QueryError: The cursor is none.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    del following
    version = service.current()
    wanted = DocumentFilter(asked.text, asked.folder, asked.format, asked.status)
    found = version.contents.documents(wanted, asked.limit, asked.cursor)
    return forms.DocumentList(
        snapshot=version.snapshot.number,
        documents=[_document(entry) for entry in found.items],
        total=found.total,
        next_cursor=found.next_cursor,
    )


def describe_document(
    service: Service, asked: forms.DescribeDocumentArguments, following: Following
) -> forms.DocumentResult:
    """Tell what a document holds, as many of its pages as there is room for.

    Raises:
        QueryError: There is no such document.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    del following
    version = service.current()
    start = offset_of(asked.cursor, version.snapshot.number)
    found = version.contents.document(asked.document_id)
    if found is None:
        raise QueryError(f"there is no document {asked.document_id}; see list_documents")
    pages = [
        forms.PageLine(
            page_number=page.page_number,
            page_name=page.page_name,
            kind=page.kind,
            hidden=page.hidden,
            length_chars=page.length_chars,
            summary=_short(page.summary, _SUMMARY_CHARS) if page.summary else None,
        )
        for page in found.pages[start:]
    ]
    given = fitting(pages, RESULT_CHARS // 2)
    stop = start + len(given)
    return forms.DocumentResult(
        snapshot=version.snapshot.number,
        document=_document(found.entry),
        summary=_short(found.summary, PAGE_CHARS // 4) if found.summary else None,
        facets=[forms.FacetValue(facet=each.facet, value=each.value) for each in found.facets],
        failures=[
            forms.FailureLine(page_number=each.page_number, cause=each.cause, message=_short(each.message, 500))
            for each in found.failures[:20]
        ],
        pages=given,
        next_cursor=written_cursor(version.snapshot.number, stop) if stop < len(found.pages) else None,
    )


def explore_community(
    service: Service, asked: forms.ExploreCommunityArguments, following: Following
) -> forms.CommunityResult:
    """List communities, or look into one.

    Raises:
        QueryError: There is no entity graph, or no such community.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    del following
    version = service.current()
    graph, number = version.contents.graph, version.snapshot.number
    levels = graph.levels()
    if not levels:
        raise QueryError(f"this knowledge base has no entity graph: {HOW_TO_INDEX}")
    counts = [forms.LevelCount(level=level, communities=count) for level, count in levels.items()]
    if asked.community_id is None:
        listed = graph.communities(asked.level, None, asked.limit, asked.cursor)
        return forms.CommunityResult(
            snapshot=number,
            levels=counts,
            communities=[_community(entry) for entry in listed.items],
            details=None,
            total=listed.total,
            next_cursor=listed.next_cursor,
        )
    start = offset_of(asked.cursor, number)
    found = _found(graph, asked.community_id, start + asked.limit)
    stop = start + asked.limit
    return forms.CommunityResult(
        snapshot=number,
        levels=counts,
        communities=[],
        details=_details(found, start),
        total=found.entry.size,
        next_cursor=written_cursor(number, stop) if stop < found.entry.size and len(found.members) == stop else None,
    )


def run_sql(service: Service, asked: forms.SqlArguments, following: Following) -> forms.SqlRows:
    """Run a query; rows that there is no room for are left to the next call.

    Raises:
        QueryError: The query is refused, wrong, or took more than it may.
        RagAssetsError: Nothing is published, or a stored file is damaged.
    """
    del following
    version = service.current()
    number = version.snapshot.number
    start = offset_of(asked.cursor, number)
    found = service.sql.run(version.snapshot, asked.query, start + asked.limit)
    rows = [[_cell(value) for value in row] for row in found.rows[start:]]
    given = fitting([_Row(values=row) for row in rows], RESULT_CHARS - 100 * len(found.columns))
    stop = start + len(given)
    complete = found.complete and stop >= len(found.rows)
    within = stop < service.sql.limits.rows
    return forms.SqlRows(
        snapshot=number,
        columns=[_column(column) for column in found.columns],
        rows=[row.values for row in given],
        complete=complete,
        next_cursor=written_cursor(number, stop) if given and not complete and within else None,
    )


def list_tables(service: Service, asked: forms.ListTablesArguments, following: Following) -> forms.TableList:
    """List the tables and views of SQL.

    Raises:
        QueryError: There is no such table.
    """
    del service, following
    wanted = asked.table.strip().lower() if asked.table is not None else None
    tables = [
        forms.TableDescription(
            name=table.name,
            description=table.description,
            columns=[_column(column, described=wanted is not None) for column in table.columns],
        )
        for table in sql_tables()
        if wanted in {None, table.name}
    ]
    if not tables:
        raise QueryError(f"there is no table {asked.table}; call list_tables without a table")
    return forms.TableList(tables=tables)


class _Row(forms.Result):
    values: list[JsonValue]


def _document(entry: DocumentEntry) -> forms.Document:
    return forms.Document(
        document_id=entry.document_id,
        title=entry.title,
        format=entry.format,
        language=entry.language,
        status=entry.status,
        page_count=entry.page_count,
        length_chars=entry.length_chars,
        modified_at=entry.modified_at.isoformat() if entry.modified_at else None,
        failure_cause=entry.failure_cause,
    )


def _community(entry: CommunityEntry) -> forms.Community:
    return forms.Community(
        community_id=entry.community_id,
        level=entry.level,
        parent_id=entry.parent_id,
        size=entry.size,
        title=entry.title,
        rating=entry.rating,
    )


def _found(graph: GraphContents, community_id: str, members: int) -> CommunityContents:
    found = graph.community(community_id, members, _EDGES)
    if found is None:
        raise QueryError(f"there is no community {community_id}; call explore_community without an id")
    return found


def _details(found: CommunityContents, start: int) -> forms.CommunityDetails:
    names = {member.entity_id: member.name for member in found.members}
    report = found.report
    return forms.CommunityDetails(
        community=_community(found.entry),
        report=forms.Report(
            title=report.entry.title,
            summary=report.entry.summary,
            rating=report.entry.rating,
            rating_explanation=report.rating_explanation,
            findings=[
                forms.ReportFinding(summary=each.summary, explanation=_short(each.explanation, _CELL_CHARS))
                for each in report.findings
            ],
        )
        if report and not start
        else None,
        parts=[_community(entry) for entry in found.parts[:_PARTS]] if not start else [],
        members=[
            forms.Member(
                entity_id=member.entity_id,
                name=member.name,
                type=member.type,
                mention_count=member.mention_count,
                degree=member.degree,
            )
            for member in found.members[start:]
        ],
        relationships=[
            forms.Relationship(
                source=names[edge.source_id],
                target=names[edge.target_id],
                description=_short(edge.description, _SUMMARY_CHARS // 2),
                weight=edge.weight,
            )
            for edge in found.edges
        ],
    )


def _column(column: SqlColumn, *, described: bool = False) -> forms.Column:
    return forms.Column(name=column.name, type=column.type, description=column.description if described else "")


def _cell(value: object) -> JsonValue:
    """A value, cut where it is long."""
    if isinstance(value, str):
        return _short(value, _CELL_CHARS)
    if isinstance(value, list | dict):
        written = json.dumps(value, ensure_ascii=False)
        return _short(written, _CELL_CHARS) if len(written) > _NESTED_CHARS else cast("JsonValue", value)
    return cast("JsonValue", value)


def _short(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    return f"{text[:most_chars]}… (+{len(text) - most_chars} characters)"
