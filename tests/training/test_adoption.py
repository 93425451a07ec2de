"""What was learned comes into force by proof, stays with later versions, and is undone."""

import json
import re
from pathlib import Path

import pytest
from stores import Base

from rag_assets.contracts.errors import QueryError, StoreError
from rag_assets.query.search.ranking_weights import SHIPPED, WEIGHTS_ASSET, Weights, read_ranking, weights_files
from rag_assets.training.adoption import Proof, adopt, in_force, prove, prune, store_candidate, undo

WORSE, BETTER = [0.0, 1.0] * 20, [1.0] * 40


@pytest.mark.parametrize(
    ("before", "after", "guards", "reason"),
    [
        (WORSE, BETTER, {}, "nothing is worse beyond its interval"),
        (BETTER, WORSE, {}, "not better beyond the interval"),
        (WORSE, WORSE, {}, "not better beyond the interval"),
        (WORSE[:10], BETTER[:10], {}, "10 questions prove nothing: at least 20 are needed"),
        (WORSE, BETTER, {"type fact": ([1.0] * 5, [0.0] * 5)}, r"but worse: type fact by -1\.000"),
        ([*WORSE, float("nan")], [*BETTER, float("nan")], {"page R@5": ([float("nan")], [1.0])}, "nothing is worse"),
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


def candidate(root: Path, names: float) -> str:
    weights = {granularity: Weights(names=names) for granularity in SHIPPED}
    return store_candidate(root, WEIGHTS_ASSET, weights_files(weights), prove("passage R@5", WORSE, BETTER, {}))


def test_adopted_weights_stay_with_later_versions_and_are_undone_one_by_one(tmp_path: Path) -> None:
    base = Base(tmp_path)
    base.write("00", a="abc")
    base.sync("00")
    shipped = base.publish()
    root = base.lake.root.parent
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
        adopt(base.snapshots, WEIGHTS_ASSET, places[0])


def test_what_no_version_names_is_removed_but_for_the_last(tmp_path: Path) -> None:
    base = Base(tmp_path)
    root = base.lake.root.parent
    places = [candidate(root, names) for names in (0.1, 0.2)]
    for day, place in enumerate(places, start=1):
        path = root / place / "proof.json"
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "made_at": f"2026-11-0{day}"}), "utf-8")
    prune(root, base.snapshots, WEIGHTS_ASSET)
    assert [(root / each).exists() for each in places] == [False, True]


def test_damaged_weights_are_those_shipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    base = Base(tmp_path)
    base.write("00", a="abc")
    base.sync("00")
    base.publish()
    root = base.lake.root.parent
    version = adopt(base.snapshots, WEIGHTS_ASSET, candidate(root, 0.5))
    path = root / version.learned[WEIGHTS_ASSET][-1] / "weights.json"
    path.write_text(path.read_text("utf-8").replace("0.5", "xyz"), "utf-8")
    with pytest.raises(StoreError, match="`rag-assets train undo` goes back"):
        read_ranking(path.parent, None, "")
    path.write_text(path.read_text("utf-8").replace("xyz", "0.9"), "utf-8")  # of the size that it was
    assert in_force(root, version, WEIGHTS_ASSET) is None
    path.write_text("", "utf-8")
    assert in_force(root, version, WEIGHTS_ASSET) is None
    assert "files of it have changed" in caplog.text


def test_a_proof_is_kept_with_what_it_proves(tmp_path: Path) -> None:
    place = candidate(tmp_path, 0.5)
    stored = json.loads((tmp_path / place / "proof.json").read_text("utf-8"))
    assert set(Proof.__dataclass_fields__) <= stored.keys()
