"""What a sheet says beside the texts of its cells: comments, lists to choose from, what is hidden or printed around it;
formulas.

What stays out: drawings (`excel_diagrams`) and the blocks of the cells themselves (`excel_sheet`).
"""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Formula
from rag_assets.parsing.archive import Archive, Relation, local_name
from rag_assets.parsing.excel.cells import Area, SheetCells, clean_text, parse_area, rich_text
from rag_assets.text.cells import column_letters, cover
from rag_assets.text.plain import one_line

_SHOWN_CELL_CHOICES = 5  # of a list whose values stand in cells, which are shown in their own place
_SHOWN_RANGES = 20
_NOBODY = {
    *(
        "作成者",
        "ユーザー",
        "ユーザ",
        "windows ユーザー",
        "windows ユーザ",
        "microsoft office ユーザー",
        "管理者",
        "不明な作成者",
    ),
    *("author", "user", "users", "owner", "admin", "administrator", "guest", "unknown", "unknown author", "openpyxl"),
    *("windows user", "microsoft office user"),
}

Resolve = Callable[[str], tuple[Sequence[str], str]]


def comment_blocks(archive: Archive, relations: Iterable[Relation], people: Mapping[str, str]) -> list[Block]:
    """Comments by cell with their authors; threaded ones take the place of the notice that older comments hold of them.

    Args:
        archive: The workbook.
        relations: Parts that the sheet refers to.
        people: Names of the authors of threaded comments by their ids.
    """
    texts: dict[str, str] = {}
    for relation in relations:
        if relation.kind == "comments":
            root = archive.tree(relation.target)
            authors = [clean_text(author.text or "") for author in root.iter("{*}author")]
            for comment in root.iter("{*}comment"):
                body = next((child for child in comment if local_name(child) == "text"), None)
                number = comment.get("authorId") or ""
                author = authors[int(number)] if number.isdecimal() and int(number) < len(authors) else ""
                texts[comment.get("ref") or ""] = _signed(rich_text(body) if body is not None else "", author)
    for relation in relations:
        if relation.kind == "threadedComment":
            texts.update(_threads(archive, relation.target, people))
    found = [(parse_area(reference), text) for reference, text in texts.items()]
    return [Block(BlockKind.NOTE, text, cell_range=area.label) for area, text in found if text and area is not None]


def _signed(text: str, author: str) -> str:
    """A comment behind its author, unless it begins with that name or the name is one that programs give to all."""
    plain = " ".join(unicodedata.normalize("NFKC", author).lower().split())
    if not text or not plain or plain in _NOBODY or plain.startswith("tc=") or text.startswith(author):
        return text
    return f"{author}: {text}"


def _threads(archive: Archive, part: str, people: Mapping[str, str]) -> dict[str, str]:
    threads: dict[str, list[str]] = defaultdict(list)
    for comment in archive.tree(part).iter("{*}threadedComment"):
        text = next((child.text or "" for child in comment if local_name(child) == "text"), "")
        author = people.get(comment.get("personId") or "", "")
        threads[comment.get("ref") or ""].append(_signed(clean_text(text), author))
    return {reference: "\n".join(filter(None, texts)) for reference, texts in threads.items()}


def margin_blocks(texts: Iterable[str]) -> list[Block]:
    """Headers and footers of the printed sheet; they are kept and not searched, as those of other documents."""
    return [Block(BlockKind.HEADER, text) for text in texts]


def choice_blocks(cells: SheetCells, resolve: Resolve) -> list[Block]:
    """A note for each list that cells choose their value from: `選択肢: 有, 無`.

    Of a long list whose values stand in cells the first ones are shown, and where the others stand.

    Args:
        cells: The sheet.
        resolve: Gives values that stand in cells, and which cells, by the formula that names them; empty where unknown.
    """
    by_choices: dict[tuple[tuple[str, ...], str], list[Area]] = {}
    for formula, areas in cells.choices:
        literal = len(formula) > 1 and formula.startswith('"') and formula.endswith('"')
        values, place = (formula[1:-1].replace('""', '"').split(","), "") if literal else resolve(formula)
        kept = tuple(dict.fromkeys(text for value in values if (text := one_line(value))))
        if kept:
            by_choices.setdefault((kept, place), []).extend(areas)
    return [_choice_block(values, place, sorted(set(areas))) for (values, place), areas in by_choices.items()]


def _choice_block(values: tuple[str, ...], place: str, areas: list[Area]) -> Block:
    shown = ", ".join(values[:_SHOWN_CELL_CHOICES] if place else values)
    if place and len(values) > _SHOWN_CELL_CHOICES:
        shown += f", …（{place}）"
    labels = [area.label for area in areas]
    places = f"（{_join(labels)}）" if len(labels) > 1 else ""
    return Block(BlockKind.NOTE, f"選択肢{places}: {shown}", cell_range=cover(labels))


def hidden_blocks(cells: SheetCells) -> list[Block]:
    """A note on the rows and columns with text that the sheet hides; none where there are none."""
    rows = [f"{first + 1}-{last + 1}" if last > first else str(first + 1) for first, last in _runs(cells.hidden_rows)]
    columns = [
        f"{column_letters(first + 1)}-{column_letters(last + 1)}" if last > first else column_letters(first + 1)
        for first, last in _runs(cells.hidden_columns)
    ]
    places = [f"{name} {_join(found)}" for name, found in (("行", rows), ("列", columns)) if found]
    if not places:
        return []
    hidden_rows, hidden_columns = set(cells.hidden_rows), set(cells.hidden_columns)
    found_cells = [
        (row, column)
        for row, texts in cells.texts.items()
        for column in texts
        if row in hidden_rows or column in hidden_columns
    ]
    found_rows, found_columns = zip(*found_cells, strict=True)
    area = Area(min(found_rows), min(found_columns), max(found_rows), max(found_columns))
    return [Block(BlockKind.NOTE, f"非表示: {'、'.join(places)}", cell_range=area.label)]


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
    rows: dict[int, list[tuple[int, Area, int]]] = {row: [] for row, _ in formulas}
    for index, block in enumerate(blocks):
        area = parse_area(block.cell_range or "")
        if area is None or block.kind in {BlockKind.NOTE, BlockKind.DIAGRAM, BlockKind.CAPTION}:
            continue
        cells = (area.bottom - area.top + 1) * (area.right - area.left + 1)
        within = range(area.top, area.bottom + 1)
        for row in within if len(within) < len(rows) else rows:
            if row in rows and row in within:
                rows[row].append((cells, area, index))
    found: dict[int, list[Formula]] = defaultdict(list)
    for (row, column), formula in sorted(formulas.items()):
        homes = [(cells, index) for cells, area, index in rows[row] if area.left <= column <= area.right]
        if homes:
            found[min(homes)[1]].append(Formula(Area(row, column, row, column).label, formula))
    return tuple(
        replace(block, formulas=tuple(found[index])) if index in found else block for index, block in enumerate(blocks)
    )
