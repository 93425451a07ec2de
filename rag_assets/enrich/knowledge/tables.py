"""The step `meta_knowledge`: brings the summaries of facet values in step with their questions and answers.

A summary is written anew only when its own questions, the code, the model or the lengths have changed. Its key terms
were measured against the other questions of that time: what is asked elsewhere does not rewrite it.

A language model reads the questions in parts first, then writes the summary from those of the parts. Documents are put
into parts by the digests of their questions and answers, so that one that is renamed changes no request, and one that
changes only those of the parts about its old and its new place; the answers to the others are in the store of answers.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from hashlib import sha256
from itertools import groupby

from rag_assets.contracts.fingerprint import code_fingerprint, digest
from rag_assets.contracts.generation import Completion, Request, Tag
from rag_assets.contracts.ports import LanguageModel
from rag_assets.contracts.tables import DOCUMENT_FACETS, META_KNOWLEDGE, QUESTION_CLUSTERS, SYNTHETIC_QA
from rag_assets.enrich.facets.taxonomy import Taxonomy
from rag_assets.enrich.knowledge.clusters import facet_values
from rag_assets.enrich.knowledge.extraction import (
    METHOD,
    QuestionAnswer,
    Selection,
    TermCounts,
    compose_summary,
    key_terms,
    select,
)
from rag_assets.enrich.written import Progress, TextUpdate, table_inputs
from rag_assets.models.dialogue import Dialogue, Missing, converse, watched
from rag_assets.models.prompts import SLACK, TOKENS_PER_CHAR, answer_tokens, fenced, prompted
from rag_assets.parsing.records import Record, rows
from rag_assets.store.incremental import marked_stand_ins, settled
from rag_assets.store.lake import WHOLE, Lake
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens, split_to_tokens

_QUESTION = ["qa_id", "document_id", "question", "answer", "language", "indexed"]

STEP = "summarize_knowledge"

_FORM_TOKENS = 64
_PROMPT_TOKENS = 900
_LEAST_TOKENS = 256
_READ_TOGETHER = 4  # summaries of parts, at least


@dataclass(frozen=True)
class KnowledgeOptions:
    """What is summarised, and how long summaries get."""

    least_documents: int  # documents that a combination of facet values must have to get a summary
    least_questions: int  # questions that it must have
    most_combinations: int  # combinations that get one, at most: those with the most questions
    key_terms: int  # key terms of a summary, at most
    summary_chars: int  # characters of a summary, about
    read_tokens: int  # tokens that one call of a language model reads, at most
    remove_duplicates: bool  # whether only one question of each cluster of near duplicates is used


def wanted_knowledge(lake: Lake, options: KnowledgeOptions, model_name: str) -> str:
    """What the meta knowledge is to be computed from: all questions, facet values and (where used) clusters."""
    tables = [SYNTHETIC_QA, DOCUMENT_FACETS, *([QUESTION_CLUSTERS] if options.remove_duplicates else [])]
    return digest(_code(), model_name, *astuple(options), table_inputs(lake, tables))


def update_meta_knowledge(
    lake: Lake, model: LanguageModel, options: KnowledgeOptions, taxonomy: Taxonomy, progress: Progress
) -> TextUpdate:
    """Bring the summaries in step with the questions; nothing is written where nothing changed.

    A summary that the model could not write is composed by the extractive algorithm; where it failed for reasons that
    may pass, the next run asks again.

    Raises:
        ModelError: The model cannot be used any longer. Nothing is written; answers that had come are in the store of
            answers.
    """
    key = wanted_knowledge(lake, options, model.name)
    update = TextUpdate()
    if settled(lake.inputs(META_KNOWLEDGE, WHOLE)) == {WHOLE: key}:
        update.kept = lake.row_count(META_KNOWLEDGE, WHOLE)
        return update
    selections = _load(lake, options)
    stored_rows = {row["selection"]: row for row in lake.read(META_KNOWLEDGE).to_pylist()}
    writer = _Writer(model, options, taxonomy, selections)
    records: list[Record] = []
    new_selections: dict[str, Selection] = {}
    for selection in selections:
        row = stored_rows.get(selection.name)
        if row is not None and row["content_sha256"] == writer.content(selection):
            records.append(writer.kept(row, selection))
        else:
            new_selections[selection.name] = selection
    update.kept, update.rewritten = len(records), len(new_selections)
    update.removed = len(stored_rows.keys() - {selection.name for selection in selections})
    missing = Missing()
    texts: Iterable[tuple[str, str | None]] = ((name, None) for name in new_selections)
    if model.generative:
        dialogues = ((name, watched(writer.dialogue(selection), missing)) for name, selection in new_selections.items())
        texts = converse(model, dialogues)
    for name, text in texts:
        update.stand_ins += model.generative and text is None
        records.append(writer.record(new_selections[name], text))
        progress(len(records), len(selections))
    inputs = {WHOLE: marked_stand_ins(key, missing.causes, again=missing.again)}
    update.written = int(lake.write(META_KNOWLEDGE, WHOLE, rows(META_KNOWLEDGE.schema, records), inputs).written)
    return update


def _code() -> str:
    """Digest of the code and prompts that meta knowledge depends on."""
    return code_fingerprint(f"{__name__}:update_meta_knowledge")


class _Writer:
    """Gives the rows of selections."""

    def __init__(
        self, model: LanguageModel, options: KnowledgeOptions, taxonomy: Taxonomy, selections: Sequence[Selection]
    ) -> None:
        self._model, self._options, self._taxonomy = model, options, taxonomy
        written_by = (options.key_terms, options.summary_chars, options.read_tokens if model.generative else 0)
        self._method = digest(_code(), model.name, *written_by)
        self._terms = TermCounts()
        for selection in selections:
            for question in selection.questions:
                self._terms.add(question)

    def content(self, selection: Selection) -> str:
        """Digest of what a summary is made from."""
        facts = tuple(
            fact
            for question in selection.questions
            for fact in (question.qa_id, question.question, question.answer, question.language)
        )
        return digest(self._method, selection.facets, self._group(selection), facts)

    def kept(self, row: Record, selection: Selection) -> Record:
        """A row whose questions are what they were; what sets them apart follows the other questions."""
        terms = key_terms(selection, self._terms, self._options.key_terms)
        text = self._composed(selection, terms) if row["method"] == METHOD else row["text"]
        return {**row, "key_terms": terms, "text": text}

    def record(self, selection: Selection, text: str | None) -> Record:
        """A row with the summary of a language model, or without one with a composed summary."""
        terms = key_terms(selection, self._terms, self._options.key_terms)
        content = self.content(selection)
        if text is None and self._model.generative:
            # the digest of a stand-in is never wanted, so that it is asked for with the next change
            content = digest("stand-in", content)
        return {
            "selection": selection.name,
            "facets": list(selection.facets),
            "question_count": len(selection.questions),
            "document_count": selection.document_count,
            "key_terms": terms,
            "text": self._composed(selection, terms) if text is None else text,
            "content_sha256": content,
            "language": selection.language,
            "method": METHOD if text is None else self._model.name,
        }

    def dialogue(self, selection: Selection) -> Dialogue[str | None]:
        """Asks for a summary."""
        options, context_tokens = self._options, self._model.context_tokens
        group = self._group(selection)
        return knowledge_dialogue(selection, group, options.summary_chars, options.read_tokens, context_tokens)

    def _composed(self, selection: Selection, terms: Sequence[str]) -> str:
        return compose_summary(selection, self._group(selection), terms, self._terms, self._options.summary_chars)

    def _group(self, selection: Selection) -> str:
        return self._taxonomy.described(selection.facets, selection.language)


def _load(lake: Lake, options: KnowledgeOptions) -> list[Selection]:
    """The selections that get a summary, with the questions that it is made from."""
    questions: dict[str, list[QuestionAnswer]] = defaultdict(list)
    for row in lake.read(SYNTHETIC_QA, columns=_QUESTION).to_pylist():
        if row.pop("indexed"):
            questions[row["document_id"]].append(QuestionAnswer(**row))
    least = (options.least_documents, options.least_questions)
    selections = select(questions, facet_values(lake), *least, options.most_combinations)
    if not options.remove_duplicates:
        return selections
    clusters: dict[str, dict[str, tuple[int, bool]]] = defaultdict(dict)
    for row in lake.read(QUESTION_CLUSTERS).to_pylist():
        clusters[f"{row['facet']}={row['value']}"][row["qa_id"]] = row["cluster"], row["is_representative"]
    return [_distinct(selection, clusters.get(selection.facets[0], {})) for selection in selections]


def _distinct(selection: Selection, clusters: Mapping[str, tuple[int, bool]]) -> Selection:
    """One question of each cluster: the one that stands for it, or else the first that the selection holds.

    Clusters are by id of the question, each with whether the question stands for it.
    """
    by_cluster: dict[int, QuestionAnswer] = {}
    alone: list[QuestionAnswer] = []
    for question in selection.questions:
        cluster = clusters.get(question.qa_id)
        if cluster is None:
            alone.append(question)
        elif cluster[1]:
            by_cluster[cluster[0]] = question
        else:
            by_cluster.setdefault(cluster[0], question)
    return Selection(
        selection.facets, tuple(sorted([*alone, *by_cluster.values()], key=lambda question: question.qa_id))
    )


def knowledge_dialogue(
    selection: Selection, group: str, summary_chars: int, read_tokens: int, context_tokens: int
) -> Dialogue[str | None]:
    """Have a selection summarised from its questions and answers.

    Summaries of parts are asked for so short that several are read together; one that comes out longer is cut to its
    share.

    The group is what people call its facet values. Summaries get fewer characters where the context is small.

    Returns:
        None where the model gave no summary of all questions.
    """
    chars = _fitting_chars(summary_chars, context_tokens)
    room = max(_LEAST_TOKENS, min(read_tokens, context_tokens - _PROMPT_TOKENS - answer_tokens(chars, _FORM_TOKENS)))
    part_chars = min(chars, int(room / (_READ_TOGETHER * TOKENS_PER_CHAR)))
    texts = question_parts(selection.questions, room)
    while True:
        asked_chars = chars if len(texts) == 1 else part_chars
        answers = yield [_request(selection, group, text, asked_chars) for text in texts]
        summaries = [summary for summary in map(_summary, answers) if summary]
        if len(summaries) < len(answers):
            return None
        if len(summaries) == 1:
            return summaries[0]
        texts = _read_together(summaries, room)


def question_parts(questions: Sequence[QuestionAnswer], tokens: int) -> list[str]:
    """Questions and answers as texts of at most so many tokens, by estimate.

    Returns:
        Parts; within one, documents stand in order of the digests of what they say, and questions in order of theirs.
    """
    sorted_questions = sorted(questions, key=lambda question: (question.document_id, question.qa_id))
    documents = [
        "\n".join(map(_lines, group))
        for _, group in groupby(sorted_questions, key=lambda question: question.document_id)
    ]
    keyed_texts = [(sha256(text.encode("utf-8", "surrogatepass")).digest(), text) for text in documents]
    return _split(sorted(keyed_texts), tokens, 0)


def _split(documents: Sequence[tuple[bytes, str]], tokens: int, depth: int) -> list[str]:
    """Halved by one bit after the other of the digests, until each part fits."""
    if not documents:
        return []
    text = "\n\n".join(text for _, text in documents)
    if estimate_tokens(text) <= tokens:
        return [text]
    if len(documents) == 1 or depth == 8 * len(documents[0][0]):
        return split_to_tokens(text, tokens)
    halves: tuple[list[tuple[bytes, str]], list[tuple[bytes, str]]] = ([], [])
    for key, document in documents:
        halves[key[depth // 8] >> (7 - depth % 8) & 1].append((key, document))
    return [part for half in halves for part in _split(half, tokens, depth + 1)]


def _read_together(summaries: Sequence[str], tokens: int) -> list[str]:
    """Summaries as texts of at most so many tokens: each cut to its share, and as many in a text as fit."""
    texts: list[str] = []
    for summary in summaries:
        share = cut_to_tokens(summary, tokens // _READ_TOGETHER - 2)  # a blank line parts them
        longer = f"{texts[-1]}\n\n{share}" if texts else share
        if texts and estimate_tokens(longer) <= tokens:
            texts[-1] = longer
        else:
            texts.append(share)
    return texts


def _request(selection: Selection, group: str, text: str, summary_chars: int) -> Request:
    return prompted(
        Tag(META_KNOWLEDGE.name, STEP),
        selection.language,
        answer_tokens(summary_chars, _FORM_TOKENS),
        {"summary_chars": str(summary_chars)},
        {"selection": group, "document": fenced(text)},
        {"summary": {"type": "string", "minLength": 1, "maxLength": SLACK * summary_chars}},
    )


def _fitting_chars(summary_chars: int, context_tokens: int) -> int:
    """Characters of a summary that leave at least half of the context, without the prompt, for reading."""
    room = (context_tokens - _PROMPT_TOKENS) // 2 - _FORM_TOKENS
    return max(1, min(summary_chars, int(room / (SLACK * TOKENS_PER_CHAR))))


def _summary(answer: Completion) -> str | None:
    lines = str(answer.fields["summary"]).splitlines() if answer.fields else ()
    return "\n".join(line.strip() for line in lines if line.strip()) or None


def _lines(question: QuestionAnswer) -> str:
    return f"Q: {one_line(question.question)}\nA: {one_line(question.answer)}"
