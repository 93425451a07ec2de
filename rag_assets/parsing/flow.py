"""What the parsers of running text share: joining of lines, the stack of headings, table blocks, sensible titles.

What stays out: reading of any format.
"""

import re
import unicodedata
from collections.abc import Sequence

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.content import Block, Box, Row

CJK = (
    "\u2e80-\u303f\u3041-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
_CJK_CHARACTER = re.compile(f"[{CJK}]")
_SPACES = re.compile(r"[ \t\r\f\v\u00a0\u3000]+")
_BREAK = re.compile(r"\s*\n\s*")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_SOFT_HYPHENS = ("\u00ad", "\u0002", "\ufffe")
_UNTITLED = re.compile(
    r"^(untitled.*|document\d*|文書 ?\d*|新規.*文書\d*|無題.*|\(?anonymous\)?|title|タイトル|[\W\d_]*"
    r"|powerpoint.?(presentation|プレゼンテーション)?|プレゼンテーション\d*|スライド ?\d*|slide ?\d*|book\d*|sheet\d*"
    r"|microsoft (word|excel|powerpoint) -.*"
    r"|.*\.(docx?|pptx?|xlsx?|pdf|dvi|indd|ai|tex|graffle|jtd|qxd|odt|txt|html?))$",
    re.IGNORECASE,
)
_TITLE_CHARS = 200
_GRID_CELLS = 1_000_000


def is_cjk(character: str) -> bool:
    """Whether a character is written without spaces around it: kana, ideographs, full-width forms."""
    return bool(_CJK_CHARACTER.match(character))


def clean(text: str) -> str:
    """Text without control characters, with lines trimmed and runs of spaces collapsed; line breaks are kept."""
    if text.isprintable() and "  " not in text:
        return text.strip()
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\x0b", "\n"))
    return "\n".join(_SPACES.sub(" ", line).strip() for line in text.split("\n")).strip("\n")


def join_lines(lines: Sequence[str]) -> str:
    """One paragraph from its lines.

    Japanese lines are joined without a space, others with one. A hyphen at a line's end is undone where a letter stands
    before it and a small letter begins the next line; a soft hyphen always.
    """
    parts: list[str] = []
    tail = ""  # the last two characters so far
    for line in (line.strip() for line in lines):
        if not line:
            continue
        hyphenated = tail[-1:] == "-" and tail[:-1].isalpha() and line[0].islower() and not is_cjk(tail[0])
        if parts and (tail.endswith(_SOFT_HYPHENS) or hyphenated):
            parts[-1], tail = parts[-1][:-1], tail[:-1]
        elif parts and not is_cjk(tail[-1]) and not is_cjk(line[0]):
            parts.append(" ")
            tail += " "
        parts.append(line)
        tail = (tail + line)[-2:]
    return "".join(parts)


def unwrap(text: str) -> str:
    """Text whose line breaks mean nothing (as in HTML source), as one line."""
    return join_lines(_BREAK.split(_SPACES.sub(" ", _CONTROLS.sub("", text))))


def sensible_title(title: str | None) -> str | None:
    """A title from a file's metadata, or None where it is empty, a default or the name of a file."""
    title = unicodedata.normalize("NFC", clean(title or "").replace("\n", " "))
    return title if len(title) <= _TITLE_CHARS and title and not _UNTITLED.match(title) else None


class Sections:
    """The headings above the current place of a document, outermost first."""

    def __init__(self) -> None:
        self._stack: list[tuple[int, str]] = []

    @property
    def path(self) -> tuple[str, ...]:
        """Headings above the current place."""
        return tuple(text for _, text in self._stack)

    def enter(self, level: int, text: str) -> tuple[str, ...]:
        """Begin a section.

        Args:
            level: Depth of the heading, 1 the outermost.
            text: The heading.

        Returns:
            The headings above this heading.
        """
        while self._stack and self._stack[-1][0] >= level:
            self._stack.pop()
        above = self.path
        self._stack.append((level, text.replace("\n", " ")))
        return above


def table_block(
    rows: Sequence[Row],
    header_row_count: int,
    section: tuple[str, ...] = (),
    *,
    cell_range: str | None = None,
    box: Box | None = None,
) -> Block:
    """A table block with its text: a line for each row, ` | ` between cells."""
    text = "\n".join(" | ".join(cell.replace("\n", " ") for cell in row.cells) for row in rows)
    return Block(
        BlockKind.TABLE,
        text,
        section,
        cell_range=cell_range,
        box=box,
        header_row_count=header_row_count,
        rows=tuple(rows),
    )


def fill_grid(placed: Sequence[Sequence[tuple[str, int, int]]]) -> list[tuple[str, ...]]:
    """Rows of equal length from cells that span columns and rows; a merged value stands in each cell it spans.

    Args:
        placed: For each row its cells as (text, columns spanned, rows spanned).

    Returns:
        The rows; columns and rows that hold no text at all are left out.

    Raises:
        ParseError: TOO_LARGE where the cells, spans filled in, are more than a million.
    """
    grid: dict[tuple[int, int], str] = {}
    filled = 0
    for row, cells in enumerate(placed):
        column = 0
        for text, columns, rows in cells:
            while (row, column) in grid:
                column += 1
            filled += min(rows, len(placed) - row) * min(columns, 1000)
            if filled > _GRID_CELLS or (column + columns) * len(placed) > _GRID_CELLS:
                raise ParseError(FailureCause.TOO_LARGE, f"a table of more than {_GRID_CELLS} cells, spans filled in")
            for down in range(min(rows, len(placed) - row)):
                for right in range(min(columns, 1000)):
                    grid.setdefault((row + down, column + right), text)
            column += max(1, min(columns, 1000))
    width = max((column for _, column in grid), default=-1) + 1
    full = [tuple(grid.get((row, column), "") for column in range(width)) for row in range(len(placed))]
    kept = [column for column in range(width) if any(row[column].strip() for row in full)]
    return [tuple(row[column] for column in kept) for row in full if any(cell.strip() for cell in row)]
