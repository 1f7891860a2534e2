"""Iceberg by PyIceberg, with its SQL catalog on SQLite: a scan to Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from bench.common.questions import Answer, Question
from bench.common.trips import SCHEMA
from bench.systems.system import Way

TABLE = "taxi.trips"


class Iceberg:
    """A catalog in the folder; the files stay where they are."""

    name: ClassVar[str] = "pyiceberg"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[str] = []

    @cached_property
    def catalog(self) -> SqlCatalog:
        """The open catalog."""
        return SqlCatalog("bench", uri=f"sqlite:///{self._folder}/catalog.db", warehouse=f"file://{self._folder}")

    @cached_property
    def table(self) -> Table:
        """The open table."""
        return self.catalog.load_table(TABLE)

    def place(self, files: Sequence[Path]) -> None:
        """See System."""
        self._folder.mkdir(parents=True)
        self._files = [str(file) for file in files]

    def import_files(self) -> None:
        """See System."""
        self.create()
        self.table.add_files(self._files)

    def create(self) -> None:
        """See System."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.catalog.create_namespace("taxi")
        self.catalog.create_table(TABLE, SCHEMA)

    def append(self, rows: pa.Table) -> None:
        """See System."""
        self.table.append(rows)

    def ways(self) -> Mapping[str, Way]:
        """See System."""
        return {"scan": self.scan}

    def scan(self, question: Question) -> Answer:
        """Rows to Arrow, or a count."""
        if question.select == "count(*)":
            return float(self.table.scan().count())
        columns = ("*",) if question.column is None else (question.column,)
        found = self.table.scan(row_filter=question.where or "true", selected_fields=columns).to_arrow()
        return question.of_rows(found)
