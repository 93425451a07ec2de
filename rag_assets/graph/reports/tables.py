"""The step that brings `community_reports` in step with the communities and their records.

A report is written anew only when what it is written from has changed: its packed records and the reports on its parts.
Where that is what it was, the report is kept as it is, also under another id of the community.

What stays out: what is packed, and what is written.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import pyarrow as pa

from rag_assets.contracts.errors import StoreError
from rag_assets.contracts.fingerprint import code_fingerprint, digest
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
from rag_assets.graph.communities.tables import Community, by_level, load_communities, rows_digest
from rag_assets.graph.reports.context import (
    Claim,
    Elements,
    Entity,
    Part,
    PartReport,
    Relationship,
    ReportContext,
    pack_report,
)
from rag_assets.graph.reports.dialogues import Attempt, ReportOptions, report_dialogue
from rag_assets.graph.reports.extraction import METHOD, Report, Subject, compose_report, report_subject
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.store.incremental import marked_stand_ins, settled
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.text.tokens import estimate_tokens

Progress = Callable[[int, int], None]
Record = dict[str, Any]

_ENTITY_COLUMNS = ("entity_id", "number", "name", "name_key", "type", "description", "document_count", "mention_count")
_RELATIONSHIP_COLUMNS = ("source_id", "target_id", "number", "description", "combined_degree", "mention_count")
_CLAIM_COLUMNS = ("subject_key", "type", "status", "start_date", "end_date", "description")


@dataclass
class ReportUpdate:
    """What became of the reports.

    Attributes:
        written: Files written; 0 where nothing changed.
        rewritten: Reports that were written, or written anew.
        kept: Reports that stayed as they were.
        removed: Reports that are gone, their content with them.
        stand_ins: Reports that the model was asked for and the extractive algorithm wrote.
        removed_references: References to records that do not exist, taken out of the reports that were written.
    """

    written: int = 0
    rewritten: int = 0
    kept: int = 0
    removed: int = 0
    stand_ins: int = 0
    removed_references: int = 0


def reports_code() -> str:
    """Digest of the code and prompts that reports depend on."""
    return code_fingerprint(f"{__name__}:update_reports")


def update_reports(lake: Lake, model: LanguageModel, options: ReportOptions, progress: Progress) -> ReportUpdate:
    """Bring the reports in step with the communities, from the finest level to the coarsest.

    A report that the model could not write is composed by the extractive algorithm; where it failed for reasons that
    may pass, the next run asks again.

    Args:
        lake: Where the tables are.
        model: The language model; one that does not write leaves it to the extractive algorithm.
        options: Lengths.
        progress: Told reports done and reports in all.

    Raises:
        ModelError: The model cannot be used any longer. Nothing is written; answers that had come are in the store of
            answers.
        StoreError: A community has a member that is no entity.
    """
    graph = _Graph.load(lake)
    fitted = options.fitted(model.context_tokens, model.output_tokens) if model.generative else options
    written_with = digest(reports_code(), model.name, *astuple(fitted))
    key = digest(written_with, graph.digest)
    update = ReportUpdate()
    if settled(lake.inputs(COMMUNITY_REPORTS, WHOLE)) == {WHOLE: key}:
        update.kept = lake.row_count(COMMUNITY_REPORTS, WHOLE)
        return update
    stored = lake.read(COMMUNITY_REPORTS).to_pylist()
    writer = _Writer(model, fitted, written_with, {row["content_sha256"]: row for row in stored}, update)
    reported = _reported(graph.communities, fitted.minimum_size)
    levels: dict[int, list[Community]] = defaultdict(list)
    for community in reported:
        levels[community.level].append(community)
    done = 0
    for level in sorted(levels, reverse=True):
        tasks = [writer.task(each, graph.elements(each), graph.parts(each)) for each in levels[level]]
        for row in writer.rows(tasks):
            graph.add_report(row)
            done += 1
            progress(done, len(reported))
    rows = pa.Table.from_pylist(list(graph.reports.values()), COMMUNITY_REPORTS.schema)
    current = {row["content_sha256"] for row in graph.reports.values()}
    update.removed = sum(row["content_sha256"] not in current for row in stored)
    inputs = {WHOLE: marked_stand_ins(key, writer.missing.causes, again=writer.missing.again)}
    update.written = int(lake.write(COMMUNITY_REPORTS, WHOLE, rows, inputs).written)
    return update


def _reported(communities: Sequence[Community], minimum_size: int) -> list[Community]:
    """The communities that a report is written on; where all are smaller than asked for, all but single entities."""
    large = [each for each in communities if len(each.members) >= max(2, minimum_size)]
    return large or [each for each in communities if len(each.members) > 1]


@dataclass
class _Graph:
    """The records of all communities."""

    digest: str
    communities: list[Community]
    entities: Mapping[str, Entity]
    relationships: Mapping[str, Sequence[Relationship]]
    claims: Mapping[str, Sequence[Claim]]
    children: Mapping[str, Sequence[Community]]
    reports: dict[str, Record] = field(default_factory=dict)
    known: dict[str, Elements] = field(default_factory=dict)

    @classmethod
    def load(cls, lake: Lake) -> "_Graph":
        """Read the tables."""
        tables = [
            lake.read(ENTITIES, columns=_ENTITY_COLUMNS),
            lake.read(RELATIONSHIPS, columns=_RELATIONSHIP_COLUMNS),
            lake.read(CLAIMS, columns=_CLAIM_COLUMNS),
            lake.read(ENTITY_MERGES, columns=("name_key", "merged_into")),
            lake.read(COMMUNITIES, columns=("community_id", "level", "parent_id", "is_leaf")),
            lake.read(COMMUNITY_MEMBERS),
        ]
        communities = load_communities(lake)
        entities = {
            row["entity_id"]: Entity(*(row[name] for name in _ENTITY_COLUMNS if name != "name_key"))
            for row in tables[0].to_pylist()
        }
        keys = dict(zip(tables[0]["name_key"].to_pylist(), entities.values(), strict=True))
        merges = dict(zip(tables[3]["name_key"].to_pylist(), tables[3]["merged_into"].to_pylist(), strict=True))
        children: dict[str, list[Community]] = defaultdict(list)
        for community in communities:
            if community.parent_id is not None:
                children[community.parent_id].append(community)
        return cls(
            digest(*map(rows_digest, tables)),
            communities,
            entities,
            _inside(communities, entities, tables[1]),
            _claims(tables[2], keys, merges),
            children,
        )

    def elements(self, community: Community) -> Elements:
        """Records of a community."""
        if community.community_id not in self.known:
            try:
                entities = [self.entities[name] for name in community.members]
            except KeyError as error:
                raise StoreError(f"community_members: expected an entity, found {error.args[0]!r}") from error
            edges = self.relationships.get(community.community_id, ())
            self.known[community.community_id] = Elements(entities, edges, self.claims)
        return self.known[community.community_id]

    def parts(self, community: Community) -> list[Part]:
        """The communities that one is split into, with the reports on them; in order of their least entity number, so
        that ids make no difference.
        """
        parts = []
        for child in self.children.get(community.community_id, ()):
            row = self.reports.get(child.community_id)
            report = None if row is None else PartReport(row["title"], row["summary"], row["text"])
            parts.append(Part(self.elements(child), report))
        return sorted(parts, key=lambda part: min(each.number for each in part.elements.entities))

    def add_report(self, row: Record) -> None:
        """Note a report."""
        self.reports[row["community_id"]] = row


@dataclass(frozen=True)
class _Task:
    """A report that is wanted."""

    community: Community
    context: ReportContext
    subject: Subject
    content_sha256: str


@dataclass
class _Writer:
    """Gives the rows of reports: those that there are, and new ones."""

    model: LanguageModel
    options: ReportOptions
    written_with: str
    stored: Mapping[str, Record]
    update: ReportUpdate
    missing: Missing = field(default_factory=Missing)

    def task(self, community: Community, elements: Elements, parts: Sequence[Part]) -> _Task:
        context = pack_report(elements, parts, self.options.context_tokens)
        subject = report_subject(elements)
        facts: tuple[Any, ...] = (subject.size, subject.relationship_count, subject.language)
        if not self.model.generative:  # a model rates by what it reads
            facts += (subject.theme, *astuple(subject.importance))
        named = tuple(each.line for each in subject.prominent)
        content = digest(self.written_with, context.text, *facts, named)
        return _Task(community, context, subject, content)

    def rows(self, tasks: Sequence[_Task]) -> Iterator[Record]:
        """Rows of the reports of one level."""
        wanted = []
        for task in tasks:
            row = self.stored.get(task.content_sha256)
            if row is None:
                wanted.append(task)
                continue
            self.update.kept += 1
            yield {**row, "community_id": task.community.community_id, "level": task.community.level}
        self.update.rewritten += len(wanted)
        if not self.model.generative:
            for task in wanted:
                yield self._extracted(task, task.content_sha256)
            return
        dialogues = ((task.community.community_id, self._dialogue(task)) for task in wanted)
        by_id = {task.community.community_id: task for task in wanted}
        for community_id, attempt in converse(self.model, dialogues):
            yield self._written(by_id[community_id], attempt)

    def _dialogue(self, task: _Task) -> Dialogue[Attempt]:
        return watched(report_dialogue(task.context, task.subject, self.options), self.missing)

    def _written(self, task: _Task, attempt: Attempt) -> Record:
        if attempt.report is not None:
            return self._row(task, attempt.report, self.model.name, task.content_sha256)
        self.update.stand_ins += 1
        # the digest of a stand-in is never wanted, so that it is asked for with the next change
        return self._extracted(task, digest("stand-in", task.content_sha256))

    def _extracted(self, task: _Task, content_sha256: str) -> Record:
        report = compose_report(task.context, task.subject, self.options.report_tokens)
        return self._row(task, report, METHOD, content_sha256)

    def _row(self, task: _Task, report: Report, method: str, content_sha256: str) -> Record:
        self.update.removed_references += report.removed_references
        return {
            "community_id": task.community.community_id,
            "level": task.community.level,
            "title": report.title,
            "summary": report.summary,
            "rating": report.rating,
            "rating_explanation": report.rating_explanation,
            "findings": [{"summary": each.summary, "explanation": each.explanation} for each in report.findings],
            "text": report.text,
            "removed_references": report.removed_references,
            "length_tokens": estimate_tokens(report.text),
            "content_sha256": content_sha256,
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
    found: dict[str, list[Relationship]] = defaultdict(list)
    for level, of_level in enumerate(by_level(communities)):
        holders = {name: each for each in of_level for name in each.members}
        for edge in edges:
            holder = holders.get(edge.source.entity_id)
            if holder is not None and holder.level == level and holders.get(edge.target.entity_id) is holder:
                found[holder.community_id].append(edge)
    return found


def _claims(rows: pa.Table, keys: Mapping[str, Entity], merges: Mapping[str, str]) -> dict[str, list[Claim]]:
    """Claims by id of the entity that they are about, each once; those about a name that is no entity are left out."""
    found: dict[str, dict[str, Claim]] = defaultdict(dict)
    for row in rows.to_pylist():
        subject = row["subject_key"]
        entity = keys.get(merges.get(subject, subject))
        if entity is None:
            continue
        dates = " – ".join(dict.fromkeys(filter(None, (row["start_date"], row["end_date"]))))
        claim = Claim(entity, row["status"], row["type"], dates, row["description"])
        found[entity.entity_id].setdefault(claim.line, claim)
    return {name: [claims[line] for line in sorted(claims)] for name, claims in found.items()}
