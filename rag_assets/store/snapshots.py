"""Published versions: one manifest names the version of every table, and readers follow one pointer.

`<root>/<number>.json` is a manifest and is never changed; `<root>/CURRENT` holds the number that readers see and is
replaced atomically.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rag_assets.contracts.errors import StoreError
from rag_assets.store.lake import write_atomically


@dataclass(frozen=True)
class Snapshot:
    """One published version.

    Attributes:
        number: Number of the snapshot, from 1.
        published_at: Time of publishing, ISO 8601, UTC.
        pipeline: Digest of the code and settings that computed it.
        embedder: Name of the embedder of its vectors.
        tables: Version of each shard, by table name and shard.
        vector_tables: Version of each serving table.
        row_counts: Rows by table name; serving tables are named `lancedb.<name>`.
    """

    number: int
    published_at: str
    pipeline: str
    embedder: str
    tables: Mapping[str, Mapping[str, int]]
    vector_tables: Mapping[str, int]
    row_counts: Mapping[str, int]

    def same_content(self, other: "Snapshot") -> bool:
        """Whether both name the same versions."""
        return (self.pipeline, self.embedder, self.tables, self.vector_tables) == (
            other.pipeline,
            other.embedder,
            other.tables,
            other.vector_tables,
        )


class Snapshots:
    """The published versions below one folder.

    Args:
        root: Folder of the manifests; made at the first publication.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def numbers(self) -> list[int]:
        """Numbers of the snapshots that are kept, rising."""
        return sorted(int(path.stem) for path in self.root.glob("*.json") if path.stem.isdigit())

    def current(self) -> Snapshot | None:
        """The snapshot that readers see, or None before the first publication."""
        try:
            number = int((self.root / "CURRENT").read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreError(f"{self.root / 'CURRENT'}: expected a snapshot number: {error}") from error
        return self.load(number)

    def load(self, number: int) -> Snapshot:
        """A snapshot by number.

        Raises:
            StoreError: There is none of that number, or its manifest is damaged.
        """
        path = self.root / f"{number:08d}.json"
        try:
            return Snapshot(**json.loads(path.read_bytes()))
        except FileNotFoundError as error:
            raise StoreError(f"no snapshot {number}; kept are {self.numbers()}") from error
        except (ValueError, TypeError) as error:
            raise StoreError(f"{path}: damaged manifest: {error}") from error

    def publish(self, snapshot: Snapshot) -> None:
        """Write the manifest and move the readers to it."""
        path = self.root / f"{snapshot.number:08d}.json"
        write_atomically(path, json.dumps(asdict(snapshot), indent=1, sort_keys=True).encode())
        self._point_to(snapshot.number)

    def roll_back(self, number: int) -> Snapshot:
        """Move the readers to a kept snapshot; the next index run publishes the latest state again."""
        snapshot = self.load(number)
        self._point_to(number)
        return snapshot

    def prune(self, kept: int) -> list[Snapshot]:
        """Remove all but the last snapshots and the current one; returns those that are kept."""
        current = self.current()
        numbers = self.numbers()
        keep = set(numbers[-kept:]) | ({current.number} if current else set())
        for number in numbers:
            if number not in keep:
                (self.root / f"{number:08d}.json").unlink(missing_ok=True)
        return [self.load(number) for number in sorted(keep)]

    def next_number(self) -> int:
        """Number of the next snapshot."""
        return max(self.numbers(), default=0) + 1

    def _point_to(self, number: int) -> None:
        write_atomically(self.root / "CURRENT", str(number).encode())
