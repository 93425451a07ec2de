"""Entities and relationships: aggregation against counts by hand, numbers that stay, and incremental equals full."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from graph_building import silent
from mention_building import (
    OPTIONS,
    TYPES,
    LikeEverything,
    Mention,
    NoRecognizer,
    Relation,
    always,
    as_rows,
    failing,
    fill_lake,
    sample_document,
    text_document,
    write_mentions,
)
from numpy.typing import NDArray
from scripted_model import ScriptedModel

from rag_assets.contracts.content import ParsedDocument
from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.contracts.tables import (
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    RELATIONSHIPS,
)
from rag_assets.graph.entities.descriptions import gathered
from rag_assets.graph.entities.resolution import ResolutionOptions
from rag_assets.graph.entities.tables import (
    ENTITY_TABLES,
    EntityOptions,
    entity_id,
    record_numbers,
    update_entities,
)
from rag_assets.graph.entities.type_suggestions import grouped, suggest_types
from rag_assets.graph.mentions.tables import update_mentions
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.store.lake import SHARDS, WHOLE, Lake

SETTINGS = EntityOptions(200, ResolutionOptions(0.9, 100))


def update(lake: Lake, model: ScriptedModel | None = None, settings: EntityOptions = SETTINGS) -> int:
    return update_entities(lake, StructuredModel(model) if model else ExtractiveModel(), LikeEverything(), settings)


def by_name(lake: Lake) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in lake.read(ENTITIES).to_pylist()}


def edges_by_name(lake: Lake) -> dict[tuple[str, ...], dict[str, object]]:
    names = {row["entity_id"]: row["name"] for row in lake.read(ENTITIES).to_pylist()}
    rows = lake.read(RELATIONSHIPS).to_pylist()
    return {tuple(sorted((names[row["source_id"]], names[row["target_id"]]))): row for row in rows}


GRAPH: tuple[list[Mention], list[Relation]] = (
    [
        ("a", "サーバー", "a says"),
        ("a", "ｻｰﾊﾞ", ""),
        ("b", "サーバー", "b says"),
        ("b", "Single Sign-On", ""),
        ("b", "SSO", "SSO is short"),
        ("b", "台帳", ""),
        ("b", "孤立", ""),
    ],
    [
        ("a", "サーバ", "台帳", "connector", "サーバ → 台帳"),
        ("b", "台帳", "サーバー", "stated", "台帳を読む"),
        ("b", "SSO", "サーバ", "sentence", ""),
        ("b", "Single Sign-On", "サーバ", "sentence", ""),
        ("b", "SSO", "Single Sign-On", "alias", "Single Sign-On (SSO)"),
        ("b", "SSO", "Single Sign-On", "sentence", ""),
    ],
)


def test_mentions_become_nodes_and_edges(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_mentions(lake, *GRAPH)
    update(lake)
    assert [lake.row_count(table, WHOLE) for table in ENTITY_TABLES] == [4, 2, 1]
    nodes = by_name(lake)
    server, login = nodes["サーバー"], nodes["Single Sign-On"]
    assert (server["mention_count"], server["document_count"]) == (3, 2)
    assert server["description"] == "a says\nb says"
    assert (login["aliases"], login["mention_count"], login["degree"]) == (["SSO"], 2, 1)
    assert server["degree"] == 2
    assert nodes["孤立"]["degree"] == 0
    assert server["entity_id"] == entity_id("サーバ")
    edges = edges_by_name(lake)
    stated = edges["サーバー", "台帳"]
    assert (stated["weight"], stated["mention_count"], stated["combined_degree"]) == (2.0, 2, 3)
    assert stated["description"] == "サーバ → 台帳\n台帳を読む"
    assert edges["Single Sign-On", "サーバー"]["weight"] == pytest.approx(2 * 2 / 3, abs=1e-3)
    (merge,) = lake.read(ENTITY_MERGES).to_pylist()
    assert (merge["name_key"], merge["merged_into"], merge["rule"]) == ("sso", "single sign on", "declared")


def test_standing_together_is_weighed_by_mutual_information(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    pairs = [("甲山", "乙川")] * 6 + [("甲山", "丙海")] * 2 + [("丁谷", "丙海")] * 8 + [("丁谷", "乙川")] * 1
    mentions = [("a", name, "") for name in ("甲山", "乙川", "丙海", "丁谷")]
    write_mentions(lake, mentions, [("a", *pair, "sentence", "") for pair in pairs])
    update(lake)
    counts, ends = Counter(pairs), Counter(name for pair in pairs for name in pair)
    total = len(pairs)
    expected = {}
    for (first, second), count in counts.items():
        mutual = math.log((count / (2 * total)) / (ends[first] / (2 * total) * ends[second] / (2 * total)))
        if mutual > 0:
            normal = mutual / -math.log(count / (2 * total))
            expected[tuple(sorted((first, second)))] = round(normal * count * count / (count + 1), 3)
    assert {names: row["weight"] for names, row in edges_by_name(lake).items()} == pytest.approx(expected, abs=2e-3)
    assert len(expected) == 2


def test_rank_is_pagerank(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_mentions(lake, *GRAPH)
    update(lake)
    graph = nx.Graph()
    graph.add_nodes_from(row["entity_id"] for row in lake.read(ENTITIES).to_pylist())
    for row in lake.read(RELATIONSHIPS).to_pylist():
        graph.add_edge(row["source_id"], row["target_id"], weight=row["weight"])
    expected = nx.pagerank(graph, tol=1e-12, max_iter=10_000)
    for row in lake.read(ENTITIES).to_pylist():
        assert row["rank"] == pytest.approx(expected[row["entity_id"]], abs=1e-6)


def test_numbers_follow_from_what_is_numbered(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_mentions(lake, *GRAPH)
    update(lake)
    before = {name: row["number"] for name, row in by_name(lake).items()}
    mentions = [mention for mention in GRAPH[0] if mention[1] != "台帳"] + [("c", "新規台帳", "")] * 5
    write_mentions(lake, mentions, [each for each in GRAPH[1] if "台帳" not in each], "2")
    assert update(lake) > 0
    after = {name: row["number"] for name, row in by_name(lake).items()}
    assert {**after, "台帳": before["台帳"]} == {**before, "新規台帳": after["新規台帳"]}


def test_numbers_are_distinct_and_short_and_know_no_order() -> None:
    identities = [str(number) for number in range(20_000)]
    numbers = record_numbers(identities)
    assert len(set(numbers.values())) == len(identities)
    assert 1 <= min(numbers.values()) <= max(numbers.values()) <= 9_999_999
    assert record_numbers(reversed(identities)) == numbers
    fewer = record_numbers(identities[::2])
    assert sum(fewer[name] != numbers[name] for name in fewer) <= 20, "only of two with one digest"


def test_nothing_is_written_where_nothing_changed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_mentions(lake, *GRAPH)
    assert update(lake) == 3
    versions = [lake.latest(table) for table in ENTITY_TABLES]
    assert update(lake) == 0
    assert [lake.latest(table) for table in ENTITY_TABLES] == versions


def test_a_decision_of_a_person_takes_effect(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    write_mentions(lake, *GRAPH)
    update(lake)
    path = tmp_path / "merges.csv"
    path.write_text("name,merge_into\n孤立,台帳\nSSO,\n", "utf-8")
    assert update(lake, settings=EntityOptions(200, ResolutionOptions(0.9, 100), path)) == 3
    assert by_name(lake)["台帳"]["aliases"] == ["孤立"]
    assert "SSO" in by_name(lake)


LONG: list[Mention] = [
    (document, "台帳", f"台帳は{document}章の{word}を記録する。" * 3) for document in "ab" for word in "値金量時"
]


def test_a_model_describes_what_is_long_and_only_what_changed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    mentions = [*LONG, ("a", "サーバ", "サーバは短い。")]
    write_mentions(lake, mentions, [])
    model = ScriptedModel(always({"description": "台帳は値などを記録する。"}))
    update(lake, model)
    assert len(model.asked) == 1
    assert "台帳はa章の値を記録する。" in model.asked[0].messages[0].text
    nodes = by_name(lake)
    assert nodes["台帳"]["description"] == "台帳は値などを記録する。"
    assert nodes["サーバ"]["description"] == "サーバは短い。"
    write_mentions(lake, [*mentions, ("c", "新しい機能", "短い。")], [], "2")
    again = ScriptedModel(always({"description": "別の説明"}))
    assert update(lake, again) > 0
    assert again.asked == []
    write_mentions(lake, [*mentions, ("c", "台帳", "台帳は増えた。")], [], "3")
    update(lake, again)
    assert len(again.asked) == 1
    assert by_name(lake)["台帳"]["description"] == "別の説明"


def test_a_description_that_fails_is_composed_and_tried_again(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_mentions(lake, LONG, [])
    update(lake, ScriptedModel(failing))
    text = str(by_name(lake)["台帳"]["description"])
    assert "台帳は" in text
    assert len(text) <= 200
    assert lake.inputs(ENTITIES, WHOLE)[WHOLE].startswith("again[")
    healed = ScriptedModel(always({"description": "よし"}))
    assert update(lake, healed) > 0
    assert by_name(lake)["台帳"]["description"] == "よし"
    assert update(lake, healed) == 0


def test_a_model_that_cannot_be_used_writes_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_mentions(lake, LONG, [])
    with pytest.raises(ModelError):
        update(lake, ScriptedModel(always({"description": "x"}), calls_left=0))
    assert lake.latest(ENTITIES) == {}


def test_long_descriptions_are_cut_to_what_adds_something() -> None:
    texts = [f"認可サーバは要求{n}を受け、トークンを返す。" for n in range(9)] + ["天気は晴れ。", "認可サーバ"]
    assert gathered(texts, 80) == "認可サーバは要求0を受け、トークンを返す。\n天気は晴れ。"
    assert gathered(["同じ", "同じ", "同じ文"], 80) == "同じ文"
    assert gathered([], 80) == ""


def test_what_begins_with_the_name_describes_it_best(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    said = ["After all, we talked to Contoso.", "Contoso makes tea in Leeds.", "Today Contoso grew."]
    write_mentions(lake, [("a.md", "Contoso", each) for each in said], [])
    update(lake)
    (row,) = lake.read(ENTITIES).to_pylist()
    assert row["description"].split("\n") == [said[1], said[2], said[0]]


# from documents


def index(lake: Lake, documents: dict[str, ParsedDocument]) -> None:
    fill_lake(lake, documents)
    update_mentions(lake, SHARDS, ExtractiveModel(), OPTIONS, TYPES, silent, NoRecognizer())
    update(lake)


def same_graph(first: Lake, second: Lake) -> None:
    for table in (ENTITIES, RELATIONSHIPS, ENTITY_MERGES):
        assert as_rows(first.read(table)) == as_rows(second.read(table))


def test_incremental_equals_full_and_keys_hold(tmp_path: Path) -> None:
    function = sample_document("設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx")
    tables = sample_document("設計書/テーブル定義書_B1_顧客管理システム.xlsx")
    messages = sample_document("設計書/メッセージ設計書_B1_顧客管理システム.xlsx")
    alias = text_document("顧客管理システム（以下「顧客管理」という。）は E0004 を返す。顧客管理は Java で書く。")
    kept = Lake(tmp_path / "kept")
    steps: list[dict[str, ParsedDocument]] = [
        {"function": function, "tables": tables},
        {"function": function, "tables": tables, "messages": messages, "alias": alias},
        {"function": function, "messages": messages, "alias": text_document("顧客管理システムは E0005 を返す。")},
    ]
    for number, documents in enumerate(steps):
        index(kept, documents)
        fresh = Lake(tmp_path / f"fresh{number}")
        index(fresh, documents)
        same_graph(kept, fresh)
        mentions = kept.read(ENTITY_MENTIONS).to_pylist()
        merges = {row["name_key"]: row["merged_into"] for row in kept.read(ENTITY_MERGES).to_pylist()}
        known = {row["entity_id"] for row in kept.read(ENTITIES).to_pylist()}
        assert {entity_id(merges.get(row["name_key"], row["name_key"])) for row in mentions} == known
        ends = {row[end] for row in kept.read(RELATIONSHIPS).to_pylist() for end in ("source_id", "target_id")}
        assert ends <= known
        assert not set(merges.values()) & merges.keys()
        numbers = [row["number"] for row in kept.read(ENTITIES).to_pylist()]
        assert len(numbers) == len(set(numbers)) > 20


# proposals of types


def test_types_are_proposed_from_head_nouns(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    names = [f"{word}画面" for word in ("登録", "照会", "確認", "削除", "完了")]
    write_mentions(lake, [("a", name, "") for name in names], [])
    (found,) = suggest_types(lake, ExtractiveModel(), _Plain(), TYPES, 1)
    assert (found.name, found.name_count) == ("screen", 5)
    assert set(found.examples) == set(names)
    assert suggest_types(Lake(tmp_path / "none"), ExtractiveModel(), _Plain(), TYPES, 3) == []


def test_a_model_proposes_types(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_mentions(lake, [("a", name, "") for name in ("鎮痛錠", "解熱錠", "整腸散")], [])

    def script(request: Request) -> JsonValue:
        assert "鎮痛錠" in request.messages[0].text
        assert "screen" in request.prefix
        return {"types": [{"name": "drug", "ja": "薬", "en": "a drug", "examples": ["鎮痛錠", "毒薬"]}]}

    (found,) = suggest_types(lake, StructuredModel(ScriptedModel(script)), _Plain(), TYPES, 3)
    assert (found.name, found.examples) == ("drug", ("鎮痛錠",))
    with pytest.raises(ModelError, match="no usable proposal"):
        suggest_types(lake, StructuredModel(ScriptedModel(failing)), _Plain(), TYPES, 3)


def test_vectors_are_grouped_by_direction() -> None:
    middles = np.eye(3, 8, dtype=np.float32)
    noise = np.random.default_rng(0).normal(0, 0.02, (30, 8)).astype(np.float32)
    vectors = np.repeat(middles, [15, 10, 5], axis=0) + noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert grouped(vectors, 3) == [list(range(15)), list(range(15, 25)), list(range(25, 30))]


class _Plain(LikeEverything):
    """Embeds passages by their characters."""

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> NDArray[np.float32]:
        assert kind is EmbeddingKind.PASSAGE
        codes = [[1.0, len(text), ord(text[0]) % 7, ord(text[-1]) % 11] for text in texts]
        vectors = np.array(codes, dtype=np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
