"""Decides which frames Spark's own Parquet writer may write for a table, and prepares their columns.

It may if every value lands in the file as Underlay would have written it: types that Parquet and Spark share, no
partitions, no nested required columns, names that Spark can tell apart. Other frames go through Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructType

from underlay.index.root import Definition
from underlay.schema.cast.widen import is_widening
from underlay.schema.convert.arrow import scalar_of
from underlay.schema.record import from_record
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind
from underlay.spark.types.arrow_types import arrow_type
from underlay.spark.types.spark_types import quoted, spark_type

_KINDS = (
    TypeKind.BOOLEAN,
    TypeKind.INT8,
    TypeKind.INT16,
    TypeKind.INT32,
    TypeKind.INT64,
    TypeKind.FLOAT32,
    TypeKind.FLOAT64,
    TypeKind.DECIMAL,
    TypeKind.STRING,
    TypeKind.BINARY,
    TypeKind.DATE,
)
_FIELD_ID = "parquet.field.id"


def fits_native(schema: StructType, definition: Definition) -> bool:
    """Whether Spark itself can write rows with these columns, which fit the table."""
    fields = from_record(definition.schema).fields
    given = {field.name: field.dataType for field in schema.fields}
    return (
        not definition.partition_by
        and not definition.checks  # only our own writer applies these
        and _are_told_apart(fields)
        and all(_is_written_alike(field.type) and _is_given(given.get(field.name), field) for field in fields)
        and all(_are_nulls_known(field, given.get(field.name)) for field in fields)
    )


def native_columns(frame: DataFrame, definition: Definition, *, checks_text: bool) -> DataFrame:
    """The table's columns of a frame that `fits_native`. A null in a required column fails the task. So does invalid
    UTF-8 with `checks_text`, which takes about a twentieth of the time to write the text.
    """
    given = {field.name: field.dataType for field in frame.schema.fields}
    columns = []
    for field in from_record(definition.schema).fields:
        wanted = spark_type(field.type)
        if field.name not in given:
            column = f.lit(None).cast(wanted)
        else:
            found, type_ = frame[quoted(field.name)], given[field.name]
            is_wider = isinstance(type_, NullType) or (isinstance(field.type, Scalar) and type_ != wanted)
            if is_wider:
                found, type_ = found.cast(wanted), wanted
            column = _not_null(_valid(found, type_, field) if checks_text else found, type_, field)
        columns.append(column.alias(field.name, metadata={_FIELD_ID: field.id}))
    return frame.select(*columns)


def _are_told_apart(fields: Iterable[Field]) -> bool:
    """Whether names differ by more than case, which Spark may ignore, contain no dot, which separates paths, and have
    no space at either end, which Hadoop strips from the names of options.
    """
    names = [field.name for field in fields]
    is_odd = any("." in name or name != name.strip() or name[:1] <= " " or name[-1:] <= " " for name in names)
    return len({name.lower() for name in names}) == len(names) and not is_odd


def _is_written_alike(given: Type) -> bool:
    match given:
        case StructOf(fields):
            return _are_told_apart(fields) and all(_is_written_alike(field.type) for field in fields)
        case ListOf(element):
            return _is_written_alike(element.type)
        case MapOf(key, value):
            return _is_written_alike(key.type) and _is_written_alike(value.type)
    if given.kind is TypeKind.TIMESTAMP:
        return given.unit == "us"
    return given.kind in _KINDS


def _are_nulls_known(field: Field, given: DataType | None) -> bool:
    """Whether the file shows nulls where there must be none: for a flat column its footer does; for parts of a nested
    one only its schema does, since a footer also counts other nulls there.
    """
    if isinstance(field.type, Scalar):
        return True
    return not field.is_required and _is_null_free_inside(field.type, given or spark_type(field.type))


def _is_null_free_inside(wanted: Type, given: DataType) -> bool:
    """Whether Spark knows that parts which the table requires are never null."""
    parts: list[tuple[Field, DataType, bool]] = []
    match wanted, given:
        case _, NullType():
            return True
        case StructOf(fields), StructType():
            parts = [(part, one.dataType, one.nullable) for part, one in zip(fields, given.fields, strict=True)]
        case ListOf(element), ArrayType():
            parts = [(element, given.elementType, given.containsNull)]
        case MapOf(key, value), MapType():
            parts = [(key, given.keyType, False), (value, given.valueType, given.valueContainsNull)]
    return all(
        not (part.is_required and is_nullable) and _is_null_free_inside(part.type, type_)
        for part, type_, is_nullable in parts
    )


def _is_given(given: DataType | None, field: Field) -> bool:
    """Whether a column has the table's type, or one that Spark widens to it, or is missing, which must mean null.

    A type that shares only some values goes through Arrow, which checks each value.
    """
    if given is None:
        return field.default is None
    if isinstance(given, NullType):
        return True
    if isinstance(field.type, Scalar) and field.type.kind is not TypeKind.STRING:
        source = scalar_of(arrow_type(given))
        return source is not None and is_widening(source, field.type)
    return _is_same(given, spark_type(field.type))


def _is_same(given: DataType, wanted: DataType) -> bool:
    """Whether types are equal apart from nullability."""
    match given, wanted:
        case StructType(), StructType():
            return given.names == wanted.names and all(
                _is_same(one.dataType, other.dataType) for one, other in zip(given.fields, wanted.fields, strict=True)
            )
        case ArrayType(), ArrayType():
            return _is_same(given.elementType, wanted.elementType)
        case MapType(), MapType():
            return _is_same(given.keyType, wanted.keyType) and _is_same(given.valueType, wanted.valueType)
    return given == wanted


def _valid(column: Column, type_: DataType, field: Field) -> Column:
    """The column, with an error for invalid UTF-8. Its type and its inner nulls stay."""
    is_text = _is_text(column, type_)
    if is_text is None:
        return column
    problem = f"column {field.name}: text is not valid UTF-8"
    return f.when(f.coalesce(is_text, f.lit(True)), column).otherwise(_raised(problem, type_))


def _not_null(column: Column, type_: DataType, field: Field) -> Column:
    """The column, with an error for null where the table requires a value."""
    if not field.is_required:
        return column
    problem = f"column {field.name}: a required column holds null"
    return f.when(column.isNotNull(), column).otherwise(_raised(problem, type_))


def _raised(problem: str, type_: DataType) -> Column:
    return f.raise_error(f.lit(problem)).cast(type_)


def _is_text(column: Column, given: DataType) -> Column | None:
    """An expression: whether all text in a column is valid, null for no text. None when its type has no text."""
    match given:
        case StringType():
            return f.is_valid_utf8(column)
        case StructType():
            parts = [_is_text(column.getField(field.name), field.dataType) for field in given.fields]
        case ArrayType():
            parts = [_is_text_in(column, given.elementType)]
        case MapType():
            parts = [_is_text_in(f.map_keys(column), given.keyType), _is_text_in(f.map_values(column), given.valueType)]
        case _:
            parts = []
    known = [f.coalesce(part, f.lit(True)) for part in parts if part is not None]
    return reduce(Column.__and__, known) if known else None


def _is_text_in(column: Column, element: DataType) -> Column | None:
    if _is_text(column, element) is None:
        return None

    def is_valid(item: Column) -> Column:
        found = _is_text(item, element)
        return f.lit(True) if found is None else f.coalesce(found, f.lit(True))

    return f.forall(column, is_valid)
