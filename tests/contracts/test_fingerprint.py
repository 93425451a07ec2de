"""What makes a step stale, in a copy of the package: its algorithms do, what stores and transports does not."""

import ast
import importlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assets.contracts import fingerprint
from rag_assets.contracts.fingerprint import PACKAGE, Code, SourceTree, code_fingerprint
from rag_assets.pipeline.steps import STEPS

FUNCTIONS = {step.name: step.code for step in STEPS if step.code}
ALL = frozenset(FUNCTIONS)
INDEXING = {name for name in ALL if name.startswith("index_")}
WITH_PAGES = {"chunk", "summarize_pages", "summarize_files", "ask_questions", "extract_mentions"}
ASKING = {step.name for step in STEPS if step.asks_model}


class Copy:
    """A copy of the package, and the code of each step in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = SourceTree(root)
        self.before = self.codes()

    def codes(self) -> dict[str, Code]:
        return {name: self.tree.code(functions) for name, functions in FUNCTIONS.items()}

    def stale_after(self, module: str, name: str, steps: frozenset[str] = ALL) -> set[str]:
        """Those among some steps that are stale after a definition was changed, which is undone."""
        path = self.root.joinpath(*module.split(".")).with_suffix(".py")
        text = path.read_text("utf-8")
        assert re.search(rf"\b{name}\b", text)
        try:
            path.write_text(f"{text}\n{name} = {name}\n", "utf-8")
            self.tree._modules.pop(f"rag_assets.{module}", None)
            return {step for step in steps if self.tree.code(FUNCTIONS[step]) != self.before[step]}
        finally:
            path.write_text(text, "utf-8")
            self.tree._modules.pop(f"rag_assets.{module}", None)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    root = tmp_path_factory.mktemp("copy") / "rag_assets"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__", "web"))
    yield Copy(root)


@pytest.mark.parametrize(
    ("module", "name", "stale"),
    [
        ("parsing.chunking", "column_names", WITH_PAGES),
        ("parsing.chunking", "chunk_page", {"chunk"}),
        ("text.tokens", "estimate_tokens", ASKING),
        ("text.folding", "search_terms", INDEXING),
        ("graph.communities.leiden", "find_groups", {"detect_communities"}),
        ("enrich.facets.extraction", "Classifier", {"classify_documents"}),
        ("store.serving", "chunk_rows", {"index_chunks"}),
        ("parsing.parse", "_dispatch", {"parse"}),
        ("parsing.pool", "parse_files", set()),
        ("store.lake", "shard_of", set()),
        ("contracts.errors", "StoreError", set()),
        ("contracts.ports", "LanguageModel", set()),
    ],
)
def test_a_change_makes_stale_what_reaches_it(copy: Copy, module: str, name: str, stale: set[str]) -> None:
    assert copy.stale_after(module, name) == stale


def test_every_module_of_a_closure_counts_for_the_steps_that_reach_it(copy: Copy) -> None:
    users: dict[str, dict[str, set[str]]] = {}
    for step, functions in FUNCTIONS.items():
        for (module, name), definition in copy.tree.reached(functions).items():
            if definition is not None and name.isidentifier():
                users.setdefault(module.partition(".")[2], {}).setdefault(name, set()).add(step)
    assert len(users) > 60
    for module, names in users.items():
        name, steps = min(names.items())
        looked_at = ALL if len(steps) > 1 else frozenset(steps | {"detect_communities"})
        assert copy.stale_after(module, name, looked_at) == steps, f"{module}: {name}"


def test_comments_docstrings_layout_and_annotations_make_nothing_stale(copy: Copy, tmp_path: Path) -> None:
    root = tmp_path / "rag_assets"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__", "web"))
    for room in ("text", "enrich", "graph", "parsing/office"):
        for path in (root / room).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    node.returns = ast.Constant("other")
                    if ast.get_docstring(node) is not None:
                        node.body[0] = ast.Expr(ast.Constant("Another docstring."))
            path.write_text(f"# a comment\n{ast.unparse(ast.fix_missing_locations(tree))}\n\nunused = 1\n", "utf-8")
    other = SourceTree(root)
    for step, functions in FUNCTIONS.items():
        assert other.code(functions) == copy.before[step], step


def test_prompts_word_lists_and_libraries_count(copy: Copy) -> None:
    def stale_after(place: str) -> set[str]:
        path = copy.root / place
        content = path.read_bytes()
        path.write_bytes(content + b"\n# more\n")
        changed = {step for step, code in copy.codes().items() if code != copy.before[step]}
        path.write_bytes(content)
        return changed

    assert stale_after("prompts/summarize_page.ja.md") == {"summarize_pages"}
    assert stale_after("prompts/confirm_entity.en.md") == {"resolve_entities"}
    assert stale_after("prompts/answer_from_passages.en.md") == set()
    assert stale_after("graph/plain_words.toml") == {"extract_mentions"}
    assert copy.before["extract_mentions"].versions.keys() >= {"spacy", "ja-ginza"}
    assert copy.before["parse"].versions.keys() >= {"lxml", "pypdfium2"}
    assert {step for step, code in copy.before.items() if code.libraries} == {"parse", "extract_mentions"}


@pytest.mark.parametrize("step", [step for step in STEPS if step.tables and step.code], ids=lambda step: step.name)
def test_what_a_step_stores_its_rows_under_is_the_code_that_is_compared(step: object) -> None:
    functions = FUNCTIONS[step.name]  # type: ignore[attr-defined]
    module = importlib.import_module(functions[0].partition(":")[0])
    calls = [
        node
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "code_fingerprint"
    ]
    named = [tuple(eval(ast.unparse(name), vars(module)) for name in call.args) for call in calls]
    assert code_fingerprint(*functions) in [code_fingerprint(*names) for names in named]


def test_what_was_found_is_kept_while_no_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fingerprint, "_known", {})
    fingerprint.code_of.cache_clear()
    found = fingerprint.code_of(*FUNCTIONS["chunk"])
    monkeypatch.setattr(fingerprint, "_known", {})
    monkeypatch.setattr(fingerprint, "_source_tree", lambda: pytest.fail("read again"))
    fingerprint.code_of.cache_clear()
    assert fingerprint.code_of(*FUNCTIONS["chunk"]) == found


def test_what_is_listed_by_name_exists() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert rooms >= fingerprint._TRANSPORT
    for module in fingerprint._TRANSPORT_MODULES | fingerprint._COUNTED_MODULES:
        assert PACKAGE.joinpath(*module.split(".")).with_suffix(".py").is_file(), module
