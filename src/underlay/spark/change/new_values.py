"""The values that an update or an insert assigns to a table's columns, or to fields of structs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from underlay.errors import InvalidRequest, UnknownColumn
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, StructOf
from underlay.spark.change.expressions import Expression, assigned, resolved_column
from underlay.spark.jvm.gateway import JavaObject, gateway_of
from underlay.spark.relation.adapted import missing_column
from underlay.spark.types.spark_types import quoted
from underlay.spark.types.to_spark import source_schema


class NewValues:
    """Values by column. Raises InvalidRequest for a column that is named twice, UnknownColumn."""

    def __init__(self, given: Mapping[str, Expression], schema: TableSchema, alias: str | None = None) -> None:
        if not isinstance(given, Mapping) or not given:
            raise InvalidRequest("values are a mapping of columns to expressions", found=repr(given))
        self._schema = schema
        self._side = "" if alias is None else f"{quoted(alias)}."
        self._paths = [_path(name, schema, alias) for name in given]
        self.values: list[Expression] = list(given.values())
        for at, path in enumerate(self._paths):
            for other in self._paths[:at]:
                if path[: len(other)] == other or other[: len(path)] == path:
                    raise InvalidRequest("a column gets two values", found=".".join(path))

    @property
    def kept(self) -> set[str]:
        """The columns that keep their value, or a part of it."""
        whole = {path[0] for path in self._paths if len(path) == 1}
        return {name for name in self._schema.names if name not in whole}

    def bind(self, scope: DataFrame, resolved: Sequence[JavaObject], *, keep: bool) -> dict[str, Column]:
        """The columns of the new row, given the resolved values; other columns keep their value, or get their
        default.
        """
        gateway = gateway_of(scope.sparkSession)
        types = source_schema(self._schema, self._schema.names)
        found: dict[str, Column] = {}
        for field in self._schema.fields:
            own = [
                (path[1:], value) for path, value in zip(self._paths, resolved, strict=True) if path[0] == field.name
            ]
            wanted = types[field.name].dataType
            if own and not own[0][0]:
                found[field.name] = resolved_column(gateway, assigned(scope, own[0][1], wanted))
                continue
            base = f.col(self._side + quoted(field.name)) if keep else missing_column(field).cast(wanted)
            for path, value in own:
                inner = _inner(field, path)
                column = resolved_column(
                    gateway, assigned(scope, value, source_schema(inner, inner.names)[path[-1]].dataType)
                )
                base = base.withField(".".join(map(quoted, path)), column)
            found[field.name] = base
        return found


def _inner(field: Field, path: Sequence[str]) -> TableSchema:
    """The struct that contains the last part of a path, as columns."""
    kind = field.type
    for name in path[:-1]:
        if isinstance(kind, StructOf):
            kind = next(one.type for one in kind.fields if one.name == name)
    if not isinstance(kind, StructOf):
        raise UnknownColumn("the column has no fields", place=field.name)
    return TableSchema(fields=kind.fields, last_id=0)


def _path(name: str, schema: TableSchema, alias: str | None) -> tuple[str, ...]:
    """The column that a name means, ignoring case, with or without the table's alias."""
    parts = split_name(name)
    if alias is not None and len(parts) > 1 and parts[0].lower() == alias.lower():
        found = _find(schema.fields, parts[1:])
        if found is not None:
            return found
    found = _find(schema.fields, parts)
    if found is None:
        raise UnknownColumn("the table has no such column", found=name, expected=", ".join(schema.names))
    return found


def _find(fields: Sequence[Field], parts: Sequence[str]) -> tuple[str, ...] | None:
    exact = [field for field in fields if field.name == parts[0]]
    alike = exact or [field for field in fields if field.name.lower() == parts[0].lower()]
    if len(alike) != 1:
        return None
    if len(parts) == 1:
        return (alike[0].name,)
    kind = alike[0].type
    below = _find(kind.fields, parts[1:]) if isinstance(kind, StructOf) else None
    return None if below is None else (alike[0].name, *below)


def split_name(name: str) -> list[str]:
    """The parts of a dotted name, some of which may be in backticks. Raises InvalidRequest."""
    parts: list[str] = []
    part, at, is_quoted = "", 0, False
    while at < len(name):
        mark = name[at]
        if mark == "`" and is_quoted and name[at + 1 : at + 2] == "`":
            part, at = part + "`", at + 1
        elif mark == "`":
            is_quoted = not is_quoted
        elif mark == "." and not is_quoted:
            parts.append(part)
            part = ""
        else:
            part += mark
        at += 1
    if is_quoted or not all((*parts, part)):
        raise InvalidRequest("not a column's name", found=repr(name))
    return [*parts, part]
