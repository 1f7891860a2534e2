"""Random updates and merges give the tables that DuckDB's own statements give on the same rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import underlay as ul
from tests.end_to_end.lakes import memory, quick
from tests.gate import costly
from tests.table.checker import Checker
from underlay.errors import InvalidRequest
from underlay.store import Store

SCHEMA = pa.schema([("k", pa.int64()), ("f", pa.float64()), ("z", pa.string()), ("v", pa.int64())])
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 6),
        st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf]),
        st.none() | st.sampled_from(["a", "b", "", "ä"]),
        st.none() | st.integers(-3, 3),
    ),
    max_size=8,
)
CONDITIONS = st.sampled_from(
    [
        "t.k = s.k",
        "t.k = s.k AND t.z = s.z",
        "t.f = s.f",
        "t.k = s.k + 1 AND t.f = s.f",
        "t.k = s.v",
        "t.z = s.z AND t.k < s.k",
        "t.k = s.k AND t.v > 0",
        "t.k = s.k AND s.v > 0",
        "t.k BETWEEN s.k AND s.k + 1",
        "t.k IS NOT DISTINCT FROM s.k",
        "t.k = s.k AND t.z IN ('a', 'b')",
        "t.k = coalesce(s.k, 3) AND coalesce(t.z, 'a') = 'a'",
        "t.k = s.k OR t.v = s.v",
        "s.k = 1 AND t.k = 2",
        "upper(t.z) = upper(s.z) AND t.k = s.k",
        "t.k = s.f",
        "false",
    ]
)
OF_TARGET = ["t.v > 0", "t.k IS NULL", "t.z = 'a'", "isnan(t.f)", "t.k % 2 = 0", "t.v = t.k"]
OF_SOURCE = ["s.v > 0", "s.k IS NULL", "s.z <> 'a'", "s.f >= 1", "s.k % 2 = 0"]
OF_BOTH = [*OF_TARGET, *OF_SOURCE, "t.v < s.v", "t.z = s.z"]
TARGET_VALUES = {
    "k": ["t.k + 1", "NULL", "t.v", "7"],
    "f": ["t.f", "-t.f", "t.k / 2", "1.25"],
    "z": ["t.z || 'x'", "'new'", "upper(t.z)"],
    "v": ["-t.v", "t.k", "t.v * t.v"],
}
SOURCE_VALUES = {
    "k": ["s.k", "s.v", "9"],
    "f": ["s.f", "s.k / 4"],
    "z": ["s.z", "'s'"],
    "v": ["s.v", "s.k + s.v", "NULL"],
}


@dataclass(frozen=True)
class Clause:
    """One clause, for the builder and as SQL."""

    method: str
    head: str
    predicate: str | None
    values: dict[str, str] | None

    def add(self, merger):
        method = getattr(merger, self.method)
        return method(self.predicate) if self.values is None else method(self.values, self.predicate)

    @property
    def sql(self) -> str:
        extra = f" AND ({self.predicate or 'true'})"  # DuckDB moves a clause without a predicate to the end
        if self.values is None:
            action = "DELETE"
        elif "insert" in self.method:
            action = f"INSERT ({', '.join(self.values)}) VALUES ({', '.join(self.values.values())})"
        else:
            action = f"UPDATE SET {', '.join(f'{name} = {value}' for name, value in self.values.items())}"
        return f"{self.head}{extra} THEN {action}"


def assignments(*choices: dict[str, list[str]]) -> st.SearchStrategy[dict[str, str]]:
    every = {name: [value for one in choices for value in one[name]] for name in choices[0]}
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(found) for name, found in every.items()}).filter(
        bool
    )


def clauses() -> st.SearchStrategy[list[Clause]]:
    def of(method: str, head: str, predicates: Sequence[str], values) -> st.SearchStrategy[Clause]:
        return st.builds(
            Clause,
            st.just(method),
            st.just(head),
            st.none() | st.sampled_from(predicates),
            st.none() if values is None else values,
        )

    alone = "WHEN NOT MATCHED BY SOURCE"
    return st.lists(
        st.one_of(
            of("when_matched_update", "WHEN MATCHED", OF_BOTH, assignments(TARGET_VALUES, SOURCE_VALUES)),
            of("when_matched_delete", "WHEN MATCHED", OF_BOTH, None),
            of("when_not_matched_insert", "WHEN NOT MATCHED BY TARGET", OF_SOURCE, assignments(SOURCE_VALUES)),
            of("when_not_matched_by_source_update", alone, OF_TARGET, assignments(TARGET_VALUES)),
            of("when_not_matched_by_source_delete", alone, OF_TARGET, None),
        ),
        min_size=1,
        max_size=4,
    )


def as_table(rows: Sequence[tuple[object, ...]]) -> pa.Table:
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(SCHEMA.names)}, SCHEMA)


def lake_with(
    groups: Sequence[Sequence[tuple[object, ...]]], deleted: Sequence[tuple[object, ...]], partitioned: bool
) -> Store:
    """A table of a file for each group, in which other rows were deleted."""
    store = memory()
    options = {"partition_by": ["z"]} if partitioned else {"sort_by": ["v"]}
    table = quick(store).create_table("some.rows", SCHEMA, properties={"block_rows": 3}, **options)
    for number, group in enumerate(groups):
        others = [(1000, *row[1:]) for row in deleted[: number + 1]]
        table.append(as_table([*group, *others]))
    table.delete("k = 1000")
    return store


def counted(rows: pa.Table) -> Counter[tuple[str, ...]]:
    """Rows as text, in no order; the two zeros apart from NaN, and alike."""
    return Counter(
        tuple(repr(value + 0.0 if isinstance(value, float) else value) for value in row.values())
        for row in rows.to_pylist()
    )


def answer(rows: pa.Table, source: pa.Table | None, statement: str, question: str | None = None):
    """What DuckDB makes of the rows, and what it says to a question before."""
    with duckdb.connect() as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE t AS FROM given")
        if source is not None:
            connection.register("other", source)
            connection.execute("CREATE TABLE s AS FROM other")
        said = connection.execute(question).fetchall() if question else []
        connection.execute(statement)
        return connection.execute("FROM t").to_arrow_table(), said


def doubled_rows(condition: str, made: list[Clause]) -> str:
    """Asks how many rows more than one row of the source would change, and not all delete."""
    matched = [one for one in made if one.head == "WHEN MATCHED"]
    cases = " ".join(
        f"WHEN ({one.predicate or 'true'}) THEN {-at if one.values is None else at}"
        for at, one in enumerate(matched, 1)
    )
    chosen = f"CASE {cases} END" if cases else "NULL"
    pairs = f"SELECT t.rowid AS r, {chosen} AS c FROM t JOIN s ON ({condition})"
    return f"SELECT r FROM ({pairs}) WHERE c IS NOT NULL GROUP BY r HAVING count(*) > 1 AND max(c) > 0"


@costly
@given(st.lists(ROWS, max_size=3), ROWS, ROWS, CONDITIONS, clauses(), st.booleans())
def test_merges(groups, deleted, source, condition: str, made: list[Clause], partitioned: bool):
    store = lake_with(groups, deleted, partitioned)
    table = quick(store).table("some.rows")
    before, given_rows = table.to_arrow(), as_table(source)
    text = f"MERGE INTO t USING s ON ({condition}) {' '.join(one.sql for one in made)}"
    expected, doubled = answer(before, given_rows, text, doubled_rows(condition, made))
    merger = table.merge(given_rows, condition, "s", "t")
    for one in made:
        merger = one.add(merger)
    if doubled:
        with pytest.raises(InvalidRequest, match="more than one row of the source"):
            merger.execute()
        assert counted(table.to_arrow()) == counted(before)
        return
    done = merger.execute()
    after = quick(store).table("some.rows").to_arrow()
    assert counted(after) == counted(expected), text
    assert after.num_rows == before.num_rows + done.rows_inserted - done.rows_deleted
    Checker(store).check()


@costly
@given(
    st.lists(ROWS, max_size=3), ROWS, assignments(TARGET_VALUES), st.none() | st.sampled_from(OF_TARGET), st.booleans()
)
def test_updates(groups, deleted, values: dict[str, str], where: str | None, partitioned: bool):
    store = lake_with(groups, deleted, partitioned)
    table = quick(store).table("some.rows")
    before = table.to_arrow()
    sets = ", ".join(f"{name} = {value}" for name, value in values.items())
    text = f"UPDATE t SET {sets} WHERE {where or 'true'}"
    expected, _ = answer(before, None, text)
    plain = {name: value.replace("t.", "") for name, value in values.items()}
    done = table.update(plain, where=None if where is None else where.replace("t.", ""))
    assert counted(quick(store).table("some.rows").to_arrow()) == counted(expected), text
    assert done.rows_updated == (before.num_rows if where is None else matching(before, where)), text
    Checker(store).check()


def matching(rows: pa.Table, where: str) -> int:
    with duckdb.connect() as connection:
        connection.register("t", rows)
        ((count,),) = connection.execute(f"SELECT count(*) FROM t WHERE {where}").fetchall()
        return int(count)


def test_a_table_of_many_blocks_is_merged_as_one_of_few():
    """What blocks and bloom filters rule out has no match."""
    numbers = [*range(0, 3000, 3)]
    rows = [(n, n / 7, f"z{n % 11}", n % 5) for n in numbers]
    source = [(n, 0.5, f"z{n % 11}", -n) for n in range(0, 3100, 31)]
    tables = []
    for size in (20, 100_000):
        table: ul.Table = quick(memory()).create_table("some.rows", SCHEMA, properties={"block_rows": size})
        for begin in range(0, 1000, 250):
            table.append(as_table(rows[begin : begin + 250]))
        merger = table.merge(as_table(source), "t.k = s.k AND t.z = s.z", "s", "t")
        done = merger.when_matched_update({"v": "s.v"}).when_not_matched_insert_all().execute()
        tables.append((counted(table.to_arrow()), done.rows_updated, done.rows_inserted))
    assert tables[0] == tables[1]
    assert tables[0][1:] == (33, 67)
