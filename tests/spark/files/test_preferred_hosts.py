"""Which hosts files are read on, and that the JVM is told so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from underlay.spark.files.located_files import hand_over_located
from underlay.spark.files.preferred_hosts import (
    RANGE_BYTES,
    executor_hosts,
    executors_of,
    hosts_of_ranges,
    preferred_hosts,
)
from underlay.spark.jvm.gateway import gateway_of

PATHS = [f"s3a://bucket/lake/some/table/{number:09}.parquet" for number in range(5000)]
HOSTS = {f"10.0.0.{number}": 1.0 for number in range(9)}


def test_host_that_comes_takes_its_share_and_moves_nothing_else():
    before, after = preferred_hosts(PATHS, HOSTS), preferred_hosts(PATHS, {**HOSTS, "new": 1.0})
    moved = [new for old, new in zip(before, after, strict=True) if new != old]
    assert set(moved) == {"new"}
    assert len(moved) == pytest.approx(len(PATHS) / 10, rel=0.2)


def test_host_that_goes_leaves_only_its_own_files():
    gone = "10.0.0.4"
    before = preferred_hosts(PATHS, HOSTS)
    after = preferred_hosts(PATHS, {host: 1.0 for host in HOSTS if host != gone})
    assert all((old == gone) == (old != new) for old, new in zip(before, after, strict=True))


def test_ranges_of_a_file_stay_when_another_host_goes():
    before = hosts_of_ranges("10.0.0.1", HOSTS, 40)
    after = hosts_of_ranges("10.0.0.1", {host: 1.0 for host in HOSTS if host != "10.0.0.4"}, 40)
    assert len(set(before)) > 5
    assert all((old == "10.0.0.4") == (old != new) for old, new in zip(before, after, strict=True))


def test_every_process_prefers_the_same_hosts():
    code = (
        "from tests.spark.files.test_preferred_hosts import HOSTS, PATHS\n"
        "from underlay.spark.files.preferred_hosts import preferred_hosts\n"
        "print(' '.join(preferred_hosts(PATHS[:100], dict(reversed(HOSTS.items())))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == preferred_hosts(PATHS[:100], HOSTS)


def test_hosts_are_those_of_executors_by_their_number():
    addresses = ["10.0.0.1:4000", "10.0.0.1:4001", "10.0.0.2:4000", "[fd00::3]:7"]
    assert executors_of(addresses, driver="10.0.0.2") == {"10.0.0.1": 2.0, "[fd00::3]": 1.0}
    assert executors_of(addresses, driver="10.0.0.1") == {"10.0.0.1": 1.0, "10.0.0.2": 1.0, "[fd00::3]": 1.0}


@pytest.mark.local_only
def test_session_on_one_machine_prefers_no_host(spark: SparkSession):
    assert executor_hosts(spark.sparkContext) == {}


@pytest.mark.local_only
def test_files_arrive_with_hosts_for_their_ranges(spark: SparkSession):
    sizes = [100, 3 * RANGE_BYTES, RANGE_BYTES + 1]
    found = list(hand_over_located(gateway_of(spark), PATHS[:3], sizes, [7, 8, 9], HOSTS))
    assert [(one.getPath().toString(), one.getLen(), one.getModificationTime()) for one in found] == [
        *zip(PATHS[:3], sizes, [7, 8, 9], strict=True)
    ]
    for one, first in zip(found, preferred_hosts(PATHS[:3], HOSTS), strict=True):
        blocks = [(block.getOffset(), block.getHosts()[0]) for block in one.getBlockLocations()]
        assert blocks == [(at * RANGE_BYTES, host) for at, host in enumerate(hosts_of_ranges(first, HOSTS, 4))]
