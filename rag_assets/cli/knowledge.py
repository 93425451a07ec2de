"""Commands on what is made from the documents: `taxonomy`, `graph`."""

import sys
from pathlib import Path

import click

from rag_assets.cli.console import open_home, print_table, say
from rag_assets.cli.progress import progress_display
from rag_assets.contracts.errors import QueryError


@click.group()
def taxonomy() -> None:
    """Facets that documents are classified by, and types of entities."""


@taxonomy.command("suggest")
@click.option("--values", type=click.IntRange(2, 50), default=12, show_default=True, help="Values at most.")
@click.option("--entity-types", is_flag=True, help="Suggest types of entities instead of facets.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the TOML file here instead of printing it."
)
@click.pass_context
def taxonomy_suggest(context: click.Context, values: int, output: Path | None, *, entity_types: bool) -> None:
    """Propose a taxonomy, or types of entities, from the documents that are indexed."""
    from rag_assets.pipeline.language_models import language_model

    home = open_home(context)
    if entity_types:
        from rag_assets.graph.entities.type_suggestions import suggest_types

        suggestions = suggest_types(home.lake, language_model(home), home.embedder, home.options.entity_types, values)
        rows = [
            [suggestion.name, suggestion.ja, suggestion.en, suggestion.name_count, "、".join(suggestion.examples)]
            for suggestion in suggestions
        ]
        print_table(["type", "ja", "en", "names", "examples"], rows)
        return
    from rag_assets.enrich.facets.taxonomy_suggestion import suggest_taxonomy

    text = suggest_taxonomy(home.lake, home.embedder, language_model(home), values)
    if output is None:
        say(text, lines=True)
    else:
        output.write_text(text, "utf-8")


@click.group()
def graph() -> None:
    """The entity graph."""


@graph.command("export")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--format", "format_name", type=click.Choice(["graphml", "json"]), help="Else by the file's extension.")
@click.pass_context
def graph_export(context: click.Context, path: Path, format_name: str | None) -> None:
    """Write the published graph to PATH, with communities and reports, for NetworkX, Gephi and the like.

    PATH ends with `.graphml` or `.json`, or --format says which it is.
    """
    export_format = format_name or path.suffix.removeprefix(".")
    if export_format not in {"graphml", "json"}:
        raise click.UsageError(f"{path}: name it .graphml or .json, or give --format", ctx=context)
    if not path.parent.is_dir():
        raise click.UsageError(f"no such folder: {path.parent}", ctx=context)
    from rag_assets.graph.exchange import GraphFormat, export_graph
    from rag_assets.pipeline.opening import published_snapshot
    from rag_assets.query.search.graph_local import HOW_TO_INDEX

    home = open_home(context)
    snapshot = published_snapshot(home)
    if not snapshot.row_counts.get("entities"):
        why = "no document names an entity" if home.settings.graph.enabled else HOW_TO_INDEX
        raise QueryError(f"{home.path}: no entity graph is published: {why}")
    nodes, edges = export_graph(home.lake, path, GraphFormat(export_format), snapshot.tables)
    say(f"{path}: {nodes} entities, {edges} relationships")


@graph.command("drop")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def graph_drop(context: click.Context, *, yes: bool) -> None:
    """Delete the entity graph with its communities and reports; later runs do without it.

    That is published as a version of its own: `rag-assets snapshots` leads back to the one before.
    """
    from rag_assets.defs.runs import drop_graph_in_process

    home = open_home(context)
    with home.lock():
        if not home.holds_graph:
            home.having("graph", enabled=False).store_settings()
            say(f"there is no entity graph in {home.path}; later runs make none")
            return
        if not yes:
            if not sys.stdin.isatty():
                raise click.UsageError("not a terminal, so nobody can be asked: say --yes", ctx=context)
            click.confirm(f"Delete the entity graph of {home.path}?", default=False, abort=True, err=True)
        with progress_display() as progress:
            drop_graph_in_process(home, progress)
    say(f"the entity graph of {home.path} is deleted; later runs make none")
    if home.stated.graph.enabled and "enabled" in home.stated.graph.model_fields_set:
        say("the settings state graph.enabled = true: take that out, or the next run makes it again")
