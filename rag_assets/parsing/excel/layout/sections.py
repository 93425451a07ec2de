"""What stands above what on a sheet: titles of tables and notes on them, reading order, headings above each block."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.excel.cells import block_area
from rag_assets.parsing.names import has_digit
from rag_assets.text.cells import Area, cover
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import FULL_WIDTH_LETTERS

_NUMBER = re.compile(r"(\d{1,3}(?:[.．]\d{1,3})*)[.．]?")
_SUBNUMBER = re.compile(r"[-.]\d")
_CONTENTS = {"目次", "目 次", "目　次", "contents", "table of contents"}

# Titles of tables and notes on them.
CAPTION_CHARS = 40
CAPTION_ROWS = 3
_TITLE_LINES = 3
_OUTDENTED = "outdented"  # headings that nothing but their place tells
_INDENT_COLUMNS = 3
_INDENTED = {BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.TABLE, BlockKind.DIAGRAM}
_WORDS = re.compile(r"[^\W_](?:.*[^\W_)）」】])?")  # no lines of a program
_STATEMENT = re.compile(r"(?P<name>[^:：]{1,30}?)\s*[:：]\s*(?=\S)")
_TITLE_NAME = re.compile(
    r"(?:補足|付録|付図|別紙|別表|参考|資料|例|表|図|案|ケース|パターン|手順|ステップ|その)"
    rf"[\s\d.①-⑳A-Za-z{FULL_WIDTH_LETTERS}一二三四五六七八九十-]{{0,5}}"
    r"|\D+[\d①-⑳]|(?:appendix|table|figure|fig\.?|case|step|example|pattern|part)\s*[\w.-]{0,5}",
    re.IGNORECASE,
)
_NOTE_CHARS = 40
_MAXIMUM_CHARS = 4 * _NOTE_CHARS  # of a note before its white space and signs of half a width are joined
_GAP = re.compile(r"\s+|(?=[（(［\[〔])")
_ASIDE = re.compile(
    r"[(\[〔].*[)\]〕]|[※*注].*|単位\s*[:=(\s].*|units?\s*[:=(].*"
    r"|[^\s\d]*\d[\d\s年度月日時分秒頃末./:,-]*\S{0,12}?\s?(?:現在|時点|更新|作成|改訂)"
    r"|\D{0,2}\d{1,4}[年./-]\s*\d{1,2}[月./-]\s*\d{1,4}日?|as of\s.+|in (?:thousands|millions|billions)\b.*"
    r"|(?P<name>[^:()\s]{1,15})\s*:\s*\S.*",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"(?:[\W\d_]|(?:明治|大正|昭和|平成|令和|第|全|約|対象|期間)|年度?|月度?|日|時|分|[四上下通]?半?期|末|版|件|計|fy|[qhrs]|ver|rev)+",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"第?\d|[(（]\s?\d")
_AMOUNT = (
    r"[十百千万億兆]{0,3}(?:円|ドル|ユーロ|人|名|件|台|個|社|店|回|本|枚|部|戸|世帯|トン|時間|点|ポイント)"
    r"|%|kg|t|km|ha|m2|m²"
)
_UNIT = re.compile(
    r"[(\[〔【]?\s*(?:(?:金額)?単位|units?)(?:\s*[:=は(]|\s+).{1,30}|[(\[〔【]in (?:thousands|millions|billions)\b.*"
    r"|in (?:thousands|millions|billions)\b.*"
    rf"|[(\[〔【]\s*(?:{_AMOUNT})(?:\s*[,、・/]\s*(?:{_AMOUNT}))*\s*[)\]〕】]",
    re.IGNORECASE,
)
_OVERHANG_COLUMNS = 2  # right of a table, that a note on its unit may stand
_LOOKED_AT_BLOCKS = 300  # beside a table, before its title


class _Heading(NamedTuple):
    """An open heading: its kind, its depth within the kind, its first column and its text."""

    kind: str
    depth: int
    left: int
    text: str


def arrange(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Put blocks into reading order and give each the headings above it, outermost first, then notes of its own.

    A heading does not stand above blocks that lie wholly to its left. One that nothing but its place tells, left of
    what it names, stands above blocks that begin right of it alone.
    """
    ordered_blocks = _demote_contents(_attach_captions(_in_order(list(blocks))))
    stack: list[_Heading] = []
    arranged_blocks = []
    for index, block in enumerate(ordered_blocks):
        area = block_area(block)
        while stack and stack[-1].kind == _OUTDENTED and stack[-1].left >= area.left:
            stack.pop()
        heading = _heading_at(ordered_blocks, index)
        if heading is not None:
            _close(stack, heading)
        section = tuple(entry.text for entry in stack if entry.left <= area.right)
        kind = block.kind if heading is None else BlockKind.HEADING
        arranged_blocks.append(replace(block, kind=kind, section=(*section, *block.section)))
        if heading is not None:
            stack.append(heading)
    return tuple(_demote_empty(arranged_blocks))


def _heading_at(blocks: Sequence[Block], index: int) -> _Heading | None:
    """The heading that a block is; None where it is none."""
    block, left = blocks[index], block_area(blocks[index]).left
    if block.kind is BlockKind.HEADING:
        kind, depth = heading_level(block.text)
        return _Heading(kind, 0 if _is_outer(blocks, index) else depth, left, block.text)
    return _Heading(_OUTDENTED, left, left, block.text) if _is_outdented(blocks, index) else None


def heading_level(text: str) -> tuple[str, int]:
    """Kind of a heading and its depth within the kind: `2.3.1. x` is (`number`, 3)."""
    match = _NUMBER.match(text)
    if match:
        return "number", match.group(1).replace("．", ".").count(".") + 1
    if text[:1] in "(（":
        return "bracket", 1 + len(_SUBNUMBER.findall(text.partition(")")[0].partition("）")[0]))
    return ("plain" if text[:1].isalnum() else text[:1]), 1


def _is_outdented(blocks: Sequence[Block], index: int) -> bool:
    """Whether a short line of words stands by itself above what begins few columns right of it."""
    block, below = blocks[index], blocks[index + 1 : index + 2]
    if block.kind not in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM} or not below or below[0].kind not in _INDENTED:
        return False
    text = block.text
    if "\n" in text or len(text) > CAPTION_CHARS or not _is_title(text) or not _WORDS.fullmatch(text):
        return False
    if heading_level(text)[0] == "number":  # of a table of contents
        return False
    area, next_area = block_area(block), block_area(below[0])
    is_alone = not index or block_area(blocks[index - 1]).bottom < area.top
    return (
        is_alone
        and 0 < next_area.top - area.bottom < CAPTION_ROWS
        and 0 < next_area.left - area.left <= _INDENT_COLUMNS
    )


def _is_outer(blocks: Sequence[Block], index: int) -> bool:
    """Whether a heading stands right above another of its kind, and this above something else: it holds for all that
    follows, up to the next such one. Several in turn are a list.
    """

    def follows(place: int) -> bool:
        if not 0 < place < len(blocks) or {blocks[place - 1].kind, blocks[place].kind} != {BlockKind.HEADING}:
            return False
        (kind, _), (other, _) = heading_level(blocks[place - 1].text), heading_level(blocks[place].text)
        above, area = block_area(blocks[place - 1]), block_area(blocks[place])
        is_near = 0 < area.top - above.bottom <= CAPTION_ROWS and above.left <= area.left
        return is_near and kind == other not in {"number", "bracket"}

    return follows(index + 1) and not follows(index) and not follows(index + 2)


def _close(stack: list[_Heading], heading: _Heading) -> None:
    """Drop open headings that do not stand above a new one.

    Of the same kind stay those of lesser depth, with what stands above them; where none of the kind is open, those that
    begin at the same column or left of it.
    """
    peers = [index for index, entry in enumerate(stack) if entry.kind == heading.kind]
    above = [index for index in peers if stack[index].depth < heading.depth]
    if above:
        del stack[above[-1] + 1 :]
    elif peers:
        del stack[peers[0] :]
    else:
        while stack and stack[-1].left > heading.left:
            stack.pop()


def _demote_empty(blocks: list[Block]) -> list[Block]:
    """Make paragraphs of headings without a number that stand above nothing."""
    demoted_blocks: list[Block] = []
    open_texts: set[str] = set()
    for block in reversed(blocks):
        empty = block.kind is BlockKind.HEADING and block.text not in open_texts and not _is_numbered(block)
        demoted_blocks.append(replace(block, kind=BlockKind.PARAGRAPH) if empty else block)
        open_texts.update(block.section)
    return demoted_blocks[::-1]


def _in_order(blocks: list[Block]) -> list[Block]:
    """Blocks from top to bottom, then left to right; a diagram follows a heading that stands over its upper third."""
    tops = [block_area(block).top for block in blocks if block.kind is BlockKind.HEADING]

    def position(block: Block) -> tuple[int, int]:
        area = block_area(block)
        if block.kind is BlockKind.DIAGRAM:
            third = area.top + (area.bottom - area.top) // 3
            if rows := [top for top in tops if area.top <= top <= third]:
                return max(rows), area.right + 1
        return area.top, area.left

    return sorted(blocks, key=position)


def _demote_contents(blocks: list[Block]) -> list[Block]:
    """Make list items of numbered headings that only list what follows elsewhere, as in a table of contents."""
    text = [block for block in blocks if block.kind not in {BlockKind.DIAGRAM, BlockKind.NOTE}]
    numbered_blocks = [block for block in text if _is_numbered(block)]
    bare = sum(_is_bare(text, index) for index in range(len(text)))
    is_titled = any(block.text.strip().lower() in _CONTENTS for block in text[:3])
    if not is_titled and (bare < 3 or bare * 2 < len(numbered_blocks)):
        return blocks
    return [replace(block, kind=BlockKind.LIST_ITEM) if _is_numbered(block) else block for block in blocks]


def _is_numbered(block: Block) -> bool:
    return block.kind is BlockKind.HEADING and heading_level(block.text)[0] == "number"


def _is_bare(blocks: list[Block], index: int) -> bool:
    """Whether nothing but headings follows a numbered heading, up to one that is not below it."""
    if not _is_numbered(blocks[index]):
        return False
    depth = heading_level(blocks[index].text)[1]
    for block in blocks[index + 1 :]:
        if block.kind is not BlockKind.HEADING:
            return False
        kind, other_depth = heading_level(block.text)
        if kind == "number" and other_depth <= depth:
            return True
    return True


def _attach_captions(blocks: Sequence[Block]) -> list[Block]:
    """Give tables the titles and notes above them.

    A short line above a table becomes its heading, with the notes that stand beside or below it. A note on units
    without such a line, or below a numbered heading, which stands above more than the table, becomes a caption and the
    innermost section of its table. Of tables side by side each follows its own title.
    """
    owners = _owners(blocks)
    before: dict[int, Block] = {}
    changes: dict[int, Block | None] = {}
    for table, block in enumerate(blocks):
        if block.kind is not BlockKind.TABLE:
            continue
        title, notes = _texts_above(blocks, table, owners)
        if title is not None and _is_title_of(blocks[title], block):
            before[_first_caption(blocks, table)] = _heading([blocks[index] for index in (title, *notes)])
            changes.update(dict.fromkeys((title, *notes)))
        elif units := [index for index in notes if is_unit(blocks[index].text)]:
            changes.update((index, replace(blocks[index], kind=BlockKind.CAPTION)) for index in units)
            changes[table] = replace(
                block, section=(*(one_line(blocks[index].text) for index in units), *block.section)
            )
    result = [(before.get(index), changes.get(index, block)) for index, block in enumerate(blocks)]
    return [block for pair in result for block in pair if block is not None]


def _owners(blocks: Sequence[Block]) -> dict[int, int]:
    """The table that each text stands above, by its index.

    Of several that is the next one below in the columns of the text, or else to the right of it.
    """
    tables = sorted(
        (_with_captions(blocks, index), index) for index, block in enumerate(blocks) if block.kind is BlockKind.TABLE
    )
    tops = [area.top for area, _ in tables]
    owners = {}
    for index, block in enumerate(blocks):
        if block.kind not in {BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
            continue
        area = block_area(block)
        first = bisect_right(tops, area.bottom)
        near = tables[first : min(bisect_right(tops, area.bottom + CAPTION_ROWS), first + _LOOKED_AT_BLOCKS)]
        overlaps = [entry for entry in near if area.shares_columns(entry[0])]
        right = [entry for entry in near if area.right < entry[0].left]
        left = [entry for entry in near if 0 < area.left - entry[0].right <= _OVERHANG_COLUMNS and is_unit(block.text)]
        if candidates := overlaps or right or left:
            owners[index] = min(candidates)[1]
    return owners


def _first_caption(blocks: Sequence[Block], table: int) -> int:
    """The index of the first of the captions right above a table, or its own."""
    first, area = table, block_area(blocks[table])
    while first and blocks[first - 1].kind is BlockKind.CAPTION:
        above = block_area(blocks[first - 1])
        if above.bottom + 1 != area.top or not above.shares_columns(area):
            break
        first, area = first - 1, area._replace(top=above.top)
    return first


def _with_captions(blocks: Sequence[Block], table: int) -> Area:
    """The area of a table and of the captions right above it."""
    return block_area(blocks[table])._replace(top=block_area(blocks[_first_caption(blocks, table)]).top)


def _texts_above(blocks: Sequence[Block], table: int, owners: Mapping[int, int]) -> tuple[int | None, list[int]]:
    """Indexes of the text nearest above a table that is no note, and of the notes between; both only where they are its
    own. What stands beside the table, and texts above that, may stand between.
    """
    area = _with_captions(blocks, table)
    notes: list[int] = []
    first = _first_caption(blocks, table)
    for index in range(first - 1, max(-1, first - 1 - _LOOKED_AT_BLOCKS), -1):
        owner = owners.get(index)
        if owner != table:
            owner_area = block_area(blocks[index if owner is None else owner])
            if area.shares_columns(owner_area) or owner_area.bottom < area.top:
                break
            continue
        if not _is_note(blocks[index]):
            return index, notes[::-1]
        notes.append(index)
    return None, notes[::-1]


def _heading(lines: Sequence[Block]) -> Block:
    """The heading that a title and the notes beside or below it make."""
    title, *notes = lines
    text = " ".join((title.text.replace("\n", " "), *(note.text for note in notes)))
    label = cover(block.cell_range for block in lines if block.cell_range)
    return replace(title, kind=BlockKind.HEADING, text=text, cell_range=label)


def _is_title_of(title: Block, table: Block) -> bool:
    """Whether a text is the title of the table below it, and of nothing else; one of several lines, or with the mark of
    a list, does not begin right of it.
    """
    if title.kind is BlockKind.HEADING:
        return _NUMBERED.match(title.text) is None
    if title.kind is BlockKind.PARAGRAPH and _is_caption(title.text):
        return True
    first, *rest = title.text.split("\n")
    if len(rest) >= _TITLE_LINES or block_area(title).left > block_area(table).left:
        return False
    return _is_caption(first) and all(_is_caption(line) or _is_aside(line) for line in rest)


def is_unit(text: str) -> bool:
    """Whether a line tells the unit of a table and nothing else, as in `（単位：千円）`."""
    plain = _plain(text)
    return len(plain) <= _NOTE_CHARS and "\n" not in plain and _UNIT.fullmatch(plain) is not None


def states_value(text: str) -> bool:
    """Whether a line gives a value to a name, as in `起動時刻：18:00`; not `補足：記述方法` and `ケース1：正常`."""
    match = _STATEMENT.match(text)
    return match is not None and _TITLE_NAME.fullmatch(match["name"]) is None


def _is_aside(text: str) -> bool:
    """Whether a line beside a title tells something about a table: its unit, its date, a note; no name of columns."""
    plain = _plain(text)
    match = _ASIDE.fullmatch(plain) if len(plain) <= _NOTE_CHARS else None
    return match is not None and not (match["name"] and _TITLE_NAME.fullmatch(match["name"]))


def is_title_line(texts: Sequence[str]) -> bool:
    """Whether texts of a line are a title and notes on a table, as in `売上一覧`, `2024年度`, `（単位：千円）`.

    Texts between the first and the last may be of less certain kind, so long as they hold a number.
    """
    title, *between, last = ("", *texts) if len(texts) < 2 else texts
    if len(title) > CAPTION_CHARS or not _is_title(title) or "\n" in title or not _is_aside(last):
        return False
    return all(_is_aside(text) or (len(text) <= _NOTE_CHARS and has_digit(text)) for text in between)


def _is_note(block: Block) -> bool:
    """Whether a block is nothing but notes on a table."""
    if block.kind not in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
        return False
    text = _plain(block.text)
    if len(text) > 2 * _NOTE_CHARS:
        return False
    ends = [(0, 0), *(place.span() for place in _GAP.finditer(text))]
    return any(_is_aside(text[end:]) and (not start or _tells_time(text[:start])) for start, end in ends)


def _plain(text: str) -> str:
    """A text without differences of width and white space around it; as it is where it is too long for a note."""
    text = text.strip()
    return text if len(text) > _MAXIMUM_CHARS else unicodedata.normalize("NFKC", text).strip()


def _tells_time(text: str) -> bool:
    """Whether a text says no more than a time or a number, as in `2024年度 第1四半期`; not `表1 売上`."""
    return has_digit(text) and _TIMES.fullmatch(text) is not None


def _is_caption(text: str) -> bool:
    """Whether a text is a title, alone or with notes on what it names."""
    title, *notes = text.split("\n")
    if notes:
        return is_title_line([title, *notes])
    width = len(title) / (2 if title.isascii() else 1)  # as Japanese characters
    if width <= CAPTION_CHARS and _is_title(title):
        return True
    gaps = _GAP.finditer(title, 0, CAPTION_CHARS + 1)
    return any(is_title_line([title[: place.start()], title[place.end() :]]) for place in gaps)


def _is_title(text: str) -> bool:
    if text.endswith(("。", "、", ".", "．", ":", "：")) or text.startswith(("※", "・", "*", "→", "-", ":", "：")):
        return False
    return not states_value(text) and any(map(str.isalpha, text))
