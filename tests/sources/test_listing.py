"""Listing sources: what is taken, what is left out, and what documents are called."""

import os
import socket
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from rag_assets.contracts.errors import SettingsError, SourceError
from rag_assets.pipeline.settings import SourceSettings, load_settings
from rag_assets.sources.listing import fetch, matches, parse_source, scan_source

DEFAULTS = SourceSettings()


def ids(
    location: str, include: tuple[str, ...] = DEFAULTS.include, exclude: tuple[str, ...] = DEFAULTS.exclude
) -> list[str]:
    return [file.document_id for file in scan_source(parse_source(location), include, exclude).files]


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def test_names_of_every_kind_are_listed(tmp_path: Path) -> None:
    names = ["a'b\"c.xlsx", "with space #1.pdf", "絵文字😀.md", "x%20y.txt", "深/い/所.docx", "[1]*?.csv"]
    write(tmp_path / "specs", *names)
    assert ids(str(tmp_path / "specs")) == sorted(f"specs/{name}" for name in names)


def test_decomposed_kana_become_composed_in_the_id_and_the_file_is_still_found(tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "データ.xlsx")
    write(tmp_path / "specs", decomposed)
    [file] = scan_source(parse_source(str(tmp_path / "specs")), DEFAULTS.include, DEFAULTS.exclude).files
    assert file.document_id == "specs/データ.xlsx"
    assert Path(file.path).read_bytes() == b"x"


def test_the_id_of_a_decomposed_twin_does_not_depend_on_where_the_source_lies(tmp_path: Path) -> None:
    for place in ("here", "there"):
        write(tmp_path / place / "specs", "ガ.txt", unicodedata.normalize("NFD", "ガ.txt"))
    assert ids(str(tmp_path / "here/specs")) == ids(str(tmp_path / "there/specs"))


def test_a_name_that_is_no_utf8_is_listed_and_readable(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    with open(os.path.join(os.fsencode(tmp_path), b"specs", b"\x83e\x83X\x83g.txt"), "wb") as file:  # noqa: PTH118, PTH123
        file.write(b"x")
    [found] = scan_source(parse_source(str(tmp_path / "specs")), DEFAULTS.include, DEFAULTS.exclude).files
    found.document_id.encode()
    with open(found.path, "rb") as opened:  # noqa: PTH123
        assert opened.read() == b"x"


def test_temporary_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "specs", "~$open.xlsx", "sub/~$open.xlsx", ".hidden", ".git/config", "Thumbs.db", "kept.xlsx")
    assert ids(str(tmp_path / "specs")) == ["specs/kept.xlsx"]


def test_links_are_followed_inside_the_root_only(tmp_path: Path) -> None:
    write(tmp_path / "specs", "real/a.txt")
    write(tmp_path / "outside", "secret.txt")
    (tmp_path / "specs/inner").symlink_to(tmp_path / "specs/real")
    (tmp_path / "specs/leak").symlink_to(tmp_path / "outside")
    (tmp_path / "specs/leak.txt").symlink_to(tmp_path / "outside/secret.txt")
    (tmp_path / "specs/real/loop").symlink_to(tmp_path / "specs")
    (tmp_path / "specs/broken.txt").symlink_to(tmp_path / "specs/nowhere.txt")
    assert ids(str(tmp_path / "specs")) == ["specs/inner/a.txt", "specs/real/a.txt"]


def test_include_and_exclude(tmp_path: Path) -> None:
    write(tmp_path / "specs", "a.xlsx", "b.pdf", "old/c.xlsx", "old/deep/d.xlsx")
    assert ids(str(tmp_path / "specs"), ("**/*.xlsx",), ("old/**",)) == ["specs/a.xlsx"]
    assert ids(str(tmp_path / "specs"), ("*.xlsx", "old/*/*.xlsx"), ()) == ["specs/a.xlsx", "specs/old/deep/d.xlsx"]


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("**", "a/b.txt", True),
        ("*", "a/b.txt", False),
        ("a/**", "a/b/c", True),
        ("**/c", "c", True),
        ("a[1].txt", "a[1].txt", True),
        ("?.txt", "あ.txt", True),
    ],
)
def test_globs(glob: str, path: str, expected: bool) -> None:
    assert matches(path, [glob]) is expected


def test_the_fingerprint_follows_size_and_time(tmp_path: Path) -> None:
    write(tmp_path / "specs", "a.txt")
    source = parse_source(str(tmp_path / "specs"))

    def fingerprint() -> str:
        return scan_source(source, DEFAULTS.include, DEFAULTS.exclude).files[0].fingerprint

    first = fingerprint()
    assert fingerprint() == first
    os.utime(tmp_path / "specs/a.txt", ns=(1, 1))
    second = fingerprint()
    assert second != first
    (tmp_path / "specs/a.txt").write_bytes(b"y")
    os.utime(tmp_path / "specs/a.txt", ns=(1, 1))
    assert fingerprint() != second, "the same size and time, but other content"


def test_a_tag_of_the_content_is_told_from_a_time(tmp_path: Path) -> None:
    write(tmp_path / "specs", "a.txt")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "specs/a.txt", "specs/a.txt")
    [zipped] = scan_source(parse_source(f"zip://specs::{tmp_path / 'a.zip'}"), ("**",), ()).files
    [local] = scan_source(parse_source(str(tmp_path / "specs")), ("**",), ()).files
    assert (zipped.has_content_tag, local.has_content_tag) == (True, False)
    assert zipped.fingerprint == f"1:{zlib.crc32(b'x')}"


def test_a_missing_root_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a/b=/nowhere; a NAME before `=` holds no `/`"):
        ids("a/b=/nowhere")
    with pytest.raises(SourceError, match="no such folder: .*gone"):
        ids(str(tmp_path / "gone"))
    write(tmp_path / "specs", "a.txt")
    with pytest.raises(
        SourceError, match=f"source x: {tmp_path}/specs/a.txt is a file; name its folder: {tmp_path}/specs$"
    ):
        ids(f"x={tmp_path}/specs/a.txt")


def test_sources_are_named_after_their_folder_or_as_told(tmp_path: Path) -> None:
    assert parse_source(f"{tmp_path}/仕様/").name == "仕様"
    assert parse_source(f"spec={tmp_path}").name == "spec"
    assert parse_source("s3://bucket/specs/").location == "s3://bucket/specs"
    (tmp_path / "a=b").mkdir()
    assert parse_source(f"{tmp_path}/a=b").location == f"{tmp_path}/a=b"
    with pytest.raises(SettingsError, match="NAME="):
        parse_source("/")
    with pytest.raises(SettingsError, match="source '': empty"):
        parse_source(" ")


def test_an_fsspec_source_is_listed() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe({"/bucket/specs/仕様 #1.md": b"# a", "/bucket/specs/sub/b.csv": b"a,b", "/bucket/other.txt": b"x"})
    try:
        files = scan_source(parse_source("memory://bucket/specs"), DEFAULTS.include, DEFAULTS.exclude).files
        assert [file.document_id for file in files] == ["specs/sub/b.csv", "specs/仕様 #1.md"]
        assert [file.size_bytes for file in files] == [3, 3]
        assert not files[0].local
        with pytest.raises(SourceError):
            ids("memory://bucket/nowhere")
        with pytest.raises(SourceError, match=r"/b.csv is a file; name its folder: memory://bucket/specs/sub$"):
            ids("memory://bucket/specs/sub/b.csv")
    finally:
        memory.rm("/bucket", recursive=True)


def test_a_remote_name_that_looks_like_a_uri_is_fetched(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    names = ["a::b.txt", "zip::c#d?.txt", "[x]*.txt", "{e}.txt"]
    memory.pipe({f"/odd/specs/{name}": name.encode() for name in names})
    try:
        files = scan_source(parse_source("memory://odd/specs"), DEFAULTS.include, DEFAULTS.exclude).files
        assert sorted(file.document_id for file in files) == sorted(f"specs/{name}" for name in names)
        for file in files:
            fetch(file, str(tmp_path / "target"))
            assert (tmp_path / "target").read_text() == file.document_id.removeprefix("specs/")
    finally:
        memory.rm("/odd", recursive=True)


def test_what_is_no_file_is_omitted_and_named(tmp_path: Path) -> None:
    write(tmp_path / "specs", "a.txt", "deep/b.txt")
    (tmp_path / "specs/self").symlink_to(tmp_path / "specs/self")
    (tmp_path / "specs/broken.txt").symlink_to(tmp_path / "specs/nowhere.txt")
    (tmp_path / "specs/out").symlink_to(tmp_path)
    (tmp_path / "specs/deep/up").symlink_to(tmp_path / "specs")
    os.mkfifo(tmp_path / "specs/pipe.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "specs/socket"))
        found = scan_source(parse_source(str(tmp_path / "specs")), DEFAULTS.include, DEFAULTS.exclude)
    assert [file.document_id for file in found.files] == ["specs/a.txt", "specs/deep/b.txt"]
    assert found.unreadable == ()
    assert found.omissions == (
        "specs/broken.txt: a link that leads nowhere (No such file or directory)",
        "specs/deep/up: a link to a folder above itself",
        "specs/out: a link out of the source",
        "specs/pipe.txt: a named pipe",
        "specs/self: a link that leads nowhere (Too many levels of symbolic links)",
        "specs/socket: a socket",
    )
    assert scan_source(parse_source(str(tmp_path / "specs")), ("**",), ("**",)).omissions == ()


@pytest.mark.parametrize("names", [("ガ.txt",), ("ガ/ギ.txt", "ガ/a.txt")])
def test_the_file_of_a_composed_name_has_the_plain_id_whichever_came_first(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    decomposed = [unicodedata.normalize("NFD", name) for name in names]
    write(tmp_path / "specs", *names)
    specs = parse_source(str(tmp_path / "specs"))
    alone = {file.path: file.document_id for file in scan_source(specs, ("**",), ()).files}
    write(tmp_path / "specs", *decomposed)
    both = {file.path: file.document_id for file in scan_source(specs, ("**",), ()).files}
    assert both.items() >= alone.items()
    assert len({*both.values()}) == 2 * len(names)
    assert all(name.endswith(".txt") for name in both.values())
    assert list(alone.values()) == sorted(f"specs/{name}" for name in names)


@pytest.fixture
def locked_folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folders named `locked` cannot be listed, as without permission; tests may run as root, who can."""
    scandir = os.scandir

    def refuse(path: str | Path) -> object:
        if os.path.basename(path) in {"locked", ".locked"}:  # noqa: PTH119
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    yield
    monkeypatch.undo()


@pytest.mark.usefixtures("locked_folders")
def test_an_unreadable_folder_is_told_and_hides_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "specs", "a.txt", "locked/b.txt", "z/c.txt")
    found = scan_source(parse_source(str(tmp_path / "specs")), DEFAULTS.include, DEFAULTS.exclude)
    assert [file.document_id for file in found.files] == ["specs/a.txt", "specs/z/c.txt"]
    assert found.unreadable == (f"{tmp_path}/specs/locked: Permission denied",)


@pytest.mark.usefixtures("locked_folders")
@pytest.mark.parametrize("glob", ["locked/**", "**/locked/**", "locked/**/*", "**"])
def test_an_excluded_folder_is_not_looked_into(tmp_path: Path, glob: str) -> None:
    write(tmp_path / "specs", "a.txt", "locked/b.txt", ".locked/c.txt")
    found = scan_source(parse_source(str(tmp_path / "specs")), ("**",), (*DEFAULTS.exclude, glob))
    assert found.unreadable == ()


def test_a_file_named_like_an_excluded_folder_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "specs", "old", "new/old/a.txt", "new/deep/b.txt")
    assert ids(str(tmp_path / "specs"), ("**",), ("**/old/**", "*/*")) == ["specs/new/deep/b.txt", "specs/old"]


class Dated:
    """An entry of a folder with a time that few file systems can hold."""

    def __init__(self, entry: os.DirEntry[str], nanoseconds: int) -> None:
        self._entry, self._nanoseconds = entry, nanoseconds

    def __getattr__(self, name: str) -> object:
        return getattr(self._entry, name)

    def stat(self) -> SimpleNamespace:
        return SimpleNamespace(st_size=1, st_mtime_ns=self._nanoseconds, st_ctime_ns=2, st_ino=3)


@pytest.mark.parametrize("seconds", [10**12, -(10**11), 10**18])
def test_a_time_out_of_range_is_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    write(tmp_path / "specs", "a.txt")
    entries = [Dated(entry, seconds * 10**9) for entry in os.scandir(tmp_path / "specs")]
    monkeypatch.setattr(os, "scandir", lambda _: nullcontext(entries))
    [file] = scan_source(parse_source(str(tmp_path / "specs")), ("**",), ()).files
    assert file.modified_at is None
    assert file.fingerprint == f"1:{seconds * 10**9}:2:3"


def test_excluded_paths_are_left_out_also_behind_links(tmp_path: Path) -> None:
    write(tmp_path / "specs", "a.txt", "rag/lake/b.parquet", "ragged/c.txt")
    (tmp_path / "specs/link").symlink_to(tmp_path / "specs/rag")
    (tmp_path / "specs/link.parquet").symlink_to(tmp_path / "specs/rag/lake/b.parquet")
    source, home = parse_source(str(tmp_path / "specs")), os.path.realpath(tmp_path / "specs/rag")
    found = scan_source(source, ("**",), (), [home]).files
    assert [file.document_id for file in found] == ["specs/a.txt", "specs/ragged/c.txt"]
    below = scan_source(parse_source(f"{home}/lake"), ("**",), (), [home]).files
    assert [file.document_id for file in below] == ["lake/b.parquet"]
    with pytest.raises(SourceError, match="the knowledge base itself"):
        scan_source(parse_source(home), ("**",), (), [home])


def test_several_sources_in_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_SOURCES", "/data/a:s3://bucket/b:name=/data/c")
    assert load_settings().sources == ("/data/a", "s3://bucket/b", "name=/data/c")
    monkeypatch.setenv("RAG_SOURCES", ' ["/data/a:b", "s3://bucket/b", "name=/data/c=d"]')
    assert load_settings().sources == ("/data/a:b", "s3://bucket/b", "name=/data/c=d")
    monkeypatch.setenv("RAG_SOURCES", '["/data/a:b"')
    with pytest.raises(SettingsError, match="JSON array"):
        load_settings()


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("RAG_SERCH__K", "RAG_SERCH__K: no such setting; did you mean RAG_SEARCH__K?"),
        ("rag_serch__k", "rag_serch__k: no such setting; did you mean RAG_SEARCH__K?"),
        ("RAG_SEARCH_K", "RAG_SEARCH_K: no such setting; did you mean RAG_SEARCH__K?"),
        ("RAG_HOM", "RAG_HOM: no such setting; did you mean RAG_HOME?"),
        ("RAG_HOMES", "did you mean RAG_HOME?"),
        ("RAG_HOEM", "did you mean RAG_HOME?"),
        ("RAG_NOME", "did you mean RAG_HOME?"),
        ("RAG_BUDGETS_USD", "did you mean RAG_BUDGET_USD?"),
        ("RAG_SOURCE", "RAG_SOURCE: no such setting; did you mean RAG_SOURCES?"),
        ("RAG_SEARCH", "RAG_SEARCH: no such setting; did you mean RAG_SEARCH__…?"),
        ("RAG_EVALUATION__JUDGE", "did you mean RAG_EVALUATION__JUDGE__…?"),
        ("RAG_LANGUAGEMODEL__MODEL", "did you mean RAG_LANGUAGE_MODEL__MODEL?"),
        ("RAG_SEARCH__KK", "RAG_SEARCH__KK: search.kk: Extra inputs are not permitted; expected one of .*, k, "),
    ],
)
def test_a_variable_that_is_a_setting_misspelt_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, told: str
) -> None:
    monkeypatch.setenv(variable, "3")
    with pytest.raises(SettingsError, match=f"^settings: .*{told.removesuffix('?')}"):
        load_settings()


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("RAG_DB__HOST", ["RAG_DB__HOST is no setting and is ignored"]),
        ("RAG_SERCH__COLOUR", ["RAG_SERCH__COLOUR is no setting and is ignored; did you mean RAG_SEARCH__…?"]),
        ("RAG_API_KEY", ["RAG_API_KEY is no setting and is ignored; did you mean RAG_API_TOKEN?"]),
        ("RAG_TEST_MODELS", []),
        ("RAG_SERVICE_HOST", []),  # as Kubernetes names a service `rag` to its pods
        ("RAG_PORT_8080_TCP", []),
        ("RAGGED__K", []),
        ("RAG_BUDGET_USD", []),
        ("RAG_SEARCH__K", []),
        ("RAG_EVALUATION__JUDGE__CONTEXT_TOKENS", []),
    ],
)
def test_a_variable_that_only_looks_like_a_setting_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, variable: str, told: list[str]
) -> None:
    monkeypatch.setenv(variable, "1000")
    for _ in range(2):
        assert load_settings().search.mode == "auto"
    assert [record.getMessage() for record in caplog.records] == told
    monkeypatch.setenv(variable, "")
    load_settings()


@pytest.mark.parametrize(
    ("variable", "setting", "value", "told"),
    [
        ("RAG_OPERATION__SCHEDULE_CRON", "operation.schedule_cron", "every", "expected the fields minute, "),
        ("RAG_OPERATION__FULL_CHECK_CRON", "operation.full_check_cron", "0 24 * * *", "'24' is no hour"),
        ("RAG_SEARCH__MODE", "search.mode", "foo", "unknown mode 'foo', expected one of auto, "),
        ("RAG_SEARCH__ASK_MODE", "search.ask_mode", "auto,vector", "auto chooses a mode by itself"),
    ],
)
def test_schedules_and_modes_are_checked_when_settings_are_read(
    monkeypatch: pytest.MonkeyPatch, variable: str, setting: str, value: str, told: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=f"^settings: {variable}: {setting}: .*{told}"):
        load_settings()


def test_a_section_may_be_a_json_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_SEARCH", ' {"k": 3}')
    assert load_settings().search.k == 3


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAG_CHUNKING__SIZE_TOKENS", "many")
    with pytest.raises(SettingsError, match="^settings: RAG_CHUNKING__SIZE_TOKENS: chunking.size_tokens: Input should"):
        load_settings()
    monkeypatch.delenv("RAG_CHUNKING__SIZE_TOKENS")
    monkeypatch.setenv("RAG_BUDGET_USD", "-1")
    with pytest.raises(SettingsError, match="^settings: RAG_BUDGET_USD: language_model.budget_usd: "):
        load_settings()
    monkeypatch.delenv("RAG_BUDGET_USD")
    path = tmp_path / "own.toml"
    monkeypatch.setenv("RAG_CONFIG", str(path))
    for text, words in (
        ("[chunking]\nsize = 3", "chunking.size: Extra inputs .*; expected one of .*size_tokens"),
        ("colour = 3", "colour: Extra inputs .*; expected one of chunking, .*sources"),
        ("[chunking", "Expected "),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SettingsError, match=f"^settings: {path}: {words}"):
            load_settings()
