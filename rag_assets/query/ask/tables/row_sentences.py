"""Rows selected from a whole table as sentences, each with the passage that holds it.

What stays out: which rows are selected (`rag_assets.query.ask.tables.table_rows`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from rag_assets.query.ask.answers import Sentence, SentenceCitation
from rag_assets.query.ask.quoted.passage_lines import STATEMENT_CHARS
from rag_assets.query.ask.tables.page_tables import Selection
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.language import cut
from rag_assets.text.plain import one_line

_ROWS_CHARS = 900
_ROW_CHARS = 200
_LEAST_CELLS = 4  # of a wide row, by which a passage is told to hold it
_WHOLE_CHARS = 60  # of a cell, up to which it stands in a passage on one line
_MORE = {"ja": "（ほか {count} 件）", "en": "(and {count} more)"}


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
    held_by = [
        (passage["chunk_id"], [(line, _parts(line)) for line in passage["text"].splitlines()]) for passage in passages
    ]
    texts = [_row_text(row) for row in selection.rows]
    name_texts = [_row_text(row) for row in selection.names]
    if sum(map(len, texts)) > _ROWS_CHARS and name_texts and sum(map(len, name_texts)) <= _ROWS_CHARS:
        texts = name_texts
    fitting_count = sum(length <= _ROWS_CHARS for length in accumulate(map(len, texts))) or 1
    ids: list[str] = []
    sentences: list[Sentence] = []
    for text, cells in zip(texts[:fitting_count], selection.cells, strict=False):
        evidence = next(
            (
                (chunk_id, quote)
                for is_wide in (False, True)
                for chunk_id, lines in held_by
                if (quote := _quote(lines, cells, is_wide))
            ),
            None,
        )
        if evidence is None:
            return (), []
        ids += [evidence[0]] if evidence[0] not in ids else []
        sentences.append(Sentence(text, (SentenceCitation(ids.index(evidence[0]) + 1, evidence[1], supported=True),)))
    if fitting_count < len(texts):
        remark = _MORE[language].format(count=len(texts) - fitting_count)
        sentences[-1] = replace(sentences[-1], text=f"{sentences[-1].text} {remark}")
    if selection.said:
        sentences.insert(0, replace(sentences[0], text=selection.said))
    return tuple(sentences), ids


def _quote(lines: Sequence[tuple[str, set[str]]], cells: Sequence[str], is_wide: bool) -> str:
    """The lines of a passage that hold a row: one, or of a wide row, which may go on in the next passage, one a cell;
    empty where none do.
    """
    shown_cells = [cell for cell in dict.fromkeys(cells) if 0 < len(cell) <= _WHOLE_CHARS]
    if not shown_cells:
        return ""
    if not is_wide:
        return next((cut(line, STATEMENT_CHARS) for line, parts in lines if parts.issuperset(shown_cells)), "")
    starts = [place for place, (line, parts) in enumerate(lines) if CELL_SIGN not in line and shown_cells[0] in parts]
    for start in starts:
        window = [*takewhile(lambda pair: CELL_SIGN not in pair[0], lines[start : start + len(set(cells))])]
        for length in range(2, len(window) + 1):
            window_parts = set[str]().union(*(parts for _, parts in window[:length]))
            if window_parts.issuperset(shown_cells[: max(_LEAST_CELLS, length - 1)]):
                return cut("\n".join(line for line, _ in window[:length]), STATEMENT_CHARS)
    return ""


def _parts(line: str) -> set[str]:
    """The cells of a line, also those that hold bars, and the values behind their labels."""
    plain = one_line(line)
    cells = [cell.strip() for end in (CELL_SIGN, CELL_SIGN.strip()) for cell in plain.split(end)]
    return {*cells, *(value for cell in cells for value in (cell.partition(": ")[2],) if value)}


def _row_text(row: Sequence[tuple[str, str]]) -> str:
    """A row, of a long one the first cells."""
    cells = [f"{column}: {value}" if column else value for column, value in row]
    lengths = list(accumulate(len(cell) + len(CELL_SIGN) for cell in cells))
    fit = [cell for cell, length in zip(cells, lengths, strict=True) if length <= _ROW_CHARS]
    return cut(CELL_SIGN.join(fit or cells[:1]), STATEMENT_CHARS)
