"""Text of others for people's eyes: file names, passages, answers of models and messages hold no character that steers
a terminal, hides, reorders text, or makes one line look like two.

What stays out: markup in answers (`rag_assets.query.ask.markup`), and where text is printed (`rag_assets.cli.console`).
"""

import base64
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from html import escape

MESSAGE_CHARS = 1000  # of a message to people, in which the text of a query or a document may stand

# Controls but tab and line feed, controls of direction, line and paragraph separators, invisible marks, halves of
# surrogate pairs, and tags. Joiners and variation selectors stay, as emoji and Japanese names are written with them.
_UNSAFE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
_FLAG = r"\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"  # of England, Scotland and the like
_IN_TEXT = re.compile(rf"{_FLAG}|[{_UNSAFE}]")
_IN_LINE = re.compile(rf"{_FLAG}|[{_UNSAFE}\t\n]")
_MARKUP = re.compile(r"[\\`*_{}\[\]()<>#|!~]")  # of Markdown
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}
_TOTAL = re.compile(
    r"\W*(?:(?:総|小|中|累|合|総合|支出合|収入合)計(?:金?額|値|件数)?|計|平均|(?:sub|grand)?total)\W*(?:税[込抜])?\W*",
    re.IGNORECASE,
)

_ANNOUNCES = re.compile(
    r"(?:以下|次|下記|(?:次|下)の表|下表)(?:の(?:通り|とおり)|に(?:示す|記載))[^。]{0,8}。?$|[:：]$|(?:follows|following|below)\s*[:.]$"
    r"|(?:以下|次|下記)の?(?:\d+|[一二三四五六七八九十])つ[^。]*。?$",
    re.IGNORECASE,
)
_ASKS = re.compile(r"(?:[?？]|か。|(?:です|ます|でしょう|ません|でした|ました)か|のか|教えて(?:ください|下さい)。?)$")
_POINTS = re.compile(
    r"(?:以下の|下記の?|(?<![週日月年隔逐漸順])次の)(?:\w|\s\d)|(?:以下|下記|次)に(?:掲げ|挙げ|定め|規定|示|よ)"
    r"|\b(?:the following|these) \w|\b(?:listed|named|shown|set out|given) below\b",
    re.IGNORECASE,
)


def printable(text: str) -> str:
    """Text of several lines in which what is not to be printed stands as escapes of Python."""
    return _IN_TEXT.sub(_escaped, text.replace("\r\n", "\n"))


def printable_line(text: str) -> str:
    """The same in one line: tabs and line feeds are shown as escapes, too."""
    return _IN_LINE.sub(_escaped, text)


def without_controls(text: str) -> str:
    """Text of several lines without what is not to be printed."""
    return _IN_TEXT.sub(lambda match: match[0] if len(match[0]) > 1 else "", text)


def squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


def one_line(text: object, most_chars: int | None = None) -> str:
    """A text with each run of white space as one blank; a longer one is cut and ends in an ellipsis."""
    line = " ".join(str(text).split())
    return line if most_chars is None or len(line) <= most_chars else f"{line[: most_chars - 1]}…"


def announces(sentence: str, *, surely: bool = False) -> bool:
    """Whether a sentence points to what follows (`次に掲げる者`); surely where that is all it does (`以下の通り。`)."""
    return bool(_ANNOUNCES.search(sentence) or (not surely and _POINTS.search(sentence)))


def asks(sentence: str) -> bool:
    """Whether a sentence, or the last one of a text, is a question, or asks to be told something."""
    return _ASKS.search(sentence) is not None


def is_total(cell: str) -> bool:
    """Whether a cell names a total or a mean of other rows, as `合 計（税込）`, and is no row of its own."""
    return _TOTAL.fullmatch("".join(unicodedata.normalize("NFKC", cell).split())) is not None


def markdown_table(
    columns: Sequence[str], rows: Iterable[Iterable[object]], figures: Collection[str] = (), most_chars: int = 200
) -> str:
    """A table in Markdown, in whose cells nothing is markup.

    Args:
        columns: Names of the columns.
        rows: Cells of each row; None is empty.
        figures: Columns of figures, set to the right.
        most_chars: Longest text of a cell; a longer one is cut.
    """
    lines = [[_markdown_cell(column, most_chars) for column in columns]]
    lines.append(["---:" if column in figures else "---" for column in columns])
    lines += [[_markdown_cell(cell, most_chars) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(value: object, most_chars: int) -> str:
    return _MARKUP.sub(r"\\\g<0>", one_line("" if value is None else value, most_chars))


def svg_text(text: str) -> str:
    """A text within an SVG picture: what does not print is a blank."""
    return escape("".join(character if character.isprintable() else " " for character in text))


def markdown_picture(name: str, svg: str) -> str:
    """An SVG picture in Markdown, with the picture as a data URI."""
    return f"![{name}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def counted(number: int, noun: str) -> str:
    """A number of things, as in `1 question` or `1,200 questions`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def message_of(text: object, most_chars: int = MESSAGE_CHARS) -> str:
    """A message, as of an error, in one line, cut where it is long."""
    return one_line(printable_line(one_line(text)), most_chars)


def json_text(value: object, *, indent: int | None = None) -> str:
    """A value as JSON that is safe to print: the same characters are escapes of JSON, so that nothing is lost."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _IN_TEXT.sub(lambda match: match[0] if len(match[0]) > 1 else json.dumps(match[0])[1:-1], text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if len(character) > 1:  # a flag
        return character
    return _SHORT.get(character) or character.encode("unicode_escape").decode()
