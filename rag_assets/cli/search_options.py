"""Options that `search` and `ask` share, and what they mean together with the settings."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from rag_assets.contracts.modes import MODES, PREPARING_MODES, RETRIEVERS

if TYPE_CHECKING:
    from rag_assets.pipeline.settings import SearchSettings
    from rag_assets.query import LevelChoice

Command = TypeVar("Command", bound=Callable[..., Any])


class ModeNames(click.ParamType[str]):
    """One mode, or several with commas between them, and for some of them a plus sign before."""

    name = "mode"

    def __init__(self, names: tuple[str, ...], preparing: tuple[str, ...] = ()) -> None:
        self._names = names
        self._preparing = preparing

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """All names."""
        return f"[{'|'.join(self._names)}][,…]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The names as given, where there are such modes."""
        for name in self._retrievers(value).split(","):
            if name not in self._names:
                self.fail(f"unknown mode {name!r}, expected one of {', '.join(self._names)}", param, ctx)
        return value

    def _retrievers(self, value: str) -> str:
        """What stands after a plus sign, where one may stand; else all."""
        first, _, after = value.partition("+")
        return after if first in self._preparing and after else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Modes that may stand where the cursor is."""
        begun = re.split("[,+]", incomplete)[-1]
        before = incomplete.removesuffix(begun)
        return [CompletionItem(f"{before}{name}") for name in self._names if name.startswith(begun)]


_OPTIONS = (
    click.option(
        "--mode",
        type=ModeNames(MODES, tuple(PREPARING_MODES)),
        help="How to search; several with commas between are fused, hyde+ or rewrite+ goes before "
        "[setting search.mode, of ask search.ask_mode].",
    ),
    click.option(
        "--retriever", type=ModeNames(RETRIEVERS), help="Mode, or modes, that find passages for hyde and rewrite."
    ),
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


def chosen_mode(mode: str | None, retriever: str | None, usual: str) -> str:
    """The mode that options name, or else the usual one, as in `rewrite+two_step`.

    Raises:
        UsageError: A retriever is named for a mode that has none.
    """
    chosen = mode or usual
    if retriever is None:
        return chosen
    if chosen not in PREPARING_MODES:
        raise click.UsageError(f"--retriever goes with --mode {' or '.join(PREPARING_MODES)}, not with {chosen}")
    return f"{chosen}+{retriever}"


def chosen_levels(level: int | None, dynamic: bool | None, settings: "SearchSettings") -> "LevelChoice":
    """The community reports that options and settings name."""
    from rag_assets.query import LevelChoice

    return LevelChoice(
        settings.global_level if level is None else level, settings.global_dynamic if dynamic is None else dynamic
    )
