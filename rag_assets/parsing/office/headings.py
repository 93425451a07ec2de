"""Headings of Word documents that no style tells: numbered lines that are bold or larger than the text.

Headings that the words tell, as those of rules, are found as the text is read.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

from rag_assets.parsing.archive import descend, local_name
from rag_assets.parsing.office.styles import Style, Styles, integer, is_on, value_of

_LINE = re.compile(r"(?P<number>\d{1,2}(?:[.．]\d{1,2}){1,3}|\d{1,2}(?=[.．\s]))[.．]?\s*[^\W\d][^\n\t。]{0,59}")
_TITLE = re.compile(r"[^\n\t。]{1,60}")
_FEWEST = 3
_MOST = 0.8  # of the lines of a list, where these are headings
_LARGER_HALF_POINTS = 3
_SIGNS = {"tab": "\t", "ptab": "\t", "noBreakHyphen": "-"}
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

    @property
    def place(self) -> tuple[str, int]:
        """The list that it stands in, and the level there."""
        return self.style.numbering, self.style.numbering_level


def numbered_headings(body: etree._Element, styles: Styles) -> Mapping[etree._Element, int]:
    """Levels of paragraphs that are headings by their number and look; empty where there are less than three.

    Typed numbers count up from heading to heading. Among headings that have a style, others go on with the numbers of
    these or have numbers of two parts and more. Where Word counts, the lines of a list at one level are headings where
    most look so and stand above something else.
    """
    if not _may_have_headings(body, styles):
        return {}
    paragraphs = [_paragraph(element, styles) for element in body.iterfind("{*}p")]
    is_styled = sum(paragraph.style.level > 0 for paragraph in paragraphs) > 1
    set_off = _set_off(paragraphs)
    lists = _lists_of_headings(paragraphs, set_off, styles)
    levels: dict[etree._Element, int] = {}
    last: tuple[int, ...] = ()
    above, outer, has_numbered_style = 0, 0, False
    for paragraph in paragraphs:
        number, level = paragraph.number, paragraph.style.level
        if level:
            above, outer = level - (len(number) or int(is_styled)), level
            has_numbered_style = has_numbered_style or bool(number)
        elif paragraph.place in lists and _TITLE.fullmatch(paragraph.text):
            levels[paragraph.element] = outer + lists[paragraph.place]
            continue
        elif number and paragraph.element in set_off and not paragraph.style.numbering:
            is_next = _follows(number, last) or (number == (1,) and not is_styled)
            if not is_next or (is_styled and not has_numbered_style and len(number) < 2):
                continue
            outer = levels[paragraph.element] = max(1, above + len(number))
        else:
            continue
        last = number or last
    return levels if len(levels) >= _FEWEST else {}


def _may_have_headings(body: etree._Element, styles: Styles) -> bool:
    """Whether enough lines of the body begin with a digit or stand in lists, told at a glance."""
    begins = sum((text.text or "").lstrip()[:1].isdecimal() for text in body.iter("{*}t"))
    numberings = (styles.of(properties).numbering for properties in body.iterfind("{*}p/{*}pPr"))
    return begins + sum(map(bool, numberings)) >= _FEWEST


def _paragraph(element: etree._Element, styles: Styles) -> _Paragraph:
    style = styles.of(element.find("{*}pPr"))
    texts = [(run, _text(run)) for run in descend(element, "r")]
    text = "".join(text for _, text in texts).strip()
    runs = [run for run, text in texts if text.strip()]
    sizes = [integer(run.find("{*}rPr/{*}sz"), style.size or styles.default_size) for run in runs]
    is_bold = bool(runs) and all(_is_bold(run, style) for run in runs)
    line = _LINE.fullmatch(text)
    number = tuple(map(int, re.split("[.．]", line["number"]))) if line else ()
    return _Paragraph(element, style, text, is_bold, min(sizes, default=0), number)


def _text(run: etree._Element) -> str:
    """Text of a run, that of its fields' codes and of what was deleted left out."""
    parts = ((local_name(part), part.text) for part in run)
    return "".join(text or "" if name == "t" else _SIGNS.get(name, "") for name, text in parts)


def _is_bold(run: etree._Element, style: Style) -> bool:
    is_strong = value_of(run.find("{*}rPr/{*}rStyle")) == "Strong"
    return is_on(run.find("{*}rPr/{*}b"), default=is_strong or style.is_bold)


def _set_off(paragraphs: Sequence[_Paragraph]) -> set[etree._Element]:
    """Paragraphs that are bold or larger than most of the text."""
    letters = Counter[tuple[bool, int]]()
    for paragraph in paragraphs:
        if not paragraph.style.level:
            letters[paragraph.is_bold, paragraph.size] += len(paragraph.text)
    is_bold, size = max(letters, key=lambda look: letters[look], default=(False, 0))
    return {
        paragraph.element
        for paragraph in paragraphs
        if (paragraph.is_bold and not is_bold) or paragraph.size >= size + _LARGER_HALF_POINTS
    }


def _lists_of_headings(
    paragraphs: Sequence[_Paragraph], set_off: set[etree._Element], styles: Styles
) -> dict[tuple[str, int], int]:
    """Levels of lists whose lines are headings, each with how deep it is among those of its list, from 1."""
    members: dict[tuple[str, int], list[bool]] = {}
    places = {paragraph.element: paragraph.place for paragraph in paragraphs}
    filled_elements = {paragraph.element for paragraph in paragraphs if paragraph.text}
    for paragraph in paragraphs:
        if paragraph.text and not paragraph.style.level and styles.is_counted(paragraph.style):
            is_title = paragraph.element in set_off and _TITLE.fullmatch(paragraph.text) is not None
            below = next(
                (node for node in paragraph.element.itersiblings() if node not in places or node in filled_elements),
                None,
            )
            stands_above = below is not None and places.get(below) != paragraph.place
            members.setdefault(paragraph.place, []).append(is_title and stands_above)
    lists = [place for place, lines in members.items() if sum(lines) >= max(_FEWEST, _MOST * len(lines))]
    firsts: dict[str, int] = {}
    for numbering, level in lists:
        firsts[numbering] = min(firsts.get(numbering, level), level)
    return {(numbering, level): level - firsts[numbering] + 1 for numbering, level in lists}


def _follows(number: tuple[int, ...], last: tuple[int, ...]) -> bool:
    """Whether a number counts on from the last one: below it, behind it or one above it."""
    if not last:
        return all(part <= 1 for part in number)
    depth = len(number)
    if depth > len(last):
        return number == (*last, 1)
    is_next = 1 <= number[-1] - last[depth - 1] <= _LARGEST_STEP
    return (number[:-1] == last[: depth - 1] and is_next) or number == (last[0] + 1, 1)
