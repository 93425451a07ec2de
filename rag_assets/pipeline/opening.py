"""Opening a knowledge base from Python, in one call.

What stays out: following versions that are published later (`rag_assets.query.published.Published`), and indexing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rag_assets.contracts.ports import Rewriter
    from rag_assets.query import HydeOptions, KnowledgeBase
    from rag_assets.query.published import OpenVersion


def open_version(
    home: "str | Path | None" = None,
    *,
    hyde: "HydeOptions | None" = None,
    rewriter: "Rewriter | None" = None,
    **settings: Any,
) -> "OpenVersion":
    """Open the published version: its `base` searches and answers, its `contents` read documents, pages and the graph.

    Args:
        home: Folder of the knowledge base; None for the one that the settings name (`RAG_HOME`, else `.rag`).
        hyde: How mode `hyde` searches, with models of any kind; None for the settings.
        rewriter: Rewrites in mode `rewrite`; None for the language model, or rules without one.
        settings: Top-level settings that take precedence over environment and file.

    Raises:
        SettingsError: A setting is unknown or out of range.
        QueryError: Nothing is published there yet, or it was indexed with another embedder than the settings name.
        StoreError: A published file is gone.
    """
    from pathlib import Path

    from rag_assets.contracts.errors import QueryError
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings
    from rag_assets.query.contents.contents import Contents
    from rag_assets.query.published import OpenVersion

    opened = Home(load_settings(**({} if home is None else {"home": Path(home)}), **settings))
    snapshot = opened.readable_snapshot()
    if snapshot is None:
        raise QueryError(f"nothing is indexed in {opened.path}; run `rag-assets index FOLDER` first")
    base = opened.knowledge_base(snapshot, hyde=hyde, rewriter=rewriter)
    return OpenVersion(snapshot, base, Contents(opened.lake, snapshot, opened.read_calls))


def open_knowledge_base(
    home: "str | Path | None" = None,
    *,
    hyde: "HydeOptions | None" = None,
    rewriter: "Rewriter | None" = None,
    **settings: Any,
) -> "KnowledgeBase":
    """Open the published version, for searching and asking.

    Args:
        home: As for `open_version`, like the settings.
        hyde: As for `open_version`.
        rewriter: As for `open_version`.
        settings: Top-level settings.

    Raises:
        SettingsError: As for `open_version`, like the other errors.
    """
    return open_version(home, hyde=hyde, rewriter=rewriter, **settings).base
