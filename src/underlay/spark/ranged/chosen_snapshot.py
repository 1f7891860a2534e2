"""A snapshot from which all but some files are taken out, so that plans are of these alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from underlay.plan.part import BoolArray, Part
from underlay.table.versions.snapshot import Snapshot


class ChosenSnapshot(Snapshot):
    """What `is_chosen` keeps of a snapshot. It is given a part and its place: the tail's is after all segments'."""

    def __init__(self, of: Snapshot, is_chosen: Callable[[Part, int], BoolArray]) -> None:
        super().__init__(of.store, of.keys, of.root, of._load_segment)
        self._is_chosen = is_chosen

    def parts(self, segments: Collection[int] | None = None) -> list[Part]:
        """See Snapshot."""
        count = len(self.root.segments)
        places = [*(range(count) if segments is None else sorted(segments)), count]
        return [self._only(part, place) for place, part in zip(places, super().parts(segments), strict=False)]

    def _only(self, part: Part, place: int) -> Part:
        is_left_out = ~self._is_chosen(part, place)
        return replace(part, is_removed=is_left_out if part.is_removed is None else part.is_removed | is_left_out)
