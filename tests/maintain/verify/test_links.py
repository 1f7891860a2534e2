from __future__ import annotations

import pytest

from underlay.maintain.verify.links import Link, find_strangers


def chain(*histories: tuple[str, range]) -> dict[int, Link]:
    """Objects whose parents are those before them in the same history."""
    return {
        number: Link(
            commit_id=f"{name}{number}", parent_id=f"{name}{number - 1}" if number else None, committed_us=number
        )
        for name, numbers in histories
        for number in numbers
    }


@pytest.mark.parametrize(
    ("links", "strangers"),
    [
        (chain(("a", range(12))), set()),
        (chain(("a", range(11)), ("b", range(11, 12))), {11}),
        (chain(("a", range(11)), ("b", range(11, 15))), {11, 12, 13, 14}),
        (chain(("a", range(5)), ("b", range(5, 6)), ("a", range(6, 9))), {5}),
        (chain(("b", range(1)), ("a", range(1, 4))), {0}),
    ],
)
def test_all_that_was_made_from_a_stranger_is_one(links: dict[int, Link], strangers: set[int]):
    assert find_strangers(links) == strangers
