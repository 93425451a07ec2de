"""Ways through the elements of an Office document: alternatives, content controls, deleted rows.

What stays out: what is read from them (`word`, `slides`).
"""

from collections.abc import Iterator

from lxml import etree

from rag_assets.parsing.archive import local_name

TRANSPARENT = {"sdt", "sdtContent", "ins", "moveTo", "smartTag", "customXml", "hyperlink", "fldSimple", "dir", "bdo"}


def alternative(element: etree._Element) -> etree._Element:
    """What to read of `mc:AlternateContent`: the first choice, else the fallback; never both, as they say the same.

    Returns:
        The part to read; the element itself where it holds neither.
    """
    for name in ("{*}Choice", "{*}Fallback"):
        if (found := element.find(name)) is not None:
            return found
    return element


def paragraphs(element: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs at any depth, without those that only repeat others for other programs."""
    for paragraph in element.iter("{*}p"):
        alternatives = paragraph.iterancestors("{*}Choice", "{*}Fallback")
        if all((parent := each.getparent()) is None or alternative(parent) is each for each in alternatives):
            yield paragraph


def content(element: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs and tables of a cell, those inside content controls and the like included."""
    for child in element:
        name = local_name(child)
        if name in {"p", "tbl"}:
            yield child
        elif name == "AlternateContent":
            yield from content(alternative(child))
        elif name in TRANSPARENT:
            yield from content(child)


def descend(element: etree._Element, wanted: str) -> Iterator[etree._Element]:
    """Children of a name, those inside content controls and the like included."""
    for child in element:
        name = local_name(child)
        if name == wanted:
            yield child
        elif name == "AlternateContent":
            yield from descend(alternative(child), wanted)
        elif name in TRANSPARENT:
            yield from descend(child, wanted)


def is_deleted(row: etree._Element) -> bool:
    """Whether a row was deleted under change tracking."""
    return row.find("{*}trPr/{*}del") is not None
