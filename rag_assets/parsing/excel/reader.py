"""Spreadsheets (xlsx, xlsm, xls, xlsb, ods): a page for each sheet, with blocks and exact cell ranges.

Sheets of Office Open XML workbooks are read from their XML, since merged ranges, number formats, lines, drawings and
comments are all needed. Other formats go through python-calamine, which gives values and of xls merged ranges, but no
lines, number formats (dates excepted), formulas, links, drawings and comments, nor the merged ranges of xlsb and ods.
Macros, external references and formulas are never evaluated: what is shown is the value that the workbook stored last.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from io import BytesIO

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetVisibleEnum,
)

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind, PageRole
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, open_container
from rag_assets.parsing.detect import OLE_MAGIC
from rag_assets.parsing.drawings.controls import place_controls
from rag_assets.parsing.drawings.diagrams import diagram_blocks, diagram_problems
from rag_assets.parsing.drawings.drawings import ShapeKind, read_drawing
from rag_assets.parsing.excel import notes
from rag_assets.parsing.excel.cells import MAXIMUM_CHARS, SheetCells, block_area, disjoint, read_sheet, take_covered
from rag_assets.parsing.excel.formats import general
from rag_assets.parsing.excel.layout.sections import arrange
from rag_assets.parsing.excel.layout.sheet import cell_blocks
from rag_assets.parsing.excel.workbook import SheetEntry, Workbook, clean_text, open_workbook
from rag_assets.parsing.flow import ONLY_PICTURES
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.text.cells import Area

_ZIP_MAGIC = b"PK"
_RUNNING_HEADER_ROWS = 6
_NAMES = (
    (PageRole.COVER, re.compile(r"表紙|cover(page|sheet)?|titlepage")),
    (
        PageRole.REVISION_HISTORY,
        re.compile(
            r"(文書|資料)?(変更|改訂|改定|更新|改版|修正)(履歴|来歴|記録)(表|一覧)?"
            r"|(revision|change|version)(history|log|record)s?|revisions|changelog"
        ),
    ),
    (PageRole.CONTENTS, re.compile(r"目次|contents|tableofcontents")),
)
_REVISION_COLUMNS = (
    re.compile(r"版数?|バージョン|ver(sion|\.)?|no\.?|rev(ision|\.)?|改訂番号"),
    re.compile(r"(変更|改訂|改定|更新|作成|修正)?(年月)?日付?|date"),
    re.compile(r"(変更|改訂|改定|更新|修正)?(内容|箇所|区分|理由).*|description|changes?|summary"),
)
_LONG_BLOCKS = 40
_LONG_TEXT_CHARS = 50
_SENTENCE = re.compile(r"。|[a-z]{2}\. [A-Z]|[a-z]{2}\.$")
_LEAST_LONG_TEXTS = 3  # of a sheet that explains something, whatever its name

Sheet = tuple[Sequence[Block], Sequence[ParseError]]
"""Blocks of a sheet, and what had to be left out of it."""

_Value = int | float | str | bool | time | date | datetime | timedelta


def parse_excel(data: bytes, limits: ParsingLimits, passwords: Sequence[str] = ()) -> ParsedDocument:
    """Read a workbook.

    Args:
        data: The bytes of the file; their content, not a name, decides on the format.
        limits: Limits to keep; that of cells holds for each sheet, and for the shared strings of the workbook.
        passwords: Tried in order on an encrypted workbook.

    Returns:
        A page for each sheet in workbook order, hidden ones included; a failure for each sheet that could not be read,
        and for what had to be left out of one.

    Raises:
        ParseError: The whole workbook cannot be read: ENCRYPTED, MALFORMED, TOO_LARGE or UNSUPPORTED_FORMAT.
    """
    if data.startswith(OLE_MAGIC):
        data = open_container(data, passwords)
    if not data.startswith(_ZIP_MAGIC):
        return _parse_values(data, "xls", limits)
    archive = Archive(data, limits.archive_entries, limits.expanded_bytes)
    if archive.has("xl/workbook.bin"):
        return _parse_values(data, "xlsb", limits)
    if archive.has("mimetype") and b"opendocument.spreadsheet" in archive.read("mimetype"):
        return _parse_values(data, "ods", limits)
    workbook = open_workbook(archive, limits.cells)
    states = [(entry.name, entry.hidden) for entry in workbook.sheets]
    lists = notes.ListReader(workbook, limits.cells)
    form = "xlsm" if archive.has("xl/vbaProject.bin") else "xlsx"

    def read(index: int) -> Sheet:
        return _read_sheet(workbook, workbook.sheets[index], limits.cells, lists)

    return _document(form, workbook.title, states, read, limits.pages)


def _parse_values(data: bytes, form: str, limits: ParsingLimits) -> ParsedDocument:
    try:
        workbook = open_values(data)

        def read(index: int) -> Sheet:
            return arrange(cell_blocks(read_values(workbook, index, limits.cells))), ()

        states = [(sheet.name, sheet.visible != SheetVisibleEnum.Visible) for sheet in workbook.sheets_metadata]
        return _document(form, None, states, read, limits.pages)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the reader's own failure, which is no Exception
            raise
        raise ParseError(FailureCause.MALFORMED, f"workbook: its reader failed: {error}") from None


def _read_sheet(workbook: Workbook, entry: SheetEntry, maximum_cells: int, lists: notes.ListReader) -> Sheet:
    """A sheet: cells with controls, drawings and comments by place, then lists to choose from and what is hidden."""
    if entry.part is None:
        raise ParseError(FailureCause.MALFORMED, "the workbook names no part for it")
    archive = workbook.archive
    stated_relations = archive.relations(entry.part).items()
    relations = {identity: relation for identity, relation in stated_relations if archive.has(relation.target)}
    problems: list[ParseError] = []
    drawings = []
    for relation in relations.values():
        if relation.kind == "drawing":
            try:
                drawings.append(read_drawing(archive, relation.target))
            except ParseError as error:
                problems.append(error)  # it takes nothing from the cells
    cells = SheetCells({})
    if entry.kind not in {"chartsheet", "dialogsheet"}:
        cells = read_sheet(workbook, entry.part, maximum_cells)
        problems += cells.problems
        shapes = [shape for drawing in drawings for shape in drawing.shapes]
        cells, controls = place_controls(archive, relations, cells, shapes, problems)
        drawings = [drawing.without_controls(controls) for drawing in drawings]
    blocks = cell_blocks(cells)
    for drawing in drawings:
        blocks += diagram_blocks(drawing, cells.texts)
        problems += diagram_problems(drawing)
    try:
        blocks += notes.comment_blocks(archive, relations.values(), workbook.people)
    except ParseError as error:
        problems.append(error)
    if not blocks and any(shape.kind is ShapeKind.PICTURE for drawing in drawings for shape in drawing.shapes):
        problems.append(ParseError(FailureCause.NO_TEXT, ONLY_PICTURES))
    arranged_blocks = notes.with_formulas(arrange(blocks), cells.formulas)
    choices, hidden = notes.choice_blocks(cells, entry.name, lists), notes.hidden_blocks(cells)
    return [*arranged_blocks, *choices, *hidden, *notes.margin_blocks(cells.margins)], problems


def _document(
    form: str, title: str | None, states: list[tuple[str, bool]], read: Callable[[int], Sheet], maximum_pages: int
) -> ParsedDocument:
    if len(states) > maximum_pages:
        raise ParseError(FailureCause.TOO_LARGE, f"workbook: {len(states)} sheets, limit {maximum_pages}")
    if not states:
        raise ParseError(FailureCause.MALFORMED, "workbook: no sheets")
    pages: list[Page] = []
    failures: list[Failure] = []
    forms: set[str] = set()
    unreadable_count = 0
    for number, (name, hidden) in enumerate(states, 1):
        try:
            blocks, problems = read(number - 1)
            role = sheet_role(name, blocks)
        except ParseError as error:
            blocks, problems, role = (), (error,), None
            unreadable_count += 1
        failures.extend(Failure(error.cause, f'sheet "{name}": {error}', number) for error in problems)
        blocks = _mark_running_header(blocks, forms)
        pages.append(Page(number, PageKind.SHEET, blocks, name, hidden, role=role))
    if unreadable_count == len(states):
        raise ParseError(failures[0].cause, f"no sheet can be read: {failures[0].message}")
    return ParsedDocument(form, title, tuple(pages), tuple(failures))


def _mark_running_header(blocks: Sequence[Block], forms: set[str]) -> tuple[Block, ...]:
    """Blocks of a sheet, a form on top marked as a running header where an earlier sheet begins with the same one."""
    if not blocks:
        return ()
    first = blocks[0]
    is_form = first.kind is BlockKind.TABLE and not first.header_row_count
    if not is_form or block_area(first).bottom >= _RUNNING_HEADER_ROWS:
        return tuple(blocks)
    if first.text in forms:
        return replace(first, kind=BlockKind.HEADER), *blocks[1:]
    forms.add(first.text)
    return tuple(blocks)


def sheet_role(name: str, blocks: Sequence[Block]) -> PageRole | None:
    """What a sheet is for, told from its name, or from the title and the columns on it; None where it is content.

    Covers, revision histories and tables of contents repeat names and dates of all documents of a project. They are
    kept and searched; the mark lets a search or an extraction of facts leave them out. A cover or table of contents
    that explains more, in several long texts, is content.
    """
    role = _role_by_name(name)
    if role is not None:
        explains = role is not PageRole.REVISION_HISTORY and _count_long_texts(blocks) >= _LEAST_LONG_TEXTS
        return None if explains else role
    if len(blocks) > _LONG_BLOCKS:
        return None
    title = next((block.text for block in blocks if block.kind in {BlockKind.HEADING, BlockKind.PARAGRAPH}), "")
    if _role_by_name(title) is PageRole.REVISION_HISTORY and any(_lists_revisions(block) for block in blocks):
        return PageRole.REVISION_HISTORY
    return None


def _count_long_texts(blocks: Sequence[Block]) -> int:
    """Texts with whole sentences, of a length that names, dates and entries of contents do not have, each once."""
    texts = {text for block in blocks for row in block.rows for text in row.cells}
    texts.update(block.text for block in blocks if not block.rows)
    return sum(len(text) >= _LONG_TEXT_CHARS and _SENTENCE.search(text) is not None for text in texts)


def _role_by_name(text: str) -> PageRole | None:
    plain = re.sub(r"[\s■□●◆【】<>()]|^[\d.]+", "", unicodedata.normalize("NFKC", text)).lower()
    return next((role for role, pattern in _NAMES if pattern.fullmatch(plain)), None)


def _lists_revisions(block: Block) -> bool:
    """Whether a table has columns for version, date and change."""
    cells = ["".join(cell.split()).lower() for row in block.rows[: block.header_row_count] for cell in row.cells]
    return all(any(pattern.fullmatch(cell) for cell in cells) for pattern in _REVISION_COLUMNS)


def open_values(data: bytes) -> CalamineWorkbook:
    """Open a workbook.

    Raises:
        ParseError: ENCRYPTED or MALFORMED.
    """
    try:
        return CalamineWorkbook.from_object(BytesIO(data))
    except PasswordError as error:
        problem = "the workbook is encrypted: a password is needed (RAG_PASSWORDS)"
        raise ParseError(FailureCause.ENCRYPTED, problem) from error
    except (CalamineError, OSError, ValueError) as error:
        raise ParseError(FailureCause.MALFORMED, f"workbook: {error}") from error


def read_values(workbook: CalamineWorkbook, index: int, maximum_cells: int) -> SheetCells:
    """The cells of a sheet.

    Raises:
        ParseError: MALFORMED where the sheet cannot be read; TOO_LARGE where it is over the limit.
    """
    try:
        sheet: CalamineSheet = workbook.get_sheet_by_index(index)
    except (CalamineError, OSError, ValueError) as error:
        raise ParseError(FailureCause.MALFORMED, str(error)) from error
    if sheet.height * sheet.width > maximum_cells:
        message = f"{sheet.height * sheet.width} cells, limit {maximum_cells}"
        raise ParseError(FailureCause.TOO_LARGE, message)
    top, left = sheet.start or (0, 0)
    texts = {}
    length_chars = 0
    for row, values in enumerate(sheet.to_python(skip_empty_area=True), top):
        row_texts = {column: text for column, value in enumerate(values, left) if (text := _show(value))}
        length_chars += sum(map(len, row_texts.values()))
        if length_chars > MAXIMUM_CHARS:
            raise ParseError(FailureCause.TOO_LARGE, f"more than {MAXIMUM_CHARS} characters of text")
        if row_texts:
            texts[row] = row_texts
    merges = disjoint([Area(*first, *last) for first, last in sheet.merged_cell_ranges or [] if first != last])
    take_covered(texts, merges)
    return SheetCells(texts, merges=merges)


def _show(value: _Value) -> str:
    """A typed value as text: booleans in capitals, integers without a fraction, dates ISO-like."""
    match value:
        case bool():
            text = "TRUE" if value else "FALSE"
        case int() | float():
            text = general(value)
        case str():
            text = clean_text(value)
        case datetime():
            text = value.strftime("%Y-%m-%d" if value.time() == time() else "%Y-%m-%d %H:%M:%S")
        case time():
            text = value.strftime("%H:%M:%S")
        case timedelta():
            minutes, seconds = divmod(round(value.total_seconds()), 60)
            text = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
        case _:
            text = value.isoformat()
    return text
