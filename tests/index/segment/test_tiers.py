from __future__ import annotations

from underlay.index.root import SegmentRef
from underlay.index.segment.tiers import FAN_IN, MAX_BYTES, MAX_FILES, groups_to_merge


def segment(name: str, file_count: int, size_bytes: int = 1000) -> SegmentRef:
    return SegmentRef(
        id=name,
        size_bytes=size_bytes,
        crc=0,
        file_count=file_count,
        block_count=file_count,
        row_count=file_count,
        data_bytes=file_count,
        deleted_rows=0,
        pieces=b"",
    )


def test_few_segments_of_a_size_are_left_alone():
    assert groups_to_merge([segment(str(number), 10) for number in range(FAN_IN - 1)]) == []


def test_enough_segments_of_a_size_are_one_group_in_their_order():
    segments = [segment(str(number), 10 + number) for number in range(FAN_IN)]
    assert groups_to_merge([segment("big", 1000), *segments]) == [tuple(str(number) for number in range(FAN_IN))]


def test_sizes_are_merged_apart():
    small = [segment(f"s{number}", 1) for number in range(FAN_IN)]
    large = [segment(f"l{number}", 100) for number in range(FAN_IN)]
    assert groups_to_merge([*large, *small]) == [tuple(s.id for s in small), tuple(s.id for s in large)]


def test_large_segments_are_left_alone():
    by_files = [segment(str(number), MAX_FILES + 1) for number in range(20)]
    by_bytes = [segment(str(number), 5, MAX_BYTES + 1) for number in range(20)]
    assert groups_to_merge([*by_files, *by_bytes]) == []


def test_a_group_does_not_grow_past_twice_the_limits():
    (group,) = groups_to_merge([segment(str(number), MAX_FILES) for number in range(FAN_IN)])
    assert group == ("0", "1")


def test_a_table_of_small_commits_keeps_few_segments_and_rewrites_each_file_few_times():
    segments: list[SegmentRef] = []
    rewritten = 0
    for number in range(4096):
        segments.append(segment(str(number), 1))
        while groups := groups_to_merge(segments):
            gone = set(groups[0])
            count = sum(found.file_count for found in segments if found.id in gone)
            rewritten += count
            segments = [segment(f"m{number}-{count}", count), *(s for s in segments if s.id not in gone)]
    assert sum(found.file_count for found in segments) == 4096
    assert len(segments) <= 5 * FAN_IN
    assert rewritten <= 5 * 4096
