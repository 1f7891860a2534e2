"""Every verb with every fault at each of its requests: it is done or clearly not, and can be done again."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count

import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, copy, ids, memory, quick, rows
from tests.gate import every_third, some
from tests.table.checker import Checker
from underlay.errors import CommitUnknown, NotFound, TableExists, TableNotFound, UnderlayError
from underlay.index.keys import is_own
from underlay.store import Store, open_store
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, at_every_request, on, seeded
from underlay.store.testing.wrapper import StoreMethod

Work = Callable[[underlay.Lake], object]
IsDone = Callable[[underlay.Lake], bool]
FAULTS = [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.OWN_REFUSAL, Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
BEFORE = list(range(6))
NEW = [100, 101, 102]
QUOTED = '"some"."table"'
REGISTERED, FILES = "some.registered", "memory://files-of-faults"


@cache
def template() -> Store:
    """A lake with two versions of rows and a file that waits to be registered."""
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA, key=["id"], sort_by=["id"])
    table.append(rows(BEFORE[:3]))
    table.append(rows(BEFORE[3:]))
    sink = io.BytesIO()
    pq.write_table(rows(NEW), sink)
    store.put("incoming/new.parquet", sink.getvalue())
    return store


@cache
def with_registered() -> Store:
    """The same, and a table of a registered file."""
    store = copy(template())
    files = open_store(FILES)
    files.put("new.parquet", store.get("incoming/new.parquet")[0])
    quick(store).create_table(REGISTERED, SCHEMA).register(f"{FILES}/new.parquet")
    return store


def append(lake: underlay.Lake) -> object:
    return lake.table(NAME).append(rows(NEW), token="once")


def register(lake: underlay.Lake) -> object:
    return lake.table(NAME).register(f"{lake.url}/incoming/new.parquet")


def upsert(lake: underlay.Lake) -> object:
    return lake.table(NAME).upsert(rows([4, *NEW]), token="once")


def overwrite(lake: underlay.Lake) -> object:
    return lake.table(NAME).overwrite(rows([5, *NEW]), "id = 5", token="once")


def delete(lake: underlay.Lake) -> object:
    return lake.table(NAME).delete("id >= 3 and value < 10", token="once")


def delete_keys(lake: underlay.Lake) -> object:
    return lake.table(NAME).delete(rows=rows(BEFORE[3:]), token="once")


def update(lake: underlay.Lake) -> object:
    values = {"id": "id + 100", "name": "'name ' || (id + 100)", "value": "(id + 100) / 2"}
    return lake.table(NAME).update(values, where="id < 3", token="once")


def merge(lake: underlay.Lake) -> object:
    merging = lake.table(NAME).merge(rows([*BEFORE[:3], *NEW]), "target.id = source.id", token="once")
    return merging.when_matched_delete().when_not_matched_insert_all().execute()


def evolve(lake: underlay.Lake) -> object:
    with lake.table(NAME).evolve() as change:
        change.make_required("name")
        change.add_check("few", "id < 100000")
        change.set_partition_by(["bucket(2, id)"])
    return change.result


def unregister(lake: underlay.Lake) -> object:
    return lake.table(REGISTERED).unregister(f"{FILES}/new.parquet")


def import_files(lake: underlay.Lake) -> object:
    return lake.table(REGISTERED).import_files()


def insert_by_query(lake: underlay.Lake) -> object:
    values = "id + 100, 'name ' || (id + 100), (id + 100) / 2"
    where = f"id < 3 and not exists (select 1 from {QUOTED} where id >= 100)"
    return lake.sql(f"insert into {QUOTED} select {values} from {QUOTED} where {where}")


def delete_by_query(lake: underlay.Lake) -> object:
    return lake.sql(f"delete from {QUOTED} where id in (select id from {QUOTED} where id >= 3)")


def create_as(lake: underlay.Lake) -> object:
    return lake.sql(f'create table another."table" as select * from {QUOTED}')


def replace_as(lake: underlay.Lake) -> object:
    return lake.sql(f"create or replace table {QUOTED} as select * from {QUOTED} where id < 3")


def truncate(lake: underlay.Lake) -> object:
    return lake.table(NAME).truncate(token="once")


def rollback(lake: underlay.Lake) -> object:
    return lake.table(NAME).rollback(1)


def tag(lake: underlay.Lake) -> object:
    return lake.table(NAME).tag("audit", 1)


def comment(lake: underlay.Lake) -> object:
    return lake.table(NAME).comment("hello", "name")


def rename(lake: underlay.Lake) -> object:
    return lake.rename_table(NAME, "some.other")


def drop(lake: underlay.Lake) -> object:
    return lake.drop_table(NAME)


def create(lake: underlay.Lake) -> object:
    return lake.create_table("another.table", SCHEMA)


def has_new_rows(lake: underlay.Lake) -> bool:
    found = ids(lake.table(NAME))
    assert found in (BEFORE, BEFORE + NEW), "neither all nor none of the rows"
    return found != BEFORE


def is_replaced(lake: underlay.Lake) -> bool:
    found = ids(lake.table(NAME))
    assert found in (BEFORE, BEFORE[3:] + NEW), "neither all nor none of the rows"
    return found != BEFORE


def is_evolved(lake: underlay.Lake) -> bool:
    definition = lake.table(NAME).definition
    parts = {definition.schema.fields[1].required, bool(definition.checks), bool(definition.partition_by)}
    assert len(parts) == 1, "neither all nor none of the changes"
    return parts == {True}


def is_created(lake: underlay.Lake) -> bool:
    is_there = "another.table" in names(lake)
    assert not is_there or ids(lake.table("another.table")) == BEFORE
    return is_there


def is_rolled_back(lake: underlay.Lake) -> bool:
    found = ids(lake.table(NAME))
    assert found in (BEFORE, BEFORE[:3])
    return found != BEFORE


def names(lake: underlay.Lake) -> list[str]:
    """The tables that can be opened; a drop that was cut short is ended by opening the table."""
    for table in lake.tables():
        with suppress(TableNotFound):
            lake.table(table.name)
    return [table.name for table in lake.tables()]


OPERATIONS: list[tuple[Work, IsDone]] = [
    (append, has_new_rows),
    (register, has_new_rows),
    (upsert, has_new_rows),
    (overwrite, has_new_rows),
    (delete, is_rolled_back),
    (delete_keys, is_rolled_back),
    (update, is_replaced),
    (merge, is_replaced),
    (evolve, is_evolved),
    (unregister, lambda lake: not ids(lake.table(REGISTERED))),
    (import_files, lambda lake: all(is_own(file.location) for file in lake.table(REGISTERED).snapshot().files())),
    (insert_by_query, has_new_rows),
    (delete_by_query, is_rolled_back),
    (create_as, is_created),
    (replace_as, is_rolled_back),
    (truncate, lambda lake: not ids(lake.table(NAME))),
    (rollback, is_rolled_back),
    (tag, lambda lake: lake.table(NAME).tags == {"audit": 1}),
    (comment, lambda lake: lake.table(NAME).definition.schema.fields[1].comment == "hello"),
    (rename, lambda lake: names(lake) == ["some.other"]),
    (drop, lambda lake: not names(lake)),
    (create, lambda lake: "another.table" in names(lake)),
]


def attempt(work: Work, store: Store) -> BaseException | None:
    """What ended the work early."""
    try:
        work(quick(store))
    except (UnderlayError, Crashed) as error:
        return error
    return None


def failing(make_store: Callable[[], Store], fault: Fault) -> Iterator[FaultyStore]:
    """A store for each request that the fault may hit; an own refusal differs from a lost response for creates only."""
    if fault is not Fault.OWN_REFUSAL:
        yield from at_every_request(make_store, [fault], **every_third())
        return
    for number in count(*every_third().values()):
        store = FaultyStore(make_store(), on(StoreMethod.CREATE, fault, skip=number))
        yield store
        if store.fault_count == 0:
            break


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize(("work", "is_done"), OPERATIONS, ids=lambda given: getattr(given, "__name__", ""))
def test_a_verb_is_done_or_clearly_not_and_can_be_done_again(work: Work, is_done: IsDone, fault: Fault):
    begun = with_registered if work in (unregister, import_files) else template
    for store in failing(lambda: copy(begun()), fault):
        outcome = attempt(work, store)
        is_found = is_done(quick(store.inner))
        if outcome is None:
            assert is_found, "acknowledged and not there"
        elif isinstance(outcome, UnderlayError) and not isinstance(outcome, CommitUnknown):
            assert not is_found, f"there in spite of {outcome!r}"
        again = attempt(work, store.inner)
        assert again is None or is_found, f"{again!r}"
        if again is not None and not isinstance(again, TableExists | NotFound):
            assert re.search("already|of this name", str(again))
        lake = quick(store.inner)
        assert is_done(lake)
        for name in names(lake):
            before = ids(lake.table(name))
            lake.table(name).append(rows([7_000]))
            assert ids(lake.table(name)) == sorted([*before, 7_000])
        Checker(store.inner).check()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_first_table_is_made_or_can_be_made_whatever_fails(fault: Fault):
    for store in failing(memory, fault):
        outcome = attempt(lambda lake: lake.create_table(NAME, SCHEMA).append(rows(NEW), token="once"), store)
        lake = quick(store.inner)
        if outcome is None:
            assert ids(lake.table(NAME)) == NEW
        if NAME not in names(lake):
            lake.create_table(NAME, SCHEMA)
        lake.table(NAME).append(rows(NEW), token="once")
        assert ids(lake.table(NAME)) == NEW
        Checker(store.inner).check()


@pytest.mark.parametrize("is_early", [True, False], ids=["before the second try", "after it"])
def test_a_commit_that_lands_late_adds_its_rows_once(is_early: bool):
    store = FaultyStore(copy(template()), on(StoreMethod.CREATE, Fault.LATE, key=".root", times=1_000))
    outcome = attempt(append, store)
    assert isinstance(outcome, CommitUnknown)
    assert outcome.commit_id is not None
    assert outcome.commit_id in str(outcome)
    if is_early:
        store.release()
    again = quick(store.inner).table(NAME).append(rows(NEW), token="once")
    store.release()
    assert again.is_repeat == is_early
    table = quick(store.inner).table(NAME)
    assert ids(table) == BEFORE + NEW
    assert (outcome.commit_id in [version.commit_id for version in table.history()]) == is_early
    Checker(store.inner).check()


@pytest.mark.parametrize("seed", some(range(12), 3))
def test_appends_that_are_tried_until_they_succeed_add_their_rows_once(seed: int):
    """One request in twenty goes wrong, and some writes land long after they were given up."""
    store = FaultyStore(copy(template()), seeded(seed, 1 / 20, [*FAULTS[:3], Fault.LATE]))
    for number in range(6):
        for tries in count():
            assert tries < 200
            if attempt(lambda lake, number=number: tell(lake, number), store) is None:
                break
            if tries % 3 == 2:
                store.release()
    store.release()
    assert ids(quick(store.inner).table(NAME)) == [*BEFORE, *range(100, 106)]
    Checker(store.inner).check()


def tell(lake: underlay.Lake, number: int) -> None:
    """Append a row, and see that it is there."""
    table = lake.table(NAME)
    table.append(rows([100 + number]), token=f"row {number}")
    assert 100 + number in ids(table)
