"""What a judge reads of an answer, and how it is asked: through the model layer, so that no judgement is paid twice.

What stays out: what a judge is asked (`grading`, `preference`, `claims`, `faithfulness`), whether it is to be believed
(`calibration`), and how its judgements become figures (`results`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag_assets.contracts.generation import Completion, JsonValue, Message, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel
from rag_assets.models.prompts import fenced, load_prompt
from rag_assets.query.ask.answers import Answer
from rag_assets.text.language import prompt_language
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

ASSET = "evaluation"  # what the ledger names judgements by, each judge as a step of its own
TOKENS_PER_CHAR = 1.5  # of what a judge writes, with room to spare
REASON_CHARS = 200
_SLACK = 2  # reasons may be this many times longer than asked for
_READ_TOKENS = 8_000  # of passages or answers in one call: answers are written from 6,000 by default
_PROMPT_TOKENS = 1_200  # system text, question and tags
_QUESTION_TOKENS = 400
_LEAST_TOKENS = 256

Progress = Callable[[int, int], None]
REASON: JsonValue = {"type": "string", "maxLength": _SLACK * REASON_CHARS}
REASON_TOKENS = int(_SLACK * REASON_CHARS * TOKENS_PER_CHAR) + 40


@dataclass(frozen=True)
class CitedSentence:
    """A sentence of an answer.

    Attributes:
        text: The sentence.
        cited: Places in `JudgedAnswer.passages` of what it cites, from 0.
    """

    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer, as judges read it.

    Attributes:
        question: What was asked.
        text: The answer.
        answered: Whether it says that it is one.
        passages: What was found for it, in the order in which it was read.
        sentences: The answer sentence by sentence; only `faithfulness` looks at them.
    """

    question: str
    text: str
    answered: bool = True
    passages: tuple[str, ...] = ()
    sentences: tuple[CitedSentence, ...] = ()

    @classmethod
    def of(cls, answer: Answer) -> "JudgedAnswer":
        """An answer of a knowledge base."""
        places = {source.number: place for place, source in enumerate(answer.sources)}
        sentences = tuple(
            CitedSentence(each.text, tuple(sorted({places[it.number] for it in each.citations if it.number in places})))
            for each in answer.sentences
        )
        passages = tuple(source.text for source in answer.sources)
        return cls(answer.question, answer.text, answer.answered, passages, sentences)


def no_progress(done: int, total: int) -> None:
    """Progress that nobody watches."""
    del done, total


def judge_request(
    step: str,
    question: str,
    parts: Mapping[str, str],
    properties: Mapping[str, JsonValue],
    max_tokens: int,
    seed: int | None = None,
    **values: str,
) -> Request:
    """A call of a judge.

    Args:
        step: Its prompt.
        question: What was asked of the one who is judged; its language is that of the prompt.
        parts: Texts to judge by placeholder, each put between tags.
        properties: JSON schemas of what is wanted.
        max_tokens: Tokens of the judgement at most.
        seed: Number of the repetition; None where nothing is repeated.
        values: What is put into the prompt as it is.
    """
    prompt = load_prompt(step, prompt_language(question))
    texts = {name: fenced(text, name) for name, text in parts.items()}
    asked = {"query": fenced(cut_to_tokens(question, _QUESTION_TOKENS), "query"), **texts, **values}
    return Request(
        prompt.prefix.substitute(reason_chars=str(REASON_CHARS)),
        (Message("user", prompt.question.substitute(asked)),),
        max_tokens,
        Tag(ASSET, step),
        schema=json.dumps(object_schema(properties), ensure_ascii=False),
        seed=seed,
    )


def answer_tokens(model: LanguageModel, wanted: int) -> int:
    """Tokens of a judgement: what is wanted, as far as the model writes so many."""
    return max(1, min(wanted, model.output_tokens, model.context_tokens // 2))


def room_tokens(model: LanguageModel, max_tokens: int) -> int:
    """Tokens of texts to judge that one call takes."""
    return max(_LEAST_TOKENS, min(_READ_TOKENS, model.context_tokens - max_tokens - _PROMPT_TOKENS))


def numbered(texts: Sequence[str], numbers: Sequence[int], tokens: int) -> str:
    """Texts under their numbers, as far as they fit; the last that fits in part is cut."""
    shown: list[str] = []
    for number, text in zip(numbers, texts, strict=True):
        if tokens < _LEAST_TOKENS // 4 and shown:
            break
        part = f"[{number}]\n{cut_to_tokens(text, max(_LEAST_TOKENS // 4, tokens))}"
        tokens -= estimate_tokens(part)
        shown.append(part)
    return "\n\n".join(shown)


def judged(model: LanguageModel, requests: Sequence[Request], progress: Progress) -> list[Completion]:
    """What a judge says to each request, in the order given; the same is asked once.

    Raises:
        ModelError: The model as a whole cannot be used, as with the budget spent. Judgements that had come are stored:
            asking again goes on where it stopped.
    """
    different = {each.content_sha256: each for each in requests}
    answers: dict[str, Completion] = {}
    for completion in model.generate(different.values()):
        answers[completion.request.content_sha256] = completion
        progress(len(answers), len(different))
    return [answers[each.content_sha256] for each in requests]


def value_of(completion: Completion) -> dict[str, JsonValue]:
    """A judgement as JSON; empty where there is none."""
    return completion.value if completion.usable and isinstance(completion.value, dict) else {}


def missing(completions: Sequence[Completion]) -> tuple[str, ...]:
    """Outcomes of the calls that gave no judgement, as in `refused`."""
    return tuple(each.outcome.value for each in completions if not value_of(each))
