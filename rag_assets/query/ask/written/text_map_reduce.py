"""Mode `text_map_reduce`: every passage is looked at. The baseline that all other modes are measured against.

As a search it scores every passage that the filters let through by its exact cosine with the query, past any index. As
an answer it has a language model read the passages themselves, in random order and groups of the context's size; each
group gives sentences with citations and how helpful they are, and one last request joins the helpful ones, the most
helpful first.

Source: the baseline TS of D. Edge and others, From local to global, 2024, section 4.1: map and reduce over shuffled
source texts. Deviation: sentences carry citations from the passages through to the answer.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.contracts.generation import Completion, JsonValue, Request
from rag_assets.contracts.ports import LanguageModel
from rag_assets.models.prompts import fenced
from rag_assets.query.ask.answers import Source
from rag_assets.query.ask.evidence import sources_text
from rag_assets.query.ask.written.checking import Draft, drafts_of
from rag_assets.query.ask.written.graph_global import HELPFULNESS, in_groups
from rag_assets.query.ask.written.reader import AskedQuestion, ReaderOptions, sentences_request, value_of
from rag_assets.query.results import Hit, TraceRecorder
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.request import Indexes, RetrievalRequest
from rag_assets.text.tokens import estimate_tokens

MAP_STEP = "map_passages"
REDUCE_STEP = "reduce_passages"


@dataclass(frozen=True)
class Findings:
    """What the groups of passages say that helps."""

    drafts: tuple[Draft, ...]  # sentences of helpful groups, the most helpful group first
    groups: int  # groups that were read
    unhelpful: int  # those that do not help
    failures: tuple[str, ...]  # why others could not be read


def search_text_map_reduce(request: RetrievalRequest, indexes: Indexes, trace: TraceRecorder) -> list[Candidate]:
    """Passages by falling cosine, each of them scored."""
    chunks = indexes.chunks
    where = request.filters.to_sql(chunks.columns)
    return chunks.nearest(request.embedding, where, request.depth, trace, show=request.show_all, exact=True)


def chosen_passages(found: Sequence[Candidate], options: ReaderOptions) -> list[Candidate]:
    """Passages in the order in which they are read, as many as the options allow."""
    passages = list(found)
    random.Random(options.seed).shuffle(passages)  # noqa: S311 - an order that can be repeated, not a secret
    return passages[: options.map_reduce_chunks]


def read_all(
    question: AskedQuestion, hits: Sequence[Hit], model: LanguageModel, options: ReaderOptions
) -> tuple[tuple[Source, ...], Findings]:
    """Have passages read, group by group, in the order given.

    Returns:
        The passages, numbered, and what they say.

    Raises:
        ModelError: The model as a whole cannot be used.
    """
    sources = tuple(Source.of(number, hit, hit.text) for number, hit in enumerate(hits, start=1))
    room, max_tokens = options.room_tokens(model, question), options.written_tokens(model)
    groups = in_groups(sources, room, lambda source: estimate_tokens(sources_text([source])) + 2)
    requests = [_map_request(question, group, max_tokens) for group in groups]
    answers = {completion.request.content_sha256: completion for completion in model.generate(requests)}
    rated_drafts: list[tuple[int, int, list[Draft]]] = []
    failures, unhelpful = [], 0
    for place, request in enumerate(requests):
        helpfulness, drafts, failure = _partial(answers.get(request.content_sha256))
        if failure is not None:
            failures.append(failure)
        elif helpfulness and drafts:
            rated_drafts.append((-helpfulness, place, drafts))
        else:
            unhelpful += 1
    helpful = tuple(
        draft for _, _, group_drafts in sorted(rated_drafts, key=lambda entry: entry[:2]) for draft in group_drafts
    )
    return sources, Findings(helpful, len(groups), unhelpful, tuple(failures))


def reduce_request(
    question: AskedQuestion, drafts: Sequence[Draft], model: LanguageModel, options: ReaderOptions
) -> tuple[Request, int]:
    """Ask for one answer out of what the groups say.

    Returns:
        The request, and the sentences for which there was no room.
    """
    room = options.room_tokens(model, question)
    findings = [json.dumps(_finding(draft), ensure_ascii=False) for draft in drafts]
    fitting_findings = in_groups(findings, room, lambda line: estimate_tokens(line) + 2)[0]
    lines = "\n".join(fitting_findings)
    values = {"findings": fenced(lines, "findings"), **question.fenced()}
    request = sentences_request(REDUCE_STEP, question.language, values, options.written_tokens(model))
    return request, len(drafts) - len(fitting_findings)


def _map_request(question: AskedQuestion, group: Sequence[Source], max_tokens: int) -> Request:
    values = {"passages": fenced(sources_text(group), "passages"), **question.fenced()}
    return sentences_request(MAP_STEP, question.language, values, max_tokens, {"helpfulness": HELPFULNESS})


def _partial(answer: Completion | None) -> tuple[int, list[Draft], str | None]:
    value, failure = value_of(answer)
    helpfulness = value.get("helpfulness")
    return (helpfulness if isinstance(helpfulness, int) else 0), drafts_of(value), failure


def _finding(draft: Draft) -> JsonValue:
    citations: list[JsonValue] = [{"number": number, "quote": quote} for number, quote in draft.quotes]
    return {"citations": citations, "text": draft.text}
