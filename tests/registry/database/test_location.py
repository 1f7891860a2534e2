from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from underlay.errors import InvalidRequest
from underlay.registry.database.location import choose_url, default_url

HOME = Path("/home/ada")


def test_a_local_lake_has_its_registry_beside_it():
    assert default_url("file:///srv/lake", {}, HOME) == "sqlite:////srv/lake/_registry/registry.sqlite"


def test_a_folder_with_any_name_can_hold_a_registry(tmp_path: Path):
    folder = tmp_path / "100 % ? #1"
    assert default_url(folder.as_uri(), {}, HOME) == f"sqlite:///{folder}/_registry/registry.sqlite"


def test_a_lake_in_memory_has_no_registry():
    assert default_url("memory://name", {}, HOME) is None


def test_a_remote_lake_has_its_registry_in_the_users_state_folder():
    url = default_url("s3://bucket/sales/lake", {}, HOME)
    assert url is not None
    assert url.startswith("sqlite:////home/ada/.local/state/underlay/s3-bucket-sales-lake-")
    assert len(Path(url).stem.rpartition("-")[2]) == 16


def test_the_state_folder_is_where_the_environment_says():
    url = default_url("gs://bucket/lake", {"XDG_STATE_HOME": "/var/state"}, HOME)
    assert url is not None
    assert url.startswith("sqlite:////var/state/underlay/gs-bucket-lake-")


def test_a_relative_state_folder_is_ignored():
    assert default_url("s3://b/x", {"XDG_STATE_HOME": "state"}, HOME) == default_url("s3://b/x", {}, HOME)


def test_lakes_that_read_alike_have_registries_of_their_own():
    assert default_url("s3://bucket/a-b", {}, HOME) != default_url("s3://bucket/a/b", {}, HOME)
    long = "s3://bucket/" + "x" * 200
    assert default_url(long + "1", {}, HOME) != default_url(long + "2", {}, HOME)


def test_a_slash_at_the_end_makes_no_other_lake():
    assert default_url("s3://bucket/lake/", {}, HOME) == default_url("s3://bucket/lake", {}, HOME)


def test_two_schemes_of_the_same_store_have_one_registry():
    assert default_url("s3a://bucket/lake", {}, HOME) == default_url("s3://bucket/lake", {}, HOME)
    same = [default_url(f"{scheme}://lake@account/path", {}, HOME) for scheme in ("abfs", "abfss")]
    assert same[0] == same[1]


def test_what_was_chosen_goes_before_the_environment_and_that_before_the_default():
    environment = {"UNDERLAY_REGISTRY": "sqlite:////b"}
    assert choose_url("sqlite:////a", "file:///srv/lake", environment, HOME) == "sqlite:////a"
    assert choose_url(None, "file:///srv/lake", environment, HOME) == "sqlite:////b"
    assert choose_url(None, "file:///srv/lake", {}, HOME) == "sqlite:////srv/lake/_registry/registry.sqlite"
    assert choose_url(None, "file:///srv/lake", {"UNDERLAY_REGISTRY": ""}, HOME) is not None


@pytest.mark.parametrize("none", ["none", "None", "NONE"])
def test_the_word_none_means_no_registry(none: str):
    assert choose_url(none, "file:///srv/lake", {"UNDERLAY_REGISTRY": "sqlite:////b"}, HOME) is None
    assert choose_url(None, "file:///srv/lake", {"UNDERLAY_REGISTRY": none}, HOME) is None


def test_a_path_without_a_scheme_is_refused_with_how_to_write_it():
    with pytest.raises(InvalidRequest, match=r"sqlite:///registry\.sqlite"):
        choose_url("registry.sqlite", "file:///srv/lake", {}, HOME)
    with pytest.raises(InvalidRequest, match="UNDERLAY_REGISTRY"):
        choose_url(None, "file:///srv/lake", {"UNDERLAY_REGISTRY": "host=db password=hunter2"}, HOME)


def test_what_is_no_url_is_not_repeated():
    with pytest.raises(InvalidRequest) as caught:
        choose_url("host=db password=hunter2", "file:///srv/lake", {}, HOME)
    assert "hunter2" not in str(caught.value)


def test_choosing_a_place_loads_no_sqlalchemy():
    code = "import underlay.registry.database.location, sys; print('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
