"""Publishing: compacts the serving tables, moves the readers to what is stored, drops what is old."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.ports import Embedder
from rag_assets.contracts.tables import TABLES, VECTOR_TABLES
from rag_assets.store.integrity import all_problems
from rag_assets.store.lake import Lake
from rag_assets.store.snapshots import Snapshot, Snapshots
from rag_assets.store.vectors import VectorStore

_SHOWN = 20


def publish(
    lake: Lake,
    vectors: VectorStore,
    snapshots: Snapshots,
    pipeline: str,
    embedder: Embedder,
    kept_snapshots: int,
    unfinished: Callable[[], Sequence[str]],
) -> Snapshot:
    """Publish what is stored now, if it holds together.

    Everything is verified here and not only by the checks of the run: a backfill in several runs publishes in a run of
    its own, whatever became of the others.

    Args:
        lake: The stored tables.
        vectors: The serving tables, in step with them.
        snapshots: Where versions are published.
        pipeline: Digest of the code and settings that computed the tables.
        embedder: Embedder of the vectors.
        kept_snapshots: Snapshots kept for rollback; files that none of them names are removed.
        unfinished: Names what was not computed from what the step before it stored last.

    Returns:
        The new snapshot, or the newest one where it names the same versions.

    Raises:
        StoreError: What is stored does not hold together, or another run is writing; readers stay where they are.
    """
    numbers = snapshots.numbers()
    kept = [snapshots.load(number) for number in numbers[-kept_snapshots:]]
    current = snapshots.current()
    pinned = [*kept, *([current] if current else [])]
    for name, vector_table in VECTOR_TABLES.items():
        vectors.open(vector_table, embedder.dimension)
        vectors.optimize(vector_table, [each.vector_tables[name] for each in pinned if name in each.vector_tables])
    vectors.optimize_cache(embedder.dimension)
    state = _state(lake, vectors)
    if problems := [*(f"{name} is unfinished" for name in unfinished()), *all_problems(lake, vectors)]:
        raise StoreError(f"nothing is published: {'; '.join(problems[:_SHOWN])}")
    tables, vector_tables = state
    counts = {name: sum(lake.row_count(table, shard) for shard in tables[name]) for name, table in TABLES.items()}
    counts |= {f"lancedb.{name}": vectors.count(name) for name in VECTOR_TABLES}
    if _state(lake, vectors) != state:
        raise StoreError("nothing is published: another run is writing; it publishes when it is done")
    snapshot = Snapshot(
        number=snapshots.next_number(),
        published_at=datetime.now(UTC).isoformat(timespec="seconds"),
        pipeline=pipeline,
        embedder=embedder.name,
        tables=tables,
        vector_tables=vector_tables,
        row_counts=counts,
    )
    if kept and kept[-1].same_content(snapshot):
        snapshot = kept[-1]
    snapshots.publish(snapshot)
    remaining = snapshots.prune(kept_snapshots)
    for name, table in TABLES.items():
        lake.prune(table, [each.tables.get(name, {}) for each in remaining])
    return snapshot


def _state(lake: Lake, vectors: VectorStore) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    tables = {name: lake.latest(table) for name, table in TABLES.items()}
    return tables, {name: vectors.version(name) for name in VECTOR_TABLES}
