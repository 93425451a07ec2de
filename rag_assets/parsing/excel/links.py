"""Hyperlinks of a sheet to places outside the workbook.

What stays out: links inside the workbook, which say nothing that the text does not; following any link.
"""

from lxml import etree

from rag_assets.parsing.archive import Archive

_TARGET_CHARS = 2_083  # no more fits into a link
_MAXIMUM_LINKS = 65_530  # no more fit on a sheet


class LinkReader:
    """Collects the links of a sheet.

    Attributes:
        found: Target of each link with the range of cells that carry it.
        left_out: How many were too long, or more than fit on a sheet.
    """

    def __init__(self, archive: Archive, part: str) -> None:
        self.found: list[tuple[str, str]] = []
        self.left_out = 0
        self._targets = archive.external_targets(part)

    def add(self, element: etree._Element) -> None:
        """Note a link, where it leads outside."""
        identity = next((str(value) for name, value in element.attrib.items() if str(name).endswith("}id")), "")
        target = "".join(sign for sign in self._targets.get(identity, "") if sign.isprintable()).strip()
        if not target or target.startswith("#"):
            return
        if len(target) > _TARGET_CHARS or len(self.found) >= _MAXIMUM_LINKS:
            self.left_out += 1
        else:
            self.found.append((target, element.get("ref") or ""))
