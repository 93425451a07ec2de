"""How questions are phrased, in Japanese and English, and what a document is called in them."""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from rag_assets.enrich.questions.texts import LETTER
from rag_assets.text.plain import one_line

SUBJECT_CHARS = 40
_DOCUMENT_TYPE = re.compile(
    r"(?:書|表|一覧|図|標準|規約|規程|ガイド|マニュアル|資料|解説|ノート|台帳|定義|仕様)(?:[(（].*[)）])?$"
)
_PLACEHOLDER = re.compile(
    r"^[(（].*[)）]$|^(?:サンプル|samples?|images?|documents?|untitled|無題|新規|sheet|シート|book|file|output|report|data|table|page|別紙|付録|別添|別冊"
    r"|添付|資料|補足|概要|本文|全体版)[\s\d-]*$|^[a-z]?\d*[a-z]?$|^第?\d+(?:年度?)?版?$|^v?\d[\d.]*$",
    re.IGNORECASE,
)


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


def is_placeholder(name: str) -> bool:
    """Whether the name of a file or a part of it says nothing of what it holds, as `a1` and `report`."""
    return _PLACEHOLDER.match(name) is not None


def document_subject(document_id: str, title: str, language: str) -> tuple[str, str]:
    """What a document is about, and what kind of document it calls itself, from its title.

    `テーブル定義書_B1_顧客管理システム` is about 顧客管理システム, and a テーブル定義書. What the title does not say
    is an empty text.
    """
    stem = PurePosixPath(document_id).stem
    name = one_line((title or stem).replace("Microsoft Word - ", ""))
    name = re.sub(r"\.(?:docx?|xlsx?|pptx?|pdf)$", "", name, flags=re.IGNORECASE)
    if language != "ja":
        spaced = one_line(re.sub(r"[_]+", " ", name))
        return (spaced if len(spaced) <= 2 * SUBJECT_CHARS and " " in spaced else ""), ""
    parts = [part.strip() for part in re.split(r"[_＿]", name) if part.strip()]
    kinds = [part for part in parts if _DOCUMENT_TYPE.search(part)]
    topics = [part for part in parts if part not in kinds and not is_placeholder(part) and LETTER.search(part)]
    kind = kinds[0] if kinds and len(kinds[0]) <= SUBJECT_CHARS else ""
    topic = topics[-1] if topics and 2 <= len(topics[-1]) <= SUBJECT_CHARS else ""
    return topic, kind


_ASKED_OF = tuple(
    (re.compile(f"(?:{endings})$"), asked)
    for endings, asked in (
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
        return f"{name}には何が書かれていますか。" if name else ""

    @staticmethod
    def _question_about(column: str) -> str:
        asked = next((asked for form, asked in _ASKED_OF if form.search(column)), "何ですか")
        return f"{column}は{asked}。"


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
        told = bool(self._topic) and self._topic.lower() not in heading.lower()
        place = f" in {self._topic}" if told else ""
        if re.match(r"how to\b", heading, re.IGNORECASE):
            return f"How do you {heading[7:].strip()}{place}?"
        if re.match(r"(?:how|what|why|when|where|who)\b", heading, re.IGNORECASE):
            return f"{heading[0].upper()}{heading[1:]}{place}?"
        return f"What does “{self._topic}” say about “{heading}”?" if told else f"What is said about “{heading}”?"

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
