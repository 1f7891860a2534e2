"""What of a version can be exported, and in which format, by the rules of docs/interop.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from underlay.index.constants import unpack_constants
from underlay.index.root import WITH_CONSTANTS
from underlay.interop.exported.exported_version import Refusal
from underlay.interop.exported.settings import ExportSettings
from underlay.interop.iceberg.columns.defaults import default_json
from underlay.interop.iceberg.columns.layouts import JudgedLayout, LayoutProblem, judge_layout, name_mapping
from underlay.interop.iceberg.columns.partition_specs import exported_specs
from underlay.interop.iceberg.columns.types import V2, V3, IcebergType, scalar_type
from underlay.interop.iceberg.layouts_in_use import FilesByLayout
from underlay.interop.iceberg.objects.metadata import ExportedSchema
from underlay.prune.predicates.operand import format_column
from underlay.schema.cast.adapt import parts_of
from underlay.schema.table_schema import leaves_in
from underlay.schema.types import Field, TypeKind
from underlay.table.versions.snapshot import Snapshot

_WITHOUT = "Leave it out: --without {name}."
_UTC = ("UTC", "+00:00", "Etc/UTC", "Z")
_ASKED = "left out on request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is exported; nothing if something is refused."""

    schema: ExportedSchema
    left_out: dict[str, str]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]


def choose(snapshot: Snapshot, settings: ExportSettings) -> Choice:
    """What is exported of this version, and why it cannot be."""
    schema = snapshot.schema
    asked = settings.left_out(schema)
    kept = [field for field in schema.fields if field.name not in asked]
    refusals = [refusal for field in kept if (refusal := _column_refusal(field)) is not None]
    # A column of a type that Iceberg lacks says nothing more about its files.
    fields = [field for field in kept if _column_refusal(field) is None]
    exported = frozenset(leaf.id for field in fields for leaf in leaves_in(field))
    live = FilesByLayout(snapshot)
    judged = [judge_layout(layout, schema, exported) for layout in snapshot.root.layouts]
    mapping, conflicts = name_mapping((one.layout for one in judged if not one.has_ids), schema)
    if conflicts:  # perhaps of layouts that no file has any longer
        mapping, conflicts = name_mapping(
            (one.layout for one in judged if not one.has_ids and live.count(one.layout.id)), schema
        )
    refusals += _name_refusals(fields)
    refusals += _layout_refusals(judged, conflicts, live)
    refusals += _constants_refusals(snapshot, exported)
    wanted, why = _format(fields, judged, live)
    for field, reason in why.items():
        if settings.format == V2:
            refusals.append(
                Refusal(
                    subject=f"column {field}",
                    rule=reason[0],
                    reason=reason[1],
                    remedy="Export as format 3: --format 3.",
                )
            )
    refusals += _default_refusals(fields) if wanted >= V3 else []
    return Choice(
        schema=ExportedSchema(
            fields=tuple(fields),
            specs=exported_specs(snapshot.definition, schema, exported),
            mapping=mapping,
            format=settings.format or wanted,
        ),
        left_out={name: _ASKED for name in schema.names if name in asked},
        refusals=tuple(refusals),
        notes=tuple(_notes(fields, judged, live)),
    )


def _column_refusal(field: Field) -> Refusal | None:
    for leaf in leaves_in(field):
        found = scalar_type(leaf.type)
        if isinstance(found, str):
            name = format_column(leaf.path)
            rule = "X5" if leaf.type.kind.value.startswith("uint") else "types"
            return Refusal(
                subject=f"column {name}",
                rule=rule,
                reason=found,
                remedy=_WITHOUT.format(name=format_column((field.name,))),
            )
    return None


def _name_refusals(fields: Sequence[Field]) -> Iterator[Refusal]:
    """Columns that have one name in Iceberg, where dots join the names of a struct and of its fields."""
    counts = Counter(".".join(path) for field in fields for path in _paths(field, ()))
    for name, count in counts.items():
        if count > 1:
            yield Refusal(
                subject=f"column {name}",
                rule="names",
                reason="another column, or a field of a struct, has the same name in Iceberg, where dots join names",
                remedy="Rename one of them, or leave it out.",
            )


def _paths(field: Field, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    path = (*above, field.name)
    yield path
    for part in parts_of(field):
        yield from _paths(part, path)


def _layout_refusals(
    judged: Sequence[JudgedLayout], conflicts: Mapping[str, LayoutProblem], live: FilesByLayout
) -> Iterator[Refusal]:
    for one in judged:
        problems = [*one.problems, *(conflicts[ident] for ident in (one.layout.id,) if ident in conflicts)]
        if problems and live.count(one.layout.id):
            for problem in problems:
                yield Refusal(
                    subject=live.subject(one.layout.id), rule=problem.rule, reason=problem.reason, remedy=problem.remedy
                )


def _constants_refusals(snapshot: Snapshot, exported: frozenset[int]) -> Iterator[Refusal]:
    """Files whose values of a column come from their path: Iceberg has no constants of files."""
    if snapshot.root.format < WITH_CONSTANTS:
        return
    names = {leaf.id: format_column(leaf.path) for leaf in snapshot.schema.leaves}
    found: dict[int, tuple[int, str]] = {}
    for part in snapshot.parts():
        files = part.segment.files
        for row, packed in enumerate(files.constants.to_pylist()):
            if packed is None or (part.is_removed is not None and part.is_removed[row]):
                continue
            for constant in unpack_constants(packed):
                if constant.field in exported:
                    count, example = found.get(constant.field, (0, str(files.locations[row])))
                    found[constant.field] = count + 1, example
    for field, (count, example) in found.items():
        yield Refusal(
            subject=f"{count} files, such as {example}",
            rule="constants",
            reason=f"the values of column {names[field]} are in their paths and not in the files",
            remedy='Run "underlay import" to copy these files with the values, or leave the column out.',
        )


def _format(
    fields: Sequence[Field], judged: Sequence[JudgedLayout], live: FilesByLayout
) -> tuple[int, dict[str, tuple[str, str]]]:
    """The format that is needed, and the columns that need it, with rule and reason."""
    why: dict[str, tuple[str, str]] = {}
    for field in fields:
        for leaf in leaves_in(field):
            found = scalar_type(leaf.type)
            if isinstance(found, IcebergType) and found.format >= V3:
                why[field.name] = ("types", f"format 2 has no {found.text}")
            elif leaf.default is not None and any(leaf.id in one.lacks and live.count(one.layout.id) for one in judged):
                why[field.name] = ("X6", "files lack it, and format 2 has no defaults for them")
    return (V3 if why else V2), why


def _default_refusals(fields: Sequence[Field]) -> Iterator[Refusal]:
    pending = list(fields)
    while pending:
        field = pending.pop()
        pending += parts_of(field)
        try:
            default_json(field)
        except ValueError as error:
            yield Refusal(
                subject=f"column {field.name}",
                rule="X6",
                reason=str(error),
                remedy="Compact the table, or leave it out.",
            )


def _notes(fields: Sequence[Field], judged: Sequence[JudgedLayout], live: FilesByLayout) -> Iterator[str]:
    kinds = {leaf.type for field in fields for leaf in leaves_in(field)}
    if any(one.kind is TypeKind.TIME or (one.kind is TypeKind.TIMESTAMP and one.unit == "ns") for one in kinds):
        yield "Spark cannot open a table with a column of type time or timestamp(ns) through Iceberg (X11)."
    if any(one.has_unsigned and live.count(one.layout.id) for one in judged):
        yield "Spark cannot read files with unsigned integers through Iceberg, even in columns that are left out (X5)."
    if any(one.zone is not None and one.zone not in _UTC for one in kinds):
        yield "pyiceberg reads no files of timestamps with a zone other than UTC."
    folded = Counter(field.name.lower() for field in fields)
    if any(count > 1 for count in folded.values()):
        yield "Engines that ignore case cannot tell columns apart whose names differ only in case."
