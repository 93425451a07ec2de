"""Which names and sites a server answers."""

import pytest

from rag_assets.contracts.exposure import (
    Authority,
    is_loopback,
    is_own_name,
    is_own_page,
    parse_authority,
)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((name, True) for name in ("127.0.0.1", "::1", "[::1]", "localhost", "127.1.2.3")),
        *((name, False) for name in ("0.0.0.0", "::", "", "localhost.evil.example", "10.0.0.1")),
    ],
)
def test_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rag.example", Authority("rag.example", None)),
        ("RAG.Example.:8080", Authority("rag.example", 8080)),
        ("127.0.0.1:80", Authority("127.0.0.1", 80)),
        ("[::1]", Authority("::1", None)),
        ("[0:0:0:0:0:0:0:1]:3000", Authority("::1", 3000)),
        ("rag.example:", Authority("rag.example", None)),
        *(
            (text, None)
            for text in (
                *("", ".", ":80", "::1", "localhost:evil.example", "localhost:80:90", "localhost:65536", "a:８０"),
                *(
                    "user@localhost",
                    "localhost@evil.example",
                    "evil.example/localhost",
                    "localhost evil",
                    "[::1",
                    "::1]",
                ),
                *("[localhost]", "[::1]evil.example", "[::1]:80@evil.example", "localhost,evil.example", "local\nhost"),
                *("localhost\n", "%6cocalhost", "[fe80::1%25eth0]"),
            )
        ),
    ],
)
def test_hosts_are_read_as_a_whole_or_not_at_all(text: str, expected: Authority | None) -> None:
    assert parse_authority(text) == expected


@pytest.mark.parametrize(
    ("host", "names", "loopback", "expected"),
    [
        ("localhost:3000", (), True, True),
        ("[::1]:3000", (), True, True),
        ("evil.example", (), True, False),
        ("localhost:evil.example", (), True, False),
        ("localhost.evil.example", (), True, False),
        ("", (), True, False),
        ("RAG.example.:443", ("rag.Example",), True, True),
        ("[2001:db8::1]", ("2001:db8::1",), False, True),
        ("evil.example", ("rag.example",), False, False),
        ("evil.example", (), False, True),
        ("localhost:evil.example", (), False, False),
    ],
)
def test_a_server_is_called_by_its_names(host: str, names: tuple[str, ...], loopback: bool, expected: bool) -> None:
    assert is_own_name(host, names, loopback=loopback) is expected


@pytest.mark.parametrize(
    ("host", "origin", "fetch_site", "expected"),
    [
        ("localhost", None, None, True),
        ("localhost:3000", "http://localhost:3000", "same-origin", True),
        ("LOCALHOST:80", "http://localhost", None, True),
        ("rag.example", "https://rag.example:443", None, True),
        ("[::1]:3000", "http://[::1]:3000", None, True),
        ("localhost:3000", "http://localhost:8080", None, False),
        ("localhost", "http://evil.example", None, False),
        ("localhost", "http://localhost@evil.example", None, False),
        ("localhost", "null", None, False),
        ("localhost", "", None, False),
        ("localhost", None, "cross-site", False),
        ("localhost", None, "same-site", False),
        ("localhost", None, "none", True),
    ],
)
def test_pages_of_other_sites_are_told_apart(
    host: str, origin: str | None, fetch_site: str | None, expected: bool
) -> None:
    assert is_own_page(host, origin, fetch_site) is expected
