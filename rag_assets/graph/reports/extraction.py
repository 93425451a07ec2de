"""A report on a community: its form, and the extractive version, composed from ranked elements without a model."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.graph.entity_types import IDENTIFIER
from rag_assets.graph.reports.context import (
    Claim,
    Elements,
    Entity,
    Records,
    Relationship,
    ReportContext,
    check_references,
    cited,
    reference,
)
from rag_assets.text.folding import fold_name
from rag_assets.text.language import detect_language, split_sentences
from rag_assets.text.plain import one_line
from rag_assets.text.scripts import KANJI, KATAKANA
from rag_assets.text.tokens import estimate_tokens

METHOD = "extractive"
MOST_FINDINGS = 10
HIGHEST_RATING = 10.0

_TITLE_ENTITIES = 3
_THEME_SHARE = 0.5  # of the names of a community, at least so many share the word that is its theme
_THEME_NAMES = 200  # that are compared, at most
_NAME_CHARS = 61
_QUOTED = 2  # sentences that a summary quotes, and that a finding quotes of the description of its entity
_QUOTED_CHARS = 500  # of a sentence that is quoted, at most: a longer one is a list or a table
_SHOWN_NEIGHBOURS = 3
_SHOWN_RELATIONSHIPS = 5
_SHOWN_CLAIMS = 3
_PART_FINDINGS = 6  # of a report, at most so many findings are on parts of the community, where it has other records
_SPREAD_WEIGHT, _ATTENTION_WEIGHT, _REPEATED_WEIGHT = 0.4, 0.3, 0.3  # of the importance, see `Importance.rating`

_ROW_MARK = ": "  # between the header and the value of a cell
_SHARED = re.compile(f"[{KANJI}]{{2,}}|[{KATAKANA}]{{3,}}|[A-Za-z][A-Za-z'’&]{{2,}}")


@dataclass(frozen=True)
class Finding:
    """A finding of a report."""

    summary: str
    explanation: str  # in some sentences, with references


@dataclass(frozen=True)
class Report:
    """A report on a community."""

    title: str  # short title with names from the community
    summary: str
    rating: float  # impact, 0 to 10
    rating_explanation: str
    findings: tuple[Finding, ...]
    removed_references: int = 0  # references to records that do not exist, taken out

    @property
    def text(self) -> str:
        """The whole report: the title, the summary, why it has its rating, the findings."""
        head = f"# {self.title}\n\n{self.summary}\n\n{self.rating:.1f} / 10: {self.rating_explanation}"
        return "\n\n".join([head, *(f"## {finding.summary}\n\n{finding.explanation}" for finding in self.findings)])


@dataclass(frozen=True)
class Importance:
    """How much the documents make of a community, whatever its size."""

    document_count: float  # documents that name each of its first entities, on average
    mention_count: float  # places that do
    repeated_count: int  # relationships that more places than one state
    relationship_count: int

    @property
    def rating(self) -> float:
        """From 0 to 10, in steps of 0.5: four tenths by documents (1 - 1 / documents), three by places (1 - 1 / places)
        and three by the share of relationships that more places than one state.
        """
        spread = 1 - 1 / max(1.0, self.document_count)
        attention = 1 - 1 / max(1.0, self.mention_count)
        repetition = self.repeated_count / max(1, self.relationship_count)
        share = _SPREAD_WEIGHT * spread + _ATTENTION_WEIGHT * attention + _REPEATED_WEIGHT * repetition
        return round(2 * HIGHEST_RATING * share) / 2


@dataclass(frozen=True)
class ReportSubject:
    """A community that is reported on."""

    # its first entities by relationships within it: names rather than codes, none within another
    prominent: tuple[Entity, ...]
    size: int
    relationship_count: int
    language: str  # `ja` or `en`, the language to write in
    theme: str = ""  # a word that most of its names share; may be empty
    importance: Importance = Importance(1.0, 1.0, 0, 0)  # how much the documents make of it


def report_subject(elements: Elements) -> ReportSubject:
    """What a report says of a community as a whole; its language is that of most of what is said in it."""
    prominent = _title_entities(elements.prominent)
    sample = [entity.description or entity.name for entity in elements.prominent[:50]]
    sample += [edge.description for edge in elements.relationships[:50]]
    language = "ja" if detect_language(" ".join(sample)) == "ja" else "en"
    edges = elements.relationships
    importance = Importance(
        sum(entity.document_count for entity in prominent) / len(prominent),
        sum(entity.mention_count for entity in prominent) / len(prominent),
        sum(edge.mention_count > 1 for edge in edges),
        len(edges),
    )
    return ReportSubject(
        prominent, len(elements.entities), len(edges), language, _theme(elements.prominent), importance
    )


def _title_entities(prominent: Sequence[Entity]) -> tuple[Entity, ...]:
    """The first entities: those with a name of words before codes, and none whose name is part of another's."""
    title_entities: list[Entity] = []
    for entity in sorted(prominent, key=lambda entity: entity.type == IDENTIFIER):
        key = fold_name(entity.name)
        if not any(
            key in earlier_key or earlier_key in key
            for earlier_key in (fold_name(earlier.name) for earlier in title_entities)
        ):
            title_entities.append(entity)
        if len(title_entities) == _TITLE_ENTITIES:
            break
    return tuple(title_entities)


def _theme(entities: Sequence[Entity]) -> str:
    """The word that at least half of the first names share, of several the most frequent, then the longest one."""
    names = [entity.name for entity in entities if entity.type != IDENTIFIER][:_THEME_NAMES]
    words = Counter(word for name in names for word in set(_SHARED.findall(name)))
    inner = Counter({word: sum(word in name for name in names) for word in words})
    best = max(inner, key=lambda word: (inner[word], len(word), word), default="")
    return best if inner[best] >= max(3, _THEME_SHARE * len(names)) else ""


def compose_report(context: ReportContext, subject: ReportSubject, limit_tokens: int) -> Report:
    """A report composed from the records themselves.

    The title names the theme: the word that most names share, and the entities with the most relationships within the
    community. The summary is what is said of most of them together, in whole sentences. Each finding is on an entity:
    in each turn the one with the most relationships that no finding has told yet (ties: the order of the context), and
    quotes its description, these relationships and the claims about it. Of a community with reports on its parts, the
    first findings are the summaries of these.

    Findings follow until the limit of tokens, which are estimated; one is always there.
    """
    words = _JAPANESE if subject.language == "ja" else _ENGLISH
    candidates = _part_findings(context)
    elements = _entity_findings(context, words)
    candidates = candidates[: max(_PART_FINDINGS, MOST_FINDINGS - len(elements))] + elements
    title = words.title(subject.theme, [one_line(entity.name, _NAME_CHARS) for entity in subject.prominent])
    explanation = words.rating(subject.importance)
    report = Report(title, _summary(context, subject, words), subject.importance.rating, explanation, ())
    left = limit_tokens - estimate_tokens(report.text)
    findings: list[Finding] = []
    for finding in candidates[:MOST_FINDINGS]:
        left -= estimate_tokens(f"\n\n## {finding.summary}\n\n{finding.explanation}")
        if findings and left < 0:
            break
        findings.append(finding)
    return checked_report(replace(report, findings=tuple(findings)), context.records)


def checked_report(report: Report, existing: Records) -> Report:
    """A report without references to records that do not exist."""
    removed_count = 0

    def mend(text: str) -> str:
        nonlocal removed_count
        new_text, count = check_references(text, existing)
        removed_count += count
        return new_text

    return Report(
        mend(report.title),
        mend(report.summary),
        report.rating,
        mend(report.rating_explanation),
        tuple(Finding(mend(finding.summary), mend(finding.explanation)) for finding in report.findings),
        report.removed_references + removed_count,
    )


def _summary(context: ReportContext, subject: ReportSubject, words: "_Words") -> str:
    """What is said of most of the entities together, or of the first one, with what it refers to."""
    known_numbers = context.records.entities
    names = [entity.name for entity in context.entities]
    numbers_by_sentence: dict[str, list[int]] = {}
    for edge in context.relationships:
        for sentence in _whole_sentences(edge.description, words.language):
            numbers_by_sentence.setdefault(sentence, []).append(edge.number)
    ranking = sorted(numbers_by_sentence, key=lambda text: -sum(name in text for name in names))[:_QUOTED]
    first = subject.prominent[0]
    sentences = ranking or _whole_sentences(first.description, words.language)[:_QUOTED]
    numbers = [entity.number for entity in subject.prominent if entity.number in known_numbers]
    parts = [
        *map(words.sentence, sentences),
        "" if sentences else words.together([one_line(entity.name, _NAME_CHARS) for entity in subject.prominent]),
        words.parts([report.title for report in context.reports[:_SHOWN_NEIGHBOURS]]) if context.reports else "",
        reference(numbers, [number for sentence in ranking for number in numbers_by_sentence[sentence][:1]]),
    ]
    return words.joined(parts)


def _part_findings(context: ReportContext) -> list[Finding]:
    """The summaries of reports on parts; one that refers to nothing with what the text of its report refers to."""
    findings = []
    for report in sorted(context.reports, key=lambda report: (-report.length_tokens, report.title)):
        summary = report.summary
        if not cited(summary).entities:
            records = cited(report.text)
            summary = f"{summary} {reference(sorted(records.entities), sorted(records.relationships))}".strip()
        findings.append(Finding(report.title, summary))
    return findings


def _entity_findings(context: ReportContext, words: "_Words") -> list[Finding]:
    untold: dict[str, dict[int, Relationship]] = {}
    for edge in context.relationships:
        for end in (edge.source, edge.target):
            untold.setdefault(end.entity_id, {})[edge.number] = edge
    claims: dict[str, list[Claim]] = {}
    for claim in context.claims:
        claims.setdefault(claim.entity.entity_id, []).append(claim)
    open_entities = {entity.entity_id: entity for entity in context.entities}
    findings: list[tuple[Finding, bool]] = []
    while open_entities and len(findings) < MOST_FINDINGS:
        entity = max(open_entities.values(), key=lambda entity: len(untold.get(entity.entity_id, ())))
        edges = list(untold.pop(entity.entity_id, {}).values())
        if not edges and findings:
            break
        del open_entities[entity.entity_id]
        for edge in edges:
            for end in (edge.source, edge.target):
                untold.get(end.entity_id, {}).pop(edge.number, None)
        findings.append(_finding(entity, edges, claims.get(entity.entity_id, []), words))
    return [finding for finding, says_something in findings if says_something] or [findings[0][0]] if findings else []


def _finding(
    entity: Entity, edges: Sequence[Relationship], claims: Sequence[Claim], words: "_Words"
) -> tuple[Finding, bool]:
    """A finding on an entity, and whether a sentence is quoted in it."""
    neighbours = [edge.target if edge.source.entity_id == entity.entity_id else edge.source for edge in edges]
    neighbour_names = [one_line(neighbour.name, _NAME_CHARS) for neighbour in neighbours]
    # told in full before those of which nothing is said
    shown_edges = sorted(edges, key=lambda edge: not edge.description)[:_SHOWN_RELATIONSHIPS]
    quotes = _whole_sentences(entity.description, words.language)[:_QUOTED]
    for edge in shown_edges:
        quotes += _whole_sentences(edge.description, words.language)[:1]
    for claim in claims[:_SHOWN_CLAIMS]:
        quotes += [
            words.claim(sentence, claim.status) for sentence in _whole_sentences(claim.description, words.language)[:1]
        ]
    name = one_line(entity.name, _NAME_CHARS)
    parts = [
        *map(words.sentence, dict.fromkeys(quotes)),
        words.together([name, *neighbour_names[:_SHOWN_RELATIONSHIPS]]) if neighbour_names and not quotes else "",
        reference(
            [entity.number, *(neighbour.number for neighbour in neighbours)], [edge.number for edge in shown_edges]
        ),
    ]
    return Finding(words.finding(name, neighbour_names), words.joined(parts)), bool(quotes)


def _whole_sentences(text: str, language: str) -> list[str]:
    """Sentences, rows and connectors of a description, each once; none that was cut."""
    sentences = [
        one_line(sentence).strip()
        for line in text.splitlines()
        for sentence in ([line] if _ROW_MARK in line else split_sentences(line, language))
    ]
    return [
        sentence
        for sentence in dict.fromkeys(sentences)
        if 0 < len(sentence) <= _QUOTED_CHARS and not sentence.endswith("…")
    ]


class _English:
    """The words of an English report."""

    language = "en"

    def joined(self, parts: Sequence[str]) -> str:
        return " ".join(filter(None, parts))

    def title(self, theme: str, names: Sequence[str]) -> str:
        return f"{theme}: {', '.join(names)}" if theme and [theme] != names else self._list(names)

    def parts(self, titles: Sequence[str]) -> str:
        return f"Parts of it: {'; '.join(titles)}."

    def rating(self, importance: Importance) -> str:
        return (
            f"Its main names stand in {importance.document_count:.1f} documents and {importance.mention_count:.1f} "
            f"places on average; {importance.repeated_count} of {importance.relationship_count} relationships are "
            "stated more than once."
        )

    def finding(self, name: str, neighbours: Sequence[str]) -> str:
        ellipsis = ["…"] if len(neighbours) > _SHOWN_NEIGHBOURS else []
        return f"{name} – {', '.join([*neighbours[:_SHOWN_NEIGHBOURS], *ellipsis])}" if neighbours else name

    def together(self, names: Sequence[str]) -> str:
        return f"{self._list(names)} stand together."

    def claim(self, text: str, status: str) -> str:
        return f"Claim ({status}): {text}"

    def sentence(self, text: str) -> str:
        return text if text.endswith((".", "!", "?", "。")) else f"{text}."

    @staticmethod
    def _list(names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


class _Japanese:
    """The words of a Japanese report."""

    language = "ja"

    def joined(self, parts: Sequence[str]) -> str:
        text = "".join(part for part in parts[:-1])
        return " ".join(filter(None, (text, parts[-1])))

    def title(self, theme: str, names: Sequence[str]) -> str:
        return f"{theme}：{'、'.join(names)}" if theme and [theme] != names else "、".join(names)

    def parts(self, titles: Sequence[str]) -> str:
        return f"内訳：{'／'.join(titles)}。"

    def rating(self, importance: Importance) -> str:
        return (
            f"中心となる名前は平均{importance.document_count:.1f}文書の{importance.mention_count:.1f}箇所に現れ、関係{importance.relationship_count}件のうち"
            f"{importance.repeated_count}件は複数の箇所に書かれている。"
        )

    def finding(self, name: str, neighbours: Sequence[str]) -> str:
        rest = "ほか" if len(neighbours) > _SHOWN_NEIGHBOURS else ""
        return f"{name}と{'、'.join(neighbours[:_SHOWN_NEIGHBOURS])}{rest}" if neighbours else name

    def together(self, names: Sequence[str]) -> str:
        return f"{'、'.join(names)}は同じ箇所に現れる。"

    def claim(self, text: str, status: str) -> str:
        words = {"true": "確認済み", "false": "否定", "suspected": "未確認"}
        return f"主張（{words.get(status, status)}）：{text}"

    def sentence(self, text: str) -> str:
        return text if text.endswith(("。", "！", "？", ".", "!", "?")) else f"{text}。"


_Words = _English | _Japanese
_ENGLISH = _English()
_JAPANESE = _Japanese()
