"""Mode `two_step`: summaries choose the files or pages, then their passages are searched.

Several vectors for one document, as in LangChain's MultiVectorRetriever (summaries), searched in two steps: one summary
format, then the passages of the files or pages found. Each step searches by meaning and by words (`search_both`). What
the first step found counts in the second: a passage has the sum of its own score and that of the summary which led to
it, so that meaning and words of both have equal weight.
"""

import time
from dataclasses import replace

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.query.results import TraceRecorder
from rag_assets.query.search.fusion import comb_sum, ranked
from rag_assets.query.search.hybrid import CANDIDATES, search_both
from rag_assets.query.search.index import Candidate, scored
from rag_assets.query.search.request import Indexes, Request
from rag_assets.store.vectors.store import sql_in

CHOSEN = {SummaryFormat.FILE: 10, SummaryFormat.PAGE: 30}


def search_two_step(request: Request, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling sum of the scores of summary and passage, at most 4.

    Raises:
        QueryError: There are no summaries.
    """
    summaries, chunks = indexes.summaries, indexes.chunks
    if summaries is None or summaries.row_count == 0:
        raise QueryError("mode two_step needs summaries, and none are indexed")
    wanted = _both(sql_in("content_format", [request.summaries]), request.filters.to_sql(summaries.columns))
    chosen = search_both(summaries, request.text, request.embedding, wanted, CANDIDATES, trace)
    chosen = chosen[: CHOSEN[request.summaries]]
    if not chosen:
        return []
    by_file = request.summaries is SummaryFormat.FILE
    places = {each.document_id if by_file else each.page_id or "": each.score for each in chosen}
    where = _both(sql_in("document_id" if by_file else "page_id", places), request.filters.to_sql(chunks.columns))
    depth = max(CANDIDATES, request.depth)
    passages = search_both(chunks, request.text, request.embedding, where, depth, trace)
    began = time.perf_counter()
    found = {each.key: each for each in passages}
    own = {each.key: each.score for each in passages}
    led = {each.key: places[each.document_id if by_file else each.page_id or ""] for each in passages}
    fused = [replace(found[key], score=score) for key, score in ranked(comb_sum([own, led]))]
    trace.add("fuse", began, len(fused), rescored=scored(fused, [own, led]))
    return fused


def _both(condition: str, other: str | None) -> str:
    return f"{condition} AND {other}" if other else condition
