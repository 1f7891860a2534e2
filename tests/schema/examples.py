"""Random schemas, and values of their types, for property tests."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import accumulate
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

from underlay.schema.ids import UNNUMBERED, number_fields
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind, parse_scalar

_NAMES_OF_TYPES = """
boolean int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 decimal(9,2) decimal(38,10)
string binary fixed(3) uuid date time(s) time(ms) time(us) time(ns) timestamp(s) timestamp(ms) timestamp(us)
timestamp(ns) timestamp(us,UTC) timestamp(ns,Europe/Warsaw)
"""
SCALARS = tuple(parse_scalar(text) for text in _NAMES_OF_TYPES.split())
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)


def field(name: str, type_: str | Type, id_: int = UNNUMBERED, **more: object) -> Field:
    return Field(id=id_, name=name, type=parse_scalar(type_) if isinstance(type_, str) else type_, **more)


def schema_of(**columns: str | Type) -> TableSchema:
    return number_fields([field(name, type_) for name, type_ in columns.items()])


def part(name: str, type_: Type, required: bool) -> Field:
    return Field(id=UNNUMBERED, name=name, type=type_, is_required=required)


def types() -> st.SearchStrategy[Type]:
    return st.recursive(st.sampled_from(SCALARS), _nested, max_leaves=5)


def _nested(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    flags = st.booleans()
    lists = st.builds(lambda type_, required: ListOf(part("element", type_, required)), inner, flags)
    maps = st.builds(
        lambda key, value, required: MapOf(part("key", key, True), part("value", value, required)),
        st.sampled_from(SCALARS),
        inner,
        flags,
    )
    return st.one_of(lists, maps, _fields(inner).map(StructOf))


def _fields(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[tuple[Field, ...]]:
    one = st.builds(
        lambda name, type_, required, comment: Field(
            id=UNNUMBERED, name=name, type=type_, is_required=required, comment=comment
        ),
        NAMES,
        inner,
        st.booleans(),
        st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    )
    return st.lists(one, min_size=1, max_size=3, unique_by=lambda found: found.name).map(tuple)


def schemas() -> st.SearchStrategy[TableSchema]:
    return _fields(types()).map(number_fields)


def plain_schemas() -> st.SearchStrategy[TableSchema]:
    """Without comments, which Arrow does not carry."""
    return schemas().map(lambda found: TableSchema(fields=_bare(found.fields), last_id=found.last_id))


def _bare(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(Field(id=f.id, name=f.name, type=_bare_type(f.type), is_required=f.is_required) for f in fields)


def _bare_type(type_: Type) -> Type:
    match type_:
        case StructOf(fields):
            return StructOf(_bare(fields))
        case ListOf(element):
            return ListOf(_bare((element,))[0])
        case MapOf(key, value):
            return MapOf(_bare((key,))[0], _bare((value,))[0])
    return type_


def values(field_: Field) -> st.SearchStrategy[object]:
    """Python values that pyarrow turns into an array of the field's type."""
    inner = _values(field_.type)
    return inner if field_.is_required else st.none() | inner


def _values(type_: Type) -> st.SearchStrategy[object]:
    match type_:
        case StructOf(fields):
            return st.fixed_dictionaries({inner.name: values(inner) for inner in fields})
        case ListOf(element):
            return st.lists(values(element), max_size=3)
        case MapOf(key, value):
            return st.lists(st.tuples(values(key), values(value)), max_size=3)
    return _scalars(type_)


def _scalars(type_: Scalar) -> st.SearchStrategy[object]:
    kind = type_.kind
    if kind.value.lstrip("u").startswith("int"):
        bits, unsigned = int(kind.value.lstrip("uint")), kind.value.startswith("u")
        return st.integers(0, 2**bits - 1) if unsigned else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    match kind:
        case TypeKind.BOOLEAN:
            return st.booleans()
        case TypeKind.FLOAT16 | TypeKind.FLOAT32 | TypeKind.FLOAT64:
            return st.floats(width=int(kind.value[5:]), allow_nan=False)
        case TypeKind.DECIMAL:
            top = 10**type_.precision - 1
            return st.integers(-top, top).map(lambda n: Decimal(f"{n}e-{type_.scale}"))
        case TypeKind.STRING:
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
        case TypeKind.BINARY:
            return st.binary(max_size=5)
        case TypeKind.FIXED:
            return st.binary(min_size=type_.length, max_size=type_.length)
        case TypeKind.UUID:
            return st.binary(min_size=16, max_size=16).map(lambda b: UUID(bytes=b).bytes)
        case TypeKind.DATE:
            return st.dates(date(1, 1, 1))
        case TypeKind.TIME:
            return st.integers(0, 86_399)
    return st.integers(-(2**31), 2**31)


def table_of(arrow: pa.Schema, rows: list[dict[str, object]]) -> pa.Table:
    return pa.table([array_of([row[f.name] for row in rows], f.type) for f in arrow], schema=arrow)


def array_of(cells: list[object], type_: pa.DataType) -> pa.Array:
    """As `pa.array`, which cannot make UUIDs inside other types."""
    if isinstance(type_, pa.UuidType):
        return pa.ExtensionArray.from_storage(type_, pa.array(cells, pa.binary(16)))
    mask = pa.array([cell is None for cell in cells], pa.bool_())
    if isinstance(type_, pa.StructType):
        parts = [array_of([cell and cell[f.name] for cell in cells], f.type) for f in type_]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=mask)
    if not isinstance(type_, pa.ListType | pa.MapType):
        return pa.array(cells, type_)
    items = [item for cell in cells for item in cell or ()]
    offsets = pa.array([0, *accumulate(len(cell or ()) for cell in cells)], pa.int32())
    if isinstance(type_, pa.ListType):
        return pa.ListArray.from_arrays(offsets, array_of(items, type_.value_type), type=type_, mask=mask)
    keys = array_of([key for key, _ in items], type_.key_type)
    return pa.MapArray.from_arrays(
        offsets, keys, array_of([value for _, value in items], type_.item_type), type=type_, mask=mask
    )
