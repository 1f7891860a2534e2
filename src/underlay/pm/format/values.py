"""A sidecar's contents as values: the immutable header, blocks, and the footer of one version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from underlay.pm.format.layout import REPETITION_MASK, REPETITION_SHIFT, ColumnFlag
from underlay.values.physical import Repetition

Buffer = bytes | bytearray | memoryview
Generation = Literal["9.4", "10"]
"""Which QuestDB a sidecar is written as: 9.4.x, or 10.0.0 and later."""
ChunkArray = npt.NDArray[np.void]
"""Records of `layout.CHUNK`: shape (columns,) for one block, (row groups,) for one column, or both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarColumn:
    """One leaf column. Name, id and repetition are those of its top-level field (PM_FORMAT 2.4)."""

    name: str
    physical_type: int
    id: int = -1
    type: int = -1
    flags: int = 0
    fixed_byte_length: int = 0
    max_rep_level: int = 0
    max_def_level: int = 0
    reserved: int = 0

    @property
    def repetition(self) -> Repetition | None:
        """Repetition of the top-level field as stored; None for the invalid value 3."""
        stored = self.flags >> REPETITION_SHIFT & REPETITION_MASK
        return None if stored == REPETITION_MASK else Repetition(stored)

    @property
    def is_descending(self) -> bool:
        """Whether the file is sorted by this column from high to low."""
        return bool(self.flags & ColumnFlag.DESCENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What all versions of a sidecar share.

    `sorting` are leaf indices. `bloom_columns` are strictly ascending; `external_blooms` says that the footers
    point into the Parquet file instead of holding the filters. `other_flags` are optional bits this release does
    not know; they are kept.
    """

    columns: tuple[SidecarColumn, ...]
    designated_timestamp: int = -1
    sorting: tuple[int, ...] = ()
    bloom_columns: tuple[int, ...] = ()
    external_blooms: bool = False
    squash_tracker: int | None = None
    other_flags: int = 0
    reserved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SidecarBlock:
    """One row group: its chunk records and what they refer to in the out-of-line region.

    `blooms` gives, for each column that has an inlined filter, where in `out_of_line` its length field stands.
    """

    num_rows: int
    chunks: ChunkArray
    out_of_line: bytes = b""
    blooms: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFields:
    """What the caller says about a version; offsets, lengths and checksums follow from the content.

    A `seq_txn` of None or -1 is not stored. A `scratchpad` of None is that of the version before, () is none.
    `external_blooms` has one row per row group and one (offset, length) per bloom column, (0, 0) for none.
    `extra` are the bytes of sections whose flag this release does not know, `other_flags` their bits.
    """

    parquet_footer_offset: int
    parquet_footer_length: int
    unused_bytes: int = 0
    seq_txn: int | None = None
    scratchpad: tuple[tuple[int, bytes], ...] | None = None
    external_blooms: tuple[tuple[tuple[int, int], ...], ...] = ()
    other_flags: int = 0
    extra: bytes = b""

    @property
    def parquet_size(self) -> int:
        """Size of the data file at this version: the version's name in `_txn`."""
        return self.parquet_footer_offset + self.parquet_footer_length + 8
