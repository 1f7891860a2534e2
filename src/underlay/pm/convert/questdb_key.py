"""Decodes the `questdb` key in a Parquet file's metadata: column types and flags that Parquet's schema lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec

from underlay.errors import Malformed, SchemaMismatch, Unsupported
from underlay.parquet.footer.footer import KeyValue
from underlay.pm.format.types import DESIGNATED_DESCENDING, is_designated, tag_of

KEY = b"questdb"
_VERSION = 1
_PLACE = 'key "questdb" of the Parquet footer'

_I32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
_I64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class QuestDBColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf column. `format` 1 says that a symbol's local keys are its global ones."""

    column_type: _I32
    format: int | None = None
    ascii: bool | None = None
    id: _I32 | None = None


class QuestDBKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key's value; fields that this release does not know are ignored."""

    version: int
    schema: tuple[QuestDBColumn, ...]
    squash_tracker: _I64 = -1
    seq_txn: _I64 = -1

    def designated(self) -> tuple[int, bool] | None:
        """The designated timestamp's column and whether it descends."""
        for index, column in enumerate(self.schema):
            if is_designated(column.column_type):
                return index, bool(column.column_type & DESIGNATED_DESCENDING)
        return None


class _Version(msgspec.Struct, frozen=True):
    version: int


_Read = TypeVar("_Read", QuestDBKey, _Version)


def _decode(value: bytes, type_: type[_Read]) -> _Read:
    try:
        return msgspec.json.decode(value, type=type_)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Malformed(f"not what QuestDB writes: {error}", place=_PLACE) from None


def read_questdb_key(key_values: Iterable[KeyValue], column_count: int) -> QuestDBKey | None:
    """The key of a file with `column_count` leaf columns, None if it has none."""
    value = next((pair.value for pair in key_values if pair.key == KEY), None)
    if value is None:
        return None
    version = _decode(value, _Version).version  # first: another version may have another shape
    if version != _VERSION:
        raise Unsupported("an unknown version of QuestDB's metadata", place=_PLACE, expected=_VERSION, found=version)
    key = _decode(value, QuestDBKey)
    if len(key.schema) != column_count:
        raise SchemaMismatch(
            "it describes the wrong number of columns for the file",
            place=_PLACE,
            expected=column_count,
            found=len(key.schema),
        )
    for index, column in enumerate(key.schema):
        if tag_of(column.column_type) is None or column.format not in (None, 1):
            raise Malformed(
                f"column {index} has a type or format that does not exist",
                place=_PLACE,
                found=f"column_type {column.column_type}, format {column.format}",
            )
    return key
