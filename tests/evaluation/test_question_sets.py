"""Sets of questions are read from each form, and what is wrong in them is named."""

import json
from pathlib import Path

import pytest

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.questions import Evidence, Question, question_line, read_questions

LINE = {
    "id": "d1",
    "lang": "ja",
    "type": "list",
    "question": "業種は？",
    "history": ["顧客とは？"],
    "answerable": True,
    "evidence": [{"document": "a.xlsx", "place": "ja", "cells": "P12:R14", "quote": "農業", "alternative": True}],
    "answer_contains": [["農業", "agriculture"]],
    "unknown": 1,
}


def test_a_line_of_json_and_back(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n\n", encoding="utf-8")
    (question,) = read_questions(path)
    evidence = Evidence("a.xlsx", "ja", "農業", "P12:R14", alternative=True)
    expected = Question("d1", "業種は？", "ja", "list", True, (evidence,), (("農業", "agriculture"),), ("顧客とは？",))
    assert question == expected
    assert json.loads(question_line(question)) == {key: value for key, value in LINE.items() if key != "unknown"}


def test_the_language_is_told_where_the_file_does_not_say_it(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"id": "1", "question": "トークンの有効期限は何分ですか"}\n', encoding="utf-8")
    assert read_questions(path)[0].language == "ja"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", "line 2: expected an object"),
        ('{"id": "2"}', "line 2: question: Field required"),
        ('{"id": "2", "question": "  "}', "line 2: question: "),
        (
            '{"id": "2", "question": "x", "evidence": [{"place": "1"}]}',
            r"line 2: evidence\.0\.document: Field required",
        ),
        (
            '{"id": "2", "question": "x", "answer_contain": []}',
            r"line 2: answer_contain: no such field; did you mean answer_contains\?",
        ),
        (
            '{"id": "2", "question": "x", "evidence": [{"document": "a"}, {"document": "a", "qoute": "y"}]}',
            r"line 2: evidence\.1\.qoute: no such field; did you mean quote\?",
        ),
        ('{"id": "2", "question": "x", "answerable": "no"}', 'line 2: answerable: expected true or false, found "no"'),
        ('{"id": "2", "question": "x", "draft": 1}', "line 2: draft: expected true or false, found 1"),
        (
            '{"id": "2", "question": "x", "answer_contains": ["128"]}',
            r'answer_contains\.0: expected a list, as in \[\["1000", "1,000"\], \["128"\]\]',
        ),
        ('{"id": "2", "question": "x", "history": "y"}', r'line 2: history: expected a list, as in \["Which port\?"\]'),
        ('{"id": "1", "question": "x"}', "two questions have the id '1'"),
        ('{"_id": "2", "text": "x"}', "need their judgements: give --qrels"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(f'{{"id": "1", "question": "x"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(QueryError, match=message) as error:
        read_questions(path)
    assert str(path) in str(error.value)


def test_fields_of_somebodys_own_are_left_alone(tmp_path: Path) -> None:
    own = {"notes": "n", "answer": "30", "language": "ja", "tags": [], "questions": 1, "_source": {"type": 1}}
    evidence = {"document": "a.md", "document_id": 5, "page": 3}
    path = tmp_path / "set.jsonl"
    line = {"id": "1", "question": "x", "lang": "en", "evidence": [evidence], **own}
    path.write_text(json.dumps(line), encoding="utf-8")
    assert read_questions(path) == [Question("1", "x", "en", evidence=(Evidence("a.md"),))]


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("question,answer,document\nHow long?,30 minutes,specs/token.xlsx\nWho?,,\n", encoding="utf-8-sig")
    first, second = read_questions(path)
    assert (first.id, first.text, first.answer_contains) == ("2", "How long?", (("30 minutes",),))
    assert first.evidence == (Evidence("specs/token.xlsx"),)
    assert (second.answerable, second.evidence, second.answer_contains) == (False, (), ())
    path.write_text("question,answer,document\n期限は？,30分,仕様.xlsx\n", encoding="cp932")  # as Excel does in Japan
    assert read_questions(path)[0].text == "期限は？"
    for encoding, name in (("utf-16", "期限"), ("euc_jp", "期限は何日ですか"), ("cp1252", "Größe")):
        path.write_text(f"question,answer,document\n{name}?,30,x.xlsx\n", encoding=encoding)
        assert read_questions(path)[0].text == f"{name}?"
    path.write_text("question,answer,document,qoute\nHow long?,30,x.xlsx,y\n", encoding="utf-8")
    with pytest.raises(QueryError, match=r"line 1: qoute: no such field; did you mean quote\?"):
        read_questions(path)
    path.write_text("question,answer\nHow long?,30\n", encoding="utf-8")
    with pytest.raises(QueryError, match="expected the columns question, answer and document, found"):
        read_questions(path)


@pytest.mark.parametrize(
    "qrels",
    [
        "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t0\nq2\td3\t1\n",
        "q1 0 d_1 2\nq1 0 d2 0\n\nq2 0 d3 1\n",
    ],
)
def test_beir_and_trec(tmp_path: Path, qrels: str) -> None:
    (tmp_path / "qrels").mkdir()
    lines = [{"_id": "q1", "text": "one"}, {"_id": "q2", "text": "two"}, {"_id": "q3", "text": "not judged"}]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    first, second = read_questions(tmp_path)
    assert (first.id, first.text, first.evidence[0].grade, len(first.evidence)) == ("q1", "one", 2, 1)
    assert second.evidence == (Evidence("d3"),)
    assert read_questions(tmp_path / "queries.jsonl", tmp_path / "qrels" / "test.tsv") == [first, second]


def test_own_metadata_of_beir_counts_until_somebody_judges_anew(tmp_path: Path) -> None:
    own = Question("q 1", "one", "en", "list", evidence=(Evidence("d.md", quote="x"),), answer_contains=(("y",),))
    metadata = {"rag_assets": {"question": json.loads(question_line(own)), "judged": {"d.md#1": 1, "d.md#2": 1}}}
    line = {"_id": "q 1", "text": "one", "metadata": metadata}
    (tmp_path / "queries.jsonl").write_text(json.dumps(line), encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("q 1\td.md#1\t1\nq 1\td.md#2\t1\n", encoding="utf-8")
    assert read_questions(tmp_path) == [own]
    (tmp_path / "qrels.tsv").write_text("q 1\td.md#2\t1\n", encoding="utf-8")
    assert read_questions(tmp_path)[0].evidence == (Evidence("d.md#2"),)


def test_wrong_judgements_are_named(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="is no BEIR folder: expected queries.jsonl"):
        read_questions(tmp_path)
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "one"}', encoding="utf-8")
    with pytest.raises(QueryError, match="holds no judgements"):
        read_questions(tmp_path)
    (tmp_path / "qrels.tsv").write_text("q1\td1\tvery\n", encoding="utf-8")
    with pytest.raises(QueryError, match="line 1: expected a query, a document and a grade"):
        read_questions(tmp_path)
    (tmp_path / "qrels.tsv").write_text("q2\td1\t1\n", encoding="utf-8")
    with pytest.raises(QueryError, match="q2 is judged, but is no query"):
        read_questions(tmp_path)


def test_an_empty_set_and_one_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(QueryError, match="holds no question"):
        read_questions(tmp_path / "set.jsonl")
    (tmp_path / "set.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(QueryError, match="cannot be read"):
        read_questions(tmp_path / "set.bin")
