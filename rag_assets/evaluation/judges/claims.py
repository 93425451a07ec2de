"""How many facts an answer states, and how many different ones: its claims, and clusters of them.

Source: D. Edge and others, From local to global: a GraphRAG approach to query-focused summarization, 2024, section 4.2:
comprehensiveness is the number of claims, diversity the number of their clusters by complete linkage at a distance of
1 - ROUGE-L. Words are those of the full-text index, so that Japanese is read as well. Claims and clusters agree with a
pairwise judge where both prefer the same answer; a tie of either says nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_assets.contracts.generation import JsonValue, Request
from rag_assets.contracts.ports import LanguageModel
from rag_assets.evaluation.judges.material import (
    TOKENS_PER_CHAR,
    JudgedAnswer,
    Progress,
    answer_tokens,
    judge_request,
    judged,
    missing,
    no_progress,
    room_tokens,
    value_of,
)
from rag_assets.evaluation.judges.preference import Preference
from rag_assets.text.plain import one_line
from rag_assets.text.terms import search_terms
from rag_assets.text.tokens import cut_to_tokens

STEP = "judge_claims"
THRESHOLDS = (0.5, 0.6, 0.7, 0.8)  # distances up to which claims are one cluster
COMPREHENSIVENESS, DIVERSITY = "comprehensiveness", "diversity"
_CLAIMS = 100
_CLAIM_CHARS = 400
_ANSWER_TOKENS = int(40 * 100 * TOKENS_PER_CHAR)  # 40 claims of 100 characters; a longer list is continued


@dataclass(frozen=True)
class Claims:
    """The facts that an answer states.

    Attributes:
        claims: Each once; None where there is no judgement.
        missing: Outcome of the call, where it gave none.
    """

    claims: tuple[str, ...] | None
    missing: tuple[str, ...] = ()

    def clusters(self) -> dict[float, int]:
        """Number of clusters by distance; empty where there is no judgement."""
        return {} if self.claims is None else cluster_counts(self.claims)


def judge_claims(
    model: LanguageModel,
    answers: Sequence[JudgedAnswer],
    progress: Progress = no_progress,
    seed: int | None = None,
) -> list[Claims]:
    """List the claims of answers; one that says that there is none has no claims, and nobody is asked.

    Args:
        model: The judge.
        answers: What is judged.
        progress: Told the number of calls that came back.
        seed: Number of the repetition; None for the first.

    Raises:
        ModelError: See `judged`.
    """
    asked = [each for each in answers if each.answered]
    completions = iter(judged(model, [claims_request(model, each, seed) for each in asked], progress))
    results = []
    for answer in answers:
        if not answer.answered:
            results.append(Claims(()))
            continue
        completion = next(completions)
        items = value_of(completion).get("claims")
        claims = _different(items) if isinstance(items, list) else None
        results.append(Claims(claims, missing([completion])))
    return results


def claims_request(model: LanguageModel, answer: JudgedAnswer, seed: int | None = None) -> Request:
    """Ask for the claims of one answer."""
    most_tokens = answer_tokens(model, _ANSWER_TOKENS)
    item: JsonValue = {"type": "string", "minLength": 1, "maxLength": _CLAIM_CHARS}
    properties: dict[str, JsonValue] = {"claims": {"type": "array", "maxItems": _CLAIMS, "items": item}}
    parts = {"answer": cut_to_tokens(answer.text, room_tokens(model, most_tokens))}
    return judge_request(STEP, answer.question, parts, properties, most_tokens, seed)


def rouge_l(first: Sequence[str], second: Sequence[str]) -> float:
    """F1 of the longest common subsequence of two lists of words; 0 where one is empty.

    Source: C. Lin, ROUGE: a package for automatic evaluation of summaries, 2004, with equal weights.
    """
    return 2 * _common_length(first, second) / (len(first) + len(second)) if first and second else 0.0


def cluster_counts(claims: Sequence[str], thresholds: Sequence[float] = THRESHOLDS) -> dict[float, int]:
    """Number of clusters of claims by complete linkage, by the distance up to which all of a cluster lie together."""
    if len(claims) < 2:
        return dict.fromkeys(thresholds, len(claims))
    from scipy.cluster.hierarchy import fcluster, linkage

    words = [search_terms(claim).split() for claim in claims]
    distances = [1 - rouge_l(one, other) for place, one in enumerate(words) for other in words[place + 1 :]]
    tree = linkage(np.array(distances), "complete")
    return {threshold: int(fcluster(tree, threshold, "distance").max()) for threshold in thresholds}


def agreement(
    preferences: Sequence[Preference], first: Sequence[Claims], second: Sequence[Claims]
) -> Mapping[tuple[str, str], list[float]]:
    """Whether the pairwise judge and the claims prefer the same answer: 1 or 0 for each pair where neither sees a tie.

    Args:
        preferences: What the judge says of pairs.
        first: Claims of the first answer of each pair.
        second: Those of the second.

    Returns:
        By criterion and what is counted: `claims`, or `clusters 0.5` and so on.
    """
    same: dict[tuple[str, str], list[float]] = defaultdict(list)
    for preference, one, other in zip(preferences, first, second, strict=True):
        if one.claims is None or other.claims is None:
            continue
        counts = {(COMPREHENSIVENESS, "claims"): (len(one.claims), len(other.claims))}
        clusters = one.clusters(), other.clusters()
        counts |= {(DIVERSITY, clusters_name(each)): (clusters[0][each], clusters[1][each]) for each in THRESHOLDS}
        for (criterion, counted), (count, other_count) in counts.items():
            winner = preference.majority(criterion)
            if winner and count != other_count:
                same[criterion, counted].append(float((winner == 1) == (count > other_count)))
    return same


def clusters_name(threshold: float) -> str:
    """What the clusters at a distance are called."""
    return f"clusters {threshold}"


def _different(items: Sequence[JsonValue]) -> tuple[str, ...]:
    """Claims in their order, those of the same words once."""
    claims: dict[str, str] = {}
    for item in items:
        if text := one_line(item):
            claims.setdefault(search_terms(text), text)
    return tuple(claims.values())


def _common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    Source: H. Hyyrö, Bit-parallel LCS-length computation revisited, 2004: a bit a word of the first list, cleared where
    the subsequence grows.
    """
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(first):
        places[word] |= 1 << place
    whole = (1 << len(first)) - 1
    row = whole
    for word in second:
        matched = row & places.get(word, 0)
        row = (row + matched | row - matched) & whole
    return len(first) - row.bit_count()
