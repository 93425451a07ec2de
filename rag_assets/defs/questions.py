"""The assets that rest on accepted questions, evaluations and what a collection learns, and their jobs.

They are no part of indexing and run on demand: what is measured, and learned from, is what was published before. What
is learned comes into force, where it proves better, as a version of its own. Curves of the rewriter are metadata of
observations while it trains.
"""

import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from rag_assets import __version__
from rag_assets.contracts.tables import EVALUATION_RESULTS, EVALUATION_RUNS, EVALUATION_SCORES
from rag_assets.defs.io import asset_spec
from rag_assets.defs.resources import HomeResource, Progress
from rag_assets.evaluation.recorded import history_markdown, runs
from rag_assets.pipeline.learning import (
    MODELS,
    TABLE_COLUMNS,
    TREES,
    Trained,
    TrainingOptions,
    train_candidate,
    train_query_map,
    train_ranking,
    training_folder,
)
from rag_assets.pipeline.measuring import accepted_questions, measure, question_set
from rag_assets.text.plain import markdown_table
from rag_assets.training.adoption import REWRITER_MODEL
from rag_assets.training.rewriter import read_curves

EVALUATION_GROUP, TRAINING_GROUP = "evaluation", "training"
_EVALUATED = (EVALUATION_RUNS, EVALUATION_SCORES, EVALUATION_RESULTS)
_RANKING_CONFIG = {
    "model": dg.Field(
        dg.Enum("RankingModel", [dg.EnumValue(name) for name in MODELS]),
        default_value=MODELS[0],
        description="Weights, or boosted trees on top of the shipped ones (extra trees).",
    )
}
_OBSERVED_SECONDS = 30
_RUNS_SHOWN = 30  # in the history


@dg.multi_asset(
    name="measure_questions",  # no op may be called as a job is
    specs=[asset_spec(table.name, table, ["snapshot"], EVALUATION_GROUP, __version__) for table in _EVALUATED],
    description="Asks the published version the accepted questions of `evaluation.questions` and records what came.",
)
def evaluation(
    home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> Iterator[dg.MaterializeResult]:  # type: ignore[type-arg]
    """One run over all questions and modes."""
    base = home.look()
    run_id = measure(base, progress.step("asking questions"))
    shown = runs(base.lake, _RUNS_SHOWN)
    facts: dict[str, dg.RawMetadataValue] = {"run_id": run_id, "history": dg.MetadataValue.md(history_markdown(shown))}
    warnings = next((run.warnings for run in shown if run.run_id == run_id), ())
    facts["warnings"] = dg.MetadataValue.md("\n".join(f"- {line}" for line in warnings) or "none")
    for table in _EVALUATED:
        rows = base.lake.row_count(table, run_id)
        run_facts = facts if table is EVALUATION_RUNS else {"run_id": run_id}
        yield dg.MaterializeResult(table.name, metadata={"rows_added": rows, **run_facts})


@dg.asset(
    deps=["snapshot"],
    group_name=TRAINING_GROUP,
    kinds={"json"},
    owners=["team:rag_assets"],
    code_version=__version__,
    description="Weights of the default search, learned from accepted questions; in force where they prove better.",
    config_schema=_RANKING_CONFIG,
)
def ranking_weights(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Learned and proven on documents that were not learned from."""
    options = TrainingOptions(trees=context.op_execution_context.op_config["model"] == TREES)
    return _result(train_ranking(home.look(), options, progress.step("asking questions")))


@dg.asset(
    deps=["snapshot", ranking_weights],
    group_name=TRAINING_GROUP,
    kinds={"json"},
    owners=["team:rag_assets"],
    code_version=__version__,
    description="A map of query vectors, learned from accepted questions; in force where it proves better.",
)
def query_map(home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Learned and proven on documents that were not learned from."""
    return _result(train_query_map(home.look(), TrainingOptions(), progress.step("asking questions")))


@dg.asset(
    name=REWRITER_MODEL,
    deps=["snapshot"],
    group_name=TRAINING_GROUP,
    kinds={"torch"},
    owners=["team:rag_assets"],
    code_version=__version__,
    description="A model trained to rewrite questions for this collection; in force only where it proves better.",
    config_schema={
        "anew": dg.Field(
            bool,
            default_value=False,
            description="Whether training of other questions, model or settings that was stopped is removed.",
        )
    },
)
def rewriter_model(
    context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], progress: dg.ResourceParam[Progress]
) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """Train by the settings and the accepted questions, prove, adopt."""
    base = home.look()
    report, last = progress.step("training the rewriter"), time.monotonic()

    def observe(done: int, total: int) -> None:
        nonlocal last
        report(done, total)
        if time.monotonic() - last >= _OBSERVED_SECONDS or done == total:
            last = time.monotonic()
            figures: dict[str, Any] = {}
            for line in read_curves(training_folder(base))[-2:]:
                is_look = line["stage"] == "validation"
                figures |= {f"validation {name}": line[name] for name in ("step", "gain")} if is_look else line
            context.log_event(dg.AssetObservation(REWRITER_MODEL, metadata=figures))

    questions = accepted_questions(question_set(base))
    anew = bool(context.op_execution_context.op_config["anew"])
    result = train_candidate(base, questions, anew=anew, progress=observe)
    if result is None:
        raise dg.Failure("the asset trains in one process; for several, `accelerate launch` the command")
    return _result(result)


EVALUATION_JOB = dg.define_asset_job(
    "evaluation",
    selection=dg.AssetSelection.groups(EVALUATION_GROUP),
    description="Measures the published version by the accepted questions; nothing is indexed or published.",
)
TRAINING_JOB = dg.define_asset_job(
    "train_ranking",
    selection=dg.AssetSelection.assets(ranking_weights, query_map),
    description="Learns how the published version is searched best; adopts what proves better on questions not seen.",
)
REWRITER_JOB = dg.define_asset_job(
    "train_rewriter",
    selection=dg.AssetSelection.assets(rewriter_model),
    description="Trains the rewriter by the accepted questions; adopted only where it proves better.",
)


def _result(result: Trained) -> dg.MaterializeResult:  # type: ignore[type-arg]
    figures = {name.replace(" ", "_"): proof.difference.mean for name, proof in result.proofs.items()}
    return dg.MaterializeResult(
        metadata={
            "verdict": result.reason,
            "questions": result.question_count,
            "proof": dg.MetadataValue.md(markdown_table(TABLE_COLUMNS, result.table(), most_chars=1000)),
            "learned": dg.MetadataValue.md("\n".join(f"- {name}: {value}" for name, value in result.facts.items())),
            **{f"change_{name}": value for name, value in figures.items()},
        }
    )
