from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import underlay.store
import underlay.store.testing


@pytest.mark.parametrize("module", [underlay.store, underlay.store.testing], ids=lambda module: module.__name__)
def test_public_names_of_a_package(module: ModuleType):
    assert sorted(module.__all__) == sorted(module._HOMES)
    for name in [*module.__all__, *module.__all__]:
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        _ = module.nothing


def test_only_the_contract_needs_pytest():
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "import underlay.store.testing as testing\n"
        "for name in set(testing.__all__) - {'StoreContract'}: getattr(testing, name)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
