"""A version of a table through the ranged reader, where Spark's own reader cannot read it.

It is a Python data source that no user names: tasks fetch byte ranges through the lake's own store. The version and the
files are fixed when the frame is made; each query has them planned with its own columns and conditions, see
`table`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from hashlib import sha256
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from underlay.api.table import Table
from underlay.errors import Unsupported
from underlay.plan.part import BoolArray, Part
from underlay.runtime.locks import ProcessLock
from underlay.spark.jvm.gateway import call, frame_of_plan, gateway_of, java_session
from underlay.spark.ranged.read import READ_OPTION, RangedRead, RangedReader
from underlay.spark.ranged.table import RangedTable
from underlay.spark.source.pinned import Pin
from underlay.spark.tasks.store_address import StoreAddress

_FORMAT = "underlay_ranged"
"""How the names of these sources begin; each lake has one of its own."""
_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$"

_warned: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
_warning = ProcessLock()


class RangedReadWarning(UserWarning):
    """Spark does not read a table by itself, but in Python."""


class RangedSource(DataSource):
    """Some files of one version of a table of a lake."""

    address: ClassVar[StoreAddress]
    """The lake. It is not an option, so that plans do not show credentials."""

    @classmethod
    def name(cls) -> str:
        """The name that the lake's source is registered by."""
        return _source_name(cls.address)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what the option says."""
        return RangedReader(self.address, RangedRead.from_text(self.options[READ_OPTION]), schema)


def ranged_frame(
    spark: SparkSession,
    table: Table,
    is_chosen: Callable[[Part], BoolArray] | None = None,
    *,
    why: str | None = None,
    is_asked_for: bool = False,
) -> DataFrame:
    """The rows of a table that is opened at one version: those of all files, or of files that `is_chosen` keeps.

    It is asked now, for each part, with one answer for each file of it. With `why`, the first frame of a table in a
    session warns with RangedReadWarning. `is_asked_for`: it may stand beside another version of the table in one query.
    Raises Unsupported for types that Spark does not have, and for a lake that only this process can read.
    """
    query = table.query((), None)
    address = StoreAddress(url=query.stores.lake.url, options=query.stores.options)
    if address.url.startswith("memory://"):
        raise Unsupported("a lake in memory belongs to one process, and tasks cannot reach it", place=address.url)
    snapshot = query.snapshot
    read = RangedRead(
        table=table.name,
        pin=Pin.of(table.read_head()),
        columns=snapshot.schema.names,
        chosen=None if is_chosen is None else tuple(_packed(is_chosen(part)) for part in snapshot.parts()),
        least_tasks=2 * spark.sparkContext.defaultParallelism,
        why=why,
    )
    if why is not None:
        _warn_once(spark, table.name, why)
    found = RangedTable(spark, _register(spark, address), table, read, is_asked_for=is_asked_for)
    gateway = gateway_of(spark)
    nothing = gateway.module("scala.None$")
    return frame_of_plan(call(gateway.module(_RELATION), "create", found, nothing, nothing), spark)


def _packed(is_chosen: BoolArray) -> bytes:
    return np.packbits(is_chosen).tobytes()


def _register(spark: SparkSession, address: StoreAddress) -> str:
    """Make the source of a lake known to a session, once; its name."""
    gateway, session, name = gateway_of(spark), java_session(spark), _source_name(address)
    gateway.static("org.apache.spark.sql.classic.SparkSession", "setActiveSession", session)  # a new thread has none
    known = call(call(session, "sessionState"), "dataSourceManager")
    if not call(known, "dataSourceExists", name):
        spark.dataSource.register(_source_of(address))
    return name


def _source_of(lake: StoreAddress) -> type[RangedSource]:
    """The source of one lake. Made here, so that it is sent to workers with what it knows."""

    class LakeRangedSource(RangedSource):
        address = lake

    return LakeRangedSource


def _source_name(address: StoreAddress) -> str:
    identity = repr((address.url, sorted((name, str(value)) for name, value in address.options.items())))
    return f"{_FORMAT}_{sha256(identity.encode()).hexdigest()[:16]}"


def _warn_once(spark: SparkSession, name: str, why: str) -> None:
    with _warning:
        names = _warned.setdefault(spark, set())
        is_first = name not in names
        names.add(name)
    if is_first:
        warnings.warn(
            f"Spark reads {name} through Underlay's ranged reader, in Python: {why}",
            RangedReadWarning,
            stacklevel=3,
        )
