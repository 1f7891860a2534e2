"""One segment as a snapshot sees it: which of its files were removed, and which rows of the others were deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from underlay.index.segment.segment import Segment

BoolArray = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A segment with its overlay. `deletes` replaces, by row, the deleted positions that the segment itself holds."""

    segment: Segment
    is_removed: BoolArray | None = None
    deletes: Mapping[int, bytes] = field(default_factory=dict)

    def deletes_of(self, row: int) -> bytes | None:
        """The deleted positions of a file, serialised."""
        replaced = self.deletes.get(row)
        return self.segment.files.deletes[row].as_py() if replaced is None else replaced

    def may_have_deletes(self, rows: Numbers) -> BoolArray:
        """Which of these files may have deleted rows."""
        found = np.asarray(self.segment.files.deleted_rows[rows] > 0)
        return found | np.isin(rows, list(self.deletes)) if self.deletes else found


def distinct(ascending: Numbers) -> Numbers:
    """Each of the numbers once. They ascend, so no sort is needed."""
    return ascending[np.flatnonzero(np.diff(ascending, prepend=-1))]
