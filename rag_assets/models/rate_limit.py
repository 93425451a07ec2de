"""Calls and tokens a minute of all processes that share a folder, and waits that the provider asked one of them for.

What stays out: how many calls run at once (`congestion`), when a failed call is made again (`attempts`).
"""

import asyncio
import hashlib
import json
import logging
import math
import os
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from rag_assets.contracts.errors import ModelError

logger = logging.getLogger(__name__)

_MINUTE = 60.001  # seconds, and what is lost to rounding
_BURST_SHARE = 0.05  # of a minute's calls or tokens that may come at once
_LOOK_SECONDS = 0.25  # between two looks at the state; another process may have given tokens back
_LOCK_SECONDS = (0.0005, 0.003)  # between two tries at the lock, which is held for less
_TICK_SECONDS = 1e-6  # what a time of this century can tell apart
_STUCK_SECONDS = 10.0
_CLOCK_SECONDS = 5.0  # clocks of machines that share the folder may differ so much
_MOST_AHEAD_SECONDS = 3600.0
_STATE_BYTES = 256


@dataclass(frozen=True)
class _State:
    """What the processes share; times in seconds since 1970 UTC.

    Attributes:
        updated_at: When it was written.
        requests_at: When the calls made so far have been paid for by time.
        tokens_at: When the tokens spent so far have been.
        held_until: When the provider wants to be called again.
    """

    updated_at: float = 0.0
    requests_at: float = 0.0
    tokens_at: float = 0.0
    held_until: float = 0.0

    def shifted(self, seconds: float) -> Self:
        return replace(self, **{name: value + seconds for name, value in asdict(self).items()})

    def within(self, latest: float) -> Self:
        return replace(self, **{name: min(value, latest) for name, value in asdict(self).items()})


_NAMES = tuple(field.name for field in fields(_State))


@dataclass(frozen=True)
class _Rate:
    """So many units a minute, in any minute, with a share of them at once.

    Attributes:
        interval: Seconds that pay for a unit; 0 where there is no limit.
        tolerance: Seconds that may be owed when the next unit is spent.
    """

    interval: float
    tolerance: float

    @classmethod
    def of(cls, per_minute: int) -> Self:
        if not per_minute:
            return cls(0.0, math.inf)
        ahead = max(1, int(per_minute * _BURST_SHARE)) - 1
        interval = _MINUTE / (per_minute - ahead)
        return cls(interval, ahead * interval)


class RateLimit:
    """Calls and tokens a minute, shared through a small file that is read and written under a lock.

    In any minute at most `requests_per_minute` calls begin, and at most `tokens_per_minute` tokens are spent, not
    counting the last call. Both arrive evenly; a twentieth of a minute's may come at once. Who waits holds nothing, so
    that a killed process leaves nothing behind. Where no limit is set, the file is only written when the provider asks
    to come back later.

    Not bound to an event loop or a thread.

    Source: generic cell rate algorithm (virtual scheduling), ITU-T I.371, annex A. Deviations: the interval is so much
    shorter that bursts stay within the limit of each minute; a call conforms when the calls before it have been paid
    for, whatever its own size, so that one larger than a burst can be made; its tokens are estimated and settled later.

    Args:
        folder: Where the state lies; made when it is needed.
        name: Whose limits they are: provider, model and account.
        requests_per_minute: Calls a minute; 0 for no limit.
        tokens_per_minute: Tokens a minute, read and written, those from the provider's prompt cache included; 0 for no
            limit.
    """

    def __init__(self, folder: Path, name: str, requests_per_minute: int = 0, tokens_per_minute: int = 0) -> None:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60]
        self._path = folder / f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.json"
        self._requests = _Rate.of(requests_per_minute)
        self._tokens = _Rate.of(tokens_per_minute)
        self._unlimited = not (requests_per_minute or tokens_per_minute)
        self._owed_tokens = 0
        self._owed_guard = threading.Lock()
        self._seen: tuple[int, _State] = (0, _State())

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited."""
        return self._tokens.interval > 0

    async def wait(self, tokens: int) -> None:
        """Wait until a call may begin, and count it. One task a process should wait at a time; others queue behind it.

        Args:
            tokens: Tokens that it will read and write, estimated.

        Raises:
            ModelError: The state cannot be read or written.
        """
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
        """Let no process begin a call for a while.

        Raises:
            ModelError: The state cannot be read or written.
        """
        await self._change(lambda state, now: replace(state, held_until=max(state.held_until, now + seconds)))

    async def close(self) -> None:
        """Tell the other processes of tokens that were not used.

        Raises:
            ModelError: The state cannot be read or written.
        """
        if self._owed_tokens:
            await self._change(self._settled)

    async def _spend(self, tokens: int) -> float:
        """Count a call where it may begin; else the seconds until it may."""
        seconds = 0.0

        def spend(state: _State, now: float) -> _State:
            nonlocal seconds
            state = self._settled(state, now)
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

    def _settled(self, state: _State, now: float) -> _State:
        del now
        with self._owed_guard:
            owed, self._owed_tokens = self._owed_tokens, 0
        return replace(state, tokens_at=state.tokens_at + owed * self._tokens.interval) if owed else state

    async def _held_seconds(self) -> float:
        """Seconds for which the provider wants to be left alone; read without the lock."""
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0.0
        except OSError as error:
            raise self._unusable(error) from error
        now = time.time()
        if changed != self._seen[0]:
            self._seen = (changed, self._read() or _State())
        state = self._seen[1]
        if state.held_until > now and state != _plausible(state, now):
            await self._change(lambda state, _: state)
        return state.held_until - now

    async def _change(self, change: Callable[[_State, float], _State]) -> None:
        began = time.monotonic()
        try:
            while True:
                try:
                    self._lock.acquire(timeout=0)
                    break
                except Timeout:
                    if time.monotonic() - began > _STUCK_SECONDS:
                        began = time.monotonic()
                        logger.warning("%s: another process does not let go of it", self._path)
                    await asyncio.sleep(random.uniform(*_LOCK_SECONDS))  # noqa: S311 - spreads processes
            try:
                now = time.time()
                stored = self._read()
                before = self._spent(now) if stored is None else _plausible(stored, now)
                after = change(before, now)
                if after != stored:
                    self._write(replace(after, updated_at=max(now, before.updated_at)))
            finally:
                self._lock.release()
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> ModelError:
        return ModelError(f"{self._path}: limits cannot be shared: {error.strerror or type(error).__name__}")

    @cached_property
    def _lock(self) -> FileLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self._path.with_suffix(".lock"))

    def _read(self) -> _State | None:
        """The state; None where it is damaged."""
        try:
            values = json.loads(self._path.read_bytes())
            return _State(**{name: _time(values[name]) for name in _NAMES})
        except FileNotFoundError:
            return _State()
        except (ValueError, KeyError, TypeError, RecursionError):
            logger.warning("%s: damaged; goes on as if all that may come at once had come", self._path)
            return None

    def _spent(self, now: float) -> _State:
        """A state in which nothing more may come at once."""
        requests, tokens = (rate.tolerance if rate.interval else 0.0 for rate in (self._requests, self._tokens))
        return _State(now, now + requests, now + tokens)

    def _write(self, state: _State) -> None:
        # One write of constant length: who is killed meanwhile has written all of it or nothing.
        content = json.dumps(asdict(state)).encode().ljust(_STATE_BYTES - 1) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            os.write(descriptor, content)
            os.ftruncate(descriptor, len(content))
        finally:
            os.close(descriptor)


def _time(value: object) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("not a time")
    return float(value)


def _plausible(state: _State, now: float) -> _State:
    """A state as it reads after the clock was set back, and with nothing further ahead than can be."""
    if state.updated_at > now + _CLOCK_SECONDS:
        state = state.shifted(now - state.updated_at)
    return state.within(now + _MOST_AHEAD_SECONDS)
