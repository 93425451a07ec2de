"""Answers that are of use: JSON is checked against its schema, asked to be mended where it breaks it, and continued
where a list was cut off; what is refused, empty or broken for good is asked again. Stands outside of what is stored and
paid, so that each further question is a call like any other, with a stored answer and a row of the ledger of its own.
"""

import json
import re
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from rag_assets.contracts.generation import Completion, JsonValue, Message, Outcome, Request
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.models.dispatch import answers
from rag_assets.text.plain import one_line

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_CONTINUATIONS = 8
_ERROR_CHARS = 300
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)

_REPAIR = (
    "Your answer does not fit the JSON schema: {error}\n"
    "Write the whole answer again as JSON that fits the schema, and nothing else."
)
_CONTINUE = (
    "Your answer reached its limit on length. These items of it are complete: {counts}.\n"
    "Go on after them: write JSON of the same schema that holds only the items still missing, and nothing else. "
    "Where none is missing, leave the lists empty."
)


@dataclass(frozen=True)
class Repeats:
    """How often the same is asked again whose answer was of no use."""

    empty: int = 0  # in one run, where the model ended without a word
    refused: int = 0  # in one run, where it declined
    # in one run, where its JSON broke the schema, also mended, or was cut off before anything was complete
    broken: int = 0
    runs: int = 1  # runs in which it is asked at all; later ones leave it

    def of(self, outcome: Outcome) -> int:
        """Times that a call with an outcome is made again in one run."""
        match outcome:
            case Outcome.EMPTY:
                return self.empty
            case Outcome.REFUSED:
                return self.refused
            case _:
                return self.broken

    def most(self, outcome: Outcome) -> int:
        """Times that the same is asked in all runs together, the first one included."""
        return self.runs * (1 + self.of(outcome))


NO_REPEATS = Repeats()


class DelegatingModel(ABC):
    """A language model around another one, which does something to each request or answer that passes.

    Everything is that of the inner model, except what `_around` does.
    """

    def __init__(self, inner: LanguageModel) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """Provider and model."""
        return self._inner.name

    @property
    def generative(self) -> bool:
        """Whether it writes at all."""
        return self._inner.generative

    @property
    def context_tokens(self) -> int:
        """Tokens of prompt and answer together, at most; a server may be asked for it."""
        return self._inner.context_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens of an answer at most; a server may be asked for it."""
        return self._inner.output_tokens

    @abstractmethod
    def _around(self, session: Session) -> Session:
        """The session around one of the inner model."""

    @contextmanager
    def session(self) -> Iterator[Session]:
        with self._inner.session() as session:
            yield self._around(session)

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        with self.session() as session:
            yield from answers(session, requests)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        return self._inner.count_tokens(requests)


class StructuredModel(DelegatingModel):
    """A language model whose JSON answers satisfy their schema, or say that they do not.

    A completion that took several calls carries the sum of their tokens, prices and seconds.

    Args:
        inner: The model.
        temperature: Of requests that name none.
        note: Told of each answer that broke its schema for good, and of each call that was made because an earlier
            answer was of no use (outcome `repeated`).
        repeats: How often the same is asked again.
    """

    def __init__(
        self,
        inner: LanguageModel,
        temperature: float | None = None,
        note: Callable[[Completion], None] | None = None,
        repeats: Repeats = NO_REPEATS,
    ) -> None:
        super().__init__(inner)
        self.temperature = temperature
        self.note = note
        self.repeats = repeats

    def _around(self, session: Session) -> Session:
        return _StructuredSession(session, self)


@dataclass
class _Exchange:
    """What has become of one request so far."""

    request: Request
    spent: Completion  # sum over the calls so far
    asked: Request  # the request as it is sent, without what was said since
    parts: JsonValue = None  # lists gathered from answers that were cut off
    continuations: int = 0
    repaired: bool = False
    # what was wrong with the answer that the last call was made for; None where it was made for none
    because: str | None = None
    # how often the same was asked again in this run, by outcome
    repeats: Counter[Outcome] = field(default_factory=Counter)


class _StructuredSession:
    """Submits what an answer that breaks its schema leads to."""

    def __init__(self, session: Session, model: StructuredModel) -> None:
        self._session = session
        self._temperature = model.temperature
        self._note = model.note
        self._repeats = model.repeats
        self._exchanges: dict[str, deque[_Exchange]] = {}

    def submit(self, request: Request) -> None:
        asked_request = request
        if request.temperature is None and self._temperature is not None:
            asked_request = replace(request, temperature=self._temperature)
        self._ask(asked_request, _Exchange(request, Completion(request, Outcome.COMPLETED, stored=True), asked_request))

    def take(self, *, wait: bool) -> Completion | None:
        while (answer := self._session.take(wait=wait)) is not None:
            exchange = self._exchanges[answer.request.content_sha256].popleft()
            self._forget_if_none(answer.request)
            if (completion := self._follow(exchange, answer)) is not None:
                return completion
        return None

    def cancel(self) -> None:
        self._session.cancel()

    def _ask(self, request: Request, exchange: _Exchange) -> None:
        # noted first, because an answer may be waited for inside of submit
        self._exchanges.setdefault(request.content_sha256, deque()).append(exchange)
        try:
            self._session.submit(request)
        except BaseException:
            self._exchanges[request.content_sha256].pop()
            self._forget_if_none(request)
            raise

    def _forget_if_none(self, request: Request) -> None:
        if not self._exchanges[request.content_sha256]:
            del self._exchanges[request.content_sha256]

    def _follow(self, exchange: _Exchange, answer: Completion) -> Completion | None:
        """The completion of an exchange, or None where a further request was submitted."""
        exchange.spent = _sum(exchange.spent, answer)
        if exchange.because is not None and not answer.stored and self._note:
            self._note(replace(answer, request=exchange.asked, outcome=Outcome.REPEATED, error=exchange.because))
        exchange.because = None
        schema = exchange.request.schema
        if schema is None or answer.outcome not in {Outcome.COMPLETED, Outcome.TRUNCATED}:
            return self._final_completion(exchange, answer, self._without_value(exchange, answer))
        if answer.outcome is Outcome.TRUNCATED:
            return self._continue(exchange, answer, schema)
        try:
            value = merged(exchange.parts, parse_json(answer.text), schema)
        except ValueError as error:
            if exchange.repaired:
                completion = replace(exchange.spent, outcome=Outcome.INVALID, text=answer.text, error=str(error))
                return self._final_completion(exchange, answer, completion)
            exchange.repaired = True
            exchange.because = str(error)
            question = _REPAIR.format(error=str(error))
            self._ask(_followed(answer.request, answer.text, question), exchange)
            return None
        return replace(exchange.spent, outcome=Outcome.COMPLETED, text=_text(value), value=value)

    def _final_completion(self, exchange: _Exchange, answer: Completion, completion: Completion) -> Completion | None:
        """The completion, or None where the same is asked again because it is of no use.

        An answer of an earlier run counts for the limit of all runs alone, one of this run for that of a run, too.
        """
        if completion.usable or completion.outcome is Outcome.FAILED:
            return completion
        next_attempt = exchange.asked.attempt + 1
        is_left = next_attempt < self._repeats.most(completion.outcome)
        if is_left and (answer.stored or exchange.repeats[completion.outcome] < self._repeats.of(completion.outcome)):
            if not answer.stored:
                exchange.repeats[completion.outcome] += 1
            exchange.parts, exchange.continuations, exchange.repaired = None, 0, False
            exchange.because = (
                f"{completion.outcome}: {completion.error}" if completion.error else completion.outcome.value
            )
            exchange.asked = replace(exchange.asked, attempt=next_attempt)
            self._ask(exchange.asked, exchange)
            return None
        if completion.outcome is Outcome.INVALID and self._note:
            self._note(replace(completion, request=exchange.asked))
        return replace(completion, repeatable=is_left)

    def _continue(self, exchange: _Exchange, answer: Completion, schema: str) -> Completion | None:
        values = complete_items(answer.text, schema)
        if values is None or exchange.continuations == _CONTINUATIONS:
            return self._final_completion(exchange, answer, self._without_value(exchange, answer))
        exchange.continuations += 1
        exchange.parts = _join_answers(exchange.parts, values)
        counts = ", ".join(f"{len(items)} in {name!r}" for name, items in values.items() if isinstance(items, list))
        follow_up = _followed(answer.request, _text(values), _CONTINUE.format(counts=counts))
        self._ask(follow_up, exchange)
        return None

    @staticmethod
    def _without_value(exchange: _Exchange, answer: Completion) -> Completion:
        """The last answer; items that earlier ones gave in full are kept where they satisfy the schema."""
        completion = replace(
            exchange.spent, outcome=answer.outcome, text=answer.text, error=answer.error, rejected=answer.rejected
        )
        if exchange.parts is not None and exchange.request.schema is not None:
            with suppress(ValueError):
                value = merged(exchange.parts, {}, exchange.request.schema)
                return replace(completion, text=_text(value), value=value)
        return completion


def parse_json(text: str) -> JsonValue:
    """JSON of an answer, also where it stands in a code fence.

    Raises:
        ValueError: It is no JSON.
    """
    match = _FENCE.match(text)
    try:
        return cast("JsonValue", json.loads(match[1] if match else text, parse_constant=_refuse))
    except ValueError as error:
        raise ValueError(f"not JSON: {one_line(error, _ERROR_CHARS)}") from error
    except RecursionError as error:
        raise ValueError("not JSON: nested too deep") from error


def merged(parts: JsonValue, value: JsonValue, schema: str) -> JsonValue:
    """A value that satisfies a schema, from an answer and the items that were gathered before it.

    Lists longer than the schema allows by having been continued are cut.

    Raises:
        ValueError: It does not satisfy the schema; the message says where and why.
    """
    import jsonschema

    whole = value if parts is None else _cut(_join_answers(parts, value), schema)
    error = jsonschema.exceptions.best_match(_validator(schema).iter_errors(whole))
    if error is not None:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        # the schema's own words: what the library says quotes the answer, and so the document
        expected = json.dumps(error.validator_value, ensure_ascii=False)
        raise ValueError(one_line(f"at ${place}: expected {error.validator} {expected}", _ERROR_CHARS))
    return whole


def complete_items(text: str, schema: str) -> dict[str, JsonValue] | None:
    """What a cut-off JSON object holds in full: its single values, and the items of its lists that satisfy the schema.

    Returns:
        None where it holds no complete item of a list, so that there is nothing to go on from.
    """
    from pydantic_core import from_json

    definition = json.loads(schema)
    lists = {
        name: subschema["items"] for name, subschema in definition.get("properties", {}).items() if _is_list(subschema)
    }
    object_text = text[text.find("{") :] if "{" in text else text
    try:
        partial = from_json(object_text, allow_partial=True)
    except ValueError:
        return None
    if not isinstance(partial, dict) or not lists:
        return None
    values: dict[str, JsonValue] = {}
    for name, value in partial.items():
        if name in lists and isinstance(value, list):
            items = _validator(json.dumps({**lists[name], "$defs": definition.get("$defs", {})}))
            ended_here = name == next(reversed(partial)) and bool(value) and _ends_within_item(object_text, value[-1])
            values[name] = [item for item in (value[:-1] if ended_here else value) if items.is_valid(item)]
        elif name in definition.get("properties", {}):
            values[name] = value
    values.update({name: [] for name in lists if name not in values})
    return values if any(values[name] for name in lists) else None


def _ends_within_item(text: str, item: JsonValue) -> bool:
    """Whether a text, from its first brace, was cut off inside of the last item of a list of its outermost object."""
    depth, is_quoted, is_escaped = 0, False, False
    for character in text:
        if is_escaped:
            is_escaped = False
        elif is_quoted:
            is_escaped, is_quoted = character == "\\", character != '"'
        elif character == '"':
            is_quoted = True
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
    if isinstance(item, str):  # one that was cut short is not read at all
        return False
    if is_quoted or depth > 2:
        return True
    return depth == 2 and isinstance(item, int | float) and not text.rstrip().endswith(",")


def _is_list(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "array" and isinstance(schema.get("items"), dict)


def _join_answers(first: JsonValue, second: JsonValue) -> JsonValue:
    """Two answers as one: lists follow on each other, each item once; of single values, the first stands."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second if first is None else first
    result = {**second, **first}
    for name, items in second.items():
        before = first.get(name)
        if isinstance(items, list) and isinstance(before, list):
            known_texts = {_text(item) for item in before}
            result[name] = [*before, *(item for item in items if _text(item) not in known_texts)]
    return result


def _cut(value: JsonValue, schema: str) -> JsonValue:
    if not isinstance(value, dict):
        return value
    limits = {
        name: subschema["maxItems"]
        for name, subschema in json.loads(schema).get("properties", {}).items()
        if _is_list(subschema) and "maxItems" in subschema
    }
    return {
        name: items[: limits[name]] if name in limits and isinstance(items, list) else items
        for name, items in value.items()
    }


def _followed(request: Request, answer: str, question: str) -> Request:
    turns = (*request.messages, Message("assistant", answer or "{}"), Message("user", question))
    return replace(request, messages=turns, progress=None)


def _sum(total: Completion, answer: Completion) -> Completion:
    return replace(
        total,
        usage=total.usage + answer.usage,
        cost_usd=total.cost_usd + answer.cost_usd,
        seconds=total.seconds + answer.seconds,
        called_at=max(total.called_at, answer.called_at),
        stored=total.stored and answer.stored,
        batch_id=answer.batch_id,
    )


@lru_cache(maxsize=256)
def _validator(schema: str) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))


def _text(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
