"""Runs that a language model judges, from the command line: what is asked before, printed, stored and refused."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from click.testing import CliRunner, Result
from judging_server import CATALOGUE, REFUSAL, JudgingServer, completion, home_of, judge_of
from llama import LlamaServer

from rag_assets.cli import main
from rag_assets.contracts.errors import QueryError, SettingsError
from rag_assets.evaluation.judges.calibration import check_judge, labelled_pairs
from rag_assets.evaluation.judges.judgements import (
    CRITERIA,
    METRICS,
    AnswerPair,
    Judge,
    judge_faithfulness,
    judge_preferences,
)
from rag_assets.evaluation.questions import Question, question_line
from rag_assets.evaluation.records import recorded_runs, recorded_scores
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import judge_home, language_model
from rag_assets.pipeline.settings import load_settings
from rag_assets.text.language import detect_language

QUESTIONS = (
    Question("returns", "What is the return policy?", "en", "rule", answer_contains=(("30 days",),)),
    Question("duplicate", "顧客登録で顧客名が重複したときのHTTPステータスコードは？", "ja", "rule"),
    Question("items", "電話番号の項目", "ja", "list"),
    Question("weather", "明日の大阪の天気予報は？", "ja", "unanswerable", answerable=False),
)
TWO_PAIRS = [each for each in labelled_pairs() if each.id in {"en06", "ja01"}]


def judge(asked: str, body: dict[str, Any]) -> Any:
    """Takes the longer answer for the better one, and believes every sentence."""
    names = set(body["response_format"]["json_schema"]["schema"]["properties"])
    texts = re.findall(r"<(answer\d?)-(\w+)>\n(.*?)\n</\1-\2>", asked, re.DOTALL)
    lengths = [len(text) for *_, text in texts]
    if names == {"reason", "winner"}:
        return {"reason": "length", "winner": 0 if lengths[0] == lengths[1] else 1 + (lengths[1] > lengths[0])}
    if names == {"claims"}:
        return {"claims": re.findall(r"[^.。、,\s]{2,}", texts[0][2])[:20]}
    if names == {"sentences"}:
        count = len(re.findall(r"^\d+\. ", asked.rpartition("<sentences-")[2], re.MULTILINE))
        return {"sentences": [{"sentence": n + 1, "reason": "so", "supported": True} for n in range(count)]}
    return {name: {"justification": "by length", "grade": min(100, lengths[0])} for name in names}


@pytest.fixture
def server() -> Iterator[JudgingServer]:
    with JudgingServer(judge) as scripted:
        yield scripted


@pytest.fixture
def files(sample_home: Path, tmp_path: Path) -> Path:
    """A folder with the sample's home, questions, two labelled pairs and prices."""
    folder = tmp_path / "judged"
    shutil.copytree(sample_home, folder / "home", symlinks=True)
    (folder / "models.toml").write_text(CATALOGUE)
    (folder / "questions.jsonl").write_text("".join(f"{question_line(each)}\n" for each in QUESTIONS), "utf-8")
    lines = [
        {"id": each.id, "question": each.question, "answers": each.answers, "better": each.better}
        | {"passages": each.passages, "supported": each.supported, "more_claims": each.more_claims}
        for each in TWO_PAIRS
    ]
    (folder / "pairs.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return folder


def run(files: Path, url: str, *arguments: str, **environment: str) -> Result:
    named = {"PROVIDER": "openai", "MODEL": "judge", "BASE_URL": f"{url}/v1", "API_KEY": "sk-secret"}
    settings = {f"RAG_EVALUATION__JUDGE__{name}": value for name, value in named.items()}
    settings |= {"RAG_LANGUAGE_MODEL__CATALOGUE": str(files / "models.toml"), "RAG_LANGUAGE_MODEL__ATTEMPTS": "5"}
    command = ["--home", str(files / "home"), "evaluate", str(files / "questions.jsonl")]
    labelled = ["--labelled", str(files / "pairs.jsonl")]
    return CliRunner().invoke(main, [*command, *labelled, *arguments], env={**settings, **environment})


ALL_JUDGES = [word for judge in Judge for word in ("--judge", judge.value)]
TWO_MODES = ("--compare", "fulltext", "vector", "--repetitions", "2", "--level", "passage")


def test_judgements_are_printed_with_what_they_cost_and_whether_to_believe_them(
    files: Path, server: JudgingServer
) -> None:
    page = files / "report.html"
    first = run(files, server.url, *TWO_MODES, *ALL_JUDGES, "--html", str(page))
    assert first.exit_code == 0, first.output
    told = re.search(
        r"judge openai:judge@\S+: (\d+) calls to make, 0 stored; about [\d,]+ tokens .* (\S+) USD", first.stderr
    )
    assert told
    assert int(told[1]) == len(server.asked)  # the plan was exact
    assert float(told[2]) > 0
    for words in ("Judged: grading", "Judged: claims", "Judged: faithfulness", "Preferred to fulltext", "p Holm"):
        assert words in first.stdout
    assert "Is openai:judge@" in first.stdout
    assert "clusters 0.8" in first.stdout
    assert re.search(r"preference, this run +\S", first.stdout)
    assert "breadth: grade of 100" in first.stdout
    root: Any = lxml.html.document_fromstring(page.read_text("utf-8"))
    assert "breadth" in root.xpath("string(//details[@id='q-returns'])")
    assert any("to be believed?" in each.text_content() for each in root.iter("h3"))

    before = len(server.asked)
    again = run(files, server.url, *TWO_MODES, *ALL_JUDGES, "--json", "--record")
    assert again.exit_code == 0, again.output
    assert f": 0 calls to make, {before} stored" in again.stderr
    assert len(server.asked) == before
    record = json.loads(again.stdout)
    figures = {
        (each["system"], each["level"], each["measure"]): each
        for each in record["figures"]
        if each["dimension"] == "all"
    }
    assert {name for _, level, name in figures if level == "grading"} == set(METRICS)
    assert {(system, name) for system, level, name in figures if level == "preference"} == {
        ("vector", name) for name in CRITERIA
    }
    assert figures["fulltext", "faithfulness", "faithful"]["mean"] == 1
    assert all(each["low"] <= each["mean"] <= each["high"] for each in record["figures"])
    of_question = {each["id"]: each["results"]["vector"] for each in record["questions"]}
    assert of_question["returns"]["values"]["grading"].keys() == set(METRICS)
    assert "grading" not in of_question["weather"]["values"]  # there is nothing that it should have said
    assert any(line.startswith("breadth ") for line in of_question["returns"]["reasons"]["grading"])
    lake = Home(load_settings(home=files / "home")).lake
    (made,) = {row["run_id"] for row in recorded_runs(lake)}
    kept = {
        (row["system"], row["level"], row["measure"]): row["mean"] for row in recorded_scores(lake, [made], ["all"])
    }
    assert kept == {key: each["mean"] for key, each in figures.items()}
    checks = {each["name"]: each for each in record["judge"]["checks"]}
    assert checks["faithfulness"]["agreement"] == {
        "mean": 1,
        "low": pytest.approx(0.025 ** (1 / 4)),
        "high": 1,
        "count": 4,
    }
    assert checks["preference"]["shown_first"]["mean"] == 50
    compared = {name for each in record["comparisons"] for name in each["measures"]}
    assert {"grading breadth", "claims claims", "faithfulness faithful"} <= compared
    assert not any(name.startswith("preference") for name in compared)
    for each in record["judge"]["preferences"]:
        assert each["points"] == {
            name: figures["vector", "preference", each["criterion"]][name] for name in each["points"]
        }


def test_refusals_are_counted_and_are_no_figures(files: Path, server: JudgingServer) -> None:
    server.script = lambda asked, body: REFUSAL if "<answer" in asked else judge(asked, body)
    settings = {"RAG_LANGUAGE_MODEL__REFUSAL_REPEATS": "0"}
    result = run(files, server.url, "--mode", "fulltext", "--judge", "grading", "--json", **settings)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert not any(each["level"] == "grading" for each in record["figures"])
    assert any("which judged none of the labelled pairs: do not rely" in each for each in record["warnings"])
    assert any("3 judgements are missing and count as none: 3 refused" in each for each in record["warnings"])


def test_a_judge_whom_labels_contradict_is_named(files: Path, server: JudgingServer) -> None:
    server.script = lambda _asked, body: (
        {"reason": "", "winner": 1} if "winner" in json.dumps(body["response_format"]) else {}
    )
    result = run(files, server.url, "--judge", "preference", *TWO_MODES)
    assert result.exit_code == 0, result.output
    assert re.search(
        r"note: preference by openai:judge@\S+, which agrees with 0% of the labels: do not rely", result.stdout
    )
    assert "the answer shown first gets 100 of 100 points" in result.stdout


def test_a_budget_spent_in_the_middle_leaves_the_rest_of_the_figures(files: Path, server: JudgingServer) -> None:
    arguments = ("--mode", "fulltext", "--judge", "claims", "--level", "page")
    server.script = lambda asked, body: {"claims": [f"{len(server.asked)} x", *judge(asked, body)["claims"]]}
    settings = {"RAG_LANGUAGE_MODEL__TEMPERATURE": "0.5"}  # judgements of their own
    spent = run(files, server.url, *arguments, **settings, RAG_LANGUAGE_MODEL__RUN_BUDGET_USD="0.012")
    assert spent.exit_code == 1
    assert re.search(r"budget.*run the command again to go on", spent.stderr)
    assert "Answers, 4 questions" in spent.stdout
    assert "Judged" not in spent.stdout
    paid = len(server.asked)
    assert paid
    whole = run(files, server.url, *arguments, **settings)
    assert whole.exit_code == 0, whole.output
    assert f"{paid} stored" in whole.stderr
    assert max(Counter(server.bodies).values()) == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("--judge", "preference"), {}, "preference compares modes"),
        (("--judge", "claims"), {"RAG_EVALUATION__JUDGE__BASE_URL": "http://127.0.0.1:9/v1"}, "127.0.0.1:9"),
        (
            ("--judge", "claims", "--labelled", "questions.jsonl"),
            {},
            "questions.jsonl, line 1: answers: Field required",
        ),
    ],
)
def test_what_cannot_be_judged_is_said_first(
    files: Path,
    server: JudgingServer,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    message: str,
) -> None:
    monkeypatch.chdir(files)
    result = run(files, server.url, *arguments, **environment)
    assert result.exit_code in {1, 2}
    assert message in result.stderr
    assert not server.asked


def test_the_judge_is_the_language_model_or_another_one(tmp_path: Path) -> None:
    own = {"provider": "openai", "model": "small", "base_url": "http://a/v1", "api_key": "k", "context_tokens": 4096}

    def model(**judge: Any) -> Any:
        home = Home(load_settings(home=tmp_path, language_model=own, evaluation={"judge": judge}))
        return judge_home(home).settings.language_model

    assert model() == load_settings(language_model=own).language_model
    same_server = model(model="large", temperature=0)
    assert (same_server.base_url, same_server.api_key.get_secret_value()) == ("http://a/v1", "k")
    assert (same_server.model, same_server.temperature, same_server.context_tokens) == ("large", 0, 0)
    other = model(provider="anthropic", model="claude-haiku-4-5")
    assert (other.provider, other.base_url, other.api_key) == ("anthropic", "", None)
    with pytest.raises(SettingsError, match="evaluation.judge.model"):
        judge_home(Home(load_settings(home=tmp_path)))
    with pytest.raises(SettingsError, match="needs evaluation.judge.model"):
        load_settings(evaluation={"judge": {"provider": "openai"}})


def test_the_judges_key_is_no_matter_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rag_assets.toml").write_text('[evaluation.judge]\nmodel = "large"\napi_key = "sk-secret"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"evaluation\.judge\.api_key: expected in the environment") as caught:
        load_settings()
    assert "sk-secret" not in str(caught.value)


def test_the_labelled_pairs_are_half_japanese_and_label_every_judge() -> None:
    pairs = labelled_pairs()
    assert len({each.id for each in pairs}) == len(pairs) == 30
    assert Counter(detect_language(each.question) for each in pairs) == {"en": 15, "ja": 15}
    labels = Counter(name for each in pairs for name in each.better)
    assert labels.keys() == {*CRITERIA, *METRICS}
    winners = Counter(label for each in pairs for label in each.better.values())
    assert min(winners.values()) >= 10  # none of first, second and tie is what a judge can always say
    support = Counter(value for each in pairs for value in each.supported or ())
    assert min(support.values()) >= 10
    assert sum(each.more_claims is not None for each in pairs) >= 15


def test_a_judge_that_knows_the_labels_agrees_with_all_labels(tmp_path: Path) -> None:
    by_question = {each.question: each for each in labelled_pairs()}

    def script(asked: str, body: dict[str, Any]) -> Any:
        names = list(body["response_format"]["json_schema"]["schema"]["properties"])
        texts = {name: text for name, _, text in re.findall(r"<(\w+)-(\w+)>\n(.*?)\n</\1-\2>", asked, re.DOTALL)}
        pair = by_question[texts["query"]]
        if "winner" in names:
            label = pair.better[re.search(r"(?:Criterion: |基準：)(\w+)", asked)[1]]  # type: ignore[index]
            swapped = texts["answer1"] != pair.answers[0]
            return {"reason": "", "winner": 3 - label if swapped and label else label}
        if "sentences" in names:
            place = 0 if pair.answers[0] in texts["sentences"] and _cites(texts, pair.passages) else 1
            supported = bool(pair.supported and pair.supported[place])
            return {"sentences": [{"sentence": 1, "reason": "", "supported": supported}]}
        place = 0 if pair.answers[0] == texts["answer"] and _cites(texts, pair.passages) else 1
        if "claims" in names:
            return {"claims": ["one", *(["two"] if pair.more_claims == place + 1 else [])]}
        return {
            name: {"justification": "", "grade": {0: 50, place + 1: 90}.get(pair.better.get(name, 0), 20)}
            for name in names
        }

    with JudgingServer(script) as server:
        model = judge_of(server, tmp_path)
        for judge_name in Judge:
            check = check_judge(model, judge_name, labelled_pairs())
            assert check.agreement is not None
            assert check.agreement.mean == 1, judge_name
            assert check.consistency is not None
            assert check.consistency.mean == 1
            assert (check.shown_first is None) == (judge_name is not Judge.PREFERENCE)
            assert not check.missing
        calls = len(server.asked)
        check_judge(judge_of(server, tmp_path), Judge.PREFERENCE, labelled_pairs())
        assert len(server.asked) == calls  # checked once for this model
        server.script = lambda _asked, _body: completion("no JSON at all")
        broken = check_judge(model, Judge.FAITHFULNESS, [replace(TWO_PAIRS[0], question="?")])
    assert (broken.agreement, broken.missing) == (None, {"invalid": 4})


def _cites(texts: dict[str, str], passages: tuple[str, ...]) -> bool:
    return all(each in texts.get("passages", "".join(passages)) for each in passages)


def test_labelled_pairs_that_are_none_are_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"id": "a", "question": "?", "answers": ["x", "y"], "better": {"beauty": 1}}\n')
    with pytest.raises(QueryError, match=r"pairs\.jsonl, line 1: better\.beauty"):
        labelled_pairs(path)
    with pytest.raises(QueryError, match="cannot be read"):
        labelled_pairs(tmp_path / "none.jsonl")


def test_a_small_model_judges_over_the_wire(small_llama_server: LlamaServer, tmp_path: Path) -> None:
    """Whatever so small a model says, every judgement comes or is counted as missing, and is paid once."""
    settings = {"model": small_llama_server.model, "temperature": 0, "timeout_seconds": 300, "attempts": 2}
    pair = AnswerPair(*TWO_PAIRS[0].judged(), ("directness",))
    asked: list[int] = []
    for _ in range(2):
        home = home_of(small_llama_server.url, tmp_path, **settings)
        model = language_model(home)
        (preference,) = judge_preferences(model, [pair], repetitions=1)
        assert len(preference.verdicts) + len(preference.missing) == 2
        assert preference.missing or preference.points("directness") in {0, 25, 50, 75, 100}
        (faithfulness,) = judge_faithfulness(model, [pair.first])
        assert len(faithfulness.reasons) + len(faithfulness.missing) == 1
        rows = home.ledger().rows(columns=["step", "cache_hit", "outcome"]).to_pylist()
        assert {row["step"] for row in rows} == {"judge_preference", "judge_faithfulness"}
        asked.append(sum(not row["cache_hit"] and row["outcome"] not in {"invalid", "repeated"} for row in rows))
    assert asked[0] == asked[1]


@pytest.mark.slow
def test_a_real_model_judges_in_every_way(files: Path, llama_server: LlamaServer) -> None:
    for name, places in (("questions.jsonl", (0, 2)), ("pairs.jsonl", (0,))):  # some 30 calls
        lines = (files / name).read_text("utf-8").splitlines()
        (files / name).write_text("".join(f"{lines[place]}\n" for place in places), "utf-8")
    environment = {
        "RAG_EVALUATION__JUDGE__MODEL": llama_server.model,
        "RAG_EVALUATION__JUDGE__TEMPERATURE": "0",
        "RAG_LANGUAGE_MODEL__TIMEOUT_SECONDS": "600",
        "RAG_LANGUAGE_MODEL__CONCURRENCY": "1",
    }
    arguments = (*TWO_MODES[:3], "--repetitions", "1", "--level", "passage", *ALL_JUDGES, "--json")
    result = run(files, llama_server.url, *arguments, **environment)
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    levels = {each["level"] for each in record["figures"]}
    assert levels >= {judge.value for judge in Judge}
    checks = {each["name"]: each for each in record["judge"]["checks"]}
    assert all(checks[judge.value]["agreement"] for judge in Judge)
    again = run(files, llama_server.url, *arguments, **environment)
    assert ": 0 calls to make" in again.stderr
    assert json.loads(again.stdout)["judge"] == record["judge"]
