"""The summary steps: bring `file_summaries` and `page_summaries` in step with the parsed pages."""

from collections.abc import Callable, Sequence

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.tables import BLOCKS, FILE_SUMMARIES, PAGE_SUMMARIES
from rag_assets.enrich.summaries import METHOD, fit, summarize_file, summarize_page
from rag_assets.parsing.chunks import document_titles
from rag_assets.parsing.language import detect_language
from rag_assets.parsing.records import Record, load_pages, rows
from rag_assets.store.incremental import Rows, StepReport, update_shard
from rag_assets.store.lake import Lake, shard_of


def summary_fingerprint(*lengths: int) -> str:
    """Digest of the code and settings that summaries depend on."""
    modules = ("rag_assets.enrich.summaries", "rag_assets.enrich.centrality", "rag_assets.parsing.language")
    return digest(code_fingerprint(__name__, *modules), *lengths)


def wanted_file_summaries(lake: Lake, shard: str, file_chars: int) -> dict[str, str]:
    """What the summary of each document of a shard is to be computed from."""
    fingerprint = summary_fingerprint(file_chars)
    return {name: digest(key, fingerprint) for name, key in lake.inputs(BLOCKS, shard).items()}


def wanted_page_summaries(lake: Lake, shard: str, file_chars: int, page_chars: int) -> dict[str, str]:
    """What the page summaries of each document of a shard are to be computed from."""
    fingerprint = summary_fingerprint(file_chars, page_chars)
    return {name: digest(key, fingerprint) for name, key in lake.inputs(FILE_SUMMARIES, shard).items()}


def update_file_summaries(
    lake: Lake, shards: Sequence[str], file_chars: int, progress: Callable[[int, int], None]
) -> StepReport:
    """Summarize the documents of some shards that changed.

    Args:
        lake: Where the tables are.
        shards: Shards to look at.
        file_chars: Characters of a summary at most.
        progress: Told shards done and shards in all.
    """
    report = StepReport()
    for done, shard in enumerate(shards, start=1):

        def compute(documents: Sequence[str], shard: str = shard) -> Rows:
            records: list[Record] = []
            for document_id, (title, pages) in load_pages(lake, shard, documents).items():
                if any(page.blocks for page in pages):
                    text = summarize_file(file_title(document_id, title), pages, file_chars)
                    records.append({"document_id": document_id, **_summary(document_id, text)})
            return {FILE_SUMMARIES.name: rows(FILE_SUMMARIES.schema, records)}

        wanted = wanted_file_summaries(lake, shard, file_chars)
        update_shard(lake, [FILE_SUMMARIES], shard, wanted, compute, report)
        progress(done, len(shards))
    return report


def update_page_summaries(
    lake: Lake, shards: Sequence[str], file_chars: int, page_chars: int, progress: Callable[[int, int], None]
) -> StepReport:
    """Summarize the pages of the documents of some shards that changed.

    Args:
        lake: Where the tables are.
        shards: Shards to look at.
        file_chars: Characters on the file, at most; taken from the start of the file's summary.
        page_chars: Characters on the page, at most.
        progress: Told shards done and shards in all.
    """
    report = StepReport()
    for done, shard in enumerate(shards, start=1):

        def compute(documents: Sequence[str], shard: str = shard) -> Rows:
            summaries = lake.read(FILE_SUMMARIES, [shard], ["document_id", "text"]).to_pylist()
            of_file = {row["document_id"]: row["text"] for row in summaries}
            records: list[Record] = []
            for document_id, (_, pages) in load_pages(lake, shard, documents).items():
                head = _head(of_file.get(document_id, ""), file_chars)
                for page in pages:
                    if text := summarize_page(page, head, page_chars):
                        place = {"page_number": page.number, "page_name": page.name}
                        page_id = f"{document_id}#{page.number}"
                        records.append(
                            {"page_id": page_id, "document_id": document_id, **place, **_summary(document_id, text)}
                        )
            return {PAGE_SUMMARIES.name: rows(PAGE_SUMMARIES.schema, records)}

        wanted = wanted_page_summaries(lake, shard, file_chars, page_chars)
        update_shard(lake, [PAGE_SUMMARIES], shard, wanted, compute, report)
        progress(done, len(shards))
    return report


def file_title(document_id: str, title: str) -> str:
    """Title of a document for its summary: file name and stated title."""
    return " ".join(dict.fromkeys(document_titles(document_id, title)))


def _head(text: str, length: int) -> str:
    parts = text.split(" / ")
    return fit(parts, length, " / ") or text[:length]


def _summary(document_id: str, text: str) -> Record:
    return {
        "shard": shard_of(document_id),
        "language": detect_language(text),
        "method": METHOD,
        "length_chars": len(text),
        "text": text,
    }
