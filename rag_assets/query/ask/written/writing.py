"""Answers that a language model writes: from passages, from all of them group by group, or from community reports.

What stays out: what it is asked (`reader`, `graph_global`, `text_map_reduce`), and how its sentences are checked
(`checking`).
"""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from rag_assets.contracts.errors import ModelError, QueryError
from rag_assets.contracts.generation import Completion, Request
from rag_assets.contracts.modes import (
    GRAPH_GLOBAL_MODE,
    GRAPH_LOCAL_MODE,
    META_KNOWLEDGE_MODE,
    QUESTIONS_MODE,
    TEXT_MAP_REDUCE_MODE,
)
from rag_assets.contracts.ports import LanguageModel
from rag_assets.query.ask.answers import AnswerParts, Source, TextPiece
from rag_assets.query.ask.evidence import pack
from rag_assets.query.ask.found import Found
from rag_assets.query.ask.markup import plain_sentences
from rag_assets.query.ask.quotes import Meaning
from rag_assets.query.ask.written.checking import Draft, checked, drafts_of, foreign_language, rendered
from rag_assets.query.ask.written.graph_global import GlobalAnswer, global_answer
from rag_assets.query.ask.written.local_context import PASSAGE_SHARE, local_context
from rag_assets.query.ask.written.reader import (
    AskedQuestion,
    ReaderOptions,
    passages_request,
    questions_request,
    stream_answer,
    value_of,
)
from rag_assets.query.ask.written.report_references import cited_sentences, passages_of, referring_statements
from rag_assets.query.ask.written.text_map_reduce import chosen_passages, read_all, reduce_request
from rag_assets.query.results import Hit
from rag_assets.query.search.graph_local import HOW_TO_INDEX, walk_from
from rag_assets.query.search.report_levels import reports_to_read
from rag_assets.text.tokens import estimate_tokens

Writing = Generator[TextPiece, None, AnswerParts]
"""Pieces of a text as they are written, and last the answer."""


@dataclass(frozen=True)
class Writer:
    """Has a language model answer a question."""

    found: Found  # the question, with what was found
    model: LanguageModel  # who writes
    reader: ReaderOptions  # how answers are written
    reports: ReaderOptions  # how questions are answered from community reports
    meaning: Meaning | None  # compares what the model wrote with a quote of another language; None where nothing can

    def write(self, *, live: bool) -> Writing:
        """Write the answer.

        Args:
            live: Whether text is wanted while it is written.

        Returns:
            The answer, no sentences where the documents do not say, after pieces of its text.

        Raises:
            ModelError: The model failed, or what it wrote is no answer.
            BudgetError: The answer may cost more than the budget allows.
            QueryError: The entity graph is needed, and there is none.
            StoreError: A published file is gone.
        """
        if self.found.parameters.retriever == GRAPH_GLOBAL_MODE:
            return self._from_reports()
        if self.found.parameters.retriever == TEXT_MAP_REDUCE_MODE:
            return self._from_all(live=live)
        return self._from_passages(live=live)

    @property
    def _question(self) -> AskedQuestion:
        """The question with what is known of it, for those who read a whole collection."""
        found = self.found
        search_text = found.request.text if found.request.text != found.question else ""
        return AskedQuestion(found.question, found.language, found.parameters.history, search_text)

    def _from_passages(self, *, live: bool) -> Writing:
        found = self.found
        if not found.hits:
            return AnswerParts()
        began = time.perf_counter()
        history, max_tokens = found.parameters.history, self.reader.written_tokens(self.model)
        room = self.reader.room_tokens(self.model, AskedQuestion(found.question, found.language, history))
        mode = found.parameters.retriever
        background = ""
        sources: tuple[Source, ...] = ()
        if mode == GRAPH_LOCAL_MODE:
            background, sources = self._neighbourhood(room)
        sources = sources or pack(found.hits, room - _questions_tokens(found.hits))
        found.trace.add("pack", began, len(sources), texts=(f"of {len(found.hits)} passages",))
        if mode in {META_KNOWLEDGE_MODE, QUESTIONS_MODE}:
            queries = _sub_queries(found)
            request = questions_request(found.question, sources, history, queries, max_tokens, found.language)
        else:
            request = passages_request(found.question, sources, history, background, max_tokens, found.language)
        return (yield from self._read(request, sources, live=live))

    def _neighbourhood(self, room: int) -> tuple[str, tuple[Source, ...]]:
        """What the graph knows around the question, and the passages that there is room for beside it."""
        found = self.found
        graph, walk = walk_from(found.request, found.indexes, found.trace)
        context = local_context(found.stored, graph, walk, found.hits, room)
        facts = (*context.reports, *context.entities, *context.relationships, *context.claims)
        return "\n".join(facts), pack(context.passages or found.hits, round(PASSAGE_SHARE * room))

    def _from_all(self, *, live: bool) -> Writing:
        """Have all passages read, group by group."""
        found = self.found
        every = found.listed()
        began = time.perf_counter()
        candidates = chosen_passages(every, self.reader)
        limit = f"{len(candidates)} of {len(every)} passages are read (search.map_reduce_chunks)"
        found.trace.add("choose", began, len(candidates), texts=(limit,) if len(candidates) < len(every) else ())
        hits = found.hits_of(candidates, found.trace)
        began = time.perf_counter()
        sources, findings = read_all(self._question, hits, self.model, self.reader)
        facts = f"groups {findings.groups}, unhelpful {findings.unhelpful}, failed {len(findings.failures)}"
        found.trace.add("map", began, len(findings.drafts), texts=(facts, *dict.fromkeys(findings.failures)))
        if not findings.drafts and findings.failures:
            raise ModelError(findings.failures[0])
        if not findings.drafts:
            return AnswerParts()
        drafts, cited_sources = _renumbered(findings.drafts, sources)
        request, left_out = reduce_request(self._question, drafts, self.model, self.reader)
        if left_out:
            found.trace.add(
                "pack", time.perf_counter(), len(drafts) - left_out, texts=(f"findings left out {left_out}",)
            )
        return (yield from self._read(request, cited_sources, live=live))

    def _from_reports(self) -> Writing:
        """Have the community reports of a level read, and lead their references to passages."""
        found = self.found
        answer = self._answer_globally()
        if answer.text is None:
            if answer.failed or answer.partial_answers:
                raise ModelError("the community reports could not be read")
            return AnswerParts()
        began = time.perf_counter()
        cited_passages = passages_of(referring_statements(answer.text), found.stored, found.indexes.graphs.get())
        hits = found.having(sorted({chunk_id for _, chunk_ids in cited_passages for chunk_id in chunk_ids}))
        sources = {hit.chunk_id: Source.of(0, hit, hit.text) for hit in hits}
        sentences, cited_sources = cited_sentences(cited_passages, sources)
        found.trace.add("references", began, len(cited_sources))
        yield TextPiece(rendered(plain_sentences(sentences, cited_sources)))
        return AnswerParts(tuple(sentences), cited_sources)

    def _answer_globally(self) -> GlobalAnswer:
        found = self.found
        reports, tree, levels = found.indexes.reports, found.indexes.report_tree, found.parameters.levels
        if reports is None or reports.row_count == 0:
            raise QueryError(f"answers from community reports need the entity graph: {HOW_TO_INDEX}")
        report_texts = tree.reports(reports_to_read(found.request.embedding, reports, tree, levels, found.trace))
        began = time.perf_counter()
        answer = global_answer(self._question, report_texts, self.model, self.reports)
        facts = f"unhelpful groups {answer.unhelpful}, failed {answer.failed}, answers left out {answer.left_out}"
        found.trace.add("answer", began, len(answer.partial_answers), texts=(f"reports {answer.read}", facts))
        return answer

    def _read(self, request: Request, sources: Sequence[Source], *, live: bool) -> Writing:
        """Have the reader answer, and check what it wrote."""
        began = time.perf_counter()
        completion: Completion | None = None
        for item in stream_answer(self.model, request, sources, live=live):
            if isinstance(item, str):
                yield TextPiece(item)
            else:
                completion = item
        value, failure = value_of(completion)
        if failure is not None:
            raise ModelError(failure)
        drafts = drafts_of(value) if value.get("answered") is True else []
        sentences, removed_count = checked(drafts, sources, self.meaning)
        if (language := foreign_language(self.found.question, sentences, sources)) is not None:
            raise ModelError(f"it answered in another language than the question's ({language})")
        doubtful = sum(not sentence.supported for sentence in sentences)
        facts = f"unsupported sentences {doubtful}, citations removed {removed_count}"
        self.found.trace.add("answer", began, len(sentences), texts=(facts,))
        return AnswerParts(tuple(sentences), tuple(sources), removed=removed_count)


def _renumbered(drafts: Sequence[Draft], sources: Sequence[Source]) -> tuple[list[Draft], tuple[Source, ...]]:
    """Drafts and the sources that they cite, numbered from 1 in order of their first citation."""
    by_number = {source.number: source for source in sources}
    cited_numbers = dict.fromkeys(number for draft in drafts for number, _ in draft.quotes if number in by_number)
    numbers = {old: new for new, old in enumerate(cited_numbers, start=1)}
    renumbered_drafts = [
        replace(draft, quotes=tuple((numbers[number], quote) for number, quote in draft.quotes if number in numbers))
        for draft in drafts
    ]
    return renumbered_drafts, tuple(replace(by_number[old], number=new) for old, new in numbers.items())


def _sub_queries(found: Found) -> list[str]:
    """The sub-queries that were searched besides the query."""
    sub_queries = [text for step in found.trace.steps if step.operation == "sub_query" for text in step.texts]
    return [text for text in dict.fromkeys(sub_queries) if text != found.request.text]


def _questions_tokens(hits: Sequence[Hit]) -> int:
    """Tokens of the questions and answers that go with passages."""
    return sum(estimate_tokens(f"{question.question}{question.answer}") for hit in hits for question in hit.questions)
