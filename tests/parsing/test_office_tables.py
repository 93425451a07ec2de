"""Which rows of Word tables name the columns."""

from collections.abc import Sequence
from typing import Any

from docx.oxml import parse_xml
from office_building import W, read_docx

_PLAIN = ("", False)


def header_rows(
    rows: Sequence[Sequence[str]],
    looks: Sequence[tuple[str, bool]] = (),
    *,
    repeated: int = 0,
) -> int:
    """Header rows of a table whose rows have grounds and bold type, or repeat on every page."""

    def build(document: Any) -> None:
        table = document.add_table(rows=len(rows), cols=max(map(len, rows)))
        for place, texts in enumerate(rows):
            fill, is_bold = looks[place] if place < len(looks) else _PLAIN
            if place < repeated:
                table.rows[place]._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {W}/>"))
            for text, cell in zip(texts, table.rows[place].cells, strict=True):
                cell.paragraphs[0].add_run(text).bold = is_bold
                if fill:
                    cell._tc.get_or_add_tcPr().append(parse_xml(f'<w:shd {W} w:fill="{fill}"/>'))

    (block,) = read_docx(build).pages[0].blocks
    return block.header_row_count


def test_rows_of_alternating_grounds_are_no_headers() -> None:
    rows = [("項目", "内容"), ("文書番号", "TP-1"), ("作成日", "2026-02-12"), ("作成者", "担当")]
    assert header_rows(rows, [("1F4E79", True), ("DDEBF7", False), _PLAIN, ("DDEBF7", False)]) == 1
    assert header_rows(rows, [("1F4E79", False), ("DDEBF7", False), ("1F4E79", False), ("DDEBF7", False)]) == 1


def test_two_rows_in_one_look_are_headers() -> None:
    rows = [("区分", "費用"), ("名称", "金額"), ("備品", "100"), ("消耗品", "200")]
    assert header_rows(rows, [("1F4E79", True), ("1F4E79", True)]) == 2


def test_marks_to_repeat_every_row_show_one_header() -> None:
    rows = [("列", "内容", "例"), ("name", "名称", "A"), ("kind", "種別", "B"), ("code", "番号", "C"), ("day", "日", "D")]
    assert [header_rows(rows, repeated=count) for count in (2, 4, 5)] == [2, 1, 1]
