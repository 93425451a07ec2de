"""The row of a table before or behind one that a question names (「審査の次の工程は」, "what comes after review?"), and
the first or last of a table that it names.

The row that is named is most like the question, and is not what it asks for. The one beside it is said where the table
puts its rows in an order, as steps, or numbered where `次` is asked for by the name of their column, and where tables
with that row have the same beside it.

What stays out: arrows of diagrams and sentences that say what follows (`rag_assets.query.ask.quoted`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

from rag_assets.contracts.ports import Turn
from rag_assets.query.ask.quoted.wanted import is_named
from rag_assets.query.ask.tables.page_tables import Selection, TableOfPage
from rag_assets.query.ask.tables.table_rows import QUESTION_CHARS, called_names
from rag_assets.text.cells import CELL_SIGN
from rag_assets.text.folding import fold_name
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HAN, KATAKANA_AND_MARKS

_STEP = (
    r"(?:工程|手順|ステップ|作業|フェーズ|段階|フロー|流れ|順序|順番|スケジュール|日程|次第|アジェンダ|タスク|プロセス)"
)
_STEPS = re.compile(
    rf"{_STEP}|\b(?:steps?|phases?|process|procedures?|stages?|workflow|agenda|schedule|sequence|order|tasks?)\b"
)
_NOUN = rf"[{HAN}{KATAKANA_AND_MARKS}a-z]{{1,10}}?"
_IS_WHAT = (
    rf"(?:(?:は|って|が)?[、,]?(?:(?:何|なに|どの|どんな)(?:{_STEP}|画面)?|どれ|どこ)?(?:を(?:します|する|すれば(?:いい|よい)です|行います|行う|やります)"
    r"|に(?:なります|進みます|来ます)|が(?:来ます|あります))?(?:です|でしょう|になります)?か?|を?(?:教えて|知りたい)(?:ください|です)?)"
)
_BESIDE = re.compile(
    r"(?P<thing>.+?)[」』\"']?(?:の|が(?:終わっ|済ん|完了し)た(?:ら|あと)?(?:、|の)?)(?:すぐ|[1一]つ|ひとつ)?"
    rf"(?P<way>直後|直前|次|前|後)(?:の(?P<noun>{_NOUN}))?"
    rf"(?:に(?:は|来る|くる|行う|する|やる|実施する|来るの|行うの|するの|やるの)?(?:{_NOUN}|こと|もの)?)?(?:{_IS_WHAT})"
)
_AT_END = re.compile(
    rf"(?:(?P<place>.+?)(?:の|で|において|では))?[、,]?(?:一番|いちばん)?(?P<end>最後|最初|末尾|先頭)"
    rf"(?:の(?P<noun>{_NOUN}))?(?:に(?:行う|する|やる)(?:{_NOUN}|こと|の))?(?:は|って)(?:{_IS_WHAT})"
)
_PLACE_BEHIND = re.compile(r"[(（](?P<place>[^()（）]{2,40})[)）]$")
_ENGLISH_BESIDE = re.compile(
    r"(?:what|which)"
    r"(?: (?P<noun>(?!is\b|are\b|comes\b|follows\b|precedes\b|happens\b|do\b|should\b|must\b)\w+))?"
    r"(?: is| are| comes| follows| precedes| (?:do|should|must) (?:i|we|you) do)?"
    r"(?: (?:the|right|immediately|directly))*"
    r"(?: (?P<turn>next|previous|following|preceding)(?: (?P<thing_kind>\w+))?)?"
    r"(?: (?P<way>after|before|following|preceding)| of| to|(?<=follows)|(?<=precedes)) (?P<thing>.+)"
)
_BEFORE = frozenset({"直前", "前", "before", "previous", "preceding"})
_ANY_NOUN = re.compile(rf"{_STEPS.pattern}|項目|行|もの|内容|画面")  # that no column need be called
_ANY_ROW = frozenset({"項目", "行", "もの"})
_OF_PERSON = re.compile("氏名|姓名|^名前$|[社職]員名")  # in the name of a column of rows that are people
_REFERS = frozenset({"そ", "それ", "こ", "これ", "it", "that"})
_SURE = frozenset({"次", "直後", "直前", "next", "previous", "following", "preceding"})
_BOUNDARY = re.compile(r"[のでには、,「『\"'・\s]$")
_LEAST_NAME = 2  # characters
_LEAST_ROWS = 2
_ARROW = "→"
_FOLLOWS = re.compile(r"次|後|続|前|先立|→|\b(?:then|next|after|before|follow\w*|preced\w*|previous)\b")
_DAY = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?")
_SMALL_WORDS = frozenset({"in", "of", "on", "at", "from", "the", "a", "an"})
_NUMBER = re.compile(r"^[\W\d_]+")
_WORDS = re.compile(rf"[{HAN}]+|[{KATAKANA_AND_MARKS}]+|[a-z\d]+")


@dataclass(frozen=True)
class _Choice:
    """A row that may be asked for."""

    table: TableOfPage
    place: int  # the column of what rows are called
    row: tuple[str, ...] | None  # the row; None where there is none beside the one that is named
    named_chars: int = 0  # length of the name that a text has for the row beside it

    @property
    def key(self) -> str:
        """The name of its column, folded."""
        return self.table.keys[self.place]


@dataclass(frozen=True)
class NeighbourAsked:
    """What a question asks for beside a row, or at an end of a table."""

    # what it says before, or in English behind, the word for what is beside it: the name of a row, and maybe its place;
    # of an end of a table, its place
    thing: str
    noun: str  # what is asked for, as 工程; empty where it does not say
    step: int  # 1 for what is behind, -1 for what is before
    is_end: bool = False  # whether the last or first of a table is asked for, by the same sign
    is_sure: bool = True  # whether its word for what is beside means nothing else, as 前 and "after" may
    is_before: bool = False  # whether the thing is a text before, which names a row somewhere

    @classmethod
    def of(cls, question: str) -> "NeighbourAsked | None":
        """What a question asks; None where it asks for nothing beside a row."""
        if len(question) > QUESTION_CHARS:
            return None
        text = fold_name(question.strip().rstrip("。?？! "))
        if match := _ENGLISH_BESIDE.fullmatch(text):
            way = match["way"] or match["turn"] or ("preceding" if "precedes" in text else "following")
            if match["way"] or match["turn"] or re.search(r"\b(?:follows|precedes) ", text):
                kind = match["thing_kind"] or match["noun"] or ""
                is_sure = match["turn"] is not None or match["way"] is None
                return cls(match["thing"].removeprefix("the "), kind, -1 if way in _BEFORE else 1, is_sure=is_sure)
        behind = _PLACE_BEHIND.search(text)
        plain = text[: behind.start()] if behind else text
        place = behind["place"] if behind else ""
        if match := _AT_END.fullmatch(plain):
            place = f"{place} {match['place'] or ''}".strip()
            step = -1 if match["end"] in {"最初", "先頭"} else 1
            return cls(place, match["noun"] or "", step, True) if _WORDS.search(place) else None
        if match := _BESIDE.fullmatch(plain):
            thing = f"{place}、{match['thing']}".lstrip("、")
            is_sure = match["way"] in _SURE
            return cls(thing, match["noun"] or "", -1 if match["way"] in _BEFORE else 1, is_sure=is_sure)
        return None

    def select(self, tables: Sequence[TableOfPage], history: Sequence[Turn] = ()) -> tuple[int, Selection] | None:
        """The row asked for, with which of the tables has it; None where none has, or they differ.

        Args:
            tables: Those that were found.
            history: The conversation before, the last turn of which that names one row is meant by `その次`.
        """
        if self.thing in _REFERS:
            earlier = (text for turn in reversed(history) for text in (turn.question, turn.answer))
            of_earlier = (
                replace(self, thing=fold_name(text), is_before=True).select(tables) for text in earlier if text
            )
            return next(filter(None, of_earlier), None)
        choices = [
            (number, choice)
            for number, table in enumerate(tables)
            if (choice := self._at_end(table) if self.is_end else self._beside(table)) is not None
        ]
        of_noun = [pair for pair in choices if pair[1].key == self.noun]
        choices = of_noun or choices
        longest = max((choice.named_chars for _, choice in choices), default=0)  # of what a text before names
        choices = [pair for pair in choices if pair[1].named_chars == longest]
        rows = [choice.row for _, choice in choices if choice.row is not None]
        if not choices or len(rows) < len(choices):
            return None
        number, choice = choices[0]
        names = {fold_name(row[choice.place]) for (_, choice), row in zip(choices, rows, strict=True)}
        if len(names) > 1 or (self.is_end and len(set(rows)) > 1):
            return None
        pairs_of_each = [set(zip(choice.table.keys, choice.row or (), strict=True)) for _, choice in choices]
        pairs = tuple(
            (column, cell)
            for column, key, cell in zip(choice.table.columns, choice.table.keys, rows[0], strict=True)
            if cell and (cell == rows[0][choice.place] or all((key, cell) in pairs for pairs in pairs_of_each))
        )
        return number, Selection((tuple(dict.fromkeys(pairs)),), (rows[0],))

    def _beside(self, table: TableOfPage) -> "_Choice | None":
        """The row beside the one that is named; None where no row or several are named, or the table has no order."""
        named: dict[int, tuple[str, int]] = {}
        for place in range(len(table.keys)):
            for at, row in enumerate(table.rows):
                word = fold_name(row[place])
                if len(word) < _LEAST_NAME or (rest := self._rest(word)) is None or not _is_placed(rest, table):
                    continue
                longest = named.get(at, ("", 0))[0]
                if len(word) > len(longest):
                    named[at] = (word, place)
        most = max((len(word) for word, _ in named.values()), default=0)
        named = {at: value for at, value in named.items() if self.is_before or len(value[0]) == most}
        if len(named) != 1 or len(table.rows) < _LEAST_ROWS:
            return None
        ((at, (word, place)),) = named.items()
        if not self._is_noun_of(table, place) or not _is_ordered(table, place, by_number=self._may_count(table, place)):
            return None
        ordered = table.rows[at + 1 :] if self.step > 0 else table.rows[:at][::-1]
        own = table.rows[at][place]
        beside = next((row for row in ordered if row[place] and row[place] != own), None)
        return _Choice(table, place, beside, len(word))

    def _at_end(self, table: TableOfPage) -> "_Choice | None":
        """The first or last row of a table that is called so."""
        is_called = any(self.thing in called_names(name) for name in table.own_names)
        places = [place for place, key in enumerate(table.keys) if self.noun and self.noun in key]
        if not is_called and not (places and _is_placed(self.thing, table)):
            return None
        place = places[0] if places else table.name_place
        if place is None or len(table.rows) < _LEAST_ROWS or not _is_ordered(table, place, by_number=True):
            return None
        return _Choice(table, place, table.rows[-1 if self.step > 0 else 0])

    def _rest(self, word: str) -> str | None:
        """What is left of the question's name of a row beside a cell; None where it does not name the cell."""
        if self.is_before:
            return "" if is_named(self.thing, word) else None
        kinds = "|".join(map(re.escape, filter(None, (self.noun,))))
        thing = re.sub(rf"(?<=.)の?(?:{_ANY_NOUN.pattern}{'|' + kinds if kinds else ''})$", "", self.thing)
        for text in dict.fromkeys(name.strip("「」『』\"' ") for name in (self.thing, thing)):
            if text == word:
                return ""
            if text.endswith(word) and _BOUNDARY.search(text[: -len(word)]):
                return text[: -len(word)]
            if re.match(rf"{re.escape(word)} (?:in|of|on|at|from) ", text):
                return text[len(word) :]
        return None

    def _is_noun_of(self, table: TableOfPage, place: int) -> bool:
        """Whether what is asked for is a step or row, or what the column of names is called in which the thing is."""
        is_any = re.fullmatch(rf"(?:{_ANY_NOUN.pattern})+", self.noun) is not None
        return not self.noun or is_any or (self.noun in table.keys[place] and place == table.name_place)

    def _may_count(self, table: TableOfPage, place: int) -> bool:
        """Whether numbers of rows are enough of an order: what is next is asked for, of things that rows are."""
        if not (self.is_sure and self.noun and place == table.name_place):
            return False
        is_of_people = any(_OF_PERSON.search(key) for at, key in enumerate(table.keys) if at != place)
        return (self.noun in table.keys[place] or self.noun in _ANY_ROW) and not is_of_people

    def is_told_by(self, texts: Sequence[str]) -> bool:
        """Whether statements may tell what is asked for: with arrows, words for what follows, or the lines beside it;
        no row or line of what the question names does.
        """
        if not texts or self.is_end:
            return True
        cells = [cell.partition(": ")[2] or cell for cell in texts[0].splitlines()[0].split(CELL_SIGN)]
        if len(texts[0].splitlines()) == 1 and any(
            self._rest(fold_name(_NUMBER.sub("", cell))) is not None for cell in cells
        ):
            return False  # it is the row itself
        word = re.split(r"[の「『」』、]|で(?=[^す])", self.thing.strip("「」『』\"' "))[-1]
        lines = [[fold_name(line) for line in text.splitlines() if line.strip()] for text in texts]
        if any(self._says(line, word) for part in lines for line in part):
            return True
        holding = [at for at, line in enumerate(lines[0]) if word in line]
        if holding and (holding[-1] < len(lines[0]) - 1 if self.step > 0 else holding[0] > 0):
            return True
        return not (self.is_sure and (CELL_SIGN in texts[0] or any(_ARROW in text for text in texts)))

    def _says(self, line: str, word: str) -> bool:
        if _ARROW in line:
            before, _, behind = line.partition(_ARROW)
            return word in (before if self.step > 0 else behind)
        return word in line and CELL_SIGN not in line and _FOLLOWS.search(line.replace(word, " ")) is not None


def _is_placed(rest: str, table: TableOfPage) -> bool:
    """Whether all that a question says of where a row is are words of what its table is called."""
    known = fold_name(" ".join((*table.names, table.beginning)))
    return all(word in known for word in _WORDS.findall(rest) if word not in _SMALL_WORDS)


def _is_ordered(table: TableOfPage, place: int, *, by_number: bool) -> bool:
    """Whether a table has its rows in the order in which things come: it is one of steps, or numbers them, where that
    is enough because the question says what comes next, and no column of dates goes backwards.
    """
    for at in range(len(table.keys)):
        days = [_date(row[at]) for row in table.rows if row[at]]
        known = [day for day in days if day is not None]
        if len(known) == len(days) and len(known) > 1 and known[0] > known[-1]:
            return False
    if _STEPS.search(table.keys[place]) or any(_STEPS.search(fold_name(name)) for name in table.own_names):
        return not any(_counts(table, at, -1) for at in range(len(table.keys)))
    return by_number and any(_counts(table, at, 1) for at in range(len(table.keys)))


def _counts(table: TableOfPage, place: int, step: int) -> bool:
    """Whether the cells of a column end in numbers that go up, or down, by one."""
    numbers = [re.search(r"\d+$", one_line(row[place])) for row in table.rows]
    figures = [int(number[0]) for number in numbers if number is not None]
    is_figures = len(figures) == len(table.rows) > 1
    return is_figures and all(two - one == step for one, two in pairwise(figures))


def _date(cell: str) -> date | None:
    match = _DAY.fullmatch(cell.strip())
    try:
        return date(*map(int, match.groups())) if match else None
    except ValueError:
        return None
