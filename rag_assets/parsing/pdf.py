"""PDF: pages of headings, paragraphs, list items and tables with their places.

What stays out: reading a page (`pdf_runs`, `pdf_rules`, `pdf_lines`), tables (`pdf_grid`, `pdf_tables`, `pdf_columns`),
what the lines are (`pdf_layout`), bookmarks and links (`pdf_marks`), pictures of text (`ocr`).
"""

import ctypes
import re
import time
from collections.abc import Sequence
from typing import Any

from rag_assets.contracts.causes import FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Failure, Page, ParsedDocument
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import sensible_title
from rag_assets.parsing.ocr import OcrError, recognize
from rag_assets.parsing.pdf_columns import take_aligned
from rag_assets.parsing.pdf_grid import find_grids
from rag_assets.parsing.pdf_layout import Layout, PageLines
from rag_assets.parsing.pdf_lines import Line, order_lines
from rag_assets.parsing.pdf_marks import add_link_targets, read_outline
from rag_assets.parsing.pdf_rules import read_drawing
from rag_assets.parsing.pdf_runs import Run, read_runs
from rag_assets.parsing.pdf_tables import take_tables

_ERROR_PASSWORD = 4
_ERROR_SECURITY = 5
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd]")
_UNREADABLE_SHARE = 0.5
_UNMAPPED_SHARE = 0.4
_FEW_CHARACTERS = 50
_OBJECTS = 1000
_PICTURE_SHARE = 0.6


class _Reader:
    """Reads the pages of an open document.

    Args:
        document: The document of pypdfium2.
        ocr_seconds: Time that may be spent on pictures of text.
    """

    def __init__(self, document: Any, ocr_seconds: float) -> None:
        self._document = document
        self._deadline = time.monotonic() + ocr_seconds
        self.failures: list[Failure] = []
        self.confidences: dict[int, float] = {}

    def read(self, number: int) -> PageLines:
        """Lines of a page; what is wrong with it becomes a failure."""
        import pypdfium2

        try:
            page = self._document[number - 1]
            size = (float(page.get_width()), float(page.get_height()))
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError as error:
            self._fail(number, FailureCause.MALFORMED, f"page {number} cannot be read: {error}")
            return PageLines([], (0.0, 0.0))
        try:
            return PageLines(self._lines(page, text_page.raw, size, number), size)
        finally:
            text_page.close()
            page.close()

    def _lines(self, page: Any, text_page: Any, size: tuple[float, float], number: int) -> list[Line]:
        from pypdfium2 import raw

        if raw.FPDFPage_CountObjects(page) == 0:
            return []
        runs = read_runs(raw, page, text_page, size)
        if not _is_usable(raw, page, text_page, runs, size):
            recognized = self._recognize(page, size, number)
            if recognized is not None:
                return order_lines(recognized)
        add_link_targets(raw, self._document, page, runs)
        drawing = read_drawing(raw, page)
        tables, outside = take_tables(runs, find_grids(drawing, size), drawing.filled)
        return take_aligned(order_lines(outside, tables), drawing.across)

    def _recognize(self, page: Any, size: tuple[float, float], number: int) -> list[Run] | None:
        """Text of a picture of a page; None with a failure where it cannot be had."""
        try:
            found = recognize(page, size, self._deadline - time.monotonic())
        except OcrError as error:
            self._fail(number, error.cause, f"page {number} has no usable text layer: {error}")
            return None
        if not found.runs:
            self._fail(number, FailureCause.NO_TEXT, f"page {number} has no usable text layer: OCR finds no text")
            return None
        self.confidences[number] = found.confidence
        return found.runs

    def _fail(self, number: int, cause: FailureCause, message: str) -> None:
        self.failures.append(Failure(cause, message, number))


def parse_pdf(
    data: bytes, maximum_pages: int, passwords: Sequence[str] = (), ocr_seconds: float = 15.0
) -> ParsedDocument:
    """Parse a PDF.

    Args:
        data: The bytes of the file.
        maximum_pages: Pages of the file.
        passwords: Tried in order where the file asks for one.
        ocr_seconds: Time that may be spent on pages without a usable text layer.

    Returns:
        A page for each page. A page without text, or that cannot be read, has no blocks and is a failure.

    Raises:
        ParseError: ENCRYPTED where a password is needed; MALFORMED where it cannot be opened; TOO_LARGE where it has
            too many pages.
    """
    document = _open(data, passwords)
    try:
        count = len(document)
        if count > maximum_pages:
            raise ParseError(FailureCause.TOO_LARGE, f"{count} pages, limit {maximum_pages}")
        if count == 0:
            raise ParseError(FailureCause.MALFORMED, "the PDF has no pages")
        reader = _Reader(document, ocr_seconds)
        pages = [reader.read(number) for number in range(1, count + 1)]
        outline = read_outline(document)
        title = sensible_title(document.get_metadata_value("Title"))
    finally:
        document.close()
    parsed = [
        Page(
            number,
            PageKind.PAGE,
            tuple(blocks),
            size=page.size if page.size[0] else None,
            ocr_confidence=reader.confidences.get(number),
        )
        for number, (page, blocks) in enumerate(zip(pages, Layout(pages, outline).blocks(), strict=True), start=1)
    ]
    return ParsedDocument(DocumentFormat.PDF.value, title, tuple(parsed), tuple(reader.failures))


def _open(data: bytes, passwords: Sequence[str]) -> Any:
    """Open a document, with the first password that fits where it needs one.

    Raises:
        ParseError: None fits, or it is damaged; the message holds no password.
    """
    import pypdfium2

    for password in (None, *passwords):
        try:
            return pypdfium2.PdfDocument(data, password=password)
        except (pypdfium2.PdfiumError, ValueError) as error:
            if getattr(error, "err_code", None) not in (_ERROR_PASSWORD, _ERROR_SECURITY):
                raise ParseError(FailureCause.MALFORMED, f"the PDF cannot be opened: {error}") from None
    tried = "none of the passwords given fits" if passwords else "a password is needed (RAG_PASSWORDS)"
    raise ParseError(FailureCause.ENCRYPTED, f"the PDF is encrypted: {tried}")


def _is_usable(raw: Any, page: Any, text_page: Any, runs: Sequence[Run], size: tuple[float, float]) -> bool:
    """Whether a text layer is the text of its page.

    It is not where it is empty, holds mostly characters that stand for nothing or that the font does not name, or only
    a stamp on a picture of the page.
    """
    text = "".join(run.text for run in runs)
    if not text or len(_UNREADABLE.findall(text)) >= _UNREADABLE_SHARE * len(text):
        return False
    if len(text) >= _FEW_CHARACTERS:
        return True
    count = raw.FPDFText_CountChars(text_page)
    unmapped = sum(raw.FPDFText_HasUnicodeMapError(text_page, index) == 1 for index in range(count))
    if count and unmapped >= _UNMAPPED_SHARE * count:
        return False
    return not _is_picture(raw, page, size)


def _is_picture(raw: Any, page: Any, size: tuple[float, float]) -> bool:
    """Whether one picture covers most of a page."""
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(raw.FPDFPage_CountObjects(page), _OBJECTS)):
        shape = raw.FPDFPage_GetObject(page, index)
        if raw.FPDFPageObj_GetType(shape) == raw.FPDF_PAGEOBJ_IMAGE and raw.FPDFPageObj_GetBounds(
            shape, left, bottom, right, top
        ):
            area = (right.value - left.value) * (top.value - bottom.value)
            if area >= _PICTURE_SHARE * size[0] * size[1]:
                return True
    return False
