"""Tables of a sheet: from boxes on the grid to logical rows and columns, and which rows at the top name the columns.

A form has none: names stand there with their values beside them. Where it is drawn without colours, nothing but its
words and their looks tells it from a table of two columns. Several signs are added up, since each of them fails
somewhere.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, takewhile

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Row
from rag_assets.parsing.excel.layout.bands import Band, Box, is_form_row, stands_out
from rag_assets.parsing.excel.layout.sections import is_unit
from rag_assets.parsing.flow import row_text
from rag_assets.parsing.names import (
    Kind,
    has_digit,
    is_attribute,
    is_count,
    is_generic,
    is_name,
    is_number,
    is_period,
    is_series,
    is_year,
    kind_of,
    names_value,
    plain,
)
from rag_assets.text.cells import Area

_MAXIMUM_HEADER_ROWS = 6
_LOOKED_AT_ROWS = 50
_COUNTED_ROWS = 4
_LEAST_RECORDS = 3  # that of the names included

# Forms.
_FORM_SCORE = 2.0
_MAXIMUM_ROWS = 60
_MAXIMUM_PAIRS = 4
_LABEL_CHARS = 25
_MOST, _HALF, _SOME, _FEW = 0.6, 0.5, 0.4, 0.2
_SHORT_CHARS = 4

# Header rows below others.
_LEAST_VALUE_ROWS = 3
_LEAST_NAMES = 3
_DIFFERENT = 0.4  # of the names
_NAME_CHARS = 80
_ALL_BUT_FEW, _RARE = 0.9, 0.1
_NO_NAMES = frozenset({Kind.NUMBER, Kind.DATE, Kind.LINK, Kind.MARK, Kind.SENTENCE})
_VALUES = frozenset({Kind.NUMBER, Kind.MARK})
_WORDS = frozenset({Kind.WORDS, Kind.SENTENCE, Kind.PERIOD})
_FIGURES = frozenset({Kind.NUMBER, Kind.DATE, Kind.MARK, Kind.CODE, Kind.LINK})

_Pair = tuple[Box, Box | None]
_Place = tuple[int, int, int, int]


def table_block(bands: list[Band], headers: int | None = None) -> Block | None:
    """A table from its rows, of which the first `headers` name columns, where that is known; None where no box holds
    text.

    Rows and columns in which no text begins are left out. A value that spans several rows or columns stands in each of
    their cells, and once in the text. There too, empty cells keep their places, save in a form, where a value follows
    its name.
    """
    drawn_bands, bands = bands, [band for band in bands if band.text_boxes]
    if not bands:
        return None
    lefts = sorted({box.area.left for band in bands for box in band.slots})
    whole = Area.around(box.area for band in bands for box in band.boxes)
    headers = _count_header_rows(bands) if headers is None else headers
    if records := _find_records(drawn_bands, headers):
        return _record_block(drawn_bands, records)
    is_form = not headers and _is_coloured_form(bands)
    rows, lines = [], []
    for index, band in enumerate(bands):
        end = bands[index + 1].top - 1 if index + 1 < len(bands) else band.bottom
        bottom = max(band.top, min(end, band.bottom))
        cells, line = _fill_row(band, lefts, bands[0].top)
        rows.append(Row(cells, Area(band.top, whole.left, bottom, whole.right).label))
        lines.append(row_text(box.text for box in band.slots) if is_form else row_text(line))
    rows[:headers] = _spread_groups(rows[:headers])
    bottom = max(band.bottom for band in bands)
    label = Area(bands[0].top, whole.left, bottom, whole.right).label
    if len(lefts) == 1 and len(bands) == 1:
        return Block(BlockKind.PARAGRAPH, lines[0], cell_range=label)
    return Block(BlockKind.TABLE, "\n".join(lines), cell_range=label, header_row_count=headers, rows=tuple(rows))


def _find_records(bands: Sequence[Band], headers: int) -> list[list[Band]]:
    """The rows of each record, those of the names first, where each takes as many rows as the names do: in some columns
    one box for all of them, in others a box in each row. None where they do not.
    """
    names = [box for band in bands[:headers] for box in band.starting]
    top, bottom = bands[0].top, max(box.area.bottom for box in names or bands[0].boxes)
    shape = {_place(box, top) for box in names}
    across = {place for place in shape if place[2:] == (0, bottom - top)}
    below: dict[int, list[str]] = {}
    for box in names:
        if box.text:
            below.setdefault(box.area.left, []).append(box.text)
    are_alone = any(len(texts) == headers and all(map(_is_record_name, texts)) for texts in below.values())
    if headers < 2 or not across or not are_alone:
        return []
    parts = groupby(bands, key=lambda band: (band.top - top) // (bottom - top + 1))
    records = list(takewhile(lambda record: _has_shape(record, shape, across), (list(part) for _, part in parts)))
    covered_count = sum(map(len, records))
    return records if len(records) >= _LEAST_RECORDS and covered_count * 2 > len(bands) else []


def _is_record_name(text: str) -> bool:
    return is_name(text) and not (is_unit(text) or is_period(text) or text.startswith(("(", "（", "[", "［")))


def _has_shape(record: Sequence[Band], shape: set[_Place], across: set[_Place]) -> bool:
    places = {_place(box, record[0].top) for band in record for box in band.starting}
    return places <= shape and not places.isdisjoint(across)


def _place(box: Box, top: int) -> _Place:
    """First and last column of a box, and its first and last row below the first of its record."""
    return box.area.left, box.area.right, box.area.top - top, box.area.bottom - top


def _record_block(bands: Sequence[Band], records: Sequence[Sequence[Band]]) -> Block:
    """A table of records of several rows, each as one row: what stands in one column below another is beside it.

    Args:
        bands: Its rows, those without text included.
        records: The rows of each record, those of the names first; rows below them are rows of their own.
    """
    rows: list[tuple[Sequence[Band], dict[tuple[int, int], str]]] = []
    for record in records:
        boxes = [box for band in record for box in band.text_boxes]
        rows.append((record, {(box.area.left, box.area.top - record[0].top): box.text for box in boxes}))
    names = rows[0][1]
    last_rows = dict(sorted(names))  # with a name, by column: sums stand below amounts, which stand below prices
    rows += [
        ([band], {(box.area.left, last_rows.get(box.area.left, 0)): box.text for box in band.text_boxes})
        for band in bands[sum(map(len, records)) :]
    ]
    for left, row in [place for _, texts in rows[1:] for place in texts]:
        names.setdefault((left, row), names.get((left, last_rows.get(left, 0)), ""))
    places = sorted(names)
    whole = Area.around(box.area for band in bands for box in band.boxes)
    table_rows = []
    for part, texts in rows:
        if texts:
            bottom = max(band.bottom for band in part)
            label = Area(part[0].top, whole.left, bottom, whole.right).label
            table_rows.append(Row(tuple(texts.get(place, "") for place in places), label))
    text = "\n".join(row_text(row.cells) for row in table_rows)
    return Block(BlockKind.TABLE, text, cell_range=whole.label, header_row_count=1, rows=tuple(table_rows))


def _spread_groups(headers: list[Row]) -> list[Row]:
    """Give the empty cells right of a group's name that name, where a row of names below goes on."""
    spread = []
    for row, below in pairwise(headers):
        cells = list(row.cells)
        for column in range(1, len(cells)):
            if not cells[column] and below.cells[column]:
                cells[column] = cells[column - 1]
        spread.append(Row(tuple(cells), row.cell_range))
    return [*spread, *headers[-1:]]


def _fill_row(band: Band, lefts: list[int], first_row: int) -> tuple[tuple[str, ...], list[str]]:
    """The cells of a row by logical column, and those of its line of text, where spanned cells are empty.

    A box around another one, as that of a value below its name without a line between, leaves that one its columns.
    """
    cells = [""] * len(lefts)
    line = [""] * len(lefts)
    owners: list[list[Area]] = [[] for _ in lefts]
    for box in band.boxes:
        if not box.text:
            continue
        start, end = bisect_left(lefts, box.area.left), bisect_right(lefts, box.area.right)
        if start == end:
            start = max(0, start - 1)
        columns = range(start, max(end, start + 1))
        free_columns = [
            column for column in columns if not any(map(box.area.shares_columns, owners[column]))
        ] or columns
        start = free_columns[0]
        for column in free_columns:
            cells[column] = f"{cells[column]} {box.text}".strip() if cells[column] else box.text
            owners[column].append(box.area)
        if box.area.top >= band.top or band.top == first_row:
            line[start] = f"{line[start]} {box.text}".strip()
    return tuple(cells), line


def _count_header_rows(bands: list[Band]) -> int:
    """Leading rows that name columns, those right below them that name columns of figures included."""
    bands = _without_count(bands)
    if count := _count_beside_corner(bands):
        return count
    count = _count_names(bands)
    while count < min(len(bands) - _LEAST_VALUE_ROWS, _MAXIMUM_HEADER_ROWS) and _names_figures(bands, count):
        count += 1
    return count


def _names_figures(bands: Sequence[Band], place: int) -> bool:
    """Whether a row below those that name columns names most columns of figures, of which there are several, as the row
    above does, or in the groups that this names.
    """
    band, above = bands[place], bands[place - 1] if place else None
    texts = band.texts
    if not _are_words(band) or len(set(texts)) * 2 <= len(texts):
        return False
    if any(box.area.bottom > band.bottom for box in band.text_boxes):
        return False
    columns: dict[int, list[bool]] = {}  # whether texts are figures, by column
    for box in (box for row in bands[place + 1 : place + 1 + _LOOKED_AT_ROWS] for box in row.text_boxes):
        columns.setdefault(box.area.left, []).append(kind_of(box.text) in _VALUES and not is_year(box.text))
    figures = [left for left, are in columns.items() if len(are) >= _LEAST_VALUE_ROWS and _share(are) >= _ALL_BUT_FEW]

    def names_most(row: Band) -> bool:
        named = sum(any(box.area.left <= left <= box.area.right for box in row.text_boxes) for left in figures)
        return named >= _MOST * len(figures)

    if len(figures) < 2 or not names_most(band):
        return False
    if above is None or _stands_above(above, band):
        return True
    return _are_words(above) and names_most(above) and len(texts) >= min(2, len(above.texts))


def _are_words(band: Band) -> bool:
    return all(kind_of(text) in _WORDS or is_year(text) for text in band.texts)


def _count_names(bands: list[Band]) -> int:
    """Leading rows that name columns: by colour, by boxes that span rows, or by plain words above values.

    Forms, whose names stand left of their values, have none.
    """
    if len(bands) < 2:
        return 0
    if (named_rows := figure_rows(bands)) and not named_rows[0]:
        return named_rows[1]
    first = bands[0]
    fills = {box.fill for box in first.boxes}
    if None not in fills:
        looks = [_continues_header(band, first, fills) for band in bands]
        below = looks[looks.index(False) :] if False in looks else []
        count = len(looks) - len(below)
        longest = max((len(list(rows)) for look, rows in groupby(below) if look), default=0)
        if below and (_share(below) < _SOME or longest < count):  # else the colours of rows alternate
            while count < len(bands) and _is_beside_names(bands[count]):
                count += 1
            return min(count, _MAXIMUM_HEADER_ROWS)
    elif first.boxes[0].fill and (_is_coloured_form(bands) or (is_form_row(first) and len(first.boxes) > 2)):
        return 0
    if len(first.boxes) < 2 and len(bands[1].boxes) < 2:
        return 1 if first.boxes[0].fill and not bands[1].boxes[0].fill else 0
    if len(first.boxes) > 1 and (_is_plain_form(bands) or _is_row_group(bands)):
        return 0
    names = _names_columns(first) and not _comes_again(first, bands[1:])
    names = names or _names_periods(first.boxes, bands[1:])
    place = 0 if names and len(first.texts) > 1 else _find_names(bands)
    if place is None:
        if not names:
            return 0
        place = 0
    bottom = max((box.area.bottom for box in bands[place].boxes if box.text), default=bands[place].bottom)
    spanned_count = sum(band.top <= bottom for band in bands)
    count = spanned_count if spanned_count < min(len(bands), _MAXIMUM_HEADER_ROWS) else place + 1
    while count > place + 1 and _heads_rows(bands, count - 1):
        count -= 1
    while count < min(len(bands) - 1, _MAXIMUM_HEADER_ROWS) and _names_parts(bands, count):
        count += 1
    return count


def _count_beside_corner(bands: Sequence[Band]) -> int:
    """Leading rows beside an empty corner, above boxes that each name a group of rows down to the last: the first names
    groups of columns, the second their parts; 0 where there is no such corner.
    """
    left = min(box.area.left for band in bands for box in band.boxes)
    firsts = [next((box for box in band.boxes if box.area.left == left and box.text), None) for band in bands]
    count = next((place for place, box in enumerate(firsts) if box), 0)
    if not 1 < count <= _MAXIMUM_HEADER_ROWS or not all(firsts[count:]):
        return 0
    groups = Counter(box.area for box in firsts if box)
    texts = [text for band in bands[:count] for text in band.texts]
    wide = [box for box in bands[0].text_boxes if box.area.right > box.area.left]
    parts = [_boxes_below([box], bands[1]) for box in wide]
    is_parted = bool(wide) and all(len(boxes) > 1 for boxes in parts)
    if min(groups.values()) < 2 or not is_parted or any(kind_of(text) in {Kind.NUMBER, Kind.DATE} for text in texts):
        return 0
    return count


def _has_word(text: str) -> bool:
    return any(map(str.isalpha, text)) and kind_of(text) in _WORDS | {Kind.CODE}


def _is_beside_names(band: Band) -> bool:
    """Whether coloured texts stand beside names that began above, as those of the columns of a group do."""
    boxes = band.starting
    return 1 < len(boxes) < len(band.boxes) and all(box.fill and _has_word(box.text) for box in boxes)


def _heads_rows(bands: Sequence[Band], place: int) -> bool:
    """Whether a row holds nothing but one name of a group of rows, as others at the same place below do."""

    def lone(band: Band) -> int | None:
        return band.text_boxes[0].area.left if len(set(band.texts)) == 1 and is_name(band.texts[0]) else None

    left = lone(bands[place])
    return left is not None and left in map(lone, bands[place + 1 :])


def _without_count(bands: list[Band]) -> list[Band]:
    """Rows without a first column that numbers the rows of the sheet, that of the names of columns as well; not from 1,
    where it may number what a list without names holds.
    """
    firsts = [band.boxes[0] for band in bands[:_COUNTED_ROWS]]
    counts = [box.text for box in firsts]
    if (
        len(counts) < _COUNTED_ROWS
        or len(bands[0].boxes) < 2
        or not is_count(counts)
        or not 1 < int(plain(counts[0])) == bands[0].top + 1
    ):
        return bands
    left = firsts[0].area.left
    rest = (replace(band, boxes=tuple(box for box in band.boxes if box.area.left > left)) for band in bands)
    return [band for band in rest if band.boxes]


def figure_rows(bands: Sequence[Band]) -> tuple[int, int] | None:
    """The first of the rows that name the columns of a table of figures, and the first row of figures.

    Above columns that hold hardly anything but numbers stand several rows of names of groups, of columns and of their
    units; a title above, whose texts are few, is none of them.

    Returns:
        Places of rows; None where fewer than two rows name columns, or other than figures stand below.
    """
    below = bands[_MAXIMUM_HEADER_ROWS : _MAXIMUM_HEADER_ROWS + _LOOKED_AT_ROWS]
    columns: dict[int, list[str]] = {}
    for box in (box for band in below for box in band.text_boxes):
        columns.setdefault(box.area.left, []).append(box.text)
    figures = {
        left
        for left, texts in columns.items()
        if len(texts) >= _ALL_BUT_FEW * len(below)
        and _share([kind_of(text) in _VALUES for text in texts]) >= _ALL_BUT_FEW
        and _share(list(map(is_number, texts))) >= _MOST
    }
    if len(below) < _LEAST_VALUE_ROWS or len(figures) < _LEAST_NAMES:
        return None
    heads = [
        [box.text for box in band.text_boxes if box.area.left in figures] for band in bands[: 2 * _MAXIMUM_HEADER_ROWS]
    ]
    counts = [
        sum(any(box.text and box.area.left <= left <= box.area.right for box in band.boxes) for left in figures)
        for band in bands[: 2 * _MAXIMUM_HEADER_ROWS]
    ]
    first = next((place for place, texts in enumerate(heads) if _hold_figures(texts)), 0)
    start = next((place for place, count in enumerate(counts) if count * 2 >= len(figures)), first)
    is_named = all(texts and _share(list(map(is_number, texts))) < _FEW for texts in heads[start:first])
    return (start, first) if is_named and start + 1 < first <= start + _MAXIMUM_HEADER_ROWS else None


def _hold_figures(texts: Sequence[str]) -> bool:
    numbers = [text for text in texts if is_number(text) and not is_year(text)]
    return len(numbers) * 2 > len(texts)


def count_titles(bands: Sequence[Band]) -> int:
    """Leading rows that hold one text each, from the left, as titles do, above the row that names the columns."""
    first = bands[0]
    if any(box.fill for box in first.boxes) or (len(first.texts) > 1 and _names_columns(first)):
        return 0
    place = _find_names(bands)
    if not place:
        return 0
    names_left = bands[place].text_boxes[1].area.left

    def is_lone(band: Band) -> bool:
        return len(set(band.texts)) < 2 and all(box.area.left < names_left for box in band.text_boxes[:1])

    def is_title(band: Band) -> bool:
        return is_lone(band) and all(box.area.bottom <= band.bottom for box in band.boxes)

    if any(band.texts and is_lone(band) for band in bands[place + 1 : place + 1 + _LOOKED_AT_ROWS]):
        return 0  # it heads a group of rows, as others do
    return len(list(takewhile(is_title, bands[:place])))


def count_rows_above(bands: Sequence[Band]) -> int:
    """Leading rows that are no part of the table below them: those above the row that names its columns, but for titles
    and names of groups of columns.
    """
    place = None if any(box.fill for box in bands[0].boxes) else _named_place(bands)
    if not place or (_names_columns(bands[0]) and len(bands[0].texts) >= len(bands[place].texts)):
        return 0
    return place - len(list(takewhile(lambda row: _stands_above(row, bands[place]), reversed(bands[:place]))))


def _find_names(bands: Sequence[Band]) -> int | None:
    """The leading row that names the columns, where those above are titles, or names of groups of columns, which begin
    right of the first name.
    """
    place = _named_place(bands)
    return place if place is None or all(_stands_above(row, bands[place]) for row in bands[:place]) else None


def _named_place(bands: Sequence[Band]) -> int | None:
    """The first leading row that names the columns of the rows below it."""
    for place, band in enumerate(bands[: min(_MAXIMUM_HEADER_ROWS, len(bands) - _LEAST_VALUE_ROWS)]):
        if _name_columns_of(band, bands[place + 1 :]):
            return None if _is_plain_form(bands[place:]) else place
    return None


def _stands_above(row: Band, names: Band) -> bool:
    """Whether a row is a title of a table, or names groups of its columns."""
    texts = set(row.texts)
    groups = all(box.area.left > names.text_boxes[0].area.left for box in row.text_boxes)
    return (len(texts) < 2 or groups) and len(texts) * 2 <= len(set(names.texts)) and all(map(is_name, texts))


def _name_columns_of(band: Band, below: Sequence[Band]) -> bool:
    """Whether texts, neighbours that are the same taken together, name the columns of rows that hold figures: one of
    them is of the words that name fields, and in the column of one stand mostly figures.
    """
    names = [text for text, _ in groupby(band.texts)]
    if len(set(names)) < max(_LEAST_NAMES, len(names) * _DIFFERENT) or not any(map(_is_field, names)):
        return False
    if any(len(text) > _NAME_CHARS or kind_of(text) in _NO_NAMES for text in names):
        return False
    rows = [row.texts for row in below[:_LOOKED_AT_ROWS]]
    columns = [[text for texts in _texts_below([box], below) for text in texts] for box in band.text_boxes]
    values = [text for column in columns for text in column]
    narrow = sum(len(texts) <= len(band.texts) for texts in rows)
    again = sum(text in names for text in values)
    figures = any(
        len(column) > 1 and _share([kind_of(text) in _FIGURES for text in column]) > _MOST for column in columns
    )
    return figures and narrow >= len(rows) * _ALL_BUT_FEW and again <= len(values) * _RARE


def _is_field(text: str) -> bool:
    return is_attribute(text) or is_generic(text)


def _is_row_group(bands: Sequence[Band]) -> bool:
    """Whether boxes at the left of the first row name a group of rows, each of which has single boxes beside them.

    Beside names of columns that span rows stand several names below another, or their units or years; or the rows below
    have another look, or numbers below the first name.
    """
    first = bands[0]
    count = next((index for index, box in enumerate(first.boxes) if box.area.bottom <= first.bottom), 0)
    if not count or any(box.area.bottom > first.bottom for box in first.boxes[count:]):
        return False
    bottom = min(box.area.bottom for box in first.boxes[:count])
    group = [band for band in bands[1:] if band.top <= bottom]
    below = bands[1 + len(group) :]
    corner = first.boxes[0].text
    if not group or not corner or is_generic(corner) or (below and stands_out(first) != stands_out(below[0])):
        return False
    beside = first.boxes[count:]
    parts = [text for band in group for text in band.texts]
    if any(len(band.starting) > len(beside) for band in group):
        return False
    if all(is_unit(text) or is_period(text) or is_number(text) for text in parts):
        return False
    return not any(is_number(box.text) for band in below[:1] for box in band.boxes[:1])


def _continues_header(band: Band, first: Band, fills: set[str | None]) -> bool:
    """Whether a row has the colours of the first one and names columns; a lone text names a group of rows."""
    texts = sum(bool(box.text) for box in band.boxes)
    return all(box.fill in fills for box in band.boxes) and (texts > 1 or len(first.boxes) == 1 or band is first)


def _comes_again(names: Band, bands: Sequence[Band]) -> bool:
    """Whether texts of a row are values of their columns, as they stand there again; not where all of them do, as at
    the top of a printed page, where a name is all that marks some rows below it, where some name numbers, where nearly
    all are of the words that name fields, or where the row alone is set off.
    """
    boxes, rows = names.text_boxes, bands[:_LOOKED_AT_ROWS]
    below = [band for band in rows if band.texts != names.texts] or rows
    values: dict[int, list[str]] = {}
    for band in below:
        for box in band.text_boxes:
            values.setdefault(box.area.left, []).append(box.text)

    def is_value(box: Box) -> bool:
        column = values.get(box.area.left, [])
        again = column.count(box.text)
        return again > 0 and not again == len(column) < len(below)

    if len(boxes) < _LEAST_NAMES or not any(map(is_value, boxes)):
        return False
    if (look := stands_out(names)) and all(stands_out(band) != look for band in below):
        return False
    columns = ([text for texts in _texts_below([box], below) for text in texts] for box in boxes)
    numbers = any(_share(list(map(is_number, column))) > _MOST for column in columns)
    return not numbers and _share([is_attribute(box.text) for box in boxes]) < _ALL_BUT_FEW


def _names_columns(band: Band) -> bool:
    texts = [box.text for box in band.boxes if box.text]
    if len(texts) * 2 < len(band.boxes) or len(set(texts)) < len(texts):
        return False
    return all(len(text) <= 80 and kind_of(text) not in {Kind.NUMBER, Kind.DATE} for text in texts)


def _names_periods(boxes: Sequence[Box], below: Sequence[Band]) -> bool:
    """Whether boxes of a row count years, months or days from left to right, and the rows below do not."""
    numbers = [box for box in boxes if is_number(box.text)]
    periods = [box for box in boxes if is_number(box.text) or is_period(box.text)]
    if len(periods) < 2 or (numbers and not is_series([box.text for box in numbers])):
        return False
    if numbers and not is_year(numbers[0].text) and not _have_names(below, periods[0].area.left):
        return False
    rows = _texts_below(periods, below)
    alike = sum(_counts_likewise(texts, periods[0].text, numbers=bool(numbers)) for texts in rows)
    return bool(rows) and alike * 2 < len(rows)


def _have_names(bands: Sequence[Band], right: int) -> bool:
    """Whether most rows begin with a word left of a column."""
    rows = bands[:_LOOKED_AT_ROWS]
    name_count = sum(any(box.area.left < right and is_name(box.text) for box in band.boxes) for band in rows)
    return name_count * 2 > len(rows)


def _texts_below(names: Sequence[Box], bands: Sequence[Band]) -> list[list[str]]:
    """Texts in the columns of names, by row, of the first rows, those without any left out."""
    rows = ([box.text for box in _boxes_below(names, band)] for band in bands[:_LOOKED_AT_ROWS])
    return [texts for texts in rows if texts]


def _boxes_below(names: Sequence[Box], band: Band) -> list[Box]:
    """Boxes with text that begin in a row, in the columns of names that stand left to right."""
    lefts = [name.area.left for name in names]
    places = ((bisect_right(lefts, box.area.left) - 1, box) for box in band.text_boxes)
    return [box for place, box in places if place >= 0 and box.area.left <= names[place].area.right]


def _counts_likewise(texts: Sequence[str], first: str, *, numbers: bool) -> bool:
    if not numbers:
        return sum(map(is_period, texts)) * 2 > len(texts)
    return all(map(is_year, texts)) if is_year(first) else is_series(texts)


def _names_parts(bands: Sequence[Band], count: int) -> bool:
    """Whether a row without colours below header rows names the parts of groups that the row above names."""
    above, band, below = bands[count - 1], bands[count], bands[count + 1 :]
    groups = [box for box in above.boxes if box.text and box.area.right > box.area.left and not box.fill]
    parts = _boxes_below(groups, band)
    if len(parts) <= len(groups) or any(box.fill for box in band.boxes):
        return False
    within = [_boxes_below([group], band) for group in groups]
    if all(len(boxes) > 1 and _names_periods(boxes, below) for boxes in within):
        return True
    values = [text for texts in _texts_below(parts, below) for text in texts]
    return all(is_name(box.text) for box in parts) and sum(map(is_number, values)) > len(values) * _MOST


@dataclass(frozen=True, slots=True)
class _Column:
    """Names and the values beside them, from top to bottom, as far as there is a name."""

    pairs: tuple[_Pair, ...]

    @property
    def names(self) -> list[str]:
        return [name.text for name, _ in self.pairs]

    @property
    def values(self) -> list[str]:
        return [value.text if value else "" for _, value in self.pairs]


def _is_coloured_form(bands: Sequence[Band]) -> bool:
    """Whether names with a colour stand left of values without one in most rows."""
    mixed_count = sum(bool(band.boxes[0].fill) and any(not box.fill for box in band.boxes) for band in bands)
    return mixed_count * 2 > len(bands)


def _is_plain_form(bands: Sequence[Band]) -> bool:
    """Whether rows without differences in colour are pairs of names and values."""
    if not 2 <= len(bands) <= _MAXIMUM_ROWS:
        return False
    columns = _pair_columns(bands)
    if not columns:
        return False
    firsts = [column.pairs[0] for column in columns if column.pairs[0][0].area.top <= bands[0].bottom]
    return bool(firsts) and _look_score(columns, firsts) + _word_score(columns, firsts) >= _FORM_SCORE


def _pair_columns(bands: Sequence[Band]) -> list[_Column]:
    """Names and values where they alternate from left to right; none where they cannot."""
    groups = _group_boxes(bands)
    rows = [[box for box in band.boxes if id(box) not in groups] for band in bands]
    lefts = sorted({box.area.left for row in rows for box in row})
    if max(map(len, rows)) > 2 * _MAXIMUM_PAIRS:
        return []
    if all(len(row) % 2 == 0 for row in rows) and len({row[0].area.left for row in rows if row}) == 1:
        pairs = [list(_row_pairs(row)) for row in rows]
    elif len(lefts) % 2 == 0:
        pairs = [list(_placed_pairs(row, lefts)) for row in rows]
    else:
        return []
    columns: dict[int, dict[int, _Pair]] = {}
    for row_pairs in pairs:
        for name, value in row_pairs:
            columns.setdefault(name.area.left, {})[id(name)] = (name, value)
    if not 1 <= len(columns) <= _MAXIMUM_PAIRS:
        return []
    return [_Column(tuple(column.values())) for _, column in sorted(columns.items())]


def _group_boxes(bands: Sequence[Band]) -> set[int]:
    """Boxes at the left edge that each name a group of several rows."""
    left = min(band.boxes[0].area.left for band in bands)
    edge = {id(band.boxes[0]): band.boxes[0] for band in bands}
    is_group = (
        box.area.left == left and sum(box.area.top <= band.top <= box.area.bottom for band in bands) > 1
        for box in edge.values()
    )
    return set(edge) if all(is_group) else set()


def _row_pairs(row: Sequence[Box]) -> Iterator[_Pair]:
    for name, value in zip(row[::2], row[1::2], strict=True):
        if name.text:
            yield name, value


def _placed_pairs(row: Sequence[Box], lefts: Sequence[int]) -> Iterator[_Pair]:
    by_left = {box.area.left: box for box in row}
    for name_left, value_left in zip(lefts[::2], lefts[1::2], strict=True):
        name, value = by_left.get(name_left), by_left.get(value_left)
        if name is not None and name.text:
            yield name, value
        elif value is not None and value.text:
            yield Box(value.area._replace(right=value.area.left), ""), value


def _look_score(columns: Sequence[_Column], firsts: Sequence[_Pair]) -> float:
    """Bold names speak for a form; a first row that alone is bold speaks for names of columns."""
    pairs = [pair for column in columns for pair in column.pairs]
    bold_values = _share([value.bold for name, value in pairs if value and value.text and (name, value) not in firsts])
    if all(name.bold and value and value.bold for name, value in firsts):
        return -5.0 if bold_values < _HALF else 0.0
    bold_names = _share([name.bold for name, _ in pairs])
    return 4.0 if bold_names > 1 - _FEW and bold_values < _FEW else 0.0


def _word_score(columns: Sequence[_Column], firsts: Sequence[_Pair]) -> float:
    names = [name for column in columns for name in column.names]
    below = [text for column in columns for text in column.names[1:]]
    score = _first_score(firsts) + sum(map(_value_score, columns)) / len(columns) if below else -5.0
    shares = [_share(list(map(_is_label, column.names[1:] or column.names))) for column in columns]
    if min(shares) >= _MOST:
        score += 3.0
    elif min(shares) >= _SOME and len(below) > 2:
        score += 1.5
    elif min(shares) < _FEW:
        score -= 1.0 if len(columns) == 1 else 3.0
    if _share([not is_name(text) or kind_of(text) is Kind.PERIOD for text in names]) > 1 / 3:
        score -= 4.0  # numbers, codes, dates and sentences name nothing
    if len(set(names)) < len(names):
        score -= 3.0
    return score - (2.0 if len(below) > _MAXIMUM_ROWS // 2 else 0.0)


def _is_label(text: str) -> bool:
    return text.rstrip().endswith((":", "：")) or is_attribute(text)


def _first_score(firsts: Sequence[_Pair]) -> float:
    """What the first row says: whether it holds names of columns, or values that could name none."""
    values = [value.text for _, value in firsts if value and value.text]
    score = -2.0 if is_generic(firsts[0][0].text) else 0.0
    if any(name.text.rstrip().endswith((":", "：")) for name, _ in firsts):
        score += 2.0
    if not values:
        return score
    if any(kind_of(text) not in {Kind.WORDS, Kind.PERIOD} or len(text) > _LABEL_CHARS for text in values):
        return score + 3.0  # no names of columns
    if any(map(names_value, values)):
        return score - 4.0
    if all(_is_likewise_attribute(name.text, value.text) for name, value in firsts if value and value.text):
        return score - 2.0
    return score + (1.5 if any(has_digit(plain(text)) for text in values) else 1.0)


def _is_likewise_attribute(name: str, value: str) -> bool:
    """Whether a value names a field in the script of its name: beside `物理名`, `CUSTOMER` is a value."""
    return is_attribute(value) and (not value.isascii() or name.isascii() or len(value) <= _SHORT_CHARS)


def _value_score(column: _Column) -> float:
    """Values of a form are of several kinds and differ; those of a column are alike."""
    first, *below = column.values
    texts = [text for text in below if text]
    if not texts:
        return 0.0
    kinds = {kind_of(text) for text in texts}
    score = {1: 0.0, 2: 1.0}.get(len(kinds), 2.0)
    alike = len(texts) > 1 and len(kinds) == 1
    if alike and kinds <= {Kind.NUMBER, Kind.DATE, Kind.MARK} and kind_of(first) not in kinds:
        score -= 1.5
    if first in texts and len(first) > 1:
        score += 2.0  # the name of a column is no value in it
    elif len(texts) > 3 and len(set(texts)) <= len(texts) * _HALF:
        score -= 1.5
    return score


def _share(results: Sequence[bool]) -> float:
    return sum(results) / len(results) if results else 0.0
