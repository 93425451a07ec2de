"""What the sources hold: listing files, fingerprints, and what changed since they were last read."""

from rag_assets.sources.listing import Source, SourceFile, parse_source, scan_source

__all__ = ["Source", "SourceFile", "parse_source", "scan_source"]
