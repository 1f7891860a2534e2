"""Large MERGEs on a cluster: an executor is killed in the middle of one, two sessions merge the same keys."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.tasks.test_clustering import killing
from underlay.spark import forget, merge, session
from underlay.spark.tasks import collect as small

pytestmark = pytest.mark.cluster_only
NAME = "some.table"
ROWS = 20_000
FIRST = ROWS // 2
"""The first id of the rows that change the table: half of them are there."""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ul.Lake:
    monkeypatch.setattr(small, "SMALL_ROWS", 0)
    monkeypatch.setattr(small, "SMALL_BYTES", -1)
    found = ul.connect(tmp_path / "lake")
    table = found.create_table(NAME, "id bigint not null, name string, number bigint")
    for begin in range(0, ROWS, ROWS // 4):
        ids = range(begin, begin + ROWS // 4)
        table.append(pa.table({"id": ids, "name": [f"name {one % 7}" for one in ids], "number": [0] * len(ids)}))
    return found


def rows_of(lake: ul.Lake) -> list[tuple[int, str, int]]:
    found = lake.table(NAME).to_arrow().sort_by("id").to_pydict()
    return list(zip(found["id"], found["name"], found["number"], strict=True))


def test_a_merge_whose_executor_is_killed_is_one_commit_with_every_row(
    spark: SparkSession, lake: ul.Lake, tmp_path: Path
):
    mark = tmp_path / "killed"
    source = spark.range(FIRST, FIRST + ROWS, 1, 4).selectExpr("id", "concat('new ', id % 5) as name")
    done = (
        merge(killing(source, ROWS - 7, mark), NAME, "t.id = s.id", source_alias="s", target_alias="t", lake=lake)
        .when_matched_delete("s.id % 3 = 0")
        .when_matched_update({"name": "s.name", "number": "t.number + 1"})
        .when_not_matched_insert({"id": "s.id", "name": "s.name", "number": "9"})
        .when_not_matched_by_source_delete("t.id % 11 = 0")
        .execute()
    )
    assert mark.exists()
    kept = [(one, f"name {one % 7}", 0) for one in range(FIRST) if one % 11]
    updated = [(one, f"new {one % 5}", 1) for one in range(FIRST, ROWS) if one % 3]
    inserted = [(one, f"new {one % 5}", 9) for one in range(ROWS, FIRST + ROWS)]
    assert rows_of(lake) == kept + updated + inserted
    assert lake.table(NAME).version == 5 == done.version
    assert (done.rows_updated, done.rows_inserted) == (len(updated), len(inserted))
    report = ul.connect(lake.url, registry="none").verify(deep=True, registry=False)
    assert report.tables[0].revisions[0].findings == ()


def test_two_sessions_that_merge_the_same_keys_come_one_after_the_other(spark: SparkSession, lake: ul.Lake):
    """Each adds 1 to the same rows; the one that loses the race does its work again."""
    lakes = [ul.connect(lake.url) for _ in range(2)]
    sessions = [spark.newSession() for _ in lakes]
    for own, of in zip(lakes, sessions, strict=True):
        session(own, of)
    text = (
        f"merge into {NAME} as t using (select id from range({FIRST}, {ROWS})) as s on t.id = s.id "
        "when matched then update set number = t.number + 1"
    )
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda of: of.sql(text).first(), sessions))
    assert [row.num_updated_rows for row in done] == [ROWS - FIRST] * 2
    assert {number for one, _, number in rows_of(lake) if one >= FIRST} == {2}
    assert lake.table(NAME).version == 6
    for own, of in zip(lakes, sessions, strict=True):
        forget(of, own)
