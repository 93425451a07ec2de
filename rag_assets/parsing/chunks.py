"""The chunking step: brings `chunks` in step with `pages` and `blocks`."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import Tokenizer
from rag_assets.contracts.tables import BLOCKS, CHUNKS
from rag_assets.parsing.chunking import chunk_page
from rag_assets.parsing.records import Record, chunk_records, load_pages, rows
from rag_assets.store.incremental import Rows, StepReport, update_shard
from rag_assets.store.lake import Lake


def chunking_fingerprint(tokenizer_name: str, size_tokens: int, overlap_share: float) -> str:
    """Digest of the code and settings that chunks depend on."""
    return digest(code_fingerprint(f"{__name__}:update_chunks"), tokenizer_name, size_tokens, overlap_share)


def wanted_chunks(lake: Lake, shard: str, fingerprint: str) -> dict[str, str]:
    """What the passages of each document of a shard are to be computed from."""
    return {name: digest(key, fingerprint) for name, key in lake.inputs(BLOCKS, shard).items()}


def update_chunks(
    lake: Lake,
    shards: Sequence[str],
    tokenizer: Tokenizer,
    fingerprint: str,
    size_tokens: int,
    overlap_share: float,
    progress: Callable[[int, int], None],
) -> StepReport:
    """Cut the pages of some shards that changed into passages."""
    report = StepReport()
    for done, shard in enumerate(shards, start=1):

        def compute(documents: Sequence[str], shard: str = shard) -> Rows:
            records: list[Record] = []
            for document_id, (title, pages) in load_pages(lake, shard, documents).items():
                titles = document_titles(document_id, title)
                for page in pages:
                    chunks = chunk_page(page, titles, tokenizer, size_tokens, overlap_share)
                    records += chunk_records(document_id, page, chunks)
            return {CHUNKS.name: rows(CHUNKS.schema, records)}

        update_shard(lake, [CHUNKS], shard, wanted_chunks(lake, shard, fingerprint), compute, report)
        progress(done, len(shards))
    return report


def document_titles(document_id: str, title: str) -> list[str]:
    """Names of a document: its stated title and its file name without extension."""
    return [PurePosixPath(document_id).stem, title]
