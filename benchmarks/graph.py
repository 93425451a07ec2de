"""The entity graph without a language model: what it costs as it grows, and what one changed document costs.

Transcripts of earnings calls are parsed, cut, and made into a graph with communities and reports by the steps of the
product, for a quarter, a half and all of them, spread over the years; every measurement is a process of its own. Then
single transcripts are revised (every tenth paragraph goes), removed and put back, each from the same published state:
reports that are rewritten, and the agreement of the communities with those before (adjusted Rand index over the
entities of both versions). Beside the modularity of the coarsest level
stands that of leidenalg and of NetworkX on the same graph. At last the sample and the workbooks are indexed by the
product with the graph and without, for what it adds. Run it with `python -m benchmarks.graph --data FOLDER`; `--part`
runs one part.
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
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import comb
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

from benchmarks import indexing
from rag_assets.contracts.tables import (
    CHUNKS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_INDEX,
    ENTITY_MENTIONS,
    RELATIONSHIPS,
    REPORT_INDEX,
)
from rag_assets.evaluation.judges.judgements import no_progress
from rag_assets.graph.communities.tables import (
    Community,
    by_level,
    detect_communities,
    load_communities,
    update_communities,
)
from rag_assets.graph.entities.tables import update_entities
from rag_assets.graph.exchange import level_metrics
from rag_assets.graph.mentions.recognizers import SpacyRecognizer
from rag_assets.graph.mentions.tables import update_mentions
from rag_assets.graph.reports.tables import update_reports
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.parsing.documents import update_chunks, update_documents
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.pipeline.steps import chunks_key, worker_count
from rag_assets.store.lake import SHARDS, WHOLE
from rag_assets.store.serving import entity_rows, report_rows

TRANSCRIPTS = Path("en_multihop/msft_earnings_calls/transcripts.zip")
EVERY = {"1/4": 4, "1/2": 2, "all": 1}
CHANGED = 3  # transcripts that are changed, one at a time
INDEXED = {"sample": Path(__file__).parents[1] / "docs" / "sample", "ja_excel": Path("ja_excel/docs")}
ADDED = (
    "extract_mentions",
    "resolve_entities",
    "detect_communities",
    "report_communities",
    "index_entities",
    "index_reports",
)
GRAPH_STEPS = ("mentions", "entities", "communities", "reports", "embed")
Found = TypeVar("Found")


def processor_seconds() -> float:
    """Of this process and those that it has seen end."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def peak_mib() -> float:
    """Of this process, with the largest one that it started as often as it starts them at once."""
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (own + child * len(os.sched_getaffinity(0))) / 1024


def open_home(folder: Path, source: Path) -> Home:
    return Home(load_settings(home=folder, sources=(f"calls={source}",), graph={"enabled": True}))


def update(home: Home) -> dict[str, Any]:
    """Bring everything up to the graph in step with the files; seconds by step, rows, reports that were rewritten."""
    model, settings = ExtractiveModel(), home.settings
    seconds, processor = dict[str, float](), dict[str, float]()

    def timed(name: str, run: Callable[[], Found]) -> Found:
        began, spent = time.perf_counter(), processor_seconds()
        found = run()
        seconds[name], processor[name] = time.perf_counter() - began, processor_seconds() - spent
        return found

    def parse() -> None:
        listing = home.listing()
        update_documents(home.lake, listing, SHARDS, home.options.parsing, worker_count(0), no_progress)
        size, overlap = settings.chunking.size_tokens, settings.chunking.overlap_share
        update_chunks(home.lake, SHARDS, home.embedder, chunks_key(home), size, overlap, no_progress)

    def mentions() -> None:
        with SpacyRecognizer(worker_count(0)) as recognizer:
            update_mentions(
                home.lake, SHARDS, model, home.options.mentions, home.options.entity_types, no_progress, recognizer
            )

    def embed() -> None:
        home.vectors.sync(ENTITY_INDEX, {WHOLE: entity_rows(home.lake, WHOLE)}, home.embedder)
        home.vectors.sync(REPORT_INDEX, {WHOLE: report_rows(home.lake, WHOLE)}, home.embedder)

    timed("parse", parse)
    timed("mentions", mentions)
    timed("entities", lambda: update_entities(home.lake, model, home.embedder, home.options.entities))
    found = timed("communities", lambda: update_communities(home.lake, home.options.leiden))
    reports = timed("reports", lambda: update_reports(home.lake, model, home.options.reports, no_progress))
    timed("embed", embed)
    tables = (CHUNKS, ENTITY_MENTIONS, ENTITIES, RELATIONSHIPS, COMMUNITIES, COMMUNITY_REPORTS)
    return {
        "seconds": seconds,
        "processor": processor,
        "rows": {each.name: home.lake.read(each, columns=[each.key[0]]).num_rows for each in tables},
        "sizes": found.sizes,
        "rewritten": reports.rewritten,
        "reports": reports.rewritten + reports.kept,
        "peak_mib": peak_mib(),
    }


def modularity(home: Home) -> dict[str, tuple[float, float]]:
    """Modularity of the coarsest level and seconds, of the product and of others on the same graph."""
    import igraph
    import leidenalg
    import networkx as nx

    entities = home.lake.read(ENTITIES, columns=["entity_id"])
    edges = home.lake.read(RELATIONSHIPS, columns=["source_id", "target_id", "weight"])
    began = time.perf_counter()
    detect_communities(entities, edges, home.options.leiden)
    found = {"rag_assets": (level_metrics(home.lake)[0].modularity, time.perf_counter() - began)}
    names = {name: place for place, name in enumerate(sorted(entities["entity_id"].to_pylist()))}
    ends = [(names[row["source_id"]], names[row["target_id"]]) for row in edges.to_pylist()]
    weights = edges["weight"].to_pylist()
    graph = igraph.Graph(len(names), ends)
    began = time.perf_counter()
    peer = leidenalg.find_partition(
        graph, leidenalg.ModularityVertexPartition, weights=weights, n_iterations=-1, seed=0
    )
    taken = time.perf_counter() - began
    found["leidenalg, until it cannot be improved"] = (graph.modularity(peer.membership, weights=weights), taken)
    other: nx.Graph[int] = nx.Graph()
    other.add_nodes_from(range(len(names)))
    other.add_weighted_edges_from((*end, weight) for end, weight in zip(ends, weights, strict=True))
    began = time.perf_counter()
    louvain = nx.community.louvain_communities(other, seed=0)
    taken = time.perf_counter() - began
    found["NetworkX, Louvain"] = (nx.community.modularity(other, louvain), taken)
    return found


def membership(communities: Sequence[Community]) -> list[dict[str, str]]:
    """Community of each entity, level by level."""
    levels = by_level(communities)
    return [{name: each.community_id for each in level for name in each.members} for level in levels]


def adjusted_rand_index(first: Mapping[str, object], second: Mapping[str, object]) -> float:
    """Agreement of two partitions on the names that both hold (Hubert and Arabie, 1985): 1 equal, 0 by chance."""
    names = first.keys() & second.keys()
    rows, columns = Counter(first[name] for name in names), Counter(second[name] for name in names)
    same = sum(comb(each, 2) for each in Counter((first[name], second[name]) for name in names).values())
    of_rows, of_columns = (sum(comb(each, 2) for each in counts.values()) for counts in (rows, columns))
    expected, greatest = of_rows * of_columns / comb(len(names), 2), (of_rows + of_columns) / 2
    return 1.0 if greatest == expected else (same - expected) / (greatest - expected)


def agreement(before: Sequence[Community], after: Sequence[Community]) -> list[float]:
    """Adjusted Rand index by level; a version of fewer levels stands for all finer ones with its last."""
    first, second = membership(before), membership(after)
    levels = range(max(len(first), len(second)))
    return [
        adjusted_rand_index(first[min(level, len(first) - 1)], second[min(level, len(second) - 1)]) for level in levels
    ]


def changed(home: Home) -> dict[str, Any]:
    """Bring the graph in step with a change."""
    before = load_communities(home.lake)
    done = update(home)
    done["ari"] = agreement(before, load_communities(home.lake))
    return done


def read_transcripts(archive: Path) -> dict[str, str]:
    """Transcripts by file name."""
    with zipfile.ZipFile(archive) as files:
        names = [name for name in files.namelist() if name.endswith(".txt")]
        return {Path(name).name: files.read(name).decode("utf-8") for name in names}


def revised(text: str) -> str:
    """A text without every tenth of its paragraphs."""
    paragraphs = text.split("\n")
    written = [index for index, each in enumerate(paragraphs) if each.strip()]
    gone = set(written[5::10])
    return "\n".join(each for index, each in enumerate(paragraphs) if index not in gone)


def in_child(task: str, home: Path, source: Path) -> dict[str, Any]:
    """Measure in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.graph", "--child", task, str(home), str(source)]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, Any] = json.loads(result.stdout)
    return found


CHILDREN: Mapping[str, Callable[[Home], object]] = {"build": update, "change": changed, "peers": modularity}


def scaling(work: Path, texts: Mapping[str, str]) -> None:
    """Build the graph of a part and of all; the homes and the folders are left in `work`."""
    counted = ("chunks", "entity_mentions", "entities", "relationships", "community_reports")
    print("".join(f"{name:>19}" for name in ("transcripts", *counted, "MiB")))
    built = {}
    for name, every in EVERY.items():
        home, source = work / f"home-{every}", work / f"calls-{every}"
        write(source, {key: texts[key] for key in sorted(texts)[::every]})
        built[name] = in_child("build", home, source)
        figures = [*(built[name]["rows"][each] for each in counted), round(built[name]["peak_mib"])]
        print(f"{name:>6}{len(list(source.iterdir())):>13}" + "".join(f"{each:>19}" for each in figures))
    for name, found in built.items():
        print(f"communities by level, and of them single entities, {name}: {found['sizes']}")
    for kind in ("seconds", "processor"):
        print(f"\n{'':6}{kind:>12}: " + "".join(f"{step:>12}" for step in ("parse", *GRAPH_STEPS)), end="")
        print(f"{'graph':>12}{'per 1,000 passages':>20}{'ratio':>7}")
        first = 0.0
        for name, found in built.items():
            spent = found[kind]
            graph = sum(spent[step] for step in GRAPH_STEPS)
            per_passage = 1000 * graph / found["rows"]["chunks"]
            first = first or per_passage
            print(f"{name:>6}{'':14}" + "".join(f"{spent[step]:>12.1f}" for step in ("parse", *GRAPH_STEPS)), end="")
            print(f"{graph:>12.1f}{per_passage:>20.2f}{per_passage / first:>7.2f}")


def write(source: Path, texts: Mapping[str, str]) -> None:
    source.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (source / name).write_text(text, encoding="utf-8")


def changes(work: Path, texts: Mapping[str, str]) -> None:
    """Change single transcripts, each time from the state that was built."""
    home, names = work / "home-1", sorted(texts)
    chosen = [names[(2 * each + 1) * len(names) // (2 * CHANGED)] for each in range(CHANGED)]
    print("one transcript: reports, rewritten, share, seconds, ARI by level")
    shares: dict[str, list[float]] = {}
    for name in chosen:
        fewer = {key: text for key, text in texts.items() if key != name}
        kinds = {"revised": {**texts, name: revised(texts[name])}, "removed": fewer, "put back": texts}
        for kind, now in kinds.items():
            copy, source = work / "copy", work / "calls"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(home if kind != "put back" else work / "without", copy, symlinks=True)
            shutil.rmtree(source, ignore_errors=True)
            write(source, now)
            if kind == "removed":
                shutil.rmtree(work / "without", ignore_errors=True)
                in_child("build", shutil.copytree(home, work / "without", symlinks=True), source)
            shown = f"{name.removesuffix('.txt').removeprefix('Transcript')} {kind}"
            print_change(shown, in_child("change", copy, source), shares.setdefault(kind, []))
    print("mean share of reports rewritten: " + ", ".join(f"{kind} {mean(each):.1%}" for kind, each in shares.items()))


def print_change(name: str, done: Mapping[str, Any], shares: list[float]) -> None:
    shares.append(done["rewritten"] / done["reports"])
    ari = " ".join(f"{each:.3f}" for each in done["ari"])
    seconds = sum(done["seconds"].values())
    print(f"{name:24}{done['reports']:>8}{done['rewritten']:>10}{shares[-1]:>7.1%}{seconds:>8.1f}  {ari}")


def costs(work: Path, data: Path) -> None:
    """Index folders by the product, with the graph and without."""
    print(f"{'indexing':12}{'graph':>8}{'seconds':>9}{'graph steps':>13}{'processor':>11}{'MiB':>7}")
    for name, folder in INDEXED.items():
        for enabled in ("false", "true"):
            os.environ["RAG_GRAPH__ENABLED"] = enabled
            before = processor_seconds()
            found = indexing.in_child(work / f"{name}-{enabled}", data / folder)
            spent = processor_seconds() - before
            added = sum(found["steps"].get(step, 0.0) for step in ADDED)
            print(f"{name:12}{'on' if enabled == 'true' else 'off':>8}{found['process_seconds']:>9.1f}", end="")
            print(f"{added:>13.1f}{spent:>11.1f}{found['peak_mib']:>7.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="Folder of the development set.")
    parser.add_argument("--part", choices=["transcripts", "indexing"], help="Only this part.")
    parser.add_argument("--child", nargs=3, metavar=("TASK", "HOME", "SOURCE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        task, home, source = arguments.child
        print(json.dumps(CHILDREN[task](open_home(Path(home), Path(source)))))
        return
    archive = arguments.data / TRANSCRIPTS
    if not archive.is_file():
        sys.exit(f"no transcripts at {archive}: give the folder of the development set with --data")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if arguments.part != "indexing":
            texts = read_transcripts(archive)
            scaling(work, texts)
            print("\nmodularity of level 0")
            for name, (value, seconds) in in_child("peers", work / "home-1", work / "calls-1").items():
                print(f"  {name:40}{value:.4f}{seconds:>8.2f} s")
            print()
            changes(work, texts)
            print()
        if arguments.part != "transcripts":
            costs(work, arguments.data.absolute())


if __name__ == "__main__":
    main()
