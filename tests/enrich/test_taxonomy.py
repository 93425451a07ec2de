"""Taxonomies: the shipped ones, errors in files, the way to TOML and back, proposals from a corpus."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from query_data import BagOfWordsEmbedder
from scripted_model import ScriptedModel
from small_lake import page, store

from rag_assets.contracts.causes import BlockKind, PageRole
from rag_assets.contracts.content import Block
from rag_assets.contracts.errors import QueryError, SettingsError
from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.enrich.facets.taxonomy import LANGUAGES, load_taxonomy, parse_taxonomy, taxonomy_text
from rag_assets.enrich.facets.taxonomy_suggestion import cluster, suggest_taxonomy
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.store.lake import Lake

GOOD = """
[[facets]]
name = "kind"
label.ja = "種類"
label.en = "Kind"
description = "What it is."
required = true

[[facets.values]]
name = "report"
label = "報告書"
description.en = "Tells of results."
terms = ["報告"]
"""


@pytest.mark.parametrize("name", ["office", "papers"])
def test_shipped_taxonomies_are_complete(name: str) -> None:
    taxonomy = load_taxonomy(name)
    assert taxonomy.name == name
    assert 3 <= len(taxonomy.facets) <= 4
    for facet in taxonomy.facets:
        assert 5 <= len(facet.values) <= 15
        for value in facet.values:
            assert value.terms
            for words in (value.labels, value.descriptions):
                assert dict(words).keys() == set(LANGUAGES)
            assert re.search("[ぁ-んァ-ヶ一-龯]", value.label("ja")), value.name
            assert value.label("en").isascii()
            assert len(value.description("en")) > 20
        labels = [value.label("ja") for value in facet.values]
        assert len(set(labels)) == len(labels)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD, "utf-8")
    taxonomy = load_taxonomy(str(path))
    [facet] = taxonomy.facets
    assert (taxonomy.name, facet.label("ja"), facet.label("de"), facet.required) == ("mine", "種類", "Kind", True)
    assert facet.description("ja") == facet.description("en") == "What it is."
    [value] = facet.values
    assert (value.label("en"), value.description("ja"), value.terms) == ("報告書", "Tells of results.", ("報告",))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[facets]]", "[[facets", "not TOML"),
        ('name = "kind"', 'name = "Kind of"', r"facets\[0\], name: expected lower-case .* found 'Kind of'"),
        ('name = "kind"', 'name = "reasoning"', "expected another name"),
        ('name = "report"', "", r"facet 'kind', values\[0\], name: .* found nothing"),
        ('label = "報告書"', 'label = ""', "facet 'kind'.*label: expected a text"),
        ('label = "報告書"', 'label.fr = "rapport"', "expected languages ja and en, found 'fr'"),
        ('terms = ["報告"]', 'terms = "報告"', "terms: expected a list of texts"),
        ("required = true", "required = 1", "required: expected true or false, found 1"),
        ("required = true", "most_values = 0", "most_values: expected a number from 1, found 0"),
        ("required = true", "needed = true", "found needed"),
        ('[[facets.values]]\nname = "report"', '[[facets.value]]\nname = "report"', "found value"),
        (
            "[[facets.values]]",
            '[[facets.values]]\nname = "report"\nlabel = "a"\ndescription = "b"\n[[facets.values]]',
            "once",
        ),
    ],
)
def test_errors_say_where(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(SettingsError, match=message) as error:
        parse_taxonomy(GOOD.replace(old, new, 1), "mine.toml")
    assert str(error.value).startswith("mine.toml")


def test_an_empty_file_and_an_unknown_name_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"facets: expected one or more tables \[\[facets\]\], found nothing"):
        parse_taxonomy("", "mine.toml")
    with pytest.raises(SettingsError, match="expected one of office, papers, or the path of a TOML file"):
        load_taxonomy("offices")
    with pytest.raises(SettingsError, match="expected one of"):
        load_taxonomy("../taxonomies/office")


def test_text_gives_the_same_taxonomy_back() -> None:
    for name in ("office", "papers"):
        taxonomy = load_taxonomy(name)
        again = parse_taxonomy(taxonomy_text(taxonomy, "two\nlines"), "again")
        assert again == taxonomy
        assert again.digest == taxonomy.digest


def test_values_are_told_by_their_labels() -> None:
    taxonomy = load_taxonomy("office")
    values = ["document_type=report", "subject=testing", "gone=x"]
    assert taxonomy.described(values, "ja") == "文書の種類「報告書」、主題「テスト」、gone=x"
    assert taxonomy.described(values, "en") == 'Type of document "report", Subject "testing", gone=x'
    assert taxonomy.described(values, "und") == taxonomy.described(values, "en")


def test_the_digest_follows_what_counts() -> None:
    first = parse_taxonomy(GOOD, "a").digest
    assert parse_taxonomy(f"# comment\n{GOOD}", "b").digest == first
    assert parse_taxonomy(GOOD.replace("報告書", "レポート"), "c").digest != first
    assert parse_taxonomy(GOOD.replace("required = true", ""), "d").digest != first


def test_clusters_are_those_that_lie_apart() -> None:
    generator = np.random.default_rng(7)
    centres = np.eye(8)[:3]
    vectors = np.concatenate(
        [centre + 0.05 * generator.normal(size=(size, 8)) for centre, size in zip(centres, (5, 9, 4), strict=True)]
    )
    vectors -= vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert cluster(vectors, 8) == [list(range(5, 14)), list(range(5)), list(range(14, 18))]
    assert cluster(vectors[:1], 8) == [[0]]


TOPICS = {
    "invoice": "請求書 請求金額 支払期限 税額 invoice amount",
    "test": "単体テスト テストケース 期待結果 確認項目 testing case",
    "api": "インタフェース 電文 レスポンス ステータスコード interface response",
}


def corpus(lake: Lake) -> None:
    store(
        lake,
        {
            f"docs/{topic}{n}.txt": [page(Block(BlockKind.PARAGRAPH, f"{words} {words} その{n}"))]
            for topic, words in TOPICS.items()
            for n in range(4)
        },
        {f"docs/{topic}{n}.txt": words.split()[0] for topic, words in TOPICS.items() for n in range(4)},
    )


def test_a_proposal_has_a_value_for_each_group(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    corpus(lake)
    text = suggest_taxonomy(lake, BagOfWordsEmbedder(), ExtractiveModel(), 8)
    taxonomy = parse_taxonomy(text, "suggested.toml")
    [facet] = taxonomy.facets
    assert len(facet.values) == 3
    assert text.startswith("# Proposed from 12 documents")
    told = [next(topic for topic, words in TOPICS.items() if value.terms[0] in words) for value in facet.values]
    assert sorted(told) == sorted(TOPICS)
    assert suggest_taxonomy(lake, BagOfWordsEmbedder(), ExtractiveModel(), 8) == text


def test_a_model_names_the_values(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    corpus(lake)

    def script(request: Request) -> JsonValue:
        if "請求書" in request.messages[-1].text.partition("<document")[2]:
            return {"name": "billing", "label": "請求", "description": "請求に関する文書。", "terms": ["請求書", " "]}
        return {"name": "Not a name!", "label": "別", "description": "別の文書。", "terms": []}

    model = ScriptedModel(script)
    text = suggest_taxonomy(lake, BagOfWordsEmbedder(), StructuredModel(model), 8)
    [facet] = parse_taxonomy(text, "suggested.toml").facets
    billing = next(value for value in facet.values if value.name == "billing")
    assert (billing.label("ja"), billing.terms) == ("請求", ("請求書",))
    others = [value for value in facet.values if value.name != "billing"]
    assert [value.label("ja") for value in others] == ["別", "別"]
    assert len({value.name for value in others}) == 2
    assert all("docs/" not in request.messages[-1].text for request in model.asked)


def test_few_documents_give_one_value(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    store(lake, {"a.txt": [page(Block(BlockKind.PARAGRAPH, "The only document on budgets and costs of this year."))]})
    [facet] = parse_taxonomy(suggest_taxonomy(lake, BagOfWordsEmbedder(), ExtractiveModel(), 8), "x").facets
    assert len(facet.values) == 1
    with pytest.raises(QueryError, match="nothing is indexed"):
        suggest_taxonomy(Lake(tmp_path / "none"), BagOfWordsEmbedder(), ExtractiveModel(), 8)


def test_terms_are_whole_words_of_what_tells_a_cluster_from_others(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    cover = replace(page(Block(BlockKind.HEADING, "変更履歴表"), number=1, name="表紙"), role=PageRole.COVER)
    label = Block(BlockKind.PARAGRAPH, "成果物管理番号")
    said = {
        "orders": ("画面用排他制御機能一覧", "受注の画面を開く。"),
        "stock": ("倉庫別在庫照会手順", "在庫を数える。"),
    }
    store(
        lake,
        {
            f"docs/txn-98765_{topic}_{n}.xlsx": [
                cover,
                page(Block(BlockKind.HEADING, heading), label, Block(BlockKind.PARAGRAPH, f"{text}{n}"), number=2),
            ]
            for topic, (heading, text) in said.items()
            for n in range(4)
        },
    )
    [facet] = parse_taxonomy(suggest_taxonomy(lake, BagOfWordsEmbedder(), ExtractiveModel(), 2), "x").facets
    assert sorted(value.terms for value in facet.values) == [
        ("倉庫別在庫照会手順",),
        ("画面用排他制御機能一覧", "受注"),
    ]
    assert sorted(value.label("ja") for value in facet.values) == ["倉庫別在庫照会手順", "画面用排他制御機能一覧・受注"]
    assert [value.name for value in facet.values] == ["topic_01", "topic_02"]
