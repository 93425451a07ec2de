"""Lists the files of a source: a local folder or an fsspec URI. Reads no file content."""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from rag_assets.contracts.errors import SettingsError, SourceError
from rag_assets.contracts.fingerprint import digest

_NAMED = re.compile(r"(?P<name>[^/\\=:]+)=(?P<location>.+)", re.DOTALL)
_PATH_PARTS = (".", "..")  # names that links to documents would lose
_NO_INODE = "-"
# what listings of fsspec call a value that follows the bytes: S3, Azure, GCS, GitHub, Git, zip
_CONTENT_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "sha", "hex", "CRC")


@dataclass(frozen=True)
class Source:
    """A folder or bucket whose files are indexed."""

    name: str  # first part of the ids of its documents
    location: str  # absolute local path, or fsspec URI
    # whether a person chose the name; else it is the last part of the location
    is_named: bool = field(default=False, compare=False)

    @property
    def is_local(self) -> bool:
        """Whether the location is a path of this machine."""
        return "://" not in self.location

    @property
    def place(self) -> str:
        """The location with its links followed."""
        return os.path.realpath(self.location) if self.is_local else self.location

    def holds(self, other: "Source") -> bool:
        """Whether another source is the same folder or lies within this one."""
        return self.is_local == other.is_local and _inside(other.place, self.place)


@dataclass(frozen=True)
class SourceFile:
    """A file of a source, as listed."""

    document_id: str  # source name and path below its root: POSIX separators, NFC
    source_name: str
    path: str  # local path, or path within the file system of the URI
    uri: str  # the location as shown to people
    size_bytes: int
    modified_at: datetime | None  # time of the last change, UTC; None where the file system does not tell
    fingerprint: str  # changes whenever the file's size, times of change, inode or entity tag does; see `same_state`
    local: bool  # whether `path` is a path of this machine
    problem: str | None = None  # why the file cannot be read, or None
    source_location: str = ""  # location of the source; names the file system that `path` lies in
    has_content_tag: bool = False  # whether the fingerprint holds a checksum or entity tag, which follows the bytes


@dataclass(frozen=True)
class SourceListing:
    """What one source holds."""

    files: list[SourceFile]  # its files in order of `document_id`
    # places below its root that could not be looked at, and why; files there are not among `files`
    unreadable: tuple[str, ...] = ()
    omissions: tuple[str, ...] = ()  # what is no file to read, and why, as in `specs/pipe: a named pipe`; never opened


def same_state(stored: str, listed: str) -> bool:
    """Whether two fingerprints are those of a file that nobody touched in between.

    Inodes are not compared where the stored fingerprint has none: see `without_inode`.
    """
    facts, _, inode = stored.rpartition(":")
    return stored == listed or (inode == _NO_INODE and listed.rpartition(":")[0] == facts)


def without_inode(fingerprint: str) -> str:
    """Fingerprint of a file whose inode changed while all else stayed: it tells nothing on that file system."""
    return f"{fingerprint.rpartition(':')[0]}:{_NO_INODE}"


def size_and_time(fingerprint: str) -> str:
    """The part of the fingerprint of a local file that stays when it is moved, linked or given other rights."""
    return ":".join(fingerprint.split(":")[:2])


def parse_source(text: str) -> Source:
    """Read `LOCATION` or `NAME=LOCATION`; the name defaults to the last part of the location.

    A text that is the path of something that exists is a location, whatever it contains; so is one with a `/` or `:`
    before its first `=`.

    Raises:
        SettingsError: There is no name to be had from it.
    """
    text = text.strip()
    if not text:
        raise SettingsError("source '': empty; name a folder, or NAME=LOCATION")
    match = _NAMED.fullmatch(text) if not os.path.exists(text) else None  # noqa: PTH110 - never raises
    location = match["location"] if match else text
    if location.startswith("file://"):
        location = location.removeprefix("file://")
    if "://" in location:
        scheme, _, rest = location.partition("://")
        location = f"{scheme}://{rest.rstrip('/')}"
        name = match["name"] if match else (location.rstrip("/").rpartition("/")[2] or scheme)
    else:
        path = Path(location).expanduser().absolute()
        location = os.path.normpath(path)
        name = match["name"] if match else Path(location).name
    name = unicodedata.normalize("NFC", name)
    if match and name in _PATH_PARTS:
        raise SettingsError(f"source {text!r}: {name!r} is a step of a path, no name; write NAME={match['location']}")
    if not name or name in _PATH_PARTS or "/" in name or "#" in name:
        raise SettingsError(f"source {text!r}: cannot be named after its location; write NAME={text}")
    return Source(name, location, is_named=match is not None)


def scan_source(
    source: Source,
    include: Sequence[str],
    exclude: Sequence[str],
    excluded_paths: Collection[str] = (),
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> SourceListing:
    """List a source.

    A symbolic link is followed where its target lies below the source's root. Others are omitted, and so are those that
    lead nowhere, pipes, sockets and devices. Of files whose names differ in their Unicode form only, the one whose name
    is composed (NFC) has the plain id, whichever came first. Folders of which everything is excluded are not looked
    into.

    Args:
        source: The source.
        include: Globs below the root (`**` crosses folders); a file must match one.
        exclude: Globs below the root; a file that matches one is left out.
        excluded_paths: Real paths of local folders that are left out, with all that they hold.
        progress: Told the number of files that were listed, as it grows; the total is 0.

    Raises:
        SourceError: The root does not exist, is a file, cannot be listed, or is one of the excluded paths.
    """
    includes, excludes = _matcher(tuple(include)), _matcher(tuple(exclude))

    def is_taken(relative: str) -> bool:
        return includes(relative) and not excludes(relative)

    unreadable: list[str] = []
    omissions: list[str] = []
    if source.is_local:
        whole_folders = tuple(glob for glob in exclude if f"/{glob}".endswith(("/**", "/**/*")))
        entries = _local_files(source, is_taken, _matcher(whole_folders), excluded_paths, unreadable, omissions)
    else:
        entries = ((relative, file) for relative, file in _remote_files(source) if is_taken(relative))
    twins_by_name: dict[str, list[tuple[str, SourceFile]]] = {}
    for relative, file in entries:
        twins_by_name.setdefault(file.document_id, []).append((relative, file))
        progress(len(twins_by_name), 0)
    files = {name: min(twins, key=_name_rank)[1] for name, twins in twins_by_name.items()}
    for name, twins in twins_by_name.items():
        path = PurePosixPath(name)
        for relative, file in sorted(twins, key=_name_rank)[1:]:
            own_id = str(path.with_name(f"{path.stem}~{digest(_printable(relative))[:8]}{path.suffix}"))
            files[own_id] = replace(file, document_id=own_id)
    return SourceListing([files[name] for name in sorted(files)], tuple(unreadable), tuple(omissions))


def _name_rank(entry: tuple[str, SourceFile]) -> tuple[bool, bytes]:
    relative = entry[0]
    return not unicodedata.is_normalized("NFC", relative), os.fsencode(relative)


def fetch(file: SourceFile, target: str) -> None:
    """Copy a file that is not on this machine to a local path.

    Raises:
        OSError: It cannot be read.
        ValueError: The location of its source is malformed.
    """
    from fsspec.core import url_to_fs

    file_system, _ = url_to_fs(file.source_location)
    file_system.get_file(file.path, target)


def _local_files(
    source: Source,
    is_taken: Callable[[str], bool],
    excludes_folder: Callable[[str], bool],
    excluded_paths: Collection[str],
    unreadable: list[str],
    omissions: list[str],
) -> Iterator[tuple[str, SourceFile]]:
    if os.path.isfile(source.location):  # noqa: PTH113 - never raises
        raise _is_a_file(source)
    if not os.path.isdir(source.location):  # noqa: PTH112 - never raises
        hint = "; a NAME before `=` holds no `/`, `\\` or `:`" if "=" in source.location else ""
        raise SourceError(f"source {source.name}: no such folder: {source.location}{hint}")
    real_root = os.path.realpath(source.location)
    if real_root in excluded_paths:
        raise SourceError(f"source {source.name}: {source.location} is the folder of the knowledge base itself")
    below_root = tuple(path for path in excluded_paths if _inside(path, real_root))
    walk = _Walk(source, real_root, is_taken, excludes_folder, below_root, unreadable, omissions)
    try:
        yield from walk.files(source.location, "", (real_root,))
    except OSError as error:
        raise SourceError(f"source {source.name}: {source.location}: {error.strerror or error}") from error


def _is_a_file(source: Source) -> SourceError:
    folder = source.location.rpartition("/")[0] or "/"
    return SourceError(f"source {source.name}: {source.location} is a file; name its folder: {folder}")


@dataclass(frozen=True)
class _Walk:
    """A walk through a local source: one bad entry does not end it."""

    source: Source
    root: str  # real path of its root
    taken: Callable[[str], bool]  # whether the file of a relative path is wanted
    # whether all that a folder can hold is excluded; takes its relative path with a `/` at the end
    excludes_folder: Callable[[str], bool]
    excluded_paths: tuple[str, ...]  # real paths of folders to leave out
    unreadable: list[str]  # told what could not be looked at
    omissions: list[str]  # told what is no file to read

    def files(self, folder: str, prefix: str, above: tuple[str, ...]) -> Iterator[tuple[str, SourceFile]]:
        """Files below a folder, whose real path and those of the folders above it are given.

        Raises:
            OSError: The folder itself cannot be listed.
        """
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
        for entry in entries:
            relative = prefix + entry.name
            try:
                is_folder = self._is_folder(entry, relative)
                if is_folder is False and self.taken(relative):
                    if entry.is_file():
                        yield relative, _local_file(self.source, entry, relative)
                    else:
                        self._omit(_kind(entry.stat().st_mode), relative)
                elif is_folder and not self.excludes_folder(relative + "/"):
                    real = os.path.realpath(entry.path)
                    if real in above:
                        self._omit("a link to a folder above itself", relative)
                    elif real not in self.excluded_paths:
                        yield from self.files(entry.path, relative + "/", (*above, real))
            except (FileNotFoundError, NotADirectoryError):  # deleted since the folder was listed
                continue
            except OSError as error:
                if self.taken(relative) or not self.excludes_folder(relative + "/"):
                    self.unreadable.append(f"{_printable(entry.path)}: {error.strerror or error}")

    def _is_folder(self, entry: os.DirEntry[str], relative: str) -> bool | None:
        """Whether an entry is a folder; None for a link that is left out."""
        if not entry.is_symlink():
            return entry.is_dir()
        target = os.path.realpath(entry.path)
        if any(_inside(target, path) for path in self.excluded_paths):
            return None
        if not _inside(target, self.root):
            self._omit("a link out of the source", relative)
            return None
        try:
            return stat.S_ISDIR(os.stat(entry.path).st_mode)  # noqa: PTH116 - names that are no UTF-8
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                raise
            self._omit(f"a link that leads nowhere ({error.strerror})", relative)
            return None

    def _omit(self, reason: str, relative: str) -> None:
        if self.taken(relative) and not self.excludes_folder(relative + "/"):
            self.omissions.append(f"{self.source.name}/{_printable(relative)}: {reason}")


def _kind(mode: int) -> str:
    """What an entry is that is neither a file nor a folder."""
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _local_file(source: Source, entry: os.DirEntry[str], relative: str) -> SourceFile:
    status = entry.stat()
    return SourceFile(
        document_id=_document_id(source, relative),
        source_name=source.name,
        path=entry.path,
        uri=_printable(entry.path),
        size_bytes=status.st_size,
        modified_at=_as_time(status.st_mtime_ns // 1000 / 1e6),
        fingerprint=f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}",
        local=True,
        problem=None if os.access(entry.path, os.R_OK) else "no permission to read the file",
        source_location=source.location,
    )


def _remote_files(source: Source) -> Iterator[tuple[str, SourceFile]]:
    from fsspec.core import url_to_fs

    try:
        file_system, root = url_to_fs(source.location)
        file_system.invalidate_cache()
        entries: dict[str, dict[str, Any]] = file_system.find(root, detail=True)
        if set(entries) == {root} and file_system.isfile(root):
            raise _is_a_file(source)
        if not entries and not file_system.isdir(root):
            raise SourceError(f"source {source.name}: no such folder: {source.location}")
    except (OSError, ValueError, ImportError) as error:
        raise SourceError(f"source {source.name}: {source.location}: {error}") from error
    for path, facts in sorted(entries.items()):
        relative = path.removeprefix(root).lstrip("/")
        if not relative or any(part in {".", ".."} for part in relative.split("/")):
            continue
        change_time = next(
            (facts[key] for key in ("LastModified", "last_modified", "mtime", "updated", "created") if facts.get(key)),
            None,
        )
        tag = next((facts[key] for key in _CONTENT_TAGS if facts.get(key)), None)
        yield (
            relative,
            SourceFile(
                document_id=_document_id(source, relative),
                source_name=source.name,
                path=path,
                uri=f"{source.location}/{_printable(relative)}",
                size_bytes=int(facts.get("size") or 0),
                modified_at=_as_time(change_time),
                fingerprint=f"{facts.get('size')}:{tag or change_time}",
                local=False,
                source_location=source.location,
                has_content_tag=tag is not None,
            ),
        )


def _as_time(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value, tz=UTC)
        except (ValueError, OverflowError, OSError):  # beyond the years 1 to 9999
            return None
    if isinstance(value, str):
        try:
            return _as_time(datetime.fromisoformat(value))
        except ValueError:
            return None
    return None


def _document_id(source: Source, relative: str) -> str:
    return unicodedata.normalize("NFC", f"{source.name}/{_printable(relative)}")


def _printable(path: str) -> str:
    """The path with bytes that are no UTF-8 escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


@cache
def _matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a POSIX path matches one of some globs: `**/` crosses folders, `*` and `?` do not."""
    pattern = re.compile("|".join(map(_glob_pattern, globs)) or r"(?!)", re.DOTALL)
    return lambda path: pattern.fullmatch(unicodedata.normalize("NFC", path)) is not None


def _glob_pattern(glob: str) -> str:
    parts = re.split(r"(\*\*/|/\*\*$|^\*\*$|\*|\?)", unicodedata.normalize("NFC", glob))
    meaning = {"**/": r"(?:.*/)?", "/**": r"/.*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return "".join(meaning.get(part, re.escape(part)) for part in parts)


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a path matches one of some globs."""
    return _matcher(tuple(globs))(path)
