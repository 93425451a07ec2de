"""The pipeline in step with its sources: what a change costs, what it leaves, what a failure leaves."""

import io
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
from indexing import published, rebuilt, run_index
from msoffcrypto.format.ooxml import OOXMLFile

from rag_assets.contracts.tables import BLOCKS, CHUNKS, DOCUMENTS, PAGES, PARSE_FAILURES, TABLES
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.resources import HomeResource, LogProgress
from rag_assets.parsing.documents import update_documents
from rag_assets.pipeline.freshness import unfinished_steps
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.lake import Lake, shard_of

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
    for index, word in enumerate(WORDS):
        write(home, f"{index}.md", note(word))
    run_index(home)
    before, versions = published(home), {table: home.lake.latest(table) for table in (PAGES, CHUNKS)}
    write(home, "3.md", note("まったく別の話題"))
    run_index(home)
    after = published(home)
    for name, rows in after.items():
        kept = [row for row in before[name] if row["document_id"] != "specs/3.md"]
        assert [row for row in rows if row["document_id"] != "specs/3.md"] == kept, name
        assert [row for row in rows if row["document_id"] == "specs/3.md"] != [
            row for row in before[name] if row["document_id"] == "specs/3.md"
        ] or not any(row["document_id"] == "specs/3.md" for row in rows), name
    touched = shard_of("specs/3.md")
    for table, old in versions.items():
        assert {s for s, v in home.lake.latest(table).items() if old.get(s) != v} == {touched}
    assert "まったく別の話題" in knowledge_base(Home(home.settings)).search("まったく別の話題", k=1).hits[0].text


def test_a_deleted_file_leaves_no_trace(home: Home) -> None:
    write(home, "kept.md", note("受付番号"))
    gone = write(home, "gone.md", note("秘密の計画"))
    run_index(home)
    gone.unlink()
    assert run_index(home).gone == ("specs/gone.md",)
    for name, rows in published(home).items():
        assert not [row for row in rows if "gone.md" in str(row) or "秘密の計画" in str(row)], name
    hits = knowledge_base(Home(home.settings)).search("秘密の計画", k=10).hits
    assert {hit.document_id for hit in hits} == {"specs/kept.md"}


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


@pytest.mark.parametrize("seed", [1, 2])
def test_incremental_equals_full(home: Home, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = Path(home.settings.sources[0])
    for step in range(5):
        for _ in range(rng.randint(1, 5)):
            present = sorted(path for path in root.rglob("*.*") if path.is_file())
            action = rng.choice(["add", "add", "change", "delete", "rename", "copy", "break"])
            target = root / rng.choice(["", "深い/", "old/"]) / f"{rng.choice(WORDS)} {rng.randint(0, 99)}.md"
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
                shutil.copy2(rng.choice(present), target.with_name(f"copy {rng.randint(0, 99)}.md"))
            else:
                (root / f"{rng.randint(0, 9)}.xlsx").write_bytes(rng.randbytes(200))
        run_index(home)
    incremental = published(home)
    full = published(rebuilt(home, tmp_path / "full"))
    assert incremental.keys() == full.keys()
    for name, rows in full.items():
        assert incremental[name] == rows, name


@pytest.mark.parametrize("written", range(4))
def test_a_run_killed_between_two_tables_is_finished_by_the_next(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    path = write(home, "a.md", "")
    gone = write(home, "b.md", note("料金表"))
    run_index(home)
    path.write_text(note("受付番号"), encoding="utf-8")
    gone.unlink()
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
    assert published(home) == published(rebuilt(home, tmp_path / "full"))


@pytest.mark.parametrize("delay", [0.2, 2.0])
def test_an_interrupt_ends_the_run_and_the_next_goes_on(home: Home, delay: float) -> None:
    for index in range(24):
        write(home, f"{index}.md", note(WORDS[index % len(WORDS)]) * 3)
    environment = {**os.environ, "RAG_HOME": str(home.path), "RAG_SOURCES": home.settings.sources[0]}
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also in the background
    command = [sys.executable, "-c", f"{heeding}; from rag_assets.cli import main; main()", "index"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        recorded = home.path / "dagster_home" / "history" / "runs"
        while process.poll() is None and len(list(recorded.glob("*.db"))) < 2:
            time.sleep(0.05)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert run_index(home).unfinished_shards or unfinished_steps(home) == []
    assert unfinished_steps(home) == []


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


def test_an_encrypted_file_is_indexed_once_its_password_is_given(home: Home) -> None:
    book, plain = openpyxl.Workbook(), io.BytesIO()
    book.active["A1"] = "秘密の料金表"
    book.save(plain)
    with (Path(home.settings.sources[0]) / "locked.xlsx").open("wb") as locked:
        OOXMLFile(plain).encrypt("ひみつ", locked)
    run_index(home)
    assert home.lake.read(PARSE_FAILURES)["cause"].to_pylist() == ["encrypted"]
    assert home.lake.read(CHUNKS).num_rows == 0
    shard = shard_of("specs/locked.xlsx")
    for passwords, found in ((("wrong",), 0), (("wrong", "ひみつ"), 1), ((), 1)):
        update_documents(home.lake, home.listing(), [shard], home.options.parsing, 1, lambda *_: None, passwords)
        run_index(home)
        assert home.lake.read(CHUNKS).num_rows == found
        assert unfinished_steps(home) == []
    assert "秘密の料金表" in knowledge_base(Home(home.settings)).search("料金表", k=1).hits[0].text


def test_an_unmounted_source_loses_nothing(home: Home) -> None:
    path = write(home, "a.md", note("料金表"))
    run_index(home)
    before = published(home)
    hidden = path.parent.with_name("hidden")
    path.parent.rename(hidden)
    changes = run_index(home)
    assert "no such folder" in changes.unreachable["specs"]
    path.parent.mkdir()
    changes = run_index(home)
    assert "holds no file now but 1 documents" in changes.unreachable["specs"]
    assert changes.shards == ()
    assert published(home) == before


def test_broken_tables_are_not_published(home: Home) -> None:
    write(home, "a.md", note("料金表"))
    run_index(home)
    before = home.snapshots.current()
    shard = shard_of("specs/a.md")
    rows = home.lake.read(CHUNKS, [shard])
    column = rows.schema.get_field_index("page_id")
    orphans = rows.set_column(column, rows.schema.field(column), pa.array(["specs/nowhere.md#1"] * rows.num_rows))
    home.lake.write(CHUNKS, shard, orphans, home.lake.inputs(CHUNKS, shard))
    run_index(home, succeeds=False)
    assert home.snapshots.current() == before
    assert knowledge_base(Home(home.settings)).search("料金表", k=1).hits[0].document_id == "specs/a.md"


def test_a_half_finished_run_of_others_is_not_published(home: Home) -> None:
    write(home, "a.md", note("料金表"))
    run_index(home)
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


def test_readers_can_be_moved_back_to_an_earlier_version(home: Home) -> None:
    write(home, "a.md", note("料金表"))
    run_index(home)
    write(home, "b.md", note("受付番号"))
    run_index(home)
    home.snapshots.roll_back(1)
    hits = knowledge_base(Home(home.settings)).search("受付番号", k=10).hits
    assert {hit.document_id for hit in hits} == {"specs/a.md"}
    assert run_index(home).shards == ()
    home.snapshots.roll_back(2)
    assert len(knowledge_base(Home(home.settings)).search("受付番号", k=10).hits) == 2


def test_a_killed_run_is_finished_by_the_next(home: Home, tmp_path: Path) -> None:
    for index in range(24):
        write(home, f"{index}.md", note(WORDS[index % len(WORDS)]) * 3)
    environment = {**os.environ, "RAG_HOME": str(home.path), "RAG_SOURCES": home.settings.sources[0]}
    command = [sys.executable, "-m", "rag_assets.cli", "index"]
    recorded = home.path / "dagster_home" / "history" / "runs"
    for delay in (0.3, 1.5, 3.0):
        runs = set(recorded.glob("*.db"))
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not (set(recorded.glob("*.db")) - runs - {recorded / "index.db"}):
            time.sleep(0.05)
        time.sleep(delay)  # in the middle of the run: whatever step that is
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
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


def test_reindex_documents_computes_unchanged_documents_anew(home: Home) -> None:
    write(home, "a.md", note("料金表"))
    write(home, "b.md", note("受付番号"))
    run_index(home)
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
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, "a.md", note("料金表"))
    write(home, "b.md", note("受付番号"))
    run_index(home)
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
