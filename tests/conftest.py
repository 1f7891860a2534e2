from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests import genuine
from tests.registry.servers import postgres as postgres
from tests.registry.servers import registry_url as registry_url
from tests.store.servers import moto as moto
from tests.store.servers import seaweedfs as seaweedfs

os.environ["UNDERLAY_REGISTRY"] = "none"  # tests that are about registries name theirs
settings.register_profile("underlay", deadline=None)  # machines are noisy: no test asserts on time
settings.load_profile("underlay")


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder with the files that other systems wrote."""
    return genuine.fixtures()


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two processes share the tests file by file; those on Spark stay together, for one session, and begin first."""
    items.sort(key=lambda item: _group(item) != "spark")
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    inside = item.path.relative_to(Path(__file__).parent)
    return "spark" if inside.parts[0] == "spark" else str(inside)
