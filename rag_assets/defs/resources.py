"""The resources of the assets: the knowledge base on disk, and where progress is reported."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import dagster as dg
from pydantic import Field

from rag_assets.contracts.errors import StoreError
from rag_assets.home import Home
from rag_assets.settings import load_settings

if TYPE_CHECKING:
    from rag_assets.query import KnowledgeBase

_log = logging.getLogger(__name__)


@contextmanager
def retried() -> Iterator[None]:
    """Run the step again where a store was in its way, as when two runs write one shard; nothing else is retried."""
    try:
        yield
    except StoreError as error:
        raise dg.RetryRequested(max_retries=2, seconds_to_wait=3) from error


class HomeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The knowledge base on disk and its settings."""

    settings: dict[str, Any] = Field(
        default={}, description="Settings that take precedence over environment and file, as in `{home: /data/rag}`."
    )
    allow_empty: bool = Field(
        default=False, description="Believe a source that suddenly holds no file, and remove its documents."
    )

    @cached_property
    def _home(self) -> Home:
        return Home(load_settings(**self.settings))

    def open(self) -> Home:
        """The knowledge base."""
        return self._home


class KnowledgeBaseResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The published knowledge base, for assets and ops that search it."""

    home: dg.ResourceDependency[HomeResource]

    def open(self) -> "KnowledgeBase":
        """The version that is published now."""
        return self.home.open().knowledge_base()


class Progress(Protocol):
    """Where steps report how far they are."""

    def step(self, name: str) -> Callable[[int, int], None]:
        """A callback for one step, told what is done and what there is in all."""
        ...


class LogProgress:
    """Writes progress to the log, at most every ten seconds a step."""

    def step(self, name: str) -> Callable[[int, int], None]:
        """A callback that logs."""
        last = time.monotonic()

        def report(done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last >= 10:
                last = time.monotonic()
                _log.info("%s: %d of %d", name, done, total)

        return report
