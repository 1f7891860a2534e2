from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import transforms, types

from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.partitioning.bucket import MURMUR3, buckets_of
from underlay.schema.partitioning.murmur3 import murmur3_bytes
from underlay.schema.types import parse_scalar


def buckets(values: list[object], type_: str, count: int) -> list[int]:
    scalar = parse_scalar(type_)
    return buckets_of(stored_array(pa.array(values, to_arrow_type(scalar)), scalar), scalar, count, MURMUR3).tolist()


@pytest.mark.parametrize(
    ("type_", "value", "hash_"),
    [
        ("int32", 34, 2017239379),
        ("int64", 34, 2017239379),
        ("decimal(9,2)", Decimal("14.20"), -500754589),
        ("decimal(38,2)", Decimal("14.20"), -500754589),
        ("date", date(2017, 11, 16), -653330422),
        ("time(us)", time(22, 31, 8), -662762989),
        ("timestamp(us)", datetime(2017, 11, 16, 22, 31, 8), -2047944441),
        ("timestamp(s)", datetime(2017, 11, 16, 22, 31, 8), -2047944441),
        ("timestamp(us, UTC)", datetime(2017, 11, 16, 22, 31, 8), -2047944441),
        ("timestamp(ns)", datetime(2017, 11, 16, 22, 31, 8), -2047944441),
        ("string", "iceberg", 1210000089),
        ("uuid", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        ("fixed(4)", b"\x00\x01\x02\x03", -188683207),
        ("binary", b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_hashes_are_those_of_appendix_b_of_the_iceberg_spec(type_: str, value: object, hash_: int):
    for count in (2**31 - 1, 1000, 16):
        assert buckets([value], type_, count) == [(hash_ & 0x7FFFFFFF) % count]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 2**31 - 1))
def test_buckets_of_integers_are_those_of_pyiceberg(numbers: list[int], count: int):
    theirs = transforms.BucketTransform(count).transform(types.LongType())
    assert buckets(list(numbers), "int64", count) == [theirs(number) for number in numbers]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.integers(1, 1000))
def test_buckets_of_text_are_those_of_pyiceberg(texts: list[str], count: int):
    theirs = transforms.BucketTransform(count).transform(types.StringType())
    assert buckets(list(texts), "string", count) == [theirs(text) for text in texts]


@pytest.mark.parametrize("digits", [9, 18, 38])
@given(data=st.data())
def test_buckets_of_decimals_are_those_of_pyiceberg(digits: int, data: st.DataObject):
    edges = st.sampled_from([s * 2 ** (8 * n - 1) + d for n in range(1, 4) for s in (1, -1) for d in (-1, 0, 1)])
    unscaled = data.draw(st.lists(st.integers(1 - 10**digits, 10**digits - 1) | edges))
    decimals = [Decimal(f"{number}E-2") for number in unscaled]
    theirs = transforms.BucketTransform(97).transform(types.DecimalType(digits, 2))
    assert buckets(list(decimals), f"decimal({digits}, 2)", 97) == [theirs(one) for one in decimals]


@given(st.lists(st.none() | st.binary(max_size=20)), st.integers(0, 3))
def test_slices_and_nulls_hash_as_their_bytes_do(values: list[bytes | None], begin: int):
    array = pa.array(values, pa.binary())
    alone = [murmur3_bytes(pa.array([value or b""], pa.binary()))[0] for value in values[begin:]]
    assert np.array_equal(murmur3_bytes(array.slice(begin)), np.array(alone, np.uint32))
