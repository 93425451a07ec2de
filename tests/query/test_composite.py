"""Which questions ask for several things, and what their parts are."""

import pytest

from rag_assets.query.search.composite import parts_of


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "保存期間は規程と手引でそれぞれ何年ですか？",
            ["保存期間は規程でそれぞれ何年ですか？", "保存期間は手引でそれぞれ何年ですか？"],
        ),
        (
            "Compare the revenue in fiscal 2022 and fiscal 2023.",
            ["Compare the revenue in fiscal 2022.", "Compare the revenue in fiscal 2023."],
        ),
        (
            "登録に失敗したときの状態はどうなる？また、試験ではどのケースで確認している？",
            ["登録に失敗したときの状態はどうなる？", "試験ではどのケースで確認している？"],
        ),
        (
            "How long is a token valid, and who may renew it?",
            ["How long is a token valid", "who may renew it?"],
        ),
    ],
)
def test_a_question_for_several_things_has_parts(question: str, parts: list[str]) -> None:
    assert [part.text for part in parts_of(question)] == parts


def test_parts_of_a_comparison_tell_what_they_ask_of() -> None:
    assert [part.name for part in parts_of("保存期間は規程と手引でそれぞれ何年ですか？")] == ["規程", "手引"]


def test_later_clauses_are_searched_with_what_the_first_names() -> None:
    first, second = parts_of("How long is a session token valid, and who may renew it?")
    assert (first.context, first.searched) == ("", "How long is a session token valid")
    assert "session token" in second.searched


@pytest.mark.parametrize(
    ("question", "gone"),
    [
        ("How much was booked for lawn care in 2025, and how much in the first half of 2026?", "2025"),
        ("令和5年度の会費収入はいくらですか？また、令和6年度はいくらですか？", "令和5"),
    ],
)
def test_a_later_clause_with_a_period_of_its_own_is_not_searched_with_that_of_the_first(
    question: str, gone: str
) -> None:
    first, second = parts_of(question)
    assert gone in first.searched
    assert gone not in second.searched
    assert "lawn care" in second.searched or "会費収入" in second.searched


@pytest.mark.parametrize(
    "question",
    [
        "トークンの有効期限は？",
        "What is the return policy?",
        "顧客名と住所の桁数は？",
        "9,000円と8,000円の品を一度に買うとどちらの特例になりますか",
        "Research and development costs of 2023?",
        "エラーとは何ですか。教えてください。",
        "x" * 600 + "とyの違い",
    ],
)
def test_a_question_for_one_thing_has_none(question: str) -> None:
    assert parts_of(question) == ()
