"""A sound lake has no findings, and whatever is deleted, cut, flipped or exchanged is found and named."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from tests.contract.worlds import World
from tests.end_to_end.lakes import memory
from tests.maintain.healthy import (
    OTHER,
    SALES,
    Truth,
    active,
    broken,
    build_all,
    build_other,
    build_small,
    build_tiny,
    built,
    objects,
    run,
)
from underlay.errors import NotFound, TableNotFound
from underlay.index.catalog import CatalogDelta, decode_entry, encode_entry
from underlay.index.keys import CATALOG_HINT, catalog_key
from underlay.maintain.verify.finding import FindingKind, Report, Severity, VerifyFinding
from underlay.maintain.verify_lake import verify
from underlay.scan.read.file_stores import FileStores
from underlay.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.table.catalog.changes import create_table, tag_version
from underlay.table.catalog.lake import LakeCatalog

HARMS = ("deleted", "truncated", "flipped", "exchanged")
CHANCE = random.Random(20)


def found_at(report: Report, key: str) -> VerifyFinding:
    """The only finding at a key."""
    (finding,) = [finding for finding in report.findings if finding.place == key]
    return finding


def harmed(store: Store, key: str, harm: str, other: Callable[[], bytes]) -> bytes | None:
    data = bytearray(store.get(key)[0])
    match harm:
        case "deleted":
            return None
        case "truncated":
            return bytes(data[: CHANCE.randrange(len(data))])
        case "flipped":
            data[CHANCE.randrange(len(data))] ^= 1 << CHANCE.randrange(8)
            return bytes(data)
    return other()


@pytest.fixture
def small() -> Store:
    return built(build_small)


@pytest.fixture
def tiny() -> Store:
    return built(build_tiny)


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_lake_has_no_findings(deep: bool):
    report = run(built(build_all), deep=deep)
    assert report.findings == ()
    assert report.is_sound
    for table in report.tables:
        for revision in table.revisions:
            assert revision.newest_intact == revision.newest_version
            assert revision.counts.versions == revision.newest_version + 1
            assert revision.counts.unreferenced == 0
    sales = active(report)
    assert sales.counts.segments >= 2
    assert sales.counts.pages >= 2
    assert len(next(table for table in report.tables if table.name == OTHER).revisions) == 2


def test_verify_writes_nothing(small: Store):
    before = objects(small)
    run(small, deep=False)
    assert objects(small) == before


def check_harm(store: Store, key: str, data: bytes | None, *, kinds: tuple[FindingKind, ...]) -> None:
    """A harm is found where it is, the right versions are lost, and the other table is not affected."""
    truth = Truth(store)
    with broken(store, key, data):
        report = run(store)
    finding = found_at(report, key)
    assert finding.kind in kinds
    assert finding.severity is Severity.LOST
    assert {version for span in finding.versions for version in range(span.begin, span.end)} == truth.needing(key)
    assert active(report).newest_intact == truth.newest_without(key)
    assert next(table for table in report.tables if table.name == OTHER).findings == ()
    assert not report.is_sound


def kinds_of(harm: str) -> tuple[FindingKind, ...]:
    return (FindingKind.MISSING,) if harm == "deleted" else (FindingKind.DAMAGED, FindingKind.INCONSISTENT)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("version", [0, 1, 6, 11])
def test_a_harmed_root_is_found(small: Store, version: int, harm: str):
    if (version, harm) == (11, "deleted"):
        version = 10  # nothing in a store tells that the newest root was there; see the test of hints
    key = Truth(small).root_keys[version]
    for _ in range(3 if harm == "flipped" else 1):
        data = harmed(small, key, harm, lambda: bytes(small.get(Truth(small).root_keys[5])[0]))
        check_harm(small, key, data, kinds=kinds_of(harm))


@pytest.mark.parametrize("version", [0, 1])
def test_a_root_of_another_table_is_found(small: Store, version: int):
    key = Truth(small).root_keys[version]
    data = bytes(small.get(Truth(small, OTHER).root_keys[version])[0])
    with broken(small, key, data):
        report = run(small)
    assert found_at(report, key).kind is FindingKind.INCONSISTENT
    assert active(report).newest_intact == 11


def test_the_newest_root_of_another_table_is_found(tiny: Store):
    key = Truth(tiny).root_keys[3]
    other = World(memory())
    build_tiny(other)
    with broken(tiny, key, bytes(other.store.get(Truth(other.store).root_keys[3])[0])):
        report = run(tiny)
    assert [(finding.place, finding.kind) for finding in report.findings] == [(key, FindingKind.INCONSISTENT)]
    assert active(report).newest_intact == 2


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("part", ["_index/segments/", "_index/sources/"])
def test_a_harmed_segment_or_page_is_found(small: Store, part: str, harm: str):
    (key,) = Truth(small).keys(part)
    other = built(build_all)
    for _ in range(3 if harm == "flipped" else 1):
        data = harmed(small, key, harm, lambda: bytes(other.get(Truth(other).keys(part)[0])[0]))
        check_harm(small, key, data, kinds=kinds_of(harm))


@pytest.mark.parametrize("harm", ["deleted", "truncated", "exchanged"])
def test_a_harmed_file_is_found(small: Store, harm: str):
    first, *_, last = Truth(small).own_files()
    data = harmed(small, first, harm, lambda: bytes(small.get(last)[0]) + b"PAR1")
    check_harm(small, first, data, kinds=kinds_of(harm))


@pytest.mark.parametrize("harm", HARMS)
def test_a_harmed_sidecar_is_found_and_no_version_is_lost(small: Store, harm: str):
    first, *_, last = Truth(small).keys("/_pm/")
    for _ in range(5 if harm == "flipped" else 1):
        data = harmed(small, first, harm, lambda: bytes(small.get(last)[0]))
        with broken(small, first, data):
            report = run(small)
        assert (found_at(report, first).kind, found_at(report, first).severity) == (
            FindingKind.SIDECAR,
            Severity.DERIVED,
        )
        assert active(report).newest_intact == 11
        assert not report.is_sound


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_harmed_entry_of_the_catalog_is_found(small: Store, number: int, harm: str):
    """Entry 1 made SALES, and entry 2, the newest, OTHER."""
    key = catalog_key(1 if (number, harm) == (2, "deleted") else number)
    data = harmed(small, key, harm, lambda: bytes(small.get(catalog_key((number + 1) % 3))[0]))
    with broken(small, key, data):
        report = run(small)
    finding = found_at(report, key)
    assert (finding.severity, finding.kind in kinds_of(harm)) == (Severity.LOST, True)
    is_newest = key == catalog_key(2)
    assert report.catalog.newest_intact == (1 if is_newest else 2)
    assert [table.name for table in report.tables] == ([SALES] if is_newest else [OTHER, SALES])
    assert all(table.is_sound for table in report.tables)


def test_an_entry_of_another_lake_is_found(small: Store, tiny: Store):
    with broken(small, catalog_key(1), bytes(tiny.get(catalog_key(1))[0])):
        report = run(small)
    assert found_at(report, catalog_key(1)).kind is FindingKind.INCONSISTENT
    assert report.catalog.newest_intact == 2


def test_an_entry_that_leaves_out_a_change_before_it_is_found(small: Store):
    """Entry 2 holds what entry 1 changed too: one that does not would have a table vanish for cold readers."""
    entry = decode_entry(small.get(catalog_key(2))[0])
    assert entry.changes is not None
    others = {name: record for name, record in entry.changes.tables.items() if name != SALES}
    changed = encode_entry(msgspec.structs.replace(entry, changes=CatalogDelta(others)))
    with broken(small, catalog_key(2), changed):
        report = run(small)
    finding = found_at(report, catalog_key(2))
    assert (finding.kind, finding.severity) == (FindingKind.INCONSISTENT, Severity.ANSWERS)
    assert "leaves out" in finding.problem


@pytest.mark.parametrize("tags", [{}, {"d.t0": {"tag-1": None}}, {"d.gone": {"tag-0": None}}])
def test_an_entry_that_leaves_out_a_tag_or_has_one_of_no_table_is_found(tags: dict[str, dict[str, None]]):
    lake = LakeCatalog(memory())
    lake.initialise()
    for number in range(4):
        lake.change(create_table(f"d.t{number}", f"d/t{number}", f"r{number}", number))
    for number in range(2):
        lake.change(tag_version("d.t0", f"tag-{number}", "r0", number))
    entry = decode_entry(lake.store.get(catalog_key(6))[0])  # relative to 4, so it has the tags of 5 and 6
    changed = encode_entry(msgspec.structs.replace(entry, changes=CatalogDelta(tags=tags)))
    with broken(lake.store, catalog_key(6), changed):
        report = run(lake.store)
    found = {(finding.place, finding.severity) for finding in report.findings}
    assert (catalog_key(6), Severity.ANSWERS) in found


def test_a_catalog_of_which_nothing_can_be_read_is_reported():
    world = World(memory())
    world.lake.initialise()
    world.overwrite(catalog_key(0), b"{}")
    report = run(world.store)
    assert report.catalog.newest_intact is None
    assert report.tables == ()
    assert not report.is_sound


def test_a_hint_past_the_newest_version_is_a_note(small: Store):
    key = f"{Truth(small).folder}/_index/hint"
    with broken(small, key, b'{"number": 12}'):
        report = run(small)
    assert found_at(report, key).severity is Severity.NOTE
    assert report.is_sound


@pytest.mark.parametrize("data", [None, b"", b"[]", b'{"number": 3}'])
def test_a_hint_that_says_little_is_not_wrong(small: Store, data: bytes | None):
    with broken(small, f"{Truth(small).folder}/_index/hint", data):
        report = run(small)
    assert report.is_sound


def test_a_hint_of_the_catalog_past_its_end_is_a_note(small: Store):
    small.put(CATALOG_HINT, b'{"number": 9}')
    report = run(small)
    small.delete([CATALOG_HINT])
    assert found_at(report, CATALOG_HINT).severity is Severity.NOTE


def test_a_tag_of_a_version_that_is_gone_is_found():
    world = World(memory())
    build_tiny(world)
    world.lake.table(SALES).tag("audit", 3)
    key = Truth(world.store).root_keys[3]
    world.store.delete([key])
    report = run(world.store, SALES)
    assert found_at(report, key).problem == "tag audit names a version that does not exist"
    assert active(report).newest_intact == 2


def test_a_closed_revision_without_its_end_is_found():
    world = World(memory())
    build_other(world)
    closed = next(t for t in run(world.store, OTHER).tables).revisions[1]
    last = f"{closed.folder}/_index/{closed.newest_version:020}.root"
    world.store.delete([last])
    report = run(world.store, OTHER)
    assert found_at(report, last).kind is FindingKind.MISSING
    assert active(report, OTHER).newest_intact == active(report, OTHER).newest_version


def test_a_registered_file_that_was_replaced_is_found():
    world = World(memory())
    build_tiny(world)
    (key,) = world.keys("in/")
    whole = bytes(world.store.get(key)[0])
    world.store.put(key, whole[:-12] + bytes([whole[-12] ^ 1]) + whole[-11:])
    report = run(world.store, SALES)
    finding = found_at(report, key)
    assert (finding.kind, finding.severity) == (FindingKind.INCONSISTENT, Severity.LOST)
    assert active(report).newest_intact == 2


@pytest.mark.parametrize("deep", [False, True])
def test_a_registered_file_that_was_put_again_with_the_same_bytes_is_sound(deep: bool):
    world = World(memory())
    build_tiny(world)
    (key,) = world.keys("in/")
    world.store.put(key, bytes(world.store.get(key)[0]))
    assert not run(world.store, SALES, deep=deep).findings


def test_a_table_that_is_not_there_is_refused(small: Store):
    with pytest.raises(TableNotFound):
        run(small, "shop.nothing")


def test_a_place_without_a_lake_is_refused():
    with pytest.raises(NotFound):
        run(memory())


def test_only_the_named_table_is_looked_at(small: Store):
    with broken(small, Truth(small, OTHER).root_keys[0], b""):
        report = run(small, SALES)
    assert [table.name for table in report.tables] == [SALES]
    assert report.is_sound


def test_each_object_costs_about_one_request(small: Store):
    counting = CountingStore(small)
    run(counting)
    own_files = len([key for key in objects(small) if key.endswith(".parquet") and not key.startswith("in/")])
    assert counting.request_count() <= len(objects(small)) - own_files + 6


def test_progress_ends_with_all_objects(small: Store):
    told: list[tuple[int, int]] = []
    verify(LakeCatalog(small), FileStores(small), progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][0] == told[-1][1] >= 90
