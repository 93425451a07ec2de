"""What stands together on a page with a statement that is said."""

from collections.abc import Sequence

import pytest

from rag_assets.query.ask.quoted.page_sections import (
    PageBlock,
    body_rows,
    header_rows,
    numbered_sections,
    passages_naming,
    standing_together,
)

_PANEL = "2.4.3 Alarm Panel"
_COLOURS = PageBlock("table", ("7. Calendar",), "colour | status\ngrey | open\nred | late", header_row_count=1)
_PAGE = (
    PageBlock("header", (), "Manual"),
    PageBlock("heading", (), _PANEL),
    PageBlock("paragraph", (_PANEL,), "The panel shows the following:"),
    PageBlock("list_item", (_PANEL,), "Running"),
    PageBlock("list_item", (_PANEL,), "Indicates that the pump runs."),
    PageBlock("list_item", (_PANEL,), "No Flow"),
    PageBlock("heading", (), "7. Calendar"),
    PageBlock("paragraph", ("7. Calendar",), "Each status has its colour.\nIt can be changed."),
    _COLOURS,
)
_PANEL_LINES = (_PANEL, "The panel shows the following:", "Running", "Indicates that the pump runs.", "No Flow")


def _whole(said: Sequence[str], blocks: Sequence[PageBlock], most_chars: int, *, is_lead: bool) -> tuple[str, ...]:
    return next(standing_together(said, blocks, most_chars, is_lead=is_lead), ())


@pytest.mark.parametrize("line", [_PANEL, "Running", "No Flow"])
def test_a_line_stands_together_with_its_section(line: str) -> None:
    assert _whole([line], _PAGE, 900, is_lead=False) == _PANEL_LINES


def test_nothing_before_a_line_that_heads_others_goes_with_it() -> None:
    said = ["The panel shows the following: Running"]
    assert _whole(said, _PAGE, 900, is_lead=True) == _PANEL_LINES[1:]


def test_of_a_long_section_the_table_or_the_list_is_said() -> None:
    most = sum(len(line) + 1 for line in _COLOURS.lines)
    assert _whole(["red | late"], _PAGE, most, is_lead=False) == _COLOURS.lines
    items = sum(len(line) + 1 for line in _PANEL_LINES[1:])
    assert _whole(["No Flow"], _PAGE, items, is_lead=False) == _PANEL_LINES[1:]
    assert _whole(["No Flow"], _PAGE, items - 1, is_lead=False) == ()


def test_what_is_longer_comes_first_and_a_note_is_no_part() -> None:
    page = [*_PAGE[:3], PageBlock("note", (_PANEL,), "See page 2."), *_PAGE[3:]]
    wholes = list(standing_together(["The panel shows the following:"], page, 900, is_lead=False))
    assert wholes == [_PANEL_LINES, _PANEL_LINES[1:]]


def test_a_list_over_parts_of_a_page_goes_on_to_the_end_of_the_last_one() -> None:
    table = PageBlock("table", ("For B",), "code | name\n1 | pen\n2 | ink\n3 | pad", header_row_count=1)
    end = PageBlock("paragraph", ("For B",), "Paid by bank.")
    page = [PageBlock("table", ("For A",), "Total | 9"), PageBlock("heading", (), "For B"), table, end]
    said = ["Total | 9", "For B", "code | name", "1 | pen", "2 | ink"]
    assert _whole(said, page, 900, is_lead=True) == (*said, "3 | pad")
    assert _whole(said, page, sum(map(len, said)) + len(said) + 3, is_lead=True) == ()
    assert _whole([*said, "3 | pad"], page, 900, is_lead=True) == (), "nothing of the table is left"


def test_what_follows_is_sought_from_where_the_lines_stand_and_not_behind_a_whole_list() -> None:
    def section(name: str, *items: str) -> list[PageBlock]:
        lines = [PageBlock("list_item", (name,), item) for item in items]
        return [PageBlock("heading", (), name), *lines, PageBlock("paragraph", (name,), f"The fee for {name} is 3.")]

    page = [*section("Entry", "・ form", "・ other"), *section("Renewal", "・ note", "・ licence", "・ other")]
    said = ["Renewal", "・ note", "・ licence"]
    most = sum(map(len, said)) + len(said) + len("・ other") + 1
    assert _whole(said, page, most, is_lead=True) == (*said, "・ other")
    assert set(standing_together([*said, "・ other"], page, 900, is_lead=True)) == {
        (*said, "・ other"),
        (*said, "・ other", "The fee for Renewal is 3."),  # the section
    }


def test_notes_that_are_a_list_are_told_and_one_between_lines_is_left_out() -> None:
    notes = [PageBlock("note", ("Notes",), f"※{number} as said") for number in range(3)]
    page = [PageBlock("heading", (), "Notes"), *notes]
    assert _whole(["Notes"], page, 900, is_lead=True) == ("Notes", *(note.text for note in notes))


def test_lines_that_repeat_are_told_apart_by_those_after_them() -> None:
    sections = [
        block
        for name in ("A", "B")
        for block in (
            PageBlock("heading", (), f"Table {name}"),
            PageBlock("paragraph", (f"Table {name}",), f"Constraints:\nPRIMARY KEY: {name}\nCHECK: {name} > 0"),
        )
    ]
    (*_, last) = _whole(["Constraints:", "PRIMARY KEY: B"], sections, 900, is_lead=True)
    assert last == "CHECK: B > 0"


@pytest.mark.parametrize("said", [["nowhere"], [""], []])
def test_what_the_page_has_not_stands_together_with_nothing(said: list[str]) -> None:
    assert _whole(said, _PAGE, 900, is_lead=False) == ()
    assert _whole(said, (), 900, is_lead=False) == ()


def test_marked_lines_are_items_whatever_the_file_says() -> None:
    lines = ("There are three:", "(1) one", "(2) two", "(3) three", "Article 2")
    page = [PageBlock("paragraph", (), line) for line in lines]
    assert _whole(["There are three:"], page, 900, is_lead=True) == lines[:4]


def test_names_of_columns_are_known() -> None:
    rows = [("a | b", 1), ("c | d", 0), ("e | f", 2)]
    blocks = [
        PageBlock.of({"kind": "table", "section": None, "text": f"{line}\n1 | 2", "header_row_count": count})
        for line, count in rows
    ]
    assert header_rows(blocks) == {"a | b"}


def test_a_line_is_not_found_within_another_one_or_over_two() -> None:
    page = [
        PageBlock("heading", (), "Other"),
        PageBlock("paragraph", ("Other",), "The new roles are as follows\nbut not here\nx1"),
        PageBlock("heading", (), "Roles"),
        PageBlock("paragraph", ("Roles",), "roles are as follows"),
        PageBlock("list_item", ("Roles",), "・ admin"),
        PageBlock("list_item", ("Roles",), "・ guest"),
    ]
    (first, *_) = _whole(["roles are as follows", "・ admin"], page, 900, is_lead=True)
    assert first == "roles are as follows"
    assert _whole(["1The"], page, 900, is_lead=False) == ()


@pytest.mark.parametrize("heading", ["1.  目的　概要", "第1章\n総則"])
def test_headings_are_those_of_sections_however_they_are_spaced(heading: str) -> None:
    items = [PageBlock("list_item", (heading,), f"・ {name}") for name in ("甲", "乙")]
    lines = _whole(["・ 乙"], [PageBlock("heading", (), heading), *items], 900, is_lead=False)
    assert lines[-2:] == ("・ 甲", "・ 乙")
    assert len(lines) > 2


def test_a_list_is_announced_by_one_line() -> None:
    items = [PageBlock("list_item", (), f"・ {name}") for name in ("one", "two", "three")]
    for above in (PageBlock("table", (), "a | b"), PageBlock("paragraph", (), "long " * 100)):
        assert len(_whole(["・ two"], [above, *items], 900, is_lead=False)) == len(items)


def test_rows_that_name_no_columns_are_told_with_the_names_of_theirs() -> None:
    form = PageBlock("table", (), "件名 | ご請求のお知らせ\n送信先 | To\ngrey | open")
    names_in_two_rows = PageBlock("table", (), "売上 | | 利益\n予算 | 実績 | 予算\n1 | 2 | 3", header_row_count=2)
    blocks = (*_PAGE, form, names_in_two_rows)
    assert header_rows(blocks) == {"colour | status"}
    assert body_rows(blocks) == {  # not of a row that both tables have
        "red | late": ("colour", "status"),
        "件名 | ご請求のお知らせ": (),
        "送信先 | To": (),
        "1 | 2 | 3": ("売上 > 予算", "売上 > 実績", "利益 > 予算"),
    }


def test_what_stands_over_merged_cells_is_told_with_each_row() -> None:
    rows = ["区分 | 項目 | 値", "基本 | 名前 | a", " | 型 | b", " |  | c", "合計 |  | 6", " | 計の外 | d"]
    assert body_rows([PageBlock("table", (), "\n".join(rows), header_row_count=1)]).keys() == {
        "基本 | 名前 | a",
        "| 型 | b",
        "基本 | 型 | b",
        "| | c",
        "基本 | | c",
        "基本 | 型 | c",
        "合計 | | 6",
        "| 計の外 | d",
    }


def test_names_of_columns_in_several_rows_are_one_name_each() -> None:
    rows = ["A | B |  | ", "x |  |  | ", "p | q | r | s"]
    block = PageBlock("table", (), "\n".join([*rows, "1 | 2 | 3 | 4", *rows, "5 | 6 | 7 | 8"]), header_row_count=3)
    assert block.columns == ("A > x > p", "B > q", "B > r", "B > s")
    assert block.body_lines == ("1 | 2 | 3 | 4", "5 | 6 | 7 | 8")  # without the names that come again
    for text, count in (("", 1), ("\n\n", 2), ("\n1 | 2", 1), (" | \n1 | 2", 1)):
        assert PageBlock("table", (), text, count).columns == ()


def test_what_names_columns_of_another_table_is_no_row() -> None:
    below_a_title = PageBlock("table", (), "題 | 名\nNo | 項目", header_row_count=1)
    assert body_rows([below_a_title, PageBlock("table", (), "No | 項目\n1 | 甲", header_row_count=1)]).keys() == {
        "1 | 甲"
    }


_ROWS = {
    "0": "CISAC Code | Society\n006 | JASRAC | Member\n088 | CMRRA | Client",
    "1": "CISAC Code: 100 | Society: 東京都 | Member\nCISAC Code: 101 | Society: 大阪府 | Member",
    "2": "注記 | Member | JASRAC\n88 names nothing here",
}


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("コード88はどの団体ですか", ["0"]),
        ("東京都の会員区分は", ["1"]),
        ("What is the status of CMRRA?", ["0"]),
        ("JASRACのコードと注記", ["0", "2"]),
        ("88人の団体はどれ", []),
        ("What came of the casino 88?", []),
        ("団体は何", []),
    ],
)
def test_rows_of_which_a_question_names_cells_are_found(question: str, keys: list[str]) -> None:
    assert sorted(passages_naming(question, _ROWS)) == keys


def test_cells_that_many_rows_have_name_none() -> None:
    passages = {str(number): f"{number} | Member | 区分" for number in range(9)}
    assert passages_naming("What is a Member?", passages) == []


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        (["3. Law", "B. Fees are due in May."], slice(1, 5)),
        (["A. The body has the following parts:", "1. Design"], slice(1, 5)),
        (["1. Design", "2. Music"], slice(0, 0)),  # of which nothing tells that it is a list of its own
        (["B. Fees are due in May.", "1. A late fee is added."], slice(0, 0)),
    ],
)
def test_items_that_count_on_stand_together_within_a_longer_list(said: list[str], whole: slice) -> None:
    lines = ["Rules of the body.", "A. The body has the following parts:", "1. Design", "2. Music", "3. Law"]
    lines += ["B. Fees are due in May.", "1. A late fee is added.", *["C. It meets often and long."] * 3]
    page = [PageBlock("list_item", (), line) for line in lines]
    assert _whole(said, page, 70, is_lead=False) == tuple(lines[whole])


_FUNCTIONS = ("1. Booking", "2. Members", "3. Coupons")
_NUMBERED_PAGE = (
    PageBlock("heading", ("Rules",), "Functions"),
    *(
        block
        for name in _FUNCTIONS
        for block in (
            PageBlock("heading", ("Rules", "Functions"), name),
            PageBlock("paragraph", ("Rules", "Functions", name), f"What {name[3:]} does."),
        )
    ),
    PageBlock("heading", ("Rules",), "Flow"),
)
_NUMBERED_LINES = ("Functions", *(line for name in _FUNCTIONS for line in (name, f"What {name[3:]} does.")))


@pytest.mark.parametrize(
    ("others", "most_chars", "lines"),
    [
        (["1. Booking"], 900, _NUMBERED_LINES),
        (["What Coupons does."], 60, ("Functions", *_FUNCTIONS)),
        ([], 900, ()),  # it is one of them that is asked for
        (["Flow"], 900, ()),
    ],
)
def test_sections_whose_headings_count_on_are_a_list(
    others: list[str], most_chars: int, lines: tuple[str, ...]
) -> None:
    assert numbered_sections(["2. Members", "What Members does."], others, _NUMBERED_PAGE, most_chars) == lines
    two_sections = _NUMBERED_PAGE[:5]
    assert numbered_sections(["2. Members"], others, two_sections, most_chars) == ()


def test_of_a_long_section_the_lines_that_name_its_parts_are_said() -> None:
    names = ["Cashier:", "Custodial:", "Merchandising:"]
    text = "Whoever does this job greets people and thanks them. " * 8
    parts = [PageBlock("paragraph", ("Jobs",), line) for name in names for line in (name, text)]
    assert _whole(["Jobs"], [PageBlock("heading", (), "Jobs"), *parts], 900, is_lead=False) == ("Jobs", *names)
