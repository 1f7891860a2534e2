"""Opening a table of a remote lake with the help of its registry: one statement, and one round trip to the store.

What the registry says is a place to begin. The store is asked, all side by side, for the catalog's entry and the root
that it names and for those after them; when one that it names is not there, or is another one, the registry tells of
another history and is refused.
"""

from __future__ import annotations

from underlay.errors import Damaged, RegistryRefused, Unsupported
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.registry_protocol import Known
from underlay.table.versions.revision import Revision


def open_catalog(lake: LakeCatalog) -> None:
    """Have the lake begin with the entry of the catalog that its registry knows, if it knows nothing itself."""
    _begin(lake, None)


def open_revision(lake: LakeCatalog, name: str) -> Revision | None:
    """The active revision of a table, with its newest root; None when the registry does not help. The table may have
    got another active revision since: the catalog has the last word."""
    return _begin(lake, name)


def _begin(lake: LakeCatalog, name: str | None) -> Revision | None:
    registry = lake.registry
    if registry is None or not lake.store.is_remote:
        return None  # a request to a local store costs less than one to a database
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
        return None  # it is there; the first read of it says why it is unreadable
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
