"""Retrieval quality of the product on the development sets, mode by mode, with 95 % bootstrap intervals.

Every set goes through the product: folders are indexed by `rag-assets index` into a knowledge base of their own (a
passage of a `corpus.jsonl` is a Markdown file), and searched through `KnowledgeBase`. The government pages have lost
their PDFs, so that their texts are made into presentations, a slide a page. For the multi-hop sets the entity graph
with its community reports is indexed as well. No mode has a language model: `hyde` searches by feedback, `rewrite` by
rules. Each mode is compared with `hybrid` on the same queries by a paired bootstrap; over the workbooks, two steps are
compared with one by the first four passages as well. Beside the figures stands what BM25 reaches on the same set, as
its README states.

Run it with `python benchmarks/retrieval.py --data FOLDER`; with `--work` the knowledge bases are kept and only brought
in step the next time, and `--mode` leaves out others.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rag_assets.contracts.modes import GRAPH_MODES, SEARCH_MODES
from rag_assets.contracts.tables import CHUNK_INDEX
from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.questions import Evidence, Question, read_qrels, read_queries
from rag_assets.evaluation.runs import RunOptions, System, parse_system
from rag_assets.evaluation.runs import evaluate as run
from rag_assets.evaluation.statistics import Interval, PairedDifference, bootstrap_interval, paired_bootstrap
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import open_corpus
from rag_assets.pipeline.opening import knowledge_base, published_snapshot
from rag_assets.pipeline.settings import load_settings

try:
    import pptx
    from pptx.util import Cm
except ImportError as error:
    raise SystemExit(f"retrieval: {error}; this benchmark needs pip install 'rag-assets[dev]'") from error

DEPTH = 10
NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SEED = 20
BASELINE = "hybrid"
CHOICE = "R@5"  # by which the best single mode is chosen
PLAIN_MODES = (*(mode.name for mode in SEARCH_MODES if mode.reads == "passages"), "fulltext,vector")
SUMMARY_MODES = (
    "two_step:page",
    "two_step:file",
    "meta_knowledge",
    "rewrite+two_step",
    "hybrid,two_step",
    "two_step,meta_knowledge",
)
STEPS = {
    "vector": "raw_text",
    "two_step:file": "file_summary → raw_text",
    "two_step:page": "page_summary → raw_text",
}
GRAPH_SETS = frozenset({"en_multihop/hotpotqa_100", "en_multihop/musique_100"})


@dataclass(frozen=True)
class Task:
    """Queries over one knowledge base.

    Attributes:
        name: What the table is headed by.
        level: What a result is.
        questions: What is asked, with what is relevant.
        measures: Which measures are shown.
        floor: What BM25 reaches, as the data's README states.
        modes: Modes to compare, with what they are called; those of the set where there are none.
        baseline: The mode that others are compared with.
    """

    name: str
    level: Level
    questions: Sequence[Question]
    measures: Sequence[str]
    floor: Mapping[str, float]
    modes: Mapping[str, str] = field(default_factory=dict)
    baseline: str = BASELINE


@dataclass(frozen=True)
class Row:
    """Figures of one mode on one task, by measure, and how much better they are than those of the baseline."""

    task: str
    mode: str
    figures: dict[str, Interval]
    differences: dict[str, PairedDifference]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def index_folder(path: Path, home: Path, *, graph: bool = False) -> None:
    """Bring a knowledge base in step with a folder, by the product's own command."""
    command = Path(sys.executable).with_name("rag-assets")
    environment = {**os.environ, "RAG_HOME": str(home), "RAG_GRAPH__ENABLED": str(graph).lower()}
    done = subprocess.run(
        [str(command), "index", f"data={path}"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"rag-assets index {path} failed:\n{done.stderr[-2000:]}")


def open_home(home: Path) -> Home:
    return Home(load_settings(home=home))


def question(key: str, text: str, evidence: Iterable[Evidence]) -> Question:
    return Question(key, text, evidence=tuple(evidence))


def passage_path(number: int, passage: Mapping[str, Any]) -> str:
    """A Markdown file named after the title, in a folder of its number: titles repeat."""
    stem = re.sub(r"[\\/:*?\"<>|\0]", "_", passage["title"])[:60].strip(" .") or "untitled"
    return f"{number:05d}/{stem}.md"


def write_passages(corpus: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """One file a passage."""
    for number, passage in enumerate(corpus):
        path = folder / passage_path(number, passage)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {passage['title']}\n\n{passage['text']}\n", encoding="utf-8")


def passage_task(
    data: Path, work: Path, name: str, floor: Mapping[str, float], measures: Sequence[str]
) -> tuple[Home, list[Task]]:
    """A set of `corpus.jsonl`, every passage a file."""
    folder = data / name
    corpus = read_lines(folder / "corpus.jsonl")
    files, home = work / name / "files", work / name / "home"
    write_passages(corpus, files)
    index_folder(files, home, graph=name in GRAPH_SETS)

    files_of = {passage["_id"]: f"data/{passage_path(number, passage)}" for number, passage in enumerate(corpus)}
    relevant = read_qrels(folder / "qrels.tsv")
    questions = [
        question(key, text, (Evidence(files_of[each]) for each in relevant[key]))
        for key, text in read_queries(folder / "queries.jsonl")
    ]
    return open_home(home), [Task(name, Level.DOCUMENT, questions, measures, floor)]


def write_slides(pages: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A presentation of which each slide holds the text of a page, a line a paragraph."""
    presentation = pptx.Presentation()
    presentation.core_properties.title = re.sub(r" \(p\.\d+/\d+\)$", "", pages[0]["title"])
    blank = presentation.slide_layouts[6]
    for page in pages:
        frame = presentation.slides.add_slide(blank).shapes.add_textbox(0, 0, Cm(24), Cm(18)).text_frame
        frame.text = "\n".join(filter(None, (line.strip() for line in NOT_XML.sub(" ", page["text"]).splitlines())))
    presentation.save(str(path))


def gov_pages_task(data: Path, work: Path) -> tuple[Home, list[Task]]:
    """Pages of PDFs of which only the text is given: a presentation a PDF, a slide a page."""
    folder = data / "ja_text/gov_pages"
    files, path = work / "ja_text/gov_pages/files", work / "ja_text/gov_pages/home"
    by_file: dict[str, dict[int, Mapping[str, Any]]] = {}
    for passage in read_lines(folder / "corpus.jsonl"):
        by_file.setdefault(passage["file"], {})[passage["page"]] = passage
    files.mkdir(parents=True, exist_ok=True)
    for name, pages in by_file.items():
        target = files / f"{name}.pptx"
        if not target.exists():
            write_slides([pages[number] for number in sorted(pages)], target)
    index_folder(files, path)
    slides = {
        pages[number]["_id"]: Evidence(f"data/{name}.pptx", f"slide {position}")
        for name, pages in by_file.items()
        for position, number in enumerate(sorted(pages), start=1)
    }
    relevant = read_qrels(folder / "qrels.tsv")
    questions = [
        question(key, text, (slides[each] for each in relevant[key]))
        for key, text in read_queries(folder / "queries.jsonl")
    ]
    floor = {"R@5": 0.937, "MRR@10": 0.823}
    return open_home(path), [Task("ja_text/gov_pages", Level.PAGE, questions, ("R@1", "R@5", "MRR@10"), floor)]


def excel_tasks(data: Path, work: Path) -> tuple[Home, list[Task]]:
    """Design workbooks: test cases and README sentences ask for workbooks, test cases for their sheets as well."""
    folder, path = data / "ja_excel", work / "ja_excel/home"
    index_folder(folder / "docs", path)
    home = open_home(path)
    cases, sentences = (read_lines(folder / f"{kind}_queries.jsonl") for kind in ("testcase", "readme"))
    measures = ("R@1", "R@5", "MRR@10")

    def by_document(name: str, queries: Sequence[Mapping[str, Any]], floor: Mapping[str, float]) -> Task:
        questions = [
            question(query["_id"], query["text"], (Evidence(f"data/{document}") for document in query["relevant"]))
            for query in queries
        ]
        return Task(f"ja_excel {name}", Level.DOCUMENT, questions, measures, floor)

    def by_steps(task: Task) -> Task:
        """Two steps against one: whether the first four passages hold one of a relevant workbook, and at which rank."""
        name, first = f"{task.name}, two steps and one", ("HitRate@4", "MRR@4")
        return replace(task, name=name, level=Level.PASSAGE, measures=first, floor={}, modes=STEPS, baseline="vector")

    def by_summaries(task: Task) -> Task:
        """Page against file summaries."""
        formats = {mode: STEPS[mode] for mode in ("two_step:file", "two_step:page")}
        return replace(task, name=f"{task.name}, summaries", floor={}, modes=formats, baseline="two_step:file")

    sheets = relevant_sheets(home, cases)
    placed = [question(case["_id"], case["text"], sheets[case["_id"]]) for case in cases if sheets[case["_id"]]]
    by_case = by_document("test cases", cases, {"R@5": 0.420, "MRR@10": 0.501})
    by_sentence = by_document("README", sentences, {"R@5": 0.308, "MRR@10": 0.178})
    by_sheet = Task("ja_excel test cases, sheets", Level.PAGE, placed, measures, {})
    tasks = [each(task) for task in (by_case, by_sentence) for each in (by_steps, by_summaries)]
    return home, [by_case, by_sheet, by_sentence, *tasks]


def relevant_sheets(home: Home, cases: Sequence[Mapping[str, Any]]) -> dict[str, list[Evidence]]:
    """For each test case the sheets of its relevant workbooks whose name its author's `place` states."""
    snapshot = home.snapshots.current()
    assert snapshot is not None
    table = home.vectors.open_at(CHUNK_INDEX.name, snapshot.vector_tables[CHUNK_INDEX.name])
    rows = table.search().select(["document_id", "page_number", "page_name"]).limit(None).to_arrow().to_pylist()
    pages = sorted({(row["document_id"], row["page_number"], row["page_name"] or "") for row in rows})
    found: dict[str, list[Evidence]] = {}
    for case in cases:
        names = [name.strip() for name in re.split(r"\([a-z]\)|[、\n]", case.get("place") or "") if name.strip()]
        documents = {f"data/{document}" for document in case["relevant"]}
        found[case["_id"]] = [
            Evidence(document_id, f"page {number}")
            for document_id, number, page_name in pages
            if document_id in documents and any(name in page_name for name in names)
        ]
    return found


LOADERS: Mapping[str, Callable[[Path, Path], tuple[Home, list[Task]]]] = {
    "ja_excel": excel_tasks,
    "ja_text/gov_pages": gov_pages_task,
    "ja_text/jsquad": partial(
        passage_task, name="ja_text/jsquad", floor={"R@5": 0.972}, measures=("R@1", "R@5", "MRR@10")
    ),
    "en_multihop/hotpotqa_100": partial(
        passage_task,
        name="en_multihop/hotpotqa_100",
        floor={"R@2": 0.55, "R@5": 0.760, "MRR@10": 0.848},
        measures=("R@2", "R@5", "All@8", "MRR@10"),
    ),
    "en_multihop/musique_100": partial(
        passage_task,
        name="en_multihop/musique_100",
        floor={"R@2": 0.35, "R@5": 0.459, "MRR@10": 0.703},
        measures=("R@2", "R@5", "All@8", "MRR@10"),
    ),
}


def evaluate(home: Home, task: Task, modes: Sequence[str]) -> list[Row]:
    """Answer all queries of a task in each mode; what `auto` chooses is compared with the best single mode as well."""
    snapshot = published_snapshot(home)
    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    systems = [System(mode, base, corpus, *parse_system(mode)[:2]) for mode in modes]
    options = RunOptions(tuple(task.measures), (task.level,), k=DEPTH)
    evaluation = run(systems, task.questions, options)
    values = {
        mode: {name: evaluation.values(mode, task.level, name) for name in task.measures} for mode in evaluation.systems
    }
    baseline = values[task.baseline]
    rows = [
        Row(
            task.name,
            mode,
            {name: bootstrap_interval(found[name], seed=SEED) for name in task.measures},
            {name: paired_bootstrap(found[name], baseline[name], seed=SEED) for name in task.measures},
        )
        for mode, found in values.items()
    ]
    single = [mode for mode in modes if mode != "auto" and not set(mode) & {",", "+"}]
    if "auto" not in values or not single:
        return rows
    best = max(single, key=lambda mode: sum(values[mode][CHOICE]))
    found = paired_bootstrap(values["auto"][CHOICE], values[best][CHOICE], seed=SEED)
    return [*rows, Row(task.name, f"auto against {best}", {}, {CHOICE: found})]


def shown(measure: str, cell: Interval) -> str:
    """A figure with its interval; of the first four passages in percent, as the source of two-step search prints it."""
    if measure.endswith("@4"):
        return f"{100 * cell.mean:.1f} % [{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
    return f"{cell.mean:.3f} [{cell.low:.3f}, {cell.high:.3f}]"


def print_table(task: Task, rows: Sequence[Row]) -> None:
    print(f"\n{task.name}: {len(task.questions)} queries, {task.level} level")
    print(f"{'':24}" + "".join(f"{measure:>24}" for measure in task.measures))
    for row in (each for each in rows if each.figures):
        cells = (shown(name, cell) for name, cell in row.figures.items())
        print(f"{task.modes.get(row.mode, row.mode):24}" + "".join(f"{cell:>24}" for cell in cells))
    if task.floor:
        cells = (f"{task.floor[name]:.3f}{'':15}" if name in task.floor else "" for name in task.measures)
        print(f"{'BM25 (README)':24}" + "".join(f"{cell:>24}" for cell in cells))
    print(f"against {task.modes.get(task.baseline, task.baseline)}: difference, interval, p")
    for row in rows:
        if row.mode != task.baseline:
            found = ((each.difference, each.p_value) for each in row.differences.values())
            cells = (f"{each.mean:+.3f} [{each.low:+.3f}, {each.high:+.3f}] {p:.3f}" for each, p in found)
            print(f"  {task.modes.get(row.mode, row.mode):22}" + "".join(f"{cell:>32}" for cell in cells))


def modes_for(base_name: str) -> list[str]:
    """The modes that a set can be searched by; few sets have an entity graph."""
    return [*PLAIN_MODES, *SUMMARY_MODES, *((*GRAPH_MODES, "hybrid,graph_local") if base_name in GRAPH_SETS else ())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="Folder of the development set.")
    parser.add_argument("--work", type=Path, help="Folder that keeps the knowledge bases; else a temporary one.")
    parser.add_argument("--set", dest="sets", action="append", choices=list(LOADERS), help="Only these sets.")
    parser.add_argument("--mode", dest="modes", action="append", help="Only these modes, beside the baseline.")
    parser.add_argument("--json", action="store_true", help="Print JSON instead of tables.")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        sys.exit(f"no development set at {arguments.data}: give its folder with --data")
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or Path(temporary)).absolute()
        for name in arguments.sets or LOADERS:
            if not (arguments.data / name).is_dir():
                print(f"{name}: not in {arguments.data}, left out", file=sys.stderr)
                continue
            home, tasks = LOADERS[name](arguments.data.absolute(), work)
            for task in (each for each in tasks if each.questions):
                offered = [*task.modes] or modes_for(name)
                wanted = [each for each in offered if each in {task.baseline, *(arguments.modes or offered)}]
                rows = evaluate(home, task, wanted)
                if arguments.json:
                    print(json.dumps({"floor": dict(task.floor), "rows": [asdict(row) for row in rows]}))
                else:
                    print_table(task, rows)


if __name__ == "__main__":
    main()
