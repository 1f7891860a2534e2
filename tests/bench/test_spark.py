"""What `bench.spark` relies on, without Spark: turns, answers, targets and seeded rows."""

from __future__ import annotations

import pytest
from bench.spark.cases import check_same
from bench.spark.report import Compared, Target
from bench.spark.rows import Dataset, data_files, make_dataset
from bench.spark.worker import Reply
from bench.spark.workers import take_turns


def reply(*values: float) -> Reply:
    return Reply(seconds=1.0, values=list(values))


def test_every_way_has_its_turn_in_every_round_and_another_one_begins():
    asked: list[tuple[int, str]] = []

    def way(name: str):
        def ask(number: int) -> Reply:
            asked.append((number, name))
            return reply(number)

        return ask

    replies = take_turns({name: way(name) for name in "abc"}, warm_ups=1, rounds=3)
    assert [found.values for found in replies["b"]] == [[0.0], [1.0], [2.0]]
    assert sorted(asked) == [(number, name) for number in range(-1, 3) for name in "abc"]
    assert [asked[begin][1] for begin in range(0, 12, 3)] == ["c", "a", "b", "c"]


def test_an_answer_that_differs_from_plain_parquet_is_not_timed():
    check_same({"plain": [reply(1.0, 2.0)], "underlay": [reply(1.0, 2.0 + 1e-12)]})
    with pytest.raises(AssertionError, match="delta: another answer in round 0"):
        check_same({"plain": [reply(1.0, 2.0)], "delta": [reply(1.0, 2.1)]})


def test_a_target_is_met_by_each_of_our_ways_or_not_and_unknown_without_the_peer():
    compared = Compared(
        case="large",
        question="append",
        samples={"plain": [2.0, 2.0], "underlay append": [2.0, 2.2], "underlay source": [1.0, 1.2]},
        targets=(),
        read_bytes={},
        requests={},
    )
    assert compared.ratio("underlay append") == pytest.approx(1.05)
    assert compared.met(Target(words="", limit_seconds=2.0)) == {"underlay append": False, "underlay source": True}
    assert set(compared.met(Target(words="", limit_seconds=None)).values()) == {None}


def test_a_dataset_has_its_files_and_a_range_of_ids_within_one_row_group(tmp_path):
    dataset = Dataset(name="few", files=3, blocks=2, rows=20)
    folder = make_dataset(dataset, tmp_path)
    inodes = {file.stat().st_ino for file in data_files(dataset, folder / "lake")}
    assert {file.stat().st_ino for file in (folder / "files").iterdir()} == inodes
    for seed in range(50):
        low, high = dataset.ids_within_one_block(seed)
        assert low < high < dataset.row_count
        assert low // dataset.rows == high // dataset.rows
