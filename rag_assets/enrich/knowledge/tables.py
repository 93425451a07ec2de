"""The step `meta_knowledge`: brings the summaries of facet values in step with their questions and answers.

A summary is written anew only when its own questions, the code, the model or the lengths have changed. Its key terms
were measured against the other questions of that time: what is asked elsewhere does not rewrite it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

import pyarrow as pa

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import DOCUMENT_FACETS, META_KNOWLEDGE, QUESTION_CLUSTERS, SYNTHETIC_QA
from rag_assets.enrich.facets.taxonomy import Taxonomy
from rag_assets.enrich.knowledge.dialogues import KnowledgeAttempt, knowledge_dialogue
from rag_assets.enrich.knowledge.extraction import (
    METHOD,
    Question,
    Selection,
    TermCounts,
    compose_summary,
    key_terms,
    select,
)
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.parsing.records import Record, rows
from rag_assets.store.incremental import marked_stand_ins, settled
from rag_assets.store.lake import WHOLE, Lake

Progress = Callable[[int, int], None]

_QUESTION = ["qa_id", "document_id", "question", "answer", "language", "indexed"]


@dataclass(frozen=True)
class KnowledgeOptions:
    """What is summarised, and how long summaries get.

    Attributes:
        least_documents: Documents that a combination of facet values must have to get a summary.
        least_questions: Questions that it must have.
        most_combinations: Combinations that get one, at most: those with the most questions.
        key_terms: Key terms of a summary, at most.
        summary_chars: Characters of a summary, about.
        read_tokens: Tokens that one call of a language model reads, at most.
        remove_duplicates: Whether only one question of each cluster of near duplicates is used.
    """

    least_documents: int
    least_questions: int
    most_combinations: int
    key_terms: int
    summary_chars: int
    read_tokens: int
    remove_duplicates: bool


@dataclass
class KnowledgeUpdate:
    """What became of the summaries.

    Attributes:
        written: Files written; 0 where nothing changed.
        rewritten: Summaries that were written, or written anew.
        kept: Summaries that stayed as they were.
        removed: Selections that are no longer in use.
        stand_ins: Summaries that the model was asked for and the extractive algorithm wrote.
    """

    written: int = 0
    rewritten: int = 0
    kept: int = 0
    removed: int = 0
    stand_ins: int = 0


def knowledge_code() -> str:
    """Digest of the code and prompts that meta knowledge depends on."""
    return code_fingerprint(f"{__name__}:update_meta_knowledge")


def wanted_knowledge(lake: Lake, options: KnowledgeOptions, model_name: str) -> str:
    """What the meta knowledge is to be computed from: all questions, facet values and (where used) clusters."""
    tables = [SYNTHETIC_QA, DOCUMENT_FACETS, *([QUESTION_CLUSTERS] if options.remove_duplicates else [])]
    sources = tuple(
        (table.name, *(fact for name, key in sorted(lake.inputs(table, shard).items()) for fact in (name, key)))
        for table in tables
        for shard in lake.latest(table)
    )
    return digest(knowledge_code(), model_name, *astuple(options), sources)


def update_meta_knowledge(
    lake: Lake, model: LanguageModel, options: KnowledgeOptions, taxonomy: Taxonomy, progress: Progress
) -> KnowledgeUpdate:
    """Bring the summaries in step with the questions; nothing is written where nothing changed.

    A summary that the model could not write is composed by the extractive algorithm; where it failed for reasons that
    may pass, the next run asks again.

    Args:
        lake: Where the tables are.
        model: The language model; one that does not write leaves it to the extractive algorithm.
        options: What is summarised, and how long summaries get.
        taxonomy: What people call the facet values.
        progress: Told summaries done and summaries in all.

    Raises:
        ModelError: The model cannot be used any longer. Nothing is written; answers that had come are in the store of
            answers.
    """
    key = wanted_knowledge(lake, options, model.name)
    update = KnowledgeUpdate()
    if settled(lake.inputs(META_KNOWLEDGE, WHOLE)) == {WHOLE: key}:
        update.kept = lake.row_count(META_KNOWLEDGE, WHOLE)
        return update
    selections = _load(lake, options)
    stored = {row["selection"]: row for row in lake.read(META_KNOWLEDGE).to_pylist()}
    writer = _Writer(model, options, taxonomy, selections, update)
    records = list(writer.records(stored, progress))
    update.removed = len(stored.keys() - {each.name for each in selections})
    inputs = {WHOLE: marked_stand_ins(key, writer.missing.causes, again=writer.missing.again)}
    table = rows(META_KNOWLEDGE.schema, records)
    update.written = int(lake.write(META_KNOWLEDGE, WHOLE, table, inputs).written)
    return update


class _Writer:
    """Gives the rows of selections: those that there are, and new ones."""

    def __init__(
        self,
        model: LanguageModel,
        options: KnowledgeOptions,
        taxonomy: Taxonomy,
        selections: Sequence[Selection],
        update: KnowledgeUpdate,
    ) -> None:
        self.missing = Missing()
        self._model, self._options, self._taxonomy = model, options, taxonomy
        self._selections, self._update = selections, update
        written_by = (options.key_terms, options.summary_chars, options.read_tokens if model.generative else 0)
        self._method = digest(knowledge_code(), model.name, *written_by)
        self._terms = TermCounts()

    def records(self, stored: Mapping[str, Record], progress: Progress) -> Iterator[Record]:
        total, done = len(self._selections), 0
        self._count_terms()
        wanted: dict[str, Selection] = {}
        for selection in self._selections:
            row = stored.get(selection.name)
            if row is None or row["content_sha256"] != self._content(selection):
                wanted[selection.name] = selection
                continue
            self._update.kept += 1
            done += 1
            yield self._kept(row, selection)
        self._update.rewritten = len(wanted)
        for name, attempt in self._attempts(wanted.values()):
            done += 1
            progress(done, total)
            yield self._record(wanted[name], attempt)

    def _kept(self, row: Record, selection: Selection) -> Record:
        """A row whose questions are what they were; what sets them apart follows the other questions."""
        named = key_terms(selection, self._terms, self._options.key_terms)
        if row["method"] != METHOD:
            return {**row, "key_terms": named}
        text = self._composed(selection, named)
        return {**row, "key_terms": named, "text": text}

    def _count_terms(self) -> None:
        for selection in self._selections:
            for question in selection.questions:
                self._terms.add(question)

    def _attempts(self, wanted: Iterable[Selection]) -> Iterator[tuple[str, KnowledgeAttempt]]:
        if self._model.generative:
            yield from converse(self._model, ((each.name, self._dialogue(each)) for each in wanted))
        else:
            yield from ((each.name, KnowledgeAttempt(None)) for each in wanted)

    def _dialogue(self, selection: Selection) -> Dialogue[KnowledgeAttempt]:
        options = self._options
        dialogue = knowledge_dialogue(
            selection,
            self._group(selection),
            options.summary_chars,
            options.read_tokens,
            self._model.context_tokens,
        )
        return watched(dialogue, self.missing)

    def _composed(self, selection: Selection, named: Sequence[str]) -> str:
        return compose_summary(selection, self._group(selection), named, self._terms, self._options.summary_chars)

    def _group(self, selection: Selection) -> str:
        return self._taxonomy.described(selection.facets, selection.language)

    def _record(self, selection: Selection, attempt: KnowledgeAttempt) -> Record:
        named = key_terms(selection, self._terms, self._options.key_terms)
        content, text = self._content(selection), attempt.text
        if text is None:
            text = self._composed(selection, named)
            self._update.stand_ins += self._model.generative
        if attempt.text is None and self._model.generative:
            # the digest of a stand-in is never wanted, so that it is asked for with the next change
            content = digest("stand-in", content)
        return {
            "selection": selection.name,
            "facets": list(selection.facets),
            "question_count": len(selection.questions),
            "document_count": selection.document_count,
            "key_terms": named,
            "text": text,
            "content_sha256": content,
            "language": selection.language,
            "method": METHOD if attempt.text is None else self._model.name,
        }

    def _content(self, selection: Selection) -> str:
        said = tuple((each.qa_id, each.question, each.answer, each.language) for each in selection.questions)
        return digest(
            self._method, selection.facets, self._group(selection), tuple(fact for each in said for fact in each)
        )


def _load(lake: Lake, options: KnowledgeOptions) -> list[Selection]:
    """The selections that get a summary, with the questions that it is made from."""
    questions: dict[str, list[Question]] = defaultdict(list)
    for row in lake.read(SYNTHETIC_QA, columns=_QUESTION).to_pylist():
        if row.pop("indexed"):
            questions[row["document_id"]].append(Question(**row))
    facets: dict[str, list[str]] = defaultdict(list)
    for row in lake.read(DOCUMENT_FACETS, columns=["document_id", "facet", "value"]).to_pylist():
        facets[row["document_id"]].append(f"{row['facet']}={row['value']}")
    selections = select(questions, facets, options.least_documents, options.least_questions, options.most_combinations)
    if not options.remove_duplicates:
        return selections
    clusters = _clusters(lake.read(QUESTION_CLUSTERS))
    return [_distinct(each, clusters.get(each.facets[0], {})) for each in selections]


def _clusters(table: pa.Table) -> dict[str, dict[str, tuple[int, bool]]]:
    """Cluster of each question, and whether it stands for it, by facet value."""
    found: dict[str, dict[str, tuple[int, bool]]] = defaultdict(dict)
    for row in table.to_pylist():
        found[f"{row['facet']}={row['value']}"][row["qa_id"]] = row["cluster"], row["is_representative"]
    return found


def _distinct(selection: Selection, clusters: Mapping[str, tuple[int, bool]]) -> Selection:
    """One question of each cluster: the one that stands for it, or else the first that the selection holds."""
    kept: dict[int, Question] = {}
    alone: list[Question] = []
    for question in selection.questions:
        cluster = clusters.get(question.qa_id)
        if cluster is None:
            alone.append(question)
        elif cluster[1]:
            kept[cluster[0]] = question
        else:
            kept.setdefault(cluster[0], question)
    return Selection(selection.facets, tuple(sorted([*alone, *kept.values()], key=lambda each: each.qa_id)))
