"""Chooses segments to merge: those of one size class, once there are enough of them.

A file is rewritten once for each class that it passes through, so metadata costs O(changed · log total), and a root
names at most FAN_IN segments of each class.
"""

from __future__ import annotations

from collections.abc import Iterable

from underlay.index.root import SegmentRef

FAN_IN = 8
MAX_FILES = 16_384
"""Segments with more files are left alone."""
MAX_BYTES = 64 << 20
"""Larger segments are left alone."""


def groups_to_merge(segments: Iterable[SegmentRef]) -> list[tuple[str, ...]]:
    """Ids of segments to merge into one, group by group, each in the order given.

    Class k holds segments of 8^k files and more, all of one partition spec. A group is all segments of a full class,
    except the last ones that would take it past the limits.
    """
    classes: dict[tuple[int, int], list[SegmentRef]] = {}
    for segment in segments:
        if segment.file_count <= MAX_FILES and segment.size_bytes <= MAX_BYTES:
            classes.setdefault((_size_class(segment.file_count), segment.spec), []).append(segment)
    groups = [_within_limits(classes[size]) for size in sorted(classes) if len(classes[size]) >= FAN_IN]
    return [tuple(segment.id for segment in group) for group in groups if len(group) > 1]


def _size_class(file_count: int) -> int:
    size = 0
    while file_count >= FAN_IN:
        file_count //= FAN_IN
        size += 1
    return size


def _within_limits(segments: list[SegmentRef]) -> list[SegmentRef]:
    """The first segments that together stay below twice the limits: a merged segment may exceed them once."""
    chosen: list[SegmentRef] = []
    files = size_bytes = 0
    for segment in segments:
        files, size_bytes = files + segment.file_count, size_bytes + segment.size_bytes
        if chosen and (files > 2 * MAX_FILES or size_bytes > 2 * MAX_BYTES):
            break
        chosen.append(segment)
    return chosen
