"""How a table's files are written, from its properties.

| property | meaning | default |
|---|---|---|
| `block_rows` | maximum rows of a block | 1048576 |
| `block_bytes` | maximum bytes of a block in memory | 134217728 |
| `file_bytes` | bytes after which a file is finished | 536870912 |
| `codec` | zstd, snappy, lz4, gzip, brotli or none | zstd; snappy for a file of few rows |
| `bloom` | columns with bloom filters, separated by commas; empty for none | the key, except bytes |
| `care.keep_for` | age at which a version may expire | 7d |
| `care.keep_versions` | newest versions to keep, whatever their age | 10 |
| `care.reader_age` | how long a version stays readable after a newer one replaced it | 1h |
| `care.compact_after_files` | number of small files that triggers an automatic compaction | none |
| `care.target_file_bytes` | target size in bytes of compacted files | 134217728, or `file_bytes` if smaller |
| `export` | kinds of exports that are written after each commit: `iceberg`, `delta` | none |
| `export.without` | columns that exports leave out, separated by commas | none |
| `export.base_url` | what other engines call the lake's folder | the lake's URL |
| `export.format` | Iceberg's format, 2 or 3 | 2 unless something needs 3 |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from underlay.errors import InvalidRequest
from underlay.index.root import Definition
from underlay.interop.exported.settings import EXPORT_PROPERTIES, kinds_of, settings_of
from underlay.parquet.write.writer import CodecName, SortedBy, WriteOptions
from underlay.schema.names import find_leaf, parse_path
from underlay.schema.record import from_record
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import TypeKind
from underlay.table.care_settings import CARE_PROPERTIES, read_settings

NUMBERS = ("block_rows", "block_bytes", "file_bytes")
CODEC = "codec"
BLOOM = "bloom"
CODECS: tuple[CodecName, ...] = get_args(CodecName)
KNOWN = (*NUMBERS, CODEC, BLOOM, *CARE_PROPERTIES, *EXPORT_PROPERTIES)
FALSE_POSITIVES = 0.01
_UNHASHED = (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64, TypeKind.BOOLEAN)
_MISREAD = (TypeKind.BINARY, TypeKind.FIXED)
"""DuckDB 1.5 would miss rows when it reads the files by itself: it finds nothing through a filter on a BLOB, even in
its own files. So bytes get one only if the property asks for it."""


def check_settings(properties: Mapping[str, str], schema: TableSchema) -> None:
    """Refuse an unknown property, or an invalid value of one."""
    read_settings(properties)
    kinds_of(properties)
    settings_of(properties).left_out(schema)
    for name, value in properties.items():
        if name not in KNOWN:
            raise InvalidRequest("unknown property", found=name, hint=f"Properties: {', '.join(KNOWN)}.")
        if name in NUMBERS and not (value.isascii() and value.isdigit() and int(value) > 0):
            raise InvalidRequest(f"{name} must be an integer above 0", found=value)
        if name == CODEC and value not in CODECS:
            raise InvalidRequest("unknown codec", found=value, expected=", ".join(CODECS))
        if name == BLOOM:
            for leaf in bloom_leaves(value, schema):
                if leaf.type.kind in _UNHASHED or leaf.is_repeated:
                    raise InvalidRequest(
                        "this column cannot have a bloom filter",
                        found=".".join(leaf.path),
                        hint="Floats have two zeros, booleans share bytes, and lists are not looked up.",
                    )


def write_options(definition: Definition) -> WriteOptions:
    """The options for writing files of this table."""
    schema = from_record(definition.schema)
    properties = definition.properties
    if BLOOM in properties:
        hashed = bloom_leaves(properties[BLOOM], schema)
    else:
        known = [leaf for field in definition.key if (leaf := schema.leaf_by_id.get(field)) is not None]
        hashed = [leaf for leaf in known if leaf.type.kind not in _MISREAD]
    positions = {leaf.id: position for position, leaf in enumerate(schema.leaves)}
    numbers = {name: int(properties[name]) for name in NUMBERS if name in properties}
    codec: CodecName = next((name for name in CODECS if name == properties.get(CODEC)), "zstd")
    return WriteOptions(
        **numbers,
        codec=codec,
        level=1 if codec == "zstd" else None,
        small_codec=None if CODEC in properties else "snappy",
        bloom={
            ".".join(leaf.path): FALSE_POSITIVES
            for leaf in hashed
            if leaf.type.kind not in _UNHASHED and not leaf.is_repeated
        },
        sorted_by=tuple(
            SortedBy(positions[sort.field], sort.descending, not sort.nulls_last)
            for sort in definition.sort_by
            if sort.field in positions
        ),
    )


def bloom_leaves(text: str, schema: TableSchema) -> list[LeafColumn]:
    """The columns that the property `bloom` names. Raises UnknownColumn, InvalidRequest."""
    return [find_leaf(schema, parse_path(name)) for name in text.split(",") if name.strip()]
