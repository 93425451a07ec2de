"""Golden files: what the parser makes of real files, beside them. `python tests/parsing/golden.py` rewrites them all,
with names of folders or files below `tests/data` these alone. A file that has none gets its first when it is named.

Read the changes with your own eyes before you commit them: a test can only say that they are changes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rag_assets.contracts.content import Block, ParsedDocument
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.parse import parse_bytes

DATA = Path(__file__).parents[1] / "data"
CORPUS = Path(__file__).parents[2].parent / "shared" / "data" / "parsing" / "files"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the development set is not beside the checkout")
LIMITS = ParsingLimits(
    timeout_seconds=30.0,
    memory_bytes=1 << 30,
    file_bytes=1 << 26,
    expanded_bytes=1 << 28,
    archive_entries=2000,
    cells=1_000_000,
    pages=1000,
)


def golden_files() -> list[Path]:
    """Files that have their blocks beside them."""
    return sorted(path.with_suffix("") for path in DATA.rglob("*.json") if path.with_suffix("").is_file())


def render(document: ParsedDocument) -> str:
    """A document as JSON; what is empty is left out, and so are positions in points."""
    pages = [
        _kept(
            number=page.number,
            kind=page.kind,
            name=page.name,
            hidden=page.hidden,
            role=page.role,
            blocks=[_block(block) for block in page.blocks],
        )
        for page in document.pages
    ]
    failures = [
        _kept(cause=failure.cause, message=failure.message, page_number=failure.page_number)
        for failure in document.failures
    ]
    shown = _kept(format=document.format, title=document.title, failures=failures, pages=pages)
    return json.dumps(shown, ensure_ascii=False, indent=1) + "\n"


def _block(block: Block) -> dict[str, Any]:
    return _kept(
        kind=block.kind,
        text=block.text,
        section=list(block.section),
        cell_range=block.cell_range,
        header_row_count=block.header_row_count,
        rows=[_kept(cell_range=row.cell_range, cells=list(row.cells)) for row in block.rows],
        formulas=[f"{formula.cell} {formula.formula}" for formula in block.formulas],
    )


def _kept(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def parse_file(path: Path) -> str:
    """What the parser makes of a file, as JSON."""
    return render(parse_bytes(path.read_bytes(), path.name, LIMITS))


def main() -> None:
    for place in [DATA / (Path(name).absolute() if Path(name).exists() else name) for name in sys.argv[1:]] or [DATA]:
        paths = [place] if place.is_file() else [path for path in golden_files() if path.is_relative_to(place)]
        if not paths:
            sys.exit(f"{place}: no such file, and no golden files below it; name a file to make its first one")
        for path in paths:
            golden = path.with_name(f"{path.name}.json")
            golden.write_text(parse_file(path), encoding="utf-8")
            sys.stdout.write(f"{golden}\n")


if __name__ == "__main__":
    main()
