from __future__ import annotations

from collections import Counter

import pytest

from underlay.errors import InvalidRequest
from underlay.plan.assign import assign

BLOCKS = [f"file-{number // 10}@abc#{number}" for number in range(6000)]


def test_blocks_are_shared_by_weight():
    counts = Counter(first for first, _ in assign(BLOCKS, {"a": 1, "b": 2, "c": 3}))
    assert [round(counts[name] / 1000) for name in "abc"] == [1, 2, 3]


def test_a_new_worker_takes_its_share_and_moves_nothing_else():
    workers = dict.fromkeys("abcde", 1.0)
    before, after = assign(BLOCKS, workers), assign(BLOCKS, {**workers, "f": 1.0})
    moved = [new for (old, _), (new, _) in zip(before, after, strict=True) if old != new]
    assert set(moved) == {"f"}
    assert abs(len(moved) / len(BLOCKS) - 1 / 6) < 0.03


def test_a_lost_workers_blocks_go_to_their_second_choice():
    workers = dict.fromkeys("abcde", 1.0)
    before, after = assign(BLOCKS, workers), assign(BLOCKS, dict.fromkeys("abcd", 1.0))
    assert all(
        new == (second if first == "e" else first) for (first, second), (new, _) in zip(before, after, strict=True)
    )


def test_one_worker_has_no_second():
    assert assign(["x"], {"a": 0.5}) == [("a", None)]


def test_no_blocks_are_assigned_to_nobody():
    assert assign([], {"a": 1, "b": 1}) == []


@pytest.mark.parametrize("workers", [{}, {"a": 0.0}, {"a": -1.0}, {"a": float("inf")}])
def test_workers_without_a_positive_weight_are_refused(workers: dict[str, float]):
    with pytest.raises(InvalidRequest):
        assign(["x"], workers)
