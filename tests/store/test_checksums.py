"""Checksums: damage is found by size, times and content, and what was found intact is not read again."""

import os
from pathlib import Path

import pytest

from rag_assets.contracts.errors import StoreError
from rag_assets.store.checksums import RECORD, Checksums, mark_of

BEFORE = b"trees and leaves"


@pytest.fixture
def known(tmp_path: Path) -> str:
    """Mark of the file `a`, which is known to be intact."""
    (tmp_path / "a").write_bytes(BEFORE)
    checksums = Checksums(tmp_path)
    (mark,) = checksums.marks(["a"], {}).values()
    checksums.save()
    return mark


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "it is missing"),
        (b"", "it is empty"),
        (BEFORE[:7], "it has another size than when it was written"),
        (b"T" + BEFORE[1:], "its content is not what was written"),
        (BEFORE, None),
    ],
)
def test_damage_is_found_and_named(tmp_path: Path, known: str, content: bytes | None, problem: str | None) -> None:
    if content is None:
        (tmp_path / "a").unlink()
    else:
        (tmp_path / "a").write_bytes(content)
    assert Checksums(tmp_path).problem("a", known) == problem
    assert Checksums(tmp_path).problem("a") == problem
    (tmp_path / RECORD).unlink()
    assert Checksums(tmp_path).problem("a", known) == problem
    if problem:
        with pytest.raises(StoreError, match=rf"a: {problem}; run `rag-assets index`"):
            Checksums(tmp_path).marks(["a"], {"a": known})


def test_a_record_that_was_damaged_counts_for_nothing(tmp_path: Path, known: str) -> None:
    record = (tmp_path / RECORD).read_bytes()
    assert Checksums(tmp_path).known("") == ["a"]
    (tmp_path / RECORD).write_bytes(record.replace(known.encode(), known.replace(":", ":0").encode()))
    assert Checksums(tmp_path).known("") == []


def test_another_name_of_a_file_is_no_reason_to_read_it_again(tmp_path: Path, known: str) -> None:
    os.link(tmp_path / "a", tmp_path / "b")
    checksums = Checksums(tmp_path)
    checksums.adopt(checksums.known(""))
    checksums.save()
    noted = (tmp_path / RECORD).read_bytes()
    assert Checksums(tmp_path).problem("a", known) is None
    assert (tmp_path / RECORD).read_bytes() == noted


def test_a_reader_takes_the_word_of_the_size_where_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(BEFORE)
    mark = mark_of(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"T" + BEFORE[1:])
    assert Checksums(tmp_path).problem("a", mark, unread=True) is None
    assert Checksums(tmp_path).problem("a", mark) == "its content is not what was written"
