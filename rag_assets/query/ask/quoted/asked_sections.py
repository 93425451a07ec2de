"""In which sections of the documents found an answer is looked for, as far as a question names some.

Where headings of a document have the number that it names (`v2.0`, 「第3章」), nothing below another number of that
kind answers; where one sheet is called as the table that it names (「顧客テーブルの…」), nothing of other sheets. What
is said on how to fill in a form gives way to what has been filled in, unless the question asks for that.

What stays out: what is chosen of the rest (`rag_assets.query.ask.quoted.extracts`).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile

from rag_assets.query.ask.quoted.item_marks import ITEM
from rag_assets.query.ask.quoted.page_sections import (
    SHEET_NUMBER,
    PageBlock,
    PageBlocks,
    is_called_table,
    section_names,
    without_table_words,
)
from rag_assets.query.ask.quoted.statements import Statement
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import squeezed
from rag_assets.text.scripts import KATAKANA

_LEAST_CONTENTS = 4  # lines
_LISTED_NUMBERS = 2  # beside the one that is asked for
_NUMBERED = re.compile(
    r"(?:(?P<label>(?<![A-Za-z])(?:v(?:er(?:sion)?)?|rev(?:ision)?|release|chapter|section|article|appendix|part|step|phase"
    rf"|case|level|plan|model|pattern|scenario|sprint)|(?<![{KATAKANA}])(?:バージョン|リリース|リビジョン|ステップ|フェーズ"
    r"|ケース|レベル|プラン|モデル|パターン|シナリオ|スプリント|パート))[\s.]?|第)"
    r"(?P<number>\d+(?:\.\d+)*)(?P<unit>[章節条項回期版部編])?",
    re.IGNORECASE,
)
_VERSION = re.compile("^(?:v|ver|version|バージョン)$")
_RANGE = re.compile(
    r"\d[章節条項回期版部編]?\s?(?:(?:[〜~～–/／・,、]\s?\D{0,8}?|-)\d|以[降前上下外内]|から|より|まで|未満"
    r"|(?:or|and)\s(?:later|newer|above|higher|earlier|older|below))|\b(?:since|after|before|until|from|between)\b",
    re.IGNORECASE,
)
_ON_FILLING_IN = re.compile(
    r"(?:記[述入載]|入力)(?:の?(?:方法|要領|仕方|ルール|説明)|上の注意|例)|書き方|凡例"
    r"|\b(?:legend|how to (?:fill|write)|instructions? for (?:filling|writing))\b",
    re.IGNORECASE,
)
_FILLING_IN_ASKED = re.compile(
    r"記[述入載]|入[力れ]|書[いかきくけこ]|凡例|(?<![事比条慣判前特])例(?!外)|説明|注意|補足|見方|意味|定義|表[しすわ]|とは|どう|どのよう"
    r"|\b(?:legend|fill|filled|written?|notes?|example|mean|meaning|how)\b",
    re.IGNORECASE,
)


class AskedSections:
    """Which statements of the pages found stand where a question asks for them.

    Args:
        question: The question.
        pages: The names of the pages by document and number.
        blocks_of: What the pages consist of.
    """

    def __init__(self, question: str, pages: Mapping[tuple[str, int], str], blocks_of: PageBlocks) -> None:
        self._asked = numbers_named(question)
        self._is_for_filling_in = _FILLING_IN_ASKED.search(question) is not None
        self._pages = pages
        self._paths_of = cache(lambda document, number: _PagePaths(blocks_of(document, number)))
        headings: dict[str, set[tuple[int, str]]] = {}  # by document, with their level
        for document, number in pages:
            of_page = (pair for block in blocks_of(document, number) for pair in enumerate(block.path))
            headings.setdefault(document, set()).update(of_page)
        self._levels = {  # of the numbers that the question names, by kind
            document: {(kind, level) for level, heading in pairs for kind, _ in numbers_named(heading) & self._asked}
            for document, pairs in headings.items()
        }
        self._numbered = {
            document: {squeezed(heading) for _, heading in headings[document] if numbers_named(heading)}
            for document, of_document in self._levels.items()
            if of_document
        }
        folded_text, spaced_text = fold_name(question), without_table_words(question)
        self._called: dict[str, dict[int, str]] = {}  # by document, the names of the pages called as a table
        for (document, number), name in pages.items():
            plain = without_table_words(SHEET_NUMBER.sub("", name))
            if is_called_table(folded_text, spaced_text, plain):
                self._called.setdefault(document, {})[number] = plain

    def is_elsewhere(self, document: str, number: int, statement: Statement) -> bool:
        """Whether a statement stands under a heading of another number or on another sheet than the question names, or
        is of the contents, in a document that has one so named, and does not tell of the table itself.
        """
        called = self._called.get(document, {})
        if len(called) == 1 and number not in called:
            cells = [value for _, value in statement.cells] or [statement.text]
            return not any(without_table_words(cell) in called.values() for cell in cells)  # as in a list of tables
        if document not in self._numbered:
            return False
        lines = statement.lines or statement.text.splitlines()
        listed = [line for line in lines if squeezed(line) in self._numbered[document]]
        if sum(not numbers_named(line) & self._asked for line in listed) >= _LISTED_NUMBERS:
            return True
        own_kinds = {kind for kind, _ in numbers_named(statement.text) & self._asked}
        path = self._paths_of(document, number).path_of(lines)
        above = [
            {pair for pair in numbers_named(path[level]) if pair[0] == kind}
            for kind, level in self._levels[document]
            if level < len(path) and kind not in own_kinds
        ]
        return any(pairs and not pairs & self._asked for pairs in above)

    def is_on_filling_in(self, document: str, number: int, statement: Statement) -> bool:
        """Whether a statement stands where a form is explained, and the question asks for nothing of that kind."""
        if self._is_for_filling_in:
            return False
        lines = statement.lines or statement.text.splitlines()
        path = self._paths_of(document, number).path_of(lines)
        return any(map(_ON_FILLING_IN.search, (self._pages[document, number], *path)))

    def is_of_contents(self, document: str, number: int, statement: Statement) -> bool:
        """Whether a statement is a list most lines of which name sections of the page, with or without their codes."""
        lines = statement.lines[1:]
        if len(lines) < _LEAST_CONTENTS:
            return False
        names = self._paths_of(document, number).names
        return sum(squeezed(ITEM.sub("", line)) in names for line in lines) > len(lines) / 2


def numbers_named(text: str) -> frozenset[tuple[str, str]]:
    """Numbers with what they number, as `v2.0` and 「第3章」, versions as `v`; none of a text that names a range."""
    plain = unicodedata.normalize("NFKC", text)
    if _RANGE.search(plain):
        return frozenset()
    return frozenset(
        (_VERSION.sub("v", (match["label"] or "").lower()) or match["unit"], match["number"].removesuffix(".0"))
        for match in _NUMBERED.finditer(plain)
        if match["label"] or match["unit"]
    )


class _PagePaths:
    """Which headings the lines of a page stand under, and the names of its sections."""

    def __init__(self, blocks: Sequence[PageBlock]) -> None:
        self._lines = [(squeezed(line), block.path) for block in blocks for line in block.lines]
        self.names = section_names(blocks)
        self._places: dict[str, list[int]] = {}
        for place, (line, _) in enumerate(self._lines):
            self._places.setdefault(line, []).append(place)

    def path_of(self, said_lines: Sequence[str]) -> tuple[str, ...]:
        """The headings above lines, where most of them stand one after the other, or above the line that the first is a
        part of; empty where none has it.
        """
        lines = list(filter(None, map(squeezed, said_lines)))
        places = self._places.get(lines[0], []) if lines else []
        if lines and not places:
            places = [place for place, (line, _) in enumerate(self._lines) if lines[0] in line]
        best = max(places, key=lambda place: (self._common_count(lines, place), -place), default=None)
        return () if best is None else self._lines[best][1]

    def _common_count(self, lines: Sequence[str], place: int) -> int:
        pairs = zip(lines, self._lines[place : place + len(lines)], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1][0], pairs))
