"""Questions for the files of a collection themselves: which ones are, and what is said to them."""

import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner
from graph_data import record, write

from rag_assets.cli import main
from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.ports import Turn
from rag_assets.contracts.tables import DOCUMENTS, PAGES, PARSE_FAILURES
from rag_assets.evaluation.evidence import Corpus
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base, readable_snapshot
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import Filters, KnowledgeBase
from rag_assets.query.ask.overviews.inventory import InventoryAsked, inventory
from rag_assets.query.ask.overviews.reading_failures import cause_name
from rag_assets.query.filters import NO_FILTERS
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import Lake, shard_of

DATA = Path(__file__).parents[1] / "data"

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
        ("会議で使うのでCSVの一覧をください", ["CSV: 2 件（全 9 件のうち）", "data/prices.csv"]),
        ("How many CSV files do we keep here, for the record?", ["CSV: 2 (of 9 files)"]),
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
    nothing = ("broken.pdf", "PDFs: 1 (of 3 files). Not readable: 1", "PDF: 0 件", "PDF: 1 件")
    cited = [each for each in answer.sentences if not any(words in each.text for words in nothing)]
    assert all(each.citations and all(citation.supported for citation in each.citations) for each in cited)


@pytest.mark.parametrize(
    ("question", "cited"),
    [
        ("CSVは何件ありますか", [{"files/data/prices.csv", "files/data/stock.csv"}]),
        ("CSVは何件で、マークダウンのファイルは何件ですか", [{"csv"}, {"md"}]),
        ("PowerPointのファイルは何件ありますか", [set()]),
        ("How many PDFs are in the folder data?", [set()]),
    ],
)
def test_a_count_cites_what_is_counted(base: KnowledgeBase, question: str, cited: list[set[str]]) -> None:
    answer = base.ask(question)
    documents = {source.number: source.document_id for source in answer.sources}
    for sentence, expected in zip(answer.sentences, cited, strict=False):
        found = {documents[citation.number] for citation in sentence.citations}
        assert found == expected or {document.rpartition(".")[2] for document in found} == expected, sentence.text


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
        "List the files for the audit department",
        "扱えるファイルの拡張子をすべて教えて",
        "CSVではないファイルは何件",
        "designフォルダ以外のファイルは何件",
        "How many files are not PDFs?",
        "発表資料は何件",
        "文書の作成者の一覧",
        "書類代はいくら",
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
        "3日間保存した資料はどこ",
        "今日保存したマニュアルはどこ",
        "議事録は30日間保存した後どうなる",
        "契約書を修正したら5日以内に送りますか",
        "今日変更したら資料はどこ",
        "先週までに更新された資料はどれ",
        "今日変更した手順書は",
        "今週の修正の見積書を教えて",
        "Which contract must be updated within the last 30 days of the term?",
        "Which files are updated within the last 30 days of the term?",
        "ファイルは全部で何件" + "ありますか" * 50,
    ],
)
def test_a_question_that_says_more_is_none_for_the_files(base: KnowledgeBase, question: str) -> None:
    assert "inventory" not in {step.operation for step in base.ask(question).trace.steps}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("昨日更新された文書は", r"[\d-]{10} UTC に更新されたファイル: なし（全 9 件のうち）"),
        ("今月更新されたファイルは何件", r"[\d-]{10}.* UTC に更新されたファイル: なし（全 9 件のうち）"),
        ("先月変更されたCSVを一覧で", r"[\d-]{10}〜[\d-]{10} UTC に更新されたCSV: なし（全 2 件のうち）"),
        ("Which files were changed yesterday?", r"files changed [\d-]{10} UTC: none of 9"),
        ("ここ3日間に変更があった文書は", r"[\d-]{10}〜[\d-]{10} UTC に更新された.*: なし（全 9 件のうち）"),
        ("Which files were updated in the last 3 days?", r"files changed .*: none of 9"),
    ],
)
def test_files_changed_in_a_period_are_told_by_their_times(base: KnowledgeBase, question: str, said: str) -> None:
    assert re.search(said, base.ask(question).text)


def test_files_that_were_changed_are_named(unread_tables: StoredTables) -> None:
    head, *files = told("過去2日以内に更新されたファイル", unread_tables, "ja")
    assert head.endswith("に更新されたファイル: 7 件（全 7 件のうち）")
    assert len(files) == 7
    assert all("更新" in file for file in files)


def test_documents_of_a_kind_are_named_by_their_folder(base: KnowledgeBase) -> None:
    answer = base.ask("議事録にはどんな議事録がありますか")
    assert "inventory" not in {step.operation for step in answer.trace.steps}
    answer = base.ask("designフォルダにはどんなマニュアルがありますか")
    assert [sentence.text for sentence in answer.sentences] == [
        "design: マニュアル: 1 件（全 3 件のうち）",
        "files/design/manual［1］.md",
    ]


def test_a_question_that_refers_back_is_none_for_the_files(base: KnowledgeBase) -> None:
    history = [Turn("designフォルダのファイルの一覧")]
    assert "inventory" not in {step.operation for step in base.ask("そのうちCSVは何件", history=history).trace.steps}


def test_a_folder_that_there_is_not_is_named_with_those_that_there_are(base: KnowledgeBase) -> None:
    answer = base.ask("Zフォルダのファイルは何件")
    assert answer.text == "「Z」というフォルダーはありません。あるフォルダー: data、design、議事録"
    assert not answer.answered


@pytest.fixture(scope="module")
def unread(unread_home: Home) -> KnowledgeBase:
    """Seven files in three folders, four of which cannot be read, and one not in full."""
    return knowledge_base(unread_home)


@pytest.fixture(scope="module")
def unread_home(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Home:
    """Seven files in three folders, four of which cannot be read, and one not in full."""
    folder = tmp_path_factory.mktemp("unread")
    files = folder / "files"
    for name in ("契約", "data", "scans"):
        (files / name).mkdir(parents=True)
    shutil.copy(DATA / "pdf" / "password.pdf", files / "契約" / "locked.pdf")
    shutil.copy(DATA / "excel" / "password.xlsx", files / "data" / "sales.xlsx")
    (files / "data" / "broken.xlsx").write_text("no workbook", encoding="utf-8")
    (files / "scans" / "empty.txt").touch()
    (files / "契約" / "運用.md").write_text(
        "# 運用\n\nファイルが読めなかったときは、エラーコード E17 を返す。\n", encoding="utf-8"
    )
    (files / "data" / "notes.txt").write_text("A file that cannot be read is moved to the folder late.\n", "utf-8")
    book = openpyxl.Workbook()
    book.active.title = "明細"
    for row in (["品名", "金額"], ["りんご", 100], ["合計", "=SUM(B2:B2)"]):
        book.active.append(row)
    book.save(files / "data" / "sums.xlsx")
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    CliRunner().invoke(main, ["--home", str(folder / "home"), "index", str(files)])
    return Home(load_settings(home=folder / "home"))


@pytest.fixture(scope="module")
def unread_tables(unread_home: Home) -> StoredTables:
    """What is stored of them."""
    snapshot = readable_snapshot(unread_home)
    assert snapshot is not None
    return StoredTables(unread_home.lake, snapshot.tables)


def told(question: str, stored: StoredTables, language: str) -> list[str]:
    """What is said of the files without a search; nothing where the question is none for them."""
    asked = InventoryAsked.of(question)
    found = inventory(asked, language, stored, lambda *_: [], None, NO_FILTERS) if asked is not None else None
    return [each.text for each in found.sentences] or [found.opening] if found is not None else []


UNREAD_JA = """
読めなかったファイルはどれですか
どのファイルが読み取れませんでしたか
読み込めなかった文書を教えてください
取り込みに失敗したファイルはありますか
読み取りに失敗したファイルを一覧で見せて
読めないファイルある？
エラーになったファイルを全部挙げて
読めなかった理由をファイルごとに教えて
ファイルは全部ちゃんと読めましたか
すべてのファイルを読み取れましたか？
インデックスできなかった資料はありますか
読めなかったものはありますか
なぜ読めなかったファイルがあるのですか
どのファイルが読めなかったんでしょうか
読めないファイルがあったら教えてもらえますか
読み飛ばされたファイルはどれ
どの書類が取り込めていないか教えて
読めていないファイルを全部見せてください
""".strip().splitlines()
UNREAD_EN = """
Which files could not be read?
Are there any files that failed?
Did any documents fail to be read?
List the unreadable files
What files couldn't be indexed?
How many files could not be parsed?
Were all files read?
Which files were skipped and why?
Please tell me which files you were unable to read.
files with errors
Is there any file that can't be opened?
Did anything fail to be indexed?
Why were some files not read?
Have all documents been indexed?
Were there any problems reading the files?
Let me know if any files failed to be imported
Can you list the documents that you couldn't read?
""".strip().splitlines()


@pytest.mark.parametrize("question", UNREAD_JA)
def test_files_that_could_not_be_read_are_told_with_their_causes(unread_tables: StoredTables, question: str) -> None:
    lines = told(question, unread_tables, "ja")
    assert lines[0].endswith(": 4 件（全 7 件のうち）")
    assert lines[1:6] == [
        "原因別の件数: 暗号化・パスワード付き 2、破損 1、テキストなし 1",
        "files/data/broken.xlsx（破損）",
        "files/data/sales.xlsx（暗号化・パスワード付き）",
        "files/scans/empty.txt（テキストなし）",
        "files/契約/locked.pdf（暗号化・パスワード付き）",
    ]
    assert lines[6].startswith("一部を読み取れなかった")
    assert lines[7:] == ["files/data/sums.xlsx（計算結果のない数式 — 1 ページ目（明細））"]


@pytest.mark.parametrize("question", UNREAD_EN)
def test_files_that_could_not_be_read_are_told_in_english(unread_tables: StoredTables, question: str) -> None:
    lines = told(question, unread_tables, "en")
    assert lines[0].endswith(" that could not be read: 4 (of 7 files)")
    assert lines[1] == "By cause: encrypted 2, damaged 1, no text 1"
    assert lines[2] == "files/data/broken.xlsx (damaged)"
    assert lines[7] == "files/data/sums.xlsx (formulas without results: page 1 (明細))"


def test_what_was_read_of_a_file_in_part_is_shown(unread: KnowledgeBase) -> None:
    answer = unread.ask("読めなかったファイルはどれですか")
    assert answer.answered
    assert answer.text.startswith("登録されているファイルから:\n- 読み取れなかったファイル: 4 件（全 7 件のうち）")
    assert [each.supported for each in answer.sentences] == [False] * 7 + [True]
    assert {source.document_id for source in answer.sources} == {"files/data/sums.xlsx"}
    assert unread.ask("Which files are encrypted?").text.startswith("From the files that are indexed:\n- files that")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("壊れているファイルはありますか", ["読み取れなかったファイル（破損）: 1 件（全", "broken.xlsx"]),
        ("破損したExcelってある？", ["読み取れなかったExcel（破損）: 1 件（全 3 件のうち）", "broken.xlsx"]),
        ("どのPDFが読み取れませんでしたか", ["読み取れなかったPDF: 1 件（全 1 件のうち）", "locked.pdf"]),
        (
            "暗号化されているファイルを一覧にしてください",
            ["（暗号化・パスワード付き）: 2 件（全", "sales.xlsx", "locked.pdf"],
        ),
        ("パスワード付きで読めないファイルはどれ", ["（暗号化・パスワード付き）: 2 件（全"]),
        (
            "パスワードがかかっていて開けないExcelは何個？",
            ["読み取れなかったExcel（暗号化・パスワード付き）: 1 件（全"],
        ),
        ("空のファイルはありますか", ["読み取れなかったファイル（テキストなし）: 1 件（全", "empty.txt"]),
        ("テキストが取れなかったファイルは何件ありますか", ["（テキストなし）: 1 件（全"]),
        ("大きすぎて読めなかったファイルは？", ["読み取れなかったファイル（大きすぎる）: なし（全 7 件のうち）"]),
        ("タイムアウトしたファイルはありますか", ["（時間切れ）: なし"]),
        ("対応していない形式のファイルはどれ", ["（未対応の形式）: なし"]),
        ("メモリ不足で読めなかったファイルはありますか", ["（メモリー不足）: なし"]),
        ("権限がなくて読めなかったファイルは", ["（ファイルを開けない）: なし"]),
        (
            "一部だけ読めなかったファイルはどれですか",
            ["一部を読み取れなかったファイル: 1 件（全", "sums.xlsx（計算結果"],
        ),
        ("数式の結果がないExcelはありますか", ["一部を読み取れなかったExcel（計算結果のない数式）: 1 件（全"]),
        ("読めなかったページはありますか", ["一部を読み取れなかったファイル: 1 件（全"]),
        (
            "契約フォルダで読めなかったファイルは",
            ["契約: 読み取れなかったファイル: 1 件（全 2 件のうち）", "locked.pdf"],
        ),
        (
            "locked.pdfはなぜ読めなかったのですか",
            ["読み取れなかったファイル: 1 件（全 1 件のうち）", "locked.pdf（暗号化"],
        ),
        ("notes.txtは読めませんでしたか？", ["読み取れなかったファイル: なし（全 1 件のうち）"]),
        ("Which files are encrypted?", ["files that could not be read (encrypted): 2 (of 7 files)", "sales.xlsx"]),
        ("Any password-protected PDFs?", ["PDFs that could not be read (encrypted): 1 (of 1"]),
        ("Show me the corrupted files", ["(damaged): 1 (of 7 files)", "broken.xlsx (damaged)"]),
        ("Which files have no text?", ["(no text): 1 (of", "empty.txt"]),
        ("Which file timed out?", ["files that could not be read (took too long): none of 7"]),
        ("Did any file crash?", ["(the reader crashed): none of 7"]),
        ("Which files are too large to be read?", ["(too large): none of 7"]),
        ("Tell me the files with an unsupported format", ["(unknown format): none of 7"]),
        ("Which documents were only partly read?", ["of which a part could not be read: 1 (of", "sums.xlsx"]),
        ("Which pages could not be read?", ["of which a part could not be read: 1 (of", "sums.xlsx"]),
        ("Why could broken.xlsx not be read?", ["could not be read: 1 (of 1 files)", "broken.xlsx (damaged)"]),
        ("読めなかったファイルは経理フォルダにありますか", ["「経理」というフォルダーはありません。"]),
    ],
)
def test_a_cause_a_part_a_format_a_folder_or_a_file_narrows_what_could_not_be_read(
    unread_tables: StoredTables, question: str, said: list[str]
) -> None:
    text = "\n".join(told(question, unread_tables, "en" if question.isascii() else "ja"))
    places = [text.find(each) for each in said]
    assert -1 not in places, text
    assert places == sorted(places)
    named = {name for name in ("sales.xlsx", "locked.pdf", "broken.xlsx", "empty.txt", "sums.xlsx") if name in text}
    count = re.search(r"(\d+) (?:件（全|\(of)", said[0])
    assert len(named) == (int(count[1]) if count else 0)


OF_DOCUMENTS_JA = """
ファイルが読めなかったときのエラーコードは？
ファイルが読み取れない場合はどうなりますか
読めなかったファイルはどう処理されますか
暗号化されたファイルは登録できますか
ファイルの読み込みに失敗した場合のメッセージは何ですか
パスワード付きファイルを送るときの手順は？
壊れたファイルを受け取ったときは誰に連絡しますか
添付ファイルが大きすぎるとどうなりますか
ファイル読み取りエラーの対処方法を教えてください
読み込めなかったデータは再送しますか
暗号化するファイルはどれですか
エラーファイルの出力先はどこですか
取り込みに失敗したファイルの再送方法
どのファイルを暗号化する必要がありますか
ファイルが開けないのはなぜですか
バッチで読めなかったファイルはどこに移されますか
申請書類が読み取れない場合の連絡先
空のファイルを受信したときの動作は？
破損ファイルの検出方法
ファイルが読めない理由は何ですか
ファイルは暗号化されていますか
暗号化されたファイルとは何ですか
文書が壊れていたらどうすればいいですか
PDFが開けません
登録されていない書類はどれですか
タイムアウトしたファイル転送は再開されますか
""".strip().splitlines()
OF_DOCUMENTS_EN = """
If the file cannot be read, what happens?
What error code is returned when a file cannot be read?
How are unreadable files handled?
Which files must be encrypted?
What happens to files that could not be read?
Where are failed files moved?
Can encrypted files be attached?
What is the message when the document fails to load?
What should I do if a file is corrupted?
Which files does the batch fail to read?
Who is told when a file could not be imported?
What are encrypted files?
Is the file encrypted?
Which fields are encrypted?
Should the files be encrypted?
Which tests failed?
What if a file cannot be read?
Why can the file not be opened?
List the errors in the documents
Which documents describe reading errors?
Which reports failed to be delivered?
Are password-protected files supported?
Which files failed the check?
""".strip().splitlines()


@pytest.mark.parametrize("question", [*OF_DOCUMENTS_JA, *OF_DOCUMENTS_EN])
def test_what_documents_say_of_reading_errors_is_looked_for_in_them(unread_tables: StoredTables, question: str) -> None:
    assert not told(question, unread_tables, "en" if question.isascii() else "ja")


def test_there_are_fifteen_wordings_of_each_at_least() -> None:
    for wordings in (UNREAD_JA, UNREAD_EN, OF_DOCUMENTS_JA, OF_DOCUMENTS_EN):
        assert len(set(wordings)) >= 15


def test_what_documents_say_of_reading_errors_is_found(unread: KnowledgeBase) -> None:
    assert "E17" in unread.ask("ファイルが読めなかったときのエラーコードは？").text
    assert "late" in unread.ask("If a file cannot be read, what happens?").text


@pytest.mark.parametrize(
    ("filters", "count", "of_all"),
    [
        (Filters(folder=("files/data",)), 2, 4),
        (Filters(folder=("files/data/",), format=("xlsx",)), 2, 3),
        (Filters(document=("files/契約/",)), 1, 2),
        (Filters(document=("*.xlsx",)), 2, 3),
        (Filters(modified_from=datetime(2000, 1, 1, tzinfo=UTC)), 4, 7),
        (Filters(modified_before=datetime(2100, 1, 1, tzinfo=UTC)), 4, 7),
        (Filters(language=("ja",)), 0, 2),
        (Filters(page_name=("明細",)), 0, 1),
    ],
)
def test_filters_hold_for_files_that_could_not_be_read(
    unread: KnowledgeBase, filters: Filters, count: int, of_all: int
) -> None:
    said = unread.ask("読めなかったファイルはどれですか", filters=filters).sentences[0].text
    none = f"読み取れなかったファイル: なし（全 {of_all} 件のうち）"
    assert said == (f"読み取れなかったファイル: {count} 件（全 {of_all} 件のうち）" if count else none)


def test_files_that_could_not_be_read_are_counted_under_a_filter(unread: KnowledgeBase) -> None:
    answer = unread.ask("ファイルは全部で何件ありますか", filters=Filters(folder=("files/data",)))
    assert answer.sentences[0].text == "ファイル: 4 件。読み取れなかったもの 2 件"


def test_that_all_files_were_read_is_said(corpus: Corpus) -> None:
    assert told("壊れているファイルはありますか", corpus.stored, "ja") == [
        "読み取れなかったファイル（破損）: なし（全 9 件のうち）"
    ]
    assert told("Which files could not be read?", corpus.stored, "en") == ["files that could not be read: none of 9"]


def test_pages_and_files_that_are_gone_are_told_apart(tmp_path: Path) -> None:
    lake, names = Lake(tmp_path), ("s/[a](x).pdf", "s/b.pdf", "s/c.pdf")
    of = {each: {"document_id": each, "shard": shard_of(each)} for each in names}
    status = dict(zip(names, ("parsed", "unreadable", "failed"), strict=True))
    documents = [record(DOCUMENTS, **of[each], folder="s", format="pdf", status=status[each]) for each in names]
    failures: list[tuple[str, int | None, str]] = [(names[0], page, "no_text") for page in range(1, 9)]
    failures += [(names[0], 9, "malformed"), (names[1], None, "unreadable"), (names[2], None, "future_cause")]
    rows = [
        record(PARSE_FAILURES, **of[each], failure_index=at, page_number=page, cause=cause)
        for at, (each, page, cause) in enumerate(failures)
    ]
    pages = [record(PAGES, **of[names[0]], page_id="1", page_number=1, page_name="[表](http://x)")]
    for table, held in ((DOCUMENTS, documents), (PARSE_FAILURES, rows), (PAGES, pages)):
        write(lake, table, held)
    stored = StoredTables(lake, {each.name: lake.latest(each) for each in (DOCUMENTS, PARSE_FAILURES, PAGES)})
    shown = "3 ページ目、4 ページ目、5 ページ目、…"
    asked = InventoryAsked.of("読めなかったファイルはどれですか")
    assert asked is not None
    found = inventory(asked, "ja", stored, lambda *_: [], None, NO_FILTERS)
    assert found is not None
    assert [each.text for each in found.sentences] == [
        "読み取れなかったファイル: 1 件（全 3 件のうち）",
        "s/c.pdf（future_cause）",
        "一部を読み取れなかったファイル: 2 件（全 3 件のうち）",
        "原因別の件数: テキストなし 1、ファイルを開けない 1",
        "s/［a］(x).pdf（テキストなし — 1 ページ目（［表］(http://x)）、2 ページ目、…、破損 — 9 ページ目）".replace(
            "…", shown
        ),
        "s/b.pdf（いまは開けず、以前に読み取った内容のまま）",
    ]


@pytest.mark.parametrize("cause", list(FailureCause))
def test_every_cause_has_a_name_in_both_languages(cause: FailureCause) -> None:
    assert cause_name(cause, "ja") not in {cause, cause_name(cause, "en")}


def test_a_file_that_a_question_names_is_said_to_be_unread_where_there_is_no_answer(base: KnowledgeBase) -> None:
    unread = base.ask("broken の承認者の電話番号は？")
    assert not unread.answered
    assert unread.text.startswith("「broken.pdf」は読み取れていません（破損）。\n")
    in_english = base.ask("What is the phone number of the approver of broken?")
    assert not in_english.answered
    assert in_english.text.startswith("“broken.pdf” could not be read (damaged).\n")
    assert "broken.pdf" not in base.ask("定例の承認者の電話番号は？").text
    assert "broken.pdf" not in base.ask("broken の承認者の電話番号は？", filters=Filters(folder=("files/design",))).text
