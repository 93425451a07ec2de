"""The command `rag-assets` and its subcommands.

Heavy libraries are imported by the command that needs them, so that help is instant.
"""

import gc
import os
import sys
from pathlib import Path
from typing import Any

import click

from rag_assets import __version__
from rag_assets.cli.console import complain, full_disk, log_printably
from rag_assets.cli.evaluating import evaluate, publish, question_sets
from rag_assets.cli.indexing import index, plan, snapshots, status, ui, verify
from rag_assets.cli.knowledge import graph, taxonomy
from rag_assets.cli.models import batches, cache
from rag_assets.cli.searching import ask, search, sql
from rag_assets.cli.serving import mcp, serve
from rag_assets.cli.training import train, tune
from rag_assets.contracts.errors import RagAssetsError
from rag_assets.text.plain import printable_line

_GARBAGE_OBJECTS = 20_000  # between two looks for garbage: by 700, as in Python, they take a seventh of a small run


class _Commands(click.Group):
    """Turns expected errors into one line on standard error and exit status 1, and Ctrl-C into one and 130."""

    def make_context(self, *arguments: Any, **named: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **named)
        except KeyboardInterrupt:
            complain("interrupted")
            raise click.exceptions.Exit(130) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise click.UsageError(printable_line(error.format_message()), error.ctx) from None
        except click.ClickException as error:
            raise click.ClickException(printable_line(error.format_message())) from None
        except KeyboardInterrupt:
            complain("interrupted")
            ctx.exit(130)
        except Exception as error:
            full = full_disk(ctx, error)
            if not (full or isinstance(error, RagAssetsError | OSError | UnicodeError)):
                raise
            complain(full or error)
            ctx.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rag-assets")
@click.option("--home", type=click.Path(path_type=Path), help="Folder of the knowledge base [RAG_HOME, else .rag].")
@click.pass_context
def main(context: click.Context, home: Path | None) -> None:
    """Keep a knowledge base in step with folders of Excel, PDF and office files, and search it."""
    context.obj = home
    gc.set_threshold(_GARBAGE_OBJECTS)
    log_printably()


for _command in (
    index,
    plan,
    status,
    verify,
    search,
    ask,
    evaluate,
    question_sets,
    train,
    tune,
    sql,
    snapshots,
    publish,
    taxonomy,
    graph,
    cache,
    batches,
    serve,
    mcp,
    ui,
):
    main.add_command(_command)
