"""What weights and query maps learned on a collection are worth, on the development sets.

- Learning curves: of each set, weights, and trees on top of those shipped, are learned from 10, 30, 100 and 300 of its
  questions and measured on those of other documents, every question once in each of several repetitions.
- Leave one set out: weights are learned from all other sets.
- Query map: learned from as many questions, and searched with.

R@5 at the level of the set against the shipped weights, with a paired bootstrap over questions. The signals are
computed once a set and cached below `--work`. Run it with `python -m benchmarks.training --data FOLDER --work FOLDER`.
"""

import argparse
import pickle
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import retrieval
from rag_assets.evaluation.evidence import Corpus, Level
from rag_assets.evaluation.questions import Question, read_questions
from rag_assets.evaluation.statistics import bootstrap_interval, paired_bootstrap
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.measuring import open_corpus
from rag_assets.pipeline.opening import knowledge_base, published_snapshot
from rag_assets.query import KnowledgeBase
from rag_assets.query.search.ranking_weights import SHIPPED, BoostedWeights, Ranking, Scorer, Weights
from rag_assets.training.pairs import JudgedQuestion, document_folds, judged_questions
from rag_assets.training.query_map import learned_map
from rag_assets.training.ranking import DEPTH, LEVELS, MEASURE, Learn, learned_trees, learned_weights

SIZES = (10, 30, 100, 300)
REPETITIONS = 3
FOLDS = 5
LEARNERS: Mapping[str, Learn] = {"linear": learned_weights, "trees": learned_trees}
QUESTIONS = "questions"
SETS = ("ja_excel", "ja_text/jsquad", "ja_text/gov_pages", "en_multihop/hotpotqa_100", "en_multihop/musique_100")


@dataclass(frozen=True)
class Set:
    """A development set.

    Attributes:
        name: What it is called.
        level: What is looked for.
        judged: Its questions with their signals.
    """

    name: str
    level: Level
    judged: list[JudgedQuestion]


def opened(name: str, data: Path, work: Path, questions_home: Path | None) -> tuple[Home, Level, Sequence[Question]]:
    """Knowledge base, level and questions of a set."""
    if name == QUESTIONS:
        assert questions_home is not None
        return retrieval.open_home(questions_home), Level.PASSAGE, read_questions(data / "questions/questions.jsonl")
    home, tasks = retrieval.LOADERS[name](data, work)
    level = tasks[0].level
    return (
        home,
        level,
        list({each.id: each for task in tasks if task.level is level for each in task.questions}.values()),
    )


def parts(home: Home) -> tuple[KnowledgeBase, Corpus]:
    snapshot = published_snapshot(home)
    return knowledge_base(home, snapshot), open_corpus(home, snapshot)


def loaded(name: str, data: Path, work: Path, questions_home: Path | None) -> Set:
    """A set, from the cache where it is there."""
    cache = work / f"signals-{name.replace('/', '-')}.pickle"
    if not cache.exists():
        home, level, questions = opened(name, data, work, questions_home)
        began = time.perf_counter()
        judged = judged_questions(*parts(home), questions, vectors=True)
        print(f"{name}: signals of {len(judged)} questions in {time.perf_counter() - began:.0f} s", flush=True)
        cache.write_bytes(pickle.dumps((level, judged)))
    level, judged = pickle.loads(cache.read_bytes())
    return Set(name, level, judged)


def values(found: Set, positions: Sequence[int], weights: Scorer) -> list[float]:
    return [found.judged[each].value(weights, found.level, MEASURE, DEPTH) for each in positions]


def sampled(positions: Sequence[int], size: int, seed: int) -> list[int]:
    return random.Random(seed).sample(list(positions), min(size, len(positions)))


def row(label: str, after: Sequence[float], before: Sequence[float], note: str = "") -> str:
    change = paired_bootstrap(after, before, seed=retrieval.SEED).difference
    found = bootstrap_interval(after, seed=retrieval.SEED)
    return f"| {label} | {found.mean:.3f} | {change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}] | {note} |"


def sizes_of(count: int) -> list[int]:
    """Sizes that leave a fold to be measured, and all that do."""
    most = count * (FOLDS - 1) // FOLDS
    return [*(each for each in SIZES if each < most), most]


def weights_curve(found: Set) -> None:
    shipped = SHIPPED[LEVELS[found.level]]
    everything = range(len(found.judged))
    before = values(found, everything, shipped)
    print(
        f"\n{found.name}: {len(before)} questions, {found.level} {MEASURE}, shipped {np.mean(before):.3f}", flush=True
    )
    for model, learn in LEARNERS.items():
        for size in sizes_of(len(before)):
            reached = np.zeros((REPETITIONS, len(before)))
            unchanged, seconds = 0, []
            for repetition in range(REPETITIONS):
                for held_out in document_folds([each.documents for each in found.judged], FOLDS, repetition):
                    others = sorted(set(everything) - set(held_out))
                    began = time.perf_counter()
                    chosen = [found.judged[each] for each in sampled(others, size, repetition)]
                    weights, _ = learn(chosen, found.level)
                    seconds.append(time.perf_counter() - began)
                    unchanged += weights == shipped
                    reached[repetition, held_out] = values(found, held_out, weights)
            note = f"{unchanged} of {len(seconds)} as shipped, {np.mean(seconds):.2f} s"
            print(row(f"{model}, {size}", list(reached.mean(axis=0)), before, note), flush=True)
        weights, strength = learn(found.judged, found.level)
        parts = weights.gains if isinstance(weights, BoostedWeights) else weights
        print(f"all {len(before)}: {model}, {strength:g}, {parts}", flush=True)


def leave_one_out(sets: Sequence[Set]) -> None:
    print("\nlearned from the other sets", flush=True)
    for found in sets:
        others = [replace_id(each, other.name) for other in sets if other is not found for each in other.judged]
        weights, pull = learned_weights(others, found.level)
        everything = range(len(found.judged))
        before = values(found, everything, SHIPPED[LEVELS[found.level]])
        after = values(found, everything, weights)
        print(row(found.name, after, before, f"from {len(others)} questions, pull {pull}"), flush=True)


def replace_id(judged: JudgedQuestion, name: str) -> JudgedQuestion:
    """A question whose documents are those of its set alone."""
    return replace(judged, documents=frozenset(f"{name}/{each}" for each in judged.documents))


def map_curve(found: Set, home: Home, questions: Sequence[Question]) -> None:
    base, corpus = parts(home)
    by_id = {each.id: each for each in questions}
    shipped = SHIPPED[LEVELS[found.level]]
    meaning = Weights(words=0.0, meaning=1.0)
    everything = range(len(found.judged))
    print(f"\n{found.name}: query map, {found.level} {MEASURE}", flush=True)
    for size in sizes_of(len(found.judged)):
        searched: dict[str, JudgedQuestion] = {}
        unchanged = 0
        for held_out in document_folds([each.documents for each in found.judged], FOLDS):
            others = sorted(set(everything) - set(held_out))
            query_map, _ = learned_map([found.judged[each] for each in sampled(others, size, 0)])
            unchanged += query_map is None
            if query_map is None:
                searched |= {found.judged[each].id: found.judged[each] for each in held_out}
                continue
            mapped = base.variant(replace(base.options, ranking=Ranking(query_map=query_map)))
            asked = [by_id[found.judged[each].id] for each in held_out]
            searched |= {each.id: each for each in judged_questions(mapped, corpus, asked)}
        after = Set(found.name, found.level, [searched[each.id] for each in found.judged])
        for name, weights in (("weighted", shipped), ("meaning alone", meaning)):
            note = f"{name}, {unchanged} of {FOLDS} without a map"
            print(
                row(str(size), values(after, everything, weights), values(found, everything, weights), note), flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="Folder of the development set.")
    parser.add_argument("--work", type=Path, required=True, help="Folder of knowledge bases and signals.")
    parser.add_argument("--questions-home", type=Path, help="Knowledge base that the question set is about.")
    parser.add_argument("--set", dest="sets", action="append", help="Only these sets.")
    parser.add_argument("--map", action="store_true", help="Measure the query map as well, which searches anew.")
    arguments = parser.parse_args()
    data, work = arguments.data.absolute(), arguments.work.absolute()
    names = arguments.sets or [*SETS, *([QUESTIONS] if arguments.questions_home else [])]
    sets = [loaded(name, data, work, arguments.questions_home) for name in names]
    for found in sets:
        weights_curve(found)
    if len(sets) > 1:
        leave_one_out(sets)
    for found in sets if arguments.map else ():
        home, _, questions = opened(found.name, data, work, arguments.questions_home)
        map_curve(found, home, questions)


if __name__ == "__main__":
    main()
