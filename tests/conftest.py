from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests import genuine
from tests.registry.servers import postgres as postgres
from tests.registry.servers import registry_url as registry_url
from tests.store.servers import moto as moto
from tests.store.servers import seaweedfs as seaweedfs

os.environ["UNDERLAY_REGISTRY"] = "none"  # tests that are about registries name theirs
settings.register_profile("underlay", deadline=None)  # machines are noisy: no test asserts on time
settings.load_profile("underlay")
SPARK = "tests/spark/"


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder with the files that other systems wrote."""
    return genuine.fixtures()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark come first: they take longest, and stay in one process."""
    items.sort(key=lambda item: not item.nodeid.startswith(SPARK))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Processes share the tests file by file; all on Spark are one, so that there is one session."""
    return FilesScheduling(config, log)


class FilesScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith(SPARK) else nodeid.split("::", 1)[0]
