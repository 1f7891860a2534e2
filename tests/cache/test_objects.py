"""Segments, sidecars, footers and roots are read and decoded once."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deflate import crc32

from tests.cache.remote import remote_store
from tests.index.segment_examples import file_entry, schema_of
from underlay.cache.disk import DiskCache
from underlay.cache.memory import MemoryCache
from underlay.cache.objects import DecodedCache
from underlay.errors import ChecksumMismatch, Malformed, NotFound
from underlay.index.operation import Operation
from underlay.index.root import FORMAT, Definition, Delta, Root, SegmentRef, encode_root
from underlay.index.segment.write import write_segment
from underlay.parquet.footer.tail import load_footer
from underlay.pm.convert.build import sidecar_of
from underlay.pm.format.checksum import identity
from underlay.schema.record import to_record
from underlay.store.testing.counting import CountingStore

SCHEMA = schema_of({"a": "int64", "b": "int64"})
KEY = "t/r/_index/segments/s.arrow"


@pytest.fixture
def store() -> CountingStore:
    return remote_store()


@pytest.fixture
def cache(tmp_path: Path) -> DecodedCache:
    return DecodedCache(memory=MemoryCache(1 << 24), disk=DiskCache(tmp_path, 1 << 24))


def stored_segment(store: CountingStore) -> SegmentRef:
    entries = [file_entry(f"f{i}.parquet", SCHEMA, {"a": [[i, i + 1]], "b": [[1, 2]]}) for i in range(50)]
    data, ref = write_segment(entries, SCHEMA, segment_id="s", bounded_fields=[1])
    store.put(KEY, data)
    store.reset()
    return ref


def test_a_segment_is_opened_once_and_fetches_nothing_by_itself(store: CountingStore, cache: DecodedCache) -> None:
    ref = stored_segment(store)
    segment = cache.segment(store, KEY, ref)
    assert cache.segment(store, KEY, ref) is segment
    assert store.log == ()
    assert segment.locations[3].as_py() == "f3.parquet"
    assert cache.segment(store, KEY, ref).locations[3].as_py() == "f3.parquet"


def test_a_segment_that_loaded_more_weighs_more(store: CountingStore, cache: DecodedCache) -> None:
    ref = stored_segment(store)
    segment = cache.segment(store, KEY, ref)
    before = cache.memory.stats().size_bytes
    segment.prefetch(statistics=[1, 2], places=[1, 2])
    cache.segment(store, KEY, ref)
    assert cache.memory.stats().size_bytes >= before + segment.nbytes > before


def test_another_process_finds_a_segments_pieces_on_disk(
    store: CountingStore, cache: DecodedCache, tmp_path: Path
) -> None:
    ref = stored_segment(store)
    cache.segment(store, KEY, ref).prefetch(statistics=[1])
    store.reset()
    other = DecodedCache(memory=MemoryCache(1 << 24), disk=DiskCache(tmp_path, 1 << 24))
    other.segment(store, KEY, ref).prefetch(statistics=[1])
    assert store.log == ()


def test_a_segment_with_a_wrong_directory_is_malformed_and_named(store: CountingStore, cache: DecodedCache) -> None:
    ref = SegmentRef(
        id="s", size_bytes=1, crc=0, file_count=1, block_count=1, row_count=1, data_bytes=1, deleted_rows=0, pieces=b"x"
    )
    with pytest.raises(Malformed, match=KEY):
        cache.segment(store, KEY, ref)


def parquet_file() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, 3]}), sink)
    return sink.getvalue()


def test_a_footer_is_fetched_and_parsed_once(store: CountingStore, cache: DecodedCache) -> None:
    data = parquet_file()
    store.put("f.parquet", data)
    store.reset()
    size = int.from_bytes(data[-8:-4], "little")
    crc = crc32(data[-8 - size : -8])
    footer = cache.footer(store, "f.parquet", file_bytes=len(data), footer_bytes=size, footer_crc=crc)
    assert cache.footer(store, "f.parquet", file_bytes=len(data), footer_bytes=size, footer_crc=crc) is footer
    assert footer.row_group_count == 1
    assert store.request_count() == 1
    with pytest.raises(ChecksumMismatch, match=r"f\.parquet"):
        cache.footer(store, "f.parquet", file_bytes=len(data), footer_bytes=size, footer_crc=crc ^ 1)


def test_a_sidecar_is_fetched_and_decoded_once(store: CountingStore, cache: DecodedCache) -> None:
    data = parquet_file()
    sidecar = sidecar_of(data, load_footer(io.BytesIO(data)).footer)
    store.put("_pm/f", sidecar)
    store.reset()
    described = {"size_bytes": len(sidecar), "crc": identity(sidecar), "file_bytes": len(data)}
    found = cache.sidecar(store, "_pm/f", **described)
    assert cache.sidecar(store, "_pm/f", **described) is found
    assert found.num_rows.tolist() == [3]
    assert store.request_count() == 1
    with pytest.raises(ChecksumMismatch, match="_pm/f"):
        cache.sidecar(store, "_pm/f", **{**described, "crc": 1})


def test_a_root_is_read_once(store: CountingStore, cache: DecodedCache) -> None:
    root = Root(
        format=FORMAT,
        version=0,
        commit_id="c",
        parent_id=None,
        committed_us=1,
        operation=Operation.CREATE,
        counts={},
        writer="w",
        definition=Definition(schema=to_record(SCHEMA)),
        delta=Delta(),
        row_count=0,
        file_count=0,
        data_bytes=0,
    )
    store.put("0.root", encode_root(root))
    store.reset()
    assert cache.root(store, "0.root") == root
    assert cache.root(store, "0.root") is cache.root(store, "0.root")
    assert store.request_count() == 1


def test_what_is_not_there_is_not_found_and_asked_for_again(store: CountingStore, cache: DecodedCache) -> None:
    for _ in range(2):
        with pytest.raises(NotFound, match=r"7\.root"):
            cache.root(store, "7.root")
    assert store.request_count() == 2
