"""What was learned comes into force by proof, stays with later versions, and is undone."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from adopting import adopt
from stores import Base

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.query.search.ranking_weights import (
    MAP_ASSET,
    SHIPPED,
    WEIGHTS_ASSET,
    Weights,
    read_ranking,
    weights_files,
)
from rag_assets.store.snapshots import Snapshot
from rag_assets.training.adoption import (
    REWRITER_MODEL,
    Basis,
    Proof,
    adopt_candidate,
    basis_of,
    candidates,
    in_force,
    prove,
    prune,
    store_candidate,
    undo,
)

WORSE, BETTER = [0.0, 1.0] * 20, [1.0] * 40
NONE = [float("nan")] * 40
PROVED = prove("passage R@5", WORSE, BETTER, {})


@pytest.mark.parametrize(
    ("before", "after", "guards", "reason"),
    [
        (WORSE, BETTER, {}, "nothing is worse beyond its interval"),
        (BETTER, WORSE, {}, "not better beyond the interval"),
        (WORSE, WORSE, {}, "not better beyond the interval"),
        (WORSE[:10], BETTER[:10], {}, "10 questions prove nothing: at least 20 are needed"),
        (
            WORSE,
            BETTER,
            {"type fact": ([1.0] * 5 + NONE[5:], [0.0] * 5 + NONE[5:])},
            r"but worse: type fact by -1\.000",
        ),
        (
            [*WORSE, float("nan")],
            [*BETTER, float("nan")],
            {"page R@5": ([*NONE, float("nan")], [*NONE, 1.0])},
            "nothing is worse",
        ),
    ],
)
def test_what_is_better_on_questions_not_seen_is_adopted_and_nothing_else(
    before: list[float], after: list[float], guards: dict[str, tuple[list[float], list[float]]], reason: str
) -> None:
    proof = prove("passage R@5", before, after, guards)
    assert proof.is_better == ("nothing is worse" in reason)
    assert re.search(reason, proof.reason)


def test_nothing_that_can_be_measured_is_said() -> None:
    with pytest.raises(QueryError, match="no question can be measured"):
        prove("passage R@5", [float("nan")], [1.0], {})


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        (40, "nothing is worse beyond its interval"),
        (8, r"not better beyond the interval: \+0\.250 \[\+0\.000,"),
        (5, "questions on 5 documents, or groups of them that share questions, prove nothing: at least 6 are needed"),
    ],
)
def test_questions_of_one_document_are_no_proof_by_themselves(documents: int, reason: str) -> None:
    """A quarter of the questions is better; of 8 documents, all of these are on two."""
    before, after = [0.0] * 40, [1.0] * 10 + [0.0] * 30
    proof = prove("passage R@5", before, after, {}, [number * documents // 40 for number in range(40)])
    assert proof.is_better == (documents == 40)
    assert re.search(reason, proof.reason)


@pytest.fixture
def base(tmp_path: Path) -> Base:
    """A published version of one document."""
    made = Base(tmp_path)
    made.write("00", a="abc")
    made.sync("00")
    made.publish()
    return made


def candidate(root: Path, names: float, proof: Proof = PROVED, basis: Basis | None = None) -> str:
    weights = {granularity: Weights(names=names) for granularity in SHIPPED}
    return store_candidate(root, WEIGHTS_ASSET, weights_files(weights), proof, basis)


def test_adopted_weights_stay_with_later_versions_and_are_undone_one_by_one(base: Base) -> None:
    shipped, root = base.snapshots.load(1), base.lake.root.parent
    places = [candidate(root, names) for names in (0.5, 0.7)]
    versions = [adopt(base.snapshots, WEIGHTS_ASSET, place) for place in places]
    assert [each.number for each in versions] == [2, 3]
    base.write("00", a="abcd")
    base.sync("00")
    later = base.publish()
    assert later.learned == {WEIGHTS_ASSET: places} == base.snapshots.load(later.number).learned
    folder = in_force(root, later, WEIGHTS_ASSET)
    assert folder is not None
    assert read_ranking(folder, None, "").weights["chunk"].weights.names == 0.7
    again = undo(base.snapshots, WEIGHTS_ASSET)
    assert in_force(root, again, WEIGHTS_ASSET) == root / places[0]
    back = undo(base.snapshots, WEIGHTS_ASSET)
    assert (back.learned, back.tables) == ({}, later.tables)
    assert (
        read_ranking(in_force(root, back, WEIGHTS_ASSET), None, "").weights
        == SHIPPED
        == read_ranking(in_force(root, shipped, WEIGHTS_ASSET), None, "").weights
    )
    with pytest.raises(QueryError, match="nothing to undo"):
        undo(base.snapshots, WEIGHTS_ASSET)
    base.snapshots.roll_back(later.number)
    with pytest.raises(QueryError, match="moved back to version 4; move them to the newest one first"):
        adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing, place=places[0])


def test_a_candidate_that_was_kept_is_adopted_where_it_proved_better_than_what_is_in_force(base: Base) -> None:
    root = base.lake.root.parent
    with pytest.raises(QueryError, match="there is no candidate to adopt"):
        adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing)
    first = candidate(root, 0.5)
    version, problem = adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing)
    assert (version.learned, problem) == ({WEIGHTS_ASSET: (first,)}, "")
    with pytest.raises(QueryError, match="is in force already"):
        adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing)
    unproved = prove("passage R@5", WORSE, WORSE, {})
    for proof, basis, reason in (
        (unproved, Basis(against=first), "it is not proved better: not better beyond the interval"),
        (PROVED, Basis(), "it was proved against what is shipped, and learned/ranking_weights/"),
    ):
        shutil.rmtree(root / "learned" / WEIGHTS_ASSET)
        candidate(root, 0.7, proof, basis)
        with pytest.raises(QueryError, match=f"is not adopted: {reason}"):
            adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing)
    forced, problem = adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing, is_forced=True)
    [(place, record)] = candidates(root, WEIGHTS_ASSET)
    assert forced.learned == {WEIGHTS_ASSET: (first, place)}
    assert problem in record["forced"]


def said_nothing(_: Snapshot) -> str:
    return ""


def test_a_candidate_proved_on_other_rows_is_looked_at_again(base: Base) -> None:
    version, root = base.snapshots.load(1), base.lake.root.parent
    looked: list[Snapshot] = []

    def look(version: Snapshot) -> str:
        looked.append(version)
        return "it is worse" if len(looked) == 1 else ""

    place = candidate(root, 0.5, basis=Basis(version=version.number))
    base.write("00", a="abcd")
    base.sync("00")
    changed = base.publish()
    with pytest.raises(QueryError, match="is not adopted: it is worse; learn again"):
        adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, look)
    assert base.snapshots.current() == changed
    adopted, problem = adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, look)
    assert (adopted.learned, problem) == ({WEIGHTS_ASSET: (place,)}, "")
    assert [(each.learned, each.tables) for each in looked] == [({WEIGHTS_ASSET: (place,)}, changed.tables)] * 2
    undo(base.snapshots, WEIGHTS_ASSET)
    candidate(root, 0.5, basis=Basis(version=changed.number))
    adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, look)
    assert len(looked) == 2, "it was proved on these rows"


def test_proofs_stay_where_the_same_is_learned_again(base: Base) -> None:
    root = base.lake.root.parent
    place = candidate(root, 0.5, prove("passage R@5", WORSE, WORSE, {}))
    adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing, is_forced=True)
    candidate(root, 0.5, basis=Basis(against=place))
    [(_, record)] = candidates(root, WEIGHTS_ASSET)
    assert "adopted by --force" in record["forced"]
    [first] = record["earlier"]
    assert not first["is_better"]
    assert first["reason"].startswith("not better beyond the interval")
    undo(base.snapshots, WEIGHTS_ASSET)
    with pytest.raises(QueryError, match="is not adopted: it is not proved better: not better beyond"):
        adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing)
    candidate(root, 0.5)
    adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing)
    assert "forced" not in candidates(root, WEIGHTS_ASSET)[0][1], "now it is proved"


def test_what_was_proved_beside_other_weights_is_not_adopted(base: Base) -> None:
    root = base.lake.root.parent
    basis = Basis(version=1, beside={WEIGHTS_ASSET: ""})
    place = store_candidate(root, MAP_ASSET, {"map.npz": b"a map"}, PROVED, basis)
    assert basis_of(root, place) == replace(basis, questions=frozenset(), documents=frozenset())
    weights = candidate(root, 0.5)
    adopt(base.snapshots, WEIGHTS_ASSET, weights)
    reason = f"it was proved beside the shipped ranking_weights, and {weights} is in force"
    with pytest.raises(QueryError, match=reason):
        adopt_candidate(root, base.snapshots, MAP_ASSET, said_nothing)
    undo(base.snapshots, WEIGHTS_ASSET)
    adopted, _ = adopt_candidate(root, base.snapshots, MAP_ASSET, said_nothing)
    assert adopted.learned == {MAP_ASSET: (place,)}


def test_what_is_put_together_is_no_candidate(base: Base) -> None:
    root = base.lake.root.parent
    learned = candidate(root, 0.5)
    files = weights_files({granularity: Weights(names=0.6) for granularity in SHIPPED})
    for _ in range(2):  # as where a version is held back, and the next one comes to the same
        mixed = store_candidate(root, WEIGHTS_ASSET, files, PROVED, is_mixed=True)
    assert [place for place, _ in candidates(root, WEIGHTS_ASSET)] == [mixed, learned]
    prune(root, base.snapshots, WEIGHTS_ASSET)
    assert [place for place, _ in candidates(root, WEIGHTS_ASSET)] == [learned]
    version, _ = adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing)
    assert version.learned == {WEIGHTS_ASSET: (learned,)}


def test_what_cannot_be_used_here_is_adopted_by_force_alone(base: Base) -> None:
    version, root = base.snapshots.load(1), base.lake.root.parent

    def unusable(version: Snapshot) -> str:
        assert version.learned
        return "its library is missing"

    place = candidate(root, 0.5, basis=Basis(version=version.number))
    with pytest.raises(QueryError, match="is not adopted: its library is missing"):
        adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing, unusable)
    adopted, problem = adopt_candidate(root, base.snapshots, WEIGHTS_ASSET, said_nothing, unusable, is_forced=True)
    assert (adopted.learned, problem) == ({WEIGHTS_ASSET: (place,)}, "its library is missing")


def test_a_folder_that_is_in_force_stays_while_the_same_is_stored_again(tmp_path: Path) -> None:
    def trained() -> Path:
        folder = tmp_path / "made"
        folder.mkdir()
        (folder / "weights").write_bytes(b"weights")
        return folder

    place = store_candidate(tmp_path, REWRITER_MODEL, trained(), PROVED)
    inode = (tmp_path / place / "weights").stat().st_ino
    assert store_candidate(tmp_path, REWRITER_MODEL, trained(), PROVED) == place
    assert (tmp_path / place / "weights").stat().st_ino == inode
    assert not (tmp_path / "made").exists()
    assert len(candidates(tmp_path, REWRITER_MODEL)[0][1]["earlier"]) == 1
    (tmp_path / place / "weights").write_bytes(b"damaged")
    assert store_candidate(tmp_path, REWRITER_MODEL, trained(), PROVED) == place
    assert (tmp_path / place / "weights").read_bytes() == b"weights"


def test_a_candidate_knows_what_it_was_learned_from(tmp_path: Path) -> None:
    stored = Basis(frozenset({"q1", "q2"}), frozenset({"docs/a.md"}), 3, "")
    place = candidate(tmp_path, 0.5, basis=stored)
    basis = basis_of(tmp_path, place)
    assert basis == stored
    assert [basis.knows(*each) for each in (("q1", ()), ("q3", {"docs/a.md"}), ("q3", {"docs/b.md"}))] == [
        True,
        True,
        False,
    ]
    path = tmp_path / place / "proof.json"
    record = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({key: value for key, value in record.items() if key != "questions"}), "utf-8")
    assert basis_of(tmp_path, place) is None, "it is not known"


def test_what_no_version_names_is_removed_but_for_the_last(tmp_path: Path) -> None:
    base = Base(tmp_path)
    root = base.lake.root.parent
    places = [candidate(root, names) for names in (0.1, 0.2)]
    for day, place in enumerate(places, start=1):
        path = root / place / "proof.json"
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "made_at": f"2026-11-0{day}"}), "utf-8")
    prune(root, base.snapshots, WEIGHTS_ASSET)
    assert [(root / each).exists() for each in places] == [False, True]


def test_damaged_weights_are_not_in_force(base: Base) -> None:
    root = base.lake.root.parent
    version = adopt(base.snapshots, WEIGHTS_ASSET, candidate(root, 0.5))
    path = root / version.learned[WEIGHTS_ASSET][-1] / "weights.json"
    path.write_text(path.read_text("utf-8").replace("0.5", "xyz"), "utf-8")
    with pytest.raises(StoreError, match="`rag-assets train undo` goes back"):
        read_ranking(path.parent, None, "")
    path.write_text(path.read_text("utf-8").replace("xyz", "0.9"), "utf-8")  # of the size that it was
    for content in (path.read_text("utf-8"), ""):
        path.write_text(content, "utf-8")
        with pytest.raises(StoreError, match="files of it have changed"):
            in_force(root, version, WEIGHTS_ASSET)


def test_a_proof_is_kept_with_what_it_proves(tmp_path: Path) -> None:
    place = candidate(tmp_path, 0.5)
    stored = json.loads((tmp_path / place / "proof.json").read_text("utf-8"))
    assert set(Proof.__dataclass_fields__) <= stored.keys()
