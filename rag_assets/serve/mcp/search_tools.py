"""The tools `search` and `ask`. They run in threads."""

from collections.abc import Generator
from contextlib import closing

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.ports import Turn
from rag_assets.query.ask.answers import Answer, Answered, AnswerEvent, EvidenceFound, TextPiece
from rag_assets.query.ask.report_levels import LevelChoice
from rag_assets.query.filters import parse_filters
from rag_assets.query.published import OpenVersion
from rag_assets.query.results import Citation, Trace
from rag_assets.serve.mcp import schemas as forms
from rag_assets.serve.mcp.following import Following
from rag_assets.serve.mcp.parts import RESULT_CHARS, fitting, offset_of, written_cursor
from rag_assets.serve.service import Service, Timed

_PASSAGE_CHARS = 4000
_SOURCES_CHARS = 20_000  # of all sources together
_SOURCE_CHARS = 1200


def search(service: Service, asked: forms.SearchArguments, following: Following) -> forms.SearchResult:
    """Search; what there is no room for is left to the next call.

    Raises:
        RagAssetsError: See `KnowledgeBase.search`.
    """
    version = service.current()
    start = offset_of(asked.cursor, version.snapshot.number)
    mode = asked.mode or service.options.mode
    with Timed(service.metrics, mode, "search"):
        found = version.base.search(
            asked.query,
            mode,
            asked.limit,
            parse_filters(asked.filters),
            granularity=asked.granularity,
            levels=_levels(service, asked.level),
            cancellation=following.cancellation,
        )
    passages = [
        forms.Passage(
            **_place(hit.citation),
            rank=hit.rank,
            score=hit.score,
            title=hit.title,
            chunk_id=hit.chunk_id,
            text=hit.text[:_PASSAGE_CHARS],
            cut=len(hit.text) > _PASSAGE_CHARS,
        )
        for hit in found.hits[start:]
    ]
    given = fitting(passages, RESULT_CHARS)
    stop = start + len(given)
    return forms.SearchResult(
        snapshot=version.snapshot.number,
        mode=found.mode,
        passages=given,
        next_cursor=written_cursor(version.snapshot.number, stop) if stop < len(found.hits) else None,
        calls=_calls(found.trace),
    )


def ask(service: Service, asked: forms.AskArguments, following: Following) -> forms.AskResult:
    """Answer; ends early where nobody waits any more.

    Raises:
        RagAssetsError: See `KnowledgeBase.ask`.
    """
    version = service.current()
    mode = asked.mode or service.options.ask_mode
    with Timed(service.metrics, mode, "ask"):
        events = version.base.ask_stream(
            asked.question,
            mode,
            asked.limit,
            parse_filters(asked.filters),
            history=[Turn(turn.question, turn.answer) for turn in asked.history],
            levels=_levels(service, asked.level),
            cancellation=following.cancellation,
        )
        return _told(_followed(events, following), version)


def _levels(service: Service, level: int | None) -> LevelChoice:
    default = service.options.levels
    return default if level is None else LevelChoice(level, default.dynamic)


def _followed(events: Generator[AnswerEvent, None, None], following: Following) -> Answer:
    written = 0
    with closing(events):
        for event in events:
            match event:
                case Answered(answer):
                    return answer
                case EvidenceFound(hits):
                    following.tell(f"{len(hits)} passages found")
                case TextPiece(text):
                    written += len(text)
                    following.tell(f"{written} characters written")
    raise QueryError("there is no answer")


def _told(answer: Answer, version: OpenVersion) -> forms.AskResult:
    cited = answer.cited()
    most = min(_SOURCE_CHARS, _SOURCES_CHARS // max(1, len(cited)))
    return forms.AskResult(
        snapshot=version.snapshot.number,
        mode=answer.mode,
        answered=answer.answered,
        answer=answer.text,
        sentences=[
            forms.AnswerSentence(
                text=sentence.text,
                supported=sentence.supported,
                unfounded=list(sentence.unfounded),
                citations=[
                    forms.Cited(number=each.number, quote=each.quote, supported=each.supported)
                    for each in sentence.citations
                ],
            )
            for sentence in answer.sentences
        ],
        sources=[
            forms.AnswerSource(
                **_place(source.citation),
                number=source.number,
                text=source.text[:most],
                cut=len(source.text) > most,
            )
            for source in cited
        ],
        model=answer.model,
        failure=answer.failure,
        calls=_calls(answer.trace),
    )


def _calls(trace: Trace) -> list[forms.Call]:
    return [
        forms.Call(
            step=call.step,
            model=call.model,
            outcome=call.outcome,
            stored=call.cached,
            input_tokens=call.input_tokens + call.cached_tokens,
            output_tokens=call.output_tokens,
            cost_usd=call.cost_usd,
        )
        for call in trace.calls
    ]


def _place(citation: Citation) -> forms.PlaceFields:
    return {
        "citation": str(citation),
        "link": citation.link(),
        "document_id": citation.document_id,
        "page_number": citation.page_number,
        "page_name": citation.page_name,
        "cell_range": citation.cell_range,
    }
