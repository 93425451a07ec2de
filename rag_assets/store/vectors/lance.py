"""What is used of LanceDB, which the other modules import from here, and the upkeep of its tables: indices, files of a
version, the age from which old versions are dropped, and waiting for other writers.

LanceDB imports the client of its servers, which takes half of the time and is not used here. The client's package is
executed when somebody asks for something in it.
"""

import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pyarrow as pa

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.tables import VectorTable
from rag_assets.store.files import Lock

_CLIENT = "lance_namespace_urllib3_client"


class _Deferred(ModuleType):
    """A package that is executed when a name of its own is asked for; its submodules can be imported before."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def _defer(package: str) -> None:
    if package not in sys.modules and (spec := find_spec(package)) is not None:
        module = module_from_spec(spec)
        module.__class__ = _Deferred
        sys.modules[package] = module


_defer(_CLIENT)
os.environ.setdefault("LANCEDB_LOG", "error")  # what it warns of is said by whoever catches its errors

import lancedb  # noqa: E402 - after the client is deferred
from lancedb.index import FTS, Bitmap, BTree, IvfFlat  # noqa: E402
from lancedb.query import LanceVectorQueryBuilder, MatchQuery  # noqa: E402
from lancedb.table import LanceTable as LocalTable  # noqa: E402
from lancedb.table import Table as LanceTable  # noqa: E402

__all__ = [  # what is used of LanceDB elsewhere
    "BTree",
    "LanceTable",
    "LanceVectorQueryBuilder",
    "LocalTable",
    "MatchQuery",
    "lancedb",
]

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_BITMAP_COLUMNS = frozenset({"shard", "folder", "format", "language", "content_format"})
_BTREE_COLUMNS = frozenset({"document_id", "page_id"})
# rows from which on vectors are searched by an index (IVF over whole vectors, so that distances stay exact); below,
# every vector is compared
_VECTOR_INDEX_ROWS = 50_000
_ATTEMPTS = 8


def ensure_indices(opened: LanceTable, table: VectorTable) -> None:
    """Make the indices that are missing; bringing them up to date is left to `optimize`."""
    rows = opened.count_rows()
    indexed_columns = {column for index in opened.list_indices() for column in index.columns}
    configs: dict[str, FTS | Bitmap | BTree | IvfFlat] = {"search_text": full_text_index(), table.key: BTree()}
    for field in table.fields:
        if field.name in _BITMAP_COLUMNS:
            configs[field.name] = Bitmap()
        elif field.name in _BTREE_COLUMNS:
            configs[field.name] = BTree()
    if rows >= _VECTOR_INDEX_ROWS:
        configs["vector"] = IvfFlat(distance_type="dot")
    for column, config in configs.items():
        if column not in indexed_columns and rows:
            retried(partial(opened.create_index, column, config=config), opened)


def full_text_index() -> FTS:
    """Index over `search_text`: its terms are ready made, so that blanks alone part them."""
    return FTS(
        base_tokenizer="whitespace",
        lower_case=False,
        stem=False,
        remove_stop_words=False,
        ascii_folding=False,
        max_token_length=None,
        with_position=False,
    )


def age_to_drop(opened: LanceTable, keep_versions: Collection[int], grace: timedelta) -> timedelta:
    """Age from which on versions are dropped: that of the oldest one to keep, if it is more than the grace.

    Tags would pin single versions, but LanceDB refuses to clean up at all where an old version is tagged.
    """
    now = datetime.now().astimezone()
    stamps = [item["timestamp"].astimezone() for item in opened.list_versions() if item["version"] in keep_versions]
    oldest = max((now - stamp for stamp in stamps), default=timedelta(0))
    return max(grace, oldest + timedelta(seconds=1) if stamps else timedelta(0), timedelta(milliseconds=1))


def manifest_of(folder: Path, version: int) -> Path:
    """The manifest of a version of a table, which describes it.

    Raises:
        StoreError: There is no such version.
    """
    for name in (f"{(1 << 64) - 1 - version:020d}.manifest", f"{version}.manifest"):
        if (folder / "_versions" / name).exists():
            return folder / "_versions" / name
    raise StoreError(f"{folder}: version {version} is not there")


def is_named(path: Path, manifest: bytes) -> bool:
    """Whether a manifest names a file of its table, which may be gone; given is the path below the table's folder.

    Data files stand in it by name, indices by the 16 bytes of their UUIDs and deletions by a random number, as a
    varint. Source: https://lance.org/format/table/ (manifest, index, deletion).
    """
    match path.parts[0]:
        case "data":
            return path.name.encode() in manifest
        case "_deletions":
            return _deletion_id(path) in manifest
        case "_indices":
            return _uuid_in(path.parts[1], manifest)
    return False


def _uuid_in(name: str, content: bytes) -> bool:
    with suppress(ValueError):
        return uuid.UUID(name).bytes in content
    return False


def _deletion_id(path: Path) -> bytes:
    """The last number in the name of a file of deletions, `<fragment>-<version>-<id>.<kind>`, as a varint."""
    number, digits = int(path.stem.rpartition("-")[2]), bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn what LanceDB says of files that it cannot read into one line.

    Raises:
        StoreError: Files of the table are missing or damaged.
    """
    try:
        yield
    except Exception as error:
        is_expected = isinstance(error, (RuntimeError, OSError, ValueError, pa.ArrowException))
        if not is_expected and not type(error).__module__.startswith("pyo3"):  # its core panics over some damage
            raise
        _LOG.info("vector table %s: %s", name, error)
        raise StoreError(f"vector table {name}: missing or damaged; `rag-assets index` makes it anew") from error


def retried(action: Callable[[], _Result], handle: LanceTable | None = None) -> _Result:
    """Do something again, after growing pauses, as long as it conflicts with another writer's commit.

    Args:
        action: What to do.
        handle: The table it works on, brought to the latest version before each further attempt: a handle stays at
            the version it last saw, and so would conflict for ever.

    Raises:
        StoreError: It still conflicts after the last attempt.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return action()
        except (RuntimeError, OSError) as error:
            if "conflict" not in str(error).lower():
                if isinstance(error, OSError):
                    raise
                message = str(error).partition(", /")[0]
                raise StoreError(f"vector store: {message}; `rag-assets index` mends what is damaged") from error
            if attempt == _ATTEMPTS - 1:
                raise StoreError(f"vector store: other writers were in the way {_ATTEMPTS} times: {error}") from error
            _LOG.info("vector store: commit conflict, attempt %d", attempt + 1)
            time.sleep(0.05 * 2**attempt)
            if handle is not None:
                handle.checkout_latest()  # type: ignore[no-untyped-call]
    raise AssertionError


def upsert(opened: LanceTable, key: str, rows: pa.Table) -> None:
    """Write rows in place of those of their keys, or beside the others where there are none."""

    def write() -> None:
        opened.merge_insert(key).when_matched_update_all().when_not_matched_insert_all().execute(rows)

    retried(write, opened)


def open_or_create(database: lancedb.DBConnection, name: str, schema: pa.Schema) -> LanceTable:
    """Open a table; make it if it is missing.

    Of two processes that make one table at once, the second would replace what the first has written by then: a lock
    keeps them apart.
    """
    if name in database.list_tables().tables:
        try:
            return database.open_table(name)
        except ValueError as error:  # it is listed once its folder is there, a moment before it can be opened
            if "was not found" not in str(error):
                raise
    with Lock(Path(database.uri) / "create.lock").hold():
        return retried(partial(database.create_table, name, schema=schema, exist_ok=True))
