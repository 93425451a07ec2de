"""Commands on language models: `cache`, `batches`."""

from dataclasses import asdict

import click

from rag_assets.cli.console import Size, open_home, print_json, print_table, say, size, utc


@click.group()
def cache() -> None:
    """Answers of language models that were paid for, kept so that none is paid for twice."""


@cache.command("stats")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def cache_stats(context: click.Context, *, as_json: bool) -> None:
    """What is stored, by provider, model, step and outcome; reads every answer."""
    ledger = open_home(context).ledger()
    found = ledger.answers.stats()
    oldest, newest = (None if at is None else utc(at) for at in (found.oldest, found.newest))
    if as_json:
        print_json({**asdict(found), "oldest": oldest, "newest": newest})
        return
    if found.groups:
        print_table(
            ["provider", "model", "step", "outcome", "answers", "size", "cost $"],
            [
                [each.provider, each.model, each.step, each.outcome, each.entries, size(each.bytes), each.cost_usd]
                for each in found.groups
            ],
        )
    span = f", paid for from {oldest} to {newest}" if found.entries else ""
    say(f"answers {found.entries}, {size(found.bytes)}{span}")
    if found.damaged:
        say(f"damaged {found.damaged}; they count as absent and are replaced when they are asked for again")


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
        chosen = home.settings.language_model
        days, max_bytes = chosen.stored_answers_days, chosen.stored_answers_bytes
    if not dry_run:
        ledger.compact()
    # An answer that breaks its schema is a completed one: only the ledger knows.
    broken = ledger.invalid_keys() if "invalid" in outcomes else frozenset()
    report = ledger.answers.prune(max_bytes, days, outcomes, broken, dry_run=dry_run)
    if as_json:
        print_json({**asdict(report), "dry_run": dry_run})
        return
    done = "would be dropped" if dry_run else "dropped"
    say(
        f"{done}: {report.removed} answers, {size(report.removed_bytes)}; "
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
        chosen = home.options.language_model
        state = cancel_batch(
            home.state,
            cancel,
            api_key=chosen.api_key,
            base_url=chosen.base_url,
            timeout_seconds=chosen.timeout_seconds,
        )
        say(f"{cancel}: {state}; the next run keeps what it has answered")
        return
    found = [
        {
            "batch": each.batch_id or each.nonce,
            "model": each.model_name,
            "created_at": utc(each.created_at),
            "requests": each.requests,
        }
        for each in BatchStore(home.state).open_batches()
    ]
    if as_json:
        print_json(found)
    elif found:
        print_table(["batch", "model", "created at", "requests"], [each.values() for each in found])
    else:
        say("no batch is under way")
