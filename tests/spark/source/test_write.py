"""The writer of the data source on the driver: what a commit and an abort do with what tasks staged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import underlay as ul
from tests.spark.api.test_write import NAME, files_on_disk, ids
from underlay.api.table import Table
from underlay.errors import CommitConflict
from underlay.spark.source.options import read_options
from underlay.spark.source.write import TableWriter


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return ul.connect(tmp_path / "a lake").create_table(NAME, "id bigint not null, name string")


def staged_writer(table: Table, *, is_overwrite: bool = False) -> TableWriter:
    """The driver's part of a write, without Spark."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    options = read_options({"lake": table.writable().lake.store.url, "path": NAME})
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
    return TableWriter(options, schema, is_overwrite=is_overwrite)


def batches(*numbers: int) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch({"id": list(numbers), "name": [str(number) for number in numbers]})])


def test_an_abort_after_a_commit_was_tried_deletes_nothing(table: Table):
    writer = staged_writer(table)
    messages = [writer.write(batches(1, 2)), writer.write(iter([]))]
    writer.commit(messages)
    writer.abort(messages)
    assert ids(table) == [1, 2]


def test_an_abort_after_a_task_failed_deletes_what_the_others_wrote(table: Table):
    writer = staged_writer(table)
    writer.abort([writer.write(batches(1, 2)), None])
    assert not files_on_disk(table)


def test_an_attempt_that_nobody_reports_is_not_in_the_table(table: Table):
    writer = staged_writer(table)
    writer.write(batches(1, 2))
    writer.commit([writer.write(batches(1, 2))])
    assert ids(table) == [1, 2]
    assert len(files_on_disk(table)) == 2


def test_rows_that_came_while_an_overwrite_ran_are_kept_by_a_conflict(table: Table):
    writer = staged_writer(table, is_overwrite=True)
    table.append(pa.table({"id": [7], "name": ["g"]}))
    with pytest.raises(CommitConflict):
        writer.commit([writer.write(batches(1))])
    assert ids(table) == [7]


def test_rows_that_came_while_an_append_ran_are_joined_by_it(table: Table):
    writer = staged_writer(table)
    table.append(pa.table({"id": [7], "name": ["g"]}))
    writer.commit([writer.write(batches(1))])
    assert ids(table) == [1, 7]
