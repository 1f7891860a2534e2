"""Names of columns in lists are names, whatever is in them; paths and orders are read where no column is called so."""

from __future__ import annotations

import pyarrow as pa
import pytest

from underlay.api.lake import Lake
from underlay.errors import UnknownColumn


def test_names_in_lists_are_names(lake: Lake):
    schema = pa.schema([("naïve name", pa.int64()), ("a.b", pa.int64()), ("-c", pa.int64()), ("d", pa.int64())])
    table = lake.create_table(
        "a.n", schema, key=["naïve name", "a.b"], sort_by=["-naïve name", "-c"], partition_by=["a.b"]
    )
    definition = table.definition
    assert definition.key == (1, 2)
    assert [(one.field, one.descending) for one in definition.sort_by] == [(1, True), (3, False)]
    assert [one.field for one in definition.partition_by] == [2]
    table.append(pa.table({name: [1, 2] for name in schema.names}))
    assert table.scan(["naïve name"]).to_arrow().num_rows == 2


def test_names_may_still_be_quoted_and_paths_are_read(lake: Lake):
    schema = pa.schema([("my name", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])
    table = lake.create_table("a.q", schema, key=['"my name"', "s.x"], sort_by=['-"my name"', "s.x desc"])
    assert len(table.definition.key) == 2
    assert [one.descending for one in table.definition.sort_by] == [True, True]


def test_a_missing_name_among_many_is_answered_with_the_nearest(lake: Lake):
    schema = pa.schema([(f"column_{number}", pa.int64()) for number in range(300)])
    with pytest.raises(UnknownColumn, match=r"Did you mean column_29.*There are 300 columns") as raised:
        lake.create_table("a.w", schema, key=["colum_299"])
    assert len(str(raised.value)) < 200


def test_a_least_value_of_zero_has_no_sign(lake: Lake):
    table = lake.create_table("a.z", "f double")
    table.append(pa.table({"f": [0.0, 1.0]}))
    assert str(table.plan().minimum("f")) == "0.0"
