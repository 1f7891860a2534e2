"""What lies in a lake may be a link, or somebody else's: a registry writes to neither."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

import pytest

import underlay
from tests.cli.command import underlay as command
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows

ROW = (7, "theirs")
WAIT_SECONDS = 240


@pytest.fixture(autouse=True)
def default_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNDERLAY_REGISTRY")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Another program's database."""
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, name TEXT)")
        connection.execute("INSERT INTO orders VALUES (?, ?)", ROW)
    connection.close()
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake without a registry."""
    folder = tmp_path / "lake"
    with underlay.connect(str(folder), registry="none") as made:
        made.create_table(NAME, SCHEMA)
    return folder


def use(lake: Path, caplog: pytest.LogCaptureFixture, words: str) -> None:
    """Write to the lake and read from it as if it had no registry; that is said once."""
    with caplog.at_level(logging.WARNING), underlay.connect(str(lake)) as opened:
        table = opened.table(NAME)
        table.append(rows([1]))
        assert ids(table) == [1]
        assert opened.registry is not None
        opened.registry.wait(WAIT_SECONDS)
    assert any(words in record.message for record in caplog.records)


def test_a_link_in_place_of_the_file_is_not_followed(lake: Path, theirs: Path, caplog: pytest.LogCaptureFixture):
    before = theirs.read_bytes()
    (lake / "_registry").mkdir()
    (lake / "_registry" / "registry.sqlite").symlink_to(theirs)
    use(lake, caplog, "not written through a symbolic link")
    assert theirs.read_bytes() == before
    assert sorted(path.name for path in theirs.parent.iterdir()) == ["lake", "theirs.db"]
    for verb in ("restore", "migrate"):
        done = command("registry", verb, "--lake", lake)
        assert done.code == 4
        assert "symbolic link" in done.words
        assert "--registry sqlite:///PATH" in " ".join(done.words.split())
    assert theirs.read_bytes() == before


def test_a_link_in_place_of_the_folder_is_not_followed(lake: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "elsewhere").mkdir()
    (lake / "_registry").symlink_to(tmp_path / "elsewhere")
    use(lake, caplog, "not written through a symbolic link")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("log", ["-wal", "-shm"])
def test_a_link_in_place_of_the_log_is_not_followed(
    lake: Path, tmp_path: Path, log: str, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "elsewhere").write_bytes(b"theirs")
    (lake / "_registry").mkdir()
    (lake / "_registry" / f"registry.sqlite{log}").symlink_to(tmp_path / "elsewhere")
    use(lake, caplog, "not written through a symbolic link")
    assert (tmp_path / "elsewhere").read_bytes() == b"theirs"


@pytest.mark.parametrize("is_hard_link", [False, True])
def test_a_database_of_another_program_is_not_written_to(
    lake: Path, theirs: Path, is_hard_link: bool, caplog: pytest.LogCaptureFixture
):
    before = theirs.read_bytes()
    (lake / "_registry").mkdir()
    path = lake / "_registry" / "registry.sqlite"
    if is_hard_link:
        path.hardlink_to(theirs)
    else:
        path.write_bytes(before)
    use(lake, caplog, "a database of another program")
    assert path.read_bytes() == before
    for verb in ("restore", "migrate"):
        done = command("registry", verb, "--lake", lake)
        assert done.code == 4
        assert "database of another program" in " ".join(done.words.split())
    assert path.read_bytes() == before


def test_a_link_to_a_folder_above_the_registry_is_followed(tmp_path: Path):
    """Whole lakes, and home folders, lie behind links."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    with underlay.connect(str(tmp_path / "here" / "lake")) as lake:
        lake.create_table(NAME, SCHEMA)
        assert lake.registry is not None
        assert lake.registry.wait(WAIT_SECONDS)
    assert (tmp_path / "there" / "lake" / "_registry" / "registry.sqlite").is_file()
