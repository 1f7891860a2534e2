"""The folder of a table's exports to Iceberg: which is the newest, and what may be deleted.

    <dataset>/<table>/metadata/
        m-<segment>-<crc>-<token>.avro              a manifest of a segment; kept by the exports that follow
        t-<token>.avro, x-<crc>-<token>.avro        manifests of the tail, and of deletions
        d-<crc>-<token>.parquet, p-<token>.puffin   deleted rows
        snap-<number>-<version>-<revision>.avro     the manifest list of an export
        v<number>.metadata.json                     the export: put only if absent, so exporters that race take turns
        version-hint.text                           a lower bound of the newest number

Numbers grow by one with each export, whatever the version, since versions begin again in another revision.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from underlay.errors import Malformed, NotFound
from underlay.interop.iceberg.columns.types import Json
from underlay.store.store import Outcome, Store

NONE = 0
"""The number before the first export."""
_HINT = "version-hint.text"
_METADATA = re.compile(r"v([0-9]{1,18})\.metadata\.json")
_LIST = re.compile(r"snap-([0-9]{1,18})-([0-9]{1,18})-([0-9a-f-]{36})-[0-9a-f]+\.avro")
_OURS = re.compile(r"(m|t|x)-[0-9a-f-]+\.avro|d-[0-9a-f-]+\.parquet|p-[0-9a-f-]+\.puffin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedExport:
    """An export as a listing shows it."""

    number: int
    version: int
    revision: str
    is_whole: bool
    """Whether its metadata was put: readers can find it."""
    put_at: datetime
    """When its manifest list was, by the store's clock."""


class WarehouseFolder:
    """The folder `folder` of a table, in the store of a warehouse."""

    def __init__(self, store: Store, folder: str) -> None:
        self.store = store
        self.folder = folder

    def key(self, name: str) -> str:
        """The key of one of its objects."""
        return f"{self.folder}/metadata/{name}"

    def metadata_key(self, number: int) -> str:
        """The metadata of an export."""
        return self.key(f"v{number}.metadata.json")

    def list_name(self, number: int, version: int, revision: str, token: str) -> str:
        """The manifest list of an export."""
        return f"snap-{number}-{version}-{revision}-{token}.avro"

    def newest(self) -> int:
        """The number of the newest export, `NONE` without one. Two requests, if the hint is right."""
        number = self.hinted()
        if number == NONE or self.store.head(self.metadata_key(number)) is None:
            return max((one.number for one in self.exports() if one.is_whole), default=NONE)
        while self.store.head(self.metadata_key(number + 1)) is not None:
            number += 1
        return number

    def hinted(self) -> int:
        """The number in the hint; `NONE` without one."""
        try:
            text = bytes(self.store.get(self.key(_HINT))[0])
        except NotFound:
            return NONE
        return int(text) if text.isdigit() and len(text) < 19 else NONE

    def read(self, number: int) -> Json | None:
        """The metadata of an export; None if it is not JSON or not there, as when someone deletes the folder."""
        try:
            return json.loads(bytes(self.store.get(self.metadata_key(number))[0]))
        except (NotFound, ValueError):
            return None

    def publish(self, number: int, data: bytes) -> bool:
        """Put the metadata of an export unless another one has this number; whether it is there now. R1 in small: after
        an unclear answer the object itself says whose it is."""
        key = self.metadata_key(number)
        if self.store.create(key, data) is not Outcome.DONE:
            try:
                if bytes(self.store.get(key)[0]) != data:
                    return False
            except NotFound:
                return False
        self.store.put(self.key(_HINT), str(number).encode())
        return True

    def mend_hint(self, number: int, *, is_moved: bool = False) -> int:
        """Move the hint on, if others exported since: one that was slower may have put an older number. One request
        when nobody did. `is_moved` puts the hint in any case."""
        newest = number
        while self.store.head(self.metadata_key(newest + 1)) is not None:
            newest += 1
        if newest != number or is_moved:
            self.store.put(self.key(_HINT), str(newest).encode())
        return newest

    def exports(self) -> list[ListedExport]:
        """All exports, by number. One listing, of nothing but manifest lists and metadata."""
        whole: dict[int, datetime] = {}
        lists: dict[int, ListedExport] = {}
        for found in self.store.list_objects(f"{self.folder}/metadata", after=self.key("s")):
            name = found.key.rpartition("/")[2]
            if (match := _METADATA.fullmatch(name)) is not None:
                whole[int(match[1])] = found.modified
            elif (match := _LIST.fullmatch(name)) is not None:
                lists[int(match[1])] = ListedExport(
                    number=int(match[1]),
                    version=int(match[2]),
                    revision=match[3],
                    is_whole=False,
                    put_at=found.modified,
                )
        every = {
            number: ListedExport(number=number, version=-1, revision="", is_whole=True, put_at=put_at)
            for number, put_at in whole.items()
        }
        for number, one in lists.items():
            every[number] = ListedExport(
                number=number, version=one.version, revision=one.revision, is_whole=number in whole, put_at=one.put_at
            )
        return [every[number] for number in sorted(every)]


def list_tables(store: Store, root: str) -> Iterator[str]:
    """The folders of all tables in a warehouse."""
    for dataset in store.list_folders(root):
        yield from store.list_folders(dataset)


def manifest_list_of(metadata: Json) -> str | None:
    """The URL of the manifest list that the current snapshot names."""
    for snapshot in metadata.get("snapshots", []):
        if snapshot.get("snapshot-id") == metadata.get("current-snapshot-id"):
            return str(snapshot.get("manifest-list"))
    return None


def properties_of(metadata: Json) -> dict[str, str]:
    """The properties of the table. Raises Malformed."""
    found = metadata.get("properties", {}) if isinstance(metadata, dict) else None
    if not isinstance(found, dict):
        raise Malformed("not the metadata of an Iceberg table")
    return found


def is_ours(name: str) -> bool:
    """Whether an object of a table's metadata folder has a name that exports give, but for hints and metadata."""
    return _OURS.fullmatch(name) is not None or _LIST.fullmatch(name) is not None
