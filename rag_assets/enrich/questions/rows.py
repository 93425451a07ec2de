"""Which columns of a table name its rows, and which of their cells tell something about them."""

import re
from collections import Counter
from collections.abc import Sequence

from rag_assets.enrich.questions.texts import LABEL_CHARS, LETTER, folded, is_data, is_header_word, says_something
from rag_assets.text.plain import one_line

_NUMBER_HEADER = re.compile(r"(?:no\.?|№|#|番号|項番|項|連番|通番|行番号?|.{0,8}no\.?|seq|s/n)\.?", re.IGNORECASE)
_NAME_HEADER = re.compile(
    r"(?:名|名称|名前|氏名|件名|題名|題目|タイトル|項目|品目|用語|コード|ID|name|title|subject|term|item|code|model)$",
    re.IGNORECASE,
)
_TELLING_HEADER = re.compile(
    r"(?:例|サンプル値?|説明|備考|型|桁数?|初期値|examples?|remarks?|description)(?:\s*[(（].*[)）])?$", re.IGNORECASE
)
_CLASS_HEADER = re.compile(r"(?:項目|分類|区分|種別|観点|カテゴリー?|category|class|group|type)\d*$", re.IGNORECASE)
_CODE_HEADER = re.compile(r"(?:コード|ID|番号|code|number)\)?$", re.IGNORECASE)
_CODE = re.compile(r"(?=[A-Za-z0-9_./-]*\d)(?=[A-Za-z0-9_./-]*[A-Za-z])[A-Za-z0-9_./-]{3,}")
_PATH = 2  # columns that name rows together, at most
_OFTEN = 8  # rows that may say the same
_CELLS = 2  # of a row
_HEADER_CHARS = 40  # of the column that names rows; a longer one is a title above the table
KEY_CHARS = 70


def key_columns(header: Sequence[str], columns: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], bool]:
    """The columns that name rows, and whether each row has a name of its own.

    That is the first column with texts that are nearly all different, no running number, names and codes before others;
    where there is none, of the columns of classes and subclasses before those that describe them the two side by side
    that tell most rows apart.
    """
    best: tuple[float, int] | None = None
    classes: list[int] = []
    described = False
    for column, name in enumerate(header):
        values = columns[column]
        filled = [value for value in values if value]
        if not name or not _is_header(name) or _is_one_of(name, filled) or len(filled) < max(1, len(values) // 2):
            continue
        if _TELLING_HEADER.search(name) or len(name) > _HEADER_CHARS:
            continue
        named = [value for value in filled if says_something(value)]
        if sum(can_be_key(value, name) for value in named) < max(1, 0.6 * len(named)):
            described = described or bool(classes)
            continue
        distinct = len(set(filled)) / len(filled)
        if distinct < 0.6:
            classes += [] if described else [column]
            continue
        lengthy = sum(len(value) > 20 for value in filled) / len(filled)
        score = distinct - 0.1 * column - 0.2 * lengthy + 0.8 * bool(_NAME_HEADER.search(name))
        score += 0.1 * all(map(_CODE.fullmatch, filled))
        if best is None or score > best[0]:
            best = score, column
    if best is not None:
        return (best[1],), True
    paths = [tuple(classes[max(0, end - _PATH) : end]) for end in range(1, len(classes) + 1)]
    told = [len(set(zip(*(columns[column] for column in path), strict=True))) for path in paths]
    return (paths[told.index(max(told))] if paths else ()), False


def group_column(
    header: Sequence[str], columns: Sequence[Sequence[str]], row: int, column: int, key: int
) -> int | None:
    """The column before the key whose value a cell tells about where both stand for the same several rows, as cells
    merged over the rows of a code do; names and codes before others, None where the cell tells about its own row.
    """
    run = _run(columns[column], row)
    if len(run) == 1:
        return None
    found = [
        other
        for other in range(min(column, key))
        if columns[other][row] and _is_header(header[other]) and _run(columns[other], row) == run
    ]
    return min(found, key=lambda other: (not _NAME_HEADER.search(header[other]), other), default=None)


def _run(values: Sequence[str], row: int) -> range:
    """The rows around a row that hold the same value without a gap."""
    first, last = row, row + 1
    while first and values[first - 1] == values[row]:
        first -= 1
    while last < len(values) and values[last] == values[row]:
        last += 1
    return range(first, last)


def can_be_key(text: str, header: str = "") -> bool:
    """Whether a cell can name its row; figures can under a header that says that they are codes."""
    if re.fullmatch(r"[0-9A-Za-z_./-]{2,80}", text) and (_CODE_HEADER.search(header) or LETTER.search(text)):
        return bool(_CODE_HEADER.search(header)) or len(LETTER.findall(text)) >= 2
    if not 2 <= len(text) <= KEY_CHARS or text.endswith(("。", ":", "：")):
        return False
    return bool(LETTER.search(text)) and not is_data(text) and says_something(text)


def column_title(path: str) -> str:
    """The lowest header of a column, with those above it where it says nothing by itself (a unit, a year)."""
    parts = path.split(" > ")
    title = parts.pop()
    while parts and (is_data(title) or title.startswith(("(", "（"))):
        above = parts.pop()
        title = above if is_data(title) and not title.startswith(("(", "（")) else f"{above} {title}"
    return " ".join(dict.fromkeys(one_line(title).split()))


def _is_one_of(header: str, values: Sequence[str]) -> bool:
    """Whether a header looks like the cells under it, as where the first row was taken for one: `SMITH, J`."""
    return "," in header and sum("," in value for value in values) * 2 > len(values)


def _is_header(title: str) -> bool:
    return (
        bool(LETTER.search(title))
        and not _NUMBER_HEADER.fullmatch(title)
        and not re.search(r"(?:[:：。]|No\.?)$", title)
    )


def telling_columns(
    header: Sequence[str],
    columns: Sequence[Sequence[str]],
    values: Sequence[Counter[str]],
    row: int,
    keys: Sequence[int],
    language: str,
) -> list[int]:
    """The columns of a row whose cells say most: long and rare in their column first, at most `_CELLS`, none a mark, an
    empty word, what most or many rows say, or the class that several rows belong to.
    """
    name = folded(columns[keys[-1]][row])
    ranked = []
    for column, title in enumerate(header):
        value = columns[column][row]
        if column in keys or not 2 <= len(title) <= LABEL_CHARS[language] or title in {header[key] for key in keys}:
            continue
        if not _is_header(title) or not says_something(value):
            continue
        if is_header_word(value) and is_header_word(name):  # a row of headers within the table
            continue
        if folded(value) == name or (folded(value) in name and len(value) > 1) or title in value:
            continue
        count, total = values[column][value], len(columns[column])
        if (total >= 4 and count * 2 > total) or count > _OFTEN:
            continue
        is_class = count > 1 and column < keys[0]
        if is_class and (_CLASS_HEADER.search(title) or group_column(header, columns, row, column, keys[0]) is None):
            continue
        ranked.append((-min(len(value), 60) * (1.5 - count / total), column))
    return [column for _, column in sorted(ranked)[:_CELLS]]
