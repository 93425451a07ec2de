"""A language model of the tests' own, which answers by a script: for what steps do with answers, never for the wire."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request, Usage
from rag_assets.contracts.ports import Session
from rag_assets.models.dispatch import answers

Script = Callable[[Request], "Completion | JsonValue"]


def completed(request: Request, answer: JsonValue) -> Completion:
    """An answer: text as it is, anything else as JSON."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return Completion(request, Outcome.COMPLETED, text, Usage(len(request.messages[-1].text), len(text)), cost_usd=0.01)


class ScriptedModel:
    """Answers what the script says, in the order `order` puts waiting answers; fails as a whole after `calls_left`."""

    generative = True

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted:model",
        context_tokens: int = 8192,
        calls_left: int | None = None,
        reverse: bool = False,
    ) -> None:
        self.script = script
        self.name = name
        self.context_tokens = context_tokens
        self.output_tokens = 4096
        self.calls_left = calls_left
        self.reverse = reverse
        self.asked: list[Request] = []

    @contextmanager
    def _open(self) -> Iterator[Session]:
        yield _ScriptedSession(self)

    def session(self) -> AbstractContextManager[Session]:
        return self._open()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        with self.session() as session:
            yield from answers(session, requests)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        return [len(request.prefix) + sum(len(each.text) for each in request.messages) for request in requests]


class _ScriptedSession:
    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self._waiting: deque[Request] = deque()

    def submit(self, request: Request) -> None:
        if self._model.calls_left is not None and len(self._model.asked) >= self._model.calls_left:
            raise ModelError("scripted: no more calls")
        self._model.asked.append(request)
        self._waiting.append(request)

    def take(self, *, wait: bool) -> Completion | None:
        if not wait or not self._waiting:
            return None
        request = self._waiting.pop() if self._model.reverse else self._waiting.popleft()
        answer = self._model.script(request)
        return replace(answer, request=request) if isinstance(answer, Completion) else completed(request, answer)

    def cancel(self) -> None:
        """Nothing is ever under way."""
