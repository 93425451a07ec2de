"""Passages: sizes, overlap, table headers, positions, and that nothing is lost."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.contracts.causes import BlockKind, PageKind
from rag_assets.contracts.content import Block, Page, Row
from rag_assets.parsing.chunking import Chunk, chunk_page


class Characters:
    """A tokenizer for tests: a character that is no white space is a token."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len("".join(text.split())) for text in texts]


def chunks(*blocks: Block, size: int = 100, overlap: float = 0.1, name: str | None = None) -> list[Chunk]:
    return chunk_page(Page(1, PageKind.SHEET, blocks, name), ["設計書"], Characters(), size, overlap)


def paragraph(text: str, **place: str) -> Block:
    return Block(BlockKind.PARAGRAPH, text, **place)  # type: ignore[arg-type]


def table(rows: Sequence[Sequence[str]], headers: int = 1, first_row: int = 4, section: tuple[str, ...] = ()) -> Block:
    body = tuple(Row(tuple(cells), f"B{first_row + index}:D{first_row + index}") for index, cells in enumerate(rows))
    text = "\n".join(" | ".join(row) for row in rows)
    return Block(BlockKind.TABLE, text, section, f"B{first_row}:D{first_row + len(rows) - 1}", None, headers, body)


def test_a_short_page_is_one_passage_with_its_context() -> None:
    [chunk] = chunks(paragraph("本文です。", cell_range="A1"), name="表紙")
    assert (chunk.context, chunk.text, chunk.cell_range) == ("設計書 › 表紙", "本文です。", "A1")
    assert chunk.length_tokens == len("設計書›表紙本文です。")
    assert chunk.language == "ja"


def test_every_row_stands_under_its_header_and_cites_its_cells() -> None:
    rows = [["項目名", "型", "説明"], *([f"項目{n}", "X(10)", f"説明文その{n}"] for n in range(20))]
    found = chunks(table(rows))
    assert len(found) > 2
    for chunk in found:
        lines = chunk.text.splitlines()
        assert lines[0] == "項目名 | 型 | 説明"
        assert "項目名" not in "".join(lines[1:])
    first = found[0]
    assert first.cell_range == f"B5:D{4 + len(first.text.splitlines()) - 1}"
    assert {line for chunk in found for line in chunk.text.splitlines()[1:]} == {" | ".join(row) for row in rows[1:]}


def test_a_wide_header_goes_without_the_targets_of_its_links() -> None:
    names = [f"part {n}" for n in range(4)]
    rows = [[f"{name} <https://example.org/{name[-1]}/releases>" for name in names], *([f"{n}.0.0"] * 4 for n in "123")]
    [chunk] = chunks(table(rows), size=160)
    assert chunk.text.splitlines() == [" | ".join(names), *(" | ".join(row) for row in rows[1:])]
    [narrow] = chunks(table([row[:1] for row in rows]), size=160)
    assert narrow.text.splitlines()[0] == rows[0][0]


def test_a_passage_within_a_group_of_rows_begins_with_the_row_that_heads_it() -> None:
    rows = [["名前", "略称", "価格"]]
    for group in ("グラスフェッド", "グレインフェッド"):
        rows += [[group, "", ""], *([f"{size}00g", f"{group[:2]}{size}", f"{size},500円"] for size in range(1, 9))]
    found = [chunk.text.splitlines() for chunk in chunks(table(rows))]
    assert len(found) > 2
    for lines in found:
        assert lines[0] == "名前 | 略称 | 価格"
        group = ""
        for line in lines[1:]:
            group = line.removesuffix(" |") if line.endswith(" |") else group
            assert line.endswith(" |") or f" | {group[:2]}" in line


def test_a_passage_begins_with_the_cells_above_the_empty_ones_of_its_first_row() -> None:
    rows = [["code", "variable", "value", "label"]]
    for code, name in (("HS120", "ability_to_make_ends"), ("HC110", "access_postal"), ("HD080", "worn_furniture")):
        rows += [[code, name, "1", "Very difficult"], *(["", "", f"{n}", f"{name[:3]} {n}"] for n in range(2, 9))]
    found = [chunk.text.splitlines() for chunk in chunks(table(rows), overlap=0)]
    assert len(found) > 2
    for lines in found:
        name = ""
        for line in lines[1:]:
            cells = line.split(" | ")
            name = cells[1] or name
            assert cells[-1] == "Very difficult" or len(cells) == 2 or cells[-1].startswith(name[:3])


@pytest.mark.parametrize("first", ["○", "2024/5/1", "12", "山田"])
def test_first_cells_that_tell_no_groups_apart_are_not_repeated(first: str) -> None:
    rows = [["欄", "項目", "型"], *([first * (n % 3 == 0), f"項目{n}", "varchar"] for n in range(24))]
    known = {" | ".join(row) for row in rows}
    assert all(known.issuperset(chunk.text.splitlines()) for chunk in chunks(table(rows), overlap=0))


def test_a_total_below_empty_cells_is_of_no_group() -> None:
    rows = [
        ["大項目", "項目", "値"],
        *([f"大項目{n}" * (n % 5 == 0), f"項目{n}", f"値{n}" + "5" * 45] for n in range(9)),
    ]
    found = chunks(table([*rows, ["", "合計", "5" * 45]]), overlap=0)
    assert len(found) == 10
    assert all(chunk.text.splitlines()[1].startswith("大項目") for chunk in found[:-1])
    assert len(found[-1].text.splitlines()) == 2


@pytest.mark.parametrize(
    "rows",
    [
        [["りんご", "", ""], *([f"品{n}", "愛媛", f"{n}00円"] for n in range(9))],
        [["りんご", "1", "a |"], *([f"みかん{n}", "2", "b"] for n in range(12))],
        [["食品", "", ""], ["肉", "", ""], *([f"品{n}", "愛媛", f"{n}00円"] for n in range(12))],
    ],
)
def test_a_row_that_heads_no_group_is_not_repeated(rows: list[list[str]]) -> None:
    found = chunks(table([["品名", "数量", "メモ"], *rows]), size=70, overlap=0)
    assert len(found) > 1
    lines = [line for chunk in found for line in chunk.text.splitlines()[1:]]
    assert len(lines) == len(set(lines)) == len(rows)


def test_every_passage_of_a_row_longer_than_one_says_what_the_row_is_called() -> None:
    columns = ["コード", "名称", *(f"令和{year}年の件数" for year in range(1, 19))]
    rows = [[f"0{n}", f"第{n}支所", *(str(n * 1000 + year) for year in range(1, 19))] for n in (1, 2)]
    texts = [chunk.text for chunk in chunks(table([columns, *rows]))]
    assert len(texts) > 4
    for n, row in enumerate(rows, 1):
        own = [text for text in texts if any(f": {value}" in text for value in row[2:])]
        assert len(own) > 2
        assert all(f"コード: 0{n}\n名称: 第{n}支所" in text for text in own)
    assert all(text.count("コード: ") == text.count("名称: ") > 0 for text in texts)


def test_what_a_long_row_is_called_is_no_mark_and_no_number() -> None:
    rows = [["役割", *(f"操作{n}を行う権限" for n in range(12))], ["管理者", *("○×"[n % 2] for n in range(12))]]
    texts = [chunk.text for chunk in chunks(table(rows), size=80)]
    assert len(texts) > 1
    assert [text.splitlines()[0] for text in texts] == ["役割: 管理者"] * len(texts)
    assert sum(text.count("操作0を行う権限") for text in texts) == 1


def test_an_empty_cell_keeps_its_place_below_the_header() -> None:
    [chunk] = chunks(table([["項目名", "型", "説明"], ["顧客名", "", "氏名を漢字で書く"], ["番号", "X(8)", ""]]))
    assert chunk.text.splitlines()[1:] == ["顧客名 |  | 氏名を漢字で書く", "番号 | X(8)"]


def test_an_empty_cell_keeps_its_place_where_there_is_no_header() -> None:
    rows = [["甲", "", "1", ""], ["", "乙の値", "乙の値", ""], ["丙", "丁の値", "3", ""]]
    [chunk] = chunks(table(rows, headers=0))
    assert chunk.text.splitlines() == ["甲 |  | 1", " | 乙の値", "丙 | 丁の値 | 3"]


def test_equal_values_in_columns_of_other_names_both_stand() -> None:
    names = ["検査区分", "検査区分", "正式名称", "表示名称"]
    rows = [names, ["血液検査", "血液検査", "総蛋白", "総蛋白"], ["尿検査", "尿検査", "尿糖値", "US"]]
    [chunk] = chunks(table(rows), size=200)
    assert chunk.text.splitlines() == [
        "検査区分 | 正式名称 | 表示名称",
        "血液検査 | 総蛋白 | 総蛋白",
        "尿検査 | 尿糖値 | US",
    ]


def test_a_value_over_several_columns_stands_once() -> None:
    rows = [
        ["番号", "分類", "表題", "参照先"],
        ["基盤", "開発標準", "開発標準", "開発標準"],
        ["1", "変更", "誤記", "なし"],
    ]
    [chunk] = chunks(table(rows), size=200)
    assert chunk.text.splitlines()[1] == "基盤 | 開発標準"


def test_a_section_row_of_a_table_of_two_columns_stands_once() -> None:
    [chunk] = chunks(table([["項目名", "設定値"], ["認証の設定", "認証の設定"], ["ポート番号", "8080"]]))
    assert chunk.text.splitlines() == ["項目名 | 設定値", "認証の設定 |", "ポート番号 | 8080"]


def test_a_row_of_one_cell_is_told_from_a_heading() -> None:
    note = "※ 項目の詳細と編集の仕様は、別に定めるところによる。なお、予備の項目は省く。"
    rows = [["項目名", "型", "説明"], ["データ部"] * 3, ["顧客名", "X(8)", "氏名"], ["3", "", ""], [note, "", ""]]
    [chunk] = chunks(table(rows), size=200)
    assert chunk.text.splitlines() == ["項目名 | 型 | 説明", "データ部 |", "顧客名 | X(8) | 氏名", "3", note]
    [bare] = chunks(table(rows[1:4], headers=0), size=200)
    assert bare.text.splitlines()[0] == "データ部"


def test_a_sparse_row_names_the_columns_of_its_few_values() -> None:
    columns = [f"列{number}" for number in range(12)]
    [chunk] = chunks(table([columns, [*[""] * 11, "有"]]), size=200)
    assert chunk.text.splitlines()[1] == "列11: 有"


def test_header_rows_are_joined_into_column_paths() -> None:
    rows = [["入力", "入力", "出力"], ["必須", "任意", "出力"], ["○", "-", "文字列"]]
    [chunk] = chunks(table(rows, headers=2))
    assert chunk.text.splitlines()[0] == "入力 > 必須 | 入力 > 任意 | 出力"


def test_a_row_longer_than_a_passage_names_the_column_of_each_part() -> None:
    long = "。".join(f"説明の文その{n}" for n in range(40))
    found = chunks(table([["項目名", "説明", "型"], ["顧客名", long, "X"]]))
    assert len(found) > 3
    assert found[0].text.startswith("項目名: 顧客名")
    assert all(line.startswith(("項目名: ", "説明: ", "型: ")) for chunk in found for line in chunk.text.splitlines())
    assert all(chunk.length_tokens <= 100 for chunk in found)


def test_a_heading_stays_with_what_follows_it() -> None:
    filler = paragraph("あ" * 70)
    found = chunks(filler, Block(BlockKind.HEADING, "2. 処理概要"), paragraph("い" * 40))
    assert [chunk.text.splitlines()[0][:3] for chunk in found] == ["あああ", "2. "]


def test_what_announces_a_list_stays_with_it() -> None:
    filler, lead = paragraph("あ" * 60 + "。"), paragraph("第6条 管理者は、次の各号に定める帳簿を備える。")
    items = [paragraph("(1) 図書原簿" + "い" * 30), paragraph("(2) 図書除籍簿")]
    found = [chunk.text for chunk in chunks(filler, lead, *items)]
    assert found == [filler.text, "\n".join([lead.text, *(item.text for item in items)])]


ANSWER = "申請書を提出した日の属する課税期間から、届出書を改めて出さなくても適用されます。"


@pytest.mark.parametrize(
    "question",
    [
        *("問２．適用できる期間について教えてください。", "問 10．１万円は税込、税抜のいずれで判定するのですか。"),
        *(
            "Q1 適用対象者",
            "Q1. How do I apply?",
            "【質問３】申請の期限",
            "設問2：適用の範囲を述べよ",
            "Question 4: the fee",
        ),
        *(
            "期限までに申請できません。どうすればよいですか",
            "When does it begin?",
            "○登録の手続\n問 19．期限はいつですか。",
        ),
        *("■申請の期限", "【インデックス種別】", "第３条 適用の範囲", "2.1 適用の範囲", "＜記述例＞"),
    ],
)
def test_a_question_or_a_line_that_stands_as_a_heading_stays_with_what_follows_it(question: str) -> None:
    filler = paragraph("あ" * 60 + "。")
    assert [chunk.text for chunk in chunks(filler, paragraph(question), paragraph(ANSWER))] == [
        filler.text,
        f"{question}\n{ANSWER}",
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("Q1. いつですか。\nA1. 申請した日からです。", "問１ 期限\n（答）月末です。"),
        *("申請してください。", "問題は残ります。", "Q3 was strong.", "A. Smith", "・受付の開始", "■概要。"),
    ],
)
def test_what_holds_its_answer_or_asks_nothing_leads_on_to_nothing(text: str) -> None:
    filler, answer = paragraph("あ" * 40 + "。"), paragraph("い" * 60)
    assert chunks(filler, paragraph(text), answer)[0].text == f"{filler.text}\n{text}"


def test_a_question_of_several_sentences_and_the_label_of_its_answer_stay_together() -> None:
    question = "問５．免税事業者です。１月に届出を出しました。この場合、適用できますか。"
    text = "前の答えの終わりです。" * 5 + f"\n{question}\n（答）\n" + "適用できます。" * 8
    found = [chunk.text for chunk in chunks(paragraph(text), overlap=0.0)]
    assert (
        "問５．免税事業者です。\n１月に届出を出しました。\nこの場合、適用できますか。\n（答）\n適用できます。"
        in found[1]
    )
    assert found[0] == "\n".join(["前の答えの終わりです。"] * 5)


def test_a_list_of_questions_leads_on_to_nothing() -> None:
    questions = [paragraph(f"問{number}．項目{number}は必要ですか。") for number in range(1, 5)]
    found = chunks(paragraph("あ" * 20), *questions, paragraph("い" * 40), overlap=0.0)
    assert [chunk.text.splitlines()[0][:1] for chunk in found] == ["あ", "い"]


def test_an_answer_too_long_to_stand_whole_below_its_question_begins_there() -> None:
    question, answer = (
        paragraph("問１．" + "期限" * 12 + "はいつですか。"),
        paragraph("申請した日から適用されます。" * 5),
    )
    found = [chunk.text.splitlines() for chunk in chunks(paragraph("あ" * 60 + "。"), question, answer, overlap=0.0)]
    assert found[0] == ["あ" * 60 + "。"]
    assert found[1][:2] == [question.text, "申請した日から適用されます。"]
    assert sum(line.count("申請") for lines in found for line in lines) == 5


def test_a_long_paragraph_leads_on_with_the_question_that_it_ends_with() -> None:
    monologue = "We have seen a great deal of growth in the quarter that ended in June. " * 4
    question = "When do you expect it to slow down?"
    found = [
        chunk.text for chunk in chunks(paragraph(monologue + question), paragraph("B: " + "growth " * 25), size=400)
    ]
    assert found[0] == monologue.strip()
    assert found[1].startswith(f"{question}\nB: growth")


def test_a_row_that_asks_stays_with_the_row_that_answers() -> None:
    rows = [["No", "内容"], ["A0", "あ" * 55], ["Q1", "期限はいつですか。"], ["A1", "申請した日から適用されます。" * 2]]
    first, second = chunks(table(rows), overlap=0.0)
    assert (first.text.splitlines()[-1][:2], second.text.splitlines()[1]) == ("A0", "Q1 | 期限はいつですか。")


def test_a_passage_does_not_end_with_the_row_that_heads_a_group() -> None:
    rows = [["名前", "略称", "価格"]]
    for group in ("北海道の牛", "九州の牛"):
        rows += [[group, "", ""], *([f"{size}00g", f"{group[:2]}{size}", f"{size},500円"] for size in range(1, 9))]
    found = chunks(table(rows), size=130, overlap=0.0)
    assert len(found) > 2
    assert not any(chunk.text.endswith(" |") for chunk in found)
    assert all(chunk.text.splitlines()[1].endswith("の牛 |") for chunk in found)


def test_a_passage_tells_one_table_from_the_next() -> None:
    first, second = (
        table([["会議名", "日時"], ["第4回", "6月4日"]]),
        table([["総指摘数", "8"], ["要修正", "2"]], headers=0),
    )
    [chunk] = chunks(first, second)
    assert chunk.text == "会議名 | 日時\n第4回 | 6月4日\n\n総指摘数 | 8\n要修正 | 2"


def test_a_passage_knows_the_heading_above_it_or_that_it_begins_with() -> None:
    first, second, third = chunks(
        paragraph("あ" * 70),
        Block(BlockKind.HEADING, "2. 処理概要", ("2章",)),
        paragraph("い" * 70),
        replace(paragraph("う" * 70), section=("2章", "2. 処理概要")),
    )
    assert [chunk.heading for chunk in (first, second, third)] == [None, "2. 処理概要", "2. 処理概要"]


def test_the_next_passage_repeats_the_end_of_the_last() -> None:
    sentences = "".join(f"これは第{n:02}文です。" for n in range(30))
    found = chunks(paragraph(sentences), size=120, overlap=0.2)
    assert len(found) > 2
    for before, after in pairwise(found):
        assert before.text.splitlines()[-2:] == after.text.splitlines()[:2]
    assert chunks(paragraph(sentences), size=120, overlap=0.0)[1].text.splitlines()[0] not in found[0].text


def test_running_headers_are_not_searched() -> None:
    assert chunks(Block(BlockKind.HEADER, "社外秘")) == []


def test_a_text_without_any_break_is_cut() -> None:
    found = chunks(paragraph("漢" * 1000))
    assert sum(chunk.text.count("漢") for chunk in found) == 1000
    assert all(chunk.length_tokens <= 100 for chunk in found)


def test_a_long_sentence_is_cut_between_clauses_and_words() -> None:
    clauses = [
        "申出書及び書類(以下「申出書等」という。)を総務大臣に提出した地方団体が、",
        "指定の基準に適合する者として、",
    ]
    found = chunks(paragraph("".join(clauses) * 8 + "指定する"), size=100)
    assert len(found) > 3
    assert "".join(chunk.text.replace("\n", "") for chunk in found) == "".join(clauses) * 8 + "指定する"
    assert all(chunk.text.endswith("、") for chunk in found[:-1])
    words = chunks(paragraph("漢字とカナのある名詞や" * 40 + "終わり"), size=100)
    assert all(chunk.text.startswith(("漢字", "カナ", "名詞")) for chunk in words)


def test_a_long_cell_is_cut_between_clauses() -> None:
    cell = "利用者が登録した内容を確認し、誤りがある場合は差し戻す。" * 20
    found = chunks(table([["項目", "説明"], ["確認", cell]]))
    assert len(found) > 5
    assert all(chunk.text.endswith(("、", "。")) and chunk.length_tokens <= 100 for chunk in found)


def test_a_long_text_without_any_break_costs_in_proportion_to_its_length() -> None:
    class Counted(Characters):
        characters = 0

        def count_tokens(self, texts: Sequence[str]) -> list[int]:
            self.characters += sum(map(len, texts))
            return super().count_tokens(texts)

    def cost(length: int) -> int:
        counted = Counted()
        chunk_page(Page(1, PageKind.SHEET, (paragraph("漢" * length),)), [], counted, 100, 0.1)
        return counted.characters

    assert cost(40_000) < 2.2 * cost(20_000)


def test_repeated_names_stand_in_the_context_once() -> None:
    page = Page(1, PageKind.SHEET, (Block(BlockKind.PARAGRAPH, "x", ("1. 概要",)),), "1. 概要")
    [chunk] = chunk_page(page, ["設計書_顧客", "設計書_顧客"], Characters(), 100, 0.1)
    assert chunk.context == "設計書_顧客 › 1. 概要"


def test_a_context_longer_than_its_share_is_cut() -> None:
    page = Page(1, PageKind.SHEET, (Block(BlockKind.PARAGRAPH, "本文", ("章" * 60, "節" * 60)),), "名" * 60)
    [chunk] = chunk_page(page, ["題" * 60], Characters(), 100, 0.1)
    assert chunk.text == "本文"
    assert 0 < len(chunk.context) <= 25


texts = st.text(st.sampled_from("あア漢aZ09。.、 \n|:「」"), min_size=1, max_size=300)
blocks = st.one_of(
    st.builds(paragraph, texts),
    st.builds(lambda text: Block(BlockKind.HEADING, text), texts),
    st.builds(table, st.lists(st.lists(texts, min_size=3, max_size=3), min_size=1, max_size=8), st.integers(0, 2)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(blocks, max_size=8), st.integers(40, 200))
def test_no_passage_is_too_long_and_no_paragraph_is_lost(page: list[Block], size: int) -> None:
    found = chunks(*page, size=size)
    assert all(chunk.length_tokens <= size for chunk in found)
    assert [chunk.index for chunk in found] == list(range(len(found)))
    together = "".join("".join(chunk.text.split()) for chunk in found)
    for block in page:
        if block.kind is not BlockKind.TABLE:
            missing = set("".join(block.text.split())) - set(together)
            assert not missing
    assert found == chunks(*page, size=size)


def test_headings_that_do_not_fit_together_are_kept() -> None:
    headings = [Block(BlockKind.HEADING, text) for text in ("9", "0" * 6, "0" * 8, "0" * 13)]
    page = [Block(BlockKind.PARAGRAPH, "0"), *headings, Block(BlockKind.PARAGRAPH, "0" * 10)]
    together = "".join(chunk.text for chunk in chunks(*page, size=40))
    assert "9" in together


@pytest.mark.parametrize("headers", [0, 1])
def test_a_table_of_headers_only_is_still_searched(headers: int) -> None:
    [chunk] = chunks(table([["項目名", "型", "説明"]], headers=headers))
    assert chunk.text == "項目名 | 型 | 説明"


def test_the_innermost_of_the_headings_that_a_passage_begins_with_is_its_heading() -> None:
    headings = [Block(BlockKind.HEADING, "就業規則"), Block(BlockKind.HEADING, "第2章 休暇", ("就業規則",))]
    (chunk,) = chunks(*headings, paragraph("休暇は14日とする。"))
    assert chunk.heading == "第2章 休暇"
