"""Delta Lake by delta-rs: its own SQL, and an Arrow dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder, convert_to_deltalake, write_deltalake

from bench.common.questions import Answer, Question
from bench.common.trips import SCHEMA
from bench.systems.system import Way, link_files


class Delta:
    """A Delta table in the folder; importing converts the files that lie there."""

    name: ClassVar[str] = "deltalake"

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "trips")

    @cached_property
    def table(self) -> DeltaTable:
        """The table at the version it had when it was opened."""
        return DeltaTable(self._path)

    @cached_property
    def dataset(self) -> ds.Dataset:
        """The same for Arrow, made once."""
        return self.table.to_pyarrow_dataset()

    def place(self, files: Sequence[Path]) -> None:
        """See System."""
        link_files(files, Path(self._path))

    def import_files(self) -> None:
        """See System."""
        convert_to_deltalake(self._path)

    def create(self) -> None:
        """See System."""
        DeltaTable.create(self._path, SCHEMA)

    def append(self, rows: pa.Table) -> None:
        """See System."""
        write_deltalake(self._path, rows, mode="append")

    def ways(self) -> Mapping[str, Way]:
        """See System."""
        return {"sql": self.sql, "dataset": self.scan}

    def sql(self, question: Question) -> Answer:
        """Through DataFusion inside delta-rs."""
        found = QueryBuilder().register("trips", self.table).execute(question.sql("trips")).read_all()
        return question.read(pa.table(found))

    def scan(self, question: Question) -> Answer:
        """Through Arrow."""
        if question.select == "count(*)":
            return float(self.dataset.count_rows())
        columns = None if question.column is None else [question.column]
        return question.of_rows(self.dataset.to_table(columns=columns, filter=question.expression))
