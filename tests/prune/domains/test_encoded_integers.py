"""Big-endian integers of mixed lengths decode as Python's own."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from underlay.prune.domains.encoded_integers import decode_integers


@given(
    st.lists(st.none() | st.binary(max_size=34)), st.integers(0, 3), st.sampled_from([pa.binary(), pa.large_binary()])
)
def test_every_value_of_1_to_32_bytes_is_decoded(values, begin, type_):
    array = pa.array([None, b"\xff", b"", *values], type_).slice(begin)
    decoded, present = decode_integers(array)
    for octets, integer, is_present in zip(array.to_pylist(), decoded, present, strict=True):
        assert is_present == (octets is not None and 1 <= len(octets) <= 32)
        assert not is_present or integer == int.from_bytes(octets, "big", signed=True)


def test_fixed_size_arrays_are_decoded():
    decoded, _ = decode_integers(pa.array([b"\xff\x9c", b"\x00\x64"], pa.binary(2)))
    assert decoded.tolist() == [-100, 100]
