"""Tables of Iceberg come in as they are: rows equal those that pyiceberg reads."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime, time
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType

import underlay
from tests.end_to_end.lakes import memory, quick
from tests.interop.imports.iceberg_tables import NAME, catalog, data_files, delete_positions, puffin_blob
from tests.interop.imports.rows import sorted_rows
from underlay.errors import Damaged, Forbidden, InvalidRequest, NotFound, SourceChanged, Unavailable, Unsupported
from underlay.index import deletion_vectors as bitmaps
from underlay.interop.from_iceberg.deleted_rows import IcebergDeletes
from underlay.interop.from_iceberg.manifests import IcebergFile
from underlay.scan.read.file_stores import FileStores

OURS = "i.t"


@pytest.fixture
def lake() -> underlay.Lake:
    return quick(memory())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


def numbers(begin: int, end: int) -> pa.Table:
    return pa.table({"id": pa.array(range(begin, end), pa.int64()), "name": [f"n{one}" for one in range(begin, end)]})


def made(folder: Path, rows: pa.Table, spec: PartitionSpec | None = None) -> Table:
    extra = {} if spec is None else {"partition_spec": spec}
    table = catalog(folder).create_table(NAME, schema=rows.schema, **extra)
    table.append(rows)
    return table


def address(table: Table) -> str:
    return f"iceberg:{table.location()}"


def check(ours: underlay.Table, theirs: Table) -> None:
    assert sorted_rows(ours) == sorted_rows(theirs.refresh().scan().to_arrow())


def test_all_types_read_as_pyiceberg_reads_them(lake: underlay.Lake, folder: Path) -> None:
    rows = pa.table(
        {
            "flag": [True, None],
            "int": pa.array([2**31 - 1, None], pa.int32()),
            "float": pa.array([0.1, None], pa.float32()),
            "double": [float("nan"), -0.0],
            "decimal": pa.array([Decimal("12345678901234567890.1234"), None], pa.decimal128(30, 4)),
            "string": ["x" * 100, ""],
            "binary": pa.array([b"\0\xff", None]),
            "fixed": pa.array([b"abc", None], pa.binary(3)),
            "date": [date(1, 1, 1), date(9999, 12, 31)],
            "time": pa.array([time(1, 2, 3, 4), None], pa.time64("us")),
            "ntz": pa.array([datetime(1900, 1, 1), None], pa.timestamp("us")),
            "zoned": pa.array([datetime(1900, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "nested": pa.array([{"a": [1, None], "b": [("k", {"c": 1})]}, None],
                pa.struct({"a": pa.list_(pa.int32()), "b": pa.map_(pa.string(), pa.struct({"c": pa.int64()}))})),
        }
    )  # fmt: skip
    theirs = made(folder, rows)
    ours = lake.import_table(OURS, address(theirs))
    check(ours, theirs)
    schema = theirs.schema()
    assert {one.name: one.id for one in ours.definition.schema.fields} == {
        one.name: one.field_id for one in schema.fields
    }
    assert ours.definition.schema.last_id == schema.highest_field_id


def test_renames_drops_and_new_columns_go_by_field_id(lake: underlay.Lake, folder: Path) -> None:
    theirs = made(folder, numbers(0, 3))
    ours = lake.import_table(OURS, address(theirs))
    with theirs.update_schema() as change:
        change.rename_column("name", "label")
        change.add_column("extra", IntegerType())
    theirs.append(pa.table({"id": [3], "label": ["x"], "extra": pa.array([7], pa.int32())}))
    assert ours.sync().rows_added == 1
    check(ours, theirs)
    with theirs.update_schema() as change:
        change.delete_column("label")
        change.update_column("extra", LongType())
    with theirs.update_schema() as change:
        change.add_column("label", StringType())
        change.rename_column("id", "number")
    assert ours.sync().is_new, "columns alone are a version too"
    check(ours, theirs)
    assert ours.scan(where="label is null").count() == 4
    assert not ours.sync().is_new


def test_appends_deletes_and_overwrites_are_followed(lake: underlay.Lake, folder: Path) -> None:
    theirs = made(folder, numbers(0, 10))
    ours = lake.import_table(OURS, address(theirs))
    for begin in range(10, 40, 10):
        theirs.append(numbers(begin, begin + 10))
    done = ours.sync()
    assert (done.files_added, done.rows_added) == (3, 30)
    theirs.delete("id = 15")
    ours.sync()
    check(ours, theirs)
    theirs.overwrite(numbers(90, 91))
    ours.sync()
    check(ours, theirs)
    assert len(ours) == 1
    assert not ours.sync().is_new


def test_position_deletes_are_deletion_vectors(lake: underlay.Lake, folder: Path) -> None:
    theirs = made(folder, numbers(0, 10))
    theirs.append(numbers(10, 20))
    one, two = sorted(data_files(theirs), key=lambda path: pq.read_table(path[7:])["id"][0].as_py())
    delete_positions(theirs, {one: [0, 9], two: [5]})
    ours = lake.import_table(OURS, address(theirs.refresh()))
    check(ours, theirs)
    assert len(ours) == 17
    delete_positions(theirs.refresh(), {one: [0, 4]})
    theirs.refresh().append(numbers(50, 51))
    done = ours.sync()
    assert (done.files_added, done.files_removed, done.rows_deleted) == (1, 0, 1)
    check(ours, theirs)
    assert not ours.sync().is_new


def test_partitions_and_files_that_lack_their_columns(lake: underlay.Lake, folder: Path) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "a zone", StringType()), NestedField(3, "at", TimestampType())
    )
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "a zone"), PartitionField(3, 1001, IdentityTransform(), "at")
    )
    theirs = catalog(folder).create_table(NAME, schema=schema, partition_spec=spec)
    at = pa.array([datetime(2020, 1, 1)] * 4, pa.timestamp("us"))
    rows = pa.table({"id": [1, 2, 3, 4], "a zone": ["a/b", "%2F", None, ""], "at": at})
    theirs.append(rows)
    for task in theirs.scan().plan_files():  # as files of Hive that were migrated
        path = task.file.file_path.removeprefix("file://")
        old = pq.ParquetFile(path).read()
        keep = pa.table([old["id"]], schema=pa.schema([old.schema.field("id")]))
        size = Path(path).stat().st_size
        pq.write_table(keep, path)
        with Path(path).open("r+b") as file:  # of the same size: pad before the footer
            data = file.read()
            length = int.from_bytes(data[-8:-4], "little") + 8
            file.seek(0)
            file.write(data[:-length] + bytes(size - len(data)) + data[-length:])
    ours = lake.import_table(OURS, address(theirs))
    assert sorted_rows(ours) == sorted_rows(rows)
    for where in ("\"a zone\" = '%2F'", '"a zone" is null'):
        assert ours.scan(where=where).count() == 1
        assert ours.plan(where=where).kept.files == 1


def test_files_without_ids_go_by_the_name_mapping(lake: underlay.Lake, folder: Path) -> None:
    theirs = made(folder, numbers(0, 3))
    path = folder / "added.parquet"
    pq.write_table(numbers(3, 5), path)
    theirs.add_files([str(path)])
    with theirs.update_schema() as change:
        change.rename_column("name", "label")
    ours = lake.import_table(OURS, address(theirs.refresh()))
    check(ours, theirs)
    assert pc.sum(pc.is_null(ours.scan().to_arrow()["label"])).as_py() == 0
    with theirs.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(Unsupported, match="no field ids") as error:
        lake.import_table("i.other", address(theirs.refresh()))
    assert "added.parquet" in str(error.value)


def test_equality_deletes_are_refused_with_their_names(lake: underlay.Lake, folder: Path) -> None:
    theirs = made(folder, numbers(0, 3))
    delete_positions(theirs, {data_files(theirs)[0]: [1]}, equality=True)
    with pytest.raises(Unsupported, match="equality deletes") as error:
        lake.import_table(OURS, address(theirs))
    assert "deletes-" in str(error.value)
    assert OURS not in lake


def test_a_rolled_back_and_another_table_are_refused(lake: underlay.Lake, folder: Path) -> None:
    theirs = made(folder, numbers(0, 3))
    theirs.append(numbers(3, 4))
    old, kept = theirs.metadata, theirs.metadata_location
    first = theirs.history()[0].snapshot_id
    theirs.append(numbers(4, 5))
    ours = lake.import_table(OURS, address(theirs))
    with theirs.manage_snapshots() as change:
        change.rollback_to_snapshot(first)
    with pytest.raises(SourceChanged, match="rolled back"):
        ours.sync()
    assert old.table_uuid == theirs.metadata.table_uuid
    assert len(lake.import_table("i.old", f"iceberg:{kept}")) == 4, "a metadata file is a version"
    shutil.rmtree(folder / "ns")
    other = catalog(folder)
    other.drop_table(NAME)
    for at in range(3):
        made_again = other.create_table_if_not_exists(NAME, schema=numbers(0, 1).schema)
        made_again.append(numbers(at, at + 1))
    with pytest.raises(SourceChanged, match="another table"):
        ours.sync()


def test_an_empty_table_and_nothing(lake: underlay.Lake, folder: Path) -> None:
    theirs = catalog(folder).create_table(NAME, schema=numbers(0, 1).schema)
    ours = lake.import_table(OURS, address(theirs))
    assert len(ours) == 0
    theirs.append(numbers(0, 2))
    ours.sync()
    check(ours, theirs)
    with pytest.raises(NotFound, match="no Iceberg table"):
        lake.import_table("i.other", f"iceberg:{folder}/ns")
    with pytest.raises(InvalidRequest, match="lies in the folder metadata"):
        lake.import_table("i.other", f"iceberg:{folder}/v1.metadata.json")
    location = Path(theirs.metadata_location.removeprefix("file://"))
    location.write_bytes(b"{")
    with pytest.raises(Damaged, match="not the metadata"):
        lake.import_table("i.other", f"iceberg:{location}")
    theirs = made(folder / "more", numbers(0, 1))
    manifests = next(Path(theirs.metadata_location.removeprefix("file://")).parent.glob("snap-*.avro"))
    whole = manifests.read_bytes()
    for damaged in (b"Obj\x01", whole[:-20], b"no"):
        manifests.write_bytes(damaged)
        with pytest.raises(Damaged, match="not an Avro file") as error:
            lake.import_table("i.other", address(theirs))
        assert manifests.name in str(error.value)
    manifests.unlink()
    with pytest.raises(NotFound, match="metadata of the source is missing"):
        lake.import_table("i.other", address(theirs))


def test_deletion_vectors_of_puffin_files(tmp_path: Path) -> None:
    puffin = tmp_path / "dv.puffin"
    puffin.write_bytes(b"PFA1" + puffin_blob([3, 70000]) + puffin_blob([1]) + b"rest")
    first = len(puffin_blob([3, 70000]))

    def file(path: str, content: int, **more: object) -> IcebergFile:
        given = {"format": "PARQUET", "size_bytes": 1, "record_count": 1, "spec": 0, "sequence": 1, "partition": {}}
        given |= {"referenced": None, "offset": None, "length": None, **more}
        return IcebergFile(content=content, path=path, **given)

    data = [file("/a", 0), file("/b", 0), file("/c", 0)]
    where = {"format": "PUFFIN", "sequence": 2}
    vectors = [
        file(str(puffin), 1, referenced="/a", offset=4, length=first, record_count=2, **where),
        file(str(puffin), 1, referenced="/b", offset=4 + first, length=len(puffin_blob([1])), **where),
    ]
    deletes = IcebergDeletes([*data, *vectors], FileStores(memory()))
    assert [deletes.identity(one) is None for one in data] == [False, False, True]
    found = deletes.read({one.path: one for one in data})
    assert {name: bitmaps.unpack(bits).tolist() for name, bits in found.items()} == {"/a": [3, 70000], "/b": [1]}
    puffin.write_bytes(b"PFA1" + bytes(first + len(puffin_blob([1]))))
    with pytest.raises(Damaged):
        deletes.read({"/a": data[0]})


class _Catalog(BaseHTTPRequestHandler):
    """A REST catalog of one table."""

    table: Table
    token = "let me in"

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {self.token}":
            return self.send_error(401)
        answers = {
            "/base/v1/config": {"defaults": {}, "overrides": {"prefix": "wh"}},
            "/base/v1/wh/namespaces/ns/tables/t": {
                "metadata-location": self.table.metadata_location,
                "metadata": json.loads(Path(self.table.metadata_location.removeprefix("file://")).read_text()),
            },
        }
        if self.path not in answers:
            return self.send_error(404)
        body = json.dumps(answers[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def log_message(self, *args: object) -> None:
        pass


def test_a_table_of_a_rest_catalog(lake: underlay.Lake, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _Catalog.table = theirs = made(folder, numbers(0, 3))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Catalog)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        source = f"iceberg+rest://127.0.0.1:{server.server_port}/base/ns.t"
        with pytest.raises(Forbidden, match="refuses"):
            lake.import_table(OURS, source)
        monkeypatch.setenv("UNDERLAY_ICEBERG_TOKEN", _Catalog.token)
        ours = lake.import_table(OURS, source)
        check(ours, theirs)
        theirs.append(numbers(3, 5))
        assert ours.sync().rows_added == 2
        assert not ours.sync().is_new
        check(ours, theirs)
        with pytest.raises(NotFound, match="no such table"):
            lake.import_table("i.other", source.replace("ns.t", "ns.other"))
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(Unavailable, match="does not answer"):
        ours.sync()
    with pytest.raises(InvalidRequest, match="not the address of a table"):
        lake.import_table("i.other", "iceberg+rest:nowhere")
