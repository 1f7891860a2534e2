"""Whether other engines read files of a layout as the table does, and the names of columns for files without ids.

Rules of docs/interop.md: a file has the table's ids at all of its columns, or none at all (X2); the name mapping lists
every column of every file without ids (X3); no milliseconds (X1), no unsigned integers (X5), nothing that Iceberg's
rules of promotion do not widen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from underlay.index.entry import FileLayout
from underlay.index.intake.file_type import file_type, holds_only_nulls, is_int96
from underlay.index.intake.schema_match import NO_FIELD, schema_of, source_fields
from underlay.index.intake.shape import ColumnForm, ColumnShape, shapes_of
from underlay.interop.iceberg.columns.types import Json
from underlay.parquet.footer.logical import LogicalKind
from underlay.parquet.footer.schema import SchemaNode
from underlay.schema.cast.adapt import SourceField, parts_of
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, TypeKind

_SIGNED = (TypeKind.INT8, TypeKind.INT16, TypeKind.INT32, TypeKind.INT64)
_UNSIGNED = (TypeKind.UINT8, TypeKind.UINT16, TypeKind.UINT32, TypeKind.UINT64)
_REWRITE = (
    'Import registered files ("underlay import"), then encode all files again: "underlay compact --order sort", or'
    ' "zorder(a, b)" in a table without an order. Or leave the column out.'
)
_PART_NAMES = {ColumnForm.LIST: (("element",),), ColumnForm.MAP: (("key",), ("value",))}
"""What Iceberg calls the parts of lists and maps, besides what the file calls them."""


@dataclass(frozen=True, slots=True)
class LayoutProblem:
    """Why files of a layout cannot be exported."""

    rule: str
    reason: str
    remedy: str = _REWRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLayout:
    """A layout, and what is wrong with it."""

    layout: FileLayout
    problems: tuple[LayoutProblem, ...]
    has_ids: bool
    lacks: frozenset[int]
    """Exported leaves that the files lack."""
    has_unsigned: bool
    """Whether any column is an unsigned integer, exported or not."""


@dataclass(slots=True)
class _Walk:
    schema: TableSchema
    exported: frozenset[int]
    wrong_ids: list[str] = field(default_factory=list)
    without_id: list[str] = field(default_factory=list)
    id_count: int = 0
    problems: list[LayoutProblem] = field(default_factory=list)


def judge_layout(layout: FileLayout, schema: TableSchema, exported: frozenset[int]) -> JudgedLayout:
    """Whether files of this layout can be exported. `exported` are ids of leaves."""
    parsed = schema_of(layout.elements)
    walk = _Walk(schema, exported)
    for shape, source in zip(shapes_of(parsed), source_fields(layout, schema), strict=True):
        _walk(walk, layout, shape, source, (shape.node.name,))
    problems = list(walk.problems)
    if walk.id_count and (walk.wrong_ids or walk.without_id):
        named = ", ".join((*walk.wrong_ids, *walk.without_id)[:5])
        problems.append(LayoutProblem("X2", f"the field ids in the files are not the table's, at {named}"))
    return JudgedLayout(
        layout=layout,
        problems=tuple(problems),
        has_ids=walk.id_count > 0,
        lacks=exported - set(layout.fields),
        has_unsigned=any(
            (found := file_type(leaf.node)) is not None and found.kind in _UNSIGNED for leaf in parsed.leaves
        ),
    )


def _walk(walk: _Walk, layout: FileLayout, shape: ColumnShape, source: SourceField, path: tuple[str, ...]) -> None:
    ident = _ident(layout, shape, source)
    given = shape.node.field_id
    name = ".".join(path)
    if given is not None:
        walk.id_count += 1
        is_known = given == ident if ident is not None else given > walk.schema.last_id
        if not is_known and not _is_dropped(walk, shape, source, given):
            walk.wrong_ids.append(name)
    elif ident is not None and not walk.exported.isdisjoint(layout.fields[leaf] for leaf in shape.leaves):
        walk.without_id.append(name)
    if shape.form is ColumnForm.SCALAR and ident in walk.exported:
        problem = _type_problem(shape.node, walk.schema.leaf_by_id[ident].type, name)
        if problem is not None:
            walk.problems.append(problem)
    for child, inner in zip(shape.children, source.children, strict=True):
        _walk(walk, layout, child, inner, (*path, child.node.name))


def _ident(layout: FileLayout, shape: ColumnShape, source: SourceField) -> int | None:
    """The table's id of a column of the file, or of one that was dropped; None for one that the table never had."""
    if shape.form is ColumnForm.SCALAR:
        found = layout.fields[shape.begin]
        return None if found == NO_FIELD else found
    return source.id


def _is_dropped(walk: _Walk, shape: ColumnShape, source: SourceField, given: int) -> bool:
    """Whether a group may be a dropped one of ours: ids are never reused, so its id then names nothing else."""
    return shape.form is not ColumnForm.SCALAR and source.id is None and given not in _all_ids(walk.schema)


def _all_ids(schema: TableSchema) -> set[int]:
    found: set[int] = set()
    pending = list(schema.fields)
    while pending:
        one = pending.pop()
        found.add(one.id)
        pending += parts_of(one)
    return found


def _type_problem(node: SchemaNode, wanted: Scalar, name: str) -> LayoutProblem | None:
    found = file_type(node)
    if is_int96(node):
        return LayoutProblem("types", f"column {name} is INT96 in the files, which readers take for different times")
    if holds_only_nulls(node) or found is None:
        return LayoutProblem("types", f"column {name} has a type in the files that readers do not cast")
    if found.unit == "ms":
        return LayoutProblem("X1", f"column {name} is in milliseconds in the files, which Spark takes for microseconds")
    if found.kind in _UNSIGNED:
        return LayoutProblem("X5", f"column {name} is unsigned in the files, which Spark does not read through Iceberg")
    if not _is_promoted(found, wanted) or (
        wanted.kind is TypeKind.STRING and node.logical.kind is not LogicalKind.STRING
    ):
        return LayoutProblem("types", f"column {name} is {found} in the files, which readers do not widen to {wanted}")
    return None


def _is_promoted(found: Scalar, wanted: Scalar) -> bool:
    """Whether Iceberg's readers read this type of a file as that type of a table."""
    if found.kind in _SIGNED and wanted.kind in _SIGNED:
        return _SIGNED.index(found.kind) <= _SIGNED.index(wanted.kind)
    match found.kind, wanted.kind:
        case TypeKind.FLOAT32, TypeKind.FLOAT64:
            return True
        case TypeKind.DECIMAL, TypeKind.DECIMAL:
            return found.scale == wanted.scale and found.precision <= wanted.precision
        case (TypeKind.TIME, TypeKind.TIME) | (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP):
            stored = "us" if wanted.unit in ("s", "ms") else wanted.unit
            return found.unit == stored and (found.zone is None) == (wanted.zone is None)
    return found == wanted


@dataclass(slots=True)
class _Named:
    """A column of the name mapping. `id` is None until one above all of the table's is given to it."""

    id: int | None
    names: list[str]
    parts: list[_Named]


def name_mapping(layouts: Iterable[FileLayout], schema: TableSchema) -> tuple[Json | None, dict[str, LayoutProblem]]:
    """The names of all columns of files without ids: X3. None when there are no such files. Layouts that contradict an
    earlier one, since a name meant another column then, are not in it; they are returned with the reason."""
    tops: list[_Named] = []
    conflicts: dict[str, LayoutProblem] = {}
    is_any = False
    for layout in layouts:
        is_any = True
        mine = list(_named(layout, shapes_of(schema_of(layout.elements)), source_fields(layout, schema)))
        clash = _clash(tops, mine, ())
        if clash is not None:
            reason = f"column {clash} is another column of the table than in other files without field ids"
            conflicts[layout.id] = LayoutProblem("X3", reason)
            continue
        _merge(tops, mine)
    numbers = _Numbers(schema.last_id)
    return ([_mapped(one, numbers) for one in tops] if is_any else None), conflicts


@dataclass(slots=True)
class _Numbers:
    last: int

    def next(self) -> int:
        self.last += 1
        return self.last


def _named(
    layout: FileLayout, shapes: Iterable[ColumnShape], sources: Iterable[SourceField], form: ColumnForm | None = None
) -> Iterator[_Named]:
    for at, (shape, source) in enumerate(zip(shapes, sources, strict=True)):
        known = _PART_NAMES[form][at] if form in _PART_NAMES else ()
        yield _Named(
            _ident(layout, shape, source),
            list(dict.fromkeys((*known, shape.node.name))),
            list(_named(layout, shape.children, source.children, shape.form)),
        )


def _clash(known: list[_Named], mine: list[_Named], path: tuple[str, ...]) -> str | None:
    for one in mine:
        for other in known:
            if set(one.names).isdisjoint(other.names):
                continue
            if one.id != other.id:
                return ".".join((*path, one.names[-1]))
            if (inner := _clash(other.parts, one.parts, (*path, one.names[-1]))) is not None:
                return inner
    return None


def _merge(known: list[_Named], mine: list[_Named]) -> None:
    for one in mine:
        same = [
            other
            for other in known
            if (one.id is not None and other.id == one.id) or not set(one.names).isdisjoint(other.names)
        ]
        if not same:
            known.append(one)
            continue
        same[0].names = list(dict.fromkeys((*same[0].names, *one.names)))
        _merge(same[0].parts, one.parts)


def _mapped(one: _Named, numbers: _Numbers) -> Json:
    found: dict[str, Json] = {"field-id": numbers.next() if one.id is None else one.id, "names": one.names}
    if one.parts:
        found["fields"] = [_mapped(part, numbers) for part in one.parts]
    return found
