"""JSON answers: checked, mended once, continued where they were cut off. The model is scripted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel, completed

from rag_assets.contracts.generation import Completion, JsonValue, Message, Outcome, Request, Tag, Usage
from rag_assets.models.structured import StructuredModel, complete_items, merged, parse_json

LIST = json.dumps(
    {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "items": {
                "type": "array",
                "maxItems": 5,
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "score": {"type": "integer"}},
                    "required": ["name"],
                },
            },
        },
        "required": ["items"],
    }
)


def request(schema: str | None = LIST) -> Request:
    return Request("system", (Message("user", "question"),), 100, Tag("table", "step", "a.xlsx", "00"), schema=schema)


def ask(answers: list[Completion | JsonValue]) -> tuple[Completion, list[Request]]:
    waiting = iter(answers)
    model = ScriptedModel(lambda _: next(waiting))
    [completion] = StructuredModel(model).generate([request()])
    return completion, model.asked


def truncated(text: str) -> Completion:
    return Completion(request(), Outcome.TRUNCATED, text, Usage(10, 100), cost_usd=0.02)


def test_an_answer_that_satisfies_its_schema_is_given_as_a_value() -> None:
    completion, asked = ask([{"items": [{"name": "顧客"}]}])
    assert completion.outcome is Outcome.COMPLETED
    assert completion.value == {"items": [{"name": "顧客"}]}
    assert len(asked) == 1


def test_an_answer_in_a_code_fence_is_read() -> None:
    completion, asked = ask(['```json\n{"items": []}\n```'])
    assert completion.value == {"items": []}
    assert len(asked) == 1


@pytest.mark.parametrize("broken", ['{"items": 3}', "no JSON at all", '{"items": [{}]}', "", '{"items": NaN}'])
def test_an_answer_that_breaks_its_schema_is_asked_for_once_more_with_the_error(broken: str) -> None:
    completion, asked = ask([broken, {"items": []}])
    assert completion.outcome is Outcome.COMPLETED
    assert completion.value == {"items": []}
    assert [turn.role for turn in asked[1].messages] == ["user", "assistant", "user"]
    assert "JSON" in asked[1].messages[-1].text
    assert asked[1].schema == LIST
    assert completion.cost_usd == pytest.approx(0.02)


def test_an_answer_that_stays_broken_is_invalid_and_says_where() -> None:
    completion, asked = ask([{"items": [{"name": 1}]}, {"items": [{"name": 2}]}])
    assert completion.outcome is Outcome.INVALID
    assert completion.value is None
    assert completion.error == 'at $.items[0].name: expected type "string"'
    assert len(asked) == 2


def test_what_is_wrong_never_quotes_the_answer() -> None:
    secret = "社外秘の本文" * 20
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}})
    with pytest.raises(ValueError, match="maxLength 5") as caught:
        merged(None, {"a": secret}, schema)
    assert "社外秘" not in str(caught.value)


def test_a_list_that_was_cut_off_is_continued_and_nothing_is_doubled() -> None:
    completion, asked = ask(
        [
            truncated('{"title": "t", "items": [{"name": "a", "score": 1}, {"name": "b", "score": 2'),
            truncated('{"items": [{"name": "a", "score": 1}, {"name": "b", "score": 2}, {"name": "c"}, {"na'),
            {"items": [{"name": "d"}]},
        ]
    )
    assert completion.outcome is Outcome.COMPLETED
    assert completion.value == {
        "title": "t",
        "items": [{"name": "a", "score": 1}, {"name": "b", "score": 2}, {"name": "c"}, {"name": "d"}],
    }
    assert "1 in 'items'" in asked[1].messages[-1].text
    assert completion.usage.output_tokens > 200


def test_a_list_that_never_ends_keeps_what_it_gave() -> None:
    rounds = [truncated(json.dumps({"items": [{"name": f"{n}"}]})[:-2] + ', {"name') for n in range(20)]
    completion, asked = ask([*rounds])
    assert completion.outcome is Outcome.TRUNCATED
    assert len(asked) == 9
    assert completion.value == {"items": [{"name": f"{n}"} for n in range(5)]}


def test_an_answer_cut_off_without_an_item_is_truncated() -> None:
    completion, asked = ask([truncated('{"title": "a long tit')])
    assert completion.outcome is Outcome.TRUNCATED
    assert completion.value is None
    assert len(asked) == 1


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.EMPTY, Outcome.FAILED])
def test_other_ends_are_passed_on(outcome: Outcome) -> None:
    completion, asked = ask([Completion(request(), outcome, error="why")])
    assert (completion.outcome, completion.error, completion.value) == (outcome, "why", None)
    assert len(asked) == 1


def test_free_text_is_passed_on() -> None:
    model = ScriptedModel(lambda _: "text")
    [completion] = StructuredModel(model).generate([request(None)])
    assert (completion.text, completion.value) == ("text", None)


def test_requests_of_one_content_are_each_answered() -> None:
    model = ScriptedModel(lambda each: completed(each, {"items": []}))
    completions = list(StructuredModel(model).generate([request(), request()]))
    assert [each.value for each in completions] == [{"items": []}] * 2


ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.text(max_size=8)}, optional={"score": st.integers(-50, 50)}), max_size=5
)


@given(items=ITEMS, title=st.text(max_size=8), share=st.floats(0, 1))
def test_a_cut_anywhere_never_invents_an_item(items: list[dict[str, JsonValue]], title: str, share: float) -> None:
    text = json.dumps({"title": title, "items": items}, ensure_ascii=False)
    found = complete_items(text[: int(len(text) * share)], LIST)
    if found is not None:
        kept = found["items"]
        assert isinstance(kept, list)
        assert kept == items[: len(kept)]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": Infinity}', "{'a': 1}"])
def test_what_is_no_json_is_said_so(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        parse_json(text)
