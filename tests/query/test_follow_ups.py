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
    "question", ["承認の手順は", "hello world の例は", "すみません、締め日は", "わかりました。次は"]
)
def test_a_question_that_greets_is_one(question: str) -> None:
    assert not is_greeting(question)


@pytest.mark.parametrize(
    ("before", "question", "whole"),
    [
        ("画面はいくつありますか", "全部挙げて", "画面をすべて挙げて"),
        ("会員の機能は何個ありますか", "一覧で見せてください", "会員の機能をすべて見せてください"),
        ("注文の項目を教えてください", "すべて教えて", "注文の項目をすべて教えて"),
        ("画面はいくつありますか", "全部でいくらですか", ""),
        ("それは何ですか", "全部挙げて", ""),
    ],
)
def test_all_of_what_was_asked_is_a_whole_question(before: str, question: str, whole: str) -> None:
    assert whole_question(question, [Turn(before)]) == whole
    assert whole_question(question, []) == ""
