"""Whether what was learned on a collection still helps, where its rows have changed since.

It is looked at before a version with other rows is published, and before a candidate that was proved on other rows
comes into force. A query map is also looked at before the weights beside it change.

What is in force is measured against what would be used without it, by accepted questions that it was not learned from
and whose documents it was not learned from. Where these are too few to tell, all accepted questions are asked: they
flatter it, so it goes only where it is worse even on them. What got worse goes: weights level by level, each to the
newest version adopted before that is no worse, or to what is shipped. What stays out: learning, and the rule of
adoption (`rag_assets.training.adoption`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import ModelError, QueryError, StoreError
from rag_assets.contracts.modes import REWRITE_MODE
from rag_assets.evaluation.statistics import FEW, change_text
from rag_assets.pipeline.measuring import accepted_questions, open_corpus, question_set
from rag_assets.pipeline.opening import (
    LEARNED,
    frozen_rewriter,
    knowledge_base,
    learning_problems,
    reranker_name,
    trained_model,
    usable_ranking,
)
from rag_assets.query.search.ranking_weights import (
    MAP_ASSET,
    SHIPPED,
    WEIGHTS_ASSET,
    QueryMap,
    Ranking,
    Scorer,
    read_ranking,
    weights_files,
)
from rag_assets.text.plain import counted
from rag_assets.training.adoption import (
    LEAST_GROUPS,
    REWRITER_MODEL,
    Basis,
    Proof,
    adopt_candidate,
    basis_of,
    having,
    prove,
    store_candidate,
    undo,
    whole,
)

if TYPE_CHECKING:
    from rag_assets.contracts.ports import Rewriter
    from rag_assets.evaluation.evidence import Level
    from rag_assets.evaluation.questions import Question
    from rag_assets.pipeline.home import Home
    from rag_assets.store.snapshots import Snapshot
    from rag_assets.training.pairs import JudgedQuestion

    Plain = Callable[[], list[JudgedQuestion]]  # the questions, searched without a query map

_UNTOLD, _TOO_FEW = "cannot be told", "too few questions to tell"
_SEARCH_MEASURE = "nDCG@10"  # of rewriters that were trained to raise F1 of answers: no answer is paid for here
Asked = Sequence[tuple[str, Collection[str]]]  # id and documents of each question


@dataclass(frozen=True)
class _Look:
    """What something learned reaches, against what would be used without it."""

    proofs: tuple[Proof, ...]  # one a level; empty where nothing can be measured
    unseen: int  # questions that it was not learned from
    groups: int  # of documents that these share

    @property
    def is_worse(self) -> bool:
        """Whether it is worse beyond the interval."""
        return any(proof.difference.high < 0 for proof in self.proofs)

    def __str__(self) -> str:
        changes = ", ".join(f"{proof.measure} {change_text(proof.difference)}" for proof in self.proofs)
        if _are_enough(self.unseen, self.groups):
            return f"{changes} on {counted(self.unseen, 'question')} that it was not learned from"
        on, need = f"on {counted(self.groups, 'document')}", f"{FEW} on {LEAST_GROUPS} are needed"
        if not self.proofs:
            return f"{_TOO_FEW}: {self.unseen} that it was not learned from, {on}; {need}"
        count = max(proof.difference.count for proof in self.proofs)
        if not self.is_worse:
            unseen = f"{self.unseen} of which it was not learned from, {on}"
            return f"no worse on {counted(count, 'question')}, {unseen}: too few to tell more; {need}"
        return f"{changes} on {counted(count, 'question')}, {self.unseen} of which it was not learned from"


def bring_into_force(
    home: "Home",
    name: str,
    questions: "Sequence[Question] | None" = None,
    place: str = "",
    *,
    is_forced: bool = False,
) -> "tuple[Snapshot, str, str]":
    """Bring a stored candidate into force where it proved better than what is; to be done under the lock of the home.

    Where rows have changed since its proof, what it reaches on them is looked at first. Beside other weights the query
    map in force is looked at as well, and goes where it is worse than none.

    Args:
        home: The knowledge base.
        name: What was learned.
        questions: Accepted questions of this look; None for those of the settings.
        place: As for `adopt_candidate`, like the rest.
        is_forced: Whether it comes into force whatever was proved.

    Returns:
        The version, what speaks against it as for `adopt_candidate`, and how the query map does beside other weights;
        empty where it was not looked at.
    """

    def look(version: "Snapshot") -> str:
        before = f"the rows of version {version.number} are others than those that it was proved on"
        try:
            proof_questions = _accepted(home, questions)
        except QueryError as error:
            return f"{before}, and there are no questions to look again: {error}"
        best_version, note = without_worse(home, version, proof_questions, (name,), stores=False)
        is_told = not any(phrase in note for phrase in (_UNTOLD, _TOO_FEW))
        return "" if best_version == version and is_told else f"{before}: {note}"

    def usable(version: "Snapshot") -> str:
        problem = learning_problems(home, version, (name,)).get(name)
        return f"it cannot be used here: {problem}" if problem else ""

    notes: list[str] = []
    settle = partial(_without_worse_map, home, name, questions, notes)
    version, problem = adopt_candidate(
        home.path, home.snapshots, name, look, usable, settle, place=place, is_forced=is_forced
    )
    return version, problem, "".join(notes)


def undo_learned(home: "Home", name: str, questions: "Sequence[Question] | None" = None) -> "tuple[Snapshot, str]":
    """Go back to what was in force before; to be done under the lock of the home.

    Args:
        home: The knowledge base.
        name: What was learned.
        questions: As for `bring_into_force`.

    Returns:
        The version, and how the query map does beside other weights, as `bring_into_force` does.
    """
    notes: list[str] = []
    version = undo(home.snapshots, name, partial(_without_worse_map, home, name, questions, notes))
    return version, "".join(notes)


def _accepted(home: "Home", questions: "Sequence[Question] | None") -> "Sequence[Question]":
    return accepted_questions(question_set(home)) if questions is None else questions


def _without_worse_map(
    home: "Home", name: str, questions: "Sequence[Question] | None", notes: list[str], version: "Snapshot"
) -> "Snapshot":
    """A version with other weights, without a query map that is worse than none beside them; `notes` are told.

    Nothing that stands in the way of this look holds back the weights.
    """
    if name != WEIGHTS_ASSET or (places := version.learned.get(MAP_ASSET)) is None:
        return version
    try:
        version, note = without_worse(home, version, _accepted(home, questions), (MAP_ASSET,))
    except (ModelError, QueryError, StoreError) as error:
        note = f"{MAP_ASSET}: {_UNTOLD}: {error}"
    stays = "; it stays in force" if version.learned.get(MAP_ASSET) == places else ""
    notes.append(f"beside these weights {note}{stays}")
    return version


def without_worse(
    home: "Home",
    candidate: "Snapshot",
    questions: "Sequence[Question]",
    names: Collection[str] = tuple(LEARNED.values()),
    *,
    stores: bool = True,
) -> "tuple[Snapshot, str]":
    """A version before it is published, without what was learned and is now worse than doing without.

    Args:
        home: The knowledge base.
        candidate: The version.
        questions: Accepted questions.
        names: What is looked at.
        stores: Whether the version is to be published, so that weights that are put together from what was adopted are
            stored; else it is that without any of them, and the note does not say what comes back.

    Returns:
        The version, and how what was learned does in it; empty where nothing is in force.

    Raises:
        ModelError: The embedder failed.
        StoreError: A file of the version is damaged.
    """
    plain = cache(partial(_judged, home, candidate, questions, None))
    looks = {
        WEIGHTS_ASSET: partial(_weights_not_worse, plain=plain, stores=stores),
        MAP_ASSET: partial(_map_not_worse, questions=questions, plain=plain, stores=stores),
        REWRITER_MODEL: partial(_rewriter_not_worse, questions=questions, stores=stores),
    }
    notes, problems = [], learning_problems(home, candidate, names)
    for name in names:
        if name in problems:
            notes.append(f"{name} cannot be used here, and so was not looked at: {problems[name]}")
            continue
        candidate, note = looks[name](home, candidate)
        notes.append(note)
    return candidate, "; ".join(filter(None, notes))


def _look(basis: Basis | None, question_documents: Asked, provers: Sequence[Callable[[Sequence[int]], Proof]]) -> _Look:
    """What is reached on questions that were not learned from; on all where these are too few.

    Args:
        basis: What was learned from; None where that is not known.
        question_documents: The questions.
        provers: For each level, the proof by questions at some positions.
    """
    from rag_assets.training.pairs import document_groups

    groups = document_groups([documents for _, documents in question_documents])

    def proofs_at(positions: Sequence[int]) -> tuple[tuple[Proof, ...], int, int]:
        proofs = _proofs(positions, provers)
        return (
            proofs,
            max((proof.difference.count for proof in proofs), default=0),
            len({groups[at] for at in positions}),
        )

    proofs, count, of = proofs_at(
        [] if basis is None else [at for at, question in enumerate(question_documents) if not basis.knows(*question)]
    )
    if not _are_enough(count, of):
        proofs, *counts = proofs_at(range(len(question_documents)))
        proofs = proofs if _are_enough(*counts) else ()
    return _Look(proofs, count, of)


def _are_enough(questions: int, groups: int) -> bool:
    """Whether so many questions, on so many groups of documents, tell anything."""
    return questions >= FEW and groups >= LEAST_GROUPS


def _proofs(positions: Sequence[int], provers: Sequence[Callable[[Sequence[int]], Proof]]) -> tuple[Proof, ...]:
    proofs = []
    for prover in provers:
        with suppress(QueryError):  # nothing was judged at that level
            proofs.append(prover(positions))
    return tuple(proofs)


def _holding(places: Sequence[str], look: Callable[[str], _Look | None]) -> tuple[str, list[_Look]]:
    """The newest place of what is no worse than doing without, or empty, and the looks that this took.

    Args:
        places: What was adopted, the newest last.
        look: What a place reaches; None where it cannot be read.
    """
    looks = []
    for place in reversed(places):
        if (result := look(place)) is not None:
            looks.append(result)
            if not result.is_worse:
                return place, looks
    return "", looks


def _places_not_worse(
    snapshot: "Snapshot", name: str, look: Callable[[str], _Look | None], *, stores: bool
) -> "tuple[Snapshot, str]":
    """A version with the newest place that holds, of what is one whole."""
    places = snapshot.learned[name]
    place, looks = _holding(places, look)
    if place == places[-1]:
        return snapshot, f"{name}: {looks[0]}"
    then = f"; {place} is in force again" if place else "; it is out of force"
    usable_places = places[: places.index(place) + 1] if place else ()
    note = f"{name} is worse than doing without: {looks[0]}{then if stores else ''}"
    return having(snapshot, name, usable_places), note


def _judged(
    home: "Home", snapshot: "Snapshot", questions: "Sequence[Question]", query_map: QueryMap | None
) -> "list[JudgedQuestion]":
    from rag_assets.training.pairs import judged_questions

    base, corpus = knowledge_base(home, snapshot), open_corpus(home, snapshot)
    return judged_questions(
        base.variant(replace(base.options, ranking=Ranking(query_map=query_map))), corpus, questions
    )


def _weights_not_worse(home: "Home", snapshot: "Snapshot", plain: "Plain", *, stores: bool) -> "tuple[Snapshot, str]":
    """A version with weights that are no worse than those shipped, for passages, pages and documents by themselves.

    They are measured without the query map, as they were learned.
    """
    from rag_assets.training.ranking import LEVELS, proof_of

    ranking, _ = usable_ranking(home, snapshot)
    if ranking.weights == SHIPPED:
        return snapshot, ""
    places, weights_by_place = snapshot.learned[WEIGHTS_ASSET], _learned_weights(home, snapshot)
    judged = plain()
    question_documents = [(question.id, question.documents) for question in judged]

    def look(level: "Level", place: str) -> _Look | None:
        if place not in weights_by_place:
            return None
        shipped_weights, own = SHIPPED[LEVELS[level]], weights_by_place[place][LEVELS[level]]

        def prover(positions: Sequence[int]) -> Proof:
            sample = [judged[at] for at in positions]
            return proof_of(sample, level, [shipped_weights] * len(sample), sample, [own] * len(sample))

        return _look(basis_of(home.path, place), question_documents, [prover])

    scorers: dict[str, Scorer] = dict(SHIPPED)
    used_places, worse, notes = [], [], []
    for level, granularity in LEVELS.items():
        if ranking.weights[granularity] == SHIPPED[granularity]:
            continue
        place, looks = _holding(places, partial(look, level))
        if place:
            scorers[granularity] = weights_by_place[place][granularity]
            used_places.append(place)
        if place == places[-1]:
            notes.append(f"for {level}s {looks[0]}")
        else:
            worse.append(looks[0])
            now = f": those {f'of {place}' if place else 'shipped'} are in force again" if stores else ""
            notes.append(f"for {level}s worse than those shipped, {looks[0]}{now}")
    note = f"{WEIGHTS_ASSET}: {', '.join(notes)}"
    if worse:
        proof = replace(worse[0].proofs[0], is_better=False, reason="; ".join(notes))
        places = _places(home, snapshot, scorers, used_places, weights_by_place, proof) if stores else ()
        snapshot = having(snapshot, WEIGHTS_ASSET, places)
    return snapshot, note


def _learned_weights(home: "Home", snapshot: "Snapshot") -> dict[str, Mapping[str, Scorer]]:
    """Weights of all places of a version that can be read."""
    weights_by_place: dict[str, Mapping[str, Scorer]] = {}
    for place in snapshot.learned[WEIGHTS_ASSET]:
        with suppress(ModelError, StoreError):
            weights_by_place[place] = read_ranking(whole(home.path, place), None, "", reranker_name(home)).weights
    return weights_by_place


def _places(
    home: "Home",
    snapshot: "Snapshot",
    scorers: Mapping[str, Scorer],
    used_places: Sequence[str],
    weights_by_place: Mapping[str, Mapping[str, Scorer]],
    proof: Proof,
) -> Sequence[str]:
    """Places of what was adopted, the last with these weights; they are stored where no place before holds the same."""
    *before, last = snapshot.learned[WEIGHTS_ASSET]
    if scorers == SHIPPED:
        return ()
    if positions := [at for at, place in enumerate(before, start=1) if weights_by_place.get(place) == scorers]:
        return before[: positions[-1]]
    while before and before[-1] not in used_places:
        before.pop()
    bases = [basis for basis in (basis_of(home.path, place) for place in used_places) if basis is not None]
    questions = frozenset[str]().union(*(basis.questions for basis in bases))
    documents = frozenset[str]().union(*(basis.documents for basis in bases))
    basis = Basis(questions, documents, snapshot.number, last) if len(bases) == len(used_places) else None
    files = weights_files(scorers, reranker_name(home))
    return *before, store_candidate(home.path, WEIGHTS_ASSET, files, proof, basis, is_mixed=True)


def _map_not_worse(
    home: "Home", snapshot: "Snapshot", questions: "Sequence[Question]", plain: "Plain", *, stores: bool
) -> "tuple[Snapshot, str]":
    """A version with a map of query vectors that is no worse than none, by the weights in force."""
    from rag_assets.training.ranking import LEVELS, proof_of

    ranking, _ = usable_ranking(home, snapshot)
    if ranking.query_map is None:
        return snapshot, ""
    judged = plain()
    question_documents = [(question.id, question.documents) for question in judged]

    def look(place: str) -> _Look | None:
        try:
            query_map = read_ranking(None, whole(home.path, place), snapshot.embedder).query_map
        except StoreError:
            return None
        if query_map is None:  # of another embedder
            return None
        by_map = _judged(home, snapshot, questions, query_map)

        def prover(level: "Level", positions: Sequence[int]) -> Proof:
            own = [ranking.weights[LEVELS[level]]] * len(positions)
            return proof_of([judged[at] for at in positions], level, own, [by_map[at] for at in positions], own)

        return _look(basis_of(home.path, place), question_documents, [partial(prover, level) for level in LEVELS])

    return _places_not_worse(snapshot, MAP_ASSET, look, stores=stores)


def _rewriter_not_worse(
    home: "Home", snapshot: "Snapshot", questions: "Sequence[Question]", *, stores: bool
) -> "tuple[Snapshot, str]":
    """A version with a trained rewriter that is no worse than the one without training."""
    from rag_assets.evaluation.evidence import Level
    from rag_assets.query.search.trained_rewriting import TrainedModel, TrainedRewriter
    from rag_assets.training.pairs import document_groups
    from rag_assets.training.rewards import READER, SearchReward

    if trained_model(home, snapshot) is None:
        return snapshot, ""
    settings = home.settings.rewriter_training
    measure = _SEARCH_MEASURE if settings.reward == READER else settings.reward
    base, by_text = knowledge_base(home, snapshot), {question.text: question for question in questions}
    reward = SearchReward(base, open_corpus(home, snapshot), [*by_text.values()], measure, Level(settings.level))
    usable = [question for question in by_text.values() if reward.rewards(question)]
    question_documents = [(question.id, reward.documents(question)) for question in usable]
    groups = document_groups([documents for _, documents in question_documents])
    frozen = frozen_rewriter(base)

    def values(rewriter: "Rewriter") -> list[float]:
        return [reward.value(base.variant(base.options, rewriter), question, REWRITE_MODE) for question in usable]

    def look(place: str) -> _Look | None:
        try:
            model = TrainedModel.load(whole(home.path, place), home.settings.embedding.threads)
        except StoreError:
            return None
        after = values(TrainedRewriter(model, frozen))

        def prover(positions: Sequence[int]) -> Proof:
            then, now = ([side[at] for at in positions] for side in (before, after))
            return prove(f"{reward.name} of mode {REWRITE_MODE}", then, now, {}, [groups[at] for at in positions])

        return _look(basis_of(home.path, place), question_documents, [prover])

    try:
        before = values(frozen)
        return _places_not_worse(snapshot, REWRITER_MODEL, look, stores=stores)
    except ModelError as error:  # as where the budget is spent
        return snapshot, f"{REWRITER_MODEL}: {_UNTOLD}: {error}"
