"""Opens a table of a remote lake with its registry's help: one statement, and one round trip to the store.

What the registry says is only where to begin. The store is asked, in parallel, for the catalog entry and the root that
the registry names and for those after them. If one that it names is missing or different, the registry describes
another history and is refused.
"""

from __future__ import annotations

from underlay.errors import Damaged, RegistryRefused, Unsupported
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.registry_protocol import Known
from underlay.table.versions.revision import Revision


def open_catalog(lake: LakeCatalog) -> None:
    """Start the lake's catalog at the entry that its registry knows, unless the lake already knows one."""
    _begin(lake, None)


def open_revision(lake: LakeCatalog, name: str) -> Revision | None:
    """The active revision of a table, with its newest root; None when the registry does not help. The table may have a
    different active revision by now: the catalog decides."""
    return _begin(lake, name)


def _begin(lake: LakeCatalog, name: str | None) -> Revision | None:
    registry = lake.registry
    if registry is None or not lake.store.is_remote:
        return None  # a request to a local store is cheaper than one to a database
    known = registry.opening(name)
    if known is None:
        return None
    entering = None if lake.is_open else lake.start_at(known.catalog)
    table = known.table
    revision = None
    if table is not None:
        revision = Revision(lake.store, table.folder, table.revision, lake.surroundings)
        starting = revision.start_at(table.head)
    if entering is not None and entering() is None:
        registry.refuse(_refused(lake, "entry", known.catalog))
        return None
    if revision is None or table is None:
        return None
    try:
        newest = starting()
    except (Damaged, Unsupported):
        return None  # it exists; the first read of it says why it is unreadable
    if newest is None:
        registry.refuse(_refused(lake, f"version of {table.folder}", table.head))
        return None
    return revision


def _refused(lake: LakeCatalog, what: str, known: Known) -> RegistryRefused:
    return RegistryRefused(
        f"the registry knows {what} {known.number} ({known.commit_id}), which the store does not have",
        place=lake.store.url,
        hint="It belongs to another lake, or the store was restored from an older backup. Check the lake, then "
        'rebuild the registry from it: "underlay registry restore".',
    )
