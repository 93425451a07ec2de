"""Questions in the words of what was found for them."""

import pytest

from rag_assets.text.synonyms import in_words_of


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        ("夏休みはいつ？", ["第11条 夏季休暇（8月11日〜15日）"], "夏季休暇はいつ?"),
        (
            "給料はいつもらえますか",
            ["賞与の支給", "給与明細の公開", "賃金"],
            "給与はいつもらえますか",
        ),  # part of a word
        ("ボーナスと誕生日", ["生年月日", "賞与"], "賞与と生年月日"),
        ("夏休みはいつ？", ["夏休みの予定", "夏季休暇"], "夏休みはいつ？"),  # the word itself was found
        ("時間外手当の割増率は", ["休日勤務手当"], "時間外手当の割増率は"),  # a word of many meanings
        ("登録を確認する画面は", ["記載をチェックする画面"], "登録を確認する画面は"),  # what is done
        ("What is the customer id?", ["顧客"], "What is the customer id?"),
        ("夏休みはいつ？", [], "夏休みはいつ？"),
        ("あ" * 20_000, ["夏季休暇" * 20_000], "あ" * 20_000),
    ],
)
def test_words_of_the_same_meaning(question: str, texts: list[str], expected: str) -> None:
    assert in_words_of(question, texts) == expected
