"""The queries of `sql/`, which become views on top of the stored tables."""

import re
from collections.abc import Mapping
from pathlib import Path


def sql_folder() -> Path:
    """Folder of the SQL files: inside an installed package, or at the top of a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "sql"
    return installed if installed.is_dir() else package.parent / "sql"


def read_queries(folder: Path) -> Mapping[str, str]:
    """SQL files of a folder by name, in the order in which views may build on each other."""
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.sql"))}


def strip_comments(query: str) -> str:
    """A query without its leading comment lines and closing semicolon."""
    return re.sub(r"\A(?:\s*--[^\n]*\n)*", "", query).rstrip().removesuffix(";")
