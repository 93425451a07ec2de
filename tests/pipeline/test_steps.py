"""The steps: what rows are computed from follows the settings that their step names, and no others."""

from pathlib import Path
from typing import Any

import pytest

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.pipeline import freshness
from rag_assets.pipeline.freshness import changes_to_index, force_documents, stale_steps, step_facts
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.pipeline.steps import STEPS, Keys
from rag_assets.store.lake import WHOLE

NUMBERS = [
    (section, name)
    for section in ("chunking", "enrichment", "graph")
    for name, value in getattr(load_settings(), section).model_dump().items()
    if isinstance(value, int | float) and f"{section}.{name}" != "graph.enabled"
]
# Written questions are not made again when other lines are common: a changed setting should not cost all calls.
ONLY_EXTRACTED = {("ask_questions", "enrichment.boilerplate_documents")}


@pytest.fixture
def graph_home(sample_home: Path) -> Home:
    """The sample, for reading, with the entity graph switched on."""
    return Home(load_settings(home=sample_home, graph={"enabled": True}))


def keys(home: Home) -> dict[str, dict[str, Keys]]:
    """What the rows of each step are to be computed from, by shard."""
    shards = home.lake.latest(DOCUMENTS)
    return {
        step.name: {shard: step.wanted(home, shard) for shard in (shards if step.sharded else [WHOLE])}
        for step in STEPS
        if step.wanted is not None and step.reads
    }


def altered(home: Home, section: str, **values: Any) -> Home:
    chosen = getattr(home.settings, section).model_copy(update=values)
    return Home(home.settings.model_copy(update={section: chosen}))


def differing(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_rows_are_computed_from_the_settings_that_their_step_names(graph_home: Home) -> None:
    rows, facts = keys(graph_home), step_facts(graph_home)
    for section, name in NUMBERS:
        value = getattr(getattr(graph_home.settings, section), name)
        changed = altered(graph_home, section, **{name: not value if isinstance(value, bool) else value * 2 + 1})
        named = differing(facts, step_facts(changed)) & rows.keys()
        assert named == {step.name for step in STEPS if f"{section}.{name}" in step.options} & rows.keys()
        unkeyed = {step for step, setting in ONLY_EXTRACTED if setting == f"{section}.{name}"}
        assert differing(rows, keys(changed)) == named - unkeyed, f"{section}.{name}"


@pytest.mark.parametrize(
    ("section", "values", "fact"),
    [
        ("language_model", {"provider": "openai", "model": "m"}, "the language model"),
        ("embedding", {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}, "the embedder"),
    ],
)
def test_rows_are_computed_from_the_models_that_their_step_names(
    graph_home: Home, section: str, values: dict[str, str], fact: str
) -> None:
    rows, changed = keys(graph_home), altered(graph_home, section, **values)
    assert differing(rows, keys(changed)) == {step.name for step in STEPS if fact in step.options} & rows.keys()


def test_the_graph_is_written_by_a_model_where_that_is_stated(graph_home: Home) -> None:
    with_model = altered(graph_home, "language_model", provider="openai", model="m")
    before, after = keys(with_model), keys(altered(with_model, "graph", language_model=True))
    of_graph = {step.name for step in STEPS if "the language model of the graph" in step.options}
    assert of_graph >= {"extract_mentions", "resolve_entities", "report_communities"}
    assert differing(before, after) == of_graph & before.keys()


def test_what_changed_code_makes_stale_is_made_anew(graph_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = step_facts(graph_home)
    for step in (each for each in STEPS if each.code):
        now = {**facts, step.name: {**facts[step.name], "code": "other"}}
        monkeypatch.setattr(freshness, "step_facts", lambda _, now=now: now)
        [stale] = [each for each in stale_steps(graph_home) if each.step == step.name]
        assert stale.reason == "code changed"
        assert changes_to_index(graph_home, graph_home.listing(), [stale]).unfinished_shards, step.name


def test_a_star_alone_forces_all_documents(sample_home: Path) -> None:
    lake = Home(load_settings(home=sample_home)).lake
    document_ids = force_documents(lake, ["**"], []).documents
    assert len(document_ids) > 1
    assert force_documents(lake, ["*"], []).documents == document_ids
    with pytest.raises(SettingsError, match=r"no stored document matches '\*\.\*'; `\*\*/` crosses folders"):
        force_documents(lake, ["*.*"], [])
