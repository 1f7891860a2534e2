"""Maps Arrow arrays to the pruner's types: the domain of an Arrow type, and its values as that domain compares them.

Integers, booleans and points in time become plain integers, text and binary become bytes; floats and decimals stay.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import UnknownColumn
from underlay.prune.domains.byte_strings import Binary, FixedBinary, Text, Uuids
from underlay.prune.domains.domain import Domain, Unordered
from underlay.prune.domains.encoded_integers import Booleans, Decimals, Times, Unit
from underlay.prune.domains.floats import Floats
from underlay.prune.domains.integers import Integers
from underlay.prune.domains.time_of_day import TimesOfDay
from underlay.prune.predicates.operand import ColumnPath, format_column

AnyArray: TypeAlias = "pa.Array[Any]"  # Any: scalars of every type

_UNITS = {"s": Unit.SECOND, "ms": Unit.MILLISECOND, "us": Unit.MICROSECOND, "ns": Unit.NANOSECOND}
_UUID_NAME = "arrow.uuid"


def read_column(batch: pa.RecordBatch, path: ColumnPath) -> AnyArray:
    """A column, or a field of a struct, which is null where a struct above it is. Raises UnknownColumn."""
    array = batch.column(_index(batch.schema, path, path[0]))
    for name in path[1:]:
        if not pa.types.is_struct(array.type):
            raise UnknownColumn(f"there is no column {format_column(path)}", hint=f"{array.type} has no fields.")
        array = pc.struct_field(array, [_index(pa.schema(list(array.type)), path, name)])
    return array


def stored_values(array: AnyArray) -> tuple[Domain, AnyArray]:
    """The domain of an array and its values as that domain's keys."""
    if isinstance(array, pa.ExtensionArray):
        if array.type.extension_name == _UUID_NAME:
            return Uuids(), array.storage.cast(pa.binary())
        return stored_values(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return stored_values(array.dictionary_decode())
    if isinstance(array, pa.RunEndEncodedArray):
        return stored_values(pc.call_function("run_end_decode", [array]))
    domain = domain_of(array.type)
    target = _storage_type(array.type)
    return domain, array if target is None else array.cast(target)


def domain_of(type_: pa.DataType) -> Domain:
    """How values of an Arrow type that stores itself are ordered."""
    types = pa.types
    if types.is_boolean(type_):
        return Booleans()
    if types.is_integer(type_):
        return Integers(64 if type_.bit_width == 64 else 32, signed=types.is_signed_integer(type_))
    if types.is_floating(type_):
        return Floats(64 if types.is_float64(type_) else 32)
    if isinstance(type_, pa.Decimal32Type | pa.Decimal64Type | pa.Decimal128Type | pa.Decimal256Type):
        return Decimals(type_.precision, type_.scale, None)
    if isinstance(type_, pa.TimestampType):
        return Times(_UNITS[type_.unit])
    if isinstance(type_, pa.Time32Type | pa.Time64Type):
        return TimesOfDay(_UNITS[type_.unit])
    if types.is_date(type_):
        return Times(Unit.DAY, 32) if types.is_date32(type_) else Times(Unit.MILLISECOND)
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return Text()
    if isinstance(type_, pa.FixedSizeBinaryType):
        return FixedBinary(type_.byte_width)
    if types.is_binary(type_) or types.is_large_binary(type_) or types.is_binary_view(type_):
        return Binary()
    return Unordered(str(type_))


def _storage_type(type_: pa.DataType) -> pa.DataType | None:
    """What the values are cast to before they are compared; None for types that compare as they are."""
    types = pa.types
    if types.is_boolean(type_):
        return pa.uint8()
    if types.is_float16(type_):
        return pa.float32()
    if types.is_date32(type_) or types.is_time32(type_):
        return pa.int32()
    if types.is_date64(type_) or types.is_time64(type_) or types.is_timestamp(type_):
        return pa.int64()
    if types.is_large_string(type_):
        return pa.large_binary()
    is_octets = isinstance(domain_of(type_), Text | Binary)
    return pa.binary() if is_octets and not types.is_large_binary(type_) else None


def _index(schema: pa.Schema, path: ColumnPath, name: str) -> int:
    found = schema.get_all_field_indices(name)
    if len(found) != 1:
        problem = "there is no column" if not found else "there is more than one column"
        raise UnknownColumn(f"{problem} {format_column(path)}")
    return found[0]
