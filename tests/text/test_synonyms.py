"""Words of a question in those of what was found for it."""

import pytest

from rag_assets.text.synonyms import in_other_words, words_found


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        ("夏休みはいつ？", ["第11条 夏季休暇（8月11日〜15日）"], "夏季休暇はいつ？"),
        ("給料はいつもらえますか", ["賞与", "給与明細の公開", "賃金"], "給与はいつもらえますか"),  # a part of a word
        ("ボーナスと誕生日", ["生年月日", "賞与"], "賞与と生年月日"),
    ],
)
def test_words_of_the_same_meaning(question: str, texts: list[str], expected: str) -> None:
    assert in_other_words(question, words_found(question, texts)) == expected


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("夏休みはいつ？", ["夏休みの予定", "夏季休暇"]),  # the word itself was found
        ("夏休みはいつ？", []),
        ("時間外手当の割増率は", ["休日手当"]),  # words of many meanings
        ("休日手当の割増率は", ["時間外手当"]),
        ("登録を確認する画面は", ["記載をチェックする画面"]),  # what is done
        ("電通大の広告は", ["電気通信大学"]),  # a name
        ("「利益」という語の定義は", ["収益"]),  # as quoted
        ("お年寄りの定義は", ["高齢者"]),  # a part of a word
        ("非社員とは", ["従業員"]),
        ("What is the customer id?", ["顧客"]),
        ("あ" * 20_000, ["夏季休暇" * 20_000]),
        ("\ufdfd" * 20_000, ["\ufdfd" * 20_000]),  # 54 bytes each in NFKC
    ],
)
def test_other_words_are_left_as_they_are(question: str, texts: list[str]) -> None:
    assert words_found(question, texts) == {}


def test_only_words_are_replaced_that_are_not_quoted() -> None:
    said = "夏休みは\n「夏休み」の①"
    assert in_other_words(said, {"夏休み": "夏季休暇"}) == "夏季休暇は\n「夏休み」の①"
    for long in ("あ" * 20_000, "\ufdfd" * 20_000):
        assert in_other_words(long, {"夏休み": "夏季休暇"}) == long
