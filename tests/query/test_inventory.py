"""Questions for the files of a collection themselves: which ones are, and what is said to them."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.contracts.ports import Turn
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import Filters, KnowledgeBase

TEXTS = {
    "議事録/定例_20240902.md": "# 九月の定例\n\n納期を確認した。\n",
    "議事録/定例_20241007.md": "# 十月の定例\n\n予算を確認した。\n",
    "議事録/定例_20240805.md": "# 八月の定例\n\n体制を確認した。\n",
    "design/a.txt": "The screen shows orders.\n",
    "design/b.txt": "The batch sends orders.\n",
    "design/manual[1].md": "# Manual\n\nPress the button.\n",
    "data/prices.csv": "item,price\napple,100\n",
    "data/stock.csv": "item,stock\napple,3\n",
    "data/broken.pdf": "%PDF-1.4 broken",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> KnowledgeBase:
    """Nine files in three folders, each changed a day after the one before; one of them cannot be read."""
    folder = tmp_path_factory.mktemp("inventory")
    for at, (name, text) in enumerate(TEXTS.items()):
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_700_000_000 + 86_400 * at,) * 2)
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    arguments = ["--home", str(folder / "home"), "index", str(folder / "files")]
    assert "broken.pdf" in CliRunner().invoke(main, arguments).output
    return knowledge_base(Home(load_settings(home=folder / "home")))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "ファイルは全部で何件ありますか",
            ["ファイル: 9 件。読み取れなかったもの 1 件", "フォルダー別の件数: data 3、design 3、議事録 3"],
        ),
        (
            "How many documents are there in total?",
            ["files: 9. Not readable: 1", "By folder: data 3, design 3, 議事録 3"],
        ),
        ("CSVはいくつ登録されていますか？", ["CSV: 2 件（全 9 件のうち）"]),
        ("designフォルダにはPDFが何件ありますか", ["design: PDF: 0 件（全 3 件のうち）"]),
        ("How many PDFs are in the folder data?", ["data: PDFs: 1 (of 3 files). Not readable: 1"]),
        ("どんなフォルダがありますか", ["フォルダー: 3 個", "data（3 件）", "design（3 件）", "議事録（3 件）"]),
        ("List the files in design", ["design: files: 3", "design/a.txt", "design/b.txt", "design/manual［1］.md"]),
        ("マニュアルの一覧", ["マニュアル: 1 件（全 9 件のうち）", "design/manual［1］.md"]),
        ("新しい順に2つファイルを並べて", ["broken.pdf（更新 2023-11-22", "stock.csv"]),
        ("CSVは何件で、PDFは何件ですか", ["CSV: 2 件（全 9 件のうち）", "PDF: 1 件（全 9 件のうち）"]),
        ("dataフォルダの中のフォルダはいくつ", ["data: フォルダー: 0 個"]),
        ("CSVを1件だけ挙げて", ["CSV: 2 件（全 9 件のうち）", "data/prices.csv"]),
        ("拡張子別のファイル数", ["形式別の件数: md 4、", "txt 2", "pdf 1"]),
        ("List the manuals", ["manuals: 1 (of 9 files)", "design/manual［1］.md"]),
        (
            "一番新しい議事録はどれ？",
            ["定例_20241007.md（名前の日付 2024-10-07）", "定例_20240902.md", "定例_20240805.md"],
        ),
        (
            "議事録の中で一番古いのは",
            ["定例_20240805.md（名前の日付 2024-08-05）", "定例_20240902.md", "定例_20241007.md"],
        ),
        (
            "最近更新されたファイルは？",
            ["broken.pdf（更新 2023-11-22 22:13 UTC、読み取れませんでした）", "stock.csv", "prices.csv"],
        ),
        ("Which is the oldest text file?", ["定例_20240902.md (changed 2023-11-14 22:13 UTC)", "定例_20241007.md"]),
    ],
)
def test_what_is_asked_of_the_files_is_told_from_their_table(
    base: KnowledgeBase, question: str, said: list[str]
) -> None:
    answer = base.ask(question)
    assert "inventory" in {step.operation for step in answer.trace.steps}
    places = [answer.text.find(each) for each in said]
    assert -1 not in places, answer.text
    assert places == sorted(places)
    assert answer.answered
    cited = [each for each in answer.sentences if "broken.pdf" not in each.text]  # of which there is no passage
    assert all(each.citations and all(citation.supported for citation in each.citations) for each in cited)


def test_filters_hold_for_what_is_counted(base: KnowledgeBase) -> None:
    assert "files: 3" in base.ask("How many files are there?", filters=Filters(folder=("files/design",))).text


@pytest.mark.parametrize(
    "question",
    [
        "申請に必要な書類は何件ですか",
        "添付ファイルは何件まで登録できますか",
        "議事録は何日以内に作成しますか",
        "納期を確認した議事録はいくつ",
        "最新のバージョンは？",
        "画面の一覧",
        "How many files can be attached?",
        "How many documents must be submitted to the office?",
        "List all files that the batch sends",
        "扱えるファイルの拡張子をすべて教えて",
        "CSVではないファイルは何件",
        "designフォルダ以外のファイルは何件",
        "How many files are not PDFs?",
        "発表資料は何件",
        "文書の作成者の一覧",
        "書類代はいくら",
        "今月更新されたファイルは何件",
        "CSVの列の名前",
        "CSVに出力される表の一覧",
        "CSVは何件まで取り込めますか",
        "議事録の一覧を出力できますか",
        "保存されるファイルの名前",
        "How many documents do we need?",
        "How many documents can be registered?",
        "Which reports does the system show?",
        "How many records are in the CSV?",
        "最近更新されたファイルは何件",
        "ファイルは何件？PDFは？",
        "Which files does the batch send?",
        "契約書は何部必要ですか",
        "どんな文書が登録されていますか",
        "latest version",
        "ファイルは全部で何件" + "ありますか" * 50,
    ],
)
def test_a_question_that_says_more_is_none_for_the_files(base: KnowledgeBase, question: str) -> None:
    assert "inventory" not in {step.operation for step in base.ask(question).trace.steps}


def test_a_question_that_refers_back_is_none_for_the_files(base: KnowledgeBase) -> None:
    history = [Turn("designフォルダのファイルの一覧")]
    assert "inventory" not in {step.operation for step in base.ask("そのうちCSVは何件", history=history).trace.steps}


def test_a_folder_that_there_is_not_is_named_with_those_that_there_are(base: KnowledgeBase) -> None:
    answer = base.ask("Zフォルダのファイルは何件")
    assert answer.text == "「Z」というフォルダーはありません。あるフォルダー: data、design、議事録"
    assert not answer.answered
