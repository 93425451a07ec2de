"""What stands in a column of a table: each kind of value once (「契約区分にはどんな種類がある」, "What values of status
are there?"), or all that a list of things lists (「どんな画面がありますか」, of a table called 画面一覧).

A passage holds a part of a table; the values of all its rows are told from the table as it was read, in the order in
which they come.

What stays out: on which page the table is (`rag_assets.query.ask.tables.answering`), and the rows that have a value
(`rag_assets.query.ask.tables.rows_sharing`).
"""

import re
from collections.abc import Sequence, Set
from dataclasses import replace

from rag_assets.query.ask.quoted.wanted import is_named
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage, listed_values
from rag_assets.query.ask.tables.rows_sharing import CONDITIONED
from rag_assets.query.ask.tables.table_rows import QUESTION_CHARS, number_said
from rag_assets.text.folding import fold_name
from rag_assets.text.scripts import HAN, HIRAGANA, KATAKANA_AND_MARKS

_MOST_VALUES = 40
_LEAST_NAME = 2  # characters
_REPEATED = 0.5  # least share of the rows whose value another row has
_KINDS = "種類|種別|区分|分類|選択肢|候補|パターン|値|内訳"
_ENGLISH_KINDS = r"\b(?:kinds|types|values|options|categories)\b"
_KINDS_ASKED = re.compile(rf"何種類|(?:どんな|どういう|どのような|何の)もの|{_KINDS}|{_ENGLISH_KINDS}")
_KNOWN = re.compile(  # of what may stand behind the name of the column
    rf"何種類|{_KINDS}|何|全部?|一覧|列挙|[取使選入指設登定録得有挙教知示見出]"
)
_THING = rf"([{HAN}{KATAKANA_AND_MARKS}a-z]{{1,12}})"
_THINGS_ASKED = re.compile(
    rf"(?:どんな|どのような|どういう|どういった){_THING}(?:が|は|を)?(?:全部で?)?(?:あ[りる]|用意|登録され|定義され|提供され|備え|存在)"
    rf"|{_THING}の?一覧(?:表)?(?:を|は|が)?(?:教え|見せ|見た|知り|示し|挙げ|出し|くだ|お願い|欲し|ほし|$)"
    rf"|{_THING}(?:を|は)(?:全部|すべて|全て)(?:教え|見せ|知り|示し|挙げ|列挙)"
)
_FIELD_ASKED = re.compile(
    rf"{_THING}の{_THING}(?:は|って|を(?:教え|見せ|知り|示し|挙げ)[^の]{{0,8}})?(?:(?:何|なに)(?:です)?か?)?$"
)
_LEAST_WORD = 2  # characters of a word that a table must be called by
_WORDS = re.compile(rf"[{HAN}]+|[{KATAKANA_AND_MARKS}]+|[a-z\d]+")
_NAME = "名称?|名前"
_IDENTIFIER = re.compile(r"(?:id|番号|コード)$")
_BEFORE_NAME = rf"{_ENGLISH_KINDS}(?: are there)?(?: (?:of|in|for|does|can))?(?: the| column)*\W+"


def asks_for_kinds(question: str) -> bool:
    """Whether a question may ask which kinds of values a column has."""
    return len(question) <= QUESTION_CHARS and _KINDS_ASKED.search(fold_name(question)) is not None


def values_of_column(question: str, tables: Sequence[TableOfPage], *, are_whole: bool = True) -> Selection | None:
    """The different values of the only column of a page whose kinds of values a question asks for.

    Args:
        question: The question.
        tables: Those of the page.
        are_whole: Whether none goes on at another page.

    Returns:
        For each value the first row that has it, with that value alone, after how many they are where that is sure;
        None where no column or several are named so, its values tell rows apart, or the question names a condition.
    """
    parts: dict[tuple[tuple[str, ...], tuple[str, ...]], list[TableOfPage]] = {}
    for table in tables:
        parts.setdefault((table.keys, table.section), []).append(table)
    joined = (replace(alike[0], rows=tuple(row for part in alike for row in part.rows)) for alike in parts.values())
    selections = [found for table in joined if (found := _values(fold_name(question), table, are_whole)) is not None]
    return selections[0] if len(selections) == 1 else None


def things_of_list(question: str, table: TableOfPage, tables: Sequence[TableOfPage] = ()) -> Selection | None:
    """All rows of a table that is called a list of the things of which a question asks all that there are, or whose
    rows are called so, where no other table has more of them.

    Args:
        question: The question.
        table: A table with the names of its page and document.
        tables: All that were found.

    Returns:
        The names of the things and what identifies them, after how many they are; None where that is not asked, the
        table is called otherwise or has no column of their names, or the question has a word that is none of its names,
        of its place or of how its document begins.
    """
    folded_text = fold_name(question.strip().rstrip("。?？! "))
    if len(question) > QUESTION_CHARS:
        return None
    match = _THINGS_ASKED.search(folded_text)
    if match is None:
        return _field_of_things(folded_text, table)
    thing = next(filter(None, match.groups()))
    names = [*map(fold_name, table.names)]
    called_list = next((name for name in table.names if f"{thing}一覧" in fold_name(name)), None)
    own_place = table.name_place
    if called_list is None and own_place is not None and table.keys[own_place] == thing:
        own = {row[own_place] for row in table.rows}
        of_others = {
            row[at] for other in tables for at, key in enumerate(other.keys) if key == thing for row in other.rows
        }
        called_list = next(iter(table.own_names[::-1]), None) if of_others <= own else None
    if called_list is None:
        return None
    called = " ".join([*names, fold_name(table.beginning)])
    rest = _THINGS_ASKED.sub(" ", folded_text).replace(thing, " ")
    if CONDITIONED.search(rest) or any(
        len(word) >= _LEAST_WORD and word not in called for word in _WORDS.findall(rest)
    ):
        return None
    pattern = re.compile(rf"{re.escape(thing)}|{_NAME}|.*{re.escape(thing)}.*(?:{_NAME})")
    place = next((at for at, key in enumerate(table.keys) if pattern.fullmatch(key)), None)
    rows = [row for row in table.rows if place is not None and row[place]]
    if place is None or len(rows) < 2 or not table.is_told_apart_by(place):
        return None
    identifiers = [at for at, key in enumerate(table.keys) if at != place and _IDENTIFIER.search(key)]
    said_places = [*[at for at in identifiers if table.is_told_apart_by(at)][:1], place]
    pairs = tuple(tuple((table.columns[at], row[at]) for at in said_places if row[at]) for row in rows)
    return Selection(pairs, tuple(rows), number_said(len(rows), folded_text, called_list))


def _field_of_things(folded_text: str, table: TableOfPage) -> Selection | None:
    """What all rows of a table that is called a list of things have in the column of which a question asks for these
    (「…に載っているテーブルの物理名は」, of テーブル一覧), with what each is called.

    None where the question names neither the document nor its place, or anything else.
    """
    match = _FIELD_ASKED.search(folded_text)
    place = next((at for at, key in enumerate(table.keys) if match is not None and key == match[2]), None)
    if match is None or place is None:
        return None
    called_list = next((name for name in table.names if fold_name(name).endswith(f"{match[1]}一覧")), None)
    called = " ".join([*map(fold_name, table.names), fold_name(table.beginning)])
    rest = _FIELD_ASKED.sub(" ", folded_text)
    words = [word for word in _WORDS.findall(rest) if len(word) >= _LEAST_WORD]
    is_of_place = bool(words) and all(word in called for word in words)
    rows = [row for row in table.rows if row[place]]
    if called_list is None or not is_of_place or CONDITIONED.search(rest) or not 1 < len(rows) <= _MOST_VALUES:
        return None
    places = sorted({place, place if table.name_place is None else table.name_place})
    pairs = tuple(tuple((table.columns[at], row[at]) for at in places if row[at]) for row in rows)
    return Selection(pairs, tuple(rows), number_said(len(rows), folded_text, called_list))


def _values(folded_text: str, table: TableOfPage, are_whole: bool) -> Selection | None:
    folded_text, rows = folded_text.rstrip("。?？! "), table.rows
    asked_places = [place for place, key in enumerate(table.keys) if _asks_for_kinds(folded_text, key)]
    if len(asked_places) != 1 or CONDITIONED.search(folded_text):
        return None
    place = asked_places[0]
    if any(
        re.search(rf"{re.escape(key)}(?:と(?!し)|[や・/、]|及び|および| and )", folded_text)
        for key in table.keys
        if key
    ):
        return None  # of several columns
    words = {fold_name(row[place]) for row in rows if row[place]}
    first_rows = {row[place]: row for row in reversed(rows) if row[place] and not _lists(row[place], words)}
    ordered_rows = [row for row in rows if first_rows.get(row[place]) is row]
    repeated_count = sum(row[place] in first_rows for row in rows) - len(ordered_rows)
    values = {fold_name(value) for value in first_rows}
    is_conditioned = any(
        len(word := fold_name(cell)) > 1 and word not in values and is_named(folded_text, word)
        for row in rows
        for at, cell in enumerate(row)
        if at != place and cell
    )
    if is_conditioned or not 1 < len(ordered_rows) <= _MOST_VALUES or repeated_count < _REPEATED * len(ordered_rows):
        return None
    column = table.columns[place]
    pairs = tuple(((column, row[place]),) for row in ordered_rows)
    said = number_said(len(ordered_rows), folded_text, column, "種類") if are_whole else ""
    return Selection(pairs, tuple(ordered_rows), said)


def _lists(cell: str, words: Set[str]) -> bool:
    """Whether a cell lists values of which others hold one alone."""
    return not words.isdisjoint(listed_values(cell))


def _asks_for_kinds(folded_text: str, key: str) -> bool:
    """Whether a question asks which kinds of values a column has, and nothing else behind its name."""
    for name in dict.fromkeys((key, key.rpartition("の")[2])):
        if len(name) < _LEAST_NAME or not is_named(folded_text, name):
            continue
        if re.search(rf"{_BEFORE_NAME}{re.escape(name)}(?:\W|$)", folded_text):
            return True
        behind = folded_text.rpartition(name)[2]
        rest = _KNOWN.sub(" ", behind)
        is_known = not re.search(rf"[^\s{HIRAGANA}、,「」『』]|[{HAN}{KATAKANA_AND_MARKS}]", rest)
        if is_known and _KINDS_ASKED.search(behind) and behind[:1] not in {"s", "-"}:
            return True
    return False
