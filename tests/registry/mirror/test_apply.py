"""What is applied is applied once, in order, to the right lake, on both kinds of database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, delete, event, select

from tests.registry.databases import empty_registry
from tests.registry.databases import on_sqlite as on_sqlite
from tests.registry.databases import registry as registry
from tests.registry.servers import PostgresServer
from tests.table.catalog.edits import edit_at_random
from tests.table.entries import append, memory, name, new_lake, new_table, replacing
from underlay.errors import RegistryRefused, Unavailable, UnderlayError
from underlay.index.catalog import WHOLE_FORMAT, Catalog, CatalogEntry, TableRecord, TagRecord, whole_catalog
from underlay.index.outline import outline_of
from underlay.index.root import Root
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.database_errors import is_retryable
from underlay.registry.database.schema import (
    FILE_METADATA,
    GC_MANIFEST,
    LAKE,
    NONE,
    PHYSICAL_TABLES,
    REVISIONS,
    TAGS,
    VERSIONS,
)
from underlay.registry.mirror.apply import PREPARED, apply_batch, apply_steps, live_files, mirrored
from underlay.registry.mirror.apply_catalog import apply_catalog, write_mapping
from underlay.registry.mirror.catch_up import Gap, catch_up, catch_up_revision
from underlay.registry.mirror.fold import Mirrored, VersionStep, fold
from underlay.registry.mirror.read_versions import complete
from underlay.store.testing.counting import CountingStore
from underlay.table.catalog.changes import create_table
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import drop
from underlay.table.commit.commit import commit
from underlay.table.time_travel import rollback
from underlay.table.versions.revision import Revision

FOLDER = "taxi/trips"
URL = "memory://lake"


def step(revision: Revision, root: Root) -> VersionStep:
    return complete(revision.store, revision.keys, outline_of(root))


def test_a_batch_is_applied_once(registry: Database) -> None:
    lake, revision = new_table()
    with registry.write() as connection:
        apply_catalog(connection, lake.catalog(), URL)
    batch = fold(revision.id, Mirrored(), [step(revision, revision.root(0))])
    with registry.write() as connection:
        assert apply_batch(connection, FOLDER, batch)
    with registry.write() as connection:
        assert not apply_batch(connection, FOLDER, batch)
        assert len(connection.execute(select(VERSIONS)).all()) == 1


def test_a_batch_on_another_commit_of_the_same_version_writes_nothing(registry: Database) -> None:
    _, revision = new_table()
    first, second = step(revision, revision.root(0)), step(revision, append(revision, name()))
    with registry.write() as connection:
        apply_batch(connection, FOLDER, fold(revision.id, Mirrored(), [first]))
        other = Mirrored(head=0, head_id="another")
        pretended = VersionStep(outline=replace(second.outline, parent_id="another"), added=second.added)
        assert not apply_batch(connection, FOLDER, fold(revision.id, other, [pretended]))
        assert connection.execute(select(FILE_METADATA)).all() == []


def test_a_revision_is_known_before_the_catalog_names_it(registry: Database) -> None:
    lake, revision = new_table()
    with registry.write() as connection:
        apply_steps(connection, FOLDER, revision.id, [step(revision, revision.root(0))])
        assert connection.execute(select(REVISIONS.c.state, REVISIONS.c.head)).one() == (PREPARED, 0)
        assert apply_catalog(connection, lake.catalog(), URL)
        assert connection.execute(select(REVISIONS.c.state, REVISIONS.c.head)).one() == ("active", 0)


def test_what_is_mirrored_is_read_in_one_statement(registry: Database) -> None:
    _, revision = new_table()
    append(revision, *(name() for _ in range(150)))
    head = append(revision, name())
    assert head.segments
    catch_up_revision(registry, revision.store, FOLDER, revision.id)
    before = registry.statement_count
    with registry.read() as connection:
        found = mirrored(connection, revision.id)
        assert registry.statement_count == before + 1
        assert (found.head, found.head_id, found.file_count) == (2, head.commit_id, 151)
        assert found.segments == {ref.id for ref in head.segments}
        assert len(found.live_files()) == 151


def test_of_an_unknown_revision_nothing_is_mirrored(registry: Database) -> None:
    with registry.read() as connection:
        assert mirrored(connection, "unknown") == Mirrored()
        assert live_files(connection, "unknown") == {}


def test_versions_that_were_applied_are_left_out(registry: Database) -> None:
    _, revision = new_table()
    steps = [step(revision, revision.root(0)), step(revision, append(revision, name()))]
    with registry.write() as connection:
        assert apply_steps(connection, FOLDER, revision.id, steps[:1]) == 0
        assert apply_steps(connection, FOLDER, revision.id, steps) == 1
        assert apply_steps(connection, FOLDER, revision.id, steps) == 1


def test_versions_after_a_gap_wait(registry: Database) -> None:
    _, revision = new_table()
    with registry.write() as connection:
        assert apply_steps(connection, FOLDER, revision.id, [step(revision, append(revision, name()))]) == NONE


def test_another_history_is_refused(registry: Database) -> None:
    _, revision = new_table()
    known = step(revision, revision.root(0))
    other = VersionStep(outline=replace(known.outline, commit_id="another"), added=())
    with registry.write() as connection:
        apply_steps(connection, FOLDER, revision.id, [known])
        with pytest.raises(RegistryRefused, match="another version 0"):
            apply_steps(connection, FOLDER, revision.id, [other])


def test_rows_that_should_be_there_and_are_not_are_missed(registry: Database) -> None:
    _, revision = new_table()
    old = name()
    append(revision, old)
    catch_up_revision(registry, revision.store, FOLDER, revision.id)
    with registry.write() as connection:
        connection.execute(delete(FILE_METADATA))
    commit(replacing(revision, [old], name()))
    with pytest.raises(RegistryRefused, match="lacks rows of file_metadata"):
        catch_up_revision(registry, revision.store, FOLDER, revision.id)


def test_another_follower_cannot_come_between_a_head_and_its_files(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    first, second = empty_registry(url), open_database(url)
    _, revision = new_table()
    append(revision, name())
    catch_up_revision(first, revision.store, FOLDER, revision.id)
    rollback(revision, 0)
    append(revision, name())
    met: list[UnderlayError] = []
    steps = [step(revision, revision.root(version)) for version in (2, 3)]
    with first.write() as connection:

        @event.listens_for(connection, "before_cursor_execute")
        def come_between(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
            if statement.startswith("SELECT file_metadata"):
                try:
                    catch_up_revision(second, revision.store, FOLDER, revision.id)
                except UnderlayError as error:
                    met.append(error)

        assert apply_steps(connection, FOLDER, revision.id, steps) == 3
    assert [is_retryable(error) for error in met] == [True]
    assert catch_up_revision(second, revision.store, FOLDER, revision.id) == 3
    first.close()
    second.close()


def test_a_follower_that_waited_for_another_sees_all_that_it_did(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    first, second = empty_registry(url), open_database(url).patient()
    _, revision = new_table()
    append(revision, *(name() for _ in range(150)))
    catch_up_revision(first, revision.store, FOLDER, revision.id)
    append(revision, *(name() for _ in range(150)))
    rollback(revision, 1)
    steps = [step(revision, revision.root(version)) for version in (2, 3)]

    def follow() -> int:
        with second.write() as connection:
            return apply_steps(connection, FOLDER, revision.id, steps)

    with ThreadPoolExecutor(1) as thread, postgres.connect(url.rpartition("/")[2]) as watching:
        with first.write() as connection:
            apply_steps(connection, FOLDER, revision.id, steps[:1])
            waiting = thread.submit(follow)
            while not watching.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                assert not waiting.done()
        assert waiting.result() == 3
    with first.read() as connection:
        assert mirrored(connection, revision.id).segments == {ref.id for ref in revision.head().segments}
        assert len(live_files(connection, revision.id)) == 150
    first.close()
    second.close()


def test_nothing_new_costs_one_statement_and_one_request(registry: Database) -> None:
    _, revision = new_table()
    catch_up_revision(registry, revision.store, FOLDER, revision.id)
    store, before = CountingStore(revision.store), registry.statement_count
    assert catch_up_revision(registry, store, FOLDER, revision.id) == 0
    assert (store.request_count(), registry.statement_count) == (1, before + 1)


def test_a_known_head_is_read_up_to_and_no_further(on_sqlite: Database) -> None:
    _, revision = new_table()
    for _ in range(9):
        append(revision, name())
    assert catch_up_revision(on_sqlite, revision.store, FOLDER, revision.id, newest=2) == 2
    store = CountingStore(revision.store)
    assert catch_up_revision(on_sqlite, store, FOLDER, revision.id, newest=7) == 7
    assert store.request_count() == 5


def test_versions_that_another_process_applies_meanwhile_are_left_to_it(on_sqlite: Database) -> None:
    _, revision = new_table()
    for _ in range(9):
        append(revision, name())
    gap = Gap(folder=FOLDER, revision=revision.id, head=NONE, newest=9)
    others = iter([[], [0, 1, 2], [3]])

    def transact(work):
        with on_sqlite.write() as connection:
            for version in next(others, []):
                apply_steps(connection, FOLDER, revision.id, [step(revision, revision.root(version))])
        with on_sqlite.write() as connection:
            return work(connection)

    with ThreadPoolExecutor(2) as pool:
        assert [applied for _, applied in catch_up(pool, transact, revision.store, [gap])] == [9]
    with on_sqlite.read() as connection:
        assert mirrored(connection, revision.id).head == 9


def test_a_registry_that_lost_versions_meanwhile_is_tried_again(on_sqlite: Database) -> None:
    _, revision = new_table()
    append(revision, name())
    gap = Gap(folder=FOLDER, revision=revision.id, head=0, newest=1)

    def transact(work):
        with on_sqlite.write() as connection:
            return work(connection)

    with ThreadPoolExecutor(2) as pool, pytest.raises(Unavailable, match="restoring") as caught:
        list(catch_up(pool, transact, revision.store, [gap]))
    assert is_retryable(caught.value)


def catalogs() -> tuple[LakeCatalog, list[Catalog]]:
    lake, _ = new_table()
    return lake, [lake.catalog()]


def whole(catalog: Catalog, tables: dict[str, TableRecord], number: int = 1) -> Catalog:
    """An entry that holds a whole mapping, as older ones do."""
    return whole_catalog(
        CatalogEntry(
            format=WHOLE_FORMAT,
            lake_id=catalog.lake_id,
            number=number,
            commit_id=f"{catalog.commit_id}-{number}",
            parent_id=None,
            committed_us=catalog.committed_us,
            operation="test",
            tables=tables,
        )
    )


def test_an_entry_is_applied_once_and_older_ones_never(registry: Database) -> None:
    lake, found = catalogs()
    drop(lake, "taxi.trips")
    with registry.write() as connection:
        assert apply_catalog(connection, lake.catalog(), URL)
        assert not apply_catalog(connection, lake.catalog(), URL)
        assert not apply_catalog(connection, found[0], URL)
        assert connection.execute(select(LAKE.c.number)).scalar_one() == lake.catalog().number
        assert connection.execute(select(PHYSICAL_TABLES)).all() == []
        assert connection.execute(select(REVISIONS.c.state)).scalar_one() == "dropped"
        assert connection.execute(select(GC_MANIFEST.c.name)).scalar_one() == "taxi.trips"


def test_another_lake_is_refused(registry: Database) -> None:
    _, found = catalogs()
    with registry.write() as connection:
        apply_catalog(connection, found[0], URL)
        with pytest.raises(RegistryRefused, match="another lake"):
            apply_catalog(connection, replace(found[0], lake_id="other", number=99), URL)


@pytest.mark.parametrize("change", [{"commit_id": "other"}, {"number": 2, "parent_id": "other"}])
def test_another_history_of_the_catalog_is_refused(registry: Database, change: dict[str, object]) -> None:
    _, found = catalogs()
    with registry.write() as connection:
        apply_catalog(connection, found[0], URL)
        with pytest.raises(RegistryRefused, match="another entry 1 of the catalog"):
            apply_catalog(connection, replace(found[0], **change), URL)


def test_tables_may_swap_their_names_and_tags_their_versions(registry: Database) -> None:
    _, found = catalogs()
    (table,) = found[0].tables.values()
    tag = TagRecord(revision=table.active, version=0)
    other = replace(table, folder="taxi/other", active="r2", revisions={"r2": table.revisions[table.active]}, tags={})
    before = whole(found[0], {"a.x": replace(table, tags={"t": tag}), "a.y": other})
    after = whole(before, {"a.y": replace(table, tags={"t": replace(tag, version=1)}), "a.x": other}, number=7)
    with registry.write() as connection:
        apply_catalog(connection, before, URL)
        apply_catalog(connection, after, URL)
        named = connection.execute(select(PHYSICAL_TABLES.c.name, PHYSICAL_TABLES.c.folder)).all()
        assert sorted(named) == [("a.x", "taxi/other"), ("a.y", FOLDER)]
        assert connection.execute(select(TAGS.c.version)).scalar_one() == 1


def test_a_revision_that_was_swept_takes_its_rows_with_it(registry: Database) -> None:
    lake, revision = new_table()
    append(revision, name())
    with registry.write() as connection:
        apply_catalog(connection, lake.catalog(), URL)
    catch_up_revision(registry, revision.store, FOLDER, revision.id)
    with registry.write() as connection:
        apply_catalog(connection, whole(lake.catalog(), {}, number=9), URL)
        for table in (REVISIONS, VERSIONS, FILE_METADATA):
            assert connection.execute(select(table)).all() == []


@pytest.mark.parametrize("seed", range(4))
def test_changes_of_the_catalog_make_the_same_rows_as_the_whole_mapping(on_sqlite: Database, seed: int) -> None:
    chance = Random(seed)
    lake = new_lake(memory())
    for _ in range(60):
        edit_at_random(lake, chance)
        if chance.random() < 0.4:
            with on_sqlite.write() as connection:
                apply_catalog(connection, lake.catalog(), URL)
                by_changes = mapping_rows(connection)
                write_mapping(connection, lake.catalog())
                assert mapping_rows(connection) == by_changes


def mapping_rows(connection: Connection) -> list[list[tuple[object, ...]]]:
    asked = [select(table) for table in (PHYSICAL_TABLES, TAGS, GC_MANIFEST)]
    revisions = select(REVISIONS.c.revision, REVISIONS.c.folder, REVISIONS.c.state)
    return [sorted(tuple(row) for row in connection.execute(one)) for one in (*asked, revisions)]


def test_a_change_of_a_large_catalog_reads_the_rows_of_its_folder_only(on_sqlite: Database) -> None:
    lake = new_lake(memory())
    for number in range(300):
        lake.change(create_table(f"d.t{number}", f"d/t{number}", f"r{number}", number))
    with on_sqlite.write() as connection:
        apply_catalog(connection, lake.catalog(), URL)
        lake.change(create_table("d.new", "d/new", "new", 300))
        fetched = []
        event.listen(connection, "before_cursor_execute", lambda *given: fetched.append(given[2]))
        apply_catalog(connection, lake.catalog(), URL)
    reads = [statement for statement in fetched if statement.startswith("SELECT") and " lake" not in statement]
    assert len(reads) == 4
    assert all("folder IN" in statement for statement in reads)
