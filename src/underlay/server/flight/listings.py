"""What Flight SQL says of the server and its tables, as the rows that its specification asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa

from underlay import __version__
from underlay.api.limited.limited_lake import LimitedLake
from underlay.index.catalog import split_name
from underlay.schema.arrow_aliases import AnyField
from underlay.server.flight.commands import GetListing, GetSqlInfo

TABLE = "TABLE"
_TEXT = pa.string()


def _required(name: str, type_: pa.DataType) -> AnyField:
    return pa.field(name, type_, nullable=False)


def _text(name: str) -> AnyField:
    return pa.field(name, _TEXT)


_KEYS = pa.schema(
    [
        _text("pk_catalog_name"),
        _text("pk_db_schema_name"),
        _required("pk_table_name", _TEXT),
        _required("pk_column_name", _TEXT),
        _text("fk_catalog_name"),
        _text("fk_db_schema_name"),
        _required("fk_table_name", _TEXT),
        _required("fk_column_name", _TEXT),
        _required("key_sequence", pa.int32()),
        _text("fk_key_name"),
        _text("pk_key_name"),
        _required("update_rule", pa.uint8()),
        _required("delete_rule", pa.uint8()),
    ]
)
_TYPE_INFO = pa.schema(
    [
        _required("type_name", _TEXT),
        _required("data_type", pa.int32()),
        pa.field("column_size", pa.int32()),
        _text("literal_prefix"),
        _text("literal_suffix"),
        pa.field("create_params", pa.list_(_required("item", _TEXT))),
        _required("nullable", pa.int32()),
        _required("case_sensitive", pa.bool_()),
        _required("searchable", pa.int32()),
        pa.field("unsigned_attribute", pa.bool_()),
        _required("fixed_prec_scale", pa.bool_()),
        pa.field("auto_increment", pa.bool_()),
        _text("local_type_name"),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        _required("sql_data_type", pa.int32()),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
_SCHEMAS = {
    "Catalogs": pa.schema([_required("catalog_name", _TEXT)]),
    "DbSchemas": pa.schema([_text("catalog_name"), _required("db_schema_name", _TEXT)]),
    "Tables": pa.schema(
        [
            _text("catalog_name"),
            _text("db_schema_name"),
            _required("table_name", _TEXT),
            _required("table_type", _TEXT),
        ]
    ),
    "TableTypes": pa.schema([_required("table_type", _TEXT)]),
    "PrimaryKeys": pa.schema(
        [
            _text("catalog_name"),
            _text("db_schema_name"),
            _required("table_name", _TEXT),
            _required("column_name", _TEXT),
            _required("key_sequence", pa.int32()),
            _text("key_name"),
        ]
    ),
    "ExportedKeys": _KEYS,
    "ImportedKeys": _KEYS,
    "CrossReference": _KEYS,
    "XdbcTypeInfo": _TYPE_INFO,
}
_VALUES: list[AnyField] = [
    pa.field("string_value", _TEXT),
    pa.field("bool_value", pa.bool_()),
    pa.field("bigint_value", pa.int64()),
    pa.field("int32_bitmask", pa.int32()),
    pa.field("string_list", pa.list_(_TEXT)),
    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
]
INFO_SCHEMA = pa.schema([_required("info_name", pa.uint32()), _required("value", pa.dense_union(_VALUES))])
_STRING, _BOOL, _BIGINT, _BITMASK = range(4)
_ARROW = pa.__version__


def listing_schema(asked: GetListing) -> pa.Schema:
    """The columns of a listing."""
    found = _SCHEMAS[asked.what]
    return found.append(_required("table_schema", pa.binary())) if asked.has_columns else found


def listing_rows(asked: GetListing, lake: LimitedLake) -> pa.Table:
    """The rows of a listing, for a caller who sees this much of the lake. Datasets are schemas; the one catalog has an
    empty name, since tables have two-part names."""
    rows = _ROWS[asked.what](asked, lake) if asked.what in _ROWS and asked.catalog in (None, "") else []
    schema = listing_schema(asked)
    names = schema.names
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)


Rows = Sequence[Sequence[object]]


def _catalogs(asked: GetListing, lake: LimitedLake) -> Rows:
    return [("",)]


def _datasets(asked: GetListing, lake: LimitedLake) -> Rows:
    matches = _like(asked.schema)
    return [("", one) for one in sorted({split_name(name)[0] for name in lake.names}) if matches(one)]


def _tables(asked: GetListing, lake: LimitedLake) -> Rows:
    if asked.types and TABLE not in asked.types:
        return []
    in_schema, is_named = _like(asked.schema), _like(asked.table)
    found: list[tuple[object, ...]] = []
    for name in sorted(lake.names):
        dataset, table = split_name(name)
        if in_schema(dataset) and is_named(table):
            columns = (lake.table(name).schema.serialize().to_pybytes(),) if asked.has_columns else ()
            found.append(("", dataset, table, TABLE, *columns))
    return found


def _types(asked: GetListing, lake: LimitedLake) -> Rows:
    return [(TABLE,)]


def _primary_keys(asked: GetListing, lake: LimitedLake) -> Rows:
    found: list[tuple[object, ...]] = []
    for name in sorted(lake.names):
        dataset, table = split_name(name)
        if table == asked.table and asked.schema in (None, dataset):
            opened = lake.table(name)
            leaves = opened.snapshot().schema.leaf_by_id
            key = [leaves[ident].path for ident in opened.definition.key if ident in leaves]
            found += [("", dataset, table, ".".join(path), at, None) for at, path in enumerate(key, 1)]
    return found


_ROWS: dict[str, Callable[[GetListing, LimitedLake], Rows]] = {
    "Catalogs": _catalogs,
    "DbSchemas": _datasets,
    "Tables": _tables,
    "TableTypes": _types,
    "PrimaryKeys": _primary_keys,
}


def _like(pattern: str | None) -> Callable[[str], bool]:
    """SQL's pattern, in which `%` stands for any text and `_` for one character; a backslash escapes them."""
    if pattern is None:
        return lambda _: True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    plain = {"%": ".*", "_": "."}
    wanted = re.compile("".join(plain.get(one) or re.escape(one[-1]) for one in parts), re.DOTALL)
    return lambda name: wanted.fullmatch(name) is not None


def info_rows(asked: GetSqlInfo, *, is_writable: bool) -> pa.Table:
    """Facts about the server, by the numbers of SqlInfo."""
    facts: dict[int, tuple[int, object]] = {
        0: (_STRING, "Underlay"),
        1: (_STRING, __version__),
        2: (_STRING, _ARROW),
        3: (_BOOL, not is_writable),
        4: (_BOOL, True),  # SQL
        5: (_BOOL, False),  # Substrait
        8: (_BITMASK, 0),  # no transactions
        9: (_BOOL, True),  # cancel
        10: (_BOOL, False),  # bulk ingestion
        500: (_BOOL, False),  # DDL of catalogs
        501: (_BOOL, False),  # of schemas
        502: (_BOOL, is_writable),  # of tables
        503: (_BITMASK, 3),  # names are case-insensitive
        504: (_STRING, '"'),
        508: (_STRING, "TABLE"),
        509: (_BITMASK, 3),
        517: (_BOOL, True),  # column aliases
        566: (_BOOL, False),  # the isolation of transactions
    }
    chosen = {number: facts[number] for number in asked.numbers or facts if number in facts}
    types = pa.array([kind for kind, _ in chosen.values()], pa.int8())
    children: list[list[object]] = [[] for _ in _VALUES]
    offsets: list[int] = []
    for kind, value in chosen.values():
        offsets.append(len(children[kind]))
        children[kind].append(value)
    arrays = [pa.array(values, field.type) for values, field in zip(children, _VALUES, strict=True)]
    union = pa.UnionArray.from_dense(types, pa.array(offsets, pa.int32()), arrays, [one.name for one in _VALUES])
    return pa.Table.from_arrays([pa.array(list(chosen), pa.uint32()), union], schema=INFO_SCHEMA)
