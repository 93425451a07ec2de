"""HTML: headings, paragraphs, lists with their numbers, definitions, tables with their spans, captions, footnotes.

Nothing is fetched. The alternative text of an image is kept where it stands, as in `[図: 構成]`; as a caption where it
stands alone. What is hidden is kept and marked.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from textwrap import dedent
from urllib.parse import unquote

from lxml import etree, html

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument, Row
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, fill_grid, letters, sensible_title, table_block
from rag_assets.parsing.limits import current_limits, depth_limit
from rag_assets.parsing.markup.closing import close_elements
from rag_assets.parsing.markup.inline import (
    BREAK,
    INLINE,
    SKIPPED,
    UNWANTED,
    captions,
    collapse,
    describe_pictures,
    hidden_text,
    inline_text,
    is_hidden,
    item_label,
    link,
    special_text,
    svg_lines,
    texts,
    whole,
)
from rag_assets.parsing.plain.text import decode_stated, decode_text

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    "li": BlockKind.LIST_ITEM,
    "dd": BlockKind.LIST_ITEM,
    "caption": BlockKind.CAPTION,
    "figcaption": BlockKind.CAPTION,
    "nav": BlockKind.HEADER,
    "aside": BlockKind.NOTE,
}
_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]+)|<\?xml[^>]{0,100}encoding=["']([\w-]+)""", re.IGNORECASE
)
_NOTE_ROLES = {"doc-footnote", "doc-endnote"}
_NOTE_LISTS = {"doc-endnotes", "footnotes", "references"}
_NOTE_STYLE = re.compile(r"mso-element:\s*(?:foot|end)note\s*(?:;|$)")
_BOLD = ("b", "strong")
_BELOW_ALL = 7  # level of a bold line among headings
_BODIES = {"body", "main", "article", "section", "div"}
_BOLD_LINE = re.compile(r"(?=.*[^\W\d_])[^\n※]{1,60}(?<![。.．、，,：:；;！!])")
_INDENTED = re.compile(r"([ \t]*)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Markup:
    """What was read from markup."""

    blocks: tuple[Block, ...] = ()
    title: str | None = None  # title stated in it, or None
    failures: tuple[Failure, ...] = ()  # what was left out; they name no page


def parse_html(data: bytes) -> ParsedDocument:
    """Parse an HTML file into one page.

    Raises:
        ParseError: MALFORMED where no HTML can be made out.
    """
    markup = read_markup(decode_html(data))
    page, failures = Page(1, PageKind.BODY, markup.blocks), on_first_page(markup.failures)
    return ParsedDocument(DocumentFormat.HTML.value, sensible_title(markup.title), (page,), failures)


def decode_html(data: bytes, charset: str | None = None) -> str:
    """Decode by the charset that is stated where the bytes are valid in it, else as any text.

    Args:
        data: The bytes.
        charset: Charset that is stated beside the bytes, as in the headers of a message; it goes before their own.
    """
    match = _CHARSET.search(data[:4096])
    charsets = (charset, (match[1] or match[2]).decode("ascii") if match else None)
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return decode_text(data)
    for name in filter(None, charsets):
        wide = name.lower().startswith(("utf-16", "utf-32", "ucs-")) and b"\x00" not in data[:4096]
        text = None if wide else decode_stated(data, name)
        if text is not None:
            return text
    return decode_text(data)


def on_first_page(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Failures of the only page that a file has."""
    return tuple(replace(failure, page_number=1) for failure in failures)


def read_markup(text: str, above: Sequence[str] = ()) -> Markup:
    """Read HTML.

    Raises:
        ParseError: MALFORMED where no HTML can be made out.
    """
    text = close_elements(re.sub(r"\A\s*<\?xml[^>]*\?>", "", text).translate(UNWANTED))
    if not text.strip():
        return Markup()
    parser = html.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        root = html.document_fromstring(text, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as error:
        raise ParseError(FailureCause.MALFORMED, f"no HTML can be made out: {error}") from error
    reader = _MarkupReader(above, _find_notes(root))
    reader.read(root)
    end = next((entry.line for entry in parser.error_log if "depth" in entry.message.lower()), None)
    if end is not None:
        message = f"line {end}: nested deeper than any reader of HTML goes; what follows is left out"
        reader.failures.append(Failure(FailureCause.TOO_LARGE, message))
    return Markup(tuple(reader.blocks), root.findtext(".//title"), tuple(reader.failures))


class _MarkupReader:
    """Walks the elements and collects blocks; text between block elements gathers until the next one begins.

    Args:
        above: Headings above all of it.
        notes: Elements that are footnotes, by the identities under which links lead to them.
    """

    def __init__(self, above: Sequence[str], notes: Mapping[str, etree._Element]) -> None:
        self.blocks: list[Block] = []
        self.failures: list[Failure] = []
        self._sections = Sections(above)
        self._gathered: list[str] = []
        self._notes = notes
        self._placed: set[etree._Element] = set()
        self._hanging: list[Block] = []
        self._label = ""  # what stands before the next block: number of a list item, term of a definition
        self._terms: list[str] = []
        self._readings: list[str] = []  # of words with ruby, in the block that is gathered
        self._numbers: dict[etree._Element, int] = {}

    def read(self, element: etree._Element, kind: BlockKind = BlockKind.PARAGRAPH, depth: int = 0) -> None:
        """Read an element with all that it holds."""
        tag = element.tag if isinstance(element.tag, str) else ""
        if not tag or tag in SKIPPED or element in self._placed:
            self._readings += [inline_text(element)] if tag == "rt" else []
            return
        if depth > current_limits().nesting_depth:
            if not self.failures and (len(element) or (element.text or "").strip()):
                place = f"line {element.sourceline}, element {tag}"
                message = f"{place}: nested deeper than {depth_limit()}; what lies deeper is left out"
                self.failures.append(Failure(FailureCause.TOO_LARGE, message))
            return
        if tag == "svg" and not is_hidden(element) and (lines := svg_lines(element)):
            self._hanging.append(Block(BlockKind.DIAGRAM, "\n".join(lines), self._sections.path))
        elif is_hidden(element) and tag not in INLINE:
            self._flush(kind)
            self._append(BlockKind.NOTE, f"非表示: {text}" if (text := hidden_text(element)) else "")
        elif (special := special_text(element)) is not None:
            self._gathered.append(special)
        elif tag in INLINE:
            self._hang_note(element)
            self._read_content(element, kind, depth)
            self._gathered.append(link(element))
        elif tag == "br":
            self._gathered.append(BREAK)
        else:
            self._flush(kind)
            if not self._read_block(element, tag, kind):
                inner = BlockKind.HEADER if kind is BlockKind.HEADER or _is_trail(element) else _KINDS.get(tag, kind)
                self._begin_container(element, tag, kind)
                self._read_content(element, inner, depth)
                self._flush(inner)
                self._end_container(element, tag)

    def _read_block(self, element: etree._Element, tag: str, kind: BlockKind) -> bool:
        """Read an element that is a block by itself; whether it is one."""
        if any(self._notes.get(identity) is element for identity in _identities(element)):
            self._append(BlockKind.NOTE, _note_text(element, element.get("aria-label") or ""))
        elif tag in _HEADINGS or (kind is BlockKind.PARAGRAPH and _is_bold_heading(element)):
            if text := inline_text(element):
                level = _HEADINGS.get(tag, _BELOW_ALL)
                text, self._label = self._label + text, ""
                self.blocks.append(Block(BlockKind.HEADING, text, self._sections.enter(level, text)))
        elif tag == "pre":
            self._append(kind, _indented(describe_pictures("".join(texts(element)).replace(BREAK, "\n"))))
        elif tag == "table" and not _is_layout(element):
            self._end_term()
            self._read_table(element)
        elif tag == "dt":
            self._terms.append(inline_text(element).replace("\n", " / ").rstrip(":： "))
        else:
            return False
        for anchor in element.iter("a") if self._notes else ():
            self._hang_note(anchor)
        self._readings += map(inline_text, element.iter("rt"))
        self._flush(kind)
        return True

    def _begin_container(self, element: etree._Element, tag: str, kind: BlockKind) -> None:
        if tag == "li":
            self._end_term()
            self._label = "" if kind is BlockKind.HEADER else item_label(element, self._numbers)
        elif tag == "dd":
            self._label = f"{' / '.join(filter(None, self._terms))}: " if any(self._terms) else ""

    def _end_container(self, element: etree._Element, tag: str) -> None:
        if tag == "li":
            self._label = ""
        elif tag == "dd":
            self._end_term()
            sibling = element.getnext()
            if sibling is None or sibling.tag != "dd":
                self._terms = []
        elif tag == "dl":
            self._append(BlockKind.LIST_ITEM, " / ".join(filter(None, self._terms)))
            self._terms = []

    def _read_content(self, element: etree._Element, kind: BlockKind, depth: int) -> None:
        self._gathered.append(element.text or "")
        for child in element:
            self.read(child, kind, depth + 1)
            self._gathered.append(child.tail or "")

    def _append(self, kind: BlockKind, text: str) -> None:
        if text:
            self.blocks.append(Block(kind, self._label + text, self._sections.path))
            self._label = ""

    def _end_term(self) -> None:
        """Give a term a block of its own where no text follows it that it could stand before."""
        if self._label.endswith(": "):
            label, self._label = self._label.removesuffix(": "), ""
            self._append(BlockKind.LIST_ITEM, label)

    def _flush(self, kind: BlockKind) -> None:
        text = collapse("".join(self._gathered))
        self._gathered = []
        if text and (lone_captions := captions(text)):
            self.blocks.extend(Block(BlockKind.CAPTION, caption, self._sections.path) for caption in lone_captions)
        else:
            self._append(kind, describe_pictures(text))
        if readings := " ".join(filter(None, self._readings)):
            self.blocks.append(Block(BlockKind.PARAGRAPH, readings, self._sections.path))
        self.blocks.extend(self._hanging)
        self._readings, self._hanging = [], []

    def _hang_note(self, element: etree._Element) -> None:
        """Have the footnote that a link leads to stand behind the block that the link is in."""
        target = element.get("href") or "" if element.tag == "a" else ""
        note = self._notes.get(unquote(target[1:])) if target.startswith("#") else None
        if note is None or note in self._placed or note in element.iterancestors():
            return
        self._placed.add(note)
        if text := _note_text(note, inline_text(element)):
            self._hanging.append(Block(BlockKind.NOTE, text, self._sections.path))

    def _read_table(self, table: etree._Element) -> None:
        for caption in table.iterfind("caption"):
            self._append(BlockKind.CAPTION, inline_text(caption))
        rows = list(_rows(table))
        placed_cells = [
            [(_cell_text(cell), _span(cell, "colspan"), _span(cell, "rowspan")) for cell in row] for row in rows
        ]
        if grid := fill_grid(placed_cells):
            header_row_count = min(_header_row_count(rows), len(grid) - 1)
            self.blocks.append(table_block([Row(cells) for cells in grid], header_row_count, self._sections.path))


def _indented(text: str) -> str:
    """A preformatted text, cleaned but for the indentation of its lines."""
    lines = (_INDENTED.fullmatch(line) for line in text.replace("\r\n", "\n").split("\n"))
    clean_lines = (f"{line[1]}{text}" if line and (text := clean(line[2])) else "" for line in lines)
    return dedent("\n".join(clean_lines)).strip("\n")


def _find_notes(root: etree._Element) -> dict[str, etree._Element]:
    """Footnotes by their own identities and those of the marks within them."""
    notes: dict[str, etree._Element] = {}
    for element in filter(_is_note, root.iter("li", "div", "aside", "p")):
        for identity in (identity for part in element.iter() for identity in _identities(part)):
            notes.setdefault(identity, element)
    return notes


def _is_note(element: etree._Element) -> bool:
    if element.get("role") in _NOTE_ROLES or _NOTE_STYLE.search(element.get("style") or ""):
        return True
    if element.tag != "li" or element.get("id") is None:
        return False
    outer = (element, *islice(element.iterancestors(), 2))
    return any(_NOTE_LISTS & {part.get("role") or "", *(part.get("class") or "").split()} for part in outer)


def _identities(element: etree._Element) -> list[str]:
    return [value for name in ("id", "name") if (value := element.get(name))]


def _note_text(note: etree._Element, label: str) -> str:
    """Text of a footnote behind its mark, unless it begins with the mark itself."""
    text = inline_text(note)
    mark = f"[{label}]" if label.isalnum() else label
    return text if not text or text.startswith((mark, label)) else f"{mark} {text}"


def _cell_text(cell: etree._Element) -> str:
    text, row = inline_text(cell), cell.getparent()
    hidden = is_hidden(cell) or (row is not None and is_hidden(row))
    return f"（非表示: {text}）" if text and hidden else text


def _header_row_count(rows: Sequence[Sequence[etree._Element]]) -> int:
    """Leading rows of header cells; where there are none, the first row if it alone is all in bold type."""
    count = sum(1 for _ in takewhile(lambda row: row and all(map(_is_header, row)), rows))
    if count or len(rows) < 2:
        return count
    return int(_is_bold(rows[0]) and not _is_bold(rows[1]))


def _is_bold(row: Sequence[etree._Element]) -> bool:
    cells = [cell for cell in row if inline_text(cell)]
    return len(cells) > 1 and all(
        letters("".join("".join(map(str, bold.itertext())) for bold in cell.iter(*_BOLD))) == letters(inline_text(cell))
        for cell in cells
    )


def _is_bold_heading(element: etree._Element) -> bool:
    """Whether a paragraph is one bold line above something that is neither a heading nor another such line."""
    parent, below = element.getparent(), element.getnext()
    if parent is None or parent.tag not in _BODIES or below is None or below.tag in {*_HEADINGS, "hr"}:
        return False
    return _is_bold_line(element) and not _is_bold_line(below)


def _is_bold_line(element: etree._Element) -> bool:
    if element.tag != "p" or len(element) != 1 or element[0].tag not in _BOLD:
        return False
    if (element.text or "").strip() or (element[0].tail or "").strip():
        return False
    return _BOLD_LINE.fullmatch(inline_text(element)) is not None


def _is_trail(element: etree._Element) -> bool:
    """Whether an element shows the path to its page."""
    return "breadcrumb" in f"{element.get('id') or ''} {element.get('class') or ''}".lower()


def _is_layout(table: etree._Element) -> bool:
    """Whether a table only arranges a page: it holds further tables, headings in cells of its body, or one column.

    One with header cells is none for the tables that it holds.
    """
    rows = list(_rows(table))
    if table.find(".//table") is not None and not any(_is_header(cell) for row in rows for cell in row):
        return True
    cells = (cell for row in rows for cell in row if not _is_header(cell))
    if any(cell.find(f".//{heading}") is not None for cell in cells for heading in _HEADINGS):
        return True
    return max(map(len, rows), default=0) <= 1


def _rows(table: etree._Element) -> Iterator[list[etree._Element]]:
    for child in table:
        if child.tag in ("thead", "tbody", "tfoot"):
            yield from _rows(child)
        elif child.tag == "tr":
            yield [cell for cell in child if cell.tag in ("td", "th")]


def _is_header(cell: etree._Element) -> bool:
    row = cell.getparent()
    parent = row.getparent() if row is not None else None
    return cell.tag == "th" or (parent is not None and parent.tag == "thead")


def _span(cell: etree._Element, name: str) -> int:
    return max(1, min(whole(cell.get(name), 1), 1000))
