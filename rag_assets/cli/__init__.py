"""The command line `rag-assets`."""

from rag_assets.cli.main import main

__all__ = ["main"]
