"""Columns as Delta has them, and what cannot be exported: Delta finds columns in files by name, with the table's types.

Rules of docs/interop.md: no registered files (X9), no renamed, widened or defaulted columns in files that are older
(X6), and required columns only with the feature that Spark wants for them (X12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from underlay.index.entry import FileLayout
from underlay.index.intake.file_type import file_type
from underlay.index.intake.schema_match import schema_of, source_fields
from underlay.index.intake.shape import ColumnForm, ColumnShape, shapes_of
from underlay.index.keys import is_own
from underlay.interop.exported.exported_version import Refusal
from underlay.interop.exported.settings import ExportSettings
from underlay.interop.iceberg.columns.types import Json
from underlay.interop.iceberg.layouts_in_use import FilesByLayout
from underlay.parquet.footer.logical import LogicalKind
from underlay.prune.predicates.operand import format_column
from underlay.schema.cast.adapt import SourceField, parts_of
from underlay.schema.table_schema import TableSchema, leaves_in
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind
from underlay.table.versions.snapshot import Snapshot

_PLAIN = {
    TypeKind.BOOLEAN: "boolean",
    TypeKind.INT8: "byte",
    TypeKind.INT16: "short",
    TypeKind.INT32: "integer",
    TypeKind.INT64: "long",
    TypeKind.FLOAT32: "float",
    TypeKind.FLOAT64: "double",
    TypeKind.STRING: "string",
    TypeKind.BINARY: "binary",
    TypeKind.DATE: "date",
}
NTZ = "timestamp_ntz"
_REWRITE = 'Run "underlay compact" with an order, which rewrites all files, or leave the column out.'


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaChoice:
    """What is exported; nothing if something is refused."""

    fields: tuple[Field, ...]
    left_out: dict[str, str]
    refusals: tuple[Refusal, ...]

    @property
    def schema_json(self) -> Json:
        """The columns."""
        return {"type": "struct", "fields": [_field_json(field) for field in self.fields]}

    @property
    def has_ntz(self) -> bool:
        """Whether a column is a timestamp without a zone."""
        return any(_scalar(leaf.type) == NTZ for field in self.fields for leaf in leaves_in(field))

    @property
    def has_required(self) -> bool:
        """Whether a column, or a part of one, may not be null."""
        pending = list(self.fields)
        while pending:
            field = pending.pop()
            if field.is_required:
                return True
            pending += [] if isinstance(field.type, MapOf) else parts_of(field)
        return False


def choose_delta(snapshot: Snapshot, settings: ExportSettings) -> DeltaChoice:
    """What is exported of this version, and why it cannot be."""
    schema = snapshot.schema
    asked = settings.left_out(schema)
    kept = [field for field in schema.fields if field.name not in asked]
    refusals = [
        Refusal(
            subject=f"column {format_column(leaf.path)}",
            rule="types",
            reason=f"Delta has no type for {leaf.type}",
            remedy=f"Leave it out: --without {format_column((field.name,))}.",
        )
        for field in kept
        for leaf in leaves_in(field)
        if _scalar(leaf.type) is None
    ]
    fields = [field for field in kept if all(_scalar(leaf.type) is not None for leaf in leaves_in(field))]
    refusals += _registered(snapshot)
    if not any(one.rule == "X9" for one in refusals):
        live = FilesByLayout(snapshot)
        for layout in snapshot.root.layouts:
            problems = list(dict.fromkeys(_layout_problems(layout, fields, schema)))
            if problems and live.count(layout.id):
                subject = live.subject(layout.id)
                refusals += [
                    Refusal(subject=subject, rule=rule, reason=reason, remedy=_REWRITE) for rule, reason in problems
                ]
    return DeltaChoice(
        fields=tuple(fields),
        left_out={name: "left out on request" for name in schema.names if name in asked},
        refusals=tuple(refusals),
    )


def _registered(snapshot: Snapshot) -> Iterator[Refusal]:
    """Registered files: DuckDB and Polars look for them below the table's folder."""
    count, example = 0, ""
    for part in snapshot.parts():
        for row, location in enumerate(map(str, part.segment.locations.to_pylist())):
            if not is_own(location) and (part.is_removed is None or not part.is_removed[row]):
                count, example = count + 1, example or location
    if count:
        yield Refusal(
            subject=f"{count} files, such as {example}",
            rule="X9",
            reason="they are registered, and readers of Delta look for files in the table's folder only",
            remedy='Run "underlay import" to copy them, or export as iceberg.',
        )


def _layout_problems(layout: FileLayout, fields: Sequence[Field], schema: TableSchema) -> Iterator[tuple[str, str]]:
    shapes = shapes_of(schema_of(layout.elements))
    yield from _group_problems(layout, shapes, source_fields(layout, schema), fields, ())


def _group_problems(
    layout: FileLayout,
    shapes: Sequence[ColumnShape],
    sources: Sequence[SourceField],
    fields: Sequence[Field],
    path: tuple[str, ...],
) -> Iterator[tuple[str, str]]:
    """What is wrong with the columns of a file, or the fields of one of its structs."""
    by_name = {shape.node.name: (shape, source) for shape, source in zip(shapes, sources, strict=True)}
    known = {source.id for source in sources}
    for field in fields:
        place = ".".join((*path, field.name))
        found = by_name.get(field.name)
        if found is None and field.id not in known:
            if field.default is not None or field.is_required:
                yield "X6", f"they lack column {place}, whose default Delta does not know"
        elif found is None or found[1].id != field.id:
            yield "names", f"column {place} has another name in them, and Delta finds columns by name"
        else:
            yield from _column_problems(layout, found[0], found[1], field, (*path, field.name))


def _column_problems(
    layout: FileLayout, shape: ColumnShape, source: SourceField, field: Field, path: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    if isinstance(field.type, StructOf) and shape.form is ColumnForm.STRUCT:
        yield from _group_problems(layout, shape.children, source.children, field.type.fields, path)
    elif not isinstance(field.type, Scalar):
        for child, inner, part in zip(shape.children, source.children, parts_of(field), strict=True):
            yield from _column_problems(layout, child, inner, part, (*path, part.name))
    elif not _is_same(shape, field.type):
        found = file_type(shape.node)
        yield "types", f"column {'.'.join(path)} is {found} in them, and readers of Delta expect {field.type}"


def _is_same(shape: ColumnShape, wanted: Scalar) -> bool:
    found = file_type(shape.node)
    if found is None:
        return False
    if wanted.kind is TypeKind.TIMESTAMP:
        return (
            found.kind is wanted.kind and found.unit in ("ms", "us") and (found.zone is None) == (wanted.zone is None)
        )
    is_text = wanted.kind is not TypeKind.STRING or shape.node.logical.kind is LogicalKind.STRING
    return found == wanted and is_text


def _scalar(scalar: Scalar) -> str | None:
    if scalar.kind is TypeKind.DECIMAL:
        return f"decimal({scalar.precision},{scalar.scale})"
    if scalar.kind is TypeKind.TIMESTAMP and scalar.unit != "ns":
        return "timestamp" if scalar.zone else NTZ
    return _PLAIN.get(scalar.kind)


def _type_json(field: Field) -> Json:
    match field.type:
        case Scalar() as scalar:
            return _scalar(scalar)
        case StructOf(fields):
            return {"type": "struct", "fields": [_field_json(one) for one in fields]}
        case ListOf(element):
            return {"type": "array", "elementType": _type_json(element), "containsNull": not element.is_required}
        case MapOf(key, value):
            return {
                "type": "map",
                "keyType": _type_json(key),
                "valueType": _type_json(value),
                "valueContainsNull": not value.is_required,
            }


def _field_json(field: Field) -> Json:
    metadata = {"comment": field.comment} if field.comment else {}
    return {
        "name": field.name,
        "type": _type_json(field),
        "nullable": not field.is_required,
        "metadata": metadata,
    }
