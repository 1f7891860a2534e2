"""Numbers rows by their file and their position in it, and removes deleted rows by an anti-join on these numbers.

Spark knows a file only by its FileStatus, so the file's number travels as the modification time, in ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from underlay.index.deletion_vectors import MAX_ROWS, Positions, unpack

_NUMBER = "__underlay_row"
"""The prefix of the column that identifies rows."""


def number_column(names: Sequence[str]) -> str:
    """A name for the column of row numbers that none of these columns has: longer than any of theirs."""
    return _NUMBER + "_" * max(map(len, names), default=0)


def numbered(frame: DataFrame, columns: Sequence[Column | str], number: str) -> DataFrame:
    """Columns of a frame over numbered files, and the number of each row: the file's times 2^32, plus the position in
    it.
    """
    hidden = frame.metadataColumn("_metadata")
    file = f.unix_millis(hidden["file_modification_time"])
    return frame.select(*columns, (file * MAX_ROWS + hidden["row_index"]).alias(number))


def without_deleted(
    spark: SparkSession, numbered: DataFrame, number: str, deletes: Sequence[bytes], first_file: int = 0
) -> DataFrame:
    """The rows of files numbered from `first_file`, without each file's deleted positions."""
    gone = spark.createDataFrame(pa.table({number: deleted_numbers(deletes, first_file)}))
    return numbered.join(f.broadcast(gone), number, "left_anti")


def deleted_numbers(deletes: Sequence[bytes], first_file: int = 0) -> Positions:
    """The number of each deleted row."""
    found = [file * MAX_ROWS + unpack(positions) for file, positions in enumerate(deletes, first_file)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])
