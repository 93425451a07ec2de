"""The parsing step: brings `documents`, `pages`, `blocks` and `parse_failures` in step with the files."""

import hashlib
import logging
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field
from pathlib import Path, PurePosixPath

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.tables import BLOCKS, DOCUMENTS, PAGES, PARSE_FAILURES
from rag_assets.parsing.content import Failure, ParsedDocument
from rag_assets.parsing.parse import ParsingLimits, parser_fingerprint
from rag_assets.parsing.pool import ParseJob, parse_files
from rag_assets.parsing.records import Record, document_record, file_facts, parsed_records, rows
from rag_assets.sources.changes import Listing, stored_documents
from rag_assets.sources.listing import SourceFile, fetch
from rag_assets.store.incremental import StepReport, replace_documents, stale_documents
from rag_assets.store.lake import Lake

TABLES_WRITTEN = (DOCUMENTS, PAGES, BLOCKS, PARSE_FAILURES)

_CONTENT_TABLES = (PAGES, BLOCKS, PARSE_FAILURES)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Content:
    """Bytes of a file as found: their SHA-256 and a local path to them, or why they cannot be read."""

    sha256: str | None
    path: str
    problem: str = ""


@dataclass
class _Shard:
    """Work on one shard: what its documents are to be computed from, and what has been parsed so far.

    Those `retried` are encrypted and up to date: they are parsed again for the passwords given now, of which nothing is
    stored that could tell whether they are new, and stay as they are where none fits.
    """

    name: str
    files: dict[str, SourceFile]
    contents: dict[str, _Content]
    content_keys: dict[str, str]
    gone: set[str]
    retried: set[str] = field(default_factory=set)
    to_parse: list[str] = field(default_factory=list)
    parsed: dict[str, ParsedDocument] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.parsed) == len(self.to_parse)

    def document_keys(self) -> dict[str, str]:
        keys = self.content_keys.items()
        return {name: digest(key, self.files[name].fingerprint, self.files[name].uri) for name, key in keys}


def update_documents(
    lake: Lake,
    listing: Listing,
    shards: Sequence[str],
    limits: ParsingLimits,
    workers: int,
    progress: Callable[[int, int], None],
    passwords: tuple[str, ...] = (),
) -> StepReport:
    """Parse the files of some shards that are new or changed, and drop documents whose file is gone.

    Args:
        lake: Where the tables are.
        listing: What the sources hold.
        shards: Shards to look at.
        limits: Limits for one file.
        workers: Parsing processes.
        progress: Told documents parsed, and documents to parse in the shards looked at so far.
        passwords: Tried on encrypted files, also on those that could not be opened before.
    """
    report = StepReport()
    pending: dict[str, _Shard] = {}
    shard_of_job: dict[str, _Shard] = {}
    total = 0

    def jobs(scratch: Path) -> Iterator[ParseJob]:
        """Compare shard by shard and hand out what has to be parsed; a shard without such work is written at once."""
        nonlocal total
        for name in shards:
            shard = _compare(lake, listing, name, limits, scratch, retry_encrypted=bool(passwords))
            total += len(shard.to_parse)
            pending[name] = shard
            for document_id in shard.to_parse:
                content = shard.contents[document_id]
                if content.sha256 is None:
                    failure = Failure(FailureCause.UNREADABLE, content.problem)
                    shard.parsed[document_id] = ParsedDocument(_extension(document_id), failures=(failure,))
            if shard.is_complete:
                _write(lake, pending.pop(name), report)
            for document_id in shard.to_parse:
                if document_id not in shard.parsed:
                    shard_of_job[document_id] = shard
                    content = shard.contents[document_id]
                    yield ParseJob(document_id, content.path, content.sha256 or "")

    done = 0
    with tempfile.TemporaryDirectory(prefix="rag-assets-") as folder:
        scratch = Path(folder)
        with closing(parse_files(jobs(scratch), workers=workers, limits=limits, passwords=passwords)) as results:
            for job, parsed in results:
                shard = shard_of_job.pop(job.document_id)
                shard.parsed[job.document_id] = parsed
                _discard(str(job.path), scratch)
                done += 1
                progress(done, total)
                if shard.is_complete:
                    _write(lake, pending.pop(shard.name), report)
    return report


def parsing_fingerprint() -> str:
    """Digest of the code that the tables of this step depend on."""
    code = code_fingerprint(__name__, "rag_assets.parsing.records", "rag_assets.parsing.language")
    return digest(parser_fingerprint(), code)


def content_key(content: _Content, file: SourceFile, limits: ParsingLimits) -> str:
    """Digest of all that the parsed content of a file depends on."""
    if content.sha256 is None:
        return digest("unreadable", file.fingerprint, content.problem)
    return digest(content.sha256, _extension(file.document_id), parsing_fingerprint(), *astuple(limits))


def encrypted_documents(lake: Lake, shards: Iterable[str] | None = None) -> set[str]:
    """Stored documents of some shards, or of all, that ask for a password."""
    failures = lake.read(PARSE_FAILURES, shards, ["document_id", "cause"]).to_pylist()
    return {row["document_id"] for row in failures if row["cause"] == FailureCause.ENCRYPTED}


def _compare(
    lake: Lake, listing: Listing, name: str, limits: ParsingLimits, scratch: Path, *, retry_encrypted: bool
) -> _Shard:
    stored = stored_documents(lake, [name])
    files = {file.document_id: file for file in listing.in_shard(name)}
    contents: dict[str, _Content] = {}
    for document_id, file in files.items():
        known = stored.get(document_id)
        same = known and (known["fingerprint"], known["uri"]) == (file.fingerprint, file.uri)
        if known and same and known["content_sha256"]:
            contents[document_id] = _Content(known["content_sha256"], file.path if file.local else "")
        else:
            contents[document_id] = _read_content(file, scratch)
    before = lake.inputs(BLOCKS, name)
    keys = {document_id: content_key(contents[document_id], file, limits) for document_id, file in files.items()}
    keys = {n: _opened(key) if before.get(n) == _opened(key) else key for n, key in keys.items()}
    written = {n for table in TABLES_WRITTEN for n in lake.inputs(table, name)}
    gone = {n for n in written - files.keys() if n.partition("/")[0] not in listing.unreachable}
    shard = _Shard(name, files, contents, keys, gone)
    unknown = keys.keys() - stored.keys()
    stale = {*stale_documents(lake, _CONTENT_TABLES, name, keys), *unknown}
    shard.retried = (encrypted_documents(lake, [name]) & keys.keys()) - stale if retry_encrypted else set()
    shard.to_parse = sorted(stale | shard.retried)
    for document_id in shard.to_parse:
        if not contents[document_id].path:  # known, but not at hand
            contents[document_id] = _read_content(files[document_id], scratch)
    for document_id in files.keys() - set(shard.to_parse):
        _discard(contents[document_id].path, scratch)
    return shard


def _opened(key: str) -> str:
    """Key of the content of an encrypted file that could be opened later on: what follows from it is computed anew."""
    return digest(key, "opened")


def _read_content(file: SourceFile, scratch: Path) -> _Content:
    """Hash a file; one that is not on this machine is fetched into the scratch folder for that."""
    if file.problem:
        return _Content(None, file.path, file.problem)
    try:
        path = file.path if file.local else _fetch(file, scratch)
        with open(path, "rb") as opened:  # noqa: PTH123 - names that are no UTF-8 stay as the system gives them
            return _Content(hashlib.file_digest(opened, "sha256").hexdigest(), path)
    except (OSError, ValueError) as error:
        return _Content(None, file.path, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _fetch(file: SourceFile, scratch: Path) -> str:
    target = str(scratch / f"{digest(file.document_id)}.{_extension(file.document_id)}")
    fetch(file, target)
    return target


def _discard(path: str, scratch: Path) -> None:
    if Path(path).parent == scratch:
        Path(path).unlink(missing_ok=True)


def _extension(document_id: str) -> str:
    return PurePosixPath(document_id).suffix.lower().lstrip(".")


def _write(lake: Lake, shard: _Shard, report: StepReport) -> None:
    for name in shard.retried:
        if any(failure.cause is FailureCause.ENCRYPTED for failure in shard.parsed[name].failures):
            del shard.parsed[name]
        else:
            shard.content_keys[name] = _opened(shard.content_keys[name])
    _write_documents(lake, shard, report)  # first, so that a run killed in between leaves nothing that looks done
    records: dict[str, list[Record]] = defaultdict(list)
    for document_id, parsed in shard.parsed.items():
        for table_name, found in parsed_records(document_id, parsed).items():
            records[table_name] += found
    inputs = {name: shard.content_keys[name] for name in shard.parsed}
    for table in _CONTENT_TABLES:
        new_rows = rows(table.schema, records[table.name])
        replace_documents(lake, table, shard.name, new_rows, inputs, shard.gone, report)
    done = report.of(shard.name)
    done.computed += len(shard.parsed)
    done.removed += len(shard.gone)
    done.kept += len(shard.files) - len(shard.parsed)


def _write_documents(lake: Lake, shard: _Shard, report: StepReport) -> None:
    keys = shard.document_keys()
    old = {row["document_id"]: row for row in lake.read(DOCUMENTS, [shard.name]).to_pylist()}
    documents = []
    for name in sorted({*stale_documents(lake, [DOCUMENTS], shard.name, keys), *shard.parsed}):
        file, sha256 = shard.files[name], shard.contents[name].sha256
        if name in shard.parsed:
            documents.append(document_record(file, sha256, shard.parsed[name]))
        else:  # touched, but of the same content
            documents.append({**old[name], **file_facts(file, sha256)})
    inputs = {record["document_id"]: keys[record["document_id"]] for record in documents}
    replace_documents(lake, DOCUMENTS, shard.name, rows(DOCUMENTS.schema, documents), inputs, shard.gone, report)
