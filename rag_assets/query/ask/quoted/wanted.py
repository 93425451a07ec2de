"""What a question asks for, as far as its words tell: a number, a date, money, several things, the value of a label.

Its terms have weights, by which is told what it names of a statement.

A statement without a number, a date, money, a percentage, a time or the name of a file where that is asked for is no
answer, whatever words it shares. Other units are not compared: what scores statements tells them apart as well.

What stays out: which statement answers best (`rag_assets.query.ask.quoted.extracts`).
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from rag_assets.query.ask.quoted.item_marks import ITEM, KANJI_NUMBERS
from rag_assets.query.ask.quoted.statements import NAME_LABEL, Statement, StatementKind
from rag_assets.query.several_asked import ALL, COUNTER, NUMBER, asks_for_several
from rag_assets.text.folding import FULL_DATE, TermKind, fold_name, kind_of, query_terms, years_otherwise
from rag_assets.text.scripts import HIRAGANA, IDEOGRAPHS, KATAKANA_LETTERS

_QUANTITY = (
    "(?:amount|capacity|code|cost|count|date|depth|fee|frequency|height|id|length|limit|number|percentage|price|range|rate"
    "|revenue|size|speed|sum|temperature|total|voltage|width|year)"
)
_NUMBER_ASKED = re.compile(
    "桁数|(?:コード|ID|番号|番|日付|金額|温度|売上)(?:は|って)(?:何|なん|いつ|どれ|[?？]|$)"
    "|いくつ|いくら|何(?:箇所|種類|段階|階層|ページ|[件桁行個人名回円%％日年月時分秒文台匹社店本枚冊歳点倍割度]"
    "|(?:キロ|ミリ|センチ|メガ|ギガ)?(?:グラム|メートル|リットル|トン|ワット|ボルト|アンペア|ヘルツ|バイト|ビット)"
    "|キロ|ピクセル|ドット|ポイント|パーセント|インチ|[kKMG]?[bBm]|か月|ヶ月|カ月)"
    "|どのくらい|どれくらい|(?:額|料金|費用|価格|割合|上限|下限|(?:再生|録画|録音|処理|応答|待機|待ち|所要|保持|有効)時間|容量|重さ|重量|長さ|高さ|距離|温度|周波数|面積|(?:人|件|回|枚|文字|桁)数)"
    "(?:(?:は|って)(?:何|なん|いくら|いくつ|どれ|[?？]|$)|を(?:教え|知り|示し))"
    rf"|\bhow (?:many|much|long|old|far|often)\b|\bwhat (?:is|are|was|were) the (?:\w+ ){{0,3}}{_QUANTITY}\b"
    rf"|\bwhat (?:\w+ ){{0,2}}{_QUANTITY} (?:did|does|do|has|have|is|are|was|were|must|should|can|will)\b",
    re.IGNORECASE,
)
_DATE_ASKED = re.compile(
    rf"いつ(?![{KATAKANA_LETTERS}])"
    r".{0,30}(?:した|れた|った|ました)|いつの(?:改|版|変更|更新|時点|こと)|(?:した|れた|った)(?:の|日)?[はが]いつ|何[年月](?!間)|日付は"
    r"|\bwhen (?:and where |exactly )?(?:did|was|were)\b|\b(?:what|which) (?:date|day|month|year)\b",
    re.IGNORECASE,
)
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may(?! be)|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?!\d)|\d年|\d月\s?\d|元年|\d{1,2}[/.-]\d{1,2}[/.-]\d"
    rf"|\b{_MONTH}\.? \d|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b",
    re.IGNORECASE,
)
_SPELLED_FIGURE = re.compile(
    r"(?!一時(?:的|停止|保存|ファイル)|十分[なに]|万一|一(?:人|つ|名)ひとり)[〇一二三四五六七八九十百千万億兆半]+(?:つ|件|桁|行|個|人|名|回|円|割|倍|点|箇|[かヶヵ]|年|月|週|日|時|分|秒|文字|台|枚|冊|階|歳|泊|％|%)|ゼロ|なし|無制限|即時|直ちに|随時|常時|終日|(?:設け|定め)(?:ない|られていない|ていない)|制限(?:は|が)?ない"
    r"|\b(?:zero|no|none|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred"
    r"|thousand|million|half|once|twice|double|every|hourly|nightly|daily|weekly|monthly|yearly|unlimited)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)*")
_ADDRESS_OR_PAGE = re.compile(r"https?://\S+|\bpage \d+ of \d+\b", re.IGNORECASE)
_LINK_ASKED = re.compile(
    r"(?<![「\"])次(?:に|は|の(?!通り|とおり|よう))|直[前後]|[前後]の(?:処理|画面|工程|ステップ)|矢印|遷移[元先]|押し?(?:た先|すと|たら)|(?:つなが|繋が|接続)|行き先|どこ(?:に|へ)(?:進|行|移)"
    r"|\b(?:next|arrows?|leads? to|goes to|flows?|connect\w*|points? (?:to|at)|comes? (?:after|before))\b",
    re.IGNORECASE,
)
_DEFINITION_ASKED = re.compile(
    r"とは|って(?:何|なに|どう|どん)|の(?:意味|定義)|(?:は|って|という)[^、。]{0,6}(?:どういう|どのような|どんな)"
    r"|(?:は|って)(?:何|なに)(?:を(?:する|す|表|指|意味)|のため|です|でしょう|[?？]|$)"
    r"|\bwhat (?:is|are)\b|\bwhat does .* (?:mean|do)\b|\bmeaning of\b|\bdefin",
    re.IGNORECASE,
)
_MEANING_OF = re.compile(
    r"\bwhat do(?:es)? (?:an? |the )?(?P<does>[^?,]{1,40}?) (?:mean|stand for)\b"
    r"|\bmeaning of (?:an? |the )?(?P<of>[^?,]{1,40}?)(?= in\b| of\b|[?.]|$)",
    re.IGNORECASE,
)
_QUOTE_EXPLAINED = re.compile(
    r"[「『\"“](?P<ja>[^「」『』\"“”]{1,40})[」』\"”](?:って(?:何|なに|どう|どん)|とは|の(?:意味|定義)|(?:は|という(?:の|もの|言葉)は)"
    r"(?:何(?:です|でしょう|を(?:表|指|意味)|[?？]|$)|(?:どういう|どのような|どんな)(?:意味|もの|こと)))"
    r"|\bwhat (?:is|are|do|does) (?:an? |the )?[\"“](?P<en>[^\"“”]{1,40})[\"”](?=\s*(?:[?.]|$|mean|stand|in\b))"
    r"|\bmeaning of (?:an? |the )?[\"“](?P<of>[^\"“”]{1,40})[\"”]",
    re.IGNORECASE,
)
_ASPECT = re.compile("の(?:意味|定義|役割|目的|用途)$")
_SUBJECT = re.compile(  # what a sentence says something of
    r"(?:[(（]?\d+[.)）]\s*|[・•●○*-]\s*|[①-⑳]\s*)?(?:(?:an?|the)\s+)?[「『]?(?P<subject>[^「」『』、。:：]{1,40}?)[」』]?"
    r"\s*(?P<note>[（(][^）)]*[）)])?\s*(?:とは|は|[:：]|\bis\b|\bare\b|\bmeans\b)",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile("[（(][^）)]*[）)]")
_BRACKETS = re.compile("[「」『』]")
_NOTE_BEHIND = re.compile(r"\s*[(（][^()（）]*[)）]$")  # a cell
_ATTRIBUTE = re.compile(  # without 々: 様々な is no question word
    rf"(?P<ja>[^、。？?\s]{{2,60}}?)(?:(?:は|って|とは)、?(?:[{IDEOGRAPHS}]{{2}})?(?:[何なに]+(?!を[表意し]|のため|をする)|なん(?!ら)|いくつ|いくら|どう|どれ|どこ|いつ|誰|だれ|[？?。]|$)"
    r"|[はをが](?:教えて|知りたい|答えて|示して))"
    r"|\b(?:what|which)\s+(?:(?:is|are|was|were)\s+)?(?:(?:the|a|an)\s+)?(?P<en>[\w' /-]{2,60}?)"
    r"(?=\s+(?:of|for|in|on|at|to|does|do|did|is|are|was|were|has|have|must|should|can|that|when|with|from|by)\b|[?,.]|$)",
    re.IGNORECASE,
)
QUOTED = re.compile(r"[「『\"'“‘]([^「」『』\"'“”‘’]{2,40})[」』\"'”’]")
_LEAST_LABEL = 2  # characters
_COLUMN_WORD = re.compile(r"[^\W\d_]{2,}")
_WORD_AND_VALUE = re.compile(  # `ODE 2.1.0`, 「レベルが3」
    r"([^\W\d_]{2,20}?)\s?(?:version|ver\.?|v|[がはの=:])?\s?(?<![a-z\d.])(v?\d+(?:\.\d+)*[a-z]?)(?![a-z\d.])"
)
_LEAST_NAMED = 4  # characters before a note; `あり(同期)` is not called `あり`
NUMBERED = re.compile(r"(?<!\w)(?:(?!\d)\w)*\d\w*")
_CODE_NAMED = re.compile(
    r"(?:コード|番号|番|(?<![A-Za-z])(?:ID|No|code|number))(?:が|は|の|\s?is\b|=)?[\s.:「『\"#]*(\d+(?:\.\d+)*)(?![\d.])|(?<![\w.,])(\d{5,})(?![\d.,])",
    re.IGNORECASE,
)
_CODE = re.compile(r"\d+(?:\.\d+)*")
_PAID = "(?:dues|fees?|prices?|costs?|rent|salary|wages?|deposits?|premiums?|fines?|tuition|fares?)"
_MONEY_ASKED = re.compile(
    r"(?:料|代|金|額|費|価格|値段|売上|予算)[^。]{0,8}(?:いくら|何円|どのくらい|どれくらい)|(?:料金?|額|費用?|価格|値段|[定単原売]価)(?:は[?？]?$|を(?:教え|知り))"
    rf"|\bhow much\b[^?.]{{0,60}}\b(?:{_PAID}|pay|charged?)\b"
    rf"|\bwhat (?:is|are|was|were) (?:the )?(?:[\w'-]+ ){{0,3}}{_PAID}\b",
    re.IGNORECASE,
)
_MONEY = re.compile(
    r"円(?![滑形周満熟卓グ])|[$¥€￥£]|ドル|ユーロ|[\d十百千万億]\s?元|(?<![\d.,])\d{1,3}(?:,\d{3})+(?:\.\d\d?)?(?![\d.,]|\s?[人件名個台枚回])|無料|[%％]|[\d〇一二三四五六七八九]\s?割"
    r"|\b(?:usd|yen|dollars?|euros?|million|billion)\b",
    re.IGNORECASE,
)
_PRICED = re.compile(
    rf"[料代金額費価賃益税当]$|単価|負担|円|[¥￥$€£]|ドル|ユーロ|price|cost|fee|amount|revenue|\b{_PAID}\b",
    re.IGNORECASE,
)
_EACH_ASKED = re.compile(  # of what each has its share; times have many names
    rf"[1一](?!年|月|[かヶ]月|日|週|時間|分|秒|回)(?P<ja>[{IDEOGRAPHS}{KATAKANA_LETTERS}]{{1,6}}?)(?:[当あ]たり|につき)"
    r"|(?<!as )\b(?:per|for each) (?!(?:the|our|year|annum|month|week|day|diem|hour|minute|second|cent|section)\b)"
    r"(?P<en>[a-z]{3,})",
    re.IGNORECASE,
)
_EACH = re.compile(r"[当あ]たり|につき|ごと|毎|各|単価|\b(?:per|each|every)\b|/\s?[^\W\d]", re.IGNORECASE)
_OF_ALL = re.compile(r"合計|総[額計]|収入|売上|予算|決算|\b(?:total|income|revenue|budget|sum)\b", re.IGNORECASE)
_ALL_NUMBER = re.compile(r"[-−▲△]?\d[\d.,]*")
_SHARE_ASKED = re.compile(r"何(?:[%％]|パーセント|割)|\bwhat (?:\w+ ){0,3}percent(?:age)?\b", re.IGNORECASE)
_SHARE = re.compile(
    r"[\d〇一二三四五六七八九]\s?(?:[%％割]|パーセント|per ?cent\b)|(?:半数|半分|全額|ゼロ|なし)", re.IGNORECASE
)
_SHARED = re.compile(r"[%％率]|割合|(?<![a-z])(?:percent(?:age)?|share|rate)(?![a-z])", re.IGNORECASE)
_MEASURED_IN_CHARACTERS = "(?:code|column|field|id|item|line|name|number|password|record|string|text|value)"
_TIME_ASKED = re.compile(
    r"ど[のれ]くらいで(?!す|しょう)|どのくらいの(?:期間|時間|日数)|"
    r"(?:期間|日数)(?:は|って)(?:どのくらい|どれくらい|どれだけ|何)|\bhow long (?:does|do|did|will|until|before"
    rf"|is(?! (?:the |an? )?(?:[\w'’-]+ ){{0,3}}{_MEASURED_IN_CHARACTERS}\b))\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"[\d一二三四五六七八九十]\s?(?:営業日|日|時間|時|分|秒|週|か月|ヶ月|カ月|月|年)|即時|直ちに|随時"
    r"|\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|immediately|ms)\b",
    re.IGNORECASE,
)
_MEASURE = re.compile(r"[(（](?:秒|分|時間|日|日数|週|週間|か月|ヶ月|カ月|月|年)[)）]$")
_WHO_ASKED = re.compile(r"誰|だれ|どなた|\b(?:who|whom|whose)\b", re.IGNORECASE)
_LABEL = re.compile(r"^[^:：|]{1,40}[:：](?!\d)")
_PATH_ASKED = re.compile(
    r"(?:ファイル(?:の名前|名)|URL|URI|(?<![^\W])パス)(?:は|って)?(?:(?:何|なん|なに|どこ)(?:で(?:す|しょ)|に|と|[?？。]|$)|を教え|[?？。]|$)"
    r"|\bwhat (?:is|are) the (?:\w+ ){0,2}(?:file ?name|url|uri|path)s?\b",
    re.IGNORECASE,
)
_PATH = re.compile(r"\w\.[a-z]\w{1,5}(?!\w)|[/\\]\w", re.IGNORECASE)
_UNTIL_ASKED = re.compile("いつまで(?!も)")
_UNTIL = re.compile(r"まで|迄|限り|期限|永久|末[日にで]?|当日|\d[/:]\d")
_ASKING = re.compile(
    r"[何誰]|いつ|どこ|どの|どれ|どう|いく[つら]|なぜ|なに|\b(?:wh(?:at|ich|o|om|ose|en|ere|y)|how)\b", re.IGNORECASE
)
_WORD_SIGN = re.compile(rf"[^\W{HIRAGANA}]")
NOTHING = re.compile(r"[-－‐ー―—\s]*")
TERM_WEIGHTS = {TermKind.IDENTIFIER: 3.0, TermKind.WORD: 1.0, TermKind.PAIR: 0.5, TermKind.CHARACTER: 0.2}
_SPELLED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_OF_NUMBER = r"\d〇一二三四五六七八九十百千万"
_THINGS = (  # in lower case, as others are names: the Seven Pillars of Wisdom
    r"(?!(?:(?:second|minute|hour|day|week|month|year|dollar|percent|time)s?|is|was|has|does|its|this)\b)(?-i:[a-z]+s)\b"
)
_ALL_COUNTED = re.compile(  # how many things are asked for, which need not stand beside them
    rf"(?<![{_OF_NUMBER}.,第数何〜~–-])(?<![{_OF_NUMBER}][、・])(?<![{_OF_NUMBER}]から)(?P<each>{NUMBER}){COUNTER}(?={ALL})"
    rf"|(?<=全部で)(?P<whole>{NUMBER}){COUNTER}(?!満点|以[上下内]|未満)"
    r"|(?P<before>\b(?:all (?:of )?(?:the |these |those )?|wh(?:at|ich) (?:are (?:the )?)?|(?:name|list) (?:the )?))"
    rf"(?P<en>{'|'.join(_SPELLED)}|\d{{1,2}}) (?={_THINGS})",
    re.IGNORECASE,
)
_LETTERED = re.compile(r"[^\W\d_]")
_PLACE_CODE = re.compile(r"\d{2,6}\s?(?=\D+[都道府県市区町村]$)")  # before the name of a place, as in `01北海道`
_DATE_CELL = re.compile(r"\D{0,2}\d{1,4}年度?(?:\d{1,2}月)?(?:\d{1,2}日)?")
_BACKWARD = 0.4  # of what a connection from what is named counts, for one that ends there
_NAMED_END = 0.8  # share of the terms of an end from which the question names it
_LEAST_NEW = 2  # terms beside those of the question that a statement holds
_QUOTED_CELL = 2.0  # how much a cell counts that the question quotes, against one that it names
_VERSION = re.compile(r"(?<!\d)(?<!\d\.)\d+(?:\.\d+){2,}(?!\d|\.\d)")


@dataclass(frozen=True)
class AnswerTraits:
    """What a question asks for."""

    several: bool  # whether it asks for several things, or a list
    number: bool  # whether for a number or an amount
    money: bool  # whether for an amount of money
    share: bool  # whether for a percentage
    time: bool  # whether for how long something takes
    date: bool  # whether for a date
    until: bool  # whether for a term
    link: bool  # whether for what comes before or after something
    path: bool  # whether for the name of a file or an address
    known: frozenset[str]  # the terms of a question for a person, of which an answer must say more; empty for others
    each: str  # of what each thing's share is asked for (「1区画あたり」, "per lot"); empty for none
    numbers: frozenset[str]  # that stand in the question itself
    attributes: tuple[str, ...]  # names of what is asked for, folded
    defined: tuple[str, ...]  # names of what is to be explained, folded

    @classmethod
    def of(cls, question: str, earlier: str = "") -> "AnswerTraits":
        """What a question asks for.

        Args:
            question: The question.
            earlier: The one before it, where it refers to that: what it asks for holds where this asks for nothing.
        """
        text = question if _ASKING.search(question) else f"{question} {earlier}".strip()
        return cls(
            asks_for_several(text),
            bool(_NUMBER_ASKED.search(text)),
            bool(_MONEY_ASKED.search(text)),
            bool(_SHARE_ASKED.search(text)),
            bool(_TIME_ASKED.search(text)),
            bool(_DATE_ASKED.search(text)),
            bool(_UNTIL_ASKED.search(text)),
            bool(_LINK_ASKED.search(text)),
            bool(_PATH_ASKED.search(text)),
            terms_of(question) if _WHO_ASKED.search(text) else frozenset(),
            next((match["ja"] or match["en"] for match in _EACH_ASKED.finditer(text) if not _OF_ALL.search(text)), ""),
            frozenset(_NUMBER.findall(unicodedata.normalize("NFKC", question))),
            _attributes(question),
            _defined_names(question),
        )

    @property
    def measured(self) -> bool:
        """Whether it asks for a number of any kind."""
        return self.number or self.money or self.share or self.time or self.date or self.until

    def is_asked(self, label: str) -> bool:
        """Whether what is asked for ends with a label, as a word of its own."""
        name = fold_name(label.rpartition(" > ")[2])
        return any(_ends_with_word(attribute, name) for attribute in self.attributes)

    def defines(self, statement: Statement) -> bool:
        """Whether something is to be explained, and a statement says what it is, does or means."""
        return any(_ends_with_word(word, name) for word in self.defined for name in _subjects(statement))

    def lacks_value(self, statement: Statement) -> bool:
        """Whether a number or address is asked for, and a statement has none of its kind that the question has not, or
        tells the sum of what is asked for each.
        """
        text = _ADDRESS_OR_PAGE.sub(" ", unicodedata.normalize("NFKC", statement.text))
        if (
            (self.date and not _DATE.search(text))
            or (self.until and not any(pattern.search(text) for pattern in (_DATE, _TIME, _UNTIL)))
            or (self.money and not _has(_MONEY, _PRICED, text, statement.cells))
            or (self.share and not _has(_SHARE, _SHARED, text, statement.cells))
            or (self.path and not _PATH.search(text))
            or (self.time and not _has(_TIME, _MEASURE, text, statement.cells))
            or (self.each and self.measured and _tells_sum_alone(statement, self.each))
            or (self.known and _terms_behind_labels(statement) <= self.known)
        ):
            return True
        is_new = any(number not in self.numbers for number in _NUMBER.findall(text))
        return self.number and not is_new and not _SPELLED_FIGURE.search(text)


def _attributes(question: str) -> tuple[str, ...]:
    """What is asked for, folded: "the output form of the report" of "What is …?"."""
    return tuple(filter(None, (fold_name(match["ja"] or match["en"]) for match in _ATTRIBUTE.finditer(question))))


def _defined_names(question: str) -> tuple[str, ...]:
    """What is to be explained, folded: what the question quotes, else what it asks for."""
    if not _DEFINITION_ASKED.search(question):
        return ()
    names = [_BRACKETS.sub("", _ASPECT.sub("", attribute)) for attribute in _attributes(question)]
    names += [fold_name(match["does"] or match["of"]) for match in _MEANING_OF.finditer(question)]
    return tuple(filter(None, (*map(fold_name, quotes_explained(question)), *names)))


def quotes_explained(question: str) -> list[str]:
    """Signs and words that a question quotes and wants to have explained: 「MA」とは, What does "MA" mean."""
    matches = _QUOTE_EXPLAINED.finditer(unicodedata.normalize("NFKC", question))
    return [match["ja"] or match["en"] or match["of"] for match in matches]


def _subjects(statement: Statement) -> set[str]:
    """What a statement says something of, folded: the first cell of a row, less its number, or the subject of each line
    or of a sentence, also with what stands behind it in brackets.
    """
    matches = list(filter(None, map(_SUBJECT.match, statement.lines or (statement.text,))))
    subjects = [
        subject for match in matches for subject in (match["subject"], match["subject"] + (match["note"] or ""))
    ]
    if statement.kind is StatementKind.ROW and len(statement.cells) > 1:
        label, value = next((cell for cell in statement.cells if not cell[1].isdecimal()), statement.cells[0])
        subjects += [label, value, _IN_BRACKETS.sub("", value)]
    return set(map(fold_name, subjects))


@lru_cache(maxsize=64)
def _values_named(question: str) -> Mapping[str, tuple[str, ...]]:
    """Figures and versions that a question has, with the words right before them, folded."""
    named: dict[str, tuple[str, ...]] = {}
    for word, value in _WORD_AND_VALUE.findall(unicodedata.normalize("NFKC", question).casefold()):
        named[value] = (*named.get(value, ()), word)
    return named


def _ends_with_word(text: str, name: str) -> bool:
    """Whether a folded text ends with a folded name, as a word of its own."""
    return len(name) >= _LEAST_LABEL and text.endswith(name) and _begins_word(text, len(text) - len(name))


def _begins_word(text: str, place: int) -> bool:
    """Whether a name may begin at a place of a folded text: not within a word."""
    return place == 0 or not _WORD_SIGN.match(text[place - 1])


def is_named(folded: str, name: str) -> bool:
    """Whether a folded text holds a folded name as a word of its own."""
    if len(name) < _LEAST_LABEL or not re.search(r"[^\W\d_]", name):
        return False
    place = folded.find(name)
    end = place + len(name)
    return place >= 0 and _begins_word(folded, place) and not _WORD_SIGN.match(folded, end)


def codes_named(question: str) -> frozenset[str]:
    """Numbers of a question that name something: long ones, and those that it calls a code or a number; without zeros
    before them, which people leave out.
    """
    matches = _CODE_NAMED.findall(unicodedata.normalize("NFKC", question))
    return frozenset(filter(None, (code.lstrip("0") for codes in matches for code in codes)))


def is_code(value: str, codes: Set[str]) -> bool:
    """Whether a value is one of the numbers by which a question names something, also one of several parts (`3.6`)."""
    return _CODE.fullmatch(value) is not None and value.lstrip("0") in codes


def _has(
    text_pattern: re.Pattern[str], label_pattern: re.Pattern[str], text: str, cells: Sequence[tuple[str, str]]
) -> bool:
    """Whether a text says an amount of a kind, or its cells have a figure under a label of it, of a column or a row."""
    if text_pattern.search(text):
        return True
    labels, values = ([cell[part] for cell in cells] for part in (0, 1))
    is_below = any(label_pattern.search(label) and NUMBERED.search(value) for label, value in cells)
    is_beside = any(label_pattern.search(value) and not NUMBERED.search(value) for value in values)
    return is_below or (is_beside and any(labels) and any(map(_ALL_NUMBER.fullmatch, values)))


def _terms_behind_labels(statement: Statement) -> frozenset[str]:
    """The terms of a statement without those of labels: names of columns, and what stands before a colon."""
    values = [value for _, value in statement.cells] or statement.lines or (statement.text,)
    return terms_of(" ".join(_LABEL.sub("", value) for value in values))


def _tells_sum_alone(statement: Statement, each: str) -> bool:
    """Whether a statement tells an amount of all together, and nothing of the things of which each has a share."""
    labels = (label for label, _ in statement.cells)
    said = unicodedata.normalize("NFKC", " ".join((statement.context, statement.group, *labels, statement.text)))
    return bool(_OF_ALL.search(said)) and not _EACH.search(said) and fold_name(each) not in fold_name(said)


@dataclass(frozen=True)
class WeightedQuestion:
    """A question, with the weights of its terms, which sum to 1, and the numbers that name something; one that has no
    number itself means those that it refers back to.
    """

    text: str
    weights: Mapping[str, float]
    wanted: AnswerTraits
    codes: frozenset[str]

    def share(self, terms: Set[str]) -> float:
        """Share of the terms, by weight, that are among others."""
        return sum(weight for term, weight in self.weights.items() if term in terms)

    def repeats(self, own: Set[str], statement: Statement) -> bool:
        """Whether a statement says hardly anything but what was asked, as the row of a name does to who gives it."""
        cells = [value for _, value in statement.cells]
        if statement.kind is StatementKind.ROW and any(map(NAME_LABEL.fullmatch, cells)):
            return all(NAME_LABEL.fullmatch(cell) or terms_of(cell) <= self.weights.keys() for cell in cells)
        new = own - self.weights.keys()
        return len(new) < _LEAST_NEW and not any(map(NUMBERED.fullmatch, new))

    def keyed(self, statement: Statement) -> float:
        """1 where the question names a whole cell of a row as a word of its own, or a value behind a word of its column
        (`ODE 2.1.0`), 2 where it quotes it or its code.
        """
        if statement.kind is not StatementKind.ROW:
            return 0.0
        folded_text = fold_name(self.text)
        cells = [fold_name(_PLACE_CODE.sub("", value)) for _, value in statement.cells]
        for _, value in statement.cells:
            cells += [fold_name(name)] if _LETTERED.search(name := ITEM.sub("", value)) else []
            named, notes = _NOTE_BEHIND.subn("", value)
            cells += [fold_name(named)] if notes and len(named) >= _LEAST_NAMED else []
        if any(is_code(cell, self.codes) for cell in cells):
            return _QUOTED_CELL
        quotes = {fold_name(quote) for quote in QUOTED.findall(self.text)}
        is_quoted = not quotes.isdisjoint(cells)
        names = [cell for cell in cells if not _DATE_CELL.fullmatch(cell)]  # dates stand in many rows
        is_keyed = any(is_named(folded_text, name) for name in names) or self._names_value(statement)
        return _QUOTED_CELL if is_quoted else float(is_keyed)

    def _names_value(self, statement: Statement) -> bool:
        """Whether the question has the value of a cell, a figure or version, right behind a word of its column."""
        named = _values_named(self.text)
        pairs = [(header, value.casefold()) for header, value in statement.cells if value.casefold() in named]
        return any(
            _ends_with_word(before, word)
            for column, value in pairs
            for before in named[value]
            for word in _COLUMN_WORD.findall(unicodedata.normalize("NFKC", column.rpartition(" > ")[2]).casefold())
        )

    def leads(self, statement: Statement) -> float:
        """1 where what leads where is asked, and a statement says where what is named leads to; less for from where."""
        if statement.kind is not StatementKind.CONNECTION or not self.wanted.link:
            return 0.0
        start, end = map(self._names, statement.cells[0])
        return max(start, _BACKWARD * end)

    def _names(self, end: str) -> bool:
        """Whether the question names an end of a connection, as it stands or by its terms."""
        if (words := fold_name(end)) and words in fold_name(self.text):
            return True
        terms = terms_of(end)
        return len(terms & self.weights.keys()) >= _NAMED_END * len(terms) > 0


def number_counted(question: str) -> int | None:
    """How many things a question says that it asks for all of (「4つとも」, "all four"); None where it does not."""
    match = _ALL_COUNTED.search(unicodedata.normalize("NFKC", question))
    number = (match["each"] or match["whole"] or match["en"]).lower() if match else ""
    if number in _SPELLED:
        return _SPELLED.index(number) + 2
    value = int(number) if number.isdecimal() else KANJI_NUMBERS.index(number) + 1 if number else 0
    return value if value > 1 else None


def without_count(question: str) -> str:
    """A question without how many things it asks for all of, which is neither one of them nor a number of one."""
    if number_counted(question) is None:
        return question
    return _ALL_COUNTED.sub(lambda match: match["before"] or "", unicodedata.normalize("NFKC", question))


def terms_of(text: str) -> frozenset[str]:
    """The terms of a text; versions and other numbers of three parts are terms of their own."""
    versions = _VERSION.findall(FULL_DATE.sub(" ", unicodedata.normalize("NFKC", text)))
    return frozenset((*query_terms(text).split(), *versions))


def terms_held(text: str) -> frozenset[str]:
    """The terms by which a text may be asked for: its own, and those of its years in the other calendar."""
    return terms_of(" ".join((text, *years_otherwise(text))))


def term_kind(term: str) -> TermKind:
    """What a term is, where dates are words and versions identifiers."""
    if FULL_DATE.match(term):
        return TermKind.WORD
    return TermKind.IDENTIFIER if _VERSION.fullmatch(term) else kind_of(term)
