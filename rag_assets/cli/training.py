"""The commands `train`: what a collection learns from its own questions, adopted where it proves better."""

import click

from rag_assets.cli.console import open_home, say

_NAMES = {"ranking": "ranking_weights", "rewriter": "rewriter_model"}  # what a command learns, and its asset


@click.group()
def train() -> None:
    """Learn from accepted questions how this collection is searched best; adopted only where it proves better."""


@train.command("undo")
@click.argument("what", type=click.Choice(tuple(_NAMES)))
@click.pass_context
def undo(context: click.Context, what: str) -> None:
    """Go back to what was in force before the last adoption."""
    from rag_assets.training import adoption

    home = open_home(context)
    with home.lock():
        published = adoption.undo(home.snapshots, _NAMES[what])
    places = published.learned.get(_NAMES[what], ())
    now = f"{places[-1]} is in force again" if places else "the shipped one is in force"
    say(f"version {published.number}: {now}")


@train.command("status")
@click.pass_context
def status(context: click.Context) -> None:
    """What is in force, and what the last candidate reached."""
    from rag_assets.training import adoption

    home = open_home(context)
    current = home.snapshots.current()
    for what, name in _NAMES.items():
        places = tuple(current.learned.get(name, ())) if current is not None else ()
        say(f"{what}: {places[-1] if places else 'as shipped'}", bold=True)
        for place, proof in adoption.candidates(home.path, name)[:1]:
            say(f"  last candidate {place}, {proof.get('made_at')}: {proof.get('measure')} {proof.get('reason')}")
