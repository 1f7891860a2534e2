"""Runs ALTER TABLE and COMMENT ON: changes of a table's definition, each statement in one commit."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from underlay.change.define.evolution import Evolution
from underlay.errors import Unsupported
from underlay.prune.predicates.operand import format_column
from underlay.spark.jvm.gateway import JavaObject, call, call_text
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.sql import answers
from underlay.spark.sql.nodes import StatementScope, kind_of, option_of, texts_of, type_of
from underlay.spark.sql.targets import StatementTarget, key_of_parts
from underlay.spark.types.arrow_types import arrow_type

_AFTER = "AFTER "


def alter(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run a statement of `ALTERS`."""
    with target.lake.table(target.table).evolve() as change:
        _STEPS[kind_of(node)](scope.spark, node, change, target)
    return answers.nothing(scope.spark)


def rename(scope: StatementScope, node: JavaObject, target: StatementTarget) -> JavaObject:
    """Run ALTER TABLE … RENAME TO. A name without a dataset stays in the table's dataset."""
    parts = texts_of(call(node, "newName"))
    key = key_of_parts(scope.spark, parts if len(parts) > 1 else [target.table.split(".")[0], *parts])
    target.lake.rename_table(target.table, ".".join(key or parts))
    return answers.nothing(scope.spark)


def _add(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    for column in items_of(call(node, "columnsToAdd")):
        above = option_of(call(column, "path"))
        path = [*([] if above is None else texts_of(call(above, "name"))), call_text(column, "colName")]
        name, kind = format_column(tuple(path)), type_of(call(column, "dataType"))
        default, comment = option_of(call(column, "default")), option_of(call(column, "comment"))
        after, is_first = _position(option_of(call(column, "position")))
        change.add_column(
            name,
            arrow_type(kind),
            default=None if default is None else _value(spark, default, kind),
            comment=None if comment is None else str(comment),
            after=after,
        )
        if is_first:
            change.move_column(name)
        if not call(column, "nullable"):
            change.make_required(name)


def _drop(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    known = {name.lower() for name in target.lake.table(target.table).schema.names}
    for column in items_of(call(node, "columnsToDrop")):
        path = texts_of(call(column, "name"))
        if not call(node, "ifExists") or path[0].lower() in known:
            change.drop_column(format_column(tuple(path)))


def _rename(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    change.rename_column(_name(call(node, "column")), call_text(node, "newName"))


def _alter_columns(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    for spec in items_of(call(node, "specs")):
        _alter_column(spec, change)


def _alter_column(spec: JavaObject, change: Evolution) -> None:
    name = _name(call(spec, "column"))
    if option_of(call(spec, "newDefaultExpression")) is not None or call(spec, "dropDefault"):
        raise Unsupported("the default of a column cannot be changed", place=name, hint="Add another column.")
    kind, nullable = option_of(call(spec, "newDataType")), option_of(call(spec, "newNullability"))
    comment = option_of(call(spec, "newComment"))
    after, is_first = _position(option_of(call(spec, "newPosition")))
    if kind is not None:
        change.widen_column(name, arrow_type(type_of(kind)))
    if nullable is not None:
        (change.make_nullable if nullable else change.make_required)(name)
    if comment is not None:
        change.set_comment(str(comment), name)
    if after is not None or is_first:
        change.move_column(name, after)


def _set_properties(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    found = call(node, "properties")
    for name in items_of(call(call(found, "keys"), "toSeq")):
        change.set_property(str(name), str(call(found, "apply", name)))


def _unset_properties(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    known = target.lake.table(target.table).definition.properties
    for name in texts_of(call(node, "propertyKeys")):
        if name in known or not call(node, "ifExists"):
            change.drop_property(name)


def _comment(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    change.set_comment(call_text(node, "comment") or None)


def _drop_check(spark: SparkSession, node: JavaObject, change: Evolution, target: StatementTarget) -> None:
    change.drop_check(call_text(node, "name"))


_STEPS: dict[str, Callable[[SparkSession, JavaObject, Evolution, StatementTarget], None]] = {
    "AddColumns": _add,
    "DropColumns": _drop,
    "RenameColumn": _rename,
    "AlterColumns": _alter_columns,
    "SetTableProperties": _set_properties,
    "UnsetTableProperties": _unset_properties,
    "CommentOnTable": _comment,
    "DropConstraint": _drop_check,
}
ALTERS = frozenset(_STEPS)


def _name(field: JavaObject) -> str:
    return format_column(tuple(texts_of(call(field, "name"))))


def _position(found: JavaObject | None) -> tuple[str | None, bool]:
    """The column that another one comes after, and whether it comes first."""
    if found is None:
        return None, False
    text = call_text(call(found, "position"), "toString")
    return (text.removeprefix(_AFTER), False) if text.startswith(_AFTER) else (None, True)


def _value(spark: SparkSession, default: JavaObject, kind: DataType) -> object:
    """The value of DEFAULT, as Spark computes it. Spark 4.0 has it as text."""
    text = default if isinstance(default, str) else call_text(default, "originalSQL")
    row = spark.sql(f"SELECT CAST(({text}) AS {kind.simpleString()})").first()
    return None if row is None else row[0]
