"""Taking over what an earlier release kept in files of `models/`: answers, journals of calls and open batches.

Happens once, when the state database is first opened; one that was interrupted begins again, which changes nothing
that is there already. The folders are moved aside, and then removed, when everything is in the database.

```
answers/<2 digits>/<key>.json, answers/pending/<2 digits>/<key>-<id>.json      answers with the records of their calls
journal/<id>.jsonl                                                             records of calls without an answer
batches/<nonce>.jsonl.gz, batches/<nonce>.id                                   batches under way
budget/, limits/                                                               known to the ledger, or short-lived
```
"""

import gzip
import hashlib
import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.generation import Outcome, Request
from rag_assets.models.accounts.answers import StoredAnswer, answer_row
from rag_assets.models.accounts.database import StateDatabase, pieces
from rag_assets.models.accounts.ledger import Ledger
from rag_assets.models.accounts.schema import ANSWERS, CallRecord
from rag_assets.models.anthropic.open_batches import BatchStore, OpenBatch, request_from
from rag_assets.store.lake import Lake

_FOLDERS = ("answers", "journal", "batches", "budget", "limits")
_HEAD, _MIDDLE, _TAIL = b'{"sha256":"', b'","entry":', b"}"
_BODY = len(_HEAD) + 64 + len(_MIDDLE)
_log = logging.getLogger(__name__)


def take_over(models: Path, lake: Lake, database: StateDatabase) -> None:
    """Bring the files of an earlier release into the database; nothing where there are none.

    Args:
        models: Folder `models` of the home.
        lake: Holds the table `model_calls`.
        database: Where they go.

    Raises:
        StoreError: They cannot be read, or the database cannot be written.
    """
    if not any((models / name).is_dir() for name in _FOLDERS):
        return
    with database.lease("takeover"):
        ledger = Ledger(lake, database)
        try:
            answers = sum(_take_answers(ledger, models / "answers", pending=pending) for pending in (False, True))
            calls = _take_calls(ledger, models / "journal")
            batches = _take_batches(BatchStore(database), models / "batches")
            for name in _FOLDERS:
                _remove(models / name)
        except OSError as error:
            raise StoreError(f"{models}: files of an earlier release cannot be taken over: {error}") from error
    _log.info("%s: taken over: %d answers, %d calls, %d batches", database.place, answers, calls, batches)


def _remove(folder: Path) -> None:
    """Remove a folder, at once and as a whole as far as others can see."""
    if folder.is_dir():
        aside = folder.with_name(f"{folder.name}.taken-over")
        shutil.rmtree(aside, ignore_errors=True)  # left by a process that was killed
        folder.replace(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _take_answers(ledger: Ledger, folder: Path, *, pending: bool) -> int:
    """Answers, and of pending ones the calls as well, which the ledger's table may not have."""
    paths = folder.glob("pending/??/*.json" if pending else "??/*.json")
    entries = (entry for path in paths if (entry := _read_answer(path)) is not None)
    count = 0
    for piece in pieces(entries):
        rows = [answer_row(answer, record, used_at) for answer, record, used_at in piece]
        with ledger.database.transaction(durable=True) as connection:
            connection.execute(ledger.database.insert(ANSWERS), rows)
            if pending:
                ledger.add(connection, [record for _, record, _ in piece])
        count += len(piece)
    return count


def _read_answer(path: Path) -> tuple[StoredAnswer, CallRecord, float] | None:
    try:
        content, used_at = path.read_bytes(), path.stat().st_mtime
    except FileNotFoundError:
        return None
    entry = content[_BODY : -len(_TAIL)]
    digest = hashlib.sha256(entry).hexdigest().encode()
    try:
        if not (content.startswith(_HEAD + digest + _MIDDLE) and content.endswith(_TAIL)):
            entry = b""
        value = json.loads(entry)
        record = CallRecord(**value["call"])
        return StoredAnswer(value["text"], Outcome(record.outcome), record.error), record, used_at
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("%s: a damaged answer counts as absent: %s", path, error)
        return None


def _take_calls(ledger: Ledger, folder: Path) -> int:
    count = 0
    for path in sorted(folder.glob("*.jsonl")):
        for piece in pieces(_read_calls(path)):
            with ledger.database.transaction(durable=True) as connection:
                ledger.add(connection, piece)
            count += len(piece)
    return count


def _read_calls(path: Path) -> Iterator[CallRecord]:
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):  # else its writer was killed
            try:
                yield CallRecord(**json.loads(line.decode("utf-8", "surrogatepass")))
            except (ValueError, TypeError) as error:
                _log.warning("%s: a line is left out: %s", path, error)


def _take_batches(store: BatchStore, folder: Path) -> int:
    count = 0
    for path in sorted(folder.glob("*.jsonl.gz")):
        try:
            batch, requests = _read_batch(path)
        except (OSError, EOFError, ValueError, TypeError, KeyError) as error:
            aside = folder.parent.parent / "damaged" / "batches" / path.name
            aside.parent.mkdir(parents=True, exist_ok=True)
            path.replace(aside)
            _log.warning("%s: a batch under way cannot be read and is set aside in %s: %s", path, aside, error)
            continue
        store.add(batch, requests)
        count += 1
    return count


def _read_batch(path: Path) -> tuple[OpenBatch, list[Request]]:
    named = path.with_name(path.name.removesuffix(".jsonl.gz") + ".id")
    batch_id = named.read_text("utf-8") if named.exists() else ""
    with gzip.open(path, "rt", encoding="ascii") as lines:
        batch = OpenBatch(**{**json.loads(lines.readline()), "batch_id": batch_id or None})
        return batch, [request_from(cast("dict[str, Any]", json.loads(line))) for line in lines]
