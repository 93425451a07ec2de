"""Word documents (docx): paragraphs, headings, lists, tables, text boxes, notes, comments, headers and footers.

Hidden text is kept and marked, as in workbooks. Pictures but for their alternative texts, and text that was deleted
under change tracking, are left out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from lxml import etree

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind, PageRole
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument, Row
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.archive import TRANSPARENT, Archive, alternative, descend, local_name, paragraphs
from rag_assets.parsing.drawings.diagrams import find_diagrams
from rag_assets.parsing.drawings.drawings import read_shapes
from rag_assets.parsing.drawings.graphics import graphic_blocks
from rag_assets.parsing.flow import (
    Sections,
    clean,
    fill_grid,
    join_letters,
    link_suffix,
    picture_block,
    rows_above_figures,
    sensible_title,
    table_block,
)
from rag_assets.parsing.limits import current_limits, depth_limit
from rag_assets.parsing.markup.mathematics import EXPONENT, formula_text
from rag_assets.parsing.office.headings import untold_headings
from rag_assets.parsing.office.rules import Rules, is_article
from rag_assets.parsing.office.styles import Style, Styles, attribute, is_on, value_of
from rag_assets.parsing.office.tables import cells_of, columns_before, header_row_count, merge_of, undeleted_rows
from rag_assets.parsing.roles import is_agenda, is_contents, is_cover
from rag_assets.parsing.sections import tell_pages

_SKIPPED = {"del", "moveFrom", "instrText", "delText", "rPr", "pPr", "sdtPr", "tblPr", "trPr", "tcPr"}
_HIDDEN, _HIDDEN_END = "\ufdd0", "\ufdd1"  # no characters: no text holds them
_STRUCK, _STRUCK_END = "\ufdd2", "\ufdd3"
_CONTENTS_LINE = re.compile(r"\t\s*[\divxlc]{1,4}\s*")
_ALL_HIDDEN = "非表示: "
_CHECKED_SYMBOLS = {"F052": "☑", "F0FE": "☑", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F0A3": "☐"}


@dataclass(slots=True)
class _Paragraph:
    """Text of a paragraph while it is read, with what hangs on it."""

    # whether its end was deleted under change tracking, so that the next paragraph goes on with it
    goes_on: bool = False
    style: Style = field(default_factory=Style)  # what its properties say
    text: list[str] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)
    diagrams: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    readings: list[str] = field(default_factory=list)  # how words with ruby are read
    breaks_before: int = 0
    breaks_after: int = 0

    def break_page(self) -> None:
        if any(part.strip() for part in self.text):
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
    main = archive.main_part("word/document.xml")
    reader = _WordReader(archive, main)
    body = archive.tree(main).find("{*}body")
    if body is None:
        raise ParseError(FailureCause.MALFORMED, f"{main}: no body")
    reader.read_body(body)
    title = sensible_title(archive.stated_title())
    pages, failures = reader.pages()
    return ParsedDocument(DocumentFormat.DOCX.value, title, pages, failures)


def _without_page(failure: Failure) -> Failure:
    """A failure of a document whose pages are not told."""
    return replace(failure, page_number=1, message=re.sub(r"^page \d+, ", "", failure.message))


def _role(number: int, blocks: Sequence[Block], page_count: int) -> PageRole | None:
    if is_contents(blocks, page_count) or is_agenda(blocks):
        return PageRole.CONTENTS
    return PageRole.COVER if number == 1 and is_cover(blocks) else None


class _WordReader:
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
        self._numbered: Mapping[etree._Element, int] = {}
        self._rules = Rules()
        self._relations = archive.relations(main)
        self._styles = Styles(archive, {relation.kind: relation.target for relation in self._relations.values()})
        self._notes = {kind: self._read_notes(kind) for kind in ("footnotes", "endnotes", "comments")}
        self._targets = archive.external_targets(main)

    def pages(self) -> tuple[tuple[Page, ...], tuple[Failure, ...]]:
        """The pages, headers and footers on the first, one where the breaks do not tell the pages; and failures."""
        headers = self._headers()
        pages = [[*headers, *self._pages[0]], *self._pages[1:]]
        if len(pages) > 1 and tell_pages(pages):
            numbered_pages = (
                Page(number, PageKind.PAGE, tuple(blocks), role=_role(number, blocks, len(pages)))
                for number, blocks in enumerate(pages, start=1)
            )
            return tuple(numbered_pages), tuple(self.failures)
        whole = Page(1, PageKind.BODY, tuple(chain.from_iterable(pages)))
        return (whole,), tuple(self.failures if len(pages) == 1 else map(_without_page, self.failures))

    def read_body(self, body: etree._Element) -> None:
        """Read the body of the document."""
        self._numbered = untold_headings(body, self._styles)
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
                case name if name in TRANSPARENT:
                    self._read_flow(child, kind, depth + 1)

    def _is_too_deep(self, element: etree._Element, depth: int) -> bool:
        """Whether the limit on depth is reached; a failure of the page says where, once for each page."""
        if depth <= current_limits().nesting_depth:
            return False
        place = f"page {len(self._pages)}, below {' › '.join(self._sections.path) or 'the beginning'}"
        if len(self._pages) not in self._cut_pages:
            message = f"{place}: {local_name(element)} nested deeper than {depth_limit()} is left out"
            self.failures.append(Failure(FailureCause.TOO_LARGE, message, len(self._pages)))
        self._cut_pages.add(len(self._pages))
        return True

    def _end_carried(self, kind: BlockKind) -> None:
        """Give what was carried a paragraph of its own: there is no next one that it could go on in."""
        if text := _gathered_text(self._carried):
            self._pages[-1].append(Block(kind, text, self._sections.path))
        self._carried = []

    def _read_paragraph(self, element: etree._Element, kind: BlockKind, depth: int) -> None:
        paragraph = self._gather(element)
        style = paragraph.style
        if kind is BlockKind.PARAGRAPH:
            self._turn_pages(paragraph.breaks_before)
        paragraph.text[:0], self._carried = self._carried, []
        if paragraph.goes_on:
            self._carried, paragraph.text = paragraph.text, []
        text = _gathered_text(paragraph.text)
        if text.startswith(_ALL_HIDDEN):
            self._pages[-1].append(Block(BlockKind.NOTE, text, self._sections.path))
        elif text:
            level = self._numbered.get(element, 0)
            if _CONTENTS_LINE.fullmatch("".join(paragraph.text[-2:])):
                style = replace(style, is_contents=True)
            self._append_text(f"{self._styles.label(style)} {text}".strip(), style, kind, level)
        self._append_hanging(paragraph, depth)
        if kind is BlockKind.PARAGRAPH:
            self._turn_pages(paragraph.breaks_after + self._section_break(element))

    def _append_text(self, text: str, style: Style, kind: BlockKind, level: int = 0) -> None:
        """Append a paragraph as what it is; where its first line is the title of an article, that is one by itself."""
        head, _, rest = text.partition("\n")
        is_plain = kind is BlockKind.PARAGRAPH and not style.level and not style.is_contents
        if is_plain and rest and is_article(head) and (article_level := self._rules.level(head, self._sections.path)):
            self._pages[-1].append(Block(BlockKind.HEADING, head, self._sections.enter(article_level, head)))
            text, style = rest, Style()
        section = self._sections.path
        if kind is BlockKind.PARAGRAPH and (level := self._level(text, style, level)):
            section = self._sections.enter(level, text)
            kind = BlockKind.HEADING
        elif style.is_caption:
            kind = BlockKind.CAPTION
        elif style.numbering and kind is BlockKind.PARAGRAPH:
            kind = BlockKind.LIST_ITEM
        self._pages[-1].append(Block(kind, text, section))

    def _level(self, text: str, style: Style, numbered_level: int) -> int:
        """Level of a paragraph that is a heading by its style, by its number or, in rules, by its words; else 0."""
        if style.level:
            self._rules.pass_styled(text, style.level)
            return style.level
        if style.is_contents:
            return 0
        in_chapter = self._rules.chapter_level if self._rules.has_chapters else 0
        return self._rules.level(text, self._sections.path) or (numbered_level and numbered_level + in_chapter)

    def _append_hanging(self, paragraph: _Paragraph, depth: int) -> None:
        if paragraph.readings:
            self._pages[-1].append(Block(BlockKind.PARAGRAPH, " ".join(paragraph.readings), self._sections.path))
        for box in paragraph.boxes:
            carried_parts, self._carried = self._carried, []
            self._read_flow(box, BlockKind.DIAGRAM, depth + 1)
            self._end_carried(BlockKind.DIAGRAM)
            self._carried = carried_parts
        if paragraph.edges:
            self._pages[-1].append(Block(BlockKind.DIAGRAM, "\n".join(paragraph.edges), self._sections.path))
        for part in paragraph.diagrams:
            self._pages[-1].extend(self._graphic_blocks(part))
        captions = (picture_block(description, self._sections.path) for description in paragraph.pictures)
        self._pages[-1].extend(filter(None, captions))
        for kind, identifier in paragraph.notes:
            if text := self._notes[kind].get(identifier, ""):
                self._pages[-1].append(Block(BlockKind.NOTE, text, self._sections.path))

    def _read_table(self, table: etree._Element, kind: BlockKind, depth: int) -> None:
        rows = undeleted_rows(table)
        placed_cells: list[list[tuple[str, int, int]]] = []
        hanging: list[_Paragraph] = []
        spans: dict[int, tuple[int, int]] = {}
        if len(rows) == 1 and len(cells := list(descend(rows[0], "tc"))) == 1:
            self._read_flow(cells[0], kind, depth + 1)
            return
        for index, row in enumerate(rows):
            before = columns_before(row)
            line: list[tuple[str, int, int]] = [("", before, 1)] if before else []
            for column, columns, cell in cells_of(row):
                merge = merge_of(cell)
                if merge not in ("", "restart") and column in spans:
                    start, place = spans[column]
                    text, width, height = placed_cells[start][place]
                    placed_cells[start][place] = (text, width, height + 1)
                    continue
                text = self._cell_text(cell, hanging, depth + 1)
                if merge:
                    spans[column] = (index, len(line))
                else:
                    spans.pop(column, None)
                line.append((text, columns, 1))
            placed_cells.append(line)
        if grid := fill_grid(placed_cells):
            has_styled_first = self._styles.sets_off_first_row(table.find("{*}tblPr"))
            marked_rows = header_row_count(rows, has_styled_first=has_styled_first)
            header_rows = min(max(marked_rows, rows_above_figures(grid)), len(grid) - 1)
            self._pages[-1].append(table_block([Row(cells) for cells in grid], header_rows, self._sections.path))
        for paragraph in hanging:
            self._append_hanging(paragraph, depth)
            if kind is BlockKind.PARAGRAPH:
                self._turn_pages(paragraph.breaks_before + paragraph.breaks_after)

    def _cell_text(self, cell: etree._Element, hanging: list[_Paragraph], depth: int) -> str:
        if self._is_too_deep(cell, depth):
            return ""
        lines: list[str] = []
        carried_text = ""
        for child in descend(cell, "p", "tbl"):
            if local_name(child) == "p":
                paragraph = self._gather(child)
                hanging.append(paragraph)
                text = carried_text + "".join(paragraph.text)
                carried_text = text if paragraph.goes_on else ""
                if not paragraph.goes_on:
                    label = self._styles.label(paragraph.style) if text else ""
                    lines.append(f"{label} {_gathered_text([text])}".strip())
            else:
                lines.append(_gathered_text([carried_text]))
                carried_text = ""
                for row in undeleted_rows(child):
                    cells = [self._cell_text(inner, hanging, depth + 1) for inner in descend(row, "tc")]
                    lines.append(" ".join(text for text in cells if text))
        return "\n".join(line for line in (*lines, _gathered_text([carried_text])) if line)

    def _gather(self, element: etree._Element) -> _Paragraph:
        goes_on = element.find("{*}pPr/{*}rPr/{*}del") is not None
        paragraph = _Paragraph(goes_on, self._styles.of(element.find("{*}pPr")))
        self._gather_into(element, paragraph, 0)
        return paragraph

    def _gather_into(self, element: etree._Element, paragraph: _Paragraph, depth: int) -> None:
        if self._is_too_deep(element, depth):
            return
        for child in element:
            match name := local_name(child):
                case _ if name in _SKIPPED:
                    pass
                case _ if name in _SIGNS:
                    paragraph.text.append(_SIGNS[name](child))
                case "rt":
                    reading = _Paragraph(style=paragraph.style)
                    self._gather_into(child, reading, depth + 1)
                    paragraph.readings.extend(filter(None, [_gathered_text(reading.text)]))
                case "r":
                    self._gather_run(child, paragraph, depth)
                case "br" if attribute(child, "type") != "page":
                    paragraph.text.append("\n")
                case "br" if self._has_rendered_breaks:
                    pass
                case "br" | "lastRenderedPageBreak":
                    paragraph.break_page()
                case "AlternateContent":
                    self._gather_into(alternative(child), paragraph, depth + 1)
                case "hyperlink":
                    begin = len(paragraph.text)
                    self._gather_into(child, paragraph, depth + 1)
                    target = self._targets.get(attribute(child, "id"), "")
                    paragraph.text.append(link_suffix("".join(paragraph.text[begin:]), target))
                case _:
                    self._gather_hanging(child, name, paragraph, depth)

    def _gather_run(self, run: etree._Element, paragraph: _Paragraph, depth: int) -> None:
        """Gather a run: marked where it is hidden, behind `^` where it is an exponent of a number."""
        properties = run.find("{*}rPr")
        begin = len(paragraph.text)
        self._gather_into(run, paragraph, depth + 1)
        run_text = "".join(paragraph.text[begin:])
        if self._styles.hides(properties, paragraph.style):
            paragraph.text[begin:] = [f"{_HIDDEN}{run_text}{_HIDDEN_END}"] if run_text.strip() else []
        elif properties is None:
            return
        elif run_text.strip() and any(is_on(properties.find(f"{{*}}{name}")) for name in ("strike", "dstrike")):
            paragraph.text[begin:] = [f"{_STRUCK}{run_text}{_STRUCK_END}"]
        elif value_of(properties.find("{*}vertAlign")) == "superscript" and EXPONENT.fullmatch(run_text):
            before = next((paragraph.text[place] for place in range(begin - 1, -1, -1) if paragraph.text[place]), "")
            if before[-1:].isdecimal():
                paragraph.text.insert(begin, "^")

    def _gather_hanging(self, element: etree._Element, name: str, paragraph: _Paragraph, depth: int) -> None:
        match name:
            case "txbxContent":
                paragraph.boxes.append(element)
            case "pic" | "imagedata":
                paragraph.pictures.append(_alternative_text(element))
            case "relIds" | "chart":
                relation = self._relations.get(attribute(element, "dm") or attribute(element, "id"))
                paragraph.diagrams.extend([relation.target] if relation else [])
            case "footnoteReference" | "endnoteReference" | "commentReference":
                paragraph.notes.append((name.removesuffix("Reference") + "s", attribute(element, "id")))
            case _:
                if name in ("wgp", "wpc") and next(element.iterancestors("{*}wgp", "{*}wpc"), None) is None:
                    drawing = read_shapes(self._archive, self._relations, element)
                    paragraph.edges += [edge for diagram in find_diagrams(drawing, {}) for edge in diagram.edges]
                self._gather_into(element, paragraph, depth + 1)

    def _graphic_blocks(self, part: str) -> list[Block]:
        try:
            return graphic_blocks(self._archive, part, self._sections.path)
        except ParseError as error:
            message = f"page {len(self._pages)}, diagram: {error}"
            self.failures.append(Failure(error.cause, message, len(self._pages)))
            return []

    def _section_break(self, element: etree._Element) -> int:
        """1 where a section ends with the paragraph and the next begins a page that no rendered break tells of."""
        section = element.find("{*}pPr/{*}sectPr")
        if section is None or self._has_rendered_breaks:
            return 0
        kind = section.find("{*}type")
        return int(kind is None or value_of(kind) in ("nextPage", "oddPage", "evenPage"))

    def _turn_pages(self, count: int) -> None:
        self._pages.extend([] for _ in range(count))

    def _read_notes(self, kind: str) -> dict[str, str]:
        part = next((relation.target for relation in self._relations.values() if relation.kind == kind), "")
        if not self._archive.has(part):
            return {}
        self._targets = self._archive.external_targets(part)
        return {attribute(note, "id"): self._joined_text(note) for note in self._archive.tree(part)}

    def _headers(self) -> list[Block]:
        relations = (relation for relation in self._relations.values() if relation.kind in ("header", "footer"))
        blocks: dict[str, Block] = {}
        for part in dict.fromkeys(relation.target for relation in relations):
            self._targets = self._archive.external_targets(part)
            if self._archive.has(part) and (text := self._joined_text(self._archive.tree(part))):
                blocks.setdefault(text, Block(BlockKind.HEADER, text))
        return list(blocks.values())

    def _joined_text(self, element: etree._Element) -> str:
        """Text of all paragraphs at any depth, a line for each, then how words with ruby are read."""
        text, readings = list[str](), list[str]()
        for element_of_paragraph in paragraphs(element):
            paragraph = self._gather(element_of_paragraph)
            text += [*paragraph.text, "" if paragraph.goes_on else "\n"]
            readings += paragraph.readings
        return "\n".join(line for line in (*_gathered_text(text).split("\n"), " ".join(readings)) if line)


def _gathered_text(parts: Sequence[str]) -> str:
    """A gathered text, struck parts as `~~…~~`, hidden ones as `（非表示: …）` or, where all is hidden, `非表示: …`."""
    text = clean("".join(parts).replace(_HIDDEN_END + _HIDDEN, "").replace(_STRUCK_END + _STRUCK, ""))
    text = join_letters(text).replace(_STRUCK, "~~").replace(_STRUCK_END, "~~")
    if _HIDDEN not in text:
        return text
    if text[0] == _HIDDEN and text.find(_HIDDEN_END) == len(text) - 1:
        return f"{_ALL_HIDDEN}{text[1:-1].strip()}"
    return clean(text.replace(_HIDDEN, "（非表示: ").replace(_HIDDEN_END, "）"))


def _alternative_text(picture: etree._Element) -> str:
    """Alternative text of a picture: its own where it is one of a group, else that of the frame that it fills."""
    parent = picture.getparent()
    if local_name(picture) == "imagedata":
        return "" if parent is None else parent.get("alt") or ""
    properties = picture.find("{*}nvPicPr/{*}cNvPr")
    if parent is not None and local_name(parent) == "graphicData":
        frame = next(picture.iterancestors("{*}inline", "{*}anchor"), None)
        properties = None if frame is None else frame.find("{*}docPr")
    return "" if properties is None else properties.get("descr") or properties.get("title") or ""


def _symbol(element: etree._Element) -> str:
    """A symbol; those of symbol fonts stand in the private area, where only boxes with marks are known."""
    code = attribute(element, "char").upper()
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return ""
    return _CHECKED_SYMBOLS.get(code, "" if "\ud800" <= character <= "\uf8ff" else character)


def _checkbox(element: etree._Element) -> str:
    is_checked = is_on(element.find("{*}checked"), default=is_on(element.find("{*}default")))
    return "☑" if is_checked else "☐"


_SIGNS: dict[str, Callable[[etree._Element], str]] = {
    "t": lambda element: element.text or "",
    "tab": lambda _: "\t",
    "ptab": lambda _: "\t",
    "cr": lambda _: "\n",
    "noBreakHyphen": lambda _: "-",
    "sym": _symbol,
    "symEx": _symbol,
    "checkBox": _checkbox,
    "oMath": formula_text,
    "oMathPara": formula_text,
}
