"""What the parsers of running text share: clean characters, speed on long paragraphs, limits on spans."""

import time
import unicodedata

import pytest

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.flow import clean, fill_grid, join_lines, unwrap
from rag_assets.text.scripts import RADICAL_IDEOGRAPHS


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("⽉額の⽤⾼", "月額の用高"),  # Kangxi radicals
        ("⻑期・⺠間・⻄⽇本・⻘⾊", "長期・民間・西日本・青色"),  # of the supplement, which NFKC leaves
        ("か\u3099きト\u3099", "がきド"),
        ("\ufa1b\ufa19", "福神"),  # a compatible ideograph
        ("①㈱ｶﾅＡ１", "①㈱ｶﾅＡ１"),  # as it is written
    ],
)
def test_characters_that_look_the_same_are_the_same(text: str, cleaned: str) -> None:
    assert clean(text) == clean(f"  {text}\x00 ") == unwrap(text) == cleaned


def test_every_radical_that_unicode_does_not_compose_has_an_ideograph() -> None:
    left = [
        character
        for character in map(chr, range(0x2E80, 0x2FE0))
        if unicodedata.name(character, "") and "RADICAL" in unicodedata.name(clean(character))
    ]
    assert left == ["⺀"]  # which has none
    assert not {unicodedata.normalize("NFKC", each) for each in RADICAL_IDEOGRAPHS} - RADICAL_IDEOGRAPHS.keys()


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
