"""Finds chunks by a file's own footer, for a cold query of few files in a large segment.

A segment holds the places of all its files' chunks. Nothing is cheaper once they are loaded, but to read one file out
of ten thousand, its footer is less to fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from underlay.cache.objects import DecodedCache
from underlay.index.entry import NO_CRC
from underlay.index.intake.statistics import chunk_begins
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.minimal import Chunk
from underlay.parquet.footer.stack import stack_of
from underlay.plan.by_part import PartChoice
from underlay.plan.part import distinct
from underlay.plan.plan import BlockPlan, PlannedFile
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_read import BlockChunks
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace

REQUEST_BYTES = 64 << 10
"""What a request costs, in bytes that could be fetched instead."""


def is_cheaper_by_footers(choice: PartChoice, columns: Sequence[int]) -> bool:
    """Whether the footers of a part's kept files are less to fetch than the places not yet loaded from its segment."""
    segment = choice.part.segment
    by_places = segment.missing_bytes(statistics=columns, places=columns)
    if by_places <= REQUEST_BYTES:
        return False
    files = distinct(choice.files)
    if (segment.files.footer_crcs[files] == NO_CRC).any():  # their footers are unknown
        return False
    return by_places > int(segment.files.footer_bytes[files].sum()) + len(files) * REQUEST_BYTES


class FooterPlaces:
    """The footers of some files, fetched in parallel and cached; each takes one request."""

    def __init__(self, cache: DecodedCache, locate: Callable[[str], ObjectPlace]) -> None:
        self._cache = cache
        self._locate = locate
        self._footers: dict[tuple[int, int], Footer] = {}

    def load(self, plan: BlockPlan, parts: Sequence[int]) -> None:
        """Fetch the footers of all kept files of these parts."""
        files = [file for file in plan.files() if file.part in parts]
        if files:
            store, _ = self._locate(files[0].location)
            footers = side_by_side(self._footer, files, store.parallel_requests)
            for file, footer in zip(files, footers, strict=True):
                self._footers[file.part, file.row] = footer

    def blocks(self, file: PlannedFile, shape: FileShape) -> Iterator[BlockChunks] | None:
        """The chunks of each block, None when the file's footer was not loaded."""
        footer = self._footers.get((file.part, file.row))
        return None if footer is None else block_chunks(footer, file.blocks.tolist(), shape)

    def _footer(self, file: PlannedFile) -> Footer:
        store, key = self._locate(file.location)
        return self._cache.footer(
            store,
            key,
            file_bytes=file.size_bytes,
            footer_bytes=file.footer_bytes,
            footer_crc=file.footer_crc,
            etag=file.etag,
        )


def block_chunks(footer: Footer, numbers: Sequence[int], shape: FileShape) -> Iterator[BlockChunks]:
    """Where the wanted chunks of these blocks lie, by the file's own footer."""
    chunks, begins = footer.chunks, chunk_begins(stack_of(footer))
    statistics = chunks.statistics
    is_null = (
        statistics.has_null_count
        & (statistics.null_count == footer.row_groups.num_rows[:, None])
        & (statistics.min_value.begin < 0)
        & (statistics.max_value.begin < 0)
    )
    for number in numbers:
        found: dict[int, Chunk] = {}
        nulls = []
        for column in shape.columns:
            is_single = len(column.leaves) == 1 and column.source is not None and not column.source.children
            for leaf in column.leaves:
                if is_single and is_null[number, leaf]:
                    nulls.append(leaf)
                    continue
                found[leaf] = Chunk(
                    begin=int(begins[number, leaf]),
                    size=int(chunks.total_compressed_bytes[number, leaf]),
                    codec=int(chunks.codec[number, leaf]),
                    value_count=int(chunks.num_values[number, leaf]),
                )
        yield BlockChunks(row_count=int(footer.row_groups.num_rows[number]), chunks=found, null_leaves=frozenset(nulls))
