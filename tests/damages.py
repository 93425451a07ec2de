"""What may become of a file on a disk."""

from pathlib import Path


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def turn(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def displace(path: Path) -> None:
    """Put a folder in its place, as a careless copy does."""
    path.unlink()
    path.mkdir()


DAMAGES = (remove, empty, cut, turn, displace)
