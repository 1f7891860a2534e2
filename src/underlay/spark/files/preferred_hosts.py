"""Chooses the host that reads a file, the same one every time, so that its page cache has the file.

Hosts are chosen by rendezvous hashing (`plan.assign`) from the names of file and host alone: every driver chooses the
same ones, a new host takes only the files that it wins, and a lost host gives up only its own. Spark waits some time
for a preferred host (`spark.locality.wait`) and then takes any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark import SparkContext

from underlay.plan.assign import assign
from underlay.spark.jvm.gateway import JavaObject, call, call_text
from underlay.spark.start.open_session import is_local

RANGE_BYTES = 128 << 20
"""Each range of this size in a larger file has its own host, or one host would read all of it. It is Spark's usual
split size."""

Hosts = Mapping[str, float]
"""Hosts with executors, and how many they have."""


def executor_hosts(context: SparkContext) -> Hosts:
    """The hosts of the executors that are alive; empty if tasks run in the driver. Takes some 4 ms on a cluster, else
    nothing.
    """
    if is_local(str(context.master)):
        return {}
    scala = call(JavaObject(context._jsc), "sc")
    known = call_text(call(call(scala, "getExecutorMemoryStatus"), "keySet"), "mkString", "\n")
    driver = call_text(call(scala, "conf"), "get", "spark.driver.host")
    return executors_of(known.splitlines(), driver)


def executors_of(addresses: Sequence[str], driver: str) -> Hosts:
    """The executors' hosts, from `host:port` addresses that include the driver's own."""
    counted = Counter(address.rpartition(":")[0] for address in addresses)
    counted[driver] -= 1
    return {host: float(count) for host, count in counted.items() if count > 0}


def preferred_hosts(paths: Sequence[str], hosts: Hosts) -> list[str]:
    """The host for the beginning of each file."""
    return [first for first, _ in assign(paths, hosts)]


def hosts_of_ranges(first: str, hosts: Hosts, count: int) -> list[str]:
    """The hosts for the ranges of a file that begins on `first`: the same for all such files."""
    later = preferred_hosts([f"{first}#{number}" for number in range(1, count)], hosts)
    return [first, *later]
