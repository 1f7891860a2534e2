"""Which layouts the files of a version have, and how many files have each."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.plan.part import Part
from underlay.table.versions.snapshot import Snapshot


class FilesByLayout:
    """Which layouts the files of a version have. Looks at segments only if it is asked."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._counts: Counter[str] | None = None
        self._examples: dict[str, str] = {}

    def count(self, layout: str) -> int:
        """How many files have this layout."""
        if self._counts is None:
            self._counts = Counter()
            for part in self._snapshot.parts():
                self._take(part)
        return self._counts[layout]

    def subject(self, layout: str) -> str:
        """The files in words."""
        count = self.count(layout)
        example = self._examples.get(layout, "")
        return f"file {example}" if count == 1 else f"{count} files, such as {example}"

    def _take(self, part: Part) -> None:
        files = part.segment.files
        layouts, locations = files.layouts, files.locations
        if part.is_removed is not None:
            kept = pa.array(~part.is_removed)
            layouts, locations = layouts.filter(kept), locations.filter(kept)
        assert self._counts is not None
        for layout in map(str, pc.unique(layouts).to_pylist()):
            is_meant = pc.equal(layouts, pa.scalar(layout))
            self._counts[layout] += int(np.asarray(is_meant).sum())
            self._examples.setdefault(layout, str(locations.filter(is_meant)[0]))
