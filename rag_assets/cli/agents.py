"""The command `mcp`: the knowledge base for agents."""

import click

from rag_assets.cli.console import open_home
from rag_assets.cli.serving import api_options, published, source_folders


@click.command()
@click.option("--http", is_flag=True, help="Serve by HTTP at /mcp, beside the HTTP API and the web page.")
@click.option("--host", help="With --http: interface [setting serve.host].")
@click.option("--port", type=click.IntRange(0, 65535), help="With --http: port [setting serve.port].")
@click.pass_context
def mcp(context: click.Context, host: str | None, port: int | None, *, http: bool) -> None:
    """Serve this knowledge base to agents over the Model Context Protocol, on standard input and output or by HTTP."""
    if not http and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http", ctx=context)
    home = open_home(context)
    if http:
        from rag_assets.cli.serving import serve_home
        from rag_assets.serve.mcp.http import PATH, attach

        serve_home(home, host, port, attach, PATH)
        return
    from rag_assets.query.contents.page_images import PageImages
    from rag_assets.serve.mcp.stdio import serve_stdio
    from rag_assets.serve.service import Service

    images = PageImages(lambda: source_folders(home))
    serve_stdio(Service(published(home), images, api_options(home, "127.0.0.1")))
