"""Work on many documents at once in which an answer may lead to further requests."""

from collections import Counter, deque
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.ports import LanguageModel, Session

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

Dialogue = Generator[Sequence[Request], list[Completion], Result]
"""Yields the requests of a round, is sent their completions in the same order, and returns its result."""


@dataclass
class _Round(Generic[Key, Result]):
    key: Key
    dialogue: "Dialogue[Result]"
    answers: list[Completion | None]
    missing: int = field(init=False)

    def __post_init__(self) -> None:
        self.missing = len(self.answers)


@dataclass
class Missing:
    """Answers that were of no use, by outcome, and whether a later run should ask for any of them again."""

    causes: Counter[str] = field(default_factory=Counter)
    again: bool = False

    def note(self, answers: Iterable[Completion]) -> None:
        """Count those of some answers."""
        for answer in answers:
            if not answer.usable:
                self.causes[answer.outcome.value] += 1
                self.again |= answer.may_pass


def watched(dialogue: "Dialogue[Result]", missing: Missing) -> "Dialogue[Result]":
    """A dialogue whose answers that are of no use are added to those that are missing."""
    answers: list[Completion] | None = None
    while True:
        try:
            requests = next(dialogue) if answers is None else dialogue.send(answers)
        except StopIteration as stop:
            result: Result = stop.value
            return result
        answers = yield requests
        missing.note(answers)


def side_by_side(dialogues: Sequence["Dialogue[Result]"]) -> "Dialogue[list[Result]]":
    """Hold some dialogues as one: each of its rounds holds the requests of all that are still under way.

    Returns:
        Their results, in the order given.
    """
    results: dict[int, Result] = {}
    open_requests: dict[int, Sequence[Request]] = {}
    for index, dialogue in enumerate(dialogues):
        try:
            open_requests[index] = next(dialogue)
        except StopIteration as stop:
            results[index] = stop.value
    while open_requests:
        answers = iter((yield [request for requests in open_requests.values() for request in requests]))
        next_requests: dict[int, Sequence[Request]] = {}
        for index, requests in open_requests.items():
            try:
                next_requests[index] = dialogues[index].send([next(answers) for _ in requests])
            except StopIteration as stop:
                results[index] = stop.value
        open_requests = next_requests
    return [results[index] for index in range(len(dialogues))]


def converse(model: LanguageModel, dialogues: Iterable[tuple[Key, "Dialogue[Result]"]]) -> Iterator[tuple[Key, Result]]:
    """Hold dialogues with a model, as many at once as it takes. With one that does not write, none may ask anything.

    Dialogues are begun as the model takes their requests, so that few are in memory with a model that is called, and
    all of a batch with one that works in batches.

    Yields:
        Results as they come, with what their dialogues are called.

    Raises:
        ModelError: The model as a whole cannot be used; results of dialogues that had all their answers are yielded
            before.
    """
    if not model.generative:
        yield from ((key, _unasked(dialogue)) for key, dialogue in dialogues)
        return
    with model.session() as session:
        yield from _Conversations[Key, Result](session).hold(dialogues)


def _unasked(dialogue: "Dialogue[Result]") -> Result:
    try:
        requests = next(dialogue)
    except StopIteration as stop:
        result: Result = stop.value
        return result
    raise ModelError(f"no language model is set, and {len(requests)} requests were made")


class _Conversations(Generic[Key, Result]):
    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[str, deque[tuple[_Round[Key, Result], int]]] = {}
        self._done: deque[tuple[Key, Result]] = deque()
        self._problem: ModelError | None = None

    def hold(self, dialogues: Iterable[tuple[Key, "Dialogue[Result]"]]) -> Iterator[tuple[Key, Result]]:
        for key, dialogue in dialogues:
            self._advance(key, dialogue, None)
            while (answer := self._take(wait=False)) is not None:
                self._deliver(answer)
            yield from self._drained()
            if self._problem:
                break
        while (answer := self._take(wait=True)) is not None:
            self._deliver(answer)
            yield from self._drained()
        if self._problem:
            raise self._problem

    def _drained(self) -> Iterator[tuple[Key, Result]]:
        while self._done:
            yield self._done.popleft()

    def _take(self, *, wait: bool) -> Completion | None:
        try:
            return self._session.take(wait=wait)
        except ModelError as error:
            self._problem = self._problem or error
            return None

    def _advance(self, key: Key, dialogue: "Dialogue[Result]", answers: list[Completion] | None) -> None:
        """Go on with a dialogue until it has asked something or is done."""
        try:
            requests = next(dialogue) if answers is None else dialogue.send(answers)
            while not requests:
                requests = dialogue.send([])
        except StopIteration as stop:
            self._done.append((key, stop.value))
            return
        if self._problem:
            dialogue.close()
            return
        current = _Round(key, dialogue, [None] * len(requests))
        for position, request in enumerate(requests):
            queue = self._waiting.setdefault(request.content_sha256, deque())
            queue.append((current, position))
            try:
                self._session.submit(request)
            except ModelError as error:
                queue.pop()
                self._problem = error
                return

    def _deliver(self, answer: Completion) -> None:
        queue = self._waiting[answer.request.content_sha256]
        current, position = queue.popleft()
        if not queue:
            del self._waiting[answer.request.content_sha256]
        current.answers[position] = answer
        current.missing -= 1
        if not current.missing:
            self._advance(
                current.key, current.dialogue, [completion for completion in current.answers if completion is not None]
            )
