"""Streams of numbers out of files, one file a batch, and what a crash leaves of their checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from underlay.api.table import Table

_NO_WORKER = "Python worker failed to connect back"
"""What Spark says when a process of Python, which loads PySpark first, took more than 10 s to start."""
COLUMNS = "id long, name string"


class Feed:
    """A folder with files of rows, read in the order in which they were put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def put(self, numbers: Iterable[int], file: int | None = None) -> Path:
        """A file with these rows: a new one, or the one of this number with other rows."""
        at = len(list(self.folder.iterdir())) if file is None else file
        path = self.folder / f"{at:03}.json"
        path.write_text("".join(json.dumps({"id": number, "name": f"name {number}"}) + "\n" for number in numbers))
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))
        return path

    def stream(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(self.folder))


def sink_of(frame: DataFrame, table: Table, checkpoint: Path, **options: str) -> DataStreamWriter:
    """`frame` on its way into a table."""
    lake = table.writable().lake.store.url
    return (
        frame.writeStream.format("underlay")
        .option("lake", lake)
        .option("path", table.name)
        .option("checkpointLocation", str(checkpoint))
        .options(**options)
    )


def run(stream: DataStreamWriter, starts: int = 5) -> StreamingQuery:
    """Have all that is there written. Raises what the query fails with, unless it is that this machine is busy."""
    query = stream.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if _NO_WORKER not in str(error) or starts == 1:
            raise
        return run(stream, starts - 1)
    return query


def forget_commit(checkpoint: Path, epoch: int) -> None:
    """As if the driver had died after the table's commit of the epoch, and before Spark noted that it was done."""
    (checkpoint / "commits" / str(epoch)).unlink()
    (checkpoint / "commits" / f".{epoch}.crc").unlink(missing_ok=True)


def ids(table: Table) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())
