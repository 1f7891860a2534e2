"""Tables of Delta Lake come in as they are: rows equal those that delta-rs and DuckDB read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import underlay
from tests.end_to_end.lakes import memory, quick
from tests.interop.imports.delta_tables import (
    NAME,
    NULL,
    HandWritten,
    by_duckdb,
    field,
    imported,
    inline_vector,
    numbers,
    vector_file,
)
from tests.interop.imports.rows import sorted_rows
from underlay.errors import (
    ChecksumMismatch,
    Damaged,
    InvalidRequest,
    NotFound,
    TableExists,
    TableNotFound,
    Unsupported,
)


@pytest.fixture
def lake() -> underlay.Lake:
    return quick(memory())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a table"


def test_partitions_of_all_kinds_are_constants_and_prune(lake: underlay.Lake, folder: Path) -> None:
    zones = ["JFK", "a/b", "%2F", None, NULL + "x", "é ü", "=:?#"]
    count = len(zones) * 2
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "zone": zones * 2,
            "day": [date(1969, 12, 31), None] * len(zones),
            "price": pa.array([Decimal("1.50")] * count, pa.decimal128(9, 2)),
            "at": pa.array([datetime(2020, 1, 1, 12, 30, 0, 123456, UTC)] * count, pa.timestamp("us", "UTC")),
            "flag": [True, False] * len(zones),
        }
    )
    write_deltalake(folder, rows, partition_by=["zone", "day", "price", "at", "flag"])
    table = imported(lake, folder)
    assert sorted_rows(table) == sorted_rows(rows)
    for where in ("zone = '%2F'", "zone is null", "day < '1970-01-01' and zone = 'a/b'", "price = 1.5 and flag"):
        wanted = rows.filter(underlay_filter(rows, where))
        assert sorted_rows(table.scan(where=where).to_arrow()) == sorted_rows(wanted), where
        assert table.plan(where=where).kept.files < table.plan(where=where).total.files
    assert [one.transform for one in table.definition.partition_by] == ["identity"] * 5


def underlay_filter(rows: pa.Table, where: str) -> pa.Array:
    import duckdb

    kept = duckdb.sql(f"select id from rows where {where}").to_arrow_table()["id"]
    return pa.compute.is_in(rows["id"], kept.combine_chunks())


def test_all_types_read_as_their_writer_reads_them(lake: underlay.Lake, folder: Path) -> None:
    rows = pa.table(
        {
            "byte": pa.array([1, None], pa.int8()),
            "short": pa.array([-(2**15), 2], pa.int16()),
            "integer": pa.array([2**31 - 1, None], pa.int32()),
            "float": pa.array([0.1, None], pa.float32()),
            "double": pa.array([float("nan"), -0.0], pa.float64()),
            "decimal": pa.array([Decimal("12345678901234567890.1234"), None], pa.decimal128(30, 4)),
            "string": ["x" * 100, ""],
            "binary": pa.array([b"\0\xff", None]),
            "date": [date(1, 1, 1), date(9999, 12, 31)],
            "ntz": pa.array([datetime(1900, 1, 1), None], pa.timestamp("us")),
            "zoned": pa.array([datetime(1900, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "nested": pa.array([{"a": [1, None], "b": [("k", {"c": 1})]}, None],
                pa.struct({"a": pa.list_(pa.int32()), "b": pa.map_(pa.string(), pa.struct({"c": pa.int64()}))})),
        }
    )  # fmt: skip
    write_deltalake(folder, rows)
    table = imported(lake, folder)
    assert table.schema.field("zoned").type == pa.timestamp("us", "UTC")
    assert table.schema.field("byte").type == pa.int8()
    assert table.scan(where="double is not null and string = ''").count() == 1


@pytest.mark.parametrize("checkpoint", ["none", "newest", "older"])
def test_many_versions_with_and_without_checkpoints(lake: underlay.Lake, folder: Path, checkpoint: str) -> None:
    for at in range(15):
        write_deltalake(folder, numbers(at * 10, at * 10 + 10), mode="append", configuration={
            "delta.checkpointInterval": "100", "delta.logRetentionDuration": "interval 0 days",
        } if at == 0 else None)  # fmt: skip
        if (checkpoint, at) in {("older", 7), ("newest", 14)}:
            DeltaTable(folder).create_checkpoint()
    DeltaTable(folder).delete("id >= 140")
    if checkpoint == "older":  # what the checkpoint has is not needed again
        for version in range(8):
            (folder / "_delta_log" / f"{version:020}.json").unlink(missing_ok=True)
    table = imported(lake, folder)
    assert table.scan().count() == 140
    assert not table.sync().is_new


def test_a_gap_in_the_log_is_named(lake: underlay.Lake, folder: Path) -> None:
    for at in range(3):
        write_deltalake(folder, numbers(at, at + 1), mode="append")
    (folder / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(Damaged, match="a commit is missing") as error:
        lake.import_table(NAME, f"delta:{folder}")
    assert "00000000000000000001.json" in str(error.value)
    with pytest.raises((TableNotFound, NotFound)):
        lake.table(NAME)


SCHEMA = [field("id", "long"), field("name", "string")]


def test_deletion_vectors_in_the_log_and_in_files(lake: underlay.Lake, folder: Path) -> None:
    made = HandWritten(folder, SCHEMA)
    one, two = vector_file(folder, [[0, 1, 9], [5]], prefix="ab")
    made.commit(
        made.add("a.parquet", numbers(0, 10), deletionVector=one),
        made.add("b.parquet", numbers(10, 20), deletionVector=two),
        made.add("c.parquet", numbers(20, 30), deletionVector=inline_vector([3, 4])),
        made.add("d.parquet", numbers(30, 40)),
    )
    table = imported(lake, folder)
    assert table.scan().count() == len(table) == 34
    assert table.scan(where="id in (0, 15, 24, 31)").count() == 1
    more = inline_vector([3, 4, 7])
    made.commit(
        made.remove("c.parquet", inline_vector([3, 4])),
        made.add("c.parquet", deletionVector=more),
        made.add("d.parquet", deletionVector=inline_vector([0])),
        made.remove("d.parquet"),
    )
    done = table.sync()
    assert (done.files_added, done.files_removed, done.rows_deleted) == (0, 0, 2), "only bits are set"
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    made.commit(made.remove("c.parquet", more), made.add("c.parquet"))  # RESTORE
    table.sync()
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    assert len(table) == 35
    assert not table.sync().is_new
    made.commit(made.remove("c.parquet"))
    table.sync()
    made.commit(made.add("c.parquet", deletionVector=inline_vector([1])))  # it comes back once more
    table.sync()
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))


def test_damaged_deletion_vectors_are_refused(lake: underlay.Lake, folder: Path) -> None:
    made = HandWritten(folder, SCHEMA)
    (vector,) = vector_file(folder, [[0, 1, 9]])
    made.commit(made.add("a.parquet", numbers(0, 10), deletionVector=vector))
    path = next(folder.glob("*.bin"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:])
    with pytest.raises(ChecksumMismatch):
        lake.import_table(NAME, f"delta:{folder}")
    path.unlink()
    with pytest.raises(NotFound, match="deletion vector of the source is missing"):
        lake.import_table(NAME, f"delta:{folder}")
    (vector,) = vector_file(folder, [[0, 1, 99]])
    made.commit(made.remove("a.parquet", vector), made.add("a.parquet", deletionVector=vector))
    with pytest.raises(Damaged, match="past the end"):
        lake.import_table(NAME, f"delta:{folder}")


def test_a_partition_column_is_the_logs_even_if_files_have_one(lake: underlay.Lake, folder: Path) -> None:
    made = HandWritten(folder, [field("id", "long"), field("zone", "string")], partition_by=["zone"])
    inside = pa.table({"id": pa.array([1], pa.int64()), "zone": ["wrong"]})
    made.commit(
        made.add("a.parquet", inside, partitionValues={"zone": "right"}),
        made.add("b.parquet", inside, partitionValues={"zone": ""}),
        made.add("c d.parquet", inside, partitionValues={"zone": NULL}, path="c%20d.parquet"),
    )
    table = lake.import_table(NAME, f"delta:{folder}")
    assert sorted(table.scan().to_arrow()["zone"].to_pylist(), key=str) == sorted(["right", None, NULL], key=str)
    assert table.scan(where="zone = 'wrong'").count() == 0


def test_absolute_paths_of_a_shallow_clone(lake: underlay.Lake, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where" / "x.parquet"
    elsewhere.parent.mkdir()
    pq.write_table(numbers(0, 4), elsewhere)
    made = HandWritten(folder, SCHEMA)
    action = made.add(str(elsewhere))
    action["add"]["path"] = elsewhere.as_uri()
    made.commit(action)
    table = lake.import_table(NAME, f"delta:{folder}")  # DuckDB would look below the folder
    assert sorted_rows(table) == sorted_rows(numbers(0, 4))


def test_everything_that_cannot_be_represented_is_listed(lake: underlay.Lake, folder: Path) -> None:
    HandWritten(
        folder,
        [
            field("v", "variant"),
            field("ok", "long"),
            field("s", {"type": "struct", "fields": [field("i", "interval")]}),
        ],
        features=["variantType", "deletionVectors", "someday"],
        partition_by=["gone"],
    )
    with pytest.raises(Unsupported) as error:
        lake.import_table(NAME, f"delta:{folder}")
    for reason in ("Column v: ", "Column s.i: ", "feature someday", "feature variantType", "Partition column gone"):
        assert reason in str(error.value)
    assert NAME not in lake


def test_a_replaced_file_is_named(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 3))
    path = next(folder.glob("*.parquet"))
    pq.write_table(numbers(0, 300), path)
    with pytest.raises(Unsupported, match="by the source's metadata") as error:
        lake.import_table(NAME, f"delta:{folder}")
    assert path.name in str(error.value)


def test_a_table_exists_already(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 5))
    imported(lake, folder)
    with pytest.raises(TableExists, match="underlay sync"):
        lake.import_table(NAME, f"delta:{folder}")
    with pytest.raises(InvalidRequest, match="was not imported"):
        lake.create_table("d.own", "id bigint").sync()
    with pytest.raises(NotFound, match="no Delta table"):
        lake.import_table("d.other", f"delta:{folder.parent}")
    with pytest.raises(InvalidRequest, match="not the address"):
        lake.import_table("d.other", "delta:")


def test_a_log_line_that_is_no_action_is_damaged(lake: underlay.Lake, folder: Path) -> None:
    made = HandWritten(folder, SCHEMA)
    (folder / "_delta_log" / f"{made.version + 1:020}.json").write_text('{"add": {"path": 1}}\n')
    with pytest.raises(Damaged, match="not actions of a Delta table"):
        lake.import_table(NAME, f"delta:{folder}")
    broken = folder.parent / "broken"
    made = HandWritten(broken, [{"name": "x"}])
    with pytest.raises(Damaged, match="schema of the Delta table"):
        lake.import_table(NAME, f"delta:{broken}")


def test_checkpoints_of_version_2_with_sidecars(lake: underlay.Lake, folder: Path) -> None:
    made = HandWritten(folder, SCHEMA, features=["v2Checkpoint", "deletionVectors"])
    made.commit(made.add("a.parquet", numbers(0, 4)))
    adds = [made.add("a.parquet"), made.add("b.parquet", numbers(4, 8), deletionVector=inline_vector([0]))]
    log = folder / "_delta_log"
    (log / "_sidecars").mkdir()
    pq.write_table(pa.Table.from_pylist(_checkpoint_rows(adds), _CHECKPOINT), log / "_sidecars" / "s.parquet")
    first = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    sidecar = {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 0}}
    lines = [{"checkpointMetadata": {"version": 2}}, *first, sidecar]
    name = f"{2:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (log / name).write_text("\n".join(map(json.dumps, lines)))
    for version in range(2):
        (log / f"{version:020}.json").unlink()
    table = lake.import_table(NAME, f"delta:{folder}")
    assert sorted_rows(table) == sorted_rows(pa.concat_tables([numbers(0, 4), numbers(5, 8)]))


_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
_CHECKPOINT = pa.schema(
    {
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": pa.map_(pa.string(), pa.string()),
                "size": pa.int64(),
                "deletionVector": _VECTOR,
            }
        )
    }
)


def _checkpoint_rows(actions: list[dict[str, object]]) -> list[dict[str, object]]:
    names = _CHECKPOINT.field("add").type
    keys = [names.field(at).name for at in range(names.num_fields)]
    return [{"add": {name: action["add"].get(name) for name in keys} | {"partitionValues": []}} for action in actions]
