"""Searching and asking over HTTP: the same as in Python, and problems as problem details."""

import json
import time
from typing import Any

import httpx
import pytest
from api_server import RunningServer

from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.query.results import to_json

QUESTION = "顧客登録で重複登録エラーになるのはどのようなときか"


def events(text: str) -> list[tuple[str, dict[str, object]]]:
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_a_search_gives_what_python_gives(api: httpx.Client, sample: Home) -> None:
    expected = to_json(knowledge_base(sample).search("顧客登録", "auto", 3))
    by_address = api.get("/search", params={"q": "顧客登録", "k": 3})
    by_body = api.post("/search", json={"query": "顧客登録", "k": 3, "mode": "auto"})
    for response in (by_address, by_body):
        assert response.status_code == 200
        assert response.headers["x-snapshot"] == "1"
        assert response.json()["hits"] == json.loads(json.dumps(expected["hits"]))


def test_filters_and_granularity_reach_the_search(api: httpx.Client) -> None:
    filters = ["format=xlsx", "folder=sample/設計書"]
    asked = {"query": "顧客", "filters": filters, "granularity": "document", "k": 50}
    hits = api.post("/search", json=asked).json()["hits"]
    documents = [hit["document_id"] for hit in hits]
    assert documents
    assert len(set(documents)) == len(documents)
    assert all(document.startswith("sample/設計書/") for document in documents)
    by_address = api.get("/search", params={"q": "顧客", "filter": filters, "granularity": "document", "k": 50})
    assert by_address.json()["hits"] == hits


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("/search?q=x&history=1", "history", "mode"),
        ("/search?q=x&filters=format%3Dxlsx", "filters", "filter"),
        ("/documents?fromat=xlsx", "fromat", "format"),
        ("/status?x=1", "x", "no parameters"),
    ],
)
def test_parameters_that_are_not_known_are_refused(api: httpx.Client, path: str, name: str, words: str) -> None:
    response = api.get(path)
    assert response.status_code == 422
    [error] = response.json()["errors"]
    assert error["field"] == f"query.{name}"
    assert words in error["message"]


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"query": "x", "mode": "magic"}, 400, "unknown mode"),
        ({"query": "   "}, 400, "empty"),
        ({"query": "x", "mode": "hybrid", "level": 0}, 400, "level goes with mode graph_global, not with hybrid"),
        ({"query": "x", "mode": "auto", "summaries": "file"}, 400, "summaries goes with mode two_step, not with auto"),
        ({"query": "x", "filters": ["colour=red"]}, 400, "unknown field"),
        (
            {"query": "x", "filters": ["folder=設計書"]},
            400,
            "no document has folder 設計書; did you mean sample/設計書?",
        ),
        ({"query": "x", "k": 0}, 422, "body.k"),
        ({"query": "x", "surprise": 1}, 422, "body.surprise"),
        ({"query": "x", "filters": {"format": "xlsx"}}, 422, 'body.filters: expected a list, as in ["format=xlsx"]'),
        ({}, 422, "body.query"),
    ],
)
def test_what_is_wrong_with_a_search_is_told(
    api: httpx.Client, asked: dict[str, object], status: int, words: str
) -> None:
    response = api.post("/search", json=asked)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert told["status"] == status
    assert words in told["detail"]
    assert told["request_id"] == response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        ('{"query": "x"}', "application/x-www-form-urlencoded", "header Content-Type: application/json"),
        ('{"query": "x",}', "application/json", "body: not JSON, at character 14: "),
        ('["x"]', "application/json", "body: Input should be"),
    ],
)
def test_a_body_that_is_no_object_of_json_is_told(api: httpx.Client, content: str, kind: str, words: str) -> None:
    response = api.post("/search", content=content, headers={"Content-Type": kind})
    assert response.status_code == 422
    assert words in response.json()["detail"]


def test_an_answer_cites_its_sources(api: httpx.Client) -> None:
    answer = api.post("/ask", json={"question": QUESTION}).json()
    assert answer["answered"] is True
    numbers = {source["number"] for source in answer["sources"]}
    cited = [citation for sentence in answer["sentences"] for citation in sentence["citations"]]
    assert cited
    assert all(citation["number"] in numbers and citation["supported"] for citation in cited)


@pytest.mark.parametrize(("stream", "accept"), [(True, "*/*"), (False, "text/event-stream")])
def test_an_answer_comes_as_events(api: httpx.Client, stream: bool, accept: str) -> None:
    response = api.post("/ask", json={"question": QUESTION, "stream": stream}, headers={"accept": accept})
    assert response.headers["content-type"].startswith("text/event-stream")
    told = events(response.text)
    names = [name for name, _ in told]
    assert names[0] == "evidence"
    assert names[-1] == "answer"
    assert set(names[1:-1]) <= {"text"}
    whole = api.post("/ask", json={"question": QUESTION}).json()
    assert told[-1][1]["answer"] == whole["answer"]


def test_what_is_wrong_with_a_question_is_a_plain_response_even_where_events_are_asked_for(api: httpx.Client) -> None:
    response = api.post("/ask", json={"question": "x", "mode": "magic", "stream": True})
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"


def test_the_log_tells_of_requests_and_not_of_their_text(api: httpx.Client, server: RunningServer) -> None:
    secret = "秘密の問い合わせ文"
    given = {"x-request-id": "told-by-a-test"}
    api.post("/search", json={"query": secret, "filters": ["folder=sample"]}, headers=given)
    api.get(f"/documents/{secret}", headers=given)
    api.post("/search", json={"query": secret, "mode": "magic"}, headers=given)
    give_up = time.monotonic() + 10
    lines: list[dict[str, Any]] = []
    while len(lines) < 3 and time.monotonic() < give_up:  # a line is written when its response has been sent
        lines = [line for line in server.log_lines() if line.get("request_id") == "told-by-a-test"]
    assert [(line["route"], line["status"]) for line in lines] == [
        ("/api/v1/search", 200),
        ("/api/v1/documents/{document_id:id}", 404),
        ("/api/v1/search", 400),
    ]
    assert lines[0]["mode"] == "auto"
    assert secret not in server.log.read_text("utf-8")


def test_figures_tell_time_by_mode_and_errors(api: httpx.Client, server: RunningServer) -> None:
    api.get("/search", params={"q": "顧客", "mode": "fulltext"})
    api.get("/search", params={"q": "顧客", "mode": "magic"})
    give_up, figures = time.monotonic() + 10, ""
    while 'rag_errors_total{cause="QueryError"}' not in figures and time.monotonic() < give_up:
        figures = httpx.get(f"{server.url}/metrics").text
    assert 'rag_search_seconds_bucket{kind="search",le="10.0",mode="fulltext"}' in figures
    assert 'rag_errors_total{cause="QueryError"}' in figures
    assert "magic" not in figures
    assert "rag_snapshot 1.0" in figures
