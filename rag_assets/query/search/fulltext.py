"""Mode `fulltext`: passages by the words and character pairs that they share with the query (BM25)."""

from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.request import Indexes, Request


def search_fulltext(request: Request, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling BM25; those that share no term are left out."""
    chunks = indexes.chunks
    return chunks.matching(
        request.text, request.filters.to_sql(chunks.columns), request.depth, trace, show=request.show_all
    )
