"""Writes micro-batches to a table exactly once, with `foreachBatch`: the driver writes small ones, tasks the others.

It keeps the same record as the sink `format("underlay")`, so a query may change from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest, Unsupported
from underlay.index.root import Definition
from underlay.ingest.exactly_once.stream import StreamKey, append_epoch, commit_epoch, find_repeat
from underlay.schema.record import from_record
from underlay.spark.jvm.gateway import GATEWAY_ERRORS, call, call_text, gateway_of, java_session
from underlay.spark.start.open_session import has_gateway
from underlay.spark.start.session_lakes import find_table
from underlay.spark.stream.query import QUERY_ID, read_offsets
from underlay.spark.tasks.clustering import clustered
from underlay.spark.tasks.collect import SeenRows, collect_batch, seen_in
from underlay.spark.tasks.stage_rows import check_columns, hinting_creation, stage_by_tasks
from underlay.spark.types.from_spark import SESSION_ZONE, NaiveTimestamps, read_naive_timestamps, table_rows
from underlay.table.coordination.upload_intent import upload


def batch_writer(
    table: Table | str,
    *,
    sink: str | None = None,
    lake: Lake | None = None,
    naive_timestamps: NaiveTimestamps | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that adds each batch of a stream to a table, exactly once.

    A name means a table of the session's lake unless another lake is given. A query that writes to one table twice must
    name its sinks; by default a sink has the table's name. `naive_timestamps` is as for `append`. The returned function
    raises ReplayDiffers, SchemaMismatch before any task runs, CommitConflict, RevisionClosed, CommitUnknown; after
    these, restart the query to continue. Raises Unsupported over Spark Connect.
    """
    writer = _BatchWriter(table, sink, lake, read_naive_timestamps(naive_timestamps))

    def write_batch(batch: DataFrame, epoch: int) -> None:
        writer.write(batch, epoch)

    return write_batch


class _BatchWriter:
    """One sink, and what it looks up only once for all batches."""

    def __init__(self, table: Table | str, sink: str | None, lake: Lake | None, naive: NaiveTimestamps | None) -> None:
        self._given = table
        self._sink = sink
        self._lake = lake
        self._naive = naive
        self._table: Table | None = None
        self._checked: tuple[StructType, Definition] | None = None
        self._checkpoints: dict[str, str | None] = {}
        self._seen: SeenRows | None = None

    def write(self, batch: DataFrame, epoch: int) -> None:
        """Add a batch unless the table has it."""
        query_id = _query_id(batch.sparkSession)
        table = self._open(batch.sparkSession)
        opened = table.writable()
        head = opened.head()
        self._check(batch.schema, head.root.definition)
        key = StreamKey(query_id=query_id, sink=self._sink or table.name)
        facts = read_offsets(self._checkpoint(batch.sparkSession, query_id), epoch)
        if find_repeat(opened, head, key, epoch, batch.count, facts=facts) is not None:
            return
        rows = collect_batch(batch, self._seen)
        if rows is not None:
            zone = batch.sparkSession.conf.get(SESSION_ZONE)
            schema = from_record(head.root.definition.schema)
            given = table_rows(rows, schema, self._naive, session_zone=zone)
            append_epoch(opened, key, epoch, given, facts=facts)
            self._seen = seen_in(rows) or self._seen
            return
        with upload(head.revision, note="a stream of Spark"):  # protects files from sweeps
            staged = stage_by_tasks(clustered(batch, head.root.definition), table, head, self._naive)
            commit_epoch(opened, head, key, epoch, staged, facts=facts)
        self._seen = seen_in(staged) or self._seen

    def _open(self, spark: SparkSession) -> Table:
        if self._table is None:
            with hinting_creation():
                self._table = find_table(spark, self._given, self._lake)
        return self._table

    def _check(self, schema: StructType, definition: Definition) -> None:
        if self._checked != (schema, definition):
            check_columns(schema, definition, self._naive)
            self._checked = (schema, definition)

    def _checkpoint(self, spark: SparkSession, query_id: str) -> str | None:
        if query_id not in self._checkpoints:
            self._checkpoints[query_id] = _find_checkpoint(spark, query_id)
        return self._checkpoints[query_id]


def _query_id(spark: SparkSession) -> str:
    if not has_gateway(spark):
        raise Unsupported("Spark Connect does not reveal the id of a query", hint='Use writeStream.format("underlay").')
    found = spark.sparkContext.getLocalProperty(QUERY_ID)
    if not found:
        raise InvalidRequest(
            "this is not a batch of a stream",
            hint="Pass the result of batch_writer to writeStream.foreachBatch, or call underlay.spark.append.",
        )
    return found


def _find_checkpoint(spark: SparkSession, query_id: str) -> str | None:
    """Where the query stores its offsets; None when Spark does not say."""
    name = gateway_of(spark).static("java.util.UUID", "fromString", query_id)
    try:
        running = call(call(java_session(spark), "sharedState"), "activeStreamingQueries")  # across all of its sessions
        query = call(running, "get", name)
        return None if query is None else call_text(query, "resolvedCheckpointRoot")
    except GATEWAY_ERRORS:
        return None
