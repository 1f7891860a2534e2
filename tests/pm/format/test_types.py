"""QuestDB's type codes: what they mean and how they are put together."""

from __future__ import annotations

import pytest

from underlay.pm.format.types import (
    TIMESTAMP_NS,
    TIMESTAMP_US,
    UNKNOWN,
    Tag,
    array_code,
    decimal_code,
    decimal_parameters,
    describe,
    is_designated,
    tag_of,
)


def test_timestamp_codes_are_those_that_questdb_writes():
    assert (TIMESTAMP_US, TIMESTAMP_NS) == (8, 0x40008)
    assert [is_designated(code) for code in (8, 0x20008, 0x60008, 0x40008, 0x120008)] == [
        False,
        True,
        True,
        False,
        True,
    ]


def test_the_designated_bit_means_nothing_on_other_types():
    assert not is_designated(decimal_code(10, 2) | 1 << 17)
    assert not is_designated(UNKNOWN)


@pytest.mark.parametrize("code", [-1, -(1 << 31), 0, 20, 23, 34, 40, 255])
def test_codes_without_a_tag_have_none(code: int):
    assert tag_of(code) is None


@pytest.mark.parametrize("tag", Tag)
def test_the_tag_is_the_low_byte(tag: Tag):
    assert tag_of(tag) is tag
    assert tag_of(tag | 0x7FFFFF00) is tag


@pytest.mark.parametrize(
    ("precision", "tag"),
    [(1, 28), (2, 28), (3, 29), (4, 29), (5, 30), (9, 30), (10, 31), (18, 31), (19, 32), (38, 32), (39, 33), (76, 33)],
)
def test_a_decimal_has_the_narrowest_tag(precision: int, tag: int):
    for scale in (0, precision):
        code = decimal_code(precision, scale)
        assert code == tag | precision << 8 | scale << 18
        assert decimal_parameters(code) == (precision, scale)


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (77, 0), (2, 3), (5, -1), (-1, -1)])
def test_a_decimal_that_questdb_cannot_hold_has_no_code(precision: int, scale: int):
    assert decimal_code(precision, scale) == UNKNOWN


def test_arrays_have_one_to_32_dimensions():
    assert array_code(1) == 27 | 10 << 8
    assert array_code(3) == 27 | 10 << 8 | 2 << 14
    assert tag_of(array_code(32)) is Tag.ARRAY
    assert array_code(0) == array_code(33) == UNKNOWN


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (5, "INT"),
        (8, "TIMESTAMP"),
        (0x20008, "TIMESTAMP (designated)"),
        (0x40008, "TIMESTAMP_NS"),
        (0x60008, "TIMESTAMP_NS (designated)"),
        (decimal_code(10, 2), "DECIMAL(10,2)"),
        (array_code(2), "DOUBLE[][]"),
        (14 | 5 << 8 | 1 << 16, "GEOHASH(5b)"),
        (25, "IPV4"),
        (-1, "unknown"),
        (99, "type 0x63"),
        (-2, "type -0x2"),
    ],
)
def test_a_code_is_described_as_people_write_the_type(code: int, text: str):
    assert describe(code) == text
