from __future__ import annotations

import json

import pytest

from underlay.errors import Damaged
from underlay.index.sealed_json import seal, unseal

OBJECT = b'{"version":7,"text":"\xc3\xa4"}'


def test_a_sealed_object_is_json_with_a_checksum_in_front():
    sealed = seal(OBJECT)
    assert json.loads(sealed) == {"crc": sealed[8:16].decode(), **json.loads(OBJECT)}
    assert unseal(sealed) == OBJECT
    assert unseal(memoryview(sealed)) == OBJECT


def test_every_prefix_is_refused():
    sealed = seal(OBJECT)
    for length in range(len(sealed)):
        with pytest.raises(Damaged):
            unseal(sealed[:length])


def test_every_flipped_bit_is_refused():
    sealed = seal(OBJECT)
    for place in range(len(sealed)):
        for bit in range(8):
            damaged = bytearray(sealed)
            damaged[place] ^= 1 << bit
            with pytest.raises(Damaged):
                unseal(bytes(damaged))
