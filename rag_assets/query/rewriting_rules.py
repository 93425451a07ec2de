"""Rewriting a query without a language model: by word lists and endings of Japanese and English.

Full text gets the question without the words that only ask: endings of polite requests, question words, in English also
articles and auxiliary verbs. Vectors get the question as it is. Quoted text, identifiers and codes are never touched. A
question that refers back gets the earlier questions of the conversation put before it.
"""

import re
from collections.abc import Sequence

from rag_assets.contracts.ports import Rewrite, Turn

REMEMBERED_TURNS = 3

_LONGEST = 1000  # characters; longer texts are not questions
_QUOTED = r"「[^「」]*」|『[^『』]*』|\"[^\"]*\"|“[^”]*”|`[^`]*`"
# a run of letters that is no plain word: it holds a digit, punctuation, or a capital that is not its first letter
_CODE = r"(?=[A-Za-z]*[0-9_./\\:@#%+~=&-]|[A-Za-z]+[A-Z])[A-Za-z0-9_]+(?:[./\\:@#%+~=&?-]+[A-Za-z0-9_]+)*"
_KEPT = re.compile(f"{_QUOTED}|{_CODE}")
_MASK = re.compile("\ue000([0-9]+)\ue001")
_SENTENCE_END = re.compile(r"(?<=[。！？!?\n])")

_HOW = "(?:詳しく|具体的に|簡単に|簡潔に|すべて|全て)?"
_REQUEST = (
    "(?:教えて|説明して|示して|知らせて|答えて|挙げて|まとめて|調べて|探して|見せて|列挙して)"
    "(?:ください|下さい|くださいませんか|いただけますか|いただけませんか|もらえますか|もらえませんか|くれますか"
    "|ほしいです|欲しいです|ほしい|欲しい|ね|よ)*"
)
_WISH = "(?:知りたい|確認したい|調べたい|見たい|探しています)(?:のですが|んですが|です)?"
_ABOUT = "(?:について|に関して|のこと|[をがはも])*"
_BEGINNING = "(?:^|(?<=[^ぁ-ん])|(?<=[はがをにで]))"  # where a word may begin: 「などの」 holds no question word
_ASKED = (
    "(?:(?<!幾)何|誰|如何"
    f"|{_BEGINNING}(?:なに|なん|どれ|どこ|いつ|だれ|どなた|いくつ|いくら|いかが|どう|どちら|どんなもの))"
)
_COPULA = (
    "(?:なのでしょうか|なのですか|でしょうか|ですか|だろうか|なのか|になりますか|ありますか|いますか|しますか"
    "|(?<=[るたいのすんだ何誰])か)"
)
_ENDINGS = tuple(
    re.compile(f"(?:{pattern})$")
    for pattern in (
        f"{_ABOUT}{_HOW}{_REQUEST}",
        f"{_ABOUT}{_HOW}{_WISH}",
        f"(?:とは|は|が|を|って)?{_ASKED}(?:に|で|へ|から|まで)?{_COPULA}?",
        "(?:とは|って)",
        f"[はがを]?{_COPULA}",
        "(?<=[^ぁ-ん])[はがをもに]",
    )
)
_QUESTION_WORDS = re.compile(
    f"{_BEGINNING}(?:どのような|どのように|どういった|どういう|どうすれば|どうやって|どうしたら"
    "|どんな|なぜ|どうして|どの(?!程度)|いつまでに|いつ(?![もか])|どこ(?:[でにへを]|から|まで)|(?:誰|だれ)[がにを])"
)
_WORD = re.compile(r"(?<![\w'])[A-Za-z]+(?:'[a-z]+)?(?![\w'])")
_EMPTY_WORDS = frozenset(
    re.findall(
        "[a-z']+",
        "a an the what what's which who who's whom whose when where where's why how how's is are was were be been am "
        "do does did can could would should will shall may might please tell me i i'd you my your of to in on at for "
        "with by from about there it its this that and",
    )
)
_REQUEST_OPENING = re.compile(
    r"^\s*(?:please\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)?"
    r"(?:tell\s+me|explain|describe|show\s+me|show|list|find|give\s+me|i\s+(?:want|need|would\s+like)\s+to\s+know)\b",
    re.IGNORECASE,
)
_REFERS_BACK = re.compile(
    "それ|その|これ|この|あれ|あの|そこ|そちら|同じ|上記|前述|さっき|先ほど|先程|ほかには|他には"
    r"|\b(?:it|its|they|them|their|this|that|these|those|he|she|him|her|his|there|same|above|former|latter)\b"
    r"|^\s*(?:では|じゃあ|それでは|また|and\b|what\s+about|how\s+about)"
    # a question of a topic alone, as in 「期限は？」 or "Why?"
    r"|^\s*[^\s。、]{1,6}は\s*[?？]\s*$|^\s*(?:who|what|when|where|why|how)\s*\?\s*$",
    re.IGNORECASE,
)


class RuleRewriter:
    """Rewrites by rules; needs no model."""

    name = "rules"

    def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """Keywords without the words that only ask, and the question itself, see `Rewriter`."""
        asked = (*_referred(question, history), question)
        return Rewrite(" ".join(dict.fromkeys(keywords(each) for each in asked)), " ".join(asked))


def keywords(question: str) -> str:
    """A question without the words that only ask; as it is where nothing else would be left, or where it is long."""
    if len(question) > _LONGEST:
        return question
    kept: list[str] = []

    def mask(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\ue000{len(kept) - 1}\ue001"

    masked = _KEPT.sub(mask, question.replace("\ue000", " ").replace("\ue001", " "))
    parts = [_without_asking(part) for part in _SENTENCE_END.split(masked)]
    text = _MASK.sub(lambda found: kept[int(found[1])], " ".join(part for part in parts if part))
    return text or question


def refers_back(question: str) -> bool:
    """Whether a question needs those before it: it says "it" or 「その」, or is a topic without a question."""
    return _REFERS_BACK.search(question[:_LONGEST]) is not None


def with_history(question: str, history: Sequence[Turn]) -> str:
    """A question with the earlier ones that it refers to put before it, the oldest first."""
    return " ".join((*_referred(question, history), question))


def _referred(question: str, history: Sequence[Turn]) -> tuple[str, ...]:
    """Earlier questions that a question refers to, and those that these refer to, the oldest first."""
    found: list[str] = []
    for turn in reversed(history[-REMEMBERED_TURNS:]):
        if not refers_back(question):
            break
        question = turn.question
        found.insert(0, question)
    return tuple(found)


def _without_asking(sentence: str) -> str:
    text = sentence.strip(" 　。！？!?\n\t.,、")
    before = None
    while text != before:
        before = text
        for ending in _ENDINGS:
            text = ending.sub("", text).rstrip(" 　、")
    text = _QUESTION_WORDS.sub(" ", text)
    text = _REQUEST_OPENING.sub(" ", text)
    text = _WORD.sub(lambda found: " " if _is_empty(found[0]) else found[0], text)
    return " ".join(text.split())


def _is_empty(word: str) -> bool:
    """Whether an English word only holds a sentence together; abbreviations in capitals (IT, WHO) do not."""
    return word.lower() in _EMPTY_WORDS and not (word.isupper() and len(word) > 1)
