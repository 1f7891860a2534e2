"""All that a version consists of taken out of the table, for what comes in its place."""

from __future__ import annotations

import numpy as np

from underlay.plan.part import Part
from underlay.table.conflicts import ReadSet
from underlay.table.transaction import Transaction


def replace_all(transaction: Transaction) -> bool:
    """Remove every file of the base, and rely on there being no other rows; whether there was a file.

    A commit that touched rows since then conflicts: its rows would go unseen, or stay.
    """
    transaction.rely_on(ReadSet(is_whole=True))
    names = [name for part in transaction.snapshot.parts() for name in _names(part)]
    for name in names:
        transaction.remove_file(name)
    return bool(names)


def _names(part: Part) -> list[str]:
    """The files of a part that the snapshot has."""
    locations = part.segment.locations
    if part.is_removed is not None:
        locations = locations.take(np.flatnonzero(~part.is_removed))
    return [name for name in locations.to_pylist() if name is not None]
