"""The summary steps: bring `page_summaries` and `file_summaries` in step with the parsed pages."""

from collections.abc import Iterator, Mapping, Sequence

from rag_assets.contracts.content import Page, page_id_of
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import BLOCKS, FILE_SUMMARIES, PAGE_SUMMARIES
from rag_assets.enrich.documents import Document, load_documents
from rag_assets.enrich.summaries.boilerplate import (
    CommonLines,
    common_lines,
    page_lines,
    update_document_lines,
    with_common_lines,
)
from rag_assets.enrich.summaries.dialogues import (
    SummaryOptions,
    body_text,
    file_dialogue,
    fits_one_call,
    page_dialogue,
)
from rag_assets.enrich.summaries.extraction import (
    METHOD,
    SEPARATOR,
    content_pages,
    file_head,
    summarize_file,
    summarize_page,
    summarize_role,
)
from rag_assets.enrich.written import Progress, Records, side_by_side, update_documents
from rag_assets.models.dialogue import Dialogue
from rag_assets.parsing.records import Record, document_titles
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.language import detect_language


def wanted_page_summaries(lake: Lake, shard: str, lengths: SummaryOptions, model_name: str) -> dict[str, str]:
    """What the page summaries of each document of a shard are to be computed from, but for its common lines."""
    code = code_fingerprint(f"{__name__}:update_page_summaries")
    amounts = (lengths.page_file_chars, lengths.page_chars, lengths.read_tokens, lengths.boilerplate_documents)
    fingerprint = digest(code, *amounts)
    return {name: digest(key, fingerprint, model_name) for name, key in lake.inputs(BLOCKS, shard).items()}


def wanted_file_summaries(lake: Lake, shard: str, lengths: SummaryOptions, model_name: str) -> dict[str, str]:
    """What the summary of each document of a shard is to be computed from."""
    code = code_fingerprint(f"{__name__}:update_file_summaries")
    fingerprint = digest(code, lengths.file_chars, lengths.read_tokens)
    return {name: digest(key, fingerprint, model_name) for name, key in lake.inputs(PAGE_SUMMARIES, shard).items()}


def update_page_summaries(
    lake: Lake, shards: Sequence[str], model: LanguageModel, lengths: SummaryOptions, progress: Progress
) -> StepReport:
    """Summarize the pages of the documents of some shards that changed, and note their lines before.

    Without a language model, summaries are written anew when other lines of their document have become common. With one
    they are not, because a changed file should cost its own calls only, but where the number of documents that makes a
    line common is another.

    Raises:
        ModelError: The model cannot be used any longer; what was done before is written.
    """
    lines = update_document_lines(lake, shards)
    common = common_lines(lake, lengths.boilerplate_documents)

    def wanted(shard: str) -> Mapping[str, str]:
        keys = wanted_page_summaries(lake, shard, lengths, model.name)
        return keys if model.generative else with_common_lines(lake, shard, common, keys)

    def extract(shard: str, documents: Sequence[str]) -> Records:
        loaded = load_documents(lake, shard, documents)
        records = [
            row for each in loaded for page in each.pages for row in _extracted_page(each, page, common, lengths)
        ]
        return {PAGE_SUMMARIES.name: records}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        fitted = lengths.fitted(model.context_tokens)
        for document in load_documents(lake, shard, documents):
            yield document.document_id, _written_pages(document, common, fitted, model.name)

    report = update_documents(lake, PAGE_SUMMARIES, shards, wanted, extract, begin, model, progress)
    report.row_counts |= lines.row_counts
    for shard, made in lines.shards.items():
        report.of(shard).written += made.written
    return report


def update_file_summaries(
    lake: Lake, shards: Sequence[str], model: LanguageModel, lengths: SummaryOptions, progress: Progress
) -> StepReport:
    """Summarize the documents of some shards that changed; errors as of `update_page_summaries`."""
    common = common_lines(lake, lengths.boilerplate_documents)

    def wanted(shard: str) -> Mapping[str, str]:
        return wanted_file_summaries(lake, shard, lengths, model.name)

    def extract(shard: str, documents: Sequence[str]) -> Records:
        loaded = load_documents(lake, shard, documents)
        return {FILE_SUMMARIES.name: [row for each in loaded for row in _extracted_file(each, common, lengths)]}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        fitted = lengths.fitted(model.context_tokens)
        of_pages: dict[str, dict[int, str]] = {}
        for row in lake.read(PAGE_SUMMARIES, [shard], ["document_id", "page_number", "text"]).to_pylist():
            of_pages.setdefault(row["document_id"], {})[row["page_number"]] = row["text"]
        for document in load_documents(lake, shard, documents):
            summaries = of_pages.get(document.document_id, {})
            yield document.document_id, _written_file(document, summaries, common, fitted, model.name)

    return update_documents(lake, FILE_SUMMARIES, shards, wanted, extract, begin, model, progress)


def _written_pages(document: Document, common: CommonLines, lengths: SummaryOptions, method: str) -> Dialogue[Records]:
    """Summaries of the pages of a document. Pages shorter than a summary, those that are no content, and those that the
    model could not do are left to the extractive algorithm.
    """
    content = content_pages(document.pages)
    subject = document.subject(content)
    asked = [page for page in content if len(body_text(page)) > lengths.page_chars]
    shared = {page.number: [line for line in page_lines(page) if line in common] for page in asked}
    dialogues = [page_dialogue(subject, page, shared[page.number], lengths) for page in asked]
    summaries = dict(zip((page.number for page in asked), (yield from side_by_side(dialogues)), strict=True))
    name = file_title(document)[: lengths.page_file_chars]
    records: list[Record] = []
    for page in document.pages:
        summary = summaries.get(page.number)
        if summary is None:
            records += _extracted_page(document, page, common, lengths)
            continue
        text = SEPARATOR.join(filter(None, (name, summary["file"], page.name, summary["page"])))
        records.append(_page_record(document, page, text, method))
    return {PAGE_SUMMARIES.name: records}


def _written_file(
    document: Document, page_summaries: Mapping[int, str], common: CommonLines, lengths: SummaryOptions, method: str
) -> Dialogue[Records]:
    """Summary of a document; where the model could not do it, or the document is shorter, the extractive one."""
    content = content_pages(document.pages)
    text = "\n\n".join(filter(None, map(body_text, content)))
    name = file_title(document)
    summary = None
    if len(text) > lengths.file_chars:
        if not fits_one_call(text, lengths):
            heads = (file_head(name, document.pages, lengths.page_file_chars), name[: lengths.page_file_chars])
            written = [page_summaries[page.number] for page in content if page.number in page_summaries]
            text = "\n".join(_without_head(summary, heads) for summary in written)
        summary = yield from file_dialogue(document.subject(content), text, lengths)
    if summary is None:
        return {FILE_SUMMARIES.name: _extracted_file(document, common, lengths)}
    return {FILE_SUMMARIES.name: [_record(document, SEPARATOR.join((name, summary)), method)]}


def _without_head(summary: str, heads: Sequence[str]) -> str:
    """A page summary without the name of its file, so that a renamed file costs no call."""
    head = next((head for head in heads if summary.startswith(f"{head}{SEPARATOR}")), "")
    return summary.removeprefix(f"{head}{SEPARATOR}")


def _extracted_page(document: Document, page: Page, common: CommonLines, lengths: SummaryOptions) -> list[Record]:
    name = file_title(document)
    if page.role is None or page in content_pages(document.pages):
        head = file_head(name, document.pages, lengths.page_file_chars)
        text = summarize_page(page, head, lengths.page_chars, common)
    else:
        text = summarize_role(page, page.role, name[: lengths.page_file_chars])
    return [_page_record(document, page, text, METHOD)] if text else []


def _extracted_file(document: Document, common: CommonLines, lengths: SummaryOptions) -> list[Record]:
    if not any(page.blocks for page in document.pages):
        return []
    text = summarize_file(file_title(document), document.pages, lengths.file_chars, common)
    return [_record(document, text, METHOD)]


def file_title(document: Document) -> str:
    """Title of a document for its summary: file name and stated title."""
    return " ".join(dict.fromkeys(document_titles(document.document_id, document.title)))


def _page_record(document: Document, page: Page, text: str, method: str) -> Record:
    place = {"page_id": page_id_of(document.document_id, page.number), "page_number": page.number}
    return {**place, "page_name": page.name, **_record(document, text, method)}


def _record(document: Document, text: str, method: str) -> Record:
    return {
        "document_id": document.document_id,
        "shard": shard_of(document.document_id),
        "language": detect_language(text),
        "method": method,
        "length_chars": len(text),
        "text": text,
    }
