"""What people call formats."""

import pytest

from rag_assets.contracts.formats import FAMILIES, DocumentFormat, formats_called


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("excel", {"xlsx", "xlsm", "xlsb", "xls", "ods"}),
        ("エクセル", {"xlsx", "xlsm", "xlsb", "xls", "ods"}),
        ("slides", {"pptx", "ppt", "odp"}),
        ("word", {"docx", "doc"}),
        ("text", {"txt", "md"}),
        ("htm", {"html"}),
        ("docm", {"docx"}),
        ("spread", set()),
    ],
)
def test_other_names_lead_to_formats(name: str, formats: set[str]) -> None:
    assert set(formats_called(name)) == formats


@pytest.mark.parametrize(
    ("question", "families"),
    [
        ("パワーポイントの資料は何について?", ["powerpoint"]),
        ("What are the Excel workbooks about?", ["excel"]),
        ("テキストファイルを要約して", ["text"]),
        ("What is the file about, in a word processor's terms?", ["word"]),
        ("docs in text", []),
    ],
)
def test_questions_name_formats(question: str, families: list[str]) -> None:
    assert [each.name for each in FAMILIES if each.named_in(question)] == families


def test_no_two_formats_have_an_extension() -> None:
    extensions = [extension for each in DocumentFormat for extension in each.extensions]
    assert len(extensions) == len(set(extensions))
