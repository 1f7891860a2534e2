"""Verbs that change rows, against a list of rows: on every store, for every kind of table and file."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import underlay
from tests.contract.worlds import World, add_column, drop_column
from tests.gate import SEED, sized, some
from underlay import col
from underlay.errors import InvalidRequest
from underlay.table.commit import flush_and_merge

Row = dict[str, object]
Test = Callable[[Row], bool]
NAME = "shop.sales"
COLUMNS = "id bigint not null, zone string, price double, note string"
ZONES = ["a", "b", "ä", None]


def row(number: int, chance: random.Random) -> Row:
    return {
        "id": number,
        "zone": chance.choice(ZONES),
        "price": chance.choice([None, -1.5, 0.0, float(number)]),
        "note": chance.choice([None, "", f"note {chance.randrange(9)}"]),
    }


def as_table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)


CONDITIONS: list[tuple[object, Test]] = [
    ("id between 20 and 45", lambda r: 20 <= r["id"] <= 45),
    ("zone = 'a' and price >= 0", lambda r: r["zone"] == "a" and r["price"] is not None and r["price"] >= 0),
    ("zone is null", lambda r: r["zone"] is None),
    ("not (zone = 'b')", lambda r: r["zone"] is not None and r["zone"] != "b"),
    ("id % 7 = 3", lambda r: r["id"] % 7 == 3),
    ("length(note) > 0 or price < -1", lambda r: bool(r["note"]) or (r["price"] is not None and r["price"] < -1)),
    (col("note").is_in(["note 1", "note 2"]), lambda r: r["note"] in ("note 1", "note 2")),
    (pc.field("id") > 90, lambda r: r["id"] > 90),
    ("note = 'note 3' or id = 11", lambda r: r["note"] == "note 3" or r["id"] == 11),
]


@dataclass
class Model:
    """What the table must hold, in every version."""

    table: underlay.Table
    rows: list[Row]
    chance: random.Random
    default_price: float | None
    versions: dict[int, Counter[str]] = field(default_factory=dict)

    def some(self, count: int) -> list[Row]:
        """New rows, of which some have ids that there are."""
        numbers = self.chance.sample(range(130), count)
        return [row(number, self.chance) for number in numbers]

    def upsert(self) -> None:
        new = self.some(self.chance.choice([0, 1, 5, 40]))
        ids = {one["id"] for one in new}
        known = {one["id"] for one in self.rows} & ids
        matched = sum(one["id"] in ids for one in self.rows)
        done = self.table.upsert(as_table(new, self.table.schema))
        assert (done.rows_matched, done.rows_updated) == (matched, len(known))
        assert (done.rows_inserted, done.rows_deleted) == (len(new) - len(known), matched - len(known))
        self.rows = [one for one in self.rows if one["id"] not in ids] + new

    def upsert_some_columns(self) -> None:
        counts = Counter(one["id"] for one in self.rows)
        new = [one for one in self.some(6) if counts[one["id"]] < 2]  # of two, either may lend the other columns
        names = ["note", "id"]
        self.table.upsert(as_table(new, pa.schema([self.table.schema.field(name) for name in names])))
        notes = {one["id"]: one["note"] for one in new}
        held = {one["id"]: one for one in self.rows}
        left = [one for one in self.rows if one["id"] not in notes]
        blank: Row = {"zone": None, "price": self.default_price}
        self.rows = left + [{**held.get(number, blank), "id": number, "note": note} for number, note in notes.items()]

    def delete(self) -> None:
        where, holds = self.chance.choice(CONDITIONS)
        left = [one for one in self.rows if not holds(one)]
        dry = self.table.delete(where, dry_run=True)
        done = self.table.delete(where)
        assert done.rows_deleted == done.rows_matched == len(self.rows) - len(left) == dry.rows_deleted
        assert (done.rows_inserted, done.rows_updated) == (0, 0)
        self.rows = left

    def delete_keys(self) -> None:
        gone = {one["id"] for one in self.some(10)}
        left = [one for one in self.rows if one["id"] not in gone]
        done = self.table.delete(rows=pa.table({"id": pa.array(sorted(gone), pa.int32())}))
        assert done.rows_deleted == len(self.rows) - len(left)
        self.rows = left

    def overwrite(self) -> None:
        where, holds = self.chance.choice(CONDITIONS)
        new = self.some(7)
        left = [one for one in self.rows if not holds(one)]
        done = self.table.overwrite(as_table(new, self.table.schema), where)
        assert (done.rows_deleted, done.rows_inserted) == (len(self.rows) - len(left), 7)
        self.rows = left + new

    def update(self) -> None:
        where, holds = self.chance.choice(CONDITIONS)
        values = {
            "price": "coalesce(price, 0) + id / 2",
            "note": "upper(note)",
            "zone": "CASE WHEN id % 2 = 0 THEN 'b' END",
        }
        done = self.table.update(values, where)
        assert done.rows_updated == sum(map(holds, self.rows)) == done.rows_matched
        assert (done.rows_inserted, done.rows_deleted) == (0, 0)
        self.rows = [
            {
                "id": one["id"],
                "zone": "b" if one["id"] % 2 == 0 else None,
                "price": (one["price"] or 0.0) + one["id"] / 2,
                "note": one["note"] and one["note"].upper(),
            }
            if holds(one)
            else one
            for one in self.rows
        ]

    def merge(self) -> None:
        new = self.some(self.chance.choice([0, 3, 40]))
        by_id, held = {one["id"]: one for one in new}, {one["id"] for one in self.rows}
        done = (
            self.table.merge(as_table(new, self.table.schema), "t.id = s.id", "s", "t")
            .when_matched_delete("s.zone = 'a'")
            .when_matched_update({"note": "s.note", "price": "t.price"}, "t.zone = 'b'")
            .when_matched_update_all()
            .when_not_matched_insert_all("s.zone IS NOT NULL")
            .when_not_matched_by_source_delete("t.id % 29 = 0")
            .execute()
        )
        left = []
        for one in self.rows:
            other = by_id.get(one["id"])
            if other is None and one["id"] % 29:
                left.append(one)
            elif other is not None and other["zone"] != "a":
                left.append({**one, "note": other["note"]} if one["zone"] == "b" else other)
        new = [one for one in new if one["id"] not in held and one["zone"] is not None]
        assert done.rows_matched == sum(one["id"] in by_id for one in self.rows)
        assert (done.rows_inserted, done.rows_deleted) == (len(new), len(self.rows) - len(left))
        self.rows = left + new

    def append(self) -> None:
        held = {one["id"] for one in self.rows}
        new = [one for one in self.some(20) if one["id"] not in held]
        self.table.append(as_table(new, self.table.schema))
        self.rows = self.rows + new

    def check(self, table: underlay.Table) -> None:
        """A full scan, a pruned one and the counts."""
        found = table.scan().to_arrow().to_pylist()
        assert Counter(map(repr, found)) == Counter(repr({name: one[name] for name in found[0]}) for one in self.rows)
        assert len(table) == len(self.rows) == next(table.history()).row_count
        assert table.count("id >= 50 and id < 60") == sum(50 <= one["id"] < 60 for one in self.rows)
        assert table.count("zone = 'a'") == sum(one["zone"] == "a" for one in self.rows)
        self.versions[table.version] = Counter(map(repr, found))

    def run(self, world: World, steps: int) -> None:
        verbs = [
            self.upsert, self.upsert_some_columns, self.delete, self.delete_keys, self.overwrite, self.update,
            self.merge, self.append,
        ]  # fmt: skip
        for step in range(steps):
            self.chance.choice(verbs)()
            if self.rows:
                self.check(world.again().table(NAME) if step % 3 else self.table)
            else:
                assert self.table.to_arrow().num_rows == 0
                self.append()
        for version, rows in self.versions.items():
            assert Counter(map(repr, self.table.at(version=version).to_arrow().to_pylist())) == rows
        report = world.lake.verify(NAME, deep=True, registry=False)
        assert report.findings == (), report.findings


def first_rows(chance: random.Random, numbers: range) -> list[Row]:
    return [row(number, chance) for number in numbers]


def plain(world: World, chance: random.Random) -> Iterator[tuple[underlay.Table, list[Row]]]:
    table = world.create(COLUMNS, key=["id"], block_rows=20)
    rows = first_rows(chance, range(100))
    table.append(as_table(rows, table.schema))
    yield table, rows


def partitioned(world: World, chance: random.Random) -> Iterator[tuple[underlay.Table, list[Row]]]:
    table = world.create(COLUMNS, key=["id"], block_rows=10, partition_by=["zone"], sort_by=["price", "id"])
    rows = first_rows(chance, range(100))
    table.append(as_table(rows, table.schema))
    yield table, rows


def bucketed(world: World, chance: random.Random) -> Iterator[tuple[underlay.Table, list[Row]]]:
    table = world.create(COLUMNS, key=["id"], partition_by=["bucket(4, id)"], sort_by=["note desc"])
    rows = first_rows(chance, range(100))
    table.append(as_table(rows, table.schema))
    yield table, rows


def registered(world: World, chance: random.Random) -> Iterator[tuple[underlay.Table, list[Row]]]:
    """Files of others, with constants from their folders, and rows of our own."""
    table = world.create(COLUMNS, key=["id"], block_rows=20)
    rows = first_rows(chance, range(90))
    for number, zone in enumerate(["a", "b"]):
        mine = [one | {"zone": zone} for one in rows[30 * number : 30 * number + 30]]
        rows[30 * number : 30 * number + 30] = mine
        data = as_table(mine, table.schema).drop_columns(["zone"])
        table.register(world.put_parquet(data, f"zone={zone}/part", row_group_size=12))
    table.append(as_table(rows[60:], table.schema))
    yield table, rows


def evolved(world: World, chance: random.Random) -> Iterator[tuple[underlay.Table, list[Row]]]:
    """Files that lack columns, among them one with a default, and one that has a column that is no more."""
    table = world.create("id bigint not null, old int, zone string", key=["id"], block_rows=20)
    rows = first_rows(chance, range(100))
    half = as_table(rows[:50], pa.schema([table.schema.field(name) for name in ("id", "zone")]))
    table.append(half.append_column("old", pa.nulls(50, pa.int32())))
    drop_column(table, "old")
    add_column(table, "price", "float64", "2.5")
    add_column(table, "note", "string")
    for one in rows[:50]:
        one |= {"price": 2.5, "note": None}
    table.append(as_table(rows[50:], table.schema))
    yield table, rows


def in_segments(world: World, chance: random.Random) -> Iterator[tuple[underlay.Table, list[Row]]]:
    """Files that are in segments soon, with an overlay that is folded soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush_and_merge, "TAIL_BYTES", 3000)
        patch.setattr(flush_and_merge, "OVERLAY_BYTES", 300)
        table = world.create(COLUMNS, key=["id"], block_rows=20)
        rows = first_rows(chance, range(100))
        for first in range(0, 100, 10):
            table.append(as_table(rows[first : first + 10], table.schema))
        yield table, rows
        assert table.snapshot().root.segments


KINDS = [plain, partitioned, bucketed, registered, evolved, in_segments]


def check(world: World, kind, steps: int) -> None:
    chance = random.Random(SEED)
    made = kind(world, chance)
    table, rows = next(made)
    Model(table, rows, chance, 2.5 if kind is evolved else None).run(world, steps)
    next(made, None)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_verb_does_to_a_table_what_it_does_to_a_list(memory: World, kind):
    check(memory, kind, sized(6, 40))


@pytest.mark.parametrize("kind", some(KINDS, 3), ids=lambda kind: kind.__name__)
def test_and_so_it_does_on_every_store(world: World, kind):
    check(world, kind, sized(3, 20))


def test_a_table_of_many_files_is_changed_in_one_commit(memory: World):
    table = memory.create("part int not null, " + COLUMNS, key=["id"], partition_by=["part"])
    chance, count = random.Random(SEED), sized(240, 600)
    rows = [{"part": number // 3, **row(number, chance)} for number in range(count)]
    table.append(as_table(rows, table.schema))
    assert len(table.snapshot().root.segments) == 1
    assert table.snapshot().root.file_count == count // 3
    done = table.upsert(as_table([{"part": 1, **row(number, chance)} for number in range(0, count, 2)], table.schema))
    assert (done.rows_updated, done.version) == (count // 2, 2)
    done = table.delete("id % 3 = 0")
    assert (done.rows_deleted, len(table)) == (count // 3, count // 3 * 2)
    done = table.overwrite(as_table(rows, table.schema))
    assert (done.rows_deleted, done.rows_inserted) == (count // 3 * 2, count)
    assert Counter(map(repr, memory.again().table(NAME).to_arrow().to_pylist())) == Counter(map(repr, rows))
    assert memory.lake.verify(NAME, deep=True).findings == ()


def test_a_rollback_brings_back_what_was_changed(world: World):
    table, rows = next(plain(world, random.Random(SEED)))
    table.delete("id < 50")
    table.upsert(as_table([row(60, random.Random(1))], table.schema))
    table.truncate()
    table.rollback(1)
    assert sorted(map(repr, world.again().table(NAME).to_arrow().to_pylist())) == sorted(map(repr, rows))


def test_an_old_version_refuses_every_verb(world: World):
    table, rows = next(plain(world, random.Random(SEED)))
    old = table.at(version=1)
    one = as_table(rows[:1], table.schema)
    for verb in (lambda: old.upsert(one), lambda: old.delete(), lambda: old.overwrite(one), lambda: old.truncate()):
        with pytest.raises(InvalidRequest, match="never changes"):
            verb()
