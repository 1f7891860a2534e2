"""Sidecars from Parquet files, against what QuestDB's own converter makes of them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.genuine import conversions, label, refused_conversions
from underlay.errors import Damaged, SchemaMismatch, UnderlayError, Unsupported
from underlay.parquet.footer.tail import load_footer
from underlay.parquet.write.bloom import contains, hash_values
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.blocks import inline_bloom
from underlay.pm.format.layout import StatFlag
from underlay.pm.format.sidecar import decode
from underlay.pm.format.statistics import byte_bounds, fixed_bounds


@pytest.mark.parametrize(
    ("data", "made", "generation"), conversions(), ids=lambda v: label(v) if isinstance(v, Path) else v
)
def test_a_conversion_is_byte_for_byte_that_of_questdb(data: Path, made: Path, generation: str):
    assert from_parquet(data, generation=generation) == made.read_bytes()


def test_all_conversions_are_looked_at():
    assert len(conversions()) == 268


NOT_OURS = {"qkey_bad_length": SchemaMismatch, "qkey_bad_version": Unsupported}


@pytest.mark.parametrize(
    ("data", "generation"), refused_conversions(), ids=lambda v: label(v) if isinstance(v, Path) else v
)
def test_what_questdb_refuses_is_refused_clearly_or_kept_without_statistics(data: Path, generation: str):
    expected = NOT_OURS.get(data.stem)
    if expected is not None:
        with pytest.raises(expected, match=r"questdb"):
            from_parquet(data, generation=generation)
        return
    sidecar = decode(from_parquet(data, generation=generation))
    footer = load_footer(data).footer
    assert sidecar.num_rows.tolist() == footer.row_groups.num_rows.tolist()
    for leaf in footer.schema.leaves:
        if leaf.node.logical.kind.value in ("float16", "geometry", "geography", "unrecognised"):
            assert not sidecar.column_chunks(leaf.index)["stat_flags"].any()


def write(table: pa.Table, tmp_path: Path, **options) -> Path:
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, **options)
    return path


def test_a_column_order_that_is_not_known_leaves_no_statistics(fixtures: Path):
    path = fixtures / "parquet-testing" / "data" / "floating_orders_nan_count.parquet"
    footer = load_footer(path).footer
    sidecar = decode(from_parquet(path))
    for index, order in enumerate(footer.column_orders or ()):
        has_bounds = bool((sidecar.column_chunks(index)["stat_flags"] & 0b1001).any())
        assert has_bounds <= (order.value == "type order")
    assert any(order.value != "type order" for order in footer.column_orders or ())


def test_truncated_bounds_are_marked_inexact_only_in_the_newer_generation(fixtures: Path):
    path = fixtures / "parquet-testing" / "data" / "binary_truncated_min_max.parquet"
    newer, older = decode(from_parquet(path)), decode(from_parquet(path, generation="9.4"))
    exact = int(StatFlag.MIN_EXACT | StatFlag.MAX_EXACT)
    assert any((newer.column_chunks(c)["stat_flags"] & exact != exact).any() for c in range(newer.column_count))
    assert all(
        (older.column_chunks(c)["stat_flags"] & exact == exact).all()
        for c in range(older.column_count)
        if (older.column_chunks(c)["stat_flags"] & 9 == 9).all()
    )


def test_a_bound_too_long_for_the_format_is_left_out(tmp_path: Path):
    table = pa.table({"s": ["a" * 70_000, "b"], "n": [1, 2]})
    sidecar = decode(from_parquet(write(table, tmp_path, max_rows_per_page=1, use_dictionary=False)))
    assert byte_bounds(sidecar, 0, "min").to_pylist() == [None]
    assert fixed_bounds(sidecar, 1, "<i8").has_minimum.all()


def test_blooms_can_be_inlined_pointed_to_or_left_out(tmp_path: Path):
    table = pa.table({"id": pa.array(np.arange(1000)), "other": pa.array(np.arange(1000))})
    path = write(table, tmp_path, row_group_size=400, bloom_filter_options={"id": {"ndv": 400, "fpp": 0.01}})
    inline = decode(from_parquet(path))
    assert inline.header.bloom_columns.tolist() == [0]
    for row_group in range(3):
        bitset = inline_bloom(inline, row_group, 0)
        assert bitset is not None
        values = np.arange(row_group * 400, min(1000, row_group * 400 + 400))
        assert contains(bytes(bitset), hash_values(values)).all()
    external = decode(from_parquet(path, blooms="external"))
    chunks = load_footer(path).footer.chunks
    assert [row[0] for row in external.version_fields().external_blooms] == list(
        zip(chunks.bloom_filter_offset[:, 0].tolist(), chunks.bloom_filter_length[:, 0].tolist(), strict=True)
    )
    none = decode(from_parquet(path, blooms="none"))
    assert none.header.bloom_columns.tolist() == []
    assert len(none.data) < len(external.data) < len(inline.data)


def test_the_designated_timestamp_is_backfilled_only_when_asked(fixtures: Path):
    path = fixtures / "questdb" / "10.0.0" / "generated" / "sorted_ts_required_nostats.parquet"
    with_bounds, without = decode(from_parquet(path)), decode(from_parquet(path, backfill=False))
    column = with_bounds.header.designated_timestamp
    values = pq.read_table(path).column(column).cast(pa.int64()).to_pylist()
    bounds = fixed_bounds(with_bounds, column, "<i8")
    assert bounds.has_minimum.all()
    assert bounds.minimum[0] == values[0]
    assert bounds.maximum[-1] == values[-1]
    assert not fixed_bounds(without, column, "<i8").has_minimum.any()


def test_each_malformed_file_gives_a_sidecar_or_a_clear_error(fixtures: Path):
    for path in sorted((fixtures / "parquet-testing" / "bad_data").iterdir()):
        try:
            sidecar = decode(from_parquet(path))
        except UnderlayError as error:
            message = str(error)
        else:
            message = f"{path}: {sidecar.row_group_count} row groups"
        assert path.name in message


def test_encrypted_files_and_columns_are_refused(fixtures: Path):
    for path in sorted((fixtures / "parquet-testing" / "data").glob("*.encrypted")):
        with pytest.raises(Unsupported, match="encrypted"):
            from_parquet(path)


def test_a_sidecar_is_no_larger_than_the_footer_it_replaces(tmp_path: Path):
    columns = {f"c{i}": pa.array(np.arange(2000) + i) for i in range(20)}
    path = write(pa.table(columns), tmp_path, row_group_size=20)
    footer = load_footer(path)
    assert len(from_parquet(path)) <= footer.tail.footer_length


def test_reading_a_parquet_file_without_backfill_touches_only_its_end(tmp_path: Path):
    path = write(pa.table({"a": pa.array(np.random.default_rng(0).random(200_000))}), tmp_path)
    whole = path.read_bytes()
    end = load_footer(io.BytesIO(whole)).tail.footer_offset
    path.write_bytes(bytes(end) + whole[end:])
    assert decode(from_parquet(path)).num_rows.tolist() == [200_000]


def without_statistics(tmp_path: Path) -> Path:
    """A file sorted by a required timestamp inside a struct, whose bounds its footer does not tell."""
    ts = pa.array(range(1000), pa.timestamp("us"))
    kind = pa.struct([pa.field("ts", pa.timestamp("us"), nullable=False)])
    inner = pa.StructArray.from_arrays([ts], fields=list(kind))
    table = pa.Table.from_arrays([inner], schema=pa.schema([pa.field("s", kind, nullable=False)]))
    order = [pq.SortingColumn(0)]
    return write(table, tmp_path, write_statistics=False, sorting_columns=order, row_group_size=300)


def test_bounds_of_a_timestamp_inside_a_struct_are_backfilled(tmp_path: Path):
    sidecar = decode(from_parquet(without_statistics(tmp_path)))
    bounds = fixed_bounds(sidecar, sidecar.header.designated_timestamp, "<i8")
    assert bounds.minimum.tolist() == [0, 300, 600, 900]
    assert bounds.maximum.tolist() == [299, 599, 899, 999]


def test_damaged_pages_that_backfilling_needs_are_a_clear_error(tmp_path: Path):
    path = without_statistics(tmp_path)
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    with pytest.raises(Damaged, match=r"data.parquet: row group 0: does not decode"):
        from_parquet(path)
    assert decode(from_parquet(path, backfill=False)).row_group_count == 4
