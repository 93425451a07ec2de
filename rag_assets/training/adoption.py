"""Adoption by proof: what was learned on a collection comes into force only where it is better on questions not seen.

`<home>/learned/<name>/<digest>/` holds what was learned and, written last, `proof.json`: what it reached on held-out
questions, and what it reached before where the same was learned again. A version names what is in force for it
(`Snapshot.learned`); adopting publishes the rows of the current version again with another name in it, and so does
going back. What stays out: how things are learned and measured.
"""

import hashlib
import json
import logging
import math
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.evaluation.statistics import FEW, Interval, bootstrap_interval, change_text, is_worse, paired_bootstrap
from rag_assets.store.files import write_atomically
from rag_assets.store.snapshots import Snapshot, Snapshots

REWRITER_MODEL = "rewriter_model"
_FOLDER, _PROOF = "learned", "proof.json"
LEAST_GROUPS = 6  # of documents: of five, all are better by chance more often than an interval of 95 % allows
_MOST_ADOPTED = 5  # one after the other that can be gone back to
_MOST_PROOFS = 10  # of one thing, the earlier ones
_MOST_READ = 64 << 20  # bytes of files whose contents are compared when they are opened; of larger ones only the sizes
_log = logging.getLogger(__name__)

Values = Sequence[float]  # one a question; nan where a measure says nothing of it


@dataclass(frozen=True)
class Proof:
    """What a candidate reaches on questions that it was not learned from."""

    measure: str  # what was measured, as in `passage R@5`
    before: Interval  # of what is in force
    after: Interval  # of the candidate
    difference: Interval  # of the candidate minus what is in force, question by question
    # the same of what must not become worse, by name, as in `type fact`
    guards: Mapping[str, Interval] = field(default_factory=dict)
    is_better: bool = False  # whether it may come into force
    reason: str = ""  # why, or why not
    worse: Sequence[str] = ()  # what of the guards became worse, in words


@dataclass(frozen=True)
class Basis:
    """What a candidate rests on."""

    questions: Collection[str] = ()  # ids of the questions that it was learned from
    documents: Collection[str] = ()  # documents that hold their evidence
    version: int = 0  # the version that it was learned and proved on
    against: str = ""  # place of what was in force then; empty for what is shipped
    # place of what else was in force then and took part in the proof, by name
    beside: Mapping[str, str] = field(default_factory=dict)

    def knows(self, question: str, documents: Collection[str]) -> bool:
        """Whether a question, or one on a document of its evidence, was learned from."""
        return question in self.questions or not frozenset(documents).isdisjoint(self.documents)


def prove(
    measure: str,
    before: Values,
    after: Values,
    guards: Mapping[str, tuple[Values, Values]],
    groups: Sequence[int] | None = None,
) -> Proof:
    """Whether a candidate is better beyond the interval, and nothing that is guarded worse beyond it.

    Args:
        measure: What was measured.
        before: Of what is in force, one value a question.
        after: Of the candidate, on the same questions in the same order.
        guards: Values before and after of what must not become worse, by name: types of questions, other measures; of
            the same questions in the same order, nan of those that it is not about.
        groups: A number for each question, the same for those that share a document; these are resampled together.
            None where none do.

    Raises:
        QueryError: No question has a value.
    """
    groups = range(len(before)) if groups is None else groups
    pairs = _pairs(before, after, groups)
    if not pairs:
        raise QueryError(f"{measure}: no question can be measured: none has evidence that the collection holds")
    difference, group_count = _difference(pairs), len({pair.group for pair in pairs})
    guard_pairs = {name: own_pairs for name, values in guards.items() if len(own_pairs := _pairs(*values, groups)) > 1}
    guard_differences = {name: _difference(own_pairs) for name, own_pairs in guard_pairs.items()}
    worse = [
        f"{name} by {change_text(change)}"
        for name, change in guard_differences.items()
        if is_worse(change, [pair.after - pair.before for pair in guard_pairs[name]])
    ]
    if difference.count < FEW:
        reason = f"{difference.count} questions prove nothing: at least {FEW} are needed"
    elif group_count < LEAST_GROUPS:
        reason = (
            f"questions on {group_count} documents, or groups of them that share questions, prove nothing: at least "
            f"{LEAST_GROUPS} are needed"
        )
    elif difference.low <= 0:
        reason = f"not better beyond the interval: {change_text(difference)}"
    elif worse:
        reason = f"better by {change_text(difference)}, but worse: {'; '.join(worse)}"
    else:
        reason = f"better by {change_text(difference)}, and nothing is worse beyond its interval"
    is_better = difference.count >= FEW and group_count >= LEAST_GROUPS and difference.low > 0 and not worse
    own = [pair.group for pair in pairs]
    reached_before = bootstrap_interval([pair.before for pair in pairs], groups=own)
    reached_after = bootstrap_interval([pair.after for pair in pairs], groups=own)
    return Proof(measure, reached_before, reached_after, difference, guard_differences, is_better, reason, worse)


def type_guards(types: Sequence[str], before: Values, after: Values) -> dict[str, tuple[Values, Values]]:
    """Guards of `prove`: values before and after of the questions of each type, nan of all others."""

    def of(kind: str, values: Values) -> Values:
        return [value if own_type == kind else math.nan for own_type, value in zip(types, values, strict=True)]

    return {f"type {kind}": (of(kind, before), of(kind, after)) for kind in sorted(filter(None, set(types)))}


class _Pair(NamedTuple):
    before: float
    after: float
    group: int


def _pairs(before: Values, after: Values, groups: Sequence[int]) -> list[_Pair]:
    pairs = (_Pair(*row) for row in zip(before, after, groups, strict=True))
    return [pair for pair in pairs if not (math.isnan(pair.before) or math.isnan(pair.after))]


def _difference(pairs: Sequence[_Pair]) -> Interval:
    before, after, groups = zip(*pairs, strict=True)
    return paired_bootstrap(after, before, groups=groups).difference


def store_candidate(
    root: Path,
    name: str,
    files: Mapping[str, bytes] | Path,
    proof: Proof,
    basis: Basis | None = None,
    *,
    is_mixed: bool = False,
) -> str:
    """Keep what was learned, with its proof; it is not in force by that.

    Args:
        root: The home.
        name: What was learned, as in `ranking_weights`.
        files: Its files by name, or a folder below the home, which is moved.
        proof: What it reaches.
        basis: What it was learned from and proved against; None where that is not known.
        is_mixed: Whether it is not learned but put together from what was adopted, so that it is no candidate.

    Returns:
        Its place below the home.
    """
    contents = files if isinstance(files, Mapping) else _files(files)
    place = f"{_FOLDER}/{name}/{_digest(contents)}"
    folder, old_record = root / place, dict(candidates(root, name)).get(place)
    if isinstance(files, Path):
        if _is_whole(root, place):  # it may be in force
            shutil.rmtree(files, ignore_errors=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            files.rename(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            write_atomically(folder / path, content)
    sizes = {path: len(content) for path, content in contents.items()}
    rests_on: dict[str, object] = {}
    if basis is not None:
        rests_on = {**asdict(basis), "questions": sorted(basis.questions), "documents": sorted(basis.documents)}
    record: dict[str, object] = {"sizes": sizes, "made_at": datetime.now(UTC).isoformat(), **asdict(proof), **rests_on}
    if is_mixed and (old_record is None or old_record.get("mixed")):
        record["mixed"] = True
    if old_record is not None:  # the same was learned before
        earlier = {key: value for key, value in old_record.items() if key not in {"sizes", "earlier", "forced"}}
        record["earlier"] = [earlier, *old_record.get("earlier", ())][:_MOST_PROOFS]
        record |= {key: value for key, value in old_record.items() if key == "forced"}
    _write_record(folder, record)
    return place


def _write_record(folder: Path, record: Mapping[str, object]) -> None:
    write_atomically(folder / _PROOF, json.dumps(record, ensure_ascii=False, indent=1).encode())


def basis_of(root: Path, place: str) -> Basis | None:
    """What a stored candidate rests on; None where that is not known or cannot be read.

    Where the same was learned several times, all questions are those that it was learned from.
    """
    try:
        record = json.loads((root / place / _PROOF).read_bytes())
        records = [record, *(entry for entry in record.get("earlier", ()) if "questions" in entry)]
        questions, documents = (
            frozenset[str]().union(*(map(str, entry[name]) for entry in records)) for name in ("questions", "documents")
        )
        return Basis(questions, documents, int(record["version"]), str(record["against"]), record["beside"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
    """Folder of what is in force in a version; None where nothing is.

    Raises:
        StoreError: Its files are not those that were stored.
    """
    places = snapshot.learned.get(name, ())
    return whole(root, places[-1]) if places else None


def whole(root: Path, place: str) -> Path:
    """Folder of a stored candidate.

    Raises:
        StoreError: Its files are not those that were stored.
    """
    folder = root / place
    try:
        sizes = json.loads((folder / _PROOF).read_bytes())["sizes"]
        if all((folder / path).stat().st_size == size for path, size in sizes.items()):
            is_large = sum(sizes.values()) > _MOST_READ
            if is_large or _digest({path: (folder / path).read_bytes() for path in sizes}) == folder.name:
                return folder
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{place} cannot be read: {error}") from error
    raise StoreError(f"{place}: files of it have changed")


def _is_whole(root: Path, place: str) -> bool:
    with suppress(StoreError):
        whole(root, place)
        return True
    return False


def adopt_candidate(
    root: Path,
    snapshots: Snapshots,
    name: str,
    look: Callable[[Snapshot], str],
    usable: Callable[[Snapshot], str] = lambda _: "",
    settle: Callable[[Snapshot], Snapshot] = lambda version: version,
    *,
    place: str = "",
    is_forced: bool = False,
) -> tuple[Snapshot, str]:
    """Bring a stored candidate into force where it proved better than what is; to be done under the lock of the home.

    Args:
        root: The home.
        snapshots: Where versions are published.
        name: What was learned.
        look: Says what speaks against a version with the candidate in force, whose rows are others than those of the
            proof; empty where nothing does.
        usable: Says why the candidate cannot be used in a version with it in force; empty where it can.
        settle: Changes what else is in force in the version before it is published.
        place: Where it is stored; empty for the newest candidate.
        is_forced: Whether it comes into force whatever was proved, which is recorded with it.

    Returns:
        The version, and what speaks against it; empty where it is proved better.

    Raises:
        QueryError: There is none, it is in force already, or it is not proved better; nothing is published, or readers
            were moved back to an earlier version.
        StoreError: Its files are not those that were stored.
        ModelError: A model failed in the look.
    """
    current = _current(snapshots)
    places, stored_candidates = current.learned.get(name, ()), learned_candidates(root, name)
    (place, record) = next(
        (candidate for candidate in stored_candidates if not place or candidate[0] == place), ("", {})
    )
    if not place:
        raise QueryError(f"{name}: there is no candidate to adopt; `rag-assets train` learns one")
    if place in places[-1:]:
        raise QueryError(f"{place} is in force already")
    whole(root, place)
    now = "".join(places[-1:])
    proof, version = proof_against(record, now, current.learned), having(current, name, _added(places, place))
    problem = "" if proof.get("is_better") else f"it is not proved better: {proof.get('reason')}"
    if not problem and (against := proof.get("against", "")) != now:
        problem = f"it was proved against {against or 'what is shipped'}, and {now or 'what is shipped'} is in force"
    for other_name, then in proof.get("beside", {}).items():
        if not problem and then != (present := "".join(current.learned.get(other_name, ())[-1:])):
            problem = (
                f"it was proved beside {then or f'the shipped {other_name}'}, "
                f"and {present or 'the shipped one'} is in force"
            )
    problem = problem or usable(version)
    if not problem and not _is_of(proof, snapshots, current):
        problem = "its proof is of other rows, and nobody looked again" if is_forced else look(version)
    if problem and not is_forced:
        raise QueryError(f"{place} is not adopted: {problem}; learn again, or adopt it unproved by --force")
    if problem:
        _write_record(root / place, {**record, "forced": f"adopted by --force on {_now()}, although {problem}"})
    elif "forced" in record:
        _write_record(root / place, {key: value for key, value in record.items() if key != "forced"})
    return _publish(snapshots, settle(version)), problem


def proof_against(record: Mapping[str, Any], place: str, learned: Mapping[str, Sequence[str]]) -> Mapping[str, Any]:
    """The newest proof of a candidate against what is in force; the newest of all where there is none against that.

    Args:
        record: That of the candidate.
        place: What is in force under its name; empty for what is shipped.
        learned: What else is in force; a proof beside that is preferred.
    """
    own = [entry for entry in (record, *record.get("earlier", ())) if entry.get("against", "") == place]

    def is_beside(proof: Mapping[str, Any]) -> bool:
        present = {other_name: "".join(learned.get(other_name, ())[-1:]) for other_name in proof.get("beside", {})}
        return bool(present == proof.get("beside", {}))

    return next(filter(is_beside, own), next(iter(own), record))


def _is_of(proof: Mapping[str, Any], snapshots: Snapshots, current: Snapshot) -> bool:
    """Whether a proof is of the rows of a version."""
    with suppress(StoreError):  # its own version is kept no more
        return snapshots.load(int(proof.get("version", 0))).same_rows(current)
    return False


def _added(places: Sequence[str], place: str) -> Sequence[str]:
    return (*(earlier for earlier in places if earlier != place), place)[-_MOST_ADOPTED:]


def undo(snapshots: Snapshots, name: str, settle: Callable[[Snapshot], Snapshot] = lambda version: version) -> Snapshot:
    """Go back to what was in force before, in the end to what is shipped; to be done under the lock of the home.

    Args:
        snapshots: Where versions are published.
        name: What was learned.
        settle: As for `adopt_candidate`.

    Raises:
        QueryError: Nothing that was learned is in force, nothing is published, or readers were moved back to an earlier
            version.
    """
    current = _current(snapshots)
    if not current.learned.get(name):
        raise QueryError(f"{name}: nothing learned is in force, so there is nothing to undo")
    return _publish(snapshots, settle(having(current, name, current.learned[name][:-1])))


def having(snapshot: Snapshot, name: str, places: Sequence[str]) -> Snapshot:
    """A version with other places of what was learned under a name, before it is published; as shipped with none."""
    learned = {**snapshot.learned, name: tuple(places)}
    return replace(snapshot, learned={key: value for key, value in learned.items() if value})


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


def _publish(snapshots: Snapshots, snapshot: Snapshot) -> Snapshot:
    return snapshots.publish(replace(snapshot, number=snapshots.next_number(), published_at=_now()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def candidates(root: Path, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Places and proofs of all that was learned and is kept, the last one first."""
    entries = []
    for path in (root / _FOLDER / name).glob(f"*/{_PROOF}"):
        try:
            entries.append((path.parent.relative_to(root).as_posix(), dict(json.loads(path.read_bytes()))))
        except (OSError, ValueError, TypeError) as error:
            _log.warning("%s cannot be read: %s", path, error)
    return sorted(entries, key=lambda entry: str(entry[1].get("made_at", "")), reverse=True)


def learned_candidates(root: Path, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Those of `candidates` that were learned, not put together."""
    return [candidate for candidate in candidates(root, name) if not candidate[1].get("mixed")]


def prune(root: Path, snapshots: Snapshots, name: str, kept_place: str = "") -> None:
    """Remove what no version that is kept names, but for the newest candidate that was learned, and one at a place."""
    kept_places = {kept_place} | {
        place for snapshot in snapshots.readable() for place in snapshot.learned.get(name, ())
    }
    kept_places |= {place for place, _ in learned_candidates(root, name)[:1]}
    for place, _ in candidates(root, name):
        if place not in kept_places:
            shutil.rmtree(root / place, ignore_errors=True)
