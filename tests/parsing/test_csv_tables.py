import pytest

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.contracts.formats import DocumentFormat
from rag_assets.parsing.plain.delimited import parse_delimited

HEADING, PARAGRAPH, TABLE = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE


def blocks_of(text: str, encoding: str = "utf-8") -> tuple[Block, ...]:
    return parse_delimited(text.encode(encoding), DocumentFormat.CSV, 10_000).pages[0].blocks


def shown(blocks: tuple[Block, ...]) -> list[tuple[BlockKind, str, int]]:
    return [(block.kind, block.text, block.header_row_count) for block in blocks]


def test_lines_above_a_table_are_told_from_its_header() -> None:
    text = "売上一覧\n作成日,2024/04/01\n\n商品,数量,単価\nりんご,3,100\nみかん,5,80\n"
    blocks = blocks_of(text)
    assert shown(blocks) == [
        (HEADING, "売上一覧", 0),
        (PARAGRAPH, "作成日: 2024/04/01", 0),
        (TABLE, "商品 | 数量 | 単価\nりんご | 3 | 100\nみかん | 5 | 80", 1),
    ]
    assert [block.section for block in blocks] == [(), ("売上一覧",), ("売上一覧",)]
    assert [block.cell_range for block in blocks] == ["A1", "A2:B2", "A4:C6"]


@pytest.mark.parametrize("gap", ["", "\n"])
def test_a_date_above_columns_of_months_is_no_row_of_them(gap: str) -> None:
    text = f"売上データ\n出力日,2024/04/01\n{gap}店舗,4月,5月\n東京,100,200\n大阪,500,NA\n"
    assert shown(blocks_of(text)) == [
        (HEADING, "売上データ", 0),
        (PARAGRAPH, "出力日: 2024/04/01", 0),
        (TABLE, "店舗 | 4月 | 5月\n東京 | 100 | 200\n大阪 | 500 | NA", 1),
    ]


def test_lines_that_a_spreadsheet_fills_up_are_told_from_the_table() -> None:
    above = "売上①,,,\r\n条件,店舗=東京,期間=4月,\r\n,,,\r\n"
    text = f"{above}商品,数量,単価,備考\r\nりんご,3,100,\r\n合計,3,,㈱\r\n,,,\r\n以上,,,\r\n"
    assert shown(blocks_of(text, "cp932")) == [
        (HEADING, "売上①", 0),
        (PARAGRAPH, "条件 | 店舗=東京 | 期間=4月", 0),
        (TABLE, "商品 | 数量 | 単価 | 備考\nりんご | 3 | 100 | \n合計 | 3 |  | ㈱", 1),
        (PARAGRAPH, "以上", 0),
    ]


def test_names_of_groups_stand_in_all_their_columns() -> None:
    text = "地域,保育園名,０歳,,１歳,,備考\n,,応募,内定,応募,内定,\n北,うさぎ,16,6,17,4,\n,かめ,7,5,13,8,新設\n"
    (block,) = blocks_of(text)
    assert block.header_row_count == 2
    assert [row.cells for row in block.rows[:2]] == [
        ("地域", "保育園名", "０歳", "０歳", "１歳", "１歳", "備考"),
        ("", "", "応募", "内定", "応募", "内定", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "名前,,点\n佐藤,花子,\n鈴木,一郎,3\n高橋,次郎,4\n",  # a name is missing, and a row of words follows
        "品名,数量,\nりんご,多い,国産\nみかん,3,輸入\n",  # no group
        "項目,値,,備考\n方式,自動,推奨,\n上限,10,20,\n下限,1,2,x\n",  # the second row is a record
        "店,区,4月,,5月,,\n,,売上,利益,売上,利益,合計\n東,北,1,2,3,4,9\n",  # a total of all is of no group
        "年,上期,,下期,\n,前半,後半,前半,後半\n東京,良,可,優,可\n",  # no figures
    ],
)
def test_empty_names_of_columns_name_no_groups(text: str) -> None:
    assert all(block.header_row_count < 2 for block in blocks_of(text))


def test_tables_of_different_widths_below_each_other_are_told_apart() -> None:
    text = "Report\n\nid,name,value\n1,a,2\n2,b,3\n\nSummary\n\nkey,count\nx,1\ny,2\n"
    assert shown(blocks_of(text)) == [
        (HEADING, "Report", 0),
        (TABLE, "id | name | value\n1 | a | 2\n2 | b | 3", 1),
        (HEADING, "Summary", 0),
        (TABLE, "key | count\nx | 1\ny | 2", 1),
    ]


@pytest.mark.parametrize(
    ("text", "header_row_count"),
    [
        ("品名,数量\n\nりんご,3\n\nみかん,5\n", 1),  # every other line empty
        ("id,name\n1,a,x\n2,b,y\n3,c,z\n", 1),  # a header that lacks a name
        (",name,value\n0,a,1\n1,b,2\n", 1),  # an index without a name
        ("id,name,memo,note\n1,,,\n2,,,\n3,a,,\n", 1),  # mostly empty
        ("1,2,3\n4,5,6\n", 0),
        ("店舗,4月,5月\n東京,100,200\n大阪,110,210\n", 1),
        ("科目,2023/04,2024年度\n売上,100,200\n", 1),
        ("2024-04-01 10:00:00,INFO,開始\n2024-04-01 10:05:00,WARN,終了\n", 0),
        ("4月,東京\n5月,大阪\n", 0),
        ("氏名\n山田\n鈴木\n", 1),
        ("a,1,2\n\nb,3,4\n", 0),
    ],
)
def test_tables_without_lines_above_stay_whole(text: str, header_row_count: int) -> None:
    (block,) = blocks_of(text)
    assert (block.kind, block.header_row_count) == (TABLE, header_row_count)
    assert len(block.rows) == len(text.replace("\n\n", "\n").splitlines())


def test_no_field_is_lost_wherever_the_table_begins() -> None:
    text = "# generated 2024\n題名\n甲,乙\n\n\nx,y,z\n1,2\n,,9\n備考,なし\n\n1,2,3,4,5\n"
    found = " ".join(block.text for block in blocks_of(text))
    assert all(field in found for field in text.replace("\n", ",").split(",") if field)
