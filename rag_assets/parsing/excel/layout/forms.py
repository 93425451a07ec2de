"""Whether a table is a form: names with their values beside them, in place of rows below names of columns.

In a form that is drawn without colours nothing but its words and their looks tells it from a table of two columns.
Several signs are added up, since each of them fails somewhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.parsing.excel.layout.bands import Band, Box
from rag_assets.parsing.excel.layout.names import (
    Kind,
    has_digit,
    is_attribute,
    is_generic,
    is_name,
    kind_of,
    names_value,
    plain,
)

_FORM_SCORE = 2.0
_MAXIMUM_ROWS = 60
_MAXIMUM_PAIRS = 4
_LABEL_CHARS = 25
_MOST, _HALF, _SOME, _FEW = 0.6, 0.5, 0.4, 0.2
_SHORT_CHARS = 4

Pair = tuple[Box, Box | None]


@dataclass(frozen=True, slots=True)
class _Column:
    """Names and the values beside them, from top to bottom, as far as there is a name."""

    pairs: tuple[Pair, ...]

    @property
    def names(self) -> list[str]:
        return [name.text for name, _ in self.pairs]

    @property
    def values(self) -> list[str]:
        return [value.text if value else "" for _, value in self.pairs]


def is_coloured_form(bands: Sequence[Band]) -> bool:
    """Whether names with a colour stand left of values without one in most rows."""
    mixed = sum(bool(band.boxes[0].fill) and any(not box.fill for box in band.boxes) for band in bands)
    return mixed * 2 > len(bands)


def is_plain_form(bands: Sequence[Band]) -> bool:
    """Whether rows without differences in colour are pairs of names and values.

    Args:
        bands: Rows that hold a text.
    """
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
    columns: dict[int, dict[int, Pair]] = {}
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


def _row_pairs(row: Sequence[Box]) -> Iterator[Pair]:
    for name, value in zip(row[::2], row[1::2], strict=True):
        if name.text:
            yield name, value


def _placed_pairs(row: Sequence[Box], lefts: Sequence[int]) -> Iterator[Pair]:
    by_left = {box.area.left: box for box in row}
    for name_left, value_left in zip(lefts[::2], lefts[1::2], strict=True):
        name, value = by_left.get(name_left), by_left.get(value_left)
        if name is not None and name.text:
            yield name, value
        elif value is not None and value.text:
            yield Box(value.area._replace(right=value.area.left), ""), value


def _look_score(columns: Sequence[_Column], firsts: Sequence[Pair]) -> float:
    """Bold names speak for a form; a first row that alone is bold speaks for names of columns."""
    pairs = [pair for column in columns for pair in column.pairs]
    bold_values = _share([value.bold for name, value in pairs if value and value.text and (name, value) not in firsts])
    if all(name.bold and value and value.bold for name, value in firsts):
        return -5.0 if bold_values < _HALF else 0.0
    bold_names = _share([name.bold for name, _ in pairs])
    return 4.0 if bold_names > 1 - _FEW and bold_values < _FEW else 0.0


def _word_score(columns: Sequence[_Column], firsts: Sequence[Pair]) -> float:
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


def _first_score(firsts: Sequence[Pair]) -> float:
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
