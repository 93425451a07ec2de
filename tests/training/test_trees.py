"""Boosted trees on top of the shipped weights: what they learn, that they never fall, what is done without LightGBM."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import CANDIDATES, NAMES, WORDS, made_up, with_evidence

from rag_assets.contracts.errors import ModelError, StoreError
from rag_assets.evaluation.evidence import Level
from rag_assets.query.search.grouping import Granularity
from rag_assets.query.search.ranking_weights import (
    RERANKER,
    SHIPPED,
    SIGNALS,
    BoostedWeights,
    Weights,
    read_ranking,
    weights_files,
)
from rag_assets.training.pairs import JudgedQuestion
from rag_assets.training.ranking import ROUNDS, learn_ranking, learned_trees


def of_both(count: int) -> list[JudgedQuestion]:
    """Questions whose evidence is what both words and names speak for, which no sum of the two says."""
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        signals = random.random((CANDIDATES, len(SIGNALS))) ** 2
        best = int(np.argmax(np.minimum(signals[:, WORDS], signals[:, NAMES])))
        found.append(with_evidence(number, signals, best, random))
    return found


@pytest.fixture(scope="module")
def boosted() -> BoostedWeights:
    found, rounds = learned_trees(of_both(60), Level.PASSAGE)
    assert isinstance(found, BoostedWeights)
    assert rounds == found.rounds
    assert rounds in ROUNDS
    return found


def test_trees_learn_what_tells_and_prove_better(boosted: BoostedWeights) -> None:
    assert max(boosted.gains, key=boosted.gains.__getitem__) == "names"
    assert sum(boosted.gains.values()) == pytest.approx(1)
    candidate = learn_ranking(of_both(60), learned_trees)
    assert candidate.proofs[Level.PASSAGE].is_better
    assert candidate.weights[Granularity.CHUNK] == boosted


def test_no_signal_speaks_against_a_passage(boosted: BoostedWeights) -> None:
    random = np.random.default_rng(1)
    values = random.random((200, len(SIGNALS)))
    for column in range(len(SIGNALS)):
        higher = values.copy()
        higher[:, column] = np.maximum(values[:, column], random.random(200))
        assert (boosted.scores(higher) >= boosted.scores(values) - 1e-12).all()


def leaf(node: dict[str, Any], row: Any) -> float:
    while "leaf_value" not in node:
        node = node["left_child" if row[node["split_feature"]] <= node["threshold"] else "right_child"]
    return float(node["leaf_value"])


def test_scores_are_weights_and_leaves_and_the_sum_of_what_each_signal_adds(boosted: BoostedWeights) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    values = np.random.default_rng(2).random((50, len(SIGNALS)))
    trees = lightgbm.Booster(model_str=boosted.trees).dump_model()["tree_info"]
    leaves = [sum(leaf(tree["tree_structure"], row) for tree in trees) for row in values]
    own = values @ SHIPPED[Granularity.CHUNK].vector() + np.array(leaves) / boosted.scale
    scores = boosted.scores(values)
    assert np.ptp(scores - own) == pytest.approx(0, abs=1e-9)  # but for what is the same in all
    added = boosted.contributions(values)
    assert added.sum(axis=1) == pytest.approx(scores)
    unused = [SIGNALS.index(name) for name in set(SIGNALS) - boosted.signals]
    assert not added[:, unused].any()
    assert boosted.scores(values[:0]).shape == (0,)
    assert boosted.contributions(values[:0]).shape == (0, len(SIGNALS))


@pytest.mark.parametrize("count", [7, 10, 40])
def test_questions_without_sense_grow_no_tree(count: int) -> None:
    assert learned_trees(made_up(count, {}), Level.PASSAGE) == (SHIPPED[Granularity.CHUNK], 0)


def test_learning_again_gives_the_same_trees(boosted: BoostedWeights) -> None:
    assert learned_trees(of_both(60), Level.PASSAGE)[0] == boosted


def stored(folder: Path, boosted: BoostedWeights, reranker: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in weights_files({**SHIPPED, Granularity.CHUNK: boosted}, reranker).items():
        (folder / name).write_bytes(content)
    return folder


def test_files_hold_weights_and_trees(tmp_path: Path, boosted: BoostedWeights) -> None:
    found = read_ranking(stored(tmp_path, boosted), None, "").weights
    assert found == {**SHIPPED, Granularity.CHUNK: boosted}
    assert weights_files(SHIPPED).keys() == {"weights.json"}


def test_damaged_trees_are_never_given_to_lightgbm(tmp_path: Path, boosted: BoostedWeights) -> None:
    path = stored(tmp_path, boosted) / "trees.json"
    whole = path.read_text("utf-8")
    path.write_text(whole.replace("leaf_value", "leaf_valve"), "utf-8")
    with pytest.raises(StoreError, match="the trees have changed"):
        read_ranking(tmp_path, None, "")
    rows = json.loads(whole)
    rows[Granularity.CHUNK] |= {"trees": "none", "sha256": hashlib.sha256(b"none").hexdigest()}
    path.write_text(json.dumps(rows), "utf-8")
    with pytest.raises(StoreError, match="LightGBM cannot read the trees"):
        read_ranking(tmp_path, None, "")


def test_without_lightgbm_the_extra_is_named(
    tmp_path: Path, boosted: BoostedWeights, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stored(tmp_path, boosted)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    for use in (lambda: read_ranking(folder, None, ""), lambda: learned_trees(of_both(20), Level.PASSAGE)):
        with pytest.raises(ModelError, match=r"pip install 'rag-assets\[trees\]'"):
            use()
    (folder / "trees.json").unlink()
    assert read_ranking(folder, None, "").weights == SHIPPED  # linear ones need no LightGBM


def test_weights_of_another_reranker_are_refused(tmp_path: Path) -> None:
    for name, content in weights_files({each: Weights(reranker=1.0) for each in SHIPPED}, "ours").items():
        (tmp_path / name).write_bytes(content)
    assert RERANKER in read_ranking(tmp_path, None, "", "ours").weights["page"].signals
    for other, stated in (("theirs", "theirs"), ("", "none")):
        with pytest.raises(ModelError, match=f"learned with the reranker ours, the settings name {stated}"):
            read_ranking(tmp_path, None, "", other)
