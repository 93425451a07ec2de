"""Fonts whose characters a PDF gives by the numbers of their glyphs."""

import pytest
from pdf_building import make_pdf, show

from rag_assets.parsing.pdf.fonts import with_characters
from rag_assets.parsing.pdf.reader import parse_pdf

# as they stand in files of ministries and universities, with what their pages show
WRITTEN = {
    "ᖹᡂ26ᖺᗘ䛾㈨ᩱ䛷䛩䚹": "平成26年度の資料です。",
    "᪥ᮏ䛾㟁Ẽ䛸㧗ᗘ䛸⪅䛸㣗": "日本の電気と高度と者と食",
    "㻵㼛㼀䞉䝫䝸䞊䠄㻝䠅": "IoT・ポリー（1）",
    "䛂㡰␒䛃䛆ཧ⪃䛇": "「順番」【参考】",
    "タィ᭩䛻䛴䛔䛶䠖䠍䠊": "設計書について：１．",
    "カード䛾ポリー䛻つ䛔䛶": "カードのポリーについて",
    "2䛾倍数でも7䛾倍数で䛿ない": "2の倍数でも7の倍数ではない",
}
PART = "奈良先端科学技術大学㝔大学䛾演習用䜹䞊䝗䛾上㒊"  # of a font that has its other characters right


def restored(text: str, fonts: str = "") -> str:
    return "".join(map(chr, with_characters([*map(ord, text)], lambda place: (fonts or "a" * len(text))[place])))


@pytest.mark.parametrize("written", WRITTEN)
def test_a_font_of_numbers_is_read_as_its_page_looks(written: str) -> None:
    assert restored(written) == WRITTEN[written]


def test_a_font_that_has_some_characters_right_keeps_them() -> None:
    assert restored(PART) == "奈良先端科学技術大学院大学の演習用カードの上部"


def test_another_font_of_the_page_stays_as_it_is() -> None:
    healthy = "タィ → ㈱資料"
    text = healthy + "䛾䛻䛿䛷䛩"
    assert restored(text, "b" * len(healthy) + "a" * 5) == f"{healthy}のにはです"


@pytest.mark.parametrize(
    "text",
    [
        "㐂寿司と㐂多方の㐂びを伝えるこの店は、昔からの町並みに建つ。",  # rare ideographs in a name
        "㑇㑊㕮㘎㙍",
        "தமிழ் மொழி",
        "ภาษาไทย",
        "한국어 문서입니다",
        "㍉㌔㈱№①②③ タイトル",
        "plain text",
        "",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert restored(text) == text


def test_a_font_of_rare_ideographs_alone_stays_as_it_is() -> None:
    assert restored("㐂㐂㐂寿司の店は", "bbbaaaaa") == "㐂㐂㐂寿司の店は"


def test_numbers_beyond_those_known_stay() -> None:
    assert restored("䛾䛻䛿㺀") == "のには㺀"


def test_codes_of_shift_jis_are_read_as_their_page_looks() -> None:
    text = "貸借対照表　（単位：円）普通預金"
    written = "".join(chr(int.from_bytes(character.encode("cp932"), "big")) for character in text)
    assert restored(f"{written} 1,846,525") == f"{text} 1,846,525"


@pytest.mark.parametrize("text", ["自臨花草荷", "腹臨 自花草荷、説明", "誈腀鎮腀豶腀\u4e00", "花 花 花 車"])
def test_ideographs_that_are_codes_of_shift_jis_too_stay_beside_others(text: str) -> None:
    assert restored(text) == text


SHIFT_JIS = "".join(chr(int.from_bytes(sign.encode("cp932"), "big")) for sign in "貸借対照表（単位：円）")


@pytest.mark.parametrize(
    ("written", "beside", "expected"),
    [
        ("ᖹᡂ䛾㈨ᩱ䛷䛩䚹", "タィ", ["平成の資料です。", "タィ"]),
        (SHIFT_JIS, "1,846", ["貸借対照表（単位：円）", "1,846"]),
    ],
)
def test_a_pdf_with_such_a_font_is_found_by_its_words(written: str, beside: str, expected: list[str]) -> None:
    lines = "".join(f"<{place:04x}> <{ord(character):04x}>\n" for place, character in enumerate(written, start=1))
    to_unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /A def\n"
        "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(written)} beginbfchar\n{lines}endbfchar endcmap end end"
    )
    font = "<< /Type /Font /Subtype /Type0 /BaseFont /MS-Mincho /Encoding /Identity-H /DescendantFonts [5 0 R]"
    more = (f"{font} /ToUnicode 10 0 R >>", f"<< /Length {len(to_unicode)} >>\nstream\n{to_unicode}\nendstream")
    shown = "".join(f"{place:04x}" for place in range(1, len(written) + 1))
    content = f"BT /M 10 Tf 72 700 Td <{shown}> Tj ET\n{show((72, 200, 10, beside))}"
    (page,) = parse_pdf(make_pdf([content], more=more, fonts="/M 9 0 R"), 10).pages
    assert [block.text for block in page.blocks] == expected


def test_glyphs_that_the_file_draws_itself_stand_within_their_line() -> None:
    """As browsers print what no font of the file has: Type 3 fonts within a form, whose boxes pdfium places wrongly."""
    codes = "2 beginbfchar <01> <6708> <02> <65E5> endbfchar"
    drawn = (
        "<< /Type /Font /Subtype /Type3 /FontMatrix [.001 0 0 -.001 0 0] /FontBBox [0 0 1000 1000] /FirstChar 1"
        " /LastChar 2 /Widths [1000 1000] /Encoding << /Differences [1 /a /b] >> /CharProcs << /a 11 0 R /b 11 0 R >>"
        " /ToUnicode 10 0 R >>"
    )
    form = (
        "BT /L 16 Tf 1 0 0 -1 40 30 Tm (Test 2) Tj /D 16 Tf 46 0 Td <01> Tj /L 16 Tf 16 0 Td (19) Tj"
        " /D 16 Tf 18 0 Td <02> Tj ET BT /L 16 Tf 1 0 0 -1 40 90 Tm (Below) Tj ET"
    )
    entries = "/Type /XObject /Subtype /Form /BBox [0 0 600 600] /Matrix [3.125 0 0 3.125 0 0]"
    more = (
        drawn,
        stream(f"12 dict begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange {codes} endcmap"),
        stream("1000 0 0 0 1000 1000 d1 0 0 1000 1000 re f"),
        stream(form, f"{entries} /Resources << /Font << /L 3 0 R /D 9 0 R >> >>"),
    )
    content = ".24 0 0 -.24 0 842 cm 1 0 0 1 390 1381 cm /X Do"
    (page,) = parse_pdf(make_pdf([content], more=more, resources="/XObject << /X 12 0 R >>"), 10).pages
    assert page.blocks[0].text.startswith("Test 2月19日")


def test_cells_of_text_on_its_side_stay_apart() -> None:
    names = ["東京支店", "大阪支店", "福岡支店"]
    cells = [
        f"BT /J 10 Tf 0 -1 1 0 {100 + 20 * row} {700 - 53 * place} Tm <{name.encode('utf-16-be').hex()}> Tj ET"
        for row in range(4)
        for place, name in enumerate(names)
    ]
    (page,) = parse_pdf(make_pdf(["\n".join(cells)], extra="/Rotate 270"), 10).pages
    assert [line for block in page.blocks for line in block.text.splitlines()] == [" | ".join(names)] * 4


def stream(content: str, entries: str = "") -> str:
    return f"<< {entries} /Length {len(content)} >>\nstream\n{content}\nendstream"
