"""What a plan takes a model to find stands in the window, is left in part to gleaning, and keeps to its length."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from rag_assets.contracts.generation import Completion, Message, Outcome, Request
from rag_assets.enrich.documents import Subject
from rag_assets.graph.entity_types import load_types
from rag_assets.graph.mentions.dialogues import (
    MentionOptions,
    WindowAnswer,
    check_windows,
    simulated_findings,
    window_dialogue,
)
from rag_assets.graph.mentions.pages import Window
from rag_assets.text.tokens import mean_tokens

ENGLISH = """The Order Service of Contoso Ltd stores orders in T_ORDER and reports E0004 to Mr. Sato.
T_STOCK | holds what the Stock Service of Fabrikam Works counts
The Night Report of Accounting Department reads T_ORDER and /api/v1/orders/list.
"""
JAPANESE = """顧客登録画面は顧客テーブルに顧客を登録し、顧客管理機能が API-CUSTOMER-01 を呼び出す。
E0005 | 顧客が重複している
受注管理システムは在庫引当処理と配送依頼処理を行う。
"""
TYPES = load_types(None)


def asked(text: str, language: str) -> tuple[Any, Request]:
    subject = Subject("a.md", "00", language, "Title", ())
    dialogue = window_dialogue(subject, text, TYPES, MentionOptions(600, 100, 1, True), 32_768)
    (request,) = next(dialogue)
    return dialogue, request


def answered(request: Request, value: Any) -> Completion:
    return Completion(request, Outcome.COMPLETED, json.dumps(value, ensure_ascii=False), value=value)


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (JAPANESE, "ja")])
def test_all_that_is_foreseen_is_taken_and_gleaning_finds_the_rest(text: str, language: str) -> None:
    dialogue, request = asked(text, language)
    first: Any = simulated_findings(request, 1500)
    jsonschema.validate(first, json.loads(request.schema or ""))
    (check,) = dialogue.send([answered(request, first)])
    assert simulated_findings(check, 1500) is None
    (gleaning,) = dialogue.send([answered(check, {"missed": True})])
    second: Any = simulated_findings(gleaning, 1500)
    with pytest.raises(StopIteration) as ended:
        dialogue.send([answered(gleaning, second)])
    answer: WindowAnswer = ended.value.value
    findings = check_windows(1, text, [Window(0, 0, 0, len(text))], {0: answer}, TYPES)
    assert not findings.dropped
    assert findings.relationships
    assert findings.claims
    counts = len(first["entities"]), len(second["entities"])
    assert len(findings.mentions) == sum(counts) == 4
    assert counts == (3, 1)


@pytest.mark.parametrize("most_tokens", [30, 200, 600])
def test_of_many_names_some_of_the_whole_window_are_foreseen(most_tokens: int) -> None:
    text = "\n".join(f"CODE_{number:04d} | what it means" for number in range(100))
    value: Any = simulated_findings(asked(text, "en")[1], most_tokens)
    assert mean_tokens(json.dumps(value, ensure_ascii=False)) <= most_tokens
    names = [each["name"] for each in value["entities"]]
    assert names == sorted(set(names))
    if most_tokens == 600:
        assert names[0] < "CODE_0010"
        assert names[-1] > "CODE_0070"


def test_a_window_without_names_has_none() -> None:
    assert simulated_findings(asked("nothing is named here.", "en")[1], 1500) == {
        "entities": [],
        "relationships": [],
        "claims": [],
    }


@pytest.mark.parametrize(
    "broken",
    ["", "no JSON", '{"entities": [{"name": "T_ORD', "[]", '{"entities": null}', '{"entities": [{"type": 1}]}'],
)
def test_an_answer_that_breaks_its_schema_has_said_nothing(broken: str) -> None:
    _, request = asked(ENGLISH, "en")
    turns = (*request.messages, Message("assistant", broken), Message("user", "Write it again."))
    found: Any = simulated_findings(replace(request, messages=turns), 1500)
    jsonschema.validate(found, json.loads(request.schema or ""))
    answer: Any = simulated_findings(request, 1500)
    names = [each["name"] for each in found["entities"]]
    assert names
    assert names == [each["name"] for each in answer["entities"]][: len(names)]
