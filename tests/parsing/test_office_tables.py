"""Which rows of Word tables name the columns."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import pytest
from docx.oxml import parse_xml
from office_building import W, read_docx

from rag_assets.parsing.office.tables import header_row_count

_PLAIN = ("", False)


def header_rows(
    rows: Sequence[Sequence[str]],
    looks: Sequence[tuple[str, bool]] = (),
    *,
    repeated: int = 0,
    style: str | None = None,
    is_merged: bool = False,
) -> int:
    """Header rows of a table whose rows have grounds and bold type, or repeat on every page.

    The last two cells of its first row may be merged.
    """

    def build(document: Any) -> None:
        table = document.add_table(rows=len(rows), cols=max(map(len, rows)), style=style)
        for place, texts in enumerate(rows):
            fill, is_bold = looks[place] if place < len(looks) else _PLAIN
            if place < repeated:
                table.rows[place]._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {W}/>"))
            for text, cell in zip(texts, table.rows[place].cells, strict=True):
                cell.paragraphs[0].add_run(text).bold = is_bold
                if fill:
                    cell._tc.get_or_add_tcPr().append(parse_xml(f'<w:shd {W} w:fill="{fill}"/>'))

        if is_merged:
            table.rows[0].cells[-2].merge(table.rows[0].cells[-1])

    (block,) = read_docx(build).pages[0].blocks
    return block.header_row_count


def test_rows_of_alternating_grounds_are_no_headers() -> None:
    rows = [("項目", "内容"), ("文書番号", "TP-1"), ("作成日", "2026-02-12"), ("作成者", "担当")]
    assert header_rows(rows, [("1F4E79", True), ("DDEBF7", False), _PLAIN, ("DDEBF7", False)]) == 1
    assert header_rows(rows, [("1F4E79", False), ("DDEBF7", False), ("1F4E79", False), ("DDEBF7", False)]) == 1


def test_two_rows_in_one_look_are_headers() -> None:
    rows = [("区分", "費用"), ("名称", "金額"), ("備品", "100"), ("消耗品", "200")]
    assert header_rows(rows, [("1F4E79", True), ("1F4E79", True)]) == 2


def test_a_second_tone_below_names_of_several_columns_is_a_header() -> None:
    rows = [("", "上期", ""), ("支店", "売上", "利益"), ("東京", "1", "2"), ("大阪", "3", "4")]
    looks = [("1F3864", False), ("D9E2F3", False)]
    assert header_rows(rows, looks, is_merged=True) == 2
    assert header_rows(rows, looks) == 1
    assert header_rows([rows[0], *rows[2:]], looks, is_merged=True) == 1
    assert header_rows([*rows, rows[1]], [*looks, *[_PLAIN] * 2, looks[1]], is_merged=True) == 1


def test_marks_to_repeat_every_row_show_one_header() -> None:
    rows = [
        ("列", "内容", "例"),
        ("name", "名称", "A"),
        ("kind", "種別", "B"),
        ("code", "番号", "C"),
        ("day", "日", "D"),
    ]
    assert [header_rows(rows, repeated=count) for count in (2, 4, 5)] == [2, 1, 1]


@pytest.mark.parametrize(
    "rows",
    [
        [("ユースケースID", "UC-001"), ("事前条件", "ログインしている"), ("基本フロー", "画面を開く")],
        [("人件費", "2,860,000円"), ("予備費", "286,000円"), ("計", "3,146,000円")],
        [("対象地域", "沿岸"), ("比較対象", "山間"), ("作成日", "2026年5月29日")],
        [("作成者：", "事務局"), ("作成日：", "2025/10/15"), ("更新日：", "2025/10/15")],
        [("作成日", "2026年3月4日"), ("対象者", "管理者"), ("バージョン", "0.1")],
        [("担当", "責任者"), ("作成日", "2024/11/20"), ("状態", "完了")],
        [("作成者", "田中", "部署", "営業"), ("状態", "完了", "種別", "新規"), ("用途", "社内", "備考", "重要")],
        [("出席", "田中"), ("", "鈴木")],
        [("店名", "駅前店"), ("電話", "03-1234"), ("開店", "10時"), ("閉店", "20時")],
        [("", "TC-01", "TC-02"), ("後半", "TC-11", "TC-12")],
        [("売場の入口", "1500 × 800mm", "1000 × 300mm"), ("冷蔵庫の扉", "600 × 1600mm", "500 × 1000mm")],
    ],
)
def test_labels_beside_their_values_are_no_header(rows: Sequence[Sequence[str]]) -> None:
    assert header_rows(rows) == 0


@pytest.mark.parametrize(
    "rows",
    [
        [("項目", "説明"), ("目的", "任意の商品を探す。"), ("概要", "検索する。")],
        [("用語", "意味"), ("基盤", "土台となるもの")],
        [("期間", "作業"), ("1週目", "設計"), ("2週目", "試験")],
        [("工程", "日程", "作業時間（h）"), ("計画書の作成", "2016/04/22", "40")],
        [("種類", "特徴", "利点"), ("指紋", "特徴点の抽出や画像比較により判定", "安い")],
        [("評価指標", "目的", "現状"), ("平均時間", "期間を短くする", "3.5日"), ("依頼件数", "誤りを減らす", "150件")],
        [("管理番号", "業務", "実施者"), ("YA-1", "送信", "新入生")],
        [("授業名", "名詞"), ("音楽史", "音楽,作品"), ("社会学", "社会,人類")],
        [("氏名", "役割・責任"), ("吉田", "マネジャー"), ("竹内", "開発")],
        [("班", "リーダー", "メンバー"), ("1班", "佐藤", "田中、鈴木"), ("2班", "高橋", "伊藤、渡辺")],
        [("課題", "対応策"), ("人手不足", "採用"), ("老朽化", "更新")],
        [("手当", "支給額"), ("通勤手当", "10,000円"), ("住宅手当", "20,000円")],
        [("", "川崎", "岩瀬"), ("計画", "R", "A"), ("設計", "A", "C")],
        [("", "23/10", "23/11"), ("従業員数", "", "")],
    ],
)
def test_names_above_values_are_a_header(rows: Sequence[Sequence[str]]) -> None:
    assert header_rows(rows) == 1


def test_a_style_with_a_look_for_the_first_row_shows_a_header() -> None:
    rows = [("東", "西"), ("春", "秋"), ("夏", "冬")]
    assert [header_rows(rows, style=style) for style in (None, "Table Grid", "Light Grid Accent 1")] == [0, 0, 1]


def test_a_first_row_without_cells_is_no_header() -> None:
    def build(document: Any) -> None:
        table = document.add_table(rows=2, cols=2)
        for row in table.rows:
            row.cells[0].text = row.cells[1].text = "値"
        table._tbl.insert(2, parse_xml(f"<w:tr {W}/>"))

    assert read_docx(build).pages[0].blocks[0].header_row_count == 0


def merged(cells: Sequence[str], rows: int, below: str) -> int:
    """Header rows of a table whose first row is merged, as `2x1` for columns by rows, above rows of a text."""

    def build(document: Any) -> None:
        sizes = [tuple(map(int, cell.split("x"))) for cell in cells]
        table = document.add_table(rows=rows, cols=sum(width for width, _ in sizes))
        column = 0
        for width, depth in sizes:
            table.cell(0, column).merge(table.cell(depth - 1, column + width - 1))
            column += width
        for place, row in enumerate(reversed(table.rows), start=1):
            for cell in row.cells:
                cell.text = below if place < rows else "名称"
        table.rows[0]._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {W}/>"))

    return read_docx(build).pages[0].blocks[0].header_row_count


@pytest.mark.parametrize(
    ("cells", "rows", "below", "count"),
    [
        (["1x2", "2x1", "2x1"], 4, "金額", 2),
        (["1x3", "2x1"], 4, "金額", 3),
        (["1x2", "2x1"], 2, "金額", 1),
        (["1x2", "2x1"], 4, "10", 1),
        (["1x2", "1x1", "2x1"], 4, "金額", 1),
        (["1x2", "1x3", "2x1"], 4, "金額", 1),
    ],
)
def test_rows_that_the_first_one_spans_are_headers(cells: Sequence[str], rows: int, below: str, count: int) -> None:
    assert merged(cells, rows, below) == count


def test_how_far_the_first_row_spans_is_read_in_one_pass() -> None:
    rows, columns = 200, 200
    width = '<w:gridSpan w:val="2"/>'
    first, other = (
        f"<w:tc><w:tcPr>{width}<w:vMerge{kind}/></w:tcPr><w:p/></w:tc>" for kind in (' w:val="restart"', "")
    )
    row = "<w:tr>{}</w:tr>"
    table = parse_xml(f"<w:tbl {W}>{row.format(first * columns)}{row.format(other * columns) * (rows - 1)}</w:tbl>")
    begin = perf_counter()
    assert header_row_count(table.findall("{*}tr"), has_styled_first=True) == 0
    assert perf_counter() - begin < 3
