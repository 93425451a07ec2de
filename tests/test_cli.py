"""The command line as a person uses it: output, errors in one line, exit status."""

import contextlib
import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from unittest.mock import ANY

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from rag_assets.cli import main
from rag_assets.cli.searching import _most_telling

TOKEN = """# アクセストークン

トークンの有効期限は 3600 秒である。

| コード | 意味 |
| --- | --- |
| E0004 | 権限がない |
"""


@pytest.fixture(scope="module")
def knowledge_base(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> tuple[Path, Path]:
    """A home and its source folder, indexed by the command line."""
    root = tmp_path_factory.mktemp("cli")
    (root / "home").mkdir()
    (root / "home" / "models").symlink_to(models_folder)
    (root / "specs").mkdir()
    (root / "specs" / "token.md").write_text(TOKEN, encoding="utf-8")
    (root / "specs" / "prices.csv").write_text("item,price\nlatency probe,120\nbackup,80\n", encoding="utf-8")
    (root / "specs" / "bad.pdf").write_bytes(b"%PDF-1.7 broken")
    result = CliRunner().invoke(main, ["--home", str(root / "home"), "index", str(root / "specs")])
    assert result.exit_code == 0, result.output
    assert "not indexed: specs/bad.pdf: malformed" in result.output
    return root / "home", root / "specs"


def run(knowledge_base: tuple[Path, Path], *arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["--home", str(knowledge_base[0]), *arguments], input=text)


def test_what_failed_before_is_counted_by_cause_and_named_by_status(knowledge_base: tuple[Path, Path]) -> None:
    for options in ((), ("--force", "specs/bad.pdf")):
        again = run(knowledge_base, "index", *options)
        assert "not indexed, as before: 1 (malformed 1); see the table parse_failures" in again.stdout
        assert "bad.pdf" not in again.stdout
    assert "not indexed: specs/bad.pdf: malformed" in run(knowledge_base, "status").output
    assert [row["document_id"] for row in json.loads(run(knowledge_base, "index", "--json").stdout)["failed"]] == [
        "specs/bad.pdf"
    ]


@pytest.mark.parametrize("mode", ["vector", "fulltext", "hybrid", "two_step", "hyde", "rewrite"])
def test_search_prints_the_documented_json(knowledge_base: tuple[Path, Path], mode: str) -> None:
    result = run(knowledge_base, "search", "トークンの有効期限", "--mode", mode, "-k", "2", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found.keys() >= {"query", "mode", "hits", "trace"}
    hit = found["hits"][0]
    assert hit.keys() >= {"rank", "score", "document_id", "page_number", "page_name", "chunk_id", "text", "citation"}
    assert (hit["rank"], hit["document_id"]) == (1, "specs/token.md")
    assert "3600" in hit["text"]


def test_what_is_shown_of_a_hit_are_its_most_telling_lines() -> None:
    lines = [
        *(f"第{number}条 総則を定める。" for number in range(1, 9)),
        "第9条 休暇の付与日数は10日とする。",
        "第10条 附則",
    ]
    assert _most_telling(lines, "休暇の付与日数") == 3
    assert _most_telling(lines, "無関係") == 0
    assert _most_telling([], "休暇") == 0


def test_another_mode_may_follow_a_rewritten_query(knowledge_base: tuple[Path, Path]) -> None:
    query = ("search", "トークンの有効期限を教えてください", "--retriever", "fulltext", "--json")
    found = json.loads(run(knowledge_base, *query, "--mode", "rewrite").output)
    assert found["mode"] == "rewrite+fulltext"
    operations = {step["operation"]: step.get("texts") for step in found["trace"]["steps"]}
    assert operations.keys() == {"embed", "rewrite", "matching"}
    assert operations["rewrite"][:2] == ["rewriter: rules", "keywords: トークンの有効期限"]
    named = run(knowledge_base, *query[:2], "--json", "--mode", "rewrite+fulltext")
    assert json.loads(named.output)["hits"] == found["hits"]
    for mode in ("hybrid", "rewrite+fulltext"):
        refused = run(knowledge_base, *query, "--mode", mode)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"--retriever goes with --mode hyde or rewrite, not with {mode}" in refused.stderr
    assert run(knowledge_base, "search", "x", "--mode", "hybrid+fulltext").exit_code == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--level", "1"), "--level goes with --mode graph_global, not with auto"),
        (
            ("--level", "1", "--mode", "rewrite+hybrid"),
            "--level goes with --mode graph_global, not with rewrite+hybrid",
        ),
        (("--fixed-level", "--mode", "two_step"), "--dynamic-level goes with --mode graph_global, not with two_step"),
        (("--summaries", "file"), "--summaries goes with --mode two_step, not with auto"),
    ],
)
@pytest.mark.parametrize("command", ["search", "ask"])
def test_options_that_a_mode_would_leave_out_are_refused(
    knowledge_base: tuple[Path, Path], command: str, options: tuple[str, ...], told: str
) -> None:
    refused = run(knowledge_base, command, "トークン", *options)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert told in refused.stderr


def test_options_of_one_of_several_modes_are_taken(knowledge_base: tuple[Path, Path]) -> None:
    for mode in ("two_step", "hyde+two_step", "fulltext,two_step"):
        assert run(knowledge_base, "search", "トークン", "--summaries", "file", "--mode", mode).exit_code == 0


def test_modes_are_fused_and_questions_choose_their_mode(knowledge_base: tuple[Path, Path]) -> None:
    query = ("トークンの有効期限を教えてください", "--json", "-k", "1")
    found = json.loads(run(knowledge_base, "search", *query, "--mode", "fulltext,two_step").stdout)
    assert (found["mode"], found["hits"][0]["document_id"]) == ("fulltext,two_step", "specs/token.md")
    assert json.loads(run(knowledge_base, "search", *query).stdout)["mode"] == "weighted"
    asked = json.loads(run(knowledge_base, "ask", *query).stdout)
    assert (asked["mode"], asked["trace"]["steps"][0]["operation"]) == ("weighted", "choose")
    assert json.loads(run(knowledge_base, "ask", "`latency probe`", "--json").stdout)["mode"] == "weighted"
    assert run(knowledge_base, "search", "x", "--mode", "fulltext,magic").exit_code == 2
    assert "cannot be fused" in run(knowledge_base, "search", "x", "--mode", "fulltext,auto").stderr


def test_search_prints_citations(knowledge_base: tuple[Path, Path]) -> None:
    result = run(knowledge_base, "search", "latency probe", "-k", "1")
    assert result.output.startswith("1. specs/prices.csv")
    assert "latency probe | 120" in result.output


def test_ask_quotes_passages_with_their_places(knowledge_base: tuple[Path, Path]) -> None:
    result = run(knowledge_base, "ask", "トークンの有効期限は何秒ですか", "-k", "2")
    assert result.exit_code == 0, result.output
    text, sources = result.stdout.split("\n\n")
    assert text.startswith("資料の記載:\n- ")
    assert "トークンの有効期限は 3600 秒である。 [1]" in text
    assert sources.splitlines()[0].startswith("[1] specs/token.md")
    assert result.stderr == "mode weighted, chosen by auto\n"
    assert run(knowledge_base, "ask", "期限", "--mode", "vector").stderr == "mode vector\n"


def test_ask_prints_the_documented_json(knowledge_base: tuple[Path, Path], tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text('{"question": "アクセストークンの有効期限は？", "answer": "3600 秒"}\n', encoding="utf-8")
    arguments = ("ask", "それは何秒ですか", "--mode", "rewrite", "--retriever", "fulltext", "--history")
    result = run(knowledge_base, *arguments, str(history), "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found.keys() >= {"question", "mode", "answer", "sentences", "sources", "trace"}
    assert (found["question"], found["mode"]) == ("それは何秒ですか", "rewrite+fulltext")
    assert found["sentences"][0].keys() >= {"text", "citations"}
    assert found["sentences"][0]["citations"][0] == {
        "number": 1,
        "quote": ANY,
        "supported": True,
        "unchecked": False,
    }
    assert found["sources"][0]["document_id"] == "specs/token.md"
    assert found["sources"][0]["citation"]["link"].startswith("/pages/specs/token.md?page=1")
    history.write_text("[1]\n", encoding="utf-8")
    result = run(knowledge_base, *arguments, str(history))
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "line 1: expected" in result.stderr


def test_a_server_that_is_down_stops_no_search(
    knowledge_base: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PROVIDER", "openai"), ("MODEL", "m"), ("BASE_URL", "http://127.0.0.1:1/v1")):
        monkeypatch.setenv(f"RAG_LANGUAGE_MODEL__{name}", value)
    assert run(knowledge_base, "search", "latency probe", "-k", "1").exit_code == 0
    result = run(knowledge_base, "ask", "latency probe", "-k", "1")
    assert result.exit_code == 0
    assert "item: latency probe | price: 120" in result.stdout
    assert "rag-assets: the language model did not answer: " in result.stderr


def test_filters_narrow_the_search(knowledge_base: tuple[Path, Path]) -> None:
    result = run(knowledge_base, "search", "token", "--filter", "format=csv", "--json")
    assert {hit["document_id"] for hit in json.loads(result.output)["hits"]} == {"specs/prices.csv"}
    for command in ("search", "ask"):
        result = run(knowledge_base, command, "token", "--filter", "document=prices*")
        assert result.exit_code == 1
        assert "there is no document prices*; did you mean */prices*, specs/prices.csv? there are: " in result.stderr
        assert "nothing found" not in result.stdout
    result = run(knowledge_base, "search", "token", "--filter", "nonsense=1")
    assert result.exit_code == 1
    assert "nonsense" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_batch_gives_a_trec_run(knowledge_base: tuple[Path, Path], tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "q1", "text": "E0004"}\n{"_id": "q2", "text": "backup price"}\n', encoding="utf-8")
    out = tmp_path / "out.trec"
    arguments = ["search", "--queries", str(queries), "--run", str(out), "-k", "2", "--granularity", "document"]
    result = run(knowledge_base, *arguments)
    assert result.exit_code == 0, result.output
    lines = [line.split(" ") for line in out.read_text("utf-8").splitlines()]
    assert [(line[0], line[1], line[2], line[3], line[5]) for line in lines if line[3] == "1"] == [
        ("q1", "Q0", "specs/token.md", "1", "rag_assets"),
        ("q2", "Q0", "specs/prices.csv", "1", "rag_assets"),
    ]


def test_sql_reads_tables_and_views(knowledge_base: tuple[Path, Path]) -> None:
    result = run(knowledge_base, "sql", "SELECT file_name, status FROM documents ORDER BY 1", "--csv")
    assert list(csv.reader(io.StringIO(result.output)))[1:] == [
        ["bad.pdf", "failed"],
        ["prices.csv", "parsed"],
        ["token.md", "parsed"],
    ]
    result = run(knowledge_base, "sql", "SELECT cause, document_count FROM failures_by_cause", "--json")
    assert json.loads(result.output) == {"cause": "malformed", "document_count": 1}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY documents TO 'stolen.csv'",
        "INSTALL httpfs",
        "SELECT nothing FROM nowhere",
    ],
)
def test_sql_touches_nothing_else(knowledge_base: tuple[Path, Path], query: str) -> None:
    result = run(knowledge_base, "sql", query)
    assert result.exit_code == 1
    assert result.stderr.startswith("rag-assets: ")
    assert not Path("stolen.csv").exists()


def test_status_tells_what_would_be_done_and_index_does_it(knowledge_base: tuple[Path, Path]) -> None:
    added = knowledge_base[1] / "new.md"
    added.write_text("# 新規\n\n監視間隔は 5 分。", encoding="utf-8")
    status = json.loads(run(knowledge_base, "status", "--json").output)
    assert (status["new"], status["changed"], status["gone"]) == (["specs/new.md"], [], [])
    assert [row["document_id"] for row in status["failed"]] == ["specs/bad.pdf"]
    summary = json.loads(run(knowledge_base, "index", "--json").stdout)
    assert summary["new"] == ["specs/new.md"]
    assert "5 分" in run(knowledge_base, "search", "監視間隔", "-k", "1").output
    added.unlink()
    assert json.loads(run(knowledge_base, "index", "--json").stdout)["gone"] == ["specs/new.md"]
    assert json.loads(run(knowledge_base, "status", "--json").output)["unfinished_shards"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        *(["status"], ["status", "--json"], ["verify"], ["snapshots"], ["plan"], ["sql", "SELECT 1"], ["publish"]),
    ],
    ids=" ".join,
)
def test_where_there_is_no_knowledge_base_that_is_said_and_none_is_made(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("x", encoding="utf-8")
    for name in ("nowhere", "other"):
        place = tmp_path / name
        result = CliRunner().invoke(main, arguments, env={"RAG_HOME": str(place)})
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(
            f"rag-assets: there is no knowledge base in {place}; name another by --home or "
        )
    assert [path.name for path in tmp_path.rglob("*")] == ["other", "letter.txt"]


def test_before_the_first_run_what_the_sources_of_the_settings_hold_is_told_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.txt").write_text("x", encoding="utf-8")
    environment = {"RAG_HOME": str(tmp_path / "home"), "RAG_SOURCES": str(tmp_path / "specs")}
    result = CliRunner().invoke(main, ["status", "--json"], env=environment)
    assert json.loads(result.stdout)["new"] == ["specs/a.txt"]
    told = f"rag-assets: there is no knowledge base in {tmp_path}/home yet: `rag-assets index` makes it\n"
    assert result.stderr == told
    assert CliRunner().invoke(main, ["plan"], env=environment).stderr == told


def test_errors_are_one_line_with_status_1(tmp_path: Path, knowledge_base: tuple[Path, Path]) -> None:
    for arguments, words in (
        (["--home", str(tmp_path), "search", "x"], "nothing is indexed"),
        (["--home", str(tmp_path), "index", str(tmp_path / "nowhere")], "no such folder"),
        (["--home", str(tmp_path), "index", f"x={__file__}"], f"is a file; name its folder: {Path(__file__).parent}"),
        (["--home", str(knowledge_base[0]), "search", "  "], "empty"),
        (["--home", str(knowledge_base[0]), "index", ""], "source '': empty"),
        (["--home", str(knowledge_base[0]), "sql", " -- nothing"], "QUERY: no statement of SQL"),
        (["--home", str(knowledge_base[0]), "sql", "SELECT 1 FROM\nnowhere"], "does not exist! Did you mean"),
        *(
            (["--home", str(knowledge_base[0]), "sql", query], "; SQL only reads the tables and views")
            for query in ("INSERT INTO documents VALUES (1)", "DELETE FROM pages", "DROP TABLE pages")
        ),
        (["--home", str(knowledge_base[0]), "sql", "SELECT 1 FROM\nnowhere"], "(LINE 2: nowhere)"),
        (["--home", str(knowledge_base[0]), "index", "--forget", "nobody"], "no registered source"),
        (["--home", str(knowledge_base[0]), "index", "--force", "nothing/*"], "no stored document matches"),
    ):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 1, arguments
        assert words in result.stderr
        *progress, error = result.stderr.splitlines()
        assert error.startswith("rag-assets: ")
        assert {"index"} & {*arguments} or not progress


def test_rows_of_sql_are_as_wide_as_can_be_read(knowledge_base: tuple[Path, Path]) -> None:
    query = f"SELECT ':smile: [bold]x[/bold]' AS a, '{'長' * 20}' AS b, '{'大' * 201}' AS c, [['x', 'y'], [NULL]] AS d"
    result = run(knowledge_base, "sql", query)
    assert ":smile: [bold]x[/bold]" in result.stdout
    assert "長" * 20 in result.stdout
    assert f" {'大' * 20}…" in result.stdout
    assert "大" * 21 not in result.stdout
    assert "x, y; " in result.stdout
    assert [cell_len(line) for line in result.stdout.splitlines() if cell_len(line) > 120] == []
    assert result.stderr == "… stands for the rest of a text: --json and --csv print all of it\n"
    for option in ("--json", "--csv"):
        assert "大" * 201 in run(knowledge_base, "sql", query, option).output
    short = run(
        knowledge_base, "sql", "SELECT ['1. 画面', '2. 項目'] AS section, {'a': 1, 'b': [2, 3]} AS struct, true AS ok"
    )
    assert "1. 画面, 2. 項目   a: 1, b: 2, 3   True" in short.stdout
    assert short.stderr == ""


def test_rows_of_too_many_columns_for_a_table_have_a_line_for_each_value(knowledge_base: tuple[Path, Path]) -> None:
    columns = ", ".join(f"'{name * 30}' AS {name}" for name in "abcdefghijkl")
    result = run(knowledge_base, "sql", f"SELECT {columns}, '長' || repeat('い', 100) AS 名前 FROM range(2)")
    lines = result.stdout.splitlines()
    assert lines[:2] == ["row 1", f"a      {'a' * 30}"]
    assert lines[13] == f"名前   長{'い' * 55}…"
    assert lines[14] == "row 2"
    assert len(lines) == 28
    assert "--json and --csv print all of it" in result.stderr
    empty = run(knowledge_base, "sql", f"SELECT {columns.replace(' AS ', ' AS column_')} WHERE false")
    assert empty.stdout == f"no rows of {', '.join(f'column_{name}' for name in 'abcdefghijkl')}\n"


@pytest.mark.parametrize("cells", [40, 80])
def test_rows_fit_the_terminal(knowledge_base: tuple[Path, Path], cells: int) -> None:
    query = "SELECT document_id, file_name, text, title FROM documents JOIN pages USING (document_id)"
    command = [sys.executable, "-m", "rag_assets.cli", "--home", str(knowledge_base[0]), "sql", query]
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, cells, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    with subprocess.Popen(command, stdout=terminal, stdin=terminal, env={**environment, "TERM": "xterm"}) as process:
        os.close(terminal)
        seen = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(master, 65536):
                seen += part
    os.close(master)
    assert process.returncode == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", seen.decode()).splitlines()
    assert cells - 3 <= max(map(cell_len, lines)) <= cells
    assert any("アクセストークン" in line for line in lines)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ([], "2026-11-30 20:30:00+00:00   2026-11-30   2026-11-30 20:30:00+00   20"),
        (["--csv"], "2026-11-30 20:30:00+00:00,2026-11-30,2026-11-30 20:30:00+00,20"),
        (["--json"], '{"time": "2026-11-30T20:30:00+00:00", "day": "2026-11-30", "text": "2026-11-30 20:30:00+00"'),
    ],
)
def test_times_of_sql_are_in_utc_wherever_the_machine_stands(
    knowledge_base: tuple[Path, Path], option: list[str], expected: str
) -> None:
    time = "TIMESTAMPTZ '2026-11-30 20:30:00+00'"
    query = f"SELECT {time} AS time, {time}::DATE AS day, {time}::VARCHAR AS text, hour({time}) AS hour"
    command = [sys.executable, "-m", "rag_assets.cli", "--home", str(knowledge_base[0]), "sql", query, *option]
    result = subprocess.run(command, env={**os.environ, "TZ": "Asia/Tokyo"}, capture_output=True, text=True, check=True)
    assert expected in result.stdout


@pytest.mark.parametrize(
    ("command", "expected"), [("sql", "'有効期限'"), ("search", "トークンの有効期限"), ("ask", "3600 秒")]
)
def test_texts_are_read_where_the_locale_knows_no_japanese(
    knowledge_base: tuple[Path, Path], command: str, expected: str
) -> None:
    text = "SELECT '有効期限'" if command == "sql" else "有効期限"
    arguments = [sys.executable, "-m", "rag_assets.cli", "--home", str(knowledge_base[0]), command, text]
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(arguments, env=plain, capture_output=True, check=True)
    assert expected in result.stdout.decode()


@pytest.mark.parametrize("command", ["sql", "search", "ask"])
def test_a_text_in_another_encoding_is_refused(knowledge_base: tuple[Path, Path], command: str) -> None:
    result = run(knowledge_base, command, "SELECT '名'".encode("cp932").decode("utf-8", "surrogateescape"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].endswith("expected text in UTF-8")


@pytest.mark.parametrize("query", ["", "SELEC", "SELECT * FROM\nnowhere"])
def test_a_wrong_query_is_one_line(knowledge_base: tuple[Path, Path], query: str) -> None:
    result = run(knowledge_base, "sql", query)
    assert result.exit_code in {0, 1}
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stderr.count("\n") == result.exit_code


def test_queries_of_another_encoding_are_an_error_in_one_line(
    knowledge_base: tuple[Path, Path], tmp_path: Path
) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_bytes('{"_id": "q1", "text": "有効期限"}'.encode("cp932"))
    for arguments in (("search", "--queries"), ("ask", "x", "--history"), ("sql", "--file")):
        result = run(knowledge_base, *arguments, str(queries))
        assert result.exit_code == 1
        assert result.stderr.startswith(f"rag-assets: {queries}: expected a text file in UTF-8: ")
        assert result.stderr.count("\n") == 1
    queries.write_text('{"_id": "q1"}', encoding="utf-8")
    assert f"{queries}, line 1: expected an object" in run(knowledge_base, "search", "--queries", str(queries)).stderr


def test_all_but_the_last_of_several_statements_are_said_to_be_not_shown(knowledge_base: tuple[Path, Path]) -> None:
    result = run(knowledge_base, "sql", "SELECT 1 AS a; SELECT 2 AS b;", "--csv")
    assert (result.exit_code, result.stdout) == (0, "b\n2\n")
    assert "2 statements: only what the last one gives is shown" in result.stderr


@pytest.mark.parametrize(
    ("name", "words"), [("g.xyz", "name it .graphml or .json"), ("none/g.json", "no such folder: ")]
)
def test_a_graph_is_written_where_it_is_clear_what_and_where(
    knowledge_base: tuple[Path, Path], tmp_path: Path, name: str, words: str
) -> None:
    result = run(knowledge_base, "graph", "export", str(tmp_path / name))
    assert (result.exit_code, [*tmp_path.iterdir()]) == (2, [])
    assert words in result.stderr


def test_wrong_usage_is_status_2(tmp_path: Path) -> None:
    for arguments in (
        ["search"],
        ["search", "x", "--mode", "magic"],
        ["index"],
        ["sql"],
        ["search", "x", "--run", "out"],
        ["--nonsense"],
    ):
        result = CliRunner().invoke(main, arguments, env={"RAG_HOME": str(tmp_path)})
        assert result.exit_code == 2, arguments


def test_two_runs_at_once_do_not_race(knowledge_base: tuple[Path, Path]) -> None:
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.settings import load_settings

    with Home(load_settings(home=knowledge_base[0])).lock():
        result = run(knowledge_base, "index")
    assert result.exit_code == 1
    assert "another" in result.stderr
