"""Publishing: compacts the serving tables, moves the readers to what is stored, drops what is old.

Vectors of texts that are gone are kept, so that a file that comes back costs nothing, until they are more than those
in use and more than 10,000.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from rag_assets.contracts.errors import InconsistencyError, StoreError
from rag_assets.contracts.ports import Embedder, EmbeddingKind
from rag_assets.contracts.tables import TABLES, VECTOR_TABLES
from rag_assets.store.damage import Checksums
from rag_assets.store.integrity import all_problems
from rag_assets.store.lake import Lake
from rag_assets.store.serving import SERVING, served_texts, serving_states
from rag_assets.store.snapshots import Snapshot, Snapshots, facts_digest
from rag_assets.store.vectors.cache import embedding_key
from rag_assets.store.vectors.store import VectorStore

_SHOWN = 20
_SPARE_FACTOR = 2
_SPARE_VECTORS = 10_000
_INTERNAL_GRACE = timedelta(minutes=1)  # versions that no reader sees are read for moments


def stale_syncs(lake: Lake, vectors: VectorStore, embedder_name: str) -> list[tuple[str, str]]:
    """Name and shard of serving tables whose rows were not made from what is stored now. Reads no rows."""
    stale = []
    for name in SERVING:
        recorded_states = vectors.states(name)
        wanted_states = serving_states(lake, name, embedder_name)
        stale += [(name, shard) for shard, state in wanted_states.items() if recorded_states.get(shard) != state]
    return stale


def publish(  # noqa: PLR0913, PLR0917 - one argument a part of the store
    lake: Lake,
    vectors: VectorStore,
    snapshots: Snapshots,
    steps: Mapping[str, Mapping[str, str]],
    embedder: Embedder,
    kept_snapshots: int,
    unfinished: Callable[[], Sequence[str]],
    grace: timedelta = timedelta(hours=1),
    check: Callable[[Snapshot, Snapshot | None], Snapshot] = lambda candidate, _current: candidate,
) -> Snapshot:
    """Publish what is stored now, if it holds together.

    Everything is verified: a backfill in several runs publishes in a run of its own, whatever became of the others.

    Args:
        lake: The stored tables.
        vectors: The serving tables, in step with them.
        snapshots: Where versions are published.
        steps: Code, options and libraries that computed the tables, by step and by what people call them.
        embedder: Embedder of the vectors.
        kept_snapshots: Snapshots kept for rollback; files that none of them names are removed.
        unfinished: Names what of the stored tables was not computed from what the step before it stored last.
        grace: Age below which vectors of versions that are not kept stay, for readers in the middle of something.
        check: Looks at a version that holds other rows than the last, and the one that readers see, before they
            see it; raises what keeps them where they are, and returns what is published.

    Returns:
        The new snapshot, or the newest one where it names the same versions.

    Raises:
        InconsistencyError: What is stored does not hold together; readers stay where they are, as after other errors.
        StoreError: A step is unfinished, or another run is writing.
    """
    newest_snapshots = snapshots.readable()[-kept_snapshots:]
    current = snapshots.current()
    pinned_snapshots = [*newest_snapshots, *([current] if current else [])]
    for name, vector_table in VECTOR_TABLES.items():
        vectors.open(vector_table, embedder.dimension)
        vectors.optimize(
            vector_table,
            [snapshot.vector_tables[name] for snapshot in pinned_snapshots if name in snapshot.vector_tables],
            grace,
        )
    state = _state(lake, vectors)
    open_steps = [
        *unfinished(),
        *(
            f"lancedb.{name}, shard {shard} (rows are indexed from an older state)"
            for name, shard in stale_syncs(lake, vectors, embedder.name)
        ),
    ]
    if open_steps:
        reasons = "; ".join(f"{name} is unfinished" for name in open_steps[:_SHOWN])
        raise StoreError(f"nothing is published: {reasons}; `rag-assets index` finishes it")
    problems = all_problems(lake, vectors)
    if problems and _state(lake, vectors) == state:
        raise InconsistencyError(f"nothing is published: {'; '.join(problems[:_SHOWN])}")
    tables, vector_tables = state
    counts = {name: sum(lake.row_count(TABLES[name], shard) for shard in shards) for name, shards in tables.items()}
    counts |= {f"lancedb.{name}": vectors.count(name) for name in VECTOR_TABLES}
    if problems or _state(lake, vectors) != state:
        raise StoreError("nothing is published: another run is writing; it publishes when it is done")
    snapshot = Snapshot(
        number=snapshots.next_number(),
        published_at=datetime.now(UTC).isoformat(timespec="seconds"),
        pipeline=facts_digest(steps),
        embedder=embedder.name,
        tables=tables,
        vector_tables=vector_tables,
        row_counts=counts,
        files=_marks(lake, vectors, tables, vector_tables, newest_snapshots),
        steps=steps,
        learned=newest_snapshots[-1].learned if newest_snapshots else {},
    )
    if newest_snapshots and newest_snapshots[-1].same_content(snapshot):
        snapshot = newest_snapshots[-1]
        snapshots.move_on(snapshot.number)
    else:
        if has_new_rows := not (newest_snapshots and newest_snapshots[-1].same_rows(snapshot)):
            snapshot = check(snapshot, current)
        snapshot = snapshots.publish(snapshot, moves_rollback=has_new_rows)
    remaining_snapshots = snapshots.prune(kept_snapshots)
    for name, table in TABLES.items():
        lake.prune(table, [snapshot.tables.get(name, {}) for snapshot in remaining_snapshots])
    if vectors.cached(embedder.dimension) > max(_SPARE_VECTORS, _SPARE_FACTOR * sum(map(vectors.count, VECTOR_TABLES))):
        used_keys = {embedding_key(embedder.name, EmbeddingKind.PASSAGE, text) for text in served_texts(lake)}
        vectors.prune(embedder.dimension, used_keys)
    vectors.optimize_cache(embedder.dimension, min(grace, _INTERNAL_GRACE))
    return snapshot


def _marks(
    lake: Lake,
    vectors: VectorStore,
    tables: Mapping[str, Mapping[str, int]],
    vector_tables: Mapping[str, int],
    newest_snapshots: Sequence[Snapshot],
) -> dict[str, str]:
    """Size and digest of every file of a version; only files that no earlier version has are read."""
    root = lake.root.parent
    paths = [path for name, versions in tables.items() for path in lake.paths(TABLES[name], versions)]
    paths += [path for name, version in vector_tables.items() for path in vectors.files(name, version)]
    checksums = Checksums(root)
    published_marks = {path: mark for snapshot in newest_snapshots for path, mark in snapshot.files.items()}
    marks = checksums.marks((path.relative_to(root).as_posix() for path in paths), published_marks)
    checksums.save()
    return marks


def _state(lake: Lake, vectors: VectorStore) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    tables = {name: lake.latest(table) for name, table in TABLES.items() if table.published}
    return tables, {name: vectors.version(name) for name in VECTOR_TABLES}
