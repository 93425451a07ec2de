"""Forcing chosen documents to be computed anew."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.pipeline.steps import FORCED
from rag_assets.sources.listing import matches
from rag_assets.store.incremental import invalidate_documents
from rag_assets.store.lake import Lake, shard_of


@dataclass(frozen=True)
class Forced:
    """Documents that will be computed anew, and their shards."""

    documents: tuple[str, ...]
    shards: tuple[str, ...]


def force_documents(lake: Lake, globs: Sequence[str], steps: Sequence[str]) -> Forced:
    """Forget what stored documents were computed from, by ids or globs and by steps (`FORCED`), so that the next run
    computes them anew.

    Raises:
        SettingsError: A step is unknown, or a glob matches no stored document.
    """
    if unknown := set(steps) - FORCED.keys():
        raise SettingsError(f"unknown steps {sorted(unknown)}; there are {list(FORCED)}")
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
            invalidate_documents(lake, FORCED[step], shard, (name for name in chosen if shard_of(name) == shard))
    return Forced(tuple(sorted(chosen)), tuple(shards))
