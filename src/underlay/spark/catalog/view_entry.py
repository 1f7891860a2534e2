"""The two views that represent a version of a table in Spark's catalog.

The name itself is a view of the catalog, because Spark refuses to write to views. It selects from a global temporary
view, which holds the version's plan and has the commit in its name: a query that resolves the name twice reads one
version, whatever is put there meanwhile. All sessions of the application see both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from underlay.api.table import Table
from underlay.spark.catalog.version_name import has_version
from underlay.spark.jvm.gateway import Gateway, JavaObject, call, call_number, call_text, scala_map
from underlay.spark.relation.relation import plan_of

_CATALOG = "org.apache.spark.sql.catalyst.catalog"
_TABLE = f"{_CATALOG}.CatalogTable"
_REQUIRED = 4
"""The number of `CatalogTable` parameters without a default: identifier, type, storage, columns."""
_PROPERTIES, _TEXT, _COMMENT = 11, 13, 14
"""Positions among the parameters of a `CatalogTable`."""
_MADE_BY = ", made by underlay.spark.refresh"
"""The suffix of the temporary views' names, which tells a reader where they come from."""
HIDDEN = re.compile(rf"\w+\.`[^`]*{re.escape(_MADE_BY)}`\.")
"""The qualifier of such a view's columns, as Spark shows it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewEntry:
    """A name of a session. `view` is its view in the catalog, `plan` the plan of the temporary view `hidden`."""

    lake_url: str
    name: str
    """The table's name, with or without a version: `taxi.trips`, `taxi.trips@v7`."""
    folder: str
    revision: str
    state_id: str
    """See `Table.state_id`."""
    hidden: str
    view: JavaObject
    plan: JavaObject

    @property
    def key(self) -> tuple[str, str]:
        """The database and the view."""
        return key_of(self.name)


def key_of(name: str) -> tuple[str, str]:
    """The database and the view of a name, as Spark's catalog spells them."""
    dataset, short = name.lower().split(".", 1)
    return dataset, short


class EntryMaker:
    """Makes entries for one application. `temporary` is its database of global temporary views."""

    def __init__(self, gateway: Gateway, temporary: str) -> None:
        self._gateway = gateway
        self._temporary = temporary
        self._view = call(gateway.module(f"{_CATALOG}.CatalogTableType$"), "VIEW")
        self._no_storage = call(gateway.module(f"{_CATALOG}.CatalogStorageFormat$"), "empty")
        self._no_columns = gateway.new("org.apache.spark.sql.types.StructType")
        self._holds_plan = scala_map(gateway, {"view.storingAnalyzedPlan": "true"})
        self._defaults = _table_defaults(gateway)
        self._marks = cache(lambda lake_url: scala_map(gateway, {"underlay.lake": lake_url}))
        self._database = cache(lambda name: _some(gateway, name))

    def make(self, spark: SparkSession, lake_url: str, name: str, table: Table) -> ViewEntry:
        """The entry of a table that is pinned to one version. Raises Unsupported."""
        gateway = self._gateway
        head, fields = table.read_head(), table.snapshot().schema.fields
        dataset, short = key_of(name)
        scanned = self._catalog_table(dataset, short, self._no_columns, {})
        plan = plan_of(spark, table, scanned, is_asked_for=has_version(name))
        comments = [field.comment for field in fields]
        columns = call(plan, "schema")
        if any(comments):
            columns = _with_comments(gateway, columns, comments)
        root = head.root
        state = root.commit_id[:12] + table.state_id[len(root.commit_id) :]
        hidden = f"{dataset}.{short} {root.version}-{state}{_MADE_BY}"
        given = {
            _PROPERTIES: self._marks(lake_url),
            _TEXT: _some(gateway, f"SELECT * FROM `{self._temporary}`.`{hidden}`"),
        }
        if root.definition.comment is not None:
            given[_COMMENT] = _some(gateway, root.definition.comment)
        holder = self._catalog_table(self._temporary, hidden, columns, {_PROPERTIES: self._holds_plan})
        return ViewEntry(
            lake_url=lake_url,
            name=name,
            folder=head.revision.table_folder,
            revision=head.revision.id,
            state_id=table.state_id,
            hidden=hidden,
            view=self._catalog_table(dataset, short, columns, given),
            plan=gateway.new(f"{_CATALOG}.TemporaryViewRelation", holder, _some(gateway, plan)),
        )

    def _catalog_table(self, database: str, name: str, columns: JavaObject, given: dict[int, JavaObject]) -> JavaObject:
        gateway = self._gateway
        identifier = gateway.new("org.apache.spark.sql.catalyst.TableIdentifier", name, self._database(database))
        rest = (given.get(place, default) for place, default in enumerate(self._defaults, _REQUIRED))
        return gateway.new(_TABLE, identifier, self._view, self._no_storage, columns, *rest)


def _table_defaults(gateway: Gateway) -> list[JavaObject]:
    """The defaults of the other parameters, in order. Newer versions of Spark have more of them."""
    constructors = call(gateway.java_class(_TABLE), "getConstructors")
    count = call_number(gateway.static("java.lang.reflect.Array", "get", constructors, 0), "getParameterCount")
    companion = gateway.module(f"{_TABLE}$")
    return [call(companion, f"apply$default${place}") for place in range(_REQUIRED + 1, count + 1)]


def _with_comments(gateway: Gateway, columns: JavaObject, comments: list[str | None]) -> JavaObject:
    fields = StructType.fromJson(msgspec.json.decode(call_text(columns, "json"))).fields
    commented = StructType(
        [
            StructField(field.name, field.dataType, field.nullable, None if comment is None else {"comment": comment})
            for field, comment in zip(fields, comments, strict=True)
        ]
    )
    return gateway.static("org.apache.spark.sql.types.DataType", "fromJson", commented.json())


def _some(gateway: Gateway, value: object) -> JavaObject:
    return gateway.new("scala.Some", value)
