"""What judges are asked of answers, and what they say: grades, claims, faithfulness, and which of two is better.

They are asked through the model layer, so that no judgement is paid twice. What stays out: whether a judge is to be
believed (`calibration`), and how judgements become figures (`results`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

import numpy as np

from rag_assets.contracts.generation import Completion, JsonValue, Request, Tag, object_schema
from rag_assets.contracts.ports import LanguageModel
from rag_assets.models.prompts import SLACK, TOKENS_PER_CHAR, answer_tokens, fenced, prompted
from rag_assets.query.ask.answers import Answer
from rag_assets.text.folding import search_terms
from rag_assets.text.language import prompt_language
from rag_assets.text.plain import one_line
from rag_assets.text.tokens import cut_to_tokens, estimate_tokens

ASSET = "evaluation"  # what the ledger names judgements by, each judge as a step of its own
REASON_CHARS = 200
_READ_TOKENS = 8_000  # of passages or answers in one call: answers are written from 6,000 by default
_PROMPT_TOKENS = 1_200  # system text, question and tags
_QUESTION_TOKENS = 400
_LEAST_TOKENS = 256
_REASON: JsonValue = {"type": "string", "maxLength": SLACK * REASON_CHARS}
_REASON_TOKENS = answer_tokens(REASON_CHARS, 40)

RETRIEVAL_METRICS = ("recall", "precision")
ANSWER_METRICS = ("specificity", "breadth", "depth", "relevancy")
METRICS = (*RETRIEVAL_METRICS, *ANSWER_METRICS)
BEST = 100  # grade
_NOTHING = "-"

THRESHOLDS = (0.5, 0.6, 0.7, 0.8)  # distances up to which claims are one cluster
_CLAIMS = 100
_CLAIM_CHARS = 400
_CLAIMS_TOKENS = int(40 * 100 * TOKENS_PER_CHAR)  # 40 claims of 100 characters; a longer list is continued

_SENTENCES = 8  # of one call
_SENTENCE_TOKENS = 400

CRITERIA = ("comprehensiveness", "diversity", "empowerment", "directness")
REPETITIONS = 5
POINTS = {1: 100.0, 0: 50.0, 2: 0.0}  # of the first answer, by winner
TIE_POINTS = POINTS[0]

Progress = Callable[[int, int], None]


class Judge(StrEnum):
    """What a judge is asked for."""

    GRADING = "grading"
    PREFERENCE = "preference"
    CLAIMS = "claims"
    FAITHFULNESS = "faithfulness"


MEASURES: Mapping[Judge, tuple[str, ...]] = {
    Judge.GRADING: METRICS,
    Judge.PREFERENCE: CRITERIA,
    Judge.CLAIMS: ("claims", *(f"clusters {threshold}" for threshold in THRESHOLDS)),
    Judge.FAITHFULNESS: ("faithful", "cited"),
}


@dataclass(frozen=True)
class CitedSentence:
    """A sentence of an answer."""

    text: str
    cited: tuple[int, ...]  # places in `JudgedAnswer.passages` of what it cites, from 0


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer, as judges read it."""

    question: str
    text: str
    answered: bool = True  # whether it says that it is one
    passages: tuple[str, ...] = ()  # what was found for it, in the order in which it was read
    # the answer sentence by sentence; only `judge_faithfulness` looks at them
    sentences: tuple[CitedSentence, ...] = ()

    @classmethod
    def of(cls, answer: Answer) -> "JudgedAnswer":
        """An answer of a knowledge base."""
        places = {source.number: place for place, source in enumerate(answer.sources)}
        sentences = tuple(
            CitedSentence(
                sentence.text,
                tuple(
                    sorted({places[citation.number] for citation in sentence.citations if citation.number in places})
                ),
            )
            for sentence in answer.sentences
        )
        passages = tuple(source.text for source in answer.sources)
        return cls(answer.question, answer.text, answer.answered, passages, sentences)


@dataclass(frozen=True)
class Judgement:
    """What a judge says of an answer."""

    values: Mapping[str, float]  # by measure of the judge, see `MEASURES`; empty where there is no judgement
    reasons: tuple[str, ...] = ()  # why, in lines for people; the claims themselves where these are counted
    missing: tuple[str, ...] = ()  # a cause for each judgement that did not come, as in `refused`


@dataclass(frozen=True)
class AnswerPair:
    """Two answers to one question."""

    first: JudgedAnswer
    second: JudgedAnswer
    criteria: tuple[str, ...] = CRITERIA  # what they are compared by

    @property
    def is_same(self) -> bool:
        """Whether both say the same words."""
        return self.first.text.split() == self.second.text.split()


@dataclass(frozen=True)
class Verdict:
    """What a judge says of a pair once."""

    criterion: str
    repetition: int  # from 0
    swapped: bool  # whether the second answer was shown first
    winner: int  # 1 for the first answer of the pair, 2 for the second, 0 for a tie
    reason: str


@dataclass(frozen=True)
class Preference:
    """What a judge says of a pair."""

    pair: AnswerPair
    verdicts: tuple[Verdict, ...]  # those that came; none where both answers say the same words
    missing: tuple[str, ...] = ()  # outcomes of the calls that gave none

    def points(self, criterion: str) -> float:
        """Points of the first answer, 0 to 100; nan where there is no verdict."""
        if self.pair.is_same:
            return TIE_POINTS
        return _mean([POINTS[verdict.winner] for verdict in self.verdicts if verdict.criterion == criterion])

    def majority(self, criterion: str) -> int:
        """The answer that more than half of the verdicts prefer, 1 or 2; 0 where neither is."""
        winners = [verdict.winner for verdict in self.verdicts if verdict.criterion == criterion]
        winner, count = Counter(winners).most_common(1)[0] if winners else (0, 0)
        return winner if 2 * count > len(winners) else 0

    def shown_first(self) -> float:
        """Points of the answer that was shown first, where both orders were judged; fair is 50, nan for none."""
        orders: dict[tuple[str, int], list[float]] = defaultdict(list)
        for verdict in self.verdicts:
            points = POINTS[verdict.winner]
            orders[verdict.criterion, verdict.repetition].append(POINTS[1] - points if verdict.swapped else points)
        return _mean([points for pair in orders.values() if len(pair) == 2 for points in pair])

    def consistency(self) -> float:
        """Chance that two repetitions of the same question in the same order name the same winner; nan for none."""
        winners_by_order: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for verdict in self.verdicts:
            winners_by_order[verdict.criterion, verdict.swapped].append(verdict.winner)
        return _mean(
            [
                sum(count * (count - 1) for count in Counter(winners).values()) / (len(winners) * (len(winners) - 1))
                for winners in winners_by_order.values()
                if len(winners) > 1
            ]
        )

    def judgement(self) -> Judgement:
        """The same as a judgement of the first answer."""
        reasons = tuple(
            f"{verdict.criterion}, {POINTS[verdict.winner]:.0f} points{', shown second' if verdict.swapped else ''}: "
            f"{verdict.reason}"
            for verdict in self.verdicts
        )
        return Judgement({name: self.points(name) for name in CRITERIA}, reasons, self.missing)


def no_progress(done: int, total: int) -> None:
    """Progress that nobody watches."""
    del done, total


def judge_grades(
    model: LanguageModel, answers: Sequence[JudgedAnswer], progress: Progress = no_progress, seed: int | None = None
) -> list[Judgement]:
    """Grade answers, each by itself: from 0 to 100, by two metrics of what was found and four of the answer.

    Args:
        model: The judge.
        answers: What is judged; where no passages are known, by the last four metrics.
        progress: Told the number of calls that came back.
        seed: Number of the repetition; None for the first.

    Raises:
        ModelError: The model as a whole cannot be used, as with the budget spent. Judgements that had come are stored:
            asking again goes on where it stopped.

    Source: L. Mombaerts and others, Meta knowledge for retrieval augmented large language models, 2024 (PR3),
    evaluation metrics.
    """
    judgements = []
    for completion in _completions(model, [grades_request(model, answer, seed) for answer in answers], progress):
        values, reasons = {}, []
        for metric, item in _value_of(completion).items():
            if isinstance(item, dict) and isinstance(item["grade"], int):
                values[metric] = float(item["grade"])
                reasons.append(f"{metric} {item['grade']}: {one_line(item['justification'])}")
        judgements.append(Judgement(values, tuple(reasons), _missing(completion)))
    return judgements


def judge_claims(
    model: LanguageModel, answers: Sequence[JudgedAnswer], progress: Progress = no_progress, seed: int | None = None
) -> list[Judgement]:
    """Count the claims of answers, and clusters of them; one that says that there is no answer has none, unasked.

    Arguments and errors are those of `judge_grades`.

    Source: D. Edge and others, From local to global: a GraphRAG approach to query-focused summarization, 2024, section
    4.2: comprehensiveness is the number of claims, diversity the number of their clusters by complete linkage at a
    distance of 1 - ROUGE-L. Words are those of the full-text index, so that Japanese is read as well.
    """
    requests = [claims_request(model, answer, seed) for answer in answers if answer.answered]
    completions = iter(_completions(model, requests, progress))
    judgements = []
    for answer in answers:
        if not answer.answered:
            judgements.append(Judgement(_claim_values(()), ()))
            continue
        completion = next(completions)
        items = _value_of(completion).get("claims")
        if isinstance(items, list):
            different: dict[str, str] = {}
            for text in filter(None, map(one_line, items)):
                different.setdefault(search_terms(text), text)
            claims = tuple(different.values())
            judgements.append(Judgement(_claim_values(claims), claims, _missing(completion)))
        else:
            judgements.append(Judgement({}, (), _missing(completion)))
    return judgements


def judge_faithfulness(
    model: LanguageModel, answers: Sequence[JudgedAnswer], progress: Progress = no_progress, seed: int | None = None
) -> list[Judgement]:
    """Compare the sentences of answers with what they cite: `faithful` is the share of the judged ones that follow.

    `cited` is the share of the sentences that cite anything. Either is nan where there is none. Whether quoted words
    stand in a passage needs no judge, see `rag_assets.query.ask.written.checking`. Arguments and errors are those of
    `judge_grades`.
    """
    room = _faithfulness_room(model)
    calls = [(place, group) for place, answer in enumerate(answers) for group in _groups(answer, room)]
    requests = [faithfulness_request(model, answers[place], group, seed) for place, group in calls]
    support: list[list[float]] = [[] for _ in answers]
    reasons: list[list[str]] = [[] for _ in answers]
    missing: list[list[str]] = [[] for _ in answers]
    for (place, group), completion in zip(calls, _completions(model, requests, progress), strict=True):
        items = _value_of(completion).get("sentences")
        verdict_items = items if isinstance(items, list) else []
        verdicts = {item["sentence"]: item for item in verdict_items if isinstance(item, dict)}
        for number, sentence in enumerate(group, start=1):
            if (verdict := verdicts.get(number)) is None:
                missing[place].extend(_missing(completion) or ("left out",))
                continue
            support[place].append(float(bool(verdict["supported"])))
            follows = "supported" if verdict["supported"] else "not supported"
            reasons[place].append(f"{follows}: {sentence.text} ({one_line(verdict['reason'])})")
    judgements = []
    for place, answer in enumerate(answers):
        cited = _mean([float(bool(sentence.cited)) for sentence in answer.sentences if answer.answered])
        values = {"faithful": _mean(support[place]), "cited": cited}
        judgements.append(Judgement(values, tuple(reasons[place]), tuple(missing[place])))
    return judgements


SINGLE_JUDGES: Mapping[
    Judge, Callable[[LanguageModel, Sequence[JudgedAnswer], Progress, int | None], list[Judgement]]
] = {Judge.GRADING: judge_grades, Judge.CLAIMS: judge_claims, Judge.FAITHFULNESS: judge_faithfulness}


def judge_preferences(
    model: LanguageModel,
    pairs: Sequence[AnswerPair],
    repetitions: int = REPETITIONS,
    progress: Progress = no_progress,
) -> list[Preference]:
    """Compare the answers of pairs by each of their criteria; those of the same words are a tie, unasked.

    Args:
        model: The judge.
        pairs: The pairs.
        repetitions: How often each order is shown.
        progress: Told the number of calls that came back.

    Raises:
        ModelError: See `judge_grades`.

    Source: D. Edge and others, From local to global: a GraphRAG approach to query-focused summarization, 2024, section
    3.3 and appendix G: 100 points to the winner, 50 for a tie, 0 to the loser, mean over five repetitions. Here each
    repetition shows both orders, so that a judge who prefers what stands first prefers neither.
    """
    trials = [
        (place, criterion, repetition, swapped)
        for place, pair in enumerate(pairs)
        if not pair.is_same
        for criterion in pair.criteria
        for repetition in range(repetitions)
        for swapped in (False, True)
    ]
    requests = [
        preference_request(model, pairs[place], criterion, repetition, swapped=swapped)
        for place, criterion, repetition, swapped in trials
    ]
    verdicts: dict[int, list[Verdict]] = defaultdict(list)
    missing: dict[int, list[str]] = defaultdict(list)
    completions = _completions(model, requests, progress)
    for (place, criterion, repetition, swapped), completion in zip(trials, completions, strict=True):
        value = _value_of(completion)
        missing[place].extend(_missing(completion))
        if isinstance(winner := value.get("winner"), int):
            actual_winner = 3 - winner if swapped and winner else winner
            verdicts[place].append(Verdict(criterion, repetition, swapped, actual_winner, one_line(value["reason"])))
    return [Preference(pair, tuple(verdicts[place]), tuple(missing[place])) for place, pair in enumerate(pairs)]


def grades_request(model: LanguageModel, answer: JudgedAnswer, seed: int | None = None) -> Request:
    """Ask for the grades of one answer."""
    metrics = METRICS if answer.passages else ANSWER_METRICS
    grade: JsonValue = {"type": "integer", "minimum": 0, "maximum": BEST}
    item = object_schema({"justification": _REASON, "grade": grade})
    most_tokens, room = _tokens(model, len(metrics) * _REASON_TOKENS)
    passages = _numbered(answer.passages, range(1, len(answer.passages) + 1), room // 2) or _NOTHING
    parts = {"passages": passages, "answer": cut_to_tokens(answer.text, room // 2)}
    return _request("judge_grades", answer.question, parts, dict.fromkeys(metrics, item), most_tokens, seed)


def claims_request(model: LanguageModel, answer: JudgedAnswer, seed: int | None = None) -> Request:
    """Ask for the claims of one answer."""
    most_tokens, room = _tokens(model, _CLAIMS_TOKENS)
    item: JsonValue = {"type": "string", "minLength": 1, "maxLength": _CLAIM_CHARS}
    properties: dict[str, JsonValue] = {"claims": {"type": "array", "maxItems": _CLAIMS, "items": item}}
    parts = {"answer": cut_to_tokens(answer.text, room)}
    return _request("judge_claims", answer.question, parts, properties, most_tokens, seed)


def faithfulness_request(
    model: LanguageModel, answer: JudgedAnswer, sentences: Sequence[CitedSentence], seed: int | None = None
) -> Request:
    """Ask whether sentences follow from what they cite."""
    places = sorted({place for sentence in sentences for place in sentence.cited})
    lines = (
        f"{number}. {cut_to_tokens(sentence.text, _SENTENCE_TOKENS)} "
        f"{''.join(f'[{place + 1}]' for place in sentence.cited)}"
        for number, sentence in enumerate(sentences, start=1)
    )
    cited_texts = [answer.passages[place] for place in places]
    passages = _numbered(cited_texts, [place + 1 for place in places], _faithfulness_room(model))
    number: JsonValue = {"type": "integer", "minimum": 1}
    item = object_schema({"sentence": number, "reason": _REASON, "supported": {"type": "boolean"}})
    properties: dict[str, JsonValue] = {"sentences": {"type": "array", "maxItems": len(sentences), "items": item}}
    most_tokens, _ = _tokens(model, len(sentences) * _REASON_TOKENS)
    parts = {"passages": passages, "sentences": "\n".join(lines)}
    return _request("judge_faithfulness", answer.question, parts, properties, most_tokens, seed)


def preference_request(
    model: LanguageModel, pair: AnswerPair, criterion: str, repetition: int, *, swapped: bool
) -> Request:
    """Ask which answer of a pair is better by a criterion."""
    most_tokens, room = _tokens(model, _REASON_TOKENS)
    first, second = (cut_to_tokens(answer.text, room // 2) for answer in (pair.first, pair.second))
    parts = {"answer1": second, "answer2": first} if swapped else {"answer1": first, "answer2": second}
    properties: dict[str, JsonValue] = {"reason": _REASON, "winner": {"type": "integer", "enum": [0, 1, 2]}}
    question = pair.first.question
    return _request("judge_preference", question, parts, properties, most_tokens, repetition, criterion=criterion)


def rouge_l(first: Sequence[str], second: Sequence[str]) -> float:
    """F1 of the longest common subsequence of two lists of words; 0 where one is empty.

    Source: C. Lin, ROUGE: a package for automatic evaluation of summaries, 2004, with equal weights. The subsequence:
    H. Hyyrö, Bit-parallel LCS-length computation revisited, 2004: a bit a word of the first list, cleared where it
    grows.
    """
    if not first or not second:
        return 0.0
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(first):
        places[word] |= 1 << place
    row = whole = (1 << len(first)) - 1
    for word in second:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & whole
    return 2 * (len(first) - row.bit_count()) / (len(first) + len(second))


def cluster_counts(claims: Sequence[str], thresholds: Sequence[float] = THRESHOLDS) -> dict[float, int]:
    """Number of clusters of claims by complete linkage, by the distance up to which all of a cluster lie together."""
    if len(claims) < 2:
        return dict.fromkeys(thresholds, len(claims))
    from scipy.cluster.hierarchy import fcluster, linkage

    words = [search_terms(claim).split() for claim in claims]
    distances = [1 - rouge_l(left, right) for place, left in enumerate(words) for right in words[place + 1 :]]
    tree = linkage(np.array(distances), "complete")
    return {threshold: int(fcluster(tree, threshold, "distance").max()) for threshold in thresholds}


def _claim_values(claims: Sequence[str]) -> dict[str, float]:
    clusters = {f"clusters {threshold}": float(count) for threshold, count in cluster_counts(claims).items()}
    return {"claims": float(len(claims)), **clusters}


def _faithfulness_room(model: LanguageModel) -> int:
    """Tokens of passages in one call, whatever number of sentences it has."""
    return _tokens(model, _SENTENCES * _REASON_TOKENS)[1]


def _groups(answer: JudgedAnswer, room: int) -> Iterator[list[CitedSentence]]:
    """Sentences that cite something, as many together as one call reads with what they cite."""
    group: list[CitedSentence] = []
    group_places: set[int] = set()
    for sentence in answer.sentences if answer.answered else ():
        if not sentence.cited:
            continue
        new_places = {*group_places, *sentence.cited}
        tokens = sum(estimate_tokens(answer.passages[place]) for place in new_places)
        if group and (len(group) == _SENTENCES or tokens > room):
            yield group
            group, new_places = [], set(sentence.cited)
        group.append(sentence)
        group_places = new_places
    if group:
        yield group


def _request(
    step: str,
    question: str,
    parts: Mapping[str, str],
    properties: Mapping[str, JsonValue],
    max_tokens: int,
    seed: int | None,
    **values: str,
) -> Request:
    """A call of a judge."""
    texts = {name: fenced(text, name) for name, text in parts.items()}
    substitutions = {"query": fenced(cut_to_tokens(question, _QUESTION_TOKENS), "query"), **texts, **values}
    limits = {"reason_chars": str(REASON_CHARS)}
    language = prompt_language(question)
    return replace(prompted(Tag(ASSET, step), language, max_tokens, limits, substitutions, properties), seed=seed)


def _tokens(model: LanguageModel, needed_tokens: int) -> tuple[int, int]:
    """Tokens of a judgement, as far as the model writes so many, and those of texts to judge that one call takes."""
    written_tokens = max(1, min(needed_tokens, model.output_tokens, model.context_tokens // 2))
    return written_tokens, max(_LEAST_TOKENS, min(_READ_TOKENS, model.context_tokens - written_tokens - _PROMPT_TOKENS))


def _numbered(texts: Sequence[str], numbers: Sequence[int], tokens: int) -> str:
    """Texts under their numbers, as far as they fit; the last that fits in part is cut."""
    parts: list[str] = []
    for number, text in zip(numbers, texts, strict=True):
        if tokens < _LEAST_TOKENS // 4 and parts:
            break
        part = f"[{number}]\n{cut_to_tokens(text, max(_LEAST_TOKENS // 4, tokens))}"
        tokens -= estimate_tokens(part)
        parts.append(part)
    return "\n\n".join(parts)


def _completions(model: LanguageModel, requests: Sequence[Request], progress: Progress) -> list[Completion]:
    """What a judge says to each request, in the order given; the same is asked once."""
    different = {request.content_sha256: request for request in requests}
    answers: dict[str, Completion] = {}
    for completion in model.generate(different.values()):
        answers[completion.request.content_sha256] = completion
        progress(len(answers), len(different))
    return [answers[request.content_sha256] for request in requests]


def _value_of(completion: Completion) -> dict[str, JsonValue]:
    """A judgement as JSON; empty where there is none."""
    return completion.value if completion.usable and isinstance(completion.value, dict) else {}


def _missing(completion: Completion) -> tuple[str, ...]:
    """Outcome of a call that gave no judgement, as in `refused`."""
    return () if _value_of(completion) else (completion.outcome.value,)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else float("nan")
