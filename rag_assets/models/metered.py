"""What stands around every provider: stored answers, then the ledger, then the budget.

```
submit ──► under way already? ──► stored? ──► budget ──► provider ──► keep: answer and ledger record stored ──► take
                   └─────────────────┴────────────────── free ──────────────────────────────────────────────────┘
```

What stays out: retries and limits on rates, which are the provider's (`rag_assets.models.dispatch`), and JSON that must
fit a schema (`rag_assets.models.structured`).
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from rag_assets.contracts.errors import BudgetError, ModelError
from rag_assets.contracts.generation import Completion, Request, Tag, Usage, request_key
from rag_assets.contracts.ports import Session
from rag_assets.models.accounts.answers import STORED_OUTCOMES, StoredAnswer
from rag_assets.models.accounts.budget import Budget, Refusal, Reservation
from rag_assets.models.accounts.ledger import Ledger, hit_of
from rag_assets.models.accounts.price_bounds import upper_price_usd
from rag_assets.models.dispatch import answers
from rag_assets.models.providers import Provider

_PATIENCE_SECONDS = 60.0  # for calls of other processes to leave what they have reserved but did not cost
_PAUSE_SECONDS = 0.2
_MOST_FOLLOWERS = 20_000  # requests that wait for an answer that others asked for, before `generate` waits for answers


class MeteredModel:
    """A language model that pays for no answer twice, writes down every call and keeps to a budget.

    Args:
        provider: Answers what is not stored.
        ledger: Where calls are written down; knows the stored answers.
        budget: What calls may cost; None for no limit.
        patience_seconds: How long calls of other processes are waited for that have reserved what is left.
    """

    generative = True

    def __init__(
        self,
        provider: Provider,
        ledger: Ledger,
        budget: Budget | None = None,
        *,
        patience_seconds: float = _PATIENCE_SECONDS,
    ) -> None:
        self.name = provider.name
        self._provider = provider
        self._ledger = ledger
        self._budget = budget
        self._patience_seconds = patience_seconds

    @property
    def context_tokens(self) -> int:
        """Tokens of prompt and answer together, at most."""
        return self._provider.facts.context_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens of an answer at most."""
        return self._provider.facts.output_tokens

    @contextmanager
    def _open(self) -> Iterator["_MeteredSession"]:
        session = _MeteredSession(self._provider, self._ledger, self._budget, self._patience_seconds)
        try:
            yield session
        finally:
            session.close()

    def session(self) -> AbstractContextManager[Session]:
        """Open a session, see `LanguageModel`. The provider's is opened with the first request that needs it."""
        return self._open()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answer requests, see `LanguageModel`.

        Raises:
            ModelError: See `LanguageModel`.
            BudgetError: The next call may cost more than the budget allows.
        """
        with self._open() as session:
            yield from answers(session, self._paced(session, requests))

    @staticmethod
    def _paced(session: "_MeteredSession", requests: Iterable[Request]) -> Iterator[Request]:
        for request in requests:
            session.limit_followers()
            yield request

    def find(self, request: Request) -> Completion | None:
        """The stored answer to a request, or None; asks nobody, writes nothing and does not count as use."""
        found = self._ledger.answers.find(request_key(self.name, request), touch=False)
        return hit_of(request, found) if found else None

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Tokens of each request, see `LanguageModel`."""
        return self._provider.count_tokens(requests)


@dataclass
class _Call:
    """A request that the provider has.

    Attributes:
        reservation: What is reserved for it; None before, once it is settled, and where it is in a batch.
        followers: Tags of further requests of the same content.
        stored: The answer that is stored now, once it is kept.
        kept: Whether it is written down.
    """

    reservation: Reservation | None = None
    followers: list[Tag] = field(default_factory=list)
    stored: StoredAnswer | None = None
    kept: bool = False


class _MeteredSession:
    """See `Session`, and `Purse` for the provider's.

    One thread at a time submits and takes; the provider keeps answers from any.
    """

    def __init__(self, provider: Provider, ledger: Ledger, budget: Budget | None, patience_seconds: float) -> None:
        self._provider = provider
        self._ledger = ledger
        self._budget = budget
        self._patience_seconds = patience_seconds
        self._stack = ExitStack()
        self._session: Session | None = None
        self._cancelled = threading.Event()
        self._guard = threading.Lock()
        self._calls: dict[str, _Call] = {}
        self._ready: deque[Completion] = deque()
        self._followers = 0

    def submit(self, request: Request) -> None:
        key = request_key(self._provider.name, request)
        if (call := self._calls.get(key)) is not None:
            call.followers.append(request.tag)
            self._followers += 1
        elif (found := self._find(key)) is not None:
            self._hit(hit_of(request, found))
        else:
            self._ask(key, request)

    def take(self, *, wait: bool) -> Completion | None:
        if not self._ready and self._session is not None:
            self._collect(self._session, wait=wait)
        return self._ready.popleft() if self._ready else None

    def cancel(self) -> None:
        """Give up what is under way, see `Session`."""
        with self._guard:
            self._cancelled.set()
            session = self._session
        if session is not None:
            session.cancel()

    def limit_followers(self) -> None:
        """Wait for answers while very many requests wait for few of them."""
        while self._followers >= _MOST_FOLLOWERS and self._session is not None:
            if not self._collect(self._session, wait=True):
                return

    def close(self) -> None:
        """Give up what is under way."""
        try:
            self._stack.close()
        finally:
            self._calls.clear()
            self._ledger.end_session()

    def _find(self, key: str) -> StoredAnswer | None:
        try:
            return self._ledger.answers.find(key)
        except OSError as error:
            raise ModelError(f"{self._provider.name}: stored answers cannot be read: {error}") from error

    def _hit(self, completion: Completion) -> None:
        self._write(completion)
        self._ready.append(completion)

    def _ask(self, key: str, request: Request) -> None:
        session = self._opened()
        with self._guard:
            self._calls[key] = _Call()
        with ExitStack() as undone:
            undone.callback(self._withdraw, key)
            self._hand_over(session, request)
            undone.pop_all()

    def _opened(self) -> Session:
        if self._session is None:
            if self._cancelled.is_set():
                raise ModelError(f"{self._provider.name}: the session has ended")
            if self._budget is not None:
                self._stack.enter_context(self._budget.session())
                self._stack.callback(self._give_up, self._budget)
            opened = self._stack.enter_context(self._provider.open(self._keep, self))
            with self._guard:
                self._session = opened
            if self._cancelled.is_set():
                opened.cancel()
        return self._session

    def _give_up(self, budget: Budget) -> None:
        """Give back what is reserved for calls that have no answer when the provider's session has ended."""
        budget.release(call.reservation for call in self._calls.values() if call.reservation is not None)

    def _withdraw(self, key: str) -> None:
        with self._guard:
            call = self._calls.pop(key, None)
        self._settle(call.reservation if call else None, 0.0, None)

    def _hand_over(self, session: Session, request: Request) -> None:
        """Submit a request; what is reserved for calls under way is waited for.

        Raises:
            BudgetError: There is not enough left.
        """
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                session.submit(request)
            except BudgetError as error:
                if not error.may_pass or self._cancelled.is_set():
                    raise
                if self._collect(session, wait=True):
                    deadline = time.monotonic() + self._patience_seconds
                elif time.monotonic() > deadline:
                    raise
                else:
                    time.sleep(_PAUSE_SECONDS)
            else:
                return

    def reserve(self, request: Request, *, batch: bool = False) -> None:
        """Reserve the price of a call, see `Purse`."""
        if self._budget is None:
            return
        call = self._calls[request_key(self._provider.name, request)]
        price = upper_price_usd(request, self._provider.facts, batch=batch)
        found = self._budget.reserve(price, call.reservation)
        if isinstance(found, Refusal):
            raise BudgetError(found.message, may_pass=found.waits)
        call.reservation = found

    def release(self, requests: Iterable[Request]) -> None:
        """Give back what was reserved for calls, see `Purse`."""
        if self._budget is None:
            return
        given_back: list[Reservation] = []
        for request in requests:
            call = self._calls.get(request_key(self._provider.name, request))
            if call is not None and call.reservation is not None:
                given_back.append(call.reservation)
                call.reservation = None
        self._budget.release(given_back)

    def _keep(self, completion: Completion) -> None:
        """Write an answer down before it is handed out; called from any thread."""
        key = request_key(self._provider.name, completion.request)
        stored = self._ledger.keep(self._provider.name, completion)
        with self._guard:
            call = self._calls.get(key)
            reservation = call.reservation if call else None
            if call is not None:
                call.reservation, call.stored, call.kept = None, stored, True
        self._settle(reservation, completion.cost_usd, completion.called_at)

    def _collect(self, session: Session, *, wait: bool) -> bool:
        """Take an answer of the provider, for all that have asked for it.

        Returns:
            Whether there was one.
        """
        completion = session.take(wait=wait)
        if completion is None:
            return False
        key = request_key(self._provider.name, completion.request)
        call = self._calls.get(key) or _Call(kept=completion.outcome in STORED_OUTCOMES)
        if completion.stored:
            self._write(completion)
        elif not call.kept:
            self._keep_late(call, completion)
        with self._guard:
            self._calls.pop(key, None)
        self._settle(call.reservation, 0.0, None)
        self._followers -= len(call.followers)
        if call.stored is not None and call.stored.text != completion.text:
            first = hit_of(completion.request, call.stored)
            completion = replace(completion, outcome=first.outcome, text=first.text, error=first.error, value=None)
        self._ready.append(completion)
        for tag in call.followers:
            self._follow(replace(completion, request=replace(completion.request, tag=tag)))
        return True

    def _keep_late(self, call: _Call, completion: Completion) -> None:
        """Write down what the provider has not kept: failures."""
        try:
            call.stored = self._ledger.keep(self._provider.name, completion)
        except OSError as error:
            raise ModelError(f"{self._provider.name}: an answer cannot be stored: {error}") from error
        self._settle(call.reservation, completion.cost_usd, completion.called_at)
        call.reservation = None

    def _follow(self, completion: Completion) -> None:
        """Answer a request with what another one was answered; it cost nothing."""
        free = replace(completion, usage=Usage(), cost_usd=0.0, seconds=0.0)
        if completion.outcome in STORED_OUTCOMES:
            self._hit(replace(free, called_at=time.time(), batch_id=None, stored=True))
        else:
            self._ready.append(free)

    def _write(self, completion: Completion) -> None:
        try:
            self._ledger.note_hit(self._provider.name, completion)
        except OSError as error:
            raise ModelError(f"{self._provider.name}: the ledger cannot be written: {error}") from error

    def _settle(self, reservation: Reservation | None, cost_usd: float, called_at: float | None) -> None:
        if self._budget is not None:
            self._budget.settle(reservation, cost_usd, called_at)
