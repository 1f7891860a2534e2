"""Files of a version, by their locations."""

from __future__ import annotations

import pyarrow as pa
import pytest

import underlay as ul
from tests.end_to_end.lakes import memory, quick
from underlay.errors import NotFound
from underlay.table.versions import snapshot as snapshots


def changed_table() -> ul.Table:
    table = quick(memory()).create_table("d.t", "id bigint", key=["id"])
    for number in range(6):
        table.append(pa.table({"id": [number, number + 10]}))
    table.delete("id = 2 or id = 3 or id = 13")
    return table


@pytest.mark.parametrize("kept", [0, 3, 256])
def test_files_are_the_same_however_often_they_are_asked_for(monkeypatch: pytest.MonkeyPatch, kept: int):
    monkeypatch.setattr(snapshots, "_KEPT_FILES", kept)
    version = changed_table().snapshot()
    plain = {file.location: file for file in version.files()}
    assert [file.deleted_rows for file in plain.values()].count(1) == 1
    for _ in range(2):
        for some in ([next(iter(plain))], list(plain), list(plain)[2:4]):
            assert version.find_files(some) == {name: plain[name] for name in some}


def test_a_file_that_was_removed_is_not_found_in_the_version_without_it():
    table = changed_table()
    before = table.snapshot()
    gone = {file.location for file in before.files()}
    before.find_files(gone)
    table.truncate()
    with pytest.raises(NotFound, match="no such file"):
        table.snapshot().find_files(gone)
    assert before.find_files(gone).keys() == gone
