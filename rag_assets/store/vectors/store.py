"""The vector store: LanceDB tables that serve search, derived from the Parquet tables and brought in step with them.

Rows of a shard are made equal to the rows given: only what changed is embedded and written, what is gone is deleted,
and where nothing changed nothing is written and the version stays. Readers open a table at a version and see it
unchanged while writers go on. What stays out: what a row is (`contracts.tables`), searching (`rag_assets.query`), and
which versions are published (`rag_assets.store.publish`).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rag_assets.contracts.errors import SchemaError, StoreError
from rag_assets.contracts.fingerprint import code_fingerprint
from rag_assets.contracts.ports import Embedder, EmbeddingKind
from rag_assets.contracts.tables import AVERAGED_TEXTS, COMPUTED_COLUMNS, EMBEDDED_TEXT, VectorTable
from rag_assets.store.queries import sql_literal
from rag_assets.store.vectors.cache import VectorCache, fixed_vectors
from rag_assets.store.vectors.lance import (
    LanceTable,
    LocalTable,
    age_to_drop,
    ensure_indices,
    is_named,
    lancedb,
    manifest_of,
    open_or_create,
    readable,
    retried,
    upsert,
)
from rag_assets.text.folding import search_terms

_LOG = logging.getLogger(__name__)

_WRITE_ROWS = 8192
_DELETE_KEYS = 1024

_STATES = "sync_states"
_STATES_SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
        pa.field("state", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True)
class SyncResult:
    """What bringing shards in step did.

    Attributes:
        embedded: Texts that the embedder was asked for; the other vectors were at hand.
        version: Version of the table afterwards.
    """

    upserted: int
    deleted: int
    unchanged: int
    embedded: int
    version: int


def sql_in(column: str, values: Iterable[str]) -> str:
    """SQL condition that a column of strings holds one of the values; false where there are none."""
    listed = ", ".join(sql_literal(value) for value in values)
    return f"{column} IN ({listed})" if listed else "false"


class SyncStates:
    """What the rows of each shard of a serving table were made from.

    It is written after the rows, and taken away before they change. A LanceDB table beside the serving tables, so that
    it is copied and restored together with them. A process that dies between rows and record leaves no record, so that
    the shard counts as unfinished; doing it again changes no row.
    """

    def __init__(self, database: lancedb.DBConnection) -> None:
        self.table: LanceTable = open_or_create(database, _STATES, _STATES_SCHEMA)

    def of(self, name: str) -> dict[str, str]:
        """State of each shard of a serving table that has one."""
        rows = self.table.search().limit(None).to_arrow().to_pylist()
        parted = [(*row["key"].rsplit("/", 1), row["state"]) for row in rows]
        return {shard: state for table, shard, state in parted if table == name}

    def forget(self, name: str, shards: Collection[str]) -> None:
        """Take away the states of shards whose rows are about to change."""
        keys = [f"{name}/{shard}" for shard in sorted(self.of(name).keys() & set(shards))]
        if keys:
            retried(partial(self.table.delete, sql_in("key", keys)), self.table)

    def keep(self, name: str, states: Mapping[str, str]) -> None:
        """Write down the states of shards whose rows are written."""
        known = self.of(name)
        new = [
            {"key": f"{name}/{shard}", "state": state} for shard, state in states.items() if known.get(shard) != state
        ]
        if new:
            upsert(self.table, "key", pa.Table.from_pylist(new, schema=_STATES_SCHEMA))


class VectorStore:
    """LanceDB tables below one folder.

    Any number of processes may sync different shards at once. `optimize` belongs at the end of a run.

    Args:
        folder: Folder of the LanceDB database; made if missing.
    """

    def __init__(self, folder: str | Path) -> None:
        self._database = lancedb.connect(folder)

    def open(self, table: VectorTable, dimension: int) -> LanceTable:
        """Open a table for writing; make it if it is missing.

        A table of another schema (columns changed, or vectors of another length) is replaced by an empty one in a new
        version: it is derived data, and readers of earlier versions still see those.
        """
        schema = table.schema(dimension)
        try:
            opened = self._existing(table.name)
        except StoreError:
            opened = open_or_create(self._database, table.name, schema)
        if _layout(opened.schema) != _layout(schema):
            _LOG.warning("vector table %s has another schema: its rows are written anew", table.name)
            opened = self._database.create_table(table.name, schema=schema, mode="overwrite")
        return opened

    def open_at(self, name: str, version: int) -> LanceTable:
        """Open a table for reading at a version, which later writes do not change.

        Raises:
            StoreError: There is no such table, or the version is gone.
        """
        opened = self._existing(name)
        with readable(name):
            opened.checkout(version)
        return opened

    def version(self, name: str) -> int:
        """Latest version of a table.

        Raises:
            StoreError: There is no such table.
        """
        return int(self._existing(name).version)

    def begin_anew(self, name: str) -> bool:
        """Empty a damaged table in a new version, so that the next sync writes all its rows; earlier versions stay.

        Returns:
            Whether that could be done; else its folder is to be taken away.
        """
        try:
            self.forget_states(name)
            with readable(name):
                self._database.create_table(name, schema=self._existing(name).schema, mode="overwrite")
        except StoreError:
            return False
        return True

    def forget_states(self, name: str) -> None:
        """Forget what the rows of a table were made from, as it is gone."""
        with readable(_STATES):
            recorded = SyncStates(self._database)
            recorded.forget(name, list(recorded.of(name)))

    def scan(self, name: str) -> None:
        """Read all of a table and of its indexes.

        Raises:
            StoreError: It cannot be read.
        """
        opened = self._existing(name)
        with readable(name):
            for _ in opened.search().limit(None).to_batches():
                pass
            if isinstance(opened, LocalTable):
                for index in opened.list_indices():
                    opened.prewarm_index(index.name)

    def files(self, name: str, version: int) -> list[Path]:
        """The files that a version of a table consists of.

        Raises:
            StoreError: There is no such version.
        """
        folder = Path(self._database.uri) / f"{name}.lance"
        manifest = manifest_of(folder, version)
        content = manifest.read_bytes()
        parts = (path for part in ("data", "_deletions", "_indices") for path in sorted((folder / part).rglob("*")))
        return [manifest, *(path for path in parts if path.is_file() and is_named(path.relative_to(folder), content))]

    def needs(self, name: str, version: int, path: Path) -> bool:
        """Whether a version of a table needs a file, which may be gone.

        Raises:
            StoreError: There is no such version.
        """
        folder = Path(self._database.uri) / f"{name}.lance"
        manifest = manifest_of(folder, version)
        return path == manifest or is_named(path.relative_to(folder), manifest.read_bytes())

    def count(self, name: str) -> int:
        """Rows of a table.

        Raises:
            StoreError: There is no such table.
        """
        opened = self._existing(name)
        with readable(name):
            return int(opened.count_rows())

    def column(self, name: str, column: str) -> pa.ChunkedArray:
        """One column of a table, for checks; rows in no particular order.

        Raises:
            StoreError: There is no such table.
        """
        opened = self._existing(name)
        with readable(name):
            return opened.search().select([column]).limit(None).to_arrow()[column]

    def sync(
        self,
        table: VectorTable,
        shards: Mapping[str, pa.Table],
        embedder: Embedder,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        states: Mapping[str, str] | None = None,
    ) -> SyncResult:
        """Make the rows of shards equal to the rows given.

        Args:
            table: Declaration of the table.
            shards: For each shard all its rows (none to empty it): the columns of `table.fields` except `search_text`
                and `row_sha256`, which are computed here, and a column `embedded_text`: what is embedded, and
                analysed for full-text search. A column `averaged_texts` may name, for each row, texts the mean of
                whose vectors stands for that of its own text. Give many shards at once, so that batches are full.
            embedder: Embeds texts whose vectors are not at hand.
            progress: Told `(rows done, rows to do)` as work goes on.
            states: Digest of what the rows of a shard were made from, kept for `states` once they are written.

        Raises:
            SchemaError: Rows do not fit the table, stand in the wrong shard, or share a key.
            ModelError: The embedder failed; what it did before is kept.
            StoreError: Other writers were in the way for too long.
        """
        opened = self.open(table, embedder.dimension)
        with readable(table.name):
            existing = _existing_rows(opened, table, shards)
        changed, gone, total = _differences(table, shards, existing, embedder.name)
        recorded = SyncStates(self._database)
        if changed or gone:
            recorded.forget(table.name, shards)
        cache = VectorCache(self._database, embedder.dimension) if changed else None
        done = embedded = 0
        to_do = sum(rows.num_rows for rows in changed)
        progress(0, to_do)
        for window in _windows(changed):
            assert cache is not None
            texts = window[EMBEDDED_TEXT].to_pylist()

            def report(count: int, before: int = done) -> None:
                progress(before + count, to_do)

            averaged = window[AVERAGED_TEXTS].to_pylist() if AVERAGED_TEXTS in window.column_names else []
            if averaged:
                vectors, computed = _means(cache, averaged, texts, embedder)
            else:
                vectors, computed = cache.embed(texts, embedder, report)
            upsert(opened, table.key, _finished(table, window, texts, vectors))
            done += window.num_rows
            embedded += computed
            progress(done, to_do)
        _delete(opened, table, gone)
        recorded.keep(table.name, {shard: state for shard, state in (states or {}).items() if shard in shards})
        return SyncResult(
            upserted=to_do,
            deleted=sum(len(keys) for keys in gone.values()),
            unchanged=total - to_do,
            embedded=embedded,
            version=int(opened.version),
        )

    def embed(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        """Vectors of passages, in the order given: those at hand, and the others embedded and kept.

        Raises:
            ModelError: The embedder failed; what it did before is kept.
        """
        vectors, _ = VectorCache(self._database, embedder.dimension).embed(texts, embedder)
        return vectors

    def optimize(
        self,
        table: VectorTable,
        keep_versions: Collection[int] = (),
        grace: timedelta = timedelta(hours=1),
    ) -> int:
        """Compact a table, bring its indices up to date and drop versions nobody reads. Once a run; cheap if idle.

        Args:
            table: Declaration of the table.
            keep_versions: Published versions; the oldest of them and all after it stay readable.
            grace: Age below which a version stays, for readers and writers in the middle of something.

        Returns:
            Version of the table afterwards: the one to publish.

        Raises:
            StoreError: There is no such table, or other writers were in the way for too long.
        """
        opened = self._existing(table.name)
        ensure_indices(opened, table)
        age = age_to_drop(opened, keep_versions, grace)
        retried(partial(opened.optimize, cleanup_older_than=age), opened)
        return int(opened.version)

    def states(self, name: str) -> dict[str, str]:
        """What the rows of each shard of a table were made from, as given to `sync`; shards half done have none."""
        with readable(_STATES):
            return SyncStates(self._database).of(name)

    def cached(self, dimension: int) -> int:
        """Number of vectors kept by content."""
        return int(VectorCache(self._database, dimension).table.count_rows())

    def optimize_cache(self, dimension: int, grace: timedelta = timedelta(hours=1)) -> None:
        """Compact and index the vectors kept by content; compact what is recorded of syncs."""
        cache = VectorCache(self._database, dimension)
        cache.ensure_index()
        age = max(grace, timedelta(milliseconds=1))
        for kept in (cache.table, SyncStates(self._database).table):
            retried(partial(kept.optimize, cleanup_older_than=age), kept)

    def prune(self, dimension: int, keep: Collection[str]) -> int:
        """Drop vectors kept by content but those of keys (`cache.embedding_key`) to keep, and give their number."""
        return VectorCache(self._database, dimension).prune(keep)

    def _existing(self, name: str) -> LanceTable:
        with readable(name):
            return self._database.open_table(name)


def _layout(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]


def _existing_rows(opened: LanceTable, table: VectorTable, shards: Collection[str]) -> dict[str, dict[str, str]]:
    """Of the shards asked for: key and SHA-256 of each row stored."""
    columns = [table.key, "shard", "row_sha256"]
    rows = opened.search().where(sql_in("shard", sorted(shards))).select(columns).limit(None).to_arrow()
    stored: dict[str, dict[str, str]] = {shard: {} for shard in shards}
    for key, shard, digest in zip(*(rows[name].to_pylist() for name in columns), strict=True):
        stored[shard][key] = digest
    return stored


def _differences(
    table: VectorTable,
    shards: Mapping[str, pa.Table],
    existing: Mapping[str, Mapping[str, str]],
    embedder_name: str,
) -> tuple[list[pa.Table], dict[str, list[str]], int]:
    """Rows to write with their SHA-256, keys to delete by shard, and the number of rows given."""
    changed: list[pa.Table] = []
    gone: dict[str, list[str]] = {}
    seen: set[str] = set()
    total = 0
    for shard in sorted(shards):
        rows = _checked(table, shard, shards[shard])
        keys = rows[table.key].to_pylist()
        if len(set(keys)) != len(keys) or not seen.isdisjoint(keys):
            raise SchemaError(f"vector table {table.name}, shard {shard}: rows share a {table.key}")
        seen.update(keys)
        total += len(keys)
        digests = _row_digests(rows, embedder_name)
        stored = existing[shard]
        differs = [stored.get(key) != digest for key, digest in zip(keys, digests, strict=True)]
        if any(differs):
            changed.append(rows.append_column("row_sha256", pa.array(digests, pa.string())).filter(pa.array(differs)))
        removed = sorted(set(stored).difference(keys))
        if removed:
            gone[shard] = removed
    return changed, gone, total


def _checked(table: VectorTable, shard: str, rows: pa.Table) -> pa.Table:
    """Rows cast to the columns that callers give.

    Raises:
        SchemaError: They do not fit, or stand in another shard.
    """
    fields = [field for field in table.fields if field.name not in COMPUTED_COLUMNS]
    schema = pa.schema([*fields, pa.field(EMBEDDED_TEXT, pa.string(), nullable=False)])
    if AVERAGED_TEXTS in rows.column_names:
        schema = schema.append(rows.schema.field(AVERAGED_TEXTS))
    wanted, found = schema.names, rows.column_names
    if set(wanted) != set(found):
        raise SchemaError(f"vector table {table.name}, shard {shard}: expected columns {wanted}, found {found}")
    try:
        cast = rows.select(wanted).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise SchemaError(f"vector table {table.name}, shard {shard}: {error}") from error
    strangers = set(pc.unique(cast["shard"]).to_pylist()) - {shard}
    if strangers:
        raise SchemaError(f"vector table {table.name}, shard {shard}: found rows of shards {sorted(strangers)}")
    return cast


def _row_digests(rows: pa.Table, embedder_name: str) -> list[str]:
    """SHA-256 of each row, over its columns, the embedder's name and the code of the text analysis."""
    code = code_fingerprint(f"{search_terms.__module__}:{search_terms.__name__}")
    prefix = f"{embedder_name}\0{code}\0".encode()
    return [
        sha256(prefix + repr(list(row.values())).encode("utf-8", "surrogatepass")).hexdigest()
        for batch in rows.to_batches(max_chunksize=_WRITE_ROWS)
        for row in batch.to_pylist()
    ]


def _windows(tables: Sequence[pa.Table]) -> Iterable[pa.Table]:
    """The rows of all tables, some thousands at a time: what is held in memory with vectors is bounded."""
    if tables:
        rows = pa.concat_tables(tables)
        for start in range(0, rows.num_rows, _WRITE_ROWS):
            yield rows.slice(start, _WRITE_ROWS)


def _finished(table: VectorTable, rows: pa.Table, texts: list[str], vectors: NDArray[np.float32]) -> pa.Table:
    """Rows as stored: with search text and vector."""
    schema = table.schema(vectors.shape[1])
    columns = {
        **{name: rows[name] for name in rows.column_names},
        "search_text": pa.array([search_terms(text) for text in texts], pa.string()),
        "vector": fixed_vectors(vectors),
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _means(
    cache: VectorCache, averaged: Sequence[Sequence[str]], own: Sequence[str], embedder: Embedder
) -> tuple[NDArray[np.float32], int]:
    """For each row the mean of the vectors of its texts, of length 1, and how many texts were embedded.

    Args:
        cache: Holds most of the vectors.
        averaged: Texts of each row; where there are none, its own text stands for them.
        own: Text of each row.
        embedder: Computes vectors that are not at hand.
    """
    texts = [each or [text] for each, text in zip(averaged, own, strict=True)]
    places = {text: place for place, text in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    vectors, computed = cache.embed(list(places), embedder)
    means = np.stack([vectors[[places[text] for text in each]].mean(axis=0) for each in texts])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return (means / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32), computed


def _delete(opened: LanceTable, table: VectorTable, gone: Mapping[str, Sequence[str]]) -> None:
    """Delete rows; the shard stands in the condition, so that a key that moved to another shard stays there."""
    for shard, keys in gone.items():
        for start in range(0, len(keys), _DELETE_KEYS):
            listed = sql_in(table.key, keys[start : start + _DELETE_KEYS])
            condition = f"shard = {sql_literal(shard)} AND {listed}"
            retried(partial(opened.delete, condition), opened)


class CachedEmbedder:
    """An embedder whose vectors of passages are kept by content in a vector store, and taken from it.

    Args:
        embedder: Computes vectors that are not at hand.
        vectors: Keeps them.
    """

    def __init__(self, embedder: Embedder, vectors: VectorStore) -> None:
        self._embedder, self._vectors = embedder, vectors

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def window_tokens(self) -> int:
        return self._embedder.window_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.count_tokens(texts)

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        if kind is EmbeddingKind.PASSAGE:
            return self._vectors.embed(texts, self._embedder)
        return self._embedder.embed(texts, kind)
