"""Tables on Spark: by name, read at native speed, written in parallel with one commit.

Without PySpark the names below raise Unsupported when they are used.
"""

from typing import TYPE_CHECKING

from underlay.spark.start.installed import has_pyspark, needs_pyspark

if TYPE_CHECKING or has_pyspark():  # at once: modules have the names of functions, and who came last would win
    from underlay.spark.api.explain import explain
    from underlay.spark.api.ingest import ingest
    from underlay.spark.api.session import forget, refresh, session
    from underlay.spark.api.versions import register_version, table
    from underlay.spark.api.write import append, overwrite, write
    from underlay.spark.relation.relation import read_table
    from underlay.spark.stream.batch_writer import batch_writer

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
