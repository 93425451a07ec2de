"""Figures of the running API, for Prometheus. No label holds text of a query, a document or a person."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """The figures of one app."""

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
