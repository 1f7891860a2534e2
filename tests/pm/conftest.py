"""Sidecars that do not tell the truth."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.errors import UnderlayError
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.checksum import checksum
from underlay.pm.format.footers import walk
from underlay.pm.format.layout import CHUNK
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.verify import verify


class Lie:
    """A sidecar of a small file, to be changed and verified."""

    def __init__(self, folder: Path, table: pa.Table | None = None, **options: Any) -> None:
        self.data = folder / "data.parquet"
        self.path = folder / "_pm"
        columns = {
            "n": pa.array([1, 2, 3, 4, 5, None], pa.int64()),
            "text": ["a long value, out of line", "b", "c", "d", "e", "z, a value longer than a slot"],
            "real": pa.array([-0.0, 1.0, float("nan"), 0.0, 2.0, -0.0]),
        }
        blooms = {name: {"ndv": 10, "fpp": 0.01} for name in columns}
        options = {"row_group_size": 3, "bloom_filter_options": blooms} | options
        pq.write_table(pa.table(columns) if table is None else table, self.data, **options)
        self.bytes = bytearray(from_parquet(self.data))

    @property
    def sidecar(self) -> Sidecar:
        return decode(bytes(self.bytes), check=False)

    def chunk(self, row_group: int, column: int, field: str) -> int:
        """Where a field of a chunk stands."""
        skip = 8 + CHUNK.size_bytes * column + CHUNK.offset(field)
        return int(self.sidecar.block_offsets[row_group]) + skip

    def put(self, at: int, kind: str, value: float) -> Lie:
        struct.pack_into(f"<{kind}", self.bytes, at, value)
        return self

    def mend(self) -> Lie:
        """Make the checksums of all versions right again, oldest first."""
        for footer in list(walk(self.bytes, len(self.bytes)))[::-1]:
            self.put(footer.crc_offset, "I", checksum(self.bytes, footer.crc_offset))
        return self

    def problems(self, *, deep: bool = False, parquet: bool = True) -> list[UnderlayError]:
        self.path.write_bytes(self.bytes)
        return verify(self.path, self.data if parquet else None, deep=deep)

    def found(self, *, deep: bool = False) -> str:
        """The one problem there is, as text."""
        (problem,) = self.mend().problems(deep=deep)
        return str(problem)


@pytest.fixture
def lie(tmp_path: Path) -> Lie:
    return Lie(tmp_path)
