"""PDFs written by hand, so that every place on their pages is known."""

import re

# A text on a page: left and top in points, size, text. Latin text is set in Helvetica, Japanese in Ryumin-Light.
Piece = tuple[float, float, float, str]
JAPANESE_FONT = (
    "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Ryumin-Light "
    "/CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 6 >>"
)
JAPANESE_DESCRIPTOR = (
    "<< /Type /FontDescriptor /FontName /Ryumin-Light /Flags 6 /FontBBox [0 -120 1000 880] /ItalicAngle 0"
)
IMAGE = "q 100 0 0 100 50 50 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x7f EI Q"


def make_pdf(
    pages: list[list[Piece] | str],
    *,
    extra: str = "",
    info: str = "",
    vertical: bool = False,
    catalog: str = "",
    more: tuple[str, ...] = (),
    resources: str = "",
    fonts: str = "",
) -> bytes:
    """A PDF of A4 pages, each given by its texts or by its content stream.

    Args:
        pages: The pages; page n is object 9 + len(more) + 2 * (n - 1).
        extra: Entries of every page.
        info: Entries of the metadata.
        vertical: Whether Japanese is set from top to bottom.
        catalog: Entries of the catalog.
        more: Further objects, from number 9.
        resources: Entries of the resources of every page.
        fonts: Fonts of every page beside Latin `L`, Japanese `J` and bold `B`.
    """
    encoding = "UniJIS-UTF16-V" if vertical else "UniJIS-UTF16-H"
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Light /Encoding /{encoding} /DescendantFonts [5 0 R] >>",
        f"{JAPANESE_FONT} /DW 1000 /FontDescriptor 6 0 R >>",
        f"{JAPANESE_DESCRIPTOR} /Ascent 880 /Descent -120 /CapHeight 700 /StemV 80 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
        f"<< {info} >>",
        *more,
    ]
    kids = []
    for page in pages:
        content = page if isinstance(page, str) else "\n".join(map(show, page))
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {extra} /Contents {len(objects) + 2} 0 R "
            f"/Resources << /Font << /L 3 0 R /J 4 0 R /B 7 0 R {fonts} >> {resources} >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body, offsets = "%PDF-1.7\n", []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R /Info 8 0 R >>\nstartxref\n{len(body)}\n%%EOF"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")


def show(piece: Piece) -> str:
    left, top, size, text = piece
    japanese = any(ord(character) > 255 for character in text)
    shown = f"<{text.encode('utf-16-be').hex()}>" if japanese else "(" + re.sub(r"([()\\])", r"\\\1", text) + ")"
    font = "J" if japanese else "B" if text.startswith("*") else "L"
    return f"BT /{font} {size} Tf {left} {842 - top} Td {shown} Tj ET"


def column(left: float, top: float, lines: list[str], size: float = 10) -> list[Piece]:
    return [(left, top + 14 * number, size, line) for number, line in enumerate(lines)]


def grid(xs: list[float], ys: list[float]) -> str:
    """Content that draws a grid of rules, places from the top left."""
    across = [f"{xs[0]} {842 - y} m {xs[-1]} {842 - y} l S" for y in ys]
    down = [f"{x} {842 - ys[0]} m {x} {842 - ys[-1]} l S" for x in xs]
    return "\n".join([*across, *down])


def page(pieces: list[Piece], drawing: str = "") -> str:
    """The content of a page with texts and a drawing."""
    return "\n".join([drawing, *map(show, pieces)])
