"""Rows of a whole table that a question asks for: which have what it names, how many, a sum, the one with the most.

A passage holds a part of a table; what is true of all its rows is told from the table as it was read. What is told so
is said surely, so every word of a question must be accounted for: it is a value of the table, the name of a column, of
the table or of its place, part of a form in which such questions are asked, or a particle. A condition that nothing
here can check (`10より大きい`, `未入金でない`, `5月以降`, `per owner`) leaves words over, and then nothing is selected.

What stays out: which tables are looked at, and how passages are read (`rag_assets.query.ask.asking`).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import accumulate, pairwise, takewhile
from typing import Any

from rag_assets.contracts.content import Row
from rag_assets.parsing.chunking import column_names
from rag_assets.query.ask.answers import Sentence, SentenceCitation
from rag_assets.query.ask.statements import cut
from rag_assets.query.ask.wanted import asks_for_several, is_named
from rag_assets.text.folding import fold_name
from rag_assets.text.language import is_japanese
from rag_assets.text.plain import is_total, one_line
from rag_assets.text.scripts import HAN, HIRAGANA, KATAKANA_AND_MARKS

MOST_ROWS = 5_000  # of a table that is looked at while a question is answered
_LEAST_ROWS = 3  # of a table that rows are selected from
_KEY = 0.9  # share of the cells of a column that differ, from which it tells rows apart
_ROWS_CHARS = 900
_ROW_CHARS = 200
_LEAST_CELLS = 4  # of a wide row, by which a passage is told to hold it
_WHOLE_CHARS = 60  # of a cell, up to which it stands in a passage on one line
_CELL = " | "
_MORE = {"ja": "（ほか {count} 件）", "en": "(and {count} more)"}

_COUNT_ASKED = re.compile(
    r"何(?P<unit>件|個|つ|行|本|台|枚|冊|点)(?:です|でしょ|あ(?:り|る)|[?？]|$)|いくつあ(?:り|る)|(?:件数|総数)(?:は|を|[?？]|$)"
    r"|\bhow many\b"
)
_COUNTED_BY = re.compile("[数量個点枚本台冊]|quantity|number")  # in the name of a column of figures
_SUM_ASKED = re.compile(r"合計|総計|総額|\b(?:total|sum)\b")
_EXTREME_ASKED = re.compile(
    r"(?:一番|いちばん|最も|もっとも)(?P<ja>大き|多|高|長|重|広|新し|遅|小さ|少な|低|短|軽|狭|古|早|安)い?"
    r"|最(?P<sign>[大高多長新小低少短古安])(?=の|です|な|は|[?？]|$)"
    r"|\b(?P<en>largest|highest|biggest|longest|latest|newest|most|smallest|lowest|shortest|earliest|oldest|cheapest)\b"
)
_LEAST = frozenset(
    re.findall(r"\S+", "小さ 少な 低 短 軽 狭 古 早 安 小 少 smallest lowest shortest earliest oldest cheapest")
)
_WHICH_ASKED = re.compile(r"どれ|どの|どちら|何が|何(?:です|でしょ)|(?:は|って)[?？]?$|\b(?:which|what)\b")
_LIST_ASKED = re.compile("一覧|全部|すべて|全て|列挙")
_NOT_CHECKED = re.compile(
    r"ない|なく|なかっ|じゃ|以外|除[くい]|抜き|より|以上|以下|以降|以前|未満|超|まで|から|ごと|別[のに]|毎|次[のに]|[前後]の|とは|なぜ|どう"
    r"|とき|場合|ほう|方が|同じ|うち(?!訳)|[他外]に|ほかに|だけ|[≠!<>〜~+=]|[a-z\d]-(?![a-z\d])"
    r"|\b(?:not|no|without|except|excluding|other|neither|nor|never|more|less|fewer|over|under|above|below|than|since"
    r"|before|after|at|per|each|why|when|if|top|only|have|has|had|with)\b|n't\b"
)
_NO_MEASURE = re.compile(
    r"優先|順位|ランク|重要度|レベル|版|バージョン|リビジョン|改訂|番号|コード|計"
    r"|\b(?:no|id|rank|priority|version|ver|rev|code|total)\b"
)
_FIGURE = re.compile(
    r"(?P<sign>[¥￥$€]?)\s?(?P<number>[-−△▲]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)\s?(?P<unit>[^\W\d]{0,4}|%)"
)
_DAY = re.compile(r"(?:19|20)\d\d(?:[-/.]|年)\d{1,2}(?:(?:[-/.]|月)\d{1,2}日?)?")
_BETWEEN = ("", "が", "は", "の", "に", " ")  # the name of a column and its value
_JOINING = re.compile(r"\s*(?:と|や|か|、|,|・|/|または|及び|および|and|or)+\s*")
_JOINED = re.compile(r"[かとやも/・、]|または|\bor\b|\band\b")
_VERB = "し|す[るれ]|さ[れせ]|でき"  # behind its stem
_RUN = re.compile(rf"[{HAN}]+|[{KATAKANA_AND_MARKS}]+|[{HIRAGANA}]+|[^\W_{HAN}{KATAKANA_AND_MARKS}{HIRAGANA}]+")
_PARTICLES = re.compile(
    "(?:いくら|いくつ|なに|なん|いつ|だれ|どこ|の|が|は|を|で|に|と|へ|も|や|お|ご|さん|です|ですか|ますか|でしょうか|なっている|なっています"
    "|なって|となっている|えて|げて|せて|べて|ください|もの|こと|って|という|ほしい|たい|う|か)+"
)
_HARMLESS = frozenset(
    re.findall(
        r"\S+",
        "教 知 挙 示 見 調 買 使 行 件 項目 全 全部 一覧 該当 欄 列 表 シート ファイル データ リスト",
    )
)
_GRAMMAR = frozenset(
    re.findall(
        r"\S+",
        "which what are is was the a an of in on for there do does did please list show me all that "
        "by from to s and row rows item items entry entries sheet table file column value values many how amount",
    )
)
_COMMON = _GRAMMAR | {"yes", "none", "any", "あり", "なし", "有", "無", "有り", "無し", "すべて", "全て", "全部"}

_Named = Mapping[int, tuple[str, ...]]
"""The values that a question names, by their column."""


@dataclass(frozen=True)
class TableOfPage:
    """A table as it was read.

    Attributes:
        columns: Names of its columns, the lowest of each.
        rows: Its rows below the names, without totals; a merged value stands in each of its cells.
        names: What it, its page and its document are called.
        beginning: How its document begins, which may say what it is of.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    beginning: str = ""

    @classmethod
    def of(cls, block: Mapping[str, Any], names: Sequence[str], beginning: str = "") -> "TableOfPage | None":
        """The table that a row of `blocks` holds, with names of its place; None of one without names of columns."""
        count = block["header_row_count"] or 0
        rows = [tuple(one_line(cell or "") for cell in row["cells"]) for row in block["rows"] or ()]
        if not 0 < count < len(rows):
            return None
        paths = column_names([Row(cells) for cells in rows[:count]])
        columns = tuple(path.rpartition(" > ")[2] for path in paths)
        body = tuple(row for row in rows[count:] if any(row) and not any(map(is_total, row)))
        return cls(columns, body, (*(block["section"] or ()), *names), beginning)


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
        text: The question, folded.
    """

    text: str

    @classmethod
    def of(cls, question: str) -> "RowsAsked | None":
        """What a question asks; None where it has a condition that nothing here can check."""
        plain = unicodedata.normalize("NFKC", question).strip().rstrip("。!?")
        text = fold_name(plain)
        return None if _NOT_CHECKED.search(text) or _NOT_CHECKED.search(plain.lower()) else cls(text)

    def names(self, name: str) -> bool:
        """Whether the question names something, as a sheet."""
        return is_named(self.text, fold_name(name))

    def select(self, table: TableOfPage) -> Selection | None:
        """The rows of a table that are asked for; None where it is not what the question is about."""
        columns, rows = table.columns, table.rows
        named = self._named(table)
        if named is None or len(rows) < _LEAST_ROWS or not self._is_accounted_for(table, named, table.beginning):
            return None
        chosen = [row for row in rows if all(row[place] in values for place, values in named.items())]
        is_asked = self._is_accounted_for(table, named)
        extremes = list(_EXTREME_ASKED.finditer(self.text))
        if extremes and _COUNT_ASKED.search(self.text):
            return None
        if extremes:
            return self._extreme(columns, chosen, extremes[0]) if len(extremes) == 1 and is_asked else None
        counted = _COUNT_ASKED.search(self.text)
        if len(chosen) == 1 and not counted:
            return self._looked_up(columns, rows, chosen[0], named)
        if not is_asked or not chosen or len(chosen) == len(rows) or not self._groups(named, rows):
            return None
        terms = ", ".join(f"{columns[place]}: {' / '.join(values)}" for place, values in named.items())
        if _SUM_ASKED.search(self.text):
            return None if counted else self._totalled(columns, chosen, terms)
        if counted:
            said = f"{len(chosen)}{'件' if is_japanese(self.text) else ''} ({terms})"
            return _selection(columns, chosen, None, said) if self._counts_rows(columns, chosen, counted) else None
        asks_for_rows = asks_for_several(self.text) or _WHICH_ASKED.search(self.text) or _LIST_ASKED.search(self.text)
        return _selection(columns, chosen, None) if asks_for_rows else None

    def _named(self, table: TableOfPage) -> _Named | None:
        """The values that the question names, as words of their own or behind the name of their column; None where it
        cannot be told which column is meant, or a cell holds such a value among others.
        """
        rest = self._without(table.columns, _EXTREME_ASKED.sub("\n", _COUNT_ASKED.sub("\n", self.text)))
        names = fold_name(" ".join(table.names))
        days = set(map(_day, _DAY.findall(self.text)))
        behind: dict[str, set[int]] = {}
        words: dict[str, set[int]] = {}
        for place, column in enumerate(table.columns):
            name = fold_name(column)
            for value in {row[place] for row in table.rows if row[place]}:
                word = fold_name(value)
                is_there = word in self.text and not re.search(rf"{re.escape(word)}(?:[.,]\d|%)", self.text)
                if word and name and is_there and any(is_named(self.text, f"{name}{each}{word}") for each in _BETWEEN):
                    behind.setdefault(value, set()).add(place)
                is_word = len(word) > 1 and is_there and is_named(rest, word) and not _is_verb(rest, word)
                is_word = is_word and word not in _COMMON and not is_named(names, word)
                if is_word or (days and _DAY.fullmatch(value) and _day(value) in days):
                    words.setdefault(value, set()).add(place)
        found = words | behind
        named: dict[int, list[str]] = {}
        for value, places in found.items():
            if any(value != other and fold_name(value) in fold_name(other) for other in found):
                continue  # within a longer one
            if len({tuple(row[place] for row in table.rows) for place in places}) > 1:
                return None
            place = min(places)
            word = fold_name(value)
            others = (fold_name(row[place]) for row in table.rows if value in row[place] and value != row[place])
            if any(is_named(other, word) for other in others):
                return None  # a cell of several values, or with a note
            dates = [each for each in _DAY.findall(self.text) if _DAY.fullmatch(value) and _day(each) == _day(value)]
            if any(self._is_said_of_another(each, place, table.columns) for each in {word, *dates}):
                return None
            named.setdefault(place, []).append(value)
        if any(len(values) > 1 and not _are_joined(self.text, map(fold_name, values)) for values in named.values()):
            return None
        across = [fold_name(values[0]) for values in named.values()]
        if any(map(_JOINED.search, _texts_between(self.text, across))) or self._joins(table):
            return None
        return {place: tuple(sorted(values)) for place, values in named.items()}

    def _is_said_of_another(self, word: str, place: int, columns: Sequence[str]) -> bool:
        """Whether a value stands beside the name of a column other than its own, as in `佐藤が承認者`."""
        word = re.escape(word)
        names = (re.escape(fold_name(column)) for column in columns if column and column != columns[place])
        return any(re.search(rf"{word}[がはに]{name}|{name}[がはに]?{word}", self.text) for name in names)

    def _joins(self, table: TableOfPage) -> bool:
        """Whether columns are joined, chained or said to be there, as in `売値と原価`, `上司の部署`, `備考がある`."""
        folded = [fold_name(column) for column in table.columns]
        repeating = {
            name
            for place, name in enumerate(folded)
            if len({row[place] for row in table.rows}) < _KEY * len(table.rows)
        }
        names, chained = (
            "|".join(sorted((re.escape(each) for each in names if each), key=len, reverse=True)) or "$."
            for names in (set(folded), repeating)
        )
        there = r"[がのはも]?(?:あ[るり]|い[るま])"
        joined = rf"(?:{names})(?:[とかやも・/]|{there})|(?:{chained})の(?:{names})"
        return re.search(joined, self.text) is not None

    def _without(self, phrases: Iterable[str], text: str) -> str:
        for phrase in sorted(filter(None, map(fold_name, phrases)), key=len, reverse=True):
            text = text.replace(phrase, "\n")
        return text

    def _is_accounted_for(self, table: TableOfPage, named: _Named, beginning: str = "") -> bool:
        """Whether every word of the question is a value, a name, part of a form of asking, or a particle."""
        values = [value for each in named.values() for value in each]
        days = {_day(value) for value in values if _DAY.fullmatch(value)}
        text = _DAY.sub(lambda found: "\n" if _day(found[0]) in days else found[0], self.text)
        for form in (_COUNT_ASKED, _SUM_ASKED, _EXTREME_ASKED, _WHICH_ASKED, _LIST_ASKED):
            text = form.sub("\n", text)
        text = self._without([*values, *table.columns, *table.names], text)
        if re.search(r"[^\w\s?？、。,「」『』\"'・:：()（）./_]", text):
            return False
        known = fold_name(" ".join([*table.names, *table.columns[:1], beginning]))
        tokens = set(re.findall(rf"[^\W\d_{HAN}{KATAKANA_AND_MARKS}{HIRAGANA}]+", known)) | _GRAMMAR
        for run in _RUN.findall(text):
            if re.match(f"[{HIRAGANA}]", run):
                fits = _PARTICLES.fullmatch(run) is not None
            elif re.match(f"[{HAN}{KATAKANA_AND_MARKS}]", run):
                fits = run in _HARMLESS or (run in known and not re.search(rf"{run}(?:{_VERB})", text))
            else:
                fits = run in tokens or run.removesuffix("s") in tokens
            if not fits:
                return False
        return True

    def _looked_up(
        self, columns: Sequence[str], rows: Sequence[tuple[str, ...]], row: tuple[str, ...], named: _Named
    ) -> Selection | None:
        """The row of the key that the question names, where it asks for other columns by their names."""
        keys = [place for place in named if len({each[place] for each in rows}) >= _KEY * len(rows)]
        asked = [
            place
            for place, column in enumerate(columns)
            if place not in named and row[place] and is_named(self.text, fold_name(column))
        ]
        if not keys or not (asked or any(is_named(self.text, fold_name(columns[place])) for place in keys)):
            return None
        order = [*keys, *asked, *(place for place in range(len(columns)) if place not in {*keys, *asked})]
        return Selection((_pairs(columns, row, order),), (row,))

    def _groups(self, named: _Named, rows: Sequence[tuple[str, ...]]) -> bool:
        """Whether what is named groups rows, and is no key."""
        return any(sum(row[place] in values for row in rows) > len(values) for place, values in named.items())

    def _extreme(
        self, columns: Sequence[str], rows: Sequence[tuple[str, ...]], asked: re.Match[str]
    ) -> Selection | None:
        """The rows with the most or least in the column right before that word or, in English, behind it."""
        before, behind = self.text[: asked.start()], self.text[asked.end() :].strip()
        measured = [
            place
            for place, column in enumerate(columns)
            if (name := fold_name(column))
            and not _NO_MEASURE.search(name)
            and (
                re.search(
                    rf"(?<!\w){re.escape(name)}[がのは]?$|(?<=[{HIRAGANA}、「」]){re.escape(name)}[がのは]?$", before
                )
                or (asked["en"] and behind.startswith(name))
            )
        ]
        if sum(is_named(before, fold_name(column)) for column in dict.fromkeys(columns) if column) > 1:
            return None
        thing = [place for place, column in enumerate(columns) if column and behind.startswith(fold_name(column))]
        repeats = any(len({row[place] for row in rows}) < len(rows) for place in thing if place not in measured)
        rows = [row for row in rows if row[measured[0]]] if len(measured) == 1 else []
        values = [_measure(row[measured[0]]) for row in rows]
        known = [value for value in values if value is not None]
        if (
            len(known) < 2
            or len(known) < len(values)
            or len({unit for _, unit in known}) > 1
            or repeats
            or _SUM_ASKED.search(self.text)
        ):
            return None
        sign = next(each for each in asked.groups() if each)
        best = (min if sign in _LEAST else max)(known)
        return _selection(columns, [row for row, value in zip(rows, values, strict=True) if value == best], measured[0])

    def _totalled(self, columns: Sequence[str], rows: Sequence[tuple[str, ...]], terms: str) -> Selection | None:
        """The rows with the sum of the column that is asked for."""
        column = self._summed(columns)
        total = "" if column is None else _sum([row[column] for row in rows])
        return (
            _selection(columns, rows, column, f"{total} ({columns[column]}, {terms})")
            if column is not None and total
            else None
        )

    def _summed(self, columns: Sequence[str]) -> int | None:
        """The only column that stands right before or behind the word for a sum."""
        form = _SUM_ASKED.pattern
        summed = [
            place
            for place, column in enumerate(columns)
            if (name := re.escape(fold_name(column)))
            and not _NO_MEASURE.search(fold_name(column))
            and re.search(rf"{name}の?(?:{form})|(?:{form})(?:の| of (?:the )?| )?{name}", self.text)
        ]
        others = [column for place, column in enumerate(columns) if column and place not in summed]
        named = [each for each in others if is_named(self.text, fold_name(each))]
        is_unclear = any(_COUNTED_BY.search(each) or _NO_MEASURE.search(fold_name(each)) for each in named)
        goes_on = re.search(rf"(?:{form})(?:は|が)?[とやも]", self.text)
        return summed[0] if len(summed) == 1 and not is_unclear and not goes_on else None

    def _counts_rows(self, columns: Sequence[str], rows: Sequence[tuple[str, ...]], asked: re.Match[str]) -> bool:
        """Whether rows are counted: neither what a column of figures counts, nor what stands in several rows."""
        if (asked["unit"] not in {None, "件", "行"} or "いくつ" in asked[0]) and any(
            map(_COUNTED_BY.search, map(fold_name, columns))
        ):
            return False
        before, behind = self.text[: asked.start()].rstrip("はがを"), self.text[asked.end() :].strip()
        last = re.search(rf"[^\s{HIRAGANA}]+$", before)
        noun = last[0] if last else behind.split(" ")[0].removesuffix("s")
        named = [place for place, column in enumerate(columns) if column and before.endswith(fold_name(column))]
        alike = [place for place, column in enumerate(columns) if noun and fold_name(column).startswith(noun)]
        things = named or alike
        return all(len({row[place] for row in rows if row[place]}) == len(rows) for place in things)


def _is_verb(text: str, word: str) -> bool:
    """Whether a word is the stem of a verb where it stands in a text, as in `更新した`."""
    return re.match(_VERB, text[text.find(word) + len(word) :]) is not None


def _texts_between(text: str, words: Iterable[str]) -> list[str]:
    ordered = sorted(words, key=text.find)
    return [text[text.find(one) + len(one) : text.find(other)] for one, other in pairwise(ordered)]


def _are_joined(text: str, words: Iterable[str]) -> bool:
    """Whether words are named together, as in `未入金と保留`."""
    return all(map(_JOINING.fullmatch, _texts_between(text, words)))


def _measure(cell: str) -> tuple[Decimal, str] | None:
    """A figure and its unit, or a date as one; None of any other text."""
    text = unicodedata.normalize("NFKC", cell).strip()
    if _DAY.fullmatch(text):
        year, month, day = (*_day(text), 0, 0)[:3]
        return Decimal(year * 10_000 + month * 100 + day), "date"
    figure = _FIGURE.fullmatch(text)
    if figure is None:
        return None
    number = re.sub("[−△▲]", "-", figure["number"]).replace(",", "")
    return Decimal(number), f"{figure['sign']}{figure['unit']}"


def _day(text: str) -> tuple[int, ...]:
    """Year, month and day of a date."""
    return tuple(map(int, re.findall(r"\d+", text)))


def _sum(cells: Sequence[str]) -> str:
    """The sum of figures with one unit; empty where they have several, are no figures, or may be one merged cell."""
    measures = [_measure(cell) for cell in cells]
    known = [measure for measure in measures if measure is not None]
    units = {unit for _, unit in known}
    if len(known) < len(cells) or len(units) != 1 or "date" in units or any(one == two for one, two in pairwise(cells)):
        return ""
    unit = units.pop()
    total = f"{sum(number for number, _ in known):,}"
    return f"{unit}{total}" if unit[:1] in {"¥", "￥", "$", "€"} and unit else f"{total}{unit}"


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
        language: In which is said how many more there are.

    Returns:
        Sentences that cite passages by their number, from 1, and the ids of these passages in that order; none where a
        row is found in no passage.
    """
    held_by = [(each["chunk_id"], [(line, _parts(line)) for line in each["text"].splitlines()]) for each in passages]
    texts = [_row_text(row) for row in selection.rows]
    fitting = sum(length <= _ROWS_CHARS for length in accumulate(map(len, texts))) or 1
    ids: list[str] = []
    sentences: list[Sentence] = []
    for text, cells in zip(texts[:fitting], selection.cells, strict=False):
        held = next(
            (
                (chunk_id, quote)
                for is_wide in (False, True)
                for chunk_id, lines in held_by
                if (quote := _quote(lines, cells, is_wide))
            ),
            None,
        )
        if held is None:
            return (), []
        ids += [held[0]] if held[0] not in ids else []
        sentences.append(Sentence(text, (SentenceCitation(ids.index(held[0]) + 1, held[1], supported=True),)))
    if fitting < len(texts):
        more = _MORE.get(language, _MORE["en"]).format(count=len(texts) - fitting)
        sentences[-1] = replace(sentences[-1], text=f"{sentences[-1].text} {more}")
    if selection.said:
        sentences.insert(0, replace(sentences[0], text=selection.said))
    return tuple(sentences), ids


def _quote(lines: Sequence[tuple[str, set[str]]], cells: Sequence[str], is_wide: bool) -> str:
    """The lines of a passage that hold a row: one, or of a wide row, which may go on in the next passage, one a cell;
    empty where none do.
    """
    shown = [cell for cell in dict.fromkeys(cells) if 0 < len(cell) <= _WHOLE_CHARS]
    if not shown:
        return ""
    if not is_wide:
        return next((cut(line) for line, parts in lines if parts.issuperset(shown)), "")
    starts = [place for place, (line, parts) in enumerate(lines) if _CELL not in line and shown[0] in parts]
    for start in starts:
        window = [*takewhile(lambda each: _CELL not in each[0], lines[start : start + len(set(cells))])]
        for length in range(2, len(window) + 1):
            held = set[str]().union(*(parts for _, parts in window[:length]))
            if held.issuperset(shown[: max(_LEAST_CELLS, length - 1)]):
                return cut("\n".join(line for line, _ in window[:length]))
    return ""


def _parts(line: str) -> set[str]:
    """The cells of a line, and the values behind their labels."""
    cells = [cell.strip() for cell in one_line(line).split(_CELL.strip())]
    return {*cells, *(value for cell in cells for value in (cell.partition(": ")[2],) if value)}


def _row_text(row: Sequence[tuple[str, str]]) -> str:
    """A row, of a long one the first cells."""
    said = [f"{column}: {value}" if column else value for column, value in row]
    lengths = list(accumulate(len(each) + len(_CELL) for each in said))
    fit = [each for each, length in zip(said, lengths, strict=True) if length <= _ROW_CHARS]
    return cut(_CELL.join(fit or said[:1]))
