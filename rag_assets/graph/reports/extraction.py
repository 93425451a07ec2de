"""A report on a community: its form, and the extractive version, composed from ranked elements without a model.

What stays out: what a report is written from (`rag_assets.graph.reports.context`), writing by a language model
(`rag_assets.graph.reports.dialogues`), and the stored table (`rag_assets.graph.reports.tables`).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.graph.reports.context import Claim, Elements, Entity, PartReport, Relationship, ReportContext
from rag_assets.graph.reports.references import Records, check_references, cited, reference
from rag_assets.text.language import detect_language, split_sentences
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import estimate_tokens

METHOD = "extractive"
MOST_FINDINGS = 10
HIGHEST_RATING = 10.0

_TITLE_ENTITIES = 3
_NAME_CHARS = 60
_SENTENCES = 2
_DESCRIPTION_CHARS = 400
_SHOWN_NEIGHBOURS = 3
_SHOWN_RELATIONSHIPS = 5
_SHOWN_CLAIMS = 3
_SHOWN_TYPES = 3
_PART_FINDINGS = 6  # of a report, at most so many findings are on parts of the community, where it has other records


@dataclass(frozen=True)
class Finding:
    """A finding of a report.

    Attributes:
        summary: In one sentence.
        explanation: In some sentences, with references.
    """

    summary: str
    explanation: str


@dataclass(frozen=True)
class Report:
    """A report on a community.

    Attributes:
        title: Short title with names from the community.
        summary: What the community is about.
        rating: Impact, 0 to 10.
        rating_explanation: Why.
        findings: Most important first.
        removed_references: References to records that do not exist, taken out.
    """

    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: tuple[Finding, ...]
    removed_references: int = 0

    @property
    def text(self) -> str:
        """The whole report: the title, the summary, why it has its rating, the findings."""
        head = f"# {self.title}\n\n{self.summary}\n\n{self.rating:.1f} / 10: {self.rating_explanation}"
        return "\n\n".join([head, *(f"## {each.summary}\n\n{each.explanation}" for each in self.findings)])


@dataclass(frozen=True)
class Subject:
    """A community that is reported on.

    Attributes:
        prominent: Its first entities by relationships within it.
        size: Entities in it.
        relationship_count: Relationships between them.
        language: `ja` or `en`, the language to write in.
    """

    prominent: tuple[Entity, ...]
    size: int
    relationship_count: int
    language: str


def report_subject(elements: Elements) -> Subject:
    """What a report says of a community as a whole; its language is that of most of the descriptions."""
    prominent = elements.prominent
    sample = " ".join(each.description or each.name for each in prominent[:50])
    sample += " ".join(each.description for each in elements.relationships[:50])
    language = "ja" if detect_language(sample) == "ja" else "en"
    return Subject(tuple(prominent[:_TITLE_ENTITIES]), len(elements.entities), len(elements.relationships), language)


def size_rating(size: int, relationship_count: int) -> float:
    """Rating of a community by how much of the graph it holds: log2(1 + entities + relationships), at most 10, in steps
    of 0.5.
    """
    return min(HIGHEST_RATING, round(2 * math.log2(1 + size + relationship_count)) / 2)


def compose_report(context: ReportContext, subject: Subject, limit_tokens: int) -> Report:
    """A report composed from the records themselves.

    The title names the entities with the most relationships within the community. Each finding is on an entity: in
    each turn the one with the most relationships that no finding has told yet (ties: the order of the context), its
    description, these relationships and the claims about it. Of a community with reports on its parts, the first
    findings are the summaries of these.

    Args:
        context: What it is composed from.
        subject: The community.
        limit_tokens: Tokens of the report at most, by estimate; one finding is always there.
    """
    words = _JAPANESE if subject.language == "ja" else _ENGLISH
    names = [_short(each.name) for each in subject.prominent]
    candidates = _part_findings(context)
    elements = _entity_findings(context, words)
    candidates = candidates[: max(_PART_FINDINGS, MOST_FINDINGS - len(elements))] + elements
    rating = size_rating(subject.size, subject.relationship_count)
    report = Report(words.title(names), _summary(context, subject, words), rating, words.rating(subject), ())
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
    removed = 0

    def mended(text: str) -> str:
        nonlocal removed
        checked = check_references(text, existing)
        removed += checked.removed
        return checked.text

    return Report(
        mended(report.title),
        mended(report.summary),
        report.rating,
        mended(report.rating_explanation),
        tuple(Finding(mended(each.summary), mended(each.explanation)) for each in report.findings),
        report.removed_references + removed,
    )


def _summary(context: ReportContext, subject: Subject, words: "_Words") -> str:
    existing = context.records.entities
    first = subject.prominent[0]
    types = Counter(each.type for each in context.entities if each.type)
    common = [name for name, _ in sorted(types.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN_TYPES]]
    parts = [
        words.about([_short(each.name) for each in subject.prominent], subject),
        words.types(common) if common else "",
        words.described(_short(first.name), _opening(first.description, words)) if first.description else "",
        words.parts([each.title for each in context.reports[:_SHOWN_NEIGHBOURS]]) if context.reports else "",
        reference([each.number for each in subject.prominent if each.number in existing]),
    ]
    return words.joined(parts)


def _part_findings(context: ReportContext) -> list[Finding]:
    longest_first = sorted(context.reports, key=lambda each: (-each.length_tokens, each.title))
    return [Finding(report.title, _with_reference(report)) for report in longest_first]


def _with_reference(report: PartReport) -> str:
    """The summary of a report on a part; with what its text refers to, where the summary refers to nothing."""
    if cited(report.summary).entities:
        return report.summary
    records = cited(report.text)
    mark = reference(sorted(records.entities), sorted(records.relationships))
    return f"{report.summary} {mark}".strip()


def _entity_findings(context: ReportContext, words: "_Words") -> list[Finding]:
    untold: dict[str, dict[int, Relationship]] = {}
    for edge in context.relationships:
        for end in (edge.source, edge.target):
            untold.setdefault(end.entity_id, {})[edge.number] = edge
    claims: dict[str, list[Claim]] = {}
    for claim in context.claims:
        claims.setdefault(claim.entity.entity_id, []).append(claim)
    waiting = {each.entity_id: each for each in context.entities}
    findings: list[Finding] = []
    while waiting and len(findings) < MOST_FINDINGS:
        chosen = max(waiting.values(), key=lambda each: len(untold.get(each.entity_id, ())))
        edges = list(untold.pop(chosen.entity_id, {}).values())
        if not edges and findings:
            break
        del waiting[chosen.entity_id]
        for edge in edges:
            for end in (edge.source, edge.target):
                untold.get(end.entity_id, {}).pop(edge.number, None)
        findings.append(_finding(chosen, edges, claims.get(chosen.entity_id, []), words))
    return findings


def _finding(entity: Entity, edges: Sequence[Relationship], claims: Sequence[Claim], words: "_Words") -> Finding:
    name = _short(entity.name)
    neighbours = [edge.target if edge.source.entity_id == entity.entity_id else edge.source for edge in edges]
    shown = [_short(each.name) for each in neighbours]
    # told in full before those of which nothing is said
    described = sorted(edges, key=lambda edge: not edge.description)[:_SHOWN_RELATIONSHIPS]
    parts = [
        words.described(name, _opening(entity.description, words)) if entity.description else "",
        *(
            words.edge(_short(edge.source.name), _short(edge.target.name), _opening(edge.description, words))
            for edge in described
            if edge.description
        ),
        words.together(name, shown) if shown and not any(edge.description for edge in described) else "",
        *(words.claim(_opening(claim.description, words), claim.status) for claim in claims[:_SHOWN_CLAIMS]),
        reference([entity.number, *(each.number for each in neighbours)], [edge.number for edge in described]),
    ]
    return Finding(words.finding(name, entity.type, shown), words.joined(parts))


def _opening(text: str, words: "_Words") -> str:
    """The first sentences of a description, in one line."""
    line = one_line(text)
    sentences = split_sentences(line, words.language)[:_SENTENCES]
    if not sentences:
        return ""
    kept = sentences[0]
    for sentence in sentences[1:]:
        longer = f"{kept}{'' if kept.endswith('。') else ' '}{sentence}"
        kept = longer if len(longer) <= _DESCRIPTION_CHARS else kept
    return kept if len(kept) <= _DESCRIPTION_CHARS else f"{kept[:_DESCRIPTION_CHARS]}…"


def _short(name: str) -> str:
    line = one_line(name)
    return line if len(line) <= _NAME_CHARS else f"{line[:_NAME_CHARS]}…"


class _English:
    """The words of an English report."""

    language = "en"

    def joined(self, parts: Sequence[str]) -> str:
        return " ".join(filter(None, parts))

    def title(self, names: Sequence[str]) -> str:
        return self._list(names)

    def about(self, names: Sequence[str], subject: Subject) -> str:
        entities, relationships = self._counted(subject)
        return f"A group of {entities} and {relationships} around {self._list(names)}."

    def types(self, names: Sequence[str]) -> str:
        return f"Mostly of type {self._list(names, 'or')}."

    def described(self, name: str, text: str) -> str:
        return f"{name}: {self._sentence(text)}"

    def parts(self, titles: Sequence[str]) -> str:
        return f"Parts of it: {'; '.join(titles)}."

    def rating(self, subject: Subject) -> str:
        entities, relationships = self._counted(subject)
        return f"By size: log2(1 + {entities} + {relationships}), at most 10."

    def finding(self, name: str, kind: str, neighbours: Sequence[str]) -> str:
        named = f"{name} ({kind})" if kind else name
        if not neighbours:
            return named
        more = len(neighbours) - _SHOWN_NEIGHBOURS
        shown = [*neighbours[:_SHOWN_NEIGHBOURS], f"{more} more"] if more > 0 else neighbours
        return f"{named} is related to {self._list(shown)}"

    def edge(self, source: str, target: str, text: str) -> str:
        return f"{source} – {target}: {self._sentence(text)}"

    def together(self, name: str, neighbours: Sequence[str]) -> str:
        return f"{name} occurs together with {self._list(neighbours[:_SHOWN_RELATIONSHIPS])}."

    def claim(self, text: str, status: str) -> str:
        return f"Claim ({status}): {self._sentence(text)}"

    @staticmethod
    def _counted(subject: Subject) -> tuple[str, str]:
        entities = "1 entity" if subject.size == 1 else f"{subject.size} entities"
        edges = "1 relationship" if subject.relationship_count == 1 else f"{subject.relationship_count} relationships"
        return entities, edges

    @staticmethod
    def _list(names: Sequence[str], last: str = "and") -> str:
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"

    @staticmethod
    def _sentence(text: str) -> str:
        return text if text.endswith((".", "!", "?", "…", "。")) else f"{text}."


class _Japanese:
    """The words of a Japanese report."""

    language = "ja"

    def joined(self, parts: Sequence[str]) -> str:
        text = "".join(part for part in parts[:-1])
        return " ".join(filter(None, (text, parts[-1])))

    def title(self, names: Sequence[str]) -> str:
        return "、".join(names)

    def about(self, names: Sequence[str], subject: Subject) -> str:
        return (
            f"{'、'.join(names)}を中心とする、{subject.size}個の要素と{subject.relationship_count}件の関係のまとまり。"
        )

    def types(self, names: Sequence[str]) -> str:
        return f"主な種類は{'、'.join(names)}。"

    def described(self, name: str, text: str) -> str:
        return f"{name}：{self._sentence(text)}"

    def parts(self, titles: Sequence[str]) -> str:
        return f"内訳：{'／'.join(titles)}。"

    def rating(self, subject: Subject) -> str:
        return f"規模による評価：log2(1 + 要素{subject.size}個 + 関係{subject.relationship_count}件)、最大10。"

    def finding(self, name: str, kind: str, neighbours: Sequence[str]) -> str:
        named = f"{name}（{kind}）" if kind else name
        if not neighbours:
            return named
        more = len(neighbours) - _SHOWN_NEIGHBOURS
        rest = f"ほか{more}件" if more > 0 else ""
        return f"{named}は{'、'.join(neighbours[:_SHOWN_NEIGHBOURS])}{rest}と関係する"

    def edge(self, source: str, target: str, text: str) -> str:
        return f"{source}と{target}：{self._sentence(text)}"

    def together(self, name: str, neighbours: Sequence[str]) -> str:
        return f"{name}は{'、'.join(neighbours[:_SHOWN_RELATIONSHIPS])}と同じ箇所に現れる。"

    def claim(self, text: str, status: str) -> str:
        words = {"true": "確認済み", "false": "否定", "suspected": "未確認"}
        return f"主張（{words.get(status, status)}）：{self._sentence(text)}"

    @staticmethod
    def _sentence(text: str) -> str:
        return text if text.endswith(("。", "！", "？", "…", ".", "!", "?")) else f"{text}。"


_Words = _English | _Japanese
_ENGLISH = _English()
_JAPANESE = _Japanese()
