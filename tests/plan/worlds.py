"""Random tables, and the obvious planner: one block at a time, from the entries themselves."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.index.segment_examples import Value, file_entry, schema_of
from underlay.index.deletion_vectors import unpack
from underlay.index.entry import ColumnEntry, FileEntry, Flag
from underlay.index.segment.packed import binary_array
from underlay.index.segment.segment import Segment
from underlay.index.segment.write import write_segment
from underlay.plan.part import Part
from underlay.prune import (
    And,
    Between,
    ColumnBounds,
    Compare,
    In,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNull,
    IsNull,
    Not,
    NotIn,
    Op,
    Or,
    Predicate,
    columns_of,
    evaluate,
)
from underlay.schema.bound_storage import Storage, bound_domain, storage_of
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.values.ranges import ByteRange

TYPES = {
    "number": "int64",
    "real": "float64",
    "name": "string",
    "big": "uint64",
    "price": "decimal(30, 2)",
    "added": "int32",
    "extra": "string",
    "maybe": "float64",
}
DEFAULTS = {"added": "3", "extra": "b", "maybe": "nan"}

_NUMBERS = st.integers(-5, 5)
_REALS = st.sampled_from([math.nan, -0.0, 0.0, 1.5, -1.5, math.inf, 2.0])
_NAMES = st.sampled_from([b"", b"a", b"b", b"a\x00", b"b" * 70, "é".encode(), "\U0010ffff".encode() * 20])
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "number": _NUMBERS,
    "real": _REALS,
    "name": _NAMES,
    "big": st.sampled_from([0, 1, 2**63 + 5, 2**64 - 1]),
    "price": st.sampled_from([-(10**25), -100, 0, 100, 150, 10**25]),
    "added": _NUMBERS,
    "extra": _NAMES,
    "maybe": _REALS,
}


@dataclass(frozen=True, kw_only=True)
class World:
    """Parts, and the entries that they were made of."""

    schema: TableSchema
    entries: list[list[FileEntry]]
    removed: list[list[bool]]
    deletes: list[dict[int, bytes]] = field(default_factory=list)

    def parts(self) -> list[Part]:
        """Even parts are stored segments, odd ones tails."""
        return [
            Part(
                segment=stored(entries, self.schema) if number % 2 == 0 else Segment.of_entries(entries, self.schema),
                is_removed=np.array(removed, dtype=np.bool_) if any(removed) else None,
                deletes=deletes,
            )
            for number, (entries, removed, deletes) in enumerate(
                zip(self.entries, self.removed, self.deletes, strict=True)
            )
        ]


def stored(entries: list[FileEntry], schema: TableSchema) -> Segment:
    """The entries written as a segment and opened again."""
    data, ref = write_segment(entries, schema, segment_id="s", bounded_fields=())

    def fetch(ranges: list[ByteRange]) -> list[memoryview]:
        return [memoryview(data)[begin:end] for begin, end in ranges]

    return Segment.open(ref, fetch, "segment s")


@st.composite
def worlds(draw: st.DrawFn) -> World:
    schema = schema_of(TYPES, DEFAULTS)
    entries: list[list[FileEntry]] = []
    removed: list[list[bool]] = []
    deletes: list[dict[int, bytes]] = []
    for part in range(draw(st.integers(1, 3))):
        count = draw(st.integers(0, 4))
        files = [draw(_files(schema, f"{part}-{number}")) for number in range(count)]
        entries.append(files)
        removed.append([draw(st.integers(0, 5)) == 0 for _ in files])
        later = {row: entry.deletes for row, entry in enumerate(files) if entry.deletes and draw(st.booleans())}
        deletes.append({row: data for row, data in later.items() if data is not None})
    return World(schema=schema, entries=entries, removed=removed, deletes=deletes)


@st.composite
def _files(draw: st.DrawFn, schema: TableSchema, name: str) -> FileEntry:
    sizes = draw(st.lists(st.integers(0, 3), max_size=4))
    has = [column for column in TYPES if (column not in DEFAULTS and column != "big") or draw(st.booleans())]
    columns = {
        column: [draw(st.lists(st.none() | VALUES[column], min_size=size, max_size=size)) for size in sizes]
        for column in has
    }
    unknown = st.sampled_from([0, 0, 0, Flag.HAS_NULL_COUNT, Flag.HAS_LOW, Flag.HAS_HIGH, Flag.HAS_HIGH | Flag.HAS_LOW])
    clear = [draw(unknown) for _ in sizes]
    extra = draw(st.sampled_from([0, 0, Flag.MAY_HOLD_NAN]))
    total = sum(sizes)
    deleted = sorted(draw(st.sets(st.integers(0, total - 1)))) if total and draw(st.booleans()) else []
    return file_entry(name, schema, columns, deleted=deleted, clear=clear, extra=extra)


_LITERALS: dict[str, st.SearchStrategy[object]] = {
    "number": _NUMBERS,
    "real": _REALS,
    "name": st.sampled_from(["", "a", "b", "a\x00", "b" * 60, "é"]),
    "big": st.sampled_from([0, 2, 2**63, 2**64]),
    "price": st.integers(-2, 2),
    "added": _NUMBERS,
    "extra": st.sampled_from(["a", "b"]),
    "maybe": _REALS,
}


@st.composite
def _leaves(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(list(TYPES)))
    literal = st.none() | _LITERALS[name]
    path = (name,)
    match draw(st.integers(0, 7)):
        case 0:
            return IsNull(path)
        case 1:
            return IsNotNull(path)
        case 2:
            return In(path, tuple(draw(st.lists(literal, min_size=1, max_size=3))))
        case 3:
            return NotIn(path, tuple(draw(st.lists(literal, min_size=1, max_size=3))))
        case 4:
            return IsDistinct(path, draw(literal)) if draw(st.booleans()) else IsNotDistinct(path, draw(literal))
        case 5 if name in ("real", "maybe"):
            return IsNan(path)
        case 6:
            return Between(path, draw(literal), draw(literal))
    return Compare(path, draw(st.sampled_from(list(Op))), draw(literal))


def predicates() -> st.SearchStrategy[Predicate]:
    return st.recursive(
        _leaves(),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts)))
            | st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts)))
            | inner.map(Not)
        ),
        max_leaves=5,
    )


def obvious_plan(world: World, predicate: Predicate) -> dict[tuple[int, int, int], bool]:
    """The kept blocks by part, file and number, and whether every row matches."""
    found = {}
    for part, entries in enumerate(world.entries):
        for row, entry in enumerate(entries):
            if not world.removed[part][row]:
                data = world.deletes[part].get(row, entry.deletes)
                for block, must in _kept_blocks(world.schema, entry, predicate, data):
                    found[part, row, block] = must
    return found


def _kept_blocks(
    schema: TableSchema, entry: FileEntry, predicate: Predicate, deletes: bytes | None
) -> list[tuple[int, bool]]:
    rows = [count for (count,) in struct.iter_unpack("<q", entry.block_rows)]
    deleted = set(unpack(deletes).tolist()) if deletes is not None else set()
    found, first = [], 0
    for block, count in enumerate(rows):
        is_gone = count > 0 and deleted.issuperset(range(first, first + count))
        first += count
        columns = {
            path: _one_block(schema.leaf_by_path[path], entry, block, count, len(rows))
            for path in columns_of(predicate)
        }
        verdict = evaluate(predicate, columns, block_count=1, row_count=[count])
        if verdict.kept[0] and not is_gone:
            found.append((block, bool(verdict.must[0])))
    return found


def _one_block(leaf: LeafColumn, entry: FileEntry, block: int, rows: int, block_count: int) -> ColumnBounds:
    column = next((column for column in entry.columns if column.field == leaf.id), None)
    domain = bound_domain(leaf.type)
    if column is None:
        return _default_block(leaf, rows)
    flags = column.flags[block]
    return ColumnBounds.of(
        domain,
        block_count=1,
        minimum=_bound(column, column.low, leaf, block, block_count),
        maximum=_bound(column, column.high, leaf, block, block_count),
        has_minimum=[bool(flags & Flag.HAS_LOW)],
        has_maximum=[bool(flags & Flag.HAS_HIGH)],
        null_count=struct.unpack_from("<q", column.null_counts, 8 * block),
        has_null_count=[bool(flags & Flag.HAS_NULL_COUNT)],
        value_count=[rows],
        may_hold_nan=[bool(flags & Flag.MAY_HOLD_NAN)],
    )


def _default_block(leaf: LeafColumn, rows: int) -> ColumnBounds:
    domain = bound_domain(leaf.type)
    if leaf.default is None:
        return ColumnBounds.of(domain, block_count=1, null_count=[rows], value_count=[rows], may_hold_nan=False)
    if leaf.default == "nan":
        return ColumnBounds.of(domain, block_count=1, null_count=[0], value_count=[rows])
    bound = pa.array([b"b"]) if leaf.path == ("extra",) else np.array([3])
    return ColumnBounds.of(
        domain, block_count=1, minimum=bound, maximum=bound, null_count=[0], value_count=[rows], may_hold_nan=False
    )


def _bound(column: ColumnEntry, packed: bytes, leaf: LeafColumn, block: int, block_count: int) -> object:
    storage = storage_of(leaf.type)
    if storage is Storage.BYTES:
        return binary_array(packed, block_count).slice(block, 1)
    return np.frombuffer(packed, storage.value)[block : block + 1]
