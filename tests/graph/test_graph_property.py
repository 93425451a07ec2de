"""Incremental equals full: after any sequence of changes all tables of the graph are those of a rebuild."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from graph_building import leiden_options, silent
from hypothesis import given, settings
from hypothesis import strategies as st
from mention_building import LikeNothing, Mention, Relation, write_mentions
from scripted_model import ScriptedModel

from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import (
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_MERGES,
    RELATIONSHIPS,
)
from rag_assets.graph.communities.tables import update_communities
from rag_assets.graph.entities.resolution import ResolutionOptions
from rag_assets.graph.entities.tables import EntityOptions, update_entities
from rag_assets.graph.reports.tables import STEP, ReportOptions, update_reports
from rag_assets.models.language_models import ExtractiveModel
from rag_assets.models.structured import StructuredModel
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.store.serving import entity_rows, report_rows

NAMES = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ivy", "juniper", "larch", "maple")
Pairs = frozenset[tuple[str, str]]


def written(request: Request) -> JsonValue:
    """An answer that follows from the prompt alone; a report cites the records that it was given."""
    text = request.messages[-1].text
    if request.tag.step != STEP:
        return {"description": f"described {digest(text)}"}
    numbers = re.findall(r"^(\d+) \|", text, re.MULTILINE)
    cited = f"[Data: Entities ({', '.join(numbers[:3])})]"
    finding: JsonValue = {"summary": "Found.", "explanation": f"So it is {cited}"}
    return {
        "title": digest(text)[:8],
        "summary": f"Of {digest(text)} {cited}",
        "rating": 5,
        "rating_explanation": "Because.",
        "findings": [finding],
    }


def index(lake: Lake, documents: dict[str, Pairs], model: LanguageModel) -> None:
    mentions: list[Mention] = []
    relations: list[Relation] = []
    for document, pairs in documents.items():
        for first, second in sorted(pairs):
            said = f"{first} leads to {second} in {document}, where they grow side by side."
            mentions += [(document, first, said), (document, second, "")]
            relations.append((document, first, second, "stated", said))
            relations.append((document, first, second, "sentence", ""))
    write_mentions(lake, mentions, relations)
    update_entities(lake, model, LikeNothing(), EntityOptions(80, ResolutionOptions(0.9, 10)))
    update_communities(lake, leiden_options(maximum_size=3, joined_from=6))
    update_reports(lake, model, ReportOptions(600, 300, 2), silent)


def tables_of(lake: Lake) -> dict[str, list[dict[str, object]]]:
    tables = (ENTITIES, RELATIONSHIPS, ENTITY_MERGES, COMMUNITIES, COMMUNITY_MEMBERS, COMMUNITY_REPORTS)
    read: dict[str, pa.Table] = {table.name: lake.read(table) for table in tables}
    read |= {"lancedb.entities": entity_rows(lake, WHOLE), "lancedb.reports": report_rows(lake, WHOLE)}
    return {name: sorted(rows.to_pylist(), key=str) for name, rows in read.items()}


pairs = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] < pair[1])
folders = st.dictionaries(st.sampled_from("abcd"), st.frozensets(pairs, min_size=1, max_size=12), min_size=1)


@pytest.mark.parametrize("generative", [False, True], ids=["extractive", "model"])
@settings(deadline=None, max_examples=6)
@given(st.lists(folders, min_size=2, max_size=4))
def test_incremental_equals_full(generative: bool, states: list[dict[str, Pairs]]) -> None:
    """A state that follows on another adds, changes, deletes, renames and restores documents."""
    model: LanguageModel = StructuredModel(ScriptedModel(written)) if generative else ExtractiveModel()
    with TemporaryDirectory() as folder:
        kept, fresh = Lake(Path(folder) / "kept"), Lake(Path(folder) / "fresh")
        for documents in states:
            index(kept, documents, model)
        index(fresh, states[-1], model)
        assert tables_of(kept) == tables_of(fresh)
