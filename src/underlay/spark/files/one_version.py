"""Guards against two mistakes: mixing two versions of a table in one query by accident, and overwriting newer rows with
rows read from an older version.

A frame by name has the version that was the newest when it was made. Joined with a later frame, it would mix rows of
two versions; written over the table, it would lose rows that others added since. While Spark plans, it says which
execution it plans for, so all scans of one query can be compared. Versions that the user named by number, time or tag
do not count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from underlay.api.table import Table
from underlay.errors import CommitConflict, InvalidRequest
from underlay.runtime.locks import ProcessLock, cached_property
from underlay.spark.jvm.gateway import Gateway, JavaObject, call, call_text, gateway_of, java_plan, java_session
from underlay.spark.jvm.hadoop_path import revision_url
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.jvm.proxy import JavaIdentity, find_proxy
from underlay.spark.start.session_lakes import may_write_to
from underlay.store.directory import is_same_directory
from underlay.table.open_table import Head
from underlay.table.versions.revision import Revision

_EXECUTION = "spark.sql.execution.id"
_EXECUTIONS = "org.apache.spark.sql.execution.SQLExecution$"
_MOST_EXECUTIONS = 1024
_ASKED_FOR = "asked for"
_HINT = "Call underlay.spark.refresh, and make the frame again with spark.table."
_OVERWRITE = "OverwriteByExpression"
_SOURCE = "underlay"


class VersionGuard(JavaIdentity):
    """The object that Catalyst asks for the files of one version. `table` is pinned to it; `is_asked_for`: the user
    named it.
    """

    def __init__(self, spark: SparkSession, table: Table, identity: str, *, is_asked_for: bool) -> None:
        super().__init__(identity)
        self.gateway = gateway_of(spark)
        self.table = table
        self.remark = _ASKED_FOR if is_asked_for else ""
        self._context = spark.sparkContext
        self.session = java_session(spark)

    @property
    def is_asked_for(self) -> bool:
        """Whether the user named the version."""
        return self.remark == _ASKED_FOR

    def refuse_other_versions(self) -> None:
        """Raises InvalidRequest when the query that Spark is planning in this thread reads another version of the
        table; CommitConflict when it replaces rows newer than this version.

        Spark does not ask cached frames; they are looked up with the first of a query's scans.
        """
        execution = self._context.getLocalProperty(_EXECUTION)  # None outside of a query, for example for df.rdd
        if execution is None:
            return
        query = _queries_of(self.gateway).find(execution)
        with query.lock:
            if not query.is_looked_at:
                found = self._execution(execution)
                if found is not None:
                    self._look_at(found, query)
                query.is_looked_at = True
            self._add_to(query)

    def _execution(self, number: str) -> JavaObject | None:
        return call(self.gateway.module(_EXECUTIONS), "getQueryExecution", int(number))

    def _look_at(self, execution: JavaObject, query: QueryVersions) -> None:
        """Find what a query overwrites, and the versions of cached frames in it."""
        plan = call(execution, "analyzed")
        query.overwritten = _overwritten_by(plan, call(execution, "sparkSession"))
        if not call(self._cache, "isEmpty"):
            for reader in readers_in(plan):
                reader._add_to(query)

    def _add_to(self, query: QueryVersions) -> None:
        if self.is_asked_for:
            return
        head = self.table.read_head()
        query.add(self.table.name, revision_url(head.revision), head.root.version)
        if query.overwritten is not None and query.overwritten.may_be(self.table):
            query.replaced[revision_url(head.revision)] = head.root.version
            newest = head.revision.head(0.0).version
            if newest != head.root.version:
                raise CommitConflict(_overtaken(self.table.name, newest, head.root.version), hint=_HINT)

    @cached_property
    def _cache(self) -> JavaObject:
        """What Spark has cached."""
        return call(call(self.session, "sharedState"), "cacheManager")


def why_not_replace(place: str, version: int) -> str | None:
    """Why a version of the revision in `place` must not be replaced now: the query that overwrites it read an older
    one.

    Writers of `format("underlay")` ask this once they know which version they replace: others may have committed it
    after the query was planned.
    """
    for gateway, queries in list(_queries.items()):
        for execution, read in queries.overwriting(place):
            if read < version and call(gateway.module(_EXECUTIONS), "getQueryExecution", int(execution)) is not None:
                return f"{_overtaken('the table', version, read)}. {_HINT}"
    return None


def _overtaken(name: str, newest: int, read: int) -> str:
    return f"{name} is at version {newest}, and would be overwritten by rows of version {read}"


def version_read(frame: DataFrame, head: Head) -> Head:
    """The version of a table that a frame reads by name, if it does so and `head` is the newest; else `head`."""
    oldest = min(versions_read(frame, head), default=head.root.version)
    return head if oldest >= head.root.version else Head(head.revision, head.revision.root(oldest))


def versions_read(frame: DataFrame, head: Head) -> list[int]:
    """The versions of a table that a frame reads by its name."""
    if not hasattr(frame, "_jdf"):
        return []
    readers = readers_in(call(java_plan(frame), "analyzed"))
    read = [reader.table.read_head() for reader in readers if not reader.is_asked_for]
    return [one.root.version for one in read if _is_same(one.revision, head.revision)]


def _is_same(revision: Revision, other: Revision) -> bool:
    url, other_url = revision.store.url, other.store.url
    return revision.place == other.place and (url == other_url or is_same_directory(url, other_url))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten:
    """The table that `format("underlay")` overwrites: `name`, in the lake of the option `lake`, or else the
    session's.
    """

    session: JavaObject
    name: str
    lake: str | None

    def may_be(self, table: Table) -> bool:
        """Whether this may be the table, as far as is known."""
        return self.name == table.name and may_write_to(self.session, self.lake, table.stores.lake.url)


@dataclass(slots=True)
class QueryVersions:
    """What one execution reads (versions by tables' places), what it overwrites, and `replaced`, the versions that it
    reads of the overwritten table. Spark plans parts of a query in several threads: hold `lock` to read or change it.
    """

    overwritten: Overwritten | None = None
    is_looked_at: bool = False
    versions: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)
    lock: ProcessLock = field(default_factory=ProcessLock)

    def add(self, name: str, place: str, version: int) -> None:
        """Record that it reads this version of the table in `place`. Raises InvalidRequest for a second version."""
        other = self.versions.setdefault(place, version)
        if other != version:
            first, second = sorted((other, version))
            raise InvalidRequest(
                f"two versions of {name} in one query: {first} and {second}",
                hint="Make both frames again with spark.table, or read each with read_table(…, version=…).",
            )


class Queries:
    """The newest executions of a JVM. Safe for many threads."""

    def __init__(self) -> None:
        self._queries: OrderedDict[str, QueryVersions] = OrderedDict()
        self._lock = ProcessLock()

    def find(self, execution: str) -> QueryVersions:
        """What an execution reads, as far as known."""
        with self._lock:
            found = self._queries.setdefault(execution, QueryVersions())
            if len(self._queries) > _MOST_EXECUTIONS:
                self._queries.popitem(last=False)
        return found

    def overwriting(self, place: str) -> list[tuple[str, int]]:
        """Executions that overwrite the table in `place` with its own rows, each with the version that it reads."""
        with self._lock:
            found = list(self._queries.items())
        return [(execution, query.replaced[place]) for execution, query in found if place in query.replaced]


_queries: dict[Gateway, Queries] = {}


def _queries_of(gateway: Gateway) -> Queries:
    """The executions of one JVM."""
    return _queries.setdefault(gateway, Queries())


def _overwritten_by(plan: JavaObject, session: JavaObject) -> Overwritten | None:
    """The table whose rows a plan of a session overwrites through `format("underlay")`."""
    if call_text(plan, "nodeName") != _OVERWRITE:
        return None
    target = call(plan, "table")
    if _kind(target) != "DataSourceV2Relation" or call_text(call(target, "table"), "name") != _SOURCE:
        return None
    options = call(target, "options")
    lake = call(options, "get", "lake")
    return Overwritten(
        session=session, name=call_text(options, "get", "path"), lake=None if lake is None else str(lake)
    )


def readers_in(plan: JavaObject) -> Iterator[VersionGuard]:
    """The readers in a logical plan and its subqueries, before Spark substituted cached frames."""
    for part in (plan, *items_of(call(plan, "subqueriesAll"))):
        for leaf in items_of(call(part, "collectLeaves")):
            asked = _asked_by(leaf)
            found = None if asked is None else find_proxy(asked)
            if isinstance(found, VersionGuard):
                yield found


def _asked_by(leaf: JavaObject) -> JavaObject | None:
    """The object that Catalyst asks for the files of a leaf."""
    match _kind(leaf):
        case "DataSourceV2Relation":
            return call(leaf, "table")
        case "LogicalRelation":
            relation = call(leaf, "relation")
            return call(relation, "location") if _kind(relation) == "HadoopFsRelation" else None
    return None


def _kind(found: JavaObject) -> str:
    return call_text(call(found, "getClass"), "getSimpleName")
