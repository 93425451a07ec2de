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
    """What bringing shards in step did."""

    upserted: int
    deleted: int
    unchanged: int
    embedded: int  # texts that the embedder was asked for; the other vectors were at hand
    version: int  # version of the table afterwards


def sql_in(column: str, values: Iterable[str]) -> str:
    """SQL condition that a column of strings holds one of the values; false where there are none."""
    literals = ", ".join(sql_literal(value) for value in values)
    return f"{column} IN ({literals})" if literals else "false"


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
        entries = [(*row["key"].rsplit("/", 1), row["state"]) for row in rows]
        return {shard: state for table, shard, state in entries if table == name}

    def forget(self, name: str, shards: Collection[str]) -> None:
        """Take away the states of shards whose rows are about to change."""
        keys = [f"{name}/{shard}" for shard in sorted(self.of(name).keys() & set(shards))]
        if keys:
            retried(partial(self.table.delete, sql_in("key", keys)), self.table)

    def keep(self, name: str, states: Mapping[str, str]) -> None:
        """Write down the states of shards whose rows are written."""
        known_states = self.of(name)
        new = [
            {"key": f"{name}/{shard}", "state": state}
            for shard, state in states.items()
            if known_states.get(shard) != state
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
            lance_table = self._existing(table.name)
        except StoreError:
            lance_table = open_or_create(self._database, table.name, schema)
        if _layout(lance_table.schema) != _layout(schema):
            _LOG.warning("vector table %s has another schema: its rows are written anew", table.name)
            lance_table = self._database.create_table(table.name, schema=schema, mode="overwrite")
        return lance_table

    def open_at(self, name: str, version: int) -> LanceTable:
        """Open a table for reading at a version, which later writes do not change.

        Raises:
            StoreError: There is no such table, or the version is gone.
        """
        lance_table = self._existing(name)
        with readable(name):
            lance_table.checkout(version)
        return lance_table

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
            sync_states = SyncStates(self._database)
            sync_states.forget(name, list(sync_states.of(name)))

    def scan(self, name: str) -> None:
        """Read all of a table and of its indexes.

        Raises:
            StoreError: It cannot be read.
        """
        lance_table = self._existing(name)
        with readable(name):
            for _ in lance_table.search().limit(None).to_batches():
                pass
            if isinstance(lance_table, LocalTable):
                for index in lance_table.list_indices():
                    lance_table.prewarm_index(index.name)

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
        lance_table = self._existing(name)
        with readable(name):
            return int(lance_table.count_rows())

    def column(self, name: str, column: str) -> pa.ChunkedArray:
        """One column of a table, for checks; rows in no particular order.

        Raises:
            StoreError: There is no such table.
        """
        lance_table = self._existing(name)
        with readable(name):
            return lance_table.search().select([column]).limit(None).to_arrow()[column]

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
        lance_table = self.open(table, embedder.dimension)
        with readable(table.name):
            existing_rows = _existing_rows(lance_table, table, shards)
        changed_rows, gone_keys, total = _differences(table, shards, existing_rows, embedder.name)
        sync_states = SyncStates(self._database)
        if changed_rows or gone_keys:
            sync_states.forget(table.name, shards)
        cache = VectorCache(self._database, embedder.dimension) if changed_rows else None
        done_count = embedded_count = 0
        changed_count = sum(rows.num_rows for rows in changed_rows)
        progress(0, changed_count)
        for window in _windows(changed_rows):
            assert cache is not None
            texts = window[EMBEDDED_TEXT].to_pylist()

            def report(count: int, before: int = done_count) -> None:
                progress(before + count, changed_count)

            averaged_texts = window[AVERAGED_TEXTS].to_pylist() if AVERAGED_TEXTS in window.column_names else []
            if averaged_texts:
                vectors, computed_count = _means(cache, averaged_texts, texts, embedder)
            else:
                vectors, computed_count = cache.embed(texts, embedder, report)
            upsert(lance_table, table.key, _rows_to_store(table, window, texts, vectors))
            done_count += window.num_rows
            embedded_count += computed_count
            progress(done_count, changed_count)
        _delete(lance_table, table, gone_keys)
        sync_states.keep(table.name, {shard: state for shard, state in (states or {}).items() if shard in shards})
        return SyncResult(
            upserted=changed_count,
            deleted=sum(len(keys) for keys in gone_keys.values()),
            unchanged=total - changed_count,
            embedded=embedded_count,
            version=int(lance_table.version),
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
        lance_table = self._existing(table.name)
        ensure_indices(lance_table, table)
        age = age_to_drop(lance_table, keep_versions, grace)
        retried(partial(lance_table.optimize, cleanup_older_than=age), lance_table)
        return int(lance_table.version)

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
        for lance_table in (cache.table, SyncStates(self._database).table):
            retried(partial(lance_table.optimize, cleanup_older_than=age), lance_table)

    def prune(self, dimension: int, keep: Collection[str]) -> int:
        """Drop vectors kept by content but those of keys (`cache.embedding_key`) to keep, and give their number."""
        return VectorCache(self._database, dimension).prune(keep)

    def _existing(self, name: str) -> LanceTable:
        with readable(name):
            return self._database.open_table(name)


def _layout(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]


def _existing_rows(lance_table: LanceTable, table: VectorTable, shards: Collection[str]) -> dict[str, dict[str, str]]:
    """Of the shards asked for: key and SHA-256 of each row stored."""
    columns = [table.key, "shard", "row_sha256"]
    rows = lance_table.search().where(sql_in("shard", sorted(shards))).select(columns).limit(None).to_arrow()
    digests_by_shard: dict[str, dict[str, str]] = {shard: {} for shard in shards}
    for key, shard, digest in zip(*(rows[name].to_pylist() for name in columns), strict=True):
        digests_by_shard[shard][key] = digest
    return digests_by_shard


def _differences(
    table: VectorTable,
    shards: Mapping[str, pa.Table],
    existing_rows: Mapping[str, Mapping[str, str]],
    embedder_name: str,
) -> tuple[list[pa.Table], dict[str, list[str]], int]:
    """Rows to write with their SHA-256, keys to delete by shard, and the number of rows given."""
    changed_rows: list[pa.Table] = []
    gone_keys: dict[str, list[str]] = {}
    seen_keys: set[str] = set()
    total = 0
    for shard in sorted(shards):
        rows = _checked_rows(table, shard, shards[shard])
        keys = rows[table.key].to_pylist()
        if len(set(keys)) != len(keys) or not seen_keys.isdisjoint(keys):
            raise SchemaError(f"vector table {table.name}, shard {shard}: rows share a {table.key}")
        seen_keys.update(keys)
        total += len(keys)
        digests = _row_digests(rows, embedder_name)
        stored_digests = existing_rows[shard]
        differs = [stored_digests.get(key) != digest for key, digest in zip(keys, digests, strict=True)]
        if any(differs):
            changed_rows.append(
                rows.append_column("row_sha256", pa.array(digests, pa.string())).filter(pa.array(differs))
            )
        removed_keys = sorted(set(stored_digests).difference(keys))
        if removed_keys:
            gone_keys[shard] = removed_keys
    return changed_rows, gone_keys, total


def _checked_rows(table: VectorTable, shard: str, rows: pa.Table) -> pa.Table:
    """Rows cast to the columns that callers give.

    Raises:
        SchemaError: They do not fit, or stand in another shard.
    """
    fields = [field for field in table.fields if field.name not in COMPUTED_COLUMNS]
    schema = pa.schema([*fields, pa.field(EMBEDDED_TEXT, pa.string(), nullable=False)])
    if AVERAGED_TEXTS in rows.column_names:
        schema = schema.append(rows.schema.field(AVERAGED_TEXTS))
    schema_columns, row_columns = schema.names, rows.column_names
    if set(schema_columns) != set(row_columns):
        raise SchemaError(
            f"vector table {table.name}, shard {shard}: expected columns {schema_columns}, found {row_columns}"
        )
    try:
        cast = rows.select(schema_columns).cast(schema)
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


def _rows_to_store(table: VectorTable, rows: pa.Table, texts: list[str], vectors: NDArray[np.float32]) -> pa.Table:
    """Rows as stored: with search text and vector."""
    schema = table.schema(vectors.shape[1])
    columns = {
        **{name: rows[name] for name in rows.column_names},
        "search_text": pa.array([search_terms(text) for text in texts], pa.string()),
        "vector": fixed_vectors(vectors),
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _means(
    cache: VectorCache, averaged_texts: Sequence[Sequence[str]], own_texts: Sequence[str], embedder: Embedder
) -> tuple[NDArray[np.float32], int]:
    """For each row the mean of the vectors of its texts, of length 1, and how many texts were embedded.

    Args:
        cache: Holds most of the vectors.
        averaged_texts: Texts of each row; where there are none, its own text stands for them.
        own_texts: Text of each row.
        embedder: Computes vectors that are not at hand.
    """
    texts = [group or [text] for group, text in zip(averaged_texts, own_texts, strict=True)]
    places = {text: place for place, text in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    vectors, computed_count = cache.embed(list(places), embedder)
    means = np.stack([vectors[[places[text] for text in group]].mean(axis=0) for group in texts])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return (means / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32), computed_count


def _delete(lance_table: LanceTable, table: VectorTable, gone_keys: Mapping[str, Sequence[str]]) -> None:
    """Delete rows; the shard stands in the condition, so that a key that moved to another shard stays there."""
    for shard, keys in gone_keys.items():
        for start in range(0, len(keys), _DELETE_KEYS):
            key_condition = sql_in(table.key, keys[start : start + _DELETE_KEYS])
            condition = f"shard = {sql_literal(shard)} AND {key_condition}"
            retried(partial(lance_table.delete, condition), lance_table)


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
