"""Headings of Word documents that no style tells: numbered lines that are bold or larger than the text.

Headings that the words tell, as those of rules, are found as the text is read.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from rag_assets.parsing.archive import local_name
from rag_assets.parsing.office.styles import Style, Styles, integer, is_on, value_of

_LINE = re.compile(r"(?P<number>\d{1,2}(?:[.．]\d{1,2}){1,3}|\d{1,2}(?=[.．\s]))[.．]?\s*[^\W\d][^\n\t。]{0,59}")
_FEWEST = 3
_LARGER_HALF_POINTS = 3
_LARGEST_STEP = 2  # from one heading to the next, as nothing may tell one between them


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """A paragraph of the body.

    Attributes:
        size: Of its smallest letters, in half points.
        number: Parts of the number that it begins with.
    """

    element: etree._Element
    style: Style
    text: str
    is_bold: bool
    size: int
    number: tuple[int, ...]


def numbered_headings(body: etree._Element, styles: Styles) -> Mapping[etree._Element, int]:
    """Levels of paragraphs that are headings by their number and look; empty where there are less than three.

    The numbers count up from heading to heading. Among headings that have a style, others go on with the numbers of
    these or have numbers of two parts and more.
    """
    paragraphs = list(_paragraphs(body, styles))
    is_styled = sum(paragraph.style.level > 0 for paragraph in paragraphs) > 1
    levels: dict[etree._Element, int] = {}
    last: tuple[int, ...] = ()
    above, has_numbered_style = 0, False
    for paragraph in _lines(paragraphs):
        number, level = paragraph.number, paragraph.style.level
        if level:
            above = level - (len(number) or int(is_styled))
            has_numbered_style = has_numbered_style or bool(number)
        elif not (_follows(number, last) or (number == (1,) and not is_styled)) or (
            is_styled and not has_numbered_style and len(number) < 2
        ):
            continue
        else:
            levels[paragraph.element] = max(1, above + len(number))
        last = number or last
    return levels if len(levels) >= _FEWEST else {}


def _paragraphs(body: etree._Element, styles: Styles) -> Iterator[_Paragraph]:
    for element in body.iterfind("{*}p"):
        style = styles.of(element.find("{*}pPr"))
        texts = [(run, _text(run)) for run in element.iterfind("{*}r")]
        text = "".join(text for _, text in texts).strip()
        runs = [run for run, text in texts if text.strip()]
        sizes = [integer(run.find("{*}rPr/{*}sz"), style.size or styles.default_size) for run in runs]
        is_bold = bool(runs) and all(_is_bold(run, style) for run in runs)
        line = _LINE.fullmatch(text)
        number = tuple(map(int, re.split("[.．]", line["number"]))) if line else ()
        yield _Paragraph(element, style, text, is_bold, min(sizes, default=0), number)


def _text(run: etree._Element) -> str:
    return "".join("\t" if local_name(part) == "tab" else part.text or "" for part in run.iterfind("{*}*"))


def _is_bold(run: etree._Element, style: Style) -> bool:
    is_strong = value_of(run.find("{*}rPr/{*}rStyle")) == "Strong"
    return is_on(run.find("{*}rPr/{*}b"), default=is_strong or style.is_bold)


def _lines(paragraphs: list[_Paragraph]) -> Iterator[_Paragraph]:
    """Headings by style, and numbered lines that are set off from the text."""
    letters = Counter[tuple[bool, int]]()
    for paragraph in paragraphs:
        if not paragraph.style.level:
            letters[paragraph.is_bold, paragraph.size] += len(paragraph.text)
    is_bold, size = max(letters, key=lambda look: letters[look], default=(False, 0))
    for paragraph in paragraphs:
        is_set_off = (paragraph.is_bold and not is_bold) or paragraph.size >= size + _LARGER_HALF_POINTS
        if paragraph.style.level or (paragraph.number and not paragraph.style.numbering and is_set_off):
            yield paragraph


def _follows(number: tuple[int, ...], last: tuple[int, ...]) -> bool:
    """Whether a number counts on from the last one: below it, behind it or one above it."""
    if not last:
        return all(part <= 1 for part in number)
    depth = len(number)
    if depth > len(last):
        return number == (*last, 1)
    is_next = 1 <= number[-1] - last[depth - 1] <= _LARGEST_STEP
    return (number[:-1] == last[: depth - 1] and is_next) or number == (last[0] + 1, 1)
