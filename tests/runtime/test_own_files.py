from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from underlay.errors import InvalidRequest, NotFound, Unavailable
from underlay.runtime.own_files import MAX_BYTES, read_small_file, write_own_file

STRANGER = 54321
"""The number of a user and a group that nobody has."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "project" / "settings"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    path.chmod(0o644)
    return path


def test_a_file_of_this_user_is_believed(file: Path):
    assert read_small_file(file) == (b"mine", None)


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o602])
def test_a_file_that_everybody_may_write_is_told(file: Path, mode: int):
    file.chmod(mode)
    assert read_small_file(file) == (b"mine", f"everybody may write to {file}")


@pytest.mark.parametrize("above", [0, 1])
def test_a_file_that_everybody_may_replace_is_told(file: Path, above: int):
    folder = file.parents[above]
    folder.chmod(0o777)
    assert read_small_file(file)[1] == f"everybody may write to {folder}"
    folder.chmod(0o777 | stat.S_ISVTX)
    assert read_small_file(file)[1] is None


@as_root
@pytest.mark.parametrize("above", [None, 0, 1])
def test_what_belongs_to_a_stranger_is_told(file: Path, above: int | None):
    path = file if above is None else file.parents[above]
    os.chown(path, STRANGER, -1)
    assert read_small_file(file)[1] == f"{path} belongs to the user number {STRANGER}"
    path.chmod(0o1755)
    assert read_small_file(file)[1] == f"{path} belongs to the user number {STRANGER}"


@as_root
def test_a_group_that_may_write_is_told(file: Path):
    os.chown(file, -1, STRANGER)
    assert read_small_file(file)[1] is None
    file.chmod(0o664)
    assert read_small_file(file)[1] == f"the group {STRANGER} may write to {file}"


def test_the_group_of_root_is_nobody_else(file: Path):
    if file.stat().st_gid != 0:
        pytest.skip("only members of that group make such files")
    file.chmod(0o664)
    assert read_small_file(file)[1] is None


def test_what_a_link_leads_to_is_judged(file: Path, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(file)
    assert read_small_file(link) == (b"mine", None)
    file.parent.chmod(0o777)
    assert read_small_file(link)[1] == f"everybody may write to {file.parent}"


def test_what_is_no_small_file_is_refused(file: Path, tmp_path: Path):
    with pytest.raises(NotFound):
        read_small_file(tmp_path / "absent")
    with pytest.raises(NotFound):
        read_small_file(tmp_path)
    file.write_bytes(bytes(MAX_BYTES + 1))
    with pytest.raises(InvalidRequest, match="too large"):
        read_small_file(file)


def test_what_is_written_is_this_users_alone(tmp_path: Path):
    path = tmp_path / "config" / "inner" / "file"
    write_own_file(path, b"1")
    write_own_file(path, b"2")
    assert read_small_file(path) == (b"2", None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [found.name for found in path.parent.iterdir()] == ["file"]
    with pytest.raises(Unavailable):
        write_own_file(path / "below", b"3")
