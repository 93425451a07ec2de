"""The log of a server, one JSON object a line, and its figures for Prometheus.

Neither holds text of queries or documents, ids of documents, or keys.
"""

import logging
import sys
import traceback
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from rag_assets.text.plain import json_text

REQUESTS = "rag_assets.requests"
_KNOWN = ("rag_assets", "uvicorn")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class JsonLines(logging.Formatter):
    """A record as a JSON object. Of an exception it tells the kind and the places in code, never its message."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        request = getattr(record, "request", None)
        if isinstance(request, dict):
            facts |= request
        elif record.name.startswith(_KNOWN):
            facts["message"] = record.getMessage()
        else:
            facts["message"] = str(record.msg).partition("\n")[0]  # what is put into it may be anything
        if record.exc_info and record.exc_info[0] is not None:
            facts["exception"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            facts["places"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        return json_text(facts)


def log_to_stderr() -> None:
    """Write the log of the API and its server to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("rag_assets").setLevel(logging.INFO)


class Metrics:
    """The figures of one server."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "rag_requests", "Requests that were answered.", ("method", "route", "status"), registry=self.registry
        )
        self.request_seconds = Histogram(
            "rag_request_seconds", "Time of requests.", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self.search_seconds = Histogram(
            "rag_search_seconds",
            "Time of searches and answers, waiting left out.",
            ("mode", "kind"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.errors = Counter("rag_errors", "Requests that failed, by cause.", ("cause",), registry=self.registry)
        self.in_flight = Gauge("rag_in_flight", "Requests under way or waiting.", ("kind",), registry=self.registry)
        self.snapshot = Gauge("rag_snapshot", "Number of the version that is served.", registry=self.registry)

    def text(self) -> bytes:
        """All figures in the form that Prometheus reads."""
        return generate_latest(self.registry)
