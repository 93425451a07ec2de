"""The exported files of multilingual-e5-small in a cache folder: written once, checked at every load.

What stays out: what stands in the files (`e5_export`). Files are written under a temporary name and put in place in one
step, with a manifest of checksums last. Two processes that export at the same time write the same bytes, so whichever
comes last wins without harm; a file that does not agree with the manifest is written again.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rag_assets.contracts.errors import ModelError
from rag_assets.models.embedding.e5_weights import Precision, installed_path, installed_version, read_weights
from rag_assets.store.files import remove_leftovers, sync_file, written_aside

# Raise it when the exported numbers or the tokens change: stored vectors are keyed by it.
EXPORT_VERSION = 1
_MODEL, _TOKENIZER, _MANIFEST = ".onnx", ".tokenizer.json", ".manifest.json"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class E5Files:
    """Where the exported files lie: ONNX model, tokenizer, and a manifest with the SHA-256 of each, as JSON."""

    model: Path
    tokenizer: Path
    manifest: Path

    def complete(self) -> bool:
        """Whether both files agree with the manifest."""
        try:
            expected = json.loads(self.manifest.read_bytes())
            return bool(expected == self.checksums())
        except (OSError, ValueError):
            return False

    def checksums(self) -> dict[str, str]:
        """SHA-256 of each file by its name."""
        return {path.name: _sha256(path) for path in (self.model, self.tokenizer)}


def export_name(precision: Precision) -> str:
    """Name of model, weights and numerics, as in `multilingual-e5-small-q4-int8/0.3.0-1`."""
    return f"multilingual-e5-small-q4-{precision}/{installed_version()}-{EXPORT_VERSION}"


def ensure_files(cache_folder: Path, precision: Precision) -> E5Files:
    """Find the exported files, or write them into a folder that is made when missing (some seconds, once).

    Raises:
        ModelError: The weights cannot be read or the files cannot be written.
    """
    stem = export_name(precision).replace("/", "-")
    files = E5Files(*(cache_folder / f"{stem}{ending}" for ending in (_MODEL, _TOKENIZER, _MANIFEST)))
    if files.complete():
        return files
    try:
        _export(files, precision)
    except OSError as error:
        raise ModelError(f"{cache_folder}: the embedder cannot be exported: {error}") from error
    return files


def damaged_exports(cache_folder: Path) -> list[Path]:
    """Exported files that do not agree with their manifest, or have none, and manifests that cannot be read; loading
    mends them.
    """
    damaged, stated = [], set()
    for manifest in sorted(cache_folder.glob(f"*{_MANIFEST}")):
        try:
            expected = json.loads(manifest.read_bytes())
            stated |= {cache_folder / name for name in expected}
            damaged += [cache_folder / name for name in expected if _sha256(cache_folder / name) != expected[name]]
        except (OSError, ValueError, TypeError):
            damaged.append(manifest)
            stem = manifest.name.removesuffix(_MANIFEST)
            stated |= {cache_folder / f"{stem}{_MODEL}", cache_folder / f"{stem}{_TOKENIZER}"}
    exported = {path for ending in (_MODEL, _TOKENIZER) for path in cache_folder.glob(f"*{ending}")}
    return damaged + sorted(exported - stated)


def _export(files: E5Files, precision: Precision) -> None:
    from rag_assets.models.embedding.e5_export import export_model, export_tokenizer

    started = time.monotonic()
    remove_leftovers(files.manifest.parent)
    weights = read_weights(installed_path())
    checksums = {
        files.model.name: _replace(files.model, lambda path: export_model(weights, path, precision)),
        files.tokenizer.name: _replace(files.tokenizer, lambda path: export_tokenizer(weights.vocabulary, path)),
    }
    _replace(files.manifest, lambda path: path.write_text(json.dumps(checksums), encoding="utf-8"))
    _logger.info("exported %s in %.1f s", files.model.name, time.monotonic() - started)


def _replace(path: Path, write: Callable[[Path], object]) -> str:
    """Write a file under a temporary name, put it in place in one step and return its SHA-256."""
    with written_aside(path) as temporary:
        write(temporary)
        sync_file(temporary)
        checksum = _sha256(temporary)
        temporary.replace(path)
    return checksum


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
