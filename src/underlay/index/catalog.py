"""The lake's catalog: which tables there are, where they lie, and which revision of each is active.

Every entry of the catalog's chain holds the whole mapping, so that the newest one is all there is to read. An entry is
made from the one before by one of the functions here, each of which is pure.
"""

from __future__ import annotations

import re

import msgspec

from underlay.errors import InvalidRequest, Malformed, NotFound, TableExists, TableNotFound, Unsupported
from underlay.index.sealed_json import UNDECODED, seal, unseal

FORMAT = 1
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_MAX_NAME = 100
_RESERVED = frozenset(("information_schema", "memory", "pg_catalog", "system", "temp", "underlay"))
"""Catalogs and schemas of DuckDB, where a table could not be queried, and the dataset of system views."""
ACTIVE = "active"
CLOSED = "closed"


class RevisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A revision of a table. `state` is `active` or `closed`."""

    state: str
    created_us: int


class TagRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A version that a name stands for."""

    revision: str
    version: int


class TableRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A table. `folder` stays when the table is renamed."""

    folder: str
    active: str
    revisions: dict[str, RevisionRecord]
    tags: dict[str, TagRecord] = {}


class DroppedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A table that was dropped and whose folder is still taken."""

    name: str
    revisions: tuple[str, ...]
    dropped_us: int


class Catalog(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the chain. `dropped` is by folder."""

    format: int
    lake_id: str
    number: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: str
    tables: dict[str, TableRecord] = {}
    dropped: dict[str, DroppedRecord] = {}


_DECODER = msgspec.json.Decoder(Catalog)


def encode_catalog(catalog: Catalog) -> bytes:
    """The bytes of an entry."""
    return seal(msgspec.json.encode(catalog))


def decode_catalog(data: bytes | memoryview) -> Catalog:
    """The entry in `data`. Raises Malformed, or Unsupported when a newer Underlay wrote it."""
    try:
        catalog = _DECODER.decode(unseal(data))
    except UNDECODED as error:
        raise Malformed(f"not an entry of the catalog: {error}") from error
    if catalog.format != FORMAT:
        raise Unsupported("the catalog has another format", expected=FORMAT, found=catalog.format)
    return catalog


def split_name(name: str) -> tuple[str, str]:
    """The dataset and the table of a name. Raises InvalidRequest."""
    parts = name.split(".") if isinstance(name, str) else []
    if len(parts) != 2 or len(name) > _MAX_NAME or not all(_PART.fullmatch(part) for part in parts):
        raise InvalidRequest(
            "not a name for a table",
            found=repr(name),
            hint="A name is dataset.table; both parts are ASCII letters, digits, - and _, beginning with a letter or "
            f"digit; {_MAX_NAME} characters at most.",
        )
    return parts[0], parts[1]


def find_table(catalog: Catalog, name: str) -> TableRecord:
    """The table of this name. Raises TableNotFound, and InvalidRequest for what is no name."""
    if not isinstance(name, str):
        split_name(name)  # raises
    record = catalog.tables.get(name)
    if record is None:
        near = next((other for other in catalog.tables if other.casefold() == name.casefold()), None)
        hint = f"There is {near}." if near else "List the tables to see what there is."
        raise TableNotFound(f"there is no table {name}", hint=hint)
    return record


def owner_of(catalog: Catalog, revision: str) -> str | None:
    """The name of the table that has this revision, or None."""
    return next((name for name, record in catalog.tables.items() if revision in record.revisions), None)


def check_free(catalog: Catalog, name: str) -> None:
    """Raise TableExists when a table has this name, upper and lower case aside, InvalidRequest for what is no name."""
    dataset, _ = split_name(name)
    if dataset.casefold() in _RESERVED:
        raise InvalidRequest(
            f"a dataset cannot be called {dataset}",
            place=name,
            hint="SQL uses this name for a catalog of its own. Choose another one.",
        )
    taken = next((other for other in catalog.tables if other.casefold() == name.casefold()), None)
    if taken is not None:
        raise TableExists(f"there is a table {taken}", hint="Choose another name, or drop or rename that table.")


def check_tag(tag: str) -> None:
    """Raise InvalidRequest unless a tag may have this name."""
    if not _PART.fullmatch(tag) or len(tag) > _MAX_NAME:
        raise InvalidRequest("not a name for a tag", found=repr(tag), hint="Use ASCII letters, digits, - and _.")


def find_tag(record: TableRecord, name: str, tag: str) -> TagRecord:
    """What the tag stands for. Raises NotFound."""
    found = record.tags.get(tag)
    if found is None:
        raise NotFound(f"{name} has no tag {tag}", hint=f"Tags: {', '.join(sorted(record.tags)) or 'none'}.")
    return found
