"""The tables of the state database.

What stays out: what their rows mean (`answers`, `ledger`, `budget`, `rate_limit`, `batch_store`), and the database
itself (`database`).
"""

from typing import Any

import sqlalchemy as sa

from rag_assets.models.accounts.calls import CallRecord

SCHEMA_VERSION = "1"
LOCK = "lock"  # row of `meta` that writers hold who must not decide at the same time

metadata = sa.MetaData()


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
