"""Tables that go on below an empty row without their names of columns: groups of rows of one list, set apart."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Row
from rag_assets.parsing.excel.cells import SheetCells, block_area
from rag_assets.parsing.excel.layout.tables import text_line
from rag_assets.parsing.names import Kind, is_attribute, kind_of
from rag_assets.text.cells import Area, parse_area

_LEAST_COLUMNS = 3
_HALF, _MOST = 0.5, 0.6
_LOOKED_AT_ROWS = 50


@dataclass(slots=True)
class _Table:
    """A table with names of columns, and the rows found below it so far.

    Attributes:
        lefts: Sheet columns of its columns.
    """

    block: Block
    area: Area
    lefts: list[int]
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
            self.lines.append(text_line(self.rows[-1].cells))
        if len(places) == len(self.lefts):
            self.lines[-len(below.rows) :] = [below.text]
        self.area = Area.around((self.area, block_area(below)))


def join_continuations(blocks: Iterable[Block], cells: SheetCells) -> list[Block]:
    """Blocks of a sheet, tables without names of columns joined to those above them whose columns they have.

    One empty row stands between the two, and what stands in their columns is of the same kinds.
    """
    joined: list[Block | _Table] = []
    above: dict[int, _Table] = {}  # by the row below a table with names; of several side by side the last
    for block in sorted(blocks, key=block_area):
        area = block_area(block)
        table = above.get(area.top - 1) if block.kind is BlockKind.TABLE else None
        places = [] if table is None else _places(table, block, cells)
        if table is not None and places:
            table.take(block, places)
        elif block.kind is BlockKind.TABLE and block.header_row_count:
            table = _Table(block, area, _lefts(block, cells), list(block.rows), [block.text])
            joined.append(table)
        else:
            joined.append(block)
            continue
        above[table.area.bottom + 1] = table
    return [entry if isinstance(entry, Block) else entry.whole for entry in joined]


def _places(table: _Table, below: Block, cells: SheetCells) -> list[int]:
    """Places of the columns of a table among those of the one above that it continues; none where it does not."""
    left, right = table.area.left, table.area.right
    area, gap = block_area(below), cells.texts.get(table.area.bottom + 1, {})
    if area.left < left or area.right > right or any(left <= column <= right for column in gap):
        return []
    lefts = _lefts(below, cells)
    if len(lefts) < _LEAST_COLUMNS or not set(lefts) <= set(table.lefts) or _names_columns(below, table, cells):
        return []
    places = [table.lefts.index(column) for column in lefts]
    return places if _is_alike(table, below, places) else []


def _lefts(table: Block, cells: SheetCells) -> list[int]:
    """The sheet columns in which texts of a table begin; none where these are not its columns."""
    area = block_area(table)
    rows = (cells.texts.get(row, {}) for row in range(area.top, area.bottom + 1))
    lefts = sorted({left for texts in rows for left in texts if area.left <= left <= area.right})
    return lefts if len(lefts) == len(table.rows[0].cells) else []


def _names_columns(below: Block, table: _Table, cells: SheetCells) -> bool:
    """Whether the first row of a table names its columns: by its words, or as it looks like the names above."""
    texts = [text for text in below.rows[0].cells if text]
    if sum(map(is_attribute, texts)) > _HALF * len(texts):
        return True
    look = _look(table.block, cells)
    return _look(below, cells) == look if look else below.header_row_count > 0


def _look(table: Block, cells: SheetCells) -> str:
    """How all texts of the first row of a table are set off: by a colour, bold, or neither (empty)."""
    area = block_area(table)
    lefts = [left for left in cells.texts.get(area.top, {}) if area.left <= left <= area.right]
    looks = [cells.look(area.top, left) for left in lefts]
    if looks and all(look.fill for look in looks):
        return "fill"
    return "bold" if looks and all(look.bold for look in looks) else ""


def _is_alike(table: _Table, below: Block, places: Sequence[int]) -> bool:
    """Whether in most columns of the rows below stand texts of the kinds that stand above."""
    first = max(table.block.header_row_count, len(table.rows) - _LOOKED_AT_ROWS)
    above = dict(_kinds(table.rows[first:], range(len(table.lefts))))
    own = dict(_kinds(below.rows[:_LOOKED_AT_ROWS], places))
    alike = sum(not kinds.isdisjoint(above.get(place, kinds)) for place, kinds in own.items())
    return bool(above) and alike >= _MOST * len(own)


def _kinds(rows: Sequence[Row], places: Iterable[int]) -> Iterator[tuple[int, set[Kind]]]:
    """The kinds of the texts of each column, by its place; columns without texts left out."""
    for index, place in enumerate(places):
        if kinds := {kind_of(row.cells[index]) for row in rows if row.cells[index]}:
            yield place, kinds
