"""Files read by Unstructured (extra `unstructured`): formats without a reader of ours, and those of a setting.

What stays out: which files those are (`parse`); the programs that convert some of them before (`conversion`); the
headers, attachments and attached messages of a message (`mail`).

Nothing is fetched: telemetry is off, and no language model takes part, see `_elements`.
"""

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from typing import Any

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive
from rag_assets.parsing.conversion import OFFICE_TARGETS, PANDOC_FORMATS, convert, find_program
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.mail.reader import parse_message
from rag_assets.parsing.markup.reader import decode_html, read_markup
from rag_assets.parsing.plain.text import decode_text

_SILENCE = {"DO_NOT_TRACK": "true", "SCARF_NO_ANALYTICS": "true", "UNSTRUCTURED_DISABLE_NOTICE": "1"}
_TITLES = {"UNSTRUCTURED_TITLE_MAX_WORD_LENGTH": "0"}  # no line is a title for being short
_NO_DETECTION: dict[str, Any] = {"languages": [""]}
_EXTRAS = {"xls": "xlsx"}  # of Unstructured itself, where it is not the name of the format
_ZIPPED = {"docx", "epub", "odp", "odt", "pptx", "xlsx"}
_MESSAGES = {"eml", "msg"}
_PAGE_KINDS = {
    **dict.fromkeys(("xls", "xlsx"), PageKind.SHEET),
    **dict.fromkeys(("odp", "ppt", "pptx"), PageKind.SLIDE),
}
_KINDS = {
    "ListItem": BlockKind.LIST_ITEM,
    "FigureCaption": BlockKind.CAPTION,
    "Image": BlockKind.CAPTION,
    "Header": BlockKind.HEADER,
    "Footer": BlockKind.HEADER,
    "PageNumber": BlockKind.HEADER,
    "Footnote": BlockKind.NOTE,
}


def is_readable(name: str) -> bool:
    """Whether a format can be read here: Unstructured is installed, and the program that the format needs, if any."""
    needs_program = name in PANDOC_FORMATS or name in OFFICE_TARGETS
    return _is_installed() and not (needs_program and find_program(name)[1] is None)


def parse_by_unstructured(data: bytes, name: str) -> ParsedDocument:
    """Parse a file with Unstructured, within `current_limits`.

    Args:
        data: The bytes of the file.
        name: Its format, one of `FORMATS`.

    Returns:
        Its pages, sheets or slides where Unstructured numbers them, else one page.

    Raises:
        ParseError: UNSUPPORTED_FORMAT where Unstructured, or what it needs for the format, is not installed or not
            allowed; TOO_LARGE where the file is over a limit; as `convert` and, for messages, `parse_message`.
    """
    limits = current_limits()
    if not _is_installed():
        also = f" and {find_program(name)[0]}" if name in OFFICE_TARGETS else ""
        raise _unsupported(f"{name} is read by Unstructured: pip install 'rag-assets[unstructured]'{also}")
    if name in _ZIPPED:
        Archive(data, limits.archive_entries, limits.expanded_bytes)  # it is checked before it is expanded
    if name in _MESSAGES:
        return parse_message(data, DocumentFormat(name), lambda above: _message_blocks(data, name, above))
    pages = _pages(_elements(data, name), _PAGE_KINDS.get(name, PageKind.PAGE), limits.pages)
    return ParsedDocument(name, pages=pages)


def _is_installed() -> bool:
    return importlib.util.find_spec("unstructured") is not None


def _unsupported(message: str) -> ParseError:
    return ParseError(FailureCause.UNSUPPORTED_FORMAT, message)


def _elements(data: bytes, name: str) -> Sequence[Any]:
    """Elements of a file.

    Unstructured tells narrative from other text by an English language model, which it downloads, at some 10 ms a
    paragraph. Both are paragraphs here, so it is given no sentences and words to look at.
    """
    os.environ.update(_SILENCE | _TITLES)  # read with its import and with each call
    try:
        from unstructured.partition import text_type

        for tokenizer in ("sent_tokenize", "word_tokenize", "pos_tag"):
            setattr(text_type, tokenizer, _nothing)
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


def _nothing(text: str) -> list[Any]:
    del text
    return []


def _converted(data: bytes, name: str) -> Sequence[Any]:
    limits = current_limits()
    found = convert(data, name)
    if name not in OFFICE_TARGETS:
        from unstructured.partition.html import partition_html

        return partition_html(text=found.decode("utf-8", "replace"), **_NO_DETECTION)
    Archive(found, limits.archive_entries, limits.expanded_bytes)
    return _PARTITIONS[OFFICE_TARGETS[name]](found)


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
    from lxml.etree import XMLSyntaxError
    from unstructured.partition.xml import partition_xml

    try:
        return partition_xml(file=BytesIO(data), **_NO_DETECTION)
    except XMLSyntaxError as error:
        raise ParseError(FailureCause.MALFORMED, f"the XML cannot be read: {error}") from error


_PARTITIONS: dict[str, Callable[[bytes], Sequence[Any]]] = {
    **{name: partial(_converted, name=name) for name in (*PANDOC_FORMATS, *OFFICE_TARGETS)},
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
FORMATS = frozenset(_PARTITIONS)


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
