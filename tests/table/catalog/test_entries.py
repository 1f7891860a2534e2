"""Entries of the catalog hold what changed: how much that is, and that the mapping is the same for all who read it."""

from __future__ import annotations

import json
from random import Random

import msgspec
import pytest

from tests.gate import sized
from tests.table.catalog.edits import edit_at_random
from tests.table.entries import memory, new_lake, surroundings
from underlay.errors import Inconsistent, Malformed, Unsupported
from underlay.index.catalog import Catalog, catalog_after, decode_entry, entries_of, whole_catalog
from underlay.index.keys import catalog_key
from underlay.index.sealed_json import seal, unseal
from underlay.store.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.catalog.changes import create_table, tag_version
from underlay.table.catalog.lake import LakeCatalog


def fill(lake: LakeCatalog, begin: int, end: int) -> None:
    for number in range(begin, end):
        lake.change(create_table(f"d.t{number}", f"d/t{number}", f"revision-{number:032}", number))


def mark(lake: LakeCatalog, begin: int, end: int) -> None:
    for number in range(begin, end):
        lake.change(tag_version("d.t0", f"tag-{number}", f"revision-{0:032}", number))


def cold(store: Store) -> Catalog:
    return LakeCatalog(store, surroundings()).catalog()


def entry_bytes(store: Store) -> int:
    return sum(found.size_bytes for found in store.list_objects("_catalog"))


def rewritten(store: Store, number: int, **members: object) -> None:
    """Entry `number` with other members, None for those it loses."""
    entry = json.loads(unseal(store.get(catalog_key(number))[0])) | members
    kept = {name: value for name, value in entry.items() if value is not None or name == "parent_id"}
    store.put(catalog_key(number), seal(json.dumps(kept, separators=(",", ":")).encode()))


def test_four_times_as_many_tables_cost_little_more_than_four_times_the_bytes():
    lake = new_lake(memory())
    fill(lake, 0, 256)
    few = entry_bytes(lake.store)
    fill(lake, 256, 1024)
    assert entry_bytes(lake.store) < 6 * few


def test_four_times_as_many_tags_cost_little_more_than_four_times_the_bytes():
    lake = new_lake(memory())
    fill(lake, 0, 1)
    mark(lake, 0, 128)
    few = entry_bytes(lake.store)
    mark(lake, 128, 512)
    assert entry_bytes(lake.store) < 6 * few
    assert len(cold(lake.store).tables["d.t0"].tags) == 512


def test_a_cold_listing_asks_for_one_entry_for_each_bit_of_the_newest_number():
    lake = new_lake(memory())
    fill(lake, 0, 1023)
    store = CountingStore(lake.store)
    assert len(cold(store).tables) == 1023
    asked = [served.request.keys[0] for served in store.log if served.request.op is StoreMethod.GET]
    entries = [key for key in asked if key.endswith(".json")]
    assert sorted(entries) == sorted(map(catalog_key, entries_of(1023, None)))
    assert len(entries) == 10


def test_who_knows_an_entry_reads_only_what_came_since():
    lake = new_lake(memory())
    fill(lake, 0, 1000)
    store = CountingStore(lake.store)
    reader = LakeCatalog(store, surroundings())
    reader.catalog()
    fill(lake, 1000, 1007)
    store.reset()
    assert len(reader.catalog().tables) == 1007
    read = [served for served in store.log if served.request.op is StoreMethod.GET]
    assert len(read) <= 4  # 1004, 1006 and 1007 of 1000, 1004, 1006, 1007


@pytest.mark.parametrize("seed", range(sized(4, 40)))
def test_every_reader_has_the_mapping_that_the_changes_make(seed: int):
    chance = Random(seed)
    lake = new_lake(memory())
    late = LakeCatalog(lake.store, surroundings())
    for _ in range(70):
        edit_at_random(lake, chance)
        known = lake.catalog()
        found = cold(lake.store)
        assert (found.tables, found.dropped) == (known.tables, known.dropped)
        assert found.names == {name.casefold(): name for name in found.tables}
        living = {table.folder.casefold(): name for name, table in found.tables.items()}
        assert found.folders == {folder.casefold(): None for folder in found.dropped} | living
        assert [step.number for step in found.steps] == [step.number for step in known.steps]
        if chance.random() < 0.2:
            assert late.catalog() == found
    in_order = whole_catalog(decode_entry(lake.store.get(catalog_key(0))[0]))
    for number in range(1, lake.catalog().number + 1):
        in_order = catalog_after(in_order, decode_entry(lake.store.get(catalog_key(number))[0]))
    assert in_order == cold(lake.store)


def test_a_lake_whose_entries_hold_the_whole_mapping_goes_on_with_changes():
    """As Underlay wrote them before: the whole mapping in each entry."""
    lake = new_lake(memory())
    fill(lake, 0, 5)
    for number in range(1, 6):
        tables = {f"d.t{other}": msgspec.to_builtins(lake.catalog().tables[f"d.t{other}"]) for other in range(number)}
        rewritten(lake.store, number, format=1, changes=None, base=None, since_id=None, tables=tables, dropped={})
    older = LakeCatalog(lake.store, surroundings())
    assert sorted(older.catalog().tables) == [f"d.t{number}" for number in range(5)]
    fill(older, 5, 21)
    assert sorted(cold(lake.store).tables) == sorted(f"d.t{number}" for number in range(21))
    assert decode_entry(lake.store.get(catalog_key(8))[0]).base == 5


class OlderEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as Underlay decoded it when each held the whole mapping; then it compared `format` with 1."""

    format: int
    lake_id: str
    number: int
    commit_id: str
    parent_id: str | None
    committed_us: int
    operation: str
    tables: dict[str, dict[str, object]] = {}
    dropped: dict[str, dict[str, object]] = {}


def test_an_older_underlay_gets_as_far_as_the_number_of_the_format():
    lake = new_lake(memory())
    fill(lake, 0, 2)
    found = msgspec.json.decode(unseal(lake.store.get(catalog_key(2))[0]), type=OlderEntry)
    assert found.format == 2


def test_only_entries_with_tags_apart_from_their_table_have_the_format_that_older_ones_refuse():
    lake = new_lake(memory())
    fill(lake, 0, 3)
    mark(lake, 0, 4)
    fill(lake, 3, 4)
    formats = [decode_entry(lake.store.get(catalog_key(number))[0]).format for number in range(9)]
    assert formats == [1, 2, 2, 2, 2, 3, 3, 3, 2]  # 4 and 8 hold the table's record and its tags; 5 to 7 do not


def test_tags_of_a_table_that_is_not_there_are_refused():
    lake = new_lake(memory())
    fill(lake, 0, 2)
    mark(lake, 0, 1)
    rewritten(lake.store, 3, changes={"tags": {"d.gone": {"tag": {"revision": "r", "version": 0}}}})
    with pytest.raises(Inconsistent, match="tags of a table that does not exist") as caught:
        cold(lake.store)
    assert catalog_key(3) in str(caught.value)


def test_an_entry_of_a_newer_underlay_is_refused():
    lake = new_lake(memory())
    fill(lake, 0, 2)
    rewritten(lake.store, 2, format=4)
    with pytest.raises(Unsupported, match="unknown format"):
        cold(lake.store)


@pytest.mark.parametrize("lost", ["changes", "since_id"])
def test_an_entry_that_does_not_say_what_it_changes_is_refused(lost: str):
    lake = new_lake(memory())
    fill(lake, 0, 2)
    rewritten(lake.store, 2, **{lost: None})
    with pytest.raises(Malformed, match="does not say"):
        cold(lake.store)


def test_an_entry_of_another_history_below_the_newest_is_refused():
    lake = new_lake(memory())
    fill(lake, 0, 7)
    rewritten(lake.store, 4, commit_id="another", changes={"tables": {}})
    with pytest.raises(Inconsistent, match="two histories are mixed") as caught:
        cold(lake.store)
    assert catalog_key(7) in str(caught.value)
