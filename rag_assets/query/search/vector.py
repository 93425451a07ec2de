"""Mode `vector`: passages by similarity of their embeddings with the query's."""

from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.request import Indexes, Request


def search_vector(request: Request, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling cosine."""
    chunks = indexes.chunks
    return chunks.nearest(
        request.embedding, request.filters.to_sql(chunks.columns), request.depth, trace, show=request.show_all
    )
