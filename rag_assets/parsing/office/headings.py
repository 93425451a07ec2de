"""Headings of Word documents that no style tells: lines that are bold, larger than the text, numbered or marked.

Headings that the words tell, as those of rules, are found as the text is read.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

from rag_assets.parsing.archive import descend, local_name
from rag_assets.parsing.names import Kind, kind_of
from rag_assets.parsing.office.styles import Style, Styles, integer, is_run_bold, value_of

_LINE = re.compile(r"(?P<number>\d{1,2}(?:[.．]\d{1,2}){1,3}|\d{1,2}(?=[.．\s]))[.．]?\s*[^\W\d][^\n\t。]{0,59}")
_TITLE = re.compile(r"[^\n\t。]{1,60}(?:\n[^\n\t。]{1,60})?")
_NO_TITLE = re.compile(
    r"[※*＊→⇒↑↓・]|[図表写]真?\s?\d|(?:fig|table|ver)\S*\s?\d|.*(?:[：:、，,;]|\d年\s?\d{1,2}月(?:\s?\d{1,2}日)?)$",
    re.IGNORECASE,
)
_MARK = re.compile(r"[■◆▼](?=[^■◆▼])|【(?=[^】]+】$)|[＜<](?=[^＞>]+[＞>]$)")
_VALUES = {Kind.EMPTY, Kind.NUMBER, Kind.DATE, Kind.PERIOD, Kind.MARK, Kind.CODE, Kind.LINK}
_AT_END = {"right", "end"}
_FEWEST = 3
_MOST = 0.8  # of the lines of a list or of a look, where these are headings
_LARGER_HALF_POINTS = 3
_SIGNS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_TABLES = {"tbl", "sdt"}
_LARGEST_STEP = 2  # from one heading to the next, as nothing may tell one between them


@dataclass(frozen=True, slots=True)
class _Look:
    """What sets a paragraph off from the text."""

    size: int  # of its letters, in half points; 0 where neither size nor bold type sets it off
    is_bold: bool
    mark: str  # sign that it begins with; empty for none
    count: int  # parts of the number that it begins with, where only that sets it off; else 0


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """A paragraph of the body."""

    element: etree._Element
    style: Style
    text: str
    is_bold: bool
    size: int  # of its smallest letters, in half points
    number: tuple[int, ...]  # parts of the number that it begins with

    @property
    def is_title(self) -> bool:
        """Whether it could be a heading: one short line that is no sentence, value, caption or announcement."""
        if not _TITLE.fullmatch(self.text) or _NO_TITLE.match(self.text) or kind_of(self.text) in _VALUES:
            return False
        return value_of(self.element.find("{*}pPr/{*}jc")) not in _AT_END

    @property
    def place(self) -> tuple[str, int]:
        """The list that it stands in, and the level there."""
        return self.style.numbering, self.style.numbering_level


def untold_headings(body: etree._Element, styles: Styles) -> Mapping[etree._Element, int]:
    """Levels of paragraphs that are headings by their numbers and looks, though no style tells it."""
    elements = list(body.iterfind("{*}p"))
    if len(elements) < _FEWEST:
        return {}
    paragraphs = [_paragraph(element, styles) for element in elements]
    common = _common_look(paragraphs)
    set_off = {paragraph.element for paragraph in paragraphs if _is_set_off(paragraph, common)}
    below = _below(body, paragraphs)
    numbered = _numbered_headings(paragraphs, set_off, below, styles)
    return numbered | _other_headings(paragraphs, set_off, below, numbered, common[1])


def _numbered_headings(
    paragraphs: Sequence[_Paragraph],
    set_off: set[etree._Element],
    below: Mapping[etree._Element, etree._Element],
    styles: Styles,
) -> dict[etree._Element, int]:
    """Levels of numbered headings that are bold or larger than the text; empty where there are less than three.

    Typed numbers count up from heading to heading. Among headings that have a style, others go on with the numbers of
    these or have numbers of two parts and more. Where Word counts, the lines of a list at one level are headings where
    most look so and stand above something else.
    """
    is_styled = sum(paragraph.style.level > 0 for paragraph in paragraphs) > 1
    lists = _lists_of_headings(paragraphs, set_off, below, styles)
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


def _other_headings(
    paragraphs: Sequence[_Paragraph],
    set_off: set[etree._Element],
    below: Mapping[etree._Element, etree._Element],
    numbered: Mapping[etree._Element, int],
    common_size: int,
) -> dict[etree._Element, int]:
    """Levels of the other headings, as their looks rank below each other and below the headings around them.

    Numbers alone set lines off where no heading has a style or a number.
    """
    counts = not numbered and not any(paragraph.style.level for paragraph in paragraphs)
    looks = {
        paragraph.element: look
        for paragraph in paragraphs
        if not (numbered and paragraph.number) and (look := _look(paragraph, set_off, counts=counts))
    }
    if not looks:
        return {}
    titles = _titles(paragraphs, looks, below, common_size, len(numbered))
    heads = {paragraph.element for members in titles.values() for paragraph in members}
    ranks = sorted(titles, key=lambda look: (-look.size, not look.is_bold))  # else as they come
    levels: dict[etree._Element, int] = {}
    outer, deeper = 0, ranks
    for paragraph in paragraphs:
        if paragraph.style.level:
            outer, deeper = paragraph.style.level, ranks
        elif paragraph.element in numbered:
            outer, size, is_bold = numbered[paragraph.element], paragraph.size, paragraph.is_bold
            deeper = [look for look in ranks if (look.size, look.is_bold) < (size, is_bold)]
        elif paragraph.element in heads:
            look = looks[paragraph.element]
            levels[paragraph.element] = outer + deeper.index(look) + 1 if look in deeper else outer
    return levels


def _titles(
    paragraphs: Sequence[_Paragraph],
    looks: Mapping[etree._Element, _Look],
    below: Mapping[etree._Element, etree._Element],
    common_size: int,
    other_count: int,
) -> dict[_Look, list[_Paragraph]]:
    """Headings by looks: most lines of such a look stand above something else and are no sentences.

    A look that is used once or twice tells headings where it is larger than the text, above text or at the beginning.
    Where all headings of the document are less than three, only the one at its beginning is one.
    """
    titles: dict[_Look, list[_Paragraph]] = {}
    others = Counter[_Look]()
    last: tuple[int, ...] = ()
    for paragraph in (paragraph for paragraph in paragraphs if paragraph.element in looks):
        look = looks[paragraph.element]
        is_next = not look.count or paragraph.number[-1] == 1 or _follows(paragraph.number, last)
        stands_above = paragraph.element in below and looks.get(below[paragraph.element]) != look
        if not (is_next and stands_above and _TITLE.fullmatch(paragraph.text)):
            others[look] += 1
        elif paragraph.is_title:
            titles.setdefault(look, []).append(paragraph)
        last = paragraph.number if look.count else last
    first = next((paragraph.element for paragraph in paragraphs if paragraph.text), None)

    def tells(look: _Look) -> bool:
        head = titles[look][0].element
        is_alone = len(titles[look]) == 1 and head is not first and below[head] in looks
        is_larger = look.size >= common_size + _LARGER_HALF_POINTS and not is_alone
        is_usual = len(titles[look]) >= _MOST * (len(titles[look]) + others[look])
        return is_usual and (len(titles[look]) >= _FEWEST or is_larger)

    titles = {look: members for look, members in titles.items() if tells(look)}
    if sum(map(len, titles.values())) + other_count >= _FEWEST:
        return titles
    return {look: members for look, members in titles.items() if members[0].element is first}


def _look(paragraph: _Paragraph, set_off: set[etree._Element], *, counts: bool) -> _Look | None:
    """How a paragraph is set off from the text; None where it is not, or is a line of a list or of contents."""
    style, text = paragraph.style, paragraph.text
    if not text or style.level or style.numbering or style.is_contents or style.is_caption or "\t" in text:
        return None
    mark = _MARK.match(text)
    count = len(paragraph.number) if counts else 0
    if paragraph.element in set_off:
        return _Look(paragraph.size, paragraph.is_bold, mark[0] if mark else "", 0)
    return _Look(0, is_bold=False, mark=mark[0] if mark else "", count=count) if mark or count else None


def _paragraph(element: etree._Element, styles: Styles) -> _Paragraph:
    style = styles.of(element.find("{*}pPr"))
    texts = [(run, _text(run)) for run in descend(element, "r")]
    text = "".join(text for _, text in texts).strip()
    runs = [run for run, text in texts if text.strip()]
    sizes = [integer(run.find("{*}rPr/{*}sz"), style.size or styles.default_size) for run in runs]
    is_bold = bool(runs) and all(is_run_bold(run, default=style.is_bold) for run in runs)
    line = _LINE.fullmatch(text)
    number = tuple(map(int, re.split("[.．]", line["number"]))) if line else ()
    return _Paragraph(element, style, text, is_bold, min(sizes, default=0), number)


def _text(run: etree._Element) -> str:
    """Text of a run, that of its fields' codes and of what was deleted left out."""
    parts = ((local_name(part), part.text) for part in run)
    return "".join(text or "" if name == "t" else _SIGNS.get(name, "") for name, text in parts)


def _common_look(paragraphs: Sequence[_Paragraph]) -> tuple[bool, int]:
    """Whether most of the text is bold, and its size."""
    letters = Counter[tuple[bool, int]]()
    for paragraph in paragraphs:
        if not paragraph.style.level:
            letters[paragraph.is_bold, paragraph.size] += len(paragraph.text)
    return max(letters, key=lambda look: letters[look], default=(False, 0))


def _is_set_off(paragraph: _Paragraph, common: tuple[bool, int]) -> bool:
    """Whether a paragraph is bold or larger than most of the text."""
    is_bold, size = common
    return (paragraph.is_bold and not is_bold) or paragraph.size >= size + _LARGER_HALF_POINTS


def _below(body: etree._Element, paragraphs: Sequence[_Paragraph]) -> dict[etree._Element, etree._Element]:
    """For each paragraph the next one that has text or the next table, where there is one."""
    filled_elements = {paragraph.element for paragraph in paragraphs if paragraph.text}
    below: dict[etree._Element, etree._Element] = {}
    after: etree._Element | None = None
    for element in reversed(body):
        if after is not None:
            below[element] = after
        if element in filled_elements or local_name(element) in _TABLES:
            after = element
    return below


def _lists_of_headings(
    paragraphs: Sequence[_Paragraph],
    set_off: set[etree._Element],
    below: Mapping[etree._Element, etree._Element],
    styles: Styles,
) -> dict[tuple[str, int], int]:
    """Levels of lists whose lines are headings, each with how deep it is among those of its list, from 1."""
    members: dict[tuple[str, int], list[bool]] = {}
    places = {paragraph.element: paragraph.place for paragraph in paragraphs}
    for paragraph in paragraphs:
        if paragraph.text and not paragraph.style.level and styles.is_counted(paragraph.style):
            is_title = paragraph.element in set_off and _TITLE.fullmatch(paragraph.text) is not None
            element = paragraph.element
            stands_above = element in below and places.get(below[element]) != paragraph.place
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
