"""The tools `search` and `ask`. They run in threads."""

from collections.abc import Generator
from contextlib import closing

from rag_assets.contracts.errors import QueryError
from rag_assets.query.ask.answers import Answer, Answered, AnswerEvent, EvidenceFound, TextPiece
from rag_assets.query.filters import parse_filters
from rag_assets.query.results import Citation
from rag_assets.serve.mcp import schemas
from rag_assets.serve.mcp.calls import RESULT_CHARS, Call, cursor_at, fitting, offset_of
from rag_assets.serve.requests import levels_of, turns_of
from rag_assets.serve.service import Service

_PASSAGE_CHARS = 4000
_SOURCES_CHARS = 20_000  # of all sources together
_SOURCE_CHARS = 1200


def search(service: Service, asked: schemas.SearchArguments, call: Call) -> schemas.PassageList:
    """Search; what there is no room for is left to the next call.

    Raises:
        RagAssetsError: See `KnowledgeBase.search`.
    """
    version, defaults = service.current(), service.options.defaults
    start = offset_of(asked.cursor, version.snapshot.number)
    mode = asked.mode or defaults.mode
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
        schemas.Passage(
            **_place(hit.citation),
            rank=hit.rank,
            score=hit.score,
            title=hit.title,
            chunk_id=hit.chunk_id,
            text=hit.text[:_PASSAGE_CHARS],
            cut=len(hit.text) > _PASSAGE_CHARS,
        )
        for hit in result.hits[start:]
    ]
    part = fitting(passages, RESULT_CHARS)
    return schemas.PassageList(
        snapshot=version.snapshot.number,
        mode=result.mode,
        passages=part,
        next_cursor=cursor_at(version.snapshot.number, start + len(part), len(result.hits)),
        calls=result.trace.calls,
    )


def ask(service: Service, asked: schemas.AskArguments, call: Call) -> schemas.AskResult:
    """Answer; ends early where nobody waits any more.

    Raises:
        RagAssetsError: See `KnowledgeBase.ask`.
    """
    version, defaults = service.current(), service.options.defaults
    mode = asked.mode or defaults.ask_mode
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
        answer = _answer_of(events, call)
    cited = answer.cited()
    most = min(_SOURCE_CHARS, _SOURCES_CHARS // max(1, len(cited)))
    return schemas.AskResult(
        snapshot=version.snapshot.number,
        mode=answer.mode,
        answered=answer.answered,
        answer=answer.text,
        sentences=answer.sentences,
        sources=[
            schemas.AnswerSource(
                **_place(source.citation),
                number=source.number,
                text=source.text[:most],
                cut=len(source.text) > most,
            )
            for source in cited
        ],
        model=answer.model,
        failure=answer.failure,
        calls=answer.trace.calls,
    )


def _answer_of(events: Generator[AnswerEvent, None, None], call: Call) -> Answer:
    chars = 0
    with closing(events):
        for event in events:
            match event:
                case Answered(answer):
                    return answer
                case EvidenceFound(hits):
                    call.report(f"{len(hits)} passages found")
                case TextPiece(text):
                    chars += len(text)
                    call.report(f"{chars} characters written")
    raise QueryError("there is no answer")


def _place(citation: Citation) -> schemas.PlaceFields:
    return {
        "citation": citation.label,
        "link": citation.link,
        "document_id": citation.document_id,
        "page_number": citation.page_number,
        "page_name": citation.page_name,
        "cell_range": citation.cell_range,
    }
