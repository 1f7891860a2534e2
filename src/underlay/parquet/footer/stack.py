"""Stacks the row groups of files with equal schemas, so that what they share is computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from underlay.errors import Malformed, SchemaMismatch, UnderlayError
from underlay.parquet.footer.chunks import CHUNKS, IndexedChunks, indexed_chunks
from underlay.parquet.footer.footer import ROW_GROUPS, ColumnOrder, Footer, KeyValue
from underlay.parquet.footer.schema import ELEMENTS, Schema
from underlay.parquet.records.records import Integers
from underlay.parquet.records.stacked import StackedRecords
from underlay.parquet.records.walk import StackedStructs, stack_alike
from underlay.parquet.thrift.tree import ITEM, ThriftKind

NUM_ROWS, KEY_VALUES, CREATED_BY = 3, 5, 6
"""Fields of FileMetaData."""

FOOTERS_AT_ONCE = 512
"""Large enough to amortise the numpy calls, small enough for the CPU cache."""

_FEWEST = 2
"""Fewer footers cost less when they are read alone."""

MAX_LEADS = 8
"""At most this many leads are tried in a batch; the remaining footers are read one by one."""


class Origin(NamedTuple):
    """What one footer says about its file as a whole. `raw` is its Thrift footer."""

    raw: bytes
    created_by: str | None
    column_orders: tuple[ColumnOrder, ...] | None
    key_values: tuple[KeyValue, ...]
    row_group_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Files with equal schemas, one after the other; rows of `chunks` are their row groups.

    Spans of the chunks are positions in `data`.
    """

    schema: Schema
    data: bytes
    origins: tuple[Origin, ...]
    row_counts: Integers
    chunks: IndexedChunks

    @property
    def begins(self) -> list[int]:
        """Where each file's row groups begin, and, last, how many there are."""
        ends = np.cumsum([origin.row_group_count for origin in self.origins])
        return [0, *ends.tolist()]


def stack_of(footer: Footer) -> Stack:
    """One file. Refused unless its row groups have as many rows as the file."""
    rows = footer.row_groups.num_rows
    if (rows < 0).any() or int(rows.sum()) != footer.num_rows:
        raise Malformed(
            "the row counts of the row groups do not add up to the file's",
            expected=footer.num_rows,
            found=int(rows.sum()),
        )
    origin = Origin(footer.data, footer.created_by, footer.column_orders, footer.key_values, footer.row_group_count)
    return Stack(schema=footer.schema, data=footer.data, origins=(origin,), row_counts=rows, chunks=footer.chunks)


def read_stacks(footers: Sequence[bytes]) -> Iterator[tuple[Stack, list[int]]]:
    """Many footers as stacks, each with the positions of its files in `footers`; every footer is in one stack.

    Files of one writer and schema come out together, and cost little more than one of them. Raises the error of the
    first damaged footer, with its position in `footers` as the place.
    """
    leads: dict[int, Footer] = {}
    for begin in range(0, len(footers), FOOTERS_AT_ONCE):
        pending = list(range(begin, min(begin + FOOTERS_AT_ONCE, len(footers))))
        for _ in range(MAX_LEADS):
            if pending:
                stack, taken = _next_stack(footers, pending, leads)
                yield stack, taken
                pending = sorted(set(pending) - set(taken))
        for index in pending:
            yield _stack_one(_parse(footers, index), index), [index]


def _next_stack(footers: Sequence[bytes], pending: list[int], leads: dict[int, Footer]) -> tuple[Stack, list[int]]:
    """The footers that are like a lead of the most common length; most footers of that length are.

    `leads` are earlier leads, by length.
    """
    length, _ = Counter(len(footers[index]) for index in pending).most_common(1)[0]
    known = leads.get(length)
    found = None if known is None else _stack_like(known, footers, pending)
    if found is not None:
        return found
    lead = _lead(footers, pending, length)
    found = _stack_like(lead, footers, pending)
    if found is None:
        return _stack_one(_parse(footers, pending[0]), pending[0]), pending[:1]
    leads[length] = lead
    return found


def _lead(footers: Sequence[bytes], pending: list[int], length: int) -> Footer:
    try:
        return _parse(footers, next(index for index in pending if len(footers[index]) == length))
    except UnderlayError:  # the first damaged one is named
        return _parse(footers, pending[0])


def _parse(footers: Sequence[bytes], index: int) -> Footer:
    try:
        return Footer.parse(footers[index])
    except UnderlayError as error:
        raise error if len(footers) == 1 else error.at(f"footer {index}") from None


def _stack_one(footer: Footer, index: int) -> Stack:
    try:
        return stack_of(footer)
    except UnderlayError as error:
        raise error.at(f"footer {index}") from None


def _stack_like(lead: Footer, footers: Sequence[bytes], pending: list[int]) -> tuple[Stack, list[int]] | None:
    """All pending footers that are like the lead. None when fewer than two are, or one is damaged."""
    beginning = lead.data[: int(lead.tree.end[lead.tree.fields(0)[ELEMENTS]])]
    wanted = [index for index in pending if footers[index].startswith(beginning)]
    if len(wanted) < _FEWEST or lead.is_encrypted:
        return None
    try:
        stacked, is_alike = stack_alike(lead.tree, len(beginning), [footers[index] for index in wanted])
        taken = [index for index, alike in zip(wanted, is_alike.tolist(), strict=True) if alike]
        if len(taken) < _FEWEST:
            return None
        return _stacked(lead, stacked, [footers[index] for index in taken]), taken
    except UnderlayError:  # reading them one by one tells which is damaged
        return None


def _stacked(lead: Footer, stacked: StackedStructs, footers: Sequence[bytes]) -> Stack:
    """The stack of footers that are alike. Raises Malformed when a row count is not the sum of its row groups'."""
    if (lead.row_groups.column_count != lead.column_count).any():
        raise SchemaMismatch("a row group does not have as many columns as the schema")
    rows = StackedRecords(stacked, (ROW_GROUPS, ITEM)).integers(3, kind=ThriftKind.I64)
    totals = StackedRecords(stacked, ()).integers(NUM_ROWS, kind=ThriftKind.I64)
    if (rows < 0).any() or not np.array_equal(rows.reshape(stacked.count, -1).sum(axis=1), totals):
        raise Malformed("the row counts of the row groups do not add up to the file's")
    return Stack(
        schema=lead.schema,
        data=stacked.data,
        origins=tuple(_origins(lead, stacked, footers)),
        row_counts=rows,
        chunks=indexed_chunks(StackedRecords(stacked, CHUNKS), rows.size, lead.column_count),
    )


def _origins(lead: Footer, stacked: StackedStructs, footers: Sequence[bytes]) -> Iterator[Origin]:
    data = stacked.data
    records = StackedRecords(stacked, (KEY_VALUES, ITEM))
    keys, values = records.spans(1), records.spans(2)
    columns = [column.tolist() for column in (keys.begin, keys.length, values.begin, values.length)]
    pairs = [
        KeyValue(data[key : key + length], data[value : value + size] if value >= 0 else None)
        for key, length, value, size in zip(*columns, strict=True)
    ]
    each = records.count // stacked.count
    writers = StackedRecords(stacked, ()).spans(CREATED_BY)
    names = zip(footers, writers.begin.tolist(), writers.length.tolist(), strict=True)
    for rank, (raw, begin, length) in enumerate(names):
        yield Origin(
            raw,
            None if lead.created_by is None else data[begin : begin + length].decode(errors="replace"),
            lead.column_orders,
            tuple(pairs[rank * each : (rank + 1) * each]),
            lead.row_group_count,
        )
