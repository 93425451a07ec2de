"""What is seen while `rag-assets index` runs: on a terminal, in a file, with `--json`, and in words."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_assets.cli import progress
from rag_assets.cli.progress import ProgressDisplay
from rag_assets.pipeline.home import Home

COMMAND = [sys.executable, "-m", "rag_assets.cli", "index"]


def environment(home: Home) -> dict[str, str]:
    return {**os.environ, "RAG_HOME": str(home.path), "RAG_SOURCES": home.settings.sources[0], "TERM": "xterm"}


def write(home: Home, name: str) -> None:
    (Path(home.settings.sources[0]) / name).write_text("# 料金表\n\n月額は 3000 円。\n", encoding="utf-8")


class Clock:
    """The time that the display sees."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_terminal_shows_what_is_under_way_from_the_first_second_to_the_last(home: Home) -> None:
    write(home, "a.md")
    master, terminal = pty.openpty()
    with subprocess.Popen(COMMAND, env=environment(home), stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        seen, drawn_at = b"", []
        started_before_dagster = False
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            drawn_at.append(time.monotonic())
            seen += part
            if b"starting" in seen and not (home.path / "dagster_home").exists():
                started_before_dagster = True
    os.close(master)
    text = seen.decode()
    assert process.returncode == 0, text
    assert started_before_dagster
    for expected in ("loading Dagster", "step 1 of ", "left in all"):  # what is over in a moment is not drawn
        assert expected in text
    assert re.search(r"parse: 1 of 1.*\(step 1 of \d+\)", text)
    assert len(drawn_at) > drawn_at[-1] - drawn_at[0]  # drawn more than once a second


def test_a_file_gets_plain_lines_and_standard_output_the_json_alone(home: Home) -> None:
    write(home, "a.md")
    result = subprocess.run(
        [*COMMAND, "--json"], env=environment(home), capture_output=True, text=True, check=True, timeout=300
    )
    assert json.loads(result.stdout)["new"] == ["specs/a.md"]
    lines = result.stderr.splitlines()
    assert lines[0] == "starting"
    assert any(line.startswith("comparing with what is indexed") for line in lines)
    assert "\x1b" not in result.stderr
    for step in ("parse", "chunk", "summarize pages", "embed chunks", "embed summaries", "embed questions"):
        assert sum(line.startswith(f"{step}") and "(step " in line for line in lines) == 1, step


def test_lines_come_every_few_seconds_with_rate_and_time_left(clock: Clock) -> None:
    lines: list[str] = []
    display = ProgressDisplay(lines.append, announce=True)
    display.begin_run(["parse", "chunk"])
    display.begin_step("parse")
    report = display.step("parse")
    report(0, 100)
    for second in range(1, 21):
        clock.now += 1
        report(2 * second, 100)
        display.repeat()
    assert lines[0].startswith("parse: 10 of 100, 2.0/s, about 0:45 left, 0:05; step 1 of 2, 0:05, about ")
    assert len(lines) == 4
    display.end_step("parse")
    assert lines[4] == "parse: 40 of 100, 2.0/s, about 0:30 left, 0:20 (step 1 of 2)"


def test_a_step_that_reports_nothing_is_shown_by_its_name_and_time(clock: Clock) -> None:
    lines: list[str] = []
    display = ProgressDisplay(lines.append, announce=False)
    display.begin_run(["resolve_entities", "pages_structure"])
    display.begin_step("resolve_entities")
    clock.now += 6
    display.repeat()
    display.end_step("resolve_entities")
    display.begin_step("pages_structure")
    clock.now += 0.1
    display.end_step("pages_structure")
    assert lines == [
        "resolve entities, 0:06; step 1 of 2, 0:06",
        "resolve entities, 0:06 (step 1 of 2)",
    ]


def test_what_is_left_never_grows_while_nobody_knows_how_far_a_step_is(clock: Clock) -> None:
    display = ProgressDisplay(lambda _line: None, announce=False)
    display.begin_run(["parse", "chunk", "extract_mentions", "index_chunks"])  # which take 150, 50, 200 and 340 usually
    for step in ("parse", "chunk"):
        display.begin_step(step)
        clock.now += 10
        display.end_step(step)

    def left() -> str:
        return display.describe(clock.now)[-1][0].partition(", about ")[2]

    assert left() == "0:54 left in all"
    display.begin_step("extract_mentions")
    told = []
    for _ in range(5):
        told.append(left())
        clock.now += 6
    assert told == [f"0:{seconds} left in all" for seconds in (54, 48, 42, 36)] + [""]
    report = display.step("extract mentions")
    report(0, 40)
    assert left() == ""
    report(10, 40)
    assert left() == "1:38 left in all"


def test_what_is_left_falls_between_two_counts_and_grows_only_where_the_next_is_overdue(clock: Clock) -> None:
    display = ProgressDisplay(lambda _line: None, announce=False)
    display.begin_run(["parse", "index_chunks"])  # which take 150 and 340 usually
    display.begin_step("parse")
    clock.now += 15
    display.end_step("parse")
    display.begin_step("index_chunks")
    report = display.step("embed chunks")
    report(0, 100)
    clock.now += 10
    report(20, 100)
    told = []
    for _ in range(5):
        told.append([text.rpartition(", about ")[2].partition(" left")[0] for text, _ in display.describe(clock.now)])
        clock.now += 5
    assert told == [["0:40", "0:31"], ["0:35", "0:26"], ["0:30", "0:21"], ["0:50", "0:27"], ["1:10", "0:34"]]


def test_nothing_is_said_of_what_is_left_once_all_was_to_be_done(clock: Clock) -> None:
    display = ProgressDisplay(lambda _line: None, announce=False)
    report = display.phase("embed chunks")
    report(0, 100)
    for done in range(1, 96):
        clock.now += 0.5
        report(done, 100)
    told = []
    for _ in range(4):
        told.append(display.describe(clock.now)[0][0].partition("about ")[2].partition(" left")[0])
        clock.now += 2
    assert told == ["0:02", "0:02", "", ""]
    report(96, 100)
    assert "left" in display.describe(clock.now)[0][0]


def test_what_was_done_before_does_not_count_for_the_rate(clock: Clock) -> None:
    display = ProgressDisplay(lambda _line: None, announce=False)
    report = display.phase("embed chunks")
    report(900, 1000)
    clock.now += 10
    report(910, 1000)
    [(text, share)] = display.describe(clock.now)
    assert text == "embed chunks: 910 of 1,000, 1.0/s, about 1:30 left, 0:10"
    assert share == pytest.approx(0.91)


def test_indexing_goes_on_when_nobody_reads_the_progress(clock: Clock) -> None:
    def gone(_line: str) -> None:
        raise BrokenPipeError

    display = ProgressDisplay(gone, announce=True)
    display.phase("listing files")
    clock.now += 10
    display.repeat()
