"""Columns whose values are in the folders of a source's path: `year=2024/zone=JFK/part-0.csv`.

They are read as `path_values` describes, typed by the table's columns, and become part of every row of the source. A
source that has such a column itself must have the same value in it, or null; otherwise it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.rows.schema_drift import new_column
from underlay.prune.predicates.operand import format_column
from underlay.runtime.locks import cached_property
from underlay.scan.read.file_stores import LOCAL
from underlay.schema.arrow_aliases import AnyArray, AnyChunks, AnyScalar
from underlay.schema.convert.arrow import to_arrow, to_arrow_type
from underlay.schema.convert.path_values import (
    NULL_FOLDER,
    PathValues,
    find_field,
    infer_type,
    path_scalar,
    path_values,
)
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, Scalar

_HINT = "Rename the folder, or leave folders alone: --no-hive (hive=False)."


def source_values(uri: str) -> PathValues:
    """The values in the folders of a source's path. Raises InvalidRequest."""
    scheme, _, rest = uri.partition("://")
    return path_values(unquote(rest) if scheme == LOCAL else rest)


def new_path_columns(uri: str, schema: TableSchema) -> pa.Schema:
    """The columns in a source's path that the table lacks. Raises InvalidRequest."""
    new = [(name, text) for name, text in source_values(uri) if find_field(schema.fields, name) is None]
    return pa.schema([(name, to_arrow_type(infer_type([text]))) for name, text in new])


def infer_path_columns(uris: Iterable[str], found: pa.Schema) -> pa.Schema:
    """The columns of a new table: those in sources, and those only in their paths.

    Sources whose paths cannot be read are left out: they fail when they are read.
    """
    known = {name.casefold() for name in found.names}
    names: dict[str, str] = {}
    texts: dict[str, list[str | None]] = {}
    for uri in uris:
        try:
            values = source_values(uri)
        except InvalidRequest:
            continue
        for name, text in values:
            if name.casefold() not in known:
                texts.setdefault(names.setdefault(name.casefold(), name), []).append(text)
    return pa.schema([*found, *(pa.field(name, to_arrow_type(infer_type(values))) for name, values in texts.items())])


@dataclass(frozen=True, kw_only=True)
class PathColumns:
    """The values that a source's path gives to columns of the table, None for null."""

    schema: TableSchema
    values: Mapping[str, AnyScalar | None]
    place: str

    @staticmethod
    def of(uri: str, reading: RowRules) -> PathColumns:
        """Raises NewColumn for a name that the table lacks, unless new columns are ignored, SchemaMismatch for text
        that is not a value of its column, InvalidRequest for a path that cannot be read.
        """
        values: dict[str, AnyScalar | None] = {}
        for name, text in source_values(uri):
            field = find_field(reading.schema.fields, name)
            if field is not None:
                values[field.name] = _value(field, text, uri)
            elif reading.new_columns != "ignore":
                raise new_column((name,), reading.schema.names, uri)
        return PathColumns(schema=reading.schema, values=values, place=uri)

    def rules(self, reading: RowRules, *, is_positional: bool) -> RowRules:
        """How to read the source's own columns. `is_positional`: they are identified by their order alone, and the
        path's columns are not among them.
        """
        if not self.values:
            return reading
        if is_positional:
            fields = tuple(field for field in self.schema.fields if field.name not in self.values)
        else:
            fields = tuple(
                replace(field, is_required=False, default=None) if field.name in self.values else field
                for field in self.schema.fields
            )
        return replace(reading, schema=TableSchema(fields=fields, last_id=self.schema.last_id))

    def fill(self, rows: pa.Table) -> pa.Table:
        """The rows with the path's columns. Raises SchemaMismatch when the source has other values in those columns."""
        if not self.values:
            return rows
        columns = []
        given = set(rows.column_names)
        for field in self.schema.fields:
            own = rows.column(field.name) if field.name in given else None
            if field.name in self.values:
                columns.append(self._filled(field, own, rows.num_rows))
            else:
                columns.append(own)
        return pa.table(columns, schema=self._arrow)

    @cached_property
    def _arrow(self) -> pa.Schema:
        return to_arrow(self.schema)

    def _filled(self, field: Field, own: AnyChunks | None, row_count: int) -> AnyArray:
        value = self.values[field.name]
        if own is not None and not _has_only(own, value):
            raise SchemaMismatch(
                f"the column {format_column((field.name,))} has another value in the source than in its path",
                place=self.place,
                expected=NULL_FOLDER if value is None else value,
                hint=_HINT,
            )
        return pa.nulls(row_count, to_arrow_type(field.type)) if value is None else pa.repeat(value, row_count)


def _value(field: Field, text: str | None, uri: str) -> AnyScalar | None:
    name = format_column((field.name,))
    if not isinstance(field.type, Scalar):
        raise SchemaMismatch(f"a path cannot give the column {name}", place=uri, expected=field.type, hint=_HINT)
    if text is None and field.is_required:
        raise SchemaMismatch(f"the column {name} is required, and null in the path", place=uri, hint=_HINT)
    try:
        return None if text is None else path_scalar(text, field.type)
    except InvalidRequest as error:
        problem = f"the value of {name} in the path is not one of the column's type"
        raise SchemaMismatch(problem, place=uri, expected=error.expected, found=error.found, hint=_HINT) from None


def _has_only(column: AnyChunks, value: AnyScalar | None) -> bool:
    """Whether all values except nulls equal this one."""
    held = column.drop_null()
    if not len(held):
        return True
    if value is None:
        return False
    if isinstance(held.type, pa.BaseExtensionType):
        return set(held.to_pylist()) == {value.as_py()}
    is_nan = pa.types.is_floating(held.type) and value.as_py() != value.as_py()
    return bool(pc.all(pc.is_nan(held) if is_nan else pc.equal(held, value)).as_py())
