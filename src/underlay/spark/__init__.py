"""Tables of a lake on Spark: by name, read at native speed."""

from underlay.spark.relation import read_table
from underlay.spark.session import refresh, session

__all__ = ["read_table", "refresh", "session"]
