"""How large the package is and how its rooms depend on each other: `python -m benchmarks.structure [PACKAGE]`."""

import ast
import statistics
import sys
from collections import Counter
from pathlib import Path

import networkx as nx


def main(package: Path) -> None:
    """Print lines, functions, siblings, circles and arrows between rooms of a package."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py"))}
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in trees)
    functions = sorted(
        node.end_lineno - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    )
    imports = _imports(package, trees)
    circles = [each for each in nx.strongly_connected_components(imports) if len(each) > 1]
    rooms = Counter((_room(start), _room(end)) for start, end in imports.edges if _room(start) != _room(end))
    siblings = Counter(path.parent for path in trees if path.name != "__init__.py").most_common(1)[0]
    print(f"modules {len(trees)}, lines {lines:,}")
    print(
        f"functions {len(functions):,}: median {statistics.median(functions):.0f} lines, 90th percentile "
        f"{functions[len(functions) * 9 // 10]}, longest {functions[-1]}"
    )
    print(f"most modules in a folder: {siblings[1]} in {siblings[0].relative_to(package)}")
    print(f"circles of modules: {len(circles)}")
    print(f"rooms {len({_room(name) for name in imports})}, arrows between them {len(rooms)}")
    for (start, end), count in sorted(rooms.items()):
        print(f"  {start:>12} -> {end:<12} {count:4}")


def _imports(package: Path, trees: dict[Path, ast.Module]) -> "nx.DiGraph[str]":
    """Modules of the package and what each imports, lazily or for types alone included."""
    names = {path: ".".join(path.relative_to(package.parent).with_suffix("").parts) for path in trees}
    known = {name.removesuffix(".__init__") for name in names.values()}
    graph: nx.DiGraph[str] = nx.DiGraph()
    for path, tree in trees.items():
        if path.name == "__init__.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module in known:
                members = {f"{node.module}.{alias.name}" for alias in node.names} & known
                graph.add_edges_from((names[path], each) for each in members or {node.module})
    return graph


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "rag_assets").absolute())
