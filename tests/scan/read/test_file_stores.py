from __future__ import annotations

import os
from pathlib import Path

import pytest

from underlay.errors import InvalidRequest
from underlay.index.keys import RevisionKeys
from underlay.scan.read.file_stores import FileStores, ObjectPlace
from underlay.store import open_store
from underlay.store.local import LocalStore

KEYS = RevisionKeys("some/table/revision")
ODD = ["plain.parquet", "with space.parquet", "100%.parquet", "a#b.parquet", "ünï?cødé+&=.parquet", "%20.parquet"]


@pytest.fixture
def stores(tmp_path: Path) -> FileStores:
    return FileStores(LocalStore(tmp_path / "the lake"))


def test_a_file_of_ours_lies_in_the_revisions_folder(stores: FileStores):
    assert stores.locate(KEYS, "a.parquet") == ObjectPlace(stores.lake, "some/table/revision/a.parquet")


@pytest.mark.parametrize("name", ODD)
def test_a_registered_file_below_the_lake_is_known_by_its_key(stores: FileStores, tmp_path: Path, name: str):
    place = stores.locate_path("file", str(tmp_path / "the lake" / "in" / name))
    assert place == ObjectPlace(stores.lake, f"in/{name}")
    assert stores.location(place) == f"./in/{name}"
    assert stores.locate(KEYS, f"./in/{name}") == place


@pytest.mark.parametrize("name", ODD)
def test_a_local_file_elsewhere_is_found_again_by_its_location(stores: FileStores, tmp_path: Path, name: str):
    path = tmp_path / "else where" / name
    path.parent.mkdir()
    path.write_bytes(b"content")
    place = stores.locate_path("file", str(path))
    location = stores.location(place)
    assert location == path.as_uri()
    store, key = stores.locate(KEYS, location)
    assert bytes(store.get(key)[0]) == b"content"


def test_a_folder_that_only_begins_like_the_lake_is_not_in_it(stores: FileStores, tmp_path: Path):
    place = stores.locate_path("file", str(tmp_path / "the lake 2" / "a.parquet"))
    assert place.store is not stores.lake


def test_an_object_in_another_bucket_keeps_its_key_as_it_is(stores: FileStores):
    place = stores.locate_path("s3", "bucket/some/a b%20#c.parquet")
    assert (place.store.url, place.key) == ("s3://bucket", "some/a b%20#c.parquet")
    assert stores.location(place) == "s3://bucket/some/a b%20#c.parquet"
    assert stores.locate(KEYS, stores.location(place)) == place


def test_each_store_is_opened_once(stores: FileStores):
    first, second = (stores.locate(KEYS, f"s3://bucket/{name}") for name in "ab")
    assert first.store is second.store
    assert stores.locate(KEYS, "s3://other/a").store is not first.store


def test_an_object_of_a_remote_lake_is_known_by_its_key():
    name = os.urandom(4).hex()
    stores = FileStores(open_store(f"memory://{name}"))
    place = stores.locate_path("memory", f"{name}/in/a b.parquet")
    assert place == ObjectPlace(stores.lake, "in/a b.parquet")
    assert stores.location(place) == "./in/a b.parquet"


@pytest.mark.parametrize(("scheme", "path"), [("s3", "bucket"), ("s3", "bucket/"), ("", "a"), ("file", "/")])
def test_what_names_no_object_is_refused(stores: FileStores, scheme: str, path: str):
    with pytest.raises(InvalidRequest, match="not the URL of an object"):
        stores.locate_path(scheme, path)


def test_a_lake_that_moved_finds_the_files_below_it(tmp_path: Path):
    before, after = (FileStores(LocalStore(tmp_path / name)) for name in ("before", "after"))
    location = before.location(before.locate_path("file", str(tmp_path / "before" / "in" / "a.parquet")))
    assert after.locate(KEYS, location) == ObjectPlace(after.lake, "in/a.parquet")
