import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.text.language import cut, detect_language, prompt_language, split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("これはテストです。", "ja"),
        ("基本設計書", "ja"),
        ("取引先マスタ TORIHIKISAKI_MST の項目定義", "ja"),
        ("ﾊﾝｶｸｶﾅ", "ja"),
        ("安徽省建设用地使用标准", "zh"),
        ("한국어 문장입니다", "ko"),
        ("The quick brown fox jumps over the lazy dog and is not seen by it.", "en"),
        ("Le système de gestion des documents est utilisé par les services de la mairie", "fr"),
        ("Das System wird von den Abteilungen für ihre Dokumente verwendet", "de"),
        ("Это русский текст, написанный для проверки", "ru"),
        ("thêm sản phẩm mới | yêu cầu: mã tự động tăng, hình ảnh không được để trống", "vi"),
        ("constexpr int ais = 94; constexpr int bes = 95; constexpr int his = 96; constexpr int ces", "und"),
        (
            "log-structure\nログ出力の受付\nLogger LogWriter LogFormatter LoggerFactory LogSettings Logger → LogWriter",
            "ja",
        ),
        ("The application 顧客管理 is the one that all of us use for the orders of our customers.", "en"),
        ("Logger LogWriter LogFormatter LoggerFactory Logger LogWriter AppHandler", "und"),
        ("Sortie standard de l'outil", "und"),
        ("ABC-01", "und"),
        ("12345 67", "und"),
        ("", "und"),
    ],
)
def test_language(text: str, expected: str) -> None:
    assert detect_language(text) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("getAvailableSystemConfigValueの戻り値は", "ja"),
        ("顧客ID 桁数", "ja"),
        ("In the definition of resident numbers (住登外者宛名番号管理), how long is the field?", "en"),
        ("PostgreSQL timeout 設定値", "ja"),
        ("ECサイト Windows Server OS対応", "ja"),
        ("What is 顧客管理?", "en"),
        ("", "en"),
    ],
)
def test_the_language_of_a_question_is_that_of_its_words(question: str, expected: str) -> None:
    assert prompt_language(question) == expected


def test_language_is_deterministic() -> None:
    text = "Documenti e sistemi information management totale"
    assert len({detect_language(text) for _ in range(10)}) == 1


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("ja", ["「今日は雨。明日は晴れ。」と彼は言った。", "次の文です。"]),
        ("ja", ["本当ですか？", "はい！", "（注：3.14を使う。例外あり。）終わり"]),
        ("ja", ["バージョン1.2.3を使用する．", "次に進む．"]),
        ("ja", ["「閉じない括弧。", "次の文。"]),
        ("en", ["Dr. Smith paid 3.50 dollars.", " See Fig. 2 for e.g. details.", " U.S. law applies."]),
        ("en", ['He said "No."', " Then he left!", " Why?"]),
        ("en", ["Wait... then go.", " J. Smith et al. agree."]),
        ("en", ["1. First item.", "\n2. Second item."]),
    ],
)
def test_sentences(language: str, sentences: list[str]) -> None:
    assert split_sentences("".join(sentences), language) == [sentence.strip() for sentence in sentences]


@given(st.text(alphabet="ab 。.「」()？!1\n", max_size=60), st.sampled_from(["ja", "en", "und"]))
def test_sentences_keep_every_character(text: str, language: str) -> None:
    sentences = split_sentences(text, language)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


@pytest.mark.parametrize("part", ["v. 1 of the approx. size ", "a.b.c. x ", "x ( ", "e.g. "])
def test_a_long_line_without_a_sentence_end_costs_in_proportion_to_its_length(part: str) -> None:
    def seconds(length: int) -> float:
        line = part * (length // len(part))
        begin = time.process_time()
        assert len(split_sentences(line, "en")) == 1
        return time.process_time() - begin

    assert seconds(40_000) < 8 * seconds(10_000) + 0.2  # 16 times, were it quadratic


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("申出書を提出する。指定対象期間の開始前に提出する", 14, "申出書を提出する。"),
        (
            "料金は月額です（消費税は含みません。）ので、別に請求します",
            22,
            "料金は月額です（消費税は含みません。）ので、",
        ),
        ("料金は月額です（消費税は含みません。）別に請求します", 18, "料金は月額です（消費税は"),  # the bracket goes on
        ("「申出書等」（以下「書類」という。）を大臣に提出する", 21, "「申出書等」（以下「書類」という。）を"),
        ("寄附者に利益を提供する者（第三者を含む。 ）を", 21, "寄附者に利益を提供する者（第三者を"),
        ("書類を総務大臣に提出しなければならない", 7, "書類を"),
        ("都道府県の申し込みを受け付ける", 8, "都道府県の"),
        ("料金 | 月額 | 12,000円", 9, "料金 | 月額"),
        ("one long sentence of words", 10, "one long"),
        ("設定値はMAX_CONNECTIONSです", 7, "設定値は"),
    ],
)
def test_long_text_is_cut_where_it_may_end(text: str, most: int, expected: str) -> None:
    assert cut(text, most) == cut(text, most, strictly=True) == expected


def test_text_without_a_place_to_end_is_cut_behind_or_strictly_within() -> None:
    text = "https://example.org/a/long/path/of/names を参照"
    assert cut(text, 12) == "https://example.org/a/long/path/of/names"
    assert cut(text, 12, strictly=True) == "https://exam"
    assert cut("abc", 3) == cut("abc", 3, strictly=True) == "abc"


@given(st.text(alphabet="あア漢aZ09。、)」 |", max_size=80), st.integers(1, 40))
def test_strict_cut_keeps_to_its_limit(text: str, most: int) -> None:
    part = cut(text, most, strictly=True)
    assert len(part) <= most
    assert text.startswith(part)
