"""Commands on language models: `cache`, `batches`."""

from dataclasses import asdict

import click

from rag_assets.cli.console import Size, open_home, print_json, print_table, say, size, utc
from rag_assets.contracts.errors import ModelError


@click.group()
def cache() -> None:
    """Answers of language models that were paid for, kept so that none is paid for twice."""


@cache.command("stats")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def cache_stats(context: click.Context, *, as_json: bool) -> None:
    """What is stored, by provider, model, step and outcome; reads every answer."""
    ledger = open_home(context).ledger()
    stats = ledger.answers.stats()
    oldest, newest = (None if at is None else utc(at) for at in (stats.oldest, stats.newest))
    if as_json:
        print_json({**asdict(stats), "oldest": oldest, "newest": newest})
        return
    if stats.groups:
        print_table(
            ["provider", "model", "step", "outcome", "answers", "size", "cost $"],
            [
                [
                    group.provider,
                    group.model,
                    group.step,
                    group.outcome,
                    group.entries,
                    size(group.bytes),
                    group.cost_usd,
                ]
                for group in stats.groups
            ],
        )
    span = f", paid for from {oldest} to {newest}" if stats.entries else ""
    say(f"answers {stats.entries}, {size(stats.bytes)}{span}")
    if stats.damaged:
        say(f"damaged {stats.damaged}; they count as absent and are replaced when they are asked for again")


@cache.command("prune")
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    help="Drop answers not used for so many days [setting language_model.stored_answers_days].",
)
@click.option(
    "--bytes",
    "max_bytes",
    type=Size(),
    help="Keep so much at most, as in 5GB [setting language_model.stored_answers_bytes].",
)
@click.option(
    "--outcome",
    "outcomes",
    type=click.Choice(["completed", "truncated", "refused", "empty", "invalid"]),
    multiple=True,
    help="Drop all answers of this outcome, so that `index --force` asks again; may be given several times.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be dropped.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def cache_prune(
    context: click.Context,
    days: float | None,
    max_bytes: int | None,
    outcomes: tuple[str, ...],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Drop stored answers: those first that were not used for longest.

    Without --days, --bytes and --outcome, the limits of the settings hold. What was paid stays in the ledger.
    """
    home = open_home(context)
    ledger = home.ledger()
    if days is None and max_bytes is None and not outcomes:
        settings = home.settings.language_model
        days, max_bytes = settings.stored_answers_days, settings.stored_answers_bytes
    if not dry_run:
        ledger.compact()
    # An answer that breaks its schema is a completed one: only the ledger knows.
    broken_keys = ledger.invalid_keys() if "invalid" in outcomes else frozenset()
    report = ledger.answers.prune(max_bytes, days, outcomes, broken_keys, dry_run=dry_run)
    if as_json:
        print_json({**asdict(report), "dry_run": dry_run})
        return
    verb = "would be dropped" if dry_run else "dropped"
    say(
        f"{verb}: {report.removed} answers, {size(report.removed_bytes)}; "
        f"kept: {report.kept}, {size(report.kept_bytes)}"
    )


@click.command()
@click.option("--cancel", metavar="ID", help="Cancel a batch; what it has answered so far is kept.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def batches(context: click.Context, cancel: str | None, *, as_json: bool) -> None:
    """List the batches of calls under way at the provider, or cancel one."""
    from rag_assets.models.anthropic.open_batches import BatchStore, cancel_batch

    home = open_home(context)
    if cancel is not None:
        choice = home.options.language_model
        is_known = any(batch.label == cancel for batch in BatchStore(home.state).open_batches())
        if not is_known and choice.provider != "anthropic":  # whose others may be cancelled, too
            raise ModelError(f"no batch {cancel} is under way; `rag-assets batches` lists those that are")
        state = cancel_batch(
            home.state,
            cancel,
            api_key=choice.api_key,
            base_url=choice.base_url,
            timeout_seconds=choice.timeout_seconds,
        )
        say(f"{cancel}: {state}; the next run keeps what it has answered")
        return
    rows = [
        {
            "batch": batch.batch_id or batch.nonce,
            "model": batch.model_name,
            "created_at": utc(batch.created_at),
            "requests": batch.requests,
        }
        for batch in BatchStore(home.state).open_batches()
    ]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(["batch", "model", "created at", "requests"], [row.values() for row in rows])
    else:
        say("no batch is under way")
