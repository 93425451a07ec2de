"""Figures in the columns of a table: their sum, the rows with the most, and whether they have several units.

What stays out: which column and which rows a question means (`rag_assets.query.ask.tables.table_rows`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from rag_assets.query.ask.quoted.wanted import NOTHING
from rag_assets.query.ask.tables.page_tables import IDENTIFIER, RUNNING_NUMBER, TableOfPage, measure

NO_MEASURE = re.compile(  # in the name of a column that nobody sums
    r"優先|順位|ランク|重要度|レベル|版|バージョン|リビジョン|改訂|番号|コード|累計|残高|平均|率|割合"
    r"|\b(?:no|id|rank|priority|version|ver|rev|code)\b"
)
MONEY = re.compile(r"単価|価格|金額|値段|料金|費用|\b(?:price|cost)\b")  # in the name of a column
_OF_MONEY = re.compile(rf"{MONEY.pattern}|額|費|代|税|売上|\bamount\b")
_OF_AGE = re.compile("年|齢|歳|月|日|時|度")  # in the name of a column of figures that count none of what rows are of
_UNIT = re.compile(r"単位|\bunit\b")  # in the name of a column that says what others are measured in
_CURRENCY = re.compile(r"通貨|\bcurrency\b")


def has_amounts(table: TableOfPage) -> bool:
    """Whether a column of figures may say how many there are of the thing of a row."""
    return any(
        sum_of([row[place] for row in table.rows if row[place]])
        for place, key in enumerate(table.keys)
        if not any(pattern.search(key) for pattern in (RUNNING_NUMBER, IDENTIFIER, _OF_MONEY, _OF_AGE, NO_MEASURE))
    )


def sum_of(cells: Sequence[str]) -> tuple[Decimal, str] | None:
    """The sum of figures with one unit; None where they have several, or are no figures."""
    figures = [figure for cell in cells if (figure := measure(cell)) is not None]
    units = {unit for _, unit in figures}
    if len(figures) < len(cells) or len(units) != 1 or "date" in units:
        return None
    return sum((number for number, _ in figures), Decimal()), units.pop()


def figure_text(measure: tuple[Decimal, str]) -> str:
    """A figure with its unit, a sign of money before it."""
    number, unit = measure
    return f"{unit}{number:,}" if unit[:1] in {"¥", "￥", "$", "€"} and unit else f"{number:,}{unit}"


def has_units(table: TableOfPage, rows: Sequence[tuple[str, ...]], measured_place: int) -> bool:
    """Whether another column says that the figures of a column have several units, as `通貨` does."""
    is_money = _OF_MONEY.search(table.keys[measured_place])
    says = [
        place
        for place, key in enumerate(table.keys)
        if place != measured_place and (_CURRENCY.search(key) or (_UNIT.search(key) and not is_money))
    ]
    return any(len({row[place] for row in rows}) > 1 for place in says if not has_figures(rows, place))


def has_figures(rows: Sequence[tuple[str, ...]], place: int) -> bool:
    """Whether a column has figures."""
    return any(measure(row[place]) for row in rows)


def best_rows(
    rows: Sequence[tuple[str, ...]],
    place: int,
    choose: Callable[[Iterable[tuple[Decimal, str]]], tuple[Decimal, str]],
    is_of_time: bool,
) -> list[tuple[str, ...]]:
    """The rows with the most or least of a column; none where its cells are no figures of one unit, or no dates."""
    filled_rows = [row for row in rows if not NOTHING.fullmatch(row[place])]
    values = [measure(row[place]) for row in filled_rows]
    figures = [value for value in values if value is not None]
    units = {unit for _, unit in figures}
    if len(figures) < 2 or len(figures) < len(values) or len(units) > 1 or (is_of_time and units != {"date"}):
        return []
    best = choose(figures)
    return [row for row, value in zip(filled_rows, values, strict=True) if value == best]
