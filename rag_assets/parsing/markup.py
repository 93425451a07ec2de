"""HTML, and Markdown by way of HTML: headings, paragraphs, lists, tables with their spans, captions.

What stays out: styles, scripts, images and anything that is not in the file itself; nothing is fetched.

Not read with Unstructured: its `partition_html` (0.27.32) loses the text of `details`, drops
`rowspan` and `colspan` from tables, and costs 1.7 s and 290 MB of imports in each parsing process.
"""

import re
from collections.abc import Iterator

from lxml import etree, html

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Block, Failure, Page, ParsedDocument, Row
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, fill_grid, sensible_title, table_block, unwrap
from rag_assets.parsing.text import decode_text

_SKIPPED = {"script", "style", "template", "head", "noscript", "svg", "object", "iframe", "datalist"}
_INLINE = {
    *(
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "button",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
    ),
    *(
        "ins",
        "kbd",
        "label",
        "mark",
        "output",
        "q",
        "ruby",
        "rb",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
    ),
    *("sup", "time", "tt", "u", "var", "wbr", "img", "input", "math", "mi", "mn", "mo", "mrow"),
}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    "li": BlockKind.LIST_ITEM,
    "caption": BlockKind.CAPTION,
    "figcaption": BlockKind.CAPTION,
    "nav": BlockKind.HEADER,
    "aside": BlockKind.NOTE,
}
_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]+)|<\?xml[^>]{0,100}encoding=["']([\w-]+)""", re.IGNORECASE
)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"""^title:[ \t]*["']?(.+?)["']?[ \t]*$""", re.MULTILINE | re.IGNORECASE)
_MAXIMUM_DEPTH = 300


def parse_html(data: bytes) -> ParsedDocument:
    """Parse an HTML file into one page.

    Raises:
        ParseError: MALFORMED where no HTML can be made out.
    """
    return _parse_markup(_decode_html(data), DocumentFormat.HTML, None, ())


def parse_markdown(data: bytes) -> ParsedDocument:
    """Parse a CommonMark file with tables into one page; front matter becomes a note.

    Raises:
        ParseError: MALFORMED where the rendered text is no HTML.
    """
    from markdown_it import MarkdownIt

    text = decode_text(data)
    title: str | None = None
    notes: tuple[Block, ...] = ()
    if front := _FRONT_MATTER.match(text):
        stated = _FRONT_TITLE.search(front[1])
        title = stated[1] if stated else None
        notes = (Block(BlockKind.NOTE, clean(front[1])),)
        text = text[front.end() :]
    renderer = MarkdownIt("commonmark", {"html": True, "maxNesting": 100}).enable(["table", "strikethrough"])
    return _parse_markup(renderer.render(text), DocumentFormat.MD, title, notes)


def _decode_html(data: bytes) -> str:
    """Decode by the charset that the file states where the bytes are valid in it, else as any text."""
    stated = _CHARSET.search(data[:4096])
    if stated and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        name = (stated[1] or stated[2]).decode("ascii").lower()
        name = {"shift_jis": "cp932", "shift-jis": "cp932", "x-sjis": "cp932", "sjis": "cp932"}.get(name, name)
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            pass
    return decode_text(data)


def _parse_markup(
    text: str, document_format: DocumentFormat, title: str | None, notes: tuple[Block, ...]
) -> ParsedDocument:
    text = re.sub(r"\A\s*<\?xml[^>]*\?>", "", text).replace("\x00", "")
    if not text.strip():
        return ParsedDocument(document_format.value, sensible_title(title), (Page(1, PageKind.BODY, notes),))
    parser = html.HTMLParser(no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(text, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as error:
        raise ParseError(FailureCause.MALFORMED, f"no HTML can be made out: {error}") from error
    failures: tuple[Failure, ...] = ()
    if any("depth" in entry.message.lower() for entry in parser.error_log):
        failures = (Failure(FailureCause.MALFORMED, "elements are nested too deep; what lies deeper is left out"),)
    stated = title or root.findtext(".//title")
    reader = _Reader()
    reader.read(root)
    page = Page(1, PageKind.BODY, (*notes, *reader.blocks))
    return ParsedDocument(document_format.value, sensible_title(stated), (page,), failures)


class _Reader:
    """Walks the elements and collects blocks; text between block elements gathers until the next one begins."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._sections = Sections()
        self._gathered: list[str] = []

    def read(self, element: etree._Element, kind: BlockKind = BlockKind.PARAGRAPH, depth: int = 0) -> None:
        """Read an element with all that it holds."""
        tag = element.tag if isinstance(element.tag, str) else ""
        if not tag or tag in _SKIPPED or depth > _MAXIMUM_DEPTH:
            return
        if tag in _INLINE:
            self._read_content(element, kind, depth)
        elif tag == "br":
            self._gathered.append("\ue000")
        elif tag in _HEADINGS:
            self._flush(kind)
            if text := inline_text(element):
                self.blocks.append(Block(BlockKind.HEADING, text, self._sections.enter(_HEADINGS[tag], text)))
        elif tag == "pre":
            self._flush(kind)
            if text := clean("".join(_texts(element))):
                self.blocks.append(Block(BlockKind.PARAGRAPH, text, self._sections.path))
        elif tag == "table" and not _is_layout(element):
            self._flush(kind)
            self._read_table(element)
        else:
            inner = _KINDS.get(tag, kind)
            self._flush(kind)
            self._read_content(element, inner, depth)
            self._flush(inner)

    def _read_content(self, element: etree._Element, kind: BlockKind, depth: int) -> None:
        self._gathered.append(element.text or "")
        if element.tag == "rt":
            return
        for child in element:
            if child.tag not in ("rt", "rp"):
                self.read(child, kind, depth + 1)
            self._gathered.append(child.tail or "")

    def _flush(self, kind: BlockKind) -> None:
        text = _collapse("".join(self._gathered))
        self._gathered = []
        if text:
            self.blocks.append(Block(kind, text, self._sections.path))

    def _read_table(self, table: etree._Element) -> None:
        for caption in table.iterfind("caption"):
            if text := inline_text(caption):
                self.blocks.append(Block(BlockKind.CAPTION, text, self._sections.path))
        rows = list(_rows(table))
        placed = [[(inline_text(cell), _span(cell, "colspan"), _span(cell, "rowspan")) for cell in row] for row in rows]
        grid = fill_grid(placed)
        if grid:
            header_row_count = 0
            for row in rows:
                if not row or not all(cell.tag == "th" or _in_head(cell) for cell in row):
                    break
                header_row_count += 1
            header_row_count = min(header_row_count, len(grid) - 1)
            section = self._sections.path
            self.blocks.append(table_block([Row(cells) for cells in grid], header_row_count, section))


def inline_text(element: etree._Element) -> str:
    """Text of an element as displayed: spaces collapsed, breaks kept, readings of ruby left out."""
    return _collapse("".join(_texts(element)))


def _collapse(text: str) -> str:
    return "\n".join(line for line in (unwrap(line) for line in text.split("\ue000")) if line)


def _texts(element: etree._Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        tag = child.tag if isinstance(child.tag, str) else ""
        if tag in ("br", "p", "div", "li", "tr"):
            yield "\ue000"
        if tag and tag not in _SKIPPED and tag not in ("rt", "rp"):
            yield from _texts(child)
        if tag in ("td", "th"):
            yield " "
        yield child.tail or ""


def _is_layout(table: etree._Element) -> bool:
    """Whether a table only arranges a page: it holds headings or further tables, or one column."""
    if table.find(".//table") is not None or any(table.find(f".//{heading}") is not None for heading in _HEADINGS):
        return True
    return max((len(row) for row in _rows(table)), default=0) <= 1


def _rows(table: etree._Element) -> Iterator[list[etree._Element]]:
    for child in table:
        if child.tag in ("thead", "tbody", "tfoot"):
            yield from _rows(child)
        elif child.tag == "tr":
            yield [cell for cell in child if cell.tag in ("td", "th")]


def _in_head(cell: etree._Element) -> bool:
    row = cell.getparent()
    parent = row.getparent() if row is not None else None
    return parent is not None and parent.tag == "thead"


def _span(cell: etree._Element, name: str) -> int:
    value = cell.get(name, "1").strip()
    return max(1, min(int(value), 1000)) if value.isascii() and value.isdigit() else 1
