from collections import Counter
from collections.abc import Sequence
from itertools import chain

import pytest
from golden import CORPUS, needs_corpus
from pdf_building import Piece, column, grid, make_pdf, page, show

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block
from rag_assets.parsing.pdf.reader import parse_pdf

XS = [70.0, 170.0, 270.0, 370.0]
HEAD = ("name", "price", "unit")


def ruled(rows: Sequence[tuple[str, ...]], top: float = 100.0) -> str:
    ys = [top + 20 * number for number in range(len(rows) + 1)]
    return page(cells(rows, top), grid(XS, ys))


def cells(rows: Sequence[tuple[str, ...]], top: float = 100.0) -> list[Piece]:
    return [
        (XS[column] + 5, top + 14 + 20 * row, 10.0, text)
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
        if text
    ]


def read(*pages: str) -> list[list[Block]]:
    return [list(page.blocks) for page in parse_pdf(make_pdf(list(pages)), 10).pages]


def rows(block: Block) -> list[tuple[str, ...]]:
    return [row.cells for row in block.rows]


BODY = [(f"item{number}", f"{number}.50", "kg") for number in range(4)]


def test_ruled_table() -> None:
    content = ruled([HEAD, *BODY]) + "\n" + page([*column(70, 60, ["Above it."]), *column(70, 240, ["Below it."])])
    ((above, table, below),) = read(content)
    assert (above.text, below.text) == ("Above it.", "Below it.")
    assert (table.kind, table.header_row_count, rows(table)) == (BlockKind.TABLE, 1, [HEAD, *BODY])
    assert table.text.splitlines() == [" | ".join(row) for row in [HEAD, *BODY]]
    assert table.box == pytest.approx((70, 100, 370, 200), abs=1)
    assert table.rows[1].box == pytest.approx((70, 120, 370, 140), abs=1)


def test_a_table_open_at_its_sides() -> None:
    ys = [100.0 + 20 * number for number in range(6)]
    lines = [f"70 {842 - y} m 370 {842 - y} l S" for y in ys]
    lines += [f"{x} {842 - ys[0]} m {x} {842 - ys[-1]} l S" for x in XS[1:-1]]
    ((table,),) = read(page(cells([HEAD, *BODY]), "\n".join(lines)))
    assert rows(table) == [HEAD, *BODY]


def test_rules_drawn_as_thin_areas_and_as_frames_of_cells() -> None:
    thin = "\n".join(
        [f"70 {842 - (100 + 20 * number)} 300 0.5 re f" for number in range(6)] + [f"{x} 742 0.5 -100 re f" for x in XS]
    )
    frames = "\n".join(f"{x} {842 - (120 + 20 * row)} 100 20 re S" for x in XS[:-1] for row in range(5))
    for drawing in (thin, frames):
        ((table,),) = read(page(cells([HEAD, *BODY]), drawing))
        assert rows(table) == [HEAD, *BODY]


def test_merged_cells_are_filled_and_stand_once_in_the_text() -> None:
    """The name spans two rows, the price two columns over `net` and `gross`."""
    drawing = "\n".join(
        [
            f"70 {842 - 100} m 370 {842 - 100} l S",
            f"170 {842 - 120} m 370 {842 - 120} l S",
            *(f"70 {842 - y} m 370 {842 - y} l S" for y in (140, 160, 180)),
            *(f"{x} {842 - 100} m {x} {842 - 180} l S" for x in (70, 170, 370)),
            f"270 {842 - 120} m 270 {842 - 180} l S",
        ]
    )
    texts = [("name", "price", ""), ("", "net", "gross"), ("item0", "1.00", "1.10"), ("item1", "2.00", "2.20")]
    ((table,),) = read(page(cells(texts), drawing))
    assert table.header_row_count == 2
    assert rows(table)[:2] == [("name", "price", "price"), ("name", "net", "gross")]
    assert table.text.splitlines()[:2] == ["name | price", " | net | gross"]


SPANNED = {  # a header over two columns of values, and what stands below it
    "a numbered list": [("chapter", "rule", ""), ("1", "1.1", "Keep them."), ("2", "1.2", "Sort them."), HEAD],
    "sentences": [
        ("chapter", "rule", ""),
        ("login", "first", "Whoever comes from another network is asked for a name and a word, too."),
        ("login", "second", "After ten words that are wrong nobody of that name is let in for an hour."),
        HEAD,
    ],
    "figures": [("fuel", "price", ""), *((name, "10.3", "MJ/kg") for name in ("wood", "coal", "gas", "oil"))],
}


@pytest.mark.parametrize("name", SPANNED)
def test_rows_of_values_below_a_header_that_spans_columns_are_no_headers(name: str) -> None:
    xs = [70.0, 170.0, 270.0, 770.0]
    drawing = "\n".join(
        [
            *(f"70 {842 - y} m 770 {842 - y} l S" for y in (100, 120, 140, 160, 180, 200)),
            *(f"{x} 742 m {x} 642 l S" for x in (70, 170, 770)),
            "270 722 m 270 642 l S",
        ]
    )
    texts = [
        (xs[column] + 5, 114.0 + 20 * row, 10.0, text)
        for row, cells_of_row in enumerate(SPANNED[name])
        for column, text in enumerate(cells_of_row)
        if text
    ]
    ((table,),) = read(page(texts, drawing))
    assert (table.header_row_count, rows(table)[0][1:]) == (1, (SPANNED[name][0][1],) * 2)


@pytest.mark.parametrize("names", [("1st", "2nd"), ("1Q", "2Q"), ("first", "second"), ("50円", "1,000円")])
def test_a_second_row_that_names_columns_of_figures_is_a_header(names: tuple[str, str]) -> None:
    drawing = "\n".join(
        [
            *(f"70 {842 - y} m 370 {842 - y} l S" for y in (100, 140, 160, 180)),
            f"170 {842 - 120} m 370 {842 - 120} l S",
            *(f"{x} 742 m {x} 662 l S" for x in (70, 170, 370)),
            "270 722 m 270 662 l S",
        ]
    )
    texts = [("pupil", "score", ""), ("", *names), ("Ann", "71", "82"), ("Bob", "65", "90")]
    ((table,),) = read(page(cells(texts), drawing))
    assert (table.header_row_count, rows(table)[1]) == (2, ("pupil", *names))


@pytest.mark.parametrize(
    ("pieces", "names"),
    [
        ([(210.0, 114.0, 10.0, "金"), (310.0, 114.0, 10.0, "額")], ("金額", "金額")),
        ([(210.0, 114.0, 10.0, "価格"), (310.0, 114.0, 10.0, "単位")], ("価格", "単位")),
    ],
)
def test_a_word_spread_over_columns_is_the_name_of_them_all(pieces: list[Piece], names: tuple[str, str]) -> None:
    drawing = "\n".join(
        [
            *(f"70 {842 - y} m 370 {842 - y} l S" for y in (100, 120, 140, 160, 180)),
            *(f"{x} 742 m {x} 662 l S" for x in (70, 170, 370)),
            "270 722 m 270 662 l S",
        ]
    )
    ((table,),) = read(page([*pieces, *cells([("name", "", ""), *BODY[:3]])], drawing))
    assert (table.header_row_count, rows(table)[0]) == (1, ("name", *names))


def test_the_first_full_row_above_figures_names_the_columns() -> None:
    texts = [("item", "value", "unit"), ("area", "north", "-"), ("use", "water", "-"), ("size", "15,000", "120")]
    ((table,),) = read(ruled([*texts, ("age", "12", "3"), ("rate", "5", "7")]))
    assert table.header_row_count == 1


HEADERS = {  # rows of a table, and how many of them are headers
    "items that are all alike": ([("book", "6,200", "yes"), ("coat", "41,700", "yes"), ("shoes", "800", "no")], 0),
    "years": ([("項目", "2018年", "2019年"), ("売上", "65", "70"), ("費用", "50", "52")], 1),
    "an empty corner": ([("", "group A", "group B"), ("leader", "none", "one"), ("rules", "no", "yes")], 1),
    "titles above": ([("財産目録", "", ""), ("期末の現在", "", ""), HEAD, *BODY], 3),
    "a section below": ([HEAD, ("fruit", "", ""), ("apples", "1.50", "kg")], 1),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_told_from_texts(name: str) -> None:
    texts, count = HEADERS[name]
    ((table,),) = read(ruled(texts))
    assert (rows(table), table.header_row_count) == (texts, count)


def test_a_shaded_row_below_a_full_header_is_no_header() -> None:
    shading = f"0.8 g 70 {842 - 120} 300 20 re f 0.9 g 70 {842 - 140} 300 20 re f 0 g"
    ((table,),) = read(f"{shading}\n" + ruled([HEAD, *[("item", "text", "more")] * 3]))
    assert table.header_row_count == 1


def test_shaded_titles_of_parts_are_no_headers() -> None:
    texts = [("1. general", ""), ("what is it", "p. 2"), ("2. rules", ""), ("what is allowed", "p. 3")]
    shading = "\n".join(f"0.8 g 70 {842 - y} 300 20 re f 0 g" for y in (120, 160))
    drawing = grid([70.0, 170.0, 370.0], [100.0, 120.0, 140.0, 160.0, 180.0])
    ((table,),) = read(page(cells(texts), f"{shading}\n{drawing}"))
    assert (rows(table), table.header_row_count) == (texts, 0)


def test_a_shaded_row_above_others_is_a_header_in_bold_type_throughout() -> None:
    texts = [("kind", "what", ""), *[("item", "text", "")] * 3]
    bold = "\n".join(show(piece).replace("/L ", "/B ") for piece in cells(texts))
    shading = f"0.8 g 70 {842 - 120} 300 20 re f 0 g"
    ((table,),) = read("\n".join([shading, grid([70.0, 170.0, 370.0], [100.0, 120.0, 140.0, 160.0, 180.0]), bold]))
    assert table.header_row_count == 1


def test_a_centred_row_above_others_is_a_header() -> None:
    texts = [("項目", "内容"), ("果物", "箱に入れる"), ("野菜", "袋に入れる"), ("米", "量る")]
    places = [(110.0, 260.0), *[(75.0, 175.0)] * 3]
    pieces = [
        (left, 114.0 + 20 * row, 10.0, text)
        for row, (lefts, names) in enumerate(zip(places, texts, strict=True))
        for left, text in zip(lefts, names, strict=True)
    ]
    ys = [100.0, 120.0, 140.0, 160.0, 180.0]
    ((table,),) = read(page(pieces, grid([70.0, 170.0, 370.0], ys)))
    assert (rows(table), table.header_row_count) == (texts, 1)


def test_a_shaded_row_of_units_above_figures_is_a_header_too() -> None:
    names = [("区分", "前期", "当期"), ("費目", "（千円）", "（百万円）")]
    texts = [*names, ("売上", "10", "20"), ("費用", "5", "6"), ("利益", "5", "14")]
    drawing = f"0.8 g 70 702 300 40 re f 0 g\n{grid(XS, [100.0 + 20 * n for n in range(6)])}"
    ((table,),) = read(page(cells(texts, 100.0), drawing))
    assert (rows(table), table.header_row_count) == (texts, 2)


def test_a_title_block_on_top_of_a_table_is_a_table_of_its_own() -> None:
    """Its columns cross those below: the first cell is as wide as two of them, the last of them as two of its cells."""
    xs = [70.0, 130.0, 190.0, 250.0, 310.0, 370.0]
    drawing = "\n".join(
        [
            *(f"70 {842 - y} m 370 {842 - y} l S" for y in range(100, 240, 20)),
            *(f"{x} 742 m {x} 702 l S" for x in (xs[0], *xs[2:])),
            *(f"{x} 702 m {x} 622 l S" for x in (*xs[:4], xs[5])),
        ]
    )
    title = [("document", "", "date", "by", "of"), ("tables", "", "May", "Ann", "us")]
    body = [("No.", "name", "kind", "more"), *[(str(number), f"x{number}", "text", "none") for number in (1, 2, 3)]]
    texts = [
        (xs[column] + 5, 114.0 + 20 * row, 10.0, text)
        for row, names in enumerate([*title, *body])
        for column, text in enumerate(names)
        if text
    ]
    ((above, below),) = read(page(texts, drawing))
    assert rows(above) == [tuple(filter(None, row)) for row in title]
    assert (rows(below), below.header_row_count) == (body, 1)


@pytest.mark.parametrize("header_xs", [(70, 134, 234, 334, 370), (70, 170, 300, 370)])
def test_a_header_ruled_otherwise_than_its_table_stays_with_it(header_xs: tuple[int, ...]) -> None:
    """Its rules stand four points beside those below, or it has columns of its own."""
    xs = (70, 130, 230, 330, 370)
    drawing = "\n".join(
        [
            *(f"70 {842 - y} m 370 {842 - y} l S" for y in range(100, 240, 20)),
            *(f"{x} 742 m {x} 722 l S" for x in header_xs),
            *(f"{x} 722 m {x} 622 l S" for x in xs),
        ]
    )
    names = [(left + 8.0, 114.0, 9.0, f"name{number}") for number, left in enumerate(header_xs[:-1])]
    body = [
        (left + 8.0, 134.0 + 20 * row, 9.0, f"{row}{column}") for row in range(5) for column, left in enumerate(xs[:-1])
    ]
    ((table,),) = read(page([*names, *body], drawing))
    assert (len(table.rows), table.header_row_count) == (6, 1)


def test_lines_of_a_cell_are_joined() -> None:
    ys = [100.0, 120.0, 160.0]
    texts: list[Piece] = [
        (75.0, 114.0, 10.0, "項目"),
        (175.0, 114.0, 10.0, "説明"),
        (275.0, 114.0, 10.0, "備考"),
        (75.0, 134.0, 10.0, "利用者"),
        (175.0, 134.0, 10.0, "登録された"),
        (175.0, 150.0, 10.0, "人の番号"),
        (275.0, 134.0, 10.0, "必須"),
    ]
    ((table,),) = read(page(texts, grid(XS, ys)))
    assert rows(table) == [("項目", "説明", "備考"), ("利用者", "登録された人の番号", "必須")]


@pytest.mark.parametrize(
    "lines",
    [
        ("林檎の箱詰め", "蜜柑", "葡萄の箱"),
        ("林檎 790", "みかんの箱 85"),
        ("残高の取り崩し額 △ 400,000", "新たな積み立ての額 8,138"),
        ("担当：山田", "期日：月末"),
        ("・りんごの箱", "・みかんの箱"),
    ],
)
def test_lines_that_end_early_stay_lines_of_their_cell(lines: tuple[str, ...]) -> None:
    texts = [(75.0, 114.0, 10.0, "項目"), (175.0, 114.0, 10.0, "説明"), *column(175, 134, [*lines])]
    ((table,),) = read(page([*texts, (75.0, 134.0, 10.0, "果物")], grid([70.0, 170.0, 370.0], [100.0, 120.0, 190.0])))
    assert rows(table)[1] == ("果物", "\n".join(lines))
    assert table.text.splitlines()[1] == f"果物 | {' '.join(lines)}"


def test_rows_that_only_their_lines_part_are_told_apart() -> None:
    ((table,),) = read(page(cells([HEAD, *BODY]), grid(XS, [100.0, 120.0, 200.0])))
    assert rows(table) == [HEAD, *BODY]


def test_figures_of_an_account_stand_beside_their_labels() -> None:
    """Rules between columns only, but for a short one above the subtotal, which cuts no other column."""
    drawing = "\n".join(
        [
            grid(XS, [100.0, 120.0]),
            "70 642 m 370 642 l S",
            *(f"{x} 722 m {x} 642 l S" for x in XS),
            f"170 {842 - 160} m 270 {842 - 160} l S",
        ]
    )
    body = [("income", "", ""), ("fees", "1,200", ""), ("gifts", "300", ""), ("total", "1,500", "1,500")]
    ((table,),) = read(page(cells([HEAD, *body]), drawing))
    assert rows(table) == [HEAD, *body]
    assert table.text.splitlines()[1:3] == ["income", "fees | 1,200"]


def test_a_name_in_the_middle_of_listed_rows_belongs_to_all_of_them() -> None:
    """The ages are ruled row by row, the name and the rates are not."""
    drawing = "\n".join(
        [
            grid(XS, [100.0, 120.0]),
            "70 662 m 370 662 l S",
            *(f"{x} 722 m {x} 662 l S" for x in XS),
            *(f"170 {842 - y} m 270 {842 - y} l S" for y in (140, 160)),
        ]
    )
    body = [("", "50", "290"), ("men", "51", "310"), ("", "52", "335")]
    ((table,),) = read(page(cells([HEAD, *body]), drawing))
    assert rows(table) == [HEAD, *(("men", *row[1:]) for row in body)]
    assert table.text.splitlines()[1:] == [" | 50 | 290", "men | 51 | 310", " | 52 | 335"]


@pytest.mark.parametrize("names", [["営業", "本部"], ["4月"], ["2023年度"]])
def test_a_name_of_listed_rows_stays_whole_whatever_it_is(names: list[str]) -> None:
    drawing = "\n".join(
        [
            grid(XS, [100.0, 120.0]),
            "70 632 m 370 632 l S",
            *(f"{x} 722 m {x} 632 l S" for x in XS),
            *(f"170 {842 - y} m 270 {842 - y} l S" for y in (150, 180)),
        ]
    )
    body = [("売上高", "800"), ("費用", "500"), ("利益", "300")]
    pieces = [
        (left, 138.0 + 30 * row, 10.0, own[n]) for row, own in enumerate(body) for n, left in ((0, 175.0), (1, 275.0))
    ]
    name = [(75.0, 175.0 - 7 * len(names) + 14 * number, 10.0, text) for number, text in enumerate(names)]
    ((table,),) = read(page([*cells([HEAD]), *pieces, *name], drawing))
    assert rows(table) == [HEAD, *(("\n".join(names), *row) for row in body)]
    assert table.text.count(" ".join(names)) == 1


@pytest.mark.parametrize(
    ("top", "names"), [(162, ["営業", "本部"]), (132, ["営業本部"]), (168, ["4月"]), (168, ["営業本部"])]
)
def test_rows_that_rules_part_stay_whole_beside_a_name_that_spans_them(top: int, names: list[str]) -> None:
    """Figures of this year, and those of the last below them, in rows that are ruled but for the name."""
    xs = (60, 130, 260, 340, 420)
    drawing = "\n".join(
        [
            *(f"60 {842 - y} m 420 {842 - y} l S" for y in (100, 120, 210)),
            *(f"130 {842 - y} m 420 {842 - y} l S" for y in (150, 180)),
            *(f"{x} 742 m {x} 632 l S" for x in xs),
        ]
    )
    head = ("部門", "項目", "当期", "増減")
    pieces = [(left + 5.0, 114.0, 9.0, text) for left, text in zip(xs, head, strict=False)]
    pieces += [(65.0, top + 12.0 * number, 9.0, text) for number, text in enumerate(names)]
    items = ("売上高", "費用", "利益")
    for y, item in zip((132.0, 162.0, 192.0), items, strict=True):
        pieces += [(135.0, y, 9.0, item), (265.0, y, 9.0, "800"), (265.0, y + 12, 9.0, "(1,100)")]
        pieces += [(345.0, y, 9.0, "100"), (345.0, y + 12, 9.0, "(50)")]
    ((table,),) = read(page(pieces, drawing))
    assert rows(table) == [head, *(("".join(names), item, "800 (1,100)", "100\n(50)") for item in items)]


def test_the_half_of_a_balance_sheet_without_rules_has_a_row_for_each_figure() -> None:
    """Assets are one ruled cell; debts and equity beside them are several."""
    xs = (60, 160, 240, 340, 420)
    drawing = "\n".join(
        [
            *(f"60 {842 - y} m 420 {842 - y} l S" for y in (100, 120, 220, 240)),
            *(f"240 {842 - y} m 420 {842 - y} l S" for y in (160, 180)),
            *(f"{x} 742 m {x} 602 l S" for x in xs),
        ]
    )
    sheet = [
        ("科目", "金額", "科目", "金額"),
        ("流動資産", "1,000", "流動負債", "600"),
        ("現金及び預金", "700", "未払金", "600"),
        ("前払金", "300", "負債合計", "600"),
        ("", "", "剰余金", "400"),
        ("", "", "純資産合計", "400"),
        ("資産合計", "1,000", "負債純資産合計", "1,000"),
    ]
    pieces = [
        (left + 4.0, 114.0 + 20 * row, 9.0, text)
        for row, texts in enumerate(sheet)
        for left, text in zip(xs, texts, strict=False)
        if text
    ]
    ((table,),) = read(page(pieces, drawing))
    assert rows(table) == sheet
    assert table.text.count("現金及び預金") == 1


def test_names_that_no_rule_parts_stand_beside_the_figures_of_ruled_rows() -> None:
    drawing = "\n".join(
        [
            grid([70.0, 270.0, 370.0], [100.0, 120.0]),
            "70 662 m 370 662 l S",
            *(f"{x} 722 m {x} 662 l S" for x in (70, 270, 370)),
            *(f"270 {842 - y} m 370 {842 - y} l S" for y in (140, 160)),
        ]
    )
    texts = [("name", "", "sum"), ("収入の合計", "", "310"), ("支出", "", "290"), ("残高", "", "20")]
    ((table,),) = read(page(cells(texts), drawing))
    assert rows(table) == [(row[0], row[2]) for row in texts]


def test_a_name_in_the_middle_of_one_ruled_row_belongs_to_all_rows_inside_it() -> None:
    body = [("10:00", "開会"), ("11:00", "祝辞"), ("12:00", "休憩")]
    pieces = [
        (left, 138.0 + 14 * row, 10.0, own[n]) for row, own in enumerate(body) for n, left in ((0, 175.0), (1, 275.0))
    ]
    name = (75.0, 152.0, 10.0, "第1日")
    ((table,),) = read(page([*cells([HEAD]), *pieces, name], grid(XS, [100.0, 120.0, 180.0])))
    assert rows(table) == [HEAD, *(("第1日", *row) for row in body)]


def test_a_short_sentence_beside_figures_stays_in_its_cell() -> None:
    note = ["交通費及び", "宿泊費など", "の実費"]
    pieces = [*column(175, 134, ["1,000", "2,000", "3,000"]), *column(275, 134, note), (75.0, 134.0, 10.0, "旅費")]
    ((table,),) = read(page([*cells([HEAD]), *pieces], grid(XS, [100.0, 120.0, 180.0])))
    assert (len(table.rows), table.rows[1].cells[2]) == (2, "".join(note))


def test_paragraphs_beside_a_name_of_as_many_lines_stay_in_their_cell() -> None:
    name = ["収支報告書の", "保存及び閲覧", "（第７条）"]
    text = ["議長は、提出された報告書を", "五年間は保存し、その写しを", "市民の閲覧に供する。"]
    pieces = [
        (75.0, 114.0, 10.0, "項目"),
        (175.0, 114.0, 10.0, "概要"),
        *column(75, 134, name),
        *column(175, 134, text),
    ]
    ((table,),) = read(page(pieces, grid([70.0, 170.0, 370.0], [100.0, 120.0, 180.0])))
    assert [row.cells[1] for row in table.rows] == ["概要", "".join(text)]


def test_sentences_beside_each_other_stay_in_their_cells() -> None:
    lines = ["a sentence that runs", "as wide as the cell is", "and ends well below"]
    texts = [(75.0, 114.0, 10.0, "name"), (175.0, 114.0, 10.0, "price"), (275.0, 114.0, 10.0, "unit")]
    pieces = [*texts, *column(75, 134, lines), *column(175, 134, ["10", "20", "30"]), *column(275, 134, ["kg"])]
    ((table,),) = read(page(pieces, grid(XS, [100.0, 120.0, 180.0])))
    assert rows(table) == [HEAD, (" ".join(lines), "10\n20\n30", "kg")]


def test_columns_that_only_the_header_rules() -> None:
    drawing = "\n".join(
        [
            grid(XS, [100.0, 120.0]),
            *(f"70 {842 - y} m 370 {842 - y} l S" for y in (140, 160, 180, 200)),
            *(f"{x} 722 m {x} 642 l S" for x in (70, 370)),
        ]
    )
    ((table,),) = read(page(cells([HEAD, *BODY]), drawing))
    assert rows(table) == [HEAD, *BODY]


def test_a_run_over_a_rule_is_cut_there() -> None:
    """Words that one text command sets over two cells."""
    ys = [100.0, 120.0, 140.0]
    texts: list[Piece] = [(75.0, 114.0, 10.0, "aa bb cc dd ee ff gg hh ii jj kk"), *cells([BODY[0]], 120.0)]
    ((table,),) = read(page(texts, grid(XS, ys)))
    assert "".join(table.rows[0].cells).replace(" ", "") == "aabbccddeeffgghhiijjkk"
    assert all(table.rows[0].cells[:2])


def test_a_header_is_repeated_on_the_next_page() -> None:
    first, second = [HEAD, *BODY], [(f"more{number}", f"{number}.10", "m") for number in range(3)]
    (one,), (two,) = read(ruled(first, 600.0), ruled(second))
    assert (rows(one), rows(two)) == (first, [HEAD, *second])
    assert two.header_row_count == 1
    assert two.text.splitlines()[0] == "name | price | unit"
    assert two.rows[0].box is None
    assert two.rows[1].box is not None


def test_a_header_that_stands_on_both_pages_is_not_doubled() -> None:
    (_,), (two,) = read(ruled([HEAD, *BODY], 600.0), ruled([HEAD, *BODY[:2]]))
    assert (rows(two), two.header_row_count) == ([HEAD, *BODY[:2]], 1)


def test_a_table_with_a_title_of_its_own_takes_no_header() -> None:
    one, two = ([(title, "", ""), HEAD, *BODY] for title in ("財産目録", "貸借対照表"))
    ((_,), (table,)) = read(ruled(one), ruled(two))
    assert (rows(table), table.header_row_count) == (two, 2)


def test_a_table_of_other_columns_takes_no_header() -> None:
    ys = [100.0, 120.0, 140.0]
    other = page([(75.0, 114.0, 10.0, "left"), (235.0, 114.0, 10.0, "right")], grid([70.0, 230.0, 370.0], ys))
    _, (two, *_) = read(ruled([HEAD, *BODY], 600.0), other)
    assert "name" not in two.text


def test_close_columns_without_rules_run_on_over_pages_with_wide_margins() -> None:
    """Columns 0.9 of the type apart, a footnote below the first part, page numbers far inside the page."""
    places = (70.0, 120.0, 150.0, 177.3)

    def line(top: float, *texts: str) -> list[Piece]:
        return [(left, top, 10.0, text) for left, text in zip(places, texts, strict=True)]

    pages = []
    for number in (1, 2, 3):
        pieces = line(100, "key", "n", "id", "meaning") if number == 1 else []
        for row in range(6):
            pieces += line(120 + 14 * row, f"x{number}{row}", str(row), f"U{number}{row}", f"name of {number}{row}")
        pieces += [(70.0, 660.0, 7.0, "* note")] if number == 1 else []
        pages.append(page([*pieces, (290.0, 700.0, 10.0, str(number))]))
    first, second, third = read(*pages)
    assert [block.kind for block in second] == [BlockKind.TABLE, BlockKind.HEADER]
    for number, blocks in enumerate((first, second, third), start=1):
        assert blocks[0].header_row_count == 1
        assert rows(blocks[0])[0] == ("key", "n", "id", "meaning")
        assert rows(blocks[0])[1] == (f"x{number}0", "0", f"U{number}0", f"name of {number}0")


def test_a_first_row_of_figures_among_figures_is_no_header() -> None:
    named = [("name", "kind", "sum"), *((f"item{number}", "kg", f"{number}.50") for number in range(6))]
    places = (70.0, 170.0, 270.0)

    def headers(rows: Sequence[tuple[str, ...]]) -> int:
        pieces = [
            (places[column], 100.0 + 14 * row, 10.0, text)
            for row, texts in enumerate(rows)
            for column, text in enumerate(texts)
        ]
        ((table,),) = read(page(pieces))
        return table.header_row_count

    assert (headers(named), headers(named[1:])) == (1, 0)


def test_amounts_above_a_rule_and_their_total_are_no_header() -> None:
    texts = [("dues", "28,584.02"), ("fees", "396.00"), ("total", "28,980.02"), *[("item", "12.50")] * 6]
    pieces = [
        (left, 100.0 + 14 * row, 10.0, text)
        for row, own in enumerate(texts)
        for left, text in zip((70.0, 270.0), own, strict=True)
    ]
    ((table,),) = read(page(pieces, "60 718.5 m 330 718.5 l S"))
    assert table.header_row_count == 0
    assert rows(table) == texts


def test_a_frame_around_the_page_is_no_table() -> None:
    """A frame with a title block above: its text is read as usual."""
    drawing = grid([40.0, 300.0, 555.0], [40.0, 60.0, 80.0]) + "\n40 800 515 -760 re S"
    texts = [(45.0, 54.0, 10.0, "Title"), (305.0, 54.0, 10.0, "Design"), (45.0, 74.0, 10.0, "Author")]
    body = ["Running text inside of the frame, which is no cell,", "goes on over some lines and then ends."]
    ((table, paragraph),) = read(page([*texts, *column(60, 120, body)], drawing))
    assert rows(table) == [("Title", "Design"), ("Author", "")]
    assert paragraph.text == " ".join(body)


def test_an_account_of_many_empty_cells_is_a_table() -> None:
    xs = [70.0 + 50 * number for number in range(10)]
    body = [("fees", "120"), ("gifts", "30"), ("sales", "7"), ("rent", "50")]
    texts = [
        (left, 114.0 + 20 * row, 10.0, text)
        for row, own in enumerate(body)
        for left, text in zip((75.0, 475.0), own, strict=True)
    ]
    ((table,),) = read(page(texts, grid(xs, [100.0 + 20 * number for number in range(5)])))
    assert rows(table) == body
    assert table.box == pytest.approx((70, 100, 520, 180), abs=1)  # that of its rules


def test_boxes_of_a_chart_are_no_table() -> None:
    ((block,),) = read(page(column(72, 500, ["Only a legend."]), grid(XS, [100.0, 120.0, 140.0])))
    assert (block.kind, block.text) == (BlockKind.PARAGRAPH, "Only a legend.")


def test_columns_without_rules_and_a_rule_below_their_header() -> None:
    texts = [("Country", "Area", "People"), ("Japan", "378", "125"), ("Norway", "385", "5"), ("Chile", "756", "19")]
    ((table,),) = read(page(cells(texts), "70 722 m 370 722 l S"))
    assert (rows(table), table.header_row_count) == (texts, 1)


def bands(names: list[str], step: float = 12.0) -> list[Block]:
    """A page of rules across with a name and two lines in each band between them, below the names of the columns."""
    ys = [100.0 + 40 * number for number in range(len(names) + 1)]
    pieces = [(75.0, 90.0, 9.0, "trouble"), (225.0, 90.0, 9.0, "remedy")]
    for name, y in zip(names, ys, strict=False):
        texts = ("Switch the machine off, wait for at least a minute", "and switch it on again.")
        pieces += [(75.0, y + 12, 9.0, name), *((225.0, y + 12 + step * n, 9.0, text) for n, text in enumerate(texts))]
    (blocks,) = read(page(pieces, "\n".join(f"70 {842 - y} m 440 {842 - y} l S" for y in ys)))
    return blocks


def test_rows_that_only_rules_across_part_keep_their_lines_together() -> None:
    names = ["no light", "no sound", "no water", "no heat"]
    (table,) = bands(names)
    remedy = "Switch the machine off, wait for at least a minute and switch it on again."
    assert rows(table) == [("trouble", "remedy"), *((name, remedy) for name in names)]


def test_sentences_in_two_columns_between_rules_are_no_table() -> None:
    ys = [100.0 + 60 * number for number in range(6)]
    texts = [*column(72, 0, ["今月の話題", "新しい棟が建つ。工事は来月", "に始まり、春に終わる。"])]
    texts += column(320, 0, ["人の動き", "総務部に三名が加わった。仕事", "は来月から分け合う。"])
    pieces = [(left, y + 14 + top, size, text) for y in ys[:-1] for left, top, size, text in texts]
    (blocks,) = read(page(pieces, "\n".join(f"70 {842 - y} m 520 {842 - y} l S" for y in ys)))
    assert not any(block.rows for block in blocks)
    assert "新しい棟が建つ。工事は来月に始まり、春に終わる。" in [block.text for block in blocks]


def test_lines_far_apart_between_rules_are_rows_of_their_own() -> None:
    assert len(bands(["no light", "no sound", "no water", "no heat"], step=22)) > 1


def spread(left: float, width: float, top: float, word: str) -> list[Piece]:
    step = (width - 10) / (len(word) - 1)
    return [(left + step * place, top, 10.0, letter) for place, letter in enumerate(word)]


def test_letters_of_a_word_that_are_set_apart_are_no_columns() -> None:
    values = ["三月十二日の日曜日", "市民体育館メイン", "二十一点三ゲーム", "自由とします。"]
    pieces = [
        piece
        for row, (word, value) in enumerate(zip(("日時", "会場", "競技方式", "参加料"), values, strict=True))
        for piece in (*spread(60, 72, 100 + 16 * row, word), (160.0, 100.0 + 16 * row, 10.0, value))
    ]
    ((table,),) = read(page(pieces))
    assert rows(table) == [*zip(("日時", "会場", "競技方式", "参加料"), values, strict=True)]


def test_letters_of_a_word_in_a_cell_are_one_word() -> None:
    head = [
        (80.0, 114.0, 10.0, "科　　　　　　目"),
        (180.0, 114.0, 10.0, "金額"),
        (280.0, 114.0, 10.0, "　年　月　日(曜)"),
    ]
    body = [
        ("地方債", "1,000", "三月"),
        ("その他", "200", "四月"),
        ("国庫金", "300", "五月"),
        ("市町村税", "5", "六月"),
    ]
    letters = [*spread(75, 90, 134, "地方債"), (75.0, 154.0, 10.0, "そ　の　他")]
    others = [(x, y, size, text) for x, y, size, text in cells([(), *body]) if text not in ("地方債", "その他")]
    ((table,),) = read(page([*head, *letters, *others], grid(XS, [100.0 + 20 * row for row in range(6)])))
    assert rows(table) == [("科目", "金額", "年 月 日(曜)"), *body]


def test_lists_and_contents_are_no_tables() -> None:
    items = [
        (left, 100.0 + 14 * number, 10.0, text)
        for number in range(4)
        for left, text in ((72.0, f"{number})"), (110.0, f"point number {number} of the list"))
    ]
    contents = column(72, 300, [f"Chapter {number} .................. {number}" for number in range(4)])
    (blocks,) = read(page([*items, *contents]))
    assert not any(block.rows for block in blocks)


CHART = ("Sales Value", "U.S. Production", "+", "U.S. Imports", "equals", "Supply", "9.2")


def lane(left: float, *, width: float = 160.0) -> list[Piece]:
    """Words centred below each other; a letter is about half as wide as high."""
    return [
        (left + (width - 5.2 * len(text)) / 2, 120.0 + 14 * number, 10.0, text) for number, text in enumerate(CHART)
    ]


def test_lanes_of_a_chart_are_read_one_after_the_other() -> None:
    drawing = "\n".join(f"{left} {842 - 240} 160 135 re S" for left in (100, 300))
    title, *lanes, note = read(
        page([*column(72, 60, ["Above it."]), *lane(100), *lane(300), *column(72, 300, ["Below it."])], drawing)
    )[0]
    assert (title.text, note.text) == ("Above it.", "Below it.")
    assert [(block.kind, block.text.splitlines()) for block in lanes] == [(BlockKind.PARAGRAPH, list(CHART))] * 2


def test_bold_words_of_a_chart_are_no_headings() -> None:
    drawing = "\n".join(f"{left} {842 - 240} 160 135 re S" for left in (100, 300))
    bold = [(left, top, size, f"*{text}") for left, top, size, text in (*lane(100), *lane(300))]
    (blocks,) = read(page([*column(72, 60, ["Above it, in ordinary type."]), *bold], drawing))
    assert [block.kind for block in blocks] == [BlockKind.PARAGRAPH] * 3


def test_headings_in_frames_of_running_text_stay_headings() -> None:
    drawing = "\n".join(f"{left} {842 - 240} 200 135 re S" for left in (80, 300))
    prose = [
        "running text that fills the frame well",
        "and goes on over several lines of it",
        "until the frame is full of it, line by",
    ]
    pieces = [
        piece
        for left in (85, 305)
        for piece in ((left, 125.0, 14.0, f"Part {left}"), *column(left, 150, [f"{line} {left}" for line in prose]))
    ]
    (blocks,) = read(page(pieces, drawing))
    assert [(block.kind, block.section) for block in blocks] == [
        (BlockKind.HEADING, ()),
        (BlockKind.PARAGRAPH, ("Part 85",)),
        (BlockKind.HEADING, ()),
        (BlockKind.PARAGRAPH, ("Part 305",)),
    ]


def test_centred_words_are_no_table() -> None:
    (blocks,) = read(page([*lane(100), *lane(300)]))
    assert not any(block.rows for block in blocks)
    assert Counter("".join(block.text for block in blocks).split()) == Counter(" ".join(CHART * 2).split())


def test_centred_figures_are_a_table() -> None:
    texts = [("short", "1"), ("quite a bit longer", "1,234.5"), ("middling", "12"), ("it", "1,234,567.8")]
    pieces = [
        (left + (160 - 5.2 * len(text)) / 2, 120.0 + 14 * number, 10.0, text)
        for number, row in enumerate(texts)
        for left, text in zip((100, 300), row, strict=True)
    ]
    ((table,),) = read(page(pieces))
    assert rows(table) == texts


def test_frames_of_a_table_are_no_lanes() -> None:
    """Cells drawn as frames of their own, which touch."""
    frames = "\n".join(f"{x} {842 - 200} 100 100 re S" for x in XS[:-1])
    header = "\n".join(f"{x} {842 - 100} 100 20 re S" for x in XS[:-1])
    ((table,),) = read(page([*cells([HEAD], 80.0), *cells(BODY)], f"{frames}\n{header}"))
    assert rows(table) == [HEAD, *BODY]


@needs_corpus
def test_tables_of_the_corpus_are_those_of_pdfplumber() -> None:
    """An independent implementation finds the same cells, where rules stand around all of them."""
    pdfplumber = pytest.importorskip("pdfplumber", reason="pdfplumber is not installed")
    for name in ("pdfplumber__issue-67-example", "pdfplumber__issue-336-example", "camelot__twotables"):
        path = CORPUS / "japanese_pdf" / f"{name}.pdf"
        with pdfplumber.open(path) as document:
            expected = [
                ["".join((cell or "").split()) for row in table.extract() for cell in row]
                for plumbed in document.pages[:12]
                for table in sorted(plumbed.find_tables(), key=lambda table: (table.bbox[1], table.bbox[0]))
            ]
        found = [block for page in parse_pdf(path.read_bytes(), 100).pages[:12] for block in page.blocks if block.rows]
        assert len(found) == len(expected), name
        for block, texts in zip(found, expected, strict=True):
            own = {"".join(cell.split()) for cell in chain.from_iterable(rows(block))}
            assert {text for text in texts if text} - own == set(), name


def test_bold_lines_above_tables_are_headings_where_all_other_text_is_in_tables() -> None:
    titles = ["BT /B 10 Tf 70 752 Td (Funds of the year) Tj ET", "BT /B 10 Tf 70 622 Td (Loans of the year) Tj ET"]
    content = "\n".join([*titles, ruled([HEAD, *BODY], 100), ruled([HEAD, *BODY], 230)])
    ((first, _, second, _),) = read(content)
    assert [(block.kind, block.text) for block in (first, second)] == [
        (BlockKind.HEADING, "Funds of the year"),
        (BlockKind.HEADING, "Loans of the year"),
    ]
