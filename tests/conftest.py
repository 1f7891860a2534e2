from __future__ import annotations

import os
import signal
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

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["UNDERLAY_REGISTRY"] = "none"  # tests that are about registries name theirs
settings.register_profile("underlay", deadline=None)  # machines are noisy: no test asserts on time
settings.load_profile("underlay")
SPARK = "tests/spark/"
SESSIONS = "tests/sessions/"
ANSWER_SECONDS = 60.0


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry is waited for: on a busy machine a test that counts would else count what is done without one."""
    monkeypatch.setattr("underlay.registry.follow.ask.ANSWER_SECONDS", ANSWER_SECONDS)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder with the files that other systems wrote."""
    return genuine.fixtures()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark come first: they take longest, and stay in one process, or start one of their own."""
    items.sort(key=lambda item: (not item.nodeid.startswith(SPARK), not item.nodeid.startswith(SESSIONS)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Processes share the tests file by file; all on Spark are one, so that there is one session."""
    return FilesScheduling(config, log)


class FilesScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith(SPARK) else nodeid.split("::", 1)[0]
