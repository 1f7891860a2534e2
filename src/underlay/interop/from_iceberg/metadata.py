"""The metadata of an Iceberg table: which file of it is the newest, and what it says."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from underlay.errors import InvalidRequest, Malformed, NotFound
from underlay.index.sealed_json import UNDECODED
from underlay.interop.imports.source_folder import SourceFolder

FOLDER = "metadata"
HINT = f"{FOLDER}/version-hint.text"
_FILE = re.compile(r"(?:v([0-9]+)|([0-9]+)-[^/]+?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_GZIP = b"\x1f\x8b"

Json = dict[str, Any]


class IcebergSnapshot(msgspec.Struct, frozen=True, rename="kebab"):
    """A version."""

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    manifest_list: str | None = None


class IcebergSpecField(msgspec.Struct, frozen=True, rename="kebab"):
    """A field of a partition spec."""

    source_id: int
    field_id: int
    name: str
    transform: str


class IcebergSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """How some files are partitioned."""

    spec_id: int
    fields: tuple[IcebergSpecField, ...] = ()


class IcebergMetadata(msgspec.Struct, frozen=True, rename="kebab"):
    """What a metadata file says, as far as it matters here."""

    format_version: int
    location: str
    last_column_id: int
    table_uuid: str = ""
    schemas: tuple[Json, ...] = ()
    current_schema_id: int | None = None
    schema: Json | None = None
    """Of format 1, without `schemas`."""
    partition_specs: tuple[IcebergSpec, ...] = ()
    properties: dict[str, str] = {}
    current_snapshot_id: int | None = None
    snapshots: tuple[IcebergSnapshot, ...] = ()

    @property
    def current_schema(self) -> Json:
        """The columns. Raises Malformed."""
        found = [one for one in self.schemas if one.get("schema-id") == self.current_schema_id]
        if self.schemas and self.current_schema_id is not None and found:
            return found[0]
        if self.schema is None:
            raise Malformed("the metadata of the Iceberg table has no current schema")
        return self.schema

    @property
    def snapshot(self) -> IcebergSnapshot | None:
        """The newest version; None for a table without any. Raises Malformed."""
        if self.current_snapshot_id in (None, -1):
            return None
        found = self.by_id.get(self.current_snapshot_id or 0)
        if found is None:
            raise Malformed("the metadata of the Iceberg table lacks its current snapshot")
        return found

    @property
    def by_id(self) -> dict[int, IcebergSnapshot]:
        """All snapshots."""
        return {one.snapshot_id: one for one in self.snapshots}

    def ancestors(self) -> Iterator[int]:
        """The ids of the current snapshot and of those before it, as far as they are known."""
        known, one = self.by_id, self.snapshot
        while one is not None:
            yield one.snapshot_id
            one = known.get(one.parent_snapshot_id) if one.parent_snapshot_id is not None else None


def decode_metadata(data: bytes, place: str) -> IcebergMetadata:
    """The metadata in a file. Raises Malformed."""
    try:
        plain = gzip.decompress(data) if data.startswith(_GZIP) else data
        return msgspec.json.decode(plain, type=IcebergMetadata)
    except (OSError, EOFError, *UNDECODED) as error:
        raise Malformed(f"not the metadata of an Iceberg table: {error}", place=place) from error


def table_folder(address: str) -> tuple[str, str | None]:
    """The folder of a table, and the metadata file if the address names one."""
    folder, separator, name = address.rpartition("/")
    if not _FILE.fullmatch(name):
        return address.rstrip("/"), None
    above, _, last = folder.rpartition("/")
    if not separator or last != FOLDER or not above:
        raise InvalidRequest(
            "a metadata file lies in the folder metadata of its table", found=address, expected=f"…/{FOLDER}/{name}"
        )
    return above, f"{FOLDER}/{name}"


def newest_metadata(folder: SourceFolder) -> str:
    """The path of the newest metadata file. Raises NotFound."""
    hinted = _hinted(folder)
    if hinted is not None:
        return hinted
    found: dict[tuple[int, int], str] = {}
    for path, described in folder.objects(FOLDER):
        match = _FILE.fullmatch(path.removeprefix(f"{FOLDER}/"))
        if match is not None:
            found[int(match[1] or match[2]), int(described.modified.timestamp() * 1e6)] = path
    if not found:
        raise NotFound(
            "no Iceberg table is here", place=folder.url, hint=f"Its folder has a folder {FOLDER} with *.metadata.json."
        )
    return found[max(found)]


def _hinted(folder: SourceFolder) -> str | None:
    """The file of a Hadoop table: the hint may be behind, so look for later ones."""
    try:
        text = bytes(folder.get(HINT)).decode().strip()
    except (NotFound, UnicodeDecodeError):
        return None
    if not text.isdigit():
        return None
    found, version = None, int(text)
    while (path := _existing(folder, version)) is not None:
        found, version = path, version + 1
    return found


def _existing(folder: SourceFolder, version: int) -> str | None:
    for name in (f"v{version}.metadata.json", f"v{version}.gz.metadata.json", f"v{version}.metadata.json.gz"):
        place = folder.place(f"{FOLDER}/{name}")
        if place.store.head(place.key) is not None:
            return f"{FOLDER}/{name}"
    return None
