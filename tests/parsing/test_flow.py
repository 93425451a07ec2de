"""What the parsers of running text share: clean characters, speed on long paragraphs, limits on spans, header rows."""

import time
import unicodedata

import pytest

from rag_assets.contracts.causes import FailureCause
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.flow import clean, fill_grid, join_letters, join_lines, rows_above_figures, unwrap
from rag_assets.text.scripts import RADICAL_IDEOGRAPHS


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("⽉額の⽤⾼", "月額の用高"),  # Kangxi radicals
        ("⻑期・⺠間・⻄⽇本・⻘⾊", "長期・民間・西日本・青色"),  # of the supplement, which NFKC leaves
        ("か\u3099きト\u3099", "がきド"),
        ("\ufa1b\ufa19", "福神"),  # a compatible ideograph
        ("①㈱ｶﾅＡ１", "①㈱ｶﾅＡ１"),  # as it is written
    ],
)
def test_characters_that_look_the_same_are_the_same(text: str, cleaned: str) -> None:
    assert clean(text) == clean(f"  {text}\x00 ") == unwrap(text) == cleaned


def test_every_radical_that_unicode_does_not_compose_has_an_ideograph() -> None:
    left = [
        character
        for character in map(chr, range(0x2E80, 0x2FE0))
        if unicodedata.name(character, "") and "RADICAL" in unicodedata.name(clean(character))
    ]
    assert left == ["⺀"]  # which has none
    assert not {unicodedata.normalize("NFKC", each) for each in RADICAL_IDEOGRAPHS} - RADICAL_IDEOGRAPHS.keys()


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["exam-", "ple of", "text"], "example of text"),
        (["A-", "B"], "A- B"),
        (["第1", "章"], "第1章"),
        (["漢-", "a"], "漢- a"),
        (["so\u00ad", "ft"], "soft"),
        (["a", "", " b "], "a b"),
        (["x", "-", "y"], "x - y"),
    ],
)
def test_lines_become_one_paragraph(lines: list[str], joined: str) -> None:
    assert join_lines(lines) == joined


def test_a_paragraph_of_many_lines_takes_no_longer_than_its_length() -> None:
    began = time.monotonic()
    assert len(join_lines(["some wrapped words"] * 100_000)) == 1_899_999
    assert time.monotonic() - began < 3


def test_spans_cannot_fill_the_memory() -> None:
    with pytest.raises(ParseError) as raised:
        fill_grid([[("x", 1000, 1000), ("b", 1, 1)]] * 2000)
    assert raised.value.cause is FailureCause.TOO_LARGE
    assert fill_grid([[("a", 2, 1), ("b", 1, 2)], [("c", 1, 1), ("d", 1, 1)]]) == [("a", "a", "b"), ("c", "d", "b")]


_SHARES = [["再エネ", "35%", "44 – 50%", "78%"], ["原子力", "20%", "23 – 26%", "12.8%"]]
_LEAVE = [["4日", "169日～216日", "7日", "8日"], ["3日", "121日～168日", "5日", "6日"]]
_SHIFTS = [["火曜", "8時～12時", "9時"], ["水曜", "13時～17時", "14時"]]


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([["", "2040", "2040", "2050"], ["", "エネ基", "現状延長", "1.5℃ RM"], *_SHARES], 2),
        ([["", "2040", "", ""], ["", "エネ基", "現状延長", "RM"], ["", "", "", "政府"], *_SHARES], 3),
        ([["日数", "年間", "勤続年数", "勤続年数"], ["日数", "年間", "6ヶ月", "1年 6ヶ月"], *_LEAVE], 2),
        ([["", "", "SEP7", "SEP7"], ["", "単位", "1 再エネ拡大", "3 CCS活用"], *_SHARES], 2),
        ([["", "エネ基", "現状延長", "RM"], *_SHARES], 0),  # one row, which other signs tell
        ([["", "1月", "2月", "3月"], ["", "120", "130", "140"], *_SHARES], 0),  # the second row holds figures
        ([["", "売上", "利益", "率"], ["", "120千円", "13千円", "3割"], *_SHARES], 0),
        ([["連絡先", "電話", "内線", "FAX"], ["連絡先", "03-1234", "12", "13"], *_SHARES], 0),
        ([["", "名称", "説明"], ["", "版", "日付"], ["甲", "乙", "丙"], ["戊", "己", "庚"]], 0),  # no figures
        ([["", "2040", "2050", "2060"], ["", "甲", "乙", "丙"], *_SHARES, ["", "1", "2", "3"]], 0),  # has no name
        (
            [["", "甲", "乙"], ["", "丙", "丁"], ["", "戊", "己"], ["", "庚", "辛"], ["", "壬", "癸"], ["1", "2", "3"]],
            0,
        ),
        ([["月曜", "早番 8時", "1名"], ["月曜", "遅番 13時", "2名"], *_SHIFTS], 0),  # a row's name, over two rows
        ([["A", "2020", "2021"], ["A", "2022", "2023"], ["B", "1", "2"], ["C", "3", "4"]], 0),
        ([["開館時間", "平日 9:00"], ["開館時間", "土日 10:00"], ["休館日", "第1月曜"], ["入館料", "300円"]], 0),
        ([["勤続年数", "6ヶ月", "1年6ヶ月", "2年6ヶ月以上"], ["休暇日数", "10日", "11日", "12日"]], 1),
        ([["身長", "150cm", "160cm", "170cm"], ["体重", "45kg", "50kg", "60kg"], ["靴", "22", "24", "26"]], 1),
        ([["男", "10人", "11人", "12人"], ["女", "10人", "11人", "13人"]], 0),  # one unit
        ([["幅", "10mm", "10mm", "12mm"], ["価格", "10円", "11円", "13円"]], 0),  # one value twice
        ([["担当", "甲", "乙", "丙"], ["価格", "10円", "11円", "13円"]], 0),
        ([["a", "b", "c"], [], ["1", "2", "3"]], 0),
        ([], 0),
    ],
)
def test_names_below_names_above_figures_are_header_rows(rows: list[list[str]], count: int) -> None:
    assert rows_above_figures(rows) == count


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("発 注 書", "発注書"),
        ("住 所 東京都文京区", "住所 東京都文京区"),
        ("件名\n備 考", "件名\n備考"),
        ("論文 参 考 文 献 15", "論文 参考文献 15"),
        ("合 計：1,300万円", "合計：1,300万円"),
        ("単 価（税抜）", "単価（税抜）"),
        ("見 出 し", "見出し"),
        ("令和 年 月 日", "令和 年 月 日"),
        ("有 無", "有 無"),
        ("月 火 水 木 金", "月 火 水 木 金"),
        ("ア イ ウ", "ア イ ウ"),
        ("担当 甲 乙", "担当 甲 乙"),
        ("甲 乙 丙 の三者", "甲 乙 丙 の三者"),
        ("春 夏 秋 冬", "春 夏 秋 冬"),
        ("住 所録", "住 所録"),
        ("a b c", "a b c"),
    ],
)
def test_letters_of_words_that_are_set_apart_are_joined(text: str, joined: str) -> None:
    assert join_letters(text) == joined
