"""Forcing chosen documents to be computed anew."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.tables import (
    BLOCKS,
    CHUNKS,
    CLAIMS,
    DOCUMENT_FACETS,
    DOCUMENT_LINES,
    DOCUMENTS,
    ENTITY_MENTIONS,
    FILE_SUMMARIES,
    PAGE_SUMMARIES,
    PAGES,
    PARSE_FAILURES,
    RELATIONSHIP_MENTIONS,
    SYNTHETIC_QA,
    Table,
)
from rag_assets.sources.listing import matches
from rag_assets.store.incremental import invalidate_documents
from rag_assets.store.lake import Lake, shard_of

STEPS: dict[str, tuple[Table, ...]] = {
    "parse": (DOCUMENTS, PAGES, BLOCKS, PARSE_FAILURES),
    "chunk": (CHUNKS,),
    "summarize": (DOCUMENT_LINES, FILE_SUMMARIES, PAGE_SUMMARIES),
    "classify": (DOCUMENT_FACETS,),
    "ask": (SYNTHETIC_QA,),
    "extract": (ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIMS),
}


@dataclass(frozen=True)
class Forced:
    """Documents that will be computed anew, and their shards."""

    documents: tuple[str, ...]
    shards: tuple[str, ...]


def force_documents(lake: Lake, globs: Sequence[str], steps: Sequence[str]) -> Forced:
    """Forget what some stored documents were computed from, so that the next run computes them anew.

    Args:
        lake: The stored tables.
        globs: Document ids, or globs over them.
        steps: Names of steps, see `STEPS`.

    Raises:
        SettingsError: A step is unknown, or a glob matches no stored document.
    """
    if unknown := set(steps) - STEPS.keys():
        raise SettingsError(f"unknown steps {sorted(unknown)}; there are {list(STEPS)}")
    stored: list[str] = lake.read(DOCUMENTS, columns=["document_id"])["document_id"].to_pylist()
    chosen: set[str] = set()
    for glob in globs:
        found = {name for name in stored if name == glob or matches(name, [glob])}
        if not found:
            raise SettingsError(f"no stored document matches {glob!r}")
        chosen |= found
    shards = sorted({shard_of(name) for name in chosen})
    for shard in shards:
        for step in steps:
            invalidate_documents(lake, STEPS[step], shard, (name for name in chosen if shard_of(name) == shard))
    return Forced(tuple(sorted(chosen)), tuple(shards))
