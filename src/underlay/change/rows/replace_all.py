"""Removes every file of a table, so that others replace them."""

from __future__ import annotations

import numpy as np

from underlay.plan.part import Part
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction


def replace_all(transaction: Transaction) -> None:
    """Remove every file of the base, and rely on there being no other rows.

    A commit since the base that touched rows conflicts: its rows would be lost silently, or would stay.
    """
    transaction.rely_on(ReadSet(is_whole=True))
    for part in transaction.snapshot.parts():
        for name in _names(part):
            transaction.remove_file(name)


def _names(part: Part) -> list[str]:
    """The files of a part that the snapshot has."""
    locations = part.segment.locations
    if part.is_removed is not None:
        locations = locations.take(np.flatnonzero(~part.is_removed))
    return [name for name in locations.to_pylist() if name is not None]
