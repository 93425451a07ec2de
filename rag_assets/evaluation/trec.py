"""Files of retrieval experiments: queries in the form of BEIR, runs in the form of TREC."""

import json
from collections.abc import Iterable, Iterator
from typing import TextIO

from rag_assets.contracts.errors import QueryError
from rag_assets.query.results import SearchResult

RUN_NAME = "rag_assets"


def read_queries(file: TextIO) -> Iterator[tuple[str, str]]:
    """Id and text of each query of a BEIR `queries.jsonl`: objects with `_id` and `text`, one a line.

    Raises:
        QueryError: A line is not such an object; the message names the line.
    """
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise QueryError(f"queries, line {number}: not JSON: {error}") from error
        if not isinstance(record, dict) or not {"_id", "text"} <= record.keys():
            raise QueryError(f'queries, line {number}: expected an object with "_id" and "text"')
        yield str(record["_id"]), str(record["text"])


def run_lines(query_id: str, result: SearchResult) -> Iterator[str]:
    """Lines `query_id Q0 doc_id rank score rag_assets` of one result; white space in ids becomes `_`.

    Columns are parted by white space, so ids must hold none; readers that split at blanks could not read them.
    """
    for hit in result.hits:
        yield f"{_word(query_id)} Q0 {_word(result.target(hit))} {hit.rank} {hit.score:.6f} {RUN_NAME}"


def write_run(results: Iterable[tuple[str, SearchResult]], file: TextIO) -> None:
    """Write a run."""
    for query_id, result in results:
        file.writelines(line + "\n" for line in run_lines(query_id, result))


def _word(identifier: str) -> str:
    return "_".join(identifier.split())
