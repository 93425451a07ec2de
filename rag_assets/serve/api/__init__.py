"""The HTTP API over a published knowledge base."""

from rag_assets.serve.api.app import create_app
from rag_assets.serve.api.server import open_socket, serve_app

__all__ = ["create_app", "open_socket", "serve_app"]
