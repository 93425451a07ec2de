"""The parts of a question that asks for more than one thing, each a question that can be searched by itself.

| question | parts |
| --- | --- |
| `AとBでそれぞれ…`, `compare … in A and B` | the question with A alone, and with B alone |
| `…は誰で、…はいつ？`, `…は？また、…は？`, `how long …, and who …?` | its clauses, with what the first names |
"""

import re
import unicodedata
from dataclasses import dataclass

from rag_assets.query.search.rewriting_rules import keywords
from rag_assets.text.folding import FULL_DATE, content_words

_MOST = 3  # parts
_READ_CHARS = 500  # longer texts are no such questions
_LEAST_WORDS = 2  # content words of a part
_NAME = r"[^\s、。，,？?！!「」とはがをもに]"
_AMOUNT = re.compile(r"[0-9][0-9,.]*\D{0,2}(?:の|$)")
_COMPARED = re.compile(
    r"それぞれ|各々|(?:何[^\s、。]{1,3}|いくつ|いくら)ずつ|違|異な|差異|食い違|不一致|一致|合って|比べ|比較|同じ|どちら|両方|双方"
    r"|\b(?:compare\w*|differ\w*|both|each|respectively|between|versus|vs\.?|same|match\w*)\b",
    re.IGNORECASE,
)
_PAIRS = (
    re.compile(
        rf"(?P<first>{_NAME}{{2,30}})と(?P<second>(?!どちら|どれ|どう|何|なに){_NAME}(?:[^\s、。，,？?]{{0,28}}?{_NAME})?)"
        r"(?=[でのはをが](?!す)|には|では|とで|について|に(?:おい|つい))"
    ),
    re.compile(
        r"\b(?P<first>(?:[\w.-]+ )?[\w.-]*[A-Z0-9][\w.-]*) (?:and|or|with|versus|vs\.?)"
        r" (?P<second>(?:[\w.-]+ )?[\w.-]*[A-Z0-9](?:[\w.-]*\w)?)"
    ),
)
_CLAUSE_END = re.compile(
    # …は誰で、…はいつ: each with what it asks of
    r"(?:(?<=は[誰何])|(?<=は(?:いつ|どこ|だれ))|(?<=は(?:いくら|いくつ))|(?<=は何[^、。でか])|(?<=は何[^、。で][^、。でまか]))で、"
    r"(?!それ|その|そこ|うち|内訳|具体的|主[にな]|各)(?=[^、。？?]*は[^。]*(?:誰|だれ|いつ|どこ|何|いくら|いくつ|どう|どれ|どの|どんな))"
    r"|(?<=[？?])\s*(?:また|そして|それと|あと|さらに)?[、,]?\s*(?=\S)|(?<=[かはをが、。])\s*(?:また|それと|あと|加えて)[、,]\s*"
    r"|,?\s+and\s+(?=(?:in|at|on|by|for|within|from|to)?\s*(?:how|what|when|where|who|whom|which|why|is|are|was|were|does|do|did)\b)",
    re.IGNORECASE,
)

_YEAR = r"(?:19|20)\d\d"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?)"
)
_PERIOD = re.compile(  # which another one replaces, with the particle behind it
    rf"(?:(?:{FULL_DATE.pattern})(?:\s?\([月火水木金土日](?:曜日?)?\))?"
    rf"|(?:(?<![A-Za-z\d.-]){_YEAR}|(?:明治|大正|昭和|平成|令和)\s?(?:\d{{1,2}}|元)|(?<![A-Za-z\d_-])[RHS]\d{{1,2}})"
    r"\s?年(?!間|生|問題)(?:度|\s?\d{1,2}月)?)(?:時点|現在|以[降前]|から|まで)?(?:における|において|[にで]は|[のにではがを])?"
    rf"|\b(?:(?:FY\s?|fiscal (?:year )?|year ){_YEAR}\b"
    rf"|(?:in|during|for|of|since|until) (?:{_MONTH} )?{_YEAR}(?=\s*(?:$|[,;:?!)]|\.(?!\d)"
    r"|(?:and|is|are|was|were|do|does|did|has|have|had|by|for|at|on|from|to|the|under|with)\b)))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Ask:
    """A question, or a part of one."""

    text: str  # it, as a question
    context: str = ""  # keywords of what stands before it, which it may refer to
    name: str = ""  # of things that are compared, the one that it asks of
    earlier: str = ""  # the question before it, where it refers to that

    @property
    def searched(self) -> str:
        """What is searched for it."""
        return f"{self.text} {self.context}".strip()


def parts_of(question: str) -> tuple[Ask, ...]:
    """The parts of a question, at most three; none where it asks for one thing."""
    if len(question) > _READ_CHARS:
        return ()
    if _COMPARED.search(question):
        for pattern in _PAIRS:
            *_, pair = (None, *pattern.finditer(question))
            if pair is not None and not all(map(_AMOUNT.match, pair.group("first", "second"))):
                start, end = pair.span()
                names = pair.group("first", "second")
                return tuple(Ask(f"{question[:start]}{name}{question[end:]}", name=name) for name in names)
    clauses = [clause.strip() for clause in _CLAUSE_END.split(question) if content_words(keywords(clause))]
    if len(clauses) < 2 or len(content_words(keywords(clauses[0]))) < _LEAST_WORDS:
        return ()
    clauses = clauses[:_MOST]
    context = keywords(clauses[0])
    without_period = keywords(_PERIOD.sub(" ", unicodedata.normalize("NFKC", clauses[0]))).removesuffix("の")
    return (
        Ask(clauses[0]),
        *(Ask(clause, without_period if _has_period(clause) else context) for clause in clauses[1:]),
    )


def _has_period(text: str) -> bool:
    return _PERIOD.search(unicodedata.normalize("NFKC", text)) is not None
