import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args

import pytest
from message_building import ole_with
from office_building import parts_of, zipped

from rag_assets.contracts.causes import BlockKind, FailureCause, PageKind
from rag_assets.contracts.content import Block, ParsedDocument
from rag_assets.parsing import unstructured as unstructured_reader
from rag_assets.parsing.conversion import find_program
from rag_assets.parsing.documents import _Content, content_key
from rag_assets.parsing.limits import ParsingLimits
from rag_assets.parsing.parse import parse_bytes
from rag_assets.parsing.pool import ParseJob, parse_files
from rag_assets.pipeline.freshness import step_facts
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import ParsingSettings, Settings

DATA = Path(__file__).parents[1] / "data"
FORMATS = frozenset(unstructured_reader._PARTITIONS)
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

OFFICE = find_program("doc")[1]
needs_pandoc = pytest.mark.skipif(
    importlib.util.find_spec("unstructured") is None or find_program("rtf")[1] is None,
    reason="the extra `unstructured` or pandoc is not installed",
)
needs_office = pytest.mark.skipif(
    importlib.util.find_spec("unstructured") is None or OFFICE is None,
    reason="the extra `unstructured` or LibreOffice is not installed",
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
    assert failure.message == "eml is read by Unstructured: pip install 'rag-assets[unstructured]'"


def epub(chapter: str) -> bytes:
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
        'full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">i</dc:identifier><dc:title>本</dc:title>'
        '<dc:language>ja</dc:language></metadata><manifest><item id="c" href="c.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>本</title></head><body>{chapter}</body></html>'
    return zipped({
        "mimetype": "application/epub+zip", "META-INF/container.xml": container, "a.opf": package, "c.xhtml": page,
    })  # fmt: skip


def open_text(body: str) -> bytes:
    """An OpenDocument text."""
    names = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text"))
    media = "application/vnd.oasis.opendocument.text"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{media}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>'
    )
    content = (
        f'<office:document-content {names} office:version="1.2"><office:body><office:text>{body}</office:text>'
        "</office:body></office:document-content>"
    )
    styles = (
        f'<office:document-styles {names} office:version="1.2"><office:styles/><office:automatic-styles/>'
        "<office:master-styles/></office:document-styles>"
    )
    return zipped({"mimetype": media, "META-INF/manifest.xml": manifest, "content.xml": content, "styles.xml": styles})


ODT = open_text('<text:h text:outline-level="1">設計書</text:h><text:p>注文番号は一意です。</text:p>')
BY_PANDOC = {
    "a.epub": epub("<h1>設計書</h1><p>注文番号は一意です。</p>"),
    "a.odt": ODT,
    "a.org": "* 設計書\n注文番号は一意です。\n".encode(),
    "a.rst": "設計書\n======\n\n注文番号は一意です。\n".encode(),
    "a.rtf": rb"{\rtf1\ansi{\pard\outlinelevel0\u-30163 ?\u-30200 ?\u26360 ?\par}{\pard\u27880 ?\u25991 ?\par}}",
}
READ = [(HEADING, "設計書", ()), (PARAGRAPH, "注文番号は一意です。", ("設計書",))]


def read_all(files: Mapping[str, bytes], folder: Path, limits: ParsingLimits = BUILT_IN) -> dict[str, ParsedDocument]:
    """Files by name, read by the confined process."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    jobs = [ParseJob(name, folder / name) for name in files]
    return {job.document_id: document for job, document in parse_files(jobs, workers=2, limits=limits)}


@needs_pandoc
def test_formats_without_a_reader_are_read_by_unstructured(tmp_path: Path) -> None:
    xml = '<?xml version="1.0"?><r><a>注文番号は一意です。</a></r>'.encode()
    found = read_all({**BY_PANDOC, "a.xml": xml, "undeclared.xml": xml.partition(b"?>")[2]}, tmp_path)
    assert {name: document.failures for name, document in found.items()} == dict.fromkeys(found, ())
    blocks = {name: shown(document.pages[0].blocks) for name, document in found.items()}
    rtf = blocks.pop("a.rtf")
    assert [text for _, text, _ in rtf] == ["設計書", "注文"]
    assert blocks.pop("a.xml") == blocks.pop("undeclared.xml") == [(PARAGRAPH, "注文番号は一意です。", ())]
    assert blocks == dict.fromkeys(blocks, READ)
    assert {name: document.format for name, document in found.items()} == {
        name: Path(name).suffix[1:] for name in found
    }


def saved_as(path: Path, target: str) -> bytes:
    """A file as LibreOffice saves it in another format."""
    folder = path.parent
    profile = f"-env:UserInstallation=file://{folder}/profile"
    command = [str(OFFICE), profile, "--headless", "--convert-to", target, "--outdir", str(folder), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path.with_suffix(f".{target}").read_bytes()


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    from pptx import Presentation

    found = Presentation()
    slide = found.slides.add_slide(found.slide_layouts[1])
    slide.shapes.title.text = "設計書"
    slide.placeholders[1].text = "注文番号は一意です。"
    found.save(str(tmp_path / "slides.pptx"))
    return tmp_path / "slides.pptx"


SLIDE = [(HEADING, "設計書", ()), (LIST_ITEM, "注文番号は一意です。", ("設計書",))]


@needs_office
def test_older_office_files_are_read_by_unstructured(tmp_path: Path, slides: Path) -> None:
    (tmp_path / "a.docx").write_bytes((DATA / "word" / "word_tables.docx").read_bytes())
    found = read_all({"a.doc": saved_as(tmp_path / "a.docx", "doc"), "b.ppt": saved_as(slides, "ppt")}, tmp_path)
    assert {name: document.failures for name, document in found.items()} == dict.fromkeys(found, ())
    blocks = [block for page in found["a.doc"].pages for block in page.blocks]
    assert shown(blocks)[:2] == [
        (HEADING, "Test with tables", ()),
        (PARAGRAPH, "A uniform table", ("Test with tables",)),
    ]
    assert blocks[2].rows[0].cells == ("Header 0.0", "Header 0.1", "Header 0.2")
    (page,) = found["b.ppt"].pages
    assert (page.kind, shown(page.blocks)) == (PageKind.SLIDE, SLIDE)


@needs_unstructured
def test_long_texts_take_no_language_model(tmp_path: Path) -> None:
    """Unstructured asks one about each paragraph, some 10 ms each, and downloads it."""
    parts = "".join(f"<a>The order {number} was sent to the customer. It will arrive.</a>" for number in range(4000))
    (document,) = read_all({"a.xml": f'<?xml version="1.0"?><r>{parts}</r>'.encode()}, tmp_path).values()
    assert not document.failures
    assert sum(len(page.blocks) for page in document.pages) == 4000


class _Visits(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), _Visit)


class _Visit(BaseHTTPRequestHandler):
    server: _Visits

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is named there
        del format, args


@pytest.fixture
def visits() -> Iterator[_Visits]:
    with _Visits() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@needs_pandoc
def test_nothing_that_a_file_refers_to_is_read(tmp_path: Path, visits: _Visits) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    url = f"http://127.0.0.1:{visits.server_port}"
    entity = '<!DOCTYPE r [<!ENTITY e SYSTEM "{}">]>'
    files = {
        "a.rst": f"before\n\n.. include:: {secret}\n\nafter\n",
        "b.rst": f"before\n\n.. csv-table::\n   :url: {url}/csv\n\nafter\n",
        "a.org": f'before\n\n#+INCLUDE: "{secret}"\n\n[[{url}/a.png]]\n\nafter\n',
        "a.xml": f'<?xml version="1.0"?>{entity.format(secret.as_uri())}<r><a>before &e;</a><b>after</b></r>',
        "b.xml": f'<?xml version="1.0"?>{entity.format(url + "/dtd")}<r><a>before &e;</a><b>after</b></r>',
    }
    found = read_all({name: text.encode() for name, text in files.items()}, tmp_path)
    found |= read_all({"a.epub": epub(f'<p>after</p><img src="{url}/b.png"/>')}, tmp_path)
    for name, document in found.items():
        text = " ".join(block.text for page in document.pages for block in page.blocks)
        assert "secret words" not in text, name
        assert "after" in text, name
    assert not visits.paths


@needs_office
def test_libreoffice_fetches_nothing(tmp_path: Path, slides: Path, visits: _Visits) -> None:
    picture = f'<draw:image xlink:href="http://127.0.0.1:{visits.server_port}/a.png" xlink:type="simple"/>'
    frame = f'<draw:frame svg:width="5cm" svg:height="5cm">{picture}</draw:frame></draw:page>'
    saved_as(slides, "odp")
    parts = parts_of((tmp_path / "slides.odp").read_bytes())
    parts["content.xml"] = parts["content.xml"].replace(b"</draw:page>", frame.encode())
    assert picture.encode() in parts["content.xml"]
    (document,) = read_all({"a.odp": zipped(parts)}, tmp_path).values()
    assert shown(document.pages[0].blocks)[:2] == SLIDE, document.failures
    assert not visits.paths


@needs_pandoc
def test_hostile_files_cost_themselves_only(tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY {a} "{f"&{b};" * 50}">' for a, b in zip("bcdefg", "abcdef", strict=True))
    bomb = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "{"ha" * 50}">{laughs}]><r><x>&g;</x></r>'
    files = {
        "bomb.xml": bomb.encode(),
        "deep.xml": b'<?xml version="1.0"?>' + b"<a>" * 100_000,
        "deep.rtf": rb"{\rtf1 " + b"{" * 200_000,
        "deep.rst": b"\n".join(b" " * depth + b"* x\n" for depth in range(0, 1000, 2)),
        "bomb.epub": epub(f"<p>{' ' * (80 << 20)}</p>"),
        "damaged.epub": BY_PANDOC["a.epub"][:-40],
        "fine.odt": ODT,
    }
    for number, (name, data) in enumerate(BY_PANDOC.items()):
        for place in range(40, len(data), 149):
            files[f"{number}.{place}{Path(name).suffix}"] = data[:place] + b"\xff\0" + data[place + 2 :]
    found = read_all(files, tmp_path)
    assert found.keys() == files.keys()
    assert not found["fine.odt"].failures
    assert shown(found["fine.odt"].pages[0].blocks) == READ
    assert found["bomb.epub"].failures[0].cause is FailureCause.TOO_LARGE
    assert found["damaged.epub"].failures
    assert all("ha" * 60 not in block.text for page in found["bomb.xml"].pages for block in page.blocks)
    assert not [failure for document in found.values() for failure in document.failures if failure.traceback_id]


@pytest.mark.parametrize("switch", ["off", "without the extra", "without programs"])
def test_unread_files_say_what_would_read_them(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.doc": ole_with("WordDocument"), "a.rtf": b"{\\rtf1 text}", "a.rst": b"Title\n=====\n"}
    limits = BUILT_IN
    if switch == "off":
        limits = replace(limits, unstructured=False)
    elif switch == "without the extra":
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    else:
        spec = importlib.util.find_spec
        fake = importlib.machinery.ModuleSpec("unstructured", None)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: fake if name == "unstructured" else None)
        monkeypatch.setattr(shutil, "which", lambda _: None)
        assert spec is not None
    found = {name: parse_bytes(data, name, limits) for name, data in files.items()}
    assert shown(found.pop("a.rst").pages[0].blocks), "as plain text"
    install = "is read by Unstructured: pip install 'rag-assets[unstructured]'"
    assert {name: document.failures[0].message for name, document in found.items()} == {
        "off": {
            "a.doc": "no reader for this file: it is a legacy Word document (.doc); parsing.unstructured is off",
            "a.rtf": "no reader for this file: it is a Rich Text document; parsing.unstructured is off",
        },
        "without the extra": {"a.doc": f"doc {install} and LibreOffice", "a.rtf": f"rtf {install}"},
        "without programs": {
            "a.doc": "doc is read by LibreOffice, which is not installed",
            "a.rtf": "rtf is read by pandoc, which is not installed",
        },
    }[switch]
    assert {document.failures[0].cause for document in found.values()} == {FailureCause.UNSUPPORTED_FORMAT}


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
    limits = replace(LIMITS, unstructured=False, unstructured_formats=("eml", "rst"))
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
    assert step_facts(home)["parse"] != step_facts(other)["parse"]

    listing = Home(Settings(home=tmp_path / "home", sources=(f"files={files}",))).listing()
    file = listing.files["files/a.eml"]
    content = _Content("0" * 64, file.path)
    keys = {content_key(content, file, chosen.options.parsing) for chosen in (home, other)}
    assert len(keys) == 2
