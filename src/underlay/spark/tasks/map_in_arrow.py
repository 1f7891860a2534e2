"""`DataFrame.mapInArrow` without pandas, which PySpark requires in a classic session but does not use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from underlay.spark.jvm.gateway import JavaObject, data_frame
from underlay.spark.types.spark_types import quoted

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: BatchFunction, schema: StructType) -> DataFrame:
    """Apply `function` to the batches of each task. Nothing runs yet."""
    if not hasattr(frame, "_jdf"):  # Spark Connect cannot be used without pandas anyway
        return frame.mapInArrow(function, schema)
    classic: Any = frame
    mapping: Any = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = mapping(*(frame[quoted(name)] for name in frame.columns))
    mapped = classic._jdf.mapInArrow(column._jc, False, None)
    return data_frame(JavaObject(mapped), frame.sparkSession)
