"""What DuckDB said of an expression is kept for its text, columns and parameters, and for nothing else."""

from __future__ import annotations

import pytest

import underlay as ul
from tests.end_to_end.lakes import memory, quick
from underlay.errors import InvalidRequest, SchemaMismatch, UnknownColumn


def table() -> ul.Table:
    made = quick(memory()).create_table("d.t", "id int, a int, s string")
    made.append([{"id": 1, "a": 7, "s": "x"}])
    return made


def test_the_same_text_is_checked_again_once_columns_have_other_names_or_types():
    changed = table()
    for _ in range(2):
        changed.update({"a": "a + 1"}, where="id = 1")
    with changed.evolve() as change:
        change.widen_column("a", "bigint")
    changed.update({"a": "a + 1"}, where="id = 1")
    assert changed.to_arrow()["a"].to_pylist() == [10]
    with changed.evolve() as change:
        change.rename_column("a", "b")
    with pytest.raises(UnknownColumn, match="there is no column a"):
        changed.update({"b": "a + 1"}, where="id = 1")


def test_a_text_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(InvalidRequest, match=r"^a: "):
            table().update({"a": "sum(a)"}, where="id = 1")


def test_the_same_text_has_other_types_by_its_parameters():
    changed = table()
    for value, expected in ((2, 9), (3, 12)):
        changed.update({"a": "a + $more"}, where="id = 1", params={"more": value})
        assert changed.to_arrow()["a"].to_pylist() == [expected]
    with pytest.raises(InvalidRequest):
        changed.update({"a": "a + $more"}, where="id = 1", params={"more": "many"})
    with pytest.raises(SchemaMismatch):
        changed.update({"a": "a + $more"}, where="id = 1", params={"more": 0.5})
    assert changed.to_arrow()["a"].to_pylist() == [12]
