"""What indexing costs: files, pages and tokens a second by step, the embedder's share, repeated runs, peak memory.

Run `python benchmarks/indexing.py --data FOLDER`. Every measurement is a process of its own, so that imports, the
export of the embedder and Dagster's own work count.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEPS = ("parse", "chunk", "summarize_files", "summarize_pages", "index_chunks", "index_summaries", "snapshot")


def index_once(home_folder: Path, source: Path) -> dict[str, Any]:
    """Index in this process; wall seconds of the whole, of each step and of the embedder, and peak memory."""
    started = time.perf_counter()
    os.environ["DAGSTER_HOME"] = str(home_folder / "dagster_home")
    from rag_assets.contracts.tables import CHUNKS
    from rag_assets.models.embedding.embedders import E5Embedder
    from rag_assets.pipeline.freshness import changes_to_index
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings

    spent = {"seconds": 0.0, "texts": 0}
    embed = E5Embedder.embed

    def timed(self: E5Embedder, texts: Any, kind: Any) -> Any:
        began = time.perf_counter()
        try:
            return embed(self, texts, kind)
        finally:
            spent["seconds"] += time.perf_counter() - began
            spent["texts"] += len(texts)

    E5Embedder.embed = timed  # type: ignore[method-assign]
    home = Home(load_settings(home=home_folder, sources=(f"docs={source}",)))
    changes = changes_to_index(home, home.listing())
    steps: dict[str, float] = {}
    if changes.shards:
        import dagster as dg

        from rag_assets.cli.progress import ProgressDisplay
        from rag_assets.defs.runs import index_in_process

        index_in_process(home, changes.shards, ProgressDisplay(lambda _line: None, announce=False))
        with dg.DagsterInstance.get() as instance:
            [run] = instance.get_runs(limit=1)
            for step in instance.get_run_step_stats(run.run_id):
                if step.start_time and step.end_time:
                    steps[step.step_key] = step.end_time - step.start_time
    snapshot = home.snapshots.current()
    tokens = sum(home.lake.read(CHUNKS, columns=["length_tokens"])["length_tokens"].to_pylist())
    return {
        "seconds": time.perf_counter() - started,
        "steps": steps,
        "embed_seconds": spent["seconds"],
        "embed_texts": spent["texts"],
        "rows": dict(snapshot.row_counts) if snapshot else {},
        "chunk_tokens": tokens,
        "changed": len(changes.new) + len(changes.changed) + len(changes.gone),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "peak_parser_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }


def in_child(home: Path, source: Path) -> dict[str, Any]:
    """Measure in a fresh process; `process_seconds` includes its start."""
    began = time.perf_counter()
    command = [sys.executable, __file__, "--child", str(home), str(source)]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return {**json.loads(result.stdout), "process_seconds": time.perf_counter() - began}


def command_seconds(arguments: list[str], runs: int = 5) -> float:
    """Median wall seconds of a command."""
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run(arguments, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - began)
    return sorted(times)[runs // 2]


def report(first: dict[str, Any], again: dict[str, Any], one: dict[str, Any], help_seconds: float) -> None:
    seconds, rows = first["seconds"], first["rows"]
    print(
        f"files {rows['documents']}, pages {rows['pages']}, passages {rows['chunks']}, tokens {first['chunk_tokens']}"
    )
    files, pages = rows["documents"] / seconds, rows["pages"] / seconds
    print(f"first run        {seconds:7.1f} s   {files:.1f} files/s, {pages:.1f} pages/s")
    for name in STEPS:
        took = first["steps"].get(name, 0.0)
        print(f"  {name:<15}{took:7.1f} s   {rows['pages'] / max(took, 1e-9):8.1f} pages/s")
    others = sum(took for name, took in first["steps"].items() if name not in STEPS)
    print(f"  {'others':<15}{others:7.1f} s   facets, questions, clusters, meta knowledge, checks")
    rest = seconds - sum(first["steps"].values())
    print(f"  {'outside steps':<15}{rest:7.1f} s   imports, export of the embedder, Dagster's run records")
    embed = first["embed_seconds"]
    speed = first["chunk_tokens"] / max(embed, 1e-9)
    print(f"embedder         {embed:7.1f} s   {embed / seconds:.0%} of the wall time, {speed:.0f} passage tokens/s")
    print(
        f"everything else  {seconds - embed:7.1f} s   {1 - embed / seconds:.0%} of the wall time (target: at most 25 %)"
    )
    print(f"peak memory      {first['peak_mib']:7.0f} MiB, largest parsing process {first['peak_parser_mib']:.0f} MiB")
    print(
        f"nothing changed  {again['process_seconds']:7.1f} s   texts embedded: {again['embed_texts']}, "
        f"steps run: {len(again['steps'])} (target: at most 5 s, none)"
    )
    print(
        f"one file changed {one['process_seconds']:7.1f} s   of it {one['embed_seconds']:.1f} s embedding "
        f"{one['embed_texts']} texts (target: at most 10 s besides embedding)"
    )
    print(f"rag-assets --help {help_seconds:6.2f} s   (target: at most 0.3 s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="Folder of the development set.")
    parser.add_argument("--child", nargs=2, type=Path, metavar=("HOME", "SOURCE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(index_once(*arguments.child)))
        return
    documents = arguments.data / "ja_excel" / "docs"
    if not documents.is_dir():
        sys.exit(f"{documents} is not here: nothing to measure")
    with tempfile.TemporaryDirectory() as folder:
        home, source = Path(folder) / "home", Path(folder) / "docs"
        shutil.copytree(documents, source)
        for path in source.rglob("*"):
            path.chmod(0o755)
        first = in_child(home, source)
        again = in_child(home, source)
        books = sorted(source.rglob("*.xlsx"))
        shutil.copyfile(books[0], books[1])
        one = in_child(home, source)
        report(first, again, one, command_seconds([str(Path(sys.executable).parent / "rag-assets"), "--help"]))


if __name__ == "__main__":
    main()
