"""Type codes of columns that QuestDB did not write: its rules, one by one."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.schema import Leaf
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.thrift.encode import I8, I32, I64, Bool, List, Struct, ThriftBinary, Value, encode
from underlay.parquet.thrift.tree import ThriftKind
from underlay.pm.convert.header import infer_type
from underlay.pm.format.types import TIMESTAMP_NS, TIMESTAMP_US, UNKNOWN, Tag, array_code, decimal_code
from underlay.values.physical import PhysicalType


def written(type_: pa.DataType, **options: Any) -> int:
    """The code of a column that pyarrow writes; of the first leaf."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array([], type_)}), sink, **options)
    return infer_type(load_footer(sink).footer.schema.leaves[0])


WRITTEN = {
    "bool": (pa.bool_(), Tag.BOOLEAN),
    "int8": (pa.int8(), Tag.BYTE),
    "int16": (pa.int16(), Tag.SHORT),
    "int32": (pa.int32(), Tag.INT),
    "int64": (pa.int64(), Tag.LONG),
    "uint8": (pa.uint8(), Tag.INT),
    "uint16": (pa.uint16(), Tag.INT),
    "uint32": (pa.uint32(), Tag.INT),
    "uint64": (pa.uint64(), Tag.LONG),
    "float": (pa.float32(), Tag.FLOAT),
    "double": (pa.float64(), Tag.DOUBLE),
    "date": (pa.date32(), Tag.DATE),
    "time of day in milliseconds": (pa.time32("ms"), Tag.INT),
    "time of day in microseconds": (pa.time64("us"), Tag.LONG),
    "milliseconds": (pa.timestamp("ms"), Tag.DATE),
    "microseconds": (pa.timestamp("us"), TIMESTAMP_US),
    "nanoseconds": (pa.timestamp("ns"), TIMESTAMP_NS),
    "microseconds with a zone": (pa.timestamp("us", "Asia/Kolkata"), TIMESTAMP_US),
    "text": (pa.string(), Tag.VARCHAR),
    "binary": (pa.binary(), Tag.BINARY),
    "decimal": (pa.decimal128(20, 3), decimal_code(20, 3)),
    "wide decimal": (pa.decimal256(76, 76), decimal_code(76, 76)),
    "uuid": (pa.uuid(), Tag.UUID),
    "16 bytes": (pa.binary(16), Tag.LONG128),
    "32 bytes": (pa.binary(32), Tag.LONG256),
    "12 bytes": (pa.binary(12), UNKNOWN),
    "float16": (pa.float16(), UNKNOWN),
    "list of doubles": (pa.list_(pa.float64()), array_code(1)),
    "list of lists of doubles": (pa.list_(pa.list_(pa.float64())), array_code(2)),
    "list of structs of a double": (pa.list_(pa.struct([("x", pa.float64())])), array_code(1)),
    "list of structs of two": (pa.list_(pa.struct([("x", pa.float64()), ("y", pa.int8())])), Tag.DOUBLE),
    "list of floats": (pa.list_(pa.float32()), Tag.FLOAT),
    "list of longs": (pa.list_(pa.int64()), Tag.LONG),
    "struct of a double": (pa.struct([("x", pa.float64())]), Tag.DOUBLE),
    "map": (pa.map_(pa.string(), pa.float64()), Tag.VARCHAR),
}


@pytest.mark.parametrize(("type_", "code"), WRITTEN.values(), ids=WRITTEN)
def test_a_column_of_pyarrow_has_the_code_that_questdb_gives_it(type_: pa.DataType, code: int):
    assert written(type_) == code


@pytest.mark.parametrize(("precision", "integer"), [(9, True), (9, False), (18, True), (18, False), (38, False)])
def test_a_decimal_has_its_code_in_every_storage(precision: int, integer: bool):
    assert written(pa.decimal128(precision, 2), store_decimal_as_integer=integer) == decimal_code(precision, 2)


def test_int96_is_a_timestamp_of_nanoseconds():
    assert written(pa.timestamp("ns"), use_deprecated_int96_timestamps=True) == TIMESTAMP_NS


def crafted(
    physical: PhysicalType,
    *,
    converted: int | None = None,
    logical: Struct | None = None,
    length: int = 0,
    precision: int = 0,
    scale: int = 0,
) -> Leaf:
    """A leaf with exactly these fields in its schema element."""
    fields: dict[int, Value] = {1: I32(physical), 2: I32(length), 3: I32(0), 4: ThriftBinary(b"c")}
    if converted is not None:
        fields[6] = I32(converted)
    if precision:
        fields |= {7: I32(scale), 8: I32(precision)}
    if logical is not None:
        fields[10] = logical
    elements = (Struct({4: ThriftBinary(b"schema"), 5: I32(1)}), Struct(fields))
    footer = {1: I32(1), 2: List(ThriftKind.STRUCT, elements), 3: I64(0), 4: List(ThriftKind.STRUCT, ())}
    return Footer.parse(encode(Struct(footer))).schema.leaves[0]


INT32, INT64, BYTES, FIXED = (
    PhysicalType.INT32,
    PhysicalType.INT64,
    PhysicalType.BYTE_ARRAY,
    PhysicalType.FIXED_LEN_BYTE_ARRAY,
)


def unit(number: int) -> Struct:
    return Struct({8: Struct({1: Bool(True), 2: Struct({number: Struct({})})})})


def integer(bits: int, signed: bool) -> Struct:
    return Struct({10: Struct({1: I8(bits), 2: Bool(signed)})})


CRAFTED = {
    "milliseconds by converted type alone": (crafted(INT64, converted=9), Tag.LONG),
    "microseconds by converted type alone": (crafted(INT64, converted=10), Tag.LONG),
    "microseconds by logical type alone": (crafted(INT64, logical=unit(2)), TIMESTAMP_US),
    "nanoseconds by logical type alone": (crafted(INT64, logical=unit(3)), TIMESTAMP_NS),
    "the logical type before the converted": (crafted(INT64, converted=9, logical=unit(2)), TIMESTAMP_US),
    "unsigned long by converted type": (crafted(INT64, converted=14), Tag.LONG),
    "byte by converted type": (crafted(INT32, converted=15), Tag.BYTE),
    "short by converted type": (crafted(INT32, converted=16), Tag.SHORT),
    "int by converted type": (crafted(INT32, converted=17), Tag.INT),
    "int by logical type": (crafted(INT32, logical=integer(32, True)), Tag.INT),
    "unsigned byte": (crafted(INT32, logical=integer(8, False)), Tag.INT),
    "date by converted type": (crafted(INT32, converted=6), Tag.DATE),
    "date by logical type": (crafted(INT32, logical=Struct({6: Struct({})})), Tag.DATE),
    "time of day by converted type": (crafted(INT32, converted=7), Tag.INT),
    "text by converted type": (crafted(BYTES, converted=0), Tag.VARCHAR),
    "enum": (crafted(BYTES, converted=4), Tag.BINARY),
    "enum by logical type": (crafted(BYTES, logical=Struct({4: Struct({})})), Tag.BINARY),
    "json": (crafted(BYTES, converted=19), Tag.BINARY),
    "bson": (crafted(BYTES, converted=20), Tag.BINARY),
    "decimal in bytes": (crafted(BYTES, converted=5, precision=10, scale=2), decimal_code(10, 2)),
    "decimal in an int": (crafted(INT32, converted=5, precision=4, scale=4), decimal_code(4, 4)),
    "decimal in a long": (crafted(INT64, converted=5, precision=18), decimal_code(18, 0)),
    "decimal in 16 bytes": (crafted(FIXED, converted=5, precision=30, length=16), decimal_code(30, 0)),
    "decimal without digits": (crafted(INT32, converted=5), UNKNOWN),
    "decimal with too many digits": (crafted(BYTES, converted=5, precision=77), UNKNOWN),
    "decimal with more scale than digits": (crafted(BYTES, converted=5, precision=3, scale=4), UNKNOWN),
    "uuid of another length": (crafted(FIXED, length=15, logical=Struct({14: Struct({})})), UNKNOWN),
    "int96 with a converted type": (crafted(PhysicalType.INT96, converted=9), UNKNOWN),
    "interval": (crafted(FIXED, converted=21, length=12), UNKNOWN),
}


@pytest.mark.parametrize(("leaf", "code"), CRAFTED.values(), ids=CRAFTED)
def test_a_column_of_another_writer_has_the_code_that_questdb_gives_it(leaf: Leaf, code: int):
    assert infer_type(leaf) == code
