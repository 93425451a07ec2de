"""What the sources compare, on the sample: without a model, with a server of the tests' own, and with a small model."""

import json
import re
import shutil
from collections import Counter
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from judging_server import CATALOGUE, JudgingServer, completion
from llama import LlamaServer
from test_runs import BOOK, QUESTIONS, RECEIPT

from rag_assets.cli import main
from rag_assets.cli.evaluating import RECIPES as OFFERED
from rag_assets.evaluation.evidence import Corpus, Level
from rag_assets.evaluation.questions import Evidence, Question, question_line
from rag_assets.evaluation.recipes import RECIPES, recipe_tables, run_recipe
from rag_assets.evaluation.runs import RunOptions, System, evaluate
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings

ASKED = (
    QUESTIONS[0],
    QUESTIONS[2],
    Question("gist", "What are these documents about?", "en", "global", True, (Evidence(RECEIPT),), (("receipt",),)),
)
RUN_WITHOUT_MODEL = {
    "two-step": 8,
    "pr3": 3,
    "hyde": 1,
    "rewriting": 6,
    "graphrag": 0,
}


@pytest.fixture(scope="module")
def questions_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("set") / "questions.jsonl"
    path.write_text("".join(f"{question_line(each)}\n" for each in ASKED), encoding="utf-8")
    return path


def run(home: Path, *arguments: object, **env: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "evaluate", *map(str, arguments)], env=env)


def test_all_recipes_are_offered() -> None:
    assert tuple(RECIPES) == OFFERED
    assert set(RUN_WITHOUT_MODEL) == set(OFFERED)


@pytest.mark.parametrize("name", OFFERED)
def test_without_a_model_what_can_run_runs_and_the_rest_is_named(
    sample_home: Path, questions_file: Path, tmp_path: Path, name: str
) -> None:
    result = run(sample_home, questions_file, "--recipe", name, "--json", "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    conditions = record["recipe"]["conditions"]
    done = [each for each in conditions if each["not_run"] is None]
    assert len(done) == RUN_WITHOUT_MODEL[name]
    assert all(each["figures"] for each in done)
    reasons = Counter(each["not_run"] for each in conditions if each["not_run"])
    assert all(any(word in reason for word in ("set ", "give one", "the graph has no level")) for reason in reasons)
    assert any("not comparable with yours" in line for line in record["warnings"])
    assert all(any(each["name"] in line for line in record["warnings"]) for each in conditions if each["not_run"])
    assert (tmp_path / "page.html").exists() == bool(done)
    if done:
        page = (tmp_path / "page.html").read_text("utf-8")
        assert "not comparable with yours" in page
        assert all(each["name"].replace("&", "&amp;") in page for each in conditions)


def test_the_table_holds_our_figures_beside_the_published_ones(sample_home: Path, corpus: Corpus) -> None:
    base = knowledge_base(Home(load_settings(home=sample_home)))
    done = run_recipe("two-step", base, corpus=corpus, questions=ASKED)
    table = recipe_tables(done)[0]
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert table.columns[:6] == (
        *("condition", "mode", "passage HitRate@4", "published", "passage MRR@4", "published"),
    )
    cells = {row[0]: row for row in table.rows}
    assert (cells["raw text"][3], cells["raw text"][5]) == ("50.0 %", "20.8 %")
    assert (cells["page summary, then raw text"][3], cells["page summary, then raw text"][5]) == ("60.0 %", "27.5 %")
    assert rows["page summary"]["passage HitRate@4"] == ""  # a summary is no passage
    assert rows["page summary"]["page HitRate@4"]
    assert rows["file summary"]["page HitRate@4"] == ""
    assert rows["raw text"]["HitRate@4 against raw text"] == ""
    same = [System("vector", base, corpus, "vector"), System("two", base, corpus, "two_step", "file")]
    direct = evaluate(same, ASKED, RunOptions(("HitRate@4", "MRR@4"), tuple(Level), k=4))
    assert done.evaluation is not None
    for ours, theirs in (("raw text", "vector"), ("file summary and raw text by words too", "two")):
        for level in Level:
            mine = done.evaluation.values(ours, level, "MRR@4")[:2]
            assert mine == direct.values(theirs, level, "MRR@4")[:2]


def test_what_does_not_go_together_is_said(sample_home: Path, questions_file: Path) -> None:
    for options in (("--recipe", "hyde", "--mode", "vector"), ("--recipe", "pr3", "--trec", "x"), ("--plan",)):
        result = run(sample_home, questions_file, *options)
        assert result.exit_code == 2
        assert "--recipe" in result.stderr


def test_a_plan_without_a_language_model_says_what_cannot_be_run(sample_home: Path, questions_file: Path) -> None:
    result = run(sample_home, questions_file, "--recipe", "pr3", "--plan")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "no calls of language models: none is set" in result.stderr
    assert "not run: (b)" in result.stderr


def answer(asked: str, body: dict[str, Any]) -> Any:
    """What each step is told, by what its schema wants."""
    del asked
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    wanted = set(schema.get("properties", ()))
    sentence = {"citations": [{"number": 1, "quote": "Returns"}], "text": "The receipt allows returns within 30 days."}
    values: dict[str, Any] = {
        "queries": ["返品の条件", "HTTP 409"],
        "groups": [1],
        "keywords": "return policy 409",
        "sentences": [sentence] if "answered" in wanted or "helpfulness" in wanted else "What is the return policy?",
        "answered": True,
        "helpfulness": 60,
        "plan": "look it up",
        "answer": "They are receipts [Data: Reports (1)].",
    }
    if wanted and not wanted <= set(values):  # a judge
        grade = {"justification": "it says so", "grade": 70}
        judged: dict[str, Any] = {"reason": "it says so", "winner": 1, "claims": ["Returns within 30 days."]}
        return {name: judged.get(name, grade) for name in wanted}
    return {name: values[name] for name in wanted} if wanted else completion(f"Returns within {body.get('seed')} days.")


@pytest.fixture(scope="module")
def graph_home(sample_home: Path, models_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two documents of the sample with their entity graph."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "models").symlink_to(models_folder)
    source = folder / "files"
    for name in (RECEIPT, BOOK):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).parents[2] / "docs" / "sample" / name, source / name)
    arguments = ["--home", str(folder), "index", f"sample={source}"]
    result = CliRunner().invoke(main, arguments, env={"RAG_GRAPH__ENABLED": "true"})
    assert result.exit_code == 0, result.output
    return folder


def served(url: str, folder: Path, model: str = "judge") -> dict[str, str]:
    (folder / "models.toml").write_text(CATALOGUE)
    return {
        "RAG_LANGUAGE_MODEL__PROVIDER": "openai",
        "RAG_LANGUAGE_MODEL__MODEL": model,
        "RAG_LANGUAGE_MODEL__BASE_URL": url,
        "RAG_LANGUAGE_MODEL__CATALOGUE": str(folder / "models.toml"),
        "RAG_LANGUAGE_MODEL__ATTEMPTS": "1",
    }


@pytest.mark.parametrize("name", OFFERED)
def test_with_a_model_all_runs_and_what_is_asked_is_said_before(
    graph_home: Path, questions_file: Path, tmp_path: Path, name: str
) -> None:
    with JudgingServer(answer) as server:
        env = served(f"{server.url}/v1", tmp_path)
        planned = run(graph_home, questions_file, "--recipe", name, "--plan", **env)
        assert planned.exit_code == 0, planned.output
        assert server.asked == []  # nothing is asked yet
        arguments = (questions_file, "--recipe", name, "--no-judge", "--json")
        result = run(graph_home, *arguments, **env)
        assert result.exit_code == 0, result.output
        calls = len(server.asked)
        if name == "hyde":
            assert run(graph_home, *arguments, **env).exit_code == 0
            assert len(server.asked) == calls  # no answer is paid twice
    record = json.loads(result.stdout)
    left = {each["name"]: each["not_run"] for each in record["recipe"]["conditions"] if each["not_run"]}
    assert set(left) <= {"hybrid, trained rewriter", "C1", "C2", "C3"}
    assert all("the graph has no level" in reason for key, reason in left.items() if key.startswith("C"))
    assert not any("gave no answer" in line or "failed" in line for line in record["warnings"])
    if name == "two-step":
        assert calls == 0
        assert "no calls of language models" in planned.stderr
    else:
        about = re.search(r"about ([\d,]+) calls", planned.stderr)
        assert about, planned.stderr
        assert abs(int(about[1].replace(",", "")) - calls) <= max(2, 0.3 * calls)


@pytest.mark.parametrize(("name", "judges"), [("pr3", ["grading"]), ("graphrag", ["preference", "claims"])])
def test_the_judges_of_the_source_are_asked_and_stand_beside_its_figures(
    graph_home: Path, questions_file: Path, tmp_path: Path, name: str, judges: list[str]
) -> None:
    with JudgingServer(answer) as server:
        env = served(f"{server.url}/v1", tmp_path)
        result = run(graph_home, questions_file, "--recipe", name, "--repetitions", 1, "--json", **env)
        assert result.exit_code == 0, result.output
        assert "calls to make" in result.stderr
        printed = run(graph_home, questions_file, "--recipe", name, "--repetitions", 1, **env)
    conditions = {each["name"]: each for each in json.loads(result.stdout)["recipe"]["conditions"]}
    first = conditions["(d) questions, meta knowledge" if name == "pr3" else "C0"]
    judged = {key.partition(" ")[0] for key in first["figures"]}
    assert set(judges) <= judged
    if name == "pr3":
        assert first["figures"]["grading breadth"]["mean"] == 70
        assert first["against"]["difference"]["mean"] == 0
    else:
        assert first["figures"]["preference directness"]["mean"] == 50  # whatever is shown first wins
        assert first["figures"]["claims claims"]["mean"] == 1
        assert "72 / 72" in printed.stdout
        assert "of TS" in printed.stdout
    assert "to be believed?" in printed.stdout


def test_generators_at_servers_of_their_own_imagine_and_are_fused(
    sample_home: Path, questions_file: Path, tmp_path: Path
) -> None:
    keys: list[str | None] = []

    class Server(JudgingServer):
        def _answer(self, handler: BaseHTTPRequestHandler) -> None:
            keys.append(handler.headers.get("authorization"))
            super()._answer(handler)

    with Server(answer) as first, Server(answer) as second:
        models = json.dumps([f"a@{first.url}/v1", f"b@{second.url}/v1"])
        env = served("http://127.0.0.1:9/v1", tmp_path) | {
            "RAG_SEARCH__HYDE_MODELS": models,
            "RAG_LANGUAGE_MODEL__API_KEY": "secret",
        }
        shutil.copytree(sample_home, tmp_path / "home", symlinks=True)
        result = run(tmp_path / "home", questions_file, "--recipe", "hyde", "--json", **env)
        assert result.exit_code == 0, result.output
        assert len(first.asked) == len(second.asked) == 2  # once a question, however many fusions
        assert {json.loads(each)["model"] for each in first.bodies} == {"a"}
        assert set(keys) == {"Bearer none"}
    names = [each["name"] for each in json.loads(result.stdout)["recipe"]["conditions"]]
    assert [name.partition("@")[0] for name in names[1:3]] == ["one: openai:a", "one: openai:b"]
    assert [name for name in names if name.startswith("2 by ")][-1] == "2 by RRF k=60"


@pytest.mark.slow
@pytest.mark.parametrize("name", OFFERED)
def test_with_a_small_model_each_recipe_ends_in_minutes(
    graph_home: Path, tmp_path: Path, llama_server: LlamaServer, name: str
) -> None:
    path = tmp_path / "question.jsonl"  # one: the model writes 27 tokens a second
    path.write_text(question_line(ASKED[2 if name == "graphrag" else 0]), encoding="utf-8")
    env = served(llama_server.openai_url, tmp_path, llama_server.model) | {
        "RAG_LANGUAGE_MODEL__TIMEOUT_SECONDS": "600",
        "RAG_LANGUAGE_MODEL__TEMPERATURE": "0",
        "RAG_SEARCH__ANSWER_CONTEXT_TOKENS": "800",
        "RAG_SEARCH__ANSWER_TOKENS": "200",
        "RAG_SEARCH__GLOBAL_CONTEXT_TOKENS": "1500",
        "RAG_SEARCH__GLOBAL_ANSWER_TOKENS": "200",
        "RAG_SEARCH__MAP_REDUCE_CHUNKS": "4",
    }
    result = run(graph_home, path, "--recipe", name, "--no-judge", "--json", **env)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    done = [each for each in record["recipe"]["conditions"] if each["not_run"] is None]
    assert len(done) > RUN_WITHOUT_MODEL[name] or name == "two-step"
    assert all(each["figures"] for each in done)
