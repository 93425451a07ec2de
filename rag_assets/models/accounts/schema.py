"""The tables of the state database, and the record of a call, which is a row of `calls` and later of `model_calls`.

What the rows of other tables mean stands where they are written: `answers`, `budget`, `rate_limit`, `open_batches`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from rag_assets.contracts.tables import MODEL_CALLS

SCHEMA_VERSION = "1"
LOCK = "lock"  # row of `meta` that writers hold who must not decide at the same time

metadata = sa.MetaData()


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
    plain_records = [record.plain() for record in records]
    columns = {name: [record[name] for record in plain_records] for name in MODEL_CALLS.schema.names}
    columns["called_at"] = [round(seconds * 1_000_000) for seconds in columns["called_at"]]
    arrays = [pa.array(columns[field.name], type=field.type) for field in MODEL_CALLS.fields]
    return pa.Table.from_arrays(arrays, schema=MODEL_CALLS.schema)


def _call_columns() -> "list[sa.Column[Any]]":
    """Columns of a `CallRecord`, but for its id and the key of its request."""
    kinds: dict[object, Any] = {str: sa.Text(), float: sa.Float(53), int: sa.BigInteger(), bool: sa.Boolean()}
    return [
        sa.Column(name, kinds.get(kind, sa.Text()), nullable=kind not in kinds)
        for name, kind in CallRecord.__annotations__.items()
        if name not in {"call_id", "request_key"}
    ]


META = sa.Table("meta", metadata, sa.Column("name", sa.Text(), primary_key=True), sa.Column("value", sa.Text()))
ANSWERS = sa.Table(
    "answers",
    metadata,
    sa.Column("request_key", sa.String(64), primary_key=True),
    sa.Column("call_id", sa.Text(), nullable=False),
    *_call_columns(),
    sa.Column("text", sa.LargeBinary(), nullable=False),  # no database stores every string that a model may write
    sa.Column("checksum", sa.BigInteger(), nullable=False),
    sa.Column("used_at", sa.Float(53), nullable=False),
)
CALLS = sa.Table(
    "calls",
    metadata,
    sa.Column("call_id", sa.String(200), primary_key=True),
    sa.Column("request_key", sa.String(64), nullable=False),
    *_call_columns(),
    sa.Column("in_table", sa.Boolean(), nullable=False),
)
SPENDING = sa.Table(
    "spending",
    metadata,
    sa.Column("account", sa.Text(), primary_key=True),
    sa.Column("spent_usd", sa.Float(53), nullable=False),
    sa.Column("changed_at", sa.Float(53), nullable=False),
)
OWNERS = sa.Table(
    "owners",
    metadata,
    sa.Column("owner", sa.String(32), primary_key=True),
    sa.Column("host", sa.Text(), nullable=False),
    sa.Column("pid", sa.BigInteger(), nullable=False),
    sa.Column("started", sa.Text(), nullable=False),
    sa.Column("seen_at", sa.Float(53), nullable=False),
)
RESERVATIONS = sa.Table(
    "reservations",
    metadata,
    sa.Column("reservation", sa.String(64), primary_key=True),
    sa.Column("request_key", sa.String(64), nullable=False, index=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("thread", sa.BigInteger(), nullable=False),
    sa.Column("account", sa.Text(), nullable=False),
    sa.Column("run_id", sa.Text()),
    sa.Column("provider", sa.Text(), nullable=False),
    sa.Column("model", sa.Text(), nullable=False),
    sa.Column("asset", sa.Text(), nullable=False),
    sa.Column("step", sa.Text(), nullable=False),
    sa.Column("partition", sa.Text()),
    sa.Column("document_id", sa.Text()),
    sa.Column("price_usd", sa.Float(53), nullable=False),
    sa.Column("reserved_at", sa.Float(53), nullable=False),
    sa.Column("sent_at", sa.Float(53)),
)
LEASES = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.Text(), primary_key=True),
    sa.Column("owner", sa.String(32), nullable=False),
    sa.Column("token", sa.String(32), nullable=False),
)
RATES = sa.Table(
    "rates",
    metadata,
    sa.Column("name", sa.Text(), primary_key=True),
    sa.Column("updated_at", sa.Float(53), nullable=False),
    sa.Column("requests_at", sa.Float(53), nullable=False),
    sa.Column("tokens_at", sa.Float(53), nullable=False),
    sa.Column("held_until", sa.Float(53), nullable=False),
)
BATCHES = sa.Table(
    "batches",
    metadata,
    sa.Column("nonce", sa.String(32), primary_key=True),
    sa.Column("model_name", sa.Text(), nullable=False),
    sa.Column("base_url", sa.Text(), nullable=False),
    sa.Column("created_at", sa.Float(53), nullable=False),
    sa.Column("batch_id", sa.Text()),
    sa.Column("price_usd", sa.Float(53), nullable=False),
    sa.Column("finished_at", sa.Float(53)),
)
BATCH_REQUESTS = sa.Table(
    "batch_requests",
    metadata,
    sa.Column("nonce", sa.String(32), primary_key=True),
    sa.Column("digits", sa.String(64), primary_key=True),
    sa.Column("position", sa.Integer(), nullable=False),
    sa.Column("attempt", sa.Integer(), nullable=False),
    sa.Column("request", sa.LargeBinary(), nullable=False),
)
