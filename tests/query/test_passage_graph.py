from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from graph_data import FILM, PERSON, fill_lake, stored_tables
from scipy.sparse import coo_array, csr_array

from rag_assets.query.search.passage_graph import PassageGraph, PassageGraphs, build_passage_graph, named_entities
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import Lake


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredTables:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    fill_lake(lake)
    return stored_tables(lake)


@pytest.fixture(scope="module")
def graph(stored: StoredTables) -> PassageGraph:
    return build_passage_graph(stored)


def graph_of(weights: np.ndarray, names: dict[str, int] | None = None) -> PassageGraph:
    count = len(weights)
    counts = np.ones(count, dtype=np.int64)
    return PassageGraph([], [str(each) for each in range(count)], [""] * count, names or {}, counts, csr_array(weights))


@pytest.mark.parametrize("damping", [0.5, 0.85])
@pytest.mark.parametrize("seed", range(4))
def test_pagerank_is_that_of_networkx(seed: int, damping: float) -> None:
    random = np.random.default_rng(seed)
    upper = np.triu((random.random((80, 80)) < 0.03) * random.random((80, 80)), 1)
    weights = upper + upper.T
    assert (weights.sum(axis=0) == 0).any(), "nodes without edges belong to the test"
    reset = np.where(random.random(80) < 0.2, random.random(80), 0.0)
    found = graph_of(weights).personalized_pagerank(reset, damping, least=0)
    personalization = dict(enumerate(reset))
    expected = nx.pagerank(
        nx.from_numpy_array(weights), alpha=damping, personalization=personalization, tol=1e-12, max_iter=1000
    )
    assert found == pytest.approx([expected[node] for node in range(80)], abs=1e-8)
    assert found.sum() == pytest.approx(1)


def test_walks_that_hardly_matter_change_no_order() -> None:
    random = np.random.default_rng(5)
    count = 40_000
    ends = random.integers(0, count, (2, 3 * count))
    upper = coo_array((random.random(3 * count) + 0.1, (ends[0], ends[1])), shape=(count, count)).tocsr()
    graph = PassageGraph([], [""] * count, [""] * count, {}, np.ones(count, dtype=np.int64), csr_array(upper + upper.T))
    reset = np.zeros(count)
    reset[random.choice(count, 30, replace=False)] = random.random(30)
    exact, found = graph.personalized_pagerank(reset, least=0), graph.personalized_pagerank(reset)
    assert (found > 0).sum() < (exact > 0).sum(), "some nodes are reached by hardly any walk"
    assert np.argsort(-found)[:50].tolist() == np.argsort(-exact)[:50].tolist()
    assert np.abs(found - exact).sum() < 0.02
    assert found.sum() == pytest.approx(1)


def test_passages_and_entities_are_joined_by_mentions(graph: PassageGraph) -> None:
    film, person = graph.chunk_positions[f"{FILM}#1.0"], graph.chunk_positions[f"{PERSON}#1.0"]
    kovacs, zagreb = (len(graph.chunk_ids) + graph.entity_positions[name] for name in ("mira kovacs", "zagreb"))
    weights = graph.adjacency.toarray()
    assert weights == pytest.approx(weights.T)
    assert weights[film, kovacs] == pytest.approx(np.log1p(7 / 2) / np.log1p(7))
    assert weights[person, kovacs] == pytest.approx(np.log1p(7 / 2) / np.log1p(7)), (
        "a merged name counts for its entity"
    )
    assert weights[person, zagreb] == pytest.approx(1)
    assert weights[len(graph.chunk_ids) + graph.entity_positions["vienna"], zagreb] == pytest.approx(0.5)
    assert graph.edge_count == 7
    assert graph.passage_counts[graph.entity_positions["mira kovacs"]] == 2


def test_a_graph_of_nothing_can_be_built(tmp_path: Path) -> None:
    built = build_passage_graph(StoredTables(Lake(tmp_path), {}))
    assert (len(built.chunk_ids), len(built.entity_ids), built.edge_count) == (0, 0, 0)


def test_a_graph_is_built_once(stored: StoredTables) -> None:
    graphs = PassageGraphs(stored)
    assert graphs.get() is graphs.get()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Who directed Silent Harbor?", ["silent harbor"]),
        ("Kovács Mira's birthplace", ["mira kovacs"]),
        ("ZAGREB or Vienna or Zagreb", ["zagreb", "vienna"]),
        ("Is there a vienna of Zagreb", ["zagreb"]),
        ("the birthplace of mira kovacs", ["mira kovacs"]),
        ("the Zagrebian", []),
        ("", []),
    ],
)
def test_names_are_found_in_a_query(graph: PassageGraph, query: str, expected: list[str]) -> None:
    found = named_entities(graph, query)
    assert [graph.entity_ids[position] for position in found] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("エラーE0004の顧客登録画面について", ["e0004", "顧客登録画面"]),
        ("アクセストークンの更新", []),
        ("トークンの更新", ["トークン"]),
        ("E00045とは", []),
    ],
)
def test_japanese_names_need_no_blanks(query: str, expected: list[str]) -> None:
    keys = ["e0004", "顧客登録", "顧客登録画面", "トークン"]
    graph = graph_of(np.zeros((4, 4)), {key: position for position, key in enumerate(keys)})
    assert [keys[position] for position in named_entities(graph, query)] == expected
