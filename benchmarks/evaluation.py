"""What an evaluation takes beside its queries: questions by modes, figures with intervals, records and all.

Questions are drafted from the documents of an indexed home, and repeated with a number of their own so that no two are
the same text. Run it with `python -m benchmarks.evaluation --home HOME`, HOME without a language model; the records go
to a folder that is removed.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rag_assets.evaluation.drafts import draft_questions
from rag_assets.evaluation.evidence import Level
from rag_assets.evaluation.records import RunFacts, record_run
from rag_assets.evaluation.report import as_record
from rag_assets.evaluation.runs import RunOptions, evaluate
from rag_assets.evaluation.scores import figures, warnings
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import open_systems
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.lake import Lake

MODES = ("fulltext", "vector", "hybrid", "two_step", "weighted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=5_000)
    parser.add_argument("--level", choices=tuple(Level), action="append", help="repeatable; every one, unless given")
    arguments = parser.parse_args()
    levels = tuple(Level(each) for each in arguments.level or Level)
    home = Home(load_settings(home=arguments.home))
    systems = open_systems(home, MODES)
    drafts = draft_questions(systems[0].corpus, 200)
    questions = [
        replace(drafts[number % len(drafts)], id=f"q{number}", text=f"{drafts[number % len(drafts)].text} ({number})")
        for number in range(arguments.questions)
    ]
    began = time.perf_counter()
    evaluation = evaluate(systems, questions, RunOptions(levels=levels))
    asked = time.perf_counter()
    computed, notes = figures(evaluation), warnings(evaluation)
    intervals = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        facts = RunFacts("evaluate", "benchmark", {each.name: each.version for each in systems}, "extractive", "")
        record_run(Lake(Path(folder)), evaluation, computed, facts)
        recorded = time.perf_counter()
        (Path(folder) / "run.json").write_text(json.dumps(as_record(evaluation, computed, [], notes)), "utf-8")
    ended = time.perf_counter()
    queries = (
        sum(sum(result.milliseconds.values()) for of in evaluation.results.values() for result in of.values()) / 1000
    )
    print(f"{len(questions):,} questions, {len(MODES)} modes, {len(drafts)} texts: {ended - began:.1f} s in all")
    print(
        f"queries {queries:.1f} s; beside them asking {asked - began - queries:.1f} s, intervals "
        f"{intervals - asked:.1f} s, records {recorded - intervals:.1f} s, JSON {ended - recorded:.1f} s"
    )
    print(f"in all {(ended - began) / queries:.3f} of the queries' time")


if __name__ == "__main__":
    main()
