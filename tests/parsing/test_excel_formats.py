from datetime import datetime

import pytest

from rag_assets.parsing.excel_formats import format_number, general


def serial(*moment: int) -> float:
    return (datetime(*moment) - datetime(1899, 12, 30)).total_seconds() / 86400  # type: ignore[arg-type] # noqa: DTZ001


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (3.0, "General", "3"),
        (0.1 + 0.2, "General", "0.3"),
        (1e20, "General", "1e+20"),
        (12345.678, "#,##0", "12,346"),
        (12345.678, "#,##0.00", "12,345.68"),
        (-5.0, "#,##0;[Red]-#,##0", "-5"),
        (-5.0, "#,##0;(#,##0)", "(5)"),
        (-0.4, "0", "0"),
        (-1234.5, "#,##0.0", "-1,234.5"),
        (7.0, "000", "007"),
        (0.125, "0.0%", "12.5%"),
        (0.5, "0%", "50%"),
        (1500000.0, '#,##0,"千円"', "1,500千円"),
        (3.0, '"第"0"版"', "第3版"),
        (3.0, "0\\版", "3版"),
        (1.5, "0.0#", "1.5"),
        (serial(2024, 4, 1), '[$-411]ggge"年"m"月"d"日"', "令和6年4月1日 (2024-04-01)"),
        (serial(2019, 4, 30), "[$-411]ge.m.d", "H31.4.30 (2019-04-30)"),
        (serial(1989, 1, 7), "gge.mm.dd(aaa)", "昭64.01.07(土) (1989-01-07)"),
        (serial(2024, 4, 1, 9, 5), "[$-ja-JP]ge.m.d h:mm", "R6.4.1 9:05 (2024-04-01 09:05)"),
        (2.0, "[$¥-411]#,##0", "¥2"),
        (0.0, '0;-0;"なし"', "なし"),
        (12345.0, "0.00E+00", "1.23E+04"),
        (0.5, "# ?/?", "0.5"),
        (serial(2019, 9, 10), "yyyy/m/d", "2019-09-10"),
        (serial(2019, 9, 10), 'yyyy"年"m"月"d"日"', "2019-09-10"),
        (serial(2019, 9, 10), 'yyyy"年"m"月"', "2019-09"),
        (serial(2019, 9, 10), "[$-411]ggge年m月d日;@", "令和1年9月10日 (2019-09-10)"),
        (serial(2019, 9, 10, 12, 30), "yyyy/m/d h:mm", "2019-09-10 12:30"),
        (0.5, "h:mm:ss", "12:00:00"),
        (1.5, "[h]:mm", "36:00"),
        (1.0, "yyyy-mm-dd", "1900-01-01"),
        (59.0, "yyyy-mm-dd", "1900-02-28"),
        (61.0, "yyyy-mm-dd", "1900-03-01"),
        (-1.0, "yyyy-mm-dd", "-1"),
    ],
)
def test_number_is_shown_as_its_format_says(value: float, code: str, shown: str) -> None:
    assert format_number(value, code) == shown


def test_dates_from_1904() -> None:
    assert format_number(0.0, "yyyy-mm-dd", base_1904=True) == "1904-01-01"


@pytest.mark.parametrize("value", [0.0, 1.0, -17.0, 123456789012.0])
def test_integers_have_no_fraction(value: float) -> None:
    assert general(value) == str(int(value))
