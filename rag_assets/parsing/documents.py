"""The steps of parsing: they bring `documents`, `pages`, `blocks` and `parse_failures` in step with the files, and
`chunks` with the pages.
"""

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from rag_assets.contracts.causes import DocumentStatus, FailureCause
from rag_assets.contracts.content import Failure, ParsedDocument
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import Tokenizer
from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES, PARSE_FAILURES
from rag_assets.parsing.chunking import chunk_page
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.parse import installed_readers
from rag_assets.parsing.passwords import NO_PASSWORDS, Passwords
from rag_assets.parsing.pool import ParseJob, parse_files
from rag_assets.parsing.records import (
    Record,
    chunk_records,
    document_record,
    document_titles,
    failure_records,
    file_facts,
    load_pages,
    parsed_records,
    rows,
)
from rag_assets.sources.changes import Listing, stored_documents, was_read
from rag_assets.sources.listing import SourceFile, fetch, same_state, without_inode
from rag_assets.store.incremental import Rows, StepReport, replace_documents, stale_documents, update_shard
from rag_assets.store.lake import Lake, shard_of

_CONTENT_TABLES = (PAGES, BLOCKS, PARSE_FAILURES)
# Limits that say how long and how hard to try: what a file that fits into them gives does not depend on them.
_PATIENCE = ("timeout_seconds", "memory_bytes", "ocr_seconds_per_page", "ocr_seconds")
_PASSWORDS = "passwords"
_PATIENCE_CAUSES = frozenset((FailureCause.TIMEOUT, FailureCause.MEMORY))
_READ = (DocumentStatus.PARSED, DocumentStatus.UNREADABLE)


@dataclass(frozen=True)
class _Content:
    """Bytes of a file as found: their SHA-256 and a local path to them, or why they cannot be read."""

    sha256: str | None
    path: str
    problem: str = ""


@dataclass
class _Shard:
    """Work on one shard: what its documents are to be computed from, and what has been parsed so far.

    Those `lost` were parsed and can no longer be read: their rows stay, because a share that is away for a while looks
    the same, and say so.
    """

    name: str
    files: dict[str, SourceFile]
    contents: dict[str, _Content]
    content_keys: dict[str, str]
    gone: set[str]
    stored: dict[str, dict[str, str | None]]
    keys_before: dict[str, str]
    lost: dict[str, str] = field(default_factory=dict)
    to_parse: list[str] = field(default_factory=list)
    parsed: dict[str, ParsedDocument] = field(default_factory=dict)

    def document_keys(self) -> dict[str, str]:
        """Digests of what the rows of `documents` follow from, by document."""
        keys = {}
        for name, key in self.content_keys.items():
            file, state = self.files[name], ["lost"] if name in self.lost else []
            keys[name] = digest(key, file.fingerprint, file.uri, *state)
        return keys

    def can_keep(self, document_id: str) -> bool:
        """Whether there are rows of an earlier reading to keep."""
        record = self.stored.get(document_id)
        return record is not None and record["status"] in _READ and document_id in self.keys_before

    def lose(self, document_id: str, problem: str) -> None:
        """Keep what was read of a document before, since it cannot be read now."""
        self.lost[document_id] = problem
        self.content_keys[document_id] = self.keys_before[document_id]
        self.contents[document_id] = _Content(self.stored[document_id]["content_sha256"], "")


def update_documents(
    lake: Lake,
    listing: Listing,
    shards: Sequence[str],
    limits: ParsingLimits,
    workers: int,
    progress: Callable[[int, int], None],
    passwords: Passwords = NO_PASSWORDS,
    *,
    full_check: bool = False,
) -> StepReport:
    """Parse the files of some shards that are new or changed, and drop documents whose file is gone.

    Args:
        lake: Where the tables are.
        listing: What the sources hold.
        shards: Shards to look at.
        limits: Limits for one file.
        workers: Parsing processes.
        progress: Told documents parsed, and documents to parse in the shards looked at so far.
        passwords: Tried on encrypted files, also on those that no other could open before.
        full_check: Compare the bytes of every file, whatever its size and times say; files that their listing gives a
            checksum or an entity tag of are told by that.
    """
    report = StepReport()
    shard_of_job: dict[str, _Shard] = {}
    total = 0
    readers = installed_readers(limits)

    def jobs(scratch: Path) -> Iterator[ParseJob]:
        """Compare shard by shard and hand out what has to be parsed; a shard without such work is written at once."""
        nonlocal total
        for name in shards:
            shard = _compare(lake, listing, name, limits, passwords, scratch, readers, full_check=full_check)
            total += len(shard.to_parse)
            readable: list[ParseJob] = []
            for document_id in shard.to_parse:
                content = shard.contents[document_id]
                if content.sha256 is None:
                    failure = Failure(FailureCause.UNREADABLE, content.problem)
                    shard.parsed[document_id] = ParsedDocument(_extension(document_id), failures=(failure,))
                else:
                    readable.append(ParseJob(document_id, content.path, content.sha256))
            if not readable:
                _write(lake, shard, readers, limits, passwords, report)
            for job in readable:
                shard_of_job[job.document_id] = shard
                yield job

    parsed_count = 0
    with tempfile.TemporaryDirectory(prefix="rag-assets-") as folder:
        scratch = Path(folder)
        with closing(parse_files(jobs(scratch), workers=workers, limits=limits, passwords=passwords.values)) as results:
            for job, parsed in results:
                shard = shard_of_job.pop(job.document_id)
                shard.parsed[job.document_id] = parsed
                _discard(str(job.path), scratch)
                parsed_count += 1
                progress(parsed_count, total)
                if len(shard.parsed) == len(shard.to_parse):
                    _write(lake, shard, readers, limits, passwords, report)
    return report


def content_key(content: _Content, file: SourceFile, limits: ParsingLimits) -> str:
    """Digest of all that the parsed content of a file depends on, but for limits of time and memory."""
    if content.sha256 is None:
        return digest("unreadable", file.fingerprint, content.problem)
    sizes = [value for name, value in asdict(limits).items() if name not in _PATIENCE]
    code = code_fingerprint(f"{__name__}:update_documents", "rag_assets.parsing.parse:parse_bytes")
    return digest(content.sha256, _extension(file.document_id), code, *sizes)


def documents_to_retry(lake: Lake, limits: ParsingLimits, passwords: Passwords = NO_PASSWORDS) -> dict[str, str]:
    """Stored documents that failed by a limit which is higher now, or for want of a password that is there now.

    Returns:
        Why, as in `parsing.timeout_seconds raised` or `new password`, by document.
    """
    failed_ids = _failed_by(lake, {*_PATIENCE_CAUSES, FailureCause.ENCRYPTED}, None)
    stored_keys = {
        name: key for shard in {*map(shard_of, failed_ids)} for name, key in lake.inputs(BLOCKS, shard).items()
    }
    again = {name: _reasons_to_try_again(stored_keys.get(name, ""), limits, passwords) for name in failed_ids}
    return {name: reasons[0] for name, reasons in again.items() if reasons}


def _failed_by(lake: Lake, causes: Collection[FailureCause], shards: Iterable[str] | None) -> set[str]:
    failures = lake.read(PARSE_FAILURES, shards, ["document_id", "cause"]).to_pylist()
    return {row["document_id"] for row in failures if row["cause"] in causes}


def _with_attempt(
    key: str, before: str, causes: Iterable[FailureCause], limits: ParsingLimits, passwords: Passwords
) -> str:
    """Key of the content of a file, with the limits it was cut short by and the passwords that did not open it.

    Those tried `before`, as the key says that is stored, are still tried where the content is the same.
    """
    notes = [] if _PATIENCE_CAUSES.isdisjoint(causes) else [f"{name}={getattr(limits, name)}" for name in _PATIENCE]
    if FailureCause.ENCRYPTED in causes:
        earlier = _tried(_notes(before)) if before.partition(" ")[0] == key else frozenset()
        notes.append(f"{_PASSWORDS}={','.join(sorted(passwords.notes() | earlier))}")
    return " ".join([key, *notes])


def _reasons_to_try_again(key: str, limits: ParsingLimits, passwords: Passwords) -> list[str]:
    """Limits in a key that are higher now, and whether a password was not tried."""
    notes = _notes(key)
    raised_limits = [name for name in _PATIENCE if name in notes and getattr(limits, name) > float(notes[name])]
    is_new = _PASSWORDS in notes and passwords.has_others(_tried(notes))
    return [*(f"parsing.{name} raised" for name in raised_limits), *(["new password"] if is_new else [])]


def _notes(key: str) -> dict[str, str]:
    return {name: value for name, _, value in (note.partition("=") for note in key.split()[1:])}


def _tried(notes: Mapping[str, str]) -> frozenset[str]:
    return frozenset(notes.get(_PASSWORDS, "").split(",")) - {""}


def _compare(
    lake: Lake,
    listing: Listing,
    name: str,
    limits: ParsingLimits,
    passwords: Passwords,
    scratch: Path,
    readers: str,
    *,
    full_check: bool,
) -> _Shard:
    stored_records = stored_documents(lake, [name])
    files = {file.document_id: file for file in listing.in_shard(name)}
    contents, unread_ids = _look_at_files(files, stored_records, scratch, full_check=full_check)
    before = lake.inputs(BLOCKS, name)
    keys: dict[str, str] = {}
    plain: dict[str, str] = {}
    for document_id, file in files.items():
        key, stored_key = content_key(contents[document_id], file, limits), before.get(document_id, "")
        is_current = stored_key.partition(" ")[0] == key and not _reasons_to_try_again(stored_key, limits, passwords)
        plain[document_id], keys[document_id] = key, stored_key if is_current else key
    if readers:
        for document_id in _failed_by(lake, {FailureCause.UNSUPPORTED_FORMAT}, [name]) & keys.keys():
            keys[document_id] = _key_without_readers(keys[document_id], readers)
    written_ids = {n for table in (DOCUMENTS, *_CONTENT_TABLES) for n in lake.inputs(table, name)}
    gone_ids = {n for n in written_ids - files.keys() if n.partition("/")[0] not in listing.unreachable}
    shard = _Shard(name, files, contents, keys, gone_ids, stored_records, before)
    for document_id, content in list(contents.items()):
        if content.sha256 is None and shard.can_keep(document_id):
            shard.lose(document_id, content.problem)
    new_ids = keys.keys() - stored_records.keys()
    stale = {*stale_documents(lake, _CONTENT_TABLES, name, keys), *new_ids} - shard.lost.keys()
    for document_id in sorted(stale):
        keys[document_id] = plain[document_id]
        content = contents[document_id]
        if document_id in unread_ids:  # the bytes may be others than those of which the hash is stored
            content = _read_content(files[document_id], scratch)
        if content.sha256 is None and shard.can_keep(document_id):
            shard.lose(document_id, content.problem)
            continue
        if content.sha256 != contents[document_id].sha256:
            keys[document_id] = content_key(content, files[document_id], limits)
        contents[document_id] = content
        shard.to_parse.append(document_id)
    for document_id in files.keys() - set(shard.to_parse):
        _discard(contents[document_id].path, scratch)
    return shard


def _look_at_files(
    files: dict[str, SourceFile],
    stored_records: Mapping[str, Mapping[str, str | None]],
    scratch: Path,
    *,
    full_check: bool,
) -> tuple[dict[str, _Content], set[str]]:
    """Contents of files, and those among them that are as stored and were not read.

    Files of the bytes that are stored get the fingerprint to store.
    """
    contents: dict[str, _Content] = {}
    unread_ids: set[str] = set()
    for document_id, file in list(files.items()):
        record = stored_records.get(document_id)
        if record and _is_as_stored(record, file) and not (full_check and not file.has_content_tag):
            contents[document_id] = _Content(record["content_sha256"], "")
            unread_ids.add(document_id)
        else:
            contents[document_id] = _read_content(file, scratch)
        if record and contents[document_id].sha256 == record["content_sha256"]:
            files[document_id] = replace(
                file, fingerprint=_fingerprint_to_store(record["fingerprint"] or "", file.fingerprint)
            )
    return contents, unread_ids


def _is_as_stored(record: Mapping[str, str | None], file: SourceFile) -> bool:
    """Whether a file need not be read to know what is in it."""
    return (
        record["uri"] == file.uri
        and was_read(record)
        and file.problem is None
        and same_state(record["fingerprint"] or "", file.fingerprint)
    )


def _fingerprint_to_store(stored_state: str, listed_state: str) -> str:
    """Fingerprint to store of a file whose bytes are as stored.

    Where nothing but the inode changed, as on network shares that number files anew, it is not compared any more.
    """
    if same_state(stored_state, listed_state):
        return stored_state
    return without_inode(listed_state) if same_state(without_inode(stored_state), listed_state) else listed_state


def _key_without_readers(key: str, readers: str) -> str:
    """Key of the content of a file that the installed packages could not read: other ones may."""
    return digest(key, "readers", readers)


def _read_content(file: SourceFile, scratch: Path) -> _Content:
    """Hash a file; one that is not on this machine is fetched into the scratch folder for that."""
    if file.problem:
        return _Content(None, file.path, file.problem)
    try:
        path = file.path
        if not file.local:
            path = str(scratch / f"{digest(file.document_id)}.{_extension(file.document_id)}")
            fetch(file, path)
        with open(path, "rb") as stream:  # noqa: PTH123 - names that are no UTF-8 stay as the system gives them
            return _Content(hashlib.file_digest(stream, "sha256").hexdigest(), path)
    except (OSError, ValueError) as error:
        return _Content(None, file.path, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _discard(path: str, scratch: Path) -> None:
    if Path(path).parent == scratch:
        Path(path).unlink(missing_ok=True)


def _extension(document_id: str) -> str:
    return PurePosixPath(document_id).suffix.lower().lstrip(".")


def _write(
    lake: Lake, shard: _Shard, readers: str, limits: ParsingLimits, passwords: Passwords, report: StepReport
) -> None:
    for name in list(shard.parsed):
        failures = {failure.cause: failure for failure in shard.parsed[name].failures}
        if FailureCause.UNREADABLE in failures and shard.can_keep(name):  # between hashing and parsing
            del shard.parsed[name]
            shard.lose(name, failures[FailureCause.UNREADABLE].message)
        elif FailureCause.UNSUPPORTED_FORMAT in failures and readers:
            shard.content_keys[name] = _key_without_readers(shard.content_keys[name], readers)
        else:
            before = shard.keys_before.get(name, "")
            shard.content_keys[name] = _with_attempt(shard.content_keys[name], before, failures, limits, passwords)
    restated_failures = _restated_failures(lake, shard)
    _write_documents(lake, shard, report)  # first, so that a run killed in between leaves nothing that looks done
    records: dict[str, list[Record]] = defaultdict(list)
    for document_id, parsed in shard.parsed.items():
        for table_name, table_records in parsed_records(document_id, parsed).items():
            records[table_name] += table_records
    records[PARSE_FAILURES.name] += [record for group in restated_failures.values() for record in group]
    for table in _CONTENT_TABLES:
        changed_ids = [*shard.parsed, *(restated_failures if table is PARSE_FAILURES else ())]
        inputs = {name: shard.content_keys[name] for name in changed_ids}
        new_rows = rows(table.schema, records[table.name])
        replace_documents(lake, table, shard.name, new_rows, inputs, shard.gone, report)
    counts = report.of(shard.name)
    counts.computed += len(shard.parsed)
    counts.removed += len(shard.gone)
    counts.kept += len(shard.files) - len(shard.parsed)


def _restated_failures(lake: Lake, shard: _Shard) -> dict[str, list[Record]]:
    """Failures of the documents that can no longer be read, or can be again, and are not parsed."""
    failure_rows = lake.read(PARSE_FAILURES, [shard.name]).to_pylist()
    were_lost = {row["document_id"] for row in failure_rows if _is_loss(row)}
    restored_ids = {name for name in were_lost & shard.files.keys() if shard.stored[name]["status"] in _READ}
    lost_ids = shard.lost.keys() - were_lost
    records: dict[str, list[Record]] = {
        name: [] for name in (lost_ids | restored_ids - shard.lost.keys()) - shard.parsed.keys()
    }
    if not records:
        return records
    read_at = {row["document_id"]: row["modified_at"] for row in lake.read(DOCUMENTS, [shard.name]).to_pylist()}
    for name in lost_ids:
        state = f"as of {read_at[name]:%Y-%m-%d %H:%M} UTC" if read_at.get(name) else "as read before"
        since = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        message = f"no longer readable since {since}: {shard.lost[name]}; kept {state}"
        failure = Failure(FailureCause.UNREADABLE, message)
        records[name] += failure_records(name, ParsedDocument("", failures=(failure,)))
    for row in failure_rows:
        if row["document_id"] in records and not _is_loss(row):
            records[row["document_id"]].append(row)
    return {
        name: [{**row, "failure_index": index} for index, row in enumerate(failures)]
        for name, failures in records.items()
    }


def _is_loss(failure: Record) -> bool:
    return bool(failure["cause"] == FailureCause.UNREADABLE and failure["page_number"] is None)


def _write_documents(lake: Lake, shard: _Shard, report: StepReport) -> None:
    keys = shard.document_keys()
    old = {row["document_id"]: row for row in lake.read(DOCUMENTS, [shard.name]).to_pylist()}
    documents = []
    for name in sorted({*stale_documents(lake, [DOCUMENTS], shard.name, keys), *shard.parsed}):
        file, sha256 = shard.files[name], shard.contents[name].sha256
        if name in shard.parsed:
            documents.append(document_record(file, sha256, shard.parsed[name]))
        elif name in shard.lost:
            state = {"fingerprint": file.fingerprint, "uri": file.uri, "status": DocumentStatus.UNREADABLE}
            documents.append({**old[name], **state})
        else:  # touched, but of the same content
            is_back = old[name]["status"] == DocumentStatus.UNREADABLE
            state = {"status": DocumentStatus.PARSED} if is_back else {}
            documents.append({**old[name], **file_facts(file, sha256), **state})
    inputs = {record["document_id"]: keys[record["document_id"]] for record in documents}
    replace_documents(lake, DOCUMENTS, shard.name, rows(DOCUMENTS.schema, documents), inputs, shard.gone, report)


def chunking_fingerprint(tokenizer_name: str, size_tokens: int, overlap_share: float) -> str:
    """Digest of the code and settings that chunks depend on."""
    return digest(code_fingerprint(f"{__name__}:update_chunks"), tokenizer_name, size_tokens, overlap_share)


def wanted_chunks(lake: Lake, shard: str, fingerprint: str) -> dict[str, str]:
    """What the passages of each document of a shard are to be computed from."""
    return {name: digest(key, fingerprint) for name, key in lake.inputs(BLOCKS, shard).items()}


def update_chunks(
    lake: Lake,
    shards: Sequence[str],
    tokenizer: Tokenizer,
    fingerprint: str,
    size_tokens: int,
    overlap_share: float,
    progress: Callable[[int, int], None],
) -> StepReport:
    """Cut the pages of some shards that changed into passages."""
    report = StepReport()
    for count, shard in enumerate(shards, start=1):

        def compute(documents: Sequence[str], shard: str = shard) -> Rows:
            records: list[Record] = []
            for document_id, (title, pages) in load_pages(lake, shard, documents).items():
                titles = document_titles(document_id, title)
                for page in pages:
                    chunks = chunk_page(page, titles, tokenizer, size_tokens, overlap_share)
                    records += chunk_records(document_id, page, chunks)
            return {CHUNKS.name: rows(CHUNKS.schema, records)}

        update_shard(lake, [CHUNKS], shard, wanted_chunks(lake, shard, fingerprint), compute, report)
        progress(count, len(shards))
    return report
