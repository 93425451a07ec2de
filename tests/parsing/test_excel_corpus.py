"""Every cell of the development set's workbooks is found again, and no file of the parsing set breaks the parser."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from golden import CORPUS, needs_corpus

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Page
from rag_assets.parsing.excel.reader import parse_excel
from rag_assets.parsing.limits import current_limits
from rag_assets.text.cells import Area, parse_area

ROOT = Path(__file__).parents[2]
LIMITS = replace(current_limits(), cells=5_000_000, pages=10_000, expanded_bytes=1 << 30, archive_entries=20_000)
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"

CELL_KINDS = {kind for kind in BlockKind if kind not in {BlockKind.NOTE, BlockKind.DIAGRAM}}

pytestmark = needs_corpus


def squeeze(text: str) -> str:
    return re.sub(r"\s+", "", text)


def string_cells(path: Path) -> Iterator[list[tuple[str, str]]]:
    """References and texts of a workbook's cells with strings, by sheet, read from its XML alone."""
    with zipfile.ZipFile(path) as archive:
        strings = []
        if "xl/sharedStrings.xml" in archive.namelist():
            for item in ET.fromstring(archive.read("xl/sharedStrings.xml")):
                texts = item.findall(f"{MAIN}t") + item.findall(f"{MAIN}r/{MAIN}t")
                strings.append("".join(text.text or "" for text in texts))
        relations = ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
        targets = {relation.get("Id"): relation.get("Target") or "" for relation in relations}
        for sheet in ET.fromstring(archive.read("xl/workbook.xml")).iter(f"{MAIN}sheet"):
            target = targets[sheet.get(RELATION_ID)]
            part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            found = []
            for cell in ET.fromstring(archive.read(part)).iter(f"{MAIN}c"):
                value, kind = cell.findtext(f"{MAIN}v") or "", cell.get("t")
                text = strings[int(value)] if kind == "s" else value if kind in {"str", "e"} else ""
                text = squeeze(re.sub("_x([0-9A-F]{4})_", "", text))
                if text:
                    found.append((cell.get("r") or "", text))
            yield found


def place(label: str | None) -> Area:
    area = parse_area(label or "")
    assert area is not None, label
    return area


def missing(page: Page, cells: list[tuple[str, str]]) -> list[str]:
    """References of cells whose text is in no block that covers them; of a table, in no row that does."""
    spans: dict[int, list[tuple[Area, str]]] = {}
    for block in page.blocks:
        if block.kind in CELL_KINDS and block.cell_range is not None:  # what is printed above pages has no cells
            text = squeeze(block.text)
            parts = [(place(row.cell_range), "".join(row.cells)) for row in block.rows]
            for area, part in parts or [(place(block.cell_range), text)]:
                for row in range(area.top, area.bottom + 1):
                    spans.setdefault(row, []).append((area, squeeze(part)))
    lost = []
    for reference, text in cells:
        cell = place(reference)
        covering = [part for area, part in spans.get(cell.top, ()) if area.left <= cell.left <= area.right]
        if not any(text in part for part in covering):
            lost.append(reference)
    return lost


@pytest.fixture(scope="module")
def workbooks() -> list[tuple[Path, tuple[Page, ...]]]:
    paths = sorted((CORPUS.parents[1] / "ja_excel" / "docs").rglob("*.xlsx"))
    documents = [(path, parse_excel(path.read_bytes(), LIMITS)) for path in paths]
    assert not [document.failures for _, document in documents if document.failures]
    return [(path, document.pages) for path, document in documents]


def test_every_cell_is_in_a_block_at_its_place(workbooks: list[tuple[Path, tuple[Page, ...]]]) -> None:
    total, lost = 0, []
    for path, pages in workbooks:
        for page, cells in zip(pages, string_cells(path), strict=True):
            total += len(cells)
            lost += [f"{path.name} {page.name} {reference}" for reference in missing(page, cells)]
    assert total > 40_000
    assert len(lost) <= 0.001 * total, lost[:20]


def test_no_text_is_doubled(workbooks: list[tuple[Path, tuple[Page, ...]]]) -> None:
    """Of the cells whose text is unique on its sheet, hardly any text occurs twice in the blocks."""
    total = doubled = 0
    for path, pages in workbooks:
        for page, cells in zip(pages, string_cells(path), strict=True):
            sheet = "\x00".join(text for _, text in cells)
            text = squeeze("\n".join(block.text for block in page.blocks if block.kind in CELL_KINDS))
            for _, cell in cells:
                if len(cell) >= 8 and sheet.count(cell) == 1:
                    total += 1
                    doubled += text.count(cell) > 1
    assert total > 5_000
    assert doubled <= 0.02 * total


def test_tables_are_rectangular_and_narrow(workbooks: list[tuple[Path, tuple[Page, ...]]]) -> None:
    for path, pages in workbooks:
        for page in pages:
            for block in page.blocks:
                widths = {len(row.cells) for row in block.rows}
                assert len(widths) <= 1, (path.name, page.name, block.cell_range)
                assert block.header_row_count <= len(block.rows)
                assert not widths or max(widths) <= 80, (path.name, page.name, block.cell_range)


_PROBE = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
from dataclasses import replace
from pathlib import Path
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.excel.reader import parse_excel
from rag_assets.parsing.limits import current_limits
limits = replace(current_limits(), cells=5_000_000, pages=10_000, expanded_bytes=1 << 30, archive_entries=20_000)
for name in sys.argv[1:]:
    try:
        document = parse_excel(Path(name).read_bytes(), limits)
        print(Path(name).parent.name, Path(name).name, "pages", len(document.pages), len(document.failures), sep="|")
    except ParseError as error:
        print(Path(name).parent.name, Path(name).name, error.cause.value, 0, 0, sep="|")
"""


def test_no_file_of_the_parsing_set_breaks_the_parser() -> None:
    suffixes = {".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"}
    paths = sorted(path for path in CORPUS.rglob("*") if path.suffix.lower() in suffixes)
    command = [sys.executable, "-W", "error", "-c", _PROBE, *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    results = [line.split("|") for line in done.stdout.splitlines()]
    assert len(results) == len(paths)
    for category, name, outcome, pages, _ in results:
        if category == "encrypted":
            assert outcome == ("pages" if name == "poi__50833.xls" else "encrypted"), name
        elif category.startswith(("xlsx_", "xls_")) and name != "excelize__BadWorkbook.xlsx":
            assert outcome == "pages", name
            assert int(pages) > 0, name
        else:
            assert outcome in {"pages", "malformed", "too_large", "encrypted", "unsupported_format"}, name
