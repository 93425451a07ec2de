"""A plan stands on made-up answers: they satisfy their schema and are no longer than a model may write, or usually
writes.
"""

import json
from typing import Any

import jsonschema
import pytest

from rag_assets.contracts.generation import JsonValue, Message, Request, Tag
from rag_assets.models.planning import PlanningModel, made_up
from rag_assets.models.token_estimate import estimate_tokens

TEXT: dict[str, JsonValue] = {"type": "string", "minLength": 1, "maxLength": 1000}
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "title": TEXT,
        "findings": {
            "type": "array",
            "minItems": 1,
            "maxItems": 60,
            "items": {"type": "object", "properties": {"name": TEXT, "why": TEXT}, "required": ["name", "why"]},
        },
    },
    "required": ["title", "findings"],
}
REQUEST = Request("", (Message("user", "What?"),), 3000, Tag("reports", "report"), schema=json.dumps(SCHEMA))


def length(value: JsonValue) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize("most_tokens", [100, 700, 3000, 20_000])
def test_a_made_up_answer_satisfies_its_schema_and_fills_most_of_its_tokens(most_tokens: int) -> None:
    value: Any = made_up(SCHEMA, most_tokens)
    jsonschema.validate(value, SCHEMA)
    assert 0.5 * most_tokens < length(value) <= most_tokens


def test_what_a_schema_demands_is_made_up_in_any_case() -> None:
    assert made_up(SCHEMA, 1) == {"title": "語", "findings": [{"name": "語", "why": "語"}]}


@pytest.mark.parametrize(
    ("earlier", "shortest", "longest"),
    [({}, 1000, 1500), ({"report": 400.0}, 300, 400), ({"report": 9000.0}, 2000, 3000), ({"other": 9.0}, 1000, 1500)],
)
def test_an_answer_is_as_long_as_earlier_ones_or_half_of_what_it_may_be(
    earlier: dict[str, float], shortest: int, longest: int
) -> None:
    model = PlanningModel("m", None, lambda _: None, earlier)
    (answer,) = model.generate([REQUEST])
    assert shortest < estimate_tokens(answer.text) <= longest
    assert model.steps["reports", "report"].output_tokens == earlier.get("report", estimate_tokens(answer.text))


def test_what_a_step_foresees_is_answered_and_otherwise_what_fits_the_schema() -> None:
    limits: list[int] = []

    def foresee(request: Request, most_tokens: int) -> JsonValue:
        limits.append(most_tokens)
        return {"title": "As asked", "findings": []} if "What?" in request.messages[-1].text else None

    model = PlanningModel("m", None, lambda _: None, {}, {"report": foresee})
    other = Request("", (Message("user", "Why?"),), 3000, REQUEST.tag, schema=REQUEST.schema)
    first, second = model.generate([REQUEST, other])
    assert first.value == {"title": "As asked", "findings": []}
    assert second.value == made_up(SCHEMA, 1500)
    assert limits == [1500, 1500]
