"""Which part of a long list the gate runs."""

from __future__ import annotations

import pytest

from tests import gate

LIST = tuple(range(50, 150))


@pytest.fixture
def push(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "IS_ALL", False)


@pytest.mark.usefixtures("push")
def test_a_fifth_is_run_in_order_and_another_one_with_another_seed(monkeypatch: pytest.MonkeyPatch):
    seen = set()
    for seed in range(40):
        monkeypatch.setattr(gate, "SEED", seed)
        part = gate.some(LIST)
        assert (len(part), part) == (20, sorted(part))
        assert part == gate.some(LIST)
        seen |= set(part)
    assert seen == set(LIST)


@pytest.mark.usefixtures("push")
def test_a_short_list_has_one_that_is_run():
    assert len(gate.some("ab")) == 1


@pytest.mark.usefixtures("push")
def test_three_days_meet_every_request(monkeypatch: pytest.MonkeyPatch):
    met = []
    for seed in (8, 9, 10):
        monkeypatch.setattr(gate, "SEED", seed)
        part = gate.every_third()
        met += range(part["begin"], 30, part["step"])
    assert sorted(met) == list(range(30))


@pytest.mark.usefixtures("push")
def test_tests_that_share_a_list_run_all_of_it_each_day_and_each_one_in_three(monkeypatch: pytest.MonkeyPatch):
    met: list[list[int]] = [[], [], []]
    for seed in (8, 9, 10):
        monkeypatch.setattr(gate, "SEED", seed)
        parts = [gate.part(LIST, number) for number in range(3)]
        assert sorted(one for part in parts for one in part) == list(LIST)
        for number, part in enumerate(parts):
            met[number] += part
    assert [sorted(each) for each in met] == [list(LIST)] * 3


def test_everything_is_run_in_test_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gate, "IS_ALL", True)
    assert gate.some(LIST) == list(LIST)
    assert gate.part(LIST, 1) == list(LIST)
    assert gate.every_third() == {"begin": 0, "step": 1}
    assert gate.sized((8, 10), (32, 20)) == (32, 20)
