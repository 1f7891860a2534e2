from __future__ import annotations

import pyarrow as pa
import pytest

import underlay
from underlay.errors import NotFound, TableNotFound


@pytest.fixture
def lake(tmp_path):
    with underlay.connect(tmp_path / "lake", registry=f"sqlite:///{tmp_path}/registry.sqlite") as lake:
        lake.create_table("a.b", data=pa.table({"i": [1, 2, 3]}))
        lake.create_table("a.c", "i bigint")
        yield lake


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_lake_has_no_findings(lake, deep):
    report = lake.verify(deep=deep)
    assert report.is_sound
    assert report.findings == ()
    assert [table.name for table in report.tables] == ["a.b", "a.c"]


def test_what_is_lost_is_found(lake, tmp_path):
    (file,) = (tmp_path / "lake" / "a" / "b").rglob("*.parquet")
    file.unlink()
    report = lake.verify("a.b")
    assert not report.is_sound
    assert any(file.name in str(finding) for finding in report.findings)
    assert lake.verify("a.c").is_sound


def test_a_table_that_is_not_there_is_an_error(lake, tmp_path):
    with pytest.raises(TableNotFound):
        lake.verify("a.x")
    with underlay.connect(tmp_path / "none", registry="none") as nothing, pytest.raises(NotFound):
        nothing.verify()
