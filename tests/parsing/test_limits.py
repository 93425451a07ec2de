from dataclasses import fields, replace
from pathlib import Path

import pytest
from golden import LIMITS
from office_building import W, zipped

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.content import ParsedDocument
from rag_assets.parsing import parse
from rag_assets.parsing.limits import DEEPEST_NESTING, ParsingLimits, current_limits, limited
from rag_assets.parsing.parse import parse_bytes
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import ParsingSettings, Settings


def docx(pages: int) -> bytes:
    """A Word document of pages parted by manual breaks."""
    breaks = '<w:p><w:r><w:t>text</w:t><w:br w:type="page"/></w:r></w:p>' * (pages - 1)
    body = f"<w:document {W}><w:body>{breaks}<w:p><w:r><w:t>end</w:t></w:r></w:p></w:body></w:document>"
    return zipped({"[Content_Types].xml": "<Types/>", "word/document.xml": body})


def test_every_limit_comes_from_its_setting(tmp_path: Path) -> None:
    chosen = ParsingSettings(
        nesting_depth=11, ocr_seconds_per_page=12.5, ocr_seconds=13.5, unstructured_formats=("eml",)
    )
    limits = Home(Settings(home=tmp_path, parsing=chosen)).options.parsing
    for field in fields(ParsingLimits):
        assert getattr(limits, field.name) == getattr(chosen, field.name)


def test_the_deepest_nesting_that_may_be_set_is_what_readers_bear() -> None:
    bounds = ParsingSettings.model_json_schema()["properties"]["nesting_depth"]
    assert bounds["maximum"] == DEEPEST_NESTING


@pytest.mark.parametrize(
    ("pages", "seconds", "setting"),
    [
        (0, 30.0, "parsing.ocr_seconds_per_page"),
        (3, 45.0, "parsing.ocr_seconds_per_page"),
        (20, 130.0, "parsing.ocr_seconds_per_page"),
        (21, 130.0, "parsing.ocr_seconds"),
        (10**30, 130.0, "parsing.ocr_seconds"),
        (-5, 30.0, "parsing.ocr_seconds_per_page"),
    ],
)
def test_time_of_a_file(pages: int, seconds: float, setting: str) -> None:
    limits = replace(LIMITS, ocr_seconds_per_page=5.0, ocr_seconds=100.0)
    assert limits.seconds(pages) == seconds
    assert limits.time_setting(pages) == setting


def test_limits_hold_inside_a_file_and_not_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(LIMITS, nesting_depth=17)
    seen = []

    def dispatch(*arguments: object) -> ParsedDocument:
        seen.append(current_limits())
        raise ValueError(str(arguments[1]))

    monkeypatch.setattr(parse, "_dispatch", dispatch)
    outside = current_limits()
    parse_bytes(b"text", "a.txt", limits)
    assert seen == [limits]
    assert current_limits() is outside
    with limited(limits):
        assert current_limits() is limits


def test_pages_of_a_word_document_are_limited() -> None:
    limits = replace(LIMITS, pages=3)
    assert len(parse_bytes(docx(3), "a.docx", limits).pages) == 3
    (failure,) = parse_bytes(docx(4), "a.docx", limits).failures
    assert (failure.cause, failure.message) == (FailureCause.TOO_LARGE, "4 pages, limit 3")
