import time

import pytest
from message_building import OLE, ole_with
from office_building import zipped

from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.detect import detect_format

MAIL = b"Received: from a by b\n (a way)\nFrom: a@example.jp\nSubject: x\n\nbody\n"
MHTML = b"From: <Saved by Blink>\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/related;\n\n--b\n"


def office_zip(content_type: str) -> bytes:
    return zipped({"[Content_Types].xml": f'<Types><Override ContentType="application/{content_type}"/></Types>'})


@pytest.mark.parametrize(
    ("data", "file_name", "expected"),
    [
        (office_zip("vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"), "a.bin", "xlsx"),
        (office_zip("vnd.ms-excel.sheet.macroEnabled.main+xml"), "a.xlsx", "xlsm"),
        (office_zip("vnd.ms-excel.sheet.binary.macroEnabled.main"), "a.xlsx", "xlsb"),
        (office_zip("vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"), "a.zip", "docx"),
        (office_zip("vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"), "a", "pptx"),
        (zipped({"xl/workbook.xml": "<workbook/>"}), "a", "xlsx"),
        (b"PK\x03\x04 cut off", "a.docx", "docx"),
        (ole_with("Root Entry", "Workbook"), "a", "xls"),
        (ole_with("Root Entry", "Book"), "a.doc", "xls"),
        (b"%PDF-1.7\n", "a.txt", "pdf"),
        (b"\n\n%PDF-1.4\n", "a", "pdf"),
        (b"\x00\x01\x02\x80" * 40, "a.xls", "xls"),
        (b"<!DOCTYPE html><p>x", "report.xls", "html"),
        (b"\xef\xbb\xbf<!-- c -->\n<html>", "a", "html"),
        ("見出し\n本文".encode("cp932"), "a.md", "md"),
        (b"a,b\n1,2\n", "a.csv", "csv"),
        (b"a,b\n1,2\n", "a.xlsx", "csv"),
        (b"no workbook", "a.xlsx", "xlsx"),
        ("名\t値\n".encode("utf-16"), "a.xls", "tsv"),
        (b"a\tb\n", "A.TSV", "tsv"),
        (b"a,b\n", "a.unknown", "txt"),
        ("日本語".encode("utf-16"), "a", "txt"),
        (b"BM is how this text begins", "a.txt", "txt"),
        (b"", "a.pptx", "pptx"),
        (MAIL, "a.eml", "eml"),
        (MAIL, "a", "eml"),
        (MAIL, "a.txt", "txt"),
        (MAIL, "a.md", "md"),
        (b"MIME-Version: 1.0\nFrom: a@b\n\nx", "a.eml", "eml"),
        (b"From: the beginning\nto the end\n", "a", "txt"),
        (b"From: A\nDate: 1\n\nno recipient", "a", "txt"),
    ],
)
def test_format_is_told_from_bytes(data: bytes, file_name: str, expected: str) -> None:
    detection = detect_format(data, file_name)
    assert detection.name == expected
    assert detection.format is DocumentFormat(expected)
    assert not detection.encrypted


@pytest.mark.parametrize(
    ("data", "file_name", "name", "words"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "scan.pdf", "png", "PNG image"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "a.jpg", "jpeg", "JPEG"),
        (b"MZ\x90\x00" + bytes(60), "setup.xlsx", "exe", "Windows program"),
        (b"\x7fELF" + bytes(60), "a", "elf", "program"),
        (ole_with("Root Entry", "WordDocument"), "a.doc", "doc", "legacy Word"),
        (ole_with("Root Entry", "PowerPoint Document"), "a.ppt", "ppt", "legacy PowerPoint"),
        (ole_with("Root Entry", "WordDocument", "Workbook"), "a.doc", "doc", "legacy Word"),
        (zipped({"readme.txt": "x"}), "a.zip", "zip", "zip archive"),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), "a.odt", "odt", "OpenDocument"),
        (b"{\\rtf1 x}", "a.doc", "rtf", "Rich Text"),
        (b"<?xml version='1.0'?><svg/>", "a.svg", "xml", "XML"),
        (MHTML, "a.mht", "mhtml", "web archive"),
        (b"\x00\x01\x02\x80" * 40, "a.dat", "unknown", "no known format"),
    ],
)
def test_other_formats_are_named(data: bytes, file_name: str, name: str, words: str) -> None:
    detection = detect_format(data, file_name)
    assert (detection.name, detection.format) == (name, None)
    assert words in detection.description


def test_encrypted_container_takes_its_format_from_the_extension() -> None:
    data = ole_with("Root Entry", "EncryptionInfo", "EncryptedPackage")
    assert [detect_format(data, name).name for name in ("a.docx", "a.pptx", "a.xlsx", "a")] == [
        "docx",
        "pptx",
        "xlsx",
        "xlsx",
    ]
    assert detect_format(data, "a.docx").encrypted


def test_any_bytes_are_detected() -> None:
    for start in (OLE, b"PK\x03\x04", b"PK\x05\x06", b"\xff\xfe", b"\x1f\x8b", b"<?xml", b"MZ", b"%PDF-", b"RIFF"):
        for length in (0, 1, 3, 600):
            assert detect_format(start + b"\xa5" * length, "a.xlsx").name


def test_many_comments_do_not_slow_the_search_for_html() -> None:
    began = time.monotonic()
    detect_format(b"<!-- a -->\n" * 2000 + b"hello", "a.txt")
    assert time.monotonic() - began < 2


def test_a_type_by_extension_that_no_part_has_does_not_decide() -> None:
    binary = "application/vnd.ms-excel.sheet.binary.macroEnabled.main"
    workbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    types = f'<Default Extension="bin" ContentType="{binary}"/><Override ContentType="{workbook}"/>'
    assert detect_format(zipped({"[Content_Types].xml": f"<Types>{types}</Types>"}), "a.xlsx").name == "xlsx"
