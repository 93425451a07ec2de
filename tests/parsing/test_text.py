import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.contracts.causes import BlockKind, FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.detect import DocumentFormat
from rag_assets.parsing.text import ROWS_PER_BLOCK, decode_text, parse_delimited, parse_text

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


def test_numbers_are_no_header() -> None:
    (block,) = parse_delimited(b"1,2\n3,4\n", DocumentFormat.CSV, 100).pages[0].blocks
    assert block.header_row_count == 0


def test_long_tables_repeat_their_header() -> None:
    count = 2 * ROWS_PER_BLOCK + 5
    data = "id,value\n" + "".join(f"{number},v{number}\n" for number in range(count))
    blocks = parse_delimited(data.encode(), DocumentFormat.CSV, 1_000_000).pages[0].blocks
    assert [len(block.rows) - 1 for block in blocks] == [ROWS_PER_BLOCK, ROWS_PER_BLOCK, 5]
    assert all(block.rows[0].cells == ("id", "value") for block in blocks)
    assert [block.cell_range for block in blocks] == ["A1:B1001", "A1002:B2001", "A2002:B2006"]


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
