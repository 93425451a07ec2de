"""Check boxes and option buttons of a sheet with their state, written into the cells that they stand on.

Up to three parts describe a control: its properties tell its state; the older drawing (VML) its place, its text and, in
old workbooks, its state; the newer drawing its text once more. A cell gets `☑ text` or `☐ text` from a check box, and
`◉ text` or `○ text` from an option button, so that a form reads as one sees it.

What stays out: other controls, and those stored as binary streams, which show no state here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, Relation, local_name
from rag_assets.parsing.drawings.drawings import Shape, control_number
from rag_assets.parsing.excel.cells import SheetCells, ascending, clean_text

_OPTION_BY_FORM = {"checkbox": False, "radio": True}
_OPTION_BY_CLASS = {
    "{8BD21D40-EC42-11CE-9E0D-00AA006002F3}": False,
    "{8BD21D50-EC42-11CE-9E0D-00AA006002F3}": True,
}
_MARKS = {(False, False): "☐", (False, True): "☑", (True, False): "○", (True, True): "◉"}
_SPID = "{urn:schemas-microsoft-com:office:office}spid"
_OPEN_BREAK = re.compile(rb"<br[^<>/]*>", re.IGNORECASE)
_ANCHOR_VALUES = 8
_BOX_PIXELS = 12  # of a control's box: where less of a column is left, the box stands in the next one
_ROW_PIXELS = 18
_DIGIT_PIXELS = 7
_COLUMN_DIGITS = 8.4


@dataclass(frozen=True, slots=True)
class _State:
    option: bool
    checked: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Legacy:
    """A control as the older drawing has it; its anchor is as stated there, or empty."""

    state: _State | None
    text: str
    anchor: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """A check box or option button.

    Attributes:
        row: The row that it stands on, from 0.
        column: The column of its box, from 0.
        indent: How far its box stands from the left edge of that column, in pixels; can be negative.
        mark: What stands for its form and its state.
        text: Its own text; empty where a cell names it.
    """

    row: int
    column: int
    indent: float
    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Controls:
    """The check boxes and option buttons of a sheet.

    Attributes:
        placed: Those that can be seen, from top to bottom, then left to right.
        numbers: Numbers of all in the older drawing.
        problems: What could not be read.
    """

    placed: tuple[Control, ...]
    numbers: frozenset[str]
    problems: tuple[ParseError, ...]


def read_controls(
    archive: Archive, relations: Mapping[str, Relation], cells: SheetCells, shapes: Iterable[Shape]
) -> Controls:
    """Read the check boxes and option buttons of a sheet.

    Of several with one text at one place the topmost counts, since it covers the others.

    Args:
        archive: The workbook.
        relations: Parts that the sheet refers to, by the ids of the relationships.
        cells: The sheet's cells.
        shapes: Shapes of the sheet's drawing.
    """
    problems: list[ParseError] = []
    states = _states(archive, relations, cells.controls, problems)
    legacy = _legacy_controls(archive, relations.values(), problems)
    drawn = {shape.control: shape for shape in shapes if shape.control}
    numbers, visible = set(), {}
    for number in dict.fromkeys([*legacy, *drawn]):
        old, shape = legacy.get(number), drawn.get(number)
        state = states.get(number) or (old.state if old else None)
        if state is None or not ((old and old.anchor) or shape):
            continue
        numbers.add(number)
        control = _control(state, old, shape, cells)
        visible[control.row, control.column, control.indent, control.text] = control
    placed = (visible[key] for key in sorted(visible))
    return Controls(tuple(placed), frozenset(numbers), tuple(problems))


def with_controls(cells: SheetCells, controls: Iterable[Control]) -> SheetCells:
    """Cells with the controls that stand on them behind their texts; a control without a text in front of them."""
    texts = dict(cells.texts)
    copied = set()
    for control in controls:
        covers = (area for area in cells.merges if area.top <= control.row <= area.bottom)
        homes = ((area.top, area.left) for area in covers if area.left <= control.column <= area.right)
        row, column = next(homes, (control.row, control.column))
        if row not in copied:
            texts[row] = dict(texts.get(row, {}))
            copied.add(row)
        text = texts[row].get(column, "")
        pieces = (text, control.mark, control.text) if control.text else (control.mark, text)
        texts[row][column] = " ".join(filter(None, pieces))
    return replace(cells, texts=ascending(texts)) if copied else cells


def _states(
    archive: Archive, relations: Mapping[str, Relation], references: Mapping[str, str], problems: list[ParseError]
) -> dict[str, _State]:
    """States by the number of the control, from the parts that hold nothing but its properties."""
    found = {}
    for number, identity in references.items():
        relation = relations.get(identity)
        if relation is not None and relation.kind in {"ctrlProp", "control"}:
            try:
                state = _state(archive.tree(relation.target))
            except ParseError as error:
                problems.append(error)
                continue
            if state is not None:
                found[number] = state
    return found


def _state(root: etree._Element) -> _State | None:
    """State of a form control or of an ActiveX control; None for other controls. A greyed box is not checked."""
    attributes = {str(name).rpartition("}")[2]: str(value) for name, value in root.attrib.items()}
    if local_name(root) == "formControlPr":
        option = _OPTION_BY_FORM.get(attributes.get("objectType", "").lower())
        return None if option is None else _State(option, attributes.get("checked") == "Checked")
    properties = {}
    for element in root:
        named = {str(name).rpartition("}")[2]: str(value) for name, value in element.attrib.items()}
        properties[named.get("name", "")] = named.get("value", "")
    option = _OPTION_BY_CLASS.get(attributes.get("classid", "").upper())
    if option is None or not properties:
        return None
    return _State(option, properties.get("Value") in {"1", "-1", "True"}, clean_text(properties.get("Caption", "")))


def _legacy_controls(archive: Archive, relations: Iterable[Relation], problems: list[ParseError]) -> dict[str, _Legacy]:
    found: dict[str, _Legacy] = {}
    for relation in relations:
        if relation.kind == "vmlDrawing":
            try:
                found.update(_read_legacy(_legacy_tree(archive, relation.target)))
            except ParseError as error:
                problems.append(error)
    return found


def _legacy_tree(archive: Archive, part: str) -> etree._Element:
    """Root of an older drawing, whose texts are often no XML: line breaks in them are not closed."""
    data = archive.read(part)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ParseError(FailureCause.MALFORMED, f"part {part} carries a document type declaration")
    data = _OPEN_BREAK.sub(b" ", data)
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ParseError(FailureCause.MALFORMED, f"part {part}: {error}") from error
    if root is None:
        raise ParseError(FailureCause.MALFORMED, f"part {part} holds no XML")
    return root


def _read_legacy(root: etree._Element) -> Iterator[tuple[str, _Legacy]]:
    for data in root.iter("{*}ClientData"):
        shape, form = data.getparent(), (data.get("ObjectType") or "").lower()
        number = control_number(shape.get(_SPID) or shape.get("id") or "") if shape is not None else ""
        if shape is None or not number or form == "note":
            continue
        option = _OPTION_BY_FORM.get(form)
        state = None if option is None else _State(option, _child_text(data, "Checked") == "1")
        texts = (str(text) for box in shape.iter("{*}textbox") for text in box.itertext())
        yield number, _Legacy(state, " ".join(clean_text("".join(texts)).split()), _anchor(shape))


def _child_text(element: etree._Element, name: str) -> str:
    return next(((child.text or "").strip() for child in element if local_name(child) == name), "")


def _anchor(shape: etree._Element) -> tuple[int, ...]:
    """Left column, pixels in it, top row, pixels in it, right and bottom likewise; of a grouped shape, its group's."""
    for holder in (shape, *shape.iterancestors()):
        data = (child for child in holder if local_name(child) == "ClientData")
        values = re.findall(r"\d{1,7}", next((_child_text(child, "Anchor") for child in data), ""))
        if len(values) == _ANCHOR_VALUES:
            return tuple(map(int, values))
    return ()


def _control(state: _State, old: _Legacy | None, shape: Shape | None, cells: SheetCells) -> Control:
    text = (shape.text if shape else "") or (old.text if old else "") or state.text
    mark = _MARKS[state.option, state.checked]
    if old and old.anchor:
        return Control(*_place(old.anchor, cells.column_widths), mark, text)
    area = shape.area if shape else None
    return Control(area.top if area else 0, area.left if area else 0, 0.0, mark, text)


def _place(anchor: tuple[int, ...], widths: Mapping[int, float]) -> tuple[int, int, float]:
    """Row of a control's middle, column of its box, and pixels between the left edges of both."""
    column, pixels, top, top_pixels, _, _, bottom, bottom_pixels = anchor
    height = max(top_pixels, bottom_pixels, _ROW_PIXELS)
    row = int((top + bottom + (top_pixels + bottom_pixels) / height) / 2)
    width = widths.get(column, _COLUMN_DIGITS) * _DIGIT_PIXELS
    return (row, column, pixels) if width - pixels >= _BOX_PIXELS else (row, column + 1, pixels - width)
