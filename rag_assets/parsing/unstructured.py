"""Files read by Unstructured (extra `unstructured`): formats without a reader of ours, and those of a setting.

Of messages it reads the body alone. Nothing is fetched: telemetry is off, and no language model takes part.

Other formats have readers of ours because it (0.27.32) takes 2 s and 290 MB of imports in each parsing process, and:
- docx: it loses text boxes, checkboxes, content controls, tracked insertions, comments and footnotes, and cannot open
  strict Open XML;
- pptx: it loses the text of charts, spans of tables and the mark of hidden slides, and calls every short text a title;
- html: it loses the text of `details`, and spans of tables;
- messages: wrapped lines fall apart, Japanese marks of lists are unknown, links, spans of tables and paragraphs of a
  single character are lost, and a charset that it does not know ends it.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from typing import Any

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat, Pages
from rag_assets.parsing.archive import Archive
from rag_assets.parsing.conversion import OFFICE_TARGETS, PANDOC_FORMATS, convert, find_program
from rag_assets.parsing.flow import Sections, clean
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.mail import parse_message
from rag_assets.parsing.markup.reader import decode_html, read_markup
from rag_assets.parsing.plain.text import decode_text

_SILENCE = {"DO_NOT_TRACK": "true", "SCARF_NO_ANALYTICS": "true", "UNSTRUCTURED_DISABLE_NOTICE": "1"}
_TITLES = {"UNSTRUCTURED_TITLE_MAX_WORD_LENGTH": "0"}  # no line is a title for being short
_NO_DETECTION: dict[str, Any] = {"languages": [""]}
_EXTRAS = {"xls": "xlsx"}  # of Unstructured itself, where it is not the name of the format
_ZIPPED = {"docx", "epub", "odp", "odt", "pptx", "xlsx"}
_MESSAGES = {"eml", "msg"}
_PAGE_KINDS = {Pages.SHEETS: PageKind.SHEET, Pages.SLIDES: PageKind.SLIDE}
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
        name: Its format, one of `_PARTITIONS`.

    Returns:
        Its pages, sheets or slides where Unstructured numbers them, else one page.

    Raises:
        ParseError: UNSUPPORTED_FORMAT where Unstructured, or what it needs for the format, is not installed or not
            allowed; TOO_LARGE where the file is over a limit; as `convert` and, for messages, `parse_message`.
    """
    limits = current_limits()
    if not _is_installed():
        program_hint = f" and {find_program(name)[0]}" if name in OFFICE_TARGETS else ""
        raise _unsupported(f"{name} is read by Unstructured: pip install 'rag-assets[unstructured]'{program_hint}")
    if name in _ZIPPED:
        Archive(data, limits.archive_entries, limits.expanded_bytes)  # it is checked before it is expanded
    if name in _MESSAGES:
        return parse_message(data, DocumentFormat(name), lambda above: _message_blocks(data, name, above))
    pages = _pages(_elements(data, name), _PAGE_KINDS.get(DocumentFormat(name).pages, PageKind.PAGE), limits.pages)
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
        message = f"Unstructured lacks a package for {name}: {error}; pip install 'unstructured[{extra}]'"
        raise _unsupported(message) from error
    except PermissionError as error:
        raise _unsupported(f"Unstructured needs more for {name} than parsing allows: {error}") from error
    except RecursionError as error:
        raise ParseError(FailureCause.TOO_LARGE, f"{name}: its parts are nested too deep for Unstructured") from error


def _nothing(text: str) -> list[Any]:
    del text
    return []


def _converted(data: bytes, name: str) -> Sequence[Any]:
    limits = current_limits()
    result = convert(data, name)
    if name not in OFFICE_TARGETS:
        return _partition(result, "html", lambda html: {"text": html.decode("utf-8", "replace")})
    Archive(result, limits.archive_entries, limits.expanded_bytes)
    return _PARTITIONS[OFFICE_TARGETS[name]](result)


def _as_file(data: bytes) -> dict[str, Any]:
    return {"file": BytesIO(data)}


def _as_utf8_file(data: bytes) -> dict[str, Any]:
    """A text in UTF-8, whatever it is written in: Unstructured takes Japanese encodings for others."""
    return {"file": BytesIO(decode_text(data).encode("utf-8", "replace")), "encoding": "utf-8"}


def _partition(
    data: bytes, module: str, form: Callable[[bytes], dict[str, Any]] = _as_file, **options: Any
) -> Sequence[Any]:
    """Elements of a file by the function `partition_x` of the module `x` of Unstructured."""
    partition = getattr(importlib.import_module(f"unstructured.partition.{module}"), f"partition_{module}")
    elements: Sequence[Any] = partition(**form(data), **options, **_NO_DETECTION)
    return elements


def _xml(data: bytes) -> Sequence[Any]:
    from lxml.etree import XMLSyntaxError

    try:
        return _partition(data, "xml")
    except XMLSyntaxError as error:
        raise ParseError(FailureCause.MALFORMED, f"the XML cannot be read: {error}") from error


_PARTITIONS: dict[str, Callable[[bytes], Sequence[Any]]] = {
    **{name: partial(_converted, name=name) for name in (*PANDOC_FORMATS, *OFFICE_TARGETS)},
    "csv": partial(_partition, module="csv", form=_as_utf8_file),
    "docx": partial(_partition, module="docx"),
    "eml": partial(_partition, module="email", process_attachments=False),
    "html": partial(_partition, module="html", form=lambda data: {"text": decode_html(data)}),
    "md": partial(_partition, module="md", form=lambda data: {"text": decode_text(data)}),
    "msg": partial(_partition, module="msg", process_attachments=False),
    "pdf": partial(_partition, module="pdf", strategy="fast"),
    "pptx": partial(_partition, module="pptx", include_slide_notes=True),
    "tsv": partial(_partition, module="tsv", form=_as_utf8_file),
    "txt": partial(_partition, module="text", form=lambda data: {"text": decode_text(data)}),
    "xls": partial(_partition, module="xlsx"),
    "xlsx": partial(_partition, module="xlsx"),
    "xml": _xml,
}


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
        page_number = element.metadata.page_number
        is_numbered = is_numbered or page_number is not None
        if page_number is not None and page_number != number:
            number = max(int(page_number), 1)
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
