"""Rows written by Spark's own Parquet writer, and adopted as files of the table.

No row is handed to Python: tasks write into a folder of the job's own, which nobody reads, and Spark's committer moves
there what one attempt of each task committed. The driver then reads footers, syncs the files, and gives them names. A
copied session has the settings on which the files' form depends, so that the user's own stay as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import DataFrame

from underlay.change.adopt import adopt
from underlay.change.settings import write_options
from underlay.change.staged import Staged, staging_for
from underlay.index.root import Definition
from underlay.parquet.write import CodecName, WriteOptions
from underlay.parquet.write_nan import float_leaves, leaf_paths
from underlay.schema.arrow import to_arrow, to_arrow_type
from underlay.schema.record import from_record
from underlay.schema.types import Kind
from underlay.spark.gateway import JavaObject, call, call_text, gateway_of, java_plan, java_session
from underlay.spark.native_columns import fits_native, native_columns
from underlay.spark.place import hadoop_folder
from underlay.spark.start import is_local
from underlay.store.take_over import local_root
from underlay.table.opened import Head

_CODECS: dict[CodecName, str] = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4_raw",
    "none": "uncompressed",
}
"""Codecs that every Spark has, by its own names."""
_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
_UNSET = "spark.sql.sources.outputCommitterClass"
_OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "parquet.summary.metadata.level": "NONE",
    "parquet.writer.version": "PARQUET_1_0",
    "parquet.page.write-checksum.enabled": "true",
    "parquet.enable.dictionary": "true",
    "parquet.bloom.filter.enabled": "false",
    "parquet.column.statistics.enabled": "true",
}
"""Whatever the cluster says: task attempts that lost are not moved, and files have what the index lives on."""
_LARGEST_BLOOM_BYTES = 128 << 20
"""As large as parquet-java makes them: the number of values decides."""
_FEWEST_VALUES = 1 << 14
_UNDERESTIMATE = 4
"""Spark takes files for as large as they are on the disk, where they are compressed."""
_TEXT_BITS = 256
"""What a text takes in memory, when nothing is known of it."""


def can_write_natively(frame: DataFrame, head: Head) -> bool:
    """Whether Spark itself can write the rows of a frame, which fit the table, as files that the table may own.

    Its tasks must run on this machine: a committer finds nothing of what tasks wrote to disks of others, and says
    nothing of it. Object stores have no renames.
    """
    definition = head.root.definition
    return (
        hasattr(frame, "_jdf")
        and is_local(frame.sparkSession.sparkContext.master or "")
        and local_root(head.revision.store.url) is not None
        and write_options(definition).codec in _CODECS
        and fits_native(frame.schema, definition)
    )


def write_natively(frame: DataFrame, head: Head, job: str) -> Staged:
    """Have Spark write the rows for a job, and stage the files.

    Raises Spark's error when a task fails, and what `adopt` raises. Then only files that no version names are left.
    """
    store, definition = head.revision.store, head.root.definition
    root, folder = local_root(store.url), head.revision.keys.staging(job)
    if root is None:
        raise AssertionError(f"not a local store: {store.url}")
    try:
        _run(native_columns(frame, definition), definition, hadoop_folder(store.url, folder))
        return adopt(staging_for(head), store, root, _files_in(root / folder))
    finally:
        shutil.rmtree(root / folder, ignore_errors=True)  # what is left of it is named by nobody


def _run(frame: DataFrame, definition: Definition, folder: str) -> None:
    spark = frame.sparkSession
    session = call(java_session(spark), "cloneSession")
    settings = call(call(session, "sessionState"), "conf")
    for name, value in _SETTINGS.items():
        call(settings, "setConfString", name, value)
    call(settings, "unsetConf", _UNSET)
    execution = java_plan(frame)
    plan = call(execution, "commandExecuted")
    rows = gateway_of(spark).static("org.apache.spark.sql.classic.Dataset", "ofRows", session, plan)
    writer = call(call(rows, "write"), "options", native_options(definition, _guess_values(execution, frame)))
    call(writer, "parquet", folder)


def native_options(definition: Definition, values: int) -> dict[str, str]:
    """How Spark's writer is told to write files of a table; `values` is about how many one file will have."""
    options = write_options(definition)
    schema = to_arrow(from_record(definition.schema))
    paths = leaf_paths(schema)
    rows = min(options.block_rows, max(1, options.block_bytes // _row_bytes(definition)))
    plain = {paths[index] for index in float_leaves(schema)} | options.bloom.keys()
    return {
        **_OPTIONS,
        "compression": _CODECS[options.codec],
        "maxRecordsPerFile": str(rows * options.file_blocks),
        "parquet.block.size": str(options.block_bytes),
        "parquet.block.row.count.limit": str(rows),
        **({} if options.level is None else {f"parquet.compression.codec.{options.codec}.level": str(options.level)}),
        **{f"parquet.enable.dictionary#{path}": "false" for path in plain},
        **_bloom_options(options, min(rows, max(_FEWEST_VALUES, values))),
    }


def _bloom_options(options: WriteOptions, values: int) -> dict[str, str]:
    found = {"parquet.bloom.filter.max.bytes": str(_LARGEST_BLOOM_BYTES)}
    for path, probability in options.bloom.items():
        found[f"parquet.bloom.filter.enabled#{path}"] = "true"
        found[f"parquet.bloom.filter.expected.ndv#{path}"] = str(values)
        found[f"parquet.bloom.filter.fpp#{path}"] = str(probability)
    return found


def _guess_values(execution: JavaObject, frame: DataFrame) -> int:
    """About how many rows the file of one task has, by what Spark guesses; for the size of bloom filters only."""
    size = int(call_text(call(call(execution, "optimizedPlan"), "stats"), "sizeInBytes"))
    row = int(call_text(call(call(execution, "analyzed"), "schema"), "defaultSize"))
    return _UNDERESTIMATE * size // max(1, row) // frame.sparkSession.sparkContext.defaultParallelism


def _row_bytes(definition: Definition) -> int:
    """About what a row takes in memory; lists are taken to have one element."""
    types = [leaf.type for leaf in from_record(definition.schema).leaves]
    bits = [_TEXT_BITS if one.kind in (Kind.STRING, Kind.BINARY) else to_arrow_type(one).bit_width for one in types]
    return -(-sum(bits) // 8)


def _files_in(folder: Path) -> list[Path]:
    """What the committer left: names that begin otherwise are its own, or checksums."""
    return sorted(path for path in folder.glob("*.parquet") if not path.name.startswith((".", "_")))
