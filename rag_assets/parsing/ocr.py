"""Text of pictures of pages, by PP-OCRv6 in onnxruntime (extra `ocr`; its weights come inside the package rapidocr).

Chosen over Tesseract 5 by measurement on pages drawn from text PDFs: fewer wrong characters, vertical writing read as
well, and no program to install beside Python packages; in exchange a page takes two to three times as long.
"""

import importlib.util
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from statistics import median
from typing import Any

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.flow import is_cjk
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.pdf.runs import Run

_DOTS_PER_INCH = 200
_LARGEST_PIXELS = 6_000_000
_LONGEST_SIDE = 1280
_LEAST_CONFIDENCE = 0.5
_LEAST_SECONDS = 1.0
_OCR_SHARE = 0.5
_TYPE_SHARE = 0.8
_WIDE = 2
_SAME_SIZE = 0.35
_OPTIONS = {
    "Global.log_level": "error",
    "Global.use_cls": False,  # pages are drawn upright
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    "EngineConfig.onnxruntime.enable_cpu_mem_arena": False,
    # At the full size of a page the search for lines alone takes over 1 GiB of memory.
    "Det.limit_type": "max",
    "Det.limit_side_len": _LONGEST_SIDE,
    "Rec.rec_batch_num": 2,
}


@dataclass(frozen=True, slots=True)
class Recognized:
    """Text read from a picture."""

    runs: list[Run]  # its lines, or parts of lines, with their places on the page
    confidence: float  # mean confidence of the characters, from 0 to 1


class OcrTime:
    """Time for the pages of a file, counted from here on.

    Args:
        limits: Limits for the file.
        announce: Told the number of pages that are to be read, before the first of them.
    """

    def __init__(self, limits: ParsingLimits, announce: Callable[[int], None] | None = None) -> None:
        self._limits = limits
        self._announce = announce
        self._begun = time.monotonic()
        self._pages = 0
        self._longest = _LEAST_SECONDS

    def add_pages(self, count: int) -> None:
        """Have the time of the file extended by what its limits grant for so many pages."""
        self._pages = count
        if self._announce and count and is_installed():
            self._announce(count)

    def recognize(self, page: Any, size: tuple[float, float]) -> Recognized:
        """Read the text of a page, where the time left suffices for the slowest page so far.

        Raises:
            ParseError: As of `recognize`; TIMEOUT where it does not suffice.
        """
        began_at = time.monotonic()
        # What remains of the time without OCR is for all that comes before and after it.
        seconds = _OCR_SHARE * self._limits.timeout_seconds + self._limits.added_seconds(self._pages)
        if began_at + self._longest > self._begun + seconds:
            setting = self._limits.time_setting(self._pages)
            raise ParseError(FailureCause.TIMEOUT, f"the time for OCR is used up, raise {setting}")
        recognition = recognize(page, size)
        self._longest = max(self._longest, time.monotonic() - began_at)
        return recognition


def recognize(page: Any, size: tuple[float, float]) -> Recognized:
    """Read the text of a page as it looks.

    Args:
        page: The page of pypdfium2.
        size: Its width and height in points.

    Raises:
        ParseError: NO_TEXT where OCR is not installed; CRASHED where it fails; in words that go on after the page is
            named.
    """
    if not is_installed():
        raise ParseError(FailureCause.NO_TEXT, "install rag-assets[ocr] to have it read")
    import numpy as np

    scale = min(_DOTS_PER_INCH / 72, (_LARGEST_PIXELS / max(size[0] * size[1], 1.0)) ** 0.5)
    bitmap = page.render(scale=scale)
    try:
        picture = np.ascontiguousarray(bitmap.to_numpy()[:, :, :3])
    finally:
        bitmap.close()
    try:
        result = _engine()(picture)
    except Exception as error:
        # Its engine raises an exception of its own for each step, and those of OpenCV and onnxruntime.
        raise ParseError(FailureCause.CRASHED, f"OCR failed with {type(error).__name__}") from error
    if result.boxes is None or not result.txts:
        return Recognized([], 0.0)
    return _read_lines(zip(result.boxes.tolist(), result.txts, result.scores, strict=True), scale)


@cache
def is_installed() -> bool:
    """Whether the extra `ocr` is installed."""
    return importlib.util.find_spec("rapidocr") is not None


@cache
def _engine() -> Any:
    from rapidocr import RapidOCR

    return RapidOCR(params=_OPTIONS)


def _read_lines(lines: Iterable[tuple[Any, str, float]], scale: float) -> Recognized:
    runs, weighted, characters = [], 0.0, 0
    for corners, text, score in lines:
        if not text.strip() or score < _LEAST_CONFIDENCE:
            continue
        weighted += score * len(text)
        characters += len(text)
        xs, ys = [x / scale for x, _ in corners], [y / scale for _, y in corners]
        runs.append(_run(text.strip(), min(xs), min(ys), max(xs), max(ys)))
    usual = median(run.size for run in runs) if runs else 0.0
    for run in runs:
        # Heights of boxes vary with the letters in them; only a clear difference is another size of type.
        if abs(run.size - usual) < _SAME_SIZE * usual:
            run.size = usual
    return Recognized(runs, weighted / characters if characters else 0.0)


def _run(text: str, left: float, top: float, right: float, bottom: float) -> Run:
    """A run whose characters share its width by their usual widths."""
    is_vertical = bottom - top > 1.5 * (right - left) and len(text) > 1 and is_cjk(text[0])
    size = _TYPE_SHARE * (right - left if is_vertical else bottom - top)
    widths = [_WIDE if is_cjk(character) else 1 for character in text]
    step = 0.0 if is_vertical else (right - left) / sum(widths)
    starts = list(accumulate((step * width for width in widths[:-1]), initial=left))
    return Run(list(text), starts, left, top, right, bottom, size, False, is_vertical)
