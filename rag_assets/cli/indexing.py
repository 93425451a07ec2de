"""Commands that bring the knowledge base in step: `index`, `plan`, `status`, `verify`, `snapshots`, `ui`."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from rag_assets.cli.console import NAMES_SHOWN, check_exists, complain, open_home, print_json, print_table, say
from rag_assets.cli.interruption import interruptible
from rag_assets.cli.progress import ProgressDisplay, progress_display
from rag_assets.contracts.causes import DocumentStatus

if TYPE_CHECKING:
    from rag_assets.parsing.records import IncompleteDocument
    from rag_assets.pipeline.home import Home
    from rag_assets.pipeline.plan import Plan
    from rag_assets.pipeline.repair import Repair
    from rag_assets.sources.changes import Changes, Listing
    from rag_assets.store.damage import Damage

    Stored = dict[str, dict[str, str | None]]

_DAMAGE_LINES = 5  # a folder that is gone is many files
_KEPT = "finished steps and model answers are kept; the next `rag-assets index` goes on from there"


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--forget", metavar="NAME", multiple=True, help="Take out a source named earlier, with its documents.")
@click.option(
    "--force", metavar="GLOB", multiple=True, help="Compute documents anew, as in 'specs/**/*.xlsx'; '*' for all."
)
@click.option("--allow-empty", is_flag=True, help="Believe a source that suddenly holds no file.")
@click.option("--full-check", is_flag=True, help="Compare the bytes of every file, whatever size and times say.")
@click.option("--accept-settings", is_flag=True, help="Compute anew what was built with other settings.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def index(
    context: click.Context,
    sources: tuple[str, ...],
    forget: tuple[str, ...],
    force: tuple[str, ...],
    *,
    allow_empty: bool,
    full_check: bool,
    accept_settings: bool,
    as_json: bool,
) -> None:
    """Bring the knowledge base in step with its sources.

    A SOURCE is a folder or an fsspec URI, as LOCATION or NAME=LOCATION. It is remembered, so that later runs, the
    schedule and the sensor index it too. Without SOURCE, all known sources are indexed.
    """
    with interruptible(_KEPT):
        start_time = datetime.now(UTC)
        home = open_home(context)
        with progress_display() as progress:
            progress.phase("starting")
            with home.lock():
                repair = mended(home)
        with home.lock():  # not while something is drawn: it may ask a question
            settle_settings(home, accept=accept_settings)
        with progress_display() as progress, home.lock():
            _register(context, home, sources, forget, progress)
            if force:
                from rag_assets.pipeline.freshness import force_documents
                from rag_assets.pipeline.language_models import forget_unusable_answers
                from rag_assets.pipeline.steps import FORCED

                result = force_documents(home.lake, force, list(FORCED))
                forget_unusable_answers(home, result.documents)
            indexing = _index(home, repair, progress, allow_empty=allow_empty, full_check=full_check)
        _print_index_summary(home, indexing, start_time, as_json=as_json)
    _print_source_notes(home, indexing.listing)
    for problem in indexing.changes.unreachable.values():
        complain(problem)
    if indexing.changes.unreachable:
        context.exit(1)


@dataclass(frozen=True)
class _Indexing:
    """What a run of `index` had to do."""

    listing: "Listing"
    changes: "Changes"
    # calls of the language model, tokens and price that were expected; None without a language model
    planned: dict[str, float] | None
    seconds: float
    failed_before: frozenset[tuple[str, str]]  # documents that were not indexed before the run, with what was wrong


def _register(
    context: click.Context, home: "Home", sources: Sequence[str], forget: Sequence[str], progress: ProgressDisplay
) -> None:
    """Remember the sources that are given, once each was listed, and forget others."""
    from rag_assets.sources.changes import forgotten_sources, stored_counts, stored_roots, update_sources
    from rag_assets.sources.listing import parse_source, scan_source

    new_sources = [parse_source(text) for text in sources]
    settings = home.settings.source
    for source in new_sources:
        report = progress.phase(f"looking at source {source.name}")
        scan_source(source, settings.include, settings.exclude, home.excluded_paths, report)
    stored_facts = stored_counts(home.lake), stored_roots(home.lake)
    update_sources(home.registered_sources, new_sources, forget, home.settings.sources, *stored_facts)
    if not home.sources() and not forgotten_sources(home.settings.sources, home.registered_sources):
        raise click.UsageError("no source: name a folder, or set RAG_SOURCES", ctx=context)


def settle_settings(home: "Home", *, accept: bool) -> None:
    """Store the settings of a run; those that contradict what is stored are asked about, or refused without a terminal.

    Args:
        home: The knowledge base.
        accept: Compute anew what was built with other settings. To delete what was built takes its own command.

    Raises:
        SettingsError: Settings contradict what is stored, and nobody said that they are meant.
    """
    from rag_assets.pipeline.stored_settings import contradiction_error

    open_questions = tuple(
        contradiction for contradiction in home.contradictions() if not (accept and contradiction.accepted_by_option)
    )
    if open_questions:
        lines = "\n".join(contradiction.difference for contradiction in open_questions)
        if not (sys.stdin.isatty() and click.confirm(f"{lines}\nGo on?", default=False, err=True)):
            raise contradiction_error(open_questions)
    home.store_settings()


def mended(home: "Home", found: "Sequence[Damage] | None" = None) -> "Repair":
    """Take away what is damaged, so that indexing makes it anew, and say so.

    Args:
        home: The knowledge base.
        found: What is damaged; None to look for what changed since it was found intact.
    """
    from rag_assets.pipeline.repair import Repair

    repair = Repair(home)
    found = repair.find() if found is None else found
    print_damage(found)
    if found:
        repair.mend(found)
    return repair


def print_damage(found: "Sequence[Damage]") -> None:
    """Say on standard error what is damaged: one line for what is alike, and a few lines at most."""
    alike: dict[tuple[str, str, str], list[Damage]] = {}
    for damage in found:
        alike.setdefault((damage.place.partition("/")[0], damage.cause, damage.remedy), []).append(damage)
    for (folder, cause, remedy), damages in [*alike.items()][:_DAMAGE_LINES]:
        rest = f" and {len(damages) - 1} more in {folder}" if len(damages) > 1 else ""
        complain(f"damaged: {damages[0].place}{rest}: {cause}; {remedy}")
    unnamed_count = sum(map(len, [*alike.values()][_DAMAGE_LINES:]))
    if unnamed_count or len(alike) < len(found):
        note = f"and {unnamed_count} more; " if unnamed_count else ""
        complain(f"damaged: {note}{len(found)} in all; `rag-assets verify` names each")


def _index(
    home: "Home", repair: "Repair", progress: ProgressDisplay, *, allow_empty: bool, full_check: bool
) -> _Indexing:
    from rag_assets.pipeline.freshness import changes_to_index
    from rag_assets.pipeline.language_models import check_language_model
    from rag_assets.pipeline.steps import STEPS
    from rag_assets.sources.changes import stored_documents
    from rag_assets.store.lake import shard_of

    asks_model = home.language_model_name != "extractive"
    start = time.monotonic()
    if (number := home.snapshots.finish()) is not None:
        complain(f"snapshot {number} is what readers see now: the run that made it was killed before")
    listing = home.listing(progress.phase("listing files"), allow_empty=allow_empty)
    progress.phase("comparing with what is indexed")
    changes = changes_to_index(home, listing)
    before = stored_documents(home.lake)
    failed_before = frozenset(map(_failure, _failures(home)[0]))
    shards = tuple(sorted({*changes.shards, *map(shard_of, before)})) if full_check else changes.shards
    planned = None
    if shards and asks_model:
        from rag_assets.pipeline.plan import take_plan

        planned = take_plan(home, listing, changes)
    if changes.new or changes.changed or changes.touched or changes.unfinished_shards or full_check:
        check_language_model(home)
    if shards:
        progress.asking_steps = {step.name for step in STEPS if step.writer(home) != "extractive"}
        progress.phase("loading Dagster")
        from rag_assets.defs.runs import index_in_process

        try:
            index_in_process(home, shards, progress, allow_empty=allow_empty, full_check=full_check)
        except BaseException:
            if asks_model:
                progress.phase("recording calls")
                home.ledger().compact()  # so that SQL shows the calls of a run that did not end
            raise
    else:
        home.snapshots.settle()
    changes = replace(changes, changed=_changed(before, stored_documents(home.lake), changes))
    for line in repair.settle():
        complain(line)
    return _Indexing(listing, changes, planned, time.monotonic() - start, failed_before)


def _changed(before: "Stored", after: "Stored", changes: "Changes") -> tuple[str, ...]:
    """Documents that changed, those among them that only their bytes told."""
    names = before.keys() & after.keys()
    changed_names = {name for name in names if before[name]["content_sha256"] != after[name]["content_sha256"]}
    return tuple(sorted({*changes.changed, *changed_names}))


def _print_index_summary(home: "Home", indexing: _Indexing, start_time: datetime, *, as_json: bool) -> None:
    from rag_assets.parsing.records import incomplete_documents
    from rag_assets.pipeline.measuring import gate_notes

    changes = indexing.changes
    snapshot = home.snapshots.current()
    counts = dict(snapshot.row_counts) if snapshot else {}
    failed_rows, lost_rows = _failures(home)
    incomplete = incomplete_documents(home.lake)
    if as_json:
        summary = {
            "new": list(changes.new),
            "changed": list(changes.changed),
            "gone": list(changes.gone),
            "unchanged": changes.unchanged,
            "failed": failed_rows,
            "no_longer_readable": lost_rows,
            "read_in_part": _read_in_part(incomplete),
            "omitted": list(indexing.listing.omissions),
            "shards": list(changes.shards),
            "snapshot": snapshot.number if snapshot else None,
            "rows": counts,
            "seconds": round(indexing.seconds, 3),
            "model_calls": _model_costs(home, start_time),
            "model_steps": _model_steps(home, start_time),
            "accepted_questions": gate_notes(home, start_time),
        }
        print_json(summary)
        return
    print_table(
        ["new", "changed", "gone", "failed", "documents", "pages", "unread", "chunks", "snapshot", "seconds"],
        [
            [
                len(changes.new),
                len(changes.changed),
                len(changes.gone),
                len(failed_rows),
                *(counts.get(name, 0) for name in ("documents", "pages")),
                sum(document.unread_page_count for document in incomplete),
                counts.get("chunks", 0),
                snapshot.number if snapshot else "-",
                f"{indexing.seconds:.1f}",
            ]
        ],
    )
    as_before = [_failure(row) in indexing.failed_before for row in failed_rows]
    _print_failures([row for row, is_known in zip(failed_rows, as_before, strict=True) if not is_known], lost_rows)
    _print_failed_before([row for row, is_known in zip(failed_rows, as_before, strict=True) if is_known])
    _print_read_in_part(incomplete)
    _print_stand_ins(_model_steps(home, start_time))
    _print_model_costs(home, indexing.planned, start_time)
    for note in gate_notes(home, start_time):
        say(note)


def _model_steps(home: "Home", start_time: datetime | None) -> dict[str, dict[str, object]]:
    """What became of the answers of the language model, by the table that they go into; empty without a model."""
    from rag_assets.pipeline.freshness import all_stand_ins

    stand_ins_by_step = all_stand_ins(home)
    answer_counts = home.ledger().answer_counts(start_time) if stand_ins_by_step and start_time is not None else {}
    steps: dict[str, dict[str, object]] = {}
    for name, stand_ins in stand_ins_by_step.items():
        answer_count, repeat_count = answer_counts.get(name, (0, 0))
        calls = {} if start_time is None else {"answered": answer_count, "asked_again": repeat_count}
        figures = {
            "stand_ins": stand_ins.count,
            "causes": dict(stand_ins.causes),
            "documents_to_ask_again": stand_ins.again,
        }
        steps[name] = {**calls, **figures}
    return steps


def _print_stand_ins(steps: dict[str, dict[str, object]]) -> None:
    """What stands in for answers of the language model; nothing where nothing does and no call was made twice."""
    shown_steps = {name: facts for name, facts in steps.items() if facts["stand_ins"] or facts.get("asked_again")}
    if not shown_steps:
        return
    with_calls = [name for name in ("answered", "asked_again") if all(name in facts for facts in shown_steps.values())]
    rows = []
    for name, facts in shown_steps.items():
        causes = facts["causes"] if isinstance(facts["causes"], dict) else {}
        reasons = ", ".join(f"{cause} {count}" for cause, count in causes.items())
        rows.append([name, *(facts[column] for column in with_calls), facts["stand_ins"], reasons])
    print_table(["written by the model", *(name.replace("_", " ") for name in with_calls), "stand-ins", "causes"], rows)
    if any(facts["stand_ins"] for facts in shown_steps.values()):
        again = any(facts["documents_to_ask_again"] for facts in shown_steps.values())
        remedy = "the next run asks again" if again else "`index --force GLOB` asks again"
        say(f"stand-ins: an algorithm wrote what the model did not answer; {remedy}")


def _model_costs(home: "Home", start_time: datetime) -> dict[str, float]:
    """Calls, stored answers, tokens and price in US dollars since a run began; all zero without a language model."""
    if home.language_model_name == "extractive":
        return {"calls": 0, "stored_answers": 0, "tokens": 0, "cost_usd": 0.0}
    from rag_assets.models.accounts.ledger import FIGURE_COLUMNS, call_figures

    figures = call_figures(home.ledger().rows(since=start_time, columns=FIGURE_COLUMNS))
    tokens = figures["tokens_read"] + figures["tokens_written"]
    return {
        "calls": figures["calls"],
        "stored_answers": figures["stored_answers"],
        "tokens": tokens,
        "cost_usd": figures["cost_usd"],
    }


def _print_model_costs(home: "Home", planned: dict[str, float] | None, start_time: datetime) -> None:
    if home.language_model_name == "extractive":
        return
    spent = _model_costs(home, start_time)
    columns = ["", "calls", "stored answers", "tokens", "USD"]
    table = [["spent", spent["calls"], spent["stored_answers"], spent["tokens"], f"{spent['cost_usd']:.4f}"]]
    if planned:
        table.append(["planned", planned["calls"], "", planned["tokens"], f"{planned['cost_usd']:.4f}"])
        calls, tokens, cost = (_error(planned[name], spent[name]) for name in ("calls", "tokens", "cost_usd"))
        table.append(["error", calls, "", tokens, cost])
    print_table(columns, table)


def _error(planned: float, spent: float) -> str:
    return f"{(planned - spent) / spent:+.0%}" if spent else "-"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def plan(context: click.Context, *, as_json: bool) -> None:
    """What indexing now would cost in calls of the language model, without making any."""
    from rag_assets.pipeline.plan import make_plan, save_plan

    home = _to_look_at(context)
    work_plan = make_plan(home)
    save_plan(home, work_plan)
    if as_json:
        print_json(asdict(work_plan))
    else:
        _print_plan(work_plan)


def _to_look_at(context: click.Context) -> "Home":
    """The knowledge base; where there is none yet, but settings name sources, that is said on standard error.

    Raises:
        QueryError: There is none, and no source to make it from.
    """
    home = open_home(context)
    if not home.exists and home.sources():
        complain(f"there is no knowledge base in {home.path} yet: `rag-assets index` makes it")
    else:
        check_exists(home)
    return home


def _print_plan(work_plan: "Plan") -> None:
    say(f"{work_plan.documents} documents are new or changed; language model: {work_plan.model}")
    if work_plan.model == "extractive":
        say("no language model is set: indexing makes no calls")
        return
    columns = ["step", "documents", "calls", "stored answers", "tokens read", "tokens written", "USD"]
    rows = [
        [s.step, s.documents, s.calls, s.stored, s.input_tokens, s.output_tokens, f"{s.cost_usd:.4f}"]
        for s in work_plan.lines
    ]
    tokens = [sum(s.input_tokens for s in work_plan.steps), sum(s.output_tokens for s in work_plan.steps)]
    stored_count = sum(s.stored for s in work_plan.steps)
    documents = max((s.documents for s in work_plan.steps), default=0)
    rows.append(["all", documents, work_plan.calls, stored_count, *tokens, f"{work_plan.cost_usd:.4f}"])
    print_table(columns, rows)
    say(
        f"USD by single calls {work_plan.plain_usd:.4f}, with the prompt cache {work_plan.prompt_cache_usd:.4f}, "
        f"in batches {work_plan.batch_usd:.4f}, with both {work_plan.batch_prompt_cache_usd:.4f}"
    )
    if work_plan.minutes is not None:
        say(f"at the rate that the settings allow: {work_plan.minutes:.1f} minutes at least")
    if work_plan.note:
        say(work_plan.note)


def _failures(home: "Home") -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Documents that are not indexed, and those that are kept as they were because they can no longer be read."""
    from rag_assets.parsing.records import document_failures

    failures = document_failures(home.lake)
    lost_rows = [row for row in failures if row["status"] == DocumentStatus.UNREADABLE]
    return [row for row in failures if row["status"] == DocumentStatus.FAILED], lost_rows


def _failure(row: dict[str, object]) -> tuple[str, str]:
    """A document with what is wrong with it, as both are printed."""
    cause, message = str(row["cause"]), str(row["message"])
    return str(row["document_id"]), message if cause in message else f"{cause}: {message}"


def _print_failures(failed_rows: list[dict[str, object]], lost_rows: list[dict[str, object]]) -> None:
    lines = [f"not indexed: {document_id}: {problem}" for document_id, problem in map(_failure, failed_rows)]
    _print_lines(lines, "more; see the table parse_failures")
    _print_lines([f"{row['document_id']}: {row['message']}" for row in lost_rows], "more that can no longer be read")


def _print_failed_before(failed_rows: list[dict[str, object]]) -> None:
    """How many documents failed as they did before the run, by cause."""
    if failed_rows:
        causes = Counter(str(row["cause"]) for row in failed_rows).most_common()
        counts = ", ".join(f"{cause} {count}" for cause, count in causes)
        say(f"  not indexed, as before: {len(failed_rows)} ({counts}); see the table parse_failures")


def _print_read_in_part(incomplete: "list[IncompleteDocument]") -> None:
    """Documents with pages that were not read; those of which nothing was read are named as failures."""
    lines = [f"read in part: {document}" for document in incomplete if document.unread_page_count < document.page_count]
    _print_lines(lines, "more read in part; see the view document_status")


def _read_in_part(incomplete: "list[IncompleteDocument]") -> list[dict[str, object]]:
    return [{**asdict(document), "unread_share": round(document.unread_share, 4)} for document in incomplete]


def _print_lines(lines: "list[str]", rest: str) -> None:
    for line in lines[:NAMES_SHOWN]:
        say(f"  {line}")
    if len(lines) > NAMES_SHOWN:
        say(f"  and {len(lines) - NAMES_SHOWN} {rest}")


def _print_source_notes(home: "Home", listing: "Listing") -> None:
    """On standard error, which sources lie in others or hold nothing to index, and what was found that is no file."""
    from rag_assets.sources.changes import overlaps

    for line in overlaps(home.sources()):
        complain(line)
    for line in listing.omissions[:NAMES_SHOWN]:
        complain(f"left out: {line}")
    if len(listing.omissions) > NAMES_SHOWN:
        complain(f"and {len(listing.omissions) - NAMES_SHOWN} more left out")
    source_names = {file.source_name for file in listing.files.values()} | listing.unreachable.keys()
    settings = home.settings.source
    for source in home.sources():
        if source.name not in source_names:
            complain(
                f"source {source.name}: no file in {source.location} to index; what counts: "
                f"{' '.join(settings.include)} without {' '.join(settings.exclude)} (source.include, source.exclude)"
            )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(context: click.Context, *, as_json: bool) -> None:
    """What is new, changed, gone, failed and damaged, without doing anything about it; exit status 1 where a source
    cannot be read.
    """
    from rag_assets.parsing.records import incomplete_documents
    from rag_assets.pipeline.freshness import by_reason, changes_to_index, stale_steps
    from rag_assets.pipeline.measuring import held_back
    from rag_assets.pipeline.repair import Repair

    home = _to_look_at(context)
    damage = Repair(home).find()
    listing = home.listing()
    stale = stale_steps(home)
    changes = changes_to_index(home, listing, stale)
    snapshot, pointer, unshown = home.snapshots.current(), home.snapshots.pointer(), home.snapshots.unfinished()
    failed_rows, lost_rows = (
        [row for row in rows if row["document_id"] not in changes.gone] for rows in _failures(home)
    )
    incomplete = [document for document in incomplete_documents(home.lake) if document.document_id not in changes.gone]
    question_set = home.settings.evaluation.questions
    missing_set = question_set if question_set is not None and not question_set.is_file() else None
    held = held_back(home) if stale else None
    if as_json:
        facts = {
            "home": str(home.path),
            "sources": {source.name: source.location for source in home.sources()},
            "new": list(changes.new),
            "changed": list(changes.changed),
            "gone": list(changes.gone),
            "unchanged": changes.unchanged,
            "touched": list(changes.touched),
            "failed": failed_rows,
            "no_longer_readable": lost_rows,
            "read_in_part": _read_in_part(incomplete),
            "omitted": list(listing.omissions),
            "unfinished_shards": list(changes.unfinished_shards),
            "stale": [asdict(entry) for entry in stale],
            "unreachable": dict(changes.unreachable),
            "contradictions": [contradiction.difference for contradiction in home.contradictions()],
            "held_back": {"question_set": held["question_set"], "reasons": held["warnings"]} if held else None,
            "missing_question_set": str(missing_set) if missing_set else None,
            "damaged": [{"place": item.place, "cause": item.cause, "remedy": item.remedy} for item in damage],
            "snapshot": snapshot.number if snapshot else None,
            "published_at": snapshot.published_at if snapshot else None,
            "rolled_back_from": pointer.rolled_back_from if pointer else None,
            "not_yet_shown": unshown,
            "rows": dict(snapshot.row_counts) if snapshot else {},
            "model_steps": _model_steps(home, None),
        }
        print_json(facts)
        context.exit(_exit_status(home, changes))
    say(f"home      {home.path}")
    for source in home.sources():
        say(f"source    {source.name} = {source.location}")
    for problem in changes.unreachable.values():
        say(f"          {problem}")
    say(f"snapshot  {f'{snapshot.number}, published {snapshot.published_at}' if snapshot else 'none'}")
    if pointer and pointer.rolled_back_from:
        say(f"          rolled back from {pointer.rolled_back_from}, until the next change is published")
    if unshown is not None:
        say(f"          {unshown} was made by a run that was killed before it showed it; the next index does")
    if held:
        say(
            f"          a newer version was held back by the questions of {held['question_set']}: `rag-assets publish` "
            "says why, `rag-assets publish --anyway` publishes it"
        )
    if missing_set:
        say(f"questions {missing_set}: no such file (evaluation.questions), so that no version is measured")
    print_table(
        ["new", "changed", "gone", "failed", "unchanged", "shards to index"],
        [
            [
                len(changes.new),
                len(changes.changed),
                len(changes.gone),
                len(failed_rows),
                changes.unchanged,
                len(changes.shards),
            ]
        ],
    )
    groups = (("new", changes.new), ("changed", changes.changed), ("touched", changes.touched), ("gone", changes.gone))
    for label, names in groups:
        _print_lines([f"{label}: {name}" for name in names], f"more {label}")
    for reason, steps in by_reason(stale):
        say(f"  {reason}: {', '.join(steps)}")
    _print_failures(failed_rows, lost_rows)
    _print_read_in_part(incomplete)
    _print_source_notes(home, listing)
    _print_stand_ins(_model_steps(home, None))
    print_damage(damage)
    for contradiction in home.contradictions():
        say(f"  {contradiction.difference}; {contradiction.remedy}")
    context.exit(_exit_status(home, changes))


def _exit_status(home: "Home", changes: "Changes") -> int:
    """1 where a source cannot be read, else 0; one that was taken from the sources is not missed."""
    return int(any(source.name in changes.unreachable for source in home.sources()))


@click.command()
@click.option("--repair", is_flag=True, help="Mend what is damaged, as `index` does with what it notices.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def verify(context: click.Context, *, repair: bool, as_json: bool) -> None:
    """Read all files of this knowledge base and name what is damaged; exit status 1 where something is."""
    from rag_assets.pipeline.repair import Repair
    from rag_assets.store.damage import DamageKind

    home = open_home(context, existing=True)
    with home.lock() if repair else nullcontext():
        damages = Repair(home).find(thorough=True)
        mendable = [damage for damage in damages if damage.kind is not DamageKind.LEARNED]
        if repair and mendable:
            with interruptible(_KEPT):
                start_time = datetime.now(UTC)
                with progress_display() as progress:
                    indexing = _index(home, mended(home, mendable), progress, allow_empty=False, full_check=False)
                _print_index_summary(home, indexing, start_time, as_json=as_json)
            if indexing.changes.unreachable:
                context.exit(1)
            learned_damages = [damage for damage in damages if damage.kind is DamageKind.LEARNED]
            for damage in learned_damages:
                complain(damage)
            context.exit(1 if learned_damages else 0)
    if as_json:
        print_json([{"place": damage.place, "cause": damage.cause, "remedy": damage.remedy} for damage in damages])
    elif damages:
        print_table(["damaged", "cause", "remedy"], [[damage.place, damage.cause, damage.remedy] for damage in damages])
        if mendable:
            say("`rag-assets index` or `rag-assets verify --repair` mends what can be mended")
    else:
        say("nothing is damaged")
    if damages:
        context.exit(1)


@click.command()
@click.argument("number", type=int, required=False)
@click.pass_context
def snapshots(context: click.Context, number: int | None) -> None:
    """List the published versions, or make readers see version NUMBER again."""
    home = open_home(context, existing=True)
    if number is not None:
        home.snapshots.roll_back(number)
    current, versions = home.snapshots.current(), home.snapshots.readable()
    print_table(
        ["snapshot", "published at", "documents", "chunks", "current"],
        [
            [
                s.number,
                s.published_at,
                s.row_counts["documents"],
                s.row_counts["chunks"],
                "*" if current and s.number == current.number else "",
            ]
            for s in versions
        ],
    )


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.pass_context
def ui(context: click.Context, port: int, host: str) -> None:
    """Start the Dagster UI and daemon on this knowledge base."""
    from rag_assets.pipeline.instance import serve_ui

    ending = "interrupted: the UI and the daemon are ending"
    context.exit(serve_ui(open_home(context), host, port, lambda: complain(ending)))
