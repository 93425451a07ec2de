"""Calls and tokens a minute of all processes that share a database, and waits that the provider asked one of them
for.
"""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import sqlalchemy as sa

from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.models.accounts.database import StateDatabase
from rag_assets.models.accounts.schema import RATES

_MINUTE = 60.001  # seconds, and what is lost to rounding
_BURST_SHARE = 0.05  # of a minute's calls or tokens that may come at once
_LOOK_SECONDS = 0.25  # between two looks at the state; another process may have given tokens back
_TICK_SECONDS = 1e-6  # what a time of this century can tell apart
_CLOCK_SECONDS = 5.0  # clocks of machines that share the database may differ so much
_MOST_AHEAD_SECONDS = 3600.0

_FIND = sa.select(RATES).where(RATES.c.name == sa.bindparam("rate"))
_FIND_ALONE = _FIND.with_for_update()


@dataclass(frozen=True)
class _State:
    """What the processes share; times in seconds since 1970 UTC."""

    updated_at: float = 0.0  # when it was written
    requests_at: float = 0.0  # when the calls made so far have been paid for by time
    tokens_at: float = 0.0  # when the tokens spent so far have been
    held_until: float = 0.0  # when the provider wants to be called again

    def shifted(self, seconds: float) -> Self:
        return replace(self, **{name: value + seconds for name, value in asdict(self).items()})

    def within(self, latest: float) -> Self:
        return replace(self, **{name: min(value, latest) for name, value in asdict(self).items()})


@dataclass(frozen=True)
class _Rate:
    """So many units a minute, in any minute, with a share of them at once."""

    interval: float  # seconds that pay for a unit; 0 where there is no limit
    tolerance: float  # seconds that may be owed when the next unit is spent

    @classmethod
    def of(cls, per_minute: int) -> Self:
        if not per_minute:
            return cls(0.0, math.inf)
        ahead = max(1, int(per_minute * _BURST_SHARE)) - 1
        interval = _MINUTE / (per_minute - ahead)
        return cls(interval, ahead * interval)


class RateLimit:
    """Calls and tokens a minute, shared through a row that is read and written in one short transaction.

    In any minute at most `requests_per_minute` calls begin, and at most `tokens_per_minute` tokens are spent, not
    counting the last call. Both arrive evenly; a twentieth of a minute's may come at once. Who waits holds nothing, so
    that a killed process leaves nothing behind. Where no limit is set, the row is only written when the provider asks
    to come back later.

    Not bound to an event loop or a thread. Methods raise `ModelError` where the state cannot be read or written.

    Source: generic cell rate algorithm (virtual scheduling), ITU-T I.371, annex A. Deviations: the interval is so much
    shorter that bursts stay within the limit of each minute; a call conforms when the calls before it have been paid
    for, whatever its own size, so that one larger than a burst can be made; its tokens are estimated and settled later.

    Args:
        database: Holds the state.
        name: Whose limits they are: provider, model and account.
        requests_per_minute: Calls a minute; 0 for no limit.
        tokens_per_minute: Tokens a minute, read and written, those from the provider's prompt cache included; 0 for no
            limit.
    """

    def __init__(
        self, database: StateDatabase, name: str, requests_per_minute: int = 0, tokens_per_minute: int = 0
    ) -> None:
        self._database = database
        self._name = name
        self._requests = _Rate.of(requests_per_minute)
        self._tokens = _Rate.of(tokens_per_minute)
        self._unlimited = not (requests_per_minute or tokens_per_minute)
        self._owed_tokens = 0
        self._owed_guard = threading.Lock()
        self._seen: tuple[float, _State] = (-math.inf, _State())

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited."""
        return self._tokens.interval > 0

    async def wait(self, tokens: int) -> None:
        """Wait until a call of so many tokens may begin, and count it. One task a process should wait at a time."""
        while True:
            seconds = await self._held_seconds() if self._unlimited else await self._spend(tokens)
            if seconds <= _TICK_SECONDS:
                return
            await asyncio.sleep(min(seconds, _LOOK_SECONDS))

    def settle(self, estimated_tokens: int, tokens: int) -> None:
        """Correct what a call was counted as; reaches the other processes with the next look at the state."""
        if self.counts_tokens:
            with self._owed_guard:
                self._owed_tokens += tokens - estimated_tokens

    async def hold(self, seconds: float) -> None:
        """Let no process begin a call for a while."""
        await self._change(lambda state, now: replace(state, held_until=max(state.held_until, now + seconds)))
        self._seen = (-math.inf, _State())

    async def close(self) -> None:
        """Tell the other processes of tokens that were not used."""
        if self._owed_tokens:
            await self._change(self._settle_owed)

    async def _spend(self, tokens: int) -> float:
        """Count a call where it may begin; else the seconds until it may."""
        seconds = 0.0

        def spend(state: _State, now: float) -> _State:
            nonlocal seconds
            state = self._settle_owed(state, now)
            seconds = max(
                state.held_until - now,
                state.requests_at - self._requests.tolerance - now,
                state.tokens_at - self._tokens.tolerance - now,
            )
            if seconds > _TICK_SECONDS:
                return state
            return replace(
                state,
                requests_at=max(state.requests_at, now) + self._requests.interval,
                tokens_at=max(state.tokens_at, now) + self._tokens.interval * tokens,
            )

        await self._change(spend)
        return seconds

    def _settle_owed(self, state: _State, now: float) -> _State:
        del now
        with self._owed_guard:
            owed_tokens, self._owed_tokens = self._owed_tokens, 0
        return replace(state, tokens_at=state.tokens_at + owed_tokens * self._tokens.interval) if owed_tokens else state

    async def _held_seconds(self) -> float:
        """Seconds for which the provider wants to be left alone, as of the last look at the state."""
        now = time.time()
        if not 0 <= now - self._seen[0] < _LOOK_SECONDS:
            self._seen = (now, await asyncio.to_thread(self._look))
        state = self._seen[1]
        if state.held_until > now and state != _plausible(state, now):
            await self._change(lambda state, _: state)
            self._seen = (-math.inf, state)
            return _TICK_SECONDS * 2
        return state.held_until - now

    def _look(self) -> _State:
        try:
            rows = self._database.read(_FIND, {"rate": self._name})
        except StoreError as error:
            raise ModelError(f"limits cannot be shared: {error}") from error
        return _stored_state(rows[0]) if rows else _State()

    async def _change(self, change: Callable[[_State, float], _State]) -> None:
        """Change the state in one transaction, in a thread, since other processes may have to be waited for."""
        await asyncio.to_thread(self._change_now, change)

    def _change_now(self, change: Callable[[_State, float], _State]) -> None:
        try:
            with self._database.transaction(exclusive=True) as connection:
                now = time.time()
                row = connection.execute(_FIND_ALONE, {"rate": self._name}).first()
                stored_state = _State() if row is None else _stored_state(row)
                before = _plausible(stored_state, now)
                after = change(before, now)
                if after == stored_state:
                    return
                values = asdict(replace(after, updated_at=max(now, before.updated_at)))
                if row is None:
                    connection.execute(self._database.insert(RATES), {"name": self._name, **values})
                else:
                    connection.execute(sa.update(RATES).where(RATES.c.name == self._name).values(**values))
        except StoreError as error:
            raise ModelError(f"limits cannot be shared: {error}") from error


def _stored_state(row: "sa.Row[Any]") -> _State:
    return _State(*(getattr(row, field.name) for field in fields(_State)))


def _plausible(state: _State, now: float) -> _State:
    """A state as it reads after the clock was set back, and with nothing further ahead than can be."""
    if state.updated_at > now + _CLOCK_SECONDS:
        state = state.shifted(now - state.updated_at)
    return state.within(now + _MOST_AHEAD_SECONDS)
