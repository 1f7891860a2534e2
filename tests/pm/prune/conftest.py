"""Files with sidecars, written by pyarrow and DuckDB, and the row groups that a predicate leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pm.examples import patched
from tests.pm.typed_files import DUCKDB
from underlay.parquet.footer.schema import Schema
from underlay.parquet.footer.tail import load_footer
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.prune.prune import prune
from underlay.prune.parse.sql import parse_where


@dataclass(frozen=True)
class Written:
    """A file's sidecar, with and without its schema."""

    sidecar: Sidecar
    schema: Schema

    @classmethod
    def read(cls, path: Path) -> Written:
        return cls(decode(from_parquet(path)), load_footer(path).footer.schema)

    def kept(self, where: str) -> list[int]:
        """The row groups that stay with the schema."""
        return prune(self.sidecar, parse_where(where), self.schema).kept.nonzero()[0].tolist()

    def kept_alone(self, where: str) -> list[int]:
        """The row groups that stay without it."""
        return prune(self.sidecar, parse_where(where)).kept.nonzero()[0].tolist()

    def kept_both(self, where: str) -> list[int]:
        """The row groups that stay either way."""
        kept = self.kept(where)
        assert self.kept_alone(where) == kept
        return kept

    def causes(self, where: str) -> list[int]:
        return prune(self.sidecar, parse_where(where), self.schema).causes.tolist()

    def with_field(self, row_group: int, offset: int, kind: str, value: float) -> Written:
        """One field of the first column's chunk changed."""
        at = int(self.sidecar.block_offsets[row_group]) + 8 + offset
        return Written(decode(patched(bytes(self.sidecar.data), at, kind, value)), self.schema)


@pytest.fixture
def write(tmp_path: Path):
    """Write one column `c`, a list of values for each row group."""

    def write_groups(*groups: list[Any], type: pa.DataType, **options: Any) -> Written:
        path = tmp_path / "data.parquet"
        if options.pop("bloom", False):
            options["bloom_filter_options"] = {"c": {"ndv": 100, "fpp": 0.001}}
        with pq.ParquetWriter(path, pa.schema([("c", type)]), **options) as writer:
            for values in groups:
                writer.write_table(pa.table({"c": pa.array(values, type)}), row_group_size=len(values))
        return Written.read(path)

    return write_groups


@pytest.fixture
def write_duckdb(tmp_path: Path):
    """Write the rows of a query as one row group."""

    def write_query(query: str) -> Written:
        path = tmp_path / "data.parquet"
        with duckdb.connect(config=DUCKDB) as connection:
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT PARQUET)")
        return Written.read(path)

    return write_query
