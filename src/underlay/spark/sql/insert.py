"""Runs INSERT INTO, INSERT OVERWRITE, REPLACE WHERE and commands of writers: Spark computes the rows, by its own store
assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from underlay.errors import InvalidRequest, SchemaMismatch, UnknownColumn, Unsupported
from underlay.schema.partitioning.transform import IDENTITY
from underlay.spark.change.expressions import assigned, resolve, resolved_column
from underlay.spark.change.replace import replace_partitions, replace_where
from underlay.spark.change.write_frame import write_frame
from underlay.spark.jvm.gateway import JavaObject, call, call_text, frame_of_plan, gateway_of
from underlay.spark.sql import answers
from underlay.spark.sql.nodes import StatementScope, by_names, kind_of, option_of, texts_of
from underlay.spark.sql.targets import StatementTarget
from underlay.spark.types.spark_types import quoted
from underlay.spark.types.to_spark import source_schema

_MODE = "spark.sql.sources.partitionOverwriteMode"
_POLICY = "spark.sql.storeAssignmentPolicy"
_ALLOWS = {"ANSI": "canANSIStoreAssign", "STRICT": "canUpCast", "LEGACY": "canCast"}
_CAST = "org.apache.spark.sql.catalyst.expressions.Cast"
_TYPES = "org.apache.spark.sql.types.DataType"


def insert(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run INSERT; a row of counts."""
    if call(node, "ifPartitionNotExists"):
        raise Unsupported("INSERT knows no partitions that exist", found="IF NOT EXISTS", hint="Leave it out.")
    partition = _partition(node)
    query = frame_of_plan(scope.plan(call(node, "query")), scope.spark)
    rows = _fitting(query, target, node, partition)
    if not call(node, "overwrite"):
        return answers.inserted(scope.spark, write_frame(rows, target.table, target.lake).row_count)
    condition = _replaced(scope, node)
    fixed = {name: value for name, value in partition.items() if value is not None}
    if condition is not None:
        done = replace_where(scope.spark, target.lake, target.table, rows, condition)
    elif _is_dynamic(scope, target) and len(fixed) < len(partition or {"": None}):
        done = replace_partitions(scope.spark, target.lake, target.table, rows)
    elif fixed:
        equal = [f.col(quoted(name)).eqNullSafe(_constant(target, name, value)) for name, value in fixed.items()]
        done = replace_where(scope.spark, target.lake, target.table, rows, reduce(Column.__and__, equal))
    else:
        count = write_frame(rows, target.table, target.lake, is_overwrite=True).row_count
        return answers.inserted(scope.spark, count)
    return answers.inserted(scope.spark, done.rows_inserted)


def write(scope: StatementScope, node: JavaObject, target: StatementTarget) -> None:
    """Run a writer's AppendData, OverwriteByExpression or OverwritePartitionsDynamic, in which Spark has resolved all
    but the columns of the rows.
    """
    kind, is_by_name = kind_of(node), bool(call(node, "isByName"))
    query = frame_of_plan(call(node, "query"), scope.spark)
    fields = _columns(target)
    chosen = [_find(name, fields) for name in query.columns] if is_by_name else list(fields.names)
    rows = _stored_rows(query, target, chosen, is_by_name=is_by_name)
    found = option_of(call(call(node, "writeOptions"), "get", "token"))
    token = None if found is None else str(found)
    condition = call(node, "deleteExpr") if kind == "OverwriteByExpression" else None
    is_whole = condition is not None and call_text(condition, "toString") == "true"
    by_partition = condition is None or (is_whole and not is_by_name and _is_dynamic(scope, target))
    if kind == "AppendData":
        write_frame(rows, target.table, target.lake, token)
    elif condition is not None and not is_whole:
        gone = resolved_column(gateway_of(scope.spark), by_names(gateway_of(scope.spark), condition))
        replace_where(scope.spark, target.lake, target.table, rows, gone, token=token, are_checked=False)
    elif by_partition and _is_partitioned(target):
        replace_partitions(scope.spark, target.lake, target.table, rows, token=token)
    else:
        write_frame(rows, target.table, target.lake, token, is_overwrite=True)


def _is_dynamic(scope: StatementScope, target: StatementTarget) -> bool:
    """Whether rows that overwrite take the place of those in the same partitions."""
    return str(scope.spark.conf.get(_MODE)).lower() == "dynamic" and _is_partitioned(target)


def _partition(node: JavaObject) -> dict[str, str | None]:
    """The columns of PARTITION (…), with values for those that have one."""
    spec = call(node, "partitionSpec")
    found: dict[str, str | None] = {}
    for name in texts_of(call(call(spec, "keys"), "toSeq")):
        value = option_of(call(spec, "apply", name))
        found[name] = None if value is None else str(value)
    return found


def _replaced(scope: StatementScope, node: JavaObject) -> Column | None:
    """The condition of REPLACE WHERE."""
    found = option_of(call(node, "replaceCriteriaOpt"))
    if found is None:
        return None
    if kind_of(found) != "InsertReplaceWhere":
        raise Unsupported("INSERT replaces rows by REPLACE WHERE only", found=call_text(found, "toString"))
    return scope.column(call(found, "cond"))


def _is_partitioned(target: StatementTarget) -> bool:
    return bool(target.lake.table(target.table).read_head().root.definition.partition_by)


def _columns(target: StatementTarget) -> StructType:
    schema = target.lake.table(target.table).snapshot().schema
    return source_schema(schema, schema.names)


def _find(name: str, fields: StructType) -> str:
    found = [known for known in fields.names if known.lower() == name.lower()]
    if len(found) != 1:
        raise UnknownColumn("the table has no such column", found=name, expected=", ".join(fields.names))
    return found[0]


def _constant(target: StatementTarget, name: str, value: str | None) -> Column:
    return f.lit(value).cast(_columns(target)[_find(name, _columns(target))].dataType)


def _fitting(
    query: DataFrame, target: StatementTarget, node: JavaObject, partition: dict[str, str | None]
) -> DataFrame:
    """The rows with the table's names and types; omitted columns get their defaults."""
    fields = _columns(target)
    fixed = {_find(name, fields): value for name, value in partition.items()}
    _check_partition(target, list(fixed))
    chosen = [_find(name, fields) for name in texts_of(call(node, "userSpecifiedCols"))]
    if call(node, "byName"):
        chosen = [_find(name, fields) for name in query.columns]
    elif not chosen:
        dynamic = [name for name, value in fixed.items() if value is None]
        chosen = [name for name in fields.names if name not in fixed] + dynamic
    chosen = [name for name in chosen if fixed.get(name) is None]
    constants = [
        f.lit(value).cast(fields[name].dataType).alias(name) for name, value in fixed.items() if value is not None
    ]
    return _stored_rows(query, target, chosen, is_by_name=bool(call(node, "byName")), constants=constants)


def _stored_rows(
    query: DataFrame,
    target: StatementTarget,
    chosen: Sequence[str],
    *,
    is_by_name: bool,
    constants: Sequence[Column] = (),
) -> DataFrame:
    """The rows of a query, whose columns are these of the table in this order, as Spark stores them."""
    fields = _columns(target)
    if len(set(chosen)) < len(chosen):
        raise InvalidRequest("a column is named twice", found=", ".join(chosen))
    if len(chosen) != len(query.columns):
        raise SchemaMismatch(
            "the query has the wrong number of columns",
            place=target.table,
            expected=", ".join(chosen),
            found=", ".join(query.columns),
        )
    if is_by_name:
        for name, field in zip(chosen, query.schema.fields, strict=True):
            _check_inner_names(name, field.dataType, fields[name].dataType)
    given = query.toDF(*(f"column{at}" for at in range(len(chosen))))
    values = resolve(given, [f.col(name) for name in given.columns])
    columns = [
        _stored(given, value, fields[name].dataType, name).alias(name)
        for name, value in zip(chosen, values, strict=True)
    ]
    return given.select(*columns, *constants)


def _check_inner_names(place: str, given: DataType, wanted: DataType) -> None:
    """Raise SchemaMismatch for structs whose fields have other names, or another order: a cast goes by their order."""
    match given, wanted:
        case StructType(), StructType():
            names = [[field.name.lower() for field in one.fields] for one in (given, wanted)]
            if names[0] != names[1]:
                raise SchemaMismatch(
                    "the fields of a struct have other names than the table's, or another order",
                    place=place,
                    expected=", ".join(wanted.names),
                    found=", ".join(given.names),
                    hint="Make the struct of the table's fields, in their order.",
                )
            for one, other in zip(given.fields, wanted.fields, strict=True):
                _check_inner_names(f"{place}.{other.name}", one.dataType, other.dataType)
        case ArrayType(), ArrayType():
            _check_inner_names(place, given.elementType, wanted.elementType)
        case MapType(), MapType():
            _check_inner_names(place, given.keyType, wanted.keyType)
            _check_inner_names(place, given.valueType, wanted.valueType)


def _check_partition(target: StatementTarget, names: Sequence[str]) -> None:
    """Raise InvalidRequest for columns by which the table is not partitioned directly."""
    head = target.lake.table(target.table).read_head()
    leaves = target.lake.table(target.table).snapshot().schema.leaf_by_id
    parts = head.root.definition.partition_by
    known = [leaves[part.field].path[0] for part in parts if part.transform == IDENTITY]
    for name in names:
        if name not in known:
            raise InvalidRequest(
                "the table is not partitioned by this column alone",
                found=name,
                expected=", ".join(known) or "no PARTITION clause",
                hint="Leave PARTITION out, or write REPLACE WHERE condition.",
            )


def _stored(frame: DataFrame, value: JavaObject, wanted: DataType, name: str) -> Column:
    """A value by Spark's store assignment to a column. Raises SchemaMismatch for a type that Spark would not store
    there.
    """
    gateway = gateway_of(frame.sparkSession)
    policy = str(frame.sparkSession.conf.get(_POLICY)).upper()
    given, taken = call(value, "dataType"), gateway.static(_TYPES, "fromJson", wanted.json())
    if not gateway.static(_CAST, _ALLOWS[policy], given, taken):
        raise SchemaMismatch(
            "values of this type are not stored in the column",
            place=name,
            expected=wanted.simpleString(),
            found=call_text(given, "simpleString"),
            hint="Cast the value.",
        )
    return resolved_column(gateway, assigned(frame, value, wanted))
