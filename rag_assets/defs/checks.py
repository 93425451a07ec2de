"""Checks: that what is stored holds together, without which nothing is published, and those on content that steps end
with, which warn and name what to look at.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import dagster as dg
import pyarrow.compute as pc

from rag_assets.contracts.tables import DOCUMENTS, MODEL_CALLS, PARSE_FAILURES, TABLES
from rag_assets.parsing.records import document_failures, incomplete_documents
from rag_assets.pipeline.freshness import all_stand_ins
from rag_assets.pipeline.gate import Gate
from rag_assets.pipeline.steps import Step, StepWork
from rag_assets.store.lake import WHOLE

_SHOWN = 20
_Find: TypeAlias = Callable[[StepWork], dg.AssetCheckResult]


def _of_problems(problems: Sequence[str], severity: dg.AssetCheckSeverity) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not problems,
        description="; ".join(problems[:_SHOWN]) or None,
        metadata={"problems": len(problems)},
        severity=severity,
    )


def step_check_specs(step: Step) -> list[dg.AssetCheckSpec]:
    """Declarations of the checks that a step ends with."""
    return [spec for spec, _ in _checks(step)]


def step_checks(work: StepWork, step: Step) -> Iterator[dg.AssetCheckResult]:
    """Results of the checks that a step ends with."""
    for spec, find in _checks(step):
        yield find(work)._replace(asset_key=spec.asset_key, check_name=spec.name)


def _checks(step: Step) -> list[tuple[dg.AssetCheckSpec, _Find]]:
    return [(spec, find) for spec, find in _CONTENT_CHECKS if spec.asset_key.to_user_string() in step.assets]


STRUCTURE = dg.AssetCheckSpec(
    "structure",
    asset="snapshot",
    description="Columns are as declared, keys stand once, what rows refer to is there, serving tables are complete.",
    blocking=True,
)


ACCEPTED = dg.AssetCheckSpec(
    "accepted_questions",
    asset="snapshot",
    description="Accepted questions are answered as well as by the version that readers see (`evaluation.questions`).",
    blocking=True,
)


def structure_result(problems: str | None) -> dg.AssetCheckResult:
    """Result of the check of what is stored as a whole; passed where there are no problems."""
    severity = dg.AssetCheckSeverity.ERROR
    return dg.AssetCheckResult(check_name=STRUCTURE.name, passed=not problems, severity=severity, description=problems)


def accepted_result(gate: Gate, problem: str | None = None) -> dg.AssetCheckResult:
    """Whether a version is as good as the one before, by accepted questions."""
    verdict = gate.verdict
    if verdict is None:
        return dg.AssetCheckResult(check_name=ACCEPTED.name, passed=True, description=gate.summary)
    means = {name: sum(values.values()) / len(values) for name, values in verdict.scores.items() if values}
    regressions = [str(regression) for regression in verdict.regressions]
    return dg.AssetCheckResult(
        check_name=ACCEPTED.name,
        passed=not verdict.held,
        severity=dg.AssetCheckSeverity.ERROR if problem else dg.AssetCheckSeverity.WARN,
        description=problem or gate.summary,
        metadata={**means, "worse": len(regressions), "questions": regressions[:200]},
    )


def _failed_share(work: StepWork) -> dg.AssetCheckResult:
    """Warns above the share that the settings allow, and names the documents and causes."""
    base = work.home
    documents = base.lake.read(DOCUMENTS, columns=["document_id", "status"])
    failed_ids = documents.filter(pc.equal(documents["status"], "failed"))["document_id"].to_pylist()
    share = len(failed_ids) / max(1, documents.num_rows)
    causes = base.lake.read(PARSE_FAILURES, columns=["document_id", "cause"]).to_pylist()
    cause_of = {row["document_id"]: row["cause"] for row in reversed(causes)}
    lines = [f"{name}: {cause_of.get(name, 'unknown')}" for name in failed_ids]
    return dg.AssetCheckResult(
        passed=share <= base.settings.operation.failed_share,
        description=f"{len(failed_ids)} of {documents.num_rows} documents failed: " + "; ".join(lines[:_SHOWN]),
        metadata={"failed": len(failed_ids), "share": share, "documents": lines[:200]},
        severity=dg.AssetCheckSeverity.WARN,
    )


def _pages_read(work: StepWork) -> dg.AssetCheckResult:
    """Warns where a larger share of a document is unread than the settings allow, and names what is not read."""
    base = work.home
    incomplete = incomplete_documents(base.lake)
    above = [document for document in incomplete if document.unread_share > base.settings.operation.unread_share]
    lines = [str(document) for document in incomplete]
    return dg.AssetCheckResult(
        passed=not above,
        description=f"{len(lines)} documents are not read in full: " + "; ".join(lines[:_SHOWN]),
        metadata={
            "unread_pages": sum(document.unread_page_count for document in incomplete),
            "partly_read_pages": sum(document.partly_read_page_count for document in incomplete),
            "documents": lines[:200],
        },
        severity=dg.AssetCheckSeverity.WARN,
    )


def _files_readable(work: StepWork) -> dg.AssetCheckResult:
    """Warns of documents that are kept as they were because their file can no longer be read."""
    failures = document_failures(work.lake)
    problems = [
        f"{failure['document_id']}: {failure['message']}" for failure in failures if failure["status"] == "unreadable"
    ]
    return _of_problems(problems, dg.AssetCheckSeverity.WARN)


def _calls_answered(work: StepWork) -> dg.AssetCheckResult:
    """Warns above the share of failures that the settings allow, and names documents and causes."""
    base = work.home
    rows = base.lake.read(MODEL_CALLS, columns=["run_id", "cache_hit", "document_id", "step", "outcome", "error"])
    calls = rows.filter(pc.and_(pc.equal(rows["run_id"], work.run_id), pc.invert(rows["cache_hit"])))
    calls = calls.filter(pc.not_equal(calls["outcome"], "repeated"))
    failed_rows = calls.filter(pc.not_equal(calls["outcome"], "completed")).to_pylist()
    share = len(failed_rows) / max(1, calls.num_rows)
    lines = [f"{row['document_id']}: {row['step']}: {row['outcome']}: {row['error'] or ''}" for row in failed_rows]
    return dg.AssetCheckResult(
        passed=share <= base.settings.operation.failed_share,
        description=f"{len(failed_rows)} of {calls.num_rows} calls gave no usable answer: " + "; ".join(lines[:_SHOWN]),
        metadata={"failed": len(failed_rows), "share": share, "calls": calls.num_rows},
        severity=dg.AssetCheckSeverity.WARN,
    )


def _sources_reachable(work: StepWork) -> dg.AssetCheckResult:
    """Fails where a source is gone or can be listed in part only, and says why; what else changed is published."""
    return _of_problems([*work.listing.unreachable.values()], dg.AssetCheckSeverity.ERROR)


def report_sources(instance: dg.DagsterInstance, unreachable: Mapping[str, str]) -> None:
    """Record the result of `sources_reachable` outside a run, where it is another than the one recorded last.

    A source that disappears, or comes back as it was, gives no run anything to do.
    """
    key = dg.AssetCheckKey(dg.AssetKey(DOCUMENTS.name), "sources_reachable")
    last = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
    before = last.status.value if last else "SUCCEEDED"
    if before == ("SUCCEEDED" if unreachable else "FAILED"):
        result = _of_problems([*unreachable.values()], dg.AssetCheckSeverity.ERROR)
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=key.asset_key,
                check_name=key.name,
                passed=result.passed,
                description=result.description,
                metadata=result.metadata,
                severity=result.severity,
            )
        )


def _few_stand_ins(work: StepWork) -> dg.AssetCheckResult:
    """Warns above the share of documents with stand-ins that the settings allow, and names tables and causes.

    Of tables that are made as a whole it is the share of rows.
    """
    base = work.home
    by_table = {name: stand_in for name, stand_in in all_stand_ins(base).items() if stand_in.count}
    shares = {
        name: stand_in.count / max(1, base.lake.row_count(TABLES[name], WHOLE))
        if WHOLE in base.lake.latest(TABLES[name])
        else stand_in.marked / max(1, stand_in.total)
        for name, stand_in in by_table.items()
    }
    lines = [
        f"{name}: {stand_in.count} ({stand_in.reasons}), {shares[name]:.0%}" for name, stand_in in by_table.items()
    ]
    return dg.AssetCheckResult(
        passed=all(share <= base.settings.operation.failed_share for share in shares.values()),
        description="; ".join(lines) or None,
        metadata={
            "stand_ins": sum(stand_in.count for stand_in in by_table.values()),
            "share": max(shares.values(), default=0.0),
        },
        severity=dg.AssetCheckSeverity.WARN,
    )


_CONTENT_CHECKS: Sequence[tuple[dg.AssetCheckSpec, _Find]] = [
    (dg.AssetCheckSpec(name, asset=table.name, description=description), find)
    for table, name, description, find in (
        (DOCUMENTS, "sources_reachable", "Every source can be listed, and none has disappeared.", _sources_reachable),
        (DOCUMENTS, "pages_read", "Every page of the documents that were parsed is read.", _pages_read),
        (PARSE_FAILURES, "failed_share", "The share of documents that cannot be parsed is small.", _failed_share),
        (PARSE_FAILURES, "files_readable", "Every file that was read once can still be read.", _files_readable),
        (
            MODEL_CALLS,
            "calls_answered",
            "Few calls of the language model in this run gave no usable answer.",
            _calls_answered,
        ),
        (
            MODEL_CALLS,
            "few_stand_ins",
            "Few rows stand in for those that the language model did not write.",
            _few_stand_ins,
        ),
    )
]
