"""Tables that go on below an empty row without their names of columns: groups of rows of one list, set apart."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Row
from rag_assets.parsing.excel.cells import SheetCells, block_area
from rag_assets.parsing.flow import row_text
from rag_assets.parsing.names import Kind, is_attribute, is_name, is_number, kind_of
from rag_assets.text.cells import Area, parse_area

_LEAST_COLUMNS = 3
_HALF, _MOST = 0.5, 0.6
_LOOKED_AT_ROWS = 50


@dataclass(slots=True)
class _Table:
    """A table with names of columns, and the rows found below it so far."""

    block: Block
    area: Area
    lefts: list[int]  # sheet columns of its columns
    rows: list[Row]
    lines: list[str]

    @property
    def whole(self) -> Block:
        """The table with all its rows."""
        rows, text = tuple(self.rows), "\n".join(self.lines)
        return replace(self.block, text=text, cell_range=self.area.label, rows=rows)

    def take(self, below: Block, places: Sequence[int]) -> None:
        """Add the rows of a table below, whose columns stand in some places."""
        for row in below.rows:
            values = dict(zip(places, row.cells, strict=True))
            area = parse_area(row.cell_range or "") or self.area
            label = area._replace(left=self.area.left, right=self.area.right).label
            self.rows.append(Row(tuple(values.get(place, "") for place in range(len(self.lefts))), label))
            self.lines.append(row_text(self.rows[-1].cells))
        if len(places) == len(self.lefts):
            self.lines[-len(below.rows) :] = [below.text]
        self.area = Area.around((self.area, block_area(below)))


class _Sheet:
    """The cells of a sheet, and where texts stand in its rows."""

    def __init__(self, cells: SheetCells) -> None:
        self.cells = cells
        self._columns = {row: sorted(texts) for row, texts in cells.texts.items()}

    def columns(self, row: int, area: Area) -> list[int]:
        """Columns of an area in which texts begin in a row."""
        columns = self._columns.get(row, [])
        return columns[bisect_left(columns, area.left) : bisect_right(columns, area.right)]


def join_continuations(blocks: Iterable[Block], cells: SheetCells) -> list[Block]:
    """Blocks of a sheet, tables without names of columns joined to those above them whose columns they have.

    One empty row stands between the two, which holds no heading left of them either, and what stands in their columns
    is of the same kinds.
    """
    blocks, sheet = list(blocks), _Sheet(cells)
    lines: dict[int, int] = {}  # first column of what is no table, by its row
    for area in (block_area(block) for block in blocks if block.kind is not BlockKind.TABLE):
        lines[area.top] = min(area.left, lines.get(area.top, area.left))
    entries: list[Block | _Table] = []
    above: dict[int, list[_Table]] = {}  # by the row below tables with names, from the left
    for block in sorted(blocks, key=block_area):
        area = block_area(block)
        is_headed = lines.get(area.top - 1, area.right + 1) <= area.right
        beside = above.get(area.top - 1, []) if block.kind is BlockKind.TABLE and not is_headed else []
        place = bisect_right(beside, area.left, key=lambda table: table.area.left)
        table = beside[place - 1] if place else None
        places = [] if table is None else _places(table, block, sheet)
        if table is not None and places:
            table.take(block, places)
        elif block.kind is BlockKind.TABLE and block.header_row_count:
            table = _Table(block, area, _lefts(block, sheet), list(block.rows), [block.text])
            entries.append(table)
        else:
            entries.append(block)
            continue
        insort(above.setdefault(table.area.bottom + 1, []), table, key=lambda table: table.area.left)
    return [entry if isinstance(entry, Block) else entry.whole for entry in entries]


def _places(table: _Table, below: Block, sheet: _Sheet) -> list[int]:
    """Places of the columns of a table among those of the one above that it continues; none where it does not."""
    area = block_area(below)
    if area.left < table.area.left or area.right > table.area.right or sheet.columns(area.top - 1, table.area):
        return []
    lefts = _lefts(below, sheet)
    if len(lefts) < _LEAST_COLUMNS or not set(lefts) <= set(table.lefts) or _names_columns(below, table, sheet):
        return []
    places = [table.lefts.index(column) for column in lefts]
    return places if _is_alike(table, below, places) else []


def _lefts(table: Block, sheet: _Sheet) -> list[int]:
    """The sheet columns in which texts of a table begin; none where these are not its columns."""
    area = block_area(table)
    lefts = sorted({left for row in range(area.top, area.bottom + 1) for left in sheet.columns(row, area)})
    return lefts if len(lefts) == len(table.rows[0].cells) else []


def _names_columns(below: Block, table: _Table, sheet: _Sheet) -> bool:
    """Whether the first row of a table names its columns: by its words, as it is set off, or stands above figures."""
    texts = [text for text in below.rows[0].cells if text]
    if sum(map(is_attribute, texts)) >= _HALF * len(texts):
        return True
    look, look_below = _look(table.block, sheet), _look(below, sheet)
    if not look or not below.header_row_count:
        return look_below == look if look else below.header_row_count > 0
    return bool(look_below) or any(
        map(_names_figures, zip(*(row.cells for row in below.rows[:_LOOKED_AT_ROWS]), strict=True))
    )


def _names_figures(column: Sequence[str]) -> bool:
    """Whether a column holds numbers below a word or a period."""
    return is_name(column[0]) and any(column[1:]) and all(is_number(text) for text in column[1:] if text)


def _look(table: Block, sheet: _Sheet) -> str:
    """How all texts of the first row of a table are set off: by a colour, bold, or neither (empty)."""
    area = block_area(table)
    looks = [sheet.cells.look(area.top, left) for left in sheet.columns(area.top, area)]
    if looks and all(look.fill for look in looks):
        return "fill"
    return "bold" if looks and all(look.bold for look in looks) else ""


def _is_alike(table: _Table, below: Block, places: Sequence[int]) -> bool:
    """Whether in most columns of the rows below stand texts of the kinds that stand above; words alone, which may be of
    anything, tell it where one stands in its column again.
    """
    first = max(table.block.header_row_count, len(table.rows) - _LOOKED_AT_ROWS)
    above = dict(_kinds(table.rows[first:], range(len(table.lefts))))
    kinds_below = dict(_kinds(below.rows[:_LOOKED_AT_ROWS], places))
    alike = sum(not kinds.isdisjoint(above.get(place, kinds)) for place, kinds in kinds_below.items())
    if not above or alike < _MOST * len(kinds_below):
        return False
    if any(above.get(place, set()) & kinds - {Kind.WORDS, Kind.SENTENCE} for place, kinds in kinds_below.items()):
        return True
    values = {(place, row.cells[place]) for row in table.rows[first:] for place in places if row.cells[place]}
    rows = below.rows[:_LOOKED_AT_ROWS]
    return any((place, text) in values for row in rows for place, text in zip(places, row.cells, strict=True))


def _kinds(rows: Sequence[Row], places: Iterable[int]) -> Iterator[tuple[int, set[Kind]]]:
    """The kinds of the texts of each column, by its place; columns without texts left out."""
    for index, place in enumerate(places):
        if kinds := {kind_of(row.cells[index]) for row in rows if row.cells[index]}:
            yield place, kinds
