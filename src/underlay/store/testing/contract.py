"""The promises of `Store` as tests, for anyone who implements one. Needs pytest.

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MyStore(...)  # empty, and another one for each test
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest

from underlay.errors import InvalidRequest, NotFound, Replaced, Truncated
from underlay.store.probe import probe_store
from underlay.store.store import Outcome, Store
from underlay.values.ranges import ByteRange

BYTES = bytes(range(256)) * 40
RANGES = [ByteRange(5000, 5100), ByteRange(0, 1), ByteRange(7, 7), ByteRange(5050, 6000), ByteRange(10239, 10240)]


class StoreContract:
    """Inherit from it in a class whose name begins with `Test`, and override the fixture `store`."""

    @pytest.fixture
    def store(self) -> Store:
        """An empty store, another one for each test."""
        raise NotImplementedError(f"{type(self).__name__} must override the fixture `store`")

    @pytest.fixture
    def sorts_folders_as_keys(self) -> bool:
        """Whether a listing compares `a/b` and `a.b` as whole keys. A store that may compare `a` and `a.b` overrides
        it."""
        return True

    def test_a_created_object_is_read_back(self, store: Store) -> None:
        assert store.create("a/b", b"hello") is Outcome.DONE
        data, found = store.get("a/b")
        assert bytes(data) == b"hello"
        assert (found.key, found.size_bytes) == ("a/b", 5)

    def test_a_second_create_is_refused_and_changes_nothing(self, store: Store) -> None:
        store.create("a/b", b"first")
        assert store.create("a/b", b"second") is Outcome.REFUSED
        assert bytes(store.get("a/b")[0]) == b"first"

    def test_of_sixteen_racing_creates_one_is_done(self, store: Store) -> None:
        barrier = Barrier(16)

        def race(number: int) -> Outcome:
            barrier.wait()
            return store.create("race", b"%d" % number)

        with ThreadPoolExecutor(16) as pool:
            outcomes = list(pool.map(race, range(16)))
        assert outcomes.count(Outcome.DONE) == 1
        assert outcomes.count(Outcome.REFUSED) == 15
        assert bytes(store.get("race")[0]) == b"%d" % outcomes.index(Outcome.DONE)

    def test_a_deleted_key_can_be_created_again(self, store: Store) -> None:
        store.create("a", b"first")
        store.delete(["a"])
        assert store.create("a", b"second") is Outcome.DONE

    def test_put_replaces(self, store: Store) -> None:
        store.put("a", b"first")
        before = store.head("a")
        store.put("a", b"second time")
        after = store.head("a")
        assert bytes(store.get("a")[0]) == b"second time"
        assert before is not None
        assert after is not None
        assert before.etag != after.etag

    @pytest.mark.parametrize(
        "data", [b"", bytearray(b"abc"), memoryview(b"xxabcxx")[2:5]], ids=["empty", "array", "view"]
    )
    def test_any_bytes_can_be_put_and_created(self, store: Store, data: bytes | bytearray | memoryview) -> None:
        store.put("put", data)
        assert store.create("created", data) is Outcome.DONE
        assert bytes(store.get("put")[0]) == bytes(store.get("created")[0]) == bytes(data)

    def test_a_large_object_is_whole(self, store: Store) -> None:
        data = BYTES * 3300
        store.put("large", data)
        assert store.get("large")[0] == data

    @pytest.mark.parametrize(
        "read",
        [
            lambda store: store.get("a/none"),
            lambda store: store.get("a/none", if_match='"x"'),
            lambda store: store.get_tail("a/none", 8),
            lambda store: store.get_ranges("a/none", [ByteRange(0, 1)]),
            lambda store: store.get_ranges("a/none", [ByteRange(0, 1)], if_match='"x"'),
        ],
        ids=["get", "get_if_match", "tail", "ranges", "ranges_if_match"],
    )
    def test_reading_a_missing_object_is_not_found_and_names_it(
        self, store: Store, read: Callable[[Store], object]
    ) -> None:
        store.put("a/other", b"")
        with pytest.raises(NotFound, match="a/none"):
            read(store)

    def test_head_describes_what_is_there_and_knows_what_is_not(self, store: Store) -> None:
        store.put("a", b"hello")
        found = store.head("a")
        assert found == store.get("a")[1]
        assert found is not None
        assert found.size_bytes == 5
        assert found.modified.tzinfo is UTC or found.modified.utcoffset() == timedelta(0)
        assert store.head("b") is None
        assert store.head("a/b") is None

    def test_ranges_are_those_of_the_bytes(self, store: Store) -> None:
        store.put("a", BYTES)
        etag = store.get("a")[1].etag
        for if_match in (None, etag):
            for gap_bytes in (None, 0, 100_000):
                pieces = store.get_ranges("a", RANGES, if_match=if_match, gap_bytes=gap_bytes)
                assert [bytes(piece) for piece in pieces] == [BYTES[begin:end] for begin, end in RANGES]

    def test_all_objects_come_in_the_order_of_their_keys(self, store: Store) -> None:
        keys = ["a/x", "a/y", "b", "a/b/c", "a/x"]
        for key in keys:
            store.put(key, key.encode())
        assert [bytes(data).decode() for data in store.get_all(keys)] == keys
        assert list(store.get_all([])) == []
        with pytest.raises(NotFound, match="gone"):
            list(store.get_all(["a/x", "a/gone", "a/y"]))

    def test_no_ranges_are_no_bytes(self, store: Store) -> None:
        store.put("a", b"hello")
        assert list(store.get_ranges("a", [])) == []

    @pytest.mark.parametrize("wanted", [ByteRange(0, 6), ByteRange(4, 9), ByteRange(5, 6), ByteRange(99, 100)])
    @pytest.mark.parametrize("is_conditional", [False, True])
    def test_a_range_past_the_end_is_truncated(self, store: Store, wanted: ByteRange, is_conditional: bool) -> None:
        store.put("a", b"hello")
        etag = store.get("a")[1].etag if is_conditional else None
        with pytest.raises(Truncated, match="a"):
            store.get_ranges("a", [ByteRange(0, 2), wanted], if_match=etag, gap_bytes=0)

    @pytest.mark.parametrize("wanted", [ByteRange(-1, 2), ByteRange(3, 2)])
    def test_an_invalid_range_is_refused(self, store: Store, wanted: ByteRange) -> None:
        store.put("a", b"hello")
        with pytest.raises(InvalidRequest):
            store.get_ranges("a", [wanted])

    def test_the_tail_comes_with_the_size(self, store: Store) -> None:
        store.put("a", BYTES)
        data, found = store.get_tail("a", 100)
        assert bytes(data) == BYTES[-100:]
        assert found.size_bytes == len(BYTES)

    def test_a_tail_longer_than_the_object_is_the_object(self, store: Store) -> None:
        store.put("a", b"hello")
        store.put("empty", b"")
        assert bytes(store.get_tail("a", 100)[0]) == b"hello"
        data, found = store.get_tail("empty", 100)
        assert (bytes(data), found.size_bytes) == (b"", 0)

    def test_reads_with_the_etag_succeed_until_the_object_is_replaced(self, store: Store) -> None:
        store.put("a", b"hello")
        etag = store.get("a")[1].etag
        assert bytes(store.get("a", if_match=etag)[0]) == b"hello"
        store.put("a", b"HELLO!")
        with pytest.raises(Replaced, match="a"):
            store.get("a", if_match=etag)
        with pytest.raises(Replaced, match="a"):
            store.get_ranges("a", [ByteRange(0, 1), ByteRange(3, 4)], if_match=etag, gap_bytes=0)

    @pytest.mark.parametrize("ranges", [[ByteRange(0, 1)], [ByteRange(0, 1), ByteRange(3, 4)]], ids=["one", "two"])
    def test_ranges_of_an_object_of_another_size_are_refused(self, store: Store, ranges: list[ByteRange]) -> None:
        store.put("a", b"hello")
        assert len(store.get_ranges("a", ranges, size_bytes=5, gap_bytes=0)) == len(ranges)
        with pytest.raises(Replaced, match="a"):
            store.get_ranges("a", ranges, size_bytes=6, gap_bytes=0)

    def test_listing_is_by_folder_and_ascending(self, store: Store) -> None:
        for key in ["b/2", "b/10", "b/é", "b/deep/er/x", "ba", "a"]:
            store.put(key, b"x")
        assert _keys(store) == ["a", "b/10", "b/2", "b/deep/er/x", "b/é", "ba"]
        assert _keys(store, "b") == _keys(store, "b/") == ["b/10", "b/2", "b/deep/er/x", "b/é"]
        assert _keys(store, "none") == []

    def test_listing_goes_on_after_a_key(self, store: Store) -> None:
        for number in range(12):
            store.put(f"_index/{number:020}.root", b"x")
        store.put("_index/segments/x", b"x")
        assert _keys(store, "_index", after=f"_index/{9:020}.root") == [
            f"_index/{10:020}.root",
            f"_index/{11:020}.root",
            "_index/segments/x",
        ]
        assert _keys(store, "_index/segments", after="_index/segments/x") == []

    def test_a_folder_sorts_as_its_keys_do(self, store: Store, sorts_folders_as_keys: bool) -> None:
        ascending = ["a-b", "a.b", "a/b", "a/c/d", "a0", "\uffee", "\U0001f600"]
        for key in reversed(ascending):
            store.put(key, b"x")
        if not sorts_folders_as_keys:
            assert sorted(_keys(store)) == ascending
            return
        assert _keys(store) == ascending
        assert _keys(store, after="a.b") == ["a/b", "a/c/d", "a0", "\uffee", "\U0001f600"]
        assert _keys(store, after="a/b") == ["a/c/d", "a0", "\uffee", "\U0001f600"]

    def test_a_listing_describes_objects_as_head_does(self, store: Store) -> None:
        store.put("a/b", b"hello")
        (listed,) = store.list_objects("a")
        found = store.head("a/b")
        assert found is not None
        assert (listed.key, listed.size_bytes, listed.etag) == (found.key, found.size_bytes, found.etag)
        # A listing may be more precise than the whole seconds of a header.
        assert abs(listed.modified - found.modified) < timedelta(seconds=1)

    def test_more_objects_than_a_page_are_listed_and_deleted(self, store: Store) -> None:
        names = [f"many/{number:04}" for number in range(1050)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda name: store.put(name, b""), names))
        assert _keys(store, "many") == names
        store.delete(names)
        assert _keys(store, "many") == []

    def test_folders_are_named_level_by_level(self, store: Store) -> None:
        for key in ["taxi/trips/x", "taxi/zones/y/z", "bikes/x", "top"]:
            store.put(key, b"x")
        assert list(store.list_folders()) == ["bikes", "taxi"]
        assert list(store.list_folders("taxi")) == ["taxi/trips", "taxi/zones"]
        assert list(store.list_folders("none")) == []

    def test_deleting_what_is_not_there_is_no_error(self, store: Store) -> None:
        store.put("a", b"x")
        store.delete(["a", "b", "c/d"])
        store.delete(["a"])
        store.delete([])
        assert _keys(store) == []

    @pytest.mark.parametrize(
        "key", ["with space", "per%20cent", "hash#mark?", "plus+", "é/\u00fc", "a=1/b=2.parquet", "%2F"]
    )
    def test_unusual_keys_come_back_as_they_were(self, store: Store, key: str) -> None:
        assert store.create(key, b"x") is Outcome.DONE
        assert store.create(key, b"y") is Outcome.REFUSED
        assert _keys(store) == [key]
        assert bytes(store.get(key)[0]) == b"x"
        store.delete([key])
        assert store.head(key) is None

    @pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/./b", "a\nb", ".tmp-x", "x" * 256])
    def test_bad_keys_are_refused_by_every_method(self, store: Store, key: str) -> None:
        methods: list[Callable[[], object]] = [
            lambda: store.create(key, b""),
            lambda: store.put(key, b""),
            lambda: store.get(key),
            lambda: store.get_ranges(key, []),
            lambda: store.get_tail(key, 1),
            lambda: store.head(key),
            lambda: store.delete([key]),
        ]
        for method in methods:
            with pytest.raises(InvalidRequest):
                method()

    def test_the_clock_is_the_one_that_stamps_objects(self, store: Store) -> None:
        before = store.now()
        store.put("a", b"x")
        after = store.now()
        found = store.head("a")
        assert found is not None
        assert before <= found.modified <= after
        assert abs(datetime.now(UTC) - after) < timedelta(seconds=60)
        assert _keys(store) == ["a"]

    def test_the_probe_accepts_it_and_leaves_nothing(self, store: Store) -> None:
        probe_store(store)
        assert _keys(store) == []


def _keys(store: Store, folder: str = "", after: str | None = None) -> list[str]:
    return [found.key for found in store.list_objects(folder, after=after)]
