"""Balloons and cards drawn upon a page: their text stays together, apart from the text beside and below them."""

from pdf_building import column, make_pdf, show

from rag_assets.parsing.pdf.reader import parse_pdf

MENU = [(70.0, 100.0, 10.0, "案件一覧"), (150.0, 100.0, 10.0, "商品管理"), (260.0, 100.0, 10.0, "ログアウト")]


def texts(*content: str) -> list[str]:
    (page,) = parse_pdf(make_pdf(["\n".join(content)]), 10).pages
    return [block.text for block in page.blocks]


def balloon(left: float, top: float, right: float, bottom: float) -> str:
    """A white rectangle with a line around it, whose pointer leads to the lower left."""
    points = [
        (left, top),
        (right, top),
        (right, bottom),
        (left + 40, bottom),
        (left - 10, bottom + 30),
        (left + 20, bottom),
    ]
    outline = " ".join(f"{x} {842 - y} {'l' if n else 'm'}" for n, (x, y) in enumerate([*points, (left, bottom)]))
    return f"1 g {outline} h f 0 g 0 G {outline} h S"


def card(left: float, top: float, right: float, bottom: float, radius: float = 6) -> str:
    """A coloured rectangle with round corners."""
    y0, y1, r = 842 - bottom, 842 - top, radius
    curves = [
        f"{right - r} {y0} l {right} {y0} {right} {y0} {right} {y0 + r} c",
        f"{right} {y1 - r} l {right} {y1} {right} {y1} {right - r} {y1} c",
        f"{left + r} {y1} l {left} {y1} {left} {y1} {left} {y1 - r} c",
        f"{left} {y0 + r} l {left} {y0} {left} {y0} {left + r} {y0} c",
    ]
    return f".9 g {left + r} {y0} m {' '.join(curves)} h f 0 g"


def test_text_of_a_balloon_runs_into_no_line() -> None:
    note = column(128, 99, ["編集内容を保存せずに、", "案件の詳細へ遷移する。"])
    below = [(70.0, 150.0, 10.0, "作成日と案件名を入力する。")]
    read = texts(*map(show, MENU), balloon(122, 86, 246, 118), *map(show, note), *map(show, below))
    assert read == [
        "案件一覧 商品管理 ログアウト",
        "編集内容を保存せずに、案件の詳細へ遷移する。",
        "作成日と案件名を入力する。",
    ]


def test_cards_side_by_side_are_read_one_after_the_other() -> None:
    left = column(80, 120, ["売り場の順に並ぶ品の", "数を数えて記録する。"])
    right = column(310, 120, ["棚の高さの順に並べて", "台車へ積んでいく。"])
    cards = (card(70, 100, 280, 150), card(300, 100, 510, 150))
    read = texts(*cards, *(show(piece) for pair in zip(left, right, strict=True) for piece in pair))
    assert read == ["売り場の順に並ぶ品の数を数えて記録する。", "棚の高さの順に並べて台車へ積んでいく。"]


def test_a_name_with_round_corners_stays_in_its_sentence() -> None:
    pieces = [(70.0, 120.0, 10.0, "設定は"), (104.0, 120.0, 10.0, "config.json"), (160.0, 120.0, 10.0, "に書く。")]
    (read,) = texts(card(102, 110, 156, 124, 3), *map(show, pieces))
    assert read.replace(" ", "") == "設定はconfig.jsonに書く。"
