"""The commands `train`: what a collection learns from its own questions, adopted where it proves better."""

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from rag_assets.cli.console import complain, open_home, print_json, print_table, say
from rag_assets.cli.progress import progress_display
from rag_assets.pipeline.opening import LEARNED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_assets.evaluation.statistics import Interval
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.learning import Trained

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_INSTEAD = {  # what is used where that cannot be
    "ranking_weights": "the shipped weights are used",
    "query_map": "vectors of questions are used as they are",
    "rewriter_model": "the rewriter without training is used",
}


@click.group()
def train() -> None:
    """Learn from accepted questions how this collection is searched best; adopted only where it proves better."""


@train.command("ranking")
@click.argument("questions", metavar="[QUESTIONS]", type=click.Path(path_type=Path, exists=True), required=False)
@click.option("--query-map", is_flag=True, help="Learn a map of query vectors, in place of weights.")
@click.option("--drafts", type=click.IntRange(0, 10_000), default=0, help="Learn from so many drafted questions, too.")
@click.option("--feedback", is_flag=True, help="Learn from thumbs up that nobody has accepted, too.")
@click.option("--clicks", is_flag=True, help="Learn from clicks on results of the web page, too.")
@click.option("--distill", is_flag=True, help="Learn from the reranker's scores, too, so that none is needed.")
@click.option(
    "--model",
    type=click.Choice(("linear", "trees")),
    default="linear",
    show_default=True,
    help="Weights, or boosted trees on top of the shipped ones (extra trees).",
)
@click.option("--adopt/--no-adopt", default=True, show_default=True, help="Bring it into force where it proves better.")
@click.pass_context
def ranking(
    context: click.Context,
    questions: Path | None,
    drafts: int,
    model: str,
    *,
    query_map: bool,
    feedback: bool,
    clicks: bool,
    distill: bool,
    adopt: bool,
) -> None:
    """Learn the weights of the default search from the accepted questions of QUESTIONS [setting evaluation.questions].

    What is drafted or not accepted is learned from, but proves nothing: the proof is on accepted questions, over
    documents that were not learned from.
    """
    from rag_assets.pipeline import learning

    trees = model == "trees"
    if query_map and (trees or clicks or distill):
        raise click.UsageError("--query-map goes without --model trees, --clicks and --distill: these are of weights")
    if trees and distill:
        raise click.UsageError("--distill goes with --model linear: trees do not learn from soft targets")
    options = learning.TrainingOptions(questions, drafts, feedback, adopt, clicks, distill, trees)
    learn = learning.train_query_map if query_map else learning.train_ranking
    home = open_home(context)
    with progress_display() as display:
        result = learn(home, options, display.phase("asking questions"))
    _tell(home, result)


@train.command("rewriter")
@click.argument("named_set", metavar="[SET]", type=click.Path(path_type=Path, exists=True), required=False)
@click.option("--qrels", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="TREC judgements of SET.")
@click.option("--drafts", type=click.IntRange(0), default=0, help="Train on so many drafted questions as well [0].")
@click.option("--model", help="Folder or hub name of the model [setting rewriter_training.model].")
@click.option("--steps", type=click.IntRange(0), help="Steps of reinforcement [setting rewriter_training.steps].")
@click.option("--adopt/--no-adopt", default=True, help="Whether it comes into force where it proves better [--adopt].")
@click.option("--anew", is_flag=True, help="Remove training of other questions, model or settings that was stopped.")
@click.pass_context
def rewriter(
    context: click.Context,
    named_set: Path | None,
    qrels: Path | None,
    drafts: int,
    model: str | None,
    steps: int | None,
    *,
    adopt: bool,
    anew: bool,
) -> None:
    """Train a model to rewrite questions for this collection, by the questions of SET; a stopped training goes on.

    Without SET, those of the setting evaluation.questions. Needs the extra `train`.
    """
    from rag_assets.pipeline import measuring
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.learning import train_candidate

    home = open_home(context)
    overrides = {name: value for name, value in {"model": model, "steps": steps}.items() if value is not None}
    settings = home.settings.rewriter_training.model_copy(update=overrides)
    home = Home(home.stated.model_copy(update={"rewriter_training": settings}))
    questions = measuring.accepted_questions(named_set or measuring.question_set(home), qrels)
    with progress_display() as display:
        progress = display.phase("training the rewriter")
        result = train_candidate(home, questions, drafts, adopts=adopt, anew=anew, progress=progress)
    if result is not None:
        _tell(home, result)


def _tell(home: "Home", result: "Trained") -> None:
    """What came of learning."""
    from rag_assets.pipeline.learning import TABLE_COLUMNS

    say(f"learned from {result.question_count} questions; measured on documents that were not learned from:")
    print_table(TABLE_COLUMNS, result.table())
    if result.facts:
        say("; ".join(f"{name}: {value}" for name, value in result.facts.items()))
    say(f"{result.name}: {result.reason}", bold=True)
    if result.version is not None:
        _warn_of_drift(home)


@train.command("adopt")
@click.argument("what", type=click.Choice(tuple(LEARNED)))
@click.argument("questions", metavar="[QUESTIONS]", type=click.Path(path_type=Path, exists=True), required=False)
@click.option("--force", is_flag=True, help="Adopt it although it is not proved better; its record says so.")
@click.pass_context
def adopt(context: click.Context, what: str, questions: Path | None, *, force: bool) -> None:
    """Bring the last candidate into force, as one kept by --no-adopt, if it proved better than what is in force.

    Where documents have changed since, or a query map is in force beside other weights, the accepted questions of
    QUESTIONS [setting evaluation.questions] are asked.
    """
    from rag_assets.pipeline.drift import bring_into_force
    from rag_assets.pipeline.measuring import accepted_questions
    from rag_assets.pipeline.opening import published_snapshot
    from rag_assets.training import adoption

    home, name = open_home(context), LEARNED[what]
    learned = published_snapshot(home).learned
    now = "".join(learned.get(name, ())[-1:])
    for place, record in adoption.learned_candidates(home.path, name)[:1]:
        say(
            f"last candidate: {_described(place, adoption.proof_against(record, now, learned))}",
            lines=True,
        )
    proof_questions = accepted_questions(questions) if questions is not None else None
    with home.lock():
        snapshot, problem, note = bring_into_force(home, name, proof_questions, is_forced=force)
    if problem:
        complain(f"adopted by --force, although {problem}")
    say(f"version {snapshot.number}: {snapshot.learned[name][-1]} is in force", bold=True)
    if note:
        say(note)
    _warn_of_drift(home)


@train.command("undo")
@click.argument("what", type=click.Choice(tuple(LEARNED)))
@click.argument("questions", metavar="[QUESTIONS]", type=click.Path(path_type=Path, exists=True), required=False)
@click.pass_context
def undo(context: click.Context, what: str, questions: Path | None) -> None:
    """Go back to what was in force before the last adoption.

    Where a query map is in force beside the weights, the accepted questions of QUESTIONS [setting
    evaluation.questions] are asked.
    """
    from rag_assets.pipeline.drift import undo_learned
    from rag_assets.pipeline.measuring import accepted_questions
    from rag_assets.pipeline.opening import published_snapshot

    home = open_home(context)
    published_snapshot(home)
    proof_questions = accepted_questions(questions) if questions is not None else None
    with home.lock():
        snapshot, note = undo_learned(home, LEARNED[what], proof_questions)
    places = snapshot.learned.get(LEARNED[what], ())
    now = f"{places[-1]} is in force again" if places else "the shipped one is in force"
    say(f"version {snapshot.number}: {now}")
    if note:
        say(note)


@train.command("status")
@click.pass_context
def status(context: click.Context) -> None:
    """What is in force, and what the last candidate reached."""
    from rag_assets.pipeline.opening import learning_problems, published_snapshot
    from rag_assets.training import adoption

    home = open_home(context)
    current = published_snapshot(home)
    problems, learned = learning_problems(home, current), current.learned
    for key, name in LEARNED.items():
        places = tuple(learned.get(name, ()))
        say(f"{key}: {places[-1] if places else 'as shipped'}", bold=True)
        if name in problems:
            say(f"  {problems[name]}; {_INSTEAD[name]} instead", lines=True)
        for place, record in adoption.candidates(home.path, name):
            if place in places[-1:]:
                proof = adoption.proof_against(record, "".join(places[-2:-1]), learned)
                say(f"  {_described('in force', proof)}", lines=True)
                for other_name, then in proof.get("beside", {}).items():
                    if then != "".join(learned.get(other_name, ())[-1:]):
                        say(
                            f"  it was proved beside other {other_name} than are in force now: "
                            "learn it again, or undo it"
                        )
                if record.get("forced"):
                    say(f"  {record['forced']}")
        for place, record in adoption.learned_candidates(home.path, name)[:1]:
            if place not in places[-1:]:
                proof = adoption.proof_against(record, "".join(places[-1:]), learned)
                say(f"  last candidate: {_described(place, proof)}", lines=True)
    if learned:
        _warn_of_drift(home)


def _warn_of_drift(home: "Home") -> None:
    """Say where nobody looks again at what is in force."""
    if home.settings.evaluation.questions is None:
        complain(
            "nothing looks again when documents change: no question set is named; set evaluation.questions, "
            "or RAG_EVALUATION__QUESTIONS"
        )
    elif home.settings.evaluation.gate == "off":
        complain("nothing looks again when documents change: the setting evaluation.gate is off")


def _described(place: str, record: "Mapping[str, Any]") -> str:
    """A stored candidate, for people: what it is, and what it reached, a line each level."""
    made_at = f"{record.get('made_at', '')}"[:16].replace("T", " ")
    reasons = f"{record.get('reason')}".replace("; ", "\n    ")
    return f"{place}, learned {made_at} UTC\n    {reasons}"


class Duration(click.ParamType[float]):
    """Seconds, also as `90s`, `30m` or `2h`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(value))
        if not match or not float(match[1]):
            self.fail(f"{value!r}: expected a time, as in 90s, 30m or 2h", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


@click.command()
@click.argument("named_set", metavar="[SET]", type=click.Path(path_type=Path, exists=True), required=False)
@click.option("--budget", type=Duration(), default="30m", show_default=True, help="Time that it may take, as in 30m.")
@click.option(
    "--usd",
    type=click.FloatRange(min=0),
    default=0.0,
    help="US dollars that the language model may cost; 0: not asked.",
)
@click.option(
    "--passage-tokens", type=click.IntRange(min=32), multiple=True, help="Also passages of this size, indexed beside."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def tune(
    context: click.Context,
    named_set: Path | None,
    budget: float,
    usd: float,
    passage_tokens: tuple[int, ...],
    *,
    as_json: bool,
) -> None:
    """Find which way of searching suits this collection, by the accepted questions of SET; adopts nothing.

    Without SET, those of the setting evaluation.questions. Ctrl-C prints what is known so far.
    """
    from rag_assets.evaluation.statistics import FEW, change_text
    from rag_assets.pipeline.opening import published_snapshot
    from rag_assets.pipeline.tuning import TuningBudget, planned_tuning
    from rag_assets.training.tuning import MEASURES, tuned

    deadline, home = time.monotonic() + budget, open_home(context)
    published_snapshot(home)
    with TemporaryDirectory(prefix="tuning-", dir=home.path) as scratch, progress_display() as display:
        report = display.phase(f"learning weights{', indexing with other passages' if passage_tokens else ''}")
        plan = planned_tuning(home, named_set, TuningBudget(deadline, usd), passage_tokens, Path(scratch))
        choosing, held_out = plan.choosing, plan.held_out

        def progress(done: int, total: int) -> None:
            nonlocal report
            if done == 1:  # of a rung or the last comparison, whose rate and time left are its own
                report = display.phase("asking questions")
            report(done, total)

        tuning = tuned(plan.candidates, choosing, held_out, deadline, progress=progress, documents=plan.documents)
    default, failures = plan.candidates[0], [candidate for candidate in plan.candidates[1:] if candidate.failure]
    tried_candidates = [candidate for candidate in plan.candidates if candidate.results and candidate not in failures]
    tried_candidates.sort(
        key=lambda candidate: (
            -candidate.rung,
            *(-mean for mean in candidate.means(choosing)),
            candidate is not tuning.winner,
        )
    )
    notes = [
        *plan.notes,
        *(f"{candidate.name}: left out: {candidate.failure}" for candidate in failures),
        *([tuning.ended] if tuning.ended else []),
    ]
    if len(held_out) < FEW:
        notes.append(f"only {len(held_out)} questions are held out: intervals of fewer than {FEW} are too narrow")
    for note in notes:
        complain(note)
    rows = [
        {
            "candidate": candidate.name,
            "rung": candidate.rung,
            "questions": sum(position in candidate.results for position in choosing),
            **{measure: _interval(candidate.interval(measure, choosing)) for measure in MEASURES},
            "milliseconds": round(candidate.milliseconds, 1),
            "usd": round(candidate.usd, 4),
        }
        for candidate in tried_candidates
    ]
    winner = tuning.winner
    is_worse = any(difference.difference.high < 0 for difference in tuning.differences.values())
    differences = {measure: _interval(difference.difference) for measure, difference in tuning.differences.items()}
    if as_json:
        names: dict[str, object] = {"winner": winner and winner.name, "is_worse": is_worse}
        names["adoption"] = None if is_worse else (winner and winner.adoption) or None
        counts = {"level": plan.level, "choosing": len(choosing), "held_out": len(held_out)}
        print_json({**counts, "candidates": rows, **names, "differences": differences, "notes": notes})
        return
    say(f"{len(choosing)} questions choose, {len(held_out)} are held out; {plan.level}s are searched for")
    columns = ("candidate", "rung", "questions", *MEASURES, "ms a search", "USD")
    print_table(columns, [[_cell(value) for value in row.values()] for row in rows])
    if winner is None:
        say(
            "no winner: nothing was compared on questions held out; rows say how many questions each was asked",
            bold=True,
        )
        return
    say(f"winner: {winner.name}", bold=True)
    for measure, difference in tuning.differences.items():
        say(f"{measure} on questions held out, winner less default: {change_text(difference.difference)}")
    if winner is default:
        return
    if is_worse:
        say("it is worse beyond the interval: keep the default", bold=True)
        return
    is_better = any(difference.difference.low > 0 for difference in tuning.differences.values())
    if not is_better:
        say("it is not better beyond the interval: the default may stay")
    say(f"nothing was adopted; to adopt it{'' if is_better else ' all the same'}: {winner.adoption}")


def _interval(interval: "Interval | None") -> dict[str, float] | None:
    if interval is None:
        return None
    return {"mean": round(interval.mean, 4), "low": round(interval.low, 4), "high": round(interval.high, 4)}


def _cell(value: object) -> object:
    return f"{value['mean']:.3f} [{value['low']:.3f}, {value['high']:.3f}]" if isinstance(value, dict) else value
