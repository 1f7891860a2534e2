from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import underlay.spark
from underlay.errors import Unsupported
from underlay.spark.start.open_session import (
    check_version,
    driver_settings,
    is_local,
    is_running,
    local_settings,
    open_session,
)


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
    assert spark.sparkContext.uiWebUrl is None


def test_a_session_that_nobody_has_yet_is_on_all_cores_of_this_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    started: list[str] = []
    monkeypatch.setattr("underlay.spark.start.open_session.start_on", started.append)
    open_session()
    assert started == ["local[*]"]


def test_active_session_is_used(spark: SparkSession):
    assert open_session() is spark


def test_own_session_is_used(spark: SparkSession):
    own = spark.newSession()
    assert open_session(own) is own


def test_session_that_was_not_stopped_is_running(spark: SparkSession):
    assert is_running(spark)


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", True), ("local[*]", True), ("local[2,4]", True), ("local-cluster[2,1,1024]", False), ("yarn", False)],
)
def test_tasks_run_in_the_driver_only_on_a_local_master(master: str, expected: bool):
    assert is_local(master) is expected


def test_driver_on_a_cluster_keeps_the_address_that_others_reach():
    assert "spark.driver.host" in local_settings(4096, "/tmp/x")
    assert not [name for name in driver_settings(4096, "/tmp/x") if "host" in name or "Address" in name]


def test_folder_of_a_session_goes_with_the_process():
    code = "from underlay.spark.start.open_session import temporary_folder; print(temporary_folder())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)
    assert "underlay-spark-" in done.stdout
    assert not Path(done.stdout.strip()).exists()


def test_every_public_name_is_found_where_it_is_defined():
    assert underlay.spark.__all__ == sorted(underlay.spark._HOMES)
    for name in underlay.spark.__all__:
        assert getattr(underlay.spark, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        _ = underlay.spark.nothing


def test_names_need_pyspark():
    """In a process without it, which is this one with nothing to be found."""
    code = (
        "import sys; sys.modules['py4j'] = None\n"
        "import underlay.spark\n"
        "try: underlay.spark.session\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout.startswith("Unsupported underlay.spark.session needs PySpark"), done.stderr
    assert "pip install 'underlay[spark]'" in done.stdout
