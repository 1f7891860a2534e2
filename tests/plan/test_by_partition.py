from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import stored
from underlay.index.partition_specs import bind_record
from underlay.index.root import PartitionFieldRecord
from underlay.index.segment.segment import Segment
from underlay.plan.explain import steps_of
from underlay.plan.part import Part
from underlay.plan.plan import BlockPlan, make_plan
from underlay.prune.parse.sql import parse_where
from underlay.schema.partitioning.partition import apply_transform

SCHEMA = schema_of({"zone": "string", "day": "date", "id": "int64"})
NO_BOUNDS = 0b1111


def packed(number: int | None) -> bytes | None:
    return None if number is None else np.array([number], "<i8").tobytes()


def plan_of(
    values: list[tuple[bytes | None, ...]], where: str, *spec: PartitionFieldRecord, clear: int = NO_BOUNDS
) -> BlockPlan:
    entries = [
        file_entry(
            str(number), SCHEMA, {"zone": [[b"?"]], "day": [[0]], "id": [[0]]}, partition=value, clear=clear | 32
        )
        for number, value in enumerate(values)
    ]
    return make_plan([Part(segment=stored(entries, SCHEMA))], SCHEMA, parse_where(where), specs={0: spec})


def kept(plan: BlockPlan) -> list[str]:
    return [file.location for file in plan.files()]


ZONE = PartitionFieldRecord(field=1, transform="identity")
MONTH = PartitionFieldRecord(field=2, transform="month")
BUCKET = PartitionFieldRecord(field=3, transform="bucket", width=4, hash="murmur3")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("zone = 'b'", ["1"]),
        ("zone >= 'b'", ["1", "2"]),
        ("zone is null", ["3"]),
        ("zone is not null", ["0", "1", "2"]),
        ("zone = 'b' or id = 5", ["0", "1", "2", "3"]),
        ("zone is distinct from 'b'", ["0", "2", "3"]),
    ],
)
def test_partition_values_are_bounds_of_their_column(where: str, expected: list[str]):
    plan = plan_of([(b"a",), (b"b",), (b"b/%2F",), (None,)], where, ZONE)
    assert kept(plan) == expected


def test_periods_cover_their_days_before_1970_too():
    """T35."""
    months = [(packed(-1),), (packed(0),), (packed(1),)]
    assert kept(plan_of(months, "day = DATE '1969-12-31'", MONTH)) == ["0"]
    assert kept(plan_of(months, "day >= DATE '1970-01-31'", MONTH)) == ["1", "2"]


def test_buckets_answer_equality_only():
    field = bind_record(SCHEMA, BUCKET)
    (bucket,) = apply_transform(field, pa.array([77])).to_pylist()
    values = [(packed(number),) for number in range(4)] + [(None,)]
    assert kept(plan_of(values, "id = 77", BUCKET)) == [str(bucket)]
    assert kept(plan_of(values, "id > 77", BUCKET)) == ["0", "1", "2", "3", "4"]


def test_several_partition_fields_each_drop():
    values = [(b"a", packed(0)), (b"a", packed(1)), (b"b", packed(1))]
    plan = plan_of(values, "zone = 'a' and day >= DATE '1970-02-01'", ZONE, MONTH)
    assert kept(plan) == ["1"]
    assert [(step.level, step.files) for step in steps_of(plan)] == [("partition", 2)]


def test_each_file_goes_by_its_own_spec():
    entries = [
        file_entry(str(number), SCHEMA, {"zone": [[b"?"]], "day": [[0]], "id": [[0]]}, clear=NO_BOUNDS | 32)
        for number in range(5)
    ]
    values = [(0, (b"a",)), (0, (b"b",)), (1, (packed(0),)), (1, (packed(1),)), (2, ())]
    placed = [replace(e, spec=spec, partition=value) for e, (spec, value) in zip(entries, values, strict=True)]
    part = Part(segment=Segment.of_entries(placed, SCHEMA))
    specs = {0: (ZONE,), 1: (MONTH,), 2: ()}
    condition = parse_where("zone = 'b' and day = DATE '1970-02-03'")
    assert kept(make_plan([part], SCHEMA, condition, specs=specs)) == ["1", "3", "4"]


def test_values_of_a_type_that_was_narrower_are_widened():
    """T8: the days of a column that is a timestamp now."""
    wide = schema_of({"day": "timestamp(us)"})
    days = [packed(0), packed(1), None]
    entries = [file_entry(str(n), wide, {"day": [[0]]}, clear=NO_BOUNDS | 32) for n in range(3)]
    placed = [replace(entry, partition=(day,)) for entry, day in zip(entries, days, strict=True)]
    part = Part(segment=Segment.of_entries(placed, wide))
    for transform in ("identity", "day"):
        spec = PartitionFieldRecord(field=1, transform=transform, source="date")
        for where, expected in (
            ("day = TIMESTAMP '1970-01-02 00:00:00'", ["1"]),
            ("day = TIMESTAMP '1970-01-02 00:00:01'", []),
            ("day is null", ["2"]),
        ):
            assert kept(make_plan([part], wide, parse_where(where), specs={0: (spec,)})) == expected


def test_files_with_another_number_of_values_stay():
    assert kept(plan_of([(b"a",), (), (b"c", b"d")], "zone = 'b'", ZONE)) == ["1", "2"]


def test_a_value_of_another_width_proves_nothing():
    assert kept(plan_of([(b"123",), (packed(1),)], "day = DATE '1969-01-01'", MONTH)) == ["0", "1"]
