"""Values of the lists that cells choose from, where they stand in cells: here, on another sheet, or under a name.

What stays out: lists that a function computes (`INDIRECT`, `OFFSET`), since nothing is calculated.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.excel.cells import SheetCells, parse_area, read_sheet
from rag_assets.parsing.excel.workbook import SheetEntry, Workbook

_LIST_VALUES = 1_000  # many more than are shown of a list whose values stand in cells

Texts = Mapping[int, Mapping[int, str]]


class ListReader:
    """Reads such lists; sheets that hold lists are kept.

    Args:
        workbook: The workbook.
        maximum_cells: Cells that a sheet may state.
    """

    def __init__(self, workbook: Workbook, maximum_cells: int) -> None:
        self._workbook, self._maximum_cells = workbook, maximum_cells
        self._known: dict[str, Texts] = {}

    def values_for(self, entry: SheetEntry, cells: SheetCells) -> Callable[[str], tuple[Sequence[str], str]]:
        """A function that gives the values that a formula on a sheet names, with their place; none without a range."""

        def resolve(formula: str) -> tuple[list[str], str]:
            formula = formula.removeprefix("=")
            sheet, _, reference = self._workbook.names.get(formula, formula).rpartition("!")
            area = parse_area(reference)
            if area is None:
                return [], ""
            name = sheet.strip("'").replace("''", "'")
            texts = cells.texts if name in {"", entry.name} else self._texts(name)
            rows = range(area.top, area.bottom + 1)
            found = (
                text
                for row in (rows if len(rows) < len(texts) else filter(rows.__contains__, texts))
                for column, text in texts.get(row, {}).items()
                if area.left <= column <= area.right
            )
            values = list(islice(found, _LIST_VALUES))
            return values, f"{name}!{area.label}" if name else area.label

        return resolve

    def _texts(self, name: str) -> Texts:
        if name not in self._known:
            part = next((entry.part for entry in self._workbook.sheets if entry.name == name), None)
            self._known[name] = self._read(part) if part is not None else {}
        return self._known[name]

    def _read(self, part: str) -> Texts:
        workbook = self._workbook
        try:
            return read_sheet(workbook.archive, part, workbook.strings, workbook.styles, self._maximum_cells).texts
        except ParseError:
            return {}  # it becomes a failure of its own page
