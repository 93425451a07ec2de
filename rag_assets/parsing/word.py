"""Word documents (docx): paragraphs, headings, lists, tables, text boxes, notes, comments, headers and footers.

What stays out: the zip container (`archive.Archive`), pictures, and text that was deleted under change tracking.

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
from rag_assets.parsing.content import Block, Page, ParsedDocument, Row
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.flow import Sections, clean, fill_grid, sensible_title, table_block
from rag_assets.parsing.word_styles import Styles, attribute, integer

_TRANSPARENT = {"sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml", "hyperlink", "fldSimple", "dir", "bdo"}
_SKIPPED = {"del", "moveFrom", "instrText", "delText", "Fallback", "rt", "rPr", "pPr", "sdtPr", "tblPr", "trPr", "tcPr"}
_CHECKED_SYMBOLS = {"F052": "☑", "F0FE": "☑", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F0A3": "☐"}
_MAXIMUM_DEPTH = 60


@dataclass(slots=True)
class _Paragraph:
    """Text of a paragraph while it is read, with what hangs on it."""

    text: list[str] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)
    diagrams: list[str] = field(default_factory=list)
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
        them; else one page of kind BODY.

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
    return ParsedDocument(DocumentFormat.DOCX.value, read_title(archive), reader.pages())


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
    """Text of a SmartArt diagram or of a chart (titles, series, categories), one line for each entry."""
    if not archive.has(part):
        return ""
    try:
        root = archive.tree(part)
    except ParseError:
        return ""
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
        self._archive = archive
        self._relations = archive.relations(main)
        self._styles = Styles(archive, {relation.kind: relation.target for relation in self._relations.values()})
        self._notes = {kind: self._read_notes(kind) for kind in ("footnotes", "endnotes", "comments")}
        self._has_rendered_breaks = False
        self._carried: list[str] = []
        self._pages: list[list[Block]] = [[]]
        self._sections = Sections()

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
        if text := clean("".join(self._carried)):
            self._pages[-1].append(Block(BlockKind.PARAGRAPH, text, self._sections.path))
        while len(self._pages) > 1 and not self._pages[-1]:
            self._pages.pop()

    def _read_flow(self, container: etree._Element, kind: BlockKind, depth: int) -> None:
        if depth > _MAXIMUM_DEPTH:
            return
        for child in container:
            match local_name(child):
                case "p":
                    self._read_paragraph(child, kind, depth)
                case "tbl":
                    self._read_table(child, kind, depth)
                case name if name in _TRANSPARENT:
                    self._read_flow(child, kind, depth + 1)

    def _read_paragraph(self, element: etree._Element, kind: BlockKind, depth: int) -> None:
        paragraph = self._gather(element)
        style = self._styles.of(element.find("{*}pPr"))
        if kind is BlockKind.PARAGRAPH:
            self._turn_pages(paragraph.breaks_before)
        paragraph.text[:0], self._carried = self._carried, []
        if element.find("{*}pPr/{*}rPr/{*}del") is not None:  # its end was deleted: it goes on in the next one
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
            self._read_flow(box, BlockKind.DIAGRAM, depth + 1)
        for text in filter(None, paragraph.diagrams):
            self._pages[-1].append(Block(BlockKind.DIAGRAM, text, self._sections.path))
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
        lines = []
        for child in cell:
            name = local_name(child)
            if name == "p":
                paragraph = self._gather(child)
                hanging.append(paragraph)
                label = self._styles.label(self._styles.of(child.find("{*}pPr"))) if paragraph.text else ""
                lines.append(f"{label} {clean(''.join(paragraph.text))}".strip())
            elif depth < _MAXIMUM_DEPTH and name == "tbl":
                for row in _descend(child, "tr"):
                    cells = (self._cell_text(inner, hanging, depth + 1) for inner in _descend(row, "tc"))
                    lines.append(" ".join(text for text in cells if text))
            elif depth < _MAXIMUM_DEPTH and name in _TRANSPARENT:
                lines.append(self._cell_text(child, hanging, depth + 1))
        return "\n".join(line for line in lines if line)

    def _gather(self, element: etree._Element) -> _Paragraph:
        paragraph = _Paragraph()
        self._gather_into(element, paragraph, 0)
        return paragraph

    def _gather_into(self, element: etree._Element, paragraph: _Paragraph, depth: int) -> None:
        for child in element:
            name = local_name(child)
            if name in _SKIPPED or depth > _MAXIMUM_DEPTH:
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
                case "sym":
                    paragraph.text.append(_CHECKED_SYMBOLS.get(attribute(child, "char").upper(), ""))
                case "checkBox":
                    paragraph.text.append(_checkbox(child))
                case "txbxContent":
                    paragraph.boxes.append(child)
                case "footnoteReference" | "endnoteReference" | "commentReference":
                    paragraph.notes.append((name.removesuffix("Reference") + "s", attribute(child, "id")))
                case "relIds" | "chart":
                    relation = self._relations.get(attribute(child, "dm") or attribute(child, "id"))
                    paragraph.diagrams.append(diagram_text(self._archive, relation.target) if relation else "")
                case _:
                    self._gather_into(child, paragraph, depth + 1)

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
        for note in self._archive.tree(part):
            lines = (clean("".join(self._gather(paragraph).text)) for paragraph in _paragraphs(note))
            notes[attribute(note, "id")] = "\n".join(line for line in lines if line)
        return notes

    def _headers(self) -> list[Block]:
        parts = dict.fromkeys(
            relation.target for relation in self._relations.values() if relation.kind in ("header", "footer")
        )
        blocks: dict[str, Block] = {}
        for part in parts:
            if self._archive.has(part):
                lines = (clean("".join(self._gather(line).text)) for line in _paragraphs(self._archive.tree(part)))
                text = "\n".join(line for line in lines if line)
                if text:
                    blocks.setdefault(text, Block(BlockKind.HEADER, text))
        return list(blocks.values())


def _paragraphs(element: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs at any depth, without those that only repeat others for older programs."""
    for paragraph in element.iter("{*}p"):
        if next(paragraph.iterancestors("{*}Fallback"), None) is None:
            yield paragraph


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
