from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underlay.parquet.thrift import wire

octets = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0x81, 0xFF]), max_size=60).map(bytes)


@given(octets, st.sampled_from([1, 7, 11, 64]))
def test_lengths_of_varints_are_the_distances_to_their_ends(data: bytes, cache_bytes: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "_CACHE_BYTES", cache_bytes)
        lengths = wire.varint_lengths(np.frombuffer(data, np.uint8))
    ends = np.array(wire.varint_ends(data)[: len(data)], np.int64)
    assert lengths.tolist() == np.minimum(ends - np.arange(len(data)), 10).tolist()
