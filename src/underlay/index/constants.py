"""Constants: columns that a file does not have, and that have one value for all of its rows.

A constant has the type that its column had when the file was registered, and its value as the text that `default`
stores. If the column was widened since, the value is widened as values in files are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
import pyarrow as pa

from underlay.errors import InvalidRequest, Malformed
from underlay.index.entry import FileConstant
from underlay.index.sealed_json import UNDECODED
from underlay.schema.arrow_aliases import AnyArray, AnyScalar
from underlay.schema.cast.exact import cast_exactly
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.default import default_scalar, format_default
from underlay.schema.types import Field, Scalar, parse_scalar

_DECODER = msgspec.msgpack.Decoder(tuple[FileConstant, ...])


def pack_constants(constants: Sequence[FileConstant]) -> bytes | None:
    """The constants of a file as bytes; None for a file without any."""
    return msgspec.msgpack.encode(tuple(constants)) if constants else None


@lru_cache(maxsize=4096)
def unpack_constants(data: bytes | None) -> tuple[FileConstant, ...]:
    """The constants of a file. Raises Malformed."""
    if data is None:
        return ()
    try:
        return _DECODER.decode(data)
    except UNDECODED as error:
        raise Malformed(f"not the constants of a file: {error}") from error


def constants_by_field(data: bytes | None) -> Mapping[int, FileConstant]:
    """The constants of a file by field id. Raises Malformed."""
    return {constant.field: constant for constant in unpack_constants(data)}


def constant_of(field: Field, value: AnyScalar | None) -> FileConstant:
    """The constant of a column that is a single value; None is null. Raises InvalidRequest."""
    if not isinstance(field.type, Scalar):
        raise InvalidRequest("a nested column cannot be a constant", place=field.name)
    text = None if value is None else format_default(value, field.type)
    return FileConstant(field=field.id, type=str(field.type), value=text)


@lru_cache(maxsize=4096)
def constant_scalar(constant: FileConstant, type_: Scalar) -> AnyScalar | None:
    """The value in a column's type now; None for null. Raises Malformed, SchemaMismatch."""
    if constant.value is None:
        return None
    try:
        held = parse_scalar(constant.type)
        found = default_scalar(Field(id=constant.field, name=str(constant.field), type=held, default=constant.value))
    except InvalidRequest as error:
        raise Malformed(f"not a constant: {error}") from error
    if found is None or held == type_:
        return found
    return cast_exactly(pa.repeat(found, 1), type_, (str(constant.field),))[0]


def constant_array(constant: FileConstant, field: Field, row_count: int) -> AnyArray:
    """The column of a file with this constant. Raises Malformed, SchemaMismatch."""
    value = constant_scalar(constant, field.type) if isinstance(field.type, Scalar) else None
    return pa.nulls(row_count, to_arrow_type(field.type)) if value is None else pa.repeat(value, row_count)
