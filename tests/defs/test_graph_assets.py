"""The entity graph as assets: made where it is switched on, in step with changes, gone where it is switched off, and
not published where its tables do not fit together.
"""

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from indexing import published, rebuilt, run_index

from rag_assets.cli import main
from rag_assets.contracts.tables import (
    CHUNKS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_MENTIONS,
    PAGES,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    TABLES,
    Table,
)
from rag_assets.defs.code_location import build_definitions
from rag_assets.defs.job_runs import INDEX_JOB
from rag_assets.defs.resources import HomeResource
from rag_assets.pipeline.freshness import changes_to_index
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.serve.sql.database import open_database
from rag_assets.store.integrity import all_problems, reference_problems
from rag_assets.store.lake import Lake, shard_of

GRAPH = ("entity_mentions", "relationship_mentions", "entities", "relationships", "communities", "community_members")

ORDERS = """# 受注管理機能

「受注登録画面」は「受注テーブル」に受注を登録する。受注登録画面は API-ORDER-01 を呼び出す。

| 項目名 | 型 | 説明 |
| --- | --- | --- |
| ORDER_ID | 数値 | 受注テーブルの主キー |
| CUSTOMER_ID | 数値 | 顧客テーブルへの参照 |
"""
CUSTOMERS = """# 顧客管理機能

「顧客登録画面」は「顧客テーブル」に顧客を登録する。顧客登録画面は API-CUSTOMER-01 を呼び出す。
API-CUSTOMER-01 はエラー E0004 を返すことがある。
"""


def write_documents(home: Home) -> Home:
    """The knowledge base with two documents and the graph switched on."""
    folder = Path(home.settings.sources[0])
    folder.mkdir(exist_ok=True)
    (folder / "orders.md").write_text(ORDERS, "utf-8")
    (folder / "customers.md").write_text(CUSTOMERS, "utf-8")
    return Home(load_settings(home=home.path, sources=home.settings.sources, graph={"enabled": True}))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Home:
    """A knowledge base with a graph, published; not to be changed by tests."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    home = write_documents(Home(load_settings(home=folder / "home", sources=(str(folder / "specs"),))))
    run_index(home)
    return home


@pytest.fixture(scope="module")
def sound(indexed: Home) -> Home:
    """The same, in which nothing is found."""
    assert all_problems(indexed.lake, indexed.vectors) == []
    return indexed


@pytest.fixture
def copied(indexed: Home, tmp_path: Path) -> Home:
    """A copy of it, with its documents, that may be changed."""
    shutil.copytree(indexed.path, tmp_path / "home", symlinks=True)
    shutil.copytree(indexed.settings.sources[0], tmp_path / "specs")
    return Home(load_settings(home=tmp_path / "home", sources=(str(tmp_path / "specs"),), graph={"enabled": True}))


def stored(home: Home) -> dict[str, list[Any]]:
    snapshot = home.snapshots.current()
    assert snapshot is not None
    return {name: home.lake.read(TABLES[name], versions=snapshot.tables[name]).to_pylist() for name in GRAPH}


def test_after_any_changes_all_tables_equal_those_of_a_rebuild(copied: Home, tmp_path: Path) -> None:
    first = stored(copied)
    assert all(first[name] for name in GRAPH)
    assert {"API-ORDER-01", "E0004"} <= {row["name"] for row in first["entities"]}
    folder = Path(copied.settings.sources[0])
    (folder / "customers.md").write_text(CUSTOMERS.replace("E0004", "E0005"), "utf-8")
    (folder / "more.md").write_text("# 在庫管理機能\n\n「在庫画面」は API-STOCK-01 を呼び出す。\n", "utf-8")
    (folder / "orders.md").unlink()
    run_index(copied)
    changed = {row["name"] for row in stored(copied)["entities"]}
    assert {"E0005", "API-STOCK-01"} <= changed
    assert not {"E0004", "API-ORDER-01"} & changed
    (folder / "orders.md").write_text(ORDERS, "utf-8")
    (folder / "more.md").rename(folder / "stock.md")
    run_index(copied)
    full = published(rebuilt(copied, tmp_path / "full"))
    assert len(full["community_reports"]) == len(full["lancedb.reports"]) > 0
    assert published(copied) == full


def test_nothing_changed_makes_no_version(indexed: Home) -> None:
    assert not run_index(indexed).shards


def test_views_show_the_published_graph(indexed: Home) -> None:
    def names(view: str, column: str, where: str = "true") -> list[Any]:
        query = f"SELECT {column} FROM {view} WHERE {where}"
        with open_database(indexed.lake, indexed.snapshots.current()) as connection:
            return [row[0] for row in connection.execute(query).fetchall()]

    assert names("entity_pages", "document_id", "name = 'E0004'") == ["specs/customers.md"]
    assert len(names("entity_pages", "entity_id")) >= len(stored(indexed)["entities"])
    assert len(names("co_mentions", "source")) == len(stored(indexed)["relationships"])
    tree = stored(indexed)["communities"]
    assert sorted(names("community_tree", "size")) == sorted(row["size"] for row in tree)
    ratings = names("reports_by_rating", "rating")
    assert ratings == sorted(ratings, reverse=True)
    assert len(ratings) == sum(row["size"] > 1 for row in tree)
    lonely = [row["name"] for row in stored(indexed)["entities"] if row["degree"] == 0]
    assert sorted(names("orphan_entities", "name")) == sorted(lonely)


def test_a_run_that_does_not_state_the_graph_keeps_it(copied: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_GRAPH__ENABLED")
    unstated = Home(load_settings(home=copied.path, sources=copied.settings.sources))
    (Path(copied.settings.sources[0]) / "customers.md").write_text(CUSTOMERS.replace("E0004", "E0005"), "utf-8")
    run_index(unstated)
    assert "E0005" in {row["name"] for row in stored(copied)["entities"]}
    before = copied.snapshots.current()
    off = Home(load_settings(home=copied.path, sources=copied.settings.sources, graph={"enabled": False}))
    run_index(off, succeeds=False)
    assert copied.snapshots.current() == before
    assert copied.holds_graph


def test_an_indexed_home_gets_its_graph_when_it_is_switched_on(tmp_path: Path, models_folder: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models").symlink_to(models_folder)
    switched_on = write_documents(Home(load_settings(home=tmp_path / "home", sources=(str(tmp_path / "specs"),))))
    plain = Home(load_settings(home=switched_on.path, sources=switched_on.settings.sources))
    run_index(plain)
    assert {shard_of("specs/orders.md"), shard_of("specs/customers.md")} <= {*run_index(switched_on).unfinished_shards}
    assert all(stored(switched_on).values())
    assert not run_index(switched_on).shards


def test_a_dropped_graph_is_gone_until_it_is_asked_for_and_can_be_brought_back(copied: Home, tmp_path: Path) -> None:
    def command(*arguments: str) -> Result:
        environment = {"RAG_SOURCES": copied.settings.sources[0]}
        return CliRunner().invoke(main, ["--home", str(copied.path), *arguments], env=environment)

    exported = tmp_path / "graph.graphml"
    assert command("graph", "export", str(exported)).exit_code == 0
    assert "API-ORDER-01" in exported.read_text("utf-8")
    before = stored(copied)
    result = command("graph", "drop", "--yes")
    assert result.exit_code == 0, result.output
    assert not any(stored(copied).values())
    result = command("graph", "export", str(tmp_path / "none.json"))
    assert (result.exit_code, (tmp_path / "none.json").exists()) == (1, False)
    assert "no entity graph is published" in result.output
    result = command("search", "受注", "--mode", "graph_local")
    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
    assert "RAG_GRAPH__ENABLED=true" in result.output
    result = command("index")
    assert result.exit_code == 0, result.output
    assert not any(stored(copied).values())
    assert command("snapshots", "1").exit_code == 0
    assert stored(copied) == before


def emptied(lake: Lake, table: Table) -> None:
    """Take all rows from a table."""
    for shard in lake.latest(table):
        lake.write(table, shard, table.schema.empty_table(), lake.inputs(table, shard))


def altered(lake: Lake, table: Table, column: str, value: object) -> None:
    """Write a value into a column of all rows of a table."""
    field = table.schema.field(column)
    for shard in lake.latest(table):
        rows = lake.read(table, [shard])
        values = pa.array([value] * rows.num_rows, field.type)
        changed = rows.set_column(rows.schema.get_field_index(column), field, values)
        lake.write(table, shard, changed, lake.inputs(table, shard))


@pytest.mark.parametrize(
    ("damaged", "column", "value", "child", "problem"),
    [
        (RELATIONSHIPS, "target_id", "none", RELATIONSHIPS, "target_id 'none' is not in entities"),
        (ENTITY_MENTIONS, "page_id", "none#1", ENTITY_MENTIONS, "page_id 'none#1' is not in pages"),
        (ENTITY_MENTIONS, "chunk_id", "none#1.0", ENTITY_MENTIONS, "chunk_id 'none#1.0' is not in chunks"),
        (ENTITY_MENTIONS, "name_key", "none", ENTITY_MENTIONS, "name_key 'none' is not in entities"),
        (RELATIONSHIP_MENTIONS, "source_key", "none", RELATIONSHIP_MENTIONS, "source_key 'none' is not in entities"),
        (COMMUNITIES, "parent_id", "none", COMMUNITIES, "parent_id 'none' is not in communities"),
        (COMMUNITY_REPORTS, "text", "# A\n\nB [Data: Entities (1, 98)].", COMMUNITY_REPORTS, "number 98 is not in ent"),
        (ENTITIES, None, None, COMMUNITY_MEMBERS, "is not in entities"),
        (RELATIONSHIPS, None, None, COMMUNITY_REPORTS, "is not in relationships"),
        (COMMUNITIES, None, None, COMMUNITY_MEMBERS, "is not in communities"),
        (COMMUNITIES, None, None, COMMUNITY_REPORTS, "is not in communities"),
        (PAGES, None, None, RELATIONSHIP_MENTIONS, "is not in pages"),
        (CHUNKS, None, None, RELATIONSHIP_MENTIONS, "is not in chunks"),
    ],
    ids=lambda each: each.name if isinstance(each, Table) else None,
)
def test_every_reference_of_the_graph_is_checked(
    sound: Home, copied: Home, damaged: Table, column: str | None, value: str | None, child: Table, problem: str
) -> None:
    if column is None:
        emptied(copied.lake, damaged)
    else:
        altered(copied.lake, damaged, column, value)
    found = reference_problems(copied.lake, child)
    assert any(problem in each for each in found), found
    assert f"{child.name}: {found[0]}" in all_problems(copied.lake, copied.vectors)


def test_a_graph_that_does_not_fit_together_is_not_published(copied: Home) -> None:
    before = copied.snapshots.current()
    altered(copied.lake, RELATIONSHIP_MENTIONS, "source_key", "none")
    definitions = build_definitions(home=HomeResource(copied.settings))
    with dg.DagsterInstance.ephemeral() as instance:
        job = definitions.resolve_job_def(INDEX_JOB.name)
        config = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        run = job.execute_in_process(
            instance=instance, tags={"dagster/partition": "00"}, raise_on_error=False, run_config=config
        )
        failed = [each for each in run.get_asset_check_evaluations() if not each.passed]
    assert not run.success
    assert [(each.asset_key.path[-1], each.check_name) for each in failed] == [("snapshot", "structure")]
    assert "source_key 'none' is not in entities" in (failed[0].description or "")
    assert copied.snapshots.current() == before


def test_assets_of_the_graph_are_defined_only_where_it_is_on_or_something_is_stored_of_it(
    copied: Home, tmp_path: Path
) -> None:
    off: dict[str, Any] = {"graph": {"enabled": False}}

    def defined(**settings: Any) -> set[str]:
        graph = build_definitions(HomeResource(load_settings(**settings))).resolve_asset_graph()
        checked = {key.asset_key.to_user_string() for key in graph.asset_check_keys}
        names = {key.to_user_string() for key in graph.get_all_asset_keys()}
        assert checked <= names
        return names & {ENTITY_MENTIONS.name, COMMUNITY_REPORTS.name, "report_index"}

    assert defined(home=str(tmp_path / "new"), **off) == set()
    assert len(defined(home=str(tmp_path / "new"), graph={"enabled": True})) == 3
    assert len(defined(home=str(copied.path), **off)) == 3, "to be emptied"


def test_a_serving_table_that_is_made_as_a_whole_and_out_of_date_is_brought_in_step(copied: Home) -> None:
    altered(copied.lake, ENTITIES, "description", "altered by hand")
    assert "00" in changes_to_index(copied, copied.listing()).shards
    run_index(copied)
    assert "altered by hand" in str(copied.vectors.column("entities", "text").to_pylist())
    assert changes_to_index(copied, copied.listing()).shards == ()
