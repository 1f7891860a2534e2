"""Explains which hot blocks a plan reads, and which hot rows are not seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from underlay.hot.read.snapshot import HotSnapshot, hot_fences
from underlay.index.keys import HOT_SCHEME, plain_location
from underlay.plan.plan import BlockPlan
from underlay.table.versions.snapshot import Snapshot


def explain_hot(snapshot: Snapshot, plan: BlockPlan, *, is_newest: bool = True) -> Iterator[str]:
    """A line for the hot partitions that were looked at, and one for those that other machines may have. Of a version
    that was asked for nothing is missing."""
    unseen = hot_fences(snapshot.root)
    if isinstance(snapshot, HotSnapshot):
        hot = snapshot.hot
        unseen = [name for name in unseen if name != hot.identity.fence]
        found = [
            f"{_counted(len(file.blocks))} of {PurePosixPath(plain_location(file.location)).parent.name}"
            for file in plan.files()
            if file.location.startswith(f"{HOT_SCHEME}://")
        ]
        read = ", ".join(found) if found else "no block is read"
        yield f"hot partitions of {hot.folder} at version {hot.record.version}: {read}"
    if unseen and is_newest:
        others = "other " if isinstance(snapshot, HotSnapshot) else ""
        yield f"rows in {others}hot partitions are not seen here: only what was sealed ({', '.join(unseen)})"


def _counted(blocks: int) -> str:
    return f"{blocks} block" if blocks == 1 else f"{blocks} blocks"
