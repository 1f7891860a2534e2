"""Every row that is missing, surplus or different is found, whichever databases are compared."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import delete, insert, update

from tests.registry.databases import empty_registry
from tests.registry.databases import on_sqlite as on_sqlite
from tests.registry.databases import registry as registry
from tests.registry.workload import Workload
from underlay.registry.database import Database
from underlay.registry.difference import Difference, Kind, compare, differences
from underlay.registry.restore import restore
from underlay.registry.schema import FILE_METADATA, FOOTER_CACHE, LAKE, TAGS, VERSIONS

ROW = {"revision": "r", "version": 1}


def found_between(one: Database, other: Database) -> list[Difference]:
    with one.read() as found, other.read() as expected:
        return differences(found, expected)


def test_each_kind_of_difference_is_named_with_its_key(registry: Database, tmp_path: Path) -> None:
    truth = empty_registry(f"sqlite:///{tmp_path / 'truth.sqlite'}")
    with registry.write() as connection:
        connection.execute(insert(TAGS), [{"folder": "f", "tag": tag, **ROW} for tag in ("a", "c", "é")])
    with truth.write() as connection:
        connection.execute(insert(TAGS), [{"folder": "f", "tag": tag, **ROW} for tag in ("B", "a", "c")])
        connection.execute(update(TAGS).where(TAGS.c.tag == "c").values(version=2))
    assert found_between(registry, truth) == [
        Difference(table="tags", key=("f", "B"), kind=Kind.MISSING),
        Difference(table="tags", key=("f", "c"), kind=Kind.DIFFERENT, fields={"version": (1, 2)}),
        Difference(table="tags", key=("f", "é"), kind=Kind.SURPLUS),
    ]
    truth.close()


def test_text_is_ordered_alike_on_both_kinds_of_database(registry: Database, tmp_path: Path) -> None:
    truth = empty_registry(f"sqlite:///{tmp_path / 'truth.sqlite'}")
    tags = ["a", "B", "b", "_", "a-b", "a b", "Z", "é", "\uffff", "\U00010000", "10", "9"]
    for database in (registry, truth):
        with database.write() as connection:
            connection.execute(insert(TAGS), [{"folder": "f", "tag": tag, **ROW} for tag in tags])
    assert found_between(registry, truth) == []
    truth.close()


def test_what_mirrors_nothing_is_not_compared(on_sqlite: Database, tmp_path: Path) -> None:
    truth = empty_registry(f"sqlite:///{tmp_path / 'truth.sqlite'}")
    values: dict[type, object] = {int: 0, str: "text", bytes: b"data"}
    with on_sqlite.write() as connection:
        cached = {column.name: values[column.type.python_type] for column in FOOTER_CACHE.c}
        connection.execute(insert(FOOTER_CACHE), cached)
    assert found_between(on_sqlite, truth) == []
    truth.close()


def test_a_registry_that_was_tampered_with_is_found_out(on_sqlite: Database) -> None:
    workload = Workload(3)
    workload.run(20)
    restore(on_sqlite, workload.store)
    with on_sqlite.write() as connection:
        connection.execute(update(LAKE).values(number=-5))
        connection.execute(delete(VERSIONS).where(VERSIONS.c.version == 0))
        connection.execute(update(FILE_METADATA).values(row_count=FILE_METADATA.c.row_count + 1))
    found = compare(on_sqlite, workload.store)
    assert {(one.table, one.kind) for one in found} == {
        ("lake", Kind.DIFFERENT),
        ("versions", Kind.MISSING),
        ("file_metadata", Kind.DIFFERENT),
    }


def test_a_comparison_changes_nothing(on_sqlite: Database) -> None:
    workload = Workload(3)
    workload.run(5)
    first = compare(on_sqlite, workload.store)
    assert first
    assert compare(on_sqlite, workload.store) == first
