"""Questions that go on to ask of what the one before spoke of: its document, its row, all of its things."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import KnowledgeBase, Turn
from rag_assets.query.search.rewriting_rules import is_greeting, whole_question

TEXTS = {
    "規程/育児休業規程.md": (
        "# 育児休業規程\n\n## 第2条 期間\n\n"
        "育児休業は、子が1歳に達する日まで取得できる。分割して取得できる回数は2回とする。\n\n"
        "## 第3条 申請\n\n育児休業の申請は、開始予定日の1か月前までに人事部に行う。\n"
    ),
    "規程/用語集.md": (
        "# 用語集\n\n分割とは、注文を2回以上に分けて送ることをいう。\n\n申請は、希望日の3営業日前までに行う。\n"
    ),
    "マニュアル/高齢者対応.md": (
        "# 高齢者対応マニュアル\n\n| 項目 | 内容 |\n| --- | --- |\n| 主管部署 | 顧客保護部 |\n| 見直し頻度 | 半期 |\n"
    ),
    "マニュアル/申込受付.md": (
        "# 申込受付マニュアル\n\n| 項目 | 内容 |\n| --- | --- |\n| 主管部署 | 契約管理部 |\n| 版数 | 2.1 |\n"
    ),
    "総務/備品台帳.csv": (
        "管理番号,物品名,購入日,保管場所,状態\nB-001,ノートPC,2022-04-01,3階,使用中\n"
        "B-002,プロジェクター,2019-06-10,会議室A,修理中\nB-003,ホワイトボード,2018-01-15,倉庫,使用中\n"
    ),
    "開発/注文表.md": (
        "# 注文の項目\n\n| No | 論理名 | 型 |\n| --- | --- | --- |\n| 1 | 購入日 | date |\n| 2 | 状態 | int |\n"
    ),
    "規程/旅費規程.md": (
        "# 旅費規程\n\n## 第4条 日当\n\n日当は、出張1日につき3,000円とする。\n\n"
        "## 第5条 使用者\n\n社用車の使用者は、運転日報を提出する。\n"
    ),
    "開発/parts.md": (
        "# Parts\n\nWhich parts go with each release.\n\n| ODE | PPM | SDWD |\n| --- | --- | --- |\n"
        "| 3.0.0 | 1.4.0 | 1.8.0 |\n| 2.1.0 | 1.3.0 | 1.7.0 |\n"
    ),
    "開発/同期.md": (
        "# 注文の同期\n\n| 同期種別 | 実行時刻 |\n| --- | --- |\n| 定期同期 | 1時間ごと |\n"
        "| 日次総チェック | 毎日午前2時 |\n"
    ),
    "開発/製品.csv": "品名,製造番号,廃棄金額,担当\nカメラ,S-77,300円,田中\nマイク,S-78,200円,佐藤\n",
    "あいさつ.md": "# 紹介\n\nこんなお悩みはありませんか。ありがとうの声が届いています。\n",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> KnowledgeBase:
    """Documents of which several state things of the same names."""
    folder = tmp_path_factory.mktemp("follow_ups")
    for name, text in TEXTS.items():
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    CliRunner().invoke(main, ["--home", str(folder / "home"), "index", str(folder / "files")])
    return knowledge_base(Home(load_settings(home=folder / "home")))


@pytest.mark.parametrize(
    ("questions", "document", "said"),
    [
        (("育児休業はいつまで取得できますか", "何回に分けて取れる？"), "育児休業規程.md", "2回"),
        (("育児休業はいつまで取得できますか", "いつまでに申請すればいい？"), "育児休業規程.md", "1か月前"),
        (("高齢者対応マニュアルの見直し頻度は", "主管部署も教えて"), "高齢者対応.md", "顧客保護部"),
        (("プロジェクターの保管場所は", "購入日も"), "備品台帳.csv", "2019-06-10"),
        (("プロジェクターの保管場所は", "いつの購入？"), "備品台帳.csv", "2019-06-10"),
        (("プロジェクターの保管場所は", "状態は？"), "備品台帳.csv", "修理中"),
        (("プロジェクターの保管場所は", "ホワイトボードは？"), "備品台帳.csv", "倉庫"),
        (("プロジェクターの保管場所は", "購入日も", "状態も教えて"), "備品台帳.csv", "修理中"),
        (("Which PPM goes with ODE 2.1.0?", "And the SDWD one for that release?"), "parts.md", "SDWD: 1.7.0"),
        (("注文の同期にはどんな種別がある？", "日次のほうは何時に走るんですか"), "同期.md", "午前2時"),
    ],
)
def test_the_document_spoken_of_answers(
    base: KnowledgeBase, questions: tuple[str, ...], document: str, said: str
) -> None:
    *before, question = questions
    answer = base.ask(question, history=[Turn(text) for text in before])
    assert answer.answered
    assert answer.sources[0].document_id.endswith(document)
    assert said in answer.sentences[0].text


def test_another_document_does_not_answer_what_that_spoken_of_does_not_say(base: KnowledgeBase) -> None:
    answer = base.ask("その版数は", history=[Turn("高齢者対応マニュアルの見直し頻度は")])
    assert not answer.answered
    assert "2.1" not in answer.text


@pytest.mark.parametrize(
    ("before", "question", "not_said"),
    [
        ("プロジェクターの購入日は", "残業はいつまで", "2019-06-10"),
        ("プロジェクターの購入日は", "宿泊費は", "2019-06-10"),
        ("プロジェクターの購入日は", "社長の給料は", "2019-06-10"),
        ("プロジェクターの購入日は", "天気は何度", "2019-06-10"),
        ("カメラの担当は", "電話番号は", "S-77"),
        ("カメラの担当は", "税込金額は", "300円"),
        ("カメラの担当は", "廃棄日は", "300円"),
        ("カメラの廃棄金額は", "担当部署は", "田中"),
    ],
)
def test_the_row_spoken_of_does_not_answer_what_it_has_no_column_for(
    base: KnowledgeBase, before: str, question: str, not_said: str
) -> None:
    answer = base.ask(question, history=[Turn(before)])
    assert not answer.answered or not_said not in answer.text


def test_a_column_is_asked_for_by_its_name_with_an_end(base: KnowledgeBase) -> None:
    answer = base.ask("担当者は", history=[Turn("カメラの廃棄金額は")])
    assert answer.answered
    assert "田中" in answer.sentences[0].text


def test_another_thing_that_is_asked_for_too_is_answered_by_its_document(base: KnowledgeBase) -> None:
    answer = base.ask("日当も教えて", history=[Turn("プロジェクターの保管場所は")])
    assert answer.answered
    assert "3,000円" in answer.sentences[0].text


def test_what_was_spoken_of_before_the_turns_that_are_remembered_is_not_guessed(base: KnowledgeBase) -> None:
    chain = ["プロジェクターの購入日は", "保管場所は", "状態も", "管理番号も", "購入日も"]
    assert not base.ask("使用者も", history=[Turn(text) for text in chain]).answered
    assert base.ask("管理番号も", history=[Turn(text) for text in chain[:3]]).answered


def test_a_question_that_names_another_thing_is_answered_by_its_document(base: KnowledgeBase) -> None:
    answer = base.ask("用語集の分割とは何ですか", history=[Turn("プロジェクターの保管場所は")])
    assert answer.answered
    assert answer.sources[0].document_id.endswith("用語集.md")


@pytest.mark.parametrize("greeting", ["ありがとう", "こんにちは！", "thank you very much"])
def test_a_greeting_has_no_answer(base: KnowledgeBase, greeting: str) -> None:
    answer = base.ask(greeting)
    assert not answer.answered
    assert not answer.sentences


@pytest.mark.parametrize(
    "question",
    [
        "承認の手順は",
        "hello world の例は",
        "すみません、締め日は",
        "わかりました。次は",
        "すみません、どこにありますか",
        "すみません、だれにきけばいい",
        "すみませんいくらですか",
        "ごめん、いつまで",
        "こんにちはだれですか",
        "ありがとうはいつ",
        "分かりましたか",
        "承知のうえで",
        "ありがとう？",
    ],
)
def test_a_question_that_greets_is_one(question: str) -> None:
    assert not is_greeting(question)


@pytest.mark.parametrize(
    "greeting",
    [
        "了解です。ありがとう",
        "ありがとう😊",
        "どうもありがとうございました！",
        "お世話になっております。よろしくお願いいたします。",
        "承知しました",
        "すみませんでした",
        "助かりました、ありがとうね〜",
        "Hi there, thanks a lot!",
    ],
)
def test_greetings_in_a_row_with_their_endings_and_signs_ask_nothing(greeting: str) -> None:
    assert is_greeting(greeting)


@pytest.mark.parametrize(
    ("before", "question", "whole"),
    [
        ("画面はいくつありますか", "全部挙げて", "画面をすべて挙げて"),
        ("会員の機能は何個ありますか", "一覧で見せてください", "会員の機能をすべて見せてください"),
        ("注文の項目を教えてください", "すべて教えて", "注文の項目をすべて教えて"),
        ("画面はいくつありますか", "全部でいくらですか", ""),
        ("それは何ですか", "全部挙げて", ""),
        ("就業規則の目的は？", "すべて教えて", "就業規則の目的をすべて教えて"),
        ("How many screens are there?", "全部教えて", ""),
        ("全部で何件ありますか", "全部教えて", ""),
    ],
)
def test_all_of_what_was_asked_is_a_whole_question(before: str, question: str, whole: str) -> None:
    assert whole_question(question, [Turn(before)]) == whole
    assert whole_question(question, []) == ""
