"""Questions about documents as a whole: which ones are, and what is said to them without a language model."""

import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from graph_data import record, write

from rag_assets.contracts.ports import Turn
from rag_assets.contracts.tables import CHUNKS, DOCUMENTS, FILE_SUMMARIES, PAGES, PARSE_FAILURES, Table
from rag_assets.evaluation.evidence import Corpus
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import Answer, Filters, KnowledgeBase
from rag_assets.query.ask.markup import plain_sentences
from rag_assets.query.ask.overviews.named_document import named_document
from rag_assets.query.ask.overviews.overview import document_overview, opening, overview
from rag_assets.query.ask.overviews.scope import Scope, scope_of
from rag_assets.query.ask.quoted.extracts import listed
from rag_assets.query.ask.quotes import stands_in
from rag_assets.query.results import Citation, Hit
from rag_assets.query.search.auto import is_on_the_whole
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import Lake, shard_of

MOST_CHARS = 1200


@pytest.fixture(scope="module")
def sample(sample_home: Path) -> KnowledgeBase:
    return knowledge_base(Home(load_settings(home=sample_home)))


@pytest.mark.parametrize(
    "question",
    [
        "この資料群の主なテーマは何ですか",
        "これらの文書は何についてのものですか",
        "設計書フォルダには何がありますか",
        "ここにある資料の概要を教えてください",
        "どんな文書が登録されていますか",
        "議事録一式をまとめて要約してください",
        "顧客管理の設計書には何がありますか",
        "顧客管理関連の資料を要約して",
        "基準の資料の概要を教えて",
        "顧客管理の文書には主に何が書かれていますか",
        "要するに何の仕組みについての文書群？",
        "どんな種類の文書が入っていますか？",
        "どんなプロジェクトの文書が集められているか教えてください",
        "基準フォルダには何の文書が入ってる？",
        "What are these documents about?",
        "Give me an overview of the collection",
        "Summarize the files in the folder specs",
        "What is in the specs folder?",
        "What kinds of documents are there?",
        "What can I find in the reports folder?",
        "Give me a quick tour of everything that is indexed here",
        "What's in here?",
    ],
)
def test_questions_about_the_whole(question: str) -> None:
    assert is_on_the_whole(question)


@pytest.mark.parametrize(
    "question",
    [
        "機能B10103の概要は何ですか",
        "顧客登録の処理の概要を教えてください",
        "この設計書の版は何ですか",
        "この資料の概要は",
        "その文書には何が書かれていますか",
        "添付ファイルはどのフォルダに保存しますか",
        "エラーコードの一覧はどこにありますか",
        "必要な書類は何ですか",
        "設計書には何を書きますか",
        "全体会議の議事録の要約",
        "What is the overview of function B10103?",
        "Which documents must be attached to the application?",
        "What is the default folder of the log files?",
        "What is this error about?",
        "添付する書類の種類を教えてください",
        "提出する資料の種類は何ですか",
        "資料の概要欄には何を書きますか",
        "文書の概要を登録する画面はどれ？",
        "保存期間は文書の種類によって何年ですか",
        "ログファイルには何が書かれていますか",
        "資料を要約するAIは何を使っていますか",
        "何に関する書類を保管すべきですか",
        "どんな種類のファイルをアップロードできますか",
        "「資料の種類」欄の桁数は？",
    ],
)
def test_questions_about_a_fact(question: str) -> None:
    assert not is_on_the_whole(question)


def holds(answer: Answer) -> None:
    """Every sentence of an answer has citations, and each of them stands in its source."""
    texts = {source.number: source.text for source in answer.sources}
    assert answer.sentences
    assert texts.keys() == {citation.number for sentence in answer.sentences for citation in sentence.citations}
    assert all(sentence.citations for sentence in answer.sentences)
    for citation in (each for sentence in answer.sentences for each in sentence.citations):
        assert citation.supported
        assert stands_in(citation.quote, texts[citation.number])


@pytest.mark.parametrize(
    ("question", "opening"),
    [
        ("この資料群の主なテーマは何ですか", "資料の概要:"),
        ("What are these documents about?", "Overview of the documents:"),
    ],
)
def test_all_documents_are_counted_and_told_of(
    sample: KnowledgeBase, corpus: Corpus, question: str, opening: str
) -> None:
    answer = sample.ask(question)
    assert answer.answered
    assert answer.text.startswith(f"{opening}\n")
    assert len(answer.text) <= MOST_CHARS
    holds(answer)
    documents = corpus.stored.read(DOCUMENTS, ["status"])["status"].to_pylist()
    assert str(documents.count("parsed")) in answer.sentences[0].text
    assert sample.ask(question).text == answer.text


def test_a_folder_is_told_of_alone(sample: KnowledgeBase) -> None:
    answer = sample.ask("設計書フォルダには何がありますか")
    holds(answer)
    assert answer.answered
    assert all("/設計書/" in source.document_id for source in answer.sources)


def test_a_folder_need_not_be_called_a_folder(sample: KnowledgeBase) -> None:
    answer = sample.ask("What are the recurring themes in the yearly reports of our group?")
    holds(answer)
    assert answer.answered
    assert all("/reports/" in source.document_id for source in answer.sources)


def test_a_folder_is_meant_by_its_name_alone(sample: KnowledgeBase) -> None:
    for question in (
        "基準の文書には主に何が書かれていますか",
        "基準の資料の概要",
        "What are the 基準 documents about?",
    ):
        answer = sample.ask(question)
        holds(answer)
        assert answer.answered
        assert {Path(source.document_id).parent.name for source in answer.sources} == {"基準"}


def test_a_part_is_meant_where_nothing_else_is_named(sample: KnowledgeBase) -> None:
    for question in (
        "基準ってざっくりどんな内容？",
        "What are the 基準 materials about?",
        "基準フォルダの中身を簡単に紹介してください",
        "基準フォルダを簡単に説明してください",
        "基準には何が書かれているの？",
        "基準の概要",
    ):
        answer = sample.ask(question)
        holds(answer)
        assert {Path(source.document_id).parent.name for source in answer.sources} == {"基準"}
    for question in (
        "基準の版は？",
        "基準の「目的」はどんな内容ですか",
        "どんなデータモデルが基準にありますか",
        "基準では何を決めますか",
        "基準って何の略？",
        "What is 基準?",
        "reportsは何を返しますか",
        "What do reports mean?",
    ):
        assert not sample.ask(question).text.startswith(("資料の概要", "Overview"))


def test_words_that_no_document_is_called_by_do_not_narrow_everything(sample: KnowledgeBase) -> None:
    every = sample.ask("この資料群の概要を教えて").sentences[0].text
    for question in (
        "初めて見る人向けに、この資料群の概要を簡単に説明してもらえますか",
        "このコレクションに出てくる話題を大まかに教えて",
        "資料の種類はどんなものがありますか（設計書、マニュアルなど）",
    ):
        assert sample.ask(question).sentences[0].text == every


def test_every_document_is_of_one_kind(sample: KnowledgeBase) -> None:
    counted, kinds, *_ = (each.text for each in sample.ask("この資料群の概要を教えて").sentences)
    (documents,) = re.findall(r"文書 (\d+) 件", counted)
    assert sum(map(int, re.findall(r" (\d+)(?=、|$)", kinds))) == int(documents)


def told_of(folder: Path, texts: Mapping[str, str]) -> str:
    """The overview of documents of one passage each, line by line."""
    lake = Lake(folder)
    rows = [
        record(DOCUMENTS, document_id=each, shard=shard_of(each), folder=str(Path(each).parent), status="parsed")
        for each in texts
    ]
    write(lake, DOCUMENTS, rows)
    chunks = [
        record(CHUNKS, document_id=each, shard=shard_of(each), page_number=1, chunk_id=f"{each}#1.0", text=text)
        for each, text in texts.items()
    ]
    write(lake, CHUNKS, chunks)
    place = Citation("s/a.md", 1, None, None, None, "md", "x")

    def passages(named: Collection[str], read: Collection[str]) -> list[Hit]:
        return [
            Hit(1, 1.0, each, f"{each}#1", 1, None, f"{each}#1.0", texts[each], each, place)
            for each in sorted({*named, *read})
        ]

    stored = StoredTables(lake, {each.name: lake.latest(each) for each in (DOCUMENTS, CHUNKS)})
    found = overview(Scope("", tuple(rows)), "ja", stored, passages)
    return listed(plain_sentences(found.sentences, found.sources), "ja", answered=True, opening=opening("ja"))


def test_every_folder_is_named(tmp_path: Path) -> None:
    names = [f"s/案件{number:02}/{part}.md" for number in range(14) for part in ("仕様", "議事録")]
    text = told_of(tmp_path, {each: f"{each} を定める。" for each in names})
    assert len(text) <= MOST_CHARS
    assert all(f"案件{number:02}" in text for number in range(14))


def test_files_beside_folders_stand_under_the_folder_that_they_are_in(tmp_path: Path) -> None:
    names = [*(f"docs/{n}.md" for n in range(4)), *(f"docs/sub/{n}.md" for n in range(3)), "other/a.md"]
    text = told_of(tmp_path, {each: f"{each.replace('/', ' ')} を定める。" for each in names})
    assert "docs/docs" not in text
    assert "docs（4 件）" in text
    assert "docs/sub（3 件）" in text


def test_documents_of_one_folder_are_counted_once(tmp_path: Path) -> None:
    text = told_of(tmp_path, {f"s/one/report{number}.md": f"報告 {number} を定める。" for number in range(9)})
    assert "ほかのフォルダー" not in text
    assert text.count("9 件") == 2


def test_names_and_texts_of_files_cannot_write_the_overview(tmp_path: Path) -> None:
    said = "本書は、[ここ](javascript:alert(1))を押すことを目的とするガイドです。"
    asking = "目的 | 社員番号を https://evil.example/login に送信して認証するシステムである。"
    texts = {f"s/b/{number}.md": "顧客を登録する手順を定める。" for number in range(6)}
    texts |= {"s/a/\n- 偽の行です [1].md": said, "s/a/[x](www.evil.example).md": asking, "s/a/一覧.md": "x" * 5000}
    text = told_of(tmp_path, texts)
    assert len(text) <= MOST_CHARS
    assert not re.search(r"evil.example/login|javascript|\]\(", text)
    assert not any(line.startswith("- 偽の行") for line in text.splitlines())


def test_what_a_document_says_is_shown_as_its_words(tmp_path: Path) -> None:
    texts = {f"s/a/{number}.md": "顧客を登録する手順を定める。" for number in range(6)}
    texts["s/a/要件定義.md"] = "目的 | 顧客の情報を一か所で管理するシステムである。"
    assert "要件定義「顧客の情報を一か所で管理するシステムである。」" in told_of(tmp_path, texts)


def test_of_few_documents_each_is_told_of_by_its_beginning_at_least(tmp_path: Path) -> None:
    text = told_of(
        tmp_path, {"s/名簿.csv": "氏名 | 肩書\n甲 | 部長", "s/返信.eml": "Re: 第3回定例の日程\n承知しました。"}
    )
    assert "- 名簿.csv: 「氏名 | 肩書」 [" in text
    assert "- 返信.eml: 「Re: 第3回定例の日程」 [" in text


def test_a_folder_of_which_nothing_could_be_read_is_said(tmp_path: Path) -> None:
    rows = ({"document_id": "s/a/1.xls", "folder": "s/a", "format": "xls", "status": "failed", "title": ""},)
    found = overview(Scope("a", rows), "ja", StoredTables(Lake(tmp_path), {}), lambda *_: [])
    assert (found.opening, found.sentences) == ("「a」の文書 1 件は、どれも読み取れませんでした。", ())


def test_long_questions_take_no_time(sample: KnowledgeBase) -> None:
    began = time.process_time()
    for question in (
        "何の資料" + "漢" * 15_000,
        "about " + "a" * 15_000,
        "どんな資料" + "1" * 15_000,
        "ざっくり" + "㌖" * 15_000,
    ):
        sample.ask(question)
    assert time.process_time() - began < 10


def test_what_tells_a_folder_from_others_stands_in_what_is_cited(sample: KnowledgeBase) -> None:
    answer = sample.ask("この資料群の主なテーマは何ですか")
    texts = {source.number: source.text for source in answer.sources}
    told = [
        (sentence, found[1])
        for sentence in answer.sentences
        if (found := re.search(r"主な語: (.+?) — ", sentence.text))
    ]
    assert told
    for sentence, names in told:
        cited = [texts[citation.number] for citation in sentence.citations]
        assert all(any(stands_in(name, text) for text in cited) for name in names.split("、"))


def test_names_of_documents_leave_out_what_most_share(sample: KnowledgeBase) -> None:
    answer = sample.ask("ここにある資料の概要を教えてください")
    (folder,) = [each.text for each in answer.sentences if each.text.startswith("設計書（3 件）")]
    assert "テーブル定義書" in folder
    assert "顧客管理システム" not in folder


def test_a_folder_that_is_not_there_is_said(sample: KnowledgeBase) -> None:
    for question, said in (
        ("フォルダ「経理」には何がありますか", "「経理」というフォルダーはありません"),
        ("What is in the folder accounting?", "There is no folder “accounting”"),
    ):
        answer = sample.ask(question)
        assert not answer.answered
        assert answer.text.startswith(said)
        assert "設計書" in answer.text
        assert not answer.sentences


def test_a_folder_that_documents_tell_of_is_looked_for_in_them(tmp_path: Path) -> None:
    lake, document = Lake(tmp_path), "s/jar/manual.md"
    place = {"document_id": document, "shard": shard_of(document)}
    passage = {"page_number": 1, "chunk_id": f"{document}#1.0", "text": "The META-INF folder holds a file."}
    write(lake, DOCUMENTS, [record(DOCUMENTS, **place, folder="s/jar")])
    write(lake, CHUNKS, [record(CHUNKS, **place, **passage)])
    stored = StoredTables(lake, {table.name: lake.latest(table) for table in (DOCUMENTS, CHUNKS)})
    for name, is_missing in (("META-INF", False), ("accounting", True)):
        scope = scope_of(f"What is in the {name} folder of these documents?", stored, None, whole=True)
        assert (scope is not None and scope.missing == name) is is_missing


def test_filters_and_the_conversation_narrow_the_whole(sample: KnowledgeBase) -> None:
    answer = sample.ask("この資料群の主なテーマは何ですか", filters=Filters(format=("pdf",)))
    holds(answer)
    assert {Path(source.document_id).suffix for source in answer.sources} == {".pdf"}
    history = (Turn("設計書フォルダには何がありますか", "17 件"),)
    follow_up = sample.ask("それらの文書の概要を教えて。これらの資料は何についてですか", history=history)
    assert all("/設計書/" in source.document_id for source in follow_up.sources)


def test_documents_that_nothing_is_known_of_are_not_made_up(sample: KnowledgeBase) -> None:
    answer = sample.ask("What are the main themes of the Shakespeare sonnets?")
    assert not answer.text.startswith("Overview")


def test_a_document_that_says_nothing_of_itself_is_told_of_by_its_pages(sample: KnowledgeBase, corpus: Corpus) -> None:
    rows = corpus.stored.read(DOCUMENTS, ["document_id", "folder", "format", "status", "title"]).to_pylist()
    named = Hit(
        1,
        1.0,
        "s/a.xlsx",
        "s/a.xlsx#1",
        1,
        "受付",
        "c1",
        "名前 | 値",
        "a",
        Citation("s/a.xlsx", 1, "受付", None, None, "xlsx", "c1"),
    )
    other = Hit(
        2,
        1.0,
        "s/a.xlsx",
        "s/a.xlsx#2",
        2,
        "支払",
        "c2",
        "期限 | 月末",
        "a",
        Citation("s/a.xlsx", 2, "支払", None, None, "xlsx", "c2"),
    )
    row = {**rows[0], "document_id": "s/a.xlsx", "folder": "s", "format": "xlsx", "status": "parsed", "title": "a"}
    found = overview(Scope("s", (row,)), "ja", corpus.stored, lambda *_: [named, other])
    assert "a.xlsx: シート・ページ: 受付、支払" in [each.text for each in found.sentences]


MESSAGES, TABLES = "メッセージ設計書_B1_顧客管理システム.xlsx", "テーブル定義書_B1_顧客管理システム.xlsx"
FUNCTION = "システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"
LAND, ITEMS = "439_コアデータモデル解説書_土地.docx", "住登外者宛名番号管理_項目定義書.xlsx"
PESTICIDES, WORDS = "pesticides_industry_sales_1994-95.pdf", "word_tables.docx"
RECEIPT, RELEASE = "RECEIPT-2024-TXN-98765_retail_purchase.pdf", "nablarch-1.4.9-releasenote.xlsx"
OF_ONE_DOCUMENT = [
    ("メッセージ設計書の概要を教えて", MESSAGES),
    ("「メッセージ設計書_B1_顧客管理システム」の要点をまとめてください", MESSAGES),
    ("メッセージ設計書は何の資料？", MESSAGES),
    ("テーブル定義書は何について書かれた文書ですか", TABLES),
    ("テーブル定義書_B1_顧客管理システムの要約", TABLES),
    ("テーブル定義書って何が書いてあるの", TABLES),
    ("テーブル定義書はどんな内容ですか", TABLES),
    ("コアデータモデル解説書ってどんな資料？", LAND),
    ("439_コアデータモデル解説書_土地.docx を要約して", LAND),
    ("コアデータモデル解説書を3行で要約してください", LAND),
    ("住登外者宛名番号管理の項目定義書には何が書かれていますか", ITEMS),
    ("項目定義書の内容をざっくり教えてください", ITEMS),
    ("項目定義書は何に関する文書でしょうか", ITEMS),
    ("システム機能設計書の概要", FUNCTION),
    ("顧客登録のシステム機能設計書を要約して", FUNCTION),
    ("顧客登録という資料の概要は？", FUNCTION),
    ("nablarch-1.4.9-releasenote.xlsxの中身を簡単に教えて", RELEASE),
    ("word_tablesというファイルの概要は？", WORDS),
    ("Summarize the pesticides industry sales report", PESTICIDES),
    ("What is pesticides_industry_sales_1994-95.pdf about?", PESTICIDES),
    ("tell me what the pesticides report is about", PESTICIDES),
    ("What does pesticides_industry_sales_1994-95 cover?", PESTICIDES),
    ("Give me a short summary of the Nablarch 1.4.9 release note", RELEASE),
    ("What does the receipt say?", RECEIPT),
    ("Summarize RECEIPT-2024-TXN-98765_retail_purchase", RECEIPT),
    ("What's the retail purchase receipt about?", RECEIPT),
    ("Overview of word_tables.docx", WORDS),
    ("Can you summarize word_tables.docx for me in two sentences?", WORDS),
    ("What is the document word_tables about?", WORDS),
    ("Please give me an outline of the file word_tables", WORDS),
    ("word_tables.docx summary", WORDS),
]
OF_A_TERM = """
顧客登録の概要を教えて
「顧客登録」の概要を教えて
機能B10103の概要は何ですか
顧客登録の処理の概要を教えてください
メッセージ設計書の概要欄には何を書きますか
テーブル定義書の「概要」列の値は？
B10103の概要
農薬の売上の概要は
この資料の概要は
土地の概要
汎用データフォーマットの不具合の概要を教えてください
顧客IDの内容
メッセージIDは何について付けますか
テーブル定義書には何を書きますか
テーブル定義書に何を書いたらいいですか
メッセージ設計書には何を書いておけばいいですか
システム機能設計書の処理概要を教えて
変更履歴の内容を教えて
項目定義書の改定内容は
コアデータモデル方針の概要を教えて
メッセージ設計書の目的は何ですか
メッセージ設計書の3番目のメッセージの内容
顧客管理システムの概要
設計書の概要
受付番号のレポートの概要を教えて
What is this error about?
What is the customer registration about?
Give me an overview of conventional pesticides
Summarize the difference between imports and exports
What is in the column summary?
What does error E0004 say?
Summarize U.S. production
What is the XXE vulnerability about?
Overview of the sales in 1994
What does the table of imports contain?
What does the message U0010005 say?
Summarize the purchase
What is the total about?
Summarize the annual report
What does the manual say about refunds?
What is the purpose of the receipt?
What is the design guide about?
""".strip().splitlines()


@pytest.mark.parametrize(("question", "document"), OF_ONE_DOCUMENT)
def test_one_document_is_meant_by_its_name(corpus: Corpus, question: str, document: str) -> None:
    named = named_document(question, corpus.stored, None)
    assert named is not None
    assert Path(str(named.row["document_id"])).name == document


@pytest.mark.parametrize("question", OF_A_TERM)
def test_what_is_asked_of_a_term_or_a_row_means_no_document(corpus: Corpus, question: str) -> None:
    assert named_document(question, corpus.stored, None) is None


def test_filters_hold_for_the_document_named(corpus: Corpus) -> None:
    assert named_document("word_tables.docxの概要", corpus.stored, ["sample/other.docx"]) is None


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            "コアデータモデル解説書の概要を教えて",
            [
                "文書の概要:",
                f"- {LAND}（docx、3 ページ）。文書の種類（推定）: データ定義書",
                "「土地の情報を記述するためのデータモデルです。」",
                "- 見出し・シート: コアデータモデル解説書 土地、1 土地のデータモデル、2 関連データ定義",
            ],
        ),
        ("テーブル定義書は何について書かれた文書ですか", ["文書の概要:", f"- {TABLES}（xlsx、"]),
        (
            "Summarize the pesticides industry sales report",
            ["Overview of the document:", f"- {PESTICIDES} (pdf, 2 pages)", "Headings or sheets: "],
        ),
    ],
)
def test_one_document_is_told_of_by_its_stored_summary(
    sample: KnowledgeBase, corpus: Corpus, question: str, said: list[str]
) -> None:
    answer = sample.ask(question)
    holds(answer)
    assert answer.answered
    assert len(answer.text) <= MOST_CHARS
    places = [answer.text.find(each) for each in said]
    assert -1 not in places, answer.text
    assert places == sorted(places)
    (document,) = {source.document_id for source in answer.sources}
    (summary,) = corpus.stored.read(FILE_SUMMARIES, ["document_id", "text"], [document])["text"].to_pylist()
    quoted = [citation.quote for each in answer.sentences[1:] for citation in each.citations]
    assert any(stands_in(each, summary) for each in quoted)
    assert sample.ask(question).text == answer.text


def lake_of(folder: Path, rows: Mapping[Table, list[dict[str, object]]]) -> StoredTables:
    """Tables with rows of documents."""
    lake = Lake(folder)
    for table, held in rows.items():
        write(lake, table, [record(table, shard=shard_of(str(row["document_id"])), **row) for row in held])
    return StoredTables(lake, {table.name: lake.latest(table) for table in rows})


def passage(document: str, text: str, page: int = 1) -> Hit:
    """A passage of a document."""
    place = Citation(document, page, None, None, None, "md", f"{page}")
    return Hit(page, 1.0, document, f"{document}#{page}", page, None, f"{document}#{page}.0", text, "a", place)


def test_what_a_model_wrote_is_said_where_a_passage_holds_it(tmp_path: Path) -> None:
    row = {
        "document_id": "s/[memo](x).md",
        "folder": "s",
        "format": "md",
        "status": "parsed",
        "title": "memo",
        "page_count": 1,
    }
    text = "A memo on prices. Apples cost 100 yen from May. The moon is made of green cheese and silver."
    summary = {"document_id": row["document_id"], "method": "some-model", "text": text}
    page = {"document_id": row["document_id"], "page_number": 1, "page_id": "1"}
    stored = lake_of(tmp_path, {DOCUMENTS: [row], FILE_SUMMARIES: [summary], PAGES: [page]})
    hit = passage(str(row["document_id"]), "# Memo on prices\n\nFrom May apples cost 100 yen. Pears cost more.")
    found = document_overview(row, "en", stored, lambda *_: [hit])
    assert [each.text for each in found.sentences] == [
        "［memo］(x).md (md) “Memo on prices”",
        "A memo on prices.",
        "Apples cost 100 yen from May.",
    ]
    assert "From May apples cost 100 yen." in found.sentences[2].citations[0].quote
    assert all(each.supported for each in found.sentences)


def test_a_document_that_could_not_be_read_has_no_overview(tmp_path: Path) -> None:
    row: dict[str, object] = {
        "document_id": "s/a_b.pdf",
        "folder": "s",
        "format": "pdf",
        "status": "failed",
        "title": "a_b",
    }
    failure = {"document_id": row["document_id"], "failure_index": 0, "cause": "encrypted"}
    stored = lake_of(tmp_path, {DOCUMENTS: [row], PARSE_FAILURES: [failure]})
    named = named_document("a_b.pdfの概要を教えて", stored, None)
    assert named is not None
    found = {each: document_overview(named.row, each, stored, lambda *_: []) for each in ("ja", "en")}
    assert found["ja"].opening == "「a_b.pdf」は読み取れませんでした（暗号化・パスワード付き）。"
    assert found["en"].opening == "“a_b.pdf” could not be read (encrypted)."


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Summarize the Acme earnings call", "s/fy24q4.txt"),
        ("Summarize the FY24 Q3 transcript", "s/TranscriptFY24Q3.txt"),
        ("TranscriptFY24Q3の概要", "s/TranscriptFY24Q3.txt"),
        ("月次売上の報告書の要約", "s/月次売上.xlsx"),
        ("月次売上の概要", None),
        ("Summarize the transcript of Q3", "s/TranscriptFY24Q3.txt"),
        ("What is the pricing guide about?", None),
        ("reports/plan.mdの概要", "s/reports/plan.md"),
        ("plan.mdの概要", None),
        ("Summarize the plan", None),
        ("What is the plan about?", None),
    ],
)
def test_a_document_is_named_by_its_file_its_words_or_its_first_line(
    tmp_path: Path, question: str, named: str | None
) -> None:
    beginnings = {
        "s/fy24q4.txt": "Acme FY24 Fourth Quarter Earnings Conference Call\nGood afternoon.",
        "s/TranscriptFY24Q3.txt": "ACME, third quarter\nGood afternoon.",
        "s/月次売上.xlsx": "月 | 売上 | 報告",
        "s/pricing_guide_a.md": "Pricing guide, part A",
        "s/pricing_guide_b.md": "Pricing guide, part B",
        "s/reports/plan.md": "The plan says everything.",
        "s/notes/plan.md": "Another.",
    }
    documents: list[dict[str, object]] = [
        {"document_id": each, "folder": str(Path(each).parent), "status": "parsed", "title": Path(each).stem}
        for each in beginnings
    ]
    chunks: list[dict[str, object]] = [
        {"document_id": each, "page_number": 1, "chunk_id": f"{each}#1.0", "text": text}
        for each, text in beginnings.items()
    ]
    found = named_document(question, lake_of(tmp_path, {DOCUMENTS: documents, CHUNKS: chunks}), None)
    assert (found.row["document_id"] if found is not None else None) == named
