"""What small runs cost: processor time of `rag-assets` and all that it starts, on two files of one line each.

With `--data FOLDER` of a development set also one changed line beside its workbooks, in a home that holds both.

Run `python -m benchmarks.small_runs [--data FOLDER]`. Processor time, user and system, is what a busy machine changes
least. Each figure is the median of several runs, each in a process of its own.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_COMMAND = [sys.executable, "-c", "import sys; from rag_assets.cli import main; sys.exit(main())"]
_LINES = {"apples.txt": "Apples are picked in September.\n", "pears.txt": "Pears are picked in October.\n"}


def processor_seconds(home: Path, *arguments: str) -> float:
    """Processor seconds of a command and of the processes that it started and waited for."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "DAGSTER_"))}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*_COMMAND, "--home", str(home), *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _measure(folder: Path, models: Path) -> dict[str, float]:
    """One home from nothing, with an embedder that was exported before."""
    source, home = folder / "files", folder / "home"
    for made in (source, home):
        made.mkdir(parents=True)
    for name, line in _LINES.items():
        (source / name).write_text(line)
    (home / "models").symlink_to(models)
    costs = {"two one-line files from nothing": processor_seconds(home, "index", str(source))}
    (source / "pears.txt").write_text("Pears are picked in November.\n")
    costs["one changed line"] = processor_seconds(home, "index")
    costs["nothing changed"] = processor_seconds(home, "index")
    for command in ("status", "verify"):
        costs[command] = processor_seconds(home, command)
    return costs


def _measure_beside(data: Path, folder: Path) -> dict[str, float]:
    """One changed line beside the workbooks of a development set, several times."""
    source, home = folder / "files", folder / "home"
    shutil.copytree(data / "ja_excel/docs", source)
    for name, line in _LINES.items():
        (source / name).write_text(line)
    costs = {"workbooks from nothing": processor_seconds(home, "index", str(source))}
    for month in ("November", "December", "January"):
        (source / "pears.txt").write_text(f"Pears are picked in {month}.\n")
        costs[f"one changed line beside them, {month}"] = processor_seconds(home, "index")
    costs["nothing changed"] = processor_seconds(home, "index")
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="Homes that are made.")
    parser.add_argument("--data", type=Path, help="Folder of the development sets; without it two files alone.")
    options = parser.parse_args()
    repeats = options.repeats
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder, "models")
        models.mkdir()
        found = [_measure(Path(folder, str(number)), models) for number in range(repeats + 1)][1:]  # the first exports
    for name in found[0]:
        seconds = [each[name] for each in found]
        print(f"{name:<32} {statistics.median(seconds):5.2f} s  ({min(seconds):.2f} to {max(seconds):.2f})")
    if options.data is not None:
        with tempfile.TemporaryDirectory() as folder:
            for name, taken in _measure_beside(options.data, Path(folder)).items():
                print(f"{name:<44} {taken:.2f} s")


if __name__ == "__main__":
    main()
