"""Writes what follows from the code: `data-model.md`, `settings.md` and the modes in both READMEs.

Run `make docs`; a test holds that the pages are up to date.
"""

import re
from functools import partial
from pathlib import Path

import pyarrow as pa
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from rag_assets.contracts.modes import SEARCH_MODES
from rag_assets.contracts.tables import TABLES, VECTOR_TABLES
from rag_assets.pipeline.settings import Settings
from rag_assets.serve.sql.reader import sql_tables

FOLDER = Path(__file__).parent
MODES_MARK = "<!-- the rows below are written by `make docs` -->"


def data_model() -> str:
    """The page on stored and serving tables."""
    lines = [
        "# Data model",
        "",
        "Stored tables are Parquet, one file for each shard, and the system of record; `rag-assets sql`, the views of",
        "`sql/` and [other programs](operations.md#reading-the-tables-from-other-programs) read them. Serving tables",
        "are LanceDB, derived from them, with vectors and indices. Types are as Arrow prints them; what a list holds",
        "is called `item` there and `element` in the Parquet files.",
        "",
    ]
    for table in TABLES.values():
        key = ", ".join(f"`{name}`" for name in table.key)
        lines += [f"## {table.name}", "", f"{table.description} Key: {key}.", ""]
        lines += _columns(table.fields)
    lines += [
        "# Views",
        "",
        "They build on the stored tables, one file each in `sql/`. Types are as DuckDB prints them.",
        "",
    ]
    for view in sql_tables():
        if view.name not in TABLES:
            lines += [
                f"## {view.name}",
                "",
                view.description,
                "",
                "| column | type | what it is |",
                "| --- | --- | --- |",
            ]
            lines += [f"| `{column.name}` | {column.type} | {column.description} |" for column in view.columns]
            lines += [""]
    lines += ["# Serving tables", ""]
    for served in VECTOR_TABLES.values():
        lines += [f"## lancedb.{served.name}", "", f"{served.description} Key: `{served.key}`.", ""]
        lines += _columns(served.schema(384))
    return "\n".join(lines)


def _columns(fields: tuple[pa.Field, ...] | pa.Schema) -> list[str]:
    lines = ["| column | type | null | what it is |", "| --- | --- | --- | --- |"]
    for field in fields:
        description = (field.metadata or {})[b"description"].decode()
        lines.append(f"| `{field.name}` | {field.type} | {'yes' if field.nullable else 'no'} | {description} |")
    return [*lines, ""]


def settings_reference() -> str:
    """The page on settings."""
    lines = [
        "# Settings",
        "",
        "Read from the environment, then from the TOML file `rag_assets.toml` in the working directory (or the one",
        "that `RAG_CONFIG` names), then the defaults below. A setting `chunking.size_tokens` is",
        "`RAG_CHUNKING__SIZE_TOKENS` in the environment and `size_tokens` under `[chunking]` in TOML. `RAG_SOURCES`",
        "separates sources by `:` or new lines, or is a JSON array. A variable that is a setting misspelt is refused,",
        "and the message names the setting; one without `__`, as `RAG_HOME`, where a letter is wrong, missing or too",
        "many, or two are exchanged. Other variables that look like settings are ignored with a warning.",
        "",
        "| setting | environment | default | what it is |",
        "| --- | --- | --- | --- |",
        *_settings(Settings, ()),
        "",
    ]
    return "\n".join(lines)


def _settings(model: type[BaseModel], above: tuple[str, ...]) -> list[str]:
    lines = []
    for name, field in model.model_fields.items():
        path = (*above, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            lines += _settings(field.annotation, path)
            continue
        default = "" if field.default is PydanticUndefined else field.default
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
        shown = f"`{shown}`" if shown else ""
        lines.append(f"| `{'.'.join(path)}` | `RAG_{'__'.join(path).upper()}` | {shown} | {field.description} |")
    return lines


def readme(name: str, language: str) -> str:
    """A README with the rows of its table of modes between the marks written anew."""
    rows = "".join(f"| `{mode.name}` | {mode.how[language]} |\n" for mode in SEARCH_MODES)
    pattern = rf"({MODES_MARK}\n\n(?:\|.*\n){{2}})(?:\|.*\n)*"
    return re.sub(pattern, lambda match: match[1] + rows, (FOLDER.parent / name).read_text("utf-8"))


PAGES = {
    "data-model.md": data_model,
    "settings.md": settings_reference,
    "../README.md": partial(readme, "README.md", "en"),
    "../README.ja.md": partial(readme, "README.ja.md", "ja"),
}

if __name__ == "__main__":
    for name, render in PAGES.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")
