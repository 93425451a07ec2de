"""Summaries of meta knowledge by a language model: parts of the questions first, then the summary from these.

Documents are put into parts by the digests of their questions and answers, so that one that is renamed changes no
request, and one that changes only those of the parts about its old and its new place; the answers to the others are in
the store of answers.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import groupby

from rag_assets.contracts.generation import Completion, Message, Outcome, Request, Tag, object_schema
from rag_assets.enrich.knowledge.extraction import QuestionAnswer, Selection
from rag_assets.models.dialogue import Dialogue
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens, split_to_tokens

STEP = "summarize_knowledge"
ASSET = "meta_knowledge"

_SLACK = 2  # a summary may be this many times longer than asked for
_TOKENS_PER_CHAR = 1.5
_FORM_TOKENS = 64
_PROMPT_TOKENS = 900
_LEAST_TOKENS = 256
_READ_TOGETHER = 4  # summaries of parts, at least


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
    room = max(_LEAST_TOKENS, min(read_tokens, context_tokens - _PROMPT_TOKENS - _answer_tokens(chars)))
    part_chars = min(chars, int(room / (_READ_TOGETHER * _TOKENS_PER_CHAR)))
    texts = question_parts(selection.questions, room)
    while True:
        asked_chars = chars if len(texts) == 1 else part_chars
        answers = yield [_request(selection, group, text, asked_chars) for text in texts]
        written = [each for each in map(_summary, answers) if each]
        if len(written) < len(answers):
            return None
        if len(written) == 1:
            return written[0]
        texts = _read_together(written, room)


def question_parts(questions: Sequence[QuestionAnswer], tokens: int) -> list[str]:
    """Questions and answers as texts of at most so many tokens, by estimate.

    Returns:
        Parts; within one, documents stand in order of the digests of what they say, and questions in order of theirs.
    """
    ordered = sorted(questions, key=lambda each: (each.document_id, each.qa_id))
    documents = ["\n".join(map(_lines, each)) for _, each in groupby(ordered, key=lambda each: each.document_id)]
    keyed = [(sha256(text.encode("utf-8", "surrogatepass")).digest(), text) for text in documents]
    return _split(sorted(keyed), tokens, 0)


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
    prompt = load_prompt(STEP, selection.language)
    schema = object_schema({"summary": {"type": "string", "minLength": 1, "maxLength": _SLACK * summary_chars}})
    question = prompt.question.substitute(selection=group, document=fenced(text))
    return Request(
        prefix=prompt.prefix.substitute(summary_chars=str(summary_chars)),
        messages=(Message("user", question),),
        max_tokens=_answer_tokens(summary_chars),
        tag=Tag(ASSET, STEP),
        schema=json.dumps(schema),
    )


def _fitting_chars(summary_chars: int, context_tokens: int) -> int:
    """Characters of a summary that leave at least half of the context, without the prompt, for reading."""
    room = (context_tokens - _PROMPT_TOKENS) // 2 - _FORM_TOKENS
    return max(1, min(summary_chars, int(room / (_SLACK * _TOKENS_PER_CHAR))))


def _answer_tokens(summary_chars: int) -> int:
    return int(_SLACK * summary_chars * _TOKENS_PER_CHAR) + _FORM_TOKENS


def _summary(answer: Completion) -> str | None:
    if answer.outcome is not Outcome.COMPLETED or not isinstance(answer.value, dict):
        return None
    return "\n".join(line.strip() for line in str(answer.value["summary"]).splitlines() if line.strip()) or None


def _lines(question: QuestionAnswer) -> str:
    return f"Q: {one_line(question.question)}\nA: {one_line(question.answer)}"
