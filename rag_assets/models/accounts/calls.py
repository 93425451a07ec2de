"""The record of one call of a language model: a row of `model_calls` on its way there, as JSON.

What stays out: where records wait (`rag_assets.models.accounts.answers`, `rag_assets.models.accounts.journal`) and how
they get into the table (`rag_assets.models.accounts.ledger`).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import NoneType

import pyarrow as pa

from rag_assets.contracts.tables import MODEL_CALLS


@dataclass(frozen=True)
class CallRecord:
    """A row of `model_calls`; the attributes are its columns. `called_at` is in seconds since 1970 UTC."""

    call_id: str
    called_at: float
    run_id: str | None
    asset: str
    step: str
    partition: str | None
    document_id: str | None
    provider: str
    model: str
    request_key: str
    outcome: str
    cache_hit: bool
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_usd: float
    seconds: float
    batch_id: str | None
    error: str | None

    @property
    def month(self) -> str:
        """Calendar month of the call in UTC, as in `2026-11`."""
        return month_of(self.called_at)

    def to_json(self) -> str:
        """One line of JSON, without a line end."""
        return json.dumps(self.__dict__, ensure_ascii=False)


_PLAIN: dict[object, tuple[type, ...]] = {str: (str,), float: (float, int), int: (int,), bool: (bool,)}
_TYPES = {each.name: _PLAIN.get(each.type, (str, NoneType)) for each in fields(CallRecord)}


def record_from(value: object) -> CallRecord:
    """A record from its JSON.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(value, dict) or value.keys() != _TYPES.keys():
        raise ValueError("not a record of a call")
    if wrong := [name for name, types in _TYPES.items() if not isinstance(value[name], types)]:
        raise ValueError(f"not a record of a call: {wrong}")
    return CallRecord(**value)


def month_of(seconds: float) -> str:
    """Calendar month of a time (seconds since 1970) in UTC, as in `2026-11`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")


def month_start(month: str) -> float:
    """First moment of a month, seconds since 1970 UTC."""
    return datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC).timestamp()


def neighbours(month: str) -> tuple[str, str]:
    """The months before and after a month."""
    start = month_start(month)
    return month_of(start - 1), month_of(start + 31 * 86_400)


def call_rows(records: Iterable[CallRecord]) -> pa.Table:
    """Records as rows of `model_calls`, in the order given."""
    chosen = list(records)
    columns = {name: [_plain(getattr(record, name)) for record in chosen] for name in MODEL_CALLS.schema.names}
    columns["called_at"] = [round(record.called_at * 1_000_000) for record in chosen]
    arrays = [pa.array(columns[field.name], type=field.type) for field in MODEL_CALLS.fields]
    return pa.Table.from_arrays(arrays, schema=MODEL_CALLS.schema)


def _plain(value: object) -> object:
    """A value that Parquet takes: lone surrogates, as odd file names have them, become question marks."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
