"""What is true of a whole table: how many rows have what a question names, a sum, the row with the most, empty cells.

A passage holds a part of a table; what is true of all its rows is told from the table as it was read. What is told so
is said surely, so every word of a question must be accounted for: it is a value of the table, the name of a column, of
the table or of its place, part of a form in which such questions are asked, or a particle. A condition that nothing
here can check (`10より大きい`, `未入金でない`, `5月以降`, `per owner`) leaves words over, and then nothing is selected.

A table that the question is about, where it cannot be told which rows it asks for, stops others from answering. Of two
that would answer none does, unless one holds the rows of the others of its document, as a list of all beside sheets of
its parts; nor does one with which a table without names of columns may go on.

What stays out: which tables are looked at, and how passages are read (`rag_assets.query.ask.tables.answering`), the
rows that share something with one that answers (`rag_assets.query.ask.tables.rows_sharing`), and how rows are said
(`rag_assets.query.ask.tables.row_sentences`).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag_assets.query.ask.quoted.wanted import is_named
from rag_assets.query.ask.tables.column_figures import (
    MONEY,
    NO_MEASURE,
    best_rows,
    figure_text,
    has_amounts,
    has_figures,
    has_units,
    sum_of,
)
from rag_assets.query.ask.tables.page_tables import (
    DAY,
    IDENTIFIER,
    KEY_SHARE,
    RUNNING_NUMBER,
    Selection,
    TableOfPage,
    day_of,
    holds_word,
    measure,
)
from rag_assets.text.folding import fold_name
from rag_assets.text.language import is_japanese
from rag_assets.text.scripts import HAN, HIRAGANA, KATAKANA_AND_MARKS

MOST_ROWS = 5_000  # of a table that is looked at while a question is answered
_LEAST_ROWS = 3  # of a table that rows are selected from
QUESTION_CHARS = 500  # at most, of a question that is read word by word
_LEAST_NAME = 3  # characters of a column's name or a cell in which no condition is looked for
_NO_VALUE = "-"  # of empty cells

COUNT_ASKED = re.compile(
    r"何(?P<unit>件|個|つ|行|本|台|枚|冊|点)(?:です|でしょ|あ(?:り|る)|[?？]|$)|いくつあ(?:り|る)|(?:件数|総数)(?:は|を|[?？]|$)"
    r"|\bhow many\b"
)
_OTHER_COUNT = re.compile(  # said as `何件`, of things each of which has one row
    r"何(?:箇所|か所|ヶ所|カ所|種類|社)(?=です|でしょ|あ(?:り|る)|[?？]|$)"
)
_EXTENSION = re.compile(r"(?<=\w)\.(?:xlsx?|xlsm|csv|tsv|docx?|pptx?|pdf|md|html?)\b")
_HOW_MANY = re.compile(r"いくつ(?=です|でしょ|[?？]|$)")
OWN_COUNT = re.compile(rf"([{HAN}{KATAKANA_AND_MARKS}]{{2,10}})([がは](?:全部で|全て|すべて)?)何\1")  # 画面は何画面
_AROUND_VALUE = re.compile(
    r"(?<=[がはの])[「『](?=[^「」『』]+[」』](?:の|で|に|な|と))|(?<=[^「」『』])[」』](?=(?:の|で|に|な|と))"
)
_BEST_FIRST = re.compile(
    rf"(一番|いちばん|最も|もっとも)([{HAN}{KATAKANA_AND_MARKS}]{{2,12}})[がの](?=[大多高長重広新遅小少低短軽狭古早安])"
)
PEOPLE_ASKED = re.compile("何(?P<unit>人|名)(?:です|でしょ|い(?:ます|る)|[?？]|$)")
_PERSON = re.compile(  # name of a column
    r"氏名|姓名|名前|[者員]名?$|^(?:(?:full|first|last|employee|user|member|person)\s)?name$"
)
_COUNTED_BY = re.compile("[数量個点枚本台冊]|quantity|number")  # in the name of a column of figures
_SUM_ASKED = re.compile(r"合計|総計|総額|\b(?:total|sum)\b")
_EXTREME_ASKED = re.compile(
    r"(?:一番|いちばん|最も|もっとも)(?P<ja>大き|多|高|長|重|広|新し|遅|小さ|少な|低|短|軽|狭|古|早|安)い?"
    r"|最(?P<sign>[大高多長新小低少短古安])(?=の|です|な|は|[?？]|$)"
    r"|\b(?P<en>largest|highest|biggest|longest|latest|newest|most|smallest|lowest|shortest|earliest|oldest|cheapest)\b"
)
_LEAST = frozenset(
    re.findall(r"\S+", "小さ 少な 低 短 軽 狭 古 早 安 小 少 smallest lowest shortest earliest oldest cheapest")
)
_OF_TIME = frozenset(
    re.findall(r"\S+", "新し 古 新 遅 早 newest oldest latest earliest")
)  # of dates: an old age is a high one
_WHICH_ASKED = re.compile(r"どれ|どの|どちら|何が|何(?:です|でしょ)|(?:は|って)[?？]?$|\b(?:which|what)\b")
_LIST_ASKED = re.compile("一覧|全部|すべて|全て|列挙")
_NOT_CHECKED = re.compile(
    r"ない|なく|なかっ|じゃ|以外|除[くい]|抜き|より|以上|以下|以降|以前|未満|超|まで|から|ごと|別[のに]|毎|次[のに]|[前後]の|とは|なぜ|どう"
    r"|とき|場合|ほう|方が|同じ|うち(?!訳)|[他外]に|ほかに|だけ"
    r"|\b(?:not|no|without|except|excluding|other|neither|nor|never|more|less|fewer|over|under|above|below|than|since"
    r"|before|after|at|per|each|why|when|if|top|only|have|has|had|with)\b|n't\b"
)
_SIGNS = re.compile(r"[≠!<>〜~+=]|[a-z\d]-(?![a-z\d])")  # of conditions and grades, which nothing here checks
_EMPTY_ASKED = (
    r"[がはの]?(?:まだ|未だ)?(?:(?:空欄|空白|空|未記入|未入力)(?=[のでには]|です|$)|(?:(?:記入|入力|記載|設定)(?:されて|して)|入って|書かれて)いない"
    r"|ない|無い|なし(?=の))"
)
_MARK = re.compile("[○〇◯×✕✖●◎△✓✔レ]")
_CIRCLES = str.maketrans("〇◯", "○○")
_BY_MONEY = frozenset({"高", "安", "cheapest"})  # said of things without the name of a column
_OF_CHANGES = re.compile(r"^版|改[版訂]|変更(?:内容|日|点|履歴)|^(?:version|revision)\b")  # in the name of a column
_BEFORE_NAME = re.compile(
    r"(?:[第(（]?[\da-z]{0,3}\d[\d.]*[章節)）.]?|[■◆●○・※])[\s.:_]*"
)  # of a section, as its number
_LIST_NAME = re.compile(r"(?:一覧表?|台帳|明細書?|リスト|定義書?|表|管理表|マトリクス| list)$")
_BETWEEN = ("", "が", "は", "の", "に", " ")  # the name of a column and its value
_JOINING = re.compile(r"\s*(?:と|や|か|、|,|・|/|または|及び|および|and|or)+\s*")
_JOINED = re.compile(r"[かとやも/・、]|または|\bor\b|\band\b")
VERB = "し|す[るれ]|さ[れせ]|でき"  # behind its stem
_RUN = re.compile(rf"[{HAN}]+|[{KATAKANA_AND_MARKS}]+|[{HIRAGANA}]+|[^\W_{HAN}{KATAKANA_AND_MARKS}{HIRAGANA}]+")
_PARTICLES = re.compile(
    "(?:いくら|いくつ|なに|なん|いつ|だれ|どこ|の|が|は|を|で|に|と|へ|も|や|お|ご|さん|です|ですか|ますか|でしょうか|なっている|なっています"
    "|なって|となっている|えて|げて|せて|べて|ください|もの|こと|って|という|ほしい|たい|う|か)+"
)
_HARMLESS = frozenset(
    re.findall(
        r"\S+",
        "教 知 挙 示 見 調 買 使 行 件 項目 品目 全 全部 一覧 該当 欄 列 表 シート ファイル データ リスト",
    )
)
_GRAMMAR = frozenset(
    re.findall(
        r"\S+",
        "which what are is was the a an of in on for there do does did please list show me all that "
        "by from to s and row rows item items entry entries sheet table file column value values many how amount",
    )
)
_COMMON = _GRAMMAR | {"yes", "none", "any", "あり", "なし", "有", "無", "有り", "無し", "すべて", "全て", "全部"}

_Named = Mapping[int, tuple[str, ...]]
"""The values that a question names, by their column; an empty one where it asks for empty cells."""


_UNSURE = Selection((), ())  # of a table that the question is about, where it cannot be told what it asks for


@dataclass(frozen=True)
class RowsAsked:
    """What a question asks of the rows of a table."""

    text: str  # the question, folded
    of_people: bool = False  # whether it asks how many people, which it says as of things here
    # whether it asks how many kinds, companies or places, which it says so, too: each counts once
    of_kinds: bool = False

    @classmethod
    def of(cls, question: str) -> "RowsAsked | None":
        """What a question asks; None of a very long one, or with a sign of a condition that nothing here can check."""
        if len(question) > QUESTION_CHARS:
            return None
        plain = unicodedata.normalize("NFKC", question).translate(_CIRCLES).strip().rstrip("。!?")
        folded_text = _BEST_FIRST.sub(r"\2が\1", _AROUND_VALUE.sub("", fold_name(plain)))
        folded_text = _EXTENSION.sub("", folded_text)
        folded_text = _HOW_MANY.sub("何個", folded_text)
        folded_text, of_kinds = _OTHER_COUNT.subn("何件", OWN_COUNT.sub(r"\1\2何件", folded_text))
        text, of_people = PEOPLE_ASKED.subn("何件です", folded_text)
        is_unchecked = _SIGNS.search(text) or _SIGNS.search(plain.lower())
        return None if is_unchecked else cls(text, bool(of_people), bool(of_kinds))

    def names(self, name: str) -> bool:
        """Whether the question names something, as a sheet."""
        return is_named(self.text, fold_name(name))

    @property
    def asks_for_whole(self) -> bool:
        """Whether it asks for a number of rows, a sum, or the most or least."""
        return any(form.search(self.text) for form in (COUNT_ASKED, _SUM_ASKED, _EXTREME_ASKED))

    def calls(self, name: str) -> bool:
        """Whether the question names something as it is called, but for a number before the name, or without a word
        for lists at its end.
        """
        return any(is_named(self.text, called) for called in called_names(name))

    def is_short_for(self, tables: Sequence[TableOfPage], sections: Iterable[str]) -> bool:
        """Whether the question names no list by its whole name, and several of these tables are called so, or longer,
        or one and another of the sections with tables.
        """
        names = [
            (
                table.rows,
                {_BEFORE_NAME.sub("", fold_name(name), count=1) for name in (*table.section[-1:], *table.names[-1:])},
            )
            for table in tables
        ]
        every = {name for _, own_names in names for name in own_names}
        if any(is_named(self.text, name) for name in every):
            return False
        lists = {name for name in every if _LIST_NAME.search(name)}
        bare_names = {bare for name in lists if is_named(self.text, bare := _LIST_NAME.sub("", name))}
        called = {name for name in lists if any(bare in name for bare in bare_names)}
        others = {_BEFORE_NAME.sub("", fold_name(name), count=1) for name in sections} - every
        return len({rows for rows, own_names in names if not called.isdisjoint(own_names)}) > 1 or any(
            _LIST_NAME.search(name) and bare in name for name in others for bare in bare_names
        )

    def select(self, table: TableOfPage) -> Selection | None:
        """The rows of a table that are asked for; None where it is not what the question is about, without rows where
        it is, and they cannot be told.
        """
        text = self.text
        if self.of_people and not any(map(_PERSON.search, table.keys)):
            return None
        for column, key in zip(table.columns, table.keys, strict=True):
            text = text.replace(fold_name(column), key)
        text = _with_measured_key(_without_having(text, table), table)
        empty, text = _empty_asked(text, table)
        rest = _EXTREME_ASKED.sub("\n", text)
        rest = self._without([key for key in table.keys if len(key) >= _LEAST_NAME], rest)
        if _NOT_CHECKED.search(rest):
            cells = {cell for row in table.rows for cell in row if len(cell) >= _LEAST_NAME and cell.lower() in rest}
            if _NOT_CHECKED.search(self._without(cells, rest)):
                return None
        return replace(self, text=text).among(table, empty)

    def among(self, table: TableOfPage, empty: _Named) -> Selection | None:
        """The same, of a question without its words for empty cells."""
        values, is_sure = self._named_values(table)
        named_values = {**values, **empty}
        if not self._is_accounted_for(table, named_values, table.beginning):
            return None
        chosen_rows = [
            row for row in table.rows if all(row[place] in choices for place, choices in named_values.items())
        ]
        is_asked = self._is_accounted_for(table, named_values)
        goes_on = any(table.goes_on(place) for place, choices in named_values.items() if "" not in choices)
        if not chosen_rows or not is_sure or goes_on or len(table.rows) < _LEAST_ROWS:
            return _UNSURE if chosen_rows and is_asked else None
        if not is_asked or (named_values and not self._groups(table, named_values)):
            return None
        return self._answer_rows(table, chosen_rows, named_values) or _UNSURE

    def _answer_rows(
        self, table: TableOfPage, rows: Sequence[tuple[str, ...]], named_values: _Named
    ) -> Selection | None:
        """Rows with what is asked of them; None where that cannot be told."""
        count_match, sum_match = COUNT_ASKED.search(self.text), _SUM_ASKED.search(self.text)
        extremes = list(_EXTREME_ASKED.finditer(self.text))
        if table.is_doubtful or (count_match and (sum_match or extremes)) or len(extremes) > 1:
            return None
        if extremes:
            return self._extreme(table, rows, extremes[0])
        terms = [
            f"{table.columns[place]}: {' / '.join(choices) or _NO_VALUE}" for place, choices in named_values.items()
        ]
        if sum_match:
            return self._total(table, rows, terms)
        if count_match:
            is_all = named_values or self._is_whole(table) or self._counts_names(table, count_match)
            if not is_all or not self._counts_rows(table, rows, named_values, count_match):
                return None
            if self.of_kinds and not self._are_kinds(table, rows, named_values, count_match):
                return None
            people = [[row[place] for row in rows] for place, key in enumerate(table.keys) if _PERSON.search(key)]
            if self.of_people and not any(_are_people(names) for names in people):
                return None
            names = [name for name in table.names if name]
            called = [name for name in names if self.calls(name)]
            selected_by = ", ".join(terms or [*names[-1:], *called][-1:])
            unit = "人" if self.of_people else "件"
            return _selection(table, rows, None, number_said(len(rows), self.text, selected_by, unit))
        return _selection(table, rows, None) if ("",) in named_values.values() else None

    def _named_values(self, table: TableOfPage) -> tuple[_Named, bool]:
        """The values that the question names, as words of their own or behind the name of their column, and whether it
        can be told which column is meant, and no cell holds such a value among others.
        """
        rest = self._without(table.columns, _EXTREME_ASKED.sub("\n", COUNT_ASKED.sub("\n", self.text)))
        names = [*map(fold_name, table.names)]
        days = set(map(day_of, DAY.findall(self.text)))
        behind: dict[str, set[int]] = {}
        words: dict[str, set[int]] = {}
        for place, name in enumerate(table.keys):
            for value in {row[place] for row in table.rows if row[place]}:
                word = _word(value)
                is_there = word in self.text and not re.search(rf"{re.escape(word)}(?:[.,]\d|%)", self.text)
                if word and name and is_there and any(is_named(self.text, f"{name}{link}{word}") for link in _BETWEEN):
                    behind.setdefault(value, set()).add(place)
                is_word = len(word) > 1 and is_there and is_named(rest, word) and not _is_verb(rest, word)
                is_word = is_word and word not in _COMMON
                is_word = is_word and not (word in names and all(row[place] == value for row in table.rows))
                if is_word or (days and DAY.fullmatch(value) and day_of(value) in days):
                    words.setdefault(value, set()).add(place)
        places_of = words | behind
        named_values: dict[int, list[str]] = {}
        is_sure = True
        for value, places in places_of.items():
            if any(value != other_value and fold_name(value) in fold_name(other_value) for other_value in places_of):
                continue  # within a longer one
            place = min(places)
            word = _word(value)
            other_cells = {row[place] for row in table.rows if value in row[place]} - {value}
            dates = [date for date in DAY.findall(self.text) if DAY.fullmatch(value) and day_of(date) == day_of(value)]
            named_values.setdefault(place, []).append(value)
            is_sure = is_sure and not (
                len({tuple(row[place] for row in table.rows) for place in places}) > 1
                or any(holds_word(cell, word) for cell in other_cells)  # a cell of several values, or with a note
                or (word in names and value not in behind)  # which may mean all rows
                or any(self._is_said_of_another(spelling, place, table.keys) for spelling in {word, *dates})
            )
        across = [fold_name(values[0]) for values in named_values.values()]
        is_sure = is_sure and not (
            any(
                len(values) > 1 and not are_joined(self.text, map(fold_name, values))
                for values in named_values.values()
            )
            or any(map(_JOINED.search, _texts_between(self.text, across)))
            or self._joins(table)
        )
        return {place: tuple(sorted(values)) for place, values in named_values.items()}, is_sure

    def _is_said_of_another(self, word: str, place: int, keys: Sequence[str]) -> bool:
        """Whether a value stands beside the name of a column other than its own, as in `佐藤が承認者`."""
        word = re.escape(word)
        names = (re.escape(key) for key in keys if key and key != keys[place])
        return any(re.search(rf"{word}[がはに]{name}|{name}[がはに]?{word}", self.text) for name in names)

    def _joins(self, table: TableOfPage) -> bool:
        """Whether columns are joined, chained or said to be there, as in `売値と原価`, `上司の部署`, `備考がある`."""
        repeating_keys = {
            name
            for place, name in enumerate(table.keys)
            if len({row[place] for row in table.rows}) < KEY_SHARE * len(table.rows)
        }
        names, repeating_names = (
            "|".join(sorted((re.escape(name) for name in names if name), key=len, reverse=True)) or "$."
            for names in (set(table.keys), repeating_keys)
        )
        there = r"[がのはも]?(?:あ[るり]|い[るま])"
        pattern = rf"(?:{names})(?:[とかやも・/、,]|\s(?:and|or|with)\b|{there})|(?:{repeating_names})の(?:{names})"
        return re.search(pattern, self.text) is not None

    def _without(self, phrases: Iterable[str], text: str) -> str:
        for phrase in sorted(filter(None, map(_word, phrases)), key=len, reverse=True):
            is_word = phrase.isascii() and phrase.isalpha()  # not within another one
            text = re.sub(rf"(?<![a-z]){phrase}(?![a-z])", "\n", text) if is_word else text.replace(phrase, "\n")
        return text

    def _is_accounted_for(self, table: TableOfPage, named_values: _Named, beginning: str = "") -> bool:
        """Whether every word of the question is a value, a name, part of a form of asking, or a particle."""
        values = [value for choices in named_values.values() for value in choices]
        days = {day_of(value) for value in values if DAY.fullmatch(value)}
        text = DAY.sub(lambda match: "\n" if day_of(match[0]) in days else match[0], self.text)
        text = self._without([*values, *(key for key in table.keys if _SUM_ASKED.search(key))], text)
        for form in (COUNT_ASKED, _SUM_ASKED, _EXTREME_ASKED, _WHICH_ASKED, _LIST_ASKED):
            text = form.sub("\n", text)
        text = self._without([*table.keys, *table.names], text)
        verbs = re.finditer(
            rf"\n[にからでがとを]{{1,2}}([{HAN}]{{2,}}|[{KATAKANA_AND_MARKS}]{{2,}})(?:し|され)て(?:いる|います)", text
        )
        for verb in [*verbs]:  # as `フナコシに発注している`, of the column 発注業者
            if any(table.keys[place].startswith(verb[1]) for place in named_values):
                text = text.replace(verb[0], "\n")
        if re.search(r"[^\w\s?？、。,「」『』\"'・:：()（）./_]", text):
            return False
        names = " ".join([*table.names, *table.columns[:1], beginning])
        known_text = f"{fold_name(names)} {names.casefold()}"
        telling_keys = [key for place, key in enumerate(table.keys) if table.is_told_apart_by(place)]
        tokens = set(re.findall(rf"[^\W\d_{HAN}{KATAKANA_AND_MARKS}{HIRAGANA}]+", known_text)) | _GRAMMAR
        for run in _RUN.findall(text):
            if re.match(f"[{HIRAGANA}]", run):
                fits = _PARTICLES.fullmatch(run) is not None
            elif re.match(f"[{HAN}{KATAKANA_AND_MARKS}]", run):
                is_known = run in known_text or (len(run) > 1 and any(key.startswith(run) for key in telling_keys))
                fits = run in _HARMLESS or (is_known and not re.search(rf"{run}(?:{VERB})", text))
            else:
                fits = run in tokens or run.removesuffix("s") in tokens
            if not fits:
                return False
        return True

    def _groups(self, table: TableOfPage, named_values: _Named) -> bool:
        """Whether what is named groups rows, and is no key."""
        return any(
            "" in values
            or not table.is_told_apart_by(place)
            or sum(row[place] in values for row in table.rows) > len(values)
            for place, values in named_values.items()
        )

    def _is_placed(self, table: TableOfPage) -> bool:
        """Whether the question says where the table is, by its own name or its place's, as in `購入表で`."""
        words = re.findall(rf"([^\W_{HIRAGANA}]{{2,}})[のでに]", self.text)
        return any(word in fold_name(name) for word in words for name in table.names) or any(
            map(self.calls, table.own_names)
        )

    def _is_whole(self, table: TableOfPage) -> bool:
        """Whether all rows of a table are asked for, which its place says, and each has a name or number of its own."""
        value_counts = (len({row[place] for row in table.rows} - {""}) for place in range(len(table.columns)))
        return self._is_placed(table) and len(table.rows) in value_counts

    def _is_list_of(self, table: TableOfPage, noun: str) -> bool:
        """Whether a table is called as what is counted, or as a list of it, which has it in the name of a column, too,
        or is all of its file: a sheet or a section may tell what a list of it shows.
        """
        file_name = next(iter(table.names[len(table.section) :][-2:-1]), "")
        for name in (*table.names[-1:], *table.section, file_name):
            plain, bare = _BEFORE_NAME.sub("", fold_name(name), count=1), _LIST_NAME.sub("", noun)
            if not name or not noun or noun not in plain:
                continue
            is_own = noun == plain and noun == bare
            if is_own or any(bare in key for key in table.keys) or (name == file_name and self.calls(name)):
                return name != file_name or self.calls(name)
        return False

    def _are_kinds(
        self, table: TableOfPage, rows: Sequence[tuple[str, ...]], named_values: _Named, match: re.Match[str]
    ) -> bool:
        """Whether rows are as many things that are called differently, and these are what is counted: neither a value
        that rows have nor the place of the table.
        """
        before = re.sub(r"(?:全部で|全て|すべて|全体で)$", "", self.text[: match.start()].rstrip(" 、")).rstrip(
            "はがを、 "
        )
        if any(before.endswith(fold_name(value)) for values in named_values.values() for value in values if value):
            return False
        last = re.search(rf"[^\s{HIRAGANA}]+$", before)
        noun = last[0] if last else ""
        is_list = any(noun in called_names(name) and _LIST_NAME.search(fold_name(name)) for name in table.names)
        of_words = [
            place
            for place, key in enumerate(table.keys)
            if not (RUNNING_NUMBER.fullmatch(key) or IDENTIFIER.search(key))
            and any(re.search(r"[^\W\d_]{2}|[^\W\d_a-z]", fold_name(row[place])) for row in rows)
        ]
        named = [place for place in of_words if noun and noun in table.keys[place]]
        places = named or [place for place in of_words if place not in named_values][:1]
        is_counted = bool(named) or is_list or noun in _HARMLESS
        cells = [[fold_name(row[place]) for row in rows] for place in places]
        return is_counted and bool(cells) and all(all(column) and len({*column}) == len(column) for column in cells)

    def _counts_names(self, table: TableOfPage, match: re.Match[str]) -> bool:
        """Whether the question asks how many there are of what the column of names is called, and no more."""
        place = table.name_place
        key = table.keys[place] if place is not None else ""
        before = self.text[: match.start()].removesuffix("全部で").rstrip("はがを、")
        return bool(key) and before == key and not any(map(_OF_CHANGES.search, table.keys))

    def _extreme(self, table: TableOfPage, rows: Sequence[tuple[str, ...]], match: re.Match[str]) -> Selection | None:
        """The rows with the most or least in the column right before that word or, in English, behind it; of what is
        high or low, in all columns of money, where the question names the table and no column.
        """
        before, behind = self.text[: match.start()], self.text[match.end() :].strip()
        sign = next(word for word in match.groups() if word)
        places = [
            place
            for place, key in enumerate(table.keys)
            if key
            and not NO_MEASURE.search(key)
            and (
                re.search(
                    rf"(?<!\w){re.escape(key)}[がのは]?$|(?<=[{HIRAGANA}、「」]){re.escape(key)}[がのは]?$", before
                )
                or (match["en"] and behind.startswith(key))
            )
        ]
        by_money = [place for place, key in enumerate(table.keys) if MONEY.search(key) and sign in _BY_MONEY]
        measured_places = places or (by_money if self._is_placed(table) else [])
        thing_places = [place for place, key in enumerate(table.keys) if key and behind.startswith(key)]
        repeats = any(
            len({row[place] for row in rows}) < len(rows) for place in thing_places if place not in measured_places
        )
        is_unclear = len(places) > 1 or sum(is_named(before, key) for key in {*table.keys} if key) > bool(places)
        if not measured_places or is_unclear or repeats or _SUM_ASKED.search(self.text):
            return None
        if any(has_units(table, [row for row in rows if row[place]], place) for place in measured_places):
            return None
        best, *other_bests = (
            best_rows(rows, place, min if sign in _LEAST else max, sign in _OF_TIME) for place in measured_places
        )
        return (
            _selection(table, best, measured_places[0])
            if best and all(other_best == best for other_best in other_bests)
            else None
        )

    def _total(self, table: TableOfPage, rows: Sequence[tuple[str, ...]], terms: Sequence[str]) -> Selection | None:
        """The rows with the sum of the column that is asked for. A total must not contradict that of all rows, and must
        say the same where equal neighbours may be one merged cell, or the question does not say where the table is.
        """
        place = self._sum_place(table)
        if place is None or (figure := sum_of([row[place] for row in rows])) is None or has_units(table, rows, place):
            return None
        beside = zip(table.rows, table.rows[1:], strict=False)
        is_merged = any(one[place] == two[place] and one in rows and two in rows for one, two in beside)
        totals = [] if terms else [total[0] for row in table.totals if (total := measure(row[place]))]
        if (totals and figure[0] != max(totals)) or (is_merged and terms):
            return None
        is_sure = totals or not (is_merged or (not terms and not self._is_whole(table)))
        selection = _selection(
            table, rows, place, f"{figure_text(figure)} ({', '.join([table.columns[place], *terms])})"
        )
        return replace(selection, proof="" if is_sure else str(figure[0]))

    def _sum_place(self, table: TableOfPage) -> int | None:
        """The only column that stands right before or behind the word for a sum, or has it in its name."""
        form = _SUM_ASKED.pattern
        measures = {place: key for place, key in enumerate(table.keys) if key and not NO_MEASURE.search(key)}
        own = [place for place, key in measures.items() if re.search(rf"(?:{form})\w", key) and key in self.text]
        summed_places = own or [
            place
            for place, key in measures.items()
            if re.search(rf"{re.escape(key)}の?(?:{form})|(?:{form})(?:の| of (?:the )?| )?{re.escape(key)}", self.text)
        ]
        other_keys = [key for place, key in enumerate(table.keys) if key and place not in summed_places]
        named_keys = [key for key in other_keys if is_named(self.text, key)]
        is_unclear = any(_COUNTED_BY.search(key) or NO_MEASURE.search(key) for key in named_keys)
        goes_on = re.search(rf"(?:{form})(?:は|が)?[とやも]", self.text)
        return summed_places[0] if len(summed_places) == 1 and not is_unclear and not goes_on else None

    def _counts_rows(
        self, table: TableOfPage, rows: Sequence[tuple[str, ...]], named_values: _Named, match: re.Match[str]
    ) -> bool:
        """Whether rows are counted: neither what a column of figures counts, nor what stands in several rows."""
        if (match["unit"] not in {None, "件", "行"} or "いくつ" in match[0] or "総数" in match[0]) and (
            any(map(_COUNTED_BY.search, table.keys)) or has_amounts(table)
        ):
            return False
        of = "の" if match[0].startswith(("件数", "総数")) else ""
        before, behind = self.text[: match.start()].rstrip(f"はがを{of}"), self.text[match.end() :].strip()
        last = re.search(rf"[^\s{HIRAGANA}]+$", before)
        noun = last[0] if last else behind.split(" ")[0].removesuffix("s")
        things = {key for key in table.keys if key and before.endswith(key)}
        name_place = table.name_place
        if not last and any(key in {noun, f"{noun}s"} for key in table.keys if key != table.keys[name_place or 0]):
            return False  # "how many hours", of rows that have them
        alike = {key for key in table.keys if noun and key.startswith(noun)}
        alike |= {key for key in table.keys if noun and key.endswith(noun) and key == table.keys[name_place or 0]}
        telling = [place for place in range(len(table.keys)) if len({row[place] for row in table.rows}) > 1]
        first = next((place for place in telling if not RUNNING_NUMBER.fullmatch(table.keys[place])), 0)
        if first not in named_values and IDENTIFIER.search(table.keys[first]):
            things.add(table.keys[first])

        def differ(name: str) -> bool:
            places = [place for place, key in enumerate(table.keys) if key == name]
            return len({cells for row in rows if any(cells := tuple(row[place] for place in places))}) == len(rows)

        is_called = self._is_list_of(table, noun) and not any(map(_OF_CHANGES.search, table.keys))
        is_thing = bool(named_values or alike or noun in _HARMLESS or is_called)
        return is_thing and all(map(differ, things)) and (not alike or any(map(differ, alike)))


def _without_having(text: str, table: TableOfPage) -> str:
    """A question without "have" and the like before a column whose value stands behind it ("that have status open")."""
    for place, key in enumerate(table.keys):
        having = re.compile(rf"\b(?:have|has|with|whose|where)(?: an?| the)? (?={re.escape(key)} ([\w.-]+))")
        if key.isascii() and (match := having.search(text)) is not None:
            is_value = any(fold_name(row[place]) == match[1] for row in table.rows)
            text = f"{text[: match.start()]}{text[match.end() :]}" if is_value else text
    return text


def _word(value: str) -> str:
    """A value, folded; a mark as it is."""
    return fold_name(value) or (value.translate(_CIRCLES) if _MARK.fullmatch(value) else "")


def _are_people(names: Sequence[str]) -> bool:
    """Whether the cells of a column are names of as many people: each there, once, and no figure."""
    return all(names) and len(set(names)) == len(names) and not re.search(r"\d", "".join(names))


def called_names(name: str) -> set[str]:
    """A name, folded, without a number before it, and without a word for lists at its end."""
    plain = _BEFORE_NAME.sub("", fold_name(name), count=1) or fold_name(name)
    return {fold_name(name), plain, _LIST_NAME.sub("", plain)} - {""}


def _with_measured_key(text: str, table: TableOfPage) -> str:
    """A question in which the only column of figures or dates whose name has a word that is compared or summed stands
    for it (`金額` for `金額（税込）の合計`).
    """
    word = rf"[{HAN}{KATAKANA_AND_MARKS}]{{2,}}"
    forms = (
        rf"(?P<word>{word})(?=[がのは]?(?:{_EXTREME_ASKED.pattern}))",
        rf"(?P<word>{word}?)(?=の?(?:{_SUM_ASKED.pattern}))",
        rf"(?<=合計|総計|総額)の?(?P<word>{word})",
    )
    matches = [match for form in forms if (match := re.search(form, text))]
    if any(match["word"].endswith(key) for match in matches for key in table.keys if key):
        return text
    for match in matches:
        is_sum = match.re.pattern != forms[0]
        keys = [
            key
            for place, key in enumerate(table.keys)
            if match["word"] in key and not NO_MEASURE.search(key) and has_figures(table.rows, place)
            if not (is_sum and any((figure := measure(row[place])) and figure[1] == "date" for row in table.rows))
        ]
        if len(keys) == 1:
            return text[: match.start("word")] + keys[0] + text[match.end("word") :]
    return text


def number_said(count: int, question: str, selected_by: str, unit: str = "件") -> str:
    """How many rows there are, in the language of a question, and what they were selected by."""
    return f"{count}{unit if is_japanese(question) else ''} ({selected_by})"


def _is_verb(text: str, word: str) -> bool:
    """Whether a word is the stem of a verb where it stands in a text, as in `更新した`."""
    return re.match(VERB, text[text.find(word) + len(word) :]) is not None


def _texts_between(text: str, words: Iterable[str]) -> list[str]:
    ordered_words = sorted(words, key=text.find)
    return [text[text.find(word) + len(word) : text.find(next_word)] for word, next_word in pairwise(ordered_words)]


def are_joined(text: str, words: Iterable[str]) -> bool:
    """Whether words are named together, as in `未入金と保留`."""
    return all(map(_JOINING.fullmatch, _texts_between(text, words)))


def _empty_asked(text: str, table: TableOfPage) -> tuple[_Named, str]:
    """The columns whose empty cells a question asks for, by their name or its beginning, and the rest of its text."""
    names = "|".join(sorted(map(re.escape, filter(None, table.keys)), key=len, reverse=True)) or "$."
    match = re.search(rf"(?P<name>{names}|[^\W_{HIRAGANA}]{{2,}}){_EMPTY_ASKED}", text)
    if match is None:
        return {}, text
    places = [place for place, key in enumerate(table.keys) if key == match["name"]]
    places = places or [place for place, key in enumerate(table.keys) if key.startswith(match["name"])]
    empty = [tuple(not row[place] for row in table.rows) for place in places]
    empty_places = [place for place, flags in zip(places, empty, strict=True) if any(flags)]
    is_one = len(set(filter(any, empty))) == 1 and 2 * len(empty_places) > len(places)
    return ({empty_places[0]: ("",)}, f"{text[: match.start()]}\n{text[match.end() :]}") if is_one else ({}, text)


def _selection(
    table: TableOfPage, rows: Sequence[tuple[str, ...]], measured_place: int | None, text: str = ""
) -> Selection:
    """Rows with what tells them apart, and the figure by which they were chosen."""
    telling_places = [
        place
        for place in range(len(table.columns))
        if len(rows) == 1 or place == measured_place or len({row[place] for row in rows}) > 1
    ]
    entry_places = [place for place, key in enumerate(table.keys) if not RUNNING_NUMBER.fullmatch(key)]
    entries = tuple(tuple(row[place] for place in entry_places) for row in rows)
    needed_places = {measured_place} if measured_place is not None else set()
    return replace(Selection.of(table, rows, telling_places, text, needed_places), entries=entries)
