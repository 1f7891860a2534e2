"""What a directory of hot partitions belongs to: `_hot.json`, written once."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from underlay.errors import Inconsistent, Malformed, NotFound, Unsupported, from_os_error
from underlay.hot.txn.disk import HotDisk
from underlay.index.keys import HOT_FENCE

IDENTITY_NAME = "_hot.json"


class HotIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A hot table: its random id, the table and revision whose rows it holds, and how they are cut.

    `column` is the field id of the timestamps, `unit` what they count in `_txn`.
    """

    format: int = 1
    id: str
    table: str
    revision: str
    column: int
    partition: str
    unit: str
    is_deduplicated: bool = False

    @property
    def fence(self) -> str:
        """The name of its fence in roots."""
        return f"{HOT_FENCE}{self.id}"


def read_identity(folder: Path) -> HotIdentity | None:
    """What lies in this directory; None when it holds no hot table. Raises Malformed, Unsupported."""
    path = folder / IDENTITY_NAME
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise from_os_error(error, str(path)) from error
    try:
        found = msgspec.json.decode(data, type=HotIdentity)
    except msgspec.MsgspecError as error:
        raise Malformed(f"not the identity of a hot table: {error}", place=str(path)) from error
    if found.format != 1:
        raise Unsupported("the hot table has an unknown format", place=str(path), expected=1, found=found.format)
    return found


def need_identity(folder: Path) -> HotIdentity:
    """The same; NotFound when there is none."""
    found = read_identity(folder)
    if found is None:
        raise NotFound("there is no hot table here", place=str(folder), hint='"underlay hot status" lists them.')
    return found


def write_identity(folder: Path, identity: HotIdentity, disk: HotDisk) -> None:
    """Put it in place, whole and durable. Raises Inconsistent when there is another one."""
    temporary = folder / f".{IDENTITY_NAME}.{os.getpid()}"
    try:
        temporary.unlink(missing_ok=True)
        descriptor = disk.open(temporary, create=True)
        try:
            disk.write(descriptor, msgspec.json.encode(identity), 0)
            disk.sync(descriptor)
        finally:
            os.close(descriptor)
        disk.replace(temporary, folder / IDENTITY_NAME)
        disk.sync_directory(folder)
    except OSError as error:
        raise from_os_error(error, str(folder)) from error


def check_identity(known: HotIdentity, wanted: HotIdentity, folder: Path) -> None:
    """Raise Inconsistent when the directory is of another revision of the table, or cut another way."""
    if known.revision != wanted.revision:
        raise Inconsistent(
            "the hot partitions belong to an earlier table of this name, which was replaced or dropped",
            place=str(folder),
            expected=f"revision {wanted.revision}",
            found=f"revision {known.revision}",
            hint="Its rows are in no table any longer. Move the directory away, or give another one.",
        )
    for name in ("column", "partition", "unit", "is_deduplicated"):
        mine, theirs = getattr(wanted, name), getattr(known, name)
        if mine != theirs:
            raise Inconsistent(
                f"the hot partitions of this table were made with another {name.replace('_', ' ')}",
                place=str(folder),
                expected=mine,
                found=theirs,
                hint="Seal all of them first, and remove the directory; or open them as they were made.",
            )
