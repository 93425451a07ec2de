"""The command `verify`: whether the files of a knowledge base are what was written."""

import click

from rag_assets.cli.console import complain, open_home, print_json, print_table, say
from rag_assets.cli.indexing import repair_and_index


@click.command()
@click.option("--repair", is_flag=True, help="Mend what is damaged, as `index` does with what it notices.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def verify(context: click.Context, *, repair: bool, as_json: bool) -> None:
    """Read all files of this knowledge base and name what is damaged; exit status 1 where something is."""
    from rag_assets.pipeline.repair import Repair
    from rag_assets.store.damage import DamageKind

    home = open_home(context)
    with home.lock():
        found = Repair(home).find(thorough=True)
        mendable = [each for each in found if each.kind is not DamageKind.LEARNED]
        if repair and mendable:
            repair_and_index(context, home, mendable, as_json=as_json)
            learned = [each for each in found if each.kind is DamageKind.LEARNED]
            for each in learned:
                complain(each)
            context.exit(1 if learned else 0)
    if as_json:
        print_json([{"place": each.place, "cause": each.cause, "remedy": each.remedy} for each in found])
    elif found:
        print_table(["damaged", "cause", "remedy"], [[each.place, each.cause, each.remedy] for each in found])
        if mendable:
            say("`rag-assets index` or `rag-assets verify --repair` mends what can be mended")
    else:
        say("nothing is damaged")
    if found:
        context.exit(1)
