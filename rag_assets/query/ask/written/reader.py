"""The reader: a language model that answers a question from numbered sources, sentence by sentence with quotes.

It always gets the question as asked, whatever was searched for. It answers in JSON, so that every quote can be checked;
what people see while it writes is read out of the unfinished JSON.

Source: a reader that sees the original question: X. Ma and others, Query rewriting for retrieval-augmented large
language models, EMNLP 2023. Records of title, question and answer, widened queries and examples: L. Mombaerts and
others, Meta knowledge for retrieval augmented large language models, 2024; deviation: records hold the passage, too.

What stays out: how sources are chosen (`rag_assets.query.ask.evidence`) and checked
(`rag_assets.query.ask.written.checking`).
"""

import json
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel, Session, Turn
from rag_assets.models.dispatch import answers
from rag_assets.models.prompts import fenced
from rag_assets.query.ask.answers import Source
from rag_assets.query.ask.evidence import sources_text
from rag_assets.query.ask.written.checking import text_so_far
from rag_assets.query.prompting import (
    NOTHING,
    QUERY_TOKENS,
    REMEMBERED_TURNS,
    TURN_TOKENS,
    conversation,
    fenced_query,
    prompted,
)
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

PASSAGES_STEP = "answer_from_passages"
QUESTIONS_STEP = "answer_from_questions"

_SENTENCES = 12
_CITATIONS = 3
_QUOTE_CHARS = 100
_SENTENCE_CHARS = 400
_SLACK = 2  # texts may be this many times longer than asked for
_PROMPT_TOKENS = 1400  # system text and form of the question
_LEAST_TOKENS = 256
_ANSWERED: Mapping[str, JsonValue] = {"answered": {"type": "boolean"}}


@dataclass(frozen=True)
class AskedQuestion:
    """A question with what is known of it."""

    question: str  # as asked
    language: str  # of the prompts
    history: tuple[Turn, ...] = ()  # the conversation before the question
    searched: str = ""  # what was searched for in its place, with what it refers to; empty where that is the question

    @property
    def tokens(self) -> int:
        """Tokens that it takes in a request, at most."""
        texts = (estimate_tokens(self.question), estimate_tokens(self.searched))
        turns = len(self.history[-REMEMBERED_TURNS:]) * 2 * TURN_TOKENS
        return sum(min(QUERY_TOKENS, text) for text in texts) + turns

    def fenced(self) -> dict[str, str]:
        """Its parts between tags, by their placeholders in the prompts that read a whole collection."""
        return {
            "conversation": fenced(conversation(self.history), "conversation"),
            "searched": fenced(cut_to_tokens(self.searched, QUERY_TOKENS) or NOTHING, "searched"),
            "query": fenced_query(self.question),
        }


@dataclass(frozen=True)
class ReaderOptions:
    """How answers are written."""

    context_tokens: int  # tokens of evidence, be it passages, reports or partial answers, in one request
    answer_tokens: int  # tokens of an answer at most
    map_reduce_chunks: int  # passages that `text_map_reduce` reads, at most
    seed: int  # of the order in which these, or reports, are read

    def room_tokens(self, model: LanguageModel, question: AskedQuestion) -> int:
        """Tokens of evidence that a request to a model has room for."""
        room = model.context_tokens - _PROMPT_TOKENS - question.tokens - self.written_tokens(model)
        return min(self.context_tokens, max(_LEAST_TOKENS, room))

    def written_tokens(self, model: LanguageModel) -> int:
        """Tokens of an answer of a model, at most."""
        return max(1, min(self.answer_tokens, model.output_tokens, model.context_tokens // 4))


def passages_request(
    question: str, sources: Sequence[Source], history: Sequence[Turn], background: str, max_tokens: int, language: str
) -> Request:
    """Ask for an answer from passages and what else is known (`background`, which may be empty)."""
    values = {
        "passages": fenced(sources_text(sources), "passages"),
        "background": fenced(background or NOTHING, "background"),
        "conversation": fenced(conversation(history), "conversation"),
        "query": fenced_query(question),
    }
    return sentences_request(PASSAGES_STEP, language, values, max_tokens)


def questions_request(
    question: str,
    sources: Sequence[Source],
    history: Sequence[Turn],
    queries: Sequence[str],
    max_tokens: int,
    language: str,
) -> Request:
    """Ask for an answer from records of title, questions, answers and passage; `queries` is what was asked beside."""
    records = "\n".join(json.dumps(_record(source), ensure_ascii=False) for source in sources)
    values = {
        "records": fenced(records, "records"),
        "conversation": fenced(conversation(history), "conversation"),
        "queries": fenced("\n".join(queries) or NOTHING, "queries"),
        "query": fenced_query(question),
    }
    return sentences_request(QUESTIONS_STEP, language, values, max_tokens)


def sentences_request(
    step: str,
    language: str,
    question: Mapping[str, str],
    max_tokens: int,
    properties: Mapping[str, JsonValue] = _ANSWERED,
) -> Request:
    """A request whose answer is sentences with citations.

    Args:
        step: Its prompt.
        language: Of the prompt.
        question: Values of the user's turn.
        max_tokens: Tokens of the answer at most.
        properties: JSON schemas of what the answer says before its sentences.
    """
    citation = object_schema(
        {
            "number": {"type": "integer", "minimum": 1},
            "quote": {"type": "string", "maxLength": _SLACK * _QUOTE_CHARS},
        }
    )
    sentence = object_schema(
        {
            "citations": {"type": "array", "maxItems": _CITATIONS, "items": citation},
            "text": {"type": "string", "minLength": 1, "maxLength": _SENTENCE_CHARS},
        }
    )
    return prompted(
        Tag("answers", step),
        language,
        max_tokens,
        {"most_sentences": str(_SENTENCES), "quote_chars": str(_QUOTE_CHARS)},
        question,
        {**properties, "sentences": {"type": "array", "maxItems": _SENTENCES, "items": sentence}},
    )


def stream_answer(
    model: LanguageModel, request: Request, sources: Sequence[Source], *, live: bool
) -> Iterator[str | Completion]:
    """Have an answer written.

    Args:
        model: The model.
        request: What is asked, see `sentences_request`.
        sources: What it is given.
        live: Whether the text is wanted while it is written. Closing the generator then ends the writing.

    Yields:
        Further pieces of the text, where the provider gives them, then the completion.

    Raises:
        ModelError: The model as a whole cannot be used.
    """
    if not live:
        yield from model.generate([request])
        return
    sent_text = ""
    for item in _live(model, request):
        if isinstance(item, Completion):
            yield item
            continue
        text = text_so_far(_unfinished(item), sources)
        if text.startswith(sent_text) and text != sent_text:
            yield text[len(sent_text) :]
            sent_text = text


def value_of(completion: Completion | None) -> tuple[dict[str, JsonValue], str | None]:
    """The answer in JSON, and why there is none; also what was written of an answer that reached its limit."""
    if completion is None:
        return {}, "no answer"
    if isinstance(completion.value, dict) and completion.outcome in {Outcome.COMPLETED, Outcome.TRUNCATED}:
        return completion.value, None
    if completion.outcome is Outcome.TRUNCATED:
        return {}, "the answer reached its limit on length (search.answer_tokens)"
    return {}, completion.error or completion.outcome.value


def _live(model: LanguageModel, request: Request) -> Iterator[str | Completion]:
    """The text so far, again and again, and the completion."""
    items: queue.SimpleQueue[str | Completion | BaseException | None] = queue.SimpleQueue()

    def work(session: Session) -> None:
        try:
            for completion in answers(session, [replace(request, progress=items.put)]):
                items.put(completion)
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits for it
            items.put(error)
        finally:
            items.put(None)

    with model.session() as session:
        thread = threading.Thread(target=work, args=(session,), name="reader", daemon=True)
        thread.start()
        try:
            while (item := items.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            session.cancel()
            thread.join()


def _unfinished(text: str) -> JsonValue:
    """What can be read of JSON that is still being written."""
    from pydantic_core import from_json

    value: JsonValue = None
    with suppress(ValueError):
        value = from_json(text[text.find("{") :] if "{" in text else "", allow_partial="trailing-strings")
    return value


def _record(source: Source) -> JsonValue:
    return {
        "number": source.number,
        "title": source.title,
        "place": str(source.citation),
        "questions": [{"question": question.question, "answer": question.answer} for question in source.questions],
        "passage": source.text,
    }
