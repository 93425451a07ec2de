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
    # The one way by which Python starts processes that audit hooks do not see; a confined process may start none.
    "processes/confinement.py": {"_posixsubprocess"},
    # Dagster publishes no class that keeps no compute logs, and none of its SQLite event log; with the stock storages a
    # changed line takes a fifth more processor time, with all but this one the same within some hundredths.
    "defs/runs.py": {
        "dagster._core.storage.event_log.sqlite",
        "dagster._core.storage.noop_compute_log_manager",
    },
    # What the command `dagster-daemon` runs, whether or not the folder of this Python's commands is known.
    "pipeline/instance.py": {"dagster._daemon"},
    # `dagster-webserver` is its one public entry, and has no place for a guard.
    "defs/web_server.py": {"dagster._core.workspace.context", "dagster._core.workspace.load_target"},
}
# What modules replace in others, where these take nothing instead.
PATCHED = {
    # Python's documented hooks: what an interrupt breaks off in threads and destructors is not reported.
    "cli/interruption.py": {"sys.unraisablehook", "threading.excepthook"},
    # Tokenizers for which Unstructured would download a model, and whose result is not used.
    "parsing/unstructured.py": {"setattr(text_type, tokenizer, _nothing)"},
    "processes/confinement.py": {
        # Python's documented switches; a confined process writes nothing, and would look for the folder by writing.
        "sys.dont_write_bytecode",
        "tempfile.tempdir",
        # msoffcrypto decrypts old Office files into nothing else.
        "vars(tempfile)['TemporaryFile']",
        # Not audited, see `PRIVATE`.
        "vars(_posixsubprocess)['fork_exec']",
    },
    # The client of LanceDB's servers: two fifths of what its import takes, and LanceDB has no option to leave it out.
    "store/vectors/lance.py": {"sys.modules[package]"},
}
_CHANGES = frozenset(("__setitem__", "clear", "pop", "popitem", "setdefault", "update"))  # of the names of a module
_NAMESPACE = re.compile(r"vars\((\w+)[\w.]*\)|(\w+)[\w.]*\.__dict__|(sys)\.modules")
_ESCAPE = re.compile(r"\\[uUx]((?<=u)[0-9a-fA-F]{4}|(?<=U)[0-9a-fA-F]{8}|(?<=x)[0-9a-fA-F]{2})")  # of raw strings


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path) for path in MODULES}
LIBRARIES = {*sys.stdlib_module_names, *packages_distributions()} - {PACKAGE.name}


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


def private_names(path: Path) -> set[str]:
    """What a module names that is private in a library, in its imports or in a text, as in `library._module`."""
    names = imports(path)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names if alias.name.startswith("_")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(re.findall(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*", node.value))
    return {
        name
        for name, parts in ((name, name.split(".")) for name in names)
        if parts[0] in LIBRARIES and any(part.startswith("_") and not part.endswith("__") for part in parts)
    }


def patches(path: Path) -> set[str]:
    """What a module replaces in what it imports: attributes, names of modules, modules themselves."""
    tree = ast.parse(path.read_text("utf-8"))
    froms = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    known = {alias.asname or alias.name.partition(".")[0] for node in froms for alias in node.names}

    def is_namespace(node: ast.expr) -> bool:
        match = _NAMESPACE.fullmatch(ast.unparse(node))
        return match is not None and not known.isdisjoint(match.groups())

    def replaces(node: ast.AST) -> bool:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                name = ast.unparse(node)
                return re.fullmatch(r"[\w.]+", name) is not None and name.partition(".")[0] in known
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                return is_namespace(value)
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                return method in _CHANGES and is_namespace(value)
            case ast.Call(func=ast.Name(id="setattr" | "delattr")):
                return True
        return False

    return {ast.unparse(node) for node in ast.walk(tree) if replaces(node)}


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
def test_what_is_private_or_replaced_in_libraries_is_named(path: Path) -> None:
    place = path.relative_to(PACKAGE).as_posix()
    assert private_names(path) == PRIVATE.get(place, set())
    assert patches(path) == PATCHED.get(place, set())


@pytest.mark.parametrize(
    "code",
    [
        "json.loads = None",
        "json.decoder.JSONDecoder.decode, number = None, 1",
        "del json.loads",
        "vars(json)['loads'] = None",
        "vars(json.decoder).update(scanstring=None)",
        "json.__dict__['loads'] = None",
        "sys.modules['json'] = None",
        "sys.modules.pop('json')",
        "setattr(json, 'loads', None)",
    ],
)
def test_replacing_is_seen(code: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(f"import json, json.decoder, sys\n{code}\n")
    assert len(patches(tmp_path / "module.py")) == 1


@pytest.mark.parametrize(
    "code", ["import json._x", "from json import _x", "'json._x.y'", "f'-m json._x {run}'", "'_posixsubprocess'"]
)
def test_what_is_private_is_seen(code: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(code)
    assert len(private_names(tmp_path / "module.py")) == 1


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
