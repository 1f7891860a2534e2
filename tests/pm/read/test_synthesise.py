"""Footers made from sidecars: the types of QuestDB's own, the values of everyone's."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.genuine import conversions, sidecars
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import load_footer
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.encode import create
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.format.types import Tag, tag_of
from underlay.pm.format.values import Header, SidecarColumn, VersionFields
from underlay.pm.read.file_schema import FileSchema
from underlay.pm.read.rows import open_through_sidecar, read_rows
from underlay.pm.read.synthesise import ARROW_SCHEMA_KEY, physical_columns, to_footer

PARTITIONS = [
    (path, path.with_name(f"data.parquet{path.name.removeprefix('_pm')}"))
    for path in sidecars()
    if path.name.startswith("_pm") and path.with_name(f"data.parquet{path.name.removeprefix('_pm')}").exists()
]


def test_the_types_of_a_questdb_file_are_those_of_its_own_footer():
    compared = 0
    for path, data in PARTITIONS:
        sidecar = decode(path.read_bytes())
        if sidecar.parquet_size != data.stat().st_size:
            continue  # the file goes on behind this version
        with open_through_sidecar(sidecar, data) as file:
            assert file.schema_arrow.equals(pq.read_schema(data)), path
        compared += 1
    assert compared > 100


LOSSY = {Tag.INT, Tag.LONG, Tag.BINARY, Tag.LONG128, Tag.LONG256, None}
NOT_TOLD = {Tag.TIMESTAMP, Tag.DATE}
"""Whether there is a zone."""


def test_the_types_of_a_foreign_file_are_its_own_where_the_type_code_tells_them():
    compared = 0
    for data, made, _ in conversions():
        if "generated" not in str(made.parent) or "parquet-testing" in str(made.parent):
            continue
        sidecar = decode(made.read_bytes())
        schema = load_footer(data).footer.schema
        found, wanted = (
            open_through_sidecar(sidecar, data, given).schema_arrow for given in (None, FileSchema(schema=schema))
        )
        if len(found) != len(wanted):
            continue
        for column, left, right in zip(sidecar.columns, found, wanted, strict=True):
            tag = tag_of(column.type)
            if tag in LOSSY or pa.types.is_nested(right.type):
                continue
            assert left.name == right.name
            is_time = tag in NOT_TOLD and pa.types.is_timestamp(left.type)
            assert left.type.unit == right.type.unit if is_time else left.type == right.type, (data, left, right)
            compared += 1
    assert compared > 50


NESTED = {
    "list": (pa.list_(pa.int64()), [[1, 2], [], None, [None, 9]]),
    "required items": (pa.list_(pa.field("element", pa.int32(), nullable=False)), [[1, 2], [], None]),
    "list of lists": (pa.list_(pa.list_(pa.string())), [[["a"], [], None], None, [["b", None]]]),
    "list of lists of lists": (pa.list_(pa.list_(pa.list_(pa.int64()))), [[[[1], None], []], None, [[[2, 3]]]]),
    "struct": (pa.struct([("x", pa.int64()), ("y", pa.string())]), [{"x": 1, "y": None}, None, {"x": None, "y": "b"}]),
    "deep struct": (
        pa.struct([("x", pa.struct([("y", pa.struct([("z", pa.int64())]))]))]),
        [{"x": {"y": {"z": 5}}}, None],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], None, []]),
    "list of structs": (
        pa.list_(pa.struct([("x", pa.int64()), ("y", pa.bool_())])),
        [[{"x": 1, "y": True}, None], None],
    ),
    "struct of lists": (pa.struct([("x", pa.list_(pa.int64()))]), [{"x": [1, None]}, {"x": None}, None]),
}


def leaf_values(value: Any) -> list[Any]:
    """What is in a value, nulls and structure left out."""
    match value:
        case None:
            return []
        case dict():
            return [leaf for item in value.values() for leaf in leaf_values(item)]
        case list() | tuple():
            return [leaf for item in value for leaf in leaf_values(item)]
        case _:
            return [value]


@pytest.mark.parametrize(("type_", "rows"), NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("nullable", [True, False])
def test_a_nested_column_decodes_without_its_schema(
    tmp_path: Path, type_: pa.DataType, rows: list[Any], nullable: bool
):
    path = tmp_path / "data.parquet"
    schema = pa.schema([pa.field("c", type_, nullable=nullable)])
    table = pa.table(
        {"c": pa.array(rows if nullable else [row for row in rows if row is not None], type_)}, schema=schema
    )
    pq.write_table(table, path)
    sidecar = decode(from_parquet(path))
    found = read_rows(sidecar, path)
    assert found.num_rows == table.num_rows
    assert found.num_columns == sidecar.column_count
    wanted = sorted(map(str, leaf_values(table.column("c").to_pylist())))
    assert sorted(str(v) for i in range(found.num_columns) for v in leaf_values(found.column(i).to_pylist())) == wanted


@pytest.mark.parametrize("flags", [0, 4, 8, 12], ids=["required", "optional", "repeated", "invalid"])
@pytest.mark.parametrize("type_", [Tag.LONG, Tag.ARRAY])
def test_levels_of_any_depth_make_a_schema_with_those_levels(flags: int, type_: Tag):
    for rep in range(4):
        for definition in range(rep, rep + 5):
            column = SidecarColumn(
                name="c", physical_type=2, type=type_, flags=flags, max_rep_level=rep, max_def_level=definition
            )
            (leaf,) = Footer.parse(to_footer(decode(empty(column)))).schema.leaves
            assert (leaf.max_rep_level, leaf.max_def_level) == (rep, definition)
            assert leaf.top.name == "c"


def test_lists_whose_levels_leave_no_choice_keep_their_nulls(tmp_path: Path):
    path = tmp_path / "data.parquet"
    rows = [[1.0, 2.0], [], [3.0], None]
    required = pa.list_(pa.field("element", pa.float64(), nullable=False))
    table = pa.table({"c": pa.array(rows, pa.list_(pa.float64())), "r": pa.array(rows, required)})
    pq.write_table(table, path)
    found = read_rows(decode(from_parquet(path)), path)
    assert found.column("c").to_pylist() == found.column("r").to_pylist() == rows


def empty(*columns: SidecarColumn) -> bytes:
    """A sidecar without row groups."""
    return create(Header(columns=columns), [], VersionFields(parquet_footer_offset=4, parquet_footer_length=10))


@pytest.fixture
def example(tmp_path: Path) -> tuple[Path, pa.Table, Sidecar]:
    table = pa.table(
        {
            "id": pa.array(range(50), pa.uint32()),
            "time": pa.array(range(50), pa.time32("ms")),
            "s": pa.array(
                [{"x": i, "l": [i]} for i in range(50)], pa.struct([("x", pa.int16()), ("l", pa.list_(pa.int8()))])
            ),
            "when": pa.array(range(50), pa.timestamp("us", "Europe/Berlin")),
            "fixed": pa.array([bytes([i] * 3) for i in range(50)], pa.binary(3)),
        }
    )
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, row_group_size=20)
    return path, table, decode(from_parquet(path))


def test_an_arrow_schema_and_the_files_own_schema_give_the_same_rows(example: tuple[Path, pa.Table, Sidecar]):
    path, table, sidecar = example
    assert read_rows(sidecar, path, schema=table.schema).equals(table)
    assert read_rows(sidecar, path, schema=FileSchema.of_footer(load_footer(path).footer)).equals(table)
    assert FileSchema.of_arrow(table.schema).arrow == dict(load_footer(path).footer.key_values)[ARROW_SCHEMA_KEY]


def test_the_footer_describes_the_chunks_and_has_no_statistics(example: tuple[Path, pa.Table, Sidecar]):
    _, table, sidecar = example
    for schema in (None, table.schema):
        footer = Footer.parse(to_footer(sidecar, schema))
        assert footer.num_rows == 50
        assert footer.row_groups.num_rows.tolist() == sidecar.num_rows.tolist()
        chunks = footer.chunks
        assert not chunks.statistics.has_null_count.any()
        assert (chunks.statistics.min_value.begin < 0).all()
        assert (chunks.statistics.max_value.begin < 0).all()
        assert (chunks.bloom_filter_offset <= 0).all()
        assert (chunks.total_compressed_bytes == sidecar.chunks["size"]).all()
        assert (chunks.num_values == sidecar.chunks["num_values"]).all()
        assert (chunks.codec == sidecar.chunks["codec"]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.remove(0), "number of leaf columns"),
        (lambda s: s.append(pa.field("more", pa.int8())), "number of leaf columns"),
        (lambda s: s.set(0, pa.field("id", pa.int64())), "id"),
        (lambda s: s.set(4, pa.field("fixed", pa.binary(4))), "fixed"),
        (lambda s: s.set(4, pa.field("fixed", pa.binary())), "fixed"),
        (lambda s: s.set(2, pa.field("s", pa.struct([("x", pa.int16()), ("l", pa.int8())]))), "s.l"),
    ],
)
def test_a_schema_of_other_columns_is_refused(example: tuple[Path, pa.Table, Sidecar], change: Any, words: str):
    _, table, sidecar = example
    with pytest.raises(SchemaMismatch, match=words):
        to_footer(sidecar, change(table.schema))


def test_columns_whose_meaning_the_sidecar_does_not_tell_are_named(
    example: tuple[Path, pa.Table, Sidecar], fixtures: Path
):
    _, _, sidecar = example
    assert physical_columns(sidecar) == ["id", "time", "s", "s", "fixed"]
    assert physical_columns(decode((fixtures / "questdb" / "10.0.0" / "all_types" / "_pm").read_bytes())) == []


def test_a_type_that_does_not_fit_its_storage_is_read_as_the_storage(tmp_path: Path):
    path = tmp_path / "data.parquet"
    path.write_bytes(bytes(22))
    decimal = SidecarColumn(name="c", physical_type=7, fixed_byte_length=2, type=Tag.DECIMAL128 | 38 << 8)
    assert open_through_sidecar(decode(empty(decimal)), path).schema_arrow.field("c").type == pa.binary(2)
    timestamp = SidecarColumn(name="c", physical_type=1, type=Tag.TIMESTAMP)
    assert open_through_sidecar(decode(empty(timestamp)), path).schema_arrow.field("c").type == pa.int32()


@pytest.mark.parametrize("column", [SidecarColumn(name="c", physical_type=7), SidecarColumn(name="c", physical_type=9)])
def test_a_column_that_cannot_be_stored_is_refused(tmp_path: Path, column: SidecarColumn):
    path = tmp_path / "data.parquet"
    path.write_bytes(bytes(22))
    with pytest.raises(InvalidRequest, match="Arrow refuses the columns"):
        open_through_sidecar(decode(empty(column)), path)


def test_a_tables_schema_fits_files_that_store_its_columns_in_another_way(tmp_path: Path):
    table = pa.table(
        {
            "amount": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
            "large": pa.array([Decimal("-7.5"), None], pa.decimal128(18, 1)),
            "when": pa.array([datetime(2024, 1, 1), None], pa.timestamp("us")),
            "id": pa.array([1, 2], pa.int64()),
        }
    )
    required = table.schema.set(3, pa.field("id", pa.int64(), nullable=False))
    path = tmp_path / "other.parquet"
    pq.write_table(table.cast(required), path, store_decimal_as_integer=True, use_deprecated_int96_timestamps=True)
    assert read_rows(decode(from_parquet(path)), path, schema=table.schema).to_pylist() == table.to_pylist()


def test_another_files_schema_is_never_adapted(tmp_path: Path):
    table = pa.table({"amount": pa.array([Decimal("1.25")], pa.decimal128(9, 2))})
    pq.write_table(table, tmp_path / "bytes.parquet")
    pq.write_table(table, tmp_path / "integers.parquet", store_decimal_as_integer=True)
    other = FileSchema.of_footer(load_footer(tmp_path / "bytes.parquet").footer)
    with pytest.raises(SchemaMismatch, match="amount"):
        to_footer(decode(from_parquet(tmp_path / "integers.parquet")), other)
