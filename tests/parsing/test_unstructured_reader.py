import importlib.util
import os
from collections.abc import Sequence
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any, get_args

import pytest

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, ParsedDocument
from rag_assets.parsing import unstructured as unstructured_reader
from rag_assets.parsing.documents import _Content, content_key
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.parse import parse_bytes
from rag_assets.parsing.pool import ParseJob, parse_files
from rag_assets.parsing.unstructured import FORMATS
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import ParsingSettings, Settings

DATA = Path(__file__).parents[1] / "data"
LIMITS = ParsingLimits(60.0, 1 << 30, 1 << 26, 1 << 28, 2000, 100_000, 100, unstructured_formats=tuple(sorted(FORMATS)))
BUILT_IN = replace(LIMITS, unstructured_formats=())
HTML = (
    "<html><body><h1>設計書</h1><p>注文番号は一意です。</p><h2>項目</h2><table><tr><th>名前</th><th>型</th></tr>"
    "<tr><td>id</td><td>整数</td></tr></table><ul><li>一覧の項目</li></ul></body></html>"
)
HEADING, PARAGRAPH, TABLE, LIST_ITEM = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.LIST_ITEM

needs_unstructured = pytest.mark.skipif(
    importlib.util.find_spec("unstructured") is None, reason="the extra `unstructured` is not installed"
)


def shown(blocks: Sequence[Block]) -> list[tuple[BlockKind, str, tuple[str, ...]]]:
    return [(block.kind, block.text, block.section) for block in blocks]


def message() -> bytes:
    letter = EmailMessage()
    letter["Subject"] = "会議の件"
    letter["From"] = "sato@example.org"
    letter.set_content("本文です。")
    letter.add_alternative("<h1>議題</h1><p>予算の承認です。</p>", subtype="html")
    letter.add_attachment(b"x", maintype="application", subtype="octet-stream", filename="図.bin")
    return letter.as_bytes()


@needs_unstructured
def test_files_are_read_in_the_confined_process(tmp_path: Path) -> None:
    contents = {
        "a.eml": message(),
        "a.html": HTML.encode("cp932"),
        "a.txt": "注文番号は一意です。\n\n- 一覧の項目\n".encode("cp932"),
        "a.xml": '<?xml version="1.0"?><r><a>注文番号は一意です。</a><b>二つ目</b></r>'.encode(),
        "undeclared.xml": "<r><a>宣言なし</a></r>".encode(),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    jobs = [ParseJob(name, tmp_path / name) for name in contents]
    read = {job.document_id: document for job, document in parse_files(jobs, workers=1, limits=LIMITS)}
    assert [document.failures for document in read.values()] == [()] * len(contents)
    pages = {name: shown(document.pages[0].blocks) for name, document in read.items()}
    assert pages["a.eml"] == [
        (HEADING, "会議の件", ()),
        (PARAGRAPH, "From: sato@example.org", ("会議の件",)),
        (HEADING, "議題", ("会議の件",)),
        (PARAGRAPH, "予算の承認です。", ("会議の件", "議題")),
        (BlockKind.NOTE, "添付ファイル: 図.bin", ("会議の件",)),
    ]
    assert pages["a.html"] == [
        (HEADING, "設計書", ()),
        (PARAGRAPH, "注文番号は一意です。", ("設計書",)),
        (HEADING, "項目", ("設計書",)),
        (TABLE, "名前 | 型\nid | 整数", ("設計書", "項目")),
        (LIST_ITEM, "一覧の項目", ("設計書", "項目")),
    ]
    assert pages["a.txt"] == [(PARAGRAPH, "注文番号は一意です。", ()), (LIST_ITEM, "一覧の項目", ())]
    assert pages["a.xml"] == [(PARAGRAPH, "注文番号は一意です。", ()), (PARAGRAPH, "二つ目", ())]
    assert pages["undeclared.xml"] == [(PARAGRAPH, "宣言なし", ())]
    assert {name: document.format for name, document in read.items()}["undeclared.xml"] == "xml"


@needs_unstructured
def test_word_is_read() -> None:
    document = parse_bytes((DATA / "word" / "word_tables.docx").read_bytes(), "a.docx", LIMITS)
    blocks = [block for page in document.pages for block in page.blocks]
    assert shown(blocks)[:2] == [
        (HEADING, "Test with tables", ()),
        (PARAGRAPH, "A uniform table", ("Test with tables",)),
    ]
    assert blocks[2].rows[0].cells == ("Header 0.0", "Header 0.1", "Header 0.2")


@needs_unstructured
def test_numbered_elements_become_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from unstructured.documents.elements import Element, ElementMetadata, Footer, Table, Text, Title

    def at(page: int, name: str, **facts: Any) -> ElementMetadata:
        return ElementMetadata(page_number=page, page_name=name, **facts)

    def partition(data: bytes) -> list[Element]:
        del data
        rows = "<table><tr><td>名前</td><td>型</td></tr><tr><td>id</td><td>整数</td></tr></table>"
        return [
            Title("概要", metadata=at(1, "表紙", category_depth=0)),
            Text("最初のシート", metadata=at(1, "表紙")),
            Table("名前 型 id 整数", metadata=at(3, "項目", text_as_html=rows)),
            Footer("3 / 3", metadata=at(3, "項目")),
        ]

    def parse(maximum_pages: int) -> ParsedDocument:
        data = (DATA / "excel" / "comments.xlsx").read_bytes()
        return parse_bytes(data, "a.xlsx", replace(LIMITS, pages=maximum_pages))

    monkeypatch.setitem(unstructured_reader._PARTITIONS, "xlsx", partition)
    document = parse(3)
    assert [(page.number, page.kind, page.name) for page in document.pages] == [
        (1, PageKind.SHEET, "表紙"),
        (2, PageKind.SHEET, None),
        (3, PageKind.SHEET, "項目"),
    ]
    first, second, third = (shown(page.blocks) for page in document.pages)
    assert first == [(HEADING, "概要", ()), (PARAGRAPH, "最初のシート", ("概要",))]
    assert second == []
    assert third == [(TABLE, "名前 | 型\nid | 整数", ()), (BlockKind.HEADER, "3 / 3", ())]
    (failure,) = parse(2).failures
    assert (failure.cause, failure.message) == (FailureCause.TOO_LARGE, "3 pages, limit 2")


@needs_unstructured
@pytest.mark.parametrize(
    ("error", "cause", "words"),
    [
        (ModuleNotFoundError("No module named 'pandas'"), FailureCause.UNSUPPORTED_FORMAT, "unstructured[csv]"),
        (
            PermissionError("parsing writes no files"),
            FailureCause.UNSUPPORTED_FORMAT,
            "than parsing allows",
        ),
        (RecursionError(), FailureCause.TOO_LARGE, "nested too deep"),
        (KeyError("charset"), FailureCause.MALFORMED, "KeyError"),
    ],
)
def test_what_goes_wrong_is_a_failure(
    error: Exception, cause: FailureCause, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def partition(data: bytes) -> list[Any]:
        raise error

    monkeypatch.setitem(unstructured_reader._PARTITIONS, "csv", partition)
    (failure,) = parse_bytes(b"a,b\n1,2\n", "a.csv", LIMITS).failures
    assert failure.cause is cause
    assert words in failure.message


def test_without_the_extra_the_failure_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    (failure,) = parse_bytes(message(), "a.eml", LIMITS).failures
    assert failure.cause is FailureCause.UNSUPPORTED_FORMAT
    assert failure.message == "eml is to be read by Unstructured: pip install 'rag-assets[unstructured]'"


@pytest.mark.parametrize(
    ("name", "data", "program"),
    [
        ("a.rtf", b"{\\rtf1 text}", "pandoc"),
        ("a.rst", b"Title\n=====\n", "pandoc"),
        ("a.org", b"* Title\n", "pandoc"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "LibreOffice"),
    ],
)
def test_formats_that_need_another_program_are_refused(name: str, data: bytes, program: str) -> None:
    if name == "a.doc":
        data = (data + bytes(504)).ljust(1024, b"\0")
        entry = "WordDocument".encode("utf-16-le") + b"\0\0"
        data += entry.ljust(64, b"\0") + len(entry).to_bytes(2, "little") + bytes(62)
    (failure,) = parse_bytes(data, name, LIMITS).failures
    assert failure.cause is FailureCause.UNSUPPORTED_FORMAT
    words = f"Unstructured needs {program} for {name[2:]}, and parsing starts no other programs"
    assert failure.message == words


@needs_unstructured
def test_archives_are_checked_before_they_are_expanded() -> None:
    data = (DATA / "word" / "word_tables.docx").read_bytes()
    (failure,) = parse_bytes(data, "a.docx", replace(LIMITS, archive_entries=1)).failures
    assert failure.cause is FailureCause.TOO_LARGE


@needs_unstructured
def test_telemetry_is_off() -> None:
    parse_bytes(b"<p>text</p>", "a.html", LIMITS)
    assert os.environ["DO_NOT_TRACK"]
    assert os.environ["SCARF_NO_ANALYTICS"]


def test_other_formats_keep_their_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unstructured_reader, "parse_by_unstructured", None)
    limits = replace(LIMITS, unstructured_formats=("eml", "rst"))
    for name in ("a.html", "a.org", "a.txt"):
        assert parse_bytes("<p>本文です</p>".encode(), name, limits).failures == ()


def test_the_setting_takes_the_formats_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ParsingSettings(unstructured_formats=tuple(sorted(FORMATS)))
    assert Home(Settings(home=tmp_path, parsing=chosen)).options.parsing.unstructured_formats == tuple(sorted(FORMATS))
    (annotated, _) = get_args(ParsingSettings.model_fields["unstructured_formats"].annotation)
    with pytest.raises(ValueError, match="unstructured_formats"):
        ParsingSettings(unstructured_formats=("docs",))
    (pattern,) = (item.pattern for item in annotated.__metadata__[0].metadata if hasattr(item, "pattern"))
    assert set(pattern.strip("^$()").split("|")) == FORMATS
    monkeypatch.setenv("RAG_PARSING__UNSTRUCTURED_FORMATS", '["eml", "xml"]')
    assert Settings(home=tmp_path).parsing.unstructured_formats == ("eml", "xml")


def test_another_reader_is_another_content(tmp_path: Path) -> None:
    """What is stored of a file, and whether a run has work, depend on who reads it."""
    home = Home(Settings(home=tmp_path / "home"))
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.eml").write_bytes(message())
    other = Home(Settings(home=tmp_path / "home", parsing=ParsingSettings(unstructured_formats=("eml",))))
    assert home.pipeline != other.pipeline

    listing = Home(Settings(home=tmp_path / "home", sources=(f"files={files}",))).listing()
    file = listing.files["files/a.eml"]
    content = _Content("0" * 64, file.path)
    keys = {content_key(content, file, chosen.options.parsing) for chosen in (home, other)}
    assert len(keys) == 2
