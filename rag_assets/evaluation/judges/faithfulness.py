"""Whether each sentence of an answer follows from the passages that it cites, and how many cite any.

What stays out: whether the quoted words stand in the passage (`rag_assets.query.ask.checking`), which needs no judge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_assets.contracts.generation import JsonValue, Request, object_schema
from rag_assets.contracts.ports import LanguageModel
from rag_assets.evaluation.judges.material import (
    REASON,
    REASON_TOKENS,
    CitedSentence,
    JudgedAnswer,
    Progress,
    answer_tokens,
    judge_request,
    judged,
    missing,
    no_progress,
    numbered,
    room_tokens,
    value_of,
)
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

STEP = "judge_faithfulness"
_SENTENCES = 8  # of one call
_SENTENCE_TOKENS = 400
_ANSWER_TOKENS = _SENTENCES * REASON_TOKENS


@dataclass(frozen=True)
class SentenceVerdict:
    """What a judge says of a sentence that cites something.

    Attributes:
        text: The sentence.
        supported: Whether all of it follows from what it cites; None where there is no judgement.
        reason: Why.
    """

    text: str
    supported: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Faithfulness:
    """What a judge says of an answer.

    Attributes:
        sentences: The sentences that cite something, in their order.
        cited: Share of the sentences that do; nan for an answer without sentences.
        missing: A cause for each sentence without a judgement.
    """

    sentences: tuple[SentenceVerdict, ...]
    cited: float
    missing: tuple[str, ...] = ()

    @property
    def faithful(self) -> float:
        """Share of the judged sentences that are supported; nan for none."""
        values = [float(each.supported) for each in self.sentences if each.supported is not None]
        return fmean(values) if values else float("nan")


def judge_faithfulness(
    model: LanguageModel,
    answers: Sequence[JudgedAnswer],
    progress: Progress = no_progress,
    seed: int | None = None,
) -> list[Faithfulness]:
    """Compare the sentences of answers with what they cite.

    Args:
        model: The judge.
        answers: What is judged.
        progress: Told the number of calls that came back.
        seed: Number of the repetition; None for the first.

    Raises:
        ModelError: See `judged`.
    """
    room = _room(model)
    calls = [(place, group) for place, answer in enumerate(answers) for group in _groups(answer, room)]
    requests = [faithfulness_request(model, answers[place], group, seed) for place, group in calls]
    verdicts: list[list[SentenceVerdict]] = [[] for _ in answers]
    lost: list[list[str]] = [[] for _ in answers]
    for (place, group), completion in zip(calls, judged(model, requests, progress), strict=True):
        causes = missing([completion]) or ("left out",)
        items = value_of(completion).get("sentences")
        said = {each["sentence"]: each for each in items if isinstance(each, dict)} if isinstance(items, list) else {}
        for number, sentence in enumerate(group, start=1):
            item = said.get(number)
            if item is None:
                verdicts[place].append(SentenceVerdict(sentence.text, None))
                lost[place].append(causes[0])
            else:
                reason = one_line(item["reason"])
                verdicts[place].append(SentenceVerdict(sentence.text, bool(item["supported"]), reason))
    return [
        Faithfulness(tuple(verdicts[place]), _cited(answer), tuple(lost[place])) for place, answer in enumerate(answers)
    ]


def faithfulness_request(
    model: LanguageModel, answer: JudgedAnswer, sentences: Sequence[CitedSentence], seed: int | None = None
) -> Request:
    """Ask whether sentences follow from what they cite."""
    places = sorted({place for each in sentences for place in each.cited})
    lines = (
        f"{number}. {cut_to_tokens(each.text, _SENTENCE_TOKENS)} {''.join(f'[{place + 1}]' for place in each.cited)}"
        for number, each in enumerate(sentences, start=1)
    )
    cited = [answer.passages[place] for place in places]
    parts = {
        "passages": numbered(cited, [place + 1 for place in places], _room(model)),
        "sentences": "\n".join(lines),
    }
    number: JsonValue = {"type": "integer", "minimum": 1}
    item = object_schema({"sentence": number, "reason": REASON, "supported": {"type": "boolean"}})
    properties: dict[str, JsonValue] = {"sentences": {"type": "array", "maxItems": len(sentences), "items": item}}
    most_tokens = answer_tokens(model, len(sentences) * REASON_TOKENS)
    return judge_request(STEP, answer.question, parts, properties, most_tokens, seed)


def _room(model: LanguageModel) -> int:
    return room_tokens(model, answer_tokens(model, _ANSWER_TOKENS))


def _groups(answer: JudgedAnswer, room: int) -> Iterator[list[CitedSentence]]:
    """Sentences that cite something, as many together as one call reads with what they cite."""
    group: list[CitedSentence] = []
    read: set[int] = set()
    for sentence in answer.sentences if answer.answered else ():
        if not sentence.cited:
            continue
        cited = {*read, *sentence.cited}
        tokens = sum(estimate_tokens(answer.passages[place]) for place in cited)
        if group and (len(group) == _SENTENCES or tokens > room):
            yield group
            group, cited = [], set(sentence.cited)
        group.append(sentence)
        read = cited
    if group:
        yield group


def _cited(answer: JudgedAnswer) -> float:
    """Share of the sentences that cite something."""
    if not answer.answered or not answer.sentences:
        return float("nan")
    return fmean(bool(each.cited) for each in answer.sentences)
