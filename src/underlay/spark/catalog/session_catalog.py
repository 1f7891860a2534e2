"""Keeps the names of lakes' tables in a Spark application.

They are views in the catalog that all sessions of an application share (see `view_entry`). Spark refuses to write to a
view; our parser refuses what Spark would do to one, such as DROP and ALTER VIEW (see `sql.statements`), so that a name
means the lake's table as long as the lake has it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest, Unsupported
from underlay.runtime.locks import ProcessLock
from underlay.spark.catalog.view_entry import EntryMaker, ViewEntry, key_of
from underlay.spark.jvm.gateway import JavaObject, call, call_text, gateway_of, java_session, scala_map
from underlay.spark.start.open_session import temporary_folder
from underlay.store.directory import is_same_directory

LOG = logging.getLogger("underlay.spark")
_DATABASE = "org.apache.spark.sql.catalyst.catalog.CatalogDatabase"
_KEPT_SECONDS = 60
"""Longer than Spark takes between resolving a name and resolving the plan behind it."""
_MOST_KEPT = 64


def check_names(spark: SparkSession, names: list[str]) -> None:
    """Raises Unsupported when the session's catalog is persistent, InvalidRequest for names that it cannot tell
    apart.
    """
    if spark.conf.get("spark.sql.catalogImplementation") != "in-memory":
        raise Unsupported(
            "this session's catalog is a persistent metastore, and Underlay does not write to one",
            hint="Read with underlay.spark.read_table, or start Spark with spark.sql.catalogImplementation=in-memory.",
        )
    twins = [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
    if twins:
        raise InvalidRequest(
            "Spark's catalog ignores case, and these names differ only by case", found=", ".join(sorted(twins))
        )


class Names:
    """The names that one application has. Thread-safe: hold `lock` to change them."""

    def __init__(self, spark: SparkSession) -> None:
        self._gateway = gateway = gateway_of(spark)
        shared = call(java_session(spark), "sharedState")
        announcing = call(shared, "externalCatalog")
        self.spark = spark
        self.lock = ProcessLock(reentrant=True)
        self.lakes: dict[str, Lake] = {}
        """The lakes of the names, by URL."""
        self._catalog = call(announcing, "unwrapped")  # Spark sends no events for these
        self._plans = call(shared, "globalTempViewManager")
        self._maker = EntryMaker(gateway, call_text(shared, "globalTempDB"))
        self._entries: dict[tuple[str, str], ViewEntry] = {}
        self._older: dict[tuple[str, str], deque[tuple[str, float]]] = {}
        """The names' previous plans, each with the time of its replacement; the oldest first."""
        self._databases: set[str] = set()
        self._by_table: dict[str, set[tuple[str, str]]] = {}
        self.views: dict[str, set[str]] = {}
        """The user's views whose text mentions tables of a lake, with all words of the text."""
        self.catalogs: dict[str, int] = {}
        """The newest catalog entry that the names reflect, by the lake's URL."""

    def lake_at(self, url: str) -> Lake | None:
        """The lake with this URL, or that another spelling of its directory names."""
        found = self.lakes.get(url)
        if found is not None:
            return found
        return next((lake for known, lake in list(self.lakes.items()) if is_same_directory(known, url)), None)

    def entries_of(self, lake_url: str) -> list[ViewEntry]:
        """The entries of a lake's tables."""
        return [entry for entry in list(self._entries.values()) if entry.lake_url == lake_url]

    def entries(self) -> list[ViewEntry]:
        """All names."""
        return list(self._entries.values())

    def find(self, name: str) -> ViewEntry | None:
        """The entry of a name."""
        return self._entries.get(key_of(name))

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._entries

    def mentioned(self, words: set[str]) -> list[ViewEntry]:
        """The entries whose table's name is one of these lower-case words."""
        keys = [key for word in words & self._by_table.keys() for key in list(self._by_table[word])]
        return [entry for entry in map(self._entries.get, keys) if entry is not None]

    def lost(self) -> set[str]:
        """The names whose plans somebody dropped."""
        there = set(_texts(call(self._plans, "listViewNames", "*")))
        return {entry.name for entry in list(self._entries.values()) if entry.hidden not in there}

    def check_free(self, lake_url: str, names: list[str]) -> None:
        """Raises InvalidRequest when one of the names means something else in this application."""
        unknown = [name for name in names if self.find(name) is None]
        taken = self._taken({key_of(name)[0] for name in unknown})
        for name in names:
            entry = self.find(name)
            if entry.lake_url != lake_url if entry is not None else key_of(name) in taken:
                raise InvalidRequest(
                    f"the session already has another table {name}",
                    place=lake_url,
                    hint="Rename one of the two, or read this one with underlay.spark.read_table.",
                )

    def _taken(self, databases: set[str]) -> set[tuple[str, str]]:
        """The names that exist in these databases."""
        return {
            (database, view)
            for database in databases & self._databases_there()
            for view in _texts(call(self._catalog, "listTables", database))
        }

    def has_database(self, name: str) -> bool:
        """Whether Spark's catalog has a database of this name, ours or another."""
        return name in self._databases_there()

    def is_taken(self, key: tuple[str, str]) -> bool:
        """Whether a name that is none of ours means something else in Spark's catalog."""
        return key in self._taken({key[0]})

    def _databases_there(self) -> set[str]:
        return set(_texts(call(self._catalog, "listDatabases")))

    def make_databases(self, names: list[str]) -> None:
        """Create the databases of these names if they do not exist."""
        for database in sorted({key_of(name)[0] for name in names} - self._databases_there()):
            place = self._gateway.new("java.net.URI", (_folder() / database).as_uri())
            made = self._gateway.new(_DATABASE, database, "", place, scala_map(self._gateway, {}))
            call(self._catalog, "createDatabase", made, True)
            self._databases.add(database)

    def put(self, lake_url: str, name: str, table: Table) -> None:
        """Point the name at a table that is pinned to one version. Raises Unsupported; then nothing is changed.

        Earlier versions stay for a while, for queries that have resolved the name already.
        """
        entry = self._maker.make(self.spark, lake_url, name, table)
        call(self._plans, "create", entry.hidden, entry.plan, True)
        before = self._entries.get(entry.key)
        self._entries[entry.key] = entry
        self._by_table.setdefault(entry.key[1], set()).add(entry.key)
        call(self._catalog, "createTable", entry.view, True)
        call(self._catalog, "alterTable", entry.view)
        if before is not None and before.hidden != entry.hidden:
            self._retire(entry.key, before.hidden)

    def _retire(self, key: tuple[str, str], hidden: str) -> None:
        now = time.monotonic()
        older = self._older.setdefault(key, deque())
        older.append((hidden, now))
        while older[0][1] < now - _KEPT_SECONDS or len(older) > _MOST_KEPT:
            self._remove_plan(older.popleft()[0])

    def forget(self, entry: ViewEntry) -> None:
        """Remove the name. A database that was created for such names goes with its last one."""
        database, view = entry.key
        self._entries.pop(entry.key, None)
        if database in self._databases_there():
            call(self._catalog, "dropTable", database, view, True, True)
            if database in self._databases and not _texts(call(self._catalog, "listTables", database)):
                call(self._catalog, "dropDatabase", database, True, False)
                self._databases.discard(database)
        self._remove_plan(entry.hidden)
        for hidden, _ in self._older.pop(entry.key, ()):
            self._remove_plan(hidden)

    def _remove_plan(self, hidden: str) -> None:
        call(self._plans, "remove", hidden)


def _texts(found: JavaObject) -> list[str]:
    """A Scala sequence of names, none of them empty."""
    return [text for text in call_text(found, "mkString", "\n").split("\n") if text]


@cache
def _folder() -> Path:
    """The folder of databases that are created for names. It stays empty, unless users put something there."""
    return Path(temporary_folder())
