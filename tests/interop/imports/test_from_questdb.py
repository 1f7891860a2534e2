"""Tables of QuestDB come in through their sidecars, and are refused as long as partitions are native."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.lakes import memory, quick
from tests.hot.questdb.tables import make_table, together
from tests.hot.questdb.test_register import PLAIN
from underlay.errors import NotFound, Unsupported
from underlay.hot.questdb.table_directory import read_questdb_table
from underlay.pm import read_rows


def test_a_table_of_questdb_is_imported_or_its_native_partitions_are_named(tmp_path: Path) -> None:
    lake = quick(memory())
    seen = set()
    for at, state in enumerate(PLAIN[:: max(1, len(PLAIN) // 6)]):
        path = make_table(tmp_path / f"db{at}", together(state))
        found = read_questdb_table(path)
        seen.add(bool(found.native))
        if found.native:
            with pytest.raises(Unsupported, match="is not Parquet") as error:
                lake.import_table(f"q.t{at}", f"questdb:{path}")
            assert found.native[0] in str(error.value)
            continue
        table = lake.import_table(f"q.t{at}", f"questdb:{path}")
        assert len(table) == sum(one.row_count for one in found.parquet)
        rows = [read_rows(one.sidecar, one.data) for one in found.parquet]
        assert table.scan().to_arrow().num_rows == sum(one.num_rows for one in rows)
        assert not table.sync().is_new
    assert False in seen
    with pytest.raises(NotFound):
        lake.import_table("q.none", f"questdb:{tmp_path}/none")
