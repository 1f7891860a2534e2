"""An immutable mapping from which a changed one is made at the cost of the changes, not of its size.

It is a few dictionaries on top of each other, each more than twice as large as the one above it. A change puts a small
one on top and merges from there as long as two are of a size: log2(n) / 2 copies of each key on average. A lookup goes
through at most log2(n) dictionaries.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from enum import Enum
from typing import Final, TypeVar

T = TypeVar("T")


class Gone(Enum):
    """Marks a key that was removed from the mapping."""

    GONE = 0


GONE: Final = Gone.GONE


class Layers(Mapping[str, T]):
    """The first mapping with all changes since. Threads may share it: nothing in it ever changes."""

    __slots__ = ("_layers", "_size")

    def __init__(self, first: Mapping[str, T] | None = None) -> None:
        self._layers: tuple[dict[str, T | Gone], ...] = (dict(first or {}),)
        self._size = len(self._layers[0])

    def after(self, changes: Mapping[str, T | Gone]) -> Layers[T]:
        """The mapping with these keys changed. This one stays as it is."""
        if not changes:
            return self
        layers = [*self._layers, dict(changes)]
        while len(layers) > 1 and len(layers[-2]) < 2 * len(layers[-1]):
            above = layers.pop()
            layers[-1] = layers[-1] | above
        if len(layers) == 1:  # a lone layer needs no marks of removed keys
            layers[0] = {key: value for key, value in layers[0].items() if value is not GONE}
        after: Layers[T] = Layers.__new__(Layers)
        after._layers = tuple(layers)
        after._size = self._size + sum((changes[key] is not GONE) - (key in self) for key in changes)
        return after

    def __getitem__(self, key: str) -> T:
        for layer in reversed(self._layers):
            found = layer.get(key, layer)
            if found is not layer:
                if isinstance(found, Gone):
                    break
                return found  # type: ignore[return-value]  # not the layer, which stands for a key that is not in it
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._flat())

    def __len__(self) -> int:
        return self._size

    def keys(self) -> KeysView[str]:
        """All keys, by one copy of the mapping."""
        return self._flat().keys()

    def values(self) -> ValuesView[T]:
        """All values, by one copy of the mapping."""
        return self._flat().values()

    def items(self) -> ItemsView[str, T]:
        """All keys with their values, by one copy of the mapping."""
        return self._flat().items()

    def __repr__(self) -> str:
        return f"Layers({self._flat()!r})"

    def _flat(self) -> dict[str, T]:
        flat: dict[str, T | Gone] = {}
        for layer in self._layers:
            flat.update(layer)
        return {key: value for key, value in flat.items() if not isinstance(value, Gone)}
