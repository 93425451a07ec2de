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
        ("本店と支店とで何人ずつですか", ["本店とで何人ずつですか", "支店とで何人ずつですか"]),
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
        ("定義書を作ったのは誰で、作成日はいつ？", ["定義書を作ったのは誰", "作成日はいつ？"]),
        (
            "申請の区分コードは何で、要綱では何台まで助成される？",
            ["申請の区分コードは何", "要綱では何台まで助成される？"],
        ),
        ("窓口の電話は何番で、受付は何時までですか", ["窓口の電話は何番", "受付は何時までですか"]),
    ],
)
def test_a_question_for_several_things_has_parts(question: str, parts: list[str]) -> None:
    assert [part.text for part in parts_of(question)] == parts


@pytest.mark.parametrize(
    "question",
    [
        "暗号化は何通りで、それぞれ何ですか",
        "介護休業は合計何日まで、何回に分けて取れますか",
        "これは何で、使うと便利ですか",
        "保存の期間は何年ですか",
        "年末調整の書類はどこで、誰に提出しますか",
        "勤続何年で、何日の年休がもらえますか",
        "入社何年で、役職手当はいくらになりますか",
        "解約は契約から何日で、いくら返金されますか",
        "遅刻は何回で、どんな処分になりますか",
        "サーバが停電か何かで、システムが止まったときはどう対応しますか",
        "顧客の担当が誰で、いつ訪問したかを記録するテーブルはどれですか",
        "入会金の合計は何円で、その内訳はどうなっていますか",
        "特別休暇の種類は何種類で、具体的には何ですか",
    ],
)
def test_what_one_answer_tells_has_no_parts(question: str) -> None:
    assert parts_of(question) == ()


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
    ("question", "context"),
    [
        ("2023年度の交通費の上限はいくらですか？また、2000円を超えるときは誰が承認しますか", "2023年度の交通費の上限"),
        ("2023年度の売上はいくらですか？また、部品2010の在庫はいくつですか", "2023年度の売上"),
        ("参加費1980円の講座の会場はどこですか？また、2024年の講師は誰ですか", "参加費1980円の講座の会場"),
        ("2023年度の交通費の上限はいくらですか？また、2024年度はいくらですか", "交通費の上限"),
        ("2023年4月1日(土)の会議の参加者は誰ですか？また、2024年4月1日の議題は何ですか", "会議の参加者"),
        ("2023/4/1の会議の参加者は誰ですか？また、2024年4月の議題は何ですか", "会議の参加者"),
        ("R5年度の補助金の対象者は誰ですか？また、２０２４年度の期限はいつですか", "補助金の対象者"),
        ("明治30年の会社の社長は誰ですか？また、大正5年は誰ですか", "会社の社長"),
        ("売上の2023年度の目標はいくらですか？また、2024年度はいくらですか", "売上の 目標"),
        ("What was the FY2023 travel budget, and what was it in FY 2024?", "travel budget"),
        ("What is stored in room 2010 by staff, and what was there in 2015?", "stored room 2010 staff"),
        ("What does an essay in 2000 words hold, and what did it hold in 2010?", "essay 2000 words hold"),
    ],
)
def test_a_period_is_told_from_other_figures_and_goes_whole(question: str, context: str) -> None:
    _, second = parts_of(question)
    assert second.context == context


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
