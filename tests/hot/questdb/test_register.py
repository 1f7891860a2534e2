"""QuestDB's own tables, registered through their sidecars: the rows, what prunes them, and what is refused."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import underlay as ul
from tests.gate import some
from tests.hot.questdb.tables import GenuineState, genuine_states, make_table, together
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import Damaged, Inconsistent, InvalidRequest, NotFound, Replaced, UnderlayError, Unsupported
from underlay.hot.questdb.footer import questdb_footer
from underlay.hot.questdb.table_directory import read_questdb_table
from underlay.hot.txn.file import create_txn
from underlay.hot.txn.record import TxnRecord
from underlay.parquet.footer.footer import Footer
from underlay.pm import read_rows
from underlay.schema.convert.arrow import from_arrow

WHOLE = [one for one in genuine_states() if one.folder.name != "format_parquet_wal"]
"""Of `format_parquet_wal` a partition is not among the genuine files."""
LAST = list({one.folder: one for one in WHOLE if "codec_" not in one.folder.name}.values())
"""The last state of each case."""
PLAIN = [one for one in WHOLE if one.folder.name.startswith(("chain", "rewrite", "several", "wal_active", "one_group"))]


def questdb(tmp_path: Path, state: GenuineState) -> tuple[Path, pa.Table]:
    path = make_table(tmp_path / "db", together(state))
    found = read_questdb_table(path)
    return path, pa.concat_tables([read_rows(one.sidecar, one.data) for one in found.parquet])


def lake_with(tmp_path: Path, rows: pa.Table) -> tuple[Lake, Table]:
    """A table that has those columns of the rows that a table can have."""
    lake = ul.connect(tmp_path / "lake", registry="none")
    fields = []
    for field in rows.schema:
        try:
            from_arrow(pa.schema([field]))
        except UnderlayError:
            continue
        fields.append(field.with_nullable(True).remove_metadata())
    return lake, lake.create_table("market.trades", pa.schema(fields))


def as_questdb(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value


@pytest.mark.parametrize("state", some(PLAIN, one_in=6), ids=str)
def test_rows_are_those_that_questdb_returns_at_every_version(tmp_path: Path, state: GenuineState):
    path, rows = questdb(tmp_path, state)
    _, table = lake_with(tmp_path, rows)
    done = table.register(f"questdb:{path}")
    expected = [tuple(row.values()) for one in together(state) for row in one.rows()]
    found = [tuple(map(as_questdb, row.values())) for row in table.scan().to_arrow().to_pylist()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert (done.row_count, done.file_count) == (len(expected), len(together(state)))


@pytest.mark.parametrize("state", some(LAST, one_in=6), ids=str)
def test_a_filter_on_any_value_of_any_column_finds_what_a_full_scan_finds(tmp_path: Path, state: GenuineState):
    path, rows = questdb(tmp_path, state)
    _, table = lake_with(tmp_path, rows)
    table.register(f"questdb:{path}", ignore_surplus=True)
    whole = table.scan().to_arrow()
    assert whole.num_rows == rows.num_rows
    for name in whole.column_names:
        column = whole.column(name)
        if pa.types.is_nested(column.type):
            continue
        assert table.scan(where=f'"{name}" is null').to_arrow().num_rows == column.null_count
        if not is_comparable(column.type):
            continue
        values = sorted(set(column.drop_null().to_pylist()))
        for value in {*values[:1], *values[-1:], *values[len(values) // 2 :][:1]}:
            for sign, matches in (("=", pc.equal), ("<", pc.less), (">=", pc.greater_equal)):
                scalar = pa.scalar(value, column.type)
                expected = pc.sum(matches(column, scalar)).as_py() or 0
                found = matching_rows(table, name, sign, scalar)
                assert found == expected, (name, sign, value)


def matching_rows(table: Table, name: str, sign: str, value: pa.Scalar) -> int:
    """How many rows a filter finds. Nanoseconds are compared with a literal, which Python's times cannot say."""
    if value.type == pa.timestamp("ns", "UTC"):
        return table.scan(where=f"\"{name}\" {sign} '{value.cast(pa.string())}'").to_arrow().num_rows
    return table.scan(where=f'"{name}" {sign} $v', params={"v": value.as_py()}).to_arrow().num_rows


def is_comparable(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind) or types.is_timestamp(kind)


def test_blocks_are_dropped_by_the_sidecars_bounds(tmp_path: Path):
    state = next(one for one in WHOLE if str(one) == "10.0.0/chain3.3")
    path, rows = questdb(tmp_path, state)
    _, table = lake_with(tmp_path, rows)
    table.register(f"questdb:{path}")
    last = rows.column("ts").to_pylist()[-1]
    plan = table.scan(where="ts >= $t", params={"t": last}).plan
    assert plan.kept.blocks == 1
    assert plan.totals.blocks > 3


@pytest.mark.parametrize("state", [one for one in PLAIN if "chain" in str(one)][::3], ids=str)
def test_no_footer_is_read(tmp_path: Path, state: GenuineState):
    """With every byte from the footer on overwritten, registering and reading go on."""
    path, rows = questdb(tmp_path, state)
    _, table = lake_with(tmp_path, rows)
    (one,) = read_questdb_table(path).parquet
    data = bytearray(one.data.read_bytes())
    begin = one.sidecar.footer.parquet_footer_offset
    data[begin:] = bytes(len(data) - begin)
    one.data.write_bytes(data)
    table.register(f"questdb:{path}")
    assert table.scan().to_arrow().sort_by("ts").equals(rows.sort_by("ts").cast(table.scan().to_arrow().schema))


def test_a_file_with_bytes_behind_the_committed_ones_is_read_to_its_commit(tmp_path: Path):
    for version in ("9.4.3", "10.0.0"):
        state = next(one for one in WHOLE if str(one) == f"{version}/chain_dead_tail.3")
        path, rows = questdb(tmp_path / version, state)
        (one,) = read_questdb_table(path).parquet
        assert one.data.stat().st_size > one.size_bytes
        _, table = lake_with(tmp_path / version, rows)
        table.register(f"questdb:{path}")
        assert table.scan().to_arrow().num_rows == len(state.rows())


def test_a_partition_that_questdb_changes_afterwards_is_noticed_and_refreshed(tmp_path: Path):
    states = [one for one in WHOLE if str(one).startswith("10.0.0/chain3.")]
    path, rows = questdb(tmp_path, states[0])
    _, table = lake_with(tmp_path, rows)
    table.register(f"questdb:{path}")
    make_table(tmp_path / "later", [states[2]])
    for name in ("_txn", f"{states[2].directory}/data.parquet", f"{states[2].directory}/_pm"):
        os.replace(tmp_path / "later" / path.name / name, path / name)
    with pytest.raises(Replaced):
        table.scan().to_arrow()
    done = table.register(f"questdb:{path}", refresh=True)
    assert done.replaced_count == 1
    assert table.scan().to_arrow().num_rows == len(states[2].rows())


def test_native_partitions_are_named_and_left_out(tmp_path: Path):
    state = next(one for one in WHOLE if str(one) == "10.0.0/several_partitions.0")
    path, rows = questdb(tmp_path, state)
    _, table = lake_with(tmp_path, rows)
    done = table.register(f"questdb:{path}")
    assert done.native_partitions == ("several_partitions~7/2023-02-11", "several_partitions~7/2023-02-13")
    again = table.register(f"questdb:{path}", skip_known=True)
    assert (again.file_count, again.known_count) == (0, 2)
    with pytest.raises(InvalidRequest, match="already part"):
        table.register(f"questdb:{path}")


def test_a_table_without_parquet_says_how_to_convert(tmp_path: Path):
    state = next(one for one in WHOLE if str(one) == "10.0.0/several_partitions.0")
    path, rows = questdb(tmp_path, state)
    native_only(path)
    _, table = lake_with(tmp_path, rows)
    version = table.snapshot().version
    with pytest.raises(Unsupported, match="no partition of this QuestDB table is Parquet") as caught:
        table.register(f"questdb:{path}")
    assert "ALTER TABLE several_partitions CONVERT PARTITION TO PARQUET LIST '2023-02-10'" in str(caught.value.hint)
    assert table.snapshot().version == version


def native_only(path: Path) -> None:
    """Clear the Parquet bit of every partition in `_txn`."""
    data = bytearray((path / "_txn").read_bytes())
    version = int.from_bytes(data[:8], "little")
    at = 8 + 24 * (version & 1)
    offset, symbols, partitions = (int.from_bytes(data[at + 4 * i : at + 4 * i + 4], "little") for i in range(3))
    begin = offset + 132 + symbols + 4
    for entry in range(begin, begin + partitions, 32):
        data[entry + 15] &= ~0x20
    (path / "_txn").write_bytes(data)


def damage(path: Path, what: str) -> None:
    (one,) = read_questdb_table(path).parquet
    match what:
        case "no _txn":
            (path / "_txn").unlink()
        case "torn _txn":
            (path / "_txn").write_bytes((path / "_txn").read_bytes()[:90])
        case "no _pm":
            (one.directory / "_pm").unlink()
        case "no data":
            one.data.unlink()
        case "short data":
            one.data.write_bytes(one.data.read_bytes()[:-1])
        case "flipped _pm":
            data = bytearray((one.directory / "_pm").read_bytes())
            data[40] ^= 1
            (one.directory / "_pm").write_bytes(data)
        case "no directory":
            one.directory.rename(path / "elsewhere")
        case "ours":
            (path / "_txn").unlink()
            create_txn(path / "_txn", TxnRecord(version=0, writer_epoch=1))


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("no _txn", InvalidRequest, "it has no _txn"),
        ("torn _txn", Damaged, "outside the file"),
        ("no _pm", NotFound, "_pm"),
        ("no data", NotFound, "data.parquet"),
        ("short data", Damaged, "shorter than its committed size"),
        ("flipped _pm", Damaged, "_pm"),
        ("no directory", Inconsistent, "is missing"),
        ("ours", InvalidRequest, "a hot table of Underlay"),
    ],
)
def test_a_damaged_table_is_refused_and_changes_nothing(
    tmp_path: Path, what: str, error: type[UnderlayError], words: str
):
    path, rows = questdb(tmp_path, next(one for one in WHOLE if str(one) == "10.0.0/one_group"))
    _, table = lake_with(tmp_path, rows)
    damage(path, what)
    with pytest.raises(error, match=words):
        table.register(f"questdb:{path}")
    assert table.snapshot().version == 0


def test_a_sidecar_newer_than_txn_counts_for_nothing(tmp_path: Path):
    """The newest `_pm` and `data.parquet` under an older `_txn` give the older version's rows."""
    first, last = (next(one for one in WHOLE if str(one) == f"10.0.0/chain3.{step}") for step in (0, 3))
    path = make_table(tmp_path / "db", [GenuineState(folder=last.folder, suffix=".3", directory=last.directory)])
    (path / "_txn").write_bytes(first.txn.read_bytes())
    found = read_questdb_table(path)
    assert [one.row_count for one in found.parquet] == [len(first.rows())]


def test_statistics_leave_out_what_a_sidecar_cannot_prove(tmp_path: Path):
    """No bound counts as a value, whatever the exact bits say; binary and UUID columns have none; no bloom filters."""
    for version in ("9.4.3", "10.0.0"):
        state = next(one for one in WHOLE if str(one) == f"{version}/all_types_nulls")
        path, _ = questdb(tmp_path / version, state)
        (one,) = read_questdb_table(path).parquet
        footer = Footer.parse(questdb_footer(one.sidecar))
        statistics = footer.chunks.statistics
        has = (statistics.min_value.begin >= 0) | (statistics.max_value.begin >= 0)
        assert has.any()
        assert not (statistics.is_min_exact == 1).any()
        assert not (statistics.is_max_exact == 1).any()
        names = [column.name for column in one.sidecar.columns]
        kinds = {column.name: column.type & 0xFF for column in one.sidecar.columns}
        without = [at for at, name in enumerate(names) if kinds[name] in (18, 19, 13, 24, 25, *range(28, 34))]
        assert without
        assert not has[:, without].any()
        assert not (footer.chunks.bloom_filter_offset > 0).any()
