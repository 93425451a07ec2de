"""How assets are partitioned: a fixed number of hash shards of documents."""

import dagster as dg

from rag_assets.store.lake import SHARDS

SHARD_PARTITIONS = dg.StaticPartitionsDefinition(list(SHARDS))
BACKFILL_POLICY = dg.BackfillPolicy.multi_run(max_partitions_per_run=16)

RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"


def shard_range_tags(shards: tuple[str, ...]) -> dict[str, str]:
    """Run tags that span some shards; unchanged ones in between cost nothing."""
    return {RANGE_START_TAG: min(shards), RANGE_END_TAG: max(shards)}
