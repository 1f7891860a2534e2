"""What an imported table knows of the table that it follows: a record of its source tree.

The record is committed with the files, and a rollback of the table takes it back with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

import msgspec

from underlay.errors import Malformed
from underlay.index.change import IMPORT
from underlay.index.root import SourceRecord
from underlay.index.sealed_json import UNDECODED
from underlay.interop.imports.source_columns import described
from underlay.interop.imports.source_table import SourceMark
from underlay.schema.table_schema import TableSchema
from underlay.table.versions.snapshot import Snapshot

_ID_BYTES = 16


class ImportNote(msgspec.Struct, frozen=True, kw_only=True):
    """`files` and `columns` are digests of the imported files and of the columns after the last sync: when the table's
    own differ, it was changed here since."""

    kind: str
    url: str
    table_id: str
    version: int
    stamp: str | None
    files: str
    columns: str
    known: dict[str, int]
    """Field ids by the columns' keys in the source, dropped ones included."""

    @property
    def address(self) -> str:
        """The source as users write it."""
        return f"{self.kind}:{self.url}"

    @property
    def mark(self) -> SourceMark:
        """The version that the table has."""
        return SourceMark(self.version, self.stamp)

    def record(self, row_count: int) -> SourceRecord:
        """The record to commit."""
        return SourceRecord(
            uri=IMPORT,
            identity=f"{self.address}@{self.version}",
            version=0,
            row_count=row_count,
            options=msgspec.json.encode(self).decode(),
        )


def find_note(snapshot: Snapshot) -> ImportNote | None:
    """The note of a version; None for a table that was not imported. Raises Malformed."""
    record = snapshot.find_sources([IMPORT]).get(IMPORT)
    if record is None:
        return None
    try:
        return msgspec.json.decode(record.options or "", type=ImportNote)
    except UNDECODED as error:
        raise Malformed(f"the note of the imported table does not decode: {error}") from error


def columns_digest(schema: TableSchema) -> str:
    """Equal for equal columns, whatever their comments."""
    return _digest(described(schema))


def files_digest(files: Mapping[str, bytes | None]) -> str:
    """Equal for equal files, by location, with equal deleted rows."""
    return _digest(f"{name} {(bits or b'').hex()}" for name, bits in sorted(files.items()))


def _digest(lines: Iterable[str]) -> str:
    found = blake2b(digest_size=_ID_BYTES)
    for line in lines:
        found.update(line.encode() + b"\n")
    return found.hexdigest()
