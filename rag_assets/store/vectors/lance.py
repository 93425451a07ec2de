"""What is used of LanceDB; the other modules import it from here.

LanceDB imports the client of its servers, which takes half of the time and is not used here. The client's package is
executed when somebody asks for something in it.
"""

import os
import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

_CLIENT = "lance_namespace_urllib3_client"


class _Deferred(ModuleType):
    """A package that is executed when a name of its own is asked for; its submodules can be imported before."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def _defer(package: str) -> None:
    if package not in sys.modules and (spec := find_spec(package)) is not None:
        module = module_from_spec(spec)
        module.__class__ = _Deferred
        sys.modules[package] = module


_defer(_CLIENT)
os.environ.setdefault("LANCEDB_LOG", "error")  # what it warns of is said by whoever catches its errors

import lancedb  # noqa: E402 - after the client is deferred
from lancedb.index import FTS, Bitmap, BTree, IvfFlat  # noqa: E402
from lancedb.query import LanceVectorQueryBuilder, MatchQuery  # noqa: E402
from lancedb.table import LanceTable as LocalTable  # noqa: E402
from lancedb.table import Table as LanceTable  # noqa: E402

__all__ = [
    "FTS",
    "BTree",
    "Bitmap",
    "IvfFlat",
    "LanceTable",
    "LanceVectorQueryBuilder",
    "LocalTable",
    "MatchQuery",
    "lancedb",
]
