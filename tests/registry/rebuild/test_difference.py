"""Every row that is missing, surplus or different is found, whichever databases are compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import delete, insert, update

from tests.registry.databases import empty_registry
from tests.registry.databases import on_sqlite as on_sqlite
from tests.registry.databases import registry as registry
from tests.registry.workload import Workload
from tests.table.entries import append, name, new_table
from underlay.registry.database.database import Database
from underlay.registry.database.schema import FILE_METADATA, FOOTER_CACHE, LAKE, LEASES, TAGS, VERSIONS
from underlay.registry.mirror.catch_up import catch_up_all
from underlay.registry.rebuild.difference import Difference, DifferenceKind, compare, differences
from underlay.registry.rebuild.restore import RestoreProgress, restore_rows

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
        Difference(table="tags", key=("f", "B"), kind=DifferenceKind.MISSING),
        Difference(table="tags", key=("f", "c"), kind=DifferenceKind.DIFFERENT, fields={"version": (1, 2)}),
        Difference(table="tags", key=("f", "é"), kind=DifferenceKind.SURPLUS),
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
    restore_rows(on_sqlite, workload.store)
    with on_sqlite.write() as connection:
        connection.execute(update(LAKE).values(number=-5))
        connection.execute(delete(VERSIONS).where(VERSIONS.c.version == 0))
        connection.execute(update(FILE_METADATA).values(row_count=FILE_METADATA.c.row_count + 1))
    found = compare(on_sqlite, workload.store)
    assert {(one.table, one.kind) for one in found} == {
        ("lake", DifferenceKind.DIFFERENT),
        ("versions", DifferenceKind.MISSING),
        ("file_metadata", DifferenceKind.DIFFERENT),
    }


def test_a_lake_that_was_moved_and_things_that_pass_are_no_difference(on_sqlite: Database) -> None:
    workload = Workload(3)
    workload.run(5)
    restore_rows(on_sqlite, workload.store)
    lease = {"revision": "r", "reader": "me", "owner": "me", "version": 0, "started_us": 0, "renewed_us": 0}
    with on_sqlite.write() as connection:
        connection.execute(update(LAKE).values(url="file:///elsewhere"))
        connection.execute(insert(LEASES), {**lease, "ttl_us": 1})
    assert compare(on_sqlite, workload.store) == []


@pytest.mark.parametrize("is_following", [True, False])
def test_a_registry_that_moves_meanwhile_differs_only_where_it_stands_still(
    on_sqlite: Database, is_following: bool
) -> None:
    """It is ahead of what was read of the store, or behind, at each look; a row that nobody touches differs."""
    _, revision = new_table()
    restore_rows(on_sqlite, revision.store)
    with on_sqlite.write() as connection:
        connection.execute(update(LAKE).values(committed_us=1))
    append(revision, name())

    def write(progress: RestoreProgress) -> None:
        append(revision, name())
        if is_following:
            catch_up_all(on_sqlite, revision.store)

    found = [(one.table, one.kind) for one in compare(on_sqlite, revision.store, progress=write)]
    behind = [
        ("revisions", DifferenceKind.DIFFERENT),
        ("versions", DifferenceKind.MISSING),
        ("file_metadata", DifferenceKind.MISSING),
    ]
    assert found[0] == ("lake", DifferenceKind.DIFFERENT)
    assert (set(found[1:]) == set(behind)) is not is_following
    assert (found[1:] == []) is is_following


def test_a_comparison_changes_nothing(on_sqlite: Database) -> None:
    workload = Workload(3)
    workload.run(5)
    first = compare(on_sqlite, workload.store)
    assert first
    assert compare(on_sqlite, workload.store) == first
