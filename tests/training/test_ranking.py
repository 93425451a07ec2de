"""Learning weights and query maps, on made-up signals whose best weights are known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_up import CANDIDATES, NAMES, WORDS, made_up
from scipy.special import softmax
from scipy.stats import entropy

from rag_assets.contracts.errors import QueryError
from rag_assets.evaluation.evidence import Level
from rag_assets.query.search.grouping import Granularity, grouped
from rag_assets.query.search.index import Candidate
from rag_assets.query.search.ranking_weights import RERANKER, SHIPPED, SIGNALS, Weights
from rag_assets.training.pairs import JudgedQuestion, distilled, document_folds, document_groups
from rag_assets.training.query_map import learned_map
from rag_assets.training.ranking import fitted, learn_ranking, learned_weights, terms_of


def test_a_signal_that_tells_is_learned_and_proves_better() -> None:
    judged = made_up(150, {WORDS: 1.0, NAMES: 2.0})
    weights, _ = learned_weights(judged, Level.PASSAGE)
    assert weights.names > 0.5 * weights.words
    assert weights.names > 2 * max(weights.meaning, weights.page, weights.summary, weights.identifiers)
    shipped = SHIPPED[Granularity.CHUNK]
    assert (shipped.names, weights.graph < shipped.graph, weights.coverage < shipped.coverage) == (0, True, True)
    candidate = learn_ranking(judged)
    assert candidate.proofs[Level.PASSAGE].is_better
    assert candidate.proof.is_better
    assert candidate.weights[Granularity.CHUNK].weights.names > 0


def test_what_is_no_better_than_what_is_in_force_proves_nothing() -> None:
    judged = made_up(60, {WORDS: 1.0, NAMES: 2.0})
    learned = learn_ranking(judged).weights
    again = learn_ranking(made_up(60, {WORDS: 1.0, NAMES: 2.0}, seed=1), in_force=learned)
    assert not again.proof.is_better
    assert again.weights == learned


def test_a_known_weight_is_recovered() -> None:
    judged = made_up(400, {WORDS: 1.0, NAMES: 0.7})
    [weights] = fitted(terms_of(judged, Level.PASSAGE), SHIPPED[Granularity.CHUNK].vector(), [0.001])
    assert weights[NAMES] / weights[WORDS] == pytest.approx(0.7, abs=0.1)
    assert (weights >= 0).all()


def taught(judged: list[JudgedQuestion], telling: dict[int, float]) -> list[JudgedQuestion]:
    """Questions of which a reranker has read twenty passages, whose scores are signals at these weights."""
    columns, weights = [*telling], np.array([*telling.values()])
    scores = [each.signals[:, columns] @ weights for each in judged]
    return [
        replace(each, read=np.where(np.arange(CANDIDATES) < 20, own, np.nan))
        for each, own in zip(judged, scores, strict=True)
    ]


@pytest.mark.parametrize("soft", [False, True])
def test_the_slope_of_the_loss_is_its_derivative(soft: bool) -> None:
    judged = made_up(5, {WORDS: 1.0})
    terms = terms_of(distilled(taught(judged, {NAMES: 4.0})) if soft else judged, Level.PASSAGE)
    weights = np.linspace(0.5, 2.0, len(SIGNALS))
    _, slope = terms.loss_and_slope(weights)
    for place in range(len(SIGNALS)):
        step = np.eye(len(SIGNALS))[place] * 1e-5
        change = terms.loss_and_slope(weights + step)[0] - terms.loss_and_slope(weights - step)[0]
        assert slope[place] == pytest.approx(change / 2e-5, abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_ten_questions_without_sense_change_little_and_are_not_adopted(seed: int) -> None:
    judged = made_up(10, {}, seed)
    weights, _ = learned_weights(judged, Level.PASSAGE)
    shipped = SHIPPED[Granularity.CHUNK]
    assert np.abs(weights.vector() - shipped.vector()).max() < 0.3
    assert not learn_ranking(judged).proof.is_better


def test_fewer_questions_than_can_be_parted_leave_the_shipped_weights() -> None:
    assert learned_weights(made_up(7, {NAMES: 1.0}), Level.PASSAGE) == (SHIPPED[Granularity.CHUNK], math.inf)


def test_questions_that_all_share_a_document_prove_nothing() -> None:
    judged = made_up(30, {NAMES: 1.0}, documents=1)
    assert learned_weights(judged, Level.PASSAGE) == (SHIPPED[Granularity.CHUNK], math.inf)
    with pytest.raises(QueryError, match="all questions share documents: none can be held out"):
        learn_ranking(judged)


def test_no_document_stands_in_two_folds() -> None:
    judged = made_up(200, {}, documents=90)
    folds = document_folds([each.documents for each in judged], 5)
    assert sorted(position for fold in folds for position in fold) == [*range(200)]
    documents = [frozenset[str]().union(*(judged[position].documents for position in fold)) for fold in folds]
    assert sum(map(len, documents)) == len(frozenset[str]().union(*documents))
    assert document_folds([each.documents for each in judged], 5) == folds


def test_groups_have_the_same_numbers_whatever_the_order_of_their_documents() -> None:
    named = [("b", "a"), ("c",), ("a", "c"), ("d", "e"), ("e", "f")]
    assert document_groups(named) == document_groups([each[::-1] for each in named])


@pytest.mark.parametrize("level", list(Level))
def test_rankings_are_those_of_the_search(level: Level) -> None:
    random = np.random.default_rng(3)
    rows = sorted((f"d{random.integers(5)}", f"p{random.integers(3)}", number) for number in range(40))
    ids = sorted(((d, f"{d}#{p}", f"{d}#{p}.{n:02}") for d, p, n in rows), key=lambda each: each[2])
    weights = Weights(1.0, 0.5, 0.3, 0.2)
    signals = np.round(random.random((40, len(SIGNALS))), 1)  # with ties
    judged = JudgedQuestion("q", "", frozenset(), {}, tuple(ids), signals)
    granularity = {Level.PASSAGE: "chunk", Level.PAGE: "page", Level.DOCUMENT: "document"}[level]
    scores = weights.scores(signals).tolist()
    found = [Candidate(key, document, page, 0, score) for (document, page, key), score in zip(ids, scores, strict=True)]
    found.sort(key=lambda each: (-each.score, each.key))
    place = list(Level).index(level)
    expected = [(each.document_id, each.page_id, each.key)[place] for each in grouped(found, granularity)[:10]]
    assert [each[place] for each in judged.ranked(weights, level, 10)] == expected


def test_a_query_map_learns_where_answers_lie() -> None:
    random = np.random.default_rng(0)
    judged = []
    for each in made_up(80, {WORDS: 1.0}):
        passages = random.normal(size=(CANDIDATES, 16))
        passages[:, 0] = 0.0
        [held] = each.holding(Level.PASSAGE)
        passages[held, 0] = 2.0  # evidence differs by what no question says
        passages /= np.linalg.norm(passages, axis=1, keepdims=True)
        query = random.normal(size=16)
        query[0] = 0.0
        query[1] = 3.0  # what all questions share
        query /= np.linalg.norm(query)
        judged.append(replace(each, query=query.astype(np.float32), passages=passages.astype(np.float32)))
    found, ridge = learned_map(judged)
    assert found is not None
    assert math.isfinite(ridge)
    assert found.left.shape == (16, 16)
    assert found.left.dtype == np.dtype(np.float32)
    assert found.mapped(judged[0].query)[0] > 0.1
    assert np.linalg.norm(found.mapped(judged[0].query)) == pytest.approx(1, abs=1e-5)


def test_questions_that_teach_nothing_make_no_map() -> None:
    random = np.random.default_rng(0)
    judged = []
    for each in made_up(40, {}):
        vectors = random.normal(size=(CANDIDATES + 1, 16)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        judged.append(replace(each, query=vectors[0], passages=vectors[1:]))
    assert learned_map(judged)[0] is None
    assert learned_map([replace(each, documents=frozenset({"d0"})) for each in judged]) == (None, math.inf)


def test_soft_targets_weigh_as_much_as_evidence_and_cost_the_divergence_from_them() -> None:
    [judged] = distilled(taught(made_up(1, {WORDS: 1.0}), {NAMES: 4.0}))
    assert not judged.signals[:, SIGNALS.index(RERANKER)].any()
    terms = terms_of([judged], Level.PASSAGE)
    assert terms.weight.tolist() == [0.5, 0.5]
    scores = judged.signals[:20] @ np.eye(len(SIGNALS))[WORDS]
    expected = entropy(softmax(4.0 * judged.signals[:20, NAMES]), softmax(scores))
    assert terms.losses(terms.signals[..., WORDS])[1] == pytest.approx(0.5 * expected)
    unlabelled = replace(judged, ways=dict.fromkeys(Level, ()))
    assert terms_of([unlabelled], Level.PASSAGE).weight.tolist() == [1.0]


def test_weights_that_are_distilled_imitate_the_reranker_without_it() -> None:
    telling = {WORDS: 6.0, NAMES: 12.0}
    unlabelled = [replace(each, ways=dict.fromkeys(Level, ())) for each in made_up(60, {})]
    learned, pull = learned_weights(distilled(taught(unlabelled, telling)), Level.PASSAGE)
    assert math.isfinite(pull)
    assert learned.names > 4 * max(learned.identifiers, learned.document, learned.agreement)
    assert learned.reranker == 0
    others = taught(made_up(100, {}, seed=1), telling)

    def agreement(weights: Weights) -> float:
        return float(
            np.mean([np.argmax(weights.scores(each.signals[:20])) == np.argmax(each.read[:20]) for each in others])
        )

    assert agreement(learned) > 1.5 * agreement(SHIPPED[Granularity.CHUNK])


def test_the_reranker_is_learned_as_a_signal_where_it_tells() -> None:
    judged = made_up(60, {SIGNALS.index(RERANKER): 2.0, WORDS: 1.0})
    assert learned_weights(judged, Level.PASSAGE)[0].reranker > 0.3
    candidate = learn_ranking(judged)
    assert RERANKER in candidate.weights[Granularity.CHUNK].signals


def test_results_that_the_reranker_orders_are_measured_in_its_order() -> None:
    [judged] = taught(made_up(1, {}), {NAMES: 1.0})
    shipped, first = SHIPPED[Granularity.CHUNK], judged.signals[:20]
    order = [each[2] for each in judged.ranked(shipped, Level.PASSAGE, CANDIDATES)]
    assert order[:20] == [judged.ids[row][2] for row in np.argsort(-first[:, NAMES])]
    rest = shipped.scores(judged.signals)[20:]
    assert order[20:] == [judged.ids[20 + row][2] for row in np.argsort(-rest)]
    own = replace(shipped, reranker=1.0)
    plain = [judged.ids[row] for row in np.argsort(-own.scores(judged.signals))]
    assert judged.ranked(own, Level.PASSAGE, CANDIDATES) == plain


def clicked(judged: list[JudgedQuestion], telling: int) -> list[JudgedQuestion]:
    """The same questions without evidence: of the first five, people open the one that a signal speaks most for."""
    found = []
    for each in judged:
        shown = np.argsort(-SHIPPED[Granularity.CHUNK].scores(each.signals))[:5]
        at = int(np.argmax(each.signals[shown, telling]))
        above = frozenset(each.ids[row][2] for row in shown[:at])
        clicks = ((each.ids[shown[at]][2], above),) if above else ()
        found.append(replace(each, ways=dict.fromkeys(Level, ()), clicks=clicks, is_measured=False))
    return found


def test_clicks_teach_that_what_was_opened_is_better_than_what_was_passed_over() -> None:
    judged = clicked(made_up(80, {}), NAMES)
    terms = terms_of(judged, Level.PASSAGE)
    assert (terms.is_evidence.sum(axis=1) == 1).all()
    assert terms.is_there.sum(axis=1).max() <= 5
    assert len(terms.weight) == sum(bool(each.clicks) for each in judged) < 80
    learned, _ = learned_weights(judged, Level.PASSAGE)
    assert learned.names > 2 * max(learned.identifiers, learned.document, learned.agreement)
    with pytest.raises(QueryError, match="no question can be measured"):
        learn_ranking(judged)  # they prove nothing
