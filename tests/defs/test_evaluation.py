"""The assets of evaluations: the published version is asked accepted questions, and what came stands in tables."""

import json
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from api_server import MakeClient
from click.testing import CliRunner, Result
from starlette.testclient import TestClient

from rag_assets.cli import main
from rag_assets.contracts.tables import EVALUATION_SCORES
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.questions import EVALUATION_JOB
from rag_assets.defs.resources import HomeResource
from rag_assets.evaluation.questions import Evidence, Question, question_line
from rag_assets.evaluation.records import recorded_results, recorded_runs
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings

RUNS = dg.AssetKey("evaluation_runs")
TEXTS = {"token": "A token is valid for 30 minutes.", "backup": "The backup is taken at 3 a.m."}
QUESTIONS = (
    Question("token", "How long is a token valid?", "en", "rule", True, (Evidence("token.md", quote=TEXTS["token"]),)),
    Question(
        *("backup", "When is the backup taken?", "en", "fact", True),
        *((Evidence("backup.md", quote=TEXTS["backup"]),), (("3 a.m.",),)),
        purpose="choosing",
    ),
    Question("weather", "明日の大阪の天気予報は？", answerable=False),
)


def run(home: Home, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["--home", str(home.path), *map(str, arguments)])


@pytest.fixture
def measured(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A small knowledge base with a question set, one version of which the gate measured."""
    folder, path = Path(home.settings.sources[0]), tmp_path / "questions.jsonl"
    for name, text in TEXTS.items():
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    path.write_text("".join(f"{question_line(each)}\n" for each in QUESTIONS), encoding="utf-8")
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(path))
    monkeypatch.setenv("RAG_SEARCH__ASK_MODE", "fulltext")
    indexed = run(home, "index", folder)
    assert indexed.exit_code == 0, indexed.output
    return Home(load_settings(home=home.path, sources=home.settings.sources))


def check_routes(client: TestClient, run_id: str, other: str) -> None:
    """What the HTTP API tells of two runs, the first of which asked in `hybrid`, the second in two modes."""
    listed = client.get("/api/v1/evaluations").json()
    assert [len(each["systems"]) for each in listed] == [1, 2, 1]
    assert client.get("/api/v1/evaluations", params={"limit": 1}).json() == listed[:1]
    details = client.get(f"/api/v1/evaluations/{other}").json()
    assert [each["question_id"] for each in details["questions"]][-1] in {"token", "backup", "weather"}
    assert {each["dimension"] for each in details["figures"]} == {"type", "language", "format", "length"}
    question = client.get(f"/api/v1/evaluations/{other}/question", params={"id": "backup"}).json()
    assert question["answer_contains"] == [["3 a.m."]]
    assert [each["outcome"] for each in question["sides"]] == ["right", "right"]
    compared = client.get(
        f"/api/v1/evaluations/{run_id}/comparison",
        params={"system": "hybrid", "other_run": other, "other_system": "vector"},
    ).json()
    assert {each["measure"]: each["count"] for each in compared["differences"]} == {"passage R@5": 2}
    for path, status in [
        *((f"{run_id[:-1]}x", 422), ("..%2F..", 404), ("20200101T000000Z-00000000", 404)),
        *(
            (f"{run_id}/question?id=nothing", 404),
            (f"{run_id}/comparison?system=x&other_run={other}&other_system=x", 400),
        ),
    ]:
        response = client.get(f"/api/v1/evaluations/{path}")
        assert response.status_code == status, response.text


def test_a_server_of_definitions_loads_those_of_a_question_set(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(f"{question_line(QUESTIONS[0])}\n", encoding="utf-8")
    monkeypatch.setenv("RAG_EVALUATION__QUESTIONS", str(path))
    repository = build_definitions(HomeResource(load_settings(home=home.path))).get_repository_def()
    repository.load_all_definitions()
    assert {"evaluation", "train_ranking", "train_rewriter"} <= {job.name for job in repository.get_all_jobs()}


def test_runs_of_gate_job_and_command_stand_in_tables_with_intervals(
    measured: Home, monkeypatch: pytest.MonkeyPatch, make_client: MakeClient
) -> None:
    [gated] = recorded_runs(measured.lake)
    assert (gated["made_by"], gated["version"], gated["mode"]) == ("gate", 1, "fulltext")
    monkeypatch.setenv("RAG_EVALUATION__MODES", json.dumps(["fulltext", "vector"]))
    home = Home(load_settings(home=measured.path, sources=measured.settings.sources))
    index_run = build_definitions(HomeResource(home.settings)).resolve_job_def("index_sources")
    assert not [name for name in index_run.nodes if "evaluation" in name.name]
    with dg.instance_for_test() as instance:
        job = build_definitions(HomeResource(home.settings)).resolve_job_def(EVALUATION_JOB.name)
        result = job.execute_in_process(instance=instance)
        [event] = [each for each in result.get_asset_materialization_events() if each.asset_key == RUNS]
        metadata = event.step_materialization_data.materialization.metadata
    shown = {name: str(each.value) for name, each in metadata.items()}
    assert shown["rows_added"] == "2"
    assert "| 1 | vector | job | questions.jsonl | 3 |" in shown["history"]
    assert "1 of 3 questions were used for choosing" in shown["warnings"]
    command = run(home, "evaluate", "--mode", "hybrid", "--level", "passage", "--json")
    assert command.exit_code == 0, command.output
    figure = next(each for each in json.loads(command.stdout)["figures"] if each["measure"] == "R@5")
    assert any("used for choosing" in line for line in json.loads(command.stdout)["warnings"])
    runs = recorded_runs(home.lake)
    assert [(row["made_by"], row["system"]) for row in runs] == [
        *(("evaluate", "hybrid"), ("job", "fulltext"), ("job", "vector"), ("gate", "fulltext"))
    ]
    assert {row["set_digest"] for row in runs} == {gated["set_digest"]}
    [token, _, weather] = recorded_results(home.lake, runs[0]["run_id"])
    assert token["expected"] == [
        {"document": "token.md", "place": "", "quote": TEXTS["token"], "alternative": False, "indexed": True}
    ]
    assert token["results"][0]["relevant"]
    assert TEXTS["token"] in token["results"][0]["text"]
    assert (weather["results"], weather["outcome"]) == ([], None)
    columns = "mean, low, high, version, choosing_count"
    check_routes(make_client(home), runs[0]["run_id"], runs[1]["run_id"])
    query = f"SELECT {columns} FROM evaluation_history WHERE mode = 'hybrid' AND measure = 'R@5'"
    asked = run(home, "sql", "--json", query)
    assert asked.exit_code == 0, asked.output
    expected = [figure["mean"], figure["low"], figure["high"], 1, 1]
    assert list(json.loads(asked.stdout).values()) == expected
    stable = home.path / "published" / "current" / "rag_assets.duckdb"
    with duckdb.connect(str(stable), read_only=True) as connection:
        values = connection.execute(
            "SELECT run_id, value FROM evaluation_values WHERE question_id = 'token' AND measure = 'R@5' "
            "AND level = 'passage' ORDER BY run_id, system"
        ).fetchall()
        changes = connection.execute("SELECT count(*) FROM evaluation_version_changes").fetchone()
    assert [value for _, value in values] == [1.0] * 4
    assert {key for key, _ in values} == {row["run_id"] for row in runs}
    assert changes == (0,)


def test_a_set_of_ones_own_is_recorded_where_that_is_asked_for_and_damage_to_it_is_named(
    measured: Home, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(question_line(QUESTIONS[0]) + "\n", encoding="utf-8")
    assert run(measured, "evaluate", other).exit_code == 0
    assert len(recorded_runs(measured.lake)) == 1
    assert run(measured, "evaluate", other, "--record").exit_code == 0
    last = recorded_runs(measured.lake)[0]
    assert last["question_set"] == "other.jsonl"
    [scores] = measured.lake.paths(EVALUATION_SCORES, measured.lake.latest(EVALUATION_SCORES, [last["run_id"]]))
    scores.write_bytes(b"damaged")
    found = run(measured, "verify")
    assert f"evaluation_scores/{last['run_id']}" in found.stdout
    assert "what it recorded of an evaluation is lost" in found.stdout
    assert run(measured, "verify", "--repair").exit_code == 0
    assert run(measured, "verify").stdout == "nothing is damaged\n"
    assert run(measured, "evaluate", "--level", "passage").exit_code == 0


def test_without_a_set_it_is_said_how_to_have_one(sample_home: Path) -> None:
    refused = CliRunner().invoke(main, ["--home", str(sample_home), "evaluate"])
    assert refused.exit_code == 1
    assert "set evaluation.questions (RAG_EVALUATION__QUESTIONS)" in refused.stderr
