"""Layers are what a dictionary would be after the same changes, and copy little."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from underlay.values.layers import GONE, Gone, Layers

KEYS = st.sampled_from("abcdefgh")
CHANGES = st.lists(
    st.dictionaries(KEYS, st.one_of(st.integers(0, 3), st.none(), st.just(GONE)), max_size=5), max_size=25
)


def changed(plain: dict[str, int | None], changes: dict[str, int | Gone | None]) -> dict[str, int | None]:
    after = {**plain, **changes}
    return {key: value for key, value in after.items() if not isinstance(value, Gone)}


@given(st.dictionaries(KEYS, st.one_of(st.integers(0, 3), st.none())), CHANGES)
def test_layers_are_what_a_dictionary_would_be(first: dict[str, int | None], steps: list[dict[str, int | Gone | None]]):
    layers, plain = Layers(first), dict(first)
    older: list[tuple[Layers[int | None], dict[str, int | None]]] = []
    for changes in steps:
        older.append((layers, plain))
        layers, plain = layers.after(changes), changed(plain, changes)
    for found, expected in [*older, (layers, plain)]:
        assert found == expected
        assert len(found) == len(expected) == len(list(found))
        assert dict(found.items()) == expected
        assert sorted(found) == sorted(expected) == sorted(found.keys())
        assert list(found.values()) == [expected[key] for key in found]
        for key in "abcdefgh":
            assert (key in found) == (key in expected)
            assert found.get(key, "none") == expected.get(key, "none")


def test_a_change_copies_no_more_keys_when_there_are_more():
    chance = Random(7)

    def copied_per_change(count: int) -> float:
        layers: Layers[int] = Layers({str(number): number for number in range(count)})
        copied = 0
        for number in range(500):
            after = layers.after({f"new {number}": number, str(chance.randrange(count)): GONE})
            copied += sum(len(layer) for layer in after._layers if not any(layer is known for known in layers._layers))
            layers = after
        return copied / 500

    assert copied_per_change(20_000) <= copied_per_change(2_000) < 20
