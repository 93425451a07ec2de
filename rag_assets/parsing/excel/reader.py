"""Spreadsheets (xlsx, xlsm, xls, xlsb, ods): a page for each sheet, with blocks and exact cell ranges.

Sheets of Office Open XML workbooks are read from their XML, since merged ranges, number formats, lines, drawings and
comments are all needed; other formats go through python-calamine, which gives values, which sheets are hidden, and of
xls merged ranges. Macros, external references and formulas are never evaluated: what is shown is the value that the
workbook stored last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive
from rag_assets.parsing.drawings.controls import read_controls, with_controls
from rag_assets.parsing.drawings.diagrams import diagram_blocks, diagram_problems
from rag_assets.parsing.drawings.drawings import read_drawing
from rag_assets.parsing.excel.cells import SheetCells, parse_area, read_sheet
from rag_assets.parsing.excel.choices import ListReader
from rag_assets.parsing.excel.encryption import open_container
from rag_assets.parsing.excel.layout.sections import arrange
from rag_assets.parsing.excel.layout.sheet import cell_blocks
from rag_assets.parsing.excel.notes import choice_blocks, comment_blocks, hidden_blocks, margin_blocks, with_formulas
from rag_assets.parsing.excel.roles import sheet_role
from rag_assets.parsing.excel.values import open_values, read_values, sheet_states
from rag_assets.parsing.excel.workbook import SheetEntry, Workbook, open_workbook

_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP_MAGIC = b"PK"
_RUNNING_HEADER_ROWS = 6


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Blocks of a sheet, and what had to be left out of it."""

    blocks: tuple[Block, ...]
    problems: tuple[ParseError, ...] = ()


@dataclass(frozen=True, slots=True)
class ExcelLimits:
    """Limits within which one workbook is read.

    Attributes:
        cells: Cells of a sheet; also shared strings of a workbook.
        pages: Sheets.
        expanded_bytes: Size of the archive in bytes, expanded.
        archive_entries: Entries of the archive.
    """

    cells: int
    pages: int
    expanded_bytes: int
    archive_entries: int


def parse_excel(data: bytes, limits: ExcelLimits, passwords: Sequence[str] = ()) -> ParsedDocument:
    """Read a workbook.

    Args:
        data: The bytes of the file; their content, not a name, decides on the format.
        limits: Limits to keep.
        passwords: Tried in order on an encrypted workbook.

    Returns:
        A page for each sheet in workbook order, hidden ones included; a failure for each sheet that could not be read,
        and for what had to be left out of one.

    Raises:
        ParseError: The whole workbook cannot be read: ENCRYPTED, MALFORMED, TOO_LARGE or UNSUPPORTED_FORMAT.
    """
    if data.startswith(_OLE_MAGIC):
        data = open_container(data, passwords)
    if not data.startswith(_ZIP_MAGIC):
        return _parse_values(data, "xls", limits)
    archive = Archive(data, limits.archive_entries, limits.expanded_bytes)
    if archive.has("xl/workbook.bin"):
        return _parse_values(data, "xlsb", limits)
    if archive.has("mimetype") and b"opendocument.spreadsheet" in archive.read("mimetype"):
        return _parse_values(data, "ods", limits)
    return _parse_archive(archive, limits)


def _parse_archive(archive: Archive, limits: ExcelLimits) -> ParsedDocument:
    workbook = open_workbook(archive, limits.cells)
    states = [(entry.name, entry.hidden) for entry in workbook.sheets]
    lists = ListReader(workbook, limits.cells)

    def read(index: int) -> _Sheet:
        return _read_sheet(workbook, workbook.sheets[index], limits.cells, lists)

    form = "xlsm" if archive.has("xl/vbaProject.bin") else "xlsx"
    return _document(form, workbook.title, states, read, limits.pages)


def _parse_values(data: bytes, form: str, limits: ExcelLimits) -> ParsedDocument:
    try:
        workbook = open_values(data)

        def read(index: int) -> _Sheet:
            return _Sheet(arrange(cell_blocks(read_values(workbook, index, limits.cells))))

        return _document(form, None, sheet_states(workbook), read, limits.pages)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the reader's own failure, which is no Exception
            raise
        raise ParseError(FailureCause.MALFORMED, f"workbook: its reader failed: {error}") from None


def _read_sheet(workbook: Workbook, entry: SheetEntry, maximum_cells: int, lists: ListReader) -> _Sheet:
    """A sheet: cells with controls, drawings and comments by place, then lists to choose from and what is hidden."""
    if entry.part is None:
        raise ParseError(FailureCause.MALFORMED, "the workbook names no part for it")
    archive = workbook.archive
    found = archive.relations(entry.part).items()
    relations = {identity: relation for identity, relation in found if archive.has(relation.target)}
    problems: list[ParseError] = []
    drawings = []
    for part in relations.values():
        if part.kind == "drawing":
            try:
                drawings.append(read_drawing(archive, part.target))
            except ParseError as error:
                problems.append(error)  # it takes nothing from the cells
    cells = SheetCells({})
    if entry.kind not in {"chartsheet", "dialogsheet"}:
        cells = read_sheet(archive, entry.part, workbook.strings, workbook.styles, maximum_cells)
        controls = read_controls(archive, relations, cells, (shape for part in drawings for shape in part.shapes))
        cells = with_controls(cells, controls.placed)
        drawings = [drawing.without_controls(controls.numbers) for drawing in drawings]
        problems += (*cells.problems, *controls.problems)
    blocks = cell_blocks(cells)
    for drawing in drawings:
        blocks.extend(diagram_blocks(drawing, cells.texts))
        problems += diagram_problems(drawing)
    try:
        blocks.extend(comment_blocks(archive, relations.values(), workbook.people))
    except ParseError as error:
        problems.append(error)
    notes = [
        *choice_blocks(cells, lists.values_for(entry, cells)),
        *hidden_blocks(cells),
        *margin_blocks(cells.margins),
    ]
    return _Sheet(with_formulas([*arrange(blocks), *notes], cells.formulas), tuple(problems))


def _document(
    form: str,
    title: str | None,
    states: list[tuple[str, bool]],
    read: Callable[[int], _Sheet],
    maximum_pages: int,
) -> ParsedDocument:
    if len(states) > maximum_pages:
        raise ParseError(FailureCause.TOO_LARGE, f"workbook: {len(states)} sheets, limit {maximum_pages}")
    if not states:
        raise ParseError(FailureCause.MALFORMED, "workbook: no sheets")
    pages, failures = [], []
    unreadable = 0
    for index, (name, hidden) in enumerate(states):
        try:
            sheet = read(index)
        except ParseError as error:
            failures.append(Failure(error.cause, f'sheet "{name}": {error}', page_number=index + 1))
            pages.append(Page(index + 1, PageKind.SHEET, (), name, hidden))
            unreadable += 1
            continue
        failures.extend(Failure(error.cause, f'sheet "{name}": {error}', index + 1) for error in sheet.problems)
        role = sheet_role(name, sheet.blocks)
        pages.append(Page(index + 1, PageKind.SHEET, sheet.blocks, name, hidden, role=role))
    if unreadable == len(states):
        raise ParseError(failures[0].cause, f"no sheet can be read: {failures[0].message}")
    return ParsedDocument(form, title, _mark_running_headers(pages), tuple(failures))


def _mark_running_headers(pages: list[Page]) -> tuple[Page, ...]:
    """Mark the form at the top of a sheet as a running header where an earlier sheet begins with the same one."""
    seen: set[str] = set()
    marked = []
    for page in pages:
        first = page.blocks[0] if page.blocks else None
        if first is not None and _is_form_on_top(first):
            if first.text in seen:
                header = replace(first, kind=BlockKind.HEADER)
                page = replace(page, blocks=(header, *page.blocks[1:]))  # noqa: PLW2901
            seen.add(first.text)
        marked.append(page)
    return tuple(marked)


def _is_form_on_top(block: Block) -> bool:
    area = parse_area(block.cell_range or "")
    is_form = block.kind is BlockKind.TABLE and not block.header_row_count
    return is_form and area is not None and area.bottom < _RUNNING_HEADER_ROWS
