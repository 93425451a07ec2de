"""rag_assets: a knowledge base that keeps itself in step with folders of office files."""

from rag_assets.pipeline.opening import open_knowledge_base, open_version

__all__ = ["__version__", "open_knowledge_base", "open_version"]

__version__ = "0.1.0"
