"""The parts of an Office Open XML workbook: which sheets it has, and where their cells, drawings and comments stand.

What stays out: reading those parts (`excel_cells`, `excel_drawings`).
"""

from dataclasses import dataclass

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, Relation, local_name
from rag_assets.parsing.excel.cells import read_shared_strings
from rag_assets.parsing.excel.styles import Styles, read_looks

_GENERIC_TITLES = {"workbook", "book1", "sheet1", "microsoft excel", "untitled", "無題", "excel", "タイトル", "title"}


@dataclass(frozen=True, slots=True)
class SheetEntry:
    """A sheet as the workbook lists it.

    Attributes:
        name: Its name.
        hidden: Whether the workbook hides it.
        part: Name of its part, or None where the workbook has none for it.
        kind: `worksheet`, `chartsheet`, `dialogsheet` or another kind of part.
    """

    name: str
    hidden: bool
    part: str | None
    kind: str


@dataclass(frozen=True, slots=True)
class Workbook:
    """What the sheets of a workbook share.

    Attributes:
        archive: The container.
        sheets: Its sheets in order.
        strings: Shared strings.
        styles: Looks of cells.
        title: Title stated in its properties, or None.
        names: What the defined names of the workbook stand for.
        people: Names of those who take part in threads of comments, by their ids.
    """

    archive: Archive
    sheets: tuple[SheetEntry, ...]
    strings: list[str]
    styles: Styles
    title: str | None
    names: dict[str, str]
    people: dict[str, str]


def open_workbook(archive: Archive, maximum_strings: int) -> Workbook:
    """Read what a workbook's sheets share.

    Raises:
        ParseError: UNSUPPORTED_FORMAT where the archive holds no workbook; MALFORMED where it cannot be read;
            TOO_LARGE where it has too many shared strings.
    """
    part = _workbook_part(archive)
    relations = archive.relations(part)
    root = archive.tree(part)
    by_kind = {relation.kind: relation.target for relation in relations.values()}
    base_1904 = any(
        local_name(element) == "workbookPr" and element.get("date1904") in {"1", "true"} for element in root
    )
    zeros_stand_in = any(
        local_name(element) == "calcPr" and element.get("fullCalcOnLoad") in {"1", "true"} for element in root
    )
    sheets = tuple(
        _entry({str(name): str(value) for name, value in sheet.attrib.items()}, relations)
        for element in root
        if local_name(element) == "sheets"
        for sheet in element
        if local_name(sheet) == "sheet"
    )
    strings_part, styles_part = by_kind.get("sharedStrings"), by_kind.get("styles")
    strings: list[str] = []
    if strings_part is not None and archive.has(strings_part):
        strings = read_shared_strings(archive, strings_part, maximum_strings)
    looks = read_looks(archive, styles_part) if styles_part is not None and archive.has(styles_part) else ()
    styles = Styles(looks, base_1904, zeros_stand_in)
    names = {element.get("name") or "": element.text or "" for element in root.iter("{*}definedName")}
    return Workbook(archive, sheets, strings, styles, _title(archive), names, _people(archive, by_kind.get("person")))


def _workbook_part(archive: Archive) -> str:
    for relation in archive.relations("").values():
        if relation.kind == "officeDocument" and archive.has(relation.target):
            if local_name(archive.tree(relation.target)) != "workbook":
                raise ParseError(FailureCause.UNSUPPORTED_FORMAT, f"archive holds {relation.target}, no workbook")
            return relation.target
    if archive.has("xl/workbook.xml"):
        return "xl/workbook.xml"
    raise ParseError(FailureCause.UNSUPPORTED_FORMAT, "archive without a workbook")


def _entry(attributes: dict[str, str], relations: dict[str, Relation]) -> SheetEntry:
    identity = next((value for name, value in attributes.items() if name.endswith("}id")), "")
    relation = relations.get(identity)
    hidden = attributes.get("state", "visible") != "visible"
    kind = relation.kind if relation else ""
    return SheetEntry(attributes.get("name", ""), hidden, relation.target if relation else None, kind)


def _people(archive: Archive, part: str | None) -> dict[str, str]:
    if part is None or not archive.has(part):
        return {}
    try:
        root = archive.tree(part)
    except ParseError:
        return {}  # without their authors comments are whole
    return {person.get("id") or "": person.get("displayName") or "" for person in root.iter("{*}person")}


def _title(archive: Archive) -> str | None:
    """The stated title, where it looks like one that a person wrote for this file."""
    if not archive.has("docProps/core.xml"):
        return None
    try:
        root = archive.tree("docProps/core.xml")
    except ParseError:
        return None  # properties are no content: a workbook without them is whole
    title = next((element.text or "" for element in root if local_name(element) == "title"), "").strip()
    plain = title.lower()
    if len(title) < 4 or plain in _GENERIC_TITLES or plain.rstrip("0123456789 ") in {"sheet", "book", "workbook"}:
        return None
    return title if any(sign.isalpha() for sign in title) else None
