"""QuestDB's own sidecars are pruned without the loss of a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.genuine import label
from tests.pm.read.test_rows import states
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.format.types import DESIGNATED, Tag, tag_of
from underlay.pm.prune.bounds import show_bounds
from underlay.pm.prune.prune import prune
from underlay.pm.read.rows import read_rows
from underlay.prune import And, Cause, Compare, Instant, IsNotNull, IsNull, Op


def test_questdbs_empty_strings_are_found(fixtures: Path):
    for version in ("9.4.3", "10.0.0"):
        folder = fixtures / "questdb" / version / "strings"
        sidecar = decode((folder / "_pm").read_bytes())
        rows = json.loads((folder / "rows.json").read_text())
        names = [c["name"] for i, c in enumerate(rows["columns"]) if "" in [row[i] for row in rows["rows"]]]
        assert names
        for name in names:
            assert prune(sidecar, And((Compare((name,), Op.EQ, ""),))).kept.any()
            assert prune(sidecar, And((Compare((name,), Op.LE, ""),))).kept.any()


# QuestDB's own files

COMPARABLE = {Tag.BOOLEAN, Tag.BYTE, Tag.SHORT, Tag.CHAR, Tag.INT, Tag.LONG, Tag.DATE, Tag.TIMESTAMP, Tag.FLOAT}
COMPARABLE |= {Tag.DOUBLE, Tag.STRING, Tag.SYMBOL, Tag.BINARY, Tag.UUID, Tag.IPV4, Tag.VARCHAR}
COMPARABLE |= {tag for tag in Tag if tag.name.startswith("DECIMAL")}
NANOSECONDS_PER = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def literals(column: pa.ChunkedArray, tag: Tag) -> list[Any]:
    """The values of a column as literals, None for a null."""
    if pa.types.is_timestamp(column.type):
        unit = NANOSECONDS_PER[column.type.unit]
        return [None if v is None else Instant(v * unit) for v in column.cast(pa.int64()).to_pylist()]
    values = column.to_pylist()
    if tag is Tag.CHAR:
        return [None if v is None else chr(v) for v in values]
    return values


def judged(sidecar: Sidecar, data: Path) -> Iterator[tuple[int, Sidecar, str, list[Any]]]:
    """(row group, sidecar, name, literals) of every column that can be compared."""
    for row_group in range(sidecar.row_group_count):
        table = read_rows(sidecar, data, row_groups=[row_group])
        for column in sidecar.columns:
            tag = tag_of(column.type)
            if tag in COMPARABLE:
                yield row_group, sidecar, column.name, literals(table.column(column.name), tag)


@pytest.mark.parametrize(("folder", "suffix"), states(), ids=lambda v: label(v) if isinstance(v, Path) else v or "last")
def test_no_row_of_a_genuine_sidecar_is_lost(folder: Path, suffix: str):
    data = folder / f"data.parquet{suffix}"
    sidecar = decode((folder / f"_pm{suffix}").read_bytes())
    for row_group, _, name, values in judged(sidecar, data):
        path = (name,)
        if None in values:
            assert prune(sidecar, And((IsNull(path),))).kept[row_group]
        there = [value for value in values if value is not None]
        for value in (there[0], there[len(there) // 2], there[-1]) if there else ():
            where = And((*(Compare(path, op, value) for op in (Op.EQ, Op.LE, Op.GE)), IsNotNull(path)))
            assert prune(sidecar, where).kept[row_group], (str(where), row_group)


def bloom_losses(folder: Path, *, trust: bool) -> int:
    """How many values of `id` and `vc` equality does not find in the row group that holds them."""
    sidecar = decode((folder / "_pm").read_bytes())
    lost = 0
    for row_group, _, name, values in judged(sidecar, folder / "data.parquet"):
        for value in values:
            where = And((Compare((name,), Op.EQ, value),))
            lost += value is not None and not prune(sidecar, where, trust_appended_blooms=trust).kept[row_group]
    return lost


@pytest.mark.parametrize("version", ["9.4.3", "10.0.0"])
def test_filters_that_questdb_attached_to_the_wrong_row_group_lose_rows_only_when_trusted(fixtures, version: str):
    folder = fixtures / "questdb" / version / "chain_bloom"
    assert bloom_losses(folder, trust=False) == 0
    assert bloom_losses(folder, trust=True) > 0


def test_filters_of_the_first_version_are_asked_in_a_longer_chain(fixtures: Path):
    sidecar = decode((fixtures / "questdb" / "10.0.0" / "chain_bloom" / "_pm").read_bytes())
    assert sidecar.footer.previous_size > 0
    low, high = (int(bound) for bound in (show_bounds(sidecar, 1)[0][0], show_bounds(sidecar, 1)[1][0]))
    causes = {
        int(c) for value in range(low, high) for c in prune(sidecar, And((Compare(("id",), Op.EQ, value),))).causes
    }
    assert Cause.BLOOM in causes


def test_genuine_sidecars_prune_by_the_designated_timestamp(fixtures: Path):
    for version in ("9.4.3", "10.0.0"):
        folder = fixtures / "questdb" / version / "three_groups"
        sidecar = decode((folder / "_pm").read_bytes())
        assert sidecar.columns[2].type == Tag.TIMESTAMP | DESIGNATED
        last = read_rows(sidecar, folder / "data.parquet").column("ts")[-1].as_py()
        verdict = prune(sidecar, And((Compare(("ts",), Op.GE, last),)))
        assert verdict.kept.tolist() == [False] * (sidecar.row_group_count - 1) + [True]
