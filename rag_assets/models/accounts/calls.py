"""The record of one call of a language model: a row of `model_calls` on its way there.

What stays out: where records wait, and how they get into the table (`rag_assets.models.accounts.ledger`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    batch_id: str | None = None
    error: str | None = None

    @property
    def month(self) -> str:
        """Calendar month of the call in UTC, as in `2026-11`."""
        return month_of(self.called_at)

    def plain(self) -> dict[str, Any]:
        """Its values as databases and Parquet take them, by column."""
        values = self.__dict__
        odd = {
            k: plain_text(v) for k, v in values.items() if isinstance(v, str) and not (v.isascii() and v.isprintable())
        }
        return {**values, **odd}


def plain_text(text: str) -> str:
    """A text that every database takes: lone surrogates, as odd file names have them, become question marks."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def month_of(seconds: float) -> str:
    """Calendar month of a time (seconds since 1970) in UTC, as in `2026-11`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")


def month_start(month: str) -> float:
    """First moment of a month, seconds since 1970 UTC."""
    return datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC).timestamp()


def call_rows(records: Iterable[CallRecord]) -> pa.Table:
    """Records as rows of `model_calls`, in the order given."""
    chosen = [record.plain() for record in records]
    columns = {name: [record[name] for record in chosen] for name in MODEL_CALLS.schema.names}
    columns["called_at"] = [round(seconds * 1_000_000) for seconds in columns["called_at"]]
    arrays = [pa.array(columns[field.name], type=field.type) for field in MODEL_CALLS.fields]
    return pa.Table.from_arrays(arrays, schema=MODEL_CALLS.schema)
