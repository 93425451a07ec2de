"""Pictures of PDF pages, drawn from the files that were indexed, as long as they hold what was indexed.

A file is drawn only where it lies below its source, after links are followed, and its bytes have the digest that is
published: nothing else on the machine can be seen. Files are strangers' work, so that they are drawn in a process of
its own, by `main`; no other process loads what draws them.
"""

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_assets.processes.workers import WorkerEnded, Workers, connect, limit_memory, serve

_SECONDS = 20.0
_MEMORY_BYTES = 2 << 30
_MAX_HEIGHT = 8000  # pixels


class PageImages:
    """Draws pages. Safe to use from several threads."""

    def __init__(self, roots: Callable[[], Mapping[str, str]]) -> None:
        self._roots = roots
        self._workers = Workers("rag_assets.query.contents.page_images", 1)

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
        request = {"path": path, "sha256": sha256, "page_number": page_number, "width": width}
        try:
            return self._workers.ask(json.dumps(request).encode(), _SECONDS) or None
        except WorkerEnded:
            return None

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


class _Documents:
    """The PDF file that was asked last."""

    def __init__(self) -> None:
        self._key: tuple[str, str, int, int] | None = None
        self._document: Any = None

    def of(self, path: Path, sha256: str) -> Any:
        """The file, if it still holds what was indexed; else None."""
        import pypdfium2

        file_stat = path.stat()
        key = (str(path), sha256, file_stat.st_mtime_ns, file_stat.st_size)
        if self._key == key:
            return self._document
        if self._document is not None:
            self._document.close()
        self._key = self._document = None
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() == sha256:
            self._document, self._key = pypdfium2.PdfDocument(content), key
        return self._document


def draw(document: Any, page_number: int, width: int) -> bytes | None:
    """A page, from 1, as PNG; narrower than asked where it would be too high. None where there is no such page."""
    if not 1 <= page_number <= len(document):
        return None
    page = document[page_number - 1]
    across, down = page.get_size()
    scale = min(width / max(across, 1), _MAX_HEIGHT / max(down, 1))
    pixels = page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False, no_smoothtext=False).to_numpy()
    page.close()
    return png(np.ascontiguousarray(pixels[:, :, :3]) if pixels.ndim == 3 else pixels)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A picture as PNG.

    Args:
        pixels: Shape `(height, width, 3)` for red, green, blue, or `(height, width)` for grey.
    """
    height, width = pixels.shape[:2]
    lines = np.zeros((height, 1 + pixels[0].size), dtype=np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


def main(descriptor: int, lifeline: int) -> None:
    """Answer requests, as a process of `Workers`, until there are no more; an empty answer: there is no picture."""
    import pypdfium2

    documents = _Documents()
    limit_memory(_MEMORY_BYTES)

    def handle(request: bytes) -> bytes:
        page_request = json.loads(request)
        try:
            document = documents.of(Path(page_request["path"]), page_request["sha256"])
            return (document and draw(document, page_request["page_number"], page_request["width"])) or b""
        except (OSError, pypdfium2.PdfiumError, ValueError):
            return b""

    serve(connect(descriptor, lifeline), handle)
