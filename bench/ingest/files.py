"""The source files that `bench.ingest` measures: seeded rows of ten columns as CSV, JSON lines and Parquet.

Ids are the row numbers, strings and numbers are those of `bench.spark.rows`, and some values of four columns are null.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bench.spark.rows import SCHEMA as WIDE
from bench.spark.rows import make_rows

Kind = Literal["csv", "csv.gz", "jsonl", "parquet"]
_NAMES = ("id", "at", "day", "zone", "note", "vendor", "account", "fare", "tip", "distance")
_NULLS = {"note": 0.1, "vendor": 0.01, "tip": 0.2, "distance": 0.05}
"""How much of a column is null."""
SCHEMA = pa.schema([WIDE.field(name) for name in _NAMES])
_CHUNK_ROWS = 100_000
_GZIP_LEVEL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """`files` files of `rows` rows each. In quoted CSV every text is quoted."""

    name: str
    kind: Kind
    files: int
    rows: int
    is_quoted: bool = False

    @property
    def folder(self) -> str:
        """The name of a folder that holds them, which tells sizes apart."""
        return f"{self.name}-{self.files}x{self.rows}"

    @property
    def pattern(self) -> str:
        """What matches all of them, and nothing else."""
        return f"{self.folder}/*.{self.kind}"

    @property
    def row_count(self) -> int:
        """Rows of all files."""
        return self.files * self.rows


def make_sources(sources: Sources, root: Path) -> int:
    """The files, in their folder below `root`, and how many bytes they have. A folder that is there stays as it is."""
    folder = root / sources.folder
    if not folder.is_dir():
        new = root / f"{sources.folder}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        for number, rows in enumerate(_files(sources)):
            _write(rows, new / f"part-{number:05}.{sources.kind}", sources)
        new.rename(folder)
    return sum(file.stat().st_size for file in folder.iterdir())


def _files(sources: Sources) -> Iterator[pa.Table]:
    """The rows of each file; those of many small ones are drawn at once."""
    step = sources.rows * max(1, _CHUNK_ROWS // sources.rows)
    for first in range(0, sources.row_count, step):
        rows = source_rows(first, min(step, sources.row_count - first))
        for begin in range(0, rows.num_rows, sources.rows):
            yield rows.slice(begin, sources.rows)


def source_rows(first: int, count: int) -> pa.Table:
    """Rows `first` on. The same rows come from the same two numbers only."""
    rows = make_rows(first, count)
    drawn = np.random.default_rng([first, count])
    arrays = []
    for field in SCHEMA:
        column = rows.column(field.name).combine_chunks()
        if field.name == "at":  # with parts of a second
            micros = np.asarray(column.cast(pa.int64())) + drawn.integers(0, 1_000_000, count)
            column = pa.array(micros, pa.int64()).cast(field.type)
        is_null = drawn.random(count) < _NULLS.get(field.name, 0.0)
        arrays.append(column.take(pa.array(np.arange(count), pa.int64(), mask=is_null)))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _write(rows: pa.Table, path: Path, sources: Sources) -> None:
    match sources.kind:
        case "csv":
            _write_csv(rows, path, is_quoted=sources.is_quoted)
        case "csv.gz":
            plain = path.with_suffix("")
            _write_csv(rows, plain, is_quoted=sources.is_quoted)
            path.write_bytes(gzip.compress(plain.read_bytes(), _GZIP_LEVEL))
            plain.unlink()
        case "jsonl":
            path.write_text("\n".join(_json_lines(rows)) + "\n")
        case "parquet":
            pyarrow.parquet.write_table(rows, path)


def _write_csv(rows: pa.Table, path: Path, *, is_quoted: bool) -> None:
    style: Literal["needed", "none"] = "needed" if is_quoted else "none"
    pyarrow.csv.write_csv(rows, str(path), pyarrow.csv.WriteOptions(quoting_style=style))


def _json_lines(rows: pa.Table) -> Iterator[str]:
    """Objects of one line each. No text of these rows has a character that JSON would escape."""
    pattern = ",".join(f'"{name}":%s' for name in rows.schema.names)
    columns = (_json_values(rows.column(name)) for name in rows.schema.names)
    return (f"{{{pattern % values}}}" for values in zip(*columns, strict=True))


def _json_values(column: pa.ChunkedArray[pa.Scalar[pa.DataType]]) -> list[str]:
    texts = column.cast(pa.string()).to_pylist()
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    shape = "%s" if is_number else '"%s"'
    return ["null" if text is None else shape % text for text in texts]
