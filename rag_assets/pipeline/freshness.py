"""What is stale and why: the one place that compares what is stored with what the steps would store now; and documents
that are made stale, because somebody chose them.

A version names the code, options and libraries of the steps that made it. Where they are those in force and it holds
the tables as they are stored, nothing in it is stale but rows that ask to be made again: for answers that are missing,
lines that have become common, limits that were raised, passwords that are new.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.fingerprint import digest
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.steps import FACTS, FORCED, STEPS, Step, shards_with_outdated_boilerplate, steps_in_use
from rag_assets.sources.changes import Changes, Listing, find_changes
from rag_assets.sources.listing import matches
from rag_assets.store.damage import serving_as_noted
from rag_assets.store.incremental import StandIns, finished, invalidate_documents, stand_ins
from rag_assets.store.lake import SHARDS, WHOLE, Lake, shard_of

_MARK = "+"  # before which lines were common when a row was made


@dataclass(frozen=True)
class Stale:
    """What a step has to make anew."""

    step: str
    reason: str  # why, as in `code changed` or `chunking.size_tokens changed`
    shards: tuple[str, ...]


@dataclass(frozen=True)
class Forced:
    """Documents that will be computed anew, and their shards."""

    documents: tuple[str, ...]
    shards: tuple[str, ...]


def by_reason(stale: Sequence[Stale]) -> list[tuple[str, list[str]]]:
    """Each reason, with the steps that it makes stale, in their order."""
    reasons = dict.fromkeys(entry.reason for entry in stale)
    return [
        (reason, list(dict.fromkeys(entry.step for entry in stale if entry.reason == reason))) for reason in reasons
    ]


def step_facts(home: Home) -> dict[str, dict[str, str]]:
    """What the tables of each step depend on beside their input, by step and by the name that people are told."""
    return {step.name: _facts(home, step) for step in steps_in_use(home)}


def stale_steps(home: Home) -> list[Stale]:
    """What an index run would make anew, and why, but for files that changed. Reads no rows but those of marks."""
    newest = home.snapshots.newest()
    entries = list(_rows_to_retry(home))
    if newest is None:
        return entries
    facts = step_facts(home)
    for step in steps_in_use(home):
        before = newest.steps.get(step.name)
        tables = step.tables or step.reads[:1]  # a serving table has rows where the first table that it reads has
        places = {shard for table in tables for shard in home.lake.latest(table)}
        if before is None:  # nothing of it is stored where it was switched on just now
            places |= {*home.lake.latest(DOCUMENTS)} if step.sharded else {WHOLE}
        reasons = _differences(before, facts[step.name])
        entries += [Stale(step.name, reason, tuple(sorted(places))) for reason in reasons]
        changed_shards = {
            shard
            for table in step.tables
            if table.published
            for shard, _ in newest.tables.get(table.name, {}).items() ^ home.lake.latest(table).items()
        }
        if changed_shards:
            entries.append(Stale(step.name, "input changed", tuple(sorted(changed_shards))))
    if gone_steps := newest.steps.keys() - facts.keys():
        entries += [Stale(name, "switched off", (WHOLE,)) for name in sorted(gone_steps)]
    return [*entries, *_stale_syncs(home)]


def changes_to_index(home: Home, listing: Listing, stale: Iterable[Stale] | None = None) -> Changes:
    """What an index run would do.

    Args:
        home: The knowledge base.
        listing: What the sources hold.
        stale: What its steps have to make anew; None to find out.
    """
    shards = {shard for entry in (stale_steps(home) if stale is None else stale) for shard in entry.shards}
    if home.snapshots.newest() is None:
        shards |= {*home.lake.latest(DOCUMENTS)}
    if home.snapshots.unfinished() is not None:
        shards.add(WHOLE)
    if WHOLE in shards:  # a run over any shard makes what is made as a whole
        shards = shards - {WHOLE} | {SHARDS[0]}
    return replace(find_changes(home.lake, listing), unfinished_shards=tuple(sorted(shards)))


def force_documents(lake: Lake, globs: Sequence[str], steps: Sequence[str]) -> Forced:
    """Forget what stored documents were computed from, by ids or globs and by steps (`FORCED`), so that the next run
    computes them anew. `*` alone stands for all documents; within a glob it crosses no folder, as in `source.include`.

    Raises:
        SettingsError: A step is unknown, or a glob matches no stored document.
    """
    if unknown := set(steps) - FORCED.keys():
        raise SettingsError(f"unknown steps {sorted(unknown)}; there are {list(FORCED)}")
    document_ids: list[str] = lake.read(DOCUMENTS, columns=["document_id"])["document_id"].to_pylist()
    chosen_ids: set[str] = set()
    for glob in globs:
        glob_ids = {name for name in document_ids if glob in {name, "*"} or matches(name, [glob])}
        if not glob_ids:
            raise SettingsError(f"no stored document matches {glob!r}; `**/` crosses folders, `*` does not")
        chosen_ids |= glob_ids
    shards = sorted({shard_of(name) for name in chosen_ids})
    for shard in shards:
        for step in steps:
            invalidate_documents(lake, FORCED[step], shard, (name for name in chosen_ids if shard_of(name) == shard))
    return Forced(tuple(sorted(chosen_ids)), tuple(shards))


def all_stand_ins(home: Home) -> dict[str, StandIns]:
    """What stands in for answers that the language model did not give, by table; nothing without a model."""
    if home.language_model_name == "extractive":
        return {}
    writing_steps = [step for step in steps_in_use(home) if step.writer(home) != "extractive"]
    return {table.name: stand_ins(home.lake, table) for step in writing_steps for table in step.tables}


def unfinished_steps(home: Home) -> list[str]:
    """Shards of stored tables whose rows were not computed from what the step before them stored last, in words.

    Unlike `stale_steps` it looks at every document.
    """
    names: list[str] = []
    for shard in home.lake.latest(DOCUMENTS):
        for step in STEPS:
            if step.sharded and step.wanted is not None and not step.index:
                names += _unfinished(home, step, shard)
    for step in steps_in_use(home):
        if step.sharded or step.index:
            continue
        if step.wanted is not None:
            names += _unfinished(home, step, WHOLE)
        elif step.graph:
            names += [table.name for table in step.tables if not home.lake.inputs(table, WHOLE)]
    return names


def _unfinished(home: Home, step: Step, shard: str) -> Iterator[str]:
    assert step.wanted is not None
    wanted_keys = step.wanted(home, shard) if home.settings.graph.enabled or not step.graph else {}
    for table in step.tables:
        stored_keys = {name: key.partition(_MARK)[0] for name, key in finished(home.lake.inputs(table, shard)).items()}
        if table in step.keyed_apart:
            is_done = stored_keys.keys() == wanted_keys.keys()
        elif step.sharded:
            is_done = stored_keys == wanted_keys
        else:
            is_done = stored_keys == wanted_keys or not (stored_keys or step.graph)
        if not is_done:
            yield f"{table.name}, shard {shard}" if step.sharded else table.name


def _facts(home: Home, step: Step) -> dict[str, str]:
    code = step.its_code
    schemas = [
        (table.name, *table.key, *(f"{field.name} {field.type} {field.nullable}" for field in table.schema))
        for table in step.tables
    ]
    return {
        "code": code.source,
        "columns": digest(*schemas),
        **{f"library {name}": version for name, version in code.versions.items()},
        **{name: FACTS[name](home) if name in FACTS else _setting(home, name) for name in step.options},
    }


def _setting(home: Home, name: str) -> str:
    value: Any = home.settings
    for part in name.split("."):
        value = getattr(value, part)
    return str(value)


def _differences(before: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    if before is None:
        return ["new step"]
    return [f"{name} changed" for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]


def _rows_to_retry(home: Home) -> Iterator[Stale]:
    """Rows that ask to be made again, whatever code and settings say."""
    from rag_assets.parsing.documents import documents_to_retry

    again: dict[str, set[str]] = {}
    for document, reason in documents_to_retry(home.lake, home.options.parsing, home.options.passwords).items():
        again.setdefault(reason, set()).add(shard_of(document))
    for reason, shards in sorted(again.items()):
        yield Stale("parse", reason, tuple(sorted(shards)))
    if shards := shards_with_outdated_boilerplate(home):
        yield Stale("summarize_pages", "other lines are common", tuple(sorted(shards)))
    if home.language_model_name == "extractive":
        return
    for step in steps_in_use(home):
        if step.writer(home) != "extractive":
            places = {
                shard
                for table in step.tables
                for shard in home.lake.latest(table)
                if stand_ins(home.lake, table, [shard]).again
            }
            if places:
                yield Stale(step.name, "asked again", tuple(sorted(places)))


def _stale_syncs(home: Home) -> Iterator[Stale]:
    if serving_as_noted(home.path):  # with these tables, whose rows are compared above
        return
    from rag_assets.store.publish import stale_syncs

    shards: dict[str, set[str]] = {}
    for name, shard in stale_syncs(home.lake, home.vectors, home.embedder.name):
        shards.setdefault(name, set()).add(shard)
    for step in STEPS:
        if step.index and (changed_shards := shards.get(step.index.name)):
            yield Stale(step.name, "input changed", tuple(sorted(changed_shards)))
