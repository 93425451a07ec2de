"""The structure that the design states: who may import whom, and what start-up may cost."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rag_assets"
MODULES = sorted(PACKAGE.rglob("*.py"))

# a part of the package, and the parts it may import
ALLOWED = {
    "contracts": {"contracts"},
    "store": {"contracts", "store"},
    "models": {"contracts", "store", "models"},
    "sources": {"contracts", "store", "sources"},
    "parsing": {"contracts", "store", "sources", "parsing"},
    "enrich": {"contracts", "store", "models", "parsing", "enrich"},
    "graph": {"contracts", "store", "models", "parsing", "enrich", "graph"},
    "evaluation": {"contracts", "evaluation"},
    "query": {"contracts", "store", "models", "query"},
}


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_dependencies_point_one_way(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0]
    found = imports(path)
    if part not in {"defs", "definitions.py"}:
        assert not {name for name in found if name.split(".")[0] == "dagster"}
    if part in ALLOWED:
        parts = {name.split(".")[1] for name in found if name.startswith("rag_assets.")}
        assert parts <= ALLOWED[part]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_say_what_belongs_in_them(path: Path) -> None:
    text = path.read_text("utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "a module docstring is missing"


def test_help_imports_nothing_heavy() -> None:
    heavy = "dagster, lancedb, pyarrow, numpy, pydantic, onnxruntime, duckdb, rich, unstructured"
    code = f"import sys, rag_assets.cli; print([n for n in '{heavy}'.split(', ') if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
