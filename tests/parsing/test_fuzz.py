"""Some hundred damaged files; `benchmarks/fuzz.py` runs thousands."""

import os
import tempfile
import warnings
from pathlib import Path

import pytest

from benchmarks.fuzz import mutate, run, seeds

INPUTS = 250
SEED = 3


def test_damaged_files_cost_themselves_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside, temporary = tmp_path / "outside", tmp_path / "temporary"
    for folder in (outside, temporary):
        folder.mkdir()
    monkeypatch.chdir(outside)
    monkeypatch.setenv("HOME", str(outside))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    small = [path for path in seeds() if path.stat().st_size < 60_000]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a zip archive with two entries of one name
        report = run(small, INPUTS, SEED, workers=os.cpu_count() or 1, watched=[outside, temporary])
    assert report.outcomes.total() == INPUTS
    assert not report.unanswered
    assert not report.written
    assert report.slowest_seconds < 15
    assert report.outcomes["pages"] > INPUTS // 10
    assert report.outcomes["malformed"] > INPUTS // 10
    assert not report.outcomes["crashed"]


def test_inputs_follow_from_the_seed() -> None:
    import random

    paths = [path for path in seeds() if path.suffix == ".xlsx"][:2]
    one, two = (path.read_bytes() for path in paths)
    first, second = ([mutate(one, two, random.Random(number)) for number in range(20)] for _ in range(2))
    assert first == second
    assert sum(copy != one for copy in first) > 15
