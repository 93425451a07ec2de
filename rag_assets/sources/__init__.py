"""What the sources hold: listing files, fingerprints, and what changed since they were last read."""

from rag_assets.sources.listing import Source, SourceFile, list_source, parse_source

__all__ = ["Source", "SourceFile", "list_source", "parse_source"]
