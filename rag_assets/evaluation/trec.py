"""Files of retrieval experiments for the tools of others: runs and judgements of TREC, sets in the form of BEIR."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from rag_assets.contracts.tables import CHUNKS, DOCUMENTS
from rag_assets.evaluation.evidence import Level, spaceless
from rag_assets.evaluation.questions import BEIR_FIELD, question_line
from rag_assets.evaluation.runs import Evaluation
from rag_assets.query.results import SearchResult
from rag_assets.query.stored import StoredTables
from rag_assets.text.plain import one_line

RUN_NAME = "rag_assets"


def run_lines(results: Iterable[tuple[str, SearchResult]]) -> Iterator[str]:
    """Lines `query_id Q0 doc_id rank score rag_assets` of a run; white space in ids becomes `_`.

    Columns are parted by white space, so ids must hold none; readers that split at blanks could not read them.
    """
    for query_id, result in results:
        for hit in result.hits:
            yield f"{spaceless(query_id)} Q0 {spaceless(result.target(hit))} {hit.rank} {hit.score:.6f} {RUN_NAME}"


def write_evaluation(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write what a run found, as TREC runs, and what was to be found, as qrels: a file a level and system.

    Tools order a run by its scores, and ties by the id; so that they see the order that was measured, the scores
    written fall by one a place. Every id that holds a piece of evidence is relevant by its own: figures of other tools
    differ from ours where a piece stands in several passages, or where one piece alone answers.

    Args:
        evaluation: The run.
        folder: Made where it is missing.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for level in evaluation.options.levels:
        for system in evaluation.systems:
            stem = "".join(character if character.isalnum() or character in "_+,-" else "-" for character in system)
            run, qrels = folder / f"{level}.{stem}.run", folder / f"{level}.{stem}.qrels"
            with run.open("w", encoding="utf-8") as out:
                for question, results in evaluation.results[system].items():
                    places = results.found.get(level, ())
                    for rank, place in enumerate(places, start=1):
                        name = spaceless(place.ids(level)[-1])
                        out.write(f"{spaceless(question)} Q0 {name} {rank} {len(places) + 1 - rank} {RUN_NAME}\n")
            with qrels.open("w", encoding="utf-8") as out:
                for question, key, grade in _judgements(evaluation, system, level):
                    out.write(f"{spaceless(question)} 0 {spaceless(key)} {grade}\n")
            files += [run, qrels]
    return files


def write_beir(evaluation: Evaluation, stored: StoredTables, folder: Path) -> None:
    """Write the questions, the passages of the first system's version and which of them are relevant, as BEIR has them.

    Judgements of BEIR cannot say that several passages hold the same piece of evidence; the questions hold theirs as
    metadata, so that `read_questions` reads the set as it was.

    Args:
        evaluation: The run.
        stored: The tables of the version that its first system searched.
        folder: Made where it is missing.

    Raises:
        StoreError: A file is missing or damaged.
    """
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    titles = dict(zip(*stored.read(DOCUMENTS, ("document_id", "title")).to_pydict().values(), strict=True))
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as out:
        for batch in stored.read(CHUNKS, ("chunk_id", "document_id", "text")).to_batches():
            for row in batch.to_pylist():
                record = {"_id": one_line(row["chunk_id"]), "title": titles[row["document_id"]], "text": row["text"]}
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
    judgements = list(_judgements(evaluation, evaluation.systems[0], Level.PASSAGE))
    of_question: dict[str, dict[str, int]] = {}
    for query, key, grade in judgements:
        of_question.setdefault(query, {})[one_line(key)] = grade
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as out:
        for question in evaluation.questions:
            if question.id in of_question:
                own = {"question": json.loads(question_line(question)), "judged": of_question[question.id]}
                record = {"_id": one_line(question.id), "text": question.text, "metadata": {BEIR_FIELD: own}}
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8") as out:
        out.write("query-id\tcorpus-id\tscore\n")
        for query, key, grade in judgements:
            out.write(f"{one_line(query)}\t{one_line(key)}\t{grade}\n")


def _judgements(evaluation: Evaluation, system: str, level: Level) -> Iterator[tuple[str, str, int]]:
    """Question, relevant id and whole grade, of the questions that are searched."""
    for question in evaluation.questions:
        if not question.searched:
            continue
        grades: dict[str, float] = {}
        for way in evaluation.targets[system][question.id].ways[level]:
            for piece in way:
                for key in piece.ids:
                    grades[key] = max(grades.get(key, 0), piece.grade)
        yield from ((question.id, key, max(1, round(grade))) for key, grade in sorted(grades.items()))
