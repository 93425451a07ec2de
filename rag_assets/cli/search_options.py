"""Options that `search` and `ask` share, and what they mean together with the settings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rag_assets.query import LevelChoice
    from rag_assets.settings import SearchSettings

RETRIEVERS = (
    "vector",
    "fulltext",
    "hybrid",
    "two_step",
    "graph_local",
    "text_map_reduce",
    "graph_global",
    "meta_knowledge",
)
MODES = (*RETRIEVERS, "hyde", "rewrite")

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--mode", type=click.Choice(MODES), help="How to search [setting search.mode]."),
    click.option("--retriever", type=click.Choice(RETRIEVERS), help="Mode that finds passages for hyde and rewrite."),
    click.option("-k", type=click.IntRange(1, 1000), help="Number of results [setting search.k]."),
    click.option(
        "--filter", "filters", metavar="FIELD=VALUE", multiple=True, help="Keep only what matches; see the docs."
    ),
    click.option(
        "--summaries",
        type=click.Choice(["page", "file"]),
        default="page",
        show_default=True,
        help="First step of two_step.",
    ),
    click.option(
        "--level", type=click.IntRange(0), help="Reports that graph_global reads [setting search.global_level]."
    ),
    click.option(
        "--dynamic-level/--fixed-level",
        "dynamic",
        default=None,
        help="Whether it chooses finer reports only where they are nearer [setting search.global_dynamic].",
    ),
)


def search_options(command: Command) -> Command:
    """The options of a search, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_mode(mode: str | None, retriever: str | None, settings: "SearchSettings") -> str:
    """The mode that options and settings name, as in `rewrite+two_step`."""
    chosen = mode or settings.mode
    return chosen if retriever is None else f"{chosen}+{retriever}"


def chosen_levels(level: int | None, dynamic: bool | None, settings: "SearchSettings") -> "LevelChoice":
    """The community reports that options and settings name."""
    from rag_assets.query import LevelChoice

    return LevelChoice(
        settings.global_level if level is None else level, settings.global_dynamic if dynamic is None else dynamic
    )
