"""What is set aside for calls before they are made, and what calls may cost: in a calendar month (UTC), and in a run.

Before a call is made, the most that it may cost is reserved under its request's key; storing the answer settles that
in the same transaction. So a reservation is also a claim: who asks the same meanwhile waits for the answer. All
processes share the reservations, and whatever a process had sent when it died counts as bought: it is written into the
ledger with the outcome `unknown`, at the most that it may have cost.

What batches under way may cost is written down with each batch (`rag_assets.models.anthropic.open_batches`). It counts
in the current month and in every run, since whichever run reads the results is charged with them. What stays out:
waiting for calls under way, which is `rag_assets.models.metered`.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from rag_assets.contracts.errors import BudgetError
from rag_assets.contracts.generation import Outcome, Request
from rag_assets.models.accounts.database import is_alive, is_heard
from rag_assets.models.accounts.ledger import Ledger, month_account
from rag_assets.models.accounts.schema import (
    ANSWERS,
    BATCHES,
    CALLS,
    OWNERS,
    RESERVATIONS,
    SPENDING,
    CallRecord,
    month_of,
    month_start,
    plain_text,
)
from rag_assets.models.providers import ClaimedError

BATCH_RESULTS_SECONDS = 29 * 86_400.0  # that results of a batch can be had
_ROUNDING = 1e-9
_LOST = "the process that asked ended before the answer came; counted at the most that it may have cost"

_OWNED = RESERVATIONS.outerjoin(OWNERS, OWNERS.c.owner == RESERVATIONS.c.owner)
_WITH_OWNER = sa.select(RESERVATIONS, OWNERS.c.host, OWNERS.c.pid, OWNERS.c.started, OWNERS.c.seen_at).select_from(
    _OWNED
)
_BY_KEY = _WITH_OWNER.where(RESERVATIONS.c.request_key == sa.bindparam("key"))
_BY_KEYS = _WITH_OWNER.where(RESERVATIONS.c.request_key.in_(sa.bindparam("keys", expanding=True)))
_ANSWERED = sa.select(ANSWERS.c.request_key).where(ANSWERS.c.request_key == sa.bindparam("key"))
_ASKED = sa.select(RESERVATIONS.c.request_key).where(RESERVATIONS.c.request_key == sa.bindparam("key"))
_TAKEN = _ANSWERED.union_all(_ASKED)
_IDS = RESERVATIONS.c.reservation.in_(sa.bindparam("ids", expanding=True))
_INSERT = sa.insert(RESERVATIONS)
_SENT = sa.update(RESERVATIONS).where(_IDS, RESERVATIONS.c.sent_at.is_(None)).values(sent_at=sa.bindparam("now"))
_REPRICE = (
    sa.update(RESERVATIONS)
    .where(RESERVATIONS.c.reservation == sa.bindparam("id"))
    .values(price_usd=sa.bindparam("price"))
)
_BURY = sa.delete(OWNERS).where(  # but for who has given a sign meanwhile
    OWNERS.c.owner == sa.bindparam("dead"), OWNERS.c.seen_at == sa.bindparam("seen")
)
_RELEASE = sa.delete(RESERVATIONS).where(_IDS)
_BATCHES_USD = sa.select(sa.func.coalesce(sa.func.sum(BATCHES.c.price_usd), 0.0)).where(
    BATCHES.c.finished_at.is_(None), BATCHES.c.created_at > sa.bindparam("oldest")
)
_RESERVED = sa.select(sa.func.coalesce(sa.func.sum(RESERVATIONS.c.price_usd), 0.0)).where(
    RESERVATIONS.c.reservation != sa.bindparam("but")
)
_RESERVED_BY_RUN = _RESERVED.where(RESERVATIONS.c.account == sa.bindparam("account"))
_SPENT = sa.select(SPENDING.c.spent_usd).where(SPENDING.c.account == sa.bindparam("account"))


@dataclass(frozen=True)
class _Account:
    """One limit: since when spending counts for it (None for a run), and how to go on when it is spent."""

    name: str
    label: str
    limit_usd: float
    since: datetime | None
    advice: str


class Budget:
    """Reservations of calls, and limits on what they cost, shared by all processes; for any number of threads.

    A reservation is known by its id. Methods raise `StoreError` where the database or the ledger does not work.

    Args:
        ledger: Knows what was spent.
        month_usd: US dollars that calls may cost in a calendar month (UTC); None for no limit.
        run_usd: US dollars that the calls of the ledger's run may cost; None for no limit. Outside a run, those of this
            ledger from now on.
    """

    def __init__(self, ledger: Ledger, month_usd: float | None = None, run_usd: float | None = None) -> None:
        self._ledger = ledger
        self._database = ledger.database
        self._month_usd = month_usd
        self._run_usd = run_usd

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._month_usd is not None or self._run_usd is not None

    @contextmanager
    def session(self) -> Iterator[None]:
        """Take part: others see that this process lives, and what processes that died have bought is settled."""
        with self._database.presence():
            self.settle_dead()
            yield

    def reserve(
        self,
        model_name: str,
        key: str,
        request: Request,
        price_usd: float,
        earlier: str | None = None,
        *,
        is_claimed: bool = False,
    ) -> str:
        """Set the most that a call may cost aside, within `session`.

        Args:
            model_name: Provider and model.
            key: `request_key` of the request.
            request: What is asked.
            price_usd: The most that it may cost.
            earlier: What is reserved for it already, and stays so where it is refused.
            is_claimed: Whether it is the caller's to ask, since it was in a batch that left it unanswered.

        Returns:
            The reservation.

        Raises:
            BudgetError: There is not enough left.
            ClaimedError: The same is being asked, or has just been answered.
        """
        refusal: BudgetError | ClaimedError | None = None
        reservation = earlier or self._ledger.next_id()
        with self._database.transaction(exclusive=True) as connection:
            if earlier is None and not is_claimed and self._is_claimed(connection, key):
                refusal = ClaimedError(request)
            elif self.limited and price_usd > 0:
                refusal = self._refusal(connection, price_usd, earlier)
            if refusal is None and earlier is not None:
                connection.execute(_REPRICE, {"id": earlier, "price": price_usd})
            elif refusal is None:
                connection.execute(_INSERT, self._row(model_name, key, request, reservation, price_usd))
        if refusal is not None:  # raised only now: what was settled for dead processes stays
            raise refusal
        return reservation

    def is_asked(self, keys: Sequence[str]) -> set[str]:
        """Which requests others are asking at the moment."""
        rows = self._database.read_keys(_BY_KEYS, keys)
        return {row.request_key for row in rows if self._is_elsewhere(row) and _claims(row)}

    def send(self, reservations: Iterable[str]) -> None:
        """Take note that calls are being sent: from now on the provider may charge for them."""
        if ids := list(reservations):
            with self._database.transaction() as connection:
                connection.execute(_SENT, {"ids": ids, "now": time.time()})

    def release(self, reservations: Iterable[str]) -> None:
        """Give reservations back, of calls that were not made or that count from now on as a batch under way."""
        if ids := list(reservations):
            with self._database.transaction() as connection:
                connection.execute(_RELEASE, {"ids": ids})

    def abandon(self, reservations: Iterable[str]) -> None:
        """Give up calls without an answer: those that were sent count as bought, at the most that they may cost."""
        if ids := list(reservations):
            with self._database.transaction() as connection:
                self._settle(
                    connection, connection.execute(sa.select(RESERVATIONS).where(_IDS), {"ids": ids}).fetchall()
                )

    def settle_dead(self) -> None:
        """Settle what processes have reserved that died."""
        if any(not _is_held(row) for row in self._database.read(_WITH_OWNER)):
            with self._database.transaction(durable=True, exclusive=True) as connection:
                rows = connection.execute(_WITH_OWNER).fetchall()
                self._settle(connection, [row for row in rows if not _is_held(row)])
        dead = [
            {"dead": row.owner, "seen": row.seen_at}
            for row in self._database.read(sa.select(OWNERS))
            if not is_alive(row)
        ]
        if dead:
            with self._database.transaction() as connection:
                connection.execute(_BURY, dead)

    def _settle(self, connection: Connection, rows: "Iterable[Row[Any]]") -> None:
        """Write calls into the ledger that may have been paid for, and forget those that were not sent."""
        settled_rows = list(rows)
        for row in settled_rows:
            if row.sent_at is not None:
                self._ledger.add(connection, [_unknown(row)], [row.account])
        if settled_rows:
            connection.execute(_RELEASE, {"ids": [row.reservation for row in settled_rows]})

    def _is_claimed(self, connection: Connection, key: str) -> bool:
        if connection.execute(_TAKEN, {"key": key}).first() is None:
            return False
        # Reservations first: an answer that takes the place of one in between is then seen as the one or as both.
        rows = [row for row in connection.execute(_BY_KEY, {"key": key}).fetchall() if self._is_elsewhere(row)]
        if connection.execute(_ANSWERED, {"key": key}).first() is not None:
            return True
        if dead := [row for row in rows if not _is_held(row)]:
            self._settle(connection, dead)
        return any(_claims(row) for row in rows if row not in dead)

    def _is_elsewhere(self, row: "Row[Any]") -> bool:
        """Whether the answer comes from another process or thread; nobody waits for itself."""
        return row.owner != self._database.owner or bool(row.thread != threading.get_ident())

    def _row(self, model_name: str, key: str, request: Request, reservation: str, price_usd: float) -> dict[str, Any]:
        provider, _, model = model_name.partition(":")
        tag = request.tag
        return {
            "reservation": reservation,
            "request_key": key,
            "owner": self._database.owner,
            "thread": threading.get_ident(),
            "account": self._ledger.account,
            "run_id": self._ledger.run_id,
            "provider": provider,
            "model": model,
            "asset": tag.asset,
            "step": tag.step,
            "partition": tag.partition,
            "document_id": None if tag.document_id is None else plain_text(tag.document_id),
            "price_usd": price_usd,
            "reserved_at": time.time(),
            "sent_at": None,
        }

    def _accounts(self) -> list[_Account]:
        accounts = []
        if self._month_usd is not None:
            month = month_of(time.time())
            since = datetime.fromtimestamp(month_start(month), UTC)
            advice = "raise language_model.budget_usd (RAG_BUDGET_USD) or wait for the next month"
            label = f"the budget for {month}"
            accounts.append(_Account(month_account(time.time()), label, self._month_usd, since, advice))
        if self._run_usd is not None:
            advice = "raise language_model.run_budget_usd"
            accounts.append(_Account(self._ledger.account, "the budget for this run", self._run_usd, None, advice))
        return accounts

    def _spent(self, connection: Connection, account: _Account) -> float:
        """What was spent; summed up from the ledger the first time, and added to by each call from then on."""
        spent_usd: float | None = connection.execute(_SPENT, {"account": account.name}).scalar()
        if spent_usd is not None:
            return spent_usd
        self._database.hold(connection, CALLS)  # else a call that is being written down is neither summed up nor added
        spent_usd = 0.0
        if account.since is not None:
            spent_usd = self._ledger.spent_usd(since=account.since, connection=connection)
        elif self._ledger.run_id:
            spent_usd = self._ledger.spent_usd(run_id=self._ledger.run_id, connection=connection)
        row = {"account": account.name, "spent_usd": spent_usd, "changed_at": time.time()}
        connection.execute(sa.insert(SPENDING), row)
        return spent_usd

    def _refusal(self, connection: Connection, price_usd: float, earlier: str | None) -> BudgetError | None:
        """Why there is no room: the first account without room even if nothing were reserved, else the first one."""
        under_way_usd = batches_usd(connection)
        full = None
        for account in self._accounts():
            spent_usd = self._spent(connection, account)
            values = {"but": earlier or "", "account": account.name}
            statement = _RESERVED_BY_RUN if account.since is None else _RESERVED
            reserved_usd = connection.execute(statement, values).scalar() or 0.0
            room = account.limit_usd * (1 + _ROUNDING) - spent_usd - price_usd
            message = _message(account, spent_usd, reserved_usd, under_way_usd, price_usd)
            if room < 0:
                return BudgetError(message)
            if room < reserved_usd + under_way_usd and full is None:
                full = BudgetError(message, may_pass=True)
        return full


def batches_usd(connection: Connection) -> float:
    """The most that all batches may cost whose results can still be had."""
    return float(connection.execute(_BATCHES_USD, {"oldest": time.time() - BATCH_RESULTS_SECONDS}).scalar_one())


def _is_held(row: "Row[Any]") -> bool:
    """Whether the process that made a reservation may still live."""
    return row.host is not None and is_alive(row)


def _claims(row: "Row[Any]") -> bool:
    """Whether the answer to a reservation is worth waiting for: its process lives, and is not stopped."""
    return _is_held(row) and is_heard(row)


def _unknown(row: "Row[Any]") -> CallRecord:
    return CallRecord(
        call_id=row.reservation,
        called_at=row.sent_at,
        run_id=row.run_id,
        asset=row.asset,
        step=row.step,
        partition=row.partition,
        document_id=row.document_id,
        provider=row.provider,
        model=row.model,
        request_key=row.request_key,
        outcome=Outcome.UNKNOWN.value,
        cache_hit=False,
        cost_usd=row.price_usd,
        error=_LOST,
    )


def _message(account: _Account, spent_usd: float, reserved_usd: float, batches_usd: float, price_usd: float) -> str:
    addition = f", up to {_dollars(reserved_usd)} is kept for calls under way" if reserved_usd else ""
    if batches_usd:
        addition += f", up to {_dollars(batches_usd)} for batches under way (`rag-assets batches` lists them)"
    return (
        f"{account.label} is {_dollars(account.limit_usd)}, of which {_dollars(spent_usd)} is spent{addition}; the "
        f"next call may cost {_dollars(price_usd)}. Paid answers are kept: {account.advice}, and run the same again"
    )


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 1 or not amount else f"${amount:.4f}"
