"""How questions are phrased, in Japanese and English: after labels, names and headings, and after single sentences that
hold a definition, a condition, a purpose or an amount.

Patterns of sentences are applied to such of bounded length, and repeat nothing that repeats itself.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rag_assets.enrich.questions.texts import (
    LETTER,
    is_data,
    is_placeholder,
    is_small_word,
    names_document,
)
from rag_assets.text.scripts import HIRAGANA, KANJI, KATAKANA_LETTERS

_CODE = re.compile(r"[A-Z][A-Z0-9_-]*\d[A-Z0-9_-]*")


class CandidateKind(StrEnum):
    """What a question was made from."""

    DEFINITION = "definition"
    CONDITION = "condition"
    CELL = "cell"
    PAIR = "pair"
    LIST = "list"
    SECTION = "section"
    DOCUMENT = "document"


_ASKED_OF = tuple(
    (re.compile(f"(?:{endings})$"), words)
    for endings, words in (
        ("者|担当|氏名|責任者|作成者", "誰ですか"),
        ("日|日付|日時|期日|期限|時期|年月", "いつですか"),
        ("金額|価格|単価|費用|料金|税額", "いくらですか"),
        ("桁数|件数|人数|個数|数量|回数|台数|長さ|サイズ|割合|率", "いくつですか"),
        ("場所|所在地|住所|格納先|保存先|取得元|参照先|宛先|提出先", "どこですか"),
        ("方法|手順|やり方|対処|対応|仕様|処理内容|処理詳細", "どのようなものですか"),
    )
)


class Japanese:
    """Phrases questions in Japanese."""

    language = "ja"
    separator = "、"

    def __init__(self, topic: str, kind: str) -> None:
        self._topic, self._kind = topic or kind, kind if topic else ""

    def about(self, section: str) -> str:
        """`顧客登録の「処理結果一覧」`: what a question is about, to be followed by の or で."""
        topic, section = self._topic, section.replace("「", "『").replace("」", "』")
        if section and (not topic or topic in section):
            return f"「{section}」"
        if section and section not in topic:
            return f"{topic}の「{section}」"
        return f"{topic}の{self._kind}" if topic and self._kind else topic or self._kind

    def cell(self, section: str, labels: Sequence[str], names: Sequence[str], column: str) -> str:
        place = self.about(section)
        row = "の".join(f"{label}「{name}」" for label, name in zip(labels, names, strict=True))
        return (
            f"{place}で、{row}の{self._question_about(column)}" if place else f"{row}の{self._question_about(column)}"
        )

    def pair(self, section: str, label: str) -> str:
        place = self.about(section)
        return f"{place}の{self._question_about(label)}" if place else ""

    def listed(self, section: str, name: str) -> str:
        place = self.about(section)
        if (
            section and section in self._topic and section != self._topic
        ):  # as 顧客 of 顧客管理システム: one of its tables
            place = f"{self._topic}の「{section}」"
        return f"{place}にはどのような{name}がありますか。" if place else ""

    def section(self, heading: str) -> str:
        place = self._topic if self._topic and self._topic not in heading else ""
        prefix = f"{place}の" if place else ""
        if re.search(r"(?:目的|概要|背景|役割|定義|範囲|対象|条件|方針|前提)$", heading):
            return f"{prefix}「{heading}」は何ですか。"
        if re.search(
            r"(?:方法|手順|流れ|フロー|方式|手続き?|処理|チェック|仕組み|書き方|使い方|ルール|規則|基準)$", heading
        ):
            return f"{prefix}「{heading}」はどのように行いますか。"
        return f"{prefix}「{heading}」はどのような内容ですか。"

    def diagram(self, section: str) -> str:
        place = self.about(section)
        return f"{place}の図には何が示されていますか。" if place else ""

    def document(self) -> str:
        name = f"{self._topic}の{self._kind}" if self._topic and self._kind else self._topic or self._kind
        name = name if not name or names_document(name) else f"文書「{name}」"  # 「会議室」 is a room, too
        return f"{name}には何が書かれていますか。" if name else ""

    @staticmethod
    def _question_about(column: str) -> str:
        words = next((words for form, words in _ASKED_OF if form.search(column)), "何ですか")
        return f"{column}は{words}。"


class English:
    """Phrases questions in English; also for languages that have no phrases of their own."""

    language = "en"
    separator = ", "

    def __init__(self, topic: str, stem: str = "") -> None:
        self._topic = topic
        self.document_name = topic or ("" if is_placeholder(stem) else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", stem))

    def about(self, section: str) -> str:
        return f"“{section}”" if section else self._topic

    def cell(self, section: str, labels: Sequence[str], names: Sequence[str], column: str) -> str:
        place = self.about(section)
        row = ", ".join(
            f"“{name}”" if name.lower().startswith(label.lower()) else f"{label} “{name}”"
            for label, name in zip(labels, names, strict=True)
        )
        return f"What is the {_noun(column)} of {row}" + (f" in {place}?" if place else "?")

    def pair(self, section: str, label: str) -> str:
        place = self.about(section)
        article = "" if _CODE.fullmatch(label) else "the "
        return f"What is {article}{_noun(label)} in {place}?" if place else ""

    def listed(self, section: str, name: str) -> str:
        place = self.about(section)
        return f"Which values of {_noun(name)} are listed in {place}?" if place else ""

    def section(self, heading: str) -> str:
        if heading.endswith("?"):
            return heading
        names_topic = bool(self._topic) and self._topic.lower() not in heading.lower()
        place = f" in {self._topic}" if names_topic else ""
        if re.match(r"how to\b", heading, re.IGNORECASE):
            return f"How do you {heading[7:].strip()}{place}?"
        if re.match(r"(?:how|what|why|when|where|who)\b", heading, re.IGNORECASE):
            return f"{heading[0].upper()}{heading[1:]}{place}?"
        return (
            f"What does “{self._topic}” say about “{heading}”?" if names_topic else f"What is said about “{heading}”?"
        )

    def diagram(self, section: str) -> str:
        place = self.about(section)
        return f"What does the diagram in {place} show?" if place else ""

    def document(self) -> str:
        return f"What is {self._topic} about?" if self._topic else ""


Writer = Japanese | English


def _noun(label: str) -> str:
    """A label within a sentence: small letters, also of a single word that is no abbreviation."""
    return label.lower() if label.istitle() and label.isalpha() and len(label) > 3 else lowered(label)


def lowered(name: str) -> str:
    """A name within a sentence: its first letter small where the rest of it is; single words may be names and stay."""
    words = name.split()
    if len(words) < 2:
        return name
    if words[0] in {"The", "A", "An"}:
        return " ".join([words[0].lower(), *words[1:]])
    capitals = sum(word[:1].isupper() for word in words)
    if words[0].istitle() and capitals == 1 and not any(character.isdigit() for character in name):
        return name[0].lower() + name[1:]
    return name


@dataclass(frozen=True)
class SentenceQuestion:
    """A question that a sentence answers."""

    kind: CandidateKind  # what kind of sentence it is
    question: str
    answer: str  # the sentence, or the part of it that answers
    subject: str  # what the question is about


_JA_TERM = r"[^\s。、，,「」『』（）()]{2,30}|「[^」]{2,30}」|『[^』]{2,30}』"
_JA_DEFINITION = re.compile(
    rf"^(?:・|※|■|[*＊]\s?|なお、|ここで、|本書では、|本標準では、)?(?P<name>{_JA_TERM})(?:[（(][^）)]{{1,40}}[）)])?(?<![こごひもあ])とは、?(?P<body>.{{6,}})$"
)
_JA_CALLED = re.compile(
    r"^(?:・|※|なお、|ここで、)?(?P<body>.{6,80})(?:のこと)?を[、]?(?P<name>「[^」]{2,20}」|『[^』]{2,20}』|[^\s。、をはがにで「」]{2,20})(?:と|とい)(?:いう|呼ぶ|称する|いいます|呼びます|定義する)。?$"
)
_JA_CONDITION = re.compile(
    r"^(?:[・•※■、]\s?|(?:また|なお|ただし|しかし|そして|さらに|その際|もし)、?|[(（]?\d{1,3}[)）.]\s?){0,3}(?P<when>[^。「」①-⒵]{10,60}?)(?:場合|ときに?)(?:は|には)?、(?P<then>.{5,})$"
)
_JA_TOPIC = re.compile(
    rf"^(?:・|※|■|また、|なお、)?(?P<name>{_JA_TERM})は、(?P<body>.{{8,}}(?:である|です|とする|とします|こと|をいう|を表す|を示す|を指す))。?$"
)
_JA_POINTING = re.compile(
    r"^(?:この|その|これ|それ|こうし|そうし|上記|下記|以下|本|同(?!じ)|当該|左記|右記|次|前|こちら|そちら|ここ|そこ|あそこ)|^(?:今[日回年月週朝夜後]?|昨[日年]|明日|最近|最初|最後|実際|実)$"
    r"|^(?:私|僕|俺|我々|あなた|貴方|君|彼|彼女|皆|皆さん|皆様|みんな|みなさん|誰|何|自分)(?:たち|達|ら|方)?$|^(?:もの|こと|ため|場合|とき|これら)$|など$|(?:について|に対して|において|に関して|によって|として)$|[をにでへとはがものて]$|^(?:重要|必要|可能|注意)"
)
_JA_ANAPHORA = re.compile(r"何も|(?:^|[、はがをに])(?:この|その|それ|これ|こう|そう)")
_JA_SAYING = re.compile(  # a predicate that says no noun
    r"(?:こと|から|ため|はず|ところ|方|べき|まま|の|ん|よう|そう|わけ|必要|重要|可能|不可欠|有効|適切|困難|十分)(?:です|である)。?$"
)
_JA_JUDGED = re.compile(
    f"など|最も|一番|[長短高低良悪多少新古深浅強弱広狭早遅]い|[よい]い[^{HIRAGANA}]|な[{KANJI}{KATAKANA_LETTERS}]"
)
_JA_MOSTLY = re.compile(r"(?:多く|大抵|たいてい|ほとんど|大半|通常|普通)の?$")


_JA_LABEL = re.compile(r"^[^\s:：。、「」]{1,12}[:：]\s*")  # who speaks, or 備考 and the like


def japanese_questions(sentence: str, place: str) -> Iterator[SentenceQuestion]:
    """Questions that a Japanese sentence answers.

    The place is what its section is about, to be followed by で; it may be empty.
    """
    sentence = _JA_LABEL.sub("", sentence)
    if match := _JA_DEFINITION.match(sentence):
        name = match["name"].strip("「」『』・※")
        if (
            _can_be_name(name)
            and not re.match(r"(?:異なる|違う|別|言え|いえ|限ら|なら|し|思)", match["body"])
            and not re.search(r"ということ(?:です|である)。?$", match["body"])
        ):
            yield SentenceQuestion(CandidateKind.DEFINITION, f"{name}とは何ですか。", sentence, name)
            return
    if (match := _JA_CALLED.match(sentence)) and _can_be_name(name := match["name"].strip("「」『』")):
        yield SentenceQuestion(CandidateKind.DEFINITION, f"{name}とは何ですか。", sentence, name)
        return
    if (match := _JA_CONDITION.match(sentence)) and not (
        _JA_POINTING.match(match["when"])
        or _JA_POINTING.match(match["then"])
        or _JA_ANAPHORA.search(match["when"])
        or _JA_MOSTLY.search(match["when"])
    ):
        condition = match["when"].strip("・※ ")
        if not re.search(r"参照", match["then"]) or len(match["then"]) > 20:
            prefix = f"{place}で、" if place else ""
            question = f"{prefix}{condition}場合はどうなりますか。"
            if re.search(
                r"(?:こと|ください|する必要がある|とする|記載する|記述する|設定する|行う|使用する)。?$", match["then"]
            ):
                question = f"{prefix}{condition}場合はどうすればよいですか。"
            yield SentenceQuestion(CandidateKind.CONDITION, question, match["then"], condition)
        return
    if (
        (match := _JA_TOPIC.match(sentence))
        and _can_be_name(name := match["name"].strip("「」『』・※"))
        and (place or len(name) > 2)
        and not (_JA_JUDGED.search(name) or _JA_SAYING.search(sentence) or _JA_POINTING.match(match["body"]))
    ):
        subject = name if not place else place if place.rstrip("」").endswith(name) else f"{place}で、{name}"
        question = f"{subject}はどのように定められていますか。"
        if re.search(r"(?:である|です|をいう|を表す|を示す|を指す)。?$", sentence):
            question = f"{subject}は何ですか。" if place else f"{subject}とは何ですか。"
        yield SentenceQuestion(CandidateKind.DEFINITION, question, sentence, name)


def _can_be_name(text: str) -> bool:
    if not 2 <= len(text) <= 30 or _JA_POINTING.search(text) or is_data(text):
        return False
    if re.search(r"(?:違い|ポイント|理由|結果|一つ|問題|原因|やり方|点|ところ|例|意味)$", text) and len(text) <= 6:
        return False
    return len(LETTER.findall(text)) >= 2 and text[0] not in "をにでへとはがもの" and "それ" not in text


_EN_TERM = r"(?:(?:The|A|An)\s+)?[A-Z][\w'’/-]*(?:\s+(?:of|for|and|the|in|to|on)?\s*[\w'’/()-]+){0,5}?"
_EN_DEFINITION = re.compile(
    rf"^(?P<name>{_EN_TERM})\s+"
    r"(?P<verb>is|are|refers to|refer to|means|denotes|is defined as|are defined as|stands for)\s+"
    r"(?P<body>(?:an?|any|the (?:process|act|practice|study|set|number|amount|maximum|minimum|ability|rate|ratio"
    r"|probability|value|sum|difference|degree|measure|collection|part|name|use) (?:of|to|that)"
    r"|(?<!is )(?<!are )[a-z]+ing)\s.{12,})$"
)
_EN_CALLED = re.compile(
    r"^(?P<body>.{12,160}?)\s+(?:is|are)\s+(?:called|known as|referred to as|termed)\s+"
    r"(?P<name>(?:an?\s+|the\s+)?[“\"]?[\w-]+(?:\s+[\w-]+){0,3}[”\"]?)\s*\.$"
)
_EN_CONDITION = re.compile(
    r"^(?P<word>If|When|Once|Unless|After|Before)\s+(?P<when>[^,.;]{8,100}),\s+(?:then\s+)?(?P<then>.{10,})$"
)
_EN_PURPOSE = re.compile(
    r"^(?:In order to|To)\s+(?P<what>"
    r"(?!(?:illustrate|summarize|conclude|see|understand|begin|be|the|an?|this|that|our|my|date|some|your|their|his|her|its"
    r"|you|us|me|one|all|every|many|most)\b)"
    r"[a-z][^,.;]{6,80}),\s+(?P<how>.{10,})$"
)
_EN_MEANS = re.compile(  # what somebody does, or has to
    r"(?:please )?(?:you|we|one)\b|.* (?:must|should|can|need to|has to|have to)\b"
    r"|(?:first,? |simply |just )?(?:use|select|click|open|run|set|add|go|choose|press|enter|make|call|create|type"
    r"|follow|check|install|apply|contact|send|see|read|specify|define|include|remove|change)\b",
    re.IGNORECASE,
)
_EN_VERB = re.compile(
    rf"^(?P<name>{_EN_TERM})\s+"
    r"(?P<verb>consists? of|includes?|contains?|provides?|supports?|requires?|allows?|describes?|specifies|specify"
    r"|represents?|covers?|handles?|manages?|uses?|shows?)\s+(?P<body>.{10,})$"
)
_EN_AMOUNT = re.compile(
    rf"^(?P<name>{_EN_TERM})\s+"
    r"(?P<verb>was|were|is|are|rose to|fell to|totaled|totalled|reached|amounted to|averaged)\s+"
    r"(?P<body>(?:about |approximately |around |nearly |over |some )?(?:[$€£¥]\s?)?\d[\d.,]*.{2,})$"
)
_EN_POINTING = re.compile(  # words that begin what points elsewhere, or no name at all
    r"^(?:(?:The|A|An)\s+)?(?:It|This|These|That|Those|They|He|She|We|You|I|There|Here|Such|Which|Who|What|One|Some|All"
    r"|Both|Each|Our|My|His|Her|Their|Its|Other|Another|Following|Above|Below|Next|Last|Same|Former|Latter|If|When|While"
    r"|Although|Because|However|Moreover|Also|Therefore|Thus|Then|Note|Figure|Fig|Table|Section|Chapter|Appendix|And|But"
    r"|Or|For|In|On|At|By|As|To|From|With|Since|Given|Consider|Suppose|Assume|Assuming|Recall|Unlike|Like|First|Second"
    r"|Third|Finally|Where|How|Why|Most|Many|Several|Only|Even|Any|No|Not|Every|Once|Unless|After|Before|Additionally"
    r"|Furthermore|Similarly|Please|Let|Today|Yesterday|Tomorrow|Tonight|Now|Right|Well|So|Just|Yes|Yeah|Okay|OK|Oh|Um"
    r"|Uh|Hey|Hi|Hello|Thanks|Actually|Basically|Honestly|Obviously|Maybe|Perhaps|Probably|Sometimes|Always|Never|Again"
    r"|Already|Of|Over|Under|About|Nearly|Almost|Half|More|Less|Up|Soon|Later|Currently|Recently|Often|Usually"
    r"|[A-Z][a-z]+ly|[A-Z][a-z]+ing (?:to|in|on|for|the|a)|All)\b",
    re.IGNORECASE,
)
_EN_SPEAKER = re.compile(
    r"\b(?:I(?=['’\s])|[Mm]e|[Mm]y|[Ww]e|us|[Oo]urs?)\b|\b(?:just|look at|talk about|think about)\b|\bthat$"
)
_EN_SAID_ALOUD = re.compile(r"\b(?:I|they|you['’]ll|we['’]ll|that['’]s)\b|\b(?:that|this|it)[.!]$")
_EN_NO_CLAUSE = re.compile(
    r"^\w+ed (?:for|by|with|in|to|on)\b|^you (?:see|look|think)\b|\b(?:many|more|most|few|some|any|one)$", re.IGNORECASE
)
_EN_VERB_INSIDE = re.compile(r"\b(?:is|are|was|were|will|can|could|may|might|should|would|must)\b")
_EN_POINTING_BODY = re.compile(r"(?:this|that|these|those|such|the same|it|them)\b")
_EN_PRAISE = re.compile(  # says how something is, not what
    r"an? (?:\w+ly |very |most )?"
    r"(?:good|great|stark|reminder|nice|perfect|central|big|huge|real|key|important|critical|major|significant|clear"
    r"|tremendous|exciting|strong|terrific|existential|fundamental|leading|market leader|leader|go-to|valuable|crucial"
    r"|essential|powerful|massive|wonderful|compelling|undisputed|lot|bit|way|reason|sign|testament|result"
    r"|function of)\b"
)
_EN_PERSON = re.compile(  # who speaks and is spoken to: a sentence of a talk, not about something; "Part I" is a name
    r"\b(?:I(?=['’\s])|[Mm]e|[Mm]y|[Ww]e|us|[Oo]urs?|[Yy]ou|[Yy]ours?|that|which|who|what|why|how"
    r"|(?:[Ee]very|[Ss]ome|[Aa]ny|[Nn]o)(?:one|body|thing)|for sure|of course|now)\b|ly$"
)


def english_questions(sentence: str, document: str) -> Iterator[SentenceQuestion]:
    """Questions that an English sentence answers.

    The name of the document may be empty.
    """
    place = f" in {document}" if document else ""
    if (match := _EN_PURPOSE.match(sentence)) and not (
        _EN_ANAPHORA.search(match["what"]) or _EN_SPEAKER.search(match["what"]) or not _EN_MEANS.match(match["how"])
    ):
        yield SentenceQuestion(CandidateKind.CONDITION, f"How do you {match['what']}?", sentence, match["what"])
        return
    if (match := _EN_CONDITION.match(sentence)) and not (
        _EN_ANAPHORA.search(match["when"]) or _EN_SPEAKER.search(match["when"]) or _EN_SAID_ALOUD.search(match["then"])
    ):
        if len(match["when"].split()) < 3 or _EN_NO_CLAUSE.search(match["when"]):
            return
        question = f"What happens {match['word'].lower()} {match['when']}?"
        yield SentenceQuestion(CandidateKind.CONDITION, question, sentence, match["when"])
        return
    for pattern in (_EN_DEFINITION, _EN_AMOUNT, _EN_VERB):
        if not (match := pattern.match(sentence)) or not _can_be_term(match["name"]):
            continue
        if pattern is _EN_DEFINITION and _EN_PRAISE.match(match["body"]):
            continue
        if pattern is _EN_AMOUNT and (not place or " " not in match["name"]):
            continue  # an amount of what, of when and of whom is not said
        if pattern is _EN_VERB and _EN_POINTING_BODY.match(match["body"]):
            continue
        if match["verb"] in {"are", "were"} and " " not in match["name"] and pattern is _EN_DEFINITION:
            continue  # "Customers are the …" says something of them, and not what they are
        question = _english_question(pattern, match["name"], match["verb"], place)
        kind = CandidateKind.PAIR if pattern is _EN_AMOUNT else CandidateKind.DEFINITION
        yield SentenceQuestion(kind, question, sentence, match["name"])
        return
    if (match := _EN_CALLED.match(sentence)) and _can_be_term(match["name"].strip('“”"').capitalize()):
        name = match["name"].strip('“”"')
        yield SentenceQuestion(CandidateKind.DEFINITION, f"What is {name}?", sentence, name)


_EN_ANAPHORA = re.compile(
    r"\b(?:it|this|these|those|they|them|he|she|his|her|their|its|such|above|below|so|necessary|possible|not)\b",
    re.IGNORECASE,
)


def _english_question(pattern: re.Pattern[str], name: str, verb: str, place: str) -> str:
    plural = verb in {"are", "were", "refer to", "are defined as"} or (
        pattern is _EN_VERB and not verb.partition(" ")[0].endswith("s")
    )
    term = lowered(name)
    if pattern is _EN_DEFINITION:
        return f"What {'are' if plural else 'is'} {term}?"
    if pattern is _EN_AMOUNT:
        tense = {"was": "was", "were": "were", "is": "is", "are": "are"}.get(verb, "was")
        return f"What {tense} {term}{place}?"
    first, _, rest = verb.partition(" ")
    base = {"specifies": "specify", "specify": "specify", "uses": "use"}.get(
        first, first if plural else first.removesuffix("s")
    )
    return f"What {'do' if plural else 'does'} {term} {base}{' ' + rest if rest else ''}?"


def _can_be_term(text: str) -> bool:
    words = text.split()
    head = text.partition(" of ")[0].split()
    if head and head[-1].lower().rstrip("s") in _VAGUE and len(head) <= 3:
        return False
    if (
        _EN_VERB_INSIDE.search(text)
        or _EN_POINTING.match(text)
        or _EN_ANAPHORA.search(text)
        or _EN_PERSON.search(text)
        or not 1 <= len(words) <= 7
    ):
        return False
    return sum(map(len, LETTER.findall(text))) >= 3 and not is_small_word(words[-1])


_VAGUE = frozenset(
    (
        *("reason", "outcome", "result", "goal", "problem", "idea", "aim", "purpose", "advantage", "difference"),
        *("thing", "way", "point", "case", "question", "answer", "example", "issue", "step", "part", "rest"),
        *("number", "value", "set", "term", "approach", "method", "model", "section", "definition", "paper"),
        *("author", "work"),
    )
)
