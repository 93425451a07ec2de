"""What a PDF says about itself beside its text: bookmarks as headings, targets of links."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from pypdfium2 import PdfiumError, raw

from rag_assets.contracts.content import Box
from rag_assets.parsing.flow import LINK_SCHEMES, letters, sensible_title
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.pdf.runs import OpenPage, Run

_BOOKMARKS = 5000
_LINKS = 2000
_URI_CHARS = 500


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the outline.

    Attributes:
        level: Depth, 1 the outermost.
        page_number: Page that it leads to, from 1.
        top: Height on that page in points from the top, or None where it leads to the page as a whole.
    """

    level: int
    title: str
    page_number: int
    top: float | None


def read_outline(document: Any, note_cut: Callable[[int, str], None]) -> list[Bookmark]:
    """Bookmarks that lead to a page and have a title, in the order of the outline.

    Args:
        document: The document of pypdfium2; a damaged or cyclic outline is read as far as it goes.
        note_cut: Told the page from which on bookmarks are left out, and why.
    """
    found: list[Bookmark] = []
    try:
        for number, entry in enumerate(document.get_toc(max_depth=current_limits().nesting_depth)):
            if number >= _BOOKMARKS:
                message = f"more than {_BOOKMARKS} bookmarks up to here, the limit; the rest are left out"
                note_cut(found[-1].page_number if found else 1, message)
                break
            title = sensible_title(entry.get_title())
            target = entry.get_dest()
            index = target.get_index() if target else None
            if title and index is not None and 0 <= index < len(document):
                found.append(Bookmark(entry.level + 1, title, index + 1, _target_top(document, target, index)))
    except (PdfiumError, ValueError, UnicodeError, RecursionError):
        return found
    return found


def _target_top(document: Any, target: Any, index: int) -> float | None:
    """Height that a bookmark leads to; None where it gives none or the page is turned."""
    mode, place = target.get_view()
    if mode == raw.PDFDEST_VIEW_XYZ and len(place) > 1 and place[1]:
        _, height = document.get_page_size(index)
        return float(height - place[1])
    return None


def add_link_targets(page: OpenPage, runs: Sequence[Run]) -> None:
    """Put the target of each link behind its text, as ` <https://example.org>`, where the text is not the target.

    Args:
        page: The page.
        runs: Its runs; they are changed.
    """
    place = page.placing()
    position, link, box = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    groups: list[tuple[str, list[tuple[Run, int]]]] = []
    for number in count():
        if not raw.FPDFLink_Enumerate(page.page, position, link):
            break
        if number >= _LINKS:
            page.note_cut(f"more than {_LINKS} links, the limit; where the rest lead is left out")
            break
        uri = _target(page.document, link)
        if not uri or not raw.FPDFLink_GetAnnotRect(link, box):
            continue
        hits = _inside(runs, place(box.left, box.bottom, box.right, box.top))
        if groups and groups[-1][0] == uri:
            groups[-1][1].extend(hits)  # a link over several lines is several links
        else:
            groups.append((uri, hits))
    for uri, hits in groups:
        text = letters("".join(run.characters[index] for run, index in hits))
        if text not in letters(uri):  # no text is in all of them
            run, index = hits[-1]
            run.characters[index] += f" <{uri}>"


def _target(document: Any, link: Any) -> str | None:
    action = raw.FPDFLink_GetAction(link)
    if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
        return None
    length = raw.FPDFAction_GetURIPath(document, action, None, 0)
    if not 1 < length <= _URI_CHARS:
        return None
    buffer = ctypes.create_string_buffer(length)
    raw.FPDFAction_GetURIPath(document, action, buffer, length)
    uri = buffer.value.decode("utf-8", "replace").strip()
    return uri if uri.startswith(LINK_SCHEMES) and uri.isprintable() and " " not in uri else None


def _inside(runs: Sequence[Run], area: Box) -> list[tuple[Run, int]]:
    """Characters whose middle lies in an area, from the top and the left."""
    left, _, right, _ = area
    return [
        (run, index)
        for run in sorted(runs, key=lambda run: (round(run.top), run.left))
        if run.reaches(area)
        for index, middle in enumerate(run.middles())
        if left <= middle <= right and not run.characters[index].isspace()
    ]
