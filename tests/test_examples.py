"""The examples of the documentation run."""

import re
import runpy
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted_model import ScriptedModel

import rag_assets
from rag_assets.cli import main
from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.questions import Question, question_line
from rag_assets.pipeline import language_models
from rag_assets.pipeline.home import Home
from rag_assets.query import Generator, HydeOptions, KnowledgeBase, Rewrite, Turn

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "docs" / "examples"
SCORE = re.compile(
    r"\((\d\.\d{3})\)"
)  # which differs a little from processor to processor, as the model's arithmetic does
ESCAPED_SCORE = re.compile(r"\\\(\d\\\.\d{3}\\\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "README.ja.md", "docs/query.md"])
def test_commands_print_what_the_page_shows(
    page: str, sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [text for _, text in BLOCK.findall((PROJECT / page).read_text("utf-8"))]
    commands = [each.partition("\n") for text in blocks for each in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
    assert commands
    for command, _, shown in commands:
        arguments = shlex.split(command)
        if arguments[0] == "echo":
            (tmp_path / arguments[-1]).write_text(arguments[1], "utf-8")
            continue
        printed = CliRunner().invoke(main, ["--home", str(sample_home), *arguments[1:]]).output
        parts = map(re.escape, shown.strip().split("…"))  # where it is shortened
        form = ESCAPED_SCORE.sub(lambda _: r"\((\d\.\d{3})\)", "(?s:.*)".join(parts))
        match = re.search(form, printed)
        assert match, f"$ {command}\n{printed}"
        scores = [float(score) for score in SCORE.findall(shown)]
        assert [float(score) for score in match.groups()] == pytest.approx(scores, abs=0.05), printed


def test_the_python_of_the_query_guide_runs(sample_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PROJECT / "docs" / "query.md").read_text("utf-8")
    first, *_ = [code for language, code in BLOCK.findall(text) if language == "python"]
    stream = next(code for _, code in BLOCK.findall(text) if "ask_stream" in code)
    exec(compile(first.replace(".rag/demo", str(sample_home)) + stream, "query.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "桁数: 2" in printed
    assert "必須: ○" in printed
    assert "› 1 顧客 › A5:BI13" in printed.splitlines()[-1]


@pytest.mark.parametrize("page", ["README.md", "README.ja.md", "docs/query.md", "docs/evaluation.md"])
def test_all_python_of_a_page_runs(
    page: str, sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".rag").symlink_to(sample_home)
    line = question_line(Question("digits", "業種コードの桁数は？", "ja", "number", answerable=False))
    (tmp_path / "questions.jsonl").write_text(f"{line}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    for name, value in (("PROVIDER", "openai"), ("MODEL", "judge"), ("BASE_URL", "http://127.0.0.1:9/v1")):
        monkeypatch.setenv(f"RAG_EVALUATION__JUDGE__{name}", value)
    judge = ScriptedModel(lambda _: {"reason": "It answers.", "winner": 1})
    monkeypatch.setattr(language_models, "language_model", lambda *_, **__: judge)
    code = "\n".join(
        text for language, text in BLOCK.findall((PROJECT / page).read_text("utf-8")) if language == "python"
    )
    assert code
    exec(compile(code.replace(".rag/demo", ".rag"), page, "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > 1
    if page == "docs/evaluation.md":
        assert any(each.startswith("hybrid answer ") for each in printed)


def test_the_sample_is_searched_asked_and_read(
    sample_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["search_and_ask.py", str(sample_home)])
    runpy.run_path(str(EXAMPLES / "search_and_ask.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert (
        "1. sample/設計書/システム機能設計書(Webサービス)_B10103_顧客登録.xlsx › 2. B10103（顧客登録） › C15:AH32"
        in printed
    )
    assert "Returns within 30 days" in printed
    assert "[1] sample/reports/RECEIPT-2024-TXN-98765_retail_purchase.pdf › p.1" in printed
    assert "C15  2.2. 処理結果一覧" in printed


def test_a_knowledge_base_is_opened_in_one_call(
    sample_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_HOME", str(sample_home))
    assert rag_assets.open_knowledge_base().search("顧客", "fulltext", 1).hits
    with pytest.raises(QueryError, match="nothing is indexed in"):
        rag_assets.open_knowledge_base(tmp_path)


def test_several_models_and_a_rewriter_are_given_when_it_is_opened(
    sample_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(home: Home, **_: object) -> ScriptedModel:
        made = ScriptedModel(lambda _: "返品の条件")
        made.name = home.settings.language_model.model
        return made

    class Fixed:
        name = "fixed"

        def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
            del question, history
            return Rewrite("RECEIPT", "")

    def imagined(base: KnowledgeBase) -> list[str]:
        (step,) = (each for each in base.search("返品", "hyde", 1).trace.steps if each.operation == "imagine")
        return [text.partition(":")[0] for text in step.texts]

    monkeypatch.setattr(language_models, "language_model", model)
    served = {"provider": "openai", "model": "large", "base_url": "http://127.0.0.1:9/v1"}
    named = {"hyde_models": ["a", "b"], "hyde_passages": 2}
    assert imagined(rag_assets.open_knowledge_base(sample_home, language_model=served)) == ["large seed 0"]
    several = rag_assets.open_knowledge_base(sample_home, language_model=served, search=named)
    assert imagined(several) == ["a seed 0", "a seed 1", "b seed 0", "b seed 1"]
    own = HydeOptions((Generator(ScriptedModel(lambda _: "返品")), Generator(ScriptedModel(lambda _: "条件"), 7)))
    given = rag_assets.open_version(sample_home, hyde=own, rewriter=Fixed()).base
    assert imagined(given) == ["scripted", "scripted"]
    steps = given.search("返品", "rewrite", 1).trace.steps
    assert "rewriter: fixed" in next(each.texts for each in steps if each.operation == "rewrite")
