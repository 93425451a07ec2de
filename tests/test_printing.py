"""What commands print steers no terminal and forges no lines, whatever files, documents and models hold."""

import ast
import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from scripted import Reply, ScriptedServer

from rag_assets.cli import main
from rag_assets.cli.console import print_csv, print_rows, print_table
from rag_assets.cli.progress import ProgressDisplay
from rag_assets.text.plain import json_text, markdown_table, message_of, printable, printable_line

CLI = Path(__file__).parents[1] / "rag_assets" / "cli"
STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\x9d52;c;QQ==\x9c\x85\u2028\u202e\u2066\u200b\U000e0041\x7f"
NAMES = [
    "evil\x1b]0;owned\x07.txt",
    "two\nrag-assets: all is well\x9b31m.md",
    "invoice\u202efdp.csv",
    "日本語 👩‍💻.txt",
]
TEXT = f"Token expiry is 30 minutes{STEERING} 有効期限は三十分です。\n\nItem,Value\n"


def is_steering(character: str) -> bool:
    code = ord(character)
    hidden = code in {0x61C, 0x180E, 0x200B, 0x200E, 0x200F, 0xFEFF} or 0x2028 <= code <= 0x202E
    return (
        (code < 32 and character != "\n")
        or 127 <= code < 160
        or hidden
        or 0x2060 <= code <= 0x206F
        or 0xD800 <= code < 0xE000
        or 0xE0000 <= code < 0xE0080
    )


def test_nothing_in_a_cell_of_markdown_is_markup() -> None:
    cells = ["a | b", "[x](http://evil)", "<script>", "`*_#!~", "two\nlines", None, 0.5]
    *_, row = markdown_table(["name"] * 7, [cells], ["name"], 20).split("\n")
    assert row == r"| a \| b | \[x\]\(http://evil\) | \<script\> | \`\*\_\#\!\~ | two lines |  | 0.5 |"
    assert markdown_table(["name", "count"], [["x" * 30, 1]], ["count"], 20).split("\n") == [
        "| name | count |",
        "| --- | ---: |",
        f"| {'x' * 19}… | 1 |",
    ]


def assert_harmless(result: Result, *, csv_lines: bool = False) -> None:
    for written in (result.stdout_bytes.decode(), result.stderr_bytes.decode()):
        text = written.replace("\r\n", "\n") if csv_lines else written
        assert [hex(ord(each)) for each in text if is_steering(each)] == []
        assert not any(line.startswith("rag-assets: all is well") for line in text.splitlines())


@pytest.fixture(scope="module")
def hostile_home(tmp_path_factory: pytest.TempPathFactory, models_folder: Path) -> Path:
    """A knowledge base of documents whose names and texts are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "home").mkdir()
    (folder / "home" / "models").symlink_to(models_folder)
    (folder / "docs").mkdir()
    for name in NAMES:
        (folder / "docs" / name).write_text(TEXT + name, "utf-8")
    (folder / "docs" / "broken\x1b[31m\nrag-assets: all is well.pdf").write_bytes(b"%PDF-1.7 nothing")
    result = run(folder / "home", "index", f"docs={folder / 'docs'}")
    assert result.exit_code == 0, result.output
    assert_harmless(result)
    assert r"broken\x1b[31m\nrag-assets: all is well.pdf" in result.stdout
    (folder / "docs" / "new\x1b[5m\r\nrag-assets: all is well.txt").write_text("x", "utf-8")
    return folder / "home"


def run(home: Path, *arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), *arguments], env=environment)


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["status", "--json"],
        ["plan"],
        ["snapshots"],
        ["search", "token expiry 有効期限"],
        ["search", "token expiry", "--json"],
        ["search", "token expiry", "--granularity", "document", "--mode", "fulltext"],
        ["search", "token", "--filter", "format=\x1b[31mnone"],
        ["search", "token", "--mode", "\x1b[31m\nrag-assets: all is well"],
        ["ask", "What is the token expiry?"],
        ["ask", "What is the token expiry?", "--json"],
        ["sql", "SELECT document_id, text FROM chunks"],
        ["sql", 'SELECT document_id AS "a\x1b[31m", text FROM chunks', "--json"],
        ["sql", "SELECT * FROM parse_failures"],
        ["sql", "SELECT \x1b[31m FROM"],
        ["sql", "SELECT CAST(text AS INTEGER) FROM chunks"],
        ["index", "--force", "\x1b[31m*.none"],
        ["index", "/nowhere/\x1b[31m\nrag-assets: all is well"],
        ["\x1b[31m\nrag-assets: all is well"],
        ["cache", "stats"],
        ["batches"],
        ["taxonomy", "suggest"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]).encode("unicode_escape").decode()[:40],
)
def test_commands_print_nothing_that_steers_a_terminal(hostile_home: Path, arguments: list[str]) -> None:
    result = run(hostile_home, *arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.output
    assert_harmless(result)


def test_runs_of_many_queries_are_printed_as_harmlessly(hostile_home: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text(json.dumps({"_id": "q\x1b[31m", "text": "token expiry"}), "utf-8")
    result = run(hostile_home, "search", "--queries", str(queries), "--granularity", "document")
    assert result.exit_code == 0
    assert result.stdout.count("\n") == len(NAMES)
    assert_harmless(result)


def test_json_loses_nothing(hostile_home: Path) -> None:
    result = run(hostile_home, "sql", "SELECT document_id FROM documents ORDER BY 1", "--json")
    found = {json.loads(line)["document_id"] for line in result.stdout.splitlines()}
    assert {f"docs/{name}" for name in NAMES} <= found


def test_numbers_that_json_has_not_are_texts_as_in_the_http_api(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    query = "SELECT 'nan'::DOUBLE a, [1.5, '-inf'::DOUBLE] b, 9007199254740993 c, TIMESTAMP '2024-04-01 09:30:00' d"
    result = run(tmp_path, "sql", query, "--json")
    expected = {"a": "nan", "b": [1.5, "-inf"], "c": "9007199254740993", "d": "2024-04-01T09:30:00"}
    assert json.loads(result.stdout, parse_constant=pytest.fail) == expected


def test_rows_of_a_query_are_the_table_that_rich_prints(capsys: pytest.CaptureFixture[str]) -> None:
    columns, rows = ["n", "名前"], [["1", "有効期限"], ["22", "👩‍💻 é"], ["", ""]]
    for printed_rows in (rows, []):
        print_table(columns, printed_rows)
        expected = capsys.readouterr().out
        print_rows(columns, printed_rows)
        assert capsys.readouterr().out == expected


def test_many_rows_are_printed_in_reasonable_time(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.process_time()
    print_rows(["number", "text", "share"], [(number, f"text {number}", number / 7) for number in range(30_000)])
    seconds = time.process_time() - began
    assert capsys.readouterr().out.count("\n") == 30_004
    assert seconds < 4  # Rich takes twice as long, and more


@pytest.fixture
def hostile_model() -> Iterator[ScriptedServer]:
    """A server of a language model that answers with steering characters, a link, an image and HTML."""
    text = f"Token expiry is 30 minutes{STEERING}. ![x](https://evil.example/?q=30) [see](https://evil.example/) <b>"
    sentence = {"citations": [{"number": 1, "quote": "Token expiry is 30 minutes"}], "text": text}
    content = json.dumps({"answered": True, "sentences": [sentence, sentence | {"text": "rag-assets: fine\nx"}]})
    pieces = [content[start : start + 3] for start in range(0, len(content), 3)]
    chunks = [
        {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, "usage": usage}
        for choices, usage in [
            *(([{"index": 0, "delta": {"content": piece}, "finish_reason": None}], None) for piece in pieces),
            ([{"index": 0, "delta": {}, "finish_reason": "stop"}], None),
            ([], {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}),
        ]
    ]
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    with ScriptedServer() as server:
        server.replies(
            "/v1/chat/completions", Reply(body=stream.encode(), headers={"content-type": "text/event-stream"})
        )
        yield server


def test_answers_of_models_are_printed_as_harmlessly(hostile_home: Path, hostile_model: ScriptedServer) -> None:
    model = {
        "RAG_LANGUAGE_MODEL__PROVIDER": "openai",
        "RAG_LANGUAGE_MODEL__MODEL": "m",
        "RAG_LANGUAGE_MODEL__BASE_URL": f"{hostile_model.url}/v1",
        "RAG_LANGUAGE_MODEL__CONTEXT_TOKENS": "8192",
    }
    result = run(hostile_home, "ask", "What is the token expiry?", "--mode", "fulltext", **model)
    assert result.exit_code == 0, result.output
    assert_harmless(result)
    assert result.stdout.startswith("Token expiry is 30 minutes")
    assert "evil" not in result.stdout
    assert "see ‹b>" in result.stdout
    told = run(hostile_home, "ask", "What is the token expiry?", "--mode", "fulltext", "--json", **model)
    assert json.loads(told.stdout)["answer"] == result.stdout.partition("\n")[0]


def test_texts_like_formulas_are_no_formulas_in_csv(hostile_home: Path) -> None:
    query = (
        "SELECT '=1+1' AS a, '-2.5' AS b, -3 AS c, '+81 x' AS d, '@SUM(A1)' AS e, chr(27) || '[31m' AS f, ' =2' AS g"
    )
    result = run(hostile_home, "sql", query, "--csv")
    assert_harmless(result, csv_lines=True)
    header, row = csv.reader(io.StringIO(result.stdout))
    assert header == list("abcdefg")
    assert row == ["'=1+1", "-2.5", "-3", "'+81 x", "'@SUM(A1)", r"\x1b[31m", "' =2"]
    raw = run(hostile_home, "sql", query, "--csv", "--raw")
    _, row = csv.reader(io.StringIO(raw.stdout))
    assert row == ["=1+1", "-2.5", "-3", "+81 x", "@SUM(A1)", "\x1b[31m", " =2"]
    query = "SELECT ['a', NULL, '; =1'] AS a, {'日': DATE '2026-01-02', 'b': [1, 2]} AS b"
    nested = run(hostile_home, "sql", query, "--csv")
    _, row = csv.reader(io.StringIO(nested.stdout))
    assert [json.loads(cell) for cell in row] == [["a", None, ";' =1"], {"日": "2026-01-02", "b": [1, 2]}]
    raw = run(hostile_home, "sql", query, "--csv", "--raw")
    _, row = csv.reader(io.StringIO(raw.stdout))
    assert row[0] == '["a", null, "; =1"]'
    assert run(hostile_home, "sql", query, "--raw").exit_code == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((f"{sign}HYPERLINK(1)", f"'{sign}HYPERLINK(1)") for sign in "=+-@\u2212＝＋＠－﹦﹢﹫﹣"),
        ("\t=1", "'\t'=1"),
        ("a;=1+1", "a;'=1+1"),
        ("a;  ＝1", "a;'  ＝1"),
        ("a\t@SUM(1)", "a\t'@SUM(1)"),
        ("a\n+cmd", "a\n'+cmd"),
        (";=1;-2", ";'=1;-2"),
        ("a;-2x", "a;'-2x"),
        ("a;-2; +3 ;4", "a;-2; +3 ;4"),
        ("a; b-c", "a; b-c"),
        ("-5\n", "-5\n"),
        ("-1,234.50", "-1,234.50"),
        ("+5%", "+5%"),
        ("1e-5", "1e-5"),
        ("顧客-番号", "顧客-番号"),
        ("", ""),
    ],
)
def test_cells_of_csv(value: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_csv([], [[value, None]], raw=False)
    assert list(csv.reader(io.StringIO(capsys.readouterr().out)))[-1] == [expected, ""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("日本語、①㈱ 葛\U000e0100 が\u3099", "日本語、①㈱ 葛\U000e0100 が\u3099"),
        ("👩‍💻 👍🏽 🇯🇵 ☑\ufe0f 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",) * 2,
        ("a\r\nb\tc", "a\nb\tc"),
        ("a\rb", r"a\rb"),
        ("\x1b[2J\x9b\x7f\u202e\ud800\U000e0041", r"\x1b[2J\x9b\x7f\u202e\ud800\U000e0041"),
    ],
)
def test_printable(text: str, expected: str) -> None:
    assert printable(text) == expected
    assert json.loads(json_text(text)) == text


def test_what_progress_names_is_one_line() -> None:
    lines: list[str] = []
    display = ProgressDisplay(lines.append, announce=True)
    for begin in (display.phase, display.step):
        begin("source \x1b[2Jdocs\nforged")(1, 2)
    lines += [text for text, _ in display.describe(time.monotonic())]
    assert len(lines) >= 3
    assert all(line.startswith(r"source \x1b[2Jdocs\nforged") for line in lines)


def test_names_and_messages_are_one_line() -> None:
    assert printable_line("a\nb\r\n\tc") == r"a\nb\r\n\tc"
    assert message_of("a\n  b\x1b") == r"a b\x1b"
    assert len(message_of("x" * 5000)) == 1000


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.stem)
def test_no_module_prints_around_the_console(path: Path) -> None:
    if path.stem == "console":
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                pytest.fail(f"line {node.lineno}: print; use say")
            case ast.Attribute(value=ast.Name(id="click"), attr="echo" | "secho" | "echo_via_pager"):
                pytest.fail(f"line {node.lineno}: click.{node.attr}; use say")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys")), attr="write" | "writelines" | "buffer"):
                pytest.fail(f"line {node.lineno}: written to a stream of sys; use say")
            case ast.ImportFrom(module=str(module)) if module.startswith("rich") and path.stem != "progress":
                pytest.fail(f"line {node.lineno}: rich; use print_table or progress_bars")
