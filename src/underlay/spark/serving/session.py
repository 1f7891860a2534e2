"""The Spark session that serves statements: locked as far as its settings can, fair to each of them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from underlay.spark.start.open_session import is_local, start_on

_JVM = "-XX:+ExitOnOutOfMemoryError -XX:-UsePerfData -Djava.io.tmpdir="
"""A JVM without memory may answer wrongly or never: it ends, and the next statement starts another one."""
_LOCKED = {
    "spark.sql.restrictedMode.enabled": "true",
    "spark.sql.reflect.allowList": "^$",
    "spark.sql.variable.substitute": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.scripting.enabled": "false",
    "spark.sql.avro.schemaUrlAllowedSchemes": "none",
}
"""A second lock: the check of the plan refuses what these would stop. Older Sparks do not know all of them."""
_FAIR = {
    "spark.scheduler.mode": "FAIR",
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.pollingInterval": "1s",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",  # the driver takes whole partitions of the answer
    "spark.sql.files.maxPartitionBytes": "32m",
    # each task of these pools takes a new thread until there are so many, 1,024 by default; a thread stays for a minute
    "spark.sql.shuffleExchange.maxThreadThreshold": "64",
    "spark.sql.resultQueryStage.maxThreadThreshold": "64",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "400",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "10",
}
_KILL = {"spark.task.reaper.killTimeout": "60s"}
"""An executor whose task does not end is ended, and replaced; a local session would end itself."""


def most_result_bytes(memory_bytes: int) -> int:
    """The largest partition of an answer that a driver of this memory takes."""
    return max(memory_bytes // 4, 64 << 20)


def serving_session(master: str, memory_bytes: int, folder: str, settings: Mapping[str, str]) -> SparkSession:
    """A new session on a master, whose own files lie in the folder. `settings` go before all others. Raises
    Unavailable."""
    memory_mb = memory_bytes >> 20
    own = {
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.maxResultSize": f"{most_result_bytes(memory_bytes) >> 20}m",
        "spark.driver.extraJavaOptions": f"{_JVM}{folder}",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        **({} if is_local(master) else _KILL),
    }
    return start_on(master, {**_FAIR, **_LOCKED, **own, **settings})
