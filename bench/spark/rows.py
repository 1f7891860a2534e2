"""The tables that `bench.spark` measures: seeded rows of 20 columns, and how many files and row groups hold them.

Underlay writes the files, in this process and without Spark; every other system then takes hard links to the very same
bytes. Ids are the row numbers, so that a range of ids picks one row group of one file.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.api.lake import connect

_START_US = 1_700_000_000_000_000
_START_DAY = 19_675
_COMMIT_ROWS = 1_000_000
_MONEY = ("fare", "tip", "toll", "tax", "extra")
_PLACES = ("distance", "lat", "lon")
_LONGS = ("account", "session", "device")
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "day": pa.date32(),
    "zone": pa.string(),
    "note": pa.string(),
    "flag": pa.bool_(),
    "vendor": pa.int32(),
    "passengers": pa.int32(),
    "code": pa.int32(),
    **dict.fromkeys(_LONGS, pa.int64()),
    **dict.fromkeys(_MONEY, pa.float64()),
    **dict.fromkeys(_PLACES, pa.float64()),
}
SCHEMA = pa.schema(list(_TYPES.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A table of `files` files of `blocks` row groups of `rows` rows."""

    name: str
    files: int
    blocks: int
    rows: int

    @property
    def table(self) -> str:
        """Its name in a lake."""
        return f"bench.{self.name}"

    @property
    def folder(self) -> str:
        """The name of a folder that holds it, which tells sizes apart."""
        return f"{self.name}-{self.files}x{self.blocks}x{self.rows}"

    @property
    def file_rows(self) -> int:
        """Rows of one file."""
        return self.blocks * self.rows

    @property
    def row_count(self) -> int:
        """Rows of all files."""
        return self.files * self.file_rows

    def ids_within_one_block(self, seed: int) -> tuple[int, int]:
        """The least and the greatest id of a tenth of some row group, another one for each seed."""
        chosen = random.Random(seed)
        block = chosen.randrange(self.files * self.blocks)
        begin = block * self.rows + chosen.randrange(self.rows // 2)
        return begin, begin + self.rows // 10


def make_rows(first: int, count: int) -> pa.Table:
    """Rows `first` on. The same rows come from the same two numbers only."""
    numbers = np.arange(first, first + count)
    drawn = np.random.default_rng(first)
    at = _START_US + numbers * 1_000_000
    columns: dict[str, Any] = {  # Any: pyarrow's stubs know no numpy arrays here
        "id": numbers,
        "at": pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "day": pa.array((_START_DAY + numbers // 86_400).astype(np.int32)).cast(pa.date32()),
        "zone": _texts("zone", numbers % 263, 263),
        "note": _texts("a note that is a little longer", drawn.integers(0, 5_000, count), 5_000),
        "flag": drawn.random(count) < 0.1,
        "vendor": drawn.integers(1, 3, count).astype(np.int32),
        "passengers": drawn.integers(1, 7, count).astype(np.int32),
        "code": drawn.integers(0, 1_000, count).astype(np.int32),
        **{name: drawn.integers(0, 1 << 40, count) for name in _LONGS},
        **{name: drawn.integers(0, 10_000, count) / 100 for name in _MONEY},
        **{name: drawn.random(count) * 90 for name in _PLACES},
    }
    return pa.table(columns, SCHEMA)


def _texts(word: str, numbers: NDArray[np.int64], count: int) -> pa.StringArray:
    return pa.array([f"{word} {number:04}" for number in range(count)]).take(numbers)


def make_dataset(dataset: Dataset, source: Path) -> Path:
    """The folder `source`/<its name> with `lake`, whose one table this is, and `files`, links to its files.

    One that is there is left as it is.
    """
    folder = source / dataset.folder
    if (folder / "files").is_dir():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    _write_lake(dataset, folder / "lake")
    linked = folder / "new"
    link_files(data_files(dataset, folder / "lake"), linked)
    linked.rename(folder / "files")
    return folder


def data_files(dataset: Dataset, lake: Path) -> list[Path]:
    """The Parquet files of the table."""
    found = sorted((lake / "bench" / dataset.name).glob("*/*.parquet"))
    if len(found) != dataset.files:
        raise AssertionError(f"{lake} has {len(found)} files, not {dataset.files}")
    return found


def link_files(files: list[Path], folder: Path) -> None:
    """The same files in another folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in files:
        os.link(file, folder / file.name)


def _write_lake(dataset: Dataset, folder: Path) -> None:
    """A commit for each file, or for a million rows of files that are one row group each."""
    is_single = dataset.blocks == 1
    table = connect(folder).create_table(
        dataset.table,
        SCHEMA,
        key=["id"],
        properties={"block_rows": dataset.rows, "file_bytes": 1 if is_single else 1 << 40},
    )
    step = _COMMIT_ROWS // dataset.rows * dataset.rows if is_single else dataset.file_rows
    for first in range(0, dataset.row_count, step):
        table.append(make_rows(first, min(step, dataset.row_count - first)))
