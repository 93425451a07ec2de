"""The entity graph with real weights behind a real server: whatever a small model writes, every row refers to what is
there, every reference of a report holds, and every call is accounted for.
"""

from pathlib import Path
from typing import Any

import pytest
from llama import LlamaServer

from rag_assets.contracts.tables import (
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_MENTIONS,
    MODEL_CALLS,
    PAGES,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    TABLES,
    Table,
)
from rag_assets.graph.reports.context import cited
from rag_assets.parsing.documents import update_chunks, update_documents
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.language_models import language_model
from rag_assets.pipeline.settings import load_settings
from rag_assets.pipeline.steps import STEPS, StepWork, chunks_key
from rag_assets.store.integrity import key_problems, reference_problems, schema_problems
from rag_assets.store.lake import SHARDS

ORDERS = """# Order service

The Order Service of Contoso stores each order in T_ORDER and reports E0004 to Mr. Sato when the Stock Service refuses
it. The Stock Service has answered within two seconds since 2025-04-01.
"""
CUSTOMERS = """# 顧客管理機能

顧客登録画面は顧客テーブルに顧客を登録する。顧客登録画面は API-CUSTOMER-01 を呼び出す。
API-CUSTOMER-01 は、顧客が重複していればエラー E0005 を返す。
"""

pytestmark = pytest.mark.slow


def silent(done: int, total: int) -> None:
    del done, total


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, models_folder: Path, llama_server: LlamaServer) -> Home:
    """Two documents with all steps of the graph done by the model."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "models").symlink_to(models_folder)
    source = folder / "specs"
    source.mkdir()
    (source / "orders.md").write_text(ORDERS, "utf-8")
    (source / "customers.md").write_text(CUSTOMERS, "utf-8")
    home = Home(
        load_settings(
            home=folder,
            sources=(str(source),),
            language_model={
                "provider": "openai",
                "base_url": llama_server.openai_url,
                "model": llama_server.model,
                "api_key": "none",
                "timeout_seconds": 600,
            },
            graph={
                "enabled": True,
                "language_model": True,
                "gleanings": 1,
                "claims": True,
                "report_tokens": 300,
                "description_chars": 60,
            },
        )
    )
    update_documents(home.lake, home.listing(), SHARDS, home.options.parsing, 1, silent)
    update_chunks(home.lake, SHARDS, home.embedder, chunks_key(home), 256, 0.1, silent)
    build(home)
    return home


def build(home: Home) -> None:
    """Every step of the graph."""
    work = StepWork(home, home.lake, SHARDS, language_model(home, "run"), silent)
    for step in STEPS:
        if step.group == "graph":
            step.update(work)
    home.ledger().compact()


def rows(home: Home, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.lake.read(table).to_pylist()
    return found


def test_every_row_fits_its_schema_and_refers_to_what_is_there(home: Home) -> None:
    for table in TABLES.values():
        for find in (schema_problems, key_problems, reference_problems):
            assert find(home.lake, table) == [], table.name


def test_the_model_wrote_the_graph(home: Home) -> None:
    name = home.language_model_name
    assert name in {row["method"] for row in rows(home, ENTITY_MENTIONS)}
    assert "stated" in {row["kind"] for row in rows(home, RELATIONSHIP_MENTIONS)}
    assert name in {row["method"] for row in rows(home, COMMUNITY_REPORTS)}
    assert rows(home, RELATIONSHIPS)
    assert any(row["description"] for row in rows(home, ENTITIES))


def test_names_stand_where_their_mentions_say(home: Home) -> None:
    texts = {row["page_id"]: row["text"] for row in rows(home, PAGES)}
    written = [row for row in rows(home, ENTITY_MENTIONS) if row["start_char"] is not None]
    assert written
    for row in written:
        found = texts[row["page_id"]][row["start_char"] :]
        assert "".join(found.split()).startswith("".join(row["name"].split()))
    for row in rows(home, CLAIMS):
        assert row["status"] in {"true", "false", "suspected"}
        assert row["source_text"]


def test_reports_cite_records_of_the_graph(home: Home) -> None:
    entities = {row["number"] for row in rows(home, ENTITIES)}
    relationships = {row["number"] for row in rows(home, RELATIONSHIPS)}
    reports = rows(home, COMMUNITY_REPORTS)
    several = [row for row in rows(home, COMMUNITIES) if row["size"] > 1]
    assert {row["community_id"] for row in reports} == {row["community_id"] for row in several}
    for row in reports:
        found = cited(row["text"])
        assert found.entities <= entities
        assert found.relationships <= relationships
        assert 0 <= row["rating"] <= 10
        assert row["title"]
        assert row["findings"]


def test_every_call_is_in_the_ledger_and_none_is_made_twice(home: Home) -> None:
    calls = rows(home, MODEL_CALLS)
    assert {"extract_graph", "glean_graph", "report_community"} <= {row["step"] for row in calls}
    answered = [row for row in calls if row["outcome"] != "invalid"]
    assert all(row["input_tokens"] > 0 and row["seconds"] > 0 and row["run_id"] == "run" for row in answered)
    assert {row["document_id"] for row in calls if row["asset"] == ENTITY_MENTIONS.name} == {
        row["document_id"] for row in rows(home, PAGES)
    }
    build(home)
    assert len(rows(home, MODEL_CALLS)) == len(calls)
