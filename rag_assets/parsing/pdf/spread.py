"""Words whose letters are set apart to fill a width, as the names of columns and items often are (`総　　額`)."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from rag_assets.parsing.flow import SPREAD_WORD
from rag_assets.parsing.pdf.runs import IDEOGRAPH_GAP, Run
from rag_assets.text.scripts import KANA, KANJI

_LETTER = re.compile(f"[{KANJI}{KANA}]")
_LAST_LETTER = re.compile(f"[{KANJI}{KANA}](?:[(（:：].*)?")  # with what stands right behind it
_UNEVEN = 0.6  # of the type, between the widest and the narrowest gap
_GAP, _WIDTH = 2.0, 8.0  # of the type: one or the other is kept beside other text of the line


class _Token(NamedTuple):
    """Characters of a run between spaces, by their numbers."""

    run: Run
    begin: int
    end: int

    @property
    def text(self) -> str:
        return "".join(self.run.characters[self.begin : self.end])

    @property
    def left(self) -> float:
        return self.run.starts[self.begin]

    @property
    def right(self) -> float:
        return self.run.right if self.end == len(self.run.characters) else self.run.starts[self.end]


def join_spread(row: list[Run]) -> list[Run]:
    """The runs of a line from the left, with the letters of each word that are set apart as one run."""
    if sum(len(word) == 1 and _LETTER.match(word) is not None for run in row for word in run.text.split()) < 2:
        return row
    tokens = [token for run in row for token in _tokens(run)]
    words = list(_spread_words(tokens))
    if not words:
        return row
    result: list[Run] = []
    position = 0
    for begin, end in words:
        result += _rest(tokens[position:begin])
        result.append(_joined(tokens[begin:end]))
        position = end
    return [*result, *_rest(tokens[position:])]


def _tokens(run: Run) -> Iterator[_Token]:
    places = groupby(range(len(run.characters)), key=lambda place: run.characters[place].isspace())
    for is_space, group in places:
        if not is_space:
            members = list(group)
            yield _Token(run, members[0], members[-1] + 1)


def _spread_words(tokens: Sequence[_Token]) -> Iterator[tuple[int, int]]:
    """The first token of each word whose letters are set apart, and the one behind its last."""
    begin = 0
    while begin < len(tokens):
        end = begin
        while end < len(tokens) and (_LETTER.fullmatch(tokens[end].text) or (end > begin and tokens[end].text == "・")):
            end += 1
        if end > begin and end < len(tokens) and _LAST_LETTER.fullmatch(tokens[end].text):
            end += 1
        if end - begin > 1 and _is_word(tokens, begin, end):
            yield begin, end
        begin = max(end, begin + 1)


def _is_word(tokens: Sequence[_Token], begin: int, end: int) -> bool:
    letters = tokens[begin:end]
    size = letters[0].run.size
    gaps = [right.left - left.right for left, right in pairwise(letters)]
    if min(gaps) < 0 or max(gaps) - min(gaps) > _UNEVEN * size:
        return False
    beside = [*tokens[max(begin - 1, 0) : begin + 1], *tokens[end - 1 : end + 1]]
    if any(0 < right.left - left.right < IDEOGRAPH_GAP * size for left, right in pairwise(beside)):
        return False  # letters of a word that other spaces part
    is_alone = len(letters) == len(tokens)
    if not (is_alone or max(gaps) <= _GAP * size or letters[-1].right - letters[0].left <= _WIDTH * size):
        return False
    return SPREAD_WORD.fullmatch("".join(letter.text[0] for letter in letters)) is not None


def _joined(letters: Sequence[_Token]) -> Run:
    runs = [letter.run for letter in letters]
    characters = [sign for letter in letters for sign in letter.run.characters[letter.begin : letter.end]]
    starts = [start for letter in letters for start in letter.run.starts[letter.begin : letter.end]]
    top, bottom = min(run.top for run in runs), max(run.bottom for run in runs)
    first = runs[0]
    return Run(characters, starts, letters[0].left, top, letters[-1].right, bottom, first.size, first.is_bold)


def _rest(tokens: Sequence[_Token]) -> Iterator[Run]:
    """Runs of the tokens, those of one run together."""
    for _, group in groupby(tokens, key=lambda token: id(token.run)):
        members = list(group)
        run, begin, end = members[0].run, members[0].begin, members[-1].end
        box = members[0].left, run.top, members[-1].right, run.bottom
        yield Run(run.characters[begin:end], run.starts[begin:end], *box, run.size, run.is_bold)
