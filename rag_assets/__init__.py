"""rag_assets: a knowledge base that keeps itself in step with folders of office files."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_assets.pipeline.opening import open_knowledge_base, open_version

__all__ = ["__version__", "open_knowledge_base", "open_version"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what opens a knowledge base when it is asked for: the command line does not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rag_assets.pipeline import opening

    return getattr(opening, name)
