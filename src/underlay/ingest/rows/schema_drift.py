"""How the columns of a source differ from those of the table: new, missing, or of another type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from underlay.errors import NewColumn, SchemaMismatch
from underlay.ingest.rows.reading import RowRules
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyField
from underlay.schema.cast.conform import conform
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The columns of a source that a table does not take as they are."""

    new: tuple[AnyField, ...]
    refused: tuple[str, ...]
    """Columns whose type does not widen to that of the table."""


def drift(schema: TableSchema, found: pa.Schema) -> Drift:
    """How the columns of a source differ from the table's. Types that were guessed from text may be refused."""
    known = {field.name: field for field in schema.fields}
    shared = [field for field in found if field.name in known]
    other = [field for field in shared if field.type != to_arrow_type(known[field.name].type)]
    refused = [field.name for field in other if not _widens(field, schema)]
    return Drift(
        new=tuple(field for field in found if field.name not in known),
        refused=tuple(refused),
    )


def check_names(reading: RowRules, found: Sequence[str], place: str) -> None:
    """Raises SchemaMismatch when the columns of a source do not fit. `place` is the source and the line."""
    known = reading.schema.names
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise SchemaMismatch(f"the column {format_column((twice[0],))} occurs twice", place=place)
    new = [name for name in found if name not in known]
    if new and reading.new_columns != "ignore":
        raise new_column(new[0], known, place)
    missing = {name.casefold(): name for name in known if name not in found}
    if other := next((name for name in new if name.casefold() in missing), None):
        raise new_column(
            other, known, place
        )  # ignoring it would fill a column with nulls that the source has under another case
    if len(new) == len(found):
        raise SchemaMismatch("none of its columns is in the table", place=place, found=", ".join(found[:20]))
    for field in reading.schema.fields:
        if field.name in found or field.name == reading.source_column:
            continue
        if field.is_required and field.default is None:
            raise SchemaMismatch(
                f"the column {format_column((field.name,))} is missing",
                place=place,
                found=", ".join(found[:20]),
                hint="Add it to the source, or give the column a default.",
            )


def new_column(name: str, known: Sequence[str], place: str) -> NewColumn:
    """The error for a column that the table does not have."""
    alike = [other for other in known if other.lower() == name.strip().lower()]
    hint = f"Did you mean {alike[0]}?" if alike else None  # what else can be done depends on the caller
    return NewColumn(f"the table has no column {format_column((name,))}", place=place, hint=hint)


def _widens(field: AnyField, schema: TableSchema) -> bool:
    """Whether an empty column of this type is taken."""
    wanted = schema.column(field.name)
    alone = TableSchema(fields=(wanted,), last_id=schema.last_id)
    try:
        conform(pa.schema([field]).empty_table(), alone)
    except SchemaMismatch:
        return False
    return True
