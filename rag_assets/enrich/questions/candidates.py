"""Questions that the parts of a document answer, by rules: from table rows, labelled values, sentences and headings,
phrased as a person would ask, in Japanese and English.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from rag_assets.contracts.causes import BlockKind
from rag_assets.contracts.content import Block, Page, Row
from rag_assets.enrich.questions.phrases import (
    CandidateKind,
    English,
    Japanese,
    Writer,
    english_questions,
    japanese_questions,
)
from rag_assets.enrich.questions.texts import (
    ANSWER_CHARS,
    KEY_CHARS,
    LABEL_CHARS,
    SHORTEST_ANSWER,
    SUBJECT_CHARS,
    can_be_key,
    column_title,
    document_subject,
    folded,
    group_column,
    is_data,
    is_header_word,
    is_hollow,
    is_label,
    is_placeholder,
    is_record_label,
    is_section_name,
    is_sentence,
    joined,
    key_columns,
    plain_heading,
    says_something,
    sentences,
    telling_columns,
)
from rag_assets.enrich.summaries.extraction import row_text
from rag_assets.parsing.chunking import column_names
from rag_assets.text.language import detect_language, is_japanese, is_torn, split_sentences
from rag_assets.text.plain import one_line

Item = TypeVar("Item")

_ROWS = 60  # of a table, evenly spread
_LISTED = 20  # names in the answer to what a table lists
_GROUPED = 6  # rows that bear one name together, at most

_CHECKED = re.compile(r"☑\s*([^☐☑]+)")
_CHOICES = re.compile(r"^(?:データ|リスト|選択肢|プルダウン|入力規則|data|lists?|choices)$", re.IGNORECASE)
_APART = re.compile(
    r"^(?:変更履歴|改訂履歴|改定履歴|更新履歴|目次|凡例|参考文献|索引"
    r"|revision history|change history|table of contents|contents|references|bibliography|acknowledg\w+|index)$"
    r"|^補足|(?:記述|記載|記入|入力)(?:方法|例|要領|要項|上の注意|説明)(?:の説明|について)?$"
    r"|^(?:how to (?:fill in|fill out|complete) th|instructions? (?:for|to) (?:use|filling|complet))",
    re.IGNORECASE,
)
_REPEATED_WORDS = 40  # of a longer text three words may well come again
_FIGURES_SHARE = 0.8
_EQUATION = re.compile(r"(?<!\w)[a-zεδλμσ] ?[=∈≤≥] ?[a-zεδλμσ](?!\w)")  # what is left of a formula
_SPEAKER = re.compile(r"[A-Z][A-Z.'’-]+(?: [A-Z][A-Z.'’-]*){0,2}(?:, .+)?")
_PAIR = re.compile(r"^\s*[・\-*]?\s*(?P<label>[^\s:：。、,，?？][^:：。、,，?？]{0,38}?)\s*[:：]\s*(?P<value>\S.*)$")


@dataclass(frozen=True)
class QuestionCandidate:
    """A question with its answer."""

    kind: CandidateKind
    question: str
    answer: str  # the answer, in words of the document
    page_number: int
    block_index: int
    quotes: tuple[str, ...]  # words that a passage must hold to bear the answer out
    subject: str  # words of the question that say what it is about, without those that all questions share


def candidates(
    document_id: str, title: str, pages: Sequence[Page], language: str, common: Container[str] = ()
) -> list[QuestionCandidate]:
    """Questions that a document answers, in reading order; several may ask nearly the same.

    Cover sheets, tables of contents, revision histories, sheets of choices for other cells or on how a form is filled
    in, and hidden pages are passed over. No question is made from the common lines, which many documents share.
    """
    topic, kind = document_subject(document_id, title, language)
    all_candidates: list[QuestionCandidate] = []
    for page in pages:
        if not is_content(page):
            continue
        local = detect_language("\n".join(block.text for block in page.blocks)[:4000])
        phrasing = local if local in ("ja", "en") else language
        if language == "ja" and any(is_japanese(block.text) for block in page.blocks):
            phrasing = "ja"
        writer = Japanese(topic, kind) if phrasing == "ja" else English(topic, PurePosixPath(document_id).stem)
        all_candidates += _page_candidates(page, writer, common)
    return [candidate for candidate in all_candidates if _is_sound(candidate)]


def is_content(page: Page) -> bool:
    """Whether a page says what its document is there to say."""
    name = page.name or ""
    return not (page.hidden or page.role is not None or _CHOICES.match(name) or is_apart(name))


def is_apart(heading: str) -> bool:
    """Whether what stands below a heading is no content, as a revision history, or how a form is filled in."""
    return bool(_APART.search(plain_heading(heading)))


def document_candidate(
    document_id: str, title: str, language: str, pages: Sequence[Page], place: tuple[int, int], answer: str, quote: str
) -> QuestionCandidate | None:
    """The question what a document is about.

    The answer is a sentence or row of the document at a page and block (`place`), which holds the quote. Where the
    title has no name for the document, its pages may.

    Returns:
        None where nothing names the document, or there is no answer.
    """
    topic, kind = document_subject(document_id, title, language)
    if not (topic or kind):
        names = [page.name or "" for page in pages] + [
            plain_heading(block.text) for page in pages for block in page.blocks if block.kind is BlockKind.HEADING
        ]
        topic = next((name for name in names if 2 <= len(name) <= 2 * SUBJECT_CHARS and not is_data(name)), "")
        stem = PurePosixPath(document_id).stem
        topic = topic or ("" if is_placeholder(stem) or "__" in stem else stem)
    writer = Japanese(topic, kind) if language == "ja" else English(topic)
    question = writer.document()
    candidate = QuestionCandidate(CandidateKind.DOCUMENT, question, answer, *place, (quote,), topic)
    return candidate if question and len(answer) >= SHORTEST_ANSWER and _is_sound(candidate) else None


def _page_candidates(page: Page, writer: Writer, common: Container[str]) -> Iterator[QuestionCandidate]:
    blocks = [without_common(block, common) for block in page.blocks]
    for index, block in enumerate(blocks):
        if any(map(is_apart, (*block.section, block.text[:40]))):
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
    ) -> Iterator[QuestionCandidate]:
        ticked_items = [item.strip() for item in _CHECKED.findall(answer)]
        text = self.writer.separator.join(ticked_items) if ticked_items else one_line(answer)
        if question and len(text) >= SHORTEST_ANSWER and len(text) <= ANSWER_CHARS:
            place = (self.page_number, self.block_index + offset)
            yield QuestionCandidate(kind, one_line(question), text, *place, tuple(map(one_line, quotes)), subject)

    def asked(self, sentence: str) -> Iterator[QuestionCandidate]:
        """Questions that a sentence of the block answers."""
        if isinstance(self.writer, English):
            questions = english_questions(sentence, self.writer.document_name)
        else:
            questions = japanese_questions(sentence, self.writer.about(self.section))
        for question in questions:
            yield from self.make(question.kind, question.question, question.answer, (sentence,), question.subject)


def _section(block: Block, page: Page, writer: Writer) -> str:
    """The nearest heading above a block that says something, without its numbering; else the name of its page."""
    for heading in [*reversed(block.section), page.name or ""]:
        text = plain_heading(heading)
        if is_section_name(text, writer.language) and not is_placeholder(text):
            return text
    return ""


def _table(block: Block, maker: _Maker, common: Container[str]) -> Iterator[QuestionCandidate]:
    header = [column_title(name) for name in column_names(block.rows[: block.header_row_count])]
    body = [row for row in block.rows[block.header_row_count :] if any(cell.strip() for cell in row.cells)]
    if not header:
        yield from _labelled_rows([row for row in body if row_text(row.cells) not in common], maker)
        return
    body = [row for row in body if len(header) == 1 or len({cell for cell in row.cells if cell.strip()}) > 1]
    columns = [[one_line(row.cells[column]) for row in body] for column in range(len(header))]
    keys, alone = key_columns(header, columns)
    if not keys or sum(bool(re.search(r"[:：]", name)) for name in header) > 1:
        return
    shared_rows = {index for index, row in enumerate(body) if row_text(row.cells) in common}
    if alone and len(shared_rows) * 2 <= len(body):
        yield from _listing(header[keys[0]], columns[keys[0]], maker)
    rows_by_name: dict[tuple[str, ...], list[int]] = {}
    for index, name in enumerate(zip(*(columns[key] for key in keys), strict=True)):
        rows_by_name.setdefault(name, []).append(index)
    limit = 1 if alone else _GROUPED
    sources = [rows for rows in rows_by_name.values() if len(rows) <= limit and shared_rows.isdisjoint(rows)]
    yield from _cells(header, columns, keys, _spread(sources, _ROWS), maker, common)


def _cells(
    header: Sequence[str],
    columns: Sequence[Sequence[str]],
    keys: Sequence[int],
    sources: Sequence[Sequence[int]],
    maker: _Maker,
    common: Container[str],
) -> Iterator[QuestionCandidate]:
    """Questions after cells, of the rows that bear one name together."""
    counts = list(map(Counter, columns))
    for rows in sources:
        for column in telling_columns(header, columns, counts, rows[0], keys, maker.writer.language):
            group = group_column(header, columns, rows[0], column, keys[0])
            by = [key for key in (keys if group is None else (group,)) if says_something(columns[key][rows[0]])]
            names = [columns[key][rows[0]] for key in by]
            if (
                any(columns[column][row] in common for row in rows)
                or not names
                or not all(can_be_key(name, header[key]) for key, name in zip(by, names, strict=True))
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
    text = ""
    for sentence in sentences(value):
        if len(text) + len(sentence) + 1 > ANSWER_CHARS // 2:
            break
        text = f"{text} {sentence}".strip()
    return text


def _listing(name: str, values: Sequence[str], maker: _Maker) -> Iterator[QuestionCandidate]:
    names = list(dict.fromkeys(line for line in values if can_be_key(line, name)))
    short = all(len(name) <= KEY_CHARS // 2 for name in names)
    if 3 <= len(names) <= _LISTED and short and maker.section and 2 <= len(name) <= LABEL_CHARS[maker.writer.language]:
        question = maker.writer.listed(maker.section, name)
        answer = maker.writer.separator.join(names)
        yield from maker.make(CandidateKind.LIST, question, answer, names, f"{maker.section} {name}")


def _labelled_rows(body: Sequence[Row], maker: _Maker) -> Iterator[QuestionCandidate]:
    """Rows without a header: label and value side by side, once or several times in a row.

    One or two English rows may be anything.
    """
    if maker.writer.language == "en" and len(body) <= 2:
        return
    if len(body) > 2 and _is_header([" ".join(row.cells[1:]) for row in body]):
        body = body[1:]
    often = {
        value
        for value, count in Counter(one_line(row.cells[-1]) for row in body).items()
        if count > max(2, len(body) // 2)
    }
    for row in _spread(body, _ROWS):
        cells = [one_line(cell) for index, cell in enumerate(row.cells) if index == 0 or cell != row.cells[index - 1]]
        if len(cells) < 2 or len(cells) % 2 or _are_headers(cells, maker.writer.language) or cells[-1] in often:
            continue
        for label, value in zip(cells[::2], cells[1::2], strict=True):
            yield from _labelled(label, value, maker)


def _labelled(label: str, value: str, maker: _Maker) -> Iterator[QuestionCandidate]:
    label = label.rstrip(" :：")
    if (
        label.startswith(("•", "●", "▪"))
        or not is_label(label, maker.writer.language)
        or not says_something(value)
        or folded(value) == folded(label)
    ):
        return
    if is_record_label(label) or is_record_label(value) or value.endswith((":", "：")) or value.startswith("※"):
        return
    if is_header_word(label) and is_header_word(value):  # headers above empty cells
        return
    if _SPEAKER.fullmatch(label) and value.endswith((".", "!", "?", "-", "—")):  # what somebody says
        return
    question = maker.writer.pair("" if folded(label) in folded(maker.section) else maker.section, label)
    yield from maker.make(CandidateKind.PAIR, question, value, (label, value), f"{maker.section} {label}")


def _heading(block: Block, blocks: Sequence[Block], maker: _Maker) -> Iterator[QuestionCandidate]:
    heading = plain_heading(block.text)
    if not is_section_name(heading, maker.writer.language):
        return
    answer, offset = _beginning(blocks, maker.writer.language)
    if answer and folded(answer) != folded(heading):
        question = maker.writer.section(heading)
        yield from maker.make(CandidateKind.SECTION, question, answer, (answer.split("\n")[0],), heading, offset)


def _beginning(blocks: Sequence[Block], language: str) -> tuple[str, int]:
    """The first one or two sentences of prose right under a heading, and how many blocks below they stand."""
    for offset, block in enumerate(blocks, start=1):
        if block.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM):
            return "", 0
        all_sentences = sentences(joined(block.text, language), language)
        whole = [sentence for sentence in all_sentences if is_sentence(sentence, language) and not is_hollow(sentence)]
        if whole and whole[0] != all_sentences[0]:
            return "", 0
        if whole:
            text = whole[0]
            if len(text) < 60 and len(whole) > 1 and all_sentences.index(whole[1]) == all_sentences.index(whole[0]) + 1:
                text = f"{text}{'' if language == 'ja' else ' '}{whole[1]}"
            return text, offset
    return "", 0


def _diagram(block: Block, maker: _Maker) -> Iterator[QuestionCandidate]:
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
        if len(longer := f"{answer}{maker.writer.separator if answer else ''}{line}") > ANSWER_CHARS // 2:
            break
        answer = longer
    if maker.writer.language == "ja" and maker.section and not is_japanese(maker.section):
        return
    question = maker.writer.diagram(maker.section)
    yield from maker.make(CandidateKind.SECTION, question, answer, names[:1], maker.section)


def _prose(block: Block, maker: _Maker) -> Iterator[QuestionCandidate]:
    for line in block.text.splitlines():
        if (pair := _PAIR.match(line)) and "://" not in line:
            yield from _labelled(one_line(pair["label"]), one_line(pair["value"]), maker)
    language = maker.writer.language
    for sentence in sentences(joined(block.text, language), language):
        if is_sentence(sentence, language) and not is_hollow(sentence):
            yield from maker.asked(sentence)


def _is_sound(candidate: QuestionCandidate) -> bool:
    """Whether a question can be read: brackets closed, words in it, neither very short nor very long."""
    question = candidate.question
    if not 8 <= len(question) <= (120 if is_japanese(question) else 200):
        return False
    texts = (question, candidate.answer) if candidate.kind is CandidateKind.PAIR else (question,)
    if any(text.count(a) != text.count(b) for text in texts for a, b in ("「」", "()", "（）", "“”", "[]", "【】")):
        return False
    if re.search(r"(?<![\w.])[a-z] [a-z](?![\w.])", question) or is_torn(candidate.answer):  # letters torn apart
        return False
    if candidate.answer.endswith(("?", "？")) or _EQUATION.search(candidate.answer) or _repeats(candidate.answer):
        return False
    if re.search(r"[XＸ]{2,}|[XＸ]ｘ?x{2}|\(cid:|([A-Za-z])\1{3}|\?{3}|_{4}", candidate.question + candidate.answer):
        return False
    return not re.search(r"[\ufffd\u0000-\u001f]|\.\.\.|…|・・|○○|〇〇|△△", question)


def _repeats(text: str) -> bool:
    """Whether a text says three words in a row again, as text read twice does."""
    words = text.lower().split()
    runs = [tuple(words[place : place + 3]) for place in range(len(words) - 2)]
    return len(set(runs)) < len(runs) and len(words) <= _REPEATED_WORDS


def _are_headers(cells: Sequence[str], language: str) -> bool:
    """Whether the cells of a row are all labels, and none a value: of several pairs, or one said twice."""
    if language == "ja":
        values = cells[1::2]
        return len(values) > 1 and 2 * sum(map(is_header_word, values)) >= len(values)
    if any(any(map(str.isdigit, cell)) for cell in cells):
        return False
    if len(cells) > 2:
        return all(is_label(cell.rstrip(" :*"), language) for cell in cells)
    label, value = (set(re.findall(r"\w+", cell.lower())) for cell in cells)
    return len(label) > 1 and label <= value and len(value) <= len(label) + 2


def _is_header(values: Sequence[str]) -> bool:
    """Whether the first of the rows is a header: it holds no figure, and the others do."""
    rest = [value for value in values[1:] if value.strip()]
    figures = sum(any(map(str.isdigit, value)) for value in rest)
    return len(rest) > 1 and not any(map(str.isdigit, values[0])) and figures >= _FIGURES_SHARE * len(rest)


def _spread(items: Sequence[Item], count: int) -> list[Item]:
    """At most `count` items, evenly spread."""
    if len(items) <= count:
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]
