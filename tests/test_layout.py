"""The structure that the design states: who may import whom, and what start-up may cost."""

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "rag_assets"
MODULES = sorted(PACKAGE.rglob("*.py"))

# rooms of the package, each of which may import those before it; `rag_assets/__init__.py` is the door
ROOMS = (
    ("text",),
    ("contracts",),
    ("processes",),
    ("store",),
    ("sources",),
    ("parsing", "models"),
    ("enrich",),
    ("graph",),
    ("query",),
    ("evaluation",),
    ("training",),
    ("serve",),
    ("pipeline",),
    ("defs",),
    ("definitions",),
    ("cli",),
    ("__main__",),
)
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
MOST_SIBLINGS = 25

# What is private in a library and used all the same, where nothing public does it.
PRIVATE = {
    # Dagster publishes no class of its SQLite event log; with the stock storages a changed line takes a fifth more
    # processor time, with all but this one the same within some hundredths.
    "defs/run_storages.py": {"dagster._core.storage.event_log.sqlite"},
    # The one way by which Python starts processes that audit hooks do not see; a confined process may start none.
    "processes/confinement.py": {"_posixsubprocess"},
    # `dagster-webserver` is its one public entry, and has no place for a guard.
    "defs/web_server.py": {"dagster._core.workspace.context", "dagster._core.workspace.load_target"},
}
PATCHED = {
    "parsing/unstructured.py": "tokenizers for which Unstructured would download a model, and whose result is not used"
}
_ESCAPE = re.compile(r"\\[uUx]((?<=u)[0-9a-fA-F]{4}|(?<=U)[0-9a-fA-F]{8}|(?<=x)[0-9a-fA-F]{2})")  # of raw strings


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path) for path in MODULES}


def imports(path: Path) -> set[str]:
    """Full names of the modules that a module imports anywhere in it; of this package, those that hold the names."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (members & NAMES) or {node.module}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_those_before_them(path: Path) -> None:
    room = path.relative_to(PACKAGE).with_suffix("").parts[0]
    found = imports(path)
    if room not in {"defs", "definitions"}:
        dagster = sorted(name for name in found if name.split(".")[0] == "dagster")
        assert not dagster, f"imports {dagster}: only rag_assets/defs may; pass in what the room needs as plain values"
    if room != "__init__":
        assert room in RANK, f"no room {room!r} is known: put the module into one of ROOMS, or add the room to it"
        rooms = {name.split(".")[1] for name in found if name.startswith("rag_assets.")}
        later = sorted(each for each in rooms - {room} if RANK[each] >= RANK[room])
        assert not later, f"{room} imports {later}: a room imports only those before it (ARCHITECTURE.md, Rooms)"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module_name(path): imports(path) & NAMES for path in MODULES if path.name != "__init__.py"}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"{' <- '.join(error.args[1])}: move what both need into a module that imports neither")


def test_folders_are_small() -> None:
    folders = Counter(path.parent for path in MODULES)
    large = {str(folder.relative_to(PACKAGE)): count for folder, count in folders.items() if count > MOST_SIBLINGS}
    assert not large, f"modules in {large}, at most {MOST_SIBLINGS}: make a folder for those of one concept"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_say_what_belongs_in_them(path: Path) -> None:
    text = path.read_text("utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "a module docstring is missing"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_ranges_of_letters_are_named_in_one_place(path: Path) -> None:
    if path == PACKAGE / "text" / "scripts.py":
        return
    ranges: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Constant(value=str(text)):
                ranges += re.findall(
                    "[^\x00-\x7f]-[^\x00-\x7f]", _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
                )
            case ast.Compare(left=ast.Constant(value=str(first)), comparators=[_, ast.Constant(value=str(last))]):
                ranges.append(f"{first}-{last}")
    by_hand = [each for each in ranges if len(each) == 3 and _holds_letter(each[0], each[2])]
    assert not by_hand, f"{by_hand}: name them in rag_assets/text/scripts.py"


def _holds_letter(first: str, last: str) -> bool:
    return last > "\x7f" and any(chr(code).isalpha() for code in range(ord(first), ord(last) + 1))


def test_help_imports_nothing_heavy() -> None:
    heavy = "dagster, lancedb, pyarrow, numpy, pydantic, onnxruntime, duckdb, rich, unstructured"
    code = f"import sys, rag_assets.cli; print([n for n in '{heavy}'.split(', ') if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_private_in_libraries_is_named(path: Path) -> None:
    place = path.relative_to(PACKAGE).as_posix()
    private = {
        name
        for name in imports(path)
        if name not in NAMES and any(part.startswith("_") and part != "__future__" for part in name.split("."))
    }
    assert private == PRIVATE.get(place, set())
    assert ("setattr(" in path.read_text("utf-8")) == (place in PATCHED)


def test_every_import_is_a_declared_dependency() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    declared = {re.split(r"[^\w.-]", each)[0].lower().replace("_", "-") for each in (*project["dependencies"], *extras)}
    homes = packages_distributions()
    missing = {}
    for path in MODULES:
        for name in {each.partition(".")[0] for each in imports(path)} - {PACKAGE.name, *sys.stdlib_module_names}:
            found = {each.lower().replace("_", "-") for each in homes.get(name, [name])}
            if not found & declared:
                missing[name] = path.relative_to(PACKAGE).as_posix()
    assert not missing
