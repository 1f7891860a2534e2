"""The plan of a query: which blocks of a snapshot it needs, file by file, proven from metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from underlay.index.deletion_vectors import count
from underlay.index.partition_specs import Specs
from underlay.index.root import SegmentRef
from underlay.plan.by_part import PartChoice, choose
from underlay.plan.leaf_bounds import nothing_known, resolve
from underlay.plan.part import BoolArray, Numbers, Part, distinct
from underlay.prune import TRUE, Predicate, columns_of, evaluate
from underlay.runtime.locks import cached_property
from underlay.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Amounts of a table, or of what a plan keeps. Rows exclude deleted ones."""

    files: int
    blocks: int
    rows: int
    data_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedFile:
    """A file and the blocks of it to read, ascending. `part` and `row` are the place of its entry."""

    part: int
    row: int
    location: str
    size_bytes: int
    etag: str | None
    footer_bytes: int
    footer_crc: int
    layout: str
    blocks: Numbers
    """Numbers of blocks in the file."""
    first_rows: Numbers
    """The position in the file of each block's first row."""
    block_rows: Numbers
    must: BoolArray
    """Blocks whose rows all match: they need no filter."""
    deletes: bytes | None
    """Deleted row positions in the file, serialised."""
    sidecar_bytes: int
    sidecar_crc: int
    constants: bytes | None
    """What the file's constants are, packed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockPlan:
    """What a query needs of a snapshot. `columns` are the leaves to read."""

    choices: tuple[PartChoice, ...]
    schema: TableSchema
    predicate: Predicate
    columns: tuple[int, ...]
    skipped: tuple[SegmentRef, ...]

    @cached_property
    def parts(self) -> Numbers:
        """The part of each kept block."""
        return _joined([np.full(len(c.blocks), at, dtype=np.int64) for at, c in enumerate(self.choices)])

    @cached_property
    def file_rows(self) -> Numbers:
        """The file of each kept block, as a row of its part."""
        return _joined([choice.files for choice in self.choices])

    @cached_property
    def blocks(self) -> Numbers:
        """The number in its file of each kept block."""
        return _joined([choice.blocks - choice.part.segment.block_begin[choice.files] for choice in self.choices])

    @cached_property
    def row_counts(self) -> Numbers:
        """The rows of each kept block, deleted ones included."""
        return _joined([choice.part.segment.block_rows[choice.blocks] for choice in self.choices])

    @cached_property
    def deleted_counts(self) -> Numbers:
        """The deleted rows of each kept block."""
        return _joined([choice.deleted for choice in self.choices])

    @cached_property
    def must(self) -> BoolArray:
        """Which kept blocks match in every row."""
        return np.concatenate([np.zeros(0, dtype=np.bool_), *(choice.must for choice in self.choices)])

    @cached_property
    def totals(self) -> Totals:
        """The whole table."""
        counted = [_totals(choice) for choice in self.choices]
        refs = self.skipped
        return Totals(
            files=sum(one.files for one in counted) + sum(ref.file_count for ref in refs),
            blocks=sum(one.blocks for one in counted) + sum(ref.block_count for ref in refs),
            rows=sum(one.rows for one in counted) + sum(ref.row_count - ref.deleted_rows for ref in refs),
            data_bytes=sum(one.data_bytes for one in counted) + sum(ref.data_bytes for ref in refs),
        )

    @cached_property
    def kept(self) -> Totals:
        """What is kept. `data_bytes` are of whole files; see `chunks.fetch_bytes` for what is read of them."""
        files = [distinct(choice.files) for choice in self.choices]
        sizes = [c.part.segment.files.size_bytes[rows] for c, rows in zip(self.choices, files, strict=True)]
        return Totals(
            files=sum(len(rows) for rows in files),
            blocks=len(self.must),
            rows=int(self.row_counts.sum() - self.deleted_counts.sum()),
            data_bytes=sum(int(size.sum()) for size in sizes),
        )

    def narrowed(self, chosen: Callable[[PartChoice], BoolArray]) -> BlockPlan:
        """The plan with fewer blocks: of each part's kept blocks, those that the mask from `chosen` marks."""
        return replace(self, choices=tuple(_narrowed(choice, chosen(choice)) for choice in self.choices))

    def file(self, part: int, row: int) -> PlannedFile:
        """One file, with the blocks of it that are kept."""
        choice = self.choices[part]
        begin, end = np.searchsorted(choice.files, (row, row + 1)).tolist()
        return _planned_file(choice, part, row, slice(begin, end))

    def files(self) -> Iterator[PlannedFile]:
        """The files with kept blocks, part by part in their order."""
        for number, choice in enumerate(self.choices):
            owners = choice.files
            starts = np.flatnonzero(np.diff(owners, prepend=-1)).tolist()
            for begin, end in pairwise([*starts, len(owners)]):
                yield _planned_file(choice, number, int(owners[begin]), slice(begin, end))


def _narrowed(choice: PartChoice, is_chosen: BoolArray) -> PartChoice:
    return replace(
        choice,
        blocks=choice.blocks[is_chosen],
        must=choice.must[is_chosen],
        deleted=choice.deleted[is_chosen],
    )


def _planned_file(choice: PartChoice, part: int, row: int, which: slice) -> PlannedFile:
    segment = choice.part.segment
    files, blocks = segment.files, choice.blocks[which]
    return PlannedFile(
        part=part,
        row=row,
        location=files.locations[row].as_py(),
        size_bytes=int(files.size_bytes[row]),
        etag=files.etags[row].as_py(),
        footer_bytes=int(files.footer_bytes[row]),
        footer_crc=int(files.footer_crcs[row]),
        layout=files.layouts[row].as_py(),
        blocks=blocks - segment.block_begin[row],
        first_rows=segment.first_rows[blocks],
        block_rows=segment.block_rows[blocks],
        must=choice.must[which],
        deletes=choice.part.deletes_of(row),
        sidecar_bytes=int(files.sidecar_bytes[row]),
        sidecar_crc=int(files.sidecar_crcs[row]),
        constants=files.constants[row].as_py(),
    )


def is_alive(choice: PartChoice) -> BoolArray:
    """Which files of a part the snapshot has."""
    removed = choice.part.is_removed
    return np.ones(choice.part.segment.file_count, dtype=np.bool_) if removed is None else ~removed


def _totals(choice: PartChoice) -> Totals:
    segment, alive = choice.part.segment, is_alive(choice)
    deleted = segment.files.deleted_rows.copy()
    for row, data in choice.part.deletes.items():
        deleted[row] = count(data)
    return Totals(
        files=int(alive.sum()),
        blocks=int(segment.files.block_counts[alive].sum()),
        rows=int((segment.file_rows - deleted)[alive].sum()),
        data_bytes=int(segment.files.size_bytes[alive].sum()),
    )


def _joined(arrays: list[NDArray[np.int64]]) -> Numbers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *arrays])


def make_plan(
    parts: Sequence[Part],
    schema: TableSchema,
    predicate: Predicate = TRUE,
    columns: Iterable[int] = (),
    *,
    specs: Specs | None = None,
    skipped: Sequence[SegmentRef] = (),
) -> BlockPlan:
    """The plan over all parts. `columns` are the leaves to read, those of the predicate included.

    `specs` are the partition specs that files may go by. `skipped` are segments that `surviving` left out, for the
    totals only. The only I/O is what the parts' segments fetch: none after `Segment.prefetch` with the predicate's
    leaves. Raises UnknownColumn and BadPredicate.
    """
    named = resolve(schema, columns_of(predicate))
    if not parts and not skipped:  # a literal that does not fit its column is refused without blocks too
        evaluate(predicate, {path: nothing_known(leaf, 0) for path, leaf in named.items()}, block_count=0)
    return BlockPlan(
        choices=tuple(choose(part, schema, specs or {}, predicate, named) for part in parts),
        schema=schema,
        predicate=predicate,
        columns=tuple(dict.fromkeys(columns)),
        skipped=tuple(skipped),
    )
