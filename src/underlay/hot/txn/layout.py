"""The records of `_txn`, as field tables. QuestDB's layout; everything little-endian, of both its generations.

    HEADER(64) | record A or B at the offset that its slot names | …

    record: RECORD(132) | symbol counts (2 × i32 each) | u32 bytes of the partition table | PARTITION(32) × n

An even version means slot A, an odd one slot B. The record of a version is never overwritten while that version is the
newest. QuestDB leaves three words of a record unused, never writes them, and does not look behind a record. There we
store a checksum, and what sealing needs:

| offset | type | field | meaning |
|---|---|---|---|
| 116 | u32 | extension_magic | `UHOT` in a record of ours; anything in one of QuestDB |
| 120 | u32 | record_crc | CRC-32 of record and extension, these four bytes taken as zero |
| 124 | u32 | extension_bytes | length of the extension, which follows the record |
"""

from __future__ import annotations

from typing import Final

from underlay.pm.format.layout import LayoutField, RecordLayout


def _layout(name: str, *rows: tuple[int, str, str, str]) -> RecordLayout:
    return RecordLayout(name, tuple(LayoutField(offset=o, type=t, name=n, meaning=m) for o, t, n, m in rows))


SLOTS_OFFSET: Final = 8
SLOT_STRIDE: Final = 24
HEADER_BYTES: Final = 64
"""VERSION, then slot A at 8 and slot B at 32, each with 12 bytes; the rest is zero."""

SLOT = _layout(
    "slot",
    (0, "i32", "offset", "where the record begins; 0 for a slot that was never written"),
    (4, "i32", "symbols_bytes", "8 for each symbol column"),
    (8, "i32", "partitions_bytes", "32 for each partition"),
)

RECORD = _layout(
    "record",
    (0, "i64", "txn", "the version that this record is of"),
    (8, "i64", "transient_row_count", "rows of the last partition"),
    (16, "i64", "fixed_row_count", "rows of all other partitions"),
    (24, "i64", "min_timestamp", "the least timestamp; 2^63 - 1 without rows"),
    (32, "i64", "max_timestamp", "the greatest timestamp; -2^63 without rows"),
    (40, "i64", "structure_version", "of the columns"),
    (48, "i64", "data_version", "changes when rows were dropped"),
    (56, "i64", "partition_table_version", "changes when partitions do"),
    (64, "i64", "column_version", "0 for us"),
    (72, "i64", "truncate_version", "0 for us"),
    (80, "i64", "seq_txn", "0 for us"),
    (88, "i32", "lag_checksum", "of the lag fields; readers do not verify it"),
    (92, "i32", "lag_txn_count", "0 for us"),
    (96, "i32", "lag_row_count", "0 for us"),
    (100, "i64", "lag_min_timestamp", "0 for us"),
    (108, "i64", "lag_max_timestamp", "0 for us"),
    (116, "u32", "extension_magic", "ours: `UHOT`; QuestDB leaves what was there"),
    (120, "u32", "record_crc", "ours: CRC-32 of record and extension, with these bytes zero"),
    (124, "u32", "extension_bytes", "ours: length of the extension behind the record"),
    (128, "i32", "symbol_column_count", "0 for us"),
)

PARTITION = _layout(
    "partition",
    (0, "i64", "timestamp", "where the partition begins"),
    (8, "u64", "masked_size", "rows and flags"),
    (16, "i64", "name_txn", "the suffix of its directory, -1 for none"),
    (24, "u64", "version_word", "of a Parquet partition: the size of data.parquet in bits 0-55"),
)

EXTENSION = _layout(
    "extension",
    (0, "u64", "sealed_epoch", "the root's epoch after the last seal that is done"),
    (8, "u64", "writer_epoch", "the epoch of the writer's lock"),
)

MAGIC: Final = int.from_bytes(b"UHOT", "little")
MAX_EXTENSION_BYTES: Final = 4096
CRC_OFFSET: Final = RECORD.offset("record_crc")
TABLE_BYTES: Final = 4
"""The length of the partition table stands before it."""

ROWS_MASK: Final = (1 << 44) - 1
SQUASH_SHIFT: Final = 44
SQUASH_MASK: Final = 0xFFFF
GENERATED: Final = 1 << 60
PARQUET: Final = 1 << 61
READ_ONLY: Final = 1 << 62
REMOTE: Final = 1 << 63
WORD_MASK: Final = (1 << 56) - 1
NO_MINIMUM: Final = (1 << 63) - 1
NO_MAXIMUM: Final = -(1 << 63)
