"""Builds the sidecar of a local Parquet file: reads its footer, then its bloom filters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import pyarrow.compute as pc

from underlay.errors import Damaged, Inconsistent, UnderlayError
from underlay.parquet.footer.checks import check_ranges
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import TAIL_BYTES, LoadedFooter, load_footer
from underlay.parquet.write.bloom import BLOCK_BYTES, encode_header, parse_header
from underlay.pm.convert.footer import Place, bloom_mask, convert
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.format.statistics import fixed_bounds
from underlay.pm.format.types import Tag, tag_of
from underlay.pm.format.values import Generation
from underlay.pm.read.physical_values import open_physical, read_leaves
from underlay.values.ranges import ByteRange

BloomMode = Literal["inline", "external", "none"]


def from_parquet(
    path: str | os.PathLike[str],
    *,
    generation: Generation = "10",
    blooms: BloomMode = "inline",
    backfill: bool = True,
) -> bytes:
    """The sidecar of the Parquet file at `path`.

    `blooms`: copy the file's filters into the sidecar, store where they are, or leave them out. With `backfill`, as in
    QuestDB, bounds of the designated timestamp that the footer lacks are decoded from its values; it is the only case
    in which data is read.
    """
    path = Path(path)
    loaded = load_footer(path)
    try:
        check_ranges(loaded.footer, loaded.file_size)
        with path.open("rb") as file:
            bitsets = read_blooms(file, loaded) if blooms == "inline" else {}
        make = partial(
            convert,
            loaded.footer,
            loaded.tail.footer_offset,
            generation=generation,
            blooms=bitsets,
            external_blooms=blooms == "external",
        )
        data = make()
        sidecar = decode(data, check=False)
        missing = _rows_without_timestamps(sidecar) if backfill else []
        if missing:
            data = make(backfill=_decode_timestamps(path, sidecar, missing))
    except UnderlayError as error:
        raise error.at(str(path)) from None
    return data


def sidecar_of(data: bytes | memoryview, footer: Footer) -> bytes:
    """The sidecar of a whole Parquet file in memory whose footer is `footer`, with its bloom filters inside.

    We wrote the file, so we do not check that its chunks lie inside it.
    """
    places = bloom_ranges(footer, len(data))
    bitsets = bitsets_of({place: data[wanted.begin : wanted.end] for place, wanted in places.items()})
    return convert(footer, len(data) - TAIL_BYTES - len(footer.data), blooms=bitsets)


def read_blooms(file: BinaryIO, loaded: LoadedFooter) -> dict[Place, bytes]:
    """The bitsets of all usable filters: split-block, xxHash, uncompressed."""
    ranges = bloom_ranges(loaded.footer, loaded.file_size)
    return bitsets_of({place: _read_range(file, wanted) for place, wanted in ranges.items()})


def bloom_ranges(footer: Footer, file_size: int) -> dict[Place, ByteRange]:
    """Where the filters lie in the file, by row group and column."""
    found = {}
    for row_group, column in np.argwhere(bloom_mask(footer)).tolist():
        begin = int(footer.chunks.bloom_filter_offset[row_group, column])
        length = int(footer.chunks.bloom_filter_length[row_group, column])
        if begin + length > file_size:
            raise Inconsistent(
                "the filter reaches past the end of the file",
                place=_bloom_place(row_group, column),
                found=f"{begin} + {length}",
            )
        found[row_group, column] = ByteRange(begin, begin + length)
    return found


def bitsets_of(stored: Mapping[Place, bytes | memoryview]) -> dict[Place, bytes]:
    """The bitsets of stored filters; unusable ones are left out."""
    found = {}
    for place, octets in stored.items():
        data = bytes(octets)
        whole_bytes = len(data) // BLOCK_BYTES * BLOCK_BYTES
        usual = _usual_header(whole_bytes)
        if whole_bytes and data.startswith(usual):
            found[place] = data[len(usual) : len(usual) + whole_bytes]
            continue
        try:
            header = parse_header(data)
        except Damaged as error:
            raise error.at(_bloom_place(*place)) from None
        if header is not None:
            found[place] = data[header.header_length : header.header_length + header.bitset_length]
    return found


@lru_cache(maxsize=64)
def _usual_header(bitset_length: int) -> bytes:
    """What nearly all writers store before a bitset: recognising it is faster than parsing."""
    return encode_header(bitset_length)


def _bloom_place(row_group: int, column: int) -> str:
    return f"bloom filter of row group {row_group}, column {column}"


def _read_range(file: BinaryIO, wanted: ByteRange) -> bytes:
    file.seek(wanted.begin)
    return file.read(wanted.size_bytes)


def _rows_without_timestamps(sidecar: Sidecar) -> list[int]:
    """Row groups that have values of the designated timestamp and lack a bound of it."""
    column = sidecar.header.designated_timestamp
    if column < 0 or tag_of(sidecar.columns[column].type) is not Tag.TIMESTAMP:
        return []
    bounds = fixed_bounds(sidecar, column, "<i8")
    lacking = ~(bounds.has_minimum & bounds.has_maximum) & (sidecar.column_chunks(column)["num_values"] > 0)
    return [int(i) for i in np.flatnonzero(lacking)]


def _decode_timestamps(path: Path, sidecar: Sidecar, row_groups: list[int]) -> dict[int, tuple[int, int]]:
    """Least and greatest designated timestamp of the given row groups: in a sorted one, its first and its last."""
    found = {}
    with open_physical(sidecar, path) as file:
        for row_group in row_groups:
            _, (values,) = read_leaves(file, row_group, [sidecar.header.designated_timestamp])
            if len(values):
                low, high = pc.min_max(values).values()
                found[row_group] = (low.as_py(), high.as_py())
    return found
