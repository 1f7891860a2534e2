"""Registered files become the table's own; the rows stay, and what may mislead other engines is encoded again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.gate import every_third
from tests.maintain.audit import audit
from underlay.api.lake import connect
from underlay.api.table import Table
from underlay.errors import NotFound, UnderlayError
from underlay.index.keys import is_own
from underlay.store import Store, open_store
from underlay.store.testing import Crashed, Fault, at_every_request


def make(place: Path, schema: str, files: dict[str, pa.Table]) -> Table:
    for name, rows in files.items():
        path = place / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, row_group_size=10, write_page_index=True)
    table = connect(place / "lake", registry="none").create_table("a.b", schema)
    table.register(place / "in")
    return table


def rows(begin: int, **more: object) -> pa.Table:
    ids = list(range(begin, begin + 30))
    return pa.table({"id": ids, "word": [f"w{one}" for one in ids]} | {name: [one] * 30 for name, one in more.items()})


def seen(table: Table) -> list[str]:
    return sorted(map(repr, table.to_arrow().to_pylist()))


def check(place: Path, table: Table) -> None:
    report = connect(place / "lake", registry="none").verify(deep=True, registry=False)
    assert [one.findings for one in report.tables[0].revisions] == [()]
    assert audit(open_store(str(place / "lake"))).missing == set()
    assert all(is_own(entry.location) for entry in table.snapshot().files())


def test_blocks_are_copied_and_the_registered_files_are_needed_no_more(tmp_path):
    table = make(tmp_path, "id bigint, word string", {"a.parquet": rows(0), "b.parquet": rows(100)})
    table.delete("id = 5")
    before = seen(table)
    assert table.import_files(dry_run=True).files_before == 2
    done = table.import_files()
    assert (done.files_before, done.blocks_copied, done.blocks_encoded) == (2, 5, 1)
    assert table.changes(table.version - 1).to_arrow().num_rows == 0
    check(tmp_path, table)
    for path in (tmp_path / "in").iterdir():
        path.unlink()
    assert seen(table) == before
    assert table.scan(where="word = 'w107'").to_arrow()["id"].to_pylist() == [107]
    assert table.import_files().files_before == 0


def test_floats_and_columns_from_paths_are_encoded_again(tmp_path):
    files = {"year=2024/a.parquet": rows(0), "year=2025/b.parquet": rows(100)}
    table = make(tmp_path, "id bigint, word string, year bigint", files)
    pq.write_table(rows(500, year=2026, fare=0.5), tmp_path / "c.parquet")
    with table.evolve() as change:
        change.add_column("fare", "double")
    table.register(tmp_path / "c.parquet")
    before = seen(table)
    done = table.import_files()
    assert (done.blocks_copied, done.blocks_encoded) == (0, 7)
    assert seen(table) == before
    check(tmp_path, table)


def test_only_the_files_that_are_named_are_imported(tmp_path):
    table = make(tmp_path, "id bigint, word string", {"a.parquet": rows(0), "b.parquet": rows(100)})
    assert table.import_files(tmp_path / "in" / "a*.parquet").files_before == 1
    assert [is_own(entry.location) for entry in table.snapshot().files()].count(False) == 1
    with pytest.raises(NotFound):
        table.import_files("nothing.parquet")


def test_a_file_that_was_replaced_is_left(tmp_path):
    table = make(tmp_path, "id bigint, word string", {"a.parquet": rows(0), "b.parquet": rows(100)})
    pq.write_table(rows(7), tmp_path / "in" / "a.parquet")
    done = table.import_files()
    assert (done.files_before, len(done.failed)) == (1, 1)


def test_a_fault_at_any_request_leaves_each_file_registered_or_imported(tmp_path):
    for name in "ab":
        pq.write_table(rows(100 * ord(name)), tmp_path / f"{name}.parquet", row_group_size=10)

    def begin() -> Store:
        inner = open_store(f"memory://{uuid4()}")
        table = connect(inner, registry="none").create_table("a.b", "id bigint, word string")
        table.register(tmp_path)
        table.delete("word = 'w9705'")
        return inner

    wanted = seen(connect(begin(), registry="none").table("a.b"))
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_RESPONSE, Fault.LOST_REQUEST):
        for faulty in at_every_request(begin, [fault], **every_third()):
            with suppress(Crashed, UnderlayError):
                connect(faulty, registry="none").table("a.b").import_files()
            table = connect(faulty.inner, registry="none").table("a.b")
            assert seen(table) == wanted
            assert audit(faulty.inner).missing == set()
            table.import_files()
            assert seen(table) == wanted
            assert all(is_own(entry.location) for entry in table.snapshot().files())
