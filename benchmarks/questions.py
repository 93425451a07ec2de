"""Answers without a language model to questions of a reader who had not seen the product.

Japanese workbooks and government texts are indexed with default settings, the questions of `benchmarks/questions` are
searched and answered, and the measures are printed with intervals. Run it with `python -m benchmarks.questions --data
FOLDER`, FOLDER holding `ja_excel` and `ja_text`; `--home` keeps the index for the next time.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections import defaultdict
from pathlib import Path

QUESTIONS = Path(__file__).parent / "questions" / "workbooks_and_government.jsonl"
SOURCES = ("ja_excel", "gov")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--mode", action="append", help="repeatable; auto, unless given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, documents = arguments.home or Path(folder) / "home", Path(folder) / "documents"
        lay_out(arguments.data, documents)
        _run(home, "index", *(f"{name}={documents / name}" for name in SOURCES))
        modes = [option for mode in arguments.mode or ("auto",) for option in ("--mode", mode)]
        _run(home, "evaluate", str(QUESTIONS), *modes, "--level", "passage", "--answers", "--no-record")


def lay_out(data: Path, documents: Path) -> None:
    """Write the documents that the questions name: the workbooks, and a text for each government document.

    Args:
        data: The development set.
        documents: Folder that is made.
    """
    shutil.copytree(data / "ja_excel" / "docs", documents / SOURCES[0])
    pages: dict[str, list[tuple[int, str]]] = defaultdict(list)
    with (data / "ja_text" / "gov_pages" / "corpus.jsonl").open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            title = "_".join(unicodedata.normalize("NFC", record["title"].rpartition(" (p.")[0]).split())
            pages[title].append((record["page"], record["text"]))
    (documents / SOURCES[1]).mkdir()
    for title, texts in pages.items():
        text = "\f".join(text for _, text in sorted(texts))
        (documents / SOURCES[1] / f"{title}.txt").write_text(text, encoding="utf-8")


def _run(home: Path, *command: str) -> None:
    subprocess.run([sys.executable, "-m", "rag_assets", "--home", str(home), *command], check=True)


if __name__ == "__main__":
    main()
