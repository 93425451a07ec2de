"""HTML, and Markdown by way of HTML: headings, paragraphs, lists, tables with their spans, captions.

What stays out: styles, scripts, the content of images and anything that is not in the file itself; nothing is fetched.
The alternative text of an image is kept where it stands, as in `[図: 構成]`; as a caption where it stands alone.

Not read with Unstructured: its `partition_html` (0.27.32) loses the text of `details`, drops
`rowspan` and `colspan` from tables, and costs 1.7 s and 290 MB of imports in each parsing process.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lxml import etree, html

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Block, Failure, Page, ParsedDocument, Row
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, fill_grid, link_suffix, sensible_title, table_block, unwrap
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.text import decode_stated, decode_text
from rag_assets.parsing.text_blocks import text_blocks

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
    *("sup", "time", "tt", "u", "var", "wbr", "img", "input", "math", "mi", "mn", "mo", "mrow", "picture", "source"),
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
_CONTAINERS = {"blockquote_open", "list_item_open", "bullet_list_open", "ordered_list_open"}
_BREAK, _PICTURE, _PICTURE_END = "\ufdd0", "\ufdd1", "\ufdd2"  # no characters: no text holds them
_UNWANTED = dict.fromkeys(map(ord, ("\x00", _BREAK, _PICTURE, _PICTURE_END)))
_PICTURES = re.compile(f"{_PICTURE}([^{_PICTURE_END}]*){_PICTURE_END}")
_PICTURE_ALONE = re.compile(f"{_PICTURES.pattern}( <[^<>]*>)?\\s*")


@dataclass(frozen=True, slots=True)
class Markup:
    """What was read from markup.

    Attributes:
        blocks: The blocks.
        title: Title stated in it, or None.
        failures: What was left out; they name no page.
    """

    blocks: tuple[Block, ...] = ()
    title: str | None = None
    failures: tuple[Failure, ...] = ()


def parse_html(data: bytes) -> ParsedDocument:
    """Parse an HTML file into one page.

    Raises:
        ParseError: MALFORMED where no HTML can be made out.
    """
    markup = read_markup(decode_html(data))
    page = Page(1, PageKind.BODY, markup.blocks)
    return ParsedDocument(DocumentFormat.HTML.value, sensible_title(markup.title), (page,), _on_page(markup.failures))


def parse_markdown(data: bytes) -> ParsedDocument:
    """Parse a CommonMark file with tables into one page; front matter becomes a note.

    A file whose lists or quotations are nested too deep is read as plain text, so that nothing is lost.

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
    deepest = current_limits().nesting_depth
    renderer = MarkdownIt("commonmark", {"html": True, "maxNesting": deepest}).enable(["table", "strikethrough"])
    tokens = renderer.parse(text)
    # Of a list or quotation as deep as its limit the renderer leaves out all that follows, and does not say so.
    ends = [
        token.map[0] + 1
        for token in tokens
        if token.nesting == 1 and token.level + 1 >= deepest and token.map and token.type in _CONTAINERS
    ]
    if ends:
        line = min(ends) + (front[0].count("\n") if front else 0)
        message = f"line {line}: nested deeper than {_depth_limit()}; the file is read as plain text"
        markup = Markup(tuple(text_blocks(text, Sections())), failures=(Failure(FailureCause.TOO_LARGE, message),))
    else:
        markup = read_markup(renderer.renderer.render(tokens, renderer.options, {}))
    page = Page(1, PageKind.BODY, (*notes, *markup.blocks))
    title = sensible_title(title or markup.title)
    return ParsedDocument(DocumentFormat.MD.value, title, (page,), _on_page(markup.failures))


def decode_html(data: bytes, charset: str | None = None) -> str:
    """Decode by the charset that is stated where the bytes are valid in it, else as any text.

    Args:
        data: The bytes.
        charset: Charset that is stated beside the bytes, as in the headers of a message; it goes before their own.
    """
    match = _CHARSET.search(data[:4096])
    stated = (charset, (match[1] or match[2]).decode("ascii") if match else None)
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return decode_text(data)
    for name in filter(None, stated):
        wide = name.lower().startswith(("utf-16", "utf-32", "ucs-")) and b"\x00" not in data[:4096]
        text = None if wide else decode_stated(data, name)
        if text is not None:
            return text
    return decode_text(data)


def _on_page(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    return tuple(replace(failure, page_number=1) for failure in failures)


def _depth_limit() -> str:
    return f"{current_limits().nesting_depth} levels (parsing.nesting_depth)"


def read_markup(text: str, above: Sequence[str] = ()) -> Markup:
    """Read HTML.

    Args:
        text: The HTML; a fragment will do.
        above: Headings above all of it.

    Raises:
        ParseError: MALFORMED where no HTML can be made out.
    """
    text = re.sub(r"\A\s*<\?xml[^>]*\?>", "", text).translate(_UNWANTED)
    if not text.strip():
        return Markup()
    parser = html.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        root = html.document_fromstring(text, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError) as error:
        raise ParseError(FailureCause.MALFORMED, f"no HTML can be made out: {error}") from error
    reader = _Reader(above)
    reader.read(root)
    end = next((entry.line for entry in parser.error_log if "depth" in entry.message.lower()), None)
    if end is not None:
        message = f"line {end}: nested deeper than any reader of HTML goes; what follows is left out"
        reader.failures.append(Failure(FailureCause.TOO_LARGE, message))
    return Markup(tuple(reader.blocks), root.findtext(".//title"), tuple(reader.failures))


class _Reader:
    """Walks the elements and collects blocks; text between block elements gathers until the next one begins."""

    def __init__(self, above: Sequence[str]) -> None:
        self.blocks: list[Block] = []
        self.failures: list[Failure] = []
        self._sections = Sections(above)
        self._gathered: list[str] = []

    def read(self, element: etree._Element, kind: BlockKind = BlockKind.PARAGRAPH, depth: int = 0) -> None:
        """Read an element with all that it holds."""
        tag = element.tag if isinstance(element.tag, str) else ""
        if not tag or tag in _SKIPPED:
            return
        if depth > current_limits().nesting_depth:
            if not self.failures and (len(element) or (element.text or "").strip()):
                place = f"line {element.sourceline}, element {tag}"
                message = f"{place}: nested deeper than {_depth_limit()}; what lies deeper is left out"
                self.failures.append(Failure(FailureCause.TOO_LARGE, message))
            return
        if tag == "img":
            self._gathered.append(_picture(element))
        elif tag in _INLINE:
            self._read_content(element, kind, depth)
            self._gathered.append(_link(element))
        elif tag == "br":
            self._gathered.append(_BREAK)
        elif tag in _HEADINGS:
            self._flush(kind)
            if text := inline_text(element):
                self.blocks.append(Block(BlockKind.HEADING, text, self._sections.enter(_HEADINGS[tag], text)))
        elif tag == "pre":
            self._flush(kind)
            if text := clean(_shown("".join(_texts(element)).replace(_BREAK, "\n"))):
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
        if text and not _PICTURE_ALONE.sub("", text):
            captions = (f"図: {match[1]}{match[2] or ''}" for match in _PICTURE_ALONE.finditer(text))
            self.blocks.extend(Block(BlockKind.CAPTION, caption, self._sections.path) for caption in captions)
        elif text := _shown(text):
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
                if not row or not all(map(_is_header, row)):
                    break
                header_row_count += 1
            header_row_count = min(header_row_count, len(grid) - 1)
            section = self._sections.path
            self.blocks.append(table_block([Row(cells) for cells in grid], header_row_count, section))


def inline_text(element: etree._Element) -> str:
    """Text of an element as displayed: spaces collapsed, breaks kept, readings of ruby left out."""
    return _shown(_collapse("".join(_texts(element))))


def _collapse(text: str) -> str:
    return "\n".join(line for line in (unwrap(line) for line in text.split(_BREAK)) if line)


def _shown(text: str) -> str:
    """A text with its pictures in words."""
    return _PICTURES.sub(r"[図: \1]", text)


def _picture(image: etree._Element) -> str:
    """Alternative text of an image, marked as such; nothing where it has none."""
    text = " ".join((image.get("alt") or image.get("title") or "").split())
    return f"{_PICTURE}{text}{_PICTURE_END}" if text else ""


def _link(element: etree._Element) -> str:
    """What stands behind an element that is a link: its target."""
    target = element.get("href") if element.tag == "a" else None
    return link_suffix("".join(map(str, element.itertext())), target) if target else ""


def _texts(element: etree._Element) -> Iterator[str]:
    waiting: list[etree._Element | str] = [element]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        yield item.text or ""
        for child in reversed(item):
            tag = child.tag if isinstance(child.tag, str) else ""
            waiting.append(child.tail or "")
            if tag in ("td", "th"):
                waiting.append(" ")
            if tag == "img":
                waiting.append(_picture(child))
            elif tag and tag not in _SKIPPED and tag not in ("rt", "rp"):
                waiting += [_link(child), child]
            if tag in ("br", "p", "div", "li", "tr"):
                waiting.append(_BREAK)


def _is_layout(table: etree._Element) -> bool:
    """Whether a table only arranges a page: it holds further tables, headings in cells of its body, or one column."""
    if table.find(".//table") is not None:
        return True
    rows = list(_rows(table))
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
    value = cell.get(name, "1").strip()
    return max(1, min(int(value), 1000)) if value.isascii() and value.isdigit() else 1
