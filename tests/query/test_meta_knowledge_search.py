"""Mode `meta_knowledge`: facets given and guessed, sub-queries with and without a model, provenance, falling back."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from query_data import CHUNKS, FACETS, MEMO, PLAN, QUESTIONS, SPEC, TAX, BagOfWordsEmbedder, make_base, table
from scripted_model import ScriptedModel

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.generation import JsonValue, Outcome, Request
from rag_assets.contracts.tables import CHUNK_INDEX, DOCUMENT_FACETS, META_KNOWLEDGE, QUESTION_INDEX
from rag_assets.models.structured import StructuredModel
from rag_assets.query import KnowledgeBase, SearchResult, StoredTables, parse_filters
from rag_assets.query.results import to_json
from rag_assets.query.search.sub_queries import MOST_SUB_QUERIES, above_chance
from rag_assets.store.lake import WHOLE, Lake, shard_of
from rag_assets.store.vectors.store import VectorStore


def known(facets: str, terms: Sequence[str], text: str, count: int) -> dict[str, Any]:
    return {
        "selection": facets,
        "facets": facets.split(" & "),
        "question_count": count,
        "document_count": 1,
        "key_terms": list(terms),
        "text": text,
        "content_sha256": facets,
        "language": "ja",
        "method": "extractive",
    }


KNOWN = [
    known("kind=design", ["E0004", "重複", "顧客登録"], "顧客登録の設計", 3),
    known("kind=plan", ["annual plan", "token"], "annual plans", 1),
    known("kind=memo", ["contract"], "memos", 1),
    known("area=contracts", ["renewal", "contract", "token"], "contracts and their renewal", 2),
]


def stored(folder: Path) -> StoredTables:
    lake = Lake(folder)
    records = [
        {
            "document_id": name,
            "shard": shard_of(name),
            "facet": value.partition("=")[0],
            "value": value.partition("=")[2],
            "confidence": 1.0,
            "evidence": "",
            "method": "extractive",
        }
        for name, values in FACETS.items()
        for value in values
    ]
    for shard in {record["shard"] for record in records}:
        rows = [record for record in records if record["shard"] == shard]
        lake.write(DOCUMENT_FACETS, str(shard), DOCUMENT_FACETS.schema.empty_table().from_pylist(rows), {"x": "1"})
    lake.write(META_KNOWLEDGE, WHOLE, META_KNOWLEDGE.schema.empty_table().from_pylist(KNOWN), {WHOLE: "1"})
    return StoredTables(lake, {each.name: lake.latest(each) for each in (DOCUMENT_FACETS, META_KNOWLEDGE)})


Build = Callable[..., KnowledgeBase]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("base")
    embedder = BagOfWordsEmbedder()
    store = VectorStore(folder / "vectors")
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, CHUNKS)}, embedder)
    store.sync(QUESTION_INDEX, {"00": table(QUESTION_INDEX, QUESTIONS)}, embedder)
    versions = {each.name: store.optimize(each) for each in (CHUNK_INDEX, QUESTION_INDEX)}
    tables = stored(folder / "lake")

    def built(model: Any = None, *, with_tables: bool = True) -> KnowledgeBase:
        return make_base(store, embedder, versions, stored=tables if with_tables else None, model=model)

    return built


def told(result: SearchResult, operation: str) -> list[tuple[str, ...]]:
    return [step.texts for step in result.trace.steps if step.operation == operation]


def test_a_question_leads_to_the_passages_of_its_answer(build: Build) -> None:
    result = build().search("エラーコード E0004 は何ですか", "meta_knowledge", k=2)
    hit = result.hits[0]
    assert hit.chunk_id == f"{SPEC}#1.1"
    assert str(hit.citation) == f"{SPEC} › 画面 › B21:F30"
    assert hit.text == "エラーコード E0004 は重複を表す"
    assert hit.questions[0].qa_id == f"{SPEC}#q1"
    assert hit.questions[0].answer == "重複"
    assert hit.questions[0].asked[0] == "エラーコード E0004 は何ですか"
    assert to_json(hit)["questions"] == [to_json(each) for each in hit.questions]


def test_without_a_model_key_terms_make_the_sub_queries(build: Build) -> None:
    result = build().search("顧客登録の画面", "meta_knowledge", k=2)
    assert told(result, "detect") == [("kind=design",)]
    [terms] = told(result, "key_terms")
    assert set(terms) == {"E0004", "重複"}
    asked = [step for step in result.trace.steps if step.operation == "sub_query"]
    assert [step.texts[0] for step in asked] == ["顧客登録の画面", *(f"顧客登録の画面 {term}" for term in terms)]
    assert asked[0].filter is None
    assert {step.filter for step in asked[1:]} == {"((array_has(facets, 'kind=design')))"}
    assert {(step.index, step.version) for step in asked} == {("questions", asked[0].version)}
    assert all(step.milliseconds > 0 for step in asked)


def test_given_facets_restrict_all_that_is_found(build: Build) -> None:
    filters = parse_filters(["facet.area=contracts"])
    result = build().search("顧客登録の画面と token renewal", "meta_knowledge", k=10, filters=filters)
    assert {hit.document_id for hit in result.hits} == {PLAN, MEMO}
    assert told(result, "select") == [("area=contracts",)]
    assert told(result, "detect") == []


@pytest.mark.parametrize("mode", ["vector", "fulltext", "hybrid", "meta_knowledge"])
def test_facets_filter_every_mode(build: Build, mode: str) -> None:
    base = build()
    both = base.search("contract token", mode, filters=parse_filters(["facet.kind=memo", "facet.kind=plan"]))
    assert {hit.document_id for hit in both.hits} <= {PLAN, MEMO, TAX}
    assert {PLAN, MEMO} <= {hit.document_id for hit in both.hits}
    crossed = parse_filters(["facet.kind=memo", "facet.area=contracts"])
    assert {hit.document_id for hit in base.search("contract token", mode, filters=crossed).hits} == {MEMO}
    nothing = parse_filters(["facet.kind=memo", "facet.area=customers"])
    assert base.search("contract", mode, filters=nothing).hits == ()
    with pytest.raises(QueryError, match="no document has facet.kind it's"):
        base.search("contract", mode, filters=parse_filters(["facet.kind=it's"]))


def test_facets_need_published_values(build: Build) -> None:
    filters = parse_filters(["facet.kind=memo"])
    with pytest.raises(QueryError, match="no document has a facet 'kind'; there are: none"):
        build(with_tables=False).search("contract", "hybrid", filters=filters)
    with pytest.raises(QueryError, match="no document has a facet 'colour'; there are: area, kind"):
        build().search("contract", filters=parse_filters(["facet.colour=red"]))
    with pytest.raises(QueryError, match="no document has a facet 'kinds'; did you mean kind"):
        build().search("contract", filters=parse_filters(["facet.kinds=memo"]))
    with pytest.raises(QueryError, match="no document has facet.kind Memo; did you mean memo"):
        build().search("contract", filters=parse_filters(["facet.kind=Memo"]))
    with pytest.raises(QueryError, match=r"expected one of .*facet\.NAME"):
        parse_filters(["facet.=memo"])


def test_other_filters_hold_for_the_passages(build: Build) -> None:
    filters = parse_filters(["page_name=画面"])
    result = build().search("重複 E0004", "meta_knowledge", k=10, filters=filters)
    assert {hit.chunk_id for hit in result.hits} == {f"{SPEC}#1.0", f"{SPEC}#1.1"}


def test_passages_that_no_question_leads_to_are_found_as_well(build: Build) -> None:
    result = build().search("税の納付", "meta_knowledge", k=6)
    assert len(result.hits) == 6
    assert [hit.document_id for hit in result.hits if not hit.questions] == [TAX]


def test_without_meta_knowledge_the_query_is_searched_as_it_is(build: Build) -> None:
    result = build(with_tables=False).search("エラーコード E0004", "meta_knowledge", k=1)
    assert result.hits[0].chunk_id == f"{SPEC}#1.1"
    assert told(result, "sub_query") == [("エラーコード E0004",)]


def test_without_questions_the_mode_says_so(tmp_path: Path) -> None:
    embedder = BagOfWordsEmbedder()
    store = VectorStore(tmp_path)
    store.sync(CHUNK_INDEX, {"00": table(CHUNK_INDEX, CHUNKS)}, embedder)
    versions = {CHUNK_INDEX.name: store.optimize(CHUNK_INDEX)}
    message = "mode meta_knowledge needs questions, and none are indexed"
    with pytest.raises(QueryError, match=message):
        make_base(store, embedder, versions).search("token", "meta_knowledge")
    store.sync(QUESTION_INDEX, {"00": table(QUESTION_INDEX, [])}, embedder)
    versions[QUESTION_INDEX.name] = store.optimize(QUESTION_INDEX)
    with pytest.raises(QueryError, match=message):
        make_base(store, embedder, versions).search("token", "meta_knowledge")


def script(choice: JsonValue, plan: JsonValue) -> Callable[[Request], JsonValue]:
    return lambda request: choice if request.tag.step == "choose_knowledge" else plan


def test_a_model_chooses_and_plans(build: Build) -> None:
    model = ScriptedModel(
        script({"groups": [2]}, {"plan": "first, then", "queries": ["更新されるもの What is renewed?", "annual plan"]})
    )
    result = build(StructuredModel(model)).search("token の更新", "meta_knowledge", k=3)
    # by falling number of questions: kind=design, area=contracts, ...
    assert told(result, "choose") == [("area=contracts",)]
    assert told(result, "plan") == [("更新されるもの What is renewed?", "annual plan")]
    assert told(result, "sub_query") == [("token の更新",), ("更新されるもの What is renewed?",), ("annual plan",)]
    assert [request.tag.step for request in model.asked] == ["choose_knowledge", "plan_queries"]
    choice, plan = model.asked
    assert "2. area=contracts: renewal, contract, token" in choice.prefix
    assert "contracts and their renewal" in plan.messages[-1].text
    assert {request.tag.asset for request in model.asked} == {"search"}
    assert json.loads(plan.schema or "")["properties"]["queries"]["maxItems"] == MOST_SUB_QUERIES
    by_id = {question.qa_id: question.asked for hit in result.hits for question in hit.questions}
    assert by_id[f"{PLAN}#q0"] == ("token の更新", "更新されるもの What is renewed?", "annual plan")


def test_the_model_plans_once_however_deep_the_search_goes(build: Build) -> None:
    model = ScriptedModel(script({"groups": [1]}, {"plan": "", "queries": []}))
    result = build(StructuredModel(model)).search("重複", "meta_knowledge", k=50, granularity="document")
    assert len(model.asked) == 2
    assert told(result, "sub_query")[0] == ("重複",)


def test_given_facets_are_not_asked_for(build: Build) -> None:
    model = ScriptedModel(script(None, {"plan": "", "queries": ["annual plan"]}))
    filters = parse_filters(["facet.area=contracts"])
    result = build(StructuredModel(model)).search("token", "meta_knowledge", filters=filters)
    assert [request.tag.step for request in model.asked] == ["plan_queries"]
    asked = [step for step in result.trace.steps if step.operation == "sub_query"]
    assert {step.filter for step in asked} == {"array_has(facets, 'area=contracts')"}


def test_a_model_that_does_not_answer_is_replaced(build: Build) -> None:
    from rag_assets.contracts.generation import Completion

    model = ScriptedModel(lambda request: Completion(request, Outcome.REFUSED))
    result = build(StructuredModel(model)).search("顧客登録の画面", "meta_knowledge", k=2)
    assert told(result, "choose") == [("failed: refused",)]
    assert told(result, "detect") == [("kind=design",)]
    assert told(result, "plan") == [("failed: refused",)]
    assert told(result, "key_terms")


def test_no_group_leaves_the_query_as_it_is(build: Build) -> None:
    model = ScriptedModel(script({"groups": []}, {}))
    result = build(StructuredModel(model)).search("token", "meta_knowledge")
    assert told(result, "choose") == [()]
    assert told(result, "sub_query") == [("token",)]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.8], [0]),
        ([0.8, 0.8, 0.8], []),
        ([0.80, 0.81], [1]),
        ([0.80, 0.80, 0.80, 0.80, 0.90, 0.89], [4, 5]),
        ([0.80, 0.80, 0.80, 0.80, 0.80, 0.80, 0.90], [6]),
    ],
)
def test_what_stands_out_is_chosen(scores: list[float], expected: list[int]) -> None:
    facets = [(f"a={index}",) for index in range(len(scores))]
    assert above_chance(np.array(scores, dtype=np.float32), facets) == expected


def test_a_part_of_what_was_chosen_is_not_chosen_too() -> None:
    facets = [("a=1",), ("a=1", "b=1"), ("b=2",), ("b=3",), ("b=4",), ("b=5",)]
    scores = np.array([0.90, 0.91, 0.8, 0.8, 0.8, 0.8], dtype=np.float32)
    assert above_chance(scores, facets) == [1]
