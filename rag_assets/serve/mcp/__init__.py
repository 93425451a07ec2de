"""The published knowledge base for agents, over the Model Context Protocol."""

from rag_assets.serve.mcp.server import create_server
from rag_assets.serve.mcp.transports import attach, serve_stdio

__all__ = ["attach", "create_server", "serve_stdio"]
