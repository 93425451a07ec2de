"""Questions about the whole collection, asked as people that a model thinks of."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted_model import ScriptedModel

from rag_assets.cli import main
from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request, Usage
from rag_assets.evaluation.evidence import Corpus
from rag_assets.evaluation.personas import PERSONAS_STEP, persona_questions
from rag_assets.evaluation.questions import GLOBAL_TYPE, Question, question_line, read_questions
from rag_assets.models.structured import StructuredModel


def script(request: Request) -> JsonValue:
    if request.tag.step == PERSONAS_STEP:
        return {
            "personas": [
                {"description": who, "tasks": ["受注の流れを知る", "障害に備える"]} for who in ("新人", "監査人")
            ]
        }
    person, task = re.findall(r"<person-\w+>\n(.+)\n(.+)\n", request.messages[0].text)[0]
    return {"questions": [f"{person}は{task}ために何を見るか。", "全体の主題は何か。"]}


def test_every_task_of_every_persona_asks(corpus: Corpus, tmp_path: Path) -> None:
    model = ScriptedModel(script, reverse=True)
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
        return script(request)

    drafts = persona_questions(corpus.stored, StructuredModel(ScriptedModel(refusing)), (2, 2, 2))
    assert len(drafts) == 3
    with pytest.raises(ModelError, match="names no personas: refused"):
        persona_questions(
            corpus.stored,
            StructuredModel(ScriptedModel(lambda request: Completion(request, Outcome.REFUSED, "", Usage(1, 1)))),
            (2, 2, 2),
        )


def test_personas_need_a_model(sample_home: Path, tmp_path: Path) -> None:
    arguments = ["--home", str(sample_home), "questions", "new", str(tmp_path / "q.jsonl"), "--personas", "5", "5", "5"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "--personas needs a language model: set RAG_LANGUAGE_MODEL__PROVIDER" in result.stderr
