"""The gate: a version is measured by accepted questions before readers see it, and held back where it answers worse.

What a version reached is recorded, so that a version of another embedder can be compared as well. What stays out: how
versions are measured (`rag_assets.evaluation`) and published (`rag_assets.store.publish`).
"""

import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag_assets.contracts.errors import EvaluationError, ModelError, QueryError, RagAssetsError, StoreError
from rag_assets.contracts.tables import TABLES
from rag_assets.pipeline.measuring import GATE, open_corpus, record
from rag_assets.pipeline.opening import knowledge_base
from rag_assets.store.integrity import schema_problems
from rag_assets.text.plain import counted

if TYPE_CHECKING:
    from rag_assets.evaluation.questions import Question
    from rag_assets.evaluation.runs import Evaluation
    from rag_assets.pipeline.home import Home
    from rag_assets.store.snapshots import Snapshot

_MEASURES = (("passage", "R@5"), ("answer", "correct"))
_NAMED = 10  # questions that got worse, in a message
_GONE_NAMED = 3  # questions that are not asked, in a message
_log = logging.getLogger(__name__)

Scores = Mapping[str, Mapping[str, float]]  # by measure and question


@dataclass(frozen=True)
class Regression:
    """A question that the new version does worse on."""

    question_id: str
    text: str
    # by measure, as in `answer correct`, what the version that readers see reaches and what the new one does
    changes: Mapping[str, tuple[float, float]]

    def __str__(self) -> str:
        changes = ", ".join(
            f"{measure} {before:.2f} before, {after:.2f} now" for measure, (before, after) in self.changes.items()
        )
        return f"{self.question_id} ({changes}): {self.text}"


@dataclass(frozen=True)
class GateVerdict:
    """What was measured of a version."""

    scores: Scores
    held: bool  # whether it is worse beyond the interval by one of the measures
    regressions: tuple[Regression, ...]  # the questions that it does worse on, the largest loss first
    note: str  # how it compares by each measure, and what there is to know besides, in words

    def __str__(self) -> str:
        losses = "; ".join(map(str, self.regressions[:_NAMED]))
        rest = f"; and {len(self.regressions) - _NAMED} more" if len(self.regressions) > _NAMED else ""
        return f"{self.note}; worse: {losses}{rest}" if losses else self.note


@dataclass(frozen=True)
class _Measurement:
    """What a version reached."""

    scores: Scores  # by measure and question
    # why the language model did not answer, by question; such answers have no score
    failures: Mapping[str, str] = field(default_factory=dict)
    # ids of the questions that were not asked, as their document or quote is gone, with the document
    gone: Mapping[str, str] = field(default_factory=dict)
    run: "Evaluation | None" = None  # the run that tells it; None where it was read from the records


class Gate:
    """Measures versions of a knowledge base before they are published.

    Args:
        home: The knowledge base.
        overridden_by: Who has a version published whatever it reaches; None for nobody.

    Attributes:
        verdict: What was found; None where nothing was measured.
    """

    def __init__(self, home: "Home", overridden_by: str | None = None) -> None:
        self.overridden_by = overridden_by
        self.verdict: GateVerdict | None = None
        self._home = home
        self._settings = home.settings.evaluation
        self._runs: list[tuple[Evaluation, int | None]] = []  # with the version; None of the candidate
        self._problem = ""  # why nothing was measured

    @property
    def summary(self) -> str:
        """What was found, and who published a version all the same, in words."""
        no_verdict = f"not measured: {self._problem}" if self._problem else "not measured"
        result = no_verdict if self.verdict is None else str(self.verdict)
        return f"published anyway by {self.overridden_by}: {result}" if self.overridden_by else result

    def check(self, candidate: "Snapshot", current: "Snapshot | None") -> "Snapshot":
        """Measure a version, and hold it back where it is worse than the one that readers see.

        Returns:
            The version to publish: without what was learned on the collection and no longer helps.

        Raises:
            EvaluationError: It is, by `evaluation.gate` it is held back, and nobody overrides that. Where somebody
                does, nothing is raised.
            ModelError: A model that searches failed.
            QueryError: The question set cannot be read.
            StoreError: A file of the new version is damaged.
        """
        drift = ""
        try:
            learned = candidate.learned
            candidate, drift = self._without_drift(candidate)
            self.verdict = self._compared(candidate, current, has_dropped=candidate.learned != learned)
        except RagAssetsError as error:
            if self.overridden_by is None:
                raise
            self._problem = str(error)
            _log.warning("accepted questions are not measured: %s", error)
        if drift and self.verdict is not None:
            self.verdict = replace(self.verdict, note=f"{self.verdict.note}; {drift}")
        holds_back = self.verdict is not None and self.verdict.held
        if holds_back and self._settings.gate == "block" and self.overridden_by is None:
            self._record(None)
            raise EvaluationError(
                f"nothing is published, readers keep version {current.number if current else 'none'}: {self.verdict}; "
                "`rag-assets publish --anyway` publishes it all the same"
            )
        return candidate

    def keep(self, published: "Snapshot") -> None:
        """Record what a version reached."""
        self._record(published.number)

    def _record(self, version: int | None) -> None:
        """Record what the version that readers saw reached, where that is not told yet, then what the new one did.

        Of a version that somebody published unmeasured, who did is recorded.
        """
        if self._settings.questions is None or not (self._runs or self.overridden_by):
            return
        from rag_assets.evaluation.evidence import Level
        from rag_assets.evaluation.records import recorded_runs, set_digest
        from rag_assets.evaluation.runs import Evaluation, RunOptions
        from rag_assets.evaluation.scores import figures

        rows = [row for row in recorded_runs(self._home.lake) if row["made_by"] == GATE]
        recorded_keys = {(row["version"], row["mode"], row["set_digest"]) for row in rows}
        if version is None and rows and rows[0]["version"] is None and rows[0]["warnings"] == [self.summary]:
            return  # it was held back before
        mode = self._home.settings.search.ask_mode
        options = RunOptions(("R@5",), (Level.PASSAGE,))
        for run, number in self._runs or [(Evaluation((), options, {mode: {}}, {mode: {}}, {}), None)]:
            if number is not None and (number, run.systems[0], set_digest(run.questions)) in recorded_keys:
                continue
            again = f"measured when the next version was compared with version {number}"
            notes = [self.summary if number is None else again]
            versions = dict.fromkeys(run.systems, version if number is None else number)
            record(self._home, run, figures(run), versions, self._settings.questions, GATE, notes)

    def _without_drift(self, candidate: "Snapshot") -> "tuple[Snapshot, str]":
        """The version without what was learned and is worse than doing without now, and how it all does, in words."""
        questions = self._questions() if any(candidate.learned.values()) else []
        if not questions:
            return candidate, ""
        from rag_assets.pipeline.drift import without_worse

        snapshot, drift = without_worse(self._home, candidate, questions)
        if snapshot != candidate:
            _log.warning("%s", drift)
        return snapshot, drift

    def _questions(self) -> "list[Question]":
        """The accepted questions; none where the gate is off."""
        if self._settings.questions is None or self._settings.gate == "off":
            return []
        from rag_assets.evaluation.questions import read_questions

        return [question for question in read_questions(self._settings.questions) if not question.draft]

    def _compared(self, candidate: "Snapshot", current: "Snapshot | None", *, has_dropped: bool) -> GateVerdict | None:
        """How a version compares with the one that readers see.

        Args:
            candidate: The version.
            current: The one that readers see.
            has_dropped: Whether something learned is out of force in the version. It may have flattered the questions
                that it was learned from: then both are measured without it, and nothing is recorded of the old one.
        """
        questions = self._questions()
        if not questions:
            return None
        after = self._measured(candidate, questions)
        if current is not None and has_dropped:
            before = replace(self._before(replace(current, learned=candidate.learned), questions), run=None)
        else:
            before = self._before(current, questions) if current is not None else _Measurement({})
        summary = ((before.run, current.number if current else None), (after.run, None))
        self._runs = [(run, number) for run, number in summary if run is not None]
        return _verdict(questions, before, after)

    def _before(self, current: "Snapshot", questions: "list[Question]") -> _Measurement:
        """What the version that readers see reaches; as it was recorded, where it cannot be searched any more."""
        try:
            if self._has_declared_columns(current):
                return self._measured(current, questions)
        except (ModelError, QueryError, StoreError) as error:  # as of another embedder, or a damaged file
            _log.warning("version %d is compared by the figures recorded of it: %s", current.number, error)
        return _Measurement(self._recorded(current.number))

    def _has_declared_columns(self, snapshot: "Snapshot") -> bool:
        """Whether no file has other columns than those declared; such files read as empty."""
        tables = [(TABLES[name], versions) for name, versions in snapshot.tables.items() if name in TABLES]
        return not any(schema_problems(self._home.lake, table, versions) for table, versions in tables)

    def _recorded(self, number: int) -> Scores:
        from rag_assets.evaluation.records import recorded_results, recorded_runs, value_of
        from rag_assets.evaluation.runs import ANSWER

        try:
            runs = [row for row in recorded_runs(self._home.lake) if (row["made_by"], row["version"]) == (GATE, number)]
            rows = recorded_results(self._home.lake, runs[0]["run_id"]) if runs else []
        except StoreError as error:
            _log.warning("what version %d reached cannot be read: %s", number, error)
            return {}
        scores = {
            f"{level} {measure}": {
                row["question_id"]: value_of(row, level, measure)
                for row in rows
                if not (level == ANSWER and row["failure"])
            }
            for level, measure in _MEASURES
        }
        return {name: {key: value for key, value in of.items() if not math.isnan(value)} for name, of in scores.items()}

    def _measured(self, snapshot: "Snapshot", questions: "list[Question]") -> _Measurement:
        from rag_assets.evaluation.evidence import Level
        from rag_assets.evaluation.runs import ANSWER, RunOptions, System, evaluate

        base, corpus = knowledge_base(self._home, snapshot), open_corpus(self._home, snapshot)
        targets = corpus.targets(questions)
        gone_documents = {
            question.id: targets[question.id].gone[0].document for question in questions if targets[question.id].gone
        }
        live_questions = [question for question in questions if question.id not in gone_documents]
        if not live_questions:
            return _Measurement({}, gone=gone_documents)
        mode = self._home.settings.search.ask_mode
        system = System(mode, base, corpus, mode)
        options = RunOptions(("R@5",), (Level.PASSAGE,), answers=True)
        try:
            run = evaluate([system], live_questions, options)
            replies = {key: result.reply for key, result in run.results[mode].items()}
            failures = {key: reply.failure for key, reply in replies.items() if reply and reply.failure}
        except ModelError as error:  # as where the budget is spent: searches are measured all the same
            run = evaluate([system], live_questions, replace(options, answers=False))
            failures = {question.id: str(error) for question in live_questions}
        scores = {
            f"{level} {measure}": {
                question.id: value
                for question, value in zip(live_questions, run.values(mode, level, measure), strict=True)
                if not math.isnan(value) and not (level == ANSWER and question.id in failures)
            }
            for level, measure in _MEASURES
        }
        return _Measurement(scores, failures, gone_documents, run)


def _verdict(questions: "list[Question]", before: _Measurement, after: _Measurement) -> GateVerdict:
    holds_back, notes = False, []
    losses: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for name, now_reached in after.scores.items():
        then_reached = before.scores.get(name, {})
        pairs = {key: (then_reached[key], now_reached[key]) for key in sorted(then_reached.keys() & now_reached.keys())}
        if not pairs:
            continue
        is_held, words = _compared(name, list(pairs.values()))
        holds_back |= is_held
        notes.append(words)
        for key, (then, now) in pairs.items():
            if now < then:
                losses[key][name] = then, now
    notes.sort(key=lambda words: not words.startswith("worse"))
    texts = {question.id: question.text for question in questions}
    regressions = [Regression(key, texts[key], changes) for key, changes in losses.items()]
    regressions.sort(
        key=lambda regression: (min(now - then for then, now in regression.changes.values()), regression.question_id)
    )
    if not notes and after.run is not None:
        notes.append("there are no figures of the version before")
    if after.gone:
        examples = ", ".join(f"{key} ({document})" for key, document in list(after.gone.items())[:_GONE_NAMED])
        rest = f" and {len(after.gone) - _GONE_NAMED} more" if len(after.gone) > _GONE_NAMED else ""
        of = f"{len(after.gone)} of {counted(len(questions), 'question')}"
        notes.append(f"not asked, as the document or quote is gone: {of}: {examples}{rest}")
    if failures := {**before.failures, **after.failures}:
        notes.append(f"not compared: {counted(len(failures), 'answer')}: {next(iter(failures.values()))}")
    return GateVerdict(after.scores, holds_back, tuple(regressions), "; ".join(notes))


def _compared(name: str, pairs: Sequence[tuple[float, float]]) -> tuple[bool, str]:
    """Whether values of a measure, before and after, are worse beyond the interval; how they compare, in words."""
    import numpy as np

    from rag_assets.evaluation.statistics import is_worse, paired_bootstrap, visible_change

    before, after = np.array(pairs).T
    change = paired_bootstrap(after.tolist(), before.tolist()).difference
    holds_back = is_worse(change, after - before)
    if change.mean == 0:
        kind = "no change" if np.array_equal(after, before) else "no change on the whole"
    else:
        is_beyond = change.high < 0 or change.low > 0
        extent = "beyond the interval" if is_beyond else "on every question" if holds_back else "within the interval"
        kind = f"{'worse' if change.mean < 0 else 'better'} {extent}"
    words = f"{name} {change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}] on {counted(len(pairs), 'question')}"
    if not holds_back and change.low <= 0:
        words += f", which show{'s' if len(pairs) == 1 else ''} changes from {visible_change(after - before):.2f} on"
    return holds_back, f"{kind}: {words}"
