"""Entries of Spark's catalog, whose constructor grows from version to version."""

from __future__ import annotations

from underlay.spark.jvm.gateway import Gateway, JavaObject, call, call_number

CATALOG = "org.apache.spark.sql.catalyst.catalog"
TABLE = f"{CATALOG}.CatalogTable"
REQUIRED = 4
"""How many parameters of a `CatalogTable` have no default: identifier, type, storage, columns."""


def table_defaults(gateway: Gateway) -> list[JavaObject]:
    """What the other parameters are unless given, in order."""
    constructors = call(gateway.java_class(TABLE), "getConstructors")
    count = call_number(gateway.static("java.lang.reflect.Array", "get", constructors, 0), "getParameterCount")
    companion = gateway.module(f"{TABLE}$")
    return [call(companion, f"apply$default${place}") for place in range(REQUIRED + 1, count + 1)]
