"""The columns of an Iceberg table, which keep their field ids. Its name mapping names them in files without ids."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from underlay.errors import InvalidRequest, Malformed
from underlay.interop.imports.source_columns import ELEMENT, KEY, VALUE, ColumnName, SourceColumns
from underlay.schema.arrow_aliases import AnyScalar
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.default import format_default
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

NAME_MAPPING = "schema.name-mapping.default"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_FIXED = re.compile(r"fixed\[(\d+)\]")
_PLAIN = {
    "boolean": Scalar(TypeKind.BOOLEAN),
    "int": Scalar(TypeKind.INT32),
    "long": Scalar(TypeKind.INT64),
    "float": Scalar(TypeKind.FLOAT32),
    "double": Scalar(TypeKind.FLOAT64),
    "date": Scalar(TypeKind.DATE),
    "time": Scalar(TypeKind.TIME, unit="us"),
    "timestamp": Scalar(TypeKind.TIMESTAMP, unit="us"),
    "timestamptz": Scalar(TypeKind.TIMESTAMP, unit="us", zone="UTC"),
    "timestamp_ns": Scalar(TypeKind.TIMESTAMP, unit="ns"),
    "timestamptz_ns": Scalar(TypeKind.TIMESTAMP, unit="ns", zone="UTC"),
    "string": Scalar(TypeKind.STRING),
    "uuid": Scalar(TypeKind.UUID),
    "binary": Scalar(TypeKind.BINARY),
}
_WITH_UTC = (TypeKind.TIMESTAMP,)


class IcebergColumns:
    """Reads a schema. `ids` are provisional ids by field ids."""

    def __init__(self, schema: Mapping[str, Any], properties: Mapping[str, str]) -> None:
        self.columns = SourceColumns()
        self.ids: dict[int, int] = {}
        try:
            self._names = _mapped_names(json.loads(properties[NAME_MAPPING])) if NAME_MAPPING in properties else {}
            self.columns.fields = [self._field(one, "") for one in schema["fields"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Malformed(f"the schema of the Iceberg table is not one: {error!r}") from error

    @property
    def has_names(self) -> bool:
        """Whether files without field ids can be read."""
        return bool(self._names)

    def _number(self, ident: int) -> int:
        number = self.columns.number(
            ColumnName(key=f"#{ident}", source_id=ident, names=tuple(self._names.get(ident, ())))
        )
        self.ids[ident] = number
        return number

    def _field(self, given: Mapping[str, Any], above: str) -> Field:
        path = f"{above}{given['name']}"
        number = self._number(int(given["id"]))
        type_ = self._type(given["type"], path)
        return Field(
            id=number,
            name=str(given["name"]),
            type=type_,
            # What is required inside a nested column cannot be proven from footers.
            is_required=not above and bool(given.get("required")) and isinstance(given["type"], str),
            comment=given.get("doc"),
            default=self._default(given.get("initial-default"), type_, path),
        )

    def _type(self, given: object, path: str) -> Type:
        if isinstance(given, str):
            return self._scalar(given, path)
        if not isinstance(given, dict):
            raise TypeError(f"the type of {path}")
        match given["type"]:
            case "struct":
                return StructOf(tuple(self._field(one, f"{path}.") for one in given["fields"]))
            case "list":
                number = self._number(int(given["element-id"]))
                return ListOf(Field(id=number, name=ELEMENT, type=self._type(given["element"], f"{path}.{ELEMENT}")))
            case "map":
                numbers = self._number(int(given["key-id"])), self._number(int(given["value-id"]))
                key = Field(id=numbers[0], name=KEY, type=self._type(given["key"], f"{path}.{KEY}"), is_required=True)
                value = Field(id=numbers[1], name=VALUE, type=self._type(given["value"], f"{path}.{VALUE}"))
                return MapOf(key, value)
        return self.columns.refuse(path, f"Underlay has no type {given['type']}")

    def _scalar(self, given: str, path: str) -> Type:
        found = _PLAIN.get(given)
        if found is None and (match := _DECIMAL.fullmatch(given)) is not None:
            found = Scalar(TypeKind.DECIMAL, precision=int(match[1]), scale=int(match[2]))
        if found is None and (match := _FIXED.fullmatch(given)) is not None:
            found = Scalar(TypeKind.FIXED, length=int(match[1]))
        return found if found is not None else self.columns.refuse(path, f"Underlay has no type {given}")

    def _default(self, given: object, type_: Type, path: str) -> str | None:
        if given is None:
            return None
        if not isinstance(type_, Scalar):
            self.columns.refuse(path, "it has a default, which nested columns cannot have here")
            return None
        text = str(given).lower() if isinstance(given, bool) else str(given)
        if type_.kind in _WITH_UTC:
            text = text.removesuffix("+00:00") + ("Z" if type_.zone else "")
        try:
            return format_default(text, type_)
        except InvalidRequest:
            self.columns.refuse(path, f"its default {given!r} is not one of {type_}")
            return None


def _mapped_names(mapping: list[dict[str, Any]]) -> dict[int, list[str]]:
    """Names in files by field ids, nested ones too."""
    found: dict[int, list[str]] = {}
    for one in mapping:
        if "field-id" in one:
            found[int(one["field-id"])] = [str(name) for name in one["names"]]
        found |= _mapped_names(one.get("fields", []))
    return found


def partition_scalar(value: Any, type_: Scalar) -> AnyScalar | None:  # noqa: ANN401  # as Avro decodes it
    """A value of an identity partition, as Avro decodes it, in the column's type. Raises InvalidRequest."""
    if value is None:
        return None
    arrow = to_arrow_type(type_)
    if type_.kind is TypeKind.TIMESTAMP and type_.zone is None and hasattr(value, "tzinfo"):
        value = value.replace(tzinfo=None)
    if type_.kind is TypeKind.UUID and hasattr(value, "bytes"):
        value = value.bytes
    try:
        if isinstance(value, int) and type_.kind in (TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP):
            return pa.scalar(value, pa.int32() if type_.kind is TypeKind.DATE else pa.int64()).cast(arrow)
        return pa.scalar(value, arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(f"not a partition value of {type_}: {error}", found=repr(value)) from None
