from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import underlay as ul
from underlay.change.files.rows import read_rows
from underlay.change.rows.staged import Staged, stage, staging_for
from underlay.errors import Unavailable
from underlay.spark.tasks.stage_rows import check_visible
from underlay.store import open_store

pytestmark = pytest.mark.local_only


def test_files_on_another_machines_disk_are_not_committed(tmp_path: Path):
    table = ul.connect(tmp_path / "driver").create_table("some.table", "id bigint")
    staging = staging_for(table.read_head())
    stores = (table.stores.lake, open_store(tmp_path / "executor"))
    here, there = (stage(staging, store, read_rows(pa.table({"id": [1]}))) for store in stores)
    check_visible(table.stores.lake, staging.folder, [here, Staged()])
    with pytest.raises(Unavailable, match=r"an executor wrote to a disk that the driver does not see.*share"):
        check_visible(table.stores.lake, staging.folder, [here, there])
    check_visible(open_store("memory://"), staging.folder, [there])  # an object store is the same from everywhere
