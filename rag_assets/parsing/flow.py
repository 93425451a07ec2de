"""What the parsers of running text share: joining of lines, headings above a place, tables, link targets, titles."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from urllib.parse import unquote

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.content import Block, Box, Row
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.names import has_digit, is_period, is_year
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.scripts import CJK, KANA, KANJI, RADICAL_IDEOGRAPHS, RADICALS

_CJK_CHARACTER = re.compile(f"[{CJK}]")
_SPACES = re.compile(r"[ \t\r\f\v\u00a0\u3000]+")
_BREAK = re.compile(r"\s*\n\s*")
_RADICAL = re.compile(f"[{RADICALS}]")
_SPREAD = re.compile(rf"(?<!\S)[{KANJI}{KANA}](?: [{KANJI}{KANA}])+(?=[\s(（:：]|$)")
# A word whose letters may be set apart has an ideograph or a long vowel, and different letters; units of blanks to fill
# in, sexes, choices and days of the week are words of their own.
SPREAD_WORD = re.compile(
    r"(?!(.)\1+$)(?!(?!日時)年?月?日?時?分?秒?$)(?![男女計有無可否]+$)(?![月火水木金土日祝]+$)"
    r"(?![甲乙丙丁]+$)(?![東西南北中]+$)(?![春夏秋冬]+$)(?![大中小上下左右前後]+$)(?![優良可不]+$)(?![正副主従]+$)"
    f"(?![一二三四五六七八九十]+$)(?=.*[{KANJI}ー]).{{2,}}",
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_SOFT_HYPHENS = ("\u00ad", "\u0002", "\ufffe")
_UNTITLED = re.compile(
    r"^(untitled.*|document\d*|文書 ?\d*|新規.*文書\d*|一太郎[ \d/]+文書|無題.*|雛[形型]|ひな[形型]"
    r"|\(?anonymous\)?|title|タイトル|[\W\d_]*"
    r"|(powerpoint|pptxgenjs).?(presentation|プレゼンテーション)?|プレゼンテーション\d*|スライド ?\d*|slide ?\d*"
    r"|(work)?book ?\d*|sheet ?\d*"
    r"|(microsoft )?excel|microsoft (word|excel|powerpoint) -.*"
    r"|.*\.(docx?|pptx?|xlsx?|pdf|dvi|indd|ai|tex|graffle|jtd|qxd|odt|txt|html?))$",
    re.IGNORECASE,
)
_TITLE_CHARS = 200
_LINK_CHARS = 500
LINK_SCHEMES = ("http://", "https://", "mailto:", "ftp://")
# Web pages lead to each other everywhere, and names of sites end in .org.
_LINKED = [
    document_format
    for document_format in DocumentFormat
    if document_format not in {DocumentFormat.HTML, DocumentFormat.ORG}
]
_LINKED_FILE = re.compile(
    rf"\.({'|'.join(extension for document_format in _LINKED for extension in document_format.extensions)})(#.*)?$",
    re.IGNORECASE,
)
ONLY_PICTURES = "nothing but pictures, whose text is not read"  # of a slide or sheet
_PICTURE_FILE = re.compile(r"[^\n]*\.(png|jpe?g|gif|bmp|tiff?|emf|wmf|svg|webp)", re.IGNORECASE)
_MADE_BY_PROGRAM = re.compile(  # a guess at what a picture shows, the name of a drawn sign, an address
    r"(?:自動的に|精度で)生成された説明|AI 生成コンテンツ|description automatically generated|AI-generated content"
    r"|automatically generated description|(?:塗りつぶし|枠線|with solid fill|\boutline)[)）]?$"
    r"|^(?:画面の領域|screen clipping|(?:picture|image|図|画像|写真) ?\d*)$|^(?:https?://|cid:)\S*$",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:|//|#", re.IGNORECASE)
_NOT_A_LETTER = re.compile(r"[\W_]+")
_GRID_CELLS = 5_000_000  # what memory bears, whatever the limit
_SPANNED_COLUMNS = 1000  # as HTML has it
_MOST_HEADER_ROWS = 4  # above figures
_MOST_AXIS_ROWS = 3
_LEAST_COLUMNS = 3
_FIGURE_CHARS = 20
_UNIT_CHARS = 3
_AXIS_UNIT_CHARS = 6  # as of `1年6ヶ月以上`
_FIGURES = 0.6  # share of the cells below the names of columns


def is_cjk(character: str) -> bool:
    """Whether a character is written without spaces around it: kana, ideographs, full-width forms."""
    return bool(_CJK_CHARACTER.match(character))


def composed(text: str) -> str:
    """Text in NFC, with ideographs for the radicals that some fonts and programs give for them (`⽉`, `⻑`)."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _RADICAL.sub(_ideograph, text))


def _ideograph(radical: re.Match[str]) -> str:
    return RADICAL_IDEOGRAPHS.get(radical[0]) or unicodedata.normalize("NFKC", radical[0])


def clean(text: str) -> str:
    """Text as `composed`, without control characters, with lines trimmed and runs of spaces collapsed; line breaks are
    kept.
    """
    text = composed(text)
    if text.isprintable() and "  " not in text:
        return text.strip()
    text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\x0b", "\n"))
    return "\n".join(_SPACES.sub(" ", line).strip() for line in text.split("\n")).strip("\n")


def join_letters(text: str) -> str:
    """A clean text whose words have their letters together, as `住所` for `住 所`: words of three letters and more, and
    of two at the beginning of a line.
    """

    def join(match: re.Match[str]) -> str:
        letters = match[0].replace(" ", "")
        begins = match.start() == 0 or text[match.start() - 1] == "\n"
        return letters if (len(letters) > 2 or begins) and SPREAD_WORD.fullmatch(letters) else match[0]

    return _SPREAD.sub(join, text) if " " in text and not text.isascii() else text


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
    return join_lines(_BREAK.split(_SPACES.sub(" ", _CONTROLS.sub("", composed(text)))))


def sensible_title(title: str | None) -> str | None:
    """A title from a file's metadata, or None where it is empty, a default or the name of a file."""
    title = clean(title or "").replace("\n", " ")
    return title if len(title) <= _TITLE_CHARS and not _UNTITLED.match(title) else None


def link_suffix(text: str, target: str) -> str:
    """What to write behind the text of a link: its target, as in ` <https://example.org>`.

    Returns:
        Nothing where the target is neither a file to read nor an address outside, or where the text is the target.
    """
    target = target.strip()
    readable = unquote(target)
    if _LINKED_FILE.search(target) and not _SCHEME.match(target):
        target = readable  # as people write the names of files
    elif not target.lower().startswith(LINK_SCHEMES) or " " in target:
        return ""
    text_letters = letters(text)
    is_known = bool(text_letters) and (text_letters in letters(target) or text_letters in letters(readable))
    return "" if is_known or len(target) > _LINK_CHARS or not target.isprintable() else f" <{target}>"


def picture_block(
    stated: str, section: tuple[str, ...] = (), *, box: Box | None = None, target: str = ""
) -> Block | None:
    """A caption that says what a picture shows.

    Args:
        stated: Its alternative text; the name of its file, which older programs put there, is none, nor what a program
            guesses.
        section: Headings above it.
        box: Its place on the page.
        target: What it is a link to.

    Returns:
        The caption; None where there is no alternative text.
    """
    text = clean(stated).replace("\n", " ")
    if not text or _PICTURE_FILE.fullmatch(text) or _MADE_BY_PROGRAM.search(text):
        return None
    return Block(BlockKind.CAPTION, f"図: {text}{link_suffix(text, target)}", section, box=box)


def letters(text: str) -> str:
    """Letters and digits of a text alone, for comparing what is displayed."""
    return _NOT_A_LETTER.sub("", unicodedata.normalize("NFKC", text)).casefold()


class Sections:
    """The headings above the current place of a document, outermost first.

    Args:
        above: Headings above the whole of it, which none of its own ends.
    """

    def __init__(self, above: Sequence[str] = ()) -> None:
        self._stack = [(0, text.replace("\n", " ")) for text in above]

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


def around(boxes: Iterable[Box]) -> Box:
    """The smallest box that holds some boxes, of which there is at least one."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def area_of(box: Box) -> float:
    """Area of a box."""
    return (box[2] - box[0]) * (box[3] - box[1])


def table_block(
    rows: Sequence[Row],
    header_row_count: int,
    section: tuple[str, ...] = (),
    *,
    cell_range: str | None = None,
    box: Box | None = None,
) -> Block:
    """A table block with its text: a line for each row, ` | ` between cells."""
    text = "\n".join(CELL_SIGN.join(cell.replace("\n", " ") for cell in row.cells) for row in rows)
    return Block(
        BlockKind.TABLE,
        text,
        section,
        cell_range=cell_range,
        box=box,
        header_row_count=header_row_count,
        rows=tuple(rows),
    )


def row_text(cells: Iterable[str]) -> str:
    """The line of a row in the text of a table, without ends that are empty."""
    return CELL_SIGN.join(cells).replace("\n", " ").rstrip(" |")


def rows_above_figures(rows: Sequence[Sequence[str]]) -> int:
    """Leading rows of a table whose merged cells are filled that name columns of figures: names below names of groups,
    or one row of figures in a unit of its own, as of years of service above days of leave; else 0.

    Names have one corner, which is empty, or else stands beside the name of a group of columns. Rows with names of
    their own follow, most of whose cells are short and hold digits.

    Args:
        rows: Cells of each row; a merged value stands in each of its cells.
    """
    if len(rows) < 2 or min(map(len, rows)) < _LEAST_COLUMNS:
        return 0
    if _is_axis(rows):
        return 1
    corner = rows[0][0].strip()
    count = len(list(takewhile(lambda row: row[0].strip() == corner, rows[: _MOST_HEADER_ROWS + 1])))
    above, below = rows[:count], rows[count:]
    if not 1 < count <= _MOST_HEADER_ROWS or len(below) < 2 or not all(any(row[1:]) for row in above):
        return 0
    has_group = any(left == right != corner and left.strip() for left, right in pairwise(above[0]))
    if corner and not has_group:
        return 0
    names = [[text for text in row[1:] if text.strip()] for row in above]
    if any(not _names_any(text) for row in names for text in row) or not all(row[0].strip() for row in below):
        return 0
    if not corner and any(2 * sum(map(_is_value, row)) > len(row) for row in names):
        return 0
    figures = [text for row in below for text in row[1:] if text.strip()]
    held = sum(has_digit(text) and len(text) <= _FIGURE_CHARS for text in figures)
    return count if held >= _FIGURES * max(1, len(figures)) else 0


def _is_axis(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a small table is of figures behind names; those of its first row differ, and have a unit of their own."""
    names, units = [row[0].strip() for row in rows], [set(map(_unit, row[1:])) for row in rows]
    return (
        len(rows) <= _MOST_AXIS_ROWS
        and all(names)
        and not any(map(has_digit, names))
        and len(set(rows[0][1:])) == len(rows[0]) - 1 >= _LEAST_COLUMNS
        and not any(None in row or row & units[0] for row in units[1:])
        and None not in units[0]
    )


def _unit(text: str) -> str | None:
    """What a text that begins with a digit holds besides digits, as `年ヶ月`; None of any other."""
    plain = letters(text)
    unit = re.sub(r"\d", "", plain)
    return unit if plain[:1].isdecimal() and len(unit) <= _AXIS_UNIT_CHARS else None


def _names_any(text: str) -> bool:
    return bool(letters(text).strip("0123456789")) or is_period(text) or is_year(text)


def _is_value(text: str) -> bool:
    """Whether a text is a number with hardly any letter behind it, as `120千円`, and no period."""
    plain = letters(text)
    is_time = is_period(text) or is_year(text)
    return plain[:1].isdecimal() and not is_time and sum(map(str.isalpha, plain)) <= _UNIT_CHARS


def fill_grid(placed: Sequence[Sequence[tuple[str, int, int]]]) -> list[tuple[str, ...]]:
    """Rows of equal length from cells that span columns and rows; a merged value stands in each cell it spans.

    Args:
        placed: For each row its cells as (text, columns spanned, rows spanned).

    Returns:
        The rows; columns and rows that hold no text at all are left out.

    Raises:
        ParseError: TOO_LARGE where the cells, spans filled in, are more than the limit.
    """
    limit = min(current_limits().cells, _GRID_CELLS)
    grid: list[dict[int, str]] = [{} for _ in placed]
    cell_count = 0
    for row, cells in enumerate(placed):
        column = 0
        for text, column_span, rows in cells:
            while column in grid[row]:
                column += 1
            columns, below = max(1, min(column_span, _SPANNED_COLUMNS)), grid[row : row + rows]
            cell_count += len(below) * columns
            if cell_count > limit or (column + columns) * len(placed) > limit:
                raise ParseError(FailureCause.TOO_LARGE, f"a table of more than {limit} cells, spans filled in")
            for line in below:
                for place in range(column, column + columns):
                    line.setdefault(place, text)
            column += columns
    width = max((column for line in grid for column in line), default=-1) + 1
    filled_columns = [column for column in range(width) if any(line.get(column, "").strip() for line in grid)]
    full = (tuple(line.get(column, "") for column in filled_columns) for line in grid)
    return [cells for cells in full if any(cell.strip() for cell in cells)]
