"""A registry made new from the store, whatever became of the old one."""

from __future__ import annotations

from collections.abc import Callable

from underlay.errors import Inconsistent, Malformed, RegistryRefused, UnderlayError, Unsupported
from underlay.registry.database.database import Database
from underlay.registry.database.migration import check_shape, migrate, prepare, recreate, schema_state
from underlay.registry.rebuild.restore import OnProgress, Restored, restore
from underlay.store.store import Store


def rebuild_registry(database: Database, store: Store, progress: OnProgress | None = None) -> Restored:
    """Restore the registry. An older schema is migrated first, tables that are not as they should be are made anew, and
    a SQLite file that is damaged, or cannot be mended otherwise, is replaced.

    Raises RegistryRefused when tables of somebody else are in the way, Unsupported for one of a newer release.
    """
    ways: list[Callable[[Database], None]] = [_make_ready, recreate]
    if not database.is_shared:
        ways.append(_replace_file)
    while True:
        make_ready = ways.pop(0)
        try:
            make_ready(database)
            return restore(database, store, progress=progress)
        except (Malformed, Inconsistent, Unsupported) as error:
            if not ways or not _is_damage(error, database):
                raise
            if isinstance(error, Malformed):
                del ways[:-1]


def _is_damage(error: UnderlayError, database: Database) -> bool:
    """Whether the database, and not the store or the release, is at fault."""
    if error.place != database.shown or isinstance(error, RegistryRefused):
        return False
    return not isinstance(error, Unsupported) or not schema_state(database).is_newer


def _make_ready(database: Database) -> None:
    state = schema_state(database)
    if state.current is None:
        recreate(database)  # a registry's tables may be there, and only its schema be lost
    elif state.current != state.newest:
        migrate(database)
    check_shape(database)


def _replace_file(database: Database) -> None:
    database.delete_file()
    prepare(database)
