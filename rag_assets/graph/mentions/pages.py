"""Pages as names are taken from them: their units (sentences, rows, lines), the sentences that these are parts of, the
text in them that relates names, and windows for a language model.

Running text says something of the names in it. What only looks like it names much and relates nothing: entries of a
bibliography, text whose letters a PDF tore apart, courtesies of a conversation, lists of paths. What stays out: the
passages that are searched (`rag_assets.parsing.chunking`).

Windows are the stretches of a page that a model reads, about 600 tokens each with 100 of the one before, cut at the
ends of lines and sentences. Source: Edge et al., "From Local to Global: A Graph RAG Approach to Query-Focused
Summarization" (2024), section 3.1.1. Deviation: a window never crosses a page, so that each name has a page; tokens are
estimated, so that windows do not depend on the tokenizer of a model.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Page
from rag_assets.graph.mentions.spans import Span
from rag_assets.parsing.records import page_text
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.language import detect_language, is_torn, split_sentences
from rag_assets.text.scripts import HIRAGANA, ITEM_LETTERS
from rag_assets.text.tokens import estimate_tokens

PROSE_KINDS = frozenset({BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.NOTE})
_WRAPPED_CHARS = {"ja": 20, "en": 40}  # a shorter line that no sentence ends is a heading or an item
_WRAPPED_LINES = 12  # of one sentence, at most
_ENDS = tuple("。．.！？!?：:；;」』）)】")
_ITEM = re.compile(rf"\s*(?:[・•●○◆■□※*\-–]|[(（]?[\d①-⑳{ITEM_LETTERS}]{{1,3}}[.)）．、 ])")
SHORTEST_SENTENCE = 10  # characters of a sentence
_PARTICLE = re.compile(f"[がはをにでとのもへ](?=[^{HIRAGANA}]|$)|です|ます|する|した")
_CAPITALS_PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")
_ENTRY = re.compile(r"\s*\[\d{1,3}\]\s+\S")
_PUBLISHED = re.compile(r"\bvol\. ?\d|\bno\. ?\d+, |\bpp\. ?\d|\bin Proc(?:\.|eedings)|\barXiv[: ]|\bdoi[: ]|\bISBN\b")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_SPOKEN = re.compile(r"[A-Z][A-Za-z.'’-]+(?: [A-Z][A-Za-z.'’-]*){0,3}(?:, [^:]{2,40})?: ")
_COURTESY = re.compile(
    r"\b(?:thanks(?! to)|thank you|good (?:morning|afternoon|evening)|hello|congrat\w*|your (?:line|next question)"
    r"|next question|go ahead)\b|^(?:hi|welcome)\b",
    re.IGNORECASE,
)
_COURTESY_WORDS = 16
_YES = re.compile(r"^(?:yes|yeah|yep|no|sure|perfect|absolutely|great|okay|right|exactly)\b", re.IGNORECASE)
_YES_WORDS = 5
_PATH = re.compile(r"(?<!\S)[\w.\-~<>{}*]*(?:/[\w.\-+~<>{}*%]+)+/?(?!\S)", re.ASCII)
_LEAST_PATHS = 3
_PATH_SHARE = 0.6  # of the characters


_LEADER = re.compile(r"(?:…|\.{3,}|(?: \.){3,})[\s.…]*\d+\s*$")
_SMALL = re.compile(r"(?<!\S)[(“\"]?[a-z][a-z'’-]*(?=[,.;:?!)”\"]*(?:\s|$))")
_KANA = re.compile(f"[{HIRAGANA}]")
_LEAST_SMALL, _SMALL_SHARE = 2, 0.3  # words in small letters of an English sentence
_JOINT = (
    r"(?:[\s®™)）]|['’]s\b)*(?:[,;/&+・、，；／＆]+(?: ?\b(?:and|or|nor|then|to)\b)?"
    r"|\b(?:and|or|nor|plus|versus|vs\.?|as well as)\b"
    r"|[とや]|および|及び|または|又は|もしくは|若しくは|並びに|ならびに)\s*(?:(?:the|an?|to|both|our|its|their)\s(?:own\s)?)?[\s(（「『“]*"
)
_ASIDE = re.compile(r"\s?[(（][^()（）]*[)）]")
_LIST_GAP = re.compile(rf"{_JOINT}(?:[\w'’&®™.\-]+(?: [\w'’&®™.\-]+){{0,3}}{_JOINT}){{0,3}}")


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest place that names are found in together: a sentence, a row of a table, a line of a diagram."""

    text: str
    start: int  # where it begins in the text of the page
    block_index: int
    line: int  # its line in the block, from 0; of a table, its row

    @property
    def end(self) -> int:
        """Where it ends in the text of the page."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The sentence that a unit is all or a part of: lines of a paragraph may be cut anywhere."""

    text: str
    start: int  # where text of the unit begins that no cut may have shortened
    end: int

    def cuts(self, span: Span) -> bool:
        """Whether a name of the unit stands at a cut, so that it may be part of one."""
        return span.start < self.start or span.end > self.end


@dataclass(frozen=True)
class Prose:
    """A stretch of running text that recognizers read."""

    page_number: int
    language: str
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a page."""

    index: int  # position on the page, from 0
    start: int  # where it begins in the text of the page
    fresh: int  # where what the window before does not hold begins
    end: int
    header: str = ""  # column headers of a table that began before the window; empty where it starts with none
    header_start: int = 0  # where these stand in the text of the page


def content_pages(pages: Sequence[Page]) -> list[Page]:
    """Pages that entities are taken from: all but covers, revision histories and tables of contents."""
    return [page for page in pages if page.role is None]


def page_language(page: Page) -> str:
    """Language that a page is read in: `ja` where it is Japanese, else `en`."""
    return "ja" if detect_language(page_text(page)) == "ja" else "en"


def placed_blocks(page: Page) -> Iterator[tuple[int, int, Block]]:
    """Index, start in the text of the page, and block, of the blocks that have text."""
    start = 0
    for index, block in enumerate(page.blocks):
        if block.text:
            yield index, start, block
            start += len(block.text) + 1


def page_units(page: Page, language: str) -> list[Unit]:
    """Units of a page in reading order; running headers and footers are left out."""
    units: list[Unit] = []
    for index, start, block in placed_blocks(page):
        if block.kind is not BlockKind.HEADER:
            units += _block_units(block, index, start, language)
    return units


def _block_units(block: Block, index: int, start: int, language: str) -> list[Unit]:
    units: list[Unit] = []
    whole = block.kind in {BlockKind.TABLE, BlockKind.DIAGRAM, BlockKind.HEADING}
    for number, line in enumerate(block.text.split("\n")):
        position = 0
        for sentence in [line] if whole else split_sentences(line, language):
            offset = line.find(sentence, position)
            if sentence.strip() and offset >= 0:
                units.append(Unit(sentence, start + offset, index, number))
                position = offset + len(sentence)
        start += len(line) + 1
    return units


def unit_sentences(units: Sequence[Unit], page: Page, language: str) -> list[Sentence]:
    """The sentence of each unit; those whose line ends without an end of a sentence go on in the next line."""
    glue = "" if language == "ja" else " "
    goes_on = [
        page.blocks[unit.block_index].kind in PROSE_KINDS
        and next_unit is not None
        and next_unit.block_index == unit.block_index
        and next_unit.line == unit.line + 1
        and len(unit.text) >= _WRAPPED_CHARS[language]
        and not unit.text.rstrip().endswith(_ENDS)
        and not _ITEM.match(next_unit.text)
        for unit, next_unit in zip_longest(units, units[1:])
    ]
    wrapped_blocks = {unit.block_index for unit, continues in zip(units, goes_on, strict=True) if continues}
    sentences: list[Sentence] = []
    first = 0
    for last, continues in enumerate(goes_on):
        if continues and last + 1 - first < _WRAPPED_LINES:
            continue
        whole = glue.join(unit.text.strip() for unit in units[first : last + 1])
        edge = int(language == "ja")  # English lines are cut between words
        for place in range(first, last + 1):
            text = units[place].text
            cut = (
                place < last
                or continues
                or (units[place].block_index in wrapped_blocks and not text.rstrip().endswith(_ENDS))
            )
            sentences.append(Sentence(whole, edge * (place > first), len(text) - edge * cut))
        first = last + 1
    return sentences


def page_prose(page: Page, language: str) -> list[Prose]:
    """Running text of a page: paragraphs, and cells that hold sentences."""
    unread = {BlockKind.HEADER, BlockKind.DIAGRAM} | ({BlockKind.HEADING} if language == "ja" else set())
    parts: list[Prose] = []
    for _, start, block in placed_blocks(page):
        line_start = start
        for line in block.text.split("\n") if block.kind not in unread else ():
            place = line_start
            for text in line.split(CELL_SIGN) if block.kind is BlockKind.TABLE else [line]:
                if is_prose(text, language, block.kind):
                    parts.append(Prose(page.number, language, place, text))
                place += len(text) + len(CELL_SIGN)
            line_start += len(line) + 1
    return parts


def is_prose(text: str, language: str, kind: BlockKind) -> bool:
    """Whether a line or cell is running text, which recognizers can read."""
    if is_torn(text):
        return False
    if language == "ja":
        return len(text) >= SHORTEST_SENTENCE and len(_PARTICLE.findall(text)) >= 2
    return kind is not BlockKind.TABLE or bool(_CAPITALS_PROSE.search(text))


def is_reference(text: str) -> bool:
    """Whether a sentence is an entry of a bibliography."""
    has_quote = "“" in text or '"' in text
    return bool(_ENTRY.match(text) or (has_quote and _PUBLISHED.search(text) and _YEAR.search(text)))


def relates(text: str) -> bool:
    """Whether names that stand together in a sentence are related by it."""
    return not (is_torn(text) or is_reference(text) or _is_courtesy(text) or _is_path_list(text)) and is_running(text)


def is_running(text: str) -> bool:
    """Whether a text is a sentence, and no title, legend or entry of a contents list, whose words all have capitals."""
    if _LEADER.search(text):
        return False
    small = len(_SMALL.findall(text))
    return bool(_KANA.search(text)) or small >= max(_LEAST_SMALL, _SMALL_SHARE * len(text.split()))


def lists_on(gap: str) -> bool:
    """Whether the text between two names only goes on from one to the next of a list, over other items or none."""
    return _LIST_GAP.fullmatch(_ASIDE.sub("", gap)) is not None


def _is_courtesy(text: str) -> bool:
    """Whether somebody greets or thanks, and says nothing else."""
    speech = _SPOKEN.sub("", text, count=1)
    count = len(speech.split())
    return bool(
        (count <= _COURTESY_WORDS and _COURTESY.search(speech)) or (count <= _YES_WORDS and _YES.search(speech))
    )


def _is_path_list(text: str) -> bool:
    paths = _PATH.findall(text)
    return len(paths) >= _LEAST_PATHS and sum(map(len, paths)) >= _PATH_SHARE * len("".join(text.split()))


def page_windows(page: Page, units: Sequence[Unit], size_tokens: int, overlap_tokens: int) -> list[Window]:
    """Cut a page into windows.

    Tokens are estimated; the overlap holds whole units.

    Returns:
        Windows in reading order, which together hold every unit; none where there is no unit. A unit longer than a
        window is cut.
    """
    pieces = [piece for unit in units for piece in _pieces(unit, size_tokens)]
    tokens = [estimate_tokens(piece.text) + 1 for piece in pieces]
    windows: list[Window] = []
    first, fresh = 0, 0
    while fresh < len(pieces):
        last, room = first, size_tokens
        while last < len(pieces) and (tokens[last] <= room or last == fresh):
            room -= tokens[last]
            last += 1
        header = _header(page, pieces[first])
        start = pieces[first].start
        windows.append(Window(len(windows), start, pieces[fresh].start, pieces[last - 1].end, *header))
        fresh, first, overlap_room = last, last, overlap_tokens
        while fresh < len(pieces) and first > 0 and tokens[first - 1] <= overlap_room:
            if tokens[first - 1] + sum(tokens[first:fresh]) + tokens[fresh] > size_tokens:
                break
            first -= 1
            overlap_room -= tokens[first]
    return windows


def window_text(window: Window, text: str) -> str:
    """What a model reads of a window."""
    body = text[window.start : window.end]
    return f"{window.header}\n{body}" if window.header else body


def window_of(windows: Sequence[Window], position: int) -> int:
    """Index of the first window that holds a position of the page: each position counts in one window only."""
    next_index = bisect_right(windows, position, key=lambda window: window.end)
    return windows[next_index].index if next_index < len(windows) else max(0, len(windows) - 1)


def _header(page: Page, piece: Unit) -> tuple[str, int]:
    """Header lines of the table that a piece is a row of, with where they stand."""
    block = page.blocks[piece.block_index]
    if block.kind is not BlockKind.TABLE or not 0 < block.header_row_count <= piece.line:
        return "", 0
    lines = block.text.split("\n")[: block.header_row_count]
    return "\n".join(lines), next(start for index, start, _ in placed_blocks(page) if index == piece.block_index)


def _pieces(unit: Unit, size_tokens: int) -> list[Unit]:
    if estimate_tokens(unit.text) < size_tokens:
        return [unit]
    chars = max(1, int((size_tokens - 1) / 1.2))
    return [
        Unit(unit.text[start : start + chars], unit.start + start, unit.block_index, unit.line)
        for start in range(0, len(unit.text), chars)
    ]
