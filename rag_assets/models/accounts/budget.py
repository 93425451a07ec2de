"""What calls of language models may cost: in a calendar month (UTC), and in a run.

Before a call is made, the most that it may cost is reserved; when it is done, what it did cost is counted instead. All
processes of a knowledge base share one small file for that:

```
<folder>/state.json      by account (a month, a run): what was spent, and what each process has reserved
<folder>/state.lock      held while the file is read and replaced
<folder>/<id>.lock       held by a process while it has reservations; the operating system frees it when it dies
```

What batches under way may cost counts as reserved by nobody in particular: it is written down with each batch
(`rag_assets.models.anthropic.batch_files`), and outlasts the process that sent it. It counts in the current month and
in every run, since whichever run reads the results is charged with them.

The truth of what was spent is the ledger: it is summed when a process comes, and again before a call is refused. What
stays out: waiting for calls under way, which is `rag_assets.models.metered`.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from rag_assets.models.accounts.calls import month_of, month_start
from rag_assets.models.accounts.ledger import Ledger

_REFRESH_SECONDS = 5.0  # between two sums of the ledger
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Reservation:
    """A part of the budget that is kept for one call.

    Attributes:
        price_usd: Its size.
        accounts: Accounts that it is taken from.
    """

    price_usd: float
    accounts: tuple[str, ...]


_NOTHING = Reservation(0.0, ())


@dataclass(frozen=True)
class Refusal:
    """Why nothing was reserved.

    Attributes:
        message: One line for a person.
        waits: Whether calls that are under way may leave enough, as they rarely cost all that is reserved for them.
    """

    message: str
    waits: bool


@dataclass(frozen=True)
class _Account:
    """One limit.

    Attributes:
        name: Name in the file.
        label: What it is, for a person.
        limit_usd: What may be spent.
        since: First moment that counts; None for a run.
        advice: How to go on when it is spent.
    """

    name: str
    label: str
    limit_usd: float
    since: datetime | None
    advice: str


@dataclass
class _State:
    """Content of the file."""

    spent: dict[str, float] = field(default_factory=dict)
    reserved: dict[str, dict[str, float]] = field(default_factory=dict)  # by process and account

    def reserved_for(self, account: str) -> float:
        return sum(sums.get(account, 0.0) for sums in self.reserved.values())


class Budget:
    """Limits on what calls cost, shared by all processes of a knowledge base; for any number of threads.

    Args:
        folder: Where the state lies; made at first use.
        ledger: Knows what was spent.
        month_usd: US dollars that calls may cost in a calendar month (UTC); None for no limit.
        run_usd: US dollars that the calls of the ledger's run may cost; None for no limit. Outside a run, those of this
            process from now on.
        batches_usd: Tells what batches under way may cost.
    """

    def __init__(
        self,
        folder: Path,
        ledger: Ledger,
        month_usd: float | None,
        run_usd: float | None,
        batches_usd: Callable[[], float] = float,
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._month_usd = month_usd
        self._run_usd = run_usd
        self._batches_usd = batches_usd
        self._owner = uuid.uuid4().hex
        self._settled_usd = 0.0
        self._guard = threading.RLock()
        self._sessions = 0
        self._presence: FileLock | None = None
        self._refreshed = float("-inf")

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all; without one nothing is read or written."""
        return self._month_usd is not None or self._run_usd is not None

    @contextmanager
    def session(self) -> Iterator[None]:
        """Take part; when the last one leaves, what this process has reserved is free again.

        Raises:
            StoreError: The ledger cannot be read.
        """
        if not self.limited:
            yield
            return
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def reserve(self, price_usd: float, instead_of: Reservation | None = None) -> Reservation | Refusal:
        """Keep a part of the budget for a call, within `session`.

        Args:
            price_usd: The most that it may cost.
            instead_of: What is reserved for it already, and stays so where the answer is a refusal.

        Raises:
            StoreError: The ledger cannot be read.
            ModelError: What is remembered of a batch under way cannot be read.
        """
        if not self.limited or (price_usd <= 0 and instead_of is None):
            return _NOTHING
        with self._changing() as state:
            accounts = self._accounts()
            for account in accounts:
                if account.name not in state.spent:
                    state.spent[account.name] = self._spent(account)
            mine = state.reserved.setdefault(self._owner, {})
            _take_back(mine, instead_of)
            batches_usd = self._batches_usd()
            lacking = _lacking(state, accounts, price_usd, batches_usd)
            if lacking and self._refresh(state, accounts):
                lacking = _lacking(state, accounts, price_usd, batches_usd)
            if lacking:
                _set_aside(mine, instead_of)
                return _refusal(state, lacking, price_usd, batches_usd)
            made = Reservation(price_usd, tuple(account.name for account in accounts))
            _set_aside(mine, made)
            return made

    def settle(self, reservation: Reservation | None, cost_usd: float, called_at: float | None = None) -> None:
        """Give a reservation back, and count what the call did cost; the ledger has it before.

        Args:
            reservation: What was reserved; None for a call of which nothing is, as in a batch that is written down.
            cost_usd: What it did cost; 0 where it was not made.
            called_at: When the answer came, seconds since 1970 UTC; None for now.
        """
        if not self.limited or not (cost_usd or (reservation and reservation.accounts)):
            return
        with self._changing() as state:
            self._settled_usd += cost_usd
            _take_back(state.reserved.get(self._owner, {}), reservation)
            for name in (f"month {month_of(called_at or time.time())}", self._run_name):
                if name in state.spent:  # else it is summed when it is needed
                    state.spent[name] += cost_usd

    def release(self, reservations: Iterable[Reservation]) -> None:
        """Give reservations back, of calls that were not made or that count from now on as a batch under way."""
        given_back = [each for each in reservations if each.accounts]
        if not self.limited or not given_back:
            return
        with self._changing() as state:
            for reservation in given_back:
                _take_back(state.reserved.get(self._owner, {}), reservation)

    @property
    def _run_name(self) -> str:
        return f"run {self._ledger.run_id or self._owner}"

    def _accounts(self) -> list[_Account]:
        accounts = []
        if self._month_usd is not None:
            month = month_of(time.time())
            since = datetime.fromtimestamp(month_start(month), UTC)
            advice = "raise language_model.budget_usd (RAG_BUDGET_USD) or wait for the next month"
            label = f"the budget for {month}"
            accounts.append(_Account(f"month {month}", label, self._month_usd, since, advice))
        if self._run_usd is not None:
            advice = "raise language_model.run_budget_usd"
            accounts.append(_Account(self._run_name, "the budget for this run", self._run_usd, None, advice))
        return accounts

    def _spent(self, account: _Account) -> float:
        if account.since is not None:
            return self._ledger.spent_usd(since=account.since)
        return self._ledger.spent_usd(run_id=self._ledger.run_id) if self._ledger.run_id else self._settled_usd

    def _refresh(self, state: _State, accounts: list[_Account]) -> bool:
        """Forget processes that have died, and take what was spent from the ledger; not too often."""
        if time.monotonic() - self._refreshed < _REFRESH_SECONDS:
            return False
        self._forget_dead(state)
        for account in accounts:
            state.spent[account.name] = self._spent(account)
        self._refreshed = time.monotonic()
        return True

    def _enter(self) -> None:
        with self._guard:
            if self._sessions:
                self._sessions += 1
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undone:
                undone.callback(self._withdraw)
                self._presence = FileLock(self._presence_of(self._owner), thread_local=False)
                self._presence.acquire()
                with self._changing() as state:
                    self._forget_dead(state)
                    for account in self._accounts():
                        state.spent[account.name] = self._spent(account)
                    state.reserved[self._owner] = {}
                undone.pop_all()
            self._sessions = 1

    def _leave(self) -> None:
        with self._guard:
            self._sessions -= 1
            if self._sessions:
                return
            with self._changing() as state:
                state.reserved.pop(self._owner, None)
                used = {name for sums in state.reserved.values() for name in sums}
                state.spent = {name: spent for name, spent in state.spent.items() if name in used}
            self._withdraw()

    def _withdraw(self) -> None:
        if self._presence is not None:
            self._presence_of(self._owner).unlink(missing_ok=True)
            self._presence.release()
            self._presence = None

    def _forget_dead(self, state: _State) -> None:
        for owner in [owner for owner in state.reserved if owner != self._owner]:
            path = self._presence_of(owner)
            with suppress(Timeout), FileLock(path, thread_local=False).acquire(timeout=0):
                del state.reserved[owner]
                path.unlink(missing_ok=True)

    def _presence_of(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"

    @contextmanager
    def _changing(self) -> Iterator[_State]:
        """The shared state, held while it is changed and then written."""
        with self._guard, FileLock(self._folder / "state.lock", thread_local=False):
            opened = os.open(self._folder / "state.json", os.O_RDWR | os.O_CREAT, 0o666)
            try:
                state = _read_state(os.read(opened, os.fstat(opened).st_size))
                yield state
                # One write, which a kill does not cut in two, and in place, which is many times faster than a rename:
                # after a power cut there are no reservations to be lost, and what was spent stands in the ledger.
                content = json.dumps({"spent": state.spent, "reserved": state.reserved}).encode()
                os.lseek(opened, 0, os.SEEK_SET)
                os.write(opened, content)
                os.ftruncate(opened, len(content))
            finally:
                os.close(opened)


def _set_aside(sums: dict[str, float], reservation: Reservation | None) -> None:
    """Add a reservation to what a process has reserved, by account."""
    if reservation is not None:
        for name in reservation.accounts:
            sums[name] = sums.get(name, 0.0) + reservation.price_usd


def _take_back(sums: dict[str, float], reservation: Reservation | None) -> None:
    """Take a reservation off what a process has reserved, by account."""
    if reservation is not None:
        for name in reservation.accounts:
            sums[name] = max(0.0, sums.get(name, 0.0) - reservation.price_usd)


def _lacking(state: _State, accounts: list[_Account], price_usd: float, batches_usd: float) -> _Account | None:
    """The first account without room for a price even if nothing were reserved, else the first without room."""

    def room(account: _Account) -> float:
        return account.limit_usd * (1 + _ROUNDING) - state.spent[account.name] - price_usd

    for account in accounts:
        if room(account) < 0:
            return account
    return next((each for each in accounts if room(each) < state.reserved_for(each.name) + batches_usd), None)


def _refusal(state: _State, account: _Account, price_usd: float, batches_usd: float) -> Refusal:
    spent, reserved = state.spent[account.name], state.reserved_for(account.name)
    under_way = f", up to {_dollars(reserved)} is kept for calls under way" if reserved else ""
    if batches_usd:
        under_way += f", up to {_dollars(batches_usd)} for batches under way (`rag-assets batches` lists them)"
    return Refusal(
        f"{account.label} is {_dollars(account.limit_usd)}, of which {_dollars(spent)} is spent{under_way}; the "
        f"next call may cost {_dollars(price_usd)}. Answers that were paid for are kept: {account.advice}, and run "
        "the same again",
        waits=spent + price_usd <= account.limit_usd * (1 + _ROUNDING),
    )


def _read_state(content: bytes) -> _State:
    """The state; none where the file is new or damaged, as the ledger knows better."""
    try:
        stored, _ = json.JSONDecoder().raw_decode(content.decode("utf-8"))
        spent = {str(name): float(sum_usd) for name, sum_usd in stored["spent"].items()}
        reserved = {
            str(owner): {str(name): float(sum_usd) for name, sum_usd in sums.items()}
            for owner, sums in stored["reserved"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return _State()
    return _State(spent, reserved)


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 1 or not amount else f"${amount:.4f}"
