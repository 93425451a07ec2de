"""Checks on the assets. Those on structure block publishing; those on content warn and name what to look at.

A check in a run over some shards looks at those only: another run may be half-way through the others. Tables that are
made as a whole are looked at as a whole. `publish` looks at everything.
"""

from collections.abc import Iterator, Mapping

import dagster as dg
import pyarrow.compute as pc

from rag_assets.contracts.tables import (
    CHUNK_INDEX,
    DOCUMENTS,
    ENTITY_INDEX,
    MODEL_CALLS,
    PARSE_FAILURES,
    QUESTION_INDEX,
    REPORT_INDEX,
    SUMMARY_INDEX,
    TABLES,
)
from rag_assets.defs.partitions import shards_of_run
from rag_assets.defs.resources import HomeResource
from rag_assets.parsing.incomplete import document_failures, incomplete_documents
from rag_assets.store.integrity import indexing_problems, key_problems, reference_problems, schema_problems
from rag_assets.store.lake import WHOLE

_SHOWN = 20


def _result(asset: str, name: str, problems: list[str], severity: dg.AssetCheckSeverity) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=name,
        passed=not problems,
        severity=severity,
        description="; ".join(problems[:_SHOWN]) or None,
        metadata={"problems": len(problems)},
    )


def _structure_check(table_name: str) -> dg.AssetChecksDefinition:
    names = ("schema_as_declared", "keys_unique", "references_resolve")
    specs = [dg.AssetCheckSpec(name, asset=table_name, blocking=True) for name in names]

    @dg.multi_asset_check(name=f"{table_name}_structure", specs=specs)
    def structure(
        context: dg.AssetCheckExecutionContext, home: dg.ResourceParam[HomeResource]
    ) -> Iterator[dg.AssetCheckResult]:
        lake, table = home.open().lake, TABLES[table_name]
        for name, find in zip(names, (schema_problems, key_problems, reference_problems), strict=True):
            yield _result(table_name, name, find(lake, table, shards_of_run(context)), dg.AssetCheckSeverity.ERROR)

    return structure


@dg.asset_check(
    asset="chunk_index", blocking=True, description="Every passage of every document is in the serving table."
)
def every_chunk_indexed(
    context: dg.AssetCheckExecutionContext, home: dg.ResourceParam[HomeResource]
) -> dg.AssetCheckResult:
    """Compares stored and served passages."""
    base = home.open()
    problems = indexing_problems(base.lake, base.vectors, CHUNK_INDEX.name, shards_of_run(context))
    return _result("chunk_index", "every_chunk_indexed", problems, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="summary_index", blocking=True, description="Every summary is in the serving table.")
def every_summary_indexed(
    context: dg.AssetCheckExecutionContext, home: dg.ResourceParam[HomeResource]
) -> dg.AssetCheckResult:
    """Compares stored and served summaries."""
    base = home.open()
    problems = indexing_problems(base.lake, base.vectors, SUMMARY_INDEX.name, shards_of_run(context))
    return _result("summary_index", "every_summary_indexed", problems, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="question_index", blocking=True, description="Every searched question is in the serving table.")
def every_question_indexed(
    context: dg.AssetCheckExecutionContext, home: dg.ResourceParam[HomeResource]
) -> dg.AssetCheckResult:
    """Compares stored and served questions."""
    base = home.open()
    problems = indexing_problems(base.lake, base.vectors, QUESTION_INDEX.name, shards_of_run(context))
    return _result("question_index", "every_question_indexed", problems, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="entity_index", blocking=True, description="Every entity is in the serving table.")
def every_entity_indexed(home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Compares stored and served entities."""
    base = home.open()
    problems = indexing_problems(base.lake, base.vectors, ENTITY_INDEX.name)
    return _result("entity_index", "every_entity_indexed", problems, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset="report_index", blocking=True, description="Every community report is in the serving table.")
def every_report_indexed(home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Compares stored and served reports."""
    base = home.open()
    problems = indexing_problems(base.lake, base.vectors, REPORT_INDEX.name)
    return _result("report_index", "every_report_indexed", problems, dg.AssetCheckSeverity.ERROR)


@dg.asset_check(asset=PARSE_FAILURES.name, description="The share of documents that cannot be parsed is small.")
def failed_share(home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Warns above the share that the settings allow, and names the documents and causes."""
    base = home.open()
    documents = base.lake.read(DOCUMENTS, columns=["document_id", "status"])
    failed = documents.filter(pc.equal(documents["status"], "failed"))["document_id"].to_pylist()
    share = len(failed) / max(1, documents.num_rows)
    causes = base.lake.read(PARSE_FAILURES, columns=["document_id", "cause"]).to_pylist()
    cause_of = {row["document_id"]: row["cause"] for row in reversed(causes)}
    named = [f"{name}: {cause_of.get(name, 'unknown')}" for name in failed]
    return dg.AssetCheckResult(
        passed=share <= base.settings.operation.failed_share,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(failed)} of {documents.num_rows} documents failed: " + "; ".join(named[:_SHOWN]),
        metadata={"failed": len(failed), "share": share, "documents": named[:200]},
    )


@dg.asset_check(asset=DOCUMENTS.name, description="Every page of the documents that were parsed is read.")
def pages_read(home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Warns where a larger share of a document is unread than the settings allow, and names what is not read."""
    base = home.open()
    incomplete = incomplete_documents(base.lake)
    above = [each for each in incomplete if each.unread_share > base.settings.operation.unread_share]
    named = [str(each) for each in incomplete]
    return dg.AssetCheckResult(
        passed=not above,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(named)} documents are not read in full: " + "; ".join(named[:_SHOWN]),
        metadata={
            "unread_pages": sum(each.unread_page_count for each in incomplete),
            "partly_read_pages": sum(each.partly_read_page_count for each in incomplete),
            "documents": named[:200],
        },
    )


@dg.asset_check(asset=PARSE_FAILURES.name, description="Every file that was read once can still be read.")
def files_readable(home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Warns of documents that are kept as they were because their file can no longer be read."""
    failures = document_failures(home.open().lake)
    problems = [f"{each['document_id']}: {each['message']}" for each in failures if each["status"] == "unreadable"]
    return _result(PARSE_FAILURES.name, "files_readable", problems, dg.AssetCheckSeverity.WARN)


@dg.asset_check(
    asset=MODEL_CALLS.name, description="Few calls of the language model in this run gave no usable answer."
)
def calls_answered(context: dg.AssetCheckExecutionContext, home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Warns above the share of failures that the settings allow, and names documents and causes."""
    base = home.open()
    rows = base.lake.read(MODEL_CALLS, columns=["run_id", "cache_hit", "document_id", "step", "outcome", "error"])
    calls = rows.filter(pc.and_(pc.equal(rows["run_id"], context.run.run_id), pc.invert(rows["cache_hit"])))
    calls = calls.filter(pc.not_equal(calls["outcome"], "repeated"))
    failed = calls.filter(pc.not_equal(calls["outcome"], "completed")).to_pylist()
    share = len(failed) / max(1, calls.num_rows)
    named = [f"{row['document_id']}: {row['step']}: {row['outcome']}: {row['error'] or ''}" for row in failed]
    return dg.AssetCheckResult(
        passed=share <= base.settings.operation.failed_share,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(failed)} of {calls.num_rows} calls gave no usable answer: " + "; ".join(named[:_SHOWN]),
        metadata={"failed": len(failed), "share": share, "calls": calls.num_rows},
    )


@dg.asset_check(asset=DOCUMENTS.name, description="Every source can be listed, and none has disappeared.")
def sources_reachable(home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Fails where a source is gone or can be listed in part only, and says why; what else changed is published."""
    problems = home.open().listing(allow_empty=home.allow_empty).unreachable
    return _result(DOCUMENTS.name, "sources_reachable", [*problems.values()], dg.AssetCheckSeverity.ERROR)


def report_sources(instance: dg.DagsterInstance, unreachable: Mapping[str, str]) -> None:
    """Record the result of `sources_reachable` outside a run, where it is another than the one recorded last.

    A source that disappears, or comes back as it was, gives no run anything to do.

    Args:
        instance: Where it is recorded.
        unreachable: Why a source cannot be listed, by its name.
    """
    [key] = sources_reachable.check_keys
    last = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
    before = last.status.value if last else "SUCCEEDED"
    if before == ("SUCCEEDED" if unreachable else "FAILED"):
        result = _result(DOCUMENTS.name, key.name, [*unreachable.values()], dg.AssetCheckSeverity.ERROR)
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=key.asset_key,
                check_name=key.name,
                passed=result.passed,
                severity=result.severity,
                description=result.description,
                metadata=result.metadata,
            )
        )


@dg.asset_check(
    asset=MODEL_CALLS.name, description="Few rows stand in for those that the language model did not write."
)
def few_stand_ins(home: dg.ResourceParam[HomeResource]) -> dg.AssetCheckResult:
    """Warns above the share of documents with stand-ins that the settings allow, and names tables and causes.

    Of tables that are made as a whole it is the share of rows.
    """
    base = home.open()
    found = {name: each for name, each in base.stand_ins().items() if each.count}
    shares = {
        name: each.count / max(1, base.lake.row_count(TABLES[name], WHOLE))
        if WHOLE in base.lake.latest(TABLES[name])
        else each.marked / max(1, each.total)
        for name, each in found.items()
    }
    named = [f"{name}: {each.count} ({each.reasons}), {shares[name]:.0%}" for name, each in found.items()]
    return dg.AssetCheckResult(
        passed=all(share <= base.settings.operation.failed_share for share in shares.values()),
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(named) or None,
        metadata={"stand_ins": sum(each.count for each in found.values()), "share": max(shares.values(), default=0.0)},
    )


CHECKS = [
    *map(_structure_check, TABLES),
    every_chunk_indexed,
    every_summary_indexed,
    every_question_indexed,
    every_entity_indexed,
    every_report_indexed,
    failed_share,
    sources_reachable,
    pages_read,
    files_readable,
    calls_answered,
    few_stand_ins,
]
