from __future__ import annotations

import pyarrow as pa
import pytest

from underlay.schema.cast.exact import cast_exactly
from underlay.schema.cast.widen import is_widening
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
OTHERS = [
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
    ("timestamp(us)", "timestamp(ms)"),
    ("string", "binary"),
    ("int32", "decimal(20,0)"),
    ("fixed(15)", "uuid"),
    ("boolean", "int32"),
]


@pytest.mark.parametrize(("source", "target"), WIDENINGS)
def test_a_type_widens_to_one_that_holds_all_its_values(source, target):
    assert is_widening(parse_scalar(source), parse_scalar(target))


@pytest.mark.parametrize(("source", "target"), OTHERS)
def test_a_type_does_not_widen_to_one_that_lacks_some_of_its_values(source, target):
    assert not is_widening(parse_scalar(source), parse_scalar(target))


@pytest.mark.parametrize(("source", "target"), WIDENINGS)
def test_arrow_casts_every_widening(source, target):
    array = pa.nulls(2, to_arrow_type(parse_scalar(source)))
    assert cast_exactly(array, parse_scalar(target), ("c",)).type == to_arrow_type(parse_scalar(target))
