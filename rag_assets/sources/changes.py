"""What the sources hold against what is stored: which documents are new, changed or gone, and in which shards.

Reads listings and stored tables only; hashes and parses nothing, so that a sensor may ask every minute.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from rag_assets.contracts.errors import SettingsError, SourceError
from rag_assets.contracts.tables import DOCUMENTS, TABLES
from rag_assets.sources.listing import Source, SourceFile, list_source, parse_source
from rag_assets.store.lake import Lake, shard_of, write_atomically
from rag_assets.store.snapshots import Snapshot


@dataclass(frozen=True)
class Listing:
    """The files of all sources.

    Attributes:
        files: Files by `document_id`.
        unreachable: Why a source could not be listed, by source name. Its documents are kept as they are.
    """

    files: Mapping[str, SourceFile]
    unreachable: Mapping[str, str] = field(default_factory=dict)

    def in_shard(self, shard: str) -> list[SourceFile]:
        """Files whose documents belong to a shard, in order of `document_id`."""
        return [file for name, file in self.files.items() if shard_of(name) == shard]


@dataclass(frozen=True)
class Changes:
    """What an index run would do.

    Attributes:
        new: Documents that are not stored yet.
        changed: Documents whose file changed since it was read.
        gone: Stored documents whose file is no more.
        failed: Stored documents that could not be parsed and have not changed.
        unchanged: Number of documents that are as stored.
        unfinished_shards: Shards whose stored state is not published, or was computed by other code or settings.
        unreachable: Why a source could not be listed, by source name.
    """

    new: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    failed: tuple[str, ...]
    unchanged: int
    unfinished_shards: tuple[str, ...]
    unreachable: Mapping[str, str]

    @property
    def shards(self) -> tuple[str, ...]:
        """Shards that an index run has to look at, rising."""
        touched = {shard_of(name) for name in (*self.new, *self.changed, *self.gone)}
        return tuple(sorted(touched | set(self.unfinished_shards)))


def read_sources(configured: Iterable[str], registered: Path) -> tuple[Source, ...]:
    """The sources named in the settings and those registered in the home, by name.

    Args:
        configured: Sources as written in the settings.
        registered: File of the registered sources; may be missing.

    Raises:
        SettingsError: Two sources have one name but not one location.
    """
    texts = list(configured)
    if registered.exists():
        texts += [f"{name}={location}" for name, location in json.loads(registered.read_bytes()).items()]
    sources: dict[str, Source] = {}
    for text in texts:
        source = parse_source(text)
        other = sources.setdefault(source.name, source)
        if other != source:
            raise SettingsError(
                f"two sources are named {source.name!r}: {other.location} and {source.location}; "
                f"name one of them: NAME={source.location}"
            )
    return tuple(sources[name] for name in sorted(sources))


def register_sources(sources: Iterable[Source], registered: Path) -> None:
    """Remember sources in the home, so that later runs and the Dagster side index them too."""
    stored: dict[str, str] = json.loads(registered.read_bytes()) if registered.exists() else {}
    merged = {**stored, **{source.name: source.location for source in sources}}
    if merged != stored:
        write_atomically(registered, json.dumps(merged, ensure_ascii=False, indent=1, sort_keys=True).encode())


def forget_source(name: str, registered: Path) -> None:
    """Take a registered source out; the next run removes its documents.

    Raises:
        SettingsError: No source of that name is registered.
    """
    stored: dict[str, str] = json.loads(registered.read_bytes()) if registered.exists() else {}
    if name not in stored:
        raise SettingsError(f"no registered source {name!r}; registered are {sorted(stored)}")
    del stored[name]
    write_atomically(registered, json.dumps(stored, ensure_ascii=False, indent=1, sort_keys=True).encode())


def list_sources(
    sources: Iterable[Source],
    include: Sequence[str],
    exclude: Sequence[str],
    stored_counts: Mapping[str, int],
    *,
    allow_empty: bool = False,
) -> Listing:
    """List all sources; one that cannot be listed does not stop the others.

    Args:
        sources: The sources.
        include: Globs of files to take.
        exclude: Globs of files to leave out.
        stored_counts: Number of stored documents by source name.
        allow_empty: Believe a source that suddenly holds nothing. Else it counts as unreachable, because a folder whose
            disk is not mounted looks the same.
    """
    files: dict[str, SourceFile] = {}
    unreachable: dict[str, str] = {}
    for source in sources:
        try:
            found = list_source(source, include, exclude)
        except SourceError as error:
            unreachable[source.name] = str(error)
            continue
        if not found and stored_counts.get(source.name) and not allow_empty:
            unreachable[source.name] = (
                f"source {source.name}: {source.location} holds no file now but {stored_counts[source.name]} documents "
                "are indexed from it; if they are really gone, run `rag-assets index --allow-empty`"
            )
            continue
        files.update((file.document_id, file) for file in found)
    return Listing(files, unreachable)


def stored_documents(lake: Lake, shards: Iterable[str] | None = None) -> dict[str, dict[str, str | None]]:
    """State of the stored documents by `document_id`: `source_name`, `fingerprint`, `content_sha256`, `status`."""
    columns = ["document_id", "source_name", "fingerprint", "content_sha256", "status"]
    rows: pa.Table = lake.read(DOCUMENTS, shards, columns)
    return {row.pop("document_id"): row for row in rows.to_pylist()}


def find_changes(lake: Lake, listing: Listing, newest: Snapshot | None, pipeline: str) -> Changes:
    """Compare listing and store.

    Args:
        lake: The stored tables.
        listing: What the sources hold.
        newest: The snapshot published last, or None.
        pipeline: Digest of the code and settings in force.
    """
    stored = stored_documents(lake)
    new, changed, failed, unchanged = [], [], [], 0
    for name, file in listing.files.items():
        state = stored.get(name)
        if state is None:
            new.append(name)
        elif state["fingerprint"] != file.fingerprint or (state["content_sha256"] is None and not file.problem):
            changed.append(name)
        elif state["status"] == "failed":
            failed.append(name)
        else:
            unchanged += 1
    gone = [
        name for name in stored.keys() - listing.files.keys() if stored[name]["source_name"] not in listing.unreachable
    ]
    return Changes(
        tuple(sorted(new)),
        tuple(sorted(changed)),
        tuple(sorted(gone)),
        tuple(sorted(failed)),
        unchanged,
        _unfinished_shards(lake, newest, pipeline),
        listing.unreachable,
    )


def _unfinished_shards(lake: Lake, newest: Snapshot | None, pipeline: str) -> tuple[str, ...]:
    unfinished: set[str] = set()
    for table in TABLES.values():
        if table.sharded:
            latest = lake.latest(table)
            published = newest.tables.get(table.name, {}) if newest and newest.pipeline == pipeline else {}
            unfinished |= {shard for shard, version in latest.items() if published.get(shard) != version}
    return tuple(sorted(unfinished))
