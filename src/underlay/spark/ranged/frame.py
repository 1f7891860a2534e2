"""Reads a version through the ranged reader, when Spark's own reader cannot read it.

The ranged reader is a Python data source that users never name: tasks fetch byte ranges through the lake's own store.
The version and the files are fixed when the frame is made; each query plans them with its own columns and conditions,
see `table`.
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
from underlay.hot.read.snapshot import HotSnapshot
from underlay.plan.part import BoolArray, Part
from underlay.runtime.locks import ProcessLock
from underlay.spark.jvm.gateway import call, frame_of_plan, gateway_of, java_session
from underlay.spark.ranged.read import READ_OPTION, RangedRead, RangedReader
from underlay.spark.ranged.table import RangedTable
from underlay.spark.source.pinned import Pin
from underlay.spark.tasks.store_address import StoreAddress

_FORMAT = "underlay_ranged"
"""The prefix of these sources' names; each lake has its own source."""
_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$"

_warned: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
_warning = ProcessLock()


class RangedReadWarning(UserWarning):
    """Python, not Spark itself, reads a table."""


class RangedSource(DataSource):
    """Some files of one version of a table of a lake."""

    address: ClassVar[StoreAddress]
    """The lake. It is not an option, so that plans do not show credentials."""

    @classmethod
    def name(cls) -> str:
        """The name under which the lake's source is registered."""
        return _source_name(cls.address)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of what the option describes."""
        return RangedReader(self.address, RangedRead.from_text(self.options[READ_OPTION]), schema)


def ranged_frame(
    spark: SparkSession,
    table: Table,
    is_chosen: Callable[[Part], BoolArray] | None = None,
    *,
    why: str | None = None,
    is_asked_for: bool = False,
) -> DataFrame:
    """The rows of a pinned table: of all files, or of those that `is_chosen` keeps.

    `is_chosen` is called now, once for each part, and answers for each of its files. With `why`, the first frame of a
    table in a session warns with RangedReadWarning. `is_asked_for`: a query may combine it with another version of the
    table. Raises Unsupported for types that Spark lacks, and for a lake that only this process can read.
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
        hot=snapshot.hot_files if isinstance(snapshot, HotSnapshot) else (),
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
    """Register a lake's source with a session, once. Returns its name."""
    gateway, session, name = gateway_of(spark), java_session(spark), _source_name(address)
    gateway.static("org.apache.spark.sql.classic.SparkSession", "setActiveSession", session)  # a new thread has none
    known = call(call(session, "sessionState"), "dataSourceManager")
    if not call(known, "dataSourceExists", name):
        spark.dataSource.register(_source_of(address))
    return name


def _source_of(lake: StoreAddress) -> type[RangedSource]:
    """The source class of one lake, made here so that workers get it with these values."""

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
