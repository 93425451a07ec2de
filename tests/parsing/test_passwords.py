import logging
import os
import shutil
from dataclasses import astuple
from pathlib import Path

import pytest
from click.testing import CliRunner
from golden import CORPUS, DATA, LIMITS, needs_corpus

from rag_assets.cli import main
from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import SettingsError
from rag_assets.contracts.tables import DOCUMENTS
from rag_assets.parsing.documents import update_documents
from rag_assets.parsing.parse import parse_bytes
from rag_assets.parsing.passwords import Passwords
from rag_assets.parsing.pool import ParseJob, parse_files
from rag_assets.pipeline.home import Home
from rag_assets.pipeline.settings import load_settings
from rag_assets.store.lake import shard_of

PDF = DATA / "pdf" / "password.pdf"
WORKBOOK = DATA / "excel" / "password.xlsx"


@pytest.mark.parametrize(("path", "password"), [(PDF, "foo"), (WORKBOOK, "tika")])
def test_a_password_opens_a_file(path: Path, password: str) -> None:
    document = parse_bytes(path.read_bytes(), path.name, LIMITS, ("wrong", password))
    assert document.failures == ()
    assert any(block.text for page in document.pages for block in page.blocks)


@pytest.mark.parametrize("path", [PDF, WORKBOOK])
def test_without_a_password_the_cause_says_what_to_set(path: Path) -> None:
    (failure,) = parse_bytes(path.read_bytes(), path.name, LIMITS).failures
    assert failure.cause is FailureCause.ENCRYPTED
    assert failure.message.endswith("encrypted: a password is needed (RAG_PASSWORDS)")


@pytest.mark.parametrize("path", [PDF, WORKBOOK])
def test_a_wrong_password_is_not_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        (failure,) = parse_bytes(path.read_bytes(), path.name, LIMITS, ("open sesame",)).failures
    assert failure.message.endswith("encrypted: none of the passwords given fits")
    assert "sesame" not in failure.message + caplog.text


@needs_corpus
def test_passwords_of_the_corpus_open_its_files() -> None:
    known = {
        "excelize__encryptSHA1.xlsx": "password",
        "excelize__encryptSHA512.xlsx": "password",
        "pdfjs__issue15893_reduced.pdf": "test",
        "pdfjs__issue6010_1.pdf": "abc",
        "pdfjs__print_protection.pdf": "password",
        "pdfminer__rc4-40.pdf": "foo",
        "poi__protected_passtika.xlsx": "tika",
        "poi__xor-encryption-abc.xls": "abc",
    }
    for name, password in known.items():
        document = parse_bytes((CORPUS / "encrypted" / name).read_bytes(), name, LIMITS, (password,))
        assert document.failures == (), name


def test_the_setting_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_PASSWORDS", "one two\n\nthree,four\n")
    monkeypatch.setenv("RAG_PARSING__PAGES", "7")
    settings = load_settings()
    assert [password.get_secret_value() for password in settings.parsing.passwords] == ["one two", "three,four"]
    assert settings.parsing.pages == 7
    assert "three" not in f"{settings!r} {settings} {settings.model_dump_json()}"


def test_the_setting_is_refused_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[parsing]\npasswords = ["hidden"]\n')
    monkeypatch.setenv("RAG_CONFIG", str(path))
    with pytest.raises(SettingsError, match="expected in the environment, found in the file") as caught:
        load_settings()
    assert "hidden" not in str(caught.value)


def test_passwords_are_in_no_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Home(load_settings(home=tmp_path))
    monkeypatch.setenv("RAG_PASSWORDS", "foo")
    secret = Home(load_settings(home=tmp_path))
    assert [each.get_secret_value() for each in secret.settings.parsing.passwords] == ["foo"]
    assert astuple(secret.options.parsing) == astuple(plain.options.parsing)


def test_passwords_reach_the_parsing_process_but_not_its_command_line(tmp_path: Path) -> None:
    jobs = [ParseJob(f"{number}.pdf", PDF) for number in range(3)]
    seen = ""
    for _, document in parse_files(jobs, workers=1, limits=LIMITS, passwords=("sesame", "foo")):
        assert document.failures == ()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                    seen += (process / "cmdline").read_text() + (process / "environ").read_text()
            except OSError:
                continue
    assert "rag_assets.parsing.pool" in seen
    assert "sesame" not in seen


def test_encrypted_files_are_tried_again_once_passwords_are_given(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    shutil.copy(PDF, files / "locked.pdf")
    (files / "open.txt").write_text("plain text")
    home = Home(load_settings(home=tmp_path / "home", sources=(f"files={files}",)))
    listing, key = home.listing(), tmp_path / "key"

    def parse(*passwords: str) -> tuple[int, dict[str, str]]:
        report = update_documents(
            home.lake,
            listing,
            sorted(map(shard_of, listing.files)),
            LIMITS,
            1,
            lambda *_: None,
            passwords=Passwords(passwords, key),
        )
        found = home.lake.read(DOCUMENTS, None, ["document_id", "status"]).to_pylist()
        return report.total().computed, {row["document_id"]: row["status"] for row in found}

    locked, plain = "files/locked.pdf", "files/open.txt"
    assert parse() == (2, {locked: "failed", plain: "parsed"})
    assert parse() == (0, {locked: "failed", plain: "parsed"})
    assert parse("wrong") == (1, {locked: "failed", plain: "parsed"})
    assert parse("wrong") == parse() == (0, {locked: "failed", plain: "parsed"})
    assert parse("other") == (1, {locked: "failed", plain: "parsed"})
    assert parse("other", "wrong") == (0, {locked: "failed", plain: "parsed"}), "either was tried"
    assert key.stat().st_mode & 0o077 == 0
    other = Passwords(("other",), tmp_path / "lost")
    assert other.has_others(frozenset()), "without a key none is known to have been tried"
    assert not other.key_path.exists(), "a look writes nothing"
    key.write_bytes(b"")
    assert parse("wrong") == (1, {locked: "failed", plain: "parsed"}), "nothing tells what was tried"
    assert parse("wrong", "foo") == (1, {locked: "parsed", plain: "parsed"})
    assert parse("wrong", "foo") == (0, {locked: "parsed", plain: "parsed"})


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (PDF, "not indexed: files/password.pdf: the PDF is encrypted: a password is needed"),
        (WORKBOOK, "not indexed: files/password.xlsx: the xlsx file is encrypted: a password is needed"),
    ],
)
def test_the_cause_is_printed_once(tmp_path: Path, path: Path, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tmp_path / "files"
    files.mkdir()
    shutil.copy(path, files)
    monkeypatch.setenv("RAG_SOURCES", str(files))
    home = Home(load_settings(home=tmp_path / "home"))
    listing = home.listing()
    update_documents(home.lake, listing, sorted(map(shard_of, listing.files)), LIMITS, 1, lambda *_: None)
    assert told in CliRunner().invoke(main, ["--home", str(home.path), "status"]).stdout
