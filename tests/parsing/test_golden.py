from pathlib import Path

import pytest
from golden import DATA, golden_files, parse_file

FILES = golden_files()


def test_there_are_enough_golden_files() -> None:
    assert len(FILES) >= 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(DATA).as_posix())
def test_blocks_are_as_they_were_read(path: Path) -> None:
    expected = path.with_name(f"{path.name}.json").read_text(encoding="utf-8")
    assert parse_file(path).splitlines() == expected.splitlines()
