"""Changes a table's definition, one step at a time, as a user writes it. Pure: `check_data` checks the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace as replaced

import pyarrow as pa
from msgspec.structs import replace

from underlay.change.define.define import key_of, order_of, partitions_of
from underlay.change.files.row_checks import checked_columns
from underlay.change.files.settings import BLOOM, KNOWN, bloom_leaves, check_settings
from underlay.errors import InvalidRequest, UnderlayError, Unsupported
from underlay.index.partition_specs import with_source_type, with_spec
from underlay.index.root import Definition
from underlay.prune.predicates.operand import format_column
from underlay.schema import edit
from underlay.schema.cast.exact import cast_exactly
from underlay.schema.cast.widen import is_widening_column
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.convert.default import default_scalar, format_default
from underlay.schema.record import from_record, to_record
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Field, MapOf, Scalar

OWNED = ("_source",)
"""Columns that an ingest fills, and by which it finds a source's rows to replace."""


def add_column(
    definition: Definition, name: str, type_: object, default: object, comment: str | None, after: str | None
) -> Definition:
    """With a new column, in which existing rows have the default."""
    schema = from_record(definition.schema)
    path = edit.read_path(schema, name)
    _refuse_owned(path)
    field = _typed(type_, path)
    if default is not None:
        if not isinstance(field.type, Scalar):
            raise InvalidRequest("a nested column has no default", place=name, hint="Leave the default out.")
        field = replaced(field, default=format_default(default, field.type))
    field = replaced(field, comment=comment if comment is not None else field.comment)
    return _with_schema(definition, edit.add_field(schema, path, field, after))


def rename_column(definition: Definition, old: str, new: str) -> Definition:
    """With another name for a column; its values are found by its id."""
    schema = from_record(definition.schema)
    path = edit.read_path(schema, old)
    _refuse_owned(path)
    _refuse_owned((*path[:-1], new))
    edit.field_at(schema, path)
    _refuse_checked(definition, schema, path)
    return _with_schema(definition, edit.rename_field(schema, path, new))


def drop_column(definition: Definition, name: str) -> Definition:
    """Without a column."""
    schema = from_record(definition.schema)
    path = edit.read_path(schema, name)
    _refuse_owned(path)
    gone = edit.ids_in(edit.field_at(schema, path))
    uses: tuple[tuple[str, str, Iterable[int]], ...] = (
        ("key", "set_key, in SQL DROP PRIMARY KEY", definition.key),
        ("order", "set_sort_by, in SQL SET SORTED BY", (one.field for one in definition.sort_by)),
        ("partitioning", "set_partition_by, in SQL SET PARTITIONED BY", (one.field for one in definition.partition_by)),
    )
    for use, setter, fields in uses:
        if not gone.isdisjoint(fields):
            raise InvalidRequest(
                f"the column is part of the table's {use}",
                place=format_column(path),
                hint=f"Change the {use} first, with {setter}.",
            )
    _refuse_checked(definition, schema, path)
    return _with_schema(definition, edit.drop_field(schema, path))


def widen_column(definition: Definition, name: str, type_: object) -> Definition:
    """With a wider type for a column, one that has all values of the old type."""
    schema = from_record(definition.schema)
    path = edit.read_path(schema, name)
    _refuse_owned(path)
    field, wanted = edit.field_at(schema, path), _typed(type_, path).type
    before = field.type
    if not isinstance(before, Scalar) or not isinstance(wanted, Scalar) or not is_widening_column(before, wanted):
        raise InvalidRequest(
            "the type does not hold every value of the column",
            place=format_column(path),
            expected=f"a wider type than {before}",
            found=wanted,
            hint="Integers, floats, decimals, dates and timestamps can be widened. Otherwise add a column and fill it.",
        )
    default = default_scalar(field)
    text = None if default is None else format_default(cast_exactly(pa.repeat(default, 1), wanted, path)[0], wanted)
    changed = edit.change_field(schema, path, lambda one: replaced(one, type=wanted, default=text))
    return _with_schema(with_source_type(definition, field.id, before), changed)


def move_column(definition: Definition, name: str, after: str | None) -> Definition:
    """With a column in another place: after a sibling, or before all."""
    schema = from_record(definition.schema)
    return _with_schema(definition, edit.move_field(schema, edit.read_path(schema, name), after))


def set_required(definition: Definition, name: str, *, is_required: bool) -> Definition:
    """With or without nulls in a column."""
    schema = from_record(definition.schema)
    path = edit.read_path(schema, name)
    edit.field_at(schema, path)
    if not is_required and path[1:] and isinstance(edit.field_at(schema, path[:-1]).type, MapOf) and path[-1] == "key":
        raise InvalidRequest("keys of a map are never null", place=format_column(path))
    return _with_schema(definition, edit.change_field(schema, path, lambda one: replaced(one, is_required=is_required)))


def set_comment(definition: Definition, text: str | None, column: str | None = None) -> Definition:
    """With a comment of the table, or of a column."""
    if column is None:
        return replace(definition, comment=text)
    schema = from_record(definition.schema)
    path = edit.read_path(schema, column)
    return _with_schema(definition, edit.change_field(schema, path, lambda one: replaced(one, comment=text)))


def set_key(definition: Definition, columns: Sequence[str]) -> Definition:
    """With another key."""
    return replace(definition, key=key_of(from_record(definition.schema), columns))


def set_sort_by(definition: Definition, columns: Sequence[str]) -> Definition:
    """With another order of rows in new files."""
    return replace(definition, sort_by=order_of(from_record(definition.schema), columns))


def set_partition_by(definition: Definition, columns: Sequence[str]) -> Definition:
    """With another partitioning of new files; others keep theirs."""
    return with_spec(definition, partitions_of(from_record(definition.schema), columns))


def add_check(definition: Definition, name: str, text: str) -> Definition:
    """With a condition that every row must fulfil. Its reader finds out whether it is valid."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidRequest("a check needs a name", found=repr(name))
    if not isinstance(text, str) or not text.strip():
        raise InvalidRequest("a check is a condition as text", found=repr(text), hint="Write 'fare >= 0'.")
    if name in definition.checks:
        raise InvalidRequest(
            "the table has a check of this name", found=f"{name}: {definition.checks[name]}", hint="Drop it first."
        )
    return replace(definition, checks={**definition.checks, name: text.strip()})


def drop_check(definition: Definition, name: str) -> Definition:
    """Without a check."""
    if name not in definition.checks:
        known = ", ".join(definition.checks)
        raise InvalidRequest(f"there is no check {name}", hint=f"Checks: {known}." if known else None)
    return replace(definition, checks={key: text for key, text in definition.checks.items() if key != name})


def set_property(definition: Definition, name: str, value: str | int | None) -> Definition:
    """With a property, or without it if the value is None."""
    if value is None:
        if name not in definition.properties:
            raise InvalidRequest("the table does not have this property", found=name, hint=f"It may have {KNOWN}.")
        kept = {key: text for key, text in definition.properties.items() if key != name}
        return replace(definition, properties=kept)
    properties = {**definition.properties, name: str(value)}
    check_settings(properties, from_record(definition.schema))
    return replace(definition, properties=properties)


def _with_schema(definition: Definition, schema: TableSchema) -> Definition:
    """The definition with other columns; bloom filters, which are set by name, follow the columns that still exist."""
    changed = replace(definition, schema=to_record(schema))
    if BLOOM not in definition.properties:
        return changed
    before = bloom_leaves(definition.properties[BLOOM], from_record(definition.schema))
    names = [format_column(leaf.path) for leaf in _still_there(before, schema)]
    return replace(changed, properties={**definition.properties, BLOOM: ",".join(names)})


def _still_there(leaves: Iterable[LeafColumn], schema: TableSchema) -> list[LeafColumn]:
    return [schema.leaf_by_id[leaf.id] for leaf in leaves if leaf.id in schema.leaf_by_id]


def _typed(type_: object, path: edit.Path) -> Field:
    """A column of the type that a user gives: SQL text, an Arrow type or one of ours. Raises InvalidRequest."""
    if isinstance(type_, str):
        from underlay.schema.convert.ddl import parse_ddl  # slow: loads an SQL parser

        try:
            fields = parse_ddl(f"c {type_}").fields
        except UnderlayError as error:
            error.place = format_column(path)
            raise
        if len(fields) != 1:
            raise InvalidRequest("not a type", found=type_, hint="Write int, decimal(10, 2) or list<string>.")
        return fields[0]
    if isinstance(type_, pa.DataType):
        return from_arrow(pa.schema([pa.field("c", type_)])).fields[0]
    if isinstance(type_, pa.Field):
        return from_arrow(pa.schema([type_.with_name("c")])).fields[0]
    if isinstance(type_, Scalar):
        return Field(id=0, name="c", type=type_)
    raise Unsupported("not a type", found=type(type_).__name__, hint="Write 'double', or give an Arrow type.")


def _refuse_owned(path: edit.Path) -> None:
    if path in {(name,) for name in OWNED}:
        raise InvalidRequest(
            "ingest fills this column, and finds the rows of a source by it",
            place=format_column(path),
            hint="Choose another name, or leave the column as it is.",
        )


def _refuse_checked(definition: Definition, schema: TableSchema, path: edit.Path) -> None:
    for name, text in definition.checks.items():
        if path[0] in checked_columns(text, schema):
            raise InvalidRequest(
                f"the check {name} names this column",
                place=format_column(path),
                found=text,
                hint="Drop the check, change the column, and add the check again, all in one evolve().",
            )
