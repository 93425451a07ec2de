"""Extractive summaries of files and pages, for the first step of two-step search.

A summary keeps what tells a document from others: its headings and the column names of its tables, then its most
central sentences, in reading order. Lines that many documents share are left out; where little else is there, they
follow behind it. Covers, histories and tables of contents say nothing in the summary of a file; the summary of such a
page says what kind of page it is. Lengths follow the multi-vector method: about 250 characters on a file; about 50 on
the file and 200 on the page for a page.

Sentences are ranked by LexRank; questions and descriptions of entities are chosen by it, too. Source: Erkan and Radev,
"LexRank: Graph-based Lexical Centrality as Salience in Text Summarization", JAIR 22 (2004), section 3.3 (continuous
LexRank). Deviation: terms are character bigrams in Japanese and words elsewhere, because bigrams need no dictionary.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import BlockKind, PageRole
from rag_assets.contracts.content import Block, Page
from rag_assets.parsing.chunking import column_names
from rag_assets.text.folding import content_words, is_wide
from rag_assets.text.language import detect_language, split_sentences
from rag_assets.text.plain import one_line

METHOD = "extractive"

SEPARATOR = " / "

_ROLES = {
    PageRole.COVER: ("表紙", "cover"),
    PageRole.REVISION_HISTORY: ("変更履歴", "revision history"),
    PageRole.CONTENTS: ("目次", "table of contents"),
}
_HEADING_SHARE = 0.35
_COLUMN_SHARE = 0.25
_MOST_CANDIDATES = 200
_PAGE_CANDIDATES = 5
_SENTENCE_CHARS = 60  # of an ordinary sentence
_SHORTEST_SENTENCE = 6
_COMMON_WEIGHT = 0.1  # of the centrality of a line that many documents share
_SPOKEN_WEIGHT = (
    0.3  # of that of a sentence which only those understand who heard the one before, or which is small talk
)
_SHORT_WEIGHT = 0.5  # of that of a sentence of few words of its own
_TELLING_WORDS = 4  # that an English sentence has, numbers included, which is not short
_ENOUGH_SHARE = 0.5  # of a summary that other lines must be able to fill for those to be left out
_SPEAKER = re.compile(r"^[A-Z][A-Z.'’-]+(?: [A-Z][A-Z.'’-]*){1,2}(?:, [^:]{2,40})?:\s*")  # as in a transcript
_SPOKEN = re.compile(
    r"^(?:and|but|so|or|because|yeah|yes|no|well|okay|ok|thanks?|thank|hi|hello|good|great|sure|maybe|please|sorry|now|then|let"
    r"|this|that|these|those|it|he|she|they|there|here|you|i|which|who|what|why|how|as i|like i)\b"
    r"|\b(?:I|you|your|me|my|I['’](?:m|d|ll|ve)|let['’]s|kind of|sort of|thank you|appreciate it)\b"
    r"|\?$|^\(.*\)$|^(?:そして|それ|これ|その|この|そう|ああ|はい|いえ|では|じゃあ|で、|なので|だから|ちなみに|ありがとう|よろしく)"
    r"|(?:です|ます|でしょう)(?:か|ね|よ|よね)[。？?]?$",
    re.IGNORECASE,
)

_TERMS = re.compile(r"[a-z0-9_]+|[^\W\da-z_]+")
_DAMPING = 0.85
_REDUNDANCY = 0.4  # cosine similarity above which a text adds nothing to one chosen already


@dataclass(frozen=True)
class Outline:
    """What a summary is made of, in reading order."""

    headings: tuple[str, ...]
    columns: tuple[str, ...]  # column names of tables
    sentences: tuple[str, ...]  # sentences and table rows

    def without(self, common: Container[str]) -> "Outline":
        """The same without lines that many documents share."""
        headings, columns, sentences = (
            tuple(line for line in lines if line not in common)
            for lines in (self.headings, self.columns, self.sentences)
        )
        return Outline(headings, columns, sentences)

    @property
    def length_chars(self) -> int:
        """Characters of all lines."""
        return sum(map(len, chain(self.headings, self.columns, self.sentences)))


def content_pages(pages: Sequence[Page]) -> list[Page]:
    """The pages that hold what a document says: those without a role, or all where no other has text."""
    return [page for page in pages if page.role is None and _has_text(page)] or list(pages)


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
                headings.append(one_line(block.text))
            case BlockKind.TABLE if block.rows:
                columns += [name.rpartition(" > ")[2] for name in column_names(block.rows[: block.header_row_count])]
                sentences += [row_text(row.cells) for row in block.rows[block.header_row_count :][:_MOST_CANDIDATES]]
            case _:
                sentences += (_SPEAKER.sub("", sentence) for sentence in split_sentences(block.text))
    return Outline(_distinct(headings, 2), _distinct(columns, 1), _distinct(sentences, _SHORTEST_SENTENCE))


def summarize_page(page: Page, file_head: str, page_chars: int, common: Container[str] = ()) -> str:
    """Summary of a page.

    What it says on the file comes first; the rest has at most so many characters.

    Returns:
        The summary; empty where the page has no text.
    """
    page_outline = outline(page.blocks)
    if not page_outline.length_chars:
        return ""
    name = page.name or ""
    body = compose(page_outline, page_chars - len(name) - len(SEPARATOR) * bool(name), common)
    return SEPARATOR.join(part for part in (file_head, name, body) if part)


def summarize_role(page: Page, role: PageRole, title: str) -> str:
    """Summary of a page that is no content: what kind of page it is, of which file; empty where it has no text."""
    if not _has_text(page):
        return ""
    japanese, english = _ROLES[role]
    text = "\n".join([page.name or "", *(block.text for block in page.blocks)])
    kind = japanese if detect_language(text) == "ja" else english
    return SEPARATOR.join(part for part in dict.fromkeys((title, page.name or "", kind)) if part)


def file_head(title: str, pages: Sequence[Page], chars: int) -> str:
    """What to say on a file in the summary of one of its pages: its title, and names of pages where there is room."""
    names = fit(_page_names(pages), chars, "、")
    return fit(filter(None, (title, names)), chars, SEPARATOR) or title[:chars]


def summarize_file(title: str, pages: Sequence[Page], file_chars: int, common: Container[str] = ()) -> str:
    """Summary of a file: its title, the names of its pages, then what its pages hold.

    The most central sentences of each page compete for it.
    """
    names = fit(_page_names(pages), int(file_chars * 0.25), "、")
    outlines = [outline(page.blocks) for page in content_pages(pages)]
    sentences = [sentence for page_outline in outlines for sentence in _most_central(page_outline.sentences, common)]
    whole = Outline(
        _distinct([heading for page_outline in outlines for heading in page_outline.headings], 2),
        _distinct([column for page_outline in outlines for column in page_outline.columns], 1),
        _distinct(sentences, _SHORTEST_SENTENCE),
    )
    head = SEPARATOR.join(part for part in (title[:file_chars], names) if part)
    body = compose(whole, file_chars - len(head) - len(SEPARATOR), common)
    return SEPARATOR.join(part for part in (head, body) if part)


def compose(found: Outline, budget: int, common: Container[str] = ()) -> str:
    """Text of at most `budget` characters from headings, column names and central sentences."""
    own = found.without(common)
    if own.length_chars >= budget * _ENOUGH_SHARE:
        found = own
    headings = fit(_common_last(found.headings, common), int(budget * _HEADING_SHARE), "、")
    columns = fit(_common_last(found.columns, common), int(budget * _COLUMN_SHARE), "、")
    room = budget - sum(len(part) + len(SEPARATOR) for part in (headings, columns) if part)
    candidates = _standing_alone(found.sentences[:_MOST_CANDIDATES], room, common)
    sentences: list[str] = []
    if candidates:
        weights = tf_idf(candidates)
        lengths = [len(sentence) + len(SEPARATOR) for sentence in candidates]
        scores = _weighed(lexrank(weights), candidates, common)
        indexes = select_diverse(weights, scores, lengths, room)
        if not indexes and room > _SHORTEST_SENTENCE:
            sentences = [_shortened(candidates[int(scores.argmax())], room)]
        else:
            sentences = [candidates[index] for index in sorted(indexes)]
    return SEPARATOR.join(part for part in (headings, columns, *sentences) if part)


def fit(parts: Iterable[str], budget: int, separator: str) -> str:
    """As many leading parts, joined, as fit `budget` characters; parts too long for it are passed over."""
    text = ""
    for part in parts:
        longer = f"{text}{separator}{part}" if text else part
        if len(longer) <= budget:
            text = longer
    return text


def _shortened(sentence: str, room: int) -> str:
    """The beginning of a sentence that is longer than there is room, up to a clause or else a word."""
    head = sentence[: room - 1]
    clause, word = (max(map(head.rfind, marks)) for marks in ("、。；，", " 　"))
    comma = max(head.rfind(", "), head.rfind("; "))
    end = next((place for place in (max(clause, comma), word) if place >= room // 2), room - 2)
    return f"{head[: end + 1].rstrip(' ,;、，；')}…"


def _has_text(page: Page) -> bool:
    return any(block.text and block.kind is not BlockKind.HEADER for block in page.blocks)


def _page_names(pages: Sequence[Page]) -> tuple[str, ...]:
    return _distinct([page.name or "" for page in content_pages(pages)], 1)


def _most_central(sentences: Sequence[str], common: Container[str]) -> list[str]:
    candidates = _standing_alone(sentences[:_MOST_CANDIDATES], _PAGE_CANDIDATES * _SENTENCE_CHARS, common)
    if len(candidates) <= _PAGE_CANDIDATES:
        return list(candidates)
    weights = tf_idf(candidates)
    scores = _weighed(lexrank(weights), candidates, common)
    indexes = select_diverse(weights, scores, [1] * len(candidates), _PAGE_CANDIDATES)
    return [candidates[index] for index in sorted(indexes)]


def _common_last(lines: Sequence[str], common: Container[str]) -> list[str]:
    return sorted(lines, key=lambda line: line in common)


def _weighed(scores: NDArray[np.float64], sentences: Sequence[str], common: Container[str]) -> NDArray[np.float64]:
    weights = [_COMMON_WEIGHT if sentence in common else _telling(sentence) for sentence in sentences]
    result: NDArray[np.float64] = scores * np.array(weights)
    return result


def _standing_alone(sentences: Sequence[str], room: int, common: Container[str]) -> Sequence[str]:
    """Those that say something of their own by themselves where they can fill half of the room, else all."""
    alone = [sentence for sentence in sentences if sentence not in common and _telling(sentence) == 1]
    return alone if sum(map(len, alone)) >= room * _ENOUGH_SHARE else sentences


def _telling(sentence: str) -> float:
    """How much a sentence says by itself; rows and what does not end as a sentence are not judged."""
    if sentence.rstrip(")）]」』”\"'’")[-1:] not in tuple("。．.!?！？"):
        return 1.0
    weight, words = _SPOKEN_WEIGHT if _SPOKEN.search(sentence) else 1.0, content_words(sentence)
    return weight * (_SHORT_WEIGHT if len(words) < _TELLING_WORDS and not is_wide(words) else 1.0)


def row_text(cells: Sequence[str]) -> str:
    """A table row as a line: its cells, each once."""
    return " ".join(dict.fromkeys(one_line(cell) for cell in cells if cell.strip()))


def _distinct(texts: Iterable[str], shortest: int) -> tuple[str, ...]:
    unique_texts = dict.fromkeys(text for text in (one_line(text) for text in texts) if len(text) >= shortest)
    return tuple(unique_texts)


def terms(text: str) -> list[str]:
    """Terms of a text: lower-case words and numbers, and character bigrams of runs of other letters."""
    result: list[str] = []
    for run in _TERMS.findall(unicodedata.normalize("NFKC", text).lower()):
        if run[0].isascii() or len(run) < 3:
            result.append(run)
        else:
            result += [run[index : index + 2] for index in range(len(run) - 1)]
    return result


def tf_idf(texts: Sequence[str]) -> NDArray[np.float64]:
    """Term weights of texts.

    Returns:
        Array of shape `(len(texts), terms)`; rows have unit length, or are zero where a text has no terms.
    """
    counts = [Counter(terms(text)) for text in texts]
    document_frequency = Counter(term for count in counts for term in count)
    column = {term: index for index, term in enumerate(sorted(document_frequency))}
    weights = np.zeros((len(texts), max(1, len(column))))
    for row, count in enumerate(counts):
        for term, frequency in count.items():
            weights[row, column[term]] = frequency * (math.log((1 + len(texts)) / (1 + document_frequency[term])) + 1)
    norms = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.asarray(weights / np.where(norms > 0, norms, 1), dtype=np.float64)


def lexrank(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centrality of texts by LexRank.

    Args:
        weights: Term weights of shape `(texts, terms)`, rows of unit length.

    Returns:
        Stationary probabilities of shape `(texts,)`, sum 1.
    """
    count = len(weights)
    if count == 0:
        return np.zeros(0)
    similarity = weights @ weights.T
    sums = similarity.sum(axis=1, keepdims=True)
    transition = np.where(sums > 0, similarity / np.where(sums > 0, sums, 1), 1 / count)
    rank = np.full(count, 1 / count)
    for _ in range(100):
        new_rank = (1 - _DAMPING) / count + _DAMPING * (rank @ transition)
        if np.abs(new_rank - rank).sum() < 1e-9:
            return np.asarray(new_rank, dtype=np.float64)
        rank = new_rank
    return rank


def select_diverse(
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    lengths: Sequence[int],
    budget: int,
) -> list[int]:
    """Choose central texts that fit a length, leaving out those too similar to one chosen already.

    Args:
        weights: Term weights of shape `(texts, terms)`, rows of unit length.
        scores: Centrality of shape `(texts,)`.
        lengths: Length of each text.
        budget: Sum of lengths at most.

    Returns:
        Indexes in order of choice: falling score, ties by position.
    """
    indexes: list[int] = []
    for index in sorted(range(len(scores)), key=lambda i: (-round(float(scores[i]), 12), i)):
        if lengths[index] > budget:
            continue
        if indexes and float((weights[indexes] @ weights[index]).max()) > _REDUNDANCY:
            continue
        indexes.append(index)
        budget -= lengths[index]
    return indexes
