from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.ingest.worlds import ids_in, ingest, new_table
from tests.store.servers import S3Server
from underlay.errors import InvalidRequest, NotFound, Replaced
from underlay.ingest.source.find import find_sources, list_beginning
from underlay.ingest.source.pinned import open_pinned
from underlay.ingest.source.source import Source
from underlay.store import Store, StoredObject, open_store
from underlay.store.local import LocalStore
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")

KEYS = (
    "a.csv",
    "b c%.csv",
    "in/2024-01.csv",
    "in/2024-02.csv.gz",
    "in/2024/x.csv",
    "in/2025-01.csv",
    "in/_done",
    "in/.part/y.csv",
    "z.csv",
)


def names(found: list[Source], root: str) -> list[str]:
    assert [one.uri for one in found] == sorted(one.uri for one in found)
    return [one.uri.removeprefix(root) for one in found]


@pytest.fixture(params=["local", "memory"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, str, str]:
    """A store with sources, what a pattern there begins with, and what their uris do."""
    if request.param == "local":
        root = tmp_path / "some where"
        store: Store = open_store(root)
        prefix, uri = f"{root}/", f"{root.as_uri()}/"
    else:
        prefix = uri = f"memory://{os.urandom(6).hex()}/"
        store = open_store(prefix)
    for key in KEYS:
        store.put(key, key.encode())
    return store, prefix, uri


def test_patterns_mean_the_same_everywhere(places: tuple[Store, str, str]):
    _, prefix, uri = places
    meant = {
        "a.csv": ["a.csv"],
        "*.csv": ["a.csv", "b c%.csv", "z.csv"],
        "in/2024-*": ["in/2024-01.csv", "in/2024-02.csv.gz"],
        "in/2024*": ["in/2024-01.csv", "in/2024-02.csv.gz"],
        "in/2024*/*": ["in/2024/x.csv"],
        "**/*.csv": ["a.csv", "b c%.csv", "in/2024-01.csv", "in/2024/x.csv", "in/2025-01.csv", "z.csv"],
        "in/": ["in/2024-01.csv", "in/2024-02.csv.gz", "in/2024/x.csv", "in/2025-01.csv"],
        "in/_*": ["in/_done"],
        "i*/": ["in/2024-01.csv", "in/2024-02.csv.gz", "in/2024/x.csv", "in/2025-01.csv"],
        "in/.part/*": ["in/.part/y.csv"],
        "in/202[45]-01.csv": ["in/2024-01.csv", "in/2025-01.csv"],
    }
    for pattern, keys in meant.items():
        found = [one.replace(" ", "%20").replace("%.", "%25.") for one in keys] if uri.startswith("file") else keys
        assert names(find_sources([prefix + pattern]), uri) == found, pattern
    assert names(find_sources([f"{prefix}in"], whole_folders=True), uri) == meant["in/"]
    twice = find_sources([f"{prefix}in/*.csv", f"{prefix}in/2024-01.csv", f"{prefix}in/"])
    assert names(twice, uri) == meant["in/"]
    assert find_sources([f"{prefix}none*"], may_be_none=True) == []
    for pattern, error in (("none*", NotFound), ("none.csv", NotFound), ("in", InvalidRequest)):
        with pytest.raises(error, match=pattern.strip("*")):
            find_sources([prefix + pattern])
    with pytest.raises(InvalidRequest):
        find_sources([""])


def test_a_uri_is_canonical_and_names_what_is_read(places: tuple[Store, str, str], monkeypatch: pytest.MonkeyPatch):
    store, prefix, uri = places
    found = find_sources([f"{prefix}b c%.csv"])
    with open_pinned(found[0]) as file:
        assert (file.read(), file.seek(2), file.read(1)) == (b"b c%.csv", 2, b"c")
    if isinstance(store, LocalStore):
        monkeypatch.chdir(store.root / "in")
        (store.root / "link").symlink_to(store.root / "in")
        for same in (
            "../b c%.csv",
            f"{uri}b%20c%25.csv",
            uri.replace("///", "/") + "b%20c%25.csv",
            f"{prefix}in/.././b c%.csv",
        ):
            assert find_sources([same]) == found
        with pytest.raises(InvalidRequest):
            find_sources(["file://elsewhere/a.csv"])
        assert names(find_sources([f"{prefix}link/*.csv"]), uri) == ["link/2024-01.csv", "link/2025-01.csv"]
        described = store.head("b c%.csv")
        assert described is not None
        assert found[0].identity == described.etag


def test_a_source_that_changes_before_or_while_it_is_read_is_refused(places: tuple[Store, str, str]):
    store, prefix, _ = places
    store.put("large.csv", b"x" * (20 << 20))
    (found,) = find_sources([f"{prefix}large.csv"])
    with open_pinned(found) as file:
        assert len(file.read(9 << 20)) == 9 << 20
        if isinstance(store, LocalStore):
            with (store.root / "large.csv").open("r+b") as other:
                other.write(b"yy")
            os.utime(store.root / "large.csv", ns=(1, 1))
        else:
            store.put("large.csv", b"y" * (20 << 20))
        with pytest.raises(Replaced):
            file.read()
    with pytest.raises(Replaced), open_pinned(found) as file:
        file.read()
    store.delete(["large.csv"])
    with pytest.raises(NotFound), open_pinned(found) as file:
        file.read()


class Recording(StoreWrapper):
    """Remembers which objects were listed."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.listed: list[str] = []

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        return call()

    def list_objects(self, folder: str = "", *, after: str | None = None) -> Iterator[StoredObject]:
        for found in super().list_objects(folder, after=after):
            self.listed.append(found.key)
            yield found


def test_a_listing_begins_and_ends_where_the_pattern_does():
    store = Recording(open_store(f"memory://{os.urandom(6).hex()}"))
    for number in range(50):
        store.put(f"in/{number:02}.csv", b"")
    assert [found.key for found in list_beginning(store, "in", "30")] == ["in/30.csv"]
    assert store.listed == ["in/30.csv", "in/31.csv"]


def test_sources_and_lake_on_an_object_store(seaweedfs: S3Server):
    store = seaweedfs.open()
    for number in range(3):
        store.put(f"in/{number}.csv", f"{number}\n{number + 10}\n".encode())
    store.put("in-other/9.csv", b"9\n")
    table = new_table(seaweedfs.open())
    pattern = f"{store.url}/in/*.csv"
    assert [one.row_count for one in ingest(table, [pattern], options=seaweedfs.options)] == [6]
    store.put("in/1.csv", b"100\n")
    store.put("in/3.csv", b"3\n")
    done = ingest(table, [pattern.replace("s3://", "s3a://")], options=seaweedfs.options, policy="replace")
    assert ([one.row_count for one in done], ids_in(table)) == ([2], [0, 2, 3, 10, 12, 100])
    assert ingest(table, [f"{store.url}/in/"], options=seaweedfs.options) == []
    (found, *_) = find_sources([pattern], seaweedfs.options)
    store.put("in/0.csv", b"0\n99\n")
    with pytest.raises(Replaced), open_pinned(found, seaweedfs.options) as file:
        file.read()
    with pytest.raises(InvalidRequest, match="folder"):
        find_sources([f"{store.url}/in"], seaweedfs.options)
