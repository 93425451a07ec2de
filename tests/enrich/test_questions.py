"""Questions: rules in Japanese and English, numbers, grades, teacher and student, the step, serving rows and views."""

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from query_data import BagOfWordsEmbedder
from scripted_model import ScriptedModel
from small_lake import (
    DOCUMENTS_BY_ID,
    ERRORS,
    GUIDE,
    OVERVIEW,
    TAXONOMY,
    ignore,
    labelled,
    page,
    parsed_sample,
    store,
    table,
)

from rag_assets.contracts.causes import BlockKind, PageRole
from rag_assets.contracts.content import Block, Page
from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request
from rag_assets.contracts.tables import (
    CHUNKS,
    DOCUMENT_FACETS,
    DOCUMENTS,
    FILE_SUMMARIES,
    PAGE_SUMMARIES,
    PAGES,
    QUESTION_INDEX,
    SYNTHETIC_QA,
)
from rag_assets.enrich.documents import Subject
from rag_assets.enrich.facets.tables import update_facets
from rag_assets.enrich.questions.candidates import QuestionCandidate, candidates
from rag_assets.enrich.questions.extraction import Passage, QuestionCounts, extract_questions, grade
from rag_assets.enrich.questions.phrases import CandidateKind, Japanese
from rag_assets.enrich.questions.tables import (
    QuestionRules,
    question_dialogue,
    split_windows,
    update_questions,
    wanted_questions,
)
from rag_assets.enrich.questions.texts import document_subject, says_something
from rag_assets.enrich.summaries.boilerplate import shards_with_outdated_boilerplate, update_document_lines
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.parsing.records import load_pages
from rag_assets.pipeline.settings import EnrichmentSettings
from rag_assets.store.incremental import StepReport
from rag_assets.store.integrity import reference_problems
from rag_assets.store.lake import SHARDS, Lake, shard_of
from rag_assets.store.queries import read_queries, strip_comments
from rag_assets.store.serving import question_rows
from rag_assets.text.tokens import estimate_tokens

SPEC, MANUAL, EMPTY = DOCUMENTS_BY_ID
COUNTS = QuestionCounts(2, 24, 500)
RULES = QuestionRules(QuestionCounts(3, 24, 100), 60.0, 4000, 3)


def asked(pages: list[Page], language: str, name: str = "x/報告.xlsx", title: str = "") -> dict[str, str]:
    found = candidates(name, title or name.rpartition("/")[2].rpartition(".")[0], pages, language)
    return {each.question: each.answer for each in found}


def prose(*texts: str) -> Page:
    return page(*(Block(BlockKind.PARAGRAPH, text) for text in texts))


def test_table_rows_become_questions_in_japanese() -> None:
    found = asked([ERRORS], "ja", SPEC)
    about = "顧客登録の「エラーコード一覧」"
    assert found[f"{about}で、エラーコード「E0004」の内容は何ですか。"] == "指定された顧客は既に登録されています。"
    assert found[f"{about}で、エラーコード「E0004」の対処はどのようなものですか。"] == "別の顧客名で登録してください。"
    assert found[f"{about}にはどのようなエラーコードがありますか。"] == "E0004、E0005、E0009"
    assert not any("E0009" in question and "対処" in question for question in found)  # its cell holds a mark
    assert not any("No." in question for question in found)


def test_a_list_is_asked_of_its_table_where_the_document_is_named_after_it() -> None:
    writer = Japanese("顧客管理システム", "テーブル定義書")
    assert writer.listed("顧客", "論理名称") == "顧客管理システムの「顧客」にはどのような論理名称がありますか。"
    assert Japanese("顧客登録", "設計書").listed("顧客登録", "項目") == "「顧客登録」にはどのような項目がありますか。"


def test_table_rows_become_questions_in_english() -> None:
    found = asked([GUIDE], "en", MANUAL)
    assert found["What is the speed of Model “SX-450” in “Models”?"] == "45 pages per minute"
    assert found["What is the warranty period of Model “SX-200” in “Models”?"] == "two years"


def test_labels_become_questions() -> None:
    found = asked([OVERVIEW], "ja", SPEC)
    assert found["顧客登録の「取引概要」の取引IDは何ですか。"] == "B10103"
    assert found["顧客登録のシステム機能設計書の取引概要は何ですか。"] == "顧客のデータ1件を登録する。"
    assert not any("備考" in question for question in found)
    spoken = asked([prose("提出期限：2024年4月末日", "注：別紙を見る", "詳細は https://example.com: 参照")], "ja", SPEC)
    assert list(spoken) == ["顧客登録のシステム機能設計書の提出期限はいつですか。"]


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("論理削除とは、行を残したまま削除済みの印を付けることである。", "論理削除とは何ですか。", None),
        (
            "一つの業務を完了するための操作のまとまりを「取引」という。",
            "取引とは何ですか。",
            None,
        ),
        (
            "なお、同じ顧客名の顧客が既に存在する場合は、登録せずに重複エラーを返す。",
            "同じ顧客名の顧客が既に存在する場合はどうなりますか。",
            "登録せずに重複エラーを返す。",
        ),
        (
            "入力項目に誤りがある場合、該当する項目の背景色を赤とすること。",
            "入力項目に誤りがある場合はどうすればよいですか。",
            "該当する項目の背景色を赤とすること。",
        ),
        ("これとは異なる方法もあるので注意が必要である。", None, None),
        ("詳細は次の通りである。", None, None),
        (
            "田中：ゲートシステムとは、車両のナンバーを読み取る装置である。",
            "ゲートシステムとは何ですか。",
            "ゲートシステムとは、車両のナンバーを読み取る装置である。",
        ),
        ("今日は、新しい倉庫システムについての打ち合わせです。", None, None),
        ("私たちは、お客様の声を大切にしている会社です。", None, None),
        ("大抵の場合それほど致命的なことは、他の開発者に知らせる必要のないものです。", None, None),
        ("住まいの断熱を高めることは快適な暮らしにつながるものである。", None, None),
        ("最も良い説明文は、利用者が読む最初の情報です。", None, None),
        ("影響範囲は、新しい版の方が楽にできそうだから、ということです。", None, None),
        ("担当者名簿は、毎年見直すことが必要です。", None, None),
        ("何も返事が得られなかった場合は、他の手段で連絡する。", None, None),
        ("入力ファイルに記入がある場合は、この欄に記入した値を使う。", None, None),
        ("入力ファイルの場合は、値を小数として読み込む。", None, None),
    ],
)
def test_japanese_sentences(sentence: str, question: str | None, answer: str | None) -> None:
    found = asked([prose(sentence)], "ja", "x/images.xlsx")
    assert found == ({question: answer or sentence} if question else {})


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("A duplex scanner is a device that reads both sides of a sheet.", "What is a duplex scanner?"),
        ("If the paper tray is empty, the scanner stops at once.", "What happens if the paper tray is empty?"),
        ("To calibrate the sensor, press both buttons for five seconds.", "How do you calibrate the sensor?"),
        (
            "Net sales of the company were $4.2 million in the last year.",
            "What were net sales of the company in Sales FY21?",
        ),
        ("The control panel consists of a display, two lamps and a key.", "What does the control panel consist of?"),
        ("A list of words that are left out is called a stop list.", "What is a stop list?"),
        ("It is a device that reads both sides of a sheet.", None),
        ("This means a lot of work for the person in charge.", None),
        ("The main reason is the poor quality of the paper.", None),
        ("If it is empty, the scanner stops at once.", None),
        ("The steps are as follows below.", None),
        ("Today we are an open company with many people in it.", None),
        ("Yesterday everyone was 12 years older than before.", None),
        ("The growth numbers we are posting are with all of that in place.", None),
        ("Overall what we see is the increasing competitiveness of our products.", None),
        ("To your point, the margin of the cloud is what we look at.", None),
        ("When I look at the cloud opportunities, we think of healthcare.", None),
        ("Customers are building intelligent applications on the cloud.", None),
        ("People are the heart of this company and of its products.", None),
        ("To do this, press both buttons for five seconds.", None),
        ("Fortnite is a good example of what people play on it.", None),
        ("If an engineer is optimizing, they optimize and see what is next.", None),
        ("If you go up to the store today, you'll see that.", None),
        ("JANE DOE, Example Bank: Thank you very much.", None),
        ("OPERATOR: Our first question comes from the line of John Roe.", None),
        ("Bing reached over 140 million daily active users.", None),
        ("When you see the size of the contracts, it is about the cloud.", None),
        ("When adjusted for the charge of last year, income rose by 25 percent.", None),
        ("Harbour Cloud is the first cloud to provide true hybrid support.", None),
        ("Harbour Cloud is the foundation for building new capability.", None),
        ("Of course I use the scanner on a daily basis.", None),
        ("Over half of the companies use the scanner on a daily basis.", None),
        ("The hit rate is the number of hits in a hundred queries.", "What is the hit rate?"),
        ("To limit the risk of disclosure, both methods require masking of the outcome.", None),
    ],
)
def test_english_sentences(sentence: str, question: str | None) -> None:
    found = asked([prose(sentence)], "en", "x/SalesFY21.pdf")
    assert found == ({question: sentence} if question else {})


def test_amounts_are_asked_for_where_the_document_has_a_name() -> None:
    assert asked([prose("Net sales of the company were $4.2 million in the last year.")], "en", "x/images.pdf") == {}


def test_headings_ask_for_what_follows() -> None:
    blocks = (
        Block(BlockKind.HEADING, "2.1 本書の目的"),
        Block(BlockKind.PARAGRAPH, "帳票の設計を標準化する。", ("2.1 本書の目的",)),
        Block(BlockKind.HEADING, "3 変更履歴"),
        Block(BlockKind.PARAGRAPH, "初版を作成する。", ("3 変更履歴",)),
        Block(BlockKind.HEADING, "4 一覧"),
        Block(BlockKind.PARAGRAPH, "次の通りである。", ("4 一覧",)),
    )
    assert asked([page(*blocks)], "ja", "x/UI標準.xlsx") == {
        "UI標準の「本書の目的」は何ですか。": "帳票の設計を標準化する。"
    }
    english = (
        Block(BlockKind.HEADING, "How to clean the glass"),
        Block(BlockKind.PARAGRAPH, "Wipe it with a dry cloth."),
    )
    assert asked([page(*english)], "en", "x/scanner guide.pdf") == {
        "How do you clean the glass in scanner guide?": "Wipe it with a dry cloth."
    }


def test_an_article_keeps_its_number_in_a_question() -> None:
    heading = "第 7 条（テレワーク手当）"
    blocks = (
        Block(BlockKind.HEADING, heading),
        Block(BlockKind.PARAGRAPH, "在宅勤務を行う社員に手当を支給する。", (heading,)),
    )
    assert [*asked([page(*blocks)], "ja", "x/給与規程.docx")] == [
        "給与規程の「第 7 条（テレワーク手当）」はどのような内容ですか。"
    ]


def test_what_points_elsewhere_behind_a_mark_is_no_name() -> None:
    assert asked([prose("*ここでの権利行使とは、差止請求や損害賠償請求のこと。")], "ja", "x/手引書.docx") == {}
    assert "権利行使とは何ですか。" in asked(
        [prose("*権利行使とは、差止請求や損害賠償請求のこと。")], "ja", "x/手引書.docx"
    )


@pytest.mark.parametrize("field", ["《Title》", "«Title»", "{{title}}", "${title}"])
def test_a_field_that_a_program_fills_in_says_nothing(field: str) -> None:
    assert not says_something(field)
    assert says_something("見積額 120円")


def test_covers_hidden_pages_headers_and_placeholders_are_passed_over() -> None:
    cover = Page(1, OVERVIEW.kind, OVERVIEW.blocks, role=PageRole.COVER)
    hidden = Page(2, OVERVIEW.kind, OVERVIEW.blocks, hidden=True)
    header = page(Block(BlockKind.HEADER, "作成者: 山田太郎"))
    sample = page(
        labelled(("取引名", "サンプル取引"), ("対象", "ＸＸシステム"), ("参照先", "別紙参照"), ("媒体", "☐ 紙 ☐ 電子"))
    )
    assert asked([cover, hidden, header, sample], "ja") == {}
    ticked = page(labelled(("媒体", "☐ 紙 ☑ 電子ファイル")))
    assert list(asked([ticked], "ja", SPEC).values()) == ["電子ファイル"]


def test_the_key_of_a_row_tells_rows_apart() -> None:
    block = table(("種別", "コード", "名称"), ("市", "101", "横浜市"), ("市", "102", "川崎市"), ("町", "101", "箱根町"))
    found = asked([page(block)], "ja", SPEC)
    assert all("名称「" in question or "どのような名称" in question for question in found)
    codes = table(("コード", "説明"), ("201", "田（水田）"), ("202", "畑（畑地）"))
    assert "「201」の説明は何ですか" in " ".join(asked([page(codes)], "ja", SPEC))
    twice = table(
        ("名称", "説明"), ("本社", "東京にある"), ("本社", "大阪にある"), ("支社", "福岡にある"), ("工場", "仙台にある")
    )
    assert not any("本社" in question for question in asked([page(twice)], "ja", SPEC))


def test_a_label_is_no_value() -> None:
    form = labelled(
        ("作成者：", "更新者："),
        ("作成日", "更新日"),
        ("取引名：", "顧客登録"),
        ("承認者", "山田"),
        ("コード値", "ソート順"),
        ("名称1", "名称2"),
        ("[具体的な値]", "[値の意味]"),
        ("項目説明", "※印の条件を記載"),
    )
    found = asked([page(form), prose("Version: 1.2", "担当部署：")], "ja", SPEC)
    assert found == {"顧客登録のシステム機能設計書の取引名は何ですか。": "顧客登録"}


def test_what_a_document_is_about_is_a_sentence_of_its_content() -> None:
    header = table(("No.", "メールID", "メール名", "メール概要"), ("", "", "", ""))
    drawn = Block(BlockKind.DIAGRAM, "LogWriter → LogFormatter")
    guide = page(
        Block(BlockKind.PARAGRAPH, "メールIDには採番した番号を記載する。"), name="補足：記述方法の説明", number=2
    )
    cover = Page(3, guide.kind, (Block(BlockKind.PARAGRAPH, "この表紙は関係者だけに開示する。"),), role=PageRole.COVER)
    pages = [page(header, drawn), guide, cover]
    passages = [Passage(f"d#{p.number}.0", f"d#{p.number}", p.number, (0, 1), p.blocks[0].text, "ja") for p in pages]
    assert extract_questions("x/メール一覧.xlsx", "メール一覧", "ja", pages, passages, 2) == []


def test_nobody_asks_what_a_talk_or_a_file_without_a_name_is_about() -> None:
    said = "The new warehouse system counts every pallet at the gate."
    talk = page(*(Block(BlockKind.PARAGRAPH, f"{who}: {said}") for who in ("Interviewer", "Tanaka", "Mary Ann")))
    for pages, name in (([talk], "warehouse talk.txt"), ([prose(said)], "a.txt")):
        passages = [Passage("d#1.0", "d#1", 1, tuple(range(3)), talk.blocks[0].text, "en")]
        assert extract_questions(f"x/{name}", "", "en", pages, passages, 3) == []


def test_sections_on_how_a_form_is_filled_in_are_passed_over() -> None:
    rules = Block(BlockKind.PARAGRAPH, "受付番号とは、受付の順に振る番号である。", ("記入要領",))
    assert asked([page(Block(BlockKind.HEADING, "記入要領"), rules)], "ja", SPEC) == {}


def test_merged_cells_tell_of_what_they_span() -> None:
    block = table(
        ("コードID", "説明", "値", "名称", "略称"),
        ("C01", "企業の業種分類を表す。", "01", "農業", "農"),
        ("C01", "企業の業種分類を表す。", "02", "建設業", "建設"),
        ("C02", "顧客との契約の状態を表す。", "01", "契約中", "契約"),
        ("C02", "顧客との契約の状態を表す。", "02", "解約済み", "終了"),
        section=("コード設計",),
    )
    found = asked([page(block)], "ja", SPEC)
    about = "顧客登録の「コード設計」で、"
    assert found[f"{about}コードID「C01」の説明は何ですか。"] == "企業の業種分類を表す。"
    assert found[f"{about}名称「解約済み」の略称は何ですか。"] == "終了"
    assert not any("名称「" in question and "説明" in question for question in found)


def test_classes_name_rows_together() -> None:
    block = table(
        ("ケースNo", "区分", "項目", "観点"),
        ("1-1", "文字列", "最大長", "最大長の値が登録されること。"),
        ("1-2", "文字列", "最大長", "最大長を超える値が拒否されること。"),
        ("2-1", "文字列", "文字種", "許容する文字が登録されること。"),
        ("2-2", "文字列", "文字種", "許容しない文字が拒否されること。"),
        ("3-1", "数値", "最大長", "最大の桁数の値が登録されること。"),
        ("3-2", "数値", "最大長", "最大の桁数を超える値が拒否されること。"),
        ("3-3", "数値", "最大長", "負の値が拒否されること。"),
    )
    found = asked([page(block)], "ja", SPEC)
    question = "顧客登録のシステム機能設計書で、区分「文字列」の項目「最大長」の観点は何ですか。"
    assert found[question] == "最大長の値が登録されること。 最大長を超える値が拒否されること。"
    assert sum("の観点は" in each for each in found) == 3


def test_a_row_of_fixes_is_named_by_its_title() -> None:
    fix = "".join(f"第{number}の要求の型が末尾で一致しない。" for number in range(40))
    block = table(
        ("コンテンツ", "No.", "タイトル", "概要"),
        ("フレームワーク", "", "", ""),
        ("フレームワーク", "1", "要求の型の照合を修正", fix),
        ("ライブラリ", "", "", ""),
    )
    found = asked([page(block)], "ja", SPEC)
    assert all("タイトル「要求の型の照合を修正」" in question for question in found)
    answer = found["顧客登録のシステム機能設計書で、タイトル「要求の型の照合を修正」の概要は何ですか。"]
    assert 100 < len(answer) <= 200
    assert answer.endswith("一致しない。")


def test_lines_that_siblings_share_are_no_source() -> None:
    common = {
        "論理削除とは、行を残したまま削除済みの印を付けることである。",
        "E0005 業種コードが存在しません。 -",
        "データベースに接続できません。",
    }
    rows = table(
        ("コード", "内容", "対処"),
        ("E0004", "既に登録されています。", "-"),
        ("E0005", "業種コードが存在しません。", "-"),
        ("E0009", "データベースに接続できません。", "管理者への連絡"),
    )
    text = Block(
        BlockKind.PARAGRAPH,
        "論理削除とは、行を残したまま削除済みの印を付けることである。\n締め日とは、請求の期間が終わる日である。",
    )
    found = {each.question for each in candidates(SPEC, "顧客登録", [page(rows, text)], "ja", common)}
    assert "締め日とは何ですか。" in found
    assert "論理削除とは何ですか。" not in found
    assert any("E0004" in question for question in found)
    assert not any("E0005" in question for question in found)
    assert any("「E0009」の対処" in question for question in found)
    assert not any("「E0009」の内容" in question for question in found)


def test_a_definition_names_its_place() -> None:
    blocks = (
        Block(BlockKind.HEADING, "入力の長い説明文"),
        Block(BlockKind.PARAGRAPH, "説明文は、一覧の画面に出す短い文章である。"),
    )
    section = replace(blocks[1], section=("入力の長い説明文",))
    assert "顧客登録の「入力の長い説明文」は何ですか。" in asked([page(blocks[0], section)], "ja", SPEC)
    other = replace(blocks[1], section=("説明文の書き方",))
    assert "顧客登録の「説明文の書き方」で、説明文は何ですか。" in asked([page(other)], "ja", SPEC)


def headless(*rows: tuple[str, ...]) -> Block:
    return replace(table(*rows), header_row_count=0)


def test_undetected_headers_give_no_pairs() -> None:
    grid = headless(("採番企業", "抜け番", "最小限度", "備考"), ("企業ID", "可", "0", "毎年改める"))
    assert not any("抜け番" in answer for answer in asked([page(grid)], "ja", SPEC).values())
    rows = (("Acosh", "FORMULA"), ("Asinh", "FORMULA"), ("Atanh", "FORMULA"), ("Paper", "white"))
    assert [*asked([page(headless(*rows))], "en", MANUAL).values()] == ["white"]
    assert asked([page(headless(("Acosh", "Sum of all")))], "en", MANUAL) == {}


def test_examples_and_titles_name_no_rows() -> None:
    rows = (("サンプル値", "適用"), ("毎月の契約", "四月から使う"), ("毎年の契約", "五月から使う"))
    assert not any("契約" in question for question in asked([page(table(*rows))], "ja", SPEC))
    title = "2012 Harvest report of the better varieties of the central plains"
    rows = ((title, "Season"), ("High yield, low cost", "early in spring"), ("Low yield, high cost", "late in autumn"))
    assert not any("2012" in question for question in asked([page(table(*rows))], "en", MANUAL))


def test_pointers_and_cut_quotations_are_no_answers() -> None:
    rows = (("Model", "Range", "Speed"), ("SX-200", "(See list of values in the guide)", "45 pages"))
    assert [*asked([page(table(*rows))], "en", MANUAL).values()] == ["45 pages"]
    lines = prose(
        "財政融資：長期資金を含めた「負債性", "出典：総務省の統計調査", "この要旨：毎月の提出", "図3：総務省の調査"
    )
    assert asked([lines], "ja", SPEC) == {}
    hollow = (Block(BlockKind.HEADING, "確認事項"), Block(BlockKind.PARAGRAPH, "画面上で以下を確認する。"))
    assert asked([page(*hollow)], "ja", SPEC) == {}


def test_names_that_say_nothing_are_no_section() -> None:
    rows = replace(headless(("提出期限", "2024年4月末日")), section=("API一覧へ",))
    found = asked([page(rows)], "ja", SPEC)
    assert [*found] == ["顧客登録のシステム機能設計書の提出期限はいつですか。"]
    boxes = Block(BlockKind.DIAGRAM, "要求の受付\n型の照合\n応答の返却\n要求の受付 → 型の照合", section=("web",))
    assert asked([page(boxes)], "ja", SPEC) == {}


def test_notes_beside_a_drawing_are_no_answer() -> None:
    notes = "番号は次の形で付ける。\n変わったら一つ進める。\n空欄は許さない。"
    assert asked([page(Block(BlockKind.DIAGRAM, notes))], "ja", SPEC) == {}
    boxes = "要求の受付\n型の照合\n応答の返却\n要求の受付 → 型の照合"
    assert list(asked([page(Block(BlockKind.DIAGRAM, boxes))], "ja", SPEC).values()) == [
        "要求の受付、型の照合、応答の返却"
    ]


def test_a_figure_with_its_label_is_searched() -> None:
    block = table(
        ("Category", "Sales value in billions of dollars"),
        ("Imports", "0.2"), ("Exports", "2.6"), ("Production", "7.0"), ("Net supply", "6.6"),
        section=("Sales",),
    )  # fmt: skip
    passages = [Passage("d#1.0", "d#1", 1, (0,), block.text, "en")]
    found = extract_questions("x/pesticides industry sales.pdf", "", "en", [page(block)], passages, 4)
    figures = [each for each in found if re.fullmatch(r"[\d.]+", each.answer)]
    assert len(figures) >= 3
    assert all(each.grade >= 70 for each in figures)


def test_questions_follow_lines_that_become_common(lake: Lake) -> None:
    def bring() -> StepReport:
        update_document_lines(lake, SHARDS)
        return update(lake)

    texts = {
        name: [page(Block(BlockKind.PARAGRAPH, NOTE), Block(BlockKind.PARAGRAPH, own))] for name, own in OWN.items()
    }
    first, second, third = OWN
    store(lake, {first: texts[first], second: texts[second]})
    bring()
    assert any("保管" in row["question"] for row in pairs(lake))
    assert not shards_with_outdated_boilerplate(lake, 3)
    store(lake, texts)
    update_document_lines(lake, SHARDS)
    update_questions(lake, [shard_of(third)], ExtractiveModel(), RULES, ignore)
    assert shards_with_outdated_boilerplate(lake, 3) == {shard_of(first), shard_of(second)} - {shard_of(third)}
    bring()
    assert not shards_with_outdated_boilerplate(lake, 3)
    assert pairs(lake)
    assert not any("保管" in row["question"] for row in pairs(lake))


NOTE = "保管期間とは、文書を保管しておく年数である。"
OWN = {
    "a/在庫.txt": "引当とは、在庫を注文に割り当てることである。",
    "b/請求.txt": "締め日とは、請求の期間が終わる日である。",
    "c/出荷.txt": "検品とは、出荷する品を確かめることである。",
}


@pytest.mark.parametrize(
    ("title", "language", "expected"),
    [
        ("システム機能設計書(Webサービス)_B10103_顧客登録", "ja", ("顧客登録", "システム機能設計書(Webサービス)")),
        ("メール一覧_サンプル", "ja", ("", "メール一覧")),
        ("外部インタフェース設計書_(電文ID)_(電文名)", "ja", ("", "外部インタフェース設計書")),
        ("images", "ja", ("", "")),
        ("60_詳細設計書_印刷ツール_別紙3", "ja", ("印刷ツール", "詳細設計書")),
        ("2024年版_ものづくり白書_概要", "ja", ("", "ものづくり白書")),
        ("pesticides_industry_sales", "en", ("pesticides industry sales", "")),
        ("Microsoft Word - Annual plan.doc", "en", ("Annual plan", "")),
    ],
)
def test_the_subject_comes_from_the_title(title: str, language: str, expected: tuple[str, str]) -> None:
    assert document_subject("x/y.pdf", title, language) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"), [(0, 2), (100, 2), (3000, 2), (3200, 3), (17_500, 6), (50_000, 10), (10_000_000, 24)]
)
def test_the_number_of_questions_follows_the_length(tokens: int, expected: int) -> None:
    assert COUNTS.of(tokens) == expected


def test_no_fewer_questions_than_at_least_are_allowed() -> None:
    assert EnrichmentSettings(questions_least=3, questions_most=3).questions_most == 3
    with pytest.raises(ValidationError, match="questions_least"):
        EnrichmentSettings(questions_least=100, questions_most=1)


def test_the_grade_is_the_stated_sum() -> None:
    candidate = QuestionCandidate(
        CandidateKind.CELL, "「abc」のdefは何ですか。", "十五文字ちょうどの答えですよね", 1, 0, (), "abc def"
    )
    frequency = Counter({"abc": 1, "def": 3})
    specificity = (math.log(8 / 1) + math.log(8 / 3)) / 2 / math.log(8)
    assert len(candidate.answer) == 15
    assert grade(candidate, frequency, 7) == round(100 * (0.35 * specificity + 0.25 + 0.15 + 0.25 * 0.85), 1)


def passages_of(lake: Lake, document_id: str) -> list[Passage]:
    return [
        Passage(r["chunk_id"], r["page_id"], r["page_number"], tuple(r["block_indexes"]), r["text"], r["language"])
        for r in lake.read(CHUNKS, [shard_of(document_id)]).to_pylist()
        if r["document_id"] == document_id
    ]


@pytest.fixture(scope="module")
def sample_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return parsed_sample(tmp_path_factory.mktemp("parsed"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    store(lake, DOCUMENTS_BY_ID)
    classify(lake)
    return lake


def classify(lake: Lake) -> None:
    update_facets(lake, SHARDS, ExtractiveModel(), BagOfWordsEmbedder(), TAXONOMY, 4000, ignore)


def update(lake: Lake, model: Any = None, rules: QuestionRules = RULES) -> StepReport:
    return update_questions(lake, SHARDS, model or ExtractiveModel(), rules, ignore)


def pairs(lake: Lake) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.read(SYNTHETIC_QA).to_pylist()
    return found


def test_each_question_cites_the_passage_that_holds_its_answer(lake: Lake) -> None:
    update(lake)
    texts = {row["chunk_id"]: row["text"] for row in lake.read(CHUNKS).to_pylist()}
    found = pairs(lake)
    assert Counter(row["document_id"] for row in found) == {SPEC: 3, MANUAL: 3}
    for row in found:
        [chunk_id] = row["chunk_ids"]
        first = re.split("[、,]", row["answer"])[0]
        assert "".join(first.split()) in "".join(texts[chunk_id].split())
        assert row["page_ids"] == [chunk_id.rpartition(".")[0]]
        assert row["qa_id"] == f"{row['document_id']}#q{row['qa_index']}"
        assert row["indexed"] == (row["grade"] >= RULES.least_grade)
        assert row["method"] == "extractive"
        assert row["language"] == ("ja" if row["document_id"] == SPEC else "en")
    assert not reference_problems(lake, SYNTHETIC_QA)


def test_a_citation_of_what_is_gone_is_found(lake: Lake) -> None:
    update(lake)
    shard = shard_of(SPEC)
    chunks = lake.read(CHUNKS, [shard])
    lake.write(CHUNKS, shard, chunks.slice(0, 1), lake.inputs(CHUNKS, shard))
    assert any(problem.startswith("chunk_id") for problem in reference_problems(lake, SYNTHETIC_QA))


def test_a_question_with_two_answers_is_not_asked() -> None:
    def of(value: str, number: int) -> Page:
        return page(table(("地域", "売上高"), ("関東地区", value), ("関西地区", "未集計分")), number=number)

    pages = [of("120億円（連結）", 1), of("130億円（連結）", 2)]
    passages = [
        Passage(f"d#{n}.0", f"d#{n}", n, (0,), "\n".join(b.text for b in p.blocks), "ja")
        for n, p in enumerate(pages, 1)
    ]
    found = extract_questions("x/売上報告書.xlsx", "売上報告書", "ja", pages, passages, 10)
    assert not any("関東" in each.question for each in found)
    assert any("関西" in each.question for each in found)


def test_a_document_that_is_called_as_a_thing_is_asked_of_as_a_document() -> None:
    text = "会議室の予約は総務課が受け付け、利用した人が机を元に戻した"
    pages = [page(Block(BlockKind.PARAGRAPH, text))]
    passages = [Passage("d#1.0", "d#1", 1, (0,), text, "ja")]
    [found] = extract_questions("x/会議室.txt", "会議室", "ja", pages, passages, 2)
    assert found.question == "文書「会議室」には何が書かれていますか。"


def test_a_document_without_anything_to_ask_about_says_what_it_is_about() -> None:
    text = "四月の売上は前年を上回り、五月は天候の影響で下回った"
    pages = [page(Block(BlockKind.PARAGRAPH, text))]
    passages = [Passage("d#1.0", "d#1", 1, (0,), text, "ja")]
    [found] = extract_questions("x/売上報告書.txt", "売上報告書", "ja", pages, passages, 2)
    assert (found.question, found.answer) == ("売上報告書には何が書かれていますか。", text)


def test_the_sample_folder_gets_sound_questions(sample_lake: Lake) -> None:
    for row in sample_lake.read(DOCUMENTS).to_pylist():
        [(title, pages)] = load_pages(sample_lake, row["shard"], [row["document_id"]]).values()
        passages = passages_of(sample_lake, row["document_id"])
        found = extract_questions(row["document_id"], title, row["language"], pages, passages, 12)
        assert len(found) >= 2, row["file_name"]
        questions = [each.question for each in found]
        assert len(set(questions)) == len(questions)
        for each in found:
            assert re.search(r"[。?]$", each.question)
            assert 8 <= len(each.question) <= 200
            assert len(each.answer) >= 2
            assert 0 < each.grade <= 100
            assert len(each.passages) == 1
    design = next(row for row in sample_lake.read(DOCUMENTS).to_pylist() if "B10103" in row["file_name"])
    [(title, pages)] = load_pages(sample_lake, design["shard"], [design["document_id"]]).values()
    asked_of = candidates(design["document_id"], title, pages, "ja")
    assert any("「409 (Conflict)」の処理結果" in each.question and "重複登録エラー" in each.answer for each in asked_of)


def passage(index: int, text: str) -> Passage:
    return Passage(f"d#1.{index}", "d#1", 1, (index,), text, "ja")


def test_questions_are_spread_over_windows() -> None:
    passages = [passage(index, "あ" * 100) for index in range(30)]
    size = estimate_tokens("あ" * 100) + 7
    windows = split_windows(passages, 6, 10 * size, 100_000)
    assert [(len(window.passages), window.count) for window in windows] == [(10, 2), (10, 2), (10, 2)]
    few = split_windows(passages, 2, 5 * size, 100_000)
    assert [window.passages[0].chunk_id for window in few] == ["d#1.5", "d#1.20"]
    assert [window.count for window in few] == [1, 1]
    many = split_windows(passages, 24, 100_000, 100_000)
    assert sum(window.count for window in many) == 24
    assert max(window.count for window in many) <= 8
    assert split_windows([], 3, 100, 100_000) == []


def test_the_room_of_a_small_context_is_used() -> None:
    def passages(tokens: int) -> list[Passage]:
        return [passage(index, "あ" * 200) for index in range(tokens // estimate_tokens("あ" * 200))]

    [whole] = split_windows(passages(1600), 2, 6000, 8192)
    assert (len(whole.passages), whole.count) == (6, 2)
    for tokens in (5000, 20_000, 50_000):
        document = passages(tokens)
        windows = split_windows(document, COUNTS.of(tokens), 6000, 8192)
        assert [each for window in windows for each in window.passages] == document
    seldom = split_windows(passages(400_000), 2, 6000, 8192)
    assert all(sum(estimate_tokens(each.text) for each in window.passages) > 4000 for window in seldom)


@settings(max_examples=40, deadline=None)
@given(
    context_tokens=st.integers(4096, 40_000),
    read_tokens=st.integers(256, 20_000),
    count=st.integers(1, 30),
    lengths=st.lists(st.integers(1, 4000), min_size=1, max_size=30),
    letter=st.sampled_from(["あ", "a", "7", "|", "７"]),
    language=st.sampled_from(["ja", "en"]),
)
def test_every_request_and_its_answer_fit_the_context(
    context_tokens: int, read_tokens: int, count: int, lengths: list[int], letter: str, language: str
) -> None:
    passages = [passage(index, letter * length) for index, length in enumerate(lengths)]
    subject = Subject("d", "00", language, letter * 500, [])
    held = question_dialogue(subject, passages, [letter * 500], count, read_tokens, context_tokens)
    questions: JsonValue = [f"{n}{letter * 130}" for n in range(8)]
    replies: JsonValue = [{"question": n, "answer": letter * 600, "passages": [1, 2, 3, 4]} for n in range(1, 9)]
    grades: JsonValue = [{"pair": n, "reason": "", "grade": 90} for n in range(1, 9)]
    longest: dict[str, JsonValue] = {
        "ask_questions": {"questions": questions},
        "answer_question": {"answers": replies},
        "grade_answer": {"grades": grades},
    }
    requests = next(held)
    with pytest.raises(StopIteration) as end:
        while True:
            for request in requests:
                size = sum(estimate_tokens(message.text) for message in request.messages)
                assert estimate_tokens(request.prefix) + size + request.max_tokens <= context_tokens
            requests = held.send([Completion(r, Outcome.COMPLETED, value=longest[r.tag.step]) for r in requests])
    assert end.value.value or letter == "７"


class School:
    """Answers as teacher and student; tests change single answers."""

    def __init__(self, **changes: Callable[[Request], "Completion | JsonValue"]) -> None:
        self.changes = changes

    def __call__(self, request: Request) -> "Completion | JsonValue":
        if change := self.changes.get(request.tag.step):
            return change(request)
        text = request.messages[-1].text
        match request.tag.step:
            case "ask_questions":
                count = int(re.findall(r"(?:質問の数|questions): (\d+)", text)[0])
                return {"questions": [f"{digest(text)}の質問{n}は何ですか" for n in range(count)]}
            case "answer_question":
                numbers = re.findall(r"^(\d+)\. ", text.rpartition("<questions")[2], re.MULTILINE)
                return {"answers": [{"question": int(n), "answer": f"答え{n}", "passages": [1]} for n in numbers]}
            case _:
                numbers = re.findall(r"^\[(\d+)\]$", text, re.MULTILINE)
                return {"grades": [{"pair": int(n), "reason": "good", "grade": 90 - 20 * int(n)} for n in numbers]}


def test_teacher_and_student(lake: Lake) -> None:
    model = ScriptedModel(School(), context_tokens=32_000)
    report = update(lake, StructuredModel(model))
    found = [row for row in pairs(lake) if row["document_id"] == SPEC]
    assert [row["answer"] for row in found] == ["答え1", "答え2", "答え3"]
    assert [row["grade"] for row in found] == [70, 50, 30]
    assert [row["indexed"] for row in found] == [True, False, False]
    assert found[0]["chunk_ids"] == [f"{SPEC}#1.0"]
    assert {row["method"] for row in found} == {"scripted:model"}
    assert report.total().computed == 3
    steps = [request.tag.step for request in model.asked]
    assert Counter(steps) == {"ask_questions": 2, "answer_question": 2, "grade_answer": 2}
    assert {request.tag.asset for request in model.asked} == {"synthetic_qa"}
    teacher = next(request for request in model.asked if request.tag.document_id == SPEC)
    assert "kind: design" in teacher.messages[-1].text
    assert "B10103_顧客登録" not in teacher.messages[-1].text  # the file name
    assert "[1] " in teacher.messages[-1].text
    grading = next(r for r in model.asked if (r.tag.step, r.tag.document_id) == ("grade_answer", SPEC))
    assert "顧客のデータ1件を登録する。" in grading.messages[-1].text
    assert "E0004" not in grading.messages[-1].text  # not cited


def test_answers_that_cite_nothing_valid_are_dropped(lake: Lake) -> None:
    def cite(request: Request) -> JsonValue:
        return {
            "answers": [
                {"question": 1, "answer": "根拠なし", "passages": []},
                {"question": 2, "answer": "番号が違う", "passages": [99]},
                {"question": 3, "answer": "一つは正しい", "passages": [99, 1]},
            ]
        }

    update(lake, StructuredModel(ScriptedModel(School(answer_question=cite), context_tokens=32_000)))
    assert [row["answer"] for row in pairs(lake)] == ["一つは正しい", "一つは正しい"]


@pytest.mark.parametrize("step", ["ask_questions", "answer_question", "grade_answer"])
@pytest.mark.parametrize(("outcome", "tried_again"), [(Outcome.REFUSED, 0), (Outcome.EMPTY, 0), (Outcome.FAILED, 1)])
def test_what_the_model_cannot_do_is_extracted(lake: Lake, step: str, outcome: Outcome, tried_again: int) -> None:
    def fail(request: Request) -> Completion:
        return Completion(request, outcome)

    model = ScriptedModel(School(**{step: fail}), context_tokens=32_000)
    update(lake, StructuredModel(model))
    found = pairs(lake)
    assert {row["method"] for row in found} == {"extractive"}
    assert {row["document_id"] for row in found} == {SPEC, MANUAL}
    before = len(model.asked)
    update(lake, StructuredModel(model))
    assert bool(len(model.asked) - before) == bool(tried_again)
    if tried_again:
        update(lake, StructuredModel(ScriptedModel(School(), context_tokens=32_000)))
        assert {row["method"] for row in pairs(lake)} == {"scripted:model"}


def test_numbers_that_stand_twice_go_by_position(lake: Lake) -> None:
    def muddle(request: Request) -> JsonValue:
        return {"answers": [{"question": 1, "answer": f"順番{n}", "passages": [1]} for n in range(3)]}

    update(lake, StructuredModel(ScriptedModel(School(answer_question=muddle), context_tokens=32_000)))
    assert [row["answer"] for row in pairs(lake) if row["document_id"] == SPEC] == ["順番0", "順番1", "順番2"]


def test_a_question_asked_twice_keeps_its_best_answer(lake: Lake) -> None:
    def repeat(request: Request) -> JsonValue:
        return {"questions": ["同じ質問は何ですか", "同じ 質問は何ですか"]}

    update(lake, StructuredModel(ScriptedModel(School(ask_questions=repeat), context_tokens=32_000)))
    assert [(row["answer"], row["grade"]) for row in pairs(lake) if row["document_id"] == SPEC] == [("答え1", 70)]


def test_long_documents_are_read_in_windows_that_fit_the_model(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lines = [
        Block(BlockKind.PARAGRAPH, f"第{n}条 この規程は、業務 {n} の 取扱い を 定める もの と する。" * 3)
        for n in range(150)
    ]
    store(lake, {"rules/規程.txt": [page(*lines)]})
    model = ScriptedModel(School(), context_tokens=12_000)
    update(lake, StructuredModel(model), QuestionRules(QuestionCounts(2, 24, 200), 60.0, 2000, 3))
    asking = [request for request in model.asked if request.tag.step == "ask_questions"]
    assert len(asking) > 2
    for request in model.asked:
        size = sum(estimate_tokens(message.text) for message in request.messages) + estimate_tokens(request.prefix)
        assert size + request.max_tokens <= model.context_tokens
    assert len({tuple(row["chunk_ids"]) for row in pairs(lake)}) == len(asking)


def test_a_model_that_ends_loses_nothing(lake: Lake) -> None:
    with pytest.raises(ModelError):
        update(lake, StructuredModel(ScriptedModel(School(), context_tokens=32_000, calls_left=5)))
    model = ScriptedModel(School(), context_tokens=32_000)
    update(lake, StructuredModel(model))
    assert len({request.tag.document_id for request in model.asked}) <= 2
    assert {row["document_id"] for row in pairs(lake)} == {SPEC, MANUAL}


@pytest.mark.parametrize("generative", [False, True])
def test_incremental_equals_full(tmp_path: Path, generative: bool) -> None:
    def model() -> Any:
        return StructuredModel(ScriptedModel(School(), context_tokens=32_000)) if generative else ExtractiveModel()

    changed = [page(*GUIDE.blocks[2:])]
    final = {SPEC: DOCUMENTS_BY_ID[SPEC], MANUAL: changed, "new/x.txt": [ERRORS]}
    step = Lake(tmp_path / "step")
    store(step, DOCUMENTS_BY_ID)
    classify(step)
    update(step, model())
    store(step, final)
    classify(step)
    report = update(step, model())
    assert (report.total().computed, report.total().kept, report.total().removed) == (2, 1, 1)
    full = Lake(tmp_path / "full")
    store(full, final)
    classify(full)
    update(full, model())
    assert step.read(SYNTHETIC_QA).equals(full.read(SYNTHETIC_QA))
    assert step.read(SYNTHETIC_QA).num_rows > 3
    again = update(step, model())
    assert (again.total().computed, again.total().written) == (0, 0)


def test_facets_rules_and_model_are_part_of_the_input(lake: Lake) -> None:
    shard = shard_of(SPEC)
    base = wanted_questions(lake, shard, RULES, "a")
    assert base.keys() == {SPEC}
    assert wanted_questions(lake, shard, QuestionRules(COUNTS, 60.0, 4000, 3), "a") != base
    assert wanted_questions(lake, shard, QuestionRules(RULES.counts, 61.0, 4000, 3), "a") != base
    assert wanted_questions(lake, shard, RULES, "b") != base
    lake.write(DOCUMENT_FACETS, shard, lake.read(DOCUMENT_FACETS, [shard]), {SPEC: "other"})
    assert wanted_questions(lake, shard, RULES, "a") != base


def test_only_searched_questions_are_served_with_facets(lake: Lake) -> None:
    update(lake, StructuredModel(ScriptedModel(School(), context_tokens=32_000)))
    [row] = question_rows(lake, shard_of(SPEC)).to_pylist()
    assert row["qa_id"] == f"{SPEC}#q0"
    assert row["embedded_text"] == row["text"]
    assert row["answer"] == "答え1"
    assert "kind=design" in row["facets"]
    assert row["title"] == "システム機能設計書_B10103_顧客登録"
    assert {field.name for field in QUESTION_INDEX.fields} - row.keys() == {"search_text", "row_sha256"}


def views(lake: Lake, name: str) -> list[dict[str, Any]]:
    tables = (DOCUMENTS, PAGES, CHUNKS, FILE_SUMMARIES, PAGE_SUMMARIES, DOCUMENT_FACETS, SYNTHETIC_QA)
    with duckdb.connect() as connection:
        for each in tables:
            connection.register(each.name, lake.read(each))
        found = connection.execute(strip_comments(read_queries()[name]))
        names = [column[0] for column in found.description or []]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def test_the_views_count(lake: Lake) -> None:
    update(lake, StructuredModel(ScriptedModel(School(), context_tokens=32_000)))
    coverage = {row["page_id"]: row for row in views(lake, "question_coverage")}
    assert coverage.keys() == {f"{SPEC}#1", f"{SPEC}#2", f"{MANUAL}#1"}
    assert (coverage[f"{SPEC}#1"]["question_count"], coverage[f"{SPEC}#1"]["uncovered_chunk_count"]) == (1, 0)
    bare = coverage[f"{SPEC}#2"]
    assert bare["question_count"] == 0
    assert bare["uncovered_chunk_count"] == bare["chunk_count"] == len(bare["uncovered_chunk_ids"])
    by_facet = {(row["facet"], row["value"]): row for row in views(lake, "questions_by_facet")}
    design = by_facet["kind", "design"]
    assert (design["document_count"], design["question_count"], design["indexed_count"]) == (1, 3, 1)
    assert (design["mean_grade"], design["documents_without_questions"]) == (50.0, 0)
    update(lake, rules=replace(RULES, least_grade=101.0))
    [design] = [row for row in views(lake, "questions_by_facet") if row["value"] == "design"]
    assert (design["question_count"], design["indexed_count"], design["documents_without_questions"]) == (3, 0, 1)
    [lengths] = [row for row in views(lake, "summary_lengths") if row["language"] == "ja"]
    assert (lengths["kind"], lengths["summary_count"], lengths["method"]) == ("file", 1, "extractive")
