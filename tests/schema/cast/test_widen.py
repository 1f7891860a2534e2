from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from underlay.errors import SchemaMismatch
from underlay.schema.cast.widen import is_widening, widen
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.types import parse_scalar

WIDENINGS = [
    ("int8", "int64"),
    ("uint8", "int16"),
    ("uint32", "int64"),
    ("uint8", "uint64"),
    ("int16", "float32"),
    ("int32", "float64"),
    ("uint32", "float64"),
    ("float16", "float32"),
    ("float32", "float64"),
    ("decimal(9,2)", "decimal(20,2)"),
    ("decimal(9,2)", "decimal(20,4)"),
    ("fixed(16)", "uuid"),
    ("fixed(3)", "binary"),
    ("time(ms)", "time(us)"),
    ("time(ms)", "time(s)"),
    ("timestamp(ms)", "timestamp(us)"),
    ("timestamp(us,UTC)", "timestamp(us,Asia/Tokyo)"),
]
REFUSED = [
    ("int64", "int32"),
    ("uint8", "int8"),
    ("int8", "uint8"),
    ("uint64", "int64"),
    ("int32", "float32"),
    ("int64", "float64"),
    ("float64", "float32"),
    ("decimal(9,2)", "decimal(9,3)"),
    ("decimal(9,2)", "decimal(20,1)"),
    ("date", "timestamp(us)"),
    ("timestamp(us)", "timestamp(us,UTC)"),
    ("timestamp(us,UTC)", "timestamp(us)"),
    ("timestamp(us)", "timestamp(ms)"),
    ("string", "binary"),
    ("binary", "string"),
    ("int32", "string"),
    ("int32", "decimal(20,0)"),
    ("fixed(15)", "uuid"),
    ("boolean", "int32"),
]


@pytest.mark.parametrize(("source", "target"), WIDENINGS)
def test_a_type_widens_to_one_that_holds_all_its_values(source, target):
    assert is_widening(parse_scalar(source), parse_scalar(target))


@pytest.mark.parametrize(("source", "target"), WIDENINGS)
def test_arrow_casts_every_widening(source, target):
    array = pa.nulls(2, to_arrow_type(parse_scalar(source)))
    assert widen(array, parse_scalar(target), ("c",)).type == to_arrow_type(parse_scalar(target))


@pytest.mark.parametrize(("source", "target"), REFUSED)
def test_a_type_does_not_become_one_that_loses_values(source, target):
    with pytest.raises(SchemaMismatch, match="c: the column has another type"):
        widen(pa.nulls(0, to_arrow_type(parse_scalar(source))), parse_scalar(target), ("c",))


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array(["a", "a", None]).dictionary_encode(), "string"),
        (pa.array(["a", "a", None], pa.large_string()), "string"),
        (pa.array(["a", "a", None], pa.string_view()), "string"),
        (pa.array([Decimal("1.5"), None], pa.decimal256(20, 1)), "decimal(20, 1)"),
        (pa.array([Decimal("1.5"), None], pa.decimal32(5, 1)), "decimal(20, 3)"),
        (pa.compute.run_end_encode(pa.array([1, 1, None], pa.int8())), "int32"),
        (pa.array([0, 86_400_000], pa.date64()), "date"),
        (pa.array([None, None]), "int32"),
        (pa.array([b"a" * 16, None], pa.binary(16)), "uuid"),
    ],
    ids=lambda found: str(getattr(found, "type", found)),
)
def test_other_arrow_types_of_the_same_values_are_read(array, target):
    found = widen(array, parse_scalar(target), ("c",))
    assert found.type == to_arrow_type(parse_scalar(target))
    plain = [value.bytes if hasattr(value, "bytes") else value for value in found.to_pylist()]
    assert plain == array.to_pylist()


def test_a_value_that_overflows_is_refused():
    with pytest.raises(SchemaMismatch, match="does not fit"):
        widen(pa.array([2**62], pa.timestamp("ms")), parse_scalar("timestamp(us)"), ("c",))
