"""A Parquet footer (FileMetaData) as typed values, over the Thrift tree that it came from.

Parsing accepts any footer whose Thrift is sound, even with unknown logical types, column orders or codecs. `checks`
checks what a reader of the file needs beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from underlay.errors import Malformed, SchemaMismatch, Unsupported
from underlay.parquet.footer.chunks import CHUNKS, Chunks, read_chunks
from underlay.parquet.footer.schema import Schema, read_schema
from underlay.parquet.records.records import Flags, Integers, Spans, StructRecords
from underlay.parquet.thrift.encode import list_header
from underlay.parquet.thrift.tree import ITEM, ThriftKind, ThriftTree, parse
from underlay.runtime.locks import cached_property

ROW_GROUPS = 4
"""Field id of the row groups in FileMetaData."""

SIGNATURE_BYTES = 28
"""Nonce and tag after a footer that is in plain text while columns are encrypted."""

MAX_ROW_GROUPS = 1_000_000
MAX_KEY_VALUES = 100_000
"""More than any file has: they bound what hostile input can make of a few bytes each."""


_ROW_GROUP_FIELDS = (
    ((3,), ThriftKind.I64),
    ((2,), ThriftKind.I64),
    ((5,), ThriftKind.I64),
    ((7,), ThriftKind.I16),
    ((1,), ThriftKind.LIST),
    ((4,), ThriftKind.LIST),
)
"""Rows, bytes, offset, ordinal, columns and sorting columns of a RowGroup."""

_SORTING_FIELDS = (((1,), ThriftKind.I32), ((2,), ThriftKind.TRUE), ((3,), ThriftKind.TRUE))
_TYPE_ORDER = b"\x1c\x00\x00"
"""The union with the member that every writer chooses."""


class ColumnOrder(Enum):
    """How the bounds of a column are to be compared."""

    TYPE_ORDER = "type order"
    IEEE_754 = "IEEE 754 total order"
    UNKNOWN = "unknown"


_ORDERS = {1: ColumnOrder.TYPE_ORDER, 2: ColumnOrder.IEEE_754}


class SortingColumn(NamedTuple):
    """One column that the rows of a row group are sorted by."""

    column_index: int
    is_descending: bool
    is_nulls_first: bool


class KeyValue(NamedTuple):
    """A key of the file's own metadata; the value may be missing."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    """Numbers for each row group, as stored. `sorting_columns` is None for a group that does not say."""

    num_rows: Integers
    total_byte_size: Integers
    file_offset: Integers
    has_file_offset: Flags
    ordinal: Integers
    has_ordinal: Flags
    column_count: Integers
    sorting_columns: tuple[tuple[SortingColumn, ...] | None, ...]


class Footer:
    """The footer of one file. `data` are its Thrift bytes, without the length and magic that follow them."""

    def __init__(self, tree: ThriftTree) -> None:
        self.tree = tree
        self.data = tree.data
        self._fields = tree.fields(0)
        self.schema: Schema = read_schema(tree)
        self.version = self._integer(1, ThriftKind.I32)
        self.num_rows = self._integer(3, ThriftKind.I64)
        self.created_by = self._text(6)
        self.key_values = self._key_values()
        self.column_orders = self._column_orders()
        self.is_encrypted = 8 in self._fields
        self.row_groups = self._row_groups()

    @classmethod
    def parse(cls, data: bytes) -> Footer:
        """The footer that `data` holds, with nothing after it.

        The footer of a file with encrypted columns ends with a signature, which is not checked.
        """
        tree = parse(data, trailing=True)
        footer = cls(tree)
        extra = len(data) - tree.size_bytes
        if extra != (SIGNATURE_BYTES if footer.is_encrypted else 0) and extra:
            raise Malformed("bytes follow the footer", place=f"byte {tree.size_bytes}", found=f"{extra} bytes")
        return footer

    @property
    def row_group_count(self) -> int:
        """How many row groups the file has."""
        return self.row_groups.num_rows.size

    @property
    def column_count(self) -> int:
        """How many leaf columns the schema has."""
        return len(self.schema.leaves)

    @cached_property
    def chunks(self) -> Chunks:
        """The column chunks. Refused if a row group does not have one chunk for each column of the schema."""
        wrong = np.flatnonzero(self.row_groups.column_count != self.column_count)
        if wrong.size:
            raise SchemaMismatch(
                "a row group does not have as many columns as the schema",
                place=f"row group {int(wrong[0])}",
                expected=self.column_count,
                found=int(self.row_groups.column_count[wrong[0]]),
            )
        found = len(self.tree.select(CHUNKS, (ThriftKind.STRUCT,)))
        if found != self.row_group_count * self.column_count:
            raise Malformed("a row group's columns are not column chunks", place="footer", found=f"{found} chunks")
        return read_chunks(self.tree, self.row_group_count, self.column_count)

    def span_bytes(self, spans: Spans, row_group: int, column: int) -> bytes | None:
        """The bytes of one chunk's span, None if it is absent."""
        begin, length = int(spans.begin[row_group, column]), int(spans.length[row_group, column])
        return None if begin < 0 else self.data[begin : begin + length]

    def _find(self, field: int, kind: ThriftKind) -> int | None:
        """The field of FileMetaData with this id; one of another kind counts as absent, as in Thrift."""
        entry = self._fields.get(field)
        return entry if entry is not None and self.tree.kind(entry) is kind else None

    def _integer(self, field: int, kind: ThriftKind) -> int:
        entry = self._find(field, kind)
        return 0 if entry is None else self.tree.integer(entry)

    def _text(self, field: int) -> str | None:
        entry = self._find(field, ThriftKind.BINARY)
        return None if entry is None else self.tree.binary(entry).decode(errors="replace")

    def _key_values(self) -> tuple[KeyValue, ...]:
        """The pairs in order, duplicates included."""
        if 5 not in self._fields:
            return ()
        records = StructRecords(self.tree, (5, ITEM))
        _check_count("keys", records.count, MAX_KEY_VALUES)
        keys, values = records.spans(1), records.spans(2)
        columns = (column.tolist() for column in (keys.begin, keys.length, values.begin, values.length))
        return tuple(
            KeyValue(self.data[key : key + key_length], self.data[value : value + length] if value >= 0 else None)
            for key, key_length, value, length in zip(*columns, strict=True)
        )

    def _column_orders(self) -> tuple[ColumnOrder, ...] | None:
        """One for each leaf, as stored: the list may be shorter or longer than the schema."""
        entry = self._find(7, ThriftKind.LIST)
        if entry is None:
            return None
        count = self.tree.integer(entry)
        if self.tree.raw(entry) == list_header(ThriftKind.STRUCT, count) + _TYPE_ORDER * count:
            return (ColumnOrder.TYPE_ORDER,) * count
        members = [self.tree.children(order) for order in self.tree.children(entry)]
        return tuple(
            _ORDERS.get(self.tree.field_id(member[0]), ColumnOrder.UNKNOWN) if len(member) == 1 else ColumnOrder.UNKNOWN
            for member in members
        )

    def _row_groups(self) -> RowGroups:
        if self._find(ROW_GROUPS, ThriftKind.LIST) is None:
            raise Malformed("the footer has no list of row groups", place="footer")
        groups = StructRecords(self.tree, (ROW_GROUPS, ITEM))
        _check_count("row groups", groups.count, MAX_ROW_GROUPS)
        values = groups.read(_ROW_GROUP_FIELDS)
        num_rows, total_byte_size, file_offset, ordinal, column_count, sorting_count = values.numbers
        _, _, has_file_offset, has_ordinal, _, is_sorted = values.present
        return RowGroups(
            num_rows=num_rows,
            total_byte_size=total_byte_size,
            file_offset=file_offset,
            has_file_offset=has_file_offset,
            ordinal=ordinal,
            has_ordinal=has_ordinal,
            column_count=column_count,
            sorting_columns=self._sorting_columns(sorting_count.tolist(), is_sorted.tolist()),
        )

    def _sorting_columns(
        self, counts: list[int], is_sorted: list[bool]
    ) -> tuple[tuple[SortingColumn, ...] | None, ...]:
        if not any(is_sorted):
            return (None,) * len(counts)
        columns = StructRecords(self.tree, (ROW_GROUPS, ITEM, 4, ITEM)).read(_SORTING_FIELDS)
        sorting = [SortingColumn(column, bool(down), bool(nulls)) for column, down, nulls in columns.numbers.T.tolist()]
        ends = accumulate(counts)
        return tuple(
            tuple(sorting[end - count : end]) if is_there else None
            for end, count, is_there in zip(ends, counts, is_sorted, strict=True)
        )


def _check_count(what: str, count: int, most: int) -> None:
    if count > most:
        raise Unsupported(f"the footer has too many {what}", place="footer", expected=f"at most {most}", found=count)
