"""The queries of `sql/`, which become views on top of the stored tables.

A file begins with comments: what it tells, then a line `-- column: what it holds` for each column of which the stored
tables do not say it already.
"""

import re
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path

from rag_assets.contracts.tables import TABLES

_COLUMN = re.compile(r"(\w+): (.+)")


def read_queries() -> Mapping[str, str]:
    """The SQL files by name, in the order in which views may build on each other.

    Their folder lies inside an installed package, or at the top of a checkout.
    """
    package = Path(__file__).parent.parent
    installed_folder = package / "sql"
    folder = installed_folder if installed_folder.is_dir() else package.parent / "sql"
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.sql"))}


def purpose_of(query: str) -> str:
    """What a query tells."""
    return " ".join(takewhile(lambda line: not _COLUMN.fullmatch(line), _comments(query)))


def describe_column(query: str, column: str) -> str:
    """What a column of a query holds, by its comments, or else as all stored tables with such a column say."""
    own = {match[1]: match[2] for line in _comments(query) if (match := _COLUMN.fullmatch(line))}
    return own.get(column) or _shared_descriptions().get(column, "")


def strip_comments(query: str) -> str:
    """A query without its leading comment lines and closing semicolon."""
    return re.sub(r"\A(?:\s*--[^\n]*\n)*", "", query).rstrip().removesuffix(";")


def sql_literal(text: str) -> str:
    """A string as SQL literal; quotes are doubled, and nothing else has a meaning within single quotes."""
    return "'" + text.replace("'", "''") + "'"


def _comments(query: str) -> list[str]:
    lines = takewhile(lambda line: line.startswith("--"), query.splitlines())
    return [line.removeprefix("--").strip() for line in lines]


@cache
def _shared_descriptions() -> Mapping[str, str]:
    """What columns of the stored tables hold, of names that hold the same in all of them."""
    said: dict[str, set[str]] = {}
    for table in TABLES.values():
        for field in table.fields:
            said.setdefault(field.name, set()).add(table.describe(field.name))
    return {name: descriptions.pop() for name, descriptions in said.items() if len(descriptions) == 1}
