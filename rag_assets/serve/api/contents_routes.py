"""Routes that read what is published: documents, pages, the entity graph, reports, costs, and SQL."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from starlette.responses import Response

from rag_assets.query.contents.contents import (
    ROW_LIMIT,
    Contents,
    Cost,
    DocumentContents,
    DocumentEntry,
    DocumentFilter,
    Health,
)
from rag_assets.query.contents.cursors import LIST_LIMIT, Listed
from rag_assets.query.contents.graph import (
    COMMUNITY_LIMIT,
    EDGE_LIMIT,
    MEMBER_LIMIT,
    CommunityContents,
    CommunityEntry,
    EntityContents,
    EntityEntry,
    ReportContents,
    ReportEntry,
)
from rag_assets.query.contents.pages import PageContents
from rag_assets.serve.api.routing import check_parameters, json_response, note, read, version_header
from rag_assets.serve.problems import FieldProblem, Problem
from rag_assets.serve.requests import SqlRequest
from rag_assets.serve.service import Service
from rag_assets.serve.sql.reader import SqlResult, SqlTable, sql_tables
from rag_assets.text.cells import parse_area

_MAX_INTEGER = (1 << 31) - 1
Text = Annotated[str, Query(max_length=1000)]
Limit = Annotated[int, Query(ge=1, le=500, description="How many to give, at most.")]
Cursor = Annotated[str | None, Query(max_length=4000, description="`next_cursor` of the part before.")]
DocumentId = Annotated[str, Path(max_length=4000, description="As in `specs/a.xlsx`.")]
PageNumber = Annotated[int, Path(ge=1, le=_MAX_INTEGER)]
Identifier = Annotated[str, Path(max_length=200)]
Level = Annotated[int | None, Query(ge=0, le=_MAX_INTEGER)]
_NO_DOCUMENT, _NO_PAGE = "there is no such document", "there is no such page"


def contents_router(service: Service, prefix: str) -> APIRouter:
    """The routes, whose paths begin with the prefix."""
    router = APIRouter(prefix=prefix, dependencies=[Depends(check_parameters)])
    _add_documents(router, service)
    _add_graph(router, service)
    _add_sql(router, service)

    @router.get("/status", response_model=Health, tags=["operation"], summary="The state of the published version")
    async def status() -> Response:
        return await read(service, Health, Contents.health)

    @router.get(
        "/costs", response_model=tuple[Cost, ...], tags=["operation"], summary="What language models cost so far"
    )
    async def costs() -> Response:
        return await read(service, tuple[Cost, ...], Contents.costs)

    return router


def _add_documents(router: APIRouter, service: Service) -> None:
    @router.get("/documents", response_model=Listed[DocumentEntry], tags=["documents"], summary="List documents")
    async def documents(
        text: Text = "",
        folder: Text = "",
        format: Annotated[str, Query(max_length=32)] = "",  # noqa: A002 - as the column is named
        status: Annotated[Literal["", "parsed", "failed", "unreadable"], Query()] = "",
        limit: Limit = LIST_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        document_filter = DocumentFilter(text, folder, format, status)
        return await read(
            service, Listed[DocumentEntry], lambda contents: contents.documents(document_filter, limit, cursor)
        )

    @router.get(
        "/documents/{document_id:id}", response_model=DocumentContents, tags=["documents"], summary="A document"
    )
    async def document(document_id: DocumentId) -> Response:
        return await read(service, DocumentContents, lambda contents: contents.document(document_id), _NO_DOCUMENT)

    @router.get(
        "/pages/{document_id:id}/{page_number}/image",
        response_class=Response,
        responses={200: {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}},
        tags=["documents"],
        summary="A page of a PDF file as a picture",
    )
    async def image(
        document_id: DocumentId, page_number: PageNumber, width: Annotated[int, Query(ge=100, le=3000)] = 1200
    ) -> Response:
        def action() -> Response:
            version = service.current()
            place = version.contents.place(document_id)
            if place is None:
                raise Problem(404, _NO_DOCUMENT)
            picture = None
            if place["format"] == "pdf":
                arguments = (place["uri"], place["source_name"], place["content_sha256"])
                picture = service.images.draw(*arguments, page_number, width)
            if picture is None:
                raise Problem(404, "there is no picture: the file is no PDF, is gone, has changed, or has no such page")
            headers = {"Cache-Control": "private, max-age=60", **version_header(version)}
            return Response(picture, media_type="image/png", headers=headers)

        return await service.drawing.run(action)

    @router.get(
        "/pages/{document_id:id}/{page_number}", response_model=PageContents, tags=["documents"], summary="A page"
    )
    async def page(
        document_id: DocumentId,
        page_number: PageNumber,
        row_limit: Annotated[int, Query(ge=0, le=100_000, description="Rows of tables, at most.")] = ROW_LIMIT,
        focus: Annotated[str | None, Query(max_length=100, description="Cells to include.")] = None,
    ) -> Response:
        if focus and parse_area(focus) is None:
            field, message = "query.focus", f"expected cells as in B4:F20, found {focus!r}"
            raise Problem(422, f"{field}: {message}", errors=(FieldProblem(field=field, message=message),))
        return await read(
            service,
            PageContents,
            lambda contents: contents.page(document_id, page_number, row_limit=row_limit, focus=focus),
            _NO_PAGE,
        )


def _add_graph(router: APIRouter, service: Service) -> None:
    @router.get("/entities", response_model=Listed[EntityEntry], tags=["graph"], summary="List or find entities")
    async def entities(
        text: Text = "",
        type: Annotated[str, Query(max_length=100)] = "",  # noqa: A002 - as the column is named
        limit: Limit = LIST_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        return await read(
            service, Listed[EntityEntry], lambda contents: contents.graph.entities(text, type, limit, cursor)
        )

    @router.get("/entities/{entity_id}", response_model=EntityContents, tags=["graph"], summary="An entity")
    async def entity(entity_id: Identifier) -> Response:
        return await read(
            service, EntityContents, lambda contents: contents.graph.entity(entity_id), "there is no such entity"
        )

    @router.get("/communities", response_model=Listed[CommunityEntry], tags=["graph"], summary="List communities")
    async def communities(
        level: Level = None,
        parent_id: Annotated[str | None, Query(max_length=200)] = None,
        limit: Limit = COMMUNITY_LIMIT,
        cursor: Cursor = None,
    ) -> Response:
        return await read(
            service,
            Listed[CommunityEntry],
            lambda contents: contents.graph.communities(level, parent_id, limit, cursor),
        )

    @router.get("/communities/{community_id}", response_model=CommunityContents, tags=["graph"], summary="A community")
    async def community(
        community_id: Identifier,
        members: Annotated[int, Query(ge=1, le=1000, description="Entities, at most.")] = MEMBER_LIMIT,
        edges: Annotated[int, Query(ge=0, le=5000, description="Relationships, at most.")] = EDGE_LIMIT,
    ) -> Response:
        return await read(
            service,
            CommunityContents,
            lambda contents: contents.graph.community(community_id, members, edges),
            "there is no such community",
        )

    @router.get("/reports", response_model=Listed[ReportEntry], tags=["graph"], summary="List community reports")
    async def reports(level: Level = None, limit: Limit = LIST_LIMIT, cursor: Cursor = None) -> Response:
        return await read(service, Listed[ReportEntry], lambda contents: contents.graph.reports(level, limit, cursor))

    @router.get("/reports/{community_id}", response_model=ReportContents, tags=["graph"], summary="A community report")
    async def report(community_id: Identifier) -> Response:
        return await read(
            service,
            ReportContents,
            lambda contents: contents.graph.report(community_id),
            "there is no report on such a community",
        )


def _add_sql(router: APIRouter, service: Service) -> None:
    @router.get(
        "/sql/tables", response_model=tuple[SqlTable, ...], tags=["sql"], summary="Tables and views that SQL can read"
    )
    async def tables() -> Response:
        return await read(service, tuple[SqlTable, ...], lambda _: sql_tables())

    @router.post("/sql", response_model=SqlResult, tags=["sql"], summary="Run one SELECT statement")
    async def sql(request: Request, asked: Annotated[SqlRequest, Body()]) -> Response:
        note(request, kind="sql")

        def action() -> Response:
            version = service.current()
            result = service.sql.run(version.snapshot, asked.query, asked.row_limit)
            return json_response(result, version)

        return await service.querying.run(action)
