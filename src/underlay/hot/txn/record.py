"""Decodes and encodes one record of `_txn`. Pure."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from deflate import crc32

from underlay.errors import ChecksumMismatch, InvalidRequest, Malformed, Truncated
from underlay.hot.txn.layout import (
    CRC_OFFSET,
    EXTENSION,
    GENERATED,
    MAGIC,
    MAX_EXTENSION_BYTES,
    NO_MAXIMUM,
    NO_MINIMUM,
    PARQUET,
    PARTITION,
    READ_ONLY,
    RECORD,
    REMOTE,
    ROWS_MASK,
    SQUASH_MASK,
    SQUASH_SHIFT,
    TABLE_BYTES,
    WORD_MASK,
)

_MASK = (1 << 64) - 1
_SIGN = 1 << 63
_U32 = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnPartition:
    """One partition. `row_count` is the committed number of rows, also of the last partition.

    `size_bytes` is the committed size of a Parquet partition's `data.parquet`; None for a native one. `is_sealing`: the
    partition is read-only, since it is about to become files of the table.
    """

    timestamp: int
    row_count: int
    name_txn: int
    size_bytes: int | None
    squash_count: int = 0
    is_generated: bool = True
    is_sealing: bool = False
    is_remote: bool = False
    version_word: int = 0
    """As QuestDB stored it, for a native partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnRecord:
    """One committed state of a table. `other` has fields that only QuestDB uses, by their names in `RECORD`."""

    version: int
    partitions: tuple[TxnPartition, ...] = ()
    min_timestamp: int = NO_MINIMUM
    max_timestamp: int = NO_MAXIMUM
    data_version: int = 0
    partition_table_version: int = 0
    sealed_epoch: int = 0
    writer_epoch: int = 0
    symbol_counts: tuple[int, ...] = ()
    other: Mapping[str, int] = field(default_factory=dict)

    @property
    def row_count(self) -> int:
        """Rows of all partitions."""
        return sum(partition.row_count for partition in self.partitions)

    @property
    def is_ours(self) -> bool:
        """Whether Underlay wrote the record, and it has a checksum."""
        return self.writer_epoch > 0

    @property
    def sealing(self) -> tuple[TxnPartition, ...]:
        """The partitions that the seal with the epoch after `sealed_epoch` turns into files of the table."""
        return tuple(partition for partition in self.partitions if partition.is_sealing and self.is_ours)

    def find(self, timestamp: int) -> TxnPartition | None:
        """The partition that begins at this time."""
        return next((one for one in self.partitions if one.timestamp == timestamp), None)


_OTHER = (
    "structure_version",
    "column_version",
    "truncate_version",
    "seq_txn",
    "lag_checksum",
    "lag_txn_count",
    "lag_row_count",
    "lag_min_timestamp",
    "lag_max_timestamp",
)
_UNUSED = ("extension_magic", "record_crc", "extension_bytes")


def record_bytes(symbols_bytes: int, partitions_bytes: int) -> int:
    """The size of a record whose slot has these numbers."""
    return RECORD.size_bytes + symbols_bytes + TABLE_BYTES + partitions_bytes


def decode_record(data: bytes, version: int, symbols_bytes: int, partitions_bytes: int) -> TxnRecord:
    """The record of this version, as long as its slot says. `data` may hold more: an extension lies behind it.

    Raises Truncated, ChecksumMismatch for a record of ours that was torn, Malformed for one that cannot be.
    """
    if symbols_bytes < 0 or partitions_bytes < 0 or symbols_bytes % 8 or partitions_bytes % PARTITION.size_bytes:
        raise Malformed("the slot has impossible sizes", found=f"{symbols_bytes} and {partitions_bytes} bytes")
    size = record_bytes(symbols_bytes, partitions_bytes)
    if len(data) < size:
        raise Truncated("the record is cut short", expected=f"{size} bytes", found=len(data))
    fields = dict(zip((one.name for one in RECORD.fields), RECORD.struct.unpack_from(data), strict=True))
    if fields["txn"] != version:
        raise Malformed("the record is of another version", expected=version, found=fields["txn"])
    extension = _extension(data, size, fields) if fields["extension_magic"] == MAGIC else {}
    table = RECORD.size_bytes + symbols_bytes + TABLE_BYTES
    words = [PARTITION.struct.unpack_from(data, at) for at in range(table, size, PARTITION.size_bytes)]
    partitions = tuple(_partition(*word) for word in words)
    if partitions:
        last = replace(partitions[-1], row_count=fields["transient_row_count"])
        partitions = (*partitions[:-1], last)
    if any(one.row_count < 0 for one in partitions):
        raise Malformed("a partition has a negative number of rows")
    if any(a.timestamp >= b.timestamp for a, b in pairwise(partitions)):
        raise Malformed("the partitions are not in the order of their timestamps")
    return TxnRecord(
        version=version,
        partitions=partitions,
        min_timestamp=fields["min_timestamp"],
        max_timestamp=fields["max_timestamp"],
        data_version=fields["data_version"],
        partition_table_version=fields["partition_table_version"],
        sealed_epoch=extension.get("sealed_epoch", 0),
        writer_epoch=extension.get("writer_epoch", 0),
        symbol_counts=struct.unpack_from(f"<{symbols_bytes // 4}i", data, RECORD.size_bytes),
        other={name: fields[name] for name in (*_OTHER, *(() if extension else _UNUSED))},
    )


def _extension(data: bytes, size: int, fields: Mapping[str, int]) -> dict[str, int]:
    """What we added to a record, whose checksum is verified."""
    length = fields["extension_bytes"]
    end = size + length
    if not EXTENSION.size_bytes <= length <= MAX_EXTENSION_BYTES or len(data) < end:
        raise Truncated("the extension of the record is cut short", expected=f"{end} bytes", found=len(data))
    computed = _crc(data[:end])
    if computed != fields["record_crc"]:
        raise ChecksumMismatch(
            "the record was torn: its checksum does not match",
            expected=f"{computed:#010x}",
            found=f"{fields['record_crc']:#010x}",
        )
    return dict(zip((one.name for one in EXTENSION.fields), EXTENSION.struct.unpack_from(data, size), strict=True))


def encode_record(record: TxnRecord) -> bytes:
    """The bytes of a record, with checksum and extension if it is ours."""
    rows = [partition.row_count for partition in record.partitions]
    # As QuestDB does: the last partition's rows stand in one place only, where they can change without its entry.
    stored = [*record.partitions[:-1], *(replace(last, row_count=0) for last in record.partitions[-1:])]
    symbols = struct.pack(f"<{len(record.symbol_counts)}i", *record.symbol_counts)
    if len(symbols) % 8:
        raise InvalidRequest("each symbol column has two counts", found=len(record.symbol_counts))
    table = b"".join(PARTITION.struct.pack(*_words(one)) for one in stored)
    lag = (0, 0, 0, 0, 0)  # minimum, maximum, seqTxn, rows, txns
    values = {
        "txn": record.version,
        "transient_row_count": rows[-1] if rows else 0,
        "fixed_row_count": sum(rows[:-1]),
        "min_timestamp": record.min_timestamp,
        "max_timestamp": record.max_timestamp,
        "data_version": record.data_version,
        "partition_table_version": record.partition_table_version,
        **dict.fromkeys((*_OTHER, *_UNUSED), 0),
        "lag_checksum": lag_checksum(record.version, *lag),
        **record.other,
        "symbol_column_count": len(record.symbol_counts) // 2,
    }
    if record.is_ours:
        values |= {"extension_magic": MAGIC, "extension_bytes": EXTENSION.size_bytes}
    head = RECORD.struct.pack(*(values[one.name] for one in RECORD.fields))
    data = bytearray(head + symbols + _U32.pack(len(table)) + table)
    if record.is_ours:
        data += EXTENSION.struct.pack(record.sealed_epoch, record.writer_epoch)
        _U32.pack_into(data, CRC_OFFSET, _crc(bytes(data)))
    return bytes(data)


def lag_checksum(txn: int, low: int, high: int, seq_txn: int, rows: int, txns: int) -> int:
    """QuestDB's checksum of the lag fields, as a signed 32-bit number."""
    found = low
    for value in (high, txn, seq_txn, rows, txns):
        found = (found * 31 + value) & _MASK
    folded = (found ^ (found >> 32)) & 0xFFFFFFFF
    return folded - (1 << 32) if folded >= 1 << 31 else folded


def _crc(data: bytes) -> int:
    return crc32(data[CRC_OFFSET + 4 :], crc32(bytes(4), crc32(data[:CRC_OFFSET])))


def _partition(timestamp: int, masked: int, name_txn: int, word: int) -> TxnPartition:
    is_parquet = bool(masked & PARQUET)
    return TxnPartition(
        timestamp=timestamp,
        row_count=masked & ROWS_MASK,
        name_txn=name_txn,
        size_bytes=word & WORD_MASK if is_parquet else None,
        squash_count=masked >> SQUASH_SHIFT & SQUASH_MASK,
        is_generated=bool(masked & GENERATED),
        is_sealing=bool(masked & READ_ONLY),
        is_remote=is_parquet and bool(word & REMOTE),
        version_word=word,
    )


def _words(one: TxnPartition) -> tuple[int, int, int, int]:
    if not 0 <= one.row_count <= ROWS_MASK:
        raise InvalidRequest("a partition cannot have this many rows", found=one.row_count)
    masked = one.row_count | (one.squash_count & SQUASH_MASK) << SQUASH_SHIFT
    masked |= GENERATED * one.is_generated | READ_ONLY * one.is_sealing
    if one.size_bytes is None:
        return one.timestamp, masked, one.name_txn, one.version_word
    word = one.version_word & ~WORD_MASK & ~REMOTE | one.size_bytes | REMOTE * one.is_remote
    return one.timestamp, masked | PARQUET, one.name_txn, word
