"""The queries of `sql/`, which become views on top of the stored tables."""

import re
from collections.abc import Mapping
from pathlib import Path


def read_queries() -> Mapping[str, str]:
    """The SQL files by name, in the order in which views may build on each other.

    Their folder lies inside an installed package, or at the top of a checkout.
    """
    package = Path(__file__).parent.parent
    installed_folder = package / "sql"
    folder = installed_folder if installed_folder.is_dir() else package.parent / "sql"
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.sql"))}


def purpose_of(query: str) -> str:
    """What a query tells, by its first line, which is a comment."""
    return query.partition("\n")[0].removeprefix("--").strip()


def strip_comments(query: str) -> str:
    """A query without its leading comment lines and closing semicolon."""
    return re.sub(r"\A(?:\s*--[^\n]*\n)*", "", query).rstrip().removesuffix(";")


def sql_literal(text: str) -> str:
    """A string as SQL literal; quotes are doubled, and nothing else has a meaning within single quotes."""
    return "'" + text.replace("'", "''") + "'"
