from pathlib import Path

import numpy as np
import pytest
from graph_data import FILM, PERSON, QUESTION, TWO_STEPS, fill_lake, graph_base, stored_tables
from query_data import BagOfWordsEmbedder, make_base
from scipy.sparse import csr_array

from rag_assets.contracts.causes import SummaryFormat
from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.query import Filters, KnowledgeBase
from rag_assets.query.ask.written.local_context import local_context
from rag_assets.query.results import Trace, TraceRecorder
from rag_assets.query.search.graph_local import Walk, walk_between, walk_worth
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.passage_graph import PassageGraph, build_passage_graph
from rag_assets.query.search.passages import CANDIDATES
from rag_assets.query.search.request import RetrievalRequest
from rag_assets.store.lake import Lake
from rag_assets.store.vectors.store import VectorStore
from rag_assets.text.folding import fold_name


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, embedder: BagOfWordsEmbedder) -> KnowledgeBase:
    return graph_base(tmp_path_factory.mktemp("graph"), embedder)


def test_a_second_hop_is_found_that_shares_no_word(graph: KnowledgeBase) -> None:
    hybrid = [hit.document_id for hit in graph.search(QUESTION, "hybrid", 5).hits]
    local = [hit.document_id for hit in graph.search(QUESTION, "graph_local", 2).hits]
    assert PERSON not in hybrid
    assert local == [FILM, PERSON]


def test_scores_fall_and_hits_can_be_cited(graph: KnowledgeBase) -> None:
    result = graph.search(QUESTION, "graph_local", 7)
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert result.hits[0].citation.document_id == FILM
    assert result.hits[0].text.startswith("Silent Harbor")


@pytest.mark.parametrize("granularity", ["page", "document"])
def test_pages_and_documents_are_found(graph: KnowledgeBase, granularity: str) -> None:
    result = graph.search(QUESTION, "graph_local", 2, granularity=granularity)
    assert [hit.document_id for hit in result.hits] == [FILM, PERSON]


def test_filters_hold_for_what_is_returned_and_walks_pass_through_the_rest(graph: KnowledgeBase) -> None:
    result = graph.search(QUESTION, "graph_local", 5, Filters(folder=("people",)))
    assert result.hits[0].document_id == PERSON
    assert all(hit.document_id.startswith("people/") for hit in result.hits)
    crossed = Filters(folder=("people",), document=("films/*",))
    assert graph.search(QUESTION, "graph_local", 5, crossed).hits == ()


def test_the_trace_names_seeds_neighbours_and_sizes(graph: KnowledgeBase) -> None:
    steps = {step.operation: step for step in graph.search(QUESTION, "graph_local", 2).trace.steps}
    assert steps["seeds"].texts[0] == "seed Silent Harbor 1.000"
    assert steps["walk"].texts[0] == "7 passages, 4 entities, 7 edges"
    assert steps["lookup"].candidates > 0


def test_without_entities_it_is_said_plainly(store: VectorStore, embedder: BagOfWordsEmbedder) -> None:
    plain = make_base(store, embedder, {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)})
    with pytest.raises(QueryError, match="no entities are indexed"):
        plain.search("token", "graph_local")


def test_many_queries_are_answered_like_one(graph: KnowledgeBase) -> None:
    asked = [("1", QUESTION), ("2", "Vienna")]
    for query_id, result in graph.search_all(asked, "graph_local", 3):
        assert result.hits == graph.search(dict(asked)[query_id], "graph_local", 3).hits


def test_a_reader_is_given_the_neighbourhood_within_the_budget(
    tmp_path_factory: pytest.TempPathFactory, graph: KnowledgeBase
) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    fill_lake(lake)
    stored = stored_tables(lake)
    built = build_passage_graph(stored)
    entities = np.zeros(4)
    entities[built.entity_positions["mira kovacs"]] = 0.6
    entities[built.entity_positions["zagreb"]] = 0.3
    walk = Walk(entities, np.zeros(7))
    hits = graph.search(QUESTION, "graph_local", 7).hits
    found = local_context(stored, built, walk, hits, 2000)
    assert [line.split(" | ")[1] for line in found.entities] == ["Mira Kovacs", "Zagreb"]
    assert found.relationships == ("1 | Mira Kovacs | Silent Harbor | So.", "2 | Vienna | Zagreb | So.")
    assert found.claims == ("2 | Mira Kovacs | true | She studied in Vienna.",)
    assert [text.splitlines()[0] for text in found.reports] == ["# Films and cities", "# Silent Harbor"]
    assert found.passages == hits
    small = local_context(stored, built, walk, hits, 80)
    assert small.length_tokens <= 80
    assert 0 < len(small.passages) < len(hits)


@pytest.mark.parametrize(
    ("query", "worth"),
    [
        ("Where was the director of Silent Harbor born?", 1.0),
        ("Silent Harbor and Zagreb", 1.0),
        ("Was Silent Harbor shown in Everyville?", 0.25),
        ("Where is Everyville of the north?", 0.0),
        ("When was Silent Harbor made?", 0.0),
        ("What was it of?", 0.0),
    ],
)
def test_a_walk_is_worth_something_where_few_passages_name_what_is_asked(query: str, worth: float) -> None:
    names = ("Silent Harbor", "Zagreb", "Everyville")
    positions = {fold_name(name): position for position, name in enumerate(names)}
    graph = PassageGraph((), names, names, positions, np.array([1, 3, 4]), csr_array((3, 3)))
    assert walk_worth(query, graph) == worth


def test_a_walk_outweighs_words_where_it_leads_to_what_no_passage_found_says(
    tmp_path: Path, embedder: BagOfWordsEmbedder
) -> None:
    base = graph_base(tmp_path, embedder, texts=TWO_STEPS)
    two_steps = base.search(QUESTION, "weighted", 2)
    assert {hit.document_id for hit in two_steps.hits} == {FILM, PERSON}
    assert max(_added(two_steps.trace, "graph").values()) > max(_added(two_steps.trace, "words").values())
    one_step = base.search("Was the director silent of the harbor of Silent Harbor?", "weighted", 2)
    assert not any(_added(one_step.trace, "graph").values())
    assert PERSON not in {hit.document_id for hit in one_step.hits}


@pytest.fixture
def small_graph() -> PassageGraph:
    """Two passages, each with an entity that only it names, and a passage that names none."""
    weights = np.zeros((5, 5))
    for passage, entity in ((0, 3), (1, 4)):
        weights[passage, entity] = weights[entity, passage] = 1.0
    names = ("harbor", "vienna")
    return PassageGraph(("a", "b", "c"), names, names, {}, np.array([1, 1]), csr_array(weights))


def test_a_walk_starts_at_near_entities_that_the_query_does_not_name(small_graph: PassageGraph) -> None:
    walk = walk_between(_request("quay"), small_graph, [_candidate("harbor", 2.0)], [], TraceRecorder())
    assert walk.passages[0] > 0
    assert (walk.passages[1:] == 0).all()


def test_a_walk_starts_at_the_nearest_passages_however_many_are_wanted(small_graph: PassageGraph) -> None:
    near = [_candidate("a", 0.9), _candidate("c", 0.8), *(_candidate(f"other {n}", 0.5) for n in range(CANDIDATES))]
    walk, of_more = (
        walk_between(_request("quay"), small_graph, [], passages, TraceRecorder())
        for passages in (near[:CANDIDATES], [*near, _candidate("b", 0.1)])
    )
    assert walk.passages.tolist() == of_more.passages.tolist()
    assert walk.passages[0] > walk.passages[2] > walk.passages[1] == 0


def test_filters_hold_for_the_passages_at_which_walks_start(graph: KnowledgeBase) -> None:
    steps = graph.search(QUESTION, "graph_local", 5, Filters(folder=("people",))).trace.steps
    (nearest,) = (step for step in steps if (step.operation, step.index) == ("nearest", "chunks"))
    assert nearest.filter == "(folder = 'people' OR starts_with(folder, 'people/'))"


def _request(text: str) -> RetrievalRequest:
    return RetrievalRequest(text, None, 10, Filters(), SummaryFormat.FILE)


def _candidate(key: str, score: float) -> Candidate:
    return Candidate(key, key, None, 0, score)


def _added(trace: Trace, signal: str) -> dict[str, float]:
    """What a signal adds to the passages of a search by `weighted`."""
    (fused,) = (step for step in trace.steps if signal in step.texts)
    place = fused.texts.index(signal)
    return {each.chunk_id: each.lists[place] or 0.0 for each in fused.scores}
