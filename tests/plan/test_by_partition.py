from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.index.segment_examples import file_entry, schema_of
from tests.plan.worlds import stored
from underlay.index.root import PartitionFieldRecord
from underlay.plan.explain import steps_of
from underlay.plan.part import Part
from underlay.plan.plan import BlockPlan, make_plan
from underlay.prune.parse.sql import parse_where
from underlay.schema.partitioning.partition import apply_transform
from underlay.schema.partitioning.transform import bind_partition

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
    return make_plan([Part(segment=stored(entries, SCHEMA))], SCHEMA, parse_where(where), partition_by=spec)


def kept(plan: BlockPlan) -> list[str]:
    return [file.location for file in plan.files()]


ZONE = PartitionFieldRecord(field=1, transform="identity")
MONTH = PartitionFieldRecord(field=2, transform="month")
BUCKET = PartitionFieldRecord(field=3, transform="bucket", width=4)


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
    field = bind_partition(SCHEMA, 3, "bucket", 4)
    (bucket,) = apply_transform(field, pa.array([77])).to_pylist()
    values = [(packed(number),) for number in range(4)] + [(None,)]
    assert kept(plan_of(values, "id = 77", BUCKET)) == [str(bucket)]
    assert kept(plan_of(values, "id > 77", BUCKET)) == ["0", "1", "2", "3", "4"]


def test_several_partition_fields_each_drop():
    values = [(b"a", packed(0)), (b"a", packed(1)), (b"b", packed(1))]
    plan = plan_of(values, "zone = 'a' and day >= DATE '1970-02-01'", ZONE, MONTH)
    assert kept(plan) == ["1"]
    assert [(step.level, step.files) for step in steps_of(plan)] == [("partition", 2)]


def test_files_of_another_spec_stay():
    assert kept(plan_of([(b"a",), (), (b"c", b"d")], "zone = 'b'", ZONE)) == ["1", "2"]


def test_a_value_of_another_width_proves_nothing():
    assert kept(plan_of([(b"123",), (packed(1),)], "day = DATE '1969-01-01'", MONTH)) == ["0", "1"]
