import re
import shutil
import subprocess
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
import pytest
from golden import CORPUS, needs_corpus
from pdf_building import IMAGE, column, make_pdf
from rapidfuzz.distance import Levenshtein

from rag_assets.contracts.causes import FailureCause
from rag_assets.parsing import ocr
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.pdf.reader import parse_pdf
from rag_assets.parsing.pdf.runs import Run
from rag_assets.parsing.pool import ParseJob, parse_files

LIMITS = ParsingLimits(60.0, 1 << 30, 1 << 26, 1 << 28, 2000, 100_000, 100, ocr_seconds_per_page=10.0, ocr_seconds=60.0)
ENGLISH = ["The quick brown fox jumps over the lazy dog", "and the river runs down to the sea again."]


def has_japanese_font() -> bool:
    """Whether the machine can draw Japanese text of a PDF that holds no font for it."""
    listing = shutil.which("fc-list")
    return listing is not None and bool(subprocess.run([listing, ":lang=ja"], capture_output=True, check=False).stdout)


needs_ocr = pytest.mark.skipif(not ocr.is_installed(), reason="the extra `ocr` is not installed")


def scan(data: bytes, number: int = 0) -> bytes:
    """A PDF of one page that is a picture of a page."""
    with pypdfium2.PdfDocument(data) as document:
        page = document[number]
        width, height = page.get_size()
        picture = page.render(scale=200 / 72, grayscale=True).to_numpy()
        page.close()
    grey = np.ascontiguousarray(picture).reshape(picture.shape[0], picture.shape[1])
    samples = grey.tobytes().hex() + ">"
    content = f"q {width} 0 0 {height} 0 0 cm /Im Do Q"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R "
            "/Resources << /XObject << /Im 5 0 R >> >> >>"
        ),
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        (
            f"<< /Type /XObject /Subtype /Image /Width {grey.shape[1]} /Height {grey.shape[0]} /ColorSpace /DeviceGray "
            f"/BitsPerComponent 8 /Filter /ASCIIHexDecode /Length {len(samples)} >>\nstream\n{samples}\nendstream"
        ),
    ]
    body = "%PDF-1.4\n" + "".join(f"{number} 0 obj\n{text}\nendobj\n" for number, text in enumerate(objects, 1))
    return f"{body}trailer << /Size 6 /Root 1 0 R >>\n%%EOF".encode("latin-1")


def plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text))


@needs_ocr
def test_a_picture_of_english_text_is_read() -> None:
    document = parse_pdf(scan(make_pdf([column(72, 100, ENGLISH, 12)])), 10)
    assert document.failures == ()
    (page,) = document.pages
    assert plain("".join(block.text for block in page.blocks)) == plain("".join(ENGLISH))
    assert page.ocr_confidence is not None
    assert 0.9 < page.ocr_confidence <= 1
    left, top, _, _ = page.blocks[0].box or (0, 0, 0, 0)
    assert left == pytest.approx(72, abs=5)
    assert top == pytest.approx(90, abs=6)


@needs_ocr
@needs_corpus
@pytest.mark.skipif(
    not has_japanese_font(), reason="no Japanese font is installed: apt-get install fonts-ipafont-gothic"
)
def test_a_picture_of_japanese_text_is_read() -> None:
    """A page of a book, against its own text layer."""
    path = CORPUS / "japanese_pdf" / "debian__developers-reference.ja.pdf"
    data = path.read_bytes()
    wanted = plain("".join(block.text for block in parse_pdf(data, 1000).pages[54].blocks))
    found = plain("".join(block.text for block in parse_pdf(scan(data, 54), 10).pages[0].blocks))
    assert len(wanted) > 300
    assert Levenshtein.normalized_similarity(wanted, found) > 0.9


@needs_ocr
def test_a_text_layer_is_left_alone() -> None:
    (page,) = parse_pdf(make_pdf([column(72, 100, ENGLISH)]), 10).pages
    assert page.ocr_confidence is None


class Clock:
    """Time that passes only while a page is read: 7 seconds for each."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def recognize(self, page: Any, size: tuple[float, float]) -> ocr.Recognized:
        del page, size
        self.now += 7.0
        return ocr.Recognized([Run(["x"], [72.0], 72.0, 100.0, 80.0, 112.0, 12.0, False)], 1.0)


@pytest.mark.parametrize(
    ("per_page", "most", "read", "setting"),
    [
        (7.0, 1000.0, 10, ""),  # 30 s of the file and 70 s for its ten pages
        (3.0, 1000.0, 6, "parsing.ocr_seconds_per_page"),  # half of 30 s and 30 s
        (0.0, 1000.0, 2, "parsing.ocr_seconds_per_page"),
        (7.0, 10.0, 3, "parsing.ocr_seconds"),
    ],
)
def test_each_page_that_needs_ocr_adds_to_the_time(
    per_page: float, most: float, read: int, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page begins where the time suffices for the slowest page before it."""
    clock, announced = Clock(), list[int]()
    monkeypatch.setattr(ocr, "is_installed", lambda: True)
    monkeypatch.setattr(ocr, "recognize", clock.recognize)
    monkeypatch.setattr(ocr, "time", clock)
    limits = replace(LIMITS, timeout_seconds=30.0, ocr_seconds_per_page=per_page, ocr_seconds=most)
    text = column(72, 100, ENGLISH)
    document = parse_pdf(make_pdf([text, *[IMAGE] * 10, text]), 100, ocr_time=ocr.OcrTime(limits, announced.append))
    assert announced == [10]
    assert [number for number, page in enumerate(document.pages, 1) if page.ocr_confidence] == list(range(2, 2 + read))
    assert [(failure.cause, failure.page_number) for failure in document.failures] == [
        (FailureCause.TIMEOUT, number) for number in range(2 + read, 12)
    ]
    for failure in document.failures:
        number = failure.page_number
        expected = f"page {number} has no usable text layer: the time for OCR is used up, raise {setting}"
        assert failure.message == expected
    assert clock.now - 1000.0 <= limits.seconds(10)


def test_without_ocr_no_time_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    announced: list[int] = []
    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    parse_pdf(make_pdf([IMAGE]), 10, ocr_time=ocr.OcrTime(LIMITS, announced.append))
    assert announced == []


@needs_ocr
def test_a_picture_without_text_is_a_failure() -> None:
    (failure,) = parse_pdf(make_pdf([IMAGE]), 10).failures
    assert (failure.cause, failure.message) == (
        FailureCause.NO_TEXT,
        "page 1 has no usable text layer: OCR finds no text",
    )


@needs_ocr
def test_ocr_keeps_within_the_limits_of_a_parsing_process(tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(scan(make_pdf([column(72, 100, ENGLISH, 12)])))
    limits = replace(LIMITS, timeout_seconds=10.0, ocr_seconds_per_page=60.0)
    ((_, document),) = parse_files([ParseJob("scan.pdf", path)], workers=1, limits=limits)
    assert document.failures == ()
    assert "brown fox" in document.pages[0].blocks[0].text
