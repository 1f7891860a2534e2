"""The benchmarks run small: their answers and counts are checked, never their times."""

from __future__ import annotations

from bench.pm import run


def test_the_sidecar_benchmark_counts_what_it_should():
    result = run(small=True)
    for shape in result["open"]:
        assert shape["sidecar_bytes"] <= shape["footer_bytes"]
        assert shape["row_groups_kept"] == 2
        assert shape["times_faster_in_memory"] > 0
    for step in result["append"]:
        padding_and_footer = 7 + 40 + 8
        assert step["written_bytes"] <= step["block_bytes"] + 4 * (step["row_groups"] + 1) + padding_and_footer
