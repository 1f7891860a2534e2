"""Underlay: `scan` and `sql`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from bench.common.questions import Answer, Question
from bench.common.trips import SCHEMA
from bench.systems.system import Way, link_files
from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.store import Store

TABLE = "taxi.trips"


class Underlay:
    """A lake in the folder, its files registered below it, so that a counting store sees every read."""

    name: ClassVar[str] = "underlay"

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        self._folder = folder
        self._store = store

    @cached_property
    def lake(self) -> Lake:
        """The open lake."""
        return connect(self._store or self._folder / "lake")

    @cached_property
    def table(self) -> Table:
        """The open table."""
        return self.lake.table(TABLE)

    @property
    def files(self) -> Path:
        """Where the files are."""
        return self._folder / "lake" / "files"

    def place(self, files: Sequence[Path]) -> None:
        """See System."""
        link_files(files, self.files)

    def import_files(self) -> None:
        """See System."""
        self.create()
        self.register()

    def register(self) -> None:
        """The placed files into the table that is there."""
        self.table.register(f"{self.files}/*.parquet")

    def create(self) -> None:
        """See System."""
        self.lake.create_table(TABLE, SCHEMA, key=["id"], sort_by=["ts"])

    def append(self, rows: pa.Table) -> None:
        """See System."""
        self.table.append(rows)

    def ways(self) -> Mapping[str, Way]:
        """See System."""
        return {"scan": self.scan, "sql": self.sql}

    def scan(self, question: Question) -> Answer:
        """Through the table; a count is one of its verbs."""
        if question.select == "count(*)":
            return float(self.table.count(question.where))
        columns = None if question.column is None else [question.column]
        return question.of_rows(self.table.scan(columns, question.where).to_arrow())

    def sql(self, question: Question) -> Answer:
        """Through DuckDB."""
        return question.read(self.lake.sql(question.sql(TABLE)).to_arrow())
