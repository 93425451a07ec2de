"""The fields of a table that a question names, from documents that define tables field by field.

A definition is a table with a column of names of fields (`論理名`, `物理名`, "column name"). What it defines is called
as its sheet, in the heading above it, or in a title block (`テーブル物理名 | history`); a row of that block, or of a
list of tables, is most like the question, and tells none of the fields. Said are those that have what the question
names, or all; nothing where a word is left over, which may be a condition, or where two tables are called so.

What stays out: which rows have what a question names (`rag_assets.query.ask.tables.rows_sharing`), and in which
document it is looked for (`rag_assets.query.ask.tables.answering`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_assets.query.ask.quoted.page_sections import OF_TABLE, SHEET_NUMBER, is_called_table, without_table_words
from rag_assets.query.ask.quoted.wanted import is_named
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage
from rag_assets.query.ask.tables.rows_sharing import CONDITIONED, NO_MARK, rows_sharing
from rag_assets.query.ask.tables.table_rows import QUESTION_CHARS, number_said
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HAN, HIRAGANA, KATAKANA_AND_MARKS

_MOST_FIELDS = 200
_ABOVE_ROWS = 12  # of a table that may be a title block
_ASKED = re.compile(r"カラム|列|項目|フィールド|属性|\b(?:columns?|fields?|attributes?)\b")
_NO_LIST = re.compile(r"桁|型|何の|何番|いくつ|意味|どの|どれ|\b(?:type|length|mean)")  # some of them, or of one
_ASKED_TOO = re.compile(r"[」』]?\s?(?:[もとや、・]|を(?:教|知|示|挙|一|並)|[付つ]きで)")  # behind the name of a column
_OF_FIELDS = re.compile(
    r"(?:項目|列|カラム|フィールド|属性|論理|物理|日本語|識別|和)名称?\)?$|^(?:データ)?(?:項目|カラム|フィールド|属性|列)$"
    r"|\b(?:column|field|attribute|physical|logical)(?: ?name)?$"
)
_KEYS = (  # of tables, as questions and columns name them
    re.compile(r"主キー|プライマリー?キー?|\bprimary key|(?<![a-z])pk(?![a-z])"),
    re.compile(r"外部キー|\bforeign key|(?<![a-z])fk(?![a-z])"),
)
_BETWEEN_NAMES = re.compile(r"[\s【】「」『』()（）\[\]:：/|・]+")
_WORDS = re.compile(rf"[{HAN}]+|[{KATAKANA_AND_MARKS}]+|[^\W{HAN}{KATAKANA_AND_MARKS}{HIRAGANA}]+")
_COMMON = frozenset(  # words that say nothing of which fields
    re.findall(
        r"\S+",
        "カラム 列 項目 項目名 列名 フィールド 属性 名 名前 名称 構成 定義 物理 論理 物理名 論理名 中身 項目一覧 "
        "場合 一覧 全 全部 全件 列挙 種類 教 知 挙 示 見 並 何 入 持 願 columns column fields field attributes "
        "names list all of the a an in and it does do has have is are what which there please me "
        "show give contain consist contains",
    )
)


@dataclass(frozen=True)
class _Definition:
    """A table of fields, with the page that it is on, and what it is called there, without words for tables."""

    page_number: int
    block: Mapping[str, Any]
    names: frozenset[str]


def asks_for_fields(question: str) -> bool:
    """Whether a question may ask for the fields of a table."""
    if len(question) > QUESTION_CHARS:
        return False
    folded_text = fold_name(question)
    is_asked = any(pattern.search(folded_text) for pattern in (_ASKED, *_KEYS))
    return is_asked and OF_TABLE.search(folded_text) is not None


def fields_named(
    question: str,
    blocks: Sequence[Mapping[str, Any]],
    sheets: Mapping[int, str],
    place: Sequence[str],
    *,
    are_whole: bool,
) -> tuple[int, Selection] | None:
    """The fields of the only table of a document that a question names.

    Args:
        question: The question.
        blocks: The tables and headings of the document, rows of `blocks` in their order.
        sheets: The names of its pages by number.
        place: What the document and its folders are called.
        are_whole: Whether no table goes on at another page.

    Returns:
        The number of the page and the fields, with what they are called and what else is asked of them; None where the
        question names no table, or asks for anything else.
    """
    folded_text, spaced_text = fold_name(question), without_table_words(question)
    definitions = _without_title_blocks(list(_definitions(blocks, sheets)))
    name_counts = Counter(name for definition in definitions for name in definition.names)
    meant_names = {
        name
        for name, count in name_counts.items()
        if count == 1
        and (is_called_table(folded_text, spaced_text, name) or ("_" in name and is_named(spaced_text, name)))
    }
    meant_names = {
        name for name in meant_names if not any(name != other_name and name in other_name for other_name in meant_names)
    }
    meant_definitions = [definition for definition in definitions if not meant_names.isdisjoint(definition.names)]
    if len(meant_definitions) != 1 or _names_others(spaced_text, definitions, meant_definitions[0], meant_names):
        return None
    names = (*place, *sorted(meant_definitions[0].names), sheets.get(meant_definitions[0].page_number, ""))
    table = TableOfPage.of(meant_definitions[0].block, names)
    if table is None:
        return None
    rows = tuple(tuple(one_line(cell or "") for cell in row["cells"]) for row in meant_definitions[0].block["rows"])
    known_rows = {*table.rows, *table.totals}  # a field may be called `合計`
    table = replace(table, rows=tuple(row for row in rows if row in known_rows), totals=(), is_doubtful=False)
    if not 1 < len(table.rows) <= _MOST_FIELDS:
        return None
    folded_text = _with_own_keys(folded_text, table)
    selection = rows_sharing(folded_text, (), [table], are_whole=are_whole)
    selection = selection or _all_fields(folded_text, table, max(sorted(meant_names), key=len), are_whole)
    return (meant_definitions[0].page_number, selection) if selection else None


def _with_own_keys(folded_text: str, table: TableOfPage) -> str:
    """A question with the names that the columns of a table have for its keys (`pk` for 主キー)."""
    for pattern in _KEYS:
        name = next(filter(pattern.search, table.keys), None)
        folded_text = pattern.sub(name, folded_text) if name and name not in folded_text else folded_text
    return folded_text


def _definitions(blocks: Sequence[Mapping[str, Any]], sheets: Mapping[int, str]) -> Iterator[_Definition]:
    above: list[str] = []
    page: int | None = None
    for block in blocks:
        if block["page_number"] != page:
            page, above = block["page_number"], []
        if block["kind"] != "table":
            above += [block["text"] or ""] if block["kind"] == "heading" else []
            continue
        rows = block["rows"] or ()
        headers = [fold_name(cell or "") for row in rows[: block["header_row_count"] or 0] for cell in row["cells"]]
        if any(map(_OF_FIELDS.search, headers)):
            texts = [SHEET_NUMBER.sub("", sheets.get(block["page_number"], "")), *(block["section"] or ())[-1:], *above]
            names = {without_table_words(part) for text in texts for part in (text, *_BETWEEN_NAMES.split(text))}
            yield _Definition(block["page_number"], block, frozenset(names) - _COMMON)
            above = []
        elif len(rows) <= _ABOVE_ROWS:
            above += [cell or "" for row in rows for cell in row["cells"]]


def _without_title_blocks(definitions: Sequence[_Definition]) -> list[_Definition]:
    """Definitions but those of one field at most that share a name with another on their page: its title block."""
    return [
        definition
        for definition in definitions
        if len(definition.block["rows"] or ()) - (definition.block["header_row_count"] or 0) > 1
        or not any(
            other is not definition
            and other.page_number == definition.page_number
            and not other.names.isdisjoint(definition.names)
            for other in definitions
        )
    ]


def _names_others(
    spaced_text: str, definitions: Sequence[_Definition], meant_definition: _Definition, by: set[str]
) -> bool:
    """Whether a question names another table beside the one that it names `by` these names."""
    text = spaced_text
    for name in sorted(by, key=lambda name: (-len(name), name)):
        text = text.replace(name, " ")
    other_names = {
        name
        for definition in definitions
        if definition is not meant_definition
        for name in definition.names - meant_definition.names
    }
    return any(is_named(text, name) for name in other_names)


def _all_fields(folded_text: str, table: TableOfPage, name: str, are_whole: bool) -> Selection | None:
    """All rows, or those of the key that is asked for, where every word behind the name of the table, or of a question
    that asks before it, is known.
    """
    before, _, behind = folded_text.rpartition(name)
    behind = behind.removeprefix("ー")
    rest = behind if _ASKED.search(behind) else before + behind
    words = {word for name in table.names for word in _WORDS.findall(fold_name(name))} | _COMMON
    asked_keys = [key for key in table.keys if key and re.search(f"{re.escape(key)}{_ASKED_TOO.pattern}", rest)]
    of_keys = [key for key in table.keys if key in rest and any(pattern.search(key) for pattern in _KEYS)]
    plain = OF_TABLE.sub(" ", rest)
    for key in sorted([*asked_keys, *of_keys, *filter(_OF_FIELDS.search, table.keys)], key=len, reverse=True):
        plain = plain.replace(key, " ")
    if of_keys:
        plain = plain.replace("どれ", "")  # which are told by their marks
    left = set(_WORDS.findall(plain)) - words
    if left or len(of_keys) > 1 or CONDITIONED.search(before + behind) or _NO_LIST.search(plain):
        return None
    said_places = [
        place for place, key in enumerate(table.keys) if _OF_FIELDS.search(key) or key in (*asked_keys, *of_keys)
    ]
    key_places = [place for place, key in enumerate(table.keys) if key in of_keys]
    rows = [
        row
        for row in table.rows
        if any(row[place] for place in said_places) and not any(NO_MARK.fullmatch(row[place]) for place in key_places)
    ]
    row_pairs = tuple(tuple((table.columns[place], row[place]) for place in said_places if row[place]) for row in rows)
    selected_by = ", ".join((name, *(table.columns[place] for place in key_places)))
    said = number_said(len(rows), folded_text, selected_by) if are_whole else ""
    return Selection(row_pairs, tuple(rows), said) if rows else None
