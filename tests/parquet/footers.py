"""Footers to test with: those of genuine files, and small ones that pyarrow writes."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests import genuine
from underlay.errors import Unsupported
from underlay.parquet.footer.tail import read_tail

FOLDERS = ("parquet-testing/data", "parquet-testing/bad_data", "questdb/9.4.3", "questdb/10.0.0")


def files(folder: str) -> list[Path]:
    """Every Parquet file below a folder of the fixtures, broken and encrypted ones among them."""
    found = sorted(p for p in (genuine.fixtures() / folder).rglob("*.parquet*") if p.is_file())
    assert found
    return found


def footer_bytes(data: bytes) -> bytes:
    """The Thrift bytes of the footer that ends a file."""
    tail = read_tail(data, len(data))
    return data[tail.footer_offset : tail.footer_offset + tail.footer_length]


def plain_footers(folder: str) -> list[tuple[Path, bytes]]:
    """The footers of a folder's files, without those that are encrypted."""
    found = []
    for path in files(folder):
        try:
            found.append((path, footer_bytes(path.read_bytes())))
        except Unsupported:
            assert path.suffix == ".encrypted"
    return found


def written(table: pa.Table, **options: object) -> bytes:
    """The bytes of a file that pyarrow writes."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def example(rows: int = 30, *, start: int = 0, **options: object) -> bytes:
    """A file with a few columns and three row groups."""
    table = pa.table(
        {
            "number": pa.array(range(start, start + rows), pa.int64()),
            "text": [None if n % 7 == 0 else f"row {n}" for n in range(start, start + rows)],
            "real": pa.array([n / 4 for n in range(start, start + rows)], pa.float64()),
            "items": [[n, n + 1] if n % 3 else [] for n in range(start, start + rows)],
        }
    )
    return written(table, row_group_size=max(1, rows // 3), **options)
