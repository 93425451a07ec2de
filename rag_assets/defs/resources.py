"""The resources of the assets: the knowledge base on disk, and where progress is reported."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import dagster as dg

from rag_assets.contracts.errors import InconsistencyError, StoreError
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.pipeline.settings import Settings, load_settings

if TYPE_CHECKING:
    from rag_assets.query import KnowledgeBase

_log = logging.getLogger(__name__)


@contextmanager
def retried() -> Iterator[None]:
    """Run the step again where a store was in its way, as when two runs write one shard; nothing else is retried."""
    try:
        yield
    except InconsistencyError:  # as it is, however often
        raise
    except StoreError as error:
        raise dg.RetryRequested(max_retries=2, seconds_to_wait=3) from error


@dataclass(frozen=True)
class HomeResource:
    """The knowledge base on disk and its settings."""

    settings: Settings | None = None  # the settings; None for those of environment and file
    allow_empty: bool = False  # whether a source that suddenly holds no file is believed, and its documents are removed
    # whether the bytes of every file are compared, also where size, times and inode are the same
    full_check: bool = False

    @cached_property
    def _home(self) -> Home:
        return Home(self.settings or load_settings())

    def open(self) -> Home:
        """The knowledge base, for a step that writes; its settings are stored with it.

        Raises:
            SettingsError: The settings contradict those that it was built with.
        """
        self._home.check_settings()
        self._home.store_settings()
        return self._home

    def look(self) -> Home:
        """The knowledge base, for reading."""
        return self._home


@dataclass(frozen=True)
class KnowledgeBaseResource:
    """The published knowledge base, for assets and ops that search it."""

    home: HomeResource  # the knowledge base on disk

    def open(self) -> "KnowledgeBase":
        """The version that is published now."""
        return knowledge_base(self.home.look())


def resources(home: HomeResource, progress: "Progress") -> dict[str, dg.ResourceDefinition]:
    """All resources, made anew for each run and each look of a sensor.

    Run config sets nothing of them: whoever may launch a run could otherwise have it read any folder as a source, send
    its text and the keys of the environment to any address, or write what ops return into any folder.
    """
    return {
        "home": dg.ResourceDefinition(lambda _: replace(home), config_schema={}),
        "knowledge_base": dg.ResourceDefinition(
            lambda context: KnowledgeBaseResource(context.resources.home),
            config_schema={},
            required_resource_keys={"home"},
        ),
        "progress": dg.ResourceDefinition(lambda _: progress, config_schema={}),
        "io_manager": dg.IOManagerDefinition(
            lambda _: dg.InMemoryIOManager(),  # type: ignore[no-untyped-call]
            config_schema={},
        ),
    }


class Progress(Protocol):
    """Where steps report how far they are."""

    def step(self, name: str) -> Callable[[int, int], None]:
        """A callback for one step, told what is done and what there is in all."""
        ...


class RunProgress(Progress, Protocol):
    """Where a run reports its steps, too, as they begin and end."""

    def begin_run(self, steps: Sequence[str]) -> None:
        """A run of some steps begins; they are named by their keys."""
        ...

    def begin_step(self, key: str) -> None:
        """A step begins."""
        ...

    def end_step(self, key: str) -> None:
        """A step ends, one way or another."""
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
