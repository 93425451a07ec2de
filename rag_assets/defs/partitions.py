"""How assets are partitioned: a fixed number of hash shards of documents."""

from collections.abc import Mapping

import dagster as dg

from rag_assets.store.lake import SHARDS

SHARD_PARTITIONS = dg.StaticPartitionsDefinition(list(SHARDS))
BACKFILL_POLICY = dg.BackfillPolicy.multi_run(max_partitions_per_run=16)

PARTITION_TAG = "dagster/partition"
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"


def shard_range_tags(shards: tuple[str, ...]) -> dict[str, str]:
    """Run tags that span some shards; unchanged ones in between cost nothing."""
    return {RANGE_START_TAG: min(shards), RANGE_END_TAG: max(shards)}


def shards_of_run(tags: Mapping[str, str]) -> list[str] | None:
    """Shards that the tags of a run name; None where they name none, which means all."""
    if only := tags.get(PARTITION_TAG):
        return [only]
    if RANGE_START_TAG not in tags:
        return None
    span = dg.PartitionKeyRange(tags[RANGE_START_TAG], tags[RANGE_END_TAG])
    return list(SHARD_PARTITIONS.get_partition_keys_in_range(span))
