"""Summaries of meta knowledge by a language model: parts of the questions first, then the summary from these.

Documents are put into parts by the digests of their ids, so that a document that changes changes the request of its own
part alone; the answers to the others are in the store of answers.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby

from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, object_schema
from rag_assets.enrich.meta_knowledge import Question, Selection
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.models.token_estimate import estimate_tokens, split_to_tokens

STEP = "summarize_knowledge"
ASSET = "meta_knowledge"

_SLACK = 2  # a summary may be this many times longer than asked for
_TOKENS_PER_CHAR = 1.5
_FORM_TOKENS = 64
_PROMPT_TOKENS = 900
_LEAST_TOKENS = 256
_MOST_ROUNDS = 8


@dataclass(frozen=True)
class KnowledgeAttempt:
    """What came of asking for a summary.

    Attributes:
        text: The summary, or None where the model gave none.
        retry: Whether it failed for reasons that may pass.
    """

    text: str | None
    retry: bool = False


def knowledge_dialogue(
    selection: Selection, summary_chars: int, read_tokens: int, context_tokens: int
) -> Dialogue[KnowledgeAttempt]:
    """Have a selection summarised from its questions and answers.

    Args:
        selection: The selection.
        summary_chars: Characters of a summary, about.
        read_tokens: Tokens that one call reads, at most.
        context_tokens: Tokens of prompt and answer that the model takes.
    """
    room = max(_LEAST_TOKENS, min(read_tokens, context_tokens - _PROMPT_TOKENS - _answer_tokens(summary_chars)))
    texts = question_parts(selection.questions, room)
    for _ in range(_MOST_ROUNDS):
        answers = yield [_request(selection, text, summary_chars) for text in texts]
        summaries = [_summary(each) for each in answers]
        written = [each for each in summaries if each]
        if len(written) < len(summaries):
            return KnowledgeAttempt(None, retry=any(each.may_pass for each in answers))
        if len(written) == 1:
            return KnowledgeAttempt(written[0])
        following = split_to_tokens("\n\n".join(written), room)
        # summaries that are as long as what they sum up never become one
        texts = following if len(following) < len(texts) else following[:1]
    return KnowledgeAttempt(None)


def question_parts(questions: Sequence[Question], tokens: int) -> list[str]:
    """Questions and answers as texts of at most so many tokens, by estimate.

    Args:
        questions: The questions.
        tokens: Tokens of a part.

    Returns:
        Parts; within one, documents stand in order of their ids, and questions in order of theirs.
    """
    ordered = sorted(questions, key=lambda each: (each.document_id, each.qa_id))
    documents = [
        (sha256(name.encode("utf-8", "surrogatepass")).digest(), "\n".join(map(_lines, of_document)))
        for name, of_document in groupby(ordered, key=lambda each: each.document_id)
    ]
    return _split(documents, tokens, 0)


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
    for key, each in documents:
        halves[key[depth // 8] >> (7 - depth % 8) & 1].append((key, each))
    return [part for half in halves for part in _split(half, tokens, depth + 1)]


def _request(selection: Selection, text: str, summary_chars: int) -> Request:
    prompt = load_prompt(STEP, selection.language)
    schema = object_schema({"summary": {"type": "string", "minLength": 1, "maxLength": _SLACK * summary_chars}})
    question = prompt.question.substitute(selection="、".join(selection.facets), document=fenced(text))
    return Request(
        prefix=prompt.prefix.substitute(summary_chars=str(summary_chars)),
        messages=(Message("user", question),),
        max_tokens=_answer_tokens(summary_chars),
        tag=Tag(ASSET, STEP),
        schema=json.dumps(schema),
    )


def _answer_tokens(summary_chars: int) -> int:
    return int(_SLACK * summary_chars * _TOKENS_PER_CHAR) + _FORM_TOKENS


def _summary(answer: Completion) -> str | None:
    if answer.outcome is not Outcome.COMPLETED or not isinstance(answer.value, dict):
        return None
    return "\n".join(line.strip() for line in str(answer.value["summary"]).splitlines() if line.strip()) or None


def _lines(question: Question) -> str:
    return f"Q: {' '.join(question.question.split())}\nA: {' '.join(question.answer.split())}"
