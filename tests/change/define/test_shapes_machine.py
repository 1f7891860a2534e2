"""Columns that come, go, widen and get other names, in files of ours and of others, of one partitioning and another,
compacted and imported: every version reads as a model of plain lists, and conditions prune no row that DuckDB finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import underlay
from tests.end_to_end.lakes import memory, quick
from tests.gate import sized
from underlay.cache.settings import memory_cache
from underlay.change.define.evolution import Evolution

NAME = "shop.items"
NAMES = ("p", "q", "r")
Row: TypeAlias = dict[int, Any]
"""Values by a column's number, which survives its names."""
clients = st.sampled_from([0, 1])


@dataclass(frozen=True)
class Kind:
    """Types from narrow to wide, values that all of them have, and ways to partition by them."""

    types: tuple[tuple[str, pa.DataType], ...]
    values: tuple[Any, ...]
    partitions: tuple[str, ...] = ("{}", "bucket(3, {})")


KINDS = {
    "int": Kind(
        (("smallint", pa.int16()), ("int", pa.int32()), ("bigint", pa.int64())),
        (-3, -1, 0, 1, 2, 300),
        ("{}", "bucket(3, {})", "truncate(2, {})"),
    ),
    "float": Kind((("float", pa.float32()), ("double", pa.float64())), (0.0, -0.0, 1.5, -2.25, nan, inf, -inf), ()),
    "decimal": Kind(
        tuple((f"decimal({digits},2)", pa.decimal128(digits, 2)) for digits in (4, 12, 22)),
        (Decimal("0.00"), Decimal("1.50"), Decimal("-12.25"), Decimal("99.99")),
    ),
    "date": Kind(
        (("date", pa.date32()), ("timestamp_ntz", pa.timestamp("us"))),
        (date(2024, 1, 1), date(1969, 12, 31), date(2024, 2, 29)),
        ("{}", "month({})", "year({})"),
    ),
    "text": Kind((("string", pa.string()),), ("", "a", "B", "é" * 70, "é" * 70 + "x"), ("{}", "truncate(1, {})")),
}


@dataclass(frozen=True)
class Column:
    number: int
    name: str
    kind: str
    level: int = 0
    default: Any = None

    @property
    def sql(self) -> str:
        return KINDS[self.kind].types[self.level][0]

    def typed(self, value: Any) -> Any:
        """A value of the kind as one of the column's type now."""
        if self.kind == "date" and self.level and type(value) is date:
            return datetime(value.year, value.month, value.day)
        return value

    def array(self, rows: list[Row], level: int | None = None) -> pa.Array:
        found = [self.typed(row[self.number]) for row in rows]
        return pa.array(found, KINDS[self.kind].types[self.level if level is None else level][1])


@dataclass(frozen=True)
class Model:
    """What a version is."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()
    parts: tuple[str, ...] = ()

    def whole(self, row: Row) -> Row:
        return {column.number: column.default for column in self.columns} | row

    def shown(self) -> list[tuple[str, ...]]:
        return sorted(tuple(repr(one.typed(row[one.number])) for one in self.columns) for row in self.rows)

    def arrow(self) -> pa.Table:
        return pa.table({one.name: one.array(list(self.rows)) for one in self.columns})

    def is_part(self, column: Column) -> bool:
        return any(
            column.name in (part, part.rpartition(" ")[2][:-1], part.partition("(")[2][:-1]) for part in self.parts
        )


class Shapes(RuleBasedStateMachine):
    """`versions` is what every version of the table must be."""

    @initialize(
        in_blocks=st.sampled_from([2, 3, 100]), kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2)
    )
    def start(self, in_blocks: int, kinds: list[str]) -> None:
        memory_cache().start_afresh()
        self.store = memory()
        columns = [Column(0, "id", "int", 2), *(Column(at + 1, NAMES[at], kind) for at, kind in enumerate(kinds))]
        ddl = ", ".join(f"{one.name} {one.sql}" for one in columns)
        quick(self.store).create_table(NAME, ddl, key=["id"], sort_by=["id"], properties={"block_rows": in_blocks})
        self.versions = [Model(tuple(columns))]
        self.lakes = [quick(self.store), quick(self.store)]
        self.folder = TemporaryDirectory()
        self.count = 100

    @property
    def now(self) -> Model:
        return self.versions[-1]

    def change(self, client: int, after: Model, do: Callable[[underlay.Table], object]) -> None:
        """Do it, and remember what came of it; the version stays when nothing was changed."""
        table = self.lakes[client].table(NAME)
        assert table.version == len(self.versions) - 1, "a client reads an old version"
        do(table)
        if quick(self.store).table(NAME).version == len(self.versions):
            self.versions.append(after)
        else:
            assert (after.shown(), after.columns) == (self.now.shown(), self.now.columns), "nothing was committed"

    def chosen(self, data: st.DataObject) -> list[Column]:
        """The key and some of the other columns."""
        key, *others = sorted(self.now.columns, key=lambda one: one.number)
        return [key, *(data.draw(st.lists(st.sampled_from(others), unique=True)) if others else [])]

    def drawn(self, data: st.DataObject, columns: list[Column], *, is_fresh: bool) -> list[Row]:
        known = {row[0] for row in self.now.rows} if is_fresh else set()
        keys = [key for key in data.draw(st.lists(st.integers(0, 12), unique=True, max_size=6)) if key not in known]
        return [{0: key} | {one.number: self.value(data, one.kind) for one in columns[1:]} for key in keys]

    @staticmethod
    def value(data: st.DataObject, kind: str) -> Any:
        return data.draw(st.none() | st.sampled_from(KINDS[kind].values))

    @rule(client=clients, data=st.data(), replaces=st.booleans())
    def append_or_upsert(self, client: int, data: st.DataObject, replaces: bool) -> None:
        columns = self.chosen(data)
        rows = self.drawn(data, columns, is_fresh=not replaces)
        written = pa.table({one.name: one.array(rows) for one in columns})
        after = {row[0]: row for row in self.now.rows}
        after |= {row[0]: after.get(row[0], self.now.whole({})) | row for row in rows}
        model = replace(self.now, rows=tuple(after.values()))
        self.change(client, model, lambda table: table.upsert(written) if replaces else table.append(written))

    @rule(client=clients, data=st.data())
    def register(self, client: int, data: st.DataObject) -> None:
        """A file of others: narrower columns, columns in its path, columns that it lacks."""
        columns = self.chosen(data)
        rows = self.drawn(data, columns, is_fresh=True)
        if not rows:
            return
        if self.now.is_part(columns[0]):
            rows = rows[:1]
        self.count += 1
        folder, inside = Path(self.folder.name), [columns[0]]
        for one in columns[1:]:
            in_path = data.draw(st.integers(0, 2)) == 0
            if in_path or self.now.is_part(one):  # a file of one partition
                rows = [row | {one.number: rows[0][one.number]} for row in rows]
            if in_path:
                value = one.typed(rows[0][one.number])
                text = "__HIVE_DEFAULT_PARTITION__" if value in (None, "") else str(value).replace(":", "%3A")
                rows = [row | {one.number: None if value == "" else row[one.number]} for row in rows]
                folder /= f"{one.name}={text}"
            else:
                inside.append(one)
        levels = [one.level if one.kind == "date" else data.draw(st.integers(0, one.level)) for one in inside]
        levels[0] = 2
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.count}.parquet"
        written = pa.table({one.name: one.array(rows, level) for one, level in zip(inside, levels, strict=True)})
        pq.write_table(
            written, path, row_group_size=2, write_statistics=bool(self.now.parts) or data.draw(st.booleans())
        )
        model = replace(self.now, rows=(*self.now.rows, *map(self.now.whole, rows)))
        try:
            self.change(client, model, lambda table: table.register(path))
        except underlay.errors.SchemaMismatch as error:
            if "statistics do not say" not in str(error):  # of the two zeros, and of NaN
                raise

    @rule(client=clients, imports=st.booleans())
    def compact(self, client: int, imports: bool) -> None:
        self.change(client, self.now, lambda table: table.import_files() if imports else table.compact())

    def condition(self, data: st.DataObject) -> str:
        one = data.draw(st.sampled_from(self.now.columns))
        value = one.typed(data.draw(st.sampled_from(KINDS[one.kind].values if one.number else (0, 3, 6, 12))))
        literal = f"'{value}'::{one.sql.partition('_')[0]}" if one.kind != "text" else f"'{value}'"
        signs = ("=", "<", ">=", "<>", "is distinct from", "is null", "is not null")
        sign = data.draw(st.sampled_from(signs))
        return f"{one.name} {sign}" if "null" in sign else f"{one.name} {sign} {literal}"

    def matching(self, condition: str) -> set[int]:
        """The keys of the rows that DuckDB finds without pruning anything."""
        rows = self.now.arrow()
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute("pragma disable_optimizer")
            connection.register("rows", rows)
            return {key for (key,) in connection.execute(f"select id from rows where {condition}").fetchall()}

    @rule(client=clients, data=st.data())
    def delete(self, client: int, data: st.DataObject) -> None:
        condition = self.condition(data)
        gone = self.matching(condition)
        after = replace(self.now, rows=tuple(row for row in self.now.rows if row[0] not in gone))
        self.change(client, after, lambda table: table.delete(condition))

    @rule(client=clients, data=st.data())
    def update(self, client: int, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from([one for one in self.now.columns if one.number]))
        value, condition = self.value(data, one.kind), self.condition(data)
        found = self.matching(condition)
        after = tuple(row | {one.number: value} if row[0] in found else row for row in self.now.rows)
        new = underlay.lit(one.typed(value))
        self.change(client, replace(self.now, rows=after), lambda table: table.update({one.name: new}, where=condition))

    @rule(client=clients, data=st.data(), kind=st.sampled_from(sorted(KINDS)))
    def add_column(self, client: int, data: st.DataObject, kind: str) -> None:
        """Under a name that another column may have had."""
        free = self.free_names()
        if not free:
            return
        self.count += 1
        added = Column(self.count, free[0], kind, data.draw(st.integers(0, len(KINDS[kind].types) - 1)))
        added = replace(added, default=added.typed(self.value(data, kind)))
        rows = tuple(row | {added.number: added.default} for row in self.now.rows)
        after = replace(self.now, columns=(*self.now.columns, added), rows=rows)
        self.evolve(client, after, lambda change: change.add_column(added.name, added.sql, default=added.default))

    @rule(client=clients, data=st.data(), what=st.sampled_from(["drop", "rename", "widen", "move"]))
    def alter_column(self, client: int, data: st.DataObject, what: str) -> None:
        columns = list(self.now.columns)
        one = data.draw(st.sampled_from([one for one in columns if one.number]))
        at, free = columns.index(one), self.free_names()
        if what == "widen" and one.level + 1 < len(KINDS[one.kind].types):
            wide = replace(one, level=one.level + 1)
            columns[at] = wide = replace(wide, default=wide.typed(one.default))
            self.evolve(client, replace(self.now, columns=tuple(columns)), lambda c: c.widen_column(one.name, wide.sql))
        elif what == "rename" and free and not self.now.is_part(one):
            columns[at] = replace(one, name=free[0])
            self.evolve(client, replace(self.now, columns=tuple(columns)), lambda c: c.rename_column(one.name, free[0]))
        elif what == "drop" and len(columns) > 2 and not self.now.is_part(one):
            after = replace(self.now, columns=(*columns[:at], *columns[at + 1 :]))
            self.evolve(client, after, lambda c: c.drop_column(one.name))
        elif what == "move":
            after = replace(self.now, columns=(one, *columns[:at], *columns[at + 1 :]))
            self.evolve(client, after, lambda c: c.move_column(one.name))

    @rule(client=clients, data=st.data())
    def partition(self, client: int, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.now.columns))
        form = data.draw(st.none() | st.sampled_from(KINDS[one.kind].partitions or ("{}",)))
        parts = () if form is None or one.kind == "float" else (form.format(one.name),)
        self.evolve(client, replace(self.now, parts=parts), lambda change: change.set_partition_by(list(parts)))

    def evolve(self, client: int, after: Model, step: Callable[[Evolution], object]) -> None:
        def do(table: underlay.Table) -> None:
            with table.evolve() as change:
                step(change)

        self.change(client, after, do)

    def free_names(self) -> list[str]:
        return [name for name in NAMES if name not in {one.name for one in self.now.columns}]

    @rule(client=clients, data=st.data())
    def roll_back(self, client: int, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.versions) - 1))
        self.lakes[client].table(NAME).rollback(version)
        if quick(self.store).table(NAME).version == len(self.versions):
            self.versions.append(self.versions[version])

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        first, second = self.condition(data), self.condition(data)
        condition = f"{first} {data.draw(st.sampled_from(['and', 'or', 'and not']))} {second}"
        table = quick(self.store).table(NAME)
        expected = self.matching(condition)
        assert set(table.scan(["id"], condition).to_arrow()["id"].to_pylist()) == expected, condition
        assert table.count(condition) == len(expected), condition

    @invariant()
    def the_newest_version_is_as_the_model_says(self) -> None:
        if hasattr(self, "versions"):
            self.check(quick(self.store), len(self.versions) - 1)

    def check(self, lake: underlay.Lake, version: int) -> None:
        model = self.versions[version]
        found = lake.table(NAME, version=version).to_arrow()
        assert found.schema.names == [one.name for one in model.columns]
        assert found.schema.types == [KINDS[one.kind].types[one.level][1] for one in model.columns]
        assert sorted(tuple(map(repr, row.values())) for row in found.to_pylist()) == model.shown()

    def teardown(self) -> None:
        if not hasattr(self, "versions"):
            return
        with self.folder:
            memory_cache().start_afresh()
            lake = quick(self.store)
            assert lake.table(NAME).version == len(self.versions) - 1
            for version in range(len(self.versions)):
                self.check(lake, version)
            assert not lake.verify(deep=True).findings


Shapes.TestCase.settings = settings(
    max_examples=sized(6, 100),
    stateful_step_count=sized(15, 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestShapes = pytest.mark.timeout(7200)(Shapes.TestCase)
