"""Adoption by proof: what was learned on a collection comes into force only where it is better on questions not seen.

`<home>/learned/<name>/<digest>/` holds what was learned and, written last, `proof.json`: what it reached on held-out
questions. A version names what is in force for it (`Snapshot.learned`); adopting publishes the rows of the current
version again with another name in it, and so does going back. What stays out: how things are learned and measured.
"""

import hashlib
import json
import logging
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.statistics import FEW, Interval, bootstrap_interval, is_worse, paired_bootstrap
from rag_assets.store.files import write_atomically
from rag_assets.store.snapshots import Snapshot, Snapshots

REWRITER_MODEL = "rewriter_model"
_FOLDER, _PROOF = "learned", "proof.json"
_MOST_ADOPTED = 5  # one after the other that can be gone back to
_MOST_READ = 64 << 20  # bytes of files whose contents are compared when they are opened; of larger ones only the sizes
_log = logging.getLogger(__name__)

Values = Sequence[float]  # one a question; nan where a measure says nothing of it


@dataclass(frozen=True)
class Proof:
    """What a candidate reaches on questions that it was not learned from.

    Attributes:
        measure: What was measured, as in `passage R@5`.
        before: Of what is in force.
        after: Of the candidate.
        difference: Of the candidate minus what is in force, question by question.
        guards: The same of what must not become worse, by name, as in `type fact`.
        is_better: Whether it may come into force.
        reason: Why, or why not.
    """

    measure: str
    before: Interval
    after: Interval
    difference: Interval
    guards: Mapping[str, Interval] = field(default_factory=dict)
    is_better: bool = False
    reason: str = ""


def prove(measure: str, before: Values, after: Values, guards: Mapping[str, tuple[Values, Values]]) -> Proof:
    """Whether a candidate is better beyond the interval, and nothing that is guarded worse beyond it.

    Args:
        measure: What was measured.
        before: Of what is in force, one value a question.
        after: Of the candidate, on the same questions in the same order.
        guards: Values before and after of what must not become worse, by name: types of questions, other measures.

    Raises:
        QueryError: No question has a value.
    """
    pairs = _pairs(before, after)
    if not pairs:
        raise QueryError(f"{measure}: no question can be measured: none has evidence that the collection holds")
    difference = _difference(pairs)
    guarded = {name: both for name, values in guards.items() if len(both := _pairs(*values)) > 1}
    compared = {name: _difference(both) for name, both in guarded.items()}
    worse = [
        f"{name} by {shown(each)}"
        for name, each in compared.items()
        if is_worse(each, [after - before for before, after in guarded[name]])
    ]
    if difference.count < FEW:
        reason = f"{difference.count} questions prove nothing: at least {FEW} are needed"
    elif difference.low <= 0:
        reason = f"not better beyond the interval: {shown(difference)}"
    elif worse:
        reason = f"better by {shown(difference)}, but worse: {'; '.join(worse)}"
    else:
        reason = f"better by {shown(difference)}, and nothing is worse beyond its interval"
    is_better = difference.count >= FEW and difference.low > 0 and not worse
    reached_before, reached_after = (bootstrap_interval([each[place] for each in pairs]) for place in (0, 1))
    return Proof(measure, reached_before, reached_after, difference, compared, is_better, reason)


def shown(change: Interval) -> str:
    """A change with its interval, for people."""
    return f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"


def _pairs(before: Values, after: Values) -> list[tuple[float, float]]:
    both = zip(before, after, strict=True)
    return [each for each in both if not (math.isnan(each[0]) or math.isnan(each[1]))]


def _difference(pairs: Sequence[tuple[float, float]]) -> Interval:
    return paired_bootstrap([after for _, after in pairs], [before for before, _ in pairs]).difference


def store_candidate(root: Path, name: str, files: Mapping[str, bytes] | Path, proof: Proof) -> str:
    """Keep what was learned, with its proof; it is not in force by that.

    Args:
        root: The home.
        name: What was learned, as in `ranking_weights`.
        files: Its files by name, or a folder below the home, which is moved.
        proof: What it reaches.

    Returns:
        Its place below the home.
    """
    contents = files if isinstance(files, Mapping) else _files(files)
    place = f"{_FOLDER}/{name}/{_digest(contents)}"
    folder = root / place
    if isinstance(files, Path):
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        files.rename(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            write_atomically(folder / path, content)
    sizes = {path: len(content) for path, content in contents.items()}
    record = {"sizes": sizes, "made_at": datetime.now(UTC).isoformat(timespec="seconds"), **asdict(proof)}
    write_atomically(folder / _PROOF, json.dumps(record, ensure_ascii=False, indent=1).encode())
    return place


def _digest(contents: Mapping[str, bytes]) -> str:
    """Names files with their contents."""
    digest = hashlib.sha256()
    for path, content in sorted(contents.items()):
        digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    return digest.hexdigest()[:16]


def _files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != _PROOF)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def in_force(root: Path, snapshot: Snapshot, name: str) -> Path | None:
    """Folder of what is in force in a version; None where nothing is, or its files are not whole, which is logged.

    Args:
        root: The home.
        snapshot: The version.
        name: What was learned.
    """
    places = snapshot.learned.get(name, ())
    if not places:
        return None
    folder = root / places[-1]
    try:
        sizes = json.loads((folder / _PROOF).read_bytes())["sizes"]
        if all((folder / path).stat().st_size == size for path, size in sizes.items()):
            is_large = sum(sizes.values()) > _MOST_READ
            if is_large or _digest({path: (folder / path).read_bytes() for path in sizes}) == folder.name:
                return folder
        problem = "files of it have changed"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"it cannot be read: {error}"
    _log.warning("%s: %s; version %d is searched as shipped without it", folder, problem, snapshot.number)
    return None


def adopt(snapshots: Snapshots, name: str, place: str) -> Snapshot:
    """Bring a stored candidate into force: a new version of the same rows; to be done under the lock of the home.

    Raises:
        QueryError: Nothing is published, or readers were moved back to an earlier version.
    """
    current = _current(snapshots)
    places = (*(each for each in current.learned.get(name, ()) if each != place), place)
    return _publish(snapshots, current, name, places[-_MOST_ADOPTED:])


def undo(snapshots: Snapshots, name: str) -> Snapshot:
    """Go back to what was in force before, in the end to what is shipped; to be done under the lock of the home.

    Raises:
        QueryError: Nothing that was learned is in force, or as for `adopt`.
    """
    current = _current(snapshots)
    if not current.learned.get(name):
        raise QueryError(f"{name}: nothing learned is in force, so there is nothing to undo")
    return _publish(snapshots, current, name, current.learned[name][:-1])


def without(snapshot: Snapshot, name: str) -> Snapshot:
    """A version as shipped in what is learned under a name, before it is published."""
    return replace(snapshot, learned={key: places for key, places in snapshot.learned.items() if key != name})


def _current(snapshots: Snapshots) -> Snapshot:
    current, pointer = snapshots.current(), snapshots.pointer()
    if current is None:
        raise QueryError("nothing is published yet; run `rag-assets index FOLDER` first")
    if pointer is not None and pointer.rolled_back_from is not None:
        raise QueryError(
            f"readers were moved back to version {current.number}; move them to the newest one first, "
            f"`rag-assets snapshots {pointer.newest}`"
        )
    return current


def _publish(snapshots: Snapshots, current: Snapshot, name: str, places: Sequence[str]) -> Snapshot:
    learned = {**current.learned, name: tuple(places)}
    changed = replace(
        current,
        number=snapshots.next_number(),
        published_at=datetime.now(UTC).isoformat(timespec="seconds"),
        learned={key: value for key, value in learned.items() if value},
    )
    return snapshots.publish(changed)


def candidates(root: Path, name: str) -> list[tuple[str, dict[str, object]]]:
    """Places and proofs of all that was learned and is kept, the last one first."""
    found = []
    for path in (root / _FOLDER / name).glob(f"*/{_PROOF}"):
        try:
            found.append((path.parent.relative_to(root).as_posix(), dict(json.loads(path.read_bytes()))))
        except (OSError, ValueError, TypeError) as error:
            _log.warning("%s cannot be read: %s", path, error)
    return sorted(found, key=lambda each: str(each[1].get("made_at", "")), reverse=True)


def prune(root: Path, snapshots: Snapshots, name: str) -> None:
    """Remove what no version that is kept names, but for the newest candidate."""
    named = {place for each in snapshots.readable() for place in each.learned.get(name, ())}
    for place, _ in candidates(root, name)[1:]:
        if place not in named:
            shutil.rmtree(root / place, ignore_errors=True)
