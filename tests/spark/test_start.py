from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from underlay.errors import Unsupported
from underlay.spark.start import check_version, is_running, local_settings, open_session


@pytest.mark.parametrize(("machine_mb", "memory"), [(4096, "1024m"), (1 << 20, "8192m"), (600, "512m")])
def test_memory_is_a_quarter_of_the_machine_within_bounds(machine_mb: int, memory: str):
    assert local_settings(machine_mb, "/tmp/x")["spark.driver.memory"] == memory


@pytest.mark.parametrize("version", ["3.5.7", "2.4.0"])
def test_old_spark_is_refused(version: str):
    with pytest.raises(Unsupported, match=f"4.0 or later, found {version}"):
        check_version(version)


@pytest.mark.parametrize("version", ["4.0.0", "4.1.2", "4.3.0.dev0", "5.0.0-SNAPSHOT"])
def test_newer_spark_is_taken(version: str):
    check_version(version)


@pytest.mark.local_only
def test_session_is_local_in_utc_and_writes_no_int96(spark: SparkSession):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.sparkContext.master == "local[*]"
    assert spark.sparkContext.uiWebUrl is None


def test_active_session_is_used(spark: SparkSession):
    assert open_session() is spark


def test_own_session_is_used(spark: SparkSession):
    own = spark.newSession()
    assert open_session(own) is own


def test_session_that_was_not_stopped_is_running(spark: SparkSession):
    assert is_running(spark)


def test_names_need_pyspark():
    """In a process without it, which is this one with nothing to be found."""
    code = (
        "import sys; sys.modules['py4j'] = None\n"
        "import underlay.spark\n"
        "try: underlay.spark.session\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("Unsupported underlay.spark.session needs PySpark"), done.stderr
    assert "pip install 'underlay[spark]'" in done.stdout
