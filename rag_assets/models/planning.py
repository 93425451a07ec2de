"""A language model that is never called: it tells what calls would cost. Stored answers are given as they are; for the
others it makes up an answer that fits the schema, so that steps that read it go on. Such an answer is as long as those
to the same step were in the ledger; where there are none, it takes half of the tokens that it may take, at most.
"""

import json
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request
from rag_assets.contracts.ports import LanguageModel, Session
from rag_assets.models.catalogue import ModelFacts
from rag_assets.models.dispatch import answers
from rag_assets.text.tokens import mean_tokens

_TYPICAL_SHARE = 0.5  # of the tokens that an answer may take: steps allow twice the length that they ask for
_SAMPLE = 16  # requests of a step whose tokens are counted by the model itself, at most
_MILLION = 1_000_000
_FINEST = 64  # steps in which a made-up value is shortened

Simulate = Callable[[Request, int], JsonValue]
"""Makes up the answer to a request, of at most so many tokens; None for one that only fits the schema."""


@dataclass
class StepPlan:
    """Calls of one step."""

    asset: str  # table that the answers go into
    step: str
    calls: int = 0
    stored: int = 0  # answers that are there already
    input_tokens: float = 0  # tokens read, those of system texts included
    prefix_tokens: float = 0  # of these: tokens of the system texts that a prompt cache could serve
    output_tokens: float = 0  # tokens written, as they are typical of the step
    _made_up_tokens: float = field(default=0, repr=False)
    _stride: int = field(default=1, repr=False)
    _documents: set[str | None] = field(default_factory=set, repr=False)
    _prefixes: dict[str, float] = field(default_factory=dict, repr=False)
    _sample: list[Request] = field(default_factory=list, repr=False)

    @property
    def documents(self) -> int:
        """Documents that the calls are for."""
        return len(self._documents - {None})

    @property
    def prefixes(self) -> int:
        """Number of different system texts."""
        return len(self._prefixes)

    def add(self, request: Request, made_up_tokens: float, typical_tokens: float | None) -> None:
        """Count a call, by the mean tokens of the answer that was made up, or by those of earlier answers in the
        step.
        """
        self.calls += 1
        self._documents.add(request.tag.document_id)
        prefix = self._prefixes.setdefault(request.prefix, mean_tokens(request.prefix))
        self.prefix_tokens += prefix
        self.input_tokens += prefix + mean_tokens(request_text(request))
        self.output_tokens += made_up_tokens if typical_tokens is None else typical_tokens
        self._made_up_tokens += made_up_tokens if typical_tokens is None else 0
        if (self.calls - 1) % self._stride == 0:
            self._sample.append(request)
        if len(self._sample) > _SAMPLE:  # spread over all requests, whatever their number
            del self._sample[1::2]
            self._stride *= 2

    def calibrate(self, count: Callable[[Sequence[Request]], list[int]]) -> None:
        """Scale the tokens that were estimated by what the model itself counts in a sample of what it reads."""
        if self._sample:
            counted_tokens = sum(count(self._sample))
            guessed_tokens = sum(
                mean_tokens(request.prefix) + mean_tokens(request_text(request)) for request in self._sample
            )
            ratio = counted_tokens / max(1, guessed_tokens)
            self.input_tokens *= ratio
            self.prefix_tokens *= ratio
            self.output_tokens += self._made_up_tokens * (ratio - 1)
            self._made_up_tokens *= ratio

    def cost_usd(self, facts: ModelFacts, *, prompt_cache: bool, batch: bool) -> float:
        """Price of the calls, with the provider's prompt cache where system texts are long enough, or in batches."""
        prices, cached_tokens, written_tokens = facts.prices, 0.0, 0.0
        if prompt_cache and facts.cache_prefix_tokens and self.calls:
            length = self.prefix_tokens / self.calls
            if length >= facts.cache_prefix_tokens:
                written_tokens = min(self.prefixes, self.calls) * length
                cached_tokens = self.prefix_tokens - written_tokens
        price = (
            (self.input_tokens - cached_tokens - written_tokens) * prices.input
            + cached_tokens * prices.cache_read
            + written_tokens * prices.cache_write
            + self.output_tokens * prices.output
        )
        return price / _MILLION * (prices.batch_factor if batch else 1.0)


class PlanningModel:
    """Stands in for a language model in a trial run of the steps.

    Args:
        name: Name of the model that would be called.
        model: The model, asked for its limits and to count tokens only; None where it cannot be asked, and its limits
            are assumed.
        find: Gives the stored answer to a request, or None.
        typical_output_tokens: Mean tokens written by step, from earlier calls.
        simulations: What makes up answers that must say something of what was asked, by step.
        remembers: Whether what is asked twice is one call, as where answers are stored.
    """

    generative = True

    def __init__(
        self,
        name: str,
        model: LanguageModel | None,
        find: Callable[[Request], Completion | None],
        typical_output_tokens: Mapping[str, float],
        simulations: Mapping[str, Simulate] | None = None,
        *,
        remembers: bool = False,
    ) -> None:
        limits = model or ModelFacts()
        self.name = name
        self.context_tokens = limits.context_tokens
        self.output_tokens = limits.output_tokens
        self.steps: dict[tuple[str, str], StepPlan] = {}
        self._model, self._find, self._typical = model, find, typical_output_tokens
        self._simulations = simulations or {}
        self._asked: dict[str, Completion] | None = {} if remembers else None

    @contextmanager
    def session(self) -> Iterator[Session]:
        yield _PlanningSession(self._answer)

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        with self.session() as session:
            yield from answers(session, requests)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request, estimated."""
        return [round(mean_tokens(request.prefix) + mean_tokens(request_text(request))) for request in requests]

    def calibrate(self) -> None:
        """Have the model count samples of all steps; without one the estimates stay.

        Raises:
            ModelError: It cannot be asked.
            SettingsError: There is no key.
        """
        if self._model is not None:
            for step in self.steps.values():
                step.calibrate(self._model.count_tokens)

    def _answer(self, request: Request) -> Completion:
        if self._asked is None:
            return self._planned_completion(request)
        key = request.content_sha256
        if key not in self._asked:
            self._asked[key] = self._planned_completion(request)
        return replace(self._asked[key], request=request)

    def _planned_completion(self, request: Request) -> Completion:
        tag = request.tag
        step = self.steps.setdefault((tag.asset, tag.step), StepPlan(tag.asset, tag.step))
        if (completion := self._find(request)) is not None:
            step.stored += 1
            return completion
        value = self._made_up(request)
        text = "…" * (request.max_tokens // 3) if request.schema is None else json.dumps(value, ensure_ascii=False)
        step.add(request, mean_tokens(text), self._typical.get(tag.step))
        return Completion(request, Outcome.COMPLETED, text, value=value)

    def _made_up(self, request: Request) -> JsonValue:
        if request.schema is None:
            return None
        typical = self._typical.get(request.tag.step, request.max_tokens * _TYPICAL_SHARE)
        most_tokens = min(request.max_tokens, round(typical))
        if simulate := self._simulations.get(request.tag.step):
            value = simulate(request, most_tokens)
            if value is not None:
                return value
        return made_up(json.loads(request.schema), most_tokens)


class _PlanningSession:
    def __init__(self, answer: Callable[[Request], Completion]) -> None:
        self._answer = answer
        self._answers: deque[Completion] = deque()

    def submit(self, request: Request) -> None:
        self._answers.append(self._answer(request))

    def take(self, *, wait: bool) -> Completion | None:
        del wait  # there is nothing to wait for
        return self._answers.popleft() if self._answers else None

    def cancel(self) -> None:
        """Nothing is ever under way."""


def request_text(request: Request) -> str:
    """All that a model reads of a request but its prefix."""
    return "\n".join([request.system, *(message.text for message in request.messages)])


def made_up(schema: dict[str, JsonValue], most_tokens: int | None = None) -> JsonValue:
    """A value of typical size that satisfies a schema: texts and lists of half their greatest length, or shorter.

    Args:
        schema: What is to be satisfied.
        most_tokens: Tokens of the value as JSON, by estimate: above them, all texts and lists are shortened in
            proportion, as far as the schema lets them, but a list is not emptied, because what is asked next may depend
            on it; None for no limit.
    """
    value = _of_share(schema, 0.5)
    if most_tokens is None or _json_tokens(value) <= most_tokens:
        return value
    shares = [0.5 * (part / _FINEST) ** 2 for part in range(_FINEST)]
    fitting_count = bisect_right(shares, most_tokens, key=lambda share: _json_tokens(_of_share(schema, share)))
    return _of_share(schema, shares[max(0, fitting_count - 1)])


def _json_tokens(value: JsonValue) -> int:
    return math.ceil(mean_tokens(json.dumps(value, ensure_ascii=False)))


def _of_share(schema: dict[str, JsonValue], share: float) -> JsonValue:
    """A value whose texts and lists have a share of their greatest length."""
    value: JsonValue = None
    match schema:
        case {"enum": [first, *_]} | {"const": first}:
            value = first
        case {"anyOf": [dict() as first, *_]}:
            value = _of_share(first, share)
        case {"type": "object", "properties": dict() as properties}:
            value = {
                name: _of_share(subschema, share)
                for name, subschema in properties.items()
                if isinstance(subschema, dict)
            }
        case {"type": "array", "items": dict() as items}:
            most = _number(schema, "maxItems", 6)
            count = max(_number(schema, "minItems", 0), min(1, most // 2), int(most * share))
            value = [_of_share(items, share) for _ in range(count)]
        case {"type": "string"}:
            value = "語" * max(1, _number(schema, "minLength", 0), int(_number(schema, "maxLength", 80) * share))
        case {"type": "integer" | "number"}:
            value = _number(schema, "minimum", 1)
        case {"type": "boolean"}:
            value = True
    return value


def _number(schema: dict[str, JsonValue], name: str, default: int) -> int:
    value = schema.get(name)
    return int(value) if isinstance(value, int | float) else default
