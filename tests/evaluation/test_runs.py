"""Questions asked of the sample, from the command line and from Python: figures, comparison, files for other tools."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from click.testing import CliRunner, Result

from rag_assets.cli import main
from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.evidence import Corpus, Level, Target
from rag_assets.evaluation.judging import ANSWER_CHARS, holds_answer
from rag_assets.evaluation.metrics import measured
from rag_assets.evaluation.questions import Evidence, Question, question_line, read_qrels
from rag_assets.evaluation.report import headline_names, report_page
from rag_assets.evaluation.runs import Evaluation, QuestionResult, Reply, RunOptions, System, evaluate
from rag_assets.evaluation.scores import ALL, compared, figures, warnings
from rag_assets.evaluation.trec import write_evaluation
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base, readable_snapshot
from rag_assets.pipeline.settings import load_settings
from rag_assets.query import StoredTables

RECEIPT = "reports/RECEIPT-2024-TXN-98765_retail_purchase.pdf"
BOOK = "設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx"
QUESTIONS = (
    Question(
        *("returns", "What is the return policy?", "en", "rule", True),
        (Evidence(RECEIPT, "page 1", "Returns within 30 days"),),
        (("30 days", "thirty days"),),
    ),
    Question(
        *("cashier", "Who was the cashier?", "en", "who", True),
        (Evidence(RECEIPT, "page 1", "Cashier"),),
        (("nobody at all",),),
    ),
    Question(
        *("duplicate", "顧客登録で顧客名が重複したときのHTTPステータスコードは？", "ja", "rule", True),
        (Evidence(BOOK, "2. B10103（顧客登録）", "重複登録エラー：既に登録されている顧客と重複した場合。"),),
        (("409",),),
    ),
    Question("weather", "明日の大阪の天気予報は？", "ja", "unanswerable", answerable=False),
    Question("all", "What are these documents about?", "en", "global", True, (Evidence(RECEIPT),), (("receipt",),)),
    Question("lost", "What does the lost file say?", "en", "who", True, (Evidence("lost.pdf", "page 1", "x"),)),
    Question("draft", "How many points?", "en", "who", True, (Evidence(RECEIPT),), draft=True),
)


@pytest.fixture(scope="module")
def questions_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("set") / "questions.jsonl"
    path.write_text("".join(f"{question_line(each)}\n" for each in QUESTIONS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def evaluation(sample_home: Path) -> Evaluation:
    home = Home(load_settings(home=sample_home))
    snapshot = readable_snapshot(home)
    assert snapshot is not None
    corpus, base = Corpus(StoredTables(home.lake, snapshot.tables)), knowledge_base(home)
    systems = [System(mode, base, corpus, mode) for mode in ("fulltext", "vector")]
    return evaluate(systems, QUESTIONS[:-1], RunOptions(answers=True))


def run(home: Path, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "evaluate", *map(str, arguments)])


def test_values_are_those_of_the_rankings(evaluation: Evaluation) -> None:
    for system in evaluation.systems:
        for question in evaluation.questions:
            result = evaluation.results[system][question.id]
            assert set(result.found) == (set(Level) if question.searched else set())
            for level, places in result.found.items():
                ranking = [place.ids(level) for place in places]
                ways = evaluation.targets[system][question.id].ways[level]
                assert result.values[level]["nDCG@10"] == measured(["nDCG@10"], ranking, ways)["nDCG@10"]
    found = evaluation.results["fulltext"]["returns"]
    assert (found.values["document"]["Hit@1"], found.values["passage"]["R@5"]) == (1, 1)
    assert evaluation.results["fulltext"]["lost"].values["document"]["R@10"] == 0
    assert set(found.milliseconds) == {"document", "page", "passage", "answer"}


def test_answers_are_judged_by_what_they_hold_and_cite(evaluation: Evaluation) -> None:
    values = {key: result.values["answer"] for key, result in evaluation.results["fulltext"].items()}
    assert (values["returns"]["right"], values["returns"]["cited passage"], values["returns"]["wrong"]) == (1, 1, 0)
    assert (values["cashier"]["right"], values["cashier"]["correct"]) == (0, 0)
    assert values["cashier"]["wrong"] + values["cashier"]["refused"] == 1
    assert (values["weather"]["correct"], values["weather"]["invented"]) == (1, 0)
    assert math.isnan(values["weather"]["right"])
    assert math.isnan(values["all"]["cited page"])
    assert math.isnan(values["lost"]["correct"])  # nobody said what a right answer holds


def test_quoting_everything_is_no_answer() -> None:
    question = Question("q", "?", answer_contains=(("３０ Days",), ("alpha", "beta")))
    assert holds_answer("Beta, and 30\ndays", question)
    assert not holds_answer("30 days", question)
    assert not holds_answer("x" * ANSWER_CHARS + "30 days, beta", question)
    longer = Question("q", "?", type="list", answer_contains=question.answer_contains)
    assert holds_answer("x" * ANSWER_CHARS + "30 days, beta", longer)


@pytest.mark.parametrize(
    ("alternative", "text", "holds"),
    [
        ("3", "30 days", False),
        ("3", "13 days", False),
        ("3", "3.5 days", False),
        ("5", "3.5 days", False),
        ("3", "3,000 days", False),
        ("300", "1,300 days", False),
        ("3", "1, 2,3, 4", True),
        ("30", "10,30,50", True),
        ("3", "within 3.", True),
        ("3", "第3章", True),
        ("10桁", "顧客番号は10 桁です", True),
        ("10桁", "顧客番号は110桁です", False),
        ("no", "nothing", False),
        ("no", "No.", True),
        ("POST", "POSTする", True),
        ("AI", "gain", False),
        ("visa", "Visas are needed", True),
        ("south dakota", "in South\nDakota", True),
        ("12", "1 2 3", False),
        ("2023 2024", "2023、2024", False),
        ("2023 2024", "2023 2024", True),
        ("1300", "1,300円", True),
        ("1,300", "1300円", True),
        ("1 234 567", "1,234,567", True),
        ("1234.5", "1,234.5", True),
        ("234", "1,234,567", False),
        ("5", "-5 ℃", False),
        ("5", "\u22125 ℃", False),
        ("5", "▲5%", False),
        ("-5", "−5", True),
        ("5", "1-5", True),
        ("is", "iss", False),
        ("über", "darüber", False),
        ("ок", "срок", False),
        ("срок", "Срок: 3", True),
        ("3 分", "3分", True),
        ("1.5", "1. 5 days", False),
        ("2段階", "①2段階の承認", True),
        ("12段階", "①2段階の承認", False),
        ("2025年7月1日", "3.2025年7月1日に改定", True),
        ("2025年7月1日", "12025年7月1日", False),
    ],
)
def test_numbers_and_words_are_found_whole(alternative: str, text: str, *, holds: bool) -> None:
    assert holds_answer(text, Question("q", "?", answer_contains=((alternative,),))) is holds


def test_every_figure_has_an_interval_and_groups_make_up_the_whole(evaluation: Evaluation) -> None:
    computed = figures(evaluation)
    assert all(each.interval.low <= each.interval.mean <= each.interval.high for each in computed)
    named = {
        (each.level, each.measure, each.dimension, each.group): each for each in computed if each.system == "vector"
    }
    whole = named["passage", "R@5", ALL, ALL].interval
    assert whole.count == 4
    for dimension in ("type", "language", "format", "length"):
        parts = [each.interval for key, each in named.items() if key[:3] == ("passage", "R@5", dimension)]
        assert sum(each.count for each in parts) == whole.count
        assert sum(each.mean * each.count for each in parts) == pytest.approx(whole.mean * whole.count)
    assert ("answer", "invented", "language", "ja") in named
    assert named["passage", "R@5", "format", "none"].interval.mean == 0


def test_two_systems_compared(evaluation: Evaluation) -> None:
    comparison = compared(evaluation, "fulltext", "vector", ["passage MRR@10", "answer correct"])
    assert set(comparison.comparisons) == {"passage MRR@10", "answer correct"}
    first, second = (evaluation.values(each, "passage", "MRR@10") for each in evaluation.systems)
    changed = {each.question.id: each.first - each.second for each in comparison.changes["passage MRR@10"]}
    expected = {
        question.id: one - other
        for question, one, other in zip(evaluation.questions, first, second, strict=True)
        if abs(one - other) > 0
    }
    assert changed == expected


def test_the_page_escapes_what_documents_questions_and_models_say(evaluation: Evaluation) -> None:
    hostile = "<script>alert(1)</script>\u202e&amp;"
    first = replace(
        evaluation.questions[0], text=hostile, history=(hostile,), note=hostile, answer_contains=((hostile,),)
    )
    reply = Reply(hostile, True, (), None, hostile)
    results = {
        system: {**of_system, first.id: replace(of_system[first.id], reply=reply)}
        for system, of_system in evaluation.results.items()
    }
    passages = dict.fromkeys(evaluation.passages, hostile)
    changed = replace(evaluation, questions=(first, *evaluation.questions[1:]), results=results, passages=passages)
    names = headline_names(changed)
    page = "".join(
        report_page(
            hostile, changed, figures(changed), [compared(changed, "fulltext", "vector", names)], warnings(changed)
        )
    )
    assert "<script" not in page
    assert "\u202e" not in page
    assert page.count("&lt;script&gt;") >= 6
    root: Any = lxml.html.document_fromstring(page)
    assert len(root.findall(".//details[@id]")) == len(changed.questions)
    shown = {each.text_content() for each in root.iter("h3")}
    assert {"Passages, 4 questions", "Passage R@5 by length", "fulltext against vector"} <= shown
    rows = root.xpath("//details[@id='q-returns']//tr[.//summary[@class='good']]")
    assert rows
    assert rows[0].xpath("string(td[2])") == "1"  # the first result of `fulltext`
    assert "not indexed" in root.xpath("string(//details[@id='q-lost'])")


def test_what_a_reader_has_to_know_is_said(evaluation: Evaluation) -> None:
    lines = warnings(evaluation)
    assert any("1 of 4 questions: evidence is not indexed as a document" in line and "lost" in line for line in lines)
    assert any(line.startswith("the set is small: 4 questions") for line in lines)


@pytest.mark.parametrize(("lost", "needed"), [(0, "110"), (1, "314")])
def test_the_note_on_small_differences_says_what_the_comparison_says(lost: int, needed: str) -> None:
    questions = tuple(Question(f"q{number}", "?", evidence=(Evidence("a"),)) for number in range(10))
    values = {
        system: {question.id: float(number >= reached) for number, question in enumerate(questions)}
        for system, reached in (("auto", 1), ("fulltext", 1 + lost))
    }
    results = {
        system: {key: QuestionResult(values={Level.PASSAGE: {"R@5": value}}) for key, value in of_system.items()}
        for system, of_system in values.items()
    }
    targets = {
        system: {question.id: Target({}, dict.fromkeys(Level, ())) for question in questions} for system in values
    }
    of_two = Evaluation(questions, RunOptions(("R@5",), (Level.PASSAGE,)), targets, results, {})
    (line,) = warnings(of_two)
    visible = compared(of_two, "auto", "fulltext", ["passage R@5"]).comparisons["passage R@5"].visible
    assert f"10 questions show differences of {visible:.2f} or more in passage R@5; 0.05 needs about {needed}" in line
    assert visible == 0.55


def test_a_measure_that_is_none_is_refused_before_anything_is_opened(questions_file: Path, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="unknown measure 'foo@3'"):
        RunOptions(("foo@3",))
    refused = run(tmp_path / "none", questions_file, "--measure", "foo@3")
    assert (refused.exit_code, "unknown measure 'foo@3'" in refused.stderr) == (1, True)
    assert "asking questions" not in refused.stderr


def test_trec_eval_gives_the_same_figures_for_what_is_exported(evaluation: Evaluation, tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")
    write_evaluation(evaluation, tmp_path)
    with (tmp_path / "document.vector.qrels").open() as qrels, (tmp_path / "document.vector.run").open() as found:
        judged = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(qrels), {"recall.5", "ndcg_cut.10", "map_cut.10"}
        )
        theirs = judged.evaluate(pytrec_eval.parse_run(found))
    assert set(theirs) == {"returns", "cashier", "duplicate"}
    for question, measures in theirs.items():
        ours = evaluation.results["vector"][question].values["document"]
        same = (measures["recall_5"], measures["ndcg_cut_10"], measures["map_cut_10"])
        assert (ours["R@5"], ours["nDCG@10"], ours["MAP@10"]) == pytest.approx(same)


def test_the_command_prints_tables(sample_home: Path, questions_file: Path) -> None:
    result = run(sample_home, questions_file, "--compare", "two_step:file", "hybrid@1", "--by", "format", "--answers")
    assert result.exit_code == 0, result.output
    for words in ("Passages, 4 questions", "Answers, 6 questions", "Passage R@5 by format", "Answer correct by format"):
        assert words in result.stdout
    assert "two_step:file against hybrid@1" in result.stdout
    assert "R@k: share of the evidence" in result.stdout
    assert "note: 1 of 4 questions" in result.stdout


def test_the_command_prints_json_and_writes_files_for_other_tools(
    sample_home: Path, questions_file: Path, tmp_path: Path
) -> None:
    options = ("--mode", "fulltext", "--level", "passage", "--measure", "nDCG@3", "--drafts", "--json")
    result = run(sample_home, questions_file, *options, "--trec", tmp_path / "trec", "--beir", tmp_path / "beir")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert {each["measure"] for each in record["figures"]} >= {"nDCG@3", "R@5", "milliseconds passage"}
    assert all({"mean", "low", "high", "count"} <= each.keys() for each in record["figures"])
    of_draft = next(each for each in record["questions"] if each["id"] == "draft")
    assert of_draft["results"]["fulltext"]["values"]["passage"]["R@5"] == 1
    found = (tmp_path / "trec" / "passage.fulltext.run").read_text("utf-8").splitlines()
    assert len({line.split()[0] for line in found}) == 5
    assert all(len(line.split()) == 6 for line in found)
    judged = read_qrels(tmp_path / "trec" / "passage.fulltext.qrels")
    assert set(judged) == {"returns", "cashier", "duplicate", "draft"}
    queries = [json.loads(line) for line in (tmp_path / "beir" / "queries.jsonl").read_text("utf-8").splitlines()]
    corpus = [json.loads(line) for line in (tmp_path / "beir" / "corpus.jsonl").read_text("utf-8").splitlines()]
    wanted = read_qrels(tmp_path / "beir" / "qrels" / "test.tsv")
    assert set(wanted) == {each["_id"] for each in queries}
    assert {key for keys in wanted.values() for key in keys} <= {each["_id"] for each in corpus} | {f"sample/{RECEIPT}"}
    read_back = run(sample_home, tmp_path / "beir", *options)
    assert read_back.exit_code == 0, read_back.output
    before, after = (
        {each["id"]: each["results"]["fulltext"]["values"] for each in of["questions"]}
        for of in (record, json.loads(read_back.stdout))
    )
    assert after["draft"]["passage"] == before["draft"]["passage"]
    assert {key: each["passage"]["MRR@10"] for key, each in after.items()} == {
        key: before[key]["passage"]["MRR@10"] for key in after
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mode", "nearest"), "unknown mode 'nearest'"),
        (("--mode", "two_step:line"), "expected page or file after the colon"),
        (("--mode", "hybrid@x"), "expected the number of a version after @"),
        (("--measure", "recall@5"), "unknown measure 'recall@5'"),
        (("--mode", "hybrid@99"), "99"),
    ],
)
def test_what_cannot_be_measured_is_said(
    sample_home: Path, questions_file: Path, options: tuple[str, ...], message: str
) -> None:
    result = run(sample_home, questions_file, *options)
    assert result.exit_code == 1
    assert message in result.stderr
