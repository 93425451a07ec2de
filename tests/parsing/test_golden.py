from pathlib import Path

import pytest
from fonts import needs_japanese_font
from golden import DATA, golden_files, parse_file

FILES = golden_files()
JAPANESE_FONT = {  # they name one that they do not hold
    "vertical_and_horizontal.pdf",
    "vertical_with_ruby.pdf",
    "constitution_with_ruby.pdf",
}


def test_there_are_enough_golden_files() -> None:
    assert len(FILES) >= 20


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=needs_japanese_font) if path.name in JAPANESE_FONT else path for path in FILES],
    ids=lambda path: path.relative_to(DATA).as_posix(),
)
def test_blocks_are_as_they_were_read(path: Path) -> None:
    expected = path.with_name(f"{path.name}.json").read_text(encoding="utf-8")
    assert parse_file(path).splitlines() == expected.splitlines()
