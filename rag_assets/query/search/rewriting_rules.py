"""Rewriting a query without a language model: by word lists and endings of Japanese and English.

Full text gets the question without the words that only ask: endings of polite requests, question words, in English also
articles and auxiliary verbs. Vectors get the question as it is. Quoted text, identifiers and codes are never touched. A
question that refers back is followed by the keywords of the earlier questions, so that it weighs more than these.

A question refers back where a pronoun stands for something that the question does not name itself, where it asks for
hardly more than "that" thing, or where it is no whole question. What it names in the place of something else is left
out of the earlier ones: 「その適用期間は？」 after 「2割特例の適用対象者は？」 asks nothing about who it applies to.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise, takewhile

from rag_assets.contracts.ports import Rewrite, Turn
from rag_assets.query.prompting import REMEMBERED_TURNS
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import HIRAGANA, KANJI, KATAKANA

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
_BEGINNING = f"(?:^|(?<=[^{HIRAGANA}])|(?<=[はがをにで]))"  # where a word may begin: 「などの」 holds no question word
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
        f"(?<=[^{HIRAGANA}])[はがをもに]",
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
_JOINING = "(?:and|or|but|if|when|because|so|while|once|after|before|that|which|whether|where|how|who)"
_VERBLESS = (
    r"(?:(?!(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|may|must|who|what|when|where|why|how"
    r"|which)\b)[\w'-]+\s*)"
)
_ALL_OF_IT = (
    "(?:では|じゃあ|それでは)?、?(?:それら?を)?(?P<all>全部|すべて|全て|一覧で?|一つずつ|ひとつずつ)を?"
    f"(?P<request>(?:教えて|挙げて|列挙して|見せて|示して|出して)[{HIRAGANA}]{{0,8}})?"
)
_WHOLE_REQUEST = re.compile(_ALL_OF_IT)
# what is done with something, or holds for it, and is not asked for by itself
_ACTS = (
    "申請|申込|提出|届出|連絡|通知|報告|登録|変更|修正|取得|取消|返却|返品|支払|請求|精算|承認|更新|保管|保存|有効|受付|利用|予約"
    "|納品|検収|公開|実施|期限|期間|締切"
)
# a time, and a document, which are things by themselves
_NOT_OF_ANOTHER = (
    "[今昨明来毎本][日年月週回度朝晩]も"
    rf"|\S{{0,12}}(?:規程|規則|規定|規約|マニュアル|ガイド|ガイドライン|資料|[{KANJI}]書)も"
)
# one that asks a further thing of what was spoken of, and names nothing else
_OF_THE_SAME = re.compile(
    rf"{_ALL_OF_IT}$"  # 「全部挙げて」「一覧で」
    # 「購入日も」「保管温度も教えて」
    rf"|(?:あと|また|それと|ついでに)?、?(?P<further>(?!{_NOT_OF_ANOTHER})[^\s。、の?？]{{1,12}}"
    rf"(?<=[{KANJI}{KATAKANA}A-Za-z0-9いきけげしちみり)])(?<![何誰]))も(?:、?(?:合わせて|あわせて))?"
    rf"(?:(?:教えて|知りたい|お願い|示して|挙げて)[{HIRAGANA}]{{0,8}})?$"
    # 「いつまでの予定？」
    r"|(?:いつ|どこ|何[年月日回個]?)(?:から|まで)?の[^\s。、はがをにで]{1,6}(?:です|でしょう)?か?$"
    # 「申請はいつまで？」
    rf"|(?:{_ACTS})は(?:いつまで|いつから|何日前)[^。、はがを]{{0,8}}$"
    # a verb with what is asked of it: 「何回に分けて取れる？」「いつまでに申請すればいい？」
    r"|(?:では|じゃあ|それでは)?、?(?:いつ|いくつ|いくら|何[回日年月週時分個人件度枚割円%]|どのくらい|どれくらい)"
    r"(?:ごと|前|後|以内|間)?(?:から|まで|が|で|に|を|へ)*"
    rf"(?:[{KANJI}]{{1,2}}[{HIRAGANA}]{{0,4}}[てで])?[{KANJI}]{{1,2}}(?![{HIRAGANA}]*(?:とき|たら|なら))[{HIRAGANA}]{{1,8}}$"
)
# a question that is none without the one before
_ELLIPTIC = re.compile(
    # a topic alone: 「期限は？」「エラーのときは？」「PDFでは？」
    r"^(?:では|じゃあ|それでは|それなら|あと|また)?、?"
    r"(?:[^\s。、の]{1,8}|[^。、]{1,12}(?:とき|時|場合|際|ほう|方|で|に|から|まで))(?:(?<!と)は|って|なら|だと)$"
    # a value in its place: 「0だとどういう意味」
    r"|^[^\s。、の]{1,8}(?:だと|なら|だったら)、?(?:どう|何|なに|いく)[^。、]{0,12}$"
    # question words alone: 「なぜですか」「いつまで？」
    r"|^(?:では|じゃあ|それでは)?、?(?:なぜ|どうして|いつ|どこ|誰|だれ|いくら|いくつ|どう|どうやって|どのように|どれ|何|具体的には|例えば|たとえば"
    r"|ほかには?|他には?)(?:から|まで|が|で|に|を|は|すれば)?(?:いい|よい)?(?:です|なの|でしょう|なのでしょう)?か?$"
    rf"|^(?:もっと|もう少し|さらに)?(?:詳しく|具体的に|くわしく|続けて|(?:具体)?例を)(?:[^。、]{{0,2}}(?:教えて|説明して|挙げて|話して)[{HIRAGANA}]{{0,8}})?$"
    r"|^(?:(?:and|but|or|so|then|also|ok|okay)\b[\s,]*)?(?:"
    r"(?:what|how)\s+about\b.*|what\s+if\b.*|what\s+else|who\s+else|anything\s+else|which\s+(?:one|ones)"
    r"|(?:for|since|until|by|from|to|with|in|at|on)?\s*(?:who|whom|what|when|where|why|which|how(?:\s+(?:so|long|much|many|often|come))?)"
    r"|why\s+not|(?:please\s+)?(?:tell\s+me\s+more|explain\s+further|go\s+on|more\s+details?|(?:give\s+me\s+)?(?:an?\s+)?(?:example|more\s+examples?))(?:\s+please)?"
    rf"|(?:for|in|with|without|by|at|on|from|to|after|before|when|during|since|until)\s+{_VERBLESS}{{1,4}}"
    rf")$|^(?:and|or|but)\s+{_VERBLESS}{{1,5}}$",
    re.IGNORECASE,
)
# what stands for something by itself
_ENDED = r"(?=\s*(?:[?.,;!?。、]|$))"
_FUNCTION = (
    "(?:is|are|was|were|does|do|did|can|could|will|would|should|has|have|in|on|for|to|by|with|from|at|as|and|or|too|also"
    "|still|always|not|mean|means|happen|happens|work|works|apply|applies|take|takes|cost|costs|matter|matters|only|again)"
)
_PRONOUN = re.compile(
    "(?:それ|あれ|これ)(?:ら)?(?!ぞれ|でも|から|まで|では|じゃ|より|ゆえ|なり)(?=[はがをにのでもとっ以だ、。?？]|$)|(?<!そこ)そこ(?=[はがをにでのも]|$)|そちら|あちら"
    "|[そこあ]の(?:場合|際|時|とき|後|前|他|ほか|ため|結果|理由|うち)(?!の)|[そこ]うした?(?:場合|とき|ら|なら)|そうすると"
    "|上記|上述|前述|先述|同上|さっき|先ほど|先程|(?:ほか|他)に(?:は|も)|同じ(?:です|もの|こと|よう[なに])|同様(?:です|に|の)|[前後]者"
    # an "it" that stands for nothing is left out
    r"|(?<!n't )\bit\b(?!['’]?s?\s+(?:\w+\s+){0,3}?(?:to(?!\s+(?:the|an?|my|our|this|that)\b)|that|if|whether)\b)"
    r"(?!\s+(?:takes?|took|costs?)\b.*\bto\b)"
    r"|\b(?:they|them|he|she|him)\b|\b(?:its|their|his|her|hers|theirs)\b"
    rf"|\b(?:this|these|those)(?:{_ENDED}|\s+(?:ones?|{_FUNCTION})\b)"
    r"|(?:^|\b(?:is|are|was|were|does|do|did|can|could|will|would|should|has|have|about|of|for|to|in|on|at|by|with|from"
    r"|after|before|without|like|than|as|and|but|if|so|why|how|what|where|who|when)\s+)"
    rf"that(?:{_ENDED}|\s+(?:ones?|{_FUNCTION})\b)"
    rf"|\b(?:mean|explain|approve|get|use|see|change)\s+that(?:{_ENDED}|\s+{_FUNCTION}\b)"
    r"|\b(?:in|for)\s+(?:that|this|such(?:\s+a)?|those|these)\s+(?:cases?|event|situation)\b"
    rf"|\bthe\s+(?:same|former|latter|above)(?:{_ENDED}|\s+(?:thing|ones?|{_FUNCTION})\b)|\b(?:mentioned|as)\s+above\b"
    rf"|(?<!is )(?<!are )(?<!was )(?<!were )(?<!be )\bthere{_ENDED}",
    re.IGNORECASE,
)
# may stand for what is named in the same clause
_POSSESSIVE = frozenset({"its", "their", "his", "her", "they", "them"})
_DETERMINED = re.compile(
    rf"(?:その|この|あの|それらの|これらの|そんな|このような|そのような)\s*(?:[{KANJI}{KATAKANA}A-Za-z0-9]+|とき|ころ|ほか)"
    rf"|\b(?:this|that|these|those|such)\s+(?!(?:{_FUNCTION}|an?|the|my|our|your|he|she|they|it|we|you|i)\b)"
    r"(?:[\w-]+\s*)+?(?=\b(?:is|are|was|were|do|does|did|can|could|will|would"
    r"|should|has|have|in|on|for|to|by|with|from|at|as|of|and|or|the|an?|my|our)\b|[?.,;!?]|$)",
    re.IGNORECASE,
)
_LAST_CLAUSE = re.compile(
    rf"(?:(?<=[、。,;.?!])|\b{_JOINING}\b|^)(?:(?!\b{_JOINING}\b)[^、。,;.?!])*$",
    re.IGNORECASE,
)
_OTHER_OF_SEVERAL = re.compile(  # 「日次のほうは何時に走りますか」
    r"(?:では|じゃあ|それでは|あと|また)?、?[^\s。、の]{1,8}の?ほう(?:は|だと|なら)"
    r"|(?:and|but|what about|how about)\b[\s,]*"
    r"(?!(?:the )?(?:no|any|some|every|one|more|is|are|was|were) )(?:the )?[\w-]+ ones?\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:では|じゃあ|それでは|それなら|(?:and|but|or|so|then)\b(?P<counts>\s+how\s+(?:many|much)\b)?)", re.IGNORECASE
)
# words of compounds as one, 「取り消し」「戻り値」 among them
_CONTENT = re.compile(
    rf"(?:[{KANJI}{KATAKANA}A-Za-z0-9]|['’._-](?=[A-Za-z0-9])|(?<=[{KANJI}])[いえきけげしせちみりれ](?=[{KANJI}]))+"
)
# a Japanese question without anything that it is about: 「どのくらいの頻度で送られますか」
_ASKS_WITHOUT_TOPIC = re.compile(r"(?:ます|です|でしょう|ました|るの|たの)か?[。？?]*$")
_TOPIC = re.compile(
    rf"[A-Za-z0-9「『]|[{KATAKANA}]{{2,}}|[{KANJI})）]\s?(?:[はがをもとやの]|について|における|において|に関)"
)
_FURTHER_OF_THAT = re.compile(  # 「その版数は」
    f"(?:その|この)(?!他|ほか|場合|後|際|時|うち)[{KANJI}{KATAKANA}A-Za-z0-9]{{1,10}}(?:は|も)?"
    f"(?:何|いつ|どこ|誰|いくら|いくつ|教えて)?[{HIRAGANA}]{{0,8}}"
)
_GREETS = (
    "(?:(?:どうも|本当に|いつも|大変)?、?(?:こんにち[はわ]|こんばん[はわ]|おはよう|はじめまして|初めまして|さようなら|助かりました"
    "|(?:よろしく|宜しく)(?:お願い(?:いた|致)?(?:し|申し上げ))?|お疲れ様|おつかれさま|お世話に(?:なり|なって[いお]り)"
    "|ありがと[うー]?|有難う|有り難う|感謝(?:し|いたし)|了解|承知|わかりました|分かりました|すみません|ごめん)"
    "(?:ございま(?:す|した)|ました|です|でした|ます|(?:いた|致)?しま(?:す|した)|なさい|[ねー])*"
    r"|(?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day)|(?:many\s+)?thanks?(?:\s+(?:you|a\s+lot|so\s+much|very\s+much))*"
    r"|thank\s+you(?:\s+(?:so|very)\s+much)?|(?:good)?bye|see\s+you|ok(?:ay)?|nice\s+to\s+meet\s+you)(?:\s+there)?(?!\w))"
)
# several may be said in a row, with signs and emoji between and after them
_GREETING = re.compile(
    rf"(?:{_GREETS}[\s!.,。、~〜♪…\u2600-\u27bf\U0001f000-\U0001faff\u200d\ufe0f]*){{1,4}}", re.IGNORECASE
)
_COUNTED = re.compile(
    "[はがも]?(?:全部で|合計で|合計|全体で)?(?:何[^\\W何]{1,3}?|いくつ|どれくらい|どのくらい)[^何いど]{0,10}$"
)
_JAPANESE = re.compile(f"[{HIRAGANA}{KATAKANA}{KANJI}]")
_THAT = re.compile("(?:その|それらの|この|あの)(?=[^\\s、。])")
_DIGIT = re.compile(r"\d")
_NUMBERED = re.compile(  # a code, a year or a month, or a bare number
    rf"[A-Za-z]+\d[A-Za-z\d]*|(?<![\d.])\d+(?:年度?|月|期)|(?<![A-Za-z\d.,])\d+(?![A-Za-z\d.,%％{KANJI}{KATAKANA}])"
)
_YEAR_ALONE = re.compile(r"(?<![A-Za-z\d.,])(?:19|20)\d{2}(?![\d.,])")
_ENDS_IN_YEAR = re.compile(r"(?<=[A-Za-z])(?:19|20)\d{2}$")
_PART = re.compile(f"[{KANJI}{KATAKANA}]{{2}}|[A-Z]{{2}}")  # of a Japanese compound
_WORD_OR_SIGN = re.compile(r"[A-Za-z0-9][\w'’.-]*(?<![.'’-])|[^\w\s]|\w+")
_LEFT_PARTICLE = re.compile(r"(?<!\S)の|の(?=\s|$)")
_OWN_WORDS = 2  # of its own, from which a question names what it is about
_LINKED_WORDS = 7  # the same, where it begins with "and how many"


class RuleRewriter:
    """Rewrites by rules; needs no model."""

    name = "rules"

    def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """Keywords without the words that only ask, and the question itself, see `Rewriter`."""
        earlier = referred(question, history)
        return Rewrite(" ".join(dict.fromkeys((keywords(question), *earlier))), " ".join((question, *earlier)))


def keywords(question: str) -> str:
    """A question without the words that only ask; as it is where nothing else would be left, or where it is long."""
    if len(question) > _LONGEST:
        return question
    kept_terms: list[str] = []

    def mask(match: re.Match[str]) -> str:
        kept_terms.append(match[0])
        return f"\ue000{len(kept_terms) - 1}\ue001"

    masked_text = _KEPT.sub(mask, question.replace("\ue000", " ").replace("\ue001", " "))
    parts = [_without_asking(part) for part in _SENTENCE_END.split(masked_text)]
    text = _MASK.sub(lambda match: kept_terms[int(match[1])], " ".join(part for part in parts if part))
    return text or question


def refers_back(question: str) -> bool:
    """Whether a question needs those before it, see above."""
    text = unicodedata.normalize("NFKC", question[:_LONGEST]).strip()
    bare = text.rstrip(" ?.!。、")
    if _ELLIPTIC.match(bare) or _OF_THE_SAME.match(bare) or _OTHER_OF_SEVERAL.match(bare):
        return True
    if (opening := _OPENING.match(text)) and _own_words(text) < (_LINKED_WORDS if opening["counts"] else _OWN_WORDS):
        return True
    if any(_stands_for_earlier(text, match) for match in _PRONOUN.finditer(text)):
        return True
    if _ASKS_WITHOUT_TOPIC.search(text) and not _TOPIC.search(text) and _own_words(text) <= _OWN_WORDS:
        return True
    rest, determined_count = _DETERMINED.subn(" ", text)
    return determined_count > 0 and _own_words(rest) < _OWN_WORDS


def asks_of_the_same(question: str) -> bool:
    """Whether a question that refers back asks a further thing of what was spoken of, and names nothing else."""
    text = unicodedata.normalize("NFKC", question[:_LONGEST]).strip().rstrip(" ?.!。、")
    return bool(_OF_THE_SAME.match(text) or _FURTHER_OF_THAT.fullmatch(text))


def may_stand_alone(question: str) -> bool:
    """Whether a question that asks a further thing may name one by itself: 「日当も教えて」, but not 「購入日も」."""
    text = unicodedata.normalize("NFKC", question[:_LONGEST]).strip().rstrip(" ?.!。、")
    match = _OF_THE_SAME.match(text)
    return match is not None and match["further"] is not None and not text.endswith("も")


def is_about_nothing(question: str, history: Sequence[Turn]) -> bool:
    """Whether a question refers back, and none of the turns that are remembered stands by itself.

    The first of fewer turns was the first of all, which has nothing to refer to.
    """
    if len(history) < REMEMBERED_TURNS:
        return False
    return all(map(refers_back, (question, *(turn.question for turn in history[-REMEMBERED_TURNS:]))))


def is_greeting(text: str) -> bool:
    """Whether a text greets or thanks, and asks nothing."""
    return _GREETING.fullmatch(unicodedata.normalize("NFKC", text[:_LONGEST]).strip()) is not None


def whole_question(question: str, history: Sequence[Turn]) -> str:
    """The question that one asks which only wants all of what the one before asked for, as 「全部挙げて」 does after
    「画面はいくつありますか」; empty for others, and where that one is not Japanese or names nothing.
    """
    text = unicodedata.normalize("NFKC", question[:_LONGEST]).strip().rstrip(" ?.!。、")
    match = _WHOLE_REQUEST.fullmatch(text)
    if match is None or not history or refers_back(history[-1].question):
        return ""
    asked = unicodedata.normalize("NFKC", history[-1].question[:_LONGEST]).strip().rstrip(" ?.!。、")
    things = _COUNTED.sub("", asked)
    things = things if things != asked else keywords(asked)
    if not _JAPANESE.search(asked) or not _CONTENT.search(things):
        return ""
    return f"{things}をすべて{match['request'] or '教えて'}"


def with_history(question: str, history: Sequence[Turn]) -> str:
    """A question, and the keywords of the earlier ones that it refers to after it, the newest first."""
    return " ".join((question, *referred(question, history)))


def referred(question: str, history: Sequence[Turn]) -> tuple[str, ...]:
    """Keywords of the earlier questions that a question refers to, and that these refer to, the newest first."""
    queries: list[str] = []
    later: list[str] = []
    for turn in reversed(history[-REMEMBERED_TURNS:]):
        if not refers_back(question):
            break
        later.append(question)
        question = turn.question
        query = keywords(question)
        for later_question in later:
            query = _without_replaced(query, question, later_question)
        queries.append(query)
    return tuple(filter(None, queries))


def _without_replaced(query: str, earlier: str, question: str) -> str:
    """Keywords of an earlier question without what a later one names in their place.

    That is a code or year of the form of another, of a name with a year (TSKaigi2025) the year alone, and a word that
    is compounded with the same as another (適用対象者 and 適用期間, "access token" and "refresh token"): with 「その」
    the last word of all, else the last such one. A question with a pronoun of its own speaks of what was named, and
    replaces nothing.
    """
    text = unicodedata.normalize("NFKC", question[:_LONGEST])
    if _PRONOUN.search(text):
        return query
    named_codes = _NUMBERED.findall(text)
    forms = {_DIGIT.sub("0", code) for code in named_codes}
    years = _YEAR_ALONE.findall(text)

    def keep_code(code: re.Match[str]) -> str:
        if len(years) == 1 and _ENDS_IN_YEAR.search(code[0]):
            return _ENDS_IN_YEAR.sub(years[0], code[0])
        return code[0] if code[0] in named_codes or _DIGIT.sub("0", code[0]) not in forms else " "

    left = _NUMBERED.sub(keep_code, query)
    own = [word for word in _CONTENT.findall(_without_asking(_THAT.sub(" ", text))) if not _is_empty(word)]
    beside = _compounded_otherwise(earlier, own)
    words = list(_CONTENT.finditer(left))
    replaced_spans = [
        word.span()
        for word in words
        if word[0].casefold() in beside or any(_have_part_in_common(word[0], own_word) for own_word in own)
    ]
    if replaced_spans and (replaced_spans[-1] == words[-1].span() or not _THAT.search(text)):
        start, end = replaced_spans[-1]
        left = f"{left[:start]} {left[end:]}"
    return query if left == query else one_line(_LEFT_PARTICLE.sub(" ", left))


def _compounded_otherwise(text: str, other_words: Sequence[str]) -> set[str]:
    """English words of a text, folded, that begin or end a compound in which other words have another one."""
    pairs = [(first.casefold(), head.casefold()) for first, head in pairwise(other_words)]
    firsts, heads = {first for first, _ in pairs}, {head for _, head in pairs}
    compounds = _compounds(text)
    words = {run[0] for run in compounds if run[1] in heads} | {run[-1] for run in compounds if run[-2] in firsts}
    return words.difference(word.casefold() for word in other_words)


def _compounds(text: str) -> list[list[str]]:
    """English words that stand together, folded, with nothing between that only holds a sentence together."""
    runs: list[list[str]] = [[]]
    for word in _WORD_OR_SIGN.findall(text):
        if word[0].isalnum() and not _is_empty(word):
            runs[-1].append(word.casefold())
        else:
            runs.append([])
    return [run for run in runs if len(run) > 1]


def _have_part_in_common(word: str, other_word: str) -> bool:
    """Whether two Japanese compounds, neither of them a part of the other, begin or end alike."""
    if word in other_word or other_word in word:
        return False
    return any(
        _PART.match("".join(letter for letter, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
        for pairs in (zip(word, other_word, strict=False), zip(reversed(word), reversed(other_word), strict=False))
    )


def _stands_for_earlier(text: str, match: re.Match[str]) -> bool:
    """Whether a pronoun stands for nothing that the question has named before it."""
    if match[0] == "IT":
        return False
    before = text[: match.start()]
    clauses = before if match[0].lower() in _POSSESSIVE else _LAST_CLAUSE.sub("", before)
    return _own_words(clauses) < _OWN_WORDS


def _own_words(text: str) -> int:
    """Words that say what a question is about."""
    return len(_CONTENT.findall(_without_asking(text)))


def _without_asking(sentence: str) -> str:
    text = sentence.strip(" 　。！？!?\n\t.,、")
    before = None
    while text != before:
        before = text
        for ending in _ENDINGS:
            text = ending.sub("", text).rstrip(" 　、")
    text = _QUESTION_WORDS.sub(" ", text)
    text = _REQUEST_OPENING.sub(" ", text)
    text = _WORD.sub(lambda match: " " if _is_empty(match[0]) else match[0], text)
    return one_line(text)


def _is_empty(word: str) -> bool:
    """Whether an English word only holds a sentence together; abbreviations in capitals (IT, WHO) do not."""
    return word.lower() in _EMPTY_WORDS and not (word.isupper() and len(word) > 1)
