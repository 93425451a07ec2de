"""Meta knowledge: selections, key terms by a formula worked by hand, the dialogue, and the step on a small lake."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from qa_lake import DESIGN, FACETS, LONELY, MANUAL, OTHER, QUESTIONS, store_questions
from scripted_model import ScriptedModel
from small_lake import TAXONOMY, ignore

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request
from rag_assets.contracts.tables import META_KNOWLEDGE, QUESTION_CLUSTERS
from rag_assets.enrich.knowledge.extraction import (
    QuestionAnswer,
    Selection,
    TermCounts,
    central_questions,
    compose_summary,
    key_terms,
    readable_terms,
    select,
)
from rag_assets.enrich.knowledge.tables import (
    KnowledgeOptions,
    knowledge_dialogue,
    question_parts,
    update_meta_knowledge,
)
from rag_assets.enrich.written import TextUpdate
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.text.tokens import estimate_tokens

OPTIONS = KnowledgeOptions(
    least_documents=2,
    least_questions=4,
    most_combinations=100,
    key_terms=8,
    summary_chars=300,
    read_tokens=4000,
    remove_duplicates=False,
)
SINGLES = ["area=customers", "area=offices", "kind=design", "kind=manual"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    store_questions(lake)
    return lake


def update(lake: Lake, model: Any = None, options: KnowledgeOptions = OPTIONS) -> TextUpdate:
    return update_meta_knowledge(lake, model or ExtractiveModel(), options, TAXONOMY, ignore)


def found(lake: Lake) -> dict[str, dict[str, Any]]:
    return {row["selection"]: row for row in lake.read(META_KNOWLEDGE).to_pylist()}


def made(name: str, text: str, answer: str = "", language: str = "en") -> QuestionAnswer:
    return QuestionAnswer(name, name.partition("#")[0], text, answer, language)


def test_values_in_use_and_combinations_above_a_size_are_selected() -> None:
    questions = {name: [made(f"{name}#{index}", "x") for index in range(3)] for name in "abcde"}
    facets = {
        "a": ["kind=x", "area=p"],
        "b": ["kind=x", "area=p", "area=q"],
        "c": ["kind=x", "area=q"],
        "d": ["kind=y", "area=p"],
        "e": ["kind=y", "area=q"],
    }
    names = [each.name for each in select(questions, facets, 2, 6, 100)]
    assert names == ["area=p", "area=q", "kind=x", "kind=y", "area=p & kind=x", "area=q & kind=x"]
    assert [each.name for each in select(questions, facets, 2, 6, 1)][4:] == ["area=p & kind=x"]
    assert [each.name for each in select(questions, facets, 2, 7, 100)][4:] == []
    assert [each.name for each in select(questions, facets, 1, 3, 100)][4:] == [
        "area=p & kind=x",
        "area=q & kind=x",
        "area=p & kind=y",
        "area=q & kind=y",
    ]
    assert select({"a": []}, {"a": ["kind=x"]}, 1, 1, 9) == []


def test_combinations_of_three_are_selected_where_they_are_used_enough() -> None:
    facets = {
        "a": ["kind=x", "area=p", "stage=s", "size=m"],
        "b": ["kind=x", "area=p", "stage=s", "size=m"],
        "c": ["kind=x", "area=p", "stage=t"],
        "d": ["kind=x", "area=q", "stage=s"],
        "e": ["kind=y", "area=p", "stage=s"],
    }
    questions = {name: [made(f"{name}#{index}", "x") for index in range(3)] for name in facets}
    names = [each.name for each in select(questions, facets, 2, 6, 100) if len(each.facets) > 1]
    assert names == [
        "area=p & kind=x",
        "area=p & stage=s",
        "kind=x & stage=s",
        "area=p & kind=x & stage=s",  # all others hold the documents of size=m
    ]
    assert [len(each.facets) for each in select(questions, facets, 2, 6, 3)][-1] == 2
    assert [len(each.facets) for each in select(questions, facets, 3, 6, 100)][-1] == 2


def test_a_combination_that_is_one_of_its_values_is_left_out(lake: Lake) -> None:
    update(lake)
    assert list(found(lake)) == SINGLES  # customers are all designs, manuals are all in offices


def test_terms_can_be_read() -> None:
    text = "顧客マスタを更新するとき、API の userName と SX-200 を何の場合に使う？ What is the ﾃｽﾄ of it? 12345"
    assert readable_terms(text) == ["顧客マスタ", "更新", "API", "userName", "SX-200", "テスト"]
    assert readable_terms("画面オンライン実行制御基盤向標準機能仕様一覧の目的") == ["目的"]  # whole words or none


def test_log_odds_are_those_of_the_formula() -> None:
    inside = [made("a#0", "scanner lamp"), made("b#0", "scanner tray")]
    outside = [made("c#0", "printer tray"), made("d#0", "printer lamp scanner")]
    terms = TermCounts()
    for question in [*inside, *outside, inside[0]]:
        terms.add(question)
    assert terms.counts == {"scanner": 3, "lamp": 2, "tray": 2, "printer": 2}
    # scanner: 2 of 4 inside, 1 of 5 outside; prior 0.3 of 0.9
    first = math.log(2.3 / (4 + 0.9 - 2.3)) - math.log(1.3 / (5 + 0.9 - 1.3))
    assert terms.log_odds(inside)["scanner"] == pytest.approx(first / math.sqrt(1 / 2.3 + 1 / 1.3))
    selection = Selection(("kind=x",), tuple(inside))
    assert key_terms(selection, terms, 5) == ["scanner", "lamp", "tray"]


def test_key_terms_are_of_several_documents_first_and_spelled_as_most_do() -> None:
    questions = [
        made("a#0", "Lamp scanner special special2 zz"),
        made("a#1", "special scanner"),
        made("b#0", "lamp"),
        made("b#1", "lamp"),
        made("c#0", "printer"),
    ]
    terms = TermCounts()
    for question in questions:
        terms.add(question)
    assert key_terms(Selection(("k=v",), tuple(questions[:4])), terms, 3) == ["lamp", "scanner", "special"]
    alone = key_terms(Selection(("k=v",), tuple(questions)), terms, 2)
    assert alone == ["lamp", "scanner"]  # no others: the most frequent


def test_central_questions_cover_what_sets_apart() -> None:
    questions = [
        made("a#0", "scanner lamp meaning"),
        made("a#1", "scanner lamp meaning"),
        made("b#0", "calibration of sensor"),
    ]
    terms = TermCounts()
    for question in questions:
        terms.add(question)
    selection = Selection(("k=v",), tuple(questions))
    assert [each.qa_id for each in central_questions(selection, terms, 1000)] == ["a#0", "b#0"]
    assert len(central_questions(selection, terms, 0)) == 1
    text = compose_summary(selection, 'Kind "manual"', ["scanner"], terms, 500)
    head = 'Kind "manual": 2 documents, 3 questions. Main terms: scanner.'
    assert text.startswith(f"{head}\nTypical questions:\n- ")


def test_without_a_model_summaries_name_terms_and_questions(lake: Lake) -> None:
    report = update(lake)
    assert (report.written, report.rewritten, report.kept, report.stand_ins) == (1, 4, 0, 0)
    design = found(lake)["kind=design"]
    assert (design["document_count"], design["question_count"], design["language"]) == (2, 5, "ja")
    assert design["facets"] == ["kind=design"]
    assert {"目的", "顧客マスタ"} <= set(design["key_terms"])
    assert design["text"].startswith("種類「設計書」：文書 2 件、質問 5 件。")
    assert "顧客" in design["text"]
    assert len(design["text"]) <= OPTIONS.summary_chars + 100
    manual = found(lake)["kind=manual"]
    assert manual["language"] == "en"
    assert manual["text"].startswith('Kind "manual": 2 documents')
    assert "scanner" in manual["key_terms"]
    assert {row["method"] for row in found(lake).values()} == {"extractive"}


def test_nothing_changed_writes_nothing(lake: Lake) -> None:
    update(lake)
    again = update(lake)
    assert (again.written, again.rewritten, again.kept) == (0, 0, 4)


def test_only_what_a_change_touches_is_rewritten(lake: Lake) -> None:
    model = ScriptedModel(lambda request: {"summary": f"summary {len(request.messages[-1].text)}"})
    update(lake, StructuredModel(model))
    assert len(model.asked) == 4
    assert {request.tag.asset for request in model.asked} == {"meta_knowledge"}
    before = found(lake)
    model.asked.clear()
    store_questions(lake, {**QUESTIONS, LONELY: [("How loud is the printer?", "60 dB.")]})
    report = update(lake, StructuredModel(model))
    assert (report.rewritten, report.kept, report.stand_ins) == (2, 2, 0)
    assert len(model.asked) == 2
    changed = {name for name, row in found(lake).items() if row != before[name]}
    assert changed == {"area=offices", "kind=manual"}


def test_questions_that_are_not_searched_and_values_that_are_gone_drop_out(lake: Lake) -> None:
    update(lake)
    store_questions(lake, unindexed=[f"{MANUAL}#q0", f"{MANUAL}#q1", f"{LONELY}#q0"])
    report = update(lake)
    assert list(found(lake)) == ["area=customers", "area=offices", "kind=design"]
    assert (report.removed, report.kept, report.rewritten) == (1, 2, 1)
    assert found(lake)["area=offices"]["document_count"] == 1


def test_the_model_reads_questions_and_answers_behind_a_fence(lake: Lake) -> None:
    model = ScriptedModel(lambda _: {"summary": " 顧客の\n\n 登録 "})
    update(lake, StructuredModel(model))
    design = found(lake)["kind=design"]
    assert (design["text"], design["method"]) == ("顧客の\n登録", "scripted:model")
    texts = [request.messages[-1].text for request in model.asked]
    [asked] = [text for text in texts if "文書群: 種類「設計書」\n" in text]
    assert "<document-" in asked
    assert "Q: 顧客削除のエラーコードは何ですか\nA: E0004 である。" in asked
    assert "scanner" not in asked
    assert "300 文字程度" in next(
        request.prefix for request in model.asked if "種類「設計書」" in request.messages[-1].text
    )


def test_many_questions_are_summarised_in_parts(lake: Lake) -> None:
    many = {
        f"specs/{n}.xlsx": [(f"顧客{n}の項目{m}は何ですか", f"値{m}である。" * 10) for m in range(4)] for n in range(60)
    }
    store_questions(lake, many, {name: ["kind=design"] for name in many})
    model = ScriptedModel(lambda request: {"summary": "部分の要約" if "Q:" in request.messages[-1].text else "全体"})
    options = replace(OPTIONS, read_tokens=2000)
    update(lake, StructuredModel(model), options)
    assert found(lake)["kind=design"]["text"] == "全体"
    parts = [request for request in model.asked if "Q:" in request.messages[-1].text]
    assert len(parts) > 3
    assert len(model.asked) == len(parts) + 1
    known = {request.content_sha256 for request in model.asked}
    model.asked.clear()
    many["specs/7.xlsx"] = [(question, answer.replace("値", "数")) for question, answer in many["specs/7.xlsx"]]
    store_questions(lake, many, {name: ["kind=design"] for name in many})
    update(lake, StructuredModel(model), options)
    new = [request for request in model.asked if request.content_sha256 not in known]
    assert 1 <= len(new) <= 4 < len(parts)  # parts around its old and new place; all summaries of parts read the same


def test_a_renamed_document_changes_no_request(lake: Lake) -> None:
    many = {f"specs/{n}.xlsx": [(f"顧客{n}の項目は何ですか", f"値{n}である。" * 20)] for n in range(20)}
    options = replace(OPTIONS, read_tokens=600)
    asked = []
    for names in ({}, {"specs/3.xlsx": "new/z.xlsx", "specs/17.xlsx": "a.xlsx"}):
        named = {names.get(name, name): pairs for name, pairs in many.items()}
        store_questions(lake, named, {name: ["kind=design"] for name in named})
        model = ScriptedModel(lambda request: {"summary": f"要約{len(request.messages[-1].text)}"})
        assert update(lake, StructuredModel(model), options).rewritten == 1
        asked.append({request.content_sha256 for request in model.asked})
    assert len(asked[0]) > 5
    assert asked[0] == asked[1]


@pytest.mark.parametrize("written_share", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("read_tokens", "context_tokens", "summary_chars"),
    [(6000, 200_000, 600), (800, 200_000, 600), (6000, 8192, 4000), (6000, 4096, 600), (6000, 2048, 600)],
)
def test_summaries_of_all_parts_reach_the_last_call(
    read_tokens: int, context_tokens: int, summary_chars: int, written_share: float
) -> None:
    questions = [
        made(f"d{n}#q0", f"機能{n}の条件は何ですか", "業種コードを確かめて登録する。" * 8, "ja") for n in range(80)
    ]
    selection = Selection(("kind=design",), tuple(questions))
    dialogue = knowledge_dialogue(selection, "種類「設計書」", summary_chars, read_tokens, context_tokens)
    requests = next(dialogue)
    read = "\n".join(request.messages[-1].text for request in requests)
    assert all(f"機能{n}の" in read for n in range(80))
    rounds = 0
    while True:
        answers = []
        for number, request in enumerate(requests):
            tokens = estimate_tokens(request.prefix + request.messages[-1].text) + request.max_tokens
            assert tokens <= context_tokens
            most = json.loads(request.schema or "")["properties"]["summary"]["maxLength"]
            text = f"【{number}】" + "要約である。" * int(most / 2 * written_share / 6)
            answers.append(Completion(request, Outcome.COMPLETED, text, value={"summary": text[:most]}))
        try:
            requests = dialogue.send(answers)
        except StopIteration as stop:
            assert stop.value.startswith("【0】")
            break
        rounds += 1
        read = "\n".join(request.messages[-1].text for request in requests)
        assert all(f"【{number}】" in read for number in range(len(answers)))
    assert len(answers) == 1
    assert rounds <= 4


def test_parts_are_short_enough_and_lose_nothing() -> None:
    questions = [made(f"{n}#q{m}", f"question {m} of {n}", "answer " * 40) for n in range(20) for m in range(3)]
    questions.append(made("long#q0", "long", "word " * 3000))
    parts = question_parts(questions, 400)
    assert all(estimate_tokens(part) <= 400 for part in parts)
    joined = "\n".join(parts)
    assert all(joined.count(f"Q: {each.question}\n") == 1 for each in questions)
    assert question_parts(list(reversed(questions)), 400) == parts


@pytest.mark.parametrize(("outcome", "asked_again"), [(Outcome.FAILED, True), (Outcome.REFUSED, False)])
def test_a_summary_that_fails_is_composed_and_asked_for_again(lake: Lake, outcome: Outcome, asked_again: bool) -> None:
    broken = True

    def script(request: Request) -> Completion | JsonValue:
        if broken and "種類「設計書」" in request.messages[-1].text:
            return Completion(request, outcome)
        return {"summary": "good"}

    model = ScriptedModel(script)
    assert update(lake, StructuredModel(model)).stand_ins == 1
    assert found(lake)["kind=design"]["method"] == "extractive"
    broken = False
    model.asked.clear()
    update(lake, StructuredModel(model))
    assert len(model.asked) == int(asked_again)
    assert (found(lake)["kind=design"]["text"] == "good") == asked_again


def test_a_model_that_stops_leaves_what_there_was(lake: Lake) -> None:
    update(lake)
    before = found(lake)
    with pytest.raises(ModelError):
        update(lake, StructuredModel(ScriptedModel(lambda _: {"summary": "x"}, calls_left=2)))
    assert found(lake) == before


def test_duplicates_are_left_out_where_asked(lake: Lake) -> None:
    clusters = [
        ("kind", "design", f"{DESIGN}#q0", 0, True),
        ("kind", "design", f"{OTHER}#q0", 0, False),
        ("kind", "design", f"{DESIGN}#q1", 1, True),
    ]
    records = [{**dict(zip(QUESTION_CLUSTERS.schema.names, row, strict=False)), "distance": 0.0} for row in clusters]
    lake.write(QUESTION_CLUSTERS, WHOLE, QUESTION_CLUSTERS.schema.empty_table().from_pylist(records), {WHOLE: "1"})
    update(lake)
    assert found(lake)["kind=design"]["question_count"] == 5
    update(lake, options=replace(OPTIONS, remove_duplicates=True))
    assert found(lake)["kind=design"]["question_count"] == 4
    assert found(lake)["area=customers"]["question_count"] == 5
    assert FACETS[OTHER][0] == "kind=design"
