"""A table's verbs."""

from __future__ import annotations

import pyarrow as pa
import pytest

import underlay
from underlay.errors import InvalidRequest, NotFound


@pytest.fixture
def table():
    table = underlay.connect("memory://").create_table("a.b", "i bigint")
    table.append(pa.table({"i": [1]}))
    return table


def test_a_rollback_takes_a_tag(table):
    table.tag("audit")
    table.append(pa.table({"i": [2]}))
    table.rollback(tag="audit")
    assert table.to_arrow().column("i").to_pylist() == [1]
    with pytest.raises(NotFound, match="nope"):
        table.rollback(tag="nope")
    for arguments in ({}, {"version": 1, "tag": "audit"}):
        with pytest.raises(InvalidRequest, match="a version or a tag"):
            table.rollback(**arguments)
    assert table.version == 3


def test_the_least_value_of_zeros_has_no_sign():
    table = underlay.connect("memory://zeros").create_table("a.b", "f double")
    table.append(pa.table({"f": [0.0, 1.0]}))
    assert str(table.plan().minimum("f")) == "0.0"


def test_a_lake_is_made_by_connect():
    with pytest.raises(InvalidRequest, match=r"a lake is made by connect.*Write underlay\.connect\('data/lake'\)"):
        underlay.Lake("data/lake")
