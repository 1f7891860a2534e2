"""Runs CREATE TABLE, CREATE OR REPLACE TABLE, each also AS SELECT, and DROP TABLE."""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from underlay.api.lake import Lake
from underlay.change.define.define import define
from underlay.errors import InvalidRequest, TableExists, TableNotFound, Unsupported
from underlay.schema.record import from_record
from underlay.spark.catalog.session_catalog import Names
from underlay.spark.change.write_frame import write_frame
from underlay.spark.jvm.gateway import JavaObject, call, call_text, frame_of_plan
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.sql import answers
from underlay.spark.sql.nodes import StatementScope, kind_of, named_relation, option_of, type_of
from underlay.spark.sql.targets import StatementTarget, key_of_parts
from underlay.spark.tasks.collect import collect_small
from underlay.spark.types.arrow_types import arrow_schema
from underlay.spark.types.from_spark import SESSION_ZONE, table_rows

CREATES = frozenset({"CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"})
PROVIDER = "underlay"
_TRANSFORMS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_CALL = re.compile(r"(\w+)\((.*)\)")


def create(scope: StatementScope, names: Names, node: JavaObject) -> JavaObject | None:
    """Run a statement that creates a table with USING underlay, or in a dataset of a lake; None for others."""
    parts = named_relation(call(node, "name")).parts or []
    key = key_of_parts(scope.spark, parts)
    provider = option_of(call(call(node, "tableSpec"), "provider"))
    if key is None or (provider is not None and str(provider).lower() != PROVIDER):
        return None
    lake = find_lake_of_dataset(names, key[0], is_new=provider is not None)
    if lake is None:
        if provider is None:
            return None
        raise InvalidRequest(
            "cannot tell in which lake to create the table",
            found=".".join(key),
            hint="Call lake.create_table, or use a session of one lake.",
        )
    make(scope, lake, ".".join(parts[-2:] if len(parts) > 1 else key), node)
    return answers.nothing(scope.spark)


def find_lake_of_dataset(names: Names, dataset: str, *, is_new: bool) -> Lake | None:
    """The only lake with this dataset, or, if the dataset may be new, the only lake."""
    known = {entry.lake_url for entry in names.entries() if entry.key[0] == dataset}
    known = known or (set(names.lakes) if is_new else set())
    return names.lakes[known.pop()] if len(known) == 1 else None


def make(scope: StatementScope, lake: Lake, name: str, node: JavaObject) -> None:
    """Run one of `CREATES`. Raises TableExists, TableNotFound, and what the lake does not allow."""
    if option_of(call(call(node, "tableSpec"), "location")) is not None:
        raise Unsupported("a table is always stored in its lake", found="LOCATION", hint="Leave it out.")
    if not _is_left_alone(lake, name, node):
        _make(scope, lake, name, node)


def _is_left_alone(lake: Lake, name: str, node: JavaObject) -> bool:
    """Whether the table exists and must be left as it is."""
    return kind_of(node).startswith("Create") and bool(call(node, "ignoreIfExists")) and name in lake


def _make(scope: StatementScope, lake: Lake, name: str, node: JavaObject) -> None:
    kind, spec = kind_of(node), call(node, "tableSpec")
    frame = frame_of_plan(call(node, "query"), scope.spark) if kind.endswith("AsSelect") else None
    columns = _columns(node) if frame is None else arrow_schema(frame.schema, is_loose=True)
    partition_by, sort_by = _layout(node)
    replaces = None
    if kind.startswith("Replace"):
        try:
            replaces = lake.table(name).version
        except TableNotFound:
            if not call(node, "orCreate"):
                raise
    elif name in lake:
        raise TableExists("the table already exists", place=name, hint="CREATE OR REPLACE TABLE takes its place.")
    comment = option_of(call(spec, "comment"))
    rows = None if frame is None else _rows(scope.spark, frame, columns, is_whole=replaces is not None)
    lake.create_table(
        name,
        columns,
        data=rows,
        partition_by=partition_by,
        sort_by=sort_by,
        comment=None if comment is None else str(comment),
        properties=_properties(spec),
        replaces=replaces,
    )
    if frame is not None and rows is None:
        _fill(lake, name, frame)


def _rows(spark: SparkSession, frame: DataFrame, columns: pa.Schema, *, is_whole: bool) -> pa.Table | None:
    """The rows of the query with which the table is created; None when they are many and no table is replaced: then
    tasks write them.
    """
    found = frame.toArrow() if is_whole else collect_small(frame)
    if found is None:
        return None
    definition = define(columns, key=(), sort_by=(), partition_by=(), comment=None, properties=None)
    return table_rows(found, from_record(definition.schema), session_zone=spark.conf.get(SESSION_ZONE))


def _fill(lake: Lake, name: str, frame: DataFrame) -> None:
    """Add the rows of a query to a new table. If that fails, drop the table."""
    try:
        write_frame(frame, name, lake)
    except BaseException:
        lake.drop_table(name)
        raise


def _columns(node: JavaObject) -> pa.Schema:
    fields = []
    for column in items_of(call(node, "columns")):
        for what in ("defaultValue", "generationExpression", "identityColumnSpec"):
            if option_of(call(column, what)) is not None:
                raise Unsupported(
                    "CREATE TABLE sets no default or generated values",
                    place=call_text(column, "name"),
                    hint="Add the column with ALTER TABLE … ADD COLUMN … DEFAULT value.",
                )
        kind = type_of(call(column, "dataType"))
        comment = option_of(call(column, "comment"))
        (field,) = arrow_schema(StructType().add(call_text(column, "name"), kind), is_loose=True)
        field = field.with_nullable(bool(call(column, "nullable")))
        fields.append(field if comment is None else field.with_metadata({"comment": str(comment)}))
    return pa.schema(fields)


def _layout(node: JavaObject) -> tuple[list[str], list[str]]:
    """The table's partitions and sort order."""
    partition_by: list[str] = []
    sort_by: list[str] = []
    for one in items_of(call(node, "partitioning")):
        text = call_text(one, "toString")
        found = _CALL.fullmatch(text)
        if found is not None and found[1] == "cluster_by":
            sort_by += [name.strip() for name in found[2].split(",")]
        elif found is not None:
            partition_by.append(f"{_TRANSFORMS.get(found[1], found[1])}({found[2]})")
        else:
            partition_by.append(text)
    return partition_by, sort_by


def _properties(spec: JavaObject) -> dict[str, str]:
    found = call(spec, "properties")
    return {str(name): str(call(found, "apply", name)) for name in items_of(call(call(found, "keys"), "toSeq"))}


def drop(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run DROP TABLE."""
    target.lake.drop_table(target.table)
    return answers.nothing(scope.spark)
