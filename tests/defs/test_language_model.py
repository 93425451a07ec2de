"""Indexing with a language model by the command line: a real llama.cpp server, and a scripted one for faults."""

import hashlib
import json
import logging
import threading
import zlib
from collections import Counter
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from llama import LlamaServer
from scripted import Reply, ScriptedServer

from rag_assets.cli import main
from rag_assets.contracts.tables import MODEL_CALLS
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.job_runs import INDEX_JOB, shard_tags
from rag_assets.defs.resources import HomeResource
from rag_assets.models.accounts.schema import ANSWERS
from rag_assets.models.planning import made_up
from rag_assets.parsing.documents import update_chunks, update_documents
from rag_assets.pipeline.freshness import all_stand_ins, changes_to_index, force_documents
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import forget_unusable_answers, language_model
from rag_assets.pipeline.plan import make_plan
from rag_assets.pipeline.settings import load_settings
from rag_assets.pipeline.steps import FORCED, STEPS, StepWork, chunks_key, model_steps
from rag_assets.store.lake import SHARDS

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
KEY = "sk-secret-0123456789abcdef"
TAXONOMY = """
name = "small"
[[facets]]
name = "kind"
label.en = "Kind"
label.ja = "種類"
description.en = "What the document is."
description.ja = "文書の種類。"
required = true
most_values = 1
""" + "".join(
    f"""
[[facets.values]]
name = "{name}"
label.en = "{name}"
label.ja = "{name}"
description.en = "A {name}."
description.ja = "{name}。"
terms = ["{name}"]
"""
    for name in ("manual", "contract")
)
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
    for name in ("orders", "keys"):  # of neighbouring shards, so that runs are short
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


class ModelServer(ScriptedServer):
    """Answers every request for a chat completion with JSON of its schema, or as `instead` says.

    Attributes:
        instead: What is answered instead; None for the answer.
        instead_of: Conversations of which alone `instead` is the answer: those that hold this text.
        asked: The conversations that were answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.instead: Reply | None = None
        self.instead_of = ""
        self.asked: list[str] = []

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers.get("content-length") or 0)) or b"{}")
        if not handler.path.endswith("/chat/completions"):
            self._write(handler, Reply(404, json={"error": {"message": "no such route"}}))
        elif self.instead is not None and self.instead_of in json.dumps(body["messages"]):
            self._write(handler, self.instead)
        else:
            self.asked.append(json.dumps(body["messages"]))
            answer = self.answer(self.asked[-1], body["response_format"]["json_schema"]["schema"])
            self._write(handler, completion(json.dumps(answer, ensure_ascii=False)))

    def answer(self, asked: str, schema: dict[str, Any]) -> Any:
        """What is answered to a conversation."""
        del asked
        return made_up(schema)


class SortingServer(ModelServer):
    """Calls a document a contract where it names one, else a manual, and finds every question good."""

    def answer(self, asked: str, schema: dict[str, Any]) -> Any:
        answer: Any = made_up(schema)
        if "kind" in answer:
            value = "contract" if "Contract" in asked else "manual"
            answer["kind"] = [{"value": value, "confidence": 1, "evidence": ""}]
        for grade in answer.get("grades", ()):
            grade["grade"] = 100
        if "questions" in answer:
            mark = hashlib.sha256(asked.encode()).hexdigest()[:8]
            answer["questions"] = [f"What is part {n} of {mark}?" for n, _ in enumerate(answer["questions"])]
        for number, pair in enumerate(answer.get("answers", answer.get("grades", ())), start=1):
            pair |= {name: number for name in ("question", "pair") if name in pair}
        return answer


class ReadingServer(ModelServer):
    """Takes the names that it knows out of what it is shown, and those that it missed when it is asked for them."""

    NAMES = ("Order Desk", "Stock Service", "Night Report", "Harbour Clerk", "T_ORDER", "E0004")

    def answer(self, asked: str, schema: dict[str, Any]) -> Any:
        if "missed" in schema["properties"]:
            return {"missed": True}
        if "entities" not in schema["properties"]:
            return made_up(schema, 1500)
        messages = json.loads(asked)
        shown = next(each["content"] for each in messages if each["role"] == "user")
        names = [name for name in self.NAMES if name in shown]
        names = names[-1:] if messages[-1]["content"] != shown else names[:-1]
        about = f"is named in {hashlib.sha256(shown.encode()).hexdigest()}, which says what it does beside others"
        return {
            "entities": [{"name": name, "type": "term", "description": f"{name} {about}"} for name in names],
            "relationships": [
                {"source": name, "target": other, "description": f"{other} {about}", "strength": 5}
                for name, other in pairwise(names)
            ],
        }


class StoppedServer(ModelServer):
    """Stops when it has answered so many calls.

    Attributes:
        calls_left: Calls until it stops.
    """

    def __init__(self, calls_left: int) -> None:
        super().__init__()
        self.calls_left = calls_left

    def _write(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if handler.path.endswith("/chat/completions"):
            self.calls_left -= 1
            if self.calls_left == 0:
                self._server.shutdown()
                self._server.server_close()
        super()._write(handler, reply)

    def start_again(self) -> None:
        """Listen at the address again."""
        self._server = ThreadingHTTPServer(self._server.server_address[:2], self._server.RequestHandlerClass)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()


class StartedWhenMissed(logging.Handler):
    """Starts a server some seconds after the log says that it is waited for."""

    def __init__(self, server: StoppedServer, seconds: float) -> None:
        super().__init__(logging.WARNING)
        self.server, self.seconds = server, seconds
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        if "waiting for the model server" in self.lines[-1]:
            threading.Timer(self.seconds, self.server.start_again).start()


def completion(text: str, **more: str) -> Reply:
    message = {"role": "assistant", "content": text, **more}
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return Reply(json=body)


def test_a_real_model_summarizes_and_the_ledger_is_complete(folder: Path, small_llama_server: LlamaServer) -> None:
    (folder / "specs" / "keys.md").unlink()  # a document takes the model 20 seconds
    (folder / "taxonomy.toml").write_text(TAXONOMY)
    environment = settings(
        small_llama_server.openai_url,
        small_llama_server.model,
        RAG_ENRICHMENT__TAXONOMY=str(folder / "taxonomy.toml"),  # a large one takes the model minutes
        RAG_ENRICHMENT__QUESTIONS_LEAST="1",
        RAG_ENRICHMENT__QUESTIONS_MOST="1",
        RAG_LANGUAGE_MODEL__REPEAT_RUNS="1",  # what the model cannot do it cannot do in the second run either
    )
    code, output = call(folder, environment | {"RAG_SOURCES": f"specs={folder / 'specs'}"}, "plan", "--json")
    assert code == 0, output
    code, output = index(folder, environment)
    assert code == 0, output
    assert "spent" in output
    calls = rows(folder, "SELECT * FROM model_calls")
    written = rows(folder, "SELECT * FROM page_summaries") + rows(folder, "SELECT * FROM file_summaries")
    assert len(written) == 2
    assert {row["asset"] for row in calls} >= {"page_summaries", "file_summaries", "document_facets", "synthetic_qa"}
    calls = [row for row in calls if row["outcome"] not in {"invalid", "repeated"}]
    assert all(row["input_tokens"] > 0 and row["output_tokens"] > 0 and row["seconds"] > 0 for row in calls)
    assert all(row["run_id"] and not row["cache_hit"] for row in calls)
    name = Home(load_settings(home=folder / "home", language_model=_chosen(small_llama_server))).language_model_name
    assert {row["method"] for row in written} <= {name, "extractive"}
    total = len(rows(folder, "SELECT * FROM model_calls"))
    code, output = index(folder, environment)
    assert code == 0
    assert len(rows(folder, "SELECT * FROM model_calls")) == total


def _chosen(server: LlamaServer) -> dict[str, str]:
    return {"provider": "openai", "base_url": server.openai_url, "model": server.model}


def test_what_was_planned_is_what_is_called(folder: Path) -> None:
    with ModelServer() as server:
        environment = settings(f"{server.url}/v1", "m")
        code, output = index(folder, environment)
        assert code == 0, output
        (folder / "specs" / "third.md").write_text(document("Third"), "utf-8")
        code, output = call(folder, environment, "plan", "--json")
        made = json.loads(output)
        assert made["documents"] == 1
        calls = {step["step"]: step["calls"] for step in made["steps"] if step["calls"]}
        assert calls.items() >= {"summarize_page": 1, "summarize_file": 1, "classify_document": 1}.items()
        assert all(step["output_tokens"] == 60 * step["calls"] for step in made["steps"])  # as the ledger says of them
        before = len(server.asked)
        code, output = index(folder, environment)
        assert code == 0, output
        assert "planned" in output
        assert len(server.asked) - before == sum(calls.values())
    by_document = rows(folder, "SELECT document_id, sum(calls) AS calls FROM cost_by_document GROUP BY document_id")
    assert {"specs/third.md", "specs/orders.md"} <= {row["document_id"] for row in by_document}
    assert rows(folder, "SELECT * FROM model_costs")


def silent(done: int, total: int) -> None:
    del done, total


def test_the_graph_is_planned_as_it_is_made(folder: Path) -> None:
    """Calls on windows are foreseen exactly, those on what is found in them by their order of magnitude."""
    for path in (folder / "specs").iterdir():
        path.unlink()
    for name in ("orders", "keys"):
        text = (
            f"# {name}\n\nIn {name} the Order Desk asks the Stock Service, which writes T_ORDER or answers E0004.\n\n"
            f"The Night Report on {name} goes to the Harbour Clerk, and the Order Desk reads it beside T_ORDER.\n"
        )
        (folder / "specs" / f"{name}.md").write_text(text, "utf-8")
    with ReadingServer() as server:
        chosen = {"provider": "openai", "base_url": f"{server.url}/v1", "model": "m", "context_tokens": 16_384}
        graph = {"enabled": True, "language_model": True, "description_chars": 100}
        sources = (str(folder / "specs"),)
        home = Home(load_settings(home=folder / "home", sources=sources, language_model=chosen, graph=graph))
        plan = make_plan(home)
        assert not server.asked
        listing = home.listing()
        update_documents(home.lake, listing, SHARDS, home.options.parsing, 1, silent)
        update_chunks(home.lake, SHARDS, home.embedder, chunks_key(home), 256, 0.1, silent)
        for step in model_steps(home):
            step.update(StepWork(home, home.lake, SHARDS, language_model(home, "run"), silent))
    home.ledger().compact()
    made = Counter(home.lake.read(MODEL_CALLS, columns=["step"])["step"].to_pylist())
    planned: Counter[str] = Counter()
    for each in plan.steps:
        planned[each.step] += each.calls
    depending = {"describe_entity", "report_community"}
    assert {step: n for step, n in planned.items() if step not in depending} == {
        step: n for step, n in made.items() if step not in depending
    }
    assert planned.items() >= {"extract_graph": 2, "glean_graph": 4}.items()
    for name in depending:
        assert 0.5 <= planned[name] / made[name] <= 2, name
    assert all(each.output_tokens <= 1500 * each.calls for each in plan.steps)
    assert "confirm_entity, describe_entity and report_community are estimated from names that rules find" in (
        plan.note or ""
    )


def test_an_answer_that_breaks_its_schema_leaves_it_to_the_algorithm_and_is_named(folder: Path) -> None:
    with ModelServer() as server:
        server.instead = completion("no JSON")
        code, output = index(folder, settings(f"{server.url}/v1", "m"))
    assert code == 0, output
    assert {row["method"] for row in rows(folder, "SELECT method FROM page_summaries")} == {"extractive"}
    named = rows(folder, "SELECT DISTINCT asset, outcome, error FROM model_failures WHERE step LIKE 'summarize%'")
    assert {row["asset"] for row in named} >= {"page_summaries", "file_summaries"}
    assert all(row["outcome"] == "invalid" and "not JSON" in row["error"] for row in named)


def test_a_stored_answer_that_breaks_its_schema_is_planned_for_and_mended(folder: Path) -> None:
    """A run that ends between a broken answer and its repair leaves the broken one alone in the store."""
    (folder / "specs" / "keys.md").unlink()
    with ReadingServer() as server:
        environment = settings(f"{server.url}/v1", "m", RAG_GRAPH__ENABLED="true", RAG_GRAPH__LANGUAGE_MODEL="true")
        code, output = index(folder, environment)
        assert code == 0, output
        home = Home(load_settings(home=folder / "home"))
        (key,) = [
            each["request_key"] for each in rows(folder, "SELECT * FROM model_calls WHERE step = 'extract_graph'")
        ]
        answer = home.answers.find(key)
        assert answer is not None
        text = b'{"entities": [{"name": "Order De'
        with home.state.transaction() as connection:
            chosen = sa.update(ANSWERS).where(ANSWERS.c.request_key == key)
            connection.execute(chosen.values(text=text, checksum=zlib.crc32(text)))
        force_documents(home.lake, ["**"], list(FORCED))
        code, output = call(folder, environment, "plan", "--json")
        assert code == 0, output
        asked = len(server.asked)
        code, output = index(folder, environment)
        assert code == 0, output
        assert any("does not fit the JSON schema" in each for each in server.asked[asked:])
    assert not rows(folder, "SELECT * FROM model_failures")


class FaultyServer(ModelServer):
    """Gives answers of no use to a third of what it is asked: refused for good, empty or broken at first.

    Attributes:
        healed: Whether it answers everything.
        times: How often each conversation came.
    """

    def __init__(self) -> None:
        super().__init__()
        self.healed = False
        self.times: Counter[str] = Counter()

    def _write(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if self.asked and handler.path.endswith("/chat/completions") and not self.healed:
            asked = self.asked[-1]
            self.times[asked] += 1
            reply = self._fault(asked, self.times[asked]) or reply
        super()._write(handler, reply)

    def _fault(self, asked: str, times: int) -> Reply | None:
        if "REFUSED" in asked:
            return completion("", refusal="I cannot help with that.")
        if "EMPTY" in asked and times <= 2:
            return completion("")
        return completion('{"page": ') if "BROKEN" in asked and times == 1 else None


def summarize_pages(home: Home, run: str) -> None:
    [step] = [step for step in STEPS if step.name == "summarize_pages"]
    step.update(StepWork(home, home.lake, SHARDS, language_model(home, run), silent))


def test_answers_of_no_use_are_asked_again_and_what_stands_in_for_them_is_told(folder: Path) -> None:
    """Of four documents one is refused, one empty, one broken. The next run asks for what is missing, not for ever."""
    for path in (folder / "specs").iterdir():
        path.unlink()
    for name in ("Orders", "REFUSED", "EMPTY", "BROKEN"):
        (folder / "specs" / f"{name}.md").write_text(document(name), "utf-8")
    with FaultyServer() as server:
        chosen = {"provider": "openai", "base_url": f"{server.url}/v1", "model": "m", "repeat_runs": 2}
        sources = (str(folder / "specs"),)
        home = Home(load_settings(home=folder / "home", sources=sources, language_model=chosen))
        update_documents(home.lake, home.listing(), SHARDS, home.options.parsing, 1, silent)
        counts, calls = [], []
        for run in ("first", "second", "third"):
            before, begun = len(server.asked), datetime.now(UTC)
            summarize_pages(home, run)
            counts.append(home.ledger().answer_counts(begun).get("page_summaries"))
            calls.append(len(server.asked) - before)
            found = all_stand_ins(home)["page_summaries"]
            assert (dict(found.causes), found.marked, found.total) == ({"refused": 1}, 1, 4)
            assert found.again == (run == "first")
        assert counts == [(3, 5), (0, 2), None]  # once more, twice, and to be mended and once more
        assert calls == [9, 2, 0]
        environment = settings(f"{server.url}/v1", "m")
        code, output = call(folder, environment, "status")
        assert code == 0, output
        assert "refused 1" in output
        assert "`index --force GLOB` asks again" in output
        code, output = call(folder, environment, "status", "--json")
        assert json.loads(output)["model_steps"]["page_summaries"]["causes"] == {"refused": 1}
        home.ledger().compact()
        made = [row for row in home.ledger().rows().to_pylist() if not row["cache_hit"]]
        assert sum(row["outcome"] != "repeated" for row in made) == len(server.asked)
        server.healed = True
        forget_unusable_answers(home, force_documents(home.lake, ["**/REFUSED.md"], list(FORCED)).documents)
        summarize_pages(home, "forced")
        assert all_stand_ins(home)["page_summaries"].count == 0


def test_what_failed_for_a_moment_is_asked_again_by_the_next_run(folder: Path) -> None:
    with ModelServer() as server:
        server.instead = Reply(503, json={"error": {"message": "busy"}})
        environment = settings(f"{server.url}/v1", "m", RAG_LANGUAGE_MODEL__ATTEMPTS="1")
        code, output = index(folder, environment)
        assert code == 0, output
        assert {row["method"] for row in rows(folder, "SELECT method FROM page_summaries")} == {"extractive"}
        server.instead = None
        code, output = index(folder, environment)
        assert code == 0, output
        assert "extractive" not in {row["method"] for row in rows(folder, "SELECT method FROM page_summaries")}
        asked = len(server.asked)
        code, output = index(folder, environment)
        assert code == 0, output
        assert len(server.asked) == asked


def test_a_server_that_is_restarted_at_the_border_of_a_step_is_waited_for(folder: Path) -> None:
    """Longer than one that never answered would be; the two page summaries are the first step."""
    logger = logging.getLogger("rag_assets.models.attempts")
    with StoppedServer(2) as server:
        handler = StartedWhenMissed(server, 4.0)
        logger.addHandler(handler)
        try:
            code, output = index(folder, settings(f"{server.url}/v1", "m"))
        finally:
            logger.removeHandler(handler)
        assert code == 0, output
    assert "300 s at most (language_model.outage_seconds)" in handler.lines[0]
    assert not rows(folder, "SELECT * FROM model_failures")
    assert len(rows(folder, "SELECT * FROM file_summaries WHERE method <> 'extractive'")) == 2


def test_a_server_that_does_not_come_back_ends_the_run_when_its_patience_does(folder: Path) -> None:
    with StoppedServer(2) as server:
        code, output = index(folder, settings(f"{server.url}/v1", "m", RAG_LANGUAGE_MODEL__OUTAGE_SECONDS="0"))
        assert code == 1
        assert "connection failed" in output
        server.start_again()  # for what closes it


def test_meta_knowledge_that_failed_for_a_moment_is_asked_again_by_the_next_run(folder: Path) -> None:
    (folder / "taxonomy.toml").write_text(TAXONOMY)
    query = "SELECT DISTINCT method FROM meta_knowledge"
    with SortingServer() as server:
        environment = settings(
            f"{server.url}/v1",
            "m",
            RAG_LANGUAGE_MODEL__ATTEMPTS="1",
            RAG_ENRICHMENT__TAXONOMY=str(folder / "taxonomy.toml"),
        )
        server.instead, server.instead_of = Reply(503, json={"error": {"message": "busy"}}), "Q: What is part"
        code, output = index(folder, environment)
        assert code == 0, output
        assert rows(folder, query) == [{"method": "extractive"}]
        asked, server.instead = len(server.asked), None
        code, output = call(folder, environment, "status", "--json")
        assert json.loads(output)["unfinished_shards"] == [SHARDS[0]]
        for _ in range(2):
            code, output = index(folder, environment)
            assert code == 0, output
            assert len(server.asked) == asked + 1
        assert "extractive" not in {row["method"] for row in rows(folder, query)}


def test_a_budget_without_a_price_is_refused(folder: Path) -> None:
    code, output = index(folder, settings("http://127.0.0.1:1/v1", "m", RAG_BUDGET_USD="1"))
    assert code == 1
    assert "language_model.catalogue" in output


def test_a_server_that_is_not_there_is_named_before_the_work_and_can_be_planned_for(folder: Path) -> None:
    environment = settings("http://127.0.0.1:1/v1", "m")
    code, output = index(folder, environment)
    assert code == 1
    last = output.splitlines()[-1]
    assert last.startswith("rag-assets: language model m: 127.0.0.1:1: connection failed: is the server running?")
    assert output.count("rag-assets: ") == 1
    code, output = call(folder, environment, "plan", "--json")
    assert code == 0, output
    plan = json.loads(output)
    assert plan["documents"] == 2
    assert sum(step["calls"] for step in plan["steps"]) > 4
    assert all(step["input_tokens"] > 0 for step in plan["steps"] if step["calls"])
    assert "tokens are estimated from characters: language model m: 127.0.0.1:1: connection failed" in plan["note"]
    assert "8,192 tokens is assumed: state it in language_model.context_tokens" in plan["note"]
    code, output = call(folder, environment | {"RAG_LANGUAGE_MODEL__CONTEXT_TOKENS": "32768"}, "plan", "--json")
    assert "assumed" not in json.loads(output)["note"]


def test_no_access_ends_the_run_and_the_next_goes_on(folder: Path) -> None:
    with ModelServer() as server:
        server.instead = Reply(401, json={"error": {"message": f"bad key {KEY}"}})
        environment = settings(f"{server.url}/v1", "m")
        code, output = index(folder, environment)
        assert code == 1
        assert "401" in output
        server.instead = None
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
    with ModelServer() as server:
        more = {"RAG_LANGUAGE_MODEL__CATALOGUE": str(catalogue), "RAG_LANGUAGE_MODEL__CONCURRENCY": "1"}
        environment = settings(f"{server.url}/v1", "m", **more)
        code, output = index(folder, {**environment, "RAG_BUDGET_USD": "3.0"})
        assert code == 1
        assert "budget" in output.lower()
        assert len(server.asked) * 0.96 <= 3.0
        paid = rows(folder, "SELECT count(*) AS n FROM model_calls WHERE NOT cache_hit")
        assert paid == [{"n": len(server.asked)}]
        code, output = index(folder, {**environment, "RAG_BUDGET_USD": "1000"})
        assert code == 0, output
    assert len(server.asked) == len(set(server.asked))
    paid = rows(folder, "SELECT sum(cost_usd) AS usd, count(*) AS n FROM model_calls WHERE NOT cache_hit")
    assert paid == [{"usd": pytest.approx(len(server.asked) * 0.96), "n": len(server.asked)}]


def test_the_figures_of_partitions_add_up_to_those_of_the_run(folder: Path) -> None:
    """Each partition shows its own calls, so that a sum over partitions is what was paid."""
    tables = ("page_summaries", "file_summaries")
    with ModelServer() as server, dg.DagsterInstance.ephemeral() as instance:
        chosen = {"provider": "openai", "base_url": f"{server.url}/v1", "model": "m"}
        home = Home(load_settings(home=folder / "home", sources=(str(folder / "specs"),), language_model=chosen))
        shards = changes_to_index(home, home.listing()).shards
        job = build_definitions(home=HomeResource(home.settings)).resolve_job_def(INDEX_JOB.name)
        steps = (
            dg.AssetSelection.assets(*tables)
            .upstream()
            .required_multi_asset_neighbors()
            .resolve(job.asset_layer.asset_graph)
        )
        tags = shard_tags(shards)
        assert job.execute_in_process(QUIET, instance, tags=tags, asset_selection=list(steps)).success
        events = {name: instance.fetch_materializations(dg.AssetKey(name), limit=100).records for name in tables}
    assert len(shards) == 2
    calls = home.ledger().rows().to_pylist()
    for name in tables:
        of_table = [row for row in calls if row["asset"] == name]
        shown = {record.partition_key: values(record) for record in events[name]}
        assert shown.keys() == {*shards}, "nothing is recorded of shards in which nothing changed"
        for shard, figures in shown.items():
            of_shard = [row for row in of_table if row["partition"] == shard]
            assert figures["calls"] == len(of_shard)
            assert figures["tokens_written"] == 60 * len(of_shard)
            assert figures["documents_computed"] == 1
        totals = [figures["run_totals"] for figures in shown.values() if "run_totals" in figures]
        assert totals, "the run shows its totals"
        for total in totals:
            assert (
                total.items()
                >= {
                    "partitions": len(shown),
                    "calls": len(of_table),
                    "documents_computed": 2,
                    "cost_usd": 0.0,
                }.items()
            )
        assert sum(figures["calls"] for figures in shown.values()) == len(of_table) > 0


def values(record: dg.EventLogRecord) -> dict[str, Any]:
    assert record.asset_materialization is not None
    return {name: each.value for name, each in record.asset_materialization.metadata.items()}


def test_a_changed_document_costs_its_own_calls_and_the_knowledge_that_it_touches(folder: Path) -> None:
    (folder / "taxonomy.toml").write_text(TAXONOMY)
    for path in (folder / "specs").iterdir():
        path.unlink()
    for name in ("Manual A", "Manual B", "Contract A", "Contract B"):
        (folder / "specs" / f"{name}.md").write_text(document(name), "utf-8")
    taxonomy = {"RAG_ENRICHMENT__TAXONOMY": str(folder / "taxonomy.toml"), "RAG_ENRICHMENT__KNOWLEDGE_QUESTIONS": "1"}
    with SortingServer() as server:
        environment = settings(f"{server.url}/v1", "m", **taxonomy)
        code, output = index(folder, environment)
        assert code == 0, output
        [first] = rows(folder, "SELECT DISTINCT run_id FROM model_calls")
        assert {row["selection"] for row in rows(folder, "SELECT * FROM meta_knowledge")} == {
            "kind=contract",
            "kind=manual",
        }
        (folder / "specs" / "Manual A.md").write_text(document("Manual A") + "\n\nIt has a new end.", "utf-8")
        code, output = index(folder, environment)
        assert code == 0, output
    calls = rows(folder, f"SELECT * FROM model_calls WHERE run_id <> '{first['run_id']}' AND NOT cache_hit")
    assert {call["document_id"] for call in calls if call["asset"] != "meta_knowledge"} == {"specs/Manual A.md"}
    assert {call["asset"] for call in calls} >= {"page_summaries", "document_facets", "synthetic_qa", "meta_knowledge"}
    assert len([call for call in calls if call["asset"] == "meta_knowledge"]) == 1
