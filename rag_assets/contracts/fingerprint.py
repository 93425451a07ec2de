"""Hashes that tell whether a stored result is still what the code, the settings and the input would give."""

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

Fact = str | int | float | bool | None | tuple["Fact", ...]


def digest(*facts: Fact) -> str:
    """SHA-256 over facts, hexadecimal, cut to 32 digits (128 bits)."""
    return hashlib.sha256(json.dumps(facts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@cache
def code_fingerprint(*modules: str) -> str:
    """Digest of what modules do: their syntax trees without comments, docstrings and layout.

    The modules are found, not imported, so that asking costs no heavy import.

    Args:
        modules: Full names, as in `rag_assets.parsing.excel.reader`.
    """
    return digest(*map(_tree_dump, modules))


@cache
def closure_fingerprint(module: str, package: str) -> str:
    """Digest of what a module does with all modules of a package that it can reach, see `code_fingerprint`.

    Args:
        module: Full name of the module.
        package: Full name of the package; modules elsewhere do not count.
    """
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in reached and name.startswith(f"{package}."):
            reached.add(name)
            waiting.extend(_imports(_source(name)))
    return digest(*(fact for name in sorted(reached) for fact in (name, _tree_dump(name))))


def _imports(source: bytes) -> Iterator[str]:
    """Full names of the modules that a source imports by `from module import name`, as this project does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _source(module: str) -> bytes:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    return Path(spec.origin).read_bytes()


def _tree_dump(module: str) -> str:
    tree = ast.parse(_source(module))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            node.body = body[1:]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)
