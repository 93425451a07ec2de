"""Dialogues: rounds, order of answers, ends in the middle. The model is scripted."""

import pytest
from scripted_model import ScriptedModel

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Message, Request, Tag
from rag_assets.models.dialogue import Dialogue, converse


def request(text: str) -> Request:
    return Request("system", (Message("user", text),), 100, Tag("table", "step"))


def echo(each: Request) -> str:
    return each.messages[-1].text.upper()


def two_rounds(name: str) -> Dialogue[list[str]]:
    first = yield [request(f"{name}1"), request(f"{name}2")]
    second = yield [request(answer.text + "x") for answer in first]
    return [answer.text for answer in second]


@pytest.mark.parametrize("reverse", [False, True])
def test_each_round_gets_its_answers_in_order(*, reverse: bool) -> None:
    model = ScriptedModel(echo, reverse=reverse)
    results = dict(converse(model, [(name, two_rounds(name)) for name in "ab"]))
    assert results == {"a": ["A1X", "A2X"], "b": ["B1X", "B2X"]}
    assert len(model.asked) == 8


def test_dialogues_may_ask_nothing_or_the_same() -> None:
    def silent() -> Dialogue[str]:
        answers = yield []
        return f"{len(answers)} answers"

    def same() -> Dialogue[str]:
        [answer] = yield [request("same")]
        return answer.text

    results = list(converse(ScriptedModel(echo), [("s", silent()), ("1", same()), ("2", same())]))
    assert dict(results) == {"s": "0 answers", "1": "SAME", "2": "SAME"}


def test_what_was_answered_before_the_model_failed_is_given() -> None:
    def one(name: str) -> Dialogue[str]:
        [answer] = yield [request(name)]
        return answer.text

    seen = []
    model = ScriptedModel(echo, calls_left=2)
    with pytest.raises(ModelError, match="no more calls"):
        for key, text in converse(model, [(name, one(name)) for name in "abcd"]):
            seen.append((key, text))
    assert seen == [("a", "A"), ("b", "B")]
    assert len(model.asked) == 2
