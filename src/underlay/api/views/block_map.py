"""The block map of a scan: every block of the version as a row, with its file, size, bounds, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.api.views.file_rows import shown_bytes
from underlay.errors import InvalidRequest
from underlay.index.entry import Flag
from underlay.index.keys import plain_location
from underlay.index.segment.bounds import has_flag
from underlay.index.segment.packed import BoundColumn
from underlay.plan.block_map import (
    NO_STEP,
    BlockVerdict,
    PartVerdicts,
    bytes_of_blocks,
    skipped_verdicts,
    verdicts_of,
)
from underlay.plan.leaf_bounds import leaf_statistics
from underlay.plan.part import Part
from underlay.plan.plan import BlockPlan
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.convert.stored_values import from_stored
from underlay.schema.names import find_leaf, parse_path
from underlay.schema.table_schema import LeafColumn
from underlay.schema.types import Scalar, TypeKind
from underlay.table.versions.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScanVerdicts:
    """A plan's verdicts, kept after the scan is over. The blocks themselves are left out: the version has them."""

    skipped: frozenset[str]
    """The ids of segments that were skipped."""
    leaves: tuple[int, ...]
    """The leaves that were read."""
    steps: Sequence[Mapping[str, object]]
    verdicts: NDArray[np.uint8]
    """The verdicts on the blocks of the other segments, concatenated."""
    numbers: NDArray[np.uint16]
    """The number of the step that decided each of these blocks."""

    @classmethod
    def of(cls, plan: BlockPlan) -> ScanVerdicts:
        """The verdicts of a plan."""
        steps, parts = verdicts_of(plan)
        return cls(
            skipped=frozenset(ref.id for ref in plan.skipped),
            leaves=plan.columns,
            steps=[asdict(step) for step in steps],
            verdicts=np.concatenate([np.zeros(0, np.uint8), *(one.verdicts for one in parts)]),
            numbers=np.concatenate([np.zeros(0, np.uint16), *(one.steps for one in parts)]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMap:
    """A row for each block, and the column whose bounds the rows show."""

    rows: pa.Table
    column: str | None


def block_map(
    snapshot: Snapshot, decided: ScanVerdicts, column: str | None = None, *, is_sorted: bool = False
) -> BlockMap:
    """All blocks in the order of the table's files, or by the least value of the column.

    `column` is the one whose bounds are shown: by default the first sort column, else the table's first column. Raises
    UnknownColumn.
    """
    leaf = _leaf(snapshot, column)
    leaves = decided.leaves or tuple(one.id for one in snapshot.schema.leaves)
    rows = [_rows(snapshot, part, verdicts, leaves, leaf) for part, verdicts in _parts(snapshot, decided)]
    found = pa.concat_tables(rows or [_empty(leaf)], promote_options="default").unify_dictionaries()
    if is_sorted and leaf is not None:
        found = found.take(pc.sort_indices(found, [("min", "ascending")]))
    return BlockMap(rows=found.combine_chunks(), column=None if leaf is None else format_column(leaf.path))


def binned(rows: pa.Table, bins: int) -> pa.Table:
    """Neighbouring blocks counted together in a limited number of bins: how many blocks have each verdict."""
    count = rows.num_rows
    bins = max(1, min(bins, count))
    edges = np.linspace(0, count, bins + 1).astype(np.int64)
    begins = edges[:-1]
    columns: dict[str, NDArray[np.int64]] = {"first": begins, "blocks": np.diff(edges)}
    verdicts = rows["verdict"].to_numpy()
    numbers = {name: rows[name].to_numpy().astype(np.int64) for name in ("rows", "bytes")}
    numbers |= {one.name.lower(): (verdicts == one).astype(np.int64) for one in BlockVerdict}
    for name, values in numbers.items():
        columns[name] = np.add.reduceat(values, begins) if count else np.zeros(bins, np.int64)
    return pa.table(columns) if count else pa.table(columns).slice(0, 0)


def _leaf(snapshot: Snapshot, column: str | None) -> LeafColumn | None:
    schema = snapshot.schema
    if column is not None:
        found = find_leaf(schema, parse_path(column))
        if found.is_repeated:
            raise InvalidRequest("a column of lists or maps has no bounds", found=column)
        return found
    order = snapshot.definition.sort_by
    by_id = {leaf.id: leaf for leaf in schema.leaves}
    first = by_id.get(order[0].field) if order else None
    return first or next((leaf for leaf in schema.leaves if not leaf.is_repeated), None)


def _parts(snapshot: Snapshot, decided: ScanVerdicts) -> Iterator[tuple[Part, PartVerdicts]]:
    """All parts of the version, each with its verdicts."""
    at = 0
    skipped = [ref.id in decided.skipped for ref in snapshot.root.segments]
    for number, part in enumerate(snapshot.parts()):
        if number < len(skipped) and skipped[number]:
            yield part, skipped_verdicts(part.segment)
            continue
        end = at + part.segment.block_count
        yield part, PartVerdicts(verdicts=decided.verdicts[at:end], steps=decided.numbers[at:end])
        at = end


def _rows(
    snapshot: Snapshot, part: Part, decided: PartVerdicts, leaves: Sequence[int], leaf: LeafColumn | None
) -> pa.Table:
    segment = part.segment
    owners = segment.file_of_block
    blocks = np.arange(len(owners)) if part.is_removed is None else np.flatnonzero(~part.is_removed[owners])
    owners = owners[blocks]
    files, codes = np.unique(owners, return_inverse=True)
    names = [location_of(snapshot, segment.locations[int(row)].as_py()) for row in files]
    columns: dict[str, AnyArray] = {
        "file": pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(names, pa.string())),
        "block": pa.array((blocks - segment.block_begin[owners]).astype(np.uint32)),
        "rows": pa.array(segment.block_rows[blocks]),
        "bytes": pa.array(bytes_of_blocks(segment, snapshot.schema, blocks, leaves)),
        "verdict": pa.array(decided.verdicts[blocks]),
        "step": pa.array(decided.steps[blocks], mask=decided.steps[blocks] == NO_STEP),
    }
    if leaf is not None:
        statistics = leaf_statistics(segment, leaf)
        for name, bound, flag in (("min", statistics.low, Flag.HAS_LOW), ("max", statistics.high, Flag.HAS_HIGH)):
            columns[name] = _bounds(bound, leaf.type, has_flag(statistics.flags, flag), blocks)
    return pa.table(columns)


def _empty(leaf: LeafColumn | None) -> pa.Table:
    kinds: dict[str, Any] = {
        "file": pa.dictionary(pa.int32(), pa.string()), "block": pa.uint32(), "rows": pa.int64(), "bytes": pa.int64(),
        "verdict": pa.uint8(), "step": pa.uint16(),
    }  # fmt: skip
    if leaf is not None:
        kind = _bounds(None, leaf.type, np.zeros(0, np.bool_), np.zeros(0, np.int64)).type
        kinds |= {"min": kind, "max": kind}
    return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})


def location_of(snapshot: Snapshot, location: str) -> str:
    """The key of a file in the lake, the URL of any other."""
    return snapshot.keys.file(location) or plain_location(location)


def _bounds(bound: BoundColumn | None, type_: Scalar, is_known: NDArray[np.bool_], blocks: NDArray[Any]) -> AnyArray:
    """Bounds as values of the column; bytes that are not text, in hexadecimal."""
    is_null = ~is_known[blocks]
    if bound is None:
        return pa.nulls(len(blocks), pa.string())
    if type_.kind is TypeKind.DECIMAL:
        return _decimals(bound, type_, is_null, blocks)
    if isinstance(bound, np.ndarray):
        return from_stored(bound[blocks], type_, is_null)
    taken = pc.if_else(pa.array(is_null), pa.scalar(None, pa.binary()), bound.take(pa.array(blocks)))
    if type_.kind is TypeKind.STRING:
        with suppress(pa.ArrowInvalid):  # a writer cut this bound in the middle of a character
            return taken.cast(pa.string())
    return pa.array([None if one is None else shown_bytes(one, type_.kind) for one in taken.to_pylist()], pa.string())


def _decimals(bound: BoundColumn, type_: Scalar, is_null: NDArray[np.bool_], blocks: NDArray[Any]) -> AnyArray:
    words = np.zeros((len(blocks), 2), np.int64)
    if isinstance(bound, np.ndarray):
        words[:, 0] = bound[blocks]
        words[:, 1] = bound[blocks] >> 63
    else:
        for at, (one, no) in enumerate(zip(bound.take(pa.array(blocks)).to_pylist(), is_null, strict=True)):
            if not no:
                words[at] = np.frombuffer((one or b"")[::-1], np.int64)
    kind = pa.decimal128(type_.precision, type_.scale)
    mask = pa.array(~is_null).buffers()[1]
    return pa.Array.from_buffers(kind, len(blocks), [mask, pa.py_buffer(words.tobytes())])
