"""The pipeline in step with its sources: what a change costs, what it leaves, what a failure leaves."""

import io
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dagster as dg
import openpyxl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from indexing import Rows, copy_into, names_of_one_shard, published, rebuilt, run_index
from msoffcrypto.format.ooxml import OOXMLFile

from rag_assets.cli import main
from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES, PARSE_FAILURES, TABLES
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.resources import HomeResource, LogProgress
from rag_assets.parsing.documents import update_documents
from rag_assets.pipeline.freshness import unfinished_steps
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.lake import SHARDS, Lake, shard_of

INDEXES = {"chunk_index", "summary_index", "question_index", "entity_index", "report_index"}
WORDS = [
    "顧客登録",
    "エラーコード",
    "E0004",
    "アクセストークン",
    "invoice",
    "latency budget",
    "受付番号",
    "料金表",
    "backup",
]


def write(home: Home, name: str, text: str) -> Path:
    path = Path(home.settings.sources[0]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def note(topic: str) -> str:
    table = f"| 項目 | 値 |\n| --- | --- |\n| {topic} | 42 |\n"
    return f"# {topic}\n\n{topic} の手順を示す。担当者は {topic} を確認する。\n\n{table}"


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def cached_vectors(home: Home) -> int:
    return home.vectors.cached(home.embedder.dimension)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Home:
    """A knowledge base on the documents `a.md` and `b.md`, indexed; not to be changed."""
    folder = tmp_path_factory.mktemp("kept")
    for name in ("specs", "home"):
        (folder / name).mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    home = Home(load_settings(home=folder / "home", sources=(str(folder / "specs"),)))
    write(home, "a.md", note("料金表"))
    write(home, "b.md", note("受付番号"))
    run_index(home)
    return home


def home_copied(other: Home, folder: Path) -> Home:
    """A copy of a knowledge base on the same documents."""
    shutil.copytree(other.path, folder, symlinks=True)
    return Home(load_settings(home=folder, sources=other.settings.sources))


@pytest.fixture
def indexed(home: Home, kept: Home) -> Home:
    """A copy of it, with its documents, that may be changed."""
    return copy_into(home, kept.path, Path(kept.settings.sources[0]))


def test_nothing_changed_costs_nothing(home: Home) -> None:
    write(home, "a.md", note("顧客登録"))
    run_index(home)
    before = files(home.path)
    changes = run_index(home)
    assert changes.shards == ()
    assert changes.unchanged == 1
    assert files(home.path) == before


def test_a_touched_file_is_neither_parsed_nor_embedded_again(home: Home) -> None:
    path = write(home, "a.md", note("顧客登録"))
    run_index(home)
    pages, chunks = home.lake.latest(PAGES), home.lake.latest(CHUNKS)
    os.utime(path, ns=(10**18, 10**18))
    assert run_index(home).changed == ("specs/a.md",)
    assert (home.lake.latest(PAGES), home.lake.latest(CHUNKS)) == (pages, chunks)
    assert run_index(home).shards == ()


def test_only_rows_of_the_changed_document_change(home: Home) -> None:
    names = [name for shard in SHARDS[:3] for name in names_of_one_shard("{}.md", 3, shard)]
    for name, word in zip(names, WORDS, strict=True):
        write(home, name, note(word))
    chosen = f"specs/{names[3]}"
    run_index(home)
    before, versions = published(home), {table: home.lake.latest(table) for table in (PAGES, CHUNKS)}
    write(home, names[3], note("まったく別の話題"))
    run_index(home)
    after = published(home)
    for name, rows in after.items():
        kept = [row for row in before[name] if row["document_id"] != chosen]
        assert [row for row in rows if row["document_id"] != chosen] == kept, name
        if name in {PAGES.name, BLOCKS.name, CHUNKS.name}:  # of its text; others may be the same of other words
            changed, earlier = ([row for row in each if row["document_id"] == chosen] for each in (rows, before[name]))
            assert changed, name
            assert changed != earlier, name
    touched = shard_of(chosen)
    for table, old in versions.items():
        assert {s for s, v in home.lake.latest(table).items() if old.get(s) != v} == {touched}
    assert "まったく別の話題" in knowledge_base(Home(home.settings)).search("まったく別の話題", k=1).hits[0].text


def test_a_deleted_file_leaves_no_trace(indexed: Home) -> None:
    home = indexed
    (Path(home.settings.sources[0]) / "a.md").unlink()
    assert run_index(home).gone == ("specs/a.md",)
    for name, rows in published(home).items():
        assert not [row for row in rows if "a.md" in str(row) or "料金表" in str(row)], name
    hits = knowledge_base(Home(home.settings)).search("料金表", k=10).hits
    assert {hit.document_id for hit in hits} == {"specs/b.md"}


def test_a_moved_file_is_not_embedded_again_but_for_its_name(home: Home) -> None:
    path = write(home, "old/a.md", note("顧客登録"))
    write(home, "b.md", note("料金表"))
    run_index(home)
    vectors = cached_vectors(home)
    (path.parents[1] / "new").mkdir()
    shutil.move(path, path.parents[1] / "new" / "a.md")
    changes = run_index(home)
    assert (changes.new, changes.gone) == (("specs/new/a.md",), ("specs/old/a.md",))
    assert cached_vectors(home) == vectors
    documents = {row["document_id"] for row in published(home)["lancedb.chunks"]}
    assert documents == {"specs/new/a.md", "specs/b.md"}


def drawn(rng: random.Random, pattern: str) -> str:
    """A name with a random number, of one of a few shards, so that runs are short."""
    return next(
        name
        for name in (pattern.format(rng.randint(0, 999)) for _ in itertools.count())
        if shard_of(f"specs/{name}") in SHARDS[:8]
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_incremental_equals_full(home: Home, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = Path(home.settings.sources[0])
    for step in range(5):
        for _ in range(rng.randint(1, 5)):
            present = sorted(path for path in root.rglob("*.*") if path.is_file())
            action = rng.choice(["add", "add", "change", "delete", "rename", "copy", "break"])
            target = root / drawn(rng, f"{rng.choice(['', '深い/', 'old/'])}{rng.choice(WORDS)} {{}}.md")
            target.parent.mkdir(parents=True, exist_ok=True)
            if action == "add" or not present:
                target.write_text(note(rng.choice(WORDS)), encoding="utf-8")
            elif action == "change":
                rng.choice(present).write_text(note(f"{rng.choice(WORDS)} {step}"), encoding="utf-8")
            elif action == "delete":
                rng.choice(present).unlink()
            elif action == "rename":
                rng.choice(present).rename(target)
            elif action == "copy":
                shutil.copy2(rng.choice(present), root / drawn(rng, "copy {}.md"))
            else:
                (root / drawn(rng, "{}.xlsx")).write_bytes(rng.randbytes(200))
        run_index(home)
    incremental = published(home)
    full = published(rebuilt(home, tmp_path / "full"))
    assert incremental.keys() == full.keys()
    for name, rows in full.items():
        assert incremental[name] == rows, name


def change_both(home: Home) -> None:
    """Another text for one of the two documents; the other one goes."""
    (Path(home.settings.sources[0]) / "a.md").write_text(note("顧客登録"), encoding="utf-8")
    (Path(home.settings.sources[0]) / "b.md").unlink()


@pytest.fixture(scope="module")
def changed(kept: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Rows]:
    """A knowledge base whose two documents have changed since it was indexed, and what a new one publishes."""
    folder = tmp_path_factory.mktemp("changed")
    for name in ("specs", "home"):
        (folder / name).mkdir()
    home = Home(load_settings(home=folder / "home", sources=(str(folder / "specs"),)))
    home = copy_into(home, kept.path, Path(kept.settings.sources[0]))
    run_index(home)  # the documents have moved
    change_both(home)
    return home, published(rebuilt(home, folder / "full"))


@pytest.mark.parametrize("written", range(4))
def test_a_run_killed_between_two_tables_is_finished_by_the_next(
    changed: tuple[Home, Rows], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    home, expected = home_copied(changed[0], tmp_path / "copied"), changed[1]
    write_shard, calls = Lake.write, list[int]()

    def dying(*arguments: Any, **options: Any) -> Any:
        if len(calls) == written:
            raise KeyboardInterrupt
        calls.append(1)
        return write_shard(*arguments, **options)

    shards = sorted({shard_of("specs/a.md"), shard_of("specs/b.md")})
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "write", dying)
        with pytest.raises(KeyboardInterrupt):
            update_documents(home.lake, home.listing(), shards, home.options.parsing, 1, lambda *_: None)
    run_index(home)
    assert published(home) == expected


def test_a_bad_file_is_a_row_and_stops_nothing(home: Home) -> None:
    write(home, "good.md", note("料金表"))
    (Path(home.settings.sources[0]) / "bad.xlsx").write_bytes(b"PK\x03\x04 not a workbook")
    (Path(home.settings.sources[0]) / "empty.pdf").write_bytes(b"")
    run_index(home)
    causes = {row["document_id"]: row["cause"] for row in home.lake.read(PARSE_FAILURES).to_pylist()}
    assert causes.keys() == {"specs/bad.xlsx", "specs/empty.pdf"}
    statuses = {row["document_id"]: row["status"] for row in home.lake.read(DOCUMENTS).to_pylist()}
    assert statuses == {"specs/good.md": "parsed", "specs/bad.xlsx": "failed", "specs/empty.pdf": "failed"}
    assert run_index(home).shards == ()


def test_an_encrypted_file_is_indexed_when_a_password_is_new(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(name: str) -> Any:
        result = CliRunner().invoke(main, ["--home", str(home.path), name, "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    book, plain = openpyxl.Workbook(), io.BytesIO()
    book.active["A1"] = "秘密の料金表"
    book.save(plain)
    with (Path(home.settings.sources[0]) / "locked.xlsx").open("wb") as locked:
        OOXMLFile(plain).encrypt("ひみつ", locked)
    run_index(home)
    assert home.lake.read(PARSE_FAILURES)["cause"].to_pylist() == ["encrypted"]
    assert home.lake.read(CHUNKS).num_rows == 0
    shard, number = shard_of("specs/locked.xlsx"), 1
    monkeypatch.setenv("RAG_SOURCES", ",".join(home.settings.sources))
    for passwords, is_new, found in (
        ("", False, 0),
        ("sesame-42", True, 0),
        ("sesame-42", False, 0),
        ("", False, 0),
        ("sesame-42\nひみつ", True, 1),
        ("sesame-42\nother", False, 1),
        ("", False, 1),
    ):
        monkeypatch.setenv("RAG_PASSWORDS", passwords)
        stale = [{"step": "parse", "reason": "new password", "shards": [shard]}] if is_new else []
        assert command("status")["stale"] == stale
        indexed = command("index")
        number += is_new
        assert (indexed["shards"], indexed["snapshot"]) == ([shard] if is_new else [], number)
        assert home.lake.read(CHUNKS).num_rows == found
        assert unfinished_steps(home) == []
        assert command("status")["stale"] == []
    kept = b"".join(path.read_bytes() for path in home.path.rglob("*") if path.is_file() and not path.is_symlink())
    assert not any(each.encode() in kept for each in ("sesame-42", "ひみつ"))
    assert "秘密の料金表" in knowledge_base(Home(home.settings)).search("料金表", k=1).hits[0].text


def test_an_unmounted_source_loses_nothing(indexed: Home) -> None:
    home = indexed
    folder = Path(home.settings.sources[0])
    before = published(home)
    folder.rename(folder.with_name("hidden"))
    changes = run_index(home)
    assert "no such folder" in changes.unreachable["specs"]
    folder.mkdir()
    changes = run_index(home)
    assert "holds no file, but 2 documents" in changes.unreachable["specs"]
    assert changes.shards == ()
    assert published(home) == before


def test_broken_tables_are_not_published(indexed: Home) -> None:
    home = indexed
    before = home.snapshots.current()
    shard = shard_of("specs/a.md")
    rows = home.lake.read(CHUNKS, [shard])
    column = rows.schema.get_field_index("page_id")
    orphans = rows.set_column(column, rows.schema.field(column), pa.array(["specs/nowhere.md#1"] * rows.num_rows))
    home.lake.write(CHUNKS, shard, orphans, home.lake.inputs(CHUNKS, shard))
    run_index(home, succeeds=False)
    assert home.snapshots.current() == before
    assert knowledge_base(Home(home.settings)).search("料金表", k=1).hits[0].document_id == "specs/a.md"


def test_a_half_finished_run_of_others_is_not_published(indexed: Home) -> None:
    home = indexed
    before = home.snapshots.current()
    shard = shard_of("specs/a.md")
    home.lake.write(BLOCKS, shard, home.lake.read(BLOCKS, [shard]), {"specs/a.md": "parsed anew by another run"})
    snapshot = build_definitions(home=HomeResource(home.settings)).get_assets_def("snapshot")
    with dg.DagsterInstance.ephemeral() as instance:
        resources = {"home": HomeResource(home.settings)}
        failed = dg.materialize([snapshot], instance=instance, resources=resources, raise_on_error=False)
    assert not failed.success
    assert unfinished_steps(home) == [
        f"{name}, shard {shard}" for name in ("pages", "parse_failures", "chunks", "page_summaries")
    ]
    assert home.snapshots.current() == before
    run_index(home)
    assert unfinished_steps(home) == []


def test_rows_indexed_from_an_older_state_are_not_published_and_are_mended(home: Home) -> None:
    path = write(home, "a.md", note("有効期限は 3600 秒"))
    run_index(home)
    path.write_text(note("有効期限は 9999 秒"), encoding="utf-8")
    definitions = build_definitions(home=HomeResource(home.settings))
    parts = [definitions.get_assets_def(name) for name in ("documents", "chunks", "file_summaries", "page_summaries")]
    resources = {"home": HomeResource(home.settings), "progress": LogProgress()}
    with dg.DagsterInstance.ephemeral() as instance:
        shard = shard_of("specs/a.md")
        assert dg.materialize(parts, instance=instance, resources=resources, partition_key=shard).success
        alone = [definitions.get_assets_def("snapshot")]
        assert not dg.materialize(alone, instance=instance, resources=resources, raise_on_error=False).success
    assert "3600" in knowledge_base(Home(home.settings)).search("有効期限", k=1).hits[0].text
    run_index(home)
    assert "9999" in knowledge_base(Home(home.settings)).search("有効期限", k=1).hits[0].text


def test_readers_can_be_moved_back_to_an_earlier_version(indexed: Home) -> None:
    home = indexed
    write(home, "c.md", note("秘密の計画"))
    run_index(home)
    home.snapshots.roll_back(1)
    hits = knowledge_base(Home(home.settings)).search("秘密の計画", k=10).hits
    assert {hit.document_id for hit in hits} == {"specs/a.md", "specs/b.md"}
    assert run_index(home).shards == ()
    home.snapshots.roll_back(2)
    assert len(knowledge_base(Home(home.settings)).search("秘密の計画", k=10).hits) == 3


def test_runs_interrupted_and_killed_at_any_step_are_finished_by_the_next(home: Home, tmp_path: Path) -> None:
    for shard in SHARDS[:3]:
        for name in names_of_one_shard("{}.md", 6, shard):
            write(home, name, note(WORDS[int(name[:-3]) % len(WORDS)]) * 3)
    environment = {**os.environ, "RAG_HOME": str(home.path), "RAG_SOURCES": home.settings.sources[0]}
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also in the background
    command = [sys.executable, "-c", f"{heeding}; from rag_assets.cli import main; main()", "index"]
    ends = ((signal.SIGINT, "pages"), (signal.SIGKILL, "page_summaries"), (signal.SIGKILL, "synthetic_qa"))
    for number, table in ends:  # once the first shard of that table is stored: there are three
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            while process.poll() is None and not list((home.path / "lake" / table).glob("*/*.parquet")):
                time.sleep(0.005)
            process.send_signal(number)
            output, _ = process.communicate(timeout=30)
        assert process.returncode == {signal.SIGINT: 130}.get(number, -number), output
        assert unfinished_steps(home)
        assert home.snapshots.current() is None
    sources = ["--home", str(home.path), "index", home.settings.sources[0]]
    finished = CliRunner().invoke(main, sources)
    assert finished.exit_code == 0, finished.output
    assert unfinished_steps(home) == []
    assert published(home) == published(rebuilt(home, tmp_path / "full"))
    with dg.DagsterInstance.from_config(str(home.path / "dagster_home")) as instance:
        statuses = [run.status for run in instance.get_runs()]
    assert statuses[0] is dg.DagsterRunStatus.SUCCESS
    assert not {dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING} & set(statuses)


def test_a_fetched_file_is_indexed_like_a_local_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/bucket/remote/仕様 #1.md": note("料金表").encode()})
    try:
        remote = Home(home.settings.model_copy(update={"sources": ("memory://bucket/remote",)}))
        monkeypatch.setattr("tempfile.tempdir", str(home.path))
        run_index(remote)
        assert remote.lake.read(DOCUMENTS)["document_id"].to_pylist() == ["remote/仕様 #1.md"]
        assert run_index(remote).shards == ()
        assert not list(home.path.glob("rag-assets-*"))
    finally:
        memory.rm("/bucket", recursive=True)


def test_reindex_documents_computes_unchanged_documents_anew(kept: Home, tmp_path: Path) -> None:
    home = home_copied(kept, tmp_path / "copied")
    before, rows = home.lake.latest(PAGES), published(home)
    definitions = build_definitions(home=HomeResource(home.settings))
    config = {"ops": {"force_and_index": {"config": {"documents": ["specs/a*"]}}}}
    with dg.instance_for_test() as instance:
        result = definitions.resolve_job_def("reindex_documents").execute_in_process(
            run_config=config, instance=instance
        )
    assert result.output_for_node("force_and_index") == ["specs/a.md"]
    assert {s for s, v in home.lake.latest(PAGES).items() if before[s] != v} == {shard_of("specs/a.md")}
    assert published(home) == rows


def test_vectors_of_gone_documents_can_be_restored_without_the_model(
    indexed: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = indexed
    path = Path(home.settings.sources[0]) / "a.md"
    before = published(home)["lancedb.chunks"]
    content, stamp = path.read_bytes(), path.stat().st_mtime_ns
    path.unlink()
    run_index(home)
    path.write_bytes(content)
    os.utime(path, ns=(stamp, stamp))
    asked: list[int] = []
    monkeypatch.setattr(type(home.embedder), "embed", lambda *_: asked.append(1))
    run_index(home)
    assert asked == []
    assert published(home)["lancedb.chunks"] == before


def test_every_table_has_an_asset_that_explains_itself() -> None:
    settings = load_settings(graph={"enabled": True}, evaluation={"questions": "questions.jsonl"})
    graph = build_definitions(HomeResource(settings)).resolve_asset_graph()
    specs = {key.to_user_string(): node for key, node in ((k, graph.get(k)) for k in graph.get_all_asset_keys())}
    learned = {"ranking_weights", "query_map", "rewriter_model"}
    assert specs.keys() == {*TABLES, *INDEXES, "snapshot", *learned}
    for name, node in specs.items():
        assert node.description, name
        assert node.group_name in {"parsing", "enrichment", "graph", "serving", "evaluation", "training"}, name
        assert node.owners, name
        assert node.kinds & {"parquet", "lancedb", *(("json", "torch") if name in learned else ())}, name
        assert name in {"snapshot", *learned} or "dagster/column_schema" in node.metadata, name
