"""rag_assets: a knowledge base that keeps itself in step with folders of office files."""

__version__ = "0.1.0"
