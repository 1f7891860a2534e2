"""The columns of a Delta table, from its schema as JSON; and values of its partitions.

| mapping of columns | a column's key | found in files by |
|---|---|---|
| none | its path | name |
| `name` | its id | physical name |
| `id` | its id | field id |
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from underlay.errors import InvalidRequest, Malformed
from underlay.interop.imports.source_columns import ELEMENT, KEY, VALUE, ColumnName, SourceColumns
from underlay.schema.arrow_aliases import AnyScalar
from underlay.schema.convert.path_values import path_scalar
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

ID, PHYSICAL = "delta.columnMapping.id", "delta.columnMapping.physicalName"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_PLAIN = {
    "boolean": Scalar(TypeKind.BOOLEAN),
    "byte": Scalar(TypeKind.INT8),
    "short": Scalar(TypeKind.INT16),
    "integer": Scalar(TypeKind.INT32),
    "long": Scalar(TypeKind.INT64),
    "float": Scalar(TypeKind.FLOAT32),
    "double": Scalar(TypeKind.FLOAT64),
    "string": Scalar(TypeKind.STRING),
    "binary": Scalar(TypeKind.BINARY),
    "date": Scalar(TypeKind.DATE),
    "timestamp": Scalar(TypeKind.TIMESTAMP, unit="us", zone="UTC"),
    "timestamp_ntz": Scalar(TypeKind.TIMESTAMP, unit="us"),
}
_NO_PARTITION = (TypeKind.BINARY, TypeKind.FIXED)


class DeltaColumns:
    """Reads a schema. `is_mapped`: columns have ids and physical names."""

    def __init__(self, schema_string: str, *, is_mapped: bool, place: str) -> None:
        self.columns = SourceColumns()
        self._is_mapped = is_mapped
        try:
            schema = json.loads(schema_string)
            self.columns.fields = [self._field(one, "") for one in schema["fields"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Malformed(f"the schema of the Delta table is not one: {error!r}", place=place) from error

    def partition_columns(self, names: tuple[str, ...]) -> dict[str, tuple[int, Scalar]]:
        """Provisional ids and types by the names that a log uses for partition values."""
        known = self.columns.by_name()
        found = {}
        for name in names:
            column = known.get(name)
            if column is None or not isinstance(column.type, Scalar) or column.type.kind in _NO_PARTITION:
                what = "is missing" if column is None else f"is {column.type}"
                self.columns.problems.append(f"Partition column {name}: it {what}, which cannot be read from a log.")
                continue
            found[self.columns.names[column.id].names[0]] = (column.id, column.type)
        return found

    def _field(self, given: Mapping[str, Any], above: str) -> Field:
        name = str(given["name"])
        metadata = given.get("metadata") or {}
        path = f"{above}{name}"
        if self._is_mapped:
            ident = int(metadata[ID])
            one = ColumnName(key=f"#{ident}", source_id=ident, names=(str(metadata[PHYSICAL]),))
        else:
            one = ColumnName(key=path, names=(name,))
        number = self.columns.number(one)
        return Field(
            id=number,
            name=name,
            type=self._type(given["type"], path, one.key),
            # What is required inside a nested column cannot be proven from footers.
            is_required=not above and not given.get("nullable", True) and isinstance(given["type"], str),
            comment=metadata.get("comment"),
        )

    def _type(self, given: object, path: str, key: str) -> Type:
        if isinstance(given, str):
            return self._scalar(given, path)
        if not isinstance(given, dict):
            raise TypeError(f"the type of {path}")
        match given["type"]:
            case "struct":
                return StructOf(tuple(self._field(one, f"{path}.") for one in given["fields"]))
            case "array":
                return ListOf(self._part(ELEMENT, given["elementType"], path, key))
            case "map":
                named = self._part(KEY, given["keyType"], path, key, is_required=True)
                return MapOf(named, self._part(VALUE, given["valueType"], path, key))
        return self.columns.refuse(path, f"Underlay has no type {given['type']}")

    def _part(self, name: str, given: object, path: str, key: str, *, is_required: bool = False) -> Field:
        own = f"{key}.{name}"
        number = self.columns.number(ColumnName(key=own))
        return Field(id=number, name=name, type=self._type(given, f"{path}.{name}", own), is_required=is_required)

    def _scalar(self, given: str, path: str) -> Type:
        found = _PLAIN.get(given)
        if found is None and (match := _DECIMAL.fullmatch(given)) is not None and 0 <= int(match[2]) <= int(match[1]):
            found = Scalar(TypeKind.DECIMAL, precision=int(match[1]), scale=int(match[2]))
        return found if found is not None else self.columns.refuse(path, f"Underlay has no type {given}")


@lru_cache(maxsize=4096)
def partition_value(text: str | None, type_: Scalar) -> AnyScalar | None:
    """A value of a partition, null for null and for the empty text. Raises InvalidRequest.

    Times without a zone are taken as UTC, as delta-rs does.
    """
    if text is None or text == "":
        return None
    if type_.kind is TypeKind.TIMESTAMP and type_.zone is not None and not text.endswith("Z"):
        text = f"{text}Z"
    if type_.kind is TypeKind.TIMESTAMP and type_.zone is None:
        text = text.removesuffix("Z")
    try:
        return path_scalar(text, type_)
    except InvalidRequest as error:
        raise error.at(f"partition value {text!r}") from None
