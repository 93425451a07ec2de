"""What the parsers of running text share: speed on long paragraphs, limits on spans."""

import time

import pytest

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.flow import fill_grid, join_lines


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["exam-", "ple of", "text"], "example of text"),
        (["A-", "B"], "A- B"),
        (["第1", "章"], "第1章"),
        (["漢-", "a"], "漢- a"),
        (["so\u00ad", "ft"], "soft"),
        (["a", "", " b "], "a b"),
        (["x", "-", "y"], "x - y"),
    ],
)
def test_lines_become_one_paragraph(lines: list[str], joined: str) -> None:
    assert join_lines(lines) == joined


def test_a_paragraph_of_many_lines_takes_no_longer_than_its_length() -> None:
    began = time.monotonic()
    assert len(join_lines(["some wrapped words"] * 100_000)) == 1_899_999
    assert time.monotonic() - began < 3


def test_spans_cannot_fill_the_memory() -> None:
    with pytest.raises(ParseError) as raised:
        fill_grid([[("x", 1000, 1000), ("b", 1, 1)]] * 2000)
    assert raised.value.cause is FailureCause.TOO_LARGE
    assert fill_grid([[("a", 2, 1), ("b", 1, 2)], [("c", 1, 1), ("d", 1, 1)]]) == [("a", "a", "b"), ("c", "d", "b")]
