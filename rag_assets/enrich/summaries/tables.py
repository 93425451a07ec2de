"""The summary steps: bring `page_summaries` and `file_summaries` in step with the parsed pages.

Where a language model writes, a page is summarised from its text; a page too long for one call, in parts whose
summaries are summarised again. A file that fits one call is summarised from its text, a longer one from the summaries
of its pages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rag_assets.contracts.content import Page, page_id_of
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.generation import Completion, Request, Tag
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import BLOCKS, FILE_SUMMARIES, PAGE_SUMMARIES
from rag_assets.enrich.documents import TITLE_TOKENS, Document, Subject, body_text, load_documents
from rag_assets.enrich.summaries.boilerplate import (
    CommonLines,
    common_lines,
    page_lines,
    update_document_lines,
    with_common_lines,
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
from rag_assets.enrich.written import Progress, Records, update_documents
from rag_assets.models.dialogue import Dialogue, side_by_side
from rag_assets.models.prompts import SLACK, answer_tokens, fenced, prompted
from rag_assets.parsing.records import Record, document_titles
from rag_assets.store.incremental import StepReport
from rag_assets.store.lake import Lake, shard_of
from rag_assets.text.language import detect_language
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens, split_to_tokens

PAGE_STEP = "summarize_page"
FILE_STEP = "summarize_file"

_ANSWER_TOKENS = 64  # for the form of the answer
_PROMPT_TOKENS = 1500  # for the system text
_NAMES_TOKENS = 400
_COMMON_TOKENS = 300


@dataclass(frozen=True)
class SummaryOptions:
    """How summaries are made: lengths in characters, and of what is read in tokens."""

    file_chars: int  # of a file summary
    page_file_chars: int  # of a page summary: on the file
    page_chars: int  # of a page summary: on the page
    read_tokens: int  # of the text that one call reads, at most
    boilerplate_documents: int  # documents from which a line that they share is boilerplate; 0 for never

    def fitted(self, context_tokens: int) -> "SummaryOptions":
        """These options, with what is read cut to what a model takes."""
        longest = max(self.file_chars, self.page_file_chars + self.page_chars)
        overhead = (
            _PROMPT_TOKENS + TITLE_TOKENS + _NAMES_TOKENS + _COMMON_TOKENS + answer_tokens(longest, _ANSWER_TOKENS)
        )
        return replace(self, read_tokens=max(256, min(self.read_tokens, context_tokens - overhead)))


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

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        fitted_lengths = lengths.fitted(model.context_tokens)
        for document in load_documents(lake, shard, documents):
            yield document.document_id, _written_pages(document, common, fitted_lengths, model)

    report = update_documents(lake, [PAGE_SUMMARIES], shards, wanted, begin, model, progress)
    report.row_counts |= lines.row_counts
    for shard, shard_report in lines.shards.items():
        report.of(shard).written += shard_report.written
    return report


def update_file_summaries(
    lake: Lake, shards: Sequence[str], model: LanguageModel, lengths: SummaryOptions, progress: Progress
) -> StepReport:
    """Summarize the documents of some shards that changed; errors as of `update_page_summaries`."""
    common = common_lines(lake, lengths.boilerplate_documents)

    def wanted(shard: str) -> Mapping[str, str]:
        return wanted_file_summaries(lake, shard, lengths, model.name)

    def begin(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[Records]]]:
        fitted_lengths = lengths.fitted(model.context_tokens)
        of_pages: dict[str, dict[int, str]] = {}
        for row in lake.read(PAGE_SUMMARIES, [shard], ["document_id", "page_number", "text"]).to_pylist():
            of_pages.setdefault(row["document_id"], {})[row["page_number"]] = row["text"]
        for document in load_documents(lake, shard, documents):
            summaries = of_pages.get(document.document_id, {})
            yield document.document_id, _written_file(document, summaries, common, fitted_lengths, model)

    return update_documents(lake, [FILE_SUMMARIES], shards, wanted, begin, model, progress)


def _written_pages(
    document: Document, common: CommonLines, lengths: SummaryOptions, model: LanguageModel
) -> Dialogue[Records]:
    """Summaries of the pages of a document. Pages shorter than a summary, those that are no content, and those that the
    model could not do are left to the extractive algorithm.
    """
    content = content_pages(document.pages)
    subject = document.subject(content)
    long_pages = [page for page in content if model.generative and len(body_text(page)) > lengths.page_chars]
    shared_lines = {page.number: [line for line in page_lines(page) if line in common] for page in long_pages}
    dialogues = [page_dialogue(subject, page, shared_lines[page.number], lengths) for page in long_pages]
    summaries = dict(zip((page.number for page in long_pages), (yield from side_by_side(dialogues)), strict=True))
    name = file_title(document)[: lengths.page_file_chars]
    records: list[Record] = []
    for page in document.pages:
        summary = summaries.get(page.number)
        if summary is None:
            records += _extracted_page(document, page, common, lengths)
            continue
        text = SEPARATOR.join(filter(None, (name, summary["file"], page.name, summary["page"])))
        records.append(_page_record(document, page, text, model.name))
    return {PAGE_SUMMARIES.name: records}


def _written_file(
    document: Document,
    page_summaries: Mapping[int, str],
    common: CommonLines,
    lengths: SummaryOptions,
    model: LanguageModel,
) -> Dialogue[Records]:
    """Summary of a document; where the model could not do it, or the document is shorter, the extractive one."""
    content = content_pages(document.pages)
    text = "\n\n".join(filter(None, map(body_text, content)))
    name = file_title(document)
    summary = None
    if model.generative and len(text) > lengths.file_chars:
        if estimate_tokens(text) > lengths.read_tokens:  # the file is not read as a whole
            heads = (file_head(name, document.pages, lengths.page_file_chars), name[: lengths.page_file_chars])
            summaries = [page_summaries[page.number] for page in content if page.number in page_summaries]
            text = "\n".join(_without_head(summary, heads) for summary in summaries)
        summary = yield from file_dialogue(document.subject(content), text, lengths)
    if summary is None:
        return {FILE_SUMMARIES.name: _extracted_file(document, common, lengths)}
    return {FILE_SUMMARIES.name: [_record(document, SEPARATOR.join((name, summary)), model.name)]}


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


def page_dialogue(
    subject: Subject, page: Page, common: Sequence[str], lengths: SummaryOptions
) -> Dialogue[dict[str, str] | None]:
    """Summarize one page: what there is to say on its file (`file`) and on itself (`page`).

    Lines that other documents have, too, are told to the model as such; lengths are fitted to it.

    Returns:
        None where the model gave no summary.
    """
    values = {
        "file_chars": str(lengths.page_file_chars),
        "page_chars": str(lengths.page_chars),
        "page_name": fenced(page.name or "-", "name"),
        "common_lines": fenced(cut_to_tokens("\n".join(common), _COMMON_TOKENS) or "-", "lines"),
    }
    fields = {"file": lengths.page_file_chars, "page": lengths.page_chars}
    ask = partial(_request, subject, PAGE_STEP, PAGE_SUMMARIES.name, values, fields)
    return (yield from _summarized(body_text(page), lengths.read_tokens, ask, "page"))


def file_dialogue(subject: Subject, text: str, lengths: SummaryOptions) -> Dialogue[str | None]:
    """Summarize a file from its text or the summaries of its pages; None where the model gave no summary."""
    values, fields = {"file_chars": str(lengths.file_chars)}, {"summary": lengths.file_chars}
    ask = partial(_request, subject, FILE_STEP, FILE_SUMMARIES.name, values, fields)
    result = yield from _summarized(text, lengths.read_tokens, ask, "summary")
    return result["summary"] if result else None


def _summarized(text: str, tokens: int, ask: Callable[[str], Request], main: str) -> Dialogue[dict[str, str] | None]:
    """The fields of the summary of a text: of a long one, parts are summarised, then their summaries (field `main`)."""
    parts = split_to_tokens(text, tokens)
    while True:
        answers = yield [ask(part) for part in parts]
        all_fields = [fields for fields in map(_fields, answers) if fields.get(main)]
        if not all_fields:
            return None
        if len(parts) == 1:
            return all_fields[0]
        parts = _shorter([fields[main] for fields in all_fields], len(parts), tokens)


def _fields(answer: Completion) -> dict[str, str]:
    return {name: one_line(text) for name, text in (answer.fields or {}).items()}


def _shorter(summaries: Sequence[str], count: int, tokens: int) -> list[str]:
    """What to read in the next round: the summaries, in fewer parts than before; each is cut where that takes it."""
    parts = split_to_tokens("\n".join(summaries), tokens)
    if len(parts) < count:
        return parts
    share = max(8, (count - 1) * tokens // (2 * len(summaries)))
    return split_to_tokens("\n".join(cut_to_tokens(summary, share) for summary in summaries), tokens)[: count - 1]


def _request(
    subject: Subject, step: str, asset: str, values: dict[str, str], fields: dict[str, int], text: str
) -> Request:
    question = {
        **values,
        "title": subject.fenced_title,
        "page_names": subject.fenced_page_names(_NAMES_TOKENS),
        "document": fenced(text),
    }
    return prompted(
        Tag(asset, step, subject.document_id, subject.shard),
        subject.language,
        answer_tokens(sum(fields.values()), _ANSWER_TOKENS),
        values,
        question,
        {name: {"type": "string", "maxLength": SLACK * max(1, chars)} for name, chars in fields.items()},
    )
