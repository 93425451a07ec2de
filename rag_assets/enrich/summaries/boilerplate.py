"""Boilerplate: lines that stand in several documents, such as the labels, column names and notes of a form.

They say what format a document has, not what tells it from the others of that format. `document_lines` holds the lines
of each document as digests, so that those of the whole corpus are counted without reading its text.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rag_assets.contracts.content import Page
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.tables import BLOCKS, DOCUMENT_LINES, PAGE_SUMMARIES, SYNTHETIC_QA
from rag_assets.enrich.summaries.extraction import outline
from rag_assets.parsing.records import load_pages, rows
from rag_assets.store.incremental import Rows, StepReport, finished, update_shard
from rag_assets.store.lake import Lake, shard_of

_CELL_CHARS = 15
_MARK = "+"  # between what rows are computed from and which of their document's lines are common


class CommonLines:
    """The lines that count as boilerplate."""

    def __init__(self, keys: Iterable[int] | NDArray[np.int64] = ()) -> None:
        self._keys = frozenset(int(key) for key in keys)

    def __contains__(self, line: object) -> bool:
        return bool(self._keys) and isinstance(line, str) and line_key(line) in self._keys

    def among(self, keys: Iterable[int]) -> list[int]:
        """Which of some digests are of common lines, rising."""
        return sorted(self._keys.intersection(keys))


def line_key(line: str) -> int:
    """Digest of a line, the same whatever its width, case and spaces: 64 bits, signed."""
    folded_line = "".join(unicodedata.normalize("NFKC", line).casefold().split())
    return int.from_bytes(blake2b(folded_line.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


def page_lines(page: Page) -> list[str]:
    """The headings, column names, sentences and table rows of a page, each once."""
    page_outline = outline(page.blocks)
    return [*page_outline.headings, *page_outline.columns, *page_outline.sentences]


def _long_cells(page: Page) -> Iterator[str]:
    """The cells of tables that say something by themselves, so that they count where the rest of their row differs."""
    for block in page.blocks:
        for row in block.rows[block.header_row_count :]:
            yield from (cell for cell in row.cells if len(cell) >= _CELL_CHARS)


def update_document_lines(lake: Lake, shards: Sequence[str]) -> StepReport:
    """Bring the lines of the documents of some shards in step with their pages."""
    code = code_fingerprint(f"{__name__}:update_document_lines")

    def compute(shard: str, documents: Sequence[str]) -> Rows:
        records = []
        for document_id, (_, pages) in load_pages(lake, shard, documents).items():
            keys = sorted({line_key(line) for page in pages for line in (*page_lines(page), *_long_cells(page))})
            records.append({"document_id": document_id, "shard": shard_of(document_id), "line_keys": keys})
        return {DOCUMENT_LINES.name: rows(DOCUMENT_LINES.schema, records)}

    report = StepReport()
    for shard in shards:
        wanted_keys = {name: digest(key, code) for name, key in lake.inputs(BLOCKS, shard).items()}
        update_shard(lake, [DOCUMENT_LINES], shard, wanted_keys, partial(compute, shard), report)
    return report


def common_lines(lake: Lake, least_documents: int) -> CommonLines:
    """The lines that stand in at least so many documents; none where that is 0."""
    if not least_documents:
        return CommonLines()
    column: pa.ChunkedArray = lake.read(DOCUMENT_LINES, columns=["line_keys"])["line_keys"]
    if not len(column):
        return CommonLines()
    keys, counts = np.unique(column.combine_chunks().flatten().to_numpy(), return_counts=True)
    return CommonLines(keys[counts >= least_documents])


def with_common_lines(lake: Lake, shard: str, common: CommonLines, wanted: Mapping[str, str]) -> dict[str, str]:
    """What the rows of each document of a shard are computed from, with which of its lines are common."""
    marks = {}
    for row in lake.read(DOCUMENT_LINES, [shard], ["document_id", "line_keys"]).to_pylist():
        if keys := common.among(row["line_keys"]):
            marks[row["document_id"]] = f"{_MARK}{digest(*keys)}"
    return {name: key + marks.get(name, "") for name, key in wanted.items()}


def shards_with_outdated_boilerplate(lake: Lake, least_documents: int) -> set[str]:
    """Shards with page summaries or questions that were made when other lines of their documents were common."""
    common = common_lines(lake, least_documents)
    shards = set()
    for table in (PAGE_SUMMARIES, SYNTHETIC_QA):
        for shard in lake.latest(table):
            stored_keys = finished(lake.inputs(table, shard))
            if stored_keys != with_common_lines(
                lake, shard, common, {k: v.partition(_MARK)[0] for k, v in stored_keys.items()}
            ):
                shards.add(shard)
    return shards
