"""Short ways to say what a test is about: one column `c`, its bounds, one predicate as SQL or as a value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from underlay.prune import And, ColumnBounds, evaluate
from underlay.prune.domains.byte_strings import ByteStrings
from underlay.prune.parse.sql import parse_where

C = ("c",)


def column(domain, *blocks, **rest):
    """Bounds from `(minimum, maximum)` pairs; None is a missing bound."""
    lows, highs = [low for low, _ in blocks], [high for _, high in blocks]
    return ColumnBounds.of(
        domain,
        block_count=len(blocks),
        minimum=_array(domain, lows),
        maximum=_array(domain, highs),
        has_minimum=[low is not None for low in lows],
        has_maximum=[high is not None for high in highs],
        **rest,
    )


def verdict(predicate, bounds, **rest):
    conjunction = parse_where(predicate) if isinstance(predicate, str) else And((predicate,))
    return evaluate(conjunction, {C: bounds}, block_count=bounds.block_count, **rest)


def kept(predicate, bounds):
    return verdict(predicate, bounds).kept.tolist()


def must(predicate, bounds):
    return verdict(predicate, bounds).must.tolist()


def bloom_of(*sets):
    """A filter without false positives, one set of encoded values per block, that counts what it is asked."""

    def probe(encoded, blocks):
        probe.asked.append((encoded, blocks.tolist()))
        return np.array([encoded in sets[block] for block in blocks], dtype=bool)

    probe.asked = []
    return probe


def _array(domain, values):
    given = next((v for v in values if v is not None), 0)
    if isinstance(domain, ByteStrings):
        encoded = [v.encode() if isinstance(v, str) else v for v in values]
        return pa.array(encoded, pa.binary())
    if isinstance(given, bytes):
        return pa.array(values, pa.binary())
    filled = [type(given)(0) if v is None else v for v in values]
    return np.array(filled, dtype=object if type(given) is int else None)
