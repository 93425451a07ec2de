"""Workbooks built in memory for the spreadsheet tests."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import openpyxl
from office_building import saved
from openpyxl.styles import Border, Font, PatternFill, Side
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.content import Block
from rag_assets.parsing.excel.reader import parse_excel
from rag_assets.parsing.limits import current_limits

LIMITS = replace(current_limits(), cells=200_000, pages=100, expanded_bytes=200 << 20, archive_entries=1_000)
COLOUR = PatternFill("solid", fgColor="FF99CCFF")
_LINE = Side(style="thin")


def build(fill: Callable[[Worksheet], None]) -> bytes:
    """A workbook of one sheet."""
    workbook = openpyxl.Workbook()
    assert workbook.active is not None
    fill(workbook.active)
    return saved(workbook)


def blocks_of(fill: Callable[[Worksheet], None]) -> tuple[Block, ...]:
    """Blocks of the only sheet of a workbook."""
    return parse_excel(build(fill), LIMITS).pages[0].blocks


def draw_box(sheet: Worksheet, reference: str, text: object = None, *, coloured: bool = False) -> None:
    """Draw a line around cells that are not merged, and put a text into the first."""
    cells = sheet[reference] if ":" in reference else ((sheet[reference],),)
    for row in cells:
        for cell in row:
            cell.border = Border(
                left=_LINE if cell is row[0] else None,
                right=_LINE if cell is row[-1] else None,
                top=_LINE if row is cells[0] else None,
                bottom=_LINE if row is cells[-1] else None,
            )
            if coloured:
                cell.fill = COLOUR
    cells[0][0].value = text


def write(
    sheet: Worksheet,
    rows: Iterable[Sequence[object]],
    top: int = 1,
    left: int = 1,
    *,
    lined: bool = False,
    look: str = "",
) -> None:
    """Write rows from a cell on, the first of them `bold`, `coloured` or as the others."""
    for number, row in enumerate(rows, top):
        for column, value in enumerate(row, left):
            cell = sheet.cell(number, column)
            if lined:
                draw_box(sheet, cell.coordinate)
            cell.value = value
            if number == top and look == "bold":
                cell.font = Font(bold=True)
            if number == top and look == "coloured":
                cell.fill = COLOUR


def use_graph_paper(sheet: Worksheet) -> None:
    """Make columns as narrow as on graph paper."""
    for column in range(1, 60):
        sheet.column_dimensions[openpyxl.utils.get_column_letter(column)].width = 2.5
