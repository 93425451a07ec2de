"""Forms and tables that neither colours nor lines tell apart: names with values beside them, or names of columns."""

import pytest
from excel_building import blocks_of, draw_box, write
from openpyxl.styles import Font
from openpyxl.worksheet.worksheet import Worksheet

from rag_assets.contracts.content import Block
from rag_assets.parsing.names import Kind, is_attribute, is_series, kind_of

Values = list[tuple[object, ...]]

FORMS: dict[str, Values] = {
    "cover": [("プロジェクト名", "顧客管理刷新"), ("作成者", "山田"), ("作成日", "2024-04-01"), ("版数", "1.0")],
    "screen": [("画面ID", "SC001"), ("画面名", "ログイン画面"), ("機能概要", "利用者を認証する")],
    "company": [("会社名", "株式会社見本"), ("所在地", "東京都千代田区"), ("資本金", "1億円"), ("従業員数", "120名")],
    "minutes": [
        ("件名：", "打合せ"),
        ("日時：", "2024年4月1日 10:00"),
        ("場所：", "会議室A"),
        ("出席：", "山田、鈴木"),
    ],
    "test": [("テストID", "T-001"), ("テスト名", "ログイン"), ("手順", "画面を開く"), ("期待結果", "一覧が表示される")],
    "incident": [("発生日時", "2024/4/1 10:00"), ("現象", "登録できない"), ("原因", "漏れ"), ("対処", "修正版を適用")],
    "host": [("ホスト名", "db01"), ("IPアドレス", "192.168.0.1"), ("ポート", "5432")],
    "person": [("氏名", "山田太郎"), ("年齢", 30), ("身長", 170)],
    "english": [("Project", "Billing"), ("Author", "John Smith"), ("Date", "2024-04-01"), ("Version", "1.2")],
    "value twice": [("検索", "有効"), ("登録", "有効"), ("備考", "なし"), ("更新", "2024-04-01")],
    "four columns": [
        ("文書名", "基本設計書", "作成者", "山田"),
        ("システム名", "顧客管理", "承認者", "鈴木"),
        ("作成日", "2024/4/1", "承認日", "2024/4/8"),
    ],
    "six columns": [
        ("画面ID", "SC001", "画面名", "検索", "作成者", "山田"),
        ("版数", "1.0", "作成日", "2024/4/1", "更新日", "2024/5/1"),
    ],
}
TABLES: dict[str, Values] = {
    "codes": [("コード", "名称"), ("01", "東京都"), ("02", "大阪府"), ("03", "京都府")],
    "kinds": [("区分", "内容"), ("A", "新規登録する"), ("B", "変更する")],
    "terms": [("用語", "説明"), ("顧客", "利用する法人をいう。"), ("契約", "顧客と締結したもの。")],
    "settings": [("項目", "値"), ("最大接続数", "100"), ("待ち時間", "30秒"), ("ホスト名", "db01")],
    "fields": [("項目名", "型"), ("顧客名", "文字列"), ("顧客番号", "数値"), ("登録日", "日付")],
    "people": [("氏名", "部署"), ("山田太郎", "営業部"), ("鈴木花子", "総務部")],
    "months": [("月", "売上"), ("4月", 10), ("5月", 20)],
    "deadlines": [("フェーズ", "期限"), ("要件定義", "2024/4/30"), ("設計", "2024/6/30")],
    "versions": [("版数", "変更内容"), ("1.0", "新規作成"), ("1.1", "項目追加")],
    "businesses": [("業務名", "システム名"), ("受注業務", "受注管理システム"), ("出荷業務", "出荷管理システム")],
    "checks": [("チェック項目", "結果"), ("電源が入る", "○"), ("音が出る", "○"), ("異臭がない", "×")],
    "english": [("Name", "Department"), ("John", "Sales"), ("Mary", "HR")],
    "capitals": [("Country", "Capital"), ("Japan", "Tokyo"), ("France", "Paris")],
    "number in a name": [("支店", "2024年度売上"), ("東京", 100), ("大阪", 50)],
    "four columns": [
        ("氏名", "部署", "役職", "電話"),
        ("山田", "営業部", "課長", "03-1"),
        ("鈴木", "総務部", "係長", "03-2"),
    ],
    "four columns of words": [
        ("項目名", "型", "必須", "備考"),
        ("顧客名", "文字列", "○", "全角"),
        ("備考", "文字列", "-", "任意"),
    ],
}
LOOKS = ["plain", "lined"]


def table_of(rows: Values, look: str, bold: str = "") -> Block:
    """The only block of a sheet with these rows, bold in the `row` of names, in the `column` of names or nowhere."""

    def fill(sheet: Worksheet) -> None:
        write(sheet, rows, lined=look == "lined", look="bold" if bold == "row" else "")
        for name in sheet["A"] if bold == "column" else ():
            name.font = Font(bold=True)

    (block,) = blocks_of(fill)
    return block


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", FORMS)
def test_pairs_of_names_and_values_have_no_header(name: str, look: str) -> None:
    table = table_of(FORMS[name], look)
    assert (table.header_row_count, len(table.rows)) == (0, len(FORMS[name]))
    assert table.rows[0].cells == FORMS[name][0]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", TABLES)
def test_rows_below_names_of_columns_have_one(name: str, look: str) -> None:
    assert table_of(TABLES[name], look).header_row_count == 1


def test_bold_names_tell_which_of_the_two_it_is() -> None:
    rows: Values = [("甲", "一郎"), ("乙", "二郎"), ("丙", "三郎")]
    assert [table_of(rows, "lined", bold).header_row_count for bold in ("row", "column")] == [1, 0]


def test_merged_values_and_groups_of_names_keep_pairs() -> None:
    def fill(sheet: Worksheet) -> None:
        for reference, text in [
            *(
                ("A1:A2", "基本情報"),
                ("B1", "件名"),
                ("C1:E1", "給与計算の見直し"),
                ("B2", "担当"),
                ("C2:E2", "総務部"),
            ),
            *(("A3:A4", "日程"), ("B3", "開始日"), ("C3:E3", "2024-05-01"), ("B4", "完了日"), ("C4:E4", "2024-09-30")),
        ]:
            draw_box(sheet, reference, text)
            if ":" in reference:
                sheet.merge_cells(reference)

    (table,) = blocks_of(fill)
    assert table.header_row_count == 0
    assert table.text == (
        "基本情報 | 件名 | 給与計算の見直し\n | 担当 | 総務部\n日程 | 開始日 | 2024-05-01\n | 完了日 | 2024-09-30"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("1,200", Kind.NUMBER), ("△3.5%", Kind.NUMBER), ("~~100~~", Kind.NUMBER), ("=A1*2（未計算）", Kind.NUMBER)),
        *(("2024-04-01 (月)", Kind.DATE), ("令和6年5月1日", Kind.DATE), ("10:30", Kind.DATE)),
        *(("2021年度", Kind.PERIOD), ("FY21", Kind.PERIOD), ("4月", Kind.PERIOD), ("第1四半期", Kind.PERIOD)),
        *(("SC001", Kind.CODE), ("db01", Kind.CODE), ("○", Kind.MARK), ("https://example.jp", Kind.LINK)),
        *(("利用者を認証する。", Kind.SENTENCE), ("顧客名", Kind.WORDS), ("", Kind.EMPTY)),
    ],
)
def test_kinds_of_texts(text: str, kind: Kind) -> None:
    assert kind_of(text) is kind


def test_names_of_fields_are_told_from_other_words() -> None:
    assert all(map(is_attribute, ["顧客名", "単価（円）", "作成者：", "Due date", "備考※", "Ｎｏ．"]))
    assert not any(map(is_attribute, ["山田太郎", "りんご", "顧客登録", "Tokyo", ""]))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2021", "2022", "2023"], True),
        (["2030", "2025", "2020"], True),
        (["2001", "2003"], False),
        (["10", "11", "12", "1"], True),
        (["30", "31", "1"], True),
        (["3", "5", "9"], False),
        (["100", "101", "102"], False),
        (["1", "2"], False),
    ],
)
def test_numbers_that_count_periods(texts: list[str], *, expected: bool) -> None:
    assert is_series(texts) is expected
