from __future__ import annotations

import os
from pathlib import Path

import pytest

from underlay.errors import InvalidRequest
from underlay.store.local import LocalStore
from underlay.store.open import Option, open_store
from underlay.store.remote import RemoteStore
from underlay.store.testing import CountingStore


def test_paths_and_file_urls_are_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for url in ["la ke", tmp_path / "la ke", f"file://{tmp_path}/la%20ke", open_store("la ke").url]:
        store = open_store(url)
        assert isinstance(store, LocalStore)
        assert store.root == tmp_path / "la ke"
    assert not (tmp_path / "la ke").exists()


def test_memory_stores_of_one_name_are_one():
    name = os.urandom(4).hex()
    open_store(f"memory://{name}").put("a", b"x")
    assert open_store(f"memory://{name}/").head("a") is not None
    assert open_store(f"memory://{name}/other").head("a") is None


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3://bucket/path", {"region": "eu-central-1"}),
        ("s3a://bucket", {"region": "eu-central-1"}),
        ("gs://bucket/path", {"bearer_token": "t"}),
        ("az://container/path", {"account_name": "acc", "account_key": "c2VjcmV0"}),
        ("abfss://container@acc.dfs.core.windows.net/path", {"account_key": "c2VjcmV0"}),
    ],
)
def test_cloud_urls_open_without_a_request(url: str, options: dict[str, Option]):
    store = open_store(f"{url}/", options)
    assert isinstance(store, RemoteStore)
    assert store.url == url
    assert repr(store) == f"RemoteStore({url!r})"


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKID:hunter2@bucket/path",
        "s3://hunter2@bucket",
        "az://container?sig=hunter2",
        "abfs://container:hunter2@acc.dfs.core.windows.net/",
        "gs://bucket#hunter2",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str):
    with pytest.raises(InvalidRequest, match="options") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("ftp://host/path", {}, "scheme"),
        ("file://elsewhere/path", {}, "this machine"),
        ("s3://bucket", {"regoin": "x", "secret_access_key": "hunter2"}, "regoin"),
        ("s3://bucket", {"secret_access_key": "hunter2\n"}, "secret_access_key"),
        ("s3://bucket", {"timeout": "hunter2"}, "options"),
        ("s3://bucket", {"max_retries": "hunter2"}, "options"),
        ("az://container", {"account_key": "hunter2"}, "account"),
        ("gs://bucket", {"service_account_key": '{"private_key": "hunter2"}'}, "options"),
        ("memory://x", {"region": "hunter2"}, "region"),
        ("some/path", {"region": "hunter2"}, "region"),
    ],
)
def test_what_is_not_understood_is_refused_without_showing_values(url: str, options: dict[str, Option], words: str):
    with pytest.raises(InvalidRequest, match=words) as caught:
        open_store(url, options)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_store_knows_whether_it_is_remote_and_how_much_to_ask_of_it_at_once(tmp_path: Path):
    local, memory = open_store(tmp_path), open_store("memory://x")
    remote = open_store("s3://bucket/lake", {"region": "us-east-1"})
    assert [store.is_remote for store in (local, memory, remote)] == [False, False, True]
    assert local.parallel_requests < remote.parallel_requests
    counting = CountingStore(remote)
    assert (counting.is_remote, counting.parallel_requests) == (True, remote.parallel_requests)


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_store("~/lake").url == open_store(tmp_path / "lake").url
