"""Facets: the extractive formula, the dialogue with a model, and the step on a small lake."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from query_data import BagOfWordsEmbedder
from scripted_model import ScriptedModel
from small_lake import DOCUMENTS_BY_ID, ERRORS, GUIDE, TAXONOMY, ignore, page, parsed_sample, store

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request
from rag_assets.contracts.tables import DOCUMENT_FACETS, DOCUMENTS
from rag_assets.enrich.documents import Subject
from rag_assets.enrich.facets.extraction import Classifier, confidences, profile
from rag_assets.enrich.facets.tables import context_needed, document_text, facet_dialogue, update_facets, wanted_facets
from rag_assets.enrich.facets.taxonomy import Taxonomy, load_taxonomy
from rag_assets.models.embedding.embedders import E5Embedder
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.parsing.records import load_pages
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import SHARDS, Lake, shard_of
from rag_assets.text.tokens import estimate_tokens

SPEC, MANUAL, EMPTY = DOCUMENTS_BY_ID
Script = Callable[[Request], "Completion | JsonValue"]


def answer(**facets: list[tuple[str, float, str]]) -> JsonValue:
    value: dict[str, Any] = {"reasoning": "because", "kind": [], "area": []}
    for facet, items in facets.items():
        value[facet] = [{"value": v, "confidence": c, "evidence": e} for v, c, e in items]
    return value


def update(lake: Lake, model: Any = None, taxonomy: Taxonomy = TAXONOMY, read_tokens: int = 4000) -> StepReport:
    return update_facets(lake, SHARDS, model or ExtractiveModel(), BagOfWordsEmbedder(), taxonomy, read_tokens, ignore)


def facets(lake: Lake) -> dict[str, list[tuple[str, str, float, str, str]]]:
    found: dict[str, list[tuple[str, str, float, str, str]]] = {}
    for row in lake.read(DOCUMENT_FACETS).to_pylist():
        values = row["facet"], row["value"], round(row["confidence"], 4), row["evidence"], row["method"]
        found.setdefault(row["document_id"], []).append(values)
    return found


@pytest.fixture(scope="module")
def sample_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return parsed_sample(tmp_path_factory.mktemp("parsed"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    store(lake, DOCUMENTS_BY_ID)
    return lake


def test_confidence_is_a_softmax_with_none_of_them() -> None:
    found = confidences([0.024, 0.0, -0.024], [0.5, 0.0, 0.0])
    weights = [math.exp(1 + 2), math.exp(0), math.exp(-1), math.exp(1.5)]
    assert found == pytest.approx([weight / sum(weights) for weight in weights[:3]])
    assert sum(found) < 1
    assert confidences([50.0, 0.0], [0.0, 0.0])[0] == pytest.approx(1.0)


def test_words_and_nearness_tell_values_with_evidence(lake: Lake) -> None:
    update(lake)
    found = facets(lake)
    assert EMPTY not in found
    kinds = {name: [value for value in values if value[0] == "kind"] for name, values in found.items()}
    assert [value[1] for value in kinds[SPEC]] == ["design"]
    assert [value[1] for value in kinds[MANUAL]] == ["manual"]
    assert "Setting up the scanner" in kinds[MANUAL][0][3]
    assert all(0 < value[2] <= 1 and value[4] == "extractive" for values in found.values() for value in values)


def test_a_classification_depends_on_its_document_alone() -> None:
    classifier = Classifier(TAXONOMY, BagOfWordsEmbedder())
    spec = profile("システム機能設計書_B10103_顧客登録", "", [ERRORS], "ja")
    guide = profile("scanner guide", "", [GUIDE], "en")
    both, alone = classifier.classify([spec, guide]), classifier.classify([guide])
    assert both[1] == alone[0]


def test_running_headers_and_cover_sheets_do_not_count() -> None:
    blocks = (Block(BlockKind.HEADER, "請求書"), Block(BlockKind.PARAGRAPH, "取引の処理を定める。"))
    assert profile("x", "", [page(*blocks)], "ja").lines == ("取引の処理を定める。",)


def test_no_value_is_without_a_line_that_speaks_for_it() -> None:
    classifier = Classifier(TAXONOMY, BagOfWordsEmbedder())
    texts = ["顧客マスタの説明", "LogWriter → LogFormatter", "scanners and lamps of the device", "取引と処理の一覧"]
    documents = [profile("x", "", [page(Block(BlockKind.PARAGRAPH, text))], "ja") for text in texts]
    found = [each for assigned in classifier.classify(documents) for each in assigned]
    assert found
    assert all(each.evidence in texts for each in found)
    [titled] = classifier.classify([profile("請求書", "", [page(Block(BlockKind.PARAGRAPH, "zzz"))], "ja")])
    assert ("invoice", "請求書") in {(each.value, each.evidence) for each in titled}


@pytest.mark.parametrize(
    ("plain", "named"),
    [
        ("メッセージ設計書_顧客管理", "メッセージ設計書_B1_顧客管理システム"),
        ("message design, customer management", "message design, customer management system"),
    ],
)
def test_the_name_of_a_system_is_not_what_a_document_is_about(plain: str, named: str, models_folder: Path) -> None:
    classifier = Classifier(load_taxonomy("office"), E5Embedder(models_folder))
    pages = [page(Block(BlockKind.PARAGRAPH, "メッセージID MSG0001 を画面に出す。"))]
    surely, hardly = (
        next((each.confidence for each in found if each.value == "sales_marketing"), 0.0)
        for found in classifier.classify([profile(title, "", pages, "ja") for title in (plain, named)])
    )
    assert surely > 2 * hardly


def test_only_a_required_facet_takes_a_weak_best() -> None:
    [found] = Classifier(TAXONOMY, BagOfWordsEmbedder()).classify(
        [profile("", "", [page(Block(BlockKind.PARAGRAPH, "zzz"))], "en")]
    )
    assert all(each.facet == "kind" for each in found if each.confidence < 0.25)


def test_the_model_names_several_values_and_evidence_is_checked(lake: Lake) -> None:
    def script(request: Request) -> JsonValue:
        if "顧客登録" in request.messages[-1].text:
            return answer(
                kind=[
                    ("design", 0.9, "顧客 のデータ1件を登録する"),
                    ("manual", 0.4, "使い方を説明"),
                    ("design", 0.1, ""),
                ],
                area=[("customers", 0.8, "顧客のデータ１件を登録する")],
            )
        return answer(kind=[("manual", 1, "press both buttons"), ("design", 0.5, ""), ("invoice", 0.3, "")])

    model = ScriptedModel(script, context_tokens=32_000)
    report = update(lake, StructuredModel(model))
    found = facets(lake)
    assert found[SPEC] == [
        ("area", "customers", 0.8, "顧客のデータ１件を登録する", "scripted:model"),
        ("kind", "design", 0.9, "", "scripted:model"),  # the blank in it stands nowhere
        ("kind", "manual", 0.4, "", "scripted:model"),
    ]
    assert [value[1] for value in found[MANUAL]] == ["design", "manual"]  # no more than the facet allows
    assert EMPTY not in found
    assert (report.total().computed, len(model.asked)) == (3, 2)
    request = next(each for each in model.asked if each.tag.document_id == SPEC)
    assert "B10103_顧客登録" not in request.messages[-1].text  # the file name
    assert "`design` 設計書" in request.prefix
    assert request.tag.step == "classify_document"
    assert request.tag.asset == "document_facets"
    assert json.loads(request.schema or "")["properties"]["kind"]["items"]["properties"]["value"]["enum"] == [
        "design",
        "manual",
        "invoice",
    ]


@pytest.mark.parametrize(
    ("outcome", "tried_again"), [(Outcome.REFUSED, False), (Outcome.FAILED, True), (Outcome.TRUNCATED, False)]
)
def test_what_the_model_cannot_do_is_extracted(lake: Lake, outcome: Outcome, tried_again: bool) -> None:
    def script(request: Request) -> Completion | JsonValue:
        if request.tag.document_id == SPEC:
            return Completion(request, outcome)
        return answer(kind=[("manual", 1, "")])

    model = ScriptedModel(script)
    update(lake, StructuredModel(model))
    assert {value[4] for value in facets(lake)[SPEC]} == {"extractive"}
    asked = len(model.asked)
    update(lake, StructuredModel(model))
    assert len(model.asked) - asked == int(tried_again)
    if tried_again:
        done = StructuredModel(ScriptedModel(lambda _: answer(kind=[("design", 1, "")])))
        update(lake, done)
        assert {value[4] for value in facets(lake)[SPEC]} == {"scripted:model"}


def test_an_answer_with_an_unknown_value_is_asked_for_again(lake: Lake) -> None:
    def script(request: Request) -> JsonValue:
        first = len(request.messages) == 1
        return answer(kind=[("novel" if first else "design", 1, "")])

    model = ScriptedModel(script)
    update(lake, StructuredModel(model))
    assert len(model.asked) == 4
    assert {value[1] for values in facets(lake).values() for value in values} == {"design"}


def test_a_model_that_ends_loses_nothing(lake: Lake) -> None:
    model = ScriptedModel(lambda _: answer(kind=[("design", 1, "")]), calls_left=1)
    with pytest.raises(ModelError):
        update(lake, StructuredModel(model))
    again = ScriptedModel(lambda _: answer(kind=[("design", 1, "")]))
    update(lake, StructuredModel(again))
    assert len(again.asked) == 1
    assert len(facets(lake)) == 2


@pytest.mark.parametrize("generative", [False, True])
def test_incremental_equals_full(tmp_path: Path, generative: bool) -> None:
    def script(request: Request) -> JsonValue:
        return answer(kind=[("design", len(request.messages[-1].text) % 97 / 97, "")])

    def model() -> Any:
        return StructuredModel(ScriptedModel(script)) if generative else ExtractiveModel()

    changed = [page(GUIDE.blocks[0], Block(BlockKind.PARAGRAPH, "An invoice for a printer."))]
    final = {SPEC: DOCUMENTS_BY_ID[SPEC], MANUAL: changed, "new/x.txt": [ERRORS]}
    step = Lake(tmp_path / "step")
    store(step, DOCUMENTS_BY_ID)
    update(step, model())
    store(step, final)
    report = update(step, model())
    assert (report.total().computed, report.total().kept, report.total().removed) == (2, 1, 1)
    full = Lake(tmp_path / "full")
    store(full, final)
    update(full, model())
    assert step.read(DOCUMENT_FACETS).equals(full.read(DOCUMENT_FACETS))
    again = update(step, model())
    assert (again.total().computed, again.total().written) == (0, 0)


def test_taxonomy_model_and_embedder_are_part_of_the_input(lake: Lake) -> None:
    shard = shard_of(SPEC)
    base = wanted_facets(lake, shard, TAXONOMY, 4000, "a", "e")
    other = replace(TAXONOMY, facets=TAXONOMY.facets[:1])
    assert base.keys() == {SPEC}
    for args in (
        (other, 4000, "a", "e"),
        (TAXONOMY, 3000, "a", "e"),
        (TAXONOMY, 4000, "b", "e"),
        (TAXONOMY, 4000, "a", "f"),
    ):
        assert wanted_facets(lake, shard, *args) != base


def test_a_long_document_is_read_by_the_beginning_of_each_page() -> None:
    pages = [
        page(*(Block(BlockKind.PARAGRAPH, f"第{n}頁の{line}行目の文です。") for line in range(80)), number=n)
        for n in range(1, 7)
    ]
    text = document_text([*pages, page(Block(BlockKind.PARAGRAPH, "終わり"), number=7)], 600)
    assert estimate_tokens(text) <= 600
    assert all(f"第{n}頁の0行目" in text for n in range(1, 7))
    assert "79行目" not in text
    assert document_text(pages[:1], 10_000).count("行目") == 80


@pytest.mark.parametrize("language", ["ja", "en"])
@pytest.mark.parametrize("taxonomy", ["office", "papers"])
def test_a_request_and_its_answer_fit_the_context_or_nothing_is_asked(taxonomy: str, language: str) -> None:
    chosen = load_taxonomy(taxonomy)
    text = "顧客のデータを登録する。 A record of 2024-04-01 is stored.\n" * 400
    pages = [page(Block(BlockKind.PARAGRAPH, text), name="顧客の登録")] * 5
    subject = Subject("a", "00", language, "システム機能設計書 " * 30, ["取引概要とその処理"] * 90)
    needed = context_needed(chosen, language)
    asked = []
    for context_tokens in range(512, 14_000, 331):
        dialogue = facet_dialogue(subject, pages, chosen, 6000, context_tokens)
        try:
            [request] = next(dialogue)
        except StopIteration as stop:
            assert stop.value is None
            assert context_tokens < needed
            continue
        asked.append(context_tokens)
        prompt = estimate_tokens(request.prefix) + estimate_tokens(request.messages[-1].text)
        assert prompt + request.max_tokens <= context_tokens
        assert estimate_tokens(request.messages[-1].text) > 384
    assert asked
    assert len(asked) < 41
    assert needed <= 4096


def test_a_context_that_is_too_small_is_named_and_done_without(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(lambda _: answer(kind=[("design", 1, "")]), context_tokens=600)
    with caplog.at_level("WARNING"):
        update(lake, StructuredModel(model))
    assert model.asked == []
    assert {value[4] for values in facets(lake).values() for value in values} == {"extractive"}
    needed = max(context_needed(TAXONOMY, language) for language in ("ja", "en"))
    [message] = caplog.messages
    assert f"taxonomy test needs a context of {needed:,} tokens, scripted:model takes 600" in message


def test_the_sample_documents_get_their_kinds(sample_lake: Lake, models_folder: Path) -> None:
    classifier = Classifier(load_taxonomy("office"), E5Embedder(models_folder))
    best: dict[str, dict[str, str]] = {}
    for row in sample_lake.read(DOCUMENTS).to_pylist():
        [(title, pages)] = load_pages(sample_lake, row["shard"], [row["document_id"]]).values()
        [assignments] = classifier.classify([profile(title, "", pages, row["language"])])
        best[row["file_name"]] = {each.facet: each.value for each in reversed(assignments)}
    assert {name: values.get("document_type") for name, values in best.items() if not name.startswith("word_")} == {
        "RECEIPT-2024-TXN-98765_retail_purchase.pdf": "transaction_record",
        "439_コアデータモデル解説書_土地.docx": "data_definition",
        "pesticides_industry_sales_1994-95.pdf": "report",
        "システム機能設計書(Webサービス)_B10103_顧客登録.xlsx": "functional_design",
        "nablarch-1.4.9-releasenote.xlsx": "report",
        "住登外者宛名番号管理_項目定義書.xlsx": "data_definition",
        "メッセージ設計書_B1_顧客管理システム.xlsx": "message_definition",
        "テーブル定義書_B1_顧客管理システム.xlsx": "data_definition",
    }
    assert best["システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"]["subject"] == "web_api"
    assert best["nablarch-1.4.9-releasenote.xlsx"]["subject"] == "release_changes"
    assert best["439_コアデータモデル解説書_土地.docx"]["business_area"] == "public_administration"
