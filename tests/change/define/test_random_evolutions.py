"""Many evolutions one after another, against a model: values are the model's, and a pruned scan is a full one."""

from __future__ import annotations

import os
import random
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import underlay as ul
from tests.gate import SEED, sized

Row = dict[str, object]
WIDER = {
    "int8": ["int16", "int32", "int64"],
    "int16": ["int32", "int64", "float32"],
    "int32": ["int64", "float64"],
    "float32": ["float64"],
    "decimal(5, 2)": ["decimal(9, 2)", "decimal(20, 4)"],
    "decimal(9, 2)": ["decimal(18, 3)", "decimal(38, 10)"],
    "date": ["timestamp(s)", "timestamp(ms)", "timestamp(us)"],
    "timestamp(s)": ["timestamp(ms)", "timestamp(ns)"],
    "timestamp(ms)": ["timestamp(us)", "timestamp(ns)"],
}
FIRST = {"a": "int8", "b": "decimal(5, 2)", "c": "date", "d": "string", "e": "timestamp(s)", "f": "float32"}
PARTITIONS = ("{}", "bucket(3, {})", "truncate(10, {})", "month({})", "day({})", "")


class Model:
    """What the table should be: its rows as Python values, and the types of its columns in their order."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.types = dict(FIRST)
        self.rows: list[Row] = []
        self.next_id = 0

    def value(self, type_: str) -> object:
        if self.chance.random() < 0.15:
            return None
        number = self.chance.randrange(60)
        if type_.startswith(("int", "float")):
            return number
        if type_.startswith("decimal"):
            return Decimal(number) / 4
        if type_ == "date":
            return date(2020, 1, 1) + timedelta(days=number)
        if type_.startswith("timestamp"):
            return datetime(2020, 1, 1) + timedelta(days=number)
        return f"v{number}"

    def new_rows(self, count: int) -> list[Row]:
        made = []
        for _ in range(count):
            self.next_id += 1
            made.append({"id": self.next_id, **{name: self.value(type_) for name, type_ in self.types.items()}})
        self.rows += made
        return made

    def plain(self, value: object) -> object:
        """A value without its type: a date is its midnight, a number is a number."""
        if isinstance(value, datetime):
            return value
        return datetime(value.year, value.month, value.day) if isinstance(value, date) else value


def step(model: Model, table: ul.Table, number: int) -> None:
    """One change of the table and of the model, or rows."""
    chance, name = model.chance, model.chance.choice(list(model.types))
    definition = table.definition
    used = {one.field for one in definition.partition_by}
    partitioned = {field.name for field in definition.schema.fields if field.id in used}
    kind = chance.choice(["append", "append", "widen", "widen", "rename", "drop", "add", "partition", "move"])
    with table.evolve() as change:
        if kind == "widen" and WIDER.get(model.types[name]):
            model.types[name] = chance.choice(WIDER[model.types[name]])
            change.widen_column(name, model.types[name])
        elif kind == "rename":
            new = f"{name[0]}{number}"
            change.rename_column(name, new)
            model.types = {new if one == name else one: type_ for one, type_ in model.types.items()}
            model.rows = [{new if one == name else one: v for one, v in row.items()} for row in model.rows]
        elif kind == "drop" and len(model.types) > 2 and name not in partitioned:
            change.drop_column(name)
            del model.types[name]
            model.rows = [{one: v for one, v in row.items() if one != name} for row in model.rows]
        elif kind == "add":
            new, type_ = f"n{number}", chance.choice(list(FIRST.values()))
            default = model.value(type_)
            change.add_column(new, type_, default=default)
            model.types[new] = type_
            model.rows = [{**row, new: default} for row in model.rows]
        elif kind == "partition":
            fitting = [p for p in PARTITIONS if _fits(p, model.types[name])]
            change.set_partition_by([text for text in [chance.choice(fitting).format(name)] if text])
        elif kind == "move":
            change.move_column(name, after="id")
            model.types = {name: model.types[name], **model.types}
    if kind == "append":
        table.append(pa.Table.from_pylist(model.new_rows(chance.randrange(1, 8)), table.schema))


def _fits(partition: str, type_: str) -> bool:
    if partition.startswith("bucket"):
        return not type_.startswith("float")
    if partition.startswith("truncate"):
        return type_.startswith("int") or type_ == "string"
    return not partition.startswith(("month", "day")) or type_.startswith(("date", "timestamp"))


def check(model: Model, table: ul.Table) -> None:
    assert table.schema.names == ["id", *model.types]
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [{name: model.plain(v) for name, v in row.items()} for row in found] == [
        {"id": row["id"], **{name: model.plain(row[name]) for name in model.types}} for row in model.rows
    ]
    for name in model.types:
        if not model.rows:
            continue
        wanted = model.plain(model.chance.choice(model.rows)[name])
        predicate = ul.col(name).is_null() if wanted is None else ul.col(name) == wanted
        expected = [row["id"] for row in model.rows if model.plain(row[name]) == wanted]
        assert sorted(table.scan(["id"], predicate).to_arrow().column(0).to_pylist()) == expected, (name, wanted)
        if wanted is not None:
            above = [row["id"] for row in model.rows if row[name] is not None and model.plain(row[name]) > wanted]
            assert sorted(table.scan(["id"], ul.col(name) > wanted).to_arrow().column(0).to_pylist()) == above


@pytest.mark.parametrize("number", sized(range(2), range(40)))
def test_evolutions_in_any_order_keep_every_value_and_every_answer(number: int):
    chance = random.Random(SEED + number)
    lake = ul.connect(f"memory://{os.urandom(6).hex()}")
    columns = ", ".join(["id int64", *(f"{name} {type_}" for name, type_ in FIRST.items())])
    table = lake.create_table("t.t", columns, properties={"bloom": "a,b,c,d,e", "block_rows": 3})
    model = Model(chance)
    table.append(pa.Table.from_pylist(model.new_rows(10), table.schema))
    kept: dict[int, str] = {}
    for count in range(14):
        step(model, table, count)
        check(model, table)
        kept[table.version] = str(table.to_arrow().to_pylist())
    for version, rows in kept.items():
        assert str(table.at(version=version).to_arrow().to_pylist()) == rows
    assert not lake.verify(deep=True).findings
