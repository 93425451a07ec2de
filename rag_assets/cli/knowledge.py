"""Commands on what is made from the documents: `taxonomy`, `graph`."""

from pathlib import Path

import click

from rag_assets.cli.console import open_home, print_table, say


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
    home = open_home(context)
    if entity_types:
        from rag_assets.graph.type_suggestions import suggest_types

        found = suggest_types(home.lake, home.language_model(), home.embedder, home.entity_types, values)
        rows = [[each.name, each.ja, each.en, each.name_count, "、".join(each.examples)] for each in found]
        print_table(["type", "ja", "en", "names", "examples"], rows)
        return
    from rag_assets.enrich.taxonomy_suggestion import suggest_taxonomy

    text = suggest_taxonomy(home.lake, home.embedder, home.language_model(), values)
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
    """Write the published graph to PATH, with communities and reports, for NetworkX, Gephi and the like."""
    from rag_assets.contracts.errors import QueryError
    from rag_assets.graph.exchange import GraphFormat, export_graph

    home = open_home(context)
    snapshot = home.snapshots.current()
    if snapshot is None:
        raise QueryError(f"nothing is indexed in {home.path}; run `rag-assets index FOLDER` first")
    chosen = format_name or ("graphml" if path.suffix == ".graphml" else "json")
    nodes, edges = export_graph(home.lake, path, GraphFormat(chosen), snapshot.tables)
    say(f"{path}: {nodes} entities, {edges} relationships")
