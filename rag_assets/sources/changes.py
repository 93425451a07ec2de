"""What the sources hold against what is stored: which documents are new, changed or gone, and in which shards.

Reads listings and stored tables only; hashes and parses nothing, so that a sensor may ask every minute.
"""

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from rag_assets.contracts.causes import DocumentStatus
from rag_assets.contracts.errors import SettingsError, SourceError, StoreError
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.sources.listing import (
    Source,
    SourceFile,
    parse_source,
    same_state,
    scan_source,
    size_and_time,
)
from rag_assets.store.files import SealedFile
from rag_assets.store.lake import Lake, shard_of


@dataclass(frozen=True)
class Listing:
    """The files of all sources."""

    files: Mapping[str, SourceFile]  # files by `document_id`
    # why a source could not be listed, or only in part, by source name. None of its documents is removed
    unreachable: Mapping[str, str] = field(default_factory=dict)
    omissions: tuple[str, ...] = ()  # what was found that is no file to read, and why

    def in_shard(self, shard: str) -> list[SourceFile]:
        """Files whose documents belong to a shard, in order of `document_id`."""
        return [file for name, file in self.files.items() if shard_of(name) == shard]


@dataclass(frozen=True)
class Changes:
    """What an index run would do."""

    new: tuple[str, ...]  # documents that are not stored yet
    # documents whose file changed or moved since it was read, or can be read now and could not before
    changed: tuple[str, ...]
    gone: tuple[str, ...]  # stored documents whose file is no more
    failed: tuple[str, ...]  # stored documents that could not be parsed and have not changed
    unchanged: int  # number of documents that are as stored
    # shards whose stored state is not published, or was computed by other code or settings
    unfinished_shards: tuple[str, ...]
    unreachable: Mapping[str, str]  # why a source could not be listed, by source name
    # documents whose file has the size and time that it had, but another inode or time of status change: it may have
    # been replaced, moved or given other rights, and an index run compares its bytes
    touched: tuple[str, ...] = ()

    @property
    def shards(self) -> tuple[str, ...]:
        """Shards that an index run has to look at, rising."""
        touched_shards = {shard_of(name) for name in (*self.new, *self.changed, *self.touched, *self.gone)}
        return tuple(sorted(touched_shards | set(self.unfinished_shards)))


def read_sources(configured: Iterable[str], registered: Path) -> tuple[Source, ...]:
    """The sources named in the settings and those registered in the home, by name.

    A folder of the settings without a name of its own is the registered source of that folder.

    Args:
        configured: Sources as written in the settings.
        registered: File of the registered sources; may be missing.

    Raises:
        SettingsError: Two sources have one name but not one location, or one of the settings gives the folder of a
            registered one another name.
    """
    known_sources = [Source(name, at) for name, at in _read_registry(registered).items() if at is not None]
    known_places = {source.place: source.name for source in known_sources}
    sources = _by_name(map(parse_source, configured))
    for source in [*sources.values()]:
        known_name = known_places.get(source.place, source.name)
        if known_name == source.name:
            continue
        if source.is_named:
            raise SettingsError(
                f"source {source.name} of the settings is source {known_name} already: the files of {source.location} "
                "would be indexed twice; take it out of the settings, or drop the other: "
                f"`rag-assets index --forget {known_name}`"
            )
        del sources[source.name]
    for source in known_sources:
        entry = sources.setdefault(source.name, source)
        if entry.location != source.location:
            raise SettingsError(
                f"two sources are named {source.name!r}: {entry.location} in the settings, {source.location} "
                f"registered earlier; rename the first: NAME={entry.location}, or drop the second: "
                f"`rag-assets index --forget {source.name}`"
            )
    return tuple(sources[name] for name in sorted(sources))


def forgotten_sources(configured: Iterable[str], registered: Path) -> frozenset[str]:
    """Names of the sources whose documents are to be removed: forgotten, and not configured again since."""
    names = {name for name, location in _read_registry(registered).items() if location is None}
    return frozenset(names - {parse_source(text).name for text in configured})


def update_sources(
    registered: Path,
    given: Sequence[Source],
    forget: Sequence[str],
    configured: Iterable[str],
    stored_names: Collection[str],
    stored_roots: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Remember sources in the home, so that later runs and the Dagster side index them too, and forget others.

    A source that is given replaces a registered one of its name only where that is forgotten with it, or where its
    folder is gone and the name was chosen. The next run removes the documents of a forgotten source, whether it was
    registered or configured. Nothing is written where an error is raised.

    Args:
        registered: File of the registered sources; may be missing.
        given: Sources to remember.
        forget: Names to forget, before anything is remembered.
        configured: Sources as written in the settings.
        stored_names: Names of the sources that documents are stored of.
        stored_roots: Where these documents were read, by source name; for sources that are not registered.

    Raises:
        SettingsError: A name to forget is unknown or still in the settings, two sources have one name but not one
            location, or a source that is given lies within another or holds it.
    """
    in_settings = _by_name(map(parse_source, configured))
    _by_name([*in_settings.values(), *given])
    before = _read_registry(registered)
    # a mark has done its work once the documents are gone, or its source is configured again
    after = {n: at for n, at in before.items() if at is not None or (n in stored_names and n not in in_settings)}
    for text in forget:
        name = unicodedata.normalize("NFC", text)
        location, setting = before.get(name), in_settings.get(name)
        if location is None and name not in stored_names:
            known_names = sorted({n for n, at in before.items() if at is not None} | {*stored_names})
            raise SettingsError(
                f"no registered source {name!r}, and none that documents are stored of; known: {known_names}"
            )
        if setting and location in {None, setting.location}:
            raise SettingsError(
                f"source {name} = {setting.location}: take it out of the settings first (RAG_SOURCES, or `sources` of "
                "the TOML file)"
            )
        if setting:
            after.pop(name, None)
        else:
            after[name] = None
    for source in given:
        old = after.get(source.name)
        if source.name not in {*after, *in_settings}:
            old = stored_roots.get(source.name)
        if old is not None:
            _check_replaces(Source(source.name, old), source)
    after.update((source.name, source.location) for source in given)
    other_sources = [Source(name, location) for name, location in after.items() if location is not None]
    for source in given:
        if before.get(source.name) != source.location:
            _check_apart(source, (*in_settings.values(), *other_sources))
    if after != before:
        registry_file(registered).write({"sources": after})


def _check_replaces(old: Source, new: Source) -> None:
    """Check that documents of the new place may replace those of the old one, which has its name.

    Raises:
        SettingsError: Both may hold documents that are wanted.
    """
    if old.place == new.place:
        return
    name, advice = new.name, f"name the other one: `rag-assets index NAME={new.location}`"
    if not old.is_local or os.path.exists(old.location):  # noqa: PTH110 - never raises
        raise SettingsError(
            f"source {name} is {old.location} already, not {new.location}; {advice}, or replace the first: "
            f"`rag-assets index --forget {name} {name}={new.location}`"
        )
    if not new.is_named:
        raise SettingsError(
            f"source {name} was {old.location}, which is not there now; if it moved: "
            f"`rag-assets index {name}={new.location}`; else {advice}"
        )


def _check_apart(source: Source, other_sources: Iterable[Source]) -> None:
    for other_source in other_sources:
        if other_source.name != source.name and (other_source.holds(source) or source.holds(other_source)):
            inner, outer = (source, other_source) if other_source.holds(source) else (other_source, source)
            raise SettingsError(
                f"source {inner.name} ({inner.location}) lies in source {outer.name} ({outer.location}): its files "
                "would be indexed twice; leave one out; `rag-assets index` alone indexes all known sources"
            )


def overlaps(sources: Sequence[Source]) -> tuple[str, ...]:
    """Which of the known sources lie within others, a line each."""
    return tuple(
        f"source {inner.name} lies in source {outer.name}: its files are indexed twice, unless source.exclude leaves "
        f"them out of {outer.name}; `rag-assets index --forget NAME` takes one out"
        for outer, inner in permutations(sources, 2)
        if outer.holds(inner) and not (inner.holds(outer) and inner.name < outer.name)
    )


def _by_name(sources: Iterable[Source]) -> dict[str, Source]:
    sources_by_name: dict[str, Source] = {}
    for source in sources:
        entry = sources_by_name.setdefault(source.name, source)
        if entry != source:
            raise SettingsError(
                f"two sources are named {source.name!r}: {entry.location} and {source.location}; "
                f"name one of them: NAME={source.location}"
            )
    return sources_by_name


def registry_file(registered: Path) -> SealedFile:
    """The file of the registered sources."""
    return SealedFile(registered)


def _read_registry(path: Path) -> dict[str, str | None]:
    """Locations by name; None where the source was forgotten."""
    try:
        value = registry_file(path).read()
    except StoreError as error:
        raise SettingsError(f"{error}; move it away and name its sources again: `rag-assets index LOCATION`") from error
    locations: dict[str, str | None] = value["sources"] if value else {}
    return locations


def list_sources(
    sources: Iterable[Source],
    include: Sequence[str],
    exclude: Sequence[str],
    stored_counts: Mapping[str, int],
    *,
    allow_empty: bool = False,
    forgotten: Collection[str] = (),
    excluded_paths: Collection[str] = (),
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Listing:
    """List all sources; one that cannot be listed does not stop the others.

    A source that could be listed in part only has its files in the listing and counts as unreachable all the same: what
    is found is indexed, and nothing is removed.

    Args:
        sources: The sources.
        include: Globs of files to take.
        exclude: Globs of files to leave out.
        stored_counts: Number of stored documents by source name. A source that has some but is not among `sources`
            counts as unreachable.
        allow_empty: Believe a source that suddenly holds nothing. Else it counts as unreachable, because a folder whose
            disk is not mounted looks the same.
        forgotten: Names of sources that are not among `sources` because they were forgotten.
        excluded_paths: Real paths of local folders that are left out.
        progress: Told the number of files that were listed, as it grows; the total is 0.
    """
    files: dict[str, SourceFile] = {}
    all_sources = tuple(sources)
    omissions: list[str] = []
    unreachable = {
        name: f"source {name} is not among the sources now; its documents are kept; `rag-assets index --forget {name}` "
        "removes them"
        for name in sorted(stored_counts.keys() - {source.name for source in all_sources} - {*forgotten})
    }
    for source in all_sources:
        try:
            scan = scan_source(source, include, exclude, excluded_paths, _counted_from(len(files), progress))
        except SourceError as error:
            unreachable[source.name] = str(error)
            continue
        files.update((file.document_id, file) for file in scan.files)
        omissions += scan.omissions
        if scan.unreadable:
            more = f" and {len(scan.unreadable) - 1} more" if len(scan.unreadable) > 1 else ""
            unreachable[source.name] = (
                f"source {source.name}: cannot look at {scan.unreadable[0]}{more}; until then nothing of it is "
                "removed: mend it, or leave the place out by source.exclude"
            )
        elif not scan.files and stored_counts.get(source.name) and not allow_empty:
            unreachable[source.name] = (
                f"source {source.name}: {source.location} holds no file, but {stored_counts[source.name]} documents "
                "are indexed; if they are really gone, run `rag-assets index --allow-empty`"
            )
    return Listing(files, unreachable, tuple(omissions))


def _counted_from(start: int, progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
    return lambda count, total: progress(start + count, total)


def stored_documents(lake: Lake, shards: Iterable[str] | None = None) -> dict[str, dict[str, str | None]]:
    """Stored documents by `document_id`: `source_name`, `uri`, `fingerprint`, `content_sha256`, `status`."""
    columns = ["document_id", "source_name", "uri", "fingerprint", "content_sha256", "status"]
    rows: pa.Table = lake.read(DOCUMENTS, shards, columns)
    return {row.pop("document_id"): row for row in rows.to_pylist()}


def stored_counts(lake: Lake) -> dict[str, int]:
    """Number of stored documents by source name."""
    return dict(Counter(str(state["source_name"]) for state in stored_documents(lake).values()))


def stored_roots(lake: Lake) -> dict[str, str]:
    """Folder or URI that the stored documents of each source were read below, by source name."""
    return {
        str(state["source_name"]): str(state["uri"]).rsplit("/", name.count("/"))[0] or "/"
        for name, state in stored_documents(lake).items()
    }


def was_read(state: Mapping[str, str | None]) -> bool:
    """Whether a stored document could be read when it was last looked at."""
    return state["content_sha256"] is not None and state["status"] != DocumentStatus.UNREADABLE


def find_changes(lake: Lake, listing: Listing) -> Changes:
    """Compare listing and store."""
    states = stored_documents(lake)
    new, failed, unchanged = [], [], 0
    changed: list[str] = []
    touched: list[str] = []
    for name, file in listing.files.items():
        state = states.get(name)
        if state is None:
            new.append(name)
        elif state["uri"] != file.uri or _may_have_changed(state, file):
            (touched if _is_touched(state, file) else changed).append(name)
        elif state["status"] == "failed":
            failed.append(name)
        else:
            unchanged += 1
    gone = [
        name for name in states.keys() - listing.files.keys() if states[name]["source_name"] not in listing.unreachable
    ]
    return Changes(
        tuple(sorted(new)),
        tuple(sorted(changed)),
        tuple(sorted(gone)),
        tuple(sorted(failed)),
        unchanged,
        (),
        listing.unreachable,
        tuple(sorted(touched)),
    )


def _is_touched(state: Mapping[str, str | None], file: SourceFile) -> bool:
    """Whether a file that could be read before and can be now is as large and as old as then."""
    is_at_hand = file.local and not file.problem and state["uri"] == file.uri
    return (
        was_read(state) and is_at_hand and size_and_time(state["fingerprint"] or "") == size_and_time(file.fingerprint)
    )


def _may_have_changed(state: Mapping[str, str | None], file: SourceFile) -> bool:
    """Whether a file of the place that is stored is worth reading."""
    if not same_state(state["fingerprint"] or "", file.fingerprint):
        return True
    return file.problem is not None if was_read(state) else _can_be_read(file)


def shards_of_one_change(lake: Lake, listing: Listing, shards: Collection[str], *, every: bool) -> set[str]:
    """Shards to bring in step with those given, so that a version shows one change as a whole.

    A file that moved has left one shard and come to another. Of two shards of which one is left out, either both names
    would be published or neither.

    Args:
        lake: The stored tables.
        listing: What the sources hold.
        shards: Shards that are brought in step.
        every: Whether all that the listing changes is one change; else each file that moved is.
    """
    changes = find_changes(lake, listing)
    if every:
        return {*changes.shards} - {*shards}
    states = stored_documents(lake)
    arrivals: dict[str, set[str]] = {}
    for name in changes.new:
        arrivals.setdefault(size_and_time(listing.files[name].fingerprint), set()).add(shard_of(name))
    moves = [
        {shard_of(name), *arrivals.get(size_and_time(str(states[name]["fingerprint"])), ())} for name in changes.gone
    ]
    joined_shards = {*shards}
    while more := {shard for move in moves if move & joined_shards for shard in move - joined_shards}:
        joined_shards |= more
    return joined_shards - {*shards}


def _can_be_read(file: SourceFile) -> bool:
    """Whether reading a file that could not be read before is worth another try, though it did not change.

    Files that are not on this machine are not asked: that would read each of them at every look.
    """
    if file.problem or not file.local:
        return False
    try:
        with open(file.path, "rb") as stream:  # noqa: PTH123 - names that are no UTF-8 stay as the system gives them
            stream.read(1)
    except (OSError, ValueError):
        return False
    return True
