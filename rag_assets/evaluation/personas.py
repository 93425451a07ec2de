"""Draft questions about the whole collection, by a language model: K personas with N tasks each, M questions a task.

Source: Edge et al., "From Local to Global: A Graph RAG Approach to Query-Focused Summarization" (2024), section 3.1.
Deviation: the description of the collection is written by no person but taken from its summaries.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import count, islice
from typing import Any

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Message, Outcome, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import DOCUMENTS, FILE_SUMMARIES
from rag_assets.evaluation.evidence import folded
from rag_assets.evaluation.questions import GLOBAL_TYPE, Question
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.query.stored import StoredTables
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens

PERSONAS_STEP = "describe_personas"
QUESTIONS_STEP = "ask_as_persona"
_ASSET = "evaluation"
_DOCUMENTS = 60  # that describe a collection, evenly spread over its paths
_DESCRIPTION_TOKENS = 3000
_TEXT: JsonValue = {"type": "string", "minLength": 1, "maxLength": 240}
_TOKENS_EACH = 150  # of an answer, for each text asked for: three times what the prompt allows


def persona_questions(
    stored: StoredTables,
    model: LanguageModel,
    counts: tuple[int, int, int] = (5, 5, 5),
    taken: Sequence[Question] = (),
) -> list[Question]:
    """Draft questions that need the whole collection.

    Args:
        stored: The tables of a published version.
        model: Writes the personas by one call, and the questions by one call a task.
        counts: Personas, tasks of each, and questions for each task.
        taken: Questions that there are; none of them is drafted again.

    Returns:
        Drafts without evidence, persona by persona; fewer than asked for where the model repeats itself or refuses.

    Raises:
        ModelError: The model failed, or names no persona.
        StoreError: A file is missing or damaged.
    """
    personas, tasks, questions = counts
    description, language = _described(stored)
    (answer,) = model.generate([_personas_request(description, language, personas, tasks)])
    value: Any = answer.value  # as the schema has it
    if answer.outcome is not Outcome.COMPLETED or not isinstance(value, dict):
        raise ModelError(f"{model.name} names no personas: {answer.outcome.value}")
    asked: dict[str, tuple[Request, str]] = {}
    for persona in value["personas"]:
        for task in persona["tasks"]:
            person = f"{one_line(persona['description'])}\n{one_line(task)}"
            one = _questions_request(description, person, language, questions)
            asked[one.content_sha256] = one, person.replace("\n", ": ")
    written: dict[str, list[str]] = {}
    for answer in model.generate([one for one, _ in asked.values()]):
        value = answer.value
        if answer.outcome is Outcome.COMPLETED and isinstance(value, dict):
            written[answer.request.content_sha256] = [one_line(each) for each in value["questions"]]
    seen, ids = {folded(each.text) for each in taken}, {each.id for each in taken}
    free = (key for key in (f"g{number:04}" for number in count(1)) if key not in ids)
    drafts = []
    for key, (_, note) in asked.items():
        for question in islice(written.get(key, ()), questions):
            if folded(question) not in seen:
                seen.add(folded(question))
                drafts.append(Question(next(free), question, language, GLOBAL_TYPE, note=note, draft=True))
    return drafts


def _described(stored: StoredTables) -> tuple[str, str]:
    """What documents there are, with summaries of some, and the language of most."""
    documents = stored.read(DOCUMENTS, ("document_id", "title", "language")).to_pylist()
    documents.sort(key=lambda row: str(row["document_id"]))
    chosen = documents[:: -(-len(documents) // _DOCUMENTS) or 1]
    rows = stored.read(FILE_SUMMARIES, ("document_id", "text"), [row["document_id"] for row in chosen]).to_pylist()
    summaries = {row["document_id"]: one_line(row["text"]) for row in rows}
    lines = [f"{len(documents)} documents"]
    share = _DESCRIPTION_TOKENS // max(1, len(chosen))
    for row in chosen:
        said = ": ".join(filter(None, (row["document_id"], row["title"], summaries.get(row["document_id"], ""))))
        lines.append(f"- {cut_to_tokens(said, share)}")
    japanese = sum(row["language"] == "ja" for row in documents) * 2 >= len(documents)
    return "\n".join(lines), "ja" if japanese else "en"


def _personas_request(description: str, language: str, personas: int, tasks: int) -> Request:
    persona = object_schema({"description": _TEXT, "tasks": _list_of(_TEXT, tasks)})
    values = {"personas": str(personas), "tasks": str(tasks), "document": fenced(description, "collection")}
    return _request(PERSONAS_STEP, language, values, "personas", _list_of(persona, personas), personas * (tasks + 1))


def _questions_request(description: str, person: str, language: str, questions: int) -> Request:
    fences = {"person": fenced(person, "person"), "document": fenced(description, "collection")}
    values = {"questions": str(questions), **fences}
    return _request(QUESTIONS_STEP, language, values, "questions", _list_of(_TEXT, questions), questions)


def _list_of(item: JsonValue, length: int) -> JsonValue:
    return {"type": "array", "minItems": 1, "maxItems": length, "items": item}


def _request(step: str, language: str, values: Mapping[str, str], name: str, schema: JsonValue, texts: int) -> Request:
    prompt = load_prompt(step, language)
    return Request(
        prefix=prompt.prefix.substitute(values),
        messages=(Message("user", prompt.question.substitute(values)),),
        max_tokens=_TOKENS_EACH * (texts + 1),
        tag=Tag(_ASSET, step),
        schema=json.dumps(object_schema({name: schema}), ensure_ascii=False),
    )
