"""Records of `_txn`: QuestDB's own, and ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.genuine import fixtures, label
from underlay.errors import ChecksumMismatch, Damaged, Truncated
from underlay.hot.txn.file import read_txn, slot_of
from underlay.hot.txn.layout import EXTENSION, PARTITION, RECORD, SLOT
from underlay.hot.txn.partition_names import (
    Granularity,
    begins_of,
    directory_name,
    end_of,
    parse_directory,
    partition_name,
)
from underlay.hot.txn.record import TxnPartition, TxnRecord, decode_record, encode_record, record_bytes

GENUINE = sorted(path for path in (fixtures() / "questdb").rglob("_txn*") if path.is_file())


@pytest.mark.parametrize("path", GENUINE, ids=label)
def test_a_genuine_record_is_read_and_written_back_byte_for_byte(path: Path):
    record = read_txn(path)
    data = path.read_bytes()
    slot = slot_of(data, record.version)
    stored = bytearray(data[slot.offset : slot.offset + slot.size_bytes])
    # the last partition's rows stand elsewhere; QuestDB leaves an old number here
    at = slot.size_bytes - PARTITION.size_bytes + PARTITION.offset("masked_size")
    written = bytearray(encode_record(record))
    stored[at : at + 5] = written[at : at + 5] = bytes(5)
    assert written == stored
    assert not record.is_ours


def test_genuine_partitions_are_what_their_case_says():
    seen = 0
    for path in (fixtures() / "questdb").rglob("case.json"):
        for state in json.loads(path.read_text()).get("snapshots", []):
            file = path.with_name(f"_txn.{state['step']}")
            if not file.exists():
                continue
            said = state["txn_partition"]
            found = read_txn(file).find(said["ts"])
            assert found is not None
            assert (found.row_count, found.size_bytes) == (said["rows"], said["word3"] & (1 << 56) - 1)
            assert (found.name_txn, found.is_generated) == (said["name_txn"], bool(said["generated"]))
            assert directory_name(state["partition"], found.name_txn) == state["directory"]
            assert partition_name(found.timestamp, Granularity.DAY, "us") == state["partition"]
            seen += 1
    assert seen > 40


partitions = st.lists(
    st.builds(
        TxnPartition,
        timestamp=st.integers(-(2**62), 2**62),
        row_count=st.integers(0, 2**44 - 1),
        name_txn=st.integers(-1, 2**40),
        size_bytes=st.integers(0, 2**56 - 1),
        is_sealing=st.booleans(),
        is_generated=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda one: one.timestamp,
).map(lambda some: tuple(sorted(some, key=lambda one: one.timestamp)))
records = st.builds(
    TxnRecord,
    version=st.integers(0, 2**62),
    partitions=partitions,
    min_timestamp=st.integers(-(2**63), 2**63 - 1),
    max_timestamp=st.integers(-(2**63), 2**63 - 1),
    sealed_epoch=st.integers(0, 2**63),
    writer_epoch=st.integers(1, 2**63),
)


def sizes(record: TxnRecord) -> tuple[int, int]:
    return 4 * len(record.symbol_counts), 32 * len(record.partitions)


@given(records)
def test_what_is_written_is_read(record: TxnRecord):
    data = encode_record(record)
    assert len(data) == record_bytes(*sizes(record)) + EXTENSION.size_bytes
    found = decode_record(data, record.version, *sizes(record))
    plain = tuple(replace(one, version_word=0) for one in found.partitions)
    assert replace(found, other={}, partitions=plain) == record


@given(records, st.data())
def test_a_flipped_bit_is_never_another_record(record: TxnRecord, data: st.DataObject):
    octets = bytearray(encode_record(record))
    bit = data.draw(st.integers(0, 8 * len(octets) - 1))
    octets[bit // 8] ^= 1 << bit % 8
    magic = RECORD.offset("extension_magic")
    try:
        found = decode_record(bytes(octets), record.version, *sizes(record))
    except Damaged:
        return
    assert magic <= bit // 8 < magic + 4, "only without its mark it counts as QuestDB's"
    assert not found.is_ours


def test_a_torn_or_short_record_says_so():
    record = TxnRecord(
        version=3, writer_epoch=1, partitions=(TxnPartition(timestamp=0, row_count=5, name_txn=1, size_bytes=99),)
    )
    data = encode_record(record)
    torn = data[:140] + bytes(len(data) - 140)
    with pytest.raises(ChecksumMismatch, match="torn"):
        decode_record(torn, 3, *sizes(record))
    for end in range(len(data)):
        with pytest.raises(Truncated):
            decode_record(data[:end], 3, *sizes(record))


def test_tables_of_the_layout_add_up():
    for layout in (RECORD, PARTITION, SLOT, EXTENSION):
        at = 0
        for field in layout.fields:
            assert field.offset == at, field
            at += field.size_bytes
        assert at == layout.size_bytes


@pytest.mark.parametrize(
    ("granularity", "name"),
    [
        ("hour", "2024-02-29T23"),
        ("day", "2024-02-29"),
        ("week", "2024-W09"),
        ("month", "2024-02"),
        ("year", "2024"),
        ("none", "default"),
    ],
)
def test_partitions_are_named_as_questdb_names_them(granularity: str, name: str):
    import numpy as np

    how = Granularity(granularity)
    for unit, scale in (("us", 10**6), ("ns", 10**9)):
        moment = 1_709_249_400 * scale + 7  # 2024-02-29T23:30:00
        begin = int(begins_of(np.array([moment], np.int64), how, unit)[0])
        end = end_of(begin, how, unit)
        assert partition_name(begin, how, unit) == name
        assert end is None or begin <= moment < end
        assert end is None or int(begins_of(np.array([end], np.int64), how, unit)[0]) == end
        assert parse_directory(directory_name(name, 7)) == (name, 7)
    assert parse_directory(name) == (name, -1)


def test_before_1970_a_partition_begins_before_its_rows():
    import numpy as np

    for how in Granularity:
        begin = int(begins_of(np.array([-1], np.int64), how, "us")[0])
        assert begin <= -1 or how is Granularity.NONE
