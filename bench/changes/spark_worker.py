"""One system on Spark, whose tables are changed by SQL, for `bench.spark_change` and a test that compares answers.

Requests and replies are those of `bench.spark.worker`, and some more: make a table with rows, name rows that change
it, run a statement, and tell the rows that are there.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from bench.spark.rows import SCHEMA, make_rows
from bench.spark.worker import Reply, Request, Requests, Worker, serve

_TUNED = {
    "Delta": {"delta.enableDeletionVectors": "true"},
    "Iceberg": {"format-version": "3"}
    | {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")},
}
_SMALL_TYPES: dict[str, pa.DataType] = {"id": pa.int64(), "zone": pa.string(), "fare": pa.float64()}
_SMALL = pa.schema(list(_SMALL_TYPES.items()))
CHANGED = 10_000_000
"""Rows that change a table are drawn with seeds from here on, so that they differ from those that are there."""


class Fill(Request, frozen=True, kw_only=True):
    """Make a table with rows 0 to `rows`, in as many appends as files."""

    name: str
    rows: int
    files: int


class Define(Request, frozen=True, kw_only=True):
    """Make an empty table with columns `id bigint, zone string, fare double`."""

    name: str


class Name(Request, frozen=True, kw_only=True):
    """Make a view `updates` of new values for the rows with every `step`th id from `first` on."""

    first: int
    step: int
    count: int


class Run(Request, frozen=True, kw_only=True):
    """Run a statement; `{table}` stands for the table in its text."""

    name: str
    sql: str


class Tell(Request, frozen=True, kw_only=True):
    """The rows of a table, sorted, as text."""

    name: str


class Total(Request, frozen=True, kw_only=True):
    """The number of rows, and sums of three columns."""

    name: str


ChangeRequests = Requests | Fill | Define | Name | Run | Tell | Total


class ChangeWorker(Worker):
    """A system whose tables are changed."""

    def do(self, request: ChangeRequests) -> Reply:
        """Carry out a request."""
        match request:
            case Fill():
                self._system.create(self._spark, request.name)
                self._tune(request.name)
                each = request.rows // request.files
                for number in range(request.files):
                    frame = self._spark.createDataFrame(make_rows(number * each, each))
                    self._system.append(frame.coalesce(1), request.name, self._system.ways[0])
                return Reply(seconds=0)
            case Define():
                self._system.create(self._spark, request.name, _SMALL)
                self._tune(request.name)
                return Reply(seconds=0)
            case Name():
                ids = request.first + request.step * np.arange(request.count)
                rows = make_rows(CHANGED + request.first, request.count)
                rows = rows.set_column(0, SCHEMA.field("id"), pa.array(ids))
                self._spark.createDataFrame(rows).createOrReplaceTempView("updates")
                return Reply(seconds=0)
            case Run():
                return self._run(request)
            case Tell():
                found = self._system.read(self._spark, request.name).collect()
                return Reply(seconds=0, rows=sorted(repr(tuple(row)) for row in found))
            case Total():
                text = f"select count(*), sum(id), sum(code), sum(device) from {self._system.name_in_sql(request.name)}"
                return self._timed(lambda: [float(value) for value in self._spark.sql(text).collect()[0]])
            case _:
                return super().do(request)

    def _run(self, request: Run) -> Reply:
        text = request.sql.format(table=self._system.name_in_sql(request.name))
        try:
            return self._timed(lambda: self._collect(text))
        except Exception as error:  # noqa: BLE001  # systems refuse in many ways; the caller compares the words
            causes = [line for line in str(error).splitlines() if line.startswith("Caused by")]
            return Reply(seconds=0, refused=f"{type(error).__name__}: {str(error)[:300]} {causes}")

    def _collect(self, text: str) -> None:
        self._spark.sql(text).collect()

    def _tune(self, name: str) -> None:
        """Peers change rows by deletion vectors, as we do."""
        properties = _TUNED.get(type(self._system).__name__, {})
        if properties:
            told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            self._spark.sql(f"ALTER TABLE {self._system.name_in_sql(name)} SET TBLPROPERTIES ({told})")


if __name__ == "__main__":
    serve(ChangeWorker, msgspec.json.Decoder(ChangeRequests))
