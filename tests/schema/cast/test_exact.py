"""A value is taken if and only if the other type has the same value, and then it is the same value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from underlay.errors import SchemaMismatch
from underlay.schema.cast.exact import cast_exactly, unfit_values
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.types import Scalar, parse_scalar

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
DECIMALS = ("decimal(5,2)", "decimal(9,0)", "decimal(18,3)", "decimal(20,0)", "decimal(38,10)", "decimal(38,30)")
NUMBERS = (*INTEGERS, *FLOATS, *DECIMALS)
TICKS = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}


def cast(array: pa.Array, target: str) -> pa.Array:
    return cast_exactly(array, parse_scalar(target), ("c",))


def numbers_of(text: str) -> st.SearchStrategy[object]:
    """Values of a type, many of them near the limits of other types."""
    limits = [2**bits + more for bits in (7, 8, 11, 15, 16, 24, 31, 32, 53, 62, 63, 64) for more in (-1, 0, 1, 2**40)]
    small = [-(2**53) - 1, -129, -1, 0, 1, 127, 128, 255, 300, 65504, 65505, 99999, 100_000, 10**9]
    arrow = to_arrow_type(parse_scalar(text))
    if pa.types.is_integer(arrow):
        ends = np.iinfo(arrow.to_pandas_dtype())
        near = [one for one in (*limits, *(-one for one in limits), *small) if ends.min <= one <= ends.max]
        return st.integers(int(ends.min), int(ends.max)) | st.sampled_from(near)
    if pa.types.is_floating(arrow):
        kind = arrow.to_pandas_dtype()
        with np.errstate(over="ignore"):
            near = [float(kind(one)) for one in (*limits, *small, -(2**63), 0.5, -0.25, 0.1, 1e30, -0.0, 1.125)]
        width = 8 * np.dtype(kind).itemsize
        return st.floats(width=width) | st.sampled_from(near)
    most = 10**arrow.precision - 1
    whole = st.integers(-most, most)
    near = [one * 10**arrow.scale for one in (*limits, *small) if abs(one) * 10**arrow.scale <= most]
    halves = [10**arrow.scale // 2] if arrow.scale else []
    return (whole | st.sampled_from([*near, *halves, 0])).map(lambda one: exact_decimal(one, arrow.scale))


def exact_decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def exact_number(value: object) -> Fraction | float:
    """The number itself; what is none as it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return Fraction(value)


def has(target: Scalar, number: Fraction | float) -> bool:
    """Whether a type has the number, by arithmetic of Python alone."""
    arrow = to_arrow_type(target)
    if pa.types.is_floating(arrow):
        if isinstance(number, float):
            return True
        with np.errstate(over="ignore"):
            try:
                near = float(arrow.to_pandas_dtype()(float(number)))
            except OverflowError:
                return False
        return math.isfinite(near) and Fraction(near) == number
    if isinstance(number, float):
        return False
    if pa.types.is_integer(arrow):
        ends = np.iinfo(arrow.to_pandas_dtype())
        return number.denominator == 1 and int(ends.min) <= number <= int(ends.max)
    scaled = number * 10**arrow.scale
    return scaled.denominator == 1 and abs(scaled) < 10**arrow.precision


def same(found: object, wanted: Fraction | float) -> bool:
    number = exact_number(found)
    both_nan = isinstance(number, float) and isinstance(wanted, float) and math.isnan(number) and math.isnan(wanted)
    return both_nan or number == wanted


def array_of(values: list[object], text: str) -> pa.Array:
    arrow = to_arrow_type(parse_scalar(text))
    if pa.types.is_float16(arrow):
        values = [None if one is None else np.float16(one) for one in values]
    return pa.array(values, arrow)


@given(data=st.data(), source=st.sampled_from(NUMBERS), target=st.sampled_from(NUMBERS))
def test_a_number_is_taken_if_and_only_if_the_other_type_has_it(data, source, target):
    values = data.draw(st.lists(st.none() | numbers_of(source), min_size=1, max_size=4))
    array = array_of([None, *values], source).slice(1)
    numbers = [None if one is None else exact_number(one) for one in array.to_pylist()]
    wanted = [one is None or has(parse_scalar(target), one) for one in numbers]
    mask = unfit_values(array, parse_scalar(target))
    assert mask is None or mask.tolist() == [not one for one in wanted]
    if all(wanted):
        found = cast(array, target)
        assert found.type == to_arrow_type(parse_scalar(target))
        for one, number in zip(found.to_pylist(), numbers, strict=True):
            assert (one is None) == (number is None)
            assert number is None or same(one, number)
    else:
        with pytest.raises(SchemaMismatch, match="c: a value does not fit"):
            cast(array, target)


@given(
    source=st.sampled_from(sorted(TICKS)),
    target=st.sampled_from(sorted(TICKS)),
    kind=st.sampled_from(("timestamp", "timestamptz", "time")),
    ticks=st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**6), 10**6),
    whole=st.booleans(),
)
@example(source="ns", target="us", kind="timestamp", ticks=1_700_000_000_000_001_000, whole=False)
def test_a_time_is_taken_if_and_only_if_it_has_no_finer_digit_and_does_not_overflow(source, target, kind, ticks, whole):
    if whole:
        ticks = abs(ticks) // 10**9 * 10**9 * (-1 if ticks < 0 else 1)
    if kind == "time":
        ticks %= 86_400 * TICKS[source]
    names = {"timestamp": "timestamp({})", "timestamptz": "timestamp({}, UTC)", "time": "time({})"}
    given_type, wanted_type = (to_arrow_type(parse_scalar(names[kind].format(unit))) for unit in (source, target))
    width = pa.int32() if given_type.bit_width == 32 else pa.int64()
    array = pa.array([ticks, None], width).cast(given_type)
    exact = Fraction(ticks * TICKS[target], TICKS[source])
    if exact.denominator == 1 and -(2**63) <= exact < 2**63:
        found = cast(array, names[kind].format(target))
        back = pa.int32() if wanted_type.bit_width == 32 else pa.int64()
        assert (found.type, found.cast(back).to_pylist()) == (wanted_type, [int(exact), None])
    else:
        with pytest.raises(SchemaMismatch, match="does not fit"):
            cast(array, names[kind].format(target))


@given(
    unit=st.sampled_from(sorted(TICKS)),
    day=st.integers(-100_000, 100_000),
    more=st.sampled_from([0, 1, -1]),
)
def test_a_date_is_midnight_and_midnight_is_a_date(unit, day, more):
    per_day = 86_400 * TICKS[unit]
    is_possible = abs(day * per_day) < 2**63
    date_array = pa.array([day, None], pa.int32()).cast(pa.date32())
    if is_possible:
        found = cast(date_array, f"timestamp({unit})")
        assert found.cast(pa.int64()).to_pylist() == [day * per_day, None]
        times = pa.array([day * per_day + more, None], pa.int64()).cast(pa.timestamp(unit))
        if more:
            with pytest.raises(SchemaMismatch, match="does not fit"):
                cast(times, "date")
        else:
            assert cast(times, "date").equals(date_array)
    else:
        with pytest.raises(SchemaMismatch, match="does not fit"):
            cast(date_array, f"timestamp({unit})")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("string", "int64"),
        ("string", "binary"),
        ("binary", "string"),
        ("int32", "string"),
        ("boolean", "int32"),
        ("int32", "boolean"),
        ("int64", "timestamp(us)"),
        ("date", "int32"),
        ("string", "date"),
        ("time(us)", "timestamp(us)"),
        ("fixed(15)", "uuid"),
        ("fixed(3)", "fixed(4)"),
        ("string", "uuid"),
    ],
)
def test_types_without_a_value_in_common_are_refused_before_any_value_is_looked_at(source, target):
    with pytest.raises(SchemaMismatch, match=r"c: the column has another type \(expected .*, found .*\)\. Cast it"):
        cast(pa.nulls(0, to_arrow_type(parse_scalar(source))), target)


@pytest.mark.parametrize(
    ("source", "target"),
    [("timestamp(us)", "timestamp(us, UTC)"), ("timestamp(us, UTC)", "timestamp(us)"),
     ("date", "timestamp(us, UTC)"), ("timestamp(us, UTC)", "date")],
)  # fmt: skip
def test_a_zone_is_neither_added_nor_taken_away(source, target):
    with pytest.raises(SchemaMismatch, match="only you know in which zone"):
        cast(pa.nulls(0, to_arrow_type(parse_scalar(source))), target)


@pytest.mark.parametrize(
    ("array", "target", "values"),
    [
        (pa.array(["a", "a", None]).dictionary_encode(), "string", ["a", "a", None]),
        (pa.array(["a", "b", None], pa.large_string()), "string", ["a", "b", None]),
        (pa.array(["a", "b", None], pa.string_view()), "string", ["a", "b", None]),
        (pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.uint32()), pa.array(["a", "b"], pa.string_view())),
         "string", ["b", "a", None]),
        (pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.uint8()), pa.array([300, 5, 2**40])), "int16", [5, 300]),
        (pa.compute.run_end_encode(pa.array([1, 1, None], pa.int8())), "int32", [1, 1, None]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", "b"], pa.string_view())).slice(1),
         "string", ["a", "b"]),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])), "string", ["{}", None]),
        (pa.array([Decimal("1.5"), None], pa.decimal256(20, 1)), "decimal(20, 1)", [Decimal("1.5"), None]),
        (pa.array([Decimal("1.5"), None], pa.decimal256(76, 40)), "decimal(3, 1)", [Decimal("1.5"), None]),
        (pa.array([Decimal("1.5"), None], pa.decimal256(76, 40)), "float64", [1.5, None]),
        (pa.array([Decimal("1.5"), None], pa.decimal32(5, 1)), "decimal(20, 3)", [Decimal("1.5"), None]),
        (pa.array([Decimal("300"), None], pa.decimal128(5, -2)), "int16", [300, None]),
        (pa.array([0, 86_400_000], pa.date64()), "date", [date(1970, 1, 1), date(1970, 1, 2)]),
        (pa.array([None, None]), "int32", [None, None]),
        (pa.array([b"abc", None], pa.binary_view()), "fixed(3)", [b"abc", None]),
        (pa.array([b"abc", None], pa.large_binary()), "binary", [b"abc", None]),
        (pa.array([b"a" * 16, None], pa.binary(16)), "uuid", [UUID(bytes=b"a" * 16), None]),
        (pa.array([b"a" * 16, None], pa.binary()), "uuid", [UUID(bytes=b"a" * 16), None]),
        (pa.array([b"a" * 16, None], pa.uuid()), "binary", [b"a" * 16, None]),
        (pa.array([0, None], pa.timestamp("s", "Asia/Tokyo")), "timestamp(us, UTC)",
         [datetime(1970, 1, 1, tzinfo=UTC), None]),
        (pa.array([-0.0]), "int8", [0]),
    ],
    ids=lambda found: str(getattr(found, "type", "")),
)  # fmt: skip
def test_other_arrow_types_of_the_same_values_are_taken(array, target, values):
    found = cast(array, target)
    assert found.type == to_arrow_type(parse_scalar(target))
    found.validate(full=True)
    assert found.to_pylist() == values


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([b"abcd"], pa.binary()), "fixed(3)"),
        (pa.array([b"abcd"], pa.binary()), "uuid"),
        (pa.array([1], pa.date64()), "date"),
        (pa.array([Decimal("0.1")], pa.decimal256(76, 40)), "decimal(3, 0)"),
        (pa.array([Decimal("0.1")], pa.decimal128(30, 25)), "float64"),
        (pa.array([2**62], pa.timestamp("ms")), "timestamp(us)"),
        (pa.array([1_099_452_327_522]), "decimal(38, 30)"),
        (pa.array([Decimal(10**37)], pa.decimal128(38, -1)), "uint64"),
    ],
    ids=lambda found: str(getattr(found, "type", found)),
)
def test_a_value_that_the_other_type_lacks_is_refused(array, target):
    with pytest.raises(SchemaMismatch, match="c: a value does not fit the column's type"):
        cast(array, target)


def test_a_value_under_a_null_is_no_value():
    hidden = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\x02"), pa.array([2**40, 7]).buffers()[1]]
    )  # the first is null
    assert cast(hidden, "int8").to_pylist() == [None, 7]
    assert cast(hidden, "float16").to_pylist() == [None, 7.0]
