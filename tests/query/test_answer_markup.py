"""Answers hold no links, images and HTML, also while they are written."""

import json
import random
import time

import pytest

from rag_assets.query.ask.markup import stable_beginning, without_markup
from rag_assets.query.ask.written.checking import joined

EVIDENCE = "See https://docs.example/a?b=1, and https://docs.example/wiki_(x)."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Read [the page](https://evil.example/?q=1) now", "Read the page now"),
        ("![x](https://evil.example/?q=SECRET)Done.", "Done."),
        ("[![x](https://evil.example/1)](https://evil.example/2) ok", " ok"),
        ("[click](javascript:alert(1)) [b](//evil.example) [c](/d 'e')", "click b c"),
        ("[text][ref] and [ref]: //evil.example", "text and [ref] : //evil.example"),
        ("売上は10です[1](https://evil.example/データ)", "売上は10です[1] ((link removed)データ)"),
        ("<img src=x onerror=alert(1)><https://evil.example/>", "‹img src=x onerror=alert(1)><(link removed)>"),
        ("</p><!-- x --><?php", "‹/p>‹!-- x -->‹?php"),
        ("<SCRIPT>x</Script><script/x><svg><title>", "‹SCRIPT>x‹/Script>‹script/x>‹svg>‹title>"),
        ("<pom onload=x><pom\nstyle=x><pom/onload=x>", "‹pom onload=x>‹pom\nstyle=x>‹pom/onload=x>"),
        ("<my-widget><xs:element><a@b.example><pom", "‹my-widget>‹xs:element>‹a@b.example>‹pom"),
        ("<ſcript><scr<script>ipt>", "<ſcript>‹scr‹script>ipt>"),
        ("<dependencyManagement><groupId>x</groupId>", "<dependencyManagement><groupId>x</groupId>"),
        ("List<String> and <T_1>", "List<String> and <T_1>"),
        ("See https://docs.example/a?b=1.", "See https://docs.example/a?b=1."),
        ("https://docs.example/a?b=1を参照", "https://docs.example/a?b=1 を参照"),
        ("https://docs.example/a?b=1SECRET", "(link removed)"),
        ("詳細はhttps://evil.example/?q=Sを参照", "詳細は(link removed)を参照"),
        ("_https://evil.example/S_ はwww.evil.example/S", "_(link removed)_ は(link removed)"),
        ("1https://evil.example", "1(link removed)"),
        ("https://docs.example/a?b=1{SECRET} https://docs.example/a?b=1|S", "(link removed)} (link removed)"),
        ("www.evil.example/x mailto:a@evil.example data:text/html,x", "(link removed) (link removed) (link removed)"),
        ("1 < 2, a[0] = b, [注], 売上(注) and x@example.jp", "1 < 2, a[0] = b, [注], 売上(注) and x@example.jp"),
        ("a\x1b[31mb\u202e\U000e0041c", "a[31mbc"),
    ],
)
def test_nothing_is_a_link(text: str, expected: str) -> None:
    assert without_markup(text, EVIDENCE) == expected


def test_what_is_told_while_it_is_written_is_told_at_the_end() -> None:
    generator = random.Random(1)
    parts = [*"[]()!<a\n:", "b ", " ", "https://evil/x", "https://docs.example/a?b=1", "日本", "。", "[1]"]
    parts += ["![i](https://e/1)", "www.", "img", "//", "<pom>", "</pom>"]
    for _ in range(300):
        text = "".join(generator.choice(parts) for _ in range(generator.randint(1, 14)))
        whole = without_markup(text, EVIDENCE)
        for end in range(len(text)):
            begun = without_markup(stable_beginning(text[:end]), EVIDENCE)
            assert whole.startswith(begun.rstrip()), json.dumps([text, end])


@pytest.mark.parametrize("text", ["[" * 200_000, "[" * 40_000 + "](b)" * 40_000, "![[a](" * 33_000])
def test_brackets_without_end_cost_linear_time(text: str) -> None:
    began = time.process_time()
    plain = without_markup(text, EVIDENCE)
    stable_beginning(text)
    assert time.process_time() - began < 1
    assert "](" not in plain
    assert "][" not in plain


def test_numbers_of_sources_do_not_become_links() -> None:
    assert joined([("見よ", [1]), ("(//evil.example)", [2])]) == "見よ[1] (//evil.example) [2]"
