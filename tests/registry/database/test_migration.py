from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from threading import Barrier

import pytest
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Integer, MetaData, Table, Text, insert, inspect, select, text, update
from sqlalchemy.engine.interfaces import ReflectedIndex

from tests.registry.servers import PostgresServer
from tests.registry.workload import Workload
from underlay.errors import Inconsistent, RegistryRefused, Unsupported
from underlay.registry.database import migration
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.migration import (
    NEWEST,
    REVISIONS,
    SCHEMA_VERSION,
    SchemaState,
    migrate,
    prepare,
    recreate,
    schema_state,
)
from underlay.registry.database.schema import METADATA
from underlay.registry.mirror.catch_up import catch_up_all
from underlay.registry.rebuild.difference import compare
from underlay.registry.rebuild.restore import restore_rows
from underlay.table.catalog.lifecycle import drop

SCRIPTS = Path(migration.__file__).parent / "migrations"


@pytest.fixture
def database(registry_url: str) -> Iterator[Database]:
    database = open_database(registry_url)
    yield database
    database.close()


def upgrade_to(database: Database, revision: str) -> None:
    """Bring an empty database to an older schema, step by step, as an older release would have made it."""
    newest_first = ScriptDirectory(str(SCRIPTS)).iterate_revisions(revision, "base")
    with database.write() as connection, Operations.context(MigrationContext.configure(connection)):
        for script in reversed(list(newest_first)):
            script.module.upgrade()
        SCHEMA_VERSION.create(connection)
        connection.execute(insert(SCHEMA_VERSION).values(version_num=revision))


def a_row(table: Table) -> dict[str, object]:
    """A row with a value in every column."""
    values: dict[type, object] = {int: 1, str: "a", bytes: b"\x00\xff"}
    return {column.name: values[column.type.python_type] for column in table.columns}


def fill(database: Database) -> dict[str, dict[str, object]]:
    """Put a row into every table of the registry that is there."""
    with database.write() as connection:
        names = inspect(connection).get_table_names()
        rows = {table.name: a_row(table) for table in METADATA.sorted_tables if table.name in names}
        for name, row in rows.items():
            connection.execute(insert(METADATA.tables[name]).values(row))
    return rows


def contents(database: Database) -> dict[str, dict[str, object]]:
    with database.read() as connection:
        found = {table.name: connection.execute(select(table)).mappings().all() for table in METADATA.sorted_tables}
    return {name: dict(rows[0]) for name, rows in found.items() if rows}


def where(index: ReflectedIndex) -> list[str]:
    """An index's options as text: reflected clauses compare by identity."""
    return [f"{name}={value}" for name, value in sorted(index.get("dialect_options", {}).items())]


def reflected(database: Database) -> dict[str, object]:
    """All that the database says of its tables, in an order that does not depend on how they were made."""
    with database.read() as connection:
        inspector = inspect(connection)
        return {
            name: {
                "columns": [{**column, "type": str(column["type"])} for column in inspector.get_columns(name)],
                "key": inspector.get_pk_constraint(name),
                "indexes": sorted(
                    str(index | {"dialect_options": where(index)}) for index in inspector.get_indexes(name)
                ),
                "checks": inspector.get_check_constraints(name),
                "comment": inspector.get_table_comment(name) if database.is_shared else None,
            }
            for name in sorted(inspector.get_table_names())
        }


def differences(database: Database) -> list[object]:
    with database.read() as connection:
        options = {"version_table": SCHEMA_VERSION.name, "compare_type": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), METADATA))


def stamp(database: Database, revision: str) -> None:
    with database.write() as connection:
        connection.execute(update(SCHEMA_VERSION).values(version_num=revision))


def test_every_revision_has_its_script_in_order():
    found = [script.revision for script in ScriptDirectory(str(SCRIPTS)).walk_revisions()]
    assert tuple(reversed(found)) == REVISIONS


def test_an_empty_database_gets_every_table(database: Database):
    assert schema_state(database) == SchemaState(current=None, newest=NEWEST)
    prepare(database)
    assert schema_state(database) == SchemaState(current=NEWEST, newest=NEWEST)
    assert contents(database) == {}
    assert fill(database).keys() == METADATA.tables.keys()


def test_a_prepared_database_has_the_schema_that_the_release_declares(database: Database):
    prepare(database)
    assert differences(database) == []


def test_a_migrated_database_has_the_schema_that_the_release_declares(database: Database):
    upgrade_to(database, NEWEST)
    assert differences(database) == []


def test_created_at_once_and_step_by_step_are_the_same(registry_url: str, postgres: PostgresServer, tmp_path: Path):
    created = open_database(registry_url)
    stepped = open_database(postgres.create_database() if created.is_shared else f"sqlite:///{tmp_path / 'b.sqlite'}")
    prepare(created)
    upgrade_to(stepped, NEWEST)
    assert reflected(created) == reflected(stepped)
    assert len(reflected(created)) == len(METADATA.tables) + 1
    created.close()
    stepped.close()


def test_a_difference_of_schemas_is_seen(database: Database):
    prepare(database)
    before = reflected(database)
    with database.write() as connection:
        connection.execute(text("DROP INDEX ix_sources_revision_status"))
    assert differences(database) != []
    assert reflected(database) != before


@pytest.mark.parametrize("revision", REVISIONS)
def test_migration_from_every_revision_keeps_every_row(database: Database, revision: str):
    upgrade_to(database, revision)
    rows = fill(database)
    assert rows
    assert migrate(database) == (revision, NEWEST)
    assert contents(database) == without_lake(rows, revision)
    assert differences(database) == []


def without_lake(rows: dict[str, dict[str, object]], revision: str) -> dict[str, dict[str, object]]:
    """What a migration keeps: a catalog's entry that older tables could not hold in full is applied again."""
    return {name: row for name, row in rows.items() if name != "lake" or revision != "0001"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_after_a_migration_the_registry_says_all_that_the_store_says(database: Database, revision: str):
    workload = Workload(6)
    workload.run(30)
    drop(workload.lake, workload.tables()[0])
    upgrade_to(database, NEWEST)
    restore_rows(database, workload.store)
    with database.write() as connection:
        for later in ("jobs", "leases", "gc_manifest")[: 3 * (revision < "0002")]:
            METADATA.tables[later].drop(connection)
        if revision < "0003":
            METADATA.tables["footer_cache"].drop(connection)
        if revision < "0004":
            METADATA.tables["runs"].drop(connection)
    stamp(database, revision)
    migrate(database)
    catch_up_all(database, workload.store)
    assert compare(database, workload.store) == []


def test_migrating_an_empty_database_creates_it(database: Database):
    assert migrate(database) == (None, NEWEST)
    assert differences(database) == []


def test_a_prepared_database_costs_one_statement(database: Database):
    prepare(database)
    before = database.statement_count, database.transaction_count
    prepare(database)
    assert (database.statement_count - before[0], database.transaction_count - before[1]) == (1, 1)


def test_an_older_file_is_migrated_when_it_is_prepared(tmp_path: Path):
    database = open_database(f"sqlite:///{tmp_path / 'registry.sqlite'}")
    upgrade_to(database, "0001")
    rows = fill(database)
    prepare(database)
    assert schema_state(database).current == NEWEST
    assert contents(database) == without_lake(rows, "0001")


def test_an_older_server_is_left_to_who_runs_it(postgres: PostgresServer):
    database = open_database(postgres.create_database())
    upgrade_to(database, "0002")
    with pytest.raises(Unsupported, match="underlay registry migrate"):
        prepare(database)
    assert schema_state(database).current == "0002"
    migrate(database)
    prepare(database)
    database.close()


def test_a_database_of_a_newer_release_is_refused(database: Database):
    prepare(database)
    stamp(database, "9999")
    for change in (prepare, migrate, recreate):
        with pytest.raises(Unsupported, match="Update Underlay"):
            change(database)
    assert schema_state(database).current == "9999"


def test_tables_of_somebody_else_are_left_alone(database: Database):
    """A server's database may be shared. A file is one program's, and a registry finds another's only by mistake."""
    theirs = Table("orders", MetaData(), Column("id", Integer, primary_key=True))
    alembic = Table("alembic_version", MetaData(), Column("version_num", Text, primary_key=True))
    with database.write() as connection:
        for table, row in ((theirs, {"id": 7}), (alembic, {"version_num": "theirs"})):
            table.create(connection)
            connection.execute(insert(table).values(row))
    for change in (prepare, recreate):
        with nullcontext() if database.is_shared else pytest.raises(RegistryRefused, match="of another program"):
            change(database)
    with database.read() as connection:
        assert connection.scalar(select(theirs.c.id)) == 7
        assert connection.scalar(select(alembic.c.version_num)) == "theirs"
        names = {"alembic_version", "orders"}
        assert (set(inspect(connection).get_table_names()) == names) is not database.is_shared


@pytest.mark.parametrize("change", [prepare, migrate, recreate])
def test_a_table_of_somebody_else_that_is_in_the_way_is_not_touched(database: Database, change):
    theirs = Table("jobs", MetaData(), Column("id", Integer, primary_key=True))
    with database.write() as connection:
        theirs.create(connection)
        connection.execute(insert(theirs).values(id=7))
    with pytest.raises(RegistryRefused, match="found jobs"):
        change(database)
    with database.read() as connection:
        assert connection.scalar(select(theirs.c.id)) == 7
    assert schema_state(database).current is None


def test_tables_that_somebody_dropped_are_made_again(database: Database):
    prepare(database)
    fill(database)
    with database.write() as connection:
        METADATA.tables["versions"].drop(connection)
    with pytest.raises(Inconsistent):
        contents(database)
    recreate(database)
    assert contents(database) == {}
    assert differences(database) == []


def test_a_migration_that_fails_changes_nothing(database: Database):
    upgrade_to(database, "0001")
    rows = fill(database)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE footer_cache (theirs INTEGER)"))
    with pytest.raises(Unsupported, match="already exists"):
        migrate(database)
    assert schema_state(database).current == "0001"
    with database.read() as connection:
        assert not inspect(connection).has_table("jobs")
        assert connection.execute(select(METADATA.tables["versions"])).mappings().all() == [rows["versions"]]


def test_threads_that_prepare_at_once_all_succeed(registry_url: str):
    databases = [open_database(registry_url).patient() for _ in range(4)]
    together = Barrier(len(databases))

    def start(database: Database) -> None:
        together.wait()
        prepare(database)

    with ThreadPoolExecutor(len(databases)) as threads:
        list(threads.map(start, databases))
    assert differences(databases[0]) == []
    for database in databases:
        database.close()


def test_a_file_that_is_emptied_while_a_connection_has_it_open_gets_its_tables_again(tmp_path: Path):
    path = tmp_path / "registry.sqlite"
    database = open_database(f"sqlite:///{path}")
    with database.write():
        pass  # the connection is kept
    path.write_bytes(b"")
    prepare(database)
    assert differences(database) == []
    database.close()


def test_threads_that_migrate_different_databases_do_not_mix_them(tmp_path: Path):
    databases = [open_database(f"sqlite:///{tmp_path / str(number)}.sqlite") for number in range(4)]
    for database in databases:
        upgrade_to(database, "0001")
    with ThreadPoolExecutor(len(databases)) as threads:
        list(threads.map(prepare, databases))
    assert [differences(database) for database in databases] == [[]] * 4


def test_processes_that_prepare_at_once_all_succeed(registry_url: str):
    code = (
        "import sys\n"
        "from underlay.registry.database.database import open_database\n"
        "from underlay.registry.database.migration import prepare\n"
        "database = open_database(sys.argv[1]).patient()\n"
        "print('ready', flush=True)\nsys.stdin.readline()\nprepare(database)"
    )
    command = [sys.executable, "-c", code, registry_url]
    processes = [subprocess.Popen(command, stdin=-1, stdout=-1, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n", timeout=240)
    assert [process.returncode for process in processes] == [0, 0]
    database = open_database(registry_url)
    assert schema_state(database).current == NEWEST
    database.close()


def test_preparing_loads_no_alembic_until_a_migration_has_to_run(tmp_path: Path):
    code = (
        "import sys\n"
        "from underlay.registry.database.database import open_database\n"
        "from underlay.registry.database.migration import prepare\n"
        "prepare(open_database(sys.argv[1]))\nprint('alembic' in sys.modules)"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path / 'registry.sqlite'}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_migrations_run_from_a_copy_of_the_package_and_configure_no_logging(tmp_path: Path):
    package = Path(migration.__file__).parents[2]
    (tmp_path / "50%").mkdir()
    (tmp_path / "50%" / "underlay").symlink_to(package)
    database = open_database(f"sqlite:///{tmp_path / 'registry.sqlite'}")
    upgrade_to(database, "0001")
    code = (
        "import sys, logging\n"
        "from underlay.registry.database import migration\n"
        "from underlay.registry.database.database import open_database\n"
        "print(*migration.migrate(open_database(sys.argv[1])), '50%' in migration.__file__, logging.root.handlers)"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path / 'registry.sqlite'}"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "50%")}
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert run.stdout == f"0001 {NEWEST} True []\n"
