"""Synthesises a Parquet footer from a sidecar, so that byte ranges decode without the file's own footer.

A sidecar has neither logical types nor paths. They come from the given schema; without one, from QuestDB's type codes,
and a column that those say nothing about is read as its physical type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from underlay.parquet.footer.footer import KeyValue
from underlay.parquet.thrift.encode import I8, I32, I64, Bool, List, Struct, ThriftBinary, Value, encode
from underlay.parquet.thrift.tree import ThriftKind
from underlay.pm.format.layout import Encoding
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.types import NANOSECONDS, Tag, decimal_parameters, tag_of
from underlay.pm.format.values import SidecarColumn
from underlay.pm.read.file_schema import ARROW_SCHEMA_KEY, FileSchema, elements_of
from underlay.values.physical import PhysicalType, Repetition

_CREATED_BY = b"underlay"
_LEVELS_ENCODING = 3
_ENCODING_NUMBERS = {
    Encoding.PLAIN: 0,
    Encoding.DICTIONARY: 8,
    Encoding.DELTA_BINARY_PACKED: 5,
    Encoding.DELTA_LENGTH_BYTE_ARRAY: 6,
    Encoding.DELTA_BYTE_ARRAY: 7,
    Encoding.BYTE_STREAM_SPLIT: 9,
}


StatisticsOf = Callable[[int, int], Struct | None]
"""The Thrift statistics of the chunk of a row group and a column."""


def to_footer(
    sidecar: Sidecar, schema: FileSchema | pa.Schema | None = None, *, statistics: StatisticsOf | None = None
) -> bytes:
    """The Thrift bytes of a footer that describes the sidecar's chunks.

    Raises SchemaMismatch when the schema's leaves are not the sidecar's columns. Without `statistics` the footer has
    none: a reader that uses it must not prune by it. With them it says that each bound follows its type's order.
    """
    if isinstance(schema, pa.Schema):
        schema = FileSchema.of_arrow(schema)
    if schema is None:
        elements, paths = _elements_by_type(sidecar.columns)
    else:
        elements, paths = elements_of(schema, sidecar.columns)
    key_values = [KeyValue(ARROW_SCHEMA_KEY, schema.arrow)] if schema and schema.arrow else []
    fields: dict[int, Value] = {
        1: I32(1),
        2: elements,
        3: I64(int(sidecar.num_rows.sum())),
        4: List(ThriftKind.STRUCT, tuple(_row_groups(sidecar, paths, statistics))),
    }
    if key_values:
        pairs = (Struct({1: ThriftBinary(pair.key), 2: ThriftBinary(pair.value or b"")}) for pair in key_values)
        fields[5] = List(ThriftKind.STRUCT, tuple(pairs))
    fields[6] = ThriftBinary(_CREATED_BY)
    if statistics is not None:
        fields[7] = List(ThriftKind.STRUCT, (Struct({1: Struct({})}),) * sidecar.column_count)
    return encode(Struct(fields))


def _row_groups(sidecar: Sidecar, paths: list[tuple[str, ...]], statistics: StatisticsOf | None) -> Iterable[Struct]:
    encoded_paths = [List(ThriftKind.BINARY, tuple(ThriftBinary(name.encode()) for name in path)) for path in paths]
    types = [column.physical_type for column in sidecar.columns]
    for block, (num_rows, chunks) in enumerate(zip(sidecar.num_rows.tolist(), sidecar.chunks, strict=True)):
        columns = []
        for column, (codec, encodings, _, _, _, num_values, begin, size, *_) in enumerate(chunks.tolist()):
            meta: dict[int, Value] = {
                1: I32(types[column]),
                2: List(ThriftKind.I32, tuple(I32(number) for number in _encoding_numbers(encodings))),
                3: encoded_paths[column],
                4: I32(codec),
                5: I64(num_values),
                6: I64(size),
                7: I64(size),
                9: I64(begin),
            }
            known = None if statistics is None else statistics(block, column)
            if known is not None:
                meta[12] = known
            columns.append(Struct({2: I64(begin), 3: Struct(meta)}))
        total = int(chunks["size"].sum())
        yield Struct({1: List(ThriftKind.STRUCT, tuple(columns)), 2: I64(total), 3: I64(num_rows)})


def _encoding_numbers(bits: int) -> list[int]:
    return [_LEVELS_ENCODING, *(number for bit, number in _ENCODING_NUMBERS.items() if bits & bit)]


def _elements_by_type(columns: tuple[SidecarColumn, ...]) -> tuple[Value, list[tuple[str, ...]]]:
    """Elements that QuestDB's types and the levels imply; each leaf is a top-level column of its own."""
    elements: list[Struct] = [Struct({4: ThriftBinary(b"schema"), 5: I32(len(columns))})]
    paths = []
    for column in columns:
        groups = _groups(column)
        path = [column.name]
        for name, repetition, is_list in groups:
            group: dict[int, Value] = {3: I32(repetition), 4: ThriftBinary(name.encode()), 5: I32(1)}
            if is_list:
                group |= {6: I32(3), 10: Struct({3: Struct({})})}
            elements.append(Struct(group))
        if groups:
            path = [column.name, *(name for name, _, _ in groups[1:]), "element"]
        elements.append(_leaf_element(column, path[-1], groups))
        paths.append(tuple(path))
    return List(ThriftKind.STRUCT, tuple(elements)), paths


def _groups(column: SidecarColumn) -> list[tuple[str, Repetition, bool]]:
    """(name, repetition, is a list) of the groups around a nested leaf, with the levels that it is stored with.

    Lists are Parquet's three-level ones: an outer group, a repeated `list`, an `element`. What is optional beyond the
    outer group stands below all lists, as in QuestDB's own arrays. In other columns it may stand elsewhere; so each
    value still decodes, but a null or an empty list may become a list of a null.
    """
    rep = column.max_rep_level
    optional = column.max_def_level - rep
    if rep == 0 and optional <= 1:
        return []
    is_questdb_array = tag_of(column.type) is Tag.ARRAY and optional == 2
    is_optional = optional > 0 and (is_questdb_array or column.repetition is Repetition.OPTIONAL)
    groups = [(column.name, Repetition.OPTIONAL if is_optional else Repetition.REQUIRED, rep > 0)]
    for dimension in range(rep):
        if dimension > 0:
            groups.append(("element", Repetition.REQUIRED, True))
        groups.append(("list", Repetition.REPEATED, False))
    return groups + [("element", Repetition.OPTIONAL, False)] * max(optional - is_optional - 1, 0)


def _leaf_element(column: SidecarColumn, name: str, groups: list[tuple[str, Repetition, bool]]) -> Struct:
    levels_above = sum(repetition is not Repetition.REQUIRED for _, repetition, _ in groups)
    fields: dict[int, Value] = {1: I32(column.physical_type)}
    if column.physical_type == PhysicalType.FIXED_LEN_BYTE_ARRAY:
        fields[2] = I32(column.fixed_byte_length)
    fields[3] = I32(Repetition.OPTIONAL if column.max_def_level > levels_above else Repetition.REQUIRED)
    fields[4] = ThriftBinary(name.encode())
    meaning = _meaning(column)
    if column.id >= 0 and not groups:
        meaning[9] = I32(column.id)
    return Struct(fields | dict(sorted(meaning.items())))


def _integer(bits: int, is_signed: bool) -> dict[int, Value]:
    converted = {8: 0, 16: 1, 32: 2, 64: 3}[bits] + (15 if is_signed else 11)
    return {6: I32(converted), 10: Struct({10: Struct({1: I8(bits), 2: Bool(is_signed)})})}


def _instant(unit: int, converted: int | None) -> dict[int, Value]:
    logical = Struct({8: Struct({1: Bool(True), 2: Struct({unit: Struct({})})})})
    return {10: logical} if converted is None else {6: I32(converted), 10: logical}


_MILLIS, _MICROS, _NANOS = 1, 2, 3
_TEXT: dict[int, Value] = {6: I32(0), 10: Struct({1: Struct({})})}
_DATE: dict[int, Value] = {6: I32(6), 10: Struct({6: Struct({})})}
_INTEGERS = {
    Tag.BYTE: (8, True),
    Tag.SHORT: (16, True),
    Tag.CHAR: (16, False),
    Tag.IPV4: (32, False),
    Tag.GEOBYTE: (8, True),
    Tag.GEOSHORT: (16, True),
    Tag.GEOINT: (32, True),
    Tag.GEOLONG: (64, True),
}


def _meaning(column: SidecarColumn) -> dict[int, Value]:
    """Converted and logical type that QuestDB's type code stands for on this physical type; empty for none."""
    tag, physical = tag_of(column.type), column.physical_type
    if tag in _INTEGERS and physical == (PhysicalType.INT64 if tag is Tag.GEOLONG else PhysicalType.INT32):
        return _integer(*_INTEGERS[tag])
    if tag in (Tag.STRING, Tag.SYMBOL, Tag.VARCHAR) and physical == PhysicalType.BYTE_ARRAY:
        return dict(_TEXT)
    if tag is Tag.DATE and physical == PhysicalType.INT32:
        return dict(_DATE)
    if tag is Tag.DATE and physical == PhysicalType.INT64:
        return _instant(_MILLIS, 9)
    if tag is Tag.TIMESTAMP and physical == PhysicalType.INT64:
        return _instant(_NANOS, None) if column.type & NANOSECONDS else _instant(_MICROS, 10)
    if tag is Tag.UUID and physical == PhysicalType.FIXED_LEN_BYTE_ARRAY:
        return {10: Struct({14: Struct({})})}
    if tag is not None and Tag.DECIMAL8 <= tag <= Tag.DECIMAL256:
        precision, scale = decimal_parameters(column.type)
        logical = Struct({5: Struct({1: I32(scale), 2: I32(precision)})})
        return {6: I32(5), 7: I32(scale), 8: I32(precision), 10: logical}
    return {}


_LOSSY_TAGS = (None, Tag.INT, Tag.LONG, Tag.BINARY, Tag.LONG128, Tag.LONG256)


def physical_columns(sidecar: Sidecar) -> list[str]:
    """Names of columns that may have had a logical type or a structure that the sidecar does not record."""
    if sidecar.sections.seq_txn is not None:  # QuestDB's own file: its types say it all
        return []
    return [
        column.name
        for column in sidecar.columns
        if tag_of(column.type) in _LOSSY_TAGS
        or (tag_of(column.type) is not Tag.ARRAY and (column.max_rep_level > 0 or column.max_def_level > 1))
    ]
