"""Questions and answers of a document without a language model: those of `question_candidates` that are worth asking,
with a grade.

The grade of a pair is `100 * (.35 specificity + .25 length + .15 form + .25 kind)`, each part from 0 to 1:

- specificity: mean over the terms of the question's subject of `log((N + 1) / n) / log(N + 1)`, where `n` of the `N`
  sentences and table rows of the document hold the term; terms that stand everywhere tell nothing.
- length of the answer: 1 from 15 to 200 characters (twice that outside Japanese), less for shorter and longer ones.
- form: halved for each of: an answer without letters or digits, a question longer than 80 characters (160), the answer
  standing in the question.
- kind: how naturally such questions are asked, `_KINDS`.

Questions are chosen one by one by maximal marginal relevance: grade and centrality (LexRank among the candidates), less
likeness to those chosen, less what was already taken from the same page and of the same kind.

Source: Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
Summaries", SIGIR 1998, section 2; deviation: pages and kinds count as likeness, too. LexRank:
`rag_assets.enrich.summaries.extraction`.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Page
from rag_assets.enrich.questions.candidates import (
    QuestionCandidate,
    candidates,
    document_candidate,
    is_content,
    without_common,
)
from rag_assets.enrich.questions.phrases import CandidateKind
from rag_assets.enrich.questions.texts import is_hollow, is_sentence, joined, sentences
from rag_assets.enrich.summaries.extraction import lexrank, terms, tf_idf
from rag_assets.text.language import is_japanese
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import estimate_tokens

METHOD = "extractive"

_MOST_CANDIDATES = 300
_MOST_UNITS = 4000
_TURN = re.compile(r"[^\s:：。、]{1,20}(?: [^\s:：]{1,20}){0,2}[:：]")  # who speaks
_NAMED_TURN = re.compile(r"([A-Z][\w'’-]+(?: [A-Z]\.)?(?: [A-Z][\w'’-]+){1,2})(?:, [^:]{2,60})?: ")  # `AMY HOOD: `
_LEAST_TURNS = 3
_TALK_SHARE = 0.3  # of the lines of a document that turns begin
_GRADE_WEIGHT, _CENTRALITY_WEIGHT = 0.7, 0.3
_LIKENESS, _SAME_PAGE, _SAME_KIND = 0.6, 0.12, 0.06
_KINDS = {
    CandidateKind.DEFINITION: 1.0,
    CandidateKind.CONDITION: 1.0,
    CandidateKind.CELL: 0.85,
    CandidateKind.PAIR: 0.75,
    CandidateKind.LIST: 0.65,
    CandidateKind.SECTION: 0.65,
    CandidateKind.DOCUMENT: 0.6,
}


@dataclass(frozen=True)
class QuestionCounts:
    """How many questions are asked of a document: the square root of its tokens by `tokens`, rounded, within bounds.

    A paper of 17,500 tokens gets 6 at 500 tokens, as in PR3, one of up to 3,000 tokens the least number.
    """

    least: int  # questions at least, where the document has so much to ask about
    most: int  # questions at most
    tokens: int  # tokens of a document that gets one question; four times as many get two

    def of(self, length_tokens: int) -> int:
        """Number of questions for a document of a length in tokens."""
        return max(self.least, min(self.most, round(math.sqrt(length_tokens / self.tokens))))


@dataclass(frozen=True)
class Passage:
    """A passage that answers rest on."""

    chunk_id: str
    page_id: str
    page_number: int
    block_indexes: tuple[int, ...]  # blocks of the page that it is taken from
    text: str
    language: str


@dataclass(frozen=True)
class Pair:
    """A question with its answer."""

    question: str
    answer: str
    passages: tuple[Passage, ...]  # passages that the answer rests on, in reading order
    grade: float  # how good both are, from 0 to 100


def length_tokens(passages: Sequence[Passage]) -> int:
    """Tokens of a document, estimated from its passages."""
    return sum(estimate_tokens(passage.text) for passage in passages)


def extract_questions(
    document_id: str,
    title: str,
    language: str,
    pages: Sequence[Page],
    passages: Sequence[Passage],
    count: int,
    common: Container[str] = (),
) -> list[Pair]:
    """Questions that a document answers.

    No question is made from the common lines, which many documents share.

    Returns:
        The pairs in reading order, each citing a passage that holds the answer; fewer where there is less to ask about.
    """
    units = _units(pages)
    lines = _lines(pages, language, common)
    texts = [line for _, line in lines]
    is_talk = _is_talk(texts)
    pool = _unambiguous(candidates(document_id, title, pages, language, common))
    if is_talk:  # who speaks is no label of what is said
        pool = [
            candidate
            for candidate in pool
            if candidate.kind is not CandidateKind.PAIR or not is_sentence(candidate.answer, language)
        ]
    if speakers := _speakers(texts):
        pool = [candidate for candidate in pool if not _is_remark(candidate, "\n".join(texts), speakers)]
    by_block: dict[tuple[int, int], list[tuple[str, Passage]]] = {}
    for passage in passages:
        text = _fold(passage.text)
        for index in passage.block_indexes:
            by_block.setdefault((passage.page_number, index), []).append((text, passage))
    frequency = Counter(term for unit in units for term in set(terms(unit)))
    graded_pool = [
        (candidate, place, grade(candidate, frequency, len(units)))
        for candidate in pool
        if (place := _passage_of(candidate, by_block)) is not None
    ]
    selection = _choose(_shortened(graded_pool), count)
    if len(selection) < min(2, count) and not (is_talk or speakers):
        whole = _whole(document_id, title, language, pages, lines)
        if whole is not None and (place := _passage_of(whole, by_block)) is not None:
            selection.append((whole, place, grade(whole, frequency, len(units))))
    selection.sort(key=lambda item: (item[0].page_number, item[0].block_index, item[0].question))
    return [Pair(candidate.question, candidate.answer, (place,), score) for candidate, place, score in selection]


def grade(candidate: QuestionCandidate, frequency: Counter[str], unit_count: int) -> float:
    """Grade of a pair, from 0 to 100; see the top of the module.

    Frequencies are numbers of the sentences and rows of the document that hold a term.
    """
    scale = 1 if is_japanese(candidate.question) else 2
    subject = set(terms(candidate.subject or candidate.question))
    rarest = math.log(unit_count + 1) or 1.0
    specific = [math.log((unit_count + 1) / max(1, frequency[term])) / rarest for term in subject]
    specificity = sum(specific) / len(specific) if specific else 0.0
    size = len(candidate.answer)
    length = 0.3 + 0.7 * size / (15 * scale) if size < 15 * scale else min(1.0, 200 * scale / size)
    form = 1.0
    form *= 1.0 if re.search(r"[^\W_]", candidate.answer) else 0.5
    form *= 1.0 if len(candidate.question) <= 80 * scale else 0.5
    form *= 0.5 if _fold(candidate.answer) in _fold(candidate.question) else 1.0
    total = 0.35 * specificity + 0.25 * length + 0.15 * form + 0.25 * _KINDS[candidate.kind]
    return round(100 * total, 1)


_Graded = tuple[QuestionCandidate, Passage, float]


def _choose(graded_pool: Sequence[_Graded], count: int) -> list[_Graded]:
    """Choose by maximal marginal relevance; ties go to the earlier one."""
    if not graded_pool:
        return []
    weights = tf_idf([f"{candidate.question} {candidate.answer[:80]}" for candidate, _, _ in graded_pool])
    centrality = lexrank(weights)
    relevance = np.array([score / 100 for *_, score in graded_pool]) * _GRADE_WEIGHT
    relevance += _CENTRALITY_WEIGHT * centrality / centrality.max()
    pages = np.array([candidate.page_number for candidate, _, _ in graded_pool])
    kinds = np.array([str(candidate.kind) for candidate, _, _ in graded_pool])
    likeness: NDArray[np.float64] = np.zeros(len(graded_pool))
    crowding: NDArray[np.float64] = np.zeros(len(graded_pool))
    left = np.ones(len(graded_pool), dtype=bool)
    indexes: list[int] = []
    while len(indexes) < count and left.any():
        scores = np.where(left, np.round(relevance - _LIKENESS * likeness - crowding, 12), -np.inf)
        best = int(scores.argmax())
        indexes.append(best)
        left[best] = False
        likeness = np.maximum(likeness, weights @ weights[best])
        left &= likeness < 0.9
        crowding += _SAME_PAGE * (pages == pages[best]) * (len(set(pages.tolist())) > 1)
        crowding += _SAME_KIND * (kinds == kinds[best])
    return [graded_pool[index] for index in indexes]


def _shortened(graded_pool: Sequence[_Graded]) -> list[_Graded]:
    """At most `_MOST_CANDIDATES`, the best of each page in turn."""
    if len(graded_pool) <= _MOST_CANDIDATES:
        return list(graded_pool)
    by_page: dict[int, list[int]] = {}
    for index in sorted(range(len(graded_pool)), key=lambda i: (-graded_pool[i][2], i)):
        by_page.setdefault(graded_pool[index][0].page_number, []).append(index)
    ranking = sorted((rank, index) for indexes in by_page.values() for rank, index in enumerate(indexes))
    return [graded_pool[index] for index in sorted(index for _, index in ranking[:_MOST_CANDIDATES])]


def _unambiguous(pool: Sequence[QuestionCandidate]) -> list[QuestionCandidate]:
    """Each question once; none that the document answers in different ways, as a table that stands twice does."""
    answers: dict[str, set[str]] = {}
    for candidate in pool:
        answers.setdefault(_fold(candidate.question), set()).add(_fold(candidate.answer))
    by_question = {
        _fold(candidate.question): candidate
        for candidate in reversed(pool)
        if len(answers[_fold(candidate.question)]) == 1
    }
    return list(reversed(by_question.values()))


def _passage_of(
    candidate: QuestionCandidate, passages: Mapping[tuple[int, int], Sequence[tuple[str, Passage]]]
) -> Passage | None:
    """The first passage of the candidate's block that holds all of its quotes, else their beginnings.

    Passages are by page and block, with their folded texts.
    """
    quotes = [_fold(quote) for quote in candidate.quotes]
    for length in (None, 12):
        for text, passage in passages.get((candidate.page_number, candidate.block_index), ()):
            if all(quote[:length] in text for quote in quotes):
                return passage
    return None


_Line = tuple[tuple[int, int], str]  # page and block, and a sentence


def _lines(pages: Sequence[Page], language: str, common: Container[str]) -> list[_Line]:
    """The whole sentences of a document that say something by themselves."""
    return [
        ((page.number, index), line)
        for page in pages
        if is_content(page)
        for index, block in enumerate(page.blocks)
        if block.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM)
        for line in map(one_line, sentences(joined(without_common(block, common).text, language), language))
        if is_sentence(line, language) and not is_hollow(line)
    ]


def _is_talk(lines: Sequence[str]) -> bool:
    """Whether turns of speakers make up a document."""
    turns = sum(_TURN.match(line) is not None for line in lines)
    return turns >= _LEAST_TURNS and turns >= _TALK_SHARE * len(lines)


def _whole(
    document_id: str, title: str, language: str, pages: Sequence[Page], lines: Sequence[_Line]
) -> QuestionCandidate | None:
    """What the document is about, answered by its most central sentence, where sentences are most of its text."""
    blocks = [block for page in pages if is_content(page) for block in page.blocks]
    whole = sum(len(block.text) for block in blocks if block.kind is not BlockKind.HEADER)
    if not lines or 2 * sum(len(line) for _, line in lines) < whole:
        return None
    lines = lines[:_MOST_CANDIDATES]
    central = lexrank(tf_idf([line for _, line in lines]))
    sizes = np.array([min(1.0, len(line) / 40) for _, line in lines])
    place, line = lines[int(np.round(central * sizes, 12).argmax())]
    return document_candidate(document_id, title, language, pages, place, line, line)


def _speakers(lines: Sequence[str]) -> set[str]:
    """The people who speak in a document in turns, by full name; none where there are not two."""
    names = Counter(match[1].lower() for line in lines if (match := _NAMED_TURN.match(line)))
    speakers = {name for name, count in names.items() if count >= _LEAST_TURNS}
    return set(names) if len(speakers) > 1 else set()


def _is_remark(candidate: QuestionCandidate, talk: str, speakers: Container[str]) -> bool:
    """Whether a question of a talk is none: what came next or how, what a common word is like, what somebody says."""
    subject = candidate.subject.strip().lower()
    if candidate.kind is CandidateKind.CONDITION:
        return candidate.question.startswith(("What happens", "How do you"))
    return subject in speakers or (candidate.kind is CandidateKind.DEFINITION and f" {subject}" in talk)


def _units(pages: Sequence[Page]) -> list[str]:
    """Sentences and table rows of a document, up to a number."""
    units: list[str] = []
    for page in pages:
        for block in page.blocks:
            if block.kind is BlockKind.HEADER:
                continue
            if block.kind is BlockKind.TABLE and block.rows:
                units += [" ".join(dict.fromkeys(row.cells)) for row in block.rows]
            else:
                units += sentences(block.text)
        if len(units) >= _MOST_UNITS:
            break
    return units[:_MOST_UNITS]


def _fold(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).lower().split())
