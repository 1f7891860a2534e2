"""One partition of a hot table as its writer sees it: what is committed, and the next version being made.

`data.parquet` grows at its committed end by blocks and a footer; blocks that the footer leaves out are dead bytes.
Below that end nothing is ever written again, so a reader of any version is safe. `_pm` gets a version at its end. The
partition gets a new directory with a new `_pm`

- when blocks were joined (a sidecar may not lose blocks) or `_pm` has grown long: `data.parquet` is then the same file
  under a second name;
- when too much of `data.parquet` is dead, or the columns changed: then it is written anew, whole blocks byte for byte.

Nothing counts before `_txn` names it: not its new length, and not the new directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from underlay.errors import Inconsistent, SchemaMismatch, Truncated, UnderlayError
from underlay.hot.files.blocks import EncodedBlock, HotBlock, blocks_in, encode_blocks
from underlay.hot.files.layout import HotLayout, Times
from underlay.hot.files.place_rows import NewBlock, Placed, place_rows
from underlay.hot.files.read_blocks import read_blocks
from underlay.hot.files.sidecar_tail import SidecarEnd, SidecarVersion, end_of_sidecar, grow
from underlay.hot.files.version import (
    DATA_NAME,
    SIDECAR_BYTES,
    SIDECAR_NAME,
    PartitionState,
    StagedVersion,
    is_too_dead,
    read_footer,
    write_new_sidecar,
)
from underlay.hot.txn.disk import HotDisk
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.splice import SplicePart, splice
from underlay.parquet.footer.tail import MAGIC, TAIL_BYTES, seal
from underlay.parquet.write.splice_file import block_places
from underlay.pm.convert.footer import convert
from underlay.pm.file import read_committed
from underlay.pm.format.layout import HEADER
from underlay.pm.format.values import SidecarBlock

_COPY_BYTES = 8 << 20
_SIZE_BYTES = 8


class HotPartition:
    """The writer's side of one partition. For one thread at a time."""

    def __init__(self, disk: HotDisk, folder: Path, name: str, timestamp: int) -> None:
        self.timestamp = timestamp
        self.name = name
        self.state: PartitionState | None = None
        self._disk = disk
        self._folder = folder
        self._data = self._sidecar = -1
        self._last: tuple[bytes, pa.Table] | None = None

    def directory(self, name_txn: int) -> Path:
        """Where a version with this number lies."""
        return self._folder / (self.name if name_txn == -1 else f"{self.name}.{name_txn}")

    def open(self, name_txn: int, size_bytes: int, layout: HotLayout) -> None:
        """Open what `_txn` names. A sidecar that is missing, damaged or lacks this version is made anew.

        Raises Damaged when `data.parquet` has no footer that ends there.
        """
        path = self.directory(name_txn)
        self._data = self._disk.open(path / DATA_NAME)
        raw = read_footer(self._data, size_bytes, str(path / DATA_NAME))
        footer = Footer.parse(raw)
        form, blocks = blocks_in(footer, _time_leaf(footer, layout))
        end, offsets, unused = self._open_sidecar(path, footer, size_bytes)
        self.state = PartitionState(
            name_txn=name_txn,
            blocks=tuple(replace(one, pm_offset=at) for one, at in zip(blocks, offsets, strict=True)),
            form=form,
            elements=footer.schema.raw,
            footer_bytes=len(raw),
            size_bytes=size_bytes,
            unused_bytes=unused,
            sidecar=end,
        )

    def _open_sidecar(self, path: Path, footer: Footer, size_bytes: int) -> tuple[SidecarEnd, list[int], int]:
        try:
            found, end = end_of_sidecar(read_committed(path / SIDECAR_NAME), size_bytes)
            if found.row_group_count != footer.row_group_count:
                raise Inconsistent("the sidecar has other blocks", place=str(path / SIDECAR_NAME))
        except UnderlayError:
            dead = size_bytes - len(MAGIC) - TAIL_BYTES - len(footer.data)
            dead -= sum(place.size_bytes for place in (block_places(footer) if footer.row_group_count else []))
            data = convert(footer, size_bytes - TAIL_BYTES - len(footer.data), unused_bytes=max(dead, 0), seq_txn=0)
            write_new_sidecar(self._disk, path, data)
            found, end = end_of_sidecar(data, size_bytes)
        self._sidecar = self._disk.open(path / SIDECAR_NAME)
        return end, found.block_offsets.tolist(), found.footer.unused_bytes

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self._data, self._sidecar):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)
        self._data = self._sidecar = -1

    def stage(self, rows: pa.Table, times: Times, layout: HotLayout, txn: int) -> StagedVersion:
        """Write the next version, with these rows in it. Nobody sees it before it is committed. Raises OSError."""
        state = self.state
        if state is None:
            return self._write_anew(place_rows([], rows, times, layout, _no_block), layout, txn)
        read = partial(self.read_block, layout=layout)
        placed = place_rows(state.blocks, rows, times, layout, read)
        if state.elements != layout.elements:
            every: Placed = [self._loaded(one, read, layout) for one in placed]
            return self._write_anew(every, layout, txn)
        if is_too_dead(state.unused_bytes, state.size_bytes):
            return self._write_anew(placed, layout, txn)
        return self._append(placed, layout, txn)

    def stage_compacted(self, layout: HotLayout, txn: int) -> StagedVersion:
        """Write the same rows to a new file without dead bytes, with as few blocks as there may be."""
        if self.state is None:
            raise AssertionError("a partition without rows has no files")
        placed: Placed = []
        run: list[int] = []
        most = layout.block_rows // 2
        for number, block in enumerate([*self.state.blocks, None]):
            is_small = block is not None and block.row_count <= most and self.state.elements == layout.elements
            if block is not None and is_small and _rows_of(self.state, run) + block.row_count <= layout.block_rows:
                run.append(number)
                continue
            if len(run) > 1:
                rows = pa.concat_tables([self.read_block(one, layout=layout) for one in run])
                placed.append(NewBlock(rows, layout.times(rows)))
            else:
                placed += run
            run = [number] if is_small else []
            if block is not None and not is_small:
                placed.append(number)
        if self.state.elements != layout.elements:
            read = partial(self.read_block, layout=layout)
            placed = [self._loaded(one, read, layout) for one in placed]
        return self._write_anew(placed, layout, txn)

    def _loaded(self, one: int | NewBlock, read: Callable[[int], pa.Table], layout: HotLayout) -> NewBlock:
        if isinstance(one, NewBlock):
            return one
        rows = read(one)
        return NewBlock(rows, layout.times(rows))

    def read_block(self, number: int, *, layout: HotLayout) -> pa.Table:
        """The rows of a block, with the table's current columns."""
        state = self.state
        if state is None:
            raise AssertionError("a partition without rows has no blocks")
        if number == len(state.blocks) - 1 and self._last is not None and self._last[0] == layout.elements:
            return self._last[1]
        path = self.directory(state.name_txn) / DATA_NAME
        return read_blocks(path, state.size_bytes, state.footer([number]), layout.schema)

    def applied(self, staged: StagedVersion, layout: HotLayout) -> None:
        """The staged version was committed."""
        for old, new in ((self._data, staged.data), (self._sidecar, staged.sidecar)):
            if old >= 0 and old != new:
                os.close(old)
        self._data, self._sidecar, self.state = staged.data, staged.sidecar, staged.state
        if staged.last_rows is not None:
            self._last = (layout.elements, staged.last_rows)

    def abandoned(self, staged: StagedVersion) -> None:
        """The staged version was not committed: cut off what nobody will read, to free the disk."""
        if staged.data != self._data:
            for descriptor in {staged.data, staged.sidecar} - {self._data, self._sidecar}:
                with suppress(OSError):
                    os.close(descriptor)
        self.cut()

    def cut(self) -> None:
        """Cut `data.parquet` at its committed end, as far as the disk lets us. Readers know no byte behind it."""
        if self.state is not None and self._data >= 0:
            with suppress(OSError):
                self._disk.truncate(self._data, self.state.size_bytes)

    def publish_sidecar(self, staged: StagedVersion) -> None:
        """Write the size of the sidecar's new version into its header."""
        if staged.sidecar_size is not None:
            size = staged.sidecar_size.to_bytes(_SIZE_BYTES, "little")
            self._disk.write(staged.sidecar, size, HEADER.offset("committed_size"))

    def _append(self, placed: Placed, layout: HotLayout, txn: int) -> StagedVersion:
        state = self.state
        if state is None:
            raise AssertionError("there is nothing to append to")
        new, last_rows = _encoded(placed, layout)
        at = state.size_bytes
        pieces: list[bytes | memoryview] = []
        blocks: list[HotBlock] = []
        sidecars: list[int | SidecarBlock] = []
        for number, one in enumerate(placed):
            if isinstance(one, int):
                blocks.append(state.blocks[one])
                sidecars.append(state.blocks[one].pm_offset)
                continue
            block, sidecar, form = new[number].placed(at)
            if form != state.form:  # another release of the Parquet writer
                return self._write_anew(placed, layout, txn)
            pieces.append(new[number].data)
            at = block.end
            blocks.append(block)
            sidecars.append(sidecar)
        rows = sum(block.row_count for block in blocks)
        footer = state.form.footer([block.group for block in blocks], rows)
        dropped = set(range(len(state.blocks))) - {one for one in placed if isinstance(one, int)}
        unused = state.unused_bytes + sum(state.blocks[one].size_bytes for one in dropped)
        unused += state.footer_bytes + TAIL_BYTES
        pieces.append(seal(footer))
        self._disk.write(self._data, b"".join(pieces), state.size_bytes)
        size = at + len(footer) + TAIL_BYTES
        staged = StagedVersion(
            state=replace(
                state,
                footer_bytes=len(footer),
                size_bytes=size,
                unused_bytes=unused,
            ),
            data=self._data,
            sidecar=self._sidecar,
            descriptors=[self._data],
            last_rows=last_rows,
        )
        if len(blocks) < len(state.blocks) or state.sidecar.base > SIDECAR_BYTES:
            return self._relink(staged, blocks, footer, at, txn)
        version = SidecarVersion(footer_offset=at, footer_length=len(footer), unused_bytes=unused)
        grown = grow(state.sidecar, sidecars, version)
        self._disk.write(self._sidecar, grown.data, grown.begin)
        blocks = [replace(block, pm_offset=at) for block, at in zip(blocks, grown.offsets, strict=True)]
        staged.descriptors.append(self._sidecar)
        staged.sidecar_size = grown.end.base
        staged.state = replace(staged.state, blocks=tuple(blocks), sidecar=grown.end)
        return staged

    def _relink(
        self, staged: StagedVersion, blocks: Sequence[HotBlock], footer: bytes, footer_offset: int, txn: int
    ) -> StagedVersion:
        """The same `data.parquet` under a second name, beside a new sidecar."""
        state = staged.state
        path = self._new_directory(txn)
        self._disk.link(self.directory(state.name_txn) / DATA_NAME, path / DATA_NAME)
        data = self._disk.open(path / DATA_NAME)
        if not os.path.samestat(os.fstat(data), os.fstat(self._data)):
            staged.descriptors.append(data)  # a file system without links: a copy
        staged.data = data
        made = convert(Footer.parse(footer), footer_offset, unused_bytes=state.unused_bytes, seq_txn=0)
        return self._with_new_sidecar(staged, path, made, blocks, txn)

    def _with_new_sidecar(
        self, staged: StagedVersion, path: Path, made: bytes, blocks: Sequence[HotBlock], txn: int
    ) -> StagedVersion:
        staged.sidecar = self._disk.open(path / SIDECAR_NAME, create=True)
        self._disk.write(staged.sidecar, made, 0)
        found, end = end_of_sidecar(made, staged.state.size_bytes)
        offsets = found.block_offsets.tolist()
        staged.state = replace(
            staged.state,
            name_txn=txn,
            sidecar=end,
            blocks=tuple(replace(one, pm_offset=at) for one, at in zip(blocks, offsets, strict=True)),
        )
        staged.descriptors.append(staged.sidecar)
        staged.directories += [path, self._folder]
        staged.retired = None if self.state is None else self.directory(self.state.name_txn)
        return staged

    def _write_anew(self, placed: Placed, layout: HotLayout, txn: int) -> StagedVersion:
        """A new file: new blocks encoded, the others copied byte for byte."""
        state = self.state
        new, last_rows = _encoded(placed, layout)
        old = (
            Footer.parse(state.footer()) if state is not None and any(isinstance(one, int) for one in placed) else None
        )
        path = self._new_directory(txn)
        data = self._disk.open(path / DATA_NAME, create=True)
        self._disk.write(data, MAGIC, 0)
        at = len(MAGIC)
        parts = []
        for number, one in enumerate(placed):
            if not isinstance(one, int):
                self._disk.write(data, new[number].data, at)
                parts.append(SplicePart(new[number].footer, [0], at - len(MAGIC)))
                at += len(new[number].data)
            elif state is not None and old is not None:
                block = state.blocks[one]
                parts.append(SplicePart(old, [one], at - block.begin))
                at = self._copy(block, data, at)
        raw = splice(parts)
        self._disk.write(data, seal(raw), at)
        footer = Footer.parse(raw)
        form, blocks = blocks_in(footer, _time_leaf(footer, layout))
        made = convert(footer, at, seq_txn=0)
        staged = StagedVersion(
            state=PartitionState(
                name_txn=txn,
                blocks=(),
                form=form,
                elements=footer.schema.raw,
                footer_bytes=len(raw),
                size_bytes=at + len(raw) + TAIL_BYTES,
                unused_bytes=0,
                sidecar=SidecarEnd(size=0, base=0, crc=0, between=b""),
            ),
            data=data,
            sidecar=-1,
            descriptors=[data],
            last_rows=last_rows,
        )
        return self._with_new_sidecar(staged, path, made, blocks, txn)

    def _copy(self, block: HotBlock, target: int, at: int) -> int:
        for begin in range(block.begin, block.end, _COPY_BYTES):
            data = os.pread(self._data, min(_COPY_BYTES, block.end - begin), begin)
            if len(data) < min(_COPY_BYTES, block.end - begin):
                raise Truncated("the data file ends inside a block", place=str(self._folder), found=begin + len(data))
            self._disk.write(target, data, at)
            at += len(data)
        return at

    def _new_directory(self, txn: int) -> Path:
        path = self.directory(txn)
        if path.exists():  # of a writer that died before it committed this number: no reader ever knew of it
            self._disk.remove_partition(path)
        self._disk.make_directory(path)
        return path


def _encoded(placed: Placed, layout: HotLayout) -> tuple[dict[int, EncodedBlock], pa.Table | None]:
    """The new blocks by their places, and the rows of the last one if it is new."""
    numbers = [number for number, one in enumerate(placed) if not isinstance(one, int)]
    some = [one for one in placed if not isinstance(one, int)]
    blocks = encode_blocks([layout.stored(one.rows) for one in some], [one.times for one in some], layout.options)
    last = placed[-1] if placed else None
    return dict(zip(numbers, blocks, strict=True)), None if last is None or isinstance(last, int) else last.rows


def _time_leaf(footer: Footer, layout: HotLayout) -> int:
    """The leaf with the timestamps: by its field id, which a file keeps when columns are renamed or moved."""
    for leaf in footer.schema.leaves:
        if leaf.top.field_id == layout.time.id:
            return leaf.index
    raise SchemaMismatch("the file has no column for the timestamps", expected=f"field id {layout.time.id}")


def _rows_of(state: PartitionState, blocks: Sequence[int]) -> int:
    return sum(state.blocks[one].row_count for one in blocks)


def _no_block(number: int) -> pa.Table:
    raise AssertionError(f"there is no block {number}")
