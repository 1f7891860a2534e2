"""What the machine of all verbs knows of a table: conditions with their meaning, rows, and versions as plain lists."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Row = dict[str, Any]
keys = st.integers(0, 12)
numbers = st.none() | st.integers(-3, 3)
floats = st.none() | st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf])
texts = st.none() | st.sampled_from(["", "a", "b", "é" * 70])
rows = st.dictionaries(keys, st.tuples(numbers, floats, texts), max_size=6)
"""Values of three columns by key."""


@dataclass(frozen=True)
class Condition:
    """A condition as SQL, and when it is true."""

    sql: str
    holds: Callable[[Row], bool]


def _number(text: str, test: Callable[[Any, Any], bool]) -> st.SearchStrategy[Condition]:
    return st.integers(-3, 3).map(
        lambda n: Condition(f"a {text} {n}", lambda row: row["a"] is not None and test(row["a"], n))
    )


conditions = st.one_of(
    keys.map(lambda n: Condition(f"id = {n}", lambda row: row["id"] == n)),
    keys.map(lambda n: Condition(f"id > {n}", lambda row: row["id"] > n)),
    keys.map(lambda n: Condition(f"id % 3 = {n % 3}", lambda row: row["id"] % 3 == n % 3)),
    _number("<", lambda a, n: a < n),
    _number("<>", lambda a, n: a != n),
    st.just(Condition("a is null", lambda row: row["a"] is None)),
    st.just(Condition("f = 0", lambda row: row["f"] == 0)),
    st.just(Condition("f > 1", lambda row: row["f"] is not None and (math.isnan(row["f"]) or row["f"] > 1))),
    st.just(Condition("not (s = 'a')", lambda row: row["s"] is not None and row["s"] != "a")),
)


@dataclass(frozen=True)
class Model:
    """What a version is: its rows, and its columns beyond the first four with the value that older rows have."""

    rows: tuple[Row, ...] = ()
    extra: dict[str, int | None] = field(default_factory=dict)

    def upserted(self, new: list[Row]) -> Model:
        """A row that is replaced keeps its values in columns that the new one lacks; a new one has their defaults."""
        known = {row["id"]: row for row in self.rows}
        replaced = {row["id"] for row in new}
        kept = [row for row in self.rows if row["id"] not in replaced]
        return replace(self, rows=(*kept, *(known.get(row["id"], self.extra) | row for row in new)))

    def whole(self, row: Row) -> Row:
        """With their defaults in the columns that were added."""
        return self.extra | row

    def without(self, condition: Condition) -> Model:
        return replace(self, rows=tuple(row for row in self.rows if not condition.holds(row)))


def given(chosen: dict[int, tuple[int | None, float | None, str | None]]) -> list[Row]:
    return [{"id": key, "a": a, "f": f, "s": s} for key, (a, f, s) in chosen.items()]


def arrow(found: list[Row]) -> pa.Table:
    types = {"id": pa.int64(), "a": pa.int64(), "f": pa.float64(), "s": pa.string()}
    return pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in types.items()})


def literal(value: float | str | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"'{value}'"
    return f"'{value}'::double" if isinstance(value, float) else str(value)


def values(found: list[Row]) -> str:
    return ", ".join(f"({', '.join(literal(row[name]) for name in ('id', 'a', 'f', 's'))})" for row in found)


def canonical(found: list[Row]) -> list[tuple[tuple[str, str], ...]]:
    """Rows in an order, whatever theirs is; NaN equals NaN, and minus zero is not zero."""
    return sorted(tuple((name, repr(value)) for name, value in sorted(row.items())) for row in found)
