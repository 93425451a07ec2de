"""The code location that Dagster loads."""

from rag_assets.defs.code_location import build_definitions

defs = build_definitions()
