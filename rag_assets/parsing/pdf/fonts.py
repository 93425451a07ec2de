"""Vertical texts that pdfium gives up because the machine has no Japanese font.

What stays out: reading of the text that is there (`pdf_runs`).

A font that is not in the file is replaced by one of the machine. Where none has its characters, they get no extent, and
pdfium leaves out texts without a width: those that run from top to bottom. Horizontal ones stay.
"""

import ctypes
from functools import cache
from typing import Any

from rag_assets.parsing.limits import current_limits

_OBJECTS = 100_000
_NO_WIDTH = 0.01
_CONTENT = "BT /F 10 Tf 50 50 Td <65E5> Tj ET"  # 日
_FONT = "/Type /Font /BaseFont /Ryumin-Light"
_SYSTEM = "<< /Registry (Adobe) /Ordering (Japan1) /Supplement 6 >>"
_METRICS = "/FontBBox [0 -120 1000 880] /ItalicAngle 0 /Ascent 880 /Descent -120 /CapHeight 700 /StemV 80"
_PROBE_OBJECTS = (
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
    f"<< /Length {len(_CONTENT)} >>\nstream\n{_CONTENT}\nendstream",
    f"<< {_FONT} /Subtype /Type0 /Encoding /UniJIS-UTF16-V /DescendantFonts [6 0 R] >>",
    f"<< {_FONT} /Subtype /CIDFontType0 /CIDSystemInfo {_SYSTEM} /DW 1000 /FontDescriptor 7 0 R >>",
    f"<< /Type /FontDescriptor /FontName /Ryumin-Light /Flags 6 {_METRICS} >>",
)


@cache
def has_japanese_font() -> bool:
    """Whether vertical Japanese is read here where its font is not in the file; found by reading a page of it."""
    import pypdfium2
    from pypdfium2 import raw

    document = pypdfium2.PdfDocument(_probe())
    try:
        page = document[0]
        text_page = page.get_textpage()
        try:
            return bool(raw.FPDFText_CountChars(text_page) > 0)
        finally:
            text_page.close()
            page.close()
    finally:
        document.close()


def count_lost_texts(raw: Any, page: Any) -> int:
    """Texts of a page that are not in its text layer for want of a Japanese font; 0 where there is one.

    Args:
        raw: The module `pypdfium2.raw`.
        page: The page.
    """
    if has_japanese_font():
        return 0
    lost = seen = 0
    edges = [ctypes.c_float() for _ in range(4)]
    waiting = [(raw.FPDFPage_GetObject(page, index), 0) for index in range(raw.FPDFPage_CountObjects(page))]
    while waiting and seen < _OBJECTS:
        shape, depth = waiting.pop()
        seen += 1
        kind = raw.FPDFPageObj_GetType(shape)
        if kind == raw.FPDF_PAGEOBJ_FORM and depth < current_limits().nesting_depth:
            count = min(raw.FPDFFormObj_CountObjects(shape), _OBJECTS)
            waiting += [(raw.FPDFFormObj_GetObject(shape, index), depth + 1) for index in range(count)]
        elif kind == raw.FPDF_PAGEOBJ_TEXT and raw.FPDFPageObj_GetBounds(shape, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            is_flat = right - left < _NO_WIDTH and top - bottom > _NO_WIDTH
            lost += is_flat and not raw.FPDFFont_GetIsEmbedded(raw.FPDFTextObj_GetFont(shape))
    return lost


def _probe() -> bytes:
    """A PDF of one vertical character in a font that is not in it."""
    body, offsets = "%PDF-1.7\n", []
    for number, text in enumerate(_PROBE_OBJECTS, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(_PROBE_OBJECTS) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("ascii")
