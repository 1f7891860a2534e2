"""Which sources are read together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from underlay.ingest.run.ingest import cut
from underlay.ingest.source.source import Source
from underlay.ingest.work.groups import GROUP_BYTES, SMALL_BYTES, group

SIZES = st.lists(st.integers(0, 3 * SMALL_BYTES) | st.integers(0, 1000), max_size=60)


def by_uri(found: Source) -> str:
    return found.uri


def sources(sizes: list[int]) -> list[Source]:
    return [Source(f"s3://b/{at:04}", "etag", size) for at, size in enumerate(sizes)]


@given(SIZES, st.integers(1, 12))
def test_every_source_is_in_one_group_and_all_workers_have_one(sizes: list[int], parallelism: int):
    found = sources(sizes)
    groups = group(found, parallelism)
    assert sorted((one for part in groups for one in part), key=by_uri) == found
    assert len(groups) >= min(parallelism, len(found))
    assert all(len(part) == 1 for part in groups if any(one.size_bytes > SMALL_BYTES for one in part))
    assert all(sum(one.size_bytes for one in part) <= GROUP_BYTES + SMALL_BYTES for part in groups if len(part) > 1)
    assert all(list(part) == sorted(part, key=by_uri) for part in groups)


def test_groups_of_like_sources_are_alike():
    assert [len(part) for part in group(sources([28_000_000 - at for at in range(8)]), 2)] == [4, 4]


@given(SIZES, st.integers(1, 10), st.integers(1, 5 * SMALL_BYTES))
def test_a_batch_has_at_most_so_many_sources_and_bytes(sizes: list[int], most: int, most_bytes: int):
    found = sources(sizes)
    parts = list(cut(found, most, most_bytes))
    assert [one for part in parts for one in part] == found
    assert all(len(part) <= most for part in parts)
    assert all(len(part) == 1 or sum(one.size_bytes for one in part) <= most_bytes for part in parts)
