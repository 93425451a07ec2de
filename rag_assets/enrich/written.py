"""Runs a step that computes the rows of documents by dialogues with a language model; without one they ask nothing.

Answers are stored as they come (`rag_assets.models.metered`), so that a run that ends in the middle pays nothing twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import Table
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.parsing.records import Record, rows
from rag_assets.store.incremental import StepReport, marked_stand_ins, replace_documents, stale_documents
from rag_assets.store.lake import Lake

Progress = Callable[[int, int], None]  # documents, shards or whatever the step counts: done, and in all
Wanted = Callable[[str], Mapping[str, str]]  # shard -> digest of what each of its documents is to be computed from
Records = Mapping[str, list[Record]]  # rows by table name; a table without rows may be left out
Begin = Callable[[str, Sequence[str]], Iterable[tuple[str, Dialogue[Records]]]]  # one dialogue for each document


@dataclass
class TextUpdate:
    """What became of the texts of a table that is made as a whole."""

    written: int = 0  # files written
    rewritten: int = 0  # texts that were written, or written anew
    kept: int = 0
    removed: int = 0  # texts that are gone, as what they were on
    stand_ins: int = 0  # texts that the model was asked for and the extractive algorithm wrote
    removed_references: int = 0  # references to records that do not exist, taken out of the texts that were written


@dataclass
class _Shard:
    """A shard under way."""

    wanted: Mapping[str, str]
    gone: set[str]
    missing: set[str]
    records: dict[str, list[Record]] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    lost: dict[str, Missing] = field(default_factory=dict)


def update_documents(
    lake: Lake,
    tables: Sequence[Table],
    shards: Sequence[str],
    wanted: Wanted,
    begin: Begin,
    model: LanguageModel,
    progress: Progress,
) -> StepReport:
    """Bring some shards of tables that are written together in step; all their documents are worked on at once.

    Progress is told documents. One with an answer that is missing for reasons that may pass is asked for again by the
    next run.

    Raises:
        ModelError: The model cannot be used any longer; documents that were done before are written.
    """
    report = StepReport()
    under_way: dict[str, _Shard] = {}
    for shard in shards:
        keys = wanted(shard)
        stale = stale_documents(lake, tables, shard, keys)
        gone_documents = {name for table in tables for name in lake.inputs(table, shard)} - keys.keys()
        report.of(shard).kept += len(keys) - len(stale)
        if stale or gone_documents:
            under_way[shard] = _Shard(keys, gone_documents, set(stale))
        else:
            for table in tables:
                report.row_counts.setdefault(table.name, {})[shard] = lake.row_count(table, shard)
    total = sum(len(state.missing) for state in under_way.values())
    done_count = 0
    for shard in [name for name, state in under_way.items() if not state.missing]:
        _write(lake, tables, shard, under_way.pop(shard), report)
    try:
        for (shard, document_id), records in converse(model, _dialogues(under_way, begin)):
            state = under_way[shard]
            state.missing.discard(document_id)
            for name, of_table in records.items():
                state.records.setdefault(name, []).extend(of_table)
            missing = state.lost[document_id]
            state.inputs[document_id] = marked_stand_ins(state.wanted[document_id], missing.causes, again=missing.again)
            done_count += 1
            progress(done_count, total)
            if not state.missing:
                _write(lake, tables, shard, under_way.pop(shard), report)
    except ModelError:
        for shard, state in under_way.items():
            if state.inputs or state.gone:
                _write(lake, tables, shard, state, report)
        raise
    return report


def table_inputs(lake: Lake, tables: Iterable[Table]) -> tuple[tuple[str, ...], ...]:
    """What all rows of some tables were computed from, for the digest of a step that reads the whole of them."""
    return tuple(
        (table.name, *(fact for name, key in sorted(lake.inputs(table, shard).items()) for fact in (name, key)))
        for table in tables
        for shard in lake.latest(table)
    )


def _dialogues(under_way: Mapping[str, _Shard], begin: Begin) -> Iterator[tuple[tuple[str, str], Dialogue[Records]]]:
    for shard, state in list(under_way.items()):
        for document_id, dialogue in begin(shard, sorted(state.missing)):
            missing = state.lost[document_id] = Missing()
            yield (shard, document_id), watched(dialogue, missing)


def _write(lake: Lake, tables: Sequence[Table], shard: str, state: _Shard, report: StepReport) -> None:
    for table in tables:
        records = rows(table.schema, state.records.get(table.name, []))
        replace_documents(lake, table, shard, records, state.inputs, state.gone, report)
    report.of(shard).computed += len(state.inputs)
    report.of(shard).removed += len(state.gone)
