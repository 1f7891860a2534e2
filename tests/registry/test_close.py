"""Lakes that are closed, left open when the process ends, or deleted: nothing is left behind, nothing is logged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import enumerate as threads

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.gate import sized
from tests.registry.far import far_store, registry_of
from tests.store.servers import S3Server
from underlay.errors import InvalidRequest, NotFound

LAKES = sized(25, 100)
BEGINNING = """
import os, shutil, sys, tempfile, time
import pyarrow as pa
import underlay
from underlay.registry import registry
registry._CLOSE_SECONDS = registry._STOP_SECONDS = 240.0  # a busy machine may need more than users are kept waiting

def use(lake):
    table = lake.create_table("a.b", "i bigint")
    table.append(pa.table({"i": [1]}))
"""
WITH = f"""
for _ in range({LAKES}):
    with tempfile.TemporaryDirectory() as folder:
        with underlay.connect(folder + "/lake") as lake:
            use(lake)
        assert os.listdir(folder + "/lake/_registry") == ["registry.sqlite"]
"""
WITHOUT = f"""
for _ in range({LAKES}):
    with tempfile.TemporaryDirectory() as folder:
        use(underlay.connect(folder + "/lake"))
"""
LEFT_OPEN = """
lakes = []
for number in range(30):
    folder = tempfile.mkdtemp()
    lakes.append(underlay.connect(f"{folder}/lake"))
    use(lakes[-1])
    if number % 10 == 0:
        assert lakes[-1].registry.wait(300)
    shutil.rmtree(folder)
"""
ENDS = """
for number in range(5):
    use(underlay.connect(f"{tempfile.gettempdir()}/{number}"))
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "UNDERLAY_REGISTRY"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BEGINNING + code],
        env=environment | {"TMPDIR": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("code", [WITH, WITHOUT, LEFT_OPEN], ids=["with", "without", "left-open"])
def test_many_lakes_in_temporary_folders_leave_nothing_and_say_nothing(code, tmp_path: Path):
    done = run(code, tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert list(tmp_path.rglob("*")) == []


def test_a_process_that_ends_leaves_no_log_of_its_registries(tmp_path: Path):
    done = run(ENDS, tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert [path.name for path in tmp_path.glob("*/_registry/*") if path.name != "registry.sqlite"] == []


@pytest.fixture
def lake(tmp_path: Path, monkeypatch) -> underlay.Lake:
    monkeypatch.delenv("UNDERLAY_REGISTRY", raising=False)
    monkeypatch.setattr("underlay.registry.registry._CLOSE_SECONDS", 240.0)
    monkeypatch.setattr("underlay.registry.registry._STOP_SECONDS", 240.0)
    return underlay.connect(tmp_path / "lake")


def files_of_registry(lake: underlay.Lake) -> list[str]:
    return os.listdir(Path(lake.url.removeprefix("file://")) / "_registry")


def test_closing_applies_what_was_committed_and_leaves_no_log_and_no_thread(lake):
    table = lake.create_table(NAME, SCHEMA)
    for number in range(3):
        table.append(rows([number]))
    assert registry_of(lake).wait(240)
    table.append(rows([3]))
    lake.close()
    assert files_of_registry(lake) == ["registry.sqlite"]
    thread = registry_of(lake)._follower._thread
    assert thread is None or thread not in threads()
    with underlay.connect(lake.url) as again:
        assert registry_of(again).status().tables[0].applied == 4
        assert ids(again.table(NAME)) == [0, 1, 2, 3]
    assert files_of_registry(lake) == ["registry.sqlite"]


def test_a_closed_lake_and_its_tables_refuse_to_be_used(lake):
    with lake:
        table = lake.create_table(NAME, SCHEMA)
    uses = [
        lake.tables,
        lake.exists,
        lake.initialise,
        lake.jobs,
        lambda: lake.table(NAME),
        lambda: lake.create_table("a.other", SCHEMA),
        lambda: lake.drop_table(NAME),
        lambda: lake.sql(f"select * from {NAME}").to_arrow(),
        lambda: table.append(rows([1])),
        lambda: table.scan().to_arrow(),
        registry_of(lake).status,
        registry_of(lake).follow,
    ]
    for use in uses:
        with pytest.raises(InvalidRequest, match="the lake is closed"):
            use()
    lake.close()


def test_a_lake_without_a_registry_is_closed_too():
    with underlay.connect("memory://closed") as lake:
        lake.create_table(NAME, SCHEMA)
    with pytest.raises(InvalidRequest, match="the lake is closed"):
        lake.tables()


def test_a_lake_is_closed_when_an_error_leaves_its_block(lake):
    with pytest.raises(ZeroDivisionError), lake:
        raise ZeroDivisionError
    with pytest.raises(InvalidRequest, match="the lake is closed"):
        lake.tables()


def test_closing_does_not_wait_for_a_server_that_is_not_there(caplog):
    lake = underlay.connect(far_store(), registry="postgresql://nobody@127.0.0.1:1/nothing")
    lake.create_table(NAME, SCHEMA).append(rows([1]))
    lake.close()
    assert registry_of(lake).opening(NAME) is None


def test_a_lake_that_was_deleted_and_made_again_has_a_registry_again(lake, caplog):
    lake.create_table(NAME, SCHEMA).append(rows([1]))
    assert registry_of(lake).wait(240)
    shutil.rmtree(lake.url.removeprefix("file://"))
    with underlay.connect(lake.url) as again:
        again.create_table(NAME, SCHEMA).append(rows([2]))
        assert registry_of(again).wait(240)
        assert registry_of(again).differences() == []
    assert caplog.records == []


def test_a_registry_that_was_deleted_with_its_folder_is_made_again_by_who_writes(lake, caplog):
    table = lake.create_table(NAME, SCHEMA)
    assert registry_of(lake).wait(240)
    folder = Path(lake.url.removeprefix("file://")) / "_registry"
    shutil.rmtree(folder)
    with underlay.connect(lake.url) as reader:
        assert ids(reader.table(NAME)) == []
        assert registry_of(reader).wait(240)
        assert not folder.exists()
    table.append(rows([1]))
    assert registry_of(lake).wait(240)
    assert registry_of(lake).differences() == []
    assert caplog.records == []
    lake.close()


def test_a_url_that_was_mistyped_leaves_no_registry(
    seaweedfs: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("UNDERLAY_REGISTRY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with underlay.connect(seaweedfs.open().url, options=seaweedfs.options) as lake:
        assert lake.tables() == []
        with pytest.raises(NotFound):
            lake.table("a.b")
        with pytest.raises(NotFound):
            lake.sql("select * from a.b")
    assert list(tmp_path.iterdir()) == []
