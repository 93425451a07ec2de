"""Questions with what answers them: the sets that a knowledge base is measured by, as files.

A set is JSON Lines, a question a line; a folder in the form of BEIR; a BEIR `queries.jsonl` with judgements of TREC; or
CSV with the columns `question`, `answer` and `document`.
"""

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, Strict, StringConstraints, TypeAdapter, ValidationError

from rag_assets.contracts.errors import QueryError
from rag_assets.contracts.validation import problem_text
from rag_assets.parsing.plain.text import decode_text
from rag_assets.store.files import Lock, write_atomically
from rag_assets.text.language import detect_language

BEIR_FIELD = "rag_assets"  # of the metadata of a query: the question as it was, and the judgements that it had
GLOBAL_TYPE = "global"  # about the whole collection: no passage alone answers it
LIST_TYPE = "list"
MOST_DRAFTS = 10_000  # of a set that drafts are added to: more than a person reads
_MOST_ERROR_CHARS = 200
_LIKENESS = 0.8  # ratio from which a field is one misspelt: one letter of five, or two of ten
_LIST_FORMS = {
    "answer_contains": '[["1000", "1,000"], ["128"]]',
    "evidence": '[{"document": "specs/a.xlsx"}]',
    "history": '["Which port?"]',
}

_T = TypeVar("_T")
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Flag = Annotated[bool, Strict()]  # the text "no" is none
_Named = Annotated[_T, Field(exclude_if=lambda value: not value)]


@dataclass(frozen=True)
class Evidence:
    """A place that a question is answered by."""

    document: _Text  # path of the file, with the source's name or without, or the end of it
    place: _Named[str] = ""  # name of the sheet, `page 3`, `slide 3`, a heading or a row; may be empty
    quote: _Named[str] = ""  # what stands there; compared after NFKC without white space; may be empty
    cells: _Named[str] = ""  # cells of a sheet that hold it, as in `B4:F20`; may be empty
    alternative: _Named[_Flag] = False  # whether it answers the question alone, in place of the others
    grade: Annotated[float, Field(gt=0, exclude_if=lambda value: value == 1)] = 1.0  # how relevant it is, above 0
    # what it stands in where that is no text of the page, as in `shape` or `comment`; may be empty
    kind: _Named[str] = ""


@dataclass(frozen=True)
class Question:
    """A question of a set."""

    id: _Text  # its name in the set
    text: Annotated[_Text, Field(alias="question")]  # as a person asks it
    # its language, as in `ja`; told by the text where the file does not say it
    language: Annotated[str, Field(alias="lang")] = ""
    type: str = ""  # what kind of question it is, in the words of the set; may be empty
    answerable: _Flag = True  # whether the documents hold an answer
    evidence: tuple[Evidence, ...] = ()  # where
    # what a right answer holds: one of the alternatives of every group
    answer_contains: tuple[Annotated[tuple[_Text, ...], Field(min_length=1)], ...] = ()
    history: _Named[tuple[str, ...]] = ()  # the questions of the conversation before it, the oldest first
    note: _Named[str] = ""  # for people
    draft: _Named[_Flag] = False  # whether no person has accepted it yet
    # `choosing` where settings, defaults or code were chosen by it: figures of what was chosen are too good
    purpose: _Named[Literal["", "choosing", "testing"]] = ""

    @property
    def searched(self) -> bool:
        """Whether places are judged that a search finds for it."""
        return self.answerable and bool(self.evidence) and self.type != GLOBAL_TYPE


_QUESTION: TypeAdapter[Question] = TypeAdapter(Question)
_NAMES = {"text": "question", "language": "lang"}  # of fields, in files
_QUESTION_FIELDS = tuple(_NAMES.get(item.name, item.name) for item in fields(Question) if item.name != "note")
_EVIDENCE_FIELDS = tuple(item.name for item in fields(Evidence))
_CSV_NEEDED = ("question", "answer", "document")
_CSV_FURTHER = ("id", "lang", "type", "place", "quote")


def read_questions(path: Path, qrels: Path | None = None) -> list[Question]:
    """The questions of a set.

    Args:
        path: A JSON Lines file, a folder in the form of BEIR, a BEIR `queries.jsonl`, or a CSV file.
        qrels: Judgements of TREC or BEIR for the queries of `path`.

    Raises:
        QueryError: It is none of these; the message names file and line. Or there is no question in it.
    """
    try:
        if path.is_dir():
            questions = _beir(path / "queries.jsonl", qrels or _qrels_of(path))
        elif qrels is not None:
            questions = _beir(path, qrels)
        elif path.suffix.lower() == ".csv":
            questions = list(_csv(path))
        else:
            questions = [_question(path, number, row) for number, row in json_lines(path)]
    except UnicodeError as error:
        raise QueryError(f"{path}: cannot be read: its text is not UTF-8") from error
    except OSError as error:
        raise QueryError(f"{path}: cannot be read: {error}") from error
    if not questions:
        raise QueryError(f"{path}: holds no question")
    seen_ids: set[str] = set()
    for question in questions:
        if question.id in seen_ids:
            raise QueryError(f"{path}: two questions have the id {question.id!r}")
        seen_ids.add(question.id)
    return [
        question if question.language else replace(question, language=detect_language(question.text))
        for question in questions
    ]


def accept_questions(path: Path, ids: Collection[str] | None) -> list[str]:
    """Take the mark of a draft off questions of a JSON Lines file, of all where no ids are given; give their ids.

    All else in the file stays as it is.

    Raises:
        QueryError: An id is none of a draft, or the file cannot be read.
    """
    with Lock.of(path).hold():
        drafts = [question.id for question in read_questions(path) if question.draft]
        if unknown := sorted(set(ids or ()) - set(drafts)):
            raise QueryError(f"{path}: no draft has the id {unknown[0]!r}")
        accepted_ids = [draft_id for draft_id in drafts if ids is None or draft_id in ids]
        records = [record for _, record in json_lines(path)]
        for record in records:
            if record["id"] in accepted_ids:
                del record["draft"]
        _write(path, records)
    return accepted_ids


def add_drafts(path: Path, drafts: Sequence[Question]) -> None:
    """Add drafts to a JSON Lines file, which is made where there is none; all else in it stays as it is.

    A draft takes the place of one with its id. A question that a person has accepted stays.

    Raises:
        QueryError: The file is no JSON Lines file, is too large, or cannot be read.
        OSError: It cannot be written.
    """
    if path.suffix.lower() == ".csv" or path.is_dir():
        raise QueryError(f"{path}: drafts are written as JSON Lines: name a .jsonl file")
    path.parent.mkdir(parents=True, exist_ok=True)
    with Lock.of(path).hold():
        records = [record for _, record in json_lines(path)] if path.exists() else []
        at = {record.get("id"): number for number, record in enumerate(records)}
        for draft in drafts:
            record = json.loads(question_line(draft))
            if draft.id not in at:
                at[draft.id] = len(records)
                records.append(record)
            elif records[at[draft.id]].get("draft"):
                records[at[draft.id]] = record
        if sum(bool(record.get("draft")) for record in records) > MOST_DRAFTS:
            raise QueryError(f"{path}: holds {MOST_DRAFTS:,} drafts: accept or remove some of them first")
        _write(path, records)


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    write_atomically(path, "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records).encode())


def question_line(question: Question) -> str:
    """A question as a line of JSON, without its line break."""
    record = _QUESTION.dump_python(question, mode="json", by_alias=True)
    return json.dumps(record, ensure_ascii=False)


def read_queries(path: Path | Iterable[str], name: str = "queries") -> Iterator[tuple[str, str]]:
    """Id and text of each query of a BEIR `queries.jsonl`: objects with `_id` and `text`, one a line.

    Args:
        path: The file, or its lines.
        name: What messages call it.

    Raises:
        QueryError: A line is not such an object; the message names the line.
    """
    for number, record in json_lines(path, name):
        if not {"_id", "text"} <= record.keys():
            raise QueryError(f'{name}, line {number}: expected an object with "_id" and "text"')
        yield str(record["_id"]), str(record["text"])


def json_lines(lines: Path | Iterable[str], name: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and object of each line of JSON; messages call a file by its path where no name is given.

    Raises:
        QueryError: A line is no object; the message names it.
    """
    name = name or str(lines)
    if isinstance(lines, Path):
        with lines.open(encoding="utf-8-sig") as file:
            yield from json_lines(file, name)
        return
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise QueryError(f"{name}, line {number}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise QueryError(f"{name}, line {number}: expected an object in braces")
        yield number, record


def _question(path: Path, number: int, record: Mapping[str, Any]) -> Question:
    if "_id" in record and "text" in record:
        raise QueryError(f"{path}, line {number}: queries in the form of BEIR need their judgements: give --qrels FILE")
    _check_fields(path, number, "", record, _QUESTION_FIELDS)
    evidence = record.get("evidence")
    for place, piece in enumerate(evidence if isinstance(evidence, list) else ()):
        if isinstance(piece, dict):
            _check_fields(path, number, f"evidence.{place}.", piece, _EVIDENCE_FIELDS)
    return validated(_QUESTION, record, path, number, "question")


def _check_fields(path: Path, number: int, above: str, names: Collection[str], known: Collection[str]) -> None:
    """Refuse a field that is spelt nearly as a known one, which is not there; others may be somebody's own.

    Raises:
        QueryError: There is one; the message names it and the known one.
    """
    missing = [name for name in known if name not in names]
    for name in names:
        meant = [] if name in known else get_close_matches(name, missing, 1, _LIKENESS)
        if meant:
            raise QueryError(f"{path}, line {number}: {above}{name}: no such field; did you mean {meant[0]}?")


def validated(adapter: TypeAdapter[_T], record: Mapping[str, Any], path: Path, number: int, name: str) -> _T:
    """A record of a line of a file as what it is to be, called `name` where none of its fields is wrong alone.

    Raises:
        QueryError: It is not so; the message names file, line and field.
    """
    try:
        return adapter.validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or name
        message = f"{path}, line {number}: {place}: {problem_text(first, _LIST_FORMS)}"
        raise QueryError(message[: _MOST_ERROR_CHARS + len(str(path))]) from error


def _csv(path: Path) -> Iterator[Question]:
    reader = csv.DictReader(io.StringIO(decode_text(path.read_bytes()), newline=""))
    columns = list(reader.fieldnames or ())
    if not set(_CSV_NEEDED) <= set(columns):
        raise QueryError(f"{path}: expected the columns question, answer and document, found {', '.join(columns)}")
    _check_fields(path, 1, "", columns, (*_CSV_NEEDED, *_CSV_FURTHER))
    for row in reader:
        cells = {column: row.get(column) or "" for column in ("question", *_CSV_FURTHER)}
        document, answer = (row["document"] or "").strip(), (row["answer"] or "").strip()
        evidence = {"document": document, "place": cells.pop("place"), "quote": cells.pop("quote")}
        record = {
            **cells,
            "id": cells["id"] or str(reader.line_num),
            "answerable": bool(answer or document),
            "evidence": [evidence] if document else [],
            "answer_contains": [[answer]] if answer else [],
        }
        yield _question(path, reader.line_num, record)


def _beir(queries: Path, qrels: Path) -> list[Question]:
    grades = read_qrels(qrels)
    texts = dict(read_queries(queries, str(queries)))
    if unknown := sorted(grades.keys() - texts.keys()):
        raise QueryError(f"{qrels}: {unknown[0]} is judged, but is no query of {queries}")
    questions = {
        query: Question(
            query,
            text,
            evidence=tuple(Evidence(key, grade=grade) for key, grade in grades[query].items()),
            answerable=bool(grades[query]),
        )
        for query, text in texts.items()
        if query in grades
    }
    for number, record in json_lines(queries):  # as we wrote it, unless somebody judged it anew
        query, metadata = str(record["_id"]), record.get("metadata")
        own = metadata.get(BEIR_FIELD) if isinstance(metadata, dict) else None
        if query in questions and isinstance(own, dict) and own.get("judged") == grades[query]:
            fields = {**own.get("question", {}), "id": query, "question": texts[query]}
            questions[query] = _question(queries, number, fields)
    return list(questions.values())


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """For each judged query the documents that are relevant to it, with their grades.

    Args:
        path: Lines of TREC, `query 0 document grade`, or of BEIR, `query document grade` after a header, with tabs.

    Raises:
        QueryError: A line is neither; the message names it.
    """
    grades: dict[str, dict[str, float]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        fields = line.split("\t") if "\t" in line else line.split()
        if not line.strip() or (number == 1 and fields[0] == "query-id"):
            continue
        if len(fields) == 4:
            del fields[1]
        try:
            query, document, grade = fields[0], fields[1], float(fields[2])
        except (IndexError, ValueError) as error:
            raise QueryError(f"{path}, line {number}: expected a query, a document and a grade") from error
        relevant = grades.setdefault(query, {})
        if grade > 0:
            relevant[document] = grade
    return grades


def _qrels_of(folder: Path) -> Path:
    if not (folder / "queries.jsonl").is_file():
        raise QueryError(f"{folder}: is no BEIR folder: expected queries.jsonl in it")
    places = [folder / "qrels" / "test.tsv", folder / "qrels.tsv", *sorted((folder / "qrels").glob("*.tsv"))]
    for place in places:
        if place.is_file():
            return place
    raise QueryError(f"{folder}: holds no judgements: expected qrels/test.tsv or qrels.tsv")
