"""How assets are partitioned: a fixed number of hash shards of documents; and which of them a run works on.

A run starts with a range of shards and takes on others: those that changed outside of the range, and in its first steps
what the sources hold by then, files that moved between shards, and lines that have become common, so that it publishes
one change as a whole. Dagster fixes the partitions of a run beforehand: what was taken on is a tag of the run.
"""

from collections.abc import Collection, Mapping

import dagster as dg

from rag_assets.store.lake import SHARDS

SHARD_PARTITIONS = dg.StaticPartitionsDefinition(list(SHARDS))
BACKFILL_POLICY = dg.BackfillPolicy.multi_run(max_partitions_per_run=16)

PARTITION_TAG = "dagster/partition"
BACKFILL_TAG = "dagster/backfill"
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"
TAKEN_ON_TAG = "rag_assets/shards_taken_on"
FULL_CHECK_TAG = "rag_assets/full_check"  # on runs that compare the bytes of every file
ANYWAY_TAG = "rag_assets/publish_anyway"  # who has a version published whatever its check says


def shard_tags(shards: Collection[str]) -> dict[str, str]:
    """Tags of a run over some shards, at least one.

    Dagster records events for every partition of a range, so the range is the longest stretch without a gap, the first
    of those as long; the run takes on the others.
    """
    stretches: list[list[str]] = []
    for shard in sorted(shards):
        if stretches and SHARDS.index(shard) == SHARDS.index(stretches[-1][-1]) + 1:
            stretches[-1].append(shard)
        else:
            stretches.append([shard])
    longest = max(stretches, key=len)
    others = sorted({*shards} - {*longest})
    taken_on = {TAKEN_ON_TAG: ",".join(others)} if others else {}
    return {RANGE_START_TAG: longest[0], RANGE_END_TAG: longest[-1], **taken_on}


def shards_of_tags(tags: Mapping[str, str]) -> list[str] | None:
    """Shards that the tags of a run name; None where they name none, which means all."""
    taken_on = _taken_on(tags)
    if only := tags.get(PARTITION_TAG):
        return sorted({only, *taken_on})
    if RANGE_START_TAG not in tags:
        return None
    span = dg.PartitionKeyRange(tags[RANGE_START_TAG], tags[RANGE_END_TAG])
    return sorted({*SHARD_PARTITIONS.get_partition_keys_in_range(span), *taken_on})


def shards_of_step(context: dg.AssetExecutionContext) -> list[str]:
    """Shards that a step works on: its partitions, and those that an earlier step of the run took on.

    Raises:
        Failure: The run was launched without any.
    """
    if not context.has_partition_key and not context.has_partition_key_range:
        raise dg.Failure("Choose partitions for this run, or launch it as a backfill.", allow_retries=False)
    # an earlier step may have added to the tags of the run
    run = context.instance.get_run_by_id(context.run.run_id) or context.run
    return sorted({*context.partition_keys, *_taken_on(run.tags)})


def add_shards(context: dg.AssetExecutionContext, shards: Collection[str]) -> list[str]:
    """Have this step and the later ones of the run work on further shards.

    Returns:
        The shards that the step works on now.
    """
    known = shards_of_step(context)
    if not set(shards) <= set(known):
        taken_on = sorted({*known, *shards} - {*context.partition_keys})
        context.instance.add_run_tags(context.run.run_id, {TAKEN_ON_TAG: ",".join(taken_on)})
    return sorted({*known, *shards})


def _taken_on(tags: Mapping[str, str]) -> set[str]:
    return set(filter(None, tags.get(TAKEN_ON_TAG, "").split(",")))
