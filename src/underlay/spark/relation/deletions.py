"""Removes deleted rows by an anti-join on the number of the file and the row's position in it.

Spark knows only what its FileStatus says about a file, so the number travels as the modification time, in ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from underlay.index.deletion_vectors import MAX_ROWS, unpack

_KEY = "__underlay_row"
"""How the name of the column begins that tells rows apart."""


def without_deleted(
    spark: SparkSession,
    frame: DataFrame,
    columns: Sequence[Column | str],
    names: Sequence[str],
    deletes: Sequence[bytes],
) -> DataFrame:
    """Columns of a frame over files that are numbered from 0, without the rows at the positions deleted in each.

    `names` are those that the columns get.
    """
    hidden = frame.metadataColumn("_metadata")
    number = f.unix_millis(hidden["file_modification_time"])
    key = _KEY + "_" * max(map(len, names))  # longer than any of them
    keyed = frame.select(*columns, (number * MAX_ROWS + hidden["row_index"]).alias(key))
    gone = spark.createDataFrame(pa.table({key: deleted_keys(deletes)}))
    return keyed.join(f.broadcast(gone), key, "left_anti").drop(key)


def deleted_keys(deletes: Sequence[bytes]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """One number for each deleted row: the file's times 2^32, and the position in it."""
    keys = [number * MAX_ROWS + unpack(positions) for number, positions in enumerate(deletes)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *keys])
