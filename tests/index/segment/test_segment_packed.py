from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.errors import Damaged
from underlay.index.segment.packed import (
    binary_array,
    bound_column,
    pack_bytes,
    shorten_high,
    shorten_low,
)
from underlay.schema.bound_storage import Storage

LONG_TEXT = st.text(st.sampled_from("aé\ud7ff\ue000\uffff\U00010000\U0010ffff\x7f\x00"), max_size=90)
LONG_BYTES = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xC3, 0xFE, 0xFF]), max_size=90).map(bytes)


@given(LONG_TEXT)
def test_shortened_bounds_of_text_are_text_around_it(text: str):
    value = text.encode()
    low, high = shorten_low(value), shorten_high(value, is_text=True)
    assert low.decode() <= text
    assert len(low) <= 64
    assert low <= value
    if high is not None:
        assert (len(high) <= 64, high.decode() == "") == (True, text == "")
        assert value <= high


@given(LONG_BYTES)
def test_shortened_bounds_of_bytes_lie_around_them(value: bytes):
    low, high = shorten_low(value), shorten_high(value, is_text=False)
    assert len(low) <= 64
    assert low <= value
    assert high is None or (value <= high and len(high) <= 64)


@given(LONG_BYTES)
def test_text_that_is_no_utf8_has_bounds_too(value: bytes):
    high = shorten_high(value, is_text=True)
    assert high is None or (value <= high and len(high) <= 64)


def test_short_values_stay_as_they_are():
    assert shorten_low(b"b" * 64) == shorten_high(b"b" * 64, is_text=True) == b"b" * 64


def test_an_upper_bound_is_rounded_up_and_not_a_prefix():
    """T9."""
    assert shorten_high(b"b" * 100, is_text=True) == b"b" * 63 + b"c"


@pytest.mark.parametrize(("text", "last"), [("\ud7ff" * 40, "\ue000"), ("é" * 40, "ê")])
def test_rounding_up_steps_over_surrogates_and_whole_characters(text: str, last: str):
    """T10."""
    high = shorten_high(text.encode(), is_text=True)
    assert high is not None
    assert high.decode()[-1] == last


def test_what_cannot_be_rounded_up_has_no_upper_bound():
    """T10."""
    assert shorten_high(("\U0010ffff" * 40).encode(), is_text=True) is None
    assert shorten_high(b"\xff" * 100, is_text=False) is None


def test_a_character_whose_successor_is_longer_gives_way_to_the_one_before_it():
    high = shorten_high(b"a" * 63 + b"\x7f" + b"b", is_text=True)
    assert high == b"a" * 62 + b"b"


@given(st.lists(st.binary(max_size=5), max_size=6))
def test_packed_bytes_come_back(values: list[bytes]):
    packed = pack_bytes(values)
    assert binary_array(packed, len(values)).to_pylist() == values


@given(st.lists(st.binary(max_size=5), min_size=1, max_size=4), st.data())
def test_every_prefix_of_packed_bytes_is_refused(values: list[bytes], data: st.DataObject):
    packed = pack_bytes(values)
    with pytest.raises(Damaged):
        binary_array(packed[: data.draw(st.integers(0, len(packed) - 1))], len(values))


def test_packed_numbers_of_another_count_are_refused():
    with pytest.raises(Damaged):
        bound_column(bytes(12), Storage.INT, 2)
