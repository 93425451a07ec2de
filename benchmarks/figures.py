"""How many figures of statistical workbooks are read with the names of their row and column.

Reads facts (`questions/figures.jsonl`), which were written by looking at the sheets: the `file`, `sheet` and `cell` of
a figure, its `value`, and the words that name its `row` and its `column`, outermost group first. A fact is `whole`
where all of them stand in the row, the header and the headings of the table that holds the figure, `near` where the
innermost of both do, else `lost`. Prints these with Wilson intervals, with `--verbose` each fact that is not whole.

    python -m benchmarks.figures benchmarks/questions/figures.jsonl FOLDER
"""

import argparse
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from rag_assets.contracts.content import Block, ParsedDocument
from rag_assets.parsing.limits import current_limits
from rag_assets.parsing.parse import parse_bytes
from rag_assets.text.cells import parse_area

GRADES = ("lost", "near", "whole")


def letters(text: object) -> str:
    """A text without white space, signs and differences of width and case."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", str(text)).casefold())


def number(text: object) -> Decimal | None:
    plain = re.sub(r"[\s,¥%()]", "", unicodedata.normalize("NFKC", str(text))).replace("△", "-").replace("▲", "-")
    try:
        return Decimal(plain)
    except InvalidOperation:
        return None


def shows(cell: str, value: object) -> bool:
    """Whether a cell shows a value, as exactly as it shows it."""
    shown, stored = number(cell), number(value)
    if shown is None or stored is None:
        return letters(cell) == letters(value)
    scale = 100 if "%" in cell and "%" not in str(value) else 1
    exponent = shown.as_tuple().exponent
    return abs(abs(shown) - abs(stored * scale)) <= Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)


def grade(fact: dict[str, Any], document: ParsedDocument) -> str:
    """How a figure was read."""
    pages = (page for page in document.pages if letters(page.name) == letters(fact["sheet"]))
    rows = (texts for page in pages for block in page.blocks for texts in _rows(fact, block))
    return max((_grade(fact, names, heads) for names, heads in rows), key=GRADES.index, default="lost")


def _rows(fact: dict[str, Any], block: Block) -> Iterator[tuple[list[str], list[str]]]:
    """The texts of a row that shows the value of a fact in its place, and those above it, for each cell that does."""
    cell = parse_area(fact["cell"])
    for row in block.rows[block.header_row_count :]:
        area = parse_area(row.cell_range)
        if cell is None or area is None or not area.top <= cell.top <= area.bottom:
            continue
        for place, text in enumerate(row.cells):
            if text and shows(text, fact["value"]):
                heads = [head.cells[place] for head in block.rows[: block.header_row_count]]
                yield [*row.cells, *block.section], [*heads, *block.section]


def _grade(fact: dict[str, Any], names: Sequence[str], heads: Sequence[str]) -> str:
    of_row, of_column = ([letters(text) for text in texts] for texts in (names, heads))
    rows = [any(letters(word) in text for text in of_row) for word in fact["row"]]
    columns = [any(letters(word) in text for text in of_column) for word in fact["column"]]
    if all(rows) and all(columns):
        return "whole"
    return "near" if all(rows[-1:]) and all(columns[-1:]) else "lost"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facts", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    facts = defaultdict(list)
    for line in arguments.facts.read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        facts[fact["file"]].append(fact)
    grades: Counter[str] = Counter()
    for name, of_file in facts.items():
        path = arguments.folder / name
        document = parse_bytes(path.read_bytes(), path.name, current_limits())
        for fact in of_file:
            result = grade(fact, document)
            grades[result] += 1
            if arguments.verbose and result != "whole":
                print(result, name, fact["sheet"], fact["cell"], fact["row"], fact["column"])
    total = grades.total()
    for label, count in (("whole", grades["whole"]), ("whole or near", total - grades["lost"])):
        interval = binomtest(count, total).proportion_ci(method="wilson")
        print(f"{label}: {count} of {total}, {count / total:.3f} [{interval.low:.3f}, {interval.high:.3f}]")


if __name__ == "__main__":
    main()
