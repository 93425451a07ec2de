"""The step that brings `community_reports` in step with the communities and their records.

A report is written anew only when what it is written from has changed: its packed records and the reports on its parts.
Where that is what it was, the report is kept as it is, also under another id of the community. A language model is
asked for a report in one call; what its answer refers to is checked.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import pyarrow as pa

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.generation import Completion, JsonValue, Outcome, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import (
    CLAIMS,
    COMMUNITIES,
    COMMUNITY_MEMBERS,
    COMMUNITY_REPORTS,
    ENTITIES,
    ENTITY_MERGES,
    RELATIONSHIPS,
)
from rag_assets.enrich.written import Progress, TextUpdate
from rag_assets.graph.communities.tables import Community, by_level, load_communities, rows_digest
from rag_assets.graph.reports.context import (
    Claim,
    Elements,
    Entity,
    PartReport,
    Relationship,
    ReportContext,
    SubCommunity,
    pack_report,
)
from rag_assets.graph.reports.extraction import (
    HIGHEST_RATING,
    METHOD,
    MOST_FINDINGS,
    Finding,
    Report,
    ReportSubject,
    checked_report,
    compose_report,
    report_subject,
)
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.models.prompts import SLACK, fenced, prompted
from rag_assets.parsing.records import Record
from rag_assets.store.incremental import marked_stand_ins, settled
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import estimate_tokens

_ENTITY_COLUMNS = ("entity_id", "number", "name", "name_key", "type", "description", "document_count", "mention_count")
_RELATIONSHIP_COLUMNS = ("source_id", "target_id", "number", "description", "combined_degree", "mention_count")
_CLAIM_COLUMNS = ("subject_key", "type", "status", "start_date", "end_date", "description")

STEP = "report_community"

_PROMPT_TOKENS = 1500  # for the system text and the form of the question
_LEAST_TOKENS = 256
_CHARS_PER_TOKEN = {"ja": 0.8, "en": 3.0}
_TITLE_CHARS = 200
_SENTENCE_CHARS = 400


@dataclass(frozen=True)
class ReportOptions:
    """What reports are written from, and how long they get."""

    context_tokens: int  # tokens of records that a report is written from, at most
    report_tokens: int  # tokens of a report, about
    # communities of fewer entities get no report where there are larger ones; an entity by itself never does
    minimum_size: int

    def fitted(self, context_tokens: int, output_tokens: int) -> "ReportOptions":
        """These options, with what is read and written cut to what a model takes."""
        report_tokens = min(self.report_tokens, max(1, output_tokens // SLACK))
        room = context_tokens - _PROMPT_TOKENS - SLACK * report_tokens
        return ReportOptions(max(_LEAST_TOKENS, min(self.context_tokens, room)), report_tokens, self.minimum_size)


def update_reports(lake: Lake, model: LanguageModel, options: ReportOptions, progress: Progress) -> TextUpdate:
    """Bring the reports in step with the communities, from the finest level to the coarsest.

    A report that the model could not write is composed by the extractive algorithm; where it failed for reasons that
    may pass, the next run asks again. Progress is told reports.

    Raises:
        ModelError: The model cannot be used any longer. Nothing is written; answers that had come are in the store of
            answers.
        StoreError: A community has a member that is no entity.
    """
    graph = _Graph(lake)
    fitted_options = options.fitted(model.context_tokens, model.output_tokens) if model.generative else options
    written_with = digest(code_fingerprint(f"{__name__}:update_reports"), model.name, *astuple(fitted_options))
    key = digest(written_with, graph.digest)
    update = TextUpdate()
    if settled(lake.inputs(COMMUNITY_REPORTS, WHOLE)) == {WHOLE: key}:
        update.kept = lake.row_count(COMMUNITY_REPORTS, WHOLE)
        return update
    stored_rows = {row["content_sha256"]: row for row in lake.read(COMMUNITY_REPORTS).to_pylist()}
    writer = _Writer(model, fitted_options, written_with, stored_rows, update)
    # where all communities are smaller than asked for, a report is written on all but single entities
    several = [community for community in graph.communities if len(community.members) > 1]
    communities = [
        community for community in several if len(community.members) >= fitted_options.minimum_size
    ] or several
    for level in sorted({community.level for community in communities}, reverse=True):
        tasks = [writer.task(graph, community) for community in communities if community.level == level]
        for row in writer.rows(tasks):
            graph.reports[row["community_id"]] = row
            progress(len(graph.reports), len(communities))
    rows = pa.Table.from_pylist(list(graph.reports.values()), COMMUNITY_REPORTS.schema)
    update.removed = len(stored_rows.keys() - {row["content_sha256"] for row in graph.reports.values()})
    inputs = {WHOLE: marked_stand_ins(key, writer.missing.causes, again=writer.missing.again)}
    update.written = int(lake.write(COMMUNITY_REPORTS, WHOLE, rows, inputs).written)
    return update


class _Graph:
    """The records of all communities, and the reports on them as they are made."""

    def __init__(self, lake: Lake) -> None:
        entities = lake.read(ENTITIES, columns=_ENTITY_COLUMNS)
        relationships = lake.read(RELATIONSHIPS, columns=_RELATIONSHIP_COLUMNS)
        claims = lake.read(CLAIMS, columns=_CLAIM_COLUMNS)
        merges = lake.read(ENTITY_MERGES, columns=("name_key", "merged_into"))
        communities = lake.read(COMMUNITIES, columns=("community_id", "level", "parent_id", "is_leaf"))
        tables = (entities, relationships, claims, merges, communities, lake.read(COMMUNITY_MEMBERS))
        self.digest = digest(*map(rows_digest, tables))
        self.communities = load_communities(lake)
        self.reports: dict[str, Record] = {}
        self._entities = {
            row["entity_id"]: Entity(*(row[name] for name in _ENTITY_COLUMNS if name != "name_key"))
            for row in entities.to_pylist()
        }
        self._relationships = _inside(self.communities, self._entities, relationships)
        keys = dict(zip(entities["name_key"].to_pylist(), self._entities.values(), strict=True))
        heads = dict(zip(merges["name_key"].to_pylist(), merges["merged_into"].to_pylist(), strict=True))
        self._claims = _claims(claims, keys, heads)
        self._children: dict[str, list[Community]] = defaultdict(list)
        for community in self.communities:
            if community.parent_id is not None:
                self._children[community.parent_id].append(community)
        self._elements: dict[str, Elements] = {}

    def elements(self, community: Community) -> Elements:
        """Records of a community."""
        name = community.community_id
        if name not in self._elements:
            try:
                entities = [self._entities[member] for member in community.members]
            except KeyError as error:
                raise StoreError(f"community_members: expected an entity, found {error.args[0]!r}") from error
            self._elements[name] = Elements(entities, self._relationships.get(name, ()), self._claims)
        return self._elements[name]

    def parts(self, community: Community) -> list[SubCommunity]:
        """The communities that one is split into, with the reports on them; in order of their least entity number, so
        that ids make no difference.
        """
        parts = []
        for child in self._children.get(community.community_id, ()):
            row = self.reports.get(child.community_id)
            report = None if row is None else PartReport(row["title"], row["summary"], row["text"])
            parts.append(SubCommunity(self.elements(child), report))
        return sorted(parts, key=lambda part: min(entity.number for entity in part.elements.entities))


@dataclass(frozen=True)
class _Task:
    """A report that is wanted."""

    community: Community
    context: ReportContext
    subject: ReportSubject
    content_sha256: str


@dataclass
class _Writer:
    """Gives the rows of reports: those that there are, by their digests, and new ones."""

    model: LanguageModel
    options: ReportOptions
    written_with: str
    stored: Mapping[str, Record]
    update: TextUpdate
    missing: Missing = field(default_factory=Missing)

    def task(self, graph: _Graph, community: Community) -> _Task:
        elements = graph.elements(community)
        context = pack_report(elements, graph.parts(community), self.options.context_tokens)
        subject = report_subject(elements)
        facts: tuple[Any, ...] = (subject.size, subject.relationship_count, subject.language)
        if not self.model.generative:  # a model rates by what it reads
            facts += (subject.theme, *astuple(subject.importance))
        prominent = tuple(entity.line for entity in subject.prominent)
        return _Task(community, context, subject, digest(self.written_with, context.text, *facts, prominent))

    def rows(self, tasks: Sequence[_Task]) -> Iterator[Record]:
        """Rows of the reports of one level."""
        new_tasks: dict[str, _Task] = {}
        for task in tasks:
            community_id = task.community.community_id
            if row := self.stored.get(task.content_sha256):
                self.update.kept += 1
                yield {**row, "community_id": community_id, "level": task.community.level}
            else:
                new_tasks[community_id] = task
        self.update.rewritten += len(new_tasks)
        reports: Iterable[tuple[str, Report | None]] = ((name, None) for name in new_tasks)
        if self.model.generative:
            dialogues = (
                (name, watched(report_dialogue(task.context, task.subject, self.options), self.missing))
                for name, task in new_tasks.items()
            )
            reports = converse(self.model, dialogues)
        for name, report in reports:
            yield self._row(new_tasks[name], report)

    def _row(self, task: _Task, report: Report | None) -> Record:
        """A row with the report of a language model, or without one with a composed report."""
        content, method = task.content_sha256, self.model.name
        if report is None:
            report, method = compose_report(task.context, task.subject, self.options.report_tokens), METHOD
            if self.model.generative:
                self.update.stand_ins += 1
                # the digest of a stand-in is never wanted, so that it is asked for with the next change
                content = digest("stand-in", content)
        self.update.removed_references += report.removed_references
        return {
            "community_id": task.community.community_id,
            "level": task.community.level,
            "title": report.title,
            "summary": report.summary,
            "rating": report.rating,
            "rating_explanation": report.rating_explanation,
            "findings": [asdict(finding) for finding in report.findings],
            "text": report.text,
            "removed_references": report.removed_references,
            "length_tokens": estimate_tokens(report.text),
            "content_sha256": content,
            "language": task.subject.language,
            "method": method,
        }


def _inside(
    communities: Sequence[Community], entities: Mapping[str, Entity], rows: pa.Table
) -> dict[str, list[Relationship]]:
    """Relationships between entities of a community, by its id."""
    columns = (rows[name].to_pylist() for name in _RELATIONSHIP_COLUMNS)
    edges = [
        Relationship(number, entities[source], entities[target], *facts)
        for source, target, number, *facts in zip(*columns, strict=True)
    ]
    inner_edges: dict[str, list[Relationship]] = defaultdict(list)
    for level, of_level in enumerate(by_level(communities)):
        holders = {name: community for community in of_level for name in community.members}
        for edge in edges:
            holder = holders.get(edge.source.entity_id)
            if holder is not None and holder.level == level and holders.get(edge.target.entity_id) is holder:
                inner_edges[holder.community_id].append(edge)
    return inner_edges


def _claims(rows: pa.Table, keys: Mapping[str, Entity], merges: Mapping[str, str]) -> dict[str, list[Claim]]:
    """Claims by id of the entity that they are about, each once; those about a name that is no entity are left out."""
    claims_by_id: dict[str, dict[str, Claim]] = defaultdict(dict)
    for row in rows.to_pylist():
        subject = row["subject_key"]
        entity = keys.get(merges.get(subject, subject))
        if entity is None:
            continue
        dates = " – ".join(dict.fromkeys(filter(None, (row["start_date"], row["end_date"]))))
        claim = Claim(entity, row["status"], row["type"], dates, row["description"])
        claims_by_id[entity.entity_id].setdefault(claim.line, claim)
    return {name: [claims[line] for line in sorted(claims)] for name, claims in claims_by_id.items()}


def report_dialogue(context: ReportContext, subject: ReportSubject, options: ReportOptions) -> Dialogue[Report | None]:
    """Have a report written.

    An answer that reached its limit is taken if what it holds is a report by its schema.

    Lengths are fitted to the model.

    Returns:
        The report, with references that hold; None where the model gave none.
    """
    (answer,) = yield [_request(context, subject, options)]
    report = _report(answer)
    return None if report is None else checked_report(report, context.records)


def _request(context: ReportContext, subject: ReportSubject, options: ReportOptions) -> Request:
    chars = int(options.report_tokens * _CHARS_PER_TOKEN[subject.language])
    values = {"report_chars": str(chars), "most_findings": str(MOST_FINDINGS)}
    question = {**values, "records": fenced(context.text, "records")}
    tag, most_tokens = Tag("community_reports", STEP), SLACK * options.report_tokens
    return prompted(tag, subject.language, most_tokens, values, question, _properties(chars))


def _properties(chars: int) -> dict[str, JsonValue]:
    def text(longest: int) -> JsonValue:
        return {"type": "string", "minLength": 1, "maxLength": longest}

    finding = object_schema({"summary": text(_SENTENCE_CHARS), "explanation": text(SLACK * chars)})
    return {
        "title": text(_TITLE_CHARS),
        "summary": text(SLACK * chars),
        "rating": {"type": "number", "minimum": 0, "maximum": HIGHEST_RATING},
        "rating_explanation": text(_SENTENCE_CHARS),
        "findings": {"type": "array", "items": finding, "minItems": 1, "maxItems": MOST_FINDINGS},
    }


def _report(answer: Completion) -> Report | None:
    value = answer.value
    if answer.outcome not in {Outcome.COMPLETED, Outcome.TRUNCATED} or not isinstance(value, dict):
        return None
    rating, findings = value["rating"], value["findings"]
    if not isinstance(rating, int | float) or not isinstance(findings, list):
        return None
    valid_findings = [
        Finding(one_line(finding["summary"]), str(finding["explanation"]).strip())
        for finding in findings
        if isinstance(finding, dict)
    ]
    title, summary = one_line(value["title"]), str(value["summary"]).strip()
    if not (title and summary and valid_findings):
        return None
    return Report(title, summary, float(rating), one_line(value["rating_explanation"]), tuple(valid_findings))
