"""What a lake has and should have, found without any code of the sweep: roots as JSON, snapshots, and a listing."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from underlay.index.keys import RevisionKeys
from underlay.index.root import decode_root
from underlay.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.versions.snapshot import Snapshot

_OURS = re.compile(
    r"\d{9}-[0-9a-f]{16}\.parquet|_pm/\d{9}-[0-9a-f]{16}|_index/(?:segments|sources)/[0-9a-f-]{36}\.arrow|_staging/.+"
)


class Audit(NamedTuple):
    """Keys that are wrong."""

    missing: set[str]
    orphans: set[str]


def audit(store: Store) -> Audit:
    """Every object that a root names is there, and every object of ours is named by a root."""
    keys = {found.key for found in store.list_objects()}
    needed: set[str] = set()
    revisions = []
    for record in LakeCatalog(store).catalog().tables.values():
        revisions += [RevisionKeys.of(record.folder, revision) for revision in record.revisions]
    for revision in revisions:
        for key in [key for key in keys if key.startswith(f"{revision.folder}/_index/") and key.endswith(".root")]:
            data = store.get(key)[0]
            if not json.loads(bytes(data)).get("is_tombstone"):
                needed |= _named(store, revision, Snapshot(store, revision, decode_root(data)))
    orphans = set()
    for key in keys - needed:
        parts = key.split("/", 3)
        if len(parts) == 4 and re.fullmatch(r"[0-9a-f-]{36}", parts[2]) and _OURS.fullmatch(parts[3]):
            orphans.add(key)
    return Audit(needed - keys, orphans)


def _named(store: Store, keys: RevisionKeys, snapshot: Snapshot) -> set[str]:
    found = {keys.segment(ref.id) for ref in snapshot.root.segments}
    for file in snapshot.files():
        key = keys.file(file.location)
        if key is not None:
            found.add(key)
        if "/" not in file.location and file.sidecar_bytes:
            found.add(keys.sidecar(file.location))
    fetched: set[str] = set()

    def fetch(pages):
        fetched.update(page.id for page in pages)
        return snapshot.fetch_pages(pages)

    from underlay.index.sources.tree import scan_all  # reads every page

    list(scan_all(snapshot.root.sources, fetch))
    return found | {keys.source_page(page) for page in fetched}
