"""Brings what was learned into force, whatever was proved of it."""

from dataclasses import replace

from rag_assets.store.snapshots import Snapshot, Snapshots
from rag_assets.training.adoption import _added, having


def adopt(snapshots: Snapshots, name: str, place: str) -> Snapshot:
    """A new version of the same rows with a stored candidate in force."""
    current = snapshots.current()
    assert current is not None
    version = having(current, name, _added(current.learned.get(name, ()), place))
    return snapshots.publish(replace(version, number=snapshots.next_number()))
