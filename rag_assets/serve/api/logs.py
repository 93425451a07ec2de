"""The log: one JSON object a line. It holds no text of queries or documents, no ids of documents, and no keys."""

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TextIO

from rag_assets.text.plain import json_text

REQUESTS = "rag_assets.requests"
_KNOWN = ("rag_assets", "uvicorn")


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


def log_to(stream: TextIO = sys.stderr) -> None:
    """Write the log of the API and its server to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("rag_assets").setLevel(logging.INFO)
