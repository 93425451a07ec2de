"""Shapes of a slide with their places: which one is its title, and the order in which they are read.

What they say stands in `slides`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from lxml import etree

from rag_assets.contracts.content import Box
from rag_assets.parsing.archive import local_name
from rag_assets.parsing.drawings.drawings import property_of
from rag_assets.parsing.office.styles import integer

TITLE_PLACEHOLDERS = {"title", "ctrTitle"}
RUNNING_PLACEHOLDERS = {"dt", "ftr", "sldNum", "hdr"}
_SAME_LINE_POINTS = 12.0
_SAME_EDGE_POINTS = 6.0
_WIDTHS_APART = 0.2  # of a label, by which a text beneath it may be wider or narrower
_HELD = 0.75  # of a shape, from which it stands within another one
_MOST_SHAPES = 1_000  # of a slide that are compared with each other
_PLAIN_SIZE = 1_800  # of text whose size nothing states, in hundredths of a point
_MOST_LEVEL = 8  # of a paragraph
_BULLET_GAP_POINTS = 24.0
_BULLETS = set("●○•・･■□◆◇▪▫▶►▷➤➢✓✔☑☐✅★☆※!！⚠")
_LANE_WIDTH = 0.5  # of the widest shape of a slide, at least
_BOXES = {"sp", "graphicFrame"}
_GRAPHICS = {"pic", "graphicFrame"}
_TITLE_LINES = 2
_TITLE_CHARS = 80
_HEAD_SHARE = 0.2  # of a slide, in which a line that heads it begins
_LEAST_HEAD_CHARS = 2
_SENTENCE_ENDS = ("。", "、", "！", "？", "!", "?")
_LABEL_CHARS = 30  # at most, of a line above a title or above a text
_FIGURE = re.compile(r"\W*約?(?!(?:19|20)\d\d年)(?:\d+(?:[.,]\d+)*[^\W\d]{0,2}|(?:\d[.,]?){3,}\s?[^\W\d]{0,3})\W*")


@dataclass(frozen=True, slots=True)
class SlideShape:
    """A shape with its place on the slide."""

    element: etree._Element
    # type of the placeholder that it fills, `body` where the type is not stated, None for other shapes
    placeholder: str | None
    box: Box | None  # place on the slide in points; None where neither slide nor layout tells
    # signs in boxes of their own that begin its paragraphs, from the first; empty for most shapes
    bullets: tuple[str, ...] = ()

    @property
    def place(self) -> Box:
        """Its box, for shapes that are known to have one; a point at the corner of the slide for others."""
        return self.box or (0.0, 0.0, 0.0, 0.0)

    @property
    def width(self) -> float:
        """Width of its place in points."""
        return self.place[2] - self.place[0]


@dataclass(frozen=True, slots=True)
class _Lettering:
    """The text of a shape."""

    shape: SlideShape
    lines: tuple[str, ...]
    size: int  # largest size that is used in it, in hundredths of a point; 0 where one of them is the layout's

    @property
    def characters(self) -> int:
        return sum(map(len, self.lines))

    @property
    def is_bullet(self) -> bool:
        """Whether it is one sign that begins an item of a list."""
        return len(self.lines) == 1 and self.lines[0].strip() in _BULLETS

    @property
    def is_number(self) -> bool:
        """Whether it is a number that a chapter could have."""
        return len(self.lines) == 1 and len(number := self.lines[0].strip(" .．")) <= 2 and number.isdecimal()

    @property
    def is_label(self) -> bool:
        """Whether it is one short line."""
        return len(self.lines) == 1 and self.characters <= _LABEL_CHARS

    @property
    def is_body(self) -> bool:
        """Whether it says something of a title above it: several lines, a sentence, or text of a placeholder."""
        return not self.is_label or self.lines[0].endswith(_SENTENCE_ENDS) or self.shape.placeholder is not None


def with_title(shapes: Sequence[SlideShape], height: float) -> list[SlideShape]:
    """The shapes of a slide, the text that is set as its title among the placeholders of titles.

    It is the topmost text but for a label above it, one or two short lines, and larger than all other text but for the
    number of a chapter to its left; else one short line alone at the head of the slide, no smaller than the text,
    tables and lists below it. A slide whose title has a placeholder has no other one.

    Args:
        shapes: Its shapes.
        height: Height of the slide in points.
    """
    letterings = [_lettering(shape) for shape in shapes if shape.placeholder not in RUNNING_PLACEHOLDERS]
    letterings = [lettering for lettering in letterings if lettering.lines]
    if any(lettering.shape.placeholder in TITLE_PLACEHOLDERS for lettering in letterings):
        return list(shapes)
    words = [lettering for lettering in letterings if not lettering.is_number]
    title = max(words, key=lambda lettering: lettering.size, default=None)
    is_sized = all(lettering.size for lettering in letterings)
    if title is None or not is_sized or not _is_title(title, letterings, shapes):
        title = min((word for word in words if word.shape.box), key=lambda word: word.shape.place[1], default=None)
        if title is None or not _heads(title, letterings, shapes, height):
            return list(shapes)
    return [replace(shape, placeholder="title") if shape is title.shape else shape for shape in shapes]


def _heads(title: _Lettering, letterings: Sequence[_Lettering], shapes: Sequence[SlideShape], height: float) -> bool:
    """Whether the topmost text of a slide is a line at its head, above text that says more than a label.

    Text whose size the layout states counts as large at the head and as plain below. Where connectors join shapes, a
    text box may be one of them.
    """
    line, shape = title.lines[0].strip(), title.shape
    if not title.is_label or len(line) < _LEAST_HEAD_CHARS or line.endswith(_SENTENCE_ENDS):
        return False
    if local_name(shape.element) != "sp" or shape.place[1] > _HEAD_SHARE * height or _FIGURE.fullmatch(line):
        return False
    if not any(map(str.isalpha, line)) or (not shape.placeholder and _connector_ends(shapes)):
        return False
    others = [lettering for lettering in letterings if lettering.shape is not shape and lettering.shape.box]
    if any(_overlap(other.shape, shape) > _SAME_EDGE_POINTS for other in others if not other.is_number):
        return False
    bodies = [other for other in others if other.is_body]
    largest = max((other.size or _PLAIN_SIZE for other in others if not other.is_number), default=0)
    return bool(bodies) and (not title.size or title.size >= largest)


def _overlap(shape: SlideShape, neighbour: SlideShape) -> float:
    """Height at which two shapes stand beside each other, in points."""
    return min(shape.place[3], neighbour.place[3]) - max(shape.place[1], neighbour.place[1])


def with_bullets(shapes: Sequence[SlideShape]) -> list[SlideShape]:
    """The shapes of a slide without boxes that hold a bullet alone: it goes to the text that stands to their right.

    Several bullets go to one text where it has as many paragraphs. What connectors join stays as it is.
    """
    if len(shapes) > _MOST_SHAPES:
        return list(shapes)
    ends = _connector_ends(shapes)
    letterings = [
        lettering
        for shape in shapes
        if shape.box and shape.placeholder is None and local_name(shape.element) == "sp"
        if property_of(shape.element, "id") not in ends and (lettering := _lettering(shape)).lines
    ]
    texts = [lettering for lettering in letterings if not lettering.is_bullet]
    signs: dict[int, list[_Lettering]] = {}
    for sign in sorted(
        (lettering for lettering in letterings if lettering.is_bullet), key=lambda sign: sign.shape.place[1]
    ):
        led_texts = (text for text in texts if _is_led(text.shape, sign.shape))
        if text := min(led_texts, key=lambda lettering: lettering.shape.place[0], default=None):
            signs.setdefault(id(text.shape), []).append(sign)
    groups = ((text, signs.get(id(text.shape), [])) for text in texts)
    signs_by_shape = {id(text.shape): group for text, group in groups if len(group) in {1, len(text.lines)}}
    sign_ids = {id(sign.shape) for group in signs_by_shape.values() for sign in group}
    kept_shapes = (shape for shape in shapes if id(shape) not in sign_ids)
    return [
        replace(shape, bullets=tuple(sign.lines[0].strip() for sign in signs_by_shape.get(id(shape), ())))
        for shape in kept_shapes
    ]


def _is_led(text: SlideShape, sign: SlideShape) -> bool:
    """Whether a text begins to the right of a bullet, on one line with it."""
    middle = (sign.place[1] + sign.place[3]) / 2
    near = -_SAME_EDGE_POINTS <= text.place[0] - sign.place[2] <= _BULLET_GAP_POINTS
    return near and text.place[0] > sign.place[0] and text.place[1] <= middle <= text.place[3]


def in_reading_order(shapes: list[SlideShape]) -> list[SlideShape]:
    """Title first, then from top to bottom and left to right; running text and shapes without a place last.

    What stands within a drawn shape, such as the panel of a column or a card, is read together; so is a label with
    what stands directly beneath it, where such columns stand side by side.
    """

    def rank(shape: SlideShape) -> int:
        if shape.placeholder in TITLE_PLACEHOLDERS:
            return 0
        return 2 if shape.placeholder in RUNNING_PLACEHOLDERS or (shape.box is None and not shape.placeholder) else 1

    def order(shape: SlideShape) -> tuple[int, float, float]:
        left, top, *_ = shape.place
        return rank(shape), round(top / _SAME_LINE_POINTS), left

    ordered_shapes = sorted(shapes, key=order)
    inside = _shapes_within([shape for shape in ordered_shapes if rank(shape) == 1 and shape.box])
    held_ids = {id(shape) for within in inside.values() for shape in within}
    outside = [shape for shape in ordered_shapes if id(shape) not in held_ids]
    for siblings in [[shape for shape in outside if rank(shape) == 1 and shape.box], *inside.values()]:
        for label, text in _columns(siblings, inside):
            siblings.remove(text)
            inside.setdefault(id(label), []).append(text)
            held_ids.add(id(text))
    stack = [shape for shape in reversed(outside) if id(shape) not in held_ids]
    reading_order = []
    while stack:
        shape = stack.pop()
        reading_order.append(shape)
        stack += reversed(inside.get(id(shape), ()))
    return reading_order


@dataclass(frozen=True, slots=True)
class Lanes:
    """Lanes of a flow chart, one below the other."""

    frames: frozenset[etree._Element]  # elements of the boxes that are drawn around the lanes and of their names
    names: Mapping[etree._Element, str]  # name of the lane that the element of a shape lies in


def find_lanes(shapes: Sequence[SlideShape]) -> Lanes:
    """Lanes of a slide: boxes that span it, one below the other, each with a name at its left end.

    The name is a short text, left of all others in the lane; at least one of the lanes holds others. Connectors end at
    what stands in lanes: boxes and names at which they do are none, and where most do, there are no lanes.
    """
    drawn_shapes = [
        shape for shape in shapes if shape.box and shape.placeholder is None and local_name(shape.element) == "sp"
    ]
    if len(drawn_shapes) > _MOST_SHAPES:
        return Lanes(frozenset(), {})
    letterings = {id(shape): _lettering(shape) for shape in drawn_shapes}
    texts = sorted((shape for shape in drawn_shapes if letterings[id(shape)].lines), key=lambda text: text.place[0])
    widest = max((shape.width for shape in drawn_shapes), default=0.0)
    lanes = []
    for lane in drawn_shapes:
        lane_texts = [text for text in texts if _holds(lane, text)]
        if letterings[id(lane)].lines or lane.width < _LANE_WIDTH * widest or not lane_texts:
            continue
        name, *steps = lane_texts
        if letterings[id(name)].is_label and all(step.place[0] >= name.place[0] + name.width / 2 for step in steps):
            lanes.append((lane, name, steps))
    lanes = [item for item in lanes if any(_is_stacked(item[0], shape) for shape, _, _ in lanes)]
    ends = _connector_ends(shapes)
    free = [item for item in lanes if not any(property_of(shape.element, "id") in ends for shape in item[:2])]
    lanes = free if 2 * len(free) >= len(lanes) else []
    names = {step.element: letterings[id(name)].lines[0].strip() for _, name, steps in lanes for step in steps}
    frames = frozenset(shape.element for lane, name, _ in lanes for shape in (lane, name))
    return Lanes(frames if names else frozenset(), names)


def _is_stacked(shape: SlideShape, neighbour: SlideShape) -> bool:
    """Whether two shapes have the same left and right edges, one below the other."""
    is_level = all(abs(shape.place[side] - neighbour.place[side]) <= _SAME_EDGE_POINTS for side in (0, 2))
    return is_level and (shape.place[3] <= neighbour.place[1] + 1 or neighbour.place[3] <= shape.place[1] + 1)


def _is_over(shape: SlideShape, neighbour: SlideShape) -> bool:
    """Whether a shape begins above another one, and not beside it."""
    return (
        shape.place[1] < neighbour.place[1]
        and shape.place[0] < neighbour.place[2]
        and neighbour.place[0] < shape.place[2]
    )


def _shapes_within(shapes: Sequence[SlideShape]) -> dict[int, list[SlideShape]]:
    """By the identity of a drawn shape, what stands within it and within no smaller one, in the order given.

    An outline around some of the columns of a table that is drawn with boxes holds nothing.
    """
    if len(shapes) > _MOST_SHAPES:
        return {}
    panels = [
        (_size(shape), shape) for shape in shapes if shape.placeholder is None and local_name(shape.element) == "sp"
    ]
    panels.sort(key=itemgetter(0))
    inside = _within(shapes, panels)
    panel_of = {id(shape): panel for panel, members in inside.items() for shape in members}
    outlines = set()
    for panel, members in inside.items():
        siblings = [shape for shape in shapes if panel_of.get(id(shape)) == panel_of.get(panel) and id(shape) != panel]
        if sum(any(_adjoins(shape, cell) for shape in siblings) for cell in members) > 1:
            outlines.add(panel)
    return _within(shapes, [item for item in panels if id(item[1]) not in outlines]) if outlines else inside


def _within(shapes: Sequence[SlideShape], panels: Sequence[tuple[float, SlideShape]]) -> dict[int, list[SlideShape]]:
    """By the identity of a panel, what stands within it; the panels from the smallest with their sizes."""
    inside: dict[int, list[SlideShape]] = {}
    for shape in shapes:
        around = (panel for size, panel in panels if size > _size(shape) and _holds(panel, shape))
        if (panel := next(around, None)) is not None:
            inside.setdefault(id(panel), []).append(shape)
    return inside


def _adjoins(shape: SlideShape, neighbour: SlideShape) -> bool:
    """Whether two shapes are cells of one row: as high as each other, the edges between them at one place."""
    is_level = all(abs(shape.place[side] - neighbour.place[side]) <= _SAME_EDGE_POINTS for side in (1, 3))
    gap = min(abs(shape.place[0] - neighbour.place[2]), abs(shape.place[2] - neighbour.place[0]))
    return is_level and gap <= _SAME_EDGE_POINTS


def _columns(
    siblings: Sequence[SlideShape], inside: Mapping[int, Sequence[SlideShape]]
) -> list[tuple[SlideShape, SlideShape]]:
    """Labels with the text, table or panel directly beneath each, where such pairs stand side by side.

    The cells of a table that is drawn with boxes are no such pairs.

    Args:
        siblings: Shapes that stand within the same one.
        inside: What stands within shapes, by their identities.
    """
    boxes = [shape for shape in siblings if local_name(shape.element) in _BOXES]
    if len(boxes) > _MOST_SHAPES:
        return []
    letterings = {id(shape): _lettering(shape) for shape in boxes}

    def is_body(shape: SlideShape) -> bool:
        is_text = letterings[id(shape)].characters > _LABEL_CHARS
        return is_text or id(shape) in inside or local_name(shape.element) == "graphicFrame"

    labels = [shape for shape in boxes if letterings[id(shape)].is_label]
    beneath = ((label, _beneath(label, boxes)) for label in labels)
    of_body = {id(body): (label, body) for label, body in beneath if body and is_body(body)}
    pairs = list(of_body.values())
    heads = {id(label) for label, _ in pairs}
    rest = [box for box in boxes if id(box) not in heads and id(box) not in of_body]
    names = [box for box in rest if letterings[id(box)].is_label]
    cells = [label for label, body in pairs if any(_continues(box, body) for box in rest) or _has_name(body, names)]
    pairs = [pair for pair in pairs if not any(pair[0] is cell or _is_beside(pair[0], cell) for cell in cells)]
    return [pair for pair in pairs if any(_is_beside(pair[0], label) for label, _ in pairs)]


def _continues(box: SlideShape, body: SlideShape) -> bool:
    """Whether a box is the next one of a column of a table: it touches another one from below, edge to edge."""
    return _is_stacked(box, body) and abs(box.place[1] - body.place[3]) <= _SAME_EDGE_POINTS


def _has_name(body: SlideShape, names: Sequence[SlideShape]) -> bool:
    """Whether a name stands to the left of a text, as that of a row of a table."""
    return any(name.place[0] < body.place[0] and _is_beside(name, body) for name in names)


def _beneath(label: SlideShape, boxes: Sequence[SlideShape]) -> SlideShape | None:
    """The box directly beneath a label, where it has the same left edge and about the same width."""
    left, top, right, bottom = label.place
    below = [box for box in boxes if box.place[1] > top and box.place[0] < right and left < box.place[2]]
    if (body := min(below, key=lambda box: box.place[1], default=None)) is None:
        return None
    place = body.place
    is_near = -_SAME_EDGE_POINTS <= place[1] - bottom <= _SAME_LINE_POINTS
    is_aligned = abs(place[0] - left) <= _SAME_EDGE_POINTS and abs(place[2] - right) <= _WIDTHS_APART * (right - left)
    return body if is_near and is_aligned else None


def _is_beside(shape: SlideShape, neighbour: SlideShape) -> bool:
    """Whether two shapes begin at the same height, one to the right of the other."""
    apart = shape.place[2] <= neighbour.place[0] + 1 or neighbour.place[2] <= shape.place[0] + 1
    return apart and abs(shape.place[1] - neighbour.place[1]) <= _SAME_EDGE_POINTS


def _size(shape: SlideShape) -> float:
    left, top, right, bottom = shape.place
    return (right - left) * (bottom - top)


def _holds(panel: SlideShape, shape: SlideShape) -> bool:
    """Whether most of a shape lies within another one."""
    width, height = (
        min(panel.place[end], shape.place[end]) - max(panel.place[begin], shape.place[begin])
        for begin, end in ((0, 2), (1, 3))
    )
    return width > 0 < height and width * height >= _HELD * _size(shape)


def _is_title(title: _Lettering, letterings: Sequence[_Lettering], shapes: Sequence[SlideShape]) -> bool:
    """Whether the largest text of a slide is its title.

    A key figure or a quotation is none; the line above it is then larger than the text beneath.
    """
    shape = title.shape
    if shape.box is None or shape.placeholder or local_name(shape.element) != "sp":
        return False
    if property_of(shape.element, "id") in _connector_ends(shapes):
        return False
    if len(title.lines) > _TITLE_LINES or title.characters > _TITLE_CHARS:
        return False
    if not any(map(str.isalpha, title.lines[0])) or _FIGURE.fullmatch(title.lines[0]):
        return False
    other_letterings = [lettering for lettering in letterings if lettering.shape is not shape]
    other_letterings = [
        lettering for lettering in other_letterings if not (lettering.is_number and _leads(lettering.shape, shape))
    ]
    if any(lettering.size >= title.size and lettering.lines != title.lines for lettering in other_letterings):
        return False
    middle = (shape.place[1] + shape.place[3]) / 2
    above = [
        neighbour for neighbour in shapes if neighbour is not shape and neighbour.box and neighbour.place[3] <= middle
    ]
    if any(_size(neighbour) > _size(shape) for neighbour in above if local_name(neighbour.element) in _GRAPHICS):
        return False
    identities = set(map(id, above))
    labels = [lettering for lettering in other_letterings if id(lettering.shape) in identities]
    if len(labels) > 1 or not all(label.is_label for label in labels):
        return False
    beneath = max((lettering.size for lettering in other_letterings if lettering not in labels), default=title.size)
    words = (label for label in labels if any(map(str.isalpha, label.lines[0])))
    return all(label.size <= beneath or not _is_over(label.shape, shape) for label in words)


def _leads(number: SlideShape, title: SlideShape) -> bool:
    """Whether a number stands to the left of a title, on one line with it."""
    if not number.box or not title.box:
        return False
    return number.place[2] <= title.place[0] + _SAME_EDGE_POINTS and _overlap(number, title) > 0


def _connector_ends(shapes: Sequence[SlideShape]) -> set[str | None]:
    """Ids of the shapes at which connectors start or end."""
    return {end.get("id") for shape in shapes for end in shape.element.iter("{*}stCxn", "{*}endCxn")}


def _lettering(shape: SlideShape) -> _Lettering:
    lines = []
    sizes = []
    for paragraph in shape.element.iter("{*}p"):
        runs = [run for run in paragraph.iter("{*}r", "{*}fld") if _plain_text(run).strip()]
        if runs:
            lines.append("".join(map(_plain_text, runs)))
            sizes += [_size_of(run, paragraph, shape) for run in runs]
    return _Lettering(shape, tuple(lines), max(sizes) if all(sizes) and sizes else 0)


def _plain_text(run: etree._Element) -> str:
    return "".join(text.text or "" for text in run.iterfind("{*}t"))


def _size_of(run: etree._Element, paragraph: etree._Element, shape: SlideShape) -> int:
    """Size of a run: its own, else that of its level in the shape, else the plain one; 0 in text of a placeholder."""
    level = integer(paragraph.find("{*}pPr"), 0, "lvl")
    of_level = f"{{*}}lstStyle/{{*}}lvl{level + 1 if level <= _MOST_LEVEL else 1}pPr/{{*}}defRPr"
    body = paragraph.getparent()
    size = integer(run.find("{*}rPr"), 0, "sz") or integer(None if body is None else body.find(of_level), 0, "sz")
    return size or (0 if shape.placeholder and local_name(shape.element) == "sp" else _PLAIN_SIZE)
