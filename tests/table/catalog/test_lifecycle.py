from __future__ import annotations

import pytest

from tests.table.checker import Checker
from tests.table.entries import DEFINITION, append, appending, memory, new_lake, new_table, surroundings
from underlay.errors import CommitConflict, InvalidRequest, NotFound, RevisionClosed, TableExists, TableNotFound
from underlay.index.catalog import split_name
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, on
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.catalog.changes import rename_table, tag_version, untag_version
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import activate, create, drop, finish, open_active, prepare_successor
from underlay.table.commit.commit import commit
from underlay.table.open_table import OpenTable
from underlay.table.versions.revision import Revision


def tables(lake: LakeCatalog) -> list[str]:
    return sorted(lake.catalog().tables)


def test_a_lake_is_made_once():
    store = memory()
    first = new_lake(store).catalog()
    assert new_lake(store).catalog() == first


def test_a_folder_without_a_lake_is_not_one():
    with pytest.raises(NotFound, match="no lake"):
        LakeCatalog(memory(), surroundings()).catalog()


@pytest.mark.parametrize(
    "name", ["trips", "a.b.c", "_a.b", "a._b", "a.", ".b", "a/b.c", "a b.c", "é.b", "a." + "b" * 99, "a.b\n"]
)
def test_names_that_no_table_may_have(name: str):
    with pytest.raises(InvalidRequest, match="not a name"):
        split_name(name)


def test_a_created_table_is_seen_by_others():
    lake, revision = new_table()
    other = LakeCatalog(lake.store, surroundings())
    assert open_active(other, "taxi.trips").id == revision.id
    with pytest.raises(TableNotFound, match=r"There is taxi\.trips"):
        open_active(other, "Taxi.Trips")


def test_names_that_differ_in_case_only_are_the_same():
    lake, _ = new_table()
    for name in ("taxi.trips", "Taxi.TRIPS"):
        with pytest.raises(TableExists, match=r"taxi\.trips"):
            create(lake, name, DEFINITION)


def test_of_two_who_create_a_table_one_wins():
    store = memory()
    first, second = new_lake(store), new_lake(store)
    second.catalog()

    class Interrupted(LakeCatalog):
        def change(self, *args: object, **kwargs: object) -> object:
            create(first, "taxi.trips", DEFINITION)
            return super().change(*args, **kwargs)  # type: ignore[arg-type]  # passed through

    late = Interrupted(store, surroundings())
    with pytest.raises(TableExists):
        create(late, "taxi.trips", DEFINITION)
    assert tables(second) == ["taxi.trips"]


def test_changes_of_the_catalog_that_race_all_happen():
    store = memory()
    first, second = new_lake(store), new_lake(store)
    first.catalog()
    create(second, "a.one", DEFINITION)
    create(first, "a.two", DEFINITION)
    create(second, "a.three", DEFINITION)
    assert tables(first) == tables(second) == ["a.one", "a.three", "a.two"]
    Checker(store).check()


def test_a_rename_keeps_the_folder_and_a_new_table_gets_another():
    lake, revision = new_table()
    append(revision, "a")
    lake.change(rename_table("taxi.trips", "taxi.rides"))
    assert open_active(lake, "taxi.rides").head().row_count == 100
    fresh = create(lake, "taxi.trips", DEFINITION)
    assert fresh.keys.folder.startswith("taxi/trips-")
    with pytest.raises(TableExists):
        lake.change(rename_table("taxi.rides", "taxi.Trips"))
    lake.change(rename_table("taxi.rides", "taxi.Rides"))
    with pytest.raises(TableNotFound):
        lake.change(rename_table("taxi.nothing", "taxi.x"))
    Checker(lake.store).check()


def test_a_dropped_table_is_gone_and_its_folder_stays_taken():
    lake, revision = new_table()
    append(revision, "a")
    drop(lake, "taxi.trips")
    assert tables(lake) == []
    with pytest.raises(RevisionClosed, match="dropped") as raised:
        append(revision, "b")
    assert raised.value.successor is None
    assert create(lake, "taxi.trips", DEFINITION).keys.folder != revision.keys.folder
    Checker(lake.store).check()


def test_another_revision_takes_over():
    lake, old = new_table()
    base = append(old, "a")
    new = prepare_successor(lake, "taxi.trips", DEFINITION)
    append(new, "b")
    waiting = appending(old, "c")
    activate(lake, "taxi.trips", old, base, new)
    assert open_active(lake, "taxi.trips").id == new.id
    with pytest.raises(RevisionClosed) as raised:
        commit(waiting)
    assert raised.value.successor == new.id
    Checker(lake.store).check()


def test_a_revision_that_changed_since_is_not_replaced():
    lake, old = new_table()
    base = append(old, "a")
    new = prepare_successor(lake, "taxi.trips", DEFINITION)
    append(old, "b")
    with pytest.raises(CommitConflict, match=r"whole|may be among"):
        activate(lake, "taxi.trips", old, base, new)
    assert open_active(lake, "taxi.trips").id == old.id


@pytest.mark.parametrize("is_renamed", [False, True])
def test_whoever_finds_a_closed_revision_writes_the_catalog_entry(is_renamed: bool):
    lake, old = new_table()
    new = prepare_successor(lake, "taxi.trips", DEFINITION)
    dying = LakeCatalog(
        FaultyStore(lake.store, on(StoreMethod.CREATE, Fault.CRASH_BEFORE, key="_catalog")), surroundings()
    )
    doomed = Revision(dying.store, "taxi/trips", old.id, dying.surroundings)
    with pytest.raises(Crashed):
        activate(dying, "taxi.trips", doomed, old.head(), new)
    assert lake.catalog().tables["taxi.trips"].active == old.id
    name = "taxi.trips"
    if is_renamed:
        name = "taxi.rides"
        lake.change(rename_table("taxi.trips", name))
    assert open_active(lake, name).id == new.id
    terminal = old.head().terminal
    assert terminal is not None
    assert lake.catalog().commit_id == terminal.commit_id
    assert open_active(LakeCatalog(lake.store, surroundings()), name).id == new.id
    assert lake.catalog().commit_id == terminal.commit_id
    Checker(lake.store).check()


def test_two_who_end_the_same_drop_write_one_entry():
    lake, old = new_table()
    dying = LakeCatalog(
        FaultyStore(lake.store, on(StoreMethod.CREATE, Fault.CRASH_BEFORE, key="_catalog")), surroundings()
    )
    with pytest.raises(Crashed):
        drop(dying, "taxi.trips")
    helper = LakeCatalog(lake.store, surroundings())
    helper.catalog()
    number = lake.catalog().number
    for each in (lake, helper):
        with pytest.raises(TableNotFound):
            open_active(each, "taxi.trips")
    assert helper.catalog().number == number + 1
    assert old.head().terminal is not None
    Checker(lake.store).check()


def test_an_end_that_is_written_already_is_not_written_again():
    lake, old = new_table()
    drop(lake, "taxi.trips")
    number = lake.catalog().number
    finish(LakeCatalog(lake.store, surroundings()), old, old.head())
    assert lake.catalog().number == number


def test_an_open_table_follows_its_active_revision():
    lake, old = new_table()
    table = OpenTable(lake, "taxi.trips")
    assert table.head().revision.id == old.id
    other = LakeCatalog(lake.store, surroundings())
    new = prepare_successor(other, "taxi.trips", DEFINITION)
    activate(other, "taxi.trips", old, old.head(), new)
    assert table.head().revision.id == new.id
    drop(other, "taxi.trips")
    with pytest.raises(TableNotFound):
        table.head()


def test_tags():
    lake, revision = new_table()
    lake.change(tag_version("taxi.trips", "audit", revision.id, 0))
    assert lake.catalog().tables["taxi.trips"].tags["audit"].version == 0
    lake.change(untag_version("taxi.trips", "audit"))
    with pytest.raises(NotFound, match="no tag"):
        lake.change(untag_version("taxi.trips", "audit"))
    with pytest.raises(InvalidRequest, match="not a name for a tag"):
        tag_version("taxi.trips", "a b", revision.id, 0)
