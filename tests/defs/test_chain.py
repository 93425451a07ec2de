"""The whole chain on the sample folder with real weights behind a real server: whatever a small model writes, every row
keeps to its schema, cites what is there, and is accounted for.
"""

import json
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from llama import LlamaServer

from rag_assets.cli import main
from rag_assets.contracts.tables import MODEL_CALLS, TABLES
from rag_assets.enrich.facets.taxonomy import load_taxonomy
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings

SAMPLE = Path(__file__).parents[2] / "docs" / "sample"
STEPS = {
    "page_summaries": {"summarize_page"},
    "file_summaries": {"summarize_file"},
    "document_facets": {"classify_document"},
    "synthetic_qa": {"ask_questions", "answer_question", "grade_answer"},
    "meta_knowledge": {"summarize_knowledge"},
}

SETTINGS = {
    "ENRICHMENT__READ_TOKENS": "800",
    "ENRICHMENT__QUESTIONS_MOST": "2",
    "ENRICHMENT__PAGE_FILE_CHARS": "30",
    "ENRICHMENT__PAGE_SUMMARY_CHARS": "100",
    "ENRICHMENT__FILE_SUMMARY_CHARS": "120",
    "ENRICHMENT__KNOWLEDGE_CHARS": "150",
    "LANGUAGE_MODEL__CONCURRENCY": "4",
    "LANGUAGE_MODEL__TIMEOUT_SECONDS": "600",
}  # short texts, because the model reads 80 tokens a second

pytestmark = pytest.mark.slow


def environment_of(model: Mapping[str, str]) -> dict[str, str]:
    """Environment of a command that asks the model."""
    chosen = {f"LANGUAGE_MODEL__{name.upper()}": value for name, value in model.items()}
    return {"OPENAI_API_KEY": "none", **{f"RAG_{name}": value for name, value in (chosen | SETTINGS).items()}}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, models_folder: Path, llama_server: LlamaServer) -> Home:
    """The sample folder, indexed with the model."""
    folder = tmp_path_factory.mktemp("chain")
    (folder / "models").symlink_to(models_folder)
    model = {"provider": "openai", "base_url": llama_server.openai_url, "model": llama_server.model}
    environment = environment_of(model)
    result = CliRunner().invoke(main, ["--home", str(folder), "index", f"sample={SAMPLE}"], env=environment)
    assert result.exit_code == 0, result.output
    return Home(load_settings(home=folder, language_model=model))


def rows(home: Home, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = home.lake.read(TABLES[table]).to_pylist()
    return found


def folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def test_every_step_asked_the_model_and_every_call_is_in_the_ledger(chain: Home) -> None:
    calls = rows(chain, MODEL_CALLS.name)
    for asset, steps in STEPS.items():
        assert {call["step"] for call in calls if call["asset"] == asset} >= steps, asset
    paid = [call for call in calls if call["outcome"] != "invalid"]
    assert all(call["input_tokens"] > 0 and call["seconds"] > 0 for call in paid)
    name = chain.language_model_name
    for table in STEPS:
        methods = {row["method"] for row in rows(chain, table)}
        assert methods <= {name, "extractive"}, table
        assert name in methods, table


def test_every_document_has_its_rows(chain: Home) -> None:
    documents = {row["document_id"] for row in rows(chain, "documents")}
    assert len(documents) == sum(path.is_file() for path in SAMPLE.rglob("*"))
    assert {row["document_id"] for row in rows(chain, "file_summaries")} == documents
    with_text = {row["page_id"] for row in rows(chain, "pages") if row["length_chars"]}
    assert {row["page_id"] for row in rows(chain, "page_summaries")} == with_text
    assert {row["document_id"] for row in rows(chain, "document_facets")} == documents


def test_facets_are_of_the_taxonomy_and_evidence_is_of_the_document(chain: Home) -> None:
    values = {(facet.name, value.name) for facet in load_taxonomy("office").facets for value in facet.values}
    texts: dict[str, str] = {}
    for page in rows(chain, "pages"):
        texts[page["document_id"]] = texts.get(page["document_id"], "") + f"{page['page_name'] or ''}\n{page['text']}\n"
    titles = {row["document_id"]: row["title"] for row in rows(chain, "documents")}
    for row in rows(chain, "document_facets"):
        assert (row["facet"], row["value"]) in values
        assert 0 <= row["confidence"] <= 1
        if row["method"] != "extractive":
            assert folded(row["evidence"]) in folded(f"{titles[row['document_id']]}\n{texts[row['document_id']]}")


def test_questions_cite_passages_of_their_document(chain: Home) -> None:
    page_of = {row["chunk_id"]: (row["document_id"], row["page_id"]) for row in rows(chain, "chunks")}
    questions = rows(chain, "synthetic_qa")
    assert questions
    for row in questions:
        assert row["chunk_ids"]
        assert {page_of[chunk][0] for chunk in row["chunk_ids"]} == {row["document_id"]}
        assert set(row["page_ids"]) == {page_of[chunk][1] for chunk in row["chunk_ids"]}
        assert 0 <= row["grade"] <= 100
        assert row["indexed"] is (row["grade"] >= 70)
    served = chain.vectors.column("questions", "qa_id").to_pylist()
    assert sorted(served) == sorted(row["qa_id"] for row in questions if row["indexed"])


def test_meta_knowledge_is_of_facet_values_in_use(chain: Home) -> None:
    used = {f"{row['facet']}={row['value']}" for row in rows(chain, "document_facets")}
    for row in rows(chain, "meta_knowledge"):
        assert set(row["facets"]) <= used
        assert row["text"]
        assert row["question_count"] > 0


def test_the_next_run_asks_nothing(chain: Home) -> None:
    before = len(rows(chain, MODEL_CALLS.name))
    settings = chain.settings.language_model
    model = {"provider": "openai", "base_url": str(settings.base_url), "model": settings.model}
    result = CliRunner().invoke(main, ["--home", str(chain.path), "index", "--json"], env=environment_of(model))
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["model_calls"]["calls"] == 0
    assert len(rows(chain, MODEL_CALLS.name)) == before
