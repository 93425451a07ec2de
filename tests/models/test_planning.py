"""A plan stands on made-up answers: they satisfy their schema and are no longer than a model may write, or usually
writes.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from conftest import PROJECT

from rag_assets.contracts.generation import JsonValue, Message, Request, Tag
from rag_assets.models.planning import PlanningModel, made_up
from rag_assets.text.tokens import estimate_tokens, mean_tokens

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


def length(value: JsonValue) -> float:
    return mean_tokens(json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize("most_tokens", [100, 700, 3000, 20_000])
def test_a_made_up_answer_satisfies_its_schema_and_fills_most_of_its_tokens(most_tokens: int) -> None:
    value: Any = made_up(SCHEMA, most_tokens)
    jsonschema.validate(value, SCHEMA)
    assert 0.5 * most_tokens < length(value) <= most_tokens


def test_what_a_schema_demands_is_made_up_in_any_case() -> None:
    assert made_up(SCHEMA, 1) == {"title": "語", "findings": [{"name": "語", "why": "語"}]}


@pytest.mark.parametrize(
    ("earlier", "shortest", "longest"),
    [({}, 1000, 1500), ({"report": 400.0}, 250, 400), ({"report": 9000.0}, 2000, 3000), ({"other": 9.0}, 1000, 1500)],
)
def test_an_answer_is_as_long_as_earlier_ones_or_half_of_what_it_may_be(
    earlier: dict[str, float], shortest: int, longest: int
) -> None:
    model = PlanningModel("m", None, lambda _: None, earlier)
    (answer,) = model.generate([REQUEST])
    assert shortest < mean_tokens(answer.text) <= longest
    assert model.steps["reports", "report"].output_tokens == earlier.get("report", mean_tokens(answer.text))


def test_what_a_step_foresees_is_answered_and_otherwise_what_fits_the_schema() -> None:
    limits: list[int] = []

    def simulate(request: Request, most_tokens: int) -> JsonValue:
        limits.append(most_tokens)
        return {"title": "As asked", "findings": []} if "What?" in request.messages[-1].text else None

    model = PlanningModel("m", None, lambda _: None, {}, {"report": simulate})
    other = Request("", (Message("user", "Why?"),), 3000, REQUEST.tag, schema=REQUEST.schema)
    first, second = model.generate([REQUEST, other])
    assert first.value == {"title": "As asked", "findings": []}
    assert second.value == made_up(SCHEMA, 1500)
    assert limits == [1500, 1500]


class _Counting:
    """A model that counts twice the mean."""

    context_tokens = output_tokens = 100_000

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        self.asked += [request.messages[0].text for request in requests]
        return [2 * round(mean_tokens(f"\n{request.messages[0].text}")) for request in requests]


def test_a_sample_spread_over_all_requests_scales_what_is_read_and_made_up() -> None:
    counting: Any = _Counting()
    model = PlanningModel("m", counting, lambda _: None, {"grade": 50.0})
    requests = [
        replace(REQUEST, messages=(Message("user", f"question {number} " * number),), tag=Tag("qa", step))
        for step in ("ask", "grade")
        for number in range(1, 101)
    ]
    list(model.generate(requests))
    before = {step: (plan.input_tokens, plan.output_tokens) for (_, step), plan in model.steps.items()}
    model.calibrate()
    for (_, step), plan in model.steps.items():
        assert plan.input_tokens == pytest.approx(2 * before[step][0], rel=0.02)
        assert plan.output_tokens == pytest.approx(before[step][1] * (2 if step == "ask" else 1), rel=0.02)
    sampled = [int(text.split()[1]) for text in counting.asked]
    assert len(sampled) <= 2 * 16
    assert max(sampled) > 90
    assert all(plan.documents == 0 for plan in model.steps.values())


def test_the_mean_is_near_what_tokenizers_count_and_the_bound_above_it() -> None:
    bpe_openai = pytest.importorskip("bpe_openai", reason="the extra openai-tokenizer is not installed")
    prompts = [path.read_text("utf-8") for path in sorted((PROJECT / "rag_assets" / "prompts").glob("*.md"))]
    manual = (PROJECT / "README.ja.md").read_text("utf-8"), (PROJECT / "docs" / "operations.md").read_text("utf-8")
    for texts in (prompts, *([text] for text in manual)):
        for name in ("o200k_base", "voyage3_base"):
            counted = sum(len(bpe_openai.get_encoding(name).encode_ordinary(text)) for text in texts)
            assert sum(map(mean_tokens, texts)) == pytest.approx(counted, rel=0.15)
            assert sum(map(estimate_tokens, texts)) > counted
