"""A table as it was read: its names of columns, rows and totals, and the values and figures in its cells; and rows of
one that a question asks for.

What stays out: which rows these are (`rag_assets.query.ask.tables.table_rows` and the modules beside it).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rag_assets.contracts.content import Row
from rag_assets.parsing.chunking import column_names
from rag_assets.query.ask.quoted.wanted import NOTHING
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import is_total, one_line

KEY_SHARE = 0.9  # share of the cells of a column that differ, from which it tells rows apart
_LEAST_ACROSS = 3  # cells of a row in which one text stands
RUNNING_NUMBER = re.compile(r"no|№|#|番号|項番|連番|通番|通し番号")
IDENTIFIER = re.compile(r"(?:番号|コード|id|no)$")
_EXAMPLE = re.compile(r"\W*(?:記入|入力)?例\W*\d*|\W*examples?\W*\d*", re.IGNORECASE)
_SUM_ROW = re.compile(  # beside those of `is_total`
    r"\W*(?:\S{1,8}?(?:合計|総計|小計)(?:金?額)?|\S{1,8}[部課係店社場年月]計)\W*(?:\(.{1,12}\))?"
)
_TAX_ROW = re.compile(r"\W*(?:内|うち)?消費税額?\W*(?:\(.{1,12}\))?|\W*(?:出精|特別)?お?値引き?額?\W*")
IN_BRACKETS = re.compile(r"\s*[(（\[［][^()（）\[\]［］]*[)）\]］]$")
_FIGURE = re.compile(
    r"(?P<sign>[¥￥$€]?)\s?(?P<number>[-−△▲]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\s?(?P<unit>[^\W\d]{0,6}(?:/[^\W\d]{1,4})?|%)"
)
DAY = re.compile(r"(?:19|20)\d\d(?:[-/.]|年)\d{1,2}(?:(?:[-/.]|月)\d{1,2}日?)?")
_LISTED_IN_CELL = re.compile(r"[\s、，,;；/／・]+")


@dataclass(frozen=True)
class TableOfPage:
    """A table as it was read."""

    columns: tuple[str, ...]  # names of its columns, the lowest of each
    keys: tuple[str, ...]  # these folded, without a unit or note in brackets where they differ without
    # its rows below the names, without these again, totals, examples, notes across all cells and lone figures; a merged
    # value stands in each of its cells
    rows: tuple[tuple[str, ...], ...]
    totals: tuple[tuple[str, ...], ...]  # rows of totals, taxes and discounts, and of a lone figure, which may be one
    names: tuple[str, ...]  # what it, its page and its document are called
    beginning: str = ""  # how its document begins, which may say what it is of
    section: tuple[str, ...] = ()  # the headings above it
    # whether it cannot be told of a row whether it is a total, or one of a thing that is called so
    is_doubtful: bool = False

    @classmethod
    def of(
        cls, block: Mapping[str, Any], names: Sequence[str], beginning: str = "", *, named: bool = True
    ) -> "TableOfPage | None":
        """The table that a row of `blocks` holds, with names of its place; None of one without names of columns, unless
        it may be without.
        """
        count = block["header_row_count"] or 0
        rows = [tuple(one_line(cell or "") for cell in row["cells"]) for row in block["rows"] or ()]
        if count >= len(rows) or (named and not count):
            return None
        paths = column_names([Row(cells) for cells in rows[:count]]) if count else [""] * max(map(len, rows))
        rows = [(*cells, *[""] * (len(paths) - len(cells))) for cells in rows]
        columns = tuple(path.rpartition(" > ")[2] for path in paths)
        short = [fold_name(IN_BRACKETS.sub("", column)) for column in columns]
        keys = tuple(
            key if key and short.count(key) == 1 else fold_name(column)
            for key, column in zip(short, columns, strict=True)
        )
        body = [row for row in rows[count:] if any(row) and not _EXAMPLE.fullmatch(next(filter(None, row)))]
        body = [row for row in body if row not in rows[:count] and not _is_note(row)]
        kinds = {row: _sums(row) for row in set(body)}
        totals = [row for row in body if kinds[row] is not False or _is_lone_figure(row)]
        body = [row for row in body if row not in totals]
        section = tuple(block["section"] or ())
        is_doubtful = None in kinds.values()
        return cls(columns, keys, tuple(body), tuple(totals), (*section, *names), beginning, section, is_doubtful)

    def goes_on(self, place: int) -> bool:
        """Whether rows have neither a value of a column nor of the first one, as those that go on with one above."""
        first = next((at for at, key in enumerate(self.keys) if not RUNNING_NUMBER.fullmatch(key)), 0)
        return any(not row[place] and not row[first] for row in self.rows)

    def is_told_apart_by(self, place: int) -> bool:
        """Whether the cells of a column tell rows apart."""
        return len({row[place] for row in self.rows if row[place]}) >= KEY_SHARE * len(self.rows)

    @property
    def own_names(self) -> tuple[str, ...]:
        """What it, its page and its file are called."""
        of_place = self.names[len(self.section) :]
        return tuple(filter(None, (*self.section[-1:], *of_place[-2:])))

    @property
    def name_place(self) -> int | None:
        """The column of what its rows are called: the first with words that tells them apart, no number or code."""
        of_words = [
            place
            for place in range(len(self.keys))
            if self.is_told_apart_by(place) and any(re.search(r"[^\W\d_]{2}", row[place]) for row in self.rows)
        ]
        names = [
            place
            for place in of_words
            if not (RUNNING_NUMBER.fullmatch(self.keys[place]) or IDENTIFIER.search(self.keys[place]))
        ]
        return next(iter(names or of_words), None)


@dataclass(frozen=True)
class Selection:
    """Rows that a question asks for."""

    # each as pairs of the name of a column and what stands there; of several, what tells them apart
    rows: tuple[tuple[tuple[str, str], ...], ...]
    cells: tuple[tuple[str, ...], ...]  # the cells of each, as they are
    said: str = ""  # how many they are, or the sum of a column, with what the question names, where that is asked for
    # what each is called, as pairs, where that is known: said where the rows are too long to say all of them
    names: tuple[tuple[tuple[str, str], ...], ...] = ()
    # the cells of each without running numbers, by which it is the same row in another table
    entries: tuple[tuple[str, ...], ...] = ()
    proof: str = ""  # a figure that must stand on the page for the sum to be sure; empty where it is anyway

    @classmethod
    def of(
        cls,
        table: TableOfPage,
        rows: Sequence[tuple[str, ...]],
        places: Sequence[int],
        said: str = "",
        needed_places: Collection[int] = (),
    ) -> "Selection":
        """Rows of a table with some of its columns, and of these the one of names and those that are needed."""
        name_places = [place for place in places if place == table.name_place or place in needed_places]
        named = name_places if table.name_place in name_places else []
        pairs, names = (
            tuple(
                tuple(dict.fromkeys((table.columns[place], row[place]) for place in chosen if row[place]))
                for row in rows
            )
            for chosen in (places, named)
        )
        return cls(pairs, tuple(rows), said, names if all(names) and len(set(names)) == len(rows) else ())

    def covers(self, other: "Selection") -> bool:
        """Whether all rows of another selection are among these."""
        return Counter(self.entries) >= Counter(other.entries)

    def may_go_on_in(self, rows: Sequence[Sequence[str]], *, same_page: bool) -> bool:
        """Whether a table without names of columns may hold more of the same: it has as many, and stands on the page or
        shares a word with these in a column; one of no rows is a table too long to look at.
        """
        width = len(self.cells[0])
        words = {(place, cell) for row in self.cells for place, cell in enumerate(row) if re.search(r"[^\W\d]", cell)}
        cells = {(place, cell) for row in rows for place, cell in enumerate(row)}
        alike = width >= _LEAST_ACROSS and any(len(row) == width and len({*row} - {""}) > 1 for row in rows)
        return not rows or (alike and (same_page or not words.isdisjoint(cells)))

    def is_proved_by(self, texts: Iterable[str]) -> bool:
        """Whether the figure that must stand on the page does."""
        figures = {figure.replace(",", "") for text in texts for figure in re.findall(r"(?<![\d.,])\d[\d,.]+\d", text)}
        return not self.proof or self.proof in figures


def listed_values(cell: str) -> set[str]:
    """The values that a cell lists, folded; none of a cell that is one value."""
    values = {fold_name(part) for part in _LISTED_IN_CELL.split(cell)} - {""}
    return values if len(values) > 1 else set()


def holds_word(cell: str, word: str) -> bool:
    """Whether a cell has a folded word of its own, of one character, too, or as one of several values."""
    return word in listed_values(cell) or re.search(rf"(?<!\w){re.escape(word)}(?!\w)", fold_name(cell)) is not None


def measure(cell: str) -> tuple[Decimal, str] | None:
    """A figure and its unit, or a date as one; None of any other text."""
    text = unicodedata.normalize("NFKC", cell).strip()
    if DAY.fullmatch(text):
        year, month, day = (*day_of(text), 0, 0)[:3]
        return Decimal(year * 10_000 + month * 100 + day), "date"
    figure = _FIGURE.fullmatch(text)
    if figure is None:
        return None
    number = re.sub("[−△▲]", "-", figure["number"]).replace(",", "")
    return Decimal(number), f"{figure['sign']}{figure['unit']}"


def day_of(text: str) -> tuple[int, ...]:
    """Year, month and day of a date."""
    return tuple(map(int, re.findall(r"\d+", text)))


def _is_lone_figure(row: Sequence[str]) -> bool:
    """Whether a row holds nothing but a figure: a running number of an empty line, or a total without a name."""
    filled_cells = set(filter(None, row))
    return len(filled_cells) == 1 and "" in row and measure(*filled_cells) is not None


def _is_note(row: Sequence[str]) -> bool:
    """Whether one text stands in all cells of a row, as a note or the name of a part that is merged across it."""
    return len(row) >= _LEAST_ACROSS and len(set(row)) == 1 and measure(row[0]) is None


def _sums(row: Sequence[str]) -> bool | None:
    """Whether a row is a total, a tax or a discount of others, as `お見積合計`; None where it may be one, or of a thing
    called so, as of a field, of which its other cells say more.
    """
    plain = ["".join(unicodedata.normalize("NFKC", cell).split()) for cell in row]
    place = next((at for at, cell in enumerate(plain) if is_total(cell) or _SUM_ROW.fullmatch(cell)), None)
    tax = next((at for at, cell in enumerate(plain) if _TAX_ROW.fullmatch(cell)), None)
    is_keyed = place is None and tax is not None and any(plain[:tax])
    place = tax if place is None else place
    if place is None:
        return False
    behind = [cell for cell in row[place:] if not (NOTHING.fullmatch(cell) or cell == row[place] or measure(cell))]
    if not behind:
        return (None if "" in row else False) if is_keyed else True
    return None if "" in row and any(map(measure, row)) else False
