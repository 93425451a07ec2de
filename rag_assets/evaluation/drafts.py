"""Draft questions from the documents of a published version, for a person to accept.

They come from the questions that indexing derived, and from rows of tables, asked by name and by name and code. Each
names its place by document and quote, so that it stays what it is when the documents are indexed anew. Those about the
whole collection are written by a language model: K personas with N tasks each, M questions a task.

Source: Edge et al., "From Local to Global: A Graph RAG Approach to Query-Focused Summarization" (2024), section 3.1
(personas). Deviation: the description of the collection is written by no person but taken from its summaries.
"""

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import JsonValue, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, FILE_SUMMARIES, PAGES, SYNTHETIC_QA, Table
from rag_assets.enrich.questions.candidates import is_apart
from rag_assets.enrich.questions.texts import document_subject
from rag_assets.evaluation.evidence import Corpus, Level, Target, folded
from rag_assets.evaluation.questions import GLOBAL_TYPE, Evidence, Question
from rag_assets.models.prompts import fenced, prompted
from rag_assets.query.stored import StoredTables
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens

SYNTHETIC_TYPE = "synthetic"
ROW_TYPE = "row_lookup"
CODE_TYPE = "name_and_code"
_DOCUMENTS_READ = 200  # that questions are drafted from; more would be read for nothing
_CANDIDATES = 3  # for each question wanted, as the quotes of some stand in no passage as a whole
_VALUE_CHARS = 60  # of an answer that can be looked for as it stands
_NAME_CHARS = (2, 40)
_QUOTE_CHARS = 80
_CODE = re.compile(r"(?=.*[A-Za-z])(?=.*[0-9])[A-Za-z0-9][A-Za-z0-9_.\-]{2,23}")
_SENTENCE = re.compile(r"[。、，！？!?;；]|\. ")
_SAYS = re.compile(r"[^\W_〇]")  # more than a mark, as in ○ or -
_REMARKS = (
    r"(?:備考|説明|補足|摘要|注記|コメント|remarks?|notes?|comments?|descriptions?)"  # say nothing as names of rows
)
_IS_REMARKS = re.compile(_REMARKS, re.IGNORECASE)
_ASKS_REMARKS = re.compile(rf"[「“]{_REMARKS}[」”]", re.IGNORECASE)
_FILLED_IN = re.compile(
    r"(?:記述|記載|記入|入力)(?:例|方法|要領)|を(?:記述|記載|記入|入力)する|how to fill in", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{2}")
_TITLE_PARTS = re.compile("[_＿]")
_TELLS_APART = re.compile(r"[^\W\d_]{2}|\d{4}")  # a word or a date, and no number of a file alone
_ASKED = {
    "ja": ("「{title}」で、{name}の{header}は何ですか？", "「{title}」で、{code}（{name}）の{header}は何ですか？"),
    "en": ("In {title}, what is the {header} of {name}?", "In {title}, what is the {header} of {code} ({name})?"),
}

PERSONAS_STEP = "describe_personas"
QUESTIONS_STEP = "ask_as_persona"
_ASSET = "evaluation"
_DESCRIBING = 60  # documents that describe a collection, evenly spread over its paths
_DESCRIPTION_TOKENS = 3000
_TEXT: JsonValue = {"type": "string", "minLength": 1, "maxLength": 240}
_TOKENS_EACH = 150  # of an answer, for each text asked for: three times what the prompt allows


@dataclass(frozen=True)
class _Row:
    """A row of a table that can be asked for."""

    name: str
    code: str
    header: str
    value: str
    quote: str
    cell_range: str


def draft_questions(corpus: Corpus, count: int, taken: Sequence[Question] = (), seed: int = 0) -> list[Question]:
    """Draft a set, spread over documents and kinds.

    Args:
        corpus: The version.
        count: Questions wanted; fewer where the documents give fewer.
        taken: Questions that there are; none of them is drafted again.
        seed: Which documents and rows are chosen.

    Returns:
        Drafts, whose evidence the version holds in a passage; their ids differ from those of `taken`.

    Raises:
        StoreError: A file is missing or damaged.
    """
    chance = random.Random(seed)  # noqa: S311 - a choice, not a secret
    rows = corpus.stored.read(DOCUMENTS, ("document_id", "title", "language")).to_pylist()
    documents = {row["document_id"]: row for row in rows}
    document_ids = sorted(documents)
    chance.shuffle(document_ids)
    document_ids = document_ids[:_DOCUMENTS_READ]
    rows = corpus.stored.read(PAGES, ("page_id", "page_name", "page_number", "role"), document_ids).to_pylist()
    pages = {row["page_id"]: row["page_name"] or f"page {row['page_number']}" for row in rows}
    content = {
        row["page_id"]: pages[row["page_id"]]
        for row in rows
        if row["role"] is None and not is_apart(row["page_name"] or "")
    }
    kinds = (
        _synthetic(corpus, document_ids, documents, pages),
        _from_rows(corpus, document_ids, documents, content, chance),
    )
    texts, facts = {question.text for question in taken}, _Facts(taken)
    free = _free_ids("q", taken)
    drafts: list[Question] = []
    for draft in _in_turns(*kinds):
        if len(drafts) < _CANDIDATES * count and draft.text not in texts and draft not in facts:
            texts.add(draft.text)
            facts.add(draft)
            drafts.append(replace(draft, id=next(free)))
    targets = corpus.targets(drafts)

    def is_held(target: Target) -> bool:
        return not target.gone and not target.missing[Level.PASSAGE]

    return [draft for draft in drafts if is_held(targets[draft.id])][:count]


def _free_ids(letter: str, questions: Sequence[Question]) -> Iterator[str]:
    """Ids that none of some questions has, as in `q0001`."""
    ids = {question.id for question in questions}
    return (key for number in itertools.count(1) if (key := f"{letter}{number:04}") not in ids)


class _Facts:
    """What questions are about, so that none is drafted twice in other words."""

    def __init__(self, questions: Iterable[Question]) -> None:
        self._quotes: set[frozenset[tuple[str, str]]] = set()
        self._cells: dict[tuple[str, tuple[str, ...]], list[frozenset[str]]] = {}  # of quotes, by document and answer
        for question in questions:
            self.add(question)

    def __contains__(self, question: Question) -> bool:
        """Whether another one has its quotes; or its answer, and all cells that it quotes from the document or more."""
        return _quoted(question) in self._quotes or any(
            cells <= known_cells or known_cells <= cells
            for key, cells in _answered(question)
            for known_cells in self._cells.get(key, ())
        )

    def add(self, question: Question) -> None:
        self._quotes.add(_quoted(question))
        for key, cells in _answered(question):
            self._cells.setdefault(key, []).append(cells)


def _quoted(question: Question) -> frozenset[tuple[str, str]]:
    return frozenset((evidence.document, folded(evidence.quote)) for evidence in question.evidence)


def _answered(question: Question) -> Iterator[tuple[tuple[str, tuple[str, ...]], frozenset[str]]]:
    """Document and answer of a question, and the cells that it quotes, for each evidence; nothing without an answer."""
    answers = tuple(folded(answer) for group in question.answer_contains for answer in group)
    for evidence in question.evidence if answers else ():
        yield (evidence.document, answers), frozenset(map(folded, evidence.quote.split(CELL_SIGN)))


def _synthetic(
    corpus: Corpus, documents: Sequence[str], titles: Mapping[str, Mapping[str, str]], pages: Mapping[str, str]
) -> Iterator[Question]:
    """The best derived questions of each document, in turns; none of a note on how something is filled in. Where one
    names its document by a part of its title, it has all of it, which tells it from others.
    """
    texts = {row["chunk_id"]: row for row in _rows(corpus, CHUNKS, ("chunk_id", "page_id", "text"), documents)}
    columns = ("document_id", "question", "answer", "chunk_ids", "grade", "indexed", "language")
    of_document: dict[str, list[Question]] = {}
    notes: dict[str, list[str]] = {}
    for block in _rows(corpus, BLOCKS, ("document_id", "kind", "text"), documents):
        if block["kind"] == "note" and _FILLED_IN.search(block["text"]):
            notes.setdefault(block["document_id"], []).append(folded(block["text"]))
    rows = (row for row in _rows(corpus, SYNTHETIC_QA, columns, documents) if row["indexed"])
    for row in sorted(rows, key=lambda row: (-row["grade"], row["question"])):
        chunk = texts[row["chunk_ids"][0]]
        quote, answer = _quote(row["answer"], chunk["text"]), one_line(row["answer"])
        is_of_note = any(folded(answer) in note for note in notes.get(row["document_id"], ()))
        if is_of_note or _ASKS_REMARKS.search(row["question"]):
            continue
        groups = ((answer,),) if len(answer) <= _VALUE_CHARS else ()
        evidence = Evidence(row["document_id"], pages[chunk["page_id"]], quote)
        text = _with_whole_title(row["question"], row["document_id"], titles[row["document_id"]])
        draft = Question("draft", text, row["language"], SYNTHETIC_TYPE, True, (evidence,), groups, draft=True)
        of_document.setdefault(row["document_id"], []).append(draft)
    yield from _in_turns(*(of_document[key] for key in documents if key in of_document))


def _with_whole_title(question: str, document_id: str, facts: Mapping[str, str]) -> str:
    """A Japanese question that begins with a part of the title of its document, with all of it."""
    title = facts["title"]
    subject, kind = document_subject(document_id, title, facts["language"])
    name = subject or kind
    left = [part for part in _TITLE_PARTS.split(title) if part not in question and _TELLS_APART.search(part)]
    if facts["language"] != "ja" or not name or not left or not question.startswith((f"{name}の", f"{name}で")):
        return question
    rest = question.removeprefix(f"{name}の{kind}" if kind and question.startswith(f"{name}の{kind}") else name)
    return f"「{title}」{rest}"


def _quote(answer: str, passage: str) -> str:
    """Words of a passage that an answer rests on: the answer, where it stands there, else its first long line."""
    if folded(answer) in folded(passage):
        return one_line(answer)[:_QUOTE_CHARS]
    lines = [one_line(line) for line in passage.splitlines() if line.strip()]
    return next((line for line in lines if len(line) >= 10), lines[0])[:_QUOTE_CHARS]


def _from_rows(
    corpus: Corpus,
    documents: Sequence[str],
    titles: Mapping[str, Mapping[str, str]],
    pages: Mapping[str, str],
    chance: random.Random,
) -> Iterator[Question]:
    """Rows of tables, a row a table and a table a document in turns, by name and by name and code."""
    of_document: dict[str, list[Question]] = {}
    columns = ("document_id", "page_id", "kind", "section", "rows", "header_row_count")
    for block in _rows(corpus, BLOCKS, columns, documents):
        if block["kind"] != "table" or not block["header_row_count"] or block["page_id"] not in pages:
            continue
        if any(map(is_apart, block["section"] or ())):
            continue
        rows = _askable_rows(block["rows"], block["header_row_count"], chance)
        if not rows:
            continue
        row, facts = chance.choice(rows), titles[block["document_id"]]
        language = "ja" if facts["language"] == "ja" else "en"
        form = _ASKED[language][bool(row.code)]
        text = form.format(title=facts["title"], name=row.name, header=row.header, code=row.code)
        evidence = Evidence(block["document_id"], pages[block["page_id"]], row.quote, row.cell_range)
        kind = CODE_TYPE if row.code else ROW_TYPE
        draft = Question("draft", text, language, kind, True, (evidence,), ((row.value,),), draft=True)
        of_document.setdefault(block["document_id"], []).append(draft)
    yield from _in_turns(*(of_document[key] for key in documents if key in of_document))


def _in_turns(*questions: Iterable[Question]) -> Iterator[Question]:
    """The first of each, the second of each and so on."""
    for turn in itertools.zip_longest(*questions):
        yield from (question for question in turn if question is not None)


def _askable_rows(rows: Sequence[Mapping[str, Any]], headers: int, chance: random.Random) -> list[_Row]:
    """Rows with a name that no other row has, and a value under a header."""
    heads = [one_line(cell or "") for cell in rows[headers - 1]["cells"]]
    body = [([one_line(cell or "") for cell in row["cells"]], row["cell_range"] or "") for row in rows[headers:]]
    names = [_first(cells, _is_name) for cells, _ in body]
    counters = {at for at in range(len(heads)) if _counts_up([cells[at] for cells, _ in body if at < len(cells)])}
    askable = []
    for (cells, cell_range), name_at in zip(body, names, strict=True):
        if name_at is None:
            continue
        name, code_at = cells[name_at], _first(cells, lambda cell: bool(_CODE.fullmatch(cell)))
        if name in heads or _IS_REMARKS.fullmatch(name):
            continue
        if len(body) == 1 or sum(name in other_cells for other_cells, _ in body) > 1:
            continue
        values = [
            at
            for at, cell in enumerate(cells)
            if at not in {name_at, code_at, *counters} and at < len(heads) and heads[at] not in {"", heads[name_at]}
            if len(heads[at]) > 1 or not heads[at].isascii()
            if 0 < len(cell) <= _VALUE_CHARS and _SAYS.search(cell) and cells.count(cell) == 1
            if cell not in name + heads[at]
        ]
        if values:
            at = chance.choice(values)
            code = cells[code_at] if code_at is not None else ""
            quote = CELL_SIGN.join(cell for cell in cells[min(name_at, at) : max(name_at, at) + 1] if cell)
            askable.append(_Row(name, code, heads[at], cells[at], quote, cell_range))
    return askable


def _first(cells: Sequence[str], condition: Callable[[str], bool]) -> int | None:
    return next((at for at, cell in enumerate(cells) if condition(cell)), None)


def _counts_up(cells: Sequence[str]) -> bool:
    """Whether a column numbers the rows."""
    numbers = [int(cell) for cell in cells if cell.isdecimal()]
    return len(numbers) > 1 and all(later == before + 1 for before, later in itertools.pairwise(numbers))


def _is_name(cell: str) -> bool:
    least, most = _NAME_CHARS
    is_short = least <= len(cell) <= most and not _SENTENCE.search(cell)
    return is_short and bool(_WORD.search(cell)) and not _CODE.fullmatch(cell)


def _rows(corpus: Corpus, table: Table, columns: Sequence[str], documents: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = corpus.stored.read(table, columns, documents).to_pylist()
    return rows


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
    value: Any = answer.fields  # as the schema has it
    if value is None:
        raise ModelError(f"{model.name} names no personas: {answer.outcome.value}")
    requests: dict[str, tuple[Request, str]] = {}
    for persona in value["personas"]:
        for task in persona["tasks"]:
            person = f"{one_line(persona['description'])}\n{one_line(task)}"
            request = _questions_request(description, person, language, questions)
            requests[request.content_sha256] = request, person.replace("\n", ": ")
    new_questions: dict[str, list[str]] = {}
    for answer in model.generate([request for request, _ in requests.values()]):
        value = answer.fields
        if value is not None:
            new_questions[answer.request.content_sha256] = [one_line(text) for text in value["questions"]]
    seen_texts, free = {folded(question.text) for question in taken}, _free_ids("g", taken)
    drafts = []
    for key, (_, note) in requests.items():
        for question in itertools.islice(new_questions.get(key, ()), questions):
            if folded(question) not in seen_texts:
                seen_texts.add(folded(question))
                drafts.append(Question(next(free), question, language, GLOBAL_TYPE, note=note, draft=True))
    return drafts


def _described(stored: StoredTables) -> tuple[str, str]:
    """What documents there are, with summaries of some, and the language of most."""
    documents = stored.read(DOCUMENTS, ("document_id", "title", "language")).to_pylist()
    documents.sort(key=lambda row: str(row["document_id"]))
    sample = documents[:: -(-len(documents) // _DESCRIBING) or 1]
    rows = stored.read(FILE_SUMMARIES, ("document_id", "text"), [row["document_id"] for row in sample]).to_pylist()
    summaries = {row["document_id"]: one_line(row["text"]) for row in rows}
    lines = [f"{len(documents)} documents"]
    share = _DESCRIPTION_TOKENS // max(1, len(sample))
    for row in sample:
        line = ": ".join(filter(None, (row["document_id"], row["title"], summaries.get(row["document_id"], ""))))
        lines.append(f"- {cut_to_tokens(line, share)}")
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
    return prompted(Tag(_ASSET, step), language, _TOKENS_EACH * (texts + 1), values, values, {name: schema})
