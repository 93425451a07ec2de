"""Ways through the elements of an Office document: alternatives, content controls."""

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
        if (choice := element.find(name)) is not None:
            return choice
    return element


def paragraphs(element: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs at any depth, without those that only repeat others for other programs."""
    for paragraph in element.iter("{*}p"):
        choices = paragraph.iterancestors("{*}Choice", "{*}Fallback")
        if all((parent := choice.getparent()) is None or alternative(parent) is choice for choice in choices):
            yield paragraph


def descend(element: etree._Element, *names: str) -> Iterator[etree._Element]:
    """Children of some names, those inside content controls and the like included."""
    for child in element:
        name = local_name(child)
        if name in names:
            yield child
        elif name == "AlternateContent":
            yield from descend(alternative(child), *names)
        elif name in TRANSPARENT:
            yield from descend(child, *names)
