"""What is remembered of batches under way, so that answers which are paid for outlast the process that asked.

A batch is two files: `<nonce>.jsonl.gz`, the intent, written before the provider hears of it, and `<nonce>.id`, its id
there, written right after. An intent without an id means that its process died in between, or that the call got lost:
whether there is such a batch can then only be asked of the provider. With the requests stands what they may cost, so
that a budget counts a batch from the moment before it is sent until its results have been read.

Source: https://platform.claude.com/docs/en/build-with-claude/batch-processing (results can be had for 29 days)
"""

import gzip
import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Message, Request, Tag

_DIGITS = 40
_INTENT, _ID, _ASIDE = ".jsonl.gz", ".id", ".tmp"
_RESULTS_SECONDS = 29 * 86_400.0


@dataclass(frozen=True)
class OpenBatch:
    """A batch whose results have not been read to the end.

    Attributes:
        nonce: Begins the custom ids of its requests.
        model_name: Provider and model.
        base_url: Server that it was sent to.
        created_at: When it was about to be sent, seconds since 1970 UTC.
        batch_id: The provider's id; None where it is not known whether the provider has it.
        attempts: Which attempt it is for each request, by custom id.
        price_usd: The most that it may cost.
    """

    nonce: str
    model_name: str
    base_url: str
    created_at: float
    batch_id: str | None
    attempts: dict[str, int]
    price_usd: float

    @property
    def lost(self) -> bool:
        """Whether its results can no longer be had."""
        return time.time() > self.created_at + _RESULTS_SECONDS

    @property
    def requests(self) -> int:
        """Number of its requests."""
        return len(self.attempts)


@dataclass(frozen=True)
class BatchEntry:
    """One request of a batch to be sent.

    Attributes:
        digits: See `key_digits`.
        request: What is asked.
        attempt: Which attempt it is, from 1.
    """

    digits: str
    request: Request
    attempt: int


def key_digits(key: str) -> str:
    """The part of a request's key that stands in its custom id."""
    return key[:_DIGITS]


def digits_of(custom_id: str) -> str:
    """The part of the key that a custom id holds."""
    return custom_id.partition("-")[2]


class BatchFiles:
    """The files in a folder.

    Args:
        folder: Made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, OpenBatch] = {}

    def lock(self) -> AbstractContextManager[object]:
        """Held by whoever looks for open batches and sends new ones."""
        from filelock import FileLock

        self._folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self._folder / "lock")

    def write(self, model_name: str, base_url: str, entries: Iterable[BatchEntry], price_usd: float) -> OpenBatch:
        """Write an intent; it is on the disk when this returns.

        Args:
            model_name: Provider and model.
            base_url: Server that it will be sent to.
            entries: Its requests.
            price_usd: The most that it may cost.
        """
        nonce = secrets.token_hex(6)
        entries = list(entries)
        attempts = {f"{nonce}-{entry.digits}": entry.attempt for entry in entries}
        batch = OpenBatch(nonce, model_name, base_url, time.time(), None, attempts, price_usd)
        aside = self._folder / f"{nonce}{_ASIDE}"
        with aside.open("wb") as file:
            with gzip.open(file, "wt", compresslevel=3, encoding="ascii") as lines:
                lines.write(json.dumps(asdict(batch)) + "\n")
                for entry in entries:
                    lines.write(json.dumps(_fields(entry.request)) + "\n")
            _sync(file)
        self._commit(aside, self._folder / f"{nonce}{_INTENT}")
        return batch

    def write_id(self, nonce: str, batch_id: str) -> None:
        """Write down the id that the provider gave; it is on the disk when this returns."""
        aside = self._folder / f"{nonce}{_ID}{_ASIDE}"
        with aside.open("wb") as file:
            file.write(batch_id.encode("utf-8"))
            _sync(file)
        self._commit(aside, self._folder / f"{nonce}{_ID}")

    def touch(self, nonce: str) -> None:
        """Note that a batch is being sent now."""
        os.utime(self._folder / f"{nonce}{_INTENT}")

    def sent_at(self, nonce: str) -> float:
        """When a batch was last being sent, seconds since 1970 UTC; 0 where it has been forgotten."""
        try:
            return (self._folder / f"{nonce}{_INTENT}").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def read_id(self, nonce: str) -> str | None:
        """The provider's id of a batch, as far as it is known."""
        try:
            return (self._folder / f"{nonce}{_ID}").read_text("utf-8") or None
        except FileNotFoundError:
            return None

    def ids(self) -> set[str]:
        """The provider's ids of all batches, as far as they are known."""
        ids = (self.read_id(path.name.removesuffix(_ID)) for path in self._folder.glob(f"*{_ID}"))
        return {batch_id for batch_id in ids if batch_id}

    def open_batches(self, known: Collection[str] = ()) -> list[OpenBatch]:
        """All batches, oldest first.

        Args:
            known: Nonces of batches that are left out.

        Raises:
            ModelError: A file is damaged.
        """
        found = []
        for path in self._folder.glob(f"*{_INTENT}"):
            nonce = path.name.removesuffix(_INTENT)
            if nonce not in known:
                with suppress(FileNotFoundError), path.open("rb") as file:
                    found.append(self._read_header(file, nonce))
        return sorted(found, key=lambda batch: (batch.created_at, batch.nonce))

    def price_usd(self) -> float:
        """The most that all batches may cost whose results can still be had.

        Raises:
            ModelError: A file is damaged.
        """
        nonces = {path.name.removesuffix(_INTENT) for path in self._folder.glob(f"*{_INTENT}")}
        self._known = {nonce: batch for nonce, batch in self._known.items() if nonce in nonces}
        if nonces - self._known.keys():
            found = self.open_batches(self._known)
            self._known.update((batch.nonce, replace(batch, attempts={})) for batch in found)
        return sum(batch.price_usd for batch in self._known.values() if not batch.lost)

    def hold(self, nonce: str) -> BinaryIO:
        """Open an intent, so that it can be read even after another process has removed it.

        Raises:
            FileNotFoundError: It has been removed.
        """
        return (self._folder / f"{nonce}{_INTENT}").open("rb")

    def remove(self, nonce: str) -> None:
        """Forget a batch."""
        for suffix in (_INTENT, _ID):
            with suppress(FileNotFoundError, PermissionError):  # Windows keeps files that a process holds open
                (self._folder / f"{nonce}{suffix}").unlink()

    def tidy(self) -> None:
        """Remove what killed processes left unfinished; only under the lock."""
        for path in self._folder.glob(f"*{_ASIDE}"):
            path.unlink(missing_ok=True)
        for path in self._folder.glob(f"*{_ID}"):
            if not (self._folder / f"{path.name.removesuffix(_ID)}{_INTENT}").exists():
                path.unlink(missing_ok=True)

    def _read_header(self, file: BinaryIO, nonce: str) -> OpenBatch:
        try:
            with gzip.open(file, "rt", encoding="ascii") as lines:
                header = json.loads(lines.readline())
            return OpenBatch(**{**header, "batch_id": self.read_id(nonce)})
        except (gzip.BadGzipFile, EOFError, ValueError, TypeError) as error:
            raise ModelError(f"{file.name}: expected a batch under way, found a damaged file: {error}") from error

    def _commit(self, aside: Path, path: Path) -> None:
        aside.replace(path)
        with suppress(OSError):  # not every platform can sync a folder
            opened = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)


def read_requests(intent: BinaryIO) -> Iterator[tuple[str, Request]]:
    """The requests of an intent with their custom ids."""
    intent.seek(0)
    with gzip.open(intent, "rt", encoding="ascii") as lines:
        attempts: dict[str, int] = json.loads(lines.readline())["attempts"]
        for custom_id, line in zip(attempts, lines, strict=True):
            yield custom_id, _request(json.loads(line))


def _fields(request: Request) -> dict[str, object]:
    return {
        "prefix": request.prefix,
        "messages": [[message.role, message.text] for message in request.messages],
        "max_tokens": request.max_tokens,
        "tag": [request.tag.asset, request.tag.step, request.tag.document_id, request.tag.partition],
        "system": request.system,
        "schema": request.schema,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop": request.stop,
        "attempt": request.attempt,
    }


def _request(fields: dict[str, JsonValue]) -> Request:
    messages = cast("list[list[str]]", fields["messages"])
    return Request(
        prefix=cast("str", fields["prefix"]),
        messages=tuple(Message("user" if role == "user" else "assistant", text) for role, text in messages),
        max_tokens=cast("int", fields["max_tokens"]),
        tag=Tag(*cast("list[str]", fields["tag"])),
        system=cast("str", fields["system"]),
        schema=cast("str | None", fields["schema"]),
        temperature=cast("float | None", fields["temperature"]),
        seed=cast("int | None", fields["seed"]),
        stop=tuple(cast("list[str]", fields["stop"])),
        attempt=cast("int", fields.get("attempt", 0)),
    )


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
