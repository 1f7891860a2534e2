"""Names of columns that are also names of something else: of the other side of a merge, or of a column of our own."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.end_to_end.lakes import memory, quick

INSTANT = pa.timestamp("ns", "UTC")
OURS = ("underlay row", "underlay rows", "underlay position", "underlay side 0", "underlay nanoseconds 0 z", "v0")


def test_a_column_may_be_named_like_the_other_side_of_a_merge():
    table = quick(memory()).create_table("d.t", data=pa.table({"id": [1, 2], "s": pa.array([1001, 2001], INSTANT)}))
    source = pa.table({"id": [2], "t": pa.array([3001], INSTANT)})
    merge = table.merge(source, "t.id = s.id and s.id > 0", source_alias="s", target_alias="t")
    done = merge.when_matched_update({"s": "s.t"}, predicate="s.id < 9").execute()
    assert (done.rows_updated, done.blocks_read) == (1, 1)
    assert table.to_arrow()["s"].cast(pa.int64()).to_pylist() == [1001, 3001]


def test_a_field_of_a_struct_that_is_named_like_the_other_side_is_the_side_where_it_has_the_column():
    table = quick(memory()).create_table("d.t", data=pa.table({"id": [1, 2], "s": [{"x": 1}, {"x": 2}]}))
    merge = table.merge(pa.table({"id": [2]}), "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update({"id": "t.s.x + 10"}).execute()
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 12]


@pytest.mark.parametrize("name", OURS)
def test_columns_may_have_the_names_that_ours_have_in_queries(name: str):
    lake = quick(memory())
    quoted = f'"{name}"'
    table = lake.create_table("d.t", data=pa.table({"id": [1, 2, 3], name: [1, 2, 3]}))
    with table.evolve() as change:
        change.add_check("small", f"sqrt({quoted}) < 100")
    assert table.count(f"sqrt({quoted}) > 1.2") == 2
    table.append(pa.table({"id": [4], name: [4]}))
    table.update({name: f"{quoted} + sqrt(100)"}, where=f"sqrt({quoted}) = 2")
    lake.sql(f"update d.t set {quoted} = {quoted} + 20 where {quoted} in (select {quoted} from d.t where id = 3)")
    source = pa.table({"id": [2, 5], name: [32, 45]})
    merge = table.merge(source, f"t.id = s.id and sqrt(t.{quoted}) < 9", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    lake.sql(f"delete from d.t where sqrt({quoted}) = 1 returning *")
    assert dict(lake.sql(f"select id, {quoted} from d.t").fetchall()) == {2: 32, 3: 23, 4: 14, 5: 45}
