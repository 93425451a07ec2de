"""Hyperlinks of a sheet to places outside the workbook.

What stays out: links inside the workbook, which say nothing that the text does not; following any link.
"""

from lxml import etree

from rag_assets.parsing.archive import Archive

_TARGET_CHARS = 2_000
_MAXIMUM_LINKS = 65_530  # no more fit on a sheet


class LinkReader:
    """Collects the links of a sheet.

    Attributes:
        found: Target of each link with the range of cells that carry it.
    """

    def __init__(self, archive: Archive, part: str) -> None:
        self.found: list[tuple[str, str]] = []
        self._targets = archive.external_targets(part)

    def add(self, element: etree._Element) -> None:
        """Note a link, where it leads outside."""
        identity = next((str(value) for name, value in element.attrib.items() if str(name).endswith("}id")), "")
        target = "".join(sign for sign in self._targets.get(identity, "") if sign.isprintable()).strip()
        if target and not target.startswith("#") and len(target) <= _TARGET_CHARS and len(self.found) < _MAXIMUM_LINKS:
            self.found.append((target, element.get("ref") or ""))
