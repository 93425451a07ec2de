"""Draws pages of PDF files, in a process of its own that `PageImages` starts."""

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from numpy.typing import NDArray

from rag_assets.processes.workers import connect, limit_memory, serve

_MEMORY_BYTES = 2 << 30
_MAX_HEIGHT = 8000  # pixels


class _Documents:
    """The PDF file that was asked last."""

    def __init__(self) -> None:
        self._key: tuple[str, str, int, int] | None = None
        self._document: Any = None

    def of(self, path: Path, sha256: str) -> Any:
        """The file, if it still holds what was indexed; else None."""
        found = path.stat()
        key = (str(path), sha256, found.st_mtime_ns, found.st_size)
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
    documents = _Documents()
    limit_memory(_MEMORY_BYTES)

    def handle(request: bytes) -> bytes:
        asked = json.loads(request)
        try:
            document = documents.of(Path(asked["path"]), asked["sha256"])
            return (document and draw(document, asked["page_number"], asked["width"])) or b""
        except (OSError, pypdfium2.PdfiumError, ValueError):
            return b""

    serve(connect(descriptor, lifeline), handle)
