"""Notes beside the cells of a sheet: comments, lists to choose from, what is hidden or printed around it; formulas."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Formula
from rag_assets.contracts.errors import ParseError
from rag_assets.parsing.archive import Archive, Relation
from rag_assets.parsing.excel.cells import SheetCells, Texts, block_area, read_sheet
from rag_assets.parsing.excel.workbook import Workbook, clean_text, rich_text
from rag_assets.text.cells import Area, column_letters, cover, parse_sheet_area
from rag_assets.text.plain import one_line

_LIST_VALUES = 1_000  # many more than are shown of a list whose values stand in cells
_SHOWN_CELL_CHOICES = 12  # of a list whose values stand in cells, which are shown in their own place
_SHOWN_NAMES = 3  # of columns that have the same list
_NAMES_JOINT = "、"
_ROWS_ABOVE = 3  # in which a column's name is looked for
_NAME_CHARS = 30
_SHOWN_RANGES = 20
_NOBODY = {
    *("作成者", "ユーザー", "ユーザ", "windows ユーザー", "windows ユーザ", "microsoft office ユーザー", "管理者"),
    *("不明な作成者", "author", "user", "users", "owner", "admin", "administrator", "guest", "unknown"),
    *("unknown author", "openpyxl", "windows user", "microsoft office user"),
}
_PAGE = re.compile(
    r"(?:page|seite|p\.|ページ|頁|第)?[\s\-‐–―(（]*&P(?:[+-]\d+)?(?:\s*(?:/|／|of|von|-)\s*&N)?[\s\-‐–―)）]*(?:ページ|頁)?",
    re.IGNORECASE,
)
_SECTION = re.compile(r"&([LCR])", re.IGNORECASE)
_CODE = re.compile(r'&(?:"[^"]*"|K(?:[0-9A-F]{6}|\d{2}[+-]\d{3})|\d{1,3}|[A-Z])', re.IGNORECASE)
_LITERAL = "\0"
_MAXIMUM_CHARS = 2_000


def comment_blocks(archive: Archive, relations: Iterable[Relation], people: Mapping[str, str]) -> list[Block]:
    """Comments by cell with their authors; threaded ones replace the notice that older comments hold of them."""
    texts: dict[str, str] = {}
    for relation in relations:
        if relation.kind == "comments":
            root = archive.tree(relation.target)
            authors = [clean_text(author.text or "") for author in root.iter("{*}author")]
            for comment in root.iter("{*}comment"):
                body = comment.find("{*}text")
                number = comment.get("authorId") or ""
                author = authors[int(number)] if number.isdecimal() and int(number) < len(authors) else ""
                texts[comment.get("ref") or ""] = _signed(rich_text(body) if body is not None else "", author)
    for relation in relations:
        if relation.kind == "threadedComment":
            texts.update(_threads(archive, relation.target, people))
    areas = [(parse_sheet_area(reference), text) for reference, text in texts.items()]
    return [Block(BlockKind.NOTE, text, cell_range=area.label) for area, text in areas if text and area is not None]


def _signed(text: str, author: str) -> str:
    """A comment behind its author, unless it begins with that name or the name is one that programs give to all."""
    plain = one_line(unicodedata.normalize("NFKC", author).lower())
    if not text or not plain or plain in _NOBODY or plain.startswith("tc=") or text.startswith(author):
        return text
    return f"{author}: {text}"


def _threads(archive: Archive, part: str, people: Mapping[str, str]) -> dict[str, str]:
    threads: dict[str, list[str]] = defaultdict(list)
    for comment in archive.tree(part).iter("{*}threadedComment"):
        text = clean_text(comment.findtext("{*}text") or "")
        threads[comment.get("ref") or ""].append(_signed(text, people.get(comment.get("personId") or "", "")))
    return {reference: "\n".join(filter(None, texts)) for reference, texts in threads.items()}


def margin_blocks(margins: Iterable[tuple[str, str]]) -> list[Block]:
    """Headers, then footers of the printed sheet, left, middle and right parts joined by ` | `.

    Each text stands once, without what is filled in when it is printed: numbers of pages, dates, names of file and
    sheet, pictures. Like headers and footers of other documents they are kept and not searched.
    """
    texts = [text for place in ("header", "footer") for name, text in margins if name.lower().endswith(place)]
    return [Block(BlockKind.HEADER, text) for text in dict.fromkeys(map(_printed, texts)) if text]


def _printed(codes: str) -> str:
    codes = codes[:_MAXIMUM_CHARS].replace("&&", _LITERAL)
    parts = [one_line(_CODE.sub("", _PAGE.sub("", part))) for part in _SECTION.split(codes)[::2]]
    return " | ".join(part.replace(_LITERAL, "&") for part in parts if any(map(str.isalnum, part)))


class ListReader:
    """Finds the values of lists that stand in cells: here, on another sheet, or under a name.

    Lists that a function computes (`INDIRECT`, `OFFSET`) are not found, since nothing is calculated.
    """

    def __init__(self, workbook: Workbook, maximum_cells: int) -> None:
        self._workbook, self._maximum_cells = workbook, maximum_cells
        self._known: dict[str, Texts] = {}

    def find(self, formula: str, sheet: str, texts: Texts) -> tuple[list[str], str]:
        """Values that a formula names, with their place; none where it names no range."""
        formula = formula.removeprefix("=")
        named_sheet, _, reference = self._workbook.names.get(formula, formula).rpartition("!")
        area = parse_sheet_area(reference)
        if area is None:
            return [], ""
        name = named_sheet.strip("'").replace("''", "'")
        texts = texts if name in {"", sheet} else self._texts(name)
        rows = range(area.top, area.bottom + 1)
        values = (
            text
            for row in (rows if len(rows) < len(texts) else texts)
            for column, text in texts.get(row, {}).items()
            if area.holds(row, column)
        )
        return list(islice(values, _LIST_VALUES)), f"{name}!{area.label}" if name else area.label

    def _texts(self, name: str) -> Texts:
        if name not in self._known:
            part = next((entry.part for entry in self._workbook.sheets if entry.name == name), None)
            try:
                self._known[name] = read_sheet(self._workbook, part, self._maximum_cells).texts if part else {}
            except ParseError:
                self._known[name] = {}  # it becomes a failure of its own page
        return self._known[name]


def choice_blocks(cells: SheetCells, sheet: str, lists: ListReader) -> list[Block]:
    """A note for each list that cells choose their value from, with the name of their column: `状況の選択肢: 有, 無`.

    Of a long list whose values stand in cells the first ones are shown, and where the others stand.
    """
    by_choices: dict[tuple[tuple[str, ...], str], list[Area]] = {}
    for formula, areas in cells.choices.items():
        if len(formula) > 1 and formula.startswith('"') and formula.endswith('"'):
            values, place = formula[1:-1].replace('""', '"').split(","), ""
        else:
            values, place = lists.find(formula, sheet, cells.texts)
        choices = tuple(dict.fromkeys(text for value in values if (text := one_line(value))))
        if choices:
            by_choices.setdefault((choices, place), []).extend(areas)
    return [
        _choice_block(values, place, sorted(set(areas)), cells.texts) for (values, place), areas in by_choices.items()
    ]


def _choice_block(values: tuple[str, ...], place: str, areas: list[Area], texts: Texts) -> Block:
    names = dict.fromkeys(filter(None, (_column_name(area, values, texts) for area in areas)))
    name = f"{_NAMES_JOINT.join(names)}の" if len(names) in range(1, _SHOWN_NAMES + 1) else ""
    text = ", ".join(values[:_SHOWN_CELL_CHOICES] if place else values)
    if place and len(values) > _SHOWN_CELL_CHOICES:
        text += f", …（{place}）"
    labels = [area.label for area in areas]
    places = f"（{_join(labels)}）" if len(labels) > 1 else ""
    return Block(BlockKind.NOTE, f"{name}選択肢{places}: {text}", cell_range=cover(labels))


def _column_name(area: Area, values: Sequence[str], texts: Texts) -> str:
    """What stands above cells, or, where nothing does, in the first of them, and is none of their values; nothing for
    cells of one row, above which another value may stand, nor below several names.
    """
    if area.bottom == area.top:
        return ""
    for row in (*range(area.top - 1, area.top - 1 - _ROWS_ABOVE, -1), area.top):
        cells = texts.get(row, {})
        names = {one_line(cells[column]) for column in range(area.left, area.right + 1) if column in cells} - {""}
        if names:
            name = names.pop()
            return name if not names and len(name) <= _NAME_CHARS and name not in values else ""
    return ""


def hidden_blocks(cells: SheetCells) -> list[Block]:
    """A note on the rows and columns with text that the sheet hides; none where there are none."""
    rows = [_span(str(first + 1), str(last + 1)) for first, last in _runs(cells.hidden_rows)]
    columns = [
        _span(column_letters(first + 1), column_letters(last + 1)) for first, last in _runs(cells.hidden_columns)
    ]
    places = [f"{name} {_join(spans)}" for name, spans in (("行", rows), ("列", columns)) if spans]
    if not places:
        return []
    hidden_rows, hidden_columns = set(cells.hidden_rows), set(cells.hidden_columns)
    area = Area.around(
        Area(row, column, row, column)
        for row, texts in cells.texts.items()
        for column in texts
        if row in hidden_rows or column in hidden_columns
    )
    return [Block(BlockKind.NOTE, f"非表示: {'、'.join(places)}", cell_range=area.label)]


def _span(first: str, last: str) -> str:
    return first if first == last else f"{first}-{last}"


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each stretch of successive numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _join(places: Sequence[str]) -> str:
    return ", ".join(places[:_SHOWN_RANGES]) + (", …" if len(places) > _SHOWN_RANGES else "")


def with_formulas(blocks: Sequence[Block], formulas: Mapping[tuple[int, int], str]) -> tuple[Block, ...]:
    """Blocks with the formulas of their cells; a cell in several blocks counts to the smallest of them."""
    if not formulas:
        return tuple(blocks)
    homes: dict[int, list[tuple[int, int, Area]]] = {row: [] for row, _ in formulas}
    for index, block in enumerate(blocks):
        if block.kind not in {BlockKind.NOTE, BlockKind.DIAGRAM, BlockKind.CAPTION}:
            area = block_area(block)
            rows = range(area.top, area.bottom + 1)
            for row in filter(homes.__contains__, rows) if len(rows) < len(homes) else filter(rows.__contains__, homes):
                homes[row].append((area.cells, index, area))
    by_block: dict[int, list[Formula]] = defaultdict(list)
    for (row, column), formula in sorted(formulas.items()):
        home = min((home for home in homes[row] if home[2].holds(row, column)), default=None)
        if home is not None:
            by_block[home[1]].append(Formula(Area(row, column, row, column).label, formula))
    return tuple(replace(block, formulas=tuple(by_block.get(index, ()))) for index, block in enumerate(blocks))
