import csv
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.plain.delimited import parse_delimited
from rag_assets.parsing.plain.text import decode_stated, decode_text, parse_text

JAPANESE = "顧客管理システムの基本設計書です。カナとひらがな、漢字を含みます。\n"


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp932", "euc_jp"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", [JAPANESE, "受注番号,得意先コード,金額\n1,アイウ,100\n", "ﾊﾝｶｸｶﾅの項目名\n"])
def test_japanese_encodings(encoding: str, text: str) -> None:
    assert decode_text(text.encode(encoding)) == text


def test_iso_2022_jp() -> None:
    assert decode_text(JAPANESE.encode("iso2022_jp")) == JAPANESE


@pytest.mark.parametrize("text", ["Übergröße für Café, naïve façade\n", "plain ASCII\n", ""])
def test_western_text(text: str) -> None:
    assert decode_text(text.encode("cp1252")) == text


def test_line_ends_and_damage() -> None:
    assert decode_text(b"a\r\nb\rc\x1a") == "a\nb\nc"
    assert "日本" in decode_text("日本".encode() * 100_000 + b"\xff" + "日本".encode() * 10)


def test_text_is_parted_into_headings_and_paragraphs() -> None:
    text = "第1章 概要\n\n本文です。\n二行目。\n\n1.2 目的\n\n続き。\n\nTitle\n=====\nbody\n\n3.5 は数値です。\n"
    blocks = parse_text(text.encode()).pages[0].blocks
    assert [(block.kind, block.text, block.section) for block in blocks] == [
        (BlockKind.HEADING, "第1章 概要", ()),
        (BlockKind.PARAGRAPH, "本文です。\n二行目。", ("第1章 概要",)),
        (BlockKind.HEADING, "1.2 目的", ("第1章 概要",)),
        (BlockKind.PARAGRAPH, "続き。", ("第1章 概要", "1.2 目的")),
        (BlockKind.HEADING, "Title", ()),
        (BlockKind.PARAGRAPH, "body", ("Title",)),
        (BlockKind.PARAGRAPH, "3.5 は数値です。", ("Title",)),
    ]


_WRAPPED = [
    "11 「休業店」とは、小売販売業者が病気療養中である場合又は営業所を改築中である場合の正",
    "当な理由がなく１月を超えて引き続きその営業を休止している営業所をいう。",
    "12 「既設営業所」とは、既存の小売販売業者の営業所であり、仮移転前の営業所及び移転中の営",
    "業所を含む。",
    "⑴ 予定営業所と最寄りの既設営業所との距離が、告示に定められた次に掲げる地域の区分ごと",
    "の距離に達していない場合",
    "第二 適用範囲",
    "地域区分 繁華街 市街地",
]


def test_lines_that_were_broken_for_their_length_are_joined() -> None:
    (block,) = parse_text("\n".join(_WRAPPED).encode()).pages[0].blocks
    joined = ["".join(_WRAPPED[place : place + 2]) for place in (0, 2, 4)]
    assert block.text.split("\n") == [*joined, *_WRAPPED[6:]]


def test_words_of_broken_lines_are_parted_by_a_space() -> None:
    text = (
        "The quick brown fox jumps over the lazy dog and then goes on to the next\n"
        "line because the mailer wraps text at a column, as most of the mailers do\n"
        "where a text is long. It ends here.\n"
        "What follows is wrapped as well, at about the very same width of a\n"
        "column.\n"
    )
    (block,) = parse_text(text.encode()).pages[0].blocks
    assert "to the next line because" in block.text
    assert block.text.endswith("\nWhat follows is wrapped as well, at about the very same width of a column.")


@pytest.mark.parametrize(
    "lines",
    [
        ["2026-11-25 10:00:01 INFO a line of a log that is as long as the others"] * 4,
        ["はじめに ........................................................ 1"] * 4,
        ["短い行です", "次の行です", "三行目です"],
        ["氏名: 山田太郎、住所: 東京都千代田区丸の内一丁目一番一号の建物の三階"] * 4,
    ],
)
def test_lines_of_their_own_are_left_apart(lines: list[str]) -> None:
    (block,) = parse_text("\n".join(lines).encode()).pages[0].blocks
    assert block.text.split("\n") == lines


def test_characters_of_windows_in_iso_2022_jp() -> None:
    marked = b"\x1b$B-!-j\x1b(B " + JAPANESE.encode("iso2022_jp")
    assert decode_text(marked) == f"①㈱ {JAPANESE}"
    assert decode_stated(marked, "ISO-2022-JP") == f"①㈱ {JAPANESE}"


@pytest.mark.parametrize("charset", ["x-none", "utf-8", "us-ascii", "hex"])
def test_text_in_another_charset_than_stated_is_not_decoded(charset: str) -> None:
    assert decode_stated(JAPANESE.encode("cp932"), charset) is None


def test_text_cut_within_a_character_is_decoded_as_stated() -> None:
    assert decode_stated(JAPANESE.strip().encode()[:-1], "utf-8") == JAPANESE.strip()[:-1] + "\ufffd"


HEADING, PARAGRAPH, LIST_ITEM = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("第1章 概要\n本文です。\n第2章 方式\n次の本文", [HEADING, PARAGRAPH, HEADING, PARAGRAPH]),
        ("第1章 総則\n第1節　目的\n本文", [HEADING, HEADING, PARAGRAPH]),
        ("第1条（目的）\n本規程は、次のことを定める。", [HEADING, PARAGRAPH]),
        ("■見出し\n本文", [HEADING, PARAGRAPH]),
        ("【注意】\n本文", [HEADING, PARAGRAPH]),
        ("▼起動しない場合\n本文", [HEADING, PARAGRAPH]),
        ("＜大会について＞\n本文", [HEADING, PARAGRAPH]),
        ("1. 概要\n本文です。", [HEADING, PARAGRAPH]),
        ("1.2 対象範囲\n本文です。", [HEADING, PARAGRAPH]),
        ("第1章 概要\n第2章 方式\n第3章 構成", [PARAGRAPH]),  # a table of contents
        ("第1章 概要 …… 3\n第1節 目的 …… 4", [PARAGRAPH]),
        ("第1章では目的を述べ\n第2章で方式を述べる。", [PARAGRAPH]),
        ("第1条　この法律は、個人情報の適正な\n取扱いに関し定める。", [PARAGRAPH]),
        ("■日時：四月一日\n■場所：東京\n以上", [PARAGRAPH]),
        ("1. りんご\n2. みかん\n以上です。", [PARAGRAPH]),
        ("1. Install the package and run\nthe tests.", [PARAGRAPH]),
        ("10 名様まで\n入れます。", [PARAGRAPH]),
        ("・りんご\n・みかん", [LIST_ITEM, LIST_ITEM]),
        ("- りんご\nを買う", [PARAGRAPH]),
    ],
)
def test_headings_above_their_body(text: str, expected: list[BlockKind]) -> None:
    assert [block.kind for block in parse_text(text.encode()).pages[0].blocks] == expected


def test_body_stands_in_the_section_of_the_heading_above_it() -> None:
    (heading, body, after) = parse_text("第1章 概要\n本文です。\n\n続き".encode()).pages[0].blocks
    assert (heading.text, heading.section) == ("第1章 概要", ())
    assert body.section == after.section == ("第1章 概要",)


ROWS = [["id", "品名", "数量"], ["1", "りんご", "3"], ["2", "みかん", "4"], ["3", "かき", "5"]]


@pytest.mark.parametrize(
    ("lines", "open_lines"),
    [
        (['1,"りんご,3', "2,みかん,4", "3,かき,5"], "line 2"),  # open up to the end of the file
        (['1,"りんご,3', '2,"みかん",4', "3,かき,5"], "line 2"),  # closed by a quotation mark that opens another field
        (['1,"りんご,3', '2,みかん,4"', "3,かき,5"], "line 2"),  # closed as if it were meant
        (['1,"りんご,3', "2,みかん,4", '3,"かき,5'], "lines 2, 4"),
        (["1,りんご,3", "2,みかん,4", '3,"かき,5'], "line 4"),
    ],
)
def test_open_quotes_lose_no_row(lines: list[str], open_lines: str) -> None:
    data = "\n".join(["id,品名,数量", *lines, ""])
    document = parse_delimited(data.encode(), DocumentFormat.CSV, 100)
    (block,) = document.pages[0].blocks
    assert [[cell.strip('"') for cell in row.cells] for row in block.rows] == ROWS
    (failure,) = document.failures
    assert (failure.cause, failure.page_number) == (FailureCause.MALFORMED, 1)
    assert failure.message.startswith(f"{open_lines}: ")


def test_an_open_quote_closed_far_below_loses_no_row() -> None:
    lines = [f"{number},りんご,{number}" for number in range(50)]
    data = "\n".join(["id,品名,数量", '0,"開,1', *lines, '9,"閉",2', "10,梨,3", ""])
    document = parse_delimited(data.encode(), DocumentFormat.CSV, 1000)
    assert len(document.pages[0].blocks[0].rows) == 54
    assert len(document.failures) == 1


def test_quoted_line_breaks_and_sloppy_quotes_are_no_failure() -> None:
    note = "\n".join(f"行{number}、続く" for number in range(200))
    data = f'id,note,x\n1,"{note}",a\n2,"a"b,c\n3,5" disk,d\n'
    document = parse_delimited(data.encode(), DocumentFormat.CSV, 100)
    assert [row.cells for row in document.pages[0].blocks[0].rows[1:]] == [
        ("1", note, "a"),
        ("2", "ab", "c"),
        ("3", '5" disk', "d"),
    ]
    assert not document.failures


def test_lines_that_each_open_a_quote_take_no_longer_than_their_number() -> None:
    began = time.monotonic()
    document = parse_delimited(b'a","c\n' * 100_000, DocumentFormat.CSV, 1_000_000)
    assert time.monotonic() - began < 10
    assert [block.cell_range for block in document.pages[0].blocks] == ["A1:B100000"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_found(delimiter: str) -> None:
    rows = [["name", "note"], ["a", "x, y; z"], ["b", "two\nlines"], ["c", '"quoted"']]
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    (block,) = parse_delimited(buffer.getvalue().encode(), DocumentFormat.CSV, 100).pages[0].blocks
    assert [list(row.cells) for row in block.rows] == rows
    assert block.header_row_count == 1


def test_stated_delimiter_is_kept_out_of_the_table() -> None:
    (block,) = parse_delimited(b"sep=^\na^b,c\n1^2\n", DocumentFormat.CSV, 100).pages[0].blocks
    assert [row.cells for row in block.rows] == [("a", "b,c"), ("1", "2")]


def test_rows_carry_cell_ranges() -> None:
    document = parse_delimited("品名,数量\n\nりんご,3\nみかん\n".encode("cp932"), DocumentFormat.CSV, 100)
    (block,) = document.pages[0].blocks
    assert block.cell_range == "A1:B4"
    assert [(row.cells, row.cell_range) for row in block.rows] == [
        (("品名", "数量"), "A1:B1"),
        (("りんご", "3"), "A3:B3"),
        (("みかん", ""), "A4:B4"),
    ]
    assert block.text == "品名 | 数量\nりんご | 3\nみかん | "


def test_a_long_table_is_one_block() -> None:
    data = "id,value\n" + "".join(f"{number},v{number}\n" for number in range(2005))
    (block,) = parse_delimited(data.encode(), DocumentFormat.CSV, 1_000_000).pages[0].blocks
    assert (block.header_row_count, len(block.rows), block.cell_range) == (1, 2006, "A1:B2006")
    assert (block.rows[-1].cells, block.rows[-1].cell_range) == (("2004", "v2004"), "A2006:B2006")


def test_cells_are_limited_before_rows_are_padded() -> None:
    wide = "," * 5000 + "\n" + "a\n" * 5000
    with pytest.raises(ParseError) as caught:
        parse_delimited(("x" + wide).encode(), DocumentFormat.CSV, 100_000)
    assert caught.value.cause is FailureCause.TOO_LARGE


@given(
    st.lists(st.lists(st.from_regex(r"[a-z日本]{1,5}", fullmatch=True), min_size=2, max_size=2), min_size=2, max_size=9)
)
def test_csv_round_trip(rows: list[list[str]]) -> None:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    (block,) = parse_delimited(buffer.getvalue().encode(), DocumentFormat.CSV, 1000).pages[0].blocks
    assert [list(row.cells) for row in block.rows] == rows
