"""What stands around every provider: stored answers, then the ledger, then the budget.

```
submit ──► under way already? ──► stored? ──► reserve ──► provider ──► keep: answer, record and price stored ──► take
                   └─────────────────┴───────── free ◄─── asked elsewhere? wait for its answer ──────────────────┘
```

What stays out: retries and limits on rates, which are the provider's (`rag_assets.models.dispatch`), and JSON that must
fit a schema (`rag_assets.models.structured`).
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from rag_assets.contracts.errors import BudgetError, ModelError, StoreError
from rag_assets.contracts.generation import Completion, Request, Tag, Usage, request_key
from rag_assets.contracts.ports import Session
from rag_assets.models.accounts.answers import STORED_OUTCOMES, StoredAnswer
from rag_assets.models.accounts.budget import Budget
from rag_assets.models.accounts.ledger import Entry, Ledger, hit_of
from rag_assets.models.catalogue import upper_price_usd
from rag_assets.models.dispatch import answers
from rag_assets.models.providers import ClaimedError, Provider

_PATIENCE_SECONDS = 60.0  # for calls of other processes to leave what they have reserved but did not cost
_PAUSE_SECONDS = 0.2
_LOOK_SECONDS = 0.1  # between two looks for answers that others are asking for


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
        self._budget = budget or Budget(ledger)
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
    def session(self) -> Iterator["_MeteredSession"]:
        """Open a session, see `LanguageModel`. The provider's is opened with the first request that needs it."""
        session = _MeteredSession(self._provider, self._ledger, self._budget, self._patience_seconds)
        try:
            yield session
        finally:
            session.close()

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answer requests, see `LanguageModel`.

        Raises:
            ModelError: See `LanguageModel`.
            BudgetError: The next call may cost more than the budget allows.
        """
        with self.session() as session:
            yield from answers(session, requests)

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        return self._provider.count_tokens(requests)


@dataclass
class _Call:
    """A request that the provider has."""

    # what is reserved for it; None before, once it is settled, and where it is in a batch
    reservation: str | None = None
    is_claimed: bool = False  # whether something was ever reserved for it, so that it is ours to ask
    followers: list[Tag] = field(default_factory=list)  # tags of further requests of the same content
    stored: StoredAnswer | None = None  # the answer that is stored now, once it is kept
    kept: bool = False


class _MeteredSession:
    """See `Session`, and `CallBudget` for the provider's.

    One thread at a time submits and takes; the provider keeps answers from any.
    """

    def __init__(self, provider: Provider, ledger: Ledger, budget: Budget, patience_seconds: float) -> None:
        self._provider = provider
        self._ledger = ledger
        self._budget = budget
        self._patience_seconds = patience_seconds
        self._stack = ExitStack()
        self._session: Session | None = None
        self._cancelled = threading.Event()
        self._guard = threading.Lock()
        self._calls: dict[str, _Call] = {}
        self._elsewhere: dict[str, list[Request]] = {}
        self._looked_at = 0.0
        self._ready: deque[Completion] = deque()

    def submit(self, request: Request) -> None:
        key = request_key(self._provider.name, request)
        if (call := self._calls.get(key)) is not None:
            call.followers.append(request.tag)
        elif key in self._elsewhere:
            self._elsewhere[key].append(request)
        elif (answer := self._find(key)) is not None:
            self._hit(hit_of(request, answer))
        else:
            self._ask(key, request)

    def take(self, *, wait: bool) -> Completion | None:
        while not self._ready:
            if self._session is not None and self._collect(self._session, wait=wait):
                continue
            if not self._elsewhere or self._cancelled.is_set():
                return None
            pause = self._looked_at + _LOOK_SECONDS - time.monotonic()
            if pause <= 0:
                self._look_elsewhere()
            elif wait:
                time.sleep(pause)
            else:
                return None
        return self._ready.popleft()

    def cancel(self) -> None:
        with self._guard:
            self._cancelled.set()
            session = self._session
        if session is not None:
            session.cancel()

    def close(self) -> None:
        """Give up what is under way."""
        try:
            self._stack.close()
        finally:
            self._calls.clear()
            with self._stating("the ledger cannot be written"):
                self._ledger.flush()

    @contextmanager
    def _stating(self, problem: str) -> Iterator[None]:
        """What the state database says is said of the model."""
        try:
            yield
        except StoreError as error:
            raise ModelError(f"{self._provider.name}: {problem}: {error}") from error

    def _find(self, key: str) -> StoredAnswer | None:
        with self._stating("stored answers cannot be read"):
            return self._ledger.answers.find(key)

    def _look_elsewhere(self) -> None:
        """Take answers that others have asked for, and ask oneself where they no longer do."""
        with self._stating("stored answers cannot be read"):
            answers_by_key = self._ledger.answers.find_all(self._elsewhere)
            asked_keys = self._budget.is_asked([key for key in self._elsewhere if key not in answers_by_key])
        self._looked_at = time.monotonic()
        for key in [key for key in self._elsewhere if key not in asked_keys]:
            for request in self._elsewhere.pop(key):
                if key in answers_by_key:
                    self._hit(hit_of(request, answers_by_key[key]))
                else:
                    self.submit(request)

    def _hit(self, completion: Completion) -> None:
        self._write(completion)
        self._ready.append(completion)

    def _ask(self, key: str, request: Request) -> None:
        session = self._open_session()
        with self._guard:
            self._calls[key] = _Call()
        with ExitStack() as rollback:
            rollback.callback(self._withdraw, key)
            try:
                self._hand_over(session, request)
            except ClaimedError:
                self._elsewhere[key] = [request]
            else:
                rollback.pop_all()

    def _open_session(self) -> Session:
        if self._session is None:
            if self._cancelled.is_set():
                raise ModelError(f"{self._provider.name}: the session has ended")
            with self._stating("calls cannot be reserved"):
                self._stack.enter_context(self._budget.session())
            self._stack.callback(self._give_up)
            session = self._stack.enter_context(self._provider.open(self._keep, self))
            with self._guard:
                self._session = session
            if self._cancelled.is_set():
                session.cancel()
        return self._session

    def _give_up(self) -> None:
        """Settle what is reserved for calls that have no answer when the provider's session has ended."""
        with self._stating("calls cannot be settled"):
            self._budget.abandon(call.reservation for call in self._calls.values() if call.reservation is not None)

    def _withdraw(self, key: str) -> None:
        with self._guard:
            call = self._calls.pop(key, None)
        self._settle(call)

    def _settle(self, call: _Call | None) -> None:
        """Give back what is reserved for a call that was not made."""
        if call is not None and call.reservation is not None:
            with self._stating("calls cannot be settled"):
                self._budget.release([call.reservation])
            call.reservation = None

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
        key = request_key(self._provider.name, request)
        call = self._calls[key]
        price = upper_price_usd(request, self._provider.facts, batch=batch)
        with self._stating("a call cannot be reserved"):
            call.reservation = self._budget.reserve(
                self._provider.name, key, request, price, call.reservation, is_claimed=call.is_claimed
            )
        call.is_claimed = True

    def send(self, requests: Iterable[Request]) -> None:
        self._budget.send(self._reservations(requests))

    def release(self, requests: Iterable[Request]) -> None:
        released_requests = list(requests)
        with self._stating("calls cannot be settled"):
            self._budget.release(self._reservations(released_requests))
        for request in released_requests:
            if (call := self._calls.get(request_key(self._provider.name, request))) is not None:
                call.reservation = None

    def _reservations(self, requests: Iterable[Request]) -> list[str]:
        with self._guard:
            calls = [self._calls.get(request_key(self._provider.name, request)) for request in requests]
        return [call.reservation for call in calls if call is not None and call.reservation is not None]

    def _keep(self, completions: Sequence[Completion]) -> None:
        """Write answers down before they are handed out; called from any thread."""
        keys = [request_key(self._provider.name, completion.request) for completion in completions]
        with self._guard:
            calls = [self._calls.get(key) for key in keys]
            reservations = [call.reservation if call else None for call in calls]
        entries = [
            Entry(completion, reservation) for completion, reservation in zip(completions, reservations, strict=True)
        ]
        stored_answers = self._ledger.keep(self._provider.name, entries)
        with self._guard:
            for call, answer in zip(calls, stored_answers, strict=True):
                if call is not None:
                    call.reservation, call.stored, call.kept = None, answer, True

    def _collect(self, session: Session, *, wait: bool) -> bool:
        """Take an answer of the provider, for all that have asked for it.

        Returns:
            Whether there was one, or one is no longer the provider's to give.
        """
        try:
            completion = session.take(wait=wait)
        except ClaimedError as error:
            self._await_elsewhere(error.request)
            return True
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
        self._settle(call)
        if call.stored is not None and call.stored.text != completion.text:
            first = hit_of(completion.request, call.stored)
            completion = replace(completion, outcome=first.outcome, text=first.text, error=first.error, value=None)
        self._ready.append(completion)
        for tag in call.followers:
            self._follow(replace(completion, request=replace(completion.request, tag=tag)))
        return True

    def _await_elsewhere(self, request: Request) -> None:
        """Wait for an answer that others ask for now, with all that have asked for it here."""
        key = request_key(self._provider.name, request)
        with self._guard:
            call = self._calls.pop(key, None)
        followers = [replace(request, tag=tag) for tag in call.followers] if call else []
        self._elsewhere.setdefault(key, []).extend([request, *followers])

    def _keep_late(self, call: _Call, completion: Completion) -> None:
        """Write down what the provider has not kept: failures."""
        with self._stating("an answer cannot be stored"):
            (call.stored,) = self._ledger.keep(self._provider.name, [Entry(completion, call.reservation)])
        call.reservation = None

    def _follow(self, completion: Completion) -> None:
        """Answer a request with what another one was answered; it cost nothing."""
        free = replace(completion, usage=Usage(), cost_usd=0.0, seconds=0.0)
        if completion.outcome in STORED_OUTCOMES:
            self._hit(replace(free, called_at=time.time(), batch_id=None, stored=True))
        else:
            self._ready.append(free)

    def _write(self, completion: Completion) -> None:
        with self._stating("the ledger cannot be written"):
            self._ledger.note(self._provider.name, completion, stored=True)
