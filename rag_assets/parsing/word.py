"""Word documents (docx): paragraphs, headings, lists, tables, text boxes, notes, comments, headers and footers.

What stays out: the zip container (`archive.Archive`), pictures but for their alternative texts, and text that was
deleted under change tracking.

Read from the XML, not with Unstructured: `partition_docx` (0.27.32) loses the text of text boxes, checkboxes, content
controls, tracked insertions, comments and footnotes, cannot open strict Open XML, and costs 2.5 s and 290 MB of imports
and models in each parsing process.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, local_name
from rag_assets.parsing.content import Block, Failure, Page, ParsedDocument, Row
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, fill_grid, link_suffix, picture_block, sensible_title, table_block
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.word_styles import Styles, attribute, integer

_TRANSPARENT = {"sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml", "hyperlink", "fldSimple", "dir", "bdo"}
_SKIPPED = {"del", "moveFrom", "instrText", "delText", "rt", "rPr", "pPr", "sdtPr", "tblPr", "trPr", "tcPr"}
_HANGING = {"txbxContent", "footnoteReference", "endnoteReference", "commentReference", "relIds", "chart", "pic",
            "imagedata"}  # fmt: skip
_CHECKED_SYMBOLS = {"F052": "☑", "F0FE": "☑", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F0A3": "☐"}


@dataclass(slots=True)
class _Paragraph:
    """Text of a paragraph while it is read, with what hangs on it.

    Attributes:
        goes_on: Whether its end was deleted under change tracking, so that the next paragraph goes on with it.
    """

    goes_on: bool = False
    text: list[str] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)
    diagrams: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    breaks_before: int = 0
    breaks_after: int = 0

    def break_page(self) -> None:
        if "".join(self.text).strip():
            self.breaks_after += 1
        else:
            self.breaks_before += 1


def parse_docx(data: bytes, maximum_entries: int, maximum_bytes: int) -> ParsedDocument:
    """Parse a Word document.

    Args:
        data: The bytes of the file.
        maximum_entries: Entries of the archive.
        maximum_bytes: Expanded size of the archive in bytes.

    Returns:
        Pages as they were laid out when the file was last saved, where it tells; else as its manual page breaks part
        them; else one page of kind BODY. What is nested too deep, and a diagram that is damaged, is a failure of the
        page.

    Raises:
        ParseError: MALFORMED, TOO_LARGE or ENCRYPTED, from the archive; MALFORMED where it has no document.
    """
    archive = Archive(data, maximum_entries, maximum_bytes)
    main = main_part(archive, "word/document.xml")
    reader = _Reader(archive, main)
    body = archive.tree(main).find("{*}body")
    if body is None:
        raise ParseError(FailureCause.MALFORMED, f"{main}: no body")
    reader.read_body(body)
    return ParsedDocument(DocumentFormat.DOCX.value, read_title(archive), reader.pages(), tuple(reader.failures))


def main_part(archive: Archive, usual: str) -> str:
    """Name of the part that the archive's root names as its document, else the usual one."""
    relations = archive.relations("").values() if archive.has("_rels/.rels") else ()
    stated = (relation.target for relation in relations if relation.kind == "officeDocument")
    return next((part for part in stated if archive.has(part)), usual)


def read_title(archive: Archive) -> str | None:
    """Title from the core properties, where it is a sensible one."""
    if not archive.has("docProps/core.xml"):
        return None
    try:
        return sensible_title(archive.tree("docProps/core.xml").findtext("{*}title"))
    except ParseError:
        return None


def diagram_text(archive: Archive, part: str) -> str:
    """Text of a SmartArt diagram or of a chart (titles, series, categories), one line for each entry.

    Raises:
        ParseError: MALFORMED where its part is damaged.
    """
    if not archive.has(part):
        return ""
    root = archive.tree(part)
    lines: list[str] = []
    for element in root.iter("{*}pt", "{*}title", "{*}tx", "{*}cat"):
        texts = [child.text or "" for child in element.iter("{*}t", "{*}v")]
        line = clean(" ".join(text for text in texts if text.strip())).replace("\n", " ")
        if line and line not in lines:
            lines.append(line)
    return "\n".join(lines)


class _Reader:
    """Walks the body and collects blocks, page by page."""

    def __init__(self, archive: Archive, main: str) -> None:
        self.failures: list[Failure] = []
        self._cut_pages: set[int] = set()
        self._targets: dict[str, str] = {}  # of links, in the part that is being read
        self._archive = archive
        self._pages: list[list[Block]] = [[]]
        self._has_rendered_breaks = False
        self._carried: list[str] = []
        self._sections = Sections()
        self._relations = archive.relations(main)
        self._styles = Styles(archive, {relation.kind: relation.target for relation in self._relations.values()})
        self._notes = {kind: self._read_notes(kind) for kind in ("footnotes", "endnotes", "comments")}
        self._targets = archive.external_targets(main)

    def pages(self) -> tuple[Page, ...]:
        """The pages read, headers and footers on the first."""
        headers = self._headers()
        pages = [[*headers, *self._pages[0]], *self._pages[1:]]
        if len(pages) == 1:
            return (Page(1, PageKind.BODY, tuple(pages[0])),)
        return tuple(Page(number, PageKind.PAGE, tuple(blocks)) for number, blocks in enumerate(pages, start=1))

    def read_body(self, body: etree._Element) -> None:
        """Read the body of the document."""
        self._has_rendered_breaks = body.find(".//{*}lastRenderedPageBreak") is not None
        self._read_flow(body, BlockKind.PARAGRAPH, 0)
        self._end_carried(BlockKind.PARAGRAPH)
        while len(self._pages) > 1 and not self._pages[-1]:
            self._pages.pop()

    def _read_flow(self, container: etree._Element, kind: BlockKind, depth: int) -> None:
        if self._is_too_deep(container, depth):
            return
        for child in container:
            match local_name(child):
                case "p":
                    self._read_paragraph(child, kind, depth)
                case "tbl":
                    self._end_carried(kind)
                    self._read_table(child, kind, depth)
                    self._end_carried(kind)
                case "AlternateContent":
                    self._read_flow(alternative(child), kind, depth + 1)
                case name if name in _TRANSPARENT:
                    self._read_flow(child, kind, depth + 1)

    def _is_too_deep(self, element: etree._Element, depth: int) -> bool:
        """Whether the limit on depth is reached; a failure of the page says where, once for each page."""
        limit = current_limits().nesting_depth
        if depth <= limit:
            return False
        place = f"page {len(self._pages)}, below {' › '.join(self._sections.path) or 'the beginning'}"
        message = (
            f"{place}: {local_name(element)} nested deeper than {limit} levels (parsing.nesting_depth) is left out"
        )
        if len(self._pages) not in self._cut_pages:
            self.failures.append(Failure(FailureCause.TOO_LARGE, message, len(self._pages)))
        self._cut_pages.add(len(self._pages))
        return True

    def _end_carried(self, kind: BlockKind) -> None:
        """Give what was carried a paragraph of its own: there is no next one that it could go on in."""
        if text := clean("".join(self._carried)):
            self._pages[-1].append(Block(kind, text, self._sections.path))
        self._carried = []

    def _read_paragraph(self, element: etree._Element, kind: BlockKind, depth: int) -> None:
        paragraph = self._gather(element)
        style = self._styles.of(element.find("{*}pPr"))
        if kind is BlockKind.PARAGRAPH:
            self._turn_pages(paragraph.breaks_before)
        paragraph.text[:0], self._carried = self._carried, []
        if paragraph.goes_on:
            self._carried, paragraph.text = paragraph.text, []
        text = clean("".join(paragraph.text))
        if text:
            text = f"{self._styles.label(style)} {text}".strip()
            section = self._sections.path
            if style.level and kind is BlockKind.PARAGRAPH:
                section = self._sections.enter(style.level, text)
                kind_here = BlockKind.HEADING
            elif style.is_caption:
                kind_here = BlockKind.CAPTION
            else:
                kind_here = BlockKind.LIST_ITEM if style.numbering and kind is BlockKind.PARAGRAPH else kind
            self._pages[-1].append(Block(kind_here, text, section))
        self._append_hanging(paragraph, depth)
        if kind is BlockKind.PARAGRAPH:
            self._turn_pages(paragraph.breaks_after + self._section_break(element))

    def _append_hanging(self, paragraph: _Paragraph, depth: int) -> None:
        for box in paragraph.boxes:
            carried, self._carried = self._carried, []
            self._read_flow(box, BlockKind.DIAGRAM, depth + 1)
            self._end_carried(BlockKind.DIAGRAM)
            self._carried = carried
        for text in filter(None, paragraph.diagrams):
            self._pages[-1].append(Block(BlockKind.DIAGRAM, text, self._sections.path))
        captions = (picture_block(stated, self._sections.path) for stated in paragraph.pictures)
        self._pages[-1].extend(filter(None, captions))
        for kind, identifier in paragraph.notes:
            if text := self._notes[kind].get(identifier, ""):
                self._pages[-1].append(Block(BlockKind.NOTE, text, self._sections.path))

    def _read_table(self, table: etree._Element, kind: BlockKind, depth: int) -> None:
        rows = [row for row in _descend(table, "tr") if not _is_deleted(row)]
        placed: list[list[tuple[str, int, int]]] = []
        hanging: list[_Paragraph] = []
        spanning: dict[int, tuple[int, int]] = {}
        if len(rows) == 1 and len(cells := list(_descend(rows[0], "tc"))) == 1:
            self._read_flow(cells[0], kind, depth + 1)
            return
        for index, row in enumerate(rows):
            column = integer(row.find("{*}trPr/{*}gridBefore"), 0)
            line: list[tuple[str, int, int]] = [("", column, 1)] if column else []
            for cell in _descend(row, "tc"):
                columns = max(1, integer(cell.find("{*}tcPr/{*}gridSpan"), 1))
                merge = cell.find("{*}tcPr/{*}vMerge")
                if merge is not None and attribute(merge, "val") != "restart" and column in spanning:
                    start, place = spanning[column]
                    text, width, height = placed[start][place]
                    placed[start][place] = (text, width, height + 1)
                else:
                    text = self._cell_text(cell, hanging, depth + 1)
                    if merge is not None:
                        spanning[column] = (index, len(line))
                    else:
                        spanning.pop(column, None)
                    line.append((text, columns, 1))
                column += columns
            placed.append(line)
        grid = fill_grid(placed)
        if grid:
            header_row_count = min(_header_rows(table, rows), len(grid) - 1)
            self._pages[-1].append(table_block([Row(cells) for cells in grid], header_row_count, self._sections.path))
        for paragraph in hanging:
            self._append_hanging(paragraph, depth)
            if kind is BlockKind.PARAGRAPH:
                self._turn_pages(paragraph.breaks_before + paragraph.breaks_after)

    def _cell_text(self, cell: etree._Element, hanging: list[_Paragraph], depth: int) -> str:
        if self._is_too_deep(cell, depth):
            return ""
        lines: list[str] = []
        carried = ""
        for child in _content(cell):
            if local_name(child) == "p":
                paragraph = self._gather(child)
                hanging.append(paragraph)
                text = carried + "".join(paragraph.text)
                carried = text if paragraph.goes_on else ""
                if not paragraph.goes_on:
                    label = self._styles.label(self._styles.of(child.find("{*}pPr"))) if text else ""
                    lines.append(f"{label} {clean(text)}".strip())
            else:
                lines.append(clean(carried))
                carried = ""
                for row in (row for row in _descend(child, "tr") if not _is_deleted(row)):
                    cells = [self._cell_text(inner, hanging, depth + 1) for inner in _descend(row, "tc")]
                    lines.append(" ".join(text for text in cells if text))
        return "\n".join(line for line in (*lines, clean(carried)) if line)

    def _gather(self, element: etree._Element) -> _Paragraph:
        paragraph = _Paragraph(element.find("{*}pPr/{*}rPr/{*}del") is not None)
        self._gather_into(element, paragraph, 0)
        return paragraph

    def _gather_into(self, element: etree._Element, paragraph: _Paragraph, depth: int) -> None:
        if self._is_too_deep(element, depth):
            return
        for child in element:
            name = local_name(child)
            if name in _SKIPPED:
                continue
            match name:
                case "t":
                    paragraph.text.append(child.text or "")
                case "tab" | "ptab" | "cr" | "noBreakHyphen":
                    paragraph.text.append({"cr": "\n", "noBreakHyphen": "-"}.get(name, "\t"))
                case "br":
                    self._read_break(child, paragraph)
                case "lastRenderedPageBreak":
                    paragraph.break_page()
                case "sym" | "checkBox":
                    paragraph.text.append(_symbol(child) if name == "sym" else _checkbox(child))
                case "AlternateContent":
                    self._gather_into(alternative(child), paragraph, depth + 1)
                case "hyperlink":
                    begin = len(paragraph.text)
                    self._gather_into(child, paragraph, depth + 1)
                    target = self._targets.get(attribute(child, "id"), "")
                    paragraph.text.append(link_suffix("".join(paragraph.text[begin:]), target))
                case name if name in _HANGING:
                    self._gather_hanging(child, name, paragraph)
                case _:
                    self._gather_into(child, paragraph, depth + 1)

    def _gather_hanging(self, element: etree._Element, name: str, paragraph: _Paragraph) -> None:
        match name:
            case "txbxContent":
                paragraph.boxes.append(element)
            case "pic" | "imagedata":
                paragraph.pictures.append(_alternative_text(element))
            case "relIds" | "chart":
                relation = self._relations.get(attribute(element, "dm") or attribute(element, "id"))
                paragraph.diagrams.append(self._diagram_text(relation.target) if relation else "")
            case _:
                paragraph.notes.append((name.removesuffix("Reference") + "s", attribute(element, "id")))

    def _diagram_text(self, part: str) -> str:
        try:
            return diagram_text(self._archive, part)
        except ParseError as error:
            message = f"page {len(self._pages)}, diagram: {error}"
            self.failures.append(Failure(error.cause, message, len(self._pages)))
            return ""

    def _read_break(self, element: etree._Element, paragraph: _Paragraph) -> None:
        if attribute(element, "type") != "page":
            paragraph.text.append("\n")
        elif not self._has_rendered_breaks:
            paragraph.break_page()

    def _section_break(self, element: etree._Element) -> int:
        """1 where a section ends with the paragraph and the next begins a page that no rendered break tells of."""
        section = element.find("{*}pPr/{*}sectPr")
        if section is None or self._has_rendered_breaks:
            return 0
        kind = section.find("{*}type")
        return int(kind is None or attribute(kind, "val") in ("nextPage", "oddPage", "evenPage"))

    def _turn_pages(self, count: int) -> None:
        self._pages.extend([] for _ in range(count))

    def _read_notes(self, kind: str) -> dict[str, str]:
        part = next((relation.target for relation in self._relations.values() if relation.kind == kind), "")
        if not self._archive.has(part):
            return {}
        notes = {}
        self._targets = self._archive.external_targets(part)
        for note in self._archive.tree(part):
            notes[attribute(note, "id")] = self._joined_text(note)
        return notes

    def _headers(self) -> list[Block]:
        parts = dict.fromkeys(
            relation.target for relation in self._relations.values() if relation.kind in ("header", "footer")
        )
        blocks: dict[str, Block] = {}
        for part in parts:
            self._targets = self._archive.external_targets(part)
            if self._archive.has(part) and (text := self._joined_text(self._archive.tree(part))):
                blocks.setdefault(text, Block(BlockKind.HEADER, text))
        return list(blocks.values())

    def _joined_text(self, element: etree._Element) -> str:
        """Text of all paragraphs at any depth, a line for each."""
        text = []
        for element_of_paragraph in _paragraphs(element):
            paragraph = self._gather(element_of_paragraph)
            text += [*paragraph.text, "" if paragraph.goes_on else "\n"]
        return "\n".join(line for line in clean("".join(text)).split("\n") if line)


def alternative(element: etree._Element) -> etree._Element:
    """What to read of `mc:AlternateContent`: the first choice, else the fallback; never both, as they say the same.

    Returns:
        The part to read; the element itself where it holds neither.
    """
    for name in ("{*}Choice", "{*}Fallback"):
        if (found := element.find(name)) is not None:
            return found
    return element


def _alternative_text(picture: etree._Element) -> str:
    """Alternative text of a picture: its own where it is one of a group, else that of the frame that it fills."""
    parent = picture.getparent()
    if local_name(picture) == "imagedata":
        return "" if parent is None else parent.get("alt") or ""
    stated = picture.find("{*}nvPicPr/{*}cNvPr")
    if parent is not None and local_name(parent) == "graphicData":
        frame = next(picture.iterancestors("{*}inline", "{*}anchor"), None)
        stated = None if frame is None else frame.find("{*}docPr")
    return "" if stated is None else stated.get("descr") or stated.get("title") or ""


def _paragraphs(element: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs at any depth, without those that only repeat others for other programs."""
    for paragraph in element.iter("{*}p"):
        alternatives = paragraph.iterancestors("{*}Choice", "{*}Fallback")
        if all((parent := each.getparent()) is None or alternative(parent) is each for each in alternatives):
            yield paragraph


def _content(element: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs and tables of a cell, those inside content controls and the like included."""
    for child in element:
        name = local_name(child)
        if name in {"p", "tbl"}:
            yield child
        elif name == "AlternateContent":
            yield from _content(alternative(child))
        elif name in _TRANSPARENT:
            yield from _content(child)


def _symbol(element: etree._Element) -> str:
    """A symbol; those of symbol fonts stand in the private area, where only boxes with marks are known."""
    code = attribute(element, "char").upper()
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return ""
    return _CHECKED_SYMBOLS.get(code, "" if "\ud800" <= character <= "\uf8ff" else character)


def _checkbox(element: etree._Element) -> str:
    state = element.find("{*}checked")
    state = element.find("{*}default") if state is None else state
    return "☑" if state is not None and attribute(state, "val") not in ("0", "false", "off") else "☐"


def _descend(element: etree._Element, wanted: str) -> Iterator[etree._Element]:
    """Children of a name, those inside content controls and the like included."""
    for child in element:
        name = local_name(child)
        if name == wanted:
            yield child
        elif name == "AlternateContent":
            yield from _descend(alternative(child), wanted)
        elif name in _TRANSPARENT:
            yield from _descend(child, wanted)


def _is_deleted(row: etree._Element) -> bool:
    return row.find("{*}trPr/{*}del") is not None


def _header_rows(table: etree._Element, rows: list[etree._Element]) -> int:
    """Rows marked to repeat as headers; else one where the table's look sets off the first row and it is full."""
    marked = 0
    for row in rows:
        mark = row.find("{*}trPr/{*}tblHeader")
        if mark is None or attribute(mark, "val") in ("0", "false", "off"):
            break
        marked += 1
    if marked or len(rows) < 2:
        return marked
    look = table.find("{*}tblPr/{*}tblLook")
    first_row = look is not None and (
        attribute(look, "firstRow") in ("1", "true") or _hexadecimal(attribute(look, "val")) & 0x20 != 0
    )
    cells = list(_descend(rows[0], "tc"))
    return int(first_row and len(cells) > 1 and all("".join(map(str, cell.itertext())).strip() for cell in cells))


def _hexadecimal(value: str) -> int:
    try:
        return int(value, 16)
    except ValueError:
        return 0
