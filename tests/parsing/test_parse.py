import json
import logging
import zipfile
from collections import Counter
from dataclasses import replace

import docx
import openpyxl
import pptx
import pytest
from golden import CORPUS, LIMITS, needs_corpus
from office_building import saved, zipped
from pptx.util import Pt

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, Failure, Page, ParsedDocument
from rag_assets.parsing import parse
from rag_assets.parsing.parse import nothing_read, parse_bytes
from rag_assets.parsing.pool import ParseJob, parse_files
from rag_assets.parsing.records import document_record
from rag_assets.sources.listing import SourceFile

PARSED: tuple[FailureCause, ...] = ()
# What each category may come to, besides pages with text. Several files that other readers found malformed are read.
ALLOWED = {
    "encrypted": {FailureCause.ENCRYPTED},
    "malformed": {
        FailureCause.MALFORMED,
        FailureCause.NO_TEXT,
        FailureCause.ENCRYPTED,
        FailureCause.NOT_CALCULATED,
    },
    "hostile": {FailureCause.TOO_LARGE, FailureCause.NO_TEXT, FailureCause.MALFORMED},
    "fuzzed_but_readable": {FailureCause.NO_TEXT},
    "scanned_pdf": {FailureCause.NO_TEXT},
    "slow": {FailureCause.NO_TEXT},
    "xlsx_empty": {FailureCause.NO_TEXT, FailureCause.MALFORMED},
}


@needs_corpus
def test_every_file_of_the_corpus() -> None:
    manifest = [json.loads(line) for line in (CORPUS.parent / "manifest.jsonl").read_text().splitlines()]
    found = [ParseJob(item["path"], CORPUS / item["path"], item["sha256"]) for item in manifest]
    results = {job.document_id: document for job, document in parse_files(found, workers=2, limits=LIMITS)}
    assert len(results) == len(manifest) == 128
    default_password = {item["path"] for item in manifest if item.get("password") == "VelvetSweatshop"}
    for path, document in results.items():
        category = path.split("/")[0]
        causes = {failure.cause for failure in document.failures}
        assert causes <= ALLOWED.get(category, set()), (path, document.failures)
        assert causes or has_text(document), path
        if category == "encrypted" and path not in default_password:
            assert causes == {FailureCause.ENCRYPTED}, path
        if category not in ALLOWED:
            assert has_text(document), path
    malformed = Counter(bool(doc.failures) for path, doc in results.items() if path.startswith("malformed/"))
    assert malformed[True] >= 17


def has_text(document: ParsedDocument) -> bool:
    return any(block.text.strip() for page in document.pages for block in page.blocks)


def office_files(text: str) -> dict[str, bytes]:
    """A workbook, a text document and a presentation that hold one text."""
    workbook, document, presentation = openpyxl.Workbook(), docx.Document(), pptx.Presentation()
    workbook["Sheet"]["A1"] = text
    document.add_paragraph(text)
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    slide.shapes.add_textbox(0, 0, Pt(200), Pt(40)).text_frame.text = text
    return {"a.xlsx": saved(workbook), "a.docx": saved(document), "a.pptx": saved(presentation)}


def test_every_reader_gives_ideographs_for_radicals() -> None:
    text = "⽉額の料⾦は⻑期の契約でも同じです。"
    letter = "Subject: x\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n"
    texts = {"a.txt": text, "a.md": text, "a.html": f"<p>{text}</p>", "a.csv": f"品名,{text}", "a.eml": letter + text}
    files = {name: written.encode() for name, written in texts.items()} | office_files(text)
    for name, data in files.items():
        (page,) = parse_bytes(data, name, LIMITS).pages
        assert "月額の料金は長期の契約でも同じです。" in page.blocks[-1].text, name


def test_wrapped_lines_are_joined_at_a_radical() -> None:
    lines = [*["この表に示す料金には、通信に掛かる費用も、機器を借りる費用も全て含む。"] * 3]
    lines[0] = "ここに示す料金には、通信に掛かる費用も、機器を借りる費用も含み、期間も"
    (page,) = parse_bytes("\n".join([lines[0], "⽤途も問わない。", *lines[1:]]).encode(), "a.txt", LIMITS).pages
    assert "期間も用途も問わない。" in page.blocks[0].text


@pytest.mark.parametrize(
    ("data", "file_name", "cause", "words"),
    [
        (b"", "a.docx", FailureCause.NO_TEXT, "empty"),
        (b"  \n", "a.txt", FailureCause.NO_TEXT, "no text"),
        (b"<html><script>x</script></html>", "a.html", FailureCause.NO_TEXT, "no text"),
        (b"\x89PNG\r\n\x1a\n" + bytes(9), "a.png", FailureCause.UNSUPPORTED_FORMAT, "it is a PNG image"),
        (b"PK\x03\x04broken", "a.docx", FailureCause.MALFORMED, "zip"),
        (b"%PDF-1.4 broken", "a.pdf", FailureCause.MALFORMED, "cannot be opened"),
        (bytes([0, 1, 2, 0x80]) * 99, "a.xls", FailureCause.MALFORMED, ""),
        (b"x" * (LIMITS.file_bytes + 1), "a.txt", FailureCause.TOO_LARGE, "limit"),
    ],
)
def test_failures_are_values(data: bytes, file_name: str, cause: FailureCause, words: str) -> None:
    (failure,) = parse_bytes(data, file_name, LIMITS).failures
    assert failure.cause is cause
    assert words in failure.message
    assert "\n" not in failure.message


def test_unexpected_exceptions_name_their_type(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> ParsedDocument:
        raise IndexError("list index\nout of range")

    monkeypatch.setattr(parse, "_dispatch", fail)
    with caplog.at_level(logging.WARNING):
        document = parse_bytes(b"x", "a.txt", LIMITS)
    (failure,) = document.failures
    assert (document.format, failure.cause) == ("txt", FailureCause.MALFORMED)
    assert failure.message == "the parser failed with IndexError: list index out of range"
    assert failure.traceback_id
    assert failure.traceback_id in caplog.text


def test_memory_error_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> ParsedDocument:
        raise MemoryError

    monkeypatch.setattr(parse, "_dispatch", fail)
    assert parse_bytes(b"x", "a.txt", LIMITS).failures[0].cause is FailureCause.MEMORY


def test_zip_limits_are_checked_before_anything_is_expanded() -> None:
    parts = {"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<w>" + b" " * (1 << 24)}
    data = zipped(parts, zipfile.ZIP_DEFLATED)
    for limits in (replace(LIMITS, expanded_bytes=1 << 20), replace(LIMITS, archive_entries=1)):
        (failure,) = parse_bytes(data, "bomb.docx", limits).failures
        assert failure.cause is FailureCause.TOO_LARGE


def test_entities_are_not_expanded() -> None:
    bomb = (
        '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">'
        + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
        + "]><document><body><p><r><t>&j;</t></r></p></body></document>"
    )
    (failure,) = parse_bytes(zipped({"word/document.xml": bomb}), "bomb.docx", LIMITS).failures
    assert failure.cause is FailureCause.MALFORMED


def test_kinds_of_text_files() -> None:
    document = parse_bytes(b"# Title\n\ntext\n", "a.md", LIMITS)
    (page,) = document.pages
    assert (document.format, page.kind) == ("md", PageKind.BODY)
    assert [block.kind for block in page.blocks] == [BlockKind.HEADING, BlockKind.PARAGRAPH]


@pytest.mark.parametrize(
    ("title", "name", "kept"),
    [
        ("Memo on GitHub", "a.html", None),
        ("Memo on GitHub", "memo_2.html", "Memo on GitHub"),
        ("The licence of the software", "a.html", "The licence of the software"),
        ("備忘録", "a.html", None),
    ],
)
def test_a_title_of_another_file_is_none(title: str, name: str, kept: str | None) -> None:
    html = f"<html><head><title>{title}</title></head><body><p>Licence terms of programs.</p></body></html>"
    assert parse_bytes(html.encode(), name, LIMITS).title == kept


def test_a_document_of_which_no_page_is_read_has_failed() -> None:
    reasons = [Failure(FailureCause.NO_TEXT, f"page {number}: a picture", number) for number in (1, 2, 3)]
    pages = tuple(Page(number, PageKind.PAGE, ()) for number in (1, 2, 3))
    [whole] = nothing_read(ParsedDocument("pdf", pages=pages, failures=tuple(reasons)))
    assert (whole.page_number, whole.cause) == (None, FailureCause.NO_TEXT)
    assert whole.message == "nothing was read of 3 pages: page 1: a picture"
    read = replace(pages[0], blocks=(Block(BlockKind.PARAGRAPH, "text"),))
    in_part = ParsedDocument("pdf", pages=(read, *pages[1:]), failures=tuple(reasons[1:]))
    assert nothing_read(in_part) == ()
    file = SourceFile("s/a.pdf", "s", "/a.pdf", "/a.pdf", 1, None, "1:1", local=True)
    record = document_record(file, "0" * 64, in_part)
    assert (record["status"], record["unread_page_count"], record["partly_read_page_count"]) == ("parsed", 2, 0)
