"""Extractive summaries of files and pages, for the first step of two-step search.

A summary keeps what tells a document from others: its headings and the column names of its tables, then its most
central sentences, in reading order. Lines that many documents share stand back behind the others. Lengths follow the
multi-vector method: about 250 characters on a file; about 50 on the file and 200 on the page for a page.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import BlockKind
from rag_assets.enrich.centrality import lexrank, select_diverse, tf_idf
from rag_assets.parsing.chunking import column_names
from rag_assets.parsing.content import Block, Page
from rag_assets.parsing.language import split_sentences

METHOD = "extractive"

_SEPARATOR = " / "
_HEADING_SHARE = 0.35
_COLUMN_SHARE = 0.25
_MOST_CANDIDATES = 200
_PAGE_CANDIDATES = 5
_SHORTEST_SENTENCE = 6
_COMMON_WEIGHT = 0.1  # of the centrality of a line that many documents share


@dataclass(frozen=True)
class Outline:
    """What a summary is made of, in reading order.

    Attributes:
        headings: Headings.
        columns: Column names of tables.
        sentences: Sentences and table rows.
    """

    headings: tuple[str, ...]
    columns: tuple[str, ...]
    sentences: tuple[str, ...]


def outline(blocks: Sequence[Block]) -> Outline:
    """Headings, column names and sentences of some blocks, each once."""
    headings: list[str] = []
    columns: list[str] = []
    sentences: list[str] = []
    for block in blocks:
        match block.kind:
            case BlockKind.HEADER:
                continue
            case BlockKind.HEADING:
                headings.append(_one_line(block.text))
            case BlockKind.TABLE if block.rows:
                columns += [name.rpartition(" > ")[2] for name in column_names(block.rows[: block.header_row_count])]
                sentences += [_row_text(row.cells) for row in block.rows[block.header_row_count :][:_MOST_CANDIDATES]]
            case _:
                sentences += split_sentences(block.text)
    return Outline(_distinct(headings, 2), _distinct(columns, 1), _distinct(sentences, _SHORTEST_SENTENCE))


def summarize_page(page: Page, file_head: str, page_chars: int, common: Container[str] = ()) -> str:
    """Summary of a page.

    Args:
        page: The page.
        file_head: What to say on the file, put first.
        page_chars: Characters on the page, at most.
        common: Lines that many documents share.

    Returns:
        The summary; empty where the page has no text.
    """
    found = outline(page.blocks)
    if not (found.headings or found.columns or found.sentences):
        return ""
    name = page.name or ""
    body = compose(found, page_chars - len(name) - len(_SEPARATOR) * bool(name), common)
    return _SEPARATOR.join(part for part in (file_head, name, body) if part)


def file_head(title: str, pages: Sequence[Page], chars: int) -> str:
    """What to say on a file in the summary of one of its pages: its title, and names of pages where there is room."""
    names = fit(_distinct([page.name or "" for page in pages], 1), chars, "、")
    return fit(filter(None, (title, names)), chars, _SEPARATOR) or title[:chars]


def summarize_file(title: str, pages: Sequence[Page], file_chars: int, common: Container[str] = ()) -> str:
    """Summary of a file: its title, the names of its pages, then what its pages hold.

    Args:
        title: Title of the document.
        pages: Its pages in order; the most central sentences of each compete for the summary.
        file_chars: Characters at most.
        common: Lines that many documents share.
    """
    names = fit(_distinct([page.name or "" for page in pages], 1), int(file_chars * 0.25), "、")
    outlines = [outline(page.blocks) for page in pages]
    sentences = [sentence for found in outlines for sentence in _most_central(found.sentences, common)]
    whole = Outline(
        _distinct([heading for found in outlines for heading in found.headings], 2),
        _distinct([column for found in outlines for column in found.columns], 1),
        _distinct(sentences, _SHORTEST_SENTENCE),
    )
    head = _SEPARATOR.join(part for part in (title[:file_chars], names) if part)
    body = compose(whole, file_chars - len(head) - len(_SEPARATOR), common)
    return _SEPARATOR.join(part for part in (head, body) if part)


def compose(found: Outline, budget: int, common: Container[str] = ()) -> str:
    """Text of at most `budget` characters from headings, column names and central sentences."""
    headings = fit(_common_last(found.headings, common), int(budget * _HEADING_SHARE), "、")
    columns = fit(_common_last(found.columns, common), int(budget * _COLUMN_SHARE), "、")
    room = budget - sum(len(part) + len(_SEPARATOR) for part in (headings, columns) if part)
    candidates = found.sentences[:_MOST_CANDIDATES]
    sentences: list[str] = []
    if candidates:
        weights = tf_idf(candidates)
        lengths = [len(sentence) + len(_SEPARATOR) for sentence in candidates]
        scores = _weighed(lexrank(weights), candidates, common)
        chosen = select_diverse(weights, scores, lengths, room)
        if not chosen and room > _SHORTEST_SENTENCE:
            sentences = [candidates[int(scores.argmax())][:room]]
        else:
            sentences = [candidates[index] for index in sorted(chosen)]
    return _SEPARATOR.join(part for part in (headings, columns, *sentences) if part)


def fit(parts: Iterable[str], budget: int, separator: str) -> str:
    """As many leading parts, joined, as fit `budget` characters; parts too long for it are passed over."""
    text = ""
    for part in parts:
        joined = f"{text}{separator}{part}" if text else part
        if len(joined) <= budget:
            text = joined
    return text


def _most_central(sentences: Sequence[str], common: Container[str]) -> list[str]:
    candidates = sentences[:_MOST_CANDIDATES]
    if len(candidates) <= _PAGE_CANDIDATES:
        return list(candidates)
    weights = tf_idf(candidates)
    scores = _weighed(lexrank(weights), candidates, common)
    chosen = select_diverse(weights, scores, [1] * len(candidates), _PAGE_CANDIDATES)
    return [candidates[index] for index in sorted(chosen)]


def _common_last(lines: Sequence[str], common: Container[str]) -> list[str]:
    return sorted(lines, key=lambda line: line in common)


def _weighed(scores: NDArray[np.float64], sentences: Sequence[str], common: Container[str]) -> NDArray[np.float64]:
    weights = [_COMMON_WEIGHT if sentence in common else 1.0 for sentence in sentences]
    weighed: NDArray[np.float64] = scores * np.array(weights)
    return weighed


def _row_text(cells: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(_one_line(cell) for cell in cells if cell.strip()))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _distinct(texts: Iterable[str], shortest: int) -> tuple[str, ...]:
    kept = dict.fromkeys(text for text in (_one_line(text) for text in texts) if len(text) >= shortest)
    return tuple(kept)
