"""The asset of the trained rewriter and its job; its curves are metadata of observations while it trains."""

import time

import dagster as dg

from rag_assets import __version__
from rag_assets.defs.resources import HomeResource, Progress
from rag_assets.pipeline import measuring
from rag_assets.pipeline.rewriter_training import train_candidate, training_folder
from rag_assets.training.adoption import REWRITER_MODEL
from rag_assets.training.rewriter import read_curves

TRAINING_GROUP = "training"
_OBSERVED_SECONDS = 30


@dg.asset(
    name=REWRITER_MODEL,
    group_name=TRAINING_GROUP,
    kinds={"torch"},
    owners=["team:rag_assets"],
    code_version=__version__,
    description="A model trained to rewrite questions for this collection; in force only where it proves better.",
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
            figures = {name: value for line in read_curves(training_folder(base))[-2:] for name, value in line.items()}
            context.log_event(dg.AssetObservation(REWRITER_MODEL, metadata=figures))

    questions = measuring.accepted_questions(measuring.question_set(base))
    found = train_candidate(base, questions, progress=observe)
    if found is None:
        raise dg.Failure("the asset trains in one process; for several, `accelerate launch` the command")
    return dg.MaterializeResult(
        metadata={
            "place": found.place,
            "measure": found.proof.measure,
            "before": found.proof.before.mean,
            "after": found.proof.after.mean,
            "adopted": found.version is not None,
            "reason": found.proof.reason,
            "steps": found.weights.steps,
        }
    )


REWRITER_JOB = dg.define_asset_job(
    "train_rewriter",
    selection=dg.AssetSelection.assets(rewriter_model),
    description="Trains the rewriter by the accepted questions; adopted only where it proves better.",
)
