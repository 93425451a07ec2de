"""Names by their place in a document: keys of tables, headings that name something, ends of connectors, quoted terms.

What a document itself uses as a column header or as the label of a value is no name in it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Page
from rag_assets.graph.entity_types import IDENTIFIER, TERM, EntityTypes
from rag_assets.graph.mentions.spans import KnownNames, Span, identifiers, quoted_terms
from rag_assets.graph.names import is_code, is_key, is_name
from rag_assets.parsing.chunking import column_names
from rag_assets.text.folding import clean_name, fold_name
from rag_assets.text.plain import one_line

_NAMING = re.compile(
    r"(?:名|名称|ＩＤ|ID|コード|キー|項目|用語|略称|略語|画面|テーブル|ファイル|電文|機能|処理|部品|ツール|name|key|term|item|code|title)"
    r"(?:[（(].*[)）])?$",
    re.IGNORECASE,
)
_NOT_NAMING = re.compile(
    r"(?:^no\.?$|^項番|^番号|担当|作成|更新|変更|承認|確認|実施|シート|データ型|ドメイン|桁|文字コード|区分|種別|備考|説明|内容|概要|値|件数|日付|日時|初期"
    r"|メソッド|終了コード|リターンコード|ステータス|例$|pj名|プロジェクト名|プレフィックス|ページ)",
    re.IGNORECASE,
)
_DESCRIBING = re.compile(
    r"(?:説明|概要|定義|内容|意味|役割|用途|目的|description|meaning|definition|summary|purpose)", re.IGNORECASE
)
_HEADER_SUFFIX = re.compile(r"(?:の)?(?:名称|名|ＩＤ|ID|コード|キー)$", re.IGNORECASE)
_NUMBERING = re.compile(
    r"^(?:[■□◆●○▼▽◎※・\-*#]+\s*|【(?=[^】]*】.)|(?:第?\d+(?:[.\-]\d+)*(?:[.．、)）]|章|節|項|\s)+\s*)|[(（][\dA-Za-z\-]+[)）]\s*|"
    r"[①-⑳]\s*|[A-Za-z][.)]\s+|[IVXivx]+[.)]\s+)+"
)
_PAIR = re.compile(r"^(?P<first>[^()（）]{2,60}?)\s*[(（](?P<second>[^()（）]{2,60})[)）]$")
_CODE_FIRST = re.compile(r"^(?P<first>[A-Za-z0-9_\-]{4,24})[\s:：/／_]+(?P<second>\S.*)$")
_CODE_LAST = re.compile(r"^(?P<first>\S.*?)[\s:：/／]+(?P<second>[A-Za-z0-9_\-]{4,24})$")
_EDGE = re.compile(r"^(?P<source>.+?) (?P<sign>[→↔—]) (?P<target>.+?)(?:: (?P<label>.*))?$")
_ROW_NUMBER = re.compile(r"no\.?|#|項番|番号|行", re.IGNORECASE)
_DISTINCT_SHARE = 0.8
_NAME_CHARS = 20  # of half of the cells of a column of names without a header that says so; longer ones are statements
_HEADER_CHARS = 10  # of a header that says what the cells below it are; a longer one may be a title
_LONGEST_NODE = 40
_QUOTED_TWICE = 2


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """A connector of a diagram."""

    source: tuple[str, ...]  # names of the shape that it starts from, the one that stands for it first
    target: tuple[str, ...]  # names of the shape that it leads to
    text: str


@dataclass(frozen=True, slots=True)
class KeyedRow:
    """A row of a table that says something of what its key names."""

    names: tuple[str, ...]  # names in its naming columns, the key first
    description: str  # what it says of the key, as `column: value`
    text: str


@dataclass
class Structure:
    """What the form of a document tells about names."""

    types: dict[str, str] = field(default_factory=dict)  # names with the type of what they name
    labels: set[str] = field(default_factory=set)  # folded texts that are column headers or labels, never names
    # rows of tables by page number, block and row
    rows: dict[tuple[int, int, int], KeyedRow] = field(default_factory=dict)
    # connectors by page number, block and line
    edges: dict[tuple[int, int, int], DiagramEdge] = field(default_factory=dict)


def read_structure(pages: Sequence[Page], types: EntityTypes) -> Structure:
    """Names that the tables, headings, diagrams and quotation marks of a document give.

    The pages are those with content, see `content_pages`.
    """
    structure = Structure(labels=set(_labels(pages)))
    for page in pages:
        for index, block in enumerate(page.blocks):
            match block.kind:
                case BlockKind.TABLE if block.rows:
                    _read_table(structure, (page.number, index), block, types)
                case BlockKind.DIAGRAM:
                    _read_diagram(structure, (page.number, index), block, types)
    for name in _heading_names(pages, structure):
        _add(structure, name, types)
    texts = (block.text for page in pages for block in page.blocks)
    quote_counts = Counter(without_number(term) for text in texts for term in quoted_terms(text))
    for name in sorted(name for name, count in quote_counts.items() if count >= _QUOTED_TWICE):
        if is_name(name):
            _add(structure, name, types)
    return structure


def row_text(block: Block, line: int) -> str:
    """What a row of a table says, as `column: value`; empty for what is no row of one."""
    if block.kind is not BlockKind.TABLE or line >= len(block.rows):
        return ""
    columns = [name.rpartition(" > ")[2].strip() for name in column_names(block.rows[: block.header_row_count])]
    cells = [one_line(cell) for cell in block.rows[line].cells]
    parts: list[str] = []
    before = ""
    for cell, column in zip(cells, columns or [""] * len(cells), strict=True):
        if any(map(str.isalpha, cell)):
            parts.append(f"{column}: {cell}" if column and column != before else cell)
            before = column
    return " / ".join(dict.fromkeys(parts))


def split_name(text: str) -> tuple[str, ...]:
    """Names that a text such as `B42AA010(振替結果作成)` or `B41AE03 依頼ファイル作成` is made of.

    Returns:
        The words first, then the code; the text itself where it is one name; empty where it is none.
    """
    text = one_line(text.partition("※")[0])
    for form in (_PAIR, _CODE_FIRST, _CODE_LAST):
        match = form.match(text)
        if match:
            codes = [part for part in match.groups() if is_key(part.strip())]
            words = [part for part in match.groups() if not is_key(part.strip())]
            if len(codes) == 1 and len(words) == 1 and is_name(words[0]):
                return clean_name(words[0]), codes[0].strip()
    name = clean_name(text)
    return (name,) if is_name(name) else ()


def without_number(heading: str) -> str:
    """A heading without its number and bullet."""
    return _NUMBERING.sub("", heading.strip()).strip(" 　■□◆●【】")


def _labels(pages: Iterable[Page]) -> Iterator[str]:
    for page in pages:
        for block in page.blocks:
            for row in block.rows[: block.header_row_count]:
                for cell in row.cells:
                    yield fold_name(cell)
                    yield from (fold_name(line) for line in cell.splitlines())
            if block.rows and not block.header_row_count:
                yield from (fold_name(label) for row in block.rows for label, _ in _labelled(row.cells))


def _labelled(cells: Sequence[str]) -> list[tuple[str, str]]:
    """Labels and values of the row of a form, as in `取引ID | W41AB02 | 取引名 | 照会`; empty for other rows."""
    texts = [one_line(cell) for cell in cells]
    distinct = [text for index, text in enumerate(texts) if text and (not index or text != texts[index - 1])]
    if len(distinct) < 2 or len(distinct) % 2:
        return []
    pairs = list(zip(distinct[::2], distinct[1::2], strict=True))
    labels = [label for label, _ in pairs]
    return pairs if all(len(label) <= 20 and not is_code(label) for label in labels) else []


def _read_table(structure: Structure, place: tuple[int, int], block: Block, types: EntityTypes) -> None:
    columns = [name.rpartition(" > ")[2] for name in column_names(block.rows[: block.header_row_count])]
    body = range(block.header_row_count, len(block.rows))
    if not columns:
        for row in body:
            _read_form(structure, (*place, row), _labelled(block.rows[row].cells), types)
        return
    name_columns = _naming_columns(columns, [block.rows[row].cells for row in body])
    for row in body:
        cells = block.rows[row].cells
        names: dict[str, str] = {}
        for column in name_columns:
            for name in split_name(cells[column]):
                names.setdefault(name, _column_type(columns[column], name, types))
        _add_row(structure, (*place, row), names, *_row_texts(columns, cells, name_columns))


def _naming_columns(columns: Sequence[str], body: Sequence[Sequence[str]]) -> list[int]:
    """Columns whose cells name things: those whose header says so, and a first column of distinct names."""
    by_header = [
        index
        for index, column in enumerate(columns)
        if _NAMING.search(column.strip()) and not _NOT_NAMING.search(column.strip())
    ]
    for index in range(min(2, len(columns))):
        cells = [row[index] for row in body if row[index].strip()]
        names = [cell for cell in cells if split_name(cell)]
        if index in by_header or _NOT_NAMING.search(columns[index].strip()):
            continue
        short = sum(len(cell) <= _NAME_CHARS for cell in names)
        if 2 * short >= len(cells) > 1 and len(names) >= len(cells) * _DISTINCT_SHARE <= len(set(names)):
            by_header.append(index)
            break
    return sorted(by_header)


def _column_type(column: str, name: str, types: EntityTypes) -> str:
    """Type of a name in a column: an identifier by its form, else what its last word or the column's header shows."""
    if is_key(name) or Span(0, len(name), IDENTIFIER) in identifiers(name, is_japanese=True):
        return IDENTIFIER
    column = column.strip()
    stem = _HEADER_SUFFIX.sub("", column) if _NAMING.search(column) or len(column) <= _HEADER_CHARS else ""
    return types.of_ending(name) or types.of_ending(f"・{stem}") or TERM


def _row_texts(columns: Sequence[str], cells: Sequence[str], name_columns: Sequence[int]) -> tuple[str, str]:
    """What a row says of its key, its describing columns or else all but the key and numbers of rows, and all of it."""
    pairs = {
        index: (column, one_line(cell))
        for index, (column, cell) in enumerate(zip(columns, cells, strict=True))
        if cell.strip() and column.strip() and not _ROW_NUMBER.fullmatch(column.strip())
    }
    other_pairs = [pair for index, pair in pairs.items() if index not in name_columns[:1]]
    descriptions = [pair for pair in other_pairs if _DESCRIBING.search(pair[0])]
    naming_pairs = [pairs[index] for index in name_columns if index in pairs]
    text_pairs = [*naming_pairs, *(descriptions or other_pairs)]
    return _joined_pairs(descriptions or other_pairs), _joined_pairs(dict.fromkeys(text_pairs))


def _joined_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return " / ".join(f"{column}: {cell}" for column, cell in pairs)


def _read_form(
    structure: Structure, place: tuple[int, int, int], pairs: Sequence[tuple[str, str]], types: EntityTypes
) -> None:
    names: dict[str, str] = {}
    for label, value in pairs:
        if _NAMING.search(label) and not _NOT_NAMING.search(label):
            names |= {name: _column_type(label, name, types) for name in split_name(value)}
    text = _joined_pairs(pairs)
    _add_row(structure, place, names, text, text)


def _add_row(
    structure: Structure, place: tuple[int, int, int], types: Mapping[str, str], description: str, text: str
) -> None:
    """Note a row with the types of its names, but for those that are labels."""
    names = {name: kind for name, kind in types.items() if fold_name(name) not in structure.labels}
    if names:
        structure.rows[place] = KeyedRow(tuple(names), description, text)
        for name, kind in names.items():
            structure.types.setdefault(name, kind)


def _read_diagram(structure: Structure, place: tuple[int, int], block: Block, types: EntityTypes) -> None:
    for number, line in enumerate(block.text.split("\n")):
        match = _EDGE.match(line)
        if not match:
            continue
        source, target = (split_name(match[end]) for end in ("source", "target"))
        for name in (*source, *target):
            if len(name) <= _LONGEST_NODE:
                _add(structure, name, types)
        if source and target:
            structure.edges[*place, number] = DiagramEdge(source, target, line)


def _heading_names(pages: Sequence[Page], structure: Structure) -> Iterator[str]:
    """Names in headings: those with a code, and those that the text of the document uses as well.

    A heading that stands more than once in a document (処理概要, 項目定義) divides it and names nothing.
    """
    headings = [
        without_number(block.text)
        for page in pages
        for block in page.blocks
        if block.kind is BlockKind.HEADING and "\n" not in block.text
    ]
    counts = Counter(map(fold_name, headings))
    plain: dict[str, str] = {}
    for heading in headings:
        names = split_name(heading)
        if len(names) == 2:
            yield from names
        elif names and counts[fold_name(heading)] == 1 and fold_name(names[0]) not in structure.labels:
            plain[names[0]] = TERM
    only = [block for page in pages for block in page.blocks if block.kind is BlockKind.HEADING]
    if len(only) == 1 and len(plain) == 1:  # the title of an article names its subject
        yield from plain
        return
    known_names = KnownNames(plain)
    used_names: set[str] = set()
    for page in pages:
        for block in page.blocks:
            if block.kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.TABLE, BlockKind.NOTE}:
                used_names |= {fold_name(block.text[span.start : span.end]) for span in known_names.find(block.text)}
    yield from (name for name in plain if fold_name(name) in used_names)


def _add(structure: Structure, name: str, types: EntityTypes) -> None:
    if fold_name(name) not in structure.labels and name not in structure.types:
        structure.types[name] = IDENTIFIER if is_key(name) else types.of_ending(name) or TERM
