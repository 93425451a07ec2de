"""Indexing with a language model by the command line: a real llama.cpp server, and a scripted one for faults."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from llama import LlamaServer
from scripted import Reply, ScriptedServer

from rag_assets.cli import main
from rag_assets.home import Home
from rag_assets.settings import load_settings

KEY = "sk-secret-0123456789abcdef"
SENTENCES = (
    "The customer service registers customers and returns their numbers.",
    "An order is refused when the customer is blocked, and the clerk is told why.",
    "Reports are printed every night and sent to the accounting department.",
    "Access is granted by the administrator for ninety days.",
)


def document(title: str) -> str:
    return f"# {title}\n\n" + "\n\n".join(f"{title}: {sentence}" for sentence in SENTENCES)


@pytest.fixture
def folder(tmp_path: Path, models_folder: Path) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").mkdir()
    for each in models_folder.iterdir():
        (tmp_path / "home" / "models" / each.name).symlink_to(each)
    for name in ("orders", "access"):
        (tmp_path / "specs" / f"{name}.md").write_text(document(name.title()), "utf-8")
    return tmp_path


def settings(url: str, model: str, **more: str) -> dict[str, str]:
    return {
        "RAG_LANGUAGE_MODEL__PROVIDER": "openai",
        "RAG_LANGUAGE_MODEL__BASE_URL": url,
        "RAG_LANGUAGE_MODEL__MODEL": model,
        "OPENAI_API_KEY": KEY,
        **more,
    }


def call(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    command = ["--home", str(folder / "home"), *arguments]
    result = CliRunner().invoke(main, command, env=environment)
    return result.exit_code, result.output


def index(folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    return call(folder, environment, "index", f"specs={folder / 'specs'}")


def rows(folder: Path, query: str) -> list[dict[str, Any]]:
    code, output = call(folder, {}, "sql", query, "--json")
    assert code == 0, output
    return [json.loads(line) for line in output.splitlines()]


def completion(text: str) -> Reply:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return Reply(json=body)


PAGE = completion(json.dumps({"file": "A specification", "page": "What it says"}))
FILE = completion(json.dumps({"summary": "A whole specification"}))
ANSWERS = (PAGE, PAGE, FILE, FILE)  # of two documents
LOOSE = completion("no JSON")


def test_a_real_model_summarizes_and_the_ledger_is_complete(folder: Path, small_llama_server: LlamaServer) -> None:
    environment = settings(small_llama_server.openai_url, small_llama_server.model)
    code, output = call(folder, environment, "plan", "--json")
    assert code == 0, output
    code, output = index(folder, environment)
    assert code == 0, output
    assert "spent" in output
    calls = rows(folder, "SELECT * FROM model_calls")
    written = rows(folder, "SELECT * FROM page_summaries") + rows(folder, "SELECT * FROM file_summaries")
    assert len(written) == 4
    assert {row["asset"] for row in calls} == {"page_summaries", "file_summaries"}
    assert all(row["input_tokens"] > 0 and row["output_tokens"] > 0 and row["seconds"] > 0 for row in calls)
    assert all(row["run_id"] and row["document_id"] and not row["cache_hit"] for row in calls)
    name = Home(load_settings(home=folder / "home", language_model=_chosen(small_llama_server))).language_model_name
    assert {row["method"] for row in written} <= {name, "extractive"}
    code, output = index(folder, environment)
    assert code == 0
    assert len(rows(folder, "SELECT * FROM model_calls")) == len(calls)


def _chosen(server: LlamaServer) -> dict[str, str]:
    return {"provider": "openai", "base_url": server.openai_url, "model": server.model}


def test_what_was_planned_is_what_is_called(folder: Path) -> None:
    with ScriptedServer() as server:
        server.replies("/v1/chat/completions", *ANSWERS, PAGE, FILE)
        environment = settings(f"{server.url}/v1", "m")
        code, output = call(folder, environment, "index", f"specs={folder / 'specs'}")
        assert code == 0, output
        (folder / "specs" / "third.md").write_text(document("Third"), "utf-8")
        code, output = call(folder, environment, "plan", "--json")
        made = json.loads(output)
        assert made["documents"] == 1
        calls = {step["step"]: step["calls"] for step in made["steps"]}
        assert calls == {"summarize_page": 1, "summarize_file": 1}
        assert sum(step["output_tokens"] for step in made["steps"]) == 120  # as the ledger says of these steps
        before = len(server.received)
        code, output = index(folder, environment)
        assert code == 0, output
        assert "planned" in output
        asked = [each for each in server.received[before:] if each.path == "/v1/chat/completions"]
        assert len(asked) == 2


def test_an_answer_that_breaks_its_schema_leaves_it_to_the_algorithm_and_is_named(folder: Path) -> None:
    with ScriptedServer() as server:
        server.replies("/v1/chat/completions", LOOSE)
        code, output = index(folder, settings(f"{server.url}/v1", "m"))
    assert code == 0, output
    assert {row["method"] for row in rows(folder, "SELECT method FROM page_summaries")} == {"extractive"}


def test_no_access_ends_the_run_and_the_next_goes_on(folder: Path) -> None:
    with ScriptedServer() as server:
        server.replies("/v1/chat/completions", Reply(401, json={"error": {"message": f"bad key {KEY}"}}))
        environment = settings(f"{server.url}/v1", "m")
        code, output = index(folder, environment)
        assert code == 1
        assert "401" in output
        server._replies["/v1/chat/completions"].clear()
        server.replies("/v1/chat/completions", *ANSWERS)
        code, output = index(folder, environment)
        assert code == 0, output
    assert len(rows(folder, "SELECT * FROM page_summaries WHERE method <> 'extractive'")) == 2
    for path in (folder / "home").rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert KEY.encode() not in path.read_bytes(), path


def test_a_budget_ends_the_run_before_it_is_exceeded(folder: Path) -> None:
    catalogue = folder / "prices.toml"
    catalogue.write_text(
        '[[model]]\nprovider = "openai"\nmodel = "*"\ncontext_tokens = 8192\noutput_tokens = 4096\n'
        "input_usd = 1000\noutput_usd = 1000\n",
        "utf-8",
    )
    with ScriptedServer() as server:
        server.replies("/v1/chat/completions", *ANSWERS)
        more = {"RAG_LANGUAGE_MODEL__CATALOGUE": str(catalogue), "RAG_LANGUAGE_MODEL__CONCURRENCY": "1"}
        environment = settings(f"{server.url}/v1", "m", **more)
        code, output = index(folder, {**environment, "RAG_BUDGET_USD": "3.0"})
        assert code == 1
        assert "budget" in output.lower()
        spent = sum(1 for each in server.received if each.path == "/v1/chat/completions")
        assert spent * 0.96 <= 3.0
        code, output = index(folder, {**environment, "RAG_BUDGET_USD": "100"})
        assert code == 0, output
        asked = [json.dumps(each.json["messages"]) for each in server.received if "completions" in each.path]
    assert len(asked) == len(set(asked)) == 4
    paid = rows(folder, "SELECT sum(cost_usd) AS usd, count(*) AS n FROM model_calls WHERE NOT cache_hit")
    assert paid == [{"usd": pytest.approx(4 * 0.96), "n": 4}]
    by_document = rows(folder, "SELECT * FROM cost_by_document")
    assert len(by_document) == 4
    assert rows(folder, "SELECT * FROM model_costs")
