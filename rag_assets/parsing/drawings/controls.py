"""Check boxes and option buttons of a sheet with their state, written into the cells that they stand on.

Up to three parts describe a control: its properties tell its state; the older drawing (VML) its place, its text and, in
old workbooks, its state; the newer drawing its text once more. A cell gets `☑ text` or `☐ text` from a check box, and
`◉ text` or `○ text` from an option button, so that a form reads as one sees it. Other controls, and those stored as
binary streams, show no state here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from lxml import etree

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, Relation, local_name
from rag_assets.parsing.drawings.drawings import Shape, control_number
from rag_assets.parsing.excel.cells import SheetCells, ascending
from rag_assets.parsing.excel.workbook import clean_text
from rag_assets.parsing.office.styles import attribute
from rag_assets.text.plain import one_line

# What stands for a control that is not checked, and for one that is.
_CHECK_BOX, _OPTION = ("☐", "☑"), ("○", "◉")
_MARKS_BY_FORM = {"checkbox": _CHECK_BOX, "radio": _OPTION}
_MARKS_BY_CLASS = {
    "{8BD21D40-EC42-11CE-9E0D-00AA006002F3}": _CHECK_BOX,
    "{8BD21D50-EC42-11CE-9E0D-00AA006002F3}": _OPTION,
}
_SPID = "{urn:schemas-microsoft-com:office:office}spid"
_OPEN_BREAK = re.compile(rb"<br[^<>/]*>", re.IGNORECASE)
_ANCHOR_VALUES = 8
_BOX_PIXELS = 12  # of a control's box: where less of a column is left, the box stands in the next one
_ROW_PIXELS = 18
_DIGIT_PIXELS = 7
_COLUMN_DIGITS = 8.4


class _State(NamedTuple):
    """What stands for a control in its state, and its own text, where its properties tell it."""

    mark: str
    text: str = ""


class _Legacy(NamedTuple):
    """A control as the older drawing has it; its anchor is as stated there, or empty."""

    state: _State | None
    text: str
    anchor: tuple[int, ...]


class _Control(NamedTuple):
    """A control on a sheet: row and column of its box, from 0, and its text; empty where a cell names it.

    The indent is how far the box stands from the left edge of the column, in pixels; it can be negative.
    """

    row: int
    column: int
    indent: float
    text: str


def place_controls(
    archive: Archive,
    relations: Mapping[str, Relation],
    cells: SheetCells,
    shapes: Iterable[Shape],
    problems: list[ParseError],
) -> tuple[SheetCells, set[str]]:
    """Write the check boxes and option buttons of a sheet behind the texts of the cells that they stand on.

    A control without a text stands in front of that of its cell. Of several with one text at one place the topmost
    counts, since it covers the others.

    Args:
        archive: The workbook.
        relations: Parts that the sheet refers to, by the ids of the relationships.
        cells: The sheet's cells.
        shapes: Shapes of the sheet's drawings.
        problems: What could not be read is added to these.

    Returns:
        The cells, and the numbers that the controls have in the older drawing.
    """
    states = _states(archive, relations, cells.controls, problems)
    legacy = _legacy_controls(archive, relations.values(), problems)
    control_shapes = {shape.control: shape for shape in shapes if shape.control}
    numbers: set[str] = set()
    marks: dict[_Control, str] = {}
    for number in dict.fromkeys([*legacy, *control_shapes]):
        old, shape = legacy.get(number), control_shapes.get(number)
        state = states.get(number) or (old.state if old else None)
        if state is None or not ((old and old.anchor) or shape):
            continue
        numbers.add(number)
        text = (shape.text if shape else "") or (old.text if old else "") or state.text
        if old and old.anchor:
            marks[_Control(*_place(old.anchor, cells.column_widths), text)] = state.mark
        elif shape:
            marks[_Control(shape.area.top, shape.area.left, 0.0, text)] = state.mark
    return _with_marks(cells, marks) if marks else cells, numbers


def _with_marks(cells: SheetCells, marks: Mapping[_Control, str]) -> SheetCells:
    texts = {row: dict(row_texts) for row, row_texts in cells.texts.items()}
    for control in sorted(marks):
        covers = (area for area in cells.merges if area.holds(control.row, control.column))
        row, column = next(((area.top, area.left) for area in covers), (control.row, control.column))
        text = texts.setdefault(row, {}).get(column, "")
        pieces = (text, marks[control], control.text) if control.text else (marks[control], text)
        texts[row][column] = " ".join(filter(None, pieces))
    return replace(cells, texts=ascending(texts))


def _states(
    archive: Archive, relations: Mapping[str, Relation], references: Mapping[str, str], problems: list[ParseError]
) -> dict[str, _State]:
    """States by the number of the control, from the parts that hold nothing but its properties."""
    states = {}
    for number, identity in references.items():
        relation = relations.get(identity)
        if relation is not None and relation.kind in {"ctrlProp", "control"}:
            try:
                state = _state(archive.tree(relation.target))
            except ParseError as error:
                problems.append(error)
                continue
            if state is not None:
                states[number] = state
    return states


def _state(root: etree._Element) -> _State | None:
    """State of a form control or of an ActiveX control; None for other controls. A greyed box is not checked."""
    if local_name(root) == "formControlPr":
        marks = _MARKS_BY_FORM.get(attribute(root, "objectType").lower())
        return _State(marks[attribute(root, "checked") == "Checked"]) if marks else None
    marks = _MARKS_BY_CLASS.get(attribute(root, "classid").upper())
    properties = {attribute(element, "name"): attribute(element, "value") for element in root}
    if marks is None or not properties:
        return None
    return _State(marks[properties.get("Value") in {"1", "-1", "True"}], clean_text(properties.get("Caption", "")))


def _legacy_controls(archive: Archive, relations: Iterable[Relation], problems: list[ParseError]) -> dict[str, _Legacy]:
    controls: dict[str, _Legacy] = {}
    for relation in relations:
        if relation.kind == "vmlDrawing":
            try:
                controls.update(_read_legacy(_legacy_tree(archive, relation.target)))
            except ParseError as error:
                problems.append(error)
    return controls


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
        marks = _MARKS_BY_FORM.get(form)
        state = _State(marks[(data.findtext("{*}Checked") or "").strip() == "1"]) if marks else None
        texts = (str(text) for box in shape.iter("{*}textbox") for text in box.itertext())
        yield number, _Legacy(state, one_line(clean_text("".join(texts))), _anchor(shape))


def _anchor(shape: etree._Element) -> tuple[int, ...]:
    """Left column, pixels in it, top row, pixels in it, right and bottom likewise; of a grouped shape, its group's."""
    for holder in (shape, *shape.iterancestors()):
        data = holder.find("{*}ClientData")
        values = re.findall(r"\d{1,7}", data.findtext("{*}Anchor") or "") if data is not None else []
        if len(values) == _ANCHOR_VALUES:
            return tuple(map(int, values))
    return ()


def _place(anchor: tuple[int, ...], widths: Mapping[int, float]) -> tuple[int, int, float]:
    """Row of a control's middle, column of its box, and pixels between the left edges of both."""
    column, pixels, top, top_pixels, _, _, bottom, bottom_pixels = anchor
    height = max(top_pixels, bottom_pixels, _ROW_PIXELS)
    row = int((top + bottom + (top_pixels + bottom_pixels) / height) / 2)
    width = widths.get(column, _COLUMN_DIGITS) * _DIGIT_PIXELS
    return (row, column, pixels) if width - pixels >= _BOX_PIXELS else (row, column + 1, pixels - width)
