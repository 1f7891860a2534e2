from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schema.examples import SCALARS, field, values
from underlay.errors import InvalidRequest
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.default import default_scalar, format_default
from underlay.schema.types import ListOf, Scalar, parse_scalar


@given(st.sampled_from(SCALARS).flatmap(lambda t: st.tuples(st.just(t), values(field("c", t, is_required=True)))))
def test_a_default_comes_back_from_its_text(case: tuple[Scalar, object]):
    type_, value = case
    scalar = pa.array([value], to_arrow_type(type_))[0]
    text = format_default(scalar, type_)
    assert default_scalar(field("c", type_, default=text)) == scalar


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("int8", 5, "5"),
        ("boolean", True, "true"),
        ("float64", 0.1, "0.1"),
        ("float64", float("inf"), "inf"),
        ("decimal(9, 2)", Decimal("1.5"), "1.50"),
        ("decimal(9, 2)", "1.5", "1.50"),
        ("string", "a'b", "a'b"),
        ("binary", b"\x00\xff", "00ff"),
        ("uuid", UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        ("date", date(1969, 12, 31), "1969-12-31"),
        ("time(us)", time(12, 34, 56, 789000), "12:34:56.789"),
        ("timestamp(us)", datetime(2024, 1, 31, 12), "2024-01-31 12:00:00"),
        ("timestamp(us, Europe/Warsaw)", "2024-01-31 12:00:00+01:00", "2024-01-31 11:00:00"),
    ],
)
def test_a_default_is_written_as_plain_text(type_, value, text):
    assert format_default(value, parse_scalar(type_)) == text


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int8", 128),
        ("int8", 1.5),
        ("int8", "x"),
        ("decimal(4, 2)", Decimal("1.555")),
        ("decimal(4, 2)", 1.5),
        ("boolean", "yes"),
        ("time(ms)", "12:00:00.0001"),
        ("time(ms)", "12:00:00+01:00 "),
        ("date", "2024-02-30"),
        ("fixed(2)", b"abc"),
        ("int8", None),
    ],
)
def test_a_default_that_the_type_does_not_hold_is_refused(type_, value):
    with pytest.raises(InvalidRequest, match="default"):
        format_default(value, parse_scalar(type_))


def test_no_default_is_null():
    assert default_scalar(field("c", "int8")) is None


def test_a_nested_column_has_no_default():
    with pytest.raises(InvalidRequest, match="nested"):
        default_scalar(field("c", ListOf(field("element", "int8")), default="[]"))
