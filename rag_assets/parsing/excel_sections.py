"""Reading order of a sheet's blocks, and the headings above each.

What stays out: making blocks (`excel_sheet`, `excel_drawings`).
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.causes import BlockKind
from rag_assets.parsing.cells import cover
from rag_assets.parsing.content import Block
from rag_assets.parsing.excel_cells import Area, parse_area

_CAPTION_CHARS = 40
_CAPTION_ROWS = 3
_NUMBER = re.compile(r"(\d{1,3}(?:[.．]\d{1,3})*)[.．]?")
_SUBNUMBER = re.compile(r"[-.]\d")
_STATEMENT = re.compile(r"(?P<name>[^:：]{1,30}?)\s*[:：]\s*(?=\S)")
_TITLE_NAME = re.compile(
    r"(?:補足|付録|付図|別紙|別表|参考|資料|例|表|図|案|ケース|パターン|手順|ステップ|その)"
    r"[\s\d.①-⑳A-Za-zＡ-Ｚ一二三四五六七八九十-]{0,5}"
    r"|\D+[\d①-⑳]|(?:appendix|table|figure|fig\.?|case|step|example|pattern|part)\s*[\w.-]{0,5}",
    re.IGNORECASE,
)
_NOTE_CHARS = 40
_GAP = re.compile(r"\s+|(?=[（(［\[〔])")
_ASIDE = re.compile(
    r"[(\[〔].*[)\]〕]|[※*注].*|単位\s*[:=(\s].*|units?\s*[:=(].*|.*\d.*(?:現在|時点|更新|作成|改訂)"
    r"|\D{0,2}\d{1,4}[年./-]\s*\d{1,2}[月./-]\s*\d{1,4}日?|as of\s.+|in (?:thousands|millions|billions)\b.*"
    r"|(?P<name>[^:()\s]{1,15})\s*:\s*\S.*",
    re.IGNORECASE,
)
_CONTENTS = {"目次", "目 次", "目　次", "contents", "table of contents"}


@dataclass(frozen=True, slots=True)
class _Heading:
    """An open heading: its kind, its depth within the kind, its first column and its text."""

    kind: str
    depth: int
    left: int
    text: str


def arrange(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Put blocks into reading order and give each the headings above it, outermost first.

    A heading does not stand above blocks that lie wholly to its left.
    """
    ordered = _demote_contents(_promote_captions(_in_order(list(blocks))))
    stack: list[_Heading] = []
    arranged = []
    for block in ordered:
        area = _area(block)
        heading = _Heading(*heading_level(block.text), area.left, block.text)
        if block.kind is BlockKind.HEADING:
            _close(stack, heading)
        section = tuple(entry.text for entry in stack if entry.left <= area.right)
        arranged.append(replace(block, section=section))
        if block.kind is BlockKind.HEADING:
            stack.append(heading)
    return tuple(_demote_empty(arranged))


def heading_level(text: str) -> tuple[str, int]:
    """Kind of a heading and its depth within the kind: `2.3.1. x` is (`number`, 3)."""
    match = _NUMBER.match(text)
    if match:
        return "number", match.group(1).replace("．", ".").count(".") + 1
    if text[:1] in "(（":
        return "bracket", 1 + len(_SUBNUMBER.findall(text.partition(")")[0].partition("）")[0]))
    return ("plain" if text[:1].isalnum() else text[:1]), 1


def states_value(text: str) -> bool:
    """Whether a line gives a value to a name, as in `起動時刻：18:00`; not `補足：記述方法` and `ケース1：正常`."""
    match = _STATEMENT.match(text)
    return match is not None and _TITLE_NAME.fullmatch(match["name"]) is None


def is_aside(text: str) -> bool:
    """Whether a line beside a title tells something about a table: its unit, its date, a note; no name of columns."""
    plain = unicodedata.normalize("NFKC", text).strip()
    match = _ASIDE.fullmatch(plain) if len(plain) <= _NOTE_CHARS else None
    return match is not None and not (match["name"] and _TITLE_NAME.fullmatch(match["name"]))


def is_title_line(texts: Sequence[str]) -> bool:
    """Whether texts of a line are a title and notes on a table, as in `売上一覧`, `2024年度`, `（単位：千円）`.

    Texts between the first and the last may be of less certain kind, so long as they hold a number.
    """
    title, *between, last = ("", *texts) if len(texts) < 2 else texts
    if not _is_title(title) or "\n" in title or len(title) > _CAPTION_CHARS or not is_aside(last):
        return False
    return all(is_aside(text) or (len(text) <= _NOTE_CHARS and _has_digit(text)) for text in between)


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
    kept: list[Block] = []
    open_texts: set[str] = set()
    for block in reversed(blocks):
        empty = block.kind is BlockKind.HEADING and block.text not in open_texts and not _is_numbered(block)
        kept.append(replace(block, kind=BlockKind.PARAGRAPH) if empty else block)
        open_texts.update(block.section)
    return kept[::-1]


def _area(block: Block) -> Area:
    return parse_area(block.cell_range or "") or Area(0, 0, 0, 0)


def _in_order(blocks: list[Block]) -> list[Block]:
    """Blocks from top to bottom, then left to right; a diagram follows a heading that stands over its upper third."""
    headings = sorted(_area(block) for block in blocks if block.kind is BlockKind.HEADING)

    def position(block: Block) -> tuple[int, int]:
        area = _area(block)
        if block.kind is BlockKind.DIAGRAM:
            height = area.bottom - area.top
            rows = [heading.top for heading in headings if area.top <= heading.top <= area.top + height // 3]
            if rows:
                return max(rows), area.right + 1
        return area.top, area.left

    return sorted(blocks, key=position)


def _promote_captions(blocks: list[Block]) -> list[Block]:
    """Make a heading of a short line directly above a table, with the notes that stand beside or below it."""
    result: list[Block] = []
    for block in blocks:
        if block.kind is BlockKind.TABLE:
            _give_title(result, _area(block))
        result.append(block)
    return result


def _give_title(above: list[Block], table: Area) -> None:
    """Turn the last of the blocks above a table into its heading, where they are a title, or a title and notes."""
    first = len(above)
    while first and _is_near(above[first - 1], table) and _is_note(above[first - 1]):
        first -= 1
    if not first or not _is_near(above[first - 1], table):
        return
    title, notes = above[first - 1], above[first:]
    lines = [*title.text.split("\n"), *(note.text for note in notes)]
    if title.kind is BlockKind.HEADING:
        if not notes:
            return
    elif title.kind is not BlockKind.PARAGRAPH or not _is_caption(title.text):
        return
    label = cover([block.cell_range for block in (title, *notes) if block.cell_range])
    above[first - 1 :] = [replace(title, kind=BlockKind.HEADING, text=" ".join(lines), cell_range=label)]


def _is_note(block: Block) -> bool:
    """Whether a block is nothing but notes on a table."""
    if block.kind not in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}:
        return False
    ends = [(0, 0), *(place.span() for place in _GAP.finditer(block.text))]
    return any(is_aside(block.text[end:]) and (not start or _has_digit(block.text[:start])) for start, end in ends)


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))


def _is_near(block: Block, table: Area) -> bool:
    area = _area(block)
    return 0 < table.top - area.bottom <= _CAPTION_ROWS and area.left <= table.right


def _is_caption(text: str) -> bool:
    """Whether a text is a title, alone or with notes on what it names."""
    title, *notes = text.split("\n")
    if notes:
        return is_title_line([title, *notes])
    if len(title) <= _CAPTION_CHARS and _is_title(title):
        return True
    return any(is_title_line([title[: place.start()], title[place.end() :]]) for place in _GAP.finditer(title))


def _is_title(text: str) -> bool:
    if text.endswith(("。", "、", ".", "．", ":", "：")) or text.startswith(("※", "・", "*", "→", "-", ":", "：")):
        return False
    if states_value(text):
        return False
    return any(sign.isalpha() for sign in text)


def _demote_contents(blocks: list[Block]) -> list[Block]:
    """Make list items of numbered headings that only list what follows elsewhere, as in a table of contents."""
    text = [block for block in blocks if block.kind not in {BlockKind.DIAGRAM, BlockKind.NOTE}]
    numbered = [block for block in text if _is_numbered(block)]
    bare = sum(_is_bare(text, index) for index in range(len(text)))
    titled = any(block.text.strip().lower() in _CONTENTS for block in text[:3])
    if not titled and (bare < 3 or bare * 2 < len(numbered)):
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
