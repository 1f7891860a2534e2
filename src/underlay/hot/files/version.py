"""A version of a partition: what its files hold up to some end, and a version that is written but not committed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from underlay.errors import Damaged, Truncated
from underlay.hot.files.blocks import HotBlock
from underlay.hot.files.sidecar_tail import SidecarEnd
from underlay.hot.txn.disk import HotDisk
from underlay.parquet.footer.assemble import FooterForm
from underlay.parquet.footer.tail import TAIL_BYTES, read_tail

DATA_NAME = "data.parquet"
SIDECAR_NAME = "_pm"
DEAD_RATIO = 0.5
DEAD_BYTES = 16 << 20
"""A file is written anew when more than `DEAD_RATIO` of it is dead, if that is at least this much,"""
MOST_DEAD_BYTES = 1 << 30
"""or when this much is."""
SIDECAR_BYTES = 1 << 20
"""A sidecar longer than this is written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A version of a partition: what its directory holds up to there."""

    name_txn: int
    blocks: tuple[HotBlock, ...]
    form: FooterForm
    elements: bytes
    footer_bytes: int
    size_bytes: int
    unused_bytes: int
    sidecar: SidecarEnd

    @property
    def row_count(self) -> int:
        """Rows of all blocks."""
        return sum(block.row_count for block in self.blocks)

    def footer(self, blocks: Sequence[int] | None = None) -> bytes:
        """The footer of this version, or one with some of its blocks."""
        chosen = self.blocks if blocks is None else [self.blocks[number] for number in blocks]
        return self.form.footer([block.group for block in chosen], sum(block.row_count for block in chosen))


@dataclass(slots=True, kw_only=True)
class StagedVersion:
    """A version that is written and not committed. `descriptors` must be synced, then `directories`, then the sidecar's
    size published and synced."""

    state: PartitionState
    data: int
    sidecar: int
    descriptors: list[int]
    directories: list[Path] = field(default_factory=list)
    sidecar_size: int | None = None
    """To be published in the sidecar, when it grew."""
    last_rows: pa.Table | None = None
    retired: Path | None = None
    """The directory that this version replaces."""


def is_too_dead(unused_bytes: int, size_bytes: int) -> bool:
    """Whether a file should be written anew."""
    return unused_bytes > MOST_DEAD_BYTES or (unused_bytes > DEAD_BYTES and unused_bytes > DEAD_RATIO * size_bytes)


def write_new_sidecar(disk: HotDisk, path: Path, data: bytes) -> None:
    """Put a sidecar in place of a missing or damaged one, whole and durable."""
    temporary = path / f".{SIDECAR_NAME}.new"
    temporary.unlink(missing_ok=True)
    descriptor = disk.open(temporary, create=True)
    try:
        disk.write(descriptor, data, 0)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    disk.replace(temporary, path / SIDECAR_NAME)
    disk.sync_directory(path)


def read_footer(descriptor: int, size_bytes: int, place: str) -> bytes:
    """The Thrift footer that ends where the committed file does. Raises Damaged."""
    end = os.pread(descriptor, TAIL_BYTES, max(size_bytes - TAIL_BYTES, 0))
    try:
        if len(end) < TAIL_BYTES:
            raise Truncated(
                "the file is shorter than what was committed", expected=f"{size_bytes} bytes", found=size_bytes
            )
        tail = read_tail(end, size_bytes)
        return os.pread(descriptor, tail.footer_length, tail.footer_offset)
    except Damaged as error:
        raise error.at(place) from None
