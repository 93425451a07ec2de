"""The summary steps: bring `page_summaries` and `file_summaries` in step with the parsed pages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath

from rag_assets.contracts.content import Page, page_id_of
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import BLOCKS, DOCUMENTS, FILE_SUMMARIES, PAGE_SUMMARIES
from rag_assets.enrich.summaries.boilerplate import (
    CommonLines,
    common_lines,
    common_marks,
    marked,
    page_lines,
    update_document_lines,
)
from rag_assets.enrich.summaries.dialogues import (
    Attempt,
    Subject,
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
from rag_assets.enrich.written import Written, side_by_side, update_with_model
from rag_assets.models.dialogue import Dialogue
from rag_assets.parsing.chunks import document_titles
from rag_assets.parsing.records import Record, load_pages, rows
from rag_assets.store.incremental import Rows, StepReport, update_shard
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.language import detect_language

Progress = Callable[[int, int], None]


def page_summaries_code() -> str:
    """Digest of the code and prompts that the summaries of pages depend on."""
    return code_fingerprint(f"{__name__}:update_page_summaries")


def file_summaries_code() -> str:
    """Digest of the code and prompts that the summaries of documents depend on."""
    return code_fingerprint(f"{__name__}:update_file_summaries")


def wanted_page_summaries(lake: Lake, shard: str, lengths: SummaryOptions, model_name: str) -> dict[str, str]:
    """What the page summaries of each document of a shard are to be computed from, but for its common lines."""
    amounts = (lengths.page_file_chars, lengths.page_chars, lengths.read_tokens, lengths.boilerplate_documents)
    fingerprint = digest(page_summaries_code(), *amounts)
    return {name: digest(key, fingerprint, model_name) for name, key in lake.inputs(BLOCKS, shard).items()}


def wanted_file_summaries(lake: Lake, shard: str, lengths: SummaryOptions, model_name: str) -> dict[str, str]:
    """What the summary of each document of a shard is to be computed from."""
    fingerprint = digest(file_summaries_code(), lengths.file_chars, lengths.read_tokens)
    return {name: digest(key, fingerprint, model_name) for name, key in lake.inputs(PAGE_SUMMARIES, shard).items()}


def update_page_summaries(
    lake: Lake, shards: Sequence[str], model: LanguageModel, lengths: SummaryOptions, progress: Progress
) -> StepReport:
    """Summarize the pages of the documents of some shards that changed, and note their lines before.

    Without a language model, summaries are written anew when other lines of their document have become common. With one
    they are not, because a changed file should cost its own calls only, but where the number of documents that makes a
    line common is another.

    Args:
        lake: Where the tables are.
        shards: Shards to look at.
        model: The language model; one that does not write leaves it to the extractive algorithm.
        lengths: Lengths of summaries.
        progress: Told documents or shards done, and in all.

    Raises:
        ModelError: The model cannot be used any longer; what was done before is written.
    """
    lines = update_document_lines(lake, shards)
    common = common_lines(lake, lengths.boilerplate_documents)

    def extract(shard: str, documents: Sequence[str]) -> Rows:
        records: list[Record] = []
        for document_id, (title, pages) in load_pages(lake, shard, documents).items():
            for page in pages:
                records += _extracted_page(document_id, title, pages, page, common, lengths)
        return {PAGE_SUMMARIES.name: rows(PAGE_SUMMARIES.schema, records)}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Written]]]:
        fitted = lengths.fitted(model.context_tokens)
        languages = _languages(lake, shard)
        for document_id, (title, pages) in load_pages(lake, shard, documents).items():
            subject = _subject(document_id, shard, languages[document_id], title, pages)
            yield document_id, _written_pages(subject, title, pages, common, fitted, model.name)

    wanted = partial(wanted_page_summaries, lake, lengths=lengths, model_name=model.name)
    if model.generative:
        report = update_with_model(lake, PAGE_SUMMARIES, shards, wanted, begin, model, progress)
    else:
        report = StepReport()
        for done, shard in enumerate(shards, start=1):
            marks = common_marks(lake, shard, common)
            weighed = {name: marked(key, marks.get(name)) for name, key in wanted(shard).items()}
            update_shard(lake, [PAGE_SUMMARIES], shard, weighed, partial(extract, shard), report)
            progress(done, len(shards))
    report.row_counts |= lines.row_counts
    for shard, made in lines.shards.items():
        report.of(shard).written += made.written
    return report


def update_file_summaries(
    lake: Lake, shards: Sequence[str], model: LanguageModel, lengths: SummaryOptions, progress: Progress
) -> StepReport:
    """Summarize the documents of some shards that changed; arguments and errors as of `update_page_summaries`."""
    common = common_lines(lake, lengths.boilerplate_documents)

    def extract(shard: str, documents: Sequence[str]) -> Rows:
        records: list[Record] = []
        for document_id, (title, pages) in load_pages(lake, shard, documents).items():
            records += _extracted_file(document_id, title, pages, common, lengths)
        return {FILE_SUMMARIES.name: rows(FILE_SUMMARIES.schema, records)}

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Written]]]:
        fitted = lengths.fitted(model.context_tokens)
        languages = _languages(lake, shard)
        of_pages: dict[str, dict[int, str]] = {}
        for row in lake.read(PAGE_SUMMARIES, [shard], ["document_id", "page_number", "text"]).to_pylist():
            of_pages.setdefault(row["document_id"], {})[row["page_number"]] = row["text"]
        for document_id, (title, pages) in load_pages(lake, shard, documents).items():
            subject = _subject(document_id, shard, languages[document_id], title, pages)
            summaries = of_pages.get(document_id, {})
            yield document_id, _written_file(subject, title, pages, summaries, common, fitted, model.name)

    wanted = partial(wanted_file_summaries, lake, lengths=lengths, model_name=model.name)
    if model.generative:
        return update_with_model(lake, FILE_SUMMARIES, shards, wanted, begin, model, progress)
    report = StepReport()
    for done, shard in enumerate(shards, start=1):
        update_shard(lake, [FILE_SUMMARIES], shard, wanted(shard), partial(extract, shard), report)
        progress(done, len(shards))
    return report


def _written_pages(
    subject: Subject, title: str, pages: Sequence[Page], common: CommonLines, lengths: SummaryOptions, method: str
) -> Dialogue[Written]:
    """Summaries of the pages of a document. Pages shorter than a summary, those that are no content, and those that the
    model could not do are left to the extractive algorithm.
    """
    asked = [page for page in content_pages(pages) if len(body_text(page)) > lengths.page_chars]
    shared = {page.number: [line for line in page_lines(page) if line in common] for page in asked}
    dialogues = [page_dialogue(subject, page, shared[page.number], lengths) for page in asked]
    attempts = dict(zip((page.number for page in asked), (yield from side_by_side(dialogues)), strict=True))
    name = file_title(subject.document_id, title)[: lengths.page_file_chars]
    records: list[Record] = []
    for page in pages:
        attempt = attempts.get(page.number)
        if attempt is None or attempt.summary is None:
            records += _extracted_page(subject.document_id, title, pages, page, common, lengths)
            continue
        text = SEPARATOR.join(filter(None, (name, attempt.summary.file, page.name, attempt.summary.page)))
        records.append(_page_record(subject.document_id, page, text, method))
    return Written(records, retry=any(attempt.retry for attempt in attempts.values()))


def _written_file(
    subject: Subject,
    title: str,
    pages: Sequence[Page],
    page_summaries: Mapping[int, str],
    common: CommonLines,
    lengths: SummaryOptions,
    method: str,
) -> Dialogue[Written]:
    """Summary of a document; where the model could not do it, or the document is shorter, the extractive one."""
    content = content_pages(pages)
    text = "\n\n".join(filter(None, map(body_text, content)))
    name = file_title(subject.document_id, title)
    attempt = Attempt(None)
    if len(text) > lengths.file_chars:
        if not fits_one_call(text, lengths):
            heads = (file_head(name, pages, lengths.page_file_chars), name[: lengths.page_file_chars])
            written = [page_summaries[page.number] for page in content if page.number in page_summaries]
            text = "\n".join(_without_head(summary, heads) for summary in written)
        attempt = yield from file_dialogue(subject, text, lengths)
    if attempt.summary is None:
        return Written(_extracted_file(subject.document_id, title, pages, common, lengths), attempt.retry)
    facts = _facts(subject.document_id, SEPARATOR.join((name, attempt.summary.file)), method)
    return Written([{"document_id": subject.document_id, **facts}], attempt.retry)


def _without_head(summary: str, heads: Sequence[str]) -> str:
    """A page summary without the name of its file, so that a renamed file costs no call."""
    head = next((head for head in heads if summary.startswith(f"{head}{SEPARATOR}")), "")
    return summary.removeprefix(f"{head}{SEPARATOR}")


def _extracted_page(
    document_id: str, title: str, pages: Sequence[Page], page: Page, common: CommonLines, lengths: SummaryOptions
) -> list[Record]:
    name = file_title(document_id, title)
    if page.role is None or page in content_pages(pages):
        head = file_head(name, pages, lengths.page_file_chars)
        text = summarize_page(page, head, lengths.page_chars, common)
    else:
        text = summarize_role(page, page.role, name[: lengths.page_file_chars])
    return [_page_record(document_id, page, text, METHOD)] if text else []


def _extracted_file(
    document_id: str, title: str, pages: Sequence[Page], common: CommonLines, lengths: SummaryOptions
) -> list[Record]:
    if not any(page.blocks for page in pages):
        return []
    text = summarize_file(file_title(document_id, title), pages, lengths.file_chars, common)
    return [{"document_id": document_id, **_facts(document_id, text, METHOD)}]


def _languages(lake: Lake, shard: str) -> dict[str, str]:
    rows_of_shard = lake.read(DOCUMENTS, [shard], ["document_id", "language"]).to_pylist()
    return {row["document_id"]: row["language"] for row in rows_of_shard}


def _subject(document_id: str, shard: str, language: str, title: str, pages: Sequence[Page]) -> Subject:
    names = [page.name or "" for page in content_pages(pages)]
    return Subject(document_id, shard, language, _stated_title(document_id, title), names)


def _stated_title(document_id: str, title: str) -> str:
    """The title that the file states; empty where the title is the file's name."""
    return "" if title == PurePosixPath(document_id).stem else title


def file_title(document_id: str, title: str) -> str:
    """Title of a document for its summary: file name and stated title."""
    return " ".join(dict.fromkeys(document_titles(document_id, title)))


def _page_record(document_id: str, page: Page, text: str, method: str) -> Record:
    place = {"page_id": page_id_of(document_id, page.number), "page_number": page.number, "page_name": page.name}
    return {"document_id": document_id, **place, **_facts(document_id, text, method)}


def _facts(document_id: str, text: str, method: str) -> Record:
    return {
        "shard": shard_of(document_id),
        "language": detect_language(text),
        "method": method,
        "length_chars": len(text),
        "text": text,
    }
