"""Tables on Spark: by name, read at native speed, written in parallel with one commit.

Without PySpark the names below raise Unsupported when used. Each is loaded on first use: Spark's workers import modules
of this package to run a task, and need none of these names.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from underlay.spark.start.installed import has_pyspark, needs_pyspark

if TYPE_CHECKING:
    from underlay.spark.api.change import delete, merge, update, upsert
    from underlay.spark.api.compact import compact
    from underlay.spark.api.explain import explain
    from underlay.spark.api.ingest import ingest
    from underlay.spark.api.session import forget, refresh, session
    from underlay.spark.api.versions import register_version, table
    from underlay.spark.api.write import append, overwrite, write
    from underlay.spark.relation.relation import read_table
    from underlay.spark.start.open_session import start_on
    from underlay.spark.stream.batch_writer import batch_writer

__all__ = [
    "append",
    "batch_writer",
    "compact",
    "delete",
    "explain",
    "forget",
    "ingest",
    "merge",
    "overwrite",
    "read_table",
    "refresh",
    "register_version",
    "session",
    "start_on",
    "table",
    "update",
    "upsert",
    "write",
]

_HOMES = {
    "append": "api.write",
    "batch_writer": "stream.batch_writer",
    "compact": "api.compact",
    "delete": "api.change",
    "explain": "api.explain",
    "forget": "api.session",
    "ingest": "api.ingest",
    "merge": "api.change",
    "overwrite": "api.write",
    "read_table": "relation.relation",
    "refresh": "api.session",
    "register_version": "api.versions",
    "session": "api.session",
    "start_on": "start.open_session",
    "table": "api.versions",
    "update": "api.change",
    "upsert": "api.change",
    "write": "api.write",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not has_pyspark():
        raise needs_pyspark(name)
    found: object = getattr(import_module(f"underlay.spark.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
