"""Tables of a PDF page whose rows are parted by rules and whose columns only by room.

What stays out: areas that rules part in both directions (`rag_assets.parsing.pdf.rules`), rows that nothing parts
(`rag_assets.parsing.pdf.columns`).
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from rag_assets.parsing.pdf.lines import gap_middles, lines_of
from rag_assets.parsing.pdf.rules import Grid, Rule
from rag_assets.parsing.pdf.runs import Run

_BANDS = 3
_TRIED = 10  # sets of rules
_SAME_END = 2.0  # points between the ends of rules of one table
_COLUMN_GAP = 1.0  # of the type
_FILLED_SHARE = 0.8
_PARTED_SHARE = 0.1  # of the lines of cells: gaps in them are columns that are not told
_NAME_CHARS = 40  # of a cell of the first column
_LINE_STEP = 2.2  # of the type, from line to line of a cell: what stands further apart is another row
_HEADER_GAP = 2.0  # of the type, between the names of columns and the first rule


def find_bands(across: Sequence[Rule], grids: Sequence[Grid], runs: Sequence[Run]) -> list[Grid]:
    """Areas between rules of one width, with columns of text in practically all, one of them broken into lines.

    The first column holds names: where most of its texts hold sentences, they run down the columns of the page. Rows of
    one line each need no rules to be told, and tell their columns better by themselves.

    Args:
        across: Rules from left to right, from the top.
        grids: Ruled areas of the page; rules inside them part no bands.
        runs: Runs of the page.
    """
    sets: dict[tuple[int, int], list[Rule]] = defaultdict(list)
    for rule in across:
        if not any(grid.box[1] - 1 <= rule.at <= grid.box[3] + 1 for grid in grids):
            sets[round(rule.begin / _SAME_END), round(rule.end / _SAME_END)].append(rule)
    candidates = sorted((rules for rules in sets.values() if len(rules) > _BANDS), key=len, reverse=True)[:_TRIED]
    return [grid for rules in candidates for grid in _table_between(rules, runs)]


def _table_between(rules: Sequence[Rule], runs: Sequence[Run]) -> Iterator[Grid]:
    """The table between rules from the top, with the names of its columns above them; none where there is none."""
    left, right = rules[0].begin, rules[0].end
    ys = [rule.at for rule in rules]
    inside = [run for run in runs if run.reaches((left, ys[0], right, ys[-1]))]
    if not inside or any(run.is_vertical for run in inside):
        return
    size = median(run.size for run in inside)
    xs = [left, *sorted(gap_middles(((run.left, run.right) for run in inside), _COLUMN_GAP * size)), right]
    bands: list[list[list[Run]]] = [[[] for _ in xs[1:]] for _ in ys[1:]]
    for run in inside:
        row, column = bisect_right(ys, run.middle[1]) - 1, bisect_right(xs, run.middle[0]) - 1
        if 0 <= row < len(bands) and 0 <= column < len(xs) - 1:
            bands[row][column].append(run)
    filled_count = sum(sum(map(bool, band)) > 1 for band in bands)
    cells = [list(lines_of(cell)) for band in bands for cell in band]
    lines = [line for cell in cells for line in cell]
    is_parted = sum(len(line.cells) > 1 for line in lines) > _PARTED_SHARE * len(lines)
    steps = [below.box[1] - above.box[1] for cell in cells for above, below in pairwise(cell)]
    names = ["".join(run.text for run in band[0]) for band in bands if band[0]]
    sentences = sum("。" in name for name in names)
    is_broken = 0 < max(steps, default=0.0) < _LINE_STEP * size
    is_named = bool(names) and median(map(len, names)) <= _NAME_CHARS and sentences * 2 <= len(names)
    if is_parted or not (is_broken and is_named) or filled_count < _FILLED_SHARE * len(bands):
        return
    above = [run for run in runs if left <= run.middle[0] <= right and 0 < ys[0] - run.bottom < _HEADER_GAP * size]
    columns = {bisect_right(xs, run.left + 1) for run in above}
    if len(columns) == len(xs) - 1 and not any(run.left < x < run.right for run in above for x in xs):
        ys.insert(0, min(run.top for run in above) - 1)
    width = len(xs) - 1
    rooms = tuple(tuple(range(row * width, (row + 1) * width)) for row in range(len(ys) - 1))
    yield Grid(tuple(xs), tuple(ys), rooms)
