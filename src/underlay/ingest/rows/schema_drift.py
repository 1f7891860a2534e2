"""Compares the columns of a source with those of the table: new, missing, or of another type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from underlay.errors import NewColumn, SchemaMismatch
from underlay.ingest.rows.reading import RowRules
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyField
from underlay.schema.cast.conform import conform
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.new_fields import lacking
from underlay.schema.table_schema import TableSchema
from underlay.values.no_rows import no_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The columns of a source that do not fit the table as they are."""

    new: tuple[AnyField, ...]
    """New columns, and known ones reduced to their new fields (see `lacking`)."""
    refused: tuple[str, ...]
    """Columns whose type has no value that fits the table's."""


def drift(schema: TableSchema, found: pa.Schema) -> Drift:
    """How a source's columns differ from the table's. Types that were guessed from text may be refused."""
    known = {field.name: field for field in schema.fields}
    shared = [field for field in found if field.name in known]
    other = [field for field in shared if field.type != to_arrow_type(known[field.name].type)]
    refused = [field.name for field in other if not _is_taken(field, schema)]
    return Drift(new=tuple(lacking(found, schema)), refused=tuple(refused))


def table_names(found: Sequence[str], names: Sequence[str]) -> list[str]:
    """A source's columns by the table's names: a name that differs only in case from a column that the source lacks
    means that column, unless it is ambiguous.
    """
    known, own = set(names), set(found)
    if own <= known:
        return list(found)
    given = Counter(name.casefold() for name in found if name not in known)
    free: dict[str, list[str]] = {}
    for name in names:
        if name not in own:
            free.setdefault(name.casefold(), []).append(name)

    def meant(name: str) -> str:
        alike = free.get(name.casefold(), []) if name not in known else []
        return alike[0] if len(alike) == 1 and given[name.casefold()] == 1 else name

    return [meant(name) for name in found]


def with_table_names(found: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The columns of a source by the table's names, see `table_names`."""
    return pa.schema(
        [field.with_name(name) for field, name in zip(found, table_names(found.names, names), strict=True)]
    )


def check_names(reading: RowRules, found: Sequence[str], place: str) -> None:
    """Raises SchemaMismatch when the columns of a source do not fit. `place` is the source and the line."""
    known, names, given = reading.schema.names, set(reading.schema.names), Counter(found)
    twice = sorted(name for name, count in given.items() if count > 1)
    if twice:
        raise SchemaMismatch(f"the column {format_column((twice[0],))} occurs twice", place=place)
    new = [name for name in found if name not in names]
    if new and reading.new_columns != "ignore":
        raise new_column((new[0],), known, place)
    missing = {name.casefold(): name for name in known if name not in given}
    if other := next((name for name in new if name.casefold() in missing), None):
        # ignoring it would fill a column with nulls though the source has it in another case
        raise new_column((other,), known, place)
    if len(new) == len(found):
        raise SchemaMismatch("none of its columns is in the table", place=place, found=", ".join(found[:20]))
    for field in reading.schema.fields:
        if field.name in given or field.name == reading.source_column:
            continue
        if field.is_required and field.default is None:
            raise SchemaMismatch(
                f"the column {format_column((field.name,))} is missing",
                place=place,
                found=", ".join(found[:20]),
                hint="Add it to the source, or give the column a default.",
            )


def new_column(path: tuple[str, ...], known: Sequence[str], place: str) -> NewColumn:
    """The error for a column, or a field inside one, that the table lacks."""
    alike = [other for other in known if len(path) == 1 and other.lower() == path[0].strip().lower()]
    hint = f"Did you mean {alike[0]}?" if alike else None  # what else can be done depends on the caller
    return NewColumn(f"the table has no column {format_column(path)}", place=place, hint=hint)


def _is_taken(field: AnyField, schema: TableSchema) -> bool:
    """Whether an empty column of this type is accepted."""
    wanted = schema.column(field.name)
    alone = TableSchema(fields=(wanted,), last_id=schema.last_id)
    try:
        conform(no_rows(pa.schema([field])), alone, ignore_surplus=True)
    except SchemaMismatch:
        return False
    return True
