"""Lists the files of a source: a local folder or an fsspec URI. Reads no file content."""

import logging
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from rag_assets.contracts.errors import SettingsError, SourceError
from rag_assets.contracts.fingerprint import digest

_log = logging.getLogger(__name__)
_NAMED = re.compile(r"(?P<name>[^/\\=:]+)=(?P<location>.+)", re.DOTALL)


@dataclass(frozen=True)
class Source:
    """A folder or bucket whose files are indexed.

    Attributes:
        name: First part of the ids of its documents.
        location: Absolute local path, or fsspec URI.
    """

    name: str
    location: str

    @property
    def is_local(self) -> bool:
        """Whether the location is a path of this machine."""
        return "://" not in self.location


@dataclass(frozen=True)
class SourceFile:
    """A file of a source, as listed.

    Attributes:
        document_id: Source name and path below its root: POSIX separators, NFC.
        source_name: Name of the source.
        path: Local path, or path within the file system of the URI.
        uri: The location as shown to people.
        size_bytes: Size in bytes.
        modified_at: Time of the last change, UTC; None where the file system does not tell.
        fingerprint: Changes whenever the file's size, time of change or entity tag does.
        local: Whether `path` is a path of this machine.
        problem: Why the file cannot be read, or None.
    """

    document_id: str
    source_name: str
    path: str
    uri: str
    size_bytes: int
    modified_at: datetime | None
    fingerprint: str
    local: bool
    problem: str | None = None


def parse_source(text: str) -> Source:
    """Read `LOCATION` or `NAME=LOCATION`; the name defaults to the last part of the location.

    Raises:
        SettingsError: There is no name to be had from it.
    """
    text = text.strip()
    named = _NAMED.fullmatch(text) if not Path(text).exists() else None
    location = named["location"] if named else text
    if location.startswith("file://"):
        location = location.removeprefix("file://")
    if "://" in location:
        scheme, _, rest = location.partition("://")
        location = f"{scheme}://{rest.rstrip('/')}"
        name = named["name"] if named else (location.rstrip("/").rpartition("/")[2] or scheme)
    else:
        path = Path(location).expanduser().absolute()
        location = os.path.normpath(path)
        name = named["name"] if named else Path(location).name
    name = unicodedata.normalize("NFC", name)
    if not name or "/" in name or "#" in name:
        raise SettingsError(f"source {text!r}: cannot be named after its location; write NAME={text}")
    return Source(name, location)


def list_source(source: Source, include: Sequence[str], exclude: Sequence[str]) -> list[SourceFile]:
    """Files of a source in order of `document_id`.

    A symbolic link is followed where its target lies below the source's root; others are left out with a warning.

    Args:
        source: The source.
        include: Globs below the root (`**` crosses folders); a file must match one.
        exclude: Globs below the root; a file that matches one is left out.

    Raises:
        SourceError: The root does not exist or cannot be listed.
    """
    wanted, unwanted = _matcher(tuple(include)), _matcher(tuple(exclude))
    found = _local_files(source) if source.is_local else _remote_files(source)
    files: dict[str, SourceFile] = {}
    for relative, file in found:
        if not wanted(relative) or unwanted(relative):
            continue
        if file.document_id in files:  # two names that differ in their Unicode form only
            name = f"{file.document_id}~{digest(file.path)[:8]}"
            file = SourceFile(**{**file.__dict__, "document_id": name})  # noqa: PLW2901
        files[file.document_id] = file
    return [files[name] for name in sorted(files)]


def _local_files(source: Source) -> Iterator[tuple[str, SourceFile]]:
    root = Path(source.location)
    if not root.is_dir():
        raise SourceError(f"source {source.name}: no such folder: {source.location}")
    real_root = os.path.realpath(root)
    try:
        yield from _walk(source, source.location, "", real_root, (real_root,))
    except OSError as error:
        raise SourceError(f"source {source.name}: {source.location}: {error.strerror or error}") from error


def _walk(
    source: Source, folder: str, prefix: str, root: str, above: tuple[str, ...]
) -> Iterator[tuple[str, SourceFile]]:
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        relative = prefix + entry.name
        if entry.is_symlink() and not _inside(os.path.realpath(entry.path), root):
            _log.warning("source %s: link left out, its target lies outside the source: %r", source.name, relative)
            continue
        if entry.is_dir():
            real = os.path.realpath(entry.path)
            if real in above:
                _log.warning("source %s: link left out, it leads to a folder above itself: %r", source.name, relative)
                continue
            try:
                yield from _walk(source, entry.path, relative + "/", root, (*above, real))
            except PermissionError as error:
                raise SourceError(f"source {source.name}: cannot list {entry.path}: {error.strerror}") from error
        elif entry.is_file():
            yield relative, _local_file(source, entry, relative)


def _local_file(source: Source, entry: os.DirEntry[str], relative: str) -> SourceFile:
    status = entry.stat()
    return SourceFile(
        document_id=_document_id(source, relative),
        source_name=source.name,
        path=entry.path,
        uri=_printable(entry.path),
        size_bytes=status.st_size,
        modified_at=datetime.fromtimestamp(status.st_mtime_ns // 1000 / 1e6, tz=UTC),
        fingerprint=f"{status.st_size}:{status.st_mtime_ns}",
        local=True,
        problem=None if os.access(entry.path, os.R_OK) else "no permission to read the file",
    )


def _remote_files(source: Source) -> Iterator[tuple[str, SourceFile]]:
    from fsspec.core import url_to_fs

    try:
        file_system, root = url_to_fs(source.location)
        file_system.invalidate_cache()
        found: dict[str, dict[str, Any]] = file_system.find(root, detail=True)
        if not found and not file_system.isdir(root):
            raise SourceError(f"source {source.name}: no such folder: {source.location}")
    except (OSError, ValueError, ImportError) as error:
        raise SourceError(f"source {source.name}: {source.location}: {error}") from error
    for path, facts in sorted(found.items()):
        relative = path.removeprefix(root).lstrip("/")
        if not relative or any(part in {".", ".."} for part in relative.split("/")):
            continue
        changed = next(
            (facts[key] for key in ("LastModified", "last_modified", "mtime", "updated", "created") if facts.get(key)),
            None,
        )
        tag = facts.get("ETag") or facts.get("etag") or facts.get("md5Hash") or changed
        yield (
            relative,
            SourceFile(
                document_id=_document_id(source, relative),
                source_name=source.name,
                path=path,
                uri=f"{source.location}/{_printable(relative)}",
                size_bytes=int(facts.get("size") or 0),
                modified_at=_as_time(changed),
                fingerprint=f"{facts.get('size')}:{tag}",
                local=False,
            ),
        )


def _as_time(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, tz=UTC)
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
def _matcher(globs: tuple[str, ...]) -> "_Matcher":
    return _Matcher(globs)


class _Matcher:
    """Whether a POSIX path matches one of some globs: `**/` crosses folders, `*` and `?` do not."""

    def __init__(self, globs: tuple[str, ...]) -> None:
        self._pattern = re.compile("|".join(map(_glob_pattern, globs)) or r"(?!)", re.DOTALL)

    def __call__(self, path: str) -> bool:
        return self._pattern.fullmatch(unicodedata.normalize("NFC", path)) is not None


def _glob_pattern(glob: str) -> str:
    parts = re.split(r"(\*\*/|/\*\*$|^\*\*$|\*|\?)", unicodedata.normalize("NFC", glob))
    meaning = {"**/": r"(?:.*/)?", "/**": r"/.*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return "".join(meaning.get(part, re.escape(part)) for part in parts)


def matches(path: str, globs: Sequence[str]) -> bool:
    """Whether a path matches one of some globs."""
    return _matcher(tuple(globs))(path)
