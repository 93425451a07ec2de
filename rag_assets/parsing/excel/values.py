"""Workbooks that are not Office Open XML (xls, xlsb, ods): values, and of xls merged ranges, through python-calamine.

What stays out, since that reader does not give it: lines, number formats (dates excepted), formulas, links, drawings
and comments, and the merged ranges of xlsb and ods.
"""

from datetime import date, datetime, time, timedelta
from io import BytesIO

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetVisibleEnum,
)

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.excel.cells import MAXIMUM_CHARS, Area, SheetCells, disjoint, take_covered
from rag_assets.parsing.excel.formats import general
from rag_assets.parsing.excel.workbook import clean_text

Value = int | float | str | bool | time | date | datetime | timedelta


def open_values(data: bytes) -> CalamineWorkbook:
    """Open a workbook.

    Raises:
        ParseError: ENCRYPTED or MALFORMED.
    """
    try:
        return CalamineWorkbook.from_object(BytesIO(data))
    except PasswordError as error:
        raise ParseError(FailureCause.ENCRYPTED, "workbook: a password is needed") from error
    except (CalamineError, OSError, ValueError) as error:
        raise ParseError(FailureCause.MALFORMED, f"workbook: {error}") from error


def sheet_states(workbook: CalamineWorkbook) -> list[tuple[str, bool]]:
    """Name of each sheet, and whether it is hidden, in workbook order."""
    return [(sheet.name, sheet.visible != SheetVisibleEnum.Visible) for sheet in workbook.sheets_metadata]


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
    for row, values in enumerate(sheet.iter_rows(), top):
        shown = {column: text for column, value in enumerate(values, left) if (text := show(value))}
        length_chars += sum(map(len, shown.values()))
        if length_chars > MAXIMUM_CHARS:
            raise ParseError(FailureCause.TOO_LARGE, f"more than {MAXIMUM_CHARS} characters of text")
        if shown:
            texts[row] = shown
    merges = disjoint([Area(*first, *last) for first, last in sheet.merged_cell_ranges or [] if first != last])
    take_covered(texts, merges)
    return SheetCells(texts, merges=merges)


def show(value: Value) -> str:
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
