"""PDF: pages of headings, paragraphs, list items and tables with their places."""

import ctypes
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pypdfium2
from pypdfium2 import raw

from rag_assets.contracts.causes import FailureCause, PageKind, PageRole
from rag_assets.contracts.content import Failure, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import sensible_title
from rag_assets.parsing.geometry import contains
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.ocr import OcrTime
from rag_assets.parsing.pdf.balloons import insert_lines, take_balloons
from rag_assets.parsing.pdf.bands import find_bands
from rag_assets.parsing.pdf.columns import take_aligned
from rag_assets.parsing.pdf.fonts import provide_stand_in
from rag_assets.parsing.pdf.layout import Layout
from rag_assets.parsing.pdf.lines import Line, add_bullets, order_lines
from rag_assets.parsing.pdf.rules import Grid, PageDrawing, find_grids, read_drawing
from rag_assets.parsing.pdf.running import PageLines
from rag_assets.parsing.pdf.runs import OpenPage, Run, add_link_targets, read_outline, read_runs
from rag_assets.parsing.pdf.tables import take_tables
from rag_assets.parsing.roles import is_contents

_ERROR_PASSWORD = 4
_ERROR_SECURITY = 5
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd]")
_UNREADABLE_SHARE = 0.5
_UNMAPPED_SHARE = 0.4
_FEW_CHARACTERS = 50
_OBJECTS = 1000
_PICTURE_SHARE = 0.6
_NOTHING = PageLines([], (0.0, 0.0))


class _PdfReader:
    """Reads the pages of an open document of pypdfium2."""

    def __init__(self, document: Any, ocr_time: OcrTime) -> None:
        self._document = document
        self._ocr_time = ocr_time
        self._failures: list[Failure] = []
        self.confidences: dict[int, float] = {}

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What is wrong with pages, in their order."""
        return tuple(sorted(self._failures, key=lambda failure: failure.page_number or 0))

    def pages(self) -> list[PageLines]:
        """Lines of all pages; those that are pictures of text come last, so that their number is known before."""
        numbers = range(1, len(self._document) + 1)
        pages = {number: self._read(number, self._text_lines) for number in numbers}
        self._ocr_time.add_pages(sum(page is None for page in pages.values()))
        return [pages[number] or self._read(number, self._picture_lines) or _NOTHING for number in numbers]

    def note_cut(self, number: int, message: str) -> None:
        """Note what is left out of a page because a limit is reached."""
        self._fail(number, FailureCause.TOO_LARGE, f"page {number}: {message}")

    def _fail(self, number: int, cause: FailureCause, message: str) -> None:
        self._failures.append(Failure(cause, message, number))

    def _read(self, number: int, read: Callable[[OpenPage], list[Line] | None]) -> PageLines | None:
        """What a function reads from a page; what is wrong with the page becomes a failure."""
        try:
            page = self._document[number - 1]
            size = (float(page.get_width()), float(page.get_height()))
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError as error:
            self._fail(number, FailureCause.MALFORMED, f"page {number} cannot be read: {error}")
            return _NOTHING
        try:
            note_cut = partial(self.note_cut, number)
            lines = read(OpenPage(self._document, number, page, text_page.raw, size, note_cut))
            return None if lines is None else PageLines(lines, size)
        finally:
            text_page.close()
            page.close()

    def _text_lines(self, page: OpenPage) -> list[Line] | None:
        """Lines of the text layer; None where it is not usable."""
        if raw.FPDFPage_CountObjects(page.page) == 0:
            return []
        cuts: list[str] = []
        runs = read_runs(page, cuts.append)
        if not _is_usable(page, runs):
            return None
        for cut in cuts:
            page.note_cut(cut)
        return _arrange(page, runs)

    def _picture_lines(self, page: OpenPage) -> list[Line]:
        """Lines read from the picture of a page; those of its text layer, with a failure, where that cannot be done."""
        problem = f"page {page.number} has no usable text layer"
        try:
            recognition = self._ocr_time.recognize(page.page, page.size)
        except ParseError as error:
            self._fail(page.number, error.cause, f"{problem}: {error}")
        else:
            if recognition.runs:
                self.confidences[page.number] = recognition.confidence
                return order_lines(recognition.runs)
            self._fail(page.number, FailureCause.NO_TEXT, f"{problem}: OCR finds no text")
        runs = read_runs(page, page.note_cut)
        return _arrange(page, runs) if runs else []


def _arrange(page: OpenPage, runs: list[Run]) -> list[Line]:
    """Lines and tables from the runs of a page and what is drawn on it."""
    add_link_targets(page, runs)
    drawing = read_drawing(page)
    add_bullets(runs, drawing.dots)
    grids = find_grids(page, drawing)
    text, balloons = take_balloons(page, runs, drawing)
    lines = _arrange_part(text, grids, drawing)
    for body, inside in balloons:
        own_grids = [grid for grid in grids if contains(body, grid.box)]
        lines = insert_lines(lines, body, _arrange_part(inside, own_grids, drawing))
    return lines


def _arrange_part(runs: list[Run], grids: list[Grid], drawing: PageDrawing) -> list[Line]:
    grids = [*grids, *find_bands(drawing.across, grids, runs)]
    tables, outside = take_tables(runs, grids, drawing.filled)
    return take_aligned(order_lines(outside, tables, drawing.frames), drawing.across)


def parse_pdf(
    data: bytes, maximum_pages: int, passwords: Sequence[str] = (), ocr_time: OcrTime | None = None
) -> ParsedDocument:
    """Parse a PDF.

    Args:
        data: The bytes of the file.
        maximum_pages: Pages of the file.
        passwords: Tried in order where the file asks for one.
        ocr_time: Time for pages without a usable text layer; None for as long as it takes.

    Returns:
        A page for each page. A page without text, or that cannot be read, has no blocks and is a failure; so is what
        is left out of a page that is over a limit.

    Raises:
        ParseError: ENCRYPTED where a password is needed; MALFORMED where it cannot be opened; TOO_LARGE where it has
            too many pages.
    """
    provide_stand_in()
    document = _open(data, passwords)
    try:
        count = len(document)
        if count > maximum_pages:
            raise ParseError(FailureCause.TOO_LARGE, f"{count} pages, limit {maximum_pages}")
        if count == 0:
            raise ParseError(FailureCause.MALFORMED, "the PDF has no pages")
        reader = _PdfReader(document, ocr_time or OcrTime(current_limits()))
        pages = reader.pages()
        outline = read_outline(document, reader.note_cut)
        title = sensible_title(document.get_metadata_value("Title"))
    finally:
        document.close()
    numbered_pages: list[Page] = []
    for number, (page, blocks) in enumerate(zip(pages, Layout(pages, outline).blocks(), strict=True), start=1):
        size, confidence = page.size if page.size[0] else None, reader.confidences.get(number)
        role = PageRole.CONTENTS if is_contents(blocks, count) else None
        numbered_pages.append(
            Page(number, PageKind.PAGE, tuple(blocks), role=role, size=size, ocr_confidence=confidence)
        )
    return ParsedDocument(DocumentFormat.PDF.value, title, tuple(numbered_pages), reader.failures)


def _open(data: bytes, passwords: Sequence[str]) -> Any:
    """Open a document, with the first password that fits where it needs one.

    Raises:
        ParseError: None fits, or it is damaged; the message holds no password.
    """
    for password in (None, *passwords):
        try:
            return pypdfium2.PdfDocument(data, password=password)
        except (pypdfium2.PdfiumError, ValueError) as error:
            code = getattr(error, "err_code", None)
            if code is not None and _has_no_pages(data, password):
                raise ParseError(FailureCause.MALFORMED, "the PDF has no pages") from None
            if code not in (_ERROR_PASSWORD, _ERROR_SECURITY):
                problem = error if code is None else "it is damaged"
                raise ParseError(FailureCause.MALFORMED, f"the PDF cannot be opened: {problem}") from None
    reason = "none of the passwords given fits" if passwords else "a password is needed (RAG_PASSWORDS)"
    raise ParseError(FailureCause.ENCRYPTED, f"the PDF is encrypted: {reason}")


def _has_no_pages(data: bytes, password: str | None) -> bool:
    """Whether a document can be opened, but holds nothing: the error that PDFium gives then is of another document."""
    document = raw.FPDF_LoadMemDocument64(data, len(data), None if password is None else password.encode())
    if document:
        raw.FPDF_CloseDocument(document)
    return bool(document)


def _is_usable(page: OpenPage, runs: Sequence[Run]) -> bool:
    """Whether a text layer is the text of its page.

    It is not where it is empty, holds mostly characters that stand for nothing or that the font does not name, or only
    a stamp on a picture of the page.
    """
    text = "".join(run.text for run in runs)
    if not text or len(_UNREADABLE.findall(text)) >= _UNREADABLE_SHARE * len(text):
        return False
    if len(text) >= _FEW_CHARACTERS:
        return True
    count = raw.FPDFText_CountChars(page.text_page)
    unmapped_count = sum(raw.FPDFText_HasUnicodeMapError(page.text_page, index) == 1 for index in range(count))
    if count and unmapped_count >= _UNMAPPED_SHARE * count:
        return False
    return not _is_picture(page)


def _is_picture(page: OpenPage) -> bool:
    """Whether one picture covers most of a page."""
    width, height = page.size
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(raw.FPDFPage_CountObjects(page.page), _OBJECTS)):
        shape = raw.FPDFPage_GetObject(page.page, index)
        is_image = raw.FPDFPageObj_GetType(shape) == raw.FPDF_PAGEOBJ_IMAGE
        if is_image and raw.FPDFPageObj_GetBounds(shape, left, bottom, right, top):
            area = (right.value - left.value) * (top.value - bottom.value)
            if area >= _PICTURE_SHARE * width * height:
                return True
    return False
