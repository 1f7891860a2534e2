"""Pruning on a sidecar alone: no row is lost, whatever the type and the writer, and what can be dropped is dropped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.gate import sized
from tests.pm.examples import sidecar_bytes
from tests.pm.typed_files import (
    GROUP_ROWS,
    KINDS,
    MIXED,
    NULL,
    ORDERED,
    TypedFile,
    column_values,
    write_typed_file,
)
from underlay.errors import BadPredicate, Inconsistent, InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.parquet.footer.schema import Schema
from underlay.parquet.footer.tail import load_footer
from underlay.pm.convert.build import from_parquet
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.prune.prune import chunk_ranges, prune
from underlay.prune import And, Between, Compare, In, IsNotNull, IsNull, Op, Predicate
from underlay.prune.parse.sql import parse_where
from underlay.values.ranges import ByteRange

WRITERS = tuple(GROUP_ROWS)
PREDICATES = sized(20, 50)
"""Random predicates for each column of each file."""


@dataclass(frozen=True)
class Case:
    """A file of one writer with its sidecar."""

    file: TypedFile
    sidecar: Sidecar
    schema: Schema
    writer: str

    def kept(self, predicate: Predicate, *, with_schema: bool) -> list[int]:
        verdict = prune(self.sidecar, And((predicate,)), self.schema if with_schema else None)
        return verdict.kept.nonzero()[0].tolist()


@pytest.fixture(scope="module", params=WRITERS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    blooms = ("int32", "uint32", "int64", "uint64", "float", "double", "text", "binary", "uuid", "date", "ts_us")
    file = write_typed_file(request.param, tmp_path_factory.mktemp("typed"), blooms=blooms)
    return Case(file, decode(from_parquet(file.path)), load_footer(file.path).footer.schema, request.param)


def predicates(name: str, seed: int) -> Iterator[Predicate]:
    """Random predicates on a column: its own values, their neighbours, literals of other kinds and scales."""
    kind, chooser, column = KINDS[name], random.Random(seed), (name,)
    pool = [kind.at(n / 96) for n in range(97)] + [*kind.edges, *kind.asked] * 4 + [None]
    for _ in range(PREDICATES):
        match chooser.randrange(9):
            case 0 | 1:
                yield Compare(column, Op.EQ, chooser.choice(pool))
            case 2 | 3 | 4 | 5:
                yield Compare(column, chooser.choice([Op.LT, Op.LE, Op.GT, Op.GE]), chooser.choice(pool))
            case 6:
                yield In(column, tuple(chooser.choices(pool, k=chooser.randrange(1, 5))))
            case 7:
                yield Between(column, chooser.choice(pool), chooser.choice(pool))
            case _:
                yield chooser.choice([IsNull, IsNotNull])(column)


@pytest.mark.parametrize("name", KINDS)
def test_a_dropped_row_group_has_no_row_that_duckdb_finds(case: Case, name: str):
    judged = dropped = 0
    for predicate in predicates(name, seed=len(name)):
        try:
            matching = set(case.file.matching_groups(str(predicate)))
        except duckdb.Error:  # the two do not compare such a column with such a literal
            continue
        judged += 1
        for with_schema in (False, True):
            try:
                kept = set(case.kept(predicate, with_schema=with_schema))
            except BadPredicate:
                continue
            assert matching <= kept, (str(predicate), with_schema)
            dropped += len(range(6)) - len(kept)
    assert judged > PREDICATES * 0.8
    assert dropped > PREDICATES


@pytest.mark.parametrize("name", ORDERED)
def test_on_sorted_row_groups_nearly_all_that_can_be_dropped_is(case: Case, name: str):
    kind = KINDS[name]
    droppable = dropped = 0
    values = column_values(kind, case.file.group_rows, seed=0)[: 4 * case.file.group_rows]
    for value in values[7 :: len(values) // 19]:
        ops = [Op.EQ, Op.LT, Op.LE] if kind.holds_nan else list(Op)  # a NaN may be anywhere, above all numbers
        for op in ops:
            predicate = Compare((name,), op, value)
            empty = {*range(4), NULL} - set(case.file.matching_groups(str(predicate)))
            droppable += len(empty)
            dropped += len(empty - set(case.kept(predicate, with_schema=True)))
    assert droppable > 100
    assert dropped >= 0.97 * droppable


def groups_that_must_stay(name: str, writer: str) -> dict[Predicate, list[int]]:
    """For a value inside row group 1, what each form of predicate must leave of the sorted and the all-null groups."""
    kind, column = KINDS[name], (name,)
    rows = GROUP_ROWS[writer]
    values = column_values(kind, rows, seed=0)
    value, below, above = values[rows + rows // 2], values[rows // 2], values[3 * rows + rows // 2]
    upward = [0, 1, 2, 3] if kind.holds_nan else [1, 2, 3]
    return {
        Compare(column, Op.EQ, value): [1],
        Compare(column, Op.LT, value): [0, 1],
        Compare(column, Op.LE, value): [0, 1],
        Compare(column, Op.GT, value): upward,
        Compare(column, Op.GE, value): upward,
        In(column, (below, above)): [0, 3],
        Between(column, below, value): [0, 1],
        Between(column, value, below): [],
        IsNull(column): [NULL],
        IsNotNull(column): [0, 1, 2, 3],
        Compare(column, Op.EQ, None): [],
    }


@pytest.mark.parametrize("name", ORDERED)
def test_every_form_of_predicate_drops_what_the_bounds_exclude(case: Case, name: str):
    for predicate, expected in groups_that_must_stay(name, case.writer).items():
        kept = case.kept(predicate, with_schema=True)
        assert [group for group in kept if group != MIXED] == expected, str(predicate)


@pytest.mark.parametrize("name", [name for name in ORDERED if not KINDS[name].ambiguous])
def test_without_the_schema_a_type_that_the_sidecar_tells_prunes_as_well(case: Case, name: str):
    for predicate, expected in groups_that_must_stay(name, case.writer).items():
        kept = case.kept(predicate, with_schema=False)
        assert [group for group in kept if group != MIXED] == expected, str(predicate)


@pytest.mark.parametrize(("name", "group"), [("int32", 3), ("int64", 3), ("uint8", 0), ("uint32", 0), ("uint64", 0)])
def test_without_the_schema_integers_are_dropped_when_both_signs_say_so(case: Case, name: str, group: int):
    rows = case.file.group_rows
    value = column_values(KINDS[name], rows, seed=0)[group * rows + rows // 2]
    kept = case.kept(Compare((name,), Op.EQ, value), with_schema=False)
    assert set(kept) - {MIXED, 2} == {group}  # group 2 holds -1 and 0, or their unsigned readings


def test_booleans_are_dropped_where_all_values_agree(case: Case):
    for with_schema in (True, False):
        assert case.kept(Compare(("bool",), Op.EQ, True), with_schema=with_schema) == [2, 3, MIXED]
        assert case.kept(Compare(("bool",), Op.LT, True), with_schema=with_schema) == [0, 1, MIXED]
        assert case.kept(IsNull(("bool",)), with_schema=with_schema) == [MIXED, NULL]


@pytest.mark.parametrize("name", ["time_ms", "time_us"])
def test_what_is_no_time_of_day_is_not_compared_with_one(case: Case, name: str):
    for with_schema in (True, False):
        with pytest.raises(BadPredicate, match=name):
            case.kept(Compare((name,), Op.EQ, "25:00:00"), with_schema=with_schema)


def test_predicates_are_joined_by_and(case: Case):
    where = And((Compare(("int8",), Op.LT, -70), Compare(("text",), Op.GT, "0700000")))
    verdict = prune(case.sidecar, where, case.schema)
    assert verdict.kept.nonzero()[0].tolist() == [MIXED]
    assert verdict.parts.tolist() == [1, 0, 0, 0, -1, 0]
    assert '"int8" < -70: min is' in verdict.reason(1)
    assert prune(case.sidecar, And(()), case.schema).kept.all()


def test_a_column_that_is_not_there_is_named(case: Case):
    with pytest.raises(UnknownColumn, match='did you mean "int8"'):
        prune(case.sidecar, parse_where("INT8 = 1"))
    with pytest.raises(UnknownColumn, match="nope"):
        prune(case.sidecar, parse_where("nope = 1"), case.schema)


def test_the_schema_of_another_file_is_refused(case: Case, tmp_path: Path):
    path = tmp_path / "other"
    names = [column.name for column in case.sidecar.columns]
    columns: dict[str, Any] = {name: pa.array([1]) for name in names[1:]}
    pq.write_table(pa.table(columns), path)
    with pytest.raises(SchemaMismatch, match="number of leaf columns"):
        prune(case.sidecar, parse_where("int8 = 1"), load_footer(path).footer.schema)
    swapped = {name: pa.array([1]) for name in (names[1], names[0], *names[2:])}
    pq.write_table(pa.table(swapped), path)
    with pytest.raises(SchemaMismatch, match="int8"):
        prune(case.sidecar, parse_where("int8 = 1"), load_footer(path).footer.schema)


def example(tmp_path: Path, groups: int = 4) -> tuple[Path, Sidecar]:
    path = tmp_path / "data.parquet"
    table = pa.table({name: pa.array(range(100 * groups)) for name in "abc"})
    pq.write_table(table, path, row_group_size=100, compression="none", use_dictionary=False)
    return path, decode(from_parquet(path))


def test_chunk_ranges_are_the_wanted_chunks_and_nothing_else(tmp_path: Path):
    path, sidecar = example(tmp_path)
    metadata = pq.ParquetFile(path).metadata

    def chunk(row_group: int, column: int) -> ByteRange:
        stored = metadata.row_group(row_group).column(column)
        return ByteRange(stored.data_page_offset, stored.data_page_offset + stored.total_compressed_size)

    assert chunk_ranges(sidecar, [2, 0], [1]) == [chunk(0, 1), chunk(2, 1)]
    assert chunk_ranges(sidecar, [1], [0, 2]) == [chunk(1, 0), chunk(1, 2)]
    assert chunk_ranges(sidecar, [3], [1, 0]) == [ByteRange(chunk(3, 0).begin, chunk(3, 1).end)]
    assert chunk_ranges(sidecar, range(4)) == [ByteRange(4, chunk(3, 2).end)]
    gap = chunk(1, 1).size_bytes
    assert chunk_ranges(sidecar, [1], [0, 2], gap_bytes=gap) == [ByteRange(chunk(1, 0).begin, chunk(1, 2).end)]
    assert len(chunk_ranges(sidecar, [1], [0, 2], gap_bytes=gap - 1)) == 2
    assert chunk_ranges(sidecar, []) == chunk_ranges(sidecar, [0], []) == []


def test_a_chunk_that_is_not_there_is_refused(tmp_path: Path):
    _, sidecar = example(tmp_path)
    for row_groups, columns in (([4], None), ([-1], None), ([0], [3]), ([0], [-1])):
        with pytest.raises(InvalidRequest, match="no such"):
            chunk_ranges(sidecar, row_groups, columns)


@pytest.mark.parametrize(("begin", "size"), [(501, 0), (4, 497), (1 << 63, 1 << 63), ((1 << 64) - 1, 1), (4, 1 << 63)])
def test_a_chunk_behind_the_parquet_footer_is_refused(begin: int, size: int):
    data = bytearray(sidecar_bytes())
    at = int(decode(bytes(data)).block_offsets[1]) + 8 + 64
    data[at + 16 : at + 32] = begin.to_bytes(8, "little") + size.to_bytes(8, "little")
    sidecar = decode(bytes(data), check=False)
    with pytest.raises(Inconsistent, match="row group 1, column n"):
        chunk_ranges(sidecar, range(3))
    assert chunk_ranges(sidecar, [0, 2])
    data[at + 16 : at + 32] = (4).to_bytes(8, "little") + (496).to_bytes(8, "little")
    assert chunk_ranges(decode(bytes(data), check=False), [1], [1]) == [ByteRange(4, 500)]
