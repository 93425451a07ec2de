"""Damaged files through the parsing processes: real files with flipped bytes, cut ends, exchanged parts, spliced XML.

Every input must come back as pages or as a failure; the parent must not die, nothing may hang, and nothing may be
written but the parsing processes' own output. Run it with `python -m benchmarks.fuzz --inputs 2000 --seed 1`.
"""

import argparse
import io
import random
import re
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.pool import ParseJob, parse_files

ROOT = Path(__file__).parents[1]
LIMITS = ParsingLimits(
    timeout_seconds=10.0,
    memory_bytes=1 << 30,
    file_bytes=1 << 26,
    expanded_bytes=1 << 27,
    archive_entries=2000,
    cells=500_000,
    pages=500,
    ocr_seconds_per_page=20.0,
    ocr_seconds=60.0,
)
SPLICES = (
    b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>", b"&a;", b"<a", b"</", b"<row r='1048577'/>", b"\x00",
    b"<xdr:grpSp>" * 50, b"' ", b"-1", b"99999999999999999999", b"]]>", b"<c r='ZZZZ1'><v>1</v></c>", b"\xff\xfe",
    b"<f t='shared' si='0'/>", b"<v>1e999</v>", b"<w:p>" * 80, b"../../../../tmp/outside",
)  # fmt: skip
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, NotImplementedError, RuntimeError)


@dataclass
class Report:
    """What became of the inputs.

    Attributes:
        outcomes: Number of inputs by outcome: `pages`, or the cause of the failure.
        slowest_seconds: Longest time from one result to the next.
        slowest: Name of the input it came with.
        unanswered: Inputs that did not come back, or with neither pages nor failure.
        written: Files that were made or changed outside the parsing processes.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_seconds: float = 0.0
    slowest: str = ""
    unanswered: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def seeds() -> list[Path]:
    """Real files of the repository, of all formats."""
    found = [*(ROOT / "tests" / "data").rglob("*"), *(ROOT / "docs" / "sample").rglob("*")]
    return sorted(path for path in found if path.is_file() and path.suffix != ".json")


def mutate(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """A damaged copy of a file.

    Args:
        data: The file.
        other: Another file, from which parts are taken.
        chance: Source of randomness; the same state gives the same copy.
    """
    choices = [_flip, _cut, _splice_bytes]
    if data.startswith(b"PK"):
        choices += [_swap_entries, _splice_parts, _splice_parts, _splice_parts]
    return chance.choice(choices)(data, other, chance)


def _flip(data: bytes, _: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _number in range(chance.choice([1, 4, 32, 256])):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _cut(data: bytes, _: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _splice_bytes(data: bytes, other: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data) + 1)
    start = chance.randrange(len(other) + 1)
    return data[:place] + other[start : start + chance.choice([8, 512, 65536])] + data[place + chance.choice([0, 64]) :]


def _swap_entries(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """Exchange the contents of parts, rename some to paths outside, take some from another archive."""
    parts = _parts(data)
    names = list(parts)
    if len(names) < 2:
        return data
    for _number in range(chance.choice([1, 3])):
        one, two = chance.sample(names, 2)
        parts[one], parts[two] = parts[two], parts[one]
    foreign = _parts(other) if other.startswith(b"PK") else {}
    for name in chance.sample(sorted(foreign), min(2, len(foreign))):
        parts[name] = foreign[name]
    parts["../../outside.xml"] = parts[names[0]]
    return _archive(parts)


def _splice_parts(data: bytes, _: bytes, chance: random.Random) -> bytes:
    """Put hostile pieces into XML parts, repeat or drop elements."""
    parts = _parts(data)
    names = [name for name in parts if name.endswith((".xml", ".rels"))]
    for name in chance.sample(names, min(len(names), chance.choice([1, 2, 5]))):
        text = parts[name]
        tags = [match.start() for match in re.finditer(rb"<", text)] or [0]
        place, until = chance.choice(tags), chance.choice(tags)
        match chance.randrange(4):
            case 0:
                text = text[:place] + chance.choice(SPLICES) + text[place:]
            case 1:
                text = text[: min(place, until)] + text[max(place, until) :]
            case 2:
                text = text[:place] + text[place : place + 4096] * 20 + text[place:]
            case _:
                text = re.sub(rb'="[^"]{0,40}"', lambda found: _value(found[0], chance), text)
        parts[name] = text
    return _archive(parts)


def _value(value: bytes, chance: random.Random) -> bytes:
    if chance.random() > 0.02:
        return value
    return b'="' + chance.choice([b"-1", b"99999999999", b"", b"x", b"1:2", b"NaN", b"../../etc/passwd"]) + b'"'


def _parts(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {info.filename: archive.read(info) for info in archive.infolist()}
    except DAMAGE:
        return {}


def _archive(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name)  # without the time of day, so that the same seed gives the same bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()


def write_inputs(folder: Path, sources: Sequence[Path], count: int, seed: int) -> Iterator[ParseJob]:
    """Write damaged files one by one as they are asked for."""
    chance = random.Random(seed)
    contents = {path: path.read_bytes() for path in sources}
    for number in range(count):
        source, other = chance.choice(sources), chance.choice(sources)
        path = folder / f"{number:05d}{source.suffix}"
        path.write_bytes(mutate(contents[source], contents[other], chance))
        yield ParseJob(f"{number:05d}/{source.name}", path)


def run(sources: Sequence[Path], count: int, seed: int, workers: int, watched: Sequence[Path]) -> Report:
    """Parse damaged files and note what became of them.

    Args:
        sources: Real files.
        count: Inputs.
        seed: Decides on all of them.
        workers: Parsing processes.
        watched: Folders in which nothing may be written.
    """
    report = Report()
    with tempfile.TemporaryDirectory(prefix="fuzz-inputs-") as inputs:
        before = _listing(watched)
        open_names = set[str]()
        start = time.monotonic()

        def jobs() -> Iterator[ParseJob]:
            for job in write_inputs(Path(inputs), sources, count, seed):
                open_names.add(job.document_id)
                yield job

        for job, document in parse_files(jobs(), workers=workers, limits=LIMITS):
            seconds, start = time.monotonic() - start, time.monotonic()
            if seconds > report.slowest_seconds:
                report.slowest_seconds, report.slowest = seconds, job.document_id
            if document.pages or document.failures:
                open_names.discard(job.document_id)
            whole = [failure.cause.value for failure in document.failures if failure.page_number is None]
            report.outcomes[whole[0] if whole else "pages"] += 1
            Path(job.path).unlink()
        report.unanswered = sorted(open_names)
        after = _listing(watched)
        changed = {path for path, state in after.items() if before.get(path) != state}
        report.written = sorted(path for path in changed if not path.startswith(inputs))
    return report


def _listing(folders: Sequence[Path]) -> dict[str, tuple[float, int]]:
    """Files in folders with their time of change and size."""
    found = {}
    for path in {path for folder in folders for path in folder.iterdir()}:
        try:
            state = path.stat()
        except OSError:
            continue
        found[str(path)] = (state.st_mtime if path.is_file() else 0.0, state.st_size if path.is_file() else 0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000, help="number of damaged files")
    parser.add_argument("--seed", type=int, default=1, help="decides on all of them")
    parser.add_argument("--workers", type=int, default=0, help="parsing processes; 0 takes the number of processors")
    parser.add_argument("--source", type=Path, action="append", default=[], help="a further folder of real files")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a zip archive with two entries of one name is wanted here
    sources = seeds() + [path for folder in options.source for path in sorted(folder.rglob("*")) if path.is_file()]
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as outside:
        watched = [Path(outside), Path.cwd(), Path.home(), Path("/etc")]
        report = run(sources, options.inputs, options.seed, options.workers, watched)
    print(f"{options.inputs} inputs from {len(sources)} files, seed {options.seed}: {time.monotonic() - start:.0f} s")
    for outcome, count in report.outcomes.most_common():
        print(f"{outcome}: {count}")
    print(f"longest wait for a result: {report.slowest_seconds:.1f} s ({report.slowest})")
    print(f"without answer: {report.unanswered or 'none'}; written outside: {report.written or 'none'}")
    sys.exit(bool(report.unanswered or report.written))


if __name__ == "__main__":
    main()
