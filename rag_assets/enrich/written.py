"""Runs a step whose rows a language model writes: dialogues for the documents that changed, rows shard by shard.

Answers are stored as they come (`rag_assets.models.metered`), so that a run that ends in the middle pays nothing twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rag_assets.contracts.errors import ModelError
from rag_assets.contracts.generation import Request
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import Table
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.parsing.records import Record, rows
from rag_assets.store.incremental import StepReport, marked_stand_ins, replace_documents, stale_documents
from rag_assets.store.lake import Lake

Result = TypeVar("Result")


@dataclass(frozen=True)
class Written:
    """What a dialogue on one document gave.

    Attributes:
        records: Rows of the document.
        retry: Whether a call failed for reasons that may pass, so that the next run should try again.
    """

    records: list[Record]
    retry: bool = False


@dataclass(frozen=True)
class WrittenTables:
    """What a dialogue on one document gave for several tables.

    Attributes:
        records: Rows of the document by table name; a table without rows may be left out.
        retry: Whether a call failed for reasons that may pass, so that the next run should try again.
    """

    records: Mapping[str, list[Record]]
    retry: bool = False


Begin = Callable[[str, Sequence[str]], Iterable[tuple[str, Dialogue[Written]]]]
BeginTables = Callable[[str, Sequence[str]], Iterable[tuple[str, Dialogue[WrittenTables]]]]


@dataclass
class _Shard:
    """A shard under way."""

    wanted: Mapping[str, str]
    gone: set[str]
    missing: set[str]
    records: dict[str, list[Record]] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    lost: dict[str, Missing] = field(default_factory=dict)


def update_with_model(
    lake: Lake,
    table: Table,
    shards: Sequence[str],
    wanted: Callable[[str], Mapping[str, str]],
    begin: Begin,
    model: LanguageModel,
    progress: Callable[[int, int], None],
) -> StepReport:
    """Bring some shards of one table in step, see `update_tables_with_model`."""

    def begin_tables(shard: str, documents: Sequence[str]) -> Iterator[tuple[str, Dialogue[WrittenTables]]]:
        for document_id, dialogue in begin(shard, documents):
            yield document_id, _of_table(table, dialogue)

    return update_tables_with_model(lake, [table], shards, wanted, begin_tables, model, progress)


def update_tables_with_model(
    lake: Lake,
    tables: Sequence[Table],
    shards: Sequence[str],
    wanted: Callable[[str], Mapping[str, str]],
    begin: BeginTables,
    model: LanguageModel,
    progress: Callable[[int, int], None],
) -> StepReport:
    """Bring some shards of tables that are written together in step; all their documents are worked on at once.

    Args:
        lake: Where the tables are.
        tables: The tables.
        shards: Shards to look at.
        wanted: Digest of what each document of a shard is to be computed from.
        begin: Begins the dialogues on some documents of a shard; each gives all rows of its document.
        model: The language model.
        progress: Told documents done and documents in all.

    Raises:
        ModelError: The model cannot be used any longer; documents that were done before are written.
    """
    report = StepReport()
    under_way: dict[str, _Shard] = {}
    for shard in shards:
        keys = wanted(shard)
        stale = stale_documents(lake, tables, shard, keys)
        gone = {name for table in tables for name in lake.inputs(table, shard)} - keys.keys()
        report.of(shard).kept += len(keys) - len(stale)
        if stale or gone:
            under_way[shard] = _Shard(keys, gone, set(stale))
        else:
            for table in tables:
                report.row_counts.setdefault(table.name, {})[shard] = lake.row_count(table, shard)
    total = sum(len(each.missing) for each in under_way.values())
    done = 0
    for shard in [name for name, each in under_way.items() if not each.missing]:
        _write(lake, tables, shard, under_way.pop(shard), report)
    try:
        for (shard, document_id), written in converse(model, _dialogues(under_way, begin)):
            state = under_way[shard]
            state.missing.discard(document_id)
            for name, records in written.records.items():
                state.records.setdefault(name, []).extend(records)
            key = state.wanted[document_id]
            lost = state.lost[document_id]
            state.inputs[document_id] = marked_stand_ins(key, lost.causes, again=written.retry or lost.again)
            done += 1
            progress(done, total)
            if not state.missing:
                _write(lake, tables, shard, under_way.pop(shard), report)
    except ModelError:
        for shard, state in under_way.items():
            if state.inputs or state.gone:
                _write(lake, tables, shard, state, report)
        raise
    return report


def side_by_side(dialogues: Sequence[Dialogue[Result]]) -> Dialogue[list[Result]]:
    """Hold some dialogues as one: each of its rounds holds the requests of all that are still under way.

    Returns:
        Their results, in the order given.
    """
    results: dict[int, Result] = {}
    asked: dict[int, Sequence[Request]] = {}
    for index, dialogue in enumerate(dialogues):
        try:
            asked[index] = next(dialogue)
        except StopIteration as stop:
            results[index] = stop.value
    while asked:
        answers = iter((yield [request for requests in asked.values() for request in requests]))
        following: dict[int, Sequence[Request]] = {}
        for index, requests in asked.items():
            try:
                following[index] = dialogues[index].send([next(answers) for _ in requests])
            except StopIteration as stop:
                results[index] = stop.value
        asked = following
    return [results[index] for index in range(len(dialogues))]


def _of_table(table: Table, dialogue: Dialogue[Written]) -> Dialogue[WrittenTables]:
    written = yield from dialogue
    return WrittenTables({table.name: written.records}, written.retry)


def _dialogues(
    under_way: Mapping[str, _Shard], begin: BeginTables
) -> Iterator[tuple[tuple[str, str], Dialogue[WrittenTables]]]:
    for shard, state in list(under_way.items()):
        for document_id, dialogue in begin(shard, sorted(state.missing)):
            lost = state.lost[document_id] = Missing()
            yield (shard, document_id), watched(dialogue, lost)


def _write(lake: Lake, tables: Sequence[Table], shard: str, state: _Shard, report: StepReport) -> None:
    for table in tables:
        records = rows(table.schema, state.records.get(table.name, []))
        replace_documents(lake, table, shard, records, state.inputs, state.gone, report)
    report.of(shard).computed += len(state.inputs)
    report.of(shard).removed += len(state.gone)
