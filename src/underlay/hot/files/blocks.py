"""Blocks of a growing file: encoded from rows, and as its footer has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from underlay.errors import Damaged, Unsupported
from underlay.parquet.footer.assemble import FooterForm, GroupBytes, take_apart
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import MAGIC, TAIL_BYTES
from underlay.parquet.write.splice_file import block_places
from underlay.parquet.write.writer import WriteOptions, write_files
from underlay.pm.convert.footer import sidecar_blocks
from underlay.pm.format.values import SidecarBlock
from underlay.values.physical import PhysicalType


@dataclass(frozen=True, slots=True, kw_only=True)
class HotBlock:
    """A block in its file. `low` and `high` are its least and greatest timestamp, `begin` and `end` where it lies,
    `pm_offset` where the sidecar has it."""

    row_count: int
    low: int
    high: int
    begin: int
    end: int
    group: GroupBytes
    pm_offset: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of its chunks."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBlock:
    """A block that is in no file yet: its chunks, and the footer of a file that holds nothing else."""

    data: memoryview
    footer: Footer
    row_count: int
    low: int
    high: int

    def placed(self, position: int) -> tuple[HotBlock, SidecarBlock, FooterForm]:
        """The block with its bytes at this position of a file."""
        delta = position - len(MAGIC)
        form, (group,) = take_apart(self.footer, delta)
        (sidecar,) = sidecar_blocks(self.footer, delta)
        block = HotBlock(
            row_count=self.row_count,
            low=self.low,
            high=self.high,
            begin=position,
            end=position + len(self.data),
            group=group,
        )
        return block, sidecar, form


def encode_blocks(
    rows: Sequence[pa.Table], times: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]], options: WriteOptions
) -> Iterator[EncodedBlock]:
    """Each table, whose rows are as files store them and in the order of their timestamps, as one block."""
    for table, moments in zip(rows, times, strict=True):
        (written,) = write_files([table], table.schema, options)
        view = memoryview(written.view())
        yield EncodedBlock(
            data=view[len(MAGIC) : len(view) - TAIL_BYTES - len(written.footer.data)],
            footer=written.footer,
            row_count=table.num_rows,
            low=int(moments[0]),
            high=int(moments[-1]),
        )


def blocks_in(footer: Footer, column: int) -> tuple[FooterForm, list[HotBlock]]:
    """The blocks of a file by its footer; `column` is the leaf with the timestamps. Raises Damaged."""
    form, groups = take_apart(footer)
    lows, highs = timestamp_bounds(footer, column)
    rows = footer.row_groups.num_rows.tolist()
    if not groups:
        return form, []
    places = block_places(footer)
    return form, [
        HotBlock(row_count=count, low=low, high=high, begin=place.begin, end=place.end, group=group)
        for count, low, high, place, group in zip(rows, lows, highs, places, groups, strict=True)
    ]


def timestamp_bounds(footer: Footer, column: int) -> tuple[list[int], list[int]]:
    """The least and the greatest timestamp of each row group, from its statistics: we always write them. Dates count
    as microseconds. Raises Damaged when one is missing."""
    leaf = footer.schema.leaves[column]
    width = {PhysicalType.INT64: 8, PhysicalType.INT32: 4}.get(leaf.physical_type)
    if width is None:
        raise Unsupported(
            "the column of the timestamps is neither a timestamp nor a date", found=str(leaf.physical_type)
        )
    scale = 1 if width == 8 else 86_400_000_000
    statistics = footer.chunks.statistics
    found: list[list[int]] = [[], []]
    for spans, into in zip((statistics.min_value, statistics.max_value), found, strict=True):
        for row_group in range(footer.row_group_count):
            data = footer.span_bytes(spans, row_group, column)
            if data is None or len(data) != width:
                raise Damaged("a row group lacks the bounds of its timestamps", place=f"row group {row_group}")
            into.append(int.from_bytes(data, "little", signed=True) * scale)
    return found[0], found[1]
