"""What every system is asked about the trips, and how its answers are compared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.common.trips import BLOCKS, ROWS, SCHEMA, START_US, STEP_US, trip_ids, trips

Answer = pa.Table | float
"""Rows, or one number."""

ROWS_PER_FILE = BLOCKS * ROWS
_CENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """All columns of the rows that match, or one number over all rows."""

    name: str
    select: str = "*"
    where: str | None = None
    """SQL that every system reads alike."""
    expression: pc.Expression | None = None
    """The same for Arrow."""
    expected: pa.Table | None = None
    """The rows, as the generator makes them."""

    def sql(self, table: str) -> str:
        """The question of a table of this name."""
        return f"select {self.select} from {table}" + (f" where {self.where}" if self.where else "")

    @property
    def column(self) -> str | None:
        """The column that is summed up."""
        return self.select.removeprefix("sum(").removesuffix(")") if self.select.startswith("sum(") else None

    def read(self, answer: pa.Table) -> Answer:
        """The answer in an SQL result."""
        return answer if self.select == "*" else float(answer.column(0)[0].as_py())

    def of_rows(self, rows: pa.Table) -> Answer:
        """The answer from rows, all columns of them or the one that is summed up."""
        if self.select == "*":
            return rows
        return float(rows.num_rows if self.column is None else pc.sum(rows.column(self.column)).as_py())


def make_questions(file_count: int) -> dict[str, Question]:
    """Half a block in the middle of the table, one id, a column's sum, the number of rows."""
    begin = (file_count // 2) * ROWS_PER_FILE + ROWS // 4
    low, high = (moment(row) for row in (begin, begin + ROWS // 2))
    wanted = file_count // 3 * ROWS_PER_FILE + 5 * ROWS + 7
    trip = int(trip_ids(np.array([wanted]))[0])
    questions = (
        Question(
            name="time",
            where=f"ts >= '{low.isoformat()}' and ts < '{high.isoformat()}'",
            expression=(pc.field("ts") >= low) & (pc.field("ts") < high),
            expected=trips(begin, ROWS // 2, within=ROWS_PER_FILE),
        ),
        Question(
            name="point",
            where=f"id = {trip}",
            expression=pc.field("id") == trip,
            expected=trips(wanted, 1, within=ROWS_PER_FILE),
        ),
        Question(name="sum", select="sum(fare)"),
        Question(name="count", select="count(*)"),
    )
    return {question.name: question for question in questions}


def digest(answer: Answer) -> list[float]:
    """Numbers that two answers share when they are equal: rows and sums of columns, or the number to the cent."""
    if not isinstance(answer, pa.Table):
        return [round(answer, _CENTS)]
    sums = [pc.sum(answer.column(name)).as_py() or 0 for name in ("id", "fare", "tip", "passengers")]
    return [answer.num_rows, *(round(total, _CENTS) for total in sums)]


def is_same(first: Answer, second: Answer) -> bool:
    """Whether two answers have the same rows in any order, or the same number to the cent."""
    if isinstance(first, pa.Table) and isinstance(second, pa.Table):
        return bool(_ordered(first).equals(_ordered(second)))
    return digest(first) == digest(second)


def _ordered(rows: pa.Table) -> pa.Table:
    return rows.select(SCHEMA.names).cast(SCHEMA).sort_by("ts").combine_chunks()


def moment(row: int) -> datetime:
    """The time of a row, in UTC and without a zone."""
    found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=START_US + row * STEP_US)
    return found.replace(tzinfo=None)
