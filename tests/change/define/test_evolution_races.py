"""Changes of columns beside other commits, and beside files that came since the change began."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import underlay as ul
from tests.change.define.conftest import rows
from underlay.change.define.evolution import Evolution
from underlay.errors import (
    CommitConflict,
    InvalidRequest,
)
from underlay.index.root import Root
from underlay.table.versions.revision import Revision


def test_an_evolution_begun_earlier_sees_what_was_committed_since(lake: ul.Lake, table: ul.Table):
    with table.evolve() as mine:
        mine.add_column("mine", "int")
        with lake.table("t.rows").evolve() as theirs:
            theirs.add_column("theirs", "int")
    assert {"mine", "theirs"} <= set(table.schema.names)


def _racing(monkeypatch: pytest.MonkeyPatch, rival: Callable[[], object]) -> None:
    """Have the rival commit just before the next root of the table is published, once."""
    publish = Revision.publish

    def raced(self: Revision, root: Root) -> Root | None:
        monkeypatch.setattr(Revision, "publish", publish)
        rival()
        return publish(self, root)

    monkeypatch.setattr(Revision, "publish", raced)


def test_evolutions_at_once_are_refused(lake: ul.Lake, table: ul.Table, monkeypatch: pytest.MonkeyPatch):
    def rival() -> None:
        with lake.table("t.rows").evolve() as theirs:
            theirs.set_comment("theirs")

    _racing(monkeypatch, rival)
    with pytest.raises(CommitConflict, match="changes the definition"), table.evolve() as mine:
        mine.add_column("mine", "int")
    assert "mine" not in table.schema.names


STRICTER: dict[str, Callable[[Evolution], object]] = {
    "required": lambda c: c.make_required("id"),
    "check": lambda c: c.add_check("few", "id < 1000"),
    "type": lambda c: c.widen_column("fare", "double"),
    "partitions": lambda c: c.set_partition_by([]),
    "key": lambda c: c.set_key([]),
}


@pytest.mark.parametrize("name", STRICTER)
@pytest.mark.parametrize("is_append_first", [True, False])
def test_what_rows_are_checked_for_conflicts_with_appends(
    lake: ul.Lake, table: ul.Table, monkeypatch: pytest.MonkeyPatch, name: str, is_append_first: bool
):
    def evolve() -> None:
        with lake.table("t.rows").evolve() as change:
            STRICTER[name](change)

    def append() -> None:
        table.append(rows(2000))

    first, second = (append, evolve) if is_append_first else (evolve, append)
    _racing(monkeypatch, first)
    with pytest.raises(CommitConflict):
        second()
    assert table.count("id >= 2000") == (12 if is_append_first else 0)


def test_a_new_column_and_an_append_both_land(lake: ul.Lake, table: ul.Table, monkeypatch: pytest.MonkeyPatch):
    _racing(monkeypatch, lambda: lake.table("t.rows").append(rows(2000)))
    with table.evolve() as change:
        change.add_column("new", "int", default=42)
        change.rename_column("name", "title")
    assert table.count("new = 42") == 36
    assert table.count("title = 'n2003'") == 1


@pytest.mark.parametrize(
    ("column", "type_", "value", "old", "new"),
    [
        ("p", "struct<x: int>", {"x": 1}, "p.x", "p.w"),
        ("p", "struct<y: struct<x: int>, z: int>", {"y": {"x": 1}, "z": 2}, "p.y.x", "p.y.w"),
        ("p", "list<struct<x: int>>", [{"x": 1}, {"x": 2}], "p.element.x", "p.element.w"),
        ("p", "map<string, struct<x: int>>", [("k", {"x": 1})], "p.value.x", "p.value.w"),
    ],
)
def test_the_last_field_that_files_have_of_a_nested_column_stays_until_rows_are_written_anew(
    lake: ul.Lake, column: str, type_: str, value: object, old: str, new: str
):
    table = lake.create_table("evolve.nested", f"id int, {column} {type_}")
    arrow = table.to_arrow().schema
    table.append(pa.table([pa.array([1, 2], pa.int32()), pa.array([value, None], arrow.field(column).type)], arrow))
    version = table.version
    refused = table.evolve().begin()
    refused.add_column(new, "int", default=5)
    refused.drop_column(old)
    with pytest.raises(InvalidRequest, match="1 file has no other field of it"), refused:
        pass
    assert table.version == version
    with table.evolve() as change:
        change.add_column(new, "int", default=5)
    table.overwrite(table.scan())
    with table.evolve() as change:
        change.drop_column(old)
    found = table.to_arrow().column(column).to_pylist()
    assert str(found[0]).count("'w': 5") == str(value).count("'x'")
    assert "'x'" not in str(found[0])
    assert found[1] is None


def test_files_that_came_since_a_change_began_count_when_a_nested_column_loses_its_fields(lake: ul.Lake):
    table = lake.create_table("evolve.raced", "id int, p struct<x: int>")
    rows = pa.table({"id": pa.array([1], pa.int32()), "p": pa.array([{"x": 1}], pa.struct([("x", pa.int32())]))})
    change = table.evolve().begin()
    change.add_column("p.w", "int", default=5)
    change.drop_column("p.x")
    table.append(rows)
    with pytest.raises(InvalidRequest, match="1 file has no other field of it"), change:
        pass
    assert table.to_arrow().column("p").to_pylist() == [{"x": 1}]
