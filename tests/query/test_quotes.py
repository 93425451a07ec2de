"""Words found in a text: width, spaces and punctuation aside, and never a part of a number or word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.contracts.ports import EmbeddingKind
from rag_assets.pipeline.home import Home
from rag_assets.query.ask.quotes import COMPARES_LANGUAGES, carries, stands_in, unfounded

TEXT = """顧客名（必須）は 128 文字以内。
エラー E0004：重複登録 | client_name | $1,234.5 for 30 days at -5 °C
non- breaking
word — 50% of 9.2B
総務・人事のタスク･リスト"""


@pytest.mark.parametrize(
    "quote",
    [
        "顧客名（必須）は 128 文字以内。",
        "顧客名(必須)は１２８文字以内",
        "顧客名 必須",
        "Ｅ０００４:重複登録",
        "client name",
        "1,234.5 for 30 days",
        "breaking word",
        "$1,234.5",
        "50%",
        "128",
        "総務・人事",
        "タスク・リスト",
    ],
)
def test_words_are_found(quote: str) -> None:
    assert stands_in(quote, TEXT)


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "。",
        "顧客は必須",
        "顧客名は128",
        "12",
        "234.5",
        "E000",
        "0 days",
        "day",
        "Breaking Word",
        "50 of",
        "$30 days",
        "128 文字以内。 顧客名",
    ],
)
def test_other_words_are_not(quote: str) -> None:
    assert not stands_in(quote, TEXT)


@given(st.text(min_size=1, max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_whole_lines_are_found_whatever_they_hold(line: str, before: str, after: str) -> None:
    found = stands_in(line, f"{before}\n|{line}|\n{after}")
    assert found or not stands_in(line, line)


def test_a_long_text_is_looked_through_in_time() -> None:
    assert not stands_in("a " * 400 + "c", "a , " * 20_000 + "b")


@pytest.mark.parametrize(
    ("quote", "sentence"),
    [
        ("filed ten days before departure", "File a travel request ten days before departure."),
        ("E0004 は重複", "E0004 は重複を表します。"),
        ("30", "The period is 30."),
        ("重複登録エラー", "登録が重複するとエラーになります。"),
        ("it is so ordered by the board", "Yes."),
    ],
)
def test_words_carry_a_sentence(quote: str, sentence: str) -> None:
    assert carries(quote, sentence)


@pytest.mark.parametrize(
    ("quote", "sentence"),
    [
        ("30", "Everything is free of charge."),
        ("is", "Everything is free of charge."),
        ("Returns within 30 days", "Everything is free of charge."),
        ("重複", "E0004 は重複を表します。"),
        ("の場合は", "登録が重複するとエラーになります。"),
        ("郵便番号と住所", "登録が重複するとエラーになります。"),
        ("顧客名は64文字以内とする", "A customer name has 128 characters at most."),
        ("顧客", "Everything is free of charge."),
        ("", "Yes."),
    ],
)
def test_other_words_do_not(quote: str, sentence: str) -> None:
    assert not carries(quote, sentence)


@pytest.mark.parametrize(
    ("quote", "sentence", "expected"),
    [
        (
            "顧客名が重複しているときはエラーコードを返却する",
            "An error code is returned if the customer name is a duplicate.",
            True,
        ),
        ("バックアップは毎日午前三時に取得する", "The backup is taken every day at three in the morning.", True),
        ("Returns are accepted within 30 days with a receipt", "返品はレシートがあれば30日以内に受け付ける。", True),
        ("409 (Conflict)", "ステータスコードは 409 です。", True),
        ("返品は購入後三十日以内に限り受け付ける", "Returned goods are donated to a charity.", None),
        ("バックアップは毎日午前三時に取得する", "The budget was approved by the board in spring.", False),
        ("顧客名は64文字以内とする", "A customer name has 128 characters at most.", False),
    ],
)
def test_between_languages_meaning_decides(home: Home, quote: str, sentence: str, *, expected: bool | None) -> None:
    def meaning(first: str, second: str) -> float:
        one, other = home.embedder.embed([first, second], EmbeddingKind.PASSAGE)
        return float(one @ other)

    assert home.embedder.name.startswith(COMPARES_LANGUAGES)
    assert carries(quote, sentence, meaning) is expected


def test_between_languages_nobody_can_tell_without_an_embedder() -> None:
    assert carries("顧客名は重複してはならない", "Customer names must be unique.") is None
    assert carries("128 文字以内の顧客名", "A customer name has 128 characters at most.") is None


def test_numbers_and_codes_that_no_source_holds_are_named() -> None:
    sentence = "E0005 は E0004 と同じ 128 文字で、1234.5 ドル、64 文字、9.2 と 9.3、30 日間"
    assert unfounded(sentence, [TEXT, "other"]) == ("E0005", "64", "9.3")
    assert unfounded("１２８文字", [TEXT]) == ()
    assert unfounded("no figures", []) == ()
