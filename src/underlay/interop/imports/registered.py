"""The registered files of a version, from a segment's lists alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from underlay.index.keys import is_own, plain_location
from underlay.table.versions.snapshot import Snapshot


class ImportedFile(NamedTuple):
    """A registered file as a version has it. `location` is its name in the index."""

    location: str
    size_bytes: int
    etag: str | None
    deletes: bytes | None


def registered_files(snapshot: Snapshot) -> dict[str, ImportedFile]:
    """All registered files, by the location of their first registration. Reads the lists of all segments."""
    return {plain_location(one.location): one for one in _registered(snapshot)}


def _registered(snapshot: Snapshot) -> Iterator[ImportedFile]:
    gone, changed = set(snapshot.root.removed), snapshot.root.deletes
    for segment in (*snapshot.segments, snapshot.tail):
        files = segment.files
        sizes, etags, deletes = files.size_bytes.tolist(), files.etags.to_pylist(), files.deletes.to_pylist()
        for name, size, etag, bits in zip(files.locations.to_pylist(), sizes, etags, deletes, strict=True):
            if name is not None and not is_own(name) and name not in gone:
                yield ImportedFile(name, size, etag, changed.get(name, bits))
