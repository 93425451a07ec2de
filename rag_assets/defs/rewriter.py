"""The asset of the trained rewriter and its job; its curves are metadata of observations while it trains."""

import base64
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from rag_assets import __version__
from rag_assets.defs.resources import HomeResource, Progress
from rag_assets.pipeline import measuring
from rag_assets.pipeline.rewriter_training import train_candidate, training_folder
from rag_assets.training.adoption import REWRITER_MODEL
from rag_assets.training.rewriter import read_curves

TRAINING_GROUP = "training"
_OBSERVED_SECONDS = 30
_WIDTH, _HEIGHT, _MARGIN = 640.0, 200.0, 32.0


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

    questions = measuring.accepted_questions(measuring.question_set(base))
    anew = bool(context.op_execution_context.op_config["anew"])
    found = train_candidate(base, questions, anew=anew, progress=observe)
    if found is None:
        raise dg.Failure("the asset trains in one process; for several, `accelerate launch` the command")
    return dg.MaterializeResult(
        metadata={
            "place": found.place,
            "measure": found.proof.measure,
            "before": found.proof.before.mean,
            "after": found.proof.after.mean,
            "adopted": found.version is not None,
            "reason": found.problem or found.proof.reason,
            "steps": found.weights.steps,
            "curve": dg.MetadataValue.md(curve_picture(read_curves(base.path / found.place))),
        }
    )


def curve_picture(lines: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown image: the reward of each step of reinforcement as a line, gains on validation questions as dots.

    Args:
        lines: Those of `read_curves`.
    """
    rewards = [(each["step"], each["reward"]) for each in lines if each["stage"] == "reinforce"]
    gains = [(each["step"], each["gain"]) for each in lines if each["stage"] == "validation"]
    last = max((step for step, _ in (*rewards, *gains)), default=0) or 1
    most = max((value for _, value in (*rewards, *gains)), default=0.0)
    least = min(0.0, *(value for _, value in (*rewards, *gains)), 0.0)

    def place(step: int, value: float) -> tuple[float, float]:
        height = _HEIGHT - 2 * _MARGIN
        return (
            _MARGIN + step / last * (_WIDTH - 2 * _MARGIN),
            _HEIGHT - _MARGIN - (value - least) / ((most - least) or 1.0) * height,
        )

    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*each) for each in rewards))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" font-size="11">',
        f'<rect width="{_WIDTH:g}" height="{_HEIGHT:g}" fill="#ffffff"/>',
        f'<polyline points="{line}" fill="none" stroke="#8c959f"/>',
        *(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#0969da"><title>step {step}: {gain:.3f}</title></circle>'
            for (x, y), (step, gain) in ((place(*each), each) for each in gains)
        ),
        f'<text x="4" y="14">{most:.2f}: reward by step (line), gain on validation questions (dots)</text>',
        f'<text x="4" y="{_HEIGHT - 8:g}">{least:.2f}</text>',
        f'<text x="{_WIDTH - 4:g}" y="{_HEIGHT - 8:g}" text-anchor="end">step {last}</text>',
    ]
    svg = "".join([*parts, "</svg>"])
    return f"![curve](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


REWRITER_JOB = dg.define_asset_job(
    "train_rewriter",
    selection=dg.AssetSelection.assets(rewriter_model),
    description="Trains the rewriter by the accepted questions; adopted only where it proves better.",
)
