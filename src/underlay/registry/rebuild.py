"""A registry made new from the store, whatever became of the old one."""

from __future__ import annotations

from underlay.errors import Inconsistent, Malformed, RegistryRefused
from underlay.registry.database import Database
from underlay.registry.migration import migrate, prepare, recreate, schema_state
from underlay.registry.restore import OnProgress, Restored, restore
from underlay.store.store import Store


def rebuild_registry(database: Database, store: Store, progress: OnProgress | None = None) -> Restored:
    """Restore the registry; a damaged SQLite file is replaced first, an older schema migrated."""
    try:
        _make_ready(database)
        return restore(database, store, progress=progress)
    except (Malformed, Inconsistent) as error:
        is_of_registry = error.place == database.shown and not isinstance(error, RegistryRefused)
        if not is_of_registry:
            raise
        _start_over(database)
    return restore(database, store, progress=progress)


def _make_ready(database: Database) -> None:
    state = schema_state(database)
    if state.current is not None and state.current != state.newest:
        migrate(database)
    prepare(database)


def _start_over(database: Database) -> None:
    """Tables as this release makes them, without a row."""
    if database.is_shared:
        recreate(database)
    else:
        database.delete_file()
        prepare(database)
