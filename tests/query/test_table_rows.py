"""What is true of whole tables: how many rows, their sum, the one with the most, empty cells."""

from pathlib import Path
from typing import Any

import openpyxl
import pytest

from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage
from rag_assets.query.ask.tables.row_sentences import told_rows
from rag_assets.query.ask.tables.samples import are_sample
from rag_assets.query.ask.tables.table_rows import RowsAsked

COLUMNS = ["請求番号", "取引先", "請求日", "金額", "状態", "担当"]
ROWS = [
    ["S-1001", "山田商事", "2026-02-06", "786,000円", "未入金", "佐藤"],
    ["S-1002", "青葉工業", "2026-09-27", "405,000円", "入金済", "鈴木"],
    ["S-1003", "北浜物産", "2026-01-10", "447,000円", "未入金", "鈴木"],
    ["S-1004", "緑川運輸", "2026-06-11", "378,000円", "保留", "佐藤"],
    ["S-1005", "山田商事", "2026-01-03", "900,000円", "入金済", "佐藤"],
    ["合計", "", "", "2,916,000円", "", ""],
]
PLACE = ("請求管理", "請求")


def block(rows: list[list[str]], headers: int = 1) -> dict[str, Any]:
    return {"header_row_count": headers, "rows": [{"cells": cells} for cells in rows], "section": ["請求一覧"]}


def selected(question: str, columns: list[str] = COLUMNS, rows: list[list[str]] = ROWS) -> Selection | None:
    table = TableOfPage.of(block([columns, *rows]), PLACE)
    asked = RowsAsked.of(question)
    assert table is not None
    selection = asked.select(table) if asked else None
    return selection if selection and selection.rows else None


def keys(question: str) -> list[str]:
    selection = selected(question)
    return [cells[0] for cells in selection.cells] if selection else []


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("未入金の請求は何件ですか", ["S-1001", "S-1003"]),
        ("鈴木さんが担当の請求は何件？", ["S-1002", "S-1003"]),
        ("未入金と保留の請求は全部で何件", ["S-1001", "S-1003", "S-1004"]),
        ("未入金の請求の一覧", []),  # see `rows_sharing`
        ("金額が一番大きい請求はどれ？", ["S-1005"]),
        ("未入金の請求で金額が最も小さいのは？", ["S-1003"]),
        ("請求日が一番古い請求は？", ["S-1005"]),
        ("S-1002の税率は何件？", []),
        ("未払いの請求はどれですか", []),
        ("未入金の請求の承認者と督促の方法はどれですか", []),
        ("未入金の保留の請求はどれ？", []),
        ("請求書の書き方を教えてください", []),
        ("重さが一番大きい請求はどれ？", []),
    ],
)
def test_the_rows_that_a_question_asks_for(question: str, expected: list[str]) -> None:
    assert keys(question) == expected


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("未入金の請求は全部で何件ありますか", "2件 (状態: 未入金)"),
        ("佐藤さん担当の請求は何件？", "3件 (担当: 佐藤)"),
        ("未入金の請求の合計金額は？", "1,233,000円 (金額, 状態: 未入金)"),
        ("山田商事の入金済の請求は何件ですか", "1件 (取引先: 山田商事, 状態: 入金済)"),
    ],
)
def test_how_many_and_how_much_is_told_of_the_whole_table(question: str, said: str) -> None:
    selection = selected(question)
    assert selection is not None
    assert selection.said == said


@pytest.mark.parametrize(
    "question",
    [
        "未入金でない請求は何件ですか",
        "未入金以外の請求の一覧",
        "入金済を除く請求はどれですか",
        "未入金の5月の請求の合計金額は？",
        "金額が500000より大きい未入金の請求はどれ？",
        "2026-02-01以降の未入金の請求はどれですか",
        "取引先が東京商事で担当が佐藤の請求は何件ありますか",
        "渡辺が担当の未入金の請求はどれですか",
        "担当ごとに未入金の請求の合計金額は？",
        "未入金の請求を担当できるのは何人ですか",
        "佐藤が担当の取引先は何件ですか",
        "金額が一番大きい請求と一番小さい請求は？",
        "金額の合計が一番大きい取引先は？",
        "金額が一番大きい担当は？",
        "未入金とは？",
        "S-1001の金額はなぜ変わったのですか",
        "S-1001の次の請求の金額は？",
        "そのうち未入金の請求は何件ありますか",
        "Which invoices are not 未入金?",
        "How many 未入金 per owner?",
        "2026年7月の佐藤の請求は何件ですか",
        "2026年7月8日の佐藤の請求は何件ですか",
        "入金された佐藤の請求は何件ですか",
        "請求日がある佐藤の請求は何件ですか",
        "佐藤か保留の請求は何件ですか",
        "佐藤が取引先の請求は何件ですか",
        "!未入金の請求は何件ですか",
        "佐藤の請求の金額の合計と担当は？",
        "金額が一番大きい請求は何件ですか",
        "How many 未入金 have a 請求日?",
        "2026年6月11日が担当の請求は？",
    ],
)
def test_what_cannot_be_checked_selects_nothing(question: str) -> None:
    assert selected(question) is None


BOUGHT = ["総称", "部品名", "単価（円）", "個数", "合計金額", "購入場所", "備考"]
PARTS = [
    ["センサ", "RPR-220", "100", "3", "300", "秋月電子通商", "裏面"],
    ["モータ", "TA8428K", "180", "2", "360", "秋月電子通商", ""],
    ["モータ", "ギアボックス", "790", "1", "790", "千石電商", ""],
    ["基板", "両面", "300", "1", "300", "部室", ""],
    ["合計", "", "", "", "1750", "", ""],
]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("秋月電子通商で買う部品は何件ありますか", "2件 (購入場所: 秋月電子通商)"),
        ("購入場所が部室のものは何件", "1件 (購入場所: 部室)"),
        ("部室で買う部品は何件ありますか", "1件 (購入場所: 部室)"),
        ("請求の部品は何件ありますか", "4件 (請求)"),
        ("部品の合計金額", "1,750 (合計金額)"),
        ("秋月電子通商の合計金額はいくら", "660 (合計金額, 購入場所: 秋月電子通商)"),
        ("モータの単価の合計", "970 (単価（円）, 総称: モータ)"),
        ("備考が空欄の部品は何件", "3件 (備考: -)"),
        ("部品は何件ありますか", None),
        ("備考が空欄でない部品は何件", None),
        ("税率が空欄の部品は何件", None),
        ("請求の総称は何件ありますか", None),
        ("単価の平均の合計", None),
    ],
)
def test_the_thing_of_a_row_is_named_by_how_its_column_begins(question: str, said: str | None) -> None:
    selection = selected(question, BOUGHT, PARTS)
    assert (selection.said if selection else None) == said


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("単価が一番高い部品は？", ["ギアボックス"]),
        ("請求で一番高い部品は？", ["ギアボックス"]),
        ("個数が一番少ない部品は？", ["ギアボックス", "両面"]),
        ("請求で一番安い部品は？", []),  # by the price of one or of all
        ("一番高い部品は？", []),
        ("備考がまだない部品は？", ["TA8428K", "ギアボックス", "両面"]),
        ("購入場所が千石電商の部品の個数の合計", ["ギアボックス"]),
    ],
)
def test_rows_of_parts(question: str, names: list[str]) -> None:
    selection = selected(question, BOUGHT, PARTS)
    assert [cells[1] for cells in selection.cells] == names if selection else not names


def test_a_value_that_all_rows_share_is_counted() -> None:
    rows = [[str(number), f"発言{number}", "蜂須賀"] for number in range(1, 9)]
    columns = ["No", "発言内容", "発言者"]
    counted = selected("発言者が蜂須賀のものは何件", columns, rows)
    assert counted is not None
    assert counted.said == "8件 (発言者: 蜂須賀)"


def test_empty_lines_examples_and_lone_figures_are_no_rows() -> None:
    rows = [["例)", "見本", "済"], ["1", "質問甲", "済"], ["2", "質問乙", ""], ["3", "", ""], ["", "", "12"]]
    table = TableOfPage.of(block([["No.", "質問文", "完了フラグ"], *rows]), PLACE)
    assert table is not None
    assert [row[1] for row in table.rows] == ["質問甲", "質問乙"]


def test_a_total_that_says_otherwise_stops_a_sum() -> None:
    wrong = [*PARTS[:-1], ["合計", "", "", "", "9999", "", ""]]
    assert selected("部品の合計金額", BOUGHT, wrong) is None


def test_equal_neighbours_are_summed_where_the_page_says_their_sum() -> None:
    rows = [["米", "200", "A"], ["酒", "200", "A"], ["水", "50", "B"]]
    summed = selected("請求の量の合計は？", ["品名", "量", "棚"], rows)
    assert summed is not None
    assert (summed.is_proved_by(["合計\n450"]), summed.is_proved_by(["4500 | 45"])) == (True, False)
    apart = selected("棚がAの量の合計は？", ["品名", "量", "棚"], [rows[0], rows[2], rows[1]])
    assert apart is not None
    assert apart.said.startswith("400")


def test_units_of_rates_are_compared_and_dashes_are_no_figures() -> None:
    rows = [["甲", "9.5 Thash/s"], ["乙", "75.49 Thash/s"], ["丙", "-"], ["丁", "54 Thash/s"]]
    most = selected("速度が一番高い装置名は？", ["装置名", "速度"], rows)
    assert most is not None
    assert most.cells == (("乙", "75.49 Thash/s"),)


def test_old_and_new_are_said_of_dates() -> None:
    rows = [["甲", "8"], ["乙", "48"], ["丙", "20"]]
    assert selected("築年数が一番古い顧客名は？", ["顧客名", "築年数"], rows) is None


def test_a_key_that_stands_in_several_rows_is_not_counted_by_rows() -> None:
    rows = [["Q-1", "山本", "塗装"], ["Q-1", "山本", "足場"], ["Q-2", "太田", "屋根"], ["Q-3", "太田", "外壁"]]
    columns = ["見積番号", "顧客名", "工事"]
    assert selected("顧客名が山本のものは何件", columns, rows) is None
    counted = selected("顧客名が太田の見積は何件", columns, rows)
    assert counted is not None
    assert counted.said.startswith("2件")


def test_a_table_that_is_meant_and_cannot_be_told_is_no_other_table() -> None:
    table = TableOfPage.of(block([["課題", "担当"], ["K1", "佐藤、鈴木"], ["K2", "佐藤"], ["K3", "鈴木"]]), PLACE)
    asked = RowsAsked.of("佐藤が担当の請求は何件ありますか")
    assert table is not None
    assert asked is not None
    selection = asked.select(table)
    assert selection is not None
    assert not selection.rows
    other = RowsAsked.of("渡辺が担当の請求は何件ありますか")
    assert other is not None
    assert other.select(table) is None


def test_a_list_of_all_covers_a_part_of_it_with_numbers_of_its_own() -> None:
    columns = ["No.", "カテゴリ", "テスト項目"]
    rows = [[str(number), "認証" if number > 3 else "一覧・操作", f"確認{number}"] for number in range(1, 7)]
    part = [[str(number), *row[1:]] for number, row in enumerate(rows[3:], 1)]
    question = "カテゴリが認証のテストは何件"
    whole, own = selected(question, columns, rows), selected(question, columns, part)
    assert whole is not None
    assert own is not None
    assert whole.covers(own)
    assert own.covers(whole)
    counted = selected("カテゴリが一覧・操作のテストは何件", columns, rows)
    assert counted is not None
    assert counted.said.startswith("3件")


@pytest.mark.parametrize(
    ("question", "said", "is_sample"),
    [
        ("部品は何件ありますか", ["部品名: TA8428K | 必要個数: 2"], True),
        ("部品は何件ありますか", ["1件ずつ確認する。", "部品名: 甲 | 備考: 最大5件"], True),
        ("部品は何件ありますか", ["部品は7件です。", "部品名: 甲 | 備考: 乙"], False),
        ("案件は何件ありますか", ["管理部署：営業部 全 32 件 | 社外秘", "案件名: 甲 | 備考: 乙"], False),
        ("ネジは何個ありますか", ["品名: ネジ | 個数: 20"], False),
        ("登録は何件ありますか", ["部品を登録する。"], True),  # no number
        ("登録は何件ありますか", ["登録は三件ある。"], False),
        ("画面は全部で何画面", ["画面ID: S-001 | 画面名: 検索"], True),
        ("画面は全部で何画面（受注）", ["全部で31画面ある。"], False),
        ("画面はいくつありますか", ["④検索画面\n⑤登録画面"], True),
        ("商品は何件ですか", ["エリア: 履歴 | 内容: 直近10件の記録"], True),
        ("顧客テーブルの項目数は", ["No: 5 | 物理名: addr | max: 80"], True),
        ("顧客テーブルの項目数は", ["テーブル: 顧客 | 項目数: 14"], False),
        ("氏名の桁数は", ["項目: 氏名 | 桁数: 40"], False),
        ("担当が佐藤の請求の合計金額は", ["請求: 甲 | 金額: 30"], True),
        ("在庫数の合計は", ["列: 在庫数 | 説明: 在庫合計（集計による）"], True),
        ("部品表の合計金額はいくら", ["部品表: 合計金額 | ¥56,149"], False),
        ("社員は何人いますか", ["氏名: 大西 | 部署: 工事部"], True),
        ("北区の増加数は何人ですか", ["北区 | 増加数 (A)-(B): 125"], False),
        ("北区の増加数は何人ですか", ["北区 | 順位: 3"], True),
        ("社員は何人ですか", ["社員番号: 1001 | 氏名: 山田"], True),
        ("商品は何点ありますか", ["商品コード: 5001 | 名前: ねじ"], True),
        ("障害は何件ありましたか", ["障害番号: 3 | 内容: 停止"], True),
        ("画面は何個ありますか", ["画面ID: 001 | 名前: 検索"], True),
        ("サーバは何台ありますか", ["サーバ名: サーバ1 | 用途: 検索"], True),
        ("営業部の社員は何人ですか", ["部署: 営業部1課 | 氏名: 山田"], True),
        ("北区の人口は、男女合わせて何人ですか", ["市区: 北区 | 男: 3 | 女: 4 | 計: 7"], False),
        ("7月に停止している品目はいくつありますか", ["項目: 供給状況 | 内容: 通常11 / 停止525"], False),
        ("平成26年度の申請は何件ありますか", ["年度: 平成26年度 | 担当: 総務"], True),
        ("北市の2010年の人口は何人ですか", ["市: 北市 | 2005年: 41 | 2010年: 52"], False),
        ("北市の2011年の人口は何人ですか", ["市: 北市 | 2005年: 41 | 2010年: 52"], True),
        ("How many parts are there?", ["name: motor | place: shop"], True),
        ("部品の合計金額", ["部品名: 甲 | 合計金額: 30", "部品名: 乙 | 合計金額: 40"], True),
        ("部品の合計金額", ["合計 | 70", "部品名: 乙 | 合計金額: 40"], False),
        ("一番高い部品は？", ["部品名: 甲 | 単価: 30", "部品名: 乙 | 単価: 40"], True),
        ("部品の単価は？", ["部品名: 甲 | 単価: 30", "部品名: 乙 | 単価: 40"], False),
        ("定員は何人ですか", ["定員は40名です。"], False),
        ("定員は何名ですか", ["40人"], False),
        ("定員は何名ですか", ["定員は 40 名とする。"], False),
        ("定員は何名ですか", ["部屋: 会議室 | 定員: 40人"], False),
        ("取締役は何人いますか", ["取締役は5名とする"], False),
        ("取締役は何人いますか", ["5名以上とする"], False),
        ("取締役は何人いますか", ["10名以下とする"], False),
        ("取締役は何人いますか", ["三名以上とする"], False),
        ("サーバは何台", ["2基"], False),
        ("支店は何件", ["12か所"], False),
        ("システムは何個", ["3システム"], False),
        ("部署は何個", ["三部署"], False),
        ("定員は何名ですか", ["定員は最大10名です"], False),
        ("資料は何個ですか", ["2個ずつ配布"], False),
        ("定員は何名ですか", ["部屋: 会議室 | 備考: 最大10名"], True),
        ("部署は何個", ["2026年4月1日から第三部署の一覧を一般に示す。"], True),
        ("部署は何個", ["1 件名\n2 本書について"], True),
        ("部署は何個", ["費用は10万円で、3か月かかる。"], True),
        ("部署は何個", ["3つ目に示す。"], True),
        ("合計が10万円以上の場合は誰が承認しますか", ["10万円以上の購入は部長が承認する。"], False),
        ("合計が10万円以上の場合は誰が承認しますか", ["条件: 10万円 | 承認: 部長", "条件: 1万円 | 承認: 課長"], False),
        ("合計金額を確認する画面は何ですか", ["確認画面で見る。"], False),
        ("合計金額を確認する画面は何ですか", ["画面: 確認 | 内容: 金額", "画面: 登録 | 内容: 金額"], False),
        ("総額はいくらですか", ["費用はすべて込みで300万円である"], False),
        ("総額はいくらですか", ["費用は部門で負担する。"], True),
        ("総額を教えてください", ["品名: 甲 | 金額: 300円"], True),
        ("コード11の総計は何回", ["コード: 11 | 総計: 300 | 0歳: 1", "コード: 11 | 9歳: 3"], False),
        ("コードの総計は何回", ["コード: 11 | 総計: 300", "コード: 12 | 総計: 40"], True),
        ("How many variables are categorical?", ["name: a | type: categorical", "name: b | type: categorical"], True),
        ("How many seats has the hall?", ["hall: A | seats: 40", "hall: B | seats: 50"], False),
    ],
)
def test_some_rows_are_no_answer_to_a_question_for_their_number(
    question: str, said: list[str], is_sample: bool
) -> None:
    assert are_sample(question, said) is is_sample


def test_people_are_counted_in_a_table_with_a_column_of_their_names() -> None:
    staff = [["甲", "営業部", "3"], ["乙", "営業部", "1"], ["丙", "総務部", "2"]]
    for question in ("営業部は何人いますか", "部署が営業部の氏名は何名ですか"):
        counted = selected(question, ["氏名", "部署", "等級"], staff)
        assert counted is not None
        assert counted.said == "2人 (部署: 営業部)"
    assert selected("営業部は何人いますか", ["案件", "部署", "人数"], staff) is None
    rooms = [["会議室1", "10", "本館"], ["会議室2", "20", "本館"], ["会議室3", "30", "別館"]]
    assert selected("本館の会議室の定員は何人ですか", ["会議室", "定員", "棟"], rooms) is None
    twice = selected("営業部は何人いますか", ["氏名", "部署", "等級"], [*staff, ["甲", "営業部", "4"]])
    assert twice is None or not twice.said


def test_the_column_that_is_meant_is_the_one_that_is_named() -> None:
    columns, rows = (
        ["文書番号", "作成者", "承認者"],
        [["D1", "佐藤", "鈴木"], ["D2", "佐藤", "佐藤"], ["D3", "高橋", "佐藤"]],
    )
    rows += [["D4", "佐藤", "鈴木"]]
    counted = selected("作成者が佐藤の文書番号は何件ありますか", columns, rows)
    assert counted is None or counted.said.startswith("3件")
    assert selected("佐藤の文書番号はどれですか", columns, rows) is None
    estimates = [["A案", "900", "10", "1"], ["B案", "100", "90", "2"], ["C案", "200", "20", "3"]]
    names = ["案件名", "見積金額", "成約金額", "優先度"]
    most = selected("見積金額が一番大きい案件名の成約金額は？", names, estimates)
    assert most is not None
    assert [cells[0] for cells in most.cells] == ["A案"]
    assert selected("優先度が最も高い案件名は？", names, estimates) is None


@pytest.mark.parametrize(
    ("cells", "question"),
    [
        (["5kg", "3本", "2本"], "棚がAの品名の量の合計は？"),
        (["800KB", "2GB", "100KB"], "量が一番大きい品名はどれ？"),
        (["100", "10,000（税別）", "200"], "量が一番大きい品名はどれ？"),
        (["20", "20", "5"], "棚がAの品名の量の合計は？"),
    ],
)
def test_what_is_no_figure_of_one_unit_is_neither_summed_nor_compared(cells: list[str], question: str) -> None:
    rows = [[name, cell, shelf] for name, cell, shelf in zip("米酒水", cells, "AAB", strict=True)]
    assert selected(question, ["品名", "量", "棚"], rows) is None


def test_totals_are_no_rows_wherever_they_are_named() -> None:
    rows = [
        ["営業部", "旅費", "3,000"],
        ["営業部", "会議費", "2,500"],
        ["営業部", "小計", "5,500"],
        ["総務部", "備品", "900"],
    ]
    table = TableOfPage.of(block([["部署", "費目", "経費"], *rows, ["合　計", "", "6,400"]]), PLACE)
    assert table is not None
    assert [row[1] for row in table.rows] == ["旅費", "会議費", "備品"]


def test_a_cell_that_holds_several_values_makes_the_count_unsure() -> None:
    rows = [["K1", "佐藤、鈴木"], ["K2", "佐藤"], ["K3", "鈴木"], ["K4", "佐藤"]]
    assert selected("佐藤が担当の請求は何件ありますか", ["課題", "担当"], rows) is None
    rows[0][1] = "佐藤\n鈴木"
    assert selected("佐藤が担当の請求は何件ありますか", ["課題", "担当"], rows) is None


@pytest.mark.parametrize("headers", [0, 3])
def test_a_table_without_names_or_rows_is_none(headers: int) -> None:
    assert TableOfPage.of(block([["a", "b"], ["c", "d"], ["e", "f"]], headers), PLACE) is None


def test_rows_are_told_with_the_passages_that_hold_them_as_far_as_there_is_room() -> None:
    rows = [[f"S-{number}", "未入金" if number % 2 else "済", f"説明{number}" * 20] for number in range(40)]
    selection = selected("未入金の請求は何件ありますか", ["請求番号", "状態", "備考"], rows)
    assert selection is not None
    assert len(selection.rows) == 20
    passages = [
        {"chunk_id": f"c{start}", "text": "\n".join(" | ".join(cells) for cells in rows[start : start + 4])}
        for start in range(0, 40, 4)
    ]

    sentences, ids = told_rows(selection, passages, "ja")

    assert sentences[0].text == "20件 (状態: 未入金)"
    sentences = sentences[1:]
    assert sum(len(each.text) for each in sentences) < 1_000
    assert sentences[-1].text.endswith(f"（ほか {20 - len(sentences)} 件）")
    assert all(each.supported for each in sentences)
    assert ids == list(dict.fromkeys(ids))
    assert [each.citations[0].number for each in sentences][:3] == [1, 1, 2]
    assert "未入金" not in sentences[0].text, "what all rows have in common"


def test_a_row_is_cited_where_it_stands_and_not_where_its_cells_stand_in_others() -> None:
    rows = [[str(number), f"作業{number}", "可" if number % 2 else "不可"] for number in range(60, 0, -1)]
    selection = Selection((tuple(zip(("番号", "作業名", "判定"), rows[-3], strict=True)),), (tuple(rows[-3]),))
    passages = [{"chunk_id": f"c{cells[0]}", "text": " | ".join(cells)} for cells in rows]
    (sentence,), (chunk_id,) = told_rows(selection, passages, "ja")
    assert (chunk_id, sentence.citations[0].quote) == ("c3", "3 | 作業3 | 可")


def test_a_row_of_one_line_is_not_taken_for_cells_of_several_lines() -> None:
    rows = [["1", "可", "甲", "佐藤"], ["2", "否", "乙", "鈴木"], ["3", "可", "乙", "佐藤"], ["3", "可", "乙", "高橋"]]
    passages = [{"chunk_id": f"c{place}", "text": " | ".join(cells)} for place, cells in enumerate(rows)]
    passages[0]["text"] = "\n".join(each["text"] for each in passages[:3])
    selection = Selection(rows=((("担当", "高橋"),),), cells=(("3", "可", "乙", "高橋", "佐藤", "x"),))
    assert told_rows(selection, passages, "ja") == ((), [])


def test_a_wide_row_is_cited_where_its_cells_stand_one_a_line() -> None:
    columns = ["番号", "名称", "区分", "備考"]
    rows = [[str(number), f"設備{number}", "可" if number % 2 else "不可", f"注{number}"] for number in range(1, 9)]
    selection = Selection((tuple(zip(columns, rows[2], strict=True)),), (tuple(rows[2]),))
    passages = [{"chunk_id": f"c{cells[0]}", "text": "\n".join(map("{}: {}".format, columns, cells))} for cells in rows]
    (sentence,), ids = told_rows(selection, passages, "ja")
    assert ids == ["c3"]
    assert "名称: 設備3" in sentence.citations[0].quote


def test_a_grade_with_a_sign_is_not_the_grade_without() -> None:
    columns, rows = ["社員", "評価"], [["佐藤", "A"], ["鈴木", "B"], ["高橋", "A"], ["渡辺", "C"]]
    assert selected("評価がAの社員は何件", columns, rows) is not None
    assert selected("評価がA-の社員は何件", columns, rows) is None


def test_what_is_told_of_a_table_of_the_sample_is_true(sample_home: Path) -> None:
    name = "住登外者宛名番号管理_項目定義書.xlsx"
    book = openpyxl.load_workbook(Path(__file__).parents[2] / "docs" / "sample" / "基準" / name, read_only=True)
    rows = [[str(cell or "") for cell in row] for row in book.worksheets[0].iter_rows(values_only=True)]
    names = next(row for row in rows if "データ型" in row)
    of_type, digits, item = (names.index(each) for each in ("データ型", "桁数", "データ項目"))
    expected = [row[item] for row in rows if row[of_type] == "X" and row[digits].isdecimal()]
    base = knowledge_base(Home(load_settings(home=sample_home)))
    counted = base.ask("住登外者宛名番号管理の項目定義でデータ型がXのデータ項目は何件ありますか")
    assert counted.answered
    assert counted.sentences[0].text == f"{len(expected)}件 (データ型: X)"
    shown = [each.text.split("データ項目: ")[1].split(" | ")[0] for each in counted.sentences[1:]]
    assert shown == expected
    for sentence, value in zip(counted.sentences[1:], shown, strict=True):
        (cited,) = {counted.sources[each.number - 1].text for each in sentence.citations}
        assert value in cited


GOODS = ["品番", "品名", "保有", "単位", "通貨", "金額"]
GOODS_ROWS = [
    ["B-1", "机", "20", "台", "EUR", "1,200"],
    ["B-2", "銅線", "80", "m", "JPY", "85,000"],
    ["B-3", "塗料", "12", "缶", "JPY", "64,000"],
]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("請求管理の品名の保有の合計は？", None),
        ("保有が一番多い品名は？", None),
        ("請求管理の金額の合計は？", None),
        ("金額が一番大きい品名は？", None),
        ("通貨がJPYの金額の合計は？", "149,000 (金額, 通貨: JPY)"),
        ("請求の品名は何個ありますか", None),
        ("請求の品名はいくつありますか", None),
        ("請求の品名は何件ありますか", "3件 (請求)"),
    ],
)
def test_figures_of_several_units_or_that_count_are_not_told(question: str, said: str | None) -> None:
    found = selected(question, GOODS, GOODS_ROWS)
    assert (found.said if found else None) == said


def test_repeated_names_notes_taxes_and_totals_of_parts_are_no_rows() -> None:
    columns = ["番号", "品名", "金額"]
    rows = [["1", "机", "600"], ["※特価品"] * 3, ["2", "椅子", "400"], columns, ["3", "棚", "500"]]
    rows += [["", "総務部計", "1,500"], ["", "消費税（10%）", "150"], ["", "お見積合計", "1,650"]]
    table = TableOfPage.of(block([columns, *rows]), PLACE)
    assert table is not None
    assert [row[1] for row in table.rows] == ["机", "椅子", "棚"]
    assert selected("請求の金額の合計は？", columns, rows) is None, "1,500 or 1,650"
    most = selected("金額が一番大きい品名は？", columns, rows)
    assert most is not None
    assert most.cells[0][1] == "机"


@pytest.mark.parametrize("remark", ["-", ""])
def test_a_field_that_is_called_a_total_is_a_row(remark: str) -> None:
    columns = ["No", "項目名", "型", "桁", "備考"]
    rows = [["1", "注文番号", "X", "9", "a"], ["2", "数量", "N", "4", "b"], ["3", "合計金額", "N", "9", remark]]
    found = selected("型がNの項目名は何件ありますか", columns, rows)
    assert (found.said if found else None) == ("2件 (型: N)" if remark else None)


def test_a_value_that_is_also_the_name_of_a_place_does_not_mean_all_rows() -> None:
    columns, rows = ["番号", "品名", "区分"], [["D1", "甲", "入庫"], ["D2", "乙", "出庫"], ["D3", "丙", "入庫"]]
    table = TableOfPage.of({**block([columns, *rows]), "section": []}, ("入庫", "倉庫"))
    asked = RowsAsked.of("入庫の品名は何件ありますか")
    assert table is not None
    assert asked is not None
    found = asked.select(table)
    assert found is None or not found.rows


def test_rows_that_go_on_with_the_row_above_are_not_missed() -> None:
    columns = ["受注番号", "得意先", "商品", "金額"]
    rows = [
        ["J-1", "北斗", "筆", "500"],
        ["", "", "紙", "400"],
        ["J-2", "丸井", "墨", "700"],
        ["J-3", "北斗", "糊", "300"],
    ]
    assert selected("得意先が北斗の金額の合計は？", columns, rows) is None


def test_what_is_counted_is_what_rows_are_of() -> None:
    columns, rows = ["社員番号", "氏名", "部署"], [["1", "甲", "A部"], ["2", "乙", "B部"], ["3", "丙", "A部"]]
    assert selected("請求の部署の総数は？", columns, rows) is None
    history = [["1.0", "初版", "甲"], ["1.1", "追記", "乙"], ["1.2", "修正", "丙"]]
    assert selected("請求管理の請求は何件ありますか", ["版", "内容", "記入者"], history) is None
    graded = [["Q1", "甲", "済"], ["Q2", "乙", "済（要確認）"], ["Q3", "丙", "未"], ["Q4", "丁", "済"]]
    assert selected("状況が済の質問は何件ありますか", ["質問番号", "質問", "状況"], graded) is None


def test_a_table_without_names_of_columns_may_hold_more() -> None:
    found = selected("未入金の請求は何件ありますか")
    assert found is not None
    rows = [["S-2001", "山田商事", "2026-03-01", "100円", "未入金", "佐藤"]]
    others = [[f"x{place}" for place in range(6)]]
    assert found.may_go_on_in(rows, same_page=False)
    assert found.may_go_on_in(others, same_page=True)
    assert not found.may_go_on_in(others, same_page=False)
    assert not found.may_go_on_in([["17", "", "", "", "", ""]], same_page=True)
    assert found.may_go_on_in([], same_page=False), "too long to look at"
    assert are_sample("請求の金額の合計は？", ["請求\n番号 | 金額\n1 | 20\n2 | 30"])


def test_a_discount_with_a_number_of_its_own_is_a_row() -> None:
    columns = ["伝票", "内容", "売上"]
    rows = [["U1", "販売", "5,000"], ["U2", "値引", "▲500"], ["U3", "販売", "4,000"], ["U4", "販売", "3,000"]]
    found = selected("内容が販売の売上の合計は？", columns, rows)
    assert found is not None
    assert found.said == "12,000 (売上, 内容: 販売)"


STOCK = [
    ["机", "甲社", "900", "2026-05-01"],
    ["椅子", "甲社", "400", "2026-03-01"],
    ["棚", "乙社", "500", "2026-04-01"],
]
STOCK_COLUMNS = ["品名", "発注業者", "金額（税込）", "使用期限"]


@pytest.mark.parametrize(
    ("question", "place", "said"),
    [
        ("備品台帳は何件ありますか", ("備品台帳", ""), "3件 (備品台帳)"),
        ("備品は何件ありますか", ("備品台帳", ""), "3件 (備品台帳)"),
        ("備品台帳の備品は何箇所ですか", ("備品台帳", ""), "3件 (備品台帳)"),
        ("備品は何件ありますか", ("総務", "備品の画面"), None),
        ("商品は何件ありますか", ("総務", "商品一覧"), None),  # whose rows may be of anything
        ("品は何件ありますか", ("総務", "品一覧"), None),
        ("品名は何件ありますか", ("総務", "一覧"), "3件 (一覧)"),
        ("甲社に発注している品目は何件ですか", ("総務", "在庫"), "2件 (発注業者: 甲社)"),
        ("甲社に発注していない品目は何件ですか", ("総務", "在庫"), None),
        ("発注業者が「甲社」の品名は何件ですか", ("総務", "在庫"), "2件 (発注業者: 甲社)"),
        ("発注業者が甲社の合計金額は", ("総務", "在庫"), "1,300 (金額（税込）, 発注業者: 甲社)"),
    ],
)
def test_a_table_is_counted_by_what_it_is_called(question: str, place: tuple[str, str], said: str | None) -> None:
    table = TableOfPage.of(block([STOCK_COLUMNS, *STOCK]) | {"section": []}, place)
    asked = RowsAsked.of(question)
    assert table is not None
    assert asked is not None
    selection = asked.select(table)
    assert (selection.said or None if selection else None) == said


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("一番金額が大きい品名は", "机"),
        ("金額が一番小さい品名は", "椅子"),
        ("在庫で使用期限が最も早い品目は", "椅子"),
    ],
)
def test_the_most_and_the_least_by_a_part_of_the_name_of_a_column(question: str, expected: str) -> None:
    table = TableOfPage.of(block([STOCK_COLUMNS, *STOCK]) | {"section": []}, ("総務", "在庫"))
    asked = RowsAsked.of(question)
    assert table is not None
    assert asked is not None
    selection = asked.select(table)
    assert selection is not None
    assert [cells[0] for cells in selection.cells] == [expected]


EQUIPMENT = [
    ["1", "ノートPC", "総務", "大田組", "本館1階"],
    ["2", "ノートPC", "総務", "大田組", "本館2階"],
    ["3", "モニタ", "経理", "北組", "別館1階"],
    ["4", "椅子", "経理", "さくら組", "別館2階"],
]


@pytest.mark.parametrize(
    ("question", "name", "place", "said"),
    [
        ("備品は何種類ありますか", "備品名", ("備品台帳", ""), None),
        ("備品は何種類ありますか", "品名", ("備品台帳", ""), None),
        ("備品台帳の備品は全部で何種類ありますか", "備品名", ("備品台帳", ""), None),
        ("総務は何か所ですか", "備品名", ("備品台帳", ""), None),
        ("経理は何か所ですか", "備品名", ("備品台帳", ""), None),
        ("経理は全部で何か所ですか", "備品名", ("備品台帳", ""), None),
        ("大田組は何社ですか", "備品名", ("備品台帳", ""), None),
        ("さくら組は何社ですか", "備品名", ("備品台帳", ""), None),
        ("タリーズ会議室は何社ですか", "備品名", ("タリーズ会議室", ""), None),
        ("タリーズ会議室は何社ですか", "備品名", ("備品台帳", "タリーズ会議室"), None),
        ("経理の備品は何種類ですか", "備品名", ("備品台帳", ""), "2件 (部署: 経理)"),
        ("備品は何件ありますか", "備品名", ("備品台帳", ""), "4件 (備品台帳)"),
    ],
)
def test_kinds_are_counted_where_each_has_one_row(
    question: str, name: str, place: tuple[str, str], said: str | None
) -> None:
    columns = ["備品番号", name, "部署", "納入", "置き場"]
    table = TableOfPage.of(block([columns, *EQUIPMENT]) | {"section": []}, place)
    asked = RowsAsked.of(question)
    assert table is not None
    assert asked is not None
    selection = asked.select(table)
    assert (selection.said or None if selection else None) == said


@pytest.mark.parametrize("question", ["使用期限が一番近い品名は", "一番使用期限が近いのは"])
def test_what_is_nearest_to_today_is_not_the_oldest(question: str) -> None:
    assert selected(question, STOCK_COLUMNS, STOCK) is None


def test_a_list_that_is_named_short_is_none_where_two_are_called_so() -> None:
    tables = [
        TableOfPage.of(block([["テーブル名"], [name], ["乙"]]) | {"section": [section]}, ("設計書", ""))
        for name, section in (("甲", "7.1 テーブル一覧"), ("丙", "主要テーブル一覧"))
    ]
    known = [table for table in tables if table is not None]
    short, whole = RowsAsked.of("テーブルはいくつありますか"), RowsAsked.of("テーブル一覧は何件ですか")
    assert short is not None
    assert whole is not None
    assert short.is_short_for(known, [])
    assert not short.is_short_for(known[:1], [])
    assert short.is_short_for(known[:1], ["主要テーブル一覧"])
    assert not whole.is_short_for(known, [])


def test_names_alone_are_said_of_rows_that_do_not_all_fit() -> None:
    rows = [[f"商品{number}", "可", "説明" * 60] for number in "ABCDEFG"]
    table = TableOfPage.of(block([["商品", "可否", "説明"], *rows]), PLACE)
    assert table is not None
    passages = [{"chunk_id": "c", "text": "\n".join(" | ".join(row) for row in rows)}]
    selection = Selection.of(table, [tuple(row) for row in rows], [0, 2])
    assert [sentence.text for sentence in told_rows(selection, passages, "ja")[0]] == [
        f"商品: 商品{number}" for number in "ABCDEFG"
    ]
    short = Selection.of(table, [tuple(row) for row in rows[:2]], [0, 2])
    assert all("説明" in sentence.text for sentence in told_rows(short, passages, "ja")[0])


HOSPITALS = [
    ["1", "港病院", "6", "内|神内|小", "○", "categorical"],
    ["2", "丘病院", "6", "外", "", "numeric"],
    ["3", "川病院", "22", "内", "○", "categorical"],
    ["4", "森病院", "5", "内", "×", "numeric"],
]
HOSPITAL_COLUMNS = ["id", "hospital_name", "開設者コード", "services", "emergency", "type"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("開設者コードが6の項目は何件", "2件 (開設者コード: 6)"),
        ("emergencyが○の項目は何件ですか", "2件 (emergency: ○)"),
        ("emergencyが〇の項目は何件ですか", "2件 (emergency: ○)"),
        ("How many rows have type categorical?", "2 (type: categorical)"),
        ("開設者コードが6の市町村は何件", None),
        ("開設者コードが6で市立の項目は何件", None),
        ("services、emergencyが○の項目は何件", None),
        ("How many services have type categorical?", None),
        ("How many rows have services and type categorical?", None),
        ("How many rows with type categorical are public?", None),
    ],
)
def test_rows_are_counted_by_a_mark_and_in_english(question: str, said: str | None) -> None:
    selection = selected(question, HOSPITAL_COLUMNS, HOSPITALS)
    assert (selection.said if selection else None) == said


def test_a_cell_that_holds_bars_is_cited() -> None:
    selection = selected("開設者コードが6の項目は何件", HOSPITAL_COLUMNS, HOSPITALS)
    assert selection is not None
    text = "\n".join(" | ".join(cells) for cells in HOSPITALS)
    (number, *sentences), ids = told_rows(selection, [{"chunk_id": "c", "text": text}], "ja")
    assert number.text == "2件 (開設者コード: 6)"
    assert [sentence.supported for sentence in sentences] == [True, True]
    assert ids == ["c"]
