"""The source tree is a dict by uri, in few small pages, and notices every damaged one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from deflate import crc32
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.gate import costly
from underlay.errors import ChecksumMismatch, Inconsistent, InvalidRequest, Malformed, Truncated, Unsupported
from underlay.index.root import PageRef, SourceRecord, Sources
from underlay.index.sources import page as source_page
from underlay.index.sources import tree as sources


class Shelf:
    """Pages in memory, and what was asked of them."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.fetches: list[list[str]] = []
        self.made = 0

    def fetch(self, refs: Sequence[PageRef]) -> list[bytes]:
        self.fetches.append([ref.id for ref in refs])
        return [self.pages[ref.id] for ref in refs]

    def new_id(self) -> str:
        self.made += 1
        return f"page-{self.made}"

    def insert(self, tree: Sources, records: Sequence[SourceRecord]) -> tuple[Sources, dict[str, bytes]]:
        after, pages = sources.insert(tree, records, self.fetch, self.new_id)
        assert not pages.keys() & self.pages.keys()
        self.pages |= pages
        return after, pages

    def replace(self, tree: Sources, rows: pa.Table, height: int) -> Sources:
        """A tree whose root page holds `rows`, well checksummed."""
        child, data = source_page.encode_page(rows, height, self.new_id())
        self.pages[child.ref.id] = data
        return Sources(tree=child.ref, journal=tree.journal)


def record(number: int, identity: str = "e") -> SourceRecord:
    return SourceRecord(f"s3://bucket/folder/part-{number:08}.csv", identity, 3, row_count=number)


@pytest.fixture(scope="module")
def large() -> tuple[Shelf, Sources]:
    """100,000 sources with even numbers."""
    shelf = Shelf()
    tree, _ = shelf.insert(Sources(), [record(2 * i) for i in range(100_000)])
    return shelf, tree


@pytest.fixture
def deep(monkeypatch: pytest.MonkeyPatch) -> tuple[Shelf, Sources]:
    """200 sources in tiny pages, three levels or more."""
    monkeypatch.setattr(sources, "PAGE_BYTES", 500)
    monkeypatch.setattr(sources, "JOURNAL_RECORDS", 0)
    shelf = Shelf()
    tree, _ = shelf.insert(Sources(), [record(i) for i in range(200)])
    assert tree.tree is not None
    assert tree.tree.height >= 2
    return shelf, tree


def test_a_few_records_stay_in_the_journal_without_any_page() -> None:
    shelf = Shelf()
    tree, pages = shelf.insert(Sources(), [record(i) for i in range(200)])
    assert (tree.tree, len(tree.journal), pages, shelf.fetches) == (None, 200, {}, [])
    assert sources.lookup(tree, [record(7).uri, "none"], shelf.fetch) == {record(7).uri: record(7)}


def test_a_full_journal_is_folded_into_pages() -> None:
    shelf = Shelf()
    tree, _ = shelf.insert(Sources(), [record(i) for i in range(200)])
    tree, pages = shelf.insert(tree, [record(200)])
    assert (len(tree.journal), len(pages)) == (0, 1)
    assert list(sources.scan_all(tree, shelf.fetch)) == [record(i) for i in range(201)]


def test_a_journal_of_few_but_large_records_is_folded() -> None:
    tree, pages = Shelf().insert(Sources(), [SourceRecord("a", "e", 1, "failed", error="x" * 40_000)])
    assert tree.journal == ()
    assert len(pages) == 1


def test_every_field_comes_back_from_a_page(deep: tuple[Shelf, Sources]) -> None:
    shelf, tree = deep
    full = SourceRecord("ü\U0010ffff", "e", 7, "failed", "job", 9, "cannot be read")
    tree, _ = shelf.insert(tree, [full])
    assert sources.lookup(tree, [full.uri], shelf.fetch) == {full.uri: full}


def test_the_last_record_of_a_uri_stays() -> None:
    shelf = Shelf()
    tree, _ = shelf.insert(Sources(), [record(1, "a"), record(2, "a"), record(1, "b")])
    assert tree.journal == (record(2, "a"), record(1, "b"))


def test_the_journal_wins_over_the_pages(large: tuple[Shelf, Sources]) -> None:
    shelf, tree = large
    tree, _ = shelf.insert(tree, [record(10, "newer")])
    assert sources.lookup(tree, [record(10).uri], shelf.fetch) == {record(10).uri: record(10, "newer")}


def test_inserting_what_is_known_changes_nothing(large: tuple[Shelf, Sources]) -> None:
    shelf, tree = large
    after, pages = shelf.insert(tree, [record(2 * i) for i in range(300)])
    assert (after, pages) == (tree, {})


def test_one_new_among_many_writes_one_page_for_each_level(large: tuple[Shelf, Sources]) -> None:
    shelf, tree = large
    assert tree.tree is not None
    full = Sources(tree=tree.tree, journal=tuple(record(1_000_000 + i) for i in range(200)))
    after, pages = shelf.insert(full, [record(1_000_200)])
    assert len(pages) <= tree.tree.height + 2
    assert after.tree is not None
    assert after.tree.entry_count == 100_201


def test_lookup_fetches_each_level_once_and_only_needed_pages(large: tuple[Shelf, Sources]) -> None:
    shelf, tree = large
    shelf.fetches.clear()
    wanted = [record(n) for n in (0, 2, 100_000, 199_998)]
    found = sources.lookup(tree, [r.uri for r in wanted] + [record(1).uri, "", "zzz"], shelf.fetch)
    assert found == {r.uri: r for r in wanted}
    assert [len(fetched) for fetched in shelf.fetches] == [1, 3]


def test_pages_are_of_the_size_they_should_be(large: tuple[Shelf, Sources]) -> None:
    shelf, tree = large
    assert all(len(shelf.pages[i]) < 2 * sources.PAGE_BYTES for i in sources.page_ids(tree, shelf.fetch))
    assert len(sources.page_ids(tree, shelf.fetch)) < 300


def test_scan_gives_every_record_in_order(large: tuple[Shelf, Sources]) -> None:
    shelf, tree = large
    tree, _ = shelf.insert(tree, [record(1), record(4, "newer"), SourceRecord("a", "e", 1), SourceRecord("z", "e", 1)])
    expected = [SourceRecord("a", "e", 1), record(0), record(1), record(2), record(4, "newer"), record(6)]
    found = list(sources.scan_all(tree, shelf.fetch))
    assert found[:6] == expected
    assert found[-1].uri == "z"
    assert len(found) == 100_003


def test_page_ids_are_those_that_were_made(deep: tuple[Shelf, Sources]) -> None:
    shelf, tree = deep
    assert sources.page_ids(tree, shelf.fetch) == shelf.pages.keys()
    assert sources.page_ids(Sources(), shelf.fetch) == set()


def test_page_ids_of_a_later_version_cost_only_what_it_changed(deep: tuple[Shelf, Sources]) -> None:
    shelf, tree = deep
    known = sources.page_ids(tree, shelf.fetch)
    after, pages = shelf.insert(tree, [record(100, "newer")])
    assert sources.page_ids(after, shelf.fetch, known) == pages.keys()
    assert sources.page_ids(after, shelf.fetch, known | pages.keys()) == set()


@pytest.mark.parametrize("uri", ["x" * 4097, "\ud800"])
def test_a_uri_that_cannot_be_kept_is_refused(uri: str) -> None:
    shelf = Shelf()
    with pytest.raises(InvalidRequest):
        shelf.insert(Sources(), [SourceRecord(uri, "e", 1)])
    with pytest.raises(InvalidRequest):
        sources.lookup(Sources(), [uri], shelf.fetch)


def test_longest_uris_still_make_a_tree() -> None:
    shelf = Shelf()
    records = [SourceRecord(f"{i:04}" + "x" * 4092, "e", 1) for i in range(600)]
    tree, _ = shelf.insert(Sources(), records)
    assert list(sources.scan_all(tree, shelf.fetch)) == records


def test_a_tree_that_is_too_high_is_refused(deep: tuple[Shelf, Sources], monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, tree = deep
    assert tree.tree is not None
    monkeypatch.setattr(source_page, "MAX_HEIGHT", tree.tree.height)
    with pytest.raises(Unsupported, match="too high"):
        shelf.insert(tree, [record(i) for i in range(200, 2000)])


def test_every_damaged_byte_of_a_page_is_noticed_and_the_page_named(deep: tuple[Shelf, Sources]) -> None:
    shelf, tree = deep
    for page_id, data in list(shelf.pages.items())[:3]:
        for at in range(0, len(data), 7):
            shelf.pages[page_id] = data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
            with pytest.raises(ChecksumMismatch, match=page_id):
                list(sources.scan_all(tree, shelf.fetch))
        shelf.pages[page_id] = data[:-1]
        with pytest.raises(Truncated, match=page_id):
            list(sources.scan_all(tree, shelf.fetch))
        shelf.pages[page_id] = data


def test_well_checksummed_bytes_that_are_no_page_are_malformed() -> None:
    data = b"ARROW1 but not"
    ref = PageRef(id="p", size_bytes=len(data), crc=crc32(data), entry_count=1, height=0)
    with pytest.raises(Malformed, match="page p"):
        sources.lookup(Sources(tree=ref), ["a"], lambda refs: [data])


def test_a_leaf_out_of_order_is_malformed() -> None:
    shelf = Shelf()
    tree = shelf.replace(Sources(), source_page.leaf_rows([record(2), record(1)]), 0)
    with pytest.raises(Malformed, match="ascending"):
        sources.lookup(tree, ["a"], shelf.fetch)


def test_a_uri_twice_in_a_leaf_is_malformed() -> None:
    shelf = Shelf()
    tree = shelf.replace(Sources(), source_page.leaf_rows([record(1), record(1)]), 0)
    with pytest.raises(Malformed, match="ascending"):
        sources.lookup(tree, ["a"], shelf.fetch)


@pytest.mark.parametrize(("low", "next_low"), [("a", None), (record(1).uri, record(4).uri)])
def test_a_child_outside_the_range_its_parent_gives_is_malformed(low: str, next_low: str | None) -> None:
    shelf = Shelf()
    child, data = source_page.encode_page(source_page.leaf_rows([record(1), record(5)]), 0, "child")
    shelf.pages["child"] = data
    children = [source_page.Child(ref=child.ref, low=low)]
    if next_low:
        children.append(source_page.Child(ref=child.ref, low=next_low))
    tree = shelf.replace(Sources(), source_page.inner_rows(children), 1)
    with pytest.raises(Malformed, match="page child"):
        list(sources.scan_all(tree, shelf.fetch))


@pytest.mark.parametrize("change", [{"height": 1}, {"entry_count": 2}])
def test_a_page_that_is_not_as_described_is_malformed(change: dict[str, int]) -> None:
    child, data = source_page.encode_page(source_page.leaf_rows([record(1)]), 0, "child")
    fields = {"size_bytes": child.ref.size_bytes, "crc": child.ref.crc, "entry_count": 1, "height": 0} | change
    with pytest.raises(Malformed, match="page child"):
        sources.lookup(Sources(tree=PageRef(id="child", **fields)), ["a"], lambda refs: [data])


@pytest.mark.parametrize("height", [-1, 8, 1 << 40])
def test_an_impossible_height_is_malformed(height: int) -> None:
    ref = PageRef(id="p", size_bytes=1, crc=0, entry_count=1, height=height)
    with pytest.raises(Malformed, match="height"):
        sources.lookup(Sources(tree=ref), ["a"], lambda refs: [b""])


def test_a_fetch_that_leaves_pages_out_is_refused(large: tuple[Shelf, Sources]) -> None:
    with pytest.raises(Inconsistent):
        sources.lookup(large[1], ["a"], lambda refs: [])


class TreeAgainstDict(RuleBasedStateMachine):
    """Random inserts into tiny pages, compared with a dict after every step; every older version stays readable."""

    uris = st.text("ab\u00e9\U0001f600", max_size=4)
    records = st.builds(SourceRecord, uris, st.sampled_from("xy"), st.integers(0, 5), owner=st.none() | st.just("job"))

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(sources, "PAGE_BYTES", 300)
        self.patch.setattr(sources, "JOURNAL_RECORDS", 3)
        self.shelf = Shelf()
        self.tree = Sources()
        self.model: dict[str, SourceRecord] = {}
        self.first: tuple[Sources, dict[str, SourceRecord]] | None = None

    def teardown(self) -> None:
        self.patch.undo()

    @rule(records=st.lists(records, max_size=12))
    def insert(self, records: list[SourceRecord]) -> None:
        self.tree, _ = self.shelf.insert(self.tree, records)
        self.model |= {r.uri: r for r in records}
        if self.first is None and self.tree.tree:
            self.first = (self.tree, dict(self.model))

    @rule(uris=st.lists(uris, max_size=8))
    def lookup(self, uris: list[str]) -> None:
        expected = {uri: self.model[uri] for uri in uris if uri in self.model}
        assert sources.lookup(self.tree, uris, self.shelf.fetch) == expected

    @rule()
    def insert_again(self) -> None:
        before = self.tree
        self.tree, _ = self.shelf.insert(self.tree, before.journal)
        assert self.tree == before

    @invariant()
    def scan_is_the_dict_in_order(self) -> None:
        assert list(sources.scan_all(self.tree, self.shelf.fetch)) == [self.model[u] for u in sorted(self.model)]

    @invariant()
    def older_version_reads_the_same(self) -> None:
        if self.first:
            tree, model = self.first
            assert {r.uri: r for r in sources.scan_all(tree, self.shelf.fetch)} == model


TestTreeAgainstDict = TreeAgainstDict.TestCase
TestTreeAgainstDict.settings = settings(costly, stateful_step_count=15)


def test_a_leaf_of_older_software_is_read_and_written_anew_with_all_columns() -> None:
    shelf = Shelf()
    tree = shelf.replace(Sources(), source_page.leaf_rows([record(1), record(2)]), 0)
    assert list(sources.scan_all(tree, shelf.fetch)) == [record(1), record(2)]
    newer = SourceRecord(uri=record(2).uri, identity="f", version=3, content="xxh3:1-2", options="o")
    full = [newer, *(record(number) for number in range(10, 10 + sources.JOURNAL_RECORDS))]
    tree, _ = shelf.insert(tree, full)
    found = sources.lookup(tree, [record(1).uri, record(2).uri], shelf.fetch)
    assert (tree.journal, found) == ((), {record(1).uri: record(1), record(2).uri: newer})


def test_a_leaf_without_hashes_is_one_that_older_software_reads() -> None:
    shelf = Shelf()
    tree, _ = shelf.insert(Sources(), [record(number) for number in range(sources.JOURNAL_RECORDS + 1)])
    assert tree.tree is not None
    stored = pa.ipc.open_file(shelf.pages[tree.tree.id]).read_all()
    assert stored.column_names == ["uri", "identity", "version", "status", "owner", "row_count", "error"]
