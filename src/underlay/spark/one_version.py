"""No query reads two versions of a table that nobody asked for.

A frame by name is of the version that was the newest when it was made. Beside one that was made later it would give
rows of two moments. Spark tells, while it plans, which execution it plans for; versions that were asked for by number,
time or tag do not count.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from threading import Lock

from underlay.errors import InvalidRequest
from underlay.spark.gateway import Gateway

_MOST_EXECUTIONS = 1024


class VersionsInUse:
    """The versions that the newest executions of a JVM read. Safe for many threads."""

    def __init__(self) -> None:
        self._executions: OrderedDict[str, dict[str, int]] = OrderedDict()
        self._lock = Lock()

    def add(self, execution: str, name: str, place: str, version: int) -> None:
        """Note that an execution reads this version of the table in `place`. Raises InvalidRequest for a second one."""
        with self._lock:
            versions = self._executions.setdefault(execution, {})
            if len(self._executions) > _MOST_EXECUTIONS:
                self._executions.popitem(last=False)
            other = versions.setdefault(place, version)
        if other != version:
            first, second = sorted((other, version))
            raise InvalidRequest(
                f"two versions of {name} in one query: {first} and {second}",
                hint="Make both frames anew by spark.table, or read each by read_table(…, version=…).",
            )


@lru_cache(maxsize=8)
def versions_in_use(gateway: Gateway) -> VersionsInUse:
    """Those of one JVM."""
    return VersionsInUse()
