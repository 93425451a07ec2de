"""The assets of what a collection learns from its accepted questions, and their job, which runs on demand.

They are no part of indexing: what is learned is measured on what was published before, and comes into force, where it
proves better, as a version of its own.
"""

import base64

import dagster as dg

from rag_assets import __version__
from rag_assets.defs.resources import HomeResource, Progress
from rag_assets.pipeline.learning import (
    MODELS,
    TABLE_COLUMNS,
    TREES,
    Trained,
    TrainingOptions,
    train_query_map,
    train_ranking,
)
from rag_assets.training.adoption import Proof

TRAINING_GROUP = "training"
_WIDTH, _ROW, _LABEL = 640.0, 26.0, 160.0
_RANKING_CONFIG = {
    "model": dg.Field(
        dg.Enum("RankingModel", [dg.EnumValue(name) for name in MODELS]),
        default_value=MODELS[0],
        description="Weights, or boosted trees on top of the shipped ones (extra trees).",
    )
}
_SPAN = 0.2  # of the measure, to either side, that the picture shows


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


TRAINING_JOB = dg.define_asset_job(
    "train_ranking",
    selection=dg.AssetSelection.assets(ranking_weights, query_map),
    description="Learns how the published version is searched best; adopts what proves better on questions not seen.",
)


def _result(trained: Trained) -> dg.MaterializeResult:  # type: ignore[type-arg]
    lines = [f"| {' | '.join(row)} |" for row in (TABLE_COLUMNS, ["---"] * len(TABLE_COLUMNS), *trained.table())]
    figures = {name.replace(" ", "_"): each.difference.mean for name, each in trained.proofs.items()}
    return dg.MaterializeResult(
        metadata={
            "verdict": trained.reason,
            "questions": trained.question_count,
            "proof": dg.MetadataValue.md("\n".join(lines)),
            "picture": dg.MetadataValue.md(_picture([*trained.proofs.values()])),
            "learned": dg.MetadataValue.md("\n".join(f"- {name}: {value}" for name, value in trained.facts.items())),
            **{f"change_{name}": value for name, value in figures.items()},
        }
    )


def _picture(proofs: list[Proof]) -> str:
    """A Markdown image of the differences with their intervals; the line stands for no change."""

    def x(value: float) -> float:
        return _LABEL + (max(-_SPAN, min(_SPAN, value)) + _SPAN) / (2 * _SPAN) * (_WIDTH - _LABEL - 10)

    height = _ROW * len(proofs) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" font-size="12">',
        f'<rect width="{_WIDTH:g}" height="{height:g}" fill="#ffffff"/>',
        f'<path d="M{x(0):.1f} 0V{height:g}" stroke="#8c959f"/>',
    ]
    for row, proof in enumerate(proofs):
        y, change = _ROW * (row + 0.5) + 5, proof.difference
        parts.append(f'<text x="4" y="{y + 4:g}">{proof.measure}</text>')
        parts.append(f'<path d="M{x(change.low):.1f} {y:g}H{x(change.high):.1f}" stroke="#0969da" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(change.mean):.1f}" cy="{y:g}" r="4" fill="#0969da"/>')
    svg = "".join([*parts, "</svg>"])
    return f"![differences](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"
