"""Hashes that tell whether a stored result is still what the code, the settings and the input would give."""

import ast
import hashlib
import importlib.util
import json
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
        modules: Full names, as in `rag_assets.parsing.excel`.
    """
    trees = []
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(name)
        tree = ast.parse(Path(spec.origin).read_bytes())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and _is_docstring(body[0]):
                node.body = body[1:]  # type: ignore[attr-defined]
        trees.append(ast.dump(tree))
    return digest(*trees)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)
