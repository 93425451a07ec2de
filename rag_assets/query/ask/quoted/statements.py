"""What a passage states, piece by piece, as it may be said in an answer: sentences, rows, records and lists.

- A sentence stands with the headings above it.
- A row is said with the header of its table, as `header: value`; a header by itself states nothing.
- Lines `label: value` that follow each other are one record, up to the label that comes again.
- Short lines are a heading with what stands under it; a line that announces something (`以下の通り。`, `as follows:`)
  goes with it. Headings alone state nothing.
- A question is a heading, as of the answer that follows it.
- What a connector of a diagram joins (`利用者 → サーバ`) is a statement of its own.

What stays out: which of them answers a question (`rag_assets.query.ask.quoted.extracts`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise, zip_longest
from types import MappingProxyType

from rag_assets.query.ask.quoted.item_marks import ITEM, counts_on, is_first_item
from rag_assets.query.ask.quoted.passage_lines import (
    ENDED,
    STATEMENT_CHARS,
    is_heading,
    is_row,
    is_title,
    lines_of,
    places_of_steps,
    sentences_of,
    split_cells,
    step_number,
)
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import content_words
from rag_assets.text.language import cut
from rag_assets.text.plain import announces, asks, is_total, one_line, squeezed
from rag_assets.text.scripts import HIRAGANA, ITEM_LETTERS

_LONGEST_CHARS = 1000  # of text without any end
_LIST_CHARS = 1_500
_LEAST_WORDS = 2  # content words of a statement
_LEAST_HEADER_CELLS = 3  # the first row of a table of two columns is as often a label with its value
_HEADINGS = 2  # that a statement stands under, the last ones
_NEAR_HEADINGS = 30  # the last ones, among which is that which a numbered one is below
_BETWEEN_TABLES = "\n\n"  # in a passage
_NUMBERED = re.compile(
    r"(?:第\s?)?[\d一二三四五六七八九十]+[編章節条.．、\s]|(?:article|section|chapter|part)\b", re.IGNORECASE
)
_STATES = re.compile(  # the number of an item, a label and its value
    rf"(?:[(（]?(?:\d{{1,2}}|[{ITEM_LETTERS}一二三四五六七八九十])[)）.．、]|[①-⑳])\s*.{{2,30}}(?:[：:]|[・…‥]{{2,}}|…)\s*(?=\S.)"
)
RESTRICTS = re.compile(  # at the beginning of a sentence that says little without the one before it
    r"ただし|但し|(?:もっとも|したがって|[こそ]の(?:場合|とき|際)(?:に?は|にも?)?|[こそ]のため|これにより)[、,]"
    r"|(?:however|otherwise|therefore|in (?:this|that|such a|these|such) cases?),",
    re.IGNORECASE,
)
_COUNTS = re.compile(r"(?:\d|[一二三四五六七八九])(?:つ|点|種類|通り|段階)(?:の|に|が?あ)")  # and may name all
_POINTS_TO_ROWS = re.compile(
    r"(?:以下|下記|次|下)の?(?:表|者|通り|とおり|もの|各|(?:\d|[一二三四五六七八九])(?:つ|点|種|段階|項目))|下表"
    r"|\b(?:following|table below)\b",
    re.IGNORECASE,
)
_QUOTE_CHARS = 30  # by which a quote is found
_SECTION_NAME = re.compile(
    r"第\s?[\d一二三四五六七八九十百]+\s?[編章節条]|[■◆【]"
    r"|\d+(?:[-－.．]\d+)+(?![\d.．]*\s?(?:[%％倍円人名個件本枚台回点秒分日歳割]|時間|か月|[kmc]?[mgl]|km|[KMGT]B|ms)"
    rf"(?:$|[\W{HIRAGANA}]|以[内上下]|程度))"  # no figure with its unit
)
_LISTED_BELOW = re.compile(r"\b(?:listed|named|shown|set out|given) below\b", re.IGNORECASE)
_PAIR = re.compile(r"^(?P<label>[^:：|。]{1,60}?): (?P<value>\S.*)$")
_HEADS = re.compile(
    r"#{1,6}\s|\d+(?:[-－.．]\d+)*\.|第\s?[\d一二三四五六七八九十百]+\s?[編章節条]|（[^\d（）()]{2,20}）$|【[^】]+】$"
)
_LEVELS = re.compile(r"(?P<number>\d+(?:\.\d+)*)(?![\d])\.?\s*\D")  # of a heading, as of `7.4. Title`
_COLON = re.compile("[:：]")
_CONNECTION = re.compile(r"(?P<start>.+?) (?P<sign>[→↔—]) (?P<end>.+)")
_COLUMN = re.compile(  # a header whatever stands below it, of tables of two columns, too
    r"項目名?|名[称前]|内容|値|説明|備考|概要|意味|用途|種別|区分|パラメータ名?|\W*"
    r"|(?:default )?value|key|name|description|items?|contents?|parameter|type|field|meaning",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\W*(?:備\s?考|補\s?足|注記|特記事項|メモ|コメント|remarks?|notes?|comments?)\W*", re.IGNORECASE)
_FORM_LABEL = re.compile(  # of the title block of a document, where labels and values take turns
    r"(?:サブ|業務)?システム(?:名称?|ID)|プロジェクト名|(?:文書|資料|成果物|ドキュメント|ファイル|設計書)(?:名称?|番号|ID)"
    r"|(?:作成|更新|改[訂定版]|承認|確認|検印|レビュー)(?:者|日付?|年月日)|版数?|バージョン|工程名?"
    r"|(?:(?:論理|物理)?テーブル|スキーマ|データベース|(?:サブ)?機能|画面|帳票|処理|クラス|パッケージ|業務)(?:名称?|ID)|RDBMS|備考"
    r"|(?:system|project|document|file|table|schema|screen) (?:name|id)|(?:created|updated|approved) (?:by|on)"
    r"|author|approver|version|date",
    re.IGNORECASE,
)
_LEAST_FORM_LABELS = 2
NAME_LABEL = re.compile(  # of what the rows beside it describe
    r"(?:[論物]理)?"
    r"(?:テーブル|エンティティ|ファイル|画面|帳票|機能|処理|クラス|電文|レコード|ジョブ|バッチ|API|メッセージ|システム)"
    r"(?:の|[論物]理)?(?:名称?|英名|和名)|(?:physical |logical )?(?:table|entity|screen|file|class|api|job) name",
    re.IGNORECASE,
)
_NAMED_CHARS = 60
_DESCRIBES = re.compile(  # label of what is said of it
    r"\w{0,8}(?:説明|概要|備考|目的|用途|役割|内容)|description|summary|purpose|overview|remarks?|notes?", re.IGNORECASE
)
_HEADS_NONE = re.compile(  # a number, a mark, and what a column of marks says
    r"[\W\d①-⑳]+|.|必[須要]|任意|不[可要]|対象外?|あり|なし|済み?|yes|no|true|false", re.IGNORECASE
)
_DIGIT = re.compile(r"\d")
_FIGURE = re.compile(r"[¥￥$€]?\s?\d")
_VALUE = re.compile(r"^\W*\d[\d.,:/-]*\W*$|: |[☐☑]")


class StatementKind(StrEnum):
    """What a statement is."""

    SENTENCE = "sentence"
    ROW = "row"  # also a record
    LIST = "list"  # what is announced or headed, with its heading
    CONNECTION = "connection"  # what a connector of a diagram joins
    HEADING = "heading"  # short lines, or a header, with nothing under them


@dataclass(frozen=True)
class Statement:
    """Something that a passage states."""

    text: str  # its words, as they stand; of a row its cells
    kind: StatementKind  # what it is
    context: str = ""  # headings above it and the header of its table
    # of a row, pairs of header and value; the header is empty where there is none. Of a connection, one pair: what it
    # leads from and to
    cells: tuple[tuple[str, str], ...] = ()
    following: str = ""  # of a sentence, the next one of its paragraph
    preceding: str = ""  # of one that restricts or goes on with the one before it, that one
    lines: tuple[str, ...] = ()  # of a list, its lines, first what announces or heads it
    # of a row, the cell that stands alone above it and those beside it, and those above its first empty cells
    group: str = ""
    is_whole: bool = False  # of a list, whether it has all that stands together with it on the page
    answering: int | None = None  # of a row, the place of the one of its cells that is known to answer


def statements(
    text: str, headers: Set[str] = frozenset(), body: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> list[Statement]:
    """The statements of a passage in its order, each once; those too long to be said are left out.

    Where all of it could be headings, these are what it states, but for questions.

    Args:
        text: Of the passage.
        headers: Rows that are known to name the columns of a table, as lines of the passage.
        body: Rows that are known to stand below names of columns, with these, which count where rules find none; with
            nothing where their table has none.
    """
    distinct: dict[tuple[str, str], Statement] = {}
    for statement in _StatementReader(headers, body).read(text):
        duplicate = distinct.get((statement.group, statement.text))
        if duplicate is None or statement.kind is not StatementKind.HEADING:
            distinct[statement.group, statement.text] = statement
    candidates = [
        statement
        for statement in distinct.values()
        if len(content_words(statement.text)) >= _LEAST_WORDS
        and len(cut(statement.text, STATEMENT_CHARS)) <= _LONGEST_CHARS
    ]
    if all(statement.kind is StatementKind.HEADING for statement in candidates):
        told = (statement for statement in candidates if not asks(statement.text))
        return [replace(statement, kind=StatementKind.SENTENCE) for statement in told]
    return candidates


def heading_above(text: str, quote: str) -> str:
    """The last numbered or marked heading of a passage above what is quoted of it; empty where there is none."""
    begin = squeezed(quote)[:_QUOTE_CHARS]
    heading = text_so_far = ""
    for line in map(one_line, text.splitlines()):
        if _SECTION_NAME.match(line) and is_heading(line) and not is_row(line):
            heading = line
        text_so_far += squeezed(line)
        if begin and begin in text_so_far:
            return heading
        text_so_far = text_so_far[-_QUOTE_CHARS:]
    return ""


@dataclass
class _StatementReader:
    """Reads lines one after the other; what is open is closed by the first line that does not belong to it."""

    headers: Set[str]
    body: Mapping[str, tuple[str, ...]]
    headings: list[str] = field(default_factory=list)
    item: str = ""  # the last short line with a bullet, which may head a table
    group: str = ""  # the last cell that stood alone in its row, above others of the table
    is_listed: bool = False  # a cell stands alone in the row before: one of a list, which heads nothing
    header: tuple[str, ...] = ()
    widest: int = 0  # cells of the rows of this table so far: its first row may be a header, or a wider one below
    above: tuple[str, ...] = ()  # the row above in this table, with the cells that span it
    is_full: bool = False  # a row of this table has all columns of the header
    is_read: bool = False  # the header is known to be one, and not guessed
    is_below: bool | None = None  # the rows of this group begin with an empty cell; None before the first
    naming: list[str] = field(default_factory=list)  # the rows above that name one thing
    named: dict[str, str] = field(default_factory=dict)  # what rows describe, by the labels of its names
    record: list[tuple[str, str]] = field(default_factory=list)
    lead: str = ""  # what announces or heads the lines gathered
    gathered: list[str] = field(default_factory=list)
    outer: tuple[str, list[str]] | None = None  # the list within which the one gathered is announced, by an item
    is_step: bool = False  # the line that is read
    following: tuple[str, str] = ("", "")  # the lines after it

    def read(self, text: str) -> Iterator[Statement]:
        for part in text.split(_BETWEEN_TABLES):
            self._end_table()
            yield from self._read(part)
        yield from self._closed_record()
        yield from self._closed_list()

    def _end_table(self) -> None:
        self.header, self.widest, self.group, self.above = (), 0, "", ()
        self.named, self.naming = {}, []

    def _read(self, text: str) -> Iterator[Statement]:
        lines = lines_of(text)
        steps = places_of_steps(lines)
        for place, (line, *next_lines) in enumerate(zip_longest(lines, lines[1:], lines[2:], fillvalue="")):
            self.following, self.is_step = (next_lines[0], next_lines[1]), place in steps
            if self.outer is not None and counts_on(self.lead, line) and not self._repeats_outer(line):
                yield from self._closed_inner()
            pair = _PAIR.match(line) if not is_row(line) else None
            if pair is None or any(label == pair["label"] for label, _ in self.record):
                yield from self._closed_record()
            connection = _CONNECTION.fullmatch(line) if not is_row(line) else None
            if connection is not None and len(line) <= STATEMENT_CHARS:
                yield Statement(
                    line, StatementKind.CONNECTION, self._context, ((connection["start"], connection["end"]),)
                )
            elif is_row(line):
                yield from self._row(line)
            elif pair is not None and len(line) <= STATEMENT_CHARS:
                self.record.append((pair["label"], pair["value"]))
                self._gather(line)
            elif is_heading(line):
                if _STATES.match(line):
                    yield Statement(line, StatementKind.SENTENCE, self._context)
                yield from self._heading(line)
            else:
                yield from self._prose(line)

    @property
    def _context(self) -> str:
        """The last headings; before one with a number of several levels, as `7.4.`, that which it is below."""
        headings = self.headings[-_NEAR_HEADINGS:]
        numbers = [match["number"] if (match := _LEVELS.match(heading)) else "" for heading in headings]
        last = next((at for at in range(len(numbers))[: -_HEADINGS - 1 : -1] if "." in numbers[at]), None)
        if last is None:
            return " ".join(headings[-_HEADINGS:])
        outer = numbers[last].rpartition(".")[0]
        above = next((at for at in reversed(range(last)) if numbers[at] == outer), last)
        return " ".join((*headings[above : above + 1], *headings[max(last, above + 1) :]))

    def _announced(self, sentence: str) -> bool:
        items = any(map(ITEM.match, self.following)) or (
            (_POINTS_TO_ROWS.search(sentence) or announces(sentence)) and is_row(self.following[0])
        )
        are_names = all(line and is_heading(line) and not is_row(line) for line in self.following)
        if _LISTED_BELOW.search(sentence) and are_names:
            return True
        return bool(_leads_on(sentence) and items) or announces(sentence, surely=True)

    def _nests(self, line: str) -> bool:
        """Whether an item is followed by items or rows of its own; those within these are items of both lists."""
        next_line = self.following[0]
        is_item = self.outer is None and ITEM.match(line) and (ITEM.match(next_line) or is_row(next_line))
        return bool(is_item) and not counts_on(line, next_line)

    def _repeats_outer(self, line: str) -> bool:
        """Whether the item after this one of the inner list has the number of the next one of the outer list, too."""
        counts_in = bool(self.gathered) and counts_on(self.gathered[-1], line)
        return counts_in and counts_on(self.lead, self.following[0]) and not (announces(self.lead) and announces(line))

    def _continued_item(self) -> str:
        """The last item of a list that goes on with the next one behind this line or the one below; else nothing."""
        item = next((line for line in reversed(self.gathered) if ITEM.match(line)), "")
        return item if self.lead and any(counts_on(item, line) for line in self.following) else ""

    def _gather(self, line: str) -> None:
        for lead, lines in ((self.lead, self.gathered), self.outer or ("", [])):
            if lead and sum(map(len, lines)) + len(line) <= _LIST_CHARS:
                lines.append(line)

    def _closed_inner(self) -> Iterator[Statement]:
        """Close the list that an item of another one announces, which goes on."""
        if self.outer is not None:
            (lead, gathered_lines), self.outer = self.outer, None
            yield from self._closed_list()
            self.lead, self.gathered = lead, gathered_lines

    def _closed_list(self) -> Iterator[Statement]:
        yield from self._closed_inner()
        if self.lead and self.gathered:
            lines = (self.lead, *self.gathered)
            yield Statement(" ".join(lines), StatementKind.LIST, self._context, lines=lines)
        elif self.lead:
            yield Statement(self.lead, StatementKind.HEADING, self._context)
        self.lead, self.gathered = "", []

    def _closed_record(self) -> Iterator[Statement]:
        if self.record:
            self.above = ()
            text = " ".join(f"{label}: {value}" for label, value in self.record)
            yield Statement(text, StatementKind.ROW, self._context, tuple(self.record))
            self.record = []

    def _row(self, line: str) -> Iterator[Statement]:
        values = split_cells(line)
        is_alone = bool(values[0]) and not any(values[1:])
        if is_alone and not self.widest:  # of no table
            yield from self._heading(line)
            return
        self._gather(line)
        if is_alone:
            self.above, self.is_below = (), None
            heads = CELL_SIGN in self.following[0]
            self.group = values[0] if heads and not self.is_listed else ""
            self.is_listed = True
            if heads:
                self.item = values[0]
            else:
                only = (self.header[0] if self.header else "", values[0])
                yield Statement(values[0], StatementKind.ROW, self._context, (only,))
            return
        self.is_listed = False
        pairs = [_PAIR.match(value) for value in values]
        if sum(pair is not None for pair in pairs) * 2 > len(values):
            cells = [
                (pair["label"], pair["value"]) if pair else ("", value)
                for pair, value in zip(pairs, values, strict=True)
            ]
            self.above = ()
            yield Statement(line, StatementKind.ROW, self._context, tuple(cells))
            return
        columns = self.body.get(line)
        is_headed = _heads(self.header, values, lacks_remarks=not self.is_full, lacks_last=self.is_read)
        if columns and not is_headed:
            self.header = (*columns, *[""] * (len(values) - len(columns)))
            self.widest = len(self.header)
            is_headed = not _is_of_form(self.header, values)
        self.is_full = self.is_full or (is_headed and len(values) == len(self.header))
        values += [""] * (len(self.header) - len(values)) if is_headed else []
        cells = list(zip(self.header, values, strict=True)) if is_headed else [("", value) for value in values]
        is_known, is_guessed = line in self.headers, columns is None
        is_header = is_known or (is_guessed and all(map(_COLUMN.fullmatch, values)))
        if is_known or len(values) > self.widest:
            header = tuple(values) if is_known else ()
            header = header or (_header(line, values) or self._header_of_two(values) if is_guessed else ())
            self.header, self.widest, self.is_read = header, len(values), is_known
            self.is_full = False
            is_header = is_header or (bool(self.header) and not is_headed)
        yield from self._names(line, values)
        self.is_below = not values[0] if self.is_below is None else self.is_below
        self.group = "" if is_header or (self.is_below and values[0]) else self.group
        described = () if is_header else self._described(values)
        context = " ".join(filter(None, (self._context, *described, self.item, *(self.header if is_headed else ()))))
        kind = StatementKind.HEADING if is_header else StatementKind.ROW
        spanning_cells = _spanning(self.above, values) if is_headed else ()
        total = is_total(values[0])
        self.above = (*spanning_cells, *values[len(spanning_cells) :]) if is_headed and not total else ()
        group = "" if total else CELL_SIGN.join(filter(None, (self.group, *spanning_cells)))
        yield Statement(line, kind, context, tuple(cells), group=group)

    def _names(self, line: str, values: Sequence[str]) -> Iterator[Statement]:
        """Names of one thing in rows below each other (`論理テーブル名`, `物理テーブル名`), as one statement."""
        self.naming = [*self.naming, line] if len(values) == 2 and NAME_LABEL.fullmatch(values[0]) else []
        next_label = split_cells(self.following[0])[0]
        if len(self.naming) > 1 and not NAME_LABEL.fullmatch(next_label):
            label_cells = [split_cells(row) for row in self.naming]
            cells = tuple((label, value) for label, value in label_cells)
            yield Statement(" ".join(self.naming), StatementKind.ROW, self._context, cells)

    def _described(self, values: Sequence[str]) -> tuple[str, ...]:
        """What a row that describes something, by its label, is of: the names that rows above it give."""
        names = {
            label: value
            for label, value in pairwise(values)
            if NAME_LABEL.fullmatch(label) and 0 < len(value) <= _NAMED_CHARS and not NAME_LABEL.fullmatch(value)
        }
        if not self.named.keys().isdisjoint(names):
            self.named = {}  # of another thing
        self.named |= names
        return tuple(self.named.values()) if any(map(_DESCRIBES.fullmatch, values[:-1])) else ()

    def _header_of_two(self, values: Sequence[str]) -> tuple[str, ...]:
        """The first row of two cells, where those below have a figure in the second, and it has none."""
        below = [split_cells(line) for line in self.following]
        figures = [cells[-1] for cells in below if len(cells) == len(values) == 2]
        are_values = len(figures) == len(below) and all(map(_FIGURE.match, figures))
        return tuple(values) if are_values and not any(map(_DIGIT.search, values)) else ()

    def _heading(self, line: str) -> Iterator[Statement]:
        self._end_table()
        item, is_step = ITEM.match(line) is not None, self.is_step and not step_number(self.lead)
        states = _STATES.match(line) is not None
        is_of_questions = asks(self.following[0]) or (bool(self.gathered) and asks(self.gathered[-1]))
        heads = asks(line) and not item and not is_of_questions
        heads = heads or (
            self._heads_next(line, item=item) and not (is_step or states or self._is_announced_item(line))
        )
        if self.lead and not heads and (self.gathered or announces(self.lead) or is_step or not item):
            self._gather(line)
        else:
            yield from self._closed_list()
            self.lead = line
        if not states and (not item or _HEADS.match(line)):
            self.headings.append(line)
        self.item = line if item else ""

    def _heads_next(self, line: str, *, item: bool) -> bool:
        """Whether a short line heads what follows: by its number or brackets, or as it ends a list of marked items."""
        ends_items = bool(self.gathered) and all(map(ITEM.match, self.gathered)) and not item
        return bool(_HEADS.match(line)) or (
            ends_items and not _COLON.search(line) and not ITEM.match(self.following[0])
        )

    def _is_announced_item(self, line: str) -> bool:
        """Whether a line is the first item that the lead of the list announces, or counts on from the last one."""
        before = self.gathered[-1] if self.gathered else ""
        return announces(self.lead) and (counts_on(before, line) if before else is_first_item(line))

    def _prose(self, line: str) -> Iterator[Statement]:
        self._end_table()
        self.item = ""
        if self.lead and not self.gathered and ENDED.search(self.lead) and not _leads_on(self.lead):
            line, self.lead = f"{self.lead} {line}", ""  # a fragment, as "Table 6."
        elif len(self.gathered) == 1 and _NUMBERED.match(self.lead) and all(map(is_title, (self.lead, *self.gathered))):
            self.lead, self.gathered = self.gathered[0], []  # two headings, the inner of which heads the text
        parts = sentences_of(line)
        at = next((place for place in range(len(parts))[-3:] if self._announced(parts[place])), len(parts))
        is_lead = at < len(parts)
        heads_items = announces(self.lead) or not (is_lead or ITEM.match(self.lead))
        leads_on = not self.gathered and heads_items and ITEM.match(self.following[0]) is not None
        if self.lead and is_lead and self._nests(line):
            self._gather(line)
            self.outer, self.lead, self.gathered = (self.lead, self.gathered), line, []
        elif self.lead and (ITEM.match(line) or leads_on):
            self._gather(line)
        elif item := self._continued_item():
            self._gather(line)
            yield Statement(f"{item} {line}", StatementKind.LIST, self._context, lines=(item, line))
        else:
            if not self.gathered and not is_lead:
                self._gather(line)
            is_long = len(self.lead) > STATEMENT_CHARS
            above = "" if self.gathered or not is_lead or is_long else self.lead
            self.lead = "" if above else self.lead
            yield from self._closed_list()
            if is_lead:
                self.lead = " ".join(filter(None, [above, *parts[at:]]))
        end = at if is_lead and announces(parts[at]) else len(parts)
        before = ""
        for place, (part, next_part) in enumerate(pairwise([*parts, ""])):
            if place == end:  # said with the list that it announces
                before = part
                continue
            if asks(part):
                self.headings.append(part)
                yield Statement(part, StatementKind.HEADING, self._context)
            else:
                goes_on = "" if place + 1 == end or asks(next_part) else next_part
                preceding = before if RESTRICTS.match(part) and not asks(before) else ""
                yield Statement(part, StatementKind.SENTENCE, self._context, following=goes_on, preceding=preceding)
            before = part


def _spanning(above: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    """Cells of the row above that stand over the empty ones with which a row begins, as those of a group do; a number,
    a mark or a total heads none.
    """
    first = next((place for place, value in enumerate(values) if value), 0)
    over = tuple(above[:first]) if len(above) == len(values) else ()
    heads_none = not over or not over[0] or any(_HEADS_NONE.fullmatch(cell) or is_total(cell) for cell in over)
    return () if heads_none else over


def _leads_on(sentence: str) -> bool:
    """Whether a sentence points to what follows it, or counts what may."""
    return announces(sentence) or _COUNTS.search(sentence) is not None


def _header(row: str, cells: Sequence[str]) -> tuple[str, ...]:
    """The first row of a table, where it may be its header: no cell is a figure, a date, or a label with its value."""
    if len(cells) < _LEAST_HEADER_CELLS or len(row) > STATEMENT_CHARS or any(map(_VALUE.search, cells)):
        return ()
    return tuple(cells)


def _heads(header: Sequence[str], row: Sequence[str], *, lacks_remarks: bool, lacks_last: bool) -> bool:
    """Whether a row has the columns of a header; one that repeats a cell of it, or has labels where it has, is one more
    line of labels and values.

    A row with a number before it, or any where they may be lacked, may lack the last columns, which are empty; another
    one, that of remarks, where no row has any.
    """
    missing_count = len(header) - len(row)
    may_lack = row[0].isdecimal() or (lacks_last and bool(row[0]) and not is_total(row[0]))
    may_lack = may_lack and len(row) >= max(_LEAST_HEADER_CELLS, len(header) / 2)
    without = (
        lacks_remarks and missing_count == 1 and _REMARK.fullmatch(header[-1]) is not None and not is_total(row[0])
    )
    is_row = missing_count == 0 or (missing_count > 0 and (may_lack or without))
    repeats = any(name.strip() == value.strip() != "" for name, value in zip(header, row, strict=False))
    return is_row and not repeats and not _is_of_form(header, row)


def _is_of_form(header: Sequence[str], row: Sequence[str]) -> bool:
    """Whether a row has labels where a header has, as in a form."""
    pairs = [(name.strip(), value.strip()) for name, value in zip(header, row, strict=False)]
    return sum(all(map(_FORM_LABEL.fullmatch, pair)) for pair in pairs) >= _LEAST_FORM_LABELS
