"""A bounded run of `tests.fuzz`; `make fuzz` runs it for longer."""

from __future__ import annotations

import itertools
import tracemalloc

from tests.fuzz import fuzz


def bounded(inputs: int):
    count = itertools.count()
    return lambda: next(count) >= inputs


def test_damaged_sidecars_and_footers_are_read_or_refused():
    counts = fuzz(20_261_115, is_done=bounded(3000))
    assert min(counts["sidecar"], counts["footer"], counts["parquet"]) > 800
    refused = sum(count for name, count in counts.items() if ":" in name)
    assert 0.2 < refused / 3000 < 0.99


def test_no_damage_makes_a_reader_allocate_much_more_than_its_input():
    tracemalloc.start()
    try:
        counts = fuzz(7, is_done=bounded(300), measure=True)
    finally:
        tracemalloc.stop()
    assert counts["sidecar"] + counts["footer"] + counts["parquet"] == 300
