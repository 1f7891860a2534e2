from __future__ import annotations

import pytest

import underlay.store


def test_public_names_of_the_store_package():
    assert underlay.store.__all__ == sorted(underlay.store._HOMES)
    for name in [*underlay.store.__all__, *underlay.store.__all__]:
        assert getattr(underlay.store, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        _ = underlay.store.nothing
