"""Creates this release's schema in an empty database, or migrates an older one.

An empty database gets the newest tables in one transaction; Alembic, which takes long to import, is used only for
databases that have tables. Only one process at a time prepares or migrates: on SQLite the transaction ensures this, on
PostgreSQL an advisory lock that ends with it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    func,
    insert,
    inspect,
    select,
    update,
)

from underlay.errors import Inconsistent, RegistryRefused, UnderlayError, Unsupported
from underlay.registry.database.database import UNCOUNTED, Database
from underlay.registry.database.database_errors import RESTORE_HINT, patiently
from underlay.registry.database.engine import Timeouts
from underlay.registry.database.schema import METADATA, SCHEMA_TABLE, are_foreign
from underlay.runtime.locks import ProcessLock

REVISIONS = ("0001", "0002", "0003", "0004")
"""All schema revisions, oldest first. The folder `migrations/versions` has one step for each."""

NEWEST = REVISIONS[-1]

SCHEMA_VERSION = Table(
    SCHEMA_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="registry_schema_pkc"),
)
"""A single row: the revision of the schema."""

_PREPARING = Timeouts(connect_s=2, lock_ms=5_000, statement_ms=10_000, pool_s=0.25)
"""Creating tables takes little time, so waiting for another process that does it pays off."""
_ADVISORY_LOCK = 0x756E6465726C6179
"""The number of the advisory lock: the letters "underlay"."""
_NAMED_TABLES = 5
_SCRIPTS = Path(__file__).parent / "migrations"

_alembic = ProcessLock()
"""Alembic's `op` is shared by the whole process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """The schema of a database (None if it has none), and the schema that this release needs."""

    current: str | None
    newest: str

    @property
    def is_newer(self) -> bool:
        """Whether a newer release created it."""
        return self.current is not None and self.current not in REVISIONS


def prepare(database: Database) -> None:
    """Ensure that the database has this release's tables: one statement when it does.

    An empty database gets them, on PostgreSQL also beside other programs' tables; an older SQLite file is migrated.
    Raises Unsupported for an older PostgreSQL database, which other machines may be using, and for a newer one;
    RegistryRefused for another program's SQLite file, and when another program's table has one of the names.
    """
    if _recorded(database) == NEWEST:
        return
    database.close()  # if somebody emptied the file, no tables can be created while a connection has it open
    with closing(database.waiting(_PREPARING)) as preparing, preparing.write() as connection:
        current = _current(connection, database)
        if current is None:
            _create(connection, database)
        elif current != NEWEST and database.is_shared:
            hint = 'Run "underlay registry migrate" when every machine has this release.'
            raise Unsupported("the registry has an older schema", place=database.shown, **_both(current), hint=hint)
        elif current != NEWEST:
            _upgrade(connection, current)


def migrate(database: Database) -> tuple[str | None, str]:
    """Migrate to this release's schema. Returns the schema before (None for an empty database) and after."""
    with closing(database.patient()) as patient:
        return patiently(lambda: _migrate(patient)), NEWEST


def _migrate(database: Database) -> str | None:
    with database.write() as connection:
        current = _current(connection, database)
        if current is None:
            _create(connection, database)
        elif current != NEWEST:
            _upgrade(connection, current)
        return current


def recreate(database: Database) -> None:
    """Drop what is left of the registry's tables, and create them again, empty, in one transaction.

    Drops them only if a schema is recorded, or all of them exist: else they may belong to another program. Otherwise as
    `prepare`.
    """
    with closing(database.patient()) as patient:
        patiently(lambda: _recreate(patient))


def _recreate(database: Database) -> None:
    with database.write() as connection:
        _current(connection, database)
        names = set(inspect(connection).get_table_names())
        is_own = bool(names) and not are_foreign(names)
        if is_own:
            METADATA.drop_all(connection)
            SCHEMA_VERSION.drop(connection, checkfirst=True)
        _create(connection, database, is_own=is_own)


def check_shape(database: Database) -> None:
    """Raise Inconsistent unless each table exists with its columns and key."""
    with database.read() as connection:
        inspector = inspect(connection)
        names = set(inspector.get_table_names())
        for table in METADATA.sorted_tables:
            if table.name not in names:
                raise Inconsistent(f"the table {table.name} is missing", place=database.shown, hint=RESTORE_HINT)
            columns = [column["name"] for column in inspector.get_columns(table.name)]
            key = inspector.get_pk_constraint(table.name)["constrained_columns"]
            expected = [column.name for column in table.c], [column.name for column in table.primary_key]
            if (columns, key) != expected:
                raise Inconsistent(
                    f"the table {table.name} has the wrong columns or the wrong key",
                    place=database.shown,
                    expected=expected,
                    found=(columns, key),
                    hint=RESTORE_HINT,
                )


def schema_state(database: Database) -> SchemaState:
    """The schema that the database has, and the one that it should have. Changes nothing."""
    return SchemaState(current=_recorded(database), newest=NEWEST)


def _recorded(database: Database) -> str | None:
    """The schema revision in the database, None without one. A single statement, which tolerates a missing table."""
    try:
        with database.read() as connection:
            return connection.scalar(select(SCHEMA_VERSION.c.version_num))
    except Inconsistent:
        return None


def _current(connection: Connection, database: Database) -> str | None:
    """The schema revision in the database, once no other process is changing it. Unsupported if this release is too
    old.
    """
    _wait_for_others(connection)
    if not inspect(connection).has_table(SCHEMA_VERSION.name):
        return None
    current = connection.scalar(select(SCHEMA_VERSION.c.version_num))
    if current is not None and current not in REVISIONS:
        problem = "the registry was made by a newer release"
        raise Unsupported(problem, place=database.shown, **_both(current), hint="Update Underlay.")
    return current


def _wait_for_others(connection: Connection) -> None:
    connection.execution_options(**{UNCOUNTED: True})
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))


def _create(connection: Connection, database: Database, *, is_own: bool = False) -> None:
    """Create the tables. `is_own`: the database is known to be a registry's, whatever else it contains."""
    inspector = inspect(connection)
    names = {*inspector.get_table_names(), *inspector.get_view_names()}
    taken = sorted(names.intersection(METADATA.tables))
    if taken:
        raise _taken(taken, database)
    if not is_own and not database.is_shared and are_foreign(names):
        raise RegistryRefused(
            "the file is a database of another program",
            place=database.shown,
            found=f"tables {', '.join(sorted(names)[:_NAMED_TABLES])}",
            hint="Nothing was changed. Name another file for the registry: --registry sqlite:///PATH, or "
            "UNDERLAY_REGISTRY; in a lake, move the file out of the folder _registry.",
        )
    METADATA.create_all(connection, checkfirst=False)
    SCHEMA_VERSION.create(connection, checkfirst=True)
    connection.execute(insert(SCHEMA_VERSION).values(version_num=NEWEST))


def _taken(names: list[str], database: Database) -> UnderlayError:
    return RegistryRefused(
        "the database has tables of the registry's names, but they are not a registry's",
        place=database.shown,
        found=", ".join(names),
        hint="Use an empty database, or one without tables of these names.",
    )


def _upgrade(connection: Connection, current: str) -> None:
    """Run the steps after `current`. Not by `alembic.command`, which needs an env.py and configures logging."""
    from alembic.migration import MigrationContext  # importing it takes 0.4 s, and it is needed once per release
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    newest_first = ScriptDirectory(str(_SCRIPTS)).iterate_revisions(NEWEST, current)
    with _alembic, Operations.context(MigrationContext.configure(connection)):
        for script in reversed(list(newest_first)):
            script.module.upgrade()
    connection.execute(update(SCHEMA_VERSION).values(version_num=NEWEST))


def _both(current: str) -> dict[str, str]:
    return {"expected": NEWEST, "found": current}
