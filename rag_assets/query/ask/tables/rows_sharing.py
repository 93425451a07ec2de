"""Rows of a table that share with one that answers what the question names: all that are of a class, below a person, in
a state.

A passage holds a part of a table, and the best statement is one row of it. Where the question names a whole cell of
that row (`必須`), it asks as much for the other rows with that cell, or for those without (`必須でない`); where it
names a column of marks (`外部キーの列`), for those that have the mark; where it compares a column (`温度が0.5未満`) or
names a time of day, for those of which that holds. Which these are, the table tells as it was read. Their number is
said only where no other cell may mean the same, as `済（要確認）` beside `済`, and no row goes on with the one above.

What stays out: which row answers (`rag_assets.query.ask.quoted.extracts`), and how many rows there are, their sum, and
the one with the most (`rag_assets.query.ask.tables.table_rows`).
"""

import operator
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal

from rag_assets.query.ask.quoted.wanted import QUOTED, codes_named, is_named
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage, holds_word, listed_values, measure
from rag_assets.query.ask.tables.table_rows import QUESTION_CHARS, VERB, are_joined, number_said
from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.query.several_asked import asks_for_several
from rag_assets.text.folding import TermKind, fold_name, kind_of, query_terms
from rag_assets.text.language import cut, is_japanese
from rag_assets.text.plain import squeezed
from rag_assets.text.scripts import HIRAGANA, KANJI, KATAKANA_AND_MARKS

_MOST_ROWS = 40
_SHARED_CHARS = 120  # of what all rows have
_LEAST_SHARED_LETTERS = 2  # of a cell that is said to be shared, and not named
CONDITIONED = re.compile(  # by what no cell tells, or asked for something else than rows
    r"以外|除[くい]|抜き|より(?!も)|以上|以下|以降|以前|未満|超え|ごと|一番|いちばん|最も|もっとも|最[大小高低新古初後]|まで|から|過ぎ|の間|一緒|共同|分担|両方|移[動しっ]|入れ替|引き?継"
    r"|[前後次]の|[前後]に|ない|なく|なかっ|ません|ずに|じゃ|どう(?!い)|どちら|どのよう|なぜ|とは(?!い)|意味|違い|方法|何件|いくつ|何に(?:使[うわっ]|用い|利用す)|何の(?:ため|為)に"
    r"|n't\b|\b(?:not|no|non|never|neither|nor|except|excluding|other|more|less|fewer|over|under|above|below|before|after|first"
    r"|last|per|between|together|both|without|still|yet|how|why|when|means?|overdue)\b"
)
_EXPLAINED = re.compile(  # `Aがないと使えない`, which needs it, and a negation whose cell stands in brackets behind it
    r"[がで]?ないと[^、。]{0,8}(?:ない|ません)|(?:ない|ません)[(（]\n[)）]"
)
_NEGATION = "(?:ない(?!と)|なく(?!ては|ちゃ)|以外)"
_NOT_SO = rf"[」』\"”')）]*(?:に|で|と|が)?(?:は)?(?:なって|され|して)?(?:い)?(?:は)?(?:じゃ)?{_NEGATION}"
_NOT_DONE = r"(?:し|され|でき)てい?な[いく]"  # behind a cell that is said as a verb
_IN_BRACKETS = re.compile(r"[(（][^()（）]*[)）]")
_UNIT = r"\s?(?:[年月日時分秒個件人名回円本枚台歳%％割倍点章節条項号版行列番]|文字|桁|か月|ヶ月|種類|つ)"
_LIMIT = "以[上下]|未満|より|を?[超こ]え?|を[上下]回"
_UNITS = re.findall(r"\S+", "時間 分 秒 日 か月 円 個 件 人 名 回 本 枚 台 桁 文字 % kg km cm mm")
_NUMBER = r"(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s?(?P<unit>%|[a-z]{1,3}|[^\W\d_]{1,2}?)??"
_COMPARED = (
    (re.compile(rf"{_NUMBER}(?:以上|at least)"), operator.ge),
    (re.compile(rf"{_NUMBER}(?:以下|at most)"), operator.le),
    (re.compile(rf"{_NUMBER}(?:未満|を下回|より(?:低|小さ|少な|短|安))"), operator.lt),
    (re.compile(rf"{_NUMBER}(?:超|を?超え|を?こえ|を上回|より(?:高|大き|多|長))"), operator.gt),
)
_COMPARED_ROWS = re.compile(
    rf"(?:{_LIMIT}|超)[^、。?？]{{0,2}}[{HIRAGANA}]{{0,3}}[{KANJI}{KATAKANA_AND_MARKS}もの]+$"
)  # `80以上の経費`
_CONTAINED = re.compile(
    r"[「『\"“](?P<word>[^「」『』\"“”]{1,20})[」』\"”]"
    r"(?:(?P<within>と名の?[付つ]く|を含[むんみ](?!ま)|が(?:含まれ|[付つ]い?[くて]|入っ)(?!てい?な|な))|(?P<begins>(?:で|から)始ま[るっ](?!てい?な))"
    r"|(?P<ends>で終わ[るっ](?!てい?な)))"
)
_OR = r"(?:か(?!ら|ど|つ|[?？]|$)|または|又は|もしくは|若しくは|あるいは|ないし|\bor\b)"
_RULED_OUT = (  # behind a cell, of what is not asked for
    r"[」』\"”')）]*(?:(?:し|され|でき)てい?な[いく]|[^、。にをがの]{0,12}?(?:以外|除[くい]|で(?:は|も)?な[いく]|じゃな[いく])"
    r"|[がとを][^、。にをがの]{0,6}?(?:てい?な[いく]|まな[いく]|まらな[いく]|わらな[いく]|まず))"
)
_GRADE = re.compile(r"[a-z\d]-(?![a-z\d])")  # `a-`, which folding makes `a`
_HOUR = re.compile(
    r"(?<![\d後夜])(?P<hour>\d{1,2})時(?:ちょうど)?[にで](?:(?P<begins>始|開)|終|閉)(?!い|まって|わって|じて)"
)
_BEGINS = re.compile("開始|始業|開館|開店|start|open|from")
_ENDS = re.compile("終了|終業|閉館|閉店|end|close|until")
_CLOCK = re.compile(r"(\d{1,2}):00(?::00)?")
_WHICH = re.compile(
    r"どれ|どの|どこ|何|なに|教え|挙げ|知りた|お願い|ください|一覧|列挙|\b(?:which|what|list)\b|(?:は|って)[?？]?$"
)
_NEAR = re.compile("[隣近]|周辺|接する")  # which is elsewhere
_ADDRESSES = 0.8  # share of the cells of a column
_PLACE_NAMED = re.compile(
    rf"(?<![{KANJI}])(?P<place>[{KANJI}ヶケ]{{1,7}}?[都道府県市区町村])(?=[のにではがを、。?？]|内|$)"
)
_MARK = re.compile(r"[○〇◯●◎✓✔☑レ*]|1|y|yes|true|t|有り?|あり|要|必須|可|[pf]k|主|済み?", re.IGNORECASE)
NO_MARK = re.compile(r"[×✕✖☐□―ー－-]?|0|n|no|false|f|無し?|なし|不要|任意|不可|否|未", re.IGNORECASE)
_NONE_ASKED = re.compile(r"[がはの]?(?:な[いくし]|無[いし]|ありません|(?:てい|され)ない)")
_MARKED_WORD = re.compile(rf"[{KANJI}{KATAKANA_AND_MARKS}a-z]{{3,}}")
_OF_MARKS = re.compile(r"(?:制約|フラグ|区分|の?有無|[可要]否|項目|チェック|flag|\?)$")  # at the end of a column's name
_HAS_MARK = (  # what goes on with a negation is left over
    r"[」』]?(?:に|と|が|で)?(?:なって|設定|指定|必要|付[いけ]|つい|ある|あり|持つ|要る|対応し)"
    r"|[」』]?(?:の|な)?(?:もの|項目|列|カラム|フィールド|属性)|[」』]?(?:は|って)(?:どれ|何|なに|どの)"
)


@dataclass(frozen=True)
class _Criterion:
    """What the rows asked for have in a column: one of the values, or none of them."""

    place: int
    values: frozenset[str]
    is_not: bool = False
    said: str = ""  # by what the question names it, where that is not a value
    listing: frozenset[str] = frozenset()  # cells that hold one of the values among others

    def holds(self, row: Sequence[str]) -> bool:
        return (row[self.place] in self.values | self.listing) != self.is_not


def rows_sharing(
    question: str, row: Sequence[str], tables: Sequence[TableOfPage], *, are_whole: bool = True
) -> Selection | None:
    """The rows of the table of a row that share with it what the question names.

    Args:
        question: The question.
        row: The cells of a row, as a passage has it; empty where the question names the sheet of the tables.
        tables: Those of its page.
        are_whole: Whether none goes on at another page.

    Returns:
        The rows, with what tells them apart, after how many they are and what they share where that is sure; None where
        there is one only, or the question asks for less, or by what the table does not tell.
    """
    if not row:
        selections = (_select_rows(question, table, None, are_whole=are_whole) for table in tables)
        return next((selection for selection in selections if selection is not None), None)
    for table in tables:
        own_row = next((cells for cells in table.rows if _is_row(cells, row)), None)
        if own_row is not None:
            alike = [part for part in tables if (part.keys, part.section) == (table.keys, table.section)]
            alike = alike if any(table.keys) else [table]
            rows = tuple(row for part in alike for row in part.rows)
            return _select_rows(question, replace(table, rows=rows), own_row, are_whole=are_whole)
    return None


def _select_rows(
    question: str, table: TableOfPage, own_row: tuple[str, ...] | None, *, are_whole: bool
) -> Selection | None:
    plain = unicodedata.normalize("NFKC", question).lower()
    if _GRADE.search(plain):
        return None
    folded_text = fold_name(plain)
    contained_words = [fold_name(match[0]) for match in _CONTAINED.finditer(plain)]
    if len(contained_words) > 1 or any(f"{word}か" in folded_text for word in contained_words):
        return None
    apart = folded_text.replace(contained_words[0], " ") if contained_words else folded_text
    criteria = _named_cells(question, apart, table, table.rows if own_row is None else [own_row])
    if criteria is None or (not any(table.keys) and any(criterion.is_not for criterion in criteria)):
        return None  # or a row may name the columns
    if not any(criterion.is_not for criterion in criteria):
        criteria += _marks(folded_text, table, {criterion.place for criterion in criteria})
    criteria += _limit_criteria(folded_text, table, {criterion.place for criterion in criteria})
    criteria += _at_time(folded_text, table, {criterion.place for criterion in criteria})
    criteria += _word_criteria(plain, table, {criterion.place for criterion in criteria})
    criteria += _in_places(plain, table, {criterion.place for criterion in criteria})
    named_phrases = [name for criterion in criteria for name in _phrases(criterion)]
    understood_forms = [
        re.escape(name) + (f"(?:{_NOT_SO})" if criterion.is_not and not criterion.said else "")
        for criterion in criteria
        for name in _phrases(criterion)
    ]
    rest = folded_text
    for form in sorted(understood_forms, key=len, reverse=True):
        rest = re.sub(form, "\n", rest)
    quotations = map(fold_name, QUOTED.findall(question))
    known_names = (*named_phrases, *table.keys, *map(fold_name, table.names))
    is_known = all(
        any(quotation in known_name or known_name in quotation for known_name in known_names if known_name)
        for quotation in quotations
    )
    is_conditioned = CONDITIONED.search(_EXPLAINED.sub(" ", rest))
    is_for_rows = _WHICH.search(folded_text) or asks_for_several(question) or _COMPARED_ROWS.search(folded_text)
    if not criteria or not is_known or is_conditioned or not is_for_rows:
        return None
    chosen_rows = [row for row in table.rows if all(criterion.holds(row) for criterion in criteria)]
    asked_terms = _terms(_IN_BRACKETS.sub(" ", rest)) - _terms(" ".join([*table.columns, *table.names, *named_phrases]))
    several = asks_for_several(question)
    held_terms = (
        asked_terms & _terms(" ".join(own_row)) if own_row and own_row in chosen_rows and not several else set()
    )
    rows = [row for row in chosen_rows if held_terms <= _terms(" ".join(row))]
    names_code = any(re.search(r"\d", value) for criterion in criteria for value in criterion.values)
    is_less = len(rows) == len(table.rows) and own_row is not None and not (several and names_code)
    goes_on = any(table.goes_on(criterion.place) for criterion in criteria)
    if not 1 < len(rows) <= _MOST_ROWS or is_less or (goes_on and any(criterion.is_not for criterion in criteria)):
        return None
    is_clear = not goes_on and all(_is_clear(table, criterion, rows) for criterion in criteria)
    is_whole = are_whole and is_clear and len(rows) == len(chosen_rows)
    return _selection(table, folded_text, criteria, rows, is_whole=is_whole)


def rules_out(question: str, row: Sequence[str]) -> bool:
    """Whether a question asks for what does not have a cell, and a row has it."""
    folded_text = fold_name(question[:QUESTION_CHARS])
    words = {word for cell in row if len(word := fold_name(cell)) > 1 and word in folded_text}
    return any(re.search(f"{re.escape(word)}{_RULED_OUT}", folded_text) for word in words)


def asks_for_none(question: str) -> bool:
    """Whether a question may ask for what something is not said of."""
    return _NONE_ASKED.search(fold_name(question[:QUESTION_CHARS])) is not None


def denies(question: str, row: Sequence[str], tables: Sequence[TableOfPage]) -> bool:
    """Whether a question asks for what has no mark in a column that it names, and a row has it."""
    folded_text = fold_name(question[:QUESTION_CHARS])
    for table in tables:
        own_row = next((cells for cells in table.rows if _is_row(cells, row)), None)
        for place, key in enumerate(table.keys if own_row else ()):
            if own_row is None or not _OF_MARKS.search(key) or not _MARK.fullmatch(own_row[place]):
                continue
            name = _OF_MARKS.sub("", key)
            words = [match for match in _MARKED_WORD.finditer(folded_text) if name.startswith(match[0])]
            if any(_NONE_ASKED.search(folded_text, word.end()) for word in words):
                return True
    return False


def _phrases(criterion: _Criterion) -> list[str]:
    """What the question says of a criterion, folded."""
    names = [criterion.said] if criterion.said else criterion.values
    return list(filter(None, map(fold_name, names)))


def _is_clear(table: TableOfPage, criterion: _Criterion, rows: Sequence[Sequence[str]]) -> bool:
    """Whether no other cell of the column holds a value of it among others, or other words."""
    values = criterion.values if criterion.is_not else criterion.values & {row[criterion.place] for row in rows}
    other_values = {row[criterion.place] for row in table.rows} - criterion.values - criterion.listing
    return not criterion.listing and not any(
        holds_word(other_value, value) for value in filter(None, map(fold_name, values)) for other_value in other_values
    )


def _selection(
    table: TableOfPage, folded_text: str, criteria: Sequence[_Criterion], rows: list[tuple[str, ...]], *, is_whole: bool
) -> Selection | None:
    """Rows with what tells them apart, what is asked by the name of its column, and, where their number is not said, by
    what they were selected.
    """
    fixed_places = [criterion.place for criterion in criteria]
    telling_places = {place for place in range(len(table.columns)) if len({row[place] for row in rows}) > 1}
    telling_places -= {
        criterion.place
        for criterion in criteria
        if not criterion.is_not and not criterion.listing and len(criterion.values) == 1
    }
    asked_places = {
        place
        for place, key in enumerate(table.keys)
        if key and place not in fixed_places and is_named(folded_text, key)
    }
    rows = [row for row in rows if any(row[place] for place in telling_places | asked_places)]
    if len(rows) < 2:
        return None
    places = sorted(telling_places | asked_places | (set() if is_whole else set(fixed_places)))
    first = rows[0]
    other_places = [
        place
        for place, cell in enumerate(first)
        if place not in {*telling_places, *asked_places, *fixed_places}
        and len(re.findall(r"[^\W\d]", cell)) >= _LEAST_SHARED_LETTERS
    ]
    selected_by = ", ".join(dict.fromkeys(_term(table, criterion) for criterion in criteria))
    shared = [
        f"{table.columns[place]}: {first[place]}" if table.columns[place] else first[place] for place in other_places
    ]
    if shared:
        of_all = "。いずれも " if is_japanese(folded_text) else "; all: "
        selected_by += of_all + ", ".join(dict.fromkeys(shared))
    said = number_said(len(rows), folded_text, cut(selected_by, _SHARED_CHARS)) if is_whole else ""
    needed_places = asked_places | (set() if is_whole else set(fixed_places))
    return Selection.of(table, rows, places, said, needed_places)


def _term(table: TableOfPage, criterion: _Criterion) -> str:
    if criterion.said:
        return criterion.said
    column, values = table.columns[criterion.place], " / ".join(sorted(criterion.values))
    sign = " ≠ " if criterion.is_not else ": "
    return f"{column}{sign}{values}" if column else f"{sign.lstrip(': ')}{values}"


def _named_cells(
    question: str, folded_text: str, table: TableOfPage, rows: Sequence[Sequence[str]]
) -> list[_Criterion] | None:
    """The cells of rows that the question names, as words of their own or behind the name of their column, with those
    of the table that it joins to them (`未着手か対応中`); None where it cannot be told which column is meant, or some
    are meant and others not.
    """
    codes, text = codes_named(question), folded_text.replace("以外", " 以外")
    named_cells: dict[int, dict[str, bool]] = {}
    for place, key in enumerate(table.keys):
        for cell in dict.fromkeys(row[place] for row in rows):
            if _is_named(text, codes, key, word := fold_name(cell)):
                is_not = re.search(rf"{re.escape(word)}{_NOT_SO}", folded_text) is not None
                named_cells.setdefault(place, {})[cell] = is_not
    for cell in {cell for cells in named_cells.values() for cell in cells}:
        places = [at for at in range(len(table.keys)) if any(row[at] == cell for row in table.rows)]
        if len({tuple(row[at] == cell for row in table.rows) for at in places}) < 2:
            continue
        meant_places = [
            at for at in places if table.keys[at] and _stands_behind(folded_text, table.keys[at], fold_name(cell))
        ]
        if len(meant_places) != 1:
            return None
        for at in places:
            if at != meant_places[0] and at in named_cells:
                named_cells[at].pop(cell, None)
    criteria = []
    for place, cells in ((place, cells) for place, cells in named_cells.items() if cells):
        values = frozenset(cells) | _others_named(text, table, place, cells)
        words = {fold_name(value) for value in values}
        cells_of_column = {row[place] for row in table.rows} - values
        listing = frozenset(cell for cell in cells_of_column if not words.isdisjoint(listed_values(cell)))
        is_not = any(cells.values())
        is_one = len(values) == 1 or (not is_not and are_joined(text, map(fold_name, values)))
        if not is_one or len(set(cells.values())) > 1 or not _is_of_column(text, table, place, values):
            return None
        criteria.append(_Criterion(place, values, is_not, listing=listing))
    return criteria


def _stands_behind(folded_text: str, key: str, word: str) -> bool:
    """Whether the question says that a column has a value."""
    return re.search(rf"{re.escape(key)}[がはのに:=]?\s?[「『\"“]?{re.escape(word)}", folded_text) is not None


def _is_of_column(text: str, table: TableOfPage, place: int, values: Set[str]) -> bool:
    """Whether values are said of their own column, and joined to nothing else (`高か障害`)."""
    words = {fold_name(value) for value in values}
    for word in words:
        if any(
            key and at != place and key != table.keys[place] and _stands_behind(text, key, word)
            for at, key in enumerate(table.keys)
        ):
            return False
        match = re.search(rf"{re.escape(word)}[」』\"”]?\s*{_OR}\s*[「『\"“]?", text)
        if match and not any(text.startswith(other_word, match.end()) for other_word in words - {word}):
            return False
    return True


def _others_named(text: str, table: TableOfPage, place: int, cells: Iterable[str]) -> frozenset[str]:
    """Further cells of a column that the question names."""
    known_words = [fold_name(cell) for cell in cells]
    words = {cell: fold_name(cell) for cell in {row[place] for row in table.rows}}
    return frozenset(
        cell
        for cell, word in words.items()
        if len(word) > 1
        and word in text
        and not any(word in known_word for known_word in known_words)
        and is_named(text, word)
    )


def _is_named(text: str, codes: Set[str], key: str, word: str) -> bool:
    """Whether a folded question names a cell of a column."""
    if not word or (word not in text and word.lstrip("0") not in codes):
        return False
    if len(word) > 1 and not word.isdecimal():
        return is_named(text, word) and not re.search(rf"{re.escape(word)}(?!{_NOT_DONE})(?:{VERB})", text)
    if word.lstrip("0") in codes:
        return True
    behind = (
        rf"{re.escape(key)}[がはのに:=]?\s?[「『\"“]?{re.escape(word)}(?![a-z\d.,+-])(?!{_UNIT}|{_LIMIT})"
        if key
        else "$."
    )
    unit_pattern = next((unit for unit in _UNITS if unit in key), "$.")
    return re.search(rf"{behind}|(?<![\d.,月]){re.escape(word)}\s?{unit_pattern}(?!{_LIMIT})", text) is not None


def _marks(folded_text: str, table: TableOfPage, other_places: set[int]) -> Iterator[_Criterion]:
    """The columns of marks by whose name the question asks which rows have the mark."""
    for place, key in enumerate(table.keys):
        name = _OF_MARKS.sub("", key)
        cells = {row[place] for row in table.rows}
        marks = {cell for cell in cells if _MARK.fullmatch(cell)}
        is_of_marks = marks and all(NO_MARK.fullmatch(cell) for cell in cells - marks)
        if len(name) < 2 or place in other_places or not is_of_marks:
            continue
        mark_pattern = rf"(?<![^\W{HIRAGANA}]){re.escape(name)}(?:制約)?"
        if not_so := re.search(rf"{mark_pattern}{_NOT_SO}", folded_text):
            yield _Criterion(place, frozenset(marks), is_not=True, said=not_so[0])
        elif re.search(rf"{mark_pattern}(?:{_HAS_MARK})", folded_text):
            yield _Criterion(place, frozenset(marks))


def _limit_criteria(folded_text: str, table: TableOfPage, other_places: set[int]) -> Iterator[_Criterion]:
    """The column of figures that the question compares with one, right behind the column's name."""
    for place, key in enumerate(table.keys):
        figures = {cell: figure for cell in {row[place] for row in table.rows} if (figure := measure(cell)) is not None}
        if len(key) < 2 or place in other_places or len(figures) < 2:
            continue
        for form, holds in _COMPARED:
            match = re.search(rf"(?<![^\W{HIRAGANA}]){re.escape(key)}[がはのも]?\s?{form.pattern}", folded_text)
            if match is None:
                continue
            limit, unit = Decimal(match["number"].replace(",", "")), match["unit"] or ""
            units = {own for _, own in figures.values()}
            is_alike = units <= {unit, ""} if unit in units else not any(units) and (not unit or unit in key)
            if is_alike:
                values = frozenset(cell for cell, (figure, _) in figures.items() if holds(figure, limit))
                yield _Criterion(place, values, said=match[0])
            break


def _at_time(folded_text: str, table: TableOfPage, other_places: set[int]) -> Iterator[_Criterion]:
    """The only column of when things begin, or end, where the question names the full hour of that."""
    match = _HOUR.search(folded_text)
    if match is None:
        return
    key_pattern = _BEGINS if match["begins"] else _ENDS
    for place in (
        place for place, key in enumerate(table.keys) if key_pattern.search(key) and place not in other_places
    ):
        clocks = {row[place]: clock for row in table.rows if (clock := _CLOCK.fullmatch(row[place]))}
        cells = frozenset(cell for cell, clock in clocks.items() if int(clock[1]) == int(match["hour"]))
        if cells:
            yield _Criterion(place, cells, said=match[0])
            return


def _word_criteria(plain: str, table: TableOfPage, other_places: set[int]) -> Iterator[_Criterion]:
    """The only column with cells that hold, begin or end with what the question quotes so (`「マスタ」と名の付く`)."""
    match = _CONTAINED.search(plain)
    if match is None:
        return
    word = re.escape(fold_name(match["word"]))
    form = re.compile(f"^{word}" if match["begins"] else f"{word}$" if match["ends"] else word)
    cells_by_place = {
        place: cells
        for place in range(len(table.keys))
        if place not in other_places
        and (cells := frozenset(row[place] for row in table.rows if form.search(fold_name(row[place]))))
    }
    if len(cells_by_place) == 1:
        (place, cells), *_ = cells_by_place.items()
        yield _Criterion(place, cells, said=match[0])


def _in_places(plain: str, table: TableOfPage, other_places: set[int]) -> Iterator[_Criterion]:
    """The only column of addresses in which nearly each names a ward, city, town or prefecture, with those in the one
    that the question names.
    """
    matches = list(_PLACE_NAMED.finditer(plain))
    for match in matches if len({match["place"] for match in matches}) == 1 and not _NEAR.search(plain) else ():
        name = re.escape(match["place"])
        named, of_kind = (
            re.compile(rf"(?:\D{{1,8}}[都道府県市郡])?{form}(?=\S)") for form in (name, rf"\D{{1,6}}{name[-1]}")
        )
        cells_by_place: dict[int, frozenset[str]] = {}
        for place in set(range(len(table.keys))) - other_places:
            cells = {row[place] for row in table.rows if row[place]}
            if sum(bool(of_kind.match(cell)) for cell in cells) > _ADDRESSES * len(cells):
                cells_by_place[place] = frozenset(filter(named.match, cells))
        found = [(place, cells) for place, cells in cells_by_place.items() if cells]
        if len(found) == 1:
            yield _Criterion(*found[0], said=match["place"])
            return


def _terms(text: str) -> set[str]:
    """Words and identifiers of a text."""
    return {term for term in query_terms(keywords(text)).split() if kind_of(term) is not TermKind.CHARACTER}


def _is_row(cells: Sequence[str], row: Sequence[str]) -> bool:
    """Whether a row of a table has the cells of one of a passage."""
    own, row_cells = ({squeezed(cell) for cell in texts if cell.strip()} for texts in (cells, row))
    return len(row_cells) > 1 and row_cells <= own
