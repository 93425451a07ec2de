"""The lines of a passage, ready to be read as statements, and what each may be: a row, a heading, a step."""

import re
from collections.abc import Iterator, Sequence

from rag_assets.query.ask.quoted.item_marks import ITEM, form_and_number
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import content_words
from rag_assets.text.plain import announces, asks, one_line
from rag_assets.text.scripts import IDEOGRAPHS

STATEMENT_CHARS = 300
_PART_WORDS = 3  # content words of a sentence; a shorter one goes with the next, as "U.S." or "Table 6." does
_HEADING_CHARS = 40
_NO_TITLE = re.compile(r"[：:。．・…？?！!]|\.\s|\.$|://|^[\d\s.,]+$")
_CELL_END = re.compile(r"(?:^| )\|(?=\s|$)")  # also of an empty cell, whose blanks are one
_SENTENCE_END = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+(?=[A-Z0-9\"“(])")
_CLOSES = re.compile("[）」』)]")
_GOES_ON = re.compile(r"[、，]$")
ENDED = re.compile(r"[。！？.!?]$")
_LEADER = re.compile(  # of a table of contents
    r"(?:(?<!_)_{5,}|(?<!\.)\.{5,}|(?<!\. )(?:\. ){4,}|(?<!…)…{3,}|(?<!‥)‥{3,}|(?<!・)・{5,})\s*(?:\d|[ivx]+\b)"
    r"|^(?!.*[。.!?]$)(?:.*?\bp\.\s?\d+\b){4}"
)
_ENTRY = re.compile(r"^[^|]{2,120}?(?:\s|\s\|\s[pPＰ][.．]\s?)(?P<page>\d{1,3})$")
_ASKS_AT_PAGE = re.compile(r"(?:か。?|[?？])\s\|\s[pPＰ][.．]\s?\d+$")
_SECTION = re.compile(
    r"(?:第\s?)?[\d一二三四五六七八九十IVX]+(?:[.．\-－]\d+)*[.．章節編部条]?\s|(?:付録|別紙|(?:appendix|chapter|part)\b)",
    re.IGNORECASE,
)
_LEAST_ENTRIES = 4
_CHAPTER = re.compile(r"\W*(?:第\s?\S{1,3}\s?[章節部編]|附\s?則|付録|別[紙表])")
_SUBSECTION = re.compile(r"\d+[.．]\d|\d{1,2}-\d{1,2}\b|第\s?\S{1,3}\s?[章節]|chapter\b", re.IGNORECASE)
_CONTENTS = re.compile(r"目\s?次|もくじ|(?:table of )?contents", re.IGNORECASE)
_SPEAKS = re.compile(r"(?:Q|A|Question|Answer|質問|回答|問|答)\s*[:：.．]?", re.IGNORECASE)  # who says the next line
_LEADS_ELSEWHERE = re.compile(  # as links of a page do
    r"[←↑◀«‹]\s?(?:目次|トップ|先頭|ホーム|一覧|前|次|戻)[^\s。]{0,8}|[←↑◀«‹]\s?(?:back|top|home|contents|previous)\b.{0,20}"
    r"|[^。]{0,20}(?:見る|へ|こちら|詳細|more|details)\s[→›»▶]",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"(?:はい|いいえ|不?可能?|不?要|必要|正しい|誤り|できます|できません|yes|no|true|false)[。.！!]?", re.IGNORECASE
)
_INLINE_ITEM = re.compile(  # a number or letter within a line, behind a blank or a sign that ends what is before
    r"(?:(?<=[:：;；,、。.)）])|(?<=\s))(?P<mark>[(（](?:\d{1,2}|[a-z])[)）]|(?:\d{1,2}|[a-z])[.)](?=\s[^\s\d])|[①-⑳])"
)
_LEAST_INLINE = 3
_LEAST_STEPS = 3
_STEP = re.compile(r"(\d{1,2})\.(?!\d)")
_WORD = re.compile(r"\w")
_SPREAD = re.compile(rf"(?<![{IDEOGRAPHS}])([{IDEOGRAPHS}]) ([{IDEOGRAPHS}])(?![{IDEOGRAPHS}])")  # 「目 標」
_COUNT = re.compile(r"\d{1,3}")  # of a row
_COUNTED_ROW = re.compile(r"(\d{1,3}) \| ")


def lines_of(text: str) -> list[str]:
    """The lines of a part of a passage that state something or head what does: without contents, links to elsewhere and
    empty rows, open ones joined, items that a line numbers apart.
    """
    lines = [together(one_line(line)) for line in text.splitlines()]
    lines = [line for line in lines if _WORD.search(line) and not _LEADER.search(line)]
    lines = [line for line in lines if not (_SPEAKS.fullmatch(line) or _LEADS_ELSEWHERE.fullmatch(line))]
    lines = list(_join_open_lines(_without_contents(without_empty_rows(lines))))
    return _with_verdicts([part for line in lines for part in _items_apart(line)])


def split_cells(line: str) -> list[str]:
    """The cells of a line; of one that is no row the line."""
    return [cell.strip() for cell in _CELL_END.split(line)]


def together(line: str) -> str:
    """A line whose labels of two characters are set without a blank between."""
    return _SPREAD.sub(r"\1\2", line)


def without_empty_rows(lines: Sequence[str]) -> Sequence[str]:
    """Lines without the numbers at their end that count on from the row above, as those of a form's empty rows do."""
    end = next((place for place in range(len(lines), 0, -1) if not _COUNT.fullmatch(lines[place - 1])), 0)
    row = _COUNTED_ROW.match(lines[end - 1]) if end else None
    counts = [int(line) for line in lines[end:]]
    is_counted = row is not None and counts == [int(row[1]) + at for at in range(1, len(counts) + 1)]
    return lines[:end] if is_counted else lines


def _without_contents(lines: Sequence[str]) -> list[str]:
    """Lines without those of a table of contents: several in a row that end with numbers of pages, which do not fall,
    most of them with the number of a section before, of several levels where no heading stands above; below it, also
    chapters alone.
    """
    kept_lines: list[str] = []
    run: list[str] = []
    last = 0
    for line in [*lines, ""]:
        entry = _ENTRY.match(line)
        page = int(entry["page"]) if entry else last
        is_headed = bool(kept_lines) and _CONTENTS.fullmatch(kept_lines[-1]) is not None
        is_entry = entry is not None or (is_headed and _CHAPTER.match(line) is not None)
        if not is_entry or page < last:
            sections = [entry for entry in run if _SECTION.match(entry)]
            are_contents = is_headed or any(map(_SUBSECTION.match, sections))
            questions = all(_ASKS_AT_PAGE.search(entry) for entry in run)  # of questions and answers
            if len(run) < _LEAST_ENTRIES or not (questions or (are_contents and len(sections) * 2 > len(run))):
                kept_lines += run
            elif is_headed:
                kept_lines.pop()
            run, last = [], 0
        if is_entry:
            run.append(line)
            last = page
        else:
            kept_lines.append(line)
    return kept_lines[:-1]


def _join_open_lines(lines: Sequence[str]) -> Iterator[str]:
    """Lines, each that ends with a comma together with the next one, where that is no item or row."""
    open_line = ""
    for line in lines:
        if open_line and (is_row(line) or ITEM.match(line) or len(open_line) > STATEMENT_CHARS):
            yield open_line
            open_line = ""
        open_line += line
        if is_row(line) or not _GOES_ON.search(line):
            yield open_line
            open_line = ""
    if open_line:
        yield open_line


def _with_verdicts(lines: Sequence[str]) -> list[str]:
    """Lines, with the short answer to a question (`いいえ`) before the one below that gives the reason."""
    told_lines: list[str] = []
    verdict = False
    for line in lines:
        if verdict and ENDED.search(line) and not (is_row(line) or ITEM.match(line) or asks(line)):
            told_lines[-1] = f"{told_lines[-1]} {line}"
            verdict = False
        else:
            verdict = bool(told_lines) and asks(told_lines[-1]) and _VERDICT.fullmatch(line) is not None
            told_lines.append(line)
    return told_lines


def _items_apart(line: str) -> list[str]:
    """A line, the items that it announces and numbers apart: three or more, the first one behind other words."""
    if is_row(line):
        return [line]
    marks = [match for match in _INLINE_ITEM.finditer(line) if match.start() > 0]
    first = next((place for place, match in enumerate(marks) if form_and_number(match["mark"])[1] in {0, 1}), None)
    if first is None:
        return [line]
    run = [marks[first]]
    for match in marks[first + 1 :]:
        form, number = form_and_number(run[-1]["mark"])
        if form_and_number(match["mark"]) == (form, number + 1):
            run.append(match)
    starts = [match.start() for match in run]
    parts = [line[begin:end].strip() for begin, end in zip([0, *starts], [*starts, len(line)], strict=True)]
    is_list = len(run) >= _LEAST_INLINE and announces(parts[0])
    return parts if is_list and all(len(content_words(part)) > 1 for part in parts[1:]) else [line]


def places_of_steps(lines: Sequence[str]) -> frozenset[int]:
    """Places of short lines whose numbers count on, as steps do: three or more, of which the last heads no text."""
    steps: set[int] = set()
    run: list[int] = []
    for place, line in enumerate([*lines, ""]):
        number = step_number(line)
        if run and number == step_number(lines[run[-1]]) + 1:
            run.append(place)
            continue
        if line and not number and not is_heading(line) and not is_row(line):
            del run[-1:]
        steps.update(run if len(run) >= _LEAST_STEPS else ())
        run = [place] if number else []
    return frozenset(steps)


def step_number(line: str) -> int:
    """The number of a short line that may be a step, as of `2. Press the button`; 0 of others."""
    step = _STEP.match(line)
    return int(step[1]) if step and is_heading(line) else 0


def is_row(line: str) -> bool:
    """Whether a line has cells."""
    return CELL_SIGN in line or line.endswith(CELL_SIGN.rstrip())


def is_heading(line: str) -> bool:
    """Whether a line is short and may head what follows: it neither goes on nor ends as a sentence."""
    return (
        len(line) <= _HEADING_CHARS
        and not _GOES_ON.search(line)
        and (len(content_words(line)) < _PART_WORDS or not ENDED.search(line))
    )


def is_title(line: str) -> bool:
    """Whether a short line may name a section: it is no item, and has no colon, row or sentence."""
    return len(line) <= _HEADING_CHARS and not (
        ITEM.match(line) or _NO_TITLE.search(line) or is_row(line) or announces(line)
    )


def sentences_of(line: str) -> list[str]:
    """The sentences of a line; very short ones together with the next."""
    parts: list[str] = []
    for part in filter(None, map(str.strip, _SENTENCE_END.split(line))):
        if parts and _CLOSES.match(part):
            parts[-1] += part  # the sentence ends within brackets
        elif parts and len(content_words(parts[-1])) < _PART_WORDS:
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return parts
