"""Credentials and settings in files of the platforms' own tools, with a home of the test's own."""

from __future__ import annotations

import builtins
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from tests.store.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server
from underlay.errors import InvalidRequest, Unavailable, Unsupported
from underlay.store.defaults import aws_defaults, azure_defaults
from underlay.store.open import Option, open_store

KEYS = f"aws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
WRONG = "aws_access_key_id = WRONG\naws_secret_access_key = hunter2\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the machine's own is seen."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (tmp_path / ".aws").mkdir()
    return tmp_path


def write(home: Path, *, config: str = "", credentials: str = "") -> None:
    (home / ".aws" / "config").write_text(config)
    (home / ".aws" / "credentials").write_text(credentials)


def can_write(**options: Option) -> bool:
    """Whether the store takes a new object; False when it denies access."""
    store = open_store(f"s3://{BUCKET}/{os.urandom(6).hex()}", {"max_retries": 0, **options})
    problem = ""
    try:
        store.put("a", b"x")
    except Unavailable as error:
        problem = f"{error!r} {error} {store!r}"
    assert "hunter2" not in problem
    assert "403" in problem or not problem
    return not problem


def test_the_default_profile_gives_keys_region_and_endpoint(home: Path, seaweedfs: S3Server):
    write(
        home,
        config=f"[default]\nregion = us-east-1\nendpoint_url = {seaweedfs.endpoint}\n",
        credentials=f"[default]\n{KEYS}",
    )
    assert can_write()


def test_a_profile_is_named_by_the_environment_or_by_an_option_which_wins(
    home: Path, monkeypatch: pytest.MonkeyPatch, seaweedfs: S3Server
):
    services = f"[services local]\ns3 =\n    endpoint_url = {seaweedfs.endpoint}\n"
    config = f"[profile good]\nservices = local\n[profile bad]\nendpoint_url = {seaweedfs.endpoint}\n{services}"
    write(home, config=config, credentials=f"[good]\n{KEYS}[bad]\n{WRONG}")
    monkeypatch.setenv("AWS_PROFILE", "good")
    assert can_write()
    assert not can_write(profile="bad")
    monkeypatch.setenv("AWS_PROFILE", "bad")
    assert not can_write()
    assert can_write(profile="good")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "WRONG")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    assert can_write(profile="good")


def test_keys_of_the_environment_and_of_options_win_over_a_profile_that_nobody_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, seaweedfs: S3Server
):
    write(home, config=f"[default]\nendpoint_url = {seaweedfs.endpoint}\n", credentials=f"[default]\n{WRONG}")
    assert not can_write()
    assert can_write(access_key_id=ACCESS_KEY, secret_access_key=SECRET_KEY)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    assert can_write()


def test_files_lie_where_the_environment_says_and_a_command_may_give_the_keys(
    home: Path, monkeypatch: pytest.MonkeyPatch, seaweedfs: S3Server
):
    answer = home / "answer.json"
    answer.write_text(json.dumps({"Version": 1, "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY}))
    other = home / "elsewhere"
    other.write_text(f"[profile tool]\nendpoint_url={seaweedfs.endpoint}\ncredential_process = cat {answer}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(other))
    assert can_write(profile="tool")


def test_settings_of_options_and_environment_win_over_those_of_the_profile(home: Path):
    write(home, config="[default]\nregion = eu-north-1\nendpoint_url = http://profile\n")
    assert aws_defaults({}, {}).options == {"region": "eu-north-1", "endpoint": "http://profile"}
    assert aws_defaults({"region": "x", "endpoint": "y"}, {}).options == {}
    environment = {"AWS_REGION": "x", "AWS_ENDPOINT_URL": "y"}
    assert aws_defaults({}, environment).options == {}
    ignoring = {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
    assert aws_defaults({}, ignoring).options == {"region": "eu-north-1"}
    assert aws_defaults({}, {}).provider is None


def test_a_profile_that_does_not_exist_is_an_error_that_names_the_others(home: Path, monkeypatch: pytest.MonkeyPatch):
    write(home, config="[profile one]\n[services s]\n", credentials="[two]\n")
    with pytest.raises(InvalidRequest, match=r"no such AWS profile.*one, two.*three"):
        open_store("s3://bucket", {"profile": "three"})
    monkeypatch.setenv("AWS_PROFILE", "three")
    with pytest.raises(InvalidRequest, match="no such AWS profile"):
        open_store("s3://bucket")


def test_a_damaged_file_is_named_and_nothing_of_it_is_shown(home: Path):
    write(home, credentials="[default\nhunter2\n")
    with pytest.raises(InvalidRequest, match="credentials") as caught:
        open_store("s3://bucket")
    assert "hunter2" not in f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"


def test_a_login_that_ended_says_how_to_log_in_again(home: Path):
    sso = "sso_start_url = https://x/start\nsso_region = us-east-1\nsso_account_id = 1\nsso_role_name = r\n"
    write(home, config=f"[profile work]\nregion = us-east-1\n{sso}")
    store = open_store("s3://bucket", {"profile": "work", "max_retries": 0, "endpoint": "http://127.0.0.1:1"})
    for request in (lambda: store.head("a"), lambda: store.create("a", b"x"), lambda: list(store.list_objects())):
        with pytest.raises(Unavailable, match=r"the AWS profile gives no credentials .*aws sso login"):
            request()


def test_without_boto3_the_error_says_how_to_install_it(home: Path, monkeypatch: pytest.MonkeyPatch):
    write(home, config="[default]\nregion = eu-north-1\n", credentials=f"[work]\n{WRONG}")
    load = builtins.__import__

    def without(name: str, *rest: object) -> ModuleType:
        if name.partition(".")[0] == "boto3":
            raise ImportError(name)
        return load(name, *rest)  # type: ignore[arg-type]  # what Python hands over

    monkeypatch.setattr(builtins, "__import__", without)
    open_store("s3://bucket")  # a region takes no boto3
    with pytest.raises(Unsupported, match=r"boto3.*profile work.*pip install 'underlay\[aws\]'") as caught:
        open_store("s3://bucket", {"profile": "work"})
    assert "hunter2" not in repr(caught.value)


def test_the_login_of_azure_s_own_tool_is_used_where_nothing_else_is_named(home: Path):
    (home / "az").write_text("#!/bin/sh\n")
    (home / "az").chmod(0o755)
    here = {"PATH": str(home), "AZURE_CONFIG_DIR": str(home)}
    assert azure_defaults({"account_name": "a"}, here) == {}
    (home / "azureProfile.json").write_text("{}")
    assert azure_defaults({"account_name": "a"}, here) == {"use_azure_cli": "true"}
    for more in ({"AZURE_STORAGE_ACCOUNT_KEY": "k"}, {"AZURE_CLIENT_ID": "i"}, {"IDENTITY_ENDPOINT": "http://x"}):
        assert azure_defaults({}, {**here, **more}) == {}
    for given in ({"account_key": "k"}, {"sas_key": "s"}, {"use_azure_cli": "false"}, {"bearer_token": "t"}):
        assert azure_defaults(given, here) == {}
    assert azure_defaults({}, {"AZURE_CONFIG_DIR": str(home), "PATH": "/nowhere"}) == {}
