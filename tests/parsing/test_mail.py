from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest
from compressed_rtf import compress
from golden import LIMITS
from message_building import embedding_message, outlook_message, rich_text_message

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.content import ParsedDocument
from rag_assets.parsing.detect import detect_format
from rag_assets.parsing.mail import decode_header
from rag_assets.parsing.parse import parse_bytes
from rag_assets.parsing.pool import ParseJob, parse_files

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
    heading, paragraph, table = document.pages[0].blocks[2:5]
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


@pytest.mark.parametrize("written", ["utf-8", "cp932", "euc_jp", "iso2022_jp"])
@pytest.mark.parametrize("stated", [b"; charset=x-unknown", b"; charset=cp-932x", b"; charset=us-ascii", b""])
def test_text_of_an_unknown_wrong_or_missing_charset_is_kept(written: str, stated: bytes) -> None:
    head = b"From: a@example.jp\nSubject: s\nContent-Type: text/plain" + stated
    data = head + b"\nContent-Transfer-Encoding: 8bit\n\n" + BODY.encode(written)
    assert texts(parse_bytes(data, "a.eml", LIMITS))[2:5] == [
        "佐藤様",
        "来週の会議は金曜日の10時からです。資料を添付します。",
        "The budget is 1,200 euros.",
    ]


def test_html_of_an_unknown_charset_is_kept() -> None:
    head = b"From: a@example.jp\nSubject: s\nContent-Type: text/html; charset=x-none\n\n"
    assert texts(parse_bytes(head + "<p>売上の集計です</p>".encode("cp932"), "a.eml", LIMITS))[2:] == ["売上の集計です"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("=?utf-8?B?5Lya6K2w?= (1)", "会議 (1)"),
        ("Re: =?x-unknown?B?5Lya6K2w?=", "Re: 会議"),
        ("=?iso-2022-jp?B?GyRCLSEycTVEGyhC?=", "①会議"),  # ① is no character of ISO-2022-JP, but is written so
        ("=?utf-8?B?5Lya6A==?=\n =?utf-8?B?rbA=?=", "会議"),  # parted within a character
        ("=?utf-8?Q?=E4=BC=9A=E8=AD=B0_1?=", "会議 1"),
        ("会議".encode("cp932").decode("ascii", "surrogateescape"), "会議"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_headers_are_decoded(raw: str, expected: str) -> None:
    assert decode_header(raw) == expected


def test_attached_message_is_listed_and_read_as_a_section() -> None:
    inner, letter = message("承認します。\n"), message("転送します。\n")
    inner.replace_header("Subject", "予算の件")
    letter.add_attachment(b"never opened", maintype="application", subtype="octet-stream", filename="資料.xlsx")
    letter.add_attachment(inner)
    document = parse_bytes(letter.as_bytes(), "a.eml", LIMITS)
    assert texts(document)[2:] == [
        "転送します。",
        "添付ファイル: 資料.xlsx, メール「予算の件」 (山田太郎 <yamada@example.jp>, Mon, 01 Apr 2024 10:00:00 +0900)",
        "予算の件",
        "From: 山田太郎 <yamada@example.jp>\nTo: sato@example.jp\nDate: Mon, 01 Apr 2024 10:00:00 +0900",
        "承認します。",
    ]
    heading, _, body = document.pages[0].blocks[-3:]
    assert (heading.kind, heading.section) == (BlockKind.HEADING, ("会議のご案内",))
    assert body.section == ("会議のご案内", "予算の件")


def test_messages_attached_to_each_other_too_deep_are_said_to_be() -> None:
    letter = message("底の文\n")
    for _ in range(5):
        outer = message("包む文\n")
        outer.add_attachment(letter)
        letter = outer
    data = letter.as_bytes()
    document = parse_bytes(data, "a.eml", replace(LIMITS, nesting_depth=3))
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.TOO_LARGE, 1)
    assert [block.text for block in document.pages[0].blocks].count("包む文") == 4
    assert "底の文" in texts(parse_bytes(data, "a.eml", LIMITS))


def test_html_is_read_with_what_only_the_plain_form_holds() -> None:
    letter = message(
        "1. 会議は金曜日の\n10時からです。\n資料: https://example.jp/a\n[image: logo]\n\n電話は 03-1234-5678 です。\n"
    )
    letter.add_alternative(
        "<ol><li>会議は金曜日の10時からです。</li></ol><a href='https://example.jp/a'>資料</a>", subtype="html"
    )
    assert texts(parse_bytes(letter.as_bytes(), "a.eml", LIMITS))[2:] == [
        "1. 会議は金曜日の10時からです。",
        "資料 <https://example.jp/a>",
        "電話は 03-1234-5678 です。",
    ]


def test_plain_form_is_read_where_the_html_holds_no_text() -> None:
    letter = message("本文です。\n")
    letter.add_alternative("<html><body><img src='cid:a'></body></html>", subtype="html")
    assert texts(parse_bytes(letter.as_bytes(), "a.eml", LIMITS))[2:] == ["本文です。"]


def test_every_text_of_a_message_is_read() -> None:
    letter = message("前の文\n")
    letter.add_attachment("後の文\n", disposition="inline")
    assert texts(parse_bytes(letter.as_bytes(), "a.eml", LIMITS))[2:] == ["前の文", "後の文"]


def test_outlook_message_embedded_in_another_is_read() -> None:
    document = parse_bytes(embedding_message("転送", "転送します。", "予算の件", "承認します。"), "a.msg", LIMITS)
    assert texts(document) == [
        "転送",
        "転送します。",
        "添付ファイル: メール「予算の件」",
        "予算の件",
        "承認します。",
    ]
    assert document.pages[0].blocks[-1].section == ("転送", "予算の件")


def test_outlook_message_in_a_code_page() -> None:
    data = outlook_message("会議のご案内", "来週の会議です。", "山田太郎", "資料.xlsx", code_page="cp932")
    assert texts(parse_bytes(data, "a.msg", LIMITS)) == [
        "会議のご案内",
        'From: "山田太郎" <yamada@example.jp>\nTo: 佐藤 <sato@example.jp>',
        "来週の会議です。",
        "添付ファイル: 資料.xlsx",
    ]


@pytest.mark.parametrize("compressed", [True, False])
def test_body_that_is_rich_text_alone_is_read(*, compressed: bool) -> None:
    """Word writes the second byte of a character of two bytes as it is where it is ASCII."""
    rich = (
        r"{\rtf1\ansi\ansicpg932\fromtext\deff0{\fonttbl{\f0\fnil\fcharset128 MS PGothic;}{\f1\fcharset0 Arial;}}"
        r"{\info{\author x}}\uc1\pard\f0 \'83e\'83X\'83g\'82\'cc\'8c\'8b\'89\'ca\par 2\u26376 ?\'82\'e9 "
        r"\f1 caf\'e9t \{x\}\par }"
    )
    data = rich_text_message("報告", compress(rich.encode("latin-1"), compressed))
    document = parse_bytes(data, "a.msg", LIMITS)
    assert document.failures == ()
    assert [block.text for block in document.pages[0].blocks] == ["報告", "テストの結果\n2月る cafét {x}"]


def test_text_of_html_that_is_hidden_in_rich_text_is_read_once() -> None:
    rich = (
        r"{\rtf1\ansi\ansicpg1252\fromhtml1 \deff0{\fonttbl{\f0\fswiss Arial;}}{\*\htmltag64 <p>}"
        r"\htmlrtf {\f0 \htmlrtf0 first{\*\htmltag84 &nbsp;}\htmlrtf \'a0\htmlrtf0 line"
        r"\htmlrtf\par}\htmlrtf0{\*\htmltag72 </p>}second}"
    )
    data = rich_text_message("a", compress(rich.encode("latin-1")))
    assert [block.text for block in parse_bytes(data, "a.msg", LIMITS).pages[0].blocks] == ["a", "first line\nsecond"]


def test_damaged_rich_text_is_a_failure_of_its_message() -> None:
    packed = bytearray(compress(rb"{\rtf1\ansi hidden\par}"))
    packed[20] ^= 0xFF
    document = parse_bytes(rich_text_message("件名", bytes(packed)), "a.msg", LIMITS)
    assert [block.text for block in document.pages[0].blocks] == ["件名"]
    (failure,) = document.failures
    assert failure.cause is FailureCause.MALFORMED
    assert "Rich Text body" in failure.message


def test_damaged_outlook_message_is_a_failure() -> None:
    data = outlook_message("a", "b", "c", "d")
    for cut in (600, 1200, len(data) - 512):
        document = parse_bytes(data[:cut], "a.msg", LIMITS)
        assert document.failures or document.pages


def test_messages_are_parsed_within_the_limits_of_the_processes(tmp_path: Path) -> None:
    paths = [tmp_path / "a.eml", tmp_path / "b.msg"]
    paths[0].write_bytes(message().as_bytes())
    paths[1].write_bytes(outlook_message("会議のご案内", BODY, "山田太郎", "資料.xlsx"))
    jobs = [ParseJob(path.name, path) for path in paths]
    for _, document in parse_files(jobs, workers=1, limits=LIMITS):
        assert document.title == "会議のご案内"
        assert "来週の会議は金曜日の10時からです。資料を添付します。" in texts(document)
