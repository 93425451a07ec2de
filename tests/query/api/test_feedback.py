"""Thumbs on answers and clicks on results: what is written, where, and what is refused."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from api_server import MakeClient

from rag_assets.cli.serving import serve_options
from rag_assets.evaluation import clicks
from rag_assets.evaluation.clicks import Click, add_click, read_clicks
from rag_assets.evaluation.questions import (
    MOST_DRAFTS,
    Evidence,
    Question,
    accept_questions,
    question_line,
    read_questions,
)
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import clicks_file, feedback_file
from rag_assets.pipeline.settings import load_settings

URL, CLICKS = "/api/v1/feedback", "/api/v1/clicks"
CITED = {"document_id": "specs/a.md", "page_number": 3, "page_name": None, "cell_range": None, "quote": "30 minutes"}


def rated(question: str, *, good: bool, **more: Any) -> dict[str, Any]:
    return {"question": question, "good": good, "answer": "30 minutes", "citations": [CITED], **more}


def test_what_a_thumb_says_is_a_draft_with_its_evidence_or_a_note(
    sample: Home, make_client: MakeClient, tmp_path: Path
) -> None:
    path = tmp_path / "set" / "feedback.jsonl"
    client = make_client(sample, replace(serve_options(sample, "127.0.0.1"), feedback=path))
    assert client.get(URL).json() == {"enabled": True}
    asked = [
        rated("How long is a token of the service valid?", good=True, history=["Which token?"]),
        rated("どのくらい？", good=False),
        rated("Where?", good=True, answered=False),
        rated("Who?", good=False, answered=False),
    ]
    ids = [client.post(URL, json=each).json()["question_id"] for each in asked]
    right, wrong, refused, missed = read_questions(path)
    assert [each.id for each in (right, wrong, refused, missed)] == ids
    assert right == Question(
        *(ids[0], "How long is a token of the service valid?", "en", "feedback", True),
        *((Evidence("specs/a.md", "page 3", "30 minutes"),), (("30 minutes",),), ("Which token?",)),
        note="right: 30 minutes",
        draft=True,
    )
    assert (wrong.language, wrong.evidence, wrong.answer_contains, wrong.note) == ("ja", (), (), "wrong: 30 minutes")
    assert (refused.answerable, missed.answerable) == (False, True)
    accept_questions(path, [ids[0]])
    assert (
        client.post(
            URL, json=rated("How long is a token of the service valid?", good=False, history=["Which token?"])
        ).json()["question_id"]
        == ids[0]
    )
    assert read_questions(path)[0] == replace(right, draft=False)


def test_thumbs_of_many_at_once_are_all_written(sample: Home, make_client: MakeClient, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(question_line(Question("mine", "Mine?")) + "\n", encoding="utf-8")
    client = make_client(sample, replace(serve_options(sample, "127.0.0.1"), feedback=path))
    threads = [
        threading.Thread(target=client.post, args=(URL,), kwargs={"json": rated(f"Question {number}?", good=True)})
        for number in range(12)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {each.text for each in read_questions(path)} == {"Mine?", *(f"Question {number}?" for number in range(12))}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_pages_of_other_sites_write_nothing(
    sample: Home, make_client: MakeClient, tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    path = tmp_path / "questions.jsonl"
    client = make_client(sample, replace(serve_options(sample, "127.0.0.1"), feedback=path))
    assert client.post(URL, json=rated("How?", good=True), headers=headers).status_code == status
    assert path.exists() is (status == 200)


def test_what_is_too_long_switched_off_or_cannot_be_written_is_refused(
    sample: Home, make_client: MakeClient, tmp_path: Path
) -> None:
    options = serve_options(sample, "127.0.0.1")
    client = make_client(sample, replace(options, feedback=tmp_path / "questions.jsonl"))
    long = [rated("x" * 2_001, good=True), rated("?", good=True, citations=[CITED] * 21), rated(" ", good=True)]
    assert [client.post(URL, json=each).status_code for each in long] == [422] * 3
    off = make_client(sample, replace(options, feedback=None))
    assert off.get(URL).json() == {"enabled": False}
    refused = off.post(URL, json=rated("How?", good=True))
    assert (refused.status_code, "evaluation.feedback" in refused.json()["detail"]) == (403, True)
    (tmp_path / "file").write_text("", encoding="utf-8")
    blocked = make_client(sample, replace(options, feedback=tmp_path / "file" / "questions.jsonl"))
    told = blocked.post(URL, json=rated("How?", good=True))
    assert (told.status_code, str(tmp_path) in told.text) == (503, False)
    full = tmp_path / "full.jsonl"
    lines = (question_line(Question(f"q{number}", "Is it?", draft=True)) for number in range(MOST_DRAFTS))
    full.write_text("\n".join(lines), encoding="utf-8")
    told = make_client(sample, replace(options, feedback=full)).post(URL, json=rated("How?", good=True))
    assert (told.status_code, str(tmp_path) in told.text) == (503, False)


def test_drafts_go_to_the_question_set_or_into_the_home(tmp_path: Path) -> None:
    def chosen(**evaluation: Any) -> Path | None:
        return feedback_file(Home(load_settings(home=tmp_path, evaluation=evaluation)))

    assert chosen(questions=tmp_path / "mine.jsonl") == tmp_path / "mine.jsonl"
    assert chosen() == chosen(questions=tmp_path / "mine.csv") == tmp_path / "evaluation" / "feedback.jsonl"
    assert chosen(questions=tmp_path / "mine.jsonl", feedback=False) is None


def test_an_opened_result_is_written_down_and_nothing_of_who_opened_it(
    sample: Home, make_client: MakeClient, tmp_path: Path
) -> None:
    path = tmp_path / "evaluation" / "clicks.jsonl"
    client = make_client(sample, replace(serve_options(sample, "127.0.0.1"), clicks=path))
    opened = {"question": " Which token? ", "result": "a.md#1.2", "above": ["a.md#1.0", "b.md#1.0"]}
    assert client.post(CLICKS, json=opened).json() == {"rank": 3}
    assert client.post(CLICKS, json={"question": "有効期限は？", "result": "c.md#1.0"}).json() == {"rank": 1}
    first, second = read_clicks(path)
    assert first == Click("Which token?", "a.md#1.2", ("a.md#1.0", "b.md#1.0"), first.time)
    assert second.above == ()
    assert datetime.now(UTC) - datetime.fromisoformat(first.time) < timedelta(minutes=5)
    written = json.loads(path.read_text("utf-8").splitlines()[0])
    assert written.keys() == {"question", "result", "above", "time", "rank"}
    path.write_text("no click\n" + path.read_text("utf-8").splitlines()[1], encoding="utf-8")  # a person deletes one
    assert read_clicks(path) == [second]


def test_what_is_no_click_costs_none_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    first = Click("Which\u2028token?", "a.md#1.2", (), "2026-11-25T00:00:00+00:00")
    second = replace(first, question="有効期限は？")
    add_click(path, first)
    path.write_bytes(path.read_bytes() + b'\xff\n{"question": "cut')
    add_click(path, second)
    assert read_clicks(path) == [first, second]


def test_clicks_of_many_at_once_are_all_written(sample: Home, make_client: MakeClient, tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    client = make_client(sample, replace(serve_options(sample, "127.0.0.1"), clicks=path))
    opened = [{"question": f"Question {number}?", "result": "a.md#1.0"} for number in range(12)]
    with ThreadPoolExecutor(12) as threads:
        assert {found.status_code for found in threads.map(lambda each: client.post(CLICKS, json=each), opened)} == {
            200
        }
    assert {each.question for each in read_clicks(path)} == {each["question"] for each in opened}


def test_clicks_that_are_too_long_switched_off_or_cannot_be_written_are_refused(
    sample: Home, make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, click = serve_options(sample, "127.0.0.1"), {"question": "How?", "result": "a.md#1.0"}
    path = tmp_path / "clicks.jsonl"
    client = make_client(sample, replace(options, clicks=path))
    for change in (
        {"question": " "},
        {"question": "x" * 2_001},
        {"result": ""},
        {"above": ["a"] * 101},
        {"user": "me"},
    ):
        assert client.post(CLICKS, json=click | change).status_code == 422
    assert client.post(CLICKS, json=click, headers={"origin": "https://evil.example"}).status_code == 403
    assert not path.exists()
    off = make_client(sample, replace(options, clicks=None)).post(CLICKS, json=click)
    assert (off.status_code, "evaluation.feedback" in off.json()["detail"]) == (403, True)
    (tmp_path / "file").write_text("", encoding="utf-8")
    blocked = make_client(sample, replace(options, clicks=tmp_path / "file" / "clicks.jsonl")).post(CLICKS, json=click)
    assert (blocked.status_code, str(tmp_path) in blocked.text) == (503, False)
    monkeypatch.setattr(clicks, "MOST_BYTES", 10)
    assert [client.post(CLICKS, json=click).status_code for _ in range(2)] == [200, 503]
    assert len(read_clicks(path)) == 1


def test_clicks_go_into_the_home_where_feedback_is_taken(tmp_path: Path) -> None:
    assert clicks_file(Home(load_settings(home=tmp_path))) == tmp_path / "evaluation" / "clicks.jsonl"
    assert clicks_file(Home(load_settings(home=tmp_path, evaluation={"feedback": False}))) is None
