"""Words that are no names, whatever the documents are about: a data file, read once.

What stays out: rules by form (`rag_assets.graph.names`).
"""

import tomllib
from functools import cache
from importlib.resources import files


def plain_words(name: str) -> frozenset[str]:
    """Words of a list, in lower case.

    Args:
        name: Name of the list in `plain_words.toml`.
    """
    return frozenset(_lists()[name].split())


@cache
def _lists() -> dict[str, str]:
    found: dict[str, str] = tomllib.loads((files("rag_assets") / "graph" / "plain_words.toml").read_text("utf-8"))
    return found
