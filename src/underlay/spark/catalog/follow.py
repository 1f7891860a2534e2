"""Keeps a session's names at the newest versions: after this process's commits at once, after others' on `refresh`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.api.opened.info import TableInfo
from underlay.errors import Damaged, NotFound, UnderlayError, Unsupported
from underlay.runtime.locks import ProcessLock
from underlay.runtime.threads import side_by_side
from underlay.spark.catalog.session_catalog import LOG, Names, check_names
from underlay.spark.catalog.version_name import has_version, open_named, without_version
from underlay.spark.start.open_session import is_running

_THREADS = 4

_applications: dict[str, Names] = {}
_starting = ProcessLock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The tables that a session knows now, and why it lacks the others."""

    known: list[str]
    left_out: dict[str, UnderlayError]


def names_of(spark: SparkSession) -> Names:
    """The names of a session's application."""
    application = spark.sparkContext.applicationId
    with _starting:
        for other, names in list(_applications.items()):
            if not is_running(names.spark):
                del _applications[other]
        if application not in _applications:
            _applications[application] = Names(spark)
        return _applications[application]


def follow_lake(names: Names, lake: Lake, *, is_catalog_only: bool = False) -> Followed:
    """Have names for exactly the lake's tables, at their newest versions; only changed ones are put again. A table that
    cannot be read is left out. Raises InvalidRequest for names that are taken.

    `is_catalog_only`: only the lake's catalog changed. Tables that it has as before are not looked at.
    """
    known = names.lake_at(lake.url)
    if known is not None and known.url != lake.url:
        lake = known  # opened by another path
    tables = lake.tables()
    plain = [table.name for table in tables]
    check_names(names.spark, plain)
    with names.lock:
        there = set(plain)
        for entry in names.entries_of(lake.url):
            if without_version(entry.name) not in there:
                names.forget(entry)
        names.check_free(lake.url, plain)
        names.lakes[lake.url] = lake
        wanted = [table.name for table in tables if not (is_catalog_only and _is_as_before(names, table))]
        wanted += [entry.name for entry in names.entries_of(lake.url) if has_version(entry.name)]
        left_out = _put_all(names, lake, wanted)
    return Followed(known=[name for name in plain if name not in left_out], left_out=left_out)


def _is_as_before(names: Names, table: TableInfo) -> bool:
    entry = names.find(table.name)
    return entry is not None and (entry.name, entry.revision) == (table.name, table.revision)


def _put_all(names: Names, lake: Lake, wanted: list[str]) -> dict[str, UnderlayError]:
    """Put all names. Returns why some tables cannot be read: their names are forgotten."""
    names.make_databases(wanted)
    failures = side_by_side(partial(_put, names, lake, names.lost()), wanted, _THREADS)
    left_out = {name: failure for name, failure in zip(wanted, failures, strict=True) if failure is not None}
    _forget_all(names, list(left_out))
    return left_out


def follow_table(names: Names, lake: Lake, name: str) -> None:
    """Point the name of one table that the session knows at its newest version, or forget it."""
    with names.lock:
        failure = _put(names, lake, set(), name)
        if failure is not None:
            _forget_all(names, [name])
            LOG.warning("Spark no longer has the name %s: %s", name, failure)


def _put(names: Names, lake: Lake, lost: set[str], name: str) -> UnderlayError | None:
    """Point a name at the lake's current table. Returns why the table cannot be read, if so. A name that is up to date
    is left alone, unless it is among the lost.
    """
    try:
        opened = open_named(lake, name)
        revision = opened.read_head().revision
        known = None if name in lost else names.find(name)
        if known is None or (known.state_id, known.folder) != (opened.state_id, revision.table_folder):
            names.put(lake.url, name, opened)
    except (Unsupported, NotFound, Damaged) as error:
        return error
    return None


def _forget_all(names: Names, gone: list[str]) -> None:
    for name in gone:
        entry = names.find(name)
        if entry is not None:
            names.forget(entry)
