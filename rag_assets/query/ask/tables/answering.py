"""Answers from whole tables: rows, their number, the fields of a table, the kinds of values of a column.

What stays out: which rows a question asks for (`table_rows`), which stand beside one (`neighbours`), which share what
it names (`rows_sharing`), which fields (`table_fields`) and kinds (`column_values`) there are, and how they are told
(`row_sentences`).
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES
from rag_assets.query.ask.answers import AnswerParts, Sentence, Source
from rag_assets.query.ask.evidence import placed_by_quotes
from rag_assets.query.ask.found import Found
from rag_assets.query.ask.quoted.page_sections import OF_TABLE, sheets_named
from rag_assets.query.ask.tables.column_values import asks_for_kinds, things_of_list, values_of_column
from rag_assets.query.ask.tables.neighbours import NeighbourAsked
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage
from rag_assets.query.ask.tables.row_sentences import told_rows
from rag_assets.query.ask.tables.rows_sharing import asks_for_none, denies, rows_sharing
from rag_assets.query.ask.tables.table_fields import asks_for_fields, fields_named
from rag_assets.query.ask.tables.table_rows import MOST_ROWS, RowsAsked
from rag_assets.query.results import Hit
from rag_assets.query.search.composite import parts_of
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import one_line

_TABLES_OF = 6  # passages found, whose documents' tables a question for rows may mean
_FILES_CALLED = 3  # files that a question names, whose tables are read beside these
_MOST_TABLE_ROWS = 20_000  # of all these tables
_TABLE_COLUMNS = ("document_id", "page_number", "block_index", "section", "header_row_count", "rows")
_DOCUMENTS_OF_FIELDS = 4  # in which the table is looked for that a question names


class _Page(NamedTuple):
    """A page that holds a table."""

    document_id: str
    number: int
    name: str


def neighbour_answer(found: Found) -> AnswerParts | None:
    """The row beside one that a question names, or the first or last; None where it asks for none, or it is unclear."""
    neighbour = None if parts_of(found.question) else NeighbourAsked.of(found.question)
    if neighbour is None:
        return None
    began = time.perf_counter()
    tables, _ = _tables(found, _of_tables(found))
    selected = neighbour.select([table for _, table in tables], found.parameters.history)
    if selected is None:
        return None
    page = tables[selected[0]][0]
    return _from_rows(found, selected[1], page.document_id, page.number, began)


def rows_answer(found: Found) -> AnswerParts | None:
    """Rows of a whole table that a question asks for, their number, or a sum; None where not one table has them."""
    question = found.question
    if found.goes_on or parts_of(question) or NeighbourAsked.of(question) is not None:
        return None
    row_question = RowsAsked.of(question)
    if row_question is None:
        return None
    began = time.perf_counter()
    first_hits = _of_tables(found)
    if row_question.asks_for_whole:
        first_hits |= _files_called(found, row_question, first_hits)
    tables, unread = _tables(found, first_hits)
    every = [table for _, table in tables]
    lists = [(page, listed) for page, table in tables if (listed := things_of_list(question, table, every)) is not None]
    if lists and all(sorted(listed.cells) == sorted(lists[0][1].cells) for _, listed in lists):
        page, listed = lists[0]
        return _from_rows(found, listed, page.document_id, page.number, began)
    selected = [(page, table, selection) for page, table in tables if (selection := row_question.select(table))]
    called = [
        [(page, selection) for page, _, selection in selected if row_question.names(page.name)],
        [
            (page, selection)
            for page, table, selection in selected
            if row_question.asks_for_whole and any(map(row_question.calls, table.own_names))
        ],
    ]
    selections = next(filter(None, called), [(page, selection) for page, _, selection in selected])
    if selections is called[1] and row_question.is_short_for(
        [table for _, table, _ in selected],
        [str(hit.citation).rpartition(" › ")[2] for hit in found.hits if CELL_SIGN in hit.text],
    ):
        return None
    if not selections:
        return None
    page, selection = max(selections, key=lambda pair: len(pair[1].rows))
    if not all(
        other_selection.rows
        and selection.covers(other_selection)
        and (other_selection.covers(selection) or beside.document_id == page.document_id)
        for beside, other_selection in selections
    ):
        return None
    if any(
        selection.may_go_on_in(rows, same_page=unread_page == page)
        for unread_page, rows in unread
        if unread_page.document_id == page.document_id
    ):
        return None
    return _from_rows(found, selection, page.document_id, page.number, began)


def is_denied(found: Found, asked: str, row: Sequence[str], source: Source) -> bool:
    """Whether a question asks for what has no mark that the row which answers best has."""
    page = _tables_asked(found, asked, source) if row and asks_for_none(asked) else None
    return page is not None and denies(asked, row, page[1])


def page_answer(
    found: Found, asked: str, row: Sequence[str], source: Source, *, of_table: bool = False
) -> AnswerParts | None:
    """What the tables of a page tell: the kinds of values of a column, or else the rows that share what is named.

    Args:
        found: The question, with what was found.
        asked: The question with what it refers to.
        row: Cells of the row that answers best; empty where none does.
        source: The passage that answers best.
        of_table: Whether several rows of a table answer best.

    Returns:
        None where neither is asked.
    """
    for_kinds = asks_for_kinds(asked)
    if not row and not for_kinds and not of_table:
        return None
    began = time.perf_counter()
    page = _tables_asked(found, asked, source)
    if page is None:
        return None
    number, tables, is_whole = page
    selection = values_of_column(asked, tables, are_whole=is_whole) if for_kinds else None
    if selection is None and (row or of_table):
        of_page = row if number == source.page_number else ()
        selection = rows_sharing(asked, of_page, tables, are_whole=is_whole)
    if selection is None:
        return None
    return _from_rows(found, selection, source.document_id, number, began)


def fields_answer(
    found: Found, asked: str, sources: Sequence[Source], sentences: Sequence[Sentence]
) -> AnswerParts | None:
    """The fields of a table that the question names.

    Of several documents that have one called so, the only one with the question's word for tables in its name counts,
    or else that of the best statement.

    Args:
        found: The question, with what was found.
        asked: The question with what it refers to.
        sources: The passages, best first.
        sentences: What is said of them.

    Returns:
        None where no fields are asked for, or no such table is there.
    """
    if not sources or not asks_for_fields(asked):
        return None
    began = time.perf_counter()
    number = sentences[0].citations[0].number if sentences else sources[0].number
    first = next(source for source in sources if source.number == number)
    by_document = {source.document_id: source for source in (first, *sources)}
    selections: list[tuple[Source, int, Selection]] = []
    for source in [*by_document.values()][:_DOCUMENTS_OF_FIELDS]:
        documents = [source.document_id]
        pages = found.stored.read(PAGES, ("page_number", "page_name"), documents).to_pylist()
        is_read = pc.field("kind").isin(["table", "heading"])
        blocks = found.stored.read(BLOCKS, (*_TABLE_COLUMNS, "kind", "text"), documents, is_read)
        fields = fields_named(
            asked,
            blocks.filter(_are_short(blocks)).to_pylist(),
            {page["page_number"]: page["page_name"] or "" for page in pages},
            _names_of(source),
            are_whole=source.citation.cell_range is not None,
        )
        selections += [(source, *fields)] if fields else []
    if len(selections) > 1:
        words = set(OF_TABLE.findall(fold_name(asked)))
        of_word = [
            selected
            for selected in selections
            if not words.isdisjoint(OF_TABLE.findall(fold_name(" ".join(_names_of(selected[0])))))
        ]
        selections = of_word if len(of_word) == 1 else [selected for selected in selections if selected[0] is first]
    if len(selections) != 1:
        return None
    (source, number, selection), *_ = selections
    return _from_rows(found, selection, source.document_id, number, began)


def _of_tables(found: Found) -> dict[str, Hit]:
    """By document, the first passage of a table, of the best passages."""
    of_tables = [hit for hit in found.hits[:_TABLES_OF] if CELL_SIGN in hit.text or hit.citation.cell_range]
    return {hit.document_id: hit for hit in reversed(of_tables)}


def _from_rows(
    found: Found, selection: Selection, document_id: str, number: int | None, began: float
) -> AnswerParts | None:
    """Rows selected from a table, with passages of its page that hold them; None where these do not prove them."""
    of_page = pc.field("page_number") == number
    passages = found.stored.read(CHUNKS, ("chunk_id", "text"), [document_id], of_page).to_pylist()
    if not selection.is_proved_by(passage["text"] for passage in passages):
        return None
    sentences, ids = told_rows(selection, passages, found.language)
    hits = found.having(ids)
    found.trace.add("rows", began, len(selection.rows))
    if not 0 < len(ids) == len(hits):
        return None
    sources = tuple(Source.of(number, hit, hit.text) for number, hit in enumerate(hits, 1))
    return AnswerParts(tuple(sentences), placed_by_quotes(sentences, sources))


def _files_called(found: Found, asked: RowsAsked, first_hits: Mapping[str, Hit]) -> dict[str, Hit]:
    """The first passages of files that a question names and of which none was found; none where it names many."""
    ids = found.stored.read(DOCUMENTS, ("document_id",))["document_id"].to_pylist()
    named = [
        document_id for document_id in ids if document_id not in first_hits and asked.calls(PurePath(document_id).stem)
    ]
    if not 0 < len(named) <= _FILES_CALLED:
        return {}
    return {hit.document_id: hit for hit in reversed(found.passages_of(named, ()))}


def _tables(
    found: Found, first_hits: Mapping[str, Hit]
) -> tuple[list[tuple[_Page, TableOfPage]], list[tuple[_Page, list[list[str]]]]]:
    """The tables with names of columns of documents, with the page that each is on, and the rows of those without
    names, none of very long ones.
    """
    columns = ("page_name", "page_number", "document_id")
    pages = found.stored.read(PAGES, columns, list(first_hits))
    names = {(row["document_id"], row["page_number"]): row["page_name"] or "" for row in pages.to_pylist()}
    blocks = found.stored.read(BLOCKS, _TABLE_COLUMNS, list(first_hits), pc.field("kind") == "table")
    is_short = _are_short(blocks)
    short = blocks.filter(is_short)
    tables: list[tuple[_Page, TableOfPage]] = []
    unread: list[tuple[_Page, list[list[str]]]] = []
    if (pc.sum(pc.list_value_length(short["rows"])).as_py() or 0) > _MOST_TABLE_ROWS:
        return tables, unread
    long = blocks.filter(pc.invert(is_short)).select(["document_id", "page_number"]).to_pylist()
    unread += [(_Page(row["document_id"], row["page_number"], ""), []) for row in long]
    for block in short.to_pylist():
        document_id, number = block["document_id"], block["page_number"]
        page = _Page(document_id, number, names.get((document_id, number), ""))
        hit = first_hits[document_id]
        if table := TableOfPage.of(block, (*_names_of(hit), page.name), hit.beginning):
            tables.append((page, table))
        elif not block["header_row_count"]:
            unread.append((page, [[one_line(cell or "") for cell in row["cells"]] for row in block["rows"] or ()]))
    return tables, unread


def _tables_asked(found: Found, question: str, source: Source) -> tuple[int | None, list[TableOfPage], bool] | None:
    """The tables of the sheet that a question names, or else of the page of a passage, with its number and whether
    none of them goes on at another page; None where it names several sheets.
    """
    documents, number = [source.document_id], source.page_number
    is_of_sheet = source.citation.cell_range is not None  # which no page ends
    if is_of_sheet:
        pages = found.stored.read(PAGES, ("page_number", "page_name"), documents).to_pylist()
        sheet_numbers = sheets_named(question, {page["page_number"]: page["page_name"] or "" for page in pages})
        if sheet_numbers and number not in sheet_numbers:
            if len(sheet_numbers) > 1:
                return None
            number = min(sheet_numbers)
    is_wanted = (pc.field("page_number") == number) & (pc.field("kind") == "table")
    blocks = found.stored.read(BLOCKS, _TABLE_COLUMNS, documents, is_wanted)
    short, names = blocks.filter(_are_short(blocks)).to_pylist(), (*_names_of(source), str(source.citation))
    tables = [table for block in short if (table := TableOfPage.of(block, names, named=False))]
    return number, tables, is_of_sheet


def _are_short(blocks: pa.Table) -> pa.ChunkedArray:
    """Which blocks are no tables too long to look at."""
    return pc.less_equal(pc.list_value_length(blocks["rows"]), MOST_ROWS)


def _names_of(passage: Hit | Source) -> tuple[str, ...]:
    """What the document of a passage and its folders are called."""
    return (passage.title or "", *PurePath(passage.document_id).with_suffix("").parts)
