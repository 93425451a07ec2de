"""The published knowledge base for agents, over the Model Context Protocol."""

from rag_assets.serve.mcp.http import attach
from rag_assets.serve.mcp.server import create_server
from rag_assets.serve.mcp.stdio import serve_stdio

__all__ = ["attach", "create_server", "serve_stdio"]
