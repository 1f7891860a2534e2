"""DuckLake: SQL on an open DuckDB connection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import files as files_of
from pathlib import Path
from typing import ClassVar

import duckdb
import pyarrow as pa

from bench.common.questions import Answer, Question
from bench.common.trips import SCHEMA
from bench.systems.system import Way


class DuckLake:
    """A catalog in a DuckDB file; the files stay where they are.

    The connection with the extension is made with the object, so that neither counts as opening the table.
    """

    name: ClassVar[str] = "ducklake"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pattern = ""
        self._connection = duckdb.connect()
        self._connection.execute(f"load '{find_extension('ducklake')}'")

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection, with the lake attached."""
        place = f"ducklake:{self._folder}/trips.ducklake"
        self._connection.execute(f"attach '{place}' as lake (data_path '{self._folder}/data')")
        return self._connection

    def place(self, files: Sequence[Path]) -> None:
        """See System."""
        self._folder.mkdir(parents=True)
        self._pattern = str(files[0].parent / "*.parquet")

    def import_files(self) -> None:
        """See System."""
        self.create()
        self.connection.execute(f"call ducklake_add_data_files('lake', 'trips', '{self._pattern}')")

    def create(self) -> None:
        """See System."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.connection.register("empty", SCHEMA.empty_table())
        self.connection.execute("create table lake.trips as from empty")

    def append(self, rows: pa.Table) -> None:
        """See System."""
        self.connection.register("new_rows", rows)
        self.connection.execute("insert into lake.trips from new_rows")

    def ways(self) -> Mapping[str, Way]:
        """See System."""
        return {"sql": self.sql}

    def sql(self, question: Question) -> Answer:
        """Through DuckDB."""
        return question.read(self.connection.execute(question.sql("lake.trips")).to_arrow_table())

    def close(self) -> None:
        """Let another process open the lake."""
        self._connection.close()


def find_extension(name: str) -> Path:
    """An extension for this DuckDB, from its wheel."""
    wheel = f"duckdb-extension-{name.replace('_', '-')}"
    wanted = f"v{duckdb.__version__}/{name}.duckdb_extension"
    found = [file for file in files_of(wheel) or [] if str(file).endswith(wanted)]
    if not found:
        raise FileNotFoundError(f"the wheel {wheel} has no {wanted}")
    return Path(str(found[0].locate()))
