"""Rows decoded through a sidecar alone are the rows."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.genuine import label, parquet_files, sidecars
from underlay.errors import (
    Damaged,
    Inconsistent,
    InvalidRequest,
    NotFound,
    SchemaMismatch,
    UnderlayError,
    UnknownColumn,
)
from underlay.parquet.footer.tail import load_footer
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.sidecar import decode
from underlay.pm.format.types import Tag, tag_of
from underlay.pm.read.file_schema import FileSchema
from underlay.pm.read.rows import read_batches, read_rows
from underlay.pm.read.synthesise import physical_columns

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(value: int, digits: int) -> str:
    """`value` units of 10^-digits seconds since 1970 as QuestDB prints it."""
    seconds, fraction = divmod(value, 10**digits)
    return f"{(EPOCH + timedelta(seconds=seconds)).strftime('%Y-%m-%dT%H:%M:%S')}.{fraction:0{digits}d}Z"


def as_questdb_shows(value, column_type: str):
    """A stored value as the server returns it in JSON."""
    if value is None:
        return None
    match column_type:
        case "DATE":
            return instant(value, 3)
        case "TIMESTAMP":
            return instant(value, 6)
        case "TIMESTAMP_NS":
            return instant(value, 9)
        case "CHAR":
            return chr(value) if value else ""
        case "BINARY":
            return base64.b64encode(value).decode()
        case "UUID":
            return str(value)
        case "IPv4":
            return str(IPv4Address(value % 2**32))
        case "LONG256":
            return int.from_bytes(value, "little")
    return value


def expected(value, column_type: str):
    if value is None:
        return None
    if column_type.startswith("DECIMAL"):
        return Decimal(value)
    if column_type == "LONG256":
        return int(value, 16) if value else None
    if column_type == "FLOAT":
        return float(np.float32(value))
    return value


def as_stored(column: pa.ChunkedArray) -> list:
    """Python values, points in time as the numbers they are stored as."""
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


def states() -> list[tuple[Path, str]]:
    """(folder, suffix) of every state of every case that has rows."""
    found = [(path.parent, path.name.removeprefix("_pm")) for path in sidecars() if path.name.startswith("_pm")]
    return [(folder, suffix) for folder, suffix in found if (folder / f"rows{suffix}.json").exists()]


def committed_parquet_size(folder: Path, suffix: str) -> int:
    snapshots = json.loads((folder / "case.json").read_text())["snapshots"]
    state = snapshots[int(suffix[1:])] if suffix else snapshots[-1]
    return state["txn_partition"]["word3"] & (1 << 56) - 1


@pytest.mark.parametrize(("folder", "suffix"), states(), ids=lambda v: label(v) if isinstance(v, Path) else v or "last")
def test_rows_read_through_a_genuine_sidecar_are_those_that_questdb_returns(folder: Path, suffix: str):
    data = folder / f"data.parquet{suffix}"
    size = committed_parquet_size(folder, suffix)
    sidecar = decode((folder / f"_pm{suffix}").read_bytes(), parquet_size=size)
    table = read_rows(sidecar, data)
    rows = json.loads((folder / f"rows{suffix}.json").read_text())
    names = [column["name"] for column in rows["columns"]]
    assert table.num_rows == len(rows["rows"])
    plain = pq.read_table(data) if data.stat().st_size == size else None
    for index, (name, meta) in enumerate(zip(names, rows["columns"], strict=True)):
        stored = as_stored(table.column(name))
        tag = tag_of(next(c.type for c in sidecar.columns if c.name == name))
        if tag in (Tag.GEOBYTE, Tag.GEOSHORT, Tag.GEOINT, Tag.GEOLONG) or (
            tag is Tag.ARRAY and pa.types.is_binary(table.column(name).type)
        ):
            assert plain is not None
            assert stored == as_stored(plain.column(name))
        else:
            wanted = [expected(row[index], meta["type"]) for row in rows["rows"]]
            assert [as_questdb_shows(value, meta["type"]) for value in stored] == wanted, name


def test_many_states_are_compared():
    assert len(states()) > 100


NEEDS_ITS_WRITER = {
    "nation.dict-malformed.parquet": "pyarrow knows this writer's pages by its name, which no sidecar has"
}
NOT_CONVERTED = {"qkey_bad_length.parquet", "qkey_bad_version.parquet"}
NOT_READ_BY_ARROW = {"large_string_map.brotli.parquet"}


@pytest.mark.parametrize(
    "path",
    [p for p in parquet_files() if p.name not in NEEDS_ITS_WRITER | dict.fromkeys(NOT_CONVERTED | NOT_READ_BY_ARROW)],
    ids=label,
)
def test_reading_through_a_synthesised_footer_equals_reading_through_the_real_one(path: Path):
    wanted = pq.ParquetFile(path).read()
    found = read_rows(decode(from_parquet(path)), path, schema=FileSchema.of_footer(load_footer(path).footer))
    assert found.schema.equals(wanted.schema)
    assert found.num_rows == wanted.num_rows
    # Arrow says that NaN differs from itself; its text does not.
    assert found.equals(wanted) or str(found.to_pylist()) == str(wanted.to_pylist())


def test_a_file_that_needs_its_writers_name_is_an_error_and_not_wrong_rows(fixtures: Path):
    path = fixtures / "parquet-testing" / "data" / "nation.dict-malformed.parquet"
    with pytest.raises(Damaged, match="does not decode"):
        read_rows(decode(from_parquet(path)), path, schema=FileSchema.of_footer(load_footer(path).footer))


def test_each_malformed_file_gives_the_right_rows_or_a_clear_error(fixtures: Path):
    for path in sorted((fixtures / "parquet-testing" / "bad_data").iterdir()):
        try:
            found = read_rows(decode(from_parquet(path)), path, schema=FileSchema.of_footer(load_footer(path).footer))
        except UnderlayError:
            continue
        assert found.equals(pq.ParquetFile(path).read())


@pytest.fixture
def example(tmp_path: Path) -> tuple[Path, pa.Table]:
    table = pa.table(
        {
            "id": pa.array(range(100), pa.int64()),
            "when": pa.array(range(100), pa.timestamp("ms")),
            "word": [None if i % 7 == 0 else f"w{i}" for i in range(100)],
            "small": pa.array(range(100), pa.uint8()),
        }
    )
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, row_group_size=30)
    return path, table


def test_columns_and_row_groups_can_be_chosen(example: tuple[Path, pa.Table]):
    path, table = example
    sidecar = decode(from_parquet(path))
    found = read_rows(sidecar, path, columns=["word", "id"], row_groups=[3, 1], schema=table.schema)
    assert found.equals(pa.concat_tables([table.slice(90, 10), table.slice(30, 30)]).select(["word", "id"]))


def test_an_arrow_schema_gives_back_the_logical_types(example: tuple[Path, pa.Table]):
    path, table = example
    assert read_rows(decode(from_parquet(path)), path, schema=table.schema).equals(table)


def test_without_a_schema_a_foreign_column_is_read_as_its_physical_type(example: tuple[Path, pa.Table]):
    path, table = example
    sidecar = decode(from_parquet(path))
    found = read_rows(sidecar, path)
    assert found.schema.field("small").type == pa.int32()
    assert found.column("small").to_pylist() == table.column("small").to_pylist()
    assert physical_columns(sidecar) == ["id", "small"]


def test_a_schema_of_other_columns_is_refused(example: tuple[Path, pa.Table]):
    path, table = example
    sidecar = decode(from_parquet(path))
    with pytest.raises(SchemaMismatch, match="number of leaf columns"):
        read_rows(sidecar, path, schema=table.schema.remove(0))
    with pytest.raises(SchemaMismatch, match="id"):
        read_rows(sidecar, path, schema=table.schema.set(0, pa.field("id", pa.int32())))


def test_what_is_not_there_is_named(example: tuple[Path, pa.Table], tmp_path: Path):
    path, _ = example
    sidecar = decode(from_parquet(path))
    with pytest.raises(UnknownColumn, match=r"nope.*Columns: id"):
        read_rows(sidecar, path, columns=["nope"])
    with pytest.raises(InvalidRequest, match="row group"):
        read_rows(sidecar, path, row_groups=[4])
    with pytest.raises(NotFound):
        read_rows(sidecar, tmp_path / "none")
    short = tmp_path / "short"
    short.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Inconsistent, match="shorter"):
        read_rows(sidecar, short)


def test_the_files_own_footer_is_not_read(example: tuple[Path, pa.Table], tmp_path: Path):
    path, table = example
    loaded = load_footer(path)
    blanked = tmp_path / "blanked"
    blanked.write_bytes(path.read_bytes()[: loaded.tail.footer_offset] + bytes(loaded.tail.footer_length + 8 + 100))
    assert read_rows(decode(from_parquet(path)), blanked, schema=table.schema).equals(table)


def test_damaged_pages_are_an_error_with_their_row_group(example: tuple[Path, pa.Table], tmp_path: Path):
    path, table = example
    sidecar = decode(from_parquet(path))
    damaged = tmp_path / "damaged"
    data = bytearray(path.read_bytes())
    begin = int(sidecar.chunks["begin"][2, 0])
    data[begin : begin + 20] = b"\xff" * 20
    damaged.write_bytes(data)
    with pytest.raises(Damaged, match="row group 2"):
        read_batches(sidecar, damaged, schema=table.schema).read_all()
