import time
from itertools import pairwise

import pytest

from rag_assets.contracts.causes import BlockKind
from rag_assets.parsing.markup.closing import close_elements
from rag_assets.parsing.markup.markdown import parse_markdown
from rag_assets.parsing.markup.reader import parse_html

HEADING, PARAGRAPH, LIST_ITEM, NOTE = BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.NOTE
Shown = list[tuple[BlockKind, str]]


def of_html(markup: str) -> Shown:
    return [(block.kind, block.text) for block in parse_html(markup.encode()).pages[0].blocks]


def of_markdown(text: str) -> Shown:
    return [(block.kind, block.text) for block in parse_markdown(text.encode()).pages[0].blocks]


def test_footnotes_of_markdown_stand_behind_what_refers_to_them_and_none_is_lost() -> None:
    text = (
        "本文[^1]と再掲[^1]。^[行内の注]\n\n# 見出し[^題]\n\n| a | b |\n|---|---|\n| x[^表] | 1 |\n\n"
        "[^1]: 注の一。\n\n    注の二段落目。\n[^題]: 見出しの注。\n[^表]: 表の注。\n[^無]: 参照されない注。\n"
    )
    assert of_markdown(text) == [
        (PARAGRAPH, "本文[1]と再掲[1]。^[行内の注]"),
        (NOTE, "[1] 注の一。\n注の二段落目。"),
        (HEADING, "見出し[題]"),
        (NOTE, "[題] 見出しの注。"),
        (BlockKind.TABLE, "a | b\nx[表] | 1"),
        (NOTE, "[表] 表の注。"),
        (NOTE, "[無] 参照されない注。"),
    ]


def test_a_bold_line_above_a_text_is_a_heading_below_the_others() -> None:
    lines = ["# API", "## 登録", "**処理の流れ**", "1. 調べる", "**応答**", "| 名 |\n|-|\n| 数 |", "## 削除", "消す。"]
    blocks = parse_markdown("\n\n".join(lines).encode()).pages[0].blocks
    assert [(*block.section, block.text) for block in blocks if block.kind is HEADING] == [
        ("API",),
        ("API", "登録"),
        ("API", "登録", "処理の流れ"),
        ("API", "登録", "応答"),
        ("API", "削除"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "**必ず読むこと。**\n\n本文",
        "**期限：**\n\n本文",
        "**期限** は月末\n\n本文",
        "**概要**\n\n**目的**",
        "本文\n\n**以上**",
        "**版**\n\n## 目的",
        "- **項目**\n\n  本文\n\n- 次",
        "**2024**\n\n本文",
    ],
)
def test_other_bold_text_is_no_heading(text: str) -> None:
    assert not {"概要", "期限", "版", "項目", "2024", "必ず読むこと。"} & {
        text for kind, text in of_markdown(text) if kind is HEADING
    }


def test_preformatted_text_keeps_its_indentation() -> None:
    code = "def f():\n    if x:\n\treturn  1\n\n  y"
    assert of_html(f"<pre>\n{code}\n</pre>") == [(PARAGRAPH, "def f():\n    if x:\n\treturn 1\n\n  y")]
    assert of_markdown("- 手順\n\n  ```yaml\n  a:\n    b: 1\n  ```\n")[1] == (LIST_ITEM, "a:\n  b: 1")


def test_marks_within_a_line_may_be_deep_and_many_without_loss() -> None:
    marks = "[" * 50_000 + "内" + "]" * 50_000
    began = time.process_time()
    assert of_markdown(f"{marks}\n\n**_太い_** [連絡](https://example.org/)") == [
        (PARAGRAPH, marks),
        (PARAGRAPH, "太い 連絡 <https://example.org/>"),
    ]
    assert time.process_time() - began < 3


def test_ruby_stands_behind_its_block() -> None:
    ruby = "<ruby>{}<rp>(</rp><rt>{}</rt><rp>)</rp></ruby>".format
    markup = f"<h1>{ruby('表題', 'ひょうだい')}</h1><p>{ruby('鈴木', 'すずき')}と{ruby('東', 'あずま')}<p>終わり"
    assert of_html(markup) == [
        (HEADING, "表題"),
        (PARAGRAPH, "ひょうだい"),
        (PARAGRAPH, "鈴木と東"),
        (PARAGRAPH, "すずき あずま"),
        (PARAGRAPH, "終わり"),
    ]


def test_lists_of_markdown() -> None:
    text = (
        "3. 三番\n4. 四番\n\n   続き\n   1. 内側\n\n- [x] 済み\n- [ ] 未了 ~~取消~~\n\n"
        "用語\n: 定義一\n\n  つづき\n: 定義二\n\n表\n: | a | b |\n  |---|---|\n  | 1 | 2 |\n"
    )
    assert of_markdown(text) == [
        (LIST_ITEM, "3. 三番"),
        (LIST_ITEM, "4. 四番"),
        (LIST_ITEM, "続き"),
        (LIST_ITEM, "1. 内側"),
        (LIST_ITEM, "☑ 済み"),
        (LIST_ITEM, "☐ 未了 ~~取消~~"),
        (LIST_ITEM, "用語: 定義一"),
        (LIST_ITEM, "つづき"),
        (LIST_ITEM, "用語: 定義二"),
        (LIST_ITEM, "表"),
        (BlockKind.TABLE, "a | b\n1 | 2"),
    ]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<ol><li>一</li><li>二</li></ol>", ["1. 一", "2. 二"]),
        ("<ol start=3 type=a><li>い</li><li value=27>ろ</li><li>は</li></ol>", ["c. い", "aa. ろ", "bb. は"]),
        ("<ol reversed><li>二</li><li>一</li></ol>", ["2. 二", "1. 一"]),
        ("<ol><li><p>段落</p><p>続き</p></li><li><pre>コード</pre></li></ol>", ["1. 段落", "続き", "2. コード"]),
        ("<ol style='list-style: none'><li>無番</li></ol><ul><li>点</li></ul>", ["無番", "点"]),
    ],
)
def test_items_of_ordered_lists_keep_their_numbers(markup: str, expected: list[str]) -> None:
    assert of_html(markup) == [(LIST_ITEM, text) for text in expected]


def test_definitions_are_pairs() -> None:
    markup = "<dt>甲</dt><dt>乙:</dt><dd>一<p>続き</p></dd><dd>二</dd><div><dt>鍵</dt><dd>値</dd></div><dt>単独</dt>"
    assert [text for _, text in of_html(f"<dl>{markup}</dl>")] == [
        "甲 / 乙: 一",
        "続き",
        "甲 / 乙: 二",
        "鍵: 値",
        "単独",
    ]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<label for=n>氏名</label> <input id=n value='山田'>", "氏名 山田"),
        ("<label>電話 <input type=tel placeholder='03-0000-0000'></label>", "電話 03-0000-0000"),
        ("<input aria-label='検索語' value='設計'>", "検索語: 設計"),
        ("<input type=checkbox checked id=c><label for=c>同意</label><input type=checkbox>他", "☑ 同意 ☐ 他"),
        ("<label><input type=radio>A</label><label><input type=radio checked>B</label>", "○ A ◉ B"),
        ("<select><option>総務</option><option selected>経理</option></select>", "○ 総務 ◉ 経理"),
        ("<select><option>総務</option><option>経理</option></select>", "◉ 総務 ○ 経理"),
        ("<select multiple><option selected>甲</option><option>乙</option></select>", "☑ 甲 ☐ 乙"),
        ("備考 <textarea>一\n二</textarea>", "備考 一\n二"),
        ("<button>送信</button><input type=submit value='戻る'>", "送信 戻る"),
        ("前<input type=password value='secret'><input type=hidden value='token'>後", "前後"),
    ],
)
def test_form_controls_read_as_one_sees_them(markup: str, expected: str) -> None:
    assert of_html(f"<p>{markup}</p>") == [(PARAGRAPH, expected)]
    cells = of_html(f"<table><tr><td>{markup}</td><td>z</td></tr></table>")
    assert cells == [(BlockKind.TABLE, f"{expected} | z".replace("\n", " "))]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<div hidden>隠し<p>段落</p></div>", [(NOTE, "非表示: 隠し\n段落")]),
        ("<p>前<span style='Display : none;'>見えない</span>後</p>", [(PARAGRAPH, "前（非表示: 見えない）後")]),
        ("<dialog>確認</dialog><dialog open>表示中</dialog>", [(NOTE, "非表示: 確認"), (PARAGRAPH, "表示中")]),
        ("<h1>概要<a aria-hidden='true' href='#a'>#</a></h1>", [(HEADING, "概要")]),
        ("<div aria-hidden='true'>背後の頁</div>", [(PARAGRAPH, "背後の頁")]),
        (
            "<table><tr><th>a</th><th>b</th></tr><tr style='display:none'><td>1</td><td>2</td></tr></table>",
            [(BlockKind.TABLE, "a | b\n（非表示: 1） | （非表示: 2）")],
        ),
        ("<svg style='display:none'><title>記号</title></svg><p>本文</p>", [(PARAGRAPH, "本文")]),
    ],
)
def test_what_is_hidden_is_kept_and_marked(markup: str, expected: Shown) -> None:
    assert of_html(markup) == expected


def test_struck_text_is_marked() -> None:
    assert of_html("<p>旧<s>価格<b>百</b><del>円</del></s>新</p><h1><strike>題</strike></h1>") == [
        (PARAGRAPH, "旧~~価格百円~~新"),
        (HEADING, "~~題~~"),
    ]
    assert of_html("<del><p>段落</p></del>") == [(PARAGRAPH, "段落")]


def test_hidden_elements_within_each_other_are_marked_once() -> None:
    markup = "<p>前" + "<span hidden>" * 150 + "中" + "</span>" * 150 + "</p>"
    assert of_html(markup) == [(PARAGRAPH, "前（非表示: 中）")]


def test_texts_of_drawings_are_a_diagram() -> None:
    drawing = (
        "<svg><g><text x=1>受付</text><text>審査<tspan>一次</tspan></text></g>"
        "<foreignObject><div>承認</div></foreignObject></svg>"
    )
    assert of_html(f"<p>図{drawing}の通り</p>") == [
        (PARAGRAPH, "図の通り"),
        (BlockKind.DIAGRAM, "受付\n審査 一次\n承認"),
    ]
    assert of_html("<p><svg aria-label='警告'><path/></svg>注意</p>") == [(PARAGRAPH, "[図: 警告]注意")]


def test_formulas_of_pages_are_read_in_one_line() -> None:
    formula = "<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math>"
    repeated = f"<span>{formula}</span><span aria-hidden='true'>ab</span>"
    assert of_html(f"<p>比は {repeated} である</p>") == [(PARAGRAPH, "比は a/b である")]


@pytest.mark.parametrize(
    ("reference", "note"),
    [
        ("<sup><a href='#n1'>1</a></sup>", "<section role=doc-endnotes><ol><li id=n1>注</li></ol></section>"),
        (
            "<a href='#_ftn1' name='_ftnref1'>[1]</a>",
            "<div style='mso-element:footnote' id=ftn1><p><a href='#_ftnref1' name='_ftn1'>[1]</a> 注</p></div>",
        ),
        (
            "<sup><a href='#fn-1'>[1]</a></sup>",
            "<div class=footnotes><ol><li id=fn-1>注 <a href='#r' class='footnote-backref'>↩</a></li></ol></div>",
        ),
    ],
)
def test_footnotes_of_pages_stand_behind_what_refers_to_them(reference: str, note: str) -> None:
    found = of_html(f"<p>文{reference}。</p><p>次</p>{note}")
    assert [kind for kind, _ in found] == [PARAGRAPH, NOTE, PARAGRAPH]
    assert found[1] == (NOTE, "[1] 注")


def test_tables_within_a_table_with_headers_stay_in_its_cells() -> None:
    inner = "<table><tr><td>k</td><td>v</td></tr><tr><td>k2</td><td>v2</td></tr></table>"
    outer = f"<table><tr><th>項目</th><th>値</th></tr><tr><td>設定</td><td>{inner}</td></tr></table>"
    assert of_html(outer) == [(BlockKind.TABLE, "項目 | 値\n設定 | k v k2 v2")]


def test_a_first_row_in_bold_type_is_a_header() -> None:
    rows = ("<b>名</b>", "<p><strong>値</strong></p>"), ("<b>a</b>", "1")
    markup = "".join(f"<tr><td>{first}</td><td>{second}</td></tr>" for first, second in rows)
    for table, count in ((markup, 1), (markup.replace("1<", "<b>1</b><"), 0)):
        (block,) = parse_html(f"<table>{table}</table>".encode()).pages[0].blocks
        assert block.header_row_count == count


def test_a_long_numbered_list_is_numbered_through() -> None:
    items = "".join(f"<li>項目{number}</li>" for number in range(5000))
    numbers = [int(text.partition(".")[0]) for _, text in of_html(f"<ol>{items}</ol>")]
    assert len(numbers) == 5000
    assert all(below == above + 1 for above, below in pairwise(numbers))


def test_lists_in_cells_keep_their_numbers() -> None:
    cell = "<ol start=2><li>取得</li><li>更新<ol type=a><li>内</li></ol></li></ol>"
    (block,) = parse_html(f"<table><tr><td>手順</td><td>{cell}</td></tr></table>".encode()).pages[0].blocks
    assert block.rows[0].cells == ("手順", "2. 取得\n3. 更新\na. 内")


def test_pages_of_a_wiki() -> None:
    markup = (
        "<ol id=breadcrumbs><li>開発</li></ol><ul><li data-inline-task-id=1 class=checked>済み</li>"
        "<li data-inline-task-id=2>残り</li></ul><p>10<sup>3</sup>、x<sup>2</sup></p>"
    )
    assert of_html(markup) == [
        (BlockKind.HEADER, "開発"),
        (LIST_ITEM, "☑ 済み"),
        (LIST_ITEM, "☐ 残り"),
        (PARAGRAPH, "10^3、x2"),
    ]


@pytest.mark.parametrize(
    "opening",
    [
        "<svg width=1><path d='M0'/>", "<svg><g><svg><g>", "<svg><text>図</text>", "<svg><style>.a{}", "<svg><title>図",
        "<math><mi>x</mi>", "<template>", "<noscript>", "<object data=x>", "<iframe src=x>", "<iframe src=x />",
        "<style>p{color:red}", "<script>var x = 1;\n", "<script src='a.js'/>", "<textarea>値",
        "<select><option>一<option>二", "<datalist><option>一", "<!-- 注", "<svg a='b>c'><!-- d", "<SVG><PATH>",
        "<template><svg><select>", "<select><svg><select>", "<noscript><select><template>",
    ],
)  # fmt: skip
def test_an_element_that_is_never_closed_swallows_nothing(opening: str) -> None:
    found = of_html(f"<p>前</p>{opening}<p>後の段落</p><h2>見出し</h2><ul><li>項目</li></ul>")
    assert found[0] == (PARAGRAPH, "前")
    assert found[-3:] == [(PARAGRAPH, "後の段落"), (HEADING, "見出し"), (LIST_ITEM, "項目")]


@pytest.mark.parametrize("name", ["svg", "math", "select", "template"])
def test_an_open_element_in_a_cell_leaves_the_other_cells(name: str) -> None:
    found = of_html(f"<table><tr><td>一<{name}><td>二</td></tr><tr><td>三<td>四</table><p>後</p>")
    assert [text.replace("  ", " ").strip() for _, text in found] == ["一 | 二\n三 | 四", "後"]


@pytest.mark.parametrize(
    "head", ["<title>題名", "<title>題名\n<meta charset=utf-8></head>", "<title>題名<title>又</title>"]
)
def test_an_open_title_ends_where_elements_begin(head: str) -> None:
    document = parse_html(f"<html><head>{head}<body><p>本文</p>".encode())
    assert document.title == "題名"
    assert [block.text for block in document.pages[0].blocks] == ["本文"]


def test_loose_text_of_an_open_drawing_is_read() -> None:
    assert of_html("<p>前</p><svg><path/> 文 <b>太字</b>") == [(PARAGRAPH, "前"), (BlockKind.DIAGRAM, "文\n太字")]


@pytest.mark.parametrize(
    "closed",
    [
        "<script>x = '<svg><template><p>';</script>", "<style>a{}/*<svg>*/</style>", "<!-- <svg><p>x</p> -->",
        "<template><p>x</p></template>", "<svg><title/><style/></svg>", "<svg><metadata>rdf</metadata></svg>",
        "<svg/>", "<noscript><p>x</p></noscript>", "<!---->", "<!-->",
    ],
)  # fmt: skip
def test_what_is_closed_stays_unread(closed: str) -> None:
    assert of_html(f"<p>前</p>{closed}<p>後</p>") == [(PARAGRAPH, "前"), (PARAGRAPH, "後")]


def test_html_within_a_drawing_stays_one_text_of_it() -> None:
    drawing = "<svg><foreignObject><div><p>一</p><p>二</p></div></foreignObject><text>三</text></svg>"
    assert of_html(f"{drawing}<p>後</p>") == [
        (BlockKind.DIAGRAM, "一 二\n三"),
        (PARAGRAPH, "後"),
    ]


@pytest.mark.parametrize(
    "unit",
    [
        "<svg>",
        "<template>",
        "<title>",
        "<!--",
        "<style><body>",
        '<svg a="',
        "<select></template>",
        "<select><p>",
        "<svg><select>",
    ],
)
def test_open_elements_are_closed_in_time_that_grows_with_the_text(unit: str) -> None:
    def seconds(count: int) -> float:
        begun = time.process_time()
        close_elements(unit * count + "<p>" * count)
        return time.process_time() - begun

    seconds(100)
    short, long = (min(seconds(count) for _ in range(3)) for count in (2_000, 20_000))
    assert long < 40 * max(short, 0.005)
