from __future__ import annotations

import compileall
import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests import durations, gate, genuine
from tests.registry.servers import postgres as postgres
from tests.registry.servers import registry_url as registry_url
from tests.store.servers import moto as moto
from tests.store.servers import seaweedfs as seaweedfs

# Compiled once: else every process of a run, and every process that a test starts, compiles all modules again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["UNDERLAY_REGISTRY"] = "none"  # tests that are about registries name theirs
TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "underlay"
SPARK = "tests/spark/"
SPARK_SESSIONS = 2
"""A session waits for Java more than it computes, so that two take little more of a machine than one.
Each takes memory, and seconds to start."""
ANSWER_SECONDS = 60.0
OWN_JVM_SECONDS = 3600


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry is waited for: on a busy machine a test that counts would else count what is done without one."""
    monkeypatch.setattr("underlay.registry.follow.ask.ANSWER_SECONDS", ANSWER_SECONDS)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder with the files that other systems wrote."""
    return genuine.fixtures()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", type=Path, metavar="FILE", help="Write how long each test file took.")


def pytest_configure(config: pytest.Config) -> None:
    target = config.getoption("--record-durations")
    if target is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder(target))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Without looks for garbage, which take a quarter of the time: nothing that is imported is any."""
    worker = getattr(session.config, "workerinput", None)
    gc.disable()
    if worker is not None and [Path(given).resolve() for given in session.config.args] == [TESTS]:
        compile_share(int(worker["workerid"].removeprefix("gw")), worker["workercount"])
    yield
    gc.enable()


def compile_share(number: int, of: int) -> None:
    """Compile one of N modules of the package, unless that was done before: else each process of a run compiles all
    modules of a fresh clone, all at once."""
    for path in sorted(SOURCE.rglob("*.py"))[number::of]:
        compileall.compile_file(str(path), quiet=1)


def pytest_report_header() -> str:
    return gate.described()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(gate.described())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left with one alone. Those that start Spark several times may take long
    on a busy machine."""
    for item in items:
        if item.get_closest_marker("own_jvm") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(OWN_JVM_SECONDS))
    seconds = durations.known()
    scopes = Counter()
    for file in {item.nodeid.split("::", 1)[0] for item in items}:
        scopes[scope_of(file)] += seconds.get(file, durations.LEAST_SECONDS)
    items.sort(key=lambda item: -scopes[scope_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return FilesScheduling(config, log)


class FilesScheduling(LoadScopeScheduling):
    """Processes share the tests file by file; those on Spark are two shares, so that there are two sessions."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """What one process runs as a whole."""
    file = nodeid.split("::", 1)[0]
    return f"spark {spark_shares().get(file, 0)}" if file.startswith(SPARK) else file


@cache
def spark_shares() -> dict[str, int]:
    """Which session runs a file, so that all of them take as long; one that was never measured goes to the first."""
    loads = [0.0] * SPARK_SESSIONS
    shares = {}
    for file, seconds in durations.known().items():
        if file.startswith(SPARK):
            shares[file] = loads.index(min(loads))
            loads[shares[file]] += seconds
    return shares
