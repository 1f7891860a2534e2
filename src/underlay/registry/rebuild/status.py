"""Reports a registry's state, and how far it is behind the store. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from underlay.errors import RegistryRefused
from underlay.index.catalog import Catalog
from underlay.registry.database.database import Database
from underlay.registry.database.migration import check_shape, schema_state
from underlay.registry.database.schema import FOOTER_CACHE, LAKE, NONE, REVISIONS
from underlay.registry.mirror.check_history import find_problem
from underlay.registry.mirror.read_versions import readers
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.registry_protocol import Known
from underlay.table.versions.revision import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionStatus:
    """The active revision of a table: its newest version in the registry (-1 for none) and in the store."""

    table: str
    revision: str
    applied: int
    newest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What was found. `problem` says why the registry is not used; None when it is."""

    url: str
    schema: str | None
    """The version of its tables, None when there are none."""
    newest_schema: str
    lake_id: str | None
    applied_entry: int
    """The newest entry of the catalog in the registry, -1 for none."""
    newest_entry: int
    footer_cache_bytes: int
    tables: tuple[RevisionStatus, ...]
    problem: RegistryRefused | None

    @property
    def behind(self) -> int:
        """How many versions of active revisions, and catalog entries, are not applied yet."""
        versions = sum(max(table.newest - table.applied, 0) for table in self.tables)
        return versions + max(self.newest_entry - self.applied_entry, 0)


def find_status(database: Database, store: Store) -> Status:
    """Find the status. Raises Unavailable or Malformed for a database that cannot be read, Inconsistent for one with
    wrong tables, NotFound without a lake.
    """
    schema = schema_state(database)
    lake = LakeCatalog(store)
    catalog = lake.catalog()
    known, heads, cached = None, dict[str, Known](), 0
    if schema.current == schema.newest:
        check_shape(database)
        with database.read() as connection:
            known = connection.execute(select(LAKE)).one_or_none()
            heads = find_heads(connection)
            size = func.coalesce(func.sum(FOOTER_CACHE.c.end_byte - FOOTER_CACHE.c.first_byte), 0)
            cached = int(connection.execute(select(size)).scalar_one())
    return Status(
        url=database.shown,
        schema=schema.current,
        newest_schema=schema.newest,
        lake_id=known.lake_id if known is not None else None,
        applied_entry=known.number if known is not None else NONE,
        newest_entry=catalog.number,
        footer_cache_bytes=cached,
        tables=_tables(lake, catalog, heads),
        problem=find_problem(database, store) if known is not None else None,
    )


def find_heads(connection: Connection) -> dict[str, Known]:
    """The newest applied version of every revision. One statement."""
    asked = select(REVISIONS.c.revision, REVISIONS.c.head, REVISIONS.c.head_id)
    return {revision: Known(head, head_id or "") for revision, head, head_id in connection.execute(asked)}


def _tables(lake: LakeCatalog, catalog: Catalog, heads: dict[str, Known]) -> tuple[RevisionStatus, ...]:
    """The status of each table. At least one request for each."""

    def look(name: str) -> RevisionStatus:
        record = catalog.tables[name]
        known = heads.get(record.active)
        newest = Revision(lake.store, record.folder, record.active, lake.surroundings).newest_version()
        return RevisionStatus(
            table=name, revision=record.active, applied=known.number if known is not None else NONE, newest=newest
        )

    return tuple(side_by_side(look, sorted(catalog.tables), readers(lake.store)))
