"""Which objects of a table's exports nobody needs any longer. Exports that were replaced stay for a while: a reader
that opened one may still be reading.

The newest export is kept, and so are those that were replaced within `keep`. What these consist of are the objects that
the oldest and the newest of them name, and all younger ones: an export takes over objects only from the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from underlay.errors import Malformed, NotFound
from underlay.interop.iceberg.folder import ListedExport, WarehouseFolder, is_ours, manifest_list_of
from underlay.interop.iceberg.objects.avro import Record, decode_records
from underlay.store.store import StoredObject

_DELETES = 1
_LONGEST_EXPORT = timedelta(hours=1)
"""Objects that are put before the manifest list that names them are younger than this when it is put."""


def held_versions(folder: WarehouseFolder, revision: str, now: datetime, reader_age: timedelta) -> dict[str, int]:
    """Versions that must not expire, by the name of their export: of the newest one, of those that were replaced less
    than the reader age ago, and of one that is being written. One listing."""
    every = folder.exports()
    kept = {one.number for one in _kept(every, now, reader_age)}
    writing = {one.number for one in every if not one.is_whole and now - one.put_at <= reader_age}
    return {
        f"{folder.folder}/v{one.number}": one.version
        for one in every
        if one.number in kept | writing and one.revision == revision
    }


def find_stale(folder: WarehouseFolder, now: datetime, keep: timedelta) -> Iterator[StoredObject]:
    """Objects to delete: whatever exports that were replaced longer than `keep` ago needed and no later one does."""
    every = folder.exports()
    kept = _kept(every, now, keep)
    if not kept:
        return
    needed = {"version-hint.text"}
    for number in {kept[0].number, kept[-1].number}:
        found = _objects_of(folder, number)
        if found is None:
            return  # an export that cannot be read may need anything
        needed |= found
    oldest = now - keep - _LONGEST_EXPORT
    gone = {f"v{one.number}.metadata.json" for one in every if one.is_whole and one.number < kept[0].number}
    lists = {one.number for one in kept}
    for one in folder.store.list_objects(f"{folder.folder}/metadata"):
        name = one.key.rpartition("/")[2]
        is_list = name.startswith("snap-") and int(name.split("-")[1]) in lists
        if name in gone or (is_ours(name) and not is_list and name not in needed and one.modified < oldest):
            yield one


def find_left(folder: WarehouseFolder, before: datetime) -> Iterator[StoredObject]:
    """Objects of the exports of a table that no longer exists."""
    for one in folder.store.list_objects(f"{folder.folder}/metadata"):
        name = one.key.rpartition("/")[2]
        is_metadata = name == "version-hint.text" or (name.startswith("v") and name.endswith(".metadata.json"))
        if (is_metadata or is_ours(name)) and one.modified < before:
            yield one


def _kept(every: Sequence[ListedExport], now: datetime, keep: timedelta) -> list[ListedExport]:
    whole = [one for one in every if one.is_whole]
    return [*(one for one, after in pairwise(whole) if now - after.put_at <= keep), *whole[-1:]]


def _objects_of(folder: WarehouseFolder, number: int) -> set[str] | None:
    """The names of what an export consists of; None if that cannot be read."""
    metadata = folder.read(number)
    url = None if not isinstance(metadata, dict) else manifest_list_of(metadata)
    if url is None:
        return None
    names = {_name(url)}
    try:
        for manifest in _records(folder, url):
            names.add(_name(manifest["manifest_path"]))
            if manifest["content"] == _DELETES:
                names |= {_name(one["data_file"]["file_path"]) for one in _records(folder, manifest["manifest_path"])}
    except (NotFound, Malformed):
        return None
    return names


def _records(folder: WarehouseFolder, url: str) -> list[Record]:
    key = folder.key(_name(url))
    return decode_records(folder.store.get(key)[0], folder.store.place_of(key))


def _name(url: object) -> str:
    return str(url).rpartition("/")[2]
