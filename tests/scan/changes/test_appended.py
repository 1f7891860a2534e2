from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest
from msgspec.structs import replace

import underlay as ul
from tests.contract.worlds import change, delete_positions
from underlay.api.table import Table
from underlay.change.files.rows import read_rows
from underlay.change.rows.append import add_rows
from underlay.errors import Inconsistent, InvalidRequest, Unsupported, VersionNotFound
from underlay.scan.changes.appended import Appends, Limit, Position, after, at_version, whole_table
from underlay.scan.query import Query
from underlay.store import open_store
from underlay.store.testing import CountingStore
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import Surroundings, wait_for_background
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import open_segment

NAME = "shop.sales"
FILES_OF_A_SEGMENT = 70


@pytest.fixture
def lake() -> ul.Lake:
    return ul.connect(f"memory://{os.urandom(6).hex()}")


@pytest.fixture
def table(lake: ul.Lake) -> Table:
    return lake.create_table(NAME, "id bigint not null, part bigint", partition_by=["part"])


def append(table: Table, *numbers: int, files: int = 1) -> None:
    table.append(pa.table({"id": numbers, "part": [number % files for number in numbers]}))


def appends_of(table: Table, **given: bool) -> Appends:
    """As another process sees them, which knows nothing yet."""
    revision = table.read_head().revision
    alone = Revision(revision.store, revision.table_folder, revision.id, Surroundings())
    return Appends(alone, open_segment, **given)


def ids(table: Table, begin: Position, end: Position, **given: bool) -> list[int]:
    found = appends_of(table, **given).between(begin, end, table.definition)
    if found is None:
        return []
    return sorted(Query(snapshot=found, columns=("id",), stores=table.stores).table()["id"].to_pylist())


def end_of(table: Table) -> Position:
    head = table.read_head()
    return after(head.revision, head.root)


def batches(table: Table, begin: Position, limit: Limit, **given: bool) -> Iterator[list[int]]:
    """What a reader gets, batch by batch, until nothing is left."""
    appends = appends_of(table, **given)
    while (end := appends.advance(begin, appends.newest(), limit)) != begin:
        yield ids(table, begin, end, **given)
        begin = end


def test_a_reader_gets_the_whole_table_and_then_what_is_added_each_row_once(table: Table):
    append(table, 1, 2)
    append(table, 3)
    begin = whole_table(table.read_head())
    middle = end_of(table)
    assert ids(table, begin, middle) == [1, 2, 3]
    append(table, 4)
    table.comment("versions without rows are passed over")
    append(table, 5)
    assert ids(table, middle, end_of(table)) == [4, 5]
    assert ids(table, begin, end_of(table)) == [1, 2, 3, 4, 5]
    assert ids(table, end_of(table), end_of(table)) == []


def test_a_reader_begins_with_what_a_version_added(table: Table):
    for number in range(4):
        append(table, number)
    revision = table.read_head().revision
    assert ids(table, at_version(revision, 0), end_of(table)) == [0, 1, 2, 3]
    assert ids(table, at_version(revision, 3), end_of(table)) == [2, 3]
    with pytest.raises(VersionNotFound):
        at_version(revision, 9)


@pytest.mark.parametrize("limit", [Limit(files=3), Limit(size_bytes=1), Limit(size_bytes=5000), Limit()])
def test_batches_of_any_size_have_every_row_once(table: Table, limit: Limit):
    append(table, *range(FILES_OF_A_SEGMENT), files=FILES_OF_A_SEGMENT)  # a segment
    append(table, *range(1000, 1005), files=5)  # in the tail
    delete_positions(table, {0: [0], FILES_OF_A_SEGMENT: [0]})
    kept = sorted(table.to_arrow()["id"].to_pylist())
    begin = whole_table(table.read_head())
    append(table, *range(2000, 2000 + FILES_OF_A_SEGMENT), files=FILES_OF_A_SEGMENT)
    append(table, 3000)
    found = list(batches(table, begin, limit))
    assert sorted(number for batch in found for number in batch) == [
        *kept,
        *range(2000, 2000 + FILES_OF_A_SEGMENT),
        3000,
    ]
    if limit.files is not None:
        assert max(map(len, found)) == limit.files
    if limit.size_bytes == 1:
        assert max(map(len, found)) == 1
    if limit == Limit():
        assert len(found) == 1


def test_rows_that_are_deleted_later_are_read_as_they_were_added(table: Table):
    begin = end_of(table)
    append(table, 1, 2, 3)
    end = end_of(table)
    delete_positions(table, {0: [0]})
    assert ids(table, begin, end) == [1, 2, 3]
    assert ids(table, whole_table(table.read_head()), end_of(table)) == [2, 3]


def test_versions_that_changed_rows_are_refused_or_passed_over(table: Table):
    begin = end_of(table)
    append(table, 1, 2)
    delete_positions(table, {0: [0]})
    append(table, 3)
    with pytest.raises(Unsupported, match="version 2 deleted or changed rows"):
        ids(table, begin, end_of(table))
    assert list(batches(table, begin, Limit(), skips_changes=True)) == [[1, 2, 3]]
    table.rollback(1)
    append(table, 4)
    assert list(batches(table, begin, Limit(files=1), skips_changes=True)) == [[1, 2], [3], [4]]


def test_rewritten_files_are_no_new_rows_if_the_version_says_so(table: Table):
    begin = end_of(table)
    append(table, 1, 2)
    append(table, 3)

    def rewrite(transaction: Transaction) -> None:
        for file in table.snapshot().files():
            transaction.remove_file(file.location)
        add_rows(transaction, read_rows(table.to_arrow()))

    change(table, rewrite, "compact")
    append(table, 4)
    assert ids(table, begin, end_of(table)) == [1, 2, 3, 4]
    assert ids(table, whole_table(table.read_head()), end_of(table)) == [1, 2, 3, 4]


@pytest.mark.parametrize("skips_changes", [False, True])
def test_rows_that_an_operation_of_a_newer_version_touched_are_refused(table: Table, skips_changes: bool):
    begin = end_of(table)
    append(table, 1)
    change(table, lambda transaction: transaction.count("properties_set", 1), "set property")
    append(table, 2)
    assert ids(table, begin, end_of(table), skips_changes=skips_changes) == [1, 2]
    change(table, lambda transaction: add_rows(transaction, read_rows(table.to_arrow())), "teleport")
    with pytest.raises(Unsupported, match=r"version 4 is a teleport.* does not know .*Update Underlay"):
        ids(table, begin, end_of(table), skips_changes=skips_changes)


def test_another_history_is_refused(lake: ul.Lake, table: Table):
    append(table, 1)
    begin = end_of(table)
    append(table, 2)
    with pytest.raises(Inconsistent, match="the history before version 2"):
        ids(table, replace(begin, parent="another"), end_of(table))
    for other in (replace(end_of(table), parent="another"), replace(end_of(table), version=9)):
        with pytest.raises(Inconsistent, match="restored from a copy"):
            appends_of(table).advance(other, table.read_head().root, Limit())
    with pytest.raises(VersionNotFound, match="Start again"):
        ids(table, begin, replace(end_of(table), version=9))
    with pytest.raises(InvalidRequest, match="replaced by another one"):
        ids(table, replace(begin, revision="another"), end_of(table))
    revision = table.read_head().revision
    lake.drop_table(NAME)
    appends = Appends(revision, open_segment)
    with pytest.raises(InvalidRequest, match="dropped"):
        appends.advance(begin, appends.newest(), Limit())


def test_nothing_new_costs_one_request():
    store = CountingStore(open_store(f"memory://{os.urandom(6).hex()}"))
    table = ul.connect(store).create_table(NAME, "id bigint not null")
    table.append(pa.table({"id": [1]}))
    appends = Appends(table.read_head().revision, open_segment)
    begin = end_of(table)
    wait_for_background()
    before = store.request_count()
    assert appends.advance(begin, appends.newest(), Limit(files=1)) == begin
    assert store.request_count() == before + 1


def test_files_of_before_and_after_an_evolution_are_read_alike(lake: ul.Lake):
    """T8: the bounds of each version are in its own types, and a spec is that of its files."""
    prices = lake.create_table("t.prices", "id bigint, price decimal(9, 2)", partition_by=["price"])
    begin = at_version(prices.read_head().revision, 1)
    cents = [Decimal("1.25"), Decimal("-2.50")]
    prices.append(pa.table({"id": [1, 2], "price": cents}))
    with prices.evolve() as evolution:
        evolution.widen_column("price", "decimal(30, 4)")
    prices.append(pa.table({"id": [3, 4], "price": cents}))
    found = appends_of(prices).between(begin, end_of(prices), prices.definition)
    assert found is not None
    predicate = ul.col("price") == Decimal("1.25")
    query = Query(snapshot=found, columns=("id", "price"), stores=prices.stores, predicate=predicate)
    assert query.table().to_pylist() == [{"id": n, "price": Decimal("1.2500")} for n in (1, 3)]


def test_an_upsert_that_only_adds_is_an_append_and_one_that_replaces_is_a_change(lake: ul.Lake):
    table = lake.create_table("shop.keyed", "id bigint not null, part bigint", key=["id"])
    begin = whole_table(table.read_head())
    table.upsert(pa.table({"id": [1, 2], "part": [0, 0]}))
    assert ids(table, begin, end_of(table)) == [1, 2]
    table.upsert(pa.table({"id": [2, 3], "part": [5, 5]}))
    with pytest.raises(Unsupported, match="deleted or changed rows"):
        ids(table, begin, end_of(table))
    assert ids(table, begin, end_of(table), skips_changes=True) == [1, 2]


@pytest.mark.parametrize("verb", ["delete", "overwrite", "truncate"])
def test_what_deletes_rows_is_refused_or_passed_over(table: Table, verb: str):
    append(table, 1, 2, 3)
    begin = whole_table(table.read_head())
    new = pa.table({"id": [9], "part": [0]})
    {"delete": lambda: table.delete("id = 1"), "overwrite": lambda: table.overwrite(new), "truncate": table.truncate}[
        verb
    ]()
    with pytest.raises(Unsupported, match="deleted or changed rows"):
        ids(table, begin, end_of(table))
    assert ids(table, begin, end_of(table), skips_changes=True) == [1, 2, 3]
