"""Rows of a whole table that a question asks for: those that have what it names, how many they are, or the extreme one.

A passage holds a part of a table; what is true of all its rows is told from the table as it was read. A question names
a row's value where a cell stands in it as a word of its own, or behind the name of its column (`提供なし`), and its
other words must be about the table: its columns, title and place. Else it asks for something else, and nothing is
selected.

What stays out: which tables are looked at, and how rows are cited (`rag_assets.query.ask.asking`).
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any

from rag_assets.contracts.content import Row
from rag_assets.parsing.chunking import column_names
from rag_assets.query.ask.answers import Sentence, SentenceCitation
from rag_assets.query.ask.statements import cut
from rag_assets.query.ask.wanted import asks_for_several, is_named
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.text.folding import content_words, fold_name, shares_held
from rag_assets.text.language import is_japanese
from rag_assets.text.plain import one_line

MOST_ROWS = 5_000  # of a table that is looked at while a question is answered
_LEAST_ROWS = 3  # of a table that rows are selected from
_LEAST_COMPARED = 2
_KEY = 0.9  # share of the cells of a column that differ, from which it tells rows apart
_ABOUT = 0.8  # share of the question's words that are about the table
_NUMERIC = 0.8  # share of the cells of a column of figures
_COUNT_ASKED = re.compile(
    r"何(?:件|個|つ|行|人|名|本|台|種類|社|枚|冊|点|回|か所|箇所)(?:です|でしょ|あ(?:り|る)|い(?:ます|る)|[?？]|$)"
    r"|いくつ(?:です|でしょ|あ(?:り|る)|[?？]|$)|(?:件数|個数|総数)(?:は|を|[?？]|$)|\bhow many\b",
    re.IGNORECASE,
)
_VALUE_ASKED = re.compile("いくつ(?!あ)")  # as the value of a column, too
_SUM_ASKED = re.compile(r"合計|総計|総額|\b(?:total|sum) (?:of|amount)\b|\bin total\b", re.IGNORECASE)
_WHICH_ASKED = re.compile(
    r"どれ(?!くらい|だけ|ほど)|どの(?!よう|くらい|程度)|どちら|(?:は|って)[?？]?$|\bwhich\b|\bwhat are\b", re.IGNORECASE
)
_EXTREME_ASKED = re.compile(
    r"(?:一番|いちばん|最も|もっとも)(?P<ja>大き|多|高|長|重|広|新し|遅|小さ|少な|低|短|軽|狭|古|早|安)\w?い?"
    r"|最(?P<sign>[大高多長新小低少短古安])(?=の|です|な|は|[?？]|$)"
    r"|\b(?P<en>largest|highest|biggest|longest|latest|newest|most|smallest|lowest|shortest|earliest|oldest|cheapest"
    r"|fewest|least)\b",
    re.IGNORECASE,
)
_LEAST = frozenset(
    [
        "小さ",
        "少な",
        "低",
        "短",
        "軽",
        "狭",
        "古",
        "早",
        "安",
        "小",
        "少",
        "smallest",
        "lowest",
        "shortest",
        "earliest",
        "oldest",
        "cheapest",
        "fewest",
        "least",
    ]
)
_OF_TIME = frozenset(["新し", "古", "新", "早", "遅", "latest", "newest", "earliest", "oldest"])
_TOTAL = re.compile(r"(?:合|小|総|累)?計|(?:sub|grand )?total|sum", re.IGNORECASE)
_FIGURE = re.compile(
    r"[¥￥$€]?\s?(?P<number>[-△▲]?\d[\d,]*(?:\.\d+)?)\s?(?P<unit>[円件個人名台本枚冊点%％]|[a-zA-Zμ²³/]{1,6})?"
)
_DAY = re.compile(r"(?:19|20)\d\d[-/.年]\d{1,2}(?:[-/.月]\d{1,2}日?)?")
_ROWS_CHARS = 900
_ROW_CHARS = 200
_CELL = " | "
_MORE = {"ja": "（ほか {count} 件）", "en": "(and {count} more)"}
_ASKING = re.compile("全部|全て|合計|一覧|該当|列挙|教え|挙げ|示し")
_JOINING = re.compile(r"\s*(?:と|や|か|、|,|・|/|または|及び|および|and|or)+\s*")
_BETWEEN = ("", "が", "は", "の", " ")  # the name of a column and its value


@dataclass(frozen=True)
class TableOfPage:
    """A table as it was read.

    Attributes:
        columns: Names of its columns, the lowest of each.
        rows: Its rows below the names; a merged value stands in each of its cells.
        about: What stands above it: headings, caption.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    about: str

    @classmethod
    def of(cls, block: Mapping[str, Any]) -> "TableOfPage | None":
        """The table that a row of `blocks` holds; None of one without names of columns."""
        count = block["header_row_count"] or 0
        rows = [tuple(one_line(cell or "") for cell in row["cells"]) for row in block["rows"] or ()]
        if not 0 < count < len(rows):
            return None
        names = column_names([Row(cells) for cells in rows[:count]])
        columns = tuple(name.rpartition(" > ")[2] for name in names)
        return cls(columns, tuple(rows[count:]), " ".join(block["section"] or ()))


@dataclass(frozen=True)
class Selection:
    """Rows that a question asks for.

    Attributes:
        rows: Each as pairs of the name of a column and what stands there; of several, what tells them apart.
        cells: The cells of each, as they are.
        said: How many they are, or the sum of a column, with what the question names, where that is asked for.
    """

    rows: tuple[tuple[tuple[str, str], ...], ...]
    cells: tuple[tuple[str, ...], ...]
    said: str = ""


@dataclass(frozen=True)
class RowsAsked:
    """What a question asks of the rows of a table.

    Attributes:
        text: The question.
        counted: Whether it asks how many.
        summed: Whether it asks for a sum.
        several: Whether it asks which, or for a list.
        extreme: What tells that it asks for the one with the most or the least of something, as it stands.
    """

    text: str
    counted: bool
    summed: bool
    several: bool
    extreme: str

    @classmethod
    def of(cls, question: str) -> "RowsAsked":
        """What the words of a question ask for."""
        text = unicodedata.normalize("NFKC", question).strip().rstrip("。")
        extreme = _EXTREME_ASKED.search(text)
        return cls(
            text,
            counted=bool(_COUNT_ASKED.search(text)),
            summed=bool(_SUM_ASKED.search(text)),
            several=asks_for_several(text) or bool(_WHICH_ASKED.search(text)),
            extreme=next((each.lower() for each in extreme.groups() if each), "") if extreme else "",
        )

    def select(self, table: TableOfPage, around: str) -> Selection | None:
        """The rows of a table that are asked for; None where it is not what the question is about.

        Args:
            table: The table.
            around: What else is known of it: its place, and how its document begins.
        """
        rows = [row for row in table.rows if any(row) and not _TOTAL.fullmatch(next(filter(None, row)))]
        named = self._named(table.columns, rows)
        chosen = [row for row in rows if all(row[place] in values for place, values in named.items())]
        values = [value for each in named.values() for value in each]
        known = "\n".join([*table.columns, *values, table.about, around])
        if len(rows) < _LEAST_ROWS or not chosen or not self._is_about(known):
            return None
        column = self._measured(table.columns, rows)
        if self.extreme:
            if column is None or len(chosen) < _LEAST_COMPARED:
                return None
            best = _extreme(chosen, column, least=self.extreme in _LEAST)
            return _selection(table.columns, best, column) if best else None
        if len(chosen) == 1 and not self.counted:
            return self._looked_up(table.columns, rows, chosen[0], named)
        if len(chosen) == len(rows) or not self._groups(named, rows):
            return None
        said = ""
        terms = ", ".join(f"{table.columns[place]}: {' / '.join(sorted(each))}" for place, each in named.items())
        if self.summed:
            total = _sum([row[column] for row in chosen]) if column is not None else ""
            said = f"{total} ({table.columns[column or 0]}, {terms})" if total else ""
        elif (
            self.counted
            and column is None
            and not (_VALUE_ASKED.search(self.text) and self._asked_columns(table.columns, named))
        ):
            said = f"{len(chosen)}{'件' if is_japanese(self.text) else ''} ({terms})"
        asks_for_rows = self.several and not (self.counted or self.summed)
        return _selection(table.columns, chosen, column, said) if said or asks_for_rows else None

    def _looked_up(
        self,
        columns: Sequence[str],
        rows: Sequence[tuple[str, ...]],
        row: tuple[str, ...],
        named: Mapping[int, Set[str]],
    ) -> Selection | None:
        """The row of the key that the question names, where it asks for other columns by their names."""
        folded = fold_name(self.text)
        keys = [place for place in named if len({each[place] for each in rows}) >= _KEY * len(rows)]
        asked = [place for place in self._asked_columns(columns, named) if row[place]]
        if not keys or not (asked or any(is_named(folded, fold_name(columns[place])) for place in keys)):
            return None
        order = [*keys, *asked, *(place for place in range(len(columns)) if place not in {*keys, *asked})]
        return Selection((_pairs(columns, row, order),), (row,))

    def _named(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[int, set[str]]:
        """By column, the values that the question names."""
        folded = fold_name(_EXTREME_ASKED.sub(" ", _COUNT_ASKED.sub(" ", self.text)))
        days = set(map(_day, _DAY.findall(self.text)))
        found: dict[int, set[str]] = {}
        for place, column in enumerate(columns):
            name = fold_name(column)
            for value in {row[place] for row in rows if row[place]}:
                word = fold_name(value)
                if word and word in folded:
                    behind = name and any(is_named(folded, f"{name}{each}{word}") for each in _BETWEEN)
                    is_word = len(word) > 1 and is_named(folded, word) and not _is_verb(folded, word)
                else:
                    behind, is_word = False, bool(days) and _DAY.fullmatch(value) is not None and _day(value) in days
                if behind or is_word:
                    found.setdefault(place, set()).add(value)
        return found

    def _asked_columns(self, columns: Sequence[str], named: Collection[int]) -> list[int]:
        """The columns that the question names, but for those of the values that it names."""
        folded = fold_name(self.text)
        return [
            place for place, column in enumerate(columns) if place not in named and is_named(folded, fold_name(column))
        ]

    def _groups(self, named: Mapping[int, Set[str]], rows: Sequence[tuple[str, ...]]) -> bool:
        """Whether what is named groups rows, and is no key; several values of one column are named together."""
        folded = fold_name(self.text)
        together = all(len(values) < 2 or _are_joined(folded, map(fold_name, values)) for values in named.values())
        return together and any(
            sum(row[place] in values for row in rows) > len(values) for place, values in named.items()
        )

    def _measured(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int | None:
        """The column of figures, or of dates, that the question names; of several the one with the longest name."""
        folded = fold_name(self.text)
        fits = [
            (len(column), place)
            for place, column in enumerate(columns)
            if column
            and fold_name(column) in folded
            and sum(_value(row[place], of_time=self.extreme in _OF_TIME) is not None for row in rows)
            >= _NUMERIC * len(rows)
        ]
        return max(fits)[1] if fits else None

    def _is_about(self, known: str) -> bool:
        asked = _ASKING.sub(" ", _EXTREME_ASKED.sub(" ", _COUNT_ASKED.sub(" ", self.text)))
        words = [
            word for word in dict.fromkeys(content_words(keywords(asked))) if len(word[0]) > 1
        ]  # no stems of verbs
        shares = shares_held(words, known)
        return bool(words) and sum(shares) >= _ABOUT * len(words)


def _is_verb(text: str, word: str) -> bool:
    """Whether a word is the stem of a verb where it stands in a text, as in `更新した`."""
    return re.match("し|す[るれ]|さ[れせ]", text[text.find(word) + len(word) :]) is not None


def _are_joined(text: str, words: Iterable[str]) -> bool:
    """Whether words are named together, as in `未入金と保留`."""
    ordered = sorted(words, key=text.find)
    between = (text[text.find(one) + len(one) : text.find(other)] for one, other in pairwise(ordered))
    return all(_JOINING.fullmatch(each) for each in between)


def _value(cell: str, *, of_time: bool) -> float | None:
    """A figure, or a day as one; None of any other text."""
    text = unicodedata.normalize("NFKC", cell).strip()
    if _DAY.fullmatch(text):
        return float(sum(part * 100.0**-place for place, part in enumerate(_day(text))))
    figure = None if of_time else _FIGURE.fullmatch(text)
    return float(_plain_number(figure["number"])) if figure else None


def _day(text: str) -> tuple[int, ...]:
    """Year, month and day of a date."""
    return tuple(map(int, re.findall(r"\d+", text)))


def _plain_number(text: str) -> str:
    return re.sub("[△▲]", "-", text).replace(",", "")


def _extreme(rows: Sequence[tuple[str, ...]], column: int, *, least: bool) -> list[tuple[str, ...]]:
    measured = [(value, row) for row in rows if (value := _value(row[column], of_time=False)) is not None]
    best = (min if least else max)((value for value, _ in measured), default=None)
    return [row for value, row in measured if value == best]


def _sum(cells: Sequence[str]) -> str:
    """The sum of figures with one unit; empty where they have several, or not all are figures."""
    figures = [_FIGURE.fullmatch(unicodedata.normalize("NFKC", cell).strip()) for cell in cells if cell]
    numbers = [Decimal(_plain_number(each["number"])) for each in figures if each]
    units = {each["unit"] or "" for each in figures if each}
    if len(numbers) < len(figures) or len(units) != 1:
        return ""
    return f"{sum(numbers):,}{units.pop()}"


def _selection(
    columns: Sequence[str], rows: Sequence[tuple[str, ...]], measured: int | None, said: str = ""
) -> Selection:
    """Rows with what tells them apart, and the figure by which they were chosen."""
    telling = [
        place
        for place in range(len(columns))
        if len(rows) == 1 or place == measured or len({row[place] for row in rows}) > 1
    ]
    return Selection(tuple(_pairs(columns, row, telling) for row in rows), tuple(rows), said)


def _pairs(columns: Sequence[str], row: Sequence[str], places: Iterable[int]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys((columns[place], row[place]) for place in places if row[place]))


def told_rows(
    selection: Selection, passages: Sequence[Mapping[str, str]], language: str
) -> tuple[tuple[Sentence, ...], list[str]]:
    """The rows selected as sentences, as many as there is room for, each with the passage that holds it.

    Args:
        selection: The rows.
        passages: `chunk_id` and `text` of the passages of the page.
        language: In which is said how many there are.

    Returns:
        Sentences that cite passages by their number, from 1, and the ids of these passages in that order.
    """
    ids: list[str] = []
    sentences: list[Sentence] = []
    room = _ROWS_CHARS
    for row, cells in zip(selection.rows, selection.cells, strict=True):
        holding = next((each for each in passages if _holds(each["text"], cells)), None)
        text = _row_text(row)
        if holding is None or (sentences and len(text) > room):
            continue
        if holding["chunk_id"] not in ids:
            ids.append(holding["chunk_id"])
        quote = _quote(holding["text"].splitlines(), cells)
        sentences.append(Sentence(text, (SentenceCitation(ids.index(holding["chunk_id"]) + 1, quote, bool(quote)),)))
        room -= len(text)
    if selection.said and sentences:
        sentences.insert(0, replace(sentences[0], text=selection.said))
    elif len(sentences) < len(selection.rows) and sentences:
        more = _MORE.get(language, _MORE["en"]).format(count=len(selection.rows) - len(sentences))
        sentences[-1] = replace(sentences[-1], text=f"{sentences[-1].text} {more}")
    return tuple(sentences), ids


def _quote(lines: Sequence[str], cells: Sequence[str]) -> str:
    """The fewest lines of a passage that hold a row, which may be one or, of a wide row, one a cell."""
    for length in range(1, len(lines) + 1):
        for start in range(len(lines) - length + 1):
            if _holds(text := "\n".join(lines[start : start + length]), cells):
                return cut(text)
    return ""


def _holds(text: str, cells: Sequence[str]) -> bool:
    shown = one_line(text)
    return all(cell in shown for cell in cells if cell)


def _row_text(row: Sequence[tuple[str, str]]) -> str:
    """A row, of a long one the first cells."""
    said = [f"{column}: {value}" if column else value for column, value in row]
    lengths = list(accumulate(len(each) + len(_CELL) for each in said))
    fit = [each for each, length in zip(said, lengths, strict=True) if length <= _ROW_CHARS]
    return cut(_CELL.join(fit or said[:1]))
