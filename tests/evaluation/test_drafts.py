"""Questions drafted from the sample, accepted, and stale when their evidence is gone; and those about the whole
collection, asked as people that a model thinks of.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from graph_data import record, write
from scripted_model import ScriptedModel

from rag_assets.cli import main
from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request, Usage
from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES, SYNTHETIC_QA, Table
from rag_assets.evaluation.drafts import (
    CODE_TYPE,
    PERSONAS_STEP,
    ROW_TYPE,
    SYNTHETIC_TYPE,
    draft_questions,
    persona_questions,
)
from rag_assets.evaluation.evidence import Corpus, Level, folded
from rag_assets.evaluation.questions import GLOBAL_TYPE, Question, question_line, read_questions
from rag_assets.models.structured import StructuredModel
from rag_assets.query.stored import StoredTables
from rag_assets.store.lake import Lake, shard_of


def run(home: Path, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "questions", *map(str, arguments)])


def test_drafts_name_what_the_documents_hold(corpus: Corpus) -> None:
    drafts = draft_questions(corpus, 40)
    assert {draft.type for draft in drafts} == {SYNTHETIC_TYPE, ROW_TYPE, CODE_TYPE}
    assert {draft.language for draft in drafts} == {"ja", "en"}
    assert all(draft.draft for draft in drafts)
    assert len({draft.id for draft in drafts}) == len({draft.text for draft in drafts}) == len(drafts)
    targets = corpus.targets(drafts)
    assert not any(target.missing[Level.PASSAGE] for target in targets.values())
    for draft in (each for each in drafts if each.type != SYNTHETIC_TYPE):
        ((answer,),) = draft.answer_contains
        assert folded(answer) in folded(draft.evidence[0].quote)
        title, _, asked = draft.text.partition("」" if draft.language == "ja" else ", ")
        assert answer not in asked, title


@pytest.mark.parametrize(("passage", "count"), [("{0} | {0} | {0}", 1), ("{0} |  | ", 0)])
def test_a_row_is_drafted_only_where_its_words_stand_in_a_passage(tmp_path: Path, passage: str, count: int) -> None:
    place = {"document_id": "s/a.xlsx", "page_id": "s/a.xlsx#1", "page_number": 1, "page_name": "Sheet"}
    place["shard"] = shard_of("s/a.xlsx")
    staff = {"bolt": "Suzuki", "gear": "Tanaka", "spring": "Ito"}
    cells = [["name", "March", "April", "May", "term"]]
    cells += [[name, who, who, who, f"{days} days"] for days, (name, who) in enumerate(staff.items(), start=5)]
    rows = [{"cells": row, "cell_range": f"A{number}:E{number}"} for number, row in enumerate(cells, start=1)]
    text = "\n".join(" | ".join(row) for row in cells)
    for who in staff.values():
        text = text.replace(f"{who} | {who} | {who}", passage.format(who))
    lake = Lake(tmp_path)
    write(lake, DOCUMENTS, [record(DOCUMENTS, **place, title="a", language="en")])
    write(lake, PAGES, [record(PAGES, **place, text=text)])
    write(lake, BLOCKS, [record(BLOCKS, **place, kind="table", header_row_count=1, rows=rows)])
    write(lake, CHUNKS, [record(CHUNKS, **place, chunk_id="s/a.xlsx#1.0", text=text, cell_range="A1:E4")])
    write(lake, SYNTHETIC_QA, [])
    versions = {each.name: lake.latest(each) for each in (DOCUMENTS, PAGES, BLOCKS, CHUNKS, SYNTHETIC_QA)}
    assert len(draft_questions(Corpus(StoredTables(lake, versions)), 5)) == count


def test_no_draft_asks_how_a_form_is_filled_in_nor_the_same_again(tmp_path: Path) -> None:
    place = {"document_id": "s/a.xlsx", "page_id": "s/a.xlsx#1", "page_number": 1, "page_name": "一覧"}
    place["shard"] = shard_of("s/a.xlsx")
    tables = {
        "1. 一覧": [
            "メッセージID | U | 必須 | 内容",
            "errors.limit | 1 D | 〇 | 上限を超えました。",
            "備考 | 2 D | 〇 | なし",
        ],
        "補足：記述方法の説明": ["項目 | 説明", "機能名 | 機能名を記入する。", "画面名 | 画面名を記入する。"],
    }
    blocks = []
    for index, (section, rows) in enumerate(tables.items()):
        cells = [{"cells": row.split(" | "), "cell_range": "A1:D1"} for row in rows]
        facts = {"kind": "table", "header_row_count": 1, "section": [section], "rows": cells, "text": "\n".join(rows)}
        blocks.append(record(BLOCKS, **place, block_index=index, **facts))
    note = "各項目行記述例\n逆キーの場合は、URとする。"
    blocks.append(record(BLOCKS, **place, block_index=2, kind="note", text=note))
    text = "\n".join(block["text"] for block in blocks)
    asked = {
        "メッセージID「errors.limit」の内容は何ですか。": "上限を超えました。",
        "逆キーの場合はどうすればよいですか。": "URとする。",
        "項目「備考」の内容は何ですか。": "備考 | 2 D",
    }
    derived = []
    for index, (question, answer) in enumerate(asked.items()):
        facts = {"question": question, "answer": answer, "indexed": True, "chunk_ids": ["s/a.xlsx#1.0"]}
        derived.append(record(SYNTHETIC_QA, **place, qa_id=question, qa_index=index, language="ja", **facts))
    lake = Lake(tmp_path)
    write(lake, DOCUMENTS, [record(DOCUMENTS, **place, title="a", language="ja")])
    write(lake, PAGES, [record(PAGES, **place, text=text)])
    write(lake, BLOCKS, blocks)
    write(lake, CHUNKS, [record(CHUNKS, **place, chunk_id="s/a.xlsx#1.0", text=text, cell_range="A1:D9")])
    write(lake, SYNTHETIC_QA, derived)
    versions = {each.name: lake.latest(each) for each in (DOCUMENTS, PAGES, BLOCKS, CHUNKS, SYNTHETIC_QA)}
    for seed in range(5):
        drafts = draft_questions(Corpus(StoredTables(lake, versions)), 5, seed=seed)
        assert [draft.text for draft in drafts] == ["メッセージID「errors.limit」の内容は何ですか。"]


@pytest.mark.parametrize(
    ("title", "subject", "named"),
    [
        ("打ち合わせ_20210718", "打ち合わせ", "「打ち合わせ_20210718」"),
        ("在庫管理_要件定義書", "在庫管理", "「在庫管理_要件定義書」"),
        ("03_出張旅費規程", "出張旅費規程", "出張旅費規程"),
    ],
)
def test_a_draft_names_its_document_by_its_whole_title(tmp_path: Path, title: str, subject: str, named: str) -> None:
    document, names = f"s/{title}.docx", {"page_id": "p#1", "page_name": "一覧"}
    place = {"document_id": document, "shard": shard_of(document), "page_number": 1, **names}
    text = "応募期間は9月6日から11月15日までとする。"
    asked = {"question": f"{subject}の応募期間はいつですか。", "answer": text, "indexed": True, "chunk_ids": ["p#1.0"]}
    tables: dict[Table, dict[str, Any]] = {
        DOCUMENTS: {"title": title, "language": "ja"},
        PAGES: {"text": text},
        BLOCKS: {"kind": "paragraph", "text": text},
        CHUNKS: {"chunk_id": "p#1.0", "text": text},
        SYNTHETIC_QA: {"qa_id": "q", "qa_index": 0, "language": "ja", **asked},
    }
    lake = Lake(tmp_path)
    for table, facts in tables.items():
        write(lake, table, [record(table, **place, **facts)])
    versions = {table.name: lake.latest(table) for table in tables}
    (draft,) = draft_questions(Corpus(StoredTables(lake, versions)), 5)
    assert draft.text == f"{named}の応募期間はいつですか。"


def test_another_seed_drafts_others_and_what_is_there_is_not_drafted_again(corpus: Corpus) -> None:
    first = draft_questions(corpus, 10)
    assert draft_questions(corpus, 10) == first
    more = draft_questions(corpus, 10, first)
    assert not {each.text for each in first} & {each.text for each in more}
    assert not {each.id for each in first} & {each.id for each in more}
    assert draft_questions(corpus, 10, seed=1) != first


def test_drafts_are_not_appended_to_csv(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text("question,answer,document\nWhat?,That.,a.md\n", encoding="utf-8")
    refused = run(tmp_path, "new", path)
    assert refused.exit_code == 2
    assert "drafts are written as JSON Lines: name a .jsonl file" in refused.stderr
    assert path.read_text(encoding="utf-8").count("\n") == 2


def test_drafts_are_accepted_and_nothing_else_in_the_file_changes(sample_home: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    own = {"id": "mine", "question": "What is the return policy?", "owner": "me"}
    path.write_text(json.dumps(own), encoding="utf-8")  # without a line break, and with a field of somebody's own
    assert run(sample_home, "new", path, "-n", 5).stdout.startswith(f"{path}: 5 drafts added")
    ids = [question.id for question in read_questions(path) if question.draft]
    assert len(ids) == 5
    assert run(sample_home, "accept", path, ids[1]).stdout == f"{path}: 1 accepted\n"
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert records[0] == own
    assert [record["id"] for record in records if record.get("draft")] == [ids[0], *ids[2:]]
    wrong = run(sample_home, "accept", path, ids[1])
    assert (wrong.exit_code, f"no draft has the id '{ids[1]}'" in wrong.stderr) == (1, True)
    assert run(sample_home, "accept", path).exit_code == 2
    assert run(sample_home, "accept", path, "--all").stdout == f"{path}: 4 accepted\n"
    assert run(sample_home, "new", path, "-n", 5).exit_code == 0
    assert len(read_questions(path)) == 11


def test_stale_questions_are_named(sample_home: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    assert run(sample_home, "new", path, "-n", 3).exit_code == 0
    fine = run(sample_home, "check", path)
    assert (fine.exit_code, fine.stdout) == (0, "3 questions, 3 of them drafts, 0 stale\n")
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    records[0]["evidence"][0]["quote"] = "words that nobody wrote"
    records[1]["evidence"][0]["document"] = "sample/gone.xlsx"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    stale = run(sample_home, "check", path)
    assert stale.exit_code == 1
    assert f"{records[0]['id']}: the quote is gone: " in stale.stdout
    assert f"{records[1]['id']}: the document is gone: sample/gone.xlsx" in stale.stdout
    assert "2 stale" in stale.stdout


def test_a_set_of_drafts_alone_is_not_measured(sample_home: Path, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    assert run(sample_home, "new", path, "-n", 1).exit_code == 0
    refused = CliRunner().invoke(main, ["--home", str(sample_home), "evaluate", str(path)])
    assert refused.exit_code == 1
    assert "all questions are drafts: accept them by `rag-assets questions accept`, or say --drafts" in refused.stderr


def personas(request: Request) -> JsonValue:
    if request.tag.step == PERSONAS_STEP:
        return {
            "personas": [
                {"description": who, "tasks": ["受注の流れを知る", "障害に備える"]} for who in ("新人", "監査人")
            ]
        }
    person, task = re.findall(r"<person-\w+>\n(.+)\n(.+)\n", request.messages[0].text)[0]
    return {"questions": [f"{person}は{task}ために何を見るか。", "全体の主題は何か。"]}


def test_every_task_of_every_persona_asks(corpus: Corpus, tmp_path: Path) -> None:
    model = ScriptedModel(personas, reverse=True)
    taken = [Question("g0002", "全体の主題は 何か。", type=GLOBAL_TYPE)]
    drafts = persona_questions(corpus.stored, StructuredModel(model), (2, 2, 2), taken)
    assert [each.id for each in drafts] == ["g0001", "g0003", "g0004", "g0005"]
    assert [each.note for each in drafts] == [
        f"{who}: {task}" for who in ("新人", "監査人") for task in ("受注の流れを知る", "障害に備える")
    ]
    assert {(each.type, each.draft, each.answerable, each.language) for each in drafts} == {
        (GLOBAL_TYPE, True, True, "ja")
    }
    described = model.asked[0].messages[0].text
    assert "顧客登録" in described
    assert "RECEIPT" in described
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(f"{question_line(each)}\n" for each in drafts), encoding="utf-8")
    assert read_questions(path) == drafts


def test_a_refused_task_is_left_out_and_no_persona_is_an_error(corpus: Corpus) -> None:
    def refusing(request: Request) -> Completion | JsonValue:
        if "障害に備える" in request.messages[0].text:
            return Completion(request, Outcome.REFUSED, "", Usage(1, 1))
        return personas(request)

    drafts = persona_questions(corpus.stored, StructuredModel(ScriptedModel(refusing)), (2, 2, 2))
    assert len(drafts) == 3
    with pytest.raises(ModelError, match="names no personas: refused"):
        persona_questions(
            corpus.stored,
            StructuredModel(ScriptedModel(lambda request: Completion(request, Outcome.REFUSED, "", Usage(1, 1)))),
            (2, 2, 2),
        )


def test_personas_need_a_model(sample_home: Path, tmp_path: Path) -> None:
    result = run(sample_home, "new", tmp_path / "q.jsonl", "--personas", 5, 5, 5)
    assert result.exit_code == 1
    assert "--personas needs a language model: set RAG_LANGUAGE_MODEL__PROVIDER" in result.stderr
