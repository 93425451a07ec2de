"""Mode `two_step`: summaries choose the files or pages, then their passages are searched.

Several vectors for one document, as in LangChain's MultiVectorRetriever (summaries), searched in two steps: similarity
over one summary format, then similarity over the passages of the files or pages found.
"""

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.query.index import Candidate
from rag_assets.query.request import Indexes, Request
from rag_assets.query.results import TraceRecorder
from rag_assets.store.vectors import sql_in

CHOSEN = {SummaryFormat.FILE: 10, SummaryFormat.PAGE: 30}


def search_two_step(request: Request, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling cosine, out of the files or pages whose summaries are nearest.

    Raises:
        QueryError: There are no summaries.
    """
    summaries, chunks = indexes.summaries, indexes.chunks
    if summaries is None or summaries.row_count == 0:
        raise QueryError("mode two_step needs summaries, and none are indexed")
    chosen = summaries.nearest(
        request.embedding,
        _both(sql_in("content_format", [request.summaries]), request.filters.to_sql(summaries.columns)),
        CHOSEN[request.summaries],
        trace,
    )
    if request.summaries is SummaryFormat.FILE:
        places = sql_in("document_id", dict.fromkeys(summary.document_id for summary in chosen))
    else:
        places = sql_in("page_id", [summary.page_id for summary in chosen if summary.page_id is not None])
    where = _both(places, request.filters.to_sql(chunks.columns))
    return chunks.nearest(request.embedding, where, request.depth, trace, show=request.show_all) if chosen else []


def _both(condition: str, other: str | None) -> str:
    return f"{condition} AND {other}" if other else condition
