"""The HTTP API over a published knowledge base."""

from rag_assets.query.api.app import create_app
from rag_assets.query.api.options import ApiOptions
from rag_assets.query.api.server import open_socket, serve_app

__all__ = ["ApiOptions", "create_app", "open_socket", "serve_app"]
