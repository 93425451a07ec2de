"""The entity graph as assets: made where it is switched on, in step with changes, gone where it is switched off."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from indexing import run_index

from rag_assets.cli import main
from rag_assets.home import Home
from rag_assets.settings import load_settings

GRAPH = ("entity_mentions", "relationship_mentions", "entities", "relationships", "communities", "community_members")
HISTORY = {"number", "origin", "community_id", "parent_id", "content_sha256"}  # tells of versions before

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


@pytest.fixture
def graph_home(home: Home) -> Home:
    folder = Path(home.settings.sources[0])
    (folder / "orders.md").write_text(ORDERS, "utf-8")
    (folder / "customers.md").write_text(CUSTOMERS, "utf-8")
    return Home(load_settings(home=home.path, sources=home.settings.sources, graph={"enabled": True}))


def stored(home: Home) -> dict[str, list[Any]]:
    snapshot = home.snapshots.current()
    assert snapshot is not None
    from rag_assets.contracts.tables import TABLES

    rows = {}
    for name in GRAPH:
        records = home.lake.read(TABLES[name], versions=snapshot.tables[name]).to_pylist()
        kept = [{key: value for key, value in row.items() if key not in HISTORY} for row in records]
        rows[name] = sorted(kept, key=repr)
    return rows


def test_the_graph_stays_in_step_and_equals_a_rebuild(graph_home: Home, tmp_path: Path) -> None:
    run_index(graph_home)
    first = stored(graph_home)
    assert all(first[name] for name in GRAPH)
    names = {row["name"] for row in first["entities"]}
    assert {"API-ORDER-01", "E0004"} <= names
    folder = Path(graph_home.settings.sources[0])
    (folder / "customers.md").write_text(CUSTOMERS.replace("E0004", "E0005"), "utf-8")
    (folder / "more.md").write_text("# 在庫管理機能\n\n「在庫画面」は API-STOCK-01 を呼び出す。\n", "utf-8")
    run_index(graph_home)
    (folder / "orders.md").unlink()
    run_index(graph_home)
    changed = stored(graph_home)
    assert {"E0005", "API-STOCK-01"} <= {row["name"] for row in changed["entities"]}
    assert not {"E0004", "API-ORDER-01"} & {row["name"] for row in changed["entities"]}
    other = tmp_path / "rebuilt"
    other.mkdir()
    (other / "models").symlink_to((graph_home.path / "models").resolve())
    rebuilt = Home(load_settings(home=other, sources=graph_home.settings.sources, graph={"enabled": True}))
    run_index(rebuilt)
    assert stored(rebuilt) == changed


def test_nothing_changed_makes_no_version(graph_home: Home) -> None:
    run_index(graph_home)
    assert not run_index(graph_home).shards


def test_switched_off_the_graph_is_gone(graph_home: Home, tmp_path: Path) -> None:
    run_index(graph_home)
    exported = tmp_path / "graph.graphml"
    arguments = ["--home", str(graph_home.path), "graph", "export", str(exported)]
    result = CliRunner().invoke(main, arguments, env={"RAG_GRAPH__ENABLED": "true"})
    assert result.exit_code == 0, result.output
    assert "API-ORDER-01" in exported.read_text("utf-8")
    run_index(Home(load_settings(home=graph_home.path, sources=graph_home.settings.sources)))
    assert not any(stored(graph_home).values())
