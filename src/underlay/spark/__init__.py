"""Tables of a lake on Spark: by name, read at native speed, written in parallel with one commit.

Without PySpark the names below raise Unsupported when they are used.
"""

from typing import TYPE_CHECKING

from underlay.spark.installed import has_pyspark, needs_pyspark

if TYPE_CHECKING or has_pyspark():  # at once: modules have the names of functions, and who came last would win
    from underlay.spark.explain import explain
    from underlay.spark.ingest import ingest
    from underlay.spark.relation import read_table
    from underlay.spark.session import forget, refresh, session
    from underlay.spark.stream_batch import batch_writer
    from underlay.spark.versions import register_version, table
    from underlay.spark.write import append, overwrite, write

__all__ = [
    "append",
    "batch_writer",
    "explain",
    "forget",
    "ingest",
    "overwrite",
    "read_table",
    "refresh",
    "register_version",
    "session",
    "table",
    "write",
]


def __getattr__(name: str) -> object:
    if name in __all__ and not has_pyspark():
        raise needs_pyspark(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
