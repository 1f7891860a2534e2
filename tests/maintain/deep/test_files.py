"""What only the bytes of files tell: damage inside of them, and statistics that do not hold for their rows."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pyarrow as pa
import pytest
from msgspec.structs import replace

import underlay
from tests.contract.worlds import World, change
from tests.end_to_end.lakes import memory, rows
from tests.maintain.healthy import SALES, Truth, active, broken, build_tiny, built, run
from underlay.cache.settings import memory_cache
from underlay.index.entry import ColumnEntry, FileEntry, Flag
from underlay.index.segment.write import write_segment
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding
from underlay.schema.record import from_record
from underlay.table.commit.transaction import Transaction

CHANCE = random.Random(3)


def ids(world_store) -> list[int]:
    memory_cache().start_afresh()
    return underlay.connect(world_store).table(SALES).scan().to_arrow()["id"].to_pylist()


def test_a_flipped_byte_of_a_file_is_found_unless_it_changes_nothing():
    store = built(build_tiny)
    key, sidecar = Truth(store).own_files()[0], Truth(store).keys("/_pm/")[0]
    data = bytes(store.get(key)[0])
    before = ids(store)
    places = [0, 3, len(data) - 1, len(data) - 6, *(CHANCE.randrange(len(data)) for _ in range(16))]
    found = 0
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << CHANCE.randrange(8)
        with broken(store, key, bytes(flipped)):
            report = run(store, SALES, deep=True)
            found += not report.is_sound
            if report.is_sound:
                assert ids(store) == before
            elif any(finding.severity is Severity.LOST for finding in report.findings):
                assert active(report).newest_intact == 0, "every version after the first has the file"
            assert {f.place for f in report.findings} <= {key, sidecar}
    assert found >= len(places) * 3 // 4


def is_swap(one: bytes, other: bytes) -> bool:
    return one != other and len(one) == len(other)


def test_a_file_in_another_ones_place_is_found_by_its_footer():
    world = World(memory())
    table = world.create("id bigint not null", SALES)
    for number in range(7):  # checksums take 1 to 5 bytes, and so two of the files are equally long
        table.append(pa.table({"id": [number]}))
    files = {key: bytes(world.store.get(key)[0]) for key in Truth(world.store).own_files()}
    key, second = next((key, other) for key, one in files.items() for other in files.values() if is_swap(one, other))
    with broken(world.store, key, second):
        assert run(world.store, SALES).is_sound
        (finding,) = run(world.store, SALES, deep=True).findings
    assert (finding.place, finding.kind, finding.severity) == (key, FindingKind.DAMAGED, Severity.LOST)


DATA = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "name": ["b", "c", None, "d", "e", "f"],
        "value": [1.5, float("nan"), 2.5, None, -1.0, 0.0],
    }
)
"""Two blocks of three rows."""


def tampered(edit: Callable[[FileEntry], FileEntry], *, in_segment: bool, is_registered: bool = False) -> World:
    """A table whose only file is described as `edit` says, every checksum right."""
    world = World(memory())
    table = world.create(
        "id bigint, name string, value double", SALES, block_rows=3, partition_by=["truncate(100, id)"]
    )
    table.register(world.put_parquet(DATA, row_group_size=3)) if is_registered else table.append(DATA)
    (entry,) = table.snapshot().files()
    change(table, lambda transaction: transaction.remove_file(entry.location))

    def add(transaction: Transaction) -> None:
        if in_segment:
            schema = from_record(transaction.base.definition.schema)
            data, ref = write_segment([edit(entry)], schema, segment_id="0190", bounded_fields=[1])
            transaction.add_segment(ref, data)
        else:
            transaction.add_file(edit(entry))

    change(table, add)
    return world


def column(field: int, **given: object) -> Callable[[FileEntry], FileEntry]:
    """Other values for one column's entry; functions get the old ones."""

    def edit(entry: FileEntry) -> FileEntry:
        def changed(one: ColumnEntry) -> ColumnEntry:
            news = {name: value(getattr(one, name)) if callable(value) else value for name, value in given.items()}
            return replace(one, **news) if one.field == field else one

        return replace(entry, columns=tuple(map(changed, entry.columns)))

    return edit


def without(flag: Flag) -> Callable[[bytes], bytes]:
    return lambda flags: bytes(one & ~flag for one in flags)


def wrong(world: World) -> VerifyFinding:
    """The only finding, which only `deep` has."""
    assert run(world.store).is_sound
    report = run(world.store, deep=True)
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == (FindingKind.WRONG_STATISTICS, Severity.ANSWERS)
    assert [(span.begin, span.end) for span in finding.versions] == [(3, 4)]
    assert active(report).newest_intact == 3
    return finding


NARROWED = {
    "a lower bound": (column(1, low=struct.pack("<2q", 2, 4)), "id holds 1, beyond its lower bound 2"),
    "an upper bound": (column(1, high=struct.pack("<2q", 3, 5)), "id holds 6, beyond its upper bound 5"),
    "a null count": (column(2, null_counts=struct.pack("<2q", 0, 0)), "name has 1 nulls, not 0"),
    "no NaN": (column(3, flags=without(Flag.MAY_HOLD_NAN)), "value holds NaN"),
    "an exact bound": (column(1, low=struct.pack("<2q", 0, 4)), "is said to occur and does not"),
    "a partition": (lambda entry: replace(entry, partition=(struct.pack("<q", 100),)), "belongs to another partition"),
}


@pytest.mark.parametrize("in_segment", [True, False])
@pytest.mark.parametrize("case", NARROWED)
def test_statistics_that_do_not_hold_are_found(case: str, in_segment: bool):
    edit, words = NARROWED[case]
    finding = wrong(tampered(edit, in_segment=in_segment))
    assert words in finding.problem
    assert ("/segments/0190" in finding.place) == in_segment
    if not in_segment:
        assert finding.place.endswith("00003.root")


@pytest.mark.parametrize("case", NARROWED)
def test_statistics_of_registered_files_that_do_not_hold_are_found(case: str):
    edit, words = NARROWED[case]
    assert words in wrong(tampered(edit, in_segment=True, is_registered=True)).problem


def test_a_bound_beyond_the_footer_that_holds_by_chance_is_found():
    """The footer says that there may be NaN; a claim to the contrary is nobody's to make."""
    edit = column(3, flags=without(Flag.MAY_HOLD_NAN))
    finding = wrong(tampered(edit, in_segment=True, is_registered=True))
    assert "value may hold NaN (block 0 and 1 more)" in finding.problem


def test_wider_bounds_than_needed_are_not_wrong():
    wide = column(1, low=struct.pack("<2q", -9, -9), flags=without(Flag.IS_LOW_EXACT))
    assert run(tampered(wide, in_segment=True).store, deep=True).findings == ()


def test_a_chunk_that_lies_elsewhere_is_found():
    world = tampered(column(1, begins=struct.pack("<2q", 4, 5)), in_segment=True)
    assert run(world.store).is_sound
    assert not run(world.store, deep=True).is_sound


def test_deep_finds_nothing_in_many_small_rows():
    world = World(memory())
    table = world.create("id bigint not null, name string, value double", SALES, block_rows=7)
    table.append(rows(range(50)))
    assert run(world.store, deep=True).findings == ()
