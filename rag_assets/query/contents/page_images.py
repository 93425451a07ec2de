"""Pictures of PDF pages, drawn from the files that were indexed, as long as they hold what was indexed.

A file is drawn only where it lies below its source, after links are followed, and its bytes have the digest that is
published: nothing else on the machine can be seen. Files are strangers' work, so that they are drawn in a process of
its own (`rag_assets.query.contents.page_worker`).
"""

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

from rag_assets.processes.workers import WorkerEnded, Workers

_Key = tuple[str, int, int, int, int]
_SECONDS = 20.0
_KEPT_BYTES = 32 << 20


class PageImages:
    """Draws pages. Safe to use from several threads."""

    def __init__(self, roots: Callable[[], Mapping[str, str]]) -> None:
        self._roots = roots
        self._workers = Workers("rag_assets.query.contents.page_worker", 1)
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def draw(self, uri: str, source_name: str, sha256: str | None, page_number: int, width: int) -> bytes | None:
        """A page as PNG; None where the file is gone, is another one now, or cannot be drawn.

        Args:
            uri: Where the file was read.
            source_name: Its source.
            sha256: Digest of its content when it was indexed.
            page_number: The page, from 1.
            width: Width in pixels.
        """
        path = self._inside(uri, source_name)
        if path is None or sha256 is None:
            return None
        try:
            found = os.stat(path)  # noqa: PTH116
        except OSError:
            return None
        key = (sha256, found.st_mtime_ns, found.st_size, page_number, width)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        request = {"path": path, "sha256": sha256, "page_number": page_number, "width": width}
        try:
            picture = self._workers.ask(json.dumps(request).encode(), _SECONDS)
        except WorkerEnded:
            return None
        if picture:
            self._keep(key, picture)
        return picture or None

    def close(self) -> None:
        """End the processes."""
        self._workers.close()

    def _inside(self, uri: str, source_name: str) -> str | None:
        """The real path of a file, where it is a file below the folder of its source."""
        root = self._roots().get(source_name)
        if root is None or "://" in uri or "\0" in uri:
            return None
        top, path = os.path.realpath(root), os.path.realpath(uri)
        inside = path.startswith(os.path.join(top, "")) or path == top  # noqa: PTH118 - paths as text
        return path if inside and os.path.isfile(path) else None  # noqa: PTH113

    def _keep(self, key: _Key, picture: bytes) -> None:
        with self._lock:
            self._kept[key] = picture
            size = sum(map(len, self._kept.values()))
            while size > _KEPT_BYTES and len(self._kept) > 1:
                size -= len(self._kept.popitem(last=False)[1])
