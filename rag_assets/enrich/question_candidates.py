"""Questions that the parts of a document answer, by rules: from table rows, labelled values, sentences and headings,
phrased as a person would ask, in Japanese and English.

What stays out: which of them are worth keeping (`rag_assets.enrich.questions`).
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from rag_assets.contracts.causes import BlockKind
from rag_assets.enrich.question_phrases import (
    SUBJECT_CHARS,
    CandidateKind,
    English,
    Japanese,
    Writer,
    document_subject,
)
from rag_assets.enrich.question_sentences import english_questions, japanese_questions
from rag_assets.enrich.question_texts import (
    ANSWER_CHARS,
    LABEL_CHARS,
    LETTER,
    SHORTEST_ANSWER,
    folded,
    is_data,
    is_header_word,
    is_hollow,
    is_japanese,
    is_label,
    is_record_label,
    is_section_name,
    is_sentence,
    joined,
    one_line,
    plain_heading,
    says_something,
    sentences,
)
from rag_assets.enrich.summaries import row_text
from rag_assets.parsing.chunking import column_names
from rag_assets.parsing.content import Block, Page, Row
from rag_assets.parsing.language import detect_language, split_sentences

Item = TypeVar("Item")

_ROWS = 60  # of a table, evenly spread
_CELLS = 2  # of a row
_LISTED = 20  # names in the answer to what a table lists
_KEY_CHARS = 70
_PATH = 2  # columns that name rows together, at most
_OFTEN = 8  # rows that may say the same
_GROUPED = 6  # rows that bear one name together, at most

_NUMBER_HEADER = re.compile(r"(?:no\.?|№|#|番号|項番|項|連番|通番|行番号?|.{0,8}no\.?|seq|s/n)\.?", re.IGNORECASE)
_NAME_HEADER = re.compile(
    r"(?:名|名称|名前|氏名|件名|題名|題目|タイトル|項目|品目|用語|コード|ID|name|title|subject|term|item|code|model)$",
    re.IGNORECASE,
)
_CLASS_HEADER = re.compile(r"(?:項目|分類|区分|種別|観点|カテゴリー?|category|class|group|type)\d*$", re.IGNORECASE)
_CODE_HEADER = re.compile(r"(?:コード|ID|番号|code|number)\)?$", re.IGNORECASE)
_CODE = re.compile(r"(?=[A-Za-z0-9_./-]*\d)(?=[A-Za-z0-9_./-]*[A-Za-z])[A-Za-z0-9_./-]{3,}")
_CHECKED = re.compile(r"☑\s*([^☐☑]+)")
_CHOICES = re.compile(r"^(?:データ|リスト|選択肢|プルダウン|入力規則|data|lists?|choices)$", re.IGNORECASE)
_APART = re.compile(
    r"^(?:変更履歴|改訂履歴|改定履歴|更新履歴|目次|凡例|参考文献|索引"
    r"|revision history|change history|table of contents|contents|references|bibliography|acknowledg\w+|index)$"
    r"|^補足|(?:記述|記載|記入|入力)(?:方法|例|要領|要項|上の注意|説明)(?:の説明|について)?$"
    r"|^(?:how to (?:fill in|fill out|complete) th|instructions? (?:for|to) (?:use|filling|complet))",
    re.IGNORECASE,
)
_PAIR = re.compile(r"^\s*[・\-*]?\s*(?P<label>[^\s:：。、,，?？][^:：。、,，?？]{0,38}?)\s*[:：]\s*(?P<value>\S.*)$")


@dataclass(frozen=True)
class Candidate:
    """A question with its answer.

    Attributes:
        kind: What it was made from.
        question: The question.
        answer: The answer, in words of the document.
        page_number: Page that it was made from.
        block_index: Block of that page.
        quotes: Words that a passage must hold to bear the answer out.
        subject: Words of the question that say what it is about, without those that all questions share.
    """

    kind: CandidateKind
    question: str
    answer: str
    page_number: int
    block_index: int
    quotes: tuple[str, ...]
    subject: str


def candidates(
    document_id: str, title: str, pages: Sequence[Page], language: str, common: Container[str] = ()
) -> list[Candidate]:
    """Questions that a document answers, in reading order; several may ask nearly the same.

    Args:
        document_id: Its id.
        title: Its title.
        pages: Its pages; cover sheets, tables of contents, revision histories, sheets of choices for other cells or on
            how a form is filled in, and hidden pages are passed over.
        language: Its main language.
        common: Lines that many documents share; no question is made from them.
    """
    topic, kind = document_subject(document_id, title, language)
    found: list[Candidate] = []
    for page in pages:
        if not is_content(page):
            continue
        local = detect_language("\n".join(block.text for block in page.blocks)[:4000])
        phrasing = local if local in ("ja", "en") else language
        if language == "ja" and any(is_japanese(block.text) for block in page.blocks):
            phrasing = "ja"
        writer = Japanese(topic, kind) if phrasing == "ja" else English(topic)
        found += _page_candidates(page, writer, common)
    return [each for each in found if _is_sound(each)]


def is_content(page: Page) -> bool:
    """Whether a page says what its document is there to say."""
    name = page.name or ""
    return not (page.hidden or page.role is not None or _CHOICES.match(name) or _APART.search(plain_heading(name)))


def document_candidate(
    document_id: str, title: str, language: str, pages: Sequence[Page], place: tuple[int, int], answer: str, quote: str
) -> Candidate | None:
    """The question what a document is about.

    Args:
        document_id: Its id.
        title: Its title.
        language: Its main language.
        pages: Its pages, for a name where the title has none.
        place: Page and block that the answer stands in.
        answer: A sentence or row of the document that says it.
        quote: Words that the passage must hold.

    Returns:
        None where nothing names the document, or there is no answer.
    """
    topic, kind = document_subject(document_id, title, language)
    if not (topic or kind):
        names = [page.name or "" for page in pages] + [
            plain_heading(block.text) for page in pages for block in page.blocks if block.kind is BlockKind.HEADING
        ]
        topic = next((name for name in names if 2 <= len(name) <= 2 * SUBJECT_CHARS and not is_data(name)), "")
        topic = topic or PurePosixPath(document_id).stem
    writer = Japanese(topic, kind) if language == "ja" else English(topic)
    question = writer.document()
    made = Candidate(CandidateKind.DOCUMENT, question, answer, *place, (quote,), topic)
    return made if question and len(answer) >= SHORTEST_ANSWER and _is_sound(made) else None


def _page_candidates(page: Page, writer: Writer, common: Container[str]) -> Iterator[Candidate]:
    blocks = [without_common(block, common) for block in page.blocks]
    for index, block in enumerate(blocks):
        if any(_APART.search(plain_heading(heading)) for heading in (*block.section, block.text[:40])):
            continue
        section = _section(block, page, writer)
        maker = _Maker(page.number, index, section, writer)
        match block.kind:
            case BlockKind.HEADER | BlockKind.CAPTION:
                continue
            case BlockKind.DIAGRAM:
                yield from _diagram(block, maker)
            case BlockKind.TABLE if block.rows:
                yield from _table(block, maker, common)
            case BlockKind.HEADING:
                yield from _heading(block, blocks[index + 1 :], maker)
            case _:
                yield from _prose(block, maker)


def without_common(block: Block, common: Container[str]) -> Block:
    """A block without the sentences that many documents share; headings and tables stay as they are."""
    if block.kind is BlockKind.HEADING or block.rows:
        return block
    lines = split_sentences(block.text)
    own = [line for line in lines if line not in common]
    return block if len(own) == len(lines) else replace(block, text="\n".join(own))


@dataclass(frozen=True)
class _Maker:
    """Makes candidates of one block."""

    page_number: int
    block_index: int
    section: str
    writer: Writer

    def make(
        self, kind: CandidateKind, question: str, answer: str, quotes: Iterable[str], subject: str, offset: int = 0
    ) -> Iterator[Candidate]:
        ticked = [item.strip() for item in _CHECKED.findall(answer)]
        text = self.writer.separator.join(ticked) if ticked else one_line(answer)
        if question and len(text) >= SHORTEST_ANSWER and len(text) <= ANSWER_CHARS:
            place = (self.page_number, self.block_index + offset)
            yield Candidate(kind, one_line(question), text, *place, tuple(map(one_line, quotes)), subject)

    def asked(self, sentence: str) -> Iterator[Candidate]:
        """Questions that a sentence of the block answers."""
        if self.writer.language == "ja":
            found = japanese_questions(sentence, self.writer.about(self.section))
        else:
            found = english_questions(sentence, self.writer.about(""))
        for each in found:
            yield from self.make(each.kind, each.question, each.answer, (sentence,), each.subject)


def _section(block: Block, page: Page, writer: Writer) -> str:
    """The nearest heading above a block that says something, without its numbering; else the name of its page."""
    for heading in [*reversed(block.section), page.name or ""]:
        text = plain_heading(heading)
        if is_section_name(text, writer.language):
            return text
    return ""


def _table(block: Block, maker: _Maker, common: Container[str]) -> Iterator[Candidate]:
    header = [_column_title(name) for name in column_names(block.rows[: block.header_row_count])]
    body = [row for row in block.rows[block.header_row_count :] if any(cell.strip() for cell in row.cells)]
    if not header:
        yield from _labelled_rows([row for row in body if row_text(row.cells) not in common], maker)
        return
    body = [row for row in body if len(header) == 1 or len({cell for cell in row.cells if cell.strip()}) > 1]
    columns = [[one_line(row.cells[column]) for row in body] for column in range(len(header))]
    keys, alone = _key_columns(header, columns)
    if not keys or sum(bool(re.search(r"[:：]", name)) for name in header) > 1:
        return
    shared = {index for index, row in enumerate(body) if row_text(row.cells) in common}
    if alone and len(shared) * 2 <= len(body):
        yield from _listing(header[keys[0]], columns[keys[0]], maker)
    named: dict[tuple[str, ...], list[int]] = {}
    for index, name in enumerate(zip(*(columns[key] for key in keys), strict=True)):
        named.setdefault(name, []).append(index)
    most = 1 if alone else _GROUPED
    sources = [rows for rows in named.values() if len(rows) <= most and shared.isdisjoint(rows)]
    yield from _cells(header, columns, keys, _spread(sources, _ROWS), maker, common)


def _cells(
    header: Sequence[str],
    columns: Sequence[Sequence[str]],
    keys: Sequence[int],
    sources: Sequence[Sequence[int]],
    maker: _Maker,
    common: Container[str],
) -> Iterator[Candidate]:
    """Questions after cells, of the rows that bear one name together."""
    counts = list(map(Counter, columns))
    for rows in sources:
        for column in _telling(header, columns, counts, rows[0], keys, maker.writer.language):
            group = _group_column(header, columns, rows[0], column, keys[0])
            by = [key for key in (keys if group is None else (group,)) if says_something(columns[key][rows[0]])]
            names = [columns[key][rows[0]] for key in by]
            if (
                any(columns[column][row] in common for row in rows)
                or not names
                or not all(_can_be_key(name, header[key]) for key, name in zip(by, names, strict=True))
            ):
                continue
            values = [value for row in rows if says_something(value := _short(columns[column][row]))]
            labels = [header[key] for key in by]
            question = maker.writer.cell(maker.section, labels, names, header[column])
            whole = any(value.endswith(("。", ".")) for value in values)
            answer = (" " if whole else maker.writer.separator).join(dict.fromkeys(values))
            subject = " ".join((*labels, *names, header[column]))
            yield from maker.make(CandidateKind.CELL, question, answer, (*names, *values), subject)


def _short(value: str) -> str:
    """A cell, of a long one as many of its first sentences as an answer takes."""
    if len(value) <= ANSWER_CHARS:
        return value
    shown = ""
    for sentence in sentences(value):
        if len(shown) + len(sentence) + 1 > ANSWER_CHARS // 2:
            break
        shown = f"{shown} {sentence}".strip()
    return shown


def _key_columns(header: Sequence[str], columns: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], bool]:
    """The columns that name rows, and whether each row has a name of its own.

    That is the first column with texts that are nearly all different, no running number, names and codes before others;
    where there is none, of the columns of classes and subclasses before those that describe them the two side by side
    that tell most rows apart.
    """
    best: tuple[float, int] | None = None
    classes: list[int] = []
    described = False
    for column, name in enumerate(header):
        values = columns[column]
        filled = [value for value in values if value]
        if not name or not _is_header(name) or _is_one_of(name, filled) or len(filled) < max(1, len(values) // 2):
            continue
        named = [value for value in filled if says_something(value)]
        if sum(_can_be_key(value, name) for value in named) < max(1, 0.6 * len(named)):
            described = described or bool(classes)
            continue
        distinct = len(set(filled)) / len(filled)
        if distinct < 0.6:
            classes += [] if described else [column]
            continue
        lengthy = sum(len(value) > 20 for value in filled) / len(filled)
        score = distinct - 0.1 * column - 0.2 * lengthy + 0.8 * bool(_NAME_HEADER.search(name))
        score += 0.1 * all(map(_CODE.fullmatch, filled))
        if best is None or score > best[0]:
            best = score, column
    if best is not None:
        return (best[1],), True
    paths = [tuple(classes[max(0, end - _PATH) : end]) for end in range(1, len(classes) + 1)]
    told = [len(set(zip(*(columns[column] for column in path), strict=True))) for path in paths]
    return (paths[told.index(max(told))] if paths else ()), False


def _group_column(
    header: Sequence[str], columns: Sequence[Sequence[str]], row: int, column: int, key: int
) -> int | None:
    """The column before the key whose value a cell tells about where both stand for the same several rows, as cells
    merged over the rows of a code do; names and codes before others, None where the cell tells about its own row.
    """
    run = _run(columns[column], row)
    if len(run) == 1:
        return None
    found = [
        other
        for other in range(min(column, key))
        if columns[other][row] and _is_header(header[other]) and _run(columns[other], row) == run
    ]
    return min(found, key=lambda other: (not _NAME_HEADER.search(header[other]), other), default=None)


def _run(values: Sequence[str], row: int) -> range:
    """The rows around a row that hold the same value without a gap."""
    first, last = row, row + 1
    while first and values[first - 1] == values[row]:
        first -= 1
    while last < len(values) and values[last] == values[row]:
        last += 1
    return range(first, last)


def _can_be_key(text: str, header: str = "") -> bool:
    """Whether a cell can name its row; figures can under a header that says that they are codes."""
    if re.fullmatch(r"[0-9A-Za-z_./-]{2,80}", text) and (_CODE_HEADER.search(header) or LETTER.search(text)):
        return bool(_CODE_HEADER.search(header)) or len(LETTER.findall(text)) >= 2
    if not 2 <= len(text) <= _KEY_CHARS or text.endswith("。"):
        return False
    return bool(LETTER.search(text)) and not is_data(text) and says_something(text)


def _column_title(path: str) -> str:
    """The lowest header of a column, with those above it where it says nothing by itself (a unit, a year)."""
    parts = path.split(" > ")
    title = parts.pop()
    while parts and (is_data(title) or title.startswith(("(", "（"))):
        above = parts.pop()
        title = above if is_data(title) and not title.startswith(("(", "（")) else f"{above} {title}"
    return one_line(title)


def _is_one_of(header: str, values: Sequence[str]) -> bool:
    """Whether a header looks like the cells under it, as where the first row was taken for one: `SMITH, J`."""
    return "," in header and sum("," in value for value in values) * 2 > len(values)


def _is_header(title: str) -> bool:
    return (
        bool(LETTER.search(title))
        and not _NUMBER_HEADER.fullmatch(title)
        and not re.search(r"(?:[:：。]|No\.?)$", title)
    )


def _telling(
    header: Sequence[str],
    columns: Sequence[Sequence[str]],
    values: Sequence[Counter[str]],
    row: int,
    keys: Sequence[int],
    language: str,
) -> list[int]:
    """The columns of a row whose cells say most: long and rare in their column first, at most `_CELLS`, none a mark, an
    empty word, what most or many rows say, or the class that several rows belong to.
    """
    name = folded(columns[keys[-1]][row])
    ranked = []
    for column, title in enumerate(header):
        value = columns[column][row]
        if column in keys or not 2 <= len(title) <= LABEL_CHARS[language] or title in {header[key] for key in keys}:
            continue
        if not _is_header(title) or not says_something(value):
            continue
        if is_header_word(value) and is_header_word(name):  # a row of headers within the table
            continue
        if folded(value) == name or (folded(value) in name and len(value) > 1) or title in value:
            continue
        count, total = values[column][value], len(columns[column])
        if (total >= 4 and count * 2 > total) or count > _OFTEN:
            continue
        is_class = count > 1 and column < keys[0]
        if is_class and (_CLASS_HEADER.search(title) or _group_column(header, columns, row, column, keys[0]) is None):
            continue
        ranked.append((-min(len(value), 60) * (1.5 - count / total), column))
    return [column for _, column in sorted(ranked)[:_CELLS]]


def _listing(name: str, values: Sequence[str], maker: _Maker) -> Iterator[Candidate]:
    names = list(dict.fromkeys(line for line in values if _can_be_key(line, name)))
    short = all(len(each) <= _KEY_CHARS // 2 for each in names)
    if 3 <= len(names) <= _LISTED and short and maker.section and 2 <= len(name) <= LABEL_CHARS[maker.writer.language]:
        question = maker.writer.listed(maker.section, name)
        answer = maker.writer.separator.join(names)
        yield from maker.make(CandidateKind.LIST, question, answer, names, f"{maker.section} {name}")


def _labelled_rows(body: Sequence[Row], maker: _Maker) -> Iterator[Candidate]:
    """Rows without a header: label and value side by side, once or several times in a row."""
    for row in _spread(body, _ROWS):
        cells = [one_line(cell) for index, cell in enumerate(row.cells) if index == 0 or cell != row.cells[index - 1]]
        if len(cells) < 2 or len(cells) % 2:
            continue
        for label, value in zip(cells[::2], cells[1::2], strict=True):
            yield from _labelled(label, value, maker)


def _labelled(label: str, value: str, maker: _Maker) -> Iterator[Candidate]:
    label = label.rstrip(" :：")
    if not is_label(label, maker.writer.language) or not says_something(value) or folded(value) == folded(label):
        return
    if is_record_label(label) or is_record_label(value) or value.endswith((":", "：")) or value.startswith("※"):
        return
    if is_header_word(label) and is_header_word(value):  # headers above empty cells
        return
    question = maker.writer.pair("" if folded(label) in folded(maker.section) else maker.section, label)
    yield from maker.make(CandidateKind.PAIR, question, value, (label, value), f"{maker.section} {label}")


def _heading(block: Block, following: Sequence[Block], maker: _Maker) -> Iterator[Candidate]:
    heading = plain_heading(block.text)
    if not is_section_name(heading, maker.writer.language):
        return
    answer, offset = _beginning(following, maker.writer.language)
    if answer and folded(answer) != folded(heading):
        question = maker.writer.section(heading)
        yield from maker.make(CandidateKind.SECTION, question, answer, (answer.split("\n")[0],), heading, offset)


def _beginning(following: Sequence[Block], language: str) -> tuple[str, int]:
    """The first one or two sentences of prose right under a heading, and how many blocks below they stand."""
    for offset, block in enumerate(following, start=1):
        if block.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM):
            return "", 0
        found = sentences(joined(block.text, language), language)
        whole = [each for each in found if is_sentence(each, language) and not is_hollow(each)]
        if whole and whole[0] != found[0]:
            return "", 0
        if whole:
            text = whole[0]
            if len(text) < 60 and len(whole) > 1 and found.index(whole[1]) == found.index(whole[0]) + 1:
                text = f"{text}{'' if language == 'ja' else ' '}{whole[1]}"
            return text, offset
    return "", 0


def _diagram(block: Block, maker: _Maker) -> Iterator[Candidate]:
    lines = [line for line in map(one_line, block.text.splitlines()) if line and not line.startswith(("凡例", "凡 例"))]
    if len(lines) < 3 or len(lines) < len(block.text.splitlines()):  # too little, or a legend
        return
    names = [
        line
        for line in dict.fromkeys(lines)
        if says_something(line) and " → " not in line and not re.search(r"^[・※(（]|[。.]\s|[。.]$", line)
    ]
    if len(names) < 3 or len(names) * 2 < len({line for line in lines if " → " not in line}):  # notes
        return
    answer = ""
    for line in names:
        if len(joined := f"{answer}{maker.writer.separator if answer else ''}{line}") > ANSWER_CHARS // 2:
            break
        answer = joined
    question = maker.writer.diagram(maker.section)
    yield from maker.make(CandidateKind.SECTION, question, answer, names[:1], maker.section)


def _prose(block: Block, maker: _Maker) -> Iterator[Candidate]:
    for line in block.text.splitlines():
        if (pair := _PAIR.match(line)) and "://" not in line:
            yield from _labelled(one_line(pair["label"]), one_line(pair["value"]), maker)
    language = maker.writer.language
    for sentence in sentences(joined(block.text, language), language):
        if is_sentence(sentence, language) and not is_hollow(sentence):
            yield from maker.asked(sentence)


def _is_sound(candidate: Candidate) -> bool:
    """Whether a question can be read: brackets closed, words in it, neither very short nor very long."""
    question = candidate.question
    if not 8 <= len(question) <= (120 if is_japanese(question) else 200):
        return False
    if any(question.count(a) != question.count(b) for a, b in ("「」", "()", "（）", "“”", "[]", "【】")):
        return False
    if re.search(r"[XＸ]{2,}|[XＸ]ｘ?x{2}|\(cid:", candidate.question + candidate.answer):
        return False
    return not re.search(r"[\ufffd\u0000-\u001f]|\.\.\.|…|・・|○○|〇〇|△△", question)


def _spread(items: Sequence[Item], count: int) -> list[Item]:
    """At most `count` items, evenly spread."""
    if len(items) <= count:
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]
