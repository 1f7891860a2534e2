"""Settings with which Spark's Parquet writer writes files that a table may own, whatever the session's settings."""

from __future__ import annotations

from collections.abc import Mapping

from underlay.change.files.settings import write_options
from underlay.index.root import Definition
from underlay.parquet.write.nan_statistics import float_leaves, leaf_paths
from underlay.parquet.write.writer import CodecName
from underlay.schema.convert.arrow import to_arrow, to_arrow_type
from underlay.schema.record import from_record
from underlay.schema.types import TypeKind
from underlay.spark.jvm.gateway import JavaObject, call, call_text

_CODECS: dict[CodecName, str] = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4_raw",
    "none": "uncompressed",
}
"""Codecs that every Spark has, with Spark's names."""
SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
}
"""Settings of the writing session."""
UNSET = "spark.sql.sources.outputCommitterClass"
"""A setting that the writing session must not have."""
_OPTIONS = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.output.basename": "part",
    "parquet.summary.metadata.level": "NONE",
    "parquet.writer.version": "PARQUET_1_0",
    "parquet.page.write-checksum.enabled": "true",
    "parquet.bloom.filter.adaptive.enabled": "false",
}
"""Files of losing task attempts are not moved, and files have what the index needs."""
_LARGEST_BLOOM_BYTES = 128 << 20
"""The largest that parquet-java creates, so that the number of values decides."""
_FEWEST_VALUES = 1 << 14
_UNDERESTIMATE = 4
"""Spark estimates files by their size on disk, where they are compressed."""
_TEXT_BITS = 256
"""The assumed size of a text in memory."""


def has_codec(definition: Definition) -> bool:
    """Whether every Spark supports the table's compression."""
    return write_options(definition).codec in _CODECS


def native_options(definition: Definition, values: int | None) -> dict[str, str]:
    """Options of the write. Tasks make bloom filters if `values` gives about how many values a file has."""
    options = write_options(definition)
    rows = min(options.block_rows, max(1, options.block_bytes // _row_bytes(definition)))
    blooms = {} if values is None else options.bloom
    return {
        **_OPTIONS,
        "compression": _CODECS[options.codec],
        "maxRecordsPerFile": str(rows * options.file_blocks),
        "parquet.block.size": str(options.block_bytes),
        "parquet.block.row.count.limit": str(rows),
        **({} if options.level is None else {f"parquet.compression.codec.{options.codec}.level": str(options.level)}),
        **_column_options(definition, blooms, min(rows, max(_FEWEST_VALUES, values or 0))),
    }


def guess_values(execution: JavaObject, parallelism: int) -> int:
    """About how many rows one task's file has, by Spark's estimate; used only to size bloom filters."""
    size = int(call_text(call(call(execution, "optimizedPlan"), "stats"), "sizeInBytes"))
    row = int(call_text(call(call(execution, "analyzed"), "schema"), "defaultSize"))
    return _UNDERESTIMATE * size // max(1, row) // parallelism


def _column_options(definition: Definition, blooms: Mapping[str, float], values: int) -> dict[str, str]:
    """Settings for each column: column settings made elsewhere would override settings for all columns.

    Floats get neither dictionaries nor filters, in which readers would look up one zero and miss the other. Keys get no
    dictionary: their values are distinct, and parquet-java makes no filter for a chunk that is all dictionary.
    """
    schema = to_arrow(from_record(definition.schema))
    paths = leaf_paths(schema)
    plain = {paths[index] for index in float_leaves(schema)} | write_options(definition).bloom.keys()
    found = {"parquet.bloom.filter.max.bytes": str(_LARGEST_BLOOM_BYTES)}
    for path in paths:
        found[f"parquet.enable.dictionary#{path}"] = _said(path not in plain)
        found[f"parquet.column.statistics.enabled#{path}"] = _said(True)
        found[f"parquet.bloom.filter.enabled#{path}"] = _said(path in blooms)
    for path, probability in blooms.items():
        found[f"parquet.bloom.filter.expected.ndv#{path}"] = str(values)
        found[f"parquet.bloom.filter.fpp#{path}"] = str(probability)
    return found


def _said(is_so: bool) -> str:
    return "true" if is_so else "false"


def _row_bytes(definition: Definition) -> int:
    """About how many bytes a row takes in memory, assuming one element for each list."""
    types = [leaf.type for leaf in from_record(definition.schema).leaves]
    bits = [
        _TEXT_BITS if one.kind in (TypeKind.STRING, TypeKind.BINARY) else to_arrow_type(one).bit_width for one in types
    ]
    return -(-sum(bits) // 8)
